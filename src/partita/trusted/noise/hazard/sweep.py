"""Many first successes one after another over a stream of weights, fast.

A segment opens with level = threshold + noise; every weight that arrives lowers the level;
the segment ends at the first position where fresh noise exceeds the level, and the next one
opens behind it. `Sweep` finds these ends in bulk and stops before a segment that it cannot
decide from one word of its uniform: the caller settles that one with `FirstSuccess`, from the same words, and
asks again. On the same words the ends are those that `FirstSuccess` alone would find.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, islice
from operator import mul, sub
from typing import Any, Final, NamedTuple

import numpy as np

from partita.trusted.noise.hazard.hazard import (
    MARGIN,
    NEGLIGIBLE,
    PRECISION,
    ROUNDING,
    Floats,
    Hazard,
    Law,
    hazard,
)
from partita.trusted.noise.hazard.targets import exponential_targets, float_pair
from partita.trusted.noise.laws import fast
from partita.trusted.noise.laws.laplace import GeometricTables, tables
from partita.trusted.noise.laws.tables import UNSURE, Ints
from partita.trusted.noise.laws.words import UInts, WordSource

_LONGEST_TABLE: Final = 1 << 16
_LONGEST_PAIR_TABLE: Final = 1 << 14
_WIDE: Final = 1 << 32
_SEGMENTS: Final = 1 << 10
_ITEMS: Final = 1 << 16
_WORDS: Final = 1 << 13
_FLOAT_INTEGERS: Final = 2.0**52
_ONE: Final = 2.0**PRECISION


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """A stream of `weights` at increasing `positions` in 0..last, and the noise to walk it with."""

    law: Law
    scale: Fraction
    threshold: int
    positions: UInts
    weights: Ints
    last: int
    source: WordSource
    compiled: bool
    margin: float = MARGIN

    def ends(self, start: int) -> UInts:
        """Ends of the segments from `start` on, up to the first one in doubt."""
        found = [np.zeros(0, dtype=np.uint64)]
        decide = self._decide_compiled if self.compiled else self._decide
        while start <= self.last:
            decided = decide(start)
            if not decided.size:
                break
            found.append(decided)
            start = int(decided[-1]) + 1
        return np.concatenate(found)

    @property
    def slack(self) -> float:
        """The relative error granted to a float sum of hazards."""
        return self.margin + (self.positions.size + 2) * ROUNDING

    @property
    def fine(self) -> float:
        """The same, besides rounding, where hazards and target are the nearest floats."""
        return self.margin * 2.0**-14

    @property
    def tight(self) -> float:
        """The error granted to targets and to sums in pairs of floats, times 1 + E.

        A pair from `exponential_targets` is off by at most 2^-80 (1 + E). That is an absolute error: for a
        word w, E is about w 2^-64, and the error may be a part 2^-16 / w of it. A relative grant does not
        cover small words, so every comparison with a target takes off or adds this much as well.
        """
        return self.margin * self.margin

    @cached_property
    def hazard(self) -> Hazard:
        """The law of the noise at each position."""
        return hazard(self.law, self.scale)

    @cached_property
    def _tables(self) -> GeometricTables:
        return tables(self.scale, self.source.bits)

    def _decide(self, start: int) -> UInts:
        """Ends of the next segments; the words of the first one in doubt are given back."""
        per_segment = self._tables.words_per_sample + 1
        words = self.source.take_up_to(_SEGMENTS * per_segment)
        rows = words[: words.size // per_segment * per_segment].reshape(-1, per_segment)
        walk = _Walk(self, start)
        targets = map(
            _Target, *(part.tolist() for part in (*exponential_targets(rows[:, -1]), _widths(rows[:, -1])))
        )
        for noise, target in zip(self._noise(rows), targets, strict=True):
            if noise is None or not walk.segment(self.threshold + noise, target):
                break
        self.source.give_back(words[len(walk.ends) * per_segment :])
        return np.array(walk.ends, dtype=np.uint64)

    def _noise(self, rows: UInts) -> list[int | None]:
        """The threshold noise of each row of words, None where its words leave a doubt."""
        top = self._tables.top.look_up(rows[:, 0])
        sure = (top != UNSURE) & (top < 1 << (62 - self._tables.shift))
        magnitude = (top >> 1) << self._tables.shift
        for column, (place, table) in enumerate(self._tables.digits, start=1):
            digit = table.look_up(rows[:, column])
            sure &= digit != UNSURE
            magnitude += digit << place
        noise = magnitude if self.law == "geometric" else magnitude ^ -(top & 1)
        return [
            value if certain else None for value, certain in zip(noise.tolist(), sure.tolist(), strict=True)
        ]

    @cached_property
    def fixed_hazards(self) -> list[int]:
        """The hazards of the lowest levels, in integers."""
        fixed = self.hazard.fixed(PRECISION)
        return [fixed[level] for level in range(min(self.highest_level, _LONGEST_PAIR_TABLE))]

    @property
    def highest_level(self) -> int:
        """A level that a segment hardly ever opens above."""
        return self.threshold + math.ceil(40 * self.scale)

    def _decide_compiled(self, start: int) -> UInts:
        """The same by the compiled kernel."""
        words = self.source.take_up_to(min(_WORDS, 64 + self.positions.size))
        edges = np.uint64(self.last), np.uint64(start)
        ends, used = fast.kernels().sweep(
            self.positions, self.weights, *edges, *self._numbers, *self._flat_tables, *self._flat_hazards,
            words,
        )  # fmt: skip
        self.source.give_back(words[used:])
        found: UInts = ends
        return found

    @property
    def _wide(self) -> bool:
        """Whether floats often cannot tell positions apart."""
        return self.last >= _WIDE

    @cached_property
    def _numbers(self) -> tuple[Any, ...]:
        return (
            self.threshold,
            self.law == "laplace",
            float(self.hazard.rate),
            self.slack,
            self.fine,
            self.tight,
        )

    @cached_property
    def _flat_tables(self) -> tuple[Any, ...]:
        """The tables of the threshold noise, side by side."""
        drawn = (self._tables.top, *(table for _, table in self._tables.digits))
        places = (self._tables.shift, *(place for place, _ in self._tables.digits))
        return (
            np.concatenate([table.thresholds for table in drawn]),
            np.cumsum([0, *(table.thresholds.size for table in drawn)]),
            np.stack([table.guide for table in drawn]),
            self._tables.top.guide_shift,
            np.array(places),
        )

    @cached_property
    def _flat_hazards(self) -> tuple[Any, ...]:
        """Hazards as floats and, where the universe is wide, as pairs of which the first is the nearest."""
        lowest = 0 if self.law == "geometric" else -min(math.ceil(40 * self.scale), _LONGEST_TABLE // 2)
        levels = range(lowest, min(self.highest_level, lowest + _LONGEST_TABLE))
        floats = np.array([self.hazard.floats[level] for level in levels], dtype=np.float64)
        paired = range(min(levels.stop, _LONGEST_PAIR_TABLE) if self._wide else 0)
        fixed = self.hazard.fixed(2 * PRECISION)
        pairs = np.array([float_pair(fixed[level], 2 * PRECISION) for level in paired]).reshape(-1, 2)
        floats[-lowest : paired.stop - lowest] = pairs[:, 0]
        return floats, lowest, *pairs.T.copy()


def float_offset(low: float, high: float, before: float, each: float, slack: float) -> float:
    """The offset in a run where the hazard passes a target between low and high; -1 in doubt."""
    if each < NEGLIGIBLE or high == math.inf:
        return -1.0
    least = (low - before * (1 + slack)) / (each * (1 + slack))
    most = (high - before * (1 - slack)) / (each * (1 - slack))
    if least < 0.0 or most >= _FLOAT_INTEGERS or math.floor(least) != math.floor(most):
        return -1.0
    return float(math.floor(least))


class _Target(NamedTuple):
    """E = -ln(1 - U) for a uniform U of one known word: from high + low to that plus `width`."""

    high: float
    low: float
    width: float

    def least(self, tight: float) -> float:
        """No more than E, but for the rounding of floats."""
        return self.high - tight * (1.0 + self.high)

    def most(self, tight: float) -> float:
        """No less than E with any further digits, but for the rounding of floats."""
        return self.high + tight * (1.0 + self.high) + self.width


class _Walk:
    """Segment after segment over the next stretch of the stream, in plain Python.

    A segment has some twenty items: too few for array operations to pay. Items are kept as the
    lengths of the runs behind them, as floats for the walk and as ints for what floats cannot decide.
    """

    def __init__(self, sweep: Sweep, start: int) -> None:
        self._sweep = sweep
        self._start = start
        self._next = 0
        first = int(sweep.positions.searchsorted(np.uint64(start)))
        behind = first + max(_ITEMS, 4 * sweep.highest_level)
        self._complete = behind >= sweep.positions.size
        positions = sweep.positions[first:behind]
        runs = np.diff(positions)
        self._positions: list[int] = positions.tolist()
        self._weights: list[int] = sweep.weights[first:behind].tolist()
        self._lengths: list[int] = runs.tolist()
        self._float_lengths: list[float] = runs.astype(np.float64).tolist()
        if self._complete and self._positions:
            self._lengths.append(sweep.last + 1 - self._positions[-1])
            self._float_lengths.append(float(self._lengths[-1]))
        self.ends: list[int] = []

    def segment(self, level: int, target: _Target) -> bool:
        """Find the end of the segment that opens with `level`; False if it is in doubt."""
        if self._start > self._sweep.last:
            return False
        end = self._end(level, target)
        if end is not None:
            self.ends.append(end)
            self._start = end + 1
        return end is not None

    def _end(self, level: int, target: _Target) -> int | None:
        slack, hazards = self._sweep.slack, self._sweep.hazard.floats
        aim = target.least(self._sweep.tight) * (1 - slack) / (1 + slack) - NEGLIGIBLE
        first_length = self._first_length()
        total = first_length * hazards[level] if first_length else 0.0
        if total >= aim:
            return self._inside(level, target, self._next, level, 0.0)
        now, weights, lengths = level, self._weights, self._float_lengths
        for item in range(self._next, len(lengths)):
            now -= weights[item]
            reached = total + lengths[item] * hazards[now]
            if reached >= aim:
                return self._inside(level, target, item + 1, now, total)
            total = reached
        return self._sweep.last if self._complete else None

    def _first_length(self) -> int:
        """Positions from the start of the segment up to its first item."""
        here = self._positions[self._next] if self._next < len(self._positions) else self._sweep.last + 1
        return here - self._start

    def _inside(self, level: int, target: _Target, behind: int, now: int, before: float) -> int | None:
        """The end in the run before item `behind`, of level `now`, by integers where floats doubt."""
        slack, each = self._sweep.slack, self._sweep.hazard.floats[now]
        here, room = self._start, self._first_length()
        if behind > self._next:
            here, room = self._positions[behind - 1], self._lengths[behind - 1]
        offset = -1
        if target.high * slack < each:
            low, high = target.least(self._sweep.tight), target.most(self._sweep.tight)
            offset = int(float_offset(low * (1 - slack), high * (1 + slack), before, each, slack))
        if offset < 0:
            offset = self._fixed_offset(level, target, behind, now, here - self._start)
        if not 0 <= offset < room:
            return None
        self._next = behind
        return here + offset

    def _fixed_offset(self, level: int, target: _Target, behind: int, now: int, passed: int) -> int:
        """The offset in that run in integers, or -1 where one word of the uniform does not decide."""
        if self._sweep.hazard.certain(now) or target.width == math.inf:
            return -1
        each = self._sweep.hazard.fixed(PRECISION)[now]
        aim = int(target.high * _ONE) + int(target.low * _ONE) - self._fixed_sum(level, behind, now)
        doubt = int(self._sweep.tight * (1 + target.high) * _ONE) + 2
        most = aim + doubt + int(target.width * _ONE * (1 + MARGIN))
        least = (aim - doubt - passed) // (each + 1)
        return least if most < (least + 1) * each else -1

    def _fixed_sum(self, level: int, behind: int, now: int) -> int:
        """The cumulative hazard before the run of level `now` that ends at item `behind`, rounded down."""
        if behind == self._next:
            return 0
        fixed = self._sweep.hazard.fixed(PRECISION)
        lengths = self._lengths[self._next : behind - 1]
        unit_weights = level - now == behind - self._next
        if unit_weights and now >= 0 and level < len(self._sweep.fixed_hazards):
            hazards: Iterable[int] = self._sweep.fixed_hazards[level - 1 : now : -1]
        else:
            levels = accumulate(self._weights[self._next : behind - 1], sub, initial=level)
            hazards = map(fixed.__getitem__, islice(levels, 1, None))
        total: int = sum(map(mul, lengths, hazards), start=self._first_length() * fixed[level])
        return total


def _widths(words: UInts) -> Floats:
    """By how much more digits may raise E, at most: -ln(1 - 1/m) <= 1/(m - 1) for m = 2^64 - word."""
    with np.errstate(divide="ignore"):
        return 1.0 / (~words).astype(np.float64)
