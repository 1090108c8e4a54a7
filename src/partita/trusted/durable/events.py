"""Events as they are fed: well-formed, or refused before any of them is counted.

An event is known by its feeder and sequence number or key, or by a person and an id, never by an id alone: an
id that two people share would move the counts of both. Events that lie ready with their times are counted by
period first.
"""

from __future__ import annotations

import hashlib
import inspect
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from partita.errors import (
    InvalidData,
    InvalidParameter,
    InvalidState,
    check,
    check_arguments,
    check_data,
    raise_without_cause,
)
from partita.numbers import check_choice, integer
from partita.public.stream_errors import bound_outputs
from partita.public.streams import LARGEST, UNNAMED_FEEDER, Schedule, Settings, disk, nanoseconds, next_record
from partita.trusted.mechanisms.options import Option, options_of_call, read_options
from partita.trusted.noise.system import Noise
from partita.trusted.streams.base import ContinualCounter, counted
from partita.trusted.streams.counter import Counter
from partita.trusted.streams.family import CounterFamily
from partita.trusted.streams.pan_private import PanPrivateCounter
from partita.trusted.streams.sliding import SlidingCounter
from partita.trusted.streams.sparse import SparseCounter
from partita.trusted.streams.tree_counter import TreeCounter

Name: TypeAlias = str | int | bytes | None

Counts: TypeAlias = tuple[tuple[int, int], ...]
"""How much is counted at which places: those of keys, or 0 for a counter that has none."""

AT_ONCE: Final = 1000
"""How many counts one transaction of events has at most, unless one event has more: a tick waits for it."""

_LONGEST: Final = 1000
_LONGEST_TEXT: Final = 200
_DIGEST: Final = 16


@final
@check_arguments
@dataclass(frozen=True, slots=True)
class Event:
    """Something to count: from a feeder with its sequence number, or of a person with an id.

    In place of a number a feeder may give a text of up to 200 characters that it uses once. A count of n from
    a feeder is n events, not one. For a family, the count is by key: `{"north": 3}`. A pan-private counter
    remembers nothing that an event could be known by: it takes no source, and as a number that of the open
    period, or none.
    """

    source: Name
    number: Name
    count: int | Mapping[str, int] = 1


class CheckedEvent(NamedTuple):
    """An event that was checked: what it is known by, as it is remembered, and what it counts where."""

    source: str | bytes | None
    number: int | bytes | None
    counts: Counts


def check_events(events: Iterable[Event], settings: Settings) -> list[CheckedEvent]:
    """The events, well-formed: what is wrong is said before any of them is counted."""
    return [_check_event(event, settings) for event in events]


def group_calls(
    calls: Iterable[CheckedEvent | list[CheckedEvent]], *, most: int
) -> Iterator[list[CheckedEvent]]:
    """Each list as it is; single events that follow each other are put together, so many at most.

    By what kind of call they are and by their number, never by what they hold: so one event more in a list
    moves nothing else into another transaction.
    """
    singles: list[CheckedEvent] = []
    for call in calls:
        if isinstance(call, CheckedEvent):
            singles.append(call)
        if singles and (not isinstance(call, CheckedEvent) or len(singles) == most):
            yield singles
            singles = []
        if not isinstance(call, CheckedEvent):
            yield call
    if singles:
        yield singles


def split_events(events: Iterable[CheckedEvent], *, most: int) -> Iterator[list[CheckedEvent]]:
    """Some events at a time, of so many counts at most; one that has more is alone."""
    some: list[CheckedEvent] = []
    size = 0
    for event in events:
        length = max(1, len(event.counts))
        if some and size + length > most:
            yield some
            some, size = [], 0
        some.append(event)
        size += length
    if some:
        yield some


def sum_by_period(events: Iterable[CheckedEvent]) -> list[CheckedEvent]:
    """The same for a pan-private counter, which knows an event by its period only: a total for each."""
    totals: dict[Any, int] = {}
    for event in events:
        totals[event.number] = totals.get(event.number, 0) + sum(count for _, count in event.counts)
    return [CheckedEvent(None, number, ((0, total),)) for number, total in totals.items()]


def require_period(events: Iterable[CheckedEvent], period: int, settings: Settings) -> None:
    """Refuse what is meant for another period than the open one, where a number is that of a period."""
    rule = "must be the number of the open period for a pan-private counter"
    fits = not settings.pan_private or {event.number for event in events} <= {None, period}
    check_data(fits, "sequence", rule, fix="leave it out: nothing is kept that numbers events")


def _check_event(event: Event, settings: Settings) -> CheckedEvent:
    fix = 'pass for example Event("gate-1", 17)'
    check_data(isinstance(event, Event), "events", "must be Events", fix=fix)
    counts = _by_place(event.count, settings) if settings.keys else ((0, counted(event.count)),)
    if settings.unit == "user":
        return CheckedEvent(_digest(event.source), _digest(event.number), counts)
    if settings.pan_private:
        fix = "leave it out: nothing is kept of events"
        check_data(event.source is None, "feeder", "must be None for a pan-private counter", fix=fix)
        return CheckedEvent(None, None if event.number is None else _sequence(event.number), counts)
    feeder = event.source
    if not isinstance(feeder, str) or not 0 < len(feeder) <= _LONGEST:
        raise InvalidData("feeder", "must be a short name", fix='pass for example feeder="gate-1"')
    return CheckedEvent(feeder, _number(feeder, event.number), counts)


def _by_place(count: object, settings: Settings) -> Counts:
    """What a family counts: the keys are public, and what was given in place of one is not shown."""
    if not isinstance(count, Mapping):
        raise InvalidData("count", "must be by key for a family", fix='pass for example {"north": 3}')
    known, fix = settings.places.keys() >= count.keys(), "use those of settings.keys"
    check_data(known, "count", "must be under keys of the family", fix=fix)
    rule = "must be under one key for an event of a person"
    check_data(settings.unit != "user" or len(count) == 1, "count", rule, fix="pass one for each")
    return tuple((settings.places[key], counted(each)) for key, each in count.items())


def _number(feeder: str, number: object) -> int | bytes:
    """A sequence number as it is; a text as a digest of it and its feeder."""
    if not isinstance(number, str):
        return _sequence(number)
    rule = f"must have 1 to {_LONGEST_TEXT} characters as text"
    check_data(0 < len(number) <= _LONGEST_TEXT, "sequence", rule, fix="shorten it")
    # The length tells feeder and number apart where one ends and the other begins.
    unambiguous = f"{len(feeder)} {feeder}{number}".encode(errors="surrogatepass")
    return hashlib.sha256(unambiguous).digest()[:_DIGEST]


def _sequence(sequence: Any) -> int:
    failure = InvalidData("sequence", "must be a number from 0 on", fix="number events from 1")
    return raise_without_cause(
        lambda: integer(sequence, "sequence", low=0, high=LARGEST), failure, InvalidParameter
    )


def _digest(name: object) -> bytes:
    """A fixed number of bytes for a name: 7 and "7" are two names."""
    if isinstance(name, bool) or not isinstance(name, (str, int, bytes)):
        raise InvalidData("person and id", "must be text, an integer or bytes", fix="pass names")
    text = f"{name:x}" if isinstance(name, int) else name
    text = text.encode(errors="surrogatepass") if isinstance(text, str) else text
    return hashlib.sha256(b"%b %b" % (type(name).__name__.encode(), text)).digest()


Times: TypeAlias = str | os.PathLike[str] | Iterable[object]
"""A file with one time in each line, or times: datetimes, ISO 8601 text, or seconds since 1970."""

MOST_PERIODS: Final = 10**8
"""How many periods may be fed at once, and how many of a new counter may have ended."""


def count_by_period(
    times: Any, schedule: Schedule, *, start: object, end: object
) -> tuple[int, NDArray[np.int64]]:
    """The number of the first period, and how many events each has up to the last.

    An event before the first or after the last period counts there; what is not a time is ignored.
    """
    first = _boundary(schedule, start, "start") + 1
    last = _boundary(schedule, end, "end")
    fits, rule = first <= last < first + MOST_PERIODS, f"must be 1 to {MOST_PERIODS} periods after start"
    check(fits, "end", rule, given=last - first + 1, fix="feed in parts")
    counts = np.zeros(last - first + 1, dtype=np.int64)
    for time in _each(times):
        moment = _moment(time)
        if moment is not None:
            counts[max(first, min(schedule.number(moment), last)) - first] += 1
    return first, counts


def repeated_feed_error(settings: Settings) -> InvalidParameter:
    """The error for periods that were fed before, if the feeder has no name: nothing is dropped."""
    if settings.pan_private:
        rule, fix = "must be where no period is closed", "feed what comes after"
        return InvalidParameter("start", rule, given="an earlier one", fix=fix)
    rule, again = "must be named for periods that were fed before", f"pass feeder={UNNAMED_FEEDER!r}"
    fix = f"{again} to go on with a call that was interrupted, a new name for other events"
    return InvalidParameter("feeder", rule, given=None, fix=fix)


def _boundary(schedule: Schedule, moment: object, name: str) -> int:
    """The number of periods before a moment that is the end of one."""
    exact = nanoseconds(moment, name)
    ends = exact >= schedule.start and (exact - schedule.start) % schedule.period == 0
    rule = "must be the start of the counter, or the end of a period"
    check(ends, name, rule, given=str(moment), fix="move it")
    return schedule.ended(exact)


def _each(times: Any) -> Iterator[object]:
    if isinstance(times, (str, os.PathLike)):
        path = Path(times)
        with disk(path), open(path, encoding="utf-8", errors="replace") as lines:
            yield from (line.strip() for line in lines)
    else:
        yield from np.ravel(times) if isinstance(times, np.ndarray) else times


def _moment(time: object) -> int | None:
    """A moment in nanoseconds, or None if this is not a time."""
    plain: object = time
    if isinstance(time, np.datetime64):
        plain = time.astype("datetime64[us]").item()
    elif isinstance(time, np.generic):
        plain = time.item()
    try:
        return nanoseconds(plain, "times")
    except InvalidParameter:
        return None


# ---- the counters that can be durable, by name ----

AnyCounter: TypeAlias = ContinualCounter | CounterFamily

MECHANISMS: Final[dict[str, type[ContinualCounter]]] = {
    "counter": Counter,
    "tree": TreeCounter,
    "sparse": SparseCounter,
    "sliding": SlidingCounter,
    "pan-private": PanPrivateCounter,
}

_COMMON: Final = {"epsilon", "horizon", "change", "contributions", "noise"}
_NO_NUMBERS: Final = {"keys", "shape", "plan", "inner", "live"}
"""Parameters that are no options: those that all have, and those that are no numbers."""


def make_counter(settings: Settings, noise: Noise | None) -> AnyCounter:
    """A new counter; parameters that it does not have are refused."""
    mechanism = _mechanism(settings)
    known = inspect.signature(mechanism).parameters
    _check_options(settings, known)
    arguments: dict[str, Any] = {**settings.terms.keywords, **settings.options, **_optional(noise)}
    if "horizon" in known:
        arguments["horizon"] = settings.horizon
    if settings.pan_private:
        arguments["live"] = True
    if settings.keys:
        arguments["keys"] = settings.keys
    return mechanism(**arguments)


def stream_options(mechanism: str) -> dict[str, Option]:
    """The options that a counter of this name can be opened with, by its parameters."""
    kind = MECHANISMS[check_choice(mechanism, "mechanism", tuple(MECHANISMS))]
    return options_of_call(kind.__init__, ("self", *_COMMON, *_NO_NUMBERS))


def read_stream_options(mechanism: str, given: Mapping[str, object]) -> dict[str, Any]:
    """Options of a counter of this name, each read by its type."""
    return read_options(stream_options(mechanism), given, mechanism)


def bound_new(settings: Settings, beta: float) -> float | None:
    """The bound of `bound_outputs`; of a sparse counter for as many events as its hint says."""
    events = settings.options.get("weight", settings.options.get("expected"))
    if settings.mechanism != SparseCounter.name or events is None:
        return bound_outputs(settings, beta)
    return make_counter(settings, None).bound(beta, rows=int(events))


def restore_counter(settings: Settings, state: bytes, noise: Noise | None) -> AnyCounter:
    """The counter that gave this state."""
    restore: Any = _mechanism(settings).from_state
    counter: AnyCounter = restore(state, **_optional(noise))
    if isinstance(counter, CounterFamily) and counter.keys != settings.keys:
        raise InvalidState("counter", "must have the keys of its settings", fix="restore the latest copy")
    return counter


def step(counter: AnyCounter, totals: list[int]) -> None:
    """Close one period in which so much was counted: one number, or one for each key."""
    if isinstance(counter, CounterFamily):
        counter.update(totals)
    else:
        counter.update(totals[0])


def record_after(before: bytes, counter: AnyCounter) -> bytes:
    """The public record of the period that a counter has closed last: outputs in units of the granularity."""
    if isinstance(counter, CounterFamily):
        units = counter.units
    else:
        units = (int(counter.exact / counter.granularity),)
    return next_record(before, counter.periods, units)


def _mechanism(settings: Settings) -> type[AnyCounter]:
    if settings.keys:
        return CounterFamily
    return MECHANISMS[check_choice(settings.mechanism, "mechanism", tuple(MECHANISMS))]


def _optional(noise: Noise | None) -> dict[str, Any]:
    return {} if noise is None else {"noise": noise}


def _check_options(settings: Settings, known: Mapping[str, inspect.Parameter]) -> None:
    """Refuse options that the mechanism does not have, and ask for those that it cannot do without."""
    options = {name: about for name, about in known.items() if name not in _COMMON | _NO_NUMBERS}
    rule = f"must be among {', '.join(sorted(options)) or 'none'} for {settings.mechanism!r}"
    for name in settings.options:
        check(name in options, "options", rule, given=name, fix="drop it")
    for name, about in options.items():
        given = name in settings.options or about.default is not about.empty
        check(given, name, f"is needed by {settings.mechanism!r}", given=None, fix="pass it")
    endless = settings.horizon is None or "horizon" in known
    rule = f"must be None for {settings.mechanism!r}, which goes on for ever"
    check(endless, "horizon", rule, given=settings.horizon, fix="drop it")
