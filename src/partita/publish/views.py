"""What is asked of each view: its columns, sums or queries, its part of epsilon, and its mechanism."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from fractions import Fraction
from functools import partial, reduce
from operator import add
from typing import Any, Final, Generic, TypeAlias, TypeVar, cast, final

from partita.concentrated import pure_within
from partita.domain.axis import LARGEST_AXIS, MOST_AXES, MOST_COLUMNS, Axis
from partita.domain.base import Domain
from partita.domain.category import Category
from partita.domain.numeric import Integer, Real
from partita.domain.text import FoundNames, Text
from partita.errors import InvalidParameter, check
from partita.guarantee import Guarantee
from partita.public.axis.names import ListedNames
from partita.public.axis.quantiles import CONFIDENCE, QuantileView, list_quantiles, quantiles_name
from partita.public.base import figure
from partita.public.file_entries import (
    QUERIES,
    Published,
    describe_columns,
    describe_quantiles,
    describe_queries,
    describe_sums,
    describe_view,
    view_name,
)
from partita.public.queries.language import parse
from partita.public.queries.queries import Queries, Universe
from partita.public.results import AnyView
from partita.public.sums.group_means import MOST_GROUPS
from partita.public.sums.parts import count_cells
from partita.public.sums.totals import MOST_TOTALS
from partita.public.sums.view import Sums, SumView, ViewKeyCounts, sum_name
from partita.public.tables.plan import TableErrors, predict_errors
from partita.public.tables.summary import (
    ColumnSummary,
    describe_labels,
    describe_plan,
    summarize_labels,
    warn_of_blur,
    warn_of_labels,
)
from partita.public.views import BoxView, View
from partita.public.workload.release import QueryView
from partita.trusted.mechanisms.base import AxisMechanism, BoundBeforeData, GaussianCells, WithSpecials
from partita.trusted.mechanisms.boxes import BoxMechanism
from partita.trusted.mechanisms.catalogue import (
    AUTO,
    BY_NAME,
    NO_OPTIONS,
    Choice,
    Common,
    MechanismOrName,
    asked_by_name,
    axis_mechanisms,
    box_mechanisms,
    choose,
    choose_boxes,
    choose_own,
    choose_quantiles,
    choose_queries,
    is_own,
    name_mechanisms,
    quantile_mechanisms,
    query_mechanisms,
    shape_of,
    spend,
    takes_delta,
)
from partita.trusted.mechanisms.graph import TableGraph
from partita.trusted.mechanisms.group_means import GroupMeans
from partita.trusted.mechanisms.hierarchy import HierarchyCounts
from partita.trusted.mechanisms.options import Options
from partita.trusted.mechanisms.quantiles import QuantileSelection
from partita.trusted.mechanisms.sums import LevelTrees, LogTree
from partita.trusted.mechanisms.totals import KnotTotal
from partita.trusted.mechanisms.viewed_boxes import ViewedBoxes
from partita.trusted.mechanisms.workload import WorkloadMechanism, format_sentence
from partita.trusted.secret import Points
from partita.trusted.sources.tally import ColumnCounts, Tally

Views: TypeAlias = Sequence[str | Sequence[str]]
"""The columns of each view; text stands for a view of one column."""

Together: TypeAlias = Sequence[Sequence[str]]
"""Sets of columns of a table that matter in combination."""

_TABLE_ERROR: Final = "a random box over two columns of a table, in rows"
_MEDIAN: Final = "1/2"  # of a column whose quantiles are asked for, without saying which
_USUAL_NAMES: Final = 64
"""Labels for which a view beside names is planned, before they are found."""

MOST_FOUND: Final = 1000
"""Names that are labels of other views of a release: the most frequent ones, so that sizes are bounded."""

_BEFORE_NAMES: Final = "It was chosen before the names were found, for a usual number of them."

_SUGGESTED: Final = 3  # columns in a suggested view; more cost accuracy


def checked_views(
    schema: Mapping[str, Domain], by: object, views: object, *, beside: bool = False
) -> list[tuple[str, ...]]:
    """The columns of each view, in order; none for an empty `by`, if something is published `beside`."""
    fix = "leave one of the two out"
    check(by is None or views is None, "by", "must not come with views", given="both", fix=fix)
    if views is not None:
        listed = isinstance(views, Sequence) and not isinstance(views, (str, bytes)) and views
        fix = 'pass [("age",), ("age", "salary")]'
        check(listed, "views", "must be a list of views", given=views, fix=fix)
        return _check_different([_view(view, schema, "views") for view in cast(Sequence[object], views)])
    if beside and isinstance(by, list | tuple) and not by:
        return []
    return [_view(list(schema), schema, "views") if by is None else _view(by, schema, "by")]


def _view(view: object, schema: Mapping[str, Domain], name: str) -> tuple[str, ...]:
    """The columns of one view, if they are columns of the schema that can be published together."""
    columns = [view] if isinstance(view, str) else view
    if not isinstance(columns, (list, tuple)) or not all(isinstance(each, str) for each in columns):
        raise InvalidParameter(name, "must name columns", given=view, fix='pass for example [("age",)]')
    fix = "name one, or leave the view out"
    check(columns, name, "must have a column in each view", given="none", fix=fix)
    check_columns(columns, schema, name)
    if len(columns) > 1:
        _check_together(columns, schema, name)
    return tuple(columns)


def checked_together(
    schema: Mapping[str, Domain], together: object, views: Sequence[tuple[str, ...]]
) -> tuple[tuple[str, ...], ...]:
    """Sets of two or more columns of the schema, each of which one view holds."""
    fix = 'pass for example [("age", "salary")]'
    if not isinstance(together, list | tuple) or any(isinstance(each, str) for each in together):
        listed = (
            [each for each in together if isinstance(each, str)] if isinstance(together, list | tuple) else []
        )
        given = ", ".join(listed) if listed else together
        raise InvalidParameter("together", "must be a list of sets of columns", given=given, fix=fix)
    rule = "must name two or more columns in each set"
    check(all(together), "together", rule, given="an empty set", fix=fix)
    found = [_view(each, schema, "together") for each in together]
    for columns in found:
        given, rule = ", ".join(columns), "must name two or more columns in each set"
        check(len(columns) > 1, "together", rule, given=given, fix=fix)
        rule, fix_view = "must name columns that one view holds", "name all of them in one view, or in by"
        held = any(set(columns) <= set(view) for view in views)
        check(held, "together", rule, given=given, fix=fix_view)
    return tuple(found)


def check_columns(columns: Sequence[str], schema: Mapping[str, Domain], name: str) -> None:
    """Refuse a column that is not in the schema, or that is named twice."""
    for column in columns:
        if column not in schema:
            near = get_close_matches(column, schema, n=1, cutoff=0.5)
            fix = f"did you mean {near[0]!r}?" if near else "declare its domain in the schema"
            raise InvalidParameter(name, "must name columns of the schema", given=column, fix=fix)
        rule = "must name each column once"
        check(columns.count(column) <= 1, name, rule, given=column, fix="leave one out")


def _check_together(columns: Sequence[str], schema: Mapping[str, Domain], name: str) -> None:
    """Refuse more columns, or larger ones, than boxes can have."""
    starts = range(0, len(columns), _SUGGESTED)
    suggested = [tuple(columns[start : start + _SUGGESTED]) for start in starts]
    rule = f"must have at most {MOST_COLUMNS} columns in a view"
    fix = f"publish several views under one debit, for example views={suggested}"
    check(len(columns) <= MOST_COLUMNS, name, rule, given=len(columns), fix=fix)
    for column in columns:
        if isinstance(schema[column], Text):
            rule = f"must have at most {MOST_AXES} columns in a view with text"
            fix = f"leave {column!r} out of it, and it has a view of its own"
            check(len(columns) <= MOST_AXES, name, rule, given=len(columns), fix=fix)
            continue
        rule = "must have columns of at most 2^63 cells in a view of several"
        fix = f"make its domain coarser, or give it a view of its own with views=[({column!r},), ...]"
        check(schema[column].size <= LARGEST_AXIS, name, rule, given=column, fix=fix)


def check_declared(schema: Mapping[str, Domain], name: str) -> None:
    """Refuse columns of text where values must be declared: their names are found in a view of their own."""
    for column, domain in schema.items():
        rule = "must be without columns of text, whose names are found in a view of their own"
        fix = f"give it one, for example views=[({column!r},), ...], or declare its labels as a Category"
        check(not isinstance(domain, Text), name, rule, given=column, fix=fix)


def _plan_found(
    schema: Mapping[str, Domain],
    share: Fraction,
    guarantee: Guarantee,
    named: MechanismOrName,
    number: int,
    *,
    together: Sequence[tuple[str, ...]],
    options: Options,
) -> ViewRequest[Any]:
    """The view that there would be with so many names."""
    labels = Category([f"name {each}" for each in range(number)])
    usual = {c: labels if isinstance(domain, Text) else domain for c, domain in schema.items()}
    return view_request(usual, share, guarantee, named, together, options=options)


def _check_different(views: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    seen: set[frozenset[str]] = set()
    for view in views:
        rule, fix = "must be of different columns", "leave one of the two out"
        check(frozenset(view) not in seen, "views", rule, given=", ".join(view), fix=fix)
        seen.add(frozenset(view))
    return views


# Which columns are summed, over which keys, and with which part of epsilon.
@final
@dataclass(frozen=True)
class SummedColumns:
    """Columns of which sums are published, and those of them of which squares are, too."""

    columns: tuple[str, ...] = ()
    squared: frozenset[str] = frozenset()


def checked_sums(schema: Mapping[str, Domain], sums: object, moments: object) -> SummedColumns:
    """The summed columns in their order; a column with moments is summed as well."""
    squared, plain = check_numbers(moments, schema, "moments"), check_numbers(sums, schema, "sums")
    return SummedColumns(tuple(dict.fromkeys([*plain, *squared])), frozenset(squared))


def sum_views(views: Iterable[tuple[str, ...]], summed: Sequence[str]) -> list[tuple[tuple[str, ...], str]]:
    """The keys and the summed column of each view of sums: all columns of a view but the summed one.

    Where a view is of the summed column alone, the column is its own key. Without any view there is no
    key, and only whole sums can be asked for.

    >>> sum_views([("age", "salary"), ("salary",)], ["salary"])
    [(('age',), 'salary'), (('salary',), 'salary')]
    >>> sum_views([], ["salary"])
    [((), 'salary')]
    """
    found: dict[tuple[frozenset[str], str], tuple[tuple[str, ...], str]] = {}
    for view in list(views) or [()]:
        for column in summed:
            keys = tuple(key for key in view if key != column) or view
            found.setdefault((frozenset(keys), column), (keys, column))
    return list(found.values())


def check_numbers(columns: object, schema: Mapping[str, Domain], name: str) -> list[str]:
    """The columns, if they are different columns of the schema that can be added up."""
    listed = [columns] if isinstance(columns, str) else columns
    if not isinstance(listed, list | tuple) or not all(isinstance(column, str) for column in listed):
        fix = 'pass for example ["salary"]'
        raise InvalidParameter(name, "must be a list of columns", given=columns, fix=fix)
    check_columns(listed, schema, name)
    for column in listed:
        domain = schema[column]
        rule = f"must name columns of numbers, and this one is {type(domain).__name__}"
        fix = "declare it as Integer or Real, or ask for its counts and quantiles"
        check(isinstance(domain, Integer | Real), name, rule, given=column, fix=fix)
        rule, fix = "must name columns of at most 2^63 cells", "make its domain coarser"
        check(domain.size <= LARGEST_AXIS, name, rule, given=column, fix=fix)
    return list(listed)


# What is asked of one view: its columns, its part of epsilon, and the mechanism that will release it.
Secret = TypeVar("Secret")


def facts_of(guarantee: Guarantee, share: Fraction) -> Common:
    """The facts for a mechanism that gets this share of a guarantee's epsilon, or of its rho."""
    facts: Common = {
        "epsilon": share * guarantee.epsilon,
        "neighbors": guarantee.neighbors,
        "contributions": guarantee.contributions,
        "unit": guarantee.unit,
    }
    if not guarantee.rho:
        return facts
    rho = share * guarantee.rho
    return {**facts, "epsilon": pure_within(rho), "rho": rho, "delta": guarantee.delta}


@dataclass(frozen=True, kw_only=True)
class ViewRequest(ABC, Generic[Secret]):
    """Some columns, their part of epsilon, and how they will be counted and released."""

    columns: tuple[str, ...]
    domains: tuple[Domain, ...]
    share: Fraction
    choice: Choice[Any]
    wants: tuple[str, ...] = ()
    """The wants that it answers, as text; none if it was not made for wants."""

    @property
    def name(self) -> str:
        """The columns in one word."""
        return view_name(self.columns)

    @property
    def guarantee(self) -> Guarantee:
        """What this view will promise by itself."""
        promised: Guarantee = self.choice.mechanism.guarantee
        return promised

    @property
    def is_gaussian(self) -> bool:
        """Whether all of its noise is Gaussian, so that the exact curve of such noise holds."""
        return isinstance(self.choice.mechanism, GaussianCells)

    @property
    def why(self) -> str:
        """How the mechanism was chosen."""
        return self.choice.why

    @property
    def error_of(self) -> str:
        """What the predicted error is that of."""
        return "a random range, or of a box over several columns, in rows"

    @property
    def described(self) -> dict[str, Any]:
        """Columns and domains in words that JSON can write."""
        return describe_columns(self.columns, self.domains)

    @property
    def asked(self) -> dict[str, Any]:
        """All that was asked for, in words that JSON can write."""
        return {**self.described, "share": str(self.share), "mechanism": self.choice.name}

    def predicted_error(self, rows: int) -> float:
        """About the error of an answer if there are that many rows."""
        error: float = self.choice.mechanism.predicted_error(rows)
        return error

    @property
    def bound_of(self) -> str | None:
        """What a theorem bounds before any data; None where there is no such theorem."""
        return getattr(self.choice.mechanism, "bound_of", None)

    def bound(self, beta: Fraction, rows: int) -> float | None:
        """With probability 1 - beta nothing that `bound_of` names is off by more; None without a theorem."""
        if self.bound_of is None:
            return None
        bounded: BoundBeforeData = self.choice.mechanism
        reach = float(bounded.bound(beta, rows=rows))
        return reach if math.isfinite(reach) else None

    def plan_lines(self, rows: int) -> tuple[str, ...]:
        """Sentences about what follows from public facts if there are that many rows."""
        return ()

    def predict_table(self, rows: int) -> TableErrors | None:
        """What to expect of columns and pairs of columns; None but for a table release."""
        return None

    def plan_warnings(self, rows: int, guarantee: Guarantee) -> tuple[str, ...]:
        """Questions that a release would hardly answer, if there are that many rows and it promises this."""
        return ()

    def describes(self, view: Published) -> bool:
        """Whether a view is of these columns, in their order, with these domains and this mechanism."""
        return (describe_view(view), view.mechanism) == (self.described, self.choice.name)

    @abstractmethod
    def counted(self, rows: Tally) -> Secret:
        """The exact counts of the columns, which are secret."""


@dataclass(frozen=True, kw_only=True)
class CountRequest(ViewRequest[Secret], ABC):
    """Columns whose rows are counted."""

    @abstractmethod
    def release(self, counted: Secret) -> AnyView:
        """Fresh noise on every count."""


@final
@dataclass(frozen=True, kw_only=True)
class ColumnRequest(CountRequest[ColumnCounts]):
    """One column: an axis of cells, and the special cells beside it."""

    choice: Choice[AxisMechanism]

    @property
    def column(self) -> str:
        """The one column."""
        return self.columns[0]

    @property
    def domain(self) -> Domain:
        """Its domain."""
        return self.domains[0]

    @property
    def mechanism(self) -> WithSpecials:
        """The mechanism for the whole column, special cells included."""
        return WithSpecials(axis=self.choice.mechanism, specials=self.domain.specials)

    def plan_lines(self, rows: int) -> tuple[str, ...]:
        """The levels of labels below nodes: how many nodes, which share of epsilon, and the error of one."""
        made, domain = self.mechanism.axis, self.domain
        if not isinstance(made, HierarchyCounts) or not isinstance(domain, Category) or domain.tree is None:
            return ()
        names = domain.levels or [f"level {level}" for level in range(domain.tree.number)]
        numbers = map(domain.tree.count, range(len(names)))
        listed = (
            f"{name}, {number:,} nodes, {figure(100 * float(share))}% of epsilon, error {figure(error)}"
            for name, number, share, error in zip(names, numbers, made.parts, made.level_errors, strict=True)
        )
        return (f"levels: {'; '.join(listed)}.",)

    def counted(self, rows: Tally) -> ColumnCounts:
        """How many rows are in each cell of the column."""
        return rows.column(self.column)

    def release(self, counted: ColumnCounts) -> View:
        """The axis by its mechanism, and noise on each special cell."""
        axis, specials = self.mechanism.release(counted.histogram, counted.specials)
        domain = self.domain
        if isinstance(axis, ListedNames):
            domain, specials = axis.domain, axis.complete(specials)
        return View(
            column=self.column,
            domain=domain,
            axis=axis,
            specials=specials,
            mechanism=self.choice.name,
            why=self.why,
        )


@final
@dataclass(frozen=True, kw_only=True)
class BoxRequest(CountRequest[Points]):
    """Several columns together, special cells on their axes."""

    choice: Choice[BoxMechanism]

    @property
    def mechanism(self) -> BoxMechanism:
        """The mechanism for all columns."""
        return self.choice.mechanism

    @property
    def asked(self) -> dict[str, Any]:
        """What was asked for, and which columns matter together, if any were named."""
        named = getattr(self.mechanism, "together", ())
        return {**super().asked, "together": [list(each) for each in named]} if named else super().asked

    @property
    def error_of(self) -> str:
        """Boxes, of a table those of two of its columns."""
        return _TABLE_ERROR if isinstance(self.mechanism, TableGraph) else super().error_of

    def predict_table(self, rows: int) -> TableErrors | None:
        """The errors of columns and of pairs, if a model joins them."""
        made = self.mechanism
        return predict_errors(made.axes, made.spending, rows) if isinstance(made, TableGraph) else None

    def plan_lines(self, rows: int) -> tuple[str, ...]:
        """How a table release would share epsilon, and what it would measure."""
        made, errors = self.mechanism, self.predict_table(rows)
        if errors is None or not isinstance(made, TableGraph):
            return tuple(describe_labels(self._predict_labels(rows)))
        return tuple(describe_plan(errors, made.axes, [self._named(each) for each in made.together]))

    def plan_warnings(self, rows: int, guarantee: Guarantee) -> tuple[str, ...]:
        """Columns of whose single cells little could be told, and the budget at which that changes."""
        made, errors = self.mechanism, self.predict_table(rows)
        if errors is None or not isinstance(made, TableGraph):
            return tuple(warn_of_labels(self._predict_labels(rows), guarantee))
        return tuple(warn_of_blur(self.columns, made.axes, made.spending, errors, guarantee))

    def _predict_labels(self, rows: int) -> list[ColumnSummary]:
        """The columns whose labels would be counted one by one."""
        made = self.mechanism
        scales = made.label_scales(rows) if isinstance(made, ViewedBoxes) else {}
        return [
            summarize_labels(self.columns[axis], made.axes[axis], scale, rows)
            for axis, scale in scales.items()
        ]

    def _named(self, columns: Sequence[int]) -> tuple[str, ...]:
        return tuple(self.columns[column] for column in columns)

    def counted(self, rows: Tally) -> Points:
        """How many rows are at each point."""
        return rows.points(self.columns)

    def release(self, counted: Points) -> BoxView:
        """All columns by one mechanism."""
        return BoxView(
            columns=self.columns,
            domains=self.domains,
            boxes=self.mechanism.release(counted),
            mechanism=self.choice.name,
            why=self.why,
        )


@final
@dataclass(frozen=True, kw_only=True)
class FoundRequest(CountRequest[Tally]):
    """Several columns together, some of them of text, whose names another view of the release finds first.

    `choice` is that for a usual number of names, and says what the view promises; the mechanism is made anew
    for the names that are released.
    """

    choice: Choice[BoxMechanism]
    guaranteed: Guarantee
    named: MechanismOrName
    together: Sequence[tuple[str, ...]] = ()
    options: Options = field(default_factory=dict)

    @property
    def texts(self) -> tuple[str, ...]:
        """The columns of text."""
        pairs = zip(self.columns, self.domains, strict=True)
        return tuple(column for column, domain in pairs if isinstance(domain, Text))

    @property
    def asked(self) -> dict[str, Any]:
        """What was asked for; which mechanism it will be follows from the names."""
        return {**super().asked, "mechanism": self.named if isinstance(self.named, str) else AUTO}

    def describes(self, view: Published) -> bool:
        """Whether a view is of these columns, and has labels where these have text."""
        pairs = zip(self.domains, getattr(view, "domains", ()), strict=False)
        alike = all(
            isinstance(other, Category) if isinstance(mine, Text) else mine == other for mine, other in pairs
        )
        return isinstance(view, BoxView) and view.columns == self.columns and alike

    def counted(self, rows: Tally) -> Tally:
        """The rows with all of their texts, which are secret."""
        return rows

    def release(self, counted: Tally, found: Mapping[str, FoundNames] | None = None) -> BoxView:
        """The columns with the names that were found as labels, and all other text in other."""
        rows, names = counted, {column: (found or {})[column] for column in self.texts}
        for column, labels in names.items():
            rows = rows.relabelled(column, labels)
        schema: dict[str, Domain] = {
            column: Category(names[column].labels) if column in names else domain
            for column, domain in zip(self.columns, self.domains, strict=True)
        }
        name = self.choice.name
        request = view_request(schema, self.share, self.guaranteed, name, self.together, options=self.options)
        assert isinstance(request, BoxRequest)
        assert request.guarantee == self.guarantee
        why = request.why.replace(BY_NAME, _BEFORE_NAMES) if self.named != name else request.why
        made = replace(request, choice=replace(request.choice, why=why))
        return made.release(made.counted(rows))


@final
@dataclass(frozen=True, kw_only=True)
class QuantileRequest(ViewRequest[ColumnCounts]):
    """Quantiles of one column, and nothing else: no counts, no special cells."""

    choice: Choice[QuantileSelection]

    @property
    def error_of(self) -> str:
        """Ranks."""
        return "the rank of a quantile, in rows"

    @property
    def name(self) -> str:
        """The column, and that these are quantiles."""
        return quantiles_name(self.columns[0])

    @property
    def described(self) -> dict[str, Any]:
        """The quantiles, the column and its domain in words that JSON can write."""
        return describe_quantiles(self.columns[0], self.domains[0], self.choice.mechanism.quantiles)

    def plan_lines(self, rows: int) -> tuple[str, ...]:
        """Which quantiles there would be, and how far off their ranks could be for any data."""
        made = self.choice.mechanism
        most, listed = max(made.bound_ranks(0.05)), list_quantiles(made.quantiles)
        bound = (
            f"with a probability of 95% none misses its rank by more than {most:,.0f} rows, whatever the data"
        )
        if made.side is not None:
            farthest = max(made.end_ranks())
            return (
                f"Quantiles {listed} alone: {bound}.",
                f"Each has an interval of values that holds the true one with a probability of "
                f"{float(CONFIDENCE):.0%}, whatever the data; its ends lie up to about {farthest:,} rows "
                f"away.",
            )
        if made.interval:
            return (
                f"Quantiles {listed} alone, read off counts of ranges: each has an interval of values that "
                f"holds the true one with a probability of {float(CONFIDENCE):.0%}, whatever the data.",
            )
        if made.look is None:
            return (f"Quantiles {listed} alone: {bound}.",)
        return (
            f"Quantiles {listed} alone: {bound}; or, if a noisy look says that rows are few, "
            f"they are read off counts of ranges, and the release says how far off they may be.",
        )

    def counted(self, rows: Tally) -> ColumnCounts:
        """How many rows are in each cell of the column."""
        return rows.column(self.columns[0])

    def release(self, counted: ColumnCounts) -> QuantileView:
        """The quantiles of the rows that have a value; special cells are not looked at."""
        return QuantileView(
            column=self.columns[0],
            domain=self.domains[0],
            selected=self.choice.mechanism.release(counted.histogram),
            mechanism=self.choice.name,
            why=self.why,
        )


def view_request(
    schema: Mapping[str, Domain],
    share: Fraction,
    guarantee: Guarantee,
    mechanism: MechanismOrName,
    together: Sequence[tuple[str, ...]] = (),
    *,
    quantiles: object = None,
    interval: bool = False,
    options: Options = NO_OPTIONS,
) -> ViewRequest[Any]:
    """A view of counts of these columns that gets this share of a guarantee.

    A mechanism for one column is not meant for views of several, nor the other way round: there the
    choice is free. It may be one of the caller's own, see `choose_own`. `quantiles` and `interval`, whether
    their values have intervals, are for those alone, and `options` for views by the mechanism of that name.
    """
    columns, domains, facts = tuple(schema), tuple(schema.values()), facts_of(guarantee, share)
    if is_own(mechanism):
        shape = shape_of(mechanism)
        if len(columns) > 1 and shape == "axes":
            axes = tuple(map(Axis.of, domains))
            chosen = choose_own(mechanism, axes, **facts)
            return BoxRequest(columns=columns, domains=domains, share=share, choice=chosen)
        if len(columns) == 1 and shape == "size":
            chosen = choose_own(mechanism, domains[0].size, **facts)
            return ColumnRequest(columns=columns, domains=domains, share=share, choice=chosen)
        mechanism = AUTO
    if len(columns) > 1 and any(isinstance(domain, Text) for domain in domains):
        named = mechanism if mechanism in box_mechanisms() else AUTO
        own = NO_OPTIONS if named == AUTO else options
        plan = partial(_plan_found, schema, share, guarantee, together=together, options=own)
        chosen = plan(named, _USUAL_NAMES).choice
        for number in (1, MOST_FOUND):  # what could not be made is refused now, before anything is read
            plan(chosen.name, number)
        return FoundRequest(
            columns=columns,
            domains=domains,
            share=share,
            choice=chosen,
            guaranteed=guarantee,
            named=named,
            together=together,
            options=own,
        )
    if len(columns) > 1:
        named = mechanism if mechanism in box_mechanisms() else AUTO
        sets = [tuple(map(columns.index, each)) for each in together if set(each) <= set(columns)]
        own = NO_OPTIONS if named == AUTO else options
        boxes = choose_boxes(domains, mechanism=named, together=sets, options=own, **facts)
        return BoxRequest(columns=columns, domains=domains, share=share, choice=boxes)
    if mechanism in quantile_mechanisms():
        shares = _MEDIAN if quantiles is None else quantiles
        selected = choose_quantiles(
            domains[0], mechanism=mechanism, quantiles=shares, interval=interval, options=options, **facts
        )
        return QuantileRequest(columns=columns, domains=domains, share=share, choice=selected)
    suited = name_mechanisms() if isinstance(domains[0], Text) else axis_mechanisms()
    named = mechanism if mechanism in suited else AUTO
    own = NO_OPTIONS if named == AUTO else options
    if takes_delta(named):
        facts = {**facts, "delta": guarantee.delta}
    axis = choose(domains[0], mechanism=named, options=own, **facts)
    return ColumnRequest(columns=columns, domains=domains, share=share, choice=axis)


# What is asked of a view of queries: the queries, their columns, and the mechanism that will answer them.
@final
@dataclass(frozen=True, kw_only=True)
class QueryRequest(ViewRequest[Points]):
    """Queries over the cells of some columns, and how they will be answered."""

    queries: Queries
    choice: Choice[WorkloadMechanism]

    @property
    def error_of(self) -> str:
        """Answers to queries."""
        return "an answer to a query"

    @property
    def name(self) -> str:
        """A release has one view of queries at most."""
        return QUERIES

    @property
    def described(self) -> dict[str, Any]:
        """Queries, columns and domains in words that JSON can write."""
        return describe_queries(self.queries, self.columns, self.domains)

    def plan_lines(self, rows: int) -> tuple[str, ...]:
        """What the mechanism would choose, a sentence each."""
        return tuple(map(format_sentence, self.choice.mechanism.plan_lines(rows)))

    def counted(self, rows: Tally) -> Points:
        """How many rows have each combination of values."""
        return rows.points(self.columns)

    def release(self, counted: Points) -> QueryView:
        """All answers by one mechanism."""
        return QueryView(
            columns=self.columns,
            domains=self.domains,
            queries=self.queries,
            answers=self.choice.mechanism.release(counted),
            mechanism=self.choice.name,
            why=self.why,
        )


def checked_queries(schema: Mapping[str, Domain], queries: object) -> Queries | None:
    """The queries as one list, from an expression, its text, or several of these; None for none.

    Weights that are given by a function are settled now, on the public cells of the schema.
    """
    if queries is None:
        return None
    listed = queries if isinstance(queries, list | tuple) else [queries]
    check(listed, "queries", "must not be empty", given="an empty list", fix="name some, or leave it out")
    together = reduce(add, map(_read, listed))
    check_columns(together.columns, schema, "queries")
    check_declared({column: schema[column] for column in together.columns}, "queries")
    return together.settled(_universe(schema, together))


def query_request(
    queries: Queries,
    schema: Mapping[str, Domain],
    guarantee: Guarantee,
    mechanism: MechanismOrName,
    share: Fraction,
    options: Options = NO_OPTIONS,
) -> QueryRequest:
    """A view of queries that gets this share of a guarantee's epsilon, and what it uses of its delta."""
    universe = _universe(schema, queries)
    check_declared(dict(zip(universe.columns, universe.domains, strict=True)), "queries")
    named = mechanism if isinstance(mechanism, str) and mechanism in query_mechanisms() else AUTO
    facts, own = facts_of(guarantee, share), NO_OPTIONS if named == AUTO else options
    delta = 0 if guarantee.rho else guarantee.delta
    choice = choose_queries(queries, universe, mechanism=named, approximate=delta, options=own, **facts)
    return QueryRequest(
        columns=universe.columns, domains=universe.domains, share=share, choice=choice, queries=queries
    )


def _universe(schema: Mapping[str, Domain], queries: Queries) -> Universe:
    """The cells of the columns that queries name, or of the first column where they name none."""
    return Universe.of(schema, queries.columns or list(schema)[:1])


def _read(queries: object) -> Queries:
    if isinstance(queries, Queries):
        return queries
    if isinstance(queries, str):
        return parse(queries)
    fix = 'pass for example "ranges(age) * value(salary)"'
    raise InvalidParameter("queries", "must be queries, or their text", given=queries, fix=fix)


# What is asked of a view of sums: its keys, the summed column, and the mechanism that will release it.
SumMechanism: TypeAlias = LevelTrees | LogTree | KnotTotal | GroupMeans
_OWN_KEY: Final = (
    "The column is its own key, so that one tree of counts tells the sums between any two values."
)


@final
@dataclass(frozen=True, kw_only=True)
class SumRequest(ViewRequest[Points]):
    """The columns that are counted together, of which the last is summed and the others are keys.

    Where the only key is the summed column itself, sums are asked for between two of its values, and
    variances as well. `split` says how the view came by its part of epsilon.
    """

    keys: tuple[str, ...]
    moments: bool
    split: str = ""

    @property
    def error_of(self) -> str:
        """Sums, in units that follow the values."""
        if isinstance(self.choice.mechanism, KnotTotal):
            return "a total, or one of a group, in multiples of the largest value it covers"
        if isinstance(self.choice.mechanism, GroupMeans):
            return "a mean of a group, times its rows, in multiples of the width that values are clipped to"
        return "a sum by a random range of keys, in multiples of the largest value it covers"

    @property
    def name(self) -> str:
        """The summed column and its keys in words."""
        return sum_name(self.column, self.keys)

    @property
    def column(self) -> str:
        """The summed column."""
        return self.columns[-1]

    @property
    def declared(self) -> dict[str, Domain]:
        """The domain of each column."""
        return dict(zip(self.columns, self.domains, strict=True))

    @property
    def described(self) -> dict[str, Any]:
        """Keys, the summed column and their domains in words that JSON can write."""
        return describe_sums(self.keys, self.column, self.declared)

    @property
    def why(self) -> str:
        """How the mechanism was chosen, and how its part of epsilon."""
        return f"{self.choice.why} {self.split}".strip()

    @property
    def asked(self) -> dict[str, Any]:
        """What was asked for, whether variances, too."""
        return {**super().asked, "moments": self.moments}

    def describes(self, view: Published) -> bool:
        """Whether a view is of these sums, and of squares if they are asked for."""
        return super().describes(view) and isinstance(view, SumView) and view.moments == self.moments

    def counted(self, rows: Tally) -> Points:
        """How many rows have each combination of keys and value."""
        return rows.points(self.columns)

    def release(self, counted: Points, views: Sequence[AnyView] = ()) -> SumView:
        """The sums by their mechanism, which cuts the keys by what the views of counts have released."""
        mechanism: SumMechanism = self.choice.mechanism
        beside = None
        if isinstance(mechanism, LevelTrees):
            beside = ViewKeyCounts.of_sums(views, self.keys, self.column)
            sums: Sums = mechanism.release(counted, beside)
        else:
            sums = mechanism.release(counted)
        return SumView(
            keys=self.keys,
            column=self.column,
            declared=self.declared,
            sums=sums,
            beside=beside,
            mechanism=self.choice.name,
            why=self.why,
        )


def sum_request(
    schema: Mapping[str, Domain],
    keys: tuple[str, ...],
    share: Fraction,
    guarantee: Guarantee,
    *,
    moments: bool,
    mechanism: MechanismOrName = AUTO,
    options: Options = NO_OPTIONS,
) -> SumRequest:
    """A view of sums of the last column of the schema, by these keys, that gets this share of a guarantee."""
    check_declared(schema, "sums")
    for key in keys:
        rule, fix = (
            "must have keys of at most 2^63 cells",
            "make its domain coarser, or leave it out of the views",
        )
        check(schema[key].size <= LARGEST_AXIS, "sums", rule, given=key, fix=fix)
    return SumRequest(
        columns=tuple(schema),
        domains=tuple(schema.values()),
        share=share,
        choice=_choice(
            schema, keys, facts_of(guarantee, share), moments=moments, mechanism=mechanism, options=options
        ),
        keys=keys,
        moments=moments or keys == tuple(schema),
    )


def _choice(
    schema: Mapping[str, Domain],
    keys: tuple[str, ...],
    facts: Common,
    *,
    moments: bool,
    mechanism: MechanismOrName,
    options: Options,
) -> Choice[SumMechanism]:
    """The mechanism for totals or means if asked for, else the one that the keys speak for; and why."""
    column, domain = list(schema.items())[-1]
    if mechanism == KnotTotal.name:
        return _choose_totals(schema, keys, facts, options)
    if mechanism == GroupMeans.name:
        return _choose_means(schema, keys, facts, options)
    if keys == (column,):
        tree = LogTree(**spend(LogTree, facts, value=domain))
        return Choice(tree.name, f"{_OWN_KEY} {tree.why}".rstrip(), tree)
    axes = tuple(Axis.of(schema[key]) for key in keys)
    trees = LevelTrees(**spend(LevelTrees, facts, keys=axes, value=domain, moments=moments))
    return Choice(trees.name, trees.why, trees)


def _choose_totals(
    schema: Mapping[str, Domain], keys: tuple[str, ...], facts: Common, options: Options
) -> Choice[SumMechanism]:
    """Totals by some keys, or of all rows."""
    column, domain = list(schema.items())[-1]
    rule, fix = "must not have the summed column as its key", 'pass for example by=["region"]'
    check(column not in keys, "mechanism", rule, given=f"totals of {column} by {column}", fix=fix)
    axes = tuple(Axis.of(schema[key]) for key in keys)
    groups, rule = count_cells(axes), f"must have at most {MOST_TOTALS:,} cells in the keys of totals"
    check(groups <= MOST_TOTALS, "mechanism", rule, given=groups, fix="use a coarser domain, or 'auto'")
    total = KnotTotal(**spend(KnotTotal, facts, keys=axes, value=domain, **options))
    return Choice(total.name, f"{asked_by_name(options)} {total.why}", total)


def _choose_means(
    schema: Mapping[str, Domain], keys: tuple[str, ...], facts: Common, options: Options
) -> Choice[SumMechanism]:
    """Means by one key, or of all rows."""
    column, domain = list(schema.items())[-1]
    rule, fix = "must have one key at most, which is another column", 'pass for example by=["region"]'
    named = ", ".join(keys)
    check(len(keys) <= 1 and column not in keys, "mechanism", rule, given=f"means by {named}", fix=fix)
    axes = tuple(Axis.of(schema[key]) for key in keys)
    groups, rule = count_cells(axes), f"must have at most {MOST_GROUPS:,} cells in the key of means"
    check(groups <= MOST_GROUPS, "mechanism", rule, given=groups, fix="use a coarser domain, or 'auto'")
    means = GroupMeans(**spend(GroupMeans, facts, keys=axes, value=domain, **options))
    return Choice(means.name, f"{asked_by_name(options)} {means.why}", means)
