"""One reader for the parts of every kind: what it takes, what it refuses, and their digest."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from partita.errors import InvalidRelease
from partita.public.axis.base import Parts, PartsReader

LARGEST = 2**127

TAKEN: list[tuple[Callable[[PartsReader], Any], Any, Any]] = [
    (lambda reader: reader.flag("it"), False, False),
    (lambda reader: reader.integer("it", low=-3, high=3), -3, -3),
    (lambda reader: reader.rational("it"), "-1/3", Fraction(-1, 3)),
    (lambda reader: reader.rationals("it", most=2), ["0", "1/2"], (0, Fraction(1, 2))),
    (lambda reader: reader.scale("it"), "1/1048576", Fraction(1, 2**20)),
    (lambda reader: reader.scales("it", most=1), [str(2**62)], (2**62,)),
    (lambda reader: reader.optional("it", reader.flag), None, None),
    (lambda reader: reader.optional("it", reader.flag), True, True),
]
REFUSED: list[tuple[Callable[[PartsReader], Any], list[Any]]] = [
    (lambda reader: reader.flag("it"), [None, 0, 1, "true"]),
    (lambda reader: reader.integer("it", low=-3, high=3), [None, True, 4, -4, "1", 1.0]),
    (lambda reader: reader.rational("it"), [None, 1, "x", "1/0", "nan", ["1"]]),
    (lambda reader: reader.rationals("it", most=2), [None, "1", [], ["1"] * 3, [1], ["1", None]]),
    (lambda reader: reader.scale("it"), ["0", "-1", "1/1048577", str(2**62 + 1)]),
    (lambda reader: reader.scales("it", most=1), [["0"], ["1", "1"]]),
    (lambda reader: reader.optional("it", reader.flag), [0, "null"]),
]
ROWS: list[Any] = [
    None,
    [1, 2],
    np.array([[1]]),
    np.array(1),
    np.array([1.0]),
    np.array([True]),
    np.array([1], np.int32),
    np.ma.masked_array([1], mask=[True]),
]


def _reader(value: Any, **series: Any) -> PartsReader:
    return PartsReader(Parts({"it": value}, series))


@pytest.mark.parametrize(("read", "value", "expected"), TAKEN)
def test_facts_are_taken_as_written(read: Callable[[PartsReader], Any], value: Any, expected: Any) -> None:
    """Limits are included, and text is read exactly."""
    assert read(_reader(value)) == expected


@pytest.mark.parametrize(("read", "values"), REFUSED)
def test_facts_of_another_form_are_refused(read: Callable[[PartsReader], Any], values: list[Any]) -> None:
    """The error names the fact; so does that for a fact that is not there."""
    for value in values:
        with pytest.raises(InvalidRelease, match=r"^it must"):
            read(_reader(value))


@pytest.mark.parametrize("row", ROWS, ids=repr)
def test_rows_are_flat_arrays_of_their_type(row: Any) -> None:
    """Lists, tables, other types and masks are no rows, for no way to read one."""
    reader = _reader(None, it=row)
    for read in (
        lambda: reader.row("it", np.int64),
        lambda: reader.noisy("it"),
        lambda: reader.edges("it", size=2),
    ):
        with pytest.raises(InvalidRelease, match=r"^it must"):
            read()


def test_noisy_integers_have_one_limit() -> None:
    """They reach from -2^127 to 2^127, and are as many as they should be."""
    wide = np.array([-LARGEST, LARGEST], dtype=object)

    assert _reader(None, it=wide).noisy("it", count=2).tolist() == wide.tolist()
    for values in (wide[:1], wide * 2, np.array([None, 1]), np.array([True, 1], object)):
        with pytest.raises(InvalidRelease, match=r"^it must"):
            _reader(None, it=values).noisy("it", count=2)


def test_a_digest_names_everything() -> None:
    """Equal parts have equal digests, in any order; any other fact, name, number or length has another."""
    parts = Parts({"a": 1, "b": "2"}, {"x": np.array([1, 2]), "y": np.array([2**80], dtype=object)})
    other = [
        parts._replace(facts={"a": 2, "b": "2"}),
        parts._replace(series={**parts.series, "x": np.array([1, 3])}),
        parts._replace(series={**parts.series, "y": np.array([2**80 + 1], dtype=object)}),
        parts._replace(series={"z": parts.series["x"], "y": parts.series["y"]}),
        parts._replace(series={"x": np.array([1]), "y": parts.series["y"]}),
    ]

    turned = Parts({"b": "2", "a": 1}, {name: parts.series[name] for name in ("y", "x")})
    assert turned.digest == parts.digest
    assert len({parts.digest, *(each.digest for each in other)}) == 1 + len(other)
