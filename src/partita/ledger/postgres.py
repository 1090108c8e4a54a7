"""A ledger in PostgreSQL, for services on several hosts: serialisable, durable, one writer at a time.

Each act has a connection and a transaction of its own. A writer first takes its turn, by a lock on one table
that is asked for before the transaction looks at anything: so it sees what all before it wrote, and a failure
to serialise, after which it starts again, is rare. A connection that breaks is never mistaken for a refusal:
nobody can say whether a commit was heard, and the error says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final, TypeVar, final

from partita.errors import LedgerError
from partita.ledger.address import Address
from partita.ledger.postgres_schema import RULES, SCHEMA
from partita.ledger.schema import MARK, VERSION
from partita.ledger.store import DAMAGED, LOCKED, Connection, Damaged, Found

__all__ = ["PostgresStore"]

Result = TypeVar("Result")

_ATTEMPTS: Final = 10
_AGAIN: Final = ("40001", "40P01")
_SHORTEST_WAIT: Final = 2

_BEGIN: Final = """
BEGIN ISOLATION LEVEL SERIALIZABLE {mode};
SET LOCAL search_path = partita, pg_temp;
SET LOCAL synchronous_commit = on;
SET LOCAL lock_timeout = {patience};
{turn}
"""
_TURN: Final = "LOCK TABLE stamp IN EXCLUSIVE MODE;"
_THERE: Final = "SELECT to_regclass('partita.stamp') IS NOT NULL"
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
_CARELESS: Final = (
    "is on a server with fsync off, which forgets what it has confirmed",
    "turn it on, or use another server",
)
_READING: Final = ("cannot be written: the server only reads", "use the address of the primary")
_FULL: Final = (
    "has no room: the server is short of disk, memory or connections",
    "free some, and try again; nothing was written",
)
_UNSPEAKABLE: Final = (
    "cannot hold this text: the encoding of the database lacks some of it",
    "use a database of encoding UTF8",
)
_FAILED: Final = (
    "could not be used: the server reports an error",
    "look into its log, and try again; nothing was written",
)
_SAID: Final = {
    "08": _CUT,
    "0A000": _READING,
    "22021": _UNSPEAKABLE,
    "22P05": _UNSPEAKABLE,
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
    **dict.fromkeys(_AGAIN, LOCKED),
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
        return self._connected(_is_there)

    def check(self) -> None:
        """Refuse a ledger without the rules that make it remember, or on a server that forgets."""
        self._connected(self._check_server)
        found = {tuple(row) for row in self.read(lambda connection: connection.execute(_GUARDED).fetchall())}
        if not {(table, rule) for table, rules in RULES.items() for rule in rules} <= found:
            raise self.error(*DAMAGED)

    def create(self) -> None:
        """Make the tables, in one transaction, unless they are there; others who want to are waited for."""

        def make(connection: Connection) -> None:
            self._check_server(connection)
            connection.execute("BEGIN")
            connection.execute("SELECT pg_advisory_xact_lock(?)", (MARK,))
            if not _is_there(connection):
                connection.execute(SCHEMA)
            connection.execute("COMMIT")

        self._connected(make)

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

        return self._connected(act)

    def _check_version(self, connection: Connection) -> None:
        (version,) = connection.execute("SELECT version FROM stamp").fetchone() or (None,)
        if version != VERSION:
            raise self.error(f"has schema version {version}, not {VERSION}", "use the Partita that wrote it")

    def _check_server(self, connection: Connection) -> None:
        if connection.execute("SELECT current_setting('fsync')").fetchone() != ("on",):
            raise self.error(*_CARELESS)

    def _connected(self, work: Callable[[Connection], Result]) -> Result:
        """What `work` does with a connection that is closed in the end, which undoes what was not committed.

        Nothing of an error of the server's is shown or chained: it may hold what was stored. So ours is
        raised outside of the handler, where not even its context holds the cause.
        """
        psycopg = self._library()
        raw = self._dialled(psycopg)
        try:
            return work(_Spoken(raw))
        except (psycopg.Error, UnicodeError, Damaged) as error:
            failure = self._translated(error)
        finally:
            raw.close()
        raise failure

    def _dialled(self, psycopg: ModuleType) -> Any:
        wait = max(_SHORTEST_WAIT, self.patience)
        try:
            return psycopg.connect(
                self.place.secret, autocommit=True, connect_timeout=wait, client_encoding="utf8"
            )
        except (psycopg.Error, UnicodeError):
            failure = self.error(*_UNREACHABLE)
        raise failure

    def _library(self) -> Any:
        try:
            import psycopg
        except ImportError:
            raise self.error("needs psycopg", 'install it: pip install "partita[postgres]"') from None
        return psycopg

    def _translated(self, error: Exception) -> LedgerError:
        if isinstance(error, (Damaged, UnicodeError)):
            return self.error(*(DAMAGED if isinstance(error, Damaged) else _UNSPEAKABLE))
        state = getattr(error, "sqlstate", None)
        said = self.error(*(_CUT if state is None else _said(state)))
        return _Repeatable(str(said)) if state in _AGAIN else said


def _is_there(connection: Connection) -> bool:
    return bool(connection.execute(_THERE).fetchone()[0])


def _said(state: str) -> tuple[str, str]:
    return next((said for begin, said in _SAID.items() if state.startswith(begin)), _FAILED)


@final
class _Repeatable(LedgerError):
    """Nothing was written because of what others wrote at the same time: the act may start again."""


@final
class _Spoken:
    """A connection of psycopg's, told in the SQL of the ledger."""

    def __init__(self, raw: Any) -> None:
        self._raw = raw

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> Found:
        """Run a statement; without values it may be several."""
        if not parameters:
            found: Found = self._raw.execute(statement)
            return found
        answered: Found = self._raw.execute(statement.replace("?", "%s"), parameters)
        return answered
