"""What can be asked of a release, as data; `str` writes each question as the grammar reads it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, Literal, TypeAlias, final

__all__ = [
    "RESERVED",
    "SPECIALS",
    "AllAnswers",
    "Cdf",
    "Condition",
    "Count",
    "Difference",
    "Equal",
    "HalfSpace",
    "HeatMap",
    "Histogram",
    "Is",
    "OneOf",
    "Quantile",
    "Question",
    "Range",
    "Summary",
    "Where",
]

SPECIALS: Final = ("null", "invalid", "below", "above", "other")
RESERVED: Final = frozenset({"and", "at", "between", "in", "is", "of", "where", "+", "-"})

_PLAIN: Final = re.compile(r"[\w.:+-]+")


@final
@dataclass(frozen=True, kw_only=True)
class Range:
    """From one value to another; None is an open end, and an end that is not closed is left out."""

    low: str | None = None
    high: str | None = None
    low_closed: bool = True
    high_closed: bool = True

    def said(self, column: str) -> str:
        """As conditions on a column."""
        if self.low is not None and self.high is not None and self.low_closed and self.high_closed:
            return f"{column} between {_word(self.low)} and {_word(self.high)}"
        ends = ((self.low, ">", self.low_closed), (self.high, "<", self.high_closed))
        said = [
            f"{column} {sign}{'=' * closed} {_word(end)}" for end, sign, closed in ends if end is not None
        ]
        return " and ".join(said)


@final
@dataclass(frozen=True)
class Equal:
    """One value."""

    value: str

    def said(self, column: str) -> str:
        """As a condition on a column."""
        return f"{column} = {_word(self.value)}"


@final
@dataclass(frozen=True)
class OneOf:
    """Any of several values."""

    values: tuple[str, ...]

    def said(self, column: str) -> str:
        """As a condition on a column."""
        return f"{column} in ({', '.join(map(_word, self.values))})"


@final
@dataclass(frozen=True)
class Is:
    """A special cell."""

    cell: str

    def said(self, column: str) -> str:
        """As a condition on a column."""
        return f"{column} is {self.cell}"


Condition: TypeAlias = Range | Equal | OneOf | Is
Where: TypeAlias = Mapping[str, Condition]


@final
@dataclass(frozen=True)
class HalfSpace:
    """Where a weighted sum of columns is at most a bound, or at least."""

    weights: Mapping[str, Fraction]
    bound: Fraction
    sign: Literal["<=", ">="] = "<="

    def __str__(self) -> str:
        terms = [
            f"{'-' if weight < 0 else '+'} {self._term(column)}" for column, weight in self.weights.items()
        ]
        return f"{' '.join(terms).removeprefix('+ ')} {self.sign} {_number(self.bound)}"

    def _term(self, column: str) -> str:
        """A weight of 1 is left out where the sum has other terms, which tell it from a plain condition."""
        weight = abs(self.weights[column])
        return (
            _word(column) if weight == 1 and len(self.weights) > 1 else f"{_number(weight)}*{_word(column)}"
        )


@final
@dataclass(frozen=True)
class Count:
    """How many rows fulfil the conditions and lie in the half-space."""

    where: Where
    half_space: HalfSpace | None = None

    def __str__(self) -> str:
        return f"count{_where(self.where, self.half_space)}"


@final
@dataclass(frozen=True)
class Quantile:
    """Below which value a share of the rows lies, of those that fulfil the conditions."""

    share: Fraction
    column: str
    where: Where = field(default_factory=dict)

    def __str__(self) -> str:
        what = "median" if self.share == Fraction(1, 2) else f"quantile {self.share}"
        return f"{what} of {_word(self.column)}{_where(self.where)}"


@final
@dataclass(frozen=True)
class Cdf:
    """Which share of the rows is at most each value; at a few values of its own choice if none is given."""

    column: str
    values: tuple[str, ...] = ()
    where: Where = field(default_factory=dict)

    def __str__(self) -> str:
        at = f" at {', '.join(map(_word, self.values))}" if self.values else ""
        return f"cdf of {_word(self.column)}{at}{_where(self.where)}"


@final
@dataclass(frozen=True)
class Histogram:
    """How many rows lie in each of several bins."""

    column: str
    bins: int | None = None
    where: Where = field(default_factory=dict)

    def __str__(self) -> str:
        bins = "" if self.bins is None else f" in {self.bins} bins"
        return f"histogram of {_word(self.column)}{bins}{_where(self.where)}"


@final
@dataclass(frozen=True)
class HeatMap:
    """How many rows lie in each bin of two columns together."""

    columns: tuple[str, str]
    bins: tuple[int, int] | None = None
    where: Where = field(default_factory=dict)

    def __str__(self) -> str:
        columns = ", ".join(map(_word, self.columns))
        bins = "" if self.bins is None else f" in {self.bins[0]} by {self.bins[1]} bins"
        return f"histogram of {columns}{bins}{_where(self.where)}"


@final
@dataclass(frozen=True)
class Difference:
    """How many more rows fulfil the first conditions than the second."""

    first: Where
    second: Where

    def __str__(self) -> str:
        return f"difference between ({_conditions(self.first)}) and ({_conditions(self.second)})"


@final
@dataclass(frozen=True)
class Summary:
    """A sum, a mean, a variance or a standard deviation of the rows that fulfil the conditions."""

    what: Literal["sum", "mean", "variance", "std"]
    column: str
    where: Where = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.what} of {_word(self.column)}{_where(self.where)}"


@final
@dataclass(frozen=True)
class AllAnswers:
    """The answer to every query that was published."""

    def __str__(self) -> str:
        return "answers"


Question: TypeAlias = Count | Quantile | Cdf | Histogram | HeatMap | Difference | Summary | AllAnswers


def _where(where: Where, half_space: HalfSpace | None = None) -> str:
    said = [_conditions(where)] if where else []
    said += [] if half_space is None else [str(half_space)]
    return f" where {' and '.join(said)}" if said else ""


def _conditions(where: Where) -> str:
    return " and ".join(condition.said(_word(column)) for column, condition in where.items())


def _number(exact: Fraction) -> str:
    """A decimal if it has an end, else a ratio."""
    from partita.domain.text import number_text

    return number_text(exact)


def _word(text: str) -> str:
    """As it is where it is one word and none of the grammar's own, else in quotes."""
    if _PLAIN.fullmatch(text) and text.lower() not in RESERVED:
        return text
    return "'" + text.replace("'", "''") + "'"
