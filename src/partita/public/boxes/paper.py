"""The release of the paper's rectangles [DNRR15, Thm 3.3], its guaranteed bounds, and its expected error.

The proofs are in docs/proofs/paper_rectangles.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import accumulate
from typing import Any, ClassVar, Final, Literal, NamedTuple, Self, TypeAlias, cast, final, get_args

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answer, least_sum
from partita.arrays import Bools, Floats, Ints, UInts
from partita.domain.axis import Axis
from partita.guarantee import Guarantee
from partita.lazy import cached_property
from partita.numbers import check_probability, integer
from partita.public.axis.base import Json, Parts, PartsReader
from partita.public.axis.curve import Curve, fit_curve
from partita.public.base import LARGEST_NUMBER, damaged
from partita.public.bounds import chernoff, laplace_sum_reach, laplace_variance, largest_reach, spread_ranges
from partita.public.boxes.base import (
    BoxRelease,
    BoxTerm,
    Region,
    check_boxes,
    check_terms,
    encode_axes,
    read_axes,
)
from partita.public.boxes.plan import Corners
from partita.public.boxes.tree_of_trees import (
    AxisSegments,
    Pieces,
    SegmentTree,
    Stage,
    TreeOfTrees,
    count_all_nodes,
    nodes_over_one_point,
)

Cuts: TypeAlias = Literal["private", "cells"]
"""Segments of the axes: private partitions, or single cells, as if every cell were a segment."""

_MOST_SEGMENTS: Final = 2**30
_SPREAD: Final = math.sqrt(3 / 2)  # root-mean-square length of a random range, sqrt(1/6), over its mean, 1/3
# Points between 0 and the rate at which Chernoff bounds are tried: more are tighter, and take longer.
_SHARES: Final = np.concatenate([np.geomspace(1e-6, 0.5, 192), 1.0 - np.geomspace(0.5, 1e-4, 48)[1:]])


class _Margins(NamedTuple):
    """The truth lies between value - above and value + below; no noise of a node is beyond `node`."""

    above: float
    below: float
    node: float


class _CoverSize(NamedTuple):
    """Numbers of nodes: looked for in the last dimension, not found there, and missed in all dimensions."""

    looked: int
    lost: int
    missed: int


@final
@dataclass(frozen=True, eq=False)
class PaperBounds:
    """Guaranteed bounds from a tree of trees, if every node had noise of this scale."""

    trees: TreeOfTrees
    scale: Fraction

    def upper(self, firsts: Ints, lasts: Ints, beta: float) -> float:
        """An upper bound on a box of segments that fails with probability beta."""
        value, size = self._cover(firsts, lasts)
        margins = self._margins(size, beta)
        return min(value + margins.below, self._everything(margins.node))

    def lower(self, firsts: Ints, lasts: Ints, beta: float) -> float:
        """A lower bound on a box of segments that fails with probability beta."""
        value, size = self._cover(firsts, lasts)
        return max(0.0, value - self._margins(size, beta).above)

    def error(self, wide: Sequence[Bools], beta: float) -> float:
        """With probability 1 - beta no answer misses the truth by more; `wide` segments can be cut.

        An answer that is too large has noise in it, and what the segments that are cut hold outside;
        one that is too small has noise in it, and lacks what was pruned. Nor is an answer further off than
        it and everything there is, if all counts are positive.
        """
        boxes = math.prod(tree.size * (tree.size + 1) // 2 for tree in self.trees.trees)
        margins = self._margins(self._largest, beta, boxes=boxes)
        everything = self._everything(margins.node)
        outside = sum(self._heaviest(axis, each, margins.node) for axis, each in enumerate(wide))
        above = min(margins.above + min(outside, everything), self._largest_answer)
        return max(above, min(margins.below, everything) if self.trees.pruned else margins.below)

    def _cover(self, firsts: Ints, lasts: Ints) -> tuple[float, _CoverSize]:
        cover = self.trees.cover(firsts, lasts)
        looked, found = int(cover.looked[0]), cover.places
        size = _CoverSize(looked, looked - found.size, int(cover.missed[0]))
        return float(self.trees.stages[-1].values[found].sum()), size

    @property
    def _largest(self) -> _CoverSize:
        """No cover is larger, given how many nodes of each dimension but the last were kept."""
        if not self.trees.floor:
            return _CoverSize(math.prod(tree.most for tree in self.trees.trees), 0, 0)
        looked, missed, owners = 0, 0, 1
        for stage in self.trees.stages:
            looked = owners * stage.tree.most
            missed, owners = missed + looked, min(looked, stage.nodes.size)
        return _CoverSize(looked, looked, min(missed, math.prod(tree.most for tree in self.trees.trees)))

    @property
    def _largest_answer(self) -> float:
        """No cover has a larger sum: its nodes lie apart, and so do the nodes that own their trees."""
        worth = self.trees.stages[-1].values
        owners = [1, *(stage.nodes.size for stage in self.trees.stages[:-1])]
        for stage, number in zip(self.trees.stages[::-1], owners[::-1], strict=True):
            worth = _best_sums(stage, worth, number)
        return float(worth[0])

    def _margins(self, size: _CoverSize, beta: float, *, boxes: int = 1) -> _Margins:
        """What holds for so many boxes at once whose covers are no larger.

        A third of beta each for: the noise of every single node; the positive and the negative parts of
        the noises that were looked for; and their whole sum.
        """
        share = beta / 3
        node = largest_reach(self.scale, count_all_nodes(self.trees.trees), share)
        parts = one_sided_reach(self.scale, size.looked, share / (2 * boxes))
        whole = laplace_sum_reach(self.scale, size.looked, share / boxes)
        above = min(parts, whole + size.lost * node)
        return _Margins(above, above + size.missed * self._pruned(node), node)

    def _pruned(self, node: float) -> float:
        """An upper bound on a node that was pruned, or lies below one that was."""
        return self.trees.floor - 1 + node

    def _everything(self, node: float) -> float:
        """An upper bound on the number of rows."""
        root = self.trees.stages[0].values[:1]
        return float(root[0]) + node if root.size else self._pruned(node)

    def _heaviest(self, axis: int, wide: Bools, node: float) -> float:
        """An upper bound on the two heaviest segments of an axis among those that are wide.

        Segments are leaves of the tree that is reached through the roots of the dimensions before.
        """
        owner, root = np.zeros(1, np.int64), np.ones(1, np.int64)
        for stage in self.trees.stages[:axis]:
            owner = stage.find(owner, root)
        stage = self.trees.stages[axis]
        leaves = np.flatnonzero(wide) + (1 << (stage.tree.levels - 1))
        found = stage.find(np.repeat(owner, leaves.size), leaves)
        held = np.append(stage.values, self.trees.floor - 1)[found] + node
        return float(np.sort(held)[-2:].sum())


def _best_sums(stage: Stage, worth: Floats, owners: int) -> Floats:
    """For each owner the largest sum of the worth of disjoint nodes of its tree."""
    best, below = np.zeros(stage.nodes.size), np.zeros(stage.nodes.size)
    for level in reversed(stage.by_depth):
        best[level] = np.maximum(worth[level], below[level])
        inner = level[stage.nodes[level] > 1]
        np.add.at(below, stage.parents[inner], best[inner])
    roots = stage.by_depth[0]
    return np.bincount(stage.owners[roots], best[roots], owners).astype(np.float64)


def one_sided_reach(scale: Fraction, terms: int, beta: float) -> float:
    """t with P[X1^+ + ... + Xm^+ > t] <= beta for the positive parts of discrete Laplace noises.

    No choice among the noises, whatever it looks at, has a larger sum. By symmetry the same holds for
    the negative parts.
    """
    if terms == 0:
        return 0.0
    rate = float(1 / scale)
    x, a = rate * _SHARES, np.exp(-rate)
    # ln E[exp(x X^+)] = ln(1 + a (e^x - 1) / ((1 + a) (1 - a e^x))), a = exp(-rate), 0 < x < rate.
    log_moments = np.log1p((np.exp(x - rate) - a) / ((1.0 + a) * -np.expm1(x - rate)))
    return float(chernoff(x, terms * log_moments, beta).min())


class TreeBounds(NamedTuple):
    """No answer for whole segments exceeds the truth by more than `above`, or falls short by more."""

    above: float
    below: float


def tree_bounds(segments: Sequence[int], scale: Fraction, floor: int, beta: float) -> TreeBounds:
    """What holds for all boxes of segments at once but for chance beta, before anything is counted.

    With a floor of zero nothing is pruned: an answer is off by the noise of its cover alone. Else as
    `PaperBounds`, where all nodes of the largest cover may be missed.
    """
    trees = [SegmentTree(size) for size in segments]
    boxes = math.prod(size * (size + 1) // 2 for size in segments)
    cover = math.prod(tree.most for tree in trees)
    if not floor:
        reach = laplace_sum_reach(scale, cover, beta / boxes)
        return TreeBounds(reach, reach)
    node = largest_reach(scale, count_all_nodes(trees), beta / 3)
    parts = one_sided_reach(scale, cover, beta / (6 * boxes))
    above = min(parts, laplace_sum_reach(scale, cover, beta / (3 * boxes)) + cover * node)
    return TreeBounds(above, above + cover * (floor - 1 + node))


@final
@dataclass(frozen=True)
class ErrorForecast:
    """The expected error and size of a tree of trees, before anything is counted.

    Rows are spread evenly over so many segments on each axis; a box is a random range along each, which cuts
    segments if they are `wide`.

    The depth of a node is counted over all axes together; each step down halves what a node holds.
    """

    rows: int
    segments: tuple[int, ...]
    scale: Fraction
    floor: int
    wide: bool = True

    @property
    def error(self) -> float:
        """About the root-mean-square error of a random box: noise, pruned nodes, and segments cut."""
        covers = reduce(np.convolve, [_cover(tree) for tree in self._trees])
        held, kept = self._nodes(covers.size)
        noise = math.sqrt(float(covers[kept].sum()) * laplace_variance(self.scale))
        pruned = float(covers[~kept] @ held[~kept]) * _SPREAD ** len(self.segments)
        cut = self.wide * sum(self.rows / size for size in self.segments) / 3 ** (len(self.segments) - 1)
        return math.hypot(noise, pruned, cut)

    @property
    def numbers(self) -> int:
        """About how many integers are released: the edges, and three for each kept node."""
        levels = [np.array(tree.hierarchy.nodes[::-1], np.float64) for tree in self._trees]
        kept = sum(
            float(nodes[self._nodes(nodes.size)[1]].sum()) for nodes in accumulate(levels, np.convolve)
        )
        return sum(self.segments) + 3 * int(kept)

    @property
    def _trees(self) -> list[SegmentTree]:
        return [SegmentTree(size) for size in self.segments]

    def _nodes(self, depths: int) -> tuple[Floats, Bools]:
        """What a node holds at each depth, and whether it is kept. Trees are not full: nodes hold more."""
        full = math.prod(2 ** (tree.levels - 1) / tree.size for tree in self._trees)
        held = np.minimum(np.ldexp(self.rows * full, -np.arange(depths)), float(self.rows))
        return held, held >= self.floor


def _cover(tree: SegmentTree) -> Floats:
    """How many nodes of each depth are in the cover of a random run of segments, in the mean."""
    numbers = tree.hierarchy.numbers(*spread_ranges(tree.size))
    return np.array([float(number.mean()) for number in numbers[::-1]])


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class PaperRectanglesRelease(BoxRelease):
    """Segments of every axis, given by their last positions, and a tree of trees over their products.

    A box is answered by all products of segments that touch it, as in the paper: what a segment holds
    outside of the box is counted with it. Special cells are segments of their own. Pruned nodes count
    nothing. Covers have noise of their own, so the parts of a split add up to the whole except for noise.
    """

    kind: ClassVar[str] = "rectangles-paper"
    papers: ClassVar[Mapping[str, tuple[str, ...]]] = {"rectangles-paper": ("DNRR15", "DNPR10")}
    max_series: ClassVar[int] = 8
    max_series_per_level: ClassVar[int] = 8

    axes: tuple[Axis, ...]
    edges: tuple[UInts, ...]
    trees: TreeOfTrees
    scale: Fraction
    cuts: Cuts = "private"
    guarantee: Guarantee | None = None

    @cached_property
    def segments(self) -> AxisSegments:
        """The segments of the axes."""
        return AxisSegments(self.edges)

    @cached_property
    def pieces(self) -> Pieces:
        """Disjoint boxes of positions that share out the total, for what needs a density."""
        return Pieces.of(self.trees, self.segments)

    @property
    def spent(self) -> Fraction:
        """What a row costs: in the trees, and as much again in private cuts, as this kind always spends."""
        return (
            (1 if self.cuts == "cells" else 2)
            * nodes_over_one_point([SegmentTree(edges.size) for edges in self.edges])
            / self.scale
        )

    def answer(self, *terms: BoxTerm) -> Answer:
        """The signed sum of the covers; a node that is added and taken away cancels.

        The standard error is that of the noise of the nodes left, of what the segments at the ends of a
        term may hold outside of it, and of what its pruned nodes may hold.
        """
        boxes = check_terms(terms, self.axes)
        if not boxes:
            return Answer.exact(0.0)
        lows, highs = _corners(boxes)
        cover = self.trees.cover(*self.segments.touched(lows, highs))
        signs = np.array([float(box.sign) for box in boxes])
        held = self.trees.stages[-1].values
        net = np.bincount(cover.places, signs[cover.boxes], held.size)

        def error() -> float:
            return math.sqrt(float(net @ net) * self._variance + float(self._beside(lows, highs).sum()))

        def bounds(beta: float) -> tuple[float, float]:
            ends = [self._bounds(box, beta / len(boxes)) for box in boxes]
            return sum(low for low, _ in ends), sum(high for _, high in ends)

        return Answer(float(net @ held), error, bounds, least_sum(box.sign for box in boxes))

    def counts(self, lows: Corners, highs: Corners) -> Floats:
        """The sums of the covers of many boxes."""
        return self.trees.sums(*self.segments.touched(*check_boxes(lows, highs, self.axes))).values

    def errors(self, lows: Corners, highs: Corners, *, parts: int = 1) -> Floats:
        """The standard errors that `answer` gives, exactly."""
        low, high = check_boxes(lows, highs, self.axes)
        touched = self.segments.touched(low, high)
        kept = self.trees.sums(*touched).kept if parts == 1 else self.trees.squares(*touched, parts)
        beside = self._beside(low, high).reshape(-1, parts).sum(axis=1)
        return np.asarray(np.sqrt(kept * self._variance + beside))

    def error(self, beta: float) -> float:
        """The bound of Theorem 3.3 as a number: noise of the largest cover, pruned nodes, segments cut."""
        return self._certain.error(self.segments.wide, float(check_probability(beta)))

    def along(self, axis: int, box: BoxTerm) -> Curve:
        """The monotone curve closest to the sums of the covers up to each segment, straight inside.

        Its differences are `counts` as far as those are monotone, for boxes of whole segments.
        """
        along = integer(axis, "axis", low=0, high=len(self.axes) - 1)
        number = self.edges[along].size
        ends = self.segments.touched(*_corners(check_terms([box], self.axes)))
        firsts, lasts = (np.repeat(each, number, axis=0) for each in ends)
        firsts[:, along], lasts[:, along] = 0, np.arange(number)
        return fit_curve(self.edges[along], self.trees.sums(firsts, lasts).values)

    def region(self, region: Region, box: BoxTerm) -> Answer:
        """The pieces by their share inside; for certain no more lies there than in the box."""
        (term,) = check_terms([box], self.axes)
        held, inside, shares = self.pieces.within(*_corners([term]))
        shares = shares * region.shares(*inside)

        def error() -> float:
            squares = self._variance * shares**2 + shares * (1.0 - shares) * held**2
            return math.sqrt(float(squares.sum() + self._pruned(*_corners([term])).sum()))

        def bounds(beta: float) -> tuple[float, float]:
            return 0.0, self._bounds(term, beta)[1]

        return Answer(float(shares @ held), error, bounds)

    def points(self, rows: int) -> Corners:
        """Synthetic rows, as many in each piece as its share of the total, spread evenly inside."""
        return self.pieces.points(integer(rows, "rows", low=0))

    @property
    def story(self) -> str:
        """How finely the axes were cut, and how much of the tree was kept."""
        cuts = " x ".join(f"{edges.size:,}" for edges in self.edges)
        if not self.trees.floor:
            return f"The axes have {cuts} segments; all {self.trees.kept:,} nodes over them were counted."
        return (
            f"The axes were cut into {cuts} segments; {self.trees.kept:,} nodes were kept, those whose noisy "
            f"counts are at least {self.trees.floor:,}."
        )

    def parts(self) -> Parts:
        """The edges of each axis, and the owners, numbers and noisy counts of its nodes."""
        facts: dict[str, Json] = {"axes": encode_axes(self.axes), "scale": str(self.scale)}
        series: dict[str, NDArray[Any]] = {}
        for axis, (edges, stage) in enumerate(zip(self.edges, self.trees.stages, strict=True)):
            kept = (edges, stage.owners, stage.nodes, stage.counts)
            series |= dict(zip(_names(axis), kept, strict=True))
        # Files of version 0.1 have no word on these, and need none.
        if self.cuts != "private" or not self.trees.pruned:
            facts |= {"cuts": self.cuts, "pruned": self.trees.pruned}
        return Parts({**facts, "floor": self.trees.floor}, series)

    @classmethod
    def from_parts(cls, parts: Parts, guarantee: Guarantee | None) -> Self:
        """The cuts and the tree of trees that `parts` took apart."""
        reader = PartsReader(parts)
        axes = read_axes(reader)
        names = [_names(axis) for axis in range(len(axes))]
        variant = ("cuts", "pruned") if "cuts" in parts.facts else ()
        reader.expect(facts=("axes", "scale", "floor", *variant), series=sum(names, ()))
        cuts, pruned = parts.facts.get("cuts", "private"), reader.flag("pruned") if variant else True
        if cuts not in get_args(Cuts):
            raise damaged("cuts", "must be one of those that there are")
        edges = tuple(_read_edges(reader, name[0], axis) for name, axis in zip(names, axes, strict=True))
        stages = []
        for (_, owners, nodes, noisy), cut in zip(names, edges, strict=True):
            tree, rows = SegmentTree(cut.size), [reader.row(name, np.int64) for name in (owners, nodes)]
            stages.append(Stage(tree, rows[0], rows[1], reader.noisy(noisy)))
        floor = reader.integer("floor", low=int(pruned), high=LARGEST_NUMBER)
        trees = TreeOfTrees(tuple(stages), floor, pruned=pruned)
        if cuts == "cells" and any(cut.size != axis.width for cut, axis in zip(edges, axes, strict=True)):
            raise damaged("cuts", "must be private where segments have several cells")
        return cls(
            axes=axes,
            edges=edges,
            trees=trees,
            scale=reader.scale("scale"),
            cuts=cast(Cuts, cuts),
            guarantee=guarantee,
        )

    @cached_property
    def _variance(self) -> float:
        return laplace_variance(self.scale)

    @cached_property
    def _certain(self) -> PaperBounds:
        return PaperBounds(self.trees, self.scale)

    def _bounds(self, term: BoxTerm, beta: float) -> tuple[float, float]:
        """Bounds on what a term adds: between the segments inside of it and those that touch it."""
        corners = _corners([term])
        inside = self.segments.inside(*corners)
        empty = bool((inside[0] > inside[1]).any())
        low = 0.0 if empty else self._certain.lower(*inside, beta / 2)
        high = self._certain.upper(*self.segments.touched(*corners), beta / 2)
        return (low, high) if term.sign > 0 else (-high, -low)

    def _beside(self, lows: Corners, highs: Corners) -> Floats:
        """The mean square of all that is not noise, if any share of what may be missing is equally likely.

        Of numbers anywhere between zero and a limit, the mean square is a third of that of the limit.
        """
        return self._outside(lows, highs) + self._pruned(lows, highs)

    def _pruned(self, lows: Corners, highs: Corners) -> Floats:
        """Of what the cover does not see: up to the floor in each node, and up to all rows in all of them.

        Noise, which each of these nodes had as well, may have hidden more.
        """
        sums = self.trees.sums(*self.segments.touched(lows, highs))
        left = np.maximum(0.0, self.trees.total - sums.values)
        hidden = np.minimum(sums.missed * float(self.trees.floor), left) ** 2 / 3.0
        return np.asarray(hidden + sums.missed * self._variance)

    def _outside(self, lows: Corners, highs: Corners) -> Floats:
        """Of what the cover has too much: up to what its cut slabs hold."""
        firsts, lasts = self.segments.touched(lows, highs)
        cut_first, cut_last = self.segments.cut(lows, highs)
        squares, alone = np.zeros(len(lows)), firsts == lasts
        for ends, cut in ((firsts, cut_first | (cut_last & alone)), (lasts, cut_last & ~alone)):
            for axis in range(len(self.axes)):
                boxes = np.flatnonzero(cut[:, axis])
                slab_firsts, slab_lasts = firsts[boxes], lasts[boxes]
                slab_firsts[:, axis] = slab_lasts[:, axis] = ends[boxes, axis]
                squares[boxes] += self.trees.sums(slab_firsts, slab_lasts).values ** 2 / 3.0
        return squares


def _corners(boxes: list[BoxTerm]) -> tuple[Corners, Corners]:
    return np.array([box.low for box in boxes], np.uint64), np.array([box.high for box in boxes], np.uint64)


def _names(axis: int) -> tuple[str, ...]:
    return tuple(f"{name}{axis}" for name in ("edges", "owners", "nodes", "noisy"))


def _read_edges(reader: PartsReader, name: str, axis: Axis) -> UInts:
    """The cut of an axis, in which every special cell is a segment of its own."""
    edges = reader.edges(name, size=axis.width)
    before = np.arange(axis.before, dtype=np.uint64)
    after = np.arange(axis.after + 1, dtype=np.uint64) + np.uint64(axis.before + axis.size - 1)
    if edges.size > _MOST_SEGMENTS or not np.isin(np.concatenate([before, after]), edges).all():
        raise damaged(name, "must have a segment for each special cell, and at most 2^30 in all")
    return edges
