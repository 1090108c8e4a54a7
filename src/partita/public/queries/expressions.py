"""Queries given cell by cell: explicit weights for a few values, zero for all others."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, NamedTuple, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from partita.domain.axis import Axis
from partita.domain.base import Domain, Special
from partita.domain.numeric import Integer, Real
from partita.errors import InvalidParameter, check
from partita.numbers import rational
from partita.public.queries.operator import FITTING, all_places
from partita.public.queries.product import Factor
from partita.public.queries.queries import (
    Key,
    Queries,
    Times,
    Universe,
    key,
    too_many,
    value_text,
    written,
    written_call,
    written_key,
    written_number,
)
from partita.public.queries.ranges import MOST_QUERIES, SpanOperator, Sparse, Vector

Entry: TypeAlias = tuple[tuple[Key, ...], Fraction]
"""What stands for a cell, one key for each column, and its weight."""

_MOST_ENTRIES: Final = 2**20
_LARGEST: Final = 2**62
_FINEST: Final = 2**62


@final
@dataclass(frozen=True, repr=False)
class Matrix(Queries):
    """Rows of explicit weights over the cells of some columns."""

    names: tuple[str, ...]
    rows: tuple[tuple[Entry, ...], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns."""
        return self.names

    def number(self, universe: Universe) -> int:
        """One for each row."""
        return len(self.rows)

    def factors(self, universe: Universe) -> list[Factor]:
        """One sparse matrix."""
        axes = tuple(universe.number(column) for column in self.columns)
        widths = tuple(universe.shape[axis] for axis in axes)
        if math.prod(widths) > _LARGEST:
            raise _wrong("must be over columns of at most 2^62 cells together", "name fewer columns")
        fine = math.lcm(1, *(weight.denominator for row in self.rows for _, weight in row))
        if fine > _FINEST:
            raise _wrong("must have a common denominator of at most 2^62", "round the weights")
        listed = [(number, *entry) for number, row in enumerate(self.rows) for entry in row]
        places = [_Places.of(column, universe.domain(column)) for column in self.columns]
        spots = [_spot(keys, places, widths) for _, keys, _ in listed]
        weights = [int(weight * fine) for _, _, weight in listed]
        return [(axes, Sparse(widths, len(self.rows), [row for row, _, _ in listed], spots, weights, fine))]

    def pick(self, universe: Universe, index: int) -> Queries:
        """One row."""
        return Matrix(self.columns, (self.rows[index],))

    def __str__(self) -> str:
        names, rows = map(written, self.columns), map(_written_row, self.rows)
        return written_call("weights" if len(self.rows) == 1 else "matrix", *names, *rows)


def entries(columns: tuple[str, ...], row: object) -> tuple[Entry, ...]:
    """The entries of a mapping from values, or tuples of values, to weights."""
    if not isinstance(row, Mapping):
        raise _wrong("must map values to weights", "pass for example {30: 1, 31: 2}")
    found = tuple((_keys(columns, each), rational(weight, "weights")) for each, weight in row.items())
    if len({keys for keys, _ in found}) < len(found):
        raise _wrong("must name each cell once", "leave out the second")
    return found


def check_entries(rows: Sequence[tuple[Entry, ...]]) -> None:
    """Refuse more explicit weights than there may be."""
    if not rows or sum(map(len, rows)) > _MOST_ENTRIES:
        raise _wrong(f"must have 1 to {_MOST_ENTRIES} entries", "use ranges or prefixes for many cells")


def _keys(columns: tuple[str, ...], given: object) -> tuple[Key, ...]:
    keys = given if isinstance(given, tuple) else (given,)
    if len(keys) != len(columns):
        raise _wrong("must name a value for each column", "pass tuples of values")
    return tuple(map(key, keys))


class _Places(NamedTuple):
    """Where the values of a column lie along its axis."""

    column: str
    domain: Domain
    axis: Axis
    specials: Mapping[str, int]

    @staticmethod
    def of(column: str, domain: Domain) -> _Places:
        return _Places(column, domain, Axis.of(domain), Axis.specials(domain))

    def position(self, each: Key) -> int:
        """The position of a value, or of a special cell by its name."""
        return self._special(str(each)) if isinstance(each, Special) else self._ordinary(each)

    def _special(self, name: str) -> int:
        if name in self.specials:
            return self.specials[name]
        rule = f"must have a special cell of that name to weigh it: {self.domain!r}"
        raise InvalidParameter(self.column, rule, given=name, fix="leave it out")

    def _ordinary(self, each: Key) -> int:
        found = self.domain.locate(each, name=self.column)
        rule, fix = "must lie within its bounds to be weighed", "use pt.BELOW or pt.ABOVE"
        check(found.special is Special.ORDINARY, self.column, rule, given=each, fix=fix)
        return self.axis.position(found.cell)


def _spot(keys: tuple[Key, ...], places: Sequence[_Places], widths: tuple[int, ...]) -> int:
    """The cell that keys stand for, last column fastest."""
    spot = 0
    for along, each, width in zip(places, keys, widths, strict=True):
        spot = spot * width + along.position(each)
    return spot


def _written_row(row: tuple[Entry, ...]) -> str:
    return "{" + ", ".join(f"{_written_keys(keys)}: {written_number(weight)}" for keys, weight in row) + "}"


def _written_keys(keys: tuple[Key, ...]) -> str:
    return written_key(keys[0]) if len(keys) == 1 else f"({', '.join(map(written_key, keys))})"


def _wrong(rule: str, fix: str) -> InvalidParameter:
    return InvalidParameter("weights", rule, given=None, fix=fix)


# Queries that count rows: all of them, those in ranges, and those in each cell.


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
    def _spans(self, domain: Domain, axis: Axis) -> SpanOperator:
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

    def _spans(self, domain: Domain, axis: Axis) -> SpanOperator:
        spans = [_span(low, high, domain, axis, self.column) for low, high in self.ends]
        starts, stops = zip(*spans, strict=True)
        return SpanOperator(axis.width, starts, stops)

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

    def _spans(self, domain: Domain, axis: Axis) -> SpanOperator:
        edges = np.array([*self._steps(domain), domain.size], np.uint64) + np.uint64(axis.before)
        lows, highs = np.triu_indices(len(edges) - 1)
        return SpanOperator(axis.width, edges[lows], edges[highs + 1])

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

    def _spans(self, domain: Domain, axis: Axis) -> SpanOperator:
        stops = np.arange(axis.before + 1, axis.before + axis.size + 1, dtype=np.uint64)
        return SpanOperator(axis.width, np.zeros(len(stops), np.uint64), stops)

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

    def _spans(self, domain: Domain, axis: Axis) -> SpanOperator:
        return SpanOperator.each(axis.width)

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


# Queries whose weights a function gives: evaluated on public cells, or on points of a huge universe.


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
            (_function_keys(inner, place), Fraction(int(weight), vector.granularity))
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


def _function_keys(universe: Universe, place: list[int]) -> tuple[Key, ...]:
    """What stands for each position of a cell."""
    return tuple(_key(domain, position) for domain, position in zip(universe.domains, place, strict=True))


def _key(domain: Domain, position: int) -> Key:
    for name, place in Axis.specials(domain).items():
        if place == position:
            return Special.named(name)
    return value_text(domain.decode([position - Axis.of(domain).before])[0])


# Queries that add up values: as they are, not above a cap, or their powers.


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
