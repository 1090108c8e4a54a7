"""Sums of a column: the cap of its values, level trees over ranges of keys, and the log tree over values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, ClassVar, Final, cast, final

import numpy as np
from numpy.typing import NDArray

from partita.arrays import Ints, UInts
from partita.domain.axis import MOST_AXES, Axis
from partita.domain.base import Domain
from partita.errors import InvalidParameter, check, check_bool
from partita.numbers import Converted, freeze, frozen, parameter
from partita.public.bounds import laplace_variance
from partita.public.sums.base import ValueLine
from partita.public.sums.knots import Tops, ValueBuckets
from partita.public.sums.level_trees import Controls, LevelTreesRelease
from partita.public.sums.log_tree import LogCells, LogTreeRelease
from partita.public.sums.parts import (
    MOST_PARTS,
    KeyCounts,
    KeyTree,
    PartTree,
    best_tree,
    count_cells,
    cut_by_counts,
    cut_into_cells,
)
from partita.trusted.mechanisms.base import Private, check_points_fit, check_scale
from partita.trusted.noise.system import SYSTEM, Noise
from partita.trusted.secret import PointCounts


@final
@frozen(kw_only=True)
class ValueCap(Private):
    """Count values by powers of two, with noise; the cap is a function of these counts.

    Guarantee: epsilon-DP, pure; ADD_REMOVE or CHANGE_ONE.                         [DMNS06]
    Error:     a cap above all values with probability at most 1/2000; a power of two is seen, with
               probability 1 - beta, if it holds more than ln(2000 buckets / beta) / epsilon rows.
    Proof:     docs/proofs/value_cap.md (integer noise, integer thresholds)

    >>> from partita.domain import Integer
    >>> ValueCap(value=Integer(0, 1000), epsilon="1/20").scale
    Fraction(20, 1)
    """

    value: Converted[Domain | ValueLine, ValueLine] = parameter()

    def _convert(self) -> None:
        super()._convert()
        given = cast(Domain | ValueLine, self.value)
        freeze(self, value=given if isinstance(given, ValueLine) else ValueLine.of(given))

    def _check(self) -> None:
        check_scale(self.scale, self.epsilon)

    @property
    def scale(self) -> Fraction:
        """The noise scale: by how many rows neighbours differ, over epsilon."""
        return 1 / self.rate

    @cached_property
    def buckets(self) -> ValueBuckets:
        """The powers of two that are counted."""
        return ValueBuckets(self.value)

    def measure(self, points: PointCounts, *, session: Noise) -> NDArray[Any]:
        """The noisy count of every bucket: each row is in one. The value is the last column of the points."""
        noisy: NDArray[Any] = session.add(points.folded(partial(_count_buckets, self.buckets)), self.scale)
        return noisy


def _count_buckets(buckets: ValueBuckets, places: UInts, counts: Ints) -> Ints:
    """The number of rows in each bucket."""
    exact = np.zeros(buckets.size, np.int64)
    np.add.at(exact, buckets.of(places[:, -1]), counts)
    return exact


_CAP_SHARE: Final = Fraction(1, 20)  # of epsilon: a tighter cap against less for the trees
_FEW_CELLS: Final = 512  # keys with more cells are cut into parts by their counts
_ROWS_FOR_A_PART: Final = 16  # times 1 / rate: finer parts against noise in each
_TOP_KNOTS: Final = 16 / 15  # adds the noise of the lower knots to that of the top one
_WIDEST: Final = Tops(7 << 60, 7 << 60)  # caps above all values: the worst case before they are found


@final
@frozen(kw_only=True)
class LevelTrees(Private):
    """Publish once; answer sums, means and counts of a column over every range or box of the keys.

    Guarantee: epsilon-DP, pure; ADD_REMOVE or CHANGE_ONE.
    Error:     O(largest covered value times log^1.5 parts / epsilon), whatever the declared bound.
    Proof:     docs/proofs/level_trees.md (one unit of mass for each row, integer noise)

    A twentieth of epsilon finds the caps of the values, the rest is for the trees: one over the parts of the
    keys for each knot below the caps. With `moments` there are twice as many, and variances.

    >>> from partita.domain import Integer
    >>> age, income = Axis.of(Integer(0, 120)), Integer(0, 2**32)
    >>> LevelTrees(keys=[age], value=income, epsilon=1).cap.epsilon
    Fraction(1, 20)
    """

    name: ClassVar[str] = "level-trees"

    keys: Converted[Sequence[Axis], tuple[Axis, ...]] = parameter()
    value: Domain
    moments: bool = False

    def _convert(self) -> None:
        super()._convert()
        freeze(self, keys=check_keys(self.keys), moments=check_bool(self.moments, "moments"))

    def _check(self) -> None:
        check_scale(self._scale(best_tree(MOST_PARTS), self._controls(_WIDEST)), self.epsilon)

    @cached_property
    def cap(self) -> ValueCap:
        """The mechanism that finds the caps."""
        return ValueCap(value=self.value, epsilon=self.epsilon * _CAP_SHARE, **self.protected)

    @property
    def degree(self) -> int:
        """The degree of the hats: 1 for sums, 2 for sums and squares."""
        return 2 if self.moments else 1

    @property
    def why(self) -> str:
        """A sentence about how public parameters choose the parts."""
        if not self.keys:
            return "Sums have no keys: there is one part."
        if count_cells(self.keys) <= _FEW_CELLS:
            return f"Each of the {count_cells(self.keys):,} cells of the keys is a part of its own."
        return "The keys are cut into parts by the released counts."

    def predicted_error(self, rows: int) -> float:
        """About the root-mean-square error of a random range of keys, over the largest covered value.

        Its unit is a row with the largest value, so that it compares with the errors of counts.
        """
        tree, controls = best_tree(self._parts(rows)), self._controls(_WIDEST)
        noise = laplace_variance(self._scale(tree, controls)) * tree.typical * _TOP_KNOTS
        return math.sqrt(noise) / controls.unit

    def predicted_numbers(self, rows: int) -> int:
        """About how many integers the release holds, at most."""
        return self.cap.buckets.size + self._controls(_WIDEST).size * best_tree(self._parts(rows)).nodes

    def release(
        self, points: PointCounts, density: KeyCounts | None = None, *, noise: Noise = SYSTEM
    ) -> LevelTreesRelease:
        """Find the caps, split every row between the knots around its value, and add noise to all nodes.

        The points have a column for each key, and the value is the last column. `density` was released
        before; it decides how keys with many cells are cut.
        """
        rows = check_points_fit(points, (*self.keys, self.cap.value.axis), self.contributions)
        cut = self._cut(density)
        tree = best_tree(cut.parts)
        session = noise.session()
        buckets = self.cap.measure(rows, session=session)
        controls = self._controls(self.cap.buckets.tops(buckets, self.cap.scale))
        masses = rows.folded(partial(_masses, cut, controls))
        scale = self._scale(tree, controls)
        return LevelTreesRelease(
            keys=self.keys,
            value=self.cap.value,
            cut=cut,
            degree=self.degree,
            branching=tree.branching,
            buckets=buckets,
            bucket_scale=self.cap.scale,
            noisy=session.add(tree.sums(masses).ravel(), scale),
            scale=scale,
            guarantee=self.guarantee if session.secure else None,
        )

    def _cut(self, density: KeyCounts | None) -> KeyTree:
        """The parts of the keys: a function of public parameters and of released counts of the keys."""
        cells = count_cells(self.keys)
        if cells <= _FEW_CELLS or (density is None and cells <= MOST_PARTS):
            return cut_into_cells(self.keys)
        if density is None:
            rule = f"must be given where keys have more than {MOST_PARTS} cells"
            raise InvalidParameter("density", rule, given=density, fix="release counts of the keys first")
        return cut_by_counts(self.keys, density, enough=float(self._rows_for_a_part))

    def _parts(self, rows: int) -> int:
        """A prediction of the number of parts."""
        cells = count_cells(self.keys)
        if cells <= _FEW_CELLS:
            return cells
        return max(2, min(cells, MOST_PARTS, int(2 * rows / self._rows_for_a_part)))

    @property
    def _rows_for_a_part(self) -> Fraction:
        """A part with more rows is halved: its rows exceed the noise of a part."""
        return _ROWS_FOR_A_PART / self._rate

    @property
    def _rate(self) -> Fraction:
        """Epsilon for the trees, for each row by which neighbours may differ."""
        return self.rate * (1 - _CAP_SHARE)

    def _scale(self, tree: PartTree, controls: Controls) -> Fraction:
        """Every row has one unit of mass on each level of all trees together."""
        return tree.levels * controls.unit / self._rate

    def _controls(self, tops: Tops) -> Controls:
        return Controls(self.cap.value, tops, self.degree)


def _masses(cut: KeyTree, controls: Controls, places: UInts, counts: Ints) -> NDArray[Any]:
    """The whole mass of every row in each part of the keys, exactly."""
    return controls.summed(cut.of(places[:, :-1]), places[:, -1], counts, cut.parts)


def check_keys(keys: object) -> tuple[Axis, ...]:
    """The axes of the keys of sums, if they are a list of axes, and not too many."""
    given = tuple(keys) if isinstance(keys, list | tuple) else None
    if given is None or not all(isinstance(axis, Axis) for axis in given):
        rule = "must be a list of axes"
        raise InvalidParameter("keys", rule, given=keys, fix="pass Axis.of(domain) for each")
    fix = "sum over fewer keys together"
    check(len(given) <= MOST_AXES, "keys", f"must be at most {MOST_AXES}", given=len(given), fix=fix)
    return given


@final
@frozen(kw_only=True)
class LogTree(Private):
    """Publish once; answer sums, counts and moments of a column over every range of its own values.

    Guarantee: epsilon-DP, pure; ADD_REMOVE or CHANGE_ONE.                         [SU, Thm 2.5]
    Error:     O(largest covered value of the range times log^1.5 cells / epsilon), and at most 1/256 of
               each value that shares its cell with others.
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
        """A sentence about the cells."""
        return f"Values are counted in {self.cells.size:,} cells, 128 for every octave."

    def predicted_error(self, rows: int) -> float:
        """The root-mean-square error of a random range of cells, in rows of the largest value."""
        return math.sqrt(laplace_variance(self.scale) * self.tree.typical)

    def predicted_numbers(self, rows: int) -> int:
        """How many integers the release holds."""
        return self.tree.nodes

    def release(self, points: PointCounts, *, noise: Noise = SYSTEM) -> LogTreeRelease:
        """Count every node and add noise; the points have one column, the value."""
        rows = check_points_fit(points, (self.cells.line.axis,), self.contributions)
        counts = rows.folded(partial(_count_cells, self.cells))
        session = noise.session()
        return LogTreeRelease(
            value=self.cells.line,
            branching=self.tree.branching,
            noisy=session.add(self.tree.sums(counts), self.scale),
            scale=self.scale,
            guarantee=self.guarantee if session.secure else None,
        )


def _count_cells(cells: LogCells, places: UInts, counts: Ints) -> Ints:
    """The number of rows in each cell."""
    exact = np.zeros(cells.size, np.int64)
    np.add.at(exact, cells.of(places[:, 0]), counts)
    return exact
