"""The SQ oracle [Dwork-Roth, Definition 12.4]: the mean of a function, from one bit of many people each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, isnan, log, sqrt
from typing import Any, Final, TypeAlias, final

import numpy as np

from partita.errors.checks import check
from partita.errors.errors import BudgetExceeded
from partita.local.frequency.columns import Ints
from partita.local.mean.mean import Mean
from partita.local.oracle.oracle import LROracle
from partita.local.oracle.oracle_functions import OneRow, only_element
from partita.numbers import failure, integer
from partita.trusted.noise.laws.words import WordSource

StatisticalQuery: TypeAlias = Callable[[Any], Any]
"""phi: from a row to [0, 1]; or from a column that holds one row to a column that holds one such number."""

_GRID: Final = 2.0**-21
"""How far a number is from the next step of the public grid, at most."""


@final
@dataclass(frozen=True)
class SQAnswer:
    """The mean of phi to within `tau`, which fails with probability at most beta; and how many were asked."""

    value: float
    tau: float
    people: int


@final
class SQOracle:
    """Answers statistical queries, each from the next group of people who were never asked before.

    A person rounds phi(x) at random to a bit and tells the bit by randomized response, both in one exact
    comparison (`OneBit`). Groups of different queries are disjoint: to ask everybody with a k-th of epsilon
    would cost about sqrt(k) more in tolerance. People are taken in their order, so if the mean over all of
    them is meant, that order must have nothing to do with what they hold.

    Guarantee: epsilon-DP of each person, pure, local, for all queries together.
    Error:     tau = ((e^epsilon + 1) / (e^epsilon - 1)) sqrt(ln(2/beta) / (2n)) + 2^-21, with n people.
    Proof:     docs/proofs/local_oracles.md
    """

    def __init__(self, oracle: LROracle, *, epsilon: object, beta: object = Fraction(1, 20)) -> None:
        self.oracle = oracle
        self.question = Mean(0, 1, epsilon=epsilon, kind="one-bit")
        self.beta = failure(beta)

    @property
    def unasked(self) -> int:
        """How many people were never asked anything."""
        return len(self.oracle.book.now.unspent())

    def tau(self, people: int) -> float:
        """The tolerance of the answer of a group of so many."""
        return self._gain * sqrt(log(2 / self.beta) / 2 / integer(people, "people", low=1)) + _GRID

    def people(self, tau: float) -> int:
        """How many people it takes for a tolerance."""
        check(_GRID < tau <= 1, "tau", "must lie between 2^-21 and 1", given=tau, fix="pass for example 0.05")
        count = ceil(log(2 / self.beta) / 2 * (self._gain / (tau - _GRID)) ** 2)
        return count - 1 if count > 1 and self.tau(count - 1) <= tau else count

    def ask(
        self, phi: StatisticalQuery, *, tau: float, columnwise: bool = False, words: WordSource | None = None
    ) -> SQAnswer:
        """The mean of phi to within tau, from as many unasked people as it takes; refused if there are less.

        phi gets one row at a time, and is clamped to [0, 1]; where it fails it counts as 1/2. With
        `columnwise` it gets a column that holds one row, and returns a column of one number. If the oracle
        has a universe, phi is called on that alone, and a failure is an error that costs nothing.
        """
        check(callable(phi), "phi", "must be a function", given=None, fix="pass a function of a row")
        one, law = (_of_column if columnwise else _of_row)(phi), self.question.randomizer
        return self._answered(
            tau,
            lambda who: self.oracle.charged_numbers(who, law, one, fixed=_UNKNOWN, name="phi"),
            words,
        )

    def ask_rows(self, phi: Callable[[Any], Any], *, tau: float) -> SQAnswer:
        """As `ask`, of all rows of the group at once: for functions of ours that fail on no rows whatever.

        Each number must come from its own row alone.
        """
        law = self.question.randomizer
        return self._answered(tau, lambda who: phi(self.oracle.charged_rows(who, law)), None)

    def _answered(self, tau: float, numbers_of: Callable[[Ints], Any], words: WordSource | None) -> SQAnswer:
        """Numbers of a group that was charged, one bit of each, and what the bits say."""
        who = self._group(self.people(tau))
        cells = self.question.cells(np.array(numbers_of(who), dtype=np.float64))
        reports = self.question.randomizer.randomize_many(cells, words=words)
        aggregator = self.question.aggregator()
        aggregator.add_many(reports)
        return SQAnswer(min(1.0, max(0.0, aggregator.estimate().value)), self.tau(len(who)), len(who))

    @property
    def _gain(self) -> float:
        """(e^epsilon + 1) / (e^epsilon - 1), for the threshold in use."""
        return 1 / float(2 * self.question.randomizer.chance - 1)

    def _group(self, count: int) -> Ints:
        unasked = self.oracle.book.now.unspent()
        if len(unasked) < count:
            raise BudgetExceeded(
                f"the query takes {count} people who were never asked, and {len(unasked)} are left; raise tau"
            )
        return unasked[:count]


_UNKNOWN: Final = float("nan")
"""A number that counts as 1/2."""


def _of_row(phi: StatisticalQuery) -> OneRow:
    return lambda row: _number(np.asarray(phi(row[0])).item())


def _of_column(phi: StatisticalQuery) -> OneRow:
    return lambda row: _number(only_element(phi(row)))


def _number(value: Any) -> float:
    """A float; ValueError for what is no number, so that a universe refuses it."""
    number = float(value)
    if isnan(number):
        raise ValueError("not a number")
    return number
