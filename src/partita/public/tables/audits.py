"""How far a model is from the rows, measured: audits, and the error bars that follow from them.

A model misses a box of two sides with shares u and v of the rows by about phi times
rows sqrt(u (1 - u) v (1 - v)). Audits measure the mean of |phi| after the fit, noise and bias together, on
coarse tables of public sets of columns: measured pairs, pairs that depend on each other according to the
model, the other pairs, and triples. A last one measures how heavy the tail of misses is. Each audit is one
noisy number. Where rows times epsilon are few, noise would hide so many: all pairs are audited together, and
the tail is not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from statistics import NormalDist
from typing import Final, NamedTuple, final

import numpy as np

from partita.arrays import Floats, Ints
from partita.lazy import cached_property
from partita.public.axis.curve import Curve
from partita.public.bounds import Gaussian, NoiseLaw, noise_spread
from partita.public.boxes.bins import AxisBins
from partita.public.tables.fit import TableFit
from partita.public.tables.model import Columns, all_pairs, join_bins, round_rows
from partita.public.tables.plan import cut_pieces, join_like, join_neighbours
from partita.public.tables.sides import ColumnReader
from partita.public.tables.spending import row_cost, total_noise

MEASURED, STRONG, WEAK, TRIPLES, TAIL = "measured", "strong", "weak", "triples", "tail"
PAIRS = "pairs"
"""Pairs of all classes in one audit."""
NARROW = "narrow"
"""Pairs of a column of which nearly all rows share a bin: few rows decide them, and phi is larger there."""

COARSE, FINE, CELLS = 3, 9, 512
"""Groups of a column in audits: they say how misses grow with a box. At the last scale one of two columns has
its own cells, or runs of them, and the other one coarse groups: that measures what rows inside bins miss."""

_POOLED_BELOW: Final = 20_000
"""Rows times epsilon below which all pairs have one audit. With nine audits the noise of each is up to two
fifths of what it measures at 49,000 (Adult, epsilon 1), and up to all of it at 4,900: there intervals were
4.2 mean errors wide, and 3.5 with three audits of the same models. Mean misses of classes differ by up to a
third there."""
_SPLIT_FROM: Final = 100_000
"""Rows times epsilon from which on strong and weak pairs, and the tail, have audits of their own. At 25,000
and 49,000 (a survey, Adult) both missed by as much but for a third, and noise hid the tail."""
_DOMINATED: Final = 0.5  # of the rows in one bin: the other bins have groups of their own rows
_NEARLY_ALL: Final = 0.9  # of the rows in one bin: pairs of the column are narrow
_MOST_PAIRS: Final = 133  # of each class
_LABEL_WEIGHT: Final = 4  # of a joined label over that of another joined cell, where cells are audited
_MOST_AUDITED_CELLS: Final = 2**14  # of a category: all tables of such pairs are counted at once
_MOST_TRIPLES: Final = 60
_LISTED_TRIPLES: Final = 10_000  # triples are chosen among the first of these
_STRONG_PART: Final = 4  # a quarter of all pairs that are not measured counts as strong
_MOST_SLOPE: Final = 0.5  # of log miss by log share beyond the audited shares
_MEAN_TO_SD: Final = 1.25  # the deviation of a normal variable over its mean absolute value
# Intervals of 95% reach 2.1 deviations of the model of misses. With 2.0 eight made-up surveys were covered
# .957 in the mean, 4 of their 16 rows .937 to .946 (5 releases each; benchmarks/README.md, whole tables).
_WIDTH: Final = 2.1 / 1.96
_NOISE_ROOM: Final = 0.5, 0.8  # times the noise of unbiased tables: fits erred .53 to .77 (Adult, surveys)
UNCLEAR: Final = 2.0
"""Standard errors: a side with fewer rows cannot be told from none."""
_NORMAL: Final = NormalDist()
_FIXED: Final = 2**20  # logarithms and sums are stored in units of one over this

# The tail: normal misses exceed twice their mean by .058 of it, and +-2.45 means then hold 95%.
_NORMAL_TAIL, _NORMAL_WIDTH, _TAIL_SLOPE, _WIDEST = 0.058, 2.45, 7.0, 6.0
_USUAL_TAIL, _TAIL_DOUBT = 0.1, 0.07


@final
@dataclass(frozen=True, eq=False)
class AuditTable:
    """A set of columns in groups: what the model expects, and the size of a miss where phi is one.

    A side and the rest of its column miss alike, so that the share of a side is that of the smaller one.
    """

    columns: Columns
    groups: tuple[Ints | None, ...]
    guess: Ints
    shares: Floats
    unit: Floats
    noise: float


@final
@dataclass(frozen=True, eq=False)
class AuditPlan:
    """What is audited: classes of pairs, and triples, with the groups of every column at two scales."""

    fit: TableFit

    @cached_property
    def coarse_bins(self) -> list[AxisBins]:
        """The bins of every column joined to coarse groups."""
        found = zip(self.fit.bins, self._groups[COARSE], strict=True)
        return [coarsen(bins, groups) for bins, groups in found]

    @cached_property
    def kinds(self) -> dict[tuple[int, int], str]:
        """The class of every pair: narrow, measured, or by the dependence in the model."""
        pairs, narrow = all_pairs(range(len(self.fit.bins))), find_narrow(self.fit)
        wide = [pair for pair in pairs if not narrow & set(pair)]
        free = sorted((p for p in wide if p not in self.fit.pairs), key=lambda p: (-self.dependence(p), p))
        kinds = dict.fromkeys(pairs, NARROW) | dict.fromkeys(wide, MEASURED) | dict.fromkeys(free, WEAK)
        return kinds | dict.fromkeys(free[: len(free) // _STRONG_PART], STRONG)

    @property
    def has_tail(self) -> bool:
        """Whether the tail has an audit."""
        return self._evidence >= _SPLIT_FROM

    @property
    def number(self) -> int:
        """How many audits there are."""
        return len(self.jobs) + self.has_tail

    @property
    def _evidence(self) -> float:
        """Rows times epsilon, or what is like it: the noise of the total tells how much is spent."""
        return self.fit.rows / total_noise(self.fit.scale)

    @cached_property
    def jobs(self) -> list[tuple[str, int, list[AuditTable]]]:
        """The audits but for the tail: class, groups of a column, and the tables whose misfits are added."""
        jobs = []
        scales = (COARSE, FINE) if self._has_fine and self._evidence >= _POOLED_BELOW else (FINE,)
        for kind, listed in self._classes.items():
            pairs, own = spread_choice(listed, _MOST_PAIRS), (FINE,) if kind == NARROW else scales
            jobs += [(kind, scale, [self._table(pair, scale) for pair in pairs]) for scale in own]
        if self.celled:
            jobs.append((MEASURED, CELLS, [self._cell_table(*pair) for pair in self.celled]))
        if self.triples:
            jobs.append((TRIPLES, COARSE, [self._table(each, COARSE) for each in self.triples]))
        return jobs

    @property
    def _classes(self) -> dict[str, list[Columns]]:
        """The pairs that have audits in common: fewer audits have less noise each."""
        found: dict[str, list[Columns]] = {}
        for pair, kind in self.kinds.items():
            if self._evidence < _POOLED_BELOW and kind != NARROW:
                found.setdefault(PAIRS, []).append(pair)
            else:
                joined = kind == STRONG and self._evidence < _SPLIT_FROM
                found.setdefault(WEAK if joined else kind, []).append(pair)
        return found

    @cached_property
    def celled(self) -> list[tuple[int, int]]:
        """Pairs of a column whose bins hold several cells and another column, of which groups are counted.

        Columns with an even number are counted in cells, the others in groups: the rows are read once.
        """
        columns, parity = range(len(self.fit.bins)), self._celled_parity
        celled = [c for c in columns if c % 2 == parity and self.cell_bins[c].number <= _MOST_AUDITED_CELLS]
        joined = [c for c in celled if self.fit.axes[c].size > self.fit.sizes[c]]
        pairs = [(column, other) for column in joined for other in columns if other % 2 != parity]
        return pairs[:: max(1, -(-len(pairs) // _MOST_PAIRS))]

    @cached_property
    def _celled_parity(self) -> int:
        """Whether columns of even or of odd number are counted in cells: those with more joined cells.

        Joined labels have nothing in common but their mass, while neighbours are often alike.
        """
        columns = zip(self.fit.axes, self.fit.sizes, strict=True)
        extra = [(axis.size - size) * (_LABEL_WEIGHT if axis.labels else 1) for axis, size in columns]
        return 0 if sum(extra[0::2]) >= sum(extra[1::2]) else 1

    @cached_property
    def cell_bins(self) -> list[AxisBins]:
        """The cells of every column, or runs of them with a part of the rows each."""
        columns = zip(self.fit.bins, self.fit.curves, strict=True)
        return [_find_cells(bins, curve) for bins, curve in columns]

    @cached_property
    def mixed_bins(self) -> list[AxisBins]:
        """The bins in which celled pairs are counted."""
        both = zip(self.cell_bins, self.coarse_bins, strict=True)
        return [cells if c % 2 == self._celled_parity else coarse for c, (cells, coarse) in enumerate(both)]

    @property
    def _has_fine(self) -> bool:
        return any(int(groups.max()) + 1 > COARSE for groups in self._groups[FINE])

    def _cell_table(self, column: int, other: int) -> AuditTable:
        """What the model expects of the cells of one column and the coarse groups of another."""
        cells, groups = self.cell_bins[column], self._groups[COARSE][other]
        reader = ColumnReader.of_fit(self.fit, column)
        weights = {column: reader.cell_weights(cells).T, other: np.eye(int(groups.max()) + 1)[groups]}
        pair = (column, other) if column < other else (other, column)
        return self._audit_table(pair, (None, None), self.fit.model.table(pair, weights))

    @cached_property
    def triples(self) -> list[Columns]:
        """The triples that are audited: without narrow columns, of which each adds noise and says little."""
        every, narrow = range(len(self.fit.bins)), find_narrow(self.fit)
        wide = [column for column in every if column not in narrow]
        among = combinations(wide if len(wide) > 2 else every, 3)
        listed = [each for each, _ in zip(among, range(_LISTED_TRIPLES), strict=False)]
        return spread_choice(listed, _MOST_TRIPLES)

    def dependence(self, pair: tuple[int, int]) -> float:
        """How far a pair is from independence in the model: half of the distance, as a share of all rows."""
        table = self._fine[pair]
        return float(np.abs(table.guess - self.fit.rows * table.shares).sum()) / (2 * self.fit.rows)

    @cached_property
    def _fine(self) -> dict[tuple[int, int], AuditTable]:
        return {pair: self._table(pair, FINE) for pair in all_pairs(range(len(self.fit.bins)))}

    @cached_property
    def _groups(self) -> dict[int, list[Ints]]:
        """For each scale the group of every bin of every column."""
        found: dict[int, list[Ints]] = {}
        for scale in (COARSE, FINE):
            columns = zip(self.fit.axes, self.fit.masses, strict=True)
            found[scale] = [group_masses(mass, axis.labels, scale) for axis, mass in columns]
        return found

    def _table(self, columns: Columns, scale: int) -> AuditTable:
        groups = [self._groups[scale][column] for column in columns]
        hot = {c: np.eye(int(g.max()) + 1)[g] for c, g in zip(columns, groups, strict=True)}
        return self._audit_table(columns, tuple(groups), self.fit.model.table(columns, hot))

    def _audit_table(self, columns: Columns, groups: tuple[Ints | None, ...], expected: Floats) -> AuditTable:
        shares, unit = np.ones(()), np.ones(())
        for axis in range(len(columns)):
            others = tuple(each for each in range(len(columns)) if each != axis)
            part = np.clip(expected.sum(axis=others) / self.fit.rows, 0.0, 1.0)
            shares = np.multiply.outer(shares, np.minimum(part, 1 - part))
            unit = np.multiply.outer(unit, np.sqrt(part * (1 - part)))
        noise = self._noise(columns, groups) if all(group is not None for group in groups) else 0.0
        return AuditTable(columns, groups, round_rows(expected), shares, self.fit.rows * unit, noise)

    @cached_property
    def _leaves_out(self) -> bool:
        """Whether noise is Gaussian and no clique of the model holds some table."""
        held = self.fit.model.holds
        return isinstance(self.fit.scale, Gaussian) and not all(held(t.columns) for t in self.fit.tables)

    def _noise(self, columns: Columns, groups: Sequence[Ints | None]) -> float:
        """The mean absolute noise of a table, summed over its cells, if measured tables tell it without bias.

        Zero if some table joins bins, or does not hold these columns: then the model may be biased. Gaussian
        noise is small beside what a model leaves out that cannot hold all tables.
        """
        if self._leaves_out:
            return 0.0
        precision = np.zeros([int(group.max()) + 1 for group in groups if group is not None])
        for table in self.fit.tables:
            if any(each is not None for each in table.groups):
                return 0.0
            if set(columns) <= set(table.columns):
                part = table.floats.onto(columns)
                precision += 1 / (part.variance * join_bins(np.ones_like(part.values), groups))
        if not precision.all():
            return 0.0
        return float((1 / np.sqrt(precision)).sum()) / _MEAN_TO_SD


def _find_cells(bins: AxisBins, curve: Curve) -> AxisBins:
    """The cells of a column, or runs of cells with a part of the rows each if there are many."""
    if bins.width <= CELLS or bins.edges is None:
        return AxisBins.identity(bins.width)
    ends, counts = cut_pieces(curve, curve.total / CELLS)
    groups = join_neighbours(counts, curve.total / CELLS, CELLS)
    return AxisBins.from_edges(ends[np.append(groups[1:] != groups[:-1], True)])


def find_narrow(fit: TableFit) -> set[int]:
    """The columns of which nearly all rows share a bin."""
    masses = enumerate(fit.masses)
    return {column for column, mass in masses if float(mass.max()) > _NEARLY_ALL * float(mass.sum())}


def group_masses(mass: Floats, labels: bool, scale: int) -> Ints:
    """The group of each bin: about so many of like mass, or beside a bin with most rows of the others.

    Without that bin apart, all that it leaves would join it, and the column would have a single group.

    >>> group_masses(np.array([1.0, 90.0, 3.0, 2.0, 4.0]), False, 3).tolist()
    [0, 1, 2, 2, 3]
    """
    join, whole, top = join_like if labels else join_neighbours, float(mass.sum()), int(mass.argmax())
    if float(mass[top]) <= _DOMINATED * whole:
        return join(mass, whole / scale, scale)
    limit, number = (whole - float(mass[top])) / (scale - 1), max(2, scale - 1)
    groups, first = np.zeros(mass.size, np.int64), 0
    sides = (
        [np.delete(np.arange(mass.size), top)] if labels else [np.arange(top), np.arange(top + 1, mass.size)]
    )
    for place, side in enumerate([sides[0], np.array([top]), *sides[1:]]):
        if side.size:
            joined = np.zeros(1, np.int64) if place == 1 else join(mass[side], limit, number)
            groups[side], first = first + joined, first + int(joined.max()) + 1
    return groups


def coarsen(bins: AxisBins, groups: Ints) -> AxisBins:
    """Bins joined to groups; of runs, neighbours are joined.

    >>> coarsen(AxisBins.from_edges([1, 3, 7]), np.array([0, 1, 1])).spans[1].tolist()
    [1, 7]
    """
    if bins.edges is not None and not (groups[1:] < groups[:-1]).any():
        return AxisBins.from_edges(bins.edges[np.append(groups[1:] != groups[:-1], True)])
    return AxisBins.from_lookup(groups[bins.of(np.arange(bins.width, dtype=np.uint64))])


def spread_choice(listed: Sequence[Columns], most: int) -> list[Columns]:
    """At most so many of a list, evenly spread.

    >>> spread_choice([(0,), (1,), (2,), (3,)], 2)
    [(0,), (2,)]
    """
    number = min(len(listed), most)
    return [listed[place * len(listed) // number] for place in range(number)]


@final
@dataclass(frozen=True)
class Audit:
    """One noisy sum of misfits of `number` tables, which one row changes by at most `number`.

    `unit` is the sum of the misses where phi is one, and `log_share` the mean logarithm of the share of a
    cell, both as multiples of 2^-20: functions of the model, stored so that readers need not find them.
    `noise` is what the noise of measured tables alone would miss, if they tell all of these tables; 0 if not.
    """

    kind: str
    groups: int
    number: int
    noisy: int
    scale: NoiseLaw
    unit: int
    log_share: int
    noise: int = 0

    @staticmethod
    def of(kind: str, groups: int, tables: Sequence[AuditTable], noisy: int, scale: NoiseLaw) -> Audit:
        """The audit of some tables."""
        unit = sum(float(table.unit.sum()) for table in tables)
        logs = [
            float((table.unit * np.log(np.maximum(table.shares, 1e-12))).sum())
            / max(float(table.unit.sum()), 1e-12)
            for table in tables
        ]
        fixed = round(unit * _FIXED), round(_FIXED * sum(logs) / max(1, len(logs)))
        known = sum(table.noise for table in tables) if all(table.noise for table in tables) else 0.0
        return Audit(kind, groups, len(tables), noisy, scale, *fixed, round(known * _FIXED))

    @staticmethod
    def tail(unit: float, number: int, noisy: int, scale: NoiseLaw) -> Audit:
        """The audit of what exceeds twice the mean miss, as a part of `unit`, the sum of all mean misses."""
        return Audit(TAIL, FINE, number, noisy, scale, round(unit * _FIXED), 0)

    @property
    def spent(self) -> Fraction:
        """What one row costs."""
        return row_cost(self.scale, self.number)

    @property
    def mean(self) -> float:
        """The mean of |phi| that is expected where any sum of misfits from zero on was as likely before.

        It is near what the noise of tables explains where these have no bias.
        """
        found = expect_sum(float(self.noisy), self.scale)
        if self.noise:
            least, most = (room * self.noise / _FIXED for room in _NOISE_ROOM)
            found = min(max(found, least), most)
        return found / max(self.unit / _FIXED, 1.0)

    def excess_limits(self, tables: Sequence[AuditTable]) -> list[Ints]:
        """For each table, the misses beyond which the tail begins: twice their mean."""
        return [round_rows(2 * self.mean * table.unit) for table in tables]


def expect_sum(noisy: float, law: NoiseLaw) -> float:
    """The mean of a sum that is not negative, given it with its noise, if all sums were as likely before.

    >>> ten = Fraction(10)
    >>> expect_sum(-50.0, ten), expect_sum(0.0, ten), round(expect_sum(100.0, ten), 3)
    (10.0, 10.0, 100.002)
    >>> round(expect_sum(0.0, Gaussian(Fraction(100))), 3), expect_sum(100.0, Gaussian(Fraction(100)))
    (7.979, 100.0)
    """
    if isinstance(law, Gaussian):
        deviation = math.sqrt(law.variance)
        height = max(noisy, 0.0) / deviation
        return max(noisy, 0.0) + deviation * _NORMAL.pdf(height) / _NORMAL.cdf(height)
    scale = float(law)
    if noisy <= 0:
        return scale
    below = math.exp(-noisy / scale)
    return noisy + (scale + noisy) * below / (2 - below)


class SideShares(NamedTuple):
    """One side of many boxes: its share of the rows, the share it touches, and the error of its count.

    `cuts` is the part of its rows of which it is not known on which side of a cut inside of a bin they lie.
    """

    share: Floats
    touched: Floats
    error: Floats
    cuts: Floats

    def narrower(self, doubt: Floats) -> Floats:
        """The share of the box or of all else, whichever is less; of a difference, of the box with more."""
        taken, added = ((self.touched + sign * self.share) / 2 for sign in (-1, 1))
        signed = self.touched > self.share + 1e-12
        parts = (np.clip(part + doubt, 1e-9, 1 - 1e-9) for part in (added, np.where(signed, taken, -doubt)))
        return np.asarray(np.maximum.reduce([np.minimum(part, 1 - part) for part in parts]))

    def variance(self, wider: Floats, doubt: Floats) -> Floats:
        """The variance of the weight of a row: of a part u of the rows it is u (1 - u)."""
        signed = np.minimum(self.touched + doubt, 1.0) - self.share**2
        return np.where(self.touched > self.share + 1e-12, np.maximum(signed, 1e-9), wider * (1 - wider))


def _product(factors: Sequence[Floats]) -> Floats:
    found = np.ones(1)
    for factor in factors:
        found = found * factor
    return found


@final
@dataclass(frozen=True, eq=False)
class ErrorModel:
    """Mean misses by class of pairs and by the share of a box, from audits."""

    audits: tuple[Audit, ...]

    @cached_property
    def widening(self) -> float:
        """How much wider intervals are than those of normal misses: by the audit of the tail, or as usual."""
        heavy = _USUAL_TAIL
        for tail in self._by_kind.get(TAIL, ()):
            unit = max(tail.unit / _FIXED, 1.0)
            weight = 1 / (1 + (noise_spread(tail.scale) / unit / _TAIL_DOUBT) ** 2)
            heavy = weight * tail.noisy / unit + (1 - weight) * _USUAL_TAIL
        width = _NORMAL_WIDTH + _TAIL_SLOPE * (heavy - _NORMAL_TAIL)
        return min(_WIDEST, max(_NORMAL_WIDTH, width)) / _NORMAL_WIDTH

    @property
    def has_narrow(self) -> bool:
        """Whether narrow pairs have an audit of their own; files of early versions have none."""
        return NARROW in self._by_kind

    def mean_miss(self, kind: str, shares: Floats) -> Floats:
        """The mean of |phi| for boxes of these shares: log-linear between the audits, and beyond them."""
        known = [each for each in (kind, PAIRS, WEAK, MEASURED, NARROW) if each in self._by_kind]
        cells = [audit for audit in self.audits if audit.groups == CELLS]
        audits = [*self._by_kind[known[0]], *cells] if known else cells
        points = sorted((audit.log_share / _FIXED, math.log(audit.mean)) for audit in audits)
        places, values = np.array([p for p, _ in points]), np.array([v for _, v in points])
        logs = np.log(np.maximum(shares, 1e-12))
        means = np.interp(logs, places, values)
        if places.size > 1:
            slope = (values[1] - values[0]) / max(places[1] - places[0], 1e-3)
            slope = min(_MOST_SLOPE, max(0.0, slope))
            means += slope * (np.minimum(logs - places[0], 0.0) + np.maximum(logs - places[-1], 0.0))
        return np.asarray(self.widening * np.exp(means))

    def deviations(
        self,
        sides: Mapping[int, SideShares],
        values: Floats,
        pairs: Mapping[tuple[int, int], Floats],
        kinds: Callable[[Columns], str],
        fit: TableFit,
        joined: Mapping[tuple[int, int], Floats] | None = None,
    ) -> Floats:
        """Standard errors of boxes over two or more columns that the model expects to hold `values` rows.

        What sides, pairs and triples of columns may miss, and the spread of rows in bins. `pairs` has the
        expected count of each pair of sides by itself, if there are more than two sides, and `joined` what
        labels that share bins add to the variance of some. Of a difference all of them are what its boxes
        hold together.
        """
        rows = fit.rows
        share = {c: np.clip(side.touched, 1e-9, 1 - 1e-9) for c, side in sides.items()}
        doubt = {c: np.minimum(side.error / rows, 1.0) for c, side in sides.items()}
        wider = {c: np.clip(share[c] + doubt[c], 1e-9, 1 - 1e-9) for c in sides}
        root = {c: np.sqrt(side.variance(wider[c], doubt[c])) for c, side in sides.items()}
        least = {c: side.narrower(doubt[c]) for c, side in sides.items()}
        cut = np.minimum(np.add.reduce([side.cuts for side in sides.values()]), 1.0)
        variance = np.maximum(cut * values, 1.0) + (fit.rows_error * values / rows) ** 2
        for column in sides:
            others = _product([share[c] for c in sides if c != column])
            # Rows of a side that cannot be told from none may lie unevenly: the root is a compromise.
            part = np.where(share[column] < UNCLEAR * doubt[column], np.sqrt(others), others)
            slope = np.minimum(np.maximum(values / share[column], rows * part), rows)
            variance = variance + (doubt[column] * slope) ** 2
        two, three = np.zeros(1), np.zeros(1)
        for a, b in combinations(sorted(sides), 2):
            miss = _MEAN_TO_SD * self.mean_miss(kinds((a, b)), least[a] * least[b])
            size = np.hypot(miss * rows * root[a] * root[b], np.sqrt((joined or {}).get((a, b), 0.0)))
            if len(sides) > 2:
                size = size * np.minimum(1.0, (values + 1) / (np.maximum(pairs[a, b], 0.0) + 1))
            two = two + size**2
        for triple in combinations(sorted(sides), 3):
            shares = _product([least[c] for c in triple])
            miss = _MEAN_TO_SD * self.mean_miss(TRIPLES, shares)
            rest = _product([wider[c] for c in sides if c not in triple])
            three = three + (miss * rows * rest * _product([root[c] for c in triple])) ** 2
        # What tables of three columns miss holds what their pairs miss.
        variance = variance + np.maximum(two, three)
        # Where no side can be told from none, all that the smallest may hold can lie in the box.
        unclear = np.logical_and.reduce([share[c] < UNCLEAR * doubt[c] for c in sides])
        most = rows * np.minimum.reduce([doubt[c] for c in sides])
        return np.asarray(_WIDTH * np.sqrt(np.where(unclear, np.maximum(variance, most**2), variance)))

    @cached_property
    def _by_kind(self) -> dict[str, list[Audit]]:
        """The audits of groups of each kind."""
        found: dict[str, list[Audit]] = {}
        for audit in self.audits:
            if audit.groups != CELLS:
                found.setdefault(audit.kind, []).append(audit)
        return found
