"""The picture of the README: one release, and its answers with error bars."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any

import numpy as np
from matplotlib import rc_context, rcParams

from partita import Histogram, Intervals
from scripts.pictures.style import BLUE, FAINT, GREEN, INK, ORANGE, canvas, fixed_noise

_PEOPLE, _SIZE, _BIN = 5_000, 16_384, 400
"""5,000 monthly wages below 16,384, drawn in bins of 400."""
_GREY = "#7d7d8c"
"""Lighter than the ink of the other pictures: this one is also seen on the black of code hosts."""


def release() -> Any:
    """A histogram with 95% intervals, and the errors of ranges with intervals and guaranteed bounds."""
    people = _wages()
    released = Intervals(size=_SIZE, epsilon="1/2").release(people, noise=fixed_noise())
    before = np.concatenate([[0], np.cumsum(people.spread())])
    with rc_context({name: _GREY for name, color in rcParams.items() if color == INK}):
        figure, (bars, ranges) = canvas(columns=2, width=8.2, height=3.0)
        _histogram(bars, released, before)
        _ranges(ranges, released, before)
    return figure


def _histogram(axes: Any, released: Any, before: Any) -> None:
    """Counts of bins: the truth as an area, the answers as points with their 95% intervals."""
    edges = np.arange(800, 7_600 + 1, _BIN)
    axes.stairs(np.diff(before[edges]), edges, fill=True, color=FAINT, alpha=0.45, label="truth (secret)")
    bins = [released.count(int(low), int(low) + _BIN - 1) for low in edges[:-1]]
    _bars(axes, edges[:-1] + _BIN / 2, bins, color=BLUE, label="answer, 95% interval")
    axes.set(
        title="Histogram of one column", xlabel="monthly wage", ylabel="people in 400 units", ylim=(0, None)
    )
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.legend(loc="upper right")


def _ranges(axes: Any, released: Any, before: Any) -> None:
    """Ranges of growing length: what each answer is off, with its interval and its guaranteed bounds."""
    lows = np.linspace(2_400, 900, 12).astype(int)
    highs = lows + np.geomspace(100, 4_500, 12).astype(int)
    answers = [released.count(int(low), int(high)) for low, high in zip(lows, highs, strict=True)]
    truth = before[highs + 1] - before[lows]
    worst = np.array([answer.worst(0.05) for answer in answers]) - truth[:, None]
    places = np.arange(12)
    axes.axhline(0, color=ORANGE, linewidth=1, label="truth")
    axes.vlines(
        places, worst[:, 0], worst[:, 1], colors=GREEN, alpha=0.35, linewidth=6, label="guaranteed, 95%"
    )
    _bars(axes, places, answers, color=BLUE, label="answer, 95% interval", minus=truth)
    axes.set(title="Range counts from the same release", xlabel="truth of the range, in people")
    axes.set(ylabel="answer minus truth", xticks=places, ylim=(None, worst.max() * 1.75))
    axes.set_xticklabels([f"{count:,}" for count in truth], rotation=45)
    axes.legend(loc="upper left", ncols=2, columnspacing=1)


def _bars(axes: Any, places: Any, answers: Any, *, color: str, label: str, minus: Any = 0) -> None:
    values = np.array([answer.value for answer in answers])
    ends = np.array([answer.interval(0.95) for answer in answers])
    lengths = np.abs(ends.T - values)
    look = {"fmt": "o", "markersize": 3, "elinewidth": 1.3, "capsize": 2}
    axes.errorbar(places, values - minus, yerr=lengths, color=color, label=label, **look)


def _wages() -> Histogram:
    """Log-normal wages, evenly drawn: no randomness is needed to look like people."""
    ranks = (np.arange(1, _PEOPLE + 1) * 0.6180339887498949) % 1.0
    values = np.exp([NormalDist(7.85, 0.42).inv_cdf(float(rank)) for rank in ranks])
    return Histogram.from_cells(np.clip(values, 0, _SIZE - 1).astype(np.uint64), size=_SIZE)
