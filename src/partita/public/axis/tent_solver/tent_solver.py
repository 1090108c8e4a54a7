"""Least squares over units and tents, reduced to the first level of tents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple, final

import numpy as np

from partita.lazy.cached import cached_property
from partita.public.axis.curve.curve import Floats, Ints
from partita.public.axis.tent_solver.tent_strategy import TentStrategy
from partita.public.bounds.linear_ranges import Position

_STEPS: Final = 200
_TOLERANCE: Final = 1e-16
_BATCH: Final = 2**21
_MOST_TENTS: Final = 2**12
"""So many tents of the first level, over about 115,000 units, have a table of covariances: 130 MB at most."""
_ROWS: Final = 2**8
"""For more tents so many rows of the table are made at a time, each time anew."""


class _Ends(NamedTuple):
    """Positions among units as A D^-1 w: whole in the tents before `tent`, and a part of it and the next."""

    tent: Ints
    own: Floats
    after: Floats


@final
@dataclass(frozen=True, eq=False)
class TentSolver:
    """Solves (D + A' M A) x = right: D the units' precisions, A the first level, M = P1 + B' P2 B + ...

    The tents z = A x of the first level are far fewer than the units, and (1 + T M) z = A D^-1 right
    with T = A D^-1 A', which has three diagonals. That is solved by conjugate gradients in the inner
    product of M, where 1 + T M is symmetric; then x = D^-1 (right - A' M z).
    """

    precision: Floats
    strategy: TentStrategy
    rows: Floats

    def __call__(self, right: Floats) -> Floats:
        """The solution for each right side along the last axis, several at a time."""
        flat = right.reshape(-1, right.shape[-1])
        together = max(1, _BATCH // flat.shape[1])
        solved = [self._solved(flat[i : i + together]) for i in range(0, len(flat), together)]
        return np.concatenate(solved).reshape(right.shape)

    def range_variances(self, first: Position, last: Position) -> Floats:
        """The variance of the sum between two positions among the units, for each pair of positions.

        That is w' D^-1 w - y' N y with y = A D^-1 w and N = (M^-1 + T)^-1.
        """
        own = self._own_variances(first, last)
        return own - self._squares(self._ends(first), self._ends(last))

    def total_covariances(self) -> Floats:
        """The covariance of each unit with the sum of all: S^-1 1, mended where the iteration left some."""
        first, ones = self.strategy.levels[0], np.ones(self.precision.size)
        solved = self(ones)
        left = ones - self.precision * solved - first.up(self._weighed(first.down(solved)))
        return np.asarray(solved + self(left))

    def _own_variances(self, first: Position, last: Position) -> Floats:
        """w' D^-1 w."""
        units, total = 1.0 / self.precision, self._cumulative[0]
        both = (1.0 - first.share) ** 2 * units[first.piece] + last.share**2 * units[last.piece]
        both += total[last.piece] - total[np.minimum(first.piece + 1, last.piece)]
        alone = (last.share - first.share) ** 2 * units[first.piece]
        return np.where(first.piece == last.piece, alone, both)

    def _ends(self, at: Position) -> _Ends:
        level, (_, right, left) = self.strategy.levels[0], self._cumulative
        tent = level.left[at.piece]
        begin, before = level.firsts[tent], level.firsts[np.maximum(tent - 1, 0)]
        unit = at.share / self.precision[at.piece]
        after = right[at.piece] - right[begin] + unit * level.weights[at.piece]
        own = left[at.piece] - left[begin] + unit * (1.0 - level.weights[at.piece])
        return _Ends(tent, own + right[begin] - right[before], after)

    def _squares(self, low: _Ends, high: _Ends) -> Floats:
        """y' N y of each range: both ends are means of whole tents up to three places next to each other."""
        found = np.zeros(low.tent.shape)
        places = np.unique(np.concatenate([ends.tent + step for ends in (low, high) for step in range(3)]))
        few = self._whole.size <= _MOST_TENTS
        for begin in range(0, places.size, places.size if few else _ROWS):
            some = places[begin : begin + (places.size if few else _ROWS)]
            rows = self._table[some] if few else self._covariances(some)
            for one, other, factor in ((low, low, 1.0), (low, high, -2.0), (high, high, 1.0)):
                for step, weight in enumerate(self._steps(one)):
                    here = np.flatnonzero((one.tent + step >= some[0]) & (one.tent + step <= some[-1]))
                    row, column = np.searchsorted(some, one.tent[here] + step), other.tent[here]
                    for beside, times in enumerate(self._steps(other)):
                        found[here] += factor * weight[here] * times[here] * rows[row, column + beside]
        return found

    def _steps(self, ends: _Ends) -> tuple[Floats, Floats, Floats]:
        own = _ratio(ends.own, self._whole[ends.tent])
        after = _ratio(ends.after, self._whole[ends.tent + 1])
        return 1.0 - own, own - after, after

    @cached_property
    def _cumulative(self) -> tuple[Floats, Floats, Floats]:
        """The variances of the units before each one, and what their right and left tents have of these."""
        units, weights = 1.0 / self.precision, self.strategy.levels[0].weights
        parts = units, units * weights, units * (1.0 - weights)
        total, right, left = (np.concatenate([np.zeros(1), np.cumsum(part)]) for part in parts)
        return total, right, left

    @cached_property
    def _whole(self) -> Floats:
        """A D^-1 1."""
        return self.strategy.levels[0].down(1.0 / self.precision)

    @cached_property
    def _table(self) -> Floats:
        """y' N y for all pairs of places."""
        return self._covariances(np.arange(self._whole.size + 1))

    def _covariances(self, places: Ints) -> Floats:
        """y' N y for these places and all places: y is of whole tents before each place.

        N = E^-1 + C (R^-1 + B (P^-1 - P^-1 E^-1 P^-1) B')^-1 C' with C = E^-1 P^-1 B', where E = P^-1 + T has
        three diagonals, P is of the first level, and R and B are of all levels above, which have few tents.
        """
        tents, higher, own = self._whole.size, self._higher, self._own
        solved = self._eliminated(np.where(np.arange(tents) < places[:, np.newaxis], self._whole, 0.0))
        if higher.levels:
            solved += self._eliminated(own * higher.up(higher.down(own * solved) @ self._joint))
        rows = np.zeros((places.size, tents + 1))
        np.cumsum(solved * self._whole, axis=1, out=rows[:, 1:])
        return rows

    @cached_property
    def _joint(self) -> Floats:
        """(R^-1 + B (P^-1 - P^-1 E^-1 P^-1) B')^-1, some rows at a time."""
        joint = np.diag(1.0 / self.rows[self._own.size :])
        for begin in range(0, len(joint), _ROWS):
            above = np.eye(len(joint))[begin : begin + _ROWS]
            first = self._own * self._higher.up(above)
            joint[begin : begin + _ROWS] += self._higher.down(first - self._own * self._eliminated(first))
        return np.asarray(np.linalg.inv(joint), np.float64)

    @cached_property
    def _higher(self) -> TentStrategy:
        """The levels above the first, as tents over those of the first."""
        levels, shares = self.strategy.levels[1:], self.strategy.shares[1:]
        return TentStrategy(self._own.size, levels, shares)

    @cached_property
    def _own(self) -> Floats:
        """P^-1: the variances of the tents of the first level."""
        return np.asarray(1.0 / self.rows[: self.strategy.levels[0].tents])

    def _eliminated(self, right: Floats) -> Floats:
        """E^-1 times each row: once down the three diagonals, once up."""
        pivots, factors = self._pivots
        left = right.T.copy()
        for i in range(1, len(left)):
            left[i] -= factors[i - 1] * left[i - 1]
        left /= pivots[:, np.newaxis]
        for i in range(len(left) - 2, -1, -1):
            left[i] -= factors[i] * left[i + 1]
        return left.T

    @cached_property
    def _pivots(self) -> tuple[Floats, Floats]:
        """The pivots of E, and how much of each row is taken off the next."""
        diagonal, beside = self._three_diagonals
        pivots = diagonal + self._own
        for i in range(1, pivots.size):
            pivots[i] -= beside[i - 1] ** 2 / pivots[i - 1]
        return pivots, beside / pivots[:-1]

    def _solved(self, right: Floats) -> Floats:
        first = self.strategy.levels[0]
        tents = self._tents(first.down(right / self.precision))
        return np.asarray((right - first.up(self._weighed(tents))) / self.precision)

    def _tents(self, goal: Floats) -> Floats:
        """z with (1 + T M) z = goal."""
        z, residual = np.zeros_like(goal), goal.copy()
        direction, image = residual.copy(), self._weighed(residual)
        weighed, left = image.copy(), _inner(residual, image)
        enough = _TOLERANCE * left
        for _ in range(_STEPS):
            if bool((left <= enough).all()):
                break
            moved = direction + self._spread(image)
            step = _ratio(left, _inner(image, moved))
            z += step * direction
            residual -= step * moved
            weighed = self._weighed(residual)
            left, previous = _inner(residual, weighed), left
            direction = residual + _ratio(left, previous) * direction
            image = weighed + _ratio(left, previous) * image
        return z

    def _weighed(self, tents: Floats) -> Floats:
        """M times tents of the first level."""
        values, weighed, stop = tents, [], 0
        for level in (None, *self.strategy.levels[1:]):
            values = values if level is None else level.down(values)
            start, stop = stop, stop + values.shape[-1]
            weighed.append(self.rows[start:stop] * values)
        carried = weighed.pop()
        for level in reversed(self.strategy.levels[1:]):
            carried = weighed.pop() + level.up(carried)
        return carried

    def _spread(self, tents: Floats) -> Floats:
        """T times tents of the first level."""
        diagonal, beside = self._three_diagonals
        moved = diagonal * tents
        moved[..., :-1] += beside * tents[..., 1:]
        moved[..., 1:] += beside * tents[..., :-1]
        return moved

    @cached_property
    def _three_diagonals(self) -> tuple[Floats, Floats]:
        """The diagonal of T and the one beside it."""
        first = self.strategy.levels[0]
        right, left = first.weights, 1.0 - first.weights
        diagonal = np.zeros(first.tents)
        diagonal[:-1] += first.by_left(left**2 / self.precision)
        diagonal[1:] += first.by_left(right**2 / self.precision)
        return diagonal, first.by_left(left * right / self.precision)


def _inner(one: Floats, other: Floats) -> Floats:
    """The inner products along the last axis, which is kept."""
    return np.asarray(np.einsum("...i,...i->...", one, other))[..., np.newaxis]


def _ratio(part: Floats, whole: Floats) -> Floats:
    """part / whole, and zero where a right side is solved to the last digit."""
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0.0)
