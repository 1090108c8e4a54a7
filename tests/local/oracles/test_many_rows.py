"""Laws of many rows, many people and many questions: every pair is compared, and everybody pays each time."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from partita.errors import BudgetExceeded, InvalidParameter
from partita.local.learners import SQOracle
from partita.local.oracle import BudgetFile, BudgetMemory, Budgets, ListedLaw, LROracle, verify_law
from partita.local.question import Frequency
from partita.testing import EndlessTape
from tests.local.laws import column_law

THIRD, HALF = Fraction(1, 3), Fraction(1, 2)
MIDDLE, LOW, HIGH = (HALF, HALF), (THIRD, 2 * THIRD), (2 * THIRD, THIRD)


def _table(size: int, one: int, other: int) -> tuple[tuple[Fraction, ...], ...]:
    """Two rows of which a report is twice as likely in one as in the other; all others lie between them."""
    return tuple({one: LOW, other: HIGH}.get(x, MIDDLE) for x in range(size))


class _UserLaw:
    """A law of somebody else, known by its probabilities only."""

    reports = 2

    def __init__(self, table: Any, epsilon: Fraction) -> None:
        self.size, self.table, self.epsilon = len(table), table, epsilon

    def pmf(self, x: int) -> dict[int, Fraction]:
        return dict(enumerate(self.table[x]))


@pytest.mark.parametrize(
    ("size", "one", "other"),
    [(2, 0, 1), (3, 0, 2), (3, 1, 2), (3, 2, 1), (70, 64, 69), (70, 5, 66), (70, 68, 3)],
)
def test_every_two_rows_of_a_listed_law_are_compared(size: int, one: int, other: int) -> None:
    """ln 2 lies between 0.69 and 0.7: the one is refused wherever the two rows stand, the other admitted."""
    table = _table(size, one, other)

    with pytest.raises(InvalidParameter, match="must not lose more than epsilon"):
        ListedLaw(table=table, epsilon=Fraction("0.69"))
    with pytest.raises(InvalidParameter, match="must not lose more than epsilon"):
        verify_law(_UserLaw(table, Fraction("0.69")))
    assert ListedLaw(table=table, epsilon=Fraction("0.7")) == verify_law(_UserLaw(table, Fraction("0.7")))


@pytest.mark.parametrize("x", [0, 1, 64, 69])
def test_every_row_of_a_listed_law_is_sampled_as_listed(monkeypatch: pytest.MonkeyPatch, x: int) -> None:
    """For a device and in a column, also beyond the first 64 rows."""
    law = ListedLaw(table=_table(70, 1, 69), epsilon=Fraction(1))

    assert column_law(monkeypatch, law, [x]) == {(y,): chance for y, chance in law.pmf(x).items()}


def _charge_batches(book: Any) -> None:
    """Ninety batches, each with one person twice and one person once."""
    for batch in range(90):
        book.charge([199, batch, 199], Fraction(1, 180))


def test_everybody_pays_in_every_one_of_many_batches(tmp_path: Path) -> None:
    """In memory and in a file that is opened again: person 199 has nothing left, others one part less."""
    memory = BudgetMemory(people=200, cap=1)
    _charge_batches(memory)
    with BudgetFile(tmp_path / "budgets", people=200, cap=1) as book:
        _charge_batches(book)

    with BudgetFile(tmp_path / "budgets", people=200, cap=1) as book:
        for now in (memory.now, book.now, Budgets.from_bytes(book.now.to_bytes())):
            assert [now.left(person) for person in (0, 64, 89, 90, 199)] == [Fraction(179, 180)] * 3 + [1, 0]
            with pytest.raises(BudgetExceeded):
                now.charged([*range(150), 199], Fraction(1, 180))


def test_the_budget_of_an_oracle_runs_out_after_many_questions() -> None:
    """Seventy questions of a seventieth are answered by everybody, and the next one by nobody."""
    oracle = LROracle(np.arange(100) % 5, BudgetMemory(people=100, cap=1))
    law = Frequency(5, epsilon="1/70").randomizer
    for number in range(70):
        oracle.ask(range(100), law, words=EndlessTape(number))

    with pytest.raises(BudgetExceeded):
        oracle.ask([99], law)
    assert not oracle.book.now.unspent().size


def test_no_two_statistical_queries_ask_one_person() -> None:
    """Seventy queries, each of a group of its own."""
    oracle = SQOracle(LROracle(np.arange(700), BudgetMemory(people=700, cap=1)), epsilon=1)
    seen: list[int] = []

    def phi(row: Any) -> float:
        seen.append(int(row))
        return 0.5

    for number in range(70):
        oracle.ask(phi, tau=0.99, words=EndlessTape(number))

    assert len(seen) == len(set(seen)) == 70 * oracle.people(0.99)
