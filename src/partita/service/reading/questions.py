"""Routes that ask a release one question each, and the models of questions and answers.

Each kind of question has two models, made from the table of question kinds. As parameters of an address,
conditions are text in the language of questions. In the body of a request they may be JSON too. Both are the
same question to the release. In JSON a condition is

    42, "Rome"                                  one value
    [30, 39]                                    from 30 to 39, both included; null is an open end
    {"low": 30, "high": 40, "closed": "left"}   a range that says which of its ends belong to it
    {"in": ["Rome", "Bari"]}                    any of these values
    {"is": "null"}                              a special cell
    {"not": "Rome"}                             what does not meet one of these

Numbers mean what they are written as, within the precision of JSON; a number as text is exact.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache, reduce
from operator import or_
from statistics import NormalDist
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias, TypeVar, final, get_origin

from fastapi import APIRouter, Body, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr, ValidationError, create_model
from starlette.datastructures import QueryParams

from partita.domain.base import Special
from partita.errors import check
from partita.numbers import check_probability, rational
from partita.public.conditions import Closed, Either, Not, OneOf, Range, Where
from partita.public.grammar import parse_key, parse_order, parse_question, parse_where
from partita.public.keys import MOST_KEYS, check_keys
from partita.public.questions import (
    COUNT,
    KINDS,
    HalfSpaceText,
    Parameter,
    QueryRunner,
    Question,
    QuestionKind,
    Type,
)
from partita.public.records import (
    ANSWERS,
    BoundsValue,
    Cell,
    GroupedResult,
    LineResult,
    Measure,
    Number,
    QuantileValue,
    Record,
    Result,
    Summary,
    TableResult,
    basis_record,
)
from partita.public.release import Release
from partita.public.views import View, is_fixed
from partita.service.reading.catalogue import (
    ERRORS,
    JSON,
    NAMED,
    NO_STORE,
    PATTERN,
    Catalogue,
    Entry,
    Name,
    Replies,
    encode_json,
)
from partita.service.reading.work import WorkEstimate, check_work, number_of_groups
from partita.service.settings import Limits

Value: TypeAlias = int | str
"""One value of a column: a whole number, or text where it is anything else."""


_ERROR: Final = "the standard error, by a calibrated model and not a guarantee; the same in a batch of counts"

Basis: TypeAlias = Annotated[
    Literal["measured", "inferred", "order 3+"] | None,
    Field(
        description="what the answer rests on, where the release can tell: noisy counts of just what is "
        "asked for, a model, or a model of pairs for three or more columns"
    ),
]


class StrictModel(BaseModel):
    """A model without other entries than those that it names."""

    model_config = ConfigDict(extra="forbid")


class Interval(StrictModel):
    """Bounds that hold with about this confidence; a calibrated model, not a guarantee.

    Of a count of ranges and single values they are the value and `half` to either side, never below zero. Of
    other counts, of sums and differences, and of any count where beta is given, guaranteed bounds of the same
    confidence take the place of a side that they narrow. What holds whatever the data is `worst`.
    """

    confidence: float = Field(examples=[0.95])
    low: float | None = Field(examples=[11893.2], description="null where nothing bounds it")
    high: float | None = Field(examples=[12105.8], description="null where nothing bounds it")


class Worst(StrictModel):
    """Bounds that fail with probability at most beta, whatever the data."""

    beta: float
    low: float | None
    high: float | None


class NumberAnswer(StrictModel):
    """A number with its error."""

    question: str = Field(examples=["count where age between 30 and 39"])
    value: float | None = Field(examples=[11999.5], description="null where it is not determinable")
    error: float | None = Field(examples=[54.2], description=_ERROR)
    basis: Basis = None
    interval: Interval
    worst: Worst | None = Field(default=None, description="guaranteed; only where beta is given")
    half: float | None = Field(examples=[106.3], description="half the width of a bar at the confidence")
    small: bool = Field(description="whether noise dominates: the bar is as wide as the value is large")


class MeasureAnswer(NumberAnswer):
    """A share or a correlation, with what else is to be known."""

    note: str | None = None


class CoversDetails(StrictModel):
    """Which values count in full."""

    low: float | None
    high: float | None
    none_below: float | None
    none_above: float | None
    everything: bool
    text: str


class SummaryAnswer(NumberAnswer):
    """A sum, a mean, a variance or a standard deviation, and what values it covers."""

    covers: CoversDetails


class ValueInterval(StrictModel):
    """Values between which the true one lies with about this confidence; a model."""

    confidence: float
    low: Value
    high: Value


class ValueWorst(StrictModel):
    """Values between which the true one lies, except with probability beta."""

    beta: float
    low: Value
    high: Value


class Ranks(StrictModel):
    """Between which shares of the rows the value stands."""

    low: float
    high: float


class QuantileAnswer(StrictModel):
    """A value of a column, and between which values and ranks it lies."""

    question: str = Field(examples=["median of salary"])
    value: Value = Field(examples=[31250])
    rank_error: float | None = None
    basis: Basis = None
    interval: ValueInterval
    worst: ValueWorst | None = None
    ranks: Ranks


class RowsBeyond(StrictModel):
    """A noisy number of rows."""

    value: float
    error: float


class BoundsAnswer(StrictModel):
    """Two values between which nearly all rows lie, and how many lie beyond."""

    question: str = Field(examples=["bounds of cost without 1/1000"])
    low: Value = Field(examples=[12])
    high: Value = Field(examples=[31250])
    determinable: bool = Field(description="false where noise hides all rows: the declared bounds")
    below: RowsBeyond
    above: RowsBeyond
    rows: RowsBeyond
    rank_error: float = Field(description="rows by which the number at each end may be off")
    domain: dict[str, str]


class Group(StrictModel):
    """A group of rows: its name for each key, and its value with an interval."""

    key: list[Value | None] = Field(
        examples=[["Rome", "2013-03"]], description="null for rows without a value"
    )
    value: Value | float | None = Field(examples=[11999.5], description="null where it is not determinable")
    error: float | None = Field(default=None, description=_ERROR)
    low: Value | float | None
    high: Value | float | None
    basis: Basis = None
    half: float | None = None
    small: bool | None = None


class GroupsAnswer(StrictModel):
    """A statistic by groups of rows."""

    question: str = Field(examples=["count by dest, month(when) order by count desc limit 10"])
    by: list[str] = Field(examples=[["dest", "month(when)"]], description="the keys")
    statistic: str
    confidence: float
    number: int = Field(description="how many groups there are, shown or not")
    ranking: str | None = Field(
        default=None, description="which neighbours in the order cannot be told apart"
    )
    about: str | None = Field(default=None, description="which rows are in no group")
    groups: list[Group]


class AnyAnswer(BaseModel):
    """An answer with other entries."""

    model_config = ConfigDict(extra="allow")

    question: str


_MODELS: Final[Mapping[type[Result], type[BaseModel]]] = {
    Number: NumberAnswer,
    Summary: SummaryAnswer,
    QuantileValue: QuantileAnswer,
    Measure: MeasureAnswer,
    BoundsValue: BoundsAnswer,
    GroupedResult: GroupsAnswer,
    LineResult: GroupsAnswer,
}
_CELLS: Final[Mapping[Cell, Any]] = {
    Cell.VALUE: Value,
    Cell.PAIR: tuple[Value, Value],
    Cell.NUMBER: float,
    Cell.SHARE: float,
    Cell.TEXT: str,
}


def answer_model(kind: QuestionKind) -> type[BaseModel]:
    """The model of the answers to a kind of question."""
    if isinstance(kind.result, TableResult):
        return _table_model(kind.name.capitalize(), kind.result)
    return _MODELS.get(type(kind.result), AnyAnswer)


def _table_model(name: str, table: TableResult) -> type[BaseModel]:
    """Rows; beside an error stand its bar and, unless there are shares, whether noise dominates."""
    columns: dict[str, Any] = {column.name: (_CELLS[column.cell], ...) for column in table.columns}
    bars: dict[str, Any] = {"half": (float, ...)} if "error" in columns else {}
    bars |= {"small": (bool, ...)} if bars and "share" not in columns else {}
    row = create_model(f"{name}Row", __base__=StrictModel, __doc__=table.row, **columns, **bars)
    rows: dict[str, Any] = {table.name: (list[row], ...)}  # type: ignore[valid-type]
    entries: dict[str, Any] = {"question": (str, ...), "basis": (Basis, None), **rows}
    return create_model(f"{name}Answer", __base__=StrictModel, __doc__=table.title, **entries)


# ---- questions ----

JsonValue: TypeAlias = (
    StrictInt
    | Annotated[float, Field(strict=True, allow_inf_nan=False)]
    | Annotated[StrictStr, Field(max_length=1000)]
)
"""One value of a column: a number, or text as the column is written."""


class Between(StrictModel):
    """A range that says which of its ends belong to it; an end that is null is open."""

    low: JsonValue | None = None
    high: JsonValue | None = None
    closed: Closed = "both"


class Members(StrictModel):
    """Any of several values."""

    values: list[JsonValue] = Field(alias="in", min_length=1, max_length=1000, examples=[["Rome", "Bari"]])


class Beside(StrictModel):
    """What is beside the axis of a column: missing, unreadable, out of bounds, or no declared label."""

    cell: Literal["null", "invalid", "below", "above", "other"] = Field(alias="is")


Pair: TypeAlias = Annotated[
    list[JsonValue | None],
    Field(
        min_length=2, max_length=2, description="from a value to another, both included; null is an open end"
    ),
]


class Opposite(StrictModel):
    """What does not meet a condition; a row without a value meets neither that nor its opposite."""

    condition: JsonValue | Pair | Between | Members | Beside = Field(alias="not", examples=["Rome"])


JsonCondition: TypeAlias = JsonValue | Pair | Between | Members | Beside | Opposite
AnyWhere: TypeAlias = str | dict[str, JsonCondition]


def parse_any_conditions(where: AnyWhere, half_spaces: list[HalfSpaceText] | None = None) -> Where:
    """Conditions from text or from JSON; a half-space, which only text may have, goes in the list, if any."""
    if isinstance(where, str):
        return parse_where(where, half_spaces) if where.strip() else {}
    return {column: _condition(cell) for column, cell in where.items()}


def _condition(cell: JsonCondition) -> object:
    match cell:
        case [low, high]:
            return Range(_to_text(low), _to_text(high))
        case Between(low=low, high=high, closed=closed):
            return Range(_to_text(low), _to_text(high), closed)
        case Members(values=values):
            return OneOf(tuple(map(_to_text, values)))
        case Beside(cell=special):
            return Special.named(special)
        case Opposite(condition=condition):
            return Not(_condition(condition))
        case _:
            return _to_text(cell)


def _to_text(value: object) -> Any:
    """A value as text, which a column reads exactly; None, an open end, stays as it is."""
    return value if value is None or isinstance(value, str) else repr(value)


_BINS: Final = 12

_Column: TypeAlias = Annotated[str, Field(min_length=1, max_length=1000)]
Column: TypeAlias = Annotated[_Column, Field(description="the name of a column", examples=["age"])]

_TYPES: Final[Mapping[Type, Any]] = {
    Type.COLUMN: _Column,
    Type.SHARE: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)],
    Type.BINS: Annotated[int, Field(ge=1, le=2**20)],
    Type.VALUES: Annotated[list[JsonValue], Field(max_length=4096)],
    Type.CONDITIONS: AnyWhere,
    Type.KEYS: Annotated[list[_Column], Field(min_length=1, max_length=MOST_KEYS)],
    Type.ORDER: Annotated[str, Field(max_length=1000)] | None,
    Type.LIMIT: Annotated[int, Field(ge=1, le=2**20)] | None,
}
"""Parameters in the body of a request; in an address, conditions are text."""


class Bars(StrictModel):
    """How sure error bars are."""

    confidence: float = Field(default=0.95, gt=0, lt=1, description="of the interval, which is a model")
    beta: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        description="how often guaranteed bounds may fail; they are given, as `worst`, only if this is",
    )


class QuestionRequest(Bars):
    """A question to a release, of one kind."""

    kind: ClassVar[QuestionKind]

    def question(self) -> Question:
        """The question, as the library asks it."""
        arguments: dict[str, Any] = {}
        for each in self.kind.parameters:
            if each.type is not Type.HALF_SPACE:
                arguments |= _argument(self.kind, each, getattr(self, each.name))
        return self.kind(**arguments)


class TextAsked(QuestionRequest):
    """Any question, as text."""

    q: str = Field(
        min_length=1,
        description="a question in the language of `partita query`",
        examples=["count where age between 30 and 39"],
    )

    def question(self) -> Question:
        """The question that the text asks."""
        return parse_question(self.q)


def request_model(kind: QuestionKind, *, body: bool) -> type[QuestionRequest]:
    """The model of a kind of question: of the body of a request, or of the parameters of an address."""
    fields = {
        each.name: (_type_of(each, body=body), _field(each))
        for each in kind.parameters
        if each.type is not Type.HALF_SPACE
    }
    name = f"{kind.name.capitalize()}Asked{'Body' if body else 'Text'}"
    model: type[QuestionRequest] = create_model(name, __base__=QuestionRequest, __doc__=kind.help, **fields)  # type: ignore[call-overload]
    model.kind = kind
    return model


def _type_of(parameter: Parameter, *, body: bool) -> Any:
    """The type of an entry; a number that is left out may be null."""
    if parameter.type is Type.CONDITIONS and not body:
        return str
    optional = parameter.type is Type.SHARE and not parameter.required and parameter.default is None
    return _TYPES[parameter.type] | None if optional else _TYPES[parameter.type]


def _field(parameter: Parameter) -> Any:
    shown: dict[str, Any] = {"description": parameter.help} if parameter.help else {}
    if parameter.example is not None:
        shown["examples"] = [parameter.example]
    if parameter.required:
        return Field(**shown)
    match parameter.type:
        case Type.CONDITIONS:
            return Field(default_factory=str, **shown)
        case Type.VALUES:
            return Field(default_factory=list, **shown)
        case Type.BINS:
            return Field(default=_BINS, **shown)
        case Type.SHARE if parameter.default is not None:
            return Field(default=float(parameter.default), **shown)
    return Field(default=parameter.default, **shown)


def _argument(kind: QuestionKind, parameter: Parameter, given: Any) -> dict[str, Any]:
    """An argument as the question has it, and a half-space that stands among conditions."""
    match parameter.type:
        case Type.SHARE if given is not None:
            return {parameter.name: rational(given, parameter.name)}
        case Type.VALUES:
            return {parameter.name: tuple(map(_to_text, given))}
        case Type.KEYS:
            return {parameter.name: check_keys(map(parse_key, given))}
        case Type.ORDER if given is not None:
            return {parameter.name: parse_order(given)}
        case Type.CONDITIONS:
            found: list[HalfSpaceText] = []
            shapes = [each.name for each in kind.having(Type.HALF_SPACE)]
            where = parse_any_conditions(given, found if shapes else None)
            return {parameter.name: where, **dict(zip(shapes, found, strict=False))}
    return {parameter.name: given}


Model = TypeVar("Model", bound=BaseModel)


def read(model: type[Model], given: QueryParams) -> Model:
    """The model that the parameters of an address make, each by its name; lists are repeated."""
    # FastAPI would take longer to read a question than the release takes to answer many.
    entries = {name: given.getlist(name) if _is_list(model, name) else given[name] for name in given}
    try:
        return model.model_validate(entries)
    except ValidationError as error:
        raise RequestValidationError(places(error, "query")) from None


def parameters(model: type[BaseModel]) -> dict[str, Any]:
    """What the document of the API says of a route whose parameters are those of a model."""
    schema = model.model_json_schema()
    required = schema.get("required", ())
    return {
        "parameters": [
            _NAME,
            *(_query(name, each, name in required) for name, each in schema["properties"].items()),
        ]
    }


def places(error: ValidationError, where: str) -> list[Any]:
    """What is wrong and where, never what was sent."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return [{**each, "loc": (where, *each["loc"])} for each in found]


_NAME: dict[str, Any] = {
    "name": "name",
    "in": "path",
    "required": True,
    "description": NAMED,
    "schema": {"type": "string", **PATTERN},
    "example": "people",
}


def _query(name: str, schema: dict[str, Any], required: bool) -> dict[str, Any]:
    shown = {key: value for key, value in schema.items() if key != "description"}
    return {
        "name": name,
        "in": "query",
        "required": required,
        "description": schema.get("description", ""),
        "schema": shown,
    }


def _is_list(model: type[BaseModel], name: str) -> bool:
    field = model.model_fields.get(name)
    return field is not None and get_origin(field.annotation) is list


# ---- answers within the limits of the service ----


@final
@dataclass(frozen=True)
class Answerer:
    """Asks releases questions that the limits allow, and adds error bars to the answers."""

    limits: Limits

    def answer(self, release: Release, question: Question, bars: Bars) -> Record:
        """The record of `partita query`, with the half-width of every bar and what is mostly noise.

        A plain count without guaranteed bounds is the exception: it is what a batch of counts says.
        """
        self._check(release, question)
        if bars.beta is None and _is_plain(question):
            record = _count_alone(release, question, bars.confidence)
        else:
            runner = QueryRunner(release=release, confidence=bars.confidence, beta=bars.beta)
            record = runner.answer(question)
        return add_bars(record, deviations(bars.confidence))

    def answer_entry(self, entry: Entry, question: Question, bars: Bars) -> Record:
        """The same of a release of the catalogue, which learns what it was asked for.

        Refused before anything is done if it would be too much work.
        """
        self._check(entry.opened, question)
        check_work(WorkEstimate(entry.facts).of(question, beta=bars.beta is not None), self.limits)
        record = self.answer(entry.opened, question, bars)
        entry.counted.update(_column(question, bars))
        return record

    def is_small(self, entry: Entry, question: Question, bars: Bars) -> bool:
        """Whether a question is so little work, at most, that it has a lane of its own."""
        predicted = WorkEstimate(entry.facts, at_most=True).of(question, beta=bars.beta is not None)
        return predicted <= self.limits.small_work

    def is_quick(self, entry: Entry, question: Question, bars: Bars) -> bool:
        """Whether an answer is made sooner than a thread is told: a range of one column, not the first."""
        column = _column(question, bars)
        return bool(column) and column <= entry.counted and isinstance(entry.opened.view(*column), View)

    def check_text(self, text: str, parameter: str) -> None:
        """Refuse a text that is longer than any question needs to be."""
        _check_most(parameter, len(text), self.limits.where, "characters")

    def check_points(self, number: int, parameter: str = "bins") -> None:
        """Refuse more bins or values than an answer may have."""
        _check_most(parameter, number, self.limits.points, "points")

    def _check(self, release: Release, question: Question) -> None:
        self.check_points(math.prod(each for each in question.having(Type.BINS) if each is not None))
        if question.kind.having(Type.KEYS):
            number, limit = number_of_groups(release, question), question.having(Type.LIMIT)[0]
            self.check_points(number if limit is None else min(number, limit), "limit")
        for each in question.kind.having(Type.VALUES):
            self.check_points(len(question[each.name]), each.name)
        if question.kind.result is ANSWERS and release.queries is not None:
            _check_most("answers", len(release.queries), self.limits.ranges, "queries")


def add_bars(record: Record, z: float) -> Record:
    """The record with a half-width beside every error; and of a count, whether noise dominates it."""
    rows = {name: [_row(row, z) for row in each] for name, each in record.items() if isinstance(each, list)}
    return {**record, **(_bar(record, z) if "error" in record else {}), **rows}


@lru_cache(maxsize=256)
def deviations(confidence: float) -> float:
    """How many standard errors a bar of this confidence reaches to either side; refused next to 1."""
    return NormalDist().inv_cdf((1 + float(check_probability(confidence, "confidence"))) / 2)


def is_small(value: float, half: float) -> bool:
    """Whether noise dominates a value: its bar is as wide as it is large, or there is none."""
    return not (math.isfinite(value) and math.isfinite(half)) or half >= abs(value)


def _is_plain(question: Question) -> bool:
    """Whether this is a count of ranges and single values only, which batches of counts have, too."""
    if question.kind is not COUNT or question["half_space"] is not None or not question["where"]:
        return False
    where = question["where"]
    return not (isinstance(where, Either) or any(is_fixed(each) for each in where.values()))


def _column(question: Question, bars: Bars) -> set[str]:
    """The one column that a plain count is about; none for all other questions."""
    alone = bars.beta is None and _is_plain(question) and len(question["where"]) == 1
    return set(question["where"]) if alone else set()


def _count_alone(release: Release, question: Question, confidence: float) -> Record:
    """A batch of one count: guaranteed bounds, which were not requested, take longer than all the rest."""
    found = release.counts(question["where"])
    value, error = found.values.item(), found.spread().item()
    half = deviations(confidence) * error
    interval = {"confidence": confidence, "low": max(0.0, value - half), "high": max(0.0, value + half)}
    numbers = {"value": value, "error": error, **basis_record(found)}
    return {"question": str(question), **numbers, "interval": interval}


def _row(row: Mapping[str, Any], z: float) -> Record:
    """A row of a histogram or of answers; shares of a cdf are small at its beginning, and mean it."""
    if "error" not in row:
        return row
    return {**row, **({"half": z * float(row["error"])} if "share" in row else _bar(row, z))}


def _bar(row: Mapping[str, Any], z: float) -> Record:
    half = z * float(row["error"])
    return {"half": half, "small": is_small(float(row["value" if "value" in row else "count"]), half)}


def _check_most(parameter: str, number: int, most: int, what: str) -> None:
    rule = f"must have at most {most:,} {what} here"
    check(number <= most, parameter, rule, given=number, fix="ask for less at once")


# ---- routes ----

Endpoint: TypeAlias = Callable[..., Awaitable[Response]]
AnyRequest = TypeVar("AnyRequest", bound=QuestionRequest)


@final
@dataclass(frozen=True, eq=False)
class Questions:
    """Puts questions to the releases of a catalogue."""

    catalogue: Catalogue
    replies: Replies
    answerer: Answerer

    def by_address(self, model: type[QuestionRequest]) -> Endpoint:
        """Answers what an address asks; the question of a cached answer is not even parsed."""

        async def ask(request: Request) -> Response:
            entry = await self.catalogue.ready(request.path_params["name"])
            asking = cache(lambda: self._check(read(model, request.query_params)))

            def make() -> Record:
                return self.answerer.answer_entry(entry, asking().question(), asking())

            def quick() -> bool:
                return self.answerer.is_quick(entry, asking().question(), asking())

            def small() -> bool:
                return self.answerer.is_small(entry, asking().question(), asking())

            return await self.replies.json(request, entry, make, small=small, quick=quick)

        return ask

    def by_body(self, model: Any) -> Endpoint:
        """Answers what a body asks."""

        async def ask(name: Name, asking: QuestionRequest) -> Response:
            entry = await self.catalogue.ready(name)
            question = self._check(asking).question()
            lane = self.replies.lanes.lane(small=self.answerer.is_small(entry, question, asking))
            body = await lane.run(lambda: encode_json(self.answerer.answer_entry(entry, question, asking)))
            return Response(body, media_type=JSON, headers=NO_STORE)

        ask.__annotations__["asking"] = Annotated[model, Body()]
        return ask

    def _check(self, asking: AnyRequest) -> AnyRequest:
        for parameter, text in asking:
            if isinstance(text, str):
                self.answerer.check_text(text, parameter)
        return asking


def question_routes(catalogue: Catalogue, replies: Replies, answerer: Answerer) -> APIRouter:
    """Addresses for every kind of question, and one for any question as text.

    Kinds whose conditions may be left out can be asked by an address, those with any conditions by a body.
    """
    router = APIRouter(prefix="/releases/{name}", tags=["questions"], responses=ERRORS)
    questions = Questions(catalogue, replies, answerer)
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
