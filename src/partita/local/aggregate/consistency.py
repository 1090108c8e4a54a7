"""From looks at several levels to one table that agrees with itself: least squares, in closed form.

The *detail* of a table at a level is what its nodes differ from the mean of their siblings. Every view that
is at least as fine estimates it, with noise that adds up over the nodes summed. Details of different
levels do not correlate, so the best estimate of each is the mean of all views by their precision.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from partita.local.question.hierarchy import Levels, Line

Floats = NDArray[np.float64]


@final
@dataclass(frozen=True, eq=False)
class Look:
    """What one view says: estimated shares of its nodes, with one axis for each column, and their variance.

    A column that the view does not see has one node. Nodes that do not exist have a share of zero.
    """

    levels: Levels
    table: Floats
    variance: float


@final
@dataclass(frozen=True, eq=False)
class Details:
    """Everything that the looks say about shares, with a total of one, level by level."""

    lines: tuple[Line, ...]
    looks: tuple[Look, ...]

    @cached_property
    def precision(self) -> Mapping[Levels, float]:
        """How well each detail is known: the inverse variance of its nodes before siblings are compared."""
        told = {look.levels: 1 / look.variance for look in self.looks}
        return self._gathered(told, lambda value, _: value)

    @cached_property
    def tables(self) -> Mapping[Levels, Floats]:
        """The estimated detail of every choice of levels; that of no level at all is the total."""
        told = {look.levels: look.table / look.variance for look in self.looks}
        gathered = self._gathered(told, lambda table, axis: coarser(table, axis, self.lines[axis].branching))
        return {
            levels: np.ones((1,) * len(levels)) if not any(levels) else self._detail(levels, table)
            for levels, table in gathered.items()
        }

    def table(self, finest: Levels) -> Floats:
        """The shares of the nodes at these levels: all details down to there, added up from the top."""
        folded = dict(self.tables)
        for axis, last in enumerate(finest):
            folded = self._folded(folded, axis, last)
        return folded[finest]

    def variance(self, chosen: Sequence[Floats]) -> float:
        """The variance of the share of a box; `chosen` holds a mask of the cells for every column."""
        energies = [self._energies(axis, mask) for axis, mask in enumerate(chosen)]
        return sum(
            prod(energies[axis][level] for axis, level in enumerate(levels)) / precision
            for levels, precision in self.precision.items()
            if any(levels)
        )

    def _gathered(self, told: Mapping[Levels, Any], summed: Callable[[Any, int], Any]) -> dict[Levels, Any]:
        """What all views say about levels that are not finer than their own, weighted by precision."""
        gathered = dict(told)
        for axis, line in enumerate(self.lines):
            for level in range(line.height, 0, -1):
                for levels in [levels for levels in gathered if levels[axis] == level]:
                    above = _at(levels, axis, level - 1)
                    gathered[above] = gathered.get(above, 0) + summed(gathered[levels], axis) / line.branching
        return gathered

    def _detail(self, levels: Levels, told: Floats) -> Floats:
        for axis, level in enumerate(levels):
            if level:
                told = told - _sibling_means(told, axis, self.lines[axis].branching)
        return told / self.precision[levels]

    def _folded(self, details: Mapping[Levels, Floats], axis: int, last: int) -> dict[Levels, Floats]:
        """Along one axis, from the root down: a node has its part of its parent, and its own detail."""
        folded = {}
        for levels in [
            levels for levels in details if not levels[axis] and _at(levels, axis, last) in details
        ]:
            total = details[levels]
            for level in range(1, last + 1):
                total = finer(total, axis, self.lines[axis].branching) + details[_at(levels, axis, level)]
            folded[_at(levels, axis, last)] = total
        return folded

    def _energies(self, axis: int, mask: Floats) -> list[float]:
        """For each level, the squared length of the detail of a mask of cells, as means over nodes."""
        line, found = self.lines[axis], []
        means = np.zeros(line.branching**line.height)
        means[: mask.size] = mask
        for _ in range(line.height):
            found.append(float(((means - _sibling_means(means, 0, line.branching)) ** 2).sum()))
            means = coarser(means, 0, line.branching) / line.branching
        return [float(means[0] ** 2), *reversed(found)]


def coarser(table: Any, axis: int, branching: int) -> Any:
    """The sums of all siblings along an axis."""
    shape = table.shape
    grouped = table.reshape(*shape[:axis], shape[axis] // branching, branching, *shape[axis + 1 :])
    return grouped.sum(axis=axis + 1)


def finer(table: Floats, axis: int, branching: int) -> Floats:
    """Every node shared out evenly among its children along an axis."""
    return np.repeat(table, branching, axis=axis) / branching


def _sibling_means(table: Floats, axis: int, branching: int) -> Floats:
    return finer(coarser(table, axis, branching), axis, branching)


def _at(levels: Levels, axis: int, level: int) -> Levels:
    return (*levels[:axis], level, *levels[axis + 1 :])
