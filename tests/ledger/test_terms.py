"""Datasets are opened once; releases are priced in the unit and relation of the dataset."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from partita.errors import IncompatibleGuarantees, InvalidParameter, PrivacyWarning, TermsDiffer
from partita.guarantee import Guarantee
from partita.ledger.entries import Amount
from partita.ledger.ledger import Ledger

BUDGET: dict[str, Any] = {"epsilon": 3, "delta": "1e-6", "unit": "person", "contributions": 4}


def price(ledger: Ledger, guarantee: Guarantee) -> Amount:
    """What a new entry of `priced` is charged."""
    return ledger.debit("priced", guarantee, what="a release").charged


def test_opening_again_with_the_same_terms_changes_nothing(ledger: Ledger) -> None:
    """Numbers are compared by value, columns as a set, and what was spent stays spent."""
    ledger.open("a", epsilon="1/2", constant=("x", "y"))
    ledger.debit("a", Guarantee(epsilon="0.5"), what="all")
    terms = ledger.open("a", epsilon=0.5, constant=("y", "x", "y"))

    assert ledger.datasets()["a"] == terms
    assert ledger.balance("a").left == Amount()


@pytest.mark.parametrize(
    "other",
    [
        {"epsilon": 4},
        {"delta": 0},
        {"contributions": 5},
        {"contributions": None},
        {"unit": "user"},
        {"neighbors": "change-one"},
        {"constant": ("region",)},
    ],
)
def test_opening_again_with_other_terms_is_refused(ledger: Ledger, other: dict[str, Any]) -> None:
    """Terms never change, and the message shows both."""
    ledger.open("a", **BUDGET)

    with pytest.raises(TermsDiffer, match="epsilon 3 and delta 1/1000000 under add-remove per person"):
        ledger.open("a", **BUDGET | other)
    assert ledger.open("a", **BUDGET) == ledger.datasets()["a"]


def test_an_add_remove_release_costs_twice_under_change_one(ledger: Ledger) -> None:
    """A change is a removal and an addition."""
    ledger.open("priced", epsilon=3, neighbors="change-one")

    assert price(ledger, Guarantee(epsilon="1/3")) == Amount(Fraction(2, 3))
    assert price(ledger, Guarantee(epsilon="1/3", neighbors="change-one")) == Amount(Fraction(1, 3))


def test_a_row_release_costs_k_times_per_person(ledger: Ledger) -> None:
    """k is the number of rows that the steward says a person has at most."""
    ledger.open("priced", epsilon=3, unit="person", contributions=4)

    assert price(ledger, Guarantee(epsilon="1/3")) == Amount(Fraction(4, 3))


def test_an_event_release_costs_k_times_per_user(ledger: Ledger) -> None:
    """Users and events are to streams what persons and rows are to tables."""
    ledger.open("priced", epsilon=3, unit="user", contributions=2)

    assert price(ledger, Guarantee(epsilon=1, unit="event")) == Amount(Fraction(2))


def test_both_factors_multiply(ledger: Ledger) -> None:
    """A row release under add-remove costs 2k per changed person, and its delta grows with e^epsilon."""
    ledger.open("priced", epsilon=3, delta="1/10", unit="person", contributions=3, neighbors="change-one")
    charged = price(ledger, Guarantee(epsilon="1/10", delta="1/1000"))
    group = sum(math.exp(i / 10) for i in range(6)) / 1000

    assert charged.epsilon == Fraction(6, 10)
    assert group <= charged.delta <= group * (1 + 1e-9)


@pytest.mark.parametrize("contributions", [1, 7])
def test_a_person_release_costs_what_it_says(ledger: Ledger, contributions: int) -> None:
    """The bound in the guarantee is the one that the release enforces; people may have more rows."""
    ledger.open("priced", epsilon=3, unit="person")
    release = Guarantee(epsilon=1, unit="person", contributions=contributions)

    assert price(ledger, release) == Amount(Fraction(1))


@pytest.mark.parametrize(
    ("terms", "release"),
    [
        ({"unit": "person"}, {}),
        ({"unit": "person", "contributions": 2}, {"unit": "event"}),
        ({"unit": "person", "contributions": 2}, {"unit": "user"}),
        ({"unit": "row"}, {"unit": "person"}),
        ({"unit": "row"}, {"unit": "event"}),
        ({"unit": "row"}, {"neighbors": "change-one"}),
        ({"unit": "person", "contributions": 2, "neighbors": "change-one"}, {"neighbors": "change-one"}),
    ],
)
def test_a_release_without_a_public_factor_is_refused(
    ledger: Ledger, terms: dict[str, Any], release: dict[str, Any]
) -> None:
    """The ledger does not guess a price."""
    ledger.open("priced", epsilon=3, **terms)

    with pytest.raises(IncompatibleGuarantees):
        price(ledger, Guarantee(epsilon="1/10", **release))
    with pytest.raises(IncompatibleGuarantees):
        ledger.forecast("priced", Guarantee(epsilon="1/10", **release))
    assert ledger.entries("priced") == ()


def test_an_entry_tells_what_was_stated_and_what_was_charged(ledger: Ledger) -> None:
    """It comes back as it was returned, with the day that was given."""
    ledger.open("priced", epsilon=3, neighbors="change-one")
    stated = Guarantee(epsilon="1/3", intrusions=1)
    debit = ledger.debit("priced", stated, what="ages", day="2026-01-31")

    assert ledger.entries("priced") == (debit,)
    assert (debit.stated, debit.charged, debit.day) == (stated, Amount(Fraction(2, 3)), "2026-01-31")
    assert (debit.state, debit.part, debit.key, debit.request) == ("debited", None, None, None)


def test_an_entry_has_a_day_and_no_time(ledger: Ledger) -> None:
    """Without a day it is today in UTC."""
    before = datetime.now(UTC).date()
    debit = ledger.debit("people", Guarantee(epsilon=1), what="ages")

    assert before <= date.fromisoformat(debit.day) <= datetime.now(UTC).date()
    assert len(debit.day) == len("2026-01-31")


def test_a_large_epsilon_warns_once_and_not_when_it_is_read(ledger: Ledger, place: str) -> None:
    """Opening and stating warn; listing, balancing and marking do not."""
    with pytest.warns(PrivacyWarning):
        ledger.open("large", epsilon=20)
    with pytest.warns(PrivacyWarning):
        release = Guarantee(epsilon=10)
    debit = ledger.debit("large", release, what="large")

    assert ledger.mark_done(debit).stated == release
    assert Ledger(place).entries("large")[0].stated == release


OPENS: list[Callable[[Ledger], object]] = [
    lambda ledger: ledger.open("", epsilon=1),
    lambda ledger: ledger.open(" people", epsilon=1),
    lambda ledger: ledger.open("two\nlines", epsilon=1),
    lambda ledger: ledger.open("\ud800", epsilon=1),
    lambda ledger: ledger.open("x" * 201, epsilon=1),
    lambda ledger: ledger.open(7, epsilon=1),  # type: ignore[arg-type]
    lambda ledger: ledger.open("a", epsilon=0),
    lambda ledger: ledger.open("a", epsilon=-1),
    lambda ledger: ledger.open("a", epsilon=True),
    lambda ledger: ledger.open("a", epsilon=math.nan),
    lambda ledger: ledger.open("a", epsilon=math.inf),
    lambda ledger: ledger.open("a", epsilon=None),
    lambda ledger: ledger.open("a", epsilon=1, delta=-1),
    lambda ledger: ledger.open("a", epsilon=1, delta=2),
    lambda ledger: ledger.open("a", epsilon=1, delta=True),
    lambda ledger: ledger.open("a", epsilon=1, unit="household"),  # type: ignore[arg-type]
    lambda ledger: ledger.open("a", epsilon=1, neighbors="near"),  # type: ignore[arg-type]
    lambda ledger: ledger.open("a", epsilon=1, contributions=2),
    lambda ledger: ledger.open("a", epsilon=1, unit="person", contributions=0),
    lambda ledger: ledger.open("a", epsilon=1, unit="person", contributions=True),
    lambda ledger: ledger.open("a", epsilon=1, unit="person", contributions=10**7),
    lambda ledger: ledger.open("a", epsilon=1, constant="region"),  # type: ignore[arg-type]
    lambda ledger: ledger.open("a", epsilon=1, constant=("",)),
]


@pytest.mark.parametrize("ask", OPENS)
def test_bad_terms_are_refused_before_a_file_is_made(tmp_path: Path, ask: Callable[[Ledger], object]) -> None:
    """Nothing is written for terms that break a rule."""
    with pytest.raises(InvalidParameter):
        ask(Ledger(tmp_path / "budget.db"))
    assert list(tmp_path.iterdir()) == []


RELEASE = Guarantee(epsilon=1)

DEBITS: list[dict[str, Any]] = [
    {"dataset": ""},
    {"dataset": None},
    {"guarantee": 1},
    {"guarantee": None},
    {"what": ""},
    {"what": "x" * 201},
    {"what": None},
    {"key": ""},
    {"key": "x" * 201},
    {"key": 7},
    {"part": "region"},
    {"part": ("region",)},
    {"part": ("region", 7)},
    {"part": ("region", "")},
    {"part": ["region", "north"]},
    {"day": "31.1.2026"},
    {"day": "20260131"},
    {"day": "2026-02-30"},
    {"day": datetime(2026, 1, 31, 12, tzinfo=UTC)},
    {"day": 20260131},
    {"request": "age"},
    {"request": {1: "age"}},
    {"request": {"by": {1: "age"}}},
    {"request": {"epsilon": math.nan}},
    {"request": {"epsilon": Fraction(1, 3)}},
    {"request": {"rows": {"a set"}}},
]


@pytest.mark.parametrize("bad", DEBITS)
def test_bad_debits_are_refused_and_leave_no_trace(ledger: Ledger, bad: dict[str, Any]) -> None:
    """Every parameter is checked before anything is written."""
    asked: dict[str, Any] = {"dataset": "people", "guarantee": RELEASE, "what": "ages"} | bad
    with pytest.raises(InvalidParameter):
        ledger.debit(**asked)
    assert ledger.entries("people") == ()


def test_a_request_that_holds_itself_is_refused(ledger: Ledger) -> None:
    """JSON cannot write it."""
    circle: dict[str, Any] = {}
    circle["again"] = circle

    with pytest.raises(InvalidParameter, match="request must be a mapping that JSON can write"):
        ledger.debit("people", RELEASE, what="ages", request=circle)
