"""The public file of a counter: a header of settings, and one record of fixed size for every closed period.

Each record has a check that depends on all before it, so two files that agree in a record agree in all
earlier ones, and whoever kept a copy can tell if a period was ever published twice.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import Final, NamedTuple, Self, final

from partita.errors import InvalidState, StreamForked
from partita.ledger.file import sync_folder
from partita.streams.base import LARGEST
from partita.streams.durable.clock import moment_of
from partita.streams.durable.files import disk, failed, with_suffix
from partita.streams.durable.settings import Settings
from partita.streams.state import WIDTH

__all__ = ["BLANK", "OUTPUTS", "RECORD", "Output", "OutputsFile", "next_record"]

OUTPUTS: Final = ".outputs"

_MAGIC: Final = b"partita-outputs1"
_HEADER: Final = 1024
_CHECKSUM: Final = 32
_LAYOUT: Final = struct.Struct(f">Q{WIDTH}s16s")
_CHECK: Final = 16
_AT_ONCE: Final = 4096

RECORD: Final = _LAYOUT.size
"""The bytes of a record: the number of the period, the output in units of the granularity, the check."""
BLANK: Final = bytes(RECORD)
"""What a crash of the machine may leave where a record was being written."""


class Output(NamedTuple):
    """What was published for a period: its number, from 1, the output, and when the period ended."""

    period: int
    exact: Fraction
    end: datetime

    @property
    def value(self) -> float:
        """The output as a float."""
        return float(self.exact)


def next_record(before: bytes, period: int, units: int) -> bytes:
    """The record of a period, after the one before it."""
    body = period.to_bytes(8, "big") + units.to_bytes(WIDTH, "big", signed=True)
    return body + hashlib.sha256(before[-_CHECK:] + body).digest()[:_CHECK]


@final
@dataclass(frozen=True)
class OutputsFile:
    """The public file at a path; it is never held open, and anybody may read it at any time."""

    path: Path
    settings: Settings
    granularity: Fraction

    @classmethod
    def read(cls, path: Path) -> Self:
        """The file that somebody wrote here; refused with an `InvalidState` if it is none."""
        with disk(path), open(path, "rb") as file:
            header = file.read(_HEADER)
        body, checksum = header[:-_CHECKSUM], header[-_CHECKSUM:]
        if len(header) < _HEADER or not body.startswith(_MAGIC) or _digest(body) != checksum:
            raise InvalidState("outputs", "must be of a counter", fix="check the path")
        granularity, _, settings = body[len(_MAGIC) :].decode(errors="replace").strip().partition(" ")
        return cls(path, Settings.from_text(settings), _granularity(granularity))

    @property
    def header(self) -> bytes:
        """What the file begins with."""
        text = f"{self.granularity} {self.settings.to_text()}".encode()
        body = _MAGIC + text.ljust(_HEADER - len(_MAGIC) - _CHECKSUM)
        return body + _digest(body)

    def check(self) -> None:
        """Refuse a file that is missing, or of another counter: without it an old state looks like any."""
        if not os.path.lexists(self.path):
            raise StreamForked(
                f"counter file {str(self.path)!r} is missing, and without it nothing tells whether the state "
                "is an old copy; put it there, or pass republish=True if the state is surely the latest"
            )
        if self.read(self.path) != self:
            raise failed(self.path, "belongs to another counter", "move it away")

    def create(self) -> None:
        """Make the file, whole, unless it is there; one of another counter is refused."""
        if os.path.lexists(self.path):
            self.check()
            return
        beside = with_suffix(self.path, f".{os.getpid()}.part")
        with disk(self.path):
            _write_new(beside, self.header)
            os.replace(beside, self.path)
            sync_folder(self.path.parent)

    def record(self, period: int) -> bytes:
        """The record of a period: blank where there is none, or not all of it. The header is record 0."""
        if not period:
            return self.header
        with disk(self.path), open(self.path, "rb") as file:
            file.seek(_place(period))
            record = file.read(RECORD)
        return record if len(record) == RECORD else BLANK

    def write(self, period: int, records: Iterable[bytes]) -> None:
        """Put records after that of a period, and make them durable; nothing stands after them."""
        with disk(self.path), open(self.path, "r+b", buffering=0) as file:
            file.seek(_place(period + 1))
            file.truncate()
            for some in _joined(records):
                _write_all(file.fileno(), some)
            os.fsync(file.fileno())

    def outputs(self, *, since: int = 0) -> Iterator[Output]:
        """All outputs after a period, each checked against the one before."""
        with disk(self.path), open(self.path, "rb") as file:
            before = self.record(since)
            file.seek(_place(since + 1))
            for period in range(since + 1, LARGEST):
                record = file.read(RECORD)
                if len(record) < RECORD or record == BLANK:
                    return
                yield self._output(before, period, record)
                before = record

    def _output(self, before: bytes, period: int, record: bytes) -> Output:
        units = int.from_bytes(record[8:-_CHECK], "big", signed=True)
        if record != next_record(before, period, units):
            raise InvalidState("outputs", "must be as they were written", fix="restore the file")
        return Output(period, units * self.granularity, moment_of(self.settings.schedule.end(period)))


def _place(period: int) -> int:
    return _HEADER + (period - 1) * RECORD


def _digest(body: bytes) -> bytes:
    return hashlib.sha256(body).digest()


def _granularity(text: str) -> Fraction:
    one, _, parts = text.partition("/")
    if one != "1" or not (parts or "1").isdecimal() or not 0 < int(parts or "1") <= LARGEST:
        raise InvalidState("outputs", "must be of a counter", fix="check the path")
    return Fraction(1, int(parts or "1"))


def _joined(records: Iterable[bytes]) -> Iterator[bytes]:
    """Some records at a time."""
    some: list[bytes] = []
    for record in records:
        some.append(record)
        if len(some) == _AT_ONCE:
            yield b"".join(some)
            some = []
    yield b"".join(some)


def _write_new(path: Path, data: bytes) -> None:
    with open(path, "wb", buffering=0) as file:
        _write_all(file.fileno(), data)
        os.fsync(file.fileno())


def _write_all(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]
