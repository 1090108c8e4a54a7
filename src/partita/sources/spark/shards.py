"""Public shards of a universe: by its size and by how many tasks run side by side, never by data."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, final

from pyspark.sql import functions as sf

from partita.sources.spark.numbers import SHIFT

__all__ = ["Shards"]

_WHOLE: Final = 2**20
"""A universe of so many cells is not split: one executor has room for all of them."""


@final
@dataclass(frozen=True)
class Shards:
    """Ranges of cells, one behind the other, each of which is cut by one task.

    >>> Shards.of(2**24, parts=2)
    Shards(bounds=(0, 1048576, 4194304, 8388608, 16777216))
    """

    bounds: tuple[int, ...]

    @staticmethod
    def of(size: int, *, parts: int) -> Shards:
        """The universe in equal parts, of which the first is split again at powers of four.

        Numbers that people count are small, most of them: where they lie, shards are short.
        """
        if size <= _WHOLE:
            return Shards((0, size))
        equal = {size * part // parts for part in range(1, parts)}
        first = min(equal, default=size)
        powers = {2**bits for bits in range(_WHOLE.bit_length() - 1, first.bit_length(), 2)} - {first}
        return Shards((0, *sorted(equal | powers), size))

    @property
    def ranges(self) -> list[range]:
        """The shards in order."""
        return [range(low, high) for low, high in pairwise(self.bounds)]

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def number(self, cell: Any) -> Any:
        """The number of the shard that a cell lies in, both as columns of Spark."""

        def among(low: int, high: int) -> Any:
            """Halving, so that few comparisons find one of many."""
            if high - low == 1:
                return sf.lit(low)
            middle = (low + high) // 2
            bound = sf.lit(self.bounds[middle] - SHIFT)
            return sf.when(cell < bound, among(low, middle)).otherwise(among(middle, high))

        return among(0, len(self))
