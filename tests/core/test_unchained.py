"""Errors about data carry nothing of the data along, not even where nobody shows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import partita as pt
from partita.errors import InvalidData, raise_without_cause


class Secretive:
    """An object that says its secret when NumPy touches it."""

    def __array__(self, *_: object, **__: object) -> Any:
        raise ValueError("somebody is 987654321")

    __len__ = __iter__ = __index__ = __array__


@pytest.mark.parametrize(
    "call",
    [
        lambda: pt.Counter(epsilon=1, horizon=4).update_many(Secretive()),
        lambda: pt.Counter(epsilon=1, horizon=4).update("987654321"),  # type: ignore[arg-type]
        lambda: pt.Histogram.from_cells(Secretive(), size=4),
        lambda: pt.Partition(size=4, epsilon=1).online().advance("987654321"),  # type: ignore[arg-type]
        lambda: pt.local.Frequency(4, epsilon=1).randomize_many(Secretive()),
        lambda: pt.local.Frequency(4, epsilon=1).aggregator().add_many(Secretive()),
        lambda: pt.local.Mean(0, 1, epsilon=1).randomize_many(Secretive()),
        lambda: pt.pan.Density(universe=9, epsilon=1).update_many(Secretive()),
        lambda: pt.pan.Distinct(epsilon=1, buckets=8).update_many("987654321"),
        lambda: pt.pan.Registers(universe=9, epsilon=1).update_many(987654321),  # type: ignore[arg-type]
    ],
)
def test_an_error_about_data_has_no_cause_and_no_context(call: Callable[[], Any]) -> None:
    """It is typed, and a tool that walks along the chain of errors finds no value."""
    with pytest.raises(InvalidData) as caught:
        call()

    assert "987654321" not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None


def test_other_errors_pass() -> None:
    """Only the kinds that were named are replaced."""
    with pytest.raises(ZeroDivisionError):
        raise_without_cause(lambda: 1 // 0, InvalidData("x", "must be so", fix="do it"), ValueError)


def test_rows_of_all_kinds_have_a_mean() -> None:
    """What is no number counts as the middle: lists among numbers do not stop a device."""
    assert len(pt.local.Mean(0, 1, epsilon=1).randomize_many([1, [2, 3], "x", None])) == 4
