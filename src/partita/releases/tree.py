"""A released tree of noisy counts, and the intervals that it answers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, final

from numpy.typing import NDArray

from partita.answer import Answer
from partita.exact import failure, ordered
from partita.guarantee import Guarantee
from partita.inference.tails import laplace_sum_reach, laplace_variance

__all__ = ["TreeRelease"]


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class TreeRelease:
    """Noisy counts of the nodes of each level, leaves first; every node has noise of one scale.

    `guarantee` is None if the release was made with injected noise: it protects nobody.
    """

    levels: tuple[NDArray[Any], ...]
    size: int
    branching: int
    scale: Fraction
    guarantee: Guarantee | None = None

    def count(self, low: int, high: int) -> Answer:
        """How many lie in the cells low, ..., high, from the fewest nodes that cover them."""
        value, terms = self.sum(low, high)
        return Answer(value, partial(self.error, terms), bounds=partial(self.bounds, low, high))

    def bounds(self, low: int, high: int, beta: float) -> tuple[float, float]:
        """Guaranteed bounds on the count of the cells low, ..., high; a count is never negative."""
        value, terms = self.sum(low, high)
        reach = laplace_sum_reach(self.scale, terms, float(failure(beta)))
        return max(0.0, value - reach), max(0.0, value + reach)

    def sum(self, low: int, high: int) -> tuple[float, int]:
        """The sum of the nodes that make up low..high, and how many they are."""
        nodes = list(self.cover(*ordered(low, high, first=0, last=self.size - 1)))
        value = sum(int(self.levels[level][first:last].sum()) for level, first, last in nodes)
        return float(value), sum(last - first for _, first, last in nodes)

    def error(self, terms: int) -> float:
        """The standard error of a sum of nodes."""
        return math.sqrt(terms * laplace_variance(self.scale))

    def cover(self, low: int, high: int) -> Iterator[tuple[int, int, int]]:
        """Disjoint nodes that make up low..high: (level, first node, node behind the last)."""
        behind = high + 1
        for level in range(len(self.levels)):
            if low >= behind:
                return
            up, down = -(-low // self.branching), behind // self.branching
            if behind == self.levels[level].size:
                down = -(-behind // self.branching)
            if level == len(self.levels) - 1 or up >= down:
                yield level, low, behind
                return
            if low < up * self.branching:
                yield level, low, up * self.branching
            if down * self.branching < behind:
                yield level, down * self.branching, behind
            low, behind = up, down
