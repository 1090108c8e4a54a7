"""Routes that ask a release one question each: by an address, with conditions as text, or by a body."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache, reduce
from operator import or_
from typing import Annotated, Any, Final, TypeAlias, TypeVar, final

from fastapi import APIRouter, Body, Request, Response

from partita.public.questions import KINDS, Type
from partita.public.records import Record
from partita.service.reading.catalogue.catalogue import Catalogue, Replies, written
from partita.service.reading.catalogue.http import ERRORS, JSON, Name
from partita.service.reading.questions.answered import answer_model
from partita.service.reading.questions.answering import Answering
from partita.service.reading.questions.asked import Asked, TextAsked, parameters, read, request_model

Endpoint: TypeAlias = Callable[..., Awaitable[Response]]
AnyAsked = TypeVar("AnyAsked", bound=Asked)

_UNKEPT: Final = {"Cache-Control": "no-store"}


@final
@dataclass(frozen=True, eq=False)
class Questions:
    """Puts questions to the releases of a catalogue."""

    catalogue: Catalogue
    replies: Replies
    answering: Answering

    def by_address(self, model: type[Asked]) -> Endpoint:
        """Answers what an address asks; an answer that is kept is not even read for what it asks."""

        async def ask(request: Request) -> Response:
            entry = await self.catalogue.ready(request.path_params["name"])
            asking = cache(lambda: self._checked(read(model, request.query_params)))

            def make() -> Record:
                return self.answering.answered(entry, asking().question(), asking())

            def quick() -> bool:
                return self.answering.is_quick(entry, asking().question(), asking())

            def small() -> bool:
                return self.answering.is_small(entry, asking().question(), asking())

            return await self.replies.json(request, entry, make, small=small, quick=quick)

        return ask

    def by_body(self, model: Any) -> Endpoint:
        """Answers what a body asks."""

        async def ask(name: Name, asking: Asked) -> Response:
            entry = await self.catalogue.ready(name)
            question = self._checked(asking).question()
            lane = self.replies.lanes.lane(small=self.answering.is_small(entry, question, asking))
            body = await lane.run(lambda: written(self.answering.answered(entry, question, asking)))
            return Response(body, media_type=JSON, headers=_UNKEPT)

        ask.__annotations__["asking"] = Annotated[model, Body()]
        return ask

    def _checked(self, asking: AnyAsked) -> AnyAsked:
        for parameter, text in asking:
            if isinstance(text, str):
                self.answering.check_text(text, parameter)
        return asking


def question_routes(catalogue: Catalogue, replies: Replies, answering: Answering) -> APIRouter:
    """Addresses for every kind of question, and one for any question as text.

    Kinds whose conditions may be left out can be asked by an address, those with any conditions by a body.
    """
    router = APIRouter(prefix="/releases/{name}", tags=["questions"], responses=ERRORS)
    questions = Questions(catalogue, replies, answering)
    models = {name: answer_model(kind) for name, kind in KINDS.items()}
    for name, kind in KINDS.items():
        conditions = kind.having(Type.CONDITIONS)
        if not any(each.required for each in conditions):
            by_address = request_model(kind, body=False)
            endpoint = questions.by_address(by_address)
            _add(router, name, kind.title, models[name], endpoint, openapi_extra=parameters(by_address))
        if conditions:
            endpoint = questions.by_body(request_model(kind, body=True))
            _add(router, name, kind.title, models[name], endpoint)
    answer, endpoint = reduce(or_, models.values()), questions.by_address(TextAsked)
    _add(router, "ask", "Any question, as text", answer, endpoint, openapi_extra=parameters(TextAsked))
    return router


def _add(
    router: APIRouter,
    name: str,
    title: str,
    answer: Any,
    endpoint: Endpoint,
    openapi_extra: dict[str, Any] | None = None,
) -> None:
    """A route whose parameters are those of the address, if it describes them, else a body."""
    router.add_api_route(
        f"/{name}",
        endpoint,
        methods=["GET" if openapi_extra else "POST"],
        operation_id=f"{name}_by_{'address' if openapi_extra else 'body'}",
        summary=title,
        response_model=answer,
        openapi_extra=openapi_extra,
    )
