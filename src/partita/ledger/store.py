"""What keeps a ledger: a file or a database. Both run one piece of work in one durable transaction.

The tables, the rules and the arithmetic are the same on both, and are said in SQL that both understand;
a question mark stands for a value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from partita.errors import LedgerError

__all__ = ["DAMAGED", "LOCKED", "Connection", "Damaged", "Found", "Store"]

Result = TypeVar("Result")

LOCKED = ("is locked by another process", "try again, or end the process that holds it")
DAMAGED = ("is damaged", "restore a copy that knows every debit; a new ledger would forget what was spent")


class Damaged(Exception):
    """A stored value cannot be read; stores say it as they say that a page cannot be."""


class Found(Protocol):
    """What a statement found or changed."""

    @property
    def rowcount(self) -> int: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...


class Connection(Protocol):
    """An open transaction."""

    def execute(self, statement: str, parameters: Sequence[Any] = (), /) -> Found:
        """Run one statement, with a value for each of its question marks."""


class Store(Protocol):
    """Where a ledger is; it holds nothing open between two acts.

    `address` is what may be shown of the place. `additions` are statements that add what ledgers of earlier
    days lack; to run them again changes nothing.
    """

    @property
    def address(self) -> str: ...

    @property
    def additions(self) -> Sequence[str]: ...

    def exists(self) -> bool:
        """Whether there is something at the place that might be a ledger."""

    def check(self) -> None:
        """Refuse what is no ledger, or one that was tampered with as far as the store can tell."""

    def create(self) -> None:
        """Put an empty ledger at the place, whole or not at all, unless there is one."""

    def read(self, work: Callable[[Connection], Result]) -> Result:
        """What `work` finds in one consistent state."""

    def write(self, work: Callable[[Connection], Result]) -> Result:
        """What `work` returns, once all it wrote is on disk; if it raises, nothing is written.

        Writers come one after the other, and each sees what all before it wrote.
        """

    def error(self, rule: str, fix: str) -> LedgerError:
        """An error that names the place as it may be shown."""
