"""Events that lie ready with their times: how many in each period of a public stretch of time."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from partita.errors import InvalidParameter
from partita.streams.durable.clock import Schedule, nanoseconds
from partita.streams.durable.files import disk
from partita.streams.durable.settings import Settings

__all__ = ["FILE", "MOST_PERIODS", "Times", "by_period", "fed_before"]

FILE: Final = "timestamps"
"""The feeder of those who name none."""

Times: TypeAlias = str | os.PathLike[str] | Iterable[object]
"""A file with one time in each line, or times: datetimes, ISO 8601 text, or seconds since 1970."""

MOST_PERIODS: Final = 10**8
"""How many periods may be fed at once, and how many of a new counter may have ended."""


def by_period(times: Any, schedule: Schedule, *, start: object, end: object) -> tuple[int, NDArray[np.int64]]:
    """The number of the first period, and how many events each has up to the last.

    What lies outside counts in the first or the last; what is no time, nowhere.
    """
    first = _boundary(schedule, start, "start") + 1
    last = _boundary(schedule, end, "end")
    if not first <= last < first + MOST_PERIODS:
        raise InvalidParameter(
            "end",
            f"must be 1 to {MOST_PERIODS} periods after start",
            given=last - first + 1,
            fix="feed in parts",
        )
    counts = np.zeros(last - first + 1, dtype=np.int64)
    for time in _each(times):
        moment = _moment(time)
        if moment is not None:
            counts[max(first, min(schedule.number(moment), last)) - first] += 1
    return first, counts


def fed_before(settings: Settings) -> InvalidParameter:
    """What is said to somebody without a name about periods that were fed before: nothing is dropped."""
    if settings.pan_private:
        return InvalidParameter(
            "start", "must be where no period is closed", given="an earlier one", fix="feed what comes after"
        )
    return InvalidParameter(
        "feeder",
        "must be named for periods that were fed before",
        given=None,
        fix=f"pass feeder={FILE!r} to go on with a call that was interrupted, a new name for other events",
    )


def _boundary(schedule: Schedule, moment: object, name: str) -> int:
    """The number of periods before a moment that is the end of one."""
    exact = nanoseconds(moment, name)
    if exact < schedule.start or (exact - schedule.start) % schedule.period:
        raise InvalidParameter(
            name, "must be the start of the counter, or the end of a period", given=str(moment), fix="move it"
        )
    return schedule.ended(exact)


def _each(times: Any) -> Iterator[object]:
    if isinstance(times, (str, os.PathLike)):
        path = Path(times)
        with disk(path), open(path, encoding="utf-8", errors="replace") as lines:
            yield from (line.strip() for line in lines)
    else:
        yield from np.ravel(times) if isinstance(times, np.ndarray) else times


def _moment(time: object) -> int | None:
    """A moment in nanoseconds, or None for what is no time."""
    plain: object = time
    if isinstance(time, np.datetime64):
        plain = time.astype("datetime64[us]").item()
    elif isinstance(time, np.generic):
        plain = time.item()
    try:
        return nanoseconds(plain, "times")
    except InvalidParameter:
        return None
