"""A Spark session without log output and without leftovers, and the query that feeds durable counters.

Spark's logs and errors may hold rows. While a request runs its log is off, and an error of
Spark, or of a worker, becomes one that knows nothing of the cause.
"""

from __future__ import annotations

import logging
import os
import pickle
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final, TypeAlias, TypeVar, final

from partita.errors import SourceError, check, check_data, check_source
from partita.trusted.durable.events import Event
from partita.trusted.durable.stream import DurableCounter, DurableFamily
from partita.trusted.sources.base import attempt, locate_columns

T = TypeVar("T")

Frame: TypeAlias = Any
"""A pyspark.sql.DataFrame."""

Batch: TypeAlias = Any
"""A pyarrow.RecordBatch."""

Worker: TypeAlias = Callable[[Iterator[Batch]], Iterator[Batch]]
"""A function that runs on an executor, once for each partition."""

_LOGGERS: Final = ("DataFrameQueryContextLogger", "SQLQueryContextLogger", "py4j")
_FAILED: Final = "a worker of Partita failed"
_OTHER_VERSION: Final = "a worker of Partita has another version"
_PARTS: Final = 16
"""In how many parts a universe is cut, if the session does not set its parallelism."""
_QUERY: Final = "sql.streaming.queryId"
_LONGEST_NAME: Final = 100


@final
class Silence:
    """A `with SILENCE.on(context)` turns off the logs of the driver of a Spark context; several may overlap.

    Log levels and warning filters belong to the whole process, so the first of several threads turns them
    off, and the last one restores them.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._depth = 0
        self._before = ExitStack()

    @contextmanager
    def on(self, context: Any) -> Iterator[None]:
        """Silence inside; a thread may take the lock twice, since garbage collection closes clusters."""
        with self._lock:
            if self._depth == 0:
                self._before = _turn_off_logs(context)
            self._depth += 1
        try:
            yield
        finally:
            with self._lock:
                self._depth -= 1
                if self._depth == 0:
                    self._before.close()


SILENCE: Final = Silence()
"""The only one of this process."""


def _turn_off_logs(context: Any) -> ExitStack:
    """Closing the stack restores the logs, as far as Spark still exists."""
    with ExitStack() as stack:
        for logger in map(logging.getLogger, _LOGGERS):
            stack.callback(setattr, logger, "disabled", logger.disabled)
            logger.disabled = True
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        stack.enter_context(_without_java_logs(context._jvm.org.apache.logging.log4j))
        return stack.pop_all()


@contextmanager
def _without_java_logs(log4j: Any) -> Iterator[None]:
    """Every configured logger has a level of its own, not only the root logger."""
    context = log4j.LogManager.getContext(False)
    configured = list(context.getConfiguration().getLoggers().values())
    before = [(logger, logger.getLevel()) for logger in configured]
    _set_levels(context, [(logger, log4j.Level.OFF) for logger in configured])
    try:
        yield
    finally:
        with suppress(Exception):
            _set_levels(context, before)


def _set_levels(context: Any, levels: Iterable[tuple[Any, Any]]) -> None:
    for logger, level in levels:
        logger.setLevel(level)
    context.updateLoggers()


def pack_worker(worker: Worker) -> Worker:
    """The worker as it travels to an executor: an error in it does not carry its rows.

    It is unpickled where it runs, after the versions were compared: code of another version might do
    something else under the same name. The function `run` itself needs nothing of Partita before that.
    """
    cloudpickle = import_module("pyspark.cloudpickle")
    packed, version = cloudpickle.dumps(worker), import_module("partita").__version__

    def run(batches: Iterator[Batch]) -> Iterator[Batch]:
        failure: str | None = _FAILED
        try:
            if import_module("partita").__version__ == version:
                yield from pickle.loads(packed)(batches)
                failure = None
            else:
                failure = _OTHER_VERSION
        except Exception:
            pass
        if failure is not None:
            raise RuntimeError(failure)

    return run


def _explain_versions(work: Callable[[], T]) -> T:
    """The result of a Spark action; a SourceError that says so if a worker had another version."""
    try:
        return work()
    except Exception as error:
        if _OTHER_VERSION not in str(error):
            raise
    fix = f"install partita=={import_module('partita').__version__} on each of them"
    raise SourceError("executors", "must have the same version of Partita as the driver", fix=fix)


class _SparkFunctions:
    """`pyspark.sql.functions`, imported at its first use: this module is loaded without Spark too."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module("pyspark.sql.functions"), name)


sf: Final[Any] = _SparkFunctions()


def is_spark(data: object) -> bool:
    """Whether it is a Spark DataFrame; Spark is not imported to find out."""
    return any(
        kind.__name__ == "DataFrame" and kind.__module__.startswith("pyspark.sql")
        for kind in type(data).__mro__
    )


@final
@dataclass(frozen=True, eq=False)
class Cluster:
    """The session of a DataFrame, and the data stored in its memory as long as this object exists."""

    session: Any
    _stored: list[Frame] = field(default_factory=list)

    def __post_init__(self) -> None:
        weakref.finalize(self, _forget, self.session, self._stored).atexit = False

    @staticmethod
    def of(frame: object) -> Cluster:
        """The cluster that holds the rows of a classic DataFrame."""
        fix = 'install "partita[spark]" and read it with spark.read'
        check_data(is_spark(frame), "data", "must be a Spark DataFrame", fix=fix)
        session: Any = getattr(frame, "sparkSession", None)
        rule = "must be a DataFrame of a classic Spark session, not of Spark Connect"
        fix = "run where the driver is, with SparkSession.builder.master(...)"
        check_source(
            "connect" not in type(frame).__module__ and hasattr(session, "_jvm"), "data", rule, fix=fix
        )
        _use_this_python(session.sparkContext)
        return Cluster(session)

    @property
    def parallelism(self) -> int:
        """How many tasks the cluster runs at once now: that may depend on the rows, as may its machines."""
        return max(1, int(self.session.sparkContext.defaultParallelism))

    @property
    def parts(self) -> int:
        """In how many parts a universe is cut: a public number, from the configuration only."""
        configured = self.session.sparkContext.getConf().get("spark.default.parallelism")
        return _PARTS if configured is None else 2 * max(1, int(configured))

    def require_no_races(self) -> None:
        """Refuse a cluster where two attempts at a task may race: the one with fewer draws would win.

        The proof of sharded cuts needs that the choice of an attempt does not depend on its draws.
        """
        fits = self.session.sparkContext.getConf().get("spark.speculation", "false").lower() != "true"
        rule = "must be off, because the faster of two draws is not a fair draw"
        fix = 'start the session with .config("spark.speculation", "false")'
        check_source(fits, "spark.speculation", rule, fix=fix)

    def run(self, work: Callable[[], T], *, failure: SourceError | None = None) -> T:
        """The result of a Spark action; `failure` if it fails, without any text of Spark.

        Spark's exception is gone before logs are on again: its deletion may cause a warning.
        """
        refused = failure or _failed()

        def silently() -> T:
            with SILENCE.on(self.session.sparkContext):
                return attempt(lambda: _explain_versions(work), refused)

        return attempt(silently, refused)

    def mapped(self, frame: Frame, worker: Worker, schema: str) -> Frame:
        """The rows that a worker makes of each partition."""
        return frame.mapInArrow(pack_worker(worker), schema)

    def keep(self, frame: Frame) -> Frame:
        """The same rows, computed now and stored in memory and on disk.

        Spark forgets how they were computed. If a machine is lost with some of them, the action fails,
        where Spark would else read the table again, which may have changed.
        """
        from pyspark import StorageLevel

        self._stored.append(frame.localCheckpoint(True, StorageLevel.MEMORY_AND_DISK))
        return self._stored[-1]

    def close(self) -> None:
        """Remove the stored data."""
        _forget(self.session, self._stored)


def number_columns(frame: Frame, names: Sequence[str]) -> Frame:
    """These columns, named k0, k1 and so on: Spark would read some names as expressions."""
    places = locate_columns(names, frame.columns)
    every = frame.toDF(*(f"c{place}" for place in range(len(frame.columns))))
    return every.select([every[f"c{place}"].alias(f"k{number}") for number, place in enumerate(places)])


def check_once(holds: bool, what: str) -> None:
    """Raise SourceError if the cluster answered twice or never."""
    check_source(
        holds, "cluster", f"must answer once for each {what}", fix="publish again: nothing was released"
    )


def _forget(session: Any, stored: list[Frame]) -> None:
    """Let the cluster drop stored data; a session that ended stores nothing."""
    while stored:
        frame = stored.pop()
        with suppress(Exception), SILENCE.on(session.sparkContext):
            frame._jdf.queryExecution().analyzed().rdd().unpersist(False)


def _use_this_python(context: Any) -> None:
    """Workers on this machine run the same Python, unless another one is configured."""
    configured = "PYSPARK_PYTHON" in os.environ or context.getConf().get("spark.pyspark.python")
    if not configured and context.master.startswith("local"):
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
        os.environ["PYSPARK_PYTHON"] = context.pythonExec = sys.executable


def _failed() -> SourceError:
    fix = "run an action on the DataFrame, and check that each executor has partita and room on disk"
    return SourceError("data", "could not be counted on the cluster", fix=fix)


def feed(
    stream: Frame,
    counter: DurableCounter | DurableFamily,
    *,
    feeder: str,
    checkpoint: str | os.PathLike[str],
    key: str | None = None,
    person: str | None = None,
    id: str | None = None,
) -> Any:
    """Start a query that counts every row of a stream once, and return it: a pyspark StreamingQuery.

    `checkpoint` is a directory where Spark records its progress; with another one the stream is read
    and counted from its beginning. A family counts by the text in the column `key`; rows with another text
    are ignored. A counter whose unit is the user needs the columns `person` and `id`, and a
    row without one of the two is ignored; such a micro-batch comes to the driver, so keep it small.
    Persons and ids are compared by the bytes of their text, numbers by their digits. The caller closes
    periods, with `counter.running()`.

    A micro-batch is fed in one piece, under its number in Spark and the name of the query. If it comes
    again, because a process died before Spark recorded it, it is known and counts nothing. Its events count
    in one period, the one that is open when all of them are stored; only the clock closes a period.
    """
    Cluster.of(stream)
    fix = "make it with spark.readStream"
    check_data(getattr(stream, "isStreaming", False), "stream", "must be a streaming DataFrame", fix=fix)
    fix = 'pass for example "visits"'
    check(0 < len(feeder) <= _LONGEST_NAME, "feeder", "must be a short name", given=feeder, fix=fix)
    sink = _sink(counter, feeder, key=key, person=person, id=id)
    from partita.trusted.sources.spark.source import Raw

    # Refuse columns that are missing, and ids whose text is not always the same, such as times.
    raw = Raw.of(stream, sink.columns)
    for name in (person, id):
        if name is not None:
            raw.require_ids(name)
    writer = stream.writeStream.foreachBatch(sink).option("checkpointLocation", os.fspath(checkpoint))
    return writer.start()


@final
@dataclass(frozen=True)
class _Sink:
    """The function that Spark calls with every micro-batch and its number."""

    counter: DurableCounter | DurableFamily
    feeder: str
    columns: tuple[str, ...]
    events: Callable[[Cluster, Frame, str, int], Iterator[Event]]

    def __call__(self, batch: Frame, number: int) -> None:
        """Feed one micro-batch in one call, so that all of it counts in one period."""
        cluster = Cluster.of(batch)
        query = batch.sparkSession.sparkContext.getLocalProperty(_QUERY)
        check_source(query, "query", "must be known by an id", fix="use feed, not foreachBatch")
        events = self.events(cluster, number_columns(batch, self.columns), f"{self.feeder} {query}", number)
        self.counter.add_many(events)


def _sink(
    counter: DurableCounter | DurableFamily,
    feeder: str,
    *,
    key: str | None,
    person: str | None,
    id: str | None,
) -> _Sink:
    """The sink for this counter, if exactly the columns that it needs are named."""
    settings = counter.settings
    rule = "must remember what it was fed to count it once"
    fix = "feed it by add, at most once or at least once"
    check(not settings.pan_private, "counter", rule, given="a pan-private one", fix=fix)
    by_person = settings.unit == "user"
    needs = (("key", key, bool(settings.keys)), ("person", person, by_person), ("id", id, by_person))
    for parameter, column, needed in needs:
        rule = "must name a column for this counter" if needed else "must be left out for this counter"
        check((column is not None) == needed, parameter, rule, given=column, fix="see counter.settings")
    named = tuple(name for name in (person, id, key) if name is not None)
    if by_person:
        return _Sink(counter, feeder, named, _ByPerson(settings.keys))
    return _Sink(counter, feeder, named, _ByKey(settings.keys) if settings.keys else _count_all)


def _count_all(cluster: Cluster, rows: Frame, source: str, number: int) -> Iterator[Event]:
    """All rows together are one event."""
    yield Event(source, number, int(cluster.run(rows.count)))


@final
@dataclass(frozen=True)
class _ByKey:
    """All rows together are one event, with a count for each key."""

    keys: tuple[str, ...]

    def __call__(self, cluster: Cluster, rows: Frame, source: str, number: int) -> Iterator[Event]:
        def found() -> dict[str, int]:
            counted = _with_key(_as_bytes(rows), self.keys).groupBy("k0").count().collect()
            return {bytes(row["k0"]).decode(): int(row["count"]) for row in counted}

        yield Event(source, number, cluster.run(found))


@final
@dataclass(frozen=True)
class _ByPerson:
    """Each row is an event of a person; person and id together identify it."""

    keys: tuple[str, ...]

    def __call__(self, cluster: Cluster, rows: Frame, source: str, number: int) -> Iterator[Event]:
        def found() -> list[tuple[bytes, ...]]:
            complete = _as_bytes(rows).dropna()
            table = (_with_key(complete, self.keys) if self.keys else complete).toArrow()
            return list(zip(*(column.to_pylist() for column in table.columns), strict=True))

        for person, id, *key in cluster.run(found):
            yield Event(person, id, {each.decode(): 1 for each in key} or 1)


def _with_key(rows: Frame, keys: Sequence[str]) -> Frame:
    """The rows whose last column is one of the keys, byte by byte: other values may not be text."""
    return rows.where(rows[rows.columns[-1]].isin([key.encode() for key in keys]))


def _as_bytes(rows: Frame) -> Frame:
    """The same rows, with every column as the bytes of its text."""
    from partita.trusted.sources.spark.source import Raw

    return Raw.of(rows, rows.columns).as_bytes()
