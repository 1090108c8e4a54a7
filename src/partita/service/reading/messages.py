"""A stream of Arrow that somebody sent, read without believing it: nothing is unpacked before it is weighed.

A few bytes can say that they are a hundred million rows: compressed buffers, columns of nulls, words of a
dictionary. So the head of every message is read first, which is a FlatBuffer of the format's own schema, and
only plain columns are taken, whose rows need bytes of the body.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

import pyarrow as pa
from pyarrow import types

__all__ = ["Rows", "plain_table"]

_PLAIN: Final[tuple[Callable[[pa.DataType], bool], ...]] = (
    types.is_integer,
    types.is_floating,
    types.is_decimal,
    types.is_string,
    types.is_large_string,
    types.is_boolean,
    types.is_temporal,
)
_HEADER, _LENGTH, _COMPRESSION = 2, 0, 3
"""Places of fields in the tables `Message` and `RecordBatch` of the format."""


class Rows(Exception):
    """There are more rows than may be, so many."""


def plain_table(body: bytes, *, most: int) -> pa.Table:
    """The table that a stream holds; `Rows` if it has more than `most`, a `ValueError` if it is not plain."""
    _weigh(body, most)
    with pa.ipc.open_stream(body) as reader:
        if not all(any(is_plain(field.type) for is_plain in _PLAIN) for field in reader.schema):
            raise ValueError
        table = reader.read_all()
    table.validate(full=True)
    return table


def _weigh(body: bytes, most: int) -> None:
    """Refuse a stream by the heads of its messages alone: a schema, and record batches of so many rows."""
    messages = pa.ipc.MessageReader.open_stream(body)
    schema, *batches = iter(messages)
    if schema.type != "schema":
        raise ValueError
    rows = sum(map(_rows, batches))
    if rows > most:
        raise Rows(rows)


def _rows(message: pa.Message) -> int:
    """How many rows a record batch says that it has; refused if it is compressed, or no record batch."""
    head = message.metadata.to_pybytes()
    batch = _followed(head, _field(head, _followed(head, 0), _HEADER))
    if message.type != "record batch" or _field(head, batch, _COMPRESSION) is not None:
        raise ValueError
    place = _field(head, batch, _LENGTH)
    [rows] = (0,) if place is None else struct.unpack_from("<q", head, place)
    if rows < 0:
        raise ValueError
    return int(rows)


def _field(head: bytes, table: int, number: int) -> int | None:
    """Where a field of a FlatBuffers table stands; None if the table does not have it."""
    entries = table - struct.unpack_from("<i", head, table)[0]
    [size] = struct.unpack_from("<H", head, entries)
    entry = 4 + 2 * number
    [offset] = struct.unpack_from("<H", head, entries + entry) if entry + 2 <= size else (0,)
    return table + offset if offset else None


def _followed(head: bytes, place: int | None) -> int:
    """Where an offset in a FlatBuffer leads to."""
    if place is None:
        raise ValueError
    return int(place + struct.unpack_from("<I", head, place)[0])
