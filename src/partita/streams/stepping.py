"""What goes on step by step, once: not copied, not forked, not past its end."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar, Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partita.arrays import integer_array
from partita.errors import EntropyError, HorizonReached, InvalidData, InvalidState
from partita.exact import integer
from partita.noise.protocol import Noise
from partita.noise.system import SYSTEM
from partita.noise.words import Uncopyable
from partita.streams.base import LARGEST, Terms
from partita.streams.state import Fields, pack, unpack

__all__ = ["Stepping", "counts_of", "misfit"]

_VERSION: Final = 1


class Stepping(ABC, Uncopyable):
    """Keeps the terms, the clock and the state of a counter whose noise is in memory.

    It cannot be copied and does not go on in a forked child. If it is interrupted in the middle of a step,
    it is broken for good; go on from its last state.
    """

    name: ClassVar[str]

    def __init__(self, *, terms: Terms, horizon: int | None, secure: bool) -> None:
        self.terms = terms
        self.horizon = horizon
        self.guarantee = terms.guarantee if secure else None
        self._periods = 0
        self._owner, self._broken = os.getpid(), False

    @property
    def periods(self) -> int:
        """How many periods are closed."""
        return self._periods

    def state(self) -> bytes:
        """Everything that is needed to go on later: secret. Two counters must not go on from one state."""
        self._make_room(0)
        fields: Fields = {
            "terms": self.terms.packed(),
            "clock": [self._periods, int(self.guarantee is not None)],
            **self._fields(),
        }
        return pack(self.name, _VERSION, fields)

    @classmethod
    def from_state(cls, state: bytes, *, noise: Noise = SYSTEM) -> Self:
        """The counter that gave this state; anything else is an `InvalidState`."""
        fields = unpack(state, cls.name, _VERSION)
        try:
            counter = cls._fresh(Terms.unpacked(fields["terms"]), fields, noise)
            periods, secure = fields["clock"]
            counter._periods = integer(periods, "periods", low=0, high=counter.horizon or LARGEST)
            counter._restore(fields)
        except (KeyError, ValueError, TypeError, OverflowError):
            raise misfit(f"be of a counter {cls.name!r}") from None
        counter.guarantee = counter.guarantee if secure else None
        return counter

    @abstractmethod
    def _fields(self) -> Fields:
        """What it was made with and what it holds, as rows of a state whose lengths are public."""

    @classmethod
    @abstractmethod
    def _fresh(cls, terms: Terms, fields: dict[str, list[int]], noise: Noise) -> Self:
        """A counter that was made with the same, before its first period."""

    @abstractmethod
    def _restore(self, fields: dict[str, list[int]]) -> None:
        """Go on with what was held."""

    def _make_room(self, periods: int) -> None:
        """Refuse what goes past the end, before anything is counted."""
        if self._broken or os.getpid() != self._owner:
            raise EntropyError("this counter was interrupted or forked in a step; go on from its last state")
        left = (LARGEST if self.horizon is None else self.horizon) - self._periods
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
    """The error for a state that is not what it should be."""
    return InvalidState("state", f"must {rule}", fix="restore it from where it was stored")
