"""Learners that need no one's data: a decision stump from one sketch, logistic regression by queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from partita.errors.checks import check
from partita.local.frequency.columns import Ints
from partita.local.learners.statistical import SQOracle
from partita.local.question.hierarchy import Line
from partita.local.ranges.range_estimate import RangeEstimate
from partita.local.ranges.ranges import Range
from partita.numbers import integer

Floats = NDArray[np.float64]

_STEP: Final = 8.0
_SETTLED: Final = 4
"""The mean is taken of the weights visited after the first quarter."""


@final
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
        line = Line(integer(self.size, "size", low=2, high=1 << 20))
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
    _check_people(oracle, turns * features * oracle.people(tau))
    weights, visited = np.zeros(features), []
    for _ in range(turns):
        weights = weights - _STEP * _gradient(oracle, weights, tau)
        visited.append(weights)
    settled = visited[len(visited) // _SETTLED :]
    return Logistic(np.mean(settled, axis=0), turns * features * oracle.people(tau))


def _gradient(oracle: SQOracle, weights: Floats, tau: float) -> Floats:
    def query(place: int) -> float:
        def phi(rows: Any) -> Any:
            table = _floats(rows)
            features, labels = table[:, :-1].clip(-1, 1), table[:, -1]
            with np.errstate(all="ignore"):
                return (1 + (_sigmoid(features @ weights) - labels) * features[:, place]) / 2

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


def _sigmoid(x: Floats) -> Floats:
    return 1 / (1 + np.exp(-x))


def _check_people(oracle: SQOracle, needed: int) -> None:
    rule = f"must be larger: the queries take {needed} people"
    check(oracle.unasked >= needed, "tau", rule, given=oracle.unasked, fix="raise it")
