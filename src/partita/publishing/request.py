"""What is to be published, checked to the last word before any data is touched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction
from typing import Any, final

from partita.domain import Domain, is_domain
from partita.errors import InvalidParameter
from partita.exact import integer, rational
from partita.guarantee import Guarantee, Neighbors, Unit, positive_epsilon
from partita.mechanisms.catalogue import AUTO, Choice, choose
from partita.mechanisms.with_specials import WithSpecials
from partita.releases.release import Release

__all__ = ["Request", "ViewRequest", "chosen"]


@final
@dataclass(frozen=True, kw_only=True)
class ViewRequest:
    """One column, its part of epsilon, and the mechanism that will release it."""

    column: str
    domain: Domain
    share: Fraction
    choice: Choice

    @property
    def mechanism(self) -> WithSpecials:
        """The mechanism for the whole column, special cells included."""
        return WithSpecials(axis=self.choice.mechanism, specials=self.domain.specials)


@final
@dataclass(frozen=True, kw_only=True)
class Request:
    """Columns to publish, each as a view of its own, about the same people and under one guarantee."""

    views: tuple[ViewRequest, ...]
    guarantee: Guarantee
    person: str | None

    @staticmethod
    def checked(
        schema: Mapping[str, Domain],
        *,
        epsilon: object,
        by: str | Sequence[str] | None = None,
        views: Sequence[str | Sequence[str]] | None = None,
        shares: Mapping[str, object] | Sequence[object] | None = None,
        person: str | None = None,
        contributions: int = 1,
        neighbors: Neighbors = "add-remove",
        mechanism: str = AUTO,
    ) -> Request:
        """The request that these parameters make, or the error that says which of them is wrong."""
        columns = _columns(_schema(schema), by, views)
        guarantee = Guarantee(
            epsilon=positive_epsilon(epsilon),
            neighbors=neighbors,
            unit=_unit(person),
            contributions=_bound(contributions, person),
        )
        requested = (
            ViewRequest(
                column=column,
                domain=schema[column],
                share=share,
                choice=chosen(schema[column], share, guarantee, mechanism),
            )
            for column, share in zip(columns, _shares(shares, columns), strict=True)
        )
        return Request(views=tuple(requested), guarantee=guarantee, person=person)

    @property
    def columns(self) -> tuple[str, ...]:
        """The column of each view."""
        return tuple(view.column for view in self.views)

    def describes(self, release: Release) -> bool:
        """Whether a release is of these columns and ids, domains and mechanisms, with this guarantee."""
        asked = [(view.column, view.domain.to_spec(), view.choice.name) for view in self.views]
        given = [(view.column, view.domain.to_spec(), view.mechanism) for view in release.views]
        person = release.provenance.person
        return asked == given and (release.guarantee, person) == (self.guarantee, self.person)

    def to_json(self) -> dict[str, Any]:
        """The request in words that JSON can write: the same for the same release, whatever the data."""
        return {
            "epsilon": str(self.guarantee.epsilon),
            "neighbors": self.guarantee.neighbors,
            "contributions": self.guarantee.contributions,
            "person": self.person,
            "views": [
                {
                    "column": view.column,
                    "domain": view.domain.to_spec(),
                    "share": str(view.share),
                    "mechanism": view.choice.name,
                }
                for view in self.views
            ],
        }


def chosen(domain: Domain, share: Fraction, guarantee: Guarantee, mechanism: str) -> Choice:
    """The mechanism for a column that gets this share of a guarantee."""
    return choose(
        domain,
        epsilon=share * guarantee.epsilon,
        mechanism=mechanism,
        neighbors=guarantee.neighbors,
        contributions=guarantee.contributions,
        unit=guarantee.unit,
    )


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


def _columns(schema: Mapping[str, Domain], by: object, views: object) -> list[str]:
    """The column of each view, in order."""
    if by is not None and views is not None:
        raise InvalidParameter("by", "must not come with views", given=by, fix="leave one of the two out")
    if views is not None:
        return _distinct([_one_column(view, "views") for view in _listed(views, "views")], schema, "views")
    if by is None and len(schema) > 1:
        raise InvalidParameter(
            "views",
            "must say how to publish a schema of several columns",
            given=views,
            fix=f"pass views={_suggested(list(schema))}, or by= with one of them",
        )
    return _distinct([_one_column(list(schema) if by is None else by, "by")], schema, "by")


def _listed(views: object, name: str) -> Sequence[object]:
    if isinstance(views, Sequence) and not isinstance(views, (str, bytes)) and views:
        return views
    raise InvalidParameter(name, "must be a list of views", given=views, fix='pass [("age",), ("salary",)]')


def _one_column(view: object, name: str) -> str:
    columns = [view] if isinstance(view, str) else view
    if not isinstance(columns, (list, tuple)) or not all(isinstance(each, str) for each in columns):
        raise InvalidParameter(name, "must name columns", given=view, fix='pass for example [("age",)]')
    if len(columns) != 1:
        raise InvalidParameter(
            name,
            "must have one column in each view: releases of several columns together are not there yet",
            given=", ".join(columns),
            fix=f"publish them apart, views={_suggested(columns) or [('age',)]}",
        )
    return str(columns[0])


def _suggested(columns: Sequence[str]) -> list[tuple[str, ...]]:
    return [(column,) for column in columns]


def _distinct(columns: list[str], schema: Mapping[str, Domain], name: str) -> list[str]:
    for column in columns:
        if column not in schema:
            near = get_close_matches(column, schema, n=1, cutoff=0.5)
            fix = f"did you mean {near[0]!r}?" if near else "declare its domain in the schema"
            raise InvalidParameter(name, "must name columns of the schema", given=column, fix=fix)
        if columns.count(column) > 1:
            raise InvalidParameter(name, "must name each column once", given=column, fix="leave one out")
    return columns


def _shares(shares: object, columns: Sequence[str]) -> list[Fraction]:
    """The part of epsilon that each view gets; they add up to one exactly."""
    weights = [_weight(share) for share in _weights(shares, columns)]
    return [weight / sum(weights) for weight in weights]


def _weights(shares: object, columns: Sequence[str]) -> list[object]:
    if shares is None:
        return [1] * len(columns)
    if isinstance(shares, Mapping) and set(shares) == set(columns):
        return [shares[column] for column in columns]
    if isinstance(shares, (list, tuple)) and len(shares) == len(columns):
        return list(shares)
    raise InvalidParameter(
        "shares", "must have one weight for each view", given=shares, fix='pass for example {"age": 1}'
    )


def _weight(share: object) -> Fraction:
    exact = rational(share, "shares")
    if exact <= 0:
        raise InvalidParameter("shares", "must be positive", given=share, fix="leave a view out instead")
    return exact


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
