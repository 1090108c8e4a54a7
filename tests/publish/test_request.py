"""What is asked for is checked before data is touched, and every error says what to do."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.domain import Category, Domain, Integer
from partita.domain.axis import Axis
from partita.errors import InvalidParameter, PrivacyWarning
from partita.guarantee import Guarantee
from partita.publish.request import Request
from partita.publish.views import BoxRequest, ColumnRequest

SCHEMA: dict[str, Domain] = {"age": Integer(0, 120), "wage": Integer(0, 999), "region": Category(["a", "b"])}
ONE: dict[str, Domain] = {"age": Integer(0, 120)}
TOO_MANY: dict[str, Domain] = {f"c{number}": Integer(0, 9) for number in range(41)}
HUGE: dict[str, Domain] = {"age": Integer(0, 120), "x": Integer(0, 2**63)}
MIXED = ["age", ("age", "wage"), ("region",)]


def asked(schema: Any = SCHEMA, **other: Any) -> Request:
    return Request.checked(schema, **{"epsilon": 1, "mechanism": "tree", **other})


def test_a_schema_of_one_column_is_one_view() -> None:
    """It gets all of epsilon, and the guarantee is about rows."""
    request = asked(ONE)

    assert request.columns == ("age",)
    assert request.views[0].guarantee == request.guarantee
    assert (request.guarantee.unit, request.guarantee.contributions) == ("row", 1)


@pytest.mark.parametrize("by", ["wage", ["wage"], ("wage",)])
def test_by_names_one_column_of_several(by: Any) -> None:
    """As text, a list or a tuple."""
    assert asked(by=by).columns == ("wage",)


@pytest.mark.parametrize("views", [["wage", "age"], [("wage",), ("age",)], (["wage"], ["age"])])
def test_views_are_published_in_their_order(views: Any) -> None:
    """A view is a column, or a list of one column; the rest of the schema is left alone."""
    assert asked(views=views).columns == ("wage", "age")


@pytest.mark.parametrize(
    ("other", "together"),
    [
        ({}, ("age", "wage", "region")),
        ({"by": ["wage", "age"]}, ("wage", "age")),
        ({"by": ("region", "age")}, ("region", "age")),
        ({"views": [("age", "region")]}, ("age", "region")),
    ],
    ids=str,
)
def test_several_columns_are_one_view_of_boxes(other: dict[str, Any], together: tuple[str, ...]) -> None:
    """All columns of the schema, or those that are named, in that order and with all of epsilon."""
    request = asked(mechanism="grid", **other)

    [view] = request.views
    assert isinstance(view, BoxRequest)
    assert view.columns == request.columns == together
    assert view.mechanism.axes == tuple(Axis.of(SCHEMA[column]) for column in together)
    assert view.guarantee == request.guarantee


def test_views_of_one_column_and_of_several_stand_side_by_side() -> None:
    """A column may be in several views; the request names it once, and each view by its columns."""
    request = asked(views=MIXED, mechanism="grid")

    assert request.columns == ("age", "wage", "region")
    assert [view.name for view in request.views] == ["age", "age x wage", "region"]
    assert [type(view) for view in request.views] == [ColumnRequest, BoxRequest, ColumnRequest]


@pytest.mark.parametrize(
    ("mechanism", "names"),
    [("tree", ["tree", "rectangles", "tree"]), ("grid", ["intervals", "grid", "histogram"])],
)
def test_a_named_mechanism_is_used_where_it_suits(mechanism: str, names: list[str]) -> None:
    """One for a column in views of one column, one for boxes in views of several; the rest is chosen."""
    views = asked(views=MIXED, mechanism=mechanism).views

    assert [view.choice.name for view in views] == names
    assert [view.choice.why == "It was asked for by name." for view in views] == [
        view.choice.name == mechanism for view in views
    ]


@pytest.mark.parametrize(
    "shares",
    [
        [1, 2, 5],
        {"age": 1, ("age", "wage"): 2, "region": 5},
        {("age",): "1/4", ("age", "wage"): "1/2", "region": "5/4"},
    ],
    ids=str,
)
def test_shares_name_views_by_their_columns(shares: Any) -> None:
    """A column for a view of one, a tuple for a view of several, or weights in the order of the views."""
    request = asked(views=MIXED, shares=shares, mechanism="grid", epsilon="1/3")

    assert [view.share for view in request.views] == [Fraction(1, 8), Fraction(2, 8), Fraction(5, 8)]
    assert sum(view.guarantee.epsilon for view in request.views) == Fraction(1, 3)


def test_neighbours_contributions_and_unit_reach_the_boxes() -> None:
    """The mechanism of a view of several columns promises what the request does, for its share."""
    request = asked(
        views=MIXED, mechanism="grid", neighbors="change-one", person="id", contributions=3, epsilon=3
    )

    assert {view.guarantee for view in request.views} == {
        Guarantee(epsilon=1, neighbors="change-one", unit="person", contributions=3)
    }


@given(st.lists(st.fractions(min_value="1/1000", max_value=1000), min_size=3, max_size=3), st.booleans())
def test_shares_add_up_to_epsilon_exactly(weights: list[Fraction], named: bool) -> None:
    """Weights of any size are parts of epsilon, by place or by name, without rounding."""
    shares: Any = dict(zip(SCHEMA, weights, strict=True)) if named else weights

    request = asked(views=list(SCHEMA), shares=shares, epsilon="1/3")

    parts = [view.guarantee.epsilon for view in request.views]
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

    scales = []
    for view in request.views:
        assert isinstance(view, ColumnRequest)
        promised = view.mechanism.guarantee
        assert (promised.neighbors, promised.unit, promised.contributions) == ("change-one", "person", 3)
        scales.append(view.mechanism.scale * promised.epsilon)

    # A move within the trees changes 14 and 4 nodes, a row that leaves them 8 and 3: 6/14 and 1/4 are left.
    assert scales == [7, 12]


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
    ({"schema": TOO_MANY}, "views", r"at most 40 columns in a view, .*views=\[\('c0', 'c1', 'c2'\), "),
    ({"schema": TOO_MANY, "by": list(TOO_MANY)}, "by", r"at most 40 columns in a view, .*views="),
    ({"schema": TOO_MANY, "views": [list(TOO_MANY)]}, "views", r"at most 40 columns in a view, .*views="),
    ({"schema": HUGE}, "views", r"at most 2\^63 cells in a view of several, got 'x'; .*views=\[\('x',\)"),
    ({"schema": HUGE, "by": ["age", "x"]}, "by", r"at most 2\^63 cells"),
    ({"schema": SCHEMA, "by": "agge"}, "by", "did you mean 'age'"),
    ({"schema": SCHEMA, "by": "zebra"}, "by", "declare its domain"),
    ({"schema": SCHEMA, "by": ["age", "age"]}, "by", "each column once"),
    ({"schema": SCHEMA, "by": ["age", "wagge"]}, "by", "did you mean 'wage'"),
    ({"schema": SCHEMA, "by": []}, "by", "a column in each view"),
    ({"schema": SCHEMA, "by": 5}, "by", "name columns"),
    ({"schema": SCHEMA, "by": "age", "views": ["age"]}, "by", "not come with views, got 'both'"),
    ({"schema": SCHEMA, "views": []}, "views", "list of views"),
    ({"schema": SCHEMA, "views": "age"}, "views", "list of views"),
    ({"schema": SCHEMA, "views": ["age", ()]}, "views", "a column in each view"),
    ({"schema": SCHEMA, "views": ["age", {"wage"}]}, "views", "name columns"),
    ({"schema": SCHEMA, "views": ["age", ("age",)]}, "views", "different columns"),
    ({"schema": SCHEMA, "views": [("age", "wage"), ("wage", "age")]}, "views", "different columns"),
    ({"schema": SCHEMA, "views": ["age", "zebra"]}, "views", "columns of the schema"),
    ({"schema": SCHEMA, "views": ["age", "wage"], "shares": [1]}, "shares", "got '1 of them'; .*'wage': 1}"),
    ({"schema": SCHEMA, "views": ["age", "wage"], "shares": {"age": 1}}, "shares", "got 'age'; pass for ex"),
    ({"shares": {"age": 1, "wage": 1}}, "shares", "got 'age, wage'; leave it out, .* or pass views="),
    ({"schema": SCHEMA, "views": ["age", "wage"], "shares": 5}, "shares", "one weight for each"),
    ({"schema": SCHEMA, "views": ["age", "wage"], "shares": [1, 0]}, "shares", "positive"),
    ({"schema": SCHEMA, "views": ["age", "wage"], "shares": [1, "x"]}, "shares", "finite number"),
    ({"mechanism": "treee"}, "mechanism", "did you mean 'tree'"),
    ({"mechanism": None}, "mechanism", "must be 'auto' or one of"),
    ({"schema": {"age": Integer(0, 2**40)}}, "mechanism", "must suit a column of 1099511627777 cells"),
    (
        {"schema": SCHEMA},
        "mechanism",
        "this one is for one column, got 'tree'; .*one of gaussian-grid, graph, grid",
    ),
    ({"mechanism": "grid"}, "mechanism", "this one is for several columns together, got 'grid'; .*histogram"),
    ({"schema": SCHEMA, "mechanism": "gridd"}, "mechanism", "did you mean 'grid'"),
    (
        {"schema": {"a": Integer(0, 2**20), "b": Integer(0, 2**20)}, "mechanism": "grid"},
        "mechanism",
        "must suit columns of 1048581 x 1048581 cells, special cells included",
    ),
    (
        {"schema": SCHEMA, "views": MIXED, "shares": {"age": 1, "wage": 1, "region": 1}},
        "shares",
        "one weight",
    ),
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
        {"by": ("age", "wage"), "mechanism": "grid"},
    ],
    ids=str,
)
def test_another_request_is_written_otherwise(other: dict[str, Any]) -> None:
    """Every parameter that changes the release changes its words."""
    assert asked(**{"by": "age", **other}).to_json() != asked(by="age").to_json()


def test_a_box_request_is_written_by_its_columns_in_order() -> None:
    """Another order of columns is another release."""
    one, same, other = (
        asked(by=by, mechanism="grid").to_json() for by in (["age", "wage"], ("age", "wage"), ["wage", "age"])
    )

    assert one == same != other
    assert one["views"] == [
        {
            "columns": ["age", "wage"],
            "domains": [SCHEMA["age"].to_spec(), SCHEMA["wage"].to_spec()],
            "share": "1",
            "mechanism": "grid",
        }
    ]


def test_requests_of_one_column_are_written_as_ever() -> None:
    """Keys of earlier releases are compared with these words, so they must not change."""
    assert asked(by="age").to_json()["views"] == [
        {"column": "age", "domain": SCHEMA["age"].to_spec(), "share": "1", "mechanism": "tree"}
    ]
