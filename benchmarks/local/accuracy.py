"""Row `mse`: n times the mean squared error of projective geometry response, over 4e^eps/(e^eps-1)^2."""

from __future__ import annotations

from collections.abc import Iterator
from math import exp, sqrt
from statistics import mean, stdev
from typing import Any

import numpy as np

from benchmarks.accuracy.score import Json, short
from partita.local import Frequency

SIZE = 1024
PEOPLE = 100_000
RUNS = 20
TARGET = 1.05


def mse(quick: bool) -> Iterator[Json]:
    """Zipf frequencies over 1,024 cells; `predicted` is the exact variance by its formula."""
    people = 2_000 if quick else PEOPLE
    cells = zipf(people)
    truth = np.bincount(cells, minlength=SIZE) / people
    for epsilon in ("0.5", "1", "2"):
        question = Frequency(SIZE, epsilon=epsilon, kind="projective")
        odds = exp(question.epsilon)
        best = 4 * odds / (odds - 1) ** 2
        ratios = [people * error(question, cells, truth) / best for _ in range(RUNS)]
        yield {
            "row": "mse",
            "epsilon": epsilon,
            "cells": SIZE,
            "n": people,
            "runs": RUNS,
            "ratio": short(mean(ratios)),
            "standard_error": short(stdev(ratios) / sqrt(RUNS)),
            "predicted": short(question.randomizer.variance(1 / SIZE) / best),
            "target": TARGET,
            "met": None if quick else mean(ratios) <= TARGET,
        }


def error(question: Frequency, cells: Any, truth: Any) -> float:
    """The mean squared error of one collection over all cells."""
    aggregator = question.aggregator()
    aggregator.add_many(question.randomize_many(cells))
    return float(((aggregator.estimate().values - truth) ** 2).mean())


def zipf(people: int) -> Any:
    """Cells with frequencies in proportion to 1, 1/2, 1/3, ...; the same ones in every run."""
    shares = 1 / np.arange(1, SIZE + 1)
    ends = np.cumsum(shares / shares.sum())
    return np.searchsorted(ends, (np.arange(people) + 0.5) / people)
