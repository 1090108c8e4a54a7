"""Calendar periods of dates and timestamps: as public values, and as groups of cells.

A period such as 2013 or 2013-03 means all of its instants, on the clock of the column's zone, and so does a
day that is given for a timestamp. A period whose ends lie inside of slots is refused, as no cells make it up.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, NamedTuple, TypeAlias, final

from partita.domain import columns
from partita.domain.base import Domain, Position, Special
from partita.domain.time import (
    Date,
    Timestamp,
    datetime_at,
    offset_at,
    public_instant,
    public_moment,
    resolution_nanoseconds,
    text_at,
    zone_named,
)
from partita.errors import InvalidParameter, check

Unit: TypeAlias = Literal["year", "quarter", "month", "week", "day", "weekday", "hour"]
"""What dates and timestamps can be grouped by."""

MOST_PIECES: Final = 2**17
"""Of the groups of a column: the hours of 15 years. More take long to list."""

_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_PERIOD: Final = re.compile(r"(?P<year>\d{4})(?:-(?P<month>\d{2})|-Q(?P<quarter>[1-4])|-W(?P<week>\d{2}))?")
_HOUR: Final = 3600 * columns.SECOND
_EPOCH: Final = datetime.date(1970, 1, 1).toordinal()
_SHORTEST: Final = {"year": 365, "quarter": 90, "month": 28, "week": 7}  # days, of longer units

TimeDomain: TypeAlias = Date | Timestamp


class CellRun(NamedTuple):
    """The first and the last cell of a run."""

    low: int
    high: int


class CalendarGroup(NamedTuple):
    """A group of a column by a unit of the calendar: its name, and the runs of cells that make it up."""

    name: object
    pieces: tuple[CellRun, ...]


@final
@dataclass(frozen=True)
class Slots:
    """The cells of a column as slots of time: the first instant, and the length of each, in nanoseconds."""

    domain: TimeDomain
    first: int
    length: int
    size: int
    zone: datetime.tzinfo

    @staticmethod
    def of(domain: TimeDomain) -> Slots:
        """The slots of a column; days of a Date are days in UTC."""
        if isinstance(domain, Date):
            first = (domain.start.toordinal() - _EPOCH) * columns.DAY
            return Slots(domain, first, columns.DAY, domain.size, datetime.UTC)
        zone = zone_named(domain.zone)
        first = public_instant(domain.start, zone, "start")
        return Slots(domain, first, resolution_nanoseconds(domain.resolution), domain.size, zone)

    def midnight(self, day: int) -> int:
        """The instant at which a day begins; it is given by its ordinal."""
        wall = (day - _EPOCH) * columns.DAY
        return wall - offset_at(self.zone, wall // columns.SECOND) * columns.SECOND

    def day_of(self, cell: int) -> int:
        """The ordinal of the day on which a slot begins."""
        return datetime_at(self.first + cell * self.length, self.zone).toordinal()

    def before(self, instant: int) -> tuple[int, bool]:
        """How many slots end at an instant or before it, and whether none holds it in its middle.

        Instants before the first slot and behind the last are brought to these ends.
        """
        inside = min(max(instant - self.first, 0), self.size * self.length)
        return inside // self.length, inside % self.length == 0

    def cells(self, start: int, stop: int, *, name: str, given: object) -> tuple[Position, Position]:
        """The first and the last cell of a period, which must begin and end with slots."""
        (first, begins), (behind, ends) = self.before(start), self.before(stop)
        if not (begins and ends):
            near = sorted({text for at in (start, stop) for text in self._near(at)})
            rule = f"must begin and end with slots of {self._slot}, which begin {self._grid}"
            raise InvalidParameter(name, rule, given=given, fix=f"pass for example {' or '.join(near[:4])}")
        return self._position(first, start), self._position(behind - 1, stop - 1)

    def instant(self, instant: int, *, name: str, given: object) -> tuple[Position, Position]:
        """The cell that begins at an instant."""
        cell, begins = self.before(instant)
        if not begins:
            rule = f"must be the beginning of a slot of {self._slot}"
            fix = f"pass {' or '.join(self._near(instant))}"
            raise InvalidParameter(name, rule, given=given, fix=fix)
        place = self._position(cell, instant)
        return place, place

    def _position(self, cell: int, instant: int) -> Position:
        if instant < self.first:
            return Position(0, Special.BELOW)
        if instant >= self.first + self.size * self.length:
            return Position(0, Special.ABOVE)
        return Position(cell)

    def _near(self, instant: int) -> list[str]:
        """The beginnings of slots on both sides of an instant, as text."""
        cell = (instant - self.first) // self.length
        return [self._text(self.first + each * self.length) for each in (cell, cell + 1)]

    def _text(self, instant: int) -> str:
        text = text_at(instant, self.zone)
        return text[:10] if isinstance(self.domain, Date) else text

    @property
    def _slot(self) -> str:
        return "1d" if isinstance(self.domain, Date) else self.domain.resolution

    @property
    def _grid(self) -> str:
        return f"at {self._text(self.first)}"


_slots = lru_cache(maxsize=256)(Slots.of)


def locate_period(domain: TimeDomain, value: object, *, name: str) -> tuple[Position, Position]:
    """The first and the last cell that a public value means: of a period, of a day, or of one slot.

    >>> march = Timestamp("2013-01-01", "2013-12-31T23:00", "1h")
    >>> [place.cell for place in locate_period(march, "2013-03", name="when")]
    [1416, 2159]
    """
    slots = _slots(domain)
    period = _read_period(value) if isinstance(value, str) else None
    if period is None:
        moment = public_moment(value, name)
        if not moment.dated:
            return slots.instant(public_instant(value, slots.zone, name), name=name, given=str(value))
        day = _EPOCH + moment.day
        period = day, day + 1
    first, behind = map(slots.midnight, period)
    return slots.cells(first, behind, name=name, given=str(value))


def _read_period(text: str) -> tuple[int, int] | None:
    """The first day of a year, a quarter, a month or a week, and the day behind it, by their ordinals."""
    match = _PERIOD.fullmatch(text.strip())
    if match is None:
        return None
    year = int(match["year"])
    try:
        if match["week"]:
            monday = datetime.date.fromisocalendar(year, int(match["week"]), 1).toordinal()
            return monday, monday + 7
        quarter, month = match["quarter"], match["month"]
        first = 3 * int(quarter) - 2 if quarter else int(month) if month else 1
        return _months_from(year, first, 3 if quarter else 1 if month else 12)
    except ValueError:
        return None


def _months_from(year: int, month: int, number: int) -> tuple[int, int]:
    """The ordinals of the first day of some months, and of the day behind them."""
    first, last = datetime.date(year, month, 1).toordinal(), month + number - 1
    if year == datetime.MAXYEAR and last == 12:
        return first, datetime.date.max.toordinal() + 1
    return first, datetime.date(year + last // 12, last % 12 + 1, 1).toordinal()


# Groups of cells.


def calendar_groups(domain: Domain, unit: Unit, name: str) -> tuple[CalendarGroup, ...]:
    """The groups of the column `name` by a unit, in the order of the calendar; only those that have cells.

    >>> days = Date("2013-01-30", "2013-02-10")
    >>> [(group.name, *group.pieces) for group in calendar_groups(days, "month", "day")]
    [('2013-01', CellRun(low=0, high=1)), ('2013-02', CellRun(low=2, high=11))]
    """
    if not isinstance(domain, Date | Timestamp):
        rule = f"must be a column of dates or times to have a {unit}"
        raise InvalidParameter("group", rule, given=name, fix="group by the column, or by bins of it")
    return _groups(domain, unit, name)


@lru_cache(maxsize=64)
def _groups(domain: TimeDomain, unit: Unit, name: str) -> tuple[CalendarGroup, ...]:
    dated = isinstance(domain, Date) and unit == "hour"
    fix = "group by weekday or by day"
    check(
        not dated,
        "group",
        "must be a column of times to have hours, and this is one of dates",
        given=name,
        fix=fix,
    )
    slots, found = _slots(domain), dict[object, list[CellRun]]()
    for group, start, stop in _spans(slots, unit, name):
        (first, begins), (behind, ends) = slots.before(start), slots.before(stop)
        if not (begins and ends):
            rule = f"must have slots that begin and end where each {unit} does: {domain!r} has not"
            raise InvalidParameter(
                "group", rule, given=f"{unit}({name})", fix="group by bins, or by a longer unit"
            )
        if first < behind:
            _append(found.setdefault(group, []), CellRun(first, behind - 1))
    if unit in ("weekday", "hour"):
        order = _DAYS if unit == "weekday" else range(24)
        return tuple(CalendarGroup(each, tuple(found[each])) for each in order if each in found)
    return tuple(CalendarGroup(each, tuple(pieces)) for each, pieces in found.items())


def estimate_groups(domain: Domain, unit: Unit) -> tuple[int, int]:
    """At most how many groups a column has by a unit, and of about how many pieces each is.

    >>> estimate_groups(Date("2013-01-01", "2013-12-31"), "weekday")
    (7, 53)
    """
    if not isinstance(domain, Date | Timestamp):
        return 1, 1
    slots = _slots(domain)
    days = slots.day_of(slots.size - 1) - slots.day_of(0) + 1
    if unit == "hour":
        return 24, days
    return (7, -(-days // 7)) if unit == "weekday" else (days // _SHORTEST.get(unit, 1) + 2, 1)


def _append(pieces: list[CellRun], piece: CellRun) -> None:
    """One more piece; one that follows on the last is joined to it."""
    if pieces and pieces[-1].high + 1 == piece.low:
        pieces[-1] = CellRun(pieces[-1].low, piece.high)
    else:
        pieces.append(piece)


def _spans(slots: Slots, unit: Unit, name: str) -> Iterator[tuple[object, int, int]]:
    """The spans of all groups in order: the group, the first instant, and the instant behind the last."""
    day, last = slots.day_of(0), slots.day_of(slots.size - 1)
    number = (last - day + 1) * 24 if unit == "hour" else (last - day) // _SHORTEST.get(unit, 1) + 1
    rule, fix = f"must have at most {MOST_PIECES:,} pieces", "group by a longer unit, or by bins"
    check(number <= MOST_PIECES, "group", rule, given=f"about {number:,} by {unit}({name})", fix=fix)
    while day <= last:
        group, following = _period_of(day, unit)
        start, stop = slots.midnight(day), slots.midnight(following)
        if unit == "hour":
            yield from _hours(slots, start, stop)
        else:
            yield group, start, stop
        day = following


def _period_of(ordinal: int, unit: Unit) -> tuple[object, int]:
    """The name of the group that a day is in, and the first day behind it."""
    day = datetime.date.fromordinal(ordinal)
    match unit:
        case "year":
            return day.year, _months_from(day.year, 1, 12)[1]
        case "quarter":
            quarter = (day.month + 2) // 3
            return f"{day.year:04}-Q{quarter}", _months_from(day.year, 3 * quarter - 2, 3)[1]
        case "month":
            return f"{day.year:04}-{day.month:02}", _months_from(day.year, day.month, 1)[1]
        case "week":
            year, week, number = day.isocalendar()
            return f"{year:04}-W{week:02}", ordinal + 8 - number
    return (day if unit == "day" else _DAYS[day.weekday()]), ordinal + 1


def _hours(slots: Slots, start: int, stop: int) -> Iterator[tuple[object, int, int]]:
    """The hours of a day by its clock. Where clocks change, one hour may be missing and one come twice."""
    at = start
    while at < stop:
        offset = _offset(slots, at)
        wall = at + offset
        behind = min(at + _HOUR - wall % _HOUR, stop)
        if _offset(slots, behind - columns.SECOND) != offset:
            behind = _change(slots, at, behind, offset)
        yield wall // _HOUR % 24, at, behind
        at = behind


def _offset(slots: Slots, instant: int) -> int:
    """Nanoseconds east of UTC at an instant."""
    offset = datetime_at(instant, slots.zone).utcoffset() or datetime.timedelta()
    return offset // datetime.timedelta(seconds=1) * columns.SECOND


def _change(slots: Slots, low: int, high: int, offset: int) -> int:
    """The second between two instants at which the offset ceases to be this one."""
    while high - low > columns.SECOND:
        middle = low + (high - low) // columns.SECOND // 2 * columns.SECOND
        low, high = (middle, high) if _offset(slots, middle) == offset else (low, middle)
    return high
