"""Streams for stewards and feeders: made once, fed under keys. No answer tells anything of what was fed."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Header, Request, Response

from partita.service.steward.feeding import feed_schema
from partita.service.steward.intake import Intake
from partita.service.steward.keeping import Streams
from partita.service.steward.requests import NewStream, StewardStream
from partita.service.web.errors import ERRORS

__all__ = ["feeding_routes"]

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


def feeding_routes(streams: Streams) -> APIRouter:
    """The routes of a steward and of feeders; which token may use which is the guard's business."""
    router, intake = APIRouter(tags=["streams"], responses=ERRORS), Intake(streams)

    @router.post(
        "/streams", status_code=201, operation_id="create_stream", responses={200: {"model": StewardStream}}
    )
    def create(asked: NewStream, response: Response) -> StewardStream:
        """Make a stream, once: the same request again changes nothing, and another one is refused."""
        stream, is_new = streams.create(asked)
        response.status_code = 201 if is_new else 200
        return StewardStream.of(asked.name, stream.settings, runs=streams.runs(asked.name))

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
        async with intake.room(_announced(request)):
            body = await request.body()
            await intake.add(name, body, feeder=request.state.caller.name, key=idempotency_key)
        return Response(status_code=204)

    return router


def _announced(request: Request) -> int | None:
    """How long a body is going to be, if that is said."""
    length = request.headers.get("content-length", "")
    return int(length) if length.isascii() and length.isdigit() else None
