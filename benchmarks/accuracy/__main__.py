"""`PARTITA_DATA=... python -m benchmarks.accuracy`: JSON rows, one for each cell, then totals."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from benchmarks import machine
from benchmarks.accuracy import (
    border,
    boxes_2d,
    boxes_breaking,
    boxes_coverage,
    boxes_paper,
    boxes_peer_check,
    boxes_raw,
    breaking,
    coverage,
    dpbench,
    huge,
    labels,
    numerical,
    opendp,
    paper,
    peer_check,
    projection,
    raw,
    sums,
    tables,
    tables_bars,
    wanted,
    wanted_totals,
    weights,
    wide,
)
from benchmarks.accuracy.rows import Cell, Plan, Row
from benchmarks.accuracy.score import Json
from benchmarks.accuracy.table import table
from benchmarks.accuracy.tables_bars import TABLES
from benchmarks.accuracy.work import NoData, folder
from partita.trusted.mechanisms.catalogue import axis_mechanisms, box_mechanisms

ROWS: dict[str, Row] = {
    "dpbench": dpbench.DPBENCH,
    "raw": raw.RAW,
    "huge": huge.HUGE,
    "wide": wide.WIDE,
    "border": border.BORDER,
    "opendp": opendp.OPENDP,
    "coverage": coverage.COVERAGE,
    "breaking": breaking.BREAKING,
    "paper": paper.PAPER,
    "peers": peer_check.PEER_CHECK,
    "boxes2d": boxes_2d.BOXES_2D,
    "boxesraw": boxes_raw.BOXES_RAW,
    "boxespaper": boxes_paper.BOXES_PAPER,
    "boxescoverage": boxes_coverage.BOXES_COVERAGE,
    "boxesbreaking": boxes_breaking.BOXES_BREAKING,
    "boxespeers": boxes_peer_check.BOXES_PEER_CHECK,
    "sums": sums.SUMS,
    "totals": wanted_totals.TOTALS,
    "wanted": wanted.WANTED,
    "projection": projection.PROJECTION,
    "weights": weights.WEIGHTS,
    "numerical": numerical.NUMERICAL,
    "tables": tables.TABLES,
    "labels": labels.LABELS,
    "tablesbars": tables_bars.TABLES_BARS,
}


def main(arguments: Sequence[str]) -> int:
    """Measure the chosen rows; say so where the data are not there."""
    options = parser().parse_args(arguments)
    plan = Plan(
        against=options.against,
        trials=options.trials,
        sets=tuple(options.sets),
        peers=options.peers,
        **measured_by(options.mechanism),
    )
    try:
        folder()
    except NoData as missing:
        print(missing, file=sys.stderr)
        return 2
    measured = run(options.rows, plan, jobs=options.jobs)
    if options.table:
        print_table(list(measured), arguments)
    else:
        print_json(measured)
    return 0


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    made.add_argument("--rows", type=chosen, default=list(ROWS), help=f"some of {','.join(ROWS)}")
    made.add_argument("--trials", type=int, default=10, help="releases of each cell")
    made.add_argument("--mechanism", type=known, help="the measured mechanism, along an axis or over boxes")
    made.add_argument("--against", type=known, default=Plan.against, help="the other one of the row border")
    made.add_argument("--jobs", type=int, default=1, help="processes that measure side by side")
    made.add_argument(
        "--sets",
        type=known_sets,
        default=(),
        help=f"of whole tables: some of {','.join(TABLES)}; of wanted: some of {','.join(wanted.SETS)}",
    )
    made.add_argument(
        "--peers", action="store_true", help="run other libraries beside whole tables and what is wanted"
    )
    made.add_argument("--table", action="store_true", help="print Markdown tables of the totals instead")
    return made


def chosen(names: str) -> list[str]:
    """Names of rows with commas between them."""
    found = names.split(",")
    unknown = [name for name in found if name not in ROWS]
    if unknown:
        raise argparse.ArgumentTypeError(f"no row named {', '.join(unknown)}; choose from {', '.join(ROWS)}")
    return found


def known_sets(names: str) -> list[str]:
    """Names of sets with commas between them."""
    found = names.split(",")
    every = [*TABLES, *wanted.SETS]
    unknown = [name for name in found if name not in every]
    if unknown:
        raise argparse.ArgumentTypeError(f"no set named {', '.join(unknown)}; choose from {', '.join(every)}")
    return found


def known(name: str) -> str:
    """The name of a mechanism of the library."""
    names = [*axis_mechanisms(), *box_mechanisms()]
    if name not in names:
        raise argparse.ArgumentTypeError(f"no mechanism named {name}; choose from {', '.join(names)}")
    return name


def measured_by(name: str | None) -> dict[str, Any]:
    """The part of a plan that a named mechanism takes: rows along an axis, or those over boxes."""
    if name is None:
        return {}
    return {"boxes" if name in box_mechanisms() else "mechanism": name}


def run(names: Sequence[str], plan: Plan, *, jobs: int) -> Iterator[Json]:
    """Each row's cells as they are measured, then its totals."""
    with ProcessPoolExecutor(jobs) as pool:
        for name in names:
            row, found = ROWS[name], []
            cells = row.cells(plan)
            measured = map(call, cells) if row.clocked else pool.map(call, cells)
            for number, made in enumerate(measured, 1):
                progress(f"{name} {number}/{len(cells)}")
                found.append(made)
                yield made
            yield from row.totals(found)


def call(cell: Cell) -> Json:
    return cell()


def progress(text: str) -> None:
    """For whoever watches."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def print_json(rows: Iterator[Json]) -> None:
    """Each row as soon as it is there."""
    facts = machine.facts()
    for row in rows:
        print(json.dumps({**row, **facts}), flush=True)


def print_table(rows: list[Json], arguments: Sequence[str]) -> None:
    """The totals, below what they were measured on and how."""
    facts = machine.facts()
    print(f"`python -m benchmarks.accuracy {shlex.join(arguments)}`, {facts['date']}, ", end="")
    print(f"{facts['cpu']}, {facts['cores']} cores; partita {facts['partita']}, numpy {facts['numpy']}.\n")
    print(table([row for row in rows if "total" in row]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
