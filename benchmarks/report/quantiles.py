"""Quantiles of one column: nine deciles at once, and the median alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np

import partita as pt
from benchmarks.peers.worker import Answers, Problem
from benchmarks.report.data import COLUMNS, SIZE
from benchmarks.report.model import Contestant, Effort, Question, Setting
from benchmarks.report.ranges import EPSILONS, ROWS, published

DECILES = np.arange(1, 10) / 10
MEDIAN = np.array([0.5])


def settings(effort: Effort, *, alphas: Any) -> Iterator[Setting]:
    for (name, draw), epsilon in product(COLUMNS.items(), EPSILONS):
        problem = {
            "values": draw(effort.rows(ROWS), np.random.default_rng(7)),
            "size": SIZE,
            "epsilon": float(epsilon),
            "alphas": alphas,
            "releases": effort.releases,
        }
        yield Setting(data=name, epsilon=epsilon, problem=problem)


def rank_miss(problem: Problem, answers: Any) -> float:
    """How many rows too far an answer is, mean over the quantiles; nothing where heaps leave a choice.

    Values are whole, so an answer stands for the cell that it lies in.
    """
    rows, answers = np.sort(problem["values"]), np.floor(answers)
    wanted = problem["alphas"] * rows.size
    below, upto = (np.searchsorted(rows, answers, side=side) for side in ("left", "right"))
    return float(np.maximum(np.maximum(below - wanted, wanted - upto), 0).mean())


def partita(problem: Problem) -> Answers:
    """`publish` of a column, and `quantile` of the release."""
    release = published(problem)
    alphas = problem["alphas"].tolist()
    return lambda: [float(release.quantile("v", alpha).value) for alpha in alphas]


def wanted(problem: Problem) -> Answers:
    """`publish` of just these quantiles."""
    schema, alphas = {"v": pt.Integer(0, int(problem["size"]) - 1)}, problem["alphas"].tolist()
    wants = [pt.quantile("v", str(alpha)) for alpha in alphas]
    release = pt.publish({"v": problem["values"]}, schema, epsilon=str(problem["epsilon"]), wants=wants)
    return lambda: [float(release.quantile("v", alpha).value) for alpha in alphas]


JUST_THESE = Contestant(
    name="Partita, just these", kind="ours", method=wanted, settings="`publish` with `wants` of the quantiles"
)
ALL_RANGES = Contestant(name="Partita", kind="ours", method=partita, settings="`publish`, defaults")


def question(name: str, title: str, about: str, alphas: Any, contestants: list[Contestant]) -> Question:
    return Question(
        name=name,
        title=title,
        about=about,
        unit="rows between the answer and the quantile",
        settings=partial(settings, alphas=alphas),
        contestants=contestants,
        miss=rank_miss,
    )


DECILES_QUESTION = question(
    "deciles",
    "Nine deciles",
    "The same columns; the nine deciles together for all of epsilon. Our release answers every range as "
    "well; beside it is one of just the deciles.",
    DECILES,
    [ALL_RANGES, JUST_THESE],
)
MEDIAN_QUESTION = question(
    "median",
    "The median alone",
    "The same columns; only the median is asked, for all of epsilon, and our release answers nothing else. "
    "Beside it is one that answers every range.",
    MEDIAN,
    [replace(JUST_THESE, name="Partita"), replace(ALL_RANGES, name="Partita, all ranges")],
)
