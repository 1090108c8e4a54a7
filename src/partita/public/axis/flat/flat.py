"""What releases of one flat list of noisy counts have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answer, least_sum
from partita.guarantee.guarantee import Guarantee
from partita.lazy.cached import cached_property
from partita.public.axis.base.noisy_sum import Line, NoisySum, checked
from partita.public.axis.base.ranges import Parts, Ranges, Term
from partita.public.axis.base.reading import PartsReader
from partita.public.axis.curve.curve import Curve, Floats
from partita.public.axis.curve.isotonic import curve_through
from partita.public.bounds.signed_ranges import Run


@dataclass(frozen=True, eq=False, kw_only=True)
class FlatRelease(Ranges):
    """Noisy counts in a row, all with noise of one scale; a range is a signed sum of some of them.

    `guarantee` is None if the release was made with injected noise: it protects nobody.
    """

    largest_size: ClassVar[int]

    noisy: NDArray[Any]
    size: int
    scale: Fraction
    guarantee: Guarantee | None = None

    @staticmethod
    @abstractmethod
    def length(size: int) -> int:
        """How many counts there are for an axis of `size` cells."""

    @abstractmethod
    def runs(self, low: int, high: int) -> Iterator[Run]:
        """The counts that make up the cells low, ..., high."""

    @property
    @abstractmethod
    def prefixes(self) -> Floats:
        """The answers for all ranges that begin with the first cell."""

    @cached_property
    def line(self) -> Line:
        """The counts with their noise."""
        return Line(self.noisy, self.scale)

    @cached_property
    def curve(self) -> Curve:
        """The monotone curve closest to the answers for all prefixes."""
        return curve_through(np.arange(self.size, dtype=np.uint64), self.prefixes)

    def answer(self, *terms: Term) -> Answer:
        """One linear combination of the counts; what is added and taken away cancels."""
        ranges = checked(terms, self.size)
        runs = (
            (first, stop, sign * factor)
            for low, high, sign in ranges
            for first, stop, factor in self.runs(low, high)
        )
        return NoisySum.of([(self.line, runs)]).answer(least_sum(each.sign for each in ranges))

    def parts(self) -> Parts:
        """The noisy counts and their scale."""
        return Parts({"size": self.size, "scale": str(self.scale)}, {"noisy": self.noisy})

    @classmethod
    def from_parts(cls, parts: Parts, guarantee: Guarantee | None) -> Self:
        """The release that `parts` took apart."""
        reader = PartsReader(parts)
        reader.expect(facts=("size", "scale"), series=("noisy",))
        size = reader.integer("size", low=1, high=cls.largest_size)
        noisy = reader.noisy("noisy", count=cls.length(size))
        return cls(noisy=noisy, size=size, scale=reader.scale("scale"), guarantee=guarantee)
