"""Kill -9, power cuts, races, full disks: no period has two outputs, and nothing acknowledged is lost."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.trusted.streams.durable.doomed import PERIODS, totals
from tests.trusted.streams.durable.planted import PLANTED

pytestmark = pytest.mark.faults

HERE = Path(__file__).parent
ROOT = HERE.parents[3]
MEMORY = Path("/dev/shm")
COMPILER = shutil.which("cc")
COUNTERS = [
    ("system", "counter", 11),
    ("none", "counter", 13),
    ("system", "tree", 17),
    ("system", "family", 17),
    ("none", "family", 17),
]
"""With which noise, which counter dies at every how many points. Calls have two or three points each: before,
within and after are all met, and other points for each of them."""
FINE = 3

SECRET = ("visits.db", "visits.db-wal", "visits.pan")


@pytest.fixture
def swift() -> Iterator[Path]:
    """A folder in memory where there is one: processes are killed, not machines."""
    with TemporaryDirectory(dir=MEMORY if os.access(MEMORY, os.W_OK) else None) as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that counts calls and kills."""
    if COMPILER is None or sys.platform != "linux":
        pytest.skip("the points at which to kill are counted by a small C library, for Linux")
    library = tmp_path_factory.mktemp("shim") / "kill.so"
    source = HERE / "kill.c"
    subprocess.run([COMPILER, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return library


def start(script: str, *arguments: object, **environment: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(HERE / script), *map(str, arguments)]
    surroundings = os.environ | {"PYTHONPATH": str(ROOT)} | environment
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=surroundings)


def lives(shim: Path, folder: Path, *arguments: object) -> Iterator[dict[str, Any]]:
    """What became of each life; the process is ended when nobody asks any more."""
    process = start("doomed.py", folder, *arguments, LD_PRELOAD=str(shim))
    assert process.stdout is not None
    try:
        for line in process.stdout:
            yield json.loads(line)
        assert process.wait() == 0
    finally:
        process.kill()
        process.communicate()


def faults(history: dict[str, Any], noise: str, mechanism: str) -> list[str]:
    """Everything that is wrong with two lives of a counter; without noise its outputs are known."""
    exact = noise == "none"
    first, second = history["first"], history["second"]
    said = [words[1:] for life in (first, second) for words in life["said"] if words[0] == "output"]
    left = history["left"]
    wrong = {
        "a life that was not killed has failed": second["status"] or len(second["said"][-1]) != 3,
        "an error": any(words[0] == "error" for life in (first, second) for words in life["said"]),
        "an output was taken back or changed": left[: len(history["saw"])] != history["saw"],
        "an output was said that is not published": any(output not in left for output in said),
        "not one output for each period": [period for period, _ in left] != list(range(1, PERIODS + 1)),
        "the ledger was not charged once": history["entries"] != ["done"],
        "events are lost or counted twice": exact and left[-1:] != [[PERIODS, totals(mechanism)]],
        "something was told before it was durable": unsynced(second["said"][-1][-1]),
    }
    return [what for what, happened in wrong.items() if happened]


def unsynced(diary: str) -> bool:
    """Whether something was said or published while the secret file had writes that were not synced."""
    waiting = set()
    for line in diary.splitlines():
        act, name = line.split(" ", 1)
        if name in SECRET:
            waiting.add(name) if act == "write" else waiting.discard(name)
        elif act == "write" and waiting and ("pipe" in name or name == "visits.outputs"):
            return True
    return False


def faultless_deaths(shim: Path, folder: Path, noise: str, mechanism: str, *arguments: object) -> int:
    """How many lives were ended; nothing is wrong with any of them, nor with the lives after them."""
    killed = 0
    for history in lives(shim, folder, noise, mechanism, *arguments):
        assert faults(history, noise, mechanism) == [], history
        killed += history["first"]["status"] == signal.SIGKILL
    return killed


def test_kill_9_at_any_point(shim: Path, swift: Path) -> None:
    """At over 100 points: the second life publishes what the first had stored, and counts the rest once."""
    killed = [
        faultless_deaths(shim, swift, noise, mechanism, "kill", stride)
        for noise, mechanism, stride in COUNTERS
    ]

    assert min(killed) > 30
    assert sum(killed) > 100


def test_kill_9_of_a_pan_private_counter(shim: Path, swift: Path) -> None:
    """A lost period is lost, but no output is taken back, changed or missing."""
    assert faultless_deaths(shim, swift, "system", "pan-private", "kill", FINE) > 100


@pytest.mark.parametrize(
    ("noise", "mechanism"), [("none", "counter"), ("none", "family"), ("system", "pan-private")]
)
def test_power_cuts(shim: Path, swift: Path, noise: str, mechanism: str) -> None:
    """If nothing is left but what was synced, what was acknowledged and what anybody saw is still there."""
    assert faultless_deaths(shim, swift, noise, mechanism, "cut", 13) > 20


@pytest.mark.parametrize(
    ("bug", "mechanism"),
    [
        *((bug, "counter") for bug in PLANTED if bug != "sort_the_keys"),
        *((bug, "family") for bug in ("publish_before_commit", "drop_the_state", "sort_the_keys")),
    ],
)
def test_planted_faults_are_found(shim: Path, swift: Path, bug: str, mechanism: str) -> None:
    """Each of them shows at some point."""
    noise = "system" if bug in ("publish_before_commit", "drop_the_state") else "none"
    end = "cut" if bug == "never_sync" else "kill"
    found = lives(shim, swift, noise, mechanism, end, FINE, bug)

    assert any(faults(history, noise, mechanism) for history in found)


def test_processes_that_race_have_one_writer(swift: Path) -> None:
    """Of eight at once, those that do not get the counter are told so; every period has one output."""
    for _ in range(5):
        process = start("racing.py", swift / "race")
        said = [json.loads(line) for line in process.communicate()[0].splitlines()]
        assert process.returncode == 0

        outputs = {(period, exact) for who in said for period, exact in who["outputs"]}
        assert {who["error"] for who in said} <= {None, "StreamBusy"}
        assert sorted(period for period, _ in outputs) == [1, 2, 3]
        assert said[-1]["entries"] == ["done"]
        shutil.rmtree(swift / "race")


@pytest.mark.parametrize("room", [0, 2_000, pytest.param(5_000, marks=pytest.mark.sample), 20_000])
def test_a_full_disk_loses_nothing(swift: Path, room: int) -> None:
    """What cannot be stored is refused with a typed error; when there is room again, all is counted once."""
    process = start("full.py", swift, room)
    said = json.loads(process.communicate()[0])

    assert process.returncode == 0
    assert set(said["errors"]) == {"StreamError"}
    assert said["outputs"][: len(said["before"])] == said["before"]
    assert said["outputs"][-1] == said["sent"]
