"""What goes on step by step, once: not copied, not forked, not past its end."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partita.arrays import integer_array
from partita.errors import EntropyError, HorizonReached, InvalidData, InvalidState
from partita.noise.words import Uncopyable
from partita.streams.base import LARGEST, Terms

__all__ = ["Stepping", "counts_of", "misfit", "packed_text", "unpacked_text"]


class Stepping(Uncopyable):
    """Keeps the terms and the clock of a counter whose noise is in memory.

    It cannot be copied and does not go on in a forked child. If it is interrupted in the middle of a step,
    it is broken for good; go on from its last state.
    """

    def __init__(self, *, terms: Terms, horizon: int | None, secure: bool, periods: int = 0) -> None:
        self.terms = terms
        self.horizon = horizon
        self.guarantee = terms.guarantee if secure else None
        self._periods = periods
        self._owner, self._broken = os.getpid(), False
        if not 0 <= periods <= (horizon or LARGEST):
            raise misfit("lie within its horizon")

    @property
    def periods(self) -> int:
        """How many periods are closed."""
        return self._periods

    def _make_room(self, periods: int) -> None:
        """Refuse what goes past the end, before anything is counted."""
        if self._broken or os.getpid() != self._owner:
            raise EntropyError("this counter was interrupted or forked in a step; go on from its last state")
        left = (self.horizon or LARGEST) - self._periods
        if periods > left:
            raise HorizonReached(
                f"the counter has {left} periods left; nothing was counted, start a new one for what comes"
            )

    @contextmanager
    def _step(self) -> Iterator[None]:
        """A step is done or the counter is broken: noise that was used once must not be used again."""
        self._broken = True
        yield
        self._broken = False


def counts_of(xs: ArrayLike, *, dimensions: int = 1, limit: int = LARGEST) -> NDArray[np.int64]:
    """What was counted in each period, as int64."""
    counts = integer_array(xs, "xs")
    if counts.ndim != dimensions:
        raise InvalidData("xs", f"must have {dimensions} dimensions", fix="pass a number for each period")
    if counts.size and not (int(counts.min()) > -limit and int(counts.max()) < limit):
        bits = limit.bit_length() - 1
        raise InvalidData("xs", f"must lie between -2^{bits} and 2^{bits}", fix="count in ints")
    return counts.astype(np.int64)


def misfit(rule: str) -> InvalidState:
    """The error for a state whose parts do not fit each other."""
    return InvalidState("state", f"must {rule}", fix="restore it from where it was stored")


def packed_text(data: bytes) -> NDArray[np.int64]:
    """Bytes as a row of a state."""
    return np.frombuffer(data, dtype=np.uint8).astype(np.int64)


def unpacked_text(row: list[int]) -> bytes:
    """The bytes in a row of a state."""
    try:
        return bytes(row)
    except ValueError:
        raise misfit("hold bytes") from None
