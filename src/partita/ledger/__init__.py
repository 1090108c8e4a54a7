"""What was spent, durably, before any noise is drawn.

    amount      epsilon and delta as a currency
    names       what callers hand in, checked
    terms       what the steward opened: a total, a unit, neighbours, constant columns
    spending    how charges compose: sequentially, and in parallel over the parts of a column
    debit       one entry of the ledger
    store       what keeps a ledger: one piece of work in one durable transaction
    schema      the tables in SQLite, which refuse to forget
    file        SQLite: transactions, durability, typed errors
    address     where a database is, and what of that may be shown
    postgres    PostgreSQL, for services on several hosts; its tables are in `postgres_schema`
    tables      what is said to a store
    book        `Ledger`, which puts them together

Why the accounting is right: docs/decisions/ledger.md
"""

from __future__ import annotations

from partita.ledger.amount import Amount, Balance
from partita.ledger.book import Ledger, LedgerPlace, ledger_at
from partita.ledger.debit import Debit, State
from partita.ledger.terms import Terms

__all__ = ["Amount", "Balance", "Debit", "Ledger", "LedgerPlace", "State", "Terms", "ledger_at"]
