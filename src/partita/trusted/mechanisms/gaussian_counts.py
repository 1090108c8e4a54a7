"""Discrete Gaussian noise on the count of each cell, of one axis and of several [CKS20]."""

from __future__ import annotations

import math
from typing import ClassVar, final

import numpy as np

from partita.errors import check
from partita.numbers import check_probability, freeze, frozen, integer
from partita.public.axis.flat import GaussianRelease
from partita.public.bounds import gaussian_variance
from partita.public.boxes.grid import MOST_CELLS, GaussianGridRelease
from partita.trusted.mechanisms.base import GaussianCells, Mechanism, check_fits
from partita.trusted.mechanisms.boxes import BoxMechanism
from partita.trusted.noise.system import SYSTEM, Noise
from partita.trusted.secret import AxisCounts, PointCounts


@final
@frozen(kw_only=True)
class GaussianCounts(GaussianCells, Mechanism):
    """Publish once; answer every cell of 0, ..., size-1 as well as rho allows, and ranges as sums of cells.

    Guarantee: rho-zCDP, and (epsilon, delta)-DP, approximate; ADD_REMOVE or CHANGE_ONE.   [CKS20, Thm 14]
    Error:     O(sqrt(log size / rho)), all cells at once; O(sqrt(width / rho)) for a range.
    Proof:     docs/proofs/gaussian_counts.md (integer noise, exact sum of squares)

    >>> GaussianCounts(size=2**24, rho="1/8").variance
    Fraction(4, 1)
    """

    name: ClassVar[str] = "gaussian-histogram"
    bound_of: ClassVar[str] = "any range between two values"

    size: int

    def _convert(self) -> None:
        super()._convert()
        freeze(self, size=integer(self.size, "size", low=1, high=GaussianRelease.largest_size))

    @property
    def largest_error(self) -> float:
        """The expected largest error over all cells is at most this, by the moments of the noise."""
        return math.sqrt(2 * float(self.variance) * math.log(2 * self.size))

    def predicted_error(self, rows: int) -> float:
        """The root-mean-square error of a random range, exactly; the number of rows does not matter."""
        return math.sqrt((self.size + 2) / 3 * gaussian_variance(self.variance))

    def predicted_numbers(self, rows: int) -> int:
        """How many integers the release holds."""
        return self.size

    def bound(self, beta: object = "0.05", *, rows: int | None = None) -> float:
        """With probability 1 - beta no range is off by more, whatever the data: the release says the same."""
        noisy = np.broadcast_to(np.int64(0), self.size)
        empty = GaussianRelease(noisy=noisy, size=self.size, variance=self.variance)
        return empty.error(float(check_probability(beta)))

    def release(self, data: AxisCounts, *, noise: Noise = SYSTEM) -> GaussianRelease:
        """Add noise to every cell."""
        counts = check_fits(data, self.size, self.contributions)
        session = noise.session()
        return GaussianRelease(
            noisy=session.add_gaussian(counts.spread(), self.variance),
            size=self.size,
            variance=self.variance,
            guarantee=self.guarantee if session.secure else None,
        )


@final
@frozen(kw_only=True)
class GaussianGrid(GaussianCells, BoxMechanism):
    """Publish once; answer every cell of a product of axes as well as rho allows, and boxes as sums of cells.

    Guarantee: rho-zCDP, and (epsilon, delta)-DP, approximate; ADD_REMOVE or CHANGE_ONE.   [CKS20, Thm 14]
    Error:     O(sqrt(log cells / rho)), all cells at once; O(sqrt(cells in it / rho)) for a box.
    Proof:     docs/proofs/gaussian_counts.md (integer noise, exact sum of squares)

    Special cells are cells like others. There may be up to 2^22 cells in all.

    >>> from partita.domain.axis import Axis
    >>> GaussianGrid(axes=[Axis(size=7), Axis(size=2, after=2)], rho="1/2", contributions=3).variance
    Fraction(9, 1)
    """

    name: ClassVar[str] = "gaussian-grid"
    bound_of: ClassVar[str] = "any box"

    def _check(self) -> None:
        super()._check()
        rule = "must have at most 2^22 cells together, special cells included"
        fix = "publish fewer columns together, or make cells coarser"
        check(self.cells <= MOST_CELLS, "axes", rule, given=self.cells, fix=fix)

    @property
    def cells(self) -> int:
        """The number of cells of the product, special cells included."""
        return math.prod(axis.width for axis in self.axes)

    def predicted_error(self, rows: int) -> float:
        """The root-mean-square error of a random box, exactly; the number of rows does not matter."""
        cells = math.prod((axis.width + 2) / 3 for axis in self.axes)
        return math.sqrt(cells * gaussian_variance(self.variance))

    def predicted_numbers(self, rows: int) -> int:
        """How many integers the release holds."""
        return self.cells

    def bound(self, beta: object = "0.05", *, rows: int | None = None) -> float:
        """With probability 1 - beta no box is off by more, whatever the data: the release says the same."""
        noisy = np.broadcast_to(np.int64(0), self.cells)
        empty = GaussianGridRelease(axes=self.axes, noisy=noisy, variance=self.variance)
        return empty.error(float(check_probability(beta)))

    def release(self, points: PointCounts, *, noise: Noise = SYSTEM) -> GaussianGridRelease:
        """Add noise to every cell, whether or not there is a row in it."""
        cells = self.fitting(points).spread().ravel()
        session = noise.session()
        return GaussianGridRelease(
            axes=self.axes,
            noisy=session.add_gaussian(cells, self.variance),
            variance=self.variance,
            guarantee=self.guarantee if session.secure else None,
        )
