"""`python -m benchmarks.load`: JSON rows, or Markdown, about the service under load; loopback only."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks import machine
from benchmarks.accuracy.table import table
from benchmarks.load import rows
from benchmarks.load.hostile import hostile
from benchmarks.load.killing import killed
from benchmarks.load.rows import Row
from benchmarks.load.serving import Place, Processes, served

ROWS: dict[str, Callable[[Processes, float], Iterator[Row]]] = {
    "single": rows.single,
    "half": rows.half_load,
    "batches": rows.batches,
    "feeding": rows.feeding,
    "hostile": hostile,
}


def main(arguments: Sequence[str]) -> int:
    """Measure the chosen rows; a missed target is reported, not an error."""
    options = parser().parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        measured = list(_measured(Path(folder), options))
    facts = machine.facts("uvicorn", "fastapi")
    if options.table:
        print(f"`python -m benchmarks.load {shlex.join(arguments)}`, ", end="")
        print(", ".join(f"{name} {fact}" for name, fact in facts.items()), end=".\n\n")
        print(table(measured))
    else:
        for row in measured:
            print(json.dumps(row | {"seconds": options.seconds} | facts), flush=True)
    return 0


def _measured(folder: Path, options: argparse.Namespace) -> Iterator[Row]:
    place = Place.made(folder)
    if options.kill:
        yield killed(place, times=options.kill, seconds=min(1.0, options.seconds))
        return
    place.publish()
    with served(place, workers=options.workers) as service:
        for name in options.only or ROWS:
            yield from ROWS[name](service, options.seconds)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m benchmarks.load", description=__doc__)
    made.add_argument("--table", action="store_true", help="print Markdown tables instead of JSON")
    made.add_argument("--seconds", type=float, default=5.0, help="for each figure; default: %(default)s")
    made.add_argument("--only", action="append", choices=ROWS, metavar="ROW", help="may be repeated")
    made.add_argument("--workers", type=int, default=1, help="processes that answer; default: %(default)s")
    made.add_argument(
        "--kill", type=int, metavar="N", help="kill the steward under load so many times instead"
    )
    return made


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
