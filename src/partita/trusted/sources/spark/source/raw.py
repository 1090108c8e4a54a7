"""Columns of a DataFrame as every engine groups them, known by place and not by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import pyarrow as pa
from pyarrow import types
from pyspark.sql import functions as sf

from partita.errors.errors import SourceError
from partita.trusted.sources.arrow.keys import UNREADABLE
from partita.trusted.sources.base.names import positions
from partita.trusted.sources.spark.session.session import Frame, numbered
from partita.trusted.sources.tally.bounding import people

PERSON: Final = "person"
"""The column that tells persons apart: null where there is no id."""


@final
@dataclass(frozen=True, eq=False)
class Raw:
    """Some columns of a DataFrame, as k0, k1 and so on.

    Text is grouped by its bytes, whatever its collation. Spark itself makes one of all zeros, and of all NaN.
    """

    frame: Frame
    names: tuple[str, ...]
    kinds: tuple[Any, ...]

    @staticmethod
    def of(frame: Frame, names: Sequence[str]) -> Raw:
        """The columns asked for; one that is not there, or of no use, is a SourceError."""
        fields = [frame.schema.fields[place] for place in positions(names, frame.columns)]
        kinds = tuple(_wide_type(field.dataType, field.name) for field in fields)
        columns = numbered(frame, names)
        plain = [_plain(columns[f"k{place}"], kind).alias(f"k{place}") for place, kind in enumerate(kinds)]
        return Raw(columns.select(plain), tuple(names), kinds)

    @property
    def keys(self) -> list[str]:
        """What the columns are called on the cluster."""
        return [f"k{number}" for number in range(len(self.names))]

    def grouped(self) -> Frame:
        """Each combination of values once, and how many rows have it."""
        return self.frame.groupBy(self.keys).agg(sf.count(sf.lit(1)).alias("rows"))

    def as_bytes(self) -> Frame:
        """The same rows, each value as the bytes of its text."""
        plain = [self.frame[key] for key in self.keys]
        texts = [
            column if types.is_large_binary(kind) else column.cast("string").cast("binary")
            for column, kind in zip(plain, self.kinds, strict=True)
        ]
        return self.frame.select([text.alias(key) for text, key in zip(texts, self.keys, strict=True)])

    def require_ids(self, name: str) -> None:
        """Refuse a column that cannot tell persons apart."""
        people(pa.chunked_array([[]], self.kinds[self.names.index(name)]), name)

    def by_person(self, person: str, *, parts: int) -> Frame:
        """The same, with all rows of a person in one partition, one after another."""
        self.require_ids(person)
        place = self.names.index(person)
        key = _identity(self.grouped()[f"k{place}"], self.kinds[place])
        apart = self.grouped().withColumn(PERSON, key)
        return apart.repartition(parts, PERSON).sortWithinPartitions(PERSON)


_WIDE: Final = {
    "boolean": pa.bool_(),
    **dict.fromkeys(("byte", "short", "integer", "long"), pa.int64()),
    **dict.fromkeys(("float", "double"), pa.float64()),
    **dict.fromkeys(("string", "varchar", "char", "binary", "void"), pa.large_binary()),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
"""The type that a column of each type of Spark has in a grouped count."""


def _wide_type(kind: Any, name: str) -> Any:
    found = pa.decimal128(38, kind.scale) if kind.typeName() == "decimal" else _WIDE.get(kind.typeName())
    if found is None:
        fix = "choose another column"
        raise SourceError(f"column {name!r}", "must hold numbers, text, dates or times", fix=fix)
    return found


def _plain(column: Any, kind: Any) -> Any:
    return column.cast("binary") if types.is_large_binary(kind) else column


def _identity(column: Any, kind: Any) -> Any:
    """Null for all that is no id, as `bounding` has it: rows without an id are those of one person."""
    if types.is_large_binary(kind):
        return sf.when(~column.isin(sf.lit(b""), sf.lit(UNREADABLE)), column)
    return sf.when(~sf.isnan(column), column) if types.is_floating(kind) else column
