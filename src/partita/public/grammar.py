"""Questions read from text, by the forms of their kinds.

    question   := count [where conditions]
                | quantile SHARE of COLUMN [where conditions] | median of COLUMN [where conditions]
                | share where conditions [among conditions]
                | cdf of COLUMN [at VALUE {, VALUE}] [where conditions]
                | histogram of COLUMN [in NUMBER bins] [where conditions]
                | histogram of COLUMN, COLUMN [in NUMBER [by NUMBER] bins] [where conditions]
                | difference between (conditions) and (conditions)
                | (sum | mean | variance | std) of COLUMN [where conditions]
                | answers
                | (count | sum of COLUMN | mean of COLUMN | quantile SHARE of COLUMN | median of COLUMN
                  | share where conditions [among conditions]) by key {, key}
                  [where conditions] [order by (key | count | sum | ...) [asc | desc]] [limit NUMBER]
    key        := COLUMN | (year | quarter | month | week | day | weekday | hour)(COLUMN)
                | bins(COLUMN, NUMBER) | breaks(COLUMN {, VALUE}) | level(COLUMN, VALUE)
    conditions := all {or all}
    all        := factor {and factor}
    factor     := condition | not factor | (conditions) | half-space
    condition  := COLUMN [not] between VALUE and VALUE
                | COLUMN >= VALUE | COLUMN > VALUE | COLUMN <= VALUE | COLUMN < VALUE
                | COLUMN = VALUE | COLUMN != VALUE | COLUMN [not] in (VALUE {, VALUE})
                | COLUMN is [not] null | invalid | below | above | other
    half-space := [-] term {(+ | -) term} (<= | >=) NUMBER
    term       := [NUMBER *] COLUMN

A column or a value is one word, or anything in single or double quotes (doubled inside). Words of
the grammar may be written in capitals; a column that is called like one needs quotes. The + and - of
a half-space stand between spaces; it stands in a count, outside of `or`, `not` and parentheses. A value of a
date or a time may be a period: 2013, 2013-03, 2013-Q1, 2013-W05, or a day. Values stay text, so that nothing
is rounded on its way to the release.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from fractions import Fraction
from typing import Any, Final, Literal, NamedTuple, NoReturn, TypeVar, final

from partita.errors import InvalidParameter, check
from partita.numbers import check_probability, rational
from partita.public import questions
from partita.public.conditions import Not, OneOf, Range, Where, join_both, join_either, negate
from partita.public.keys import UNITS, GroupKey, GroupOrder, check_keys

_MOST_LIMIT: Final = 2**20
_CUTS: Final = ("bins", "breaks", "level")
_DEEPEST: Final = 40  # parentheses and `not` inside of each other
_LONGEST: Final = 10_000  # characters: parsing takes time, and long lists of values belong in a batch
_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<symbol>!=|<>|<=|>=|[<>=(),*])
          |'(?P<single>(?:[^']|'')*)'|"(?P<double>(?:[^"]|"")*)"
          |(?P<word>(?:(?!!=)[^\s'"(),<>=*])+))""",
    re.VERBOSE,
)


class Token(NamedTuple):
    """A piece of the text, where it starts, counted from 1, and whether it is a word of the grammar."""

    text: str
    place: int
    kind: Literal["word", "quoted", "symbol", "end"]

    def says(self, *words: str) -> bool:
        """Whether it is one of these words or symbols of the grammar."""
        return self.kind in ("word", "symbol") and self.text.lower() in words


@final
class Tokens:
    """The pieces of a text, taken one after the other; whatever comes wrongly is refused at its place.

    `example` is a question like the one that is being read, shown where nothing better can be said.
    """

    def __init__(self, text: str, *, example: str) -> None:
        self.example = example
        rule = f"must have at most {_LONGEST} characters"
        check(len(text) <= _LONGEST, "question", rule, given=len(text), fix="ask several")
        self._tokens = list(_tokens(text))
        self._next = 0

    @property
    def token(self) -> Token:
        """The next piece, which is the end if all are taken."""
        return self._tokens[self._next]

    @property
    def taken(self) -> int:
        """How many pieces are taken."""
        return self._next

    def restart(self, taken: int, *, example: str) -> None:
        """Go back to where so many pieces were taken."""
        self._next, self.example = taken, example

    @property
    def ahead(self) -> Token:
        """The piece behind the next one, or the end."""
        return self._tokens[min(self._next + 1, len(self._tokens) - 1)]

    def skip(self, word: str) -> bool:
        """Whether this word comes next; then it is taken."""
        return self.token.says(word) and bool(self._take())

    def comes(self, word: str, *others: str) -> bool:
        """Whether this optional word comes next, and then take it; else only the others may.

        Empty text among the others is the end.
        """
        if self.skip(word):
            return True
        if self.token.says(*others) or (self.token.kind == "end" and "" in others):
            return False
        expected = [each or "end" for each in (word, *others)]
        return self._miss(*expected, role="go on with" if "" in others else "have")

    def expect(self, *words: str, role: str = "have") -> str:
        """The next piece, which must be one of these words or symbols, in small letters."""
        return self._take().text.lower() if self.token.says(*words) else self._miss(*words, role=role)

    def value(self, role: str = "a value") -> str:
        """The next piece, which must be a word or quoted."""
        if self.token.kind not in ("word", "quoted"):
            self.refuse(self.token, f"have {role}")
        return self._take().text

    def number(self, role: str) -> Fraction:
        """The next piece, which must be a number."""
        place = self.token.place
        return rational(self.value(role), f"number at character {place} of the question")

    def end(self) -> None:
        """Nothing may be left."""
        if self.token.kind != "end":
            self.refuse(self.token, "end")

    def refuse(self, token: Token, rule: str, *, fix: str | None = None) -> NoReturn:
        """The error for a question that stops making sense at this piece."""
        _refuse(token, rule, fix=f'for example "{self.example}"' if fix is None else fix)

    def _take(self) -> Token:
        self._next += 1
        return self._tokens[self._next - 1]

    def _miss(self, *words: str, role: str) -> NoReturn:
        near = get_close_matches(self.token.text.lower(), words, n=1)
        fix = f"did you mean {near[0]}?" if near else None
        self.refuse(self.token, f"{role} {_join_words(words)}", fix=fix)


def _refuse(token: Token, rule: str, *, fix: str) -> NoReturn:
    given = "the end" if token.kind == "end" else token.text
    raise InvalidParameter("question", f"must {rule} at character {token.place}", given=given, fix=fix)


def _tokens(text: str) -> Iterator[Token]:
    """All pieces of a text, the last of them its end."""
    place = 0
    while text[place:].strip():
        match = _TOKEN.match(text, place)
        if match is None:
            opened = len(text) - len(text[place:].lstrip())
            quote = Token(text[opened:], opened + 1, "word")
            _refuse(quote, "close the quote that it opens", fix="double a quote that stands for itself")
        yield _token(match)
        place = match.end()
    yield Token("", len(text) + 1, "end")


def _token(match: re.Match[str]) -> Token:
    group = str(match.lastgroup)
    if group in ("symbol", "word"):
        return Token(match[group], match.start(group) + 1, "symbol" if group == "symbol" else "word")
    quote = "'" if group == "single" else '"'
    return Token(match[group].replace(2 * quote, quote), match.start(group), "quoted")


def _join_words(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


_EXAMPLE: Final = "age between 30 and 39"


def parse_question(text: str) -> questions.Question:
    """The question that `text` asks.

    >>> parse_question("count where age > 30 and age <= 39")["where"]
    {'age': Range(low='30', high='39', closed='right')}
    >>> parse_question("count wher age > 30")
    Traceback (most recent call last):
        ...
    partita.errors.InvalidParameter: question must go on with where or end at character 7, got 'wher'; \
did you mean where?
    """
    kind, arguments = parse_phrase(text, questions.KINDS.values(), example=f"count where {_EXAMPLE}")
    return kind(**arguments)


KindOf = TypeVar("KindOf", bound=questions.PhraseKind)


def parse_phrase(text: str, kinds: Iterable[KindOf], *, example: str) -> tuple[KindOf, dict[str, Any]]:
    """The kind of phrase that `text` is, and its arguments.

    Of several forms that begin with the same word, the first that fits is taken. If none does, the error is
    that of the form which fits furthest. A form may begin with a number.
    """
    tokens = Tokens(text, example=example)
    forms = [(form, kind) for kind in kinds for form in kind.parsed_forms]
    counted = [(form, kind) for form, kind in forms if isinstance(form.pieces[0], questions.Parameter)]
    begins = [(form, kind) for form, kind in forms if form not in [each for each, _ in counted]]
    if not (counted and tokens.token.kind == "word" and tokens.token.text.isdecimal()):
        word = tokens.expect(*dict.fromkeys(form.word for form, _ in begins), role="start with")
        counted = [(form, kind) for form, kind in begins if form.word == word]
    start, missed = tokens.taken, list[tuple[int, InvalidParameter]]()
    for form, kind in counted:
        tokens.restart(start, example=form.example)
        try:
            return kind, _Reader(tokens).arguments(kind, form.pieces[start:])
        except InvalidParameter as error:
            missed.append((tokens.taken, error))
    raise max(missed, key=lambda each: each[0])[1]


def parse_key(text: str) -> GroupKey:
    """What rows are grouped by, from text.

    >>> parse_key("month(when)"), parse_key("breaks(age, 18, 65)")
    (GroupKey(month(when)), GroupKey(breaks(age, 18, 65)))
    """
    tokens = Tokens(text, example="month(when)")
    key = _Reader(tokens).key()
    tokens.end()
    return key


def parse_order(text: str) -> GroupOrder:
    """An order of groups, as it stands behind `order by`.

    >>> parse_order("count desc")
    GroupOrder(key=GroupKey(count), descending=True)
    """
    tokens = Tokens(text, example="count desc")
    order = _Reader(tokens).order()
    tokens.end()
    return order


def parse_where(text: str, half_spaces: list[questions.HalfSpaceText] | None = None) -> Where:
    """The conditions that `text` says, as they stand behind `where`; a half-space goes in the list, if any.

    >>> parse_where("age >= 65 and region = north")
    {'age': Range(low='65', high=None, closed='both'), 'region': 'north'}
    """
    tokens = Tokens(text, example=_EXAMPLE)
    where = _Reader(tokens).conditions(half_spaces)
    tokens.end()
    return where


class _Reader:
    """A question, read from left to right."""

    def __init__(self, tokens: Tokens) -> None:
        self._text = tokens
        self._depth = 0

    def arguments(self, kind: questions.PhraseKind, pieces: Sequence[questions.Piece]) -> dict[str, Any]:
        """All that these pieces say, to the end of the text."""
        arguments: dict[str, Any] = {}
        self._read(kind, pieces, arguments)
        self._text.end()
        return arguments

    def _read(
        self, kind: questions.PhraseKind, pieces: Sequence[questions.Piece], arguments: dict[str, Any]
    ) -> None:
        for place, piece in enumerate(pieces, 1):
            if isinstance(piece, str):
                self._text.expect(piece)
            elif isinstance(piece, questions.Parameter):
                arguments |= self._argument(kind, piece)
            elif self._text.comes(piece.word, *_next_words(pieces[place:])):
                self._read(kind, piece.pieces[1:], arguments)

    def _argument(self, kind: questions.PhraseKind, parameter: questions.Parameter) -> dict[str, Any]:
        match parameter.type:
            case questions.Type.COLUMN:
                return {parameter.name: self._column()}
            case questions.Type.SHARE:
                place = self._text.token.place
                share = self._text.value("a share such as 0.5")
                return {
                    parameter.name: check_probability(share, f"share at character {place} of the question")
                }
            case questions.Type.BINS:
                return {parameter.name: self._number_of_bins()}
            case questions.Type.NUMBER:
                return {parameter.name: self._whole_number("a number", most=questions.MOST_QUANTILES)}
            case questions.Type.VALUES:
                return {parameter.name: self._values()}
            case questions.Type.LIMIT:
                return {parameter.name: self._whole_number("a number of groups", most=_MOST_LIMIT)}
            case questions.Type.KEYS:
                return {parameter.name: self._keys()}
            case questions.Type.ORDER:
                return {parameter.name: self.order()}
            case questions.Type.FLAG:
                self._text.expect(parameter.name)
                return {parameter.name: True}
        found: list[questions.HalfSpaceText] = []
        shapes = [each.name for each in kind.having(questions.Type.HALF_SPACE)]
        where = self.conditions(found if shapes else None)
        return {parameter.name: where, **dict(zip(shapes, found, strict=False))}

    def conditions(self, half_spaces: list[questions.HalfSpaceText] | None) -> Where:
        """Conditions up to the first that neither `and` nor `or` follows; a half-space goes in that list."""
        start = self._text.token
        parts = [self._all(half_spaces)]
        while self._text.skip("or"):
            if half_spaces:
                self._text.refuse(start, "have a half-space outside of `or`")
            parts.append(self._all(None))
        return join_either(parts)

    def _all(self, half_spaces: list[questions.HalfSpaceText] | None) -> Where:
        where: Where = {}
        while True:
            start = self._text.token
            shaped = start.says("-") or self._text.ahead.says("*", "+", "-")
            if half_spaces is not None and shaped and not start.says("not"):
                half_spaces.append(self._half_space())
                if len(half_spaces) > 1:
                    self._text.refuse(start, "have one half-space")
            else:
                factor = self._factor()
                for column in factor:
                    if isinstance(factor[column], str) and isinstance(where.get(column), str):
                        rule, fix = (
                            "have one value of a column",
                            f"write {column} in (..., ...) for any of several",
                        )
                        self._text.refuse(start, rule, fix=fix)
                where = join_both(where, factor) if where else factor
            if not self._text.skip("and"):
                return where

    def _factor(self) -> Where:
        """A condition, its opposite, or conditions in parentheses."""
        start = self._text.token
        if not start.says("not", "("):
            return {self._column(): self._condition()}
        self._depth += 1
        if self._depth > _DEEPEST:
            self._text.refuse(start, f"have at most {_DEEPEST} parentheses and `not` inside of each other")
        if self._text.skip("not"):
            found = negate(self._factor())
        else:
            self._text.expect("(")
            found = self.conditions(None)
            self._text.expect(")")
        self._depth -= 1
        return found

    def _condition(self) -> object:
        signs = ("=", "!=", "<>", "<", "<=", ">", ">=")
        match self._text.expect("between", "in", "is", "not", *signs):
            case "not":
                return Not(self._values_of(self._text.expect("between", "in")))
            case "is":
                from partita.domain.base import Special

                opposite = self._text.skip("not")
                special = Special.named(self._text.expect(*questions.SPECIALS))
                return Not(special) if opposite else special
            case "=":
                return self._text.value()
            case "!=" | "<>":
                return Not(self._text.value())
            case ">" | ">=" as sign:
                return Range(self._text.value(), None, "both" if sign == ">=" else "right")
            case "<" | "<=" as sign:
                return Range(None, self._text.value(), "both" if sign == "<=" else "left")
            case word:
                return self._values_of(word)

    def _values_of(self, word: str) -> Range | OneOf:
        """What `between` or `in` says."""
        if word == "between":
            low = self._text.value()
            self._text.expect("and")
            return Range(low, self._text.value())
        self._text.expect("(")
        values = self._values()
        self._text.expect(")")
        return OneOf(values)

    def key(self) -> GroupKey:
        """A column, or a unit, bins, breaks or a level of it."""
        word = self._text.token
        if not (word.says(*UNITS, *_CUTS) and self._text.ahead.says("(")):
            return GroupKey(self._column())
        kind = self._text.expect(*UNITS, *_CUTS)
        self._text.expect("(")
        column = self._column()
        if kind in _CUTS:
            self._text.expect(",")
        if kind == "bins":
            found = GroupKey(column, bins=self._number_of_bins())
        elif kind == "breaks":
            found = GroupKey(column, breaks=self._values())
        elif kind == "level":
            found = GroupKey(column, level=self._level())
        else:
            found = GroupKey(column, unit=next(unit for unit in UNITS if unit == kind))
        self._text.expect(")")
        return found

    def order(self) -> GroupOrder:
        """A key or the name of the statistic, and whether the largest comes first."""
        key = self.key()
        if self._text.skip("desc"):
            return GroupOrder(key, descending=True)
        self._text.skip("asc")
        return GroupOrder(key)

    def _keys(self) -> tuple[GroupKey, ...]:
        keys = [self.key()]
        while self._text.skip(","):
            keys.append(self.key())
        return check_keys(keys)

    def _half_space(self) -> questions.HalfSpaceText:
        weights: dict[str, Fraction] = {}
        self._add_term(weights, -1 if self._text.skip("-") else 1)
        while (sign := self._text.expect("+", "-", "<=", ">=")) in ("+", "-"):
            self._add_term(weights, -1 if sign == "-" else 1)
        return questions.HalfSpaceText(weights, self._text.number("a number"), "<=" if sign == "<=" else ">=")

    def _add_term(self, weights: dict[str, Fraction], sign: int) -> None:
        weight = Fraction(sign)
        if self._text.ahead.says("*"):
            weight *= self._text.number("a weight")
            self._text.expect("*")
        start, column = self._text.token, self._column()
        if column in weights:
            self._text.refuse(start, "name each column of a half-space once")
        weights[column] = weight

    def _number_of_bins(self) -> int:
        from partita.public.results import MOST_BINS

        return self._whole_number("a number of bins", most=MOST_BINS)

    def _level(self) -> str | int:
        """A level by its name, or by its number from the top."""
        text = self._text.value("a level")
        return int(text) if text.isascii() and text.isdecimal() and len(text) < 3 else text

    def _whole_number(self, role: str, *, most: int) -> int:
        token, text = self._text.token, self._text.value(role)
        if not text.isdecimal() or len(text) > 9 or not 1 <= int(text) <= most:
            self._text.refuse(token, f"have {role} from 1 to {most}")
        return int(text)

    def _values(self) -> tuple[str, ...]:
        values = [self._text.value()]
        while self._text.skip(","):
            values.append(self._text.value())
        return tuple(values)

    def _column(self) -> str:
        token = self._text.token
        if token.kind == "word" and token.text.lower() in questions.RESERVED:
            fix = "name a column; put quotes around it if it is called like that"
            self._text.refuse(token, "have a column", fix=fix)
        return self._text.value("a column")


def _next_words(pieces: Sequence[questions.Piece]) -> list[str]:
    """The words that may follow where an optional part is left out; empty text stands for the end."""
    words: list[str] = []
    for piece in pieces:
        if isinstance(piece, str):
            return [*words, piece]
        if isinstance(piece, questions.WrittenForm):
            words.append(piece.word)
    return [*words, ""]
