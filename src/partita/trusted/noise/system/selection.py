"""Choosing one of many with exact probabilities."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate

import numpy as np
from flint import arb, ctx

from partita.errors.checks import check, check_data
from partita.errors.errors import InvalidParameter
from partita.numbers import rational
from partita.trusted.noise.laws.reals import Real, Uniform, enclose
from partita.trusted.noise.laws.tables import Ints
from partita.trusted.noise.system.protocol import IntegerArray


def support(weights: Sequence[int | Fraction]) -> tuple[list[int], list[Fraction]]:
    """The indices of positive weights and these weights; there must be one."""
    if not isinstance(weights, Sequence | np.ndarray):
        raise InvalidParameter("weights", "must be a sequence of numbers", given=weights, fix="pass a list")
    exact = [rational(weight, "weights") for weight in weights]
    rule, fix = "must be non-negative and not all zero", "drop the negative ones"
    check(not any(weight < 0 for weight in exact) and any(exact), "weights", rule, given=weights, fix=fix)
    indices = [index for index, weight in enumerate(exact) if weight]
    return indices, [exact[index] for index in indices]


class Softmax:
    """P[i] proportional to exp(scores[i] / scale), by classes of equal score.

    The class is chosen by its total weight, a real number known by enclosures; within a class
    all are equally likely.
    """

    def __init__(self, scores: IntegerArray, scale: Fraction) -> None:
        check_data(scores.size, "scores", "must hold at least one score", fix="offer a candidate")
        below_best = int(scores.max()) - scores.astype(object)
        classes, self._class_of, counts = np.unique(below_best, return_inverse=True, return_counts=True)
        self._exponents = [-int(gap) / scale for gap in classes]
        self._counts: list[int] = counts.tolist()
        self._partial: tuple[int, list[arb]] = (0, [])

    def level(self, uniform: Uniform) -> int:
        """The class in which the uniform lies, best scores first."""
        last = len(self._counts) - 1
        return bisect_left(range(last), True, key=lambda i: not uniform.reaches(self._tail(i + 1)))

    def candidates(self, level: int) -> Ints:
        """The members of a class."""
        return np.flatnonzero(self._class_of == level)

    def _tail(self, level: int) -> Real:
        """The probability of a class from `level` on."""

        def ratio() -> arb:
            sums = self._sums()
            return sums[level] / sums[0]

        return ratio

    def _sums(self) -> list[arb]:
        """The weight of all classes from each one on, at the working precision."""
        if self._partial[0] != ctx.prec:
            terms = [n * enclose(x).exp() for n, x in zip(self._counts, self._exponents, strict=True)]
            self._partial = (ctx.prec, list(accumulate(reversed(terms)))[::-1])
        return self._partial[1]
