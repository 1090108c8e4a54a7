"""Tables made by Hypothesis, of every type that engines are known to disagree about.

One thing is left out, because one engine has no room for it: PostgreSQL stores no text with a zero byte.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final, TypeAlias

import pyarrow as pa
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from partita.domain import Category, Date, Domain, Integer, Real, Timestamp

__all__ = ["ARROW", "PERSON", "SCHEMA", "Row", "drawn", "table"]

Row: TypeAlias = tuple[Any, ...]

PERSON: Final = "id"

ARROW: Final = {
    "id": pa.int64(),
    "whole": pa.int64(),
    "narrow": pa.int16(),
    "unsigned": pa.uint64(),
    "real": pa.float64(),
    "single": pa.float32(),
    "price": pa.decimal128(12, 2),
    "large": pa.decimal128(38, 4),
    "born": pa.date32(),
    "seen": pa.timestamp("us"),
    "sent": pa.timestamp("us", "Europe/Rome"),
    "region": pa.dictionary(pa.int32(), pa.string()),
    "word": pa.string(),
    "bytes": pa.binary(),
    "flag": pa.bool_(),
}

SCHEMA: Final[dict[str, Domain]] = {
    "whole": Integer(-3, 120),
    "narrow": Category(["0", "1", "-1"]),
    "unsigned": Integer(2**64 - 2**62, 2**64 - 1),
    "real": Real(-1, 1, step="0.25"),
    "single": Real(-1, 1, step="0.1"),
    "price": Real(0, 100, step="0.5"),
    "large": Real(-(10**12), 10**12, step=10**6),
    "born": Date("1900-01-01", "2030-12-31"),
    "seen": Timestamp("2024-01-01", "2024-12-31", "1h", zone="Europe/Rome"),
    "sent": Timestamp("2024-01-01", "2024-12-31", "1h", zone="Europe/Rome"),
    "region": Category(["north", "south", "caffè"]),
    "word": Category(["a", "A", " a", "é", "e\u0301", "1.5"]),
    "bytes": Category(["a", "é"]),
    "flag": Category(["true", "false"]),
}

_MOMENTS: Final = [
    datetime.datetime(2024, 3, 31, 2, 30),
    datetime.datetime(2024, 10, 27, 2, 30, 59, 999_999),
    datetime.datetime(2024, 10, 27, 0, 30),
    datetime.datetime(1, 1, 1),
    datetime.datetime(1582, 10, 10, 12),
    datetime.datetime(9999, 12, 30),
]
_TEXT: Final = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=3)


def _often(*edges: object, other: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Null and the edges where engines differ, and now and then anything else."""
    return st.sampled_from([None, *edges]) | other


_COLUMNS: Final[dict[str, st.SearchStrategy[Any]]] = {
    "id": st.sampled_from([None, 0, 1, 2, -7, 2**62]),
    "whole": _often(0, -4, 121, 2**63 - 1, -(2**63), other=st.integers(-3, 120)),
    "narrow": _often(0, -1, other=st.integers(-(2**15), 2**15 - 1)),
    "unsigned": _often(0, 2**63, 2**64 - 2**62, 2**64 - 1, other=st.integers(0, 2**64 - 1)),
    "real": _often(float("nan"), 0.0, -0.0, float("inf"), -float("inf"), 0.125, other=st.floats(-1, 1)),
    "single": _often(float("nan"), 0.0, -0.0, 0.05, other=st.floats(-1, 1, width=32)),
    "price": _often(Decimal("0.25"), Decimal("-0.01"), other=st.decimals(0, 120, places=2)),
    "large": _often(Decimal(10) ** 33, other=st.decimals(-(10**13), 10**13, places=4)),
    "born": _often(datetime.date(1, 1, 1), datetime.date(1582, 10, 10), other=st.dates()),
    "seen": _often(
        *_MOMENTS, other=st.datetimes(datetime.datetime(2024, 1, 1), datetime.datetime(2025, 1, 1))
    ),
    "sent": _often(
        *_MOMENTS, other=st.datetimes(datetime.datetime(2024, 1, 1), datetime.datetime(2025, 1, 1))
    ),
    "region": st.sampled_from([None, "north", "caffè", "west"]),
    "word": _often("a", "A", " a", "a ", "é", "e\u0301", "", "1.5", other=_TEXT),
    "bytes": _often(b"a", b"\xff", b"\x00", b"", other=st.binary(max_size=2)),
    "flag": st.sampled_from([None, True, False]),
}


def table(rows: Sequence[Row]) -> Any:
    """Rows as an Arrow table; a moment that was sent is one in UTC, written in the time of Rome."""
    columns = list(zip(*rows, strict=True)) or [() for _ in ARROW]
    return pa.table(
        {
            name: _array(list(values), kind)
            for (name, kind), values in zip(ARROW.items(), columns, strict=True)
        }
    )


def _array(values: list[Any], kind: Any) -> Any:
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pa.array(values, pa.timestamp("us")).cast(pa.int64()).cast(kind)
    return (
        pa.array(values, kind.value_type).dictionary_encode()
        if pa.types.is_dictionary(kind)
        else pa.array(values, kind)
    )


def drawn(examples: int) -> list[list[Row]]:
    """So many lists of rows, the same in every run."""
    found: list[list[Row]] = []

    @settings(max_examples=examples, derandomize=True, database=None, phases=(Phase.generate,), deadline=None)
    @given(st.lists(st.tuples(*_COLUMNS.values()), max_size=20))
    def draw(rows: list[Row]) -> None:
        found.append(rows)

    draw()
    return found
