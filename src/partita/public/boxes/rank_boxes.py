"""A release in rank space: views of all axes, and a tree of boxes where columns depend on each other."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, Final, NamedTuple, Self, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answer
from partita.arrays import Bools, Floats, Ints, UInts
from partita.domain.axis import MOST_AXES, Axis
from partita.guarantee import Guarantee
from partita.lazy import cached_property
from partita.numbers import check_probability, freeze
from partita.public.axis.base import Json, Parts, PartsReader
from partita.public.axis.curve import Curve
from partita.public.axis.tree_solver import UNITS, TreeLooks
from partita.public.base import damaged
from partita.public.boxes.base import BoxRelease, BoxTerm, EngineBoxes, Region, check_terms
from partita.public.boxes.cover import RankBins, ThinSides, cancel_terms, prefix_variance, rake
from partita.public.boxes.density import (
    TOP_BITS,
    BoxDensity,
    BoxSolution,
    Measure,
    distribution,
    expected_counts,
    keep_noisy,
    pairs,
    rank_edges,
    ranks_of,
    to_measure,
)
from partita.public.boxes.engine import BoxEngine
from partita.public.boxes.grid import GridRelease
from partita.public.boxes.plain_view import PlainView
from partita.public.boxes.plan import BoxShape, Corners, RankSlots, halvings
from partita.public.boxes.spending_boxes import LARGEST_TOTAL, SpendingBoxesRelease, encode_tree, read_tree

_FACTS: Final = ("rows", "scores_scale", "scale", "bits", "views")
_SERIES: Final = ("scores", "edges", "schedule", "levels", "expanded", "steps", "nodes", "units", "noisy")

MOST_ROWS: Final = 2**61  # no number of rows is taken to be larger, so that scores fit in 64 bits
_MOST_TERMS: Final = 16  # with more terms the views are not used: they take time, and their bounds add up
_MOST_BITS: Final = 12  # the most halvings of an axis in a file
_WIDENING: Final = 0.9  # calibrated factor of standard errors: docs/proofs/rank_boxes.md
_FAVOUR: Final = (
    2.0  # views count for more than their predicted variance by this factor: less trusts the tree
)
_VIEWS_SHARE: Final = 0.25  # calibrated share of a side's variance in a box of it: the tree saw the box, too
_THIN: Final = 0.25  # of the ranks of a slot: slots next to a value that many rows share hold nearly none
# A box is cut into at most 2^3: with more children each would have little budget to separate them.
_MOST_AT_ONCE: Final = 3
# The factor by which an axis counts for less with each halving, and how near to the best one others must
# come. Chosen by measured errors on tables of three to six columns; any schedule is as private.
_FADING, _WORTH_OF_BEST = 1.5, 0.25
# The axis of a plain view counts for more by this power of how many labels matter there: labels have no
# order, so a leaf of several tells little about each. On made-up trips, where 87 destinations matter, and two
# triples of columns of Adult labels in ranges then erred .36 to 1.05 times as much as without views, with .6
# .41 to .96 times, with .9 .42 to .96 times but boxes up to 1.13 times (10 to 24 releases, epsilon 1, .3).
_LABELS_POWER: Final = 0.75


AxisView: TypeAlias = PlainView | SpendingBoxesRelease
"""What is released about one axis alone."""


class Estimate(NamedTuple):
    """A number and its variance."""

    value: float
    variance: float


@final
@dataclass(frozen=True, eq=False)
class RankViews:
    """A released tree for each axis alone, or a plain view; everything else is a function of these."""

    trees: tuple[AxisView, ...]

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The axes, in order."""
        return tuple(tree.axes[0] for tree in self.trees)

    @cached_property
    def distributions(self) -> tuple[Curve, ...]:
        """How rows are distributed along each axis."""
        return tuple(distribution(tree.along(0, tree.everything)) for tree in self.trees)

    @cached_property
    def total(self) -> Estimate:
        """The number of rows: a mean over the views by inverse variance."""
        roots = [tree.solution.estimates for tree in self.trees]
        variance = 1.0 / sum(1.0 / float(each.variances[0]) for each in roots)
        return Estimate(variance * sum(float(each.values[0] / each.variances[0]) for each in roots), variance)

    @property
    def rows(self) -> int:
        """The number of rows as a whole number, from 0 to 2^61."""
        return min(MOST_ROWS, round(self.total.value))

    def edges(self, bits: int) -> tuple[UInts, ...]:
        """The edges of 2^bits slots along each axis that hold about equally many rows."""
        return tuple(rank_edges(each, bits) for each in self.distributions)

    @cached_property
    def top_edges(self) -> tuple[UInts, ...]:
        """The edges of the top ranks."""
        return self.edges(TOP_BITS)

    @cached_property
    def top_shares(self) -> tuple[Floats, ...]:
        """The share of the rows in each of the top ranks."""
        both = zip(self.distributions, self.top_edges, strict=True)
        return tuple(np.maximum(np.diff(ranks_of(shares, edges)), 0.0) for shares, edges in both)

    @property
    def hurry(self) -> Floats:
        """By what factor each axis counts for more in the schedule: a power of how many labels matter.

        That many is e to the entropy of a plain view: equal labels all matter, and rare ones hardly do.
        """
        factors = np.ones(len(self.trees))
        for axis, view in enumerate(self.trees):
            if isinstance(view, PlainView):
                shares = view.shares.counts / view.shares.total
                entropy = -float(shares @ np.log(np.maximum(shares, sys.float_info.min)))
                factors[axis] = math.exp(_LABELS_POWER * entropy)
        return factors

    @cached_property
    def variances(self) -> Floats:
        """The mean variance of prefixes along each axis, by its own view."""
        both = zip(self.trees, self.distributions, strict=True)
        return np.array([prefix_variance(tree.engine.density, 0, shares) for tree, shares in both])

    @cached_property
    def specials(self) -> tuple[tuple[UInts, Floats], ...]:
        """Where the special cells of each axis lie, and the variances of the leaves that hold them."""
        found = []
        for tree, axis in zip(self.trees, self.axes, strict=True):
            nodes, behind = tree.engine.nodes, axis.before + axis.size
            places = np.array([*range(axis.before), *range(behind, axis.width)], np.uint64)
            leaves = np.flatnonzero(nodes.leaves)
            ordered = leaves[np.argsort(nodes.lows[leaves, 0])]
            holding = ordered[np.searchsorted(nodes.lows[ordered, 0], places, side="right") - 1]
            found.append((places, tree.solution.variances[holding]))
        return tuple(found)

    def bounds(self, box: BoxTerm, beta: float) -> tuple[float, float]:
        """Guaranteed bounds on a box by its sides, along the axes on which it is not everything.

        A box lies in the range of each of its sides, so it has no more rows than the least of them; and
        of all rows it lacks no more than those outside of some side.
        """
        ends = list(zip(self.trees, self.axes, box.low, box.high, strict=True))
        sides = [each for each in ends if each[3] - each[2] + 1 < each[1].width] or ends[:1]
        share = beta / (len(sides) + 1)
        bounds = (tree.answer(BoxTerm((low,), (high,))).bounds(share) for tree, _, low, high in sides)
        lows, highs = zip(*bounds, strict=True)
        return sum(lows) - (len(sides) - 1) * self.most(share), min(highs)

    def most(self, beta: float) -> float:
        """A guaranteed upper bound on the number of rows."""
        share = beta / len(self.trees)
        return min(tree.answer(tree.everything).bounds(share)[1] for tree in self.trees)

    def expected(self, one: int, other: int) -> Ints:
        """What the cells of the top ranks of two axes hold if these are independent."""
        return expected_counts(self.rows, self.top_shares[one], self.top_shares[other])


@final
@dataclass(frozen=True, eq=False)
class RankSides:
    """The sides of some boxes, a row for each, and what the views of their axes say about these.

    The errors of the views add to those of the tree. The proof note docs/proofs/rank_boxes.md says how the
    model of errors was found.
    """

    views: RankViews
    lows: Corners
    highs: Corners

    def variances(self, values: Floats, tree: Floats, parts: int = 1) -> Floats:
        """The variance of each `parts` boxes, of these values and, by the tree alone, these variances.

        A box with one side is known from the tree and from the view, and raking keeps to the better of them.
        For other boxes, the error of the rows in their sides adds to that of the tree.
        """
        both = self._beside(values), self._doubt(values)
        beside, doubt = (each.reshape(-1, parts).sum(axis=1) for each in both)
        own, bounded = tree + beside, np.asarray(self._bounded.reshape(tree.size, parts, -1).any(axis=1))
        for axis, view in enumerate(self.views.trees):
            alone = bounded[:, axis] & (bounded.sum(axis=1) == 1)
            low, high = (end[np.repeat(alone, parts)] for end in self._side(axis))
            own[alone] = np.minimum(tree[alone], view.errors(low, high, parts=parts) ** 2)
        return np.asarray(own + doubt)

    def variance(self, times: Ints, values: Floats, tree: float) -> float:
        """The variance of a sum of the boxes, each so many times, by the tree alone `tree`.

        If only one axis is bounded, its view answers the same question. Otherwise what the views add to each
        box adds up.
        """
        sides, doubt = np.flatnonzero(self._bounded.any(axis=0)), float(times**2 @ self._doubt(values))
        if sides.size != 1:
            return tree + float(times**2 @ self._beside(values)) + doubt
        axis, terms = int(sides[0]), []
        for low, high, often in zip(
            self.lows[:, axis].tolist(), self.highs[:, axis].tolist(), times.tolist(), strict=True
        ):
            terms += [BoxTerm((low,), (high,), 1 if often > 0 else -1)] * abs(often)
        return min(tree, self.views.trees[axis].answer(*terms).error ** 2) + doubt

    def carry(self, values: Floats) -> Floats:
        """The variance of each box by its sides, if the box has a fixed share of the rows of each of them."""
        return np.asarray((self._held(values) ** 2 * self._own).sum(axis=1)) + self._doubt(values)

    def _beside(self, values: Floats) -> Floats:
        """What the views of all sides of each box add."""
        return np.asarray((_VIEWS_SHARE * self._held(values) * self._own).sum(axis=1))

    def _doubt(self, values: Floats) -> Floats:
        """What special cells add: all the noise of the looks at them.

        Where hardly anything was counted, solved values are near zero, and so are their errors. That is right
        for most cells, but questions name special cells.
        """
        return np.asarray((self._held(values) * self._special).sum(axis=1))

    @cached_property
    def _bounded(self) -> Bools:
        """Which axes each box bounds."""
        last = np.array([axis.width - 1 for axis in self.views.axes], np.uint64)
        return np.asarray((self.lows > 0) | (self.highs < last))

    @cached_property
    def _counts(self) -> Floats:
        """About how many rows each side has, at least one."""
        counts = [tree.counts(*self._side(axis)) for axis, tree in enumerate(self.views.trees)]
        return np.maximum(1.0, np.stack(counts, axis=1))

    @cached_property
    def _own(self) -> Floats:
        """The variance of each side by its view; zero if an axis is not bounded."""
        errors = [tree.errors(*self._side(axis)) for axis, tree in enumerate(self.views.trees)]
        return np.where(self._bounded, np.stack(errors, axis=1) ** 2, 0.0)

    @cached_property
    def _special(self) -> Floats:
        """The variance of the special cells in each side that is not everything."""
        found = np.zeros(self.lows.shape)
        for axis, (places, variances) in enumerate(self.views.specials):
            low, high = self._side(axis)
            found[:, axis] = ((low <= places) & (places <= high)) @ variances
        return np.where(self._bounded, found, 0.0)

    def _held(self, values: Floats) -> Floats:
        """The share of each side that is in the box: by its value or, if that is more, by independence."""
        rows = max(1.0, self.views.total.value)
        shares = np.where(self._bounded, np.minimum(1.0, self._counts / rows), 1.0)
        others = shares.prod(axis=1)[:, None] / shares
        return np.asarray(np.maximum(others, np.clip(values[:, None] / self._counts, 0.0, 1.0)))

    def _side(self, axis: int) -> tuple[Corners, Corners]:
        return self.lows[:, [axis]], self.highs[:, [axis]]


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class RankBoxesRelease(EngineBoxes):
    """Views of all axes, scores of all pairs of them, and a tree over slots of about equal rank.

    `rows` is the number of rows by the views, which the tree began with. A look of the tree for k units
    has noise of `scale` / k, and no path has more than 2^20 units. The edges of slots and the schedule
    follow from the views and the scores, but for how floats are rounded, so they are released too.
    """

    kind: ClassVar[str] = "rank-boxes"
    papers: ClassVar[Mapping[str, tuple[str, ...]]] = {"rank-boxes": (), "rectangles": ("DNRR15",)}
    max_series: ClassVar[int] = 12
    max_series_per_level: ClassVar[int] = 8

    axes: tuple[Axis, ...] = field(init=False)
    views: RankViews
    rows: int
    scores: NDArray[Any]
    scores_scale: Fraction
    shape: BoxShape
    looks: TreeLooks
    scale: Fraction
    guarantee: Guarantee | None = None

    def __post_init__(self) -> None:
        freeze(self, axes=self.views.axes)
        if self.scores.size != len(pairs(len(self.axes))):
            raise damaged("scores", "must be one for each pair of axes")
        self.looks.check(self.shape)

    @cached_property
    def solution(self) -> BoxSolution:
        """The estimate of every node of the tree, before raking."""
        noisy, variances = self.looks.means(self.shape.expanded.size, float(1 / self.scale))
        noisy[0], variances[0] = self.rows, self.views.total.variance
        return BoxSolution(self.shape.families, self.shape.expanded, noisy, variances, keep_noisy)

    @cached_property
    def engine(self) -> BoxEngine:
        """The engine of the raked tree; inside of its leaves columns are independent."""
        return BoxEngine(
            nodes=self.shape.nodes,
            measures=self._measures,
            values=self._raked,
            variances=self.solution.estimates.variances,
            looks=self.looks,
            unit=float(1 / self.scale),
            widening=_WIDENING,
        )

    def answer(self, *terms: BoxTerm) -> Answer:
        """The signed sum of the terms as one linear question."""
        checked = check_terms(terms, self.axes)
        answer = self.engine.answer(checked)
        bounds = partial(self._bounds, checked)
        return replace(answer, spread=lambda: self._spread(checked, answer.error**2), bounds=bounds)

    def errors(self, lows: Corners, highs: Corners, *, parts: int = 1) -> Floats:
        """The standard errors that `answer` gives."""
        tree, sides = super().errors(lows, highs, parts=parts) ** 2, RankSides(self.views, lows, highs)
        return np.sqrt(sides.variances(self.counts(lows, highs), tree, parts))

    def region(self, region: Region, box: BoxTerm) -> Answer:
        """How many lie in a public region and in the box; the views bound these by all of the box."""
        answer = super().region(region, box)

        def bounds(beta: float) -> tuple[float, float]:
            low, high = answer.bounds(beta / 2)
            return low, min(high, self.views.bounds(box, beta / 2)[1])

        def error() -> float:
            """With the doubt about where the views put that many rows of a region in leaves."""
            part = min(1.0, answer.value / max(1.0, self.engine.density.total))
            doubt = math.sqrt(2.0 * part * (1.0 - part) * float(self.views.variances.mean()))
            return math.hypot(answer.error, doubt)

        return replace(answer, spread=error, bounds=bounds)

    def error(self, beta: float) -> float:
        """With probability 1 - beta no box at all misses the truth by more."""
        half = float(check_probability(beta)) / 2
        return min(self.engine.error(half), max(self.engine.density.total, self.views.most(half)))

    @property
    def spent(self) -> Fraction:
        """What a row costs: on a path of every view and of the tree, and in each score."""
        views = sum((tree.spent for tree in self.views.trees), Fraction(0))
        return views + self.scores.size / self.scores_scale + UNITS / self.scale

    @property
    def story(self) -> str:
        """What was chosen, and by which released numbers."""
        levels, leaves = self.shape.levels.size - 1, int((~self.shape.expanded).sum())
        return (
            f"It published each of {len(self.axes)} columns alone, about {self.rows:,} rows, and grew a tree "
            f"of {levels} levels over their ranks, columns that depend on others first; {leaves:,} boxes "
            "are counted at its leaves."
        )

    def parts(self) -> Parts:
        """The views, the scores, the edges of slots, the tree with all its looks, and the public facts."""
        views = [tree.parts() for tree in self.views.trees]
        facts: dict[str, Json] = {
            "rows": self.rows,
            "scores_scale": str(self.scores_scale),
            "scale": str(self.scale),
            "bits": [halvings(slots.line) for slots in self.shape.plan.slots],
            "views": [dict(view.facts) for view in views],
        }
        edges = [slots.edges for slots in self.shape.plan.slots if isinstance(slots, RankSlots)]
        series = {"scores": self.scores, "edges": np.concatenate(edges)}
        for axis, view in enumerate(views):
            series |= {f"{_prefix(axis)}{name}": values for name, values in view.series.items()}
        return Parts(facts, series | encode_tree(self.shape, self.looks))

    @classmethod
    def from_parts(cls, parts: Parts, guarantee: Guarantee | None) -> Self:
        """The release that `parts` took apart; anything else is an `InvalidRelease`."""
        views = _read_views(parts)
        prefixes = tuple(map(_prefix, range(len(views))))
        own = {name: values for name, values in parts.series.items() if not name.startswith(prefixes)}
        reader = PartsReader(Parts(parts.facts, own))
        reader.expect(facts=_FACTS, series=_SERIES)
        shape, looks = read_tree(reader, _read_slots(reader, [tree.axes[0] for tree in views]))
        return cls(
            views=RankViews(views),
            rows=reader.integer("rows", low=0, high=MOST_ROWS),
            scores=reader.noisy("scores"),
            scores_scale=reader.scale("scores_scale"),
            shape=shape,
            looks=looks,
            scale=reader.scale("scale"),
            guarantee=guarantee,
        )

    @property
    def _measures(self) -> list[Measure]:
        return [to_measure(shares) for shares in self.views.distributions]

    @cached_property
    def _raked(self) -> Floats:
        """The solved counts of all nodes, leaves drawn towards the views."""
        leaves = self.shape.nodes.leaves
        lows, highs = self.shape.nodes.corners(leaves)
        bins, thin = [], []
        sides = zip(self.views.distributions, self.axes, self.shape.plan.slots, lows.T, highs.T, strict=True)
        for shares, axis, slots, low, high in sides:
            starts, ends = ranks_of(shares, low), ranks_of(shares, high + np.uint64(1))
            bins.append(RankBins.of(starts, ends))
            held = np.maximum(ends - starts, 0.0)
            special = (high < np.uint64(axis.before)) | (low >= np.uint64(axis.before + axis.size))
            apart = special | (held < _THIN / slots.line.size)
            thin.append(ThinSides.of(low, high, held, apart & (not axis.labels)))
        solved = BoxDensity.of(self.shape.nodes, self._measures, *self.solution.estimates)
        tree = np.array([prefix_variance(solved, *each) for each in enumerate(self.views.distributions)])
        # For each axis, how much its view says about the marginal, against the tree.
        weights = np.asarray(_FAVOUR * tree / (_FAVOUR * tree + self.views.variances))
        values = self.solution.estimates.values.copy()
        values[leaves] = rake(values[leaves], bins, weights, thin)
        return values

    def _spread(self, terms: Sequence[BoxTerm], tree: float) -> float:
        """The standard error of a signed sum whose variance by the tree alone is `tree`."""
        boxes = cancel_terms(terms)
        if not boxes:
            return math.sqrt(tree)
        lows, highs = (np.array([box[end] for box in boxes], np.uint64) for end in (0, 1))
        if len(terms) == 1:
            return float(self.errors(lows, highs)[0])
        times, sides = np.array([sign for _, _, sign in boxes]), RankSides(self.views, lows, highs)
        return math.sqrt(sides.variance(times, self.engine.counts(lows, highs), tree))

    def _bounds(self, terms: Sequence[BoxTerm], beta: float) -> tuple[float, float]:
        """What the tree allows, and what the views do, with half of beta each."""
        low, high = self.engine.bounds(terms, beta / 2)
        if len(terms) > _MOST_TERMS:
            return low, high
        least = most = 0.0
        for term in terms:
            first, last = self.views.bounds(term, beta / 2 / len(terms))
            ends = (max(first, 0.0), last) if term.sign > 0 else (-last, -max(first, 0.0))
            least, most = least + ends[0], most + ends[1]
        return max(low, least), min(high, most)


def _prefix(axis: int) -> str:
    """How the names of the series of a view begin."""
    return f"axis{axis}_"


def _read_views(parts: Parts) -> tuple[AxisView, ...]:
    listed = parts.facts.get("views")
    views: list[AxisView] = []
    if not isinstance(listed, list) or not 2 <= len(listed) <= MOST_AXES:
        raise damaged("views", f"must be a list of 2 to {MOST_AXES} views")
    for axis, facts in enumerate(listed):
        if not isinstance(facts, dict):
            raise damaged("views", "must be told by their facts")
        prefix, all_series = _prefix(axis), parts.series.items()
        series = {name.removeprefix(prefix): row for name, row in all_series if name.startswith(prefix)}
        views.append(_read_view(Parts(facts, series)))
    return tuple(views)


def _read_view(parts: Parts) -> AxisView:
    """A plain view, which has no more than one series, or a tree."""
    if set(parts.series) == {"noisy"}:
        return PlainView.from_parts(parts, None)
    view = SpendingBoxesRelease.from_parts(parts, None)
    if len(view.axes) != 1 or view.total is not None:
        raise damaged("views", "must have one axis each, and have looked at all of it")
    return view


def _read_slots(reader: PartsReader, axes: Sequence[Axis]) -> tuple[RankSlots, ...]:
    """The slots along each axis, from all edges in a row and the halvings of each axis."""
    bits = reader.parts.facts.get("bits")
    if not isinstance(bits, list) or len(bits) != len(axes):
        raise damaged("bits", "must be a list of a number for each axis")
    counts = [(1 << each) + 1 for each in bits if type(each) is int and 0 <= each <= _MOST_BITS]
    if len(counts) != len(axes):
        raise damaged("bits", f"must be whole numbers from 0 to {_MOST_BITS}")
    edges = reader.row("edges", np.uint64)
    if edges.size != sum(counts):
        raise damaged("edges", "must be those of all slots")
    rows = np.split(edges, np.cumsum(counts)[:-1])
    for row, axis in zip(rows, axes, strict=True):
        if row[0] != 0 or int(row[-1]) != axis.width or bool((row[1:] < row[:-1]).any()):
            raise damaged("edges", "must go from 0 to the width of their axis and never decrease")
    return tuple(RankSlots(row) for row in rows)


_CHOICES: Final = {each.kind: each for each in (GridRelease, RankBoxesRelease, SpendingBoxesRelease)}


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class RectanglesRelease(BoxRelease):
    """Boxes of a kind that a noisy number of rows chose, and that number, with noise of `scale`.

    The chosen boxes answer everything. Readers can repeat the choice from the total: nothing else that is not
    public went into it.
    """

    kind: ClassVar[str] = "rectangles"
    papers: ClassVar[Mapping[str, tuple[str, ...]]] = {"rectangles": ("DNRR15",)}
    max_series: ClassVar[int] = 12
    max_series_per_level: ClassVar[int] = 8

    axes: tuple[Axis, ...] = field(init=False)
    chosen: BoxRelease
    total: int
    scale: Fraction
    guarantee: Guarantee | None = None

    def __post_init__(self) -> None:
        freeze(self, axes=self.chosen.axes)

    def answer(self, *terms: BoxTerm) -> Answer:
        """The signed sum of the terms as one linear question."""
        return self.chosen.answer(*terms)

    def counts(self, lows: Corners, highs: Corners) -> Floats:
        """The value of each box."""
        return self.chosen.counts(lows, highs)

    def errors(self, lows: Corners, highs: Corners, *, parts: int = 1) -> Floats:
        """The standard error of each box, or of the sums of some."""
        return self.chosen.errors(lows, highs, parts=parts)

    def error(self, beta: float) -> float:
        """With probability 1 - beta no box at all misses the truth by more."""
        return self.chosen.error(beta)

    def along(self, axis: int, box: BoxTerm) -> Curve:
        """Cumulative counts along one axis, of what lies in the box on the others."""
        return self.chosen.along(axis, box)

    def region(self, region: Region, box: BoxTerm) -> Answer:
        """How many lie in a public region and in the box."""
        return self.chosen.region(region, box)

    def points(self, rows: int) -> Corners:
        """Positions of made-up rows."""
        return self.chosen.points(rows)

    @property
    def spent(self) -> Fraction:
        """What a row costs in the total and in the boxes."""
        return 1 / self.scale + self.chosen.spent

    @property
    def story(self) -> str:
        """By which total it was chosen, and what was chosen on the way after that."""
        chose = f"A first count of about {max(0, self.total):,} rows chose {self.chosen.kind}."
        return f"{chose} {self.chosen.story}".rstrip()

    def parts(self) -> Parts:
        """The parts of the chosen boxes, with their kind and the total."""
        chosen = self.chosen.parts()
        facts: dict[str, Json] = {"kind": self.chosen.kind, "total": self.total, "scale": str(self.scale)}
        return Parts({**facts, "chosen": dict(chosen.facts)}, chosen.series)

    @classmethod
    def from_parts(cls, parts: Parts, guarantee: Guarantee | None) -> Self:
        """The release that `parts` took apart; anything else is an `InvalidRelease`."""
        reader = PartsReader(parts)
        reader.expect(facts=("kind", "total", "scale", "chosen"), series=parts.series)
        kind, facts = parts.facts["kind"], parts.facts["chosen"]
        if not isinstance(kind, str) or kind not in _CHOICES:
            raise damaged("kind", f"must be one of {', '.join(_CHOICES)}")
        if not isinstance(facts, dict):
            raise damaged("chosen", "must be told by its facts")
        return cls(
            chosen=_CHOICES[kind].from_parts(Parts(facts, parts.series), None),
            total=reader.integer("total", low=-LARGEST_TOTAL, high=LARGEST_TOTAL),
            scale=reader.scale("scale"),
            guarantee=guarantee,
        )


def rank_schedule(importance: Floats, bits: Sequence[int]) -> Ints:
    """A row for each level, a column for each axis: 1 if the axis is halved there, otherwise 0.

    An axis counts for less with each of its halvings. A level takes up to three axes that can still
    be halved: the one that counts most, and others that count at least a quarter of that. If no axis
    can be halved at all there is one level that halves none.

    >>> rank_schedule(np.array([1.0, 0.1]), [2, 1]).tolist()
    [[1, 0], [1, 0], [0, 1]]
    """
    left = np.array(bits)
    levels = []
    while bool(left.any()):
        score = np.where(left > 0, importance * _FADING ** (left - np.array(bits)), 0.0)
        order = np.argsort(-score, kind="stable")[:_MOST_AT_ONCE]
        worth = order[score[order] >= _WORTH_OF_BEST * score.max()]
        levels.append(np.isin(np.arange(score.size), worth).astype(np.int64))
        left = left - levels[-1]
    return np.array(levels or [np.zeros_like(left)])
