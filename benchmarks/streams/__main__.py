"""`python -m benchmarks.streams`: JSON rows, or Markdown, about continual counters: errors and speed."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence

from benchmarks import machine
from benchmarks.accuracy.score import Json
from benchmarks.accuracy.table import table
from benchmarks.streams import dense, feeding, packing, pan, sparse
from benchmarks.streams.measure import Effort

ROWS: dict[str, Callable[[Effort], Iterator[Json]]] = {
    "known": dense.known,
    "unknown": dense.unknown,
    "sparse": sparse.sparse,
    "pan": pan.pan,
    "packing": packing.packing,
    "feeding": feeding.feeding,
}


def main(arguments: Sequence[str]) -> int:
    """Measure the chosen rows; a missed target is reported, not an error."""
    options = parser().parse_args(arguments)
    effort = Effort(trials=options.trials, quick=options.quick)
    measured = (row for name in options.only or ROWS for row in ROWS[name](effort))
    facts = machine.facts()
    if options.table:
        print(f"`python -m benchmarks.streams {shlex.join(arguments)}`, ", end="")
        print(", ".join(f"{name} {fact}" for name, fact in facts.items()), end=".\n\n")
        print(table(list(measured)))
    else:
        for row in measured:
            print(json.dumps(row | {"trials": effort.trials, "quick": effort.quick} | facts), flush=True)
    return 0


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m benchmarks.streams", description=__doc__)
    made.add_argument("--table", action="store_true", help="print Markdown tables instead of JSON")
    made.add_argument("--trials", type=int, default=20, help="runs of each counter; default: %(default)s")
    made.add_argument("--quick", action="store_true", help="short streams: to see that it runs")
    made.add_argument("--only", action="append", choices=ROWS, metavar="ROW", help="may be repeated")
    return made


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
