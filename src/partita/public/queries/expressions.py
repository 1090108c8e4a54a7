"""The kinds of queries: counts of rows in ranges and cells, sums of values, and weights that users choose."""

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
from partita.domain.columns import number_text
from partita.domain.numeric import Integer, Real
from partita.domain.time import Date, Timestamp
from partita.errors import InvalidParameter, check
from partita.lazy import cached_property
from partita.numbers import rational
from partita.public.axis.base import locate_value
from partita.public.queries.operator import INT64_LIMIT, all_places
from partita.public.queries.product import Factor
from partita.public.queries.queries import (
    Key,
    Queries,
    Times,
    Universe,
    cell_key,
    check_number,
    format_call,
    format_key,
    quote,
    value_text,
)
from partita.public.queries.ranges import SpanOperator, Sparse, Vector

Entry: TypeAlias = tuple[tuple[Key, ...], Fraction]
"""What stands for a cell, one key for each column, and its weight."""

_MOST_ENTRIES: Final = 2**20  # explicit weights are Python objects: bounds memory and the length of text
_LARGEST: Final = 2**62  # cells are numbered in 64 bits
_FINEST: Final = 2**62  # weights become integers of 64 bits


@final
@dataclass(frozen=True, repr=False)
class Matrix(Queries):
    """Rows of explicit weights over the cells of some columns; all other cells have weight zero."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Entry, ...], ...]

    def number(self, universe: Universe) -> int:
        return len(self.rows)

    def factors(self, universe: Universe) -> list[Factor]:
        axes = tuple(universe.number(column) for column in self.columns)
        widths = tuple(universe.shape[axis] for axis in axes)
        rule = "must be over columns of at most 2^62 cells together"
        check(math.prod(widths) <= _LARGEST, "weights", rule, given=None, fix="name fewer columns")
        fine = math.lcm(1, *(weight.denominator for row in self.rows for _, weight in row))
        rule = "must have a common denominator of at most 2^62"
        check(fine <= _FINEST, "weights", rule, given=None, fix="round the weights")
        listed = [(number, *entry) for number, row in enumerate(self.rows) for entry in row]
        places = [_Places.of(column, universe.domain(column)) for column in self.columns]
        spots = [_spot(keys, places, widths) for _, keys, _ in listed]
        weights = [int(weight * fine) for _, _, weight in listed]
        return [(axes, Sparse(widths, len(self.rows), [row for row, _, _ in listed], spots, weights, fine))]

    def pick(self, universe: Universe, index: int) -> Queries:
        return Matrix(self.columns, (self.rows[index],))

    def settled(self, universe: Universe) -> Queries:
        """The same weights; a value between two cells is refused, and so is a day or a month of several."""
        for place, column in enumerate(self.columns):
            domain = universe.domain(column)
            for each in {keys[place] for row in self.rows for keys, _ in row}:
                if not isinstance(each, Special):
                    first, last = locate_value(domain, each, name=column)
                    fix = "weigh ranges, or each cell by itself"
                    check(first == last, column, "must be a single cell to be weighed", given=each, fix=fix)
        return self

    def __str__(self) -> str:
        names, rows = map(quote, self.columns), map(_format_row, self.rows)
        return format_call("weights" if len(self.rows) == 1 else "matrix", *names, *rows)


def parse_rows(columns: tuple[str, ...], rows: Sequence[object]) -> tuple[tuple[Entry, ...], ...]:
    """The entries of mappings from values, or tuples of values, to weights."""
    found = tuple(_parse_row(columns, row) for row in rows)
    rule, fix = f"must have 1 to {_MOST_ENTRIES} entries", "use ranges or prefixes for many cells"
    check(rows and sum(map(len, found)) <= _MOST_ENTRIES, "weights", rule, given=None, fix=fix)
    return found


def _parse_row(columns: tuple[str, ...], row: object) -> tuple[Entry, ...]:
    if not isinstance(row, Mapping):
        fix = "pass for example {30: 1, 31: 2}"
        raise InvalidParameter("weights", "must map values to weights", given=None, fix=fix)
    found = tuple((_keys(columns, each), rational(weight, "weights")) for each, weight in row.items())
    once, fix = len({keys for keys, _ in found}) == len(found), "leave out the second"
    check(once, "weights", "must name each cell once", given=None, fix=fix)
    return found


def _keys(columns: tuple[str, ...], given: object) -> tuple[Key, ...]:
    keys = given if isinstance(given, tuple) else (given,)
    rule, fix = "must name a value for each column", "pass tuples of values"
    check(len(keys) == len(columns), "weights", rule, given=None, fix=fix)
    return tuple(map(cell_key, keys))


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
        if isinstance(each, Special):
            rule, name = f"must have a special cell of that name to weigh it: {self.domain!r}", str(each)
            check(name in self.specials, self.column, rule, given=name, fix="leave it out")
            return self.specials[name]
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


def _format_row(row: tuple[Entry, ...]) -> str:
    return "{" + ", ".join(f"{_format_keys(keys)}: {number_text(weight)}" for keys, weight in row) + "}"


def _format_keys(keys: tuple[Key, ...]) -> str:
    return format_key(keys[0]) if len(keys) == 1 else f"({', '.join(map(format_key, keys))})"


# Counts of rows.


End: TypeAlias = str | None


class _SingleQuery(Queries):
    """A list of one query."""

    def number(self, universe: Universe) -> int:
        return 1

    def pick(self, universe: Universe, index: int) -> Queries:
        return self


@final
@dataclass(frozen=True, repr=False)
class Total(_SingleQuery):
    """All rows."""

    columns = ()

    def factors(self, universe: Universe) -> list[Factor]:
        """None: all axes are summed over."""
        return []

    def total_at(self, universe: Universe) -> int | None:
        return 0

    def __str__(self) -> str:
        return format_call("total")


class _OneColumn(Queries):
    """Counts of one column in ranges along its axis."""

    column: str

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def factors(self, universe: Universe) -> list[Factor]:
        check_number(self.number(universe))
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
        return len(self.ends)

    def pick(self, universe: Universe, index: int) -> Queries:
        return Ranges(self.column, (self.ends[index],))

    def settled(self, universe: Universe) -> Queries:
        """The same ranges; ends between two cells are refused, and days and months written out."""
        domain, column = universe.domain(self.column), self.column
        both = (
            (_exact_end(low, domain, column, 0), _exact_end(high, domain, column, 1))
            for low, high in self.ends
        )
        return Ranges(column, tuple(both))

    def _spans(self, domain: Domain, axis: Axis) -> SpanOperator:
        spans = [_span(low, high, domain, axis, self.column) for low, high in self.ends]
        starts, stops = zip(*spans, strict=True)
        return SpanOperator(axis.width, starts, stops)

    def __str__(self) -> str:
        pairs = [f"{_format_end(low)}, {_format_end(high)}" for low, high in self.ends]
        if len(pairs) == 1:
            return format_call("between", quote(self.column), *pairs)
        return format_call("ranges", quote(self.column), *(f"({pair})" for pair in pairs))


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
        domain = universe.domain(self.column)
        steps = self._steps(domain)
        low, high = _pair(index, len(steps))
        last = min(steps[high] + steps.step, domain.size) - 1
        return Ranges(self.column, ((_decode(domain, steps[low]), _decode(domain, last)),))

    def _spans(self, domain: Domain, axis: Axis) -> SpanOperator:
        edges = np.array([*self._steps(domain), domain.size], np.uint64) + np.uint64(axis.before)
        lows, highs = np.triu_indices(len(edges) - 1)
        return SpanOperator(axis.width, edges[lows], edges[highs + 1])

    def _steps(self, domain: Domain) -> range:
        """The first cell of each step."""
        return range(0, domain.size, _cells_of(self.step, domain))

    def __str__(self) -> str:
        step = [] if self.step is None else [f"step={number_text(self.step)}"]
        return format_call("ranges", quote(self.column), *step)


@final
@dataclass(frozen=True, repr=False)
class Prefixes(_OneColumn):
    """For each value the rows up to it, what lies below the bounds included."""

    column: str

    def number(self, universe: Universe) -> int:
        return universe.domain(self.column).size

    def pick(self, universe: Universe, index: int) -> Queries:
        return Ranges(self.column, ((None, _decode(universe.domain(self.column), index)),))

    def _spans(self, domain: Domain, axis: Axis) -> SpanOperator:
        stops = np.arange(axis.before + 1, axis.before + axis.size + 1, dtype=np.uint64)
        return SpanOperator(axis.width, np.zeros(len(stops), np.uint64), stops)

    def __str__(self) -> str:
        return format_call("prefixes", quote(self.column))


@final
@dataclass(frozen=True, repr=False)
class Each(_OneColumn):
    """The rows in each cell of a column, special cells included."""

    column: str

    def number(self, universe: Universe) -> int:
        return universe.axis(self.column).width

    def pick(self, universe: Universe, index: int) -> Queries:
        key = _key_at(universe.domain(self.column), index)
        if isinstance(key, Special):
            return Matrix((self.column,), ((((key,), Fraction(1)),),))
        return Ranges(self.column, ((key, key),))

    def _spans(self, domain: Domain, axis: Axis) -> SpanOperator:
        return SpanOperator.each(axis.width)

    def __str__(self) -> str:
        return format_call("marginal", quote(self.column))


@final
@dataclass(frozen=True, repr=False)
class Marginal(Queries):
    """The rows in each combination of cells of several columns, special cells included."""

    columns: tuple[str, ...]

    def number(self, universe: Universe) -> int:
        return math.prod(each.number(universe) for each in self._each)

    def factors(self, universe: Universe) -> list[Factor]:
        return [factor for each in self._each for factor in each.factors(universe)]

    def pick(self, universe: Universe, index: int) -> Queries:
        return Times.of(Fraction(1), self._each).pick(universe, index)

    @property
    def _each(self) -> list[Queries]:
        return [Each(column) for column in self.columns]

    def __str__(self) -> str:
        return format_call("marginal", *map(quote, self.columns))


def _format_end(end: End) -> str:
    return "none" if end is None else quote(end)


def _span(low: End, high: End, domain: Domain, axis: Axis, column: str) -> tuple[int, int]:
    """The first position of a range, and the position behind it."""
    first = None if low is None else _cell(low, domain, column)
    last = None if high is None else _cell(high, domain, column)
    ordered = first is None or last is None or first <= last
    rule, fix = f"must be in the order of {column!r}", "put the lower end first"
    check(ordered, "ends", rule, given=f"{low}, {high}", fix=fix)
    start = 0 if first is None else axis.before + max(first, 0)
    everything = axis.before + axis.size + int("above" in domain.specials)
    return start, everything if last is None else axis.before + min(last + 1, axis.size)


def _cell(end: str, domain: Domain, column: str) -> int:
    """The cell of an end; -1 below the bounds, and the number of cells above them."""
    found = domain.locate(end, name=column)
    if found.special is Special.BELOW:
        return -1
    return domain.size if found.special is Special.ABOVE else found.cell


def _exact_end(end: End, domain: Domain, column: str, side: int) -> End:
    """An end as written if it names a cell, else the cell that a day or a month begins or ends with."""
    if end is None:
        return None
    places = locate_value(domain, end, name=f"{'high' if side else 'low'} of {column}")
    beyond = isinstance(domain, Date | Timestamp) and places[side].special is _BEYOND[side]
    if places[0] == places[1] and not beyond:
        return end
    return _decode(domain, side * (domain.size - 1) if beyond else places[side].cell)


_BEYOND: Final = Special.BELOW, Special.ABOVE


def _decode(domain: Domain, cell: int) -> str:
    """The value of a cell as text."""
    return value_text(domain.decode([cell])[0])


def _cells_of(step: Fraction | None, domain: Domain) -> int:
    """How many cells a step is: of numbers by their values, of other columns by cells."""
    if step is None:
        return 1
    cells = step / domain.step if isinstance(domain, Real) else step
    whole, rule = cells.denominator == 1, f"must be a whole number of cells of {domain!r}"
    check(whole and 1 <= cells <= domain.size, "step", rule, given=step, fix="pass for example 10")
    return int(cells)


def _pair(index: int, steps: int) -> tuple[int, int]:
    """The ends of range number `index` in the order (0, 0), (0, 1), ..., (1, 1), ..."""
    behind = steps * (steps + 1) // 2 - 1 - index  # counted from the end, rows have lengths 1, 2, 3, ...
    low = steps - 1 - (math.isqrt(8 * behind + 1) - 1) // 2
    return low, index - (low * steps - low * (low - 1) // 2) + low


# Weights by a function.


Weight: TypeAlias = Callable[..., Any]
"""A weight for the values of some columns, in order; None stands for null and all that is no value."""

_MOST_SETTLED: Final = 2**18  # every weight becomes text in the release file: bounds its size


@final
@dataclass(frozen=True, repr=False)
class Function(_SingleQuery):
    """One query: weights by a function of values, rounded to steps and clamped to [0, bound].

    It is evaluated on public cells, or on points of a large universe. The function never makes a query fail:
    an exception, an exit, NaN, or a result that is not a number is the weight zero.
    """

    columns: tuple[str, ...]
    function: Weight
    bound: Fraction
    step: Fraction

    def factors(self, universe: Universe) -> list[Factor]:
        axes = tuple(universe.number(column) for column in self.columns)
        domains = [universe.domain(column) for column in self.columns]

        def weigh(places: NDArray[Any]) -> NDArray[Any]:
            values = [_values(domain, places[:, n]) for n, domain in enumerate(domains)]
            units = [self._units(*each) * self.step.numerator for each in zip(*values, strict=True)]
            return np.array(units, object)

        widths, most = tuple(universe.shape[a] for a in axes), self._most * self.step.numerator
        return [(axes, Vector(widths, weigh, 0, most, self.step.denominator))]

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
            (tuple(map(_key_at, inner.domains, place)), Fraction(int(weight), vector.granularity))
            for place, weight in zip(places.tolist(), weights, strict=True)
            if weight
        )
        return Matrix(self.columns, (row,))

    @property
    def written_out(self) -> bool:
        return False

    def _units(self, *values: object) -> int:
        """The weight of one cell in steps: whatever the function does, from zero to the bound."""
        try:
            given = self.function(*values)
            weight = given.item() if isinstance(given, np.generic) else given
            if not weight > 0:
                return 0
            if weight >= self.bound:
                return self._most
            return min(self._most, round(Fraction(weight) / self.step))
        except KeyboardInterrupt:
            raise
        except BaseException:  # what a function raises may depend on the data, and must not be shown
            return 0

    @property
    def _most(self) -> int:
        return math.floor(self.bound / self.step)

    def __str__(self) -> str:
        name = getattr(self.function, "__name__", type(self.function).__name__)
        options = f"bound={number_text(self.bound)}", f"step={number_text(self.step)}"
        return format_call("weights", *map(quote, self.columns), f"<{name}>", *options)


def _values(domain: Domain, positions: NDArray[Any]) -> list[object]:
    """The value at each position: the nearest bound beyond the bounds, None for null and invalid."""
    axis = Axis.of(domain)
    distinct, codes = np.unique(positions, return_inverse=True)
    clamped = np.clip(distinct, np.uint64(axis.before), np.uint64(axis.before + axis.size - 1))
    decoded = domain.decode(clamped.astype(np.uint64) - np.uint64(axis.before))
    beyond = axis.before + axis.size + int("above" in domain.specials)
    both = zip(decoded, distinct.tolist(), strict=True)
    values = [value if place < beyond else None for value, place in both]
    return [values[code] for code in codes.tolist()]


def _key_at(domain: Domain, position: int) -> Key:
    """What stands for the cell at a position."""
    for name, place in Axis.specials(domain).items():
        if place == position:
            return Special.named(name)
    return _decode(domain, position - Axis.of(domain).before)


# Sums of values.


@final
@dataclass(frozen=True, repr=False)
class Value(_SingleQuery):
    """min(value, cap)^power of a column of numbers, summed over rows.

    Values beyond the declared bounds count as the bounds; null and invalid count as zero.
    """

    column: str
    cap: Fraction | None = None
    power: int = 1

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def factors(self, universe: Universe) -> list[Factor]:
        axis = universe.axis(self.column)
        law = self._law(universe.domain(self.column))
        ends = (0, law.of(0), law.of(axis.size - 1))

        def weigh(places: NDArray[Any]) -> NDArray[Any]:
            return law.weights(places[:, 0], axis)

        vector = Vector((axis.width,), weigh, min(ends), max(ends), law.granularity, sharp=True)
        return [((universe.number(self.column),), vector)]

    def _law(self, domain: Domain) -> _Law:
        low, step = _grid(domain, self.column)
        cap = None if self.cap is None else self.cap * step.denominator
        finer = 1 if cap is None else cap.denominator
        most = None if cap is None else int(cap * finer)
        units = (step.denominator * finer) ** self.power
        return _Law(low, step.numerator * finer, most, self.power, units)

    def __str__(self) -> str:
        name = quote(self.column)
        if self.cap is not None:
            return format_call("clipped", name, number_text(self.cap))
        return format_call("value", name) if self.power == 1 else format_call("power", name, str(self.power))


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
        widest = (abs(self.low) + axis.size) * self.factor
        ends = (axis.size, self.low, self.of(0), self.of(axis.size - 1), widest)
        exact = np.int64 if max(map(abs, ends)) < INT64_LIMIT else object
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
