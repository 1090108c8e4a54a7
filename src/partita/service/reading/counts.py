"""The route for many counts at once."""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter, Request, Response

from partita.service.reading.batches import Batch, Counted, NoParameters, Task, json_task
from partita.service.reading.catalogue import Catalogue
from partita.service.reading.document import ERRORS
from partita.service.reading.parameters import read as read_parameters
from partita.service.reading.paths import Name
from partita.service.reading.replies import JSON
from partita.service.reading.threads import Lanes, Room
from partita.service.reading.work import check_work
from partita.service.settings import Limits
from partita.service.web.errors import Refusal

__all__ = ["BODIES", "count_routes"]

BODIES: Final = (Batch,)
"""Models of bodies that routes read by themselves."""

_SMALL: Final = 2**16
"""Bytes of a body that is read and answered among the small questions."""

_UNKEPT: Final = {"Cache-Control": "no-store"}
_BODY: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {JSON: {"schema": {"$ref": f"#/components/schemas/{Batch.__name__}"}}},
    }
}


def count_routes(catalogue: Catalogue, lanes: Lanes, limits: Limits) -> APIRouter:
    """Batches of counts: small ones among other small questions, large ones in the lane of large work.

    Only a few large bodies are in memory at once, and of one caller two: others are not read before it is
    their turn.
    """
    bodies = Room(places=8, share=2, waiting=8)
    router = APIRouter(prefix="/releases/{name}", tags=["questions"], responses=ERRORS)

    @router.post(
        "/counts",
        operation_id="counts",
        summary="How many rows are in each of many ranges or boxes",
        response_model=Counted,
        responses={415: ERRORS[400] | {"description": "Unsupported Media Type"}},
        openapi_extra=_BODY,
    )
    async def counts(request: Request, name: Name) -> Response:
        read_parameters(NoParameters, request.query_params)
        facts = (await catalogue.ready(name)).facts
        kind = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
        if kind != JSON:
            raise Refusal(415, "UnsupportedMediaType", f"the body must be {JSON}", parameter="body")

        def read(body: bytes) -> Task:
            task = json_task(facts, body, limits)
            check_work(task.work, limits)
            return task

        if _is_small(request):
            body = await request.body()
            task = await lanes.small.run(lambda: read(body))
            made = await lanes.lane(small=task.work <= limits.small_work).run(task.make)
            return Response(made, media_type=JSON, headers=_UNKEPT)
        async with bodies.place():
            body = await request.body()
            made = await lanes.large.run(lambda: read(body).make())
            return Response(made, media_type=JSON, headers=_UNKEPT)

    return router


def _is_small(request: Request) -> bool:
    """Whether a body says that it is short; one that does not say may be of any length."""
    length = request.headers.get("content-length", "")
    return length.isdecimal() and int(length[:20]) <= _SMALL
