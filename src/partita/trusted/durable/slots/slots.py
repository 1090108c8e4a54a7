"""A pan-private counter in a file of two slots: no events, no log, and a lost period is lost."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, final

from partita.errors.errors import InvalidState, StreamError
from partita.public.streams.outputs import OutputsFile
from partita.public.streams.settings import Settings, failed
from partita.public.streams.terms import LARGEST
from partita.trusted.durable.events.events import CheckedEvent, sum_by_period
from partita.trusted.durable.events.mechanisms import AnyCounter, record_after, restore_counter
from partita.trusted.durable.slots.slots_file import PanStore
from partita.trusted.noise.system.protocol import Noise
from partita.trusted.streams.pan_private.pan_private import PanPrivateCounter

SLOTS: Final = ".pan"

_LENGTH: Final = 4


@final
class Slots:
    """The secret file of a pan-private counter, written by the clock only.

    Events go straight into noisy cells in memory, and no cell is ever on disk: cells in the file would be a
    second state beside the one in memory, and their difference is what came in the open period. The file has
    settings, the clock and the last output. If the process ends within a period, its events are lost, in
    whatever way it ends. Whoever looked at the memory may have seen them, with noise that must not be used
    again: so a counter that is opened again begins a new block, with fresh noise on its last output.
    """

    at_once = 1

    def __init__(self, path: Path, *, noise: Noise | None) -> None:
        self._store = PanStore(path)
        self._noise = noise
        self._counter: PanPrivateCounter | None = None
        try:
            self._load()
        except BaseException:
            self.close()
            raise

    @staticmethod
    def exists(path: Path) -> bool:
        """Whether there is a counter; a crash may have left a file to which nothing was saved."""
        if not os.path.lexists(path):
            return False
        with PanStore(path) as store:
            return store.load() is not None

    @staticmethod
    def create(path: Path, settings: Settings) -> None:
        """Put a new counter there, unless there is one."""
        with PanStore(path) as store:
            if store.load() is None:
                store.save(_joined(settings, b""), sequence=0)

    @property
    def settings(self) -> Settings:
        """What the counter was opened with."""
        return self._settings

    @property
    def counter(self) -> AnyCounter | None:
        """The counter, with the events of the open period in it; None if it was not begun."""
        if self._counter is None:
            self._load()
        return self._counter

    def follow(self, outputs: OutputsFile) -> None:
        """Say where records are published, each after the one before it."""
        self._outputs = outputs

    def begin(self, counter: AnyCounter) -> AnyCounter:
        """Store a new counter; the one to go on with."""
        self._save(_pan_private(counter))
        self._load()
        return self._present

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Events, or one period; if it cannot be stored, the open period is lost.

        The counter in memory may have closed a period that is not stored, so it is dropped before the file is
        read: if that fails too, nothing is left that could be published.
        """
        try:
            yield
        except BaseException:
            self._drop()
            self._counter = None
            self._load()
            raise

    def portions(self, call: list[CheckedEvent]) -> list[list[CheckedEvent]]:
        """The totals of a call, which are counted in one step; nothing of it is stored."""
        return [sum_by_period(call)] if call else []

    def add(self, events: Iterable[CheckedEvent], *, complete: bool = True) -> None:
        """Count events in the open period; all of them, since nothing is known of earlier ones."""
        for event in events:
            for _, count in event.counts:
                for piece in _pieces(count):
                    self._present.add(piece)

    def settle_calls(self) -> bool:
        """Nothing of a call is stored."""
        return False

    def has_counted(self, feeder: str, first: int, last: int) -> bool:
        """Whether any of these periods is closed; nothing is kept about feeders."""
        return first <= self._present.periods

    def close_period(self) -> None:
        """Close the open period, store the state, and open the next period."""
        counter = self._present
        counter.update()
        self._save(counter)
        _open(counter)

    def record(self, period: int) -> bytes | None:
        """The record of the last period; of earlier ones the state knows nothing."""
        if not period or period != self._present.periods:
            return None
        return record_after(self._outputs.record(period - 1), self._present)

    def records(self, *, since: int) -> Iterator[bytes]:
        """The record of the last period, if it is the only one after that."""
        missing = self._present.periods - since
        if missing > 1:
            raise failed(self._outputs.path, "has lost outputs that nothing else holds", "restore it")
        last = self.record(self._present.periods) if missing else None
        return iter([] if last is None else [last])

    def settle(self) -> None:
        """There is nothing that could wait."""

    def close(self) -> None:
        """Let others open it; the events of the open period are lost, and erased from memory."""
        self._drop()
        self._store.close()

    @property
    def _present(self) -> PanPrivateCounter:
        counter = self.counter
        if not isinstance(counter, PanPrivateCounter):
            raise StreamError("this counter was not begun; open it again")
        return counter

    def _load(self) -> None:
        saved = self._store.load()
        if saved is None:
            raise InvalidState("counter", "must have been opened", fix="check the path")
        self._settings, state = _parted(saved.state)
        self._drop()
        self._counter = self._restored(state) if state else None

    def _drop(self) -> None:
        """Erase the counter in memory: its block is over, and a later look must not find it."""
        if self._counter is not None:
            self._counter.abandon()

    def _save(self, counter: PanPrivateCounter) -> None:
        """Published numbers only, under the number of the periods, which is public too."""
        self._store.save(_joined(self._settings, counter.restart_state()), sequence=counter.periods)

    def _restored(self, state: bytes) -> PanPrivateCounter:
        """The counter in a new block; cells in a file of an earlier version are ignored and overwritten."""
        counter = _pan_private(restore_counter(self._settings, state, self._noise))
        counter.announce_intrusion()
        if counter.state() != state:
            self._save(counter)
        _open(counter)
        return counter


def _pan_private(counter: AnyCounter) -> PanPrivateCounter:
    if not isinstance(counter, PanPrivateCounter):
        raise InvalidState("counter", "must be pan-private", fix="check the path")
    return counter


def _pieces(count: int) -> Iterator[int]:
    """A total modulo 2^64, as the cells hold it, in at most three numbers that a counter takes."""
    left = (count + 2**63) % 2**64 - 2**63
    for _ in range(3):
        piece = max(1 - LARGEST, min(left, LARGEST - 1))
        yield piece
        left -= piece


def _open(counter: PanPrivateCounter) -> None:
    """Begin the next period, if there is one."""
    if counter.horizon is None or counter.periods < counter.horizon:
        counter.open()


def _joined(settings: Settings, state: bytes) -> bytes:
    text = settings.to_text().encode()
    return len(text).to_bytes(_LENGTH, "big") + text + state


def _parted(stored: bytes) -> tuple[Settings, bytes]:
    end = _LENGTH + int.from_bytes(stored[:_LENGTH], "big")
    return Settings.from_text(stored[_LENGTH:end].decode(errors="replace")), stored[end:]
