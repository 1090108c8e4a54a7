"""Released tents over all cells of a universe, and what releases made of tents have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self, final

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answer
from partita.guarantee.guarantee import Guarantee
from partita.lazy.cached import cached_property
from partita.numbers import failure
from partita.public.axis.base.noisy_sum import checked, checked_ranges
from partita.public.axis.base.ranges import Json, Parts, Ranges, Term
from partita.public.axis.base.reading import PartsReader
from partita.public.axis.curve.curve import Curve, Floats, UInts
from partita.public.axis.tent_solver.tent_band import prefix_bounds
from partita.public.axis.tent_solver.tent_counts import TentCounts, TentEvidence
from partita.public.axis.tent_solver.tent_estimate import UnitCounts, unit_counts
from partita.public.axis.tent_solver.tent_strategy import MOST_LEVELS
from partita.public.base.released import damaged
from partita.public.bounds.band import widest_miss
from partita.public.bounds.linear_ranges import LinearRanges

_WIDENING: Final = 1.05
"""The calibrated factor of standard errors; how it was found is in docs/proofs/tents.md."""

_LARGEST_SIZE: Final = 2**24


class TentRanges(Ranges):
    """A release whose counts come from tents over units: contiguous segments, or cells."""

    tents: TentCounts

    @property
    @abstractmethod
    def units(self) -> Curve:
        """The estimated count of each unit."""

    @property
    @abstractmethod
    def linear(self) -> LinearRanges:
        """The estimates and the looks behind them."""

    @property
    def curve(self) -> Curve:
        """Cumulative counts: monotone, never negative."""
        return self.linear.curve

    def answer(self, *terms: Term) -> Answer:
        """The signed sum of the terms as one linear question, with the standard error of exactly that."""
        return self.linear.answer(checked(terms, self.size))

    def counts(self, lows: UInts, highs: UInts) -> Floats:
        """The values that `answer` gives for many ranges."""
        return self.linear.counts(*checked_ranges(lows, highs, self.size))

    def errors(self, lows: UInts, highs: UInts) -> Floats:
        """The standard errors that `answer` gives for many ranges."""
        return self.linear.errors(*checked_ranges(lows, highs, self.size))

    def error(self, beta: float) -> float:
        """With probability 1 - beta no range at all misses the truth by more, whatever the data."""
        lower, upper = prefix_bounds(self.tents, float(failure(beta)))
        values = np.concatenate([[0.0], self.curve.upto(self.units.ends)])
        return widest_miss(values, lower, upper, self.units.widths > 1.0)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class TentRelease(TentRanges):
    """Noisy counts of every cell, and of tents over them.

    `guarantee` is None if the release was made with injected noise: it protects nobody.
    """

    kind: ClassVar[str] = "tents"
    papers: ClassVar[Mapping[str, tuple[str, ...]]] = {"tents": ()}
    max_series: ClassVar[int] = MOST_LEVELS

    size: int
    tents: TentCounts
    guarantee: Guarantee | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.size == self.tents.units <= _LARGEST_SIZE:
            raise damaged("size", "must be the number of units")

    @cached_property
    def units(self) -> Curve:
        """The estimated count of each cell."""
        return Curve(np.arange(self.size, dtype=np.uint64), self._estimate.counts)

    @cached_property
    def linear(self) -> LinearRanges:
        """The estimates and the looks behind them."""
        looks = TentEvidence(
            counts=self.tents,
            ends=self.units.ends,
            roughness=self._estimate.roughness,
        )
        return LinearRanges(
            curve=self.units,
            pieces=self.units,
            model=looks,
            certain=(looks,),
            held=self.units.counts,
            clustering=np.zeros(self.size),
            widening=_WIDENING,
        )

    def parts(self) -> Parts:
        """Everything that was released, taken apart for a file."""
        return Parts({"size": self.size, **tent_facts(self.tents)}, tent_series(self.tents))

    @classmethod
    def from_parts(cls, parts: Parts, guarantee: Guarantee | None) -> Self:
        """The release that `parts` took apart; anything else is an `InvalidRelease`."""
        reader = PartsReader(parts)
        size = reader.integer("size", low=1, high=_LARGEST_SIZE)
        return cls(size=size, tents=tents_of(reader, facts=["size"], series=[]), guarantee=guarantee)

    @cached_property
    def _estimate(self) -> UnitCounts:
        return unit_counts(self.tents, np.ones(self.size))


def tent_facts(tents: TentCounts) -> dict[str, Json]:
    """The public numbers of tents, for a file."""
    return {"rate": str(tents.rate), "shares": [str(share) for share in tents.shares]}


def tent_series(tents: TentCounts) -> dict[str, NDArray[Any]]:
    """The noisy integers of tents, for a file."""
    return {f"level{level}": values for level, values in enumerate(tents.levels)}


def tents_of(reader: PartsReader, *, facts: Iterable[str], series: Iterable[str]) -> TentCounts:
    """The tents that a file holds, if it holds nothing else but these facts and series."""
    shares = reader.rationals("shares", most=MOST_LEVELS)
    names = [f"level{level}" for level in range(len(shares))]
    reader.expect(facts=["rate", "shares", *facts], series=[*names, *series])
    levels = tuple(reader.noisy(name) for name in names)
    return TentCounts(levels=levels, shares=shares, rate=reader.rational("rate"))
