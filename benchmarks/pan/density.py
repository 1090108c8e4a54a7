"""Row `density`: the fraction of a universe that came, beside the book's way with its bias corrected."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt

import numpy as np

from benchmarks.accuracy.score import Json, short
from partita.pan.bits import Density
from partita.pan.sketch import joint_coin

TARGET = 0.55
"""What ours may have of the root mean square error of the book's, at equal total epsilon."""

EPSILONS = ("0.5", "1", "2")
PRESENT = 10
"""One in so many came."""

WAYS = ("default", "book", "book, our accounting")
"""The book says nothing about shares: half of epsilon for the state and half for the output, added up.

The last way gives it our share for the output, and our exact joint loss, as well: what is left of the
ratio is what the biased start alone saves.
"""


def density(*, trials: int, quick: bool) -> Iterator[Json]:
    """Root mean square errors over fresh runs, and their ratios: measured, and predicted beforehand."""
    for size in (100, 1000) if quick else (10_000, 1_000_000):
        for epsilon in EPSILONS:
            errors = {way: _rmse(size, epsilon, trials, way) for way in WAYS}
            said = {way: _made(size, epsilon, way).expected_error() for way in WAYS}
            ours, book, accounted = (errors[way] for way in WAYS)
            yield {
                "row": "density",
                "universe": size,
                "epsilon": epsilon,
                "ours": short(ours),
                "book": short(book),
                "ours / book": short(ours / book),
                "predicted": short(said[WAYS[0]] / said[WAYS[1]]),
                "target": TARGET,
                "met": None if quick else ours / book <= TARGET,
                "book, our accounting": short(accounted),
                "ours / that": short(ours / accounted),
                "predicted for that": short(said[WAYS[0]] / said[WAYS[2]]),
            }


def _made(size: int, epsilon: str, way: str) -> Density:
    ours = Density(universe=size, epsilon=epsilon)
    if way == "default":
        return ours
    if way == "book":
        return Density(universe=size, epsilon=epsilon, variant="book")
    book = Density(universe=size, epsilon=epsilon, variant="book", output_share=ours.output / ours.epsilon)
    book._coin = joint_coin(ours.epsilon, ours.output, "book")
    book._fill()
    return book


def _rmse(size: int, epsilon: str, trials: int, way: str) -> float:
    """Over fresh sketches of the same stream."""
    came = np.arange(0, size, PRESENT)
    squares = []
    for _ in range(trials):
        sketch = _made(size, epsilon, way)
        sketch.update_many(came)
        squares.append((sketch.release("density").value - came.size / size) ** 2)
    return sqrt(float(np.mean(squares)))
