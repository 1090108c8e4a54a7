from __future__ import annotations

import datetime
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partita.domain import Date, Special, Timestamp

QUICK = settings(deadline=None, derandomize=True, max_examples=100)
ROME = ZoneInfo("Europe/Rome")
YEAR = Date("2024-01-01", "2024-12-31")
DAY = datetime.timedelta(days=1)


@QUICK
@given(st.lists(st.dates(datetime.date(2023, 11, 1), datetime.date(2025, 2, 1)) | st.dates(), max_size=9))
def test_dates_are_counted_from_the_start_in_every_container(days: list[datetime.date]) -> None:
    """A date's cell is its distance from the start, however the date is held."""
    expected = [
        "below" if day < YEAR.start else "above" if day > YEAR.end else (day - YEAR.start).days
        for day in days
    ]
    noons = [datetime.datetime.combine(day, datetime.time(12)) for day in days]
    containers: list[Any] = [
        days, noons, [day.isoformat() for day in days], [day.strftime("%Y%m%d").zfill(8) for day in days],
        [noon.isoformat() for noon in noons], [f"{noon.isoformat()}Z" for noon in noons],
        np.array(days, "M8[D]"), np.array(noons, "M8[us]"), np.array(noons, ">M8[h]"),
        np.array(days[::-1], ">M8[D]")[::-1],
        pa.array(days, pa.date32()), pa.array(days, pa.date64()), pa.array(noons, pa.timestamp("s")),
        pa.array(noons, pa.timestamp("us", "UTC")),
        pa.array([day.isoformat() for day in days], pa.string()).dictionary_encode(),
    ]  # fmt: skip
    for container in containers:
        assert YEAR.encode(container).tolist() == expected


def test_an_instant_counts_on_its_day_in_utc() -> None:
    """A time with an offset counts on the UTC day, one without on the day it says."""
    late = datetime.datetime(2024, 1, 1, 23, 30)
    west = late.replace(tzinfo=datetime.timezone(-datetime.timedelta(hours=1)))

    assert YEAR.encode([late, west, late.isoformat(), west.isoformat()]).tolist() == [0, 1, 0, 1]


def test_days_outside_pythons_years_are_below_and_above() -> None:
    """NumPy dates that Python cannot hold still have a side."""
    whole = Date("0001-01-01", "9999-12-31")

    for unit in ("Y", "M", "W", "D", "h", "s"):
        far = np.array([-(10**13), 10**13], f"M8[{unit}]")
        assert whole.encode(far).tolist() == ["below", "above"]


def test_counts_of_several_units_are_multiplied() -> None:
    """NumPy may count by seven hours, or by ten milliseconds, from 1970 on."""
    domain = Timestamp("1969-12-31", "1970-01-02", "1us")

    for unit, microseconds in (("7h", 7 * 3600 * 10**6), ("10ms", 10**4), ("5us", 5), ("3000000ps", 3)):
        counted = [86_400 * 10**6 + count * microseconds for count in (-1, 0, 2)]
        assert domain.encode(np.array([-1, 0, 2], f"M8[{unit}]")).tolist() == counted


ISO = [
    ("2024-01-31", 30), (" 2024-01-31\n", 30), ("20240131", 30), ("2024-W05-3", 30), ("2024W053", 30),
    ("2024-01-31T10", 30), ("2024-01-31 10:30", 30), ("2024-01-31T103000", 30), ("2024-01-31T10:30:00,5", 30),
    ("2024-01-31T23:30:00-01:00", 31), ("2024-01-31T00:30:00+01", 29), ("2024-01-31T10:30:00Z", 30),
    ("2024-02-30T10:00:00", "invalid"), ("2023-02-29T10:00:00Z", "invalid"), ("2024-02-29T10:00:00Z", 59),
    ("2024-02-30", "invalid"), ("2024-13-01", "invalid"), ("2024-1-1", "invalid"), ("24-01-01", "invalid"),
    ("2024-01-31T24:00", "invalid"), ("2024-06-30T23:59:60", "invalid"), ("2024-06-30T23:60:00Z", "invalid"),
    ("31/01/2024", "invalid"), ("0000-01-01", "invalid"), ("2024-01-31T", "invalid"),
    ("2024-01-31Z", "invalid"), ("2024-01-31_10:00", "invalid"), ("2024-01-31T10:00:00.", "invalid"),
    ("", "invalid"), ("1706659200", "invalid"), ("0001-01-01", "below"),
    ("9999-12-31T23:59:59-12:00", "above"), ("2024-01-31T10:00:00." + "9" * 400, "invalid"),
]  # fmt: skip


def test_iso_text_follows_one_grammar() -> None:
    """Each of these texts is read as the table says, whatever the version of Python."""
    texts, expected = zip(*ISO, strict=True)

    assert YEAR.encode(list(texts)).tolist() == list(expected)


def test_what_is_no_time_is_invalid() -> None:
    """Numbers and booleans are no dates; nothing and NaT are null."""
    values = [1, 1.5, True, "x", None, np.datetime64("NaT"), datetime.time(1), float("nan")]
    expected = ["invalid"] * 4 + ["null", "null", "invalid", "invalid"]

    assert YEAR.encode(values).tolist() == expected
    assert Timestamp("2024-01-01", "2024-12-31", "1h").encode(values).tolist() == expected


@QUICK
@given(
    st.lists(st.datetimes(datetime.datetime(2023, 12, 25), datetime.datetime(2025, 1, 5)), max_size=9),
    st.sampled_from(["UTC", "Europe/Rome", "Asia/Kolkata", "America/St_Johns", "Australia/Lord_Howe"]),
    st.sampled_from(
        [datetime.timedelta(hours=1), datetime.timedelta(microseconds=7), datetime.timedelta(days=3)]
    ),
)
def test_wall_clock_readings_are_pythons_instants(
    readings: list[datetime.datetime], zone: str, resolution: datetime.timedelta
) -> None:
    """A naive time's slot is that of the instant Python gives it, in every container."""
    domain = Timestamp("2024-01-01", "2024-12-31", resolution, zone=zone)
    clock, utc = ZoneInfo(zone), datetime.UTC
    start = datetime.datetime(2024, 1, 1, tzinfo=clock).astimezone(utc)
    instants = [reading.replace(tzinfo=clock).astimezone(utc) for reading in readings]

    def place(instant: datetime.datetime) -> int | str:
        slot = (instant - start) // resolution
        return "below" if slot < 0 else "above" if slot >= domain.size else slot

    containers: list[Any] = [
        readings, instants, [reading.isoformat() for reading in readings],
        [moment.isoformat() for moment in instants], [reading.isoformat(" ") for reading in readings],
        np.array(readings, "M8[us]"), pa.array(readings, pa.timestamp("us")),
        pa.array(instants, pa.timestamp("us", "Asia/Tokyo")),
    ]  # fmt: skip
    for container in containers:
        assert domain.encode(container).tolist() == [place(instant) for instant in instants]


@pytest.mark.parametrize(
    ("name", "days"),
    [
        ("Europe/Rome", ("2024-03-31", "2024-10-27")),
        ("Australia/Lord_Howe", ("2024-04-07", "2024-10-06")),
        ("Africa/Monrovia", ("1972-01-07",)),
    ],
)
def test_every_second_around_a_change_of_clocks(name: str, days: tuple[str, ...]) -> None:
    """Each second of the days when clocks change has the instant that Python gives it.

    In Lord Howe they change by half an hour, and in Monrovia once by 44 minutes and 30 seconds.
    """
    domain, zone = Timestamp("1970-01-01", "2024-12-31", "1s", zone=name), ZoneInfo(name)
    start = datetime.datetime(1970, 1, 1, tzinfo=zone).timestamp()
    for day in days:
        wall = np.datetime64(day) + np.arange(0, 4 * 3600, 7).astype("m8[s]")
        expected = [int(moment.replace(tzinfo=zone).timestamp() - start) for moment in wall.tolist()]
        assert domain.encode(wall).cells.tolist() == expected


def test_a_skipped_reading_shifts_and_a_repeated_one_is_the_first() -> None:
    """Half past two on the days of change in Rome is read with the offset from before."""
    domain = Timestamp("2024-01-01", "2024-12-31", "1m", zone="Europe/Rome")

    skipped, shifted = domain.encode(["2024-03-31T02:30", "2024-03-31T03:30"]).cells.tolist()
    repeated, first = domain.encode(["2024-10-27T02:30", "2024-10-27T02:30+02:00"]).cells.tolist()

    assert (skipped, repeated) == (shifted, first)


def test_nanoseconds_are_exact_from_end_to_end() -> None:
    """Text, NumPy and Arrow keep every nanosecond, over more than 500 years."""
    domain = Timestamp("1700-01-01", "2284-01-01", "1ns")
    last = np.datetime64("2262-04-11T23:47:16.854775807", "ns")
    start = -int((datetime.datetime(1970, 1, 1) - datetime.datetime(1700, 1, 1)) / DAY) * 86_400 * 10**9
    expected = 2**63 - 1 - start

    assert domain.size > 2**63
    assert domain.encode(np.array([last])).cells.tolist() == [expected]
    assert domain.encode(pa.array(np.array([last]))).cells.tolist() == [expected]
    assert domain.encode([str(last), f"{last}Z", f"{last}999Z"]).cells.tolist() == [expected] * 3
    assert domain.encode(domain.decode([expected, domain.size - 1])).cells.tolist() == [
        expected,
        domain.size - 1,
    ]
    assert domain.decode([expected]) == ["2262-04-11T23:47:16.854775807+00:00"]


class Finer(datetime.datetime):
    """A datetime with nanoseconds, as pandas has them."""

    nanosecond = 7


def test_nanoseconds_of_a_finer_datetime_count() -> None:
    """The nanoseconds that another library adds to a datetime are read."""
    domain = Timestamp("2024-01-01", "2024-01-02", "1ns")

    assert domain.encode([Finer(2024, 1, 1, microsecond=1)]).tolist() == [1007]


def test_slots_may_start_at_any_nanosecond() -> None:
    """The nanoseconds of the start count, in the cells and in what they decode to."""
    start = "2024-01-01T00:00:00.000000007"
    domain = Timestamp(start, "2024-01-02", "1us")

    assert domain.encode([f"{start[:-1]}6", start, "2024-01-01T00:00:00.000001006"]).tolist() == [
        "below",
        0,
        0,
    ]
    assert domain.decode([0]) == [f"{start}+00:00"]


def test_the_slot_that_holds_the_end_is_whole() -> None:
    """Slots are half open and the last one is not cut at the end."""
    domain = Timestamp("2024-01-01", "2024-01-01T01:30", "1h")

    assert domain.size == 2
    assert domain.encode(["2024-01-01T00:59:59.999999999", "2024-01-01T01:00"]).tolist() == [0, 1]
    assert domain.encode(["2024-01-01T01:59:59.999999999"]).tolist() == [1]
    assert domain.encode(["2024-01-01T02:00", "2023-12-31T23:59:59.999999999"]).tolist() == ["above", "below"]


@pytest.mark.parametrize("day", [29, 30, 31])
def test_both_readers_of_text_agree(day: int) -> None:
    """Text that Arrow reads and text that it leaves to us mean the same nanosecond."""
    domain = Timestamp("2024-01-01", "2024-12-31", "1ns")
    plain = ["2024-01-28T12:34:56.123456789", "2024-01-28T12:34:56+05:30", "2024-01-28T12:34:56.5Z"]
    shift = (day - 28) * 86_400 * 10**9
    shifted = [text.replace("-28T", f"-{day}T") for text in plain]

    assert domain.encode(shifted).cells.tolist() == [
        cell + shift for cell in domain.encode(plain).cells.tolist()
    ]


def test_bounds_may_be_written_in_any_form() -> None:
    """The same bounds, naive, aware or as text, make equal and equally hashed domains."""
    naive = Timestamp(
        datetime.datetime(2024, 1, 1),
        datetime.date(2024, 2, 1),
        datetime.timedelta(minutes=60),
        "Europe/Rome",
    )
    aware = Timestamp("2023-12-31T23:00:00Z", "2024-02-01T00:00:00+01:00", "1h", zone="Europe/Rome")

    assert naive == aware
    assert hash(naive) == hash(aware)
    assert naive.decode([0]) == [datetime.datetime(2024, 1, 1, tzinfo=ROME)]


def test_bounds_of_queries_are_read_as_values_are() -> None:
    """A public date or time is located by the rules of the column."""
    assert YEAR.locate("2024-02-01").cell == YEAR.locate(datetime.date(2024, 2, 1)).cell == 31
    assert YEAR.locate("2025-01-01").special == Special.ABOVE
    assert Timestamp("2024-01-01", "2024-12-31", "1h").locate(datetime.datetime(2024, 1, 2)).cell == 24
