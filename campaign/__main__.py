"""Run the campaign: python -m campaign [PART ...] [--quick] [--record FILE]

One JSON line for each part on stdout; exit status 1 if a violation was found or fewer cases were tried than
the goal. With --record the lines are kept in a file, each with machine, versions, day and commit.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from benchmarks.machine import facts

PARTS: Final = ("pairs", "bugs", "tapes", "faults", "files", "inputs")


def main(arguments: Sequence[str]) -> int:
    options = _parsed(arguments)
    found = [_run(name, quick=options.quick) for name in options.parts or PARTS]
    if options.record:
        _record(Path(options.record), found)
    return int(any(line["violations"] or line["cases"] < line["goal"] for line in found))


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="campaign", description="Look for violations for hours.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"some of {', '.join(PARTS)}; default: all")
    parser.add_argument("--quick", action="store_true", help="few cases: does it run")
    parser.add_argument(
        "--record", metavar="FILE", help="keep the results in a JSON file, beside earlier ones"
    )
    options = parser.parse_args(arguments)
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no part named {', '.join(sorted(unknown))}; the parts are {', '.join(PARTS)}")
    return options


def _run(name: str, *, quick: bool) -> dict[str, Any]:
    """Run a part and print its line."""
    module = import_module(f"campaign.{name}")
    goal, start = module.PART.quick if quick else module.PART.goal, time.monotonic()
    outcome = module.run(goal)
    line = {
        "part": name,
        "case": module.PART.case,
        "goal": goal,
        "cases": outcome.cases,
        "violations": list(outcome.violations),
        "spread": dict(sorted(outcome.spread.items())),
        "seconds": round(time.monotonic() - start),
        "commit": _commit(),
        **facts(),
    }
    print(json.dumps(line), flush=True)
    return line


def _commit() -> str:
    asked = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()


def _record(path: Path, lines: Sequence[dict[str, Any]]) -> None:
    """Put the lines in place of those that earlier runs left of the same parts."""
    kept = json.loads(path.read_text()) if path.exists() else {}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**kept, **{line["part"]: line for line in lines}}, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
