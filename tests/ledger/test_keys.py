"""A key charges once: done comes back, not done is lost, another request is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from partita.errors import BudgetExceeded, BudgetLost, InvalidParameter, KeyReused, LedgerRefusal
from partita.guarantee import Guarantee
from partita.ledger.entries import Debit
from partita.ledger.ledger import Ledger

RELEASE = Guarantee(epsilon=2)
ASKED: dict[str, Any] = {
    "dataset": "people",
    "guarantee": RELEASE,
    "what": "ages",
    "key": "k1",
    "request": {"by": ["age"], "epsilon": "2"},
}


def ask(ledger: Ledger, **other: object) -> Debit:
    return ledger.debit(**ASKED | other)


def test_a_done_debit_comes_back_without_a_charge(ledger: Ledger) -> None:
    """The same key and request, in any order and on any day, return the stored entry."""
    done = ledger.mark_done(ask(ledger, day="2026-01-31"))

    assert ask(ledger, request={"epsilon": "2", "by": ("age",)}, day="2026-02-01") == done
    assert done.state == "done"
    assert ledger.entries("people") == (done,)


def test_a_done_debit_comes_back_from_a_full_ledger(ledger: Ledger) -> None:
    """Replaying needs no budget."""
    done = ledger.mark_done(ask(ledger))
    ledger.debit("people", Guarantee(epsilon=1), what="the rest")

    assert ask(ledger) == done


@pytest.mark.parametrize("lost", [False, True])
def test_a_debit_that_is_not_done_is_lost(ledger: Ledger, lost: bool) -> None:
    """The retry is refused, writes nothing, and asks for a new key."""
    debit = ask(ledger)
    before = ledger.mark_lost(debit) if lost else debit

    with pytest.raises(BudgetLost, match=r"'k1' was debited epsilon 2 .* use a new key"):
        ask(ledger)
    assert ledger.entries("people") == (before,)


@pytest.mark.parametrize("done", [False, True])
@pytest.mark.parametrize(
    "other",
    [
        {"request": {"by": ["salary"], "epsilon": "2"}},
        {"request": None},
        {"guarantee": Guarantee(epsilon=1)},
        {"what": "salaries"},
        {"part": ("region", "north")},
        {"dataset": "visits"},
    ],
)
def test_a_key_for_another_request_is_refused(ledger: Ledger, other: dict[str, Any], done: bool) -> None:
    """A key names one request in the whole ledger, done or not."""
    ledger.open("visits", epsilon=3)
    debit = ask(ledger)
    if done:
        ledger.mark_done(debit)

    with pytest.raises(KeyReused, match="'k1' belongs to another request"):
        ask(ledger, **other)
    assert len(ledger.entries("people")) == 1
    assert ledger.entries("visits") == ()


def test_a_refused_debit_does_not_use_up_its_key(ledger: Ledger) -> None:
    """What was never charged may be asked for again, and for less."""
    with pytest.raises(BudgetExceeded):
        ask(ledger, guarantee=Guarantee(epsilon=4))

    assert ask(ledger).key == "k1"


def test_without_a_key_every_debit_is_charged(ledger: Ledger) -> None:
    """Equal requests without a key are different releases."""
    for _ in range(2):
        ask(ledger, key=None, guarantee=Guarantee(epsilon=1))

    assert ledger.balance("people").spent.epsilon == 2


def test_only_a_digest_of_the_request_is_stored(ledger: Ledger) -> None:
    """The entry holds 64 hexadecimal digits, and the store nothing of the request."""
    debit = ask(ledger, request={"by": ["a most peculiar column"]})
    stored = ledger.store.read(lambda connection: connection.execute("SELECT * FROM entries").fetchall())

    assert len(debit.request or "") == 64
    assert "peculiar" not in repr(stored)


def test_marking_again_changes_nothing(ledger: Ledger) -> None:
    """`mark_done` and `mark_lost` may be repeated, with the old or the new debit."""
    first, second = ask(ledger), ledger.debit("people", Guarantee(epsilon=1), what="more")
    done, lost = ledger.mark_done(first), ledger.mark_lost(second)

    assert (done, done) == (ledger.mark_done(first), ledger.mark_done(done))
    assert (lost, lost) == (ledger.mark_lost(second), ledger.mark_lost(lost))
    assert ledger.entries("people") == (done, lost)


def test_done_and_lost_are_final(ledger: Ledger) -> None:
    """Neither becomes the other."""
    first, second = ask(ledger), ledger.debit("people", Guarantee(epsilon=1), what="more")
    ledger.mark_done(first)
    ledger.mark_lost(second)

    with pytest.raises(LedgerRefusal, match="is done, which is final"):
        ledger.mark_lost(first)
    with pytest.raises(LedgerRefusal, match="is lost, which is final"):
        ledger.mark_done(second)


def test_lost_budget_stays_spent(ledger: Ledger) -> None:
    """Noise may have been seen before the loss."""
    ledger.mark_lost(ask(ledger))

    assert ledger.balance("people").spent.epsilon == 2


def test_a_debit_is_marked_in_its_own_ledger(ledger: Ledger, places: Callable[[str], str]) -> None:
    """The same number in another ledger is another debit, and so is a number that is not there."""
    other = Ledger(places("other"))
    other.open("people", epsilon=3)
    debit, foreign = ask(ledger), ask(other, what="salaries")

    for stranger in (foreign, replace(debit, number=99)):
        with pytest.raises(LedgerRefusal, match="is another debit"):
            ledger.mark_done(stranger)
    assert ledger.entries("people") == (debit,)


def test_only_a_debit_can_be_marked(ledger: Ledger) -> None:
    """A number is no proof of a debit."""
    with pytest.raises(InvalidParameter, match="debit must be a Debit"):
        ledger.mark_done(1)  # type: ignore[arg-type]
