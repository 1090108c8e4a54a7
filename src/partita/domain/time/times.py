"""What Date and Timestamp share: moments out of content, public bounds, lengths of time."""

from __future__ import annotations

import datetime
import re
from typing import Final

from partita.domain.base.base import Domain, Position, Special
from partita.domain.columns.arrays import moments_column
from partita.domain.columns.arrow import cast_texts
from partita.domain.columns.columns import Blank, Column, Plain, Texts
from partita.domain.columns.moments import DAY, SECOND, UNITS, Moment, moment_of, moment_of_text
from partita.domain.time.zones import offset_at
from partita.errors.errors import InvalidParameter

_LENGTHS: Final = {"d": DAY} | {unit: UNITS[unit] for unit in ("h", "m", "s", "ms", "us", "ns")}
_RESOLUTION: Final = re.compile(r"([1-9][0-9]{0,17})(ns|us|ms|s|m|h|d)")
_PLAIN: Final = (
    "^(?:1[7-9]|2[01])[0-9]{2}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])"
    r"[T ](?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?$"
)
"""Times in the years 1700 to 2199 and on days that every month has: Arrow reads them at once."""
_PLAIN_ZONED: Final = _PLAIN.replace("$", "(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])$")
_FIX: Final = 'pass a date, a datetime or ISO 8601 text like "2024-01-31"'


def moments_of(content: Plain) -> Column:
    """The moments that texts write; numbers and flags are not moments."""
    if not isinstance(content, Texts):
        return Column.of(Blank.INVALID, len(content))
    import pyarrow as pa

    plain = {_PLAIN: pa.timestamp("ns"), _PLAIN_ZONED: pa.timestamp("ns", "UTC")}
    return cast_texts(content, plain, lambda texts: moments_column([moment_of_text(text) for text in texts]))


def public_moment(value: object, name: str) -> Moment:
    """The moment that a public bound is written as."""
    moment = None
    if isinstance(value, datetime.date):
        moment = moment_of(value)
    elif isinstance(value, str):
        moment = moment_of_text(value.encode("utf-8", "surrogatepass"))
    if moment is None:
        raise InvalidParameter(name, "must be a date or a time", given=value, fix=_FIX)
    return moment


def public_instant(value: object, zone: datetime.tzinfo, name: str) -> int:
    """A public bound in nanoseconds since 1970 UTC; without an offset it is read in `zone`."""
    moment = public_moment(value, name)
    return moment.total if moment.aware else moment.total - offset_at(zone, moment.total // SECOND) * SECOND


def located(domain: Domain, value: object, name: str) -> Position:
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
