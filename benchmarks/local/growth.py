"""Row `growth`: how the error of a count grows with the number of people, central against local."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.accuracy.score import Json, short
from benchmarks.local.accuracy import SIZE, zipf
from partita import HistogramCounts
from partita.local import Frequency
from partita.trusted.secret import Histogram

EPSILON = 1
RUNS = 8
SLOPES = {"central": 0.0, "local": 0.5}
CLOSE = 0.03
"""How near to its slope each line should be."""


def growth(quick: bool, picture: str | None) -> Iterator[Json]:
    """The root mean squared error of the count of a cell at epsilon 1, and the slopes in a log-log plot."""
    people = [1_000, 4_000] if quick else [1_000 * 4**step for step in range(7)]
    errors = {name: [rmse(name, n) for n in people] for name in SLOPES}
    for name, found in errors.items():
        slope = float(np.polyfit(np.log(people), np.log(found), 1)[0])
        yield {
            "row": "growth",
            "model": name,
            "n": f"{people[0]} to {people[-1]}",
            "first": short(found[0]),
            "last": short(found[-1]),
            "slope": short(slope),
            "expected": SLOPES[name],
            "met": None if quick else abs(slope - SLOPES[name]) <= CLOSE,
        }
    if picture is not None:
        draw(people, errors, picture)


def rmse(model: str, people: int) -> float:
    """Over all cells and several runs."""
    cells = zipf(people)
    truth = np.bincount(cells, minlength=SIZE)
    runs = [((counts(model, cells, truth) - truth) ** 2).mean() for _ in range(RUNS)]
    return float(np.mean(runs) ** 0.5)


def counts(model: str, cells: Any, truth: Any) -> Any:
    """The counts of all cells as a curator publishes them, or as people report them."""
    if model == "central":
        mechanism = HistogramCounts(size=SIZE, epsilon=EPSILON)
        released = mechanism.release(Histogram.dense(truth.tolist()))
        every = np.arange(SIZE, dtype=np.uint64)
        return np.asarray(released.counts(every, every))
    question = Frequency(SIZE, epsilon=EPSILON)
    aggregator = question.aggregator()
    aggregator.add_many(question.randomize_many(cells))
    return aggregator.estimate().counts


def draw(people: list[int], errors: dict[str, list[float]], path: str) -> None:
    """Both lines, with the slopes that theory expects beside them."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6.4, 4.2), layout="constrained")
    for name, colour in (("local", "#b2432f"), ("central", "#1f5a8a")):
        found = errors[name]
        slope = SLOPES[name]
        expected = [found[0] * (n / people[0]) ** slope for n in people]
        axes.plot(people, found, "o-", color=colour, label=f"{name}, epsilon {EPSILON}")
        axes.plot(people, expected, ":", color=colour, label=f"slope {slope:g}")
    axes.set(xscale="log", yscale="log", xlabel="people", ylabel="RMSE of the count of a cell")
    axes.set_title(f"Counts of {SIZE:,} cells: the curator's error stays, the local one grows", fontsize=10)
    axes.legend(frameon=False)
    axes.grid(alpha=0.25, which="major")
    figure.savefig(Path(path), dpi=160)
