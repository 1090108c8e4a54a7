"""The only module that touches DuckDB: it groups batches and spills what memory cannot hold.

DuckDB gets rows handed in and opens no file of its own: access to files, extensions and
secrets is off, and the configuration is locked before the first row arrives.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, final

import numpy as np
import pyarrow as pa
from pyarrow import types

from partita.domain.base import Domain
from partita.errors import PartitaError, SourceError, check
from partita.trusted.sources.arrow import check_sum, from_engine, sort, to_engine, wide_type, widen
from partita.trusted.sources.base import Batches, Rows, Table, attempt, check_column_names
from partita.trusted.sources.tally import Limits, Tally, find_starts, tally
from partita.trusted.sources.wide import WideTally, is_wide, tally_rows

PREFIX: Final = "partita-scratch-"
_LOCK: Final = "lock"
_UNLOCKED_SECONDS: Final = 3600  # after this long without a lock file, its creator must be dead
_BLOCK: Final = 2**21  # rows that are sorted at once: memory against the number of groups left to DuckDB


@final
@dataclass(frozen=True, repr=False)
class LocalSource:
    """A `Source` over rows that are read again for each count, and grouped on this machine."""

    rows: Rows
    threads: int | None = None
    memory: int | None = None

    def counts(self, keys: Sequence[str], sums: Sequence[str] = ()) -> Table:
        """Exact counts of distinct raw values; see `Source.counts`."""
        keys, sums = check_column_names(keys, "keys"), check_column_names(sums, "sums")
        check(keys, "keys", "must name a column", given=keys, fix='pass for example ["age"]')
        rows = self.rows.read(list(dict.fromkeys([*keys, *sums])))
        kinds = [wide_type(field.type, field.name) for field in rows.schema]
        places = [*range(len(keys)), *(rows.schema.names.index(name) for name in sums)]
        for place, name in zip(places[len(keys) :], sums, strict=True):
            check_sum(kinds[place], name)
        rows = _prepare(rows, kinds, places)
        counted = is_condensable(rows.schema)
        table = group(
            condense(rows, threads=self.threads) if counted else rows,
            keys=len(keys),
            counted=counted,
            threads=self.threads,
            memory=self.memory,
        )
        return finish(table, kinds[: len(keys)], keys, sums)

    def tally(
        self,
        schema: Mapping[str, Domain],
        by: Sequence[str] | None = None,
        *,
        person: str | None = None,
        contributions: Limits = 1,
        salt: str = "",
        where: tuple[str, str] | None = None,
    ) -> Tally | WideTally:
        """Count cells as `sources.tally` does; the rows of many columns are not grouped."""
        wide = is_wide(schema, by)
        count = partial(tally_rows, self.rows) if wide else partial(tally, self)
        return count(schema, by, person=person, contributions=contributions, salt=salt, where=where)

    def __repr__(self) -> str:
        return f"Source({type(self.rows).__name__}, secret)"


# One column of integers is condensed first: sorting a block of integers costs less than hashing its rows one
# by one, and leaves the engine little to group.
def is_condensable(schema: Any) -> bool:
    """Whether rows are nothing but one integer, or null."""
    return len(schema) == 1 and bool(types.is_integer(schema.field(0).type))


def condense(rows: Batches, *, threads: int | None) -> Batches:
    """The distinct values of each block of rows, and how many rows have each.

    With more than one thread, a block is sorted while the next one is read.
    """
    schema = rows.schema.append(pa.field("rows", pa.int64()))
    count, blocks = partial(_count_block, schema), _blocks(rows.batches)
    return Batches(schema, map(count, blocks) if threads == 1 else _map_ahead(count, blocks))


def _map_ahead(work: Callable[[Any], Any], items: Iterator[Any]) -> Iterator[Any]:
    """The work on each item, done while the next item is read."""
    with ThreadPoolExecutor(1) as worker:
        pending: list[Future[Any]] = []
        for item in items:
            pending.append(worker.submit(work, item))
            if len(pending) > 1:
                yield pending.pop(0).result()
        for last in pending:
            yield last.result()


def _blocks(batches: Iterator[Any]) -> Iterator[list[Any]]:
    """The columns of several batches at a time, about two million rows."""
    block: list[Any] = []
    for batch in batches:
        block.append(batch.column(0))
        if sum(map(len, block)) >= _BLOCK:
            yield block
            block = []
    if block:
        yield block


def _count_block(schema: Any, block: list[Any]) -> Any:
    values = np.concatenate([column.drop_null().to_numpy() for column in block])
    values.sort()
    first = find_starts([values])
    keys, counts = pa.array(values[first]), pa.array(np.diff(first, append=values.size))
    nulls = sum(column.null_count for column in block)
    if nulls:
        keys = pa.concat_arrays([keys, pa.nulls(1, keys.type)])
        counts = pa.concat_arrays([counts, pa.array([nulls], pa.int64())])
    return pa.record_batch([keys, counts], schema=schema)


@contextmanager
def scratch() -> Iterator[Path]:
    """A fresh directory that only this user can enter, removed in the end.

    Each directory has a file that its process keeps locked. The kernel drops the lock when the
    process dies, however it dies, and the next process that needs a directory removes those without
    a living owner. The lock is taken before the file gets its name, so a new directory is
    never mistaken for an abandoned one.
    """
    remove_abandoned()
    directory = Path(tempfile.mkdtemp(prefix=PREFIX))
    try:
        descriptor = _lock(directory)
        try:
            yield directory
        finally:
            os.close(descriptor)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def remove_abandoned() -> None:
    """Remove what dead processes of this user have left behind."""
    for directory in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            if _is_ours(directory) and _is_abandoned(directory):
                shutil.rmtree(directory, ignore_errors=True)


def _lock(directory: Path) -> int:
    unnamed = directory / f"{_LOCK}.new"
    descriptor = os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    unnamed.rename(directory / _LOCK)
    return descriptor


def _is_ours(directory: Path) -> bool:
    status = directory.lstat()
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()


def _is_abandoned(directory: Path) -> bool:
    try:
        descriptor = os.open(directory / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:
        return time.time() - directory.lstat().st_mtime > _UNLOCKED_SECONDS
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def group(
    rows: Batches, *, keys: int, counted: bool = False, threads: int | None, memory: int | None
) -> Table:
    """Counts of the distinct rows of the first `keys` columns, and sums of the other columns.

    If rows are `counted` already, there are no sums: the column after the keys is the number of rows.
    """
    failures: list[PartitaError] = []
    reader = pa.RecordBatchReader.from_batches(rows.schema, _watched(rows.batches, failures))
    try:
        with scratch() as directory:
            query = _write_query(rows.schema.names, keys, counted=counted)
            table = _run_query(reader, query, _settings(directory, threads, memory))
    except SourceError as error:
        failures.append(error)
    if failures:
        raise failures[0] from None
    return table


def _run_query(reader: Any, query: str, settings: dict[str, Any]) -> Table:
    import duckdb

    def run() -> Table:
        with duckdb.connect(":memory:", config=settings) as connection:
            for setting in (*_silence(connection), "lock_configuration = true"):
                connection.execute(f"SET {setting}")
            connection.register("rows", reader)
            return connection.sql(query).to_arrow_table()

    return attempt(run, _failed())


def _silence(connection: Any) -> list[str]:
    """The setting that turns a progress bar off where there is one: its progress depends on the data.

    In a notebook that cannot draw bars, DuckDB has none and does not let that setting change.
    """
    (on,) = connection.execute("SELECT current_setting('enable_progress_bar')").fetchone()
    return ["enable_progress_bar = false"] if on else []


def _write_query(names: list[str], keys: int, *, counted: bool) -> str:
    """Columns are named by their number, so that no name of theirs can be taken for SQL."""
    grouped = ", ".join(f'"{name}"' for name in names[:keys])
    if counted:
        return f'SELECT {grouped}, sum("{names[keys]}")::BIGINT AS "count" FROM rows GROUP BY {grouped}'
    sums = "".join(f', coalesce(sum("{name}"), 0) AS "{name}"' for name in names[keys:])
    return f'SELECT {grouped}, count(*) AS "count"{sums} FROM rows GROUP BY {grouped}'


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
    """The same batches; an error while DuckDB reads them is stored, since DuckDB keeps only its text."""
    try:
        yield from batches
    except PartitaError as error:
        failures.append(error)
        raise


def _failed() -> SourceError:
    fix = "make room in the temporary directory, name fewer columns, or use a machine with more memory"
    return SourceError("data", "could not be grouped in the memory and disk space there is", fix=fix)


def _prepare(rows: Batches, kinds: Sequence[Any], places: Sequence[int]) -> Batches:
    """The columns as the engine sees them, known by number."""
    empty = [to_engine(pa.array([], kinds[place])).type for place in places]
    schema = pa.schema([(f"c{number}", kind) for number, kind in enumerate(empty)])

    def batches() -> Iterator[Any]:
        for batch in rows.batches:
            columns = [to_engine(widen(batch.column(i), n)) for i, n in enumerate(rows.schema.names)]
            yield pa.record_batch([columns[place] for place in places], schema=schema)

    return Batches(schema, batches())


def finish(table: Table, kinds: Sequence[Any], keys: Sequence[str], sums: Sequence[str]) -> Table:
    """A grouped table of an engine in the order and the types that `Source.counts` promises."""
    ordered = sort(table, len(keys)).columns
    columns = [from_engine(column, kind) for column, kind in zip(ordered, kinds, strict=False)]
    totals = [column.cast(pa.decimal128(38, 0)) for column in ordered[len(keys) + 1 :]]
    names = [*keys, "count", *(f"sum of {name}" for name in sums)]
    return pa.table([*columns, ordered[len(keys)], *totals], names=names)
