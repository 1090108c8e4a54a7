"""Answers and releases as records, which become JSON or lines of text."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum, auto
from fractions import Fraction
from itertools import groupby, product
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

from partita.html import ends, half_width, margin, round_within, with_margin

if TYPE_CHECKING:
    from partita.answer import Answer, Answers
    from partita.public.file_entries import Published
    from partita.public.groups import Groups
    from partita.public.questions import Question
    from partita.public.regression import RegressionLine
    from partita.public.release import Release
    from partita.public.results import Quantile
    from partita.public.sums.base import Ratio, SumAnswer
    from partita.public.sums.view import SumView
    from partita.public.wanted import ReleasedBounds, Share

Record: TypeAlias = Mapping[str, object]
Shown: TypeAlias = Mapping[str, Any]
"""A record whose entries are known by the question that it answers."""

Line: TypeAlias = Sequence[str]

_EACH: Final = 0.975  # of two intervals that hold together with 95%


def to_plain(value: object) -> object:
    """A value as JSON can hold it: exact numbers and dates as text, numbers that are not finite as null.

    >>> to_plain({"epsilon": Fraction(1, 3), "high": math.inf})
    {'epsilon': '1/3', 'high': None}
    """
    if isinstance(value, Mapping):
        return {str(key): to_plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(entry) for entry in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (Fraction, Decimal, date)):
        return value.isoformat() if isinstance(value, date) else str(value)
    return value


# --- answers -----------------------------------------------------------------------------------


@final
@dataclass(frozen=True)
class TextRecord:
    """An answer as lines of text, under heads of its own; an answer of one line may do without.

    `basis` says what it rests on, as it does for `Answer`, and `note` what else is to be known.
    """

    lines: Sequence[Line]
    heads: Line = ()
    basis: str = ""
    note: str = ""


class Result(ABC):
    """What becomes of the answer to a kind of question."""

    @abstractmethod
    def record(self, found: Any, confidence: float, beta: float | None) -> Record:
        """The answer as a record, with guaranteed bounds unless beta is None."""

    @abstractmethod
    def text(self, question: Question, record: Shown) -> TextRecord:
        """The record, which has guaranteed bounds, as lines for people."""


@final
class Number(Result):
    """A count or a difference of counts."""

    def record(self, found: Answer, confidence: float, beta: float | None) -> Record:
        """Value, error, basis and bars."""
        numbers = {"value": found.value, "error": found.error}
        return {**numbers, **basis_record(found), **_bars(found, confidence, beta), **_note_record(found)}

    def text(self, question: Question, record: Shown) -> TextRecord:
        """One line."""
        line = record["question"], *_shown(record), *_ends_text(record)
        return TextRecord([line], basis=record.get("basis", ""), note=record.get("note", ""))


@final
class Summary(Result):
    """A sum, a mean, a variance or a standard deviation, and what values it covers."""

    def record(self, found: SumAnswer | Ratio, confidence: float, beta: float | None) -> Record:
        """Value, error, what it covers, and bars."""
        return {**summary_record(found), **_bars(found, confidence, beta)}

    def text(self, question: Question, record: Shown) -> TextRecord:
        """A value in units of its column, and what it covers; or that there is none."""
        interval, worst = _both(record)
        heads = (*line_heads(interval["confidence"], worst["beta"]), "covers")
        line = record["question"], *_shown(record), *_ends_text(record), record["covers"]["text"]
        return TextRecord([line], heads)


@final
class Measure(Result):
    """A share or a correlation: a number that is not one of rows."""

    def record(self, found: Share | Answer, confidence: float, beta: float | None) -> Record:
        """Value, error, basis, bars, and what else is to be known."""
        numbers = {"value": found.value, "error": found.error}
        return {**numbers, **basis_record(found), **_bars(found, confidence, beta), **_note_record(found)}

    def text(self, question: Question, record: Shown) -> TextRecord:
        """One line, or that there is no value."""
        line = record["question"], *_shown(record), *_ends_text(record)
        return TextRecord([line], basis=record.get("basis", ""), note=record.get("note", ""))


@final
class BoundsValue(Result):
    """Two values between which nearly all rows lie, and by how many rows they may be off."""

    def record(self, found: ReleasedBounds, confidence: float, beta: float | None) -> Record:
        """Both values, the rows beyond them and in all, and the domain that they make."""
        rows = {"below": found.below, "above": found.above, "rows": found.rows}
        return {
            "low": found.low,
            "high": found.high,
            "determinable": found.determinable,
            **_cells(rows),
            "rank_error": found.rank_error(1 - confidence),
            "domain": found.domain().to_spec(),
        }

    def text(self, question: Question, record: Shown) -> TextRecord:
        """One line, under heads of its own."""
        heads = "question", "low", "high", "rows below", "rows above", "of rows", "± rows at each end"
        ends = [str(record[end]) for end in ("low", "high")]
        rows = [_figure(record[name]["value"]) for name in ("below", "above", "rows")]
        basis = "" if record["determinable"] else "declared bounds: noise hides all rows"
        return TextRecord([(record["question"], *ends, *rows, _figure(record["rank_error"]))], heads, basis)


@final
class QuantileValue(Result):
    """A value of a column, and between which values and ranks it lies."""

    def record(self, found: Quantile, confidence: float, beta: float | None) -> Record:
        """Value, basis, bars and ranks; of a quantile alone, by how many rows its rank may be off."""
        ranks = _ends(found.rank_interval(confidence))
        bars = _bars(found, confidence, beta)
        alone = getattr(found, "rank_error", None)
        rows = {} if alone is None else {"rank_error": alone(1 - confidence)}
        return {"value": found.value, **rows, **basis_record(found), **bars, "ranks": ranks}

    def text(self, question: Question, record: Shown) -> TextRecord:
        """One line; the error of a value is its interval."""
        rows = f"{_figure(record['rank_error'])} rows of its rank" if "rank_error" in record else ""
        line = record["question"], str(record["value"]), rows, *_spans(record)
        heads = line_heads(record["interval"]["confidence"], record["worst"]["beta"])
        return TextRecord([line], () if question.kind.name == "quantile" else heads, record.get("basis", ""))


class Cell(Enum):
    """What stands in a column of a table."""

    VALUE = auto()
    """Of a column of the release."""
    PAIR = auto()
    """A value of each of two columns."""
    NUMBER = auto()
    SHARE = auto()
    TEXT = auto()


@final
@dataclass(frozen=True)
class ColumnResult:
    """A column of a table: its name in records, what it holds, and its head in text."""

    name: str
    cell: Cell
    head: str

    def text(self, row: Shown) -> str:
        """A cell of a row as text."""
        if self.cell is Cell.SHARE:
            return f"{100 * row[self.name]:.2f}%"
        if self.cell is Cell.NUMBER:
            return _with_margin(row)[self.name == "error"]
        return str(row[self.name])


@dataclass(frozen=True)
class TableResult(Result):
    """Rows, each with the error of its number; `rows` takes the answer apart.

    `name` is the entry of the record, `title` and `row` say what the answer and a row of it are. A
    `cumulative` table follows the distribution of its column.
    """

    name: str
    title: str
    row: str
    columns: tuple[ColumnResult, ...]
    rows: Callable[[Any], Iterable[Sequence[object]]]
    cumulative: bool = False

    def record(self, found: Any, confidence: float, beta: float | None) -> Record:
        """What all rows rest on, and the rows, without bars."""
        names = [column.name for column in self.columns]
        rows = [dict(zip(names, row, strict=True)) for row in self.rows(found)]
        return {**basis_record(found), self.name: rows}

    def text(self, question: Question, record: Shown) -> TextRecord:
        """A line for each row."""
        lines = [[column.text(row) for column in self.columns] for row in record[self.name]]
        return TextRecord(lines, tuple(column.head for column in self.columns), record.get("basis", ""))


@final
class Tiles(TableResult):
    """Bins of two columns."""

    def text(self, question: Question, record: Shown) -> TextRecord:
        """A line for each bin of the first column, and a cell for each of the second."""
        rows = [list(tiles) for _, tiles in groupby(record[self.name], key=lambda tile: tile["low"][0])]
        lines = [(_bin(tiles[0], 0), *(" ± ".join(_with_margin(tile)) for tile in tiles)) for tiles in rows]
        heads = f"{question['x']} \\ {question['y']}", *(_bin(tile, 1) for tile in rows[0])
        return TextRecord(lines, heads, record.get("basis", ""))


@final
class GroupedResult(Result):
    """A statistic of each group, with its interval; guaranteed bounds are those of a single question."""

    def record(self, found: Groups, confidence: float, beta: float | None) -> Record:
        """The keys, the groups, and what their order can support.

        Without beta, intervals of counts are those of a batch: so many errors to either side.
        """
        quick = beta is None and found.statistic == "count"
        notes = {"ranking": found.ranking, "about": found.about}
        return {
            "by": tuple(key.name for key in found.keys),
            "statistic": found.statistic,
            "confidence": confidence,
            "number": found.total,
            **{name: note for name, note in notes.items() if note},
            "groups": [found.record(place, confidence, quick=quick) for place in range(len(found))],
        }

    def text(self, question: Question, record: Shown) -> TextRecord:
        """A line for each group, and what their order can support."""
        lines = []
        for row in record["groups"]:
            names = ["(null)" if name is None else str(name) for name in row["key"]]
            lines.append([*names, *_group_line(row), row.get("basis", "")])
        interval = f"{100 * record['confidence']:g}% interval"
        heads = [*record["by"], record["statistic"], "±", interval, "basis"]
        if not any(line[-1] for line in lines):
            heads, lines = heads[:-1], [line[:-1] for line in lines]
        rest = record["number"] - len(lines)
        notes = [f"{rest:,} more groups"] * (rest > 0)
        notes += [record[name] for name in ("ranking", "about") if name in record]
        return TextRecord(lines, heads, note="\n".join(notes))


@final
class LineResult(Result):
    """A line that fits a column by another: slope and intercept, each as a group has its number."""

    def record(self, found: RegressionLine, confidence: float, beta: float | None) -> Record:
        """Both numbers with their intervals. Nothing is guaranteed, whatever beta is."""
        terms = []
        for name, answer in found.terms.items():
            low, high = answer.interval(confidence)
            numbers = {"value": answer.value, "error": answer.error, "low": low, "high": high}
            terms.append({"key": [name], **numbers, **basis_record(answer)})
        about = {"about": found.note} if found.note else {}
        head = {"by": ("term",), "statistic": found.column, "confidence": confidence, "number": len(terms)}
        return {**head, **about, "groups": terms}

    def text(self, question: Question, record: Shown) -> TextRecord:
        """A line for each number, and over which values it is."""
        return GROUPS.text(question, record)


def _group_line(row: Shown) -> Line:
    """The value of a group, half of its interval where that is symmetric, and the interval."""
    value, interval = row["value"], (row["low"], row["high"])
    if isinstance(value, float) and not math.isnan(value):
        half = half_width(value, interval)
        shown = round_within(value, interval, row.get("error", math.inf))
        return shown, "" if half is None else margin(half), ends(interval, " .. ")
    return "not determinable" if isinstance(value, float) else str(value), "", " .. ".join(map(str, interval))


def line_heads(confidence: float, beta: float) -> Line:
    """What stands above answers of one line."""
    sure = f"{100 * confidence:g}%"
    return "question", "answer", f"± {sure}", f"{sure} interval", f"guaranteed, beta {beta:g}"


def basis_record(found: object) -> Record:
    """What an answer rests on, as an entry; none where every answer is measured."""
    basis = getattr(found, "basis", "")
    return {"basis": basis} if basis else {}


def _note_record(found: object) -> Record:
    """What is to be known beside a number, or why there is none."""
    note = getattr(found, "note", "") or getattr(found, "about", "")
    return {"note": note} if note else {}


def _bars(
    found: Answer | SumAnswer | Ratio | Quantile | Share, confidence: float, beta: float | None
) -> Record:
    held = min(confidence, getattr(found, "most_confidence", confidence))
    bars = {"interval": {"confidence": held, **_ends(found.interval(held))}}
    return bars if beta is None else {**bars, "worst": {"beta": beta, **_ends(found.worst(beta))}}


def _both(record: Shown) -> tuple[Shown, Shown]:
    return record["interval"], record["worst"]


def _ends(pair: tuple[object, object]) -> Record:
    return {"low": pair[0], "high": pair[1]}


def _shown(record: Shown) -> Line:
    """The value, and the half-width of its interval where that is symmetric."""
    value, interval = record["value"], (record["interval"]["low"], record["interval"]["high"])
    if math.isnan(value):
        return "not determinable", ""
    half = half_width(value, interval)
    return round_within(value, interval, record["error"]), "" if half is None else margin(half)


def _ends_text(record: Shown) -> Iterable[str]:
    """Both bars of a number, with the digits that its error supports."""
    return (ends((bars["low"], bars["high"]), error=record["error"]) for bars in _both(record))


def _with_margin(row: Shown) -> Line:
    """The number of a row of a table, and the half-width of its 95% interval."""
    return with_margin(row["count" if "count" in row else "value"], row["error"])


def _spans(record: Shown) -> Iterable[str]:
    """Both bars of an answer of one line."""
    for bars in _both(record):
        shown = (_figure(end) if isinstance(end, float) else str(end) for end in (bars["low"], bars["high"]))
        yield " .. ".join(shown)


def _figure(number: float) -> str:
    from partita.public.base import figure  # here, because the command line parses questions without NumPy

    return figure(number)


def _bin(tile: Shown, side: int) -> str:
    low, high = tile["low"][side], tile["high"][side]
    return str(low) if low == high else f"{low} .. {high}"


def _numbers(answers: Answers) -> tuple[list[float], list[float]]:
    return answers.values.ravel().tolist(), answers.error.ravel().tolist()


_COUNTED: Final = (ColumnResult("count", Cell.NUMBER, "count"), ColumnResult("error", Cell.NUMBER, "± 95%"))

NUMBER: Final = Number()
SUMMARY: Final = Summary()
MEASURE: Final = Measure()
BOUNDS: Final = BoundsValue()
QUANTILE: Final = QuantileValue()
GROUPS: Final = GroupedResult()
LINE: Final = LineResult()
CDF: Final = TableResult(
    "cdf",
    "A distribution at some values.",
    "How many rows are at most a value.",
    (ColumnResult("value", Cell.VALUE, "at most"), ColumnResult("share", Cell.SHARE, "share"), *_COUNTED),
    lambda found: zip(found.values, found.fractions.tolist(), *_numbers(found.counts), strict=True),
    cumulative=True,
)
BINS: Final = TableResult(
    "histogram",
    "Counts in bins.",
    "From one value to another, both in it, and how many rows.",
    (ColumnResult("low", Cell.VALUE, "from"), ColumnResult("high", Cell.VALUE, "to"), *_COUNTED),
    lambda found: zip(found.lows, found.highs, *_numbers(found.counts), strict=True),
)
TILES: Final = Tiles(
    "histogram",
    "Counts in bins of two columns, row by row.",
    "A bin of two columns: the values of the first and of the second.",
    (ColumnResult("low", Cell.PAIR, "from"), ColumnResult("high", Cell.PAIR, "to"), *_COUNTED),
    # Bins of the first column one after the other; low and high are a value for each column.
    lambda found: zip(product(*found.lows), product(*found.highs), *_numbers(found.counts), strict=True),
)
ANSWERS: Final = TableResult(
    "answers",
    "The answers to all queries, in their order.",
    "The answer to a query that was published.",
    (
        ColumnResult("query", Cell.TEXT, "query"),
        ColumnResult("value", Cell.NUMBER, "answer"),
        ColumnResult("error", Cell.NUMBER, "± 95%"),
    ),
    lambda found: zip(found[0], *_numbers(found[1]), strict=True),
)


# --- releases ----------------------------------------------------------------------------------


def view_records(release: Release) -> list[Record]:
    """Which columns were published together, by which mechanism, and why; sums by their keys, and queries."""
    return [
        {"view": name_view(view), "columns": view.columns, "mechanism": view.mechanism, "why": view.why}
        for view in release.published
    ]


def name_view(view: Published) -> str:
    """The name of a view."""
    from partita.public.file_entries import describe_view as about
    from partita.public.file_entries import form_of

    return form_of(view).name(about(view))


def column_records(release: Release) -> list[Record]:
    """Every column, its domain, and its noisy special cells."""
    return [
        {
            "column": column,
            "domain": release.slice(column).domain.to_spec(),
            "specials": _cells(specials(release, column)),
        }
        for column in release.columns
    ]


def sum_records(release: Release) -> list[Record]:
    """Every summed column, by which keys it can be asked for, its noisy special cells, and its whole sum.

    Where only means were released, the mean of all rows takes its place.
    """
    return [
        {
            "column": view.column,
            "keys": view.keys,
            "domain": view.domain.to_spec(),
            "moments": view.moments,
            "specials": _cells(view.specials),
            **_whole(view),
        }
        for view in release.sums
    ]


def _whole(view: SumView) -> Record:
    """The sum of all rows; their mean, where only means were released."""
    if view.sums.statistic == "means":
        return {"mean": summary_record(view.mean({}))}
    return {"sum": summary_record(view.sum({}))}


def query_record(release: Release, beta: float) -> Record | None:
    """The queries that were published, and a bound on the errors of all answers."""
    view = release.queries
    if view is None:
        return None
    bound = {"beta": beta, "bound": view.error(beta)}
    return {"queries": str(view.queries), "columns": view.columns, "number": len(view), "error": bound}


def summary_record(answer: SumAnswer | Ratio) -> Record:
    """A sum or a ratio, and what values it covers."""
    covers = answer.covers
    covered = {
        "low": covers.low,
        "high": covers.high,
        "none_below": covers.lower.gone,
        "none_above": covers.upper.gone,
        "everything": covers.everything,
        "text": covers.text,
    }
    return {"value": answer.value, "error": answer.error, "covers": covered}


def specials(release: Release, column: str) -> dict[str, Answer]:
    """The counts of what is beside the axis of a column, by the name of the cell."""
    from partita.domain.base import Special

    cells = release.slice(column).special_cells
    return {name: release.count({column: Special.named(name)}) for name in cells}


def unread_records(release: Release) -> list[Record]:
    """The share of rows that are invalid, or other, in each counted column, by released numbers alone.

    With 95% all is between `low` and `high`: the rows and all rows are bounded with half of the rest each.
    The share is None where noise hides how many rows there are.
    """
    if not release.columns:
        return []
    rows = release.count({})
    least, most = rows.interval(_EACH)
    found: list[Record] = []
    for column in release.columns:
        for name, count in specials(release, column).items():
            if name in ("invalid", "other"):
                low, high = count.interval(_EACH)
                known, share = least > 0, min(1.0, max(0.0, count.value / max(rows.value, 1.0)))
                ends = (max(0.0, low / most), min(1.0, high / least)) if known else (0.0, 1.0)
                numbers = {"share": share if known else None, "low": ends[0], "high": ends[1]}
                found.append({"column": column, "cell": name, **numbers})
    return found


def _cells(counts: Mapping[str, Answer]) -> Record:
    return {name: {"value": each.value, "error": each.error} for name, each in counts.items()}
