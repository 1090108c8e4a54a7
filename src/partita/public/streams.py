"""The public side of streams: their terms, public time, settings, and the file of their outputs.

CounterTerms   epsilon, what an event may change, and how many events a user has
Schedule       whole periods, one after another from a public start; moments are nanoseconds since 1970 in UTC
Settings       public parameters, the same for all the life of a counter
OutputsFile    the public file of a counter; `read_outputs` reads this file and nothing else
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, NamedTuple, Self, TypeAlias, final, get_args

import numpy as np
from numpy.typing import NDArray

from partita.errors import InvalidParameter, InvalidState, StreamError, StreamForked, check, check_type
from partita.guarantee import Guarantee, Unit, positive_epsilon
from partita.numbers import check_choice, integer, rational
from partita.storage import describe_os_error, sync_folder

WIDTH: Final = 40
"""The bytes of an integer, but for those in arrays of int64, which have 8."""

LARGEST: Final = 2**62
"""A period counts less than this, and there are fewer periods than this."""


@dataclass(frozen=True, kw_only=True)
class CounterTerms:
    """What a counter promises: epsilon for a user of at most `contributions` events.

    An event changes what is counted in one period by at most `change`.

    >>> CounterTerms.of(1, contributions=3).guarantee
    Guarantee(epsilon=1, neighbors=add-remove, unit=user, contributions=3)
    """

    epsilon: Fraction
    change: int
    contributions: int

    @classmethod
    def of(cls, epsilon: object, *, change: object = 1, contributions: object = 1) -> CounterTerms:
        """The terms as people write them, checked."""
        return cls(
            epsilon=positive_epsilon(epsilon),
            change=integer(change, "change", low=1, high=LARGEST),
            contributions=integer(contributions, "contributions", low=1, high=LARGEST),
        )

    @property
    def rate(self) -> Fraction:
        """Epsilon for a change of one in one period."""
        return self.epsilon / (self.change * self.contributions)

    @property
    def guarantee(self) -> Guarantee:
        """The promise for one event, or for one user with several."""
        unit: Unit = "event" if self.contributions == 1 else "user"
        return Guarantee(epsilon=self.epsilon, unit=unit, contributions=self.contributions)

    @property
    def keywords(self) -> dict[str, Any]:
        """The terms as keywords of a counter."""
        return asdict(self)

    def packed(self) -> NDArray[np.int64]:
        """The terms as a row of a state."""
        text = f"{self.epsilon} {self.change} {self.contributions}"
        return np.frombuffer(text.encode(), dtype=np.uint8).astype(np.int64)

    @classmethod
    def unpacked(cls, row: list[int]) -> CounterTerms:
        """The terms from a row of a state; anything else is an `InvalidState`."""
        try:
            epsilon, change, contributions = bytes(row).decode().split()
            return cls.of(epsilon, change=int(change), contributions=int(contributions))
        except (ValueError, InvalidParameter):
            raise invalid_state("hold terms") from None


def check_horizon(horizon: object) -> int:
    """The number of periods of a counter."""
    return integer(horizon, "horizon", low=1, high=LARGEST)


def invalid_state(rule: str) -> InvalidState:
    """The error for a state that is not what it should be."""
    return InvalidState("state", f"must {rule}", fix="restore it from where it was stored")


# ---- public time ----

SECOND: Final = 10**9

_UNITS: Final = {
    "ms": SECOND // 1000,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3600 * SECOND,
    "d": 86_400 * SECOND,
    "w": 604_800 * SECOND,
}
_PERIOD: Final = re.compile(r"([0-9]{1,9})(ms|[smhdw])")
_SHORTEST: Final = SECOND // 1000
_FARTHEST: Final = 2**80
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


@dataclass(frozen=True)
class Schedule:
    """Periods of equal length, numbered from 1.

    >>> schedule = Schedule(start=0, period=60 * SECOND)
    >>> schedule.ended(185 * SECOND), schedule.number(185 * SECOND)
    (3, 4)
    """

    start: int
    period: int

    def ended(self, now: int) -> int:
        """How many periods have ended."""
        return max(0, min((now - self.start) // self.period, LARGEST))

    def number(self, moment: int) -> int:
        """The period that a moment lies in; 0 or less before the start."""
        return (moment - self.start) // self.period + 1

    def end(self, number: int) -> int:
        """When a period ends; the end of period 0 is the start."""
        return self.start + number * self.period


def parse_period(period: object) -> int:
    """The length of a period: "30s", "1m", "1h", "1d", "1w", or a number of seconds.

    >>> parse_period("1m") == parse_period(60) == 60 * SECOND
    True
    """
    fix = 'pass for example "1m"'
    parsed = _PERIOD.fullmatch(period) if isinstance(period, str) else None
    try:
        length = int(parsed[1]) * _UNITS[parsed[2]] if parsed else _exact(period, "period")
    except InvalidParameter:
        raise InvalidParameter("period", "must be a length of time", given=period, fix=fix) from None
    check(_SHORTEST <= length < LARGEST, "period", "must be a millisecond or longer", given=period, fix=fix)
    return length


def nanoseconds(moment: object, name: str) -> int:
    """A moment as people write it: a datetime, ISO 8601 text, or seconds since 1970. No zone means UTC.

    >>> nanoseconds("1970-01-02", "start") == nanoseconds(86_400, "start") == 86_400 * SECOND
    True
    """
    try:
        parsed = _parse_time(moment) if isinstance(moment, str) else moment
        exact = _since_epoch(parsed) if isinstance(parsed, date) else _exact(parsed, name)
    except (ValueError, OverflowError):
        exact = _FARTHEST
    fix = 'pass a datetime or text like "2026-01-31T12:00"'
    check(-_FARTHEST < exact < _FARTHEST, name, "must be a moment", given=moment, fix=fix)
    return exact


def to_datetime(moment: int) -> datetime:
    """Nanoseconds as a datetime in UTC, down to the microsecond; the first or last there is, if beyond.

    >>> to_datetime(90 * SECOND).isoformat()
    '1970-01-01T00:01:30+00:00'
    """
    try:
        return _EPOCH + (moment // 1000) * _MICROSECOND
    except OverflowError:
        return (datetime.max if moment > 0 else datetime.min).replace(tzinfo=UTC)


def parse_now(now: object) -> int:
    """The moment that was given; the system's clock if none was."""
    return time.time_ns() if now is None else nanoseconds(now, "now")


def _parse_time(text: str) -> datetime | str:
    """Text as a date and time if it is one; else it may be a number."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return text


def _exact(seconds: object, name: str) -> int:
    return int(Fraction(rational(seconds, name) * SECOND))


def _since_epoch(moment: date) -> int:
    day = moment if isinstance(moment, datetime) else datetime(moment.year, moment.month, moment.day)
    zoned = day if day.tzinfo else day.replace(tzinfo=UTC)
    return (zoned - _EPOCH) // _MICROSECOND * 1000


# ---- settings ----

Level: TypeAlias = Literal["event", "user"]

FAMILY: Final = "family"
"""The mechanism of a counter for each of some keys."""

UNNAMED_FEEDER: Final = "timestamps"
"""The feeder of events with times, if the caller names none."""

_PAN_PRIVATE: Final = "pan-private"
_LONGEST: Final = 900  # bytes of settings without keys: they fit into the header of an outputs file
_LONGEST_KEYS: Final = 2**20
_LONGEST_KEY: Final = 200


@final
@dataclass(frozen=True, kw_only=True)
class Settings:
    """The public parameters, and the name that the counter has for itself.

    Times are nanoseconds. `unit` says what an event is known by: its feeder and sequence number, or at user
    level a person and an id. `dataset` is what paid for it in a ledger, if one did. A family has `keys`; a
    counter has none.
    """

    mechanism: str
    epsilon: str
    period: int
    start: int
    horizon: int | None
    change: int
    contributions: int
    unit: str
    dataset: str | None
    options: Mapping[str, int | str]
    counter: str
    keys: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        *,
        mechanism: str,
        epsilon: object,
        period: object,
        start: int,
        horizon: object,
        change: object,
        contributions: object,
        unit: Level | None,
        dataset: str | None,
        options: Mapping[str, object],
        counter: str,
        keys: Sequence[str] = (),
    ) -> Self:
        """The parameters as people write them, checked; `counter` is a new name at random."""
        terms = CounterTerms.of(epsilon, change=change, contributions=contributions)
        settings = cls(
            mechanism=mechanism,
            epsilon=str(terms.epsilon),
            period=parse_period(period),
            start=start,
            horizon=None if horizon is None else check_horizon(horizon),
            change=terms.change,
            contributions=terms.contributions,
            unit=_unit(unit, terms),
            dataset=dataset,
            options={name: _option(value, name) for name, value in sorted(options.items())},
            counter=counter,
            keys=tuple(_key(key) for key in keys),
        )
        settings._check_size()
        return settings

    @property
    def schedule(self) -> Schedule:
        """When periods end."""
        return Schedule(self.start, self.period)

    def due(self, now: int) -> int:
        """How many periods have ended, of those that there are."""
        ended = self.schedule.ended(now)
        return ended if self.horizon is None else min(ended, self.horizon)

    @property
    def pan_private(self) -> bool:
        """Whether the state may be looked at once."""
        return self.mechanism == _PAN_PRIVATE

    @property
    def columns(self) -> int:
        """How many counts there are: one for each key, or one."""
        return max(1, len(self.keys))

    @cached_property
    def places(self) -> dict[str, int]:
        """Where each key stands in a record."""
        return {key: place for place, key in enumerate(self.keys)}

    @property
    def terms(self) -> CounterTerms:
        """Epsilon, and what it is for."""
        return CounterTerms.of(self.epsilon, change=self.change, contributions=self.contributions)

    @property
    def guarantee(self) -> Guarantee:
        """What all outputs together promise."""
        unit: Any = self.unit
        return replace(self.terms.guarantee, unit=unit, intrusions=int(self.pan_private))

    def check_same(self, other: Settings) -> None:
        """Raise InvalidParameter for other parameters than these; the name of the counter may differ."""
        rule, fix = "must be what the counter was opened with", "resume it, or open another path"
        for name, stored in asdict(self).items():
            given = getattr(other, name)
            check(name == "counter" or given == stored, name, rule, given=given, fix=fix)

    def to_text(self) -> str:
        """All of it as one line of text; a counter has no entry for keys."""
        entries = {name: value for name, value in asdict(self).items() if name != "keys" or value}
        return json.dumps(entries, sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_text(cls, text: object) -> Self:
        """The settings from where they were stored; anything else is an `InvalidState`."""
        try:
            entries = json.loads(str(text))
            stored = cls(**{**entries, "keys": tuple(entries.get("keys", ()))})
            stored._check_stored()
        except (TypeError, ValueError, AttributeError, RecursionError):
            raise InvalidState("settings", "must be of a counter", fix="check the path") from None
        return stored

    def _check_stored(self) -> None:
        numbers = (self.period, self.start, self.change, self.contributions, self.horizon or 1)
        texts = (self.mechanism, self.epsilon, self.unit, self.counter, self.dataset or "", *self.keys)
        if (
            {type(number) for number in numbers} != {int}
            or {type(text) for text in texts} != {str}
            or min(self.period, self.change, self.contributions, self.horizon or 1) < 1
            or self.unit not in get_args(Level)
            or not isinstance(self.options, dict)
            or len(set(self.keys)) < len(self.keys)
            or bool(self.keys) != (self.mechanism == FAMILY)
        ):
            raise ValueError
        positive_epsilon(self.epsilon)

    def _check_size(self) -> None:
        short = len(replace(self, keys=()).to_text().encode())
        check(short <= _LONGEST, "options", "must be short", given=short, fix="shorten names and numbers")
        rule, fits = "must fit into 2^20 bytes", len(self.to_text().encode()) <= _LONGEST_KEYS
        check(fits, "keys", rule, given=len(self.keys), fix="use several families")


def _unit(unit: Level | None, terms: CounterTerms) -> str:
    """The default is events if a user has one, else users."""
    chosen = check_choice(unit or terms.guarantee.unit, "unit", get_args(Level))
    rule = "must be 'user' for several contributions"
    check(chosen == "user" or terms.contributions == 1, "unit", rule, given=unit, fix="drop it")
    return chosen


def _key(key: object) -> str:
    """A name that can be printed in one line, and typed."""
    rule, fix = f"must be printable names of up to {_LONGEST_KEY} characters", "rename them"
    name: str = check_type(key, str, "keys", rule, fix=fix)
    check(0 < len(name) <= _LONGEST_KEY and name.isprintable(), "keys", rule, given=key, fix=fix)
    return name


def _option(value: object, name: str) -> int | str:
    kinds, rule = (int, str, float, Fraction), "must be a number or text"
    number: Any = check_type(value, kinds, name, rule, fix="open it without")
    return number if isinstance(number, (int, str)) else str(number)


# ---- paths and errors about files ----

_SECRET: Final = ".db"


def base_path(path: object) -> Path:
    """The name of a counter as a path: "visits" or "visits.db" for visits.db and visits.outputs."""
    if isinstance(path, (str, os.PathLike)):
        text = os.fspath(path)
        if isinstance(text, str) and Path(text).name and "\0" not in text:
            return Path(os.path.realpath(text.removesuffix(_SECRET)))
    fix = 'pass for example "visits"'
    raise InvalidParameter("path", "must be the path of a counter", given=path, fix=fix)


def with_suffix(base: Path, suffix: str) -> Path:
    """visits.v2 with .db is visits.v2.db."""
    return base.with_name(base.name + suffix)


@contextmanager
def disk(path: Path) -> Iterator[None]:
    """Raise errors of the operating system about a file as `StreamError`."""
    try:
        yield
    except OSError as error:
        raise file_error(path, *describe_os_error(error)) from None


def file_error(path: Path, rule: str, fix: str) -> StreamError:
    """An error about one file of a counter."""
    return StreamError(f"counter file {str(path)!r} {rule}; {fix}")


# ---- the file of outputs ----

OUTPUTS: Final = ".outputs"

_MAGIC: Final = b"partita-outputs1"
_FAMILY: Final = b"partita-outputs2"
_HEADER: Final = 1024
_LONGEST_HEADER: Final = 2**21
_CHECKSUM: Final = 32
_NUMBER: Final = 8
_CHECK: Final = 16
_SHORT: Final = re.compile("[0-9]{1,40}")
_AT_ONCE: Final = 4096  # outputs that are held in memory, and synced, at once


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
    """The number and the check of a record: short, and different for different records."""
    return record[:_NUMBER] + record[-_CHECK:]


def at_once(columns: int) -> int:
    """How many records are held in memory at once, if each has so many outputs."""
    return max(1, _AT_ONCE // columns)


@final
@dataclass(frozen=True)
class OutputsFile:
    """The public file at a path; it is never held open, and anybody may read it at any time.

    It is a header of settings, and one record of fixed size for every closed period: the number of the
    period, the outputs in units of the granularity, one for each key or just one, and the check. Each check
    depends on all records before it, so two files that agree in a record agree in all earlier ones, and
    a reader with a copy can tell if a period was ever published twice.
    """

    path: Path
    settings: Settings
    granularity: Fraction

    @classmethod
    def read(cls, path: Path) -> Self:
        """The file at a path; raises InvalidState if it is not a file of outputs."""
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

        No more are torn than are written at once, so that the search never walks through a file of blanks.
        """
        with disk(self.path):
            periods = max(0, os.stat(self.path).st_size - len(self.header)) // self.size
        for closed in range(periods, max(-1, periods - at_once(self.settings.columns) - 2), -1):
            if not closed or _follows(self.record(closed - 1), closed, self.record(closed)):
                return closed
        raise _damage_error()

    def check(self) -> None:
        """Refuse a file that is missing, or of another counter: without it an old state looks like any."""
        if not os.path.lexists(self.path):
            raise StreamForked(
                f"counter file {str(self.path)!r} is missing, and without it nothing tells whether the state "
                "is an old copy; put it there, or pass republish=True if the state is surely the latest"
            )
        if self.read(self.path) != self:
            raise file_error(self.path, "belongs to another counter", "move it away")

    def create(self) -> None:
        """Make the file, whole, unless it is there; one of another counter is refused."""
        if os.path.lexists(self.path):
            self.check()
            return
        beside = with_suffix(self.path, f".{os.getpid()}.part")
        with disk(self.path):
            with open(beside, "wb", buffering=0) as file:
                _write_all(file.fileno(), self.header)
                os.fsync(file.fileno())
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
            raise _damage_error()

    def _output(self, period: int, record: bytes) -> AnyOutput:
        end, values = to_datetime(self.settings.schedule.end(period)), self._values(record[_NUMBER:-_CHECK])
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


def _damage_error() -> InvalidState:
    return InvalidState("outputs", "must be as they were written", fix="restore the file")


def _write_all(handle: int, data: bytes) -> None:
    """Write all of it: the system may take a part only."""
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
    one. Nothing secret is read, and a process that has the counter open is not disturbed.
    """
    base = base_path(path)
    file = OutputsFile.read(base if base.name.endswith(OUTPUTS) else with_suffix(base, OUTPUTS))
    after = integer(since, "since", low=-LARGEST, high=LARGEST)
    begin = after if after >= 0 else max(0, file.closed + after)
    most = LARGEST if limit is None else integer(limit, "limit", low=0, high=LARGEST)
    return Published(file.settings, tuple(islice(file.outputs(since=begin), most)))
