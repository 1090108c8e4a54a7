"""Wall clocks: the instant that a clock reading means in a time zone.

A reading that occurs twice, when clocks go back, means the first occurrence; one that is
skipped, when they go forward, is read with the offset from before the change. Both are
what Python does with fold=0.
"""

from __future__ import annotations

import datetime
from typing import Final
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt

from partita.domain.columns.columns import Moments
from partita.domain.columns.moments import DAY, SECOND
from partita.errors.errors import InvalidParameter

_HOUR: Final = 3600
_FIRST_SECOND: Final = (datetime.date.min.toordinal() - datetime.date(1970, 1, 1).toordinal()) * 86_400
_LAST_SECOND: Final = (datetime.date.max.toordinal() - datetime.date(1970, 1, 1).toordinal() + 1) * 86_400 - 1
_EPOCH: Final = datetime.datetime(1970, 1, 1)


def zone_named(name: object) -> datetime.tzinfo:
    """The time zone of an IANA name; UTC needs no time zone data."""
    zone = datetime.UTC if name == "UTC" else _found(name)
    if zone is None:
        fix = 'pass an IANA name like "Europe/Rome"'
        raise InvalidParameter("zone", "must be the name of a known time zone", given=name, fix=fix)
    return zone


def offset_at(zone: datetime.tzinfo, wall_second: int) -> int:
    """Seconds east of UTC when the clock reads `wall_second` seconds after 1970-01-01 00:00.

    Readings outside Python's years have the offset of the nearest one inside.
    """
    second = max(_FIRST_SECOND, min(_LAST_SECOND, wall_second))
    offset = zone.utcoffset(_EPOCH + datetime.timedelta(seconds=second))
    return 0 if offset is None else offset // datetime.timedelta(seconds=1)


def datetime_at(nanoseconds: int, zone: datetime.tzinfo) -> datetime.datetime:
    """The clock in `zone` at an instant, to the microsecond."""
    since = datetime.timedelta(microseconds=nanoseconds // 1000)
    return (_EPOCH.replace(tzinfo=datetime.UTC) + since).astimezone(zone)


def text_at(nanoseconds: int, zone: datetime.tzinfo) -> str:
    """The clock in `zone` at an instant, as ISO text with its offset, exact to the nanosecond.

    >>> text_at(1_500_000_001, datetime.UTC)
    '1970-01-01T00:00:01.500000001+00:00'
    """
    seconds, rest = divmod(nanoseconds, SECOND)
    clock = datetime_at(seconds * SECOND, zone)
    wall = clock.replace(tzinfo=None).isoformat()
    fraction = f".{rest:09}".rstrip("0") if rest else ""
    return wall + fraction + clock.isoformat()[len(wall) :]


def instants(moments: Moments, zone: datetime.tzinfo) -> Moments:
    """The same moments as instants: wall-clock readings are taken in `zone`."""
    if moments.aware or zone is datetime.UTC:
        return moments
    wall = moments.day * 86_400 + moments.nanosecond // SECOND
    nanosecond = moments.nanosecond - _offsets(wall, zone) * SECOND
    return Moments(moments.day + nanosecond // DAY, nanosecond % DAY, aware=True)


def _offsets(wall: npt.NDArray[np.int64], zone: datetime.tzinfo) -> npt.NDArray[np.int64]:
    """The offset at each second of the wall clock.

    An hour of the clock whose first and last second have one offset has it throughout,
    as no zone changes twice in an hour; the few other hours are asked second by second.
    """
    hours, codes = np.unique(wall // _HOUR, return_inverse=True)
    first = _asked(hours * _HOUR, zone)
    changing = first != _asked(hours * _HOUR + _HOUR - 1, zone)
    offsets = first[codes]
    rows = np.flatnonzero(changing[codes])
    seconds, at = np.unique(wall[rows], return_inverse=True)
    offsets[rows] = _asked(seconds, zone)[at]
    return offsets


def _asked(seconds: npt.NDArray[np.int64], zone: datetime.tzinfo) -> npt.NDArray[np.int64]:
    return np.array([offset_at(zone, second) for second in seconds.tolist()], np.int64)


def _found(name: object) -> datetime.tzinfo | None:
    try:
        return ZoneInfo(name) if isinstance(name, str) else None
    except (KeyError, ValueError, OSError):
        return None
