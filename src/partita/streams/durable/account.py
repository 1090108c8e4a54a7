"""What a ledger knows of a durable counter: one debit, and how many of its periods were published.

The number of periods only ever rises. It is on disk before the output of a period is, so a state that has
fewer periods is an old copy.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Final, final

from partita.errors import InvalidParameter, LedgerRefusal, StreamForked
from partita.ledger import Debit, Ledger
from partita.ledger.file import LedgerFile
from partita.streams.durable.settings import Settings

__all__ = ["Account", "account_of"]

_PATIENCE: Final = 30
_TABLE: Final = """
CREATE TABLE IF NOT EXISTS counters (counter TEXT NOT NULL PRIMARY KEY, periods INTEGER NOT NULL)
"""
_TRIGGERS: Final = (
    """CREATE TRIGGER IF NOT EXISTS counters_stay BEFORE DELETE ON counters
    BEGIN SELECT RAISE (ABORT, 'counters are never removed'); END""",
    """CREATE TRIGGER IF NOT EXISTS counters_rise BEFORE UPDATE ON counters WHEN NEW.periods < OLD.periods
    BEGIN SELECT RAISE (ABORT, 'periods never become fewer'); END""",
)
_REACH: Final = """
INSERT INTO counters VALUES (?, ?) ON CONFLICT DO UPDATE SET periods = MAX(periods, excluded.periods)
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
                f"ledger {str(self.ledger.path)!r} has not paid for this counter; pass the one that did"
            )
        self.ledger.mark_done(entry)

    def check(self, settings: Settings, periods: int) -> None:
        """Refuse a state with fewer periods than were published."""
        known = self._file.write(lambda connection: _known(connection, settings.counter))
        if known > periods:
            raise StreamForked(
                f"the ledger knows of {known} published periods, and this state of {periods}: it is an old "
                "copy, and to go on from it would publish periods twice; restore the latest, or start anew"
            )

    def reach(self, settings: Settings, periods: int) -> None:
        """Record that so many periods may be published."""
        self._file.write(lambda connection: _reach(connection, settings.counter, periods))

    @property
    def _file(self) -> LedgerFile:
        return LedgerFile(self.ledger.path, _PATIENCE)

    def _entry(self, settings: Settings) -> Debit | None:
        key = _key(settings)
        return next((entry for entry in self.ledger.entries(self.dataset) if entry.key == key), None)

    def _debit(self, settings: Settings) -> Debit:
        return self.ledger.debit(
            self.dataset, settings.guarantee, what=f"stream {settings.mechanism}", key=_key(settings)
        )


def account_of(ledger: Ledger | None, dataset: str | None) -> Account | None:
    """Who pays: a ledger and a dataset in it, or nobody."""
    if ledger is None and dataset is None:
        return None
    if not isinstance(ledger, Ledger) or dataset is None:
        raise InvalidParameter(
            "ledger", "and dataset go together", given=dataset, fix="pass a Ledger and one of its datasets"
        )
    return Account(ledger, dataset)


def _key(settings: Settings) -> str:
    return f"counter {settings.counter}"


def _known(connection: sqlite3.Connection, counter: str) -> int:
    connection.execute(_TABLE)
    found = connection.execute("SELECT periods FROM counters WHERE counter = ?", (counter,)).fetchone()
    return found[0] if found else 0


def _reach(connection: sqlite3.Connection, counter: str, periods: int) -> None:
    for statement in (_TABLE, *_TRIGGERS):
        connection.execute(statement)
    connection.execute(_REACH, (counter, periods))
