"""OpenDP: the b-ary tree with its least squares, private quantiles, clamped sums, exact integer noise."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import opendp.prelude as dp

from benchmarks.peers.worker import Answers, Problem, between, groups, serve, with_total

dp.enable_features("contrib")

CAP_SHARE, CAP = 0.4, 0.99
"""Of epsilon, for the quantile above which values are cut off: a power of two or halfway to the next.

The best of ten pairs (0.2 and 0.4; 0.9 to 0.995) on other rows than those of the report.
"""


GRID, MOST_CELLS, MOST_GRID = 2**12, 2**20, 2**18
"""Candidates of a coarse grid; up to how many cells each is a candidate; an even grid beyond."""


def ranges(problem: Problem) -> Answers:
    """Cells that agree with all noisy levels of a tree."""
    cells = tree_cells(problem)
    return lambda: between(cells, problem["lows"], problem["highs"])


def tree_quantiles(problem: Problem) -> Answers:
    """Quantiles of the cells of the same tree."""
    cells, size = tree_cells(problem), int(problem["size"])
    edges = np.arange(size + 1, dtype=np.float64)
    asked = dp.t.make_quantiles_from_counts(edges, problem["alphas"].tolist(), F=float)
    return lambda: asked(cells)


def tree_cells(problem: Problem) -> Any:
    """A fresh tree over the histogram, its branching chosen by OpenDP for the number of cells."""
    size, space = int(problem["size"]), (dp.vector_domain(dp.atom_domain(T=dp.i32)), dp.l1_distance(T=dp.i32))
    branching = dp.t.choose_branching_factor(size_guess=size)
    tree = dp.t.make_b_ary_tree(*space, leaf_count=size, branching_factor=branching)
    noisy = tree >> dp.m.then_laplace(scale=tree.map(1) / float(problem["epsilon"]))
    counts = np.bincount(problem["values"], minlength=size).astype(np.int32)
    return np.array(dp.t.make_consistent_b_ary_tree(branching_factor=branching)(noisy(counts)))[:size]


def quantiles(problem: Problem) -> Answers:
    """Every quantile by itself among all cells, each for an equal share of epsilon."""
    candidates = np.arange(int(problem["size"]), dtype=np.float64)
    values, share = problem["values"].astype(np.float64), float(problem["epsilon"]) / problem["alphas"].size
    found = [quantile(values, alpha, candidates, share) for alpha in problem["alphas"].tolist()]
    return lambda: found


def median(problem: Problem) -> Answers:
    """The median among all cells, or among an even grid where there are too many."""
    size = int(problem["size"])
    found = median_of(problem, size if size <= MOST_CELLS else MOST_GRID)
    return lambda: [found]


def grid_median(problem: Problem) -> Answers:
    """The median among a coarse even grid, or all cells where they are fewer."""
    found = median_of(problem, min(int(problem["size"]), GRID))
    return lambda: [found]


def spread_median(problem: Problem) -> Answers:
    """As `median`, of rows that are spread within their cells, whose middles are the candidates.

    The score weighs rows strictly below against rows strictly above: that way a heap is not lost.
    """
    values = problem["values"] + np.random.default_rng().random(problem["values"].size)
    size = int(problem["size"])
    found = median_of({**problem, "values": values}, size if size <= MOST_CELLS else MOST_GRID, first=0.5)
    return lambda: [found]


def median_of(problem: Problem, candidates: int, first: float = 0.0) -> float:
    """One median; what is public is made ready once for all columns."""
    made = ready(int(problem["size"]), candidates, first, float(problem["epsilon"]))
    return float(made(problem["values"].astype(np.float64)))


@lru_cache(maxsize=2)
def ready(size: int, number: int, first: float, epsilon: float) -> Any:
    """The choice of a median among that many candidates, evenly from the first cell to the last."""
    candidates = np.linspace(first, first + size - 1, number).tolist()
    return chooser(candidates, 0.5, least_scale(0.5, epsilon))


def quantile(values: Any, alpha: float, candidates: Any, epsilon: float) -> float:
    """One quantile among candidates, with the least noise that epsilon allows, whatever the candidates."""
    return float(chooser(candidates.tolist(), alpha, least_scale(alpha, epsilon))(values))


def least_scale(alpha: float, epsilon: float) -> Any:
    return dp.binary_search_param(
        lambda scale: chooser([0.0, 1.0], alpha, scale), d_in=1, d_out=epsilon, T=float
    )


def chooser(candidates: list[float], alpha: float, scale: float) -> Any:
    """OpenDP's choice among candidates by their scores with noise."""
    return dp.m.make_private_quantile(
        dp.vector_domain(dp.atom_domain(T=float, nan=False)),
        dp.symmetric_distance(),
        dp.max_divergence(),
        candidates=candidates,
        alpha=alpha,
        scale=scale,
    )


def sums(problem: Problem) -> Answers:
    """The sum of each group below one cap, itself a private quantile of all values."""
    cap, rest = found_cap(problem)
    found = [clamped_sum(values, cap, rest) for values in groups(problem)]
    return lambda: with_total(found)


def declared_sums(problem: Problem) -> Answers:
    """The sum of each group within the declared bounds."""
    cap, epsilon = int(problem["largest"]), float(problem["epsilon"])
    found = [clamped_sum(values, cap, epsilon) for values in groups(problem)]
    return lambda: with_total(found)


def means(problem: Problem) -> Answers:
    """Sums as above over counts, half of what is left of epsilon for each."""
    cap, rest = found_cap(problem)
    found = [clamped_sum(v, cap, rest / 2) / max(count(v, rest / 2), 1) for v in groups(problem)]
    return lambda: found


def found_cap(problem: Problem) -> tuple[int, float]:
    """A cap for all groups, and the epsilon that is left."""
    top, epsilon = int(problem["largest"]).bit_length(), float(problem["epsilon"])
    candidates = np.sort(np.concatenate([2.0 ** np.arange(top + 1), 1.5 * 2.0 ** np.arange(1, top)]))
    share = CAP_SHARE * epsilon
    cap = quantile(problem["values"].astype(np.float64), CAP, candidates, share)
    return max(int(cap), 1), epsilon - share


def clamped_sum(values: Any, cap: int, epsilon: float) -> float:
    """The sum of values cut off at the cap, with exact integer noise."""
    space = dp.vector_domain(dp.atom_domain(T=dp.i64)), dp.symmetric_distance()
    total = dp.t.make_clamp(*space, bounds=(0, cap)) >> dp.t.then_sum()
    return float((total >> dp.m.then_laplace(scale=cap / epsilon))(values.astype(np.int64)))


def count(values: Any, epsilon: float) -> float:
    space = dp.vector_domain(dp.atom_domain(T=dp.i64)), dp.symmetric_distance()
    return float((dp.t.make_count(*space) >> dp.m.then_laplace(scale=1 / epsilon))(values.astype(np.int64)))


def noise(problem: Problem) -> Answers:
    """Exact integer noise, one call on a vector of zeros of the narrow type."""
    space = dp.vector_domain(dp.atom_domain(T=dp.i32)), dp.l1_distance(T=dp.i32)
    measurement = dp.m.make_laplace(*space, scale=float(problem["scale"]))
    found = measurement(np.zeros(int(problem["draws"]), dtype=np.int32))
    return lambda: found


METHODS = {
    "ranges": ranges,
    "tree-quantiles": tree_quantiles,
    "quantiles": quantiles,
    "median": median,
    "grid-median": grid_median,
    "spread-median": spread_median,
    "sums": sums,
    "declared-sums": declared_sums,
    "means": means,
    "noise": noise,
}

if __name__ == "__main__":
    serve(METHODS)
