"""Time is public: what readers see is the same whatever is fed, apart from the published values."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from typing import Any

import httpx
import pytest
from starlette.responses import StreamingResponse

from partita.public.streams import SECOND, OutputsFile
from partita.service.reading import streams
from partita.service.reading.streams import StreamWatcher, VisibleStream
from partita.service.steward.feeding import EventIntake
from partita.service.steward.streams import StreamRegistry
from partita.testing import EndlessTape, tape_noise
from tests.service.streams.conftest import Service, Starter
from tests.service.streams.listening import Listener

STREAMS: dict[str, dict[str, Any]] = {
    "visits": {},
    "ward": {"mechanism": "pan-private", "horizon": 64},
    "regions": {"keys": ["north", "south"], "horizon": 100},
}
CREATED = re.compile(r"^\w+_created\{.*$", re.MULTILINE)
VALUES = re.compile(r'("value":|"(?:north|south)":|(?<=00:00),|(?<=Z),)-?[0-9.e+-]+(?:,-?[0-9.e+-]+)?')
PERIOD, STEP = 3, SECOND // 2

Feeding = Callable[[Service, int], None]


def nothing(service: Service, period: int) -> None:
    """Feed nothing at all."""


def plenty(service: Service, period: int) -> None:
    """Feed all streams, more than once, with malformed and refused requests among them."""
    bodies = {"regions": {"counts": {"north": 5}}}
    for name in service.steward.state.streams.names():
        body, key = bodies.get(name, {"count": 17 * period}), None if name == "ward" else f"k{period}"
        assert [service.feed(body, key, name=name).status_code for _ in range(2)] == [204, 204]
    assert service.feed({"count": "many"}, "k").status_code == 400
    assert service.feed({"count": 1}, by="boss").status_code == 403


def test_the_public_side_is_the_same_but_for_the_values(started: Starter, capfd: Any) -> None:
    """Two services on one tape and one clock, one of them fed much, and late with its outputs.

    Bodies, headers, events, their times, metrics and logs are equal but for the values, which do differ.
    """
    quiet, quiet_log = public_side(started, nothing, late=0), log_of(capfd)
    busy, busy_log = public_side(started, plenty, late=STEP), log_of(capfd)

    assert without_values(quiet) == without_values(busy)
    assert quiet != busy
    assert quiet_log == busy_log != []


@pytest.mark.parametrize("late", [2 * SECOND])
def test_an_output_that_is_later_than_the_delay_is_shown_at_a_whole_multiple_of_it(
    started: Starter, late: int
) -> None:
    """Nobody sees when it was written, only in which second: that is the limit of what a delay hides."""
    shown = public_side(started, nothing, late=late - STEP, names=["visits"])

    assert shown == public_side(started, nothing, late=late, names=["visits"])
    assert shown != public_side(started, nothing, late=late + STEP, names=["visits"])


def extra_header(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tell in a header how many requests have fed."""
    fed: list[str] = []
    add = EventIntake.add

    async def noting(self: EventIntake, name: str, body: bytes, **named: Any) -> None:
        fed.append(name)
        await add(self, name, body, **named)

    class Telling(StreamingResponse):
        def __init__(self, content: Any, *, headers: dict[str, str], **named: Any) -> None:
            super().__init__(content, headers={**headers, "X-Fed": str(len(fed))}, **named)

    monkeypatch.setattr(EventIntake, "add", noting)
    monkeypatch.setattr("partita.service.reading.streams.StreamingResponse", Telling)


def size_of_the_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tell in a body how large the secret files are."""
    plain = streams.describe_stream

    def leaking(shown: VisibleStream, bounds: Any, *, delay: float, beta: float) -> Any:
        secret = shown.file.path.parents[1] / "secret"
        size = sum(path.stat().st_size for path in secret.iterdir())
        return plain(shown, bounds, delay=size, beta=beta)

    monkeypatch.setattr("partita.service.reading.streams.describe_stream", leaking)


def shown_when_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Show outputs as soon as they are there."""
    monkeypatch.setattr(StreamWatcher, "_due", lambda self, file: 2**62)


def no_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Show outputs at the first look after the end of the period."""

    def due(self: StreamWatcher, file: OutputsFile) -> int:
        return file.settings.schedule.ended(self._now())

    monkeypatch.setattr(StreamWatcher, "_due", due)


def event_on_arrival(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look, and tell all who listen, whenever a stream is about to be fed."""
    plain = StreamRegistry.get_running

    def telling(self: StreamRegistry, name: str) -> Any:
        stream = plain(self, name)
        stream.close_until(stream.periods + 1)
        return stream

    monkeypatch.setattr(StreamRegistry, "get_running", telling)
    shown_when_written(monkeypatch)


def log_line_on_feeding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Note feeding requests as all others."""
    monkeypatch.setattr("partita.service.web._hidden", lambda side: lambda scope: False)


@pytest.mark.faults
@pytest.mark.parametrize(
    "leak",
    [extra_header, size_of_the_secret, shown_when_written, no_delay, event_on_arrival, log_line_on_feeding],
)
def test_planted_leaks_are_seen(
    started: Starter, capfd: Any, monkeypatch: pytest.MonkeyPatch, leak: Callable[[Any], None]
) -> None:
    """The comparison above fails for a service that tells of feeding in any of these ways."""
    leak(monkeypatch)
    quiet, quiet_log = public_side(started, nothing, late=0, names=["visits"]), log_of(capfd)
    busy, busy_log = public_side(started, plenty, late=STEP, names=["visits"]), log_of(capfd)

    assert (without_values(quiet), quiet_log) != (without_values(busy), busy_log)


@pytest.fixture(autouse=True)
def same_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streams have the same name for themselves, which is random, in all runs."""
    monkeypatch.setattr("partita.trusted.durable.open.token", lambda: "0" * 32)


def public_side(
    started: Starter, feeding: Feeding, *, late: int, names: Sequence[str] = tuple(STREAMS)
) -> list[str]:
    """All that a reader sees in nine seconds, asking every half second and listening all the time.

    The steward closes each period `late` nanoseconds after its end.
    """
    service = started(noise=tape_noise(EndlessTape(7)))
    for name in names:
        assert service.create(name, **{**STREAMS[name], "period": PERIOD}).status_code == 201
    streams = [
        f"/streams/{name}{rest}" for name in names for rest in (".json", "/outputs.json", "/outputs.csv")
    ]
    addresses = ["/index.json", *streams, "/streams/nobody.json", "/-/metrics"]

    async def lived() -> list[str]:
        async with Listener(service) as listener, client_of(service) as client:
            seen = [f"{listener.status}\n{listener.sent_headers!r}"]
            for moment in range(0, 9 * SECOND, STEP):
                service.nanoseconds = moment
                at_moment(service, feeding, moment, late)
                if moment % SECOND == 0:
                    service.watch.look()
                    service.watch.notify()
                    await listener.settled()
                seen += [written(await client.get(address)) for address in addresses]
        return seen + [f"{moment} {piece.decode()}" for moment, piece in listener.pieces]

    return asyncio.run(lived())


def at_moment(service: Service, feeding: Feeding, moment: int, late: int) -> None:
    """What happens on the secret side: events within a period, and its end."""
    if moment % (PERIOD * SECOND) == SECOND:
        feeding(service, moment // (PERIOD * SECOND) + 1)
    if moment >= PERIOD * SECOND and (moment - late) % (PERIOD * SECOND) == 0:
        service.steward.state.streams.tick()


def client_of(service: Service) -> httpx.AsyncClient:
    """A reader."""
    headers = {"Authorization": f"Bearer {service.tokens['reader']}"}
    transport = httpx.ASGITransport(service.reading)
    return httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers)


def written(answer: httpx.Response) -> str:
    """An answer as text, less its length, which is that of the body, and the real times of metrics."""
    headers = [f"{name}: {value}" for name, value in answer.headers.items() if name != "content-length"]
    assert int(answer.headers.get("content-length", len(answer.content))) == len(answer.content)
    return "\n".join([str(answer.status_code), *headers, CREATED.sub("", answer.text)])


def without_values(seen: list[str]) -> list[str]:
    return [VALUES.sub(r"\1*", text) for text in seen]


def log_of(capfd: Any) -> list[str]:
    """What the service logged since the last time, but for the making of streams."""
    return [line for line in capfd.readouterr().err.splitlines() if line]
