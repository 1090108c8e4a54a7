"""The widest lines and the most rows: nothing overflows, and no error comes after the debit."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from partita.domain import Integer
from partita.public.sums.base import ValueLine
from partita.public.sums.knots import Tops, ValueBuckets
from partita.public.sums.level_trees import Controls

WIDEST = [Integer(0, 2**63 - 1), Integer(-(2**63) + 1, 0), Integer(-(2**62), 2**62 - 1)]


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("domain", WIDEST, ids=str)
@pytest.mark.spread(3)
def test_every_cap_of_the_widest_lines_can_be_laid(domain: Any, degree: int) -> None:
    """Whichever bucket is full, of either side, rows at both ends and in between have one unit of mass."""
    line = ValueLine.of(domain)
    buckets = ValueBuckets(line)
    places = np.unique(np.array([1, line.size // 2 + 1, line.down + 1, line.size], np.uint64))
    parts, counts = np.arange(places.size), np.ones(places.size, np.int64)
    for full in range(3, buckets.size):
        noisy = np.zeros(buckets.size, np.int64)
        noisy[[full, -1]] = 10**6
        controls = Controls(line, buckets.tops(noisy, Fraction(20)), degree)
        masses = controls.summed(parts, places, counts, places.size)
        assert masses.sum(axis=0).tolist() == [controls.unit] * places.size
        assert min(masses.ravel().tolist()) >= 0
        assert all(past.rows >= 0 for past in buckets.rows_past(noisy, controls.tops))


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("rows", [2**40, 2**43 + 1, 2**48 - 1, 2**48, 2**61 + 12_345])
def test_masses_of_any_number_of_rows_are_exact(rows: int, degree: int) -> None:
    """The largest unit of mass, times as many rows as points can have, is summed to the last bit."""
    line = ValueLine.of(Integer(0, 7 << 20))
    controls = Controls(line, Tops(7 << 20, None), degree)
    places = np.array([1 + (7 << 20), 1_234_568, line.size + 3], np.uint64)
    counts = np.array([rows, 3, 1])
    single = controls.summed(np.zeros(3, np.int64), places, np.ones(3, np.int64), 1).ravel()
    apart = [controls.summed(np.zeros(1, np.int64), place[None], np.ones(1, np.int64), 1) for place in places]
    found = controls.summed(np.zeros(3, np.int64), places, counts, 1).ravel()

    assert sum(int(mass) for mass in single) == 3 * controls.unit
    expected = np.sum([each.ravel() * int(count) for each, count in zip(apart, counts, strict=True)], axis=0)
    assert found.tolist() == expected.tolist()
