"""`python -m benchmarks.pan`: JSON rows, or Markdown, about errors and speed of pan-private sketches."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence

from benchmarks import machine
from benchmarks.accuracy.score import Json
from benchmarks.accuracy.table import table
from benchmarks.pan.density import density
from benchmarks.pan.speed import update

ROWS: dict[str, Callable[..., Iterator[Json]]] = {"density": density, "update": update}


def main(arguments: Sequence[str]) -> int:
    """Measure the chosen rows; a missed target is reported, not an error."""
    options = parser().parse_args(arguments)
    names = options.only or ROWS
    measured = (row for name in names for row in ROWS[name](trials=options.trials, quick=options.quick))
    facts = machine.facts()
    if options.table:
        print(f"`python -m benchmarks.pan {shlex.join(arguments)}`, ", end="")
        print(", ".join(f"{name} {fact}" for name, fact in facts.items()), end=".\n\n")
        print(table(list(measured)))
    else:
        for row in measured:
            print(json.dumps(row | {"trials": options.trials, "quick": options.quick} | facts), flush=True)
    return 0


def parser() -> argparse.ArgumentParser:
    """The options of this module."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.pan", description=__doc__)
    made.add_argument("--table", action="store_true", help="print Markdown tables instead of JSON")
    made.add_argument("--trials", type=int, default=200, help="runs of each sketch; default: %(default)s")
    made.add_argument("--quick", action="store_true", help="small universes: to see that it runs")
    made.add_argument("--only", action="append", choices=ROWS, metavar="ROW", help="may be repeated")
    return made


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
