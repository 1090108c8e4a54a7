"""Results of questions about columns: histograms of one or two columns, distributions, quantiles."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import product
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

import numpy as np

from partita.answer import (
    Answer,
    Answers,
    Joint,
    add_basis,
    describe_basis,
    ratio_bounds,
)
from partita.arrays import Bools, Floats, UInts
from partita.domain.base import Domain, Encoded, Special
from partita.errors import check
from partita.frames import Tabular, name_ends
from partita.guarantee import Guarantee
from partita.html import NORMAL_95, Html, bars, card, field, grid, margin, shortlist, span, with_margin
from partita.lazy import cached_property
from partita.numbers import check_probability, integer, rational
from partita.public.axis.base import Term, encode_values, is_single
from partita.public.base import checkpoint, figure, format_excerpt, shorten, table
from partita.public.conditions import Range, Where
from partita.public.views import (
    Along,
    BoxView,
    ManyBoxes,
    OrderedColumn,
    ScaledView,
    Slice,
    View,
    describe_conditions,
    find_boxes,
)

if TYPE_CHECKING:
    from partita.public.axis.quantiles import SelectedQuantile

MOST_BINS: Final = 2**20
"""No table has more bins, also over two columns."""

_HEADS: Final = ("first", "last", "rows", "± 95%")
Count: TypeAlias = Callable[[Where], Answer]
"""Counts the rows that meet conditions, beside those of a question."""

_MOST_DRAWN: Final = 120
"""A card draws bars of at most so many bins."""

AnyView: TypeAlias = View | BoxView


@final
@dataclass(frozen=True, eq=False, repr=False)
class Bins(Tabular):
    """The first and the last value of each bin of a column, both in it, and how many rows it holds.

    `print` shows a table, of many bins the first and the last. `basis` says what all counts rest on, as it
    does for `Answer`.
    """

    column: str
    lows: Sequence[object]
    highs: Sequence[object]
    counts: Answers

    @property
    def basis(self) -> str:
        """What the counts rest on."""
        return self.counts.basis

    def frame(self) -> Mapping[str, Sequence[Any]]:
        """A row for each bin: its values, its count with a 95% interval, and what that rests on."""
        return self.counts.frame()

    def read(self, count: Count) -> Bins:
        """The same bins; each count can be read as an answer, which `count` gives."""

        def each(number: int) -> Answer:
            return count({self.column: Range(self.lows[number], self.highs[number])})

        def keys() -> Mapping[str, Sequence[Any]]:
            return name_ends(self.column, self.lows, self.highs)

        return replace(self, counts=replace(self.counts, each=each, name="count", keys=keys))

    def __len__(self) -> int:
        return len(self.lows)

    def __repr__(self) -> str:
        return f"Bins({len(self)} from {self.lows[0]} to {self.highs[-1]}{add_basis(self.basis)})"

    def __str__(self) -> str:
        return format_excerpt(_HEADS, len(self), self._row)

    def _repr_html_(self) -> str:
        below = [bars(self.counts.values.tolist())] if len(self) <= _MOST_DRAWN else []
        below.append(grid(_HEADS, shortlist(len(self), self._row), left=0))
        return card(repr(self), [("basis", describe_basis(self.basis))], below=below)

    def _row(self, number: int) -> Sequence[object]:
        counted = with_margin(self.counts.values[number], self.counts.error[number])
        return self.lows[number], self.highs[number], *counted


def make_bins(line: OrderedColumn, bins: int) -> Bins:
    """The cells of a column in `bins` bins whose sizes differ by one cell at most.

    There are no more bins than cells. Where they lie follows from the domain alone.
    """
    lows, highs = find_bin_cells(line.axis.size, bins)
    counts = Answers(line.axis.counts(lows, highs), lambda: line.axis.errors(lows, highs), line.basis)
    return Bins(line.column, line.domain.decode(lows), line.domain.decode(highs), counts)


def find_bin_cells(size: int, bins: int) -> tuple[UInts, UInts]:
    """The first and the last cell of each bin of an axis of `size` cells."""
    number = min(integer(bins, "bins", low=1, high=MOST_BINS), size)
    edges = [size * i // number for i in range(number + 1)]
    return np.array(edges[:-1], np.uint64), np.array([edge - 1 for edge in edges[1:]], np.uint64)


def even_bins(size: int, bins: int) -> int:
    """At most as many bins, of sizes so nearly equal that a picture of even counts looks even.

    >>> even_bins(151, 60), even_bins(120, 60), even_bins(7, 60)
    (50, 60, 7)
    """
    width = -(-size // integer(bins, "bins", low=1, high=MOST_BINS))
    return size // width


# The distribution of a column: how many rows, and which share, do not exceed a value.

_CDF_HEADS: Final = ("value", "rows up to it", "± 95%", "share", "± 95%")


@final
@dataclass(frozen=True, eq=False, repr=False)
class Cdf(Tabular):
    """For each value, how many rows with a value do not exceed it, and the share of all that they are.

    Counts and shares never fall from a value to a larger one. Rows in special cells have no value.
    If the estimated count is zero, all shares are 0, and their intervals hold every share. `fractions` are
    the values of `shares`. `print` shows a table; of many values both ends. `basis` says what all counts rest
    on, as it does for `Answer`.
    """

    column: str
    values: Sequence[object]
    counts: Answers
    shares: Answers

    @property
    def fractions(self) -> Floats:
        """The share of the rows that do not exceed each value."""
        return self.shares.values

    def frame(self) -> Mapping[str, Sequence[Any]]:
        """A row for each value: count and share, each with its 95% interval, and what they rest on."""
        counted, shared = self.counts.frame(), self.shares.frame()
        ends = {f"share_{end}": shared[end] for end in ("low", "high")}
        kept = {name: counted[name] for name in ("count", "low", "high")}
        return {self.column: self.values, **kept, "share": shared["share"], **ends, "basis": counted["basis"]}

    @property
    def basis(self) -> str:
        """What counts and shares rest on."""
        return self.counts.basis

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"Cdf({len(self)} values{add_basis(self.basis)})"

    def __str__(self) -> str:
        return format_excerpt(_CDF_HEADS, len(self), self._row)

    def _repr_html_(self) -> str:
        rows = grid(_CDF_HEADS, shortlist(len(self), self._row), left=0)
        return card(repr(self), [("basis", describe_basis(self.basis))], below=[rows])

    def _row(self, number: int) -> Sequence[object]:
        counted, shared = (
            with_margin(each.values[number], each.error[number]) for each in (self.counts, self.shares)
        )
        return self.values[number], *counted, *shared


def cdf(line: OrderedColumn, values: Any = None, count: Count | None = None) -> Cdf:
    """The distribution at the values given, or at the last value of every piece of the release.

    With `count`, each number of rows can be read as an answer.
    """
    if values is None:
        ends = line.axis.curve.ends
        return _cdf_at(line, line.domain.decode(ends), Encoded(ends, np.zeros(ends.size, np.uint8)), count)
    where = encode_values(line.domain, values, name="values").last
    return _cdf_at(line, [values] if is_single(values) else list(values), where, count)


def _cdf_at(line: OrderedColumn, values: Sequence[object], where: Encoded, count: Count | None) -> Cdf:
    curve = line.axis.curve
    cells = np.where(where.special == Special.ABOVE, np.uint64(line.axis.size - 1), where.cells)
    inside = where.special != Special.BELOW
    counts = np.where(inside, curve.upto(cells), 0.0)
    fractions = counts / curve.total if curve.total else np.zeros_like(counts)
    none = np.zeros_like(cells)
    first = line.domain.decode([0])[0]

    def each(number: int) -> Answer:
        """The count of a range that ends at a value; none lies below the first."""
        if not inside[number] or count is None:
            return Answer.exact(0.0)
        return count({line.column: Range(first, line.domain.decode(cells[[number]])[0])})

    answers = Answers(
        counts, lambda: line.axis.errors(none, cells) * inside, line.basis, each if count else None, "count"
    )
    shares = _CdfShares(line, fractions, counts, answers, cells, inside)
    return Cdf(
        line.column,
        values,
        answers,
        Answers(fractions, shares.errors, line.basis, shares.answer, "share"),
    )


@final
@dataclass(frozen=True, eq=False)
class _CdfShares:
    """The shares of a distribution: counts up to some cells, by the count of all."""

    line: OrderedColumn
    fractions: Floats
    counts: Floats
    answers: Answers
    cells: UInts
    inside: Bools

    def errors(self) -> Floats:
        """The standard errors, to first order; infinite where nobody may be there."""
        if not self._joint(0, self._variances).sure:
            return np.full(self.fractions.size, math.inf)
        upto, covariance, whole = self._variances
        square = upto - 2 * self.fractions * covariance + self.fractions**2 * whole
        return np.asarray(np.sqrt(np.maximum(0.0, square)) / self.line.axis.curve.total)

    def answer(self, number: int) -> Answer:
        """A share with Fieller's interval."""
        joint = self._joint(number, self._variances)

        def likely(beta: float) -> tuple[float, float]:
            found = joint.interval(NormalDist().inv_cdf(1 - beta / 2)) if joint.sure else None
            return (0.0, 1.0) if found is None else (max(0.0, found[0]), min(1.0, found[1]))

        def bounds(beta: float) -> tuple[float, float]:
            whole = self.line.axis.answer(Term(0, self.line.axis.size - 1))
            found = ratio_bounds(self.answers[number].worst(beta / 2), whole.worst(beta / 2))
            return max(0.0, found[0]), min(1.0, found[1])

        error = float(self.errors()[number])
        value = float(self.fractions[number])
        return Answer(value, lambda: error, bounds, 0.0, self.line.basis, likely=likely)

    def _joint(self, number: int, variances: tuple[Floats, Floats, float]) -> Joint:
        upto, covariance, whole = variances
        return Joint(
            float(self.counts[number]),
            self.line.axis.curve.total,
            float(upto[number]),
            whole,
            float(covariance[number]),
        )

    @cached_property
    def _variances(self) -> tuple[Floats, Floats, float]:
        """Of the counts, their covariances with the count of all, and its variance."""
        axis, last = self.line.axis, np.uint64(self.line.axis.size - 1)
        upto = self.answers.error**2
        whole = float(axis.errors(np.zeros(1, np.uint64), np.array([last]))[0] ** 2)
        after = np.minimum(self.cells, last - np.uint64(last > 0)) + np.uint64(last > 0)
        rest = axis.errors(after, np.full_like(self.cells, last)) ** 2
        rest = np.where(self.cells < last, rest, 0.0)
        covariance = np.where(self.inside, (upto + whole - rest) / 2, 0.0)
        most = np.sqrt(upto * whole)
        return upto, np.clip(covariance, -most, most), whole


# A histogram over two columns: equal shares of their public cells, counted together.

Pair: TypeAlias = tuple[Sequence[object], Sequence[object]]

_EACH_END: Final = 4
_LONGEST: Final = 12
_BETWEEN: Final = -1


@final
@dataclass(frozen=True, eq=False, repr=False)
class Heat(Tabular):
    """Bins of two columns, and how many rows each pair of bins holds.

    `lows` and `highs` have the first and the last value of each bin, both in it, of the first column and
    of the second. `counts` has a row for each bin of the first and a column for each of the
    second: `counts.values[i, j]`, `counts.error[i, j]`. `print` shows a table, of many bins the first
    and the last. `basis` says what all counts rest on, as it does for `Answer`.
    """

    columns: tuple[str, str]
    domains: tuple[Domain, Domain]
    lows: Pair
    highs: Pair
    counts: Answers
    guarantee: Guarantee | None
    within: str = ""

    @property
    def basis(self) -> str:
        """What the counts rest on."""
        return self.counts.basis

    def __len__(self) -> int:
        """The number of pairs of bins."""
        return int(self.counts.values.size)

    def frame(self) -> Mapping[str, Sequence[Any]]:
        """A row for each pair of bins: their values, the count with a 95% interval, and what it rests on."""
        return self.counts.frame()

    def read(self, count: Count) -> Heat:
        """The same bins; each count can be read as an answer, which `count` gives."""
        (one, other), shape = self.columns, self.counts.values.shape

        def each(number: int) -> Answer:
            places = divmod(number, shape[1])
            return count(
                {
                    column: Range(self.lows[side][place], self.highs[side][place])
                    for side, (column, place) in enumerate(zip(self.columns, places, strict=True))
                }
            )

        def keys() -> Mapping[str, Sequence[Any]]:
            ends = zip(product(*self.lows), product(*self.highs), strict=True)
            pairs = [(*low, *high) for low, high in ends]
            x, y, x_last, y_last = (list(entries) for entries in zip(*pairs, strict=True))
            return {**name_ends(one, x, x_last), **name_ends(other, y, y_last)}

        return replace(self, counts=replace(self.counts, each=each, name="count", keys=keys))

    def __repr__(self) -> str:
        rows, across = self.counts.values.shape
        bins = f"{rows} bins of {self.columns[0]} by {across} of {self.columns[1]}"
        return f"Heat({bins}{add_basis(self.basis)})"

    def __str__(self) -> str:
        return f"{table(self._table(self._count))}\n{self._note}"

    def _repr_html_(self) -> str:
        head, *rows = self._table(self._field)
        return card(repr(self), [], below=[grid(head, rows, note=self._note)])

    def _table(self, entry: Callable[[int, int], Any]) -> list[list[Any]]:
        """The first values of bins of the second column, then a row for each bin of the first."""
        down, across = map(_excerpt, self.counts.values.shape)
        head = [" / ".join(self.columns), *(self._label(1, number) for number in across)]
        return [head, *([self._label(0, i), *(entry(i, j) for j in across)] for i in down)]

    @property
    def margins(self) -> str:
        """What stands behind ±, in words: the half-widths of 95% intervals from the least to the largest."""
        error = self.counts.error
        least, most = (margin(NORMAL_95 * float(each)) for each in (error.min(), error.max()))
        return least if least == most else f"{least} to {most}"

    @property
    def _note(self) -> str:
        note = f"first values of the bins, and rows ± {self.margins} (95%)"
        return f"{note}; {describe_basis(self.basis)}" if self.basis else note

    def _field(self, row: int, column: int) -> Html | str:
        if _BETWEEN in (row, column):
            return "..."
        most = max(1.0, float(self.counts.values.max()))
        return field(self._count(row, column), float(self.counts.values[row, column]) / most)

    def _label(self, side: int, number: int) -> str:
        return "..." if number == _BETWEEN else shorten(str(self.lows[side][number]), _LONGEST)

    def _count(self, row: int, column: int) -> str:
        return "..." if _BETWEEN in (row, column) else figure(self.counts.values[row, column])


def make_heat(scaled: ScaledView, columns: tuple[str, str], bins: object, where: Where) -> Heat:
    """The cells of two columns in bins, of the rows that are in the cells asked for of the others.

    `bins` is a number for both, or a pair. Where bins lie follows from the domains alone.
    """
    view = scaled.together
    numbers = view.columns.index(columns[0]), view.columns.index(columns[1])
    domains = view.domains[numbers[0]], view.domains[numbers[1]]
    cells = _bin_cells(domains, bins)
    terms = find_boxes(view.declared, where)
    shape = len(cells[0][0]), len(cells[1][0])
    places = np.divmod(np.arange(shape[0] * shape[1]), shape[1])
    along = {}
    for number, (low, high), place in zip(numbers, cells, places, strict=True):
        shift = np.uint64(view.boxes.axes[number].before)
        along[number] = low[place] + shift, high[place] + shift
    many = ManyBoxes(terms, along, np.ones(shape[0] * shape[1], bool))
    values = many.counts(view.boxes).reshape(shape) * scaled.factor
    counts = Answers(values, lambda: many.errors(view.boxes).reshape(shape), many.basis(view.boxes))
    lows, highs = ((domains[0].decode(cells[0][end]), domains[1].decode(cells[1][end])) for end in (0, 1))
    return Heat(columns, domains, lows, highs, counts, view.guarantee, describe_conditions(where))


def check_bin_numbers(bins: object) -> tuple[int, int]:
    """A number of bins for each of two columns, from one number or from a pair."""
    pair = bins if isinstance(bins, tuple) else (bins, bins)
    fix = "pass (12, 20)"
    check(len(pair) == 2, "bins", "must be one number or two", given=f"a tuple of {len(pair)}", fix=fix)
    first, second = (integer(number, "bins", low=1, high=MOST_BINS) for number in pair)
    return first, second


def _bin_cells(domains: tuple[Domain, Domain], bins: object) -> list[tuple[UInts, UInts]]:
    pair = check_bin_numbers(bins)
    cells = [find_bin_cells(domain.size, number) for domain, number in zip(domains, pair, strict=True)]
    fits, given = len(cells[0][0]) * len(cells[1][0]) <= MOST_BINS, " by ".join(map(str, pair))
    check(fits, "bins", "must make at most 2^20 pairs", given=given, fix="pass fewer bins")
    return cells


def _excerpt(length: int) -> list[int]:
    """The numbers of all bins, or of the first and the last, with a gap between them."""
    if length <= 2 * _EACH_END + 1:
        return list(range(length))
    return [*range(_EACH_END), _BETWEEN, *range(length - _EACH_END, length)]


# Quantiles of a column, with bars on the value and on the rank.


@final
@dataclass(frozen=True, eq=False, repr=False)
class Quantile:
    """The least value such that at least a share q of the rows with a value do not exceed it.

    Rows in special cells have no value here: they count neither above nor below. If nobody was
    counted, and for q = 0, that is the first value of the domain.
    """

    line: Slice
    q: Fraction
    cell: int

    @property
    def basis(self) -> str:
        """What the counts along the column rest on, as it does for `Answer`."""
        return self.line.basis

    @property
    def value(self) -> object:
        """The quantile, as a value of the column."""
        return self.line.domain.decode([self.cell])[0]

    def interval(self, confidence: float = 0.95) -> tuple[object, object]:
        """Values between which the true quantile lies with about this confidence; a model, no guarantee."""
        half = self._half_width(confidence)
        return self._values(_reaching(self.line, float(self.q) * self._total + np.array([-half, half])))

    def rank_interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Between which shares of the rows the value truly stands, with about this confidence.

        From the share of rows below the value, less its error, to the share at or below it, plus its
        error: a value that many rows have takes up many ranks.
        """
        curve, half = self.line.axis.curve, self._half_width(confidence)
        if self._total == 0:
            return 0.0, 1.0
        upto = float(curve.upto(np.array([self.cell], np.uint64))[0])
        below = float(curve.upto(np.array([self.cell - 1], np.uint64))[0]) if self.cell else 0.0
        return max(0.0, (below - half) / self._total), min(1.0, (upto + half) / self._total)

    def worst(self, beta: float = 0.05) -> tuple[object, object]:
        """Values between which the true quantile lies, except with probability beta, whatever the data.

        Let E(x) be (1-q) times the count up to x, less q times the count beyond x: the true quantile
        is the least x where the true E is not negative. If no range misses the truth by more than
        B, no E(x) does, because 1-q and q add up to 1. Where single ranges have much better bounds than
        that, those are used.
        """
        low, high = self._guaranteed_cells(float(check_probability(beta)))
        return self._values(np.array([min(low, self.cell), max(high, self.cell)], np.uint64))

    def __repr__(self) -> str:
        return f"Quantile({self.value} at {float(self.q):.6g}{add_basis(self.basis)})"

    def __str__(self) -> str:
        """With the values between which it lies."""
        low, high = self.interval()
        return f"{self.value} ({low} .. {high}) at {float(self.q):.6g}{add_basis(self.basis)}"

    def _repr_html_(self) -> str:
        """Without guaranteed bounds where they are work: `worst` gives them."""
        certain = None if self.line.one_by_one else f"{span(self.worst())}, but for 5%"
        facts = [
            ("value", self.value),
            ("95% interval", span(self.interval())),
            ("for any data", certain),
            ("basis", describe_basis(self.basis)),
        ]
        return card(f"{self.line.column}: quantile at {float(self.q):.6g}", facts)

    @property
    def _total(self) -> float:
        return self.line.axis.curve.total

    def _half_width(self, confidence: float) -> float:
        """So many standard errors of the count C up to the value, less q times the count T of all.

        Its variance follows from those of C, of T and of the rest: (1-q) V(C) + q V(T-C) - q (1-q) V(T).
        """
        q, last, axis = float(self.q), self.line.axis.size - 1, self.line.axis
        upto = axis.answer(Term(0, self.cell)).error ** 2
        rest = axis.answer(Term(self.cell + 1, last)).error ** 2 if self.cell < last else 0.0
        everything = axis.answer(Term(0, last)).error ** 2
        deviation = math.sqrt(max(0.0, (1 - q) * upto + q * rest - q * (1 - q) * everything))
        return NormalDist().inv_cdf((1 + float(check_probability(confidence, "confidence"))) / 2) * deviation

    def _guaranteed_cells(self, beta: float) -> tuple[int, int]:
        axis = self.line.axis
        if self.line.one_by_one:
            return bound_quantile_cells(axis, float(self.q), beta)
        reach = axis.error(beta)
        low, high = find_least_cells(self._excess, np.array([-reach, reach]), last=axis.size - 1).tolist()
        return low, high

    def _excess(self, cells: UInts) -> Floats:
        q, last = float(self.q), np.full_like(cells, self.line.axis.size - 1)
        upto = self.line.axis.counts(np.zeros_like(cells), cells)
        rest = self.line.axis.counts(np.where(cells < last, cells + np.uint64(1), cells), last)
        return np.asarray((1 - q) * upto - q * np.where(cells < last, rest, 0.0))

    def _values(self, cells: UInts) -> tuple[object, object]:
        low, high = self.line.domain.decode(cells)
        return low, high


@final
class Quantiles(Tabular, list["Quantile | SelectedQuantile"]):
    """Quantiles of one column."""

    def __str__(self) -> str:
        return "\n".join(map(str, self))

    def _repr_html_(self) -> str:
        columns = self.frame()
        rows = shortlist(len(self), lambda number: [str(each[number]) for each in columns.values()])
        return card(f"Quantiles({len(self)} values)", [], below=[grid(tuple(columns), rows)])

    def frame(self) -> Mapping[str, Sequence[Any]]:
        """A row for each: the share, the value under the name of the column, its 95% interval, its basis."""
        column = next((_column_of(each) for each in self), "value")
        lows, highs = zip(*(each.interval() for each in self), strict=True) if self else ((), ())
        return {
            "q": [float(each.q) for each in self],
            column: [each.value for each in self],
            "low": list(lows),
            "high": list(highs),
            "basis": [each.basis for each in self],
        }


def _column_of(found: Quantile | SelectedQuantile) -> str:
    return found.line.column if isinstance(found, Quantile) else found.view.column


def quantiles(line: Slice, shares: Iterable[object]) -> Quantiles:
    """The quantile of each share."""
    exact = []
    for share in shares:
        exact.append(rational(share, "q"))
        check(0 <= exact[-1] <= 1, "q", "must lie in [0, 1]", given=share, fix="pass 0.5 for the median")
    targets = np.array([float(q) for q in exact]) * line.axis.curve.total
    cells = _reaching(line, targets).tolist()
    return Quantiles(Quantile(line, q, cell) for q, cell in zip(exact, cells, strict=True))


def _reaching(line: Slice, targets: Floats) -> UInts:
    """The least cells at which the cumulative count reaches the targets."""
    return find_least_cells(line.axis.curve.upto, targets, last=line.axis.size - 1)


def find_least_cells(upto: Callable[[UInts], Floats], targets: Floats, *, last: int) -> UInts:
    """The least cell of 0, ..., last at which `upto` is at least each target, by halving; else the last.

    Cells may need all 64 bits. If `upto` is not monotone, it reaches the target at the cell found
    (unless that is the last) and misses it just before (unless that is the first).

    >>> find_least_cells(lambda cells: cells.astype(float) ** 2, np.array([0.0, 10.0, 1e9]), last=99).tolist()
    [0, 4, 99]
    """
    low, high = np.zeros(targets.size, np.uint64), np.full(targets.size, last, np.uint64)
    for _ in range(64):  # cells have at most 64 bits
        middle = low + (high - low) // np.uint64(2)
        reached = (upto(middle) >= targets) | (low == high)
        low, high = np.where(reached, low, middle + np.uint64(1)), np.where(reached, middle, high)
    return high


def bound_quantile_cells(axis: Along, q: float, beta: float) -> tuple[int, int]:
    """Cells between which the true quantile lies, except with probability beta, whatever the data.

    Let E(x) be (1-q) times the count up to x, less q times the count beyond x: the true quantile is the
    least x where the true E is not negative, and E never falls. So a bound of E below zero says that the
    quantile lies beyond x, and one that is not says that it does not. Whatever was answered before, step d of
    a halving asks at one of 2^d cells: each of them takes its share of beta, so that all bounds that could be
    asked for hold together.
    """

    def count(low: int, high: int, share: float) -> tuple[float, float]:
        if low > high:
            return 0.0, 0.0
        least, most = axis.answer(Term(low, high)).bounds(share)
        return max(0.0, least), max(0.0, most)

    @cache
    def bound_excess(cell: int, step: int) -> tuple[float, float]:
        share = beta / (axis.size.bit_length() * 2.0**step) / 2
        least, most = count(0, cell, share)
        fewest, others = count(cell + 1, axis.size - 1, share)
        return (1 - q) * least - q * others, (1 - q) * most - q * fewest

    low = _halve(axis.size, lambda cell, step: bound_excess(cell, step)[1] >= 0)
    high = _halve(axis.size, lambda cell, step: bound_excess(cell, step)[0] >= 0)
    return min(low, high), max(low, high)


def _halve(size: int, reached: Callable[[int, int], bool]) -> int:
    """The cell at which halving the cells 0, ..., size-1 ends; the last if nothing before it is reached."""
    low, high, step = 0, size - 1, 0
    while low < high:
        checkpoint()
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle, step) else (middle + 1, high)
        step += 1
    return low


def total(views: Sequence[AnyView]) -> Answer:
    """How many rows there are: the mean over the views by inverse variance."""
    return Answer.combined([view.total for view in views])
