"""The tree of boxes that may be grown: nodes, slots, cuts, schedule and constants, from public numbers."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, NamedTuple, Protocol, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from partita.arrays import Bools, Floats, Ints, UInts
from partita.domain.axis import LARGEST_AXIS, MOST_AXES, Axis
from partita.errors import check
from partita.lazy import cached_property
from partita.numbers import Exact, freeze, frozen, parameter, rational
from partita.public.axis.tree_solver import Families, SpendingRule
from partita.public.base import damaged
from partita.public.bounds import laplace_variance

# A row for each box, a column for each axis: positions of lowest, or of highest, cells.
Corners: TypeAlias = NDArray[np.uint64]

# The lowest and the highest corner of a box, both included, and +1 or -1.
SignedBox: TypeAlias = tuple[tuple[int, ...], tuple[int, ...], int]


@final
@dataclass(frozen=True, eq=False)
class BoxNodes:
    """Boxes lows, ..., highs (both included), breadth first; node 0 is the root and holds everything.

    `levels` holds the number of nodes of each level. The children of an expanded node make it up exactly and
    are neighbours on the next level: `children[i]` of them, from node `starts[i]` on. A leaf has none.
    """

    levels: Ints
    lows: Corners
    highs: Corners
    starts: Ints
    children: Ints

    @property
    def leaves(self) -> Bools:
        """Which nodes are not cut further; together they make up everything."""
        return np.asarray(self.children == 0)

    @property
    def axes(self) -> int:
        """The number of axes."""
        return int(self.lows.shape[1])

    def corners(self, nodes: Ints | Bools) -> tuple[UInts, UInts]:
        """The lowest and highest corners of some nodes."""
        return self.lows[nodes], self.highs[nodes]


def volumes(lows: Corners, highs: Corners) -> Floats:
    """The number of cells of each box. Differences need all 64 bits: they are taken before they are floats.

    >>> volumes(np.array([[0, 5]], np.uint64), np.array([[2, 5]], np.uint64)).tolist()
    [3.0]
    """
    return np.asarray(((highs - lows).astype(np.float64) + 1.0).prod(axis=1))


def runs(starts: Ints, sizes: Ints) -> Ints:
    """As many integers as each size says, counted from each start on, one run after another.

    >>> runs(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    behind = np.cumsum(sizes)
    return np.asarray(np.repeat(starts - behind + sizes, sizes) + np.arange(sizes.sum()))


def blocks(sizes: Ints, most: int) -> Iterator[slice]:
    """Neighbours whose sizes add up to at most that, or single ones that are larger.

    >>> list(blocks(np.array([2, 1, 9, 1]), 4))
    [slice(0, 2, None), slice(2, 3, None), slice(3, 4, None)]
    """
    upto, begin = np.cumsum(sizes), 0
    while begin < sizes.size:
        done = int(upto[begin] - sizes[begin])
        end = max(begin + 1, int(np.searchsorted(upto, done + most, side="right")))
        yield slice(begin, end)
        begin = end


def families_of(nodes: BoxNodes) -> list[Families]:
    """Every level below the root, from the root down."""
    families, ends = [], np.cumsum(nodes.levels).tolist()
    for start, middle, end in zip([0, *ends], ends, ends[1:], strict=False):
        parents = start + np.flatnonzero(nodes.children[start:middle])
        starts, sizes = nodes.starts[parents] - middle, nodes.children[parents]
        families.append(Families(slice(middle, end), parents, starts, sizes))
    return families


def children_of(nodes: BoxNodes, parents: Ints) -> Ints:
    """The children of some expanded nodes, family by family."""
    return runs(nodes.starts[parents], nodes.children[parents])


def sum_upwards(families: list[Families], values: Floats) -> Floats:
    """The values of leaves, and for every other node the sum of its leaves."""
    sums = values.copy()
    for family in reversed(families):
        sums[family.parents] = family.sum(sums[family.nodes])
    return sums


def spans_of(nodes: BoxNodes, families: list[Families]) -> tuple[Ints, Ints]:
    """The leaves of each node, in one order of all leaves: the first of them, and the one behind the last.

    Siblings follow each other, so that what is near in the tree is near in the order.
    """
    held = sum_upwards(families, nodes.leaves.astype(np.float64)).astype(np.int64)
    before = np.zeros_like(held)
    for family in families:
        upto = np.cumsum(held[family.nodes])
        first = (upto - held[family.nodes])[family.starts]
        begin = np.repeat(before[family.parents] - first, family.sizes)
        before[family.nodes] = begin + upto - held[family.nodes]
    return before, before + held


# Slots: where along an axis a tree of boxes may cut.


class AxisSlots(Protocol):
    """The parts of one axis that a tree never cuts, in order; each holds some positions, or none."""

    @property
    def line(self) -> Axis:
        """A run of slots that is halved again and again, and single ones before and after it."""

    def holding(self, positions: UInts) -> UInts:
        """The slot of each position."""

    def ends(self, first: UInts, last: UInts) -> tuple[UInts, UInts]:
        """The lowest position in slots first, ..., last, and the one behind the highest; equal if empty."""


@final
@dataclass(frozen=True)
class NativeSlots:
    """Every position is a slot of its own; special cells are the single ones."""

    line: Axis

    def holding(self, positions: UInts) -> UInts:
        """The positions themselves."""
        return positions

    def ends(self, first: UInts, last: UInts) -> tuple[UInts, UInts]:
        """The slots themselves."""
        return first, last + np.uint64(1)


@final
@dataclass(frozen=True, eq=False)
class RankSlots:
    """Slot j holds the positions edges[j], ..., edges[j+1]-1; there are a power of two of slots.

    Edges begin with 0, never decrease, and end with the width of the axis. Equal ones enclose nothing.

    >>> slots = RankSlots(np.array([0, 3, 3, 7, 8], np.uint64))
    >>> slots.holding(np.array([0, 3, 7], np.uint64)).tolist(), slots.line.size
    ([0, 2, 3], 4)
    """

    edges: UInts

    @cached_property
    def line(self) -> Axis:
        """All slots, to be halved."""
        return Axis(size=self.edges.size - 1)

    def holding(self, positions: UInts) -> UInts:
        """The last slot that begins at or before each position."""
        return (np.searchsorted(self.edges[:-1], positions, side="right") - 1).astype(np.uint64)

    def ends(self, first: UInts, last: UInts) -> tuple[UInts, UInts]:
        """The edges around the slots."""
        return self.edges[first], self.edges[last + np.uint64(1)]


def native_slots(axes: Sequence[Axis]) -> tuple[AxisSlots, ...]:
    """The positions of every axis as slots."""
    return tuple(NativeSlots(axis) for axis in axes)


def halvings(line: Axis) -> int:
    """How often the run of a line can be halved until its pieces are single slots."""
    return (line.size - 1).bit_length()


# Cuts of the boxes of one level: along every axis by itself; the children of a box are products of pieces.


class SlotBoxes(NamedTuple):
    """Boxes of slots first, ..., last (both included): a row for each box, a column for each axis."""

    first: Corners
    last: Corners

    def some(self, which: Bools) -> SlotBoxes:
        """Some of the boxes."""
        return SlotBoxes(self.first[which], self.last[which])


@dataclass(frozen=True, eq=False)
class AxisPieces(ABC):
    """What several boxes are cut into along one axis: slots first, ..., last, box by box, none empty."""

    first: UInts
    last: UInts
    counts: Ints

    @cached_property
    def offsets(self) -> Ints:
        """Where the pieces of each box begin."""
        return np.cumsum(self.counts) - self.counts

    @abstractmethod
    def rank(self, boxes: Ints, slots: UInts) -> Ints:
        """Which piece of its box each slot lies in, counted from 0."""


@final
@dataclass(frozen=True, eq=False)
class _RootPieces(AxisPieces):
    """The pieces of the one box that holds everything."""

    def rank(self, boxes: Ints, slots: UInts) -> Ints:
        """The last piece that begins at or before each slot."""
        return np.searchsorted(self.first, slots, side="right") - 1


@final
@dataclass(frozen=True, eq=False)
class _HalvedPieces(AxisPieces):
    """Pieces of 2^shift slots, counted from where each box begins; empty ones are left out of `ranks`."""

    origins: UInts
    shift: np.uint64
    tried: Ints
    ranks: Ints

    def rank(self, boxes: Ints, slots: UInts) -> Ints:
        """By arithmetic; the pieces that were left out do not count."""
        step = (slots - self.origins[boxes]) >> self.shift
        return np.asarray(self.ranks[self.tried[boxes] + step.astype(np.int64)])


def cut_root(slots: AxisSlots, left: int) -> AxisPieces:
    """Everything along an axis, cut into pieces that can be halved `left` times, and the single slots."""
    line = slots.line
    run = np.arange(((line.size - 1) >> left) + 1, dtype=np.uint64) << np.uint64(left)
    before, after = (np.arange(count, dtype=np.uint64) for count in (line.before, line.after))
    first = np.concatenate([before, run + np.uint64(line.before), after + np.uint64(line.before + line.size)])
    last = np.append(first[1:], np.uint64(line.width)) - np.uint64(1)
    there = np.less(*slots.ends(first, last))
    return _RootPieces(first[there], last[there], np.array([there.sum()]))


def halve(slots: AxisSlots, first: UInts, last: UInts, left: int) -> AxisPieces:
    """Slots first, ..., last of each box, cut into pieces that can be halved `left` times."""
    shift = np.uint64(left)
    counts = ((last - first) >> shift).astype(np.int64) + 1
    tried = np.cumsum(counts) - counts
    box = np.repeat(np.arange(first.size), counts)
    step = (np.arange(box.size) - tried[box]).astype(np.uint64)
    starts = first[box] + (step << shift)
    ends = starts + np.minimum((np.uint64(1) << shift) - np.uint64(1), last[box] - starts)
    there = np.less(*slots.ends(starts, ends))  # pieces without a position are left out
    number = np.bincount(box[there], minlength=first.size)
    ranks = np.cumsum(there) - 1 - (np.cumsum(number) - number)[box]
    return _HalvedPieces(starts[there], ends[there], number, first, shift, tried, ranks)


@final
@dataclass(frozen=True, eq=False)
class BoxSplit:
    """Boxes cut along every axis: the children of a box are the products of its pieces, last axis fastest."""

    axes: tuple[AxisPieces, ...]

    @cached_property
    def sizes(self) -> Ints:
        """How many children each box has."""
        return np.asarray(np.prod([pieces.counts for pieces in self.axes], axis=0))

    @cached_property
    def starts(self) -> Ints:
        """Where the children of each box begin."""
        return np.cumsum(self.sizes) - self.sizes

    def boxes(self) -> SlotBoxes:
        """All children, those of the first box first."""
        parents = np.repeat(np.arange(self.sizes.size), self.sizes)
        rest = np.arange(parents.size) - self.starts[parents]
        first = np.empty((parents.size, len(self.axes)), np.uint64)
        last = np.empty_like(first)
        for axis, pieces in reversed(list(enumerate(self.axes))):
            rest, rank = np.divmod(rest, pieces.counts[parents])
            piece = pieces.offsets[parents] + rank
            first[:, axis], last[:, axis] = pieces.first[piece], pieces.last[piece]
        return SlotBoxes(first, last)

    def child(self, boxes: Ints, slots: Corners) -> Ints:
        """The child of its box that each point lies in, a row of slots for each point."""
        place = np.zeros(boxes.size, np.int64)
        for axis, pieces in enumerate(self.axes):
            place = place * pieces.counts[boxes] + pieces.rank(boxes, slots[:, axis])
        return np.asarray(self.starts[boxes] + place)


MOST_BITS: Final = 4  # no level cuts an axis into more than two to this many pieces, special cells aside
# If every level halves one axis, and each is halved down to its cells.
_MOST_LEVELS: Final = MOST_AXES * (LARGEST_AXIS - 1).bit_length()
# Up to so many labels are separated at once: their order means nothing, so no half of them is worth a look.
_FEW_LABELS: Final = 16
# The most boxes of the first level for the sake of labels: each costs a look, whether it has rows or not.
_MOST_ROOT_BOXES: Final = 4096


class BoxLevel(NamedTuple):
    """One level: at most how many children boxes have, special cells aside, and the levels from it on.

    `halvings` says how often each axis of the children can still be halved.
    """

    children: int
    left: int
    halvings: tuple[int, ...]


@final
@dataclass(frozen=True, eq=False)
class BoxPlan:
    """Slots along every axis, and a schedule: a row for each level, how many bits each axis is cut by.

    At the first level every axis is cut into its single slots besides, whether it has bits there or not.
    """

    slots: tuple[AxisSlots, ...]
    schedule: Ints

    def __post_init__(self) -> None:
        bits, most = self.schedule, [halvings(slots.line) for slots in self.slots]
        if bits.ndim != 2 or bits.shape[1] != len(self.slots) or not 1 <= len(bits) <= _MOST_LEVELS:
            raise damaged("schedule", "must have a row for each level and a column for each axis")
        if bool((bits < 0).any()) or bool((bits > MOST_BITS).any()):
            raise damaged("schedule", f"must cut an axis by 0 to {MOST_BITS} bits at a time")
        if bool((bits.sum(axis=0) > most).any()):
            raise damaged("schedule", "must cut an axis into slots at most")

    @cached_property
    def levels(self) -> tuple[BoxLevel, ...]:
        """The levels of a full tree."""
        most = np.array([halvings(slots.line) for slots in self.slots])
        after = most - np.cumsum(self.schedule, axis=0)
        return tuple(
            BoxLevel(1 << int(bits.sum()), len(after) - at, tuple(left.tolist()))
            for at, (bits, left) in enumerate(zip(self.schedule, after, strict=True))
        )

    @property
    def root(self) -> SlotBoxes:
        """The box of everything."""
        last = np.array([[slots.line.width - 1 for slots in self.slots]], np.uint64)
        return SlotBoxes(np.zeros_like(last), last)

    def cut(self, at: int, boxes: SlotBoxes) -> BoxSplit:
        """The boxes that are expanded, cut into the nodes of level `at`, counted from 0 below the root."""
        axes = zip(self.slots, self.levels[at].halvings, boxes.first.T, boxes.last.T, strict=True)
        if at == 0:
            return BoxSplit(tuple(cut_root(slots, left) for slots, left, _, _ in axes))
        return BoxSplit(tuple(halve(slots, first, last, left) for slots, left, first, last in axes))

    def splittable(self, boxes: SlotBoxes) -> Bools:
        """Which boxes hold several slots along some axis, and several positions there."""
        several = np.zeros(len(boxes.first), bool)
        for axis, slots in enumerate(self.slots):
            first, last = boxes.first[:, axis], boxes.last[:, axis]
            lows, behind = slots.ends(first, last)
            several |= (first < last) & (behind - lows > np.uint64(1))
        return several

    def corners(self, boxes: SlotBoxes) -> tuple[Corners, Corners]:
        """The lowest and the highest positions of boxes that are not empty."""
        lows, highs = np.empty_like(boxes.first), np.empty_like(boxes.last)
        for axis, slots in enumerate(self.slots):
            low, behind = slots.ends(boxes.first[:, axis], boxes.last[:, axis])
            lows[:, axis], highs[:, axis] = low, behind - np.uint64(1)
        return lows, highs

    def holding(self, places: Corners) -> Corners:
        """The slots of points, a row of positions for each."""
        return np.column_stack([slots.holding(places[:, axis]) for axis, slots in enumerate(self.slots)])


def native_schedule(axes: Sequence[Axis], bits: int) -> Ints:
    """Every axis is cut by as many bits at each level, and by what remains at its last.

    Axes of at most 16 labels come first, one by one, into all their labels at once, unless the
    first level would have too many boxes.
    """
    left = np.array([halvings(axis) for axis in axes])
    first = np.minimum(left, bits)
    for at, axis in enumerate(axes):
        if axis.labels and axis.size <= _FEW_LABELS:
            whole = first.copy()
            whole[at] = halvings(axis)
            cuts = [(1 << int(row)) + each.before + each.after for row, each in zip(whole, axes, strict=True)]
            first = whole if int(np.prod(cuts)) <= _MOST_ROOT_BOXES else first
    rows, left = [first], left - first
    while left.any():
        rows.append(np.minimum(left, bits))
        left = left - rows[-1]
    return np.array(rows, np.int64)


# The error of a random box, from public numbers, before anything is counted. The ends of a random box are
# drawn as those of a random range along each axis, all ranges alike. For the grid the root-mean-square error
# is known. Those of the trees were measured, not proved, on made-up tables of two to six columns with 10^2 to
# 10^6 rows; docs/proofs/rectangles.md says how near they are.

# Up to so many cells of labels a tree has no more error than the grid: docs/proofs/rectangles.md.
_FEW_CELLS: Final = 2000


def grid_error(axes: Sequence[Axis], rate: Fraction) -> float:
    """The error if every cell has noise of scale 1 / rate: exactly.

    Over all ranges of w positions the mean width is (w + 2) / 3, and widths along the axes are drawn
    independently of each other.
    """
    cells = math.prod((axis.width + 2) / 3 for axis in axes)
    return math.sqrt(cells * laplace_variance(1 / rate))


def tree_error(axes: Sequence[Axis], rate: Fraction, rows: int) -> float:
    """The error of a spending tree over the cells: it grows with the rows until all cells are counted alone.

    From there on it is the error of the grid, or twice that if there are many cells of labels in three
    columns or more: labels have no neighbours that are like them.
    """
    units = max(1.0, float(rows * rate))  # the number of rows in units of the noise
    growing = math.cbrt(units) if len(axes) <= 2 else math.sqrt(units) / 2
    many = len(axes) > 2 and math.prod(axis.size for axis in axes) > _FEW_CELLS
    factor = 2 if many and all(axis.labels for axis in axes) else 1
    return _blend(growing / float(rate), factor * grid_error(axes, rate))


def rank_error(axes: Sequence[Axis], rate: Fraction, rows: int) -> float:
    """The error of a tree in rank space: views of columns and the tree share the budget."""
    growing = 0.55 * max(1.0, float(rows * rate)) ** 0.4
    return _blend(growing / float(rate), len(axes) * grid_error(axes, rate))


def _blend(one: float, other: float) -> float:
    """The smaller where they differ much, half of each where they are equal."""
    return 1.0 / (1.0 / one + 1.0 / other)


class _LevelBoxes(NamedTuple):
    """One level: its corners, and how many children each expanded node of the level above has."""

    lows: Corners
    highs: Corners
    sizes: Ints


@final
@dataclass(frozen=True, eq=False)
class BoxShape:
    """The nodes of a grown tree, the root first and breadth first; `levels` holds the number on each level.

    Everything else about them follows from the plan and from which of them are `expanded`.
    """

    plan: BoxPlan
    levels: Ints
    expanded: Bools
    _below: list[_LevelBoxes] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        count, levels = self.expanded.size, self.levels
        if not 2 <= levels.size <= len(self.plan.levels) + 1:
            raise damaged("levels", "must be a root and at most the levels of the schedule")
        if bool((levels < 1).any()) or bool((levels > count).any()) or levels.sum() != count:
            raise damaged("levels", "must hold the nodes")
        if levels[0] != 1 or not self.expanded[0] or bool(self.expanded[count - levels[-1] :].any()):
            raise damaged("nodes", "must begin with a root that is cut, and end with leaves")
        freeze(self, _below=self._cut_down())

    @staticmethod
    def join(plan: BoxPlan, expanded: Sequence[Bools]) -> BoxShape:
        """The shape that has these levels below the root."""
        levels = [np.ones(1, bool), *expanded]
        return BoxShape(plan, np.array([level.size for level in levels]), np.concatenate(levels))

    @cached_property
    def nodes(self) -> BoxNodes:
        """The box and the children of every node."""
        lows, highs = self.plan.corners(self.plan.root)
        children = np.zeros(self.expanded.size, np.int64)
        children[self.expanded] = np.concatenate([level.sizes for level in self._below])
        return BoxNodes(
            levels=self.levels,
            lows=np.concatenate([lows, *(level.lows for level in self._below)]),
            highs=np.concatenate([highs, *(level.highs for level in self._below)]),
            starts=1 + np.cumsum(children) - children,
            children=children,
        )

    @cached_property
    def families(self) -> list[Families]:
        """Every level below the root, as children of their parents."""
        return families_of(self.nodes)

    def _cut_down(self) -> list[_LevelBoxes]:
        """The levels below the root; each must have as many nodes as the cuts above it make."""
        below, front = [], self.plan.root
        for at, expanded in enumerate(np.split(self.expanded, np.cumsum(self.levels)[:-1])[1:]):
            cut = self.plan.cut(at, front)
            if not cut.sizes.all() or cut.sizes.sum() != expanded.size:
                raise damaged("nodes", "must be the children of the nodes that are cut")
            boxes = cut.boxes()
            below.append(_LevelBoxes(*self.plan.corners(boxes), cut.sizes))
            front = boxes.some(expanded)
        return below


# The constants by which a tree of boxes spends its budget: public, chosen by the axes alone.

_FEW_RECIPE_CELLS: Final = (
    2**10
)  # axes with more cells were best cut one bit at a time, on the data used for tuning
_LARGEST_RECIPE: Final = Fraction(2**62)


@final
@frozen(kw_only=True)
class Recipe:
    """The constants of a `SpendingRule`, exactly.

    >>> Recipe(growth="3/2", worth=3, depth_power=1).rule(0.5).worth
    3.0
    """

    growth: Exact = parameter()
    worth: Exact = parameter()
    depth_power: Exact = parameter()

    def __post_init__(self) -> None:
        freeze(
            self,
            growth=_between(self.growth, "growth", 1 / _LARGEST_RECIPE, _LARGEST_RECIPE),
            worth=_between(self.worth, "worth", 1 / _LARGEST_RECIPE, _LARGEST_RECIPE),
            depth_power=_between(self.depth_power, "depth_power", Fraction(0), Fraction(1)),
        )

    def rule(self, unit: float) -> SpendingRule:
        """The rule, if a unit of budget is worth that much epsilon."""
        return SpendingRule(
            unit=unit, growth=self.growth, worth=float(self.worth), depth_power=float(self.depth_power)
        )


def default_bits(axes: Sequence[Axis]) -> int:
    """The bits by which a level cuts each axis: two along one axis and over few cells, otherwise one."""
    return 2 if len(axes) == 1 or _few(axes) else 1


def default_recipe(axes: Sequence[Axis]) -> Recipe:
    """The constants that were best on the tuning data: two axes of few cells, of many, and the rest."""
    if _few(axes):
        return Recipe(growth="7/5", worth=8, depth_power="1/2")
    if len(axes) == 2:
        return Recipe(growth="5/3", worth=7, depth_power=1)
    return Recipe(growth="3/2", worth=3, depth_power=1)


def _few(axes: Sequence[Axis]) -> bool:
    return len(axes) == 2 and all(axis.size <= _FEW_RECIPE_CELLS for axis in axes)


def _between(value: object, name: str, low: Fraction, high: Fraction) -> Fraction:
    exact = rational(value, name)
    check(low <= exact <= high, name, f"must lie between {low} and {high}", given=value, fix="leave it out")
    return exact
