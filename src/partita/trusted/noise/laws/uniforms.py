"""Columns of uniform draws, exact and columnar: comparisons with a threshold, and integers below a bound."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from partita.errors.errors import InvalidParameter
from partita.trusted.noise.laws.tables import Ints
from partita.trusted.noise.laws.words import UInts, WordSource

Bools = NDArray[np.bool_]

_BYTE_BITS: Final = 8


def chances(source: WordSource, threshold: int | UInts, count: int) -> Bools:
    """`count` comparisons, each true with probability exactly threshold / 2^bits; one word each.

    A threshold may be an array with one entry for each comparison.
    """
    words = source.take(count)
    if isinstance(threshold, int) and threshold >> source.bits:
        return np.ones(count, dtype=bool)
    return words < np.asarray(threshold, dtype=np.uint64)


def flags(source: WordSource, threshold: int, count: int) -> Bools:
    """`count` comparisons of 64 bits with a threshold below 2^64, each for little more than a byte.

    The first byte decides unless it equals the first byte of the threshold. Then the 56 lowest bits of
    one more word are compared with the rest of the threshold.
    """
    words = source.take(-(-count // _BYTE_BITS))
    first = words.view(np.uint8)[:count]
    top, rest = threshold >> 56, threshold & ((1 << 56) - 1)
    found: Bools = first < top
    open_ones = np.flatnonzero(first == top)
    more = source.take(open_ones.size) & np.uint64((1 << 56) - 1)
    found[open_ones] = more < np.uint64(rest)
    return found


def integers_below(source: WordSource, bound: int, count: int) -> Ints:
    """`count` integers, each uniform among 0, ..., bound-1, exactly.

    A word beyond the last whole multiple of the bound is drawn again. How often that happens has
    nothing to do with anybody's data.
    """
    if not 1 <= bound <= 1 << min(source.bits, 63):
        raise InvalidParameter("bound", "must lie between 1 and 2^63", given=bound, fix="lower it")
    words = source.take(count)
    last = (1 << source.bits) // bound * bound - 1
    again = np.flatnonzero(words > np.uint64(last))
    if again.size:
        words = words.copy()
    while again.size:
        words[again] = source.take(again.size)
        again = again[words[again] > np.uint64(last)]
    whole = np.uint64(bound)
    return (words - words // whole * whole).astype(np.int64)
