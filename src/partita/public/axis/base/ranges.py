"""What every release along one axis can do: answer any range of cells."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple, Self, TypeAlias

from numpy.typing import NDArray

from partita.answer import Answer
from partita.guarantee.guarantee import Guarantee
from partita.public.axis.curve.curve import Curve, Floats, UInts
from partita.public.base.kinds import ReleaseKind

Json: TypeAlias = bool | int | str | list["Json"] | dict[str, "Json"] | None


class Term(NamedTuple):
    """The cells low, ..., high, added (+1) or taken away (-1)."""

    low: int
    high: int
    sign: int = 1


class Parts(NamedTuple):
    """A release taken apart for a file: a few public facts, and flat arrays of integers by name.

    Facts hold no floats: rationals are text like "1/3". Arrays are int64, uint64, or Python ints
    (dtype object) where a noisy value does not fit.
    """

    facts: Mapping[str, Json]
    series: Mapping[str, NDArray[Any]]

    @property
    def digest(self) -> bytes:
        """A name for exactly what was released."""
        seen = hashlib.sha256(repr(sorted(self.facts.items())).encode())
        for name, values in sorted(self.series.items()):
            seen.update(f"{name} {values.size} ".encode())
            seen.update(repr(values.tolist()).encode() if values.dtype == object else values.tobytes())
        return seen.digest()


class Ranges(ReleaseKind, ABC):
    """Released counts over the cells 0, ..., size-1 of one axis.

    `guarantee` is None if the release was made with injected noise: it protects nobody.
    """

    size: int
    guarantee: Guarantee | None

    @property
    @abstractmethod
    def curve(self) -> Curve:
        """Cumulative counts: monotone, never negative."""

    @abstractmethod
    def answer(self, *terms: Term) -> Answer:
        """The signed sum of the terms as one linear question, with the standard error of exactly that."""

    @abstractmethod
    def counts(self, lows: UInts, highs: UInts) -> Floats:
        """The values that `answer` gives for many ranges low..high (both included, low <= high)."""

    @abstractmethod
    def errors(self, lows: UInts, highs: UInts) -> Floats:
        """The standard errors that `answer` gives for many ranges."""

    @abstractmethod
    def error(self, beta: float) -> float:
        """With probability 1 - beta no range at all misses the truth by more, whatever the data."""

    @property
    def story(self) -> str:
        """A sentence about what was chosen on the way, from released numbers; empty where nothing was."""
        return ""

    @abstractmethod
    def parts(self) -> Parts:
        """Everything that was released, taken apart for a file."""

    @classmethod
    @abstractmethod
    def from_parts(cls, parts: Parts, guarantee: Guarantee | None) -> Self:
        """The release that `parts` took apart; anything else is an `InvalidRelease`."""

    def count(self, low: int, high: int) -> Answer:
        """How many lie in the cells low, ..., high."""
        return self.answer(Term(low, high))
