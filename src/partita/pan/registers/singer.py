"""Cyclic difference sets: subsets of Z_K that meet each of their translates in the same number of points.

Singer's construction. Let x be a primitive element of the field with q^d elements, K = (q^d - 1) / (q - 1).
The exponents k < K for which x^k lies in a fixed hyperplane are s = (q^(d-1) - 1) / (q - 1) numbers, and any
two different translates of them have lambda = (q^(d-2) - 1) / (q - 1) in common.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from typing import Final, TypeAlias, final

import numpy as np

from partita.pan.sketch.draws import Bools, Ints

Element: TypeAlias = tuple[int, ...]
"""Coefficients of 1, x, x^2, ... modulo a polynomial."""

LARGEST_PERIOD: Final = 2**17

_PRIMES: Final = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31)


@final
@dataclass(frozen=True)
class DifferenceSet:
    """The difference set of a hyperplane in the space of dimension d over the field with q elements."""

    q: int
    dimension: int

    @property
    def period(self) -> int:
        """K: the set lies in Z_K."""
        return _points(self.q, self.dimension)

    @property
    def size(self) -> int:
        """s: how many numbers are in the set."""
        return _points(self.q, self.dimension - 1)

    @property
    def common(self) -> int:
        """lambda: how many numbers the set shares with a translate."""
        return _points(self.q, self.dimension - 2)

    @cached_property
    def member(self) -> Bools:
        """Which of 0, ..., K-1 are in the set."""
        walk = _Walk(self.q, _primitive(self.q, self.dimension))
        found = np.zeros(self.period, dtype=np.bool_)
        power = walk.one
        for exponent in range(self.period):
            found[exponent] = power[-1] == 0
            power = walk.times_x(power)
        return found

    @cached_property
    def inside(self) -> Ints:
        """The numbers in the set."""
        return np.flatnonzero(self.member).astype(np.int64)

    @cached_property
    def outside(self) -> Ints:
        """The numbers that are not."""
        return np.flatnonzero(~self.member).astype(np.int64)


@lru_cache(maxsize=64)
def difference_set(q: int, dimension: int) -> DifferenceSet:
    """The set for a prime q and a dimension from 2 on, made once."""
    return DifferenceSet(q, dimension)


def candidates(least: int) -> list[DifferenceSet]:
    """For each of some primes the smallest set whose period is at least this, if it is not too large."""
    found = []
    for q in _PRIMES:
        dimension = next(d for d in range(2, 64) if _points(q, d) >= least)
        if _points(q, dimension) <= LARGEST_PERIOD:
            found.append(difference_set(q, dimension))
    return found


def _points(q: int, dimension: int) -> int:
    """The number of points of the projective space: (q^d - 1) / (q - 1)."""
    points: int = (q**dimension - 1) // (q - 1)
    return points


@final
@dataclass(frozen=True)
class _Walk:
    """Powers of x modulo x^d = rule[0] + rule[1] x + ... over the field with q elements."""

    q: int
    rule: Element

    @property
    def one(self) -> Element:
        return (1, *[0] * (len(self.rule) - 1))

    def times_x(self, element: Element) -> Element:
        top = element[-1]
        return tuple((a + top * r) % self.q for a, r in zip((0, *element[:-1]), self.rule, strict=True))

    def times(self, left: Element, right: Element) -> Element:
        total, shifted = [0] * len(left), left
        for digit in right:
            total = [(a + digit * b) % self.q for a, b in zip(total, shifted, strict=True)]
            shifted = self.times_x(shifted)
        return tuple(total)

    def power(self, exponent: int) -> Element:
        """x^exponent, by squaring."""
        result = self.one
        for bit in bin(exponent)[2:]:
            result = self.times(result, result)
            result = self.times_x(result) if bit == "1" else result
        return result


@lru_cache(maxsize=64)
def _primitive(q: int, dimension: int) -> Element:
    """The first rule under which x has order q^d - 1: then all that is not zero is a power of x."""
    order = q**dimension - 1
    proper = [order // prime for prime in _prime_factors(order)]
    for higher in product(range(q), repeat=dimension - 1):
        for first in _generators(q):
            walk = _Walk(q, ((-1) ** (dimension + 1) * first % q, *higher))
            if walk.power(order) == walk.one and all(walk.power(n) != walk.one for n in proper):
                return walk.rule
    raise AssertionError("every finite field has a primitive element")


def _generators(q: int) -> list[int]:
    """Those whose powers are all but zero modulo q: the norm of a primitive element is one of them."""
    return [each for each in range(1, q) if len({pow(each, n, q) for n in range(q - 1)}) == q - 1]


def _prime_factors(number: int) -> list[int]:
    factors, factor = [], 2
    while factor * factor <= number:
        if number % factor == 0:
            factors.append(factor)
            while number % factor == 0:
                number //= factor
        factor += 1
    return [*factors, number] if number > 1 else factors
