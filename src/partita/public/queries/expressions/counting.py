"""Queries that count rows: all of them, those in ranges, and those in each cell."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, final

import numpy as np

from partita.domain.axis import Axis
from partita.domain.base.base import Domain, Special
from partita.domain.numeric.real import Real
from partita.errors.errors import InvalidParameter
from partita.public.queries.expressions.tables import Matrix
from partita.public.queries.product.product import Factor
from partita.public.queries.queries.queries import Queries, Times, too_many
from partita.public.queries.queries.universe import Universe
from partita.public.queries.queries.writing import value_text, written, written_call, written_number
from partita.public.queries.ranges.spans import MOST_QUERIES, Spans

End: TypeAlias = str | None


@final
@dataclass(frozen=True, repr=False)
class Total(Queries):
    """All rows."""

    @property
    def columns(self) -> tuple[str, ...]:
        """None."""
        return ()

    def number(self, universe: Universe) -> int:
        """One."""
        return 1

    def factors(self, universe: Universe) -> list[Factor]:
        """None: all axes are summed over."""
        return []

    def pick(self, universe: Universe, index: int) -> Queries:
        """Itself."""
        return self

    def total_at(self, universe: Universe) -> int | None:
        """The first."""
        return 0

    def __str__(self) -> str:
        return written_call("total")


class _OneColumn(Queries):
    """Counts of one column."""

    column: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The column."""
        return (self.column,)

    def factors(self, universe: Universe) -> list[Factor]:
        """Ranges along the axis of the column."""
        if self.number(universe) > MOST_QUERIES:
            raise too_many(self.number(universe))
        spans = self._spans(universe.domain(self.column), universe.axis(self.column))
        return [((universe.number(self.column),), spans)]

    @abstractmethod
    def _spans(self, domain: Domain, axis: Axis) -> Spans:
        """The ranges as positions."""


@final
@dataclass(frozen=True, repr=False)
class Ranges(_OneColumn):
    """Ranges from low to high, both included; None is an open end, which takes what lies beyond, too."""

    column: str
    ends: tuple[tuple[End, End], ...]

    def number(self, universe: Universe) -> int:
        """One for each pair of ends."""
        return len(self.ends)

    def pick(self, universe: Universe, index: int) -> Queries:
        """One range."""
        return Ranges(self.column, (self.ends[index],))

    def _spans(self, domain: Domain, axis: Axis) -> Spans:
        spans = [_span(low, high, domain, axis, self.column) for low, high in self.ends]
        starts, stops = zip(*spans, strict=True)
        return Spans(axis.width, starts, stops)

    def __str__(self) -> str:
        pairs = [f"{_end(low)}, {_end(high)}" for low, high in self.ends]
        if len(pairs) == 1:
            return written_call("between", written(self.column), *pairs)
        return written_call("ranges", written(self.column), *(f"({pair})" for pair in pairs))


@final
@dataclass(frozen=True, repr=False)
class Steps(_OneColumn):
    """All ranges of whole steps from the lower bound on: of all cells, if a step is one cell."""

    column: str
    step: Fraction | None

    def number(self, universe: Universe) -> int:
        """One for each pair of steps in order."""
        steps = len(self._steps(universe.domain(self.column)))
        return steps * (steps + 1) // 2

    def pick(self, universe: Universe, index: int) -> Queries:
        """The range between two edges."""
        domain = universe.domain(self.column)
        steps = self._steps(domain)
        low, high = _pair(index, len(steps))
        last = min(steps[high] + steps.step, domain.size) - 1
        return Ranges(self.column, ((_decoded(domain, steps[low]), _decoded(domain, last)),))

    def _spans(self, domain: Domain, axis: Axis) -> Spans:
        edges = np.array([*self._steps(domain), domain.size], np.uint64) + np.uint64(axis.before)
        lows, highs = np.triu_indices(len(edges) - 1)
        return Spans(axis.width, edges[lows], edges[highs + 1])

    def _steps(self, domain: Domain) -> range:
        """The first cell of each step."""
        return range(0, domain.size, _cells_of(self.step, domain))

    def __str__(self) -> str:
        step = [] if self.step is None else [f"step={written_number(self.step)}"]
        return written_call("ranges", written(self.column), *step)


@final
@dataclass(frozen=True, repr=False)
class Prefixes(_OneColumn):
    """For each value the rows up to it, what lies below the bounds included."""

    column: str

    def number(self, universe: Universe) -> int:
        """One for each cell."""
        return universe.domain(self.column).size

    def pick(self, universe: Universe, index: int) -> Queries:
        """The range up to one value."""
        return Ranges(self.column, ((None, _decoded(universe.domain(self.column), index)),))

    def _spans(self, domain: Domain, axis: Axis) -> Spans:
        stops = np.arange(axis.before + 1, axis.before + axis.size + 1, dtype=np.uint64)
        return Spans(axis.width, np.zeros(len(stops), np.uint64), stops)

    def __str__(self) -> str:
        return written_call("prefixes", written(self.column))


@final
@dataclass(frozen=True, repr=False)
class Each(_OneColumn):
    """The rows in each cell of a column, special cells included."""

    column: str

    def number(self, universe: Universe) -> int:
        """One for each position."""
        return universe.axis(self.column).width

    def pick(self, universe: Universe, index: int) -> Queries:
        """One cell."""
        domain, axis = universe.domain(self.column), universe.axis(self.column)
        if axis.before <= index < axis.before + axis.size:
            value = _decoded(domain, index - axis.before)
            return Ranges(self.column, ((value, value),))
        name = next(name for name, place in Axis.specials(domain).items() if place == index)
        return Matrix((self.column,), ((((Special.named(name),), Fraction(1)),),))

    def _spans(self, domain: Domain, axis: Axis) -> Spans:
        return Spans.each(axis.width)

    def __str__(self) -> str:
        return written_call("marginal", written(self.column))


@final
@dataclass(frozen=True, repr=False)
class Marginal(Queries):
    """The rows in each combination of cells of several columns, special cells included."""

    names: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns."""
        return self.names

    def number(self, universe: Universe) -> int:
        """One for each combination."""
        return math.prod(each.number(universe) for each in self._each)

    def factors(self, universe: Universe) -> list[Factor]:
        """Every cell of each column."""
        return [factor for each in self._each for factor in each.factors(universe)]

    def pick(self, universe: Universe, index: int) -> Queries:
        """One combination."""
        return Times.of(Fraction(1), self._each).pick(universe, index)

    @property
    def _each(self) -> list[Queries]:
        return [Each(column) for column in self.columns]

    def __str__(self) -> str:
        return written_call("marginal", *map(written, self.columns))


def _end(end: End) -> str:
    return "none" if end is None else written(end)


def _span(low: End, high: End, domain: Domain, axis: Axis, column: str) -> tuple[int, int]:
    """The first position of a range, and the position behind it."""
    first = None if low is None else _cell(low, domain, column)
    last = None if high is None else _cell(high, domain, column)
    if first is not None and last is not None and first > last:
        fix = "put the lower end first"
        raise InvalidParameter("ends", f"must be in the order of {column!r}", given=f"{low}, {high}", fix=fix)
    start = 0 if first is None else axis.before + max(first, 0)
    everything = axis.before + axis.size + int("above" in domain.specials)
    return start, everything if last is None else axis.before + min(last + 1, axis.size)


def _cell(end: str, domain: Domain, column: str) -> int:
    """The cell of an end; -1 below the bounds, and the number of cells above them."""
    found = domain.locate(end, name=column)
    if found.special is Special.BELOW:
        return -1
    return domain.size if found.special is Special.ABOVE else found.cell


def _decoded(domain: Domain, cell: int) -> str:
    """The value of a cell as text."""
    return value_text(domain.decode([cell])[0])


def _cells_of(step: Fraction | None, domain: Domain) -> int:
    """How many cells a step is: of numbers by their values, of other columns by cells."""
    if step is None:
        return 1
    cells = step / domain.step if isinstance(domain, Real) else step
    if cells.denominator != 1 or not 1 <= cells <= domain.size:
        fix = "pass for example 10"
        raise InvalidParameter("step", f"must be a whole number of cells of {domain!r}", given=step, fix=fix)
    return int(cells)


def _pair(index: int, steps: int) -> tuple[int, int]:
    """The ends of range number `index` in the order (0, 0), (0, 1), ..., (1, 1), ..."""
    behind = steps * (steps + 1) // 2 - 1 - index
    low = steps - 1 - (math.isqrt(8 * behind + 1) - 1) // 2
    return low, index - (low * steps - low * (low - 1) // 2) + low
