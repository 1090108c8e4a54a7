"""Exact samplers that use only `os.urandom` and Python ints.

They serve single reports on a device and pan-private state: they import the standard library
only, store no buffer and no key, and are exact by rejection [CKS20]. The number of kernel calls
depends on the outcome, so an analyst must not be able to time them.
"""

from __future__ import annotations

import os
from fractions import Fraction

from partita.errors import EntropyError, check


def entropy(size: int) -> bytes:
    """`size` bytes from the kernel, now."""
    try:
        return os.urandom(size)
    except (OSError, NotImplementedError):
        raise EntropyError("the kernel gave no randomness; nothing was drawn, try again") from None


def token(size: int = 16) -> str:
    """A fresh random name of `size` bytes, in hexadecimal."""
    return entropy(size).hex()


def below(count: int) -> int:
    """Uniform among 0, ..., count-1."""
    check(count >= 1, "count", "must be at least 1", given=count, fix="offer a choice")
    width = (count - 1).bit_length()
    while True:
        drawn = int.from_bytes(entropy((width + 7) // 8), "little") & ((1 << width) - 1)
        if drawn < count:
            return drawn


def bernoulli(probability: Fraction) -> bool:
    """True with exactly the given probability."""
    check(0 <= probability <= 1, "probability", "must lie in [0, 1]", given=probability, fix="rescale it")
    return below(probability.denominator) < probability.numerator


def bernoulli_exp(x: Fraction) -> bool:
    """True with probability exactly exp(-x), for x >= 0 [CKS20, Alg 1]."""
    check(x >= 0, "x", "must not be negative", given=x, fix="pass the exponent without its sign")
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
    check(scale > 0, "scale", "must be positive", given=scale, fix="change epsilon")
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
