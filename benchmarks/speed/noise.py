"""Exact noise, against another exact sampler and against NumPy's, which protects nobody."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.speed.clock import Work, rates
from benchmarks.speed.row import Row, Target
from partita.trusted.noise import SystemNoise, Words
from partita.trusted.noise.system import Path

TARGETS = {
    ("numpy", 1): Target("ratio", ">=", 100),
    ("numpy", 20): Target("ratio", ">=", 100),
    ("numpy", 1000): Target("ratio", ">=", 100),
    ("compiled", 20): Target("ratio", ">=", 800),
}


def laplace(quick: bool, *, path: Path, scale: int) -> Row:
    """Draws of discrete Laplace noise, against OpenDP's exact one on a vector of the same length."""
    n = _length(quick)
    ours = partial(SystemNoise(path=path).discrete_laplace, scale, n)
    target = TARGETS.get((path, scale))
    return rates(quick, Work(f"path {path}", ours, n), opendp(scale, n), target=target, scale=scale)


def gaussian(quick: bool, *, path: Path, deviation: int) -> Row:
    """Draws of discrete Gaussian noise, against OpenDP's exact one on a vector of the same length."""
    n = _length(quick)
    ours = partial(SystemNoise(path=path).discrete_gaussian, deviation**2, n)
    target = Target("ratio", ">=", 100 if path == "numpy" else 500)
    return rates(
        quick, Work(f"path {path}", ours, n), opendp_gaussian(deviation, n), target=target, scale=deviation
    )


def laplace_add(quick: bool, *, path: Path, scale: int) -> Row:
    """Data in and noisy data out on both sides: `noise.add` also copies the data and checks for overflow."""
    n = _length(quick)
    ours = partial(SystemNoise(path=path).add, np.zeros(n, dtype=np.int64), scale)
    return rates(quick, Work(f"path {path}", ours, n), opendp(scale, n), scale=scale)


def laplace_insecure(quick: bool, *, path: Path, scale: int) -> Row:
    """Long vectors of noise, against floats that neither are exact nor keep a secret."""
    n = _long(quick)
    ours = partial(SystemNoise(path=path).discrete_laplace, scale, n)
    theirs = Work("numpy Generator.laplace", partial(np.random.default_rng(0).laplace, 0, scale, n), n)
    return rates(quick, Work(f"path {path}", ours, n), theirs, scale=scale)


def geometric_insecure(quick: bool, *, path: Path, scale: int) -> Row:
    """Long vectors of one-sided noise, against integers that keep no secret."""
    n, success = _long(quick), -np.expm1(-1 / scale)
    ours = partial(SystemNoise(path=path).geometric, scale, n)
    theirs = Work("numpy Generator.geometric", partial(np.random.default_rng(0).geometric, success, n), n)
    return rates(quick, Work(f"path {path}", ours, n), theirs, scale=scale)


def words(quick: bool) -> Row:
    """64-bit words of AES-256-CTR, in blocks as the samplers take them, against PCG64."""
    block = 1 << 14
    insecure = Work("numpy PCG64.random_raw", partial(np.random.PCG64(0).random_raw, block), block)
    return rates(quick, Work("partita.trusted.noise.Words", partial(Words().take, block), block), insecure)


def opendp(scale: int, n: int) -> Work:
    """One call of OpenDP's exact measurement on n zeros.

    Where in doubt it has the advantage: the narrow type, data that lie ready in a NumPy array,
    and one call for the whole vector.
    """
    import opendp.prelude as dp

    dp.enable_features("contrib")
    domain, metric = dp.vector_domain(dp.atom_domain(T=dp.i32)), dp.l1_distance(T=dp.i32)
    measurement = dp.m.make_laplace(domain, metric, scale=float(scale))
    return Work("OpenDP make_laplace, i32 vector", partial(measurement, np.zeros(n, dtype=np.int32)), n)


def opendp_gaussian(deviation: int, n: int) -> Work:
    """One call of OpenDP's exact discrete Gaussian measurement on n zeros, with the same advantages."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    domain, metric = dp.vector_domain(dp.atom_domain(T=dp.i32)), dp.l2_distance(T=dp.f64)
    measurement = dp.m.make_gaussian(domain, metric, scale=float(deviation))
    return Work("OpenDP make_gaussian, i32 vector", partial(measurement, np.zeros(n, dtype=np.int32)), n)


def _length(quick: bool) -> int:
    """So long that OpenDP takes one to three seconds."""
    return 1 << 10 if quick else 1 << 18


def _long(quick: bool) -> int:
    return 1 << 12 if quick else 1 << 22
