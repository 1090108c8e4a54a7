"""The words of the query language: each makes a list of linear queries.

    total()                                all rows
    between("age", 30, 39)                 the rows of a range, both ends included; None is an open end
    ranges("age")                          all ranges; step=10 for those of whole tens; or a list of pairs
    prefixes("age")                        for each value the rows up to it
    marginal("sex", "region")              the rows of each combination
    value("income")                        the sum of a column
    clipped("income", 100_000)             the sum of min(income, 100_000)
    power("income", 2)                     the sum of squares
    weights("age", {30: 1, 31: "1/2"})     a weight for each value; or a function, with a bound
    matrix("age", [{30: 1}, {31: 1}])      explicit queries

`*` multiplies, `+` puts lists one behind the other, numbers scale.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final, NamedTuple, NoReturn, final

from partita.domain.base import Special
from partita.errors import InvalidParameter, check, check_type
from partita.numbers import integer, rational
from partita.public.queries import expressions
from partita.public.queries.queries import (
    KEYWORDS,
    MOST_LISTS,
    Concatenation,
    Queries,
    Times,
    column_name,
    value_text,
)

_LARGEST_POWER: Final = 4  # moments that statistics need; larger ones soon exceed 64 bits
_LARGEST_BOUND: Final = 2**62
_STEPS: Final = 2**20  # steps in a bound: rounding a weight stays far below noise, and integers stay short


def total() -> Queries:
    """The number of all rows."""
    return expressions.Total()


def between(column: str, low: object, high: object) -> Queries:
    """The rows from low to high, both included; None is an open end, which takes what lies beyond, too.

    >>> between("age", 65, None)
    between(age, 65, none)
    """
    return expressions.Ranges(column_name(column), (_ends((low, high)),))


def ranges(
    column: str, ends: Sequence[tuple[object, object]] | None = None, *, step: object = None
) -> Queries:
    """All ranges of a column, those of whole steps from its lower bound on, or those of given ends.

    >>> ranges("age", [(0, 17), (18, 64)]) + ranges("age", step=10)
    ranges(age, (0, 17), (18, 64)) + ranges(age, step=10)
    """
    if ends is None:
        return expressions.Steps(column_name(column), None if step is None else _positive(step, "step"))
    check(step is None, "step", "must be left out where ends are given", given=step, fix="choose one")
    listed = isinstance(ends, list | tuple) and ends
    check(listed, "ends", "must be pairs of ends", given=ends, fix="pass for example [(0, 17)]")
    return expressions.Ranges(column_name(column), tuple(map(_ends, ends)))


def prefixes(column: str) -> Queries:
    """For each value of a column the rows up to it, those below its bounds included."""
    return expressions.Prefixes(column_name(column))


def marginal(*columns: str) -> Queries:
    """The rows of each combination of values, special cells included."""
    names = _names(columns)
    return expressions.Each(names[0]) if len(names) == 1 else expressions.Marginal(names)


def value(column: str) -> Queries:
    """The sum of a column. Null and invalid count as zero, what lies beyond the bounds as the bounds."""
    return expressions.Value(column_name(column))


def clipped(column: str, cap: object) -> Queries:
    """The sum of min(value, cap)."""
    return expressions.Value(column_name(column), cap=rational(cap, "cap"))


def power(column: str, exponent: int) -> Queries:
    """The sum of a power: with 2, what variances are made of."""
    return expressions.Value(
        column_name(column), power=integer(exponent, "exponent", low=1, high=_LARGEST_POWER)
    )


def weights(
    columns: str | Sequence[str],
    given: Mapping[Any, object] | expressions.Weight,
    *,
    bound: object = None,
    step: object = None,
) -> Queries:
    """One query with weights of the user: a mapping from values to weights, or a function of values.

    A function is called with the values of the columns in order, None for null and invalid, and its weights
    are clamped to [0, bound] and rounded to the nearest `step`: at most 1, and 2^-20 of the bound if that is
    less. An exception, NaN, or a result that is not a number is the weight zero.

    >>> weights("age", {30: 1, 31: "1/2"}) + weights("age", len, bound=8)
    weights(age, {30: 1, 31: 0.5}) + weights(age, <len>, bound=8, step=0.00000762939453125)
    """
    names = _names([columns] if isinstance(columns, str) else columns)
    if not callable(given):
        return matrix(names, [given])
    most = _positive(bound, "bound")
    return expressions.Function(
        names, given, most, _finest(most) if step is None else _positive(step, "step")
    )


def matrix(columns: str | Sequence[str], rows: Sequence[Mapping[Any, object]]) -> Queries:
    """Explicit queries: for each a mapping from values, or tuples of values, to weights.

    >>> matrix(["age", "sex"], [{(30, "f"): 1}, {(30, "m"): "1/3", (31, "m"): 2}])
    matrix(age, sex, {(30, f): 1}, {(30, m): 1/3, (31, m): 2})
    """
    names = _names([columns] if isinstance(columns, str) else columns)
    check_type(rows, (list, tuple), "rows", "must be a list of mappings", fix="pass [{30: 1}]")
    return expressions.Matrix(names, expressions.parse_rows(names, rows))


def _ends(pair: object) -> tuple[str | None, str | None]:
    if not isinstance(pair, list | tuple) or len(pair) != 2:
        raise InvalidParameter("ends", "must be pairs of ends", given=pair, fix="pass for example (0, 17)")
    low, high = (None if end is None else value_text(end, "end") for end in pair)
    return low, high


def _names(columns: object) -> tuple[str, ...]:
    names = tuple(map(column_name, columns)) if isinstance(columns, list | tuple) else ()
    rule, fix = "must be different names", 'pass for example ("age", "income")'
    check(names and len(set(names)) == len(names), "columns", rule, given=columns, fix=fix)
    return names


def _positive(value: object, name: str) -> Fraction:
    exact = rational(value, name)
    rule, fix = "must lie between 2^-62 and 2^62", "pass for example 1"
    check(Fraction(1, _LARGEST_BOUND) <= exact <= _LARGEST_BOUND, name, rule, given=value, fix=fix)
    return exact


def _finest(bound: Fraction) -> Fraction:
    """The power of two at most 1 and at most 2^-20 of the bound: whole weights stay exact."""
    step = Fraction(1)
    while step * _STEPS > bound:
        step /= 2
    return step


# Parse queries from text: a small grammar, no evaluation of code, and limits that hold for any text.
#
#     queries   := product {+ product}
#     product   := part {* part}
#     part      := NUMBER | ( queries ) | WORD ( [argument {, argument}] )
#     argument  := item | "[" item {, item} "]" | WORD = NUMBER
#     item      := key | ( key {, key} ) | { entry {, entry} }
#     entry     := (key | ( key {, key} )) : NUMBER
#     key       := NUMBER | WORD | QUOTED
#
# The words none, null, invalid, below, above and other mean an open end and special cells, unless quoted.


_LONGEST: Final = 2**21
_DEEPEST: Final = 32  # the parser calls itself for every bracket: far below Python's recursion limit
_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<symbol>[()*+,{}:=\[\]])
          |(?P<number>-?[0-9]+(?:\.[0-9]+)?(?:/[0-9]+)?)(?![\w.])
          |(?P<word>[^\W\d]\w*)
          |'(?P<single>(?:[^']|'')*)'|"(?P<double>(?:[^"]|"")*)")""",
    re.VERBOSE,
)
_EXAMPLE: Final = 'for example "ranges(age) * value(income)"'


def parse(text: object) -> Queries:
    """The queries that a text writes.

    >>> parse("ranges(age, step=10) * (total() + 1/3 * value(income))")
    ranges(age, step=10) * (total() + 1/3 * value(income))
    """
    if not isinstance(text, str) or len(text) > _LONGEST:
        rule = f"must be text of at most {_LONGEST} characters"
        raise InvalidParameter("queries", rule, given=text, fix=_EXAMPLE)
    parser = _Parser(text)
    found = parser.queries(0)
    parser.expect("")
    return found


def read_queries(json: object) -> Queries:
    """The queries that `to_json` wrote."""
    return parse(check_type(json, str, "queries", "must be text", fix=_EXAMPLE))


class _Token(NamedTuple):
    kind: str
    text: str
    place: int


class _Row(dict[Any, Fraction]):
    """The entries between braces."""


@final
class _Parser:
    """Reads one token after the other; an error names the place of the token that does not fit."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._token = next(self._tokens)

    def queries(self, depth: int) -> Queries:
        """Products with + between them."""
        found = [self._product(depth)]
        while self._skip("+"):
            if len(found) == MOST_LISTS:
                self._refuse(f"have at most {MOST_LISTS} lists")
            found.append(self._product(depth))
        return Concatenation.of(found)

    def expect(self, symbol: str) -> None:
        """A symbol must come next; nothing, the end."""
        if self._token.kind not in ("symbol", "end") or self._token.text != symbol:
            self._refuse(f"have {symbol!r}" if symbol else "end")
        self._take()

    def _product(self, depth: int) -> Queries:
        scale, lists = Fraction(1), []
        while True:
            if self._token.kind == "number":
                scale *= self._number()
            else:
                lists.append(self._part(depth))
            if not self._skip("*"):
                break
        if not lists:
            self._refuse("have queries beside the number")
        return Times.of(scale, lists)

    def _part(self, depth: int) -> Queries:
        if depth > _DEEPEST:
            self._refuse(f"have at most {_DEEPEST} brackets in brackets")
        if self._skip("("):
            found = self.queries(depth + 1)
            self.expect(")")
            return found
        token = self._token
        if token.kind != "word" or token.text not in _WORDS:
            self._refuse(f"have one of {', '.join(_WORDS)}")
        self._take()
        return self._call(token)

    def _call(self, word: _Token) -> Queries:
        self.expect("(")
        values: list[Any] = []
        options: dict[str, Fraction] = {}
        while not self._skip(")"):
            if values or options:
                self.expect(",")
            self._argument(values, options)
        try:
            return _WORDS[word.text](*values, **options)
        except TypeError:
            return _refuse(word, f"have the arguments of {word.text}")

    def _argument(self, values: list[Any], options: dict[str, Fraction]) -> None:
        if self._skip("["):  # a list, as Python writes it, stands for its items
            values.append(self._item())
            while not self._skip("]"):
                self.expect(",")
                values.append(self._item())
        elif self._token == ("word", "step", self._token.place) and not options:
            name = self._take()
            if self._skip("="):
                options[name.text] = self._number()
            else:
                values.append(_key(name))
        else:
            values.append(self._item())

    def _item(self) -> Any:
        return self._row() if self._skip("{") else self._keys()

    def _row(self) -> _Row:
        row = _Row()
        while not self._skip("}"):
            if row:
                self.expect(",")
            place, keys = self._token, self._keys()
            self.expect(":")
            if keys in row:
                _refuse(place, "name each cell once")
            row[keys] = self._number()
        return row

    def _keys(self) -> Any:
        if not self._skip("("):
            return _key(self._take())
        keys = [_key(self._take())]
        while self._skip(","):
            keys.append(_key(self._take()))
        self.expect(")")
        return tuple(keys)

    def _number(self) -> Fraction:
        if self._token.kind != "number":
            self._refuse("have a number")
        return rational(self._take().text, "queries")

    def _skip(self, symbol: str) -> bool:
        there = self._token.kind == "symbol" and self._token.text == symbol
        if there:
            self._take()
        return there

    def _take(self) -> _Token:
        taken = self._token
        self._token = next(self._tokens, taken)
        return taken

    def _refuse(self, rule: str) -> NoReturn:
        _refuse(self._token, rule)


def _tokens(text: str) -> Iterator[_Token]:
    """All tokens of a text, the last of them its end."""
    place, end = 0, len(text.rstrip())
    while place < end:
        match = _TOKEN.match(text, place)
        if match is None:
            odd = _Token("odd", text[place : place + 20].strip(), place)
            _refuse(odd, "have words, numbers and quoted texts")
        kind = str(match.lastgroup)
        quote = {"single": "'", "double": '"'}.get(kind)
        if quote:
            yield _Token("quoted", match[kind].replace(2 * quote, quote), match.start(kind))
        else:
            yield _Token(kind, match[kind], match.start(kind))
        place = match.end()
    yield _Token("end", "", len(text))


def _key(token: _Token) -> str | Special | None:
    """A value, a special cell by its name, or None."""
    if token.kind in ("symbol", "end"):
        _refuse(token, "have a value")
    if token.kind == "word" and token.text.lower() in KEYWORDS:
        return None if token.text.lower() == "none" else Special.named(token.text)
    return token.text


def _refuse(token: _Token, rule: str) -> NoReturn:
    given = "the end" if token.kind == "end" else token.text
    rule = f"must {rule} at character {token.place + 1}"
    raise InvalidParameter("queries", rule, given=given, fix=_EXAMPLE)


def _ranges(column: Any, *ends: Any, **step: Any) -> Queries:
    return ranges(column, list(ends) if ends else None, **step)


def _power(column: Any, exponent: Any) -> Queries:
    exact: Any = rational(exponent, "exponent")
    return power(column, int(exact) if exact.denominator == 1 else exact)


def _matrix(*arguments: Any) -> Queries:
    rows = [each for each in arguments if isinstance(each, _Row)]
    columns = arguments[: len(arguments) - len(rows)]
    return matrix(columns, rows)


_WORDS: Final[Mapping[str, Callable[..., Queries]]] = {
    "total": total,
    "between": between,
    "ranges": _ranges,
    "prefixes": prefixes,
    "marginal": marginal,
    "value": value,
    "clipped": clipped,
    "power": _power,
    "weights": _matrix,
    "matrix": _matrix,
}
