"""Google's differential privacy library by its Python wrapper: the quantile tree, bounded sums and means."""

from __future__ import annotations

from typing import Any

from pydp.algorithms.laplacian import BoundedMean, BoundedSum
from pydp.algorithms.numerical_mechanisms import LaplaceMechanism
from pydp.algorithms.quantile_tree import QuantileTree

from benchmarks.peers.worker import Answers, Problem, groups, serve, with_total

HEIGHT, BRANCHING = 4, 16
"""The defaults of Google's library and of PipelineDP."""


def quantiles(problem: Problem) -> Answers:
    """All quantiles of one tree of noisy counts, with a leaf for each cell.

    Between 0 and size - 1 the tree puts cell v into leaf v, but tells its leaves as slightly narrower than
    a cell: answers are stretched to whole cells.
    """
    top = int(problem["size"]) - 1
    tree = QuantileTree(0.0, float(top), HEIGHT, BRANCHING)
    for value in problem["values"].astype(float).tolist():
        tree.add_entry(value)
    asked = float(problem["epsilon"]), 0.0, 1, 1, problem["alphas"].tolist(), "laplace"
    return lambda: [(top + 1) / top * answer for answer in tree.compute_quantiles(*asked)]


def sums(problem: Problem) -> Answers:
    """The sum of each group; the library finds bounds itself, for half of epsilon."""
    found = [bounded(BoundedSum, values, problem) for values in groups(problem)]
    return lambda: with_total(found)


def means(problem: Problem) -> Answers:
    """The mean of each group; the library finds bounds itself, for half of epsilon."""
    found = [bounded(BoundedMean, values, problem) for values in groups(problem)]
    return lambda: found


def bounded(algorithm: Any, values: Any, problem: Problem) -> float:
    """One figure without bounds from us; nothing for a group in which the library finds no bounds."""
    made = algorithm(epsilon=float(problem["epsilon"]), dtype="float")
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


METHODS = {"quantiles": quantiles, "sums": sums, "means": means, "noise": noise}

if __name__ == "__main__":
    serve(METHODS)
