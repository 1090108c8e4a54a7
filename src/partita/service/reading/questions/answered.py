"""What a release answers, as models: the document of the API shows them, and tests hold answers to them.

Answers that are tables have models made from their columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, create_model

from partita.public.questions import QuestionKind
from partita.public.records import Cell, Number, QuantileValue, Result, Summary, Table

Value: TypeAlias = int | str
"""One value of a column: a whole number, or text where it is anything else."""


_ERROR: Final = "the standard error, by a calibrated model and not a guarantee; the same in a batch of counts"


class Shown(BaseModel):
    """Entries of an answer, all of which are known."""

    model_config = ConfigDict(extra="forbid")


class Interval(Shown):
    """Bounds that hold with about this confidence; a calibrated model, not a guarantee.

    Of a count of ranges and single values they are the value and `half` to either side, never below zero. Of
    other counts, of sums and differences, and of any count where beta is given, guaranteed bounds of the same
    confidence take the place of a side that they narrow. What holds whatever the data is `worst`.
    """

    confidence: float = Field(examples=[0.95])
    low: float | None = Field(examples=[11893.2], description="null where nothing bounds it")
    high: float | None = Field(examples=[12105.8], description="null where nothing bounds it")


class Worst(Shown):
    """Bounds that fail with probability at most beta, whatever the data."""

    beta: float
    low: float | None
    high: float | None


class NumberAnswer(Shown):
    """A number with its error."""

    question: str = Field(examples=["count where age between 30 and 39"])
    value: float | None = Field(examples=[11999.5], description="null where it is not determinable")
    error: float | None = Field(examples=[54.2], description=_ERROR)
    interval: Interval
    worst: Worst | None = Field(default=None, description="guaranteed; only where beta is given")
    half: float | None = Field(examples=[106.3], description="half the width of a bar at the confidence")
    small: bool = Field(description="whether noise dominates: the bar is as wide as the value is large")


class Covers(Shown):
    """Which values count in full."""

    low: float | None
    high: float | None
    none_below: float | None
    none_above: float | None
    everything: bool
    text: str


class SummaryAnswer(NumberAnswer):
    """A sum, a mean, a variance or a standard deviation, and what values it covers."""

    covers: Covers


class ValueInterval(Shown):
    """Values between which the true one lies with about this confidence; a model."""

    confidence: float
    low: Value
    high: Value


class ValueWorst(Shown):
    """Values between which the true one lies, except with probability beta."""

    beta: float
    low: Value
    high: Value


class Ranks(Shown):
    """Between which shares of the rows the value stands."""

    low: float
    high: float


class QuantileAnswer(Shown):
    """A value of a column, and between which values and ranks it lies."""

    question: str = Field(examples=["median of salary"])
    value: Value = Field(examples=[31250])
    interval: ValueInterval
    worst: ValueWorst | None = None
    ranks: Ranks


class AnyAnswer(BaseModel):
    """An answer with other entries."""

    model_config = ConfigDict(extra="allow")

    question: str


_MODELS: Final[Mapping[type[Result], type[BaseModel]]] = {
    Number: NumberAnswer,
    Summary: SummaryAnswer,
    QuantileValue: QuantileAnswer,
}
_CELLS: Final[Mapping[Cell, Any]] = {
    Cell.VALUE: Value,
    Cell.PAIR: tuple[Value, Value],
    Cell.NUMBER: float,
    Cell.SHARE: float,
    Cell.TEXT: str,
}


def answer_model(kind: QuestionKind) -> type[BaseModel]:
    """The model of the answers to a kind of question."""
    if isinstance(kind.result, Table):
        return _table_model(kind.name.capitalize(), kind.result)
    return _MODELS.get(type(kind.result), AnyAnswer)


def _table_model(name: str, table: Table) -> type[BaseModel]:
    """Rows; beside an error stand its bar and, unless there are shares, whether noise dominates."""
    columns: dict[str, Any] = {column.name: (_CELLS[column.cell], ...) for column in table.columns}
    bars: dict[str, Any] = {"half": (float, ...)} if "error" in columns else {}
    bars |= {"small": (bool, ...)} if bars and "share" not in columns else {}
    row = create_model(f"{name}Row", __base__=Shown, __doc__=table.row, **columns, **bars)
    rows: dict[str, Any] = {table.name: (list[row], ...)}  # type: ignore[valid-type]
    return create_model(f"{name}Answer", __base__=Shown, __doc__=table.title, question=(str, ...), **rows)
