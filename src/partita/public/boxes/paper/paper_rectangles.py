"""Released cuts of every axis with a pruned tree of trees of noisy counts on top: any box."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Final, Self, final

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answer, least_sum
from partita.domain.axis import Axis
from partita.guarantee.guarantee import Guarantee
from partita.lazy.cached import cached_property
from partita.numbers import failure, integer
from partita.public.axis.base.ranges import Json, Parts
from partita.public.axis.base.reading import PartsReader
from partita.public.axis.curve.curve import Curve, Floats, UInts
from partita.public.axis.curve.isotonic import curve_through
from partita.public.base.released import LARGEST_NUMBER, damaged
from partita.public.bounds.tails import laplace_variance
from partita.public.boxes.base.axes import checked_boxes, checked_terms, read_axes, written_axes
from partita.public.boxes.base.boxes import Boxes, BoxTerm, Region
from partita.public.boxes.paper.paper_bound import PaperBounds
from partita.public.boxes.plan.nodes import Corners
from partita.public.boxes.tree_of_trees.paper_density import Pieces
from partita.public.boxes.tree_of_trees.paper_segments import Segments
from partita.public.boxes.tree_of_trees.tree_of_trees import (
    SegmentTree,
    Stage,
    TreeOfTrees,
    nodes_over_one_point,
)

_MOST_SEGMENTS: Final = 2**30


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class PaperRectanglesRelease(Boxes):
    """Segments of every axis, given by their last positions, and a tree of trees over their products.

    A box is answered by all products of segments that touch it, as in the paper: what a segment holds
    outside of the box is counted with it. Special cells are segments of their own. Pruned nodes count
    nothing. Covers have noise of their own, so the parts of a split add up to the whole but for noise.
    """

    kind: ClassVar[str] = "rectangles-paper"
    papers: ClassVar[Mapping[str, tuple[str, ...]]] = {"rectangles-paper": ("DNRR15", "DNPR10")}
    max_series: ClassVar[int] = 8
    max_series_per_level: ClassVar[int] = 8

    axes: tuple[Axis, ...]
    edges: tuple[UInts, ...]
    trees: TreeOfTrees
    scale: Fraction
    guarantee: Guarantee | None = None

    @cached_property
    def segments(self) -> Segments:
        """What the axes were cut into."""
        return Segments(self.edges)

    @cached_property
    def pieces(self) -> Pieces:
        """Disjoint boxes of positions that share out the total, for what needs a density."""
        return Pieces.of(self.trees, self.segments)

    @property
    def spent(self) -> Fraction:
        """What a row costs: in the trees, and as much again in the cuts, as this kind always spends."""
        return 2 * nodes_over_one_point([SegmentTree(edges.size) for edges in self.edges]) / self.scale

    def answer(self, *terms: BoxTerm) -> Answer:
        """The signed sum of the covers; a node that is added and taken away cancels.

        The standard error is that of the noise of the nodes left, of what the segments at the ends of a
        term may hold outside of it, and of what its pruned nodes may hold.
        """
        boxes = checked_terms(terms, self.axes)
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
        return self.trees.sums(*self.segments.touched(*checked_boxes(lows, highs, self.axes))).values

    def errors(self, lows: Corners, highs: Corners, *, parts: int = 1) -> Floats:
        """The standard errors that `answer` gives, exactly."""
        low, high = checked_boxes(lows, highs, self.axes)
        touched = self.segments.touched(low, high)
        kept = self.trees.sums(*touched).kept if parts == 1 else self.trees.squares(*touched, parts)
        beside = self._beside(low, high).reshape(-1, parts).sum(axis=1)
        return np.asarray(np.sqrt(kept * self._variance + beside))

    def error(self, beta: float) -> float:
        """The bound of Theorem 3.3 as a number: noise of the largest cover, pruned nodes, segments cut."""
        return self._certain.error(self.segments.wide, float(failure(beta)))

    def along(self, axis: int, box: BoxTerm) -> Curve:
        """The monotone curve closest to the sums of the covers up to each segment, straight inside.

        Its differences are `counts` as far as those are monotone, for boxes of whole segments.
        """
        along = integer(axis, "axis", low=0, high=len(self.axes) - 1)
        number = self.edges[along].size
        ends = self.segments.touched(*_corners(checked_terms([box], self.axes)))
        firsts, lasts = (np.repeat(each, number, axis=0) for each in ends)
        firsts[:, along], lasts[:, along] = 0, np.arange(number)
        return curve_through(self.edges[along], self.trees.sums(firsts, lasts).values)

    def region(self, region: Region, box: BoxTerm) -> Answer:
        """The pieces by their share inside; for certain no more lies there than in the box."""
        (term,) = checked_terms([box], self.axes)
        held, inside, shares = self.pieces.within(*_corners([term]))
        shares = shares * region.shares(*inside)

        def error() -> float:
            squares = self._variance * shares**2 + shares * (1.0 - shares) * held**2
            return math.sqrt(float(squares.sum() + self._pruned(*_corners([term])).sum()))

        def bounds(beta: float) -> tuple[float, float]:
            return 0.0, self._bounds(term, beta)[1]

        return Answer(float(shares @ held), error, bounds)

    def points(self, rows: int) -> Corners:
        """Made-up rows, as many in each piece as its share of the total, spread evenly inside."""
        return self.pieces.points(integer(rows, "rows", low=0))

    @property
    def story(self) -> str:
        """How finely the axes were cut, and how much of the tree was kept."""
        cuts = " x ".join(f"{edges.size:,}" for edges in self.edges)
        return (
            f"The axes were cut into {cuts} segments; {self.trees.kept:,} nodes were kept, those whose noisy "
            f"counts are at least {self.trees.floor:,}."
        )

    def parts(self) -> Parts:
        """The edges of each axis, and the owners, numbers and noisy counts of its nodes."""
        facts: dict[str, Json] = {"axes": written_axes(self.axes), "scale": str(self.scale)}
        series: dict[str, NDArray[Any]] = {}
        for axis, (edges, stage) in enumerate(zip(self.edges, self.trees.stages, strict=True)):
            kept = (edges, stage.owners, stage.nodes, stage.counts)
            series |= dict(zip(_names(axis), kept, strict=True))
        return Parts({**facts, "floor": self.trees.floor}, series)

    @classmethod
    def from_parts(cls, parts: Parts, guarantee: Guarantee | None) -> Self:
        """The cuts and the tree of trees that `parts` took apart."""
        reader = PartsReader(parts)
        axes = read_axes(reader)
        names = [_names(axis) for axis in range(len(axes))]
        reader.expect(facts=("axes", "scale", "floor"), series=sum(names, ()))
        edges = tuple(_read_edges(reader, name[0], axis) for name, axis in zip(names, axes, strict=True))
        stages = tuple(_read_stage(reader, name, cut.size) for name, cut in zip(names, edges, strict=True))
        trees = TreeOfTrees(stages, reader.integer("floor", low=1, high=LARGEST_NUMBER))
        return cls(axes=axes, edges=edges, trees=trees, scale=reader.scale("scale"), guarantee=guarantee)

    @cached_property
    def _variance(self) -> float:
        return laplace_variance(self.scale)

    @cached_property
    def _certain(self) -> PaperBounds:
        return PaperBounds(self.trees, self.scale)

    def _bounds(self, term: BoxTerm, beta: float) -> tuple[float, float]:
        """What a term adds lies, for certain, between what is inside of it and what touches it."""
        corners = _corners([term])
        inside = self.segments.inside(*corners)
        empty = bool((inside[0] > inside[1]).any())
        low = 0.0 if empty else self._certain.lower(*inside, beta / 2)
        high = self._certain.upper(*self.segments.touched(*corners), beta / 2)
        return (low, high) if term.sign > 0 else (-high, -low)

    def _beside(self, lows: Corners, highs: Corners) -> Floats:
        """The mean square of all that is not noise, if any share of what may be missing is equally likely."""
        return self._outside(lows, highs) + self._pruned(lows, highs)

    def _pruned(self, lows: Corners, highs: Corners) -> Floats:
        """Of what the cover does not see: up to the floor in each node, and up to all rows in all of them."""
        sums = self.trees.sums(*self.segments.touched(lows, highs))
        left = np.maximum(0.0, self.trees.total - sums.values)
        return _mean_square(np.minimum(sums.missed * float(self.trees.floor), left))

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
                squares[boxes] += _mean_square(self.trees.sums(slab_firsts, slab_lasts).values)
        return squares


def _mean_square(most: Floats) -> Floats:
    """Of numbers that are anywhere between zero and a limit."""
    return np.asarray(most**2 / 3.0)


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


def _read_stage(reader: PartsReader, names: tuple[str, ...], segments: int) -> Stage:
    _, owners, nodes, noisy = names
    return Stage(
        SegmentTree(segments), reader.row(owners, np.int64), reader.row(nodes, np.int64), reader.noisy(noisy)
    )
