"""A table of many columns: views, privately chosen pairs, one public model, and audits of its errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar, Final, cast, final

import numpy as np

from partita.arrays import Ints
from partita.concentrated import DEFAULT_DELTA
from partita.domain.axis import MOST_COLUMNS, Axis
from partita.errors import InvalidParameter, check
from partita.guarantee import Guarantee
from partita.numbers import Converted, Exact, freeze, frozen, parameter, rational
from partita.public.bounds import Gaussian, NoiseLaw
from partita.public.boxes.base import BoxRelease
from partita.public.boxes.bins import AxisBins
from partita.public.boxes.grid import MOST_CELLS, GaussianGridRelease, GridRelease
from partita.public.boxes.plan import Recipe
from partita.public.tables.audits import CELLS, FINE, TRIPLES, Audit, AuditPlan
from partita.public.tables.fit import MeasuredTable, TableFit
from partita.public.tables.graph import MisfitLook, TableGraphRelease
from partita.public.tables.model import Columns, all_pairs, find_cliques, join_bins
from partita.public.tables.plan import (
    BINS_TOGETHER,
    SMALL,
    Shares,
    find_cover,
    is_counted,
    most_later,
    predict_graph_error,
    split,
    table_weights,
)
from partita.public.tables.spending import TREE_SHARE, EpsilonSpending, RhoSpending, Spending
from partita.trusted.mechanisms.base import PartNoise, check_scale
from partita.trusted.mechanisms.boxes import BoxMechanism, SpendingBoxes
from partita.trusted.noise.gaussian import LARGEST_VARIANCE, SMALLEST_VARIANCE
from partita.trusted.noise.system import SYSTEM, Noise
from partita.trusted.secret import PointCounts
from partita.trusted.tables import MOST_COUNTED

_VIEW_BITS: Final = 3
_VIEW_RECIPE: Final = Recipe(growth="3/2", worth=5, depth_power=1)  # as in the views of rank boxes
_ROUNDS: Final = 2  # of later pairs: the model is fitted again between them
_LARGEST_TOTAL: Final = 2**62
_LARGEST_NOISE: Final = 2**26
"""No scale is larger than this over the rate: tables that are measured again have at least 2^-25 of epsilon
each; a sum of 780 misfits has .01 of it, and one of 399 audited misfits an eighth of .04. Under rho sums have
.002 and a tenth of .03, and no variance is larger than the square of this over twice rho, for one row."""


@final
@frozen(kw_only=True)
class TableGraph(BoxMechanism):
    """A table of two to forty columns: any question about any of them, from a model of pairs.

    Guarantee: epsilon-DP, pure, or made with rho= rho-zCDP; ADD_REMOVE or CHANGE_ONE.
    Error:     measured, not proved: benchmarks/README.md; each release audits its own model.
    Proof:     docs/proofs/graph.md (misfits of sensitivity one, choices, audits; shares add up)

    Every column has a view. Small columns are covered by views of several columns; otherwise pairs are
    chosen by how far the model is from the rows, measured, and the model is fitted again. `together` has
    sets of columns that are measured first. Under rho all noise but that of long ordered columns is Gaussian.

    >>> from partita.domain.axis import Axis
    >>> TableGraph(axes=[Axis(size=2, labels=True)] * 8, epsilon=1).guarantee.epsilon
    Fraction(1, 1)
    >>> TableGraph(axes=[Axis(size=2, labels=True)] * 8, rho="1/8").guarantee.rho
    Fraction(1, 8)
    """

    takes_rho: ClassVar[bool] = True
    takes_epsilon: ClassVar[bool] = True

    name: ClassVar[str] = "graph"
    fewest_axes: ClassVar[int] = 2
    most_axes: ClassVar[int] = MOST_COLUMNS

    epsilon: Exact = parameter(default=None)
    rho: Converted[object, Fraction | None] = parameter(default=None)
    delta: Converted[object, Fraction] = parameter(default=DEFAULT_DELTA)
    together: Converted[Sequence[Sequence[int]], tuple[Columns, ...]] = parameter(default=())

    def _convert(self) -> None:
        if self.rho is not None:
            given, promise = (
                cast(object, self.epsilon),
                Guarantee.concentrated(rho=self.rho, delta=self.delta),
            )
            rule, fix = "must be left out beside rho, or be what follows from it", "pass one of the two"
            follows = given is None or rational(given, "epsilon") >= promise.epsilon
            check(follows, "epsilon", rule, given=given, fix=fix)
            freeze(self, rho=promise.rho, epsilon=promise.epsilon, delta=promise.delta)
        super()._convert()
        freeze(self, together=_check_together(self.together, len(self.axes)))

    def _check(self) -> None:
        if isinstance(self.spending, RhoSpending):
            least = self.spending.cell(Fraction(1)).variance
            most = self.spending.sum(Fraction(1), _LARGEST_NOISE).variance
            rule, fix = "must give noise of a variance between 2^-20 and 2^124", "use a value such as 1/8"
            drawn = least > SMALLEST_VARIANCE and most <= LARGEST_VARIANCE
            check(drawn, "rho", rule, given=self.rho, fix=fix)
        else:
            check_scale(_LARGEST_NOISE / self.rate, self.epsilon)
            check_scale(1 / self.rate, self.epsilon)
        for axis, part in zip(self.axes, Shares.of(self.axes, self.spending, 1).views, strict=True):
            if not is_counted(axis, self.spending.told_by_view(part), 0):
                self._tree(axis, part / 7)  # views have from .1 to .7 of epsilon: this is less than any
        for axis in self.axes:
            rule, fix = "must have at most 2^22 labels in a category", "join labels, or leave the column out"
            check(not axis.labels or axis.width <= MOST_CELLS, "axes", rule, given=axis.size, fix=fix)
        sizes = [min(axis.width, BINS_TOGETHER) for axis in self.axes]
        pairs = [pair for columns in self.together for pair in all_pairs(columns)]
        rule, fix = "must name combinations that one model can hold", "name fewer columns together"
        check(find_cliques(sizes, pairs) is not None, "together", rule, given=len(self.together), fix=fix)

    @property
    def guarantee(self) -> Guarantee:
        """What the release promises, and for whom."""
        if self.rho is None:
            return super().guarantee
        return Guarantee.concentrated(rho=self.rho, delta=self.delta, **self.protected)

    @property
    def spending(self) -> Spending:
        """How parts of the budget become noise."""
        if self.rho is None:
            return EpsilonSpending(self.rate)
        return RhoSpending(self.rho, self.neighbors, self.contributions)

    @property
    def why(self) -> str:
        """A sentence about what follows from public parameters."""
        return (
            f"A view of each of {len(self.axes)} columns and views of pairs that are chosen by noisy scores, "
            "joined by one model; audits measure its errors."
        )

    def predicted_error(self, rows: int) -> float:
        """About the root-mean-square error of a random box of two columns if there are that many rows."""
        return predict_graph_error(self.axes, self.spending, rows)

    def predicted_numbers(self, rows: int) -> int:
        """About how many integers the release holds."""
        views = sum(min(axis.width, MOST_CELLS, 4096 + rows) for axis in self.axes)
        return views + 2**18 + 4096 * len(self.axes)

    def release(self, points: PointCounts, *, noise: Noise = SYSTEM) -> TableGraphRelease:
        """Views, tables of several columns, and audits of the model that is fitted to them."""
        points = self.fitting(points)
        session = noise.session()
        spending = self.spending
        budget = _Budget(spending)
        total_scale = budget.cell(spending.total_share)
        noisy = int(add_noise(session, points.total, total_scale))
        total = max(-_LARGEST_TOTAL, min(_LARGEST_TOTAL, noisy))
        shares = Shares.of(self.axes, spending, max(1, total))
        views = self._views(points, session, budget, shares, max(1, total))
        pair = spending.told_by_pair(shares.pairs, len(self.axes))
        most = BINS_TOGETHER if self.together else None
        fit = TableFit.start(views, total, total_scale, pair, spending.rate, most_bins=most)
        rows = _Rows(points, fit.bins, session, budget)
        fit, looks, choosing = _Selection(rows, shares, self.together).run(fit)
        audits = _audit(rows, fit, shares.audits)
        return TableGraphRelease.of(
            fit,
            looks=looks,
            choosing=choosing,
            audits=audits,
            guarantee=self.guarantee if session.secure else None,
        )

    def _views(
        self, points: PointCounts, session: Noise, budget: _Budget, shares: Shares, total: int
    ) -> list[BoxRelease]:
        """The noisy counts of every column: of each cell, or of a tree over many ordered cells."""
        plain = [
            place
            for place, (axis, part) in enumerate(zip(self.axes, shares.views, strict=True))
            if is_counted(axis, self.spending.told_by_view(part), total)
        ]
        bins = [
            AxisBins.identity(axis.width) if place in plain else AxisBins.from_edges([axis.width - 1])
            for place, axis in enumerate(self.axes)
        ]
        counts = _count_columns(points, plain, bins)
        views: list[BoxRelease] = []
        for place, (axis, part) in enumerate(zip(self.axes, shares.views, strict=True)):
            scale = budget.cell(part)
            if place in counts:
                noisy = add_noise(session, counts[place], scale)
                views.append(
                    GaussianGridRelease(axes=(axis,), noisy=noisy, variance=scale.variance)
                    if isinstance(scale, Gaussian)
                    else GridRelease(axes=(axis,), noisy=noisy, scale=scale)
                )
            else:
                tree = self._tree(axis, part)
                released = tree.release(points.alone(place), noise=PartNoise(session))
                views.append(released.as_column_view())
        return views

    def _tree(self, axis: Axis, part: Fraction) -> SpendingBoxes:
        """The view of an ordered column of many cells."""
        return SpendingBoxes(
            axes=[axis],
            epsilon=self.spending.tree_rate(part) * self.rows_changed,
            bits=_VIEW_BITS,
            recipe=_VIEW_RECIPE,
            **self.protected,
        )


def _count_columns(points: PointCounts, columns: Sequence[int], bins: Sequence[AxisBins]) -> dict[int, Ints]:
    """The exact counts of some columns: in one pass, or one by one if all of them would not fit in memory."""
    at_once = sum(bins[column].number for column in columns) <= MOST_COUNTED
    batches = [list(columns)] if at_once else [[column] for column in columns]
    found: dict[int, Ints] = {}
    for batch in batches:
        if batch:
            found |= zip(batch, points.tables([(column,) for column in batch], bins), strict=True)
    return found


def _check_together(together: object, columns: int) -> tuple[Columns, ...]:
    """Sets of two or more different columns by their numbers."""
    listed = list(together) if isinstance(together, list | tuple) else [together]
    found = []
    for each in listed:
        given = list(each) if isinstance(each, list | tuple) else []
        known = all(type(number) is int and 0 <= number < columns for number in given)
        numbers = tuple(sorted(set(given))) if known else ()
        if len(numbers) < 2 or len(numbers) != len(given):
            rule, fix = "must be sets of two or more columns", "pass for example [(0, 1), (2, 3)]"
            raise InvalidParameter("together", rule, given=each, fix=fix)
        found.append(numbers)
    return tuple(dict.fromkeys(found))


@final
@dataclass
class _Budget:
    """The parts of epsilon, or of rho, that are spent; they never add up to more than one."""

    spending: Spending
    spent: Fraction = Fraction(0)

    def pay(self, part: Fraction) -> None:
        """Count a part, before anything is drawn with it."""
        self.spent += part
        if part <= 0 or self.spent > 1:
            raise AssertionError("a table release would spend more than it has")

    def cell(self, part: Fraction) -> NoiseLaw:
        """Pay for a table: the noise of its cells, of which a row changes one by one."""
        self.pay(part)
        return self.spending.cell(part)

    def sum(self, part: Fraction, number: int) -> NoiseLaw:
        """Pay for a sum of misfits, each of which a row changes by one: its noise."""
        self.pay(part)
        return self.spending.sum(part, number)


@final
@dataclass(frozen=True, eq=False)
class _Rows:
    """The only part of the release that sees counts of several columns: everything it returns is noisy.

    Exact tables of all pairs are counted in one pass, over bins that are released already.
    """

    points: PointCounts
    bins: tuple[AxisBins, ...]
    session: Noise
    budget: _Budget
    _exact: dict[Columns, Ints] = field(default_factory=dict, repr=False)

    def count(self, sets: Sequence[Columns]) -> None:
        """Count these tables in one pass."""
        fresh = [columns for columns in dict.fromkeys(sets) if columns not in self._exact]
        if fresh:
            self._exact.update(zip(fresh, self.points.tables(fresh, self.bins), strict=True))

    def measure(self, fit: TableFit, sets: Sequence[Columns], part: Fraction) -> list[MeasuredTable]:
        """Noisy tables of these sets, which share a part of epsilon by the root of their cells."""
        self.count(sets)
        parts = split(part, table_weights(self.budget.spending, fit.masses, sets))
        tables = []
        for columns, each in zip(sets, parts, strict=True):
            groups = fit.grid(columns, self.budget.spending.told(each))
            scale = self.budget.cell(each)
            exact = join_bins(self._exact[columns], groups)
            noisy = add_noise(self.session, exact.ravel(), scale).reshape(exact.shape)
            tables.append(MeasuredTable(columns, groups, noisy, scale))
        return tables

    def misfit(
        self, columns: Columns, groups: Sequence[Ints | None], guess: Ints, beyond: Ints | int = 0
    ) -> int:
        """The sum of what |count - guess| exceeds a public limit by: one row changes it by at most one.

        Exact and secret: it may only go into `choose` or `sum_up`.
        """
        exact = join_bins(self._exact[columns], groups)
        return int(np.maximum(np.abs(exact - guess) - beyond, 0).sum())

    def scores(self, fit: TableFit, pairs: Sequence[Columns], epsilon: float) -> dict[Columns, int]:
        """Misfit of each pair less what its noise would cost: exact and secret, for `choose`."""
        self.count(pairs)
        found = {}
        for pair in pairs:
            groups = fit.grid(pair, epsilon)
            guess = fit.guess(pair, groups)
            found[pair] = self.misfit(pair, groups, guess) - int(guess.size / epsilon)
        return found

    def choose(self, scores: dict[Columns, int], part: Fraction) -> Columns:
        """The exponential mechanism: a score changes by at most one for each row, up or down."""
        listed = list(scores)
        drawn = self.session.exponential(np.array([scores[each] for each in listed]), self.choice_scale(part))
        return listed[drawn]

    def choice_scale(self, part: Fraction) -> Fraction:
        """The scale of the exponential mechanism for a part; it spends nothing."""
        return self.budget.spending.choice_scale(part)

    def sum_up(self, misfits: Sequence[int], part: Fraction) -> tuple[int, NoiseLaw]:
        """The noisy sum of misfits: one row changes each of them by at most one."""
        scale = self.budget.sum(part, len(misfits))
        return int(add_noise(self.session, sum(misfits), scale)), scale


@final
@dataclass
class _Selection:
    """Which sets of columns are measured, and the fit to all of them."""

    rows: _Rows
    shares: Shares
    together: tuple[Columns, ...]
    looks: list[MisfitLook] = field(default_factory=list)
    choosing: Fraction = Fraction(0)

    def run(self, fit: TableFit) -> tuple[TableFit, tuple[MisfitLook, ...], Fraction]:
        """A cover of small columns, sets that were asked for, a spanning tree, and later pairs."""
        part = self.shares.pairs
        if self.shares.cover:
            fit, part = self._cover(fit, part)
        if part > 0:
            fit = self._chosen(fit, part)
        return fit, tuple(self.looks), self.choosing

    def _cover(self, fit: TableFit, part: Fraction) -> tuple[TableFit, Fraction]:
        """Views of several small columns that hold all their pairs; they get the part of their pairs."""
        # A small column stays one if its special cells have bins: Shares.of has counted on it.
        columns = enumerate(zip(fit.axes, fit.sizes, strict=True))
        small = [place for place, (axis, bins) in columns if min(axis.size, bins) <= SMALL]
        every, among = all_pairs(range(len(fit.sizes))), all_pairs(small)
        gaussian = isinstance(self._spending, RhoSpending)
        sets = find_cover(small, [max(2, size) for size in fit.sizes], gaussian=gaussian)
        asked = sum(not any(set(columns) <= set(each) for each in sets) for columns in self.together)
        mine = part * Fraction(len(among), len(every)) * Fraction(len(sets), len(sets) + asked)
        return fit.with_tables(self.rows.measure(fit, sets, mine)), part - mine

    def _chosen(self, fit: TableFit, part: Fraction) -> TableFit:
        every = all_pairs(range(len(fit.sizes)))
        first = [columns for columns in self.together if not _held(columns, fit)]
        named = {pair for columns in first for pair in all_pairs(columns)}
        free = [pair for pair in every if pair not in fit.pairs]
        if all(pair in named for pair in free):  # nothing to choose: tables have what choosing would cost
            part, free = part + self.shares.choosing + 2 * self.shares.look, []
        if not free and not first:
            first = sorted({table.columns for table in fit.tables})
            return fit.with_tables(self.rows.measure(fit, first, part))
        parts = _components(
            len(fit.sizes), [*fit.pairs, *(p for columns in first for p in all_pairs(columns))]
        )
        needed = len(set(parts)) - 1
        carried = self._carried(fit, free, part / 2) if free else 1
        more = carried > needed and len(free) > needed + len(first)
        now = (part * share_of_tree(more)) if needed or first else Fraction(0)
        number = min(needed, max(1, carried - len(first))) if needed else 0
        picks = self._part_of_choosing(number, more) if number else Fraction(0)
        if number:
            scores = self.rows.scores(fit, free, self._spending.told(now / max(1, number + len(first))))
            first = [*first, *self._forest(fit, scores, parts, number, picks)]
        if first:
            fit = fit.with_tables(self.rows.measure(fit, first, now))
        if more or not first:
            fit = self._later(fit, part - now, alone=not number)
        return fit

    def _forest(
        self, fit: TableFit, scores: dict[Columns, int], parts: list[int], number: int, picks: Fraction
    ) -> list[Columns]:
        """So many pairs, each of which joins two parts of the graph."""
        chosen: list[Columns] = []
        while len(set(parts)) > 1 and len(chosen) < number:
            joining = {pair: score for pair, score in scores.items() if parts[pair[0]] != parts[pair[1]]}
            one, other = self._pick(joining, picks / number)
            chosen.append((one, other))
            parts = [parts[one] if each == parts[other] else each for each in parts]
        return chosen

    def _later(self, fit: TableFit, part: Fraction, *, alone: bool) -> TableFit:
        """Further pairs in rounds; if none fits the model any more, all tables are measured again."""
        free = [pair for pair in all_pairs(range(len(fit.sizes))) if pair not in fit.pairs]
        carried = self._carried(fit, free, part) if free else 0
        number = min(carried, len(free), most_later(len(fit.sizes)))
        picks = self.shares.choosing if alone else self.shares.choosing / 2
        left = part
        for start, stop in _round_ends(number):
            free = [pair for pair in free if pair not in fit.pairs]
            scores = self.rows.scores(fit, free, self._spending.told(part / max(1, number)))
            new = self._fitting(fit, scores, stop - start, picks / number)
            if not new:
                break
            mine = left if stop == number else part * Fraction(len(new), number)
            fit = fit.with_tables(self.rows.measure(fit, new, mine))
            left -= mine
        if left > 0:
            again = sorted({table.columns for table in fit.tables}) or all_pairs(range(len(fit.sizes)))[:1]
            fit = fit.with_tables(self.rows.measure(fit, again, left))
        return fit

    def _fitting(
        self, fit: TableFit, scores: dict[Columns, int], number: int, part: Fraction
    ) -> list[Columns]:
        """Pairs that a model can hold. A pair that does not fit is dropped and another one is drawn.

        That is the exponential mechanism among the pairs that fit, and costs one part. What was dropped is
        neither released nor logged, so all picks are paid at once, also those for which no pair is left:
        whether another draw was tried would tell who was dropped. A pair fits if the model can hold it now
        and could before each earlier pick: cliques come of a greedy search, and without this a pair that was
        dropped might fit again later, so that who is still there would tell who was dropped.
        """
        left, new = dict(scores), list[Columns]()
        self._spend_choice(number * part)
        while left and len(new) < number:
            while left:
                pair = self.rows.choose(left, part)
                del left[pair]
                if all(fit.fits([*new[:before], pair]) for before in range(len(new), -1, -1)):
                    new.append(pair)
                    break
        return new

    def _pick(self, scores: dict[Columns, int], part: Fraction) -> Columns:
        self._spend_choice(part)
        return self.rows.choose(scores, part)

    def _spend_choice(self, part: Fraction) -> None:
        self.rows.budget.pay(part)
        self.choosing += self._spending.choice_cost(part)

    def _part_of_choosing(self, number: int, more: bool) -> Fraction:
        return self.shares.choosing / 2 if more else self.shares.choosing

    def _carried(self, fit: TableFit, pairs: Sequence[Columns], part: Fraction) -> int:
        """How many pairs are worth a part of epsilon, by a noisy mean of their misfits."""
        each = self._spending.told(part / max(1, len(fit.sizes) - 1))
        self.rows.count(pairs)
        misfits, cells = [], 0
        for pair in pairs:
            groups = fit.grid(pair, each)
            guess = fit.guess(pair, groups)
            misfits.append(self.rows.misfit(pair, groups, guess))
            cells += guess.size
        noisy, scale = self.rows.sum_up(misfits, self.shares.look)
        self.looks.append(MisfitLook(len(pairs), noisy, scale))
        return self._spending.carried(noisy / len(pairs), cells / len(pairs), part)

    @property
    def _spending(self) -> Spending:
        return self.rows.budget.spending


def add_noise(session: Noise, exact: Any, law: NoiseLaw) -> Any:
    """Counts with noise of a law."""
    return session.add_gaussian(exact, law.variance) if isinstance(law, Gaussian) else session.add(exact, law)


def share_of_tree(more: bool) -> Fraction:
    """The part of the pairs' epsilon that the spanning tree gets."""
    return Fraction(TREE_SHARE) if more else Fraction(1)


def _held(columns: Columns, fit: TableFit) -> bool:
    return any(set(columns) <= set(table.columns) for table in fit.tables)


def _components(number: int, pairs: Sequence[Columns]) -> list[int]:
    """The part of the graph in which each column is."""
    parts = list(range(number))
    for one, other in pairs:
        parts = [parts[one] if each == parts[other] else each for each in parts]
    return parts


def _round_ends(number: int) -> list[tuple[int, int]]:
    """The first and the last number of pairs of each round that has some.

    >>> _round_ends(3), _round_ends(0)
    ([(0, 2), (2, 3)], [])
    """
    ends = [math.ceil(number * turn / _ROUNDS) for turn in range(_ROUNDS + 1)]
    return [(start, stop) for start, stop in pairwise(ends) if stop > start]


def _audit(rows: _Rows, fit: TableFit, part: Fraction) -> tuple[Audit, ...]:
    """All audits of the final model: each is one noisy number, and the tail is measured by released ones."""
    plan = AuditPlan(fit)
    each = part / plan.number
    rows.count(all_pairs(range(len(fit.sizes))))
    coarse = _Rows(rows.points, tuple(plan.coarse_bins), rows.session, rows.budget)
    coarse.count(plan.triples)
    mixed = _Rows(rows.points, tuple(plan.mixed_bins), rows.session, rows.budget)
    mixed.count([table.columns for kind, groups, tables in plan.jobs if groups == CELLS for table in tables])
    found, over, limits = list[Audit](), list[int](), 0.0
    for kind, groups, tables in plan.jobs:
        if kind == TRIPLES or groups == CELLS:
            seen = coarse if kind == TRIPLES else mixed
            misfits = [seen.misfit(t.columns, (None,) * len(t.columns), t.guess) for t in tables]
        else:
            misfits = [rows.misfit(t.columns, t.groups, t.guess) for t in tables]
        audit = Audit.of(kind, groups, tables, *rows.sum_up(misfits, each))
        found.append(audit)
        if groups == FINE and plan.has_tail:
            for table, limit in zip(tables, audit.excess_limits(tables), strict=True):
                over.append(rows.misfit(table.columns, table.groups, table.guess, limit))
                limits += audit.mean * float(table.unit.sum())
    if over:
        found.append(Audit.tail(limits, len(over), *rows.sum_up(over, each)))
    return tuple(found)
