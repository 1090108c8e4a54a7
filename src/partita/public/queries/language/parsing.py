"""Queries read from text: a small grammar, no evaluation of code, and limits that hold for any text.

    queries   := product {+ product}
    product   := part {* part}
    part      := NUMBER | ( queries ) | WORD ( [argument {, argument}] )
    argument  := item | "[" item {, item} "]" | WORD = NUMBER
    item      := key | ( key {, key} ) | { entry {, entry} }
    entry     := (key | ( key {, key} )) : NUMBER
    key       := NUMBER | WORD | QUOTED

The words none, null, invalid, below, above and other mean an open end and special cells, unless quoted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any, Final, NamedTuple, NoReturn, final

from partita.domain.base.base import Special
from partita.errors.checks import check_type
from partita.errors.errors import InvalidParameter
from partita.numbers import rational
from partita.public.queries.language import language
from partita.public.queries.queries.queries import MOST_LISTS, Concatenation, Queries, Times
from partita.public.queries.queries.writing import KEYWORDS

_LONGEST: Final = 2**21
_DEEPEST: Final = 32
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
    reader = _Reader(text)
    found = reader.queries(0)
    reader.expect("")
    return found


def queries_from(json: object) -> Queries:
    """The queries that `to_json` wrote."""
    json = check_type(json, str, "queries", "must be text", fix=_EXAMPLE)
    return parse(json)


class _Token(NamedTuple):
    kind: str
    text: str
    place: int


class _Row(dict[Any, Fraction]):
    """The entries between braces."""


@final
class _Reader:
    """Reads one piece after the other; what comes wrongly is refused at its place."""

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
        if self._skip("["):
            self._listed(values)
        elif self._token == ("word", "step", self._token.place) and not options:
            name = self._take()
            if self._skip("="):
                options[name.text] = self._number()
            else:
                values.append(_key(name))
        else:
            values.append(self._item())

    def _listed(self, values: list[Any]) -> None:
        """A list in square brackets, as Python writes it, stands for what is in it."""
        values.append(self._item())
        while not self._skip("]"):
            self.expect(",")
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
    """All pieces of a text, the last of them its end."""
    place, end = 0, len(text.rstrip())
    while place < end:
        match = _TOKEN.match(text, place)
        if match is None:
            _refuse(
                _Token("odd", text[place : place + 20].strip(), place), "have words, numbers and quoted texts"
            )
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
    raise InvalidParameter(
        "queries", f"must {rule} at character {token.place + 1}", given=given, fix=_EXAMPLE
    )


def _ranges(column: Any, *ends: Any, **step: Any) -> Queries:
    return language.ranges(column, list(ends) if ends else None, **step)


def _power(column: Any, exponent: Any) -> Queries:
    exact: Any = rational(exponent, "exponent")
    return language.power(column, int(exact) if exact.denominator == 1 else exact)


def _matrix(*arguments: Any) -> Queries:
    rows = [each for each in arguments if isinstance(each, _Row)]
    columns = arguments[: len(arguments) - len(rows)]
    return language.matrix(columns, rows)


_WORDS: Final[Mapping[str, Callable[..., Queries]]] = {
    "total": language.total,
    "between": language.between,
    "ranges": _ranges,
    "prefixes": language.prefixes,
    "marginal": language.marginal,
    "value": language.value,
    "clipped": language.clipped,
    "power": _power,
    "weights": _matrix,
    "matrix": _matrix,
}
