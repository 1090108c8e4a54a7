"""Releases of one flat list of noisy counts: of every cell, of every interval, of every prefix.

Counts of cells have discrete Laplace or discrete Gaussian noise, the others discrete Laplace noise.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Final, Self, final

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answer, least_sum
from partita.arrays import Floats, UInts
from partita.guarantee import Guarantee
from partita.lazy import cached_property
from partita.numbers import check_probability
from partita.public.axis.base import AxisRelease, NoisyRow, NoisySum, Parts, PartsReader, Term
from partita.public.axis.curve import Curve, fit_curve
from partita.public.base import IMPORTED
from partita.public.bounds import Gaussian, NoiseLaw, Run, largest_reach

_ONE: Final = np.uint64(1)
_FITS_INT64: Final = 2**62
"""Differences of numbers below this fit in int64."""


@dataclass(frozen=True, eq=False, kw_only=True)
class RowRelease(AxisRelease):
    """Noisy counts in a row, all with noise of one law; a range is a signed sum of some of them.

    `guarantee` is None if the release was made with injected noise: it protects nobody.
    """

    max_series: ClassVar[int] = 1
    largest_size: ClassVar[int]
    fact: ClassVar[str] = "scale"
    """The name of the fact in files that tells the law."""

    noisy: NDArray[Any]
    size: int
    guarantee: Guarantee | None = None

    @staticmethod
    def length(size: int) -> int:
        """How many counts there are for an axis of `size` cells: one for each cell."""
        return size

    @property
    @abstractmethod
    def law(self) -> NoiseLaw:
        """The law of the noise of each count."""

    @abstractmethod
    def runs(self, low: int, high: int) -> Iterator[Run]:
        """The counts that make up the cells low, ..., high."""

    @property
    @abstractmethod
    def prefixes(self) -> Floats:
        """The answers for all ranges that begin with the first cell."""

    @cached_property
    def line(self) -> NoisyRow:
        """The counts with their noise."""
        return NoisyRow(self.noisy, self.law)

    @cached_property
    def curve(self) -> Curve:
        """The monotone curve closest to the answers for all prefixes."""
        return fit_curve(np.arange(self.size, dtype=np.uint64), self.prefixes)

    def answer(self, *terms: Term) -> Answer:
        """One linear combination of the counts; what is added and taken away cancels."""
        ranges = self._check_terms(terms)
        runs = ((a, b, sign * factor) for low, high, sign in ranges for a, b, factor in self.runs(low, high))
        return NoisySum.of([(self.line, runs)]).answer(least_sum(each.sign for each in ranges))

    def parts(self) -> Parts:
        """The noisy counts and the law of their noise."""
        return Parts({"size": self.size, self.fact: str(getattr(self, self.fact))}, {"noisy": self.noisy})

    @classmethod
    def from_parts(cls, parts: Parts, guarantee: Guarantee | None) -> Self:
        reader = PartsReader(parts)
        reader.expect(facts=("size", cls.fact), series=("noisy",))
        size = reader.integer("size", low=1, high=cls.largest_size)
        noisy = reader.noisy("noisy", count=cls.length(size))
        read = reader.variance if cls.fact == "variance" else reader.scale
        law: dict[str, Any] = {cls.fact: read(cls.fact)}
        return cls(noisy=noisy, size=size, guarantee=guarantee, **law)


@dataclass(frozen=True, eq=False, kw_only=True)
class FlatRelease(RowRelease):
    """Noisy counts in a row with discrete Laplace noise of one scale."""

    scale: Fraction

    @property
    def law(self) -> Fraction:
        """The scale."""
        return self.scale


@dataclass(frozen=True, eq=False, kw_only=True)
class CellsRelease(RowRelease):
    """The noisy count of each cell; a range is the sum of its cells.

    `imported` says that another library counted and drew the noise.
    """

    largest_size: ClassVar[int] = 2**24

    imported: bool = False

    def parts(self) -> Parts:
        """The noisy counts and the law of their noise; if they were imported, that they were."""
        return super().parts().with_flag(IMPORTED, self.imported)

    @classmethod
    def from_parts(cls, parts: Parts, guarantee: Guarantee | None) -> Self:
        plain, imported = parts.split_flag(IMPORTED)
        return replace(super().from_parts(plain, guarantee), imported=imported)

    def runs(self, low: int, high: int) -> Iterator[Run]:
        """The cells themselves."""
        yield low, high + 1, 1

    @property
    def prefixes(self) -> Floats:
        """Running sums."""
        return np.asarray(self.line.running[1:].astype(np.float64))

    def counts(self, lows: UInts, highs: UInts) -> Floats:
        """Sums of cells, by differences of running sums."""
        low, high = self._check_ranges(lows, highs)
        return self.line.sums(low, high + _ONE)

    def errors(self, lows: UInts, highs: UInts) -> Floats:
        """The standard errors of sums of cells, exactly."""
        low, high = self._check_ranges(lows, highs)
        return np.sqrt(((high - low).astype(np.float64) + 1.0) * self.line.variance)

    def error(self, beta: float) -> float:
        """The smaller of two bounds: every range at its share of beta, or all prefixes by Lévy's inequality.

        Noise is symmetric, so the largest of its running sums exceeds t at most twice as often as
        the last one does, and so below; a range is a difference of two running sums.
        """
        chance = float(check_probability(beta))
        ranges = self.size * (self.size + 1) // 2
        each = self.line.reach(self.size, chance / ranges)
        return min(each, 2 * self.line.reach(self.size, chance / 2))


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class HistogramRelease(CellsRelease, FlatRelease):
    """The noisy count of each cell, with discrete Laplace noise."""

    kind: ClassVar[str] = "histogram"
    papers: ClassVar[Mapping[str, tuple[str, ...]]] = {"histogram": ("DMNS06",)}


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class GaussianRelease(CellsRelease):
    """The noisy count of each cell, with discrete Gaussian noise."""

    kind: ClassVar[str] = "gaussian-histogram"
    papers: ClassVar[Mapping[str, tuple[str, ...]]] = {"gaussian-histogram": ("CKS20",)}
    fact: ClassVar[str] = "variance"

    variance: Fraction

    @property
    def law(self) -> Gaussian:
        """By its variance."""
        return Gaussian(self.variance)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class LaplaceRelease(FlatRelease):
    """The noisy count of every interval, in the order (0, 0), (0, 1), ..., (1, 1), (1, 2), ...

    Two intervals side by side do not add up to the interval that both make up: each has its own noise.
    """

    kind: ClassVar[str] = "laplace"
    papers: ClassVar[Mapping[str, tuple[str, ...]]] = {"laplace": ("SU",)}
    largest_size: ClassVar[int] = 1447

    @staticmethod
    def length(size: int) -> int:
        """One for each interval."""
        return size * (size + 1) // 2

    def runs(self, low: int, high: int) -> Iterator[Run]:
        """The interval itself."""
        place = self._place(low, high)
        yield place, place + 1, 1

    @property
    def prefixes(self) -> Floats:
        """The intervals that begin with the first cell."""
        return self.noisy[: self.size].astype(np.float64)

    def counts(self, lows: UInts, highs: UInts) -> Floats:
        """The intervals themselves."""
        low, high = self._check_ranges(lows, highs)
        places: NDArray[Any] = self._place(low.astype(np.int64), high.astype(np.int64))
        return np.asarray(self.noisy[places].astype(np.float64))

    def errors(self, lows: UInts, highs: UInts) -> Floats:
        """One standard error for all."""
        low, _ = self._check_ranges(lows, highs)
        return np.full(low.shape, self.line.variance**0.5)

    def error(self, beta: float) -> float:
        """The largest of all noises, by the exact tail of each."""
        return largest_reach(self.scale, self.noisy.size, float(check_probability(beta)))

    def _place(self, low: Any, high: Any) -> Any:
        """Where an interval stands: behind those that begin before it and those that end before it."""
        return low * self.size - low * (low - 1) // 2 + high - low


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class ThresholdRelease(FlatRelease):
    """The noisy count of the cells 0, ..., t for every cell t; a range is the difference of two."""

    kind: ClassVar[str] = "thresholds"
    papers: ClassVar[Mapping[str, tuple[str, ...]]] = {"thresholds": ("SU",)}
    largest_size: ClassVar[int] = 2**24

    def runs(self, low: int, high: int) -> Iterator[Run]:
        """The prefix up to high without the one before low."""
        yield high, high + 1, 1
        if low > 0:
            yield low - 1, low, -1

    @property
    def prefixes(self) -> Floats:
        """As they were released."""
        return self.noisy.astype(np.float64)

    def counts(self, lows: UInts, highs: UInts) -> Floats:
        """Differences of prefixes."""
        low, high = self._check_ranges(lows, highs)
        return np.asarray((self._upto[high + _ONE] - self._upto[low]).astype(np.float64))

    def errors(self, lows: UInts, highs: UInts) -> Floats:
        """The standard errors of one prefix or two, exactly."""
        low, _ = self._check_ranges(lows, highs)
        return np.sqrt(np.where(low > 0, 2.0, 1.0) * self.line.variance)

    def error(self, beta: float) -> float:
        """The smaller of two bounds: every range at its share of beta, or twice the largest of all noises."""
        chance = float(check_probability(beta))
        ranges = self.size * (self.size + 1) // 2
        each = self.line.reach(2, chance / ranges)
        return min(each, 2 * largest_reach(self.scale, self.size, chance))

    @cached_property
    def _upto(self) -> NDArray[Any]:
        """The count before each cell and of all; Python ints where differences might not fit."""
        fits = all(
            -_FITS_INT64 < bound < _FITS_INT64 for bound in (int(self.noisy.min()), int(self.noisy.max()))
        )
        return np.concatenate([[0], self.noisy.astype(np.int64 if fits else object)])
