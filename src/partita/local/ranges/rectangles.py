"""How many people lie in any box of several columns: one report each about a few of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, final

from partita.errors.checks import check_data
from partita.errors.errors import InvalidParameter
from partita.local.frequency.mixture import Mixture, ViewKind
from partita.local.frequency.view_question import ViewQuestion
from partita.local.question.cells import column_cell, column_cells, column_size, described
from partita.local.question.hierarchy import Line, View, grid_views, tensor_views
from partita.local.randomizer.law import Json
from partita.local.randomizer.randomizer import Randomizer
from partita.numbers import freeze, integer

if TYPE_CHECKING:
    from partita.domain.base.base import Domain
    from partita.local.frequency.columns import Ints
    from partita.local.ranges.rectangle_estimate import RectangleAggregator

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
            branching=Line(2, branching).branching,
            grid=integer(grid, "grid", low=2, high=1 << 10),
        )

    def _views(self) -> tuple[View, ...]:
        lines = tuple(Line(column_size(domain), self.branching) for domain in self.domains)
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
        from partita.local.ranges.rectangle_estimate import RectangleAggregator

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
