"""CSV and JSON lines. One line is one row, whatever it holds, and a bad line spoils no other row.

A line ends at a line feed; a carriage return before that belongs to the ending, and any
other one to the line. The last line may lack its ending. A byte order mark at the very
start is dropped. A line is readable if it is UTF-8 and at most 1 MiB long.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any, BinaryIO, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from partita.arrays import Ints
from partita.errors import SourceError
from partita.trusted.sources.arrow import UNREADABLE
from partita.trusted.sources.base import Batches, File, locate_columns

Flags: TypeAlias = npt.NDArray[np.bool_]

LONGEST_LINE: Final = 2**20
_BLOCK: Final = 2**22  # bytes read at a time: memory against the cost of each NumPy call
_MARK: Final = b"\xef\xbb\xbf"
_FEED: Final = ord("\n")
_RETURN: Final = ord("\r")
_QUOTE: Final = ord('"')
_WHITE: Final = b" \t\r\n"


@dataclass(frozen=True, eq=False, repr=False)
class LineBlock:
    """Many lines in one block of bytes: where each starts and stops, and whether it is readable."""

    block: bytes
    start: Ints
    stop: Ints
    readable: Flags

    @classmethod
    def of(cls, block: bytes) -> LineBlock:
        """The lines of a block in which every line ends in a line feed."""
        data = np.frombuffer(block, np.uint8)
        feeds = np.flatnonzero(data == _FEED)
        start = np.concatenate([np.zeros(1, np.int64), feeds[:-1] + 1])[: len(feeds)]
        stop = feeds - ((feeds > start) & (data[feeds - 1] == _RETURN))
        return cls(block, start, stop, _decodable(block, start, stop) & (stop - start <= LONGEST_LINE))

    def __len__(self) -> int:
        return len(self.start)

    def __iter__(self) -> Iterator[bytes | None]:
        """The lines themselves, None for one that is not readable."""
        for low, high, readable in zip(
            self.start.tolist(), self.stop.tolist(), self.readable.tolist(), strict=True
        ):
            yield self.block[low:high] if readable else None

    def select(self, which: Flags) -> LineBlock:
        """Some of these lines."""
        return LineBlock(self.block, self.start[which], self.stop[which], self.readable[which])


def blocks(stream: BinaryIO, size: int = _BLOCK) -> Iterator[bytes]:
    """The lines of a file, many at a time, each with its line feed.

    A line that is too long is cut as soon as that is known.
    """
    first = stream.read(len(_MARK))
    rest = b""
    for chunk in chain([b"" if first == _MARK else first], iter(lambda: stream.read(size), b"")):
        whole, feed, rest = (rest + chunk).rpartition(b"\n")
        if feed:
            yield whole + feed
        rest = rest[: LONGEST_LINE + 2]
    if rest:
        yield rest + b"\n"


def _decodable(block: bytes, start: Ints, stop: Ints) -> Flags:
    if _is_text(block):
        return np.ones(len(start), np.bool_)
    pairs = zip(start.tolist(), stop.tolist(), strict=True)
    return np.fromiter((_is_text(block[low:high]) for low, high in pairs), np.bool_, len(start))


def _is_text(data: bytes) -> bool:
    try:
        return data.isascii() or data.decode() is not None
    except UnicodeDecodeError:
        return False


@dataclass(frozen=True)
class Csv:
    """CSV files with the same columns, each with a header line unless `names` are declared.

    Fields are separated by the declared delimiter. A field that starts with a quote ends at the
    next lone quote, which the delimiter or the end of the line must follow; inside, two quotes
    stand for one. A quote elsewhere is an ordinary character. All fields are text, and an
    empty one is null, quoted or not. A line that is not readable, breaks these rules, or has too
    few or too many fields is one row of unreadable cells.
    """

    files: Sequence[File]
    delimiter: str
    names: Sequence[str] | None

    def read(self, columns: Sequence[str]) -> Batches:
        """These columns as text; each file is checked for them first."""
        schema = pa.schema([(name, pa.large_binary()) for name in columns])
        for file in self.files:
            with file.reading() as stream:
                names, _ = self.read_header(file, blocks(stream))
                locate_columns(columns, names, listed=self.names is not None)
        return Batches(schema, self._batches(schema))

    def _batches(self, schema: Any) -> Iterator[Any]:
        for file in self.files:
            for _, batch in self.split_file(file, schema.names):
                yield batch

    def split_file(self, file: File, columns: Sequence[str]) -> Iterator[tuple[LineBlock, Any]]:
        """The lines of a file below its header, many at a time, and these columns of their rows."""
        schema = pa.schema([(name, pa.large_binary()) for name in columns])
        with file.reading() as stream:
            names, rest = self.read_header(file, blocks(stream))
            places = locate_columns(columns, names, listed=self.names is not None)
            for block in rest:
                lines = LineBlock.of(block)
                arrays = split(lines, len(names), places, self.delimiter)
                yield lines, pa.record_batch(arrays, schema=schema)

    def read_header(self, file: File, rest: Iterator[bytes]) -> tuple[list[str], Iterator[bytes]]:
        """The names of the columns, and the blocks of lines below the header."""
        if self.names is not None:
            return list(self.names), rest
        first = next(rest, b"")
        header, _, body = first.partition(b"\n")
        line = next(iter(LineBlock.of(header + b"\n"))) if first else None
        parts = None if line is None else split_fields(line, self.delimiter)
        if parts is None:
            fix = "check encoding and delimiter, or declare header=[...] if there is no such line"
            raise SourceError(file.shown, "must start with a line of column names in UTF-8", fix=fix)
        return [part.decode() for part in parts], chain([body] if body else [], rest)


def split_fields(line: bytes, delimiter: str) -> list[bytes] | None:
    """The fields of one line, or None if a quote is left open or closed too early.

    >>> split_fields(b'1,"a ""b"", c",5" pipe', ",")
    [b'1', b'a "b", c', b'5" pipe']
    >>> split_fields(b'1,"a', ","), split_fields(b'"a"b', ",")
    (None, None)
    """
    field, found, place = _field(delimiter), [], 0
    while match := field.match(line, place):
        quoted, plain = match.groups()
        found.append(plain if quoted is None else quoted.replace(b'""', b'"'))
        place = match.end() + 1
        if match.end() == len(line):
            return found
    return None


def split(lines: LineBlock, width: int, places: Sequence[int], delimiter: str) -> list[Any]:
    """The columns at these places, of lines that must have `width` fields each.

    Lines in which quotes only enclose whole fields are split many at once, all others one by one.
    """
    start, stop, neat = _split_neat_lines(lines, width, delimiter)
    others = list(chain.from_iterable(_split_line(line, width, delimiter) for line in lines.select(~neat)))
    ends = len(lines.block) + np.cumsum([0, *map(len, others)]).astype(np.int64)
    start[~neat], stop[~neat] = ends[:-1].reshape(-1, width), ends[1:].reshape(-1, width)
    data = np.frombuffer(b"".join([lines.block, *others]), np.uint8)
    return [_gather(data, start[:, place], stop[:, place]) for place in places]


def _split_line(line: bytes | None, width: int, delimiter: str) -> list[bytes]:
    parts = None if line is None else split_fields(line, delimiter)
    return parts if parts is not None and len(parts) == width else [UNREADABLE] * width


@cache
def _field(delimiter: str) -> re.Pattern[bytes]:
    end = b"(?=" + re.escape(delimiter.encode()) + rb"|\Z)"
    plain = b'(?!")[^' + re.escape(delimiter.encode()) + b"]*"
    return re.compile(b'(?:"((?:[^"]|"")*)"|(' + plain + b"))" + end, re.DOTALL)


def _split_neat_lines(lines: LineBlock, width: int, delimiter: str) -> tuple[Ints, Ints, Flags]:
    """Where the fields of each line start and stop, and for which lines that is certain.

    A delimiter separates if the number of quotes before it in its line is even. That is
    right in a line where every field has no quote, or two that enclose it.
    """
    data = np.frombuffer(lines.block, np.uint8)
    quotes = np.flatnonzero(data == _QUOTE)
    cuts = np.flatnonzero(data == ord(delimiter))
    line = np.searchsorted(lines.stop, cuts)
    if len(quotes):
        before = np.searchsorted(quotes, cuts) - np.searchsorted(quotes, lines.start[line])
        cuts, line = cuts[before % 2 == 0], line[before % 2 == 0]
    neat = lines.readable & (np.bincount(line, minlength=len(lines)) == width - 1)
    inner = cuts[neat[line]].reshape(int(neat.sum()), width - 1)
    start, stop = np.zeros((2, len(lines), width), np.int64)
    start[neat] = np.column_stack([lines.start[neat], inner + 1])
    stop[neat] = np.column_stack([inner, lines.stop[neat]])
    if not len(quotes):
        return start, stop, neat
    number = np.searchsorted(quotes, stop) - np.searchsorted(quotes, start)
    enclosed = (number == 2) & (data[start] == _QUOTE) & (data[stop - 1] == _QUOTE)
    return start + enclosed, stop - enclosed, neat & (enclosed | (number == 0)).all(axis=1)


def _gather(data: npt.NDArray[np.uint8], start: Ints, stop: Ints) -> Any:
    """These ranges of bytes as a column, null where they are empty."""
    length = stop - start
    offset = np.concatenate([np.zeros(1, np.int64), np.cumsum(length)])
    place = np.repeat(start - offset[:-1], length) + np.arange(offset[-1])
    present = np.packbits(length > 0, bitorder="little")
    buffers = [pa.py_buffer(part) for part in (present, offset, data[place])]
    return pa.Array.from_buffers(pa.large_binary(), len(length), buffers)


@dataclass(frozen=True)
class JsonLines:
    """Files of JSON lines.

    Text is kept as it is, and numbers as they are written, so that none is rounded; true and
    false are text too. A missing key and null are null. A list or an object in a cell makes
    that cell unreadable, and a line that is not a JSON object all cells of its row. Of a
    repeated key the last one counts.
    """

    files: Sequence[File]

    def read(self, columns: Sequence[str]) -> Batches:
        """These columns as text; there is no header that could lack one."""
        schema = pa.schema([(name, pa.large_binary()) for name in columns])
        return Batches(schema, self._batches(schema))

    def _batches(self, schema: Any) -> Iterator[Any]:
        for file in self.files:
            with file.reading() as stream:
                for block in blocks(stream):
                    rows = [cells_of(line, schema.names) for line in LineBlock.of(block)]
                    columns = [pa.array(column, pa.large_binary()) for column in zip(*rows, strict=True)]
                    yield pa.record_batch(columns, schema=schema)


def cells_of(line: bytes | None, names: Sequence[str]) -> list[bytes | None]:
    r"""The cells of one row; all are unreadable if the line is None.

    >>> cells_of(b'{"a": 1.50, "b": "x", "c": [1]}', ["a", "b", "c", "d"])
    [b'1.50', b'x', b'\xff', None]
    """
    row: object = None
    with suppress(ValueError, RecursionError):
        text = "" if line is None else line.strip(_WHITE).decode()
        row, end = _DECODER.raw_decode(text)
        row = row if end == len(text) else None
    if not isinstance(row, dict):
        return [UNREADABLE] * len(names)
    return [_cell(row.get(name)) for name in names]


def _cell(value: object) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, bool):
        return b"true" if value else b"false"
    return UNREADABLE


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


_DECODER: Final = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_refuse)
