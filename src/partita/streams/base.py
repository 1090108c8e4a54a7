"""What every counter under continual observation can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partita.guarantee import Guarantee

__all__ = ["ContinualCounter", "Floats", "Running"]

Floats = NDArray[np.float64]


class Running(NamedTuple):
    """The last output of a counter, and how far it may be from the true count.

    `low` to `high` holds the true count of this period, but for probability beta; `everywhere` is how
    far any output of the whole horizon may be off, all at once, but for probability beta. Both hold
    for any stream.
    """

    value: float
    error: float
    low: float
    high: float
    everywhere: float


class ContinualCounter(ABC):
    """A running count that is published once in every period.

    A period is a stretch of public time. `update(x)` closes one period in which x was counted and returns
    what is published for it. Periods, outputs and their times never depend on what is counted: call
    it by the clock, with 0 if nothing came. `guarantee` is None if the noise was injected.

    Outputs are multiples of `granularity`, a power of two at most 1. As floats they are exact up to 2^53 of
    these, and rounded beyond; `exact` is never rounded.
    """

    name: ClassVar[str]

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
