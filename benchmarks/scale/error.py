"""Row `error`: how far off ranges are, published on Spark and from the same rows in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.accuracy.score import Json, short
from benchmarks.scale.rows import COLUMN, SCHEMA, frame
from benchmarks.scale.speed import publish
from partita.public.views import View
from partita.trusted.mechanisms.spending_tree import Intervals
from partita.trusted.secret import Histogram
from partita.trusted.sources.open import open_source
from partita.trusted.sources.tally import tally

RANGES = 10_000
RELEASES = 3
MOST = 10**7
"""More rows than these are not brought here."""


def error(spark: Any, rows: Sequence[int]) -> Iterator[Json]:
    """The root mean squared error over random ranges between values that people have, of a few releases."""
    for number in (each for each in rows if each <= MOST):
        exact = tally(open_source(frame(spark, number)), SCHEMA).column(COLUMN).histogram
        assert isinstance(exact, Histogram)
        here = Intervals(size=exact.size, epsilon=1)
        off = {
            "on Spark": rmse([publish(spark, number).views[0] for _ in range(RELEASES)], exact),
            "here": rmse([here.release(exact) for _ in range(RELEASES)], exact),
        }
        yield {
            "row": "error",
            "rows": f"{number:.0e}",
            **{name: short(found) for name, found in off.items()},
            "ratio": short(off["on Spark"] / off["here"]),
            "met": off["on Spark"] <= 1.1 * off["here"],
        }


def rmse(releases: Sequence[Any], exact: Histogram) -> float:
    random = np.random.default_rng(1)
    ends = np.sort(random.choice(exact.cells, (RANGES, 2)), axis=1)
    before = np.concatenate([[0], np.cumsum(exact.counts)])
    low, high = (
        np.searchsorted(exact.cells, ends[:, 0]),
        np.searchsorted(exact.cells, ends[:, 1], side="right"),
    )
    truth = before[high] - before[low]
    squares = [np.mean((axis_of(each).counts(ends[:, 0], ends[:, 1]) - truth) ** 2) for each in releases]
    return float(np.sqrt(np.mean(squares)))


def axis_of(release: Any) -> Any:
    """The ranges of a view, or of a mechanism's own release."""
    return release.axis if isinstance(release, View) else release
