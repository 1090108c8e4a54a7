"""Fault points: processes that are killed, and power that is cut, between any two calls to the system.

After each a second life goes on. Nothing acknowledged is lost, no event counts twice, no output is taken
back, changed or published with two noises, the ledger is charged once, and a file is whole or not there.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from campaign.part import Outcome, Part, shown
from tests.public.file import test_faults as saving
from tests.publish import test_faults as publishing
from tests.trusted.streams.durable import test_faults as streams

PART: Final = Part(
    name="faults", case="a process that ends at one point, and the one after it", goal=1_000, quick=30
)
COUNTERS: Final = (
    ("none", "counter"),
    ("system", "counter"),
    ("system", "tree"),
    ("none", "family"),
    ("system", "pan-private"),
)
"""With which noise which counter lives: without noise its outputs are known."""
STRIDE: Final = 5
"""Every fifth point of a life: calls have two or three points each, and before, within and after are met."""

Tried = tuple[str, str | None]


def run(cases: int) -> Outcome:
    """So many points: all of publishing and of saving, and those of each kind of counter in turn."""
    with TemporaryDirectory(dir=streams.MEMORY if streams.MEMORY.exists() else None) as folder:
        points = chain(_publishing(Path(folder)), _saving(Path(folder)), _streams(Path(folder)))
        return Outcome.of(shown(islice(points, cases), "fault points", cases))


def _publishing(folder: Path) -> Iterator[Tried]:
    """Before and after each step of `publish`."""
    checks = {
        publishing.test_killed_before_the_debit_nothing_is_spent: publishing.FREE,
        publishing.test_killed_between_debit_and_rename_the_debit_is_lost: publishing.LOST,
        publishing.test_killed_after_the_rename_the_release_is_kept: publishing.KEPT,
    }
    for check, deaths in checks.items():
        for death in deaths:
            place = folder / "-".join(("publish", *death))
            place.mkdir()
            yield "publish", _fault(partial(check, place, death))


def _saving(folder: Path) -> Iterator[Tried]:
    """Between any two calls to the system while a release is stored; sixteen points in a check."""
    for mode in ("new", "overwrite"):
        place = folder / mode
        place.mkdir()
        fault = _fault(partial(saving.test_kill_9_at_any_step_leaves_a_whole_file_or_none, place, mode))
        yield from [("save", fault)] * saving.STEPS


def _streams(folder: Path) -> Iterator[Tried]:
    """Durable counters and families: the kinds take turns, point by point."""
    kinds = [(noise, mechanism, end) for end in ("kill", "cut") for noise, mechanism in COUNTERS]
    lives = [_lives(_shim(folder), folder / str(number), *kind) for number, kind in enumerate(kinds)]
    while lives:
        for life in list(lives):
            tried = next(life, None)
            if tried is None:
                lives.remove(life)
            else:
                yield tried


def _lives(shim: Path, folder: Path, noise: str, mechanism: str, end: str) -> Iterator[Tried]:
    """What was wrong with each life that was ended, and with the one after it."""
    folder.mkdir()
    for history in streams.lives(shim, folder, noise, mechanism, end, STRIDE):
        if history["first"]["status"] == signal.SIGKILL:
            yield f"{mechanism}, {end}", "; ".join(streams.faults(history, noise, mechanism)) or None


def _shim(folder: Path) -> Path:
    """The small library that counts calls to the system and ends the process at one of them."""
    library, compiler = folder / "kill.so", shutil.which("cc")
    if compiler is None:
        raise SystemExit("the points are counted by a small C library: install a C compiler")
    if not library.exists():
        source = streams.HERE / "kill.c"
        subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return library


def _fault(check: Callable[[], Any]) -> str | None:
    """What a check that belongs to the tests says, if it fails."""
    try:
        check()
    except AssertionError as error:
        return f"{error}"[:500] or "the check failed"
    return None
