"""How quantiles are chosen: the plan of several, copies of round cells, and when a tree is better."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, Final, NamedTuple, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

TAG_BITS: Final = 32
"""Digits of the hidden place of a row in its cell. With 2^28 rows in one cell, 9 of them share a place with a
probability below 2^-22; more digits would widen the bounds of ranks by ln 2 each."""

MOST_ROWS_BITS: Final = 28
"""Bounds of ranks of several quantiles hold for columns of at most 2^28 rows: beyond, places are shared."""

_MOST_COPIES: Final = 2**14
_CLEAR: Final = Fraction(707, 100)  # five standard deviations of Laplace noise, in multiples of its scale
_LEAST_SHARE: Final = Fraction(1, 100)  # of all rows: the density of plain cells is not taken to be less
_PARTS: Final = 1000  # cube roots are rounded to this part of one: shares stay short fractions

IntArray: TypeAlias = NDArray[Any]


# The plan of several quantiles: halves of halves, the middle one first.


class Node(NamedTuple):
    """Quantile `number`, chosen between those of `left` and `right`; -1 and m are the ends of the column.

    `part` is the share of the rows between them that lie below it.
    """

    number: int
    left: int
    right: int
    part: Fraction

    @property
    def change(self) -> int:
        """By how much one row changes the score |h rows below - g rows|, for a part g/h."""
        return max(self.part.numerator, self.part.denominator - self.part.numerator)


Levels: TypeAlias = tuple[tuple[Node, ...], ...]


def plan_levels(quantiles: Sequence[Fraction]) -> Levels:
    """The nodes of each level; a row lies between the ends of one node of a level at most.

    >>> [[node.number for node in level] for level in plan_levels([Fraction(k, 10) for k in range(1, 10)])]
    [[4], [1, 6], [0, 2, 5, 7], [3, 8]]
    """
    levels: list[list[Node]] = []
    known = {-1: Fraction(0), len(quantiles): Fraction(1), **dict(enumerate(quantiles))}

    def divide(left: int, right: int, depth: int) -> None:
        if right - left < 2:
            return
        low, high = known[left], known[right]

        def skew(index: int) -> tuple[int, Fraction]:
            return max(index - left, right - index), abs(known[index] - (low + high) / 2)

        index = min(range(left + 1, right), key=skew)
        levels.extend([] for _ in range(depth + 1 - len(levels)))
        levels[depth].append(Node(index, left, right, (known[index] - low) / (high - low)))
        divide(left, index, depth + 1)
        divide(index, right, depth + 1)

    divide(-1, len(quantiles), 0)
    return tuple(map(tuple, levels))


def trace_errors(levels: Levels, own: Iterable[Sequence[float]]) -> list[dict[int, float]]:
    """For each quantile the error of every node that it stands on, times its weight in the answer.

    A node is off by its own error, and in between by those of its ends. `own` has errors, level by level.
    """
    number = sum(map(len, levels))
    traced: dict[int, dict[int, float]] = {-1: {}, number: {}}
    for nodes, errors in zip(levels, own, strict=True):
        for node, error in zip(nodes, errors, strict=True):
            part, found = float(node.part), {node.number: error}
            for end, weight in ((node.left, 1 - part), (node.right, part)):
                for index, each in traced[end].items():
                    found[index] = found.get(index, 0.0) + weight * each
            traced[node.number] = found
    return [traced[index] for index in range(number)]


def share_levels(levels: Levels) -> tuple[Fraction, ...]:
    """The part of epsilon of each level: as the cube roots of what its variance adds to all answers.

    With errors a_l / e_l, the sum of a_l^2 / e_l^2 is least where e_l is as the cube root of a_l^2.
    """
    traced = trace_errors(
        levels, [[float(node.change) / node.part.denominator for node in nodes] for nodes in levels]
    )
    weights = [sum(each.get(node.number, 0.0) ** 2 for each in traced for node in nodes) for nodes in levels]
    roots = [max(1, round(_PARTS * weight ** (1 / 3))) for weight in weights]
    return tuple(Fraction(root, sum(roots)) for root in roots)


def predict_miss(levels: Levels, rates: Sequence[Fraction]) -> float:
    """About the rows that a quantile misses its rank by, as a mean over all of them."""
    own = [
        [float(2 * Fraction(node.change, node.part.denominator) / rate) for node in nodes]
        for nodes, rate in zip(levels, rates, strict=True)
    ]
    traced = trace_errors(levels, own)
    return sum(math.hypot(*each.values()) for each in traced) / len(traced)


# Round cells: people write 50,000 and not 49,817.


@final
@dataclass(frozen=True)
class Copies:
    """How often each cell counts as a candidate, by how round its value is.

    A cell whose value divisors[k] is the last to divide counts copies[k] times. The value of a cell is its
    number plus `offset`. Every divisor divides the next one.

    >>> Copies(size=12, offset=0, divisors=(1, 5, 10), copies=(1, 2, 6)).total
    23
    """

    size: int
    offset: int
    divisors: tuple[int, ...] = (1,)
    copies: tuple[int, ...] = (1,)

    @property
    def total(self) -> int:
        """The copies of all cells."""
        return int(self.before(self.size))

    def before(self, cells: Any) -> Any:
        """The copies of all cells before each of the cells; integers of any size in, the same out."""
        found = cells * self.copies[0]
        for (fewer, more), divisor in zip(pairwise(self.copies), self.divisors[1:], strict=True):
            first = self.offset % divisor + divisor - 1
            found = found + (more - fewer) * ((cells + first) // divisor - first // divisor)
        return found

    def cell(self, copy: int) -> int:
        """The cell of a copy, by halving."""
        low, high = 0, self.size - 1
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.before(middle) <= copy else (low, middle - 1)
        return low

    def classes(self, cells: IntArray) -> NDArray[np.int64]:
        """How round each cell is: the number of the last divisor that divides its value."""
        found = np.zeros(len(cells), np.int64)
        for number, divisor in enumerate(self.divisors[1:], 1):
            found[(cells + self.offset % divisor) % divisor == 0] = number
        return found


def list_divisors(size: int) -> tuple[int, ...]:
    """1, 5, 10, 50, 100, ... up to a quarter of the cells.

    >>> list_divisors(200)
    (1, 5, 10, 50)
    """
    found = [1]
    while 4 * found[-1] * (step := 5 if len(found) % 2 else 2) <= size:
        found.append(found[-1] * step)
    return tuple(found)


def learn_copies(noisy: Sequence[int], scale: Fraction, size: int, offset: int) -> Copies:
    """Copies from noisy counts of each class: its density over that of plain cells, where it is clear.

    A class is clear if its count is five standard deviations above that of a smooth column. One that is not
    counts as the class below it.
    """
    divisors, counts = list_divisors(size), [int(count) for count in noisy]
    rows = max(sum(counts), 1)
    each = [Fraction(1, divisor) for divisor in divisors]
    cells = [*(a - b for a, b in pairwise(each)), each[-1]]
    plain = max(Fraction(counts[0]), rows * _LEAST_SHARE) / cells[0]
    copies = [1]
    for count, share in zip(counts[1:], cells[1:], strict=True):
        clear = count > plain * share + _CLEAR * scale
        copies.append(max(1, min(_MOST_COPIES, round(count / (share * plain)))) if clear else copies[-1])
    return Copies(size, offset, divisors, tuple(copies))


# How far off: for any data.


def bound_rank(size: int, rate: Fraction, quantile: Fraction, beta: float) -> float:
    """Rows that one quantile misses its rank by at most, except with probability beta, whatever the data.

    A candidate that misses by r rows more than the best is accepted with probability exp(-r t), with t for
    each row, and the best misses nothing: the tail that the exponential mechanism has, too.
    """
    change = max(quantile, 1 - quantile)
    return (math.log(size) + math.log(1 / beta)) * float(2 * change / rate)


def bound_ties(beta: float) -> float:
    """Half of the rows that share a hidden place at most, except with probability beta.

    j + 1 of n rows share one of 2^b places with probability at most n^(j+1) / (j+1)! / 2^(b j).
    """
    shared = 1
    while (MOST_ROWS_BITS * (shared + 1) - TAG_BITS * shared) * math.log(2) - math.lgamma(
        shared + 2
    ) > math.log(beta):
        shared += 1
    return shared / 2


def bound_ranks(copies: Copies, rates: Sequence[Fraction], levels: Levels, beta: float) -> list[float]:
    """Rows that each of several quantiles misses its rank by at most, all of them but for beta."""
    number = sum(map(len, levels))
    width = math.log(copies.total) + TAG_BITS * math.log(2) + math.log(2 * number / beta)
    ties = bound_ties(beta / 2)
    own = [
        [ties + width * float(2 * Fraction(node.change, node.part.denominator) / rate) for node in nodes]
        for nodes, rate in zip(levels, rates, strict=True)
    ]
    return [sum(each.values()) for each in trace_errors(levels, own)]


def bound_reaches(
    quantiles: Sequence[Fraction], rates: Sequence[Fraction], copies: Copies, beta: float
) -> list[float]:
    """Rows by which each quantile misses its rank at most, except with probability beta."""
    if len(quantiles) == 1:
        return [bound_rank(copies.size, rates[0], quantiles[0], beta)]
    return bound_ranks(copies, rates, plan_levels(quantiles), beta)


# Choose them one by one, or read them off a tree?

# Tuned on smooth, bimodal, heaped and spiked columns and two raw ones: benchmarks/README.md, quantiles alone.
_ENOUGH: Final = 8_000  # rows times epsilon: with fewer a tree's model of smooth counts wins, for deciles
_USUAL_MISS: Final = 5.4  # that of deciles at epsilon 1, for which the line above was measured
_POWER: Final = 6  # of the miss: 4 to 99 quantiles cross over at 1,000 to 900,000
_DENSE: Final = 10  # rows times epsilon in a block beside its largest cell: fewer are worth no choice by cell
_HEAP: Final = 40  # rows times epsilon: a tree does not find smaller heaps
_MANY_DENSE: Final = Fraction(1, 3)  # of all rows: then a cell holds as many rows as a choice misses
_MANY_HEAPED: Final = Fraction(3, 10)  # of all rows: a tree finds such heaps, a choice takes gaps beside them
_SURE: Final = 3  # scales of noise: more misses dense columns, less takes noise for them

BLOCK: Final = 4
"""Cells of a block, within which a cell is compared with its neighbours."""


@final
@dataclass(frozen=True)
class ColumnLook:
    """What was seen of a column before its quantiles were chosen, each number with noise.

    `rounds` are rows by how round they are, and `copies` what follows from them. `rates` is the epsilon of
    each of the `levels`, for each row by which neighbours differ. All of that decides what is asked next, and
    the answer to it whether a tree is better than a choice of each quantile.
    """

    rounds: tuple[int, ...]
    copies: Copies
    levels: Levels
    rates: tuple[Fraction, ...]

    @property
    def few(self) -> bool:
        """Whether there are few rows: a tree is better then, unless most of them lie densely."""
        miss = predict_miss(self.levels, self.rates) * float(self._rate)
        return self._rows * self._rate < _ENOUGH * (miss / _USUAL_MISS) ** _POWER

    @property
    def least(self) -> int:
        """Rows of a block that do not count: of dense ones if rows are few, of heaps else."""
        return math.ceil((_DENSE if self.few else _HEAP) / self._rate)

    def prefers_tree(self, blocks: int, scale: Fraction) -> bool:
        """Whether a tree is better, from the noisy number of rows that lie densely, or in heaps.

        Heaps on round values are no reason: their cells have copies.
        """
        counts = zip(self.rounds, self.copies.copies, strict=True)
        rounded = sum(max(0, count) for count, copies in counts if copies > 1)
        if self.few:
            dense = blocks >= max(_SURE * scale, _MANY_DENSE * self._rows)
            return not dense and rounded < _MANY_HEAPED * self._rows
        return blocks - rounded >= _MANY_HEAPED * self._rows

    @property
    def _rate(self) -> Fraction:
        return sum(self.rates, Fraction(0))

    @property
    def _rows(self) -> int:
        return max(1, sum(self.rounds))
