"""Feeding: from the body of a request to events on disk. No response tells anything about what was fed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Annotated, Any, Final, NamedTuple, TypeAlias, final

from fastapi import APIRouter, Header, Request, Response
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from partita.errors import InvalidData, InvalidParameter, StreamError
from partita.public.streams import Settings
from partita.service.errors import ERRORS
from partita.service.steward.streams import AnyStream, NewStream, StewardStream, StreamRegistry
from partita.trusted.durable.events import Event, check_events

# ---- bodies of feeding requests ----

HEADER: Final = "Idempotency-Key"

_LONGEST: Final = 180  # characters of a key, which streams store
_MOST: Final = 100_000  # events of a request: fewer requests against a long transaction
_LARGEST: Final = 2**32
"""The largest sum of counts in one request. A stream counts exactly below 2^62: a billion requests.

Counts are never negative: an event cannot be taken back."""
_STRICT: Final = ConfigDict(extra="forbid", strict=True)


class EventBody(BaseModel):
    """One event with an id of its own; at user level the id is one of the person's."""

    model_config = _STRICT

    id: int | str
    person: int | str | None = None
    key: str | None = Field(default=None, description="which key of a family it counts under")
    count: int = Field(default=1, ge=0, le=_LARGEST)


class FeedBody(BaseModel):
    """A count, counts by key, or single events. Exactly one of the three."""

    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra={"example": {"count": 500}})

    count: int | None = Field(default=None, ge=0, le=_LARGEST, description="so many events")
    counts: dict[str, int] | None = Field(
        default=None, description="so many under each key of a family, 0 to 2^32"
    )
    events: list[EventBody] | None = Field(default=None, max_length=_MOST, description="each counts once")


class FeedRequest(NamedTuple):
    """The events of a request, and whether it lists them; if not, one event has the total."""

    events: list[Event]
    listed: bool


def feed_request(body: bytes, settings: Settings, *, feeder: str, key: str | None) -> FeedRequest:
    """Parse a request. A count is one event of the feeder, identified by the key of the request.

    A malformed request is refused as a whole, and the error repeats nothing of it.
    """
    _check_key(key, settings)
    feed = _read(body)
    _check_counts(feed)
    return FeedRequest(_events(feed, settings, feeder, key), feed.events is not None)


def _events(feed: FeedBody, settings: Settings, feeder: str, key: str | None) -> list[Event]:
    if settings.unit == "user":
        return [_person_event(event, settings) for event in _require_events(feed)]
    if feed.events is not None and not settings.pan_private:
        return [_feeder_event(event, feeder, settings) for event in feed.events]
    if settings.pan_private:
        return [Event(None, None, _total(feed))]
    total = feed.counts if settings.keys else _total(feed)
    if total is None:
        raise _event_error("counts", "must be numbers by key for a family")
    return [Event(feeder, f"request {key}", total)]


def feed_schema() -> dict[str, Any]:
    """The schema of a body without references, for the OpenAPI document."""
    schema = FeedBody.model_json_schema()
    schema.pop("$defs")
    schema["properties"]["events"]["anyOf"][0]["items"] = EventBody.model_json_schema()
    return schema


def _read(body: bytes) -> FeedBody:
    try:
        feed = FeedBody.model_validate_json(body)
    except ValidationError:
        raise _event_error("body", "must be a count, counts by key, or at most 100,000 events") from None
    if len(feed.model_fields_set) != 1:
        raise _event_error("body", "must have one of count, counts and events")
    return feed


def _check_key(key: str | None, settings: Settings) -> None:
    """A key makes a request count once; a pan-private stream has nothing that could remember it."""
    if settings.pan_private:
        if key is not None:
            rule = "must be left out for a pan-private stream, which remembers nothing of requests"
            raise InvalidParameter(HEADER, rule, given="a key", fix="send each request once")
    elif key is None or not 0 < len(key) <= _LONGEST:
        rule = f"must be a text of 1 to {_LONGEST} characters, the same if the request is sent again"
        raise InvalidParameter(HEADER, rule, given=None, fix="send a fresh random one with each new request")


def _check_counts(feed: FeedBody) -> None:
    """Refuse counts below zero, and requests whose counts add up to more than the limit."""
    alone = [] if feed.count is None else [feed.count]
    counts = [*alone, *(feed.counts or {}).values(), *(event.count for event in feed.events or ())]
    if any(count < 0 for count in counts) or sum(counts) > _LARGEST:
        raise _event_error("count", "must not be below 0, nor above 2^32 for all of a request together")


def _require_events(feed: FeedBody) -> list[EventBody]:
    if feed.events is None:
        raise _event_error("events", "must be listed with person and id, since users are protected")
    return feed.events


def _total(feed: FeedBody) -> int:
    if feed.count is None:
        raise _event_error("count", "must be a number for this stream")
    return feed.count


def _person_event(event: EventBody, settings: Settings) -> Event:
    if event.person is None:
        raise _event_error("person", "must be given with each event, since users are protected")
    return Event(event.person, event.id, _event_count(event, settings))


def _feeder_event(event: EventBody, feeder: str, settings: Settings) -> Event:
    if event.person is not None:
        raise _event_error("person", "must be left out, since events are protected")
    number = event.id if isinstance(event.id, int) else f"event {event.id}"
    return Event(feeder, number, _event_count(event, settings))


def _event_count(event: EventBody, settings: Settings) -> int | dict[str, int]:
    if settings.keys and event.key is None:
        raise _event_error("key", "must be given with each event of a family")
    if event.key is None:
        return event.count
    if not settings.keys:
        raise _event_error("key", "must be left out, since this stream has no keys")
    return {event.key: event.count}


def _event_error(parameter: str, rule: str) -> InvalidData:
    return InvalidData(parameter, rule, fix="nothing was counted; correct the request and send it again")


# ---- group commit ----

Waiting: TypeAlias = tuple[FeedRequest, asyncio.Future[None]]

_CUT_OFF: Final = "storing was cut off; send the same request again"


@final
class GroupCommit:
    """Group commit for one stream that is not pan-private: requests that arrive together share one sync.

    While some requests are stored, others wait for the next transaction. `add` returns when the events are
    on disk. If they cannot be stored, all waiting requests fail; a request that is sent again counts once in
    any case.
    """

    def __init__(self, stream: AnyStream) -> None:
        self._stream = stream
        self._waiting: list[Waiting] = []
        self._storing: asyncio.Task[None] | None = None

    async def add(self, request: FeedRequest) -> None:
        """Count a validated request; cancelling it does not cancel the others."""
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((request, stored))
        if self._storing is None:
            self._storing = asyncio.create_task(self._store())
        await asyncio.shield(stored)

    async def _store(self) -> None:
        """Store waiting requests until none is left. However this ends, no request waits for ever."""
        some: list[Waiting] = []
        try:
            while self._waiting:
                some, self._waiting = self._waiting, []
                _settle(some, await self._attempt([request for request, _ in some]))
        finally:
            self._storing = None
            left, self._waiting = [*some, *self._waiting], []
            _settle(left, StreamError(_CUT_OFF))

    async def _attempt(self, requests: list[FeedRequest]) -> Exception | None:
        """Store requests in one transaction; each counts as a whole."""
        calls = [request.events if request.listed else request.events[0] for request in requests]
        try:
            await asyncio.to_thread(self._stream.add_calls, calls)
        except Exception as error:
            return error
        return None


def _settle(some: Sequence[Waiting], error: Exception | None) -> None:
    """Finish all requests that still wait."""
    for stored in (stored for _, stored in some if not stored.done()):
        if error is None:
            stored.set_result(None)
        else:
            stored.set_exception(error)


# ---- intake ----

_AT_ONCE: Final = 4  # large bodies in memory at once
_SMALL: Final = 4096  # bytes of a body that is parsed on the event loop, at once


@final
class EventIntake:
    """Stores the events of requests.

    A request counts as a whole, at one moment. Small requests that arrive together share a transaction.
    Large requests are admitted a few at a time, before their bodies are read, and are stored by threads, so
    that they delay no others. A request to a pan-private stream is counted at once: it waits in no queue,
    and is in no thread but the one that received it, as nothing may remember it.
    """

    def __init__(self, streams: StreamRegistry) -> None:
        self._streams = streams
        self._commits: dict[str, GroupCommit] = {}
        self._large = asyncio.Semaphore(_AT_ONCE)

    @asynccontextmanager
    async def room(self, length: int | None) -> AsyncIterator[None]:
        """Wait for room for a body; a body without a length counts as large."""
        if length is not None and length <= _SMALL:
            yield
        else:
            async with self._large:
                yield

    async def add(self, name: str, body: bytes, *, feeder: str, key: str | None) -> None:
        """Count a request; it is on disk when this returns, except for a pan-private stream."""
        stream = self._streams.get_running(name)

        def parse() -> FeedRequest:
            return feed_request(body, stream.settings, feeder=feeder, key=key)

        if stream.settings.pan_private:
            stream.add_many(parse().events)
        elif len(body) <= _SMALL:
            request = parse()
            # Validated here, so that it cannot make the transaction of others fail.
            check_events(request.events, stream.settings)
            if name not in self._commits:
                self._commits[name] = GroupCommit(stream)
            await self._commits[name].add(request)
        else:
            await asyncio.to_thread(lambda: stream.add_many(parse().events))


# ---- routes ----

Key = Annotated[
    str | None,
    Header(description="the same if a request is sent again; left out for pan-private streams"),
]

_BODY: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": feed_schema()}},
    }
}


def feeding_routes(streams: StreamRegistry) -> APIRouter:
    """The routes of stewards and feeders; the guard checks their tokens."""
    router, intake = APIRouter(tags=["streams"], responses=ERRORS), EventIntake(streams)

    @router.post(
        "/streams", status_code=201, operation_id="create_stream", responses={200: {"model": StewardStream}}
    )
    def create(new: NewStream, response: Response) -> StewardStream:
        """Make a stream, once: the same request again changes nothing, and another one is refused."""
        stream, is_new = streams.create(new)
        response.status_code = 201 if is_new else 200
        return StewardStream.of(new.name, stream.settings, runs=streams.runs(new.name))

    @router.get("/streams", operation_id="streams")
    def listed() -> list[StewardStream]:
        """All streams of this service."""
        return [described(name) for name in streams.names()]

    @router.get("/streams/{name}", operation_id="stream")
    def described(name: str) -> StewardStream:
        """What a stream was made with, and whether it goes on."""
        return StewardStream.of(name, streams[name].settings, runs=streams.runs(name))

    @router.post(
        "/streams/{name}/events",
        status_code=204,
        operation_id="feed",
        response_class=Response,
        openapi_extra=_BODY,
    )
    async def feed(name: str, request: Request, idempotency_key: Key = None) -> Response:
        """Count events in the open period. 204 says that they are on disk; sent again, they count once.

        A pan-private stream has nothing on disk until the period ends, and counts each request.
        """
        async with intake.room(_content_length(request)):
            body = await request.body()
            await intake.add(name, body, feeder=request.state.caller.name, key=idempotency_key)
        return Response(status_code=204)

    return router


def _content_length(request: Request) -> int | None:
    """The length of a body according to its header, if there is one."""
    length = request.headers.get("content-length", "")
    return int(length) if length.isascii() and length.isdigit() else None
