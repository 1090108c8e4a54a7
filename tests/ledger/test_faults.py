"""Many processes, kill -9, limits, dead servers: no ledger grants more than the total, or forgets."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from partita.guarantee import Guarantee
from partita.ledger.entries import Amount
from partita.ledger.ledger import Ledger
from tests.engines.postgres_server import PostgresServer

HERE = Path(__file__).parent
MEMORY = Path("/dev/shm")

PROCESSES = 16
TURNS = {"file": 200, "postgres": 25}
CUTS = 3


@pytest.fixture
def swift() -> Iterator[Path]:
    """A folder in memory where there is one: races are about locks, not about disks."""
    with TemporaryDirectory(dir=MEMORY if os.access(MEMORY, os.W_OK) else None) as folder:
        yield Path(folder)


@pytest.fixture(
    params=[
        pytest.param("file", marks=pytest.mark.faults),
        pytest.param("postgres", marks=pytest.mark.engines),
    ]
)
def kind(request: pytest.FixtureRequest) -> str:
    """What keeps the ledger."""
    return str(request.param)


@pytest.fixture
def place(kind: str, swift: Path, request: pytest.FixtureRequest) -> str:
    """Where there is no ledger yet."""
    if kind == "file":
        return str(swift / "budget.db")
    server: PostgresServer = request.getfixturevalue("postgres_server")
    return server.emptied("budget")


def start(script: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, str(HERE / script), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def budget(place: str | Path, epsilon: object = 1) -> Ledger:
    ledger = Ledger(place, patience=300)
    ledger.open("people", epsilon=epsilon)
    return ledger


def sound(ledger: Ledger) -> bool:
    """Whether the store finds no fault, and the balance is the sum of the entries."""
    ledger.store.check()
    spent = sum((entry.charged for entry in ledger.entries("people")), start=Amount())
    return spent == ledger.balance("people").spent


def told(workers: Sequence[subprocess.Popen[str]]) -> dict[str, list[int]]:
    """What workers have printed by their end: for each word the numbers behind it."""
    lines = [line.split() for worker in workers for line in worker.communicate()[0].splitlines()]
    assert [worker.returncode for worker in workers] == [0] * len(workers)
    return {word: [int(n) for said, n in lines if said == word] for word in ("granted", "unheard", "refused")}


def test_processes_never_spend_more_than_the_total(place: str, kind: str) -> None:
    """Of the debits of 16 processes as many are granted as fit, to the last, and every one is stored."""
    asked = PROCESSES * TURNS[kind]
    fitting = asked * 3 // 4
    ledger = budget(place)
    heard = told(
        [start("worker.py", place, "people", Fraction(1, fitting), TURNS[kind]) for _ in range(PROCESSES)]
    )

    assert (len(heard["granted"]), heard["unheard"]) == (fitting, [])
    assert sum(heard["refused"]) == asked - fitting
    assert sorted(heard["granted"]) == [entry.number for entry in ledger.entries("people")]
    assert ledger.balance("people").left == Amount()
    assert sound(ledger)


@pytest.mark.parametrize("reports", [1, 3, 7, 12, 20, 31])
def test_kill_9_leaves_whole_debits_only(place: str, reports: int) -> None:
    """What was reported is there; of what was not, one debit at most, and that one whole."""
    ledger = budget(place)
    workers = [start("worker.py", place, "people", "1/100000", 100_000) for _ in range(2)]
    reported = set()
    for worker in workers:
        assert worker.stdout is not None
        reported |= {int(worker.stdout.readline().split()[1]) for _ in range(reports)}
    for worker in workers:
        worker.send_signal(signal.SIGKILL)
    for worker in workers:
        # A line that the signal cut off is no report.
        whole = worker.communicate()[0].splitlines(keepends=True)
        reported |= {int(line.split()[1]) for line in whole if line.endswith("\n")}

    entries = {entry.number for entry in Ledger(place).entries("people")}
    assert reported <= entries
    assert len(entries - reported) <= len(workers)
    assert sound(ledger)


def test_a_death_inside_a_transaction_undoes_it(place: str) -> None:
    """Of what the dead process had written, nothing is there, and the next one may write at once."""
    ledger = budget(place)
    crash = start("crash.py", place, "people")
    crash.communicate()

    assert crash.returncode == 9
    assert ledger.entries("people") == ()
    assert ledger.debit("people", Guarantee(epsilon=1), what="ages").state == "debited"
    assert sound(ledger)


@pytest.mark.faults
@pytest.mark.sample
def test_a_death_inside_a_transaction_is_undone_from_the_journal(tmp_path: Path) -> None:
    """What the dead process had already put into the file is rolled back."""
    ledger = budget(tmp_path / "budget.db")
    before = ledger.path.stat().st_size
    start("crash.py", ledger.path, "people").communicate()

    assert ledger.path.stat().st_size > before
    assert (tmp_path / "budget.db-journal").stat().st_size > 0
    assert ledger.entries("people") == ()


@pytest.mark.engines
def test_a_server_that_dies_under_load_spends_nothing_twice_and_loses_nothing(
    postgres_server: PostgresServer,
) -> None:
    """Every request is charged once, whatever was heard of it, and what was confirmed is there."""
    place, workers, turns = postgres_server.emptied("budget"), 4, 60
    fitting = workers * turns * 3 // 4
    ledger = budget(place)
    running = [start("worker.py", place, "people", Fraction(1, fitting), turns) for _ in range(workers)]
    early = []
    for _ in range(CUTS):
        early += [line.split() for worker in running for line in read(worker, 4)]
        postgres_server.restart_at_once()
    heard = told(running)

    confirmed = {int(number) for word, number in early if word == "granted"} | {*heard["granted"]}
    entries = {entry.number for entry in ledger.entries("people")}
    assert confirmed <= entries
    assert len(entries) == fitting
    assert len(confirmed) + lost(early, heard) == fitting
    assert sum(heard["refused"]) == workers * turns - fitting
    assert ledger.balance("people").left == Amount()
    assert sound(ledger)


def read(worker: subprocess.Popen[str], lines: int) -> list[str]:
    assert worker.stdout is not None
    return [worker.stdout.readline() for _ in range(lines)]


def lost(early: Sequence[Sequence[str]], heard: dict[str, list[int]]) -> int:
    """How many debits were made, and the answer not heard."""
    return sum(word == "unheard" for word, _ in early) + len(heard["unheard"])


LIMITED = """
import resource, sys
from partita.errors import LedgerError
from partita.guarantee import Guarantee
from partita.ledger.ledger import Ledger
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


@pytest.mark.faults
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
from partita.ledger.ledger import Ledger
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


@pytest.mark.faults
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
