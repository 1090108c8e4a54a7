"""Parts of one column cost what the dearest part costs, and no person ever loses more than is spent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.errors import BudgetExceeded, IncompatibleGuarantees, InvalidParameter
from partita.guarantee import Guarantee
from partita.ledger.entries import Amount, Part, Spending
from partita.ledger.ledger import Ledger

COLUMNS = {"region": ("north", "south", "west"), "sex": ("f", "m"), "shard": ("0", "1")}
NORTH, SOUTH, FEMALE = ("region", "north"), ("region", "south"), ("sex", "f")

EPSILONS = st.fractions(min_value=Fraction(1, 9), max_value=2, max_denominator=9)
DELTAS = st.sampled_from([Fraction(0), Fraction(1, 10), Fraction(1, 7)])
PLACES = st.sampled_from([None, *((column, value) for column, values in COLUMNS.items() for value in values)])
CHARGES = st.lists(st.tuples(PLACES, st.builds(Amount, EPSILONS, DELTAS)), max_size=15)


def spending(charges: Sequence[tuple[Part | None, Amount]]) -> Spending:
    sums: dict[Part | None, Amount] = {}
    for part, charge in charges:
        sums[part] = sums.get(part, Amount()) + charge
    return Spending(sums)


def lost(person: dict[str, str], charges: Sequence[tuple[Part | None, Amount]]) -> Amount:
    """By definition: the sum over the releases that hold this person."""
    touched = [charge for part, charge in charges if part is None or person[part[0]] == part[1]]
    return sum(touched, start=Amount())


def people() -> Iterator[dict[str, str]]:
    """Everybody there can be: one value in each column."""
    for values in product(*COLUMNS.values()):
        yield dict(zip(COLUMNS, values, strict=True))


@given(charges=CHARGES)
def test_spent_is_the_most_that_any_person_lost(charges: list[tuple[Part | None, Amount]]) -> None:
    """The formula and the maximum over all people agree, for epsilon and for delta."""
    losses = [lost(person, charges) for person in people()]

    assert spending(charges).spent == Amount(
        max(loss.epsilon for loss in losses), max(loss.delta for loss in losses)
    )


@given(charges=CHARGES, part=PLACES, charge=st.builds(Amount, EPSILONS, DELTAS))
def test_a_charge_fits_if_and_only_if_nobody_loses_more_than_the_total(
    charges: list[tuple[Part | None, Amount]], part: Part | None, charge: Amount
) -> None:
    """The room before a part is exactly what keeps the new maximum within the total."""
    total = spending(charges).spent | Amount(Fraction(2), Fraction(1, 4))
    after = [lost(person, [*charges, (part, charge)]) for person in people()]

    assert charge.fits(total - spending(charges).before(part)) == all(loss.fits(total) for loss in after)


@pytest.mark.parametrize(
    "releases",
    [
        [(None, 1), (NORTH, 2), (SOUTH, 1)],
        [(NORTH, 1), (NORTH, 1), (SOUTH, 3)],
        [(NORTH, 1), (SOUTH, 2), (FEMALE, 1), (("sex", "m"), 2)],
    ],
)
def test_the_output_law_keeps_what_the_ledger_says(releases: list[tuple[Part | None, int]]) -> None:
    """Over all neighbours and outputs the largest ratio of probabilities is exactly 2^spent.

    A release says whether somebody is in its part, and lies with odds 1 to 2^charge. The laws of
    all releases together are enumerated, for every table with or without each kind of person.
    """
    kinds = list(product(("north", "south"), ("f", "m")))
    tables = [[kind for kind, here in zip(kinds, chosen, strict=True) if here] for chosen in masks(4)]
    spent = spending([(part, Amount(Fraction(charge))) for part, charge in releases]).spent

    worst = max(
        max(ratio(releases, table, [*table, kind], answers), ratio(releases, [*table, kind], table, answers))
        for table in tables
        for kind in kinds
        for answers in masks(len(releases))
    )

    assert worst == 2**spent.epsilon


def masks(length: int) -> list[tuple[bool, ...]]:
    return list(product((False, True), repeat=length))


def ratio(
    releases: list[tuple[Part | None, int]],
    table: list[tuple[str, str]],
    neighbor: list[tuple[str, str]],
    answers: tuple[bool, ...],
) -> Fraction:
    return law(releases, table, answers) / law(releases, neighbor, answers)


def law(
    releases: list[tuple[Part | None, int]], table: list[tuple[str, str]], answers: tuple[bool, ...]
) -> Fraction:
    """The probability of these answers on this table."""
    return prod(
        (
            Fraction(2**charge if answer == occupied(part, table) else 1, 2**charge + 1)
            for (part, charge), answer in zip(releases, answers, strict=True)
        ),
        start=Fraction(1),
    )


def occupied(part: Part | None, table: list[tuple[str, str]]) -> bool:
    return any(part is None or part[1] in kind for kind in table)


def test_parts_of_a_constant_column_compose_in_parallel(ledger: Ledger) -> None:
    """Two regions for the price of the dearer, on top of what is about everybody."""
    ledger.open("census", epsilon=3, unit="person", constant=("region",))
    release = Guarantee(epsilon=1, unit="person")
    ledger.debit("census", release, what="everybody")
    ledger.debit("census", release, what="north", part=NORTH)
    ledger.debit("census", release + release, what="south", part=SOUTH)

    assert ledger.balance("census").spent == Amount(Fraction(3))
    assert ledger.forecast("census", release) == 0
    assert ledger.forecast("census", release, part=NORTH) == 1
    assert ledger.entries("census")[1].part == NORTH


def test_a_full_part_refuses_and_says_which(ledger: Ledger) -> None:
    """The message says what is left in that part; other parts may still spend."""
    release = Guarantee(epsilon=3)
    ledger.debit("people", release, what="north", part=NORTH)

    with pytest.raises(BudgetExceeded, match="left epsilon 0 where region is 'north'"):
        ledger.debit("people", release, what="north", part=NORTH)
    ledger.debit("people", release, what="south", part=SOUTH)
    assert ledger.balance("people").left == Amount()


def test_parts_of_different_columns_add_up(ledger: Ledger) -> None:
    """A woman in the north is in both parts."""
    ledger.debit("people", Guarantee(epsilon=2), what="north", part=NORTH)

    with pytest.raises(BudgetExceeded):
        ledger.debit("people", Guarantee(epsilon=2), what="women", part=FEMALE)


def test_change_one_has_no_parts(ledger: Ledger) -> None:
    """A changed row may leave one part and enter another."""
    ledger.open("changing", epsilon=3, neighbors="change-one", constant=("region",))

    with pytest.raises(IncompatibleGuarantees, match="add-remove neighbors only"):
        ledger.debit("changing", Guarantee(epsilon=1), what="north", part=NORTH)
    assert ledger.entries("changing") == ()


@pytest.mark.parametrize("unit", ["person", "user"])
def test_a_part_needs_a_column_declared_constant(ledger: Ledger, unit: str) -> None:
    """A person may have rows in many parts of any other column."""
    ledger.open("census", epsilon=3, unit=unit, constant=("sex",))  # type: ignore[arg-type]

    with pytest.raises(InvalidParameter, match=f"declared constant per {unit}, got 'region'"):
        ledger.debit("census", Guarantee(epsilon=1, unit=unit), what="north", part=NORTH)  # type: ignore[arg-type]
    assert ledger.entries("census") == ()


def test_rows_of_a_person_in_one_part_cost_k_times(ledger: Ledger) -> None:
    """Conversion comes first: all k rows of a person lie in the same part."""
    ledger.open("census", epsilon=3, unit="person", contributions=3, constant=("region",))
    for part in (NORTH, SOUTH):
        ledger.debit("census", Guarantee(epsilon=1), what="rows", part=part)

    assert ledger.balance("census").left == Amount()
