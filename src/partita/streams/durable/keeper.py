"""What keeps a counter and its secret state, however it is stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Protocol

from partita.streams.durable.events import Fed
from partita.streams.durable.mechanisms import AnyCounter, units
from partita.streams.durable.outputs import OutputsFile, next_record
from partita.streams.durable.settings import Settings

__all__ = ["Keeper", "record_after"]


class Keeper(Protocol):
    """A counter, and everything that is needed to go on with it after a crash.

    What is said within `batch` is on disk when the batch is left, all of it or nothing.
    """

    @property
    def at_once(self) -> int:
        """How many periods one batch may close."""

    @property
    def settings(self) -> Settings:
        """What the counter was opened with."""

    @property
    def counter(self) -> AnyCounter | None:
        """The counter as it is on disk; None if it was not begun."""

    def begin(self, counter: AnyCounter) -> AnyCounter:
        """Store a new counter; the one to go on with."""

    def batch(self) -> AbstractContextManager[None]:
        """The events and periods of one transaction."""

    def portions(self, call: list[Fed]) -> list[list[Fed]]:
        """The events of one call as the transactions that store them."""

    def add(self, events: Iterable[Fed], *, complete: bool = True) -> None:
        """Store events that were checked, each once; if the call is complete, all of it counts now."""

    def settle_calls(self) -> bool:
        """Undo a portion of a call that was not completed, or sweep up after others; False if all is done."""

    def has_counted(self, feeder: str, first: int, last: int) -> bool:
        """Whether a feeder has counted under any number from the first to the last."""

    def close_period(self) -> None:
        """Close the open period and open the next one."""

    def record(self, period: int) -> bytes | None:
        """The record of a period, if it is still here."""

    def records(self, *, since: int) -> Iterator[bytes]:
        """The records of all periods after one."""

    def follow(self, outputs: OutputsFile) -> None:
        """Say where records are published, each after the one before it."""

    def settle(self) -> None:
        """Do what can wait until outputs are published."""

    def close(self) -> None:
        """Let others open it."""


def record_after(before: bytes, counter: AnyCounter) -> bytes:
    """The record of the period that a counter has closed last."""
    return next_record(before, counter.periods, units(counter))
