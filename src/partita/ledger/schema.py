"""The tables of a ledger in SQLite. Numbers are text like 1/3; entries are never removed or rewritten.

What decides about budgets is written twice, in a table and in an index, so that SQLite's integrity
check sees a byte that was damaged in either.
"""

from __future__ import annotations

from typing import Final

__all__ = ["COUNTERS", "MARK", "SCHEMA", "VERSION"]

MARK: Final = int.from_bytes(b"PLdg")
VERSION: Final = 1

SCHEMA: Final = f"""
BEGIN;
PRAGMA application_id = {MARK};
PRAGMA user_version = {VERSION};

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
COMMIT;
"""

COUNTERS: Final = (
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
"""How far each durable counter has got, and who writes it."""
