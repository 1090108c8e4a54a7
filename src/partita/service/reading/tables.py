"""Tables as CSV that a spreadsheet may open: no cell of it is a formula."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from typing import Final

from partita.asking.records import plain

__all__ = ["csv_text"]

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
_NUMBER: Final = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?(e[+-]?[0-9]+)?", re.IGNORECASE | re.ASCII)


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    r"""Rows as CSV; what is missing is empty, and text that would be a formula begins with an apostrophe.

    >>> csv_text([("town", "count"), ("=1+2", -3.5), ("-7", None)])
    "town,count\n'=1+2,-3.5\n-7,\n"
    """
    sink = io.StringIO()
    csv.writer(sink, lineterminator="\n").writerows(map(_cells, rows))
    return sink.getvalue()


def _cells(row: Iterable[object]) -> list[object]:
    return [_cell(plain(value)) for value in row]


def _cell(value: object) -> object:
    if not isinstance(value, str) or not value.startswith(_FORMULA) or _NUMBER.fullmatch(value):
        return value
    return f"'{value}"
