"""Routes that ask a release one question each: by an address, with conditions as text, or by a body."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Any, Final, TypeAlias, TypeVar, final

from fastapi import APIRouter, Body, Request, Response

from partita.asking.records import Record
from partita.service.reading import answered, asked
from partita.service.reading.answering import Answering
from partita.service.reading.catalogue import Catalogue, Replies, written
from partita.service.reading.cells import AnyWhere
from partita.service.reading.http import ERRORS, JSON, Name
from partita.service.reading.parameters import parameters, read

__all__ = ["question_routes"]

Endpoint: TypeAlias = Callable[..., Awaitable[Response]]
AnyAsked = TypeVar("AnyAsked", bound=asked.Asked)

_UNKEPT: Final = {"Cache-Control": "no-store"}


@final
@dataclass(frozen=True)
class Kind:
    """A kind of question: its last word in the address, its models, and what it is called."""

    path: str
    asked: Any
    answer: Any
    says: str


KINDS: Final = (
    Kind("count", asked.CountAsked, answered.NumberAnswer, "How many rows there are"),
    Kind("sum", asked.SumAsked, answered.SummaryAnswer, "The sum of a column"),
    Kind("mean", asked.MeanAsked, answered.SummaryAnswer, "The mean of a column"),
    Kind("variance", asked.VarianceAsked, answered.SummaryAnswer, "The variance of a column"),
    Kind("std", asked.StdAsked, answered.SummaryAnswer, "The standard deviation of a column"),
    Kind("quantile", asked.QuantileAsked, answered.QuantileAnswer, "A quantile of a column"),
    Kind("cdf", asked.CdfAsked, answered.CdfAnswer, "The distribution of a column"),
    Kind("histogram", asked.HistogramAsked, answered.HistogramAnswer, "Counts in bins"),
    Kind("histogram2d", asked.Histogram2dAsked, answered.Histogram2dAnswer, "Counts in bins of two columns"),
)
"""Those that have conditions, which are text in an address, and text or JSON in a body."""

DIFFERENCE: Final = Kind(
    "difference", asked.DifferenceAsked, answered.NumberAnswer, "How many more rows one question counts"
)
ASK: Final = Kind("ask", asked.TextAsked, answered.AnyAnswer, "Any question, as text")
ANSWERS: Final = Kind("answers", asked.AnswersAsked, answered.AllAnswers, "The answers to published queries")


@final
@dataclass(frozen=True, eq=False)
class Questions:
    """Puts questions to the releases of a catalogue."""

    catalogue: Catalogue
    replies: Replies
    answering: Answering

    def by_address(self, model: type[asked.Asked]) -> Endpoint:
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

        async def ask(name: Name, asking: asked.Asked) -> Response:
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
    """All of them; the count, which is asked most often, comes first."""
    router = APIRouter(prefix="/releases/{name}", tags=["questions"], responses=ERRORS)
    questions = Questions(catalogue, replies, answering)
    for kind in KINDS:
        by_address = replace(kind, asked=kind.asked[str])
        _add(router, by_address, "GET", questions.by_address(by_address.asked))
        _add(router, kind, "POST", questions.by_body(kind.asked[AnyWhere]))
    for kind in (ANSWERS, ASK):
        _add(router, kind, "GET", questions.by_address(kind.asked))
    _add(router, DIFFERENCE, "POST", questions.by_body(DIFFERENCE.asked))
    return router


def _add(router: APIRouter, kind: Kind, method: str, endpoint: Endpoint) -> None:
    router.add_api_route(
        f"/{kind.path}",
        endpoint,
        methods=[method],
        operation_id=f"{kind.path}_by_{'address' if method == 'GET' else 'body'}",
        summary=kind.says,
        response_model=kind.answer,
        openapi_extra=parameters(kind.asked) if method == "GET" else None,
    )
