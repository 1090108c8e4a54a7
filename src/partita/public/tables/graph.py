"""A released table of many columns: views, noisy tables, audits, and the model that answers questions."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, Final, NamedTuple, Self, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answer
from partita.arrays import Floats
from partita.domain.axis import Axis
from partita.errors import InvalidParameter
from partita.guarantee import Guarantee
from partita.lazy import cached_property
from partita.numbers import check_probability, freeze, integer
from partita.public.axis.base import NoisySum, Parts
from partita.public.axis.curve import Curve
from partita.public.base import checkpoint
from partita.public.bounds import Gaussian, NoiseLaw
from partita.public.boxes.base import BoxRelease, BoxTerm, Region, check_boxes, check_terms
from partita.public.boxes.grid import CellGrid
from partita.public.boxes.plan import Corners
from partita.public.tables.audits import (
    MEASURED,
    NARROW,
    STRONG,
    WEAK,
    Audit,
    AuditPlan,
    ErrorModel,
    SideShares,
    find_narrow,
)
from partita.public.tables.certain import bound_box
from partita.public.tables.fit import TableFit
from partita.public.tables.model import Columns, TableModel, all_pairs
from partita.public.tables.sides import (
    BoxSide,
    ColumnReader,
    RunProduct,
    Runs,
    find_constrained,
    join_terms,
    whole_bins,
)
from partita.public.tables.spending import RhoSpending, row_cost

_MOST_DENSE: Final = 3  # columns whose whole table is made for many boxes; more are contracted one by one
_MOST_KEPT: Final = 2048  # tables of the model, and sides of boxes, that stay in memory
_CHUNK: Final = 4096  # boxes that are answered together
FIXED: Final = 2**10
"""Counts of the model are stored in units of one over this."""


class MisfitLook(NamedTuple):
    """A noisy sum of the misfits of some pairs, which one row changes by at most `number`."""

    number: int
    noisy: int
    scale: NoiseLaw


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class TableGraphRelease(BoxRelease):
    """Views of all columns, tables of some of them together, and a model that is fitted to both.

    A question about one column is answered by its view, or by all tables that hold it if these tell more.
    Others are answered by the model; `basis` says whether their columns were measured together. `strong` has
    the pairs that depend on each other according to the model without having been measured.
    """

    kind: ClassVar[str] = "graph"
    papers: ClassVar[Mapping[str, tuple[str, ...]]] = {"graph": ("MSM19", "QYL14", "ZCPSX17")}
    max_series: ClassVar[int] = 8
    max_series_per_level: ClassVar[int] = 8

    axes: tuple[Axis, ...] = field(init=False)
    fit: TableFit
    looks: tuple[MisfitLook, ...]
    choosing: Fraction
    audits: tuple[Audit, ...]
    strong: frozenset[tuple[int, int]]
    guarantee: Guarantee | None = None

    def __post_init__(self) -> None:
        freeze(self, axes=self.fit.axes)

    @classmethod
    def of(cls, fit: TableFit, **released: Any) -> TableGraphRelease:
        """The release of a fit, with the counts of its model rounded as they are stored."""
        rounded = tuple(np.rint(table * FIXED) / FIXED for table in fit.model.tables)
        model = TableModel(fit.model.tree, rounded, fit.model.total)
        strong = frozenset(pair for pair, kind in AuditPlan(fit).kinds.items() if kind == STRONG)
        return cls(fit=replace(fit, model=model), strong=strong, **released)

    @property
    def spent(self) -> Fraction:
        """What a row costs, of epsilon or of rho: the total, views, tables, looks, choices and audits."""
        cells, sums = self._costs
        return cells + sums

    @property
    def _costs(self) -> tuple[Fraction, Fraction]:
        """What a row costs in cells of tables, and in sums, choices and trees."""
        cells = [self.fit.scale, *(table.scale for table in self.fit.tables)]
        cells += [view.law for view in self.fit.views if isinstance(view, CellGrid)]
        sums = [row_cost(look.scale, look.number) for look in self.looks]
        sums += [audit.spent for audit in self.audits]
        trees = [view.spent for view in self.fit.views if not isinstance(view, CellGrid)]
        if self.is_gaussian:
            trees = [epsilon**2 / 2 for epsilon in trees]
        return sum(map(row_cost, cells), Fraction(0)), sum([*sums, *trees], self.choosing)

    @property
    def is_gaussian(self) -> bool:
        """Whether what it costs is rho: all noise but that of trees is Gaussian."""
        return isinstance(self.fit.scale, Gaussian)

    def keep(self, promise: Guarantee) -> bool:
        """Whether the noise is what a guarantee asks for: by as much as neighbours change tables and sums."""
        if not self.is_gaussian:
            return super().keep(promise)
        cells, sums = self._costs
        spending = RhoSpending(promise.rho, promise.neighbors, promise.contributions)
        return not promise.pure and promise.rho >= spending.square * cells + spending.rows**2 * sums

    @property
    def story(self) -> str:
        """How many tables were measured, and how many pairs of columns they hold."""
        tables, pairs = self.fit.tables, len(all_pairs(range(len(self.axes))))
        wide = sum(len(table.columns) > 2 for table in tables)
        together = f"{wide} of them of three or more columns" if wide else "all of two columns"
        return (
            f"Beside a view of each column it measured {len(tables)} tables, {together}; they hold "
            f"{len(self.fit.pairs)} of {pairs} pairs. A model joins them, and {len(self.audits)} audits "
            "measured how far it is from the rows."
        )

    def answer(self, *terms: BoxTerm) -> Answer:
        """The signed sum of the terms as one linear question."""
        products = join_terms(check_terms(terms, self.axes), [axis.width for axis in self.axes])
        found = [self._answer(each) if each.sign > 0 else -self._answer(each) for each in products]
        if len(found) < 2:
            return found[0] if found else Answer.exact(0.0)
        together = Answer.together(found)
        if any(each.sign < 0 for each in products):
            return together
        # What the model misses may go one way in all parts of a union: then their errors add up.
        return replace(together, spread=lambda: math.fsum(each.error for each in found))

    def counts(self, lows: Corners, highs: Corners) -> Floats:
        """The value of each box."""
        low, high = check_boxes(lows, highs, self.axes)
        values = np.empty(len(low))
        for columns, rows in self._by_columns(low, high):
            values[rows] = self._values(columns, low[rows], high[rows])
        return values

    def errors(self, lows: Corners, highs: Corners, *, parts: int = 1) -> Floats:
        """The standard error of each box, or of the sums of some."""
        low, high = check_boxes(lows, highs, self.axes)
        if parts > 1:
            boxes = [BoxTerm(tuple(a), tuple(b)) for a, b in zip(low.tolist(), high.tolist(), strict=True)]
            questions = (boxes[start : start + parts] for start in range(0, len(boxes), parts))
            return np.array([self.answer(*each).error for each in questions])
        errors = np.empty(len(low))
        for columns, rows in self._by_columns(low, high):
            errors[rows] = self._errors(columns, low[rows], high[rows])
        return errors

    def error(self, beta: float) -> float:
        """No box misses the truth by more than there are rows: nothing closer holds for all boxes at once.

        The bounds of one answer, `worst`, are closer, as views bound its sides.
        """
        return self._most_rows(float(check_probability(beta)))

    def along(self, axis: int, box: BoxTerm) -> Curve:
        """Cumulative counts along one axis, of what lies in the box on the others."""
        number = integer(axis, "axis", low=0, high=len(self.axes) - 1)
        ((low, high, _),) = check_terms([box], self.axes)
        lows, highs = (np.array([ends], np.uint64) for ends in (low, high))
        (constrained,) = find_constrained(lows, highs, [each.width for each in self.axes])
        others = [column for column in np.flatnonzero(constrained).tolist() if column != number]
        if not others:
            return self.fit.curves[number]
        weights = {c: self.readers[c].weights(lows[:, c], highs[:, c])[0] for c in others}
        return self.readers[number].spread(self.fit.model.table((number,), weights))

    def region(self, region: Region, box: BoxTerm) -> Answer:
        """Refused: the model has no boxes that a region could cut."""
        rule = "must be of columns in a view of boxes, and a table release has a model of them instead"
        fix = 'give them a view of their own beside it: views=[("x", "y"), ...], without mechanism='
        raise InvalidParameter("region", rule, given="columns of a table release", fix=fix)

    def points(self, rows: int) -> Corners:
        """Positions of synthetic rows, drawn down the junction tree: a function of the release."""
        from partita.public.tables.synthesis import draw_rows

        return draw_rows(self.fit.model, self.readers, integer(rows, "rows", low=0))

    def basis(self, columns: Iterable[int]) -> str:
        """What an answer about these columns rests on."""
        wanted = set(columns)
        if len(wanted) < 2 or any(wanted <= set(table.columns) for table in self.fit.tables):
            return "measured"
        return "inferred" if len(wanted) == 2 else "order 3+"

    @cached_property
    def dependence(self) -> Floats:
        """How far each pair of columns is from independence in the model, from 0 to 1: a symmetric matrix."""
        plan, found = AuditPlan(self.fit), np.zeros((len(self.axes), len(self.axes)))
        for one, other in all_pairs(range(len(self.axes))):
            found[one, other] = found[other, one] = min(1.0, plan.dependence((one, other)))
        return found

    @cached_property
    def readers(self) -> list[ColumnReader]:
        """How each column is read."""
        return [ColumnReader.of_fit(self.fit, column) for column in range(len(self.axes))]

    def _answer(self, product: RunProduct) -> Answer:
        """How many rows lie in some runs of every column that is asked for."""
        sides = {column: self._side(column, runs) for column, runs in product.runs.items()}
        if not sides:
            return self.rows
        if len(sides) == 1:
            return next(iter(sides.values())).alone
        value = float(self._expected({c: side.weights[None, :] for c, side in sides.items()})[0])
        least = 0.0 if all(side.positive for side in sides.values()) else -np.inf
        return Answer(
            value,
            lambda: self._error(sides),
            lambda beta: self._bounds(sides, product, beta),
            least,
            self.basis(sides),
        )

    @cached_property
    def rows(self) -> Answer:
        """How many rows there are, by all that was released."""
        total = NoisySum(self.fit.total, {(1, self.fit.scale): 1}).answer(0.0)
        combined = Answer.combined([*(view.answer(view.everything) for view in self.fit.views), total])
        return Answer(self.fit.rows, lambda: self.fit.rows_error, combined.bounds, 0.0, "measured")

    def _error(self, sides: Mapping[int, BoxSide]) -> float:
        """The standard error of a box, or of one less another: what both hold says how far off it may be."""
        held = float(self.fit.model.table((), {c: side.held for c, side in sides.items()}))
        shares = {
            c: SideShares(*(np.array([each]) for each in (side.share, side.touched, side.doubt, side.cuts)))
            for c, side in sides.items()
        }
        pairs = {}
        for pair in all_pairs(tuple(sides)) if len(sides) > 2 else ():
            weights = {c: sides[c].held[None, :] for c in pair}
            pairs[pair] = self._expected(weights)
        joined = self._joined({c: side.held[None, :] for c, side in sides.items()})
        found = self.misses.deviations(shares, np.array([held]), pairs, self.kind_of, self.fit, joined)
        return float(found[0])

    def _joined(self, weights: Mapping[int, Floats]) -> dict[tuple[int, int], Floats]:
        """What labels that share bins add to the variances of pairs of sides, of many boxes.

        Joined labels have nothing in common but their mass, so that they depend on other columns as much as
        bins do, and more: a bin has their mean.
        """
        found: dict[tuple[int, int], Floats] = {}
        for column in (c for c in weights if self.axes[c].labels and not whole_bins(weights[c]).all()):
            for other in (c for c in weights if c != column):
                pair = (min(column, other), max(column, other))
                table = self._table(pair)
                held = weights[other] @ (table if other < column else table.T)
                added = self.readers[column].joined_variance(weights[column], held)
                found[pair] = found.get(pair, np.zeros(1)) + added
        return found

    def _bounds(self, sides: Mapping[int, BoxSide], product: RunProduct, beta: float) -> tuple[float, float]:
        """A box lies in each of its sides, and together they leave out at most what each leaves out.

        Half of beta is for measured tables, whose cells cover it from inside and from outside.
        """
        if not all(side.positive for side in sides.values()):
            return -self._most_rows(beta), self._most_rows(beta)
        part = beta / 2 / (len(sides) + 1)
        ends = [self._side_bounds(column, runs, part) for column, runs in product.runs.items()]
        least = sum(max(0.0, low) for low, _ in ends) - (len(sides) - 1) * self._most_rows(part)
        alone = max(0.0, least), min(high for _, high in ends)
        return bound_box(self.fit, product.runs, alone, beta / 2)

    def _side(self, column: int, runs: Runs) -> BoxSide:
        """The side of some runs. Groups of rows have few sides and many boxes, so sides stay in memory."""
        return _remember(self._sides, (column, runs), lambda: self.readers[column].side(runs))

    def _side_bounds(self, column: int, runs: Runs, beta: float) -> tuple[float, float]:
        """Guaranteed bounds on the rows of a side."""
        return _remember(
            self._bounds_of_sides,
            (column, runs, beta),
            lambda: self._side(column, runs).alone.bounds(beta),
        )

    def _most_rows(self, beta: float) -> float:
        """No more rows are there, except with probability beta."""
        return _remember(self._bounds_of_rows, beta, lambda: self.rows.bounds(beta))[1]

    @cached_property
    def _sides(self) -> dict[tuple[int, Runs], BoxSide]:
        return {}

    @cached_property
    def _bounds_of_sides(self) -> dict[tuple[int, Runs, float], tuple[float, float]]:
        return {}

    @cached_property
    def _bounds_of_rows(self) -> dict[float, tuple[float, float]]:
        return {}

    def _by_columns(self, low: Corners, high: Corners) -> Iterator[tuple[Columns, NDArray[np.intp]]]:
        """The rows of boxes that constrain the same columns, some at a time."""
        constrained = find_constrained(low, high, [axis.width for axis in self.axes])
        patterns, which = np.unique(constrained, axis=0, return_inverse=True)
        for number, pattern in enumerate(patterns):
            rows = np.flatnonzero(which.ravel() == number)
            for start in range(0, rows.size, _CHUNK):
                checkpoint()
                yield tuple(np.flatnonzero(pattern).tolist()), rows[start : start + _CHUNK]

    def _values(self, columns: Columns, low: Corners, high: Corners) -> Floats:
        if not columns:
            return np.full(len(low), self.fit.rows)
        if len(columns) == 1:
            return self._alone(columns[0], low, high)[0]
        return self._expected(self._weights(columns, low, high))

    def _errors(self, columns: Columns, low: Corners, high: Corners) -> Floats:
        if not columns:
            return np.full(len(low), self.rows.error)
        if len(columns) == 1:
            return self._alone(columns[0], low, high)[1]
        weights = self._weights(columns, low, high)
        shares = {}
        for column, each in weights.items():
            share = each @ self.fit.masses[column] / max(float(self.fit.masses[column].sum()), 1e-9)
            cuts = self.readers[column].cut_rows(each)
            doubts = self.readers[column].doubts(low[:, column], high[:, column])
            shares[column] = SideShares(share, share, doubts, cuts)
        pairs = {}
        for pair in all_pairs(columns) if len(columns) > 2 else ():
            pairs[pair] = self._expected({c: weights[c] for c in pair})
        joined, values = self._joined(weights), self._expected(weights)
        return self.misses.deviations(shares, values, pairs, self.kind_of, self.fit, joined)

    def _alone(self, column: int, low: Corners, high: Corners) -> tuple[Floats, Floats]:
        return self.readers[column].alone(low[:, column], high[:, column])

    def _weights(self, columns: Columns, low: Corners, high: Corners) -> dict[int, Floats]:
        return {c: self.readers[c].weights(low[:, c], high[:, c]) for c in columns}

    def _expected(self, weights: Mapping[int, Floats]) -> Floats:
        """The model's count of many boxes, given by the weights of bins along their sides: boxes by bins."""
        columns = tuple(sorted(weights))
        if len(columns) > _MOST_DENSE:
            rows = range(len(weights[columns[0]]))
            return np.array(
                [float(self.fit.model.table((), {c: weights[c][r] for c in columns})) for r in rows]
            )
        table = self._table(columns)
        found = weights[columns[0]] @ table.reshape(table.shape[0], -1)
        for column in columns[1:]:
            apart = found.reshape(len(found), weights[column].shape[1], -1)
            found = np.einsum("qk,qkr->qr", weights[column], apart)
        return np.asarray(found[:, 0])

    def _table(self, columns: Columns) -> Floats:
        """The model's table of few columns; those that were made stay in memory, up to a number."""
        return _remember(self._tables, columns, lambda: self.fit.model.table(columns))

    @cached_property
    def _tables(self) -> dict[Columns, Floats]:
        return {}

    @cached_property
    def misses(self) -> ErrorModel:
        """What the model may miss, from audits."""
        return ErrorModel(self.audits)

    def kind_of(self, pair: Columns) -> str:
        """The class of a pair in audits."""
        if self._narrow & set(pair):
            return NARROW
        if pair in self.fit.pairs:
            return MEASURED
        return STRONG if pair in self.strong else WEAK

    @cached_property
    def _narrow(self) -> set[int]:
        return find_narrow(self.fit) if self.misses.has_narrow else set()

    def parts(self) -> Parts:
        """Everything that was released, taken apart for a file."""
        from partita.public.tables.file import encode_graph

        return encode_graph(self)

    @classmethod
    def from_parts(cls, parts: Parts, guarantee: Guarantee | None) -> Self:
        """The release that `parts` took apart; anything else is an `InvalidRelease`."""
        from partita.public.tables.file import read_graph

        return cls(**read_graph(parts), guarantee=guarantee)


Key = TypeVar("Key", bound=Hashable)
Made = TypeVar("Made")


def _remember(known: dict[Key, Made], key: Key, make: Callable[[], Made]) -> Made:
    """What was made for a key; a full memory begins anew."""
    found = known.get(key)
    if found is None:
        if len(known) >= _MOST_KEPT:
            known.clear()
        known[key] = found = make()
    return found
