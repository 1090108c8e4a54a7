"""Values by their order of magnitude, and the cap that noisy counts of these speak for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from partita.lazy.cached import cached_property
from partita.public.axis.curve.curve import Ints, UInts
from partita.public.bounds.tails import laplace_sum_reach
from partita.public.sums.base.value_line import ValueLine
from partita.public.sums.knots.knots import Knots, caps

FALSE_CAP: Final = Fraction(1, 1000)
"""How often, at most, noise alone puts the cap above all values."""

_OCTAVE: Final = 4
_BESIDE: Final = 9
_SEEN: Final = 3
_FOUR_TIMES_FITS: Final = 2**62
_ROUNDING: Final = 1 + 1e-12


class Tops(NamedTuple):
    """The caps above and below the origin, as offsets; None on a side where no value can be.

    `seen` are the caps that counts speak for, where knots go on above.
    """

    up: int | None
    down: int | None
    seen: tuple[int | None, int | None] = (None, None)


class Past(NamedTuple):
    """The noisy number of rows past the cap of a side, and how many buckets that were."""

    rows: int
    buckets: int


def clear_level(scale: Fraction, number: int) -> int:
    """A noisy count above this is no empty bucket: T >= scale ln(2 number / beta).

    Noise exceeds T with probability a^(T+1) / (1 + a) < exp(-T / scale), so among `number` empty buckets one
    does with probability at most beta / 2.
    """
    return math.ceil(float(scale) * math.log(2 * number / FALSE_CAP) * _ROUNDING)


def near_level(scale: Fraction) -> int:
    """The bucket right above a clear one counts too if it exceeds this: twice the scale, rounded up."""
    return math.ceil(2 * scale)


@lru_cache(maxsize=256)
def octave_level(scale: Fraction, number: int) -> int:
    """The sum of four noisy counts above this is no empty octave: each fails with beta / number at most."""
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
class Buckets:
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

    def tops(self, noisy: NDArray[Any], scale: Fraction) -> Tops:
        """The caps: on each side the highest bucket that is clear; where none is, as on the other side.

        Where none is on either, the fullest of all serves both. Knots go on to four times that, where values
        may: rows beyond a clear cap are few, and seen if there.
        """
        sides = noisy[3 : self._behind], noisy[self._behind :]
        clear = [self._highest(side, scale) for side in sides]
        shared = max(clear) if max(clear) >= 0 else _fullest(*sides)
        up, down = (
            side[min(found if found >= 0 else shared, len(side) - 1)] if side else None
            for found, side in zip(clear, (self.above, self.below), strict=True)
        )
        raised = (
            cap and with_headroom(cap, side[-1]) for cap, side in ((up, self.above), (down, self.below))
        )
        return aligned(*raised)._replace(seen=(up, down))

    def past(self, noisy: NDArray[Any], tops: Tops) -> tuple[Past, Past]:
        """How many rows lie past the caps, above and below, by the noisy counts; none where no value can."""
        up, down = (
            _past(caps, top or 0, side)
            for caps, top, side in (
                (self.above, tops.up, noisy[3 : self._behind]),
                (self.below, tops.down, noisy[self._behind :]),
            )
        )
        return up, down

    def outside(self, noisy: NDArray[Any]) -> tuple[int, int]:
        """The noisy counts of rows below and above the bounds."""
        return int(noisy[-1]), int(noisy[self._behind - 1])

    def _highest(self, noisy: NDArray[Any], scale: Fraction) -> int:
        """The highest bucket of a side that holds values, -1 for none.

        Four buckets together are an octave. The highest octave that is clear counts, and the one right above
        if that exceeds a lower level; buckets at its top that show next to nothing do not.
        """
        octaves = np.convolve(noisy, np.ones(_OCTAVE, noisy.dtype))[: noisy.size]
        passed = np.flatnonzero(octaves > octave_level(scale, self.size))
        if not passed.size:
            return -1
        beside = min(int(passed[-1]) + _OCTAVE, noisy.size - 1)
        highest = beside if octaves[beside] > _BESIDE * scale else int(passed[-1])
        seen = np.flatnonzero(noisy[: highest + 1] > _SEEN * scale)
        return int(seen[-1]) if seen.size else highest

    @property
    def _behind(self) -> int:
        """The first bucket below the origin."""
        return 4 + len(self.above)


def with_headroom(cap: int, last: int) -> int:
    """Four times the cap, or twice where that needs 64 bits; the cap itself if no value can be above it."""
    if cap >= last:
        return cap
    return 4 * cap if cap < _FOUR_TIMES_FITS else 2 * cap


def aligned(up: int | None, down: int | None) -> Tops:
    """The caps, the smaller raised so that both are the same odd number times a power of two.

    >>> aligned(20, 3), aligned(None, 3)
    (Tops(up=20, down=5, seen=(None, None)), Tops(up=None, down=3, seen=(None, None)))
    """
    if up is None or down is None:
        return Tops(up, down)
    odd = Knots(max(up, down)).odd
    first, second = (odd << max(0, (-(-cap // odd) - 1).bit_length()) for cap in (up, down))
    return Tops(first, second)


def _fullest(above: NDArray[Any], below: NDArray[Any]) -> int:
    """The place, on its own side, of the fullest bucket of both."""
    fullest = int(np.argmax(np.concatenate([above, below])))
    return fullest if fullest < above.size else fullest - above.size


def _past(caps: tuple[int, ...], top: int, noisy: NDArray[Any]) -> Past:
    """The rows of a side above its top, the bucket of rows outside of the bounds included."""
    number = sum(cap > top for cap in caps)
    rows = noisy[len(caps) - number :] if number else noisy[:0]
    return Past(int(rows.sum()), rows.size)


def _least(tops: tuple[int, ...], offsets: Ints) -> Ints:
    """The first cap that holds each offset > 0; the others do not matter."""
    return np.asarray(np.searchsorted(np.array(tops, np.uint64), np.maximum(offsets, 0).astype(np.uint64)))
