"""How columns, values and numbers are written in the text of a query."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from fractions import Fraction
from numbers import Real
from typing import Final, TypeAlias

import numpy as np

from partita.domain.base.base import Special
from partita.domain.columns.text import number_text
from partita.errors.checks import check
from partita.errors.errors import InvalidParameter
from partita.numbers import rational

Key: TypeAlias = str | Special
"""What stands for a cell: the text of its value, or a special cell."""

KEYWORDS: Final = ("none", *(str(special) for special in Special if special is not Special.ORDINARY))

_LONGEST_NAME: Final = 1000
_WORD: Final = re.compile(r"[^\W\d]\w*")
_NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?(/[0-9]+)?")


def column_name(column: object) -> str:
    """The name of a column."""
    rule, fix = "must be the name of a column", 'pass "age"'
    check(isinstance(column, str) and 0 < len(column) <= _LONGEST_NAME, "column", rule, given=column, fix=fix)
    return str(column)


def value_text(value: object, name: str = "value") -> str:
    """A public value as text, which every domain reads as that value.

    >>> value_text(30), value_text(0.5), value_text(datetime.date(2026, 1, 31))
    ('30', '0.5', '2026-01-31')
    """
    if isinstance(value, np.generic):
        return value_text(value.item() if not isinstance(value, np.datetime64) else str(value), name)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Special):
        raise _no_value(value, name)
    if isinstance(value, Decimal | Real):
        return number_text(rational(value, name))
    if isinstance(value, datetime.date | datetime.datetime):
        return value.isoformat()
    raise _no_value(value, name)


def key(value: object) -> Key:
    """What stands for a cell of a column."""
    return value if isinstance(value, Special) and value is not Special.ORDINARY else value_text(value)


def written(text: str) -> str:
    """A name or a value: as it is if it is a plain word or number, else in quotes."""
    plain = _NUMBER.fullmatch(text) or (_WORD.fullmatch(text) and text.lower() not in KEYWORDS)
    return text if plain else '"' + text.replace('"', '""') + '"'


def written_key(value: Key) -> str:
    """A cell: special ones by their names, without quotes."""
    return str(value) if isinstance(value, Special) else written(value)


def written_number(number: Fraction) -> str:
    """An exact number."""
    return number_text(number)


def _no_value(value: object, name: str) -> InvalidParameter:
    return InvalidParameter(name, "must be a number, text or date", given=value, fix="pass for example 30")


def written_call(name: str, *arguments: str) -> str:
    """A query of a name with arguments that are written already."""
    return f"{name}({', '.join(arguments)})"
