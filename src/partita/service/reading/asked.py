"""What can be asked of a release, as models made from the table of question kinds.

Each kind has two. As parameters of an address, conditions are text in the language of questions. In the body
of a request they may be JSON too. Both are the same question to the release.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, create_model

from partita.asking.grammar import parse_question
from partita.asking.questions import HalfSpace, Parameter, Question, QuestionKind, Type
from partita.exact import rational
from partita.service.reading.cells import AnyWhere, Value, conditions_of, said

__all__ = ["Asked", "Bars", "Column", "TextAsked", "request_model"]

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
