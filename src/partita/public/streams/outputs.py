"""The public file of a counter: a header of settings, and one record of fixed size for every closed period.

A record is the number of the period, the outputs in units of the granularity, one for each key or just one,
and the check.

Each record has a check that depends on all before it, so two files that agree in a record agree in all
earlier ones, and whoever kept a copy can tell if a period was ever published twice. `read_outputs` reads this
file and nothing else.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, Self, TypeAlias, final

from partita.errors.errors import InvalidState, StreamForked
from partita.numbers import integer
from partita.public.streams.settings import Settings, base_path, disk, failed, moment_of, with_suffix
from partita.public.streams.terms import LARGEST, WIDTH
from partita.storage.storage import sync_folder

OUTPUTS: Final = ".outputs"

_MAGIC: Final = b"partita-outputs1"
_FAMILY: Final = b"partita-outputs2"
_HEADER: Final = 1024
_LONGEST_HEADER: Final = 2**21
_CHECKSUM: Final = 32
_NUMBER: Final = 8
_CHECK: Final = 16
_SHORT: Final = re.compile("[0-9]{1,40}")
_AT_ONCE: Final = 4096


class Output(NamedTuple):
    """What was published for a period: its number, from 1, the output, and when the period ended."""

    period: int
    exact: Fraction
    end: datetime

    @property
    def value(self) -> float:
        """The output as a float."""
        return float(self.exact)


class FamilyOutput(NamedTuple):
    """What a family published for a period: its number, the output for each key, and when it ended."""

    period: int
    exact: dict[str, Fraction]
    end: datetime

    @property
    def value(self) -> dict[str, float]:
        """The outputs as floats."""
        return {key: float(exact) for key, exact in self.exact.items()}


AnyOutput: TypeAlias = Output | FamilyOutput


def next_record(before: bytes, period: int, units: Iterable[int]) -> bytes:
    """The record of a period, after the one before it."""
    values = b"".join(each.to_bytes(WIDTH, "big", signed=True) for each in units)
    body = period.to_bytes(_NUMBER, "big") + values
    return body + _check(before, body)


def witness(record: bytes) -> bytes:
    """What stands for a record that is too long to be kept elsewhere: its number and its check."""
    return record[:_NUMBER] + record[-_CHECK:]


def at_once(columns: int) -> int:
    """How many records are held in memory at once, if each has so many outputs."""
    return max(1, _AT_ONCE // columns)


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
            text = _header_text(file)
        granularity, _, settings = text.decode(errors="replace").strip().partition(" ")
        return cls(path, Settings.from_text(settings), _granularity(granularity))

    @cached_property
    def header(self) -> bytes:
        """What the file begins with: 1,024 bytes, or for a family as many times that as its keys need."""
        text = f"{self.granularity} {self.settings.to_text()}".encode()
        if not self.settings.keys:
            return _sealed(_MAGIC, text, _HEADER)
        least = len(_FAMILY) + _NUMBER + len(text) + _CHECKSUM
        size = -(-least // _HEADER) * _HEADER
        return _sealed(_FAMILY + size.to_bytes(_NUMBER, "big"), text, size)

    @property
    def size(self) -> int:
        """The bytes of a record."""
        return _NUMBER + WIDTH * self.settings.columns + _CHECK

    @property
    def blank(self) -> bytes:
        """What a crash of the machine may leave where a record was being written."""
        return bytes(self.size)

    @property
    def closed(self) -> int:
        """How many periods are published, as the size of the file says; a torn record is none.

        No more are torn than are written at once, so that nobody walks through a file of blanks.
        """
        with disk(self.path):
            periods = max(0, os.stat(self.path).st_size - len(self.header)) // self.size
        for closed in range(periods, max(-1, periods - at_once(self.settings.columns) - 2), -1):
            if not closed or _follows(self.record(closed - 1), closed, self.record(closed)):
                return closed
        raise _damaged()

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
            file.seek(self._place(period))
            record = file.read(self.size)
        return record if len(record) == self.size else self.blank

    def write(self, period: int, records: Iterable[bytes]) -> None:
        """Put records after that of a period, and make them durable; nothing stands after them.

        Some are synced before more are written: a power cut tears those that are held at once, and no others.
        """
        with disk(self.path), open(self.path, "r+b", buffering=0) as file:
            file.seek(self._place(period + 1))
            file.truncate()
            rest = iter(records)
            while some := list(islice(rest, at_once(self.settings.columns))):
                _write_all(file.fileno(), b"".join(some))
                os.fsync(file.fileno())

    def outputs(self, *, since: int = 0) -> Iterator[AnyOutput]:
        """All outputs after a period, each checked against the one before.

        A last record that does not follow is one that is being written, or that a power cut has torn: it is
        no output yet. One that others stand after is damage.
        """
        before = self.record(since)
        for period, record in enumerate(self.records(since=since), since + 1):
            if not _follows(before, period, record):
                self._require_torn(period, record)
                return
            yield self._output(period, record)
            before = record

    def records(self, *, since: int) -> Iterator[bytes]:
        """All records after a period, as they are in the file; what is left of one at its end is none."""
        with disk(self.path), open(self.path, "rb") as file:
            file.seek(self._place(since + 1))
            while len(record := file.read(self.size)) == self.size:
                yield record

    def _place(self, period: int) -> int:
        return len(self.header) + (period - 1) * self.size

    def _require_torn(self, period: int, record: bytes) -> None:
        if record != self.blank and self.record(period + 1) != self.blank:
            raise _damaged()

    def _output(self, period: int, record: bytes) -> AnyOutput:
        end, values = moment_of(self.settings.schedule.end(period)), self._values(record[_NUMBER:-_CHECK])
        if self.settings.keys:
            return FamilyOutput(period, dict(zip(self.settings.keys, values, strict=True)), end)
        return Output(period, values[0], end)

    def _values(self, body: bytes) -> list[Fraction]:
        words = (body[place : place + WIDTH] for place in range(0, len(body), WIDTH))
        return [int.from_bytes(word, "big", signed=True) * self.granularity for word in words]


def _header_text(file: BinaryIO) -> bytes:
    """What a header says, if it is whole."""
    header = file.read(_HEADER)
    begin = len(_MAGIC)
    if header.startswith(_FAMILY):
        begin += _NUMBER
        size = int.from_bytes(header[len(_FAMILY) : begin], "big")
        header += file.read(max(0, min(size, _LONGEST_HEADER) - _HEADER))
    body, checksum = header[:-_CHECKSUM], header[-_CHECKSUM:]
    if len(header) < _HEADER or not body.startswith((_MAGIC, _FAMILY)) or _digest(body) != checksum:
        raise InvalidState("outputs", "must be of a counter", fix="check the path")
    return body[begin:]


def _sealed(begin: bytes, text: bytes, size: int) -> bytes:
    """A header of a size: text, blanks, and a checksum."""
    body = begin + text.ljust(size - len(begin) - _CHECKSUM)
    return body + _digest(body)


def _follows(before: bytes, period: int, record: bytes) -> bool:
    """Whether this is a whole record of a period, after the one before it."""
    body, check = record[:-_CHECK], record[-_CHECK:]
    return body[:_NUMBER] == period.to_bytes(_NUMBER, "big") and check == _check(before, body)


def _check(before: bytes, body: bytes) -> bytes:
    """What ties a record to the one before it."""
    return hashlib.sha256(before[-_CHECK:] + body).digest()[:_CHECK]


def _digest(body: bytes) -> bytes:
    return hashlib.sha256(body).digest()


def _granularity(text: str) -> Fraction:
    one, _, parts = text.partition("/")
    written = parts or "1"
    if one != "1" or not _SHORT.fullmatch(written) or not 0 < int(written) <= LARGEST:
        raise InvalidState("outputs", "must be of a counter", fix="check the path")
    return Fraction(1, int(written))


def _damaged() -> InvalidState:
    return InvalidState("outputs", "must be as they were written", fix="restore the file")


def _write_new(path: Path, data: bytes) -> None:
    with open(path, "wb", buffering=0) as file:
        _write_all(file.fileno(), data)
        os.fsync(file.fileno())


def _write_all(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


FilePath: TypeAlias = str | os.PathLike[str]


@final
@dataclass(frozen=True)
class Published:
    """What the public file of a counter or family holds, or some of it."""

    settings: Settings
    outputs: tuple[AnyOutput, ...]


def read_outputs(path: FilePath, *, since: int = 0, limit: int | None = None) -> Published:
    """What was published by the counter or family at a path, from its public file alone.

    All outputs after period `since`, or the last n of them for `since=-n`; no more than `limit`, if there is
    one. Nothing secret is read, and whoever has the counter open is not disturbed.
    """
    base = base_path(path)
    file = OutputsFile.read(base if base.name.endswith(OUTPUTS) else with_suffix(base, OUTPUTS))
    after = integer(since, "since", low=-LARGEST, high=LARGEST)
    begin = after if after >= 0 else max(0, file.closed + after)
    most = LARGEST if limit is None else integer(limit, "limit", low=0, high=LARGEST)
    return Published(file.settings, tuple(islice(file.outputs(since=begin), most)))
