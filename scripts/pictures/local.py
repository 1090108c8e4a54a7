"""Pictures of the local model: reports, and what can be made of them."""

from __future__ import annotations

from functools import partial
from math import exp
from statistics import NormalDist
from typing import Any

import numpy as np

from partita.local import BudgetMemory, Frequency, LROracle, Mean, Range, Rectangles, SQOracle, parity_signal
from partita.local.question import FrequencyKind, MeanKind
from partita.testing import EndlessTape
from scripts.pictures.style import BLUE, FAINT, GREEN, INK, ORANGE, canvas

_PEOPLE = 50_000


def local_frequency() -> Any:
    """Estimated frequencies with their intervals; and the variance of each kind by the number of cells."""
    figure, (left, right) = canvas(columns=2)
    cells = np.minimum(np.floor(np.log1p(-_evenly()) / np.log(0.8)), 15).astype(int)
    estimate = _collected(Frequency(16, epsilon=1), cells)
    left.bar(range(16), np.bincount(cells, minlength=16) / _PEOPLE, color=FAINT, alpha=0.5, label="secret")
    left.errorbar(
        range(16), estimate.values, 2 * estimate.error, fmt="o", ms=3, color=BLUE, label="estimated"
    )
    left.set(xlabel="cell", ylabel="frequency", xticks=range(0, 16, 3))
    left.legend()
    sizes, best = [4, 8, 16, 32, 64, 128, 256], 4 * exp(1) / (exp(1) - 1) ** 2
    kinds: dict[FrequencyKind, str] = {"response": ORANGE, "hadamard": GREEN, "projective": BLUE}
    for kind, colour in kinds.items():
        laws = [Frequency(size, epsilon=1, kind=kind).randomizer for size in sizes]
        right.plot(sizes, [law.variance(1 / law.size) for law in laws], "o-", ms=3, color=colour, label=kind)
    right.axhline(best, color=INK, lw=0.8, ls="--")
    right.set(
        xscale="log", yscale="log", xlabel="cells (dashes: 4e/(e-1)²)", ylabel="n × variance, epsilon 1"
    )
    right.legend()
    return figure


def local_mean() -> Any:
    """The standard error of one report by epsilon, at worst: the better kind is taken."""
    figure, axes = canvas()
    epsilons = [0.25, 0.5, 0.75, 1, 1.5, 2, 2.5, 3, 4]
    kinds: dict[MeanKind, str] = {"one-bit": ORANGE, "piecewise": BLUE}
    for kind, colour in kinds.items():
        laws = [Mean(0, 1, epsilon=str(epsilon), kind=kind).randomizer for epsilon in epsilons]
        axes.plot(epsilons, [law.largest_variance**0.5 for law in laws], "o-", ms=3, color=colour, label=kind)
    bound = [exp(epsilon / 2) / (exp(epsilon) - 1) for epsilon in epsilons]
    axes.plot(epsilons, bound, color=INK, lw=0.8, ls="--", label="nobody below")
    axes.set(yscale="log", xlabel="epsilon", ylabel="√n × standard error, at worst")
    axes.legend()
    return figure


def local_ranges() -> Any:
    """Shares of all cells, summed up from the left: by least squares, and moved to a distribution."""
    figure, axes = canvas()
    cells = _humps(256)
    estimate = _collected(Range(256, epsilon=1), cells)
    truth = np.cumsum(np.bincount(cells, minlength=256)) / _PEOPLE
    axes.plot(truth, color=FAINT, lw=4, alpha=0.6, label="secret")
    axes.plot(np.cumsum(estimate.unbiased), color=ORANGE, lw=1, label="least squares")
    axes.plot(np.cumsum(estimate.values), color=BLUE, lw=1, label="from the top down")
    axes.set(xlabel="cell", ylabel="share up to here")
    axes.legend()
    return figure


def local_rectangles() -> Any:
    """Two columns of sixteen cells: how people are spread, and what their reports say."""
    figure, axes = canvas(columns=2, width=5.0)
    x = np.clip(6 + 2.5 * _bell(_evenly()), 0, 15).astype(int)
    y = np.clip(x + 2 + 2 * _bell(_unevenly()), 0, 15).astype(int)
    estimate = _collected(Rectangles({"x": 16, "y": 16}, epsilon=2), {"x": x, "y": y})
    truth = np.histogram2d(x, y, bins=16, range=[[0, 16], [0, 16]])[0] / _PEOPLE
    found = [[estimate.frequency({"x": (i, i), "y": (j, j)}).value for j in range(16)] for i in range(16)]
    for place, table, title in zip(axes, (truth, found), ("secret", "estimated"), strict=True):
        place.imshow(np.transpose(table), origin="lower", cmap="Blues", vmin=0, vmax=truth.max())
        place.set(title=title, xlabel="x", ylabel="y")
    return figure


def local_oracles() -> Any:
    """Answers of the SQ oracle within their tolerance; and what a query tells about a parity."""
    figure, (left, right) = canvas(columns=2)
    rows = (10 * _unevenly()).astype(int)
    oracle = SQOracle(LROracle(rows, BudgetMemory(people=_PEOPLE, cap=1)), epsilon=1)
    for end in range(1, 10):
        answer = oracle.ask(partial(np.greater, end), tau=0.06, columnwise=True, words=EndlessTape(end))
        left.errorbar(end, answer.value, answer.tau, fmt="o", ms=3, color=BLUE)
        left.plot(end, (rows < end).mean(), "_", ms=10, color=ORANGE)
    left.set(xlabel="query: is the value below ...?", ylabel="answer ± tolerance")
    query = _unevenly()[:512].reshape(256, 2)
    right.plot(np.sort(np.abs(parity_signal(query)))[::-1], ".", ms=3, color=BLUE)
    right.axhline(0.06, color=ORANGE, lw=1)
    right.text(250, 0.062, "tolerance", color=ORANGE, ha="right")
    right.set(
        xlabel="parities of 8 bits, 256 of them", ylabel="what the answer shows of each", ylim=(0, 0.08)
    )
    return figure


def _collected(question: Any, values: Any) -> Any:
    aggregator = question.aggregator()
    aggregator.add_many(question.randomize_many(values, words=EndlessTape(1)))
    return aggregator.estimate()


def _humps(size: int) -> Any:
    """Two humps of people on a line."""
    centres = np.where(np.arange(_PEOPLE) % 2, 0.35, 0.7) * size
    return np.clip(centres + size / 14 * _bell(_unevenly()), 0, size - 1).astype(int)


def _evenly() -> Any:
    """Numbers between 0 and 1, one for each person, in order."""
    return (np.arange(_PEOPLE) + 0.5) / _PEOPLE


def _unevenly() -> Any:
    """Numbers between 0 and 1, one for each person, without a pattern; the same ones every time."""
    return EndlessTape(2).take(_PEOPLE) / 2.0**64


def _bell(shares: Any) -> Any:
    """The quantiles of the normal law."""
    return np.array([NormalDist().inv_cdf(min(max(share, 1e-9), 1 - 1e-9)) for share in shares.tolist()])
