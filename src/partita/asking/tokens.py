"""The words, quotes and signs of a question, each with its place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from fractions import Fraction
from typing import Final, Literal, NamedTuple, NoReturn, final

from partita.errors import InvalidParameter
from partita.exact import rational

__all__ = ["Token", "Tokens"]

_LONGEST: Final = 10_000
_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<symbol><=|>=|[<>=(),*])
          |'(?P<single>(?:[^']|'')*)'|"(?P<double>(?:[^"]|"")*)"
          |(?P<word>[^\s'"(),<>=*]+))""",
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
        if len(text) > _LONGEST:
            raise InvalidParameter(
                "question", f"must have at most {_LONGEST} characters", given=len(text), fix="ask several"
            )
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
        self.refuse(self.token, f"{role} {_listed(words)}", fix=fix)


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


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
