"""A ledger in a SQLite file: one transaction per act, on disk before the act returns.

Numbers are text like 1/3; entries are never removed or rewritten. What decides about budgets is written
twice, in a table and in an index, so that SQLite's integrity check sees a byte that was damaged in either.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar, final

from partita.errors.errors import LedgerError
from partita.ledger.entries import DAMAGED, LOCKED, MARK, VERSION
from partita.storage.storage import DURABLE, Connection, SqliteFormat, transact

Result = TypeVar("Result")

_SCHEMA: Final = """
CREATE TABLE datasets (
    name          TEXT NOT NULL PRIMARY KEY,
    epsilon       TEXT NOT NULL,
    delta         TEXT NOT NULL,
    neighbors     TEXT NOT NULL,
    unit          TEXT NOT NULL,
    contributions INTEGER,
    constant      TEXT NOT NULL
);

CREATE TABLE entries (
    number               INTEGER PRIMARY KEY AUTOINCREMENT,
    dataset              TEXT NOT NULL REFERENCES datasets (name),
    what                 TEXT NOT NULL,
    day                  TEXT NOT NULL,
    epsilon              TEXT NOT NULL,
    delta                TEXT NOT NULL,
    part_column          TEXT,
    part_value           TEXT,
    stated_epsilon       TEXT NOT NULL,
    stated_delta         TEXT NOT NULL,
    stated_neighbors     TEXT NOT NULL,
    stated_unit          TEXT NOT NULL,
    stated_contributions TEXT NOT NULL,
    stated_intrusions    TEXT NOT NULL,
    key                  TEXT UNIQUE,
    request              TEXT,
    state                TEXT NOT NULL CHECK (state IN ('debited', 'done', 'lost')),
    CHECK ((part_column IS NULL) = (part_value IS NULL))
);

CREATE INDEX terms ON datasets (name, epsilon, delta, neighbors, unit, contributions, constant);
CREATE INDEX charges ON entries (dataset, part_column, part_value, epsilon, delta);

CREATE TRIGGER entries_stay BEFORE DELETE ON entries
BEGIN SELECT RAISE (ABORT, 'entries are never removed'); END;

CREATE TRIGGER entries_end BEFORE UPDATE ON entries WHEN OLD.state <> 'debited'
BEGIN SELECT RAISE (ABORT, 'done and lost are final'); END;

CREATE TRIGGER entries_keep BEFORE UPDATE OF
    number, dataset, what, day, epsilon, delta, part_column, part_value, stated_epsilon, stated_delta,
    stated_neighbors, stated_unit, stated_contributions, stated_intrusions, key, request ON entries
BEGIN SELECT RAISE (ABORT, 'entries are never rewritten'); END;

CREATE TRIGGER terms_stay BEFORE DELETE ON datasets
BEGIN SELECT RAISE (ABORT, 'datasets are never removed'); END;

CREATE TRIGGER terms_keep BEFORE UPDATE ON datasets
BEGIN SELECT RAISE (ABORT, 'terms never change'); END;
"""

_COUNTERS: Final = (
    """CREATE TABLE IF NOT EXISTS counters (
        counter TEXT NOT NULL PRIMARY KEY,
        periods INTEGER NOT NULL,
        record  BLOB NOT NULL,
        writer  TEXT NOT NULL
    )""",
    """CREATE TRIGGER IF NOT EXISTS counters_stay BEFORE DELETE ON counters
    BEGIN SELECT RAISE (ABORT, 'counters are never removed'); END""",
    """CREATE TRIGGER IF NOT EXISTS counters_rise BEFORE UPDATE ON counters WHEN NEW.periods < OLD.periods
    BEGIN SELECT RAISE (ABORT, 'periods never become fewer'); END""",
)
"""How far each durable counter has got, and who writes it; the first ledgers have no such table."""

_BUILD: Final = (*DURABLE, "PRAGMA foreign_keys = ON")
_FORMAT: Final = SqliteFormat(
    name="ledger",
    mark=MARK,
    versions=(VERSION,),
    schema=_SCHEMA,
    additions=_COUNTERS,
    pragmas=("PRAGMA journal_mode = TRUNCATE", *_BUILD),
    build_pragmas=_BUILD,
    error=LedgerError,
    busy_error=LedgerError,
    busy=LOCKED,
    foreign=("is not a Partita ledger", "check the path"),
    damaged=DAMAGED,
    missing=("does not exist", "open a dataset first, or check the path"),
)


@final
@dataclass(frozen=True)
class LedgerFile:
    """The `Store` in a file: a path, and how many seconds to wait for others."""

    path: Path
    patience: int

    @property
    def address(self) -> str:
        """The path, as text."""
        return str(self.path)

    @property
    def additions(self) -> tuple[str, ...]:
        """The table of counters, which the first ledgers lack."""
        return _FORMAT.additions

    def exists(self) -> bool:
        """Whether a file can be seen there; `Path.exists` would raise where a folder is closed."""
        return os.path.exists(self.path)

    def check(self) -> None:
        """Refuse a file that is no ledger, or in which table and index tell different stories."""
        self.read(lambda connection: _FORMAT.check_integrity(connection, self.path))

    def read(self, work: Callable[[Connection], Result]) -> Result:
        """What `work` finds in one consistent state of the file."""
        return transact(_FORMAT, self.path, work, patience=self.patience)

    def write(self, work: Callable[[Connection], Result]) -> Result:
        """What `work` returns, once all it wrote is on disk; if it raises, nothing is written."""
        return transact(_FORMAT, self.path, work, write=True, patience=self.patience)

    def create(self) -> None:
        """Put an empty ledger at the path, unless there is one: an empty file is never mistaken for it."""
        _FORMAT.create(self.path)

    def error(self, rule: str, fix: str) -> LedgerError:
        """An error that names the path."""
        return LedgerError(f"ledger {self.address!r} {rule}; {fix}")
