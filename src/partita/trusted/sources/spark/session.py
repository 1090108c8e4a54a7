"""A Spark session at work for us: quietly, and with nothing left behind.

What Spark logs and what its errors say may hold rows. While we are at work its log is off, and an error of
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

from partita.errors import InvalidParameter, SourceError, check, check_data, check_source
from partita.trusted.durable.events import Event
from partita.trusted.durable.stream import DurableCounter, DurableFamily
from partita.trusted.sources.base import attempt, positions

# Spark without a word on the driver, for as long as anybody here is at work.
#
# What Spark logs may hold rows. Levels of logs and filters of warnings are those of a whole process, so that
# the first of several threads turns them off, and the last one brings them back.


_LOGGERS: Final = ("DataFrameQueryContextLogger", "SQLQueryContextLogger", "py4j")


@final
class Silence:
    """A `with SILENCE.on(context)` turns off what the driver of a Spark context logs; several may overlap."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._depth = 0
        self._before = ExitStack()

    @contextmanager
    def on(self, context: Any) -> Iterator[None]:
        """Silence while inside; the lock may be taken twice, since what is collected closes clusters."""
        self._enter(context)
        try:
            yield
        finally:
            self._leave()

    def _enter(self, context: Any) -> None:
        with self._lock:
            if self._depth == 0:
                self._before = _silenced(context)
            self._depth += 1

    def _leave(self) -> None:
        with self._lock:
            self._depth -= 1
            if self._depth == 0:
                self._before.close()


SILENCE: Final = Silence()
"""The one of this process."""


def _silenced(context: Any) -> ExitStack:
    """All is off; what closes the stack brings it back, as far as there is still a Spark."""
    with ExitStack() as stack:
        stack.enter_context(_without_python(map(logging.getLogger, _LOGGERS)))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        stack.enter_context(_without_java(context._jvm.org.apache.logging.log4j))
        return stack.pop_all()


@contextmanager
def _without_python(loggers: Iterable[logging.Logger]) -> Iterator[None]:
    before = [(logger, logger.disabled) for logger in loggers]
    for logger, _ in before:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, disabled in before:
            logger.disabled = disabled


@contextmanager
def _without_java(log4j: Any) -> Iterator[None]:
    """Every logger that was configured has a level of its own, not only the root of them."""
    context = log4j.LogManager.getContext(False)
    configured = list(context.getConfiguration().getLoggers().values())
    before = [(logger, logger.getLevel()) for logger in configured]
    _set(context, [(logger, log4j.Level.OFF) for logger in configured])
    try:
        yield
    finally:
        with suppress(Exception):
            _set(context, before)


def _set(context: Any, levels: Iterable[tuple[Any, Any]]) -> None:
    for logger, level in levels:
        logger.setLevel(level)
    context.updateLoggers()


# Work as it travels to an executor: of the driver's own version of Partita, and silent about its rows.


T = TypeVar("T")

Batch: TypeAlias = Any
"""A pyarrow.RecordBatch."""

Worker: TypeAlias = Callable[[Iterator[Batch]], Iterator[Batch]]
"""What runs on an executor, once for each partition."""

_FAILED: Final = "a worker of Partita failed"
_OTHER: Final = "a worker of Partita has another version"


def sent(worker: Worker) -> Worker:
    """The same worker; what goes wrong in it is told without what it was working on.

    It is unpacked where it runs, after the versions were compared: code of another version might do
    something else under the same name. What is here in front of that needs nothing of ours.
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
                failure = _OTHER
        except Exception:
            pass
        if failure is not None:
            raise RuntimeError(failure)

    return run


def told(work: Callable[[], T]) -> T:
    """The result of something that Spark does; if a worker had another version, an error that says so."""
    try:
        return work()
    except Exception as error:
        if _OTHER not in str(error):
            raise
    fix = f"install partita=={import_module('partita').__version__} on each of them"
    raise SourceError("executors", "must have the same version of Partita as the driver", fix=fix)


Frame: TypeAlias = Any
"""A pyspark.sql.DataFrame."""

_PARTS: Final = 16
"""In how many parts a universe is cut, if nobody says how many tasks shall run side by side."""


def is_spark(data: object) -> bool:
    """Whether it is a DataFrame of Spark; nothing is imported to find out."""
    return any(
        kind.__name__ == "DataFrame" and kind.__module__.startswith("pyspark.sql")
        for kind in type(data).__mro__
    )


@final
@dataclass(frozen=True, eq=False)
class Cluster:
    """The session of a DataFrame, and what we keep in its memory as long as anything here refers to it."""

    session: Any
    _kept: list[Frame] = field(default_factory=list)

    def __post_init__(self) -> None:
        weakref.finalize(self, _forget, self.session, self._kept).atexit = False

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
        """How many tasks the cluster runs side by side now: that may follow the rows, as may its machines."""
        return max(1, int(self.session.sparkContext.defaultParallelism))

    @property
    def parts(self) -> int:
        """In how many parts a universe is cut: a public number, by what was set and not by what runs now."""
        said = self.session.sparkContext.getConf().get("spark.default.parallelism")
        return _PARTS if said is None else 2 * max(1, int(said))

    def require_no_races(self) -> None:
        """Refuse a cluster where two attempts at a task may race: the one with fewer draws would win.

        The proof of sharded cuts needs that which attempt is seen does not depend on what it drew.
        """
        fits = self.session.sparkContext.getConf().get("spark.speculation", "false").lower() != "true"
        rule = "must be off, because the faster of two draws is not a fair draw"
        fix = 'start the session with .config("spark.speculation", "false")'
        check_source(fits, "spark.speculation", rule, fix=fix)

    def run(self, work: Callable[[], T], *, failure: SourceError | None = None) -> T:
        """The result of something that Spark does; `failure` if it fails, and no word of Spark's.

        What Spark raised is gone before logs are on again: its end may be told in a warning.
        """
        refused = failure or _failed()

        def silently() -> T:
            with SILENCE.on(self.session.sparkContext):
                return attempt(lambda: told(work), refused)

        return attempt(silently, refused)

    def mapped(self, frame: Frame, worker: Worker, schema: str) -> Frame:
        """The rows that a worker makes of each partition."""
        return frame.mapInArrow(sent(worker), schema)

    def keep(self, frame: Frame) -> Frame:
        """The same rows, computed now and kept in memory and on disk.

        Spark forgets how they came about. If a machine is lost with some of them, what needs them fails,
        where Spark would else read the table again, which may have changed.
        """
        from pyspark import StorageLevel

        self._kept.append(frame.localCheckpoint(True, StorageLevel.MEMORY_AND_DISK))
        return self._kept[-1]

    def close(self) -> None:
        """Nothing is kept any longer."""
        _forget(self.session, self._kept)


def numbered(frame: Frame, names: Sequence[str]) -> Frame:
    """The columns asked for, as k0, k1 and so on: Spark would take some names for more than names."""
    places = positions(names, frame.columns)
    every = frame.toDF(*(f"c{place}" for place in range(len(frame.columns))))
    return every.select([every[f"c{place}"].alias(f"k{number}") for number, place in enumerate(places)])


def not_once(what: str) -> SourceError:
    """What is said if a cluster has answered twice where it should have once, or never."""
    fix = "publish again: nothing was released"
    return SourceError("cluster", f"must answer once for each {what}", fix=fix)


def _forget(session: Any, kept: list[Frame]) -> None:
    """Let the cluster drop what it keeps; one that is gone keeps nothing anyway."""
    while kept:
        frame = kept.pop()
        with suppress(Exception), SILENCE.on(session.sparkContext):
            frame._jdf.queryExecution().analyzed().rdd().unpersist(False)


def _use_this_python(context: Any) -> None:
    """Workers on this machine run the Python that runs us, unless somebody has said which one they run."""
    said = "PYSPARK_PYTHON" in os.environ or context.getConf().get("spark.pyspark.python")
    if not said and context.master.startswith("local"):
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
        os.environ["PYSPARK_PYTHON"] = context.pythonExec = sys.executable


def _failed() -> SourceError:
    fix = "run an action on the DataFrame, and check that each executor has partita and room on disk"
    return SourceError("data", "could not be counted on the cluster", fix=fix)


# A streaming query that feeds a durable counter or family: every event counts once, whatever fails.
#
# A micro-batch is fed in one piece, under the number that Spark gives it and the name of the query. If it
# comes
# again, because somebody died between the feeding and Spark's own note of it, it is known and counts
# nothing. It is not a step: its events count in one period, the one that is open when all of them are
# stored,
# and only the clock closes that one.


_QUERY: Final = "sql.streaming.queryId"
_LONGEST: Final = 100


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
    """Start a query that counts every row of a stream, and return it: a pyspark StreamingQuery.

    `checkpoint` is a directory where Spark notes how far it has come; with another one the stream is read
    and counted from its beginning. A family counts by the text in the column `key`, and rows with a text that
    is none of its keys nowhere. A counter whose unit is the user needs the columns `person` and `id`, and a
    row without one of the two counts nowhere; such a micro-batch comes to the driver, so keep it small.
    Persons and ids are known by the bytes of their text, numbers by those of their digits. The caller closes
    periods, with `counter.running()`.
    """
    Cluster.of(stream)
    fix = "make it with spark.readStream"
    check_data(getattr(stream, "isStreaming", False), "stream", "must be a streaming DataFrame", fix=fix)
    fix = 'pass for example "visits"'
    check(0 < len(feeder) <= _LONGEST, "feeder", "must be a short name", given=feeder, fix=fix)
    sink = _sink(counter, feeder, key=key, person=person, id=id)
    _check(stream, sink.columns, ids=[name for name in (person, id) if name is not None])
    writer = stream.writeStream.foreachBatch(sink).option("checkpointLocation", os.fspath(checkpoint))
    return writer.start()


def _check(stream: Frame, columns: Sequence[str], *, ids: Sequence[str]) -> None:
    """Refuse columns that are not there, and ids whose text is not always the same, such as times."""
    from partita.trusted.sources.spark.source import Raw

    raw = Raw.of(stream, columns)
    for name in ids:
        raw.require_ids(name)


@final
@dataclass(frozen=True)
class _Sink:
    """What Spark calls with every micro-batch and its number."""

    counter: DurableCounter | DurableFamily
    feeder: str
    columns: tuple[str, ...]
    events: Callable[[Cluster, Frame, str, int], Iterator[Event]]

    def __call__(self, batch: Frame, number: int) -> None:
        """Feed one micro-batch in one call, so that all of it counts in one period."""
        cluster = Cluster.of(batch)
        query = batch.sparkSession.sparkContext.getLocalProperty(_QUERY)
        check_source(query, "query", "must be known by an id", fix="use feed, not foreachBatch")
        events = self.events(cluster, numbered(batch, self.columns), f"{self.feeder} {query}", number)
        self.counter.add_many(events)


def _sink(
    counter: DurableCounter | DurableFamily,
    feeder: str,
    *,
    key: str | None,
    person: str | None,
    id: str | None,
) -> _Sink:
    """The sink for this counter, if the columns that it needs are named, and no others."""
    settings = counter.settings
    rule = "must remember what it was fed to count it once"
    fix = "feed it by add, at most once or at least once"
    check(not settings.pan_private, "counter", rule, given="a pan-private one", fix=fix)
    by_person = settings.unit == "user"
    _needed("key", key, bool(settings.keys))
    _needed("person", person, by_person)
    _needed("id", id, by_person)
    named = tuple(name for name in (person, id, key) if name is not None)
    if by_person:
        return _Sink(counter, feeder, named, _ByPerson(settings.keys))
    return _Sink(counter, feeder, named, _ByKey(settings.keys) if settings.keys else _whole)


def _needed(parameter: str, column: str | None, needed: bool) -> None:
    if (column is not None) == needed:
        return
    rule = "must name a column for this counter" if needed else "must be left out for this counter"
    raise InvalidParameter(parameter, rule, given=column, fix="see counter.settings")


def _whole(cluster: Cluster, rows: Frame, source: str, number: int) -> Iterator[Event]:
    """All rows together are one event."""
    yield Event(source, number, int(cluster.run(rows.count)))


@final
@dataclass(frozen=True)
class _ByKey:
    """All rows together are one event, with a count for each key."""

    keys: tuple[str, ...]

    def __call__(self, cluster: Cluster, rows: Frame, source: str, number: int) -> Iterator[Event]:
        def found() -> dict[str, int]:
            counted = _known(_bytes(rows), self.keys).groupBy("k0").count().collect()
            return {bytes(row["k0"]).decode(): int(row["count"]) for row in counted}

        yield Event(source, number, cluster.run(found))


@final
@dataclass(frozen=True)
class _ByPerson:
    """Each row is an event of a person, who is known with the id of the event."""

    keys: tuple[str, ...]

    def __call__(self, cluster: Cluster, rows: Frame, source: str, number: int) -> Iterator[Event]:
        def found() -> list[tuple[bytes, ...]]:
            complete = _bytes(rows).dropna()
            table = (_known(complete, self.keys) if self.keys else complete).toArrow()
            return list(zip(*(column.to_pylist() for column in table.columns), strict=True))

        for person, id, *key in cluster.run(found):
            yield Event(person, id, {each.decode(): 1 for each in key} or 1)


def _known(rows: Frame, keys: Sequence[str]) -> Frame:
    """Those whose last column is one of the keys, byte by byte: what is none may be no text at all."""
    return rows.where(rows[rows.columns[-1]].isin([key.encode() for key in keys]))


def _bytes(rows: Frame) -> Frame:
    """The same rows, with every column as the bytes of its text."""
    from partita.trusted.sources.spark.source import Raw

    return Raw.of(rows, rows.columns).as_bytes()
