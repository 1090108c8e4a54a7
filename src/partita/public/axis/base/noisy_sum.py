"""Sums of released integers, each with noise of its own: value, standard error, guaranteed reach."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partita.answer import Answer
from partita.arrays import integer_array
from partita.errors.checks import check
from partita.errors.errors import InvalidParameter
from partita.lazy.cached import cached_property
from partita.numbers import ordered
from partita.public.axis.base.ranges import Term
from partita.public.axis.curve.curve import Floats, UInts
from partita.public.bounds.signed_ranges import Run, laid_over
from partita.public.bounds.tails import laplace_variance, repeated_reach

_ROOM: Final = 2**62


@final
@dataclass(frozen=True, eq=False)
class Line:
    """Released integers in a row, each with noise of one scale, and the sums of runs of them."""

    values: NDArray[Any]
    scale: Fraction

    @cached_property
    def variance(self) -> float:
        """The variance of each."""
        return laplace_variance(self.scale)

    @cached_property
    def running(self) -> NDArray[Any]:
        """Sums of the first 0, 1, 2, ... integers: exact, of Python ints where int64 might not do."""
        largest = max(int(self.values.max(initial=0)), -int(self.values.min(initial=0)))
        fits = largest * self.values.size < _ROOM
        running = np.zeros(self.values.size + 1, np.int64 if fits else object)
        np.cumsum(self.values.astype(running.dtype, copy=False), out=running[1:])
        return running

    def reach(self, number: int, beta: float) -> float:
        """The sum of so many of these noises leaves [-t, t] with probability at most beta."""
        return NoisySum(0, {(1, self.scale): number}).reach(beta)

    def sums(self, firsts: NDArray[Any], stops: NDArray[Any]) -> Floats:
        """The sum of each run first, ..., stop-1."""
        return np.asarray((self.running[stops] - self.running[firsts]).astype(np.float64))

    def sum(self, first: int, stop: int) -> int:
        """The sum of first, ..., stop-1, exactly."""
        return int(self.running[stop]) - int(self.running[first])


@final
@dataclass(frozen=True, eq=False)
class NoisySum:
    """A linear combination of released integers.

    `noises` says how many of them there are for each factor (without its sign: noise is symmetric)
    and scale.
    """

    value: int
    noises: Mapping[tuple[int, Fraction], int]

    @staticmethod
    def of(parts: Iterable[tuple[Line, Iterable[Run]]]) -> NoisySum:
        """The signed sum of runs. An integer that is taken as often as it is added is not in it."""
        value, noises = 0, Counter[tuple[int, Fraction]]()
        for line, runs in parts:
            for first, stop, factor in laid_over(runs):
                value += factor * line.sum(first, stop)
                noises[abs(factor), line.scale] += stop - first
        return NoisySum(value, noises)

    @property
    def error(self) -> float:
        """The standard error."""
        variances = (
            number * factor**2 * laplace_variance(scale) for (factor, scale), number in self.noises.items()
        )
        return math.sqrt(sum(variances))

    def reach(self, beta: float) -> float:
        """t such that the noise exceeds t with probability at most beta/2, and so undercuts -t."""
        if not self.noises:
            return 0.0
        factors = np.array([float(factor) for factor, _ in self.noises])
        rates = np.array([float(1 / scale) for _, scale in self.noises])
        numbers = np.array([float(number) for number in self.noises.values()])
        return repeated_reach(factors, rates, numbers, beta / 2)

    def bounds(self, beta: float) -> tuple[float, float]:
        """The value without its noise lies between these, except with probability beta."""
        reach = self.reach(beta)
        return self.value - reach, self.value + reach

    def answer(self, least: float) -> Answer:
        """The sum as an answer; the truth is known to be at least `least`."""
        return Answer(float(self.value), lambda: self.error, self.bounds, least)


def checked(terms: Iterable[Term], size: int) -> list[Term]:
    """The terms, if they are ranges of cells below `size` with a sign."""
    found = []
    for low, high, sign in terms:
        check(sign in (1, -1), "sign", "must be 1 or -1", given=sign, fix="add a range or take it away")
        found.append(Term(*ordered(low, high, first=0, last=size - 1), sign))
    return found


def checked_ranges(lows: ArrayLike, highs: ArrayLike, size: int) -> tuple[UInts, UInts]:
    """Bounds of many ranges of cells below `size`, as arrays of one shape."""
    low, high = integer_array(lows, "lows"), integer_array(highs, "highs")
    fix = "pass pairs of bounds"
    check(low.shape == high.shape, "highs", "must be as many as lows", given=high.size, fix=fix)
    if low.size and (int(low.min()) < 0 or int(high.max()) >= size or bool((low > high).any())):
        rule = f"must be cells from 0 on and at most highs, below {size}"
        raise InvalidParameter("lows", rule, given=low, fix="clip them")
    return low.astype(np.uint64), high.astype(np.uint64)
