"""Google's differential privacy library by its Python wrapper: the quantile tree, bounded sums and means."""

from __future__ import annotations

from typing import Any

from pydp.algorithms.laplacian import BoundedMean, BoundedSum, Median
from pydp.algorithms.numerical_mechanisms import LaplaceMechanism
from pydp.algorithms.quantile_tree import QuantileTree

from benchmarks.peers.worker import Answers, Problem, groups, serve, with_total

HEIGHT, BRANCHING = 4, 16
"""The defaults of Google's library and of PipelineDP."""


def quantiles(problem: Problem) -> Answers:
    """All quantiles of one tree of noisy counts; rows are in the middle of their cells.

    Of 2^16 cells each has a leaf of its own.
    """
    tree = QuantileTree(0.0, float(problem["size"]), HEIGHT, BRANCHING)
    for value in (problem["values"] + 0.5).tolist():
        tree.add_entry(value)
    asked = float(problem["epsilon"]), 0.0, 1, 1, problem["alphas"].tolist(), "laplace"
    return lambda: tree.compute_quantiles(*asked)


def median(problem: Problem) -> Answers:
    """The median by the library's search for an order statistic."""
    bounds = {"lower_bound": 0, "upper_bound": int(problem["size"]) - 1}
    made = Median(epsilon=float(problem["epsilon"]), dtype="int", **bounds)
    found = float(made.quick_result(problem["values"].tolist()))
    return lambda: [found]


def sums(problem: Problem) -> Answers:
    """The sum of each group; the library finds bounds itself, for half of epsilon."""
    found = [bounded(BoundedSum, values, problem) for values in groups(problem)]
    return lambda: with_total(found)


def means(problem: Problem) -> Answers:
    """The mean of each group; the library finds bounds itself, for half of epsilon."""
    found = [bounded(BoundedMean, values, problem) for values in groups(problem)]
    return lambda: found


def declared_sums(problem: Problem) -> Answers:
    """The sum of each group within the declared bounds, for all of epsilon."""
    found = [bounded(BoundedSum, values, problem, **declared(problem)) for values in groups(problem)]
    return lambda: with_total(found)


def declared_means(problem: Problem) -> Answers:
    """The mean of each group within the declared bounds, for all of epsilon."""
    found = [bounded(BoundedMean, values, problem, **declared(problem)) for values in groups(problem)]
    return lambda: found


def declared(problem: Problem) -> dict[str, float]:
    return {"lower_bound": 0.0, "upper_bound": float(problem["largest"])}


def bounded(algorithm: Any, values: Any, problem: Problem, **bounds: float) -> float:
    """One figure; nothing for a group in which the library finds no bounds, where it is not told any."""
    made = algorithm(epsilon=float(problem["epsilon"]), dtype="float", **bounds)
    try:
        return float(made.quick_result(values.astype(float).tolist()))
    except RuntimeError as refusal:
        if "approximate bounds" not in str(refusal):
            raise
        return 0.0


def noise(problem: Problem) -> Answers:
    """Secure Laplace noise, one call for each number, as the class offers it."""
    mechanism = LaplaceMechanism(1 / float(problem["scale"]), sensitivity=1.0)
    found = [mechanism.add_noise(0.0) for _ in range(int(problem["draws"]))]
    return lambda: found


METHODS = {
    "quantiles": quantiles,
    "median": median,
    "sums": sums,
    "declared-sums": declared_sums,
    "means": means,
    "declared-means": declared_means,
    "noise": noise,
}

if __name__ == "__main__":
    serve(METHODS)
