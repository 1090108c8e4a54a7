"""The distribution of largest entropy that agrees with noisy answers, as well as their noise asks for.

The mass x over the cells minimises KL(x | even) / weight + sum of (answer - noisy)^2 / (2 variance), with a
given sum. Its dual has a number for each measurement: x is proportional to exp of the sum of these numbers
times the weights. Every step moves all of them at once, each as far as a bound on the curvature allows,
with momentum. There is no branch, so other array libraries go the same way up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from partita.public.queries.operator.namespace import like, namespace
from partita.public.queries.operator.operator import Operator
from partita.public.workload.weights.margin import Margin

Floats: TypeAlias = NDArray[np.float64]

_WEIGHT: Final = 100.0
"""How many times more the noise is believed than that the data are even; measured."""

_LONGEST: Final = 1.0
"""No cell's exponent moves by much more in one step, whatever was released: each number moves by as much
over the number of measurements that cover its cells."""

_LEAST: Final = 1e-200
_REFRESHED: Final = 5
"""How often sums are covered is looked at anew after so many steps; it changes slowly."""


@final
@dataclass(frozen=True, eq=False)
class Measured:
    """Noisy sums: how to take them and their adjoint, their values, and one over their variances.

    Both give new arrays. What was not measured has a precision of zero. Weights are at most one; `signed`
    says that some are negative.
    """

    sums: Callable[[Any], Any]
    spread: Callable[[Any], Any]
    values: Floats
    precision: Floats
    signed: bool = False


@final
class Fit:
    """Numbers for all measurements, and the mass over the universe that they stand for."""

    def __init__(
        self, shape: tuple[int, ...], mass: float, blocks: Sequence[Measured], arrays: Any = None
    ) -> None:
        self._arrays = np.zeros(()) if arrays is None else arrays
        self._shape, self._mass, self._blocks = shape, mass, tuple(blocks)
        self._duals = [self._array(np.zeros(block.values.size)) for block in self._blocks]

    @property
    def x(self) -> Any:
        """The mass of each cell."""
        return self._mass_of(self._duals)

    def with_blocks(self, blocks: Sequence[Measured]) -> Fit:
        """The same numbers, to go on from with more measurements of the same kinds, or of one kind more."""
        fit = Fit(self._shape, self._mass, blocks, self._arrays)
        fit._duals[: len(self._duals)] = self._duals
        return fit

    def climb(self, steps: int) -> Fit:
        """Move all numbers so many times towards the optimum."""
        now = last = self._duals
        cover, covers = self._cover(), list[Any]()
        for step in range(steps):
            push = step / (step + 3)
            ahead = [a + push * (a - b) for a, b in zip(now, last, strict=True)]
            x = self._mass_of(ahead)
            if step % _REFRESHED == 0:
                covers = self._covers(x, x * cover)
            last, now = now, self._moved(ahead, x, covers)
        self._duals = now
        return self

    def _moved(self, duals: list[Any], x: Any, covers: list[Any]) -> list[Any]:
        together = zip(self._blocks, duals, covers, strict=True)
        return [dual + self._step(block, dual, x, cover) for block, dual, cover in together]

    def _covers(self, x: Any, covered: Any) -> list[Any]:
        """How many times the mass of each sum is covered by all that was measured, on average."""
        return [
            (self._held(block, covered) + _LEAST) / (self._held(block, x) + _LEAST) for block in self._blocks
        ]

    def _step(self, block: Measured, dual: Any, x: Any, cover: Any) -> Any:
        """Newton's step along each number, and no longer than moves exponents by about one together.

        The matrix of second derivatives is at most A diag(x) A', and that is at most the diagonal matrix
        of its row sums, because it has no negative entry: the mass of each sum times its cover. For signed
        weights all mass takes the place of theirs.
        """
        xp = namespace(x)
        trust, values = self._array(_WEIGHT * block.precision), self._array(block.values)
        answers = block.sums(x)
        curvature = cover * (xp.sum(x) if block.signed else answers)
        step = (trust * (values - answers) - dual) / (trust * curvature + 1.0)
        return xp.clip(step, -_LONGEST / cover, _LONGEST / cover)

    def _held(self, block: Measured, x: Any) -> Any:
        return namespace(x).sum(x) if block.signed else block.sums(x)

    def _cover(self) -> Any:
        """For each cell the sum of its weights over what was measured; where some are negative, a bound."""
        cover = self._array(np.zeros((1,) * len(self._shape)))
        for block in self._blocks:
            seen = self._array((block.precision > 0).astype(np.float64))
            cover = cover + (namespace(seen).sum(seen) if block.signed else block.spread(seen))
        return cover

    def _mass_of(self, duals: list[Any]) -> Any:
        exponent = self._exponent(duals)
        xp = namespace(exponent)
        exponent -= xp.max(exponent)
        weights = xp.exp(exponent)
        weights *= self._mass / xp.sum(weights)
        return weights

    def _exponent(self, duals: list[Any]) -> Any:
        """The sum of numbers times weights, in all cells; what has all axes is last, and comes first."""
        parts = [block.spread(dual) for block, dual in zip(self._blocks, duals, strict=True)]
        whole = bool(parts) and tuple(parts[-1].shape) == self._shape
        exponent = parts.pop() if whole else self._array(np.zeros(self._shape))
        for part in parts:
            exponent += part
        return exponent

    def _array(self, values: Floats) -> Any:
        return like(values, self._arrays)


def margin_block(margin: Margin, values: Floats, variance: float) -> Measured:
    """Noisy sums along one axis."""
    return Measured(margin.sums, margin.spread, values, np.full(values.size, 1.0 / variance))


def query_block(
    operator: Operator, indices: Sequence[int], values: Sequence[float], variance: float
) -> Measured:
    """Noisy answers to some queries, with all weights over the largest; several to one count together."""
    times, sums = np.zeros(len(operator)), np.zeros(len(operator))
    np.add.at(times, np.asarray(indices, np.int64), 1.0)
    np.add.at(sums, np.asarray(indices, np.int64), np.asarray(values, np.float64))
    largest = float(max(abs(operator.lowest), abs(operator.highest), 1))
    return Measured(
        sums=lambda x: operator.answers(x) / largest,
        spread=lambda y: operator.combine(y / largest),
        values=sums / np.maximum(times, 1.0),
        precision=times / variance,
        signed=operator.lowest < 0,
    )
