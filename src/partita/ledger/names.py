"""What callers hand in, checked before anything is written: names, parts, days, requests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, date, datetime
from fractions import Fraction
from typing import Final, TypeAlias

from partita.errors import InvalidParameter
from partita.guarantee import Guarantee

__all__ = ["Part", "checked_day", "checked_guarantee", "checked_part", "checked_text", "digest", "writable"]

Part: TypeAlias = tuple[str, str]

_LONGEST_TEXT: Final = 200
_MOST_BITS: Final = 4096


def checked_text(value: object, name: str) -> str:
    """`value`, if it is a line of visible text without space around it."""
    if isinstance(value, str) and value and value.isprintable() and value == value.strip():
        if len(value) <= _LONGEST_TEXT:
            return value
        raise InvalidParameter(
            name, f"must have at most {_LONGEST_TEXT} characters", given=value, fix="shorten it"
        )
    raise InvalidParameter(
        name,
        "must be non-empty text in one line, without space around it",
        given=value,
        fix='pass a name like "people"',
    )


def checked_part(part: object) -> Part | None:
    """A column and one of its values, both as text, or None for everybody."""
    if part is None:
        return None
    if not isinstance(part, tuple) or len(part) != 2:
        raise InvalidParameter(
            "part", "must be a pair of a column and a value", given=part, fix='pass ("region", "north")'
        )
    return checked_text(part[0], "part column"), checked_text(part[1], "part value")


def checked_day(day: object) -> str:
    """A day as 2026-01-31, never a time; today in UTC if none is given.

    >>> checked_day(date(2026, 1, 31))
    '2026-01-31'
    """
    if day is None:
        return datetime.now(UTC).date().isoformat()
    if isinstance(day, date) and not isinstance(day, datetime):
        return day.isoformat()
    if isinstance(day, str) and _is_day(day):
        return day
    raise InvalidParameter("day", "must be a day", given=day, fix='pass a date or text like "2026-01-31"')


def checked_guarantee(guarantee: object) -> Guarantee:
    """`guarantee`, if it is one, of numbers that fit into a ledger."""
    if not isinstance(guarantee, Guarantee):
        raise InvalidParameter(
            "guarantee", "must be a Guarantee", given=guarantee, fix="pass the .guarantee of a mechanism"
        )
    for name in ("epsilon", "delta", "contributions", "intrusions"):
        writable(getattr(guarantee, name), name)
    return guarantee


def writable(number: Fraction | int, name: str) -> None:
    """Refuse a number of thousands of digits: every later sum would drag it along."""
    bits = max(number.numerator.bit_length(), number.denominator.bit_length())
    if bits > _MOST_BITS:
        raise InvalidParameter(
            name, f"must be a ratio of integers below 2^{_MOST_BITS}", given=bits, fix="round it up"
        )


def digest(request: object) -> str | None:
    """The SHA-256 of a request written as JSON, whatever the order of its entries.

    >>> digest({"epsilon": "1", "by": ["age"]}) == digest({"by": ["age"], "epsilon": "1"})
    True
    """
    if request is None:
        return None
    try:
        text = json.dumps(_plain(request), sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise InvalidParameter(
            "request",
            "must be a mapping that JSON can write, with text as keys",
            given=request,
            fix="write exact numbers as text",
        ) from None
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(request: object) -> dict[str, object]:
    if not isinstance(request, Mapping):
        raise TypeError
    return {_text_key(key): _plain_value(value) for key, value in request.items()}


def _plain_value(value: object) -> object:
    if isinstance(value, Mapping):
        return _plain(value)
    return [_plain_value(item) for item in value] if isinstance(value, (list, tuple)) else value


def _text_key(key: object) -> str:
    if not isinstance(key, str):
        raise TypeError
    return key


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
