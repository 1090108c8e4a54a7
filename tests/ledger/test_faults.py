"""Many processes, kill -9, limits: the ledger never grants more than the total and never forgets."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from partita.ledger import Amount, Ledger

pytestmark = pytest.mark.faults

HERE = Path(__file__).parent
MEMORY = Path("/dev/shm")

PROCESSES, TURNS = 16, 200


@pytest.fixture
def swift() -> Iterator[Path]:
    """A folder in memory where there is one: races are about locks, not about disks."""
    with TemporaryDirectory(dir=MEMORY if os.access(MEMORY, os.W_OK) else None) as folder:
        yield Path(folder)


def start(script: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, str(HERE / script), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def budget(path: Path, epsilon: object = 1) -> Ledger:
    ledger = Ledger(path, patience=300)
    ledger.open("people", epsilon=epsilon)
    return ledger


def sound(ledger: Ledger) -> bool:
    """Whether SQLite finds no fault, and the balance is the sum of the entries."""
    spent = sum((entry.charged for entry in ledger.entries("people")), start=Amount())
    with closing(sqlite3.connect(ledger.path)) as connection:
        verdict = connection.execute("PRAGMA integrity_check").fetchone()
    return bool(verdict == ("ok",) and spent == ledger.balance("people").spent)


def test_processes_never_spend_more_than_the_total(swift: Path) -> None:
    """Of 16 x 200 debits as many are granted as fit, to the last, and every one is in the file."""
    fitting = PROCESSES * TURNS * 3 // 4
    ledger = budget(swift / "budget.db")
    workers = [
        start("worker.py", ledger.path, "people", Fraction(1, fitting), TURNS) for _ in range(PROCESSES)
    ]
    lines = [line for worker in workers for line in worker.communicate()[0].splitlines()]

    assert [worker.returncode for worker in workers] == [0] * PROCESSES
    granted = sorted(int(line) for line in lines if line.isdigit())
    refused = sum(int(line.split()[1]) for line in lines if line.startswith("refused"))
    assert (len(granted), refused) == (fitting, PROCESSES * TURNS - fitting)
    assert granted == [entry.number for entry in ledger.entries("people")]
    assert ledger.balance("people").left == Amount()
    assert sound(ledger)


@pytest.mark.parametrize("reports", [1, 3, 7, 12, 20, 31])
def test_kill_9_leaves_whole_debits_only(tmp_path: Path, reports: int) -> None:
    """What was reported is there; of what was not, one debit at most, and that one whole."""
    ledger = budget(tmp_path / "budget.db")
    workers = [start("worker.py", ledger.path, "people", "1/100000", 100_000) for _ in range(2)]
    reported = set()
    for worker in workers:
        assert worker.stdout is not None
        reported |= {int(worker.stdout.readline()) for _ in range(reports)}
    for worker in workers:
        worker.send_signal(signal.SIGKILL)
    for worker in workers:
        reported |= {int(line) for line in worker.communicate()[0].splitlines()}

    entries = {entry.number for entry in Ledger(ledger.path).entries("people")}
    assert reported <= entries
    assert len(entries - reported) <= len(workers)
    assert sound(ledger)


def test_a_death_inside_a_transaction_undoes_it(tmp_path: Path) -> None:
    """What the dead process had already put into the file is rolled back from its journal."""
    ledger = budget(tmp_path / "budget.db")
    before = ledger.path.stat().st_size
    crash = start("crash.py", ledger.path, "people")
    crash.communicate()

    assert crash.returncode == 9
    assert ledger.path.stat().st_size > before
    assert (tmp_path / "budget.db-journal").stat().st_size > 0
    assert ledger.entries("people") == ()
    assert sound(ledger)


LIMITED = """
import resource, sys
from partita.errors import LedgerError
from partita.guarantee import Guarantee
from partita.ledger import Ledger
ledger = Ledger(sys.argv[1])
limit = ledger.path.stat().st_size + 8192
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
granted = 0
try:
    for granted in range(10_000):
        ledger.debit("people", Guarantee(epsilon="1/100000"), what="long " * 39 + "text")
except LedgerError as error:
    print(granted, str(error))
"""


def run(code: str, *arguments: object) -> str:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_a_file_that_may_not_grow_loses_nothing(swift: Path) -> None:
    """Where the system refuses to write, debits are refused and the granted ones stay."""
    ledger = budget(swift / "budget.db")
    granted, _, message = run(LIMITED, ledger.path).partition(" ")

    assert "budget.db' could not be read or written" in message
    assert len(ledger.entries("people")) == int(granted) > 0
    assert sound(ledger)


UNPRIVILEGED = """
import os, sys
from partita.errors import LedgerError
from partita.guarantee import Guarantee
from partita.ledger import Ledger
if os.geteuid() == 0:
    os.seteuid(65534)
try:
    ledger = Ledger(sys.argv[1])
    if sys.argv[2] == "open":
        ledger.open("visits", epsilon=1)
    print(ledger.balance("people").left)
    ledger.debit("people", Guarantee(epsilon=1), what="ages")
except LedgerError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("file_mode", "folder_mode", "act", "said"),
    [
        (0o444, 0o555, "debit", "epsilon 1\nledger .* cannot be (written|opened); check"),
        (0o666, 0o555, "debit", "epsilon 1\nledger .* cannot be (written|opened); check"),
        (0o000, 0o555, "debit", "ledger .* cannot be opened; check"),
        (0o444, 0o555, "open", "ledger .* cannot be (written|opened); check"),
        (None, 0o555, "open", r"ledger .* cannot be created \(Permission denied\)"),
        (0o444, 0o000, "debit", "ledger .* does not exist; open a dataset first, or check the path"),
    ],
)
def test_without_permission_to_write_the_error_says_what_to_check(
    swift: Path, file_mode: int | None, folder_mode: int, act: str, said: str
) -> None:
    """Reading works where it may; writing is refused with the path and a fix."""
    swift.chmod(0o755)
    folder = swift / "closed"
    folder.mkdir()
    if file_mode is not None:
        budget(folder / "budget.db").path.chmod(file_mode)
        (folder / "budget.db-journal").unlink()
    folder.chmod(folder_mode)
    answer = run(UNPRIVILEGED, folder / "budget.db", act)
    folder.chmod(0o755)

    assert_said(said, answer)


def assert_said(pattern: str, answer: str) -> None:
    with pytest.raises(RuntimeError, match=f"^{pattern}"):
        raise RuntimeError(answer)
