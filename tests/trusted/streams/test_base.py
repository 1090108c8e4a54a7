"""The terms of counters: rates, promises, and what is refused."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.errors import InvalidData, InvalidParameter, InvalidState
from partita.public.streams import LARGEST, CounterTerms, check_horizon
from partita.trusted.streams.base import counted


@given(
    st.fractions(min_value=Fraction(1, 10**6), max_value=5).filter(bool),
    st.integers(1, 100),
    st.integers(1, 100),
)
def test_terms_come_back_from_a_state(epsilon: Fraction, change: int, contributions: int) -> None:
    """Exactly, whatever the fraction."""
    terms = CounterTerms.of(epsilon, change=change, contributions=contributions)

    assert CounterTerms.unpacked(terms.packed().tolist()) == terms


def test_the_rate_is_for_a_change_of_one() -> None:
    """Epsilon is shared by the events of a user and the units of an event."""
    assert CounterTerms.of(1, change=3, contributions=2).rate == Fraction(1, 6)


def test_an_event_is_protected_or_a_user() -> None:
    """The unit follows from how many events one may have."""
    assert CounterTerms.of(1).guarantee.unit == "event"
    user = CounterTerms.of(1, contributions=5).guarantee
    assert (str(user.unit), user.contributions, user.epsilon) == ("user", 5, Fraction(1))


@pytest.mark.parametrize(
    "row", [[], [1, 2], [300], [49, 32, 49], list(b"0 1 1"), list(b"1 0 1"), list(b"x y z")]
)
def test_rows_that_are_no_terms_are_refused(row: list[int]) -> None:
    """A state without sound terms is none."""
    with pytest.raises(InvalidState):
        CounterTerms.unpacked(row)


@pytest.mark.parametrize(
    ("given", "parameter"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": "much"}, "epsilon"),
        ({"epsilon": 1, "change": 0}, "change"),
        ({"epsilon": 1, "change": 1.5}, "change"),
        ({"epsilon": 1, "contributions": 0}, "contributions"),
        ({"epsilon": 1, "contributions": True}, "contributions"),
    ],
)
def test_bad_terms_are_refused_by_name(given: dict[str, Any], parameter: str) -> None:
    """The error names the parameter."""
    epsilon = given.pop("epsilon")
    with pytest.raises(InvalidParameter) as refused:
        CounterTerms.of(epsilon, **given)

    assert refused.value.parameter == parameter


@pytest.mark.parametrize("x", [1.0, "1", None, True, LARGEST, -LARGEST])
def test_only_integers_are_counted_and_none_is_shown(x: object) -> None:
    """An error about what was counted never holds it."""
    with pytest.raises(InvalidData) as refused:
        counted(x)

    assert str(LARGEST) not in str(refused.value)


@pytest.mark.parametrize("horizon", [0, -1, 1.5, True, LARGEST + 1])
def test_bad_horizons_are_refused(horizon: object) -> None:
    """A horizon is a positive number of periods."""
    with pytest.raises(InvalidParameter, match="horizon"):
        check_horizon(horizon)
