"""The hat decomposition: a value becomes two masses on the knots around it, which add up to one row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

from numpy.typing import NDArray

from partita.lazy.cached import cached_property
from partita.public.sums.knots.hats import Hats
from partita.public.sums.knots.knots import Knots
from partita.public.workload.decomposition.decomposition import Decomposition, Piece
from partita.public.workload.decomposition.octaves import octave_tops


@final
@dataclass(frozen=True)
class Hat(Decomposition):
    """Knots 0, ..., c/16, c/4, c, with c the first power of two that is at least `top`.

    A row has the mass `unit` whatever its value, so that sums over knots have the sensitivity of a count.

    >>> Hat(2560).knots[-3:], Hat(2560).most == Hat(2560).unit
    ((256, 1024, 4096), True)
    """

    top: int

    @property
    def knots(self) -> tuple[int, ...]:
        """Zero, and a power of two for every factor of four."""
        return self._hats.knots.offsets

    @property
    def unit(self) -> int:
        """The mass of a row."""
        return self._hats.unit

    @property
    def most(self) -> int:
        """Exactly this, for every value."""
        return self._hats.unit

    @property
    def rounding(self) -> float:
        """Nothing for knots up to 2^32; above that masses are rounded down."""
        return self._hats.rounding

    def pieces(self, values: NDArray[Any]) -> Iterator[Piece]:
        """The lower knot of each value, then the upper one."""
        first, mass = self._hats.laid(values)
        for side in range(2):
            yield Piece(first + side, mass[:, side])

    @cached_property
    def _hats(self) -> Hats:
        return Hats(Knots(octave_tops(self.top)[-1]))
