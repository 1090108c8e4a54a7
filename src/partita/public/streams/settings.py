"""What a durable counter was opened with, and public time: nothing here is secret.

Schedule    whole periods, one after another from a public start; moments are nanoseconds since 1970 in UTC
Settings    public parameters, the same for all the life of a counter
base_path   the paths of a counter's files, and the errors about them
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal, Self, TypeAlias, final, get_args

from partita.errors.errors import InvalidParameter, InvalidState, StreamError
from partita.guarantee.guarantee import Guarantee, positive_epsilon
from partita.numbers import one_of, rational
from partita.public.streams.terms import LARGEST, Terms, horizon_of
from partita.storage.storage import describe_os_error

SECOND: Final = 10**9

_UNITS: Final = {
    "ms": SECOND // 1000,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3600 * SECOND,
    "d": 86_400 * SECOND,
    "w": 604_800 * SECOND,
}
_WRITTEN: Final = re.compile(r"([0-9]{1,9})(ms|[smhdw])")
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


def period_of(period: object) -> int:
    """The length of a period: "30s", "1m", "1h", "1d", "1w", or a number of seconds.

    >>> period_of("1m") == period_of(60) == 60 * SECOND
    True
    """
    written = _WRITTEN.fullmatch(period) if isinstance(period, str) else None
    length = int(written[1]) * _UNITS[written[2]] if written else _seconds(period)
    if not _SHORTEST <= length < LARGEST:
        raise InvalidParameter(
            "period", "must be a millisecond or longer", given=period, fix='pass for example "1m"'
        )
    return length


def nanoseconds(moment: object, name: str) -> int:
    """A moment as people write it: a datetime, ISO 8601 text, or seconds since 1970. No zone means UTC.

    >>> nanoseconds("1970-01-02", "start") == nanoseconds(86_400, "start") == 86_400 * SECOND
    True
    """
    try:
        written = _parsed(moment) if isinstance(moment, str) else moment
        exact = _since_epoch(written) if isinstance(written, date) else _exact(written, name)
    except (ValueError, OverflowError):
        exact = _FARTHEST
    if not -_FARTHEST < exact < _FARTHEST:
        raise InvalidParameter(
            name, "must be a moment", given=moment, fix='pass a datetime or text like "2026-01-31T12:00"'
        )
    return exact


def moment_of(moment: int) -> datetime:
    """Nanoseconds as a datetime in UTC, down to the microsecond; the first or last there is, if beyond.

    >>> moment_of(90 * SECOND).isoformat()
    '1970-01-01T00:01:30+00:00'
    """
    try:
        return _EPOCH + (moment // 1000) * _MICROSECOND
    except OverflowError:
        return (datetime.max if moment > 0 else datetime.min).replace(tzinfo=UTC)


def present(now: object) -> int:
    """The moment that was given; the system's clock if none was."""
    return time.time_ns() if now is None else nanoseconds(now, "now")


def _parsed(text: str) -> datetime | str:
    """Text as a date and time if it is written as one; else it may be a number."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return text


def _seconds(period: object) -> int:
    try:
        return _exact(period, "period")
    except InvalidParameter:
        raise InvalidParameter(
            "period", "must be a length of time", given=period, fix='pass for example "1m"'
        ) from None


def _exact(seconds: object, name: str) -> int:
    return int(Fraction(rational(seconds, name) * SECOND))


def _since_epoch(moment: date) -> int:
    day = moment if isinstance(moment, datetime) else datetime(moment.year, moment.month, moment.day)
    zoned = day if day.tzinfo else day.replace(tzinfo=UTC)
    return (zoned - _EPOCH) // _MICROSECOND * 1000


Level: TypeAlias = Literal["event", "user"]

FAMILY: Final = "family"
"""The mechanism of a counter for each of some keys."""

UNNAMED_FEEDER: Final = "timestamps"
"""The feeder of events with times, if the caller names none."""

_PAN_PRIVATE: Final = "pan-private"
_LONGEST: Final = 900
_LONGEST_KEYS: Final = 2**20
_LONGEST_KEY: Final = 200
_OWN: Final = "counter"


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
        terms = Terms.of(epsilon, change=change, contributions=contributions)
        settings = cls(
            mechanism=mechanism,
            epsilon=str(terms.epsilon),
            period=period_of(period),
            start=start,
            horizon=None if horizon is None else horizon_of(horizon),
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
    def terms(self) -> Terms:
        """Epsilon, and what it is for."""
        return Terms.of(self.epsilon, change=self.change, contributions=self.contributions)

    @property
    def guarantee(self) -> Guarantee:
        """What all outputs together promise."""
        unit: Any = self.unit
        return replace(self.terms.guarantee, unit=unit, intrusions=int(self.pan_private))

    def check_same(self, asked: Settings) -> None:
        """Refuse other parameters than these; the name that a counter has for itself is its own."""
        for name, stored in asdict(self).items():
            given = getattr(asked, name)
            if name != _OWN and given != stored:
                raise InvalidParameter(
                    name,
                    "must be what the counter was opened with",
                    given=given,
                    fix="resume it, or open another path",
                )

    def to_text(self) -> str:
        """All of it as one line of text; a counter says nothing about keys."""
        said = {name: value for name, value in asdict(self).items() if name != "keys" or value}
        return json.dumps(said, sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_text(cls, text: object) -> Self:
        """The settings from where they were stored; anything else is an `InvalidState`."""
        try:
            said = json.loads(str(text))
            stored = cls(**{**said, "keys": tuple(said.get("keys", ()))})
            stored._check_stored()
        except (TypeError, ValueError, AttributeError, RecursionError):
            raise InvalidState("settings", "must be of a counter", fix="check the path") from None
        return stored

    def _check_stored(self) -> None:
        numbers = (self.period, self.start, self.change, self.contributions, self.horizon or 1)
        texts = (self.mechanism, self.epsilon, self.unit, self.counter, self.dataset or "", *self.keys)
        if {type(number) for number in numbers} != {int} or {type(text) for text in texts} != {str}:
            raise ValueError
        if min(self.period, self.change, self.contributions, self.horizon or 1) < 1:
            raise ValueError
        if self.unit not in get_args(Level) or not isinstance(self.options, dict):
            raise ValueError
        if len(set(self.keys)) < len(self.keys) or bool(self.keys) != (self.mechanism == FAMILY):
            raise ValueError
        positive_epsilon(self.epsilon)

    def _check_size(self) -> None:
        short = len(replace(self, keys=()).to_text().encode())
        if short > _LONGEST:
            raise InvalidParameter("options", "must be short", given=short, fix="shorten names and numbers")
        if len(self.to_text().encode()) > _LONGEST_KEYS:
            raise InvalidParameter(
                "keys", "must fit into 2^20 bytes", given=len(self.keys), fix="use several families"
            )


def _unit(unit: Level | None, terms: Terms) -> str:
    """Events where nothing is said and there is one per user; users else."""
    chosen = one_of(unit or terms.guarantee.unit, "unit", get_args(Level))
    if chosen == "event" and terms.contributions > 1:
        raise InvalidParameter("unit", "must be 'user' for several contributions", given=unit, fix="drop it")
    return chosen


def _key(key: object) -> str:
    """A name that can be printed in one line, and typed."""
    if isinstance(key, str) and 0 < len(key) <= _LONGEST_KEY and key.isprintable():
        return key
    raise InvalidParameter(
        "keys", f"must be printable names of up to {_LONGEST_KEY} characters", given=key, fix="rename them"
    )


def _option(value: object, name: str) -> int | str:
    if isinstance(value, (int, str)):
        return value
    if isinstance(value, (float, Fraction)):
        return str(value)
    raise InvalidParameter(name, "must be a number or text", given=value, fix="open it without")


_SECRET: Final = ".db"


def base_path(path: object) -> Path:
    """The name of a counter as a path: "visits" or "visits.db" for visits.db and visits.outputs."""
    if isinstance(path, (str, os.PathLike)):
        text = os.fspath(path)
        if isinstance(text, str) and Path(text).name and "\0" not in text:
            return Path(os.path.realpath(text.removesuffix(_SECRET)))
    raise InvalidParameter(
        "path", "must be the path of a counter", given=path, fix='pass for example "visits"'
    )


def with_suffix(base: Path, suffix: str) -> Path:
    """visits.v2 with .db is visits.v2.db."""
    return base.with_name(base.name + suffix)


@contextmanager
def disk(path: Path) -> Iterator[None]:
    """What the system says about a file, as a `StreamError`."""
    try:
        yield
    except OSError as error:
        raise failed(path, *describe_os_error(error)) from None


def failed(path: Path, rule: str, fix: str) -> StreamError:
    """An error about one file of a counter."""
    return StreamError(f"counter file {str(path)!r} {rule}; {fix}")
