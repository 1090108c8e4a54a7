"""Feeding events that lie ready with their times, between a public start and end."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from partita.errors import HorizonReached, InvalidParameter
from partita.trusted.durable.journal import Journal
from partita.trusted.durable.stream import DurableCounter
from tests.trusted.streams.durable.conftest import Opener

TIMES = [0.5, 1.0, 1.999, 3.2, -100, 77]
"""Three in the first two periods, one in the fourth, one before all and one after."""
TOTALS = [2, 4, 4, 6]


def totals(counter: Any) -> list[int]:
    return [int(output.value) for output in counter.outputs()]


@pytest.mark.parametrize(
    "times",
    [
        TIMES,
        np.array(TIMES),
        [str(time) for time in TIMES],
        [datetime.fromtimestamp(time, UTC) for time in TIMES],
        [datetime.fromtimestamp(time, UTC).isoformat() for time in TIMES],
        np.array([int(time * 1000) for time in TIMES], dtype="datetime64[ms]"),
        [np.datetime64(int(time * 10**9), "ns") for time in TIMES],
        [*TIMES[:-1], datetime(9999, 12, 31, tzinfo=UTC)],
        [*TIMES[:-1], date(9999, 12, 31)],
    ],
    ids=["floats", "array", "text", "datetimes", "iso", "datetime64", "numpy", "far", "date"],
)
def test_times_count_in_their_periods(opened: Opener, times: Any) -> None:
    """Events outside go to the nearest end, in whatever way times are written."""
    counter = opened()
    counter.feed_timestamps(times, start=0, end=4)

    assert totals(counter) == TOTALS


def test_a_file_has_a_time_in_each_line(opened: Opener, tmp_path: Path) -> None:
    """What is no time counts nowhere, and raises nothing."""
    place = tmp_path / "times.txt"
    place.write_text(
        "time\n\n" + "\n".join(map(str, TIMES)) + "\nnan\nyesterday\n\udcff", errors="surrogateescape"
    )
    counter = opened()
    counter.feed_timestamps(place, start=0, end=4)

    assert totals(counter) == TOTALS


def test_the_number_of_outputs_is_public(opened: Opener) -> None:
    """Without any event there are as many."""
    counter = opened()
    counter.feed_timestamps([None, float("nan"), np.datetime64("NaT"), "?", True, []], start=0, end=4)

    assert totals(counter) == [0, 0, 0, 0]


def test_an_interrupted_feed_may_be_repeated(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was counted before is known, and the outputs of closed periods stay."""
    feed = DurableCounter._feed_batch

    def feed_and_die(counter: DurableCounter, *arguments: Any) -> None:
        feed(counter, *arguments)
        raise KeyboardInterrupt

    with opened(noise=None) as counter, monkeypatch.context() as patched:
        patched.setattr(Journal, "at_once", 2)
        patched.setattr(DurableCounter, "_feed_batch", feed_and_die)
        with pytest.raises(KeyboardInterrupt):
            counter.feed_timestamps(TIMES, start=0, end=4, feeder="file")
        before = list(counter.outputs())
    with opened(noise=None, catch_up=False) as counter:
        counter.feed_timestamps(TIMES, start=0, end=4, feeder="file")

        assert list(counter.outputs())[:2] == before
        assert counter.periods == 4


def test_a_repeated_feed_counts_once(opened: Opener) -> None:
    """Also when the counter was opened again in between."""
    with opened() as counter:
        counter.feed_timestamps(TIMES, start=0, end=3, feeder="file")
    with opened(catch_up=False, now=10**6) as counter:
        counter.feed_timestamps(TIMES, start=0, end=4, feeder="file")

        assert totals(counter)[:3] == [2, 4, 6]
        assert counter.periods == 4


def test_a_second_file_is_never_dropped_in_silence(opened: Opener) -> None:
    """Whoever names no feeder is refused where somebody fed before; with a new name all of it counts."""
    counter = opened()
    counter.feed_timestamps(TIMES, start=0, end=3)
    for start, end in ((0, 3), (2, 5)):
        with pytest.raises(InvalidParameter, match=r"^feeder must be named.*feeder='timestamps'"):
            counter.feed_timestamps(TIMES, start=start, end=end)
    assert counter.periods == 3
    counter.feed_timestamps(TIMES, start=0, end=4, feeder="second")
    counter.feed_timestamps(TIMES, start=4, end=5)

    assert totals(counter) == [2, 4, 6, 12, 18]


def test_a_later_stretch_closes_the_periods_before_it(opened: Opener) -> None:
    """They are empty, and have their outputs."""
    counter = opened()
    counter.feed_timestamps([5.5], start=5, end=7)

    assert totals(counter) == [0, 0, 0, 0, 0, 1, 1]


@pytest.mark.parametrize(
    ("start", "end", "name"),
    [(0, 0, "end"), (3, 2, "end"), (0.5, 2, "start"), (0, 2.5, "end"), (-1, 2, "start"), (0, 10**12, "end")],
)
def test_the_stretch_is_one_of_whole_periods(opened: Opener, start: object, end: object, name: str) -> None:
    """Anything else is refused before an event is looked at."""
    with pytest.raises(InvalidParameter, match=rf"^{name} must"):
        opened().feed_timestamps(None, start=start, end=end)  # type: ignore[arg-type]


def test_more_than_the_horizon_is_refused(opened: Opener) -> None:
    """Nothing is counted."""
    counter = opened(horizon=3)
    with pytest.raises(HorizonReached):
        counter.feed_timestamps(TIMES, start=0, end=4)

    assert counter.periods == 0


def test_people_are_not_fed_by_time(opened: Opener) -> None:
    """A cap needs to know who they are."""
    with pytest.raises(InvalidParameter, match=r"^unit must be 'event'"):
        opened(unit="user").feed_timestamps(TIMES, start=0, end=4)
