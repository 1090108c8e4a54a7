"""How epsilon is divided: bounds that hold for every size and total."""

from __future__ import annotations

from fractions import Fraction

import pytest

from partita.public.axis.tents import BUDGET_UNITS, LEAST_COUNTING, LEAST_LOOK, TentBudget


@pytest.mark.parametrize("size", [1, 2, 3, 100, 2**14, 2**22, 2**22 + 1, 2**32, 2**48, 2**64])
@pytest.mark.parametrize("informed", [30, 31, 99, 400, 10**3, 10**5, 10**9, 10**15, 10**30])
def test_no_look_gets_less_than_the_bounds_say(size: int, informed: int) -> None:
    """The scales that are checked when the mechanism is made cover every look, so no total can break them."""
    budget = TentBudget(size, Fraction(informed))

    assert budget.counting(full=False) - budget.pairs >= LEAST_COUNTING
    assert min(budget.pairs, budget.partition) >= LEAST_LOOK
    assert budget.fullness == 0 or budget.fullness >= LEAST_LOOK
    assert budget.counting(full=False) + budget.partition + budget.fullness == BUDGET_UNITS
