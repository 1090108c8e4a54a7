"""A sampler of `os.urandom` and Python ints, nothing else.

It serves single reports on a device and pan-private state: it imports the standard library
only, keeps no buffer and no key, and is exact by rejection [CKS20]. The number of kernel calls
depends on the outcome, so an analyst must not be able to time it.
"""

from __future__ import annotations

import os
from fractions import Fraction

__all__ = ["below", "bernoulli", "bernoulli_exp", "discrete_laplace", "geometric", "token"]


def token(size: int = 16) -> str:
    """A fresh random name of `size` bytes, in hexadecimal."""
    return os.urandom(size).hex()


def below(count: int) -> int:
    """Uniform among 0, ..., count-1."""
    width = (count - 1).bit_length()
    while True:
        drawn = int.from_bytes(os.urandom((width + 7) // 8), "little") & ((1 << width) - 1)
        if drawn < count:
            return drawn


def bernoulli(probability: Fraction) -> bool:
    """True with exactly the given probability."""
    return below(probability.denominator) < probability.numerator


def bernoulli_exp(x: Fraction) -> bool:
    """True with probability exactly exp(-x), for x >= 0 [CKS20, Alg 1]."""
    while x > 1:
        if not bernoulli_exp(Fraction(1)):
            return False
        x -= 1
    k = 1
    while bernoulli(x / k):
        k += 1
    return k % 2 == 1


def geometric(scale: Fraction) -> int:
    """k with probability (1-a) a^k, a = exp(-1/scale) [CKS20, Alg 2].

    With scale = t/s: U + t V is geometric with ratio exp(-1/t), and its quotient by s is
    geometric with ratio exp(-s/t).
    """
    t, s = scale.numerator, scale.denominator
    u = below(t)
    while not bernoulli_exp(Fraction(u, t)):
        u = below(t)
    v = 0
    while bernoulli_exp(Fraction(1)):
        v += 1
    return (u + t * v) // s


def discrete_laplace(scale: Fraction) -> int:
    """k with probability (1-a)/(1+a) a^|k|, a = exp(-1/scale)."""
    return geometric(scale) - geometric(scale)
