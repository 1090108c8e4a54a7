"""What cannot be read is a typed error that names the rule and the fix, and no value."""

from __future__ import annotations

import gc
import gzip
import logging
import os
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from partita.domain import Category, Date, Integer, Real, Timestamp
from partita.errors import SourceError
from partita.trusted.sources.open import open_source
from partita.trusted.sources.tally import tally

CANARY = "CANARY-93ab"
DOMAINS = [
    Integer(0, 9),
    Real(0, 9, step=1),
    Date("2024-01-01", "2024-02-01"),
    Category(["x"]),
    Timestamp("2024-01-01", "2024-02-01", "1h"),
]


def table(path: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns or {"age": [1]}), path)
    return path


def file(path: Path, content: bytes = b"age\n1\n") -> Path:
    path.write_bytes(content)
    return path


def made(path: Path, make: Callable[[Path], None]) -> Path:
    make(path)
    return path


MISTAKES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "missing": (lambda at: at / "no.parquet", "does not exist"),
    "dangling link": (
        lambda at: made(at / "a.csv", lambda path: path.symlink_to(at / "b")),
        "does not exist",
    ),
    "directory": (lambda at: at, "is a directory"),
    "empty glob": (lambda at: str(at / "*.parquet"), "matches no file"),
    "glob of directories": (
        lambda at: str(made(at / "d.csv", Path.mkdir).parent / "*.csv"),
        "matches no file",
    ),
    "extension": (lambda at: file(at / "t.xlsx"), r"must be a \.parquet"),
    "json": (lambda at: file(at / "t.json"), r"must be a \.parquet"),
    "packed parquet": (lambda at: file(at / "t.parquet.gz"), r"must be a \.parquet"),
    "mixed formats": (lambda at: [file(at / "t.csv"), table(at / "t.parquet")], "of one format"),
    "not parquet": (lambda at: file(at / "t.parquet", CANARY.encode() * 99), "must be a whole Parquet file"),
    "empty parquet": (lambda at: file(at / "t.parquet", b""), "must be a whole Parquet file"),
    "not gzip": (lambda at: file(at / "t.csv.gz", CANARY.encode() * 99), "whole file"),
    "pipe": (lambda at: made(at / "t.csv", os.mkfifo), "that you may read"),
    "types": (lambda at: [table(at / "1.parquet"), table(at / "2.parquet", age=["x"])], "one type"),
    "parquet column": (lambda at: table(at / "t.parquet", agee=[1]), "did you mean 'agee'"),
    "csv column": (lambda at: file(at / "t.csv", b"agee\n1\n"), "check the spelling, or declare header="),
    "mapping column": (lambda at: {"agee": [1]}, "did you mean 'agee'"),
    "frame column": (lambda at: pa.table({"b": [1], "c": [2]}), "choose among 'b', 'c'"),
    "twice in csv": (lambda at: file(at / "t.csv", b"age,age\n1,2\n"), "more than once"),
    "lengths": (lambda at: {"age": [1], "x": [1, 2]}, "^columns 'age' and 'x' must have the same length; "),
    "lengths of others": (
        lambda at: {"b": np.zeros(2), "age": [1], "c": pa.array([1])},
        "^columns 'b' and 'age' must have the same length; ",
    ),
    "rows for a path": (lambda at: f"age\n{CANARY}\n", "^data does not exist"),
    "many rows for a path": (lambda at: f"{CANARY}," * 99, "^data does not exist"),
    "rows for a pattern": (lambda at: f"age\n{CANARY}*\n", "^data matches no file"),
    "rows with zeros for a path": (lambda at: f"{CANARY}\0", "^data must be a path"),
    "two dimensions": (lambda at: {"age": np.zeros((2, 2)), "x": [1, 2]}, "must be one column"),
    "lone text": (lambda at: {"age": CANARY, "x": [1]}, "must be one column"),
    "durations": (lambda at: {"age": np.array([1], "m8[s]"), "x": [1]}, "must hold numbers, text"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_gets_an_error_that_names_it(tmp_path: Path, name: str) -> None:
    """Each mistake is a SourceError with a parameter, a rule and a fix, and without a cause."""
    make, message = MISTAKES[name]

    with pytest.raises(SourceError, match=message) as caught:
        open_source(make(tmp_path)).counts(
            ["age", "x"] if name in ("lengths", "two dimensions", "durations") else ["age"]
        )

    error = caught.value
    assert str(error) == f"{error.parameter} {error.rule}; {error.fix}"
    assert CANARY not in whole_story(error)


@pytest.mark.skipif(os.getuid() == 0, reason="the superuser may read everything")
def test_a_file_without_permission_is_refused(tmp_path: Path) -> None:
    """A file that the process may not open is a typed error."""
    path = file(tmp_path / "t.csv")
    path.chmod(0)

    with pytest.raises(SourceError, match="that you may read"):
        open_source(path)


def test_names_that_a_pattern_matched_stay_out_of_errors(tmp_path: Path) -> None:
    """Only the pattern is shown: file names may be names of people."""
    file(tmp_path / f"{CANARY}.csv", b"other\n1\n")
    file(tmp_path / f"{CANARY}.parquet", b"")

    for pattern in ("*.csv", "*.parquet"):
        with pytest.raises(SourceError) as caught:
            open_source(str(tmp_path / pattern)).counts(["age"])

        assert CANARY not in whole_story(caught.value)


@pytest.mark.parametrize(
    "change", [lambda path: path.write_bytes(b"age\n1\n2\n"), lambda path: path.unlink()]
)
def test_a_file_that_changes_after_opening_is_refused(
    tmp_path: Path, change: Callable[[Path], object]
) -> None:
    """A source is what it was when it was opened, or an error."""
    path = file(tmp_path / "t.csv")
    source = open_source(path)
    change(path)

    with pytest.raises(SourceError, match="must not change"):
        source.counts(["age"])


@pytest.mark.parametrize("change", [os.unlink, lambda path: os.truncate(path, 2**22)])
@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_a_file_that_changes_while_it_is_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, change: Callable[[Path], object]
) -> None:
    """A file cut short or gone between the first rows and the last gives no count."""
    path = tmp_path / f"t.{kind}"
    if kind == "parquet":
        pq.write_table(pa.table({"age": np.arange(2**20)}), path, row_group_size=2**16, compression="none")
    else:
        file(path, b"age\n" + (b"1" * 999 + b"\n") * 2**14)
    rows: Any = open_source(path).rows  # type: ignore[attr-defined]
    batches = rows.read(["age"]).batches
    next(batches)
    change(path)

    with pytest.raises(SourceError, match=r"must not change|whole"):
        list(batches)


# --- canaries: bad values in every place, and no trace of them ---------------------------------


def hostile_stream() -> Any:
    def batches() -> Iterator[Any]:
        yield pa.record_batch({"x": ["1"]})
        raise RuntimeError(CANARY)

    return pa.RecordBatchReader.from_batches(pa.schema([("x", pa.string())]), batches())


class HostileTable:
    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        raise RuntimeError(CANARY)


class HostileValue:
    def __eq__(self, other: object) -> bool:
        raise RuntimeError(CANARY)

    def __repr__(self) -> str:
        return CANARY

    __hash__ = None  # type: ignore[assignment]


PLACES: dict[str, Callable[[Path], Any]] = {
    "csv field": lambda at: file(at / "t.csv", f"x\n{CANARY}\n".encode()),
    "csv open quote": lambda at: file(at / "t.csv", f'x\n"{CANARY}\n1\n'.encode()),
    "csv fields": lambda at: file(at / "t.csv", f"x\n1,{CANARY}\n{CANARY},1\n".encode()),
    "csv encoding": lambda at: file(at / "t.csv", b"x\n\xff" + CANARY.encode() + b"\n"),
    "csv long": lambda at: file(at / "t.csv", b"x\n" + CANARY.encode() * 200_000 + b"\n"),
    "csv cut": lambda at: file(at / "t.csv.gz", gzip.compress(CANARY.encode() * 9999)[:-9]),
    "json value": lambda at: file(at / "t.jsonl", f'{{"x": "{CANARY}"}}\n'.encode()),
    "json broken": lambda at: file(at / "t.jsonl", f'{{"x": "{CANARY}\n[{CANARY}\n'.encode()),
    "json nested": lambda at: file(at / "t.jsonl", f'{{"x": ["{CANARY}"]}}\n'.encode()),
    "json encoding": lambda at: file(at / "t.jsonl", b'{"x": "\xff' + CANARY.encode() + b'"}\n'),
    "parquet text": lambda at: table(at / "t.parquet", x=[CANARY]),
    "parquet nested": lambda at: table(at / "t.parquet", x=[[CANARY]]),
    "parquet struct": lambda at: table(at / "t.parquet", x=[{CANARY: CANARY}]),
    "parquet torn": lambda at: torn(table(at / "t.parquet", x=[CANARY * 999 + str(i) for i in range(99)])),
    "list": lambda at: {"x": [1, CANARY, [CANARY], {CANARY: 1}, CANARY.encode(), HostileValue()]},
    "strings": lambda at: {"x": [CANARY, "\ud800" + CANARY]},
    "numpy": lambda at: {"x": np.array([CANARY, "1"])},
    "bytes": lambda at: {"x": np.array([CANARY.encode()])},
    "objects": lambda at: {"x": np.array([CANARY, 5, HostileValue()], object)},
    "arrow": lambda at: pa.table({"x": [CANARY]}),
    "bad utf-8": lambda at: pa.table({"x": pa.array([b"\xff" + CANARY.encode()]).view(pa.string())}),
    "stream": lambda at: hostile_stream(),
    "table": lambda at: HostileTable(),
    "relation": lambda at: relation(f"SELECT '{CANARY}'::INTEGER AS x FROM range(2)"),
    "late relation": lambda at: relation(
        f"SELECT if(i < 9, '1', '{CANARY}')::INTEGER AS x FROM range(10) t(i)"
    ),
}


def torn(path: Path) -> Path:
    content = bytearray(path.read_bytes())
    content[40:400] = (CANARY * 99).encode()[:360]
    path.write_bytes(bytes(content))
    return path


def relation(query: str) -> Any:
    return duckdb.sql(query)


def whole_story(error: BaseException | None) -> str:
    """Everything that an exception can tell: itself, its causes and contexts, suppressed or not."""
    if error is None:
        return ""
    own = "".join(traceback.format_exception(error)) + str(error) + repr(error) + repr(vars(error))
    return own + whole_story(error.__cause__) + whole_story(error.__context__)


@pytest.fixture(scope="module")
def young_heap() -> None:
    """What other tests keep is set apart, so that a full garbage collection costs next to nothing."""
    gc.freeze()


@pytest.mark.spread(50)
@pytest.mark.usefixtures("young_heap")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("domain", DOMAINS, ids=lambda domain: type(domain).__name__)
def test_no_value_is_ever_shown(
    tmp_path: Path,
    temporary: Path,
    place: str,
    domain: Any,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Bad values of all kinds in all places leave no trace in output, logs, warnings, errors or files."""
    caplog.set_level(logging.DEBUG)
    story = ""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for sums, person in ((None, None), (None, "x"), ("x", None)):
            try:
                data = PLACES[place](tmp_path)
                source = open_source(data)
                story += repr(source)
                if sums:
                    source.counts(["x"], ["x"])
                else:
                    story += repr(tally(source, {"x": domain}, person=person))
            except SourceError as error:
                story += whole_story(error)
            except duckdb.Error:
                pytest.skip("the relation itself was refused")
        gc.collect()
    output = capfd.readouterr()

    shown = story + output.out + output.err + caplog.text + "".join(str(item.message) for item in warned)
    assert CANARY not in shown
    assert list(temporary.iterdir()) == []


def test_a_first_row_taken_for_a_header_is_not_shown(tmp_path: Path) -> None:
    """Asking for a column of a CSV file without a header shows no field of its first line."""
    file = tmp_path / "people.csv"
    file.write_text("CANARY,4711,agency\nother,1,2\n")

    with pytest.raises(SourceError) as caught:
        open_source(file).counts(["age"])

    assert not any(field in str(caught.value) for field in ("CANARY", "4711", "agency", "other"))
    assert "header=[...]" in str(caught.value)
