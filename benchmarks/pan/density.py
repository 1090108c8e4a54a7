"""Row `density`: the fraction of a universe that came, beside the book's way with its bias corrected."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt

import numpy as np

from benchmarks.accuracy.score import Json, short
from partita.pan.coin import joint_coin
from partita.pan.density import Density

TARGET = 0.55
"""What ours may have of the root mean square error of the book's, at equal total epsilon."""

EPSILONS = ("0.5", "1", "2")
PRESENT = 10
"""One in so many came."""

WAYS = ("default", "book", "book, our accounting")
"""The book says nothing about shares: half of epsilon for the state and for the output, which add up.

The last way gives it our share for the output, and our exact joint loss, as well.
"""


def density(*, trials: int, quick: bool) -> Iterator[Json]:
    """Root mean square errors of both variants: predicted, and over fresh runs."""
    for size in (100, 1000) if quick else (10_000, 1_000_000):
        for epsilon in EPSILONS:
            errors = {way: _rmse(size, epsilon, trials, way) for way in WAYS}
            for way in WAYS:
                ratio = errors["default"] / errors[way]
                target = TARGET if way == "book" else None
                yield {
                    "row": "density",
                    "way": way,
                    "universe": size,
                    "epsilon": epsilon,
                    "RMSE": short(errors[way]),
                    "predicted": short(_made(size, epsilon, way).expected_error()),
                    "ours / it": short(ratio),
                    "target": target,
                    "met": None if target is None or quick else ratio <= target,
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
