"""JSON lines: one line is one row, and a line that is no JSON object spoils itself only.

Text is kept as it is, and numbers as they are written, so that none is rounded; true and
false are text too. A missing key and null are null. A list or an object in a cell makes
that cell unreadable, and a line that is not a JSON object all cells of its row. Of a
repeated key the last one counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from partita.trusted.sources.arrow.keys import UNREADABLE
from partita.trusted.sources.base.files import File
from partita.trusted.sources.base.protocol import Batches
from partita.trusted.sources.text.lines import Lines, blocks

_WHITE: Final = b" \t\r\n"


@dataclass(frozen=True)
class JsonLines:
    """Files of JSON lines."""

    files: Sequence[File]

    def read(self, columns: Sequence[str]) -> Batches:
        """The columns asked for, as text; there is no header that could lack one."""
        schema = pa.schema([(name, pa.large_binary()) for name in columns])
        return Batches(schema, self._batches(schema))

    def _batches(self, schema: Any) -> Iterator[Any]:
        for file in self.files:
            with file.reading() as stream:
                for block in blocks(stream):
                    yield _batch(Lines.of(block), schema)


def cells_of(line: bytes, names: Sequence[str]) -> list[bytes | None]:
    r"""The cells of one row.

    >>> cells_of(b'{"a": 1.50, "b": "x", "c": [1]}', ["a", "b", "c", "d"])
    [b'1.50', b'x', b'\xff', None]
    """
    try:
        text = line.strip(_WHITE).decode()
        row, end = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        return [UNREADABLE] * len(names)
    if end != len(text) or not isinstance(row, dict):
        return [UNREADABLE] * len(names)
    return [_cell(row.get(name)) for name in names]


def _batch(lines: Lines, schema: Any) -> Any:
    unreadable = [UNREADABLE] * len(schema.names)
    names = schema.names
    rows = [cells_of(line, names) if line is not None else unreadable for line in lines]
    columns = [pa.array(column, pa.large_binary()) for column in zip(*rows, strict=True)]
    return pa.record_batch(columns, schema=schema)


def _cell(value: object) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, bool):
        return b"true" if value else b"false"
    return UNREADABLE


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


_DECODER: Final = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_refused)
