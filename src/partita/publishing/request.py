"""What is to be published, checked to the last word before any data is touched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from partita.domain import Domain, is_domain
from partita.errors import InvalidParameter
from partita.exact import integer
from partita.guarantee import Guarantee, Neighbors, Unit, positive_epsilon
from partita.mechanisms.catalogue import (
    AUTO,
    axis_mechanisms,
    box_mechanisms,
    check_name,
    choose,
    choose_boxes,
)
from partita.publishing.view_request import BoxRequest, ColumnRequest, ViewRequest
from partita.publishing.views import Shares, Views, checked_shares, checked_views
from partita.releases.release import Release

__all__ = ["Request", "view_request"]


@final
@dataclass(frozen=True, kw_only=True)
class Request:
    """Views to publish, about the same people and under one guarantee."""

    views: tuple[ViewRequest[Any], ...]
    guarantee: Guarantee
    person: str | None

    @staticmethod
    def checked(
        schema: Mapping[str, Domain],
        *,
        epsilon: object,
        by: str | Sequence[str] | None = None,
        views: Views | None = None,
        shares: Shares | None = None,
        person: str | None = None,
        contributions: int = 1,
        neighbors: Neighbors = "add-remove",
        mechanism: str = AUTO,
    ) -> Request:
        """The request that these parameters make, or the error that says which of them is wrong."""
        wanted = checked_views(_schema(schema), by, views)
        guarantee = Guarantee(
            epsilon=positive_epsilon(epsilon),
            neighbors=neighbors,
            unit=_unit(person),
            contributions=_bound(contributions, person),
        )
        check_name(mechanism, map(len, wanted))
        requested = (
            view_request({column: schema[column] for column in columns}, share, guarantee, mechanism)
            for columns, share in zip(wanted, checked_shares(shares, wanted), strict=True)
        )
        return Request(views=tuple(requested), guarantee=guarantee, person=person)

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that is in a view, once."""
        return tuple(dict.fromkeys(column for view in self.views for column in view.columns))

    def describes(self, release: Release) -> bool:
        """Whether a release is of these views and ids, with this guarantee."""
        alike = len(self.views) == len(release.views) and all(
            asked.describes(given) for asked, given in zip(self.views, release.views, strict=True)
        )
        return alike and (release.guarantee, release.provenance.person) == (self.guarantee, self.person)

    def to_json(self) -> dict[str, Any]:
        """The request in words that JSON can write: the same for the same release, whatever the data."""
        return {
            "epsilon": str(self.guarantee.epsilon),
            "neighbors": self.guarantee.neighbors,
            "contributions": self.guarantee.contributions,
            "person": self.person,
            "views": [
                {**view.described, "share": str(view.share), "mechanism": view.choice.name}
                for view in self.views
            ],
        }


def view_request(
    schema: Mapping[str, Domain], share: Fraction, guarantee: Guarantee, mechanism: str
) -> ViewRequest[Any]:
    """A view of these columns that gets this share of a guarantee.

    A mechanism for one column is not meant for views of several, nor the other way round: there the
    choice is free.
    """
    facts: dict[str, Any] = {
        "epsilon": share * guarantee.epsilon,
        "neighbors": guarantee.neighbors,
        "contributions": guarantee.contributions,
        "unit": guarantee.unit,
    }
    columns, domains = tuple(schema), tuple(schema.values())
    if len(columns) > 1:
        boxes = choose_boxes(domains, mechanism=_unless(mechanism, axis_mechanisms()), **facts)
        return BoxRequest(columns=columns, domains=domains, share=share, choice=boxes)
    axis = choose(domains[0], mechanism=_unless(mechanism, box_mechanisms()), **facts)
    return ColumnRequest(columns=columns, domains=domains, share=share, choice=axis)


def _unless(mechanism: str, others: Mapping[str, object]) -> str:
    return AUTO if mechanism in others else mechanism


def _schema(schema: object) -> Mapping[str, Domain]:
    if isinstance(schema, Mapping) and schema:
        named = all(isinstance(name, str) and name for name in schema)
        if named and all(is_domain(domain) for domain in schema.values()):
            return {_writable(name, "schema"): domain for name, domain in schema.items()}
    raise InvalidParameter(
        "schema", "must map columns to domains", given=schema, fix='pass for example {"age": Integer(0, 120)}'
    )


def _writable(name: str, parameter: str) -> str:
    """The name of a column, if a file can hold it."""
    try:
        name.encode()
    except UnicodeEncodeError:
        pass
    else:
        return name
    raise InvalidParameter(
        parameter,
        "must have names of columns that UTF-8 can write",
        given=ascii(name),
        fix="remove unpaired surrogates",
    )


def _unit(person: object) -> Unit:
    if person is None:
        return "row"
    if isinstance(person, str) and person:
        _writable(person, "person")
        return "person"
    raise InvalidParameter("person", "must name the column of ids", given=person, fix='pass for example "id"')


def _bound(contributions: object, person: str | None) -> int:
    limit = integer(contributions, "contributions", low=1)
    if person is None and limit > 1:
        raise InvalidParameter(
            "contributions", "needs person", given=limit, fix="name the column of ids, or leave it out"
        )
    return limit
