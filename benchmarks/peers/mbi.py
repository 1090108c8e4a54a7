"""mbi (private-pgm): both axes and a coarse grid measured with noise, and one model that agrees with them."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from mbi import Domain, LinearMeasurement, estimation

from benchmarks.peers.worker import Answers, Problem, boxes, serve

jax.config.update("jax_enable_x64", True)

COARSE = 32
"""Tiles of the grid along each axis."""
STEPS = 2_000


def flat(problem: Problem) -> Answers:
    """A third of epsilon for each axis and for the grid; what the library draws from noise is its model."""
    width, height = problem["shape"].tolist()
    counts = np.zeros((width, height))
    np.add.at(counts, tuple(problem["points"].T), 1.0)
    scale = 3 / float(problem["epsilon"])
    measurements = [
        measured(counts.sum(axis=1), ("x",), scale),
        measured(counts.sum(axis=0), ("y",), scale),
        measured(tiles(counts).ravel(), ("x", "y"), scale, query=lambda table: tiles(table.values).ravel()),
    ]
    domain = Domain(["x", "y"], [width, height])
    model = estimation.MirrorDescent().estimate(domain, measurements, iters=STEPS)
    cells = np.asarray(model.project(("x", "y")).datavector()).reshape(width, height)
    return lambda: boxes(cells, problem["lows"], problem["highs"])


def measured(truth: Any, columns: tuple[str, ...], scale: float, **query: Any) -> LinearMeasurement:
    """Counts with Laplace noise from NumPy, as the library's own examples draw it."""
    noisy = truth + np.random.default_rng().laplace(0, scale, truth.size)
    return LinearMeasurement(noisy, columns, stddev=2**0.5 * scale, **query)


def tiles(table: Any) -> Any:
    """Sums over tiles of equal size."""
    width, height = table.shape
    return table.reshape(COARSE, width // COARSE, COARSE, height // COARSE).sum(axis=(1, 3))


METHODS = {"boxes": flat}

if __name__ == "__main__":
    serve(METHODS)
