"""A count plus errors that never see it."""

from __future__ import annotations

import os
import weakref
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Any, ClassVar, Final, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partita.arrays import integer_array
from partita.errors import EntropyError, HorizonReached, InvalidData, InvalidParameter, InvalidState
from partita.exact import failure, integer
from partita.noise.protocol import IntegerArray, Noise
from partita.noise.system import SYSTEM
from partita.noise.words import Uncopyable
from partita.streams.base import LARGEST, ContinualCounter, Floats, Running, Terms, counted
from partita.streams.bounds import Mix
from partita.streams.integers import Row
from partita.streams.state import Fields, pack, unpack

__all__ = ["ErrorPath", "NoisyCount"]

_LOWEST: Final = -LARGEST
_SAFE: Final = 2**61
_VERSION: Final = 1


class ErrorPath(Protocol):
    """By how much the error of the outputs grows, period after period, in units of the granularity."""

    def step(self) -> int:
        """In the next period."""

    def many(self, periods: int) -> IntegerArray:
        """In each of the next periods."""

    def skip(self, periods: int) -> int:
        """In the next periods together."""

    def fields(self) -> dict[str, Row]:
        """What is drawn, as rows of a state whose lengths are public."""

    def restore(self, fields: dict[str, list[int]], periods: int) -> None:
        """Go on after so many periods with what was drawn before; `InvalidState` if it does not fit."""


class NoisyCount(ContinualCounter, Uncopyable):
    """A counter whose outputs are the count so far and the errors of a path so far.

    Its noise is in memory: it cannot be copied, does not go on in a forked child, and is not pan-private.
    If it is interrupted in the middle of a step, it is broken for good; go on from its last state.
    """

    _alive: ClassVar[weakref.WeakSet[NoisyCount]] = weakref.WeakSet()

    def __init__(
        self,
        *,
        terms: Terms,
        horizon: int | None,
        bits: int,
        path: ErrorPath,
        secure: bool,
    ) -> None:
        self.terms = terms
        self.horizon = horizon
        self.guarantee = terms.guarantee if secure else None
        self.granularity = Fraction(1, 1 << bits)
        self._bits, self._fine, self._path = bits, 1 << bits, path
        self._periods, self._units = 0, 0
        self._end = LARGEST if horizon is None else horizon
        self._broken = False
        self._alive.add(self)

    @classmethod
    def after_fork(cls) -> None:
        """In a child: no counter goes on where its parent was."""
        for counter in list(cls._alive):
            counter._broken = True

    @property
    def periods(self) -> int:
        """How many periods are closed."""
        return self._periods

    @property
    def exact(self) -> Fraction:
        """The last output; 0 before the first."""
        return Fraction(self._units, 1 << self._bits)

    def update(self, x: int = 0) -> float:
        """Close one period in which x was counted: its output."""
        if type(x) is not int or not _LOWEST < x < LARGEST:
            x = counted(x)
        if self._broken or self._periods == self._end:
            self._make_room(1)
        self._broken = True
        self._units = units = self._units + (x << self._bits) + self._path.step()
        self._periods += 1
        self._broken = False
        return units / self._fine

    def update_many(self, xs: ArrayLike) -> Floats:
        """Close a period for each number: all outputs. The same law as one by one."""
        counts = _counts(xs)
        self._make_room(counts.size)
        with self._step():
            outputs = _running(self._units, counts, self._path.many(counts.size), self._bits)
            self._units = int(outputs[-1]) if outputs.size else self._units
            self._periods += counts.size
        return np.asarray(outputs / (1 << self._bits), dtype=np.float64)

    def advance(self, periods: int) -> None:
        """Close periods in which nothing was counted; only the last of their outputs is published."""
        periods = integer(periods, "periods", low=0, high=LARGEST)
        self._make_room(periods)
        with self._step():
            self._units += self._path.skip(periods)
            self._periods += periods

    def answer(self, beta: float = 0.05) -> Running:
        """The last output with its error: for this period, and for all periods at once."""
        chance = float(failure(beta))
        law = self._law()
        reach = law.reach(chance)
        return Running(
            value=self.value,
            error=law.variance**0.5,
            low=self.value - reach,
            high=self.value + reach,
            everywhere=self._everywhere(chance),
        )

    def variance(self) -> float:
        """The variance of the last output."""
        return self._law().variance

    @abstractmethod
    def variances(self, periods: ArrayLike) -> Floats:
        """The variance of the output after each of these numbers of periods, whenever it is published."""

    def state(self) -> bytes:
        """Everything that is needed to go on later: secret. Two counters must not go on from one state."""
        self._make_room(0)
        fields: Fields = {
            "terms": self.terms.packed(),
            "shape": self._shape(),
            "count": [self._periods, self._units, int(self.guarantee is not None)],
            **self._path.fields(),
        }
        return pack(self.name, _VERSION, fields)

    @classmethod
    def from_state(cls, state: bytes, *, noise: Noise = SYSTEM) -> Self:
        """The counter that gave this state; anything else is an `InvalidState`."""
        fields = unpack(state, cls.name, _VERSION)
        try:
            counter = cls._fresh(Terms.unpacked(fields["terms"]), fields["shape"], noise)
            counter._resume(fields)
        except (LookupError, ValueError, TypeError, OverflowError):
            raise InvalidState(
                "state", f"must be of a counter {cls.name!r}", fix="restore it from where it was stored"
            ) from None
        return counter

    def _resume(self, fields: dict[str, list[int]]) -> None:
        self._periods, self._units, secure = fields["count"]
        self._make_room(0)
        self._path.restore(fields, self._periods)
        self.guarantee = self.guarantee if secure else None

    @abstractmethod
    def _shape(self) -> Sequence[int]:
        """The public numbers that this counter was made with, besides its terms."""

    @classmethod
    @abstractmethod
    def _fresh(cls, terms: Terms, shape: Sequence[int], noise: Noise) -> Self:
        """A counter of this shape before its first period."""

    @abstractmethod
    def _law(self) -> Mix:
        """The noise in the last output."""

    @abstractmethod
    def _everywhere(self, beta: float) -> float:
        """How far any output may be off, all at once."""

    def _make_room(self, periods: int) -> None:
        if self._broken:
            raise EntropyError("this counter was interrupted or forked in a step; go on from its last state")
        if periods > (left := self._end - self._periods):
            raise HorizonReached(
                f"the counter has {left} periods left; nothing was counted, start a new one for what comes"
            )

    def _within(self, periods: ArrayLike) -> NDArray[np.int64]:
        """Numbers of periods that this counter has, as an array."""
        after = integer_array(periods, "periods")
        if after.size and not 0 <= int(after.min()) <= int(after.max()) <= self._end:
            raise InvalidParameter(
                "periods", f"must lie between 0 and {self._end}", given=periods, fix="ask within the horizon"
            )
        return after.astype(np.int64)

    @contextmanager
    def _step(self) -> Iterator[None]:
        """A step is done or the counter is broken: noise that was used once must not be used again."""
        self._broken = True
        yield
        self._broken = False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=NoisyCount.after_fork)


def _counts(xs: ArrayLike) -> IntegerArray:
    """What was counted in each period, as int64."""
    counts = integer_array(xs, "xs")
    if counts.ndim != 1:
        raise InvalidData("xs", "must have one dimension", fix="pass one number for each period")
    if counts.size and not (int(counts.min()) > -LARGEST and int(counts.max()) < LARGEST):
        raise InvalidData("xs", "must lie between -2^62 and 2^62", fix="count in ints")
    return counts.astype(np.int64, copy=False)


def _running(units: int, counts: IntegerArray, errors: IntegerArray, bits: int) -> Any:
    """All outputs, as int64 if nothing can overflow, else as Python ints."""
    largest = [max(-int(array.min(initial=0)), int(array.max(initial=0))) for array in (counts, errors)]
    room = abs(units) + counts.size * ((largest[0] << bits) + largest[1])
    dtype = np.int64 if room < _SAFE else object
    outputs: Any = counts.astype(dtype) << bits
    outputs += errors.astype(dtype, copy=False)
    np.cumsum(outputs, out=outputs)
    outputs += units
    return outputs
