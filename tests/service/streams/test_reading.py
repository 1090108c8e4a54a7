"""What readers are shown of streams: bounds, history, live events, and nothing before its time."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from partita.service.reading import live
from partita.service.reading.watching import Watch
from partita.service.settings import Settings
from partita.streams.durable import read_outputs
from partita.streams.durable.clock import SECOND
from partita.streams.plot import band
from tests.service.streams.conftest import Service, Starter
from tests.service.streams.listening import Listener


def test_an_output_is_shown_from_the_delay_after_its_period_on(service: Service) -> None:
    """Not a nanosecond earlier, though it is in the file since the period has ended."""
    service.create()
    service.at(10)
    service.at(10.999999999)
    assert len(read_outputs(service.folder / "visits").outputs) == 1
    assert service.values() == []
    service.at(11)
    assert service.values() == [0]


def test_a_late_output_waits_for_the_next_look(service: Service) -> None:
    """Whoever asks between two looks is told what the last one saw."""
    service.create()
    service.at(11, tick=False)
    assert service.values() == []
    service.steward.state.streams.tick()

    assert service.values() == []
    service.at(12.9, tick=False)
    assert service.values() == [0]


def test_looks_fall_on_whole_multiples_of_the_delay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of the reading side is that of the public, and a look is never before its time."""
    moments: list[tuple[int, int]] = []
    time = iter(range(0, 10**12, SECOND // 250))
    settings = Settings(folder=tmp_path, public=True, delay=Fraction(1, 100))
    watch = Watch(settings, now=lambda: next(time))
    look = Watch.look

    def looked(self: Watch) -> None:
        look(self)
        moments.append((self.moment, self._now()))
        if len(moments) == 5:
            raise EOFError

    monkeypatch.setattr(Watch, "look", looked)
    with pytest.raises(EOFError):
        asyncio.run(watch.keep_looking())

    assert [moment % (SECOND // 100) for moment, _ in moments] == [0] * 5
    assert all(moment <= now for moment, now in moments)
    assert len({moment for moment, _ in moments}) == 5


def test_a_stream_says_what_it_promises_and_how_exact_it_is(service: Service) -> None:
    """The bounds are those that the library gives, at the confidence that was asked for."""
    service.create()
    service.feed({"count": 70})
    service.at(31)
    told = service.read("/streams/visits.json", params={"confidence": 0.8}).json()
    published = read_outputs(service.folder / "visits")
    off = band(published.outputs[-1:], published.settings, 0.2)

    assert off is not None
    assert told["guarantee"]["epsilon"] == "1"
    assert (told["closed"], told["delay"], told["period_seconds"]) == (3, 1.0, 10.0)
    assert told["last"]["value"] == 70
    assert told["last"]["off"] == pytest.approx(float(off[0]))
    assert datetime.fromisoformat(told["last"]["end"]) == datetime(1970, 1, 1, 0, 0, 30, tzinfo=UTC)


def test_a_sparse_stream_has_no_public_bounds(service: Service) -> None:
    """How far it errs depends on where segments ended, which the public file does not say."""
    service.create(mechanism="sparse", horizon=100, expected=10)
    service.at(11)

    assert service.read("/streams/visits.json").json()["last"]["off"] is None


def test_history_comes_in_pages(service: Service) -> None:
    """Each page says where the next one begins, and the last one says nothing."""
    service.create()
    service.at(51)
    first = service.read("/streams/visits/outputs.json", params={"limit": 3}).json()
    second = service.read("/streams/visits/outputs.json", params={"limit": 3, "since": first["next"]}).json()

    assert [output["period"] for output in first["outputs"] + second["outputs"]] == [1, 2, 3, 4, 5]
    assert (first["next"], second.get("next")) == (3, None)
    assert service.read("/streams/visits/outputs.json", params={"since": 99}).json()["outputs"] == []


def test_history_as_csv_has_all_of_it(service: Service) -> None:
    """A column for the value, or one for each key, whatever the keys are called."""
    service.create()
    service.create("regions", keys=["north", 'a,"b'], horizon=100)
    service.at(21)

    assert service.read("/streams/visits/outputs.csv").text.splitlines() == [
        "period,end,value",
        "1,1970-01-01T00:00:10+00:00,0.0",
        "2,1970-01-01T00:00:20+00:00,0.0",
    ]
    assert service.read("/streams/regions/outputs.csv?since=1").text.splitlines() == [
        'period,end,north,"a,""b"',
        "2,1970-01-01T00:00:20+00:00,0.0,0.0",
    ]


@pytest.mark.parametrize("name", ["nobody", "..", "%2e%2e", "visits.db", "x" * 300, "visits%00"])
def test_what_is_no_stream_is_not_found(service: Service, name: str) -> None:
    """Without a word of where it was looked for."""
    service.create()
    answer = service.read(f"/streams/{name}/outputs.json")

    assert answer.status_code == 404
    assert str(service.folder.parent) not in answer.text


@pytest.mark.parametrize(
    "query",
    ["confidence=0", "confidence=1", "confidence=nan", "limit=0", "limit=1001", "since=-1", "since=x"],
)
def test_questions_that_make_no_sense_are_refused(service: Service, query: str) -> None:
    """With a typed error that names the parameter."""
    service.create()
    answer = service.read(f"/streams/visits/outputs.json?{query}")

    assert answer.status_code in (400, 422)
    assert answer.json()["error"]["parameter"] == query.partition("=")[0]


def test_a_damaged_file_is_listed_and_harms_nobody(service: Service) -> None:
    """And a link out of the folder is no stream at all."""
    service.create()
    (service.folder / "bad.outputs").write_bytes(b"x" * 2000)
    (service.folder / "far.outputs").symlink_to(service.folder / "visits.outputs")
    service.at(11)
    listed = {stream["name"]: stream["state"] for stream in service.read("/index.json").json()["streams"]}

    assert listed == {"bad": "damaged", "visits": "ready"}
    assert service.read("/streams/bad.json").status_code == 404
    assert service.read("/streams/far.json").status_code == 404


def test_all_who_listen_get_each_output_once_at_the_same_moment(service: Service) -> None:
    """One event for each period, when it is shown; between them nothing but pings at public times."""
    service.create()

    async def lived() -> tuple[Listener, Listener]:
        async with Listener(service) as one, Listener(service) as other:
            for second in range(1, 32):
                service.at(second)
                service.watch.tell()
                await asyncio.gather(one.settled(), other.settled())
        return one, other

    one, other = asyncio.run(lived())
    events = [(moment // SECOND, piece.split(b"\n")[0]) for moment, piece in one.pieces]

    assert one.pieces == other.pieces
    assert b"text/event-stream" in one.sent_headers
    assert events == [
        (0, b"retry: 2000"),
        (11, b"id: 1"),
        (15, b": ping"),
        (21, b"id: 2"),
        (30, b": ping"),
        (31, b"id: 3"),
    ]


def test_a_listener_resumes_after_the_last_event_it_has(service: Service) -> None:
    """With a record for each period that it missed, the same as in the history."""
    service.create("regions", keys=["north", "south"], horizon=100)
    service.at(41)

    async def lived() -> Listener:
        async with Listener(service, "regions", headers={"Last-Event-ID": "2"}) as listener:
            return listener

    listener = asyncio.run(lived())
    data = [json.loads(line[6:]) for line in listener.text.splitlines() if line.startswith("data: ")]

    assert listener.periods == [3, 4]
    assert data == service.read("/streams/regions/outputs.json?since=2").json()["outputs"]


def test_listeners_are_told_to_go_when_the_service_ends(service: Service) -> None:
    """At once, and not when the next period ends."""
    service.create()

    async def lived() -> Listener:
        async with Listener(service) as listener:
            service.watch.end()
            await listener.settled()
            return listener

    assert asyncio.run(lived()).text.endswith("event: end\ndata: {}\n\n")


def test_only_so_many_may_listen(started: Starter) -> None:
    """One more is told to come back later; whoever leaves makes room."""
    service = started(subscribers=1)
    service.create()

    async def lived() -> list[int]:
        async with Listener(service) as first, Listener(service) as second:
            codes = [first.status, second.status]
        async with Listener(service) as third:
            return [*codes, third.status]

    assert asyncio.run(lived()) == [200, 503, 200]


def test_whoever_does_not_read_is_dropped(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that takes nothing is given up, so that it cannot keep others out."""
    monkeypatch.setattr(live, "_PATIENCE", 0.01)
    service.create()
    listener = Listener(service)
    sending = listener._send

    async def stuck(message: Any) -> None:
        await sending(message)
        if message["type"] == "http.response.body":
            await asyncio.Event().wait()

    async def lived() -> None:
        monkeypatch.setattr(listener, "_send", stuck)
        async with listener:
            await listener._task

    asyncio.run(lived())

    assert listener.status == 200
