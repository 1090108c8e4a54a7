"""Row `import`: what a fresh process spends to import all that a device needs, and how many modules."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from statistics import median
from typing import Final

from benchmarks.accuracy.score import Json, short

TARGET: Final = 50.0
"""Milliseconds of processor time."""

RUNS: Final = 20

_IMPORT: Final = """
import sys, time
before, start = len(sys.modules), time.process_time()
import partita.local.device
print(1000 * (time.process_time() - start), len(sys.modules) - before)
"""


def imports(quick: bool) -> Iterator[Json]:
    """The least and the median of fresh processes; on a busy machine the least says most."""
    runs = [_run() for _ in range(2 if quick else RUNS)]
    spent = [milliseconds for milliseconds, _ in runs]
    yield {
        "row": "import",
        "runs": len(runs),
        "modules": runs[0][1],
        "milliseconds": short(min(spent)),
        "median": short(median(spent)),
        "target": TARGET,
        "met": None if quick else min(spent) <= TARGET,
    }


def _run() -> tuple[float, int]:
    done = subprocess.run([sys.executable, "-c", _IMPORT], capture_output=True, check=True, text=True)
    milliseconds, modules = done.stdout.split()
    return float(milliseconds), int(modules)
