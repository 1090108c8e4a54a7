"""Building blocks of the routes: names in addresses, the OpenAPI document, CSV, downloads, an LRU cache."""

from __future__ import annotations

import csv
import io
import re
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Sequence
from itertools import chain
from typing import Annotated, Any, Final, Generic, TypeAlias, TypeVar, final

from fastapi import FastAPI, Path, Response
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from partita.public.records import plain
from partita.service import errors
from partita.service.settings import NAME

# ---- names in addresses ----

NAMED: Final = "the name of the release: that of its file, without .release.parquet"
PATTERN: Final[dict[str, Any]] = {"pattern": f"^{NAME.pattern}$"}

Name: TypeAlias = Annotated[
    str,
    Path(
        description=NAMED,
        examples=["people"],
        json_schema_extra=PATTERN,
    ),
]
"""Any text: a text that is not a valid name gives a 404."""


# ---- the OpenAPI document ----

_COMPONENTS: Final = "#/components/schemas/{model}"
_ERROR: Final = {"$ref": _COMPONENTS.format(model=errors.ErrorBody.__name__)}

ERRORS: Final[dict[int | str, dict[str, Any]]] = {
    status: {"description": error["description"], "content": {"application/json": {"schema": _ERROR}}}
    for status, error in errors.ERRORS.items()
}
"""The errors of every address, as references: building the schema for each of many routes is slow."""


def set_openapi(app: FastAPI, bodies: Sequence[type[BaseModel]]) -> None:
    """Set the OpenAPI document of an app, with the models of bodies that routes parse by themselves."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _build_document(app, bodies)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _build_document(app: FastAPI, bodies: Sequence[type[BaseModel]]) -> dict[str, Any]:
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


# ---- CSV ----

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
_NUMBER: Final = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?(e[+-]?[0-9]+)?", re.IGNORECASE | re.ASCII)


def format_csv(rows: Iterable[Iterable[object]]) -> str:
    r"""Rows as CSV; None is empty, and text that a spreadsheet would read as a formula gets an apostrophe.

    >>> format_csv([("town", "count"), ("=1+2", -3.5), ("-7", None)])
    "town,count\n'=1+2,-3.5\n-7,\n"
    """
    sink = io.StringIO()
    csv.writer(sink, lineterminator="\n").writerows(map(_cells, rows))
    return sink.getvalue()


def _cells(row: Iterable[object]) -> list[object]:
    return [_cell(plain(value)) for value in row]


def _cell(value: object) -> object:
    if not isinstance(value, str) or not value.startswith(_FORMULA) or _NUMBER.fullmatch(value):
        return value
    return f"'{value}"


# ---- files to download ----

JSON: Final = "application/json"
CSV: Final = "text/csv; charset=utf-8"
PARQUET: Final = "application/vnd.apache.parquet"


def file_route(operation: str, summary: str, media_type: str) -> dict[str, Any]:
    """The arguments that declare a route whose response is a file."""
    kind = media_type.partition(";")[0]
    schema = {"type": "string", "format": "binary"} if kind == PARQUET else {"type": "string"}
    return {
        "operation_id": operation,
        "summary": summary,
        "response_class": Response,
        "responses": {200: {"description": summary, "content": {kind: {"schema": schema}}}},
    }


def attachment(name: str) -> dict[str, str]:
    """The header with the name of a download; names of releases have no quotes."""
    return {"Content-Disposition": f'attachment; filename="{name}"'}


def csv_bytes(heads: list[str], rows: Iterable[Iterable[object]]) -> bytes:
    """A table as the bytes of a CSV file."""
    return format_csv(chain([heads], rows)).encode("utf-8", "replace")


# ---- LRU cache ----

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


@final
class LruCache(Generic[Key, Value]):
    """A cache that evicts the least recently used values when their weights exceed `room`.

    >>> cache = LruCache[str, int](room=5)
    >>> for key, weight in [("a", 2), ("b", 2), ("c", 9), ("d", 2)]:
    ...     cache.put(key, 1, weight)
    >>> [cache.get(key) for key in "abcd"]
    [None, 1, None, 1]
    """

    def __init__(self, *, room: int) -> None:
        self._room = room
        self._held = 0
        self._values: OrderedDict[Key, tuple[Value, int]] = OrderedDict()

    def get(self, key: Key) -> Value | None:
        """The value of a key, or None; it becomes the most recently used."""
        found = self._values.get(key)
        if found is None:
            return None
        self._values.move_to_end(key)
        return found[0]

    def put(self, key: Key, value: Value, weight: int) -> None:
        """Store a value, unless its weight alone exceeds the room."""
        self.drop(key)
        if weight > self._room:
            return
        self._values[key] = value, weight
        self._held += weight
        while self._held > self._room:
            self.drop(next(iter(self._values)))

    def drop(self, key: Key) -> None:
        """Remove a value if it is there."""
        _, weight = self._values.pop(key, (None, 0))
        self._held -= weight
