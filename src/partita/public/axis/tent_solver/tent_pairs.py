"""Units of several cells with a second look: their last cell, and the rest."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from partita.lazy.cached import cached_property
from partita.public.axis.curve.curve import Curve, Floats, UInts
from partita.public.axis.tent_solver.tent_counts import TentEvidence
from partita.public.base.released import damaged, noise_rate, noisy_integers
from partita.public.bounds.linear_ranges import Combination, Doubts, Position
from partita.public.bounds.tails import laplace_variance

_REACH: Final = 2.5
_TAKEN_OFF: Final = 1.5


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Pairs:
    """Noisy counts of the last cell and of the rest of each unit of several cells, in order.

    A row lies in one of the two. `rate` is 1 / scale of their noise.
    """

    last: NDArray[Any]
    rest: NDArray[Any]
    rate: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "last", noisy_integers(self.last, "last"))
        object.__setattr__(self, "rest", noisy_integers(self.rest, "rest"))
        noise_rate(self.rate, "pair_rate")
        if self.last.size != self.rest.size:
            raise damaged("rest", "must be as long as last")

    @cached_property
    def difference(self) -> Floats:
        """Last cell minus rest."""
        return self.last.astype(np.float64) - self.rest.astype(np.float64)

    @property
    def variance(self) -> float:
        """The variance of each look."""
        return laplace_variance(1 / self.rate)

    def last_cells(self, totals: Floats) -> Floats:
        """The part of each total that lies in the last cell."""
        return np.clip((self.difference + totals) / 2, 0.0, totals)

    def settled(self, totals: Floats) -> Floats:
        """The same, where the last cell is known to be heavy: then the rest is most likely next to nothing.

        So 1.5 noise scales are taken off the rest. Against a heavy cell alone nothing speaks but the
        noise of the looks, which is large.
        """
        last, scale = self.last_cells(totals), float(1 / self.rate)
        rest = np.maximum(totals - last - _TAKEN_OFF * scale, 0.0)
        return np.where(last > _REACH * scale, totals - rest, last)

    def telling(self, units: Curve) -> NDArray[np.bool_]:
        """Which units have a last cell that is clearly not one like the others."""
        wide = units.widths > 1.0
        totals, even = units.counts[wide], units.counts[wide] / units.widths[wide]
        telling = np.zeros(units.ends.size, bool)
        telling[wide] = np.abs(self.last_cells(totals) - even) > _REACH / float(self.rate)
        return telling

    def doubts(self, units: Curve) -> Doubts:
        """The last cells that do not tell, and how far they may be from their even share."""
        wide, untold = units.widths > 1.0, ~self.telling(units)
        totals, even = units.counts[wide], units.counts[wide] / units.widths[wide]
        variance = self.variance / 2 + (self.last_cells(totals) - even) ** 2
        return Doubts(units.ends[wide & untold], np.minimum(variance, totals**2)[untold[wide]])

    def of(self, which: NDArray[np.bool_]) -> Pairs:
        """Some of the pairs only."""
        return Pairs(last=self.last[which], rest=self.rest[which], rate=self.rate)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class PairEvidence:
    """Tents over units, and pairs within some of them: looks at pieces.

    The units that are `split` have a pair each. Half the sum and half the difference of a pair are its two
    pieces; the sum is the unit's count by tents, the difference is that of the two looks.
    """

    units: TentEvidence
    split: NDArray[np.bool_]
    pairs: Pairs

    @staticmethod
    def telling(units: TentEvidence, counts: Curve, pairs: Pairs) -> PairEvidence:
        """Only the pairs that tell their last cell from the others."""
        split = pairs.telling(counts)
        return PairEvidence(units=units, split=split, pairs=pairs.of(split[counts.widths > 1.0]))

    @cached_property
    def ends(self) -> UInts:
        """The last cell of each piece."""
        return _cut_off(self.units.ends, self.split)

    def counts(self, units: Floats) -> Floats:
        """The counts of the pieces, from those of the units."""
        pieces = np.zeros(self.ends.size)
        pieces[self._last] = units
        totals = units[self.split]
        pieces[self._split_last] = self.pairs.settled(totals)
        pieces[self._split_last - 1] = totals - pieces[self._split_last]
        return pieces

    def combined(self, weights: Floats) -> Combination:
        """The estimate of a weighted sum of pieces."""
        sums, differences = self._in_units(weights)
        tents = self.units.combined(sums)
        rates = np.full(2 * differences.size, float(self.pairs.rate))
        return Combination(
            tents.value + float(differences @ self.pairs.difference),
            np.concatenate([tents.factors, differences, -differences]),
            np.concatenate([tents.rates, rates]),
        )

    def variance(self, weights: Floats) -> float:
        """The variance of that estimate."""
        sums, differences = self._in_units(weights)
        return self.units.variance(sums) + 2 * self.pairs.variance * float(differences @ differences)

    def range_variances(self, first: Position, last: Position) -> Floats:
        """The variances of the estimates of sums of pieces between two positions."""
        (low, below), (high, above) = self._at_units(first), self._at_units(last)
        together = low.piece == high.piece
        differences = np.where(together, (above - below) ** 2, above**2 + below**2)
        return self.units.range_variances(low, high) + 2 * self.pairs.variance * differences

    def _at_units(self, at: Position) -> tuple[Position, Floats]:
        """Positions among the units, and the factors of the pairs' differences there."""
        unit = np.searchsorted(self._last, at.piece)
        rest, split = at.piece < self._last[unit], self.split[unit]
        share = np.where(split, (np.where(rest, 0.0, 1.0) + at.share) / 2, at.share)
        return Position(unit, share), np.where(split, np.where(rest, -at.share, at.share - 1.0) / 2, 0.0)

    def _in_units(self, weights: Floats) -> tuple[Floats, Floats]:
        """The factors of the units' counts and of the pairs' differences."""
        sums = weights[self._last].copy()
        last, rest = weights[self._split_last], weights[self._split_last - 1]
        sums[self.split] = (last + rest) / 2
        return sums, (last - rest) / 2

    @cached_property
    def _last(self) -> NDArray[np.intp]:
        """The piece that ends with each unit."""
        return np.asarray(np.cumsum(1 + self.split) - 1)

    @cached_property
    def _split_last(self) -> NDArray[np.intp]:
        """The last cells of the units that are split."""
        return self._last[self.split]


def with_last_cells_apart(ends: UInts) -> UInts:
    """The ends of the pieces when the last cell of every segment is cut off.

    A heavy cell seals the segment it lies in, so it is a last cell.

    >>> with_last_cells_apart(np.array([0, 4, 5], np.uint64)).tolist()
    [0, 3, 4, 5]
    """
    wide = np.concatenate([ends[:1] > 0, np.diff(ends) > 1])
    return _cut_off(ends, wide)


def _cut_off(ends: UInts, which: NDArray[np.bool_]) -> UInts:
    """The same for some segments only, of several cells each."""
    pieces = np.repeat(ends, 1 + which)
    pieces[np.cumsum(1 + which)[which] - 2] -= np.uint64(1)
    return pieces
