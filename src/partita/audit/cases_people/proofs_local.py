"""Enumeration cases of the local randomizers: every branch of what a device draws, for every cell."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from itertools import combinations
from typing import Any, Final

from partita import local
from partita.audit.base.case import Case, Depth, step
from partita.local.randomizer.draws import KernelDraws
from partita.local.randomizer.thresholds import WHOLE, exp_bounds
from partita.testing.laws.rational import OutputLaw, RationalNoise, law

_THIRD: Final = Fraction(1, 3)
_BITS: Final = 256


def randomizer_cases(depth: Depth, more: int = 0) -> Iterator[Case]:
    """Every randomizer of the registry, mixtures by ranges and rectangles, and a listed law."""
    sizes = (2, 3, 5, 8, 12, *range(13, 13 + more))[: step(depth, 2, 3, 5) + more]
    for epsilon in (Fraction(1), Fraction(1, 10), Fraction(5, 2))[: step(depth, 1, 2, 3)]:
        for name in _NAMES:
            yield from (_case(name, getattr(local, name)(size=size, epsilon=epsilon)) for size in sizes)
        for size in sizes:
            yield _case("Mixture", local.Range(size, epsilon=epsilon).randomizer)
    yield _case("Mixture", local.Rectangles({"x": 3, "y": 2}, epsilon=1).randomizer)
    table = ((2 * _THIRD, _THIRD), (_THIRD, 2 * _THIRD))
    yield _case("ListedLaw", local.ListedLaw(table=table, epsilon=Fraction(1)))


_NAMES: Final = (
    "RandomizedResponse",
    "ProjectiveResponse",
    "HadamardResponse",
    "UnaryEncoding",
    "LocalHashing",
    "OneBit",
    "Piecewise",
)


def _case(name: str, randomizer: Any) -> Case:
    return Case(
        mechanism=name,
        about=f"{randomizer.size} cells, epsilon {randomizer.epsilon}; a person's value changes",
        way="law",
        epsilon=randomizer.epsilon,
        pairs=lambda: combinations(range(randomizer.size), 2),
        loss=_loss(randomizer),
    )


def _loss(randomizer: Any) -> Callable[[int, int], float]:
    """The loss of a pair of cells, each law enumerated once."""
    law_of = cache(lambda x: device_law(randomizer, x))
    return lambda x, y: reports_lose(law_of(x), law_of(y), randomizer.epsilon)


def reports_lose(one: OutputLaw, other: OutputLaw, epsilon: Fraction) -> float:
    """What the laws of two reports lose; infinite if more than epsilon, which exact bounds on e decide."""
    ratio = _ratio(one, other)
    return math.inf if ratio is None or ratio > exp_bounds(epsilon, _BITS)[0] else math.log(ratio)


def _ratio(one: OutputLaw, other: OutputLaw) -> Fraction | None:
    if one.keys() != other.keys():
        return None
    pairs = {(id(one[report]), id(other[report])): (one[report], other[report]) for report in one}
    return max(max(p / q, q / p) for p, q in pairs.values())


def device_law(randomizer: Any, x: object) -> OutputLaw:
    """The law of one report about x: the shipped sampler through every branch of its draws."""
    noise = RationalNoise(Fraction(1, 2))
    return law(lambda noise: randomizer.randomize(x, draws=_BranchingDraws(noise)), noise)


class _BranchingDraws:
    """Draws that take every branch, with the probability of each; all else as on a device."""

    def __init__(self, noise: RationalNoise) -> None:
        self._noise = noise
        self._device = KernelDraws()

    def chance(self, threshold: int) -> bool:
        return self._noise.bernoulli(Fraction(threshold, WHOLE))

    def below(self, count: int) -> int:
        return self._noise.branches.choose([(number, Fraction(1, count)) for number in range(count)])

    def row(self, threshold: int, width: int) -> int:
        return sum(self.chance(threshold) << place for place in range(width))

    def each(self, part: int, samplers: Any, x: int) -> Any:
        return samplers[part](x, self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._device, name)
