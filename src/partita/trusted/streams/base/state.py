"""The state of a counter as bytes: a kind, a version, exact integers and a checksum.

A row of integers takes the same room whatever they are: the size of a state is public.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from partita.errors.errors import InvalidState
from partita.public.streams.terms import WIDTH, misfit

Fields: TypeAlias = Mapping[str, "Sequence[int] | NDArray[np.int64]"]
"""Rows of integers, by name."""

LONGEST: Final = 2**28
"""The bytes of a state are no more than this."""

_MAGIC: Final = b"partita-counter\n"
_CHECKSUM: Final = 32
_LENGTH: Final = 4
_WORD: Final = 8


def pack(kind: str, version: int, fields: Fields) -> bytes:
    """The state of a counter of this kind, in this version of its layout.

    >>> unpack(pack("tree", 1, {"noise": [0, -5, 2**80]}), "tree", 1)
    {'noise': [0, -5, 1208925819614629174706176]}
    """
    body = b"".join([_text(kind), _length(version), *(_row(name, row) for name, row in fields.items())])
    return _MAGIC + body + hashlib.sha256(_MAGIC + body).digest()


def unpack(state: object, kind: str, version: int) -> dict[str, list[int]]:
    """The fields that were packed under this kind and version; anything else is an `InvalidState`."""
    if not isinstance(state, bytes) or not len(_MAGIC) + _CHECKSUM < len(state) <= LONGEST:
        raise InvalidState("state", "must be the bytes that a counter gave", fix="pass counter.state()")
    body, checksum = state[:-_CHECKSUM], state[-_CHECKSUM:]
    if not body.startswith(_MAGIC) or hashlib.sha256(body).digest() != checksum:
        raise _torn()
    reader = _Reader(body[len(_MAGIC) :])
    if (reader.text(), reader.length()) != (kind, version):
        fix = "use its own class"
        raise InvalidState("state", f"must be of a counter {kind!r}, version {version}", fix=fix)
    fields = {}
    while reader.more:
        name = reader.text()
        fields[name] = reader.row()
    return fields


def _torn() -> InvalidState:
    return misfit("be whole")


def _length(length: int) -> bytes:
    return length.to_bytes(_LENGTH, "big")


def _text(text: str) -> bytes:
    return _length(len(text.encode())) + text.encode()


def _row(name: str, row: Sequence[int] | NDArray[np.int64]) -> bytes:
    if isinstance(row, np.ndarray) and row.dtype == np.int64:
        width, data = _WORD, row.astype(">i8").tobytes()
    else:
        width, data = WIDTH, b"".join(int(value).to_bytes(WIDTH, "big", signed=True) for value in row)
    return _text(name) + _length(width) + _length(len(data) // width) + data


class _Reader:
    """Reads what the functions above wrote, in order."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    @property
    def more(self) -> bool:
        return self._at < len(self._data)

    def text(self) -> str:
        return self._taken(self.length()).decode(errors="replace")

    def length(self) -> int:
        return int.from_bytes(self._taken(_LENGTH), "big")

    def row(self) -> list[int]:
        width, count = self.length(), self.length()
        if width not in (_WORD, WIDTH):
            raise _torn()
        data = self._taken(width * count)
        if width == _WORD:
            words: list[int] = np.frombuffer(data, dtype=">i8").tolist()
            return words
        return [int.from_bytes(data[i : i + width], "big", signed=True) for i in range(0, len(data), width)]

    def _taken(self, length: int) -> bytes:
        taken = self._data[self._at : self._at + length]
        if len(taken) < length:
            raise _torn()
        self._at += length
        return taken
