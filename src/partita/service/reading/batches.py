"""Many counts at once, from JSON or from Arrow: the ends of ranges in arrays, and an array of counts back.

In JSON, `where` has for each column arrays of lows and of highs, an array of single values, or one
condition that goes with all:

    {"where": {"age": {"low": [0, 18], "high": [17, 64]}, "town": "Rome"}, "errors": true}

In Arrow, a stream of record batches has the columns `age.low` and `age.high`, or `age` for single values.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeAlias, final

import pyarrow as pa
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, ValidationError, WithJsonSchema
from pydantic_core import from_json, to_json

from partita.answer import Answers
from partita.conditions import Closed, Range
from partita.errors import InvalidParameter
from partita.releases.release import Release
from partita.service.reading.answered import Shown
from partita.service.reading.asked import Cell, conditions_of, places
from partita.service.reading.messages import Rows, plain_table
from partita.service.reading.work import Facts, Predicted
from partita.service.settings import Limits

__all__ = ["Batch", "Counted", "Options", "Task", "arrow_task", "json_task"]

LOW, HIGH = ".low", ".high"

_NO_JSON: Final = {"type": "json_invalid", "loc": ("body",), "msg": "must be JSON, with finite numbers"}
_VALUES: Final = {
    "type": "array",
    "items": {"anyOf": [{"type": kind} for kind in ("number", "string", "null")]},
}
Column: TypeAlias = Annotated[list[Any], WithJsonSchema(_VALUES)]
"""Values of a column, in a row; their domain reads them."""


class Ranges(BaseModel):
    """Ranges of a column: all their low ends and all their high ends; null is an open end."""

    model_config = ConfigDict(extra="forbid")

    low: Column
    high: Column
    closed: Closed = "both"


class Values(BaseModel):
    """Single values of a column."""

    model_config = ConfigDict(extra="forbid")

    values: Column


def _form(asked: object) -> str:
    """In which of its forms a column is asked for: long arrays are not tried as anything else."""
    if not isinstance(asked, dict):
        return "one"
    if "values" in asked:
        return "values"
    return "ranges" if any(isinstance(asked.get(end), list) for end in ("low", "high")) else "one"


AnyForm: TypeAlias = Annotated[
    Annotated[Ranges, Tag("ranges")] | Annotated[Values, Tag("values")] | Annotated[Cell, Tag("one")],
    Discriminator(_form),
]


class Batch(BaseModel):
    """Many counts: arrays of equal lengths for some columns, and conditions that go with all."""

    model_config = ConfigDict(extra="forbid")

    where: dict[str, AnyForm] = Field(
        min_length=1, examples=[{"age": {"low": [0, 18], "high": [17, 64]}, "salary": [50_000, None]}]
    )
    errors: bool = Field(default=False, description="whether to give standard errors too, which takes longer")


class Options(BaseModel):
    """What goes with a body in Arrow."""

    model_config = ConfigDict(extra="forbid")

    where: str = Field(default="", description="with Arrow: conditions on other columns, which go with all")
    errors: bool = Field(default=False, description="with Arrow: whether to give standard errors too")


class Counted(Shown):
    """The counts, in the order of the ranges."""

    values: list[float]
    errors: list[float] | None = Field(default=None, description="standard errors, if they were asked for")


@final
@dataclass(frozen=True)
class Many:
    """Arrays and conditions of some columns, as a release takes them."""

    where: Mapping[str, object]

    def checked(self, limits: Limits) -> Many:
        """The same, if it has no more ranges than are allowed."""
        if self._rows > limits.ranges:
            raise _too_many(self._rows, limits)
        return self

    def work(self, facts: Facts, *, errors: bool) -> int:
        """The work of counting them, and of their errors; 0 if the release cannot."""
        try:
            return Predicted(facts).rows((), self.where, self._rows, errors=errors)
        except InvalidParameter:
            return 0

    def counts(self, release: Release) -> Answers:
        """How many rows are in each."""
        return release.counts(self.where)

    @property
    def _rows(self) -> int:
        return max((len(array) for value in self.where.values() for array in _arrays(value)), default=1)


@final
@dataclass(frozen=True)
class Task:
    """A batch that was read: how much work it is, and what does it."""

    work: int
    make: Callable[[], bytes]


def json_task(facts: Facts, body: bytes, limits: Limits) -> Task:
    """The counts that a body in JSON asks for, as JSON."""
    try:
        batch = Batch.model_validate(from_json(body, allow_inf_nan=False))
    except ValidationError as error:
        raise RequestValidationError(places(error, "body")) from None
    except ValueError:
        raise RequestValidationError([_NO_JSON]) from None
    many = _many(batch).checked(limits)
    return Task(
        many.work(facts, errors=batch.errors),
        lambda: _written_json(many.counts(facts.release), errors=batch.errors),
    )


def arrow_task(facts: Facts, body: bytes, options: Options, limits: Limits) -> Task:
    """The counts that a body in Arrow asks for, as a stream of one record batch."""
    conditions, release = conditions_of(options.where), facts.release
    ends = _ends(_table(body, limits), release)
    many = Many({**conditions, **ends}).checked(limits)
    return Task(
        many.work(facts, errors=options.errors),
        lambda: _written_arrow(many.counts(release), errors=options.errors),
    )


def _written_json(counts: Answers, *, errors: bool) -> bytes:
    shown = {"errors": counts.error.tolist()} if errors else {}
    return to_json({"values": counts.values.tolist(), **shown}, inf_nan_mode="null")


def _written_arrow(counts: Answers, *, errors: bool) -> bytes:
    columns = {"value": counts.values, **({"error": counts.error} if errors else {})}
    sink = pa.BufferOutputStream()
    batch = pa.record_batch(columns)
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def _many(batch: Batch) -> Many:
    where: dict[str, object] = {}
    for column, asked in batch.where.items():
        if isinstance(asked, Ranges):
            where[column] = Range(_column(asked.low), _column(asked.high), asked.closed)
        elif isinstance(asked, Values):
            where[column] = _column(asked.values)
        else:
            where |= conditions_of({column: asked})
    return Many(where)


def _column(values: list[Any]) -> object:
    """The values as an Arrow array, which is read fast; as they are where they have no type in common."""
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError):
        return values


def _table(body: bytes, limits: Limits) -> pa.Table:
    try:
        return plain_table(body, most=limits.ranges)
    except Rows as rows:
        raise _too_many(rows.args[0], limits) from None
    except (pa.ArrowException, OSError, ValueError, struct.error):
        raise _no_stream("other bytes") from None


def _ends(table: pa.Table, release: Release) -> dict[str, object]:
    """The arrays of each column that the fields of a table name."""
    names = table.column_names
    if len(set(names)) < len(names):
        raise _no_stream("a field twice")
    single = {name: table[name].combine_chunks() for name in names if name in release.columns}
    others = [name for name in names if name not in single]
    ranges = dict.fromkeys(name.removesuffix(LOW).removesuffix(HIGH) for name in others)
    if set(others) != {column + end for column in ranges for end in (LOW, HIGH)}:
        raise _no_stream("other fields")
    return single | {
        column: tuple(table[column + end].combine_chunks() for end in (LOW, HIGH)) for column in ranges
    }


def _arrays(value: object) -> list[Any]:
    """The arrays in what is asked of a column."""
    if isinstance(value, Range):
        value = value.low, value.high
    parts = value if isinstance(value, tuple) else (value,)
    return [part for part in parts if isinstance(part, list | pa.Array)]


def _too_many(given: int, limits: Limits) -> InvalidParameter:
    rule = f"must have at most {limits.ranges:,} ranges"
    return InvalidParameter("where", rule, given=given, fix="send several batches")


def _no_stream(given: str) -> InvalidParameter:
    return InvalidParameter(
        "body",
        "must be an Arrow stream with fields like age.low and age.high, or age",
        given=given,
        fix="write it with pyarrow.ipc.new_stream, uncompressed, with columns of numbers, text or times",
    )
