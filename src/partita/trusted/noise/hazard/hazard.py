"""The first position at which fresh noise exceeds a level, from one uniform.

h(k) = -ln P[noise <= k] is the hazard of one position at level k. With E = -ln(1 - U) the
first success is the first position whose cumulative hazard exceeds E, so the position is a
pure function of the uniform U: it does not matter into how many runs the positions are
split, nor who does the arithmetic. See docs/proofs/noise.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Final, Literal, TypeAlias

import numpy as np
from flint import arb, fmpz
from numpy.typing import NDArray

from partita.errors.errors import InvalidParameter
from partita.trusted.noise.laws.reals import Real, Uniform, enclose, floor
from partita.trusted.noise.laws.words import Uncopyable

Law: TypeAlias = Literal["geometric", "laplace"]
Floats = NDArray[np.float64]

MARGIN: Final = 2.0**-36
"""A float decides only what is certain with this much relative slack; else integers do."""

ROUNDING: Final = 2.0**-52
"""The relative error that each term of a float sum may add."""

NEGLIGIBLE: Final = 2.0**-900
"""More than all hazards that a float rounds to zero."""

PRECISION: Final = 192
"""Fractional bits of the integers that decide first; they double while there is doubt."""


def float_hazard(level: int, rate: float, laplace: bool) -> float:
    """h(level) to within a small part of `MARGIN`; infinite where success is certain."""
    exponent = -(level + 1) * rate
    if laplace:
        if level < 0:
            return math.log1p(math.exp(-rate)) - level * rate
        return -math.log1p(-math.exp(exponent) / (1.0 + math.exp(-rate)))
    if level < 0:
        return math.inf
    return -math.log(-math.expm1(exponent)) if exponent > -0.7 else -math.log1p(-math.exp(exponent))


class Hazard:
    """The hazard of integer noise of one law and scale, as floats and as certified integers."""

    def __init__(self, law: Law, scale: Fraction) -> None:
        self.law = law
        self.rate = 1 / scale
        self.floats = _FloatHazards(law, self.rate)
        self._fixed: dict[int, _FixedHazards] = {}

    def certain(self, level: int) -> bool:
        """Whether noise exceeds `level` with probability one."""
        return self.law == "geometric" and level < 0

    def fixed(self, bits: int) -> Mapping[int, int]:
        """floor(2^bits h(k)) for every level k at which success is not certain, certified."""
        if bits not in self._fixed:
            self._fixed[bits] = _FixedHazards(self, bits)
        return self._fixed[bits]

    def real(self, level: int) -> Real:
        """h(level) as a real number."""
        rate = self.rate
        if self.law == "laplace" and level < 0:
            return lambda: enclose(-rate * level) + enclose(-rate).exp().log1p()
        if self.law == "laplace":
            return lambda: -((-(enclose(-rate * (level + 1)).exp()) / (1 + enclose(-rate).exp())).log1p())
        return lambda: -((-(enclose(-rate * (level + 1)).exp())).log1p())


class _FloatHazards(dict[int, float]):
    """Levels to float hazards, filled as they are asked for."""

    def __init__(self, law: Law, rate: Fraction) -> None:
        self._rate, self._laplace = float(rate), law == "laplace"

    def __missing__(self, level: int) -> float:
        _make_room(self)
        self[level] = value = float_hazard(level, self._rate, self._laplace)
        return value


class _FixedHazards(dict[int, int]):
    """Levels to fixed-point hazards, filled as they are asked for."""

    def __init__(self, hazard: Hazard, bits: int) -> None:
        self._hazard, self._bits = hazard, bits

    def __missing__(self, level: int) -> int:
        _make_room(self)
        self[level] = value = floor(self._hazard.real(level), self._bits)
        return value


def _make_room(remembered: dict[int, float] | dict[int, int]) -> None:
    if len(remembered) >= 1 << 17:
        remembered.clear()


@lru_cache(maxsize=64)
def hazard(law: Law, scale: Fraction) -> Hazard:
    """The hazard of a law and scale, made once."""
    return Hazard(law, scale)


class FirstSuccess(Uncopyable):
    """Walks runs of positions and reports where fresh noise first exceeds the level.

    All positions of a run share one level; runs may be split at will. This is the
    specification: faster code must find the same position from the same words.
    """

    def __init__(self, hazard: Hazard, uniform: Uniform, *, margin: float = MARGIN) -> None:
        self._hazard = hazard
        self._uniform = uniform
        self._margin = margin
        self._passed: dict[int, int] = {}
        self._runs = 0
        self._total = 0.0
        self._target = _float_target(uniform)

    def run(self, level: int, length: int) -> int | None:
        """The offset of the first success among the next `length` positions, or None."""
        if length < 0:
            raise InvalidParameter("length", "must not be negative", given=length, fix="walk forwards")
        if length == 0:
            return None
        if self._hazard.certain(level):
            return 0
        offset = length if self._surely_passes(level, length) else self._settled(level, length)
        if offset < length:
            return offset
        self._pass(level, length)
        return None

    def _surely_passes(self, level: int, length: int) -> bool:
        slack = self._margin + self._runs * ROUNDING
        ahead = self._total + length * self._hazard.floats[level]
        return ahead * (1 + slack) + NEGLIGIBLE < self._target * (1 - slack)

    def _pass(self, level: int, length: int) -> None:
        self._passed[level] = self._passed.get(level, 0) + length
        self._total += length * self._hazard.floats[level]
        self._runs += 1

    def _settled(self, level: int, length: int) -> int:
        """Offset of the first success from here, cut off at `length`; draws digits while they matter."""
        while True:
            offset = self._decided(level, length)
            if offset is not None:
                return offset
            self._uniform.refine()
            self._target = _float_target(self._uniform)

    def _decided(self, level: int, length: int) -> int | None:
        """The offset if the least and the largest uniform with the digits drawn agree on it, else None."""
        bits = PRECISION
        while True:
            low, low_most = self._offset(level, length, self._uniform.digits, bits)
            high, high_most = self._offset(level, length, self._uniform.digits + 1, bits)
            if low == low_most and high == high_most:
                return low if low == high else None
            if low_most < high:
                return None
            bits *= 2

    def _offset(self, level: int, length: int, digits: int, bits: int) -> tuple[int, int]:
        """Bounds on the offset, cut off at `length`, if U were exactly its digits, in `bits`-bit integers."""
        aim = _fixed_target(digits, self._uniform.bits, bits)
        if aim is None:
            return length, length
        fixed = self._hazard.fixed(bits)
        before = sum(count * fixed[k] for k, count in self._passed.items())
        least = max(0, aim - before - sum(self._passed.values())) // (fixed[level] + 1)
        if digits == 0:
            return 0, 0
        most = max(0, aim + 1 - before) // fixed[level] if fixed[level] else length
        return min(length, least), min(length, most)


def _float_target(uniform: Uniform) -> float:
    """E for the digits of U known so far, right to one part in 2^44."""
    everything = 1 << uniform.bits
    if 2 * uniform.digits < everything:
        return -math.log1p(-(uniform.digits / everything))
    return -math.log((everything - uniform.digits) / everything)


def _fixed_target(digits: int, digit_bits: int, bits: int) -> int | None:
    """floor(2^bits E) for U = digits / 2^digit_bits, certified; None stands for infinity."""
    if digits == 0:
        return 0
    rest = fmpz((1 << digit_bits) - digits)
    return floor(lambda: digit_bits * arb.const_log2() - arb(rest).log(), bits) if rest else None
