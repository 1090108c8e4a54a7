"""Least squares over units and tents, reduced to the first level of tents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

import numpy as np

from partita.cached import cached_property
from partita.inference.curve import Floats
from partita.inference.tent_strategy import TentStrategy

__all__ = ["TentSolver"]

_STEPS: Final = 200
_TOLERANCE: Final = 1e-16
_BATCH: Final = 2**21


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
