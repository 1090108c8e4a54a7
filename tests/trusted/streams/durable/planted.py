"""Faults that somebody might build into a durable counter, to see that the tests find them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from partita.public.streams import OutputsFile, Settings
from partita.trusted.durable import journal, stream
from partita.trusted.durable.journal import Journal

__all__ = ["PLANTED"]


def publish_before_commit() -> None:
    """The public file is written within the transaction, and nobody looks at it when opening."""
    batch, write = Journal.batch, OutputsFile.write

    @contextmanager
    def hasty(self: Any) -> Any:
        with batch(self):
            yield
            if self._new:
                write(self._public, self._present.periods - len(self._new), self._new)

    def follow(self: Any, outputs: Any) -> None:
        self._header, self._public = outputs.header, outputs

    def trusting(store: Any, outputs: Any, periods: int) -> None:
        write(outputs, periods, [])

    vars(stream)["reconcile"] = trusting
    Journal.batch, Journal.follow = hasty, follow  # type: ignore[method-assign]


def never_sync() -> None:
    """SQLite is told not to wait for the disk."""
    careless = ("PRAGMA locking_mode = EXCLUSIVE", "PRAGMA synchronous = OFF")
    vars(journal)["_FORMAT"] = replace(journal._FORMAT, pragmas=careless)


def forget_numbers() -> None:
    """Sequence numbers are not remembered, nor what is used in place of them."""
    vars(journal).update(_is_new=lambda *_: True, _is_new_text=lambda *_: True)


def sort_the_keys() -> None:
    """Keys are counted at the places that they have in the alphabet."""
    Settings.places = property(  # type: ignore[assignment]
        lambda settings: {key: place for place, key in enumerate(sorted(settings.keys))}
    )


def acknowledge_in_memory() -> None:
    """What is added is written with the next tick only."""
    save = Journal._save

    def lazy(self: Any) -> None:
        if self._new:
            save(self)

    Journal._save = lazy  # type: ignore[method-assign]


def drop_the_state() -> None:
    """Outputs are stored without the noise that is left for the next ones."""

    def stale(self: Any) -> None:
        self._connection.execute("UPDATE counter SET pending = ?", (self._totals.stored,))
        first = self._present.periods - len(self._new) + 1
        self._connection.executemany("INSERT INTO outputs VALUES (?, ?)", enumerate(self._new, first))

    Journal._save = stale  # type: ignore[method-assign]


def charge_every_time() -> None:
    """Each start pays again."""
    from dataclasses import replace

    from partita.trusted.durable.stream import StreamAccount as Account
    from partita.trusted.noise.kernel import token

    pay = Account.mark_done

    def greedy(self: Account, settings: Any) -> None:
        pay(self, settings)
        self._debit(replace(settings, counter=token()))

    Account.mark_done = greedy  # type: ignore[method-assign]


PLANTED: dict[str, Callable[[], None]] = {
    planted.__name__: planted
    for planted in (
        publish_before_commit,
        never_sync,
        forget_numbers,
        sort_the_keys,
        acknowledge_in_memory,
        drop_the_state,
        charge_every_time,
    )
}
