"""Columns described in an argument, or by the schema of a file: names and types, never a value."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, TypeAlias

from partita.cli.spec.spec import COLUMN_KEYS, domain
from partita.errors.checks import check, check_source
from partita.errors.errors import InvalidParameter, SourceError

Entries: TypeAlias = Mapping[str, str | list[str]]
"""What is known about a column: its type, and as many of the type's keys as somebody declared."""

Columns: TypeAlias = Mapping[str, Entries]

_DESCRIBED: Final = re.compile(r"(?P<name>.+?):(?P<type>[a-z]+)(?:\((?P<bounds>.*)\))?", re.DOTALL)
_EXAMPLE: Final = "write for example age:integer(0,120), or name a .parquet or .csv file"


def described(arguments: Sequence[str]) -> dict[str, Entries]:
    """The columns that the arguments describe, in their order.

    >>> described(["age:integer(0,120)", "salary:real"])
    {'age': {'type': 'integer', 'low': '0', 'high': '120'}, 'salary': {'type': 'real'}}
    """
    columns: dict[str, Entries] = {}
    for argument in arguments:
        for name, entries in _columns(argument).items():
            fix = "leave one out"
            check(name not in columns, "schema", "must describe a column once", given=name, fix=fix)
            columns[name] = entries
    return columns


def open_entries(entries: Entries) -> list[str]:
    """The keys that the steward still has to fill in."""
    kind = entries.get("type")
    if not isinstance(kind, str):
        return ["type"]
    return [key for key in COLUMN_KEYS[kind] if key not in entries and key != "zone"]


def _columns(argument: str) -> Columns:
    if Path(argument.lower().removesuffix(".gz")).suffix in _READERS:
        return _of_file(argument)
    match = _DESCRIBED.fullmatch(argument)
    if match is None or not match["name"].isprintable():
        raise InvalidParameter("schema", "must be name:type(bounds) or a file", given=argument, fix=_EXAMPLE)
    entries = {"type": _type(match["type"]), **_bounds(match["type"], match["bounds"])}
    if not open_entries(entries):
        domain(match["name"], entries, where="schema")
    return {match["name"]: entries}


def _type(name: str) -> str:
    if name in COLUMN_KEYS:
        return name
    near = get_close_matches(name, COLUMN_KEYS, n=1)
    fix = f"did you mean {near[0]}?" if near else _EXAMPLE
    raise InvalidParameter("type", f"must be one of {', '.join(COLUMN_KEYS)}", given=name, fix=fix)


def _bounds(kind: str, text: str | None) -> dict[str, str | list[str]]:
    """Bounds in the order of the type's keys, or named as in step=0.01; a category has labels."""
    parts = [part.strip() for part in text.split(",")] if text and text.strip() else []
    if kind == "category":
        return {"labels": parts} if parts else {}
    bounds: dict[str, str | list[str]] = {}
    for place, part in enumerate(parts):
        key, value = _bound(kind, place, part)
        check(key not in bounds, key, "must be given once", given=part, fix="leave one out")
        bounds[key] = value
    return bounds


def _bound(kind: str, place: int, part: str) -> tuple[str, str]:
    keys = COLUMN_KEYS[kind]
    named, separator, value = part.partition("=")
    key = named.strip() if separator else keys[min(place, len(keys) - 1)]
    if key not in keys or place >= len(keys):
        fix = "write them in this order"
        raise InvalidParameter("bounds", f"of {kind} must be {', '.join(keys)}", given=part, fix=fix)
    return key, value.strip() if separator else part


def _of_file(path: str) -> Columns:
    from partita.trusted.sources.base.files import find

    [file, *others] = find(path)
    check_source(not others, file.shown, "must be one file", fix="name one that has the columns of all")
    with file.reading() as stream:
        columns = _READERS[file.extension](stream, file.shown)
    return {name: entries for name, entries in columns.items() if name.isprintable()}


def _of_parquet(stream: Any, shown: str) -> Columns:
    import pyarrow.parquet as pq

    return _of_schema(lambda: pq.read_schema(stream), shown)


def _of_arrow(stream: Any, shown: str) -> Columns:
    import pyarrow as pa

    def schema() -> Any:
        try:
            return pa.ipc.open_file(stream).schema
        except pa.ArrowInvalid:
            stream.seek(0)
            return pa.ipc.open_stream(stream).schema

    return _of_schema(schema, shown)


def _of_schema(read: Any, shown: str) -> Columns:
    from partita.trusted.sources.base.quiet import attempt

    unreadable = SourceError(shown, "must have a schema that can be read", fix="check that it is complete")
    fields = attempt(read, unreadable)
    return {field.name: _of_type(field.type) for field in fields if field.type.num_fields == 0}


def _of_type(arrow: Any) -> Entries:
    """What an Arrow type says by itself: a decimal has its step, a boolean its labels, a clock its zone."""
    import pyarrow as pa

    types = pa.types
    if types.is_boolean(arrow):
        return {"type": "category", "labels": ["false", "true"]}
    if types.is_decimal(arrow) and arrow.scale > 0:
        return {"type": "real", "step": f"1e-{arrow.scale}"}
    if types.is_timestamp(arrow):
        return {"type": "timestamp"} | ({"zone": arrow.tz} if arrow.tz else {})
    tests = {
        "integer": types.is_integer(arrow) or types.is_decimal(arrow),
        "real": types.is_floating(arrow),
        "date": types.is_date(arrow),
    }
    return {"type": next((name for name, fits in tests.items() if fits), "category")}


def _of_csv(stream: Any, shown: str) -> Columns:
    """The names in the first line; text has no types."""
    from partita.trusted.sources.text.csv import fields

    names = fields(stream.readline(2**20).rstrip(b"\r\n").removeprefix(b"\xef\xbb\xbf"), ",")
    if names is None or not all(names):
        raise SourceError(shown, "must start with a line of column names", fix="describe the columns instead")
    return {name.decode(errors="replace"): {} for name in names}


_READERS: Final[Mapping[str, Any]] = {
    ".parquet": _of_parquet,
    ".csv": _of_csv,
    ".arrow": _of_arrow,
    ".feather": _of_arrow,
}
