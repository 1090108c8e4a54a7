"""Raking: the leaves of a tree in rank space, drawn towards what is known about each column alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from partita.public.axis.curve.curve import Curve, Floats, Ints
from partita.public.boxes.cover.cover import cover
from partita.public.boxes.density.density import Density
from partita.public.boxes.density.measure import Stretches
from partita.public.boxes.density.ranks import positions_at

_BINS: Final = 64
_ROUNDS: Final = 10
_LEAST_RATIO, _LARGEST_RATIO = 0.2, 5.0
_NOTHING: Final = 1e-9
_PREFIXES: Final = (0.3, 0.45, 0.62, 0.8)


@final
@dataclass(frozen=True, eq=False)
class RankBins:
    """How leaves lie in bins of equal rank along one axis: each is spread evenly over its ranks.

    A leaf has the shares `in_first` and `in_last` in the bins where it begins and ends, and `in_each` in
    every bin between them.
    """

    first: Ints
    last: Ints
    in_first: Floats
    in_last: Floats
    in_each: Floats

    @staticmethod
    def of(starts: Floats, ends: Floats) -> RankBins:
        """Leaves from rank to rank, between 0 and 1."""
        starts, ends = starts * _BINS, np.maximum(starts, ends) * _BINS
        first, last = (np.clip(np.floor(at), 0, _BINS - 1).astype(np.int64) for at in (starts, ends))
        several = last > first
        width = np.where(several, ends - starts, 1.0)
        return RankBins(
            first,
            last,
            np.where(several, (first + 1 - starts) / width, 1.0),
            np.where(several, (ends - last) / width, 0.0),
            np.where(several, 1.0 / width, 0.0),
        )

    def marginal(self, values: Floats) -> Floats:
        """What the bins hold together of leaves with these values."""
        held = np.bincount(self.first, values * self.in_first, minlength=_BINS)
        held += np.bincount(self.last, values * self.in_last, minlength=_BINS)
        begun = np.bincount(self.first + 1, values * self.in_each, minlength=_BINS + 1)
        ended = np.bincount(self.last, values * self.in_each, minlength=_BINS + 1)
        return np.asarray(held + np.cumsum(begun - ended)[:_BINS])

    def mean(self, ratios: Floats) -> Floats:
        """The mean of a number of each bin over the ranks of each leaf."""
        before = np.concatenate([np.zeros(1), np.cumsum(ratios)])
        between = np.where(self.last > self.first, before[self.last] - before[self.first + 1], 0.0)
        ends = self.in_first * ratios[self.first] + self.in_last * ratios[self.last]
        return np.asarray(ends + self.in_each * between)


def raked(values: Floats, axes: Sequence[RankBins], weights: Floats) -> Floats:
    """Counts >= 0 of leaves with the same total, whose marginals are nearer to what they should be.

    In rank space a column alone is even: every bin should hold as much as any other. The target of an
    axis is a mean of that, by its weight, and of the marginal that the leaves have to begin with.
    """
    total = float(values.sum())
    if not total > 0.0:
        return values
    targets = [
        weight * total / _BINS + (1.0 - weight) * axis.marginal(values)
        for axis, weight in zip(axes, weights.tolist(), strict=True)
    ]
    for _ in range(_ROUNDS):
        for axis, target in zip(axes, targets, strict=True):
            values = values * axis.mean(_ratios(target, axis.marginal(values), total))
        values = values * (total / values.sum())
    return values


def _ratios(target: Floats, held: Floats, total: float) -> Floats:
    """By how much each bin should grow, within limits; a bin that holds nothing stays as it is."""
    there = held > _NOTHING * total
    ratio = np.divide(target, held, out=np.ones_like(held), where=there)
    return np.clip(ratio, _LEAST_RATIO, _LARGEST_RATIO)


def prefix_variance(density: Density, axis: int, shares: Curve) -> float:
    """The mean variance of prefixes along an axis that end at some ranks of a distribution."""
    alone = density.onto([axis])
    ends = np.maximum(positions_at(shares, np.array(_PREFIXES)), np.uint64(1)) - np.uint64(1)
    boxes = Stretches.along(alone.measures, np.zeros((ends.size, 1), np.uint64), ends[:, None])
    return sum(
        float((part.share**2 * alone.held.variances[part.node]).sum()) for part in cover(alone, boxes)
    ) / len(_PREFIXES)
