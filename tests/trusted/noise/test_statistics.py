"""Fits of fresh noise: chi-square, mean and variance, corrected for their number.

All fits share one error probability. A correct sampler fails the file with probability about
5e-7 (Holm over all p-values; normal and chi-square limits may double it, hence not 1e-6).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from partita.testing import EndlessTape, tape_noise
from partita.trusted.noise import kernel
from partita.trusted.noise import laws as fast
from partita.trusted.noise.hazard import Law
from partita.trusted.noise.laws import KernelWords, Words
from partita.trusted.noise.system import KERNEL, SYSTEM, Path, SystemNoise

FAMILY_WISE = 5e-7
SAMPLES = 400_000
SCALES = [Fraction(1, 4), Fraction(1), Fraction(20), Fraction(1000), Fraction(10**6)]
BINS = 16
FEWEST = 100.0

Fit = tuple[str, float]
Cdf = Callable[[int], float]


def laplace_cdf(scale: Fraction) -> Cdf:
    rate = float(1 / scale)
    a = math.exp(-rate)
    return lambda k: 1 - math.exp(-rate * (k + 1)) / (1 + a) if k >= 0 else math.exp(rate * k) / (1 + a)


def geometric_cdf(scale: Fraction) -> Cdf:
    return lambda k: -math.expm1(-float(1 / scale) * (k + 1)) if k >= 0 else 0.0


def edges(cdf: Cdf, scale: Fraction) -> list[int]:
    """Integers that cut the law into some bins of similar probability."""
    found = set()
    for j in range(1, BINS):
        low, high = -int(60 * scale) - 60, int(60 * scale) + 60
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if cdf(middle) >= j / BINS else (middle, high)
        found.add(high)
    return sorted(found)


def chi_square(observed: Sequence[float], probabilities: Sequence[float]) -> float:
    """The p-value of counts; bins that expect too few are joined."""
    total, joined, seen, share = sum(observed), [], 0.0, 0.0
    for count, probability in zip(observed, probabilities, strict=True):
        seen, share = seen + count, share + probability
        if share * total >= FEWEST:
            joined.append((seen, share * total))
            seen, share = 0.0, 0.0
    joined[-1] = (joined[-1][0] + seen, joined[-1][1] + share * total)
    statistic = sum((count - expected) ** 2 / expected for count, expected in joined)
    return float(stats.chi2.sf(statistic, len(joined) - 1)) if len(joined) > 1 else 1.0


def fit(values: Any, cdf: Cdf, scale: Fraction) -> float:
    """The p-value of noise in bins."""
    cuts = edges(cdf, scale)
    below = [0, *np.searchsorted(np.sort(values), np.array(cuts), side="right").tolist(), len(values)]
    cumulative = [0.0, *(cdf(cut) for cut in cuts), 1.0]
    return chi_square(np.diff(below).tolist(), np.diff(cumulative).tolist())


def normal(total: float, mean: float, variance: float, count: int) -> float:
    """The two-sided p-value of a sum of independent variables."""
    return float(2 * stats.norm.sf(abs(total - count * mean) / math.sqrt(count * variance)))


def moments(name: str, values: Any, scale: Fraction) -> Iterator[Fit]:
    """Mean, and for two-sided noise the variance, against the law."""
    a = math.exp(-float(1 / scale))
    one = a / math.expm1(-float(1 / scale)) ** 2
    exact = np.asarray(values, dtype=np.float64)
    if "geometric" in name:
        yield f"{name} mean", normal(exact.sum(), 1 / math.expm1(float(1 / scale)), one, exact.size)
        return
    fourth = 2 * one * (1 + 12 * one)
    yield f"{name} mean", normal(exact.sum(), 0.0, 2 * one, exact.size)
    yield f"{name} variance", normal((exact**2).sum(), 2 * one, fourth - (2 * one) ** 2, exact.size)


def additive(path: Path, words: Any, samples: int) -> Iterator[Fit]:
    """Both samplers at every scale."""
    noise = SystemNoise(words, path=path)
    for scale in SCALES:
        for name, cdf in (("discrete_laplace", laplace_cdf(scale)), ("geometric", geometric_cdf(scale))):
            values = getattr(noise, name)(scale, samples)
            label = f"{words.__name__} {path} {name} {scale}"
            yield label, fit(values, cdf, scale)
            yield from moments(label, values, scale)


def gaussians(path: Path, words: Any, samples: int) -> Iterator[Fit]:
    """Discrete Gaussian noise of every size: table or blocks, one word or two for a proposal."""
    noise = SystemNoise(words, path=path)
    for deviation in (Fraction(d) for d in ("1/2", "1", "20", "1000", "1e6", 2**45)):
        values = noise.discrete_gaussian(deviation**2, samples)
        label = f"{words.__name__} {path} gaussian {deviation}"
        yield label, fit(values, gaussian_cdf(float(deviation**2)), deviation)
        second, fourth = gaussian_moments(float(deviation**2))
        exact = np.asarray(values, dtype=np.float64)
        yield f"{label} mean", normal(exact.sum(), 0.0, second, exact.size)
        yield f"{label} variance", normal((exact**2).sum(), second, fourth - second**2, exact.size)


def gaussian_cdf(variance: float) -> Cdf:
    """Summed up where the deviation is small; else the normal law between integers, within 10^-7 of it."""
    if variance < 10**5:
        k = np.arange(-40 * int(math.sqrt(variance) + 1), 40 * int(math.sqrt(variance) + 1) + 1)
        weights = np.exp(-(k.astype(np.float64) ** 2) / (2 * variance))
        cumulative = np.cumsum(weights) / weights.sum()
        return lambda x: float(cumulative[min(max(x - int(k[0]), 0), k.size - 1)])
    return lambda x: float(stats.norm.cdf((x + 0.5) / math.sqrt(variance)))


def gaussian_moments(variance: float) -> tuple[float, float]:
    """The second and the fourth moment."""
    if variance >= 10**5:
        return variance, 3 * variance**2
    reach = 40 * int(math.sqrt(variance) + 1)
    k = np.arange(-reach, reach + 1).astype(np.float64)
    weights = np.exp(-(k**2) / (2 * variance))
    return float((k**2 * weights).sum() / weights.sum()), float((k**4 * weights).sum() / weights.sum())


def units(path: Path) -> Iterator[Fit]:
    parts = np.tile([1, 3, 50], SAMPLES // 4)
    drawn = SystemNoise(path=path).discrete_laplace_units(Fraction(1, 100), parts)
    for k in (1, 3, 50):
        scale = Fraction(100, k)
        values = drawn[parts == k]
        yield f"{path} units {k}", fit(values, laplace_cdf(scale), scale)
        yield from moments(f"{path} units {k}", values, scale)


def choices(noise: SystemNoise, count: int) -> Iterator[Fit]:
    scores = [0, 3, 3, 5, -2]
    weights = np.exp(np.array(scores) / 2.0)
    chosen = [noise.exponential(scores, 2) for _ in range(count)]
    yield (
        "exponential",
        chi_square(np.bincount(chosen, minlength=5).tolist(), (weights / weights.sum()).tolist()),
    )
    chosen = [noise.categorical([1, 2, 0, 4]) for _ in range(count)]
    yield "categorical", chi_square(np.bincount(chosen, minlength=4).tolist(), [1 / 7, 2 / 7, 0, 4 / 7])
    heads = sum(noise.bernoulli(Fraction(1, 3)) for _ in range(count))
    yield "bernoulli", normal(heads, 1 / 3, 2 / 9, count)


def positions(noise: SystemNoise, count: int) -> Iterator[Fit]:
    """One long run: the offset is geometric with ratio P[noise <= level]."""
    scale, level = Fraction(3), 9
    laws: tuple[tuple[Law, Cdf], ...] = (("laplace", laplace_cdf(scale)), ("geometric", geometric_cdf(scale)))
    for law, cdf in laws:
        length = Fraction(-1 / math.log(cdf(level)))
        found = [noise.first_success(law, scale).run(level, 2**62) for _ in range(count)]
        yield f"first success {law}", fit(found, geometric_cdf(length), length)


def reports(count: int) -> Iterator[Fit]:
    for scale in (Fraction(1, 4), Fraction(1), Fraction(37, 2)):
        values = [kernel.discrete_laplace(scale) for _ in range(count)]
        yield f"report laplace {scale}", fit(values, laplace_cdf(scale), scale)
        values = [kernel.geometric(scale) for _ in range(count)]
        yield f"report geometric {scale}", fit(values, geometric_cdf(scale), scale)
    drawn = [kernel.below(100) for _ in range(count)]
    yield "report below", chi_square(np.bincount(drawn, minlength=100).tolist(), [0.01] * 100)
    heads = sum(kernel.bernoulli_exp(Fraction(3, 2)) for _ in range(count))
    p = math.exp(-1.5)
    yield "report coin", normal(heads, p, p * (1 - p), count)


def holm(fits: Sequence[Fit], family_wise: float) -> list[str]:
    """The names of fits rejected by Holm's procedure."""
    rejected = []
    for left, (name, p) in enumerate(sorted(fits, key=lambda each: each[1])):
        if p > family_wise / (len(fits) - left):
            break
        rejected.append(name)
    return rejected


@pytest.mark.statistics(fresh=True)
def test_fresh_noise_fits_its_laws() -> None:
    """No fit of fresh noise is rejected; correct samplers fail this with probability about 5e-7."""
    fits = [
        *additive("numpy", Words, SAMPLES),
        *additive("numpy", KernelWords, SAMPLES // 8),
        *units("numpy"),
        *gaussians("numpy", Words, SAMPLES),
    ]
    if fast.available():
        fits += [*additive("compiled", Words, SAMPLES), *units("compiled")]
        fits += gaussians("compiled", Words, SAMPLES)
    fits += [
        *choices(SYSTEM.session(), 8_000),
        *positions(SYSTEM.session(), 15_000),
        *positions(KERNEL, 3_000),
    ]
    fits += reports(8_000)

    assert len(fits) > 100
    assert holm(fits, FAMILY_WISE) == []


@pytest.mark.parametrize("scale", [Fraction(20), Fraction(1000)])
@pytest.mark.parametrize("name", ["discrete_laplace", "geometric"])
def test_a_scale_two_percent_off_is_rejected(name: str, scale: Fraction) -> None:
    """On a fixed tape, the same fit refuses a 2% wrong scale among 150 others, and accepts the right one."""
    cdf = laplace_cdf(scale) if name == "discrete_laplace" else geometric_cdf(scale)
    fits = [
        (label, fit(getattr(tape_noise(EndlessTape(label)), name)(used, SAMPLES), cdf, scale))
        for label, used in (("right", scale), ("wrong", scale * Fraction(51, 50)))
    ]

    assert holm(fits + [("other", 0.5)] * 148, FAMILY_WISE) == ["wrong"]


def test_a_gaussian_variance_two_percent_off_is_rejected() -> None:
    """On a fixed tape, the fits refuse a 2% wrong deviation among 150 others, and accept the right one."""
    cdf, deviation = gaussian_cdf(1000.0**2), Fraction(1000)
    fits = [
        (label, fit(tape_noise(EndlessTape(label)).discrete_gaussian(used**2, SAMPLES), cdf, deviation))
        for label, used in (("right", deviation), ("wrong", deviation * Fraction(51, 50)))
    ]

    assert holm(fits + [("other", 0.5)] * 148, FAMILY_WISE) == ["wrong"]


def test_holm_rejects_in_order() -> None:
    """The smallest p-value is compared with 1/m of the error probability, the next with 1/(m-1)."""
    fits = [("a", 0.02), ("b", 0.001), ("c", 0.5), ("d", 0.03)]

    assert holm(fits, 0.05) == ["b"]
    assert holm(fits, 0.07) == ["b", "a", "d"]


def test_the_bins_hold_the_whole_law() -> None:
    """The probabilities of all bins add up to one, and no bin is empty."""
    for scale in SCALES:
        for cdf in (laplace_cdf(scale), geometric_cdf(scale)):
            shares = np.diff([0.0, *(cdf(cut) for cut in edges(cdf, scale)), 1.0])

            assert shares.sum() == pytest.approx(1.0)
            assert shares.min() > 0
