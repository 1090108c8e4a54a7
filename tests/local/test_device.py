"""A device: its budget, its memory, its file; and all of it without NumPy."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from partita.errors import BudgetExceeded, InvalidData, InvalidParameter, InvalidState
from partita.local.device import Device, Report
from partita.local.question import Frequency, Mean

QUESTION = Frequency(1000, epsilon="1/3")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "device.json"


def test_one_question_is_answered_once(path: Path) -> None:
    """The same report for ever, whatever the value has become; it is paid for once."""
    device = Device(path, budget=1)
    first = device.answer(QUESTION, 7)

    assert {device.answer(QUESTION, value) for value in (7, 8, 9)} == {first}
    assert Device(path, budget=1).answer(QUESTION, 7) == first
    assert (device.spent, device.left) == (Fraction(1, 3), Fraction(2, 3))


def test_a_budget_of_three_thirds_pays_three_times(path: Path) -> None:
    """Exactly: the fourth round is refused, and nothing is said or written."""
    device = Device(path, budget=1)
    for name in ("monday", "tuesday", "wednesday"):
        device.answer(QUESTION, 7, name=name)
    before = path.read_bytes()

    with pytest.raises(BudgetExceeded, match="costs epsilon 1/3, and this device has 0 left"):
        device.answer(QUESTION, 7, name="thursday")

    assert path.read_bytes() == before
    assert device.answer(QUESTION, 7, name="monday").question == QUESTION.in_round("monday").digest


def test_rounds_are_different_questions(path: Path) -> None:
    """An aggregator of one round refuses reports, aggregators and states of another: all are of one user."""
    device, weeks = Device(path, budget=1), [QUESTION.in_round(name) for name in ("", "week 1", "week 2")]
    aggregators = [week.aggregator() for week in weeks]
    reports = [device.answer(week, 7) for week in weeks]
    assert weeks[0] == QUESTION
    assert device.answer(QUESTION, 9, name="week 2") == reports[2]
    assert len({report.question for report in reports}) == 3

    for mine, aggregator in enumerate(aggregators):
        for theirs, report in enumerate(reports):
            if mine == theirs:
                aggregator.add(report)
            else:
                with pytest.raises(InvalidData, match="in its round"):
                    aggregator.add(report)
    with pytest.raises(InvalidData, match="in its round"):
        aggregators[1].merge(aggregators[2])
    with pytest.raises(InvalidState, match="same question"):
        type(aggregators[1]).from_bytes(weeks[1], aggregators[2].to_bytes())


@pytest.mark.parametrize("name", ["x" * 101, 5, None, "two\nlines", "\ud800"])
def test_a_round_is_a_short_text(name: Any) -> None:
    """Printable, so that whoever reads a question sees it."""
    with pytest.raises(InvalidParameter, match="round"):
        QUESTION.in_round(name)


def test_a_lost_file_gives_no_new_budget(path: Path) -> None:
    """The lock remembers that there was one: the device says so, now and when it is opened again."""
    device = Device(path, budget=1)
    device.answer(QUESTION, 7)
    kept = path.read_bytes()
    path.unlink()

    for use in (lambda: device.left, lambda: device.answer(QUESTION, 7), lambda: Device(path, budget=1)):
        with pytest.raises(InvalidState, match="gone, though its lock says that it was made; put it back"):
            use()
    assert not path.exists()
    path.write_bytes(kept)
    assert Device(path, budget=1).left == Fraction(2, 3)


def test_a_device_is_on_the_disk_from_the_start(path: Path) -> None:
    """Its budget is written before the first answer; a device that died before that is made again."""
    Path(f"{path}.lock").touch()
    Device(path, budget=1)

    assert json.loads(path.read_bytes()) == {"version": 1, "budget": "1", "memo": {}}
    with pytest.raises(InvalidParameter, match="budget must be 1"):
        Device(path, budget=2)


def test_a_slightly_different_question_costs_anew(path: Path) -> None:
    """A server that varies its question cannot average the noise away: the budget runs out."""
    device = Device(path, budget=1)
    device.answer(QUESTION, 7)
    device.answer(Frequency(1001, epsilon="1/3"), 7)

    assert device.spent == Fraction(2, 3)


def test_the_file_is_private_and_holds_no_value(path: Path) -> None:
    """Mode 0600, and nothing in it that was not sent."""
    device = Device(path, budget=1)
    report = device.answer(Mean(0, 1_000_000, epsilon=1), 271_828)

    [said] = json.loads(path.read_bytes())["memo"].values()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert said == {"epsilon": "1", **report.to_json()}
    assert sorted(os.listdir(path.parent)) == ["device.json", "device.json.lock"]


def test_a_crash_before_the_move_leaves_the_old_file(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    """Nothing was said, nothing is charged, and no other file is left behind."""
    device = Device(path, budget=1)
    device.answer(QUESTION, 7)

    def fails(*_: object) -> None:
        raise OSError("no room")

    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises(OSError, match="no room"):
        device.answer(QUESTION, 7, name="again")

    assert device.spent == Fraction(1, 3)
    assert len(os.listdir(path.parent)) == 2


def test_what_was_said_is_on_the_disk_first(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    """The new file, then its name, then the folder that has the name; only then is the report returned."""
    done: list[str] = []
    shipped, replace = os.fsync, os.replace

    def fsync(number: int) -> None:
        done.append("folder" if stat.S_ISDIR(os.fstat(number).st_mode) else "file")
        shipped(number)

    def move(source: str, target: str) -> None:
        done.append("name")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", move)
    device = Device(path, budget=1)
    done.clear()
    device.answer(QUESTION, 7)

    assert done == ["file", "name", "folder"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"[" * 100_000,
        b'{"version": 2, "budget": "1", "memo": {}}',
        b'{"version": 1, "budget": "0", "memo": {}}',
        b'{"version": 1, "budget": 1, "memo": {}}',
        b'{"version": 1, "budget": "1", "memo": []}',
        b'{"version": 1, "budget": "1", "memo": {"a": {"epsilon": "1"}}}',
        b'{"version": 1, "budget": "1"}',
        b"\xff\xfe",
    ],
)
def test_a_damaged_file_ends_all_answers(path: Path, content: bytes) -> None:
    """To start over could spend the budget twice."""
    path.write_bytes(content)

    with pytest.raises(InvalidState, match="damaged"):
        Device(path, budget=1)


@pytest.mark.parametrize("epsilon", ["-1", "0", "x", 1])
def test_a_forged_price_is_damage(path: Path, epsilon: object) -> None:
    """What was said cost something, and exactly as much as it says."""
    Device(path, budget=1).answer(QUESTION, 7)
    state = json.loads(path.read_bytes())
    [said] = state["memo"].values()
    said["epsilon"] = epsilon
    path.write_text(json.dumps(state))

    if epsilon == 1:
        assert Device(path, budget=1).left == 0
    else:
        with pytest.raises(InvalidState):
            Device(path, budget=1)


def test_a_budget_is_for_life(path: Path) -> None:
    """It is set once; another one is refused, and so is none."""
    Device(path, budget=1).answer(QUESTION, 7)

    with pytest.raises(InvalidParameter, match="budget must be 1, as in the file"):
        Device(path, budget=2)
    with pytest.raises(InvalidParameter, match="budget must be positive"):
        Device(path, budget=0)


def test_the_epsilon_shown_is_the_epsilon_verified() -> None:
    """From text, bytes or an object; a threshold that loses more is refused (see the planted bugs)."""
    written = QUESTION.to_json()

    for sent in (written, json.dumps(written), json.dumps(written).encode()):
        assert Device.verify(sent).epsilon == Fraction(1, 3)


def test_a_report_travels_as_json_or_bytes(path: Path) -> None:
    """Small, and the same on the other side."""
    report = Device(path, budget=1).answer(QUESTION, 7)

    assert Report.from_json(json.loads(json.dumps(report.to_json()))) == report
    assert Report.from_bytes(report.to_bytes()) == report
    assert len(report.to_bytes()) <= 50


@pytest.mark.parametrize(
    "given",
    [
        None,
        [],
        {},
        {"question": 1, "report": 2, "id": 3},
        {"question": "z" * 64, "report": "1", "id": "0" * 32},
    ],
)
def test_a_malformed_report_is_refused(given: Any) -> None:
    """Typed, and without what was in it."""
    with pytest.raises(InvalidData, match="report must hold"):
        Report.from_json(given)
    with pytest.raises(InvalidData):
        Report.from_bytes(b"short")


ALONE = """
import sys
blocked = ("numpy", "flint", "pyarrow", "cryptography", "duckdb", "numba")
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in blocked:
            raise ImportError(name)
sys.meta_path.insert(0, Blocker())
from partita.errors import InvalidParameter
from partita.local.device import Device
from partita.local import Frequency, Mean
device = Device(sys.argv[1], budget=10)
kinds = ("response", "projective", "hadamard", "unary", "hashing")
asked = [Frequency(1000, epsilon=1, kind=kind) for kind in kinds]
spec = Frequency(5, epsilon=1).to_json()
labels = {**spec, "domain": {"kind": "category", "labels": ["a", "b", "c"]}}
spec = Frequency(9, epsilon=1).to_json()
ages = {**spec, "domain": {"kind": "integer", "low": "0", "high": "4"}}
days = {**spec, "domain": {"kind": "date", "first": "2024-01-01", "last": "2024-01-05"}}
means = [Mean(0, 1, epsilon=1), Mean(0, 1, epsilon=1, kind="piecewise")]
for description in [*(question.to_json() for question in [*asked, *means]), labels, ages]:
    question = Device.verify(description)
    assert question.to_json() == description
    question.randomizer.check_report(device.answer(question, 7).value)
try:
    Device.verify(days)
except InvalidParameter as refusal:
    print(refusal)
print(device.spent, sorted(set(sys.modules) & set(blocked)))
"""


@pytest.mark.faults
def test_a_device_needs_the_standard_library_only(path: Path) -> None:
    """With NumPy and all other libraries out of reach every kind of question is verified and answered.

    Dates have no plain form: they are refused by a typed error that says what to install.
    """
    done = subprocess.run(
        [sys.executable, "-c", ALONE, str(path)], capture_output=True, text=True, check=False
    )

    *refusal, last = done.stdout.splitlines()
    assert (last, done.stderr) == ("9 []", "")
    assert refusal == [
        "domain must be of labels or of integers where NumPy is not installed, got 'date'; "
        "install NumPy on this device"
    ]


TOGETHER = """
import sys
from partita.local.device import Device
from partita.local import Frequency
device = Device(sys.argv[1], budget=3)
print([device.answer(Frequency(1000, epsilon=1), 7, name=name).value for name in "abcabc"])
"""


@pytest.mark.faults
def test_processes_share_one_memory(path: Path) -> None:
    """Four of them ask for the same three rounds at once: all get the same reports, paid for once."""
    asked = [
        subprocess.Popen([sys.executable, "-c", TOGETHER, str(path)], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    said = {process.communicate()[0] for process in asked}

    assert len(said) == 1
    assert Device(path, budget=3).left == 0


IMPORT = """
import sys
before = set(sys.modules)
import partita.local.device
print(*set(sys.modules) - before)
"""


@pytest.mark.faults
def test_little_is_imported_for_a_device() -> None:
    """At most 25 modules of ours and 80 in all, none of them of another library.

    `python -m benchmarks.local --only import` says how long that takes.
    """
    done = subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, check=True, text=True)
    loaded = set(done.stdout.split())
    ours = {name for name in loaded if name.partition(".")[0] == "partita"}

    assert len(ours) <= 25
    assert len(loaded) <= 80
    assert {name.partition(".")[0] for name in loaded - ours} <= sys.stdlib_module_names
