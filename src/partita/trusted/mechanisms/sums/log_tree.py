"""The log tree: one tree of counts over octaves, for sums of a column over ranges of its own values."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property, partial
from typing import ClassVar, final

import numpy as np

from partita.domain.base.base import Domain
from partita.numbers import frozen
from partita.public.axis.curve.curve import Ints, UInts
from partita.public.bounds.tails import laplace_variance
from partita.public.sums.base.value_line import ValueLine
from partita.public.sums.log_tree.log_cells import LogCells
from partita.public.sums.log_tree.log_tree import LogTreeRelease
from partita.public.sums.parts.part_tree import PartTree, best_tree
from partita.trusted.mechanisms.base.base import Private
from partita.trusted.mechanisms.base.checks import check_scale, fitting_points
from partita.trusted.noise.system.protocol import Noise
from partita.trusted.noise.system.system import SYSTEM
from partita.trusted.secret.points import PointCounts


@final
@frozen(kw_only=True)
class LogTree(Private):
    """Publish once; answer sums, counts and moments of a column over every range of its own values.

    Guarantee: epsilon-DP, pure; ADD_REMOVE or CHANGE_ONE.                         [SU, Thm 2.5]
    Error:     O(largest covered value of the range times log^1.5 cells / epsilon), and at most 1/256 of
               each value that is not counted by itself.
    Proof:     docs/proofs/log_tree.md (integer noise, public cells)

    Values up to 256 steps from the origin have cells of their own; beyond, there are 128 for every octave.

    >>> from partita.domain import Integer
    >>> LogTree(value=Integer(0, 2**32 - 1), epsilon=1).cells.size
    3332
    """

    name: ClassVar[str] = "log-tree"

    value: Domain

    def _check(self) -> None:
        check_scale(self.scale, self.epsilon)

    @cached_property
    def cells(self) -> LogCells:
        """The cells of the values."""
        return LogCells(ValueLine.of(self.value))

    @property
    def tree(self) -> PartTree:
        """The tree over them."""
        return best_tree(self.cells.size)

    @property
    def scale(self) -> Fraction:
        """The noise scale: a row is in one node of each level."""
        return self.tree.levels / self.rate

    @property
    def why(self) -> str:
        """What is chosen, from public facts."""
        return f"Values are counted in {self.cells.size:,} cells, 128 for every octave."

    def predicted_error(self, rows: int) -> float:
        """The root-mean-square error of a random range of cells, in rows of the largest value."""
        return math.sqrt(laplace_variance(self.scale) * self.tree.typical)

    def predicted_numbers(self, rows: int) -> int:
        """How many integers the release holds."""
        return self.tree.nodes

    def release(self, points: PointCounts, *, noise: Noise = SYSTEM) -> LogTreeRelease:
        """Count every node and add noise; the points have one column, the value."""
        rows = fitting_points(points, (self.cells.line.axis,), self.contributions)
        counts = rows.folded(partial(_cell_counts, self.cells))
        session = noise.session()
        return LogTreeRelease(
            value=self.cells.line,
            branching=self.tree.branching,
            noisy=session.add(self.tree.sums(counts), self.scale),
            scale=self.scale,
            guarantee=self.guarantee if session.secure else None,
        )


def _cell_counts(cells: LogCells, places: UInts, counts: Ints) -> Ints:
    """How many rows are in each cell."""
    exact = np.zeros(cells.size, np.int64)
    np.add.at(exact, cells.of(places[:, 0]), counts)
    return exact
