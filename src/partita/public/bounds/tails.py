"""How far sums of released noise can lie from zero, for certain."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

import numpy as np

from partita.public.axis.curve.curve import Floats

_GRID: Final = np.concatenate([np.geomspace(1e-5, 0.5, 24), 1.0 - np.geomspace(0.5, 1e-4, 17)[1:]])
_NEARBY: Final = 32
_MANY: Final = 2_000
_OCTAVE: Final = 64
_STEPS_DOWN: Final = 20 * _OCTAVE
_ROUNDING: Final = 1e-9
_LEAST_VARIANCE: Final = 2.0**-200


def laplace_variance(scale: Fraction) -> float:
    """The variance of discrete Laplace noise: 2a / (1-a)^2, a = exp(-1/scale); never quite zero."""
    return float(laplace_variances(np.array(float(1 / scale))))


def laplace_variances(rates: Floats) -> Floats:
    """The same for each noise of scale 1 / rate."""
    return np.maximum(_LEAST_VARIANCE, 2.0 * np.exp(-rates) / np.square(np.expm1(-rates)))


def half_width(rates: Floats, log_beta: Floats) -> Floats:
    """The least integer h with P[|X| > h] <= beta for discrete Laplace noise X of scale 1 / rate.

    That probability is 2 a^(h+1) / (1+a), a = exp(-rate); h is rounded up.
    """
    needed = -(np.log1p(np.expm1(-rates) / 2.0) + log_beta) / rates
    return np.maximum(np.ceil(needed * (1.0 + _ROUNDING)) - 1.0, 0.0)


def chernoff(x: Floats, log_moment: Floats, beta: float) -> Floats:
    """t with P[S > t] <= beta, given ln E[exp(x S)] for some x > 0: each x gives a valid t, rounded up."""
    return np.asarray((log_moment - math.log(beta)) / x * (1.0 + _ROUNDING))


def repeated_reach(sizes: Floats, rates: Floats, times: Floats, beta: float) -> float:
    """t with P[S > t] <= beta for a sum S of independent discrete Laplace noises; one side only.

    In it is `times[i]` times a noise of scale 1 / rates[i], multiplied by sizes[i] > 0. The law is
    symmetric, so -t is as rarely undercut. The moments exist for x sizes[i] < rates[i]. The bound first
    falls and then rises with x: the best x of a grid is looked for, then the best between its neighbours.
    """
    limit = float((rates / sizes).min())

    def reaches(shares: Floats) -> Floats:
        points = limit * shares
        return chernoff(points, _log_moments(points, sizes, rates, times), beta)

    best = int(reaches(_GRID).argmin())
    nearby = np.linspace(_GRID[max(best - 1, 0)], _GRID[min(best + 1, _GRID.size - 1)], _NEARBY)
    return float(reaches(nearby).min())


def laplace_sum_reach(scale: Fraction, terms: int, beta: float) -> float:
    """t with P[|X1 + ... + Xm| > t] <= beta for independent discrete Laplace noises of one scale."""
    if terms == 0:
        return 0.0
    return repeated_reach(np.ones(1), np.array([float(1 / scale)]), np.array([float(terms)]), beta / 2)


def laplace_mix_reach(factors: Floats, rates: Floats, beta: float) -> float:
    """t with P[f1 X1 + f2 X2 + ... > t] <= beta for independent noises X_i of scale 1 / rates[i]."""
    used = factors != 0.0
    if not bool(used.any()):
        return 0.0
    return repeated_reach(*_grouped(np.abs(factors[used]), rates[used]), beta)


def _grouped(sizes: Floats, rates: Floats) -> tuple[Floats, Floats, Floats]:
    """Sizes and rates with how many times each occurs; many sizes are rounded up to 64 an octave.

    ln M(x) grows with x > 0, so a greater size is a safe one. The smallest in units of their rates,
    under 2^-20 of the greatest, are taken to be that.
    """
    if sizes.size <= _MANY:
        return sizes, rates, np.ones(sizes.size)
    shares = sizes / rates
    greatest = float(shares.max())
    steps = np.minimum(np.floor(-_OCTAVE * np.log2(shares / greatest)), _STEPS_DOWN).astype(np.int64)
    kinds, kind = np.unique(rates, return_inverse=True)
    groups, times = np.unique(kind * (_STEPS_DOWN + 1) + steps, return_counts=True)
    rounded = greatest * np.exp2(-(groups % (_STEPS_DOWN + 1)) / _OCTAVE)
    rates = kinds[groups // (_STEPS_DOWN + 1)]
    return rounded * rates * (1 + _ROUNDING), rates, times.astype(np.float64)


def _log_moments(points: Floats, sizes: Floats, rates: Floats, times: Floats) -> Floats:
    """ln E[exp(x S)] of the whole sum at each point x; of some noises at a time, to need little memory."""
    total = np.zeros(points.size)
    for start in range(0, sizes.size, _MANY):
        some = slice(start, start + _MANY)
        total += log_moments(points[:, np.newaxis] * sizes[some], rates[some]) @ times[some]
    return total


def log_moments(x: Floats, rates: Floats) -> Floats:
    """ln E[exp(x_i X_i)] for discrete Laplace noise X_i of scale 1 / rates[i], |x_i| < rates[i].

    (1 - a e^x)(1 - a e^-x) = (1-a)^2 - e^(x-rate) (1 - e^-x)^2 with a = e^-rate, so nothing cancels
    when x is small.
    """
    return np.asarray(-np.log1p(-np.exp(x - rates) * np.square(np.expm1(-x) / np.expm1(-rates))))
