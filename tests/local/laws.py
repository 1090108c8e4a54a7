"""The exact law of the shipped randomizers: every branch of every draw, for one person and for columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from partita.local import columns
from partita.local.question import Frequency, randomizer_kind
from partita.local.randomizer import WHOLE, KernelDraws, LocalLaw, Randomizer, exp_bounds
from partita.testing import OutputLaw, RationalNoise, law
from partita.trusted.noise.laws import Tape

EPSILONS = (Fraction(1, 10), Fraction(1), Fraction(5, 2))

Law = Mapping[Any, Fraction]

_NEVER = Fraction(0)


def made(kind: str, size: int, epsilon: Fraction) -> Randomizer:
    """A randomizer of this kind, with what it chooses for itself."""
    return randomizer_kind(kind)(size=size, epsilon=epsilon)


@cache
def even(count: int) -> list[tuple[int, Fraction]]:
    """Every integer below a count, all with the same probability."""
    return [(number, Fraction(1, count)) for number in range(count)]


class BranchingDraws:
    """Draws that take every branch, with the probability of each; all else as on a device."""

    def __init__(self, noise: RationalNoise) -> None:
        self._noise = noise
        self._device = KernelDraws()

    def chance(self, threshold: int) -> bool:
        return self._noise.bernoulli(Fraction(threshold, WHOLE))

    def below(self, count: int) -> int:
        return self._noise.branches.choose(even(count))

    def row(self, threshold: int, width: int) -> int:
        return sum(self.chance(threshold) << place for place in range(width))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._device, name)


def device_law(randomizer: Randomizer, x: int) -> OutputLaw:
    """The law of one person's report."""
    noise = RationalNoise(Fraction(1, 2))
    return law(lambda noise: randomizer.randomize(x, draws=BranchingDraws(noise)), noise)


def column_law(monkeypatch: pytest.MonkeyPatch, randomizer: LocalLaw, cells: list[int]) -> OutputLaw:
    """The joint law of a column of reports, `randomize_many` as shipped, its words branch by branch."""
    noise = RationalNoise(Fraction(1, 2))

    def chances(_: Any, threshold: Any, count: int) -> Any:
        each = np.broadcast_to(np.asarray(threshold, dtype=object), count).tolist()
        return np.array([noise.bernoulli(Fraction(int(t), WHOLE)) for t in each])

    def below(_: Any, bound: int, count: int) -> Any:
        return np.array([noise.branches.choose(even(bound)) for _ in range(count)], dtype=np.int64)

    monkeypatch.setattr(columns, "chances", chances)
    monkeypatch.setattr(columns, "flags", chances)
    monkeypatch.setattr(columns, "integers_below", below)
    return law(lambda _: _hashable(randomizer.randomize_many(cells, words=Tape([]))), noise)


def _hashable(reports: Any) -> tuple[int, ...]:
    """Reports as ints, rows of bytes too."""
    if reports.ndim == 2:
        return tuple(int.from_bytes(row.tobytes(), "little") for row in reports)
    return tuple(reports.tolist())


def loses_at_most(epsilon: Fraction, one: Law, other: Law) -> bool:
    """Whether no outcome is more than e^epsilon times as likely under one law; certain if it says yes."""
    bound = exp_bounds(epsilon, 256)[0]
    return all(p <= bound * q and q <= bound * p for p, q in chances(one, other))


def loses_more_than(epsilon: Fraction, one: Law, other: Law) -> bool:
    """Whether some outcome is more than e^epsilon times as likely; certain if it says yes."""
    bound = exp_bounds(epsilon, 256)[1]
    return any(p > bound * q or q > bound * p for p, q in chances(one, other))


def chances(one: Law, other: Law) -> Iterable[tuple[Fraction, Fraction]]:
    """The two probabilities of every outcome; where many share the same two numbers, once."""
    outcomes = one.keys() | other.keys()
    both = ((one.get(outcome, _NEVER), other.get(outcome, _NEVER)) for outcome in outcomes)
    return {(id(p), id(q)): (p, q) for p, q in both}.values()


def total(law: Law) -> Fraction:
    """The sum of all probabilities; those that are one number in memory are added once, by their count."""
    times = Counter(id(chance) for chance in law.values())
    return sum((times[key] * chance for key, chance in {id(p): p for p in law.values()}.items()), _NEVER)


def supporting(randomizer: Any, x: int) -> set[int]:
    """The reports that the shipped aggregator counts as support of the cell x."""
    question = Frequency.of(randomizer.size, randomizer)
    found = set()
    for report in range(randomizer.reports):
        aggregator = question.aggregator()
        aggregator.add(report)
        found |= {report} if aggregator.supports()[x] else set()
    return found
