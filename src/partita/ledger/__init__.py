"""What was spent, durably, before any noise is drawn.

    entries     amounts, terms, debits, and how charges compose; what a store must do
    sqlite      the store in a file
    postgres    the store in PostgreSQL, for services on several hosts, and addresses of databases
    ledger      `Ledger`, which puts them together

Why the accounting is right: docs/decisions/ledger.md
"""

from __future__ import annotations

from partita.ledger.entries import Amount, Balance, Debit, State, Terms
from partita.ledger.ledger import Ledger, LedgerPlace, ledger_at

__all__ = ["Amount", "Balance", "Debit", "Ledger", "LedgerPlace", "State", "Terms", "ledger_at"]
