"""Formats that a domain does not read: which of them rows are in, and how to convert them.

The values here are those that a domain found invalid, or other. They are told apart by patterns alone, and
what is said about a format shows an example of ours, never a value of the data.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from partita.arrays import Ints
from partita.domain.base import Domain
from partita.domain.category import Category
from partita.domain.columns import LONGEST, WHITE, number
from partita.domain.numeric import Integer
from partita.domain.text import Text
from partita.domain.time import Date, Timestamp
from partita.lazy import cached_property
from partita.trusted.sources.arrow import UNREADABLE


@final
@dataclass(frozen=True)
class Format:
    """A way to write values that a domain does not read; `pattern` is one of RE2, over bytes."""

    name: str
    fix: str
    pattern: str = ""


class FormatCount(NamedTuple):
    """A format, and in how many rows it was found."""

    format: Format
    rows: int


_S: Final = r"^[ \t\r\n]*"
_E: Final = r"[ \t\r\n]*$"
_MONEY: Final = r"(?:US\$|\$|€|£|¥|₹|USD|EUR|GBP|CHF|JPY)"
_DIGITS: Final = r"[0-9][0-9.,' ]*"
_GAP: Final = r"(?:[ '_]|\xc2\xa0|\xe2\x80\xaf|\xe2\x80\x99)"  # no-break spaces and an apostrophe, as bytes
_MONTHS: Final = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_YEAR: Final = r"(?:[0-9]{2}|[0-9]{4})"

UNREADABLE_CELLS: Final = Format(
    "cells that could not be read",
    "see what is said about the lines of the file; in JSON lines, each line must be an object, and no list "
    "or object may stand in a cell",
)
_EMPTY: Final = Format("empty texts", "write null in their place", f"{_S}$")
_MISSING: Final = Format(
    "words for a missing value, such as NA, null or -",
    "leave the field empty, or write null, to have them counted as null",
    rf"(?i){_S}(?:na|n/a|n\.a\.|nan|null|none|nil|missing|-+|\?+|\.+){_E}",
)
_NUMBERS: Final = (
    Format(
        "amounts with a currency, such as $1,234.50",
        "take the sign out: replace(replace(column, '$', ''), ',', '') in SQL",
        rf"(?i){_S}[-+(]?[ ]*{_MONEY}[ ]*[-+]?{_DIGITS}\)?{_E}|{_S}\(?[-+]?{_DIGITS}[ ]*{_MONEY}\)?{_E}",
    ),
    Format(
        "percentages, such as 12.5%",
        "take the sign out: replace(column, '%', '') in SQL",
        rf"{_S}[-+]?{_DIGITS}%{_E}",
    ),
    Format(
        "numbers with separators of thousands, such as 1,234 or 1 234",
        "take the separators out: replace(column, ',', '') in SQL; write a point if the comma is "
        "that of a decimal",
        rf"{_S}[-+]?[0-9]{{1,3}}(?:(?:,[0-9]{{3}})+(?:\.[0-9]*)?|(?:{_GAP}[0-9]{{3}})+"
        rf"(?:[.,][0-9]*)?|(?:\.[0-9]{{3}}){{2,}}){_E}",
    ),
    Format(
        "numbers with a decimal comma, such as 3,14",
        "write a point: replace(replace(column, '.', ''), ',', '.') in SQL",
        rf"{_S}[-+]?(?:[0-9]+|[0-9]{{1,3}}(?:\.[0-9]{{3}})+),[0-9]+{_E}",
    ),
    Format(
        "negative numbers in brackets, such as (12.50)",
        "write a minus",
        rf"{_S}\({_DIGITS}\){_E}",
    ),
    Format(
        "numbers with a unit, such as 12 kg",
        "take the unit out, and bring all values to one unit",
        rf"{_S}[-+]?[0-9][0-9.,]*[ ]*[A-Za-z/\x80-\xff]+{_E}",
    ),
    Format(
        "dates, such as 2024-03-14", "declare the column as a date", rf"{_S}[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}"
    ),
)
_WHOLE: Final = Format(
    "numbers that are not whole, such as 30.5",
    "declare the column as real, with a step",
    rf"{_S}[-+]?[0-9]*\.[0-9]+(?:[eE][-+]?[0-9]+)?{_E}|{_S}[-+]?[0-9]+/[0-9]+{_E}",
)
_TIMES: Final = (
    Format(
        "dates with the month first, such as 3/14/2024",
        "write 2024-03-14: strptime(column, '%m/%d/%Y') in SQL",
        rf"{_S}[0-9]{{1,2}}/(?:1[3-9]|2[0-9]|3[01])/{_YEAR}(?:[^0-9].*)?$",
    ),
    Format(
        "dates with the day first, such as 14/3/2024",
        "write 2024-03-14: strptime(column, '%d/%m/%Y') in SQL",
        rf"{_S}(?:1[3-9]|2[0-9]|3[01])/[0-9]{{1,2}}/{_YEAR}(?:[^0-9].*)?$",
    ),
    Format(
        "dates with slashes that do not tell day from month, such as 3/4/2024",
        "find out which comes first, and write 2024-03-04: strptime(column, '%m/%d/%Y') or '%d/%m/%Y' in SQL",
        rf"{_S}[0-9]{{1,2}}/[0-9]{{1,2}}/{_YEAR}(?:[^0-9].*)?$",
    ),
    Format(
        "dates with points, such as 14.3.2024",
        "write 2024-03-14: strptime(column, '%d.%m.%Y') in SQL",
        rf"{_S}[0-9]{{1,2}}\.[0-9]{{1,2}}\.{_YEAR}(?:[^0-9].*)?$",
    ),
    Format(
        "dates with the name of a month, such as 14-Mar-2024",
        "write 2024-03-14: strptime(column, '%d-%b-%Y') in SQL",
        rf"(?i)^.*{_MONTHS}",
    ),
    Format(
        "clocks of twelve hours, such as 2024-03-14 09:30 PM",
        "write 24 hours: strptime(column, '%Y-%m-%d %I:%M %p') in SQL",
        rf"(?i)[0-9][ ]*[ap]\.?m\.?{_E}",
    ),
    Format(
        "times with the name of a zone, such as 2024-03-14 09:30 UTC",
        "write its offset, 2024-03-14 09:30Z, or leave it out and declare zone",
        rf"{_S}[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[T ][0-9:.]+[ ]*\[?[A-Za-z][A-Za-z_/+-]+\]?{_E}",
    ),
    Format(
        "dates with other signs or without zeros, such as 2024/3/4 or 2024-3-4",
        "write 2024-03-04: strptime(column, '%Y/%m/%d') in SQL",
        rf"{_S}[0-9]{{4}}(?:[/.][0-9]{{1,2}}[/.][0-9]{{1,2}}|-[0-9]-[0-9]{{1,2}}|-[0-9]{{2}}-[0-9](?:[^0-9]|$))",
    ),
    Format(
        "days or hours that do not exist, such as 2024-02-30 or 2024-03-14 24:00",
        "find out what is meant",
        rf"{_S}[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}",
    ),
    Format(
        "seconds since 1970, such as 1710408600",
        "make times of them: to_timestamp(column) in SQL",
        rf"{_S}-?[0-9]{{9,10}}(?:\.[0-9]*)?{_E}",
    ),
    Format(
        "milliseconds since 1970, such as 1710408600000",
        "make times of them: make_timestamp(column * 1000) in SQL",
        rf"{_S}-?[0-9]{{12,13}}(?:\.[0-9]*)?{_E}",
    ),
    Format(
        "microseconds since 1970, such as 1710408600000000",
        "make times of them: make_timestamp(column) in SQL",
        rf"{_S}-?[0-9]{{15,16}}(?:\.[0-9]*)?{_E}",
    ),
    Format(
        "nanoseconds since 1970, such as 1710408600000000000",
        "make times of them: make_timestamp(column // 1000) in SQL",
        rf"{_S}-?[0-9]{{18,19}}(?:\.[0-9]*)?{_E}",
    ),
    Format(
        "days of a spreadsheet, such as 45365",
        "make dates of them: DATE '1899-12-30' + column in SQL",
        rf"{_S}[0-9]{{5}}(?:\.[0-9]*)?{_E}",
    ),
)
_SPACES: Final = Format(
    "labels with spaces around them", "take the spaces out: trim(column) in SQL; or declare them so"
)
_CASE: Final = Format(
    "labels in other upper and lower case, such as ROME for Rome",
    "write them as they were declared, or declare them as they are written: text must match exactly",
)
_NORMAL: Final = Format(
    "labels in another form of Unicode", "bring both to one form: nfc_normalize(column) in SQL"
)
_NUMBER: Final = Format(
    "labels that are numbers written otherwise, such as 01 for 1",
    "write them as they were declared, or declare them as they are written",
)
_WORDS: Final = Format(
    "words for a missing value, such as NA, null or -",
    "leave the field empty to have them counted as null, or declare them as labels",
    _MISSING.pattern,
)


@final
class FormatFinder:
    """Finds the formats of the values that one column has and its domain does not read."""

    def __init__(self, domain: Domain) -> None:
        self._domain = domain

    def find(self, values: Any, weights: Ints) -> Iterator[FormatCount]:
        """The formats of values that are invalid, or other, each of which stands in so many rows.

        `values` are distinct values as a domain reads them: an Arrow array or a list of Python values.
        """
        texts = _write(values)
        if isinstance(self._domain, Category):
            yield from self._find_labels(texts, weights)
            return
        if isinstance(self._domain, Text):
            return
        for found in _patterns(self._domain):
            matches = _match(found, texts)
            if matches.any():
                yield FormatCount(found, int(weights[matches].sum()))
                texts, weights = texts.filter(pa.array(~matches)), weights[~matches]

    def _find_labels(self, texts: Any, weights: Ints) -> Iterator[FormatCount]:
        """What is other, by how it differs from a label."""
        found: dict[Format, int] = {}
        for text, weight in zip(texts.to_pylist(), weights.tolist(), strict=True):
            kind = self._near_label(text)
            if kind is not None:
                found[kind] = found.get(kind, 0) + weight
        yield from (FormatCount(kind, rows) for kind, rows in found.items())

    def _near_label(self, text: bytes) -> Format | None:
        if text == UNREADABLE:
            return UNREADABLE_CELLS
        if not text.strip(WHITE):
            return _EMPTY
        word = text.decode("utf-8", "replace")
        near = (kind for kind, form in _FORMS.items() if form(word) in self._known[kind])
        return next(near, _WORDS if _IS_MISSING.match(word) else None)

    @cached_property
    def _known(self) -> Mapping[Format, frozenset[object]]:
        """The labels of the column in each of the forms in which they are compared."""
        labels = self._domain.labels if isinstance(self._domain, Category) else ()
        return {kind: frozenset(map(form, labels)) for kind, form in _FORMS.items()}


def _patterns(domain: Domain) -> Sequence[Format]:
    """The formats to look for, the first that fits counts."""
    if isinstance(domain, Date | Timestamp):
        return (UNREADABLE_CELLS, _EMPTY, _MISSING, *_TIMES)
    whole = (_WHOLE,) if isinstance(domain, Integer) else ()
    return (UNREADABLE_CELLS, _EMPTY, _MISSING, *whole, *_NUMBERS)


def _match(format: Format, texts: Any) -> Any:
    """Which texts are in a format."""
    if format is UNREADABLE_CELLS:
        found = pc.equal(texts, pa.scalar(UNREADABLE, pa.large_binary()))
    else:
        found = pc.match_substring_regex(texts, format.pattern)
    return found.to_numpy(zero_copy_only=False)


def _write(values: Any) -> Any:
    """The values as text: numbers by their digits; what has no text matches no format."""
    if not isinstance(values, list) and types.is_large_binary(values.type):
        return values
    listed = values if isinstance(values, list) else values.to_pylist()
    return pa.array([_text(value) for value in listed], pa.large_binary())


def _text(value: object) -> bytes:
    if isinstance(value, bytes):
        return value[: LONGEST + 1]
    if isinstance(value, float) and value.is_integer() and abs(value) < _WIDEST:
        value = int(value)
    written = str(value) if isinstance(value, str | int | float) else "?unknown"
    return written.encode("utf-8", "surrogatepass")[: LONGEST + 1]


def _number(text: str) -> object:
    """The number that a text writes, or the text."""
    exact = number(text.encode("utf-8", "surrogatepass"))
    return text if exact is None else exact


_FORMS: Final[Mapping[Format, Callable[[str], object]]] = {
    _SPACES: str.strip,
    _CASE: lambda text: text.strip().casefold(),
    _NORMAL: lambda text: unicodedata.normalize("NFKC", text).strip().casefold(),
    _NUMBER: _number,
}
_IS_MISSING: Final = re.compile(_MISSING.pattern)
_WIDEST: Final = 2.0**63  # of a float that is written by its digits
