"""Releases of tents taken apart for a file and put together again; hostile parts are refused."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.errors import InvalidRelease
from partita.guarantee import Guarantee
from partita.public.axis.base import AxisRelease, Parts, Term
from partita.public.axis.tents import PartitionTentsRelease, TentRelease
from partita.testing import EndlessTape, tape_noise
from partita.trusted.mechanisms.partition import PartitionTents, Tents
from partita.trusted.secret import Histogram

TAPE = tape_noise(EndlessTape("parts"))
SPREAD = Histogram.from_counts([5, 2**40, 2**53 + 1, 2**63], [900, 10, 400, 1], size=2**64)
DENSE = Histogram.dense([100] * 600)
RELEASES: dict[str, AxisRelease] = {
    "tents": Tents(size=100, epsilon=1).release(Histogram.dense(range(100)), noise=TAPE),
    "integers of more than 64 bits": Tents(size=500, epsilon=1).release(
        Histogram.dense([2**52] * 500), noise=TAPE
    ),
    "pairs": PartitionTents(size=2**64, epsilon=1, total=1_311).release(SPREAD, noise=TAPE),
    "last cells": PartitionTents(size=2**64, epsilon=1, total=10**6).release(SPREAD, noise=TAPE),
    "full": PartitionTents(size=600, epsilon=1, total=60_000).release(DENSE, noise=TAPE),
}


def test_every_form_is_there() -> None:
    """Pairs, last cells and a full universe are three forms of one kind."""
    pairs, cells, full = (RELEASES[name] for name in ("pairs", "last cells", "full"))
    assert isinstance(pairs, PartitionTentsRelease)
    assert isinstance(cells, PartitionTentsRelease)
    assert isinstance(full, PartitionTentsRelease)

    assert pairs.pairs is not None
    assert (cells.pairs, cells.cut is None) == (None, False)
    assert full.cut is None
    wide = RELEASES["integers of more than 64 bits"].parts().series.values()
    assert any(values.dtype == object for values in wide)


@pytest.mark.parametrize("name", RELEASES)
def test_what_is_put_together_again_answers_the_same(name: str) -> None:
    """Values, errors and bounds are the same, to the last digit."""
    release = RELEASES[name]
    guarantee = Guarantee(epsilon=1)

    again = type(release).from_parts(release.parts(), guarantee)

    terms = Term(0, release.size // 3), Term(release.size // 5, release.size - 1, -1)
    one, other = release.answer(*terms), again.answer(*terms)
    assert again.guarantee == guarantee
    assert (one.value, one.error, one.worst(0.01)) == (other.value, other.error, other.worst(0.01))
    assert release.error(0.1) == again.error(0.1)
    ends = np.array([release.size // 3], np.uint64)
    assert release.errors(ends // np.uint64(9), ends) == again.errors(ends // np.uint64(9), ends)


JUNK: list[Any] = [
    None,
    True,
    -1,
    0,
    2**70,
    "x",
    "1/0",
    "-1/3",
    "1e399",
    [],
    ["1/2"],
    ["1", "0"],
    {},
    {"a": 1},
    2.5,
]
ARRAYS: list[Any] = [
    np.zeros(0, np.int64),
    np.zeros(1, np.int64),
    np.zeros((2, 2), np.int64),
    np.array([1.5, 2.0]),
    np.array([np.nan]),
    np.array(["a"]),
    np.array([True]),
    np.array([2**200, 1], dtype=object),
    np.array([None], dtype=object),
    np.array([3, 2, 1], np.uint64),
    np.arange(50),
    np.ma.masked_array([1, 2], mask=[True, False]),
]


@pytest.mark.parametrize("name", RELEASES)
def test_hostile_parts_are_refused(name: str) -> None:
    """Every fact and every series, replaced by junk, left out, or joined by another, is an InvalidRelease."""
    kind, (facts, series) = type(RELEASES[name]), RELEASES[name].parts()
    hostile = [Parts({**facts, fact: junk}, series) for fact in facts for junk in JUNK]
    hostile += [Parts(facts, {**series, one: array}) for one in series for array in ARRAYS]
    hostile += [Parts({k: v for k, v in facts.items() if k != fact}, series) for fact in facts]
    hostile += [Parts(facts, {k: v for k, v in series.items() if k != one}) for one in series]
    hostile += [Parts({**facts, "more": 1}, series), Parts(facts, {**series, "more": np.arange(3)})]

    accepted = 0
    for parts in hostile:
        try:
            release = kind.from_parts(parts, None)
        except InvalidRelease:
            continue
        accepted += 1
        assert np.isfinite(release.count(0, release.size - 1).value)

    assert accepted < len(hostile) / 4


@given(st.data())
def test_any_integers_of_the_right_shape_can_be_asked(data: st.DataObject) -> None:
    """A release that is well formed answers, whatever integers it holds."""
    units = data.draw(st.integers(1, 5))
    values = st.integers(-(2**127), 2**127)
    levels = [data.draw(st.lists(values, min_size=units, max_size=units))]
    parts = Parts(
        {"size": units, "rate": str(Fraction(data.draw(st.integers(1, 1000)), 7)), "shares": ["1"]},
        {"level0": np.array(levels[0], dtype=object)},
    )

    release = TentRelease.from_parts(parts, None)

    assert release.count(0, units - 1).value >= 0.0
    assert release.error(0.5) >= 0.0
