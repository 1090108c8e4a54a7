"""A release: public from the first byte to the last, and free to ask."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, NoReturn, Unpack, cast, final, overload

import numpy as np
from numpy.typing import NDArray

from partita.answer import LEAST_VARIANCE, Answer, Answers, divide
from partita.arrays import UInts
from partita.domain.axis import Axis
from partita.domain.base import Domain
from partita.domain.category import Category
from partita.domain.numeric import Integer, Real
from partita.errors import InvalidParameter, check, check_release
from partita.guarantee import Guarantee
from partita.lazy import cached_property
from partita.numbers import check_probability, integer
from partita.public.axis.base import is_single
from partita.public.axis.curve import Curve, apportion
from partita.public.axis.names import ListedNames, NameTable
from partita.public.axis.quantiles import QuantileView, SelectedQuantile
from partita.public.base import DECLARED, Provenance, checkpoint
from partita.public.boxes.regions import HalfSpace, Polygon, PublicRegion
from partita.public.conditions import Either, Ends, Where, parse_conditions
from partita.public.dependence import Dependence, find_dependence
from partita.public.file_entries import Published, join_views
from partita.public.groups import Grouping
from partita.public.keys import GroupKey
from partita.public.plot import heat_figure, is_interactive, line_figure, plot, plot_heat
from partita.public.questions import QUARTILES
from partita.public.readings import QuestionRows, ReleaseReading
from partita.public.regression import JointMoments, RegressionLine, check_numbers
from partita.public.report import check_views, citation, is_imported, release_card, report
from partita.public.results import (
    AnyView,
    Bins,
    Cdf,
    Heat,
    Quantile,
    Quantiles,
    cdf,
    check_bin_numbers,
    even_bins,
    make_bins,
    make_heat,
    quantiles,
    total,
)
from partita.public.sums.base import Ratio, SumAnswer
from partita.public.sums.log_tree import LogTreeRelease
from partita.public.sums.lorenz import LorenzAnswer, LorenzCurve
from partita.public.sums.view import SumView, refuse_region
from partita.public.tables.sums import TableSumView, find_table_sums
from partita.public.views import BoxView, CellGroups, ScaledView, Slice, View, find_view, list_columns
from partita.public.wanted import (
    InterquartileRange,
    ReleasedBounds,
    Share,
    WantedView,
    find_bounds,
    find_share,
)
from partita.public.wants import (
    GINI,
    MEAN,
    TOP_SHARE,
    TOTAL,
    TRIMMED_MEAN,
    VARIANCE,
    Want,
    WantKind,
    check_trim,
)
from partita.public.window import window_heat
from partita.public.workload.release import QueryView

if TYPE_CHECKING:
    from partita.public.card import Card
    from partita.public.card_sources import AuditEvidence, BudgetHistory, NameTexts
    from partita.public.file import FileFacts
    from partita.public.measurements import NoisyMeasurements
    from partita.public.relations import DuckConnection
    from partita.public.sql import SqlResult

MOST_ROWS: Final = 10**7
"""Rows that `synthesize` makes at most: time and memory against a larger table."""


@final
@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Release:
    """Views of a table, published once. Every question is free, and so is every copy.

    `guarantee` is what all views promise together, to the last digit. It is None if one of them was made
    with injected noise: then the release protects nobody.

    Questions name columns and say which of their values they ask for:

        release.count(age=(30, 39))            from 30 to 39, both included, as SQL BETWEEN
        release.count(age=(65, None))          an open end, above the declared bounds too
        release.count(age=42)                  one value
        release.count(town=["Rome", "Bari"])   any of these values; a set means the same
        release.count(town=pt.Not("Rome"))     any other value; also of a range, a set or a special cell
        release.count(when="2013-03")          a month; also a year, a quarter, a week, and of times a day
        release.count(age=pt.NULL)             a special cell: NULL, INVALID, BELOW, ABOVE, OTHER
        release.count(where={"where": 3})      a column of any name
        release.count("age < 18 or age > 64")  conditions as text, as in the language of questions
        release.count(age=42, town="Rome")     several columns, if a view has them together

    A tuple is always a range, along the declared order of labels too. A bounded end never counts what
    lies beyond the declared bounds, which is in the special cells below and above; null and invalid
    are counted only if they are asked for by name. No end is rounded: between two multiples of the step of
    a Real column, or inside of a slot of a Timestamp column, it is refused, with the nearest that there are.

    A column without a condition is not constrained: who has no salary is still counted by age. The view of
    fewest columns that has all columns of a question answers it, the first of several such. All views
    counted the same rows: their values are brought to one total, the best that they know together, while
    errors and guaranteed bounds stay those of what was released.

    `sum`, `mean`, `variance` and `std` are about columns that were published with `sums=` or `moments=`, by
    conditions on their keys. A table release has sums and means of all its columns of numbers. `answers` are
    those to the queries that were published. A column that was published with `mechanism="quantiles"` has
    these quantiles, and answers no other question. `wants` are the statistics that the release was made for,
    if it was made for just these.
    """

    views: tuple[AnyView, ...]
    guarantee: Guarantee | None
    provenance: Provenance
    sums: tuple[SumView, ...] = ()
    queries: QueryView | None = None
    quantiles: tuple[QuantileView, ...] = ()
    wanted: tuple[WantedView, ...] = ()
    wants: tuple[Want, ...] = ()

    def __post_init__(self) -> None:
        check_views(self.published, self.guarantee, self.provenance.contributions)
        rule, fix = "must name keys whose counts were released", "get the file again"
        for view in self.sums:
            found = view.beside is not None or not view.needs_counts
            check_release(found or self.wants, "sums", rule, fix=fix)

    @property
    def published(self) -> tuple[Published, ...]:
        """Every view: of counts, of sums, that of queries, of quantiles, then of cells that wants derive."""
        return join_views(self.views, self.sums, self.queries, self.quantiles, self.wanted)

    @property
    def imported(self) -> tuple[AnyView, ...]:
        """The views whose noise another library made: their guarantee is declared, and was not checked."""
        return tuple(view for view in self.views if is_imported(view))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that can be asked for, each once."""
        return list_columns(self.views)

    @cached_property
    def summable(self) -> tuple[SumView | TableSumView, ...]:
        """Where sums come from: views of sums, and the columns of numbers of table releases."""
        return (*self.sums, *find_table_sums(self.views))

    def view(self, *columns: str) -> AnyView:
        """What was released about these columns: the view of fewest columns that has all of them."""
        with self._explain_wants():
            self._check_counts()
            return find_view(self.views, columns)

    def count(
        self,
        /,
        where: Where | str | None = None,
        *,
        closed: Ends = "both",
        region: object = None,
        **columns: object,
    ) -> Answer:
        """How many rows are in the given cells; without any condition, how many there are.

        `closed` says which ends of a range belong to it: "both", "left", "right" or "neither", for all
        columns or, as a mapping, column by column. Of a range,
        the declared cells are counted: of ages from 0 to 120, (110, 200) means 110 to 120, and what
        lies beyond is in BELOW and ABOVE. `region` is a public shape over several columns that were
        released together, a `HalfSpace` or a `Polygon`; any other value asks for a column that is called
        region. The count of all rows is the mean over the views by inverse variance, as all of them
        counted the same rows.
        """
        if isinstance(region, HalfSpace | Polygon):
            conditions = parse_conditions(where, columns, closed)
            found = self._find_region_view(region, conditions).within(region, conditions)
            return found.read_from((1.0, ReleaseReading(self, lambda: found.error)))
        conditions = parse_conditions(where, columns | self._column_region(region), closed)
        return self._count(conditions) if conditions else self._total

    def counts(
        self, /, where: Where | str | None = None, *, closed: Ends = "both", **columns: object
    ) -> Answers:
        """The counts of many ranges or boxes: `counts(age=([0, 18], [17, 64]), salary=(50_000, None))`.

        A tuple of lows and highs, each an array, one value for all, or None; an end that is missing
        in its array is open. An array that is in no tuple asks for single values. Ranges mean what they
        mean to `count`. Of several columns, all have equally many ranges, or one that goes with all;
        a set of values or a special cell of one of several columns goes with all, too.
        """
        conditions = parse_conditions(where, columns, closed)
        found = self._find_view(*conditions).counts(conditions)
        rows = QuestionRows(conditions, len(found))
        return replace(found, each=lambda row: self._count(rows(row)), name="count", keys=rows.keys)

    def group(self, *keys: str | GroupKey) -> Grouping:
        """Rows by groups: `release.group("dest", pt.month("when")).count(delay=(15, None))`.

        A key is a column, or made of one: `pt.year`, `quarter`, `month`, `week`, `day`, `weekday` and `hour`
        of dates and times, `pt.bins("age", 12)`, `pt.breaks("age", [18, 65])`. Counts, sums, means, quantiles
        and shares of groups are those of the same questions about each group alone.
        """
        return Grouping.of(self, keys)

    def count_cells(self, groups: CellGroups, rows: NDArray[np.intp], where: Where) -> Answers | None:
        """The counts of many groups, given by their cells; None if they cannot be made together."""
        if isinstance(where, Either) and groups.keys() & where.keys():
            return None
        return self._find_view(*groups, *where).count_groups(groups, rows, where)

    def names(self, column: str, /) -> NameTable:
        """The names that were found in a column of text, most frequent first, with their noisy counts.

        `release.names("city").top(10)`; `.other("Sa")` is what begins so and is not listed, and
        `.found_from()` the number of rows from which every name is listed, but for 5%.
        """
        for view in self.views:
            if isinstance(view, View) and view.column == column and isinstance(view.axis, ListedNames):
                return NameTable.of(column, view.axis)
        rule, fix = "must be a column of text whose names were found", "declare it as pt.Text(max_bytes=24)"
        raise InvalidParameter("column", rule, given=column, fix=fix)

    def domain_of(self, column: str) -> Domain:
        """The public domain of a column that can be asked for, or by which sums or shares can be."""
        for view in self.views:
            if column in view.columns:
                return _domain_of(view, column)
        listed: tuple[SumView | WantedView, ...] = (*self.sums, *self.wanted)
        for keyed in listed:
            if column in keyed.columns:
                return keyed.domains[list(keyed.columns).index(column)]
        return _domain_of(self.view(column), column)

    def counts_specials(self, column: str) -> bool:
        """Whether special cells of a column can be asked for: not in a release of an axis alone."""
        return not any(
            isinstance(view, View) and view.column == column and not view.special_cells for view in self.views
        )

    def difference(self, first: Where | str, second: Where | str, *, closed: Ends = "both") -> Answer:
        """How many more rows the first question counts than the second, with the error of just that.

        Of one view it is one linear question. Two views have independent noise.
        """
        added = parse_conditions(first, {}, closed, beside=second)
        taken = parse_conditions(second, {}, closed, beside=first)
        one, other = self._find_view(*added), self._find_view(*taken)
        readings = (1.0, self._read(one, added)), (-1.0, self._read(other, taken))
        if one is other:
            return one.difference(added, taken).read_from(*readings)
        return Answer.together([one.count(added), -other.count(taken)]).read_from(*readings)

    def slice(
        self, column: str, /, where: Where | str | None = None, *, closed: Ends = "both", **columns: object
    ) -> Slice:
        """One column as a line of counts, of all rows or of those that are in the given cells."""
        conditions = parse_conditions(where, columns, closed)
        view = self._find_view(column, *conditions)
        _check_distinct((column,), conditions)
        return view.slice(column, conditions)

    def cdf(
        self,
        column: str,
        /,
        values: Any = None,
        where: Where | str | None = None,
        *,
        closed: Ends = "both",
        **columns: object,
    ) -> Cdf:
        """How many rows, and which share of those with a value on the axis, do not exceed each of the values.

        Without `values`, at the last value of every piece of the release: between those the
        counts rise evenly. Conditions on other columns say which rows are counted:
        `cdf("salary", [20_000, 50_000], age=(30, 39))`.
        """
        conditions = parse_conditions(where, columns, closed)
        return cdf(self.slice(column, conditions), values, self._counting(conditions))

    @overload
    def quantile(
        self,
        column: str,
        /,
        q: float | Fraction,
        where: Where | str | None = None,
        *,
        closed: Ends = "both",
        **columns: object,
    ) -> Quantile | SelectedQuantile: ...

    @overload
    def quantile(
        self,
        column: str,
        /,
        q: Sequence[float | Fraction],
        where: Where | str | None = None,
        *,
        closed: Ends = "both",
        **columns: object,
    ) -> Quantiles: ...

    def quantile(
        self,
        column: str,
        /,
        q: object,
        where: Where | str | None = None,
        *,
        closed: Ends = "both",
        **columns: object,
    ) -> Quantile | SelectedQuantile | Quantiles:
        """The least value that at least a share q of the rows on the axis do not exceed; one q or many.

        Conditions on other columns say which rows are counted: `quantile("salary", 0.5, age=(30, 39))`. Of a
        column of which quantiles alone were released, those can be asked for, without conditions.
        """
        selected = next((view for view in self.quantiles if view.column == column), None)
        if selected is not None and column not in self.columns:
            with self._explain_wants():
                check_no_conditions(parse_conditions(where, columns, closed), column)
                if is_single(q):
                    return selected.quantile(q)
                return Quantiles(selected.quantile(each) for each in cast(Iterable[object], q))
        line = self.slice(column, where, closed=closed, **columns)
        return quantiles(line, [q])[0] if is_single(q) else quantiles(line, cast(Iterable[object], q))

    @overload
    def histogram(
        self,
        column: str,
        bins: int = 12,
        /,
        *,
        where: Where | str | None = None,
        closed: Ends = "both",
        **columns: object,
    ) -> Bins: ...

    @overload
    def histogram(
        self,
        column: str,
        second: str,
        /,
        bins: int | tuple[int, int] = 12,
        *,
        where: Where | str | None = None,
        closed: Ends = "both",
        **columns: object,
    ) -> Heat: ...

    def histogram(
        self,
        column: str,
        second: Any = None,
        /,
        bins: Any = 12,
        *,
        where: Where | str | None = None,
        closed: Ends = "both",
        **columns: object,
    ) -> Bins | Heat:
        """Counts in bins of equally many cells, of one column or of two: `histogram("age", "salary")`.

        Where the bins lie follows from the domains alone. Of two columns, `bins` is one number for both, or
        a pair. Conditions on other columns say which rows are counted.
        """
        conditions = parse_conditions(where, columns, closed)
        if not isinstance(second, str):
            line = self.slice(column, conditions)
            return make_bins(line, bins if second is None else second).read(self._counting(conditions))
        view = self._find_view(column, second, *conditions)
        _check_distinct((column, second), conditions)
        return make_heat(view, (column, second), bins, conditions).read(self._counting(conditions))

    def sum(
        self,
        column: str,
        /,
        where: Where | str | None = None,
        *,
        closed: Ends = "both",
        region: object = None,
        **columns: object,
    ) -> SumAnswer:
        """The sum of a column over the rows in the given cells, and what values it covers.

        For columns that were published with `sums=`, and for all columns of numbers of a table release.
        Conditions are on keys: `sum("salary", age=(30, 39))`. `region` is a public shape of keys, a
        `HalfSpace` or a `Polygon`, as for `count`.
        """
        self._check_wanted(TOTAL, column)
        if isinstance(region, HalfSpace | Polygon):
            inside = self._sum_in(column, region, parse_conditions(where, columns, closed))
            return inside.read_from(ReleaseReading(self, lambda: inside.error))
        if any("region" in view.keys for view in self.summable):
            columns |= {} if region is None else {"region": region}
        else:
            columns |= self._column_region(region)
        conditions = parse_conditions(where, columns, closed)
        found = self._find_sums(column, conditions, unless="means").sum(conditions)
        return found.read_from(ReleaseReading(self, lambda: found.error))

    def mean(
        self, column: str, /, where: Where | str | None = None, *, closed: Ends = "both", **columns: object
    ) -> Ratio:
        """The mean of a column over the rows in the given cells that hold a number.

        Where there may be no such row at all it is not determinable, and says so.
        """
        conditions = parse_conditions(where, columns, closed)
        self._check_wanted(MEAN, column)
        found = self._find_sums(column, conditions).mean(conditions)
        return found.read_from(ReleaseReading(self, lambda: found.error))

    def variance(
        self, column: str, /, where: Where | str | None = None, *, closed: Ends = "both", **columns: object
    ) -> Ratio:
        """The variance of a column over the rows in the given cells; for those with `moments=`."""
        conditions = parse_conditions(where, columns, closed)
        self._check_wanted(VARIANCE, column)
        found = self._find_sums(column, conditions, unless="totals").variance(conditions)
        return found.read_from(ReleaseReading(self, lambda: found.error))

    def std(
        self, column: str, /, where: Where | str | None = None, *, closed: Ends = "both", **columns: object
    ) -> Ratio:
        """The standard deviation of a column over the rows in the given cells; for those with `moments=`."""
        conditions = parse_conditions(where, columns, closed)
        self._check_wanted(VARIANCE, column)
        found = self._find_sums(column, conditions, unless="totals").std(conditions)
        return found.read_from(ReleaseReading(self, lambda: found.error))

    def share(
        self,
        /,
        where: Where | str | None = None,
        *,
        among: Where | str | None = None,
        closed: Ends = "both",
        **columns: object,
    ) -> Share | Answer:
        """The share of the rows that meet conditions, from 0 to 1.

        `among` says of which rows: `share(delay=(15, None), among={"dest": "Rome"})`. Without it the share is
        that of all rows. A release that was made for shares by `pt.share` answers these; any other one
        divides two counts of one view, with the covariance of both. A share that may be one of no rows is not
        determinable.
        """
        conditions = parse_conditions(where, columns, closed, beside=among)
        groups = parse_conditions(among, {}, closed, beside=conditions)
        with self._explain_wants():
            if self.wants or not self.views:
                found = find_share(self.wanted, conditions, groups)
                return replace(found, readings=((1.0, ReleaseReading(self, lambda: found.error)),))
        both = [column for column in conditions if column in groups]
        rule, fix = "must name other columns than the conditions do", "ask for the share of a part of them"
        check(not both, "among", rule, given=_join(both), fix=fix)
        view = self._find_view(*conditions, *groups)
        met, rows = (self._count(each, view) for each in ({**groups, **conditions}, groups))
        return divide(met, rows, most=1.0)

    def bounds(self, column: str, /, without: object = None) -> ReleasedBounds:
        """Values between which all rows lie but for a share, for a release that was made for it.

        Half of the share lies at each end; without one it is the share that was wanted.
        `bounds("cost").domain()` is a domain for the next schema.
        """
        with self._explain_wants():
            return find_bounds(self.wanted, column, without)

    def interquartile_range(self, column: str, /) -> InterquartileRange:
        """How far the quartiles of a column lie apart, for a release that was made for it."""
        with self._explain_wants():
            held = [view for view in self.quantiles if set(QUARTILES) <= set(view.selected.quantiles)]
            found = next((view for view in held if view.column == column), None)
            if found is None:
                names = _join(view.column for view in held) or "none"
                rule = f"must be one whose quartiles alone were released: {names}"
                fix = "publish with wants=[pt.interquartile_range(...)]"
                raise InvalidParameter("column", rule, given=column, fix=fix)
            return InterquartileRange(*map(found.quantile, QUARTILES))

    def trimmed_mean(self, column: str, share: object, /) -> LorenzAnswer:
        """The mean of the rows that are left without this share of them at each end.

        For a release that was made for it, or that has sums of the column by its own values.
        """
        part = check_probability(share, "share")
        check_trim(TRIMMED_MEAN(column=column, share=part))
        found = self._find_curve(TRIMMED_MEAN, column, part).trimmed_mean(part)
        return found.read_from(ReleaseReading(self, lambda: found.error))

    def top_share(self, column: str, share: object, /) -> LorenzAnswer:
        """The part of the total that this share of the rows hold, those with the largest values."""
        part = check_probability(share, "share")
        found = self._find_curve(TOP_SHARE, column, part).top_share(part)
        return found.read_from(ReleaseReading(self, lambda: found.error))

    def gini(self, column: str, /) -> LorenzAnswer:
        """The Gini index of a column: how unequal its values are, from 0 to 1."""
        found = self._find_curve(GINI, column, None).gini
        return found.read_from(ReleaseReading(self, lambda: found.error))

    def _find_curve(self, kind: WantKind, column: object, share: Fraction | None) -> LorenzCurve:
        """How the values of a column are divided, if that was wanted or its sums by itself were published."""
        with self._explain_wants():
            wanted = not self.wants or any(
                each.kind is kind and each.column == column and each.arguments.get("share") == share
                for each in self.wants
            )
            held = [view.sums for view in self.sums if view.column == column]
            curves = [sums.lorenz for sums in held if isinstance(sums, LogTreeRelease)]
            rule = f"must be one whose {kind.name.replace('_', ' ')} was released"
            fix = f"publish with wants=[pt.{kind.name}(...)]"
            check(wanted and curves, "column", rule, given=column, fix=fix)
            return curves[0]

    def answers(self) -> Answers:
        """The answers to all queries that were published, in their order; `labels` says which is which."""
        found = self._queries.answers.answers()
        return replace(found, each=self.answer, name="answer", keys=lambda: {"query": self.labels()})

    def answer(self, index: int) -> Answer:
        """The answer to one of the queries that were published."""
        found = self._queries.answer(integer(index, "index", low=0, high=len(self._queries) - 1))
        return found.read_from((1.0, ReleaseReading(self, lambda: found.error)))

    def labels(self) -> list[str]:
        """Every query that was published as text, in the order of the answers."""
        return [self._queries.label(index) for index in range(len(self._queries))]

    def correlation(
        self,
        column: str,
        second: str,
        /,
        where: Where | None = None,
        *,
        closed: Ends = "both",
        **columns: object,
    ) -> Answer:
        """How two columns of numbers go together: Pearson's correlation, from -1 to 1.

        It is over the rows that have a number in both. Columns must have been released together. Its interval
        is a model, and holds the noise and what bins hide; nothing is guaranteed. If noise hides how the rows
        are spread, it is not determinable.
        """
        return self._joint(column, second, parse_conditions(where, columns, closed)).correlation()

    def regression(
        self,
        column: str,
        by: str,
        /,
        where: Where | None = None,
        *,
        closed: Ends = "both",
        **columns: object,
    ) -> RegressionLine:
        """The line that tells a column of numbers best `by` another: its slope and its intercept.

        Errors are those of `correlation`: `regression("salary", "age").slope` is in salary for each year.
        """
        return self._joint(by, column, parse_conditions(where, columns, closed)).line()

    @property
    def table(self) -> BoxView | None:
        """The view with a model of all its columns, if there is one; of several the one of most columns."""
        found = [view for view in self.views if isinstance(view, BoxView) and view.boxes.has_model]
        return max(found, key=lambda view: len(view.columns), default=None)

    def dependence(self) -> Dependence:
        """How far each pair of columns is from independence, by the model of a table release.

        What answers about a pair rest on is said by the view that answers them.
        """
        view = self.table
        found = None if view is None else find_dependence(view.columns, view.boxes, self._pair_basis)
        if found is not None:
            return found
        rule = "needs a table release, which has a model of all its columns"
        fix = "publish many columns together, without views= and mechanism="
        raise InvalidParameter("dependence", rule, given="a release without one", fix=fix)

    def synthesize(self, n: int | None = None) -> dict[str, list[object]]:
        """n made-up rows that look like the release, a list of values for each column.

        They are a function of the release: asking twice gives the same rows. The columns of a view are made
        together, and a column that several views have comes from the one of most columns, the first of
        those; nothing is right about how columns of different views go together. Where a row is in
        a special cell, its value is None. Without n, as many rows as were counted.
        """
        with self._explain_wants():
            check(self.views or not self.wants, "n", "needs released counts", given=n, fix="publish a table")
        counted = max(0, round(self.count().value)) if n is None else n
        return synthesize_rows(self.views, integer(counted, "n", low=0, high=MOST_ROWS))

    def register(self, connection: DuckConnection, prefix: str = "") -> list[str]:
        """Make the views known to a connection of DuckDB as relations, and return their names.

        There is one for each column, and one for each set of columns that were released together, such as
        `age__town`: values or pieces, `count`, `error`, `low` and `high` (95%), and `basis`. Only noisy
        counts are handed over, and SQL on them costs nothing. A sum of counts has no error of its own there:
        ask the release, which knows how much of the noise cancels.
        """
        from partita.public.relations import register

        return register(self, connection, prefix)

    def sql(self, statement: str, *, confidence: float = 0.95) -> SqlResult:
        """The answer to a statement of a subset of SQL, with an interval beside each statistic.

            release.sql("select count(*), avg(salary) from release where age between 30 and 39")

        Keys, `count(*)`, `sum`, `avg`, `median`, `quantile(column, 0.9)`, `variance` and `stddev`; `where`,
        `group by`, `order by` and `limit`. Anything else is refused. For other SQL there is `register`.
        """
        from partita.public.sql import run_sql

        return run_sql(self, statement, float(check_probability(confidence, "confidence")))

    def error(self, beta: float = 0.05) -> float:
        """With probability 1 - beta no range of a column, and no box, misses the truth by more.

        That is so whatever the data, open ends included. Every view of counts takes its share of beta. A set
        of values is several ranges or boxes. Sums have bounds of their own, and so have answers to queries.
        """
        with self._explain_wants():
            self._check_counts()
        share = float(check_probability(beta)) / len(self.views)
        return max(view.error(share) for view in self._scaled)

    def report(self, beta: float = 0.05) -> str:
        """What was released, from which public facts, with which guarantee, cost and error."""
        error = self.error(beta) if self.views else None
        return report(
            self.published, self.guarantee, self.provenance, beta=float(check_probability(beta)), error=error
        )

    def citation(self) -> str:
        """BibTeX entries for the library and the papers behind the release."""
        origin = self.provenance
        mechanisms = [view.mechanism for view in self.published]
        return citation(mechanisms, version=origin.version, options=origin.options)

    def measurements(self, *columns: str) -> NoisyMeasurements:
        """Every noisy count as a linear measurement for other tools, with the law and scale of its noise.

        Of all views, or of those about some of these columns and no others. Sums, answers to queries,
        quantiles and counts over ranks are no sums of cells: a view of them is refused.
        """
        from partita.public.measured_kinds import measure

        return measure(self, columns)

    def card(
        self,
        *,
        file: FileFacts | None = None,
        budget: BudgetHistory | None = None,
        audit: AuditEvidence | None = None,
        **names: Unpack[NameTexts],
    ) -> Card:
        """The papers of the release: a dataset card, an entry for a registry, a sheet along NIST SP 800-226.

        `names` are those of `CardNames`: a title, an organization, a contact and others; one that is missing
        becomes a placeholder. `partita card` adds what the file, a ledger and an audit report say.
        """
        from partita.public.card import Card
        from partita.public.card_sources import CardNames

        return Card(release=self, names=CardNames(**names), file=file, budget=budget, audit=audit)

    def plot(
        self,
        column: str,
        second: str | None = None,
        /,
        *,
        bins: int | tuple[int, int] = 60,
        axes: Any = None,
        interactive: bool | None = None,
        full: bool = False,
        where: Where | str | None = None,
        closed: Ends = "both",
        **columns: object,
    ) -> Any:
        """A picture on matplotlib axes, which are returned; or, interactive, a figure of plotly.

        Of one column it is a histogram with 95% bars, and of two a heat map, of at most `bins` bins each. It
        shows where nearly all rows lie; with `full`, whole axes. Conditions on other columns say which rows
        are counted. It is interactive if that is asked for, and by itself in a notebook that has plotly; not
        on axes of yours.
        """
        dataset, interactive = self.provenance.dataset, is_interactive(interactive, axes)
        if second is None:
            line, number = self.slice(column, where, closed=closed, **columns), cast(int, bins)
            if interactive:
                return line_figure(line, bins=number, dataset=dataset, full=full)
            return plot(line, bins=number, axes=axes, dataset=dataset, full=full)
        across, up = check_bin_numbers(bins)
        width, height = (self.slice(name).domain.size for name in (column, second))
        even = even_bins(width, across), even_bins(height, up)
        heat = self.histogram(column, second, even, where=where, closed=closed, **columns)
        if not full:
            heat = window_heat(self, heat, (across, up), parse_conditions(where, columns, closed))
        return (
            heat_figure(heat, dataset=dataset) if interactive else plot_heat(heat, axes=axes, dataset=dataset)
        )

    def is_same(self, other: Release) -> bool:
        """Whether both hold the same noise: they are one release, or copies of one file."""
        return self is other or self._fingerprint == other._fingerprint

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the release to a file, whole or not at all."""
        from partita.public.file import save

        save(self, path, overwrite=overwrite)

    def __repr__(self) -> str:
        stated = "no guarantee" if self.guarantee is None else str(self.guarantee)
        promise = f"{stated}, {DECLARED}" if self.imported and self.guarantee else stated
        beside = [view.name for view in self.sums] + (["queries"] if self.queries is not None else [])
        beside += [view.name for view in self.quantiles] + [view.name for view in self.wanted]
        return f"Release({', '.join([*self.columns, *beside])}; {promise})"

    def _repr_html_(self) -> str:
        return release_card(self)

    @property
    def scaled_views(self) -> tuple[ScaledView, ...]:
        """The views of counts with their values brought to the total that all of them share."""
        return self._scaled

    @property
    def _queries(self) -> QueryView:
        if self.queries is not None:
            return self.queries
        rule = "must have been published, and this release has none"
        fix = 'publish with queries=, for example queries="ranges(age) * value(salary)"'
        with self._explain_wants():
            raise InvalidParameter("queries", rule, given="no queries", fix=fix)

    @cached_property
    def _fingerprint(self) -> str:
        """The checksum of its file."""
        from partita.public.file import Stored

        return str(Stored.of(self).spec["checksum"])

    def _count(self, conditions: Where, view: ScaledView | None = None) -> Answer:
        """A count that knows what it was read from."""
        chosen = view or self._find_view(*conditions)
        return chosen.count(conditions).read_from((1.0, self._read(chosen, conditions)))

    def _counting(self, conditions: Where) -> Callable[[Where], Answer]:
        """Counts the rows that also meet other conditions."""
        return lambda also: self._count({**conditions, **also})

    def _read(self, view: ScaledView, conditions: Where) -> ReleaseReading:
        return ReleaseReading(
            self, lambda: view.count(conditions).error, view, self._scaled.index(view), conditions
        )

    def _find_view(self, *columns: str) -> ScaledView:
        """The view that answers about these columns, brought to the total that all views share."""
        with self._explain_wants():
            self._check_counts()
            return find_view(self._scaled, columns)

    def _joint(self, first: str, second: str, conditions: Where) -> JointMoments:
        """Two columns of numbers together."""
        view = self._find_view(first, second, *conditions)
        _check_distinct((first, second), conditions)
        check_numbers(view.together, (first, second))
        return JointMoments(view, (first, second), conditions)

    def _find_sums(self, column: object, keys: Iterable[str], *, unless: str = "") -> SumView | TableSumView:
        """The view of sums that answers about a column by these keys; one of another statistic, if any."""
        with self._explain_wants():
            return find_sum_view(self, column, keys, unless=unless)

    def _sum_in(self, column: str, region: PublicRegion, conditions: Where) -> SumAnswer:
        """The sum over a shape, if the column was summed by all columns of the shape together."""
        needed = {*region.columns, *conditions}
        summed = [view for view in self.sums if view.column == column and needed <= set(view.keys)]
        if not summed:
            if self.queries is None:
                self._find_sums(column, ())  # a column that has no sums at all
            refuse_region(column, [*dict.fromkeys((*region.columns, *conditions))])
        return min(summed, key=lambda view: len(view.keys)).sum_in(region, conditions)

    def _check_wanted(self, kind: WantKind, column: object) -> None:
        """Refuse a statistic that nobody wanted, also where what was released would tell it."""
        wanted = not self.wants or any(each.kind is kind and each.column == column for each in self.wants)
        with self._explain_wants():
            check(wanted, "column", f"must be one whose {kind.name} was wanted", given=column, fix="want it")

    @contextmanager
    def _explain_wants(self) -> Iterator[None]:
        """Say what was wanted, where a release of just that cannot answer."""
        try:
            yield
        except InvalidParameter as error:
            if not self.wants:
                raise
            wanted = ", ".join(map(str, self.wants))
            raise error.with_fix(f"the release was made for just this: {wanted}") from None

    def _pair_basis(self, one: str, other: str) -> str:
        """What answers about two columns rest on; a view without a model has measured them."""
        view = find_view(self.views, (one, other))
        if isinstance(view, View):
            return "measured"
        return view.boxes.basis({view.columns.index(one), view.columns.index(other)}) or "measured"

    def _check_counts(self) -> None:
        rule = "must be one whose counts were released, and this release has none"
        fix = "ask for its sums or its answers, or publish with by= or views="
        if self.quantiles:
            held = "; ".join(f"{view.listed} of {view.column!r}" for view in self.quantiles)
            fix = f"ask for a quantile that was released: {held}"
        check(self.views, "column", rule, given="no counts", fix=fix)

    @property
    def _total(self) -> Answer:
        """How many rows there are: by the counts, else by a query that asks for just that, else by sums."""
        if not self.views and not self.wants:
            asked = None if self.queries is None else self.queries.total
            if asked is not None:
                return asked
            if self.sums:
                return self.sums[0].total
        with self._explain_wants():
            self._check_counts()
        return total(self.views).read_from(*self._total_readings)

    @property
    def _total_readings(self) -> Iterator[tuple[float, ReleaseReading]]:
        """The totals of all views, weighed as `total` does."""
        precise = [1.0 / max(view.total.error**2, LEAST_VARIANCE) for view in self.views]
        for view, each in zip(self._scaled, precise, strict=True):
            yield each / sum(precise), self._read(view, {})

    def _column_region(self, condition: object) -> dict[str, object]:
        """The condition on a column that is called region, if there is one."""
        if condition is None:
            return {}
        rule = "must be a HalfSpace or a Polygon, as no column is called region"
        fix = "pass for example HalfSpace({'income': 1, 'rent': -3}, at_most=0)"
        check("region" in self.columns, "region", rule, given=condition, fix=fix)
        return {"region": condition}

    def _find_region_view(self, region: PublicRegion, conditions: Where) -> ScaledView:
        """The view that answers about a shape: one of several columns, if one has all that are asked for."""
        self._check_counts()
        columns = *region.columns, *conditions
        wide = [view for view in self._scaled if isinstance(view.view, BoxView)]
        return find_view([view for view in wide if {*columns} <= {*view.columns}] or self._scaled, columns)

    @cached_property
    def _scaled(self) -> tuple[ScaledView, ...]:
        """The views with their values brought to one total, which all of them then have.

        Every value of a view is multiplied by that total over the view's own, so that what was not negative
        stays so, and parts still add up to the whole. One view alone stays as it is.
        """
        if len(self.views) == 1:
            return (ScaledView(self.views[0]),)
        agreed = total(self.views).value
        return tuple(ScaledView.to_total(view, agreed) for view in self.views)


def check_no_conditions(conditions: Where, column: str) -> None:
    """Refuse conditions on quantiles that were released by themselves."""
    rule = f"must be left out: of {column!r} quantiles of all rows were released, and nothing else"
    check(not conditions, "where", rule, given=", ".join(conditions), fix="ask without conditions")


def _check_distinct(columns: tuple[str, ...], conditions: Where) -> None:
    """Refuse a column that is asked about twice, or that is also a condition."""
    rule, fix = "must be asked about once, and not be a condition on itself", "leave one of them out"
    for place, column in enumerate(columns):
        repeated = column in columns[:place] or column in conditions
        check(not repeated, "column", rule, given=column, fix=fix)


def find_sum_view(
    release: Release, column: object, keys: Iterable[str], *, unless: str
) -> SumView | TableSumView:
    """The view of sums of the column with the fewest keys that has all these keys; the first such.

    A view of the statistic `unless` cannot answer, and is taken only if there is no other.
    """
    of_column = [view for view in release.summable if view.column == column]
    if not of_column:
        _refuse_sum(release, column)
    needed = list(keys)
    fitting = [view for view in of_column if set(needed) <= set(view.keys)]
    there = " and ".join(f"({_join(view.keys)})" for view in of_column)
    rule = f"must name keys by which {column!r} was summed, and those are {there}"
    fix = f"ask by these, or publish with views=[({_join(needed)},), ...] and sums=[{column!r}]"
    check(fitting, "where", rule, given=", ".join(map(str, needed)), fix=fix)
    suited = [view for view in fitting if view.statistic != unless] or fitting
    return min(suited, key=lambda view: len(view.keys))


def _refuse_sum(release: Release, column: object) -> NoReturn:
    """Say which columns have sums, and why this one has none."""
    domain = next((_domain_of(view, column) for view in release.views if column in view.columns), None)
    if domain is not None and not isinstance(domain, Integer | Real):
        rule = f"must be a column of numbers: a {type(domain).__name__} has no sum, mean or variance"
        fix = "ask for counts of its values" + ("" if isinstance(domain, Category) else ", or for a quantile")
        raise InvalidParameter("column", rule, given=column, fix=fix)
    summed = list(dict.fromkeys(view.column for view in release.summable))
    near = get_close_matches(column, summed, n=1) if isinstance(column, str) else []
    rule = f"one of {_join(summed)}" if summed else "summed, and this release has counts only"
    fix = f"did you mean {near[0]!r}?" if near else f"publish with sums=[{column!r}]"
    raise InvalidParameter("column", f"must be {rule}", given=column, fix=fix)


def _domain_of(view: AnyView, column: object) -> Domain:
    """The domain of a column of a view."""
    return view.domain if isinstance(view, View) else view.domains[list(view.columns).index(str(column))]


def _join(columns: Iterable[object]) -> str:
    return ", ".join(map(repr, columns))


# --- synthetic rows: a deterministic function of released numbers ------------------------------


def synthesize_rows(views: Sequence[AnyView], rows: int) -> dict[str, list[object]]:
    """`rows` values for each column; None for a row in a special cell.

    The columns of a view are synthesized together. A column of several views comes from the one of most
    columns, the first of those.
    """
    found: dict[str, list[object]] = {}
    for view in sorted(views, key=lambda view: len(view.columns), reverse=True):
        checkpoint()
        if not found.keys() >= set(view.columns):
            found = _synthesize_view(view, rows) | found
    return {column: found[column] for column in list_columns(views)}


def _synthesize_view(view: AnyView, rows: int) -> dict[str, list[object]]:
    """The columns of one view, in an order that follows from their names by a hash.

    So it says nothing about the rows, nor about columns of other views.
    """
    if isinstance(view, View):
        columns = [_column_values(view, rows)]
    else:
        points = view.boxes.points(rows)
        columns = [_decode(domain, points[:, place]) for place, domain in enumerate(view.domains)]
    stream = hashlib.shake_256("\n".join(view.columns).encode("utf-8", "surrogatepass")).digest(8 * rows)
    order = np.argsort(np.frombuffer(stream, "<u8"), kind="stable").tolist()
    pairs = zip(view.columns, columns, strict=True)
    return {column: [values[row] for row in order] for column, values in pairs}


def _column_values(view: View, rows: int) -> list[object]:
    """Every piece of the release, and the special cells together, get their share of the rows.

    Shares are right to one row, and the values in a piece are evenly spaced.
    """
    curve = view.axis.curve
    beside = sum(view.specials.value(name) for name in view.special_cells)
    weights = np.append(curve.counts, beside)
    shares = apportion(rows, weights if weights.sum() > 0 else np.append(curve.widths, 0.0))
    return [*view.domain.decode(list(_spaced_cells(curve, shares[:-1]))), *[None] * int(shares[-1])]


def _spaced_cells(curve: Curve, shares: NDArray[np.int64]) -> Iterator[int]:
    """In each piece as many cells as its share, in the middles of equal parts of it."""
    used = np.flatnonzero(shares)
    starts, ends = curve.starts[used].tolist(), curve.ends[used].tolist()
    for start, end, share in zip(starts, ends, shares[used].tolist(), strict=True):
        width = end - start + 1
        yield from (start + (2 * i + 1) * width // (2 * share) for i in range(share))


def _decode(domain: Domain, positions: UInts) -> list[object]:
    """The value at each position of an axis; None at a special cell."""
    first = np.uint64(Axis.of(domain).before)
    ordinary = (positions >= first) & (positions - first < domain.size)
    decoded = iter(domain.decode(positions[ordinary] - first))
    return [next(decoded) if each else None for each in ordinary.tolist()]
