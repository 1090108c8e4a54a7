"""What every counter under continual observation can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partita.arrays import integer_array
from partita.errors.checks import check_data
from partita.errors.errors import HorizonReached, InvalidData, InvalidParameter
from partita.errors.unchained import unchained
from partita.guarantee.guarantee import Guarantee
from partita.numbers import integer
from partita.public.streams.terms import LARGEST, Terms

Floats = NDArray[np.float64]


class Running(NamedTuple):
    """The last output of a counter, and how far it may be from the true count.

    `low` to `high` holds the true count of this period, but for probability beta. `everywhere` is how far
    any of many outputs may be off, all at once, but for probability beta: of those in the horizon, or up to
    the end of the present tree or block where there is none. For a sparse counter it is all outputs so far,
    for a sliding one any `window` outputs on end. Both hold for any stream, or as `answer` says.
    """

    value: float
    error: float
    low: float
    high: float
    everywhere: float

    def _repr_html_(self) -> str:
        from partita.trusted.streams.plot.html import running_card

        return running_card(self)


class ContinualCounter(ABC):
    """A running count that is published once in every period.

    A period is a stretch of public time. `update(x)` closes one period in which x was counted and returns
    what is published for it. Periods, outputs and their times never depend on what is counted: call
    it by the clock, with 0 if nothing came, and from one thread at a time. `guarantee` is None if the noise
    was injected.

    Outputs are multiples of `granularity`, a power of two at most 1. As floats they are exact up to 2^53 of
    these, and rounded beyond; `exact` is never rounded.
    """

    name: ClassVar[str]

    terms: Terms
    guarantee: Guarantee | None
    horizon: int | None
    """The number of periods, if it is known beforehand."""

    granularity: Fraction

    @property
    @abstractmethod
    def periods(self) -> int:
        """How many periods are closed."""

    @property
    @abstractmethod
    def exact(self) -> Fraction:
        """The last output; 0 before the first."""

    @abstractmethod
    def update(self, x: int = 0) -> float:
        """Close one period in which x was counted: its output."""

    @abstractmethod
    def update_many(self, xs: ArrayLike) -> Floats:
        """Close a period for each number: all outputs. The same law as one by one."""

    @abstractmethod
    def advance(self, periods: int) -> None:
        """Close periods in which nothing was counted; only the last of their outputs is published."""

    @abstractmethod
    def answer(self, beta: float = 0.05) -> Running:
        """The last output with its error: for this period, and for all periods at once."""

    @abstractmethod
    def state(self) -> bytes:
        """Everything that is needed to go on later: secret, unless the counter is pan-private."""

    @classmethod
    @abstractmethod
    def from_state(cls, state: bytes) -> Self:
        """The counter that gave this state; anything else is an `InvalidState`."""

    @property
    def value(self) -> float:
        """The last output; 0 before the first."""
        return float(self.exact)

    def _repr_html_(self) -> str:
        from partita.trusted.streams.plot.html import counter_card

        return counter_card(self)


def counted(x: object) -> int:
    """What was counted in a period, as an int; no error shows it."""
    if type(x) is int and -LARGEST < x < LARGEST:
        return x
    failure = InvalidData("x", "must be an integer between -2^62 and 2^62", fix="count in ints")
    return unchained(lambda: integer(x, "x", low=1 - LARGEST, high=LARGEST - 1), failure, InvalidParameter)


def counts_of(xs: ArrayLike, *, dimensions: int = 1, limit: int = LARGEST) -> NDArray[np.int64]:
    """What was counted in each period, as int64; no error shows it."""
    counts = integer_array(xs, "xs")
    fix = "pass a number for each period"
    check_data(counts.ndim == dimensions, "xs", f"must have {dimensions} dimension(s)", fix=fix)
    if counts.size and not (int(counts.min()) > -limit and int(counts.max()) < limit):
        bits = limit.bit_length() - 1
        raise InvalidData("xs", f"must lie between -2^{bits} and 2^{bits}", fix="count in ints")
    return counts.astype(np.int64, copy=False)


def horizon_reached(left: int) -> HorizonReached:
    """The error for a counter with so many periods left, which were too few."""
    return HorizonReached(
        f"the counter has {left} periods left; nothing was counted, start a new one for what comes"
    )
