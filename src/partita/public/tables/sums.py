"""Sums and means of a column of a table release: what its view, its tables and its model tell together.

Nothing is released for them. Each bin of the column has an unbiased estimate of its sum, from the noisy
counts of its cells; the model says which part of each bin lies in a box of other columns. Bars add up what
each of the two may miss, and where the values of a bin lie.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple, NoReturn, final

import numpy as np

from partita.answer import Answer, Joint, ratio_bounds
from partita.arrays import Floats
from partita.domain.axis import Axis
from partita.domain.base import Domain, Special
from partita.domain.numeric import Integer, Real
from partita.errors import InvalidParameter, check
from partita.lazy import cached_property
from partita.public.boxes.base import BoxTerm
from partita.public.boxes.grid import CellGrid
from partita.public.conditions import Where
from partita.public.results import AnyView
from partita.public.sums.base import Covers, End, Ratio, SumAnswer, ValueLine
from partita.public.tables.audits import TRIPLES, UNCLEAR
from partita.public.tables.graph import TableGraphRelease
from partita.public.tables.model import all_pairs
from partita.public.tables.sides import BoxSide, ColumnReader, Runs, join_terms
from partita.public.tables.tails import ColumnTails, HiddenTail
from partita.public.tables.values import FOLLOWED, BinSums, ValuePieces
from partita.public.views import BoxView, find_boxes

# Set on Adult, made-up trips and a made-up table of eight columns at epsilon 1 and 0.1: intervals of 95%
# held 93% or more of the sums by a label, by a range, or by both. With a tilt of 0.5 they were a third wider.
_TILT: Final = 0.25  # deviations inside of a bin by which its mean may differ in a box
_CUT: Final = 1.0  # deviations of means of cells by which cells of a bin may differ from it
_MEAN_TO_SD: Final = 1.25  # the deviation of a normal variable over its mean absolute value
_WIDTH: Final = 2.4 / 1.96  # intervals of 95% reach 2.4 deviations of what the model misses
_KNOWN: Final = 0.02  # the relative error up to which all values are covered, also where none is clear
_EMPTY: Final = 1e-9


# Sums of one column.


class RowMoments(NamedTuple):
    """The rows of a box, and the mean and the deviation of what a row adds, in the box and in all rows."""

    rows: float
    mean: float
    deviation: float
    whole_deviation: float
    whole_share: float


@final
@dataclass(frozen=True, eq=False)
class TableSums:
    """Sums of one column of a table release, by its number."""

    graph: TableGraphRelease
    number: int
    domain: Integer | Real

    @cached_property
    def line(self) -> ValueLine:
        """The values of the column."""
        return ValueLine.of(self.domain)

    @property
    def reader(self) -> ColumnReader:
        """How the column is read."""
        return self.graph.readers[self.number]

    @property
    def axis(self) -> Axis:
        """Its positions."""
        return self.graph.axes[self.number]

    @cached_property
    def tails(self) -> ColumnTails:
        """How far its values are told from noise."""
        return ColumnTails(self.reader, self.line)

    @cached_property
    def covered(self) -> tuple[int, int]:
        """The first and the last position whose values are summed: all cells, if their sum is known.

        Otherwise those up to the farthest octave that is clear: noise on the counts of far cells would hide
        everything else. A function of the released numbers.
        """
        first = self.axis.before
        every, found = (first, first + self.axis.size - 1), self.tails.covered
        if found is None or found == every:
            return every
        pieces = ValuePieces.of(self.reader, self.line, ((*every, 1),))
        held = np.where(pieces.inside, np.maximum(pieces.rows, 0.0) * np.abs(pieces.middles), 0.0)
        errors, _ = self.tails.errors(*every)
        return every if math.sqrt(float(errors @ errors)) <= _KNOWN * float(held.sum()) else found

    def ask(self, terms: Sequence[BoxTerm]) -> TableEstimate:
        """Everything that can be said about the rows in some boxes that do not overlap."""
        widths = [axis.width for axis in self.graph.axes]
        products = join_terms(terms, widths)
        rule, fix = "must not join conditions on several columns with `or` here", "ask for each part, and add"
        check(len(products) <= 1, "where", rule, given=f"{len(products)} parts", fix=fix)
        asked = products[0].runs if products else {}
        runs = asked.get(self.number, ((0, widths[self.number] - 1, 1),))
        low, high = self._covered_within(runs)
        summed = tuple((max(a, low), min(b, high), 1) for a, b, _ in runs if a <= high and b >= low)
        rule, fix = "must leave values that can be summed", "ask for other values, or for a count"
        check(products and summed, "where", rule, given="no value of the column", fix=fix)
        others = {column: each for column, each in asked.items() if column != self.number}
        return TableEstimate(self, runs, summed, others, (low, high))

    def _covered_within(self, runs: Runs) -> tuple[int, int]:
        """The positions that are covered: all of them if the question gives both ends."""
        first, last = self.axis.before, self.axis.before + self.axis.size - 1
        low, high = self.covered
        bounded = runs[0][0] >= first and runs[-1][1] <= last
        return (
            (first, last) if bounded or not any(a <= high and b >= low for a, b, _ in runs) else (low, high)
        )

    def bin_sums(self, runs: Runs) -> BinSums:
        """The bins with the values in some runs; those of all values stay in memory."""
        return self._whole if runs == ((*self.covered, 1),) else self._bin_sums(runs)

    @cached_property
    def _whole(self) -> BinSums:
        return self._bin_sums(((*self.covered, 1),))

    def _bin_sums(self, runs: Runs) -> BinSums:
        return BinSums.of(self.reader, ValuePieces.of(self.reader, self.line, runs), self.graph.rows)

    @cached_property
    def masses(self) -> Floats:
        """The rows in each bin by the model."""
        return self.graph.fit.model.table((self.number,))

    def difference(self, other: int) -> float:
        """How far means of this column lie apart by cells of another, as a deviation.

        The model knows the means of bins. One that joins k labels of like number hides about k times the
        variance.
        """
        if other not in self._differences:
            pair = _ordered(self.number, other)
            table = self.graph.fit.model.table(pair)
            table = table if pair[0] == other else table.T
            rows = np.maximum(table.sum(axis=1), _EMPTY)
            means = table @ self._whole.means / rows
            apart = (means - rows @ means / rows.sum()) ** 2
            hidden = self._joined(other)
            self._differences[other] = math.sqrt(float(rows @ (apart * hidden) / rows.sum()))
        return self._differences[other]

    def _joined(self, other: int) -> Floats:
        """How many labels of like number each bin of another column holds; 1 if the column has an order."""
        bins, curve = self.graph.fit.bins[other], self.graph.fit.curves[other]
        if bins.edges is not None:
            return np.ones(bins.number)
        labels = np.arange(bins.width, dtype=np.uint64)
        rows, which = curve.between(labels, labels), bins.of(labels)
        held, squares = (np.bincount(which, rows**power, bins.number) for power in (1, 2))
        return np.asarray(np.maximum(held**2 / np.maximum(squares, _EMPTY), 1.0))

    @cached_property
    def _differences(self) -> dict[int, float]:
        return {}

    def value(self, position: int) -> float:
        """The value at a position, in floats."""
        return float((self.line.low + position - self.axis.before) * self.line.step)


@final
@dataclass(frozen=True, eq=False)
class TableEstimate:
    """The sum of some values of a column over the rows in a box of other columns.

    `runs` are the positions of the column that the question allows, and `summed` those with a value that
    is covered. `others` has the runs of the other columns, and `covered` the ends of what is covered.
    """

    column: TableSums
    runs: Runs
    summed: Runs
    others: Mapping[int, Runs]
    covered: tuple[int, int]

    @property
    def sum(self) -> SumAnswer:
        """The sum, with what it covers."""
        least = 0.0 if self._ends[0] >= 0.0 else -math.inf
        error, basis = math.sqrt(self.joint.top_variance), self._graph.basis((self._number, *self.others))
        answer = Answer(self.joint.top, lambda: error, self._sum_bounds, least, basis)
        return SumAnswer(answer, self.covers, self.beyond, (self.hidden.below, self.hidden.above))

    @property
    def mean(self) -> Ratio:
        """The mean over the rows with a value that is covered."""

        def bounds(beta: float) -> tuple[float, float]:
            return ratio_bounds(self._sum_bounds(beta / 2), self._count_bounds(beta / 2))

        return Ratio(self.joint, self.covers, *self._ends, bounds, hidden=self.hidden)

    @cached_property
    def hidden(self) -> HiddenTail:
        """What rows of the box beyond the covered values may add, if their number thins out.

        A box has at most twice the share that it has of the last bins that are covered, and a tenth more.
        """
        axis, (low, high) = self.column.axis, self.covered
        (rows, below, above), ends = self.column.tails.hidden, np.array(self.covered, np.uint64)
        last = self._parts[self.column.reader.bins.of(ends)]
        shares = np.minimum(1.0, 2.0 * last + 0.1) if self.others else np.ones(2)
        open_low = self.runs[0][0] <= axis.before < low
        open_high = self.runs[-1][1] >= axis.before + axis.size - 1 > high
        return HiddenTail(
            rows * float(shares.max()) if open_low or open_high else 0.0,
            below * float(shares[0]) if open_low else 0.0,
            above * float(shares[1]) if open_high else 0.0,
        )

    @property
    def covers(self) -> Covers:
        """Values that are asked for count in full; below and above those that are covered none do."""
        (low, high), (lowest, highest) = self._values, (self.runs[0][0], self.runs[-1][1])
        first, last = self.summed[0][0], self.summed[-1][1]
        behind = self.column.axis.before + self.column.axis.size  # invalid and null have no order
        lower = End(low, whole=True) if lowest >= first else End(low, gone=low)
        upper = End(high, whole=True) if min(highest, behind) <= last else End(high, gone=high)
        return Covers(lower, upper, thinning=self.hidden.rows > 0.0)

    @cached_property
    def beyond(self) -> Answer:
        """How many rows of the box have values that are asked for and not covered."""
        first, last = self.covered
        behind = self.column.axis.before + self.column.axis.size
        sides = [(a, min(b, first - 1)) for a, b, _ in self.runs if a < first]
        sides += [(max(a, last + 1), min(b, behind)) for a, b, _ in self.runs if b > last]
        return self._count([side for side in sides if side[0] <= side[1]])

    @cached_property
    def joint(self) -> Joint:
        """The sum and the count of its values, their variances, and their covariance."""
        found, part = self._bins, self._parts
        values, counted = found.values, found.counted
        top = values.covariance(values, part) if self._is_grid else self._octave_variance
        bottom, both = counted.covariance(counted, part), values.covariance(counted, part)
        if self.others:
            mean, share, of_rows = self._sides_error
            top += (mean**2 + self._sum_moments.whole_deviation**2) * of_rows
            top += self._missed(self._sum_moments) ** 2 + self._tilt**2 + self._cut**2
            bottom += share**2 * of_rows + self._missed(self._count_moments) ** 2
            both += mean * share * of_rows
            top, bottom = max(top, self._unclear_variance), max(bottom, self._unclear_rows)
        most = math.sqrt(top * bottom)
        both = min(max(both, -most), most)
        return Joint(float(part @ values.sums), float(part @ counted.sums), top, bottom, both)

    @property
    def _unclear_rows(self) -> float:
        """The variance of the number of rows if noise hides whether there are any; else zero."""
        return self._box.error**2 if self._box.value < UNCLEAR * self._box.error else 0.0

    @property
    def _unclear_variance(self) -> float:
        """The least variance of the sum if noise hides the rows of the box, or all values of the column.

        Then nothing is known about who is where: rows of the box may have the farthest value, and all that
        the column may hold may lie in the box.
        """
        farthest = max(map(abs, self._values))
        whole = TableEstimate(self.column, self.runs, self.summed, {}, self.covered).joint
        hidden = abs(whole.top) < UNCLEAR * math.sqrt(whole.top_variance)
        return max(self._unclear_rows * farthest**2, whole.top_variance if hidden else 0.0)

    @property
    def _is_grid(self) -> bool:
        """Whether each value has a noisy count of its own."""
        return isinstance(self.column.reader.view, CellGrid)

    @property
    def _octave_variance(self) -> float:
        """The variance of the sum by a tree: octaves are independent, inside of one errors go together."""
        errors, ends = self.column.tails.errors(self.summed[0][0], self.summed[-1][1])
        if self.others:
            first, last = (self.column.reader.bins.of(ends[:, side]) for side in (0, 1))
            inside, whole = (np.append(0.0, np.cumsum(rows)) for rows in (self._inside, self.column.masses))
            held = np.maximum(whole[last + 1] - whole[first], _EMPTY)
            errors = errors * np.clip((inside[last + 1] - inside[first]) / held, 0.0, 1.0)
        if self.column.tails.covered is None:  # noise is all that there is, and it may go one way
            return FOLLOWED * float(errors.sum()) ** 2
        return FOLLOWED * float(errors @ errors)

    @property
    def _sides_error(self) -> tuple[float, float, float]:
        """What a row of the box adds to the sum and to the count, and the variance of its number of rows."""
        return self._sum_moments.mean, self._count_moments.mean, self._box.error**2

    def _missed(self, moments: RowMoments) -> float:
        """What the model may miss of the dependence on other columns: audits say how much of a deviation."""
        rows, misses = self._graph.fit.rows, self._graph.misses
        share = {c: min(max(side.share, _EMPTY), 1 - _EMPTY) for c, side in self._sides.items()}
        root = {c: math.sqrt(u * (1 - u)) for c, u in share.items()}
        variance = moments.rows * moments.deviation**2 + moments.whole_deviation**2
        for c, u in share.items():
            phi = misses.mean_miss(
                self._graph.kind_of(_ordered(c, self._number)), _at(u * moments.whole_share)
            )
            part = min(1.0, (moments.rows + 1) / (rows * u + 1))
            variance += (_MEAN_TO_SD * float(phi[0]) * rows * root[c] * moments.whole_deviation * part) ** 2
        for a, b in all_pairs(tuple(sorted(share))):
            rest = math.prod(u for c, u in share.items() if c not in (a, b))
            phi = misses.mean_miss(TRIPLES, _at(share[a] * share[b] * moments.whole_share))
            size = _MEAN_TO_SD * float(phi[0]) * rows * root[a] * root[b] * rest
            variance += (size * moments.whole_deviation) ** 2
        return _WIDTH * math.sqrt(variance)

    @property
    def _tilt(self) -> float:
        """What the sum misses if values inside of all bins lie higher, or lower, in the box."""
        inside = self._inside * np.sqrt(np.maximum(1.0 - self._parts, 0.0))
        return _TILT * float(inside @ self._bins.spreads)

    @property
    def _cut(self) -> float:
        """What the sum misses if rows of a bin that the box cuts differ from the rest of their bin."""
        weights = {column: side.weights for column, side in self._sides.items()}
        variance = 0.0
        for column, cut in weights.items():
            beside = {other: each for other, each in weights.items() if other != column}
            rows = self._graph.fit.model.table((column,), beside) * cut
            square = float((rows**2 * np.maximum(1.0 - cut, 0.0)).sum())
            variance += square * self.column.difference(column) ** 2
        return _CUT * math.sqrt(variance)

    @cached_property
    def _sum_moments(self) -> RowMoments:
        return self._moments(self._bins.means, self._bins.squares)

    @cached_property
    def _count_moments(self) -> RowMoments:
        return self._moments(self._bins.parts, self._bins.parts)

    def _moments(self, means: Floats, squares: Floats) -> RowMoments:
        whole = self.column.masses
        mean, deviation = _mean_deviation(whole, means, squares)
        rows = float(self._inside.sum())
        own, inner = (mean, deviation) if rows < 1.0 else _mean_deviation(self._inside, means, squares)
        total = max(float(whole.sum()), _EMPTY)
        absolute = float(whole @ np.abs(means - mean)) / total
        # For an indicator of a share p, 4 p (1 - p) is the squared mean absolute deviation over the variance.
        ratio = min(1.0, absolute**2 / max(deviation**2, _EMPTY))
        return RowMoments(rows, own, inner, deviation, max((1 - math.sqrt(1 - ratio)) / 2, _EMPTY))

    @cached_property
    def _bins(self) -> BinSums:
        return self.column.bin_sums(self.summed)

    @cached_property
    def _sides(self) -> dict[int, BoxSide]:
        return {column: self._graph.readers[column].side(runs) for column, runs in self.others.items()}

    @cached_property
    def _inside(self) -> Floats:
        """The rows of the box in each bin by the model."""
        weights = {column: side.weights for column, side in self._sides.items()}
        return self._graph.fit.model.table((self._number,), weights)

    @cached_property
    def _parts(self) -> Floats:
        """The part of each bin that lies in the box."""
        whole = self.column.masses
        if not self.others:
            return np.ones(whole.size)
        return np.clip(self._inside / np.maximum(whole, _EMPTY), 0.0, 1.0)

    @property
    def _graph(self) -> TableGraphRelease:
        return self.column.graph

    @property
    def _number(self) -> int:
        return self.column.number

    @property
    def _values(self) -> tuple[float, float]:
        return self.column.value(self.summed[0][0]), self.column.value(self.summed[-1][1])

    @cached_property
    def _box(self) -> Answer:
        """How many rows are in the box, with any value or none."""
        return self._count([(0, self.column.axis.width - 1)])

    def _count(self, sides: Iterable[tuple[int, int]]) -> Answer:
        """How many rows of the box have a position of the column in one of these runs."""
        terms = [box for side in sides for box in self._boxes(side)]
        return self._graph.answer(*terms) if terms else Answer.exact(0.0)

    def _boxes(self, side: tuple[int, int]) -> Iterator[BoxTerm]:
        boxes: list[dict[int, tuple[int, int]]] = [{self._number: side}]
        for column, runs in self.others.items():
            boxes = [{**box, column: (low, high)} for box in boxes for low, high, _ in runs]
        for box in boxes:
            ends = [box.get(c, (0, axis.width - 1)) for c, axis in enumerate(self._graph.axes)]
            yield BoxTerm(tuple(low for low, _ in ends), tuple(high for _, high in ends))

    def _count_bounds(self, beta: float) -> tuple[float, float]:
        """Guaranteed bounds on the number of rows with a value that is covered."""
        low, high = self._count([(a, b) for a, b, _ in self.summed]).bounds(beta)
        return max(0.0, low), max(0.0, high)

    def _sum_bounds(self, beta: float) -> tuple[float, float]:
        """Guaranteed bounds on the sum of all values that are asked for: octave by octave, and at once."""
        if beta not in self._last_bounds:
            part = beta / len(self._bounded)  # one part for all: a tree keeps its bounds for the last one
            (low, high), *octaves = (_bound_sum(*each, part) for each in self._bounded)
            self._last_bounds.clear()
            self._last_bounds[beta] = (
                max(low, sum(least for least, _ in octaves)),
                min(high, sum(most for _, most in octaves)),
            )
        return self._last_bounds[beta]

    @cached_property
    def _bounded(self) -> list[tuple[float, float, Answer]]:
        """The least value, the largest value and the rows of all that is asked for, then of each octave."""
        spans = [[piece] for a, b in self._asked for piece in self.column.tails.split(a, b)]
        value = self.column.value
        return [(value(s[0][0]), value(s[-1][1]), self._count(s)) for s in (self._asked, *spans)]

    @cached_property
    def _last_bounds(self) -> dict[float, tuple[float, float]]:
        return {}

    @property
    def _asked(self) -> list[tuple[int, int]]:
        """The positions of values that the question allows, covered or not."""
        first, last = self.column.axis.before, self.column.axis.before + self.column.axis.size - 1
        cut = ((max(a, first), min(b, last)) for a, b, _ in self.runs)
        return [(a, b) for a, b in cut if a <= b]

    @property
    def _ends(self) -> tuple[float, float]:
        """The least and the largest value that the question allows."""
        return self.column.value(self._asked[0][0]), self.column.value(self._asked[-1][1])


def _bound_sum(low: float, high: float, rows: Answer, beta: float) -> tuple[float, float]:
    """Bounds on a sum by those on the number of its rows, each of which has a value from low to high."""
    few, many = (max(0.0, end) for end in rows.bounds(beta))
    return min(low * few, low * many), max(high * few, high * many)


def _mean_deviation(rows: Floats, means: Floats, squares: Floats) -> tuple[float, float]:
    total = max(float(rows.sum()), _EMPTY)
    mean = float(rows @ means) / total
    return mean, math.sqrt(max(float(rows @ squares) / total - mean**2, 0.0))


def _at(share: float) -> Floats:
    return np.array([share])


def _ordered(one: int, other: int) -> tuple[int, int]:
    return (one, other) if one < other else (other, one)


# Which columns of a release have sums.


@final
@dataclass(frozen=True, eq=False, repr=False)
class TableSumView:
    """A column of numbers in a table release, which any columns of the table are keys of."""

    statistic: ClassVar[str] = "sums"

    view: BoxView
    column: str

    def __repr__(self) -> str:
        return f"TableSumView({self.column}; {self.view.mechanism})"

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that a question may name: all of them, the summed one as well."""
        return self.view.columns

    @property
    def declared(self) -> Mapping[str, Domain]:
        """The domain of each column."""
        return self.view.declared

    @property
    def domain(self) -> Domain:
        """The domain of the summed column."""
        return self.declared[self.column]

    @property
    def specials(self) -> Mapping[str, Answer]:
        """How many rows of the column are below or above its bounds, invalid, and null."""
        return {n: self.view.count({self.column: Special.named(n)}) for n in self.domain.specials}

    def sum(self, asked: Where) -> SumAnswer:
        """The sum of the column over the rows asked for."""
        return self._ask(asked).sum

    def mean(self, asked: Where) -> Ratio:
        """The mean of the column over the rows asked for that have a value."""
        return self._ask(asked).mean

    def variance(self, asked: Where) -> NoReturn:
        """Refused: the bins of a table are too wide for squares."""
        rule = "must have moments for a variance, and a table release has none"
        fix = f"publish it in a view of its own: views=[({self.column!r},), ...], moments=[{self.column!r}]"
        raise InvalidParameter("column", rule, given=self.column, fix=fix)

    std = variance

    def _ask(self, asked: Where) -> TableEstimate:
        return self._sums.ask(find_boxes(self.declared, asked))

    @cached_property
    def _sums(self) -> TableSums:
        graph, domain = self.view.boxes, self.domain
        assert isinstance(graph, TableGraphRelease)
        assert isinstance(domain, Integer | Real)
        return TableSums(graph, self.view.columns.index(self.column), domain)


def find_table_sums(views: Iterable[AnyView]) -> tuple[TableSumView, ...]:
    """Every column of numbers of every table release."""
    return tuple(
        TableSumView(view, column)
        for view in views
        if isinstance(view, BoxView) and isinstance(view.boxes, TableGraphRelease)
        for column, domain in view.declared.items()
        if isinstance(domain, Integer | Real)
    )
