"""What answers were read from: questions to releases, and which of their noise is the same."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, final

from partita.answer import Answer, Reading
from partita.domain.base import Special
from partita.frames import name_ends
from partita.lazy import cached_property
from partita.public.axis.base import is_single
from partita.public.conditions import OneOf, Range, Where

if TYPE_CHECKING:
    from partita.public.release import Release
    from partita.public.views import ScaledView


@final
@dataclass(frozen=True, eq=False)
class ReleaseReading:
    """A question to a release. If it is a count, `view` is the view that counts it, with its `number`.

    Answers of different releases have independent noise, and so have those of different views of one. Of two
    counts of one view the covariance follows from the errors of both and of their difference, which is one
    question. Nothing is known of how sums, means and counts of regions go with others of their release.
    """

    release: Release
    spread: Callable[[], float]
    view: ScaledView | None = None
    number: int = 0
    where: Where = field(default_factory=dict)

    @cached_property
    def variance(self) -> float:
        """Of the noise in the answer."""
        return self.spread() ** 2

    def covariance(self, other: Reading) -> float | None:
        """With the noise of another answer; None if it is not known."""
        if other is self:
            return self.variance
        if not isinstance(other, ReleaseReading):
            return None
        if not self.release.is_same(other.release):
            return 0.0
        if self.view is None or other.view is None:
            return None
        if self.number != other.number:
            return 0.0
        apart = self.view.difference(self.where, other.where).error ** 2
        most = math.sqrt(self.variance * other.variance)
        return min(most, max(-most, (self.variance + other.variance - apart) / 2))

    def difference(self, other: Reading) -> Answer | None:
        """What this answer is less the other, as one question, if both are counts of one view."""
        if not isinstance(other, ReleaseReading) or self.view is None or other.view is None:
            return None
        if self.number != other.number or not self.release.is_same(other.release):
            return None
        return self.view.difference(self.where, other.where)


@final
@dataclass(frozen=True)
class QuestionRows:
    """Conditions that hold arrays of values, as a question for each row of the arrays."""

    conditions: Where
    rows: int

    def __call__(self, row: int) -> dict[str, object]:
        """The conditions of one row."""
        return {column: self._pick(value, row) for column, value in self._listed.items()}

    def keys(self) -> dict[str, Sequence[Any]]:
        """What was asked, column by column: the values, or the ends of ranges; an open end is None."""
        found: dict[str, Sequence[Any]] = {}
        for column, value in self._listed.items():
            picked: list[Any] = [self._pick(value, row) for row in range(self.rows)]
            if isinstance(value, Range):
                found |= name_ends(column, [each.low for each in picked], [each.high for each in picked])
            else:
                is_set = isinstance(value, OneOf)
                found[column] = [" or ".join(map(str, each.values)) if is_set else each for each in picked]
        return found

    @cached_property
    def _listed(self) -> dict[str, object]:
        """The conditions with lists for arrays."""
        return {
            column: replace(value, low=_to_list(value.low), high=_to_list(value.high))
            if isinstance(value, Range)
            else value
            if isinstance(value, OneOf | Special)
            else _to_list(value)
            for column, value in self.conditions.items()
        }

    def _pick(self, value: object, row: int) -> object:
        if isinstance(value, Range):
            return replace(value, low=_entry(value.low, row), high=_entry(value.high, row))
        return _entry(value, row)


def _to_list(value: Any) -> object:
    """An array as a list of plain values, in which what is missing is None; one value as it is."""
    if is_single(value):
        return value
    if isinstance(value, list | tuple):
        return [None if each != each else each for each in value]
    import pyarrow

    return pyarrow.array(value, from_pandas=True).to_pylist()


def _entry(value: object, row: int) -> object:
    """The entry of a row; a single value goes with all rows."""
    return value[row if len(value) > 1 else 0] if isinstance(value, list) else value
