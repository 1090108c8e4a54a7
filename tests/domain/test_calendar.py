"""Calendar periods as values and as groups of cells."""

from __future__ import annotations

import datetime
from itertools import pairwise

import pytest

from partita.domain import Date, Special, Timestamp
from partita.domain.base import Position
from partita.domain.calendar import Unit, calendar_groups, estimate_groups, locate_period
from partita.errors import InvalidParameter

HOURS = Timestamp("2013-01-01", "2013-12-31T23:00", "1h", zone="America/New_York")
DAYS = Date("2013-01-01", "2013-12-31")


@pytest.mark.parametrize(
    ("value", "first", "last"),
    [
        ("2013", 0, 8759),
        ("2013-02", 31 * 24, 59 * 24 - 1),
        ("2013-Q4", 8760 - 92 * 24 + -1, 8759),
        ("2013-03-10", 68 * 24, 69 * 24 - 2),
        (datetime.date(2013, 11, 3), 306 * 24 - 1, 307 * 24 - 1),
        ("2013-03-10T05:00", 68 * 24 + 4, 68 * 24 + 4),
        (datetime.datetime(2013, 1, 1, 5, tzinfo=datetime.UTC), 0, 0),
    ],
)
def test_a_period_is_all_of_its_slots(value: object, first: int, last: int) -> None:
    """By the clock of the zone: in 2013, 10 March had 23 hours there, and 3 November had 25."""
    assert locate_period(HOURS, value, name="when") == (Position(first), Position(last))


def test_periods_may_reach_beyond_the_bounds() -> None:
    """The week of the new year begins below; what lies outside has no cell."""
    below, above = Position(0, Special.BELOW), Position(0, Special.ABOVE)

    assert locate_period(DAYS, "2013-W01", name="day") == (below, Position(5))
    assert locate_period(DAYS, "2012", name="day") == (below, below)
    assert locate_period(DAYS, "2014-01-01", name="day") == (above, above)
    assert locate_period(Date("9990-01-01", "9999-12-31"), "9999", name="day")[1] == Position(3651)


@pytest.mark.parametrize(
    ("domain", "value", "said"),
    [
        (HOURS, "2013-03-10T05:30", r"pass 2013-03-10T05:00:00-04:00 or 2013-03-10T06:00:00-04:00"),
        (DAYS, "2013-03-10T05:30", r"pass 2013-03-10 or 2013-03-11"),
        (
            Timestamp("2013-01-01T00:30", "2013-02-01", "1d"),
            "2013-01-05",
            "must begin and end with slots of 1d",
        ),
        (DAYS, "2013-13", "must be a date or a time"),
        (DAYS, "2013-W54", "must be a date or a time"),
        (DAYS, 2013, "must be a date or a time"),
    ],
)
def test_what_no_cells_make_up_is_refused(domain: Date | Timestamp, value: object, said: str) -> None:
    """With the nearest that there is."""
    with pytest.raises(InvalidParameter, match=said):
        locate_period(domain, value, name="when")


def test_an_hour_that_comes_twice_is_one_group() -> None:
    """Clocks go back at two in November, and skip two o'clock in March."""
    numbers = {
        group.name: sum(piece.high - piece.low + 1 for piece in group.pieces)
        for group in calendar_groups(HOURS, "hour", "when")
    }

    assert numbers == {hour: 365 + (hour == 1) - (hour == 2) for hour in range(24)}


@pytest.mark.parametrize("unit", ["year", "quarter", "month", "week", "day", "weekday"])
def test_groups_hold_every_cell_once(unit: Unit) -> None:
    """To the end of Python's calendar."""
    domain = Date("9996-02-10", "9999-12-31")
    pieces = sorted(piece for group in calendar_groups(domain, unit, "day") for piece in group.pieces)

    assert len(calendar_groups(domain, unit, "day")) <= estimate_groups(domain, unit)[0]
    assert pieces[0].low == 0
    assert pieces[-1].high == domain.size - 1
    assert all(one.high + 1 == other.low for one, other in pairwise(pieces))


def test_groups_that_a_column_cannot_have_are_refused() -> None:
    """Dates have no hours, and the hours of a century are too many."""
    with pytest.raises(InvalidParameter, match="must be a column of times to have hours"):
        calendar_groups(DAYS, "hour", "day")
    with pytest.raises(InvalidParameter, match="must have at most 131,072 pieces"):
        calendar_groups(Timestamp("1900-01-01", "2000-01-01", "1s"), "hour", "when")
