"""A released tree of noisy counts, and the intervals that it answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Final, Self, final

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answer, least_sum
from partita.guarantee.guarantee import Guarantee
from partita.lazy.cached import cached_property
from partita.numbers import failure, ordered
from partita.public.axis.base.noisy_sum import Line, NoisySum, checked, checked_ranges
from partita.public.axis.base.ranges import Json, Parts, Ranges, Term
from partita.public.axis.base.reading import PartsReader
from partita.public.axis.base.tree_cover import Hierarchy
from partita.public.axis.curve.curve import Curve, Floats, Ints, UInts
from partita.public.axis.curve.isotonic import curve_through
from partita.public.base.released import damaged

_LARGEST_SIZE: Final = 2**30
_MOST_LEVELS: Final = 31
_BLOCK: Final = 2**15


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class TreeRelease(Ranges):
    """Noisy counts of the nodes of each level, leaves first; the nodes of a level have noise of one scale.

    `guarantee` is None if the release was made with injected noise: it protects nobody.
    """

    kind: ClassVar[str] = "tree"
    papers: ClassVar[Mapping[str, tuple[str, ...]]] = {"tree": ("SU", "DNPR10")}
    max_series: ClassVar[int] = 1
    max_series_per_level: ClassVar[int] = 1

    levels: tuple[NDArray[Any], ...]
    size: int
    branching: int
    scales: tuple[Fraction, ...]
    guarantee: Guarantee | None = None

    @cached_property
    def shape(self) -> Hierarchy:
        """Which cells the nodes stand for."""
        return Hierarchy(size=self.size, branching=self.branching, levels=len(self.levels))

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """The levels with their noise."""
        return tuple(Line(level, scale) for level, scale in zip(self.levels, self.scales, strict=True))

    @cached_property
    def curve(self) -> Curve:
        """The monotone curve closest to the answers for all prefixes."""
        cells = np.arange(self.size)
        return curve_through(cells.astype(np.uint64), self._sums(np.zeros_like(cells), cells))

    def answer(self, *terms: Term) -> Answer:
        """The signed sum of the fewest nodes that cover each term; a node may cancel."""
        ranges = checked(terms, self.size)
        return self.combined(ranges).answer(least_sum(each.sign for each in ranges))

    def combined(self, terms: Iterable[Term]) -> NoisySum:
        """The nodes of all terms, as one linear combination."""
        runs: list[list[tuple[int, int, int]]] = [[] for _ in self.levels]
        for low, high, sign in terms:
            for level, first, behind in self.cover(low, high):
                runs[level].append((first, behind, sign))
        return NoisySum.of(zip(self.lines, runs, strict=True))

    def counts(self, lows: UInts, highs: UInts) -> Floats:
        """The sums of the covers of many ranges."""
        return self._sums(*_cells(lows, highs, self.size))

    def errors(self, lows: UInts, highs: UInts) -> Floats:
        """The standard errors of the covers, exactly."""
        numbers = self.shape.numbers(*_cells(lows, highs, self.size))
        by_variance: dict[float, Ints | int] = {}
        for number, line in zip(numbers, self.lines, strict=True):
            by_variance[line.variance] = by_variance.get(line.variance, 0) + number
        return np.asarray(np.sqrt(sum(number * variance for variance, number in by_variance.items())))

    def error(self, beta: float) -> float:
        """Every range at its share of beta, with as many nodes of each level as a cover can have."""
        share = float(failure(beta)) / (self.size * (self.size + 1) // 2)
        longest = Counter[tuple[int, Fraction]]()
        for scale, most in zip(self.scales, self.shape.most, strict=True):
            longest[1, scale] += most
        return NoisySum(0, longest).reach(share)

    def bounds(self, low: int, high: int, beta: float) -> tuple[float, float]:
        """Guaranteed bounds on the count of the cells low, ..., high; a count is never negative."""
        return self.count(low, high).worst(beta)

    def sum(self, low: int, high: int) -> tuple[float, int]:
        """The sum of the nodes that make up low..high, and how many they are."""
        found = self.combined([Term(*ordered(low, high, first=0, last=self.size - 1))])
        return float(found.value), sum(found.noises.values())

    def cover(self, low: int, high: int) -> Iterator[tuple[int, int, int]]:
        """Disjoint nodes that make up low..high: (level, first node, node behind the last)."""
        return self.shape.cover(low, high)

    def parts(self) -> Parts:
        """The noisy counts of each level, and the shape."""
        scales: list[Json] = [str(scale) for scale in self.scales]
        facts: dict[str, Json] = {"size": self.size, "branching": self.branching, "scales": scales}
        return Parts(facts, {f"level{i}": level for i, level in enumerate(self.levels)})

    @classmethod
    def from_parts(cls, parts: Parts, guarantee: Guarantee | None) -> Self:
        """The tree that `parts` took apart, with or without its root."""
        reader = PartsReader(parts)
        size = reader.integer("size", low=1, high=_LARGEST_SIZE)
        branching = reader.integer("branching", low=2, high=_LARGEST_SIZE)
        scales = reader.scales("scales", most=_MOST_LEVELS)
        shape = Hierarchy(size=size, branching=branching, levels=len(scales))
        if shape not in (Hierarchy.of(size=size, branching=branching, root=root) for root in (True, False)):
            raise damaged("scales", "must be one for each level")
        names = [f"level{i}" for i in range(len(scales))]
        reader.expect(facts=("size", "branching", "scales"), series=names)
        levels = (reader.noisy(name, count=nodes) for name, nodes in zip(names, shape.nodes, strict=True))
        return cls(levels=tuple(levels), size=size, branching=branching, scales=scales, guarantee=guarantee)

    def _sums(self, lows: Ints, highs: Ints) -> Floats:
        """The sums of many covers, a block at a time: what a block needs stays near the processor."""
        total = np.zeros(lows.shape)
        for start in range(0, lows.size, _BLOCK):
            block = slice(start, start + _BLOCK)
            for level, firsts, stops in self.shape.runs(lows[block], highs[block]):
                total[block] += self.lines[level].sums(firsts, stops)
        return total


def _cells(lows: UInts, highs: UInts, size: int) -> tuple[Ints, Ints]:
    low, high = checked_ranges(lows, highs, size)
    return low.astype(np.int64), high.astype(np.int64)
