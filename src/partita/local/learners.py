"""The SQ oracle [Dwork-Roth, Definition 12.4], and learners that stand on local reports alone.

A decision stump is learned from one range sketch, logistic regression by statistical queries. Parities cannot
be learned by such queries, and this module says how many it would take.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, isnan, log, sqrt
from typing import Any, Final, TypeAlias, final

import numpy as np

from partita.arrays import Floats, Ints
from partita.errors import BudgetExceeded, check, check_arguments
from partita.local.columns import walsh_hadamard
from partita.local.oracle import LROracle, OneRow, only_element
from partita.local.question import Mean
from partita.local.range_estimates import RangeEstimate
from partita.local.ranges import CellTree, Range
from partita.numbers import check_probability, integer
from partita.trusted.noise.laws import WordSource

StatisticalQuery: TypeAlias = Callable[[Any], Any]
"""phi: from a row to [0, 1]; or from a column that holds one row to a column that holds one such number."""

_GRID: Final = 2.0**-21  # half a step of the public grid of numbers
_UNKNOWN: Final = float("nan")  # a number that counts as 1/2
_STEP: Final = 8.0  # of gradient descent: larger ones learn faster and amplify noise
_SETTLED: Final = 4  # the mean is taken of the weights visited after the first quarter


@final
@dataclass(frozen=True)
class SQAnswer:
    """The mean of phi to within `tau`, which fails with probability at most beta; and how many were asked."""

    value: float
    tau: float
    people: int


@final
@check_arguments
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
        self.beta = check_probability(beta)

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

        def numbers(who: Ints) -> Any:
            return self.oracle.charged_numbers(who, law, one, fixed=_UNKNOWN, name="phi")

        return self._answer(tau, numbers, words)

    def ask_rows(self, phi: Callable[[Any], Any], *, tau: float) -> SQAnswer:
        """As `ask`, of all rows of the group at once: for functions of ours that fail on no rows whatever.

        Each number must come from its own row alone.
        """
        law = self.question.randomizer
        return self._answer(tau, lambda who: phi(self.oracle.charged_rows(who, law)), None)

    def _answer(self, tau: float, numbers_of: Callable[[Ints], Any], words: WordSource | None) -> SQAnswer:
        """Charge a group that was never asked, take one bit of each number, and estimate their mean."""
        who = self._group(self.people(tau))
        cells = self.question.cells(np.array(numbers_of(who), dtype=np.float64))
        reports = self.question.randomizer.randomize_many(cells, words=words)
        aggregator = self.question.aggregator()
        aggregator.add_many(reports)
        return SQAnswer(min(1.0, max(0.0, aggregator.estimate().value)), self.tau(len(who)), len(who))

    def _group(self, count: int) -> Ints:
        unasked = self.oracle.book.now.unspent()
        if len(unasked) < count:
            raise BudgetExceeded(
                f"the query takes {count} people who were never asked, and {len(unasked)} are left; raise tau"
            )
        return unasked[:count]

    @property
    def _gain(self) -> float:
        """(e^epsilon + 1) / (e^epsilon - 1), for the threshold in use."""
        return 1 / float(2 * self.question.randomizer.chance - 1)


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


@final
@check_arguments
@dataclass(frozen=True)
class Stump:
    """Says `above` for cells from `threshold` on, and the other label below; with its estimated error."""

    threshold: int
    above: int
    error: float

    def predict(self, cells: Any) -> Ints:
        """The label of each cell."""
        return np.where(np.asarray(cells) >= self.threshold, self.above, 1 - self.above)


@final
@check_arguments
@dataclass(frozen=True)
class StumpTask:
    """To learn a stump over the cells 0, ..., size-1 of labelled people, from one report of each.

    A person's label and cell are one place on a line: all cells with label 0, then all with label 1. The
    error of every stump is the share of one range of the first half and one of the second, so one range
    sketch has them all [Dwork-Roth, Definition 12.5].

    >>> task = StumpTask(size=16)
    >>> task.cells([3, 3], [0, 1]).tolist()
    [3, 19]
    """

    size: int

    @property
    def half(self) -> int:
        """Where the second half of the line begins: its first cell is a child of the root."""
        line = CellTree(integer(self.size, "size", low=2, high=1 << 20))
        return int(line.branching**line.height)

    def question(self, *, epsilon: object) -> Range:
        """What everybody is asked."""
        return Range(2 * self.half, epsilon=epsilon)

    def cells(self, xs: Any, labels: Any) -> Ints:
        """The places of labelled people; a label that is not 1 counts as 0, and cells are clamped."""
        places = np.asarray(xs).clip(0, self.size - 1).astype(np.int64)
        joined: Ints = places + self.half * (np.asarray(labels) == 1)
        return joined

    def learned(self, estimate: RangeEstimate) -> Stump:
        """The stump of least estimated error."""
        zeros, ones = (estimate.values[start : start + self.size] for start in (0, self.half))
        below = [np.concatenate([[0.0], np.cumsum(shares)]) for shares in (zeros, ones)]
        wrong_above_is_one = below[1] + below[0][-1] - below[0]
        wrong_above_is_zero = below[0] + below[1][-1] - below[1]
        errors = np.stack([wrong_above_is_zero, wrong_above_is_one])
        above, threshold = np.unravel_index(int(errors.argmin()), errors.shape)
        return Stump(int(threshold), int(above), float(errors.min()))


@final
@check_arguments
@dataclass(frozen=True, eq=False)
class Logistic:
    """Weights of a logistic regression, and how many people were asked for them."""

    weights: Floats
    people: int

    def predict(self, features: Any) -> Ints:
        """The label of each row of features."""
        return (np.asarray(features) @ self.weights > 0).astype(np.int64)


def learn_logistic(oracle: SQOracle, *, rounds: int = 20, tau: float) -> Logistic:
    """Gradient descent in which every coordinate of every gradient is one statistical query.

    The rows of the oracle are features in [-1, 1] and a label 0 or 1 in the last column. A coordinate of
    the gradient of the mean loss is E[(s(w x) - y) x_j], which lies in [-1, 1], so it is 2 E[phi] - 1
    for phi = (1 + (s(w x) - y) x_j) / 2. Each takes a fresh group: rounds x features x people(tau) in all.
    The weights are the mean of those visited after the first quarter, in which most of the noise cancels.
    """
    features = oracle.oracle.width - 1
    turns = integer(rounds, "rounds", low=1)
    needed = turns * features * oracle.people(tau)
    rule = f"must be larger: the queries take {needed} people"
    check(oracle.unasked >= needed, "tau", rule, given=oracle.unasked, fix="raise it")
    weights, visited = np.zeros(features), []
    for _ in range(turns):
        weights = weights - _STEP * _gradient(oracle, weights, tau)
        visited.append(weights)
    settled = visited[len(visited) // _SETTLED :]
    return Logistic(np.mean(settled, axis=0), needed)


def _gradient(oracle: SQOracle, weights: Floats, tau: float) -> Floats:
    def query(place: int) -> float:
        def phi(rows: Any) -> Any:
            table = _floats(rows)
            features, labels = table[:, :-1].clip(-1, 1), table[:, -1]
            with np.errstate(all="ignore"):
                return (1 + (1 / (1 + np.exp(-(features @ weights))) - labels) * features[:, place]) / 2

        return 2 * oracle.ask_rows(phi, tau=tau).value - 1

    return np.array([query(place) for place in range(weights.size)])


def _floats(rows: Any) -> Floats:
    """A table as floats; what is no number becomes NaN, and no row raises."""
    if rows.dtype.kind in "iufb":
        return np.asarray(rows, dtype=np.float64)
    return np.array([_float(value) for value in rows.ravel().tolist()]).reshape(rows.shape)


def _float(value: Any) -> float:
    try:
        return float(value)
    except Exception:
        return float("nan")


# Why parities cannot be learned from statistical queries. Let x be uniform on d bits and the label
# y = <s, x> mod 2 for a secret s. For any query phi,
#
#     E[phi(x, y)] = E[phi(x, 0) + phi(x, 1)] / 2 + g(s) / 2,  g(s) = E[(phi(x, 0) - phi(x, 1)) (-1)^<s, x>].
#
# Only g depends on the secret, and the sum of g(s)^2 over all secrets is at most 1 (Parseval). So at most
# 1/(4 tau^2) of the 2^d secrets change the answer by more than tau: for all others an oracle of tolerance tau
# may give one and the same answer. It takes about 2 tau^2 2^d queries to rule out half of the secrets.


def parity_signal(phi: Any) -> Floats:
    """For each secret s, by how much the true answer to a query differs from the answer without a secret.

    `phi` holds the query as a table: phi[x, y] for every x of d bits, written as a number, and both labels.

    >>> parity_signal(np.array([[1.0, 0.0], [0.0, 1.0]])).tolist()
    [0.0, 0.5]
    """
    table: Floats = np.asarray(phi, dtype=np.float64)
    signal: Floats = walsh_hadamard(table[:, 0] - table[:, 1]) / len(table) / 2
    return signal


def parity_suspects(phi: Any, tau: float) -> int:
    """How many secrets the answer can be told from at tolerance tau; at most 1 / (4 tau^2)."""
    return int((np.abs(parity_signal(phi)) > tau).sum())


def parity_queries_needed(dimension: int, tau: float) -> int:
    """How many queries rule out half of all secrets, at least: 4 tau^2 2^(d-1).

    >>> parity_queries_needed(64, 0.01) > 10**15
    True
    """
    return ceil(4 * tau**2 * (1 << dimension - 1))
