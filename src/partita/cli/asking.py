"""Questions put to a release, and its answers in text and as records."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product, starmap
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

from partita.cli.conditions import asked, cells, closed, region
from partita.cli.output import Record, with_error
from partita.cli.questions import (
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
from partita.cli.records import summary_record
from partita.releases.figures import figure

if TYPE_CHECKING:
    from partita.answer import Answer, Answers
    from partita.inference.sums.answers import Ratio, SumAnswer
    from partita.releases.release import Release

__all__ = ["Asker", "Reply"]

Pair: TypeAlias = tuple[object, object]

_BINS: Final = 12
_TILES: Final = 10, 6
"""How many bins two columns have together: rows, and columns that a terminal has room for."""

_STEPS: Final = 20
"""A cdf without values is shown at every twentieth of the rows."""


@final
@dataclass(frozen=True)
class Reply:
    """An answer: lines of text cells, under `heads` if it is more than one line, and a record."""

    lines: Sequence[Sequence[str]]
    record: Record
    heads: Sequence[str] = ()


@final
@dataclass(frozen=True, kw_only=True)
class Asker:
    """Asks one release, and shows error bars at one confidence and one beta."""

    release: Release
    confidence: float
    beta: float

    @property
    def heads(self) -> tuple[str, ...]:
        """What stands above answers of one line."""
        interval, worst = f"{100 * self.confidence:g}% interval", f"guaranteed, beta {self.beta:g}"
        return "question", "answer", "± error", interval, worst

    def ask(self, question: Question) -> Reply:
        """The answer to any question."""
        ways: Mapping[type, Callable[[Any], Reply]] = {
            Count: self._count,
            Difference: self._difference,
            Quantile: self._quantile,
            Cdf: self._cdf,
            Histogram: self._histogram,
            HeatMap: self._heat_map,
            Summary: self._summary,
            AllAnswers: self._all_answers,
        }
        return ways[type(question)](question)

    def _count(self, question: Count) -> Reply:
        within = None if question.half_space is None else region(question.half_space)
        return self._number(question, self.release.count(**asked(question.where), region=within))

    def _difference(self, question: Difference) -> Reply:
        first, second = question.first, question.second
        answer = self.release.difference(cells(first), cells(second), closed=closed(first, second))
        return self._number(question, answer)

    def _number(self, question: Question, answer: Answer) -> Reply:
        interval, worst = answer.interval(self.confidence), answer.worst(self.beta)
        record = {"value": answer.value, "error": answer.error, **self._bars(interval, worst)}
        shown = (str(question), figure(answer.value), figure(answer.error), _span(interval), _span(worst))
        return Reply([shown], {"question": str(question), **record})

    def _summary(self, question: Summary) -> Reply:
        """A sum, a mean or a variance, and what values it covers."""
        asking: Callable[..., SumAnswer | Ratio] = getattr(self.release, question.what)
        answer = asking(question.column, **asked(question.where))
        interval, worst = answer.interval(self.confidence), answer.worst(self.beta)
        shown = str(question), *_measures(answer.value, answer.error), *map(_measured, (interval, worst))
        record = {"question": str(question), **summary_record(answer), **self._bars(interval, worst)}
        return Reply([(*shown, answer.covers.text)], record, (*self.heads, "covers"))

    def _all_answers(self, question: AllAnswers) -> Reply:
        answers = self.release.answers()
        rows = list(zip(self.release.labels(), *_columns(answers), strict=True))
        shown = [(label, figure(value), figure(error)) for label, value, error in rows]
        records = [dict(zip(("query", "value", "error"), row, strict=True)) for row in rows]
        return Reply(shown, {"question": str(question), "answers": records}, ("query", "answer", "± error"))

    def _quantile(self, question: Quantile) -> Reply:
        answer = self.release.quantile(question.column, question.share, **asked(question.where))
        interval, worst = answer.interval(self.confidence), answer.worst(self.beta)
        record = {
            "question": str(question),
            "value": answer.value,
            **self._bars(interval, worst),
            "ranks": _ends(answer.rank_interval(self.confidence)),
        }
        return Reply([(str(question), str(answer.value), "", _span(interval), _span(worst))], record)

    def _bars(self, interval: Pair, worst: Pair) -> Record:
        return {
            "interval": {"confidence": self.confidence, **_ends(interval)},
            "worst": {"beta": self.beta, **_ends(worst)},
        }

    def _cdf(self, question: Cdf) -> Reply:
        values = question.values or self._twentieths(question)
        found = self.release.cdf(question.column, list(values), **asked(question.where))
        columns = (found.values, found.fractions.tolist(), *_columns(found.counts))
        rows = list(zip(*columns, strict=True))
        shown = [
            (str(value), f"{100 * share:.2f}%", figure(count), figure(error))
            for value, share, count, error in rows
        ]
        records = [dict(zip(("value", "share", "count", "error"), row, strict=True)) for row in rows]
        return Reply(
            shown, {"question": str(question), "cdf": records}, ("at most", "share", "count", "± error")
        )

    def _twentieths(self, question: Cdf) -> Sequence[object]:
        shares = [Fraction(step, _STEPS) for step in range(1, _STEPS)]
        found = self.release.quantile(question.column, shares, **asked(question.where))
        return list(dict.fromkeys(answer.value for answer in found))

    def _histogram(self, question: Histogram) -> Reply:
        bins = question.bins or _BINS
        found = self.release.histogram(question.column, bins=bins, **asked(question.where))
        rows = list(zip(found.lows, found.highs, *_columns(found.counts), strict=True))
        shown = [(str(low), str(high), figure(count), figure(error)) for low, high, count, error in rows]
        records = [dict(zip(("low", "high", "count", "error"), row, strict=True)) for row in rows]
        return Reply(
            shown, {"question": str(question), "histogram": records}, ("from", "to", "count", "± error")
        )

    def _heat_map(self, question: HeatMap) -> Reply:
        bins = question.bins or _TILES
        found = self.release.histogram(*question.columns, bins=bins, **asked(question.where))
        down, across = (list(zip(*ends, strict=True)) for ends in zip(found.lows, found.highs, strict=True))
        rows = zip(down, found.counts.values.tolist(), found.counts.error.tolist(), strict=True)
        shown = [(_bin(ends), *map(with_error, counts, errors)) for ends, counts, errors in rows]
        tiles = zip(product(down, across), *_columns(found.counts), strict=True)
        heads = (" \\ ".join(question.columns), *map(_bin, across))
        return Reply(shown, {"question": str(question), "histogram": list(starmap(_tile, tiles))}, heads)


def _columns(answers: Answers) -> tuple[list[float], list[float]]:
    return answers.values.ravel().tolist(), answers.error.ravel().tolist()


def _bin(ends: Pair) -> str:
    low, high = ends
    return str(low) if low == high else f"{low} .. {high}"


def _tile(ends: tuple[Pair, Pair], count: float, error: float) -> Record:
    """A bin of two columns; low and high are a pair each, a value for each column."""
    low, high = zip(*ends, strict=True)
    return {"low": low, "high": high, "count": count, "error": error}


def _measures(value: float, error: float) -> tuple[str, str]:
    """A value in units of its column and its error, or that there is none."""
    return ("not determinable", "") if math.isnan(value) else (_measure(value), _measure(error))


def _measured(pair: tuple[float, float]) -> str:
    return " .. ".join(map(_measure, pair))


def _measure(number: float) -> str:
    """A number in units of a column, to six figures."""
    return f"{number:,.0f}" if 1e5 <= abs(number) < 1e15 else f"{number:,.6g}"


def _ends(pair: Pair) -> Record:
    return {"low": pair[0], "high": pair[1]}


def _span(pair: Pair) -> str:
    low, high = (figure(end) if isinstance(end, float) else str(end) for end in pair)
    return f"{low} .. {high}"
