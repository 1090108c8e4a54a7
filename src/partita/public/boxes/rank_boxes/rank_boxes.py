"""A release in rank space: views of all axes, and a tree of boxes where columns depend on each other."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, Final, Self, final

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answer
from partita.domain.axis import MOST_AXES, Axis
from partita.guarantee.guarantee import Guarantee
from partita.lazy.cached import cached_property
from partita.numbers import failure, freeze
from partita.public.axis.base.ranges import Json, Parts
from partita.public.axis.base.reading import PartsReader
from partita.public.axis.curve.curve import Floats, UInts
from partita.public.axis.tree_solver.spending_rule import UNITS
from partita.public.axis.tree_solver.tree_looks import TreeLooks
from partita.public.base.released import damaged
from partita.public.boxes.base.axes import checked_terms
from partita.public.boxes.base.boxes import BoxTerm, Region
from partita.public.boxes.base.engine_boxes import EngineBoxes
from partita.public.boxes.cover.rake import RankBins, prefix_variance, raked
from partita.public.boxes.cover.terms import without_equals
from partita.public.boxes.density.density import Density
from partita.public.boxes.density.dependence import pairs
from partita.public.boxes.density.measure import Curved
from partita.public.boxes.density.ranks import ranks_of
from partita.public.boxes.density.solution import BoxSolution, as_seen
from partita.public.boxes.engine.engine import BoxEngine
from partita.public.boxes.plan.nodes import Corners
from partita.public.boxes.plan.shape import BoxShape
from partita.public.boxes.plan.slots import RankSlots, halvings
from partita.public.boxes.rank_boxes.rank_sides import RankSides
from partita.public.boxes.rank_boxes.rank_views import MOST_ROWS, RankViews
from partita.public.boxes.spending_boxes.spending_boxes import SpendingBoxesRelease, read_tree, written_tree

_FACTS: Final = ("rows", "scores_scale", "scale", "bits", "views")
_SERIES: Final = ("scores", "edges", "schedule", "levels", "expanded", "steps", "nodes", "units", "noisy")
_WIDENING: Final = 0.9
"""The calibrated factor of standard errors; how it was found is in docs/proofs/rank_boxes.md."""

_FAVOUR: Final = 2.0
"""By this factor the views count for more than their predicted variance says."""

_MOST_TERMS: Final = 16
_MOST_BITS: Final = 12


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
        return BoxSolution(self.shape.families, self.shape.expanded, noisy, variances, as_seen)

    @cached_property
    def engine(self) -> BoxEngine:
        """What answers, from the raked tree; inside of its leaves columns are independent."""
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
        asked = checked_terms(terms, self.axes)
        answer = self.engine.answer(asked)
        return replace(
            answer,
            spread=lambda: self._spread(asked, answer.error**2),
            bounds=partial(self._bounds, asked),
        )

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

        return replace(
            answer, spread=lambda: math.hypot(answer.error, self._doubt(answer.value)), bounds=bounds
        )

    def error(self, beta: float) -> float:
        """With probability 1 - beta no box at all misses the truth by more."""
        half = float(failure(beta)) / 2
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
        series = {"scores": self.scores, "edges": np.concatenate(self._edges)}
        for axis, view in enumerate(views):
            series |= {f"{_prefix(axis)}{name}": values for name, values in view.series.items()}
        return Parts(facts, series | written_tree(self.shape, self.looks))

    @classmethod
    def from_parts(cls, parts: Parts, guarantee: Guarantee | None) -> Self:
        """The release that `parts` took apart; anything else is an `InvalidRelease`."""
        views = _read_views(parts)
        own = {name: values for name, values in parts.series.items() if not _of_a_view(name, len(views))}
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
    def _measures(self) -> list[Curved]:
        return [Curved(shares) for shares in self.views.distributions]

    @cached_property
    def _raked(self) -> Floats:
        """The solved counts of all nodes, leaves drawn towards the views."""
        leaves = self.shape.nodes.leaves
        lows, highs = self.shape.nodes.corners(leaves)
        bins = [
            RankBins.of(ranks_of(shares, low), ranks_of(shares, high + np.uint64(1)))
            for shares, low, high in zip(self.views.distributions, lows.T, highs.T, strict=True)
        ]
        values = self.solution.estimates.values.copy()
        values[leaves] = raked(values[leaves], bins, self._weights)
        return values

    @property
    def _weights(self) -> Floats:
        """For each axis how much its view says about the marginal, against the tree."""
        solved = Density.of(self.shape.nodes, self._measures, *self.solution.estimates)
        tree = np.array([prefix_variance(solved, *each) for each in enumerate(self.views.distributions)])
        return np.asarray(_FAVOUR * tree / (_FAVOUR * tree + self.views.variances))

    def _spread(self, terms: Sequence[BoxTerm], tree: float) -> float:
        """The standard error of a signed sum whose variance by the tree alone is `tree`."""
        boxes = without_equals(terms)
        if not boxes:
            return math.sqrt(tree)
        lows, highs = (np.array([box[end] for box in boxes], np.uint64) for end in (0, 1))
        if len(terms) == 1:
            return float(self.errors(lows, highs)[0])
        times, sides = np.array([sign for _, _, sign in boxes]), RankSides(self.views, lows, highs)
        return math.sqrt(sides.variance(times, self.engine.counts(lows, highs), tree))

    def _doubt(self, value: float) -> float:
        """About how far the views may be off where they put that many rows of a region in leaves."""
        part = min(1.0, value / max(1.0, self.engine.density.total))
        return math.sqrt(2.0 * part * (1.0 - part) * float(self.views.variances.mean()))

    def _bounds(self, terms: Sequence[BoxTerm], beta: float) -> tuple[float, float]:
        """What the tree allows, and what the views do, with half of beta each."""
        low, high = self.engine.bounds(terms, beta / 2)
        if len(terms) > _MOST_TERMS:
            return low, high
        sides = [self._signed(term, beta / 2 / len(terms)) for term in terms]
        return max(low, sum(side[0] for side in sides)), min(high, sum(side[1] for side in sides))

    def _signed(self, term: BoxTerm, beta: float) -> tuple[float, float]:
        low, high = self.views.bounds(term, beta)
        return (max(low, 0.0), high) if term.sign > 0 else (-high, -max(low, 0.0))

    @cached_property
    def _edges(self) -> list[UInts]:
        """The edges of the slots along each axis."""
        return [slots.edges for slots in self.shape.plan.slots if isinstance(slots, RankSlots)]


def _prefix(axis: int) -> str:
    """How the names of the series of a view begin."""
    return f"axis{axis}_"


def _of_a_view(name: str, views: int) -> bool:
    return any(name.startswith(_prefix(axis)) for axis in range(views))


def _read_views(parts: Parts) -> tuple[SpendingBoxesRelease, ...]:
    listed = parts.facts.get("views")
    if not isinstance(listed, list) or not 2 <= len(listed) <= MOST_AXES:
        raise damaged("views", f"must be a list of 2 to {MOST_AXES} views")
    return tuple(_read_view(parts, axis, facts) for axis, facts in enumerate(listed))


def _read_view(parts: Parts, axis: int, facts: Json) -> SpendingBoxesRelease:
    if not isinstance(facts, dict):
        raise damaged("views", "must be told by their facts")
    prefix = _prefix(axis)
    series = {name.removeprefix(prefix): row for name, row in parts.series.items() if name.startswith(prefix)}
    view = SpendingBoxesRelease.from_parts(Parts(facts, series), None)
    if len(view.axes) != 1 or view.total is not None:
        raise damaged("views", "must have one axis each, and have looked at all of it")
    return view


def _read_slots(reader: PartsReader, axes: Sequence[Axis]) -> tuple[RankSlots, ...]:
    """The slots along each axis, from all edges in a row and the halvings of each axis."""
    counts = [(1 << bits) + 1 for bits in _read_bits(reader, len(axes))]
    edges = reader.row("edges", np.uint64)
    if edges.size != sum(counts):
        raise damaged("edges", "must be those of all slots")
    rows = np.split(edges, np.cumsum(counts)[:-1])
    if not all(_covers(row, axis) for row, axis in zip(rows, axes, strict=True)):
        raise damaged("edges", "must go from 0 to the width of their axis and never decrease")
    return tuple(RankSlots(row) for row in rows)


def _read_bits(reader: PartsReader, axes: int) -> list[int]:
    bits = reader.parts.facts.get("bits")
    if not isinstance(bits, list) or len(bits) != axes:
        raise damaged("bits", "must be a list of a number for each axis")
    numbers = [each for each in bits if type(each) is int and 0 <= each <= _MOST_BITS]
    if len(numbers) != axes:
        raise damaged("bits", f"must be whole numbers from 0 to {_MOST_BITS}")
    return numbers


def _covers(edges: UInts, axis: Axis) -> bool:
    """Whether slots between these edges hold every position of the axis once."""
    return edges[0] == 0 and int(edges[-1]) == axis.width and bool((edges[1:] >= edges[:-1]).all())
