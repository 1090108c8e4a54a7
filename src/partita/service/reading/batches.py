"""Many counts at once: the ends of ranges in arrays, and an array of counts back.

`where` has for each column arrays of lows and of highs, an array of single values, or one condition that
goes with all:

    {"where": {"age": {"low": [0, 18], "high": [17, 64]}, "town": "Rome"}, "errors": true}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeAlias, final

import pyarrow as pa
from fastapi import APIRouter, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import Discriminator, Field, Tag, ValidationError, WithJsonSchema
from pydantic_core import from_json, to_json

from partita.answer import Answers
from partita.errors import check
from partita.public.conditions import Closed, Range
from partita.public.records import basis_record
from partita.service.errors import Refusal
from partita.service.reading.catalogue import ERRORS, JSON, NO_STORE, Catalogue, Name
from partita.service.reading.questions import Basis, JsonCondition, StrictModel, parse_any_conditions, places
from partita.service.reading.questions import read as read_parameters
from partita.service.reading.work import (
    FairSemaphore,
    Lanes,
    ReleaseSizes,
    WorkEstimate,
    check_work,
    zero_if_refused,
)
from partita.service.settings import Limits

# ---- the batch ----

_NO_JSON: Final = {"type": "json_invalid", "loc": ("body",), "msg": "must be JSON, with finite numbers"}
_VALUES: Final = {
    "type": "array",
    "items": {"anyOf": [{"type": kind} for kind in ("number", "string", "null")]},
}
Column: TypeAlias = Annotated[list[Any], WithJsonSchema(_VALUES)]
"""Values of a column; their domain parses them."""


class RangeArrays(StrictModel):
    """Ranges of a column: all their low ends and all their high ends; null is an open end."""

    low: Column
    high: Column
    closed: Closed = "both"


class ValueArray(StrictModel):
    """Single values of a column."""

    values: Column


def _form(asked: object) -> str:
    """The form of a column's conditions, decided first: long arrays are not tried against other models."""
    if not isinstance(asked, dict):
        return "one"
    if "values" in asked:
        return "values"
    return "ranges" if any(isinstance(asked.get(end), list) for end in ("low", "high")) else "one"


AnyForm: TypeAlias = Annotated[
    Annotated[RangeArrays, Tag("ranges")]
    | Annotated[ValueArray, Tag("values")]
    | Annotated[JsonCondition, Tag("one")],
    Discriminator(_form),
]


class Batch(StrictModel):
    """Many counts: arrays of equal lengths for some columns, and conditions that go with all."""

    where: dict[str, AnyForm] = Field(
        min_length=1, examples=[{"age": {"low": [0, 18], "high": [17, 64]}, "salary": [50_000, None]}]
    )
    errors: bool = Field(default=False, description="whether to give standard errors too, which takes longer")


class NoParameters(StrictModel):
    """A batch has no parameters in its address: one that is given there is refused."""


class CountsAnswer(StrictModel):
    """The counts, in the order of the ranges."""

    values: list[float]
    errors: list[float] | None = Field(default=None, description="standard errors, if they were asked for")
    basis: Basis = None


@final
@dataclass(frozen=True)
class BatchConditions:
    """Arrays and conditions of some columns, in the form that a release takes."""

    where: Mapping[str, object]

    def check(self, limits: Limits) -> None:
        """Refuse more ranges than are allowed."""
        rule = f"must have at most {limits.ranges:,} ranges"
        check(self._rows <= limits.ranges, "where", rule, given=self._rows, fix="send several batches")

    def work(self, facts: ReleaseSizes, *, errors: bool) -> int:
        """The predicted work of the counts and their errors; 0 if the release cannot answer."""
        estimate = WorkEstimate(facts)
        return zero_if_refused(lambda: estimate.rows((), self.where, self._rows, errors=errors))

    @property
    def _rows(self) -> int:
        return max((len(array) for value in self.where.values() for array in _arrays(value)), default=1)


@final
@dataclass(frozen=True)
class BatchTask:
    """A parsed batch: its predicted work, and the function that does it."""

    work: int
    make: Callable[[], bytes]


def parse_batch(facts: ReleaseSizes, body: bytes, limits: Limits) -> BatchTask:
    """Parse a body; the task counts its ranges and returns JSON."""
    try:
        batch = Batch.model_validate(from_json(body, allow_inf_nan=False))
    except ValidationError as error:
        raise RequestValidationError(places(error, "body")) from None
    except ValueError:
        raise RequestValidationError([_NO_JSON]) from None
    conditions = _parse_conditions(batch)
    conditions.check(limits)

    def make() -> bytes:
        return _to_json(facts.release.counts(conditions.where), errors=batch.errors)

    return BatchTask(conditions.work(facts, errors=batch.errors), make)


def _to_json(counts: Answers, *, errors: bool) -> bytes:
    shown = {"errors": counts.error.tolist()} if errors else {}
    record = {"values": counts.values.tolist(), **shown, **basis_record(counts)}
    return to_json(record, inf_nan_mode="null")


def _parse_conditions(batch: Batch) -> BatchConditions:
    where: dict[str, object] = {}
    for column, asked in batch.where.items():
        if isinstance(asked, RangeArrays):
            where[column] = Range(_column(asked.low), _column(asked.high), asked.closed)
        elif isinstance(asked, ValueArray):
            where[column] = _column(asked.values)
        else:
            where |= parse_any_conditions({column: asked})
    return BatchConditions(where)


def _column(values: list[Any]) -> object:
    """The values as an Arrow array, which domains read fast; as a list if they have no common type."""
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError):
        return values


def _arrays(value: object) -> list[Any]:
    """The arrays in the conditions of a column."""
    if isinstance(value, Range):
        value = value.low, value.high
    parts = value if isinstance(value, tuple) else (value,)
    return [part for part in parts if isinstance(part, list | pa.Array)]


# ---- the route ----

BODY_MODELS: Final = (Batch,)
"""Models of bodies that routes parse by themselves."""

_SMALL: Final = 2**16
"""Bytes of a body that is parsed in the lane of small work, at once."""

_BODY: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {JSON: {"schema": {"$ref": f"#/components/schemas/{Batch.__name__}"}}},
    }
}


def count_routes(catalogue: Catalogue, lanes: Lanes, limits: Limits) -> APIRouter:
    """The route of batches: small ones run in the lane of small work, large ones in that of large work.

    At most eight large bodies are in memory at once, and two of one caller: others are read when it is their
    turn.
    """
    bodies = FairSemaphore(places=8, share=2, waiting=8)
    router = APIRouter(prefix="/releases/{name}", tags=["questions"], responses=ERRORS)

    @router.post(
        "/counts",
        operation_id="counts",
        summary="How many rows are in each of many ranges or boxes",
        response_model=CountsAnswer,
        responses={415: ERRORS[400] | {"description": "Unsupported Media Type"}},
        openapi_extra=_BODY,
    )
    async def counts(request: Request, name: Name) -> Response:
        read_parameters(NoParameters, request.query_params)
        facts = (await catalogue.ready(name)).facts
        kind = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
        if kind != JSON:
            raise Refusal(415, "UnsupportedMediaType", f"the body must be {JSON}", parameter="body")

        def read(body: bytes) -> BatchTask:
            task = parse_batch(facts, body, limits)
            check_work(task.work, limits)
            return task

        if _is_small(request):
            body = await request.body()
            task = await lanes.small.run(lambda: read(body))
            made = await lanes.lane(small=task.work <= limits.small_work).run(task.make)
            return Response(made, media_type=JSON, headers=NO_STORE)
        async with bodies.place():
            body = await request.body()
            made = await lanes.large.run(lambda: read(body).make())
            return Response(made, media_type=JSON, headers=NO_STORE)

    return router


def _is_small(request: Request) -> bool:
    """Whether the announced length is small; a body without a length may be of any size."""
    length = request.headers.get("content-length", "")
    return length.isdecimal() and int(length[:20]) <= _SMALL
