"""What is to be published, checked to the last word before any data is touched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from operator import add
from typing import Any, final

from partita.domain.base.base import Domain, is_domain
from partita.errors.checks import check
from partita.errors.errors import InvalidParameter
from partita.guarantee.guarantee import Guarantee, Neighbors, Unit
from partita.numbers import integer, rational
from partita.public.queries.queries.queries import Queries
from partita.public.release.release import Release
from partita.publish.request.drafts import Drafts
from partita.publish.request.shares import Shares
from partita.publish.views.numbers import Summed, checked_sums
from partita.publish.views.query_request import QueryRequest, checked_queries
from partita.publish.views.sum_request import SumRequest
from partita.publish.views.view_request import CountRequest, ViewRequest
from partita.publish.views.views import Views, checked_views
from partita.trusted.mechanisms.catalogue import AUTO, check_name


@final
@dataclass(frozen=True, kw_only=True)
class Request:
    """Views to publish, about the same people and under one guarantee.

    Views of counts are released first: they say how the keys of sums are cut.
    """

    views: tuple[CountRequest[Any], ...]
    sums: tuple[SumRequest, ...] = ()
    queries: QueryRequest | None = None
    person: str | None

    @staticmethod
    def checked(
        schema: Mapping[str, Domain],
        *,
        epsilon: object,
        delta: object = 0,
        by: str | Sequence[str] | None = None,
        views: Views | None = None,
        shares: Shares | None = None,
        sums: Sequence[str] = (),
        moments: Sequence[str] = (),
        queries: object = None,
        person: str | None = None,
        contributions: int = 1,
        neighbors: Neighbors = "add-remove",
        mechanism: str = AUTO,
    ) -> Request:
        """The request that these parameters make, or the error that says which of them is wrong."""
        declared = checked_schema(schema)
        summed, asked = checked_sums(declared, sums, moments), checked_queries(declared, queries)
        guarantee = Guarantee(
            epsilon=epsilon,
            delta=_delta(delta, asked),
            neighbors=neighbors,
            unit=unit_by(person),
            contributions=bound_by(contributions, person),
        )
        drafts = Drafts(
            schema=declared,
            views=_views(declared, by, views, summed, asked),
            summed=summed,
            queries=asked,
            guarantee=guarantee,
            mechanism=mechanism,
        )
        check_name(mechanism, map(len, drafts.views), queries=asked is not None)
        return Request.of(drafts.requests(shares), person)

    @staticmethod
    def of(requests: Sequence[ViewRequest[Any]], person: str | None) -> Request:
        """Requests of all kinds, sorted."""
        sums = tuple(each for each in requests if isinstance(each, SumRequest))
        queries = next((each for each in requests if isinstance(each, QueryRequest)), None)
        counts = tuple(each for each in requests if isinstance(each, CountRequest))
        return Request(views=counts, sums=sums, queries=queries, person=person)

    @property
    def published(self) -> tuple[ViewRequest[Any], ...]:
        """Every view, those of counts first, then those of sums, then that of queries."""
        return (*self.views, *self.sums, *(() if self.queries is None else (self.queries,)))

    @cached_property
    def guarantee(self) -> Guarantee:
        """What all views promise together."""
        return reduce(add, (view.guarantee for view in self.published))

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
        """Whether a release is of these views and ids, with this guarantee."""
        alike = len(self.published) == len(release.published) and all(
            asked.describes(given) for asked, given in zip(self.published, release.published, strict=True)
        )
        return alike and (release.guarantee, release.provenance.person) == (self.guarantee, self.person)

    def to_json(self) -> dict[str, Any]:
        """The request in words that JSON can write: the same for the same release, whatever the data."""
        delta = {} if self.guarantee.pure else {"delta": str(self.guarantee.delta)}
        return {
            "epsilon": str(self.guarantee.epsilon),
            **delta,
            "neighbors": self.guarantee.neighbors,
            "contributions": self.guarantee.contributions,
            "person": self.person,
            "views": [view.asked for view in self.published],
        }


def _views(
    schema: Mapping[str, Domain], by: object, views: object, summed: Summed, queries: Queries | None
) -> list[tuple[str, ...]]:
    """The columns of each view of counts; none where nothing but answers to queries is asked for."""
    if queries is not None and by is None and views is None and not summed.columns:
        return []
    return checked_views(schema, by, views, beside=bool(summed.columns) or queries is not None)


def _delta(delta: object, queries: Queries | None) -> Fraction:
    exact = rational(delta, "delta")
    rule = "must be 0 without queries: counts and sums are pure"
    check(queries is not None or not exact, "delta", rule, given=delta, fix="leave it out")
    return exact


def checked_schema(schema: object) -> Mapping[str, Domain]:
    """A schema, if it declares a domain for each column and a file can hold their names."""
    if isinstance(schema, Mapping) and schema:
        named = all(isinstance(name, str) and name for name in schema)
        if named and all(is_domain(domain) for domain in schema.values()):
            return {_writable(name, "schema"): domain for name, domain in schema.items()}
    fix = 'pass for example {"age": Integer(0, 120)}'
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
