"""Parameters of an address, by a model: how they are read, and how the document of the API shows them.

FastAPI could do both, and takes longer to read a question than the release takes to answer many.
"""

from __future__ import annotations

from typing import Any, TypeVar, get_origin

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from starlette.datastructures import QueryParams

from partita.service.reading.http import NAMED, PATTERN

__all__ = ["parameters", "places", "read"]

Model = TypeVar("Model", bound=BaseModel)


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
