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

ROWS, GROUPS = 100_000, 8
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


def wanted_sums(problem: Problem) -> Answers:
    """`publish` of just the total, of each group where there are several, and of all."""
    release, groups = wanted(problem, pt.total), int(problem["groups"])
    each = [release.sum("v", g=g).value for g in range(groups)] if groups > 1 else [release.sum("v").value]
    return lambda: [*each, release.sum("v").value]


def wanted_means(problem: Problem) -> Answers:
    """`publish` of just the mean of each group; what is not determinable counts as zero."""
    release, groups = wanted(problem, pt.mean), int(problem["groups"])
    return lambda: np.nan_to_num([release.mean("v", g=g).value for g in range(groups)])


def wanted(problem: Problem, want: Any) -> pt.Release:
    """One want about the values, by group where there are several."""
    groups, value = int(problem["groups"]), pt.Integer(0, int(problem["largest"]))
    schema, table = {"v": value}, {"v": problem["values"]}
    if groups > 1:
        schema, table = {"g": pt.Integer(0, groups - 1), **schema}, {"g": problem["keys"], **table}
    wants = [want("v", by="g" if groups > 1 else None)]
    return pt.publish(table, schema, epsilon=str(problem["epsilon"]), wants=wants)


def means(problem: Problem) -> Answers:
    """`publish` with `sums`, and `mean` of the release; what is not determinable counts as zero."""
    release = released(problem)
    return lambda: np.nan_to_num([release.mean("v", g=g).value for g in range(GROUPS)])


def question(name: str, title: str, about: str, settings: Any, just: Any, counts: Any) -> Question:
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
                method=just,
                settings="`publish` with one want: this and nothing else",
            ),
            Contestant(
                name="Partita, counts too",
                kind="ours",
                method=counts,
                settings="`publish` with `sums`, defaults: 4/9 of epsilon is for counts of the groups",
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
    wanted_sums,
    sums,
)
MEANS = question(
    "means",
    "Means with unknown bounds",
    "The same tables: the mean of each group.",
    mean_settings,
    wanted_means,
    means,
)
