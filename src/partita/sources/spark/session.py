"""A Spark session at work for us: quietly, and with nothing left behind.

What Spark logs and what its errors say may hold rows. While we are at work its log is off, and an error of
Spark, or of a worker, becomes one that knows nothing of the cause.
"""

from __future__ import annotations

import logging
import os
import sys
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, TypeVar, final

from partita.errors import InvalidData, SourceError
from partita.sources.names import positions
from partita.sources.quiet import attempt

__all__ = ["Batch", "Cluster", "Frame", "Worker", "is_spark", "numbered", "quiet"]

T = TypeVar("T")

Frame: TypeAlias = Any
"""A pyspark.sql.DataFrame."""

Batch: TypeAlias = Any
"""A pyarrow.RecordBatch."""

Worker: TypeAlias = Callable[[Iterator[Batch]], Iterator[Batch]]
"""What runs on an executor, once for each partition."""

_LOGGERS: Final = ("DataFrameQueryContextLogger", "SQLQueryContextLogger", "py4j")


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
        if not is_spark(frame):
            raise InvalidData(
                "data",
                "must be a Spark DataFrame",
                fix='install "partita[spark]" and read it with spark.read',
            )
        session: Any = getattr(frame, "sparkSession", None)
        if "connect" in type(frame).__module__ or not hasattr(session, "_jvm"):
            raise SourceError(
                "data",
                "must be a DataFrame of a classic Spark session, not of Spark Connect",
                fix="run where the driver is, with SparkSession.builder.master(...)",
            )
        _use_this_python(session.sparkContext)
        return Cluster(session)

    @property
    def parallelism(self) -> int:
        """How many tasks the cluster runs side by side; a public fact."""
        return max(1, int(self.session.sparkContext.defaultParallelism))

    def require_no_races(self) -> None:
        """Refuse a cluster where two attempts at a task may race: the one with fewer draws would win.

        The proof of sharded cuts needs that which attempt is seen does not depend on what it drew.
        """
        if self.session.sparkContext.getConf().get("spark.speculation", "false").lower() == "true":
            raise SourceError(
                "spark.speculation",
                "must be off, because the faster of two draws is not a fair draw",
                fix='start the session with .config("spark.speculation", "false")',
            )

    def run(self, work: Callable[[], T], *, failure: SourceError | None = None) -> T:
        """The result of something that Spark does; `failure` if it fails, and no word of Spark's."""
        with _hushed(self.session.sparkContext):
            return attempt(work, failure or _failed())

    def mapped(self, frame: Frame, worker: Worker, schema: str) -> Frame:
        """The rows that a worker makes of each partition."""
        return frame.mapInArrow(quiet(worker), schema)

    def keep(self, frame: Frame) -> Frame:
        """The same rows, computed once and kept in memory and on disk."""
        from pyspark import StorageLevel

        self._kept.append(frame.persist(StorageLevel.MEMORY_AND_DISK))
        return self._kept[-1]

    def close(self) -> None:
        """Nothing is kept any longer."""
        _forget(self.session, self._kept)


def numbered(frame: Frame, names: Sequence[str]) -> Frame:
    """The columns asked for, as k0, k1 and so on: Spark would take some names for more than names."""
    places = positions(names, frame.columns)
    every = frame.toDF(*(f"c{place}" for place in range(len(frame.columns))))
    return every.select([every[f"c{place}"].alias(f"k{number}") for number, place in enumerate(places)])


def quiet(worker: Worker) -> Worker:
    """The same worker; what goes wrong in it is told without what it was working on."""

    def run(batches: Iterator[Batch]) -> Iterator[Batch]:
        done = False
        try:
            yield from worker(batches)
            done = True
        except Exception:
            pass
        if not done:
            raise RuntimeError("a worker of Partita failed")

    return run


def _forget(session: Any, kept: list[Frame]) -> None:
    """Let the cluster drop what it keeps; one that is gone keeps nothing anyway."""
    while kept:
        with suppress(Exception), _hushed(session.sparkContext):
            kept.pop().unpersist()


@contextmanager
def _hushed(context: Any) -> Iterator[None]:
    """Spark's log is off on the driver, as are the loggers of its Python side, and what they were after."""
    root = context._jvm.org.apache.logging.log4j.LogManager.getRootLogger()
    level = root.getLevel().toString()
    context.setLogLevel("OFF")
    try:
        with _silent(map(logging.getLogger, _LOGGERS)), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        context.setLogLevel(level)


@contextmanager
def _silent(loggers: Iterable[logging.Logger]) -> Iterator[None]:
    before = [(logger, logger.disabled) for logger in loggers]
    for logger, _ in before:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, disabled in before:
            logger.disabled = disabled


def _use_this_python(context: Any) -> None:
    """Workers on this machine run the Python that runs us, unless somebody has said which one they run."""
    said = "PYSPARK_PYTHON" in os.environ or context.getConf().get("spark.pyspark.python")
    if not said and context.master.startswith("local"):
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
        os.environ["PYSPARK_PYTHON"] = context.pythonExec = sys.executable


def _failed() -> SourceError:
    return SourceError(
        "data",
        "could not be counted on the cluster",
        fix="run an action on the DataFrame, and check that each executor has partita and room on disk",
    )
