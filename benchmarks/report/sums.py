"""Sums and means of a column whose declared bound says nothing about its values."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

import partita as pt
from benchmarks.accuracy.sums_sets import LARGEST, SETS
from benchmarks.accuracy.work import NoData
from benchmarks.peers.worker import Answers, Problem
from benchmarks.report.model import Contestant, Effort, Question, Setting, mean_miss
from benchmarks.report.ranges import EPSILONS
from partita.domain.axis import Axis
from partita.public.boxes.base import BoxTerm
from partita.public.sums.level_trees import LevelTreesRelease
from partita.trusted.mechanisms.sums import LevelTrees

ROWS, GROUPS = 100_000, 8
EACH = [BoxTerm((group,), (group,)) for group in range(GROUPS)]
MADE, REAL = ("lognormal", "uniform", "incomes", "exponential"), ("wages", "diamonds")


def sum_settings(effort: Effort) -> Iterator[Setting]:
    """The sum of each group, and of all."""
    for name, keys, values, epsilon in tables(effort):
        sums = np.bincount(keys, values, GROUPS)
        yield setting(name, keys, values, epsilon, np.append(sums, sums.sum()), effort)


def mean_settings(effort: Effort) -> Iterator[Setting]:
    """The mean of each group."""
    for name, keys, values, epsilon in tables(effort):
        truth = np.bincount(keys, values, GROUPS) / np.maximum(np.bincount(keys, minlength=GROUPS), 1)
        yield setting(name, keys, values, epsilon, truth, effort)


def tables(effort: Effort) -> Iterator[tuple[str, Any, Any, str]]:
    """Names, groups, values and epsilons; real tables where PARTITA_DATA names them."""
    for name, epsilon in product(MADE if effort.quick else MADE + REAL, EPSILONS):
        try:
            keys, values = SETS[name].draw(effort.rows(ROWS), np.random.default_rng(7))
        except NoData:
            continue
        yield name, keys * GROUPS // SETS[name].cells, values, epsilon


def setting(name: str, keys: Any, values: Any, epsilon: str, truth: Any, effort: Effort) -> Setting:
    problem = {
        "keys": keys,
        "values": values,
        "groups": GROUPS,
        "largest": LARGEST,
        "epsilon": float(epsilon),
        "truth": truth,
        "releases": effort.releases,
    }
    return Setting(data=name, epsilon=epsilon, problem=problem)


def released(problem: Problem) -> pt.Release:
    """Counts of groups and sums of their values: of epsilon 4/9 and 5/9."""
    schema = {"g": pt.Integer(0, GROUPS - 1), "v": pt.Integer(0, LARGEST)}
    table = {"g": problem["keys"], "v": problem["values"]}
    return pt.publish(table, schema, epsilon=str(problem["epsilon"]), by=["g"], sums=["v"])


def sums(problem: Problem) -> Answers:
    """`publish` with `sums`, and `sum` of the release."""
    release = released(problem)
    return lambda: [*(release.sum("v", g=g).value for g in range(GROUPS)), release.sum("v").value]


def sums_alone(problem: Problem) -> Answers:
    """`LevelTrees`, all of epsilon for sums."""
    release = trees(problem)
    return lambda: [release.sum([group]).value for group in [*EACH, BoxTerm((0,), (GROUPS - 1,))]]


def means_alone(problem: Problem) -> Answers:
    """The means of the same release."""
    release = trees(problem)
    return lambda: np.nan_to_num([release.mean([group]).value for group in EACH])


def trees(problem: Problem) -> LevelTreesRelease:
    """The mechanism behind sums, by itself."""
    axis, value = Axis(size=GROUPS), pt.Integer(0, LARGEST)
    rows = np.stack([problem["keys"], problem["values"] + 1], axis=1)
    points = pt.Points.from_rows(rows, axes=[axis, Axis.of(value)])
    return LevelTrees(keys=[axis], value=value, epsilon=str(problem["epsilon"])).release(points)


def means(problem: Problem) -> Answers:
    """`publish` with `sums`, and `mean` of the release; what is not determinable counts as zero."""
    release = released(problem)
    return lambda: np.nan_to_num([release.mean("v", g=g).value for g in range(GROUPS)])


def question(name: str, title: str, about: str, settings: Any, method: Any, alone: Any) -> Question:
    return Question(
        name=name,
        title=title,
        about=about,
        unit="units of the column, mean over answers",
        settings=settings,
        contestants=[
            Contestant(
                name="Partita",
                kind="ours",
                method=method,
                settings="`publish` with `sums`, defaults: 4/9 of epsilon is for counts of the groups",
            ),
            Contestant(
                name="Partita, sums only",
                kind="ours",
                method=alone,
                settings="`LevelTrees`, all of epsilon for sums",
            ),
        ],
        miss=mean_miss,
    )


SUMS = question(
    "sums",
    "Sums with unknown bounds",
    "100,000 rows in eight public groups, values declared up to 2^32: the sum of each group and of all rows. "
    "Nobody is told how large values really are.",
    sum_settings,
    sums,
    sums_alone,
)
MEANS = question(
    "means",
    "Means with unknown bounds",
    "The same tables: the mean of each group.",
    mean_settings,
    means,
    means_alone,
)
