"""A solved tree of boxes: the count of each node, its variance, and where inside of a leaf rows lie.

Inside of a leaf counts are spread along each axis by a measure, independently of the other axes. A measure is
a curve of total one, cumulative over all positions, or None if every position is as likely as any other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import combinations
from typing import Final, NamedTuple, TypeAlias, final

import numpy as np

from partita.arrays import Bools, Floats, Ints, UInts, changes
from partita.lazy import cached_property
from partita.public.axis.curve import Curve, apportion
from partita.public.axis.shrinkage import EMPTY, project_on_totals, shrink
from partita.public.axis.tree_solver import Families
from partita.public.boxes.plan import BoxNodes, Corners, children_of, families_of, spans_of, sum_upwards

Measure: TypeAlias = Curve | None

# A stretch with a smaller share of the measure is taken to be even: the rest would be rounding.
_LEAST_MASS: Final = 1e-9
_ONE: Final = np.uint64(1)


def to_measure(curve: Curve) -> Measure:
    """A curve scaled to a total of one; None if it holds nothing."""
    return Curve(curve.ends, curve.counts / curve.total) if curve.total > 0 else None


@final
@dataclass(frozen=True, eq=False)
class Stretches:
    """Stretches low, ..., high along one axis, and the mass before each and up to its end.

    A stretch that holds next to nothing of the measure counts by its number of positions, as all do
    if there is no measure. Positions may need all 64 bits: differences are taken before they are floats.
    """

    lows: UInts
    highs: UInts
    before: Floats | None = None
    upto: Floats | None = None

    @staticmethod
    def of(measure: Measure, lows: UInts, highs: UInts) -> Stretches:
        """The stretches with their mass by a measure."""
        lows, highs = np.ascontiguousarray(lows), np.ascontiguousarray(highs)
        if measure is None:
            return Stretches(lows, highs)
        before = np.where(lows > 0, measure.upto(np.where(lows > 0, lows - _ONE, lows)), 0.0)
        return Stretches(lows, highs, before, measure.upto(highs))

    @staticmethod
    def along(measures: Sequence[Measure], lows: UInts, highs: UInts) -> tuple[Stretches, ...]:
        """The stretches of boxes, given by their corners, along each axis."""
        return tuple(Stretches.of(each, lows[:, a], highs[:, a]) for a, each in enumerate(measures))

    @cached_property
    def cells(self) -> Floats:
        """The number of positions of each."""
        return np.asarray((self.highs - self.lows).astype(np.float64) + 1.0)

    @cached_property
    def mass(self) -> Floats:
        """The mass of each, or zero if that is too little to say where in the stretch it lies."""
        if self.before is None or self.upto is None:
            return np.zeros(self.lows.size)
        mass = self.upto - self.before
        return np.where(mass > _LEAST_MASS, mass, 0.0)

    def at(self, places: Ints | slice) -> Stretches:
        """Some of them."""
        ends = (None if end is None else end[places] for end in (self.before, self.upto))
        return Stretches(self.lows[places], self.highs[places], *ends)

    def within(self, other: Stretches) -> Stretches:
        """What each has in common with one of the other stretches, which it must meet."""
        lows, highs = np.maximum(self.lows, other.lows), np.minimum(self.highs, other.highs)
        if self.before is None or other.before is None or self.upto is None or other.upto is None:
            return Stretches(lows, highs)
        before, upto = np.maximum(self.before, other.before), np.minimum(self.upto, other.upto)
        return Stretches(lows, highs, before, upto)

    def shares(self, part: Stretches) -> Floats:
        """The share of each that lies in a part of it."""
        even = part.cells / self.cells
        if part.before is None or part.upto is None:
            return np.asarray(even)
        return np.divide(np.maximum(part.upto - part.before, 0.0), self.mass, out=even, where=self.mass > 0)

    def overlap(self, other: Stretches) -> Floats:
        """The share of each that lies in one other stretch; nothing if they do not meet."""
        meets = (self.lows <= other.highs) & (self.highs >= other.lows)
        share = np.zeros(self.lows.size)
        met = self.at(np.flatnonzero(meets))
        share[meets] = met.shares(met.within(other))
        return share


class NodeCounts(NamedTuple):
    """For some nodes: their counts, the variances of these, and the sums of squared counts of leaves."""

    values: Floats
    variances: Floats
    squares: Floats

    def some(self, nodes: Ints | Bools) -> NodeCounts:
        """Of some of the nodes."""
        return NodeCounts(*(each[nodes] for each in self))

    def gathered(self, groups: Ints, count: int) -> NodeCounts:
        """The sum over each group of nodes."""
        return NodeCounts(
            *(np.asarray(np.bincount(groups, each, minlength=count), np.float64) for each in self)
        )

    @staticmethod
    def join(parts: Sequence[NodeCounts]) -> NodeCounts:
        """Those of all parts, one after another."""
        return NodeCounts(*(np.concatenate(each) for each in zip(*parts, strict=True)))


@final
@dataclass(frozen=True, eq=False)
class BoxDensity:
    """A tree of boxes with what its nodes hold; inside of a leaf that is spread by the measures.

    Along every axis the nodes of one level have stretches that are the same or apart.
    """

    nodes: BoxNodes
    measures: tuple[Measure, ...]
    held: NodeCounts

    @staticmethod
    def of(
        nodes: BoxNodes,
        measures: Sequence[Measure],
        values: Floats,
        variances: Floats,
        *,
        doubted: bool = False,
    ) -> BoxDensity:
        """The density of leaves with these values >= 0; every other node holds the sum of its leaves.

        What a leaf holds if it is cut may be its value or, if that is `doubted`, as much more as its
        variance says.
        """
        sums = sum_upwards(families_of(nodes), values)
        squares = sums**2 + variances if doubted else sums**2
        return BoxDensity(nodes, tuple(measures), NodeCounts(sums, variances, squares))

    @cached_property
    def families(self) -> list[Families]:
        """Every level below the root, from the root down."""
        return families_of(self.nodes)

    @cached_property
    def stretches(self) -> tuple[Stretches, ...]:
        """The nodes along each axis."""
        return Stretches.along(self.measures, self.nodes.lows, self.nodes.highs)

    @cached_property
    def parents(self) -> Ints:
        """The parent of each node; the root's is the root."""
        below = [family.parents.repeat(family.sizes) for family in self.families]
        return np.concatenate([np.zeros(1, np.int64), *below])

    @property
    def total(self) -> float:
        """The count of everything."""
        return float(self.held.values[0])

    def edges(self, axis: int, leaves: Ints) -> UInts:
        """The ends of pieces of an axis inside of which all these leaves are evenly spread.

        They are where a leaf begins or ends, and where the measure of the axis bends.
        """
        own, measure = self.stretches[axis], self.measures[axis]
        lows, bends = own.lows[leaves], own.highs[:1] if measure is None else measure.ends
        return np.unique(np.concatenate([own.highs[leaves], lows[lows > 0] - np.uint64(1), bends]))

    def onto(self, axes: Sequence[int]) -> BoxDensity:
        """The tree projected onto some of its axes: boxes that are equal there are merged.

        Its answers to questions about these axes alone are those of the whole tree, to the last term.
        Nodes of one level that have the same box are one node. If some of them are leaves and others
        are not, the leaves stay together as one more child of that node, with its box.
        """
        chosen = list(axes)
        level = _MergedLevel.of(self, chosen)
        levels = [level]
        while bool(level.expanded.any()):
            level = level.below(self, chosen)
            levels.append(level)
        measures = tuple(self.measures[axis] for axis in chosen)
        return BoxDensity(_join_levels(levels), measures, NodeCounts.join([each.sums for each in levels]))


@final
@dataclass(frozen=True, eq=False)
class _MergedLevel:
    """Members of one level, those with the same box merged into groups.

    A member is an expanded node of the tree, or several leaves together (their node is -1).
    """

    lows: Corners
    highs: Corners
    groups: Ints
    nodes: Ints
    held: NodeCounts
    parents: Ints
    """The group above each group."""

    @staticmethod
    def of(density: BoxDensity, axes: list[int]) -> _MergedLevel:
        """The root alone."""
        zero = np.zeros(1, np.int64)
        expanded = np.where(density.nodes.leaves[:1], -1, zero)
        corners = (density.nodes.lows[:1, axes], density.nodes.highs[:1, axes])
        return _MergedLevel(*corners, zero, expanded, density.held.some(zero), zero)

    @cached_property
    def expanded(self) -> Bools:
        """Which groups have a member that is expanded."""
        return np.bincount(self.groups, self.nodes >= 0, minlength=len(self.lows)) > 0

    @cached_property
    def sums(self) -> NodeCounts:
        """What each group holds."""
        return self.held.gathered(self.groups, len(self.lows))

    def below(self, density: BoxDensity, axes: list[int]) -> _MergedLevel:
        """The children of the members, and the leaves of groups that are expanded, put in groups."""
        tree, split = density.nodes, self.nodes >= 0
        above = self.nodes[split]
        children = children_of(tree, above)
        left = ~split & self.expanded[self.groups]
        parents = np.concatenate([np.repeat(self.groups[split], tree.children[above]), self.groups[left]])
        lows = np.concatenate([tree.lows[children][:, axes], self.lows[self.groups[left]]])
        highs = np.concatenate([tree.highs[children][:, axes], self.highs[self.groups[left]]])
        nodes = np.concatenate([np.where(tree.leaves[children], -1, children), self.nodes[left]])
        first, groups = _group_equal(parents, lows, highs)
        held = NodeCounts.join([density.held.some(children), self.held.some(left)])
        level = _MergedLevel(lows[first], highs[first], groups, nodes, held, parents[first])
        return level._merge_leaves()

    def _merge_leaves(self) -> _MergedLevel:
        """The leaves of each group as one member."""
        leaves = self.nodes < 0
        there, member = np.unique(self.groups[leaves], return_inverse=True)
        held = NodeCounts.join([self.held.some(~leaves), self.held.some(leaves).gathered(member, there.size)])
        return _MergedLevel(
            self.lows,
            self.highs,
            np.concatenate([self.groups[~leaves], there]),
            np.concatenate([self.nodes[~leaves], np.full(there.size, -1)]),
            held,
            self.parents,
        )


def _group_equal(parents: Ints, lows: Corners, highs: Corners) -> tuple[Ints, Ints]:
    """Members with the same parent and the same box: the first of each group, and the group of each.

    Groups are in the order of their parents.
    """
    keys = [*highs.T, *lows.T, parents]
    order = np.lexsort(keys)
    new = changes(*(key[order] for key in keys))
    groups = np.empty(order.size, np.int64)
    groups[order] = np.cumsum(new) - 1
    return order[new], groups


def _join_levels(levels: Sequence[_MergedLevel]) -> BoxNodes:
    sizes = np.array([len(level.lows) for level in levels])
    children = [
        np.bincount(below.parents, minlength=size) for below, size in zip(levels[1:], sizes, strict=False)
    ]
    counts = np.concatenate([*children, np.zeros(int(sizes[-1]), np.int64)]).astype(np.int64)
    return BoxNodes(
        levels=sizes,
        lows=np.concatenate([level.lows for level in levels]),
        highs=np.concatenate([level.highs for level in levels]),
        starts=1 + np.cumsum(counts) - counts,
        children=counts,
    )


def accumulate_along(density: BoxDensity, axis: int, counts: Floats) -> Curve:
    """Cumulative counts along an axis, of leaves with these counts in the order of their nodes.

    Pieces end where a leaf that holds anything begins or ends, and where the measure of the axis bends.
    Only parts of counts are added up and nothing is taken away, so that nothing is lost to rounding
    however wide the axis is.
    """
    leaves = np.flatnonzero(density.nodes.leaves)
    ends = density.edges(axis, leaves[counts > 0])
    pieces = Stretches.of(density.measures[axis], Curve.empty(ends).starts, ends)
    sums = np.zeros(ends.size)
    for stretches, held in _disjoint_layers(density.stretches[axis].at(leaves), counts):
        # Stretches of a layer are apart, and cut none of the pieces.
        place = np.minimum(np.searchsorted(stretches.highs, pieces.lows), held.size - 1)
        inside = np.flatnonzero(
            (stretches.lows[place] <= pieces.lows) & (stretches.highs[place] >= pieces.highs)
        )
        whole = stretches.at(place[inside])
        sums[inside] += held[place[inside]] * whole.shares(pieces.at(inside))
    return Curve(ends, sums)


def _disjoint_layers(stretches: Stretches, counts: Floats) -> Iterator[tuple[Stretches, Floats]]:
    """Stretches that hold anything, any two nested or apart, in layers of disjoint ones, with their counts.

    Equal stretches are added up. Then all are put in the order of their lows, wide ones first; those that
    lie in equally many others are a layer.
    """
    some = np.flatnonzero(counts > 0)
    lows, highs = stretches.lows[some], stretches.highs[some]
    order = np.lexsort((~highs, lows))
    lows, highs = lows[order], highs[order]
    new = changes(lows, highs)
    sums = np.bincount(np.cumsum(new) - 1, counts[some[order]], minlength=int(new.sum()))
    merged, held = stretches.at(some[order[new]]), np.asarray(sums, np.float64)
    depth = np.arange(held.size) - np.searchsorted(np.sort(merged.highs), merged.lows)
    for each in np.unique(depth).tolist():
        layer = np.flatnonzero(depth == each)
        yield merged.at(layer), held[layer]


# How much two columns depend on each other: the score of a pair is the sum over the 8 x 8 cells of their top
# ranks of |count - m|, where m is what the cell would hold if the columns were independent: a whole number,
# made of released views.

TOP_BITS: Final = 3  # Two to this many ranks of each axis are told apart
# No axis matters less, so that all are halved in the end; and no score says more: |count - m| adds up to at
# most two for each row if the counts and m have the same total.
_LEAST, _MOST = 0.03, 2.0
# Importance grows by this power of what a score tells; chosen by measured errors, like `rank_schedule`.
_POWER: Final = 0.7


def pairs(axes: int) -> list[tuple[int, int]]:
    """All pairs of axes, in the order of their scores."""
    return list(combinations(range(axes), 2))


def expected_counts(rows: int, one: Floats, other: Floats) -> Ints:
    """What each cell holds if so many rows have these shares along two axes, and independently so.

    >>> expected_counts(100, np.array([0.5, 0.5]), np.array([0.9, 0.1])).tolist()
    [45, 5, 45, 5]
    """
    return np.rint(float(rows) * np.outer(one, other)).astype(np.int64).ravel()


def importance(scores: Sequence[int], scale: Fraction, rows: int, shares: Sequence[Floats]) -> Floats:
    """For each axis how much it tells about another one.

    Of every score what chance alone may give is taken away: about sqrt(2 m / pi) in each cell, and the
    scale of the noise. What remains, per row, counts for both axes of the pair, and an axis has the best
    of its pairs.
    """
    best = np.full(len(shares), _LEAST)
    for (one, other), score in zip(pairs(len(shares)), scores, strict=True):
        chance = math.sqrt(2.0 * rows / math.pi) * float(np.sqrt(np.outer(shares[one], shares[other])).sum())
        excess = (float(score) - chance - float(scale)) / max(1, rows)
        best[[one, other]] = np.maximum(best[[one, other]], excess)
    return np.asarray(np.minimum(best, _MOST) ** _POWER)


# Positions at which a fraction of a stretch, or of a curve, is reached.

WORD: Final = 2**64  # Fractions are counted in units of one over this
_HALF: Final = np.uint64(32)
_LOWER: Final = np.uint64(2**32 - 1)
_LARGEST: Final = 1.0 - 2.0**-53


def scale_span(turns: UInts, span: UInts) -> UInts:
    """The integer part of (span + 1) turns / 2^64: products of halves, so that nothing overflows.

    >>> scale_span(np.array([2**63], np.uint64), np.array([2**63], np.uint64)).item() == 2**62
    True
    """
    width = span + np.uint64(1)
    high, low = turns >> _HALF, turns & _LOWER
    above, under = width >> _HALF, width & _LOWER
    across, back = high * under, low * above
    carry = (low * under >> _HALF) + (across & _LOWER) + (back & _LOWER)
    return np.asarray(high * above + (across >> _HALF) + (back >> _HALF) + (carry >> _HALF))


def locate(curve: Curve, targets: Floats) -> tuple[Ints, Floats]:
    """The piece in which the curve reaches each target, and the part of the piece's count before that."""
    piece = np.minimum(np.searchsorted(curve.before[1:], targets, side="right"), curve.ends.size - 1)
    held = curve.counts[piece]
    inside = np.divide(targets - curve.before[piece], held, out=np.zeros(held.shape), where=held > 0)
    return piece, np.clip(inside, 0.0, 1.0)


def find_positions(curve: Curve, targets: Floats) -> UInts:
    """The position in which the curve passes each target."""
    piece, inside = locate(curve, targets)
    turns = (np.minimum(inside, _LARGEST) * WORD).astype(np.uint64)
    return np.asarray(curve.starts[piece] + scale_span(turns, curve.ends[piece] - curve.starts[piece]))


# Rank coordinates of an axis: slots that hold about equally many rows each, by a released curve.

_EVEN_SHARE: Final = 1e-6  # spread evenly, so that every cell has some rank of its own


def distribution(curve: Curve) -> Curve:
    """The shares of all pieces of a curve; a millionth is spread evenly, so that no cell has none.

    >>> distribution(Curve(np.array([0, 3], np.uint64), np.array([3.0, 1.0]))).counts.round(3).tolist()
    [0.75, 0.25]
    """
    even = curve.widths / curve.widths.sum()
    shares = curve.counts / curve.total if curve.total > 0 else even
    return Curve(curve.ends, (1.0 - _EVEN_SHARE) * shares + _EVEN_SHARE * even)


def rank_edges(shares: Curve, bits: int) -> UInts:
    """Where each of 2^bits slots begins, and where the last one ends, in a distribution.

    They are positions from 0 to the width of the axis that never decrease: a heavy cell makes slots
    of no width.

    >>> rank_edges(distribution(Curve(np.array([0, 3], np.uint64), np.array([3.0, 1.0]))), 2).tolist()
    [0, 0, 1, 1, 4]
    """
    inner = positions_at(shares, np.arange(1.0, 2**bits) / 2**bits)
    ends = np.array([0, int(shares.ends[-1]) + 1], np.uint64)
    return np.concatenate([ends[:1], inner, ends[1:]])


def positions_at(shares: Curve, ranks: Floats) -> UInts:
    """The position nearest to each rank between 0 and 1: how many positions a distribution has before it.

    They need all 64 bits, so a place inside a piece becomes an integer before it is added.
    """
    piece, inside = locate(shares, ranks * shares.total)
    widths = shares.ends - shares.starts + np.uint64(1)
    steps = np.minimum(np.rint(inside * shares.widths[piece]).astype(np.uint64), widths[piece])
    return np.asarray(shares.starts[piece] + steps)


def ranks_of(shares: Curve, edges: UInts) -> Floats:
    """The rank at which each position begins in a distribution, from 0 to 1."""
    return np.where(edges > 0, shares.upto(np.maximum(edges, np.uint64(1)) - np.uint64(1)), 0.0)


def trimmed(edges: UInts) -> UInts:
    """Edges of fewer slots, still a power of two, that lie at the same places.

    Halvings that no longer separate positions are left out, as those of an axis of few cells.

    >>> trimmed(np.array([0, 0, 1, 1, 4], np.uint64)).tolist()
    [0, 1, 4]
    """
    while edges.size > 2 and np.count_nonzero(np.diff(edges[::2])) == np.count_nonzero(np.diff(edges)):
        edges = edges[::2]
    return edges


# Synthetic points that lie as a solved tree says: a function of it, without any randomness.

_BASES: Final = (2, 3, 5, 7, 11, 13)  # one prime for each axis, of which there are at most six


def place_points(density: BoxDensity, rows: int) -> Corners:
    """Positions of so many rows, leaf by leaf.

    Every run of leaves that are neighbours in the tree gets its share of the rows to one row. Inside of
    a leaf, successive points of a sequence that fills cubes evenly are carried over by the measures.
    """
    leaves = np.flatnonzero(density.nodes.leaves)
    leaves = leaves[np.argsort(spans_of(density.nodes, density.families)[0][leaves])]
    weights = density.held.values[leaves]
    if not weights.sum() > 0:  # nothing was counted: spread the rows over the volume, by the measures
        root = np.zeros(leaves.size, np.int64)
        parts = [own.at(root).shares(own.at(leaves)) for own in density.stretches]
        weights = np.asarray(np.prod(np.array(parts), axis=0))
    leaf = np.repeat(leaves, apportion(rows, weights))
    axes = zip(density.measures, density.stretches, _BASES, strict=False)
    places = [_place_inside(measure, own.at(leaf), _mirrored(rows, base)) for measure, own, base in axes]
    return np.stack(places, axis=1)


def _mirrored(rows: int, base: int) -> UInts:
    """The numbers 1, 2, ... with their digits mirrored at the point, as fractions of 2^64.

    Along one axis every run of them is evenly spread, and for different prime bases together, too
    [Halton 1960].
    """
    left, found, unit = np.arange(1, rows + 1, dtype=np.uint64), np.zeros(rows, np.uint64), WORD
    while bool(left.any()):
        left, digit = np.divmod(left, np.uint64(base))
        unit //= base
        found += digit * np.uint64(unit)
    return found


def _place_inside(measure: Measure, stretches: Stretches, turns: UInts) -> UInts:
    """The position in each stretch at which that fraction of it, of 2^64, is reached."""
    even = stretches.lows + scale_span(turns, stretches.highs - stretches.lows)
    if measure is None or stretches.before is None:
        return even
    targets = stretches.before + turns.astype(np.float64) / WORD * stretches.mass
    curved = np.clip(find_positions(measure, targets), stretches.lows, stretches.highs)
    return np.where(stretches.mass > 0, curved, even)


# From the looks at a tree of boxes to one estimate for every node: shrink, put together, never negative.

_BELIEF: Final = 20.0  # families' worth of belief that shrunk sums err by their variances: more adapts less

# Values, noise scales and expected counts of leaves to means and variances.
Shrinkage: TypeAlias = Callable[[Floats, Floats, Floats], tuple[Floats, Floats]]
# Empirical Bayes, begun with the belief that nearly all leaves are empty.
SHRINK_SPARSE: Final[Shrinkage] = partial(shrink, spikes=EMPTY)


def keep_noisy(values: Floats, scales: Floats, expected: Floats) -> tuple[Floats, Floats]:
    """Noisy counts as they are, whatever was expected."""
    return values, 2.0 * scales**2


class Estimates(NamedTuple):
    """A value and a variance for every node."""

    values: Floats
    variances: Floats


@final
@dataclass(frozen=True, eq=False)
class BoxSolution:
    """Noisy counts of all nodes of a tree, with their variances, put together.

    Leaves are shrunk, by empirical Bayes unless another way is given. From the leaves up, an expanded
    node is the best of its own noisy count and its children's sum. From the root down, siblings share
    what their sum lacks by their variances, and are projected on counts >= 0 with their parent's sum.
    An infinite variance is that of a number that says nothing. What is `expected` of a leaf, before it is
    looked at, is its part of what its parent was seen to hold, unless something else is known.
    """

    families: Sequence[Families]
    expanded: Bools
    noisy: Floats
    variances: Floats
    shrinkage: Shrinkage = SHRINK_SPARSE
    expected: Floats | None = None
    """For each node; NaN where nothing is known."""

    @cached_property
    def raised(self) -> Estimates:
        """What each node and everything below it say about its count."""
        values, variances = self.noisy.copy(), self.variances.copy()
        scales = np.sqrt(self.variances / 2)
        for family in reversed(self.families):
            seen = _sums(family, values, variances)
            leaves = family.nodes.start + np.flatnonzero(~self.expanded[family.nodes])
            part = family.spread(self.noisy[family.parents] / family.sizes)
            known = part if self.expected is None else self.expected[family.nodes]
            expected = np.where(np.isnan(known), part, known)[leaves - family.nodes.start]
            values[leaves], variances[leaves] = self.shrinkage(self.noisy[leaves], scales[leaves], expected)
            variances[family.nodes] *= self._understated(family, seen, _sums(family, values, variances))
            below, doubt = _sums(family, values, variances)
            own = 1.0 / self.variances[family.parents]
            variances[family.parents] = 1.0 / (own + 1.0 / doubt)
            values[family.parents] = variances[family.parents] * (
                own * self.noisy[family.parents] + below / doubt
            )
        return Estimates(values, variances)

    def _understated(self, family: Families, seen: Estimates, shrunk: Estimates) -> float:
        """By how much the variances of sums of siblings are too small once their leaves are shrunk.

        Siblings are shrunk alike, so their sum may miss by more than each of them. The sums as they were
        seen miss by their variances. By how much more or less the shrunk ones do is told by the parents'
        own noisy counts, which have noise of their own; some families of belief that all is well are added.
        """
        told = np.isfinite(self.variances[family.parents])
        own, noise = self.noisy[family.parents], self.variances[family.parents]
        squares = (shrunk.values - own) ** 2 - (seen.values - own) ** 2 + seen.variances
        weight = (shrunk.variances[told] / (shrunk.variances + noise)[told]) ** 2
        belief = _BELIEF * float(np.median(weight)) if weight.size else 1.0
        missed = float(weight @ (squares / shrunk.variances)[told])
        return max(1.0, (missed + belief) / (float(weight.sum()) + belief))

    @cached_property
    def estimates(self) -> Estimates:
        """What all looks say: counts >= 0, each the sum of its children, and how far they may be off."""
        values, variances = self.raised.values.copy(), self.raised.variances.copy()
        values[0] = max(0.0, values[0])
        for family in self.families:
            own, doubt = values[family.nodes], variances[family.nodes]
            share = doubt / family.spread(family.sum(doubt))
            lacking = values[family.parents] - family.sum(own)
            values[family.nodes] = share_out(family, own + share * family.spread(lacking), values)
            variances[family.nodes] = (1.0 - share) * doubt + share**2 * family.spread(
                variances[family.parents]
            )
        return Estimates(values, variances)


def _sums(family: Families, values: Floats, variances: Floats) -> Estimates:
    """The sum of the children of each parent."""
    return Estimates(family.sum(values[family.nodes]), family.sum(variances[family.nodes]))


def share_out(family: Families, wanted: Floats, values: Floats) -> Floats:
    """Counts >= 0 near those wanted that add up to the parents' values; parents of as many at once."""
    shared = np.empty_like(wanted)
    for size in np.unique(family.sizes).tolist():
        alike = family.sizes == size
        places = family.starts[alike][:, None] + np.arange(size)
        shared[places] = project_on_totals(wanted[places], values[family.parents[alike]])
    return shared
