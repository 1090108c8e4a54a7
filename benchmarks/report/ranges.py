"""Counts of ranges of one column, all at once from one release."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np

import partita as pt
from benchmarks.accuracy import peers
from benchmarks.accuracy.work import CELLS, NoData, anchors_1d, work_1d
from benchmarks.peers.worker import Answers, Problem, between
from benchmarks.report.data import COLUMNS, SIZE, sorted_pairs
from benchmarks.report.model import Contestant, Effort, Question, Setting, mean_miss

ROWS, ASKED = 100_000, 100_000
EPSILONS = ("0.1", "1")


def settings(effort: Effort) -> Iterator[Setting]:
    """Made-up columns, then the shapes of DPBench where PARTITA_DATA names them."""
    for (name, draw), epsilon in product(COLUMNS.items(), EPSILONS):
        values = draw(effort.rows(ROWS), np.random.default_rng(7))
        yield setting(name, values, SIZE, epsilon, effort)
    for name, epsilon in product(() if effort.quick else shapes(), EPSILONS):
        values = np.repeat(np.arange(CELLS), work_1d()[f"{name}:{ROWS}"])
        yield setting(name, values, CELLS, epsilon, effort)


def shapes() -> list[str]:
    """The data sets of PARTITA_DATA; none without it."""
    try:
        return sorted({name for name, n, _ in anchors_1d() if n == ROWS})
    except NoData:
        return []


def setting(name: str, values: Any, size: int, epsilon: str, effort: Effort) -> Setting:
    """Ranges with uniform ends, and their true counts."""
    lows, highs = sorted_pairs(np.random.default_rng(11), size, effort.rows(ASKED))
    problem = {
        "values": values,
        "size": size,
        "epsilon": float(epsilon),
        "lows": lows,
        "highs": highs,
        "truth": between(np.bincount(values, minlength=size), lows, highs),
        "releases": effort.releases,
    }
    return Setting(data=name, epsilon=epsilon, problem=problem)


def partita(problem: Problem) -> Answers:
    """`publish` of a column, and `counts` of the release."""
    release = published(problem)
    return lambda: release.counts(v=(problem["lows"], problem["highs"])).values


def published(problem: Problem) -> pt.Release:
    schema = {"v": pt.Integer(0, int(problem["size"]) - 1)}
    return pt.publish({"v": problem["values"]}, schema, epsilon=str(problem["epsilon"]))


def paper(problem: Problem, *, peer: peers.Peer) -> Answers:
    """A published mechanism, with float noise."""
    histogram = pt.Histogram.from_cells(problem["values"], size=int(problem["size"]))
    counts = peer(histogram, str(problem["epsilon"]))
    lows, highs = problem["lows"].astype(np.uint64), problem["highs"].astype(np.uint64)
    return lambda: counts(lows, highs)


PAPERS = {
    "Identity": (peers.identity, "every cell with its own noise"),
    "Hb": (peers.hb, "tree without root, the paper's branching, least squares [QYL13]"),
    "PrivTree": (peers.privtree, "fan-out 2, half of epsilon on the tree [ZXX16]"),
}

RANGES = Question(
    name="ranges",
    title="Counts of ranges",
    about="100,000 rows in 65,536 cells (the shapes of DPBench: 4,096), 100,000 ranges with uniform ends, "
    "all answered by one release.",
    unit="rows, mean over ranges",
    settings=settings,
    contestants=[
        Contestant(name="Partita", kind="ours", method=partita, settings="`publish`, defaults"),
        *(
            Contestant(name=name, kind="paper", method=partial(paper, peer=peer), settings=says)
            for name, (peer, says) in PAPERS.items()
        ),
    ],
    miss=mean_miss,
)
