"""The first position at which fresh noise exceeds a level, from one uniform.

h(k) = -ln P[noise <= k] is the hazard of one position at level k. With E = -ln(1 - U) the
first success is the first position whose cumulative hazard exceeds E, so the position is a
pure function of the uniform U: it does not matter into how many runs the positions are
split, nor who does the arithmetic. See docs/proofs/noise.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property, lru_cache
from itertools import accumulate, islice
from operator import mul, sub
from typing import Any, Final, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np
from flint import arb, fmpz

from partita.arrays import Floats, Ints, UInts
from partita.errors import InvalidParameter
from partita.trusted.noise import laws
from partita.trusted.noise.laws import (
    UNSURE,
    GeometricTables,
    Real,
    Uncopyable,
    Uniform,
    WordSource,
    enclose,
    floor,
    tables,
)

Law: TypeAlias = Literal["geometric", "laplace"]

MARGIN: Final = 2.0**-36
"""A float decides only what is certain with this much relative slack; else integers do."""

ROUNDING: Final = 2.0**-52
"""The relative error that each term of a float sum may add."""

NEGLIGIBLE: Final = 2.0**-900
"""More than the hazards of 2^64 positions that a float rounds to zero."""

WIDE_NEGLIGIBLE: Final = 2.0**-600
"""The same for 2^400 positions, at hazards below 2^-1021, which a float rounds badly or to zero."""

PRECISION: Final = 192
"""Fractional bits of the integers that decide first; they double while there is doubt."""

_MOST_LEVELS: Final = 1 << 17  # cached hazards of one law: memory against computing them again

Number = TypeVar("Number", bound=float)


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
        rate, laplace = float(self.rate), law == "laplace"
        self.floats = _LevelCache(lambda level: float_hazard(level, rate, laplace))
        self._fixed: dict[int, _LevelCache[int]] = {}

    def certain(self, level: int) -> bool:
        """Whether noise exceeds `level` with probability one."""
        return self.law == "geometric" and level < 0

    def fixed(self, bits: int) -> Mapping[int, int]:
        """floor(2^bits h(k)) for every level k at which success is not certain, certified."""
        if bits not in self._fixed:
            self._fixed[bits] = _LevelCache(lambda level: floor(self.real(level), bits))
        return self._fixed[bits]

    def real(self, level: int) -> Real:
        """h(level) as a real number."""
        rate = self.rate
        if self.law == "laplace" and level < 0:
            return lambda: enclose(-rate * level) + enclose(-rate).exp().log1p()
        if self.law == "laplace":
            return lambda: -((-(enclose(-rate * (level + 1)).exp()) / (1 + enclose(-rate).exp())).log1p())
        return lambda: -((-(enclose(-rate * (level + 1)).exp())).log1p())


class _LevelCache(dict[int, Number]):
    """Levels to hazards, computed when they are first needed."""

    def __init__(self, compute: Callable[[int], Number]) -> None:
        self._compute = compute

    def __missing__(self, level: int) -> Number:
        if len(self) >= _MOST_LEVELS:
            self.clear()
        self[level] = value = self._compute(level)
        return value


@lru_cache(maxsize=64)
def hazard(law: Law, scale: Fraction) -> Hazard:
    """The hazard of a law and scale, made once."""
    return Hazard(law, scale)


class FirstSuccess(Uncopyable):
    """Walks runs of positions and reports where fresh noise first exceeds the level.

    All positions of a run share one level; runs may be split at will. There may be up to 2^400 positions in
    all. This is the specification: faster code must find the same position from the same words.
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
        return ahead * (1 + slack) + WIDE_NEGLIGIBLE < self._target * (1 - slack)

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


STEPS: Final = 1 << 11  # entries of the logarithm table
_RECIPROCAL_BITS: Final = 16
_CONSTANT_BITS: Final = 200
_SHORT_BITS: Final = 40


def exponential_targets(words: UInts) -> tuple[Floats, Floats]:
    """E = -ln(1 - word / 2^64) of each word, as a pair of floats (high, low).

    The sum of a pair is right to 2^-80 (1 + E): enough to place a first success among 2^64 positions
    without exact arithmetic, nearly always. The tests compare it with a second library.

    With m = 2^64 - word = 2^e (a + b) and a tabulated r near 1 / (a + b),
    E = (64 - e) ln 2 + ln r - ln(1 + z), z = r (a + b) - 1, and |z| < 2^-10. The products r a
    and r b are exact because r has 16 bits and a, b have 33.
    """
    reciprocals, log_high, log_low, two_high, two_low = log_constants()
    rest = ~words
    head = (rest & np.uint64(0xFFFFFFFF00000000)).astype(np.float64)
    tail = (rest & np.uint64(0xFFFFFFFF)).astype(np.float64) + 1.0
    _, exponent = np.frexp(head + tail)
    head, tail = np.ldexp(head, -exponent), np.ldexp(tail, -exponent)
    step = ((head + tail) * (2 * STEPS)).astype(np.int64) - STEPS
    r = reciprocals[step]
    z, z_low = _two_sum(head * r - 1.0, tail * r)
    square, square_low = _square(z)
    series = z * square * (-1 / 3 + z * (1 / 4 + z * (-1 / 5 + z * (1 / 6 - z / 7))))
    missing = 64.0 - exponent
    high, low = _two_sum(missing * two_high, log_high[step])
    high, more = _two_sum(high, -z)
    low += more
    high, more = _two_sum(high, square / 2)
    low += more + (missing * two_low + log_low[step] + square_low / 2 + (z - 1.0) * z_low + series)
    return _two_sum(high, low)


def float_pair(fixed: int, bits: int) -> tuple[float, float]:
    """fixed / 2^bits as a float and the float that it is short of."""
    high = fixed / (1 << bits)
    numerator, denominator = high.as_integer_ratio()
    return high, ((fixed * denominator) - (numerator << bits)) / (denominator << bits)


def _two_sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """The rounded sum and its error [Knuth]."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _square(a: Floats) -> tuple[Floats, Floats]:
    """The rounded square and its error [Dekker]."""
    product = a * a
    spread = 134217729.0 * a
    high = spread - (spread - a)
    low = a - high
    return product, ((high * high - product) + 2.0 * high * low) + low * low


def _fixed_log(value: Fraction) -> int:
    """floor(2^200 ln(value)), certified."""
    return floor(lambda: enclose(value).log(), _CONSTANT_BITS)


@cache
def log_constants() -> tuple[Floats, Floats, Floats, float, float]:
    """The reciprocals r, their logarithms as pairs, and ln 2 as a short float and the rest."""
    one = 1 << _RECIPROCAL_BITS
    middles = [(STEPS + i + 0.5) / (2 * STEPS) for i in range(STEPS + 1)]
    numerators = [round(one / middle) for middle in middles]
    logs = [float_pair(_fixed_log(Fraction(numerator, one)), _CONSTANT_BITS) for numerator in numerators]
    two = _fixed_log(Fraction(2))
    short = two >> (_CONSTANT_BITS - _SHORT_BITS)
    left = two - (short << (_CONSTANT_BITS - _SHORT_BITS))
    return (
        np.array(numerators) / one,
        np.array([high for high, _ in logs]),
        np.array([low for _, low in logs]),
        short / (1 << _SHORT_BITS),
        left / (1 << _CONSTANT_BITS),
    )


_LONGEST_TABLE: Final = 1 << 16  # levels with a tabulated float hazard: time to fill against lookups
_LONGEST_PAIR_TABLE: Final = 1 << 14  # levels with a hazard as a pair of floats, which costs more to fill
_WIDE: Final = 1 << 32  # positions, from which floats often cannot tell them apart
_SEGMENTS: Final = 1 << 10  # decided at once in Python
_ITEMS: Final = 1 << 16  # converted to Python lists at once
_WORDS: Final = 1 << 13  # taken at once for the compiled kernel; the rest is given back
_FLOAT_INTEGERS: Final = 2.0**52
_ONE: Final = 2.0**PRECISION


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """Many first successes over a stream of `weights` at increasing `positions` in 0..last, fast.

    A segment opens with level = threshold + noise; every weight that arrives lowers the level;
    the segment ends at the first position where fresh noise exceeds the level, and the next one
    opens behind it. `Sweep` finds these ends in bulk and stops before a segment that it cannot
    decide from one word of its uniform: the caller settles that one with `FirstSuccess`, from the same
    words, and calls again. On the same words the ends are those that `FirstSuccess` alone would find.
    """

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
        ends, used = laws.kernels().sweep(
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


# Public tail bounds of integer noise, certified: thresholds and quantiles are exact integers.
# a = exp(-1/scale) throughout; N, N' are independent noises of one law.
@dataclass(frozen=True)
class RealBound:
    """A public real number, compared without rounding."""

    real: Real

    def reaches(self, limit: int) -> bool:
        """Whether the number is at least `limit`."""
        return floor(self.real) >= limit

    def __float__(self) -> float:
        return floor(self.real, 64) / 2**64

    def __repr__(self) -> str:
        return f"Bound({float(self):.6g})"


def scaled(real: Real, factor: int) -> RealBound:
    """factor times a real."""
    return RealBound(lambda: real() * factor)


def difference(law: Law, scale: Fraction, least: int) -> Real:
    """P[N - N' >= least], least >= 1.

    geometric: the difference is discrete Laplace, a^least / (1+a).
    laplace:   P[N - N' = s] = c^2 a^|s| (|s| + b) with c = (1-a)/(1+a), b = (1+a^2)/(1-a^2);
               summed from least on: c^2 a^least (least + b + a/(1-a)) / (1-a).
    """

    def tail() -> arb:
        a, power = enclose(-1 / scale).exp(), enclose(-least / scale).exp()
        if law == "geometric":
            return power / (1 + a)
        c, b = (1 - a) / (1 + a), (1 + a * a) / (1 - a * a)
        return c * c * power * (least + b + a / (1 - a)) / (1 - a)

    return tail


def difference_quantile(law: Law, scale: Fraction, failure: Fraction) -> int:
    """The least q >= 1 with P[N - N' >= q] <= failure."""
    low, high = 0, 1
    while not _at_most(difference(law, scale, high), failure):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if _at_most(difference(law, scale, middle), failure):
            high = middle
        else:
            low = middle
    return high


def geometric_quantile(scale: Fraction, failure: Fraction) -> int:
    """The least q with a^q <= failure, for failure < 1: ceil(scale ln(1/failure))."""
    return floor_log(1 / failure, scale) + 1


def floor_log(value: Fraction, factor: Fraction) -> int:
    """floor(factor ln(value)), for value > 1."""
    return floor(lambda: enclose(value).log() * enclose(factor))


def _at_most(real: Real, limit: Fraction) -> bool:
    """Whether a real that is not rational is at most a rational."""
    return floor(lambda: real() / enclose(limit)) == 0
