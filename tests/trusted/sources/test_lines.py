"""One line is one row: CSV and JSON lines against readings that look at one character at a time."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.domain import Category, Integer
from partita.errors import InvalidParameter, SourceError
from partita.trusted.sources.open import open_source
from partita.trusted.sources.tally import tally
from partita.trusted.sources.text import LONGEST_LINE, LineBlock, blocks, cells_of, split

BAD = b"\xff"
nasty = st.lists(
    st.sampled_from(
        [b"a", b"1", b",", b",", b'"', b'"', b'""', b"\n", b"\n", b"\r", b"\0", b" ", b"\xff", "è".encode()]
    )
).map(b"".join)


def lines_of(content: bytes) -> list[bytes]:
    """The lines of a file, by the rule."""
    lines = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    return [line.removesuffix(b"\r") for line in lines]


def fields_of(line: bytes) -> list[bytes] | None:
    """The fields of a line, one character at a time."""
    fields, field, state = [], b"", "start"
    for char in (line[place : place + 1] for place in range(len(line))):
        if char == b"," and state != "quoted":
            fields.append(field)
            field, state = b"", "start"
        elif char == b'"' and state in ("start", "quoted"):
            state = "quoted" if state == "start" else "closed"
        elif char == b'"' and state == "closed":
            field, state = field + char, "quoted"
        elif state == "closed":
            return None
        else:
            field, state = field + char, "plain" if state == "start" else state
    return None if state == "quoted" else [*fields, field]


def row_of(line: bytes, width: int) -> list[bytes | None]:
    """The cells of a line: an empty field is null, and a bad line is all unreadable."""
    try:
        line.decode()
    except UnicodeDecodeError:
        return [BAD] * width
    fields = fields_of(line)
    if len(line) > LONGEST_LINE or fields is None or len(fields) != width:
        return [BAD] * width
    return [field or None for field in fields]


def read(content: bytes, width: int, size: int) -> list[list[bytes | None]]:
    rows: list[list[bytes | None]] = []
    for block in blocks(io.BytesIO(content), size):
        columns = split(LineBlock.of(block), width, range(width), ",")
        rows += map(list, zip(*(column.to_pylist() for column in columns), strict=True))
    return rows


def counted(path: Path, **options: Any) -> list[tuple[object, ...]]:
    table = open_source(path, **options).counts(["a", "b"])
    return [tuple(row.values()) for row in table.to_pylist()]


@given(nasty, st.integers(1, 4), st.integers(1, 7))
def test_csv_is_read_as_by_one_character_at_a_time(content: bytes, width: int, size: int) -> None:
    """Any bytes, in blocks of any size, give the rows of the simple reading."""
    assert read(content, width, size) == [row_of(line, width) for line in lines_of(content)]


@given(st.binary(max_size=60), st.integers(1, 7))
def test_a_line_is_a_row_in_any_bytes(content: bytes, size: int) -> None:
    """The number of rows is the number of lines, whatever is in them."""
    ends = content.removeprefix(b"\xef\xbb\xbf")
    number = ends.count(b"\n") + (ends[-1:] not in (b"", b"\n"))

    assert len(read(content, 2, size)) == number


def test_an_open_quote_spoils_its_own_row_only(tmp_path: Path) -> None:
    """The rows after a quote that is never closed are read as ever."""
    path = tmp_path / "t.csv"
    path.write_bytes(b'a,b\n1,"x\n2,y\n"3,z\n4,"w"\n')

    assert counted(path) == [(b"2", b"y", 1), (b"4", b"w", 1), (BAD, BAD, 2)]


@pytest.mark.parametrize(
    ("line", "row"),
    [
        (b'"1","x"', (b"1", b"x")),
        (b'1,"x,y"', (b"1", b"x,y")),
        (b'1,"say ""x"""', (b"1", b'say "x"')),
        (b'1,5" pipe', (b"1", b'5" pipe')),
        (b'1,""', (b"1", None)),
        (b",", (None, None)),
        (b'1,"x"y', (BAD, BAD)),
        (b'1, "x"', (b"1", b' "x"')),
        (b"1,x,", (BAD, BAD)),
        (b"1", (BAD, BAD)),
        (b"", (BAD, BAD)),
        (b"1,x\ry", (b"1", b"x\ry")),
        (b"1,x\0y", (b"1", b"x\0y")),
        (b"1,\xc3", (BAD, BAD)),
    ],
)
def test_one_line_of_csv(tmp_path: Path, line: bytes, row: tuple[bytes | None, ...]) -> None:
    """Quotes, empty fields, lone carriage returns, zero bytes and bad encoding, each in one line."""
    path = tmp_path / "t.csv"
    for ending in (b"", b"\n", b"\r\n"):
        path.write_bytes(b"a,b" + (ending or b"\n") + line + ending)
        expected = [(*row, 1)] if line or ending else []

        assert counted(path) == expected


@pytest.mark.parametrize("ending", [b"", b"\n", b"\r\n"])
@pytest.mark.parametrize(
    "length", [LONGEST_LINE, LONGEST_LINE + 1, LONGEST_LINE + 2, 2 * LONGEST_LINE, 2**23 + 5]
)
def test_a_line_over_a_mebibyte_is_one_unreadable_row(tmp_path: Path, length: int, ending: bytes) -> None:
    """1 MiB is read; one byte more is not, and the next line is unharmed."""
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\n1," + b"x" * (length - 2) + (ending and ending + b"2,y" + ending))

    rows = counted(path)

    long = [row for row in rows if row[0] != b"2"]
    assert len(rows) == 2 if ending else len(rows) == 1
    assert [row[0] for row in long] == [b"1" if length <= LONGEST_LINE else BAD]


def test_a_header_is_found_by_name_or_declared(tmp_path: Path) -> None:
    """Columns are looked up in the header; a file without one has it declared; order is free."""
    (tmp_path / "1.csv").write_bytes(b'\xef\xbb\xbf"b";x;a\r\n2;;1\r\n')
    (tmp_path / "2.csv").write_bytes(b"a;b\n1;2\n")
    (tmp_path / "3.csv").write_bytes(b"1\t2\n")

    assert counted(tmp_path / "[12].csv", delimiter=";") == [(b"1", b"2", 2)]
    assert counted(tmp_path / "3.csv", delimiter="\t", header=["a", "b"]) == [(b"1", b"2", 1)]


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf", b"\xff\xfea,b\n", b'"a,b\n'])
def test_a_csv_file_needs_a_header(tmp_path: Path, content: bytes) -> None:
    """An empty file and a header that cannot be read are typed errors."""
    path = tmp_path / "t.csv"
    path.write_bytes(content)

    with pytest.raises(SourceError, match="must start with a line of column names"):
        counted(path)


@pytest.mark.parametrize("delimiter", ["", ",,", '"', "\n", "\r", "é", 5, None])
def test_a_delimiter_is_one_character(tmp_path: Path, delimiter: Any) -> None:
    """Anything but one plain ASCII character is refused."""
    (tmp_path / "t.csv").write_bytes(b"a,b\n")

    with pytest.raises(InvalidParameter, match="delimiter"):
        open_source(tmp_path / "t.csv", delimiter=delimiter)


@pytest.mark.parametrize(
    ("line", "row"),
    [
        (b'{"a": 1, "b": "x"}', [b"1", b"x"]),
        (b' {"b": null, "c": {"d": [1]}} \r', [None, None]),
        (b'{"a": 1.50, "b": 123456789012345678901234567890}', [b"1.50", b"123456789012345678901234567890"]),
        (b'{"a": 1e400, "b": -0}', [b"1e400", b"-0"]),
        (b'{"a": true, "b": false}', [b"true", b"false"]),
        (b'{"a": [1], "b": {}}', [BAD, BAD]),
        (b'{"a": [1], "b": 2}', [BAD, b"2"]),
        (b'{"a": 1, "a": 2}', [b"2", None]),
        (b'{"a": "\\ud800"}', [b"\xed\xa0\x80", None]),
        (b'{"a": NaN}', [BAD, BAD]),
        (b'{"a": 1} {"a": 2}', [BAD, BAD]),
        (b'{"a": 1', [BAD, BAD]),
        (b"[1, 2]", [BAD, BAD]),
        (b'"a"', [BAD, BAD]),
        (b"", [BAD, BAD]),
        (b"\xff", [BAD, BAD]),
        (b"[" * 100_000, [BAD, BAD]),
        (b'{"a": ' + b"9" * 10_000 + b"}", [b"9" * 10_000, None]),
    ],
    ids=range(18),
)
def test_one_line_of_json(tmp_path: Path, line: bytes, row: list[bytes | None]) -> None:
    """An object gives its cells, its numbers as written; anything else is one unreadable row."""
    path = tmp_path / "t.jsonl"
    path.write_bytes(line + b"\n")

    assert cells_of(line, ["a", "b"]) == row
    assert counted(path) == [(*row, 1)]


@given(
    st.lists(st.dictionaries(st.sampled_from("ab"), st.none() | st.text() | st.integers() | st.booleans()))
)
def test_json_keeps_text_and_digits(rows: list[dict[str, Any]]) -> None:
    """What is written as JSON comes back as its text."""
    for row in rows:
        line = json.dumps(row, ensure_ascii=False).encode("utf-8", "surrogatepass")
        texts = [
            None if value is None else value if isinstance(value, str) else json.dumps(value)
            for value in map(row.get, "ab")
        ]

        assert cells_of(line, ["a", "b"]) == [text and text.encode() if text != "" else b"" for text in texts]


def test_an_unreadable_cell_is_invalid_or_other(tmp_path: Path) -> None:
    """A line with too many fields is counted as invalid in a number, as other in labels."""
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\n1,x\n1,x,\n")

    found = tally(open_source(path), {"a": Integer(0, 9), "b": Category(["x"])})

    assert found.column("a").specials["invalid"] == 1
    assert found.column("b").specials["other"] == 1


def test_a_packed_file_that_is_cut_short_is_refused(tmp_path: Path) -> None:
    """Half a gzip file is an error, not half of the rows."""
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n" + bytes(range(65, 91)) * 1000)[:-20])

    with pytest.raises(SourceError, match="whole file"):
        counted(path)


NOTE = "\n".join(["see below", *(f"{1000 + line},30,x" for line in range(50))])
"""A field of fifty more lines, each of which reads like the record of somebody else."""


def _thirty(path: Path) -> int:
    """How many rows of age 30 are counted if one row of each person is."""
    ages = tally(open_source(path), {"age": Integer(30, 30)}, person="id", contributions=1).column("age")
    return ages.histogram.total


def test_a_field_with_line_feeds_counts_as_many_people(tmp_path: Path) -> None:
    """A record with fifty line feeds in quotes moves a count by fifty: the steward states there is none."""
    people = "id,age,note\n1,30,\n2,31,\n"
    without, with_note = tmp_path / "without.csv", tmp_path / "with.csv"
    without.write_text(people)
    with_note.write_text(f'{people}777,30,"{NOTE}"\n')

    assert _thirty(with_note) - _thirty(without) == 50


def test_as_parquet_such_a_record_is_one_row(tmp_path: Path) -> None:
    """Converted by a reader that follows quotes across lines, the same record moves the count by one."""
    (tmp_path / "with.csv").write_text(f'id,age,note\n1,30,\n2,31,\n777,30,"{NOTE}"\n')
    across = pa_csv.ParseOptions(newlines_in_values=True)
    pq.write_table(pa_csv.read_csv(tmp_path / "with.csv", parse_options=across), tmp_path / "with.parquet")

    assert _thirty(tmp_path / "with.parquet") == 2


@pytest.mark.parametrize("bound", [1, 3])
@pytest.mark.spread(1)
def test_somebody_with_a_row_without_an_id_moves_two_rows_more(tmp_path: Path, bound: int) -> None:
    """Rows without an id are one person: one more of them may enter and drive out another."""
    others = [f",{99 - age}" for age in range(bound)]
    readable = [f"7,{50 + age}" for age in range(bound)]
    moved = []
    for age in range(10, 40):
        before = _ages(tmp_path, ["id,age", *others], bound)
        after = _ages(tmp_path, ["id,age", *others, f",{age}", *readable], bound)
        moved.append(int(abs(after - before).sum()))

    assert max(moved) == bound + 2


def _ages(folder: Path, lines: list[str], bound: int) -> Any:
    (folder / "people.csv").write_text("\n".join(lines))
    source, schema = open_source(folder / "people.csv"), {"age": Integer(0, 99)}
    return tally(source, schema, person="id", contributions=bound).column("age").histogram.spread()
