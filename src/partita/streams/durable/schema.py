"""The tables of a counter. All of them are secret but `outputs`.

counter     one row: settings, epoch of the writer, what the open period has so far, the state
outputs     the record of every closed period, as it stands in the public file
runs        which sequence numbers of a feeder were counted, as runs without gaps
deliveries  which texts of a feeder were counted, by digest; made where an older file has it not
people      which events of a person were counted, by digest
calls       one row: how many calls of several portions were counted
staged      what portions of a call have added to the three above, until it is counted
            both are made where an older file has them not
"""

from __future__ import annotations

from typing import Final

from partita.streams.durable.settings import Settings

__all__ = ["ADDITIONS", "DELIVERIES", "MARK", "SCHEMA", "VERSIONS", "version_of"]

MARK: Final = int.from_bytes(b"PCnt")
VERSIONS: Final = (1, 2)
"""Of counters, and of families."""

DELIVERIES: Final = "CREATE TABLE IF NOT EXISTS deliveries (digest BLOB NOT NULL PRIMARY KEY) WITHOUT ROWID"

ADDITIONS: Final = (
    DELIVERIES,
    "CREATE TABLE IF NOT EXISTS calls (counted INTEGER NOT NULL)",
    "INSERT INTO calls SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM calls)",
    "CREATE TABLE IF NOT EXISTS staged (call INTEGER NOT NULL, feeder TEXT, known BLOB NOT NULL)",
)
"""What files of earlier versions have not."""

SCHEMA: Final = f"""
BEGIN;
PRAGMA application_id = {MARK};
{";".join(ADDITIONS)};

CREATE TABLE counter (
    settings TEXT NOT NULL,
    epoch    INTEGER NOT NULL DEFAULT 0,
    pending  INTEGER NOT NULL DEFAULT 0,
    state    BLOB
);

CREATE TABLE outputs (
    period INTEGER PRIMARY KEY,
    record BLOB NOT NULL
);

CREATE TABLE runs (
    feeder TEXT NOT NULL,
    first  INTEGER NOT NULL,
    last   INTEGER NOT NULL,
    PRIMARY KEY (feeder, first)
) WITHOUT ROWID;

CREATE TABLE people (
    person BLOB NOT NULL,
    event  BLOB NOT NULL,
    PRIMARY KEY (person, event)
) WITHOUT ROWID;

CREATE TRIGGER outputs_stay BEFORE DELETE ON outputs
BEGIN SELECT RAISE (ABORT, 'outputs are never removed'); END;

CREATE TRIGGER outputs_keep BEFORE UPDATE ON outputs
BEGIN SELECT RAISE (ABORT, 'outputs are never rewritten'); END;
COMMIT;
"""


def version_of(settings: Settings) -> int:
    """What a file says of its layout: that of a family has a row of numbers where a counter has one."""
    counters, families = VERSIONS
    return families if settings.keys else counters
