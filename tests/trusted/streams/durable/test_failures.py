"""What fails on the way: the disk, a transaction, a forked child. Nothing is lost, and nothing redrawn."""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
from pathlib import Path
from typing import Any, cast

import pytest

from partita.errors import InvalidState, StreamBusy, StreamError
from partita.public.streams import Settings
from partita.trusted.durable import journal
from partita.trusted.durable.events import Event
from partita.trusted.durable.journal import Journal
from partita.trusted.streams.base import ContinualCounter
from tests.trusted.streams.durable.conftest import Opener


def full(handle: int, data: bytes) -> int:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_an_output_that_cannot_be_written_waits(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is stored, not seen, and published unchanged as soon as there is room."""
    counter = opened(noise=None)
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with pytest.raises(StreamError, match="cannot grow: the disk is full"):
            counter.tick(now=1)
    assert (counter.periods, counter.value, list(counter.outputs())) == (0, 0.0, [])
    stored = cast("ContinualCounter", counter._counter).exact
    counter.tick(now=1)

    assert [output.exact for output in counter.outputs()] == [stored]


def test_the_log_does_not_grow_while_outputs_wait(
    opened: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Feeding goes on through an outage, and what it writes is moved to its place as ever."""
    monkeypatch.setattr(journal, "_PAGES", 8)
    counter = opened()
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with pytest.raises(StreamError):
            counter.tick(now=1)
    for sequence in range(100):
        counter.add(feeder="gate", sequence=2 * sequence)

    assert (tmp_path / "visits.db-wal").stat().st_size < 32 * 4096


def test_an_output_that_was_written_in_part_is_written_again(
    opened: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readers see the periods before it until then."""
    counter, write = opened(noise=None), os.write

    def half(handle: int, data: bytes) -> int:
        write(handle, bytes(data)[: len(data) // 2])
        return full(handle, data)

    counter.tick(now=1)
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", half)
        with pytest.raises(StreamError):
            counter.tick(now=2)
    assert (tmp_path / "visits.outputs").stat().st_size == 1024 + 64 + 32
    assert len(list(counter.outputs())) == 1
    counter.close()

    assert [output.period for output in opened(noise=None).outputs()] == [1, 2]


def test_a_transaction_that_fails_changes_nothing(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    """Events stay where they were, and the period is closed at the next tick."""

    def broken(self: Any) -> None:
        raise sqlite3.OperationalError

    counter = opened()
    counter.add(5, feeder="gate", sequence=1)
    with monkeypatch.context() as patched:
        patched.setattr(Journal, "_save", broken)
        for act in (lambda: counter.tick(now=1), lambda: counter.add(feeder="gate", sequence=2)):
            with pytest.raises(StreamError):
                act()
    assert list(counter.outputs()) == []
    counter.add(feeder="gate", sequence=2)

    assert [output.value for output in counter.tick(now=1)] == [6.0]


def test_a_forked_child_may_not_go_on(opened: Opener) -> None:
    """It is told to leave the counter to its parent, who goes on undisturbed."""
    counter = opened()
    child = os.fork()
    if not child:
        try:
            counter.add(feeder="gate", sequence=1)
        except StreamBusy:
            os._exit(7)
        os._exit(0)
    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 7
    assert counter.tick(now=1)[0].value == 0


def test_threads_may_feed_while_the_clock_ticks(opened: Opener) -> None:
    """Each event counts once, in some period."""
    counter = opened()

    def feed(name: str) -> None:
        for sequence in range(0, 40, 2):
            counter.add_many([Event(name, sequence), Event(name, sequence + 1)])

    threads = [threading.Thread(target=feed, args=(f"gate-{i}",)) for i in range(4)]
    for thread in threads:
        thread.start()
    for period in range(1, 30):
        counter.tick(now=period)
    for thread in threads:
        thread.join()

    assert counter.tick(now=30)[0].value == 4 * 40
    assert [output.period for output in counter.outputs()] == list(range(1, 31))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        "null",
        "[" * 10**5,
        '{"epsilon": "1"}',
        '{"mechanism":"counter","epsilon":"1e999999","period":1,"start":0,"horizon":null,"change":1,'
        '"contributions":1,"unit":"event","dataset":null,"options":{},"counter":""}',
        '{"mechanism":"counter","epsilon":"1","period":0,"start":0,"horizon":null,"change":1,'
        '"contributions":1,"unit":"event","dataset":null,"options":{},"counter":""}',
        '{"mechanism":"counter","epsilon":"1","period":1,"start":0,"horizon":null,"change":1,'
        '"contributions":1,"unit":"event","dataset":null,"options":[],"counter":""}',
        '{"mechanism":7,"epsilon":"1","period":1,"start":0,"horizon":null,"change":1,'
        '"contributions":1,"unit":"event","dataset":null,"options":{},"counter":""}',
    ],
)
def test_settings_from_anybody_are_checked(text: str) -> None:
    """What no counter was opened with is refused."""
    with pytest.raises(InvalidState, match="settings must be of a counter"):
        Settings.from_text(text)
