"""Answers from a solved tree of boxes: counts, errors, bounds, curves, regions and made-up points."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, NamedTuple, TypeAlias, final

import numpy as np

from partita.answer import Answer, Bounds, least_sum
from partita.arrays import Bools, Floats, Ints, UInts
from partita.lazy import cached_property
from partita.public.axis.curve import Curve
from partita.public.axis.spending_tree import NodeRange, bound_nodes
from partita.public.axis.tree_solver import TreeLooks
from partita.public.bounds import Combination, laplace_mix_reach
from partita.public.boxes.cover import (
    Layer,
    LinearQuestion,
    NodeCoefficients,
    Plane,
    cancel_terms,
    combine_boxes,
    sum_boxes,
    variances_of_sums,
)
from partita.public.boxes.density import (
    BoxDensity,
    Measure,
    Stretches,
    accumulate_along,
    find_positions,
    place_points,
)
from partita.public.boxes.plan import BoxNodes, Corners, SignedBox, children_of, spans_of, sum_upwards

_ROUNDING: Final = 1e-9
_MOST_PIECES: Final = (
    2**18
)  # pieces of leaves for one region: more follow the measures better, and take longer
_MOST_CUTS: Final = 4  # pieces of a leaf along one axis
_TABLE_BOXES: Final = 2**10  # from so many boxes on two axes on, it pays to build a table
_FACETS: Final = 8  # projections of the tree that are cached: more save time, and need memory
_MOST_FACET_AXES: Final = 3  # projections onto more axes, but not all, are hardly smaller than the tree

# The share of each box, given by its corners, that lies in a region: 1 if all of it does, 0 if nothing.
Shares: TypeAlias = Callable[[Corners, Corners], Floats]


def widest_miss(density: BoxDensity, ranges: NodeRange) -> float:
    """The largest error that any box can have if the count of every node lies in its range.

    A box is whole nodes and parts of leaves. The parent of a whole node is cut by a side of the box, and the
    node lies inside of that side; a leaf of which a part is taken is cut by a side itself. So the error is
    at most the sum, over the sides, of what each has inside of it or cuts, and for each side the worst plane
    is taken. Answers that are too large and too small are treated apart. Nor is any answer, or any count,
    larger than that of everything. The proofs are in docs/proofs/boxes_bounds.md.
    """
    values = density.held.values
    above = _sides(density, np.maximum(values - ranges.low, 0.0), values)
    below = _sides(density, np.maximum(ranges.high - values, 0.0), ranges.high)
    whole = max(values[0] - ranges.low[0], ranges.high[0] - values[0])
    most = max(values[0], ranges.high[0])
    return float(min(most, max(above, below, whole)) * (1.0 + _ROUNDING))


def widest_miss_of_looks(density: BoxDensity, looks: Floats, rates: Floats, beta: float) -> float:
    """The largest error that any box can have with probability 1 - beta, if leaves are fixed.

    Every leaf has a look of its own, independent of the others, with noise of its rate; both are given for
    all nodes. Boxes hold, or meet, no more than so many different sets of leaves, and the sum of the
    looks at a set misses by no more than it may for all leaves.
    """
    leaves, values = density.nodes.leaves, density.held.values
    off = values - sum_upwards(density.families, np.where(leaves, looks, 0.0))
    above = _sides(density, np.maximum(off, 0.0), values)
    below = _sides(density, np.maximum(-off, 0.0), np.maximum(looks, 0.0))
    sets = 2 * math.prod(np.unique(each.lows[leaves]).size ** 2 for each in density.stretches)
    reach = laplace_mix_reach(np.ones(int(leaves.sum())), rates[leaves], beta / sets)
    return float((max(above, below, abs(off[0])) + reach) * (1.0 + _ROUNDING))


def _sides(density: BoxDensity, nodes: Floats, leaves: Floats) -> float:
    """The worst that nodes beside the sides of a box, and leaves across them, can do together."""
    parents, cut, total = density.parents, density.nodes.leaves, 0.0
    numbers = np.concatenate([nodes, leaves[cut]])
    for axis in density.stretches:
        lower = _worst((axis.lows[parents], axis.lows[cut]), (axis.lows, axis.highs[cut]), numbers)
        upper = _worst((axis.highs, axis.lows[cut]), (axis.highs[parents], axis.highs[cut]), numbers)
        total += lower + upper
    return total


def _worst(before: tuple[UInts, UInts], last: tuple[UInts, UInts], numbers: Floats) -> float:
    """The largest sum of numbers that one plane meets, each behind `before` and up to `last`."""
    first, behind = np.concatenate(before), np.concatenate(last)
    met = behind > first
    places, at = np.unique(np.concatenate([first[met], behind[met]]), return_inverse=True)
    steps = np.concatenate([numbers[met], -numbers[met]])
    return float(np.cumsum(np.bincount(at, steps, minlength=places.size)).max(initial=0.0))


@final
@dataclass(frozen=True, eq=False)
class BoxBounds:
    """Guaranteed bounds from the looks at the nodes of a tree; a look of one unit has the rate `unit`.

    They follow from the ranges of nodes and from the last looks at leaves. The proofs are in
    docs/proofs/boxes_bounds.md.
    """

    density: BoxDensity
    looks: TreeLooks
    unit: float
    _last_ranges: dict[float, NodeRange] = field(default_factory=dict, init=False, repr=False)

    def ranges(self, beta: float) -> NodeRange:
        """The counts of all nodes lie in their ranges at once with probability 1 - beta.

        The last ones are cached: the search for a quantile asks with the same beta again and again.
        """
        if beta not in self._last_ranges:
            families, nodes = self.density.families, len(self.density.nodes.lows)
            self._last_ranges.clear()
            self._last_ranges[beta] = bound_nodes(families, nodes, self.looks, self.unit, beta)
        return self._last_ranges[beta]

    def bounds(self, asked: LinearQuestion, beta: float) -> tuple[float, float]:
        """What the ranges of nodes allow, and what the last looks at leaves do, with half of beta each.

        The last look at a leaf decided nothing: given all others, those are independent noisy counts.
        """
        nodes, coefficients, part = propagate(asked, self.ranges(beta / 2)), asked.coefficients, beta / 4
        low, high = (self._last(asked.nodes, each) for each in (coefficients.least, coefficients.most))
        return max(nodes[0], low.value - low.reach(part)), min(nodes[1], high.value + high.reach(part))

    def error(self, beta: float) -> float:
        """No box at all misses the truth by more with probability 1 - beta: by nodes and by last looks."""
        last = self.looks.last(len(self.density.nodes.lows))
        looks, rates = self.looks.values[last], self.looks.rates(self.unit)[last]
        nodes = widest_miss(self.density, self.ranges(beta / 2))
        return min(nodes, widest_miss_of_looks(self.density, looks, rates, beta / 2))

    def _last(self, nodes: Ints, coefficients: Floats) -> Combination:
        """The sum of the last looks at leaves, each by the coefficient of the node that it is in."""
        first, behind = (end[nodes] for end in self._spans)
        order = np.argsort(first)
        weights = np.repeat(coefficients[order], (behind - first)[order])
        used = np.flatnonzero(weights)
        look = self._last_looks[used]
        value = float(weights[used] @ self.looks.values[look])
        return Combination(value, weights[used], self.looks.rates(self.unit)[look])

    @cached_property
    def _spans(self) -> tuple[Ints, Ints]:
        return spans_of(self.density.nodes, self.density.families)

    @cached_property
    def _last_looks(self) -> Ints:
        """The last look at each leaf, in the order of `spans_of`."""
        leaves = np.flatnonzero(self.density.nodes.leaves)
        ordered = leaves[np.argsort(self._spans[0][leaves])]
        return self.looks.last(len(self.density.nodes.lows))[ordered]


def propagate(asked: LinearQuestion, ranges: NodeRange) -> tuple[float, float]:
    """Bounds on a question if every node is in its range; those of the negated question hold as well."""
    low, high = _propagate(asked, ranges)
    if bool((asked.coefficients.least >= 0.0).all()):
        return low, high
    other = _propagate(asked.negated, ranges)
    return max(low, -other[1]), min(high, -other[0])


def _propagate(asked: LinearQuestion, ranges: NodeRange) -> tuple[float, float]:
    """The answer's part in each node, and the rest of its count, from the leaves up to the root.

    For a node that is split both follow from its children, and since both together are the node, each
    bounds the other.
    """
    part, rest = _own(asked.layers[-1], ranges)
    for layer in asked.layers[-2::-1]:
        sizes = asked.density.nodes.children[layer.nodes[layer.split]]
        starts = np.cumsum(sizes) - sizes
        sides = [NodeRange(*(np.add.reduceat(end, starts) for end in side)) for side in (part, rest)]
        part, rest = _own(layer, ranges)
        whole = ranges.at(layer.nodes[layer.split])
        for side, mine, other in ((part, *sides), (rest, *reversed(sides))):
            side.low[layer.split], side.high[layer.split] = mine.within(whole.minus(other))
    return float(part.low[0]), float(part.high[0])


def _own(layer: Layer, ranges: NodeRange) -> tuple[NodeRange, NodeRange]:
    """Part and rest by the ranges of the nodes of a layer themselves: coefficients times counts."""
    least, most, _, _ = layer.coefficients
    low, high = ranges.at(layer.nodes)
    part, rest = (
        NodeRange(np.minimum(a * low, a * high), np.maximum(b * low, b * high))
        for a, b in ((least, most), (1.0 - most, 1.0 - least))
    )
    return part, rest


def cover_region(density: BoxDensity, shares: Shares, box: Sequence[Stretches]) -> LinearQuestion:
    """The count of a public region within a box, a single one, as a question.

    Nodes that lie inside of both are taken whole, and leaves that are cut by the share inside. If counts
    are not spread evenly, such a leaf is first cut into smaller boxes.
    """
    nodes, layers = np.zeros(1, np.int64), []
    while True:
        layer = _cover_layer(density, shares, box, nodes)
        layers.append(layer)
        if not bool(layer.split.any()):
            return LinearQuestion(density, layers)
        nodes = children_of(density.nodes, nodes[layer.split])


def _cover_layer(density: BoxDensity, shares: Shares, box: Sequence[Stretches], nodes: Ints) -> Layer:
    """The nodes of one level that are inside, outside, or cut."""
    wholes = [own.at(nodes) for own in density.stretches]
    meets, inside = np.ones((2, nodes.size), bool)
    for own, asked in zip(wholes, box, strict=True):
        meets &= (asked.lows <= own.highs) & (asked.highs >= own.lows)
        inside &= (asked.lows <= own.lows) & (asked.highs >= own.highs)
    met, covered = np.flatnonzero(meets), np.zeros(nodes.size)
    parts = [own.at(met).within(asked) for own, asked in zip(wholes, box, strict=True)]
    lows, highs = ([part.lows for part in parts], [part.highs for part in parts])
    covered[met] = shares(np.stack(lows, axis=1), np.stack(highs, axis=1))
    whole = inside & (covered == 1.0)
    open_, leaves = (covered > 0.0) & ~whole, density.nodes.leaves[nodes]
    cut = np.flatnonzero(open_ & leaves)
    curved = max(1, sum(measure is not None for measure in density.measures))
    cuts = max(1, min(_MOST_CUTS, int((_MOST_PIECES / max(1, cut.size)) ** (1.0 / curved))))
    pieces = [
        _AxisCuts.of(measure, own.at(cut), own.at(cut).within(asked), cuts)
        for measure, own, asked in zip(density.measures, wholes, box, strict=True)
    ]
    share, known = _share_inside(pieces, shares), NodeCoefficients.equal(whole.astype(np.float64))
    partly = NodeCoefficients(np.zeros_like(share), np.ones_like(share), share, share)
    return Layer(nodes, open_ & ~leaves, known.with_others(cut, partly))


class _AxisCuts(NamedTuple):
    """Parts of stretches along an axis, a row for each, cut further; and the share of each piece."""

    lows: Corners
    highs: Corners
    share: Floats

    @staticmethod
    def of(measure: Measure, wholes: Stretches, parts: Stretches, cuts: int) -> _AxisCuts:
        """Cuts at equal steps of the measure, if there is any."""
        if measure is None or parts.before is None or parts.upto is None:
            return _AxisCuts(parts.lows[:, None], parts.highs[:, None], wholes.shares(parts)[:, None])
        targets = np.arange(1, cuts) / cuts * (parts.upto - parts.before)[:, None]
        inner = find_positions(measure, parts.before[:, None] + targets)
        inner = np.clip(inner, parts.lows[:, None], parts.highs[:, None])
        behind = parts.highs[:, None] + np.uint64(1)
        edges = np.concatenate([parts.lows[:, None], inner, behind], axis=1)
        lows, there = edges[:, :-1], edges[:, 1:] > edges[:, :-1]
        highs = np.where(there, edges[:, 1:] - np.uint64(1), lows)
        each = wholes.at(np.repeat(np.arange(len(lows)), cuts))
        share = each.shares(Stretches.of(measure, lows.ravel(), highs.ravel())).reshape(lows.shape)
        return _AxisCuts(lows, highs, np.where(there, share, 0.0))


def _share_inside(axes: Sequence[_AxisCuts], shares: Shares) -> Floats:
    """The share of each leaf in the region: that of all products of its pieces, added up."""
    chosen = np.indices([axis.share.shape[1] for axis in axes]).reshape(len(axes), -1)
    weight = np.prod([axis.share[:, at] for axis, at in zip(axes, chosen, strict=True)], axis=0)
    lows = np.stack([axis.lows[:, at].ravel() for axis, at in zip(axes, chosen, strict=True)], axis=1)
    highs = np.stack([axis.highs[:, at].ravel() for axis, at in zip(axes, chosen, strict=True)], axis=1)
    return np.asarray((weight * shares(lows, highs).reshape(weight.shape)).sum(axis=1))


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class BoxEngine:
    """Answers about boxes of positions, all from one density.

    `values` >= 0 and `variances` are those of the nodes; the values of leaves are what counts. Inside of a
    leaf the `measures` say where its count lies, and `refine` may say more: it returns a density in which
    every node has the same count. Guaranteed bounds follow from the `looks`, of which one unit has the rate
    `unit`. The rest is a model for standard errors: `widening` calibrates it, and values may be `doubted`
    where leaves are cut. `one_sided` is the part of the variance that a cut leaf has if all its rows lie on
    one side of the cut.
    """

    nodes: BoxNodes
    measures: Sequence[Measure]
    values: Floats
    variances: Floats
    looks: TreeLooks
    unit: float
    widening: float
    doubted: bool = False
    one_sided: float = 1.0
    refine: Callable[[BoxDensity], BoxDensity] | None = None
    _facets: dict[tuple[int, ...], _Facet] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def density(self) -> BoxDensity:
        """The solved tree."""
        density = BoxDensity.of(self.nodes, self.measures, self.values, self.variances, doubted=self.doubted)
        squares = self.one_sided * density.held.squares
        return replace(density, held=density.held._replace(squares=squares))

    @cached_property
    def shown(self) -> BoxDensity:
        """The solved tree, refined inside of its leaves: where the values of answers come from."""
        return self.density if self.refine is None else self.refine(self.density)

    @cached_property
    def certain(self) -> BoxBounds:
        """The guaranteed bounds of the looks."""
        return BoxBounds(self.density, self.looks, self.unit)

    def counts(self, lows: Corners, highs: Corners) -> Floats:
        """The value of each box."""
        found = np.zeros(len(lows))
        for some, facet in self._kinds(self._bounded(lows, highs)):
            found[some] = facet.counts(lows[some], highs[some])
        return found

    def errors(self, lows: Corners, highs: Corners, *, parts: int = 1) -> Floats:
        """The standard error of each box, or of the sum of each `parts` boxes, which do not overlap."""
        found = np.zeros(len(lows) // parts)
        bounded = self._bounded(lows, highs).reshape(-1, parts, self.nodes.axes).any(axis=1)
        for some, facet in self._kinds(np.asarray(bounded)):
            boxes = (some[:, np.newaxis] * parts + np.arange(parts)).ravel()
            found[some] = self._error(facet.variances(lows[boxes], highs[boxes], parts))
        return found

    def answer(self, terms: Sequence[SignedBox]) -> Answer:
        """The signed sum of boxes as one linear question."""
        least = least_sum(sign for _, _, sign in terms)
        lows, highs, signs = self._arrays(cancel_terms(terms))
        facet = self._facet(np.asarray(self._bounded(lows, highs).any(axis=0)))

        def asked(density: BoxDensity) -> LinearQuestion:
            return combine_boxes(density, facet.boxes(lows, highs), signs)

        answer = self._answer(asked, facet, partial(self.bounds, terms), least)
        if len(terms) != 1:
            return answer
        return replace(answer, spread=lambda: float(self.errors(lows, highs)[0]))

    def bounds(self, terms: Sequence[SignedBox], beta: float) -> tuple[float, float]:
        """The true sum lies between the bounds with probability 1 - beta."""
        lows, highs, signs = self._arrays(cancel_terms(terms))
        boxes = Stretches.along(self.measures, lows, highs)
        return self.certain.bounds(combine_boxes(self.density, boxes, signs), beta)

    def error(self, beta: float) -> float:
        """With probability 1 - beta no box at all misses the truth by more."""
        return self.certain.error(beta)

    def along(self, axis: int, low: Sequence[int], high: Sequence[int]) -> Curve:
        """Cumulative counts along an axis of what lies between the corners on the other axes."""
        lows, highs = np.array([low], np.uint64), np.array([high], np.uint64)
        bounded = self._bounded(lows, highs)[0]
        bounded[axis] = True
        facet = self._facet(bounded)
        leaves = np.flatnonzero(facet.shown.nodes.leaves)
        mass = facet.shown.held.values[leaves]
        for at, own, asked in zip(facet.axes, facet.shown.stretches, facet.boxes(lows, highs), strict=True):
            if at != axis:
                mass = mass * own.at(leaves).overlap(asked)
        return accumulate_along(facet.shown, facet.axes.index(axis), mass)

    def region(self, shares: Shares, low: Sequence[int], high: Sequence[int]) -> Answer:
        """How many lie in a region, given by the shares of boxes that it covers, and between the corners."""
        box = Stretches.along(self.measures, np.array([low], np.uint64), np.array([high], np.uint64))

        def asked(density: BoxDensity) -> LinearQuestion:
            return cover_region(density, shares, box)

        def bounds(beta: float) -> tuple[float, float]:
            return self.certain.bounds(asked(self.density), beta)

        return self._answer(asked, self._facet(np.ones(self.nodes.axes, bool)), bounds, 0.0)

    def points(self, rows: int) -> Corners:
        """Positions of synthetic rows, leaf by leaf."""
        return place_points(self.shown, rows)

    def _answer(
        self, asked: Callable[[BoxDensity], LinearQuestion], facet: _Facet, bounds: Bounds, least: float
    ) -> Answer:
        """The value of a question on a tree as it is shown, with the error that it has on the tree itself."""

        def error() -> float:
            return float(self._error(np.array(asked(facet.density).variance)))

        return Answer(asked(facet.shown).value, error, bounds, least)

    def _error(self, variances: Floats) -> Floats:
        return np.asarray(self.widening * np.sqrt(variances + 1.0))

    def _arrays(self, terms: Sequence[SignedBox]) -> tuple[Corners, Corners, Floats]:
        """The corners and the signs of terms, of which there may be none."""
        ends = (np.array([term[end] for term in terms], np.uint64) for end in (0, 1))
        lows, highs = (corners.reshape(len(terms), self.nodes.axes) for corners in ends)
        return lows, highs, np.array([float(sign) for _, _, sign in terms])

    def _kinds(self, bounded: Bools) -> Iterator[tuple[Ints, _Facet]]:
        """Questions that bound the same axes, and the tree along these."""
        kinds = bounded @ (1 << np.arange(self.nodes.axes))
        for kind in np.unique(kinds):
            some = np.flatnonzero(kinds == kind)
            yield some, self._facet(bounded[some[0]])

    def _bounded(self, lows: Corners, highs: Corners) -> Bools:
        """Which axes each box bounds: along the others it holds everything."""
        return np.asarray((lows > self.nodes.lows[0]) | (highs < self.nodes.highs[0]))

    def _facet(self, bounded: Bools) -> _Facet:
        """The tree for questions that bound these axes."""
        axes = tuple(np.flatnonzero(bounded).tolist())
        if not 0 < len(axes) <= _MOST_FACET_AXES:
            axes = tuple(range(self.nodes.axes))
        facet = self._facets.pop(axes, None) or _Facet.of(self.density, self.shown, list(axes))
        self._facets[axes] = facet
        for oldest in list(self._facets)[:-_FACETS]:
            self._facets.pop(oldest, None)
        return facet


@final
@dataclass(frozen=True, eq=False)
class _Facet:
    """A tree projected onto some axes: as it was solved, and as it is shown."""

    axes: list[int]
    density: BoxDensity
    shown: BoxDensity

    @staticmethod
    def of(density: BoxDensity, shown: BoxDensity, axes: list[int]) -> _Facet:
        """The tree along these axes, found once if it is shown as it was solved."""
        if len(axes) == density.nodes.axes:
            return _Facet(axes, density, shown)
        solved = density.onto(axes)
        return _Facet(axes, solved, solved if shown is density else shown.onto(axes))

    @cached_property
    def plane(self) -> Plane | None:
        """Two axes as a table, if it is not too large."""
        return Plane.of(self.shown) if len(self.axes) == 2 else None

    def counts(self, lows: Corners, highs: Corners) -> Floats:
        """The value of each box, given by corners along all axes."""
        if len(lows) < _TABLE_BOXES or self.plane is None:
            return sum_boxes(self.shown, self.boxes(lows, highs)).values
        return self.plane.counts(self.boxes(lows, highs))

    def variances(self, lows: Corners, highs: Corners, parts: int) -> Floats:
        """The variance of the sum of each `parts` boxes."""
        boxes = self.boxes(lows, highs)
        if parts == 1:
            return sum_boxes(self.density, boxes).variances
        return variances_of_sums(self.density, boxes, parts)

    def boxes(self, lows: Corners, highs: Corners) -> tuple[Stretches, ...]:
        """The boxes along these axes."""
        return Stretches.along(self.density.measures, lows[:, self.axes], highs[:, self.axes])
