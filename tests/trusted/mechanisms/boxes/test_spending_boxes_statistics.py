"""The two bars of a tree of boxes on fresh noise: one that is guaranteed, and one that is a model."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from partita.domain.axis import Axis
from partita.public.boxes.base import BoxTerm
from partita.testing.doubles import EndlessTape
from partita.trusted.mechanisms.boxes import SpendingBoxes
from partita.trusted.secret import Points

pytestmark = pytest.mark.statistics

RELEASES = 200
BETA = 0.2
AXES = (Axis(size=16, before=1), Axis(size=16))


def _threshold() -> Any:
    """Counts just where a node may or may not be cut, so that looks decide most."""
    table = np.zeros((17, 16), np.int64)
    table[::4, ::4] = 9
    return table


def _mixed() -> Any:
    """A hump, an atom, rows in the special cell, and quiet corners."""
    across, along = np.ogrid[:17, :16]
    table = np.round(30 * np.exp(-(((across - 8) / 4) ** 2) - ((along - 5) / 3) ** 2)).astype(np.int64)
    table[12, 12] += 400
    table[0] += 3
    return table


TABLES = {"threshold": _threshold(), "mixed": _mixed()}
BOXES = [((0, 0), (16, 15)), ((1, 0), (16, 7)), ((0, 3), (0, 9)), ((12, 12), (12, 12)), ((3, 2), (9, 13))]


def _most_failures(rate: float, trials: int) -> float:
    """Exceeded with probability below 1e-8 if each of `trials` fails with this probability, by Hoeffding."""
    return trials * rate + math.sqrt(trials * math.log(1e8) / 2)


def _corners(seed: object, count: int) -> tuple[Any, Any]:
    """Random boxes."""
    ends = (EndlessTape(seed).take(4 * count) >> np.uint64(40)).reshape(2, count, 2) % np.uint64(16)
    return ends.min(axis=0), ends.max(axis=0)


@pytest.mark.parametrize("name", TABLES)
def test_guaranteed_bounds_fail_as_rarely_as_they_say(name: str) -> None:
    """`worst(beta)` of fixed boxes and `error(beta)` fail in at most beta of 200 releases, up to 1e-7."""
    table = TABLES[name]
    rows = np.argwhere(table)
    points = Points.from_rows(rows, axes=AXES, counts=table[tuple(rows.T)])
    lows, highs = _corners(name, 400)
    truth = np.array(
        [
            table[a : c + 1, b : d + 1].sum()
            for (a, b), (c, d) in zip(lows.astype(int), highs.astype(int), strict=True)
        ]
    )
    missed, far = np.zeros(len(BOXES)), 0
    for _ in range(RELEASES):
        release = SpendingBoxes(axes=AXES, epsilon=1).release(points)
        for at, (low, high) in enumerate(BOXES):
            bottom, top = release.answer(BoxTerm(low, high)).worst(BETA)
            missed[at] += not bottom <= table[low[0] : high[0] + 1, low[1] : high[1] + 1].sum() <= top
        far += np.abs(release.counts(lows, highs) - truth).max() > release.error(BETA)

    assert max(*missed, far) <= _most_failures(BETA, RELEASES)
