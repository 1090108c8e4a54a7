"""One column of a release, of all rows or of some: what distributions, tables and pictures are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, final

import numpy as np

from partita.answer import Answer
from partita.domain.axis import Axis
from partita.domain.base.base import Domain
from partita.guarantee.guarantee import Guarantee
from partita.lazy.cached import cached_property
from partita.public.axis.base.ranges import Term
from partita.public.axis.curve.curve import Curve, Floats, UInts
from partita.public.base.checkpoint import checkpoint
from partita.public.boxes.base.boxes import Boxes, BoxTerm
from partita.public.views.box_many import ManyBoxes


class Along(Protocol):
    """Counts over the cells 0, ..., size-1 of one column; `Ranges` says what each of them means."""

    @property
    def size(self) -> int: ...

    @property
    def guarantee(self) -> Guarantee | None: ...

    @property
    def curve(self) -> Curve: ...

    def answer(self, *terms: Term) -> Answer: ...

    def counts(self, lows: UInts, highs: UInts) -> Floats: ...

    def errors(self, lows: UInts, highs: UInts) -> Floats: ...

    def error(self, beta: float) -> float: ...


class Line(Protocol):
    """A column with the counts along its cells: a view of one column, or a slice of another."""

    @property
    def column(self) -> str: ...

    @property
    def domain(self) -> Domain: ...

    @property
    def axis(self) -> Along: ...


@final
@dataclass(frozen=True, eq=False, repr=False)
class Slice:
    """A column, its public domain, and its counts; `within` says in words which rows are counted.

    `one_by_one` says that guaranteed bounds of single ranges are much closer than the bound on all errors,
    as they are where the axis is one of several.
    """

    column: str
    domain: Domain
    axis: Along
    within: str = ""
    one_by_one: bool = False

    def __repr__(self) -> str:
        return f"Slice({self.column}, {self.within or 'all rows'})"


@final
@dataclass(frozen=True, eq=False)
class BoxSlice:
    """The ordered cells of one axis, and what lies in some boxes, which do not overlap, on the others.

    `number` is that of the axis; the ends of the boxes on it do not matter.
    """

    boxes: Boxes
    number: int
    terms: tuple[BoxTerm, ...]

    @property
    def size(self) -> int:
        """The number of ordered cells; special cells are on no line."""
        return self._axis.size

    @property
    def guarantee(self) -> Guarantee | None:
        """What the whole release promises."""
        return self.boxes.guarantee

    @cached_property
    def curve(self) -> Curve:
        """Cumulative counts: monotone, never negative."""
        first, stop = self._axis.before, self._axis.before + self._axis.size
        curves = []
        for term in self.terms:
            checkpoint()
            curves.append(_trimmed(self.boxes.along(self.number, term), first, stop - 1))
        return _added(curves) if curves else Curve.empty(np.array([self.size - 1], np.uint64))

    def answer(self, *terms: Term) -> Answer:
        """The signed sum of the terms as one linear question."""
        asked = [self._cut(box, term) for term in terms for box in self.terms]
        return self.boxes.answer(*asked) if asked else Answer.exact(0.0)

    def counts(self, lows: UInts, highs: UInts) -> Floats:
        """The values that `answer` gives for many ranges."""
        return self._many(lows, highs).counts(self.boxes)

    def errors(self, lows: UInts, highs: UInts) -> Floats:
        """The standard errors that `answer` gives for many ranges."""
        return self._many(lows, highs).errors(self.boxes)

    def error(self, beta: float) -> float:
        """With probability 1 - beta no range misses the truth by more: every box has its error."""
        return len(self.terms) * self.boxes.error(beta)

    @property
    def _axis(self) -> Axis:
        return self.boxes.axes[self.number]

    def _many(self, lows: UInts, highs: UInts) -> ManyBoxes:
        shift = np.uint64(self._axis.before)
        return ManyBoxes(self.terms, {self.number: (lows + shift, highs + shift)}, np.ones(lows.size, bool))

    def _cut(self, box: BoxTerm, term: Term) -> BoxTerm:
        low, high = self._axis.position(term.low), self._axis.position(term.high)
        return BoxTerm(self._with(box.low, low), self._with(box.high, high), term.sign * box.sign)

    def _with(self, ends: tuple[int, ...], end: int) -> tuple[int, ...]:
        return (*ends[: self.number], end, *ends[self.number + 1 :])


def _trimmed(curve: Curve, first: int, last: int) -> Curve:
    """The cells first, ..., last of a curve, numbered from 0 on.

    >>> curve = Curve(np.array([3, 9], np.uint64), np.array([8.0, 6.0]))
    >>> trimmed = _trimmed(curve, 2, 6)
    >>> trimmed.ends.tolist(), trimmed.counts.tolist()
    ([1, 4], [4.0, 3.0])
    """
    lows, highs = np.maximum(curve.starts, np.uint64(first)), np.minimum(curve.ends, np.uint64(last))
    kept = lows <= highs
    widths = (highs[kept] - lows[kept]).astype(np.float64) + 1.0
    return Curve(highs[kept] - np.uint64(first), curve.counts[kept] * widths / curve.widths[kept])


def _added(curves: Sequence[Curve]) -> Curve:
    """The sum of curves over the same cells: a piece ends where one of theirs does."""
    if len(curves) == 1:
        return curves[0]
    sums = Curve.empty(np.unique(np.concatenate([curve.ends for curve in curves])))
    counts = np.zeros(sums.ends.size)
    for curve in curves:
        checkpoint()
        piece = np.searchsorted(curve.ends, sums.ends)
        counts += curve.counts[piece] * sums.widths / curve.widths[piece]
    return Curve(sums.ends, counts)
