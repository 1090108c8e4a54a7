"""Every format that a domain does not read is told by name, and what the domain reads is none of them."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pytest

from partita.domain import Category, Date, Domain, Integer, Real, Timestamp
from partita.domain.base import Special
from partita.trusted.sources import formats
from partita.trusted.sources.formats import Format, FormatFinder

NUMBER, WHOLE = Real(-(10**6), 10**6, step="0.01"), Integer(0, 120)
DAY = Date("1900-01-01", "2099-12-31")
TIME = Timestamp("1900-01-01", "2099-12-31", "1h")
LABEL = Category(["Rome", "1", "caffè"])

FOUND: list[tuple[Domain, list[object], str]] = [
    (NUMBER, ["$1,234", "-$5", "€ 3.50", "1.234,50 €", "USD 3", "(£3)", "3 usd"], "amounts with a currency"),
    (NUMBER, ["12.5%", "3 %"], "percentages"),
    (
        NUMBER,
        ["1,234", "-1,234,567.8", "1 234", "1'234.5", "1.234.567", "1\u202f234"],
        "separators of thousands",
    ),
    (NUMBER, ["3,14", "1.234,5", " -0,5 "], "decimal comma"),
    (NUMBER, ["(12.50)"], "negative numbers in brackets"),
    (NUMBER, ["12 kg", "5km/h", "30°"], "numbers with a unit"),
    (NUMBER, ["2024-03-14"], "declare the column as a date"),
    (NUMBER, ["NA", "n/a", "-", "??", " null "], "words for a missing value"),
    (NUMBER, ["", "  "], "empty texts"),
    (WHOLE, ["30.5", 30.5, ".5"], "numbers that are not whole"),
    (DAY, ["3/14/2024", "12/31/99 10:00"], "month first"),
    (DAY, ["14/3/2024", "31/12/1999"], "day first"),
    (DAY, ["3/4/2024"], "do not tell day from month"),
    (DAY, ["14.3.2024", "01.02.24"], "dates with points"),
    (DAY, ["14-Mar-2024", "March 14, 2024"], "name of a month"),
    (TIME, ["2024-03-14 09:30 PM", "9:30am"], "clocks of twelve hours"),
    (TIME, ["2024-03-14 09:30 UTC", "2024-03-14T09:30:00 Europe/Rome"], "name of a zone"),
    (DAY, ["2024/3/4", "2024-3-4", "2024.03.04", "2024-03-4"], "other signs or without zeros"),
    (TIME, ["2024-02-30", "2024-03-14 24:00", "2024-13-01"], "do not exist"),
    (TIME, [1710408600, 1710408600.5, "1710408600"], "seconds since 1970"),
    (TIME, [1710408600000, "1710408600000"], "milliseconds since 1970"),
    (TIME, ["1710408600000000"], "microseconds since 1970"),
    (TIME, [1710408600000000000], "nanoseconds since 1970"),
    (DAY, [45365, "45365.5"], "days of a spreadsheet"),
    (LABEL, [" Rome", "Rome\t"], "labels with spaces"),
    (LABEL, ["ROME", "rome", " CAFFÈ"], "upper and lower case"),
    (LABEL, ["caffe\u0300"], "another form of Unicode"),
    (LABEL, ["01", "1.0"], "numbers written otherwise"),
    (LABEL, ["NA", "?"], "words for a missing value"),
    (LABEL, [b"\xff"], "cells that could not be read"),
]


def found(domain: Domain, values: list[object]) -> list[tuple[Format, int]]:
    """What is found in values, each of which stands in two rows."""
    weights = np.full(len(values), 2)
    return [(each.format, each.rows) for each in FormatFinder(domain).find(values, weights)]


@pytest.mark.parametrize(("domain", "values", "name"), FOUND, ids=[each[2] for each in FOUND])
def test_a_format_is_told_by_name(domain: Domain, values: list[object], name: str) -> None:
    """All values of a case are in one format, and the domain reads none of them."""
    assert set(domain.encode(values).special.tolist()) <= {Special.INVALID.value, Special.OTHER.value}

    [(format, rows)] = found(domain, values)

    assert rows == 2 * len(values)
    assert name in format.name or name in format.fix
    assert format.fix


@pytest.mark.parametrize(
    "values", [["what"], [b"\xfe\xfd"], ["x" * 5000], [object()]], ids=["word", "bytes", "long", "object"]
)
@pytest.mark.parametrize("domain", [NUMBER, WHOLE, DAY, LABEL], ids=lambda each: type(each).__name__)
def test_what_is_in_no_format_is_not_told(domain: Domain, values: list[object]) -> None:
    """Any other value, be it no text at all; nothing raises."""
    assert found(domain, values) == []


def test_values_of_arrow_and_of_python_are_told_alike() -> None:
    """Texts of a file and numbers of a column."""
    texts = pa.array([b"3/14/2024", b"45365"], pa.large_binary())
    numbers = pa.array([45365, 1710408600])
    finder = FormatFinder(DAY)

    assert [each.rows for each in finder.find(texts, np.array([3, 4]))] == [3, 4]
    assert [each.format.name[:7] for each in finder.find(numbers, np.array([1, 1]))] == ["seconds", "days of"]


def test_examples_are_in_the_format_that_shows_them() -> None:
    """What a name shows behind `such as` is told by that name."""
    listed = [each for each in vars(formats).values() if isinstance(each, Format)]
    shown = {each: each.name.partition("such as ")[2] for each in (*formats._NUMBERS, *formats._TIMES)}

    assert len(listed) > 6
    for format, example in shown.items():
        domain = TIME if format in formats._TIMES else NUMBER
        for text in re.split(r",? or (?=\d)|, (?=\D)", example):
            if not text.startswith("2024-03-14") or domain is TIME:
                told = [each for each, _ in found(domain, [text])]
                assert told == [format], text
