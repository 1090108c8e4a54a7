"""Queries that add up values: as they are, not above a cap, or their powers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from partita.domain.axis import Axis
from partita.domain.base.base import Domain
from partita.domain.numeric.integer import Integer
from partita.domain.numeric.real import Real
from partita.errors.errors import InvalidParameter
from partita.public.queries.operator.structured import FITTING
from partita.public.queries.product.product import Factor
from partita.public.queries.queries.queries import Queries
from partita.public.queries.queries.universe import Universe
from partita.public.queries.queries.writing import written, written_call, written_number
from partita.public.queries.ranges.vector import Vector


@final
@dataclass(frozen=True, repr=False)
class Value(Queries):
    """min(value, cap)^power of a column of numbers, summed over rows.

    Values beyond the declared bounds count as the bounds; null and invalid count as zero.
    """

    column: str
    cap: Fraction | None = None
    power: int = 1

    @property
    def columns(self) -> tuple[str, ...]:
        """The column."""
        return (self.column,)

    def number(self, universe: Universe) -> int:
        """One."""
        return 1

    def factors(self, universe: Universe) -> list[Factor]:
        """A weight for each position, in exact units."""
        axis = universe.axis(self.column)
        law = self._law(universe.domain(self.column))
        ends = (0, law.of(0), law.of(axis.size - 1))

        def weigh(places: NDArray[Any]) -> NDArray[Any]:
            return law.weights(places[:, 0], axis)

        vector = Vector((axis.width,), weigh, min(ends), max(ends), law.granularity, sharp=True)
        return [((universe.number(self.column),), vector)]

    def pick(self, universe: Universe, index: int) -> Queries:
        """Itself."""
        return self

    def _law(self, domain: Domain) -> _Law:
        low, step = _grid(domain, self.column)
        cap = None if self.cap is None else self.cap * step.denominator
        finer = 1 if cap is None else cap.denominator
        most = None if cap is None else int(cap * finer)
        units = (step.denominator * finer) ** self.power
        return _Law(low, step.numerator * finer, most, self.power, units)

    def __str__(self) -> str:
        name = written(self.column)
        if self.cap is not None:
            return written_call("clipped", name, written_number(self.cap))
        return (
            written_call("value", name) if self.power == 1 else written_call("power", name, str(self.power))
        )


class _Law(NamedTuple):
    """How a cell becomes a weight: min((low + cell) factor, most)^power, over the granularity."""

    low: int
    factor: int
    most: int | None
    power: int
    granularity: int

    def of(self, cell: Any) -> Any:
        """The weight of a cell, or of an array of them."""
        value = (cell + self.low) * self.factor
        if self.most is not None:
            value = np.minimum(value, self.most) if isinstance(value, np.ndarray) else min(value, self.most)
        return value**self.power

    def weights(self, positions: NDArray[Any], axis: Axis) -> NDArray[Any]:
        """The weights of positions: beyond the bounds that of the bound, of null and invalid zero."""
        ends = (
            axis.size,
            self.low,
            self.of(0),
            self.of(axis.size - 1),
            (abs(self.low) + axis.size) * self.factor,
        )
        exact = np.int64 if max(map(abs, ends)) < FITTING else object
        clamped = np.clip(positions, np.uint64(axis.before), np.uint64(axis.before + axis.size - 1))
        cells = (clamped - np.uint64(axis.before)).astype(exact)
        known = positions <= np.uint64(axis.before + axis.size)
        return np.where(known, self.of(cells), 0).astype(exact)


def _grid(domain: Domain, column: str) -> tuple[int, Fraction]:
    """The first value in steps, and the step, of a column of numbers."""
    if isinstance(domain, Integer):
        return domain.low, Fraction(1)
    if isinstance(domain, Real):
        return int(domain.low / domain.step), domain.step
    rule = f"must add up numbers, and {column!r} holds none"
    raise InvalidParameter("queries", rule, given=repr(domain), fix="use Integer or Real")
