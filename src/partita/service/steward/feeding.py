"""Bodies of feeding requests as events, each known by what makes it count once."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from partita.errors import InvalidData, InvalidParameter
from partita.streams.durable.events import Event
from partita.streams.durable.settings import Settings

__all__ = ["HEADER", "FeedRequest", "feed_request", "feed_schema"]

HEADER: Final = "Idempotency-Key"

_LONGEST: Final = 180
_MOST: Final = 100_000
_LARGEST: Final = 2**32
"""What the counts of one request add up to at most. What came cannot be taken back, so none is negative. A
stream counts exactly below 2^62: that is a billion requests of this size away."""
_STRICT: Final = ConfigDict(extra="forbid", strict=True)


class FedEvent(BaseModel):
    """One event with an id of its own; at user level the id is one of the person's."""

    model_config = _STRICT

    id: int | str
    person: int | str | None = None
    key: str | None = Field(default=None, description="which key of a family it counts under")
    count: int = Field(default=1, ge=0, le=_LARGEST)


class Feed(BaseModel):
    """What came: a count, counts by key, or events one by one. Exactly one of the three."""

    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra={"example": {"count": 500}})

    count: int | None = Field(default=None, ge=0, le=_LARGEST, description="so many events")
    counts: dict[str, int] | None = Field(
        default=None, description="so many under each key of a family, 0 to 2^32"
    )
    events: list[FedEvent] | None = Field(default=None, max_length=_MOST, description="each counts once")


class FeedRequest(NamedTuple):
    """The events of a request, and whether it lists them; if not, there is one, which has a total."""

    events: list[Event]
    listed: bool


def feed_request(body: bytes, settings: Settings, *, feeder: str, key: str | None) -> FeedRequest:
    """What a request asks to count. A count is one event of the feeder, known by the key of the request.

    What is malformed is refused as a whole, and nothing of it is repeated.
    """
    _check_key(key, settings)
    feed = _read(body)
    _check_counts(feed)
    return FeedRequest(_events(feed, settings, feeder, key), feed.events is not None)


def _events(feed: Feed, settings: Settings, feeder: str, key: str | None) -> list[Event]:
    if settings.unit == "user":
        return [_of_person(event, settings) for event in _listed(feed)]
    if feed.events is not None and not settings.pan_private:
        return [_of_feeder(event, feeder, settings) for event in feed.events]
    if settings.pan_private:
        return [Event(None, None, _total(feed))]
    total = feed.counts if settings.keys else _total(feed)
    if total is None:
        raise _malformed("counts", "must be numbers by key for a family")
    return [Event(feeder, f"request {key}", total)]


def feed_schema() -> dict[str, Any]:
    """What a body may be, whole and without references, for the document that describes the API."""
    schema = Feed.model_json_schema()
    schema.pop("$defs")
    schema["properties"]["events"]["anyOf"][0]["items"] = FedEvent.model_json_schema()
    return schema


def _read(body: bytes) -> Feed:
    try:
        feed = Feed.model_validate_json(body)
    except ValidationError:
        raise _malformed("body", "must be a count, counts by key, or at most 100,000 events") from None
    if len(feed.model_fields_set) != 1:
        raise _malformed("body", "must have one of count, counts and events")
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


def _check_counts(feed: Feed) -> None:
    """Refuse counts below zero, and requests whose counts add up to more than the limit."""
    alone = [] if feed.count is None else [feed.count]
    counts = [*alone, *(feed.counts or {}).values(), *(event.count for event in feed.events or ())]
    if any(count < 0 for count in counts) or sum(counts) > _LARGEST:
        raise _malformed("count", "must not be below 0, nor above 2^32 for all of a request together")


def _listed(feed: Feed) -> list[FedEvent]:
    if feed.events is None:
        raise _malformed("events", "must be listed with person and id, since users are protected")
    return feed.events


def _total(feed: Feed) -> int:
    if feed.count is None:
        raise _malformed("count", "must be a number for this stream")
    return feed.count


def _of_person(event: FedEvent, settings: Settings) -> Event:
    if event.person is None:
        raise _malformed("person", "must be given with each event, since users are protected")
    return Event(event.person, event.id, _counted(event, settings))


def _of_feeder(event: FedEvent, feeder: str, settings: Settings) -> Event:
    if event.person is not None:
        raise _malformed("person", "must be left out, since events are protected")
    number = event.id if isinstance(event.id, int) else f"event {event.id}"
    return Event(feeder, number, _counted(event, settings))


def _counted(event: FedEvent, settings: Settings) -> int | dict[str, int]:
    if settings.keys and event.key is None:
        raise _malformed("key", "must be given with each event of a family")
    if event.key is None:
        return event.count
    if not settings.keys:
        raise _malformed("key", "must be left out, since this stream has no keys")
    return {event.key: event.count}


def _malformed(parameter: str, rule: str) -> InvalidData:
    return InvalidData(parameter, rule, fix="nothing was counted; mend the request and send it again")
