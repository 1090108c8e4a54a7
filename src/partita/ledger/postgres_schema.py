"""The tables of a ledger in PostgreSQL: those of SQLite, with the same rules that refuse to forget.

Names are compared byte by byte, whatever the collation of the database. The one row of `stamp` says which
version the tables have; writers lock that table to come one after the other, so that a role which may only
debit needs no right to change a table of debits.
"""

from __future__ import annotations

from typing import Final

from partita.ledger.schema import VERSION

__all__ = ["RULES", "SCHEMA"]

RULES: Final = {
    "stamp": ("stamp_stays", "stamp_rests"),
    "datasets": ("terms_stay", "terms_rest"),
    "entries": ("entries_stay", "entries_keep", "entries_rest"),
    "counters": ("counters_stay", "counters_rise", "counters_rest"),
}
"""The triggers that each table must have, for it is they who refuse."""

SCHEMA: Final = f"""
CREATE SCHEMA IF NOT EXISTS partita;
SET LOCAL search_path = partita, pg_temp;

CREATE TABLE stamp (version INTEGER NOT NULL);
INSERT INTO stamp VALUES ({VERSION});

CREATE TABLE datasets (
    name          TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    epsilon       TEXT NOT NULL,
    delta         TEXT NOT NULL,
    neighbors     TEXT NOT NULL,
    unit          TEXT NOT NULL,
    contributions BIGINT,
    constant      TEXT NOT NULL
);

CREATE TABLE entries (
    number               BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    dataset              TEXT COLLATE "C" NOT NULL REFERENCES datasets (name),
    what                 TEXT NOT NULL,
    day                  TEXT NOT NULL,
    epsilon              TEXT COLLATE "C" NOT NULL,
    delta                TEXT COLLATE "C" NOT NULL,
    part_column          TEXT COLLATE "C",
    part_value           TEXT COLLATE "C",
    stated_epsilon       TEXT NOT NULL,
    stated_delta         TEXT NOT NULL,
    stated_neighbors     TEXT NOT NULL,
    stated_unit          TEXT NOT NULL,
    stated_contributions TEXT NOT NULL,
    stated_intrusions    TEXT NOT NULL,
    key                  TEXT COLLATE "C" UNIQUE,
    request              TEXT,
    state                TEXT NOT NULL CHECK (state IN ('debited', 'done', 'lost')),
    CHECK ((part_column IS NULL) = (part_value IS NULL))
);
CREATE INDEX charges ON entries (dataset);

CREATE TABLE counters (
    counter TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    periods BIGINT NOT NULL,
    record  BYTEA NOT NULL,
    writer  TEXT NOT NULL
);

CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION USING MESSAGE = TG_ARGV[0]; END $$;

CREATE FUNCTION keep_entry() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.state <> 'debited' THEN
        RAISE EXCEPTION 'done and lost are final';
    END IF;
    IF to_jsonb(NEW) - 'state' <> to_jsonb(OLD) - 'state' THEN
        RAISE EXCEPTION 'entries are never rewritten';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER stamp_stays BEFORE INSERT OR UPDATE OR DELETE ON stamp
FOR EACH ROW EXECUTE FUNCTION refuse('the stamp never changes');
CREATE TRIGGER stamp_rests BEFORE TRUNCATE ON stamp EXECUTE FUNCTION refuse('the stamp never changes');

CREATE TRIGGER terms_stay BEFORE UPDATE OR DELETE ON datasets
FOR EACH ROW EXECUTE FUNCTION refuse('terms never change, and datasets are never removed');
CREATE TRIGGER terms_rest BEFORE TRUNCATE ON datasets EXECUTE FUNCTION refuse('datasets are never removed');

CREATE TRIGGER entries_stay BEFORE DELETE ON entries
FOR EACH ROW EXECUTE FUNCTION refuse('entries are never removed');
CREATE TRIGGER entries_keep BEFORE UPDATE ON entries FOR EACH ROW EXECUTE FUNCTION keep_entry();
CREATE TRIGGER entries_rest BEFORE TRUNCATE ON entries EXECUTE FUNCTION refuse('entries are never removed');

CREATE TRIGGER counters_stay BEFORE DELETE ON counters
FOR EACH ROW EXECUTE FUNCTION refuse('counters are never removed');
CREATE TRIGGER counters_rise BEFORE UPDATE ON counters FOR EACH ROW WHEN (NEW.periods < OLD.periods)
EXECUTE FUNCTION refuse('periods never become fewer');
CREATE TRIGGER counters_rest BEFORE TRUNCATE ON counters
EXECUTE FUNCTION refuse('counters are never removed');
"""
