"""Answers of a release as lines of text."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeAlias, final

from partita.asking.asking import Asker
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
from partita.asking.records import Record
from partita.cli.output import with_error
from partita.releases.figures import figure

__all__ = ["Reply", "heads", "reply"]

Line: TypeAlias = Sequence[str]
Shown: TypeAlias = Mapping[str, Any]
"""A record whose entries are known by the question that it answers."""


@final
@dataclass(frozen=True)
class Reply:
    """An answer: lines of text cells, under `heads` if it is more than one line, and a record."""

    lines: Sequence[Line]
    record: Record
    heads: Line = ()


def heads(asker: Asker) -> tuple[str, ...]:
    """What stands above answers of one line."""
    interval, worst = f"{100 * asker.confidence:g}% interval", f"guaranteed, beta {asker.beta:g}"
    return "question", "answer", "± error", interval, worst


def reply(asker: Asker, question: Question) -> Reply:
    """The answer to any question, in text and as a record."""
    record = asker.ask(question)
    if isinstance(question, Summary):
        return Reply([_summary(record)], record, (*heads(asker), "covers"))
    if isinstance(question, HeatMap):
        return _heat_map(question, record)
    lines, above = _WAYS[type(question)](record)
    return Reply(lines, record, above)


def _number(record: Shown) -> tuple[Sequence[Line], Line]:
    bars = _span(record["interval"]), _span(record["worst"])
    return [(record["question"], figure(record["value"]), figure(record["error"]), *bars)], ()


def _quantile(record: Shown) -> tuple[Sequence[Line], Line]:
    bars = _span(record["interval"]), _span(record["worst"])
    return [(record["question"], str(record["value"]), "", *bars)], ()


def _summary(record: Shown) -> Line:
    """A value in units of its column, and what it covers; or that there is none."""
    value, error = record["value"], record["error"]
    shown = ("not determinable", "") if math.isnan(value) else (_measure(value), _measure(error))
    bars = map(_measured, (record["interval"], record["worst"]))
    return record["question"], *shown, *bars, record["covers"]["text"]


def _all_answers(record: Shown) -> tuple[Sequence[Line], Line]:
    rows = (each.values() for each in record["answers"])
    lines = [(label, figure(value), figure(error)) for label, value, error in rows]
    return lines, ("query", "answer", "± error")


def _cdf(record: Shown) -> tuple[Sequence[Line], Line]:
    rows = (each.values() for each in record["cdf"])
    lines = [
        (str(value), f"{100 * share:.2f}%", figure(count), figure(error))
        for value, share, count, error in rows
    ]
    return lines, ("at most", "share", "count", "± error")


def _histogram(record: Shown) -> tuple[Sequence[Line], Line]:
    rows = (each.values() for each in record["histogram"])
    lines = [(str(low), str(high), figure(count), figure(error)) for low, high, count, error in rows]
    return lines, ("from", "to", "count", "± error")


def _heat_map(question: HeatMap, record: Shown) -> Reply:
    """A line for each bin of the first column, and a cell for each of the second."""
    rows = [list(tiles) for _, tiles in groupby(record["histogram"], key=lambda tile: tile["low"][0])]
    lines = [
        (_bin(tiles[0], 0), *(with_error(tile["count"], tile["error"]) for tile in tiles)) for tiles in rows
    ]
    return Reply(lines, record, (" \\ ".join(question.columns), *(_bin(tile, 1) for tile in rows[0])))


_WAYS: Mapping[type, Callable[[Shown], tuple[Sequence[Line], Line]]] = {
    Count: _number,
    Difference: _number,
    Quantile: _quantile,
    Cdf: _cdf,
    Histogram: _histogram,
    AllAnswers: _all_answers,
}


def _bin(tile: Shown, side: int) -> str:
    low, high = tile["low"][side], tile["high"][side]
    return str(low) if low == high else f"{low} .. {high}"


def _measured(ends: Shown) -> str:
    return f"{_measure(ends['low'])} .. {_measure(ends['high'])}"


def _measure(number: float) -> str:
    """A number in units of a column, to six figures."""
    return f"{number:,.0f}" if 1e5 <= abs(number) < 1e15 else f"{number:,.6g}"


def _span(ends: Shown) -> str:
    low, high = (figure(end) if isinstance(end, float) else str(end) for end in (ends["low"], ends["high"]))
    return f"{low} .. {high}"
