"""A released cut with a tree of noisy counts on top of it: any interval of a huge universe."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Self, final

import numpy as np

from partita.answer import Answer, least_sum
from partita.guarantee.guarantee import Guarantee
from partita.lazy.cached import cached_property
from partita.numbers import failure, freeze
from partita.public.axis.base.noisy_sum import NoisySum, checked, checked_ranges
from partita.public.axis.base.ranges import Parts, Ranges, Term
from partita.public.axis.base.reading import PartsReader
from partita.public.axis.curve.curve import Curve, Floats, UInts
from partita.public.axis.curve.isotonic import curve_through
from partita.public.axis.tree.cut import Cut
from partita.public.axis.tree.tree import TreeRelease
from partita.public.bounds.query_error import largest_reach


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class PaperIntervalsRelease(Ranges):
    """Segments of a universe and a tree of noisy counts whose leaves are the segments.

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
        return curve_through(self.cut.edges, self.tree.counts(*_prefixes(len(self.cut))))

    def answer(self, *terms: Term) -> Answer:
        """The signed sum, for each term, of all segments that touch it [DNRR15, 3.2].

        Its standard error adds to that of the noise what the two segments at the ends of a term may
        hold outside of it.
        """
        ranges = checked(terms, self.size)
        touched = self.tree.combined(self._touched(term) for term in ranges)
        outside = sum(max(0.0, self._leaf(end)) ** 2 for term in ranges for end in self._cut_ends(term))

        def bounds(beta: float) -> tuple[float, float]:
            low, high = self._between(ranges, -1).bounds(beta)[0], self._between(ranges, 1).bounds(beta)[1]
            return low, max(low, high)

        def error() -> float:
            return math.hypot(touched.error, math.sqrt(outside))

        return Answer(float(touched.value), error, bounds, least_sum(each.sign for each in ranges))

    def counts(self, lows: UInts, highs: UInts) -> Floats:
        """All segments that touch each range."""
        return self.tree.counts(*self._segments(*checked_ranges(lows, highs, self.size)))

    def errors(self, lows: UInts, highs: UInts) -> Floats:
        """The standard errors that `answer` gives, exactly."""
        low, high = checked_ranges(lows, highs, self.size)
        first, last = self._segments(low, high)
        cut_below, cut_above = self._starts[first] < low, self.cut.edges[last] > high
        weights = np.maximum(self.tree.levels[0].astype(np.float64), 0.0) ** 2
        outside = np.where(cut_below | (cut_above & (first == last)), weights[first], 0.0)
        outside += np.where(cut_above & (first != last), weights[last], 0.0)
        return np.sqrt(self.tree.errors(first, last) ** 2 + outside)

    def error(self, beta: float) -> float:
        """Half of beta for the noise of all runs of segments, half for the two heaviest that can be cut."""
        share = float(failure(beta)) / 2
        reach = largest_reach(self.tree.scales[0], len(self.cut), share)
        weights = self.tree.levels[0][self.cut.edges > self._starts].astype(np.float64)
        wide = np.maximum(weights + reach, 0.0)
        return self.tree.error(share) + float(np.sort(wide)[-2:].sum())

    def parts(self) -> Parts:
        """The edges, and the parts of the tree."""
        tree = self.tree.parts()
        return Parts({**tree.facts, "size": self.size}, {**tree.series, "edges": self.cut.edges})

    @classmethod
    def from_parts(cls, parts: Parts, guarantee: Guarantee | None) -> Self:
        """The cut and the tree that `parts` took apart."""
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
        chosen = (self._touched(term) if term.sign == side else self._inside(term) for term in terms)
        return self.tree.combined(term for term in chosen if term.low <= term.high)

    def _touched(self, term: Term) -> Term:
        """The segments that have a cell in common with the term."""
        first, last = self.cut.locate([term.low, term.high]).tolist()
        return Term(first, last, term.sign)

    def _inside(self, term: Term) -> Term:
        """The segments that have no cell outside of the term; there may be none."""
        (first, last, sign), ends = self._touched(term), self._cut_ends(term)
        return Term(first + (first in ends), last - (last in ends), sign)

    def _cut_ends(self, term: Term) -> set[int]:
        """The segments that lie on both sides of an end of the term."""
        first, last, _ = self._touched(term)
        return {segment for segment in (first, last) if not self._whole(segment, term)}

    def _whole(self, segment: int, term: Term) -> bool:
        return term.low <= int(self._starts[segment]) and int(self.cut.edges[segment]) <= term.high

    @cached_property
    def _starts(self) -> UInts:
        return self.cut.starts

    def _leaf(self, segment: int) -> float:
        return float(self.tree.levels[0][segment])

    def _segments(self, lows: UInts, highs: UInts) -> tuple[UInts, UInts]:
        """The first and the last segment that touch each range."""
        first, last = np.searchsorted(self.cut.edges, lows), np.searchsorted(self.cut.edges, highs)
        return first.astype(np.uint64), last.astype(np.uint64)


def _prefixes(count: int) -> tuple[UInts, UInts]:
    """All ranges that begin with the first of `count` segments."""
    last = np.arange(count, dtype=np.uint64)
    return np.zeros_like(last), last
