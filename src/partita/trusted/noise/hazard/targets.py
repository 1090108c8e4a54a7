"""E = -ln(1 - U) for whole arrays of words, as sums of two floats.

Each value is a pair (high, low) whose sum is right to 2^-80 (1 + E): enough to place a first
success among 2^64 positions without exact arithmetic, nearly always. The tests compare it with
a second library.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Final

import numpy as np

from partita.trusted.noise.hazard.hazard import Floats
from partita.trusted.noise.laws.reals import enclose, floor
from partita.trusted.noise.laws.words import UInts

STEPS: Final = 1 << 11
_RECIPROCAL_BITS: Final = 16
_CONSTANT_BITS: Final = 200
_SHORT_BITS: Final = 40


def exponential_targets(words: UInts) -> tuple[Floats, Floats]:
    """-ln(1 - word / 2^64) of each word, as pairs.

    With m = 2^64 - word = 2^e (a + b) and a tabulated r near 1 / (a + b),
    E = (64 - e) ln 2 + ln r - ln(1 + z), z = r (a + b) - 1, and |z| < 2^-10. The products r a
    and r b are exact because r has 16 bits and a, b have 33.
    """
    reciprocals, log_high, log_low, two_high, two_low = log_constants()
    rest = ~words
    head = (rest & np.uint64(0xFFFFFFFF00000000)).astype(np.float64)
    tail = (rest & np.uint64(0xFFFFFFFF)).astype(np.float64) + 1.0
    _, exponent = np.frexp(head + tail)
    head, tail = np.ldexp(head, -exponent), np.ldexp(tail, -exponent)
    step = ((head + tail) * (2 * STEPS)).astype(np.int64) - STEPS
    r = reciprocals[step]
    z, z_low = _two_sum(head * r - 1.0, tail * r)
    square, square_low = _square(z)
    series = z * square * (-1 / 3 + z * (1 / 4 + z * (-1 / 5 + z * (1 / 6 - z / 7))))
    missing = 64.0 - exponent
    high, low = _two_sum(missing * two_high, log_high[step])
    high, more = _two_sum(high, -z)
    low += more
    high, more = _two_sum(high, square / 2)
    low += more + (missing * two_low + log_low[step] + square_low / 2 + (z - 1.0) * z_low + series)
    return _two_sum(high, low)


def float_pair(fixed: int, bits: int) -> tuple[float, float]:
    """fixed / 2^bits as a float and the float that it is short of."""
    high = fixed / (1 << bits)
    numerator, denominator = high.as_integer_ratio()
    return high, ((fixed * denominator) - (numerator << bits)) / (denominator << bits)


def _two_sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """The rounded sum and its error [Knuth]."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _square(a: Floats) -> tuple[Floats, Floats]:
    """The rounded square and its error [Dekker]."""
    product = a * a
    spread = 134217729.0 * a
    high = spread - (spread - a)
    low = a - high
    return product, ((high * high - product) + 2.0 * high * low) + low * low


def _fixed_log(value: Fraction) -> int:
    """floor(2^200 ln(value)), certified."""
    return floor(lambda: enclose(value).log(), _CONSTANT_BITS)


@cache
def log_constants() -> tuple[Floats, Floats, Floats, float, float]:
    """The reciprocals r, their logarithms as pairs, and ln 2 as a short float and the rest."""
    one = 1 << _RECIPROCAL_BITS
    middles = [(STEPS + i + 0.5) / (2 * STEPS) for i in range(STEPS + 1)]
    numerators = [round(one / middle) for middle in middles]
    logs = [float_pair(_fixed_log(Fraction(numerator, one)), _CONSTANT_BITS) for numerator in numerators]
    two = _fixed_log(Fraction(2))
    short = two >> (_CONSTANT_BITS - _SHORT_BITS)
    left = two - (short << (_CONSTANT_BITS - _SHORT_BITS))
    return (
        np.array(numerators) / one,
        np.array([high for high, _ in logs]),
        np.array([low for _, low in logs]),
        short / (1 << _SHORT_BITS),
        left / (1 << _CONSTANT_BITS),
    )
