"""What a command shows: text for people, JSON for programs, both on stdout."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import TextIO, TypeAlias, final

__all__ = ["Outcome", "Record", "can_write", "plain", "printable", "show", "with_error"]

Record: TypeAlias = Mapping[str, object]


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


def plain(value: object) -> object:
    """A value as JSON can say it: exact numbers and dates as text, what is not finite as null.

    >>> plain({"epsilon": Fraction(1, 3), "high": math.inf})
    {'epsilon': '1/3', 'high': None}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (Fraction, Decimal, date)):
        return value.isoformat() if isinstance(value, date) else str(value)
    return value


def with_error(value: float, error: float) -> str:
    """A count and its standard error.

    >>> with_error(1234.5, 12.34)
    '1,234 ± 12.3'
    """
    from partita.releases.figures import figure

    return f"{figure(value)} ± {figure(error)}"


def _encoding(stream: TextIO | None) -> str:
    return getattr(stream, "encoding", None) or "utf-8"


def _escaped(sign: str) -> str:
    return sign.encode("unicode_escape").decode("ascii")
