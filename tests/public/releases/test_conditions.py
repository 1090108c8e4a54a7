"""Conditions with `or`, `not` and sets mean the rows that they say, each once."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import partita as pt
from partita.domain import Category, Integer, Special
from partita.domain.axis import Axis
from partita.errors import InvalidParameter
from partita.public.conditions import Closed, OneOf, Range, join_both, join_either, negate
from partita.public.views import find_boxes
from tests.table_releases import table_release

from .conftest import Publish

DOMAINS: dict[str, Any] = {"a": Integer(0, 4), "b": Category(["x", "y"]), "c": Integer(0, 2)}
SPECIALS = {"a": [pt.NULL, pt.BELOW, pt.INVALID], "b": [pt.NULL, pt.OTHER], "c": [pt.ABOVE, pt.NULL]}
ends = st.none() | st.integers(0, 4)


def _atoms(column: str) -> st.SearchStrategy[tuple[str, object]]:
    values = st.sampled_from(DOMAINS[column].decode(list(range(DOMAINS[column].size))))
    conditions = [
        values,
        st.sampled_from(SPECIALS[column]),
        st.lists(values, min_size=1).map(tuple).map(OneOf),
    ]
    if column != "b":
        closed: list[Closed] = ["both", "left", "right"]
        pairs = st.tuples(values, values, st.sampled_from(closed))
        conditions.append(pairs.map(lambda each: Range(min(each[:2]), max(each[:2]), each[2])))
        conditions += [values.map(Range), values.map(lambda high: Range(None, high, "left"))]
    return st.tuples(st.just(column), st.one_of(conditions))


atoms = st.sampled_from("abc").flatmap(_atoms)
trees: st.SearchStrategy[Any] = st.recursive(
    atoms.map(lambda atom: ("is", *atom)),
    lambda inner: st.tuples(st.sampled_from(["and", "or"]), inner, inner) | st.tuples(st.just("not"), inner),
    max_leaves=5,
)


def _build(tree: Any) -> Mapping[str, object]:
    match tree:
        case ("is", column, condition):
            return {column: condition}
        case ("not", inner):
            return negate(_build(inner))
        case ("and", one, other):
            return join_both(_build(one), _build(other))
    return join_either([_build(tree[1]), _build(tree[2])])


def _holds(tree: Any, row: Mapping[str, object]) -> bool | None:
    """Whether a row meets the conditions by the three-valued logic of SQL; None if that is unknown."""
    match tree:
        case ("is", column, condition):
            return _meets(row[column], condition)
        case ("not", inner):
            found = _holds(inner, row)
            return None if found is None else not found
        case (word, one, other):
            first, second = _holds(one, row), _holds(other, row)
            decides = word == "or"
            if first is decides or second is decides:
                return decides
            return None if None in (first, second) else not decides
    raise AssertionError(tree)


def _meets(value: Any, condition: object) -> bool | None:
    if isinstance(condition, Special):
        return value is condition
    if value in (Special.NULL, Special.INVALID):
        return None
    match condition:
        case OneOf(values):
            return any(_meets(value, each) for each in values)
        case Range(low, high):
            if isinstance(value, Special):
                return (low is None and value is Special.BELOW) or (high is None and value is Special.ABOVE)
            above = low is None or value > low or (value == low and condition.low_closed)
            return above and (high is None or value < high or (value == high and condition.high_closed))
    return bool(value == condition)


def _positions(domain: Any) -> list[tuple[object, int]]:
    axis, beside = Axis.of(domain), Axis.specials(domain)
    values = domain.decode(list(range(domain.size)))
    found = [(value, axis.position(cell)) for cell, value in enumerate(values)]
    return found + [(Special.named(name), place) for name, place in beside.items()]


@given(trees)
@settings(max_examples=60)
def test_boxes_hold_each_row_that_meets_the_conditions_once(tree: Any) -> None:
    """Every combination of values lies in one box if the conditions hold, and in none otherwise."""
    boxes = find_boxes(DOMAINS, _build(tree))

    for row in product(*map(_positions, DOMAINS.values())):
        place = [position for _, position in row]
        held = sum(
            all(a <= p <= b for a, p, b in zip(box.low, place, box.high, strict=True)) for box in boxes
        )
        assert held == (_holds(tree, dict(zip(DOMAINS, (value for value, _ in row), strict=True))) is True)


def test_sets_and_opposites_in_python(together: Publish) -> None:
    """A list is a set of values in any column; `Not` takes a value, a range, a set or a special cell."""
    ages, towns = [1, 2, 3, 3, None, 12, "x"], ["Rome", "Bari", "Oslo", None, "Rome", "Rome", "Bari"]
    release = together(age=(Integer(0, 9), ages), town=(Category(["Rome", "Bari"]), towns))

    for where, expected in (
        ({"age": [1, 3]}, 3.0),
        ({"age": []}, 0.0),
        ({"age": pt.Not(3)}, 3.0),
        ({"age": pt.Not((1, 2))}, 3.0),
        ({"age": pt.Not([1, 3])}, 2.0),
        ({"age": pt.Not({1, pt.NULL})}, 4.0),
        ({"age": pt.Not(pt.NULL)}, 6.0),
        ({"town": pt.Not("Rome")}, 3.0),
        ({"town": pt.Not(pt.Not("Rome"))}, 3.0),
        ({"town": pt.Not("Rome"), "age": pt.Not(3)}, 1.0),
    ):
        assert release.count(where).value == expected
    assert release.count("town = Rome or age = 3").value == 5.0
    assert release.count("town = Rome or age = 3", age=(0, 1)).value == 1.0
    assert release.count(where="age != 3").value == 3.0
    assert release.count(age=pt.Not((1, 3)), closed="left").value == 3.0
    assert release.difference("town = Rome or age = 3", {"town": "Rome"}).value == 2.0


def test_a_union_has_the_error_of_its_cells(together: Publish) -> None:
    """Parts that overlap count once, in the error too: here a count of w cells has the variance w."""
    release = together(x=(Integer(0, 9), [1, 2]), y=(Integer(0, 9), [3, 4]))
    width = 10 + 4  # cells of an axis, and special ones

    found = release.count("x = 1 or y = 3")

    assert found.value == 1.0
    assert found.error == pytest.approx((2 * width - 1) ** 0.5)
    assert release.quantile("x", 0.5, "y = 3 or y = 4").value == 1


def test_a_union_in_a_table_release_adds_up_what_may_go_together() -> None:
    """What the model misses may go one way in all parts: the error is their sum."""
    release = table_release()

    found = release.count("town = Rome or rooms = 3")
    parts = [release.count(town="Rome"), release.count(town=pt.Not("Rome"), rooms=3)]
    rest = release.count({"town": pt.NULL, "rooms": 3})

    assert found.value == pytest.approx(sum(each.value for each in parts) + rest.value, abs=1e-6)
    assert found.error >= max(each.error for each in parts)
    with pytest.raises(InvalidParameter, match="must not join conditions on several columns with `or` here"):
        release.sum("pay", "town = Rome or rooms = 3")


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("age = 3 or", "question must have a column at character 11"),
        (3, "where must be a mapping of columns"),
        ({"age": pt.Not(None)}, "age must say which values"),
        ({"age": pt.Not("young")}, "age must be a finite number"),
        ({"age": [1, (2, 3)]}, "age must have a low and a high end"),
        (
            " or ".join(f"(age = {n} and town = Rome and pay = {n})" for n in range(40)),
            "at most 32 parts with `or`",
        ),
    ],
)
def test_wrong_conditions_are_refused(where: Any, said: str) -> None:
    """Each with a typed error that names what is wrong."""
    with pytest.raises(InvalidParameter, match=said):
        table_release().count(where)
