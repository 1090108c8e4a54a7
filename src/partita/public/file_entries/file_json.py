"""Canonical JSON: one text for each value, no floats, no surprises."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, NoReturn, cast

from partita.errors.errors import InvalidRelease
from partita.public.axis.base.ranges import Json

LONGEST: Final = 2**24
"""Bytes of the longest text that is written or read."""

_LARGEST: Final = 2**64
_DIGITS: Final = 20
_DEEPEST: Final = 16


def to_canonical(value: Mapping[str, Json]) -> bytes:
    r"""`value` with sorted keys, without white space, in UTF-8; as in RFC 8785, and without floats.

    >>> to_canonical({"b": [1, "é"], "a": None})
    b'{"a":null,"b":[1,"\xc3\xa9"]}'
    """
    _check(value, depth=0)
    try:
        text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()
    except (TypeError, ValueError):
        raise _refused("must be text that UTF-8 can write, lists and mappings") from None
    if len(text) > LONGEST:
        raise _refused(f"must be at most {LONGEST} bytes long")
    return text


def from_canonical(text: bytes) -> dict[str, Json]:
    """The mapping that `to_canonical` wrote; any other way to write it is refused.

    >>> from_canonical(b'{"a":[1,null]}')
    {'a': [1, None]}
    """
    if len(text) > LONGEST:
        raise _refused(f"must be at most {LONGEST} bytes long")
    try:
        value = json.loads(text.decode(), parse_float=_no_float, parse_int=_integer, parse_constant=_no_float)
    except (ValueError, RecursionError):
        raise _refused("must be JSON with integers of 64 bits and no other numbers") from None
    if not isinstance(value, dict) or to_canonical(value) != text:
        raise _refused("must be a JSON object in its canonical form")
    return cast(dict[str, Json], value)


def _check(value: object, depth: int) -> None:
    """Refuse what other languages could not read: floats, long integers, deep nesting, odd keys."""
    if depth > _DEEPEST:
        raise _refused(f"must be nested at most {_DEEPEST} deep")
    if isinstance(value, Mapping):
        if not all(type(key) is str for key in value):
            raise _refused("must have texts as keys")
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            _check(each, depth + 1)
    elif not (value is None or type(value) in (bool, str) or (type(value) is int and abs(value) <= _LARGEST)):
        raise _refused("must hold texts, truth values and integers of 64 bits only")


def _integer(text: str) -> int:
    if len(text) > _DIGITS + 1:
        raise ValueError
    return int(text)


def _no_float(text: str) -> NoReturn:
    raise ValueError


def _refused(rule: str) -> InvalidRelease:
    return InvalidRelease("specification", rule, fix="get a fresh copy of the release")
