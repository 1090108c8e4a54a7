"""Open data as a source: files, tables in memory, Spark and PostgreSQL."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from partita.errors import InvalidData, check, check_data, check_source
from partita.ledger.postgres import is_address
from partita.numbers import integer
from partita.trusted.sources.arrow import Frame, LazyFrame, Mapped, Parquet, is_lazy
from partita.trusted.sources.base import File, Rows, Source, check_column_names, find_files
from partita.trusted.sources.engine import LocalSource
from partita.trusted.sources.postgres import Postgres
from partita.trusted.sources.spark.session import is_spark
from partita.trusted.sources.spark.source import SparkSource
from partita.trusted.sources.text import Csv, JsonLines

_LEAST_MEMORY: Final = 2**26


def open_source(
    data: object,
    *,
    delimiter: str = ",",
    header: Sequence[str] | None = None,
    threads: int | None = None,
    memory: int | None = None,
) -> Source:
    """The source that holds the rows of `data`.

    `data` is a path or glob of Parquet (.parquet), CSV (.csv) or JSON lines (.jsonl, .ndjson),
    the latter two also compressed (.gz); a list of paths; a mapping of column names to NumPy arrays
    or lists; any object with `__arrow_c_stream__`, such as a pandas, Polars or PyArrow table
    or a DuckDB relation; or a Polars LazyFrame. A Spark DataFrame is counted on its cluster. A `Postgres`
    or `SparkSource` is a source already. A CSV file starts with a line of column names, unless `header`
    gives them; every line is one row, and no field may hold a line feed, which is not checked. `threads` and
    `memory` (in bytes) bound what grouping may use; beyond that it uses a private temporary directory.

    >>> open_source({"age": [30, 31, 30]}).counts(["age"]).to_pydict()
    {'age': [30, 31], 'count': [2, 1]}
    """
    if threads is not None:
        integer(threads, "threads", low=1)
    if memory is not None:
        integer(memory, "memory", low=_LEAST_MEMORY)
    if isinstance(data, Postgres | SparkSource):
        return data
    if is_spark(data):
        return SparkSource(data)
    return LocalSource(_open_rows(data, delimiter, header), threads, memory)


def _open_rows(data: Any, delimiter: str, header: Sequence[str] | None) -> Rows:
    fix = 'pass Postgres(address, table="visits")'
    check_data(not is_address(data), "data", "must say which rows of a database", fix=fix)
    if isinstance(data, (str, os.PathLike)) or _is_list_of_paths(data):
        return _open_files(find_files(data), delimiter, header)
    if is_lazy(data):
        return LazyFrame(data)
    if hasattr(data, "__arrow_c_stream__"):
        return Frame(data)
    if isinstance(data, Mapping):
        check_column_names(list(data), "data")
        return Mapped(data)
    raise InvalidData(
        "data",
        "must be a path, a list of paths, a mapping of columns or a table that speaks Arrow",
        fix='pass for example "people.parquet" or a pandas, Polars or PyArrow table',
    )


def check_delimiter(delimiter: object) -> str:
    r"""The sign between the fields of CSV files; the two letters `\t`, as a shell writes a tab, are one."""
    rule, fix = "must be one ASCII character, and no quote or line ending", 'pass ",", ";", "|" or "\\t"'
    given = "\t" if delimiter == "\\t" else delimiter
    mark = given if isinstance(given, str) and len(given) == 1 else ""
    check("\0" < mark < "\x7f" and mark not in '"\r\n', "delimiter", rule, given=delimiter, fix=fix)
    return mark


def _is_list_of_paths(data: object) -> bool:
    items = data if isinstance(data, (list, tuple)) else ()
    return bool(items) and all(isinstance(item, (str, os.PathLike)) for item in items)


def _open_files(files: list[File], delimiter: object, header: Sequence[str] | None) -> Rows:
    mark = check_delimiter(delimiter)
    names = None if header is None else check_column_names(header, "header")
    formats: dict[str, Callable[[list[File]], Rows]] = {
        ".parquet": Parquet,
        ".csv": lambda found: Csv(found, mark, names),
        ".jsonl": JsonLines,
        ".ndjson": JsonLines,
    }
    for file in files:
        check_source(
            file.extension in formats and (file.extension != ".parquet" or not file.compressed),
            file.shown,
            "must be a .parquet, .csv, .csv.gz, .jsonl or .jsonl.gz file",
            fix="rename or convert it",
        )
    fix = "convert them, or publish them apart"
    check_source(len({file.extension for file in files}) <= 1, "data", "must be files of one format", fix=fix)
    return formats[files[0].extension](files)
