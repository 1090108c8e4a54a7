"""Empirical Bayes: what noisy counts say about each other, where many of them are near zero."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Final, TypeAlias

import numpy as np

from partita.public.axis.curve.curve import Floats, Ints

Spikes: TypeAlias = tuple[float, ...]

MIXED: Final[Spikes] = (0.99, 0.3)
"""Begin with nearly all weight on zero, or with less, as the values speak for."""

EMPTY: Final[Spikes] = (0.99,)
"""Begin with nearly all weight on zero: for boxes, of which most are empty."""


_SMALLEST_STRATUM: Final = 64
_STEPS_PER_UNIT: Final = 4
_LEAST: Final = -20
_MOST: Final = 14
_ROUNDS: Final = 50
_PSEUDO_OBSERVATIONS: Final = 16.0
_BLEND_FROM: Final = 7.0
_BLEND_TO: Final = 12.0
_LEAST_VARIANCE: Final = 1e-3
_LAPLACE_VARIANCE: Final = 2.0
_UNDERFLOW: Final = 1e-200


def shrink(
    values: Floats, scales: Floats, expected: Floats, *, spikes: Spikes = MIXED
) -> tuple[Floats, Floats]:
    """The posterior mean and variance of counts >= 0, each seen with Laplace noise of its scale.

    Counts with about the same `expected` size, in units of their noise, share a prior that is
    estimated from their values: a mixture over a grid, begun with one of the `spikes` as its weight on
    zero, as the values themselves speak for.
    Values far above their noise are taken as they are.
    """
    ratios, starts = values / scales, _starts(spikes)
    mean, variance = np.empty_like(ratios), np.empty_like(ratios)
    for stratum in _strata(expected / scales):
        mean[stratum], variance[stratum] = _shrunk(ratios[stratum], starts)
    far = np.clip((ratios - _BLEND_FROM) / (_BLEND_TO - _BLEND_FROM), 0.0, 1.0)
    return (
        ((1 - far) * mean + far * ratios) * scales,
        ((1 - far) * variance + far * _LAPLACE_VARIANCE) * scales**2,
    )


def _strata(expected: Floats) -> Iterator[Ints]:
    """Indices by powers of two of the expected size; a stratum that is too small joins the next."""
    power = np.floor(np.log2(np.maximum(expected, 0.5)))
    order = np.argsort(power, kind="stable")
    first = 0
    for behind in [*(np.flatnonzero(np.diff(power[order])) + 1).tolist(), order.size]:
        if behind - first >= _SMALLEST_STRATUM or behind == order.size > first:
            yield order[first:behind]
            first = behind


def _shrunk(ratios: Floats, starts: Floats) -> tuple[Floats, Floats]:
    """Posterior mean and variance of one stratum, from values rounded so that equal ones share their work."""
    rounded = np.round(np.clip(ratios, _LEAST, _MOST) * _STEPS_PER_UNIT).astype(np.int64)
    levels, which, times = np.unique(rounded, return_inverse=True, return_counts=True)
    likelihood = np.exp(-np.abs(levels[:, None] / _STEPS_PER_UNIT - _GRID)) + _UNDERFLOW
    weights = likelihood * _mixture(likelihood, times.astype(np.float64), starts)
    weights /= weights.sum(1, keepdims=True)
    mean = weights @ _GRID
    variance = np.maximum(weights @ _GRID**2 - mean**2, _LEAST_VARIANCE)
    return mean[which], variance[which]


def _mixture(likelihood: Floats, times: Floats, starts: Floats) -> Floats:
    """The prior's weights on the grid: the fits from each start, weighed by their own evidence."""
    fits = _fitted(likelihood, times, starts)
    evidence = np.log(fits @ likelihood.T) @ times
    evidence += _PSEUDO_OBSERVATIONS * (starts * np.log(fits / starts)).sum(1)
    weights = np.exp(evidence - evidence.max())
    return np.asarray(weights @ fits / weights.sum())


def _fitted(likelihood: Floats, times: Floats, starts: Floats) -> Floats:
    """The most likely weights from each start, by expectation maximisation; it counts as observations."""
    priors, by_value = starts, likelihood.T.copy()
    share = 1.0 / (times.sum() + _PSEUDO_OBSERVATIONS)
    begun = _PSEUDO_OBSERVATIONS * share * starts
    for _ in range(_ROUNDS):
        priors = begun + share * priors * ((times / (priors @ by_value)) @ likelihood)
    return priors


def _grid() -> Floats:
    """0, 1/8, 2/8, ..., then growing by 5% to 15."""
    points = [0.0, 0.125]
    while points[-1] + max(0.125, 0.05 * points[-1]) < _MOST + 1:
        points.append(points[-1] + max(0.125, 0.05 * points[-1]))
    return np.array(points)


def _start(grid: Floats, spike: float) -> Floats:
    """A weight on zero, the rest with density about 1 / (count + 1/2)."""
    rest = np.gradient(grid)[1:] / (grid[1:] + 0.5)
    return np.concatenate([[spike], (1 - spike) * rest / rest.sum()])


@cache
def _starts(spikes: Spikes) -> Floats:
    return np.array([_start(_GRID, spike) for spike in spikes])


_GRID: Final = _grid()
