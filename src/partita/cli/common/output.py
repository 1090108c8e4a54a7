"""What a command shows: text for people, JSON for programs, both on stdout."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TextIO, final

from partita.public.records import Record, plain


@final
@dataclass(frozen=True)
class Outcome:
    """The result of a command, twice: as text, and as one or more JSON objects."""

    text: str
    records: Sequence[Record]

    @staticmethod
    def of(text: str, /, **entries: object) -> Outcome:
        """A result that is one object."""
        return Outcome(text, [entries])


def show(outcome: Outcome, *, as_json: bool) -> None:
    """Write a result to stdout, all of it, or raise what the system says."""
    if as_json:
        text = "\n".join(json.dumps(plain(record), allow_nan=False) for record in outcome.records)
    else:
        text = printable(outcome.text, sys.stdout)
    if text and sys.stdout is not None:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()


def printable(text: str, stream: TextIO | None) -> str:
    r"""Text that cannot steer a terminal and that its encoding can write.

    >>> print(printable("clear \x1b[2J", None))
    clear \x1b[2J
    """
    shown = "".join(sign if sign.isprintable() or sign == "\n" else _escaped(sign) for sign in text)
    return shown.encode(_encoding(stream), "replace").decode(_encoding(stream))


def can_write(text: str, stream: TextIO | None) -> bool:
    """Whether the encoding of a stream has all these characters."""
    return text.encode(_encoding(stream), "ignore").decode(_encoding(stream)) == text


def with_error(value: float, error: float) -> str:
    """A count and its standard error.

    >>> with_error(1234.5, 12.34)
    '1,234 ± 12.3'
    """
    from partita.public.base.figures import figure

    return f"{figure(value)} ± {figure(error)}"


def _encoding(stream: TextIO | None) -> str:
    return getattr(stream, "encoding", None) or "utf-8"


def _escaped(sign: str) -> str:
    return sign.encode("unicode_escape").decode("ascii")
