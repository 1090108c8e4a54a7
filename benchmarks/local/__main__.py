"""`python -m benchmarks.local`: JSON rows, or Markdown, about the local model."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from benchmarks import machine
from benchmarks.accuracy.score import Json
from benchmarks.accuracy.table import table
from benchmarks.local import accuracy, growth, imports, ranges, ranges_oracles, speed
from benchmarks.speed.row import Row

SPEED: dict[str, Callable[[bool], Row]] = {
    **{f"client-{kind}": partial(speed.client, kind=kind) for kind in speed.CLIENT},
    **{f"collect-{kind}": partial(speed.collect, kind=kind) for kind in speed.COLLECT},
    "projective": speed.projective,
}
ERRORS: dict[str, Callable[[bool], Iterator[Json]]] = {
    "import": imports.imports,
    "mse": accuracy.mse,
    "ranges": ranges.ranges,
    "budgets": ranges_oracles.budgets,
    "logistic": ranges_oracles.logistic,
}
ROWS = (*SPEED, *ERRORS, "growth")


def main(arguments: Sequence[str]) -> int:
    """Measure the chosen rows; a missed target is reported, not an error."""
    options = parser().parse_args(arguments)
    measured = (row for name in options.only or ROWS for row in rows(name, options))
    facts = machine.facts()
    if options.table:
        print(f"`python -m benchmarks.local {shlex.join(arguments)}`, ", end="")
        print(", ".join(f"{name} {fact}" for name, fact in facts.items()), end=".\n\n")
        print(table(list(measured)))
    else:
        for row in measured:
            print(json.dumps(row | {"quick": options.quick} | facts), flush=True)
    return 0


def rows(name: str, options: argparse.Namespace) -> Iterator[Json]:
    """The rows under one name."""
    if name in ERRORS:
        return ERRORS[name](options.quick)
    if name == "growth":
        return growth.growth(options.quick, options.figure)
    return iter([{"row": name} | SPEED[name](options.quick).to_json()])


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m benchmarks.local", description=__doc__)
    made.add_argument("--table", action="store_true", help="print Markdown tables instead of JSON")
    made.add_argument("--quick", action="store_true", help="few people: to see that it runs")
    made.add_argument("--figure", metavar="FILE", help="where to draw the row `growth`")
    made.add_argument("--only", action="append", choices=ROWS, metavar="ROW", help="may be repeated")
    return made


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
