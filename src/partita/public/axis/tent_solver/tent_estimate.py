"""The best counts from noisy tents: least squares, then what is known of all counts."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partita.public.axis.curve.curve import Floats
from partita.public.axis.shrinkage.empirical_bayes import shrink
from partita.public.axis.shrinkage.nonnegative import nonnegative
from partita.public.axis.tent_solver.tent_counts import TentCounts

_FEW_UNITS: Final = 20
_FEWEST_ATOMS: Final = 16
_LEAST_VARIANCE: Final = 1e-6


class UnitCounts(NamedTuple):
    """Estimated counts of units, and how rough they are: 0 as even as noise, 1 taken as they are."""

    counts: Floats
    roughness: float


def unit_counts(counts: TentCounts, widths: Floats) -> UnitCounts:
    """Least squares, counts >= 0, and for few units a step towards an even spread."""
    return _towards_even(
        nonnegative(counts.posterior.mean(counts.own, counts.rows)), widths, counts.own_variance
    )


def unit_counts_with_atoms(
    counts: TentCounts, widths: Floats, atoms: NDArray[np.bool_], total: int
) -> UnitCounts:
    """The same where some units are single cells cut off because they may be heavy; most are not.

    What their own noisy counts say about each other shrinks them first.
    """
    if np.count_nonzero(atoms) < _FEWEST_ATOMS:
        return unit_counts(counts, widths)
    scales = np.full(counts.units, float(1 / counts.rates[0]))
    expected = np.full(counts.units, max(total, 0) / counts.units)
    own, variance = counts.own.copy(), np.full(counts.units, counts.own_variance)
    own[atoms], shrunk = shrink(own[atoms], scales[atoms], expected[atoms])
    variance[atoms] = np.maximum(shrunk, _LEAST_VARIANCE * scales[atoms] ** 2)
    return UnitCounts(nonnegative(counts.posterior_with(1.0 / variance).mean(own, counts.rows)), 1.0)


def _towards_even(counts: Floats, widths: Floats, variance: float) -> UnitCounts:
    """James-Stein: the less the counts differ from an even spread, the more of that is taken for noise."""
    if counts.size > _FEW_UNITS:
        return UnitCounts(counts, 1.0)
    even = counts.sum() * widths / widths.sum()
    apart = float(((counts - even) ** 2).sum())
    noise = (counts.size - 1) * variance
    roughness = 1.0 - noise / apart if apart > noise else 0.0
    return UnitCounts(even + roughness * (counts - even), roughness)
