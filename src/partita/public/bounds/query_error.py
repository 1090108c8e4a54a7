"""How large errors are: the formulas of Smith and Ullman as numbers, for integer noise [SU, section 2].

A scale is that of discrete Laplace noise, so it holds the sensitivity and epsilon already. The
formulas are stated for expected largest errors, all questions at once.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

import numpy as np

from partita.public.axis.curve.curve import Ints
from partita.public.bounds.tails import half_width

_GOLDEN: Final = (math.sqrt(5) - 1) / 2
_MOST_RANGES: Final = 4096


def independent_error(scale: Fraction, number: int) -> float:
    """E max |X_i| <= scale (ln number + 1) for noise on each of `number` questions [SU, (6) and (10)].

    (6) has a question for every interval, and (10) the nodes of the tree, with the scale
    2 log2(D) / epsilon.
    """
    return float(scale) * (math.log(number) + 1)


def difference_error(scale: Fraction, size: int) -> float:
    """Twice that of `size` prefixes bounds all intervals, each the difference of two [SU, (7)]."""
    return 2 * independent_error(scale, size)


def tree_error(scale: Fraction, nodes: int, terms: int) -> float:
    """Sums of at most `terms` nodes: E max <= terms times the largest noise of a node [SU, (15)]."""
    return terms * independent_error(scale, nodes)


def square_root_error(scale: Fraction, questions: int, terms: int) -> float:
    """E max <= scale sqrt(terms + 1) (ln(2 questions) + 1): signs cancel [SU, notes on Thm 2.5].

    For every x > 0, E max |S| <= (ln(2 questions) + terms ln M(x)) / x, and the moment generating
    function is M(x) <= 1 / (1 - (scale x)^2), for integer noise too. With x = 1 / (scale sqrt(terms + 1))
    the second term is terms ln(1 + 1/terms) <= 1.
    """
    return float(scale) * math.sqrt(terms + 1) * (math.log(2 * questions) + 1)


def typical_error(size: int, rate: Fraction, rows: int | None = None) -> float:
    """About the root-mean-square error of a random range of a good adaptive release; measured, not proved.

    (1 + log2 k) / rate, where k is how many pieces can be told apart: all cells, or one for every ten
    rows in units of the noise; without `rows` all cells. On lognormal, beta and heaped columns of 2 to
    2^62 cells and 10^3 to 10^6 rows, at epsilon 1 and 1/10, errors were .43 to 2.2 times this: count on
    a factor of three.
    """
    distinct = Fraction(size) if rows is None else max(Fraction(2), rows * rate / 10)
    pieces = min(Fraction(size), distinct)
    return float((1 + math.log2(pieces)) / rate)


def largest_reach(scale: Fraction, number: int, beta: float) -> float:
    """t with P[max |X_i| > t] <= beta for `number` noises: beta / number for each."""
    return float(half_width(np.array(float(1 / scale)), np.array(math.log(beta) - math.log(number))))


def spread_ranges(size: int) -> tuple[Ints, Ints]:
    """All ranges of few cells, else some thousands spread evenly over them: the same whenever asked."""
    if size * (size + 1) // 2 <= _MOST_RANGES:
        lows, highs = np.triu_indices(size)
        return lows.astype(np.int64), highs.astype(np.int64)
    index = np.arange(_MOST_RANGES)
    ends = np.array([(index + 0.5) / _MOST_RANGES, (index * _GOLDEN) % 1.0])
    cells = np.minimum(np.floor(ends * size).astype(np.int64), size - 1)
    return cells.min(axis=0), cells.max(axis=0)
