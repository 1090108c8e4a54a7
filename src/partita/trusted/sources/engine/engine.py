"""The only module that touches DuckDB: it groups batches and spills what memory cannot hold.

DuckDB gets rows handed in and opens no file of its own: access to files, extensions and
secrets is off, and the configuration is locked before the first row arrives.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from partita.errors.errors import PartitaError, SourceError
from partita.trusted.sources.base.protocol import Batches, Table
from partita.trusted.sources.base.quiet import attempt
from partita.trusted.sources.engine.scratch import scratch


def group(
    rows: Batches, *, keys: int, counted: bool = False, threads: int | None, memory: int | None
) -> Table:
    """Counts of the distinct rows of the first `keys` columns, and sums of the other columns.

    If rows come `counted`, there are no sums: the column behind the keys says for how many each stands.
    """
    failures: list[PartitaError] = []
    reader = pa.RecordBatchReader.from_batches(rows.schema, _watched(rows.batches, failures))
    try:
        with scratch() as directory:
            query = (_adding if counted else _grouping)(rows.schema.names, keys)
            table = _query(reader, query, _settings(directory, threads, memory))
    except SourceError as error:
        failures.append(error)
    if failures:
        raise failures[0] from None
    return table


def _query(reader: Any, query: str, settings: dict[str, Any]) -> Table:
    import duckdb

    def run() -> Table:
        with duckdb.connect(":memory:", config=settings) as connection:
            for setting in (*_silence(connection), "lock_configuration = true"):
                connection.execute(f"SET {setting}")
            connection.register("rows", reader)
            return connection.sql(query).to_arrow_table()

    return attempt(run, _failed())


def _silence(connection: Any) -> list[str]:
    """What turns a progress bar off where there is one: how far it is would tell about the data.

    In a notebook that cannot draw bars, DuckDB has none and lets nobody change that.
    """
    (on,) = connection.execute("SELECT current_setting('enable_progress_bar')").fetchone()
    return ["enable_progress_bar = false"] if on else []


def _grouping(names: list[str], keys: int) -> str:
    """Columns are known by place, so that no name of theirs can be taken for SQL."""
    grouped = ", ".join(f'"{name}"' for name in names[:keys])
    sums = "".join(f', coalesce(sum("{name}"), 0) AS "{name}"' for name in names[keys:])
    return f'SELECT {grouped}, count(*) AS "count"{sums} FROM rows GROUP BY {grouped}'


def _adding(names: list[str], keys: int) -> str:
    """The same of rows that are counted already."""
    grouped = ", ".join(f'"{name}"' for name in names[:keys])
    return f'SELECT {grouped}, sum("{names[keys]}")::BIGINT AS "count" FROM rows GROUP BY {grouped}'


def _settings(directory: Path, threads: int | None, memory: int | None) -> dict[str, Any]:
    limits = {"threads": threads, "memory_limit": memory and f"{memory}B"}
    return {
        "allow_community_extensions": "false",
        "allow_persistent_secrets": "false",
        "arrow_large_buffer_size": "true",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "enable_external_access": "false",
        "preserve_insertion_order": "false",
        "python_enable_replacements": "false",
        "temp_directory": str(directory),
        **{name: str(value) for name, value in limits.items() if value is not None},
    }


def _watched(batches: Iterator[Any], failures: list[PartitaError]) -> Iterator[Any]:
    """The same batches; what fails while DuckDB reads them is kept, since DuckDB keeps its text only."""
    try:
        yield from batches
    except PartitaError as error:
        failures.append(error)
        raise


def _failed() -> SourceError:
    fix = "make room in the temporary directory, name fewer columns, or use a machine with more memory"
    return SourceError("data", "could not be grouped in the memory and disk space there is", fix=fix)
