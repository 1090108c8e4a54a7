from __future__ import annotations

import datetime
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from partita.domain import Category
from partita.errors import InvalidParameter

SECRET = "Quetzalcoatlus"


def chosen(labels: list[str], values: Any) -> list[str]:
    """The label of each value, or the name of its special cell."""
    domain = Category(labels)
    return [
        domain.labels[place] if isinstance(place, int) else place for place in domain.encode(values).tolist()
    ]


def test_text_matches_exactly_in_every_container() -> None:
    """Only the very label matches: no trimming, no case folding, no normalisation."""
    labels = ["north", "café", "a\x00b", "East"]
    values = ["north", "North", " north", "café", "cafe\u0301", "a\x00b", "a", "", "East", "east"]
    expected = ["north", "other", "other", "café", "other", "a\x00b", "other", "other", "East", "other"]
    containers: list[Any] = [
        values, np.array(values), np.array(values, object), [value.encode() for value in values],
        pa.array(values), pa.array(values, pa.large_string()), pa.array(values, pa.string_view()),
        pa.array(values).dictionary_encode(), pa.array([value.encode() for value in values]),
        pa.chunked_array([values[:3], values[3:]]), np.array(values, np.dtypes.StringDType()),
    ]  # fmt: skip
    for container in containers:
        assert chosen(labels, container) == expected


def test_other_values_match_by_their_canonical_text() -> None:
    """Numbers, booleans and calendar days match the label that is their canonical text."""
    day = datetime.date(2024, 1, 31)
    values: dict[str, list[Any]] = {
        "1": [1, 1.0, Decimal("1.00"), Fraction(1), np.int8(1), np.float32(1), "1"],
        "0.1": [0.1, Decimal("0.10"), Fraction(1, 10), "0.1"],
        "-2.5": [-2.5, Decimal("-2.50"), np.float16(-2.5)],
        "1/3": [Fraction(1, 3)],
        "0": [0, 0.0, -0.0, Decimal("-0.00")],
        "true": [True, np.True_, "true"],
        "2024-01-31": [day, np.datetime64(day), "2024-01-31"],
        "null": [None, float("nan"), np.datetime64("NaT"), Decimal("NaN")],
        "other": [
            "1.0",
            "True",
            " 1",
            float("inf"),
            Decimal("1e999"),
            [],
            datetime.datetime(2024, 1, 31),
            10**5000,
        ],
    }
    labels = [label for label in values if label not in ("null", "other")]
    for label, same in values.items():
        assert chosen(labels, same) == [label] * len(same)


def test_typed_columns_match_as_their_values_do() -> None:
    """Whole arrays of numbers, booleans, decimals and days match as single values do."""
    assert chosen(["1", "2"], np.array([1, 2, 3, 1], np.uint8)) == ["1", "2", "other", "1"]
    assert chosen(["1", "0.5"], np.array([1.0, 0.5, np.nan, np.inf])) == ["1", "0.5", "null", "other"]
    assert chosen(["true"], pa.array([True, False, None])) == ["true", "other", "null"]
    assert chosen(["1.5"], pa.array([Decimal("1.50"), None], pa.decimal128(9, 2))) == ["1.5", "null"]
    assert chosen(["2024-01-31"], pa.array([datetime.date(2024, 1, 31), None])) == ["2024-01-31", "null"]
    assert chosen(["2024-01-31"], pa.array([datetime.datetime(2024, 1, 31)])) == ["other"]


def test_half_a_surrogate_pair_matches_nothing() -> None:
    """Text that UTF-8 cannot write is other, not a mark for what is unreadable."""
    values = ["?", "\ud800", "\ufffd"]

    for column in (values, np.array(values), np.array(values, object)):
        assert chosen(["?", "\ufffd"], column) == ["?", "other", "\ufffd"]


def test_labels_may_be_members_of_an_enumeration() -> None:
    """A member that is text counts as its text, as a label and as a value."""
    north = Enum("Region", {"NORTH": "north"}, type=str).NORTH  # type: ignore[attr-defined]

    assert Category([north]) == Category(["north"])
    assert chosen(["north"], [north]) == ["north"]


def test_missing_text_of_any_container_is_null() -> None:
    """A missing string is null, not other, in NumPy's string type too."""
    missing = np.array(["north", None], np.dtypes.StringDType(na_object=None))
    not_a_number = np.array(["north", np.nan], np.dtypes.StringDType(na_object=np.nan))

    assert chosen(["north"], missing) == chosen(["north"], not_a_number) == ["north", "null"]


# --- labels from a file, and labels that were misspelt ------------------------------------------


def test_labels_are_read_from_a_file(tmp_path: Path) -> None:
    """A label in each line, or in a column of a CSV file; byte order mark and line endings do not matter."""
    lines, table = tmp_path / "codes.txt", tmp_path / "airports.csv"
    lines.write_bytes("\ufeffRome\r\nBari, Apulia\r\nNew \u201cYork\u201d\r\n".encode())
    table.write_text('code;name\nFCO;"Rome; Fiumicino"\nBRI;Bari\n')

    assert Category.read(lines) == Category(["Rome", "Bari, Apulia", "New \u201cYork\u201d"])
    assert Category.read(table, column="code", delimiter=";") == Category(["FCO", "BRI"])
    assert Category.read(str(table), column="name", delimiter=";").labels[0] == "Rome; Fiumicino"


@pytest.mark.parametrize(
    ("text", "options", "rule"),
    [
        ("", {}, "labels must not be empty, got 'labels.csv'"),
        ("a\n\nb\n", {}, "labels must not be empty texts"),
        (f"a\n{SECRET}\n{SECRET}\n", {}, "labels must all be different"),
        ("code,name\n", {"column": "code"}, "labels must not be empty"),
        (f"code\n{SECRET}\n{SECRET}\n", {"column": "code"}, "labels must all be different"),
        (f"{SECRET},b\n1,2\n", {"column": "code"}, "column must name one column in the first line of labels"),
        (f"code,name\n{SECRET}\n", {"column": "code"}, "column must be in every line of labels.csv"),
        (f'code,name\n"{SECRET}\n', {"column": "code"}, "column must name one column"),
        ("code\na\n", {"column": "code", "delimiter": "ab"}, "delimiter must be one ASCII character"),
        ("code\na\n", {"column": 3}, "column must name one column"),
        (b"\xff\xfe", {}, "labels must be a text file"),
        (None, {}, "labels must be a text file that you may read"),
        ("x\n" * (2**23 + 1), {}, "labels must be in a file of at most 16777216 bytes"),
    ],
    ids=str,
)
def test_a_file_without_labels_is_refused(
    text: str | bytes | None, options: dict[str, Any], rule: str, tmp_path: Path
) -> None:
    """No error shows a line: the file may be the data, taken for labels by mistake."""
    path = tmp_path / "labels.csv"
    if text is not None:
        path.write_bytes(text.encode() if isinstance(text, str) else text)

    with pytest.raises(InvalidParameter, match=rule) as refused:
        Category.read(path, **options)

    assert SECRET not in str(refused.value)


@pytest.mark.parametrize("path", [3, None, "", "a\0b", b"labels"], ids=repr)
def test_what_is_no_path_has_no_labels(path: Any) -> None:
    """Nor is a list of labels a path."""
    with pytest.raises(InvalidParameter, match="labels must be the path of a file"):
        Category.read(path)


@pytest.mark.parametrize(
    ("given", "fix"),
    [
        ("rome", "did you mean 'Rome'?"),
        (" ROME ", "did you mean 'Rome'?"),
        ("Barri", "did you mean 'Bari'?"),
        ("new york", "did you mean 'New York'?"),
        ("Pari", "did you mean 'Bari'?"),
        ("Oslo", "choose among 'Rome', 'Bari', 'New York'"),
        ("", "choose among 'Rome'"),
        (7, "choose among 'Rome'"),
    ],
    ids=repr,
)
def test_a_misspelt_label_gets_a_suggestion(given: object, fix: str) -> None:
    """Labels are public."""
    with pytest.raises(InvalidParameter) as refused:
        Category(["Rome", "Bari", "New York"]).locate(given, name="city")

    assert refused.value.fix.startswith(fix)


def test_among_very_many_labels_only_case_is_compared() -> None:
    """Comparing letter by letter would take too long."""
    labels = [f"Label {number}" for number in range(5000)]

    with pytest.raises(InvalidParameter, match="did you mean 'Label 4999'"):
        Category(labels).locate("label 4999")
    with pytest.raises(InvalidParameter, match=r"choose among 'Label 0', .* and so on"):
        Category(labels).locate("Labell 4999")


def test_a_code_of_three_letters_gets_a_suggestion() -> None:
    """One wrong letter of three is near enough."""
    with pytest.raises(InvalidParameter, match="did you mean 'PUK'"):
        Category(["PUK", "AUL", "TES"]).locate("PUG")
