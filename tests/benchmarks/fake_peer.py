"""A worker of a library that does not exist: right but for a constant, broken, or silent."""

import numpy as np

from benchmarks.peers.worker import Answers, Problem, between, serve

OFF_BY = 3.0


def constant(problem: Problem) -> Answers:
    """The true counts and three rows more."""
    cells = np.bincount(problem["values"], minlength=int(problem["size"]))
    return lambda: between(cells, problem["lows"], problem["highs"]) + OFF_BY


def broken(problem: Problem) -> Answers:
    raise ValueError("the library refuses")


def silent(problem: Problem) -> Answers:
    return lambda: np.full(len(problem["lows"]), np.nan)


if __name__ == "__main__":
    serve({"constant": constant, "broken": broken, "silent": silent})
