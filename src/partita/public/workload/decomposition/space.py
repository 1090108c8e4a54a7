"""What multiplicative weights see of numerical queries: cells, masses of rows in them, graded operators."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from partita.lazy.cached import cached_property
from partita.public.axis.curve.curve import Floats
from partita.public.queries.operator.structured import Structured
from partita.public.queries.product.product import Product
from partita.public.queries.product.stack import Stack
from partita.public.queries.ranges.sparse import Sparse
from partita.public.workload.decomposition.decomposition import Decomposition
from partita.public.workload.decomposition.graded import GRADE, Graded
from partita.public.workload.decomposition.octaves import octave_tops


class Space(ABC):
    """k numerical queries over cells that are few enough to hold, each with a whole mass.

    The counts C(Q) and the cut queries L(Q) of the slides are one operator, `joint`, so that one run of
    multiplicative weights answers both.
    """

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """The widths of the axes of the cells."""

    @property
    @abstractmethod
    def granularity(self) -> int:
        """Thresholds are integers over this number."""

    @property
    @abstractmethod
    def unit(self) -> int:
        """The mass that counts as one row."""

    @property
    @abstractmethod
    def most(self) -> int:
        """No row has more mass in all."""

    @property
    def rounding(self) -> float:
        """By how much at most the masses of a row are off, as a share of the last threshold."""
        return 0.0

    @property
    @abstractmethod
    def tops(self) -> tuple[int, ...]:
        """Thresholds 0 < ... in units of the weights; nothing lies above the last."""

    @property
    @abstractmethod
    def whole(self) -> Graded:
        """Each query over its largest weight in the universe."""

    @abstractmethod
    def cut(self, top: int) -> Graded:
        """Each query cut at a threshold, over that threshold."""

    @property
    @abstractmethod
    def joint(self) -> Graded:
        """The counts above every threshold but the last, and each query cut at every threshold but 0."""

    @property
    def graded(self) -> int:
        """How many queries `joint` has."""
        return 2 * (len(self.tops) - 1) * self.number

    @property
    @abstractmethod
    def number(self) -> int:
        """How many numerical queries there are."""

    @property
    def grade(self) -> int:
        """Graded answers are at least as fine as a millionth of a row."""
        return max(1, GRADE // self.unit)

    def _graded(self, operator: Structured, tops: NDArray[Any]) -> Graded:
        """Queries over their tops; one that is zero everywhere has a top all the same."""
        return Graded(operator, np.maximum(tops.astype(object), 1), self.grade)

    @property
    def knots(self) -> tuple[int, ...] | None:
        """The thresholds along the last axis, if it is one of thresholds."""
        return None

    @abstractmethod
    def levels(self, answers: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Numbers for the queries of `joint` as two tables, counts and cut queries: thresholds by queries."""


def grade_factors(graded: Graded) -> Floats:
    """What a graded answer of one is worth: the top of each query."""
    return np.asarray(graded.tops.astype(np.float64) / graded.inner.granularity)


@final
@dataclass(frozen=True, eq=False)
class PlainSpace(Space):
    """The cells of the universe themselves: a row has mass 1 in its cell."""

    operator: Structured

    @property
    def number(self) -> int:
        """Those of the operator."""
        return len(self.operator)

    @property
    def shape(self) -> tuple[int, ...]:
        """Those of the universe."""
        return self.operator.shape

    @property
    def granularity(self) -> int:
        """That of the weights."""
        return self.operator.granularity

    @property
    def unit(self) -> int:
        """A row has mass 1."""
        return 1

    @property
    def most(self) -> int:
        """Every row has mass 1."""
        return 1

    @cached_property
    def tops(self) -> tuple[int, ...]:
        """Powers of two up to the highest weight of all."""
        return octave_tops(self.operator.highest)

    @cached_property
    def whole(self) -> Graded:
        """Weights over the top of their query."""
        return self._graded(self.operator, self.operator.tops)

    def cut(self, top: int) -> Graded:
        """min(w, top) / top."""
        return self._graded(self.operator.truncated(top), np.full(len(self.operator), top, object))

    @cached_property
    def joint(self) -> Graded:
        """Counts first, all queries for each threshold; then cut queries in the same way."""
        counts = [self.operator.above(top) for top in self.tops[:-1]]
        cut = [self.operator.truncated(top) for top in self.tops[1:]]
        grades = [self.operator.granularity] * len(counts) + list(self.tops[1:])
        return self._graded(Stack([*counts, *cut]), np.repeat(np.array(grades, object), len(self.operator)))

    def levels(self, answers: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Two tables, one below the other."""
        counts, cut = answers.reshape(2, len(self.tops) - 1, len(self.operator))
        return counts, cut


@final
@dataclass(frozen=True, eq=False)
class DecomposedSpace(Space):
    """The classes of rows by the knots on which a value is laid: weights are f_w(class) times the knot.

    Thresholds cut the value, not the product, and the counts are of mass above them.
    """

    classes: Structured
    decomposition: Decomposition
    grain: int = 1
    """Values are integers over this number."""

    @property
    def number(self) -> int:
        """Those of the classes."""
        return len(self.classes)

    @property
    def shape(self) -> tuple[int, ...]:
        """The axes of the classes, then the knots."""
        return (*self.classes.shape, len(self.decomposition.knots))

    @property
    def granularity(self) -> int:
        """That of the values."""
        return self.grain

    @property
    def unit(self) -> int:
        """That of the decomposition."""
        return self.decomposition.unit

    @property
    def most(self) -> int:
        """That of the decomposition."""
        return self.decomposition.most

    @property
    def rounding(self) -> float:
        """That of the decomposition."""
        return self.decomposition.rounding / self.tops[-1]

    @property
    def knots(self) -> tuple[int, ...]:
        """Those of the decomposition."""
        return self.decomposition.knots

    @cached_property
    def tops(self) -> tuple[int, ...]:
        """Zero and the knots above it."""
        return (0, *(knot for knot in self.decomposition.knots if knot))

    @cached_property
    def whole(self) -> Graded:
        """Values over the last knot."""
        return self.cut(self.tops[-1])

    def cut(self, top: int) -> Graded:
        """min(value, top) / top, linear in the masses if the threshold is a knot."""
        return self._along([self._cut(top)], [top])

    @cached_property
    def joint(self) -> Graded:
        """For each query all counts, then all cut values."""
        counts = [[int(knot > top) for knot in self.decomposition.knots] for top in self.tops[:-1]]
        cut = [self._cut(top) for top in self.tops[1:]]
        return self._along([*counts, *cut], [1] * len(counts) + list(self.tops[1:]))

    def levels(self, answers: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Two tables side by side."""
        counts, cut = np.moveaxis(answers.reshape(len(self.classes), 2, -1), 0, -1)
        return counts, cut

    def _cut(self, top: int) -> list[int]:
        return [min(knot, top) for knot in self.decomposition.knots]

    def _along(self, rows: Sequence[Sequence[int]], grades: Sequence[int]) -> Graded:
        """Every query of the classes with every row of weights of the knots."""
        queries, spots = np.indices((len(rows), len(self.decomposition.knots))).reshape(2, -1)
        weights = np.array(rows, object).reshape(-1)
        knots = Sparse((len(self.decomposition.knots),), len(rows), queries, spots, weights, self.grain)
        axes = tuple(range(len(self.classes.shape)))
        product = Product(self.shape, [(axes, self.classes), ((len(axes),), knots)])
        tops = np.multiply.outer(self.classes.tops.astype(object), np.array(grades, object))
        return self._graded(product, tops.reshape(-1))
