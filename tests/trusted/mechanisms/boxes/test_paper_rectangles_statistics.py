"""How often the guarantees of the paper's boxes fail, on fresh noise."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from partita.domain.axis import Axis
from partita.public.boxes.base import BoxTerm
from partita.trusted.mechanisms.paper_boxes import PaperRectangles
from partita.trusted.secret import Points

pytestmark = [pytest.mark.statistics, pytest.mark.filterwarnings("ignore::partita.PrivacyWarning")]

AXES = (Axis(size=20), Axis(size=12, after=1))
RELEASES, BETA, MOST_FAILURES = 150, 0.1, 31
"""A failure rate of beta gives more than 31 failures in 150 with probability under 1e-4."""


def _table() -> np.ndarray:
    """Many empty cells, many light ones and a few heavy ones."""
    random = np.random.default_rng(5)
    table = random.poisson(random.choice([0.0, 2.0, 60.0], size=(20, 13), p=[0.5, 0.4, 0.1]))
    table[3, 4] = 4_000
    return table


TABLE = _table()
POINTS = Points.from_rows([*product(range(20), range(13))], axes=AXES, counts=TABLE.ravel())
RANGES = [[(a, b) for a in range(axis.width) for b in range(a, axis.width)] for axis in AXES]
LOWS, HIGHS = (
    np.array([[first[side], second[side]] for first, second in product(*RANGES)], np.uint64)
    for side in (0, 1)
)


def _truths() -> np.ndarray:
    sums = np.zeros((21, 14), np.int64)
    sums[1:, 1:] = TABLE.cumsum(axis=0).cumsum(axis=1)
    (a, b), (c, d) = LOWS.astype(np.int64).T, HIGHS.astype(np.int64).T + 1
    return np.asarray(sums[c, d] - sums[a, d] - sums[c, b] + sums[a, b])


TRUTHS = _truths()


@pytest.mark.parametrize(("epsilon", "threshold"), [(2, "paper"), (40, "paper"), (40, 1)])
def test_no_box_at_all_misses_by_more_than_the_error(epsilon: int, threshold: object) -> None:
    """Over all boxes the largest miss exceeds error(beta) in at most beta of the releases, and is near it."""
    mechanism = PaperRectangles(axes=AXES, epsilon=epsilon, threshold=threshold)

    misses, errors = np.zeros((2, RELEASES))
    for trial in range(RELEASES):
        release = mechanism.release(POINTS)
        misses[trial] = float(np.abs(release.counts(LOWS, HIGHS) - TRUTHS).max())
        errors[trial] = release.error(BETA)

    assert int((misses > errors).sum()) <= MOST_FAILURES
    assert float(errors.mean()) <= 100 * float(misses.mean())


@pytest.mark.parametrize(("epsilon", "threshold"), [(2, "paper"), (40, "paper"), (40, 1)])
def test_the_bounds_of_an_answer_hold(epsilon: int, threshold: object) -> None:
    """For each of some boxes, cut or whole, the truth leaves worst(beta) in at most beta of the releases."""
    mechanism = PaperRectangles(axes=AXES, epsilon=epsilon, threshold=threshold)
    boxes = [(0, 0, 19, 12), (3, 4, 3, 4), (0, 0, 9, 5), (5, 2, 17, 11), (4, 5, 19, 12)]
    terms = [BoxTerm((a, b), (c, d)) for a, b, c, d in boxes]
    truths = [int(TABLE[a : c + 1, b : d + 1].sum()) for a, b, c, d in boxes]

    failures = np.zeros(len(boxes))
    for _ in range(RELEASES):
        release = mechanism.release(POINTS)
        bounds = [release.answer(term).worst(BETA) for term in terms]
        failures += [not low <= truth <= high for (low, high), truth in zip(bounds, truths, strict=True)]

    assert int(failures.max()) <= MOST_FAILURES


SET_AXES, SET_ROWS = (Axis(size=2**16), Axis(size=2**12)), 700


def _set() -> np.ndarray:
    """Rows at different positions along both axes, most of them near the diagonal."""
    random = np.random.default_rng(8)
    first = np.sort(random.choice(2**16, SET_ROWS, replace=False))
    second = random.permutation(
        np.sort(random.choice(2**12, SET_ROWS, replace=False)).reshape(70, 10), axis=1
    )
    return np.stack([first, second.ravel()], axis=1)


@pytest.mark.parametrize(
    "options",
    [{"pruned": False}, {"pruned": True}, {"threshold": "paper"}, {"pruned": True, "cuts": "cells"}],
    ids=["theorem-3.3", "remark-3.4", "remark-3.4-paper", "cells"],
)
def test_the_bound_before_the_data_holds(options: dict[str, Any]) -> None:
    """For rows at different positions the largest miss over many boxes exceeds bound(beta, rows=) in at most
    beta of 200 releases.
    """
    axes = (Axis(size=2**10), Axis(size=2**9)) if "cuts" in options else SET_AXES
    rows = _set() * [axis.size for axis in axes] // [axis.size for axis in SET_AXES]
    mechanism = PaperRectangles(axes=axes, epsilon=16, **options)
    random = np.random.default_rng(9)
    ends = np.sort(random.random((400, 2, 2)), axis=1) * [axis.size for axis in axes]
    lows, highs = ends[:, 0].astype(np.uint64), ends[:, 1].astype(np.uint64)
    inside = ((rows >= lows[:, None]) & (rows <= highs[:, None])).all(axis=2).sum(axis=1)
    points = Points.from_rows(rows, axes=axes)

    misses = [np.abs(mechanism.release(points).counts(lows, highs) - inside).max() for _ in range(200)]

    bound = mechanism.bound(BETA, rows=SET_ROWS)
    assert sum(miss > bound for miss in misses) <= 39  # more has a chance under 1e-4 at a rate of beta
    assert bound <= 60 * float(np.mean(misses))
