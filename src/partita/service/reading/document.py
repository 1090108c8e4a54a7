"""The document of the API: OpenAPI 3.1, complete, without anything that is loaded from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from partita.service.web import errors

__all__ = ["ERRORS", "document"]

_COMPONENTS: Final = "#/components/schemas/{model}"
_ERROR: Final = {"$ref": _COMPONENTS.format(model=errors.ErrorBody.__name__)}

ERRORS: Final[dict[int | str, dict[str, Any]]] = {
    status: {"description": error["description"], "content": {"application/json": {"schema": _ERROR}}}
    for status, error in errors.ERRORS.items()
}
"""The errors of every address. They name the model and are not made of it: there are many addresses."""


def document(app: FastAPI, bodies: Sequence[type[BaseModel]]) -> None:
    """Have the app describe its routes, and the bodies that some of them read by themselves; made once."""

    def described() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _made(app, bodies)
        return app.openapi_schema

    app.openapi = described  # type: ignore[method-assign]


def _made(app: FastAPI, bodies: Sequence[type[BaseModel]]) -> dict[str, Any]:
    made = get_openapi(
        title=app.title,
        summary=app.summary,
        description=app.description,
        version=app.version,
        openapi_version=app.openapi_version,
        routes=app.routes,
    )
    models: list[type[BaseModel]] = [*bodies, errors.ErrorBody]
    _, schemas = models_json_schema([(body, "validation") for body in models], ref_template=_COMPONENTS)
    made["components"]["schemas"] = schemas["$defs"] | made["components"]["schemas"]
    return made
