"""Public time: whole periods, one after another from a public start.

Moments are integers of nanoseconds since 1970 in UTC.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import Final

from partita.errors import InvalidParameter
from partita.exact import rational
from partita.streams.base import LARGEST

__all__ = ["SECOND", "Schedule", "moment_of", "nanoseconds", "period_of", "present"]

SECOND: Final = 10**9

_UNITS: Final = {
    "ms": SECOND // 1000,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3600 * SECOND,
    "d": 86_400 * SECOND,
    "w": 604_800 * SECOND,
}
_WRITTEN: Final = re.compile(r"([0-9]{1,9})(ms|[smhdw])")
_SHORTEST: Final = SECOND // 1000
_FARTHEST: Final = 2**80
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


@dataclass(frozen=True)
class Schedule:
    """Periods of equal length, numbered from 1.

    >>> schedule = Schedule(start=0, period=60 * SECOND)
    >>> schedule.ended(185 * SECOND), schedule.number(185 * SECOND)
    (3, 4)
    """

    start: int
    period: int

    def ended(self, now: int) -> int:
        """How many periods have ended."""
        return max(0, min((now - self.start) // self.period, LARGEST))

    def number(self, moment: int) -> int:
        """The period that a moment lies in; 0 or less before the start."""
        return (moment - self.start) // self.period + 1

    def end(self, number: int) -> int:
        """When a period ends; the end of period 0 is the start."""
        return self.start + number * self.period


def period_of(period: object) -> int:
    """The length of a period: "30s", "1m", "1h", "1d", "1w", or a number of seconds.

    >>> period_of("1m") == period_of(60) == 60 * SECOND
    True
    """
    written = _WRITTEN.fullmatch(period) if isinstance(period, str) else None
    length = int(written[1]) * _UNITS[written[2]] if written else _seconds(period)
    if not _SHORTEST <= length < LARGEST:
        raise InvalidParameter(
            "period", "must be a millisecond or longer", given=period, fix='pass for example "1m"'
        )
    return length


def nanoseconds(moment: object, name: str) -> int:
    """A moment as people write it: a datetime, ISO 8601 text, or seconds since 1970. No zone means UTC.

    >>> nanoseconds("1970-01-02", "start") == nanoseconds(86_400, "start") == 86_400 * SECOND
    True
    """
    try:
        written = _parsed(moment) if isinstance(moment, str) else moment
        exact = _since_epoch(written) if isinstance(written, date) else _exact(written, name)
    except (ValueError, OverflowError):
        exact = _FARTHEST
    if not -_FARTHEST < exact < _FARTHEST:
        raise InvalidParameter(
            name, "must be a moment", given=moment, fix='pass a datetime or text like "2026-01-31T12:00"'
        )
    return exact


def moment_of(moment: int) -> datetime:
    """Nanoseconds as a datetime in UTC, down to the microsecond; the first or last there is, if beyond.

    >>> moment_of(90 * SECOND).isoformat()
    '1970-01-01T00:01:30+00:00'
    """
    try:
        return _EPOCH + (moment // 1000) * _MICROSECOND
    except OverflowError:
        return (datetime.max if moment > 0 else datetime.min).replace(tzinfo=UTC)


def present(now: object) -> int:
    """The moment that was given; the system's clock if none was."""
    return time.time_ns() if now is None else nanoseconds(now, "now")


def _parsed(text: str) -> datetime | str:
    """Text as a date and time if it is written as one; else it may be a number."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return text


def _seconds(period: object) -> int:
    try:
        return _exact(period, "period")
    except InvalidParameter:
        raise InvalidParameter(
            "period", "must be a length of time", given=period, fix='pass for example "1m"'
        ) from None


def _exact(seconds: object, name: str) -> int:
    return int(Fraction(rational(seconds, name) * SECOND))


def _since_epoch(moment: date) -> int:
    day = moment if isinstance(moment, datetime) else datetime(moment.year, moment.month, moment.day)
    zoned = day if day.tzinfo else day.replace(tzinfo=UTC)
    return (zoned - _EPOCH) // _MICROSECOND * 1000
