"""Permute-and-flip [MS20] over runs of equal candidates, exactly.

Candidates are taken in a random order. A candidate whose score is g below the best is accepted with
probability p = exp(-g / scale), and the first that is accepted is chosen. If every candidate comes at a
uniform time, none of L equal ones is accepted before time s with probability (1 - s p)^L, for s <= 1. So the
run is first accepted at s = (1 - V^(1/L)) / p, with V uniform, and the least s wins: a run of 2^80
candidates takes one uniform number. The best candidate is accepted whenever it comes, so no s > 1 can win,
where the formula has no meaning.

Floats with a margin drop the runs that cannot win. The others are compared by enclosures, with more digits
while they matter. Ties have probability zero, so it ends, and no choice depends on rounding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final, TypeAlias

import numpy as np
from flint import arb, fmpz
from numpy.typing import NDArray

from partita.arrays import Floats, UInts
from partita.errors import check_data
from partita.trusted.noise.laws import Uniform, WordSource, enclose, precision

Lengths: TypeAlias = NDArray[Any] | Sequence[int]

SLACK: Final = 2.0**-36
"""Of every float, relative to the largest term of its sum: log, log1p and expm1 are right to 2^-50."""

_WORD: Final = 2.0**64
_LOG_WORD: Final = 64 * math.log(2)
_HALF: Final = np.uint64(1 << 63)
_ONE: Final = np.uint64(1)
_LAST: Final = np.uint64(2**64 - 1)
_FIRST_BITS: Final = 128  # working precision of the first comparison; it grows with the digits that are drawn


def choose_run(
    scores: NDArray[Any], lengths: Lengths, scale: Fraction, source: WordSource, *, fast: bool = True
) -> int:
    """The run in which permute-and-flip ends, for integer scores and lengths of at least one.

    Run i holds lengths[i] candidates of scores[i]; all candidates of a run are equally likely.
    """
    check_data(len(scores), "scores", "must hold at least one score", fix="offer a candidate")
    gaps = _find_gaps(scores)
    words = source.take(len(gaps))
    left = list(range(len(gaps)))
    if fast and source.bits == 64:
        left = _find_rivals(words, gaps, lengths, scale).tolist()
    times = [_Time(Uniform(source, int(words[i])), int(lengths[i]), int(gaps[i]) / scale) for i in left]
    return left[_find_least(times)]


def _find_gaps(scores: NDArray[Any]) -> NDArray[Any]:
    """How far each score is below the best; Python ints where 64 bits might not do."""
    best, least = int(scores.max()), int(scores.min())
    fits = -(2**62) < least <= best < 2**62
    return np.asarray(best - scores.astype(np.int64 if fits else object))


def _find_rivals(words: UInts, gaps: NDArray[Any], lengths: Lengths, scale: Fraction) -> NDArray[np.intp]:
    """The runs that may be the first, by bounds of ln s for all digits behind the first word.

    The best run has s <= 1. With a word below the last one, ln s is at least lift - ln(2^64 L): runs far
    below the best are dropped by that alone.
    """
    lift = gaps.astype(np.float64) * float(1 / scale)
    longest = math.log(max(int(np.max(np.asarray(lengths))), 1))
    near = np.flatnonzero((lift < _LOG_WORD + longest + 1.0) | (words == _LAST))
    words, lift, length = words[near], lift[near], np.asarray(lengths)[near].astype(np.float64)
    slack = SLACK * (65.0 + lift + np.log(length))
    with np.errstate(divide="ignore"):
        latest = np.where(words == 0, lift, _log_time(words, length) + lift) + slack
        soonest = np.where(words == _LAST, -np.inf, _log_time(words + _ONE, length) + lift) - slack
    return np.asarray(near[soonest <= latest.min()])


def _log_time(words: UInts, lengths: Floats) -> Floats:
    """ln(1 - V^(1/L)) at V = word / 2^64; words near the top have few digits, so 1 - V is taken there."""
    rest = (~words).astype(np.float64) + 1.0
    low = np.log(np.maximum(words.astype(np.float64), 0.5) / _WORD)
    logs = np.where(words >= _HALF, np.log1p(-np.where(words >= _HALF, rest, 0.0) / _WORD), low)
    return np.asarray(np.log(-np.expm1(logs / lengths)))


class _Time:
    """The time (1 - V^(1/L)) exp(lift) at which a run is first accepted, as far as V is drawn."""

    def __init__(self, uniform: Uniform, length: int, lift: Fraction) -> None:
        self.uniform, self._length, self._lift = uniform, length, lift
        self.soonest = self.latest = arb(0)

    def enclose(self) -> None:
        """Bounds for every V with these digits, at the working precision; the time falls as V grows."""
        grown, unit = enclose(self._lift).exp(), arb(fmpz(1) << self.uniform.bits)
        self.soonest = self._at(arb(fmpz(self.uniform.digits + 1)) / unit, grown)
        self.latest = self._at(arb(fmpz(self.uniform.digits)) / unit, grown) if self.uniform.digits else grown

    def _at(self, v: arb, grown: arb) -> arb:
        return -(v.log() / arb(fmpz(self._length))).expm1() * grown


def _find_least(times: Sequence[_Time]) -> int:
    """The place of the least time, with more digits of all that are left until one is."""
    left, bits = list(range(len(times))), _FIRST_BITS
    while len(left) > 1:
        with precision(bits):
            for place in left:
                times[place].enclose()
            best = left[0]
            for place in left[1:]:
                if times[place].latest < times[best].latest:
                    best = place
            left = [each for each in left if each == best or not times[each].soonest > times[best].latest]
        if len(left) > 1:
            for place in left:
                times[place].uniform.refine()
            bits += 2 * times[left[0]].uniform.bits
    return left[0]
