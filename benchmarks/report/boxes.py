"""Counts of boxes over two columns."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np

import partita as pt
from benchmarks.accuracy import agrid, boxes_peers
from benchmarks.accuracy.boxes_queries import plain_axes
from benchmarks.accuracy.boxes_work import flat_shapes, stored
from benchmarks.accuracy.work import NoData
from benchmarks.peers.worker import Answers, Problem, boxes
from benchmarks.report.data import PLANES, SIDE, sorted_pairs
from benchmarks.report.model import Contestant, Effort, Question, Setting, mean_miss
from benchmarks.report.ranges import EPSILONS

ROWS, ASKED = 100_000, 1_000
REAL_ROWS = 10_000


def settings(effort: Effort) -> Iterator[Setting]:
    """Made-up planes, then the shapes of DPBench where PARTITA_DATA names them."""
    for (name, draw), epsilon in product(PLANES.items(), EPSILONS):
        yield setting(name, draw(effort.rows(ROWS), np.random.default_rng(7)), epsilon, effort)
    for name, epsilon in product(() if effort.quick else shapes(), EPSILONS):
        counts = stored("work_2d.npz")[f"{name}:{REAL_ROWS}"]
        points = np.repeat(np.argwhere(counts), counts[counts > 0], axis=0)
        yield setting(name, points, epsilon, effort)


def shapes() -> list[str]:
    """The data sets of PARTITA_DATA; none without it."""
    try:
        return sorted({name for name, n, _ in flat_shapes() if n == REAL_ROWS})
    except NoData:
        return []


def setting(name: str, points: Any, epsilon: str, effort: Effort) -> Setting:
    """Boxes with uniform corners, and their true counts."""
    rng = np.random.default_rng(11)
    sides = [sorted_pairs(rng, SIDE, effort.rows(ASKED)) for _ in range(2)]
    lows, highs = (np.stack(ends, axis=1) for ends in zip(*sides, strict=True))
    counts = np.zeros((SIDE, SIDE))
    np.add.at(counts, tuple(points.T), 1.0)
    problem = {
        "points": points,
        "shape": np.array([SIDE, SIDE]),
        "epsilon": float(epsilon),
        "lows": lows,
        "highs": highs,
        "truth": boxes(counts, lows, highs),
        "releases": effort.releases,
    }
    return Setting(data=name, epsilon=epsilon, problem=problem)


def partita(problem: Problem) -> Answers:
    """`publish` of two columns, and `counts` of the release."""
    (width, height), (x, y) = problem["shape"].tolist(), problem["points"].T
    schema = {"x": pt.Integer(0, width - 1), "y": pt.Integer(0, height - 1)}
    release = pt.publish({"x": x, "y": y}, schema, epsilon=str(problem["epsilon"]))
    (left, bottom), (right, top) = problem["lows"].T, problem["highs"].T
    return lambda: release.counts(x=(left, right), y=(bottom, top)).values


def paper(problem: Problem, *, peer: boxes_peers.BoxPeer) -> Answers:
    """A published mechanism, with float noise."""
    points = pt.Points.from_rows(problem["points"], axes=plain_axes(problem["shape"].tolist()))
    counts = peer(points, str(problem["epsilon"]))
    lows, highs = problem["lows"].astype(np.uint64), problem["highs"].astype(np.uint64)
    return lambda: counts(lows, highs)


def identity(problem: Problem) -> Answers:
    """Every cell with its own noise."""
    counts = np.zeros(problem["shape"])
    np.add.at(counts, tuple(problem["points"].T), 1.0)
    noisy = counts + np.random.default_rng().laplace(0, 1 / problem["epsilon"], counts.shape)
    return lambda: boxes(noisy, problem["lows"], problem["highs"])


PAPERS = {
    "UGrid": (boxes_peers.ugrid, "equal tiles, as many as suit the number of rows [QYL13b]"),
    "AGrid": (agrid.agrid, "a coarse grid, each tile cut as its noisy count says [QYL13b]"),
    "PrivTree": (boxes_peers.privtree, "halves both axes, half of epsilon on the tree [ZXX16]"),
}

BOXES = Question(
    name="boxes",
    title="Counts of boxes",
    about="100,000 rows (the shapes of DPBench: 10,000) in 256 x 256 cells, 1,000 boxes with uniform "
    "corners, all answered by one release.",
    unit="rows, mean over boxes",
    settings=settings,
    contestants=[
        Contestant(name="Partita", kind="ours", method=partita, settings="`publish`, defaults"),
        Contestant(name="Identity", kind="paper", method=identity, settings="every cell with its own noise"),
        *(
            Contestant(name=name, kind="paper", method=partial(paper, peer=peer), settings=says)
            for name, (peer, says) in PAPERS.items()
        ),
    ],
    miss=mean_miss,
)
