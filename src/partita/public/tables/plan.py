"""How a table release spends epsilon and which bins, grids and views it measures: public rules.

Everything here is a function of public parameters and released numbers. Constants were chosen on Adult and on
made-up surveys; benchmarks/README.md has the figures, also of tables that nothing was chosen on.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from typing import Final, final

import numpy as np

from partita.arrays import Bools, Floats, Ints, UInts
from partita.domain.axis import Axis
from partita.public.axis.curve import Curve
from partita.public.base import checkpoint
from partita.public.bounds import (
    Gaussian,
    half_width,
    noise_spread,
    noise_variance,
)
from partita.public.boxes.base import BoxRelease
from partita.public.boxes.bins import AxisBins
from partita.public.boxes.grid import MOST_CELLS, CellGrid
from partita.public.boxes.plan import tree_error
from partita.public.tables.model import Columns, NoisyTable, all_pairs
from partita.public.tables.spending import RhoSpending, Spending

NORMAL_95: Final = 1.96  # standard errors on each side of a 95% interval

_UNITS: Final = 2**20  # shares of epsilon are multiples of one over this, rounded down

_LOOKS, _CHOOSING, _AUDITS = 0.02, 0.08, 0.04
_VIEWS_AT, _VIEWS_DENSITY, _FEWEST_VIEWS, _MOST_VIEWS = 0.33, 73.0, 0.2, 0.7
"""Views have .33 (73 / density)^(1/3) of epsilon, from .2 to .7: rows times epsilon for each cell."""

_RHO_LOOKS, _RHO_CHOOSING, _RHO_AUDITS = 0.004, 0.03, 0.03
_RHO_VIEWS_AT, _FEWEST_RHO_VIEWS, _MOST_RHO_VIEWS = 0.4, 0.15, 0.7
"""Of rho: noise falls as the root of a part, so that small parts tell sums of misfits and choices. Views have
.4 (73 / density)^(1/3). At epsilon .1 pairs of Adult erred .086 with .6, and .091, .094 and .098 with .45, .3
and .2 (three releases each). At 1 and 10 anything from .1 to .4 was as good to a fortieth."""
_RHO_COVERED_VIEWS: Final = 0.1

_COVERED_VIEWS: Final = 0.1
"""Of epsilon for views if wider views cover all pairs: those tell single columns, too."""

_WEIGHED_CELLS: Final = 4096  # no view weighs more than one of so many cells
_TREE_CELLS: Final = 128.0  # no tree of more cells weighs less; 64 made columns of a hundred values 15% worse
SMALL: Final = 8  # columns of so many cells are not joined, and are covered by views of several columns
_FEWEST_COVERED: Final = 6  # columns: fewer have few pairs
_MOSTLY: Final = 0.7  # of all pairs must be among small columns for a cover
_COVER_CELLS: Final = (16, 32, 64, 128, 256)  # cells of a view of a cover: the best limit is searched
_COVER_TRIES: Final = (
    6  # searches for each limit, with other ties; one for many columns, where they take long
)
_MANY_COVERED: Final = 20  # columns
_COVER_GAIN: Final = 0.4  # error of pairs after the fit over that of raw views, on made-up surveys
_COVER_WORTH: Final = 0.1  # of all rows: a cover that errs by more tells less than independence

BINS_TOGETHER: Final = 32  # most bins of a column where sets of columns are named together
_BINS, _MANY_BINS, _RICH = 32, 64, 2e5  # most bins of a column: more where rows times epsilon are many
GRAIN: Final = 2.5
"""Rows times epsilon for each cell of a pair: finer cells are noise. All triples of Adult had .1665 and .0788
with 3.5, .1642 and .0782 with 2.5 (epsilon .1 and 1; 20 and 10 releases); 1.7 was worse at .1."""
_PIECES_FROM, _PIECES_TO = 20, 4096  # cells of ordered columns that are smoothed by constant pieces
_TRACE: Final = 1e-6  # of all rows, spread over the ordinary cells of a column
_PIECE_PRICES: Final = (4.0, 12.0)  # times the variance scale, for each constant piece: the mean of two fits
_LIKELY_ROUNDS: Final = 3  # of the law of labels: thirty rounds were no better
_LIKELY_STEPS: Final = 128  # counts that labels may have in it
_CLEAR: Final = 4.5  # standard errors: a special cell with less counts as empty in the model; most are empty
_MOST_GRID: Final = 2.0**15  # cells of a measured table: joined columns may have twice as many groups
_MOST_LATER: Final = 3  # times the number of columns: pairs beyond the spanning tree


def share(part: float) -> Fraction:
    """A part of epsilon, rounded down.

    >>> share(0.1) <= Fraction(1, 10)
    True
    """
    return Fraction(math.floor(part * _UNITS), _UNITS)


def split(whole: Fraction, weights: Sequence[float]) -> list[Fraction]:
    """A share of epsilon in parts by weight, each rounded down.

    >>> split(Fraction(1, 2), [1.0, 3.0])
    [Fraction(1, 8), Fraction(3, 8)]
    """
    return [whole * share(weight / sum(weights)) for weight in weights]


@final
@dataclass(frozen=True)
class Shares:
    """The parts of epsilon, or of rho: one for each view, and one for each later step, together at most one.

    `cover` says that wider views cover all pairs of small columns. `pairs` is for them and for chosen pairs.
    """

    views: tuple[Fraction, ...]
    look: Fraction
    choosing: Fraction
    audits: Fraction
    pairs: Fraction
    cover: bool
    unit: str = "epsilon"

    @property
    def total(self) -> Fraction:
        """The part for the number of rows: what is left."""
        return 1 - sum(self.views) - 2 * self.look - self.choosing - self.audits - self.pairs

    @staticmethod
    def of(axes: Sequence[Axis], spending: Spending, total: int) -> Shares:
        """The parts for about `total` rows."""
        if isinstance(spending, RhoSpending):
            return Shares._of_rho(axes, spending, total)
        rate = spending.rate
        cells = [_weigh(axis, rate * _VIEWS_AT / len(axes), max(1, total)) for axis in axes]
        rows = max(1.0, total * rate)
        cover = _is_covered(axes, spending, max(1, total))
        density = rows / sum(cells)
        wanted = min(_MOST_VIEWS, max(_FEWEST_VIEWS, _VIEWS_AT * (_VIEWS_DENSITY / density) ** (1 / 3)))
        whole = cover and all(axis.size <= SMALL for axis in axes)
        choosing = share(0.0 if whole else _CHOOSING)
        look, audits = share(0.0 if whole else _LOOKS / 2), share(_AUDITS)
        views = split(share(_COVERED_VIEWS if cover else wanted), [math.sqrt(each) for each in cells])
        rest = 1 - spending.total_share - sum(views) - 2 * look - choosing - audits
        return Shares(tuple(views), look, choosing, audits, rest, cover)

    @staticmethod
    def _of_rho(axes: Sequence[Axis], spending: RhoSpending, total: int) -> Shares:
        """The parts of rho."""
        cover = _is_covered(axes, spending, max(1, total))
        whole = cover and all(axis.size <= SMALL for axis in axes)
        told = spending.told(_RHO_VIEWS_AT / len(axes))
        cells = [_weigh_under_rho(axis, told, max(1, total)) for axis in axes]
        density = max(1, total) * spending.rate / sum(cells)
        wanted = _RHO_VIEWS_AT * (_VIEWS_DENSITY / density) ** (1 / 3)
        part = min(_MOST_RHO_VIEWS, max(_FEWEST_RHO_VIEWS, wanted))
        choosing = share(0.0 if whole else _RHO_CHOOSING)
        look, audits = share(0.0 if whole else _RHO_LOOKS / 2), share(_RHO_AUDITS)
        weights = [each ** (2 / 3) for each in cells]
        views = split(share(_RHO_COVERED_VIEWS if cover else part), weights)
        rest = 1 - spending.total_share - sum(views) - 2 * look - choosing - audits
        return Shares(tuple(views), look, choosing, audits, rest, cover, "rho")


def _weigh(axis: Axis, rate: float, rows: int) -> float:
    """The cells that a view weighs: its own, or for a tree those of a grid whose ranges err as much."""
    cells = float(min(axis.width, _WEIGHED_CELLS))
    if axis.labels or axis.width <= max(_PLAIN_CELLS, int(rows * rate)):
        return cells
    return min(cells, max(_TREE_CELLS, 1.5 * (tree_error([axis], Fraction(rate), rows) * rate) ** 2))


def _weigh_under_rho(axis: Axis, told: float, rows: int) -> float:
    """The same under rho: cells have Gaussian noise, and a tree has a pure part."""
    cells = float(min(axis.width, _WEIGHED_CELLS))
    if axis.labels or axis.width <= max(_PLAIN_CELLS, int(rows * told)):
        return cells
    error = tree_error([axis], Fraction(told / math.sqrt(2)), rows)
    return min(cells, max(_TREE_CELLS, 1.5 * (error * told) ** 2))


def _is_covered(axes: Sequence[Axis], spending: Spending, rows: int) -> bool:
    """Whether views of several columns tell pairs of small columns better than chosen pairs do."""
    small = [place for place, axis in enumerate(axes) if axis.size <= SMALL]
    among = len(all_pairs(small)) / max(1, len(all_pairs(range(len(axes)))))
    if len(small) < _FEWEST_COVERED or among < _MOSTLY:
        return False
    sizes = [max(2, axis.size) for axis in axes]
    if isinstance(spending, RhoSpending):
        cover = find_cover(small, sizes, gaussian=True)
        rest = 1 - _RHO_COVERED_VIEWS - _RHO_AUDITS - float(spending.total_share)
        error = cover_error(cover, sizes, gaussian=True) / spending.told(among * rest)
        return _COVER_GAIN * error <= _COVER_WORTH * rows
    cover = find_cover(small, sizes)
    rest = 1 - _COVERED_VIEWS - _AUDITS - float(spending.total_share)
    evidence = max(1.0, rows * spending.rate)
    return _COVER_GAIN * cover_error(cover, sizes) / (among * rest) <= _COVER_WORTH * evidence


# Views of several columns that hold every pair of small columns [Qardaji, Yang and Li 2014].


def find_cover(columns: Sequence[int], sizes: Sequence[int], *, gaussian: bool = False) -> list[Columns]:
    """Sets of columns with few cells each that hold every pair: the best of a greedy search.

    Of Gaussian noise, more sets have less each.

    >>> find_cover([0, 1, 2], [2, 2, 2])
    [(0, 1, 2)]
    """
    return list(_find_cover(tuple(columns), tuple(sizes), gaussian))


@lru_cache(maxsize=64)
def _find_cover(columns: tuple[int, ...], sizes: tuple[int, ...], gaussian: bool) -> tuple[Columns, ...]:
    """The cover of `find_cover`, found once: plans ask for the same one again and again."""
    tries = _COVER_TRIES if len(columns) <= _MANY_COVERED else 1
    found = [_cover(columns, sizes, limit, salt) for limit in _COVER_CELLS for salt in range(tries)]
    best: list[Columns] = min(found, key=lambda cover: cover_error(cover, sizes, gaussian=gaussian))
    return tuple(best)


def cover_error(cover: Sequence[Columns], sizes: Sequence[int], *, gaussian: bool = False) -> float:
    """The mean error of a pair, as a sum over its cells, if each set has an equal part of one epsilon.

    Of `gaussian` noise, if a set that had all of rho would be told like one with an epsilon of one.
    """
    precision: dict[tuple[int, int], float] = {}
    for columns in cover:
        cells = math.prod(sizes[column] for column in columns)
        for pair in combinations(columns, 2):
            precision[pair] = precision.get(pair, 0.0) + sizes[pair[0]] * sizes[pair[1]] / cells
    errors = [sizes[a] * sizes[b] / math.sqrt(weight) for (a, b), weight in precision.items()]
    noise = math.sqrt(len(cover)) if gaussian else len(cover)
    return noise * sum(errors) / max(1, len(errors))


def _cover(columns: Sequence[int], sizes: Sequence[int], limit: int, salt: int) -> list[Columns]:
    """Sets that take in, one after the other, what holds most pairs that are not held yet."""
    open_pairs, cover = set(all_pairs(columns)), list[Columns]()
    while open_pairs:
        checkpoint()
        degree = Counter(column for pair in open_pairs for column in pair)
        first = max(
            sorted(open_pairs), key=lambda p: degree[p[0]] + degree[p[1]] + _tie(p[0] + 41 * p[1], salt)
        )
        chosen, cells = list(first), sizes[first[0]] * sizes[first[1]]
        while True:
            gains = {
                column: sum(tuple(sorted((column, each))) in open_pairs for each in chosen)
                for column in columns
                if column not in chosen and cells * sizes[column] <= limit
            }
            worth = {
                column: (gain + _tie(column, salt) / 2) / math.log(sizes[column])
                for column, gain in gains.items()
                if gain
            }
            if not worth:
                break
            best = max(worth, key=lambda column: (worth[column], -column))
            chosen.append(best)
            cells *= sizes[best]
        cover.append(tuple(sorted(chosen)))
        open_pairs -= set(combinations(cover[-1], 2))
    return cover


def _tie(number: int, salt: int) -> float:
    """A fixed number in [0, 1) that breaks ties in another way for each salt."""
    return (number * 7919 + salt * 104729) * 2654435761 % 2**32 / 2**32


# Views of single columns, and bins of like mass.


def estimate_curve(view: BoxRelease, total: float) -> Curve:
    """The rows along a column: never negative, with this total; ordered columns are smoothed by pieces."""
    (axis,) = view.axes
    if not isinstance(view, CellGrid):
        curve = view.along(0, view.everything)
        return Curve(curve.ends, curve.counts * (total / curve.total) if curve.total > 0 else curve.counts)
    noisy = view.noisy.astype(np.float64)
    special = np.ones(axis.width, np.bool_)
    special[axis.before : axis.before + axis.size] = False
    there = ~special | (noisy >= _CLEAR * math.sqrt(noise_variance(view.law)))
    if axis.labels and axis.size > SMALL:
        noisy[there] = expect_labels(
            noisy[there], noise_spread(view.law), normal=isinstance(view.law, Gaussian)
        )
    elif not axis.labels and _PIECES_FROM <= axis.size <= _PIECES_TO:
        fits = [_fit_pieces(noisy, price * noise_spread(view.law) ** 2) for price in _PIECE_PRICES]
        noisy = np.mean([noisy, *fits], axis=0)
    # Where a bin seems empty its rows are in ordinary cells.
    counts = np.where(special, 0.0, _TRACE * total / axis.size)
    counts[there] += project_on_total(noisy[there], total)
    return Curve(np.arange(axis.width, dtype=np.uint64), counts)


def project_on_total(values: Floats, total: float) -> Floats:
    """The nearest numbers >= 0 with this sum.

    >>> project_on_total(np.array([3.0, -1.0, 1.0]), 2.0).tolist()
    [2.0, 0.0, 0.0]
    """
    below = values - values.max()  # a shift changes nothing, and huge values keep their precision
    falling = np.sort(below)[::-1]
    above = np.cumsum(falling) - max(total, 1.0)
    last = np.flatnonzero(falling - above / np.arange(1, values.size + 1) > 0)[-1]
    return np.asarray(np.maximum(below - above[last] / (last + 1), 0.0))


def expect_labels(noisy: Floats, scale: float, *, normal: bool = False) -> Floats:
    """The expected count of each of many labels, given noisy counts, if all of them have one law.

    The law is fitted to them [Kiefer and Wolfowitz 1956]. Where noise hides most labels the projection alone
    erred 1.1 to 1.6 times as much (countries of Adult, Zipf's laws); where it hides few, .95 to 1.1 times.

    >>> expect_labels(np.array([90.0, 14.0, 9.0, 12.0, -3.0, 10.0]), 8.0).round().tolist()
    [90.0, 11.0, 10.0, 10.0, 7.0, 10.0]
    """
    counts = np.unique(np.maximum(noisy, 0.0))
    if counts.size > _LIKELY_STEPS:
        counts = np.quantile(counts, np.linspace(0.0, 1.0, _LIKELY_STEPS))
    counts = np.unique(np.concatenate([counts, scale * np.array([0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0])]))
    far = np.abs(noisy[:, None] - counts) / scale
    far = far**2 / 4 if normal else far
    likely = np.exp(far.min(axis=1, keepdims=True) - far)
    law = np.full(counts.size, 1 / counts.size)
    for _ in range(_LIKELY_ROUNDS):
        law = (likely * law / (likely @ law)[:, None]).mean(axis=0)
    return np.asarray((likely @ (law * counts)) / (likely @ law))


def _fit_pieces(values: Floats, price: float) -> Floats:
    """Least squares by constant pieces, each at a price: exact, by dynamic programming."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    squares = np.concatenate([[0.0], np.cumsum(values**2)])
    best, begins = np.zeros(values.size + 1), np.zeros(values.size + 1, np.intp)
    for end in range(1, values.size + 1):
        lengths = end - np.arange(end)
        costs = best[:end] + squares[end] - squares[:end] - (sums[end] - sums[:end]) ** 2 / lengths + price
        begins[end] = costs.argmin()
        best[end] = costs[begins[end]]
    fitted, end = np.empty(values.size), values.size
    while end > 0:
        begin = int(begins[end])
        fitted[begin:end] = (sums[end] - sums[begin]) / (end - begin)
        end = begin
    return fitted


def find_bins(
    view: BoxRelease, curve: Curve, share_of_pair: float, rows: float, most_bins: int | None = None
) -> AxisBins:
    """Bins of like mass: neighbours of an ordered column, or labels of like mass, are joined.

    `share_of_pair` is about the epsilon of a pair: a bin has enough rows to be seen beside its noise.
    """
    (axis,) = view.axes
    most = most_bins or (_MANY_BINS if rows >= _RICH else _BINS)
    least = GRAIN / share_of_pair / 4
    if axis.size <= SMALL and isinstance(view, CellGrid):
        return _small_bins(view)
    if axis.labels:
        return AxisBins.from_lookup(join_like(curve.counts, least, most))
    ends, counts = cut_pieces(curve, max(least, curve.total / most))
    return AxisBins.from_edges(ends[_last_of_each(join_neighbours(counts, least, most))])


def _small_bins(view: CellGrid) -> AxisBins:
    """A bin for each cell of a small column; special cells that are not clearly there join another."""
    (axis,) = view.axes
    ordinary = np.arange(axis.width) - axis.before
    clear = view.noisy >= _CLEAR * math.sqrt(noise_variance(view.law))
    kept = np.flatnonzero(((ordinary >= 0) & (ordinary < axis.size)) | clear)
    return AxisBins.from_edges(np.append(kept[1:] - 1, axis.width - 1))


def cut_pieces(curve: Curve, most: float) -> tuple[UInts, Floats]:
    """The pieces of a curve; long ones with more rows than `most` are cut evenly."""
    spans = (curve.ends - curve.starts).astype(np.float64) + 1.0
    parts = np.minimum(np.maximum(1.0, np.ceil(curve.counts / max(most, 1e-9))), spans).astype(np.int64)
    if int(parts.max(initial=1)) == 1:
        return curve.ends, curve.counts
    piece = np.repeat(np.arange(parts.size), parts)
    within = np.arange(piece.size) - np.repeat(np.cumsum(parts) - parts, parts) + 1
    lengths = (curve.ends - curve.starts)[piece] + np.uint64(1)
    cuts = (within * (lengths.astype(np.float64) / parts[piece])).astype(np.uint64)
    whole = within == parts[piece]
    ends = np.where(
        whole, curve.ends[piece], curve.starts[piece] + np.maximum(cuts, np.uint64(1)) - np.uint64(1)
    )
    return ends, curve.counts[piece] / parts[piece]


def _last_of_each(groups: Ints) -> Bools:
    return np.append(groups[1:] != groups[:-1], True)


def join_neighbours(mass: Floats, least: float, most: int) -> Ints:
    """The group of each of some cells in order: neighbours are joined up to `least`; heavy cells stay alone.

    >>> join_neighbours(np.array([5.0, 1.0, 1.0, 3.0]), 3.0, 4).tolist()
    [0, 1, 1, 2]
    """
    return _join(mass, np.arange(mass.size), least, most)


def join_like(mass: Floats, least: float, most: int) -> Ints:
    """The same for cells in no order: the lightest are joined."""
    return _join(mass, np.argsort(-mass, kind="stable"), least, most)


def _join(mass: Floats, order: Ints, least: float, most: int) -> Ints:
    limit = max(least, float(mass.sum()) / most if mass.size > most else 0.0)
    groups, group, held = np.zeros(mass.size, np.int64), 0, 0.0
    for cell in order.tolist():
        weight = float(mass[cell])
        if held > 0 and (held >= limit or (weight >= limit and held >= limit / 3)):
            group, held = group + 1, 0.0
        groups[cell] = group
        held += weight
    if held < limit / 3 and group:
        groups[groups == group] = group - 1
    return groups


# Grids of pairs, and how many pairs the data can tell.


def find_grid(
    masses: Sequence[Floats], labels: Sequence[bool], epsilon: float, total: float
) -> tuple[Ints | None, ...]:
    """Groups of the bins of some columns that have about as many cells as this epsilon can tell."""
    wanted = _grid_sizes(
        [mass.size for mass in masses], max(2.0 ** len(masses), min(_MOST_GRID, total * epsilon / GRAIN))
    )
    groups: list[Ints | None] = []
    for mass, label, number in zip(masses, labels, wanted, strict=True):
        if mass.size <= number:
            groups.append(None)
            continue
        join = join_like if label else join_neighbours
        joined = join(mass, total / max(2.0, number), max(2, int(number)))
        groups.append(None if int(joined.max()) + 1 == mass.size else joined)
    return tuple(groups)


def _grid_sizes(sizes: Sequence[int], cells: float) -> list[float]:
    """The number of groups of each column: small columns keep all bins, the others share the cells.

    >>> _grid_sizes([2, 30, 50], 200.0), _grid_sizes([2, 3], 200.0)
    ([2.0, 10.0, 10.0], [2.0, 3.0])
    """
    wanted = [float(size) for size in sizes]
    for left, place in enumerate(sorted(range(len(sizes)), key=lambda each: sizes[each])):
        root = cells ** (1 / (len(sizes) - left))
        wanted[place] = min(wanted[place], root)
        cells /= wanted[place]
    return wanted


def table_weights(spending: Spending, masses: Sequence[Floats], sets: Sequence[Columns]) -> list[float]:
    """How a part is divided among tables, by their cells."""
    return [spending.weigh(math.prod(masses[column].size for column in columns)) for columns in sets]


def most_later(columns: int) -> int:
    """The most pairs beyond a spanning tree."""
    return _MOST_LATER * (columns - 1)


def combine_masses(
    views: Sequence[tuple[Floats, Floats]], measured: Sequence[NoisyTable]
) -> list[tuple[Floats, Floats]]:
    """The estimate of each bin of each column, from its view and all tables, and its variance.

    `views` has the counts of bins by the views, and their variances.
    """
    found = []
    for column, (values, variances) in enumerate(views):
        precision, weighted = 1 / variances, values / variances
        for table in measured:
            place = table.columns.index(column) if column in table.columns else -1
            if place >= 0 and table.groups[place] is None:
                alone = table.onto((column,))
                precision, weighted = precision + 1 / alone.variance, weighted + alone.values / alone.variance
        found.append((weighted / precision, 1 / precision))
    return found


def bin_masses(curve: Curve, bins: AxisBins) -> Floats:
    """The rows in each bin along a curve."""
    if bins.edges is not None:
        return np.diff(curve.upto(bins.edges), prepend=0.0)
    positions = np.arange(bins.width, dtype=np.uint64)
    return np.bincount(bins.of(positions), curve.between(positions, positions), bins.number).astype(
        np.float64
    )


def bin_counts(view: BoxRelease, bins: AxisBins) -> tuple[Floats, Floats]:
    """The noisy count of each bin by the view of its column, and the variance of each."""
    if isinstance(view, CellGrid):
        which = bins.of(np.arange(bins.width, dtype=np.uint64))
        values = np.bincount(which, view.noisy.astype(np.float64), bins.number).astype(np.float64)
        return values, bins.sizes.astype(np.float64) * noise_variance(view.law)
    lows, highs = (each[:, None] for each in bins.spans)
    return view.counts(lows, highs), np.maximum(view.errors(lows, highs), 1e-6) ** 2


# What to expect of a release, from public facts and a guess of the rows.

_PLAIN_CELLS: Final = 64  # cells of an ordered column that are always counted one by one
_PLAIN_ROWS: Final = 1  # rows times epsilon for each cell, from which on they are counted one by one
_CONFIDENT: Final = 0.05  # a half width is exceeded with this probability
_BOX_NOISE: Final = 0.22
"""The error of a random box of two columns over sqrt(rows columns / rate). With `_BOX_BINS` it was fitted to
Adult, six of its columns, trips and made-up surveys of 5 to 16 columns, one release of each at epsilon .1, 1
and 10: measured over predicted errors were .56 to 1.9, on two other surveys of 9 and 12 columns .36 to 1.9.
Columns that determine each other err more unless they are measured together."""
_BOX_BINS: Final = 0.0018  # of all rows, for each wide column: ends of a box lie inside of bins
_COVERED_BOX: Final = 2.0  # the error of a box over that of a cell, where a cover holds all pairs
_PAIR_CELL: Final = 1.4  # the error of a cell over that of a box over the root of its cells; same tables
_TREE_SINGLE: Final = 0.5  # the error of one value over that of a range of a tree: .06 to .6, same tables
_STEPS: Final = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)  # a suggested epsilon grows by these and their tenfolds
_POWERS: Final = 4


@final
@dataclass(frozen=True)
class ColumnErrors:
    """What to expect of one column, in rows: standard errors of a single cell and of a random range.

    `half_width` is that of the 95% interval of a single cell. Where each cell is `counted` by itself, both
    are those of its noise; else wide ranges were counted, and they are guesses.
    """

    cells: int
    single: float
    half_width: float
    range: float
    counted: bool


@final
@dataclass(frozen=True)
class TableErrors:
    """What to expect of a table release of about `rows` rows.

    `cell` is the typical error of a cell of two columns, `box` that of a random box of two columns.
    """

    rows: int
    shares: Shares
    columns: tuple[ColumnErrors, ...]
    cell: float
    box: float

    def is_blurred(self, column: int) -> bool:
        """Whether the interval of a single cell is wider than the mean number of rows of a cell."""
        return self.columns[column].half_width > self.mean(column)

    def mean(self, column: int) -> float:
        """The mean number of rows of a cell of a column."""
        return self.rows / self.columns[column].cells


def predict_errors(axes: Sequence[Axis], spending: Spending, rows: int) -> TableErrors:
    """What to expect of about so many rows."""
    shares = Shares.of(axes, spending, max(1, rows))
    sets = _planned_cover(axes, spending) if shares.cover else {}
    columns = tuple(
        _predict_column(axis, spending, part, rows, _precision(place, sets, spending, shares.pairs))
        for place, (axis, part) in enumerate(zip(axes, shares.views, strict=True))
    )
    box = _predict_box(axes, shares, spending, rows, sets)
    cell = _predict_cell(axes, box if sets else _PAIR_CELL * box, rows)
    return TableErrors(rows, shares, columns, cell, box)


def predict_graph_error(axes: Sequence[Axis], spending: Spending, rows: int) -> float:
    """About the root-mean-square error of a random box of two columns."""
    return predict_errors(axes, spending, rows).box


def find_growth(axes: Sequence[Axis], spending: Spending, rows: int, column: int) -> float | None:
    """How many times epsilon must grow until single cells of a column can be told; None if too often.

    >>> from partita.public.tables.spending import EpsilonSpending
    >>> find_growth([Axis(size=300, labels=True)] * 3, EpsilonSpending(Fraction(1)), 3000, 0)
    1.5
    """
    for growth in (step * 10.0**power for power in range(_POWERS) for step in _STEPS):
        if not predict_errors(axes, spending.grown(growth), rows).is_blurred(column):
            return growth
    return None


def is_counted(axis: Axis, rate: Fraction, rows: int) -> bool:
    """Whether the view of a column counts each cell by itself; `rate` is that of the view."""
    most = min(MOST_CELLS, max(_PLAIN_CELLS, int(rows * rate) // _PLAIN_ROWS))
    return axis.labels or axis.width <= most


def _predict_column(
    axis: Axis, spending: Spending, part: Fraction, rows: int, precision: float
) -> ColumnErrors:
    """The errors of a column whose view has this part; tables of a cover tell more by this precision."""
    rate = spending.told_by_view(part)
    if not is_counted(axis, rate, rows):
        pure = spending.tree_rate(part)
        error = tree_error([axis], pure, rows)
        single = _TREE_SINGLE * error
        return ColumnErrors(axis.size, single, NORMAL_95 * single, error, counted=False)
    noise = spending.cell(part)
    single = 1 / math.sqrt(1 / noise_variance(noise) + precision)
    wide = NORMAL_95 * single
    if precision == 0 and not isinstance(noise, Gaussian):
        wide = float(half_width(np.array(float(rate)), np.array(math.log(_CONFIDENT))))
    return ColumnErrors(axis.size, single, wide, single * math.sqrt((axis.width + 2) / 3), counted=True)


def _planned_cover(axes: Sequence[Axis], spending: Spending) -> dict[Columns, int]:
    """The sets of a cover, and the cells of each."""
    sizes = [max(2, axis.size) for axis in axes]
    small = [place for place, axis in enumerate(axes) if axis.size <= SMALL]
    return {
        each: math.prod(sizes[c] for c in each)
        for each in find_cover(small, sizes, gaussian=isinstance(spending, RhoSpending))
    }


def _precision(column: int, sets: Mapping[Columns, int], spending: Spending, part: Fraction) -> float:
    """One over the variance of a cell of a column by the tables of a cover, which add up the other cells."""
    weights = [spending.weigh(cells) for cells in sets.values()]
    found = 0.0
    for (columns, cells), weight in zip(sets.items(), weights, strict=True):
        if column in columns:
            variance = noise_variance(spending.cell(part * Fraction(weight / sum(weights))))
            found += 1 / (variance * cells ** (1 - 1 / len(columns)))
    return found


def _predict_box(
    axes: Sequence[Axis], shares: Shares, spending: Spending, rows: int, sets: Mapping[Columns, int]
) -> float:
    """The typical error of a random box of two columns: noise, and ends of boxes inside of bins."""
    most = float(rows) / 4 + 1.0
    wide = sum(axis.size > _BINS for axis in axes) / len(axes)
    if sets:
        scale = 1 / spending.told(shares.pairs / len(sets))
        ratios = [cells ** (1 - 2 / len(columns)) for columns, cells in sets.items()]
        noise = _COVERED_BOX * scale * math.sqrt(2 * sum(ratios) / len(ratios))
    else:
        noise = _BOX_NOISE * math.sqrt(max(1, rows) * len(axes) / spending.rate)
    return min(most, math.hypot(noise, _BOX_BINS * rows * wide))


def _predict_cell(axes: Sequence[Axis], box: float, rows: int) -> float:
    """The typical error of a cell of two columns: boxes err as the root of their cells."""
    squares = []
    for one, other in combinations(axes, 2):
        spread = math.sqrt((one.size + 2) * (other.size + 2)) / 3
        squares.append(min(box / spread, max(1.0, rows / (one.size * other.size))) ** 2)
    return math.sqrt(sum(squares) / len(squares))
