"""Least squares over units and tents, reduced to the first level of tents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple, final

import numpy as np

from partita.cached import cached_property
from partita.inference.curve import Floats, Ints
from partita.inference.linear_ranges import Position
from partita.inference.tent_strategy import TentStrategy

__all__ = ["TentSolver"]

_STEPS: Final = 200
_TOLERANCE: Final = 1e-16
_FINE_TOLERANCE: Final = 1e-26
"""For variances of ranges: solved to _TOLERANCE they would be off in the eighth digit."""
_BATCH: Final = 2**21
_MOST_TENTS: Final = 2**12
"""So many tents of the first level have a table of covariances, of 130 MB at most; more are solved for
each range. They are tents over about 115,000 units."""


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
        low, high = self._ends(first), self._ends(last)
        if self._whole.size > _MOST_TENTS:
            return own - self._solved_squares(low, high)
        return own - (self._product(low, low) - 2.0 * self._product(low, high) + self._product(high, high))

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

    def _product(self, one: _Ends, other: _Ends) -> Floats:
        """y' N y of two positions: each is a mean of whole tents up to three places next to each other."""
        found = np.zeros(one.tent.shape)
        for step, weight in enumerate(self._steps(one)):
            for beside, times in enumerate(self._steps(other)):
                found += weight * times * self._table[one.tent + step, other.tent + beside]
        return found

    def _steps(self, ends: _Ends) -> tuple[Floats, Floats, Floats]:
        own = _ratio(ends.own, self._whole[ends.tent])
        after = _ratio(ends.after, self._whole[ends.tent + 1])
        return 1.0 - own, own - after, after

    def _solved_squares(self, low: _Ends, high: _Ends) -> Floats:
        """y' N y of each range by itself, some of them at a time."""
        found, together = np.empty(low.tent.size), max(1, _BATCH // self._whole.size)
        for begin in range(0, found.size, together):
            some = slice(begin, begin + together)
            goal = self._vectors(high, some) - self._vectors(low, some)
            found[some] = _inner(goal, self._weighed(self._tents(goal, _FINE_TOLERANCE)))[:, 0]
        return found

    def _vectors(self, ends: _Ends, some: slice) -> Floats:
        tent, own, after = (each[some] for each in ends)
        vectors = np.where(np.arange(self._whole.size) < tent[:, None], self._whole, 0.0)
        rows = np.arange(tent.size)
        vectors[rows, tent] += own
        vectors[rows, tent + 1] += after
        return vectors

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
        """y' N y for all pairs of numbers of tents, all tents before which are whole.

        N = E^-1 + C (R^-1 + B (P^-1 - P^-1 E^-1 P^-1) B')^-1 C' with C = E^-1 P^-1 B', where E = P^-1 + T has
        three diagonals, P is of the first level, and R and B are of all levels above, which have few tents.
        """
        diagonal, beside = self._three_diagonals
        tents = diagonal.size
        own, rest = 1.0 / self.rows[:tents], 1.0 / self.rows[tents:]
        inverse = _inverse(diagonal + own, beside)
        if rest.size:
            above = own[:, np.newaxis] * self._above(np.eye(tents))
            carried = inverse @ above
            joint = np.diag(rest) + self._above(above.T).T - above.T @ carried
            inverse += carried @ np.linalg.solve(joint, carried.T)
        table = np.zeros((tents + 1, tents + 1))
        np.cumsum(self._whole[:, np.newaxis] * inverse * self._whole, axis=0, out=table[1:, 1:])
        return np.cumsum(table, axis=1)

    def _above(self, tents: Floats) -> Floats:
        """The tents of all higher levels of tents of the first, along the last axis."""
        rows = []
        for level in self.strategy.levels[1:]:
            tents = level.down(tents)
            rows.append(tents)
        return np.concatenate(rows, axis=-1)

    def _solved(self, right: Floats) -> Floats:
        first = self.strategy.levels[0]
        tents = self._tents(first.down(right / self.precision))
        return np.asarray((right - first.up(self._weighed(tents))) / self.precision)

    def _tents(self, goal: Floats, tolerance: float = _TOLERANCE) -> Floats:
        """z with (1 + T M) z = goal."""
        z, residual = np.zeros_like(goal), goal.copy()
        direction, image = residual.copy(), self._weighed(residual)
        weighed, left = image.copy(), _inner(residual, image)
        enough = tolerance * left
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


def _inverse(diagonal: Floats, beside: Floats) -> Floats:
    """The inverse of a symmetric positive matrix of three diagonals, by its pivots from either end.

    >>> _inverse(np.array([2.0, 2.0]), np.array([1.0])).round(12).tolist()
    [[0.666666666667, -0.333333333333], [-0.333333333333, 0.666666666667]]
    """
    down, up = diagonal.copy(), diagonal.copy()
    for i in range(1, diagonal.size):
        down[i] -= beside[i - 1] ** 2 / down[i - 1]
        up[-i - 1] -= beside[-i] ** 2 / up[-i]
    inverse = np.diag(1.0 / (down + up - diagonal))
    for i in range(1, diagonal.size):
        inverse[:i, i] = inverse[i, :i] = inverse[:i, i - 1] * (-beside[i - 1] / up[i])
    return inverse
