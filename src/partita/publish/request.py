"""What is to be published: parameters, views, shares of epsilon, room in a file; checked before any data."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial, reduce
from operator import add
from typing import Any, Final, TypeAlias, final

import numpy as np

from partita.concentrated import DEFAULT_DELTA, follows, rho_within
from partita.curves import LARGEST_CURVE_EPSILON, LEAST_CURVE_DELTA, gaussian_rho_within
from partita.domain.base import Domain, is_domain
from partita.domain.text import Text
from partita.errors import InvalidParameter, InvalidRelease, check
from partita.guarantee import Guarantee, Neighbors, Unit, positive_epsilon, rows_changed, squares_changed
from partita.numbers import check_probability, integer, rational
from partita.public.axis.base import Json
from partita.public.base import Provenance, ReleaseKind
from partita.public.contributions import AutoContributions, ChosenContributions, read_contributions
from partita.public.file import FORMAT, LARGEST, Stored, columns_of, pack, unpack, version_of, wants_entries
from partita.public.file_entries import (
    QUERIES,
    checksum,
    guarantee_entries,
    provenance_entries,
    view_name,
)
from partita.public.queries.queries import Queries
from partita.public.release import Release
from partita.public.sums.view import sum_name
from partita.public.views import find_view
from partita.public.wants import Want
from partita.publish.views import (
    ColumnRequest,
    CountRequest,
    QuantileRequest,
    QueryRequest,
    SummedColumns,
    SumRequest,
    Together,
    ViewRequest,
    Views,
    checked_queries,
    checked_sums,
    checked_together,
    checked_views,
    query_request,
    sum_request,
    sum_views,
    view_request,
)
from partita.publish.wants import WantedRequest, Wants, checked_wants, draft_wants, share_by_error
from partita.trusted.mechanisms.catalogue import (
    AUTO,
    ROWS,
    MechanismOrName,
    check_name,
    checked_options,
    is_own,
    mean_mechanisms,
    name_mechanisms,
    quantile_mechanisms,
    released_kinds,
    shape_of,
    takes_delta,
    takes_rho,
    total_mechanisms,
)
from partita.trusted.mechanisms.contributions import BoundSelection
from partita.trusted.mechanisms.graph import TableGraph
from partita.trusted.mechanisms.names import Names
from partita.trusted.mechanisms.options import Options, naming_options, option_texts
from partita.trusted.mechanisms.stable_names import StableNames

# Which part of epsilon each view gets: as asked for, or as predicted errors speak for.
Shares: TypeAlias = Mapping[Any, object] | Sequence[object]
"""A weight for each view: by its name or its tuple of columns, or in the order of the views."""

_QUARTERS: Final = 4  # weights are rounded to quarters: readable, and predictions are no more exact
_LEAST_ERROR: Final = 1e-12  # errors below it are compared as if they were it
_HEAVIEST: Final = 4  # times the weight of counts: beyond that, counts would suffer for a prediction


def checked_shares(
    shares: object, names: Sequence[str], usual: Callable[[], Sequence[Fraction]]
) -> list[Fraction]:
    """The part of epsilon that each view gets, by `usual` weights if none are given; they add up to one."""
    weights = usual() if shares is None else [_weight(share) for share in _weights(shares, names)]
    return [weight / sum(weights) for weight in weights]


def weight_beside(
    error: Callable[[int], float], other: Callable[[int], float], *, power: float = 1 / 2
) -> Fraction:
    """The weight of a view beside one of weight 1, from their predicted errors at equal epsilon.

    Errors fall as epsilon grows, so that the sum of the two is least where epsilon is shared as the square
    roots of the errors are; where rho is shared, as their `power` 2/3. Their ratio is a geometric mean over
    `ROWS`, and the weight is rounded to quarters, from 1/4 to 4.

    >>> weight_beside(lambda rows: 900.0, lambda rows: 100.0)
    Fraction(3, 1)
    """
    ratio = math.prod(error(rows) / other(rows) for rows in ROWS) ** (1 / len(ROWS))
    quarters = round(_QUARTERS * ratio**power) if ratio**power < _HEAVIEST else _QUARTERS * _HEAVIEST
    return Fraction(max(1, quarters), _QUARTERS)


def _weights(shares: object, names: Sequence[str]) -> list[object]:
    if isinstance(shares, Mapping) and len(shares) == len(names):
        weights = {_name(view): share for view, share in shares.items()}
        if set(weights) == set(names) and len(weights) == len(names):
            return [weights[name] for name in names]
    if isinstance(shares, list | tuple) and len(shares) == len(names):
        return list(shares)
    rule = "must have one weight for each view"
    raise InvalidParameter("shares", rule, given=_describe_shares(shares), fix=_suggested_shares(names))


def _name(view: object) -> object:
    """The name of a view that is given by its columns, or by its only want."""
    if isinstance(view, Want):
        return str(view)
    columns = isinstance(view, tuple) and all(isinstance(column, str) for column in view)
    return view_name(view) if columns and isinstance(view, tuple) else view


def _describe_shares(shares: object) -> object:
    """What there is a weight for, or how many weights there are."""
    if isinstance(shares, Mapping):
        return ", ".join(map(str, shares))
    return f"{len(shares)} of them" if isinstance(shares, list | tuple) else shares


def _suggested_shares(names: Sequence[str]) -> str:
    if len(names) == 1:
        return "leave it out, as one view gets all of epsilon, or pass views= too"
    return f"pass for example {dict.fromkeys(names, 1)}"


def _weight(share: object) -> Fraction:
    exact = rational(share, "shares")
    check(exact > 0, "shares", "must be positive", given=share, fix="leave a view out instead")
    return exact


# Every view that is to be published, before it has its part of epsilon.
Schema: TypeAlias = Mapping[str, Domain]
AnyRequest: TypeAlias = ViewRequest[Any]


@final
@dataclass(frozen=True)
class Draft:
    """The name of a view, and what it will be once it has its share."""

    name: str
    request: Callable[[Fraction], AnyRequest]


@final
@dataclass(frozen=True, kw_only=True)
class Drafts:
    """Views of counts, of sums and of queries, which will share one guarantee."""

    schema: Schema
    views: Sequence[tuple[str, ...]]
    summed: SummedColumns
    queries: Queries | None
    guarantee: Guarantee
    mechanism: MechanismOrName
    together: tuple[tuple[str, ...], ...] = ()
    keyed: Sequence[tuple[str, ...]] = ()
    """Columns by which totals or means are published alone, without counts of these columns."""
    quantiles: object = None
    options: Options = field(default_factory=dict)

    def requests(self, shares: Shares | None) -> list[AnyRequest]:
        """Every view with its part of epsilon, by the weights asked for or by the usual ones."""
        drafts = [*self._counts(), *self._sums(), *self._queries()]
        parts = checked_shares(shares, [draft.name for draft in drafts], partial(self._usual, len(drafts)))
        requests = [draft.request(part) for draft, part in zip(drafts, parts, strict=True)]
        return [self._explained(request, chosen=shares is None) for request in requests]

    def _explained(self, request: AnyRequest, *, chosen: bool) -> AnyRequest:
        """The same request; sums beside counts, and names beside others, say how they came by their part."""
        budget = "rho" if self.guarantee.rho else "epsilon"
        if isinstance(request, ColumnRequest) and self._by_names(request):
            least = "where half of the rows that a name needs and the errors of the views with it are least"
            reason = least if chosen else "as asked for"
            why = f"{request.why} It has {request.share} of {budget}, {reason}."
            return replace(request, choice=replace(request.choice, why=why))
        if not isinstance(request, SumRequest) or not self.views:
            return request
        least = "where the predicted errors of sums and counts are least together"
        reason = least if chosen else "as asked for"
        return replace(request, split=f"It has {request.share} of {budget}, {reason}.")

    def _counts(self) -> list[Draft]:
        def request(columns: tuple[str, ...], share: Fraction) -> AnyRequest:
            schema = {column: self.schema[column] for column in columns}
            return view_request(
                schema,
                share,
                self.guarantee,
                self.mechanism,
                self.together,
                quantiles=self.quantiles,
                options=self.options,
            )

        return [Draft(view_name(columns), partial(request, columns)) for columns in self.views]

    def _sums(self) -> list[Draft]:
        def request(keys: tuple[str, ...], column: str, share: Fraction) -> SumRequest:
            schema, moments = (
                {name: self.schema[name] for name in (*keys, column)},
                column in self.summed.squared,
            )
            facts = {"moments": moments, "mechanism": self.mechanism, "options": self.options}
            return sum_request(schema, keys, share, self.guarantee, **facts)

        counted = [view for view in self.views if not self._is_table(view)]
        views = sum_views(counted or self.keyed, self.summed.columns) if counted or not self.views else []
        return [Draft(sum_name(column, keys), partial(request, keys, column)) for keys, column in views]

    def with_summed(self) -> Drafts:
        """The same, where every table has the summed columns: its model answers sums by all columns."""
        if not self.summed.columns:
            return self
        tables = [self._is_table(view) for view in self.views]
        rule = "must be of columns in a view of few columns: the model of a table has no squares"
        fix = 'give them views of their own, for example views=[("salary",), ...]'
        squared = ", ".join(sorted(self.summed.squared))
        check(not squared or not tables or not all(tables), "moments", rule, given=squared, fix=fix)
        pairs = zip(self.views, tables, strict=True)
        views = [tuple(dict.fromkeys((*view, *self.summed.columns))) if t else view for view, t in pairs]
        return replace(self, views=views)

    def _is_table(self, columns: tuple[str, ...]) -> bool:
        """Whether a view of these columns will be released as a model of a table."""
        if len(columns) == 1 or (is_own(self.mechanism) and shape_of(self.mechanism) == "axes"):
            return False
        named = AUTO if is_own(self.mechanism) else self.mechanism
        schema = {column: self.schema[column] for column in columns}
        request = view_request(schema, Fraction(1), self.guarantee, named, self.together)
        return isinstance(request.choice.mechanism, TableGraph)

    def _queries(self) -> list[Draft]:
        if self.queries is None:
            return []
        make = partial(query_request, self.queries, self.schema, self.guarantee, self.mechanism)
        return [Draft(QUERIES, partial(make, options=self.options))]

    def _usual(self, number: int) -> list[Fraction]:
        """The weight of each view: 1, but for sums and names beside counts, which predicted errors weigh."""
        equal, one = Fraction(1, number), Fraction(1)
        texts = any(isinstance(self.schema[column], Text) for view in self.views for column in view)
        counts = [draft.request(equal) for draft in self._counts()] if self.summed.columns or texts else []
        sums = [draft.request(equal) for draft in self._sums()]
        named = [self._weight_of_names(request, counts) for request in counts] or [one] * len(self.views)
        weights = [*named, *(self._weight(request, counts) for request in sums)]
        return weights + [one] * (number - len(weights))

    def _by_names(self, request: AnyRequest) -> list[tuple[str, ...]]:
        """The views that have the names which this one finds as labels; none if it finds no names."""
        if not isinstance(request.choice.mechanism, Names | StableNames):
            return []
        return [view for view in self.views if len(view) > 1 and request.columns[0] in view]

    def _weight_of_names(self, request: AnyRequest, counts: Sequence[AnyRequest]) -> Fraction:
        """The weight of a search for names beside the views of their rows; 1 where there are none.

        What is said of a name that is not found is off by half of the rows that it may have, and of one that
        is found by the error of its views. The sum of both is to be small.
        """
        beside = [find_view(counts, view) for view in self._by_names(request)]
        if not beside:
            return Fraction(1)
        missed: float = request.choice.mechanism.predicted_missed

        def other(rows: int) -> float:
            errors = [view.predicted_error(rows) for view in beside]
            return max(_LEAST_ERROR, math.fsum(errors) / len(errors))

        return weight_beside(lambda rows: missed, other, power=self._power)

    @property
    def _power(self) -> float:
        """Of the ratio of errors, for the shares with which their sum is least."""
        return 2 / 3 if self.guarantee.rho else 1 / 2

    def _weight(self, request: AnyRequest, counts: Sequence[AnyRequest]) -> Fraction:
        """The weight of sums beside the counts of their keys; 1 where there are no counts."""
        if not counts or not isinstance(request, SumRequest):
            return Fraction(1)
        beside = find_view(counts, request.keys).predicted_error
        return weight_beside(request.predicted_error, beside, power=self._power)


@final
@dataclass(frozen=True, kw_only=True)
class Request:
    """Views to publish, about the same people and under one guarantee.

    Views of counts are released first: they say how the keys of sums are cut. Where the bound on rows per
    person is chosen privately, by `choice`, this is the request for the largest candidate, and `bounded` has
    those for all of them.
    """

    views: tuple[CountRequest[Any], ...]
    sums: tuple[SumRequest, ...] = ()
    queries: QueryRequest | None = None
    quantiles: tuple[QuantileRequest, ...] = ()
    wanted: tuple[WantedRequest, ...] = ()
    wants: tuple[Want, ...] = ()
    options: Options = field(default_factory=dict)
    person: str | None
    promised: Guarantee | None = None
    """What was asked for in rho; None where epsilon is spent."""
    auto: AutoContributions | None = None
    choice: BoundSelection | None = None
    bounded: tuple[Request, ...] = ()

    @staticmethod
    def checked(
        schema: Mapping[str, Domain],
        *,
        contributions: int | str | AutoContributions = 1,
        person: str | None = None,
        **asked: Any,
    ) -> Request:
        """The request that these parameters make, or the error that says which of them is wrong."""
        wanted = read_contributions(contributions)
        if isinstance(wanted, int):
            return Request._bounded(schema, contributions=wanted, person=person, **asked)
        unit_by(person)
        rule, fix = "needs person", "name the column of ids, or leave it out"
        check(person is not None, "contributions", rule, given=str(contributions), fix=fix)
        rule, fix = "must be a number of rows where rho is spent", "pass for example 8, or epsilon alone"
        check(asked.get("rho") is None, "contributions", rule, given=str(contributions), fix=fix)
        total = positive_epsilon(asked.get("epsilon"))
        rest = total * (1 - wanted.share)
        each = tuple(
            Request._bounded(schema, contributions=bound, person=person, **{**asked, "epsilon": rest})
            for bound in wanted.among
        )
        spent = any(request.promised is not None for request in each)
        check(not spent, "contributions", rule, given=str(contributions), fix=fix)
        shapes = {tuple((type(view), view.columns) for view in request.published) for request in each}
        rule, fix = "must be a number of rows where views depend on it", "pass for example 8"
        check(len(shapes) == 1, "contributions", rule, given=str(contributions), fix=fix)
        choice = BoundSelection(
            candidates=wanted.among,
            noise=[request.predicted_error for request in each],
            epsilon=total - rest,
            neighbors=each[-1].guarantee.neighbors,
        )
        return replace(each[-1], auto=wanted, choice=choice, bounded=each)

    @staticmethod
    def _bounded(
        schema: Mapping[str, Domain],
        *,
        epsilon: object = None,
        rho: object = None,
        delta: object = None,
        by: str | Sequence[str] | None = None,
        views: Views | None = None,
        shares: Shares | None = None,
        sums: Sequence[str] = (),
        moments: Sequence[str] = (),
        queries: object = None,
        wants: Wants | str | None = None,
        person: str | None = None,
        contributions: int = 1,
        neighbors: Neighbors = "add-remove",
        mechanism: MechanismOrName = AUTO,
        quantiles: object = None,
        together: Together = (),
        options: object = None,
    ) -> Request:
        """The same for a bound on rows per person that is known."""
        declared, wanted = checked_schema(schema), None
        if wants is not None:
            beside = {"by": by, "views": views, "sums": sums, "moments": moments, "queries": queries}
            beside |= {"together": together, "mechanism": mechanism != AUTO, "quantiles": quantiles}
            beside |= {"options": options or None}
            _check_wants_alone(beside)
            wanted = checked_wants(declared, wants)
        summed, asked = checked_sums(declared, sums, moments), checked_queries(declared, queries)
        guarantees = _guarantees(
            epsilon,
            rho,
            delta,
            queries=asked is not None,
            pure=not takes_rho(mechanism),
            own_delta=takes_delta(mechanism),
            neighbors=neighbors,
            unit=unit_by(person),
            contributions=bound_by(contributions, person),
        )
        if wanted is not None:
            return _least_error(
                _make_all(guarantees, lambda each: Request._of_wants(wanted, declared, each, shares, person))
            )
        named = mechanism if isinstance(mechanism, str) else ""
        alone = named in total_mechanisms()
        counted = keyed = _with_names(_views(declared, by, views, summed, asked, alone=alone), declared)
        plain = bool(summed.columns) and not summed.squared
        if plain and (alone or named in mean_mechanisms()):
            counted = []
        given = checked_options(mechanism, options)
        drafts = Drafts(
            schema=declared,
            views=counted,
            summed=summed,
            queries=asked,
            guarantee=guarantees[0],
            mechanism=mechanism,
            together=checked_together(declared, together, counted),
            keyed=() if counted else keyed,
            quantiles=quantiles,
            options=given,
        )
        rule = f"needs one of the mechanisms {', '.join(quantile_mechanisms())}"
        selects = quantiles is None or named in quantile_mechanisms()
        fix = 'pass mechanism="quantiles", or leave it out'
        check(selects, "quantiles", rule, given=named or "another", fix=fix)
        check_name(mechanism, map(len, drafts.views), queries=asked is not None, sums=plain)
        texts = [column for view in drafts.views for column in view if isinstance(declared[column], Text)]
        rule, fix = "must have a column of text, whose names it finds", "declare one as pt.Text(max_bytes=24)"
        check(texts or named not in name_mechanisms(), "mechanism", rule, given=named, fix=fix)
        if takes_delta(mechanism):
            searches = len(set(texts))
            guarantees = tuple(replace(each, delta=each.delta / searches) for each in guarantees)
            drafts = replace(drafts, guarantee=guarantees[0])
        with naming_options(given, named):
            made = _make_all(
                guarantees,
                lambda each: Request.of(
                    replace(drafts, guarantee=each).with_summed().requests(shares), person, each
                ),
            )
            return replace(_least_error(made), options=given)

    @staticmethod
    def of(requests: Sequence[ViewRequest[Any]], person: str | None, guarantee: Guarantee) -> Request:
        """Requests of all kinds, sorted, which share a guarantee."""
        sums = tuple(each for each in requests if isinstance(each, SumRequest))
        queries = next((each for each in requests if isinstance(each, QueryRequest)), None)
        counts = tuple(each for each in requests if isinstance(each, CountRequest))
        quantiles = tuple(each for each in requests if isinstance(each, QuantileRequest))
        wanted = tuple(each for each in requests if isinstance(each, WantedRequest))
        return Request(
            views=counts,
            sums=sums,
            queries=queries,
            quantiles=quantiles,
            wanted=wanted,
            person=person,
            promised=guarantee if guarantee.rho else None,
        )

    @staticmethod
    def _of_wants(
        wants: tuple[Want, ...],
        schema: Schema,
        guarantee: Guarantee,
        shares: Shares | None,
        person: str | None,
    ) -> Request:
        """The views that answer these wants; epsilon is shared by predicted errors and by `shares`."""
        drafts = draft_wants(wants, schema, guarantee)
        names, equal = [draft.name for draft in drafts], [Fraction(1)] * len(drafts)
        weights = checked_shares(shares, names, lambda: equal)
        parts = share_by_error(drafts, weights, guarantee)
        requests = [draft.request(part) for draft, part in zip(drafts, parts, strict=True)]
        return replace(Request.of(requests, person, guarantee), wants=wants)

    @property
    def published(self) -> tuple[ViewRequest[Any], ...]:
        """Every view: of counts, of sums, that of queries, of quantiles, then of cells that wants derive."""
        queries = () if self.queries is None else (self.queries,)
        return (*self.views, *self.sums, *queries, *self.quantiles, *self.wanted)

    def place_of_wants(self, view: ViewRequest[Any]) -> int:
        """Where the first want of a view stands among all wants, from zero; zero without wants."""
        wants = [str(want) for want in self.wants]
        return min((wants.index(each) for each in view.wants), default=0)

    @cached_property
    def guarantee(self) -> Guarantee:
        """What all views promise together, with the choice of the bound on rows per person.

        In rho that is what was asked for: they spend no more. Its epsilon is the sum of theirs if all of them
        are pure and that is less than what follows from rho.
        """
        if self.promised is None:
            views = reduce(add, (view.guarantee for view in self.published))
            return views if self.choice is None else views + self.choice.guarantee
        together = reduce(add, (view.guarantee.in_rho() for view in self.published))
        if together.rho > self.promised.rho:
            raise AssertionError("views cost more rho than is promised")
        pure = together.pure and together.epsilon <= self.promised.epsilon
        return replace(together, rho=self.promised.rho) if pure else self.promised

    @property
    def shared(self) -> Guarantee:
        """What views have shares of: the epsilon, or the rho."""
        return self.promised or self.guarantee

    @property
    def predicted_error(self) -> float:
        """The typical error of an answer by noise, over few, usual and many rows; the mean of all views.

        It is at least that of one count with all of epsilon: if that is large, discrete noise all but ends.
        """
        promised = self.guarantee
        least = float(rows_changed(promised.neighbors, promised.contributions) / promised.epsilon)
        errors = [view.predicted_error(rows) for view in self.published for rows in ROWS]
        known = [error for error in errors if math.isfinite(error)]
        return max(least, math.fsum(known) / max(1, len(known)))

    def promise(self, chosen: ChosenContributions | None) -> Guarantee:
        """What a release of these views promises, with the choice of the bound on rows per person if any."""
        views = self.guarantee
        return views if chosen is None else views + chosen.promise(views.neighbors)

    def state_choice(self, place: int) -> ChosenContributions | None:
        """What a release states of the bound that was chosen; None where it was given."""
        if self.auto is None or self.choice is None:
            return None
        among, share, epsilon = self.auto.among, self.auto.share, self.choice.epsilon
        return ChosenContributions(chosen=among[place], among=among, share=share, epsilon=epsilon)

    @property
    def declared(self) -> dict[str, Domain]:
        """The domain of every column that is in a view."""
        pairs = (zip(view.columns, view.domains, strict=True) for view in self.published)
        return dict(pair for view in pairs for pair in view)

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that is in a view, once."""
        return tuple(self.declared)

    def describes(self, release: Release) -> bool:
        """Whether a release is of these views and ids, with this guarantee and a bound that it may have."""
        stated = release.provenance.contributions
        if self.choice is None or stated is None:
            return self.choice is None and stated is None and self._describes(release, None)
        place = stated.among.index(stated.chosen)
        alike = stated.among == self.choice.candidates and stated == self.state_choice(place)
        return alike and self.bounded[place]._describes(release, stated)

    def _describes(self, release: Release, chosen: ChosenContributions | None) -> bool:
        alike = len(self.published) == len(release.published) and all(
            asked.describes(given) for asked, given in zip(self.published, release.published, strict=True)
        )
        facts = release.guarantee, release.provenance.person, release.wants, release.provenance.options
        return alike and facts == (self.promise(chosen), self.person, self.wants, self.stated_options)

    @property
    def stated_options(self) -> tuple[tuple[str, str], ...]:
        """The options of the mechanism as a release states them: each with its value as text, in order."""
        return tuple(option_texts(self.options).items())

    @property
    def stated_contributions(self) -> int | str:
        """The bound on rows per person, or what it is chosen among and for which share of epsilon."""
        return self.guarantee.contributions if self.auto is None else str(self.auto)

    def to_json(self) -> dict[str, Any]:
        """The request in words that JSON can write: the same for the same release, whatever the data."""
        delta = {} if self.guarantee.pure else {"delta": str(self.guarantee.delta)}
        rho = {} if self.promised is None else {"rho": str(self.promised.rho)}
        return {
            **rho,
            "epsilon": str(self.guarantee.epsilon),
            **delta,
            "neighbors": self.guarantee.neighbors,
            "contributions": self.stated_contributions,
            "person": self.person,
            "views": [view.asked for view in self.published],
            **({"wants": [str(want) for want in self.wants]} if self.wants else {}),
            **({"options": option_texts(self.options)} if self.options else {}),
        }


def _views(
    schema: Mapping[str, Domain],
    by: object,
    views: object,
    summed: SummedColumns,
    queries: Queries | None,
    *,
    alone: bool = False,
) -> list[tuple[str, ...]]:
    """The columns of each view of counts; none where only queries, or totals `alone`, are asked for."""
    if by is None and views is None and (alone if summed.columns else queries is not None):
        return []
    return checked_views(schema, by, views, beside=bool(summed.columns) or queries is not None)


def _with_names(views: list[tuple[str, ...]], schema: Mapping[str, Domain]) -> list[tuple[str, ...]]:
    """The same views, and before them one of its own for each column of text that has none."""
    texts = [column for view in views for column in view if isinstance(schema[column], Text)]
    alone = [(column,) for column in dict.fromkeys(texts) if (column,) not in views]
    return [*alone, *views]


def _check_wants_alone(beside: Mapping[str, object]) -> None:
    """Refuse what is published beside wants: nothing else is."""
    for name, given in beside.items():
        rule, fix = "must be left out where wants are given", "put it in wants, or leave wants out"
        check(given in (None, (), False), name, rule, given=name, fix=fix)


def _guarantees(
    epsilon: object,
    rho: object,
    delta: object,
    *,
    queries: bool,
    pure: bool,
    own_delta: bool,
    neighbors: Neighbors,
    unit: Unit,
    contributions: int,
) -> tuple[Guarantee, ...]:
    """What may be promised: one guarantee, or some of which the one with the smallest errors is to be taken.

    With rho, delta is where its epsilon is stated. Of epsilon and delta without queries the largest rho that
    follows may be spent, or epsilon alone where the mechanism can, or the rho that the exact curve allows if
    all noise is Gaussian. Queries compose their delta by themselves, and so does a threshold of stability,
    `own_delta`.
    """
    protected: dict[str, Any] = {"neighbors": neighbors, "unit": unit, "contributions": contributions}
    rule, fix = "must come without rho, or rho without it", 'pass for example epsilon=1, or rho="1/8"'
    check(epsilon is None or rho is None, "epsilon", rule, given=epsilon, fix=fix)
    if own_delta:
        fix = 'pass for example epsilon=1, delta="1e-6", or leave mechanism out'
        rule = "must be left out where a mechanism spends epsilon and delta"
        check(rho is None, "rho", rule, given=rho, fix=fix)
        check(not queries, "queries", rule, given="queries", fix="publish them by themselves")
        rule = "must lie between 0 and 1 for a threshold of stability"
        given = rational(0 if delta is None else delta, "delta")
        check(0 < given < 1, "delta", rule, given=delta, fix=fix)
        return (Guarantee(epsilon=epsilon, delta=given, **protected),)
    if rho is not None:
        stated = DEFAULT_DELTA if delta is None else check_probability(delta, "delta")
        return (Guarantee.concentrated(rho=rho, delta=stated, **protected),)
    exact = rational(0 if delta is None else delta, "delta")
    if queries or not exact:
        return (Guarantee(epsilon=epsilon, delta=exact, **protected),)
    within = rho_within(epsilon, exact)
    spent = Guarantee(epsilon=epsilon, delta=exact, rho=within, **protected)
    offered = [spent, Guarantee(epsilon=epsilon, **protected)] if pure else [spent]
    if spent.epsilon <= LARGEST_CURVE_EPSILON and exact >= LEAST_CURVE_DELTA:
        squares = squares_changed(neighbors, contributions)
        by_curve = gaussian_rho_within(spent.epsilon, exact, squares=squares)
        offered += [replace(spent, rho=by_curve)] if by_curve > within else []
    return tuple(offered)


def _make_all(guarantees: Sequence[Guarantee], make: Callable[[Guarantee], Request]) -> list[Request]:
    """The request for each guarantee that it keeps.

    More rho than follows from epsilon and delta may be spent on Gaussian noise alone.
    """
    made = [(guarantee, make(guarantee)) for guarantee in guarantees]
    return [
        request
        for guarantee, request in made
        if not guarantee.rho
        or follows(guarantee.rho, guarantee.epsilon, guarantee.delta)
        or all(view.is_gaussian for view in request.published)
    ]


def _least_error(requests: Sequence[Request]) -> Request:
    """The request whose predicted errors are smallest, in a geometric mean over its views and `ROWS`.

    A function of public facts. Where epsilon and delta are given and one view is published, noise for
    epsilon alone is often smaller than any for the rho that follows.
    """

    def cost(request: Request) -> float:
        errors = [view.predicted_error(rows) for view in request.published for rows in ROWS]
        return sum(math.log(max(error, _LEAST_ERROR)) for error in errors) / len(errors)

    return requests[0] if len(requests) == 1 else min(requests, key=cost)


def checked_schema(schema: object) -> Mapping[str, Domain]:
    """A schema, if it declares a domain for each column and a file can hold their names."""
    fix = 'pass for example {"age": Integer(0, 120)}'
    if isinstance(schema, Mapping) and schema and all(isinstance(name, str) and name for name in schema):
        for name, domain in schema.items():
            rule = f"must map columns to domains, and {name!r} has none"
            check(is_domain(domain), "schema", rule, given=domain, fix=fix)
        return {_writable(name, "schema"): domain for name, domain in schema.items()}
    raise InvalidParameter("schema", "must map columns to domains", given=schema, fix=fix)


def _writable(name: str, parameter: str) -> str:
    """The name of a column, if a file can hold it."""
    try:
        name.encode()
    except UnicodeEncodeError:
        pass
    else:
        return name
    rule = "must have names of columns that UTF-8 can write"
    raise InvalidParameter(parameter, rule, given=ascii(name), fix="remove unpaired surrogates")


def unit_by(person: object) -> Unit:
    """Whom a guarantee is about: persons where a column of ids is named, rows where none is."""
    if person is None:
        return "row"
    if isinstance(person, str) and person:
        _writable(person, "person")
        return "person"
    raise InvalidParameter("person", "must name the column of ids", given=person, fix='pass for example "id"')


def bound_by(contributions: object, person: str | None) -> int:
    """How many rows of one unit count, which needs ids where it is more than one."""
    limit = integer(contributions, "contributions", low=1)
    fix = "name the column of ids, or leave it out"
    check(person is not None or limit <= 1, "contributions", "needs person", given=limit, fix=fix)
    return limit


# Whether a release will find room in its file: said before a row is read, by writing an empty one.
# What limits a file is public: names, labels, reasons, how many series there are. So a file of the same
# shape, in which every text is as long and every series as wide as it can become, is written and read in
# memory by the code that will write and read the release.
_MOST_DIGITS: Final = 100
_LONGEST_NUMBER: Final = "9" * 400  # more digits than any number of a release has
_FACTS_BESIDE_SERIES: Final = 12  # more facts than any kind of release has beside its series
_FACTS_OF_AN_AXIS: Final = 8
_SIGNATURE: Final = bytes(1024)  # longer than any signature


def check_fits_in_file(request: Request, provenance: Provenance) -> None:
    """Refuse a request whose release might not fit into a file; a function of public facts."""
    if request.auto is not None and request.choice is not None:
        for exact in (request.auto.share, request.choice.epsilon):
            rule = f"must be chosen with a part of epsilon of at most {_MOST_DIGITS} digits"
            check(_is_short(exact), "contributions", rule, given=exact, fix="round it down")
    for each in request.bounded or (request,):
        _check_fits(each, provenance)


def _check_fits(request: Request, provenance: Provenance) -> None:
    _check_digits(request)
    try:
        unpack(pack(_empty_file(request, provenance), signature=_SIGNATURE), largest=LARGEST)
    except InvalidRelease as error:
        limit = f"{error.parameter} {error.rule}"
    else:
        return
    rule = f"must fit into one file, whose {limit}"
    fix = "publish fewer columns at a time, or with fewer labels and shorter names"
    raise InvalidParameter("views", rule, given=len(request.published), fix=fix)


def check_readable(request: Request) -> None:
    """Refuse to store what no file could be read back from: a release of a class of the caller's own."""
    for view in request.published:
        made = view.choice.mechanism
        readable = all(kind in kind.kinds().values() for kind in released_kinds(made))
        rule = f"must be left out: {view.choice.name!r} releases a class of your own, which no file can hold"
        fix = "keep the release in memory, or return one of Partita's classes from release"
        check(readable, "path", rule, given="a path", fix=fix)


def _check_digits(request: Request) -> None:
    name = "epsilon" if request.promised is None else "rho"
    budget: Fraction = getattr(request.guarantee, name)
    rule = f"must be, for each view, a ratio of integers of at most {_MOST_DIGITS} digits"
    for view in request.published:
        check(_is_short(view.share * budget), name, rule, given=budget, fix="round it down")


def _is_short(exact: Fraction) -> bool:
    """Whether a file can hold a rational number."""
    return bool(max(exact.numerator, exact.denominator) < 10**_MOST_DIGITS)


def _empty_file(request: Request, provenance: Provenance) -> Stored:
    """A file of the same shape, with no number in it."""
    views, promise = [_view(view) for view in request.published], guarantee_entries(request.guarantee)
    spec: dict[str, Json] = {
        "format": FORMAT,
        "version": version_of(views, provenance_entries(provenance), promise),
        "guarantee": promise,
        "provenance": provenance_entries(provenance),
        "views": list[Json](views),
        "checksum": "",
    }
    spec |= wants_entries(request.wants, spec)
    values = [np.zeros(0, column.dtype) for column in columns_of(spec)]
    spec["checksum"] = checksum(spec, values)
    return Stored(spec, values)


def _view(view: ViewRequest[Any]) -> dict[str, Json]:
    series = _most_series(view)
    facts = series + _FACTS_BESIDE_SERIES + _FACTS_OF_AN_AXIS * len(view.columns)
    facts += 2 * len(view.choice.mechanism.quantiles) if isinstance(view, QuantileRequest) else 0
    return {
        **view.described,
        **_special_entries(view),
        "mechanism": view.choice.name,
        "why": view.why,
        "kind": "",
        "facts": {"all": [_LONGEST_NUMBER] * facts},
        "guarantee": guarantee_entries(view.guarantee),
        "series": [{"name": f"series{number}", "dtype": "int128", "length": 0} for number in range(series)],
    }


def _special_entries(view: ViewRequest[Any]) -> dict[str, Json]:
    """The special cells that a view of one column has beside its axis."""
    if not isinstance(view, ColumnRequest):
        return {}
    counts: dict[str, Json] = dict.fromkeys(view.domain.specials, _LONGEST_NUMBER)
    return {"specials": {"counts": counts, "scale": _LONGEST_NUMBER}}


def _most_series(view: ViewRequest[Any]) -> int:
    """The most series of the kinds of releases that the mechanism may make, as its signature says."""
    levels = view.domain.size.bit_length() if isinstance(view, ColumnRequest) else len(view.columns)
    kinds: Sequence[type[ReleaseKind]] = released_kinds(view.choice.mechanism)
    return max(kind.count_series(levels) for kind in kinds)
