"""What a ledger knows of a durable counter: one debit, who writes it, and what it has published last.

The number of periods only ever rises, and with it goes the record of the last one. Both are on disk before
that record is public, so a state that has fewer periods, or another record, is a copy that others have
overtaken. Whoever opens the counter last is its writer: an earlier one may publish nothing more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final

from partita.errors.errors import InvalidParameter, LedgerRefusal, StreamForked
from partita.ledger.entries import Connection, Debit, Store
from partita.ledger.ledger.ledger import Ledger
from partita.public.streams.settings import Settings
from partita.trusted.noise.kernel import token

_CLAIM: Final = """
INSERT INTO counters VALUES (?, ?, ?, ?) ON CONFLICT (counter) DO UPDATE
SET periods = excluded.periods, record = excluded.record, writer = excluded.writer
"""
_REACH: Final = """
UPDATE counters SET periods = ?, record = ?
WHERE counter = ? AND writer = ? AND (periods = ? OR periods = ? AND record = ?)
"""


@final
@dataclass(frozen=True)
class Account:
    """The budget of a dataset, for one counter."""

    ledger: Ledger
    dataset: str

    def check_room(self, settings: Settings) -> None:
        """Refuse at once what cannot be paid, before any file is made."""
        if self.ledger.forecast(self.dataset, settings.guarantee) == 0:
            self._debit(settings)

    def pay(self, settings: Settings) -> None:
        """Debit the counter, unless that was done: it is charged once, however often it is opened."""
        if self._entry(settings) is None:
            self._debit(settings)

    def mark_done(self, settings: Settings) -> None:
        """Record that the counter is stored; refused if it was not paid for."""
        entry = self._entry(settings)
        if entry is None:
            raise LedgerRefusal(
                f"ledger {self.ledger.address!r} has not paid for this counter; pass the one that did"
            )
        self.ledger.mark_done(entry)

    def claim(self, settings: Settings, periods: int, record: Callable[[int], bytes]) -> Writer:
        """Become the one writer, with a state of so many periods; `record` is what it has of a period.

        Refused if others have published more than the state knows, or something else.
        """
        writer = Writer(self.ledger.store, settings.counter, periods)
        writer.claim(record)
        return writer

    def _entry(self, settings: Settings) -> Debit | None:
        key = _key(settings)
        return next((entry for entry in self.ledger.entries(self.dataset) if entry.key == key), None)

    def _debit(self, settings: Settings) -> Debit:
        return self.ledger.debit(
            self.dataset, settings.guarantee, what=f"stream {settings.mechanism}", key=_key(settings)
        )


@final
class Writer:
    """The right to publish a counter, from its opening on until somebody else opens it, or a copy of it."""

    def __init__(self, store: Store, counter: str, periods: int) -> None:
        self._store, self._counter, self._periods = store, counter, periods
        self._token = token()

    def claim(self, record: Callable[[int], bytes]) -> None:
        """Take the right from whoever had it, unless the state is a copy that was overtaken."""

        def write(connection: Connection) -> None:
            for statement in self._store.additions:
                connection.execute(statement)
            self._check(connection, record)
            row = (self._counter, self._periods, record(self._periods), self._token)
            connection.execute(_CLAIM, row)

        self._store.write(write)

    def reach(self, periods: int, record: bytes) -> None:
        """Say that periods up to one may be published, of which this is the last record.

        To say it again changes nothing, so whoever could not hear the answer may repeat it.
        """
        row = (periods, record, self._counter, self._token, self._periods, periods, record)
        if not self._store.write(lambda connection: connection.execute(_REACH, row).rowcount):
            raise StreamForked(
                "this counter was opened again elsewhere, perhaps from a copy of its files; only who opened "
                "it last may publish, so close this one"
            )
        self._periods = periods

    def _check(self, connection: Connection, record: Callable[[int], bytes]) -> None:
        found = "SELECT periods, record FROM counters WHERE counter = ?"
        known, last = connection.execute(found, (self._counter,)).fetchone() or (0, record(0))
        if known > self._periods:
            raise StreamForked(
                f"the ledger knows of {known} published periods, and this state of {self._periods}: it is "
                "an old copy, and to go on would publish periods twice; restore the latest, or start anew"
            )
        if record(known) != last:
            raise StreamForked(
                f"the ledger knows of another output for period {known} than this state: it is a copy that "
                "others have overtaken; restore the latest, or start anew"
            )


def account_of(ledger: Ledger | None, dataset: str | None) -> Account | None:
    """Who pays: a ledger and a dataset in it, or nobody."""
    if ledger is None and dataset is None:
        return None
    if ledger is None or dataset is None:
        raise InvalidParameter(
            "ledger", "and dataset go together", given=None, fix="pass both of them, or neither"
        )
    return Account(ledger, dataset)


def _key(settings: Settings) -> str:
    return f"counter {settings.counter}"
