"""How a column of PostgreSQL travels: what the server groups by, and the Arrow column it becomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final, final

import pyarrow as pa
import pyarrow.compute as pc

from partita.errors.errors import SourceError
from partita.trusted.sources.arrow.keys import to_engine, wide
from partita.trusted.sources.arrow.python import PYTHON, python_array

_TEXTUAL: Final = ("S", "E")
"""The categories of pg_type for text, citext among it, and for enumerations."""

_DAYS: Final = 10_957
_MICROSECONDS: Final = _DAYS * 86_400 * 10**6
"""From 1970, where we count from, to 2000, where PostgreSQL does."""


@final
@dataclass(frozen=True)
class Kind:
    """One way to travel: to the type `wide`, by an `expression` in which `{}` is the column.

    What is counted from a day in the year 2000 has that day as its `zero`.
    """

    wide: Any
    expression: str = "{}"
    zero: int = 0

    @property
    def engine(self) -> Any:
        """The type in which it is sorted."""
        return to_engine(pa.array([], self.wide)).type

    def column(self, values: Sequence[Any]) -> Any:
        """The values that the server has sent, as they are sorted."""
        if self.wide == PYTHON:
            return to_engine(python_array(list(values)))
        if self.zero:
            return pc.add(pa.array(values, pa.int64()), self.zero)
        return wide(pa.array(values, self.wide), "")


def kind_of(code: int, category: str | None, name: str) -> Kind:
    """How a column of this type travels; what is no single value is refused."""
    if code in _KINDS:
        return _KINDS[code]
    if category in _TEXTUAL:
        return _TEXT
    rule = "must hold numbers, text, dates or times, and not another type of PostgreSQL's"
    raise SourceError(f"column {name!r}", rule, fix="choose another column, or cast it in a query")


def register(psycopg: ModuleType, connection: Any) -> None:
    """Take text as its bytes, and days and times as their integers: Python's own end with the year 9999."""

    class Raw(psycopg.adapt.Loader):  # type: ignore[misc, name-defined]
        format = psycopg.pq.Format.BINARY

        def load(self, data: Any) -> bytes:
            return bytes(data)

    class Whole(psycopg.adapt.Loader):  # type: ignore[misc, name-defined]
        format = psycopg.pq.Format.BINARY

        def load(self, data: Any) -> int:
            return int.from_bytes(data, "big", signed=True)

    connection.adapters.register_loader("text", Raw)
    for name in ("date", "timestamp", "timestamptz"):
        connection.adapters.register_loader(name, Whole)


def _finite(kind: str, first: str, last: str) -> str:
    """A column in which what is infinite, or further away than Arrow can count, is moved to the edge."""
    return (
        f"CASE WHEN {{0}} > '{last}'::{kind} THEN '{last}'::{kind} "
        f"WHEN {{0}} < '{first}'::{kind} THEN '{first}'::{kind} ELSE {{0}} END"
    )


def _timed(kind: str, zone: str | None) -> Kind:
    edges = _finite(kind, "4713-01-02 00:00:00 BC", "290000-01-01 00:00:00")
    return Kind(pa.timestamp("us", zone), edges, _MICROSECONDS)


_TEXT: Final = Kind(pa.large_binary(), '{}::text COLLATE "C"')

_KINDS: Final = {
    16: Kind(pa.bool_()),
    17: Kind(pa.large_binary()),
    20: Kind(pa.int64()),
    21: Kind(pa.int64()),
    23: Kind(pa.int64()),
    700: Kind(pa.float64(), "{}::float8"),
    701: Kind(pa.float64()),
    1700: Kind(PYTHON, "trim_scale({})"),
    1082: Kind(pa.date32(), _finite("date", "4713-01-02 BC", "5874897-12-31"), _DAYS),
    1114: _timed("timestamp", None),
    1184: _timed("timestamptz", "UTC"),
    2950: _TEXT,
}
"""By the number that a type has in every PostgreSQL."""
