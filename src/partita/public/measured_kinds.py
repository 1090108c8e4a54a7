"""What each kind of release measured: every noisy count with its bins, its sums and its noise.

There is one function for each kind. Any other kind is refused: it released no sums of cells, or none that are
listed here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from partita.arrays import Ints, UInts
from partita.domain.axis import LARGEST_AXIS
from partita.errors import InvalidParameter, check
from partita.public.axis.flat import (
    CellsRelease,
    GaussianRelease,
    HistogramRelease,
    LaplaceRelease,
    ThresholdRelease,
)
from partita.public.axis.hierarchy import HierarchyRelease
from partita.public.axis.spending_tree import SpendingTreeRelease
from partita.public.axis.tent_solver import GRAIN, Pairs, TentCounts
from partita.public.axis.tents import PartitionTentsRelease, TentRelease
from partita.public.axis.tree import PaperIntervalsRelease, TreeRelease
from partita.public.axis.tree_solver import TreeLooks
from partita.public.bounds import Gaussian, NoiseLaw
from partita.public.boxes.bins import AxisBins
from partita.public.boxes.grid import CellGrid, GaussianGridRelease, GridRelease
from partita.public.boxes.plain_view import PlainView
from partita.public.boxes.plan import Corners, runs
from partita.public.boxes.spending_boxes import SpendingBoxesRelease
from partita.public.boxes.viewed_boxes import ViewedBoxesRelease
from partita.public.file_entries import Published, form_of
from partita.public.measurements import (
    MOST_ENTRIES,
    MeasuredColumn,
    NoisyMeasurement,
    NoisyMeasurements,
    SparseRows,
)
from partita.public.release import Release
from partita.public.tables.graph import TableGraphRelease
from partita.public.views import BoxView, View


def measure(release: Release, columns: Sequence[str] = ()) -> NoisyMeasurements:
    """The measurements of all views, or of those about some of these columns and no others."""
    known = {column for view in release.published for column in _columns_of(view)}
    for column in columns:
        rule, fix = f"must be one of {', '.join(sorted(known))}", "name columns of the release"
        check(column in known, "columns", rule, given=column, fix=fix)
    views = [view for view in release.published if not columns or {*_columns_of(view)} <= {*columns}]
    rule, fix = "must be all columns of some view", "name the columns of a view, or none for all views"
    check(views, "columns", rule, given=", ".join(columns), fix=fix)
    listed, measured = dict[str, MeasuredColumn](), list[NoisyMeasurement]()
    for view in views:
        place = _Place.of(view)
        listed |= {column.name: column for column in place.columns}
        measured += place.measured(form_of(view).released(view))
        if isinstance(view, View) and view.specials.counts:
            measured += place.specials(view)
    return NoisyMeasurements(tuple(listed.values()), tuple(_join_rows(measured)), release.guarantee)


def _columns_of(view: Published) -> tuple[str, ...]:
    return tuple(view.columns)


@final
@dataclass(frozen=True, eq=False)
class _Place:
    """Where the numbers of a view lie: its columns, and the position of the first cell of each."""

    columns: tuple[MeasuredColumn, ...]

    @staticmethod
    def of(view: Published) -> _Place:
        """The columns of a view of counts. Those of a table or of boxes count special cells as positions."""
        if not isinstance(view, View | BoxView):
            raise _refusal(type(view).__name__)
        for column, domain in zip(view.columns, view.domains, strict=True):
            rule, fix = f"must have at most {LARGEST_AXIS} cells", "publish the column with a coarser domain"
            check(domain.size <= LARGEST_AXIS, column, rule, given=domain.size, fix=fix)
        counted = not isinstance(view, View) or bool(view.specials.counts)
        pairs = zip(view.columns, view.domains, strict=True)
        return _Place(tuple(MeasuredColumn(column, domain, counted) for column, domain in pairs))

    def measured(self, released: object) -> Iterator[NoisyMeasurement]:
        """Every noisy count of what was released about these columns."""
        make = _KINDS.get(type(released))
        if make is None:
            raise _refusal(getattr(released, "kind", type(released).__name__))
        yield from make(self, released)

    def only(self, *numbers: int) -> _Place:
        """The same of some of the columns."""
        return _Place(tuple(self.columns[number] for number in numbers))

    def cells(self, cells: UInts) -> UInts:
        """The positions of cells of the one column."""
        return cells + np.uint64(self.columns[0].axis.before)

    def specials(self, view: View) -> Iterator[NoisyMeasurement]:
        """The special cells beside an axis, each counted by itself."""
        counts, places = view.specials.counts, self.columns[0].places
        at = np.array([[places[name]] for name in counts], np.uint64)
        noisy = np.array([*counts.values()], object)
        yield from self.boxes(at, at, noisy, view.specials.scale)

    def boxes(
        self, lows: Corners, highs: Corners, noisy: NDArray[Any], law: NoiseLaw
    ) -> Iterator[NoisyMeasurement]:
        """Noisy counts of boxes of positions, a row of corners for each, in the bins that they make."""
        if not len(lows):
            return
        bins = tuple(
            _bins_of(lows[:, axis], highs[:, axis], column.width) for axis, column in enumerate(self.columns)
        )
        first, last = (
            np.stack([each.of(ends[:, axis]) for axis, each in enumerate(bins)], axis=1)
            for ends in (lows, highs)
        )
        yield self.made(bins, noisy, law, _box_rows(first, last, [each.number for each in bins]))

    def counts(
        self, bins: tuple[AxisBins, ...], noisy: NDArray[Any], law: NoiseLaw
    ) -> Iterator[NoisyMeasurement]:
        """Noisy counts of all combinations of bins."""
        yield self.made(bins, noisy, law, None)

    def made(
        self,
        bins: tuple[AxisBins, ...],
        noisy: NDArray[Any],
        law: NoiseLaw,
        matrix: SparseRows | None,
        unit: int = 1,
    ) -> NoisyMeasurement:
        """Noisy sums of the counts of bins, by the rows of a matrix."""
        names = tuple(column.name for column in self.columns)
        return NoisyMeasurement(
            columns=names, bins=bins, noisy=_whole(noisy), matrix=matrix, unit=unit, **_parameter(law)
        )


def _parameter(law: NoiseLaw) -> dict[str, Any]:
    """The scale of Laplace noise, or the variance of Gaussian noise, by its name."""
    return {"variance": law.variance} if isinstance(law, Gaussian) else {"scale": law}


def _whole(noisy: NDArray[Any]) -> Ints:
    """The integers in 64 bits; an array of Python ints where they do not fit, which is refused later."""
    flat = noisy.ravel()
    fits = flat.dtype.kind == "i" or all(-(2**63) <= value < 2**63 for value in flat.tolist())
    return flat.astype(np.int64) if fits else flat


def _refusal(kind: str) -> InvalidParameter:
    able = ", ".join(sorted({getattr(each, "kind", "plain-view") for each in _KINDS} - {"plain-view"}))
    fix = f"name the columns of other views; kinds that can be exported are {able}"
    return InvalidParameter("release", "must have released linear counts of cells", given=kind, fix=fix)


def _bins_of(lows: UInts, highs: UInts, width: int) -> AxisBins:
    """The coarsest bins of which all of these ranges are made."""
    before = lows[lows > 0] - np.uint64(1)
    return AxisBins.from_edges(np.unique(np.concatenate([before, highs, [np.uint64(width - 1)]])))


def _box_rows(first: Ints, last: Ints, shape: Sequence[int]) -> SparseRows | None:
    """A row for each box of bins; None if the boxes are all combinations of bins, in order."""
    sizes = (last - first + 1).prod(axis=1)
    total, cells = sum(sizes.tolist()), math.prod(shape)
    rule, fix = f"must be sums of at most {MOST_ENTRIES:,} counts together", "export a release of fewer cells"
    check(total <= MOST_ENTRIES, "release", rule, given=f"{total:,}", fix=fix)
    row, within = np.repeat(np.arange(len(first)), sizes), runs(np.zeros_like(sizes), sizes)
    index, stride = np.zeros(total, np.int64), 1
    for axis in reversed(range(len(shape))):
        width = (last - first + 1)[row, axis]
        within, at = np.divmod(within, width)
        index += stride * (first[row, axis] + at)
        stride *= shape[axis]
    if cells == len(first) == total and np.array_equal(index, np.arange(total)):
        return None
    indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return SparseRows(indptr, index, np.ones(total, np.int64), cells)


def _join_rows(measured: Sequence[NoisyMeasurement]) -> Iterator[NoisyMeasurement]:
    """The same; cells of a column and its special cells become one measurement where their noise is alike."""
    rest = list(measured)
    while rest:
        one = rest.pop(0)
        if rest and _are_halves(one, rest[0]):
            yield _joined(one, rest.pop(0))
        else:
            yield one


def _are_halves(one: NoisyMeasurement, other: NoisyMeasurement) -> bool:
    """Whether both count positions of one column one by one, all of them together once."""
    noises = [(each.columns, each.noise) for each in (one, other)]
    if noises[0] != noises[1] or len(one.columns) > 1:
        return False
    places = [_positions(each) for each in (one, other)]
    width = one.bins[0].width
    singles = all(each.size == m.noisy.size for each, m in zip(places, (one, other), strict=True))
    return singles and one.noisy.size + other.noisy.size == width == np.unique(np.concatenate(places)).size


def _positions(each: NoisyMeasurement) -> UInts:
    """The last position of each bin that is counted, in the order of the numbers; none for other sums."""
    edges = each.bins[0].edges
    if edges is None or each.matrix is None:
        return np.zeros(0, np.uint64)
    return np.asarray(edges[each.matrix.indices])


def _joined(one: NoisyMeasurement, other: NoisyMeasurement) -> NoisyMeasurement:
    places = np.concatenate([_positions(one), _positions(other)])
    noisy = np.concatenate([one.noisy, other.noisy])[np.argsort(places)]
    bins = (AxisBins.identity(one.bins[0].width),)
    return NoisyMeasurement(columns=one.columns, bins=bins, noisy=noisy, **_parameter(one.noise))


# --- one axis ----------------------------------------------------------------------------------


def _histogram(place: _Place, release: CellsRelease) -> Iterator[NoisyMeasurement]:
    cells = np.arange(release.size, dtype=np.uint64)
    yield from _ranges(place, cells, cells, release.noisy, release.law)


def _thresholds(place: _Place, release: ThresholdRelease) -> Iterator[NoisyMeasurement]:
    cells = np.arange(release.size, dtype=np.uint64)
    yield from _ranges(place, np.zeros_like(cells), cells, release.noisy, release.scale)


def _intervals(place: _Place, release: LaplaceRelease) -> Iterator[NoisyMeasurement]:
    low, high = np.triu_indices(release.size)
    yield from _ranges(place, low.astype(np.uint64), high.astype(np.uint64), release.noisy, release.scale)


def _tree(place: _Place, release: TreeRelease) -> Iterator[NoisyMeasurement]:
    cells = np.arange(release.size, dtype=np.uint64)
    yield from _tree_over(place, release, cells, cells)


def _tree_over(place: _Place, tree: TreeRelease, starts: UInts, ends: UInts) -> Iterator[NoisyMeasurement]:
    """A tree whose leaves begin and end at these cells, level after level."""
    for width, level, scale in zip(tree.shape.widths, tree.levels, tree.scales, strict=True):
        first = np.arange(level.size) * width
        last = np.minimum(first + width, tree.size) - 1
        yield from _ranges(place, starts[first], ends[last], level, scale)


def _paper_intervals(place: _Place, release: PaperIntervalsRelease) -> Iterator[NoisyMeasurement]:
    yield from _tree_over(place, release.tree, release.cut.starts, release.cut.edges)


def _spending_tree(place: _Place, release: SpendingTreeRelease) -> Iterator[NoisyMeasurement]:
    shape = release.shape
    if release.total_scale is not None:
        root, total = np.zeros(1, np.int64), np.array([release.total], object)
        yield from _ranges(place, shape.first[root], shape.last[root], total, release.total_scale)
    for some, scale in _alike(release.looks, shape.levels, release.scale):
        nodes = release.looks.nodes[some]
        yield from _ranges(place, shape.first[nodes], shape.last[nodes], release.looks.noisy[some], scale)


def _alike(looks: TreeLooks, levels: Ints, scale: Fraction) -> Iterator[tuple[Ints, Fraction]]:
    """Looks at nodes of one level with noise of one scale: their nodes are distinct, or looked at again."""
    level = np.repeat(np.arange(levels.size), levels)[looks.nodes]
    kinds, which = np.unique(np.stack([level, looks.units], axis=1), axis=0, return_inverse=True)
    for kind, (_, units) in enumerate(kinds.tolist()):
        yield np.flatnonzero(which.ravel() == kind), scale / units


def _hierarchy(place: _Place, release: HierarchyRelease) -> Iterator[NoisyMeasurement]:
    """All nodes but the root, level after level, those of one scale together."""
    shape, levels = release.shape, release.shape.levels
    level, scale = np.repeat(np.arange(levels.size), levels)[1:], release.scale_numbers
    for one, other in np.unique(np.stack([level, scale], axis=1), axis=0).tolist():
        some = np.flatnonzero((level == one) & (scale == other))
        first, last = shape.first[some + 1], shape.last[some + 1]
        yield from _ranges(place, first, last, release.noisy[some], release.scales[other])


def _tents(place: _Place, release: TentRelease) -> Iterator[NoisyMeasurement]:
    cells = np.arange(release.size, dtype=np.uint64)
    yield from _tents_over(place, release.tents, cells, cells)


def _tents_over(place: _Place, tents: TentCounts, starts: UInts, ends: UInts) -> Iterator[NoisyMeasurement]:
    """Counts of units that begin and end at these cells, and of tents over them, in units of 2^-8 a level."""
    lows, highs = (place.cells(each)[:, np.newaxis] for each in (starts, ends))
    scales = [1 / rate for rate in tents.rates]
    yield from place.boxes(lows, highs, tents.levels[0], scales[0])
    bins = _bins_of(lows[:, 0], highs[:, 0], place.columns[0].width)
    unit, node = np.arange(tents.units), np.arange(tents.units)
    weight = np.ones(tents.units, np.int64)
    for number, (level, scale) in enumerate(zip(tents.strategy.levels, scales[1:], strict=True), start=1):
        left, right = level.left[node], level.right[node]
        node = np.concatenate([left, left + 1])
        weight = np.concatenate([weight * (GRAIN - right), weight * right])
        unit, node, weight = _add_up(np.tile(unit, 2), node, weight, tents.units)
        indptr = np.searchsorted(node, np.arange(level.tents + 1)).astype(np.int64)
        columns = bins.of(highs[:, 0])[unit].astype(np.int64)
        matrix = SparseRows(indptr, columns, weight, bins.number)
        yield place.made((bins,), tents.levels[number], scale, matrix, GRAIN**number)


def _add_up(unit: Ints, node: Ints, weight: Ints, units: int) -> tuple[Ints, Ints, Ints]:
    """The weight of each unit in each node, ordered by nodes; what weighs nothing is left out."""
    used = weight > 0
    keys, which = np.unique(node[used] * units + unit[used], return_inverse=True)
    rule, fix = f"must have at most {MOST_ENTRIES:,} weights", "export a release of fewer cells"
    check(keys.size <= MOST_ENTRIES, "release", rule, given=keys.size, fix=fix)
    sums = np.zeros(keys.size, np.int64)
    np.add.at(sums, which, weight[used])
    return keys % units, keys // units, sums


def _partition_tents(place: _Place, release: PartitionTentsRelease) -> Iterator[NoisyMeasurement]:
    ends = release.units.ends
    starts = np.append(np.uint64(0), ends[:-1] + np.uint64(1))
    yield from _tents_over(place, release.tents, starts, ends)
    if release.pairs is not None:
        wide = ends > starts
        yield from _pairs(place, release.pairs, starts[wide], ends[wide])


def _pairs(place: _Place, pairs: Pairs, starts: UInts, ends: UInts) -> Iterator[NoisyMeasurement]:
    """The last cell of each segment of several cells, and the rest of it."""
    one, scale = np.uint64(1), 1 / pairs.rate
    yield from _ranges(place, ends, ends, pairs.last, scale)
    yield from _ranges(place, starts, ends - one, pairs.rest, scale)


def _ranges(
    place: _Place, first: UInts, last: UInts, noisy: NDArray[Any], law: NoiseLaw
) -> Iterator[NoisyMeasurement]:
    """Noisy counts of ranges of cells of the one column."""
    lows, highs = (place.cells(each.astype(np.uint64))[:, np.newaxis] for each in (first, last))
    yield from place.boxes(lows, highs, noisy, law)


# --- several axes ------------------------------------------------------------------------------


def _grid(place: _Place, release: CellGrid) -> Iterator[NoisyMeasurement]:
    yield from place.counts(tuple(map(AxisBins.identity, release.shape)), release.noisy, release.law)


def _plain_view(place: _Place, release: PlainView) -> Iterator[NoisyMeasurement]:
    yield from place.counts((AxisBins.identity(release.axis.width),), release.noisy, release.scale)


def _spending_boxes(place: _Place, release: SpendingBoxesRelease) -> Iterator[NoisyMeasurement]:
    nodes, looks = release.shape.nodes, release.looks
    for some, scale in _alike(looks, release.shape.levels, release.scale):
        lows, highs = nodes.corners(looks.nodes[some])
        yield from place.boxes(lows, highs, looks.noisy[some], scale)


def _viewed_boxes(place: _Place, release: ViewedBoxesRelease) -> Iterator[NoisyMeasurement]:
    yield from place.measured(release.boxes)
    for axis, view in release.views.items():
        yield from place.only(axis).measured(view)
    if release.total is not None and release.scale is not None:
        yield from _total(place, release.total, release.scale)


def _graph(place: _Place, release: TableGraphRelease) -> Iterator[NoisyMeasurement]:
    """The total, views and tables. Looks and audits are sums of absolute misfits, which are not linear."""
    fit = release.fit
    yield from _total(place, fit.total, fit.scale)
    for column, view in enumerate(fit.views):
        yield from place.only(column).measured(view)
    for table in fit.tables:
        pairs = zip(table.columns, table.groups, strict=True)
        bins = tuple(_group(fit.bins[column], groups) for column, groups in pairs)
        yield from place.only(*table.columns).counts(bins, table.noisy, table.scale)


def _total(place: _Place, total: int, scale: NoiseLaw) -> Iterator[NoisyMeasurement]:
    """The number of all rows, as a count of the one bin that is a whole column: of the narrowest."""
    widths = [column.width for column in place.columns]
    number = widths.index(min(widths))
    bins = AxisBins.from_edges([widths[number] - 1])
    yield from place.only(number).counts((bins,), np.array([total], object), scale)


def _group(bins: AxisBins, groups: Ints | None) -> AxisBins:
    """Bins that are joined to fewer: still runs of positions, if they are joined to those beside them."""
    if groups is None:
        return bins
    if bins.edges is not None and not bool((np.diff(groups) < 0).any()):
        return AxisBins.from_edges(bins.edges[np.append(groups[1:] != groups[:-1], True)])
    lookup = bins.of(np.arange(bins.width, dtype=np.uint64))
    return AxisBins.from_lookup(groups[lookup])


_KINDS: Final[Mapping[type, Callable[[_Place, Any], Iterator[NoisyMeasurement]]]] = {
    HistogramRelease: _histogram,
    GaussianRelease: _histogram,
    ThresholdRelease: _thresholds,
    LaplaceRelease: _intervals,
    TreeRelease: _tree,
    HierarchyRelease: _hierarchy,
    PaperIntervalsRelease: _paper_intervals,
    SpendingTreeRelease: _spending_tree,
    TentRelease: _tents,
    PartitionTentsRelease: _partition_tents,
    GridRelease: _grid,
    GaussianGridRelease: _grid,
    PlainView: _plain_view,
    SpendingBoxesRelease: _spending_boxes,
    ViewedBoxesRelease: _viewed_boxes,
    TableGraphRelease: _graph,
}
"""What makes the measurements of each kind. Others are refused: rank boxes and rectangles among them."""
