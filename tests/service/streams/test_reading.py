"""What readers are shown of streams: bounds, history, live events, and nothing before its time."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from partita.public.stream_errors import error_band
from partita.public.streams import SECOND, OutputsFile, read_outputs
from partita.service.reading.streams import StreamWatcher
from partita.service.settings import ServiceSettings
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


class Enough(BaseException):
    """What ends a loop that no error ends."""


def test_looks_fall_on_whole_multiples_of_the_delay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of the reading side is that of the public, and a look is never before its time."""
    moments: list[tuple[int, int]] = []
    time = iter(range(0, 10**12, SECOND // 25))
    settings = ServiceSettings(folder=tmp_path, public=True, delay=Fraction(1, 10))
    watch = StreamWatcher(settings, now=lambda: next(time))
    look = StreamWatcher.look

    def looked(self: StreamWatcher) -> None:
        look(self)
        moments.append((self.moment, self._now()))
        if len(moments) == 5:
            raise Enough

    monkeypatch.setattr(StreamWatcher, "look", looked)
    with pytest.raises(Enough):
        asyncio.run(watch.keep_looking())

    assert [moment % (SECOND // 10) for moment, _ in moments] == [0] * 5
    assert all(moment <= now for moment, now in moments)
    assert len({moment for moment, _ in moments}) == 5


def test_a_stream_says_what_it_promises_and_how_exact_it_is(service: Service) -> None:
    """The bounds are those that the library gives, at the confidence that was asked for."""
    service.create()
    service.feed({"count": 70})
    service.at(31)
    told = service.read("/streams/visits.json", params={"confidence": 0.8}).json()
    published = read_outputs(service.folder / "visits")
    off = error_band(published.outputs[-1:], published.settings, 0.2)

    assert off is not None
    assert told["guarantee"]["epsilon"] == "1"
    assert (told["closed"], told["delay"], told["period_seconds"]) == (3, 1.0, 10.0)
    assert told["last"]["value"] == 70
    assert told["last"]["off"] == pytest.approx(float(off[0]))
    assert datetime.fromisoformat(told["last"]["end"]) == datetime(1970, 1, 1, 0, 0, 30, tzinfo=UTC)


def test_confidences_that_are_nearly_the_same_are_worked_out_once(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are rounded up, so what is shown holds with the confidence that was asked for."""
    service.create()
    service.at(11)
    worked: list[float] = []

    def noting(outputs: Any, settings: Any, beta: float) -> Any:
        worked.append(beta)
        return error_band(outputs, settings, beta)

    monkeypatch.setattr("partita.service.reading.streams.error_band", noting)
    asked = [service.read(f"/streams/visits.json?confidence={each}").json() for each in (0.9, 0.8991, 0.8999)]

    assert worked == [0.1]
    assert [each["confidence"] for each in asked] == [0.9] * 3


def test_a_page_of_many_keys_has_fewer_periods(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read and sent at a time has a bound in values, over HTTP, in tables and to listeners."""
    monkeypatch.setattr("partita.service.reading.streams._VALUES", 5)
    service.create("regions", keys=["north", "south"], horizon=100)
    service.at(51)

    first = service.read("/streams/regions/outputs.json").json()

    assert ([output["period"] for output in first["outputs"]], first["next"]) == ([1, 2], 2)
    assert len(service.read("/streams/regions/outputs.csv").text.splitlines()) == 6


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
    """A column for the value, or one for each key, whatever the keys are called; none is a formula."""
    service.create()
    service.create("regions", keys=["north", 'a,"b', "=1+2"], horizon=100)
    service.at(21)

    assert service.read("/streams/visits/outputs.csv").text.splitlines() == [
        "period,end,value",
        "1,1970-01-01T00:00:10+00:00,0.0",
        "2,1970-01-01T00:00:20+00:00,0.0",
    ]
    assert service.read("/streams/regions/outputs.csv?since=1").text.splitlines() == [
        'period,end,north,"a,""b",\'=1+2',
        "2,1970-01-01T00:00:20+00:00,0.0,0.0,0.0",
    ]


def test_what_is_no_stream_is_not_found(service: Service) -> None:
    """Without a word of where it was looked for."""
    service.create()
    for name in ("nobody", "..", "%2e%2e", "visits.db", "x" * 300, "visits%00"):
        answer = service.read(f"/streams/{name}/outputs.json")

        assert answer.status_code == 404, name
        assert str(service.folder.parent) not in answer.text


def test_questions_that_make_no_sense_are_refused(service: Service) -> None:
    """With a typed error that names the parameter."""
    service.create()
    for query in (
        "confidence=0",
        "confidence=1",
        "confidence=nan",
        "limit=0",
        "limit=1001",
        "since=-1",
        "since=x",
    ):
        answer = service.read(f"/streams/visits/outputs.json?{query}")

        assert answer.status_code in (400, 422), query
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


def damaged_outputs(service: Service, how: str) -> None:
    """Put a file beside a stream that begins as one, and is none."""
    whole = (service.folder / "visits.outputs").read_bytes()
    bad = service.folder / "bad.outputs"
    match how:
        case "granularity":
            size = 8 * 1024
            text = b"1/" + b"9" * 5_000 + b" " + whole[:992].partition(b" ")[2]
            body = (b"partita-outputs2" + size.to_bytes(8, "big") + text).ljust(size - 32)
            bad.write_bytes(body + hashlib.sha256(body).digest())
        case "flipped":
            bad.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        case "sparse":
            bad.write_bytes(whole)
            os.truncate(bad, 2**36)


@pytest.mark.parametrize("how", ["granularity", "flipped", "sparse"])
def test_one_bad_file_stops_no_other(service: Service, how: str) -> None:
    """Whatever is in it: the others are listed, and go on."""
    service.create()
    service.at(21)
    damaged_outputs(service, how)
    service.at(22)
    listed = {stream["name"]: stream for stream in service.read("/index.json").json()["streams"]}
    service.at(31)

    assert set(listed) == {"bad", "visits"}
    assert listed["visits"]["last"]["period"] == 2
    assert service.values() == [0, 0, 0]


def test_a_stream_that_cannot_be_listed_is_damaged_and_alone(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The catalogue says so of it, whatever it was that went wrong, and shows the others."""
    service.create()
    service.create("other")
    service.at(11)
    plain = OutputsFile.outputs

    def failing(self: OutputsFile, *, since: int = 0) -> Any:
        if self.path.stem == "other":
            raise ArithmeticError
        return plain(self, since=since)

    monkeypatch.setattr(OutputsFile, "outputs", failing)
    listed = {stream["name"]: stream["state"] for stream in service.read("/index.json").json()["streams"]}

    assert listed == {"other": "damaged", "visits": "ready"}


def test_looks_go_on_after_one_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is noted by its kind and not in its words, and whoever listens is told of the next one."""
    said: list[BaseException] = [RuntimeError("in /some/folder"), Enough()]
    time = iter(range(0, 10**12, SECOND))
    watch = StreamWatcher(ServiceSettings(folder=tmp_path, public=True), now=lambda: next(time))

    def look(self: StreamWatcher) -> None:
        raise said.pop(0)

    monkeypatch.setattr(StreamWatcher, "look", look)
    with pytest.raises(Enough):
        asyncio.run(watch.keep_looking())

    [line] = capsys.readouterr().err.splitlines()
    assert json.loads(line) | {"time": ""} == {
        "time": "",
        "level": "error",
        "process": "reading",
        "event": "look failed",
        "kind": "RuntimeError",
    }


def test_a_look_waits_for_no_other_work(tmp_path: Path) -> None:
    """It has a thread of its own, however busy all the others are."""
    watch = StreamWatcher(ServiceSettings(folder=tmp_path, public=True), now=lambda: SECOND)

    async def lived() -> None:
        free = threading.Event()
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        busy = asyncio.create_task(asyncio.to_thread(free.wait))
        try:
            await asyncio.wait_for(watch.look_in_thread(), timeout=3600)
        finally:
            free.set()
            await busy

    asyncio.run(lived())

    assert watch.moment == SECOND


def test_all_who_listen_get_each_output_once_at_the_same_moment(service: Service) -> None:
    """One event for each period, when it is shown; between them nothing but pings at public times."""
    service.create()

    async def lived() -> tuple[Listener, Listener]:
        async with Listener(service) as one, Listener(service) as other:
            for second in range(1, 32):
                service.at(second)
                service.watch.notify()
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


def test_one_caller_is_a_tenth_of_all_who_listen(started: Starter) -> None:
    """So that none shuts out the others; it is told so."""
    service = started(subscribers=20)
    service.create()
    other = {"Authorization": f"Bearer {service.tokens['other']}"}

    async def lived() -> list[int]:
        async with (
            Listener(service) as one,
            Listener(service) as two,
            Listener(service) as three,
            Listener(service, headers=other) as four,
        ):
            codes = [each.status for each in (one, two, three, four)]
        async with Listener(service) as five:
            return [*codes, five.status]

    assert asyncio.run(lived()) == [200, 200, 429, 200, 200]


def test_whoever_does_not_read_is_dropped(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that takes nothing is given up, so that it cannot keep others out."""
    monkeypatch.setattr("partita.service.reading.streams._SEND_TIMEOUT", 0.01)
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
