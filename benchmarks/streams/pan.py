"""Row `pan`: the price of pan-privacy, and what our variant saves of it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import sqrt

from benchmarks.accuracy.score import Json, short
from benchmarks.streams.measure import Effort, counter_mse, nothing, simulated, stepped
from partita.trusted.streams.pan_private import PanPrivateCounter

TARGET = 0.86
"""What the default may have of the root mean square error of Figure 12.2, over 2^10 periods."""


def pan(effort: Effort) -> Iterator[Json]:
    """Root mean square errors of both variants, beside that of a counter that is not pan-private."""
    for horizon in effort.periods(10):
        make = partial(PanPrivateCounter, epsilon=1, horizon=horizon)
        errors = {"book": sqrt(stepped(partial(make, variant="book"), horizon))}
        errors["default"] = sqrt(stepped(make, horizon))
        for variant, error in errors.items():
            found = simulated(partial(make, variant=variant), nothing(horizon), effort.trials)
            ratio, wanted = error / errors["book"], TARGET if variant == "default" else None
            yield {
                "row": "pan",
                "variant": variant,
                "periods": horizon,
                "RMSE": short(error),
                "simulated": short(sqrt(found.mse)),
                "ratio": short(ratio),
                "of_Counter": short(error / sqrt(counter_mse(horizon))),
                "target": wanted,
                "met": effort.verdict(ratio, wanted),
            }
