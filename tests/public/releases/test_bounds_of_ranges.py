"""Bounds of ranges are checked by every kind of release, before anything is looked up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from partita.errors import InvalidData, InvalidParameter
from partita.public.axis.base import AxisRelease, Term
from tests.public.file.specimens import axis


@pytest.fixture(scope="module", params=AxisRelease.kinds())
def released(request: pytest.FixtureRequest) -> AxisRelease:
    """A small release of each kind."""
    return axis(request.param)


def _refused(released: AxisRelease) -> list[tuple[Any, Any, type[Exception]]]:
    size = released.size
    return [
        ([size - 1], [0], InvalidParameter),
        ([0], [size], InvalidParameter),
        ([-1], [0], InvalidParameter),
        ([0, 0], [0], InvalidParameter),
        ([0], [1.5], InvalidData),
        (np.array([0.0]), np.array([1.0]), InvalidData),
        ([0], ["1"], InvalidData),
        ([False], [True], InvalidData),
        ([0], [2**70], InvalidParameter),
        (np.ma.masked_array([0], mask=[True]), [0], InvalidData),
    ]


@pytest.mark.parametrize("asked", ["counts", "errors"])
def test_ranges_that_are_none_are_refused(released: AxisRelease, asked: str) -> None:
    """Swapped, outside, of different lengths, or not integers: a typed error that names the parameter."""
    for lows, highs, kind in _refused(released):
        with pytest.raises(kind, match=r"lows|highs"):
            getattr(released, asked)(lows, highs)


@pytest.mark.parametrize("bounds", [(1, 0), (-1, 0), (0, None), (0, 0.5), (True, 1)], ids=str)
def test_single_ranges_that_are_none_are_refused(released: AxisRelease, bounds: tuple[Any, Any]) -> None:
    """One range is checked as many are; None stands for the cell behind the last one."""
    low, high = bounds

    with pytest.raises(InvalidParameter, match=r"low|high"):
        released.count(low, released.size if high is None else high)
    with pytest.raises(InvalidParameter, match="sign"):
        released.answer(Term(0, 0, 2))


def test_whole_numbers_of_any_type_are_bounds(released: AxisRelease) -> None:
    """Lists, small integers and the full 64 bits give the answers of the same ranges; none gives none."""
    lows, highs = [0, 1, 0], [1, 1, released.size - 1]
    expected = [released.count(low, high).value for low, high in zip(lows, highs, strict=True)]

    counts: Any = released.counts
    assert counts(lows, highs) == pytest.approx(expected)
    assert counts(np.array([0], np.int8), np.array([1], np.int16)) == pytest.approx(expected[:1])
    assert counts([], []).size == 0
