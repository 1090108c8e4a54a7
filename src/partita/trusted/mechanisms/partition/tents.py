"""Tents: noisy overlapping sums of all cells, for any range of a universe of moderate size."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar, Final, final

import numpy as np
from numpy.typing import NDArray

from partita.numbers import freeze, frozen, integer
from partita.public.axis.tent_solver.tent_counts import TentCounts
from partita.public.axis.tent_solver.tent_strategy import GRAIN_BITS, TentStrategy, planned
from partita.public.axis.tents.tents import TentRelease
from partita.public.bounds.query_error import typical_error
from partita.trusted.mechanisms.base.base import Mechanism
from partita.trusted.mechanisms.base.checks import check_scale, fitting
from partita.trusted.noise.system.protocol import Noise
from partita.trusted.noise.system.system import SYSTEM
from partita.trusted.secret.histogram import AxisCounts

_LARGEST_SIZE: Final = 2**24


@final
@frozen(kw_only=True)
class Tents(Mechanism):
    """Publish once; answer every interval over 0, ..., size-1 from overlapping sums, level upon level.

    Guarantee: epsilon-DP, pure; ADD_REMOVE or CHANGE_ONE.
    Error:     least squares; standard error 8.3 / epsilon for a random range of a universe of 256 cells,
               11.4 / epsilon for one of 1024.
    Proof:     docs/proofs/tents.md (every level counts everybody once; integer weights and noise)

    >>> Tents(size=256, epsilon=1).scales
    [Fraction(2, 1), Fraction(512, 1)]
    """

    name: ClassVar[str] = "tents"

    size: int

    def _convert(self) -> None:
        super()._convert()
        freeze(self, size=integer(self.size, "size", low=1, high=_LARGEST_SIZE))

    def _check(self) -> None:
        for scale in self.scales:
            check_scale(scale, self.epsilon)

    @property
    def scales(self) -> list[Fraction]:
        """The noise scale of each level's integers."""
        return level_scales(planned(self.size)[1], self.rate)

    def predicted_error(self, rows: int) -> float:
        """About the root-mean-square error of a random range; the number of rows does not matter."""
        return typical_error(self.size, self.rate)

    def predicted_numbers(self, rows: int) -> int:
        """How many integers the release holds."""
        return sum(planned(self.size)[0])

    def release(self, data: AxisCounts, *, noise: Noise = SYSTEM) -> TentRelease:
        """Count every cell and every tent, and add noise."""
        counts = fitting(data, self.size, self.contributions)
        session = noise.session()
        tents = measured(counts.spread(), self.rate, session)
        return TentRelease(size=self.size, tents=tents, guarantee=self.guarantee if session.secure else None)


def measured(units: NDArray[np.int64], rate: Fraction, noise: Noise) -> TentCounts:
    """Noisy tents over the counts of units; one row more or less costs `rate`.

    A row changes level l by 2^8l in L1 norm, so with noise of scale 2^8l / (share rate) it costs its
    share of the rate there, and the shares add up to one. How many units there are must be public.
    """
    sizes, shares = planned(units.size)
    exact = TentStrategy.over(sizes, shares).exact(units)
    scales = level_scales(shares, rate)
    noisy = tuple(noise.add(values, scale) for values, scale in zip(exact, scales, strict=True))
    return TentCounts(levels=noisy, shares=shares, rate=rate)


def level_scales(shares: tuple[Fraction, ...], rate: Fraction) -> list[Fraction]:
    """The noise scale of each level: level l is in units of 2^-8l."""
    return [2 ** (GRAIN_BITS * level) / (share * rate) for level, share in enumerate(shares)]
