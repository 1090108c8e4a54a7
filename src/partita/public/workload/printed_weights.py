"""Multiplicative weights as printed: one multiplicative step in each round, and the average of all guesses
[HLM12, HR10].

The mass of a cell is multiplied by exp(q(x) (noisy - q(A)) / 2n), q the query of the round and A the guess
before it. The theorem bounds the largest error of the average, before anything is counted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from partita.arrays import Floats
from partita.guarantee import Guarantee
from partita.lazy import cached_property
from partita.public.axis.base import Json, Parts, PartsReader
from partita.public.base import damaged
from partita.public.bounds import largest_reach
from partita.public.queries.operator import Operator, convert_like, namespace
from partita.public.workload.release import Change
from partita.public.workload.weights import (
    MOST_ROUNDS_ASKED,
    Measurements,
    Scales,
    count_grains,
    largest_weight,
)

PRINTED_FACTS = ("rows", "grain", "selection_scale", "answer_scale")
_MOST_ROWS = 2**62


@final
class MultiplicativeSteps:
    """The guess A after some rounds, and the sum of all guesses before them."""

    def __init__(self, operator: Operator, rows: int, arrays: Any = None) -> None:
        self._operator, self._rows = operator, rows
        self._largest = float(largest_weight(operator))
        like = np.zeros(()) if arrays is None else arrays
        self._exponent = convert_like(np.zeros(operator.shape), like)
        self._sum, self.number = self._exponent * 0.0, 0

    @cached_property
    def guess(self) -> Any:
        """The mass of each cell, in rows: even at first."""
        xp = namespace(self._exponent)
        weights = xp.exp(self._exponent - xp.max(self._exponent))
        return weights * (self._rows / xp.sum(weights))

    @property
    def average(self) -> Any:
        """The average of the guesses before each step; the even guess if there was none."""
        return self._sum / self.number if self.number else self.guess

    def step(self, index: int, noisy: float) -> None:
        """Multiply by what a noisy answer to one query, in units of weights times rows, asks for.

        The exponent is at most one: a noisy answer that is off by more than 2n is taken to be off by 2n.
        """
        xp = namespace(self._exponent)
        weights = self._operator.row(index, self._exponent) / self._largest
        off = noisy / self._largest - float(xp.sum(weights * self.guess))
        self._sum, self.number = self._sum + self.guess, self.number + 1
        self._exponent = self._exponent + weights * min(1.0, max(-1.0, off / (2.0 * max(1, self._rows))))
        del self.guess


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class PrintedMeasurements(Measurements):
    """Rounds of the printed algorithm over a public number of rows, the `total`.

    There are no sums along axes. The average of the guesses answers; its bounds are those of the theorem.
    """

    @cached_property
    def mass(self) -> float:
        """The number of rows, which is public."""
        return float(self.total)

    @cached_property
    def x(self) -> Any:
        """The average of all guesses that a query was chosen by."""
        steps = MultiplicativeSteps(self.operator, self.total, self.arrays)
        for index, noisy in zip(self.indices.tolist(), self.noisy.tolist(), strict=True):
            steps.step(index, float(noisy) * self.grain)
        return steps.average

    def bounds(self, beta: float) -> Floats:
        """The theorem's bound, the same for all answers."""
        reach = theorem_bound(
            self.operator, self.grain, self.scales, rounds=self.indices.size, rows=self.total, beta=beta
        )
        return np.full(len(self.operator), reach)

    def losses(self, change: Change) -> tuple[Fraction, Fraction]:
        """What the rounds cost: neighbours have equally many rows."""
        answer, rounds = count_grains(change.of_answer(self.operator), self.grain), self.indices.size
        selection, noise = 2 * answer / self.scales.selection, answer / self.scales.answer
        return rounds * (selection + noise), rounds * (selection**2 / 4 + noise**2) / 2

    def first_rounds(self, rounds: int) -> PrintedMeasurements:
        """The measurements of the first rounds."""
        return replace(self, indices=self.indices[:rounds], noisy=self.noisy[:rounds])

    def parts(self) -> Parts:
        """The number of rows, the scales and the rounds."""
        facts: dict[str, Json] = {
            "rows": self.total,
            "grain": self.grain,
            "selection_scale": str(self.scales.selection),
            "answer_scale": str(self.scales.answer),
        }
        return Parts(facts, {"indices": self.indices, "noisy": self.noisy})

    @staticmethod
    def read(parts: Parts, operator: Operator, guarantee: Guarantee | None) -> PrintedMeasurements:
        """The rounds that were written; anything else is an `InvalidRelease`."""
        reader = PartsReader(parts)
        reader.expect(facts=PRINTED_FACTS, series=("indices", "noisy"))
        if guarantee is not None and not guarantee.same_rows:
            raise damaged("rows", "must be public between the neighbours of the guarantee")
        indices = reader.row("indices", np.int64)
        if not 1 <= indices.size <= MOST_ROUNDS_ASKED:
            raise damaged("indices", f"must be of 1 to {MOST_ROUNDS_ASKED} rounds")
        return PrintedMeasurements.of(
            operator,
            rows=reader.integer("rows", low=0, high=_MOST_ROWS),
            grain=reader.integer("grain", low=1, high=_MOST_ROWS),
            indices=indices,
            noisy=reader.noisy("noisy", count=indices.size),
            scales=round_scales(reader.scale("selection_scale"), reader.scale("answer_scale")),
        )

    @staticmethod
    def of(
        operator: Operator,
        *,
        rows: int,
        grain: int,
        indices: NDArray[np.int64],
        noisy: NDArray[Any],
        scales: Scales,
        arrays: Any = None,
    ) -> PrintedMeasurements:
        """The measurements of some rounds: rows count one each, and nothing was measured before."""
        return PrintedMeasurements(
            operator=operator,
            unit=1,
            grain=grain,
            total=rows,
            margins=(),
            marginals=np.zeros(0, np.int64),
            indices=indices,
            noisy=noisy,
            scales=scales,
            arrays=arrays,
        )


def theorem_bound(
    operator: Operator, grain: int, scales: Scales, *, rounds: int, rows: int, beta: float
) -> float:
    """With probability 1 - beta no answer of the average misses by more: a number before the data.

    2 n sqrt(ln |X| / T) plus how far the chosen queries may be from the worst ones, plus the noise of the
    answers, half of beta for each; docs/proofs/multiplicative_weights.md. At beta = 2T/|Q| and the pure
    scales it is 2 n sqrt(ln |X| / T) + 10 T ln |Q| / epsilon, as printed.
    """
    largest = largest_weight(operator) / operator.granularity
    learned = 2.0 * rows * largest * math.sqrt(math.log(math.prod(operator.shape)) / rounds)
    passed = float(scales.selection) * math.log(2.0 * len(operator) * rounds / beta)
    noise = largest_reach(scales.answer, rounds, beta / 2)
    rounding = 4.0
    return learned + (passed + noise + rounding) * grain / operator.granularity


def round_scales(selection: Fraction, answer: Fraction) -> Scales:
    """The scales of rounds before which nothing was measured."""
    return Scales(total=Fraction(0), marginal=Fraction(0), selection=selection, answer=answer)
