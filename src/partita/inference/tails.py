"""How far sums of released noise can lie from zero, for certain."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

import numpy as np

from partita.inference.curve import Floats

__all__ = ["laplace_mix_reach", "laplace_sum_reach", "laplace_variance", "log_moments"]

_STEPS: Final = 200
_MIX_STEPS: Final = 40
_MANY: Final = 2_000
_OCTAVE: Final = 64
_STEPS_DOWN: Final = 20 * _OCTAVE
_ROUNDING: Final = 1e-9
_LEAST_VARIANCE: Final = 2.0**-200


def laplace_variance(scale: Fraction) -> float:
    """The variance of discrete Laplace noise: 2a / (1-a)^2, a = exp(-1/scale); never quite zero."""
    rate = float(1 / scale)
    return max(_LEAST_VARIANCE, 2 * math.exp(-rate) / math.expm1(-rate) ** 2)


def laplace_sum_reach(scale: Fraction, terms: int, beta: float) -> float:
    """t with P[|X1 + ... + Xm| > t] <= beta for independent discrete Laplace noises of one scale.

    Chernoff: P[|S| >= t] <= 2 M(x)^m exp(-x t) for every 0 < x < 1/scale, where the moment
    generating function is M(x) = (1-a)^2 / ((1 - a e^x)(1 - a e^-x)), so each x gives a valid t;
    the best of a grid is taken and rounded up.
    """
    if terms == 0:
        return 0.0
    rate = float(1 / scale)
    points = (rate * i / _STEPS for i in range(1, _STEPS))
    best = min((terms * _log_moment(x, rate) + math.log(2 / beta)) / x for x in points)
    return float(best * (1 + _ROUNDING))


def laplace_mix_reach(factors: Floats, rates: Floats, beta: float) -> float:
    """t with P[f1 X1 + f2 X2 + ... > t] <= beta for independent discrete Laplace noises; one side only.

    X_i has scale 1 / rates[i]. Chernoff as above: sum ln M_i(x f_i) - x t, for every x with
    x |f_i| < rates[i]. The law is symmetric, so -t is as rarely undercut.
    """
    used = factors != 0.0
    if not bool(used.any()):
        return 0.0
    sizes, rates, times = _grouped(np.abs(factors[used]), rates[used])
    limit = float((rates / sizes).min())
    points = limit * np.concatenate(
        [np.geomspace(1e-5, 0.14, _MIX_STEPS), 1.0 - np.geomspace(0.86, 1e-4, _MIX_STEPS)]
    )
    best = min((times @ log_moments(x * sizes, rates) + math.log(1 / beta)) / x for x in points.tolist())
    return float(best * (1 + _ROUNDING))


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
    times = np.bincount(kind * (_STEPS_DOWN + 1) + steps, minlength=kinds.size * (_STEPS_DOWN + 1))
    kept = np.flatnonzero(times)
    rounded = greatest * np.exp2(-(kept % (_STEPS_DOWN + 1)) / _OCTAVE)
    rates = kinds[kept // (_STEPS_DOWN + 1)]
    return rounded * rates * (1 + _ROUNDING), rates, times[kept].astype(np.float64)


def log_moments(x: Floats, rates: Floats) -> Floats:
    """ln E[exp(x_i X_i)] for discrete Laplace noise X_i of scale 1 / rates[i], |x_i| < rates[i].

    (1 - a e^x)(1 - a e^-x) = (1-a)^2 - e^(x-rate) (1 - e^-x)^2 with a = e^-rate, so nothing cancels
    when x is small.
    """
    return np.asarray(-np.log1p(-np.exp(x - rates) * np.square(np.expm1(-x) / np.expm1(-rates))))


def _log_moment(x: float, rate: float) -> float:
    """The same for one noise."""
    return -math.log1p(-math.exp(x - rate) * (math.expm1(-x) / math.expm1(-rate)) ** 2)
