"""Slots of equal length between two points in time."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Self, cast, final

import numpy as np

from partita.domain.base.base import (
    ORDERED_SPECIALS,
    Cells,
    Encoded,
    Position,
    Spec,
    Special,
    check_size,
    indices,
    place,
)
from partita.domain.base.specs import taken
from partita.domain.columns.columns import Moments, Plain, assemble
from partita.domain.columns.moments import DAY
from partita.domain.columns.read import read
from partita.domain.time.times import (
    located,
    moments_of,
    public_instant,
    resolution_nanoseconds,
    resolution_text,
)
from partita.domain.time.zones import datetime_at, instants, text_at, zone_named
from partita.errors.errors import InvalidParameter
from partita.lazy.cached import cached_property
from partita.numbers import Converted, freeze, frozen, parameter


@final
@frozen(repr=False)
class Timestamp:
    """Slots [start + i * resolution, start + (i + 1) * resolution), up to the one that holds `end`.

    All slots are whole: if `end` is not a slot's first instant, the rest of its slot
    belongs to the last cell too. `resolution` is a timedelta or text such as "1s", "15m",
    "1h", "1d", "1ms", "1us", "1ns"; a day is 24 hours of elapsed time. Every step is exact
    to the nanosecond.

    Values are datetimes, dates (their midnight), Arrow or NumPy timestamps, or ISO 8601
    text. One with an offset or a time zone is an instant; one without is a reading of the
    wall clock in `zone`, and so are the bounds. A reading that occurs twice is the first,
    one that is skipped keeps the offset from before. Anything else is invalid.

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
        freeze(
            self,
            start=_bound(self.start, clock, "start"),
            end=_bound(end, clock, "end"),
            resolution=resolution_text(resolution_nanoseconds(self.resolution)),
        )
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
        """The cell of every row of a column."""
        return assemble(read(values), self._encode, invalid=Special.INVALID)

    def decode(self, cells: Sequence[int] | Cells) -> list[datetime.datetime] | list[str]:
        """The first instant of each cell, in `zone`.

        Datetimes hold no nanoseconds: if the slots do not all start on a microsecond, the
        instants are ISO text with an offset instead.
        """
        starts = [self._first + cell * self._length for cell in indices(cells, self.size)]
        if self._first % 1000 or self._length % 1000:
            return [text_at(start, self._clock) for start in starts]
        return [datetime_at(start, self._clock) for start in starts]

    def locate(self, value: object, *, name: str = "value") -> Position:
        """Where a public time lies; it is read as the column's values are."""
        return located(self, value, name)

    def to_spec(self) -> Spec:
        """Kind, start and end as ISO text with offsets, resolution and zone."""
        names = ("start", "end", "resolution", "zone")
        return {"kind": "timestamp", **{name: getattr(self, name) for name in names}}

    @classmethod
    def from_spec(cls, spec: Mapping[str, object]) -> Self:
        """The domain that `to_spec` described."""
        start, end, resolution, zone = taken(spec, "timestamp", "start", "end", "resolution", "zone")
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

    def _encode(self, content: Plain) -> Encoded:
        if isinstance(content, Moments):
            return self._slots(instants(content, self._clock))
        return assemble(moments_of(content), self._encode, invalid=Special.INVALID)

    def _slots(self, moments: Moments) -> Encoded:
        """Slot numbers, in 64-bit integers if the whole line fits them, else in Python's.

        Days further out are brought to a day before the first slot or after the last.
        """
        first_day, first_nanosecond = divmod(self._first, DAY)
        days = (self.size * self._length + first_nanosecond) // DAY + 1
        exact = np.dtype(np.int64 if (days + 2) * DAY < 2**63 else object)
        day = (moments.day - first_day).clip(-1, days).astype(exact)
        return place((day * DAY + (moments.nanosecond - first_nanosecond)) // self._length, 0, self.size - 1)


def _bound(value: object, clock: datetime.tzinfo, name: str) -> str:
    instant = public_instant(value, clock, name)
    try:
        return text_at(instant, clock)
    except OverflowError:
        rule = "must lie in the years 1 to 9999, both in its zone and in UTC"
        raise InvalidParameter(name, rule, given=str(value), fix="move it by a day") from None
