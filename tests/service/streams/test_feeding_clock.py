"""What a steward's log says when periods do not close as they should: which stream, and what kind."""

from __future__ import annotations

import json
from typing import Any

import pytest

from partita.errors import LedgerError, StreamError, StreamForked
from partita.public.streams import SECOND
from partita.service.steward.streams import MOST_DUE, AnyStream, PeriodClock, slice_size
from partita.trusted.durable.stream import DurableCounter
from tests.service.streams.conftest import Service
from tests.service.web.client import logged


def told(log: Any) -> list[dict[str, Any]]:
    """The lines of the log, without when and who."""
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    return [{name: line[name] for name in line if name not in ("time", "level", "process")} for line in lines]


def failing(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """Have no period close."""

    def fails(self: AnyStream, period: int) -> None:
        raise error

    monkeypatch.setattr(DurableCounter, "close_until", fails)


@pytest.mark.parametrize(
    ("error", "event"),
    [
        (StreamError("'/srv/visits.db' cannot grow"), "refused"),
        (LedgerError("the ledger is away"), "refused"),
        (StreamForked("'/srv/visits.db' is an old copy"), "stopped"),
        (RuntimeError("17 events"), "stopped"),
    ],
)
def test_a_period_that_does_not_close_is_told_once(
    service: Service, monkeypatch: pytest.MonkeyPatch, error: Exception, event: str
) -> None:
    """By name and kind, without a message; again when the next period ends, if the stream goes on."""
    service.create()
    log = logged(monkeypatch)
    failing(monkeypatch, error)
    for seconds in (10, 11, 12):
        service.at(seconds)
    line = {"event": event, "stream": "visits", "kind": type(error).__name__}

    assert told(log) == [line]
    service.at(20)
    assert told(log) == [line] * (2 if event == "refused" else 1)


def test_what_a_disk_refuses_is_tried_again_before_the_next_period_ends(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the next tick, which is a second later at most."""
    service.create(period="1d")
    service.feed({"count": 3})
    with monkeypatch.context() as broken:
        failing(broken, StreamError("full"))
        service.at(86_400)
    service.at(86_401)

    assert service.values() == [3]


@pytest.mark.parametrize(("seconds", "late"), [(10, False), (10.5, False), (10.6, True), (12, True)])
def test_an_output_that_is_nearly_too_late_is_told(
    service: Service, monkeypatch: pytest.MonkeyPatch, seconds: float, late: bool
) -> None:
    """Later than half of the delay: readers have not noticed yet. How late it was is not said."""
    service.create()
    log = logged(monkeypatch)
    service.at(seconds)

    assert told(log) == ([{"event": "late", "stream": "visits"}] if late else [])


def test_streams_that_are_on_time_come_first(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that has much to catch up with holds up nobody, whatever it is called."""
    service.create("a-seconds", period=1)
    service.create("b-minutes", period="1m")
    closed: list[int] = []
    monkeypatch.setattr(DurableCounter, "close_until", lambda self, period: closed.append(period))
    service.at(60)

    assert closed == [1, 60]


def test_a_stream_that_is_far_behind_holds_up_nobody(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each tick closes what is on time and one slice of those that are not, in turn, and tells it once."""
    monkeypatch.setattr("partita.service.steward.streams._SLICE", 20)
    for name in ("a-seconds", "b-seconds"):
        service.create(name, period=1)
    service.create("c-minutes", period="1m")
    log, streams = logged(monkeypatch), service.steward.state.streams
    closed: list[tuple[int, ...]] = []
    for _ in range(4):
        service.at(60)
        closed.append(tuple(streams[name].periods for name in streams.names()))
        assert streams.behind == (len(closed) < 3)
    lines = [{"event": "behind", "stream": name, "periods": 60} for name in ("a-seconds", "b-seconds")]

    assert closed == [(20, 20, 1), (40, 40, 1), (60, 60, 1), (60, 60, 1)]
    assert [line for line in told(log) if line["event"] == "behind"] == lines
    assert [line for line in told(log) if line["event"] == "late"] == []
    service.at(61)
    assert [output.period for output in streams["a-seconds"].outputs()] == list(range(1, 62))
    assert [line["stream"] for line in told(log) if line["event"] == "caught up"] == [
        "a-seconds",
        "b-seconds",
    ]


def test_a_period_that_ends_goes_before_the_next_slice(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of several streams that are far behind, each tick closes as many slices as there is time, in turn."""
    monkeypatch.setattr("partita.service.steward.streams._SLICE", 20)
    for name in ("a", "b", "c"):
        service.create(name, period=1)
    streams, close = service.steward.state.streams, DurableCounter.close_until
    order: list[str] = []

    def slow(stream: DurableCounter, period: int) -> None:
        close(stream, period)
        order.append(next(name for name in streams.names() if streams[name] is stream))
        service.nanoseconds += SECOND

    monkeypatch.setattr(DurableCounter, "close_until", slow)
    service.nanoseconds = 100 * SECOND
    for _ in range(6):
        streams.tick()

    assert order == ["a", "b", "c", "a", "b", "c"]


def test_a_restart_closes_a_slice_and_leaves_the_rest_to_the_clock(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service starts whatever is due, and the clock comes again soon while there is more."""
    monkeypatch.setattr("partita.service.steward.streams._SLICE", 20)
    service.create(period=1)
    service.stop()
    service.nanoseconds = 50 * SECOND
    service.start()
    streams = service.steward.state.streams
    assert streams["visits"].periods == 20
    service.at(50)
    assert PeriodClock(streams, now=service.now)._until_next() < SECOND // 10
    service.at(50)
    service.at(50)

    assert streams["visits"].periods == 50
    assert PeriodClock(streams, now=service.now)._until_next() == SECOND


def test_a_stream_behind_that_the_disk_refuses_is_not_tried_without_end(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock waits as long as for any other stream."""
    monkeypatch.setattr("partita.service.steward.streams._SLICE", 20)
    service.create(period=1)
    failing(monkeypatch, StreamError("full"))
    service.at(50)

    assert not service.steward.state.streams.behind


def test_a_stream_whose_horizon_is_reached_is_not_behind(service: Service) -> None:
    """However long ago that was."""
    service.create(period=1, horizon=5)
    service.at(10**6)
    service.at(10**6)

    assert service.steward.state.streams["visits"].periods == 5
    assert not service.steward.state.streams.behind


def test_slices_are_smaller_for_families_and_pan_private_streams(service: Service) -> None:
    """By public facts: the number of keys, and how periods are stored."""
    service.create("plain")
    service.create("family", keys=[f"k{i}" for i in range(64)], horizon=9)
    service.create("pan", mechanism="pan-private", horizon=9)
    streams = service.steward.state.streams

    assert [slice_size(streams[name].settings) for name in ("plain", "family", "pan")] == [4096, 64, 8]


@pytest.mark.parametrize(("due", "status"), [(MOST_DUE, 201), (MOST_DUE + 1, 400)])
def test_a_start_that_is_too_long_ago_is_refused(service: Service, due: int, status: int) -> None:
    """With an error that names the parameter; with a horizon only its periods count."""
    service.at(due)
    answer = service.create(period=1)

    assert answer.status_code == status
    assert status == 201 or answer.json()["error"]["parameter"] == "start"
    assert service.create("short", period=1, horizon=5).status_code == 201


def test_a_stream_that_is_there_may_be_asked_for_again_at_any_time(service: Service) -> None:
    """Its start was not too long ago when it was made."""
    service.create(period=1)
    service.at(MOST_DUE + 1, tick=False)

    assert service.create(period=1).status_code == 200
