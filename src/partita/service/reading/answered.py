"""What a release answers, as models: the document of the API shows them, and tests hold answers to them."""

from __future__ import annotations

from typing import Final, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

__all__ = [
    "AllAnswers",
    "AnyAnswer",
    "CdfAnswer",
    "Histogram2dAnswer",
    "HistogramAnswer",
    "NumberAnswer",
    "QuantileAnswer",
    "SummaryAnswer",
]

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


class CdfRow(Shown):
    """How many rows are at most a value."""

    value: Value
    share: float
    count: float
    error: float
    half: float


class CdfAnswer(Shown):
    """A distribution at some values."""

    question: str
    cdf: list[CdfRow]


class Bin(Shown):
    """From one value to another, both in it, and how many rows."""

    low: Value
    high: Value
    count: float
    error: float
    half: float
    small: bool


class HistogramAnswer(Shown):
    """Counts in bins."""

    question: str
    histogram: list[Bin]


class Tile(Shown):
    """A bin of two columns: the values of the first and of the second."""

    low: tuple[Value, Value]
    high: tuple[Value, Value]
    count: float
    error: float
    half: float
    small: bool


class Histogram2dAnswer(Shown):
    """Counts in bins of two columns, row by row."""

    question: str
    histogram: list[Tile]


class QueryAnswer(Shown):
    """The answer to a query that was published."""

    query: str
    value: float
    error: float
    half: float
    small: bool


class AllAnswers(Shown):
    """The answers to all queries, in their order."""

    question: str
    answers: list[QueryAnswer]


AnyAnswer: TypeAlias = (
    SummaryAnswer
    | NumberAnswer
    | QuantileAnswer
    | CdfAnswer
    | HistogramAnswer
    | Histogram2dAnswer
    | AllAnswers
)
