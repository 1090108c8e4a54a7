"""Randomizers on whole columns: the draws of many people at once, as NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
from numpy.typing import NDArray

from partita.arrays import as_array
from partita.local.randomizer.law import clamped
from partita.trusted.noise.laws.uniforms import Bools, chances, flags, integers_below
from partita.trusted.noise.laws.words import UInts, Words, WordSource

if TYPE_CHECKING:
    from partita.local.randomizer.law import LocalLaw

Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]

_BLOCK: Final = 1 << 14
_BLOCK_BYTES: Final = 1 << 22
"""So many people at a time: what they draw stays near the processor."""


@final
class Columns:
    """Draws for `count` people, independent of each other, from one source of words."""

    def __init__(self, count: int, source: WordSource) -> None:
        self._count = count
        self._source = source

    def chance(self, threshold: int | UInts) -> Bools:
        """True with probability exactly threshold / 2^64."""
        return chances(self._source, threshold, self._count)

    def below(self, count: int) -> Ints:
        """Uniform among 0, ..., count-1, exactly."""
        return integers_below(self._source, count, self._count)

    def row(self, threshold: int, width: int) -> Bytes:
        """Packed rows of `width` bits, each of them one with probability exactly threshold / 2^64."""
        drawn = flags(self._source, threshold, self._count * width)
        return np.packbits(drawn.reshape(self._count, width), axis=1, bitorder="little")

    def choose(self, condition: Bools, yes: Ints, no: Ints) -> Ints:
        """`yes` where the condition holds, else `no`."""
        return np.where(condition, yes, no)

    def with_bit(self, row: Bytes, place: Ints, bit: Ints) -> Bytes:
        """The rows with this bit at this place of each."""
        people, byte, shift = np.arange(len(row)), place >> 3, (place & 7).astype(np.uint8)
        kept = row[people, byte] & ~(np.uint8(1) << shift)
        row[people, byte] = kept | (bit.astype(np.uint8) << shift)
        return row

    def ramp(self, start: int, step: int, x: Ints) -> UInts:
        """The threshold start + step x of each person."""
        return np.uint64(start) + np.uint64(step) * x.astype(np.uint64)

    def each(self, part: Ints, samplers: Sequence[Callable[[Ints, Columns], Ints]], x: Ints) -> Ints:
        """For each person what the sampler of their part makes of x, with draws of their own."""
        made = np.empty(self._count, dtype=np.int64)
        for number, sampler in enumerate(samplers):
            people = np.flatnonzero(part == number)
            if people.size:
                made[people] = sampler(x[people], Columns(people.size, self._source))
        return made


def randomized(randomizer: LocalLaw, cells: object, words: WordSource | None) -> Any:
    """A report for every cell, block by block: a column of ints, or of rows of bytes."""
    source, xs = Words() if words is None else words, clipped(cells, randomizer.size)
    length = max(1, min(_BLOCK, _BLOCK_BYTES // randomizer.report_bytes))
    starts = range(0, len(xs), length) or range(1)
    blocks = [xs[start : start + length] for start in starts]
    return np.concatenate([randomizer.sample(block, Columns(len(block), source)) for block in blocks])


def clipped(cells: object, size: int) -> Ints:
    """The nearest cell of each; what is no whole number goes to the first cell. No row raises."""
    given = as_array(cells, "values", None if hasattr(cells, "dtype") else object)
    if given.dtype.kind in "iub":
        return given.ravel().clip(0, size - 1).astype(np.int64)
    return np.array([clamped(cell, size) for cell in given.ravel().tolist()], dtype=np.int64)
