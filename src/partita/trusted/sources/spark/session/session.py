"""A Spark session at work for us: quietly, and with nothing left behind.

What Spark logs and what its errors say may hold rows. While we are at work its log is off, and an error of
Spark, or of a worker, becomes one that knows nothing of the cause.
"""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, TypeVar, final

from partita.errors.checks import check_data, check_source
from partita.errors.errors import SourceError
from partita.trusted.sources.base.names import positions
from partita.trusted.sources.base.quiet import attempt
from partita.trusted.sources.spark.session.silence import SILENCE
from partita.trusted.sources.spark.session.workers import Worker, sent, told

T = TypeVar("T")

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
