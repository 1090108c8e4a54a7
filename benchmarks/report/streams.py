"""Running counts: an output for every period."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.peers.worker import Answers, Problem
from benchmarks.report.model import Contestant, Effort, Question, Setting
from benchmarks.streams.peers import published
from partita.trusted.streams.counter import Counter

HORIZONS = (2**10, 2**16)


def settings(effort: Effort) -> Iterator[Setting]:
    """Nothing happens in these streams: the errors of these counters do not depend on what does."""
    for horizon in HORIZONS:
        problem = {"horizon": horizon, "epsilon": 1.0, "releases": effort.some(50)}
        yield Setting(data=f"{horizon:,} periods", epsilon="1", problem=problem)


def partita(problem: Problem, *, told: bool) -> Answers:
    """`Counter`, told its horizon or not."""
    horizon = int(problem["horizon"])
    counter = Counter(epsilon=1, horizon=horizon if told else None)
    return lambda: counter.update_many(np.zeros(horizon, dtype=np.int64))


def paper(problem: Problem, *, name: str) -> Answers:
    """A published counter, with float noise."""
    peer, horizon, rng = (
        published(int(problem["horizon"]))[name],
        int(problem["horizon"]),
        np.random.default_rng(),
    )
    return lambda: peer.errors(horizon, lambda size: rng.laplace(size=size))


def miss(problem: Problem, answers: Any) -> float:
    """The mean distance of all outputs from zero."""
    return float(np.abs(answers).mean())


PAPERS = {
    "binary": ("Binary tree", "one noisy node for each bit, root dropped [DR14]"),
    "Honaker": ("Honaker", "the binary tree, nodes averaged with those below them [Hon15]"),
    "subtraction": ("k-ary subtraction", "the best base for the horizon in hindsight [APT24]"),
}

COUNTERS = Question(
    name="counters",
    title="Continual counters",
    about="A running count that is published in every period, at epsilon 1. Published counters know the "
    "horizon.",
    unit="events, mean over periods",
    settings=settings,
    contestants=[
        Contestant(
            name="Partita",
            kind="ours",
            method=partial(partita, told=True),
            settings="`Counter`, horizon known",
        ),
        Contestant(
            name="Partita, open end",
            kind="ours",
            method=partial(partita, told=False),
            settings="`Counter`, horizon not known",
        ),
        *(
            Contestant(name=title, kind="paper", method=partial(paper, name=name), settings=says)
            for name, (title, says) in PAPERS.items()
        ),
    ],
    miss=miss,
)
