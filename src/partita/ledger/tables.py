"""What a ledger says to its store, always inside a transaction."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

from partita.ledger.amount import Amount
from partita.ledger.debit import COLUMNS, Debit, amount, from_row, to_row
from partita.ledger.names import Part
from partita.ledger.spending import Spending
from partita.ledger.store import Connection, Damaged
from partita.ledger.terms import Terms

__all__ = ["add_debit", "add_terms", "find_debit", "find_debits", "read_spending", "read_terms", "set_state"]

_SELECT = f"SELECT {', '.join(COLUMNS)} FROM entries"
_INSERT = f"INSERT INTO entries ({', '.join(COLUMNS[1:])}) VALUES ({', '.join('?' for _ in COLUMNS[1:])})"


def read_terms(connection: Connection) -> dict[str, Terms]:
    """The terms of every dataset, in the order of their names."""
    rows = connection.execute(
        "SELECT name, epsilon, delta, neighbors, unit, contributions, constant FROM datasets ORDER BY name"
    )
    return {name: _terms(*row) for name, *row in rows.fetchall()}


def add_terms(connection: Connection, dataset: str, terms: Terms) -> None:
    """Write the terms of a new dataset."""
    connection.execute(
        "INSERT INTO datasets VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            dataset,
            str(terms.epsilon),
            str(terms.delta),
            terms.neighbors,
            terms.unit,
            terms.contributions,
            json.dumps(terms.constant),
        ),
    )


def read_spending(connection: Connection, dataset: str) -> Spending:
    """The sums per part: the store counts equal charges, so that only different ones are added here."""
    rows = connection.execute(
        "SELECT part_column, part_value, epsilon, delta, COUNT(*) FROM entries WHERE dataset = ?"
        " GROUP BY part_column, part_value, epsilon, delta",
        (dataset,),
    )
    sums: defaultdict[Part | None, Amount] = defaultdict(Amount)
    for column, value, epsilon, delta, count in rows.fetchall():
        sums[(column, value) if column is not None else None] += amount(epsilon, delta) * count
    return Spending(dict(sums))


def find_debits(connection: Connection, column: str, value: str | int) -> tuple[Debit, ...]:
    """The entries with `value` in `column`, in the order they were made."""
    rows = connection.execute(f"{_SELECT} WHERE {column} = ? ORDER BY number", (value,))
    return tuple(from_row(row) for row in rows.fetchall())


def find_debit(connection: Connection, column: str, value: str | int) -> Debit | None:
    """The entry with `value` in a column of distinct values, if there is one."""
    return next(iter(find_debits(connection, column, value)), None)


def add_debit(connection: Connection, debit: Debit) -> int:
    """Write an entry; its number, which is the largest: numbers rise, and writers come one by one."""
    connection.execute(_INSERT, to_row(debit))
    (number,) = connection.execute("SELECT MAX(number) FROM entries").fetchone()
    return int(number)


def set_state(connection: Connection, debit: Debit) -> None:
    """Write the state of an entry that is there."""
    connection.execute("UPDATE entries SET state = ? WHERE number = ?", (debit.state, debit.number))


def _terms(
    epsilon: str, delta: str, neighbors: Any, unit: Any, contributions: int | None, constant: str
) -> Terms:
    total = amount(epsilon, delta)
    return Terms(
        epsilon=total.epsilon,
        delta=total.delta,
        neighbors=neighbors,
        unit=unit,
        contributions=contributions,
        constant=_names(constant),
    )


def _names(text: str) -> tuple[str, ...]:
    try:
        return tuple(json.loads(text))
    except (TypeError, ValueError):
        raise Damaged from None
