"""The LR oracle: charges before it draws, verifies before it charges, and samples what it verified."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from partita.errors import BudgetExceeded, InvalidParameter, TapeExhausted
from partita.guarantee import UNLIMITED
from partita.local import (
    BudgetMemory,
    Frequency,
    ListedLaw,
    LROracle,
    Mixture,
    OneBit,
    RandomizedResponse,
    Range,
)
from partita.local.oracle import verify_law
from partita.local.ranges import CellTree, ReportView
from partita.trusted.noise.laws import Tape
from tests.local.laws import column_law, device_law
from tests.local.ranges.laws import mixed_law

ONE = Fraction(1)
FIFTH = Fraction(1, 5)


def oracle(people: int = 6, cap: object = 1) -> LROracle:
    return LROracle(np.arange(people) % 2, BudgetMemory(people=people, cap=cap))


def tape(words: int = 10_000) -> Tape:
    return Tape(np.random.default_rng(1).integers(0, 2**64, size=words, dtype=np.uint64))


def test_people_answer_until_their_budget_is_spent() -> None:
    """Three questions of 1/3 each, and no fourth; others still answer."""
    asked, response = oracle(), Frequency(2, epsilon="1/3").randomizer
    for _ in range(3):
        assert set(asked.ask([0, 1, 2], response).tolist()) <= {0, 1}

    with pytest.raises(BudgetExceeded):
        asked.ask([2, 3], response)
    assert len(asked.ask([3], response)) == 1
    assert asked.guarantee.epsilon == 1
    assert asked.guarantee.intrusions == UNLIMITED


def test_reports_are_of_the_people_listed() -> None:
    """At a large epsilon everybody says what they hold, in the order of the list."""
    asked, response = oracle(cap=100), RandomizedResponse(size=2, epsilon=Fraction(30))

    assert asked.ask([5, 0, 0, 1], response, words=tape()).tolist() == [1, 0, 0, 1]
    assert asked.ask([4], response, through=lambda rows: 1 - rows, words=tape()).tolist() == [1]


def careful(asked: LROracle) -> bool:
    """The checker: a refused batch draws nothing, and a batch that breaks while drawing has been paid."""
    response, empty, long = RandomizedResponse(size=2, epsilon=ONE), Tape([]), tape()
    try:
        asked.ask([0], response, words=empty)
    except TapeExhausted:
        paid = asked.book.now.left(0) == 0
    try:
        asked.ask([0], response, words=long)
    except BudgetExceeded:
        return paid and long.used == 0
    return False


def test_the_oracle_that_ships_is_careful() -> None:
    """The checker has nothing to say about it."""
    assert careful(oracle())


def _charges_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(self: Any, ids: Any, randomizer: Any, *, words: Any = None) -> Any:
        reports = randomizer.randomize_many(self._values[ids], words=words)
        self.book.charge(ids, randomizer.epsilon)
        return reports

    monkeypatch.setattr(LROracle, "ask", ask)


def _never_charges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BudgetMemory, "charge", lambda self, ids, epsilon: None)


def _charges_half(monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = BudgetMemory.charge
    monkeypatch.setattr(BudgetMemory, "charge", lambda self, ids, epsilon: shipped(self, ids, epsilon / 2))


@pytest.mark.parametrize("plant", [_charges_afterwards, _never_charges, _charges_half])
def test_a_careless_oracle_is_caught(
    monkeypatch: pytest.MonkeyPatch, plant: Callable[[pytest.MonkeyPatch], None]
) -> None:
    """It draws before it charges, or charges too little."""
    plant(monkeypatch)

    assert not careful(oracle())


def test_a_tampered_randomizer_is_refused() -> None:
    """The law is made anew from its description: a raised threshold is seen, in a mixture too."""
    response, mixture = RandomizedResponse(size=2, epsilon=ONE), Range(4, epsilon=1).randomizer
    object.__setattr__(response, "threshold", response.threshold + 1)
    object.__setattr__(mixture.parts[1], "threshold", mixture.parts[1].threshold + 1)

    asked = oracle()
    for law in (response, mixture):
        with pytest.raises(InvalidParameter, match="threshold"):
            asked.ask([0], law)
    assert asked.book.now.left(0) == 1


class Homemade:
    """A law that lists its probabilities honestly, and would sample something else."""

    size, reports = 2, 2

    def __init__(self, truth: Fraction, epsilon: Fraction) -> None:
        self.truth, self.epsilon = truth, epsilon

    def pmf(self, x: int) -> dict[int, Fraction]:
        return {x: self.truth, 1 - x: 1 - self.truth}

    def randomize_many(self, cells: Any, *, words: Any = None) -> Any:
        return cells


def test_a_law_with_a_list_is_checked_and_sampled_by_the_oracle() -> None:
    """Its own sampler is not asked; one that loses more than it says is refused before anybody pays."""
    law = verify_law(Homemade(Fraction(7, 10), ONE))

    assert isinstance(law, ListedLaw)
    assert device_law(law, 1) == {0: Fraction(3, 10), 1: Fraction(7, 10)}  # type: ignore[arg-type]
    asked = oracle()
    with pytest.raises(InvalidParameter, match="must not lose more"):
        asked.ask([0], Homemade(Fraction(74, 100), ONE))
    assert asked.book.now.left(0) == 1


def test_a_registered_kind_must_be_of_its_class() -> None:
    """A subclass may sample what it likes, so it counts as unknown, and its list is too fine to sample."""

    class Liar(RandomizedResponse):  # type: ignore[misc]
        def sample(self, x: Any, draws: Any) -> Any:
            return x

    with pytest.raises(InvalidParameter, match="denominator"):
        verify_law(Liar(size=2, epsilon=ONE))


def test_listed_laws_sample_their_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """For one person and in columns, with reports that never come too."""
    table = ((FIFTH, 3 * FIFTH, FIFTH, Fraction(0)), (3 * FIFTH, FIFTH, FIFTH, Fraction(0)))
    law: Any = ListedLaw(table=table, epsilon=Fraction(2))

    for x in range(2):
        expected = {report: chance for report, chance in law.pmf(x).items() if chance}
        assert device_law(law, x) == expected
        assert column_law(monkeypatch, law, [x]) == {(report,): p for report, p in expected.items()}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (((ONE,), (ONE, Fraction(0))), "add up"),
        (((FIFTH, FIFTH),), "add up"),
        (((2 * ONE, -ONE),), "add up"),
        (((0.5, 0.5),), "add up"),
        ((), "add up"),
        (((ONE, Fraction(0)), (Fraction(0), ONE)), "lose"),
        (((1 - Fraction(1, 3**40), Fraction(1, 3**40)),), "denominator"),
    ],
)
def test_what_is_no_law_is_refused(table: Any, message: str) -> None:
    """Rows must be probabilities with a bounded denominator, and lose no more than epsilon."""
    with pytest.raises(InvalidParameter, match=message):
        ListedLaw(table=table, epsilon=ONE)


@pytest.mark.parametrize("law", [None, 3, object(), Homemade])
def test_what_is_no_randomizer_is_refused(law: object) -> None:
    """Also one that is too large to list."""
    asked = oracle()
    with pytest.raises(InvalidParameter, match="randomizer must be"):
        asked.ask([0], law)
    assert asked.book.now.left(0) == 1


def test_registered_laws_are_admitted_as_they_are() -> None:
    """Of every kind, mixtures included."""
    for law in (OneBit(epsilon=ONE), Frequency(100, epsilon=1).randomizer, Range(4, epsilon=1).randomizer):
        assert verify_law(law) == law
    mixture: Any = verify_law(Range(3, epsilon=1).randomizer)
    assert mixed_law(mixture, 2) == mixture.pmf(2)


def test_values_and_budgets_are_of_the_same_people() -> None:
    """One row for each."""
    with pytest.raises(InvalidParameter, match="a row for each of 3 people"):
        LROracle([1, 2], BudgetMemory(people=3, cap=1))


def test_a_function_that_fails_tells_nothing() -> None:
    """It raises nothing, everybody has paid, and reports are about the first cell."""
    asked = oracle(cap=60)

    def leaks(rows: Any) -> Any:
        raise ValueError(f"somebody holds {rows}")

    certain = RandomizedResponse(size=2, epsilon=Fraction(30))
    assert asked.ask([0, 1], certain, through=leaks, words=tape()).tolist() == [0, 0]
    assert asked.book.now.left(0) == 30
    assert asked.ask([1, 0], certain, through=lambda rows: rows[:0], words=tape()).tolist() == [0, 0]


def test_what_was_spent_cannot_be_overwritten() -> None:
    """Not even by accident."""
    with pytest.raises(ValueError, match="read-only"):
        oracle().book.now.spent[0] = 0


class LyingView:
    """Says that it sees two halves of four cells, and sees the cell itself."""

    lines, levels, widths, size = (CellTree(4),), (1,), (2,), 2

    def node(self, cell: Any) -> Any:
        return cell


class LyingSubclass(ReportView):  # type: ignore[misc]
    """A view whose numbers are sound, and whose eyes are too good."""

    def node(self, cell: Any) -> Any:
        return cell


def _with_views(*views: Any) -> Mixture:
    """A mixture whose views were changed after it was made."""
    mixture = Range(4, epsilon=1).randomizer
    object.__setattr__(mixture, "views", views)
    return mixture


def _tampered(**numbers: Any) -> ReportView:
    """A view of halves whose line or levels were changed after it was made."""
    line, view = CellTree(4), ReportView((CellTree(4),), (1,))
    for name, value in numbers.items():
        object.__setattr__(view if name == "levels" else line, name, value)
    object.__setattr__(view, "lines", (line,))
    return view


FINEST = ReportView((CellTree(4),), (2,))


@pytest.mark.parametrize(
    "view",
    [
        LyingView(),
        LyingSubclass((CellTree(4),), (1,)),
        _tampered(levels=(3,)),
        _tampered(levels=(1, 1)),
        _tampered(levels=(Fraction(1, 2),)),
        _tampered(branching=1),
        _tampered(branching=Fraction(4)),
        _tampered(size=1),
    ],
)
def test_a_mixture_of_lying_views_is_refused(view: Any) -> None:
    """A view that sees more than its numbers say would tell more than is charged: nobody pays for one."""
    asked = oracle()
    with pytest.raises(InvalidParameter):
        asked.ask([0], _with_views(view, FINEST))
    with pytest.raises(InvalidParameter):
        Mixture.of([view, FINEST], epsilon=1)
    assert asked.book.now.left(0) == 1


def test_what_is_sampled_was_made_anew_with_its_views() -> None:
    """A mixture whose samplers and starts were changed is rebuilt: its law is that of its numbers."""
    mixture = Range(4, epsilon=1).randomizer
    honest = [mixture.pmf(x) for x in range(4)]
    object.__setattr__(mixture, "_samplers", [lambda x, draws: x] * 2)
    object.__setattr__(mixture, "starts", (0, 0, 0))
    rebuilt: Any = verify_law(mixture)

    assert rebuilt is not mixture
    assert all(one is not other for one, other in zip(rebuilt.views, mixture.views, strict=True))
    assert [mixed_law(rebuilt, x) for x in range(4)] == honest


def test_views_of_a_mixture_are_of_the_same_columns() -> None:
    """A view of other columns would see something else of a cell."""
    other = ReportView((CellTree(8),), (1,))
    with pytest.raises(InvalidParameter, match="views"):
        Mixture.of([FINEST, other], epsilon=1)


class Forgetful(tuple):  # type: ignore[type-arg]
    """A table that shows a private law first, and another one later."""

    looks = 0

    def __iter__(self) -> Any:
        type(self).looks += 1
        honest = ((Fraction(1, 2),) * 2,) * 2
        return iter(honest) if type(self).looks < 9 else super().__iter__()


def test_a_listed_law_is_copied_before_it_is_checked() -> None:
    """What is checked is what is sampled, even if a table shows different rows each time."""
    law = ListedLaw(table=((Fraction(1, 2),) * 2,) * 2, epsilon=ONE)
    object.__setattr__(law, "table", Forgetful(((ONE, ONE * 0), (ONE * 0, ONE))))
    rebuilt: Any = verify_law(law)

    assert type(rebuilt.table) is tuple
    assert {type(row) for row in rebuilt.table} == {tuple}
    assert rebuilt.pmf(0) == rebuilt.pmf(1)
