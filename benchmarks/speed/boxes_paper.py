"""The paper's tree of trees on three axes of 2^32 cells: seconds and memory of a fresh process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Literal

import partita as pt
from benchmarks.speed.boxes import PEOPLE, skewed
from benchmarks.speed.row import Row, Target

Unit = Literal["s", "GB"]

AXES = 3
UNITS: dict[Unit, str] = {"s": "", "GB": "-memory"}
"""What is reported, and how the name of its row ends."""
TARGETS: dict[Unit, Target] = {"s": Target("figure", "<=", 120), "GB": Target("figure", "<=", 4)}


@dataclass(frozen=True)
class Cost:
    """What a fresh process took: for the points alone, and for the release too."""

    points_seconds: float
    seconds: float
    points_memory: float
    memory: float
    nodes: int


def paper(quick: bool, *, unit: Unit, epsilon: int, threshold: int | None = None) -> Row:
    """A hundred thousand points released, against what it takes to have them: drawn, sorted, counted."""
    n = PEOPLE // (100 if quick else 1)
    cost = measured(n, epsilon, threshold)
    ours, points = (cost.seconds, cost.points_seconds) if unit == "s" else (cost.memory, cost.points_memory)
    return Row(
        ours="PaperRectangles",
        parameters=parameters(epsilon, threshold, nodes=cost.nodes, n=n),
        unit=unit,
        figure=ours,
        baseline="the points alone",
        baseline_figure=points,
        statistic="one fresh process, its memory at the highest",
        target=TARGETS[unit],
        quick=quick,
    )


def parameters(epsilon: int, threshold: int | None, **others: int) -> dict[str, str | int]:
    """What the row says about the run."""
    pruned: dict[str, str | int] = {} if threshold is None else {"threshold": threshold}
    return {"size": f"2^32, {AXES} axes", "epsilon": epsilon, **pruned, **others}


@cache
def measured(n: int, epsilon: int, threshold: int | None) -> Cost:
    """The cost in a process of its own, which imports from where this one does."""
    command = [sys.executable, "-m", __name__, str(n), str(epsilon), json.dumps(threshold)]
    found = subprocess.run(command, check=True, capture_output=True, env={**os.environ, "PYTHONPATH": path()})
    return Cost(**json.loads(found.stdout))


def path() -> str:
    return os.pathsep.join(filter(None, sys.path))


def cost(n: int, epsilon: int, threshold: int | None) -> Cost:
    """Draw the points and release them, here and now."""
    start = perf_counter()
    points = skewed(AXES, n)
    ready, ready_memory = perf_counter(), peak()
    release = pt.PaperRectangles(axes=points.axes, epsilon=epsilon, threshold=threshold).release(points)
    return Cost(ready - start, perf_counter() - ready, ready_memory, peak(), release.trees.kept)


def peak() -> float:
    """The most memory that this process had so far, in gigabytes: what Linux calls the high water mark.

    `getrusage` would count what the process that started this one had at that time.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    (mark,) = (line for line in lines if line.startswith("VmHWM:"))
    return int(mark.split()[1]) * 1024 / 1e9


if __name__ == "__main__":
    print(json.dumps(vars(cost(*map(json.loads, sys.argv[1:])))))
