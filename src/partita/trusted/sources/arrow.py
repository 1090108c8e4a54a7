"""Columns as Arrow arrays: Parquet files, tables and mappings, and the few types that all engines group.

A list of Python values has no declared type. To infer one from its values would let one person's value
change how everybody else's is read, so each value is written as a tag and some bytes on its own, and
read back by itself when a domain encodes it. Engines group the bytes.

    s text   b bytes   t boolean   i integer   f float   q fraction   d decimal
    D day    T time    ! a value that no domain can read

An engine may round time stamps, show whichever zero came first or refuse bytes that are not text. So a
column is first widened to one of the types that `Source.counts` promises, and times travel
through the engine as plain integers.
"""

from __future__ import annotations

import datetime
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any, BinaryIO, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import types

from partita.domain.columns import SECOND, day_and_nanosecond
from partita.errors import SourceError, check_source
from partita.trusted.sources.base import Batches, File, attempt, attempt_each, locate_columns

_MISSING: Final = {"NoneType", "NAType", "NaTType"}
_NO_VALUE: Final[tuple[object, ...]] = ()
_DAYS: Final = ("Y", "M", "W", "D")
_COARSE: Final = ("h", "m", "s")
_FINE: Final = ("ms", "us", "ns")
_DIGITS: Final = 38  # of the widest decimal that all engines have

UNREADABLE: Final = b"\xff"
"""The value of a cell that could not be read: not UTF-8, so every domain finds it invalid, or other."""


class PythonScalar(pa.ExtensionScalar):  # type: ignore[misc]
    """One Python value in a column of tagged bytes."""

    def as_py(self, **options: Any) -> Any:
        del options
        return None if self.value is None else from_bytes(self.value.as_py())


class PythonType(pa.ExtensionType):  # type: ignore[misc]
    """The Arrow type of a column of Python values: tagged bytes."""

    def __init__(self) -> None:
        super().__init__(pa.large_binary(), "partita.python")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: Any, serialized: bytes) -> PythonType:
        return cls()

    def __arrow_ext_scalar_class__(self) -> type[PythonScalar]:
        return PythonScalar


PYTHON: Final = PythonType()


def python_array(values: list[Any]) -> Any:
    """A list of any Python values as a column. None, pandas.NA and NaT are null; no value raises."""
    storage = pa.array([to_bytes(value) for value in values], pa.large_binary())
    return pa.ExtensionArray.from_storage(PYTHON, storage)


def to_bytes(value: object) -> bytes | None:
    """The tagged bytes of a value; equal values of one kind have equal bytes.

    >>> [to_bytes(value) for value in (5, "5", True, None, [5])]
    [b'i5', b's5', b't1', None, b'!']
    """
    try:
        plain: Any = value.item() if isinstance(value, np.generic) else value
        if type(plain).__name__ in _MISSING:
            return None
        for kinds, tag, write in _WRITERS:
            if isinstance(plain, kinds):
                return tag + bytes(write(plain))
        return b"!"
    except Exception:
        return b"!"


def from_bytes(tagged: bytes) -> Any:
    """The value that `to_bytes` wrote; an empty tuple, which no domain reads, if there was none.

    >>> [from_bytes(tagged) for tagged in (b"i5", b"s5", b"q1/3", b"!")]
    [5, '5', Fraction(1, 3), ()]
    """
    return _READERS[tagged[:1]](tagged[1:])


def _float(value: float) -> bytes:
    """Eight bytes, the same for both zeros and for all NaNs."""
    return struct.pack(">d", float("nan") if value != value else float(value) + 0.0)


def _time(value: datetime.datetime) -> bytes:
    moment = value.replace(fold=0) if value.utcoffset() is None else value.astimezone(datetime.UTC)
    return moment.isoformat().encode()


_WRITERS: Final[tuple[tuple[Any, bytes, Any], ...]] = (
    (str, b"s", lambda value: value.encode("utf-8", "surrogatepass")),
    ((bytes, bytearray), b"b", bytes),
    (bool, b"t", lambda value: b"1" if value else b"0"),
    (int, b"i", lambda value: str(Decimal(int(value))).encode()),
    (float, b"f", _float),
    (Fraction, b"q", lambda value: f"{Decimal(value.numerator)}/{Decimal(value.denominator)}".encode()),
    (Decimal, b"d", lambda value: str(value).encode()),
    (datetime.datetime, b"T", _time),
    (datetime.date, b"D", lambda value: value.isoformat().encode()),
)

_READERS: Final[dict[bytes, Any]] = {
    b"s": lambda text: text.decode("utf-8", "surrogatepass"),
    b"b": bytes,
    b"t": lambda text: text == b"1",
    b"i": lambda text: int(Decimal(text.decode())),
    b"f": lambda text: struct.unpack(">d", text)[0],
    b"q": lambda text: Fraction(*(int(Decimal(part)) for part in text.decode().split("/"))),
    b"d": lambda text: Decimal(text.decode()),
    b"T": lambda text: datetime.datetime.fromisoformat(text.decode()),
    b"D": lambda text: datetime.date.fromisoformat(text.decode()),
    b"!": lambda text: _NO_VALUE,
}


# Tables in memory and streams of batches, of any library that speaks the Arrow interface.
@dataclass(frozen=True, repr=False)
class Frame:
    """An object with `__arrow_c_stream__`; a RecordBatchReader can be read only once."""

    data: Any
    _read: list[bool] = field(default_factory=list)

    def read(self, columns: Sequence[str]) -> Batches:
        """These columns, in batches as they come."""
        rule, fix = "can be read once only", "make a new reader, or pass a table"
        check_source(not self._read or not isinstance(self.data, pa.RecordBatchReader), "data", rule, fix=fix)
        reader = attempt(lambda: pa.RecordBatchReader.from_stream(self.data), _no_table())
        places = locate_columns(columns, reader.schema.names)
        self._read.append(True)
        schema = pa.schema([reader.schema.field(place) for place in places])
        return Batches(schema, self._batches(reader, places, schema))

    def _batches(self, reader: Any, places: Sequence[int], schema: Any) -> Iterator[Any]:
        for batch in attempt_each(iter(reader), _no_table()):
            yield pa.record_batch([batch.column(place) for place in places], schema=schema)


def is_lazy(data: object) -> bool:
    """Whether it is a Polars LazyFrame; Polars need not be there."""
    kind = type(data)
    return kind.__module__.partition(".")[0] == "polars" and kind.__name__ == "LazyFrame"


@dataclass(frozen=True, repr=False)
class LazyFrame:
    """A Polars LazyFrame, of which only the columns that are read are computed, each time anew."""

    data: Any

    def read(self, columns: Sequence[str]) -> Batches:
        """These columns, computed by Polars."""
        fix = "collect it by itself to see that error, then pass what it returned"
        refused = SourceError("data", "must be a LazyFrame that can be collected", fix=fix)
        locate_columns(columns, attempt(lambda: self.data.collect_schema().names(), refused))
        return Frame(attempt(lambda: self.data.select(list(columns)).collect(), refused)).read(columns)


@dataclass(frozen=True, repr=False)
class Mapped:
    """A mapping of column names to NumPy arrays, lists or Arrow columns, all of the same length."""

    data: Mapping[str, Any]

    def read(self, columns: Sequence[str]) -> Batches:
        """These columns."""
        locate_columns(columns, list(self.data))
        arrays = {name: to_column(self.data[name], name) for name in columns}
        _check_lengths({**self.data, **arrays})
        table = pa.table(arrays)
        return Batches(table.schema, iter(table.to_batches()))


def to_column(values: Any, name: str) -> Any:
    """A column of a mapping as a pyarrow ChunkedArray or Array: NumPy by its type, lists value by value."""
    refused = SourceError(
        f"column {name!r}", "must be one column of values", fix="pass a NumPy array, a list or an Arrow array"
    )
    if isinstance(values, np.ndarray):
        return attempt(lambda: _from_numpy(values), refused)
    if hasattr(values, "__arrow_c_stream__"):
        return attempt(lambda: pa.chunked_array(values), refused)
    if hasattr(values, "__arrow_c_array__"):
        return attempt(lambda: pa.array(values), refused)
    if isinstance(values, Sequence) and not isinstance(values, (str, bytes, bytearray, memoryview)):
        return python_array(list(values))
    raise refused


def _from_numpy(array: np.ndarray[Any, Any]) -> Any:
    if array.ndim != 1:
        raise ValueError
    if isinstance(array, np.ma.MaskedArray):
        present = pa.array(np.arange(len(array)), mask=np.ma.getmaskarray(array))
        return _from_numpy(np.asarray(array)).take(present)
    match array.dtype.kind:
        case "O" | "T":
            return python_array(array.tolist())
        case "U":
            texts = [text.encode("utf-8", "surrogatepass") for text in array.tolist()]
            return pa.array(texts, pa.large_binary())
        case "M":
            return _moments(array)
        case _:
            return pa.array(array.astype(array.dtype.newbyteorder("=")))


def _moments(array: np.ndarray[Any, Any]) -> Any:
    """Days as dates; hours, minutes and seconds as seconds, moved to the edge if beyond all domains."""
    unit, multiple = np.datetime_data(array.dtype)
    counts, missing = array.astype(array.dtype.newbyteorder("=")).view(np.int64), np.isnat(array)
    if unit in _FINE and multiple == 1:
        return pa.array(counts, pa.timestamp(unit), mask=missing)
    if unit not in (*_DAYS, *_COARSE):
        raise ValueError
    day, nanosecond = day_and_nanosecond(np.where(missing, 0, counts), unit, multiple)
    if unit in _DAYS:
        return pa.array(day.astype(np.int32), pa.int32(), mask=missing).cast(pa.date32())
    return pa.array(day * 86_400 + nanosecond // SECOND, pa.timestamp("s"), mask=missing)


def _check_lengths(columns: Mapping[str, Any]) -> None:
    """Refuse columns of different lengths, whether they are read now or not.

    A column without a length is refused when it is read.
    """
    lengths: dict[str, int] = {}
    for name, column in columns.items():
        with suppress(Exception):
            lengths[name] = len(column)
    first = next(iter(lengths))
    for name, length in lengths.items():
        pair, fix = f"columns {first!r} and {name!r}", "check how they were made"
        check_source(length == lengths[first], pair, "must have the same length", fix=fix)


def _no_table() -> SourceError:
    fix = "give each column one type, for example by writing mixed values as text"
    return SourceError("data", "must be a table that the Arrow interface can carry", fix=fix)


def wide_type(kind: Any, name: str) -> Any:
    """The type that a column of this type has in a grouped count."""
    if kind == PYTHON or types.is_boolean(kind) or types.is_date(kind):
        return kind
    if isinstance(kind, pa.BaseExtensionType):
        return wide_type(kind.storage_type, name)
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return wide_type(kind.value_type, name)
    if types.is_integer(kind):
        return kind if types.is_uint64(kind) else pa.int64()
    if types.is_floating(kind):
        return pa.float64()
    if types.is_decimal(kind) and kind.scale >= 0 and kind.precision <= _DIGITS:
        return pa.decimal128(_DIGITS, kind.scale)
    if types.is_timestamp(kind):
        return pa.timestamp(kind.unit, None if kind.tz is None else "UTC")
    if _is_text(kind) or types.is_decimal(kind) or types.is_null(kind):
        return pa.large_binary()
    # Field names inside a nested type might come from the data, so the type itself is not shown.
    family = "times of day, durations or intervals" if types.is_temporal(kind) else "values of another type"
    family = "lists, structures or maps" if types.is_nested(kind) else family
    rule = f"must hold numbers, text, dates or times, not {family}"
    fix = "choose another column, or take out one field of it first"
    raise SourceError(f"column {name!r}", rule, fix=fix)


def widen(array: Any, name: str) -> Any:
    """The same rows in the type that `wide_type` gives."""
    kind = wide_type(array.type, name)
    if kind == PYTHON:
        return array
    plain = _decode(array)
    if types.is_floating(kind):
        floats = plain.cast(kind)
        # Adding 0.0 turns -0.0 into 0.0; every NaN becomes the same one.
        return pc.if_else(pc.is_nan(floats), pa.scalar(np.nan, pa.float64()), pc.add(floats, 0.0))
    if types.is_decimal(plain.type) and types.is_large_binary(kind):
        return plain.cast(pa.large_string()).cast(kind)
    return plain.cast(kind)


def to_engine(array: Any) -> Any:
    """A wide column as the engine sees it: times as integers, Python values as bytes."""
    if array.type == PYTHON:
        return array.storage
    if types.is_date32(array.type):
        return array.cast(pa.int32()).cast(pa.int64())
    return array.cast(pa.int64()) if types.is_temporal(array.type) else array


def from_engine(array: Any, kind: Any) -> Any:
    """A column that an engine has grouped, in its wide type again."""
    if kind == PYTHON:
        return pa.ExtensionArray.from_storage(PYTHON, array.combine_chunks())
    if types.is_date32(kind):
        return array.cast(pa.int32()).cast(kind)
    return array.cast(kind)


def find_distinct(column: Any) -> tuple[Any, Any]:
    """The distinct values of a wide column, as a domain reads them, and which one each row has."""
    whole = column.combine_chunks()
    coded = to_engine(whole).dictionary_encode(null_encoding="encode")
    values = from_engine(pa.chunked_array([coded.dictionary]), whole.type)
    listed = values.to_pylist() if whole.type == PYTHON else values
    return listed, coded.indices.to_numpy().astype(np.int64)


def sort(table: Any, keys: int) -> Any:
    """A grouped count in the order that `Source.counts` promises, whatever engine counted.

    One column of distinct integers is sorted by NumPy, several times faster; null comes last.
    """
    if keys == 1 and types.is_integer(table.column(0).type):
        order = np.argsort(table.column(0).fill_null(0).to_numpy())
        null = table.column(0).is_null().to_numpy()[order]
        order = np.concatenate([order[~null], order[null]])
    else:
        numbered = table.rename_columns([str(column) for column in range(table.num_columns)])
        order = pc.sort_indices(numbered, [(str(key), "ascending") for key in range(keys)])
    return table.take(order).combine_chunks()


def check_sum(kind: Any, name: str) -> None:
    """Refuse to add up a column that is not of integers."""
    rule = "must hold integers to be added up, because a sum of floats depends on the order of the rows"
    fix = "name it among the keys and weigh its values by their counts"
    check_source(types.is_integer(kind), f"column {name!r}", rule, fix=fix)


def _decode(array: Any) -> Any:
    """The same rows without an extension type, dictionary, run-end encoding or views."""
    if isinstance(array, pa.ExtensionArray):
        return _decode(array.storage)
    if types.is_run_end_encoded(array.type):
        return _decode(pc.run_end_decode(array))
    if types.is_dictionary(array.type):
        values = _decode(array.dictionary)
        # Arrow cannot take rows of string and binary views.
        viewed = types.is_string_view(values.type) or types.is_binary_view(values.type)
        return (values.cast(pa.large_binary()) if viewed else values).take(array.indices)
    return array


def _is_text(kind: Any) -> bool:
    return bool(
        types.is_unicode(kind)
        or types.is_large_unicode(kind)
        or types.is_string_view(kind)
        or types.is_binary(kind)
        or types.is_large_binary(kind)
        or types.is_binary_view(kind)
        or types.is_fixed_size_binary(kind)
    )


@dataclass(frozen=True)
class Parquet:
    """Parquet files that have the same types in the columns that are read, a batch of rows at a time.

    They are never mapped into memory: a file cut short would end the process.
    """

    files: Sequence[File]

    def read(self, columns: Sequence[str]) -> Batches:
        """These columns; files may differ in the width of their numbers only."""
        schemas = [_read_schema(file, columns) for file in self.files]
        for file, schema in zip(self.files, schemas, strict=True):
            for mine, other in zip(schema, schemas[0], strict=True):
                rule = f"must have one type in column {mine.name!r}, not {mine.type} and {other.type}"
                fix = "write the files again with one type"
                check_source(mine.type == other.type, file.shown, rule, fix=fix)
        return Batches(schemas[0], self._batches(schemas[0].names))

    def _batches(self, names: list[str]) -> Iterator[Any]:
        for file in self.files:
            with file.reading() as stream:
                for batch in attempt_each(_read_batches(stream, names), _no_parquet(file)):
                    yield batch.select(names)


def _read_batches(stream: BinaryIO, names: Sequence[str]) -> Iterator[Any]:
    yield from pq.ParquetFile(stream).iter_batches(columns=names, use_threads=False)


def _read_schema(file: File, columns: Sequence[str]) -> Any:
    with file.reading() as stream:
        present = attempt(lambda: pq.read_schema(stream), _no_parquet(file))
    fields = [present.field(place) for place in locate_columns(columns, present.names)]
    return pa.schema([(field.name, wide_type(field.type, field.name)) for field in fields])


def _no_parquet(file: File) -> SourceError:
    fix = "check that it is, and is not encrypted"
    return SourceError(file.shown, "must be a whole Parquet file", fix=fix)
