"""Thrift's compact protocol, read with limits: no input makes it use more time or memory than given.

Parquet writes its footer and the headers of its pages in it. They are read here, in a language that
cannot be made to read beyond a buffer, before any other library sees them.
"""

from __future__ import annotations

from typing import Final, TypeAlias, final

from partita.errors.errors import InvalidRelease

Value: TypeAlias = "bool | int | bytes | list[Value] | Struct"
Struct: TypeAlias = dict[int, Value]

_STOP, _TRUE, _FALSE, _BYTE, _BINARY, _LIST, _STRUCT = 0, 1, 2, 3, 8, 9, 12
_INTEGERS: Final = frozenset({4, 5, 6})
_LONGEST_INTEGER: Final = 10
_LONG_LIST: Final = 15
_DEEPEST: Final = 12


@final
class Thrift:
    """A reader of `data` from `position` on, which yields at most `items` values."""

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
                raise _malformed()
            fields[number] = self._value(head & 15, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Value:
        self._left -= 1
        if self._left < 0 or depth > _DEEPEST:
            raise _malformed()
        if kind in (_TRUE, _FALSE):
            return kind == _TRUE
        if kind in _INTEGERS:
            return self._integer()
        if kind == _BINARY:
            return self._bytes(self._varint())
        if kind == _BYTE:
            return self._byte()
        return self._nested(kind, depth + 1)

    def _nested(self, kind: int, depth: int) -> Value:
        if kind == _STRUCT:
            return self.struct(depth)
        if kind == _LIST:
            return self._list(depth)
        raise _malformed()

    def _list(self, depth: int) -> Value:
        head = self._byte()
        length, kind = head >> 4, head & 15
        if length == _LONG_LIST:
            length = self._varint()
        if kind in (_TRUE, _FALSE):
            return [self._byte() == _TRUE for _ in range(self._affordable(length))]
        return [self._value(kind, depth) for _ in range(self._affordable(length))]

    def _affordable(self, length: int) -> int:
        if length > self._left:
            raise _malformed()
        return length

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
        raise _malformed()

    def _byte(self) -> int:
        return self._bytes(1)[0]

    def _bytes(self, length: int) -> bytes:
        start, self.position = self.position, self.position + length
        if self.position > len(self._data):
            raise _malformed()
        return bytes(self._data[start : self.position])


def _malformed() -> InvalidRelease:
    return InvalidRelease("file", "has a malformed Parquet structure", fix="get a fresh copy of the release")
