"""`python -m benchmarks.distance`: JSON rows, or Markdown: errors of mechanisms over what nobody can beat."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Sequence

from benchmarks import machine
from benchmarks.accuracy.table import table
from benchmarks.distance import rows


def main(arguments: Sequence[str]) -> int:
    """Measure the chosen rows."""
    options = parser().parse_args(arguments)
    known = rows()
    measured = (known[name](options.trials).to_json() for name in options.only or known)
    facts = machine.facts()
    if options.table:
        print(shlex.join(["python", "-m", "benchmarks.distance", *arguments]), end=", ")
        print(", ".join(f"{name} {fact}" for name, fact in facts.items()), end=".\n\n")
        print(table(list(measured)))
    else:
        for row in measured:
            print(json.dumps(row | {"trials": options.trials} | facts), flush=True)
    return 0


def parser() -> argparse.ArgumentParser:
    """The options of this module."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.distance", description=__doc__)
    made.add_argument("--table", action="store_true", help="print a Markdown table instead of JSON")
    made.add_argument("--trials", type=int, default=200, help="runs of each mechanism; default: %(default)s")
    made.add_argument(
        "--only", action="append", choices=sorted(rows()), metavar="ROW", help="may be repeated"
    )
    return made


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
