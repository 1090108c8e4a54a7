"""What goes on step by step, once: not copied, not forked, not past its end."""

from __future__ import annotations

import os
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar, Final, Self

from partita.errors.errors import EntropyError
from partita.numbers import integer
from partita.public.streams.terms import LARGEST, Terms, misfit
from partita.trusted.noise.laws.words import Uncopyable
from partita.trusted.noise.system.protocol import Noise
from partita.trusted.noise.system.system import SYSTEM
from partita.trusted.streams.base.base import horizon_reached
from partita.trusted.streams.base.state import Fields, pack, unpack

_VERSION: Final = 1


class Stepping(ABC, Uncopyable):
    """Keeps the terms, the clock and the state of a counter.

    It cannot be copied and does not go on in a forked child. If it is interrupted in the middle of a step,
    it is broken for good; go on from its last state.
    """

    name: ClassVar[str]

    _alive: ClassVar[weakref.WeakSet[Stepping]] = weakref.WeakSet()

    def __init__(self, *, terms: Terms, horizon: int | None, secure: bool) -> None:
        self.terms = terms
        self.horizon = horizon
        self.guarantee = terms.guarantee if secure else None
        self._periods = 0
        self._end = LARGEST if horizon is None else horizon
        self._broken = False
        self._alive.add(self)

    @classmethod
    def after_fork(cls) -> None:
        """In a child: no counter goes on where its parent was."""
        for counter in list(cls._alive):
            counter._abandon()

    @property
    def periods(self) -> int:
        """How many periods are closed."""
        return self._periods

    def state(self) -> bytes:
        """Everything that is needed to go on later: secret. Two counters must not go on from one state."""
        return self._packed(self._fields())

    @classmethod
    def from_state(cls, state: bytes, *, noise: Noise = SYSTEM) -> Self:
        """The counter that gave this state; anything else is an `InvalidState`."""
        fields = unpack(state, cls.name, _VERSION)
        try:
            counter = cls._fresh(Terms.unpacked(fields["terms"]), fields, noise)
            periods, secure = fields["clock"]
            counter._periods = integer(periods, "periods", low=0, high=counter._end)
            counter._restore(fields)
        except (LookupError, ValueError, TypeError, OverflowError):
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

    def _packed(self, fields: Fields) -> bytes:
        """A state with these rows after the terms and the clock."""
        self._make_room(0)
        common: Fields = {
            "terms": self.terms.packed(),
            "clock": [self._periods, int(self.guarantee is not None)],
        }
        return pack(self.name, _VERSION, {**common, **fields})

    def _make_room(self, periods: int) -> None:
        """Refuse what goes past the end, before anything is counted."""
        if self._broken:
            raise EntropyError("this counter was interrupted or forked in a step; go on from its last state")
        if periods > self._end - self._periods:
            raise horizon_reached(self._end - self._periods)

    @contextmanager
    def _step(self) -> Iterator[None]:
        """A step is done or the counter is broken: noise that was used once must not be used again."""
        self._broken = True
        try:
            yield
        except BaseException:
            self._abandon()
            raise
        self._broken = False

    def _abandon(self) -> None:
        """Never go on."""
        self._broken = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=Stepping.after_fork)
