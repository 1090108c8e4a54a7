"""What can be asked of a release, as data; `str` writes each question as the grammar reads it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal, TypeAlias, final

__all__ = [
    "RESERVED",
    "SPECIALS",
    "Cdf",
    "Condition",
    "Count",
    "Difference",
    "Equal",
    "Histogram",
    "Is",
    "OneOf",
    "Quantile",
    "Question",
    "Range",
    "Unreleased",
    "Where",
]

SPECIALS: Final = ("null", "invalid", "below", "above", "other")
RESERVED: Final = frozenset({"and", "at", "between", "in", "is", "of", "where"})

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
class Count:
    """How many rows fulfil the conditions."""

    where: Where

    def __str__(self) -> str:
        return f"count where {_conditions(self.where)}" if self.where else "count"


@final
@dataclass(frozen=True)
class Quantile:
    """Below which value a share of the rows lies."""

    share: Fraction
    column: str

    def __str__(self) -> str:
        what = "median" if self.share == Fraction(1, 2) else f"quantile {self.share}"
        return f"{what} of {_word(self.column)}"


@final
@dataclass(frozen=True)
class Cdf:
    """Which share of the rows is at most each value; at a few values of its own choice if none is given."""

    column: str
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        at = f" at {', '.join(map(_word, self.values))}" if self.values else ""
        return f"cdf of {_word(self.column)}{at}"


@final
@dataclass(frozen=True)
class Histogram:
    """How many rows lie in each of several bins."""

    column: str
    bins: int | None = None

    def __str__(self) -> str:
        bins = "" if self.bins is None else f" in {self.bins} bins"
        return f"histogram of {_word(self.column)}{bins}"


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
class Unreleased:
    """A sum or a mean: understood, and in no release of counts."""

    what: Literal["sum", "mean"]
    column: str
    where: Where

    def __str__(self) -> str:
        where = f" where {_conditions(self.where)}" if self.where else ""
        return f"{self.what} of {_word(self.column)}{where}"


Question: TypeAlias = Count | Quantile | Cdf | Histogram | Difference | Unreleased


def _conditions(where: Where) -> str:
    return " and ".join(condition.said(_word(column)) for column, condition in where.items())


def _word(text: str) -> str:
    """As it is where it is one word and none of the grammar's own, else in quotes."""
    if _PLAIN.fullmatch(text) and text.lower() not in RESERVED:
        return text
    return "'" + text.replace("'", "''") + "'"
