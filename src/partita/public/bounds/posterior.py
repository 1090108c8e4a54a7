"""Linear least squares over units: an estimate of each, and measurements of sums of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from partita.public.axis.curve.curve import Floats

_STEPS: Final = 100
_TOLERANCE: Final = 1e-14


@final
@dataclass(frozen=True, eq=False)
class Measured:
    """Linear measurements of the units: `apply` is the matrix, `adjoint` its transpose."""

    apply: Callable[[Floats], Floats]
    adjoint: Callable[[Floats], Floats]
    precision: Floats


@final
@dataclass(frozen=True, eq=False)
class Posterior:
    """Units with an independent estimate each (of `precision` = 1/variance > 0) and measurements of sums.

    The best combination of all of them solves S x = right, S = diag(precision) + sum A' P A, by
    conjugate gradients, or by a `solver` that knows the measurements better and takes many right sides
    at once, along the last axis; S^-1 is its covariance.
    """

    precision: Floats
    measured: Sequence[Measured] = ()
    solver: Callable[[Floats], Floats] | None = None

    def mean(self, units: Floats, rows: Sequence[Floats]) -> Floats:
        """The estimate of every unit from the units' own estimates and the values of each measurement."""
        right = np.zeros_like(self.precision)
        for each, values in zip(self.measured, rows, strict=True):
            right += each.adjoint(each.precision * (values - each.apply(units)))
        return units + self.solve(right)

    def variance(self, weights: Floats) -> float:
        """The variance of the weighted sum of the units' estimates."""
        return float(weights @ self.solve(weights))

    def estimator(self, weights: Floats) -> tuple[Floats, list[Floats]]:
        """How the weighted sum of units is put together: a factor for each estimate and each measurement.

        Whatever the iteration left over is mended on the units, so the factors are unbiased as they
        are, to rounding.
        """
        solved = self.solve(weights)
        factors = [each.precision * each.apply(solved) for each in self.measured]
        units = weights - sum(
            (each.adjoint(factor) for each, factor in zip(self.measured, factors, strict=True)),
            np.zeros_like(weights),
        )
        return units, factors

    def solve(self, right: Floats) -> Floats:
        """x with S x = right."""
        if self.solver is not None:
            return self.solver(right)
        if not self.measured:
            return right / self.precision
        scale = 1.0 / np.sqrt(self.precision)
        residual = scale * right
        x, direction, left = np.zeros_like(right), residual.copy(), float(residual @ residual)
        enough = _TOLERANCE * left
        for _ in range(_STEPS):
            if left <= enough:
                break
            image = scale * self._normal(scale * direction)
            step = left / float(direction @ image)
            x += step * direction
            residual -= step * image
            left, previous = float(residual @ residual), left
            direction = residual + (left / previous) * direction
        return scale * x

    def _normal(self, x: Floats) -> Floats:
        image = self.precision * x
        for each in self.measured:
            image += each.adjoint(each.precision * each.apply(x))
        return image
