"""`check`: exact numbers for the steward alone, the same that `publish` counts; nothing else happens."""

from __future__ import annotations

import gzip
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from partita.domain import Category, Date, Domain, Integer, Real
from partita.errors import InvalidParameter, SourceError
from partita.publish.check import SECRET, DataCheck, check, note_check, was_checked
from partita.trusted.noise import system
from partita.trusted.sources.open import open_source
from partita.trusted.sources.tally import tally

from .people import AGE, CANARY, CONTAINERS, SCHEMA

CITY: dict[str, Domain] = {"city": Category(["Rome", "Bari"])}


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def whats(found: DataCheck, column: str | None = None) -> list[str]:
    """What was found, of one column or of files."""
    return [each.what for each in found.findings if each.column == column]


@pytest.mark.parametrize("name", CONTAINERS)
def test_the_numbers_are_those_that_publish_counts(name: str, tmp_path: Path) -> None:
    """In every container, for every column and every special cell."""
    data = CONTAINERS[name](tmp_path)
    exact = tally(open_source(data), SCHEMA)

    found = check(data, SCHEMA)

    assert found.rows == 400
    assert {each.column: each.specials for each in found.columns} == {
        name: exact.column(name).specials for name in SCHEMA
    }


def test_a_text_says_first_that_it_is_secret() -> None:
    """And JSON does; `repr`, which notebooks keep, tells nothing."""
    found = check({"age": [1, 2, 300]}, AGE)

    assert str(found).startswith(SECRET)
    assert next(iter(found.to_json().items())) == ("secret", True)
    assert "3" not in repr(found)


def test_no_value_of_the_rows_is_shown() -> None:
    """Neither in print nor in JSON: formats are shown by examples of ours."""
    rows = {"age": [CANARY, f"{CANARY} 3/14/2024"], "city": [CANARY, f" {CANARY}"]}
    found = check(rows, {**AGE, **CITY})

    assert CANARY not in str(found) + json.dumps(found.to_json())
    assert whats(found, "age") == ["values that no known format explains"]
    assert whats(found, "city") == ["values that are no label"]


def test_nothing_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check works where no noise can be had, and where nothing can be sent."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr(system.SystemNoise, "add", refuse)
    monkeypatch.setattr(system.SystemNoise, "session", refuse)
    monkeypatch.setattr(socket, "socket", refuse)

    assert check({"age": [1]}, AGE).rows == 1


def test_each_file_is_checked_by_itself(tmp_path: Path) -> None:
    """With its own rows and findings; the columns of all files are added up."""
    write(tmp_path / "a.csv", "age\n1\n2\n")
    write(tmp_path / "b.csv.gz", gzip.compress(b"age\n30.5\n4\n5\n"))

    found = check(str(tmp_path / "*.csv*"), AGE)

    assert [(Path(each.file).name, each.rows) for each in found.files] == [("a.csv", 2), ("b.csv.gz", 3)]
    assert [each.columns[0].specials["invalid"] for each in found.files] == [0, 1]
    assert (found.rows, found.columns[0].valid) == (5, 4)
    assert "b.csv.gz" in str(found)


@pytest.mark.parametrize(
    ("text", "what", "fix"),
    [
        ("age;city\n1;Rome\n", "fields are separated by a semicolon", 'delimiter = ";"'),
        ("age\tcity\n1\tRome\n", "fields are separated by a tab", r'delimiter = "\t"'),
        ("Age, city\n1,Rome\n", "other case or with spaces around them: age, city", "names in the spec"),
        ("age,city,age\n1,Rome,2\n", "more than once, in other case", "names in the spec"),
        ("1,Rome\n2,Bari\n", "the first line lacks columns: age, city", "declare header = [...]"),
        (b"\xff\xfea\x00g\x00e\x00\n\x00", "the first line is not UTF-8", "UTF-16"),
        ("", "the first line lacks columns: age, city", "declare header"),
    ],
)
def test_a_header_that_publish_refuses_is_explained(
    text: str | bytes, what: str, fix: str, tmp_path: Path
) -> None:
    """The file is named, the fix is, and no field of the line is; `publish` refuses the same file."""
    path = write(tmp_path / "a.csv", text)

    found = check(path, {**AGE, **CITY})

    [finding] = found.findings
    assert what in finding.what
    assert fix in finding.fix
    assert not found.files[0].readable
    assert f"- {path}" in str(found)
    with pytest.raises(SourceError):
        tally(open_source(path), {**AGE, **CITY})


def test_lines_that_cannot_be_read_are_told_apart(tmp_path: Path) -> None:
    """Latin-1, another number of fields, an open quote and too long a line; they are counted once."""
    lines = [b"age,city", b"1,Rome", b"2,Citt\xe0", b"3", b'4,"Rome', b"5," + b"x" * 2**20]
    path = write(tmp_path / "a.csv", b"\n".join(lines) + b"\n")

    found = check(path, {**AGE, **CITY})

    assert {each.what: each.rows for each in found.findings} == {
        "lines of more than 1 MiB": 1,
        "lines that are not UTF-8, but for example Latin-1": 1,
        "lines with another number of fields, or with an open quote": 2,
    }
    assert [each.unread for each in found.columns] == [4, 4]


def test_lines_with_another_delimiter_are_found_where_the_header_is_declared(tmp_path: Path) -> None:
    """Of those that have the right number of fields with it."""
    path = write(tmp_path / "a.csv", "1;Rome\n2;Bari\n3\n")

    found = check(path, {**AGE, **CITY}, header=["age", "city"])

    assert [(each.what, each.rows) for each in found.findings] == [
        ("lines whose fields are separated by a semicolon", 2),
        ("lines with another number of fields, or with an open quote", 1),
    ]


def test_json_lines_that_are_no_objects_are_found(tmp_path: Path) -> None:
    """As cells that cannot be read, and a misspelt key as a column of nulls."""
    path = write(tmp_path / "a.jsonl", '{"age": 1}\n[2]\n{"age": [3]}\n')

    found = check(path, {**AGE, **CITY})

    assert whats(found, "age") == ["cells that could not be read"]
    assert found.columns[0].specials["invalid"] == 2
    assert whats(check(path, {"agge": AGE["age"]}), "agge")[0] == "cells that could not be read"
    assert whats(check(write(path, "{}\n{}\n"), AGE), "age") == ["every row is null"]


def test_rows_without_an_id_are_counted() -> None:
    """Null, NaN and empty ids count as one person; a column that holds no ids is refused as by publish."""
    rows = {"id": ["a", "", None, float("nan"), 5], "age": [1] * 5}

    found = check(rows, AGE, person="id")

    assert [(each.column, each.specials.get("null")) for each in found.columns] == [("id", 3), ("age", 0)]
    assert whats(found, "id") == ["rows without an id"]
    with pytest.raises(InvalidParameter, match="person"):
        check(rows, AGE, person=3)  # type: ignore[arg-type]


@pytest.mark.parametrize("empty", [pa.table({"age": pa.array([], pa.int64())}), {"age": []}])
def test_a_table_without_rows_has_no_shares(empty: Any) -> None:
    """Its numbers are zero, and its shares null."""
    found = check(empty, AGE)

    assert (found.rows, found.findings) == (0, ())
    assert set(found.to_json()["columns"][0]["shares"].values()) == {None}
    assert "0 rows" in str(found)


def test_rows_are_read_once_and_forgotten() -> None:
    """A reader that can be read once is enough, and no batch is kept while later ones are read."""
    schema, alive = pa.schema([("age", pa.int64())]), []

    def batches() -> Iterator[Any]:
        for _ in range(64):
            alive.append(pa.total_allocated_bytes())
            yield pa.record_batch([pa.array(range(2**15))], schema=schema)

    found = check(pa.RecordBatchReader.from_batches(schema, batches()), AGE)

    assert (found.rows, found.columns[0].valid) == (64 * 2**15, 64 * 121)
    assert alive[-1] - alive[1] < 8 * 2**15 * 8  # eight batches, of 64


def test_an_interrupt_ends_a_check() -> None:
    """Ctrl-C while rows are read is a Ctrl-C, and no error of a library."""
    schema = pa.schema([("age", pa.int64())])

    def batches() -> Iterator[Any]:
        yield pa.record_batch([pa.array([1])], schema=schema)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        check(pa.RecordBatchReader.from_batches(schema, batches()), AGE)


def test_what_publish_refuses_is_refused(tmp_path: Path) -> None:
    """A missing column, files of different types, a schema that is none."""
    pq.write_table(pa.table({"age": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"age": ["1"]}), tmp_path / "b.parquet")

    with pytest.raises(SourceError, match="must have one type in column 'age'"):
        check(str(tmp_path / "*.parquet"), AGE)
    with pytest.raises(SourceError, match="did you mean 'age'"):
        check(tmp_path / "a.parquet", {"agge": AGE["age"]})
    with pytest.raises(InvalidParameter, match="schema"):
        check(tmp_path / "a.parquet", {"age": int})  # type: ignore[dict-item]


def test_a_source_that_groups_by_itself_is_asked_column_by_column() -> None:
    """As a database or a cluster is."""
    inner = open_source({"age": [1, 1, "x", None], "city": ["Rome", "rome", "rome", None]})

    class Grouping:
        def counts(self, keys: Any, sums: Any = ()) -> Any:
            assert len(keys) == 1
            return inner.counts(keys, sums)

    from partita.publish import check as module

    [file] = module._check_parts(Grouping(), {**AGE, **CITY}, None)

    assert [each.specials["null"] for each in file.columns] == [1, 1]
    assert [(each.column, each.rows) for each in file.findings] == [("age", 1), ("city", 2)]


def test_columns_of_every_kind_are_explained() -> None:
    """One finding for each wrong format, with the rows that have it, and the rest apart."""
    schema: dict[str, Domain] = {
        "age": Integer(0, 120),
        "cost": Real(0, 100, step="0.01"),
        "day": Date("2024-01-01", "2024-12-31"),
    }
    rows = {
        "age": ["30.5", "NA", "what"],
        "cost": ["$1,234", "3,14", "2"],
        "day": ["3/14/2024", 1710408600, "2024-02-30"],
    }

    found = check(rows, schema)

    assert whats(found, "age") == [
        "words for a missing value, such as NA, null or -",
        "numbers that are not whole, such as 30.5",
        "values that no known format explains",
    ]
    assert [each.partition(",")[0] for each in whats(found, "cost")] == [
        "amounts with a currency",
        "numbers with a decimal comma",
    ]
    assert [each.partition(",")[0] for each in whats(found, "day")] == [
        "dates with the month first",
        "days or hours that do not exist",
        "seconds since 1970",
    ]


# --- that a check was run ------------------------------------------------------------------------


def test_a_note_of_a_check_is_an_empty_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its name is a digest of public facts: another spec or another file has another name."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    asked = (["a.csv"], AGE, {"delimiter": ";"})

    note_check(*asked)

    [note] = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert note.read_bytes() == b""
    assert was_checked(*asked)
    assert not was_checked(["b.csv"], AGE, {"delimiter": ";"})
    assert not was_checked(["a.csv"], CITY, {"delimiter": ";"})
    assert not was_checked(["a.csv"], AGE, {})


def test_where_no_note_can_be_made_none_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check does not fail for it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(write(tmp_path / "file", "")))

    note_check(["a.csv"], AGE, {})

    assert not was_checked(["a.csv"], AGE, {})


def test_two_checks_at_once_do_not_disturb_each_other() -> None:
    """Nothing is shared between them."""
    found: list[int] = []

    def run(rows: int) -> None:
        found.append(check({"age": ["x"] * rows}, AGE).columns[0].specials["invalid"])

    threads = [threading.Thread(target=run, args=(rows,)) for rows in (10, 20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(found) == [10, 20]
