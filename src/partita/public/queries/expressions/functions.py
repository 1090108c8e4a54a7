"""Queries whose weights a function gives: evaluated on public cells, or on points of a huge universe."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from partita.domain.axis import Axis
from partita.domain.base.base import Domain, Special
from partita.errors.checks import check
from partita.public.queries.expressions.tables import Matrix
from partita.public.queries.operator.structured import all_places
from partita.public.queries.product.product import Factor
from partita.public.queries.queries.queries import Queries
from partita.public.queries.queries.universe import Universe
from partita.public.queries.queries.writing import Key, value_text, written, written_call, written_number
from partita.public.queries.ranges.vector import Vector

Weight: TypeAlias = Callable[..., Any]
"""A weight for the values of some columns, in order; None stands for null and all that is no value."""

_MOST_SETTLED: Final = 2**18


@final
@dataclass(frozen=True, repr=False)
class Function(Queries):
    """One query: weights by a function of values, rounded to steps and clamped to [0, bound].

    The function never makes a query fail: an exception, an exit, NaN, or no number is the weight zero.
    """

    names: tuple[str, ...]
    function: Weight
    bound: Fraction
    step: Fraction

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns."""
        return self.names

    def number(self, universe: Universe) -> int:
        """One."""
        return 1

    def factors(self, universe: Universe) -> list[Factor]:
        """A weight for each cell, evaluated where it is needed."""
        axes = tuple(universe.number(column) for column in self.columns)
        domains = [universe.domain(column) for column in self.columns]

        def weigh(places: NDArray[Any]) -> NDArray[Any]:
            values = [_values(domain, places[:, n]) for n, domain in enumerate(domains)]
            units = [self._units(*each) * self.step.numerator for each in zip(*values, strict=True)]
            return np.array(units, object)

        widths, most = tuple(universe.shape[a] for a in axes), self._most * self.step.numerator
        vector = Vector(widths, weigh, 0, most, self.step.denominator)
        return [(axes, vector)]

    def pick(self, universe: Universe, index: int) -> Queries:
        """Itself."""
        return self

    def settled(self, universe: Universe) -> Queries:
        """The weights of all public cells, written out."""
        inner = Universe(self.columns, [universe.domain(column) for column in self.columns])
        rule = f"must be a function of at most {_MOST_SETTLED} cells to be written out"
        fix = "choose coarser domains, or build the weights from value, clipped and ranges"
        check(inner.size <= _MOST_SETTLED, "weights", rule, given=inner.size, fix=fix)
        ((_, vector),) = self.factors(inner)
        places = np.concatenate(list(all_places(inner.shape)))
        weights = vector.weights_at(places)[0].tolist()
        row = tuple(
            (_keys(inner, place), Fraction(int(weight), vector.granularity))
            for place, weight in zip(places.tolist(), weights, strict=True)
            if weight
        )
        return Matrix(self.columns, (row,))

    @property
    def written_out(self) -> bool:
        """No: a function is no text."""
        return False

    def _units(self, *values: object) -> int:
        """The weight of one cell in steps: whatever the function does, from zero to the bound."""
        try:
            given = self.function(*values)
            weight = given.item() if isinstance(given, np.generic) else given
            if not weight > 0:
                return 0
            return (
                self._most if weight >= self.bound else min(self._most, round(Fraction(weight) / self.step))
            )
        except KeyboardInterrupt:
            raise
        except BaseException:  # what a function raises may depend on the data, and is never told
            return 0

    @property
    def _most(self) -> int:
        return math.floor(self.bound / self.step)

    def __str__(self) -> str:
        name = getattr(self.function, "__name__", type(self.function).__name__)
        options = f"bound={written_number(self.bound)}", f"step={written_number(self.step)}"
        return written_call("weights", *map(written, self.columns), f"<{name}>", *options)


def _values(domain: Domain, positions: NDArray[Any]) -> list[object]:
    """The value at each position: that of the bound beyond it, None for null and what is no value."""
    axis = Axis.of(domain)
    distinct, codes = np.unique(positions, return_inverse=True)
    clamped = np.clip(distinct, np.uint64(axis.before), np.uint64(axis.before + axis.size - 1))
    decoded = domain.decode(clamped.astype(np.uint64) - np.uint64(axis.before))
    beyond = axis.before + axis.size + int("above" in domain.specials)
    values = [
        value if place < beyond else None for value, place in zip(decoded, distinct.tolist(), strict=True)
    ]
    return [values[code] for code in codes.tolist()]


def _keys(universe: Universe, place: list[int]) -> tuple[Key, ...]:
    """What stands for each position of a cell."""
    return tuple(_key(domain, position) for domain, position in zip(universe.domains, place, strict=True))


def _key(domain: Domain, position: int) -> Key:
    for name, place in Axis.specials(domain).items():
        if place == position:
            return Special.named(name)
    return value_text(domain.decode([position - Axis.of(domain).before])[0])
