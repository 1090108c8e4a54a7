"""A released spending tree: every look at every node, and the ranges that it answers.

`TreeIntervals` bounds the counts of its nodes whatever the looks decided. `SpendingPlan` says which tree of
intervals it may grow: a function of public numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import ClassVar, Final, NamedTuple, Self, final

import numpy as np

from partita.answer import Answer
from partita.arrays import Bools, Floats, Ints, UInts
from partita.guarantee import Guarantee
from partita.lazy import cached_property
from partita.numbers import check_probability, freeze
from partita.public.axis.base import AxisRelease, Json, Parts, PartsReader, Term
from partita.public.axis.curve import Curve
from partita.public.axis.shrinkage import clustering
from partita.public.axis.tree_solver import (
    MOST_NODES,
    UNITS,
    Families,
    LastLooks,
    LevelEvidence,
    SpendingRule,
    TreeLooks,
    TreeShape,
    TreeSolution,
)
from partita.public.base import LARGEST_NUMBER, damaged
from partita.public.bounds import LinearRanges, SignedRange, laplace_variance, overlay_runs, widest_miss

_WIDENING: Final = 1.45
"""The calibrated factor of standard errors; how it was found is in docs/proofs/spending_tree.md."""

_FACTS: Final = ("size", "scale", "total", "total_scale", "branching", "growth", "worth", "depth_power")
_SERIES: Final = ("levels", "first", "last", "expanded", "steps", "nodes", "units", "noisy")


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class SpendingTreeRelease(AxisRelease):
    """A tree over the cells and all looks at its nodes, in the order in which they were taken.

    A look of k units has noise of `scale` / k, and no path has more than 2^20 units. `total` is the
    public number that the tree began with: a noisy count if `total_scale` tells its noise, else a
    guess. The rest are the public parameters of the tree. The last look at a leaf decided nothing;
    all other looks decided what was looked at next.
    """

    kind: ClassVar[str] = "spending-tree"
    papers: ClassVar[Mapping[str, tuple[str, ...]]] = {"intervals": ("DNRR15",), "spending-tree": ()}
    max_series: ClassVar[int] = 8

    size: int = field(init=False)
    shape: TreeShape
    looks: TreeLooks
    scale: Fraction
    total: int
    total_scale: Fraction | None
    branching: int
    growth: Fraction
    worth: Fraction
    depth_power: Fraction
    guarantee: Guarantee | None = None

    def __post_init__(self) -> None:
        freeze(self, size=int(self.shape.last[0]) + 1)
        self.looks.check(self.shape)

    @cached_property
    def curve(self) -> Curve:
        """Cumulative counts of the solved tree."""
        return Curve(self.shape.last[self.shape.leaves], self._solution.leaves)

    def answer(self, *terms: Term) -> Answer:
        ranges = self._check_terms(terms)
        return replace(self.linear.answer(ranges), bounds=partial(self._bounds, ranges))

    def counts(self, lows: UInts, highs: UInts) -> Floats:
        return self.linear.counts(*self._check_ranges(lows, highs))

    def errors(self, lows: UInts, highs: UInts) -> Floats:
        return self.linear.errors(*self._check_ranges(lows, highs))

    def error(self, beta: float) -> float:
        lower, upper = self._intervals(float(check_probability(beta))).prefixes()
        return widest_miss(self.curve.before, lower, upper, self.curve.widths > 1)

    @property
    def story(self) -> str:
        """What was chosen, and by which released numbers."""
        return (
            f"For a total of about {max(0, self.total):,} rows it grew a tree with up to {self.branching} "
            f"children a node; {self.shape.leaves.size:,} intervals are counted at its leaves."
        )

    def parts(self) -> Parts:
        shape, looks = self.shape, self.looks
        facts: dict[str, Json] = {
            "size": self.size,
            "scale": str(self.scale),
            "total": self.total,
            "total_scale": None if self.total_scale is None else str(self.total_scale),
            "branching": self.branching,
            "growth": str(self.growth),
            "worth": str(self.worth),
            "depth_power": str(self.depth_power),
        }
        nodes = {"levels": shape.levels, "first": shape.first, "last": shape.last}
        series = {"steps": looks.steps, "nodes": looks.nodes, "units": looks.units, "noisy": looks.noisy}
        return Parts(facts, {**nodes, "expanded": shape.expanded.astype(np.int64), **series})

    @classmethod
    def from_parts(cls, parts: Parts, guarantee: Guarantee | None) -> Self:
        reader = PartsReader(parts)
        reader.expect(facts=_FACTS, series=_SERIES)
        release = cls(
            shape=_read_shape(reader),
            looks=_read_looks(reader),
            scale=reader.scale("scale"),
            total=reader.integer("total", low=-LARGEST_NUMBER, high=LARGEST_NUMBER),
            total_scale=reader.optional("total_scale", reader.scale),
            branching=reader.integer("branching", low=2, high=2**8),
            growth=reader.rational("growth"),
            worth=reader.rational("worth"),
            depth_power=reader.rational("depth_power"),
            guarantee=guarantee,
        )
        if parts.facts["size"] != release.size:
            raise damaged("size", "must be that of the root")
        return release

    @cached_property
    def _unit(self) -> float:
        """The rate of a look of one unit."""
        return float(1 / self.scale)

    @cached_property
    def _solution(self) -> TreeSolution:
        noisy, variances = self.looks.means(self.shape.first.size, self._unit)
        noisy[0] = self.total
        variances[0] = np.inf if self.total_scale is None else laplace_variance(self.total_scale)
        return TreeSolution(self.shape, noisy, variances)

    @cached_property
    def linear(self) -> LinearRanges:
        """The estimates and the looks behind them."""
        last = self.looks.last(self.shape.first.size)[self.shape.leaves]
        values, rates = self.looks.values[last], self.looks.rates(self._unit)[last]
        noise = 1.0 / (self._unit * UNITS)  # the scale of a look that takes all of a path's budget
        return LinearRanges(
            curve=self.curve,
            pieces=self.curve,
            model=self._solution,
            certain=(LastLooks(ends=self.curve.ends, values=values, rates=rates),),
            # What a leaf may hold if it is cut: the root mean square of its count.
            held=np.sqrt(self.curve.counts**2 + 1.0 / self._solution.posterior.precision),
            clustering=clustering(self.curve, noise=math.sqrt(2.0) * noise),
            widening=_WIDENING,
            least_variance=1.0 + noise**2,
        )

    def _intervals(self, beta: float) -> TreeIntervals:
        return TreeIntervals.of(self.shape, self.looks, self._unit, beta)

    def _bounds(self, terms: list[Term], beta: float) -> tuple[float, float]:
        """What the intervals of nodes allow, and what the last looks at leaves do, with half of beta each."""
        nodes = self._intervals(beta / 2).signed_sum(terms)
        leaves = self.linear.bounds(terms, beta / 2)
        return max(nodes[0], leaves[0]), min(nodes[1], leaves[1])


def _read_shape(reader: PartsReader) -> TreeShape:
    expanded = reader.row("expanded", np.int64)
    if bool((expanded & ~1).any()):
        raise damaged("expanded", "must be 0 or 1")
    first, last = reader.row("first", np.uint64), reader.row("last", np.uint64)
    return TreeShape(reader.row("levels", np.int64), first, last, expanded.astype(bool))


def _read_looks(reader: PartsReader) -> TreeLooks:
    steps, nodes, units = (reader.row(name, np.int64) for name in ("steps", "nodes", "units"))
    return TreeLooks(steps, nodes, units, reader.noisy("noisy", count=nodes.size))


class NodeRange(NamedTuple):
    """A count at least `low` and at most `high`, for each of several nodes."""

    low: Floats
    high: Floats

    def at(self, nodes: Ints | slice) -> NodeRange:
        """Of some of the nodes."""
        return NodeRange(self.low[nodes], self.high[nodes])

    def within(self, other: NodeRange) -> NodeRange:
        """Both hold."""
        return NodeRange(np.maximum(self.low, other.low), np.minimum(self.high, other.high))

    def minus(self, other: NodeRange) -> NodeRange:
        """What remains if a part is taken away."""
        return NodeRange(self.low - other.high, self.high - other.low)

    def summed(self, family: Families) -> NodeRange:
        """The sums over the children of each parent."""
        return NodeRange(family.sum(self.low[family.nodes]), family.sum(self.high[family.nodes]))


def bound_nodes(
    families: Sequence[Families], count: int, looks: TreeLooks, unit: float, beta: float
) -> NodeRange:
    """The range of each of `count` nodes, all right at once with probability 1 - beta.

    Looks decide what is looked at next, so no combination of looks has a known law; but a single look
    has one given those before it. A range is what all looks at a node allow, and what `_tighten` adds.
    """
    reach = looks.reach(unit, beta)
    low, high = np.zeros(count), np.full(count, np.inf)
    np.maximum.at(low, looks.nodes, looks.values - reach)
    np.minimum.at(high, looks.nodes, looks.values + reach)
    _tighten(families, NodeRange(low, high))
    return NodeRange(low, np.maximum(low, high))


def _tighten(families: Sequence[Families], ends: NodeRange) -> None:
    """Once upward, by the sum of the children, and once downward, by the parent less the siblings."""
    for family in reversed(families):
        parents = family.parents
        ends.low[parents], ends.high[parents] = ends.at(parents).within(ends.summed(family))
    for family in families:
        own = ends.at(family.nodes)
        whole = NodeRange(*(family.spread(end[family.parents]) for end in ends))
        siblings = NodeRange(*(family.spread(end) for end in ends.summed(family)))
        others = NodeRange(siblings.low - own.low, siblings.high - own.high)
        ends.low[family.nodes], ends.high[family.nodes] = own.within(whole.minus(others))


@final
@dataclass(frozen=True, eq=False)
class TreeIntervals:
    """The count of every node lies between `low` and `high`, all at once, with probability 1 - beta.

    Each node's interval is what all its looks allow, tightened by what its relatives allow.
    """

    shape: TreeShape
    low: Floats
    high: Floats

    @staticmethod
    def of(shape: TreeShape, looks: TreeLooks, unit: float, beta: float) -> TreeIntervals:
        """The intervals of all looks. The total is no look: it may have decided that there is a tree."""
        return TreeIntervals(shape, *bound_nodes(shape.families, shape.first.size, looks, unit, beta))

    def signed_sum(self, terms: Iterable[SignedRange]) -> tuple[float, float]:
        """Bounds on a signed sum of ranges; cells that are added and taken away alike are left out."""
        low = high = 0.0
        for first, behind, factor in overlay_runs((low, high + 1, sign) for low, high, sign in terms):
            ends = [factor * end for end in self.between(first, behind - 1)]
            low, high = low + min(ends), high + max(ends)
        return low, high

    def between(self, first: int, last: int) -> tuple[float, float]:
        """Bounds on the count of the cells first, ..., last.

        A node inside of them counts whole and a leaf that they cut with anything up to its upper end.
        What is known about the cells outside of them bounds the rest from the other side.
        """
        start, end = np.uint64(first), np.uint64(last)
        inside = (self.shape.first >= start) & (self.shape.last <= end)
        outside = (self.shape.last < start) | (self.shape.first > end)
        part, rest = self._cut(inside, outside), self._cut(outside, inside)
        for family in reversed(self.shape.families):
            cut = ~(inside | outside)[family.parents]
            self._lift(family, cut, part, rest)
        return float(part.low[0]), float(part.high[0])

    def prefixes(self) -> tuple[Floats, Floats]:
        """Bounds on the count before each leaf, in order, and on the count of all cells at the end."""
        before = NodeRange(np.zeros_like(self.low), np.zeros_like(self.high))
        for family in self.shape.families:
            for end, own in zip(before, self._elder(family), strict=True):
                end[family.nodes] = family.spread(end[family.parents]) + own
        leaves = self.shape.leaves
        return np.append(before.low[leaves], self.low[0]), np.append(before.high[leaves], self.high[0])

    def _elder(self, family: Families) -> NodeRange:
        """Bounds on the count of the siblings before each child."""
        own = NodeRange(self.low[family.nodes], self.high[family.nodes])
        whole = NodeRange(self.low[family.parents], self.high[family.parents])
        sums = own.summed(family._replace(nodes=slice(None)))
        before = NodeRange(*(_running(family, ends) for ends in own))
        behind = NodeRange(
            *(family.spread(all_) - ends - each for all_, ends, each in zip(sums, before, own, strict=True))
        )
        rest = NodeRange(*(family.spread(end) for end in whole)).minus(own).minus(behind)
        return before.within(rest)

    def _cut(self, inside: Bools, outside: Bools) -> NodeRange:
        """The part of each node that lies inside, as far as its own interval tells."""
        return NodeRange(np.where(inside, self.low, 0.0), np.where(outside, 0.0, self.high))

    def _lift(self, family: Families, cut: Bools, part: NodeRange, rest: NodeRange) -> None:
        """For parents that are cut: what their children tell of each side, and each side of the other."""
        parents = family.parents[cut]
        whole = NodeRange(self.low[parents], self.high[parents])
        sides = [NodeRange(*(end[cut] for end in side.summed(family))) for side in (part, rest)]
        for side, own, other in ((part, *sides), (rest, *reversed(sides))):
            side.low[parents], side.high[parents] = own.within(whole.minus(other))


def _running(family: Families, values: Floats) -> Floats:
    """The sum of the values before each child in its family."""
    before = np.cumsum(values) - values
    return before - family.spread(before[family.starts])


class NodeBoxes(NamedTuple):
    """Boxes of cells first, ..., last, and which box above each is a part of."""

    first: UInts
    last: UInts
    parent: Ints


class Step(NamedTuple):
    """One level: each box above is cut into `children` boxes of `width` cells.

    `left` is the number of levels from this one on.
    """

    children: int
    width: int
    left: int

    def cut(self, first: UInts, size: int) -> NodeBoxes:
        """The children of the boxes that begin at `first`, but for those without a cell below `size`."""
        starts = first[:, None] + np.arange(self.children, dtype=np.uint64) * np.uint64(self.width)
        parent, child = np.nonzero(starts < np.uint64(size))
        begin = starts[parent, child]
        return NodeBoxes(begin, np.minimum(begin + np.uint64(self.width - 1), np.uint64(size - 1)), parent)


@final
@dataclass(frozen=True, kw_only=True)
class SpendingPlan(SpendingRule):
    """The rule over the cells 0, ..., size-1, where each node has up to `branching` children."""

    size: int
    branching: int

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The levels of a full tree: as many bits each as the branching has, the last one what remains."""
        each, bits = self.branching.bit_length() - 1, max(1, (self.size - 1).bit_length())
        levels = -(-bits // each)
        after = [max(0, bits - each * level) for level in range(levels + 1)]
        return tuple(
            Step(1 << (after[i] - after[i + 1]), 1 << after[i + 1], levels - i) for i in range(levels)
        )

    def expanded(self, step: Step, evidence: LevelEvidence) -> Bools:
        """The nodes that are cut further; if their children were too many, those with the largest counts."""
        return self.cut(evidence, most=MOST_NODES // min(self.branching, step.width))
