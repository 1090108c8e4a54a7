"""Planted bugs: the shipped code with one line made wrong, and quick tests that must not let it pass.

Every bug is applied to a copy of the package, which the tests then import in place of the installed one.
Only tests that `make test` runs count. They pass on a clean copy. A bug that survives is a violation, and so
is a record that does not apply any more.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from campaign.bug_list import BUGS, Bug
from campaign.part import Outcome, Part, shown
from scripts.run_stages import FAST

PART: Final = Part(name="bugs", case="a bug planted into the shipped code", goal=len(BUGS), quick=2)
ROOT: Final = Path(__file__).parents[1]
PACKAGE: Final = "partita"
WORKERS: Final = 2
PATIENCE: Final = 1_200.0
"""Seconds after which tests are taken to hang."""

PASSED, FAILED = 0, 1
"""What pytest returns; all else says that it could not run the tests."""


def run(cases: int) -> Outcome:
    """Plant so many bugs, two at a time."""
    with TemporaryDirectory() as folder, ThreadPoolExecutor(WORKERS) as pool:
        clean, chosen = Path(folder) / "clean", list(islice(BUGS, cases))
        shutil.copytree(ROOT / "src" / PACKAGE, clean / PACKAGE)
        sound = _sound(pool, clean, {bug.tests for bug in chosen})
        found = pool.map(partial(_tried, clean, sound), chosen)
        return Outcome.of(shown(found, "bugs", len(chosen)))


def _sound(pool: ThreadPoolExecutor, clean: Path, tests: Iterable[str]) -> Collection[str]:
    """Which of the tests pass if nothing is planted: all of them at once, or else one by one."""
    listed = sorted(tests)
    if _status(clean, *listed) == PASSED:
        return listed
    statuses = pool.map(partial(_status, clean), listed)
    return [each for each, status in zip(listed, statuses, strict=True) if status == PASSED]


def _tried(clean: Path, sound: Collection[str], bug: Bug) -> tuple[str, str | None]:
    """The layer of a bug, and what is wrong: None if its tests fail because of it."""
    if bug.tests not in sound:
        return bug.layer, f"{bug.name}: {bug.tests} does not pass without it"
    if (clean / PACKAGE / bug.file).read_text().count(bug.right) != 1:
        return bug.layer, f"{bug.name}: the right text is not in {bug.file} once"
    with TemporaryDirectory(dir=clean.parent) as place:
        status = _status(_planted(clean, Path(place), bug), bug.tests)
    return bug.layer, None if status == FAILED else f"{bug.name}: {_said(status)} ({bug.tests})"


def _planted(clean: Path, place: Path, bug: Bug) -> Path:
    """A copy of the package with the bug in it."""
    shutil.copytree(clean / PACKAGE, place / PACKAGE)
    file = place / PACKAGE / bug.file
    file.write_text(file.read_text().replace(bug.right, bug.wrong))
    return place


def _status(place: Path, *tests: str) -> int | None:
    """What pytest returns if the package is imported from here; None if it does not end."""
    _require_copy(place)
    try:
        return _python(
            place, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", FAST, *tests
        ).returncode
    except subprocess.TimeoutExpired:
        return None


def _require_copy(place: Path) -> None:
    """Refuse to go on if Python would import the package from anywhere else."""
    found = _python(place, "-c", f"from importlib.util import find_spec as f; print(f({PACKAGE!r}).origin)")
    if Path(found.stdout.strip()).parent != place / PACKAGE:
        raise SystemExit(f"the copy of {PACKAGE} is not the one that Python imports")


def _python(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A process of low priority in which this folder comes before all that is installed."""
    return subprocess.run(
        ["nice", sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(place)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def _said(status: int | None) -> str:
    if status == PASSED:
        return "it survives"
    return "its tests hang" if status is None else f"its tests cannot be run, status {status}"
