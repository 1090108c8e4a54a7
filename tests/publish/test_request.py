"""What is asked for is checked before data is touched, and every error says what to do."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.domain import Category, Domain, Integer
from partita.errors import InvalidParameter, PrivacyWarning
from partita.publishing.request import Request

SCHEMA: dict[str, Domain] = {"age": Integer(0, 120), "wage": Integer(0, 999), "region": Category(["a", "b"])}
ONE: dict[str, Domain] = {"age": Integer(0, 120)}


def asked(schema: Any = SCHEMA, **other: Any) -> Request:
    return Request.checked(schema, **{"epsilon": 1, "mechanism": "tree", **other})


def test_a_schema_of_one_column_is_one_view() -> None:
    """It gets all of epsilon, and the guarantee is about rows."""
    request = asked(ONE)

    assert request.columns == ("age",)
    assert request.views[0].mechanism.guarantee == request.guarantee
    assert (request.guarantee.unit, request.guarantee.contributions) == ("row", 1)


@pytest.mark.parametrize("by", ["wage", ["wage"], ("wage",)])
def test_by_names_one_column_of_several(by: Any) -> None:
    """As text, a list or a tuple."""
    assert asked(by=by).columns == ("wage",)


@pytest.mark.parametrize("views", [["wage", "age"], [("wage",), ("age",)], (["wage"], ["age"])])
def test_views_are_published_in_their_order(views: Any) -> None:
    """A view is a column, or a list of one column; the rest of the schema is left alone."""
    assert asked(views=views).columns == ("wage", "age")


@given(st.lists(st.fractions(min_value="1/1000", max_value=1000), min_size=3, max_size=3), st.booleans())
def test_shares_add_up_to_epsilon_exactly(weights: list[Fraction], named: bool) -> None:
    """Weights of any size are parts of epsilon, by place or by name, without rounding."""
    shares: Any = dict(zip(SCHEMA, weights, strict=True)) if named else weights

    request = asked(views=list(SCHEMA), shares=shares, epsilon="1/3")

    parts = [view.mechanism.guarantee.epsilon for view in request.views]
    assert parts == [Fraction(1, 3) * weight / sum(weights) for weight in weights]
    assert sum(parts) == request.guarantee.epsilon == Fraction(1, 3)


def test_without_shares_views_get_equal_parts() -> None:
    """A third each."""
    assert {view.share for view in asked(views=list(SCHEMA)).views} == {Fraction(1, 3)}


def test_a_person_makes_the_guarantee_personal() -> None:
    """Also with one row each: the unit is the person whose rows are bounded."""
    guarantees = [asked(ONE, person="id", contributions=rows).guarantee for rows in (1, 5)]

    assert [(each.unit, each.contributions) for each in guarantees] == [("person", 1), ("person", 5)]


def test_every_mechanism_gets_what_it_must_know() -> None:
    """Neighbours, contributions and unit of the guarantee reach the mechanism of each view."""
    request = asked(views=["age", "region"], neighbors="change-one", person="id", contributions=3)

    for view in request.views:
        promised = view.mechanism.guarantee
        assert (promised.neighbors, promised.unit, promised.contributions) == ("change-one", "person", 3)
        assert view.mechanism.scale == 6 / promised.epsilon


def test_a_large_epsilon_is_warned_about() -> None:
    """It is legal, and the warning comes before any data is touched."""
    with pytest.warns(PrivacyWarning):
        asked(ONE, epsilon=50)


WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"epsilon": 0}, "epsilon", "positive"),
    ({"epsilon": "much"}, "epsilon", "finite number"),
    ({"epsilon": None}, "epsilon", "finite number"),
    ({"neighbors": "cousins"}, "neighbors", "one of"),
    ({"person": ""}, "person", "name the column"),
    ({"person": 5}, "person", "name the column"),
    ({"contributions": 2}, "contributions", "needs person"),
    ({"contributions": 0, "person": "id"}, "contributions", "at least 1"),
    ({"contributions": "2", "person": "id"}, "contributions", "integer"),
    ({"schema": {}}, "schema", "map columns"),
    ({"schema": None}, "schema", "map columns"),
    ({"schema": {"age": "integer"}}, "schema", "map columns"),
    ({"schema": {"age": Integer}}, "schema", "map columns"),
    ({"schema": {5: Integer(0, 1)}}, "schema", "map columns"),
    ({"schema": SCHEMA}, "views", r"views=\[\('age',\), \('wage',\), \('region',\)\], or by="),
    ({"schema": SCHEMA, "by": "agge"}, "by", "did you mean 'age'"),
    ({"schema": SCHEMA, "by": "zebra"}, "by", "declare its domain"),
    ({"schema": SCHEMA, "by": ["age", "wage"]}, "by", r"not there yet.*views=\[\('age',\), \('wage',\)\]"),
    ({"schema": SCHEMA, "by": []}, "by", "one column in each view"),
    ({"schema": SCHEMA, "by": 5}, "by", "name columns"),
    ({"schema": SCHEMA, "by": "age", "views": ["age"]}, "by", "not come with views"),
    ({"schema": SCHEMA, "views": []}, "views", "list of views"),
    ({"schema": SCHEMA, "views": "age"}, "views", "list of views"),
    ({"schema": SCHEMA, "views": [("age", "wage")]}, "views", "not there yet"),
    ({"schema": SCHEMA, "views": ["age", ("age",)]}, "views", "each column once"),
    ({"schema": SCHEMA, "views": ["age", "zebra"]}, "views", "columns of the schema"),
    ({"schema": SCHEMA, "views": ["age", "wage"], "shares": [1]}, "shares", "one weight for each"),
    ({"schema": SCHEMA, "views": ["age", "wage"], "shares": {"age": 1}}, "shares", "one weight for each"),
    ({"schema": SCHEMA, "views": ["age", "wage"], "shares": 5}, "shares", "one weight for each"),
    ({"schema": SCHEMA, "views": ["age", "wage"], "shares": [1, 0]}, "shares", "positive"),
    ({"schema": SCHEMA, "views": ["age", "wage"], "shares": [1, "x"]}, "shares", "finite number"),
    ({"mechanism": "treee"}, "mechanism", "did you mean 'tree'"),
    ({"mechanism": None}, "mechanism", "must be 'auto' or one of"),
    ({"schema": {"age": Integer(0, 2**40)}}, "mechanism", "must suit a column of 1099511627777 cells"),
]


@pytest.mark.parametrize(("changes", "parameter", "rule"), WRONG, ids=lambda value: str(value)[:50])
def test_what_is_wrong_is_named(changes: dict[str, Any], parameter: str, rule: str) -> None:
    """The error has the parameter, the rule, what was given and the fix."""
    with pytest.raises(InvalidParameter, match=rule) as refused:
        asked(**{"schema": ONE, **changes})

    assert refused.value.parameter == parameter
    assert refused.value.fix


def test_the_same_request_is_written_alike() -> None:
    """The words for the ledger follow from what is asked, not from how it was put."""
    one = asked(views=["age", "wage"], epsilon=0.5, shares=[1, 3])
    other = asked({**SCHEMA, "more": Integer(0, 1)}, views=[("age",), ["wage"]], epsilon="1/2", shares=(2, 6))

    assert one.to_json() == other.to_json()


@pytest.mark.parametrize(
    "other",
    [
        {"epsilon": 2},
        {"neighbors": "change-one"},
        {"person": "id"},
        {"by": "wage"},
        {"mechanism": "histogram"},
        {"schema": {"age": Integer(0, 121)}, "by": None},
    ],
    ids=str,
)
def test_another_request_is_written_otherwise(other: dict[str, Any]) -> None:
    """Every parameter that changes the release changes its words."""
    assert asked(**{"by": "age", **other}).to_json() != asked(by="age").to_json()
