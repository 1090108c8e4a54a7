"""Calendar days between two dates."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Self, final

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
from partita.domain.columns.read import read
from partita.domain.time.times import located, moments_of, public_moment
from partita.errors.errors import InvalidParameter
from partita.numbers import Converted, freeze, frozen, parameter

_EPOCH = datetime.date(1970, 1, 1)


@final
@frozen(repr=False)
class Date:
    """The days from `start` to `end`, both included; a cell for each.

    Values are dates, datetimes, Arrow or NumPy dates and timestamps, or ISO 8601 text. A
    wall-clock time counts on its own calendar day, an instant (with an offset or a time
    zone) on its day in UTC. Numbers, and text that is no date, are invalid. A day outside
    Python's years 1 to 9999 is below or above.

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
        """The cell of every row of a column."""
        return assemble(read(values), self._encode, invalid=Special.INVALID)

    def decode(self, cells: Sequence[int] | Cells) -> list[datetime.date]:
        """The day of each cell."""
        return [self.start + datetime.timedelta(days=cell) for cell in indices(cells, self.size)]

    def locate(self, value: object, *, name: str = "value") -> Position:
        """Where a public date lies; it is read as the column's values are."""
        return located(self, value, name)

    def to_spec(self) -> Spec:
        """Kind, start and end as ISO text."""
        return {"kind": "date", "start": self.start.isoformat(), "end": self.end.isoformat()}

    @classmethod
    def from_spec(cls, spec: Mapping[str, object]) -> Self:
        """The domain that `to_spec` described."""
        start, end = taken(spec, "date", "start", "end")
        return cls(_day(start, "start"), _day(end, "end"))

    def _encode(self, content: Plain) -> Encoded:
        if isinstance(content, Moments):
            return place(content.day, (self.start - _EPOCH).days, (self.end - _EPOCH).days)
        return assemble(moments_of(content), self._encode, invalid=Special.INVALID)


def _day(value: object, name: str) -> datetime.date:
    moment = public_moment(value, name)
    if not moment.dated:
        fix = 'pass a datetime.date or text like "2024-01-31"'
        raise InvalidParameter(name, "must be a date without a time of day", given=str(value), fix=fix)
    return _EPOCH + datetime.timedelta(days=moment.day)
