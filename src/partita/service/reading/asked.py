"""What can be asked of a release, as models: the parameters of an address, and the body of a request.

Each model is used twice. As parameters, `where` is text in the language of questions. As a body, it may
be JSON too. Both are the same question to the release.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from partita.asking import questions
from partita.asking.grammar import counted, question
from partita.exact import rational
from partita.service.reading.cells import AnyWhere, JsonWhere, Value, conditions_of, said

__all__ = [
    "AnswersAsked",
    "Asked",
    "Bars",
    "CdfAsked",
    "CountAsked",
    "DifferenceAsked",
    "Histogram2dAsked",
    "HistogramAsked",
    "MeanAsked",
    "QuantileAsked",
    "StdAsked",
    "SumAsked",
    "TextAsked",
    "VarianceAsked",
]

W = TypeVar("W", bound=AnyWhere)

Column: TypeAlias = Annotated[
    str, Field(min_length=1, max_length=1000, description="the name of a column", examples=["age"])
]
Share: TypeAlias = Annotated[
    float, Field(ge=0, le=1, allow_inf_nan=False, description="which share of the rows lies below")
]
Number: TypeAlias = Annotated[int, Field(ge=1, le=2**20, description="how many bins")]


class Bars(BaseModel):
    """How sure error bars are."""

    model_config = ConfigDict(extra="forbid")

    confidence: float = Field(default=0.95, gt=0, lt=1, description="of the interval, which is a model")
    beta: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        description="how often guaranteed bounds may fail; they are given, as `worst`, only if this is",
    )


class Asked(Bars, ABC):
    """A question to a release."""

    @abstractmethod
    def question(self) -> questions.Question:
        """The question, as the library asks it."""


def _everywhere() -> Any:
    """No condition."""
    return ""


class _Where(Asked, ABC, Generic[W]):
    where: W = Field(
        default_factory=_everywhere,
        description="which rows: conditions as text, `age >= 30 and town = Rome`, or in a body as JSON",
        examples=["age between 30 and 39"],
    )

    @classmethod
    def model_parametrized_name(cls, params: tuple[Any, ...]) -> str:
        """A name for the document: that of the model, and in which form it has conditions."""
        return f"{cls.__name__}{'Text' if params[0] is str else 'Body'}"

    @property
    def rows(self) -> questions.Where:
        """The conditions."""
        return conditions_of(self.where)


class CountAsked(_Where[W], Generic[W]):
    """How many rows there are."""

    def question(self) -> questions.Question:
        """A count; as text its conditions may have a half-space."""
        if isinstance(self.where, str) and self.where.strip():
            return counted(self.where)
        return questions.Count(self.rows)


class _Summary(_Where[W], ABC, Generic[W]):
    what: ClassVar[Literal["sum", "mean", "variance", "std"]]
    column: Column

    def question(self) -> questions.Question:
        return questions.Summary(self.what, self.column, self.rows)


class SumAsked(_Summary[W], Generic[W]):
    """The sum of a column."""

    what = "sum"


class MeanAsked(_Summary[W], Generic[W]):
    """The mean of a column."""

    what = "mean"


class VarianceAsked(_Summary[W], Generic[W]):
    """The variance of a column."""

    what = "variance"


class StdAsked(_Summary[W], Generic[W]):
    """The standard deviation of a column."""

    what = "std"


class QuantileAsked(_Where[W], Generic[W]):
    """The least value that a share of the rows do not exceed."""

    column: Column
    q: Share = 0.5

    def question(self) -> questions.Question:
        """A quantile at the share as it is written."""
        return questions.Quantile(rational(self.q, "q"), self.column, self.rows)


class CdfAsked(_Where[W], Generic[W]):
    """Which share of the rows is at most each of some values."""

    column: Column
    at: list[Value] = Field(
        default_factory=list, max_length=4096, description="the values; twentieths if none is given"
    )

    def question(self) -> questions.Question:
        """A cdf at the values given."""
        return questions.Cdf(self.column, tuple(map(said, self.at)), self.rows)


class HistogramAsked(_Where[W], Generic[W]):
    """How many rows lie in each of several bins."""

    column: Column
    bins: Number = 12

    def question(self) -> questions.Question:
        """A histogram."""
        return questions.Histogram(self.column, self.bins, self.rows)


class Histogram2dAsked(_Where[W], Generic[W]):
    """How many rows lie in each bin of two columns."""

    x: Column
    y: Column
    x_bins: Number = 12
    y_bins: Number = 12

    def question(self) -> questions.Question:
        """A histogram of two columns."""
        return questions.HeatMap((self.x, self.y), (self.x_bins, self.y_bins), self.rows)


class DifferenceAsked(Asked):
    """How many more rows the first conditions count than the second."""

    first: str | JsonWhere = Field(examples=[{"age": [60, None]}])
    second: str | JsonWhere = Field(examples=["age < 30"])

    def question(self) -> questions.Question:
        """A difference, with the error of just that."""
        return questions.Difference(conditions_of(self.first), conditions_of(self.second))


class AnswersAsked(Asked):
    """The answers to all queries that were published."""

    def question(self) -> questions.Question:
        """All of them."""
        return questions.AllAnswers()


class TextAsked(Asked):
    """Any question, as text."""

    q: str = Field(
        min_length=1,
        description="a question in the language of `partita query`",
        examples=["count where age between 30 and 39"],
    )

    def question(self) -> questions.Question:
        """The question that the text asks."""
        return question(self.q)
