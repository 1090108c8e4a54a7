"""Points in time as a day and a nanosecond: from counts of a unit, Python values and ISO text.

Text follows the rules of `datetime.fromisoformat`: a date (2024-01-31, 20240131 or
2024-W05-3), then optionally `T` or a space, a time (hours, minutes and seconds, with or
without colons, and a fraction of the second), and an offset (`Z`, +01, +01:00, +01:00:30).
Fractions are kept to the nanosecond, later digits are cut off. There is no hour 24 and no
second 60. The calendar is the proleptic Gregorian one throughout.
"""

from __future__ import annotations

import datetime
import re
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from partita.domain.columns.columns import LONGEST, WHITE

SECOND: Final = 10**9
DAY: Final = 86_400 * SECOND
FAR: Final = 10**7
"""Days from 1970 beyond which all days are alike: some 27,000 years, outside every domain."""

UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "ms": 10**6,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3600 * SECOND,
    "D": DAY,
    "W": 7 * DAY,
}
_FINER: Final = {"ps": 10**3, "fs": 10**6, "as": 10**9}
_MONTHS: Final = {"M": 1, "Y": 12}

Unit: TypeAlias = str
_Pair: TypeAlias = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]

_EPOCH: Final = datetime.date(1970, 1, 1).toordinal()
_FAR_MONTHS: Final = 300_000
_ISO: Final = re.compile(
    rb"(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{8}|[0-9]{4}-W[0-9]{2}(?:-[0-9])?|[0-9]{4}W[0-9]{2}[0-9]?)"
    rb"(?:[T ](?P<hour>[01][0-9]|2[0-3])(?::?(?P<minute>[0-5][0-9])"
    rb"(?::?(?P<second>[0-5][0-9])(?:[.,](?P<fraction>[0-9]+))?)?)?"
    rb"(?P<zone>Z|(?P<sign>[+-])(?P<hours>[01][0-9]|2[0-3])"
    rb"(?::?(?P<minutes>[0-5][0-9])(?::?(?P<seconds>[0-5][0-9]))?)?)?)?"
)


class Moment(NamedTuple):
    """One point in time; see `columns.Moments`."""

    day: int
    nanosecond: int
    aware: bool
    dated: bool = False

    @property
    def total(self) -> int:
        """Nanoseconds since 1970-01-01."""
        return self.day * DAY + self.nanosecond


def day_and_nanosecond(counts: npt.NDArray[np.int64], unit: Unit, multiple: int = 1) -> _Pair:
    """Days and nanoseconds of the day, of counts of `multiple` units since 1970.

    >>> day_and_nanosecond(np.array([-1, 90_000]), "s")
    (array([-1,  1]), array([86399000000000,  3600000000000]))
    """
    if unit in _MONTHS:
        return _from_months(counts, _MONTHS[unit] * multiple)
    if unit in _FINER:
        counts, unit, multiple = _scaled(counts, multiple) // _FINER[unit], "ns", 1
    length = UNITS[unit] * multiple
    if DAY % length == 0:
        slots = DAY // length
        return _near(counts // slots), (counts % slots * length).astype(np.int64)
    total = _scaled(counts, length)
    return _near(total // DAY), (total % DAY).astype(np.int64)


def moment_of(value: datetime.date) -> Moment:
    """The moment of a date or datetime; an aware one is moved to UTC, outside Python's years too.

    >>> moment_of(datetime.datetime(1, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=1))))
    Moment(day=-719163, nanosecond=82800000000000, aware=True, dated=False)
    """
    day = value.toordinal() - _EPOCH
    if not isinstance(value, datetime.datetime):
        return Moment(day, 0, aware=False, dated=True)
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    nanosecond = seconds * SECOND + value.microsecond * 1000 + int(getattr(value, "nanosecond", 0))
    return _moment(day, nanosecond, value.utcoffset())


def moment_of_text(text: bytes) -> Moment | None:
    """The moment that ISO 8601 text writes, or None; ASCII white space around it is trimmed.

    >>> moment_of_text(b"1970-01-02T00:00:00.5+00:00")
    Moment(day=1, nanosecond=500000000, aware=True, dated=False)
    """
    match = _ISO.fullmatch(text.strip(WHITE)) if len(text) <= LONGEST else None
    try:
        return _matched(match) if match else None
    except ValueError:
        return None


def _matched(match: re.Match[bytes]) -> Moment:
    day = datetime.date.fromisoformat(match["date"].decode()).toordinal() - _EPOCH
    if match["hour"] is None:
        return Moment(day, 0, aware=False, dated=True)
    seconds = _seconds(match["hour"], match["minute"], match["second"])
    fraction = int((match["fraction"] or b"")[:9].ljust(9, b"0"))
    return _moment(day, seconds * SECOND + fraction, _offset(match))


def _offset(match: re.Match[bytes]) -> datetime.timedelta | None:
    if match["zone"] is None:
        return None
    seconds = _seconds(match["hours"], match["minutes"], match["seconds"])
    return datetime.timedelta(seconds=-seconds if match["sign"] == b"-" else seconds)


def _seconds(hour: bytes | None, minute: bytes | None, second: bytes | None) -> int:
    return (int(hour or 0) * 60 + int(minute or 0)) * 60 + int(second or 0)


def _moment(day: int, nanosecond: int, offset: datetime.timedelta | None) -> Moment:
    if offset is None:
        return Moment(day, nanosecond, aware=False)
    utc = day * DAY + nanosecond - offset // datetime.timedelta(microseconds=1) * 1000
    return Moment(*divmod(utc, DAY), aware=True)


def _from_months(counts: npt.NDArray[np.int64], months: int) -> _Pair:
    far = -(-_FAR_MONTHS // months)
    first_days = (np.clip(counts, -far, far) * months).astype("M8[M]").astype("M8[D]")
    return _near(first_days.astype(np.int64)), np.zeros(len(counts), np.int64)


def _scaled(counts: npt.NDArray[np.int64], factor: int) -> npt.NDArray[Any]:
    return counts if factor == 1 else counts.astype(object) * factor


def _near(days: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    near: npt.NDArray[np.int64] = np.clip(days, -FAR, FAR).astype(np.int64)
    return near
