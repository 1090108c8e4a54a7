"""`python -m benchmarks.scale`: JSON rows, or Markdown, about publishing on Spark: time, memory and error."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from benchmarks import machine
from benchmarks.accuracy.score import Json
from benchmarks.accuracy.table import table
from benchmarks.scale import error, speed, tables
from benchmarks.scale.rows import session

ROWS: dict[str, Callable[[Any, Sequence[int]], Iterator[Json]]] = {
    "time": speed.speed,
    "error": error.error,
    "tables": tables.tables,
}


def main(arguments: Sequence[str]) -> int:
    """Measure the chosen rows; a missed target is reported, not an error."""
    options = parser().parse_args(arguments)
    facts = machine.facts("pyspark")
    numbers = [int(float(number)) for number in options.rows]
    rows = ROWS | {"tables": partial(tables.tables, widths=options.columns, folder=options.folder)}
    with session(options.master) as spark:
        measured = (row for name in options.only or rows for row in rows[name](spark, numbers))
        if options.table:
            print(f"`python -m benchmarks.scale {shlex.join(arguments)}`, ", end="")
            print(", ".join(f"{name} {fact}" for name, fact in facts.items()), end=".\n\n")
            print(table(list(measured)))
        else:
            for row in measured:
                print(json.dumps(row | {"master": options.master} | facts), flush=True)
    return 0


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    made.add_argument("--table", action="store_true", help="print Markdown tables instead of JSON")
    made.add_argument("--rows", nargs="+", default=["1e6", "1e7"], help="default: 1e6 1e7; 1e8 takes a while")
    made.add_argument(
        "--columns", nargs="+", type=int, default=tables.WIDTHS, help="of row tables; default: %(default)s"
    )
    made.add_argument("--folder", help="where row tables writes its files; default: a temporary one")
    made.add_argument("--master", default="local[2]", help="where Spark runs; default: %(default)s")
    made.add_argument("--only", action="append", choices=ROWS, metavar="ROW", help="may be repeated")
    return made


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
