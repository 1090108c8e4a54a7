"""The nodes of a tree that make up boxes: whole ones, as high as possible, and leaves that are cut.

From these follow the sums of many boxes, tables of two axes, raking, neighbours, and signed sums of boxes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Final, NamedTuple, final

import numpy as np

from partita.arrays import Bools, Floats, Ints, UInts
from partita.domain.axis import Axis
from partita.lazy import cached_property
from partita.public.axis.curve import Curve
from partita.public.boxes.density import BoxDensity, Stretches, positions_at
from partita.public.boxes.plan import Corners, SignedBox, blocks, children_of, runs, volumes

_BLOCK: Final = 2**16  # pairs of a box and a node in memory at once: more is faster until caches overflow
_MUCH_WORK: Final = 2**27  # boxes times nodes from which on loading compiled code pays
_MOST_CELLS: Final = 2**22  # cells of the largest table of two axes: more need memory, and time to build
_PLANE_BLOCK: Final = 2**20  # leaf-cell pairs in memory at once while a table is built
_TERMS_BLOCK: Final = 2**18  # pairs of overlapping terms in memory at once
_BINS: Final = 64  # bins of rank for raking: more follow the views more closely, and their noise
_ROUNDS: Final = 10  # rounds of raking
_LEAST_RATIO, _LARGEST_RATIO = 0.2, 5.0  # limits of one step of raking, for bins that hold little
_NOTHING: Final = 1e-9  # share of the total below which a bin counts as empty
_PREFIXES: Final = (0.3, 0.45, 0.62, 0.8)  # ranks whose prefixes stand for all in `prefix_variance`
_ONE_CELL: Final = np.uint64(1)


class NodeCoefficients(NamedTuple):
    """The coefficients that a linear question gives to the rows of nodes.

    Each lies between `least` and `most`; over a node, spread as the density says, they have a `mean` and
    a mean `square`.
    """

    least: Floats
    most: Floats
    mean: Floats
    square: Floats

    @staticmethod
    def equal(each: Floats) -> NodeCoefficients:
        """One coefficient for all rows of a node."""
        return NodeCoefficients(each, each, each, each**2)

    def with_others(self, places: Ints, others: NodeCoefficients) -> NodeCoefficients:
        """The same coefficients, with others in some places."""
        new = NodeCoefficients(*(each.copy() for each in self))
        for mine, theirs in zip(new, others, strict=True):
            mine[places] = theirs
        return new

    @property
    def negated(self) -> NodeCoefficients:
        """The coefficients of the same question with the other sign."""
        return NodeCoefficients(-self.most, -self.least, -self.mean, self.square)

    @property
    def variance(self) -> Floats:
        """How they vary inside of each node."""
        return np.maximum(self.square - self.mean**2, 0.0)


class Layer(NamedTuple):
    """Nodes of one level that matter: the children of nodes that are `split`, one level up.

    The coefficients of a node that is split itself are left to its children.
    """

    nodes: Ints
    split: Bools
    coefficients: NodeCoefficients


@final
@dataclass(frozen=True, eq=False)
class LinearQuestion:
    """A linear question: layers of nodes from the root down, of which those not split make up the tree."""

    density: BoxDensity
    layers: Sequence[Layer]

    @cached_property
    def nodes(self) -> Ints:
        """The nodes that are not split: they make up everything."""
        return np.concatenate([layer.nodes[~layer.split] for layer in self.layers])

    @cached_property
    def coefficients(self) -> NodeCoefficients:
        """Their coefficients."""
        each = [[series[~layer.split] for series in layer.coefficients] for layer in self.layers]
        return NodeCoefficients(*(np.concatenate(series) for series in zip(*each, strict=True)))

    @property
    def value(self) -> float:
        """The answer."""
        return float(self.coefficients.mean @ self.density.held.values[self.nodes])

    @property
    def variance(self) -> float:
        """The variance of the answer: that of the nodes, and for those that are cut, of where rows lie."""
        held = self.density.held.some(self.nodes)
        inside = self.coefficients.variance @ held.squares
        return float(self.coefficients.mean**2 @ held.variances + inside)

    @property
    def negated(self) -> LinearQuestion:
        """The same question with the other sign."""
        layers = [each._replace(coefficients=each.coefficients.negated) for each in self.layers]
        return LinearQuestion(self.density, layers)


class Cover(NamedTuple):
    """Pairs of a box and a node, and the share of the node that is inside of the box."""

    box: Ints
    node: Ints
    share: Floats


class _Pairs(NamedTuple):
    box: Ints
    node: Ints

    def where(self, chosen: Bools | slice) -> _Pairs:
        return _Pairs(self.box[chosen], self.node[chosen])


class BoxSums(NamedTuple):
    """For each box: its value, and the variance of that by the model."""

    values: Floats
    variances: Floats


def sum_boxes(density: BoxDensity, boxes: Sequence[Stretches]) -> BoxSums:
    """The sum of the nodes that make up each box.

    A node of which the share f is inside adds f times its value, and to the variance f^2 times its own,
    and f (1-f) times the squares of its leaves: all of a leaf's rows may lie on one side.
    """
    if _use_compiled(density, boxes):
        return _sum_compiled(density, boxes)
    count, held = boxes[0].lows.size, density.held
    found = BoxSums(np.zeros(count), np.zeros(count))
    for box, node, share in cover(density, boxes):
        inside = share * (1.0 - share) * held.squares[node]
        found.values[:] += np.bincount(box, share * held.values[node], minlength=count)
        found.variances[:] += np.bincount(box, share**2 * held.variances[node] + inside, minlength=count)
    return found


def variances_of_sums(density: BoxDensity, boxes: Sequence[Stretches], parts: int) -> Floats:
    """The variance of the sum of each `parts` boxes in a row, which do not overlap.

    Where several of them cut a leaf, what counts is the share of it that is inside of any.
    """
    if _use_compiled(density, boxes):
        return _sum_compiled(density, boxes, parts).variances
    count, nodes, held = boxes[0].lows.size // parts, density.nodes.children.size, density.held
    found, pairs, shares = np.zeros(count), [np.zeros(0, np.int64)], [np.zeros(0)]
    for box, node, share in cover(density, boxes):
        whole, row = share == 1.0, box // parts
        found += np.bincount(row[whole], held.variances[node[whole]], minlength=count)
        pairs.append((row * nodes + node)[~whole])
        shares.append(share[~whole])
    each, place = np.unique(np.concatenate(pairs), return_inverse=True)
    row, node = np.divmod(each, nodes)
    share = np.minimum(np.bincount(place, np.concatenate(shares), minlength=each.size), 1.0)
    inside = share * (1.0 - share) * held.squares[node]
    found += np.bincount(row, share**2 * held.variances[node] + inside, minlength=count)
    return found


def cover(density: BoxDensity, boxes: Sequence[Stretches]) -> Iterator[Cover]:
    """For each box the nodes that make it up, some pairs at a time, in no order.

    The tree is walked for many boxes at once, and memory does not grow with their number. Where there are
    few pairs in all, it is faster to look at each than to walk.
    """
    count = boxes[0].lows.size
    if count * density.nodes.children.size <= _BLOCK:
        yield from _cover_by_table(density, boxes)
        return
    open_ = [_Pairs(np.arange(count), np.zeros(count, np.int64))]
    while open_:
        pairs, inside = _find_overlaps(density, boxes, open_.pop())
        leaf = density.nodes.children[pairs.node] == 0
        full, cut, split = (pairs.where(chosen) for chosen in (inside, ~inside & leaf, ~inside & ~leaf))
        if full.box.size:
            yield Cover(*full, np.ones(full.box.size))
        if cut.box.size:
            yield Cover(*cut, _shares(density, boxes, cut))
        sizes = density.nodes.children[split.node]
        for part in blocks(sizes, _BLOCK):
            children = children_of(density.nodes, split.node[part])
            open_.append(_Pairs(np.repeat(split.box[part], sizes[part]), children))


def _cover_by_table(density: BoxDensity, boxes: Sequence[Stretches]) -> Iterator[Cover]:
    """From a table of all pairs: the nodes inside whose parents are not, and the leaves that are cut."""
    shape = boxes[0].lows.size, density.nodes.children.size
    inside, meets = np.ones(shape, bool), np.ones(shape, bool)
    for own, asked in zip(density.stretches, boxes, strict=True):
        first, last = asked.lows[:, None], asked.highs[:, None]
        inside &= (own.lows >= first) & (own.highs <= last)
        meets &= (own.lows <= last) & (own.highs >= first)
    whole = inside > inside.take(density.parents, axis=1)
    whole[:, 0] = inside[:, 0]
    tables = (whole, meets & (density.nodes.leaves > inside))
    full, cut = (_Pairs(*np.divmod(np.flatnonzero(table), shape[1])) for table in tables)
    yield Cover(*full, np.ones(full.box.size))
    yield Cover(*cut, _shares(density, boxes, cut))


def _find_overlaps(density: BoxDensity, boxes: Sequence[Stretches], pairs: _Pairs) -> tuple[_Pairs, Bools]:
    """The pairs of which the node meets the box, and whether it lies inside."""
    inside = np.ones(pairs.box.size, bool)
    for own, asked in zip(density.stretches, boxes, strict=True):
        lows, highs = own.lows[pairs.node], own.highs[pairs.node]
        first, last = asked.lows[pairs.box], asked.highs[pairs.box]
        meets = (first <= highs) & (last >= lows)
        inside &= (first <= lows) & (last >= highs)
        pairs, inside = pairs.where(meets), inside[meets]
    return pairs, inside


def _shares(density: BoxDensity, boxes: Sequence[Stretches], pairs: _Pairs) -> Floats:
    share = np.ones(pairs.box.size)
    for own, asked in zip(density.stretches, boxes, strict=True):
        whole = own.at(pairs.node)
        share *= whole.shares(whole.within(asked.at(pairs.box)))
    return share


def _use_compiled(density: BoxDensity, boxes: Sequence[Stretches]) -> bool:
    """Whether there is compiled code, and enough work to make up for loading it."""
    work = boxes[0].lows.size * density.nodes.starts.size
    return work >= _MUCH_WORK and find_spec("numba") is not None


def _sum_compiled(density: BoxDensity, boxes: Sequence[Stretches], parts: int = 1) -> BoxSums:
    """The sums of boxes by compiled code."""
    kernel = import_module("partita.public.compiled")
    nodes, curved = density.nodes, np.array([own.before is not None for own in density.stretches])
    own, asked = _ends(density.stretches), _ends(boxes)
    tree = nodes.lows, nodes.highs, nodes.starts, nodes.children
    corners = tuple(np.stack([getattr(box, end) for box in boxes], axis=1) for end in ("lows", "highs"))
    depth = 1 + nodes.levels.size * int(nodes.children.max())
    return BoxSums(*kernel.sums(tree, own, tuple(density.held), corners, asked[:2], curved, depth, parts))


def _ends(stretches: Sequence[Stretches]) -> tuple[Floats, Floats, Floats]:
    """The mass before stretches, up to their ends, and inside, along every axis; zero where it is even."""
    before = [np.zeros(each.lows.size) if each.before is None else each.before for each in stretches]
    upto = [np.zeros(each.lows.size) if each.upto is None else each.upto for each in stretches]
    mass = [each.mass for each in stretches]
    return np.stack(before, axis=1), np.stack(upto, axis=1), np.stack(mass, axis=1)


@final
@dataclass(frozen=True, eq=False)
class Plane:
    """A solved tree over two axes as a table, for many boxes at once: counts before each pair of edges.

    Edges are where a leaf begins or ends, and where the measure of the axis bends; between edges of either
    axis counts are evenly spread.
    """

    first: Curve
    second: Curve
    before: Floats

    @staticmethod
    def of(density: BoxDensity) -> Plane | None:
        """The table of a tree over two axes; None if it would be too large."""
        leaves = np.flatnonzero(density.nodes.leaves & (density.held.values > 0))
        first, second = (Curve.empty(density.edges(axis, leaves)) for axis in (0, 1))
        if first.ends.size * second.ends.size > _MOST_CELLS:
            return None
        table = np.zeros((first.ends.size, second.ends.size))
        axes = [_Runs.of(density, axis, leaves, curve) for axis, curve in enumerate((first, second))]
        for leaf, row, column in _cells(*axes):
            share = axes[0].shares(leaf, row) * axes[1].shares(leaf, column)
            held = share * density.held.values[leaves[leaf]]
            sums = np.bincount(row * table.shape[1] + column, held, minlength=table.size)
            table += sums.reshape(table.shape)
        before = np.zeros((table.shape[0] + 1, table.shape[1] + 1))
        before[1:, 1:] = table.cumsum(axis=0).cumsum(axis=1)
        return Plane(first, second, before)

    def counts(self, boxes: Sequence[Stretches]) -> Floats:
        """The value of each box."""
        (left, right), (bottom, top) = (
            (_Place.of(curve, box.lows, 0.0), _Place.of(curve, box.highs, 1.0))
            for curve, box in zip((self.first, self.second), boxes, strict=True)
        )
        outer = self._at(right, top) - self._at(left, top)
        return np.maximum(outer - (self._at(right, bottom) - self._at(left, bottom)), 0.0)

    def _at(self, one: _Place, other: _Place) -> Floats:
        low = self._row(one.piece, other)
        return np.asarray(low + one.share * (self._row(one.piece + 1, other) - low))

    def _row(self, row: Ints, other: _Place) -> Floats:
        low = self.before[row, other.piece]
        return np.asarray(low + other.share * (self.before[row, other.piece + 1] - low))


@final
@dataclass(frozen=True, eq=False)
class _Place:
    """A place on an axis: the piece in which it lies, and the share of that before it."""

    piece: Ints
    share: Floats

    @staticmethod
    def of(curve: Curve, positions: UInts, cells: float) -> _Place:
        """So many cells behind the start of each position: 0 in front of it, 1 behind it."""
        piece = np.searchsorted(curve.ends, positions)
        before = (positions - curve.starts[piece]).astype(np.float64) + cells
        return _Place(piece, before / curve.widths[piece])


@final
@dataclass(frozen=True, eq=False)
class _Runs:
    """Leaves along one axis, each a run of pieces."""

    first: Ints
    count: Ints
    leaves: Stretches
    pieces: Stretches

    @staticmethod
    def of(density: BoxDensity, axis: int, leaves: Ints, curve: Curve) -> _Runs:
        own = density.stretches[axis].at(leaves)
        first, last = np.searchsorted(curve.ends, own.lows), np.searchsorted(curve.ends, own.highs)
        pieces = Stretches.of(density.measures[axis], curve.starts, curve.ends)
        return _Runs(first, last - first + 1, own, pieces)

    def shares(self, leaf: Ints, piece: Ints) -> Floats:
        """The share of each leaf that lies in a piece of it."""
        return self.leaves.at(leaf).shares(self.pieces.at(piece))


def _cells(rows: _Runs, columns: _Runs) -> Iterator[tuple[Ints, Ints, Ints]]:
    """Every leaf with every cell of the table in it, some at a time."""
    sizes = rows.count * columns.count
    for some in blocks(sizes, _PLANE_BLOCK):
        leaf = np.repeat(np.arange(some.start, some.stop), sizes[some])
        at = runs(np.zeros(some.stop - some.start, np.int64), sizes[some])
        row, column = np.divmod(at, columns.count[leaf])
        yield leaf, rows.first[leaf] + row, columns.first[leaf] + column


# Raking: the leaves of a tree in rank space are drawn towards what is known about each column alone.


@final
@dataclass(frozen=True, eq=False)
class RankBins:
    """How leaves lie in bins of equal rank along one axis: each is spread evenly over its ranks.

    A leaf has the shares `in_first` and `in_last` in the bins where it begins and ends, and `in_each` in
    every bin between them.
    """

    first: Ints
    last: Ints
    in_first: Floats
    in_last: Floats
    in_each: Floats

    @staticmethod
    def of(starts: Floats, ends: Floats) -> RankBins:
        """Leaves from rank to rank, between 0 and 1."""
        starts, ends = starts * _BINS, np.maximum(starts, ends) * _BINS
        first, last = (np.clip(np.floor(at), 0, _BINS - 1).astype(np.int64) for at in (starts, ends))
        several = last > first
        width = np.where(several, ends - starts, 1.0)
        return RankBins(
            first,
            last,
            np.where(several, (first + 1 - starts) / width, 1.0),
            np.where(several, (ends - last) / width, 0.0),
            np.where(several, 1.0 / width, 0.0),
        )

    def marginal(self, values: Floats) -> Floats:
        """The sum of each bin, of leaves with these values."""
        held = np.bincount(self.first, values * self.in_first, minlength=_BINS)
        held += np.bincount(self.last, values * self.in_last, minlength=_BINS)
        begun = np.bincount(self.first + 1, values * self.in_each, minlength=_BINS + 1)
        ended = np.bincount(self.last, values * self.in_each, minlength=_BINS + 1)
        return np.asarray(held + np.cumsum(begun - ended)[:_BINS])

    def mean(self, ratios: Floats) -> Floats:
        """The mean of a number of each bin over the ranks of each leaf."""
        before = np.concatenate([np.zeros(1), np.cumsum(ratios)])
        between = np.where(self.last > self.first, before[self.last] - before[self.first + 1], 0.0)
        ends = self.in_first * ratios[self.first] + self.in_last * ratios[self.last]
        return np.asarray(ends + self.in_each * between)


@final
@dataclass(frozen=True, eq=False)
class ThinSides:
    """Some leaves in groups of the same side along an axis, and the share of all rows in each such side.

    They are those of special cells, and of slots with few ranks, next to a value that many rows share. Counts
    are never below zero, so that noise would add up over all leaves beside such a side.
    """

    leaves: Ints
    side: Ints
    shares: Floats

    @staticmethod
    def of(lows: UInts, highs: UInts, shares: Floats, thin: Bools) -> ThinSides:
        """Of leaves from position to position, with these shares of all rows, those that are `thin`."""
        leaves = np.flatnonzero(thin)
        ends = np.stack([lows[leaves], highs[leaves]], axis=1)
        _, first, side = np.unique(ends, axis=0, return_index=True, return_inverse=True)
        return ThinSides(leaves, side.reshape(-1), shares[leaves[first]])

    def drawn(self, values: Floats, total: float) -> Floats:
        """The values, where all leaves beside a thin side hold together what the side does."""
        held = np.bincount(self.side, values[self.leaves], minlength=self.shares.size)
        ratios = np.divide(self.shares * total, held, out=np.ones(held.shape), where=held > 0.0)
        drawn = values.copy()
        drawn[self.leaves] *= np.minimum(ratios, _LARGEST_RATIO)[self.side]
        return drawn


def rake(values: Floats, axes: Sequence[RankBins], weights: Floats, thin: Sequence[ThinSides] = ()) -> Floats:
    """Counts >= 0 of leaves with the same total, whose marginals are nearer to their targets.

    In rank space a column alone is even: every bin should hold as much as any other. The target of an
    axis is a mean of that, by its weight, and of the marginal that the leaves have to begin with. A bin that
    holds nothing stays as it is. Thin sides hold what the column alone says.
    """
    total = float(values.sum())
    if not total > 0.0:
        return values
    for sides in thin:
        values = sides.drawn(values, total)
    targets = [
        weight * total / _BINS + (1.0 - weight) * axis.marginal(values)
        for axis, weight in zip(axes, weights.tolist(), strict=True)
    ]
    for _ in range(_ROUNDS):
        for axis, target in zip(axes, targets, strict=True):
            held = axis.marginal(values)
            ratios = np.divide(target, held, out=np.ones_like(held), where=held > _NOTHING * total)
            values = values * axis.mean(np.clip(ratios, _LEAST_RATIO, _LARGEST_RATIO))
        for sides in thin:
            values = sides.drawn(values, total)
        values = values * (total / values.sum())
    return values


def prefix_variance(density: BoxDensity, axis: int, shares: Curve) -> float:
    """The mean variance of prefixes along an axis that end at some ranks of a distribution."""
    alone = density.onto([axis])
    ends = np.maximum(positions_at(shares, np.array(_PREFIXES)), np.uint64(1)) - np.uint64(1)
    boxes = Stretches.along(alone.measures, np.zeros((ends.size, 1), np.uint64), ends[:, None])
    return sum(
        float((part.share**2 * alone.held.variances[part.node]).sum()) for part in cover(alone, boxes)
    ) / len(_PREFIXES)


@final
@dataclass(frozen=True, eq=False)
class NodeSurroundings:
    """The cells around some nodes of a density, as far on every side as each node is wide.

    Labels and special cells have no cells beside them: their order means nothing.
    """

    density: BoxDensity
    axes: tuple[Axis, ...]
    nodes: Ints

    def expected(self) -> Floats:
        """The count of each node if it were as full as the cells around it; NaN where there are none."""
        lows, highs = self._corners
        margins = (self._margins(axis) for axis in range(len(self.axes)))
        down, up = (np.stack(side, axis=1) for side in zip(*margins, strict=True))
        outer = lows - down, highs + up
        own, all_ = volumes(lows, highs), volumes(*outer)
        around = np.maximum(0.0, _count(self.density, *outer) - self.density.held.values[self.nodes])
        there = np.any((down > 0) | (up > 0), axis=1)
        fullness = np.divide(around, all_ - own, out=np.full(own.size, np.nan), where=there & (all_ > own))
        return np.asarray(fullness * own)

    def beside(self, axis: int) -> tuple[Floats, Floats]:
        """The counts of each node if it were as full as the cells below, and above, along one axis.

        At the end of the axis that is the node's own count.
        """
        (lows, highs), (down, up) = self._corners, self._margins(axis)
        below, above = lows.copy(), highs.copy()
        below[:, axis] -= down
        above[:, axis] += up
        under, over = highs.copy(), lows.copy()
        under[:, axis] = np.where(down > 0, lows[:, axis] - _ONE_CELL, highs[:, axis])
        over[:, axis] = np.where(up > 0, highs[:, axis] + _ONE_CELL, lows[:, axis])
        return self._count_if_as_full(below, under), self._count_if_as_full(over, above)

    @property
    def _corners(self) -> tuple[Corners, Corners]:
        return self.density.nodes.lows[self.nodes], self.density.nodes.highs[self.nodes]

    def _margins(self, axis: int) -> tuple[UInts, UInts]:
        """By how many cells boxes can be moved down and up along an axis, at most by their width."""
        line = self.axes[axis]
        lows, highs = (corners[:, axis] for corners in self._corners)
        first, last = np.uint64(line.before), np.uint64(line.before + line.size - 1)
        ordered = (lows >= first) & (highs <= last) & (not line.labels)
        width, none = highs - lows + _ONE_CELL, np.uint64(0)
        down, up = (np.where(ordered, cells, none) for cells in (lows - first, last - highs))
        return np.minimum(width, down), np.minimum(width, up)

    def _count_if_as_full(self, lows: Corners, highs: Corners) -> Floats:
        """The counts of the nodes if they were as full as these boxes."""
        own = volumes(*self._corners)
        return _count(self.density, lows, highs) * (own / volumes(lows, highs))


def _count(density: BoxDensity, lows: Corners, highs: Corners) -> Floats:
    """The count of each box."""
    return sum_boxes(density, Stretches.along(density.measures, lows, highs)).values


# Signed sums of boxes as questions to a tree.


def cancel_terms(terms: Iterable[SignedBox]) -> list[SignedBox]:
    """The same sum; boxes that are added and taken away alike are left out."""
    times = Counter[tuple[tuple[int, ...], tuple[int, ...]]]()
    for low, high, sign in terms:
        times[low, high] += sign
    return [(low, high, sign) for (low, high), sign in times.items() if sign]


def combine_boxes(density: BoxDensity, boxes: tuple[Stretches, ...], signs: Floats) -> LinearQuestion:
    """The signed sum of boxes as one question.

    A node in which no box ends has one coefficient, the sum of the signs of the boxes around it: boxes that
    overlap cancel, on the highest nodes on which they can.
    """
    front = _Front.of(density, boxes, signs)
    layers = []
    while True:
        layer = front.layer()
        layers.append(layer)
        if not bool(layer.split.any()):
            return LinearQuestion(density, layers)
        front = front.below(layer)


class _TermPairs(NamedTuple):
    """Terms that end inside of nodes, which are numbered by their places in the layer."""

    term: Ints
    place: Ints

    def where(self, chosen: Bools | Ints) -> _TermPairs:
        return _TermPairs(self.term[chosen], self.place[chosen])


@final
@dataclass(frozen=True, eq=False)
class _Front:
    """The nodes of one level: what is added for all rows of each, and the terms that end in it."""

    density: BoxDensity
    boxes: tuple[Stretches, ...]
    signs: Floats
    nodes: Ints
    base: Floats
    pairs: _TermPairs

    @staticmethod
    def of(density: BoxDensity, boxes: tuple[Stretches, ...], signs: Floats) -> _Front:
        """The root, and all terms."""
        pairs = _TermPairs(np.arange(signs.size), np.zeros(signs.size, np.int64))
        root = np.zeros(1, np.int64)
        return _Front(density, boxes, signs, root, np.zeros(1), pairs)._settle()

    def layer(self) -> Layer:
        """What is known of these nodes."""
        open_ = np.zeros(self.nodes.size, bool)
        open_[self.pairs.place] = True
        leaves = self.density.nodes.leaves[self.nodes]
        cut = np.flatnonzero(open_ & leaves)
        known = NodeCoefficients.equal(self.base)
        return Layer(self.nodes, open_ & ~leaves, known.with_others(cut, self._in_leaves(cut)))

    def below(self, layer: Layer) -> _Front:
        """The children of the nodes that are split, which inherit what was added and the terms."""
        split = np.flatnonzero(layer.split)
        sizes = self.density.nodes.children[self.nodes[split]]
        starts = np.zeros(self.nodes.size, np.int64)
        starts[split] = np.cumsum(sizes) - sizes
        pairs = self.pairs.where(layer.split[self.pairs.place])
        many = self.density.nodes.children[self.nodes[pairs.place]]
        return _Front(
            self.density,
            self.boxes,
            self.signs,
            children_of(self.density.nodes, self.nodes[split]),
            np.repeat(self.base[split], sizes),
            _TermPairs(np.repeat(pairs.term, many), runs(starts[pairs.place], many)),
        )._settle()

    def _settle(self) -> _Front:
        """Only terms that end inside of a node stay with it; those around it are added for all of it."""
        inside, pairs = np.ones(self.pairs.term.size, bool), self.pairs
        for own, asked in zip(self.density.stretches, self.boxes, strict=True):
            node = self.nodes[pairs.place]
            first, last = asked.lows[pairs.term], asked.highs[pairs.term]
            meets = (first <= own.highs[node]) & (last >= own.lows[node])
            inside &= (first <= own.lows[node]) & (last >= own.highs[node])
            pairs, inside = pairs.where(meets), inside[meets]
        around = pairs.where(inside)
        base = self.base + np.bincount(around.place, self.signs[around.term], minlength=self.nodes.size)
        return _Front(self.density, self.boxes, self.signs, self.nodes, base, pairs.where(~inside))

    def _in_leaves(self, cut: Ints) -> NodeCoefficients:
        """The coefficients of leaves that are cut: boxes end in them, and may overlap there."""
        pairs = self.pairs.where(np.isin(self.pairs.place, cut))
        pairs = pairs.where(np.argsort(pairs.place, kind="stable"))
        node = self.nodes[pairs.place]
        wholes = [own.at(node) for own in self.density.stretches]
        parts = [whole.within(box.at(pairs.term)) for whole, box in zip(wholes, self.boxes, strict=True)]
        ends = _Ends(np.searchsorted(cut, pairs.place), self.signs[pairs.term], wholes, parts)
        return ends.coefficients(self.base[cut])


@final
@dataclass(frozen=True, eq=False)
class _Ends:
    """Parts of leaves that are added with a sign, in the order of the leaves, along each axis."""

    leaf: Ints
    signs: Floats
    wholes: Sequence[Stretches]
    parts: Sequence[Stretches]

    def coefficients(self, base: Floats) -> NodeCoefficients:
        """Those of each leaf, to all of which `base` is added before."""
        shares = _product([whole.shares(part) for whole, part in zip(self.wholes, self.parts, strict=True)])
        mean = self._sum(self.signs * shares, base.size)
        square = self._sum(self.signs**2 * shares, base.size)
        sides = [np.maximum(side * self.signs, 0.0) for side in (1, -1)]
        most, least = np.zeros((2, base.size))
        for side, end in zip(sides, (most, least), strict=True):
            np.maximum.at(end, self.leaf, side)
        for one, other in self._overlaps():
            leaf, both = self.leaf[one], self.signs[one] * self.signs[other]
            axes = zip(self.wholes, self.parts, strict=True)
            common = [whole.at(one).shares(part.at(one).within(part.at(other))) for whole, part in axes]
            square += np.bincount(leaf, 2.0 * both * _product(common), minlength=base.size)
            for side, end in zip(sides, (most, least), strict=True):
                together = leaf[(side[one] > 0) & (side[other] > 0)]
                end[together] = self._sum(side, base.size)[together]
        return NodeCoefficients(base - least, base + most, base + mean, base**2 + 2 * base * mean + square)

    def _sum(self, numbers: Floats, count: int) -> Floats:
        return np.asarray(np.bincount(self.leaf, numbers, minlength=count), np.float64)

    def _overlaps(self) -> Iterator[tuple[Ints, Ints]]:
        """Parts of the same leaf that overlap, in pairs; some of them at a time."""
        each = np.arange(self.leaf.size)
        later = np.searchsorted(self.leaf, self.leaf, side="right") - each - 1
        for some in blocks(later, _TERMS_BLOCK):
            one, other = np.repeat(each[some], later[some]), runs(each[some] + 1, later[some])
            overlap = np.ones(one.size, bool)
            for part in self.parts:
                overlap &= part.lows[one] <= part.highs[other]
                overlap &= part.lows[other] <= part.highs[one]
            yield one[overlap], other[overlap]


def _product(shares: Sequence[Floats]) -> Floats:
    return np.asarray(np.prod(np.array(shares), axis=0))
