"""Questions read from text.

    question   := count [where (conditions | half-space) {and (conditions | half-space)}]
                | quantile SHARE of COLUMN [where conditions] | median of COLUMN [where conditions]
                | cdf of COLUMN [at VALUE {, VALUE}] [where conditions]
                | histogram of COLUMN [in NUMBER bins] [where conditions]
                | histogram of COLUMN, COLUMN [in NUMBER [by NUMBER] bins] [where conditions]
                | difference between (conditions) and (conditions)
                | (sum | mean | variance | std) of COLUMN [where conditions]
                | answers
    conditions := condition {and condition}
    condition  := COLUMN between VALUE and VALUE
                | COLUMN >= VALUE | COLUMN > VALUE | COLUMN <= VALUE | COLUMN < VALUE
                | COLUMN = VALUE | COLUMN in (VALUE {, VALUE})
                | COLUMN is null | invalid | below | above | other
    half-space := [-] term {(+ | -) term} (<= | >=) NUMBER
    term       := [NUMBER *] COLUMN

A column or a value is one word, or anything in single or double quotes (doubled inside). Words of
the grammar may be written in capitals; a column that is called like one needs quotes. The + and - of
a half-space stand between spaces. Values stay text, so that nothing is rounded on its way to the
release.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Final, Literal

from partita.asking.questions import (
    RESERVED,
    SPECIALS,
    AllAnswers,
    Cdf,
    Condition,
    Count,
    Difference,
    Equal,
    HalfSpace,
    HeatMap,
    Histogram,
    Is,
    OneOf,
    Quantile,
    Question,
    Range,
    Summary,
    Where,
)
from partita.asking.tokens import Token, Tokens
from partita.exact import failure

__all__ = ["conditions", "counted", "question"]

_CONDITIONS: Final = "age between 30 and 39"
_EXAMPLES: Final[Mapping[str, str]] = {
    "count": f"count where {_CONDITIONS}",
    "quantile": "quantile 0.9 of salary",
    "median": "median of salary",
    "cdf": "cdf of salary at 20000, 50000",
    "histogram": "histogram of age in 12 bins",
    "difference": "difference between (age >= 60) and (age < 30)",
    "sum": f"sum of salary where {_CONDITIONS}",
    "mean": f"mean of salary where {_CONDITIONS}",
    "variance": "variance of salary",
    "std": "std of salary",
    "answers": "answers",
}
"""A question of each kind."""


def question(text: str) -> Question:
    """The question that `text` asks.

    >>> question("count where age > 30 and age <= 39")
    Count(where={'age': Range(low='30', high='39', low_closed=False, high_closed=True)}, half_space=None)
    >>> question("count wher age > 30")
    Traceback (most recent call last):
        ...
    partita.errors.InvalidParameter: question must go on with where or end at character 7, got 'wher'; \
did you mean where?
    """
    return _Reader(text, example=_EXAMPLES["count"]).question()


def conditions(text: str) -> Where:
    """The conditions that `text` says, as they stand behind `where`.

    >>> conditions("age >= 65 and region = north")
    {'age': Range(low='65', high=None, low_closed=True, high_closed=True), 'region': Equal(value='north')}
    """
    return _Reader(text, example=_CONDITIONS).conditions()


def counted(text: str) -> Count:
    """The count of the rows that `text` says, as it stands behind `where`; a half-space may be among them.

    >>> str(counted("region = north and 3*age <= 100"))
    'count where region = north and 3*age <= 100'
    """
    return _Reader(text, example=_CONDITIONS).counted()


class _Reader:
    """A question, read from left to right."""

    def __init__(self, text: str, *, example: str) -> None:
        self._text = Tokens(text, example=example)

    def question(self) -> Question:
        """The whole text, to its end."""
        kinds: Mapping[str, Callable[[], Question]] = {
            "count": self._count,
            "quantile": self._quantile,
            "median": self._median,
            "cdf": self._cdf,
            "histogram": self._histogram,
            "difference": self._difference,
            "sum": lambda: self._summary("sum"),
            "mean": lambda: self._summary("mean"),
            "variance": lambda: self._summary("variance"),
            "std": lambda: self._summary("std"),
            "answers": AllAnswers,
        }
        kind = self._text.expect(*kinds, role="start with")
        self._text.example = _EXAMPLES[kind]
        asked = kinds[kind]()
        self._text.end()
        return asked

    def conditions(self) -> Where:
        """The whole text as conditions."""
        where = self._conditions()
        self._text.end()
        return where

    def counted(self) -> Count:
        """The whole text as conditions and at most one half-space."""
        count = self._counted()
        self._text.end()
        return count

    def _count(self) -> Count:
        return self._counted() if self._text.comes("where") else Count({})

    def _counted(self) -> Count:
        half_spaces: list[HalfSpace] = []
        where = self._conditions(half_spaces)
        return Count(where, *half_spaces)

    def _quantile(self) -> Quantile:
        place = self._text.token.place
        share = failure(
            self._text.value("a share such as 0.5"), f"share at character {place} of the question"
        )
        self._text.expect("of")
        return Quantile(share, self._column(), self._optional_where())

    def _median(self) -> Quantile:
        self._text.expect("of")
        return Quantile(Fraction(1, 2), self._column(), self._optional_where())

    def _cdf(self) -> Cdf:
        self._text.expect("of")
        column = self._column()
        values = self._values() if self._text.comes("at", "where") else ()
        return Cdf(column, values, self._optional_where())

    def _histogram(self) -> Histogram | HeatMap:
        self._text.expect("of")
        column = self._column()
        if self._text.skip(","):
            return self._heat_map(column)
        bins = self._bins() if self._text.comes("in", "where") else None
        return Histogram(column, bins, self._optional_where())

    def _heat_map(self, column: str) -> HeatMap:
        columns = column, self._column()
        bins = self._pair_of_bins() if self._text.comes("in", "where") else None
        return HeatMap(columns, bins, self._optional_where())

    def _pair_of_bins(self) -> tuple[int, int]:
        """A number for each of two columns, or one for both."""
        first = self._number_of_bins()
        return first, self._bins() if self._text.expect("by", "bins") == "by" else first

    def _difference(self) -> Difference:
        self._text.expect("between")
        first = self._group()
        self._text.expect("and")
        return Difference(first, self._group())

    def _summary(self, what: Literal["sum", "mean", "variance", "std"]) -> Summary:
        self._text.expect("of")
        return Summary(what, self._column(), self._optional_where())

    def _optional_where(self) -> Where:
        return self._conditions() if self._text.comes("where") else {}

    def _group(self) -> Where:
        self._text.expect("(")
        where = self._conditions()
        self._text.expect(")")
        return where

    def _conditions(self, half_spaces: list[HalfSpace] | None = None) -> Where:
        """Conditions up to the first that no `and` follows; those that are a half-space go in that list."""
        where: dict[str, Condition] = {}
        while True:
            if half_spaces is not None and self._is_half_space():
                self._add_half_space(half_spaces)
            else:
                self._add_condition(where)
            if not self._text.skip("and"):
                return where

    def _add_condition(self, where: dict[str, Condition]) -> None:
        start, column = self._text.token, self._column()
        condition = self._condition()
        where[column] = self._both(where[column], condition, start) if column in where else condition

    def _both(self, earlier: Condition, later: Condition, start: Token) -> Range:
        """A lower and an upper end of one column, given one after the other."""
        if isinstance(earlier, Range) and isinstance(later, Range):
            if earlier.high is None and later.low is None:
                return Range(
                    low=earlier.low,
                    high=later.high,
                    low_closed=earlier.low_closed,
                    high_closed=later.high_closed,
                )
            if earlier.low is None and later.high is None:
                return self._both(later, earlier, start)
        rule = "have one condition on a column, or one lower and one upper end"
        return self._text.refuse(start, rule)

    def _condition(self) -> Condition:
        match self._text.expect("between", "in", "is", "=", "<", "<=", ">", ">="):
            case "between":
                low = self._text.value()
                self._text.expect("and")
                return Range(low=low, high=self._text.value())
            case "in":
                self._text.expect("(")
                values = self._values()
                self._text.expect(")")
                return OneOf(values)
            case "is":
                return Is(self._text.expect(*SPECIALS))
            case "=":
                return Equal(self._text.value())
            case sign if sign.startswith(">"):
                return Range(low=self._text.value(), low_closed=sign == ">=")
            case sign:
                return Range(high=self._text.value(), high_closed=sign == "<=")

    def _is_half_space(self) -> bool:
        return self._text.token.says("-") or self._text.ahead.says("*", "+", "-")

    def _add_half_space(self, half_spaces: list[HalfSpace]) -> None:
        start = self._text.token
        half_spaces.append(self._half_space())
        if len(half_spaces) > 1:
            self._text.refuse(start, "have one half-space")

    def _half_space(self) -> HalfSpace:
        weights: dict[str, Fraction] = {}
        self._add_term(weights, -1 if self._text.skip("-") else 1)
        while (sign := self._text.expect("+", "-", "<=", ">=")) in ("+", "-"):
            self._add_term(weights, -1 if sign == "-" else 1)
        return HalfSpace(weights, self._text.number("a number"), "<=" if sign == "<=" else ">=")

    def _add_term(self, weights: dict[str, Fraction], sign: int) -> None:
        weight = Fraction(sign)
        if self._text.ahead.says("*"):
            weight *= self._text.number("a weight")
            self._text.expect("*")
        start, column = self._text.token, self._column()
        if column in weights:
            self._text.refuse(start, "name each column of a half-space once")
        weights[column] = weight

    def _bins(self) -> int:
        number = self._number_of_bins()
        self._text.expect("bins")
        return number

    def _number_of_bins(self) -> int:
        from partita.releases.bins import MOST_BINS

        token, text = self._text.token, self._text.value("a number of bins")
        if not text.isdecimal() or len(text) > 9 or not 1 <= int(text) <= MOST_BINS:
            self._text.refuse(token, f"have a number of bins from 1 to {MOST_BINS}")
        return int(text)

    def _values(self) -> tuple[str, ...]:
        values = [self._text.value()]
        while self._text.skip(","):
            values.append(self._text.value())
        return tuple(values)

    def _column(self) -> str:
        token = self._text.token
        if token.kind == "word" and token.text.lower() in RESERVED:
            self._text.refuse(
                token, "have a column", fix="name a column; put quotes around it if it is called like that"
            )
        return self._text.value("a column")
