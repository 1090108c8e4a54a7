"""Mutated release files: each gives a typed error, or a release that answers everything with finite numbers.

Eleven in twelve are damaged in their bytes; one in twelve is forged: well-formed, with a right checksum and
changed content. Forged files that are accepted are asked everything, and so is one in four of the damaged
ones. A process that crashes, takes a gigabyte or ten seconds for a file, or meets an error that is not ours
is a violation.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from campaign.part import Outcome, Part, shown
from partita.public.axis.base import AxisRelease
from partita.public.boxes.base import BoxRelease
from partita.public.file import encode
from partita.public.sums.base import SumRelease
from partita.public.workload.release import WorkloadRelease
from tests.public.file.specimens import release

PART: Final = Part(name="files", case="a mutated release file", goal=1_000_000, quick=2_000)
ROOT: Final = Path(__file__).parents[1]
FIRST: Final = 1_000_000
"""Numbers of files that the tests do not use."""
CHUNK: Final = 5_000
WORKERS: Final = 2
FORGED, ASKED = "12", "4"


def run(cases: int) -> Outcome:
    """Make and read so many files, 5,000 in a process."""
    with TemporaryDirectory() as folder, ThreadPoolExecutor(WORKERS) as pool:
        for kind in (
            *AxisRelease.kinds(),
            *BoxRelease.kinds(),
            *SumRelease.kinds(),
            *WorkloadRelease.kinds(),
        ):
            (Path(folder) / f"{kind}.parquet").write_bytes(encode(release(kind)))
        chunks = range(FIRST, FIRST + cases, CHUNK)
        found = pool.map(lambda first: _read(folder, first, min(first + CHUNK, FIRST + cases)), chunks)
        return _together(shown(found, "chunks of 5,000 files", len(chunks)))


def _read(folder: str, first: int, last: int) -> tuple[Counter[str], str | None]:
    """What became of the files with these numbers, and what ended the process early, if something did."""
    command = [sys.executable, "-m", "tests.public.file.fuzz", folder, str(first), str(last), FORGED, ASKED]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        return Counter(), f"files {first} to {last - 1}, status {done.returncode}: {done.stderr[-2000:]}"
    return Counter(json.loads(done.stdout)), None


def _together(chunks: Iterator[tuple[Counter[str], str | None]]) -> Outcome:
    spread: Counter[str] = Counter()
    violations = []
    for counted, failure in chunks:
        spread += counted
        violations += [failure] if failure else []
    return Outcome(cases=spread.total(), violations=tuple(violations), spread=spread)
