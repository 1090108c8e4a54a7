"""Events that lie ready with their times: how many in each period of a public stretch of time."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from partita.errors import InvalidParameter, PartitaError
from partita.streams.durable.clock import Schedule, nanoseconds
from partita.streams.durable.files import disk

__all__ = ["Times", "by_period"]

Times: TypeAlias = str | os.PathLike[str] | Iterable[object]
"""A file with one time in each line, or times: datetimes, ISO 8601 text, or seconds since 1970."""

_MOST: Final = 10**8
_SOME: Final = 1 << 16


def by_period(times: Any, schedule: Schedule, *, start: object, end: object) -> tuple[int, list[int]]:
    """The number of the first period, and how many events each has up to the last.

    What lies outside counts in the first or the last; what is no time, nowhere.
    """
    first = _boundary(schedule, start, "start") + 1
    last = _boundary(schedule, end, "end")
    if not first <= last < first + _MOST:
        raise InvalidParameter(
            "end", f"must be 1 to {_MOST} periods after start", given=last - first + 1, fix="feed in parts"
        )
    counts = np.zeros(last - first + 1, dtype=np.int64)
    for moments in _some_moments(times):
        numbers = np.clip(_numbers(moments, schedule), first, last)
        counts += np.bincount(numbers - first, minlength=counts.size)
    return first, counts.tolist()


def _boundary(schedule: Schedule, moment: object, name: str) -> int:
    """The number of periods before a moment that is the end of one."""
    exact = nanoseconds(moment, name)
    if exact < schedule.start or (exact - schedule.start) % schedule.period:
        raise InvalidParameter(
            name, "must be the start of the counter, or the end of a period", given=str(moment), fix="move it"
        )
    return schedule.ended(exact)


def _some_moments(times: Any) -> Iterator[list[int]]:
    """The moments in nanoseconds, some at a time."""
    some = []
    for time in _each(times):
        moment = _moment(time)
        some.append(moment) if moment is not None else None
        if len(some) == _SOME:
            yield some
            some = []
    yield some


def _each(times: Any) -> Iterator[object]:
    if isinstance(times, (str, os.PathLike)):
        path = Path(times)
        with disk(path), open(path, encoding="utf-8", errors="replace") as lines:
            yield from (line.strip() for line in lines)
    elif isinstance(times, np.ndarray) and times.dtype.kind == "M":
        yield from times.astype("datetime64[us]").ravel().tolist()
    else:
        yield from np.asarray(times).ravel().tolist() if isinstance(times, np.ndarray) else times


def _moment(time: object) -> int | None:
    """A moment in nanoseconds, or None for what is no time."""
    if isinstance(time, float) and not math.isfinite(time):
        return None
    if isinstance(time, datetime):
        return nanoseconds(time, "times")
    try:
        return nanoseconds(time, "times")
    except (PartitaError, TypeError):
        return None


def _numbers(moments: list[int], schedule: Schedule) -> NDArray[np.int64]:
    return np.array([schedule.number(moment) for moment in moments], dtype=np.int64)
