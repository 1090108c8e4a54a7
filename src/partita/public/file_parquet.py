"""Columns of integers and texts about them, as the bytes of one Parquet file, and back.

Parquet writes its footer and the headers of its pages in Thrift's compact protocol. Both are read here, in a
language that cannot be made to read beyond a buffer, and compared with what the specification announces: one
row, these columns and no others, so many values, so many bytes. Only then are pages unpacked. So a small file
cannot ask for much memory, and a decoder never meets a layout that Partita does not write.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from partita.errors import InvalidRelease
from partita.public.file_entries import LONGEST, FileColumn

if TYPE_CHECKING:
    import pyarrow as pa

# --- Thrift's compact protocol -----------------------------------------------------------------

Value: TypeAlias = "bool | int | bytes | list[Value] | Struct"
Struct: TypeAlias = dict[int, Value]
Kind = TypeVar("Kind")

_STOP, _TRUE, _FALSE, _BYTE, _BINARY, _LIST, _STRUCT = 0, 1, 2, 3, 8, 9, 12
_INTEGERS: Final = frozenset({4, 5, 6})
_LONGEST_INTEGER: Final = 10  # bytes of a varint: 64 bits, seven in each
_LONG_LIST: Final = 15
_DEEPEST: Final = 12  # nested structures: a limit on hostile files


@final
class Thrift:
    """A reader of `data` from `position` on, which yields at most `items` values.

    No input makes it use more time or memory than that.
    """

    def __init__(self, data: memoryview, *, position: int = 0, items: int) -> None:
        self.position = position
        self._data = data
        self._left = items

    def struct(self, depth: int = 0) -> Struct:
        """The fields of a structure by their numbers; a number that comes twice is refused."""
        fields: Struct = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._integer()
            if number in fields:
                raise _structure_error()
            fields[number] = self._value(head & 15, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Value:
        self._left -= 1
        if self._left < 0 or depth > _DEEPEST:
            raise _structure_error()
        if kind in (_TRUE, _FALSE):
            return kind == _TRUE
        if kind in _INTEGERS:
            return self._integer()
        if kind == _BINARY:
            return self._bytes(self._varint())
        if kind == _BYTE:
            return self._byte()
        if kind == _STRUCT:
            return self.struct(depth + 1)
        if kind == _LIST:
            return self._list(depth + 1)
        raise _structure_error()

    def _list(self, depth: int) -> Value:
        head = self._byte()
        length, kind = head >> 4, head & 15
        if length == _LONG_LIST:
            length = self._varint()
        if length > self._left:
            raise _structure_error()
        if kind in (_TRUE, _FALSE):
            return [self._byte() == _TRUE for _ in range(length)]
        return [self._value(kind, depth) for _ in range(length)]

    def _integer(self) -> int:
        """A signed integer, written in zigzag."""
        raw = self._varint()
        return (raw >> 1) ^ -(raw & 1)

    def _varint(self) -> int:
        value = 0
        for place in range(_LONGEST_INTEGER):
            byte = self._byte()
            value |= (byte & 127) << (7 * place)
            if byte < 128:
                return value
        raise _structure_error()

    def _byte(self) -> int:
        return self._bytes(1)[0]

    def _bytes(self, length: int) -> bytes:
        start, self.position = self.position, self.position + length
        if self.position > len(self._data):
            raise _structure_error()
        return bytes(self._data[start : self.position])


def _structure_error() -> InvalidRelease:
    return _refused("has a malformed Parquet structure")


# --- the layout of a file ----------------------------------------------------------------------

_MAGIC: Final = b"PAR1"
_TAIL: Final = len(_MAGIC) + 4
_LONGEST_FOOTER: Final = 2 * LONGEST  # the specification, and as much again for the columns
# Limits on hostile files. They bound time and memory, and releases stay far below.
_MOST_ITEMS: Final = 2**18  # values in a footer
_MOST_PAGES: Final = 2**14  # pages of all columns
_PAGE_ITEMS: Final = 24  # values in the header of a page
_PAGE_BYTES: Final = 1024  # bytes of an unpacked page beside its values
_VALUE_BYTES: Final = 16  # bytes of each value in an unpacked page
_LARGEST_SIZE: Final = 2**40  # any size or length

_INT64, _ZSTD, _RLE, _DELTA, _DATA_PAGE = 2, 6, 3, 5, 0
_REQUIRED, _REPEATED = 0, 2


@final
@dataclass(frozen=True)
class Layout:
    """A file whose footer was read, and not yet believed."""

    data: memoryview
    footer: Struct
    end: int
    """Where pages end and the footer begins."""

    @property
    def metadata(self) -> Mapping[str, bytes]:
        """The texts beside the schema, by key."""
        entries = [_struct(entry) for entry in _list(self.footer, 5)]
        found = {_bytes(entry, 1).decode("latin-1"): _bytes(entry, 2) for entry in entries}
        if len(found) < len(entries):
            raise _refused("has a metadata key twice")
        return found

    def check(self, columns: Sequence[FileColumn]) -> None:
        """Refuse a file that is anything but one row of these columns, as Partita writes them."""
        _same("schema", [_element(_struct(each)) for each in _list(self.footer, 2)], list(_schema(columns)))
        _same("fields of the footer", set(self.footer) - {5, 6, 7}, {1, 2, 3, 4})
        groups = [_struct(group) for group in _list(self.footer, 4)]
        _same("number of rows", [self.footer[3], *(group.get(3) for group in groups)], [1, 1])
        chunks = [_struct(chunk) for chunk in _list(groups[0], 1)]
        _same("number of columns", len(chunks), len(columns))
        self._check_pages([_Chunk.of(chunk, column) for chunk, column in zip(chunks, columns, strict=True)])

    def _check_pages(self, chunks: Sequence[_Chunk]) -> None:
        """Pages lie one after the other from the first byte to the footer."""
        position, pages = len(_MAGIC), 0
        for chunk in chunks:
            _same("place of a column", chunk.start, position)
            if chunk.end > self.end:
                raise _refused("ends inside a column")
            pages += chunk.check(self.data, most=_MOST_PAGES - pages)
            position = chunk.end
        _same("place of the footer", self.end, position)


def layout(data: bytes) -> Layout:
    """The layout of a file that has the marks of Parquet and a footer of sane size."""
    view = memoryview(data)
    if len(data) < _TAIL + len(_MAGIC) or data[: len(_MAGIC)] != _MAGIC or data[-len(_MAGIC) :] != _MAGIC:
        raise InvalidRelease("file", "is not a Parquet file", fix="check the path")
    length = int.from_bytes(data[-_TAIL : -len(_MAGIC)], "little")
    end = len(data) - _TAIL - length
    if end < len(_MAGIC) or length > _LONGEST_FOOTER:
        raise _refused("has a footer of the wrong length")
    reader = Thrift(view[:-_TAIL], position=end, items=_MOST_ITEMS)
    footer = reader.struct()
    _same("end of the footer", reader.position, len(data) - _TAIL)
    return Layout(view, footer, end)


@final
@dataclass(frozen=True)
class _Chunk:
    """The pages of one column."""

    start: int
    end: int
    values: int
    unpacked: int

    @classmethod
    def of(cls, chunk: Struct, column: FileColumn) -> _Chunk:
        _same("fields of a column", set(chunk) - {2}, {3})
        about = _struct(chunk[3])
        _same("fields of a column", set(about) - {13, 16}, {1, 2, 3, 4, 5, 6, 7, 9})
        _same("type of a column", (about[1], about[4]), (_INT64, _ZSTD))
        _same("path of a column", about[3], [column.name.encode(), b"list", b"element"])
        _same("number of values", about[5], max(column.length, 1))
        start, size = _natural(about, 9), _natural(about, 7)
        return cls(start, start + size, _natural(about, 5), _natural(about, 6))

    def check(self, data: memoryview, *, most: int) -> int:
        """How many pages there are; every page header is checked against the footer."""
        values, unpacked, pages = self.values, self.unpacked, 0
        position = self.start
        while position < self.end:
            reader = Thrift(data[: self.end], position=position, items=_PAGE_ITEMS)
            page = _Page.of(reader.struct())
            values, unpacked = values - page.values, unpacked - page.unpacked - (reader.position - position)
            position, pages = reader.position + page.packed, pages + 1
            if pages > most or values < 0:
                raise _refused("has more pages or values than it announces")
        _same("sizes of the pages of a column", (position, values, unpacked), (self.end, 0, 0))
        return pages


@final
@dataclass(frozen=True)
class _Page:
    """What the header of a page says."""

    values: int
    packed: int
    unpacked: int

    @classmethod
    def of(cls, header: Struct) -> _Page:
        _same("fields of a page", set(header), {1, 2, 3, 5})
        about = _struct(header[5])
        _same("fields of a page", set(about) - {5}, {1, 2, 3, 4})
        _same(
            "encoding of a page", [header[1], about[2], about[3], about[4]], [_DATA_PAGE, _DELTA, _RLE, _RLE]
        )
        page = cls(_natural(about, 1), _natural(header, 3), _natural(header, 2))
        if not page.values or page.unpacked > _PAGE_BYTES + _VALUE_BYTES * page.values:
            raise _refused("has a page that is larger than its values")
        return page


def _schema(columns: Sequence[FileColumn]) -> Iterator[tuple[object, ...]]:
    """Every element of the schema as (name, type, repetition, children)."""
    yield b"schema", None, _REQUIRED, len(columns)
    for column in columns:
        yield column.name.encode(), None, _REQUIRED, 1
        yield b"list", None, _REPEATED, 1
        yield b"element", _INT64, _REQUIRED, None


def _element(element: Struct) -> tuple[object, ...]:
    return tuple(element.get(number) for number in (4, 1, 3, 5))


def _same(what: str, found: object, expected: object) -> None:
    if found != expected:
        raise _refused(f"is not laid out as its specification says ({what})")


def _list(struct: Struct, number: int) -> list[Value]:
    return _of_type(struct.get(number, []), list)


def _struct(value: Value) -> Struct:
    return _of_type(value, dict)


def _bytes(struct: Struct, number: int) -> bytes:
    return _of_type(struct.get(number, b""), bytes)


def _of_type(value: Value, kind: type[Kind]) -> Kind:
    if not isinstance(value, kind):
        raise _refused("has a malformed footer")
    return value


def _natural(struct: Struct, number: int) -> int:
    value = struct[number]
    if not isinstance(value, int) or not 0 <= value < _LARGEST_SIZE:
        raise _refused("has a size that no release has")
    return value


def _refused(rule: str) -> InvalidRelease:
    return InvalidRelease("file", rule, fix="get a fresh copy of the release")


# --- writing and reading -----------------------------------------------------------------------


def to_parquet(
    columns: Sequence[FileColumn], values: Sequence[NDArray[Any]], metadata: Mapping[str, bytes]
) -> bytes:
    """One row with one list for each column; a function of what is given, and of nothing else."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = _parquet_schema(columns)
    lists = [_parquet_list(each, field.type) for each, field in zip(values, schema, strict=True)]
    buffer = io.BytesIO()
    with pq.ParquetWriter(
        buffer,
        schema,
        compression="zstd",
        use_dictionary=False,
        column_encoding="DELTA_BINARY_PACKED",
        write_statistics=False,
        store_schema=False,
    ) as writer:
        writer.write_table(pa.Table.from_arrays(lists, schema=schema))
        for key, text in metadata.items():
            writer.add_key_value_metadata({key: text})
    return buffer.getvalue()


def from_parquet(data: bytes, columns: Sequence[FileColumn]) -> list[NDArray[Any]]:
    """The values of each column of a file whose layout was checked.

    What the decoder says about a bad page is not repeated, because it quotes the file.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(pa.BufferReader(data), pre_buffer=False)
        if not file.schema_arrow.remove_metadata().equals(_parquet_schema(columns)):
            raise _undecodable()
        table = file.read(use_threads=False)
        table.validate(full=True)
        return [_values(table.column(index), column) for index, column in enumerate(columns)]
    except (pa.ArrowException, OSError, ValueError, MemoryError):
        raise _undecodable() from None


def _parquet_schema(columns: Sequence[FileColumn]) -> pa.Schema:
    import pyarrow as pa

    def integers(dtype: str) -> pa.DataType:
        return pa.list_(pa.field("element", pa.from_numpy_dtype(np.dtype(dtype)), nullable=False))

    return pa.schema([pa.field(each.name, integers(each.dtype), nullable=False) for each in columns])


def _parquet_list(values: NDArray[Any], kind: pa.DataType) -> pa.ListArray:
    import pyarrow as pa

    offsets = pa.array([0, values.size], pa.int32())
    return pa.ListArray.from_arrays(offsets, pa.array(values, kind.value_type), type=kind)


def _values(chunks: pa.ChunkedArray, column: FileColumn) -> NDArray[Any]:
    """The numbers of the one list of a column."""
    (chunk,) = chunks.chunks
    values: NDArray[Any] = chunk.flatten().to_numpy()
    if len(chunk) != 1 or values.size != column.length:
        raise _undecodable()
    return values


def _undecodable() -> InvalidRelease:
    return _refused("holds other columns than its specification says")
