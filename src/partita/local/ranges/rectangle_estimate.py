"""What reports about rectangles say: shares and counts of any box."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import sqrt
from typing import final

import numpy as np

from partita.answer import Answer
from partita.errors.checks import check_type
from partita.errors.errors import InvalidParameter
from partita.local.aggregate.consistency import Floats
from partita.local.aggregate.evidence import Evidence, ViewAggregator
from partita.local.frequency.domains import domain_ends
from partita.local.question.hierarchy import Levels
from partita.local.ranges.association import joint_share, raked
from partita.local.ranges.projection import top_down
from partita.local.ranges.range_estimate import scaled
from partita.local.ranges.rectangles import Rectangles

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
    evidence: Evidence

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
