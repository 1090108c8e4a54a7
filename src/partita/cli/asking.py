"""Questions put to a release, and its answers in text and as records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

from partita.cli.output import Record
from partita.cli.questions import (
    Cdf,
    Condition,
    Count,
    Difference,
    Equal,
    Histogram,
    Is,
    OneOf,
    Quantile,
    Question,
    Range,
    Unreleased,
    Where,
)
from partita.errors import InvalidParameter
from partita.releases.figures import figure

if TYPE_CHECKING:
    from partita.answer import Answer, Answers
    from partita.releases.release import Release
    from partita.releases.spans import Closed

__all__ = ["Asker", "Reply"]

Pair: TypeAlias = tuple[object, object]

_BINS: Final = 12
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
            Unreleased: _refuse,
        }
        return ways[type(question)](question)

    def _count(self, question: Count) -> Reply:
        answer = self.release.count(_cells(question.where), closed=_closed(question.where))
        return self._number(question, answer)

    def _difference(self, question: Difference) -> Reply:
        sides = [_cells(where) for where in (question.first, question.second)]
        closed = _closed(question.first, question.second)
        return self._number(question, self.release.difference(*sides, closed=closed))

    def _number(self, question: Question, answer: Answer) -> Reply:
        interval, worst = answer.interval(self.confidence), answer.worst(self.beta)
        record = {"value": answer.value, "error": answer.error, **self._bars(interval, worst)}
        shown = (str(question), figure(answer.value), figure(answer.error), _span(interval), _span(worst))
        return Reply([shown], {"question": str(question), **record})

    def _quantile(self, question: Quantile) -> Reply:
        answer = self.release.quantile(question.column, question.share)
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
        values = question.values or self._twentieths(question.column)
        found = self.release.cdf(question.column, list(values))
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

    def _twentieths(self, column: str) -> Sequence[object]:
        shares = [Fraction(step, _STEPS) for step in range(1, _STEPS)]
        return list(dict.fromkeys(answer.value for answer in self.release.quantile(column, shares)))

    def _histogram(self, question: Histogram) -> Reply:
        found = self.release.histogram(question.column, bins=question.bins or _BINS)
        rows = list(zip(found.lows, found.highs, *_columns(found.counts), strict=True))
        shown = [(str(low), str(high), figure(count), figure(error)) for low, high, count, error in rows]
        records = [dict(zip(("low", "high", "count", "error"), row, strict=True)) for row in rows]
        return Reply(
            shown, {"question": str(question), "histogram": records}, ("from", "to", "count", "± error")
        )


def _columns(answers: Answers) -> tuple[list[float], list[float]]:
    return answers.values.tolist(), answers.error.tolist()


def _refuse(question: Unreleased) -> Reply:
    raise InvalidParameter(
        "question",
        "must ask for what was released: sums and means are not in this release",
        given=str(question),
        fix="ask for counts, quantiles, a cdf or a histogram",
    )


def _cells(where: Where) -> dict[str, object]:
    """The conditions as `Release` takes them; values stay text and are read exactly there."""
    return {column: _asked(condition) for column, condition in where.items()}


def _asked(condition: Condition) -> object:
    from partita.domain import Special

    match condition:
        case Range(low=low, high=high):
            return low, high
        case Equal(value):
            return value
        case OneOf(values):
            return frozenset(values)
        case Is(cell):
            return Special.named(cell)


def _closed(*wheres: Where) -> Closed:
    """Which ends of all ranges are in them; one question has one rule for all its columns."""
    ranges = [each for where in wheres for each in where.values() if isinstance(each, Range)]
    lows = {each.low_closed for each in ranges if each.low is not None} or {True}
    highs = {each.high_closed for each in ranges if each.high is not None} or {True}
    if len(lows) > 1 or len(highs) > 1:
        raise InvalidParameter(
            "question",
            "must have the same kind of lower ends, and of upper ends, in all its ranges",
            given="< beside <=, or > beside >=",
            fix="write all of them with <= and >=",
        )
    if lows.pop():
        return "both" if highs.pop() else "left"
    return "right" if highs.pop() else "neither"


def _ends(pair: Pair) -> Record:
    return {"low": pair[0], "high": pair[1]}


def _span(pair: Pair) -> str:
    low, high = (figure(end) if isinstance(end, float) else str(end) for end in pair)
    return f"{low} .. {high}"
