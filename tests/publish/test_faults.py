"""Many processes and kill -9: no release without a debit, no two releases for one."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from partita.ledger.ledger import Ledger
from partita.public.file import load
from tests.publish.doomed import STEPS

pytestmark = pytest.mark.faults

HERE = Path(__file__).parent
PLACE = "people.release.parquet"
PROCESSES = 16


def budget(folder: Path, epsilon: object = 3) -> Ledger:
    ledger = Ledger(folder / "budget.db", patience=300)
    ledger.open("people", epsilon=epsilon)
    return ledger


def start(folder: Path, key: str, path: str, *death: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(HERE / "doomed.py"), str(folder), key, path, *death]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def run(folder: Path, key: str = "k1", path: str = PLACE, *death: str) -> str:
    """What the process said in the end; nothing if it was killed."""
    process = start(folder, key, path, *death)
    said, _ = process.communicate()
    assert process.returncode == (-signal.SIGKILL if death else 0)
    return said.strip()


FREE = [("count", "before"), ("count", "after"), ("debit", "before")]
LOST = [
    ("debit", "after"),
    ("draw", "before"),
    ("draw", "after"),
    ("write", "before"),
    ("write", "after"),
    ("commit", "before"),
]
KEPT = [("commit", "after"), ("mark", "before"), ("mark", "after")]


def test_every_step_is_tried() -> None:
    """Before and after each step, once."""
    tried = Counter([*FREE, *LOST, *KEPT])

    assert tried == Counter((step, moment) for step in STEPS for moment in ("before", "after"))


@pytest.mark.parametrize("death", FREE, ids="-".join)
def test_killed_before_the_debit_nothing_is_spent(tmp_path: Path, death: tuple[str, str]) -> None:
    """There is no release and no debit, and the same key publishes as if nothing had been."""
    ledger = budget(tmp_path)
    run(tmp_path, "k1", PLACE, *death)

    assert ledger.entries("people") == ()
    assert not (tmp_path / PLACE).exists()
    assert run(tmp_path) == "published drawn"
    assert [entry.state for entry in ledger.entries("people")] == ["done"]


@pytest.mark.parametrize("death", [pytest.param(LOST[0], marks=pytest.mark.sample), *LOST[1:]], ids="-".join)
def test_killed_between_debit_and_rename_the_debit_is_lost(tmp_path: Path, death: tuple[str, str]) -> None:
    """There is one debit and no release; the key never draws again, and a new key pays again."""
    ledger = budget(tmp_path)
    run(tmp_path, "k1", PLACE, *death)

    assert [entry.state for entry in ledger.entries("people")] == ["debited"]
    assert not (tmp_path / PLACE).exists()
    assert run(tmp_path) == "BudgetLost"
    assert run(tmp_path, "k2") == "published drawn"
    assert [entry.key for entry in ledger.entries("people")] == ["k1", "k2"]
    assert load(tmp_path / PLACE).guarantee is not None


@pytest.mark.parametrize("death", KEPT, ids="-".join)
def test_killed_after_the_rename_the_release_is_kept(tmp_path: Path, death: tuple[str, str]) -> None:
    """There is one debit and one whole release; the key returns it without a draw, byte for byte."""
    ledger = budget(tmp_path)
    run(tmp_path, "k1", PLACE, *death)
    content = (tmp_path / PLACE).read_bytes()

    assert run(tmp_path) == "published"
    assert (tmp_path / PLACE).read_bytes() == content
    assert [(entry.key, entry.state) for entry in ledger.entries("people")] == [("k1", "done")]


@pytest.mark.parametrize("death", [("write", "before"), ("commit", "before")], ids="-".join)
def test_the_next_publish_removes_what_a_killed_one_left(tmp_path: Path, death: tuple[str, str]) -> None:
    """The half-written file of a killed process is gone once another one publishes into the folder."""
    budget(tmp_path)
    run(tmp_path, "k1", PLACE, *death)
    left = list(tmp_path.glob(".partita-*.part"))
    run(tmp_path, "k2", "other.parquet")

    assert len(left) == 1
    assert list(tmp_path.glob(".partita-*")) == []


def test_processes_that_race_for_the_last_budget_get_what_fits(tmp_path: Path) -> None:
    """Of sixteen, five are published, with a debit and a file each; eleven are refused and drew nothing."""
    ledger = budget(tmp_path, epsilon=5)
    workers = [start(tmp_path, "", f"{turn}.parquet") for turn in range(PROCESSES)]
    said = Counter(worker.communicate()[0].strip() for worker in workers)

    assert said == Counter({"published drawn": 5, "BudgetExceeded": PROCESSES - 5})
    assert [entry.state for entry in ledger.entries("people")] == ["done"] * 5
    assert len(list(tmp_path.glob("*.parquet"))) == 5
    assert list(tmp_path.glob(".partita-*")) == []


def test_processes_with_one_key_make_one_release(tmp_path: Path) -> None:
    """Whoever is first draws; the others get the stored release, or are told that it is not there yet."""
    ledger = budget(tmp_path)
    workers = [start(tmp_path, "k1", PLACE) for _ in range(8)]
    said = Counter(worker.communicate()[0].strip() for worker in workers)

    assert said["published drawn"] == 1
    assert set(said) <= {"published drawn", "published", "BudgetLost", "InvalidParameter"}
    assert [entry.state for entry in ledger.entries("people")] == ["done"]
    assert load(tmp_path / PLACE).guarantee is not None


def test_processes_with_one_place_never_overwrite(tmp_path: Path) -> None:
    """Without keys, one of them stores its release; no other draws unless it has paid."""
    ledger = budget(tmp_path, epsilon=4)
    workers = [start(tmp_path, "", PLACE) for _ in range(4)]
    said = Counter(worker.communicate()[0].strip() for worker in workers)

    states = Counter(entry.state for entry in ledger.entries("people"))
    assert said["published drawn"] == states["done"] == 1
    assert said["InvalidParameter drawn"] == states["lost"] == states.total() - 1
    assert load(tmp_path / PLACE).guarantee is not None
