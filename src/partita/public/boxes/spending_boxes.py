"""A released spending tree over boxes: every look at every node, and the boxes that it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, Final, NamedTuple, Self, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from partita.arrays import Floats, Ints, UInts
from partita.domain.axis import Axis
from partita.errors import InvalidParameter
from partita.guarantee import Guarantee
from partita.lazy import cached_property
from partita.numbers import freeze
from partita.public.axis.base import Json, Parts, PartsReader
from partita.public.axis.shrinkage import EMPTY, HALF, Spikes, shrink
from partita.public.axis.tree_solver import SURE, UNITS, Families, TreeLooks
from partita.public.base import damaged
from partita.public.boxes.base import EngineBoxes, encode_axes, read_axes
from partita.public.boxes.cover import NodeSurroundings
from partita.public.boxes.density import BoxDensity, BoxSolution, Measure, NodeCounts
from partita.public.boxes.engine import BoxEngine
from partita.public.boxes.plan import AxisSlots, BoxNodes, BoxPlan, BoxShape, Corners, Recipe, native_slots

Rows = TypeVar("Rows", UInts, Floats)

LARGEST_TOTAL: Final = 2**63  # no public total is further from zero: facts in files have 64 bits
_FACTS: Final = ("axes", "scale", "total", "growth", "worth", "depth_power")
_SERIES: Final = ("schedule", "levels", "expanded", "steps", "nodes", "units", "noisy")

_WIDENING: Final = 1.3  # calibrated factor of standard errors: docs/proofs/spending_boxes.md
_MOST_RAMPS: Final = 2  # with more axes leaves would be cut into too many pieces
_MOST_SURROUNDED: Final = 2**18  # with more leaves their surroundings are left out, to save time
# A leaf gets a ramp if its halves along some axis differ by more than so many times the noise.
_NOTICED: Final = 2.0
_SOFTENING: Final = 1e-3  # no side counts as emptier than this share of the leaf's own fullness
# A node this many noise scales above what it took to be cut has a bias that is smaller by a factor of e.
_FADING: Final = 4.0
_WHOLE: Final = 63  # bits of a piece that no stretch is wider than
_BELIEF: Final = 10.0  # precision of the belief that nodes have no bias, in units of their noise scales


def add_ramps(density: BoxDensity, axes: tuple[Axis, ...], *, noise: float) -> BoxDensity:
    """The same counts of all nodes, with leaves no longer even inside if their neighbours differ.

    Along an axis with b below and a above a leaf, the leaf's density is that of a ramp from 1 - g to
    1 + g with g = tanh(ln(a/b) / 4): the middle of the three if they grow by equal factors. Axes are
    taken to be independent. The counts of the leaves themselves stay as they are. A leaf is cut into up to
    four pieces along every axis, where a tree would cut it: stretches of nodes stay nested or apart.
    """
    leaves = np.flatnonzero(density.nodes.leaves & (density.held.values > _NOTICED * noise))
    if not leaves.size:
        return density
    around, own, columns = NodeSurroundings(density, axes, leaves), density.held.values[leaves], []
    for axis in range(len(axes)):
        below, above = (side + _SOFTENING * own for side in around.beside(axis))
        columns.append(np.tanh(np.log(above / below) / 4))
    slopes = np.stack(columns, axis=1)  # g for every leaf, a column for each axis
    noticed = own * np.abs(slopes).max(axis=1) > _NOTICED * noise
    return _cut_leaves(density, leaves[noticed], slopes[noticed])


class _LeafPieces(NamedTuple):
    """The pieces of leaves that are cut, leaf after leaf, and how many each leaf has."""

    lows: Corners
    highs: Corners
    held: NodeCounts
    sizes: Ints


class _Level(NamedTuple):
    """Nodes of one level: which old nodes they are (-1 for a piece), which pieces (-1 for old nodes)."""

    old: Ints
    piece: Ints


def _cut_leaves(density: BoxDensity, leaves: Ints, slopes: Floats) -> BoxDensity:
    """The tree in which these leaves are expanded into pieces on ramps with these slopes."""
    if not leaves.size:
        return density
    nodes, pieces = density.nodes, _ramp_pieces(density, leaves, slopes)
    first_piece = np.full(nodes.children.size, -1)
    first_piece[leaves] = np.cumsum(pieces.sizes) - pieces.sizes
    children = nodes.children.copy()
    children[leaves] = pieces.sizes
    levels = [_Level(np.zeros(1, np.int64), np.full(1, -1))]
    while levels[-1].old.size:
        levels.append(_next_level(nodes, children, first_piece, levels[-1]))
    return _join_pieces(density, pieces, children, levels[:-1])


def _next_level(nodes: BoxNodes, children: Ints, first_piece: Ints, level: _Level) -> _Level:
    """The children of a level, old ones and pieces, in the order of their parents."""
    parents = level.old[level.old >= 0]
    parents = parents[children[parents] > 0]
    sizes = children[parents]
    within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    fresh = np.repeat(first_piece[parents] >= 0, sizes)
    old = np.where(fresh, -1, np.repeat(nodes.starts[parents], sizes) + within)
    return _Level(old, np.where(fresh, np.repeat(first_piece[parents], sizes) + within, -1))


def _join_pieces(
    density: BoxDensity, pieces: _LeafPieces, children: Ints, levels: Sequence[_Level]
) -> BoxDensity:
    old = np.concatenate([level.old for level in levels])
    piece = np.concatenate([level.piece for level in levels])
    counts = np.where(old >= 0, children[old], 0)
    nodes = BoxNodes(
        levels=np.array([level.old.size for level in levels]),
        lows=_either(old, density.nodes.lows, piece, pieces.lows),
        highs=_either(old, density.nodes.highs, piece, pieces.highs),
        starts=1 + np.cumsum(counts) - counts,
        children=counts,
    )
    counts_of = zip(density.held, pieces.held, strict=True)
    held = NodeCounts(*(_either(old, ours, piece, fresh) for ours, fresh in counts_of))
    return BoxDensity(nodes, density.measures, held)


def _either(old: Ints, ours: Rows, piece: Ints, fresh: Rows) -> Rows:
    """Rows of old nodes where there is one, and rows of pieces elsewhere."""
    rows = ours[old]
    rows[old < 0] = fresh[piece[old < 0]]
    return rows


def _ramp_pieces(density: BoxDensity, leaves: Ints, slopes: Floats) -> _LeafPieces:
    """Each leaf cut along every axis as trees are, with its count shared out by the ramps."""
    lows, highs = density.nodes.corners(leaves)
    shifts = _piece_bits(highs - lows)
    # Along an axis with a measure leaves stay whole: the measure says how rows are spread there.
    shifts[:, [measure is not None for measure in density.measures]] = _WHOLE
    counts = ((highs - lows) >> shifts).astype(np.int64) + 1
    sizes = counts.prod(axis=1)
    leaf = np.repeat(np.arange(leaves.size), sizes)
    at = np.arange(leaf.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    corners, share = (lows[leaf], highs[leaf]), np.ones(leaf.size)
    for axis in reversed(range(counts.shape[1])):
        at, piece = np.divmod(at, counts[leaf, axis])
        low, high, shift = lows[leaf, axis], highs[leaf, axis], shifts[leaf, axis]
        first = low + (piece.astype(np.uint64) << shift)
        last = first + np.minimum(high - first, (np.uint64(1) << shift) - np.uint64(1))
        width = (high - low).astype(np.float64) + 1.0
        begin, behind = (first - low) / width, ((last - low).astype(np.float64) + 1.0) / width
        share *= (behind - begin) * (1.0 + slopes[leaf, axis] * (begin + behind - 1.0))
        corners[0][:, axis], corners[1][:, axis] = first, last
    values = density.held.values[leaves][leaf] * share / np.bincount(leaf, share)[leaf]
    variances = density.held.variances[leaves][leaf] * share**2
    return _LeafPieces(*corners, NodeCounts(values, variances, values**2), sizes)


def _piece_bits(spans: UInts) -> UInts:
    """Pieces of 2^shift positions are the largest of which a stretch has between two and four, or one."""
    bits = np.zeros(spans.shape, np.uint64)
    for step in (32, 16, 8, 4, 2, 1):
        wide = spans >> bits >> np.uint64(step) > 0
        bits = np.where(wide, bits + np.uint64(step), bits)
    return np.where(bits > 0, bits - np.uint64(1), bits)


@final
@dataclass(frozen=True, eq=False)
class CutSelection:
    """The upward bias of nodes that were cut, estimated from the children that followed.

    A node is cut if its noisy count is large, so noise that pushed it up has a part in it. The first looks at
    its children came after that and have no bias. On every level the mean of what they lack, over all nodes
    that were cut, estimates the bias: it is largest for nodes that were barely large enough.
    """

    families: Sequence[Families]
    looks: TreeLooks
    unit: float
    recipe: Recipe

    def correct(self, noisy: Floats, variances: Floats) -> Floats:
        """The noisy counts of all nodes; those of nodes that were cut without their bias."""
        scales, first = np.sqrt(variances / 2), self.looks.first(noisy.size)
        values, noise = self.looks.values[first], 1.0 / self.looks.rates(self.unit)[first]
        left = (UNITS - self.looks.spent(scales.size, self.families)) * self.unit
        worth = np.divide(float(self.recipe.worth), left, out=np.full(scales.size, np.inf), where=left > 0)
        needed = np.maximum(SURE * scales, worth)  # the noisy count from which on a node was cut
        corrected = noisy.copy()
        for family in self.families[1:]:
            nodes = family.parents
            above = (noisy[nodes] - needed[nodes]) / scales[nodes]
            weight = np.exp(-np.maximum(0.0, above) / _FADING)
            lacking = (noisy[nodes] - family.sum(values[family.nodes])) / scales[nodes]
            precision = 1.0 / (2.0 + family.sum(2.0 * noise[family.nodes] ** 2) / scales[nodes] ** 2)
            bias = (lacking * weight) @ precision / (weight**2 @ precision + _BELIEF)
            corrected[nodes] -= max(0.0, float(bias)) * weight * scales[nodes]
        return corrected


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class SpendingBoxesRelease(EngineBoxes):
    """A tree over the positions of several axes and all looks at its nodes, in the order of the looks.

    A look of k units has noise of `scale` / k, and no path has more than 2^20 units. `total` is the
    public number that the tree began with, if there was one; otherwise the first look was at the root.
    The last look at a leaf decided nothing; all other looks decided what was looked at next. `spikes` is the
    share of leaves that are believed to be empty before they are seen; it is not stored.
    """

    kind: ClassVar[str] = "spending-boxes"
    papers: ClassVar[Mapping[str, tuple[str, ...]]] = {"rectangles": ("DNRR15",), "spending-boxes": ()}
    max_series: ClassVar[int] = 8

    axes: tuple[Axis, ...] = field(init=False)
    shape: BoxShape
    looks: TreeLooks
    scale: Fraction
    total: int | None
    recipe: Recipe
    guarantee: Guarantee | None = None
    spikes: Spikes = EMPTY

    def __post_init__(self) -> None:
        freeze(self, axes=tuple(slots.line for slots in self.shape.plan.slots))
        self.looks.check(self.shape, first=0 if self.total is None else 1)

    def as_column_view(self) -> SpendingBoxesRelease:
        """The same looks, read as the view of one column: rows thin out along a tail and leave few gaps."""
        return replace(self, spikes=HALF)

    @property
    def spent(self) -> Fraction:
        """What a row costs: it is on one path, and no path has more units."""
        return UNITS / self.scale

    @property
    def story(self) -> str:
        """What was chosen, and by which released numbers."""
        leaves, levels = int((~self.shape.expanded).sum()), self.shape.levels.size - 1
        began = max(0, int(self.looks.noisy[0]) if self.total is None else self.total)
        return (
            f"For a total of about {began:,} rows it grew a tree of {levels} level{'s' * (levels > 1)}; "
            f"{leaves:,} boxes are counted at its leaves."
        )

    @cached_property
    def solution(self) -> BoxSolution:
        """The estimate of every node, found twice: the first one says what to expect around each leaf."""
        noisy, variances = self.looks.means(self.shape.expanded.size, self._unit)
        if self.total is not None:
            noisy[0] = self.total
        families = self.shape.families
        corrected = CutSelection(families, self.looks, self._unit, self.recipe).correct(noisy, variances)
        shrinkage = partial(shrink, spikes=self.spikes)
        first = BoxSolution(families, self.shape.expanded, corrected, variances, shrinkage)
        return replace(first, expected=self._expected(first))

    @cached_property
    def engine(self) -> BoxEngine:
        """The solved tree; inside of leaves counts rise or fall as their neighbours say."""
        values, variances = self.solution.estimates
        return BoxEngine(
            nodes=self.shape.nodes,
            measures=self._measures,
            values=values,
            variances=variances,
            looks=self.looks,
            unit=self._unit,
            widening=_WIDENING,
            doubted=True,
            refine=self._refine,
        )

    def _refine(self, density: BoxDensity) -> BoxDensity:
        if len(self.axes) > _MOST_RAMPS:
            return density
        return add_ramps(density, self.axes, noise=1.0 / (UNITS * self._unit))

    def _expected(self, solution: BoxSolution) -> Floats:
        """What each leaf would hold if it were as full as the cells around it, for not too many leaves."""
        nodes = self.shape.nodes
        expected, leaves = np.full(nodes.children.size, np.nan), np.flatnonzero(nodes.leaves)
        if leaves.size <= _MOST_SURROUNDED:
            density = BoxDensity.of(nodes, self._measures, *solution.estimates)
            expected[leaves] = NodeSurroundings(density, self.axes, leaves).expected()
        return expected

    @property
    def _measures(self) -> list[Measure]:
        return [None] * len(self.axes)

    @cached_property
    def _unit(self) -> float:
        """The rate of a look of one unit."""
        return float(1 / self.scale)

    def parts(self) -> Parts:
        """The plan, the nodes that were cut, all looks, and the public facts."""
        facts: dict[str, Json] = {
            "axes": encode_axes(self.axes),
            "scale": str(self.scale),
            "total": self.total,
            "growth": str(self.recipe.growth),
            "worth": str(self.recipe.worth),
            "depth_power": str(self.recipe.depth_power),
        }
        return Parts(facts, encode_tree(self.shape, self.looks))

    @classmethod
    def from_parts(cls, parts: Parts, guarantee: Guarantee | None) -> Self:
        """The release that `parts` took apart; anything else is an `InvalidRelease`."""
        reader = PartsReader(parts)
        reader.expect(facts=_FACTS, series=_SERIES)
        shape, looks = read_tree(reader, native_slots(read_axes(reader)))
        constants = {name: reader.rational(name) for name in ("growth", "worth", "depth_power")}
        try:
            recipe = Recipe(**constants)
        except InvalidParameter as error:
            raise damaged(error.parameter, "must be in its range") from None
        return cls(
            shape=shape,
            looks=looks,
            scale=reader.scale("scale"),
            total=reader.optional("total", partial(reader.integer, low=-LARGEST_TOTAL, high=LARGEST_TOTAL)),
            recipe=recipe,
            guarantee=guarantee,
        )


def encode_tree(shape: BoxShape, looks: TreeLooks) -> dict[str, NDArray[Any]]:
    """A tree and its looks as series for a file."""
    return {
        "schedule": shape.plan.schedule.ravel(),
        "levels": shape.levels,
        "expanded": shape.expanded.astype(np.int64),
        "steps": looks.steps,
        "nodes": looks.nodes,
        "units": looks.units,
        "noisy": looks.noisy,
    }


def read_tree(reader: PartsReader, slots: tuple[AxisSlots, ...]) -> tuple[BoxShape, TreeLooks]:
    """The tree and the looks that `encode_tree` wrote, over these slots."""
    bits = reader.row("schedule", np.int64)
    if bits.size % len(slots):
        raise damaged("schedule", "must have a number for each axis at every level")
    plan = BoxPlan(slots, bits.reshape(-1, len(slots)))
    steps, nodes, units = (reader.row(name, np.int64) for name in ("steps", "nodes", "units"))
    looks = TreeLooks(steps, nodes, units, reader.noisy("noisy", count=nodes.size))
    levels, flags = reader.row("levels", np.int64), reader.row("expanded", np.int64)
    if bool((flags & ~1).any()):
        raise damaged("expanded", "must be 0 or 1")
    return BoxShape(plan, levels, flags.astype(bool)), looks
