"""Public shards of a universe: by its size and by how many there shall be at most, never by data."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, final

from pyspark.sql import functions as sf

from partita.trusted.sources.spark.counts.numbers import SHIFT

_WHOLE: Final = 20
"""As a power of two, a number of cells that one executor has room for: no shard needs to be shorter."""


@final
@dataclass(frozen=True)
class Shards:
    """Ranges of cells, one behind the other, each of which is cut by one task.

    They are equal parts of 2^bits cells, of which the first is split again at powers of four: numbers that
    people count are small, most of them, and where they lie, shards are short. Spark finds the part of a
    cell by a shift, however many there are.

    >>> Shards.of(2**24, parts=2).bounds == (0, 2**20, 2**22, 2**23, 2**24)
    True
    """

    size: int
    bits: int

    @staticmethod
    def of(size: int, *, parts: int) -> Shards:
        """The universe in at most so many equal parts, but for the last, which may be shorter."""
        width = -(-size // parts)
        return Shards(size, max(_WHOLE, (width - 1).bit_length()))

    @property
    def bounds(self) -> tuple[int, ...]:
        """Where each shard starts, and where the last one ends."""
        width = 2**self.bits
        return (0, *self._inner, *range(width, self.size, width), self.size)

    @property
    def ranges(self) -> list[range]:
        """The shards in order."""
        return [range(low, high) for low, high in pairwise(self.bounds)]

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def number(self, cell: Any) -> Any:
        """The number of the shard that a cell lies in, both as columns of Spark."""
        unshifted = cell.bitwiseXOR(sf.lit(-SHIFT))
        part = sf.shiftrightunsigned(unshifted, self.bits) if self.bits < 64 else sf.lit(0)
        passed = [(cell >= sf.lit(bound - SHIFT)).cast("int") for bound in self._inner]
        return sum(passed, part.cast("int"))

    @property
    def _inner(self) -> list[int]:
        """Where the first part is split."""
        powers = (2**bits for bits in range(_WHOLE, self.bits, 2))
        return [power for power in powers if power < self.size]
