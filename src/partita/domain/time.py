"""Columns of days and of points in time: `Date` and `Timestamp`, and the wall clocks of time zones.

A clock reading that occurs twice, when clocks go back, means the first occurrence; one that is skipped, when
they go forward, is read with the offset from before the change. Both are what Python does with fold=0.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from typing import Final, Self, cast, final
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt

from partita.domain import columns
from partita.domain.base import (
    ORDERED_SPECIALS,
    Cells,
    Domain,
    Encoded,
    Position,
    Spec,
    Special,
    check_size,
    indices,
    place,
    read_entries,
)
from partita.errors import InvalidParameter
from partita.lazy import cached_property
from partita.numbers import Converted, freeze, frozen, parameter

_HOUR: Final = 3600
_EPOCH: Final = datetime.datetime(1970, 1, 1)
_EPOCH_DAY: Final = _EPOCH.date()
_FIRST_SECOND: Final = (datetime.date.min - _EPOCH_DAY).days * 86_400
_LAST_SECOND: Final = ((datetime.date.max - _EPOCH_DAY).days + 1) * 86_400 - 1


def zone_named(name: object) -> datetime.tzinfo:
    """The time zone of an IANA name; UTC needs no time zone data."""
    try:
        zone = datetime.UTC if name == "UTC" else ZoneInfo(name) if isinstance(name, str) else None
    except (KeyError, ValueError, OSError):
        zone = None
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
    seconds, rest = divmod(nanoseconds, columns.SECOND)
    clock = datetime_at(seconds * columns.SECOND, zone)
    wall = clock.replace(tzinfo=None).isoformat()
    fraction = f".{rest:09}".rstrip("0") if rest else ""
    return wall + fraction + clock.isoformat()[len(wall) :]


def instants(moments: columns.Moments, zone: datetime.tzinfo) -> columns.Moments:
    """The same moments as instants: wall-clock readings are taken in `zone`."""
    if moments.aware or zone is datetime.UTC:
        return moments
    wall = moments.day * 86_400 + moments.nanosecond // columns.SECOND
    nanosecond = moments.nanosecond - _offsets(wall, zone) * columns.SECOND
    return columns.Moments(moments.day + nanosecond // columns.DAY, nanosecond % columns.DAY, aware=True)


def _offsets(wall: npt.NDArray[np.int64], zone: datetime.tzinfo) -> npt.NDArray[np.int64]:
    """The offset at each second of the wall clock.

    An hour of the clock whose first and last second have one offset has it throughout, as no zone changes
    twice in an hour; the few other hours are looked up second by second.
    """
    hours, codes = np.unique(wall // _HOUR, return_inverse=True)
    first = _look_up(hours * _HOUR, zone)
    changing = first != _look_up(hours * _HOUR + _HOUR - 1, zone)
    offsets = first[codes]
    rows = np.flatnonzero(changing[codes])
    seconds, at = np.unique(wall[rows], return_inverse=True)
    offsets[rows] = _look_up(seconds, zone)[at]
    return offsets


def _look_up(seconds: npt.NDArray[np.int64], zone: datetime.tzinfo) -> npt.NDArray[np.int64]:
    return np.array([offset_at(zone, second) for second in seconds.tolist()], np.int64)


# What Date and Timestamp share: moments from content, public bounds, lengths of time.

_LENGTHS: Final = {"d": columns.DAY} | {
    unit: columns.UNITS[unit] for unit in ("h", "m", "s", "ms", "us", "ns")
}
_RESOLUTION: Final = re.compile(r"([1-9][0-9]{0,17})(ns|us|ms|s|m|h|d)")
_PLAIN: Final = (
    "^(?:1[7-9]|2[01])[0-9]{2}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])"
    r"[T ](?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?$"
)
"""Times in the years 1700 to 2199 and on days that every month has: Arrow reads them at once."""
_PLAIN_ZONED: Final = _PLAIN.replace("$", "(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])$")
_FIX: Final = 'pass a date, a datetime or ISO 8601 text like "2024-01-31"'


def moments_of(content: columns.Plain) -> columns.Column:
    """The moments that texts write; numbers and flags are not moments."""
    if not isinstance(content, columns.Texts):
        return columns.Column.of(columns.Blank.INVALID, len(content))
    import pyarrow as pa

    plain = {_PLAIN: pa.timestamp("ns"), _PLAIN_ZONED: pa.timestamp("ns", "UTC")}
    return columns.cast_texts(
        content, plain, lambda texts: columns.moments_column([columns.moment_of_text(text) for text in texts])
    )


def public_moment(value: object, name: str) -> columns.Moment:
    """The moment that a public bound is written as."""
    moment = None
    if isinstance(value, datetime.date):
        moment = columns.moment_of(value)
    elif isinstance(value, str):
        moment = columns.moment_of_text(value.encode("utf-8", "surrogatepass"))
    if moment is None:
        raise InvalidParameter(name, "must be a date or a time", given=value, fix=_FIX)
    return moment


def public_instant(value: object, zone: datetime.tzinfo, name: str) -> int:
    """A public bound in nanoseconds since 1970 UTC; without an offset it is read in `zone`."""
    moment = public_moment(value, name)
    return (
        moment.total
        if moment.aware
        else moment.total - offset_at(zone, moment.total // columns.SECOND) * columns.SECOND
    )


def locate_moment(domain: Domain, value: object, name: str) -> Position:
    """Where a public value lies, read by the encoder of the column itself."""
    encoded = domain.encode([value])
    special = Special(encoded.special[0])
    if special in (Special.INVALID, Special.NULL):
        rule = f"must be a date or a time, as the column is {domain!r}"
        raise InvalidParameter(name, rule, given=value, fix=_FIX)
    return Position(int(encoded.cells[0]), special)


def resolution_nanoseconds(resolution: object) -> int:
    """A length of time, as a timedelta or text such as "15m", in nanoseconds.

    >>> resolution_nanoseconds("15m") == resolution_nanoseconds(datetime.timedelta(minutes=15))
    True
    """
    if isinstance(resolution, datetime.timedelta) and resolution > datetime.timedelta(0):
        return resolution // datetime.timedelta(microseconds=1) * 1000
    match = _RESOLUTION.fullmatch(resolution) if isinstance(resolution, str) else None
    if match is None:
        fix = 'pass a timedelta or text like "1s", "15m", "1h", "1d" or "1ns"'
        raise InvalidParameter("resolution", "must be a positive length of time", given=resolution, fix=fix)
    return int(match[1]) * _LENGTHS[match[2]]


def resolution_text(nanoseconds: int) -> str:
    """The same length in the largest unit that divides it.

    >>> resolution_text(900 * 10**9)
    '15m'
    """
    unit = next(unit for unit, length in _LENGTHS.items() if nanoseconds % length == 0)
    return f"{nanoseconds // _LENGTHS[unit]}{unit}"


@final
@frozen(repr=False)
class Date:
    """The days from `start` to `end`, both included; a cell for each.

    Values are dates, datetimes, Arrow or NumPy dates and timestamps, or ISO 8601 text. A wall-clock time
    counts on its own calendar day, an instant (with an offset or a time zone) on its day in UTC. Numbers, and
    text that is not a date, are invalid. A day outside Python's years 1 to 9999 is below or above.

    >>> days = Date("2024-01-01", "2024-12-31")
    >>> days.size, days.encode([datetime.date(2024, 1, 2), "2024-02-01T23:00:00-02:00"]).tolist()
    (366, [1, 32])
    >>> days.decode([365])
    [datetime.date(2024, 12, 31)]
    """

    start: Converted[datetime.date | str, datetime.date] = parameter()
    end: Converted[datetime.date | str, datetime.date] = parameter()

    def __post_init__(self) -> None:
        end = self.end
        freeze(self, start=_day(self.start, "start"), end=_day(end, "end"))
        check_size(self.size, "start", "end", given=str(end))

    def __repr__(self) -> str:
        return f"Date({self.start.isoformat()!r}, {self.end.isoformat()!r})"

    @property
    def size(self) -> int:
        """The number of days, both ends included."""
        return (self.end - self.start).days + 1

    @property
    def specials(self) -> tuple[str, ...]:
        """The special cells: below, above, invalid and null."""
        return ORDERED_SPECIALS

    def encode(self, values: object) -> Encoded:
        return columns.assemble(columns.read(values), self._encode, invalid=Special.INVALID)

    def decode(self, cells: Sequence[int] | Cells) -> list[datetime.date]:
        """The day of each cell."""
        return [self.start + datetime.timedelta(days=cell) for cell in indices(cells, self.size)]

    def locate(self, value: object, *, name: str = "value") -> Position:
        """Where a public date lies; it is read as the column's values are."""
        return locate_moment(self, value, name)

    def to_spec(self) -> Spec:
        """Kind, start and end as ISO text."""
        return {"kind": "date", "start": self.start.isoformat(), "end": self.end.isoformat()}

    @classmethod
    def from_spec(cls, spec: Mapping[str, object]) -> Self:
        start, end = read_entries(spec, "date", "start", "end")
        return cls(_day(start, "start"), _day(end, "end"))

    def _encode(self, content: columns.Plain) -> Encoded:
        if isinstance(content, columns.Moments):
            return place(content.day, (self.start - _EPOCH_DAY).days, (self.end - _EPOCH_DAY).days)
        return columns.assemble(moments_of(content), self._encode, invalid=Special.INVALID)


def _day(value: object, name: str) -> datetime.date:
    moment = public_moment(value, name)
    if not moment.dated:
        fix = 'pass a datetime.date or text like "2024-01-31"'
        raise InvalidParameter(name, "must be a date without a time of day", given=str(value), fix=fix)
    return _EPOCH_DAY + datetime.timedelta(days=moment.day)


@final
@frozen(repr=False)
class Timestamp:
    """Slots [start + i * resolution, start + (i + 1) * resolution), up to the one that holds `end`.

    All slots are whole: if `end` is not a slot's first instant, the rest of its slot belongs to the last cell
    too. `resolution` is a timedelta or text such as "1s", "15m", "1h", "1d", "1ms", "1us", "1ns"; a day is 24
    hours of elapsed time. Every step is exact to the nanosecond.

    Values are datetimes, dates (their midnight), Arrow or NumPy timestamps, or ISO 8601 text. One with an
    offset or a time zone is an instant; one without is a reading of the wall clock in `zone`, and so are the
    bounds. A reading that occurs twice is the first, one that is skipped keeps the offset from before.
    Anything else is invalid.

    >>> hours = Timestamp("2024-03-31", "2024-03-31T23:59:59", "1h", zone="Europe/Rome")
    >>> hours.size, hours.encode(["2024-03-31T12:30:00", "2024-03-31T10:30:00Z"]).tolist()
    (23, [11, 11])
    >>> hours.decode([11])[0].isoformat()
    '2024-03-31T12:00:00+02:00'
    """

    start: Converted[datetime.date | str, str] = parameter()
    end: Converted[datetime.date | str, str] = parameter()
    resolution: Converted[datetime.timedelta | str, str] = parameter()
    zone: str = "UTC"

    def __post_init__(self) -> None:
        clock, end = zone_named(self.zone), self.end
        start = _bound(self.start, clock, "start")
        resolution = resolution_text(resolution_nanoseconds(self.resolution))
        freeze(self, start=start, end=_bound(end, clock, "end"), resolution=resolution)
        check_size(self.size, "start", "end", given=str(end))

    def __repr__(self) -> str:
        return f"Timestamp({self.start!r}, {self.end!r}, {self.resolution!r}, zone={self.zone!r})"

    @cached_property
    def size(self) -> int:
        """The number of slots of time, the last one included."""
        return (public_instant(self.end, self._clock, "end") - self._first) // self._length + 1

    @property
    def specials(self) -> tuple[str, ...]:
        """The special cells: below, above, invalid and null."""
        return ORDERED_SPECIALS

    def encode(self, values: object) -> Encoded:
        return columns.assemble(columns.read(values), self._encode, invalid=Special.INVALID)

    def decode(self, cells: Sequence[int] | Cells) -> list[datetime.datetime] | list[str]:
        """The first instant of each cell, in `zone`.

        Datetimes hold no nanoseconds: if the slots do not all start on a microsecond, the instants are ISO
        text with an offset instead.
        """
        starts = [self._first + cell * self._length for cell in indices(cells, self.size)]
        if self._first % 1000 or self._length % 1000:
            return [text_at(start, self._clock) for start in starts]
        return [datetime_at(start, self._clock) for start in starts]

    def locate(self, value: object, *, name: str = "value") -> Position:
        """Where a public time lies; it is read as the column's values are."""
        return locate_moment(self, value, name)

    def to_spec(self) -> Spec:
        """Kind, start and end as ISO text with offsets, resolution and zone."""
        names = ("start", "end", "resolution", "zone")
        return {"kind": "timestamp", **{name: getattr(self, name) for name in names}}

    @classmethod
    def from_spec(cls, spec: Mapping[str, object]) -> Self:
        start, end, resolution, zone = read_entries(spec, "timestamp", "start", "end", "resolution", "zone")
        return cls(cast(str, start), cast(str, end), cast(str, resolution), cast(str, zone))

    @cached_property
    def _clock(self) -> datetime.tzinfo:
        return zone_named(self.zone)

    @cached_property
    def _first(self) -> int:
        return public_instant(self.start, self._clock, "start")

    @cached_property
    def _length(self) -> int:
        return resolution_nanoseconds(self.resolution)

    def _encode(self, content: columns.Plain) -> Encoded:
        if isinstance(content, columns.Moments):
            return self._slots(instants(content, self._clock))
        return columns.assemble(moments_of(content), self._encode, invalid=Special.INVALID)

    def _slots(self, moments: columns.Moments) -> Encoded:
        """Slot numbers, in 64-bit integers if the whole line fits them, else in Python's.

        Days further out are brought to a day before the first slot or after the last.
        """
        first_day, first_nanosecond = divmod(self._first, columns.DAY)
        days = (self.size * self._length + first_nanosecond) // columns.DAY + 1
        exact = np.dtype(np.int64 if (days + 2) * columns.DAY < 2**63 else object)
        day = (moments.day - first_day).clip(-1, days).astype(exact)
        return place(
            (day * columns.DAY + (moments.nanosecond - first_nanosecond)) // self._length, 0, self.size - 1
        )


def _bound(value: object, clock: datetime.tzinfo, name: str) -> str:
    instant = public_instant(value, clock, name)
    try:
        return text_at(instant, clock)
    except OverflowError:
        rule = "must lie in the years 1 to 9999, both in its zone and in UTC"
        raise InvalidParameter(name, rule, given=str(value), fix="move it by a day") from None
