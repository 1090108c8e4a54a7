"""The LR oracle [Dwork-Roth, Definitions 12.2 and 12.3]: local randomizers, within everybody's budget."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias, final

import numpy as np

from partita.arrays import as_rows
from partita.errors.checks import check
from partita.guarantee.guarantee import CHANGE_ONE, UNLIMITED, Guarantee
from partita.local.frequency.columns import Ints
from partita.local.oracle.oracle_budgets import BudgetBook
from partita.local.oracle.oracle_functions import OneRow, Universe, evaluate_rows, only_element
from partita.local.oracle.oracle_laws import admitted
from partita.local.randomizer.law import LocalLaw, clamped
from partita.trusted.noise.laws.words import WordSource

ToCells: TypeAlias = Callable[[Any], Any]
"""From a column or table that holds one row to a column that holds one cell."""


@final
class LROracle:
    """Holds what people hold, and answers with randomized reports until budgets are spent.

    For simulations, and for curators who hold the data: what protects a person in the field is the budget
    of their own device (`Device`). Each batch is charged as a whole before anything is drawn: if a crash
    comes between, budget is lost and nothing was said. After the charge no error depends on what people
    hold. `universe` is a public list of all rows that may occur; with it functions never see data.

    Guarantee: epsilon-DP for epsilon = the cap, pure, local, however questions were chosen.
    Error:     that of the randomizers.
    Proof:     docs/proofs/local_oracles.md
    """

    def __init__(self, values: object, book: BudgetBook, *, universe: object = None) -> None:
        self._values: Any = as_rows(values, "values")
        self.book = book
        fits = self._values.ndim >= 1 and len(self._values) == book.now.people
        fix = "check them"
        check(fits, "values", f"must have a row for each of {book.now.people} people", given=values, fix=fix)
        self._universe = None if universe is None else Universe(universe, self._values)

    @property
    def people(self) -> int:
        """How many people there are."""
        return self.book.now.people

    @property
    def width(self) -> int:
        """How many columns a row has."""
        return 1 if self._values.ndim == 1 else int(self._values.shape[1])

    @property
    def guarantee(self) -> Guarantee:
        """What everybody was promised, whoever asks and whoever looks."""
        return Guarantee(epsilon=self.book.now.cap, neighbors=CHANGE_ONE, unit="user", intrusions=UNLIMITED)

    def ask(
        self,
        ids: object,
        randomizer: object,
        *,
        through: ToCells | None = None,
        words: WordSource | None = None,
    ) -> Any:
        """A report of each person listed, of a law that is verified first; everybody pays its epsilon.

        `through` makes cells of rows, if the values are none. It is called for one row at a time, with a
        column (or table) that holds that row alone, and returns a column of one. Where it fails or returns
        anything else, that person's report is about the first cell. With a universe a failure is an error.
        """
        law, who = admitted(randomizer), self.book.now.checked_ids(ids)
        self._check_through(through)
        if through is None:
            return law.randomize_many(self._own_cells(who, law), words=words)
        one = _cell_through(through, law)
        cells = self.charged_numbers(who, law, one, fixed=_FIRST, name="through")
        return law.randomize_many(np.array(cells, dtype=np.int64), words=words)

    def charged_numbers(self, who: Ints, law: LocalLaw, one: OneRow, *, fixed: Any, name: str) -> list[Any]:
        """Charge everybody listed, then a number of each of their rows: `fixed` where the function fails.

        With a universe the function is called before the charge, on public rows, and its failure is an error.
        """
        if self._universe is None:
            self.book.charge(who, law.epsilon)
            return evaluate_rows(self._values[who], one, fixed)
        numbers = self._universe.evaluate(one, name)
        self.book.charge(who, law.epsilon)
        return self._universe.looked_up(who, numbers, fixed)

    def charged_rows(self, who: Ints, law: LocalLaw) -> Any:
        """Charge everybody listed, then a copy of their rows: for functions of our own, which never fail."""
        self.book.charge(who, law.epsilon)
        return self._values[who]

    def _own_cells(self, who: Ints, law: LocalLaw) -> Any:
        """Charge everybody listed, then their values as cells; objects one by one, because they may fail."""
        rows = self.charged_rows(who, law)
        if rows.dtype.kind in "iubf":
            return rows
        return np.array(evaluate_rows(rows, _own_cell(law), _FIRST), dtype=np.int64)

    def _check_through(self, through: object) -> None:
        """Whether a function is needed is public: it depends on the shape of the table."""
        rule = "must be given for rows of columns"
        check(through is not None or self._values.ndim <= 1, "through", rule, given=None, fix="pass it")
        fix = "pass a function of rows"
        check(through is None or callable(through), "through", "must be a function", given=None, fix=fix)


_FIRST: Final = 0
"""The cell of whoever cannot be answered about, as of a value that is no whole number."""


def _own_cell(law: LocalLaw) -> OneRow:
    return lambda row: clamped(row.tolist()[0], law.size)


def _cell_through(through: ToCells, law: LocalLaw) -> OneRow:
    return lambda row: clamped(only_element(through(row)), law.size)
