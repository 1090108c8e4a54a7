"""`python -m benchmarks.speed`: JSON rows on stdout, one for each benchmark."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec

from benchmarks import machine
from benchmarks.accuracy.work import NoData, folder
from benchmarks.speed import (
    answers,
    boxes,
    boxes_paper,
    counters,
    end_to_end,
    noise,
    opendp_tree,
    partition,
    start,
    tables,
    weights,
)
from benchmarks.speed.row import Row, table
from partita.trusted.noise.system import Path

NEED_DATA = "boxes-flights"
Benchmark = Callable[[bool], Row]

PATHS: tuple[Path, ...] = ("numpy", "compiled")
POINTS = ("flights", "uniform")
PAPER: dict[str, tuple[int, int | None]] = {"1": (1, None), "200": (200, None), "200-pruned-less": (200, 2)}
"""Epsilon, and the pruning threshold where it is not the paper's."""
BENCHMARKS: dict[str, Benchmark] = {
    **{f"laplace-{p}-{s}": partial(noise.laplace, path=p, scale=s) for s in (1, 20, 1000) for p in PATHS},
    **{
        f"gaussian-{p}-{s}": partial(noise.gaussian, path=p, deviation=s)
        for s in (1, 20, 1000, 10**6)
        for p in PATHS
    },
    **{f"add-{p}-20": partial(noise.laplace_add, path=p, scale=20) for p in PATHS},
    **{f"laplace-{p}-insecure": partial(noise.laplace_insecure, path=p, scale=20) for p in PATHS},
    **{f"geometric-{p}-insecure": partial(noise.geometric_insecure, path=p, scale=20) for p in PATHS},
    "words": noise.words,
    "partition-numpy": partition.partition_numpy,
    "partition-compiled": partition.partition_compiled,
    **{f"partition-{p}-wide": partial(partition.partition_wide, path=p) for p in PATHS},
    **{f"partition-compiled-1e{e}": partial(partition.partition_scaling, exponent=e) for e in (5, 7)},
    **{f"partition-{p}-heaped": partial(partition.partition_weighted, path=p) for p in PATHS},
    **{f"opendp-tree-{bits}": partial(opendp_tree.opendp_tree, bits=bits) for bits in (16, 20)},
    "publish": end_to_end.publish_file,
    "counts": answers.counts_of_ranges,
    **{
        f"counts-{kind}": partial(answers.counts_of_kind, kind=kind, bits=bits)
        for kind, bits in (("tents", 20), ("tree", 20), ("histogram", 22), ("paper", 32), ("spending", 16))
    },
    **{f"boxes-{p}": partial(boxes.release_of, points=p) for p in POINTS},
    **{f"boxes-{p}-wide": partial(boxes.release_wide, points=p) for p in POINTS},
    **{f"boxes-{p}-answer": partial(boxes.first_answer, points=p) for p in POINTS},
    **{f"boxes-counts-{kind}": partial(boxes.counts_of_boxes, kind=kind) for kind in boxes.KINDS},
    **{
        f"boxes-paper-{name}{suffix}": partial(
            boxes_paper.paper, unit=unit, epsilon=epsilon, threshold=threshold
        )
        for name, (epsilon, threshold) in PAPER.items()
        for unit, suffix in boxes_paper.UNITS.items()
    },
    **{
        f"tables-{columns}-{name}{figure}": partial(tables.tables, columns=columns, n=n, figure=figure)
        for columns in tables.WIDTHS
        for name, n in tables.ROWS.items()
        for figure in tables.FIGURES
    },
    "counter-update": counters.counter_update,
    "counter-update-many": counters.counter_update_many,
    "counter-update-tree": counters.tree_counter_update,
    "counter-advance": counters.counter_advance,
    "weights-round": weights.weights_round,
    "import": start.import_partita,
    "import-everything": start.import_everything,
    "first-compiled-draw": start.first_compiled_draw,
}


def main(arguments: Sequence[str]) -> int:
    """Run the chosen benchmarks; a missed target is reported, not an error."""
    options = parser().parse_args(arguments)
    missing = [name for name in ("numba", "opendp") if find_spec(name) is None]
    if missing:
        print(
            f"{' and '.join(missing)} not installed; use make bench or pip install '.[bench]'",
            file=sys.stderr,
        )
        return 2
    names = with_data(options.only or list(BENCHMARKS))
    measured = run(names, quick=options.quick)
    if options.table:
        print_table(dict(measured), arguments)
    else:
        print_json(measured)
    return 0


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=__doc__)
    made.add_argument("--table", action="store_true", help="print a Markdown table instead of JSON")
    made.add_argument("--quick", action="store_true", help="small sizes: to see that it runs, not how fast")
    made.add_argument(
        "--only", action="append", choices=BENCHMARKS, metavar="NAME", help="one row; may be repeated"
    )
    return made


def with_data(names: Sequence[str]) -> list[str]:
    """The rows that can be measured: some need the folder in PARTITA_DATA."""
    try:
        folder()
    except NoData as missing:
        left_out = [name for name in names if name.startswith(NEED_DATA)]
        if left_out:
            print(f"{', '.join(left_out)} left out: {missing}", file=sys.stderr)
        return [name for name in names if name not in left_out]
    return list(names)


def run(names: Sequence[str], *, quick: bool) -> Iterator[tuple[str, Row]]:
    """The named rows in order, with progress for whoever watches."""
    for number, name in enumerate(names, 1):
        if sys.stderr.isatty():
            print(f"[{number}/{len(names)}] {name}", file=sys.stderr, flush=True)
        yield name, BENCHMARKS[name](quick)


def print_json(rows: Iterator[tuple[str, Row]]) -> None:
    """Each row as soon as it is there."""
    facts = machine.facts("opendp", "numba")
    for name, row in rows:
        print(json.dumps({"name": name, **row.to_json(), **facts}), flush=True)


def print_table(rows: dict[str, Row], arguments: Sequence[str]) -> None:
    """All rows, below what they were measured on and how."""
    facts = machine.facts("opendp", "numba")
    versions = ", ".join(
        f"{name} {facts[name]}" for name in ("python", "partita", "numpy", "opendp", "numba")
    )
    print(f"`python -m benchmarks.speed {shlex.join(arguments)}`, {facts['date']}, ", end="")
    print(f"{facts['cpu']}, {facts['cores']} cores; {versions}.\n")
    print(table(rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
