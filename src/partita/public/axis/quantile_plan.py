"""How quantiles are chosen: the plan of several, how far off they may be, and when a tree is better."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, NamedTuple, TypeAlias, final

_PARTS: Final = 1000  # cube roots are rounded to this part of one: shares stay short fractions

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


def trace_errors(
    levels: Levels, own: Iterable[Sequence[float]], cuts: Iterable[Sequence[float]]
) -> list[dict[int, float]]:
    """For each quantile the error of every node that it stands on, times its weight in the answer.

    An answer is off by its own error, and in between by those of the cuts at its ends; a cut too. Errors of
    answers (`own`) and of cuts come level by level.
    """
    number = sum(map(len, levels))
    answers: dict[int, dict[int, float]] = {}
    traced: dict[int, dict[int, float]] = {-1: {}, number: {}}
    for nodes, errors, passed in zip(levels, own, cuts, strict=True):
        for node, error, cut in zip(nodes, errors, passed, strict=True):
            part, found = float(node.part), dict[int, float]()
            for end, weight in ((node.left, 1 - part), (node.right, part)):
                for index, each in traced[end].items():
                    found[index] = found.get(index, 0.0) + weight * each
            answers[node.number] = {**found, node.number: error}
            traced[node.number] = {**found, node.number: cut}
    return [answers[index] for index in range(number)]


def list_parents(levels: Levels) -> frozenset[int]:
    """The quantiles between which others are chosen later: their cuts must be known, not only their cells."""
    return frozenset(end for nodes in levels for node in nodes for end in (node.left, node.right))


def share_levels(levels: Levels) -> tuple[Fraction, ...]:
    """The part of epsilon of each level: as the cube roots of what its variance adds to all answers.

    With errors a_l / e_l, the sum of a_l^2 / e_l^2 is least where e_l is as the cube root of a_l^2.
    """
    own = [[float(node.change) / node.part.denominator for node in nodes] for nodes in levels]
    traced = trace_errors(levels, own, own)
    weights = [sum(each.get(node.number, 0.0) ** 2 for each in traced for node in nodes) for nodes in levels]
    roots = [max(1, round(_PARTS * weight ** (1 / 3))) for weight in weights]
    return tuple(Fraction(root, sum(roots)) for root in roots)


def predict_miss(levels: Levels, rates: Sequence[Fraction]) -> float:
    """About the rows that a quantile misses its rank by, as a mean over all of them."""
    own = [
        [float(2 * Fraction(node.change, node.part.denominator) / rate) for node in nodes]
        for nodes, rate in zip(levels, rates, strict=True)
    ]
    traced = trace_errors(levels, own, own)
    return sum(math.hypot(*each.values()) for each in traced) / len(traced)


# Candidates: every cell, and some more than once.

_FAVOURED: Final = 100


def weigh_favoured(cells: int) -> int:
    """How often a favoured cell is a candidate, among so many: as a hundredth of them together.

    Heaps are likelier at zero and at the ends of a column. Where a quantile was found, another may be, too.
    """
    return max(1, cells // _FAVOURED)


def count_candidates(size: int) -> int:
    """How many candidates a choice has at most: both ends and zero are favoured."""
    return size + 3 * (weigh_favoured(size) - 1)


# How far off: for any data.


def bound_rank(size: int, rate: Fraction, quantile: Fraction, beta: float) -> float:
    """Rows that one quantile misses its rank by at most, except with probability beta, whatever the data.

    A candidate that misses by r rows more than the best is accepted with probability exp(-r t), with t for
    each row, and the best misses nothing: the tail that the exponential mechanism has, too.
    """
    change = max(quantile, 1 - quantile)
    return (math.log(size) + math.log(1 / beta)) * float(2 * change / rate)


def bound_ranks(
    size: int, rates: Sequence[Fraction], levels: Levels, split: Fraction, beta: float
) -> list[float]:
    """Rows that each of several quantiles misses its rank by at most, all of them but for beta.

    A choice misses its share as one quantile does, but for a third of its part of beta. A cut is off by as
    much, by its noise but for the rest, and by rounding.
    """
    number, parents = sum(map(len, levels)), list_parents(levels)
    chance = math.log(3 * number / beta)
    width = math.log(count_candidates(size)) + chance
    own, cuts = list[list[float]](), list[list[float]]()
    for nodes, rate in zip(levels, rates, strict=True):
        own.append([])
        cuts.append([])
        for node in nodes:
            choice, cut = divide_rate(node, rate, split, parents)
            change = Fraction(node.change, node.part.denominator)
            own[-1].append(width * float(2 * change / choice))
            cuts[-1].append(own[-1][-1] + 1 + (chance * float(change / cut) if cut else 0.0))
    return [sum(each.values()) for each in trace_errors(levels, own, cuts)]


def divide_rate(
    node: Node, rate: Fraction, split: Fraction, parents: frozenset[int]
) -> tuple[Fraction, Fraction]:
    """The epsilon of the choice of a cell, and of the cut in it, where other quantiles need one."""
    cut = rate * split if node.number in parents else Fraction(0)
    return rate - cut, cut


def bound_reaches(
    quantiles: Sequence[Fraction], rates: Sequence[Fraction], size: int, split: Fraction, beta: float
) -> list[float]:
    """Rows by which each quantile misses its rank at most, except with probability beta."""
    if len(quantiles) == 1:
        return [bound_rank(size, rates[0], quantiles[0], beta)]
    return bound_ranks(size, rates, plan_levels(quantiles), split, beta)


# Choose them one by one, or read them off a tree?

# Tuned on the families of benchmarks/accuracy/wanted_families.py that are not held out.
_ENOUGH: Final = 4_000  # rows times epsilon: with fewer a tree's model of smooth counts wins, for deciles
_USUAL_MISS: Final = 5.4  # that of deciles at epsilon 1, for which the line above was measured
_POWER: Final = 6  # of the miss: 4 to 99 quantiles cross over at 1,000 to 900,000
_MANY: Final = Fraction(1, 5)  # of all rows: so many in heaps are worth a choice by cell
_SURE: Final = 3  # scales of noise: more misses heaps, less takes noise for them
_NARROW: Final = 4096  # cells: among so many, heaps are found with less

DEPTHS: Final = (10, 100)
"""Rows times epsilon in a cell: those beyond the first are in a heap, beyond the second in a large one."""

SPLITS: Final = (Fraction(1, 20), Fraction(1, 10), Fraction(1, 5), Fraction(1, 3))
"""The part of a level that cuts heaps in two: without heaps, with few rows, else, and among few cells."""

USUAL_SPLIT: Final = Fraction(1, 10)
"""The same where nobody looked."""


def list_depths(rate: Fraction) -> tuple[int, ...]:
    """Rows of a cell after which the next depth begins."""
    return tuple(math.ceil(depth / rate) for depth in DEPTHS)


@final
@dataclass(frozen=True)
class ColumnLook:
    """What was seen of a column before its quantiles were chosen, with noise of `scale`.

    `depths` counts each row by how many rows of its cell came before it: few, some, or many. `rates` is the
    epsilon of each of the `levels`, for each row by which neighbours differ.
    """

    size: int
    depths: tuple[int, ...]
    scale: Fraction
    levels: Levels
    rates: tuple[Fraction, ...]

    @property
    def prefers_tree(self) -> bool:
        """Whether rows are few, and do not lie in heaps that a choice finds and a tree does not.

        A tree finds large heaps, wherever they lie; among few cells a choice finds them, too.
        """
        found = self._narrow or 2 * self.depths[2] <= self.depths[1]
        return self._few and not (self.heaped and found)

    @property
    def split(self) -> Fraction:
        """The part of each level that cuts heaps."""
        if not self.heaped:
            return SPLITS[0]
        return SPLITS[3] if self._narrow else SPLITS[1 if self._few else 2]

    @property
    def _rows(self) -> int:
        return max(1, sum(self.depths))

    @property
    def _narrow(self) -> bool:
        return self.size <= _NARROW

    @property
    def _few(self) -> bool:
        rate = sum(self.rates, Fraction(0))
        miss = predict_miss(self.levels, self.rates) * float(rate)
        return self._rows * rate < _ENOUGH * (miss / _USUAL_MISS) ** _POWER

    @property
    def heaped(self) -> bool:
        """Whether many rows clearly lie in heaps, large or not."""
        return self.depths[1] + max(0, self.depths[2]) >= max(_SURE * self.scale, _MANY * self._rows)
