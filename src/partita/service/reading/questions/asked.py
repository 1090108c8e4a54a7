"""What can be asked of a release, as models made from the table of question kinds.

Each kind has two. As parameters of an address, conditions are text in the language of questions. In the body
of a request they may be JSON too. Both are the same question to the release. In JSON a condition is

    42, "Rome"                                  one value
    [30, 39]                                    from 30 to 39, both included; null is an open end
    {"low": 30, "high": 40, "closed": "left"}   a range that says which of its ends belong to it
    {"in": ["Rome", "Bari"]}                    any of these values
    {"is": "null"}                              a special cell

Numbers mean what they are written as, within the precision of JSON; a number as text is exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias, TypeVar, get_origin

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr, ValidationError, create_model
from starlette.datastructures import QueryParams

from partita.domain.base.base import Special
from partita.numbers import rational
from partita.public.conditions import Closed, OneOf, Range
from partita.public.grammar import parse_question, parse_where
from partita.public.questions import HalfSpace, Parameter, Question, QuestionKind, Type
from partita.service.reading.catalogue.http import NAMED, PATTERN

Value: TypeAlias = (
    StrictInt
    | Annotated[float, Field(strict=True, allow_inf_nan=False)]
    | Annotated[StrictStr, Field(max_length=1000)]
)
"""One value of a column: a number, or text as the column is written."""

_MOST_VALUES = 1000


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Between(_Strict):
    """A range that says which of its ends belong to it; an end that is null is open."""

    low: Value | None = None
    high: Value | None = None
    closed: Closed = "both"


class Members(_Strict):
    """Any of several values."""

    values: list[Value] = Field(
        alias="in", min_length=1, max_length=_MOST_VALUES, examples=[["Rome", "Bari"]]
    )


class Beside(_Strict):
    """What is beside the axis of a column: missing, unreadable, out of bounds, or no declared label."""

    cell: Literal["null", "invalid", "below", "above", "other"] = Field(alias="is")


Pair: TypeAlias = Annotated[
    list[Value | None],
    Field(
        min_length=2, max_length=2, description="from a value to another, both included; null is an open end"
    ),
]
Cell: TypeAlias = Value | Pair | Between | Members | Beside
JsonWhere: TypeAlias = dict[str, Cell]
AnyWhere: TypeAlias = str | JsonWhere


def conditions_of(where: AnyWhere, half_spaces: list[HalfSpace] | None = None) -> dict[str, object]:
    """Conditions from text or from JSON; a half-space, which only text may have, goes in the list, if any."""
    if isinstance(where, str):
        return parse_where(where, half_spaces) if where.strip() else {}
    return {column: _condition(cell) for column, cell in where.items()}


def _condition(cell: Cell) -> object:
    match cell:
        case [low, high]:
            return Range(_text(low), _text(high))
        case Between(low=low, high=high, closed=closed):
            return Range(_text(low), _text(high), closed)
        case Members(values=values):
            return OneOf(tuple(map(said, values)))
        case Beside(cell=special):
            return Special.named(special)
        case _:
            return said(cell)


def said(value: object) -> str:
    """A value as text, which a column reads exactly."""
    return value if isinstance(value, str) else repr(value)


def _text(end: object) -> str | None:
    return None if end is None else said(end)


_BINS: Final = 12

_Column: TypeAlias = Annotated[str, Field(min_length=1, max_length=1000)]
Column: TypeAlias = Annotated[_Column, Field(description="the name of a column", examples=["age"])]

_TYPES: Final[Mapping[Type, Any]] = {
    Type.COLUMN: _Column,
    Type.SHARE: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)],
    Type.BINS: Annotated[int, Field(ge=1, le=2**20)],
    Type.VALUES: Annotated[list[Value], Field(max_length=4096)],
    Type.CONDITIONS: AnyWhere,
}
"""Parameters in the body of a request; in an address, conditions are text."""


class Bars(BaseModel):
    """How sure error bars are."""

    model_config = ConfigDict(extra="forbid")

    confidence: float = Field(default=0.95, gt=0, lt=1, description="of the interval, which is a model")
    beta: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        description="how often guaranteed bounds may fail; they are given, as `worst`, only if this is",
    )


class Asked(Bars):
    """A question to a release, of one kind."""

    kind: ClassVar[QuestionKind]

    def question(self) -> Question:
        """The question, as the library asks it."""
        arguments: dict[str, Any] = {}
        for each in self.kind.parameters:
            if each.type is not Type.HALF_SPACE:
                arguments |= _argument(self.kind, each, getattr(self, each.name))
        return self.kind(**arguments)


class TextAsked(Asked):
    """Any question, as text."""

    q: str = Field(
        min_length=1,
        description="a question in the language of `partita query`",
        examples=["count where age between 30 and 39"],
    )

    def question(self) -> Question:
        """The question that the text asks."""
        return parse_question(self.q)


def request_model(kind: QuestionKind, *, body: bool) -> type[Asked]:
    """The model of a kind of question: of the body of a request, or of the parameters of an address."""
    fields = {
        each.name: (str if each.type is Type.CONDITIONS and not body else _TYPES[each.type], _field(each))
        for each in kind.parameters
        if each.type is not Type.HALF_SPACE
    }
    name = f"{kind.name.capitalize()}Asked{'Body' if body else 'Text'}"
    model: type[Asked] = create_model(name, __base__=Asked, __doc__=kind.help, **fields)  # type: ignore[call-overload]
    model.kind = kind
    return model


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
        case Type.SHARE:
            return Field(default=float(parameter.default), **shown)
    return Field(default=parameter.default, **shown)


def _argument(kind: QuestionKind, parameter: Parameter, given: Any) -> dict[str, Any]:
    """An argument as the question has it, and a half-space that stands among conditions."""
    match parameter.type:
        case Type.SHARE:
            return {parameter.name: rational(given, parameter.name)}
        case Type.VALUES:
            return {parameter.name: tuple(map(said, given))}
        case Type.CONDITIONS:
            found: list[HalfSpace] = []
            shapes = [each.name for each in kind.having(Type.HALF_SPACE)]
            where = conditions_of(given, found if shapes else None)
            return {parameter.name: where, **dict(zip(shapes, found, strict=False))}
    return {parameter.name: given}


Model = TypeVar("Model", bound=BaseModel)


# FastAPI could read parameters and show them, and takes longer to read a question than the release takes to
# answer many.


def read(model: type[Model], given: QueryParams) -> Model:
    """The model that the parameters of an address make, each by its name; lists are repeated."""
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
