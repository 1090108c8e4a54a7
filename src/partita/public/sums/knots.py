"""Knots of values: where sums are capped, how a value is split over knots, and estimates of every knot.

Caps lie on a grid of four an octave. Below a cap there are knots at zero and at every factor of four.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from partita.arrays import Bools, Floats, Ints, UInts
from partita.lazy import cached_property
from partita.public.bounds import laplace_sum_reach
from partita.public.sums.base import ValueLine
from partita.public.sums.parts import Blend, PartTree

DEPTH: Final = 12  # Knots reach down to 4^-12 of the cap: the noise of the lowest one is as much smaller
_MANTISSAS: Final = (4, 5, 6, 7)
FALSE_CAP: Final = Fraction(1, 1000)  # an upper bound on how often noise alone puts the cap above all values
_OCTAVE: Final = 4  # buckets that are tested together: more see thinner tails, and place the cap less finely
_ADJACENT_LEVEL: Final = 9  # scales of noise that the octave above a clear one must exceed to count, too
_BUCKET_LEVEL: Final = 3  # scales of noise below which a bucket at the top of an octave counts as empty
_FOUR_TIMES_FITS: Final = 2**62
_ROUNDING: Final = 1 + 1e-12

_FINEST: Final = 32  # masses are exact for knots up to two to this power
_MOST_BITS: Final = 40  # bits of an offset that fit in 64 bits after all factors
_MOST_SQUARED: Final = 26  # the same for squares of offsets

_LEAST_ROWS: Final = 1e-3  # no part is taken to hold fewer rows, so that shares are defined
_CLEAR: Final = 2.5  # deviations of noise above zero from which on a knot stands out over all parts
_LEAST_SHARE: Final = 1e-6  # no knot is taken to differ less between parts
_BLOCKS: Final = 16  # parts are solved in this many blocks, to bound memory


@final
@dataclass(frozen=True)
class Knots:
    """The integers among the offsets 0, ..., cap/16, cap/4, cap, with at most 13 of them above zero.

    The cap is `odd` 2^`exponent`, with an odd number of at most 7. Multiplying it by four multiplies
    every knot by four, once there are 13. A `fine` list has cap/2, too.

    >>> Knots(32).offsets, Knots(5).offsets, Knots(28).offsets
    ((0, 2, 8, 32), (0, 5), (0, 7, 28))
    """

    cap: int
    fine: bool = False

    @property
    def exponent(self) -> int:
        """How often two divides the cap."""
        return (self.cap & -self.cap).bit_length() - 1

    @property
    def odd(self) -> int:
        """The cap divided by two as often as possible."""
        return self.cap >> self.exponent

    @property
    def shifts(self) -> tuple[int, ...]:
        """How often two divides each knot above zero, in ascending order."""
        top = self.exponent
        found = range(top, max(top - 2 * DEPTH, 0) - 1, -2)[::-1]
        return (*found[:-1], top - 1, top) if self.fine and len(found) > 1 else tuple(found)

    @property
    def offsets(self) -> tuple[int, ...]:
        """The knots, in ascending order; the last is the cap."""
        return (0, *(self.odd << shift for shift in self.shifts))

    def __len__(self) -> int:
        return len(self.shifts) + 1


def caps(length: int) -> tuple[int, ...]:
    """The caps 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, ... up to the first that is at least `length`.

    >>> caps(9), caps(0)
    ((1, 2, 3, 4, 5, 6, 7, 8, 10), ())
    """
    found = [cap for cap in (1, 2, 3) if cap - 1 < length]
    while (found[-1] if found else 0) < length:
        octave, place = divmod(len(found) - 3, 4)
        found.append(_MANTISSAS[place] << octave)
    return tuple(found)


class Tops(NamedTuple):
    """The caps above and below the origin, as offsets; None on a side where no value can be.

    `seen` are the caps that the counts of magnitudes showed; knots may go on above them.
    """

    up: int | None
    down: int | None
    seen: tuple[int | None, int | None] = (None, None)


class RowsPast(NamedTuple):
    """Buckets past the cap of a side: the largest offset in each, and the noisy number of rows in it."""

    ends: tuple[int, ...]
    counts: tuple[int, ...]

    @property
    def rows(self) -> int:
        """The noisy number of rows in all of them."""
        return sum(self.counts)

    @property
    def buckets(self) -> int:
        """The number of buckets."""
        return len(self.counts)


def list_knots(cap: int | None, length: int) -> tuple[int, ...]:
    """The cap, twice the cap, four times the cap, ..., and the length; nothing for a side without values.

    >>> list_knots(3, 20), list_knots(None, 0)
    ((3, 6, 12, 20), ())
    """
    if cap is None:
        return ()
    found = [cap]
    while found[-1] < length:
        found.append(min(length, 2 * found[-1]))
    return tuple(found)


def clear_level(scale: Fraction, number: int) -> int:
    """A noisy count above this is not that of an empty bucket: T >= scale ln(2 number / beta).

    Noise exceeds T with probability a^(T+1) / (1 + a) < exp(-T / scale), so among `number` empty buckets one
    does with probability at most beta / 2.
    """
    return math.ceil(float(scale) * math.log(2 * number / FALSE_CAP) * _ROUNDING)


def near_level(scale: Fraction) -> int:
    """The bucket right above a clear one counts too if it exceeds this: twice the scale, rounded up."""
    return math.ceil(2 * scale)


@lru_cache(maxsize=256)
def octave_level(scale: Fraction, number: int) -> int:
    """A sum of four noisy counts above this is not an empty octave: each fails with beta / number at most."""
    return math.ceil(laplace_sum_reach(scale, _OCTAVE, float(FALSE_CAP) / number))


def highest_clear(noisy: NDArray[Any], *, clear: int, near: int) -> Ints:
    """For each row of noisy buckets in ascending order the highest that is clear, or the next; -1 for none.

    >>> highest_clear(np.array([[90, 80, 5, 3], [90, 80, 30, 3], [1, 2, 30, 3]]), clear=50, near=20).tolist()
    [1, 2, -1]
    """
    buckets = noisy.shape[-1]
    passed = np.asarray(noisy > clear, np.bool_)
    highest = np.where(passed.any(axis=-1), buckets - 1 - passed[..., ::-1].argmax(axis=-1), -1)
    following = np.minimum(highest + 1, buckets - 1)
    beside = np.take_along_axis(noisy, following[..., np.newaxis], axis=-1)[..., 0] > near
    return np.asarray(np.where((highest >= 0) & beside.astype(np.bool_), following, highest), np.int64)


@final
@dataclass(frozen=True)
class ValueBuckets:
    """Null, invalid, the origin, then the offsets of each side by the least cap that holds them, and beyond.

    Above the origin the buckets end with "above", below it with "below": rows outside of the bounds, which
    count as the bound.
    """

    line: ValueLine

    @property
    def size(self) -> int:
        """The number of buckets; every row is in one."""
        return 5 + len(self.above) + len(self.below)

    @cached_property
    def above(self) -> tuple[int, ...]:
        """The caps above the origin."""
        return caps(self.line.up)

    @cached_property
    def below(self) -> tuple[int, ...]:
        """The caps below the origin."""
        return caps(self.line.down)

    def of(self, places: UInts) -> Ints:
        """The bucket of each position."""
        line, offsets = self.line, self.line.offsets(places)
        bucket = np.where(
            offsets > 0, 3 + _least(self.above, offsets), self._behind + _least(self.below, -offsets)
        )
        bucket[offsets == 0] = 2
        bucket[places == np.uint64(line.size + 1)] = self._behind - 1
        bucket[places == 0] = self.size - 1
        bucket[line.invalid(places)], bucket[line.null(places)] = 1, 0
        return np.asarray(bucket)

    def tops(self, noisy: NDArray[Any], scale: Fraction, *, earlier: bool = False) -> Tops:
        """The caps: on each side the highest bucket that is clear; if none is, as on the other side.

        If none is clear on either side, the fullest bucket of all serves both. Knots go on to four times
        the cap if values may: rows beyond a clear cap are few, and they are seen if they are there.
        `earlier` is for files whose caps rows out of bounds could choose on a side without values.
        """
        sides = self._sides(noisy, earlier=earlier)
        clear = [self._highest(side, scale) for side in sides]
        shared = max(clear)
        if shared < 0 and (self.above or self.below):
            fullest = int(np.argmax(np.concatenate(sides)))
            shared = fullest if fullest < sides[0].size else fullest - sides[0].size
        up, down = (
            side[min(found if found >= 0 else shared, len(side) - 1)] if side else None
            for found, side in zip(clear, (self.above, self.below), strict=True)
        )
        raised = (cap and add_headroom(cap, side[-1]) for cap, side in ((up, self.above), (down, self.below)))
        return align_caps(*raised)._replace(seen=(up, down))

    def rows_past(self, noisy: NDArray[Any], tops: Tops) -> tuple[RowsPast, RowsPast]:
        """The rows past the caps, above and below, by the noisy counts, with those outside of the bounds."""

        def past(caps: tuple[int, ...], top: int, side: NDArray[Any], length: int) -> RowsPast:
            ends = [min(cap, length) for cap in caps if cap > top]
            rows = side[len(caps) - len(ends) :] if ends else side[:0]
            return RowsPast((*ends, length)[: rows.size], tuple(map(int, rows)))

        up = past(self.above, tops.up or 0, noisy[3 : self._behind], self.line.up)
        return up, past(self.below, tops.down or 0, noisy[self._behind :], self.line.down)

    def is_clear(self, noisy: NDArray[Any], scale: Fraction) -> bool:
        """Whether the magnitudes of some side stand out from the noise; else the caps are a guess."""
        return any(self._highest(side, scale) >= 0 for side in self._sides(noisy))

    def outside(self, noisy: NDArray[Any]) -> tuple[int, int]:
        """The noisy counts of rows below and above the bounds."""
        return int(noisy[-1]), int(noisy[self._behind - 1])

    def _sides(self, noisy: NDArray[Any], *, earlier: bool = False) -> tuple[NDArray[Any], NDArray[Any]]:
        """The buckets of both sides, each with that of the rows beyond the bound, which count as the bound.

        On a side without values these rows count as the origin, and tell nothing about magnitudes.
        """
        up, down = noisy[3 : self._behind], noisy[self._behind :]
        if earlier:
            return up, down
        return up if self.above else up[:0], down if self.below else down[:0]

    def _highest(self, noisy: NDArray[Any], scale: Fraction) -> int:
        """The highest bucket of a side that holds values, -1 for none.

        Four buckets together are an octave. The highest clear octave counts, and so does the one right above
        it if it exceeds a lower level. Buckets at its top that hold next to nothing do not count.
        """
        if not noisy.size:
            return -1
        octaves = np.convolve(noisy, np.ones(_OCTAVE, noisy.dtype))[: noisy.size]
        passed = np.flatnonzero(octaves > octave_level(scale, self.size))
        if not passed.size:
            return -1
        beside = min(int(passed[-1]) + _OCTAVE, noisy.size - 1)
        highest = beside if octaves[beside] > _ADJACENT_LEVEL * scale else int(passed[-1])
        seen = np.flatnonzero(noisy[: highest + 1] > _BUCKET_LEVEL * scale)
        return int(seen[-1]) if seen.size else highest

    @property
    def _behind(self) -> int:
        """The first bucket below the origin."""
        return 4 + len(self.above)


def add_headroom(cap: int, last: int) -> int:
    """Four times the cap, or twice where that needs 64 bits; the cap itself if no value can be above it."""
    if cap >= last:
        return cap
    return 4 * cap if cap < _FOUR_TIMES_FITS else 2 * cap


def align_caps(up: int | None, down: int | None) -> Tops:
    """The caps, the smaller raised so that both are the same odd number times a power of two.

    >>> align_caps(20, 3), align_caps(None, 3)
    (Tops(up=20, down=5, seen=(None, None)), Tops(up=None, down=3, seen=(None, None)))
    """
    if up is None or down is None:
        return Tops(up, down)
    odd = Knots(max(up, down)).odd
    first, second = (odd << max(0, (-(-cap // odd) - 1).bit_length()) for cap in (up, down))
    return Tops(first, second)


def _least(tops: tuple[int, ...], offsets: Ints) -> Ints:
    """The first cap that holds each offset > 0; the others do not matter."""
    return np.asarray(np.searchsorted(np.array(tops, np.uint64), np.maximum(offsets, 0).astype(np.uint64)))


class Masses(NamedTuple):
    """For each value the first of the controls that it touches, and its whole mass on that and the next."""

    first: Ints
    mass: Ints


@final
@dataclass(frozen=True)
class Hats:
    """How a value is split into masses on the controls: the knots, and for degree 2 points between.

    Between two knots k and k + gap a value v = k + x gives the mass U x / gap to the upper knot and the rest
    of U to the lower one. Every row has mass U, whatever its value, so the masses of all knots together have
    sensitivity U; counts, sums and sums of min(v, knot) are linear in them. Of degree 2 there is a third mass
    between any two knots (Bernstein polynomials), and sums of squares are linear, too.

    The cap is m 2^e. Gaps are 3 m 2^s or m 2^s: with U = 3 m 2^32 masses are exact for every
    knot up to 2^32, and so are sums with U = 9 m^2 2^32, for degree 2. Above that they are rounded
    down, by less than two units.

    >>> hats = Hats(Knots(32))
    >>> masses = hats.laid(np.array([0, 2, 5, 32], np.int64))
    >>> masses.first.tolist(), (masses.mass * 6 // hats.unit).tolist()
    ([0, 0, 1, 2], [[6, 0], [0, 6], [3, 3], [0, 6]])
    """

    knots: Knots
    degree: int = 1

    @property
    def unit(self) -> int:
        """U, the mass of a row."""
        return mass_unit(self.knots.odd, self.degree)

    @property
    def controls(self) -> int:
        """The number of controls: one for zero, and `degree` for every other knot."""
        return self.degree * (len(self.knots) - 1) + 1

    @cached_property
    def values(self) -> Floats:
        """What a unit of mass on each control adds to the sum."""
        knots = self._knots
        if self.degree == 1:
            return knots
        return _between(knots, (knots[1:] + knots[:-1]) / 2)

    @cached_property
    def squares(self) -> Floats:
        """What a unit of mass on each control adds to the sum of squares; of degree 1, at most."""
        knots = self._knots
        if self.degree == 1:
            return knots**2
        return _between(knots**2, knots[1:] * knots[:-1])

    @property
    def rounding(self) -> float:
        """By how much at most a row's value, up to the cap, exceeds what its masses say."""
        return 2 * self._widest_gap(1) / self.unit

    @property
    def rounding_squares(self) -> float:
        """By how much at most a row's square differs from what its masses say; of degree 2."""
        twice = 2 * self.knots.cap * self.rounding
        return twice + float(self._widest_gap(2)) ** 2 * 2.0**-_MOST_SQUARED

    def laid(self, offsets: Ints) -> Masses:
        """The masses of offsets >= 0, those above the cap clamped to it; they add up to U in each row."""
        knots = np.array(self.knots.offsets, np.uint64)
        values = np.minimum(offsets.astype(np.uint64), knots[-1])
        level = np.searchsorted(knots[1:], values)
        above, shift = values - knots[level], self._shifts[level]
        thirds = self._thirds[level]
        factor = (3 * self.knots.odd) ** (self.degree - 1) * thirds
        upper = _scale(above, shift, factor, power=1, most_bits=_MOST_BITS)
        if self.degree == 1:
            return Masses(level, np.stack([self.unit - upper, upper], axis=1))
        square = _scale(above, shift, thirds**2, power=2, most_bits=_MOST_SQUARED)
        square = np.clip(square, np.maximum(2 * upper - self.unit, 0), upper)
        mass = np.stack([self.unit - 2 * upper + square, 2 * (upper - square), square], axis=1)
        return Masses(2 * level, mass)

    @property
    def _knots(self) -> Floats:
        return np.array([float(knot) for knot in self.knots.offsets])

    def _widest_gap(self, power: int) -> int:
        """The widest gap in which masses of offsets to this power are rounded; 0 if all are exact."""
        gaps = zip(pairwise(self.knots.offsets), self._shifts.tolist(), strict=True)
        return max((high - low for (low, high), shift in gaps if power * shift > _FINEST), default=0)

    @property
    def _shifts(self) -> Ints:
        """s for every gap: m 2^s, or three times that."""
        shifts = self.knots.shifts
        return np.array([shifts[0], *shifts[:-1]])

    @property
    def _thirds(self) -> Ints:
        """How often each gap goes into 3 m 2^s: three times, or once."""
        return np.array([3, *(3 if high - low == 1 else 1 for low, high in pairwise(self.knots.shifts))])


def mass_unit(odd: int, degree: int) -> int:
    """U, the mass of a row, for caps that are this odd number times a power of two."""
    return int((3 * odd) ** degree) << _FINEST


def _between(knots: Floats, inner: Floats) -> Floats:
    """The knots with a number between any two."""
    merged = np.empty(2 * knots.size - 1)
    merged[::2], merged[1::2] = knots, inner
    return merged


def _scale(above: UInts, shift: Ints, factor: Ints, *, power: int, most_bits: int) -> Ints:
    """Factor times 2^32 (above / 2^shift)^power, rounded down; nothing overflows with so many bits."""
    spare = np.maximum(shift - most_bits, 0)
    reduced = (above >> spare.astype(np.uint64)).astype(np.int64)
    by = _FINEST - power * (shift - spare)
    return np.asarray((reduced**power * factor << np.maximum(by, 0)) >> np.maximum(-by, 0))


class Pooled(NamedTuple):
    """The estimate of every row of the controls for a question, and its standard deviation.

    `slopes` says how much each estimate moves with the number of rows that the question holds.
    """

    found: Floats
    deviations: Floats
    slopes: Floats


@final
@dataclass(frozen=True, eq=False)
class Pooling:
    """Noisy trees, `measured` in rows with the same deviation everywhere, and which of them hold numbers.

    Knots that are hard to see in one part are guessed from all parts: shrinkage towards the whole. The values
    of a part are often spread over the knots about as those of all parts are. How far that can be trusted
    for a knot follows from how much the largest nodes differ in it, beyond their noise.
    """

    tree: PartTree
    measured: Floats
    deviation: float
    numbers: Bools

    def __call__(self, asked: Floats) -> Pooled:
        """A linear question about the parts, answered for each row of the controls."""
        nodes, guesses = self._blend(asked)
        guessed = guesses @ self._rows / self._rows.sum()
        found = (nodes * self.measured).sum(axis=1) + guessed * self.whole
        unsure = (self._blend.distrust * np.square(guesses)).sum(axis=1)
        variances = np.square(nodes).sum(axis=1) + unsure + guessed**2 * self.tree.top
        rows = max(float(asked @ self._rows), _LEAST_ROWS)
        return Pooled(found, self.deviation * np.sqrt(variances), guessed * self.whole / rows)

    @cached_property
    def whole(self) -> Floats:
        """Each row of the controls over all parts."""
        return np.asarray(np.maximum(self.measured[:, -self.tree.top :].sum(axis=1), 0.0))

    @cached_property
    def clear(self) -> Bools:
        """Which rows of the controls stand out from the noise over all parts."""
        return np.asarray(self.whole > _CLEAR * self.deviation * np.sqrt(self.tree.top))

    @cached_property
    def _rows(self) -> Floats:
        """About how many rows with numbers each part holds: never none."""
        totals = self.measured[self.numbers].sum(axis=0)
        identity = np.eye(self.tree.parts)
        found = np.concatenate(
            [self.tree.plain(block).nodes @ totals for block in np.array_split(identity, _BLOCKS)]
        )
        return np.asarray(np.maximum(found, _LEAST_ROWS))

    @cached_property
    def _blend(self) -> Blend:
        rows = self._rows.sum()
        shares = self.whole / rows
        held = self.tree.sums(self._rows)[-self.tree.top :]
        apart = self.measured[:, -self.tree.top :] - shares[:, np.newaxis] * held
        seen = (np.square(apart).sum(axis=1) - self.tree.top * self.deviation**2) / rows
        spread = np.maximum(seen, np.maximum(shares, _LEAST_SHARE))
        return Blend(self.tree, spread[:, np.newaxis] * self._rows / self.deviation**2)
