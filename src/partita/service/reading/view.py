"""All that is seen of one column, or of two: bins with bars, a distribution, quantiles, and a selection.

Conditions on other columns say which rows are seen. Conditions on the columns that are shown are the
selection: it is counted, and beside a picture of two columns each is shown for what is selected of the other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from partita.answer import Answers
from partita.asking.questions import COUNT
from partita.asking.records import Record, plain
from partita.cached import cached_property
from partita.conditions import Range, Where
from partita.domain import Domain, Special
from partita.errors import InvalidParameter
from partita.releases.bins import cells_of_bins, even_bins
from partita.releases.cdf import cdf
from partita.releases.release import Release
from partita.service.reading.answering import Answering, deviations
from partita.service.reading.asked import Bars
from partita.service.reading.work import Predicted

__all__ = ["Axis", "View"]

_QUANTILES: Final = (0.05, 0.25, 0.5, 0.75, 0.95)
_MOST_POINTS: Final = 200


@final
@dataclass(frozen=True, eq=False)
class Axis:
    """Bins of a column within a window of its cells; where they lie follows from the domain alone."""

    column: str
    domain: Domain
    first: int
    size: int
    bins: int

    @staticmethod
    def of(release: Release, column: str, window: tuple[str | None, str | None], bins: int) -> Axis:
        """The bins between two values, or of the whole column."""
        domain = release.slice(column).domain
        low, high = (_cell(domain, end, name) for end, name in zip(window, ("from", "to"), strict=True))
        first, last = low or 0, domain.size - 1 if high is None else high
        if first > last:
            raise InvalidParameter("from", "must not lie behind to", given=window[0], fix="swap the two ends")
        size = last - first + 1
        return Axis(column, domain, first, size, even_bins(size, bins))

    @cached_property
    def ends(self) -> tuple[list[Any], list[Any]]:
        """The first and the last value of each bin."""
        lows, highs = cells_of_bins(self.size, self.bins)
        start = np.uint64(self.first)
        return list(self.domain.decode(lows + start)), list(self.domain.decode(highs + start))

    def __len__(self) -> int:
        return len(self.ends[0])

    def record(self) -> Record:
        """The bins in text, as questions read them."""
        lows, highs = (list(map(_text, ends)) for ends in self.ends)
        return {
            "column": self.column,
            "kind": self.domain.to_spec()["kind"],
            "lows": lows,
            "highs": highs,
            "low": lows[0],
            "high": highs[-1],
            "size": str(self.size),
        }


@final
@dataclass(frozen=True, eq=False)
class View:
    """A release, what is shown of it, and at which confidence."""

    release: Release
    axes: Sequence[Axis]
    where: Where
    bars: Bars
    answering: Answering

    def __post_init__(self) -> None:
        if len(self._shown) < len(self.axes):
            raise InvalidParameter(
                "y", "must be another column than x", given=self.axes[0].column, fix="leave it out"
            )

    def work(self, predicted: Predicted) -> int:
        """How much work it is to show it; 0 if the release cannot, which it will say itself."""
        try:
            return self._work(predicted)
        except InvalidParameter:
            return 0

    def _work(self, predicted: Predicted) -> int:
        columns, bins = [axis.column for axis in self.axes], [axis.bins for axis in self.axes]
        where, shown = self.where, self.filter
        work = predicted.rows(columns, shown, math.prod(bins))
        work += predicted.count(where) + predicted.count(shown)
        if len(columns) == 1:
            specials = len(self.axes[0].domain.specials) * predicted.count(shown, more=(columns[0],))
            line = predicted.cdf(columns[0], shown, min(bins[0], _MOST_POINTS))
            return work + line + predicted.quantile(columns[0], shown) + specials
        beside = ({column: each for column, each in where.items() if column != shown} for shown in columns)
        return work + sum(
            predicted.rows((column,), given, number)
            for column, number, given in zip(columns, bins, beside, strict=True)
        )

    def record(self) -> Record:
        """What is seen, as one record."""
        counts = self._counts(self.axes, self.filter)
        return {
            "axes": [axis.record() for axis in self.axes],
            **self._barred(counts),
            "selection": {"ranges": self._ranges(), "count": self._count(self.where)},
            "total": self._count(self.filter),
            **(self._alone() if len(self.axes) == 1 else self._together()),
        }

    def rows(self) -> tuple[list[str], list[tuple[object, ...]]]:
        """What is seen, as a table: the ends of each bin, its count, its error and its bar."""
        counts, z = self._counts(self.axes, self.filter), deviations(self.bars.confidence)
        places = np.indices([len(axis) for axis in self.axes]).reshape(len(self.axes), -1)
        ends = [
            [axis.ends[side][i] for i in place]
            for axis, place in zip(self.axes, places, strict=True)
            for side in (0, 1)
        ]
        numbers = (
            counts.values.ravel().tolist(),
            counts.error.ravel().tolist(),
            (z * counts.error).ravel().tolist(),
        )
        heads = [f"{axis.column} {side}" for axis in self.axes for side in ("from", "to")]
        return [*heads, "count", "error", "half"], list(zip(*ends, *numbers, strict=True))

    @cached_property
    def filter(self) -> Where:
        """Conditions on columns that are not shown."""
        return {column: condition for column, condition in self.where.items() if column not in self._shown}

    @cached_property
    def selection(self) -> Where:
        """Conditions on columns that are shown."""
        return {column: condition for column, condition in self.where.items() if column in self._shown}

    @property
    def _shown(self) -> set[str]:
        return {axis.column for axis in self.axes}

    def _counts(self, axes: Sequence[Axis], where: Where) -> Answers:
        """How many rows each bin holds, or each pair of bins."""
        shape = [len(axis) for axis in axes]
        places = np.indices(shape).reshape(len(axes), -1)
        bins = {
            axis.column: tuple([ends[i] for i in place] for ends in axis.ends)
            for axis, place in zip(axes, places, strict=True)
        }
        found = self.release.counts({**where, **bins})
        return Answers(found.values.reshape(shape), lambda: found.error.reshape(shape))

    def _barred(self, counts: Answers) -> Record:
        half = deviations(self.bars.confidence) * counts.error
        small = ~(half < np.abs(counts.values))
        return {
            "values": counts.values.tolist(),
            "error": counts.error.tolist(),
            "half": half.tolist(),
            "small": small.tolist(),
        }

    def _count(self, where: Where) -> Record:
        return self.answering.answer(self.release, COUNT(where=where), self.bars)

    def _ranges(self) -> Record:
        """The selection as far as it is ranges, which a brush can show."""
        return {
            column: {"low": range_.low, "high": range_.high}
            for column, range_ in self.selection.items()
            if isinstance(range_, Range)
        }

    def _alone(self) -> Record:
        [axis] = self.axes
        return {
            "cdf": self._cdf(axis),
            "quantiles": self._quantiles(axis),
            "specials": self._specials(axis),
            "conditional": None,
        }

    def _together(self) -> Record:
        """Each column by itself, given what is selected of the other."""
        beside = {}
        for name, axis, other in zip("xy", self.axes, reversed(self.axes), strict=True):
            given = {column: each for column, each in self.where.items() if column != axis.column}
            beside[name] = {
                "of": axis.column,
                "given": other.column,
                **self._barred(self._counts([axis], given)),
            }
        return {"cdf": None, "quantiles": None, "specials": None, "conditional": beside}

    def _cdf(self, axis: Axis) -> Record:
        """Shares with a band, at the last values of the bins, or of some of them."""
        highs = axis.ends[1]
        step = -(-len(highs) // _MOST_POINTS)
        at = highs[::-step][::-1]
        line = self.release.slice(axis.column, self.filter)
        found, total = cdf(line, at), line.axis.curve.total
        half = deviations(self.bars.confidence) * found.counts.error / total if total > 0 else np.inf
        return {
            "at": list(map(_text, at)),
            "share": found.fractions.tolist(),
            "low": np.clip(found.fractions - half, 0, 1).tolist(),
            "high": np.clip(found.fractions + half, 0, 1).tolist(),
        }

    def _quantiles(self, axis: Axis) -> list[Record]:
        found = self.release.quantile(axis.column, list(_QUANTILES), self.filter)
        rows = ((float(each.q), each.value, *each.interval(self.bars.confidence)) for each in found)
        return [
            {"q": q, "value": _text(value), "low": _text(low), "high": _text(high)}
            for q, value, low, high in rows
        ]

    def _specials(self, axis: Axis) -> list[Record]:
        """What is beside the axis: of all rows, or of those seen where a view has the columns together."""
        z = deviations(self.bars.confidence)
        counts = {
            name: self.release.count({**self.filter, axis.column: Special.named(name)})
            for name in axis.domain.specials
        }
        return [
            {"name": name, "value": answer.value, "error": answer.error, "half": z * answer.error}
            for name, answer in counts.items()
        ]


def _cell(domain: Domain, end: str | None, name: str) -> int | None:
    """The cell of one end of a window; None where it is open or beyond the declared bounds."""
    if end is None:
        return None
    place = domain.locate(end, name=name)
    return place.cell if place.special == Special.ORDINARY else None


def _text(value: object) -> str:
    return str(plain(value))
