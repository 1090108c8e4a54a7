"""What a steward's log says when periods do not close as they should: which stream, and what kind."""

from __future__ import annotations

import json
from typing import Any

import pytest

from partita.errors import LedgerError, StreamError, StreamForked
from partita.service.steward.closing import AnyStream
from partita.streams.durable import DurableCounter
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
