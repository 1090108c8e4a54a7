"""Feeding: acknowledged when it is durable, counted once, and silent about everything else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from partita.errors import StreamError, StreamForked
from partita.service.access import Guard
from partita.service.steward.feeding import EventIntake, FeedRequest, GroupCommit
from partita.trusted.durable.events import Event
from partita.trusted.durable.journal import Journal
from tests.service.streams.conftest import Service

CANARY = "Rumpelstiltskin"
EVENTS = "/streams/visits/events"


def feeder(service: Service) -> httpx.AsyncClient:
    """Somebody who may send several requests at once."""
    transport = httpx.ASGITransport(service.steward, raise_app_exceptions=False)
    bearer = {"Authorization": f"Bearer {service.tokens['gate']}"}
    return httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=bearer)


def test_an_acknowledged_count_is_published_at_the_end_of_its_period(service: Service) -> None:
    """204 without a body; what came later counts in the next period."""
    service.create()
    answer = service.feed({"count": 500})
    service.at(11)
    service.feed({"count": 7}, "k2")
    service.at(21)

    assert (answer.status_code, answer.content) == (204, b"")
    assert service.values() == [500, 507]


def test_a_repeated_request_counts_once_and_is_answered_alike(service: Service) -> None:
    """Nothing in the answer tells that a request came before, or what it said."""
    service.create()
    first = service.feed({"count": 5})
    again = service.feed({"count": 5})
    other = service.feed({"count": 900})
    service.at(11)

    assert (first.status_code, first.headers, first.content) == (
        again.status_code,
        again.headers,
        again.content,
    )
    assert (first.status_code, first.headers, first.content) == (
        other.status_code,
        other.headers,
        other.content,
    )
    assert service.values() == [5]


def test_a_key_is_one_of_its_feeder(service: Service) -> None:
    """Two feeders may use the same key, and an event is not taken for a request of the same name."""
    service.create()
    service.feed({"count": 5}, by="gate")
    service.feed({"count": 30}, by="door")
    service.feed({"events": [{"id": "k1", "count": 200}]}, "k2")
    service.feed({"events": [{"id": "k1", "count": 200}]}, "k3")
    service.at(11)

    assert service.values() == [235]


def test_events_with_ids_of_their_own_count_once_each(service: Service) -> None:
    """However they are put together in requests."""
    service.create()
    service.feed({"events": [{"id": n} for n in range(10)]}, "k1")
    service.feed({"events": [{"id": n} for n in range(5, 15)]}, "k2")
    service.at(11)

    assert service.values() == [15]


def test_a_family_counts_by_key(service: Service) -> None:
    """Totals of one request count together, once; readers see a value for each key."""
    service.create("regions", keys=["north", "south"], horizon=100)
    for _ in range(2):
        service.feed({"counts": {"north": 3, "south": 1}}, name="regions")
    service.feed({"events": [{"id": 1, "key": "south", "count": 4}]}, "k2", name="regions")
    service.at(11)

    assert service.values("regions") == [{"north": 3, "south": 5}]


def test_a_user_counts_no_more_than_it_may(service: Service) -> None:
    """At user level events have a person and an id, and a request may be repeated as it is."""
    service.create(contributions=2)
    events = [{"person": "ann", "id": n} for n in range(5)] + [{"person": "bob", "id": 0}]
    for key in ("k1", "k2"):
        assert service.feed({"events": events}, key).status_code == 204
    service.at(11)

    assert service.values() == [3]


MALFORMED: list[Any] = [
    b"",
    b"{",
    b"[]",
    b"null",
    b'"' + CANARY.encode() + b'"',
    b"\xff\xfe",
    b"[" * 100_000,
    b'{"count": ' + b"9" * 100_000 + b"}",
    {},
    {"count": None},
    {"count": CANARY},
    {"count": 1.5},
    {"count": True},
    {"count": 2**62},
    {"count": -(2**62)},
    b'{"count": NaN}',
    b'{"count": 1e999}',
    {"count": 1, "counts": {"a": 1}},
    {"count": 1, CANARY: 1},
    {"counts": {CANARY: 1}},
    {"events": [{"id": 1, "person": CANARY}]},
    {"events": [{"id": 1}, {"id": -1}]},
    {"events": [{"id": 1}, {"id": CANARY * 20}]},
    {"events": [{"id": 1}, {"count": 1}]},
    {"events": [{"id": 1, "key": CANARY}]},
    {"events": [{"id": 1}] * 100_001},
    {"events": {"id": 1}},
]


def test_malformed_bodies_count_nothing_and_are_not_repeated(service: Service) -> None:
    """The answer is a typed error of the caller's, without a word of what was sent."""
    service.create()
    for body in MALFORMED:
        answer = service.feed(body)
        assert answer.status_code == 400
        assert answer.json()["error"]["kind"] == "InvalidData"
        assert CANARY not in answer.text
    service.at(11)

    assert service.values() == [0]


@pytest.mark.parametrize(
    ("made", "body"),
    [
        ({}, {"count": -1}),
        ({}, {"count": 2**32 + 1}),
        ({}, {"count": 2**62 - 1}),
        ({}, {"events": [{"id": 1, "count": 5}, {"id": 2, "count": -5}]}),
        ({}, {"events": [{"id": 1, "count": 2**31}, {"id": 2, "count": 2**31 + 1}]}),
        ({"keys": ["north"], "horizon": 9}, {"counts": {"north": -1}}),
        ({"keys": ["north", "south"], "horizon": 9}, {"counts": {"north": 2**32, "south": 1}}),
        ({"contributions": 2}, {"events": [{"person": "ann", "id": 1, "count": -1}]}),
        ({"mechanism": "pan-private"}, {"count": -1}),
        ({"mechanism": "pan-private"}, {"count": 2**61}),
    ],
)
def test_counts_are_neither_negative_nor_huge(service: Service, made: dict[str, Any], body: Any) -> None:
    """A request with one below zero, or with more than 2^32 together, counts nothing."""
    service.create(**made)
    answer = service.feed(body, None if made.get("mechanism") else "k1")
    service.at(11)

    assert (answer.status_code, answer.json()["error"]["kind"]) == (400, "InvalidData")
    assert service.values() in ([0], [{"north": 0}], [{"north": 0, "south": 0}])


def test_the_largest_count_of_a_request_is_counted(service: Service) -> None:
    """It is 2^32, and nothing is a count, too."""
    service.create()
    answers = [service.feed({"count": count}, f"k{count}") for count in (0, 2**32)]
    service.at(11)

    assert [answer.status_code for answer in answers] == [204, 204]
    assert service.values() == [2**32]


@pytest.mark.parametrize(
    ("made", "body"),
    [
        ({"keys": ["north"], "horizon": 9}, {"count": 1}),
        ({"keys": ["north"], "horizon": 9}, {"counts": {CANARY: 1}}),
        ({"keys": ["north"], "horizon": 9}, {"counts": {"north": 2, CANARY: 1}}),
        ({"contributions": 2}, {"count": 1}),
        ({"contributions": 2}, {"events": [{"person": "ann", "id": 1}, {"id": 2}]}),
        ({"contributions": 2}, {"events": [{"person": 1.5, "id": 1}]}),
        ({"mechanism": "pan-private"}, {"events": [{"id": 1}]}),
        ({"mechanism": "pan-private"}, {"counts": {"a": 1}}),
    ],
)
@pytest.mark.spread(5)
def test_what_does_not_fit_the_stream_is_refused(service: Service, made: dict[str, Any], body: Any) -> None:
    """As a whole, and an unknown key is not repeated."""
    service.create(**made)
    answer = service.feed(body, None if made.get("mechanism") else "k1")
    service.at(11)

    assert answer.status_code == 400
    assert CANARY not in answer.text
    assert service.values() in ([0], [{"north": 0}])


@pytest.mark.parametrize(
    ("made", "event"),
    [
        ({}, {"id": 1, "key": CANARY}),
        ({"contributions": 2}, {"person": "ann", "id": 1, "key": CANARY}),
        ({"keys": ["north"], "horizon": 9}, {"id": 1}),
    ],
)
def test_a_key_that_does_not_belong_is_named(service: Service, made: dict[str, Any], event: Any) -> None:
    """As the parameter that is wrong; what it was is not repeated."""
    service.create(**made)
    error = service.feed({"events": [event]}).json()["error"]

    assert (error["kind"], error["parameter"]) == ("InvalidData", "key")
    assert CANARY not in error["message"]


@pytest.mark.parametrize("key", [None, "", "x" * 181])
def test_a_request_needs_a_key(service: Service, key: str | None) -> None:
    """Of a bounded length: without one, nobody could tell a repetition from a second event."""
    service.create()
    answer = service.feed({"count": 1}, key)

    assert (answer.status_code, answer.json()["error"]["parameter"]) == (400, "Idempotency-Key")


def test_a_pan_private_stream_takes_no_key_and_remembers_nothing(service: Service) -> None:
    """Each request counts, no file changes before the period ends, and what was fed is lost in a restart."""
    service.create(mechanism="pan-private", horizon=64)
    before = {path: path.read_bytes() for path in service.secret.iterdir()}

    assert service.feed({"count": 2}, "k1").status_code == 400
    assert [service.feed({"count": 2}, None).status_code for _ in range(2)] == [204, 204]
    assert {path: path.read_bytes() for path in service.secret.iterdir()} == before
    service.at(11)
    service.feed({"count": 50}, None)
    service.stop()
    service.start()
    service.at(21)

    assert service.values() == [4, 4]


def test_a_pan_private_count_waits_in_no_queue(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """No thread and no other task has it: when the request was read, it is in the noisy cells."""

    def forbidden(*_: Any, **__: Any) -> None:
        raise AssertionError("something waits")

    service.create(mechanism="pan-private", horizon=64)
    monkeypatch.setattr(asyncio, "to_thread", forbidden)
    monkeypatch.setattr("partita.service.steward.feeding.GroupCommit", forbidden)

    assert service.feed(b'{"count": 3' + b" " * 10_000 + b"}", None).status_code == 204


def test_requests_that_arrive_together_are_stored_together(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one transaction, and each counts."""
    service.create()
    sizes: list[int] = []
    store = Journal.add

    def counted(self: Any, events: Any, **named: Any) -> None:
        sizes.append(len(events))
        store(self, events, **named)

    monkeypatch.setattr(Journal, "add", counted)
    intake = EventIntake(service.steward.state.streams)

    async def all_at_once() -> None:
        body = b'{"count": 1}'
        await asyncio.gather(*(intake.add("visits", body, feeder="gate", key=f"k{n}") for n in range(20)))

    asyncio.run(all_at_once())
    service.at(11)

    assert sizes == [20]
    assert service.values() == [20]


def test_nobody_waits_for_ever_when_nothing_can_be_stored(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If there is no thread to be had, all are told, and the next request is stored again."""
    service.create()
    intake, to_thread = EventIntake(service.steward.state.streams), asyncio.to_thread

    async def none_left(*_: Any) -> None:
        raise RuntimeError("can't start new thread")

    async def add(key: str) -> None:
        await intake.add("visits", b'{"count": 1}', feeder="gate", key=key)

    async def some() -> tuple[Any, Any]:
        monkeypatch.setattr(asyncio, "to_thread", none_left)
        failed = await asyncio.gather(add("k1"), add("k2"), return_exceptions=True)
        monkeypatch.setattr(asyncio, "to_thread", to_thread)
        await add("k1")
        return failed

    failed = asyncio.run(asyncio.wait_for(some(), timeout=3600))
    service.at(11)

    assert [type(error) for error in failed] == [RuntimeError, RuntimeError]
    assert service.values() == [1]


def test_whoever_waits_is_told_when_storing_is_cut_off(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those whose events were being stored, and those who had gathered behind them."""
    service.create()
    commits, begun = GroupCommit(service.steward.state.streams["visits"]), asyncio.Event()

    async def stuck(*_: Any) -> None:
        begun.set()
        await asyncio.Event().wait()

    async def cut_off() -> tuple[Any, Any]:
        monkeypatch.setattr(asyncio, "to_thread", stuck)
        first = asyncio.create_task(commits.add(FeedRequest([Event("gate", 1)], listed=True)))
        await begun.wait()
        second = asyncio.create_task(commits.add(FeedRequest([Event("gate", 2)], listed=True)))
        await asyncio.sleep(0)
        assert commits._storing is not None
        commits._storing.cancel()
        return await asyncio.gather(first, second, return_exceptions=True)

    failed = asyncio.run(asyncio.wait_for(cut_off(), timeout=3600))

    assert [type(error) for error in failed] == [StreamError, StreamError]


def test_few_large_bodies_are_read_at_once(service: Service) -> None:
    """Others wait before anything of theirs is in memory, and small requests pass them by."""
    service.create()
    begun: list[int] = []

    async def large(number: int, go_on: asyncio.Event) -> AsyncIterator[bytes]:
        begun.append(number)
        await go_on.wait()
        yield b'{"count": 10' + b" " * 10_000 + b"}"

    async def together() -> tuple[int, list[int]]:
        go_on = asyncio.Event()
        async with feeder(service) as client:
            many = [
                asyncio.create_task(
                    client.post(EVENTS, content=large(n, go_on), headers={"Idempotency-Key": f"large {n}"})
                )
                for n in range(7)
            ]
            small = await client.post(EVENTS, json={"count": 1}, headers={"Idempotency-Key": "small"})
            at_first = len(begun)
            go_on.set()
            answers = [small, *await asyncio.gather(*many)]
        return at_first, [answer.status_code for answer in answers]

    assert asyncio.run(together()) == (4, [204] * 8)
    service.at(11)
    assert service.values() == [71]


def test_nothing_remembers_who_fed_a_pan_private_stream(service: Service) -> None:
    """The guard has a bucket for feeders of other streams, and none for theirs."""
    service.create("quiet", mechanism="pan-private", horizon=64)
    service.create()
    stack: Any = service.steward.user_middleware
    [buckets] = [each.kwargs["buckets"] for each in stack if each.cls is Guard]
    service.feed({"count": 2}, None, name="quiet", by="door")
    service.feed({"count": 2}, by="gate")

    assert set(buckets._full_at) == {"token boss", "token gate"}


def test_a_malformed_request_does_not_spoil_the_others(service: Service) -> None:
    """It is refused before it joins them."""
    service.create()
    intake = EventIntake(service.steward.state.streams)

    async def both() -> list[Any]:
        asked = [intake.add("visits", body, feeder="gate", key="k1") for body in (b'{"count": 1}', b"{}")]
        return await asyncio.gather(*asked, return_exceptions=True)

    stored, refused = asyncio.run(both())
    service.at(11)

    assert (stored, type(refused).__name__, service.values()) == (None, "InvalidData", [1])


def test_a_stream_that_has_ended_says_so(service: Service) -> None:
    """After the last period nothing is counted, and that is a public fact."""
    service.create(horizon=2)
    service.at(21)
    answer = service.feed({"count": 1})

    assert (answer.status_code, answer.json()["error"]["kind"]) == (409, "HorizonReached")
    assert service.values() == [0, 0]


def test_an_unknown_stream_is_not_found(service: Service) -> None:
    """Whatever it is called; what is no address of a stream is not even a feeder's."""
    for name in ("visits", "..", "%2e%2e%2fpublic", "x" * 200, "visits.db"):
        assert service.feed({"count": 1}, name=name).status_code in (403, 404)


def test_a_disk_that_refuses_is_tried_again_and_says_no_path(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The period is closed later; nothing is lost."""
    service.create()
    service.feed({"count": 3})
    with monkeypatch.context() as broken:
        refuse(broken, StreamError(f"counter file '{service.secret}/visits.db' cannot grow"))
        service.at(10)
        answer = service.feed({"count": 1}, "k2")
        assert answer.status_code == 503
        assert str(service.secret) not in answer.text
        assert service.read("/streams/visits.json").json()["closed"] == 0
    service.feed({"count": 1}, "k2")
    service.at(21)

    assert service.values() == [4, 4]


def test_a_stream_that_was_overtaken_is_fed_no_more(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody goes on feeding a stream that publishes nothing; other streams go on."""
    service.create()
    service.create("doors")
    stream = service.steward.state.streams["visits"]
    close = type(stream).close_until

    def forked(self: Any, period: int) -> None:
        if self is stream:
            raise StreamForked("overtaken")
        close(self, period)

    monkeypatch.setattr(type(stream), "close_until", forked)
    service.at(11)
    answer = service.feed({"count": 1})

    assert (answer.status_code, answer.json()["error"]["kind"]) == (503, "StreamStopped")
    assert service.ask("GET", "/streams/visits", by="boss").json()["state"] == "stopped"
    assert (service.values(), service.values("doors")) == ([], [0])


def refuse(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """Have every transaction fail."""

    def refused(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr("partita.trusted.durable.journal.Journal.batch", refused)
