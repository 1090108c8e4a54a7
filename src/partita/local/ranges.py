"""Questions about ranges and boxes: each report looks at a person's cell through one coarse view.

A column is a tree of cells, and a view names a level of each column. `Mixture` is the law of a report that
chooses a view. This module needs the standard library only; estimates are in `partita.local.range_estimates`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, product
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self, TypeAlias, final

from partita.errors import InvalidParameter, check, check_arguments, check_data
from partita.local.question import (
    CellQuestion,
    Frequency,
    Question,
    column_cell,
    column_cells,
    column_size,
    describe_domain,
)
from partita.local.randomizer import (
    LARGEST_SIZE,
    Draws,
    FrequencyRandomizer,
    Json,
    KernelDraws,
    LocalLaw,
    Numbers,
    Pmf,
    Randomizer,
    check_epsilon,
)
from partita.numbers import check_choice, freeze, integer

if TYPE_CHECKING:
    from partita.arrays import Ints
    from partita.domain.base import Domain
    from partita.local.range_estimates import RangeAggregator, RectangleAggregator
    from partita.trusted.noise.laws import WordSource

Levels = tuple[int, ...]
MOST_BRANCHES: Final = 64
ViewKind: TypeAlias = Literal["auto", "response", "projective", "hadamard"]
VIEW_KINDS: Final = ("auto", "response", "projective", "hadamard")
_MOST_VIEWS: Final = 512
_LARGEST_SPACE: Final = 1 << 62
_WRITTEN: Final = "pass what to_json returned"
MOST_COLUMNS: Final = 6
"""As many as the boxes of a release have at most."""
_GRID: Final = 16


@dataclass(frozen=True, init=False)
class ViewQuestion(Question):
    """Every report is about one view, drawn on the device, or assigned by a public coin.

    Views must be assigned without a look at values: then estimates stay unbiased, and equal groups make them
    a little better.
    """

    randomizer: Mixture

    @property
    def lines(self) -> tuple[CellTree, ...]:
        """The columns, as trees."""
        return self.randomizer.views[0].lines

    def randomize(self, value: object, *, draws: Draws | None = None, view: int | None = None) -> int:
        """One person's report, with entropy from the kernel; about the view assigned, if one is."""
        if view is None:
            return super().randomize(value, draws=draws)
        number = integer(view, "view", low=0, high=len(self.randomizer.views) - 1)
        drawn: int = self.randomizer.sample_view(number, self.cell(value), draws or KernelDraws())
        return drawn

    def randomize_many(self, values: object, *, words: WordSource | None = None, views: Any = None) -> Any:
        """One report for every value of a column; about the views assigned, if they are."""
        if views is None:
            return super().randomize_many(values, words=words)
        import numpy as np

        from partita.trusted.noise.laws import Words

        cells, mixture = self.cells(values), self.randomizer
        chosen, source = np.asarray(views), words or Words()
        fits = chosen.shape == cells.shape and bool(np.isin(chosen, np.arange(len(mixture.views))).all())
        rule = "must hold the number of a view for each value"
        check(fits, "views", rule, given=views, fix="leave them out")
        reports = np.empty_like(cells)
        for number, (view, part) in enumerate(zip(mixture.views, mixture.parts, strict=True)):
            people = np.flatnonzero(chosen == number)
            made = part.randomize_many(view.node(cells[people]), words=source)
            reports[people] = mixture.starts[number] + made
        return reports


@final
@check_arguments
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
        from partita.local.range_estimates import RangeAggregator

        return RangeAggregator(self)

    def _asked(self) -> Json:
        return {**super()._asked(), "branching": self.branching}


@final
@check_arguments
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
        joined: int = self._join([column_cell(domain, row.get(name)) for name, domain in named])
        return joined

    def cells(self, values: object) -> Ints:
        """The cell of every row of a table, a mapping of columns to arrays of one length."""
        table = values if isinstance(values, Mapping) else {}
        rule = f"must have the columns {', '.join(self.columns)}"
        check(set(self.columns) <= set(table), "values", rule, given=None, fix="add them")
        named = zip(self.columns, self.domains, strict=True)
        cells = [column_cells(domain, table[name]) for name, domain in named]
        rule = "must have columns of one length"
        check_data(len({len(each) for each in cells}) <= 1, "values", rule, fix="check the table")
        joined: Ints = self._join(cells)
        return joined

    def aggregator(self) -> RectangleAggregator:
        from partita.local.range_estimates import RectangleAggregator

        return RectangleAggregator(self)

    def ordinary(self, axis: int) -> int:
        """The number of cells in order of a column, without the special ones."""
        domain = self.domains[axis]
        return domain if isinstance(domain, int) else domain.size

    def _join(self, cells: Sequence[Any]) -> Any:
        """The cells of all columns as one number, the last column running fastest."""
        joined: Any = 0
        for line, cell in zip(self.lines, cells, strict=True):
            joined = joined * line.size + cell
        return joined

    def _asked(self) -> Json:
        named = zip(self.columns, self.domains, strict=True)
        columns = {name: describe_domain(domain) for name, domain in named}
        return {"columns": columns, "branching": self.branching, "grid": self.grid}


# Lines of cells as trees, and views: how coarsely a report looks at each column.


@final
@dataclass(frozen=True)
class CellTree:
    """Cells 0, ..., size-1 under a tree: the root is level 0, and the cells are level `height`.

    A node has `branching` children, of which those beyond the last cell are left out.

    >>> line = CellTree(1000, 2)
    >>> line.height, line.width(10), line.width(9), line.node(999, 9)
    (10, 1000, 500, 499)
    """

    size: int
    branching: int = 2

    def __post_init__(self) -> None:
        branching = integer(self.branching, "branching", low=2, high=MOST_BRANCHES)
        freeze(self, size=integer(self.size, "size", low=2), branching=branching)

    @property
    def height(self) -> int:
        """The number of levels below the root: the least with enough cells."""
        levels = 1
        while self.branching**levels < self.size:
            levels += 1
        return levels

    def span(self, level: int) -> int:
        """How many cells a node of a level holds."""
        return int(self.branching ** (self.height - level))

    def width(self, level: int) -> int:
        """How many nodes a level has."""
        return -(-self.size // self.span(level))

    def node(self, cell: Numbers, level: int) -> Numbers:
        """The node of a level above a cell."""
        return cell // self.span(level)

    def cover(self, low: int, high: int) -> list[tuple[int, int]]:
        """The fewest nodes, as pairs of level and number, that hold the cells low, ..., high exactly.

        >>> CellTree(8).cover(1, 6)
        [(3, 1), (3, 6), (2, 1), (2, 2)]
        """
        found = []
        for level in range(self.height, 0, -1):
            while low <= high and low % self.branching:
                found.append((level, low))
                low += 1
            while low <= high and (high + 1) % self.branching and high + 1 < self.width(level):
                found.append((level, high))
                high -= 1
            if low > high:
                return found
            low, high = low // self.branching, high // self.branching
        return [*found, (0, 0)]


@final
@dataclass(frozen=True)
class ReportView:
    """A look at a cell of several columns: of each column only the node of some level is seen.

    The cells of all columns are one number, the last column running fastest, and so are nodes.

    >>> view = ReportView((CellTree(8), CellTree(4)), (1, 2))
    >>> view.size, view.node(7 * 4 + 3)
    (8, 7)
    """

    lines: tuple[CellTree, ...]
    levels: Levels

    def __post_init__(self) -> None:
        """Lines and levels made anew from their numbers: what a view sees of a cell follows from these."""
        if len(self.lines) != len(self.levels) or {type(line) for line in self.lines} != {CellTree}:
            fix = "pass for example (CellTree(8),)"
            raise InvalidParameter("lines", "must be lines, with a level of each", given=None, fix=fix)
        lines = tuple(CellTree(line.size, line.branching) for line in self.lines)
        levels = zip(self.levels, lines, strict=True)
        checked = tuple(integer(level, "levels", low=0, high=line.height) for level, line in levels)
        freeze(self, lines=lines, levels=checked)

    @property
    def widths(self) -> tuple[int, ...]:
        """The number of nodes of each column."""
        return tuple(line.width(level) for line, level in zip(self.lines, self.levels, strict=True))

    @property
    def size(self) -> int:
        """The number of nodes of all columns together."""
        return prod(self.widths)

    def node(self, cell: Numbers) -> Numbers:
        """What is seen of a cell."""
        seen: Numbers = 0
        stride = prod(line.size for line in self.lines)
        for line, level in zip(self.lines, self.levels, strict=True):
            stride //= line.size
            seen = seen * line.width(level) + line.node(cell // stride % line.size, level)
        return seen


def line_views(line: CellTree) -> tuple[ReportView, ...]:
    """One view for each level of one column."""
    return tuple(ReportView((line,), (level,)) for level in range(1, line.height + 1))


def tensor_views(lines: tuple[CellTree, ...]) -> tuple[ReportView, ...]:
    """One view for each choice of a level for every column, but for the one that sees nothing."""
    choices = product(*(range(line.height + 1) for line in lines))
    return tuple(ReportView(lines, levels) for levels in choices if any(levels))


def grid_views(lines: tuple[CellTree, ...], cells: int) -> tuple[ReportView, ...]:
    """Every level of each column by itself, and for every two columns a grid of about `cells` a side."""
    columns = range(len(lines))
    nothing = (0,) * len(lines)
    alone = [_with(nothing, {at: level}) for at in columns for level in range(1, lines[at].height + 1)]
    finest = [_finest(line, cells) for line in lines]
    pairs = [
        _with(nothing, {one: finest[one], other: finest[other]})
        for one in columns
        for other in columns[one + 1 :]
    ]
    return tuple(ReportView(lines, levels) for levels in (*alone, *pairs))


def _with(levels: Levels, changed: dict[int, int]) -> Levels:
    return tuple(changed.get(at, level) for at, level in enumerate(levels))


def _finest(line: CellTree, cells: int) -> int:
    """The last level with at most so many nodes; at least the first."""
    return max([1, *(level for level in range(1, line.height + 1) if line.width(level) <= cells)])


# The law of a report about one of several views.


@final
@check_arguments
@dataclass(frozen=True, kw_only=True)
class Mixture(LocalLaw):
    """A view, uniform among all of them or assigned, and a report about what it sees of the cell.

    The report says which view it is of: reports of view v begin at `starts[v]`. Views are chosen
    independently of the cell, so all that a report says beyond a public coin is what its randomizer said.

    Guarantee: epsilon-DP of each report, the view included, pure, local.
    Error:     that of the randomizer of a view, with the reports that chose the view.
    Proof:     docs/proofs/local_ranges.md
    """

    kind: ClassVar[str] = "mixture"
    views: tuple[ReportView, ...]
    parts: tuple[FrequencyRandomizer, ...]

    def __post_init__(self) -> None:
        freeze(self, views=check_report_views(self.views))
        rule = "must be a list of randomizers"
        check(isinstance(self.parts, Sequence), "parts", rule, given=None, fix=_WRITTEN)
        pairs = zip(self.views, self.parts, strict=False)
        fits = all(_fits(view, part, self.epsilon) for view, part in pairs)
        rule = "must have a randomizer for each view, all of one epsilon"
        check(fits and len(self.parts) == len(self.views), "parts", rule, given=None, fix=_WRITTEN)

    @classmethod
    def of(cls, views: Sequence[ReportView], *, epsilon: object, kind: ViewKind = "auto") -> Self:
        """The mixture with a randomizer of this kind for each view."""
        check_choice(kind, "kind", VIEW_KINDS)
        exact, own = check_epsilon(epsilon), check_report_views(views)
        size = _check_space(own)
        parts = tuple(Frequency(view.size, epsilon=exact, kind=kind).randomizer for view in own)
        return cls(size=size, epsilon=exact, views=own, parts=parts)

    @classmethod
    def read(cls, views: Sequence[ReportView], parts: Sequence[Randomizer]) -> Self:
        """The mixture of these randomizers, each of which was verified when it was read."""
        frequencies = tuple(part for part in parts if isinstance(part, FrequencyRandomizer))
        rule = "must be randomizers of cells"
        check(len(frequencies) == len(parts) and parts, "parts", rule, given=None, fix=_WRITTEN)
        own = check_report_views(views)
        return cls(size=_check_space(own), epsilon=frequencies[0].epsilon, views=own, parts=frequencies)

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The first report of each view, and the number of all reports."""
        return tuple(accumulate((part.reports for part in self.parts), initial=0))

    @property
    def reports(self) -> int:
        """Those of all views, one after the other."""
        return self.starts[-1]

    @property
    def forged_report_shift(self) -> Fraction:
        """How many people one forged report adds to a node of its view, or takes from it, at most.

        Views are reported equally often, so a report of one stands for as many people as there are views.
        """
        return len(self.views) * max(part.forged_report_shift for part in self.parts)

    def sample(self, x: Numbers, draws: Draws) -> Numbers:
        """A view from a coin that knows nothing of x, then the report of that view."""
        return self.sample_view(draws.below(len(self.views)), x, draws)

    def sample_view(self, view: Numbers, x: Numbers, draws: Draws) -> Numbers:
        """The report of a given view."""
        return draws.each(view, self._samplers, x)

    def pmf(self, x: int) -> Pmf:
        """The law of each view, all equally likely."""
        self._list_reports()
        chance = Fraction(1, len(self.views))
        return {
            start + report: chance * p
            for start, view, part in zip(self.starts, self.views, self.parts, strict=False)
            for report, p in part.pmf(view.node(x)).items()
        }

    def to_json(self) -> Json:
        """The randomizer of each view, in their order."""
        return {"kind": self.kind, "parts": [part.to_json() for part in self.parts]}

    @cached_property
    def _samplers(self) -> list[Callable[[Any, Any], Any]]:
        return [self._sampler(view) for view in range(len(self.views))]

    def _sampler(self, number: int) -> Callable[[Any, Any], Any]:
        start, view, part = self.starts[number], self.views[number], self.parts[number]
        return lambda x, draws: start + part.sample(view.node(x), draws)


def check_report_views(views: Iterable[object]) -> tuple[ReportView, ...]:
    """The views made anew from their numbers.

    A report is charged by what `ReportView` sees of a cell. An object that only looks like a view, or a view
    that was changed after it was made, may see more.
    """
    check(isinstance(views, Iterable), "views", "must be a list of views", given=views, fix=_WRITTEN)
    made = tuple(_copy_view(view) for view in views)
    rule = "must be at least one, all of the same columns"
    check(len({view.lines for view in made}) == 1, "views", rule, given=None, fix="pass the same lines")
    return made


def _copy_view(view: Any) -> ReportView:
    fix = "pass those of line_views(CellTree(8))"
    check(type(view) is ReportView, "views", "must be views", given=None, fix=fix)
    return ReportView(view.lines, view.levels)


def _fits(view: ReportView, part: FrequencyRandomizer, epsilon: Fraction) -> bool:
    return part.size == view.size and part.epsilon == epsilon and part.kind in VIEW_KINDS


def _check_space(views: Sequence[ReportView]) -> int:
    """The number of cells of all columns together, if views of them can be reported and counted."""
    size = prod(line.size for line in views[0].lines)
    if len(views) > _MOST_VIEWS or size > _LARGEST_SPACE or sum(view.size for view in views) > LARGEST_SIZE:
        rule = f"must leave at most {_MOST_VIEWS} views with {LARGEST_SIZE} nodes in all"
        raise InvalidParameter("domain", rule, given=None, fix="make the columns coarser, or fewer")
    return size
