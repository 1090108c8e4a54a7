"""Centred trees side by side: the errors of many counters that share a clock, one column for each.

Every node of a tree has noise of its own. Siblings are moved by equal amounts, so that they add up to the
error of their parent. Nothing here sees data: a counter adds these errors to what it counts. See
docs/proofs/counter_family.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, Final

import numpy as np

from partita.numbers import integer
from partita.public.streams.terms import LARGEST, WIDTH, misfit
from partita.trusted.noise.system.protocol import IntegerArray, Noise
from partita.trusted.streams.base.integers import Row, integers, row
from partita.trusted.streams.centred.branching import SHARES
from partita.trusted.streams.counter.bounds import Mix, largest_of, mix

_MOST_BITS: Final = 6
_MOST_BLOCKS: Final = 64
_NARROW: Final = 1 << 44
_FAR: Final = 1 << 10
_WORD: Final = 8


@dataclass(frozen=True)
class Shape:
    """A tree over some periods: rows of siblings, leaves first, and the share of epsilon of each level.

    Below the top, siblings are 2^bits[level]. The top row has as many nodes as the periods need.
    """

    horizon: int
    bits: tuple[int, ...]
    shares: tuple[int, ...]

    def __post_init__(self) -> None:
        integer(self.horizon, "horizon", low=1, high=LARGEST)
        for bits in self.bits:
            integer(bits, "bits", low=1, high=_MOST_BITS)
        for share in self.shares:
            integer(share, "shares", low=1, high=SHARES)
        integer(sum(self.shares), "shares", low=SHARES, high=SHARES)
        integer(self.levels - len(self.bits), "levels", low=1, high=1)
        integer(self.blocks, "blocks", low=1, high=_MOST_BLOCKS)

    @property
    def numbers(self) -> tuple[int, ...]:
        """The shape as a row of a state."""
        return self.horizon, *self.bits, *self.shares

    @classmethod
    def of(cls, numbers: Sequence[int]) -> Shape:
        """The shape in a row of a state."""
        horizon, *rest = numbers
        half = len(rest) // 2
        return cls(horizon, tuple(rest[:half]), tuple(rest[half:]))

    @property
    def levels(self) -> int:
        """In how many nodes a period lies."""
        return len(self.shares)

    @property
    def fraction_bits(self) -> int:
        """Errors are integers in units of 2^-fraction_bits: a level below the top divides by its siblings."""
        return sum(self.bits)

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """How many periods a node of each level has."""
        return tuple(1 << sum(self.bits[:level]) for level in range(self.levels))

    @property
    def blocks(self) -> int:
        """The number of nodes in the top row; the last one may reach beyond the horizon."""
        return -(-self.horizon // self.widths[-1])

    @property
    def whole(self) -> Shape:
        """The same tree up to the end of its last block."""
        return replace(self, horizon=self.blocks * self.widths[-1])

    def siblings(self, level: int) -> int:
        """How many nodes a row of siblings has."""
        return self.blocks if level == self.levels - 1 else 1 << self.bits[level]

    def scale(self, level: int, rate: Fraction) -> Fraction:
        """The scale of the noise of a node."""
        return SHARES / (rate * self.shares[level])

    def is_wide(self, rate: Fraction) -> bool:
        """Whether errors are kept as Python ints: a public question."""
        widest = max(self.scale(level, rate) for level in range(self.levels))
        return widest * (1 << self.fraction_bits) * _FAR > _NARROW

    def bytes_of_each(self, rate: Fraction) -> int:
        """How many bytes of a state one tree needs: for a row of siblings of each level."""
        kept = sum(map(self.siblings, range(self.levels)))
        return kept * (WIDTH if self.is_wide(rate) else _WORD)

    def opens(self, level: int, position: int) -> bool:
        """Whether a row of siblings begins with this period."""
        return position == 0 if level == self.levels - 1 else position % self.widths[level + 1] == 0

    def mix(self, rate: Fraction, stop: int, start: int = 0) -> Mix:
        """The noise in the sum of the errors of the periods from `start` up to `stop`."""
        sizes = dict(self._sizes(stop))
        for node, size in self._sizes(start):
            sizes[node] = sizes.get(node, 0.0) - size
        return mix((size, float(1 / self.scale(level, rate)), 1.0) for (level, _), size in sizes.items())

    def largest(self, rate: Fraction, beta: float, *, ends: int = 1) -> float:
        """How far sums over any periods from a beginning may be off, all at once.

        With more `ends`, so many open rows of siblings of each level are in a sum, and the top row once.
        The moment of a fraction of a node lies below that of one more or one less.
        """
        top = float(1 / self.scale(self.levels - 1, rate))
        rows = [[mix([(1.0, top, float(self.blocks))])]]
        for level in range(self.levels - 1):
            rows += [list(self._bridges(level, rate))] * ends
        return largest_of(rows, self.horizon, beta)

    def _sizes(self, stop: int) -> Iterator[tuple[tuple[int, int], float]]:
        """The nodes whose noise is in the error of the first periods, with their coefficients."""
        for level in range(self.levels):
            first = 0 if level == self.levels - 1 else stop // self.widths[level + 1] * self.siblings(level)
            inside = stop / self.widths[level] - first
            share = 0.0 if level == self.levels - 1 else inside / self.siblings(level)
            for place in range(self.siblings(level) if inside else 0):
                yield (level, first + place), min(1.0, max(0.0, inside - place)) - share

    def _bridges(self, level: int, rate: Fraction) -> Iterator[Mix]:
        siblings, each = self.siblings(level), float(1 / self.scale(level, rate))
        for whole in range(siblings + 1):
            share = whole / siblings
            yield mix([(1 - share, each, float(whole)), (share, each, float(siblings - whole))])


@lru_cache(maxsize=256)
def shape_for(horizon: int) -> Shape:
    """The shape of the least mean variance over the horizon.

    With weights C of the levels the variance is the sum of C / share^2, the least for shares in
    proportion to the cube roots of C: then it is the cube of the sum of those.

    >>> shape_for(1024).bits
    (4, 4)
    """
    candidates = [(_roots(horizon, bits), bits) for bits in _all_bits(horizon)]
    roots, bits = min(candidates, key=lambda candidate: sum(candidate[0]))
    shares = [max(1, int(SHARES * root / sum(roots))) for root in roots[:-1]]
    return Shape(horizon, bits, (*shares, SHARES - sum(shares)))


def _all_bits(horizon: int, below: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """Siblings of each level below the top, for which the top row has few nodes; never fewer lower down."""
    blocks = -(-horizon // (1 << sum(below)))
    if blocks <= _MOST_BLOCKS:
        yield below
    for bits in range(2, min(below[-1] if below else _MOST_BITS, _MOST_BITS) + 1):
        if blocks > 1 << bits:
            yield from _all_bits(horizon, (*below, bits))


def _roots(horizon: int, bits: tuple[int, ...]) -> list[float]:
    """The cube root of what the noise of each level weighs in the mean variance; leaves first."""
    weights, width = [], 1.0
    for k in (1 << each for each in bits):
        inside = (k - 1) / 2 + (width - 1) * (2 * width - 1) / (6 * width**2) + 1 / width
        weights.append(inside - (k * width + 1) * (2 * k * width + 1) / (6 * width**2 * k))
        width *= k
    blocks = math.ceil(horizon / width)
    weights.append((blocks - 1) / 2 + (width + 1) * (2 * width + 1) / (6 * width**2))
    return [math.cbrt(max(weight, 1e-9)) for weight in weights]


class Columns:
    """The errors of trees of one shape, from their first period to their last.

    A row of siblings is kept for each level, with a column for each tree. What is open follows from the
    position alone.
    """

    def __init__(self, shape: Shape, rate: Fraction, columns: int, noise: Noise) -> None:
        self.shape, self.rate, self.columns = shape, rate, columns
        self.position = 0
        self._noise = noise
        self._wide = shape.is_wide(rate)
        self._rows: dict[int, IntegerArray] = {}

    def skip(self, periods: int) -> IntegerArray:
        """By how much the error of each column grows in the next periods together."""
        goal = self.position + periods
        total = self.array(np.zeros(self.columns, dtype=np.int64))
        while self.position < goal:
            level = self._level(goal)
            self._open(level)
            total = total + self._node(level)
            self.position += self.shape.widths[level]
        return total

    def fields(self) -> dict[str, Row]:
        """What is drawn, as rows of a state whose lengths follow from the shape."""
        blanks = {level: self._blank(level) for level in range(self.shape.levels)}
        return {f"row {level}": row(siblings) for level, siblings in (blanks | self._rows).items()}

    def restore(self, fields: dict[str, list[int]], position: int) -> None:
        """Go on with what was drawn before."""
        if not 0 <= position <= self.shape.horizon:
            raise misfit("lie within its horizon")
        self.position = position
        for level in range(self.shape.levels):
            siblings = self.array(fields[f"row {level}"])
            self._rows[level] = siblings.reshape(self.shape.siblings(level), self.columns)

    def _blank(self, level: int) -> IntegerArray:
        return self.array(np.zeros((self.shape.siblings(level), self.columns), dtype=np.int64))

    def _level(self, goal: int) -> int:
        """The highest level of which a node begins here and ends before the goal."""
        level = 0
        for higher, width in enumerate(self.shape.widths):
            if self.position % width == 0 and self.position + width <= goal:
                level = higher
        return level

    def _open(self, level: int) -> None:
        """Draw the rows that begin here, from the top down to a level."""
        for each in range(self.shape.levels - 1, level - 1, -1):
            if self.shape.opens(each, self.position):
                self._rows[each] = self._siblings(each)

    def _siblings(self, level: int) -> IntegerArray:
        """A row of siblings: their noise, moved by equal amounts to add up to the error of their parent."""
        scale, bits = self.shape.scale(level, self.rate), self.shape.fraction_bits
        drawn: Any = self._noise.add(self._blank(level), scale)
        own: IntegerArray = integers(drawn, wide=self._wide, below=_NARROW >> bits) << bits
        if level == self.shape.levels - 1:
            return own
        missing: Any = self._node(level + 1) - own.sum(axis=0)
        moved: IntegerArray = own + missing // self.shape.siblings(level)
        return moved

    def _node(self, level: int) -> Any:
        """The errors of the node of a level that begins or goes on here."""
        return self._rows[level][self.position // self.shape.widths[level] % self.shape.siblings(level)]

    def array(self, values: Any) -> IntegerArray:
        """Errors as an array that holds them exactly."""
        return integers(values, wide=self._wide)
