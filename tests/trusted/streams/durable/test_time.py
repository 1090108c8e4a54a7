"""Public time: periods end by the clock, one output each, whatever was counted."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from partita.errors import HorizonReached, InvalidParameter
from partita.public.streams import SECOND, Output, Schedule, nanoseconds, parse_period, to_datetime
from partita.testing import EndlessTape, tape_noise
from partita.trusted.durable.events import MECHANISMS
from partita.trusted.durable.stream import Ticker
from tests.trusted.streams.durable.conftest import Opener, known_by, made_with

HEADER, RECORD = 1024, 64


def values(outputs: Any) -> list[float]:
    return [output.value for output in outputs]


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("1ms", 0.001), ("30s", 30), ("1m", 60), ("1h", 3600), ("2d", 172_800), (0.5, 0.5)],
)
def test_a_period_is_written_with_its_unit_or_in_seconds(written: object, seconds: float) -> None:
    """Both mean the same whole number of nanoseconds."""
    assert parse_period(written) == seconds * SECOND


@pytest.mark.parametrize("period", ["", "m", "1y", "-1m", 0, -1, 0.0001, None, "1 m", True, float("nan")])
def test_what_is_no_period_is_refused(period: object, opened: Opener) -> None:
    """The error names the parameter, and no file is made."""
    with pytest.raises(InvalidParameter, match=r"^period must"):
        opened(period=period)


def test_moments_are_read_in_utc() -> None:
    """A zone that is written counts, and none means UTC."""
    east = timezone(timedelta(hours=2))
    written = ["1970-01-01T01:00", "1970-01-01T03:00+02:00", 3600, datetime(1970, 1, 1, 3, tzinfo=east)]

    assert {nanoseconds(moment, "start") for moment in written} == {3600 * SECOND}
    assert to_datetime(3600 * SECOND) == datetime(1970, 1, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("moment", ["yesterday", None, [], 10**40, "9" * 300])
def test_what_is_no_moment_is_refused(moment: object) -> None:
    """Whatever it is, the error names the parameter."""
    with pytest.raises(InvalidParameter, match=r"^start must"):
        nanoseconds(moment, "start")


def test_a_moment_on_the_boundary_begins_the_next_period() -> None:
    """Periods hold their beginning and not their end."""
    schedule = Schedule(start=10, period=5)

    assert [schedule.number(moment) for moment in (9, 10, 14, 15)] == [0, 1, 1, 2]
    assert [schedule.ended(moment) for moment in (0, 14, 15, 19, 20)] == [0, 0, 1, 1, 2]


def test_adding_returns_nothing_and_closes_nothing(opened: Opener) -> None:
    """Only a tick publishes."""
    counter = opened()
    for sequence in range(5):
        counter.add(feeder="gate", sequence=sequence)

    assert (counter.periods, counter.value, list(counter.outputs())) == (0, 0.0, [])
    assert values(counter.tick(now=1)) == [5.0]


def test_a_tick_closes_every_ended_period_in_order(opened: Opener) -> None:
    """One output each, events in the first of them, and nothing before a period has ended."""
    counter = opened()
    counter.add(3, feeder="gate", sequence=1)

    assert counter.tick(now=0.999) == []
    assert [(output.period, output.value) for output in counter.tick(now=3.5)] == [(1, 3), (2, 3), (3, 3)]
    assert counter.tick(now=2) == []
    assert values(counter.outputs(since=2)) == [3.0]


def test_an_output_says_when_its_period_ended(opened: Opener) -> None:
    """That is a matter of the schedule, and not of when it was closed."""
    (output, _) = opened().tick(now=2.7)

    assert (output.period, output.end) == (1, datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC))


def test_late_events_go_to_the_open_period(opened: Opener) -> None:
    """What comes after a period is closed counts in the next one."""
    counter = opened()
    counter.tick(now=1)
    counter.add(7, feeder="gate", sequence=1)

    assert values(counter.tick(now=2)) == [7.0]
    assert values(counter.outputs()) == [0.0, 7.0]


def test_periods_missed_while_down_are_closed_at_the_next_start(opened: Opener) -> None:
    """With an output each, and before anything else is counted."""
    with opened() as counter:
        counter.add(2, feeder="gate", sequence=1)
    with opened(now=3.2) as counter:
        assert values(counter.outputs()) == [2.0, 2.0, 2.0]
        counter.add(feeder="gate", sequence=2)
        assert values(counter.tick(now=4)) == [3.0]


def test_a_new_counter_has_missed_nothing(opened: Opener) -> None:
    """Its start may lie in the past: what happened since then can still be fed."""
    assert opened(start=0, now=1000).periods == 0


def test_periods_begin_at_whole_ones_if_no_start_is_given(opened: Opener) -> None:
    """The first one is the one in which the counter was opened."""
    counter = opened(start=None, period="1m", now=150)

    assert counter.settings.start == 120 * SECOND
    assert counter.tick(now=179) == []
    assert len(counter.tick(now=180)) == 1


def test_the_horizon_loses_nothing(opened: Opener) -> None:
    """The last period is published; what comes later is refused with a typed error, again and again."""
    counter = opened(horizon=2)
    counter.add(4, feeder="gate", sequence=1)

    assert values(counter.tick(now=50)) == [4.0, 4.0]
    for _ in range(2):
        with pytest.raises(HorizonReached):
            counter.tick(now=60)
        with pytest.raises(HorizonReached):
            counter.add(feeder="gate", sequence=2)
    counter.close()
    assert values(opened(horizon=2, now=100).outputs()) == [4.0, 4.0]


def public_side(
    opened: Opener, folder: Path, events: list[int], mechanism: str
) -> tuple[bytes, list[Output]]:
    counter = opened(noise=tape_noise(EndlessTape(7)), **made_with(mechanism))
    for period, count in enumerate(events, start=1):
        if count:
            counter.add(count, **known_by(mechanism, period))
        assert len(counter.tick(now=period)) == 1
    counter.close()
    data = (folder / "visits.outputs").read_bytes()
    outputs = list(counter.outputs())
    for file in folder.iterdir():
        file.unlink()
    return data, outputs


def without_values(data: bytes) -> bytes:
    """A public file less the outputs in it, and the checks, which depend on outputs."""
    records = [data[place : place + RECORD] for place in range(HEADER, len(data), RECORD)]
    return data[:HEADER] + b"".join(record[:8] for record in records)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_public_side_is_the_same_but_for_the_values(
    opened: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mechanism: str
) -> None:
    """On one tape, other events change values by their counts, and no other byte but the checks of values.

    A sparse counter seals segments elsewhere and draws other noise then, so its values differ as they like.
    """
    monkeypatch.setattr("partita.trusted.durable.open.token", lambda: "0" * 32)
    none, many = [0] * 40, [period * period % 97 for period in range(40)]
    (quiet, low), (busy, high) = (public_side(opened, tmp_path, events, mechanism) for events in (none, many))

    assert len(quiet) == len(busy) == HEADER + 40 * RECORD
    assert without_values(quiet) == without_values(busy) != quiet
    assert [(o.period, o.end) for o in low] == [(o.period, o.end) for o in high]
    window = 5 if mechanism == "sliding" else 40
    sums = [sum(many[max(0, period - window) : period]) for period in range(1, 41)]
    moved = [h.exact - o.exact for o, h in zip(low, high, strict=True)]
    assert (moved == sums) == (mechanism != "sparse")


def test_the_clock_ticks_at_once_and_at_each_end() -> None:
    """It waits until a period has ended, and then for the next one."""
    moments = iter([0, 5, 12, 29])
    waits = []

    def now() -> int:
        moment = next(moments)
        waits.append(moment)
        return moment

    ticks = []
    ticker = Ticker(Schedule(start=0, period=10), lambda: ticks.append(len(waits)), now)
    ticker.start()
    ticker._thread.join(60)

    assert ticks == [0, 1, 2, 3, 4]
    with pytest.raises(StopIteration):
        ticker.stop()


def test_a_running_counter_publishes_by_the_clock_and_ends_with_the_horizon(opened: Opener) -> None:
    """Each output is handed over once, in order, and the clock stops by itself."""
    counter, seen, done = opened(horizon=3), [], threading.Event()
    moments = iter(range(2 * 10**9 - 1, 10**12, 10**9))

    def each(output: Output) -> None:
        seen.append(output.period)
        if output.period == 3:
            done.set()

    with counter.running(each, now=lambda: next(moments)) as running:
        assert running is counter
        assert done.wait(60)

    assert seen == [1, 2, 3]


def test_what_fails_in_the_clock_is_raised_when_the_block_ends(opened: Opener) -> None:
    """The thread does not die unheard."""

    def each(output: Output) -> None:
        raise OSError("no paper")

    with pytest.raises(OSError, match="no paper"), opened().running(each, now=lambda: 2 * 10**9):
        pass
