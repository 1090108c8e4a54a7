"""SmartNoise SQL: sums and means by group, a row for each person, within its own bounds or declared ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from snsql import Privacy, from_df
from snsql.sql._mechanisms.approx_bounds import approx_bounds

from benchmarks.peers.worker import Answers, Problem, serve, with_total

BOUNDS_SHARE = 0.2
"""Of epsilon, for the largest value: with a declared bound of 2^32 the library refuses to answer."""


def sums(problem: Problem) -> Answers:
    found = by_group("SUM(v)", problem, *found_bound(problem))
    return lambda: with_total(found)


def means(problem: Problem) -> Answers:
    found = by_group("AVG(v)", problem, *found_bound(problem), columns=2)
    return lambda: found


def declared_sums(problem: Problem) -> Answers:
    found = by_group("SUM(v)", problem, int(problem["largest"]), float(problem["epsilon"]))
    return lambda: with_total(found)


def declared_means(problem: Problem) -> Answers:
    found = by_group("AVG(v)", problem, int(problem["largest"]), float(problem["epsilon"]), columns=2)
    return lambda: found


def found_bound(problem: Problem) -> tuple[int, float]:
    """A bound that the library finds, and the epsilon that is left."""
    epsilon = float(problem["epsilon"])
    _, upper = approx_bounds(problem["values"], BOUNDS_SHARE * epsilon)
    return int(min(upper or problem["largest"], int(problem["largest"]))), (1 - BOUNDS_SHARE) * epsilon


def by_group(figure: str, problem: Problem, bound: int, epsilon: float, *, columns: int = 1) -> Any:
    """One query with GROUP BY; the library spends its epsilon on each noisy column, and a mean has two."""
    frame = pd.DataFrame({"g": problem["keys"].astype(np.int64), "v": problem["values"].astype(np.int64)})
    privacy = Privacy(epsilon=epsilon / columns)
    rows = from_df(frame, privacy=privacy, metadata=metadata(bound)).execute(
        f"SELECT g, {figure} AS f FROM s.t GROUP BY g ORDER BY g"
    )
    found = {int(group): float(value or 0) for group, value in rows[1:]}
    return np.array([found.get(group, 0.0) for group in range(int(problem["groups"]))])


def metadata(bound: int) -> Any:
    """What is declared: rows are private, values lie between 0 and the bound."""
    value = {"type": "int", "lower": 0, "upper": bound, "nullable": False}
    table = {
        "row_privacy": True,
        "censor_dims": False,
        "clamp_counts": False,
        "g": {"type": "int"},
        "v": value,
    }
    return {"": {"s": {"t": table}}}


METHODS = {
    "sums": sums,
    "means": means,
    "declared-sums": declared_sums,
    "declared-means": declared_means,
}

if __name__ == "__main__":
    serve(METHODS)
