"""The local model: frequencies and ranges from reports that were randomized on devices."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.local.accuracy import SIZE, zipf
from benchmarks.local.haar import haar_shares
from benchmarks.local.ranges import humps
from benchmarks.peers.worker import Answers, Problem, between
from benchmarks.report.data import sorted_pairs
from benchmarks.report.model import Contestant, Effort, Question, Setting, mean_miss
from partita.local import Frequency, Range

PEOPLE, ASKED = 50_000, 2_000
EPSILONS = ("1", "2")


def frequency_settings(effort: Effort) -> Iterator[Setting]:
    """How many hold each of 1,024 values, common and rare ones."""
    cells = zipf(effort.rows(PEOPLE))
    for epsilon in EPSILONS:
        truth = {"truth": np.bincount(cells, minlength=SIZE)}
        yield setting("Zipf", cells, epsilon, truth, effort)


def range_settings(effort: Effort) -> Iterator[Setting]:
    """How many are in a range of 1,024 cells."""
    cells = humps(effort.rows(PEOPLE), np.random.default_rng(3))
    lows, highs = sorted_pairs(np.random.default_rng(11), SIZE, ASKED)
    truth = between(np.bincount(cells, minlength=SIZE), lows, highs)
    for epsilon in EPSILONS:
        yield setting("two humps", cells, epsilon, {"lows": lows, "highs": highs, "truth": truth}, effort)


def setting(name: str, cells: Any, epsilon: str, asked: dict[str, Any], effort: Effort) -> Setting:
    problem = {"values": cells, "size": SIZE, "epsilon": float(epsilon), "releases": effort.releases, **asked}
    return Setting(data=name, epsilon=epsilon, problem=problem)


def frequencies(problem: Problem, *, kind: Any) -> Answers:
    """Everybody's report, then the estimates of all cells."""
    question = Frequency(int(problem["size"]), epsilon=str(problem["epsilon"]), kind=kind)
    aggregator = question.aggregator()
    aggregator.add_many(question.randomize_many(problem["values"]))
    return lambda: aggregator.estimate().values * len(problem["values"])


def ranges(problem: Problem) -> Answers:
    """`Range` with its defaults."""
    question = Range(int(problem["size"]), epsilon=str(problem["epsilon"]))
    aggregator = question.aggregator()
    aggregator.add_many(question.randomize_many(problem["values"]))
    return lambda: asked(aggregator.estimate().values, problem)


def haar(problem: Problem) -> Answers:
    """HaarHRR, with NumPy's randomness."""
    rng = np.random.default_rng()
    shares = haar_shares(problem["values"], int(problem["size"]), float(problem["epsilon"]), rng)
    return lambda: asked(shares, problem)


def asked(shares: Any, problem: Problem) -> Any:
    return between(shares, problem["lows"], problem["highs"]) * len(problem["values"])


FREQUENCIES = Question(
    name="frequencies",
    title="Local frequencies",
    about="50,000 people, each with one of 1,024 values; the estimated number of people with each value.",
    unit="people, mean over values",
    settings=frequency_settings,
    contestants=[
        Contestant(
            name="Partita",
            kind="ours",
            method=partial(frequencies, kind="auto"),
            settings="`Frequency`, defaults (projective geometry response)",
        ),
    ],
    miss=mean_miss,
)
LOCAL_RANGES = Question(
    name="local-ranges",
    title="Local ranges",
    about="50,000 people along 1,024 cells; the estimated number of people in each of 2,000 ranges.",
    unit="people, mean over ranges",
    settings=range_settings,
    contestants=[
        Contestant(name="Partita", kind="ours", method=ranges, settings="`Range`, defaults"),
        Contestant(
            name="HaarHRR",
            kind="paper",
            method=haar,
            settings="a Haar coefficient of a random level each [CKS19]",
        ),
    ],
    miss=mean_miss,
)
