"""Work as it travels to an executor: of the driver's own version of Partita, and silent about its rows."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, Final, TypeAlias, TypeVar

from partita.errors.errors import SourceError

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
