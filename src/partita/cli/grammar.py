"""Questions read from text.

    question   := count [where conditions]
                | quantile SHARE of COLUMN | median of COLUMN
                | cdf of COLUMN [at VALUE {, VALUE}]
                | histogram of COLUMN [in NUMBER bins]
                | difference between (conditions) and (conditions)
                | sum of COLUMN [where conditions] | mean of COLUMN [where conditions]
    conditions := condition {and condition}
    condition  := COLUMN between VALUE and VALUE
                | COLUMN >= VALUE | COLUMN > VALUE | COLUMN <= VALUE | COLUMN < VALUE
                | COLUMN = VALUE | COLUMN in (VALUE {, VALUE})
                | COLUMN is null | invalid | below | above | other

A column or a value is one word, or anything in single or double quotes (doubled inside). Words of
the grammar may be written in capitals; a column that is called like one needs quotes. Values stay
text, so that nothing is rounded on its way to the release.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from fractions import Fraction
from typing import Final, Literal, NamedTuple, NoReturn

from partita.cli.questions import (
    RESERVED,
    SPECIALS,
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
from partita.exact import failure

__all__ = ["question"]

_LONGEST: Final = 10_000
_MOST_BINS: Final = 10_000
_EXAMPLE: Final = 'for example "count where age between 30 and 39"'
_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<symbol><=|>=|[<>=(),])
          |'(?P<single>(?:[^']|'')*)'|"(?P<double>(?:[^"]|"")*)"
          |(?P<word>[^\s'"(),<>=]+))""",
    re.VERBOSE,
)


def question(text: str) -> Question:
    """The question that `text` asks.

    >>> question("count where age > 30 and age <= 39")
    Count(where={'age': Range(low='30', high='39', low_closed=False, high_closed=True)})
    >>> question("count wher age > 30")
    Traceback (most recent call last):
        ...
    partita.errors.InvalidParameter: question must go on with where or end at character 7, got 'wher'; \
did you mean where?
    """
    if len(text) > _LONGEST:
        raise InvalidParameter(
            "question", f"must have at most {_LONGEST} characters", given=len(text), fix="ask several"
        )
    return _Reader(text).question()


class _Token(NamedTuple):
    """A piece of the text, where it starts, counted from 1, and whether it is a word of the grammar."""

    text: str
    place: int
    kind: Literal["word", "quoted", "symbol", "end"]

    def says(self, *words: str) -> bool:
        """Whether it is one of these words or symbols of the grammar."""
        return self.kind in ("word", "symbol") and self.text.lower() in words


class _Reader:
    """A question, read from left to right."""

    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._next = 0

    def question(self) -> Question:
        """The whole text, to its end."""
        kinds: Mapping[str, Callable[[], Question]] = {
            "count": self._count,
            "quantile": self._quantile,
            "median": self._median,
            "cdf": self._cdf,
            "histogram": self._histogram,
            "difference": self._difference,
            "sum": self._unreleased,
            "mean": self._unreleased,
        }
        asked = kinds[self._expect(*kinds, role="start with")]()
        if self._token.kind != "end":
            self._fail("end")
        return asked

    def _count(self) -> Count:
        return Count(self._optional_where())

    def _quantile(self) -> Quantile:
        place = self._token.place
        share = failure(self._value("a share such as 0.5"), f"share at character {place} of the question")
        self._expect("of")
        return Quantile(share, self._column())

    def _median(self) -> Quantile:
        self._expect("of")
        return Quantile(Fraction(1, 2), self._column())

    def _cdf(self) -> Cdf:
        self._expect("of")
        column = self._column()
        return Cdf(column, self._values() if self._more("at") else ())

    def _histogram(self) -> Histogram:
        self._expect("of")
        column = self._column()
        return Histogram(column, self._bins() if self._more("in") else None)

    def _difference(self) -> Difference:
        self._expect("between")
        first = self._group()
        self._expect("and")
        return Difference(first, self._group())

    def _unreleased(self) -> Unreleased:
        what: Literal["sum", "mean"] = "sum" if self._tokens[self._next - 1].says("sum") else "mean"
        self._expect("of")
        column = self._column()
        return Unreleased(what, column, self._optional_where())

    def _optional_where(self) -> Where:
        return self._conditions() if self._more("where") else {}

    def _group(self) -> Where:
        self._expect("(")
        where = self._conditions()
        self._expect(")")
        return where

    def _conditions(self) -> Where:
        where: dict[str, Condition] = {}
        while True:
            start = self._token
            column = self._column()
            condition = self._condition()
            where[column] = _both(where[column], condition, start) if column in where else condition
            if not self._token.says("and"):
                return where
            self._advance()

    def _condition(self) -> Condition:
        match self._expect("between", "in", "is", "=", "<", "<=", ">", ">="):
            case "between":
                low = self._value()
                self._expect("and")
                return Range(low=low, high=self._value())
            case "in":
                self._expect("(")
                values = self._values()
                self._expect(")")
                return OneOf(values)
            case "is":
                return Is(self._expect(*SPECIALS))
            case "=":
                return Equal(self._value())
            case sign if sign.startswith(">"):
                return Range(low=self._value(), low_closed=sign == ">=")
            case sign:
                return Range(high=self._value(), high_closed=sign == "<=")

    def _bins(self) -> int:
        token, text = self._token, self._value("a number of bins")
        if not text.isdecimal() or len(text) > 9 or not 1 <= int(text) <= _MOST_BINS:
            _refuse(token, f"have a number of bins from 1 to {_MOST_BINS}")
        self._expect("bins")
        return int(text)

    def _values(self) -> tuple[str, ...]:
        values = [self._value()]
        while self._token.says(","):
            self._advance()
            values.append(self._value())
        return tuple(values)

    def _value(self, role: str = "a value") -> str:
        if self._token.kind not in ("word", "quoted"):
            self._fail(f"have {role}")
        return self._advance().text

    def _column(self) -> str:
        if self._token.kind == "word" and self._token.text.lower() in RESERVED:
            self._fail("have a column", fix="name a column; put quotes around it if it is called like that")
        return self._value("a column")

    def _more(self, word: str) -> bool:
        """Whether the optional word comes next; only it may, or the end."""
        if self._token.kind == "end":
            return False
        self._expect(word, role="go on with", otherwise=" or end")
        return True

    def _expect(self, *words: str, role: str = "have", otherwise: str = "") -> str:
        if not self._token.says(*words):
            near = get_close_matches(self._token.text.lower(), words, n=1)
            fix = f"did you mean {near[0]}?" if near else _EXAMPLE
            self._fail(f"{role} {_listed(words)}{otherwise}", fix=fix)
        return self._advance().text.lower()

    @property
    def _token(self) -> _Token:
        return self._tokens[self._next]

    def _advance(self) -> _Token:
        self._next += 1
        return self._tokens[self._next - 1]

    def _fail(self, rule: str, *, fix: str = _EXAMPLE) -> NoReturn:
        _refuse(self._token, rule, fix=fix)


def _tokens(text: str) -> Iterator[_Token]:
    place = 0
    while text[place:].strip():
        match = _TOKEN.match(text, place)
        if match is None:
            opened = len(text) - len(text[place:].lstrip())
            _refuse(_Token(text[opened:], opened + 1, "word"), "close the quote that it opens")
        yield _token(match)
        place = match.end()
    yield _Token("", len(text) + 1, "end")


def _token(match: re.Match[str]) -> _Token:
    group = str(match.lastgroup)
    if group in ("symbol", "word"):
        return _Token(match[group], match.start(group) + 1, "symbol" if group == "symbol" else "word")
    quote = "'" if group == "single" else '"'
    return _Token(match[group].replace(2 * quote, quote), match.start(group), "quoted")


def _both(earlier: Condition, later: Condition, start: _Token) -> Range:
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
            return _both(later, earlier, start)
    return _refuse(start, "have one condition on a column, or one lower and one upper end")


def _refuse(token: _Token, rule: str, *, fix: str = _EXAMPLE) -> NoReturn:
    given = "the end" if token.kind == "end" else token.text
    raise InvalidParameter("question", f"must {rule} at character {token.place}", given=given, fix=fix)


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
