"""Wants that one noisy histogram answers: its cells are derived from public conditions and domains.

A share has two cells for each group, of the rows that meet its conditions and of those that do not. Bounds
have cells whose width grows with the distance from zero. A row is in one cell, whatever the want.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from partita.answer import CLEAR_DEVIATIONS, Answer, NoisyNumber, Readings
from partita.arrays import Bools, Ints
from partita.domain.axis import Axis
from partita.domain.base import Domain
from partita.domain.numeric import Integer, Real
from partita.errors import InvalidParameter, check, check_release
from partita.guarantee import Guarantee, rows_changed
from partita.html import card, ends, span, whisker, with_interval
from partita.lazy import cached_property
from partita.numbers import check_probability
from partita.public.axis.base import Term
from partita.public.axis.flat import HistogramRelease
from partita.public.axis.quantiles import CONFIDENCE, SelectedQuantile
from partita.public.base import figure, view_card
from partita.public.bounds import laplace_mix_reach, laplace_sum_reach, laplace_variance
from partita.public.boxes.bins import AxisBins
from partita.public.conditions import Where
from partita.public.sums.base import ValueLine
from partita.public.views import find_boxes
from partita.public.wants import BOUNDS, SHARE, Want

MOST_GROUPS: Final = 2**16
"""Of a share: the noisy counts of two cells each fill a file of a few hundred kilobytes."""

_MOST_TABLE: Final = 2**24
"""Combinations of bins that a share is counted by: sets of values in several columns multiply."""

_LATTICE: Final = 0.5  # half a row: noise is a whole number, and its quantiles are rounded up
_HALVINGS: Final = 60  # of an interval of shares: beyond, floats have no more digits

_PARTS_OF_AN_OCTAVE: Final = 4
"""Cells of bounds for each doubling: an end lies less than a quarter beyond the value that it stands for, and
more cells would bring more noise. As in the totals of knots."""

_WINDOWS: Final = (1, 2, 4)  # neighbouring cells that are looked at together: up to a doubling of values
_FALSE_ALARM: Final = 0.01  # how often noise alone is taken for rows beyond all others, on one side or both


# --- cells that follow from a want and public domains ------------------------------------------


class DerivedCells(ABC):
    """Cells 0, ..., size-1, in one of which each row is, by the bins of its columns."""

    bins: tuple[AxisBins, ...]
    size: int

    @abstractmethod
    def gather(self, table: Ints) -> Ints:
        """The count of each cell, from the counts of all combinations of bins."""


@final
@dataclass(frozen=True, eq=False)
class ShareCells(DerivedCells):
    """For each group the rows that do not meet the conditions, then those that do.

    `marks` says which bins of each column of the conditions are meant. With `grouped`, the first column is
    that of the groups, special cells included.
    """

    bins: tuple[AxisBins, ...]
    marks: tuple[Bools, ...]
    grouped: bool

    @staticmethod
    def of(want: Want, declared: Mapping[str, Domain]) -> ShareCells:
        """The cells of a share."""
        groups = [] if want.by is None else [AxisBins.identity(Axis.of(declared[want.by]).width)]
        cut = [_cut_axis(name, declared[name], want.where) for name in want.where]
        return ShareCells((*groups, *(bins for bins, _ in cut)), tuple(mark for _, mark in cut), bool(groups))

    @property
    def groups(self) -> int:
        """How many groups there are; one where none are told apart."""
        return self.bins[0].number if self.grouped else 1

    @property
    def size(self) -> int:  # type: ignore[override]
        """Two for each group."""
        return 2 * self.groups

    def gather(self, table: Ints) -> Ints:
        """Sums over the bins that the conditions mean, and over all."""
        by_group = table.reshape(self.groups, -1)
        inside = self.marks[0]
        for mark in self.marks[1:]:
            inside = np.logical_and.outer(inside, mark)
        met = by_group[:, inside.ravel()].sum(axis=1)
        return np.stack([by_group.sum(axis=1) - met, met], axis=1).ravel()


def _cut_axis(name: str, domain: Domain, where: Where) -> tuple[AxisBins, Bools]:
    """Bins of the positions of a column between which its condition changes, and which of them it means."""
    runs = [(box.low[0], box.high[0]) for box in find_boxes({name: domain}, {name: where[name]})]
    rule, fix = "must be met by some value of the declared domain", "move the ends, or declare a wider domain"
    check(runs, name, rule, given=repr(domain), fix=fix)
    last = Axis.of(domain).width - 1
    ends = sorted({end for low, high in runs for end in (low - 1, high) if end >= 0} | {last})
    highs = {high for _, high in runs}
    return AxisBins.from_edges(np.array(ends, np.uint64)), np.array([end in highs for end in ends])


@final
@dataclass(frozen=True, eq=False)
class MagnitudeCells(DerivedCells):
    """The positions of a column of numbers in bins, wider the farther from zero; special cells alone.

    `edges` has the last position of each bin.
    """

    edges: tuple[int, ...]
    line: ValueLine

    @staticmethod
    def of(domain: Domain) -> MagnitudeCells:
        """The cells of bounds of a column."""
        line = ValueLine.of(domain)
        down = [-offset - 1 for offset in _magnitude_ends(line.down)[:-1]][::-1]
        ends = [*down, *_magnitude_ends(line.up)]
        first = line.axis.position(0) + line.down
        width = line.axis.width
        edges = (
            *range(first - line.down),
            *(first + end for end in ends),
            *range(first + line.up + 1, width),
        )
        return MagnitudeCells(tuple(edges), line)

    @property
    def bins(self) -> tuple[AxisBins, ...]:  # type: ignore[override]
        """Those of the column."""
        return (AxisBins.from_edges(np.array(self.edges, np.uint64)),)

    @property
    def size(self) -> int:  # type: ignore[override]
        """One cell for each bin."""
        return len(self.edges)

    def gather(self, table: Ints) -> Ints:
        """The bins are the cells."""
        return table.ravel()

    @property
    def ordinary(self) -> range:
        """The cells of values within the declared bounds."""
        return range(self.line.axis.before, self.size - self.line.axis.after)

    def cells_of(self, number: int) -> tuple[int, int]:
        """The first and the last cell of the domain in a bin of values."""
        before = self.line.axis.before
        return self.edges[number - 1] + 1 - before, self.edges[number] - before


def _magnitude_ends(most: int) -> list[int]:
    """The last offset of each bin from 0 to `most`.

    >>> _magnitude_ends(40)
    [0, 1, 2, 3, 4, 5, 6, 7, 9, 11, 13, 15, 19, 23, 27, 31, 39, 40]
    """
    ends, width = [0], 1
    while ends[-1] < most:
        ends.append(min(most, ends[-1] + width))
        if ends[-1] + 1 >= 2 * _PARTS_OF_AN_OCTAVE * width:
            width *= 2
    return ends


def derive_cells(want: Want, declared: Mapping[str, Domain]) -> DerivedCells:
    """The cells of a want, by public facts; one that has none raises InvalidParameter."""
    if want.kind is SHARE:
        return ShareCells.of(want, declared)
    if want.kind is BOUNDS:
        return MagnitudeCells.of(declared[want.column])
    raise InvalidParameter("want", "must be a share or bounds", given=str(want), fix="ask for another view")


def check_cells(want: Want, declared: Mapping[str, Domain]) -> None:
    """Refuse a share whose groups or sets of values are too many to count."""
    if want.kind is not SHARE:
        return
    if want.by is not None:
        groups, rule = (
            Axis.of(declared[want.by]).width,
            f"must be by a column of at most {MOST_GROUPS:,} cells",
        )
        check(groups <= MOST_GROUPS, "wants", rule, given=want.by, fix="make its domain coarser")
    table = math.prod(each.number for each in ShareCells.of(want, declared).bins)
    rule, fix = (
        "must make up fewer combinations of groups and sets of values",
        "ask for ranges, or fewer values",
    )
    check(table <= _MOST_TABLE, "wants", rule, given=table, fix=fix)


# --- answers -----------------------------------------------------------------------------------


@final
@dataclass(frozen=True, eq=False, repr=False)
class Share(NoisyNumber):
    """The share of rows that meet conditions, of all rows or of those of some groups.

    `met` and `unmet` are noisy numbers of rows, each the sum of `cells` counts with noise of `scale`. If both
    together are not clearly above zero, the share is not determinable: its value is NaN, and its interval
    holds every share.
    """

    about: str
    met: float
    unmet: float
    cells: int
    scale: Fraction
    basis: str = ""
    readings: Readings = ()

    @property
    def rows(self) -> float:
        """The noisy number of rows that it is a share of."""
        return self.met + self.unmet

    @property
    def determinable(self) -> bool:
        """Whether there clearly are rows that it is a share of."""
        return self.rows >= CLEAR_DEVIATIONS * math.sqrt(2.0 * self._variance)

    @property
    def value(self) -> float:
        """The share, from 0 to 1; NaN if it is not determinable."""
        return self._clipped[0] / sum(self._clipped) if self.determinable else math.nan

    @property
    def error(self) -> float:
        """The standard error of the noise; infinite if the share is not determinable."""
        return self._deviation(self.value) / sum(self._clipped) if self.determinable else math.inf

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Shares between which the true one lies with this confidence, of small groups, too.

        If p is the true share, (1-p) met - p unmet is noise alone, with a known law. All p are in for which
        it lies within its quantiles [Fieller]. In standard errors, those of a sum of Laplace noises are at
        most those of one Laplace noise, or of the normal law, whichever are larger.
        """
        chance = float(check_probability(confidence, "confidence"))
        normal, single = NormalDist().inv_cdf((1 + chance) / 2), -math.log(1 - chance) / math.sqrt(2)
        return self._between(lambda p: max(normal, single) * self._deviation(p) + _LATTICE)

    def worst(self, beta: float = 0.05) -> tuple[float, float]:
        """Bounds that fail with probability at most beta, whatever the data: the same by Chernoff's bound."""
        side, rate = float(check_probability(beta)) / 2, np.full(2 * self.cells, float(1 / self.scale))

        def reach(p: float) -> float:
            return laplace_mix_reach(np.repeat([1.0 - p, p], self.cells), rate, side)

        return self._between(reach)

    def __str__(self) -> str:
        if not self.determinable:
            return f"not determinable: too few rows for the noise\n{self.about}"
        likely = self.interval()
        return f"{with_interval(self.value, likely)}, 95% from {ends(likely, ' to ')}\n{self.about}"

    def __repr__(self) -> str:
        if not self.determinable:
            return f"Share(not determinable, {self.about})"
        return f"Share({with_interval(self.value, self.interval())}, {self.about})"

    def _repr_html_(self) -> str:
        likely, certain = self.interval(), self.worst()
        facts = [
            ("value", with_interval(self.value, likely)),
            ("95% interval", ends(likely)),
            ("for any data", f"{span(certain)}, but for 5%"),
            ("rows", figure(self.rows)),
        ]
        below = [whisker(self.value, likely, certain)] if self.determinable else []
        return card(self.about, facts, below=below)

    @property
    def _variance(self) -> float:
        """Of each of both numbers."""
        return self.cells * laplace_variance(self.scale)

    @property
    def _clipped(self) -> tuple[float, float]:
        """Both numbers without what no number of rows can be; that moves intervals towards the truth."""
        return max(self.met, 0.0), max(self.unmet, 0.0)

    def _deviation(self, p: float) -> float:
        """The standard deviation of the noise in (1-p) met - p unmet."""
        return math.hypot(1.0 - p, p) * math.sqrt(self._variance)

    def _between(self, reach: Callable[[float], float]) -> tuple[float, float]:
        """The least and the largest p at which (1-p) met - p unmet lies within a reach that is convex in p.

        Less the reach it is concave, and below zero at the value: going away from it, its sign changes once.
        """
        if not self.determinable:
            return 0.0, 1.0
        met, unmet = self._clipped

        def excess(p: float) -> float:
            return (1.0 - p) * met - p * unmet

        low = _bisect(lambda p: excess(p) > reach(p), 0.0, self.value)
        return low, _bisect(lambda p: -excess(p) > reach(p), 1.0, self.value)


def _bisect(outside: Callable[[float], bool], far: float, near: float) -> float:
    """The end of an interval that holds `near`, towards `far`; `far` itself if it is inside."""
    if not outside(far):
        return far
    for _ in range(_HALVINGS):
        middle = (far + near) / 2
        far, near = (middle, near) if outside(middle) else (far, middle)
    return far


@final
@dataclass(frozen=True, eq=False, repr=False)
class ReleasedBounds:
    """Two values between which nearly all rows lie, and noisy numbers of the rows that lie beyond.

    `low` and `high` are the ends of cells, less than a quarter farther out than the quantile that they stand
    for. If noise hides every row, they are the declared bounds, and `determinable` is False.
    """

    view: WantedView
    without: Fraction
    first: int
    last: int
    determinable: bool

    @property
    def low(self) -> object:
        """The lower bound, a value of the column."""
        return self.view.domain.decode([self._ends[0]])[0]

    @property
    def high(self) -> object:
        """The upper bound, a value of the column."""
        return self.view.domain.decode([self._ends[1]])[0]

    @property
    def below(self) -> Answer:
        """How many rows lie below, those below the declared bounds included."""
        return self._count(0, self.first - 1)

    @property
    def above(self) -> Answer:
        """How many rows lie above, those above the declared bounds included."""
        return self._count(self.last + 1, self._magnitudes.ordinary.stop)

    @property
    def rows(self) -> Answer:
        """How many rows hold a number."""
        return self._count(0, self._magnitudes.ordinary.stop)

    def rank_error(self, beta: float = 0.05) -> float:
        """No more rows than this separate each number of rows from the truth, except with probability beta.

        That is so for all bounds that could have been chosen: sums of noise from an end of the column to any
        place exceed what the whole sum does at most twice as often [Lévy].
        """
        counts, chance = self.view.counts, float(check_probability(beta))
        return laplace_sum_reach(counts.scale, counts.size, chance / 4)

    def domain(self) -> Integer | Real:
        """The domain with these bounds, ready for a schema."""
        domain = self.view.domain
        if isinstance(domain, Real):
            low, high = (domain.low + cell * domain.step for cell in self._ends)
            return Real(low, high, step=domain.step)
        return Integer(domain.low + self._ends[0], domain.low + self._ends[1])  # type: ignore[attr-defined]

    def __str__(self) -> str:
        column, share = self.view.want.column, f"{100 * float(self.without):.10g}%"
        if not self.determinable:
            return (
                f"not determinable: noise hides all rows of {column}, and these are the declared bounds\n"
                f"{column} from {self.low} to {self.high}"
            )
        outside = max(0.0, self.below.value) + max(0.0, self.above.value)
        reach, rows = self.rank_error(), max(1.0, self.rows.value)
        out = f"leaves out about {figure(outside)} of {figure(rows)} rows, where {share} were meant"
        if reach > float(self.without) * rows:
            most = figure(outside + 2 * reach)
            out = f"leaves out up to {most} of {figure(rows)} rows, as noise hides whether {share} are"
        return (
            f"{column} from {self.low} to {self.high} {out}\n± {figure(reach)} rows at each end, but for 5%"
        )

    def __repr__(self) -> str:
        return f"ReleasedBounds({self.low} to {self.high}, without {self.without})"

    def _repr_html_(self) -> str:
        facts = [
            ("low", self.low),
            ("high", self.high),
            ("rows below", with_interval(self.below.value, self.below.interval())),
            ("rows above", with_interval(self.above.value, self.above.interval())),
            ("of rows", with_interval(self.rows.value, self.rows.interval())),
            ("for any data", f"± {figure(self.rank_error())} rows at each end, but for 5%"),
            ("determinable", None if self.determinable else "no: noise hides all rows"),
        ]
        return card(f"{self.view.want.column}: bounds without {self.without}", facts)

    @property
    def _magnitudes(self) -> MagnitudeCells:
        return self.view.magnitudes

    @property
    def _ends(self) -> tuple[int, int]:
        """The first and the last cell of the column between the bounds."""
        return self._magnitudes.cells_of(self.first)[0], self._magnitudes.cells_of(self.last)[1]

    def _count(self, first: int, last: int) -> Answer:
        return self.view.counts.answer(Term(first, last))


_BOTH: Final = 2 * CONFIDENCE - 1
"""How sure two intervals hold together, each of which holds with `CONFIDENCE`."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class InterquartileRange:
    """How far the quartiles of a column lie apart: a number, and by how many rows their ranks may be off."""

    lower: SelectedQuantile
    upper: SelectedQuantile

    @property
    def value(self) -> object:
        """The difference of the quartiles, in units of the column."""
        return self.upper.value - self.lower.value  # type: ignore[operator]

    @property
    def basis(self) -> str:
        """Nothing to tell: the quartiles were selected for just this question."""
        return ""

    @property
    def most_confidence(self) -> float:
        """How sure an interval can be that was bought; 1 if none was."""
        return float(_BOTH) if self._bought else 1.0

    def rank_error(self, beta: float = 0.05) -> float:
        """So many rows lie between each quartile and its rank at most, except with probability beta."""
        return max(self.lower.rank_error(beta), self.upper.rank_error(beta))

    def rank_interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Shares of the rows: all of them, as the number of rows is not released; see `rank_error`."""
        check_probability(confidence, "confidence")
        return 0.0, 1.0

    def interval(self, confidence: float = float(_BOTH)) -> tuple[object, object]:
        """Between which the true difference lies; any that the domain allows unless intervals were bought.

        The ends come from the intervals of both quartiles. Each of these holds with 95% whatever the data,
        and so both with 90%: for more confidence nothing is known.
        """
        return self._between(check_probability(confidence, "confidence") <= _BOTH)

    def worst(self, beta: float = 0.05) -> tuple[object, object]:
        """The same, except with probability beta whatever the data: bought intervals say so from 10% on."""
        return self._between(check_probability(beta) >= 1 - _BOTH)

    def __str__(self) -> str:
        column = self.lower.view.column
        ranks = f"ranks 25% and 75% ± {figure(self.rank_error())} rows"
        values = (
            f"interquartile range of {column} {self.value}, from {self.lower.value} to {self.upper.value}"
        )
        if not self._bought:
            return f"{ranks}\n{values}"
        low, high = self.interval()
        return f"{ranks}\n{values}; {float(_BOTH):.0%} from {low} to {high}"

    def __repr__(self) -> str:
        return f"InterquartileRange({self.value}, ranks ± {figure(self.rank_error())} rows)"

    def _repr_html_(self) -> str:
        facts = [
            ("value", self.value),
            ("quartiles", span((self.lower.value, self.upper.value))),
            ("ranks", f"± {figure(self.rank_error())} rows, but for 5%"),
            (f"{float(_BOTH):.0%} interval", span(self.interval()) if self._bought else None),
        ]
        return card(f"{self.lower.view.column}: interquartile range", facts)

    @property
    def _bought(self) -> bool:
        return self.lower.view.selected.side is not None

    def _between(self, holds: bool) -> tuple[object, object]:
        if holds and self._bought:
            (low_least, low_most), (high_least, high_most) = self.lower.interval(), self.upper.interval()
            return _subtract(high_least, low_most), _subtract(high_most, low_least)
        first, last = self.lower.view.domain.decode([0, self.lower.view.domain.size - 1])
        return _subtract(first, first), _subtract(last, first)


def _subtract(one: object, other: object) -> object:
    """The difference of two numbers, or zero if the second is larger."""
    return max(one - other, one - one)  # type: ignore[operator]


# --- the view ----------------------------------------------------------------------------------


@final
@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class WantedView:
    """A want, the public domains of its columns, and the noisy counts of its cells: a part of a release.

    `mechanism` is the name under which the mechanism is listed, and `why` the sentence that says how it was
    chosen, a function of public parameters.
    """

    want: Want
    declared: Mapping[str, Domain]
    counts: HistogramRelease
    mechanism: str
    why: str = ""

    def __post_init__(self) -> None:
        fix = "get the file again"
        rule = "must have the columns of its want"
        check_release(tuple(self.declared) == self.want.columns, "columns", rule, fix=fix)
        rule = "must have the cells of its want"
        check_release(self.counts.size == self.cells.size, "counts", rule, fix=fix)

    def __repr__(self) -> str:
        return f"WantedView({self.name}; {self.mechanism})"

    def _repr_html_(self) -> str:
        return view_card(self, self.declared, want=self.name)

    @cached_property
    def cells(self) -> DerivedCells:
        """The cells that follow from the want."""
        return derive_cells(self.want, self.declared)

    @property
    def magnitudes(self) -> MagnitudeCells:
        """The cells of bounds."""
        if isinstance(self.cells, MagnitudeCells):
            return self.cells
        raise InvalidParameter("want", "must be bounds", given=self.name, fix="ask for the share")

    @property
    def name(self) -> str:
        """The want as text."""
        return str(self.want)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns, that of the groups first."""
        return tuple(self.declared)

    @property
    def domains(self) -> tuple[Domain, ...]:
        """Their domains."""
        return tuple(self.declared.values())

    @property
    def domain(self) -> Domain:
        """The domain of the column that it is about."""
        return self.domains[-1]

    @property
    def guarantee(self) -> Guarantee | None:
        """What was promised; None for injected noise."""
        return self.counts.guarantee

    @property
    def keeps_its_promise(self) -> bool:
        """Whether the counts have the noise that the guarantee asks for."""
        promise = self.guarantee
        return promise is None or promise.epsilon * self.counts.scale >= rows_changed(
            promise.neighbors, promise.contributions
        )

    def means(self, where: Where) -> bool:
        """Whether it has the share of rows that meet these conditions, however they are written."""
        if self.want.kind is not SHARE or set(where) != set(self.want.where):
            return False
        declared = {name: self.declared[name] for name in self.want.where}
        return find_boxes(declared, where) == find_boxes(declared, self.want.where)

    def share(self, among: Where) -> Share:
        """The share among some groups, or among all rows."""
        about = self.name
        groups = [slice(0, self.cells.size // 2)]
        if among and self.want.by is not None:
            boxes = find_boxes({self.want.by: self.declared[self.want.by]}, among)
            groups = [slice(box.low[0], box.high[0] + 1) for box in boxes]
            about = f"{about}, among {_describe_groups(among)}"
        pairs: NDArray[np.object_] = self.counts.noisy.astype(object).reshape(-1, 2)
        chosen = [pairs[each] for each in groups]
        unmet, met = (sum(int(each[:, side].sum()) for each in chosen) for side in (0, 1))
        return Share(about, float(met), float(unmet), sum(map(len, chosen)), self.counts.scale)

    def bounds(self, without: object = None) -> ReleasedBounds:
        """Values between which all rows lie but for a share, half of it at each end; None: as wanted."""
        share = check_probability(self.want["without"] if without is None else without, "without")
        noisy = self.counts.noisy[self.magnitudes.ordinary.start : self.magnitudes.ordinary.stop].tolist()
        start, clear = self.magnitudes.ordinary.start, find_clear(noisy, self.counts.scale)
        if clear is None:
            return ReleasedBounds(self, share, start, start + len(noisy) - 1, False)
        inner = [max(0, each) for each in noisy[clear[0] : clear[1] + 1]]
        target = share / 2 * sum(inner)
        first, last = _count_out(inner, target), len(inner) - 1 - _count_out(inner[::-1], target)
        shift = start + clear[0]
        return ReleasedBounds(self, share, shift + first, shift + max(first, last), True)


def find_clear(noisy: Sequence[int], scale: Fraction) -> tuple[int, int] | None:
    """The first and the last cell of those that clearly hold rows; None if none does.

    Up to four neighbours are looked at together, so that a thin tail is seen, too. Noise alone is taken for
    rows with a probability of at most 1%.
    """
    found: list[int] = []
    for width in _WINDOWS:
        reach = laplace_sum_reach(scale, width, 2 * _FALSE_ALARM / (len(_WINDOWS) * len(noisy)))
        running = np.concatenate([[0], np.cumsum(np.array(noisy, np.float64))])
        starts = np.flatnonzero(running[width:] - running[:-width] > reach)
        found += [int(edge) for start in starts for edge in _loud_ends(noisy, int(start), width)]
    return (min(found), max(found)) if found else None


def _loud_ends(noisy: Sequence[int], start: int, width: int) -> tuple[int, int]:
    """The window without cells at its ends that have nothing to do with it being clear."""
    cells = [start + place for place in range(width) if noisy[start + place] > 0]
    return cells[0], cells[-1]


def _count_out(counts: Sequence[int], target: Fraction) -> int:
    """How many cells can be left out, from the first on, so that no more than `target` rows are in them."""
    left, rows = 0, 0
    for count in counts[:-1]:
        rows += count
        if rows > target:
            break
        left += 1
    return left


def _describe_groups(among: Where) -> str:
    from partita.public.views import describe_conditions

    return describe_conditions(among)


def find_share(views: Sequence[WantedView], where: Where, among: Where) -> Share:
    """The share that was released for these conditions, of all rows or among groups."""
    fix = "publish it with wants=[pt.share(...)]"
    held = [view for view in views if view.means(where)]
    listed = "; ".join(view.name for view in views if view.want.kind is SHARE) or "none"
    rule = f"must be the conditions of a share that was released: {listed}"
    check(held, "where", rule, given=_describe_groups(where) or "no conditions", fix=fix)
    fitting = [view for view in held if not among or set(among) == {view.want.by}]
    groups = ", ".join(view.want.by for view in held if view.want.by is not None) or "no column"
    rule = f"must be about the column that the share is by, which is {groups}"
    check(
        fitting, "among", rule, given=", ".join(among), fix="leave it out, or want the share by that column"
    )
    return min(fitting, key=lambda view: view.counts.size).share(among)


def find_bounds(views: Sequence[WantedView], column: object, without: object) -> ReleasedBounds:
    """Bounds of a column, if it was published for them."""
    held = [view for view in views if view.want.kind is BOUNDS]
    found = next((view for view in held if view.want.column == column), None)
    if found is None:
        names = ", ".join(view.want.column for view in held) or "none"
        rule, fix = f"must be one whose bounds were released: {names}", "publish with wants=[pt.bounds(...)]"
        raise InvalidParameter("column", rule, given=column, fix=fix)
    return found.bounds(without)
