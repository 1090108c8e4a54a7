"""The ledger of a steward: datasets with budgets, and every debit ever made."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar, final

from partita.errors import (
    BudgetExceeded,
    BudgetLost,
    InvalidParameter,
    KeyReused,
    LedgerError,
    LedgerRefusal,
    TermsDiffer,
    UnknownDataset,
    check_arguments,
    check_type,
)
from partita.guarantee import Guarantee, Neighbors, Unit
from partita.ledger.entries import (
    COLUMNS,
    CONCENTRATED,
    DAMAGED,
    LOCKED,
    MARK,
    RHO_COLUMNS,
    VERSION,
    Amount,
    Balance,
    Connection,
    Debit,
    LedgerStore,
    Part,
    Spending,
    State,
    Terms,
    amount,
    checked_day,
    checked_guarantee,
    checked_text,
    digest,
    from_row,
    to_row,
)
from partita.ledger.postgres import Address, PostgresStore, is_no_path
from partita.numbers import integer
from partita.storage import DURABLE, Damaged, SqliteFormat, transact

# A ledger in a SQLite file: one transaction per act, on disk before the act returns.
# Numbers are text like 1/3; entries are never removed or rewritten. What decides about budgets is written
# twice, in a table and in an index, so that SQLite's integrity check sees a byte that was damaged in either.
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

_RHO: Final = (
    "ALTER TABLE datasets ADD COLUMN rho TEXT NOT NULL DEFAULT '0'",
    "ALTER TABLE entries ADD COLUMN rho TEXT NOT NULL DEFAULT '0'",
    "ALTER TABLE entries ADD COLUMN stated_rho TEXT NOT NULL DEFAULT '0'",
    "CREATE INDEX terms_rho ON datasets (name, rho)",
    "CREATE INDEX charges_rho ON entries (dataset, part_column, part_value, rho)",
    """CREATE TRIGGER entries_keep_rho BEFORE UPDATE OF rho, stated_rho ON entries
    BEGIN SELECT RAISE (ABORT, 'entries are never rewritten'); END""",
    f"PRAGMA user_version = {CONCENTRATED}",
)
"""What a ledger gets with its first rho: columns behind all others, with the same rules, and a new stamp."""

_BUILD: Final = (*DURABLE, "PRAGMA foreign_keys = ON")
_FORMAT: Final = SqliteFormat(
    name="ledger",
    mark=MARK,
    versions=(VERSION, CONCENTRATED),
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
        check = partial(_FORMAT.check_integrity, path=self.path)
        transact(_FORMAT, self.path, check, patience=self.patience)

    def read(self, work: Callable[[Connection], Result]) -> Result:
        """What `work` finds in one consistent state of the file."""
        return transact(_FORMAT, self.path, work, patience=self.patience)

    def write(self, work: Callable[[Connection], Result]) -> Result:
        """What `work` returns, once all it wrote is on disk; if it raises, nothing is written."""
        return transact(_FORMAT, self.path, work, write=True, patience=self.patience)

    def widen(self, connection: Connection) -> None:
        """Add the columns for rho, and stamp the file anew: whole or not at all."""
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version == VERSION:
            for statement in _RHO:
                connection.execute(statement)

    def create(self) -> None:
        """Put an empty ledger at the path, unless there is one: an empty file is never mistaken for it."""
        _FORMAT.create(self.path)

    def error(self, rule: str, fix: str) -> LedgerError:
        """An error that names the path."""
        return LedgerError(f"ledger {self.address!r} {rule}; {fix}")


LedgerPlace: TypeAlias = "Ledger | str | os.PathLike[str]"
"""A ledger as people give it: opened, or by its path or address."""

_SELECT: Final = "SELECT * FROM entries"  # `COLUMNS`, then those of rho where the ledger has them


@final
@check_arguments
class Ledger:
    """Budgets in a file, or in PostgreSQL, that never let a dataset spend more than its total.

    `path` is that of a file, or an address like "postgresql://user@host/database" for a ledger that several
    hosts share. A debit is on disk before `debit` returns, and is made before any noise is drawn: a crash
    may lose budget, never spend it unseen. `patience` says for how many seconds to wait for other writers.

    >>> from tempfile import TemporaryDirectory
    >>> folder = TemporaryDirectory()
    >>> ledger = Ledger(f"{folder.name}/budget.db")
    >>> terms = ledger.open("people", epsilon=1, unit="person")
    >>> release = Guarantee(epsilon="1/3", unit="person")
    >>> debit = ledger.debit("people", release, what="ages", key="ages-2026", request={"by": ["age"]})
    >>> ledger.mark_done(debit).state
    'done'
    >>> print(ledger.balance("people").left)
    epsilon 2/3
    >>> ledger.forecast("people", release)
    2
    >>> folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str], *, patience: int = 30) -> None:
        self._store = _store(path, integer(patience, "patience", low=0, high=86_400))
        if self._store.exists():
            self._store.check()

    @property
    def address(self) -> str:
        """Where the ledger is, as it may be shown: a path, or a host and a database."""
        return self._store.address

    @property
    def path(self) -> Path:
        """The file that holds the ledger, where a file does."""
        if not isinstance(self._store, LedgerFile):
            raise self._store.error("is no file", "use its address")
        return self._store.path

    @property
    def store(self) -> LedgerStore:
        """What keeps the ledger."""
        return self._store

    def exists(self) -> bool:
        """Whether somebody has opened a dataset in it."""
        return self._store.exists()

    def open(
        self,
        dataset: str,
        *,
        epsilon: object = None,
        delta: object = 0,
        rho: object = None,
        unit: Unit = "row",
        contributions: int | None = None,
        neighbors: Neighbors = "add-remove",
        constant: tuple[str, ...] = (),
    ) -> Terms:
        """Give a dataset its budget, once and for all; again with the same terms changes nothing.

        The budget is epsilon, perhaps with delta, or rho: zero-concentrated privacy, in which many releases
        cost less. Versions of Partita before 0.2 refuse a ledger from its first rho on.
        """
        name = checked_text(dataset, "dataset")
        terms = Terms.checked(
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            neighbors=neighbors,
            unit=unit,
            contributions=contributions,
            constant=constant,
        )
        if not self._store.exists():
            self._store.create()
        self._store.write(lambda connection: _open(self._store, connection, name, terms))
        return terms

    def datasets(self) -> dict[str, Terms]:
        """The terms of every dataset, by name."""
        return self._store.read(_read_terms)

    def entries(self, dataset: str) -> tuple[Debit, ...]:
        """Every debit of a dataset, in the order they were made."""
        self._terms(dataset)
        return self._store.read(lambda connection: _find_debits(connection, "dataset", dataset))

    def balance(self, dataset: str) -> Balance:
        """The total of a dataset, and what is spent and left of it."""
        terms = self._terms(dataset)
        spending = self._store.read(lambda connection: _read_spending(connection, dataset, terms))
        return Balance(terms.total, terms.total * 0 + spending.spent)

    def forecast(self, dataset: str, guarantee: Guarantee, *, part: Part | None = None) -> int:
        """How many more releases with this guarantee the dataset can pay for."""
        terms = self._terms(dataset)
        price, place = terms.price(checked_guarantee(guarantee)), terms.checked_part(part)
        spending = self._store.read(lambda connection: _read_spending(connection, dataset, terms))
        return price.times_in(terms.total - spending.before(place))

    def debit(
        self,
        dataset: str,
        guarantee: Guarantee,
        *,
        what: str,
        key: str | None = None,
        request: Mapping[str, object] | None = None,
        part: Part | None = None,
        day: date | str | None = None,
    ) -> Debit:
        """Charge a release, or refuse and write nothing.

        With a `key`, asking again for the same thing charges once: a debit that is done comes back as
        it is stored, so that the caller can hand out the stored release; one that is not is lost. The
        same key for another request is refused. `part` names the column and the value that all rows
        of the release have.
        """
        stated, terms = checked_guarantee(guarantee), self._terms(dataset)
        debit = Debit(
            number=0,
            dataset=dataset,
            what=checked_text(what, "what"),
            day=checked_day(day),
            stated=stated,
            charged=terms.price(stated),
            part=terms.checked_part(part),
            key=None if key is None else checked_text(key, "key"),
            request=digest(request),
        )
        return self._store.write(lambda connection: _debit(self._store, connection, debit, terms))

    def mark_done(self, debit: Debit) -> Debit:
        """Record that the release of a debit is stored; again changes nothing."""
        return self._mark(debit, "done")

    def mark_lost(self, debit: Debit) -> Debit:
        """Record that the release of a debit will never be stored; what it cost stays spent."""
        return self._mark(debit, "lost")

    def _mark(self, debit: object, state: State) -> Debit:
        fix = "pass what `debit` returned"
        entry: Debit = check_type(debit, Debit, "debit", "must be a Debit", fix=fix)
        return self._store.write(lambda connection: _mark(connection, entry, state))

    def __repr__(self) -> str:
        return f"Ledger({self.address!r})"

    def _terms(self, dataset: str) -> Terms:
        terms = self._store.read(_read_terms).get(checked_text(dataset, "dataset"))
        if terms is None:
            raise UnknownDataset(
                f"dataset {dataset!r} has no budget in ledger {self.address!r}; the steward opens it first"
            )
        return terms


def _open(store: LedgerStore, connection: Connection, dataset: str, terms: Terms) -> None:
    there = _read_terms(connection).get(dataset)
    if there is None:
        if terms.rho:
            store.widen(connection)
        _add_terms(connection, dataset, terms)
    elif there != terms:
        raise TermsDiffer(
            f"dataset {dataset!r} is open with {_describe_terms(there)}, and terms never change, got "
            f"{_describe_terms(terms)}; keep the old terms"
        )


def _debit(store: LedgerStore, connection: Connection, debit: Debit, terms: Terms) -> Debit:
    earlier = None if debit.key is None else _find_debit(connection, "key", debit.key)
    if earlier is not None:
        return _replay(earlier, debit)
    spending = _read_spending(connection, debit.dataset, terms)
    left = terms.total - spending.before(debit.part)
    if not debit.charged.fits(left):
        amounts = (spending.spent, terms.total, debit.charged, left)
        spent, total, asked, room = (each.said(delta=debit.charged.delta > 0) for each in amounts)
        where = "" if debit.part is None else f" where {debit.part[0]} is {debit.part[1]!r}"
        raise BudgetExceeded(
            f"dataset {debit.dataset!r} cannot pay for {debit.what!r}: spent {spent} of {total}, "
            f"asked {asked}, left {room}{where}; "
            "ask for no more than is left, or answer from a release that is paid for"
        )
    if debit.states_rho:
        store.widen(connection)
    return replace(debit, number=add_debit(connection, debit))


def _replay(earlier: Debit, debit: Debit) -> Debit:
    if not earlier.same_request(debit):
        raise KeyReused(
            f"key {debit.key!r} belongs to another request, made on {earlier.day}; "
            "use a new key for a new request"
        )
    if earlier.state != "done":
        raise BudgetLost(
            f"key {debit.key!r} was debited {earlier.charged} on {earlier.day} and its release is not "
            "stored: unless somebody is still making it, that budget is lost; use a new key and pay again"
        )
    return earlier


def _mark(connection: Connection, debit: Debit, state: State) -> Debit:
    stored = _find_debit(connection, "number", debit.number)
    if stored is None or replace(stored, state="debited") != replace(debit, state="debited"):
        message = f"entry {debit.number} of this ledger is another debit; mark it in its own ledger"
        raise LedgerRefusal(message)
    if stored.state not in ("debited", state):
        raise LedgerRefusal(
            f"entry {debit.number} is {stored.state}, which is final, and cannot become {state}; leave it"
        )
    if stored.state != state:
        connection.execute("UPDATE entries SET state = ? WHERE number = ?", (state, stored.number))
    return replace(stored, state=state)


def _describe_terms(terms: Terms) -> str:
    bound = "" if terms.contributions is None else f" of at most {terms.contributions}"
    constant = f", constant {', '.join(terms.constant)}" if terms.constant else ""
    return f"{terms.total} under {terms.neighbors} per {terms.unit}{bound}{constant}"


def _store(path: object, patience: int) -> LedgerStore:
    if not is_no_path(path):
        return LedgerFile(_checked_path(path), patience)
    return PostgresStore(Address(str(path)), patience)


def _checked_path(path: object) -> Path:
    if isinstance(path, (str, os.PathLike)):
        text = os.fspath(path)
        if isinstance(text, str) and text and "\0" not in text:
            return Path(os.path.realpath(text))
    fix = 'pass for example "budget.db"'
    raise InvalidParameter("path", "must be the path of a file", given=path, fix=fix)


def ledger_at(ledger: object) -> Ledger:
    """A ledger, given as such or by its path."""
    if isinstance(ledger, Ledger):
        return ledger
    rule, fix = "must be a Ledger or the path of one", 'pass for example "budget.db"'
    return Ledger(check_type(ledger, (str, os.PathLike), "ledger", rule, fix=fix))


# The statements of a ledger, always inside a transaction.
_TERMS: Final = ("name", "epsilon", "delta", "neighbors", "unit", "contributions", "constant")


def _read_terms(connection: Connection) -> dict[str, Terms]:
    """The terms of every dataset, in the order of their names."""
    rows = connection.execute("SELECT * FROM datasets ORDER BY name")
    return {name: _terms(*row) for name, *row in rows.fetchall()}


def _add_terms(connection: Connection, dataset: str, terms: Terms) -> None:
    """Write the terms of a new dataset."""
    amounts, unit = (str(terms.epsilon), str(terms.delta)), (terms.neighbors, terms.unit)
    rho = {"rho": str(terms.rho)} if terms.rho else {}
    row = (dataset, *amounts, *unit, terms.contributions, json.dumps(terms.constant), *rho.values())
    connection.execute(f"INSERT INTO datasets {_values((*_TERMS, *rho))}", row)


def _read_spending(connection: Connection, dataset: str, terms: Terms) -> Spending:
    """The sums per part: the store counts equal charges, so that only different ones are added here.

    Charges are in rho where the terms are; a ledger without rho has no column of it.
    """
    charge = "epsilon, delta, rho" if terms.rho else "epsilon, delta"
    rows = connection.execute(
        f"SELECT part_column, part_value, COUNT(*), {charge} FROM entries WHERE dataset = ?"
        f" GROUP BY part_column, part_value, {charge}",
        (dataset,),
    )
    sums: defaultdict[Part | None, Amount] = defaultdict(Amount)
    for column, value, count, *charged in rows.fetchall():
        sums[(column, value) if column is not None else None] += amount(*charged) * count
    return Spending(dict(sums))


def _find_debits(connection: Connection, column: str, value: str | int) -> tuple[Debit, ...]:
    """The entries with `value` in `column`, in the order they were made."""
    rows = connection.execute(f"{_SELECT} WHERE {column} = ? ORDER BY number", (value,))
    return tuple(from_row(row) for row in rows.fetchall())


def _find_debit(connection: Connection, column: str, value: str | int) -> Debit | None:
    """The entry with `value` in a column of distinct values, if there is one."""
    return next(iter(_find_debits(connection, column, value)), None)


def add_debit(connection: Connection, debit: Debit) -> int:
    """Write an entry; its number, which is the largest: numbers rise, and writers come one by one."""
    columns = (*COLUMNS[1:], *RHO_COLUMNS) if debit.states_rho else COLUMNS[1:]
    connection.execute(f"INSERT INTO entries {_values(columns)}", to_row(debit))
    (number,) = connection.execute("SELECT MAX(number) FROM entries").fetchone()
    return int(number)


def _values(columns: Sequence[str]) -> str:
    """The columns that a row has, and a question mark for the value of each."""
    return f"({', '.join(columns)}) VALUES ({', '.join('?' for _ in columns)})"


def _terms(
    epsilon: str,
    delta: str,
    neighbors: Any,
    unit: Any,
    contributions: int | None,
    constant: str,
    rho: str = "0",
) -> Terms:
    total = amount(epsilon, delta, rho)
    try:
        columns = tuple(json.loads(constant))
    except (TypeError, ValueError):
        raise Damaged from None
    return Terms(
        epsilon=total.epsilon,
        delta=total.delta,
        rho=total.rho or Fraction(0),
        neighbors=neighbors,
        unit=unit,
        contributions=contributions,
        constant=columns,
    )
