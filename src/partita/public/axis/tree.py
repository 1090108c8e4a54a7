"""Releases of trees of noisy counts, over all cells or over the segments of a released cut."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, partial
from itertools import pairwise
from typing import Any, ClassVar, Final, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partita.answer import Answer, least_sum
from partita.arrays import Floats, Ints, UInts, integer_array
from partita.errors import check
from partita.guarantee import Guarantee
from partita.lazy import cached_property
from partita.numbers import check_cell_range, check_probability, freeze, integer
from partita.public.axis.base import (
    AxisRelease,
    Hierarchy,
    Json,
    NoisyRow,
    NoisySum,
    Parts,
    PartsReader,
    Term,
)
from partita.public.axis.consistent import LevelSolver
from partita.public.axis.curve import Curve, fit_curve
from partita.public.base import damaged
from partita.public.bounds import NoiseLaw, largest_reach, overlay_runs

_LARGEST_SIZE: Final = 2**30
_MOST_LEVELS: Final = 31
_BLOCK: Final = 2**15  # ranges summed together: what a block needs stays near the processor


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Cut:
    """A released cut: segments of the cells start, ..., edges[-1], in order and without gaps.

    `edges` holds the last cell of each segment, increasing. `guarantee` is None if the cut was
    made with injected noise: such a cut protects nobody.
    """

    edges: UInts
    start: int = 0
    guarantee: Guarantee | None = None

    def __post_init__(self) -> None:
        integer(self.start, "start", low=0)
        edges = _cells(self.edges, "edges").view()
        increasing = edges.ndim == 1 and edges.size and not bool((edges[1:] <= edges[:-1]).any())
        check(increasing, "edges", "must be increasing cells", given=self.edges, fix="pass last cells")
        rule = "must not lie behind the first edge"
        check(int(edges[0]) >= self.start, "start", rule, given=self.start, fix="lower it")
        edges.flags.writeable = False
        freeze(self, edges=edges)

    @property
    def last(self) -> int:
        """The last cell of the last segment."""
        return int(self.edges[-1])

    @property
    def starts(self) -> UInts:
        """The first cell of each segment."""
        first = np.array([self.start], dtype=np.uint64)
        return np.concatenate([first, self.edges[:-1] + np.uint64(1)])

    def locate(self, cells: ArrayLike) -> NDArray[np.intp]:
        """The index of the segment that holds each cell."""
        inside = _cells(cells, "cells")
        fits = not inside.size or self.start <= int(inside.min()) <= int(inside.max()) <= self.last
        fix = "ask for cells of the cut"
        check(fits, "cells", f"must lie in {self.start}, ..., {self.last}", given=cells, fix=fix)
        return np.asarray(np.searchsorted(self.edges, inside))

    @staticmethod
    def join(cuts: Iterable[Cut]) -> Cut:
        """One cut from the cuts of neighbouring ranges, for instance of shards."""
        cuts = list(cuts)
        for before, after in pairwise(cuts):
            fits = after.start == before.last + 1 and after.guarantee == before.guarantee
            fix = "join all shards of one partition in order"
            check(fits, "cuts", "must be of neighbouring ranges and carry one guarantee", given=cuts, fix=fix)
        check(cuts, "cuts", "must hold at least one cut", given=cuts, fix="pass the shards' cuts")
        edges = np.concatenate([cut.edges for cut in cuts])
        return Cut(edges=edges, start=cuts[0].start, guarantee=cuts[0].guarantee)

    def __len__(self) -> int:
        return int(self.edges.size)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Cut):
            return NotImplemented
        same_place = self.start == other.start and self.guarantee == other.guarantee
        return same_place and np.array_equal(self.edges, other.edges)

    def __hash__(self) -> int:
        return hash((self.start, self.guarantee, self.edges.tobytes()))


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class TreeRelease(AxisRelease):
    """Noisy counts of the nodes of each level, leaves first; the nodes of a level have noise of one scale.

    If it is `consistent`, answers come from the counts of cells that are closest to all noisy counts, in
    least squares weighed by their variances: ranges add up. If not, an answer is the sum of the fewest
    nodes. `guarantee` is None if the release was made with injected noise: it protects nobody.
    """

    kind: ClassVar[str] = "tree"
    papers: ClassVar[Mapping[str, tuple[str, ...]]] = {"tree": ("SU", "DNPR10", "HRMS10")}
    max_series: ClassVar[int] = 1
    max_series_per_level: ClassVar[int] = 1

    levels: tuple[NDArray[Any], ...]
    size: int
    branching: int
    scales: tuple[Fraction, ...]
    consistent: bool = False
    guarantee: Guarantee | None = None

    @cached_property
    def shape(self) -> Hierarchy:
        """Which cells the nodes stand for."""
        return Hierarchy(size=self.size, branching=self.branching, levels=len(self.levels))

    @cached_property
    def lines(self) -> tuple[NoisyRow, ...]:
        """The levels with their noise."""
        return tuple(NoisyRow(level, scale) for level, scale in zip(self.levels, self.scales, strict=True))

    @cached_property
    def solver(self) -> LevelSolver:
        """What makes the counts consistent."""
        return LevelSolver(self.shape, self.scales)

    @cached_property
    def curve(self) -> Curve:
        """The monotone curve closest to the answers for all prefixes."""
        cells = np.arange(self.size)
        prefixes = self._before[1:] if self.consistent else self._sums(np.zeros_like(cells), cells)
        return fit_curve(cells.astype(np.uint64), prefixes)

    def answer(self, *terms: Term) -> Answer:
        """The signed sum of the terms, from consistent counts or from the fewest nodes.

        Of the fewest nodes that cover each term one may cancel.
        """
        ranges = self._check_terms(terms)
        least = least_sum(each.sign for each in ranges)
        if not self.consistent:
            return self.combined(ranges).answer(least)
        runs = overlay_runs((low, high + 1, sign) for low, high, sign in ranges)
        value = float(
            sum(factor * (self._before[stop] - self._before[first]) for first, stop, factor in runs)
        )
        noise = cache(partial(self.solver.noise_of, ranges))
        return Answer(
            value,
            lambda: math.sqrt(noise().variance),
            lambda beta: (value - noise().reach(beta), value + noise().reach(beta)),
            least,
        )

    def combined(self, terms: Iterable[Term]) -> NoisySum:
        """The nodes of all terms, as one linear combination."""
        runs: list[list[tuple[int, int, int]]] = [[] for _ in self.levels]
        for low, high, sign in terms:
            for level, first, behind in self.cover(low, high):
                runs[level].append((first, behind, sign))
        return NoisySum.of(zip(self.lines, runs, strict=True))

    def counts(self, lows: UInts, highs: UInts) -> Floats:
        """The values of many ranges."""
        cells = self._cells(lows, highs)
        return self._between(*cells) if self.consistent else self._sums(*cells)

    def errors(self, lows: UInts, highs: UInts) -> Floats:
        """The standard errors of many ranges, exactly."""
        cells = self._cells(lows, highs)
        if self.consistent:
            return np.sqrt(self._variances(*cells))
        by_variance: dict[float, Ints | int] = {}
        for number, line in zip(self.shape.numbers(*cells), self.lines, strict=True):
            by_variance[line.variance] = by_variance.get(line.variance, 0) + number
        return np.asarray(np.sqrt(sum(number * variance for variance, number in by_variance.items())))

    def error(self, beta: float) -> float:
        """Every range at its share of beta, with the largest variance that any has.

        Of covers that is as many nodes of each level as one can have.
        """
        share = float(check_probability(beta)) / (self.size * (self.size + 1) // 2)
        if self.consistent:
            return self.solver.largest_reach(share)
        longest = Counter[tuple[int, NoiseLaw]]()
        for scale, number in zip(self.scales, self.shape.most, strict=True):
            longest[1, scale] += number
        return NoisySum(0, longest).reach(share)

    def bounds(self, low: int, high: int, beta: float) -> tuple[float, float]:
        """Guaranteed bounds on the count of the cells low, ..., high; a count is never negative."""
        return self.count(low, high).worst(beta)

    def sum(self, low: int, high: int) -> tuple[float, int]:
        """The sum of the nodes that make up low..high, and how many they are."""
        found = self.combined([Term(*check_cell_range(low, high, first=0, last=self.size - 1))])
        return float(found.value), sum(found.noises.values())

    def cover(self, low: int, high: int) -> Iterator[tuple[int, int, int]]:
        """Disjoint nodes that make up low..high: (level, first node, node behind the last)."""
        return self.shape.cover(low, high)

    def parts(self) -> Parts:
        """The noisy counts of each level, and the shape."""
        scales: list[Json] = [str(scale) for scale in self.scales]
        facts: dict[str, Json] = {"size": self.size, "branching": self.branching, "scales": scales}
        if self.consistent:  # files of earlier versions do not say so, and are not
            facts["consistent"] = True
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
        said = ("consistent",) if "consistent" in parts.facts else ()
        reader.expect(facts=("size", "branching", "scales", *said), series=names)
        levels = (reader.noisy(name, count=nodes) for name, nodes in zip(names, shape.nodes, strict=True))
        return cls(
            levels=tuple(levels),
            size=size,
            branching=branching,
            scales=scales,
            consistent=bool(said) and reader.flag("consistent"),
            guarantee=guarantee,
        )

    def _cells(self, lows: UInts, highs: UInts) -> tuple[Ints, Ints]:
        low, high = self._check_ranges(lows, highs)
        return low.astype(np.int64), high.astype(np.int64)

    @cached_property
    def _before(self) -> Floats:
        """The consistent count before each cell, and of all cells at the end."""
        solved = self.solver.solve(self.levels)
        return np.concatenate([np.zeros(1), np.cumsum(solved)])

    def _between(self, lows: Ints, highs: Ints) -> Floats:
        """The consistent counts of many ranges."""
        return np.asarray(self._before[highs + 1] - self._before[lows])

    def _variances(self, lows: Ints, highs: Ints) -> Floats:
        """The variances of consistent counts, a block at a time."""
        found = np.empty(lows.shape)
        for start in range(0, lows.size, _BLOCK):
            block = slice(start, start + _BLOCK)
            found[block] = self.solver.variances(lows[block], highs[block])
        return found

    def _sums(self, lows: Ints, highs: Ints) -> Floats:
        """The sums of many covers, a block at a time."""
        total = np.zeros(lows.shape)
        for start in range(0, lows.size, _BLOCK):
            block = slice(start, start + _BLOCK)
            for level, firsts, stops in self.shape.runs(lows[block], highs[block]):
                total[block] += self.lines[level].sums(firsts, stops)
        return total


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class PaperIntervalsRelease(AxisRelease):
    """A cut with a tree of noisy counts whose leaves are the segments: any interval of a huge universe.

    `guarantee` is None if the release was made with injected noise: it protects nobody.
    """

    kind: ClassVar[str] = "intervals-paper"
    papers: ClassVar[Mapping[str, tuple[str, ...]]] = {"intervals-paper": ("DNRR15", "DNPR10")}
    max_series: ClassVar[int] = 2
    max_series_per_level: ClassVar[int] = 1

    cut: Cut
    tree: TreeRelease
    guarantee: Guarantee | None = None
    size: int = field(init=False)

    def __post_init__(self) -> None:
        freeze(self, size=self.cut.last + 1)

    @cached_property
    def curve(self) -> Curve:
        """The monotone curve closest to the tree's answers at the ends of segments, straight inside."""
        last = np.arange(len(self.cut), dtype=np.uint64)
        return fit_curve(self.cut.edges, self.tree.counts(np.zeros_like(last), last))

    def answer(self, *terms: Term) -> Answer:
        """The signed sum, for each term, of all segments that touch it [DNRR15, 3.2].

        Its standard error adds to that of the noise what the two segments at the ends of a term may
        hold outside of it.
        """
        ranges = self._check_terms(terms)
        touched = self.tree.combined(self._find_touched(term) for term in ranges)
        leaves = self.tree.levels[0]
        outside = sum(max(0.0, float(leaves[end])) ** 2 for term in ranges for end in self._cut_ends(term))

        def bounds(beta: float) -> tuple[float, float]:
            low, high = self._between(ranges, -1).bounds(beta)[0], self._between(ranges, 1).bounds(beta)[1]
            return low, max(low, high)

        def error() -> float:
            return math.hypot(touched.error, math.sqrt(outside))

        return Answer(float(touched.value), error, bounds, least_sum(each.sign for each in ranges))

    def counts(self, lows: UInts, highs: UInts) -> Floats:
        """All segments that touch each range."""
        return self.tree.counts(*self._segments(*self._check_ranges(lows, highs)))

    def errors(self, lows: UInts, highs: UInts) -> Floats:
        """The standard errors that `answer` gives, exactly."""
        low, high = self._check_ranges(lows, highs)
        first, last = self._segments(low, high)
        cut_below, cut_above = self._starts[first] < low, self.cut.edges[last] > high
        weights = np.maximum(self.tree.levels[0].astype(np.float64), 0.0) ** 2
        outside = np.where(cut_below | (cut_above & (first == last)), weights[first], 0.0)
        outside += np.where(cut_above & (first != last), weights[last], 0.0)
        return np.sqrt(self.tree.errors(first, last) ** 2 + outside)

    def error(self, beta: float) -> float:
        """Half of beta for the noise of all runs of segments, half for the two heaviest that can be cut."""
        share = float(check_probability(beta)) / 2
        reach = largest_reach(self.tree.scales[0], len(self.cut), share)
        weights = self.tree.levels[0][self.cut.edges > self._starts].astype(np.float64)
        wide = np.maximum(weights + reach, 0.0)
        return self.tree.error(share) + float(np.sort(wide)[-2:].sum())

    def parts(self) -> Parts:
        tree = self.tree.parts()
        return Parts({**tree.facts, "size": self.size}, {**tree.series, "edges": self.cut.edges})

    @classmethod
    def from_parts(cls, parts: Parts, guarantee: Guarantee | None) -> Self:
        reader = PartsReader(parts)
        edges = reader.edges("edges", size=reader.integer("size", low=1, high=2**64))
        levels = {name: values for name, values in parts.series.items() if name != "edges"}
        tree = TreeRelease.from_parts(Parts({**parts.facts, "size": int(edges.size)}, levels), None)
        return cls(cut=Cut(edges=edges), tree=tree, guarantee=guarantee)

    def _between(self, terms: Iterable[Term], side: int) -> NoisySum:
        """The segments that bound the truth from above (side 1) or below (side -1).

        From above, terms that are added count with all segments that touch them, and terms that are
        taken away with the segments inside; from below it is the other way round.
        """
        chosen = (self._find_touched(term) if term.sign == side else self._inside(term) for term in terms)
        return self.tree.combined(term for term in chosen if term.low <= term.high)

    def _find_touched(self, term: Term) -> Term:
        """The segments that have a cell in common with the term."""
        first, last = self.cut.locate([term.low, term.high]).tolist()
        return Term(first, last, term.sign)

    def _inside(self, term: Term) -> Term:
        """The segments that have no cell outside of the term; there may be none."""
        (first, last, sign), ends = self._find_touched(term), self._cut_ends(term)
        return Term(first + (first in ends), last - (last in ends), sign)

    def _cut_ends(self, term: Term) -> set[int]:
        """The segments that lie on both sides of an end of the term."""
        first, last, _ = self._find_touched(term)
        cells = ((each, int(self._starts[each]), int(self.cut.edges[each])) for each in (first, last))
        return {segment for segment, start, end in cells if start < term.low or end > term.high}

    @cached_property
    def _starts(self) -> UInts:
        return self.cut.starts

    def _segments(self, lows: UInts, highs: UInts) -> tuple[UInts, UInts]:
        """The first and the last segment that touch each range."""
        first, last = np.searchsorted(self.cut.edges, lows), np.searchsorted(self.cut.edges, highs)
        return first.astype(np.uint64), last.astype(np.uint64)


def _cells(values: ArrayLike, name: str) -> UInts:
    array = integer_array(values, name)
    fits = not array.size or 0 <= int(array.min()) <= int(array.max()) < 2**64
    check(fits, name, "must lie in 0, ..., 2^64 - 1", given=values, fix="pass cells")
    return array.astype(np.uint64, copy=False)
