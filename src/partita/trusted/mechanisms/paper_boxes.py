"""Boxes over huge axes as in the paper: axis partitions under a tree of trees [DNRR15, section 3.3]."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, ClassVar, Final, Literal, NamedTuple, final, get_args

import numpy as np
from numpy.typing import NDArray

from partita.arrays import Bools, Ints, UInts
from partita.errors import check
from partita.guarantee import Guarantee
from partita.numbers import (
    Converted,
    Exact,
    check_choice,
    check_probability,
    freeze,
    frozen,
    integer,
    parameter,
    rational,
)
from partita.public.axis.tree_solver import MOST_NODES
from partita.public.boxes.paper import Cuts, ErrorForecast, PaperRectanglesRelease, tree_bounds
from partita.public.boxes.tree_of_trees import (
    SegmentTree,
    Stage,
    TreeOfTrees,
    count_nodes_by_stage,
    nodes_over_one_point,
    spread,
)
from partita.trusted.mechanisms.base import PartNoise, check_rows, check_scale
from partita.trusted.mechanisms.boxes import BoxMechanism
from partita.trusted.mechanisms.partition import Partition
from partita.trusted.noise.hazard import floor_log
from partita.trusted.noise.system import SYSTEM, Noise
from partita.trusted.secret import Descent, PointCounts

_MOST_LEVELS: Final = 31
_LARGEST_THRESHOLD: Final = 2**20
_LOWEST_THRESHOLD: Final = 1
"""The default: what was pruned is the largest part of bound and error, and falls with the threshold.
Measured: errors at 1 were 0.1 to 0.5 of those at "paper", and lower than at 1.5, 2, 3 and 5
(docs/proofs/paper_rectangles.md, "The threshold"). Below 1, trees of empty nodes may grow.
"""
_MOST_CELLS: Final = 2**20  # along an axis that is not cut: a release holds an edge for each


@final
@frozen(kw_only=True)
class PaperRectangles(BoxMechanism):
    """A private partition of every axis, counted by a tree of trees as in the paper: every box.

    Guarantee: epsilon-DP, pure; ADD_REMOVE or CHANGE_ONE.                         [DNRR15, Thm 3.3]
    Error:     for sets on c axes and all boxes at once
               O((c^2 log size + c (2 log n)^(1.5c+1) log 1/beta) / epsilon) with `pruned=False`;
               pruned, the second term is O((2 log n)^(2c) c log(n/beta) / epsilon).
               `bound(beta, rows=n)` is a number before the data, `error(beta)` one of the release.
    Proof:     docs/proofs/paper_rectangles.md (integer noise, exact number of nodes, pruning)

    Faithful to the paper on purpose: half of epsilon on a partition of each axis with its threshold, half
    on the tree of trees, minimal covers. A node whose noisy count is below `threshold` times the noise
    scale counts as empty, and its children are not counted (Remark 3.4); "paper" is ln(2m_1 ... 2m_c / beta),
    m_a segments on axis a, which drops all nodes without rows. `pruned=False` is Theorem 3.3 itself: every
    node is counted, as far as they fit in memory. `cuts="cells"` has no partitions: trees over the cells of
    the axes, with all of epsilon, to which the paper compares itself [CSS11].

    >>> from partita.domain.axis import Axis
    >>> PaperRectangles(axes=[Axis(size=2**32), Axis(size=2**32)], epsilon=1).scale((8, 1))
    Fraction(16, 1)
    """

    name: ClassVar[str] = "rectangles-paper"

    beta: Exact = parameter(default="0.05")
    threshold: Converted[object, Fraction | Literal["paper"]] = parameter(default=_LOWEST_THRESHOLD)
    pruned: bool = True
    cuts: Cuts = "private"

    def _convert(self) -> None:
        super()._convert()
        threshold = "paper" if self.threshold == "paper" else _check_threshold(self.threshold)
        cuts = check_choice(self.cuts, "cuts", get_args(Cuts))
        freeze(self, beta=check_probability(self.beta), threshold=threshold, cuts=cuts)
        if cuts == "cells":
            self._check_cells()

    def _check_cells(self) -> None:
        """Refuse axes of more cells than a release holds, and trees of more nodes."""
        widest = max(axis.width for axis in self.axes)
        rule = f"must have at most {_MOST_CELLS} cells along each axis for cuts='cells'"
        fix = "choose coarser domains, or cuts='private'"
        check(widest <= _MOST_CELLS, "axes", rule, given=widest, fix=fix)
        nodes = max(count_nodes_by_stage([SegmentTree(axis.width) for axis in self.axes]))
        rule = f"must have at most {MOST_NODES} nodes of one dimension if the tree is not pruned"
        check(self.pruned or nodes <= MOST_NODES, "axes", rule, given=nodes, fix="leave pruned=True")

    def _check(self) -> None:
        for levels in (1, _MOST_LEVELS):
            check_scale(self.scale([2 ** (levels - 1)] * len(self.axes)), self.epsilon)

    @cached_property
    def partitions(self) -> tuple[Partition, ...]:
        """Figure 1 on each axis, each with its share of half of epsilon and of half of beta."""
        share = 2 * len(self.axes)
        return tuple(
            Partition(
                size=axis.size,
                epsilon=self.epsilon / share,
                beta=self.beta / share,
                law="laplace",
                threshold="paper",
                **self.protected,
            )
            for axis in self.axes
        )

    def scale(self, segments: Sequence[int]) -> Fraction:
        """The noise on a node: what the cuts leave of epsilon is shared by all nodes over one point."""
        share = 1 if self.cuts == "cells" else 2
        return share * nodes_over_one_point([SegmentTree(number) for number in segments]) / self.rate

    def floor(self, segments: Sequence[int]) -> int:
        """The least noisy count of a node that is kept, at least one; zero where none is dropped."""
        scale = self.scale(segments)
        if not self.pruned:
            return 0
        if self.threshold == "paper":
            return floor_log(math.prod(2 * number for number in segments) / self.beta, scale) + 1
        return math.ceil(self.threshold * scale)

    @property
    def guarantee(self) -> Guarantee:
        """The partitions, and the counts with the other half; or the counts alone."""
        if self.cuts == "cells":
            return Guarantee(epsilon=self.epsilon, **self.protected)
        spent = sum((partition.epsilon for partition in self.partitions), self.epsilon / 2)
        return Guarantee(epsilon=spent, **self.protected)

    def predicted_error(self, rows: int) -> float:
        """About the root-mean-square error of a random box, if that many rows lie evenly."""
        return self._guess(rows).error

    def predicted_numbers(self, rows: int) -> int:
        """About how many integers the release holds: an edge for each segment, three for each kept node."""
        return self._guess(rows).numbers

    @property
    def bound_of(self) -> str:
        """Theorem 3.3 is about sets on every axis; without cuts, rows may lie anywhere."""
        return "any box" if self.cuts == "cells" else "any box, if no two rows share a position along an axis"

    def bound(self, beta: object = "0.05", *, rows: int | None = None) -> float:
        """With probability 1 - beta no box misses the truth by more, for at most `rows` rows at different
        positions along every axis: Theorem 3.3 as a number, or Remark 3.4 where the tree is pruned.

        Half of beta is for the cuts, if any. Without pruning it is infinite where nodes may not fit.
        A position along an axis that m rows share adds m - 1 for each end of a box that cuts its segment.
        """
        number, chance = check_rows(rows), check_probability(beta)
        segments, outside = [axis.width for axis in self.axes], 0
        if self.cuts == "private":
            chance, share = chance / 2, chance / (4 * len(self.axes))
            most = [cut.most_segments(number, share) for cut in self.partitions]
            segments = [each + axis.before + axis.after for each, axis in zip(most, self.axes, strict=True)]
            cuts = zip(self.partitions, most, strict=True)
            outside = sum(2 * cut.heaviest(each, share) for cut, each in cuts)
        fits = max(count_nodes_by_stage([SegmentTree(size) for size in segments])) <= MOST_NODES
        if not (self.pruned or fits):
            return math.inf
        noise = tree_bounds(segments, self.scale(segments), self.floor(segments), float(chance))
        below = noise.below if fits else math.inf
        return max(noise.above + outside, min(below, float(number)) if self.pruned else below)

    def release(self, points: PointCounts, *, noise: Noise = SYSTEM) -> PaperRectanglesRelease:
        """Cut every axis, then count the products of segments in a tree of trees, pruned as it grows."""
        points = self.fitting(points)
        session = noise.session()
        edges = tuple(self._edges(points, axis, session) for axis in range(len(self.axes)))
        segments = [cut.size for cut in edges]
        looks = _Looks(session, self.scale(segments), self.floor(segments))
        return PaperRectanglesRelease(
            axes=self.axes,
            edges=edges,
            trees=_grow(looks, segments, points.descent(partial(_Rows.of_all, edges))),
            scale=looks.scale,
            cuts=self.cuts,
            guarantee=self.guarantee if session.secure else None,
        )

    def _edges(self, points: PointCounts, index: int, session: Noise) -> UInts:
        """The last position of each segment of an axis; every special cell is a segment of its own."""
        if self.cuts == "cells":
            return np.arange(self.axes[index].width, dtype=np.uint64)
        axis, partition = self.axes[index], self.partitions[index]
        start, behind = np.uint64(axis.before), np.uint64(axis.before + axis.size)
        cut = partition.cut(points.along(index), noise=PartNoise(session))
        before = np.arange(axis.before, dtype=np.uint64)
        return np.concatenate([before, cut.edges + start, np.arange(axis.after, dtype=np.uint64) + behind])

    def _guess(self, rows: int) -> ErrorForecast:
        """The prediction for that many rows that lie evenly: segments as heavy as the threshold."""
        number = integer(rows, "rows", low=0)
        segments = [
            min(partition.size, 1 + number // (1 + partition.threshold), 2 ** (_MOST_LEVELS - 1))
            for partition in self.partitions
        ]
        if self.cuts == "cells":
            segments = [axis.width for axis in self.axes]
        scale, floor = self.scale(segments), self.floor(segments)
        return ErrorForecast(number, tuple(segments), scale, floor, wide=self.cuts == "private")


class _Looks:
    """The only place that adds noise to counts. Counts below the floor are dropped; none, if it is zero.

    If more nodes of one dimension are left than the limit, the largest counts stay, and the floor
    rises above the others: every dropped count lies below it.
    """

    def __init__(self, session: Noise, scale: Fraction, floor: int) -> None:
        self.scale, self.floor, self.pruned = scale, floor, floor > 0
        self._session, self._least = session, floor

    def take(self, counts: Ints, room: int) -> tuple[Bools, NDArray[Any]]:
        """Which nodes are kept, and their noisy counts."""
        noisy = self._session.add(counts, self.scale)
        kept = np.asarray(noisy >= self._least, bool) if self.pruned else np.ones(noisy.size, bool)
        if int(kept.sum()) > room:
            order = np.argsort(np.where(kept, -noisy, 0) if self.pruned else -noisy, kind="stable")
            kept[order[room:]] = False
            self.floor = max(self.floor, 1, 1 + int(noisy[order[room]]))
        return kept, noisy[kept]


def _grow(looks: _Looks, segments: Sequence[int], walk: Descent[_Rows]) -> TreeOfTrees:
    """Dimension by dimension: the kept nodes of one are the owners of the trees of the next."""
    stages = [_stage(looks, SegmentTree(segments[0]), walk, 1)]
    for size in segments[1:]:
        walk.go(partial(_select_rows, stages[-1]))
        stages.append(_stage(looks, SegmentTree(size), walk, stages[-1].nodes.size))
    return TreeOfTrees(tuple(stages), looks.floor, pruned=looks.pruned)


def _stage(looks: _Looks, tree: SegmentTree, walk: Descent[_Rows], number: int) -> Stage:
    """The trees of all owners at once, level by level: only children of kept nodes are counted."""
    levels = []
    owners, nodes, room = np.arange(number), np.ones(number, np.int64), MOST_NODES
    while nodes.size:
        kept, noisy = looks.take(walk.folded(partial(_count_rows, owners, nodes)), room)
        owners, nodes = owners[kept], nodes[kept]
        levels.append((owners, nodes, noisy))
        room -= nodes.size
        parents, nodes = tree.children(nodes)
        owners = owners[parents]
    return Stage.of(tree, levels)


def _select_rows(stage: Stage, rows: _Rows) -> _Rows:
    return rows.within(stage)


def _count_rows(owners: Ints, nodes: Ints, rows: _Rows) -> Ints:
    return rows.count(owners, nodes)


class _Segments(NamedTuple):
    """The segment of each point on each axis, the number of segments, and the rows of each point."""

    places: tuple[Ints, ...]
    sizes: tuple[int, ...]
    counts: Ints


class _Rows:
    """The secret of one dimension: the points in the box of each owner, by owner and then by segment."""

    def __init__(self, segments: _Segments, dimension: int, points: Ints, owners: Ints) -> None:
        self._segments, self._dimension = segments, dimension
        self._tree = SegmentTree(segments.sizes[dimension])
        keys = owners * self._tree.size + segments.places[dimension][points]
        order = np.argsort(keys, kind="stable")
        self._keys, self._points = keys[order], points[order]
        self._before = np.concatenate([np.zeros(1, np.int64), np.cumsum(segments.counts[self._points])])

    @classmethod
    def of_all(cls, edges: Sequence[UInts], places: UInts, counts: Ints) -> _Rows:
        """All points belong to the one owner of the first dimension."""
        located = tuple(np.searchsorted(cut, places[:, axis]) for axis, cut in enumerate(edges))
        segments = _Segments(located, tuple(cut.size for cut in edges), counts)
        return cls(segments, 0, np.arange(counts.size), np.zeros(counts.size, np.int64))

    def count(self, owners: Ints, nodes: Ints) -> Ints:
        """The exact count of each node of the trees of these owners.

        A point counts once for every owner, so the running sums may wrap around; but a node has less than
        2^62 rows, so the difference of two sums, taken modulo 2^64, is exact.
        """
        first, behind = self._stretches(owners, nodes)
        return np.asarray(self._before[behind] - self._before[first])

    def within(self, stage: Stage) -> _Rows:
        """The points in each kept node, which is the owner of a tree of the next dimension."""
        owners, rows = spread(*self._stretches(stage.owners, stage.nodes))
        return _Rows(self._segments, self._dimension + 1, self._points[rows], owners)

    def _stretches(self, owners: Ints, nodes: Ints) -> tuple[Ints, Ints]:
        """Where the points of each node begin and end in the sorted keys."""
        first, behind = (owners * self._tree.size + bound for bound in self._tree.spans(nodes))
        return np.searchsorted(self._keys, first), np.searchsorted(self._keys, behind)


def _check_threshold(threshold: object) -> Fraction:
    """At least one noise scale, the default: below, trees of empty nodes might grow without end."""
    exact = rational(_LOWEST_THRESHOLD if threshold is None else threshold, "threshold")
    rule, fix = "must lie between 1 and 2^20 noise scales", 'leave it out, or pass for example 4, or "paper"'
    check(_LOWEST_THRESHOLD <= exact <= _LARGEST_THRESHOLD, "threshold", rule, given=threshold, fix=fix)
    return exact
