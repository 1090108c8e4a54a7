"""Bins of an axis: every position has one, runs and labels alike, and wrong ones are refused."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from partita.errors import InvalidParameter
from partita.public.boxes.bins import MOST_BINS, AxisBins


@pytest.mark.parametrize(
    "bins",
    [
        AxisBins.from_edges([0, 4, 9]),
        AxisBins.from_edges([99_999, 200_000]),
        AxisBins.from_lookup([2, 0, 1, 1, 0]),
        AxisBins.identity(7),
    ],
    ids=repr,
)
def test_every_position_is_in_one_bin(bins: AxisBins) -> None:
    """The members of all bins are all positions, each in the bin that `of` says, after a pickle too."""
    travelled = pickle.loads(pickle.dumps(bins))
    members = [bins.members(number) for number in range(bins.number)]

    assert sorted(np.concatenate(members).tolist()) == list(range(bins.width))
    assert [each.size for each in members] == bins.sizes.tolist()
    for number, each in enumerate(members):
        assert (bins.of(each) == number).all()
        assert (travelled.of(each) == number).all()


def test_runs_may_be_as_wide_as_an_axis() -> None:
    """Positions up to 2^63 and the special cells behind them have bins."""
    bins = AxisBins.from_edges(np.array([2**62, 2**63, 2**63 + 3], np.uint64))

    assert bins.of(np.array([0, 2**62, 2**62 + 1, 2**63 + 3], np.uint64)).tolist() == [0, 0, 1, 2]
    assert bins.sizes.tolist() == [2**62 + 1, 2**62, 3]


def test_bins_cannot_change() -> None:
    """Neither fields nor arrays can be assigned to, and the arrays given stay the caller's."""
    given = np.array([0, 1, 0])
    bins = AxisBins.from_lookup(given)
    given[0] = 1

    assert bins.lookup is not None
    assert bins.lookup.tolist() == [0, 1, 0]
    with pytest.raises(ValueError, match="read-only"):
        bins.lookup[0] = 1
    with pytest.raises(AttributeError):
        bins.width = 5  # type: ignore[misc]


@pytest.mark.parametrize(
    "make",
    [
        lambda: AxisBins.from_edges([]),
        lambda: AxisBins.from_edges([3, 3]),
        lambda: AxisBins.from_edges([5, 3]),
        lambda: AxisBins.from_edges([-1, 3]),
        lambda: AxisBins.from_edges([0.5]),
        lambda: AxisBins.from_edges([[1]]),
        lambda: AxisBins.from_edges(np.array([2**63 + 100], np.uint64)),
        lambda: AxisBins.from_lookup([0, 2]),
        lambda: AxisBins.from_lookup([]),
        lambda: AxisBins.from_lookup(["a"]),
        lambda: AxisBins.identity(0),
        lambda: AxisBins.identity(MOST_BINS + 1),
        lambda: AxisBins(3, 2, edges=np.array([0, 1], np.uint64)),
        lambda: AxisBins(3, 2),
        lambda: AxisBins(2, 2, np.array([0, 1], np.uint64), np.array([0, 1])),
        lambda: AxisBins.from_lookup([0, 0]).spans,
        lambda: AxisBins.from_edges([1]).members(1),
        lambda: AxisBins.from_edges([2**40]).members(0),
    ],
)
def test_wrong_bins_are_refused(make: Any) -> None:
    """Bins without positions, positions without bins and runs out of order are errors of the caller."""
    with pytest.raises(InvalidParameter):
        make()
