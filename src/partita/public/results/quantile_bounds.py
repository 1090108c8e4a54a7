"""Guaranteed bounds of a quantile by halving, from guaranteed bounds of single ranges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import final

from partita.public.axis.base.ranges import Term
from partita.public.base.checkpoint import checkpoint
from partita.public.views.slice import Along


def certain_cells(axis: Along, q: float, beta: float) -> tuple[int, int]:
    """Cells between which the true quantile lies, except with probability beta, whatever the data.

    Let E(x) be (1-q) times the count up to x, less q times the count beyond x: the true quantile is the
    least x where the true E is not negative, and E never falls. So a bound of E below zero says that the
    quantile lies beyond x, and one that is not says that it does not.
    """
    excess = lru_cache(maxsize=None)(_Excess(axis, q, beta).bounds)
    low = _halved(axis.size, lambda cell, step: excess(cell, step)[1] >= 0)
    high = _halved(axis.size, lambda cell, step: excess(cell, step)[0] >= 0)
    return min(low, high), max(low, high)


@final
@dataclass(frozen=True, eq=False)
class _Excess:
    """Bounds of E at the cells where halving may ask.

    Whatever was answered before, step d of a halving asks at one of 2^d cells: each of them takes its share
    of beta, so that all bounds that could be asked for hold together.
    """

    axis: Along
    q: float
    beta: float

    def bounds(self, cell: int, step: int) -> tuple[float, float]:
        """Between which values E lies at the cell in the middle of one of the parts of step `step`."""
        share = self.beta / (self.axis.size.bit_length() * 2.0**step) / 2
        least, most = self._counted(0, cell, share)
        fewest, others = self._counted(cell + 1, self.axis.size - 1, share)
        return (1 - self.q) * least - self.q * others, (1 - self.q) * most - self.q * fewest

    def _counted(self, low: int, high: int, beta: float) -> tuple[float, float]:
        if low > high:
            return 0.0, 0.0
        least, most = self.axis.answer(Term(low, high)).bounds(beta)
        return max(0.0, least), max(0.0, most)


def _halved(size: int, reached: Callable[[int, int], bool]) -> int:
    """The cell at which halving the cells 0, ..., size-1 ends; the last if nothing before it is reached."""
    low, high, step = 0, size - 1, 0
    while low < high:
        checkpoint()
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle, step) else (middle + 1, high)
        step += 1
    return low
