"""Released tents over all cells of a universe, and what releases made of tents have in common."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Final, Self, final

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answer
from partita.errors import InvalidParameter, InvalidRelease
from partita.exact import failure, integer, ordered, rational
from partita.guarantee import Guarantee
from partita.inference.band import widest_miss
from partita.inference.curve import Curve, Floats, UInts
from partita.inference.linear_ranges import LinearRanges
from partita.inference.tent_band import prefix_bounds
from partita.inference.tent_counts import TentCounts, TentEvidence
from partita.inference.tent_estimate import UnitCounts, unit_counts
from partita.releases.ranges import Json, Parts, Ranges, Term

__all__ = ["TentRanges", "TentRelease"]

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
        return self.linear.answer([_checked(term, self.size - 1) for term in terms])

    def counts(self, lows: UInts, highs: UInts) -> Floats:
        """The values that `answer` gives for many ranges."""
        return self.linear.counts(np.asarray(lows, np.uint64), np.asarray(highs, np.uint64))

    def errors(self, lows: UInts, highs: UInts) -> Floats:
        """About the standard errors that `answer` gives for many ranges."""
        return self.linear.errors(np.asarray(lows, np.uint64), np.asarray(highs, np.uint64))

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
            digest=digest(self.parts()),
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
        facts = known_facts(parts, ("size", "rate", "shares"))
        size = whole_fact(facts, "size", low=1, high=_LARGEST_SIZE)
        return cls(size=size, tents=tents_of(parts, more=()), guarantee=guarantee)

    @cached_property
    def _estimate(self) -> UnitCounts:
        return unit_counts(self.tents, np.ones(self.size))


def digest(parts: Parts) -> bytes:
    """A name for the released integers."""
    seen = hashlib.sha256()
    for name in sorted(parts.series):
        values = parts.series[name]
        seen.update(name.encode() + b"\0" + str(values.size).encode() + b"\0")
        seen.update(repr(values.tolist()).encode() if values.dtype == object else values.tobytes())
    return seen.digest()


def tent_facts(tents: TentCounts) -> dict[str, Json]:
    """The public numbers of tents, for a file."""
    return {"rate": str(tents.rate), "shares": [str(share) for share in tents.shares]}


def tent_series(tents: TentCounts) -> dict[str, NDArray[Any]]:
    """The noisy integers of tents, for a file."""
    return {f"level{level}": values for level, values in enumerate(tents.levels)}


def tents_of(parts: Parts, *, more: Sequence[str]) -> TentCounts:
    """The tents that a file holds, if it holds nothing else but the series named in `more`."""
    shares = parts.facts["shares"]
    if not isinstance(shares, list):
        raise damaged("shares", "must be a list")
    names = [f"level{level}" for level in range(len(shares))]
    if sorted(parts.series) != sorted([*names, *more]):
        raise damaged("series", "must be the levels of tents and what belongs to them")
    return TentCounts(
        levels=tuple(parts.series[name] for name in names),
        shares=tuple(exact_number(share, "shares") for share in shares),
        rate=exact_number(parts.facts["rate"], "rate"),
    )


def known_facts(parts: Parts, names: Sequence[str]) -> Mapping[str, Json]:
    """The facts, if they are exactly those."""
    if sorted(parts.facts) != sorted(names):
        raise damaged("facts", f"must be {', '.join(names)}")
    return parts.facts


def whole_fact(facts: Mapping[str, Json], name: str, *, low: int, high: int) -> int:
    """An integer fact."""
    try:
        return integer(facts[name], name, low=low, high=high)
    except InvalidParameter:
        raise damaged(name, f"must be an integer from {low} to {high}") from None


def exact_number(text: Json, name: str) -> Fraction:
    """A rational written as text."""
    try:
        return rational(text if isinstance(text, str) else None, name)
    except InvalidParameter:
        raise damaged(name, 'must be text like "1/3"') from None


def damaged(name: str, rule: str) -> InvalidRelease:
    """The error for a part that is not what it should be."""
    return InvalidRelease(name, rule, fix="ask for the release as it was published")


def _checked(term: Term, last: int) -> tuple[int, int, int]:
    """The term, if it lies on the axis."""
    if term.sign not in (1, -1):
        raise InvalidParameter("sign", "must be 1 or -1", given=term.sign, fix="add or take away")
    return *ordered(term.low, term.high, first=0, last=last), int(term.sign)
