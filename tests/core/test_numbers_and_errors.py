"""Public numbers are read exactly; errors say what to do and show no data."""

from __future__ import annotations

import inspect
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import partita as pt
from partita import errors
from partita.errors import InvalidData, InvalidParameter, PartitaError
from partita.numbers import integer, rational

SECRET = 987_654_321
CLASSES = [
    name
    for name, each in vars(errors).items()
    if inspect.isclass(each) and each.__module__ == errors.__name__ and not name.startswith("_")
]


@given(st.fractions())
def test_fractions_and_their_text_are_the_same_number(value: Fraction) -> None:
    """A fraction, its text and, where there is one, its decimal are read alike."""
    assert rational(value, "x") == rational(str(value), "x") == value


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_mean_their_shortest_text(value: float) -> None:
    """0.1 means a tenth, not the binary number next to it."""
    assert rational(value, "x") == Fraction(repr(value))


@pytest.mark.parametrize(
    "value",
    [math.nan, math.inf, Decimal("NaN"), Decimal("Infinity"), "nan", "", "1/0", True, None, b"1", 1j],
    ids=repr,
)
def test_what_is_no_number_is_refused(value: object) -> None:
    """NaN, infinities, truth values, bytes and words are no numbers."""
    with pytest.raises(InvalidParameter, match=r"^x must be a finite number"):
        rational(value, "x")


@pytest.mark.parametrize("text", ["1e1000000000", "9" * 401, "1e-401"])
def test_texts_that_would_take_forever_are_refused(text: str) -> None:
    """Exponents and lengths beyond 400 are refused before any arithmetic."""
    with pytest.raises(InvalidParameter):
        rational(text, "x")


@pytest.mark.parametrize("value", [7, np.int8(7), np.uint64(7)])
def test_integers_of_any_kind_are_read(value: object) -> None:
    """NumPy integers become Python ints."""
    read = integer(value, "x", low=7, high=7)

    assert (read, type(read)) == (7, int)


@pytest.mark.parametrize("value", [1.0, "1", True, np.bool_(True), None, Fraction(2), Decimal(1)], ids=repr)
def test_what_is_no_integer_is_refused(value: object) -> None:
    """Nothing is rounded or converted to an integer on the way in."""
    with pytest.raises(InvalidParameter, match=r"^x must be an integer"):
        integer(value, "x")


def test_integers_out_of_range_are_refused() -> None:
    """Both bounds belong to the range."""
    with pytest.raises(InvalidParameter, match=r"^x must be at least 3, got 2"):
        integer(2, "x", low=3)
    with pytest.raises(InvalidParameter, match=r"^x must be at most 3, got 4"):
        integer(4, "x", high=3)


def _drawn() -> dict[str, str]:
    """Each class of the tree in the docstring and the class that it hangs from."""
    parents: dict[int, str] = {}
    found = {}
    for line in (inspect.getdoc(errors) or "").splitlines():
        name = line.lstrip(" │├└─").split(" ")[0]
        if name in CLASSES:
            depth = line.index(name)
            above = [d for d in parents if d < depth]
            found[name] = parents[max(above)] if above else ""
            parents = {d: n for d, n in parents.items() if d < depth} | {depth: name}
    return found


def test_the_tree_in_the_docstring_is_the_tree_of_classes() -> None:
    """Every exported class is drawn once, under the class that it derives from."""
    real = {
        name: next((b.__name__ for b in getattr(errors, name).__bases__ if b.__name__ in CLASSES), "")
        for name in CLASSES
    }

    assert _drawn() == real
    assert {name for name, parent in real.items() if not parent} == {
        "ImplausibleReports",
        "PartitaError",
        "PrivacyWarning",
    }


def test_every_public_class_of_the_module_is_exported() -> None:
    """Users can catch each of them as `pt.NAME`."""
    exported = [name for name in CLASSES if name != "TapeExhausted"]  # which only tests meet

    assert [name for name in exported if getattr(pt, name) is not getattr(errors, name)] == []


def test_messages_name_parameter_rule_and_fix() -> None:
    """A message says which parameter, what the rule is, what was given and what to do."""
    parameter = InvalidParameter("size", "must be positive", given=-1, fix="pass 8")
    data = InvalidData("cells", "must be sorted", fix="sort them")

    assert str(parameter) == "size must be positive, got -1; pass 8"
    assert str(data) == "cells must be sorted; sort them"
    assert (parameter.parameter, parameter.rule, parameter.fix) == ("size", "must be positive", "pass 8")
    assert isinstance(data, PartitaError)
    assert isinstance(data, ValueError)


@pytest.mark.parametrize(
    "given",
    [
        np.array([SECRET]),
        [SECRET],
        (SECRET,),
        {"age": SECRET},
        pa.table({"age": [SECRET]}),
        pa.array([SECRET]),
        str(SECRET).encode(),
        range(SECRET),
        np.int64(SECRET),
    ],
    ids=lambda given: type(given).__name__,
)
def test_containers_are_named_by_their_type(given: object) -> None:
    """An array or a table handed in as a parameter never shows its values."""
    message = str(InvalidParameter("epsilon", "must be a number", given=given, fix="pass 1"))

    assert str(SECRET) not in message
    assert f"a value of type {type(given).__name__}" in message


def test_long_values_are_cut_short() -> None:
    """Huge integers are told by their size and long texts by their beginning."""
    number = str(InvalidParameter("n", "must be small", given=10**5000, fix="lower it"))
    text = str(InvalidParameter("n", "must be short", given="a" * 1000, fix="cut it"))

    assert number == "n must be small, got an integer of 16610 bits; lower it"
    assert len(text) < 120
