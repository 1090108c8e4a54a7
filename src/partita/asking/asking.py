"""Questions put to a release, and its answers as records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product, starmap
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

from partita.asking.conditions import asked, cells, closed, region
from partita.asking.questions import (
    AllAnswers,
    Cdf,
    Count,
    Difference,
    HeatMap,
    Histogram,
    Quantile,
    Question,
    Summary,
)
from partita.asking.records import Record, summary_record

if TYPE_CHECKING:
    from partita.answer import Answer, Answers
    from partita.inference.sums.answers import Ratio, SumAnswer
    from partita.releases.release import Release

__all__ = ["Asker"]

Pair: TypeAlias = tuple[object, object]

_BINS: Final = 12
_TILES: Final = 10, 6
"""How many bins two columns have together: rows, and columns that a terminal has room for."""

_STEPS: Final = 20
"""A cdf without values is shown at every twentieth of the rows."""


@final
@dataclass(frozen=True, kw_only=True)
class Asker:
    """Asks one release, with intervals at one confidence, and guaranteed bounds at one beta, if any."""

    release: Release
    confidence: float
    beta: float | None

    def ask(self, question: Question) -> Record:
        """The answer to any question, with the question in the words of the grammar."""
        ways: Mapping[type, Callable[[Any], Record]] = {
            Count: self._count,
            Difference: self._difference,
            Quantile: self._quantile,
            Cdf: self._cdf,
            Histogram: self._histogram,
            HeatMap: self._heat_map,
            Summary: self._summary,
            AllAnswers: self._all_answers,
        }
        return {"question": str(question), **ways[type(question)](question)}

    def _count(self, question: Count) -> Record:
        within = None if question.half_space is None else region(question.half_space)
        return self._number(self.release.count(**asked(question.where), region=within))

    def _difference(self, question: Difference) -> Record:
        first, second = question.first, question.second
        return self._number(
            self.release.difference(cells(first), cells(second), closed=closed(first, second))
        )

    def _number(self, answer: Answer) -> Record:
        return {"value": answer.value, "error": answer.error, **self._bars(answer.interval, answer.worst)}

    def _summary(self, question: Summary) -> Record:
        """A sum, a mean or a variance, and what values it covers."""
        asking: Callable[..., SumAnswer | Ratio] = getattr(self.release, question.what)
        answer = asking(question.column, **asked(question.where))
        return {**summary_record(answer), **self._bars(answer.interval, answer.worst)}

    def _all_answers(self, question: AllAnswers) -> Record:
        answers = self.release.answers()
        return {"answers": _rows(("query", "value", "error"), self.release.labels(), *_columns(answers))}

    def _quantile(self, question: Quantile) -> Record:
        answer = self.release.quantile(question.column, question.share, **asked(question.where))
        return {
            "value": answer.value,
            **self._bars(answer.interval, answer.worst),
            "ranks": _ends(answer.rank_interval(self.confidence)),
        }

    def _bars(self, interval: Callable[[float], Pair], worst: Callable[[float], Pair]) -> Record:
        bars = {"interval": {"confidence": self.confidence, **_ends(interval(self.confidence))}}
        if self.beta is None:
            return bars
        return {**bars, "worst": {"beta": self.beta, **_ends(worst(self.beta))}}

    def _cdf(self, question: Cdf) -> Record:
        values = question.values or self._twentieths(question)
        found = self.release.cdf(question.column, list(values), **asked(question.where))
        columns = found.values, found.fractions.tolist(), *_columns(found.counts)
        return {"cdf": _rows(("value", "share", "count", "error"), *columns)}

    def _twentieths(self, question: Cdf) -> Sequence[object]:
        shares = [Fraction(step, _STEPS) for step in range(1, _STEPS)]
        found = self.release.quantile(question.column, shares, **asked(question.where))
        return list(dict.fromkeys(answer.value for answer in found))

    def _histogram(self, question: Histogram) -> Record:
        bins = question.bins or _BINS
        found = self.release.histogram(question.column, bins=bins, **asked(question.where))
        columns = found.lows, found.highs, *_columns(found.counts)
        return {"histogram": _rows(("low", "high", "count", "error"), *columns)}

    def _heat_map(self, question: HeatMap) -> Record:
        bins = question.bins or _TILES
        found = self.release.histogram(*question.columns, bins=bins, **asked(question.where))
        sides = (zip(*ends, strict=True) for ends in zip(found.lows, found.highs, strict=True))
        tiles = zip(product(*sides), *_columns(found.counts), strict=True)
        return {"histogram": list(starmap(_tile, tiles))}


def _columns(answers: Answers) -> tuple[list[float], list[float]]:
    return answers.values.ravel().tolist(), answers.error.ravel().tolist()


def _rows(names: Sequence[str], *columns: Sequence[object]) -> list[Record]:
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _tile(ends: tuple[Pair, Pair], count: float, error: float) -> Record:
    """A bin of two columns; low and high are a pair each, a value for each column."""
    low, high = zip(*ends, strict=True)
    return {"low": low, "high": high, "count": count, "error": error}


def _ends(pair: Pair) -> Record:
    return {"low": pair[0], "high": pair[1]}
