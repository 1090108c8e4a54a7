"""Lines of cells as trees, and views: how coarsely a report looks at each column."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Final, final

from partita.errors.errors import InvalidParameter
from partita.local.randomizer.draws import Numbers
from partita.numbers import freeze, integer

Levels = tuple[int, ...]

MOST_BRANCHES: Final = 64


@final
@dataclass(frozen=True)
class Line:
    """Cells 0, ..., size-1 under a tree: the root is level 0, and the cells are level `height`.

    A node has `branching` children, of which those beyond the last cell are left out.

    >>> line = Line(1000, 2)
    >>> line.height, line.width(10), line.width(9), line.node(999, 9)
    (10, 1000, 500, 499)
    """

    size: int
    branching: int = 2

    def __post_init__(self) -> None:
        freeze(
            self,
            size=integer(self.size, "size", low=2),
            branching=integer(self.branching, "branching", low=2, high=MOST_BRANCHES),
        )

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

        >>> Line(8).cover(1, 6)
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
class View:
    """A look at a cell of several columns: of each column only the node of some level is seen.

    The cells of all columns are one number, the last column running fastest, and so are nodes.

    >>> view = View((Line(8), Line(4)), (1, 2))
    >>> view.size, view.node(7 * 4 + 3)
    (8, 7)
    """

    lines: tuple[Line, ...]
    levels: Levels

    def __post_init__(self) -> None:
        """Lines and levels made anew from their numbers: what a view sees of a cell follows from these."""
        if len(self.lines) != len(self.levels) or {type(line) for line in self.lines} != {Line}:
            fix = "pass for example (Line(8),)"
            raise InvalidParameter("lines", "must be lines, with a level of each", given=None, fix=fix)
        lines = tuple(Line(line.size, line.branching) for line in self.lines)
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


def line_views(line: Line) -> tuple[View, ...]:
    """One view for each level of one column."""
    return tuple(View((line,), (level,)) for level in range(1, line.height + 1))


def tensor_views(lines: tuple[Line, ...]) -> tuple[View, ...]:
    """One view for each choice of a level for every column, but for the one that sees nothing."""
    choices = product(*(range(line.height + 1) for line in lines))
    return tuple(View(lines, levels) for levels in choices if any(levels))


def grid_views(lines: tuple[Line, ...], cells: int) -> tuple[View, ...]:
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
    return tuple(View(lines, levels) for levels in (*alone, *pairs))


def _with(levels: Levels, changed: dict[int, int]) -> Levels:
    return tuple(changed.get(at, level) for at, level in enumerate(levels))


def _finest(line: Line, cells: int) -> int:
    """The last level with at most so many nodes; at least the first."""
    return max([1, *(level for level in range(1, line.height + 1) if line.width(level) <= cells)])
