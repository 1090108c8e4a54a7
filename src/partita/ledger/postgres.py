"""A ledger in PostgreSQL, for services on several hosts: serialisable, durable, one writer at a time.

Each act has a connection and a transaction of its own. A writer first takes its turn, by a lock on one table
that is asked for before the transaction looks at anything: so it sees what all before it wrote, and a failure
to serialise, after which it starts again, is rare. A connection that breaks is never mistaken for a refusal:
it is unknown whether a commit arrived, and the error says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final, TypeVar, final

from partita.errors import InvalidParameter, LedgerError
from partita.ledger.entries import CONCENTRATED, DAMAGED, LOCKED, MARK, VERSION, Connection, Found
from partita.storage import Damaged

# Addresses of PostgreSQL databases, such as postgresql://user:password@host:5432/database?sslmode=verify-full,
# of which only host and database are ever shown. A password is better in a file that libpq reads.
_SCHEMES: Final = ("postgresql://", "postgres://")
_MAY_HIDE: Final = re.compile(r"://|password\s*=", re.IGNORECASE)
_HOST: Final = r"(?:\[[0-9A-Fa-f:.]*\]|[^@/?#\s:,\[\]]*)(?::\d*)?"
_SHAPE: Final = re.compile(
    rf"postgres(?:ql)?://(?:[^@/?#\s]*@)?({_HOST}(?:,{_HOST})*)(?:/([^@/?#\s]*))?(?:\?[^@#\s]*)?"
)


def is_address(place: object) -> bool:
    """Whether this is meant as the address of a database: it starts like one, after spaces perhaps.

    >>> is_address("postgresql://steward@db.example.org/budget"), is_address("budget.db")
    (True, False)
    """
    return isinstance(place, str) and place.lstrip().startswith(_SCHEMES)


def is_no_path(place: object) -> bool:
    """Whether this is meant as an address of any kind, and may have a password in it wherever that is.

    >>> is_no_path("host=db.example.org password=hunter2"), is_no_path("budget.db")
    (True, False)
    """
    return isinstance(place, str) and _MAY_HIDE.search(place) is not None


def shown(place: str) -> str:
    """What may be shown of a path, or of an address; what is neither is refused unseen.

    >>> shown("postgresql://steward:hunter2@db.example.org/budget"), shown("budget.db")
    ('postgresql://db.example.org/budget', 'budget.db')
    """
    return str(Address(place)) if is_no_path(place) else place


@final
@dataclass(frozen=True, repr=False)
class Address:
    """The address of a database, whole in `secret`, which never appears in a text of ours.

    A character that means something in an address is written with a percent sign elsewhere, such as %40 for
    the @ in a password: otherwise the end of the password is ambiguous.

    >>> Address("postgresql://steward:hunter2@db.example.org:5432/budget?sslmode=require")
    postgresql://db.example.org:5432/budget
    """

    secret: str

    def __post_init__(self) -> None:
        if not is_no_path(self.secret) or _SHAPE.fullmatch(self.secret) is None:
            rule = "must be an address like postgresql://user@host/database"
            fix = "write @ : / ? # in a user or password as %40 %3A %2F %3F %23"
            raise InvalidParameter("address", rule, given=_Unshown(), fix=fix)

    def __repr__(self) -> str:
        host, database = _SHAPE.fullmatch(self.secret).groups()  # type: ignore[union-attr]
        return f"postgresql://{host}/{database or ''}"


class _Unshown:
    """Stands in an error for an address that cannot be taken apart, and may be a password anywhere."""


# The tables of a ledger in PostgreSQL: those of SQLite, with the same rules that refuse to forget. Names are
# compared byte by byte, whatever the collation of the database. The one row of `stamp` has the version of the
# tables. Writers lock that table to come one after the other, so that a role which may only debit needs no
# right to change a table of debits.
_RULES: Final = {
    "stamp": ("stamp_stays", "stamp_rests"),
    "datasets": ("terms_stay", "terms_rest"),
    "entries": ("entries_stay", "entries_keep", "entries_rest"),
    "counters": ("counters_stay", "counters_rise", "counters_rest"),
}
"""The triggers that each table must have, for it is they who refuse."""

_SCHEMA: Final = f"""
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

_RHO: Final = f"""
ALTER TABLE datasets ADD COLUMN rho TEXT COLLATE "C" NOT NULL DEFAULT '0';
ALTER TABLE entries ADD COLUMN rho TEXT COLLATE "C" NOT NULL DEFAULT '0';
ALTER TABLE entries ADD COLUMN stated_rho TEXT NOT NULL DEFAULT '0';
ALTER TABLE stamp DISABLE TRIGGER stamp_stays;
UPDATE stamp SET version = {CONCENTRATED};
ALTER TABLE stamp ENABLE TRIGGER stamp_stays;
"""
"""What a ledger gets with its first rho. The rules compare whole rows, so they cover new columns, too."""

Result = TypeVar("Result")

_ATTEMPTS: Final = 10
_RETRY: Final = ("40001", "40P01")
_SHORTEST_WAIT: Final = 2

_BEGIN: Final = """
BEGIN ISOLATION LEVEL SERIALIZABLE {mode};
SET LOCAL search_path = partita, pg_temp;
SET LOCAL synchronous_commit = on;
SET LOCAL lock_timeout = {patience};
{turn}
"""
_TURN: Final = "LOCK TABLE stamp IN EXCLUSIVE MODE;"
_EXISTS: Final = "SELECT to_regclass('partita.stamp') IS NOT NULL"
_GUARDED: Final = """
SELECT pg_class.relname, pg_trigger.tgname FROM pg_trigger JOIN pg_class ON pg_class.oid = pg_trigger.tgrelid
WHERE pg_class.relnamespace = to_regnamespace('partita') AND pg_trigger.tgenabled IN ('O', 'A')
"""

_UNREACHABLE: Final = (
    "cannot be reached",
    "check host, database, user and password, and that the server is running",
)
_ABSENT: Final = ("does not exist", "open a dataset first, or check the address")
_CUT: Final = (
    "was cut off in the middle of an act",
    "look at its entries before you try again: the act may have been done",
)
_FORBIDDEN: Final = ("cannot be used by this user", "grant the rights that docs/postgres.md lists")
_NO_FSYNC: Final = (
    "is on a server with fsync off, which forgets what it has confirmed",
    "turn it on, or use another server",
)
_READING: Final = ("cannot be written: the server only reads", "use the address of the primary")
_FULL: Final = (
    "has no room: the server is short of disk, memory or connections",
    "free some, and try again; nothing was written",
)
_ENCODING: Final = (
    "cannot hold this text: the encoding of the database lacks some of it",
    "use a database of encoding UTF8",
)
_FAILED: Final = (
    "could not be used: the server reports an error",
    "look into its log, and try again; nothing was written",
)
_STATES: Final = {
    "08": _CUT,
    "0A000": _READING,
    "22021": _ENCODING,
    "22P05": _ENCODING,
    "25006": _READING,
    "25P03": _CUT,
    "25P04": _CUT,
    "3F000": _ABSENT,
    "40003": _CUT,
    "42501": _FORBIDDEN,
    "42P01": _ABSENT,
    "42P07": ("is not a Partita ledger", "check the address, or remove what else is in schema partita"),
    "53": _FULL,
    "55P03": LOCKED,
    "57014": LOCKED,
    "57P": _CUT,
    "XX001": DAMAGED,
    "XX002": DAMAGED,
    **dict.fromkeys(_RETRY, LOCKED),
}
"""What is wrong, by the state that the server tells, or by what such states begin with."""


@final
@dataclass(frozen=True, repr=False)
class PostgresStore:
    """The `Store` in a database: an address, and how many seconds to wait for others."""

    place: Address
    patience: int

    @property
    def address(self) -> str:
        """Host and database; nothing else of the address is ever shown."""
        return str(self.place)

    @property
    def additions(self) -> Sequence[str]:
        """Nothing: the first ledger in PostgreSQL has every table."""
        return ()

    def exists(self) -> bool:
        """Whether the database has a ledger."""
        return self._connect(_is_there)

    def check(self) -> None:
        """Refuse a ledger without the rules that make it remember, or on a server that forgets."""
        self._connect(self._check_server)
        found = {tuple(row) for row in self.read(lambda connection: connection.execute(_GUARDED).fetchall())}
        if not {(table, rule) for table, rules in _RULES.items() for rule in rules} <= found:
            raise self.error(*DAMAGED)

    def create(self) -> None:
        """Make the tables, in one transaction, unless they are there; others who want to are waited for."""

        def make(connection: Connection) -> None:
            self._check_server(connection)
            connection.execute("BEGIN")
            connection.execute("SELECT pg_advisory_xact_lock(?)", (int.from_bytes(MARK),))
            if not _is_there(connection):
                connection.execute(_SCHEMA)
            connection.execute("COMMIT")

        self._connect(make)

    def widen(self, connection: Connection) -> None:
        """Add the columns for rho, and stamp the ledger anew; only the owner of the tables may."""
        if self._version(connection) == VERSION:
            connection.execute(_RHO)

    def read(self, work: Callable[[Connection], Result]) -> Result:
        """What `work` finds in one consistent state of the database."""
        return self._transact(self._begin("READ ONLY", ""), work)

    def write(self, work: Callable[[Connection], Result]) -> Result:
        """What `work` returns, once all it wrote is on disk; if it raises, nothing is written."""
        return self._transact(self._begin("READ WRITE", _TURN), work)

    def error(self, rule: str, fix: str) -> LedgerError:
        """An error that names host and database."""
        return LedgerError(f"ledger {self.address!r} {rule}; {fix}")

    def _begin(self, mode: str, turn: str) -> str:
        return _BEGIN.format(mode=mode, turn=turn, patience=max(1, self.patience * 1000))

    def _transact(self, begin: str, work: Callable[[Connection], Result]) -> Result:
        for _ in range(_ATTEMPTS - 1):
            try:
                return self._attempt(begin, work)
            except _Repeatable:
                continue
        return self._attempt(begin, work)

    def _attempt(self, begin: str, work: Callable[[Connection], Result]) -> Result:
        def act(connection: Connection) -> Result:
            connection.execute(begin)
            self._check_version(connection)
            result = work(connection)
            connection.execute("COMMIT")
            return result

        return self._connect(act)

    def _check_version(self, connection: Connection) -> None:
        version = self._version(connection)
        if version not in (VERSION, CONCENTRATED):
            rule = f"has schema version {version}, not {VERSION} or {CONCENTRATED}"
            raise self.error(rule, "use the Partita that wrote it")

    def _version(self, connection: Connection) -> int | None:
        (version,) = connection.execute("SELECT version FROM stamp").fetchone() or (None,)
        return None if version is None else int(version)

    def _check_server(self, connection: Connection) -> None:
        if connection.execute("SELECT current_setting('fsync')").fetchone() != ("on",):
            raise self.error(*_NO_FSYNC)

    def _connect(self, work: Callable[[Connection], Result]) -> Result:
        """What `work` does with a connection that is closed in the end, which undoes what was not committed.

        Nothing of an error of the server's is shown or chained: it may hold what was stored. So ours is
        raised outside of the handler, where not even its context holds the cause.
        """
        psycopg = self._library()
        raw = self._dial(psycopg)
        try:
            return work(_LedgerConnection(raw))
        except (psycopg.Error, UnicodeError, Damaged) as error:
            failure = self._translate(error)
        finally:
            raw.close()
        raise failure

    def _dial(self, psycopg: ModuleType) -> Any:
        options = {"connect_timeout": max(_SHORTEST_WAIT, self.patience), "client_encoding": "utf8"}
        try:
            return psycopg.connect(self.place.secret, autocommit=True, **options)
        except (psycopg.Error, UnicodeError):
            failure = self.error(*_UNREACHABLE)
        raise failure

    def _library(self) -> Any:
        try:
            import psycopg
        except ImportError:
            raise self.error("needs psycopg", 'install it: pip install "partita[postgres]"') from None
        return psycopg

    def _translate(self, error: Exception) -> LedgerError:
        if isinstance(error, (Damaged, UnicodeError)):
            return self.error(*(DAMAGED if isinstance(error, Damaged) else _ENCODING))
        state = getattr(error, "sqlstate", None)
        said = self.error(*(_CUT if state is None else _describe_state(state)))
        return _Repeatable(str(said)) if state in _RETRY else said


def _is_there(connection: Connection) -> bool:
    return bool(connection.execute(_EXISTS).fetchone()[0])


def _describe_state(state: str) -> tuple[str, str]:
    return next((said for begin, said in _STATES.items() if state.startswith(begin)), _FAILED)


@final
class _Repeatable(LedgerError):
    """Nothing was written because of what others wrote at the same time: the act may start again."""


@final
class _LedgerConnection:
    """A connection of psycopg's, told in the SQL of the ledger."""

    def __init__(self, raw: Any) -> None:
        self._raw = raw

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> Found:
        """Run a statement; without values it may be several."""
        values = (statement.replace("?", "%s"), parameters) if parameters else (statement,)
        found: Found = self._raw.execute(*values)
        return found
