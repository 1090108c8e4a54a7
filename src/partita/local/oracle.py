"""The LR oracle [Dwork-Roth, Definitions 12.2 and 12.3]: local randomizers, within everybody's budget."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, final

import numpy as np

from partita.errors import InvalidData, InvalidParameter
from partita.guarantee import CHANGE_ONE, UNLIMITED, Guarantee
from partita.local.columns import Ints
from partita.local.oracle_budgets import BudgetBook
from partita.local.oracle_laws import admitted
from partita.noise.words import WordSource
from partita.unchained import unchained

__all__ = ["LROracle", "ToCells"]

ToCells: TypeAlias = Callable[[Any], Any]
"""From rows of people to a column of cells; each cell from its own row alone."""


@final
class LROracle:
    """Holds what people hold, and answers with randomized reports until budgets are spent.

    For simulations, and for curators who hold the data: what protects a person in the field is the budget
    of their own device (`Device`). Each batch is charged as a whole before anything is drawn: if a crash
    comes between, budget is lost and nothing was said.

    Guarantee: epsilon-DP for epsilon = the cap, pure, local, however questions were chosen.
    Error:     that of the randomizers.
    Proof:     docs/proofs/local_oracles.md
    """

    def __init__(self, values: object, book: BudgetBook) -> None:
        self._values: Any = np.asarray(values)
        self.book = book
        if self._values.ndim < 1 or len(self._values) != book.now.people:
            raise InvalidParameter(
                "values",
                f"must have a row for each of {book.now.people} people",
                given=values,
                fix="check them",
            )

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

        `through` makes cells of rows, if the values are none; it must look at each row by itself.
        """
        law, who = admitted(randomizer), self.book.now.checked_ids(ids)
        self.book.charge(who, law.epsilon)
        return law.randomize_many(self._cells(who, through), words=words)

    def _cells(self, who: Ints, through: ToCells | None) -> Any:
        rows = self._values[who]
        cells = rows if through is None else _made(rows, through)
        if np.shape(cells) != who.shape:
            raise InvalidData(
                "cells", "must be one of each person", fix="pass `through`, or one column of values"
            )
        return cells


def _made(rows: Any, through: ToCells) -> Any:
    """Cells of rows; what a function says that fails on them is never repeated."""
    failure = InvalidData("through", "must make a cell of every row", fix="check it on rows of your own")
    return unchained(lambda: through(rows), failure, Exception)
