"""What a ledger knows of an online session: one debit, who writes it, and how many acts it has begun."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import final

from partita.errors.errors import InvalidParameter, LedgerRefusal, StreamForked
from partita.guarantee.guarantee import Guarantee
from partita.ledger.ledger.ledger import Ledger
from partita.trusted.durable.stream.account import Writer
from partita.trusted.mechanisms.online_weights.online_store import OnlineStore


@final
class OnlineAccount:
    """Counts the acts of a session before they happen: in its file, and in the ledger where there is one.

    The ledger's number only ever rises, so a session file that is an old copy is refused, and so is a
    session that was opened again elsewhere. The file says that a ledger pays before it does: a copy cannot
    be opened without it.
    """

    def __init__(self, store: OnlineStore, writer: Writer | None = None) -> None:
        self._store, self._writer = store, writer

    @staticmethod
    def opened(
        store: OnlineStore, guarantee: Guarantee, ledger: Ledger | None, dataset: str | None
    ) -> OnlineAccount:
        """Pay for a new session, all of it at once, and become its one writer."""
        if ledger is None and dataset is None:
            return _without_ledger(store)
        if not isinstance(ledger, Ledger) or dataset is None:
            fix = "pass a Ledger and one of its datasets"
            raise InvalidParameter("ledger", "and dataset go together", given=dataset, fix=fix)
        _pay(store, guarantee, ledger, dataset)
        writer = Writer(ledger.store, store.name, store.acts)
        with _said(store):
            writer.claim(lambda _: b"")
        return OnlineAccount(store, writer)

    def act(self) -> int:
        """Count one more act wherever it is counted; only then may it draw and answer. Its number."""
        number = self._store.act()
        if self._writer is not None:
            with _said(self._store):
                self._writer.reach(number, b"")
        return number


def _without_ledger(store: OnlineStore) -> OnlineAccount:
    if store.by_ledger:
        raise LedgerRefusal(
            f"a ledger pays for weights session {str(store.path)!r} and counts its acts; open it with the "
            "same ledger and dataset"
        )
    return OnlineAccount(store)


def _pay(store: OnlineStore, guarantee: Guarantee, ledger: Ledger, dataset: str) -> None:
    """Debit the session once, however often it is opened."""
    key = f"weights {store.name}"
    entry = next((entry for entry in ledger.entries(dataset) if entry.key == key), None)
    if entry is None and store.acts:
        raise LedgerRefusal(f"ledger {ledger.address!r} has not paid for this session; pass the one that did")
    store.pay_by_ledger()
    if entry is None:
        entry = ledger.debit(dataset, guarantee, what="online weights", key=key)
    ledger.mark_done(entry)


@contextmanager
def _said(store: OnlineStore) -> Iterator[None]:
    try:
        yield
    except StreamForked:
        raise StreamForked(
            f"weights session {str(store.path)!r} is an old copy, or was opened again elsewhere: to go on "
            "would answer twice from one budget; close it and use the latest"
        ) from None
