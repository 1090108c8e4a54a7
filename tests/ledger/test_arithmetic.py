"""Sums are exact, the total is never passed, and a refusal leaves no trace."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partita.errors import BudgetExceeded, InvalidParameter, UnknownDataset
from partita.guarantee import Guarantee
from partita.ledger.entries import Amount, Part
from partita.ledger.ledger import Ledger

POSITIVE = st.fractions(min_value=Fraction(1, 50), max_value=2, max_denominator=60)
SMALL = st.sampled_from([Fraction(0), Fraction(1, 10**6), Fraction(1, 3 * 10**5)])
PARTS = st.sampled_from([None, ("region", "north"), ("region", "south"), ("sex", "f")])


def test_three_thirds_are_one(ledger: Ledger) -> None:
    """A budget of 1 pays for 1/3 three times, and then for nothing."""
    ledger.open("thirds", epsilon=1)
    for _ in range(3):
        ledger.debit("thirds", Guarantee(epsilon="1/3"), what="a third")

    assert ledger.balance("thirds").left == Amount()
    with pytest.raises(BudgetExceeded):
        ledger.debit("thirds", Guarantee(epsilon=Fraction(1, 10**100)), what="a crumb")


def test_a_tenth_is_a_tenth(ledger: Ledger) -> None:
    """The float 0.1 is charged as 1/10, so that thirty of them fill three."""
    for _ in range(30):
        ledger.debit("people", Guarantee(epsilon=0.1), what="a tenth")

    assert ledger.balance("people").spent == Amount(Fraction(3))


def test_a_refusal_says_what_was_spent_asked_and_left(ledger: Ledger) -> None:
    """The message has the exact amounts and a fix."""
    ledger.debit("people", Guarantee(epsilon="7/3"), what="ages")

    with pytest.raises(BudgetExceeded) as refusal:
        ledger.debit("people", Guarantee(epsilon=1), what="salaries")

    assert str(refusal.value) == (
        "dataset 'people' cannot pay for 'salaries': spent epsilon 7/3 of epsilon 3, asked epsilon 1, "
        "left epsilon 2/3; ask for no more than is left, or answer from a release that is paid for"
    )


def test_delta_adds_up_as_epsilon_does(ledger: Ledger) -> None:
    """Enough epsilon does not pay for a delta that is not there."""
    ledger.open("approximate", epsilon=3, delta="1e-6")
    release = Guarantee(epsilon="0.1", delta="4e-7")
    for _ in range(2):
        ledger.debit("approximate", release, what="thresholded")

    assert ledger.balance("approximate").left == Amount(Fraction(28, 10), Fraction(2, 10**7))
    assert ledger.forecast("approximate", release) == 0
    with pytest.raises(BudgetExceeded, match="left epsilon 14/5 and delta 1/5000000"):
        ledger.debit("approximate", release, what="thresholded")


def test_a_pure_budget_has_no_delta(ledger: Ledger) -> None:
    """Without a delta in the terms, any delta is refused, and the message says that none is left."""
    with pytest.raises(BudgetExceeded, match="asked epsilon 1 and delta 1/10, left epsilon 3 and delta 0"):
        ledger.debit("people", Guarantee(epsilon=1, delta="0.1"), what="thresholded")


def test_amounts_of_many_digits_are_shown_in_six(ledger: Ledger) -> None:
    """A message stays readable, while the arithmetic stays exact."""
    ledger.debit("people", Guarantee(epsilon=Fraction(10**100, 10**100 + 1)), what="odd")

    with pytest.raises(BudgetExceeded, match=r"left epsilon about 2\.00000"):
        ledger.debit("people", Guarantee(epsilon=3), what="all")
    assert ledger.balance("people").left.epsilon == 3 - Fraction(10**100, 10**100 + 1)


@pytest.mark.parametrize("epsilon", [Fraction(1, 2**5000), Fraction(2**5000 + 1, 2**5000)])
def test_numbers_of_thousands_of_digits_are_refused(ledger: Ledger, epsilon: Fraction) -> None:
    """They could not be written as text, and every later sum would drag them along."""
    with pytest.raises(InvalidParameter, match="2\\^4096"):
        ledger.debit("people", Guarantee(epsilon=epsilon), what="huge")
    assert ledger.entries("people") == ()


@given(debits=st.lists(st.tuples(POSITIVE, SMALL, PARTS), max_size=12))
@settings(max_examples=25)
def test_random_debits_never_pass_the_total(debits: list[tuple[Fraction, Fraction, Part | None]]) -> None:
    """What is spent is what was granted, at most the total; refusals change nothing."""
    with TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / "budget.db")
        terms = ledger.open("people", epsilon=2, delta="1/200000")
        for epsilon, delta, part in debits:
            before = ledger.balance("people"), ledger.entries("people")
            release = Guarantee(epsilon=epsilon, delta=delta)
            promised = ledger.forecast("people", release, part=part)
            try:
                ledger.debit("people", release, what="random", part=part)
            except BudgetExceeded:
                assert (ledger.balance("people"), ledger.entries("people")) == before
                assert promised == 0
            else:
                assert promised > 0
                assert ledger.forecast("people", release, part=part) == promised - 1
            assert ledger.balance("people").spent.fits(terms.total)


@pytest.mark.parametrize(("epsilon", "times"), [("1", 3), ("1/3", 9), ("2", 1), ("4", 0), ("0.7", 4)])
def test_forecast_counts_whole_releases(ledger: Ledger, epsilon: str, times: int) -> None:
    """It is the largest number of debits that fit."""
    assert ledger.forecast("people", Guarantee(epsilon=epsilon)) == times


def test_budgets_are_apart(ledger: Ledger) -> None:
    """What one dataset spends, another keeps."""
    ledger.open("visits", epsilon=1)
    ledger.debit("people", Guarantee(epsilon=3), what="all of it")

    assert ledger.balance("visits").spent == Amount()
    assert list(ledger.datasets()) == ["people", "visits"]


def test_an_unopened_dataset_has_no_budget(ledger: Ledger) -> None:
    """Every question about it is refused by name."""
    for ask in (ledger.balance, ledger.entries):
        with pytest.raises(UnknownDataset, match=r"'nobody'.*the steward opens it first"):
            ask("nobody")
    with pytest.raises(UnknownDataset):
        ledger.forecast("nobody", Guarantee(epsilon=1))
    with pytest.raises(UnknownDataset):
        ledger.debit("nobody", Guarantee(epsilon=1), what="ages")
