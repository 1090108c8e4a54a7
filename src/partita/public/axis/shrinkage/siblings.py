"""Groups of siblings that look flat, and how much they may differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

import numpy as np

from partita.public.axis.curve.curve import Floats, Ints
from partita.public.bounds.posterior import Measured

_POOLED: Final = 20.0
_ENOUGH: Final = 4
_CLIPPED: Final = (-1.0, 3.0)
_FLAT: Final = 4.0
_LOUD: Final = 1.5


def apart(values: Floats, variances: Floats) -> Floats:
    """The variance between siblings, one group a row, where a group looks flat; infinite where not.

    It is what the values differ by beyond their noise, pooled with groups of about the same size in
    units of noise, and at least that of counts. A group looks flat if its noise hides it.
    """
    mean, noise = values.mean(1), variances.mean(1)
    freedom = values.shape[1] - 1
    between = ((values - mean[:, None]) ** 2).sum(1) / freedom - noise
    if mean.size >= _ENOUGH:
        between = _pooled(between, mean, noise, freedom)
    between = np.maximum(between, np.maximum(mean, 1.0))
    return np.where((between < _FLAT * noise) & (mean > _LOUD * np.sqrt(noise / 2)), between, np.inf)


def _pooled(between: Floats, mean: Floats, noise: Floats, freedom: int) -> Floats:
    """Each group's variance, drawn towards the average ratio to its noise among groups of its size."""
    power = np.floor(np.log2(np.maximum(mean / np.sqrt(noise / 2), 0.5)))
    _, stratum, groups = np.unique(power, return_inverse=True, return_counts=True)
    ratios = np.bincount(stratum, np.clip(between / noise, *_CLIPPED)) / groups
    weight = (_POOLED * np.minimum(1.0, groups / _ENOUGH))[stratum]
    shared = np.maximum(ratios, 0.0)[stratum] * noise
    return (freedom * between + weight * shared) / (freedom + weight)


@final
@dataclass(frozen=True, eq=False)
class FlatGroups:
    """Siblings, as spans of units, whose sums are expected to be equal up to a variance.

    `group` numbers the group of each sibling, and `variance` is that of its group.
    """

    low: Ints
    behind: Ints
    group: Ints
    variance: Floats
    units: int

    def measured(self) -> Measured:
        """The prior as measurements: each sibling's difference from the mean of its group, which is zero."""
        return Measured(self._apply, self._adjoint, 1.0 / self.variance)

    def _apply(self, units: Floats) -> Floats:
        before = np.concatenate([np.zeros(1), np.cumsum(units)])
        return self._centred(before[self.behind] - before[self.low])

    def _adjoint(self, siblings: Floats) -> Floats:
        return spread_over(self.low, self.behind, self._centred(siblings), self.units)

    def _centred(self, siblings: Floats) -> Floats:
        means = np.bincount(self.group, siblings) / np.bincount(self.group)
        return siblings - means[self.group]


def spread_over(low: Ints, behind: Ints, values: Floats, units: int) -> Floats:
    """For each unit the sum of the values of all spans low, ..., behind-1 that hold it."""
    steps = np.bincount(low, values, units + 1) - np.bincount(behind, values, units + 1)
    return np.cumsum(steps[:-1])
