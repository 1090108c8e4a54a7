"""Every view that is to be published, before it has its part of epsilon."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias, final

from partita.domain.base.base import Domain
from partita.guarantee.guarantee import Guarantee
from partita.public.file_entries.file_views import QUERIES, view_name
from partita.public.queries.queries.queries import Queries
from partita.public.sums.view.sum_view import sum_name
from partita.public.views.choosing import having
from partita.publish.request.shares import Shares, checked_shares, weight_beside
from partita.publish.views.numbers import Summed, sum_views
from partita.publish.views.query_request import query_request
from partita.publish.views.sum_request import SumRequest, sum_request
from partita.publish.views.view_request import BoxRequest, ColumnRequest, ViewRequest, facts_of
from partita.trusted.mechanisms.catalogue import AUTO, axis_mechanisms, box_mechanisms, choose, choose_boxes

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
    summed: Summed
    queries: Queries | None
    guarantee: Guarantee
    mechanism: str

    def requests(self, shares: Shares | None) -> list[AnyRequest]:
        """Every view with its part of epsilon, by the weights asked for or by the usual ones."""
        drafts = [*self._counts(), *self._sums(), *self._queries()]
        parts = checked_shares(shares, [draft.name for draft in drafts], partial(self._usual, len(drafts)))
        requests = [draft.request(part) for draft, part in zip(drafts, parts, strict=True)]
        return [self._explained(request, chosen=shares is None) for request in requests]

    def _explained(self, request: AnyRequest, *, chosen: bool) -> AnyRequest:
        """The same request; one of sums beside counts says how it came by its part of epsilon."""
        if not isinstance(request, SumRequest) or not self.views:
            return request
        reason = (
            "where the predicted errors of sums and counts are least together" if chosen else "as asked for"
        )
        return replace(request, split=f"It has {request.share} of epsilon, {reason}.")

    def _counts(self) -> list[Draft]:
        return [
            Draft(view_name(columns), partial(self._request_of_counts, columns)) for columns in self.views
        ]

    def _request_of_counts(self, columns: tuple[str, ...], share: Fraction) -> AnyRequest:
        schema = {column: self.schema[column] for column in columns}
        return view_request(schema, share, self.guarantee, self.mechanism)

    def _sums(self) -> list[Draft]:
        return [
            Draft(sum_name(column, keys), partial(self._request_of_sums, keys, column))
            for keys, column in sum_views(self.views, self.summed.columns)
        ]

    def _request_of_sums(self, keys: tuple[str, ...], column: str, share: Fraction) -> SumRequest:
        return sum_request(
            {name: self.schema[name] for name in (*keys, column)},
            keys,
            share,
            self.guarantee,
            moments=column in self.summed.squared,
        )

    def _queries(self) -> list[Draft]:
        if self.queries is None:
            return []
        make = partial(query_request, self.queries, self.schema, self.guarantee, self.mechanism)
        return [Draft(QUERIES, make)]

    def _usual(self, number: int) -> list[Fraction]:
        """The weight of each view: 1, but for sums beside counts, which predicted errors weigh."""
        equal, one = Fraction(1, number), Fraction(1)
        counts = [draft.request(equal) for draft in self._counts()] if self.summed.columns else []
        sums = [draft.request(equal) for draft in self._sums()]
        weights = [self._weight(request, counts) for request in sums]
        return [one] * len(self.views) + weights + [one] * (number - len(self.views) - len(weights))

    def _weight(self, request: AnyRequest, counts: Sequence[AnyRequest]) -> Fraction:
        """The weight of sums beside the counts of their keys; 1 where there are no counts."""
        if not counts or not isinstance(request, SumRequest):
            return Fraction(1)
        return weight_beside(request.predicted_error, having(counts, request.keys).predicted_error)


def view_request(schema: Schema, share: Fraction, guarantee: Guarantee, mechanism: str) -> AnyRequest:
    """A view of counts of these columns that gets this share of a guarantee.

    A mechanism for one column is not meant for views of several, nor the other way round: there the
    choice is free.
    """
    columns, domains, facts = tuple(schema), tuple(schema.values()), facts_of(guarantee, share)
    if len(columns) > 1:
        named = mechanism if mechanism in box_mechanisms() else AUTO
        boxes = choose_boxes(domains, mechanism=named, **facts)
        return BoxRequest(columns=columns, domains=domains, share=share, choice=boxes)
    named = mechanism if mechanism in axis_mechanisms() else AUTO
    axis = choose(domains[0], mechanism=named, **facts)
    return ColumnRequest(columns=columns, domains=domains, share=share, choice=axis)
