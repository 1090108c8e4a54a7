"""One writer, one public file, one story: what copies, forks, backups and dead clocks may not break."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from partita.errors import StreamBusy, StreamError, StreamForked
from partita.ledger.ledger import Ledger
from partita.public.streams import SECOND, OutputsFile
from partita.testing import ZeroNoise
from partita.trusted.durable.open import open_counter, resume_counter
from partita.trusted.durable.stream import DurableCounter, Writer
from tests.trusted.streams.durable.conftest import Opener, known_by

MECHANISMS = ("counter", "pan-private")

OPEN_ELSEWHERE = """
import sys
from partita.errors import StreamBusy
from partita.trusted.durable.open import resume_counter
try:
    resume_counter(sys.argv[1], catch_up=False)
except StreamBusy:
    sys.exit(7)
"""

FORK_AND_DIE = """
import os, signal, sys
from partita.trusted.durable.open import open_counter
from partita.testing import ZeroNoise
with open_counter(sys.argv[1], epsilon=1, period=1, start=0, now=0, noise=ZeroNoise()) as counter:
    child = os.fork()
    if not child:
        sys.exit(0)
    os.waitpid(child, 0)
    counter.add(1000, feeder="gate", sequence=1)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def python(script: str, *arguments: object) -> int:
    return subprocess.run([sys.executable, "-c", script, *map(str, arguments)], check=False).returncode


@pytest.fixture(params=MECHANISMS)
def copies(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[Path, Path, Ledger]:
    """Two copies of a counter after two periods, and the ledger that paid for it."""
    ledger = Ledger(tmp_path / "budget.db")
    ledger.open("visits", epsilon=1, unit="event")
    paid: dict[str, Any] = {"ledger": ledger, "dataset": "visits", "mechanism": request.param, "horizon": 9}
    (tmp_path / "a").mkdir()
    with open_counter(tmp_path / "a" / "visits", epsilon=1, period=1, start=0, now=0, **paid) as counter:
        counter.tick(now=2)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    return tmp_path / "a" / "visits", tmp_path / "b" / "visits", ledger


def resumed(path: Path, ledger: Ledger) -> DurableCounter:
    return resume_counter(path, ledger=ledger, catch_up=False)


def add(counter: DurableCounter, count: int) -> None:
    counter.add(count, **known_by(counter.settings.mechanism, 1))


def test_of_two_open_copies_the_later_one_publishes(copies: tuple[Path, Path, Ledger]) -> None:
    """The earlier one is refused, for good, and its public file stays as it was."""
    first, second, ledger = copies
    with resumed(first, ledger) as earlier, resumed(second, ledger) as later:
        add(earlier, 5)
        add(later, 50_000)
        for _ in range(2):
            with pytest.raises(StreamForked, match="opened again elsewhere"):
                earlier.tick(now=3)
        assert len(later.tick(now=3)) == 1
        with pytest.raises(StreamForked, match="opened again elsewhere"):
            earlier.tick(now=4)

        assert len(list(earlier.outputs())) == 2
    with pytest.raises(StreamForked):
        resumed(first, ledger)


def test_a_copy_that_was_overtaken_is_refused_at_the_same_number_of_periods(
    copies: tuple[Path, Path, Ledger], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It closed a period and told nobody; meanwhile the other one published that period."""
    first, second, ledger = copies

    def crash(*arguments: object) -> None:
        raise KeyboardInterrupt

    with resumed(first, ledger) as counter, monkeypatch.context() as patched:
        patched.setattr(Writer, "reach", crash)
        add(counter, 5)
        with pytest.raises(KeyboardInterrupt):
            counter.tick(now=3)
    with resumed(second, ledger) as counter:
        add(counter, 50_000)
        counter.tick(now=3)
    with pytest.raises(StreamForked, match="another output for period 3"):
        resumed(first, ledger)


def test_a_file_that_could_not_grow_is_written_later(
    copies: tuple[Path, Path, Ledger], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger has heard of the period already, from this writer, who is not refused."""

    def full(*arguments: object) -> None:
        raise StreamError("the disk is full")

    with resumed(copies[0], copies[2]) as counter:
        with monkeypatch.context() as patched:
            patched.setattr(OutputsFile, "write", full)
            with pytest.raises(StreamError, match="full"):
                counter.tick(now=3)

        assert [output.period for output in counter.tick(now=4)] == [3, 4]


def test_the_lock_outlives_a_backup_in_the_same_process(opened: Opener, tmp_path: Path) -> None:
    """To open and close the database drops SQLite's lock, and not that of the counter."""
    with opened() as counter:
        counter.add(5, feeder="gate", sequence=1)
        (tmp_path / "visits.db").read_bytes()

        assert python(OPEN_ELSEWHERE, tmp_path / "visits") == 7
        counter.add(7, feeder="gate", sequence=2)
        assert counter.tick(now=1)[0].value == 12
    assert python(OPEN_ELSEWHERE, tmp_path / "visits") == 0


def test_a_child_that_ends_loses_nothing(tmp_path: Path) -> None:
    """An event that the parent acknowledged after its child left is there when the parent is killed."""
    assert python(FORK_AND_DIE, tmp_path / "visits") == -9
    with resume_counter(tmp_path / "visits", catch_up=False, noise=ZeroNoise()) as counter:
        assert counter.tick(now=1)[0].value == 1000


def test_a_child_that_closes_the_counter_leaves_it_to_its_parent(opened: Opener, tmp_path: Path) -> None:
    """The parent goes on, and still keeps others out."""
    with opened() as counter:
        counter.add(1, feeder="gate", sequence=1)
        child = os.fork()
        if not child:
            counter.close()
            os._exit(0)
        os.waitpid(child, 0)

        assert (tmp_path / "visits.db-wal").exists()
        assert python(OPEN_ELSEWHERE, tmp_path / "visits") == 7
        assert counter.tick(now=1)[0].value == 1


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("periods", [0, 2])
def test_a_state_without_its_public_file_is_refused(
    opened: Opener, tmp_path: Path, mechanism: str, periods: int
) -> None:
    """It may be an old copy, wherever it is told to publish; a file that was moved there is found."""
    kind: dict[str, Any] = {"mechanism": mechanism, "horizon": 9}
    with opened(**kind) as counter:
        counter.tick(now=periods)
    elsewhere = tmp_path / "elsewhere.outputs"
    with pytest.raises(StreamForked, match="is missing"):
        opened(**kind, outputs=elsewhere)
    assert not elsewhere.exists()
    os.rename(tmp_path / "visits.outputs", elsewhere)
    with pytest.raises(StreamForked, match="is missing"):
        opened(**kind)
    with opened(**kind, outputs=elsewhere) as counter:
        assert counter.periods == periods


class Clock:
    """A moment that a test sets; the clock of the counter asks for it again and again."""

    def __init__(self) -> None:
        self._moments = iter(range(SECOND, 10**6 * SECOND, SECOND))

    def __call__(self) -> int:
        """A nanosecond before the next end of a period."""
        return next(self._moments) - 1


def test_the_clock_goes_on_after_the_disk_refused(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    """It tries again when the next period ends; each output is handed over once."""
    counter, seen, done = opened(horizon=5), [], threading.Event()
    write, refused = OutputsFile.write, iter([True, True])

    def refuse_twice(*arguments: Any) -> None:
        if next(refused, False):
            raise StreamError("the disk is full")
        write(*arguments)

    def each(output: Any) -> None:
        seen.append(output.period)
        if output.period == 5:
            done.set()

    monkeypatch.setattr(OutputsFile, "write", refuse_twice)
    with counter.running(each, now=Clock()):
        assert done.wait(60)

    assert seen == [1, 2, 3, 4, 5]
    assert next(refused, False) is False


def test_nobody_feeds_a_counter_whose_clock_has_died(opened: Opener) -> None:
    """What stopped it is told to who feeds, and raised when the block ends."""

    def each(output: Any) -> None:
        raise OSError("no paper")

    counter = opened()

    def feed() -> None:
        ticker = counter._ticker
        assert ticker is not None
        ticker._thread.join(60)
        with pytest.raises(StreamError, match="clock of this counter has stopped"):
            counter.add(feeder="gate", sequence=1)

    with pytest.raises(OSError, match="no paper"), counter.running(each, now=lambda: 2 * SECOND):
        feed()
    counter.add(feeder="gate", sequence=1)


def test_a_second_writer_is_refused_by_the_lock_alone(opened: Opener, tmp_path: Path) -> None:
    """The lock file stays when the counter is closed, and keeps nobody out then."""
    with opened(), pytest.raises(StreamBusy):
        opened()
    assert (tmp_path / "visits.db.lock").exists()
    opened().close()
