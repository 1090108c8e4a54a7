"""How many people lie in any range: one report each about one level of a tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, final

import numpy as np

from partita.answer import Answer
from partita.arrays import Floats
from partita.errors import InvalidParameter, check, check_data, check_type
from partita.local.aggregate import ViewAggregator, ViewEvidence, coarser
from partita.local.frequency import Mixture, ViewKind, ViewQuestion, domain_ends
from partita.local.question import (
    CellQuestion,
    CellTree,
    Levels,
    ReportView,
    column_cell,
    column_cells,
    column_size,
    described,
    grid_views,
    line_views,
    tensor_views,
)
from partita.local.randomizer import Json, Randomizer
from partita.numbers import failure, freeze, integer, one_of, rational
from partita.public.axis.shrinkage import shared_out

if TYPE_CHECKING:
    from partita.arrays import Ints
    from partita.domain.base import Domain

# Tables that agree with tables of fewer columns, by proportional fitting [Deming and Stephan 1940].


_ROUNDS: Final = 40
_LEAST: Final = 1e-300


def raked(table: Floats, rows: Floats, columns: Floats) -> Floats:
    """The table scaled by rows and columns in turn, to these sums exactly.

    What scaling leaves is put right at the end: rows and columns that have too much are cut, and what is
    missing then is added as if independent [Altschuler, Weed, Rigollet 2017].
    """
    fitted = table
    for _ in range(_ROUNDS):
        fitted = fitted * _factor(rows, fitted.sum(axis=1))[:, np.newaxis]
        fitted = fitted * _factor(columns, fitted.sum(axis=0))
    fitted = fitted * _factor(rows, fitted.sum(axis=1)).clip(0, 1)[:, np.newaxis]
    fitted = fitted * _factor(columns, fitted.sum(axis=0)).clip(0, 1)
    row, column = rows - fitted.sum(axis=1), columns - fitted.sum(axis=0)
    return np.asarray(fitted + np.outer(row, column) / max(float(row.sum()), _LEAST))


def joint_share(sides: Floats, pairs: Mapping[tuple[int, int], float]) -> float:
    """The share inside of all sides at once, from the share inside of each and of every two.

    The table of all combinations of inside and outside is fitted to every two sides in turn. It starts from
    independence, so it ends with no more association than every two sides have.

    >>> round(joint_share(np.array([0.5, 0.5, 0.5]), {(0, 1): 0.25, (0, 2): 0.25, (1, 2): 0.25}), 6)
    0.125
    """
    count = len(sides)
    fitted = np.full((2,) * count, 2.0**-count)
    for _ in range(_ROUNDS):
        for (one, other), both in pairs.items():
            told = _two_by_two(float(sides[one]), float(sides[other]), both)
            others = tuple(axis for axis in range(count) if axis not in (one, other))
            factor = _factor(told, fitted.sum(axis=others))
            fitted = fitted * np.expand_dims(factor, others)
    return float(fitted[(1,) * count])


def _two_by_two(one: float, other: float, both: float) -> Floats:
    """Outside and inside of two sides."""
    both = min(both, one, other)
    return np.array([[1 - one - other + both, other - both], [one - both, both]]).clip(0.0)


def _factor(wanted: Floats, there: Floats) -> Floats:
    return np.divide(wanted, there, out=np.zeros_like(there), where=there > 0)


# Shares made non-negative from the top down: every node keeps its share, and its children get it.


def top_down(table: Floats, branchings: tuple[int, ...]) -> Floats:
    """The shares of cells, none below zero, one in all; sums of many cells stay as near as they can.

    Each node's share is divided among its children as near to their estimates as shares >= 0 can be, from the
    root down to the cells. With several axes the longest is divided last, in turn. To cut off at the cells
    alone would raise the sum of every stretch of empty ones, and the more the longer it is.

    >>> top_down(np.array([0.6, 0.5, -0.4, 0.3, 0.0]), (2,)).round(2).tolist()
    [0.55, 0.45, 0.0, 0.0, 0.0]
    """
    steps, tables = [], [table]
    while tables[-1].size > 1:
        axis = int(np.argmax(tables[-1].shape))
        steps.append(axis)
        tables.append(coarser(_filled(tables[-1], axis, branchings[axis], 0.0), axis, branchings[axis]))
    shares = np.ones_like(tables.pop())
    for axis, children in zip(reversed(steps), reversed(tables), strict=True):
        shares = _divided(children, shares, axis, branchings[axis])
    return shares


def _divided(children: Floats, parents: Floats, axis: int, branching: int) -> Floats:
    """The shares of parents among their children along one axis; a child that does not exist gets nothing."""
    last = np.moveaxis(_filled(children, axis, branching, -np.inf), axis, -1)
    rows = shared_out(last.reshape(-1, branching), np.moveaxis(parents, axis, -1).ravel())
    divided = np.moveaxis(rows.reshape(last.shape), -1, axis)
    return divided[tuple(slice(length) for length in children.shape)]


def _filled(table: Floats, axis: int, branching: int, filling: float) -> Floats:
    """The table with its last siblings along an axis filled up."""
    missing = -table.shape[axis] % branching
    widths = [(0, missing if at == axis else 0) for at in range(table.ndim)]
    return np.pad(table, widths, constant_values=filling)


# Quantiles of estimated shares.


def quantile_cells(shares: Floats, quantiles: Sequence[float]) -> list[int]:
    """For each q the least cell at which q of all that the cells hold is reached.

    >>> quantile_cells(np.array([0.1, 0.0, 0.2, 0.1]), [0.0, 0.25, 0.5, 1.0])
    [0, 0, 2, 3]
    """
    fix = "pass for example 0.5"
    check(all(0 <= q <= 1 for q in quantiles), "q", "must lie between 0 and 1", given=None, fix=fix)
    reached = np.cumsum(shares)
    total = float(reached[-1])
    if not total > 0:
        return [0 for _ in quantiles]
    places = np.searchsorted(reached, np.array(quantiles, dtype=np.float64) * total * (1 - 2.0**-40))
    return [int(place) for place in places.clip(0, shares.size - 1)]


@final
@dataclass(frozen=True, init=False)
class Range(ViewQuestion, CellQuestion):
    """Where on a public line is a person, roughly or exactly?

    The cells are the leaves of a tree. A device draws a level, and reports which node of that level its
    value is under. The domain is as that of `Frequency`; special cells come last and are in no range.
    `branching` is the number of children of a node: 2 is best, or 4 near epsilon 1.

    Guarantee: epsilon-DP of each report, the level included, pure, local.
    Error:     variance O(log^2 size e^epsilon / (n (e^epsilon - 1)^2)) of the share of any range.
    Proof:     docs/proofs/local_ranges.md

    >>> question = Range(1024, epsilon=1)
    >>> len(question.randomizer.views), question.epsilon
    (10, Fraction(1, 1))
    """

    asks: ClassVar[str] = "range"
    branching: int

    def __init__(
        self, domain: int | Domain, *, epsilon: object, branching: int = 2, kind: ViewKind = "auto"
    ) -> None:
        line = CellTree(column_size(domain), branching)
        mixture = Mixture.of(line_views(line), epsilon=epsilon, kind=kind)
        freeze(self, domain=domain, branching=line.branching, randomizer=mixture)

    @classmethod
    def of(cls, domain: int | Domain, branching: int, parts: Sequence[Randomizer]) -> Self:
        """The question about a domain with given randomizers, one for each level from the top."""
        line = CellTree(column_size(domain), branching)
        made = object.__new__(cls)
        mixture = Mixture.read(line_views(line), parts)
        freeze(made, domain=domain, branching=line.branching, randomizer=mixture)
        return made

    @property
    def ordinary(self) -> int:
        """The number of cells in order, without the special ones."""
        return self.domain if isinstance(self.domain, int) else self.domain.size

    def aggregator(self) -> RangeAggregator:
        """A new aggregator of reports."""
        return RangeAggregator(self)

    def _asked(self) -> Json:
        return {**super()._asked(), "branching": self.branching}


# What reports about levels say: shares and counts of ranges, the distribution function, quantiles.


_LEAST_IN_ORDER: Final = 1e-9
"""Where nobody seems to be in order, nothing is known about their quantiles."""


@final
class RangeAggregator(ViewAggregator[Range]):
    """Counts reports about where people are on a line.

    >>> question = Range(16, epsilon=3)
    >>> aggregator = question.aggregator()
    >>> aggregator.add_many(question.randomize_many([3, 4, 4, 9]))
    >>> aggregator.n, sum(aggregator.people)
    (4, 4)
    """

    def estimate(self) -> RangeEstimate:
        """Shares of all ranges, with errors and intervals."""
        return RangeEstimate(self.question, self.evidence())


@final
@dataclass(frozen=True, eq=False)
class RangeEstimate:
    """The share of people in any range: consistent, none below zero, one in all.

    Levels are combined by least squares, then made non-negative from the top down. Errors are those before
    the last step, which brings estimates nearer to the truth as a rule.
    """

    question: Range
    evidence: ViewEvidence

    @property
    def n(self) -> int:
        """The number of reports."""
        return self.evidence.n

    @cached_property
    def unbiased(self) -> Floats:
        """The shares of all cells by least squares; some may be below zero."""
        [line] = self.evidence.lines
        return self.evidence.details.table((line.height,))[: line.size]

    @cached_property
    def values(self) -> Floats:
        """The shares of all cells, special ones last: what every answer is made of."""
        return top_down(self.unbiased, (self.question.branching,))

    def frequency(self, low: object, high: object) -> Answer:
        """The share of people from low to high, both included; values of the domain, or cells."""
        return self._share(domain_ends(self.question.domain, low, high))

    def count(self, low: object, high: object) -> Answer:
        """How many of the n people are from low to high."""
        return scaled(self.frequency(low, high), self.n)

    def cdf(self, value: object) -> Answer:
        """The share of people who are in order and not above a value."""
        return self._share((0, domain_ends(self.question.domain, value, value)[1]))

    def special(self, name: str) -> Answer:
        """The share of people in a special cell of the domain."""
        specials = () if isinstance(self.question.domain, int) else self.question.domain.specials
        cell = self.question.ordinary + specials.index(one_of(name, "name", specials))
        return self._share((cell, cell))

    def quantile(self, q: float) -> object:
        """The least value with a share of at least q, among people who are in order, at or below it."""
        return self._value(self._quantile_cells([float(rational(q, "q"))])[0])

    def quantile_interval(self, q: float, confidence: float = 0.95) -> tuple[object, object]:
        """Two values between which the quantile lies with about this confidence.

        Where the error may be all that lies above the quantile, the interval reaches to the end of the line,
        also if no report comes from there.
        """
        normal = NormalDist().inv_cdf((1 + float(failure(confidence, "confidence"))) / 2)
        share = float(rational(q, "q"))
        [cell] = self._quantile_cells([share])
        error = max(self._share((0, end)).error for end in (cell - 1, cell))
        half = normal * error / max(self._in_order, _LEAST_IN_ORDER)
        low, high = self._quantile_cells([max(0.0, share - half), min(1.0, share + half)])
        return self._value(low), self._value(high if share + half < 1 else self.question.ordinary - 1)

    @property
    def _in_order(self) -> float:
        """The share of people in no special cell."""
        return float(self.values[: self.question.ordinary].sum())

    def _quantile_cells(self, shares: list[float]) -> list[int]:
        return quantile_cells(self.values[: self.question.ordinary], shares)

    def _value(self, cell: int) -> object:
        domain = self.question.domain
        return cell if isinstance(domain, int) else domain.decode([cell])[0]

    def _share(self, ends: tuple[int, int]) -> Answer:
        low, high = ends
        if low > high:
            return Answer.exact(0.0)
        [line] = self.evidence.lines
        mask = np.zeros(line.size)
        mask[low : high + 1] = 1.0
        return Answer(
            float(self.values[low : high + 1].sum()),
            lambda: sqrt(self.evidence.details.variance([mask])),
            lambda beta: self.evidence.bounds((ends,), beta),
        )


def scaled(share: Answer, people: int) -> Answer:
    """A number of people in place of a share."""

    def bounds(beta: float) -> tuple[float, float]:
        low, high = share.bounds(beta)
        return people * low, people * high

    return Answer(people * share.value, lambda: people * share.error, bounds)


# How many people lie in any box of several columns: one report each about a few of them.


MOST_COLUMNS: Final = 6
"""As many as the boxes of a release have at most."""

_GRID: Final = 16


@final
@dataclass(frozen=True, init=False)
class Rectangles(ViewQuestion):
    """Where is a person in the space of two to six public columns?

    Each column is a tree, as in `Range`. With two columns a device draws a level for each, and reports the
    rectangle of these levels that holds it. With more it reports a node of one column, or a rectangle of a
    grid with about `grid` cells a side over two columns: no report is about more than two.

    Guarantee: epsilon-DP of each report, the levels included, pure, local.
    Error:     variance O(log^4 size e^epsilon / (n (e^epsilon - 1)^2)) of a box of two columns; a box of
               more is guessed from every two of them.
    Proof:     docs/proofs/local_ranges.md

    >>> question = Rectangles({"x": 32, "y": 32}, epsilon=1)
    >>> len(question.randomizer.views), question.cell({"x": 1, "y": 2})
    (35, 34)
    """

    asks: ClassVar[str] = "rectangles"
    columns: tuple[str, ...]
    domains: tuple[int | Domain, ...]
    branching: int
    grid: int

    def __init__(
        self,
        columns: Mapping[str, int | Domain],
        *,
        epsilon: object,
        branching: int = 2,
        grid: int = _GRID,
        kind: ViewKind = "auto",
    ) -> None:
        self._fill(columns, branching, grid)
        freeze(self, randomizer=Mixture.of(self._views(), epsilon=epsilon, kind=kind))

    @classmethod
    def of(
        cls, columns: Mapping[str, int | Domain], branching: int, grid: int, parts: Sequence[Randomizer]
    ) -> Self:
        """The question about columns with given randomizers, one for each view."""
        made = object.__new__(cls)
        made._fill(columns, branching, grid)
        freeze(made, randomizer=Mixture.read(made._views(), parts))
        return made

    def _fill(self, columns: object, branching: int, grid: int) -> None:
        if not isinstance(columns, Mapping) or not 2 <= len(columns) <= MOST_COLUMNS:
            rule = f"must be 2 to {MOST_COLUMNS} names with domains"
            raise InvalidParameter("columns", rule, given=None, fix='as {"x": 32, "y": 32}')
        freeze(
            self,
            columns=tuple(columns),
            domains=tuple(columns.values()),
            branching=CellTree(2, branching).branching,
            grid=integer(grid, "grid", low=2, high=1 << 10),
        )

    def _views(self) -> tuple[ReportView, ...]:
        lines = tuple(CellTree(column_size(domain), self.branching) for domain in self.domains)
        return tensor_views(lines) if len(lines) == 2 else grid_views(lines, self.grid)

    def cell(self, value: object) -> int:
        """The cell of one row, a mapping of columns to values; what is missing counts as None."""
        row: Mapping[str, object] = value if isinstance(value, Mapping) else {}
        named = zip(self.columns, self.domains, strict=True)
        joined: int = self._joined([column_cell(domain, row.get(name)) for name, domain in named])
        return joined

    def cells(self, values: object) -> Ints:
        """The cell of every row of a table, a mapping of columns to arrays of one length."""
        table = values if isinstance(values, Mapping) else {}
        if not set(self.columns) <= set(table):
            raise InvalidParameter(
                "values", f"must have the columns {', '.join(self.columns)}", given=None, fix="add them"
            )
        named = zip(self.columns, self.domains, strict=True)
        cells = [column_cells(domain, table[name]) for name, domain in named]
        rule = "must have columns of one length"
        check_data(len({len(each) for each in cells}) <= 1, "values", rule, fix="check the table")
        joined: Ints = self._joined(cells)
        return joined

    def aggregator(self) -> RectangleAggregator:
        """A new aggregator of reports."""
        return RectangleAggregator(self)

    def ordinary(self, axis: int) -> int:
        """The number of cells in order of a column, without the special ones."""
        domain = self.domains[axis]
        return domain if isinstance(domain, int) else domain.size

    def _joined(self, cells: Sequence[Any]) -> Any:
        """The cells of all columns as one number, the last column running fastest."""
        joined: Any = 0
        for line, cell in zip(self.lines, cells, strict=True):
            joined = joined * line.size + cell
        return joined

    def _asked(self) -> Json:
        named = zip(self.columns, self.domains, strict=True)
        columns = {name: described(domain) for name, domain in named}
        return {"columns": columns, "branching": self.branching, "grid": self.grid}


# What reports about rectangles say: shares and counts of any box.


Ends = tuple[int, int]
Box = Mapping[str, tuple[object, object]]


@final
class RectangleAggregator(ViewAggregator[Rectangles]):
    """Counts reports about where people are in the space of several columns."""

    def estimate(self) -> RectangleEstimate:
        """Shares of all boxes, with errors and intervals."""
        return RectangleEstimate(self.question, self.evidence())


@final
@dataclass(frozen=True, eq=False)
class RectangleEstimate:
    """The share of people in any box: none below zero, one in all, and one answer for one column everywhere.

    A box bounds some columns and leaves the others open. Of two columns there is one table, made consistent
    by least squares and non-negative from the top down. With more than two in the question it is fitted to
    the sums of its columns, which are known to each cell, and a cell of its grid is divided as these are.
    Three columns and more are put together from every two of them. What associations of three there are
    beyond that, nobody reported, and no error knows of them.
    """

    question: Rectangles
    evidence: ViewEvidence

    @property
    def n(self) -> int:
        """The number of reports."""
        return self.evidence.n

    def frequency(self, box: Box) -> Answer:
        """The share of people in a box: for some columns a first and a last value, or cell."""
        ends = self._ends(box)
        if any(low > high for low, high in ends.values()):
            return Answer.exact(0.0)
        if not ends:
            return Answer.exact(1.0)
        every = [ends.get(axis, (0, line.size - 1)) for axis, line in enumerate(self.evidence.lines)]
        masks = [_mask(each, line.size) for each, line in zip(every, self.evidence.lines, strict=True)]
        return Answer(
            self._share(ends),
            lambda: sqrt(self.evidence.details.variance(masks)),
            lambda beta: self.evidence.bounds(tuple(every), beta),
        )

    def count(self, box: Box) -> Answer:
        """How many of the n people are in a box."""
        return scaled(self.frequency(box), self.n)

    def column(self, name: str) -> Floats:
        """The shares of all cells of one column, special ones last."""
        return self._columns[self._axis(name)]

    @cached_property
    def _columns(self) -> list[Floats]:
        axes = range(len(self.evidence.lines))
        if len(axes) == 2:
            [table] = self._pairs.values()
            return [table.sum(axis=1), table.sum(axis=0)]
        heights = [line.height for line in self.evidence.lines]
        return [self._projected({axis: heights[axis]}) for axis in axes]

    @cached_property
    def _pairs(self) -> dict[tuple[int, int], Floats]:
        """For every two columns a table at the finest levels of a view of both."""
        lines = self.evidence.lines
        if len(lines) == 2:
            return {(0, 1): self._projected({0: lines[0].height, 1: lines[1].height})}
        return {pair: self._fitted(pair) for pair in combinations(range(len(lines)), 2)}

    def _fitted(self, pair: tuple[int, int]) -> Floats:
        levels = {axis: self._grid_level(axis) for axis in pair}
        rows, columns = (self._block_sums(axis) for axis in pair)
        return raked(self._projected(levels), rows, columns)

    def _projected(self, levels: Mapping[int, int]) -> Floats:
        """The table of some columns at these levels, without the axes of the others."""
        lines = self.evidence.lines
        finest: Levels = tuple(levels.get(axis, 0) for axis in range(len(lines)))
        table = self.evidence.details.table(finest)
        table = table.reshape([length for axis, length in enumerate(table.shape) if axis in levels])
        table = table[tuple(slice(lines[axis].width(level)) for axis, level in levels.items())]
        return top_down(table, (self.question.branching,) * len(levels))

    def _grid_level(self, axis: int) -> int:
        """The finest level at which a view sees the column together with another one."""
        views = self.evidence.mixture.views
        return max(view.levels[axis] for view in views if sum(map(bool, view.levels)) == 2)

    def _block_sums(self, axis: int) -> Floats:
        """The shares of a column, summed over each cell of the grid."""
        span = self.evidence.lines[axis].span(self._grid_level(axis))
        return np.add.reduceat(self._columns[axis], np.arange(0, self._columns[axis].size, span))

    def _inside(self, axis: int, ends: Ends) -> Floats:
        """Of each cell of the grid, the part that lies between two cells of a column."""
        shares, line = self._columns[axis], self.evidence.lines[axis]
        starts = np.arange(0, line.size, line.span(self._grid_level(axis)))
        mask = _mask(ends, line.size)
        whole, part = (np.add.reduceat(values, starts) for values in (shares, shares * mask))
        cells = np.add.reduceat(mask, starts) / np.diff(starts, append=line.size)
        return np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), cells)

    def _share(self, ends: Mapping[int, Ends]) -> float:
        axes = sorted(ends)
        sides = [float(self._columns[axis][ends[axis][0] : ends[axis][1] + 1].sum()) for axis in axes]
        if len(axes) == 1:
            return sides[0]
        pairs = {
            (axes.index(one), axes.index(other)): self._both(one, other, ends)
            for one, other in combinations(axes, 2)
        }
        return pairs[0, 1] if len(axes) == 2 else joint_share(np.array(sides), pairs)

    def _both(self, one: int, other: int, ends: Mapping[int, Ends]) -> float:
        return float(
            self._inside(one, ends[one]) @ self._pairs[one, other] @ self._inside(other, ends[other])
        )

    def _ends(self, box: Box) -> dict[int, Ends]:
        box = check_type(box, Mapping, "box", "must map columns to two ends", fix='as {"age": (30, 39)}')
        return {
            self._axis(name): domain_ends(self.question.domains[self._axis(name)], *_two(given))
            for name, given in box.items()
        }

    def _axis(self, name: object) -> int:
        if name not in self.question.columns:
            rule = f"must be one of {', '.join(self.question.columns)}"
            raise InvalidParameter("column", rule, given=name, fix="check its name")
        return self.question.columns.index(str(name))


def _mask(ends: Ends, size: int) -> Floats:
    mask = np.zeros(size)
    mask[ends[0] : ends[1] + 1] = 1.0
    return mask


def _two(given: object) -> tuple[object, object]:
    if not isinstance(given, tuple | list) or len(given) != 2:
        fix = "pass (low, high)"
        raise InvalidParameter("box", "must have two ends for each column", given=given, fix=fix)
    return given[0], given[1]
