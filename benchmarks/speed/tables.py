"""Tables of many columns: seconds and memory of `publish` from a file, of boxes, and of the first answer.

The file is drawn once. Publishing with its boxes is one fresh process, and the first answer from a saved
release is another one.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from os import environ
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import partita as pt
from benchmarks.accuracy.tables_questions import ask_boxes
from benchmarks.accuracy.tables_sets import Table, declare, draw_traits
from benchmarks.speed.boxes_paper import path, peak
from benchmarks.speed.row import Row, Target
from partita.domain.base import Domain

Figure = Literal["", "-cpu", "-memory", "-box", "-box-p99", "-first"]
FIGURES: tuple[Figure, ...] = ("", "-cpu", "-memory", "-box", "-box-p99", "-first")
"""How the names of the rows end."""

EPSILON, BOXES = 1, 200
WIDTHS, ROWS = (10, 20, 40), {"1e5": 10**5, "1e6": 10**6}
SIZES = (2, 5, 12, 3, 40, 2, 100, 7, 2, 16)
"""Cells of the columns, over and over; every fourth is a category."""

TARGETS: dict[Figure, Target] = {
    "": Target("figure", "<=", 60),
    "-memory": Target("figure", "<=", 1),
    "-box-p99": Target("figure", "<=", 0.05),
}
BASELINES: dict[Figure, str] = {
    "": "views of single columns",
    "-cpu": "views of single columns",
    "-memory": "imports alone",
    "-box": "a NumPy scan of all rows",
    "-box-p99": "a NumPy scan of all rows",
    "-first": "load alone",
}


@dataclass(frozen=True)
class Cost:
    """Seconds and gigabytes: of the release, and of the baselines."""

    publishing: float
    publishing_cpu: float
    views: float
    views_cpu: float
    memory: float
    memory_before: float
    boxes: list[float]


def tables(quick: bool, *, columns: int, n: int, figure: Figure) -> Row:
    """One figure of a table, each against a baseline of the same processes."""
    cost, scans, (loading, first) = measured(columns, n // (100 if quick else 1))
    median, worst = (float(np.quantile(cost.boxes, q)) for q in (0.5, 0.99))
    pairs: dict[Figure, tuple[float, float]] = {
        "": (cost.publishing, cost.views),
        "-cpu": (cost.publishing_cpu, cost.views_cpu),
        "-memory": (cost.memory, cost.memory_before),
        "-box": (median, float(np.median(scans))),
        "-box-p99": (worst, float(np.quantile(scans, 0.99))),
        "-first": (first, loading),
    }
    ours, baseline = pairs[figure]
    return Row(
        ours="publish" if figure in ("", "-cpu", "-memory") else "release.count(...).interval()",
        parameters={"columns": columns, "epsilon": EPSILON, "n": n // (100 if quick else 1)},
        unit="GB" if figure == "-memory" else "s CPU" if figure == "-cpu" else "s",
        figure=ours,
        baseline=BASELINES[figure],
        baseline_figure=baseline,
        statistic="one fresh process, its memory at the highest; boxes one by one",
        target=TARGETS.get(figure),
        quick=quick,
    )


@cache
def measured(columns: int, n: int) -> tuple[Cost, list[float], tuple[float, float]]:
    """What publishing takes, the scans of the same boxes, and a first answer from the file."""
    sizes = tuple(SIZES[number % len(SIZES)] for number in range(columns))
    table = draw_traits("speed", sizes, n, 5, seed=9)
    questions = [
        question
        for count in (2, 3, 4)
        for question in ask_boxes(table, BOXES // 3, np.random.default_rng(count), columns=count)
    ]
    with TemporaryDirectory() as folder:
        write(table, Path(folder, "rows.parquet"))
        asked = {"schema": [sizes, table.ordered], "boxes": [question.where for question in questions]}
        Path(folder, "asked.json").write_text(json.dumps(asked))
        cost, first = Cost(**child("publish", folder)), child("first", folder)
    return cost, [seconds(lambda each=each: each.truth) for each in questions], (first[0], first[1])


def write(table: Table, file: Path) -> None:
    """The codes as a file of small integers."""
    arrays = [pa.array(column.astype(np.int16)) for column in table.rows.T]
    pq.write_table(pa.table(arrays, names=list(table.columns)), file)


def child(step: str, folder: str) -> Any:
    """What a fresh process found, which imports from where this one does."""
    command = [sys.executable, "-m", __name__, step, folder]
    found = subprocess.run(command, check=True, stdout=subprocess.PIPE, env={**environ, "PYTHONPATH": path()})
    return json.loads(found.stdout)


def publish(folder: Path) -> dict[str, Any]:
    """Publish the file, ask every box alone, save the release; then single columns for comparison."""
    schema, boxes = read(folder)
    rows, before = folder / "rows.parquet", peak()
    made = folder / "made.release.parquet"
    release, publishing, publishing_cpu = both_clocks(
        lambda: pt.publish(rows, schema, epsilon=EPSILON, path=made)
    )
    memory = peak()
    release.count(boxes[0]).interval()
    answering = [seconds(lambda where=where: release.count(where).interval()) for where in boxes]
    views = [(column,) for column in schema]
    _, single, single_cpu = both_clocks(lambda: pt.publish(rows, schema, epsilon=EPSILON, views=views))
    return vars(Cost(publishing, publishing_cpu, single, single_cpu, memory, before, answering))


def first_answer(folder: Path) -> tuple[float, float]:
    """Seconds to load the release, and to load it and answer one box."""
    _, boxes = read(folder)
    start = perf_counter()
    release = pt.load(folder / "made.release.parquet")
    loaded = perf_counter()
    release.count(boxes[0]).interval()
    return loaded - start, perf_counter() - start


def read(folder: Path) -> tuple[dict[str, Domain], list[dict[str, Any]]]:
    """The schema and the boxes; a pair of numbers is a range, a list of text a set of labels."""
    asked = json.loads((folder / "asked.json").read_text())
    kinds = enumerate(zip(*asked["schema"], strict=True))
    schema = {f"q{number}": declare(size, ordered) for number, (size, ordered) in kinds}
    boxes = [{name: as_asked(value) for name, value in box.items()} for box in asked["boxes"]]
    return schema, boxes


def as_asked(value: list[Any]) -> object:
    return value if isinstance(value[0], str) else tuple(value)


def seconds(call: Any) -> float:
    start = perf_counter()
    call()
    return perf_counter() - start


def both_clocks(call: Any) -> tuple[Any, float, float]:
    """What it returns, its seconds, and the seconds of all cores."""
    start, used = perf_counter(), process_time()
    made = call()
    return made, perf_counter() - start, process_time() - used


STEPS = {"publish": publish, "first": first_answer}

if __name__ == "__main__":
    print(json.dumps(STEPS[sys.argv[1]](Path(sys.argv[2]))))
