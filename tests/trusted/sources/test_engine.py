"""The engine opens nothing, spills in private and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from partita.errors import InvalidParameter, SourceError
from partita.trusted.sources.engine import PREFIX, _settings, remove_abandoned, scratch
from partita.trusted.sources.open import open_source

ROOT = Path(__file__).resolve().parents[3]


def many(batches: int) -> Any:
    """A reader of distinct keys, some 100,000 in each batch."""
    schema = pa.schema([("key", pa.large_binary()), ("x", pa.int64())])

    def made() -> Iterator[Any]:
        for number in range(batches):
            x = pa.array(np.arange(100_000) + number * 100_000)
            yield pa.record_batch(
                [
                    pa.compute.binary_join_element_wise("key of row ", x.cast(pa.string()), "").cast(
                        pa.large_binary()
                    ),
                    x,
                ],
                schema=schema,
            )

    return pa.RecordBatchReader.from_batches(schema, made())


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/hostname')",
        "SELECT * FROM '/etc/passwd'",
        "COPY (SELECT 1) TO '/tmp/partita-escaped.csv'",
        "ATTACH '/tmp/partita-escaped.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SET threads = 1",
    ],
)
def test_the_engine_cannot_reach_outside(temporary: Path, query: str) -> None:
    """Under our settings files, extensions and the settings themselves are out of reach."""
    with duckdb.connect(":memory:", config=_settings(temporary, 1, None)) as connection:
        connection.execute("SET lock_configuration = true")
        with pytest.raises(duckdb.Error):
            connection.sql(query).fetchall()


def test_a_scratch_directory_is_private_and_short_lived(temporary: Path) -> None:
    """Only its owner may enter, and it is gone at the end, also after an error."""

    def fail() -> None:
        with scratch() as directory:
            (directory / "spill").write_text(oct(stat.S_IMODE(directory.stat().st_mode)))
            raise ZeroDivisionError((directory / "spill").read_text())

    with pytest.raises(ZeroDivisionError, match="0o700"):
        fail()

    assert list(temporary.iterdir()) == []


def test_a_sweep_spares_the_living(temporary: Path) -> None:
    """A directory in use stays; links and files of that name are not touched."""
    target = temporary / "elsewhere"
    target.mkdir()
    (temporary / f"{PREFIX}link").symlink_to(target)
    (temporary / f"{PREFIX}file").write_text("")
    (temporary / f"{PREFIX}new").mkdir()
    with scratch() as directory:
        remove_abandoned()

        assert directory.exists()
    assert {path.name for path in temporary.iterdir()} == {
        "elsewhere",
        f"{PREFIX}link",
        f"{PREFIX}file",
        f"{PREFIX}new",
    }


def test_a_directory_that_was_never_locked_goes_after_an_hour(temporary: Path) -> None:
    """A process that died while making its directory leaves it to a later clean-up."""
    unborn = temporary / f"{PREFIX}unborn"
    unborn.mkdir()
    os.utime(unborn, (0, 0))

    remove_abandoned()

    assert not unborn.exists()


def test_counting_leaves_nothing_behind(temporary: Path) -> None:
    """After a count, and after a failed one, the temporary directory is empty."""
    open_source({"x": [1, 2]}).counts(["x"])
    with pytest.raises(SourceError):
        open_source({"x": [[1]]}).counts(["y"])

    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize(("threads", "memory"), [(0, None), (None, 5), (1.5, None), (None, "1GB")])
def test_limits_are_numbers(threads: Any, memory: Any) -> None:
    """Threads are at least one, and memory is some bytes."""
    with pytest.raises(InvalidParameter):
        open_source({"x": [1]}, threads=threads, memory=memory)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_do_not_change_counts(threads: int) -> None:
    """Any number of threads gives the same table."""
    assert (
        open_source(many(2), threads=threads)
        .counts(["key"], ["x"])
        .equals(open_source(many(2)).counts(["key"], ["x"]))
    )


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (RuntimeError("Query interrupted"), KeyboardInterrupt),
        (RuntimeError("a row of secrets"), SourceError),
        (duckdb.OutOfMemoryException("a row of secrets"), SourceError),
    ],
)
def test_a_query_that_is_interrupted_interrupts(
    temporary: Path, monkeypatch: pytest.MonkeyPatch, raised: Exception, expected: type[BaseException]
) -> None:
    """What DuckDB says of a Ctrl-C is a Ctrl-C, its other errors are ours, and neither tells its cause."""
    connection = MagicMock()
    connection.__enter__.return_value.sql.side_effect = raised
    connection.__enter__.return_value.execute.return_value.fetchone.return_value = (True,)
    connection.__exit__.return_value = False
    monkeypatch.setattr(duckdb, "connect", lambda *_, **__: connection)

    with pytest.raises(expected) as caught:
        open_source({"x": [1]}).counts(["x"])

    assert "secrets" not in "".join(traceback.format_exception(caught.value))
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("columns", [["x"], ["x", "y"]])
def test_an_interrupt_while_rows_are_read_is_one(temporary: Path, columns: list[str]) -> None:
    """A Ctrl-C in the middle of the rows goes through DuckDB and comes out as itself."""
    schema = pa.schema([(name, pa.int64()) for name in columns])

    def rows() -> Iterator[Any]:
        yield pa.record_batch([[1]] * len(columns), schema=schema)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        open_source(pa.RecordBatchReader.from_batches(schema, rows())).counts(columns)

    assert list(temporary.iterdir()) == []


@pytest.mark.faults
@pytest.mark.parametrize("columns", [["x"], ["x", "y"]])
def test_an_interrupted_count_leaves_nothing(temporary: Path, columns: list[str]) -> None:
    """After SIGINT in the middle of a count the process ends as interrupted, and its directory is gone."""
    program = (
        "import sys\nimport pyarrow as pa\nfrom partita.trusted.sources.open import open_source\n"
        "columns = sys.argv[1:]\n"
        "schema = pa.schema([(name, pa.int64()) for name in columns])\n"
        "def rows():\n"
        "    for number in range(10**9):\n"
        "        if number == 100: print('ready', flush=True)\n"
        "        yield pa.record_batch([pa.array(range(1000))] * len(columns), schema=schema)\n"
        "try:\n"
        "    open_source(pa.RecordBatchReader.from_batches(schema, rows())).counts(columns)\n"
        "except KeyboardInterrupt as error:\n"
        "    sys.exit(130)\n"
    )
    environment = {**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": str(ROOT / "src")}
    with subprocess.Popen(
        [sys.executable, "-c", program, *columns],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate()

    assert (process.returncode, said) == (130, b"")
    assert list(temporary.iterdir()) == []


@pytest.mark.faults
def test_what_memory_cannot_hold_spills_in_private_and_is_removed(temporary: Path) -> None:
    """Three million groups under 100 MB go through the private directory, which is gone afterwards."""
    sizes, done = [0], threading.Event()

    def watch() -> None:
        while not done.wait(0.01):
            files = [path for path in temporary.glob(f"{PREFIX}*/**/*") if path.is_file()]
            sizes.append(sum(os.path.getsize(path) for path in files if path.exists()))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    table = open_source(many(30), threads=2, memory=100 * 2**20).counts(["key"], ["x"])
    done.set()
    watcher.join()

    assert table.num_rows == 3_000_000
    assert table["count"].to_numpy().max() == 1
    assert max(sizes) > 10**7
    assert list(temporary.iterdir()) == []


@pytest.mark.faults
def test_what_a_killed_process_leaves_is_removed_at_the_next_start(temporary: Path) -> None:
    """After kill -9 in the middle of the work, the next count clears the directory away."""
    program = (
        "import time\nfrom partita.trusted.sources.engine import scratch\n"
        "with scratch() as directory:\n"
        "    (directory / 'spill').write_text('secret'); print('ready', flush=True); time.sleep(60)\n"
    )
    environment = {**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": str(ROOT / "src")}
    with subprocess.Popen(
        [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        open_source({"x": [1]}).counts(["x"])
        assert len(list(temporary.glob(f"{PREFIX}*/spill"))) == 1
        process.send_signal(signal.SIGKILL)
        process.wait()
    open_source({"x": [1]}).counts(["x"])

    assert list(temporary.iterdir()) == []
