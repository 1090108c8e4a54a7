"""Views of the same rows agree on how many there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias, final

import numpy as np

from partita.answer import Answer, Answers
from partita.errors.errors import InvalidParameter
from partita.guarantee.guarantee import Guarantee
from partita.lazy.cached import cached_property
from partita.public.axis.base.ranges import Term
from partita.public.axis.curve.curve import Curve, Floats, UInts
from partita.public.boxes.regions.regions import PublicRegion
from partita.public.conditions import Where
from partita.public.results.heat import Heat, heat_of
from partita.public.views.box_view import BoxView
from partita.public.views.slice import Along, Slice
from partita.public.views.view import View

AnyView: TypeAlias = View | BoxView

_MOST: Final = 2.0
"""A view is not stretched further: where its own total is that far off, it is noise that would grow."""


def total(views: Sequence[AnyView]) -> Answer:
    """How many rows there are: the mean over the views by inverse variance."""
    return Answer.combined([view.total for view in views])


def adjusted(views: Sequence[AnyView]) -> tuple[Adjusted, ...]:
    """The views with their values brought to one total, which all of them then have.

    Every value of a view is multiplied by that total over the view's own, so that what was not negative
    stays so, and parts still add up to the whole. A view that counted nobody stays as it is, and
    no value is more than doubled. One view alone stays as it is.
    """
    if len(views) == 1:
        return (Adjusted(views[0]),)
    agreed = total(views).value
    return tuple(Adjusted(view, _factor(agreed, view.total.value)) for view in views)


@final
@dataclass(frozen=True, eq=False)
class Adjusted:
    """A view whose values are multiplied by a factor.

    Errors and guaranteed bounds of answers stay those of what was released; a guaranteed bound is
    widened to hold the value. The bound on all errors grows by as much as any value may have moved.
    """

    view: AnyView
    factor: float = 1.0

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the view."""
        return self.view.columns

    def count(self, asked: Where) -> Answer:
        """How many rows are in the cells asked for."""
        return self.view.count(asked).adjusted(self.factor)

    def difference(self, added: Where, taken: Where) -> Answer:
        """How many more rows one question counts than another, as one linear question."""
        return self.view.difference(added, taken).adjusted(self.factor)

    def counts(self, asked: Where) -> Answers:
        """How many rows are in each of many ranges or boxes."""
        return self.view.counts(asked).adjusted(self.factor)

    def slice(self, column: str, asked: Where) -> Slice:
        """One column, of the rows that are in the cells asked for of the others."""
        found = self.view.slice(column, asked)
        return found if self.factor == 1.0 else replace(found, axis=_AdjustedAxis(found.axis, self.factor))

    def heat(self, columns: tuple[str, str], bins: object, asked: Where) -> Heat:
        """Bins of two columns, of the rows that are in the cells asked for of the others."""
        found = heat_of(self._together, columns, bins, asked)
        return replace(found, counts=found.counts.adjusted(self.factor))

    def within(self, shape: PublicRegion, asked: Where) -> Answer:
        """How many rows are in a public shape and in the cells asked for."""
        return self._together.within(shape, asked).adjusted(self.factor)

    def error(self, beta: float) -> float:
        """With probability 1 - beta no range, or no box, misses the truth by more."""
        return _moved(self.view.error(beta), self.view.total.value, self.factor)

    @property
    def _together(self) -> BoxView:
        if isinstance(self.view, BoxView):
            return self.view
        rule = "must be of columns that one view has together"
        fix = f"ask for a range: {self.view.column}=(low, high)"
        raise InvalidParameter("region", rule, given=self.view.column, fix=fix)


@final
@dataclass(frozen=True, eq=False)
class _AdjustedAxis:
    """Counts along a column, multiplied by a factor."""

    axis: Along
    factor: float

    @property
    def size(self) -> int:
        return self.axis.size

    @property
    def guarantee(self) -> Guarantee | None:
        return self.axis.guarantee

    @cached_property
    def curve(self) -> Curve:
        return Curve(self.axis.curve.ends, self.axis.curve.counts * self.factor)

    def answer(self, *terms: Term) -> Answer:
        return self.axis.answer(*terms).adjusted(self.factor)

    def counts(self, lows: UInts, highs: UInts) -> Floats:
        return self.axis.counts(lows, highs) * self.factor

    def errors(self, lows: UInts, highs: UInts) -> Floats:
        return self.axis.errors(lows, highs)

    def error(self, beta: float) -> float:
        ends = np.array([0], np.uint64), np.array([self.size - 1], np.uint64)
        return _moved(self.axis.error(beta), float(self.axis.counts(*ends)[0]), self.factor)


def _factor(agreed: float, own: float) -> float:
    return min(_MOST, agreed / own) if agreed > 0 and own > 0 else 1.0


def _moved(reach: float, whole: float, factor: float) -> float:
    """A bound on the errors of all ranges, after their values were multiplied by a factor.

    If none misses the truth by more than the reach, there are truly at most `whole` + reach rows. So no
    value is above `whole` + 2 reach, or further below zero than the reach, and that is what the factor moves.
    """
    return reach if factor == 1.0 else reach + abs(factor - 1.0) * (max(0.0, whole) + 2 * reach)
