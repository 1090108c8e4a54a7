"""Guarantees: exact arithmetic, composition, conversion, and what is refused."""

from __future__ import annotations

import math
import warnings
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita import Guarantee
from partita.errors import IncompatibleGuarantees, InvalidParameter, PrivacyWarning
from partita.guarantee import rows_changed

BAD_EPSILONS = [0, -1, "0", "-0.1", math.nan, math.inf, -math.inf, True, None, "much", "", [1], "1/0", 1j]


@pytest.mark.parametrize(
    ("written", "exact"),
    [
        ("0.1", Fraction(1, 10)),
        (0.1, Fraction(1, 10)),
        (np.float64(0.1), Fraction(1, 10)),
        (np.float32(0.5), Fraction(1, 2)),
        (Decimal("0.1"), Fraction(1, 10)),
        (Fraction(1, 3), Fraction(1, 3)),
        ("1/3", Fraction(1, 3)),
        ("1e-2", Fraction(1, 100)),
        (np.int64(2), Fraction(2)),
        (5, Fraction(5)),
    ],
    ids=repr,
)
def test_epsilon_is_what_was_written(written: object, exact: Fraction) -> None:
    """Text, floats, decimals and fractions are read exactly as they are written."""
    assert Guarantee(epsilon=written).epsilon == exact


@pytest.mark.parametrize("epsilon", BAD_EPSILONS, ids=repr)
def test_bad_epsilons_are_refused(epsilon: object) -> None:
    """Epsilon is a finite positive number and nothing else."""
    with pytest.raises(InvalidParameter) as error:
        Guarantee(epsilon=epsilon)

    assert error.value.parameter == "epsilon"


@pytest.mark.parametrize(
    "changes",
    [
        {"delta": -1},
        {"delta": "1.01"},
        {"delta": None},
        {"neighbors": "cousins"},
        {"unit": "house"},
        {"contributions": 0},
        {"contributions": 2},
        {"contributions": True},
        {"intrusions": -1},
        {"intrusions": 1.0},
    ],
    ids=str,
)
def test_bad_fields_are_named(changes: dict[str, Any]) -> None:
    """Each field is checked, and the error names it; only persons and users have several rows."""
    with pytest.raises(InvalidParameter) as error:
        Guarantee(**{"epsilon": 1, **changes})

    assert [error.value.parameter] == list(changes)


positive = st.fractions(min_value=Fraction(1, 1000), max_value=2, max_denominator=1000)
small = st.fractions(min_value=0, max_value=Fraction(1, 4), max_denominator=1000)


@given(positive, positive, small, small)
def test_sequential_composition_adds(one: Fraction, other: Fraction, delta: Fraction, more: Fraction) -> None:
    """Epsilons and deltas add up, exactly and in either order."""
    first, second = Guarantee(epsilon=one, delta=delta), Guarantee(epsilon=other, delta=more)

    assert first + second == second + first == Guarantee(epsilon=one + other, delta=delta + more)


@given(positive, positive, small, small)
def test_parallel_composition_takes_the_larger(
    one: Fraction, other: Fraction, delta: Fraction, more: Fraction
) -> None:
    """Parts that share no unit cost as much as the dearest of them."""
    first, second = Guarantee(epsilon=one, delta=delta), Guarantee(epsilon=other, delta=more)

    assert first.beside(second) == Guarantee(epsilon=max(one, other), delta=max(delta, more))


def test_parallel_composition_needs_add_remove_neighbors() -> None:
    """A changed unit may leave one part and enter another, so change-one does not compose in parallel."""
    changed = Guarantee(epsilon=1, neighbors="change-one")

    with pytest.raises(IncompatibleGuarantees, match="add-remove"):
        changed.beside(changed)


def test_a_tenth_and_two_tenths_are_three_tenths() -> None:
    """No rounding enters a sum of budgets."""
    assert (Guarantee(epsilon=0.1) + Guarantee(epsilon=0.2)).epsilon == Fraction(3, 10)


def test_deltas_and_intrusions_are_capped() -> None:
    """Delta never exceeds one, and a composition covers as many looks as its weaker part."""
    loose = Guarantee(epsilon=1, delta="0.7", intrusions=2)

    both = loose + Guarantee(epsilon=1, delta="0.7", intrusions=1)

    assert (both.delta, both.intrusions) == (Fraction(1), 1)


@given(positive, st.integers(1, 3))
def test_conversions_cost_their_factor(epsilon: Fraction, rows: int) -> None:
    """A change costs twice an addition, and a person with k rows k times a row."""
    with warnings.catch_warnings(action="ignore", category=PrivacyWarning):
        guarantee = Guarantee(epsilon=epsilon)

        changed = guarantee.to_neighbors("change-one")
        person = guarantee.to_unit("person", contributions=rows)

    assert changed == Guarantee(epsilon=2 * epsilon, neighbors="change-one")
    assert (person.epsilon, person.unit, person.contributions) == (rows * epsilon, "person", rows)


@given(positive, st.fractions(min_value=Fraction(1, 10**9), max_value=Fraction(1, 10**6)), st.integers(1, 3))
def test_group_privacy_never_understates_delta(epsilon: Fraction, delta: Fraction, rows: int) -> None:
    """Delta grows by 1 + e^epsilon + ... + e^((k-1) epsilon), rounded up by less than a billionth."""
    with warnings.catch_warnings(action="ignore", category=PrivacyWarning):
        group = Guarantee(epsilon=epsilon, delta=delta).to_unit("person", contributions=rows)

    exact = delta * sum(_exp(epsilon * i) for i in range(rows))
    assert exact <= group.delta <= exact * (1 + Fraction(1, 10**9))


def _exp(x: Fraction) -> Fraction:
    """exp(x) from below, by its series; short of it by less than 1e-30 for x <= 4."""
    term, total = Fraction(1), Fraction(1)
    for i in range(1, 60):
        term = Fraction(math.floor(term * x / i * 2**160), 2**160)
        total += term
    return total


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Guarantee(epsilon=1), Guarantee(epsilon=1, neighbors="change-one")),
        (Guarantee(epsilon=1), Guarantee(epsilon=1, unit="event")),
        (Guarantee(epsilon=1, unit="person"), Guarantee(epsilon=1, unit="person", contributions=2)),
    ],
    ids=str,
)
def test_different_relations_do_not_compose(one: Guarantee, other: Guarantee) -> None:
    """Guarantees about different neighbours or units have no sum and no maximum."""
    for compose in (one.__add__, one.beside):
        with pytest.raises(IncompatibleGuarantees, match="compose only"):
            compose(other)


def test_impossible_conversions_are_refused() -> None:
    """Change-one says nothing about add-remove, nor a person's bound about a smaller unit or another one."""
    with pytest.raises(IncompatibleGuarantees):
        Guarantee(epsilon=1, neighbors="change-one").to_neighbors("add-remove")
    with pytest.raises(IncompatibleGuarantees):
        Guarantee(epsilon=1, unit="person", contributions=2).to_unit("person", contributions=3)
    with pytest.raises(IncompatibleGuarantees):
        Guarantee(epsilon=1).to_unit("user", contributions=2)


def test_conversions_to_the_same_change_nothing() -> None:
    """The same neighbours and unit give back the same guarantee."""
    guarantee = Guarantee(epsilon=1, unit="person", contributions=2)

    assert guarantee.to_neighbors("add-remove") is guarantee
    assert guarantee.to_unit("person", contributions=2) is guarantee


def test_epsilons_above_five_are_warned_of() -> None:
    """The warning begins right above 5 and not at it."""
    with warnings.catch_warnings(action="error"):
        Guarantee(epsilon=5)
    with pytest.warns(PrivacyWarning, match="above 5"):
        Guarantee(epsilon=5 + Fraction(1, 10**9))
    with pytest.warns(PrivacyWarning, match="above 5"):
        Guarantee(epsilon=3) + Guarantee(epsilon=3)


def test_guarantees_are_frozen_and_pure_without_delta() -> None:
    """A promise cannot be edited, and it is pure if and only if delta is zero."""
    with pytest.raises(AttributeError):
        Guarantee(epsilon=1).epsilon = Fraction(2)  # type: ignore[arg-type]

    assert [Guarantee(epsilon=1, delta=delta).pure for delta in (0, "1e-9")] == [True, False]


def test_rows_changed_counts_both_ends_of_a_change() -> None:
    """One row in or out counts as one, a changed row as two, for each of a person's rows."""
    assert [rows_changed("add-remove", 1), rows_changed("add-remove", 3)] == [1, 3]
    assert [rows_changed("change-one", 1), rows_changed("change-one", 3)] == [2, 6]


def test_the_repr_says_what_is_promised() -> None:
    """Fields that say nothing are left out."""
    assert repr(Guarantee(epsilon="1/2")) == "Guarantee(epsilon=1/2, neighbors=add-remove, unit=row)"
    assert repr(Guarantee(epsilon=1, delta="1/8", unit="user", contributions=2, intrusions=1)) == (
        "Guarantee(epsilon=1, delta=1/8, neighbors=add-remove, unit=user, contributions=2, intrusions=1)"
    )


@pytest.mark.filterwarnings("ignore::partita.errors.PrivacyWarning")
def test_delta_grows_at_least_as_group_privacy_says() -> None:
    """For huge exponents delta becomes 1, for tiny ones it grows by the size of the group."""
    huge = Guarantee(epsilon=5, delta=Fraction(1, 2**3000)).to_unit("person", contributions=10**4)
    tiny = Guarantee(epsilon=Fraction(1, 10**400), delta=Fraction(1, 10**6)).to_unit(
        "person", contributions=7
    )

    assert huge.delta == 1
    assert tiny.delta >= Fraction(7, 10**6)


def test_the_factor_is_a_number() -> None:
    """It is e^epsilon, and infinite where no float is as large."""
    assert Guarantee(epsilon="1/2").factor == math.exp(0.5)
    with pytest.warns(PrivacyWarning):
        assert Guarantee(epsilon=10**9).factor == math.inf
