"""The binary decomposition of the slides: a value becomes one tuple for each of its binary digits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from partita.public.workload.decomposition.decomposition import Decomposition, Piece


@final
@dataclass(frozen=True)
class Binary(Decomposition):
    """Knots 1, 2, 4, ...: 2560 becomes 2048 and 512. A row has up to as many tuples as `top` has digits.

    >>> Binary(2560).knots[-2:], Binary(2560).most
    ((1024, 2048), 12)
    """

    top: int

    @property
    def knots(self) -> tuple[int, ...]:
        """A power of two for each digit of the top."""
        return tuple(1 << digit for digit in range(self.top.bit_length()))

    @property
    def unit(self) -> int:
        """A tuple is one unit of mass."""
        return 1

    @property
    def most(self) -> int:
        """A row of all ones has a tuple for every digit."""
        return len(self.knots)

    def pieces(self, values: NDArray[Any]) -> Iterator[Piece]:
        """The digits of each value, knot by knot."""
        for digit in range(len(self.knots)):
            yield Piece(np.full(values.shape, digit), values >> digit & 1)
