"""A count plus errors that never see it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partita.arrays import integer_array
from partita.errors.errors import InvalidParameter
from partita.numbers import failure, integer
from partita.public.streams.terms import LARGEST, Terms
from partita.trusted.noise.system.protocol import IntegerArray
from partita.trusted.streams.base.base import ContinualCounter, Floats, Running, counted, counts_of
from partita.trusted.streams.base.integers import Row
from partita.trusted.streams.base.state import Fields
from partita.trusted.streams.base.stepping import Stepping
from partita.trusted.streams.counter.bounds import Mix

_LOWEST: Final = -LARGEST
_SAFE: Final = 2**61
_AT_ONCE: Final = 2**18


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


class NoisyCount(Stepping, ContinualCounter):
    """A counter whose outputs are the count so far and the errors of a path so far.

    Noise for what comes is in memory: it is not pan-private.
    """

    def __init__(
        self,
        *,
        terms: Terms,
        horizon: int | None,
        bits: int,
        path: ErrorPath,
        secure: bool,
    ) -> None:
        super().__init__(terms=terms, horizon=horizon, secure=secure)
        self.granularity = Fraction(1, 1 << bits)
        self._bits, self._fine, self._path = bits, 1 << bits, path
        self._units = 0

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
        counts = counts_of(xs)
        self._make_room(counts.size)
        outputs = np.empty(counts.size)
        with self._step():
            for first in range(0, counts.size, _AT_ONCE):
                some = slice(first, first + _AT_ONCE)
                outputs[some] = self._closed(counts[some])
        return outputs

    def _closed(self, counts: IntegerArray) -> Floats:
        """The outputs of some periods, few enough to stay in the processor's memory."""
        units = _running(self._units, counts, self._path.many(counts.size), self._bits)
        self._units = int(units[-1])
        self._periods += counts.size
        return np.asarray(units / (1 << self._bits), dtype=np.float64)

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
        return self._law().around(self.value, chance, everywhere=self._everywhere(chance))

    def variance(self) -> float:
        """The variance of the last output."""
        return self._law().variance

    @abstractmethod
    def variances(self, periods: ArrayLike) -> Floats:
        """The variance of the output after each of these numbers of periods, whenever it is published."""

    def _fields(self) -> Fields:
        return {"shape": self._shape(), "units": [self._units], **self._path.fields()}

    def _restore(self, fields: dict[str, list[int]]) -> None:
        (self._units,) = fields["units"]
        self._path.restore(fields, self._periods)

    @abstractmethod
    def _shape(self) -> Sequence[int]:
        """The public numbers that this counter was made with, besides its terms."""

    @abstractmethod
    def _law(self) -> Mix:
        """The noise in the last output."""

    @abstractmethod
    def _everywhere(self, beta: float) -> float:
        """How far any output may be off, all at once."""

    def _within(self, periods: ArrayLike) -> NDArray[np.int64]:
        """Numbers of periods that this counter has, as an array."""
        after = integer_array(periods, "periods")
        if after.size and not 0 <= int(after.min()) <= int(after.max()) <= self._end:
            fix = "ask within the horizon"
            raise InvalidParameter("periods", f"must lie between 0 and {self._end}", given=periods, fix=fix)
        return after.astype(np.int64)


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
