"""Counters and families that go on after a crash, and publish by the clock.

StateStore        what stores the secret state, a `Journal` or `Slots`
reconcile         what is published again, and what is refused, when a counter is opened
DurableStream     all that a counter and a family have in common
DurableCounter    one running count
DurableFamily     a running count for each of some public keys
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, Self, TypeVar, cast, final

import numpy as np
from numpy.typing import ArrayLike

from partita.answer import Answer
from partita.arrays import Ints
from partita.errors import (
    HorizonReached,
    LedgerError,
    LedgerRefusal,
    StreamBusy,
    StreamError,
    StreamForked,
    check,
    check_data,
)
from partita.guarantee import Guarantee
from partita.ledger.entries import Connection, Debit, LedgerStore
from partita.ledger.ledger import Ledger
from partita.numbers import integer
from partita.public import streams
from partita.public.stream_errors import Running
from partita.storage import Closing
from partita.trusted.durable.events import (
    AT_ONCE,
    AnyCounter,
    CheckedEvent,
    Event,
    Name,
    Times,
    check_events,
    count_by_period,
    group_calls,
    repeated_feed_error,
    require_period,
)
from partita.trusted.noise.kernel import token
from partita.trusted.noise.laws import Uncopyable
from partita.trusted.streams.tree_counter import TreeCounter

# ---- what a ledger knows of a durable counter ----

_CLAIM: Final = """
INSERT INTO counters VALUES (?, ?, ?, ?) ON CONFLICT (counter) DO UPDATE
SET periods = excluded.periods, record = excluded.record, writer = excluded.writer
"""
_REACH: Final = """
UPDATE counters SET periods = ?, record = ?
WHERE counter = ? AND writer = ? AND (periods = ? OR periods = ? AND record = ?)
"""


@final
@dataclass(frozen=True)
class StreamAccount:
    """The budget of a dataset, for one counter."""

    ledger: Ledger
    dataset: str

    def check_room(self, settings: streams.Settings) -> None:
        """Refuse at once what cannot be paid, before any file is made."""
        if self.ledger.forecast(self.dataset, settings.guarantee) == 0:
            self._debit(settings)

    def pay(self, settings: streams.Settings) -> None:
        """Debit the counter, unless that was done: it is charged once, however often it is opened."""
        if self._entry(settings) is None:
            self._debit(settings)

    def mark_done(self, settings: streams.Settings) -> None:
        """Record that the counter is stored; refused if it was not paid for."""
        entry = self._entry(settings)
        if entry is None:
            raise LedgerRefusal(
                f"ledger {self.ledger.address!r} has not paid for this counter; pass the one that did"
            )
        self.ledger.mark_done(entry)

    def _entry(self, settings: streams.Settings) -> Debit | None:
        key = f"counter {settings.counter}"
        return next((entry for entry in self.ledger.entries(self.dataset) if entry.key == key), None)

    def _debit(self, settings: streams.Settings) -> Debit:
        what, key = f"stream {settings.mechanism}", f"counter {settings.counter}"
        return self.ledger.debit(self.dataset, settings.guarantee, what=what, key=key)


@final
class Writer:
    """The right to publish a counter, from its opening on until somebody else opens it, or a copy of it.

    The ledger knows how many periods are published, a number that only rises, and the record of the last one.
    Both are on disk before that record is public, so a state that has fewer periods, or another record, is a
    copy that others have overtaken. Who opens the counter last is its writer: an earlier one may publish
    nothing more.
    """

    def __init__(self, store: LedgerStore, counter: str, periods: int) -> None:
        self._store, self._counter, self._periods = store, counter, periods
        self._token = token()

    def claim(self, record: Callable[[int], bytes]) -> None:
        """Take the right from the writer before, unless the state is a copy that was overtaken.

        `record` is what the state has of a period.
        """

        def write(connection: Connection) -> None:
            for statement in self._store.additions:
                connection.execute(statement)
            self._check(connection, record)
            row = (self._counter, self._periods, record(self._periods), self._token)
            connection.execute(_CLAIM, row)

        self._store.write(write)

    def reach(self, periods: int, record: bytes) -> None:
        """Say that periods up to one may be published, of which this is the last record.

        To say it again changes nothing, so whoever could not hear the answer may repeat it.
        """
        row = (periods, record, self._counter, self._token, self._periods, periods, record)
        if not self._store.write(lambda connection: connection.execute(_REACH, row).rowcount):
            raise StreamForked(
                "this counter was opened again elsewhere, perhaps from a copy of its files; only who opened "
                "it last may publish, so close this one"
            )
        self._periods = periods

    def _check(self, connection: Connection, record: Callable[[int], bytes]) -> None:
        found = "SELECT periods, record FROM counters WHERE counter = ?"
        known, last = connection.execute(found, (self._counter,)).fetchone() or (0, record(0))
        if known > self._periods:
            raise StreamForked(
                f"the ledger knows of {known} published periods, and this state of {self._periods}: it is "
                "an old copy, and to go on would publish periods twice; restore the latest, or start anew"
            )
        if record(known) != last:
            raise StreamForked(
                f"the ledger knows of another output for period {known} than this state: it is a copy that "
                "others have overtaken; restore the latest, or start anew"
            )


def account_of(ledger: Ledger | None, dataset: str | None) -> StreamAccount | None:
    """Who pays: a ledger and a dataset in it, or nobody."""
    fix = "pass both of them, or neither"
    check((ledger is None) == (dataset is None), "ledger", "and dataset go together", given=None, fix=fix)
    return None if ledger is None or dataset is None else StreamAccount(ledger, dataset)


# ---- the clock ----


@final
class ClockPriorityLock:
    """A lock in which the clock thread goes first: it waits for one other thread at most.

    The clock thread may take it again, but not `for_others` within `for_clock`: it would wait for itself.
    """

    def __init__(self) -> None:
        self._clocks = threading.RLock()
        self._free = threading.Condition()
        self._due = False

    @contextmanager
    def for_clock(self) -> Iterator[None]:
        """Hold the lock as the clock: the next to have it, however many are waiting."""
        with self._clocks:
            self._due = True
            try:
                with self._free:
                    yield
            finally:
                with self._free:
                    self._due = False
                    self._free.notify_all()

    @contextmanager
    def for_others(self) -> Iterator[None]:
        """Hold the lock as anybody else, when no clock waits for it."""
        with self._free:
            self._free.wait_for(lambda: not self._due)
            yield


_LONGEST_SLEEP: Final = 3600 * streams.SECOND  # how soon a clock that is set right is followed


@final
class Ticker:
    """A thread that calls `tick` now and at the end of each period, whatever was counted.

    It ends when it is stopped, when the last period is closed, or when it fails for good.

    A file that cannot be read or written is tried again when the next period ends; all other errors, and a
    fork, end it, and `dead` says why.
    """

    def __init__(
        self, schedule: streams.Schedule, tick: Callable[[], object], now: Callable[[], int]
    ) -> None:
        self._schedule, self._tick, self._now = schedule, tick, now
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="partita-clock", daemon=True)
        self._failed: BaseException | None = None
        self.dead: BaseException | None = None

    def start(self) -> None:
        """Begin to tick."""
        self._thread.start()

    def stop(self) -> None:
        """End it; a tick that has begun is finished first. Raises what ended it, or its last tick."""
        self._stopped.set()
        self._thread.join()
        error = self.dead or self._failed
        if error is not None:
            raise error

    def _run(self) -> None:
        try:
            self._try()
            while not self._stopped.wait(self._until_next()):
                self._try()
        except HorizonReached:
            return
        except BaseException as error:
            self.dead = error

    def _try(self) -> None:
        try:
            self._tick()
            self._failed = None
        except StreamForked:
            raise
        except (StreamError, LedgerError) as error:
            self._failed = error

    def _until_next(self) -> float:
        """Seconds until the open period ends, as the clock says now."""
        now = self._now()
        left = self._schedule.end(self._schedule.ended(now) + 1) - now
        return max(0, min(left, _LONGEST_SLEEP)) / streams.SECOND


# ---- the secret file ----


class StateStore(Protocol):
    """A counter, and everything that is needed to go on with it after a crash.

    What is said within `batch` is on disk when the batch is left, all of it or nothing.
    """

    @property
    def at_once(self) -> int:
        """How many periods one batch may close."""

    @property
    def settings(self) -> streams.Settings:
        """What the counter was opened with."""

    @property
    def counter(self) -> AnyCounter | None:
        """The counter as it is on disk; None if it was not begun."""

    def begin(self, counter: AnyCounter) -> AnyCounter:
        """Store a new counter; the one to go on with."""

    def batch(self) -> AbstractContextManager[None]:
        """The events and periods of one transaction."""

    def portions(self, call: list[CheckedEvent]) -> list[list[CheckedEvent]]:
        """The events of one call as the transactions that store them."""

    def add(self, events: Iterable[CheckedEvent], *, complete: bool = True) -> None:
        """Store events that were checked, each once; if the call is complete, all of it counts now."""

    def settle_calls(self) -> bool:
        """Undo a portion of a call that was not completed, or sweep up after others; False if all is done."""

    def has_counted(self, feeder: str, first: int, last: int) -> bool:
        """Whether a feeder has counted under any number from the first to the last."""

    def close_period(self) -> None:
        """Close the open period and open the next one."""

    def record(self, period: int) -> bytes | None:
        """The record of a period, if it is still here."""

    def records(self, *, since: int) -> Iterator[bytes]:
        """The records of all periods after one."""

    def follow(self, outputs: streams.OutputsFile) -> None:
        """Say where records are published, each after the one before it."""

    def settle(self) -> None:
        """Do what can wait until outputs are published."""

    def close(self) -> None:
        """Let others open it."""


def reconcile(store: StateStore, outputs: streams.OutputsFile, periods: int) -> None:
    """Bring the public file up to the state: records that are stored and not published are published now.

    So are records that a power cut has torn. A file that is ahead of the state, or that tells another story,
    shows that the state is an old copy.
    """
    if outputs.record(periods + 1) != outputs.blank:
        raise _fork_error(outputs, "has periods that the state does not know")
    while periods and outputs.record(periods) == outputs.blank:
        periods -= 1
    published = _whole(store, outputs, periods)
    outputs.write(published, store.records(since=published))


def _whole(store: StateStore, outputs: streams.OutputsFile, last: int) -> int:
    """Up to which period the file is whole: only what was written at once, in the end, can be torn.

    A torn record has bytes as they are stored, and zeros where nothing was written.
    """
    whole, begin = last, max(0, last - store.at_once)
    for period, found in enumerate(outputs.records(since=begin), begin + 1):
        stored = store.record(period)
        if stored is None or found == stored:
            continue
        if not all(byte in (0, right) for byte, right in zip(found, stored, strict=True)):
            raise _fork_error(outputs, "differs from what the state has published")
        whole = min(whole, period - 1)
    return whole


def _fork_error(outputs: streams.OutputsFile, rule: str) -> StreamForked:
    return StreamForked(
        f"counter file {str(outputs.path)!r} {rule}: the state is an old copy, and to go on from it would "
        "publish periods twice; restore the latest state, or start a new counter"
    )


# ---- counters and families ----

T = TypeVar("T", bound=streams.AnyOutput)


class DurableStream(Uncopyable, Closing, Generic[T]):
    """Outputs over public periods, in two files: a secret one and a public one.

    `add` counts events in the open period; it returns nothing and closes nothing. `tick` closes the periods
    that have ended, and publishes one output for each; only a clock calls it. What was added is on disk when
    `add` returns, but for a pan-private counter, which has nothing of the open period on disk. An output is
    on disk, with the noise that it used, before it is published. It may be used from any number of threads;
    one process has it open.
    """

    def __init__(
        self, store: StateStore, outputs: streams.OutputsFile, account: StreamAccount | None
    ) -> None:
        self._store, self._file = store, outputs
        self._lock, self._calls = ClockPriorityLock(), threading.Lock()
        self._owner, self._open = os.getpid(), True
        self._ticker: Ticker | None = None
        store.follow(outputs)
        periods = self._counter.periods
        self._writer: Writer | None = None
        if account is not None:
            self._writer = Writer(account.ledger.store, self.settings.counter, periods)
            self._writer.claim(self._witness)
        reconcile(store, outputs, periods)
        self._published = periods

    @property
    def settings(self) -> streams.Settings:
        """What the counter was opened with; public."""
        return self._store.settings

    @property
    def guarantee(self) -> Guarantee | None:
        """What all outputs together promise; None if the noise was injected."""
        with self._lock.for_others():
            return self.settings.guarantee if self._counter.guarantee is not None else None

    @property
    def periods(self) -> int:
        """How many periods are closed and published."""
        return self._published

    def outputs(self, since: int = 0) -> Iterator[T]:
        """What was published for the periods after a given one, in order."""
        after = max(0, integer(since, "since", high=streams.LARGEST))
        return cast("Iterator[T]", self._file.outputs(since=after))

    def add_many(self, events: Iterable[Event]) -> None:
        """Count events, all of them in one period and at one moment, or none of them.

        They are stored first, a thousand in one transaction, with one sync; fewer if long. With the last
        transaction all of them count, in the period that is open then: the one in which the call began,
        unless that one ended while they were being stored. A period that ends in the meantime waits for one
        transaction at most, however long the call is, and has nothing of the call. If an event is malformed,
        if no period is left, or if the disk refuses, nothing counts and an error says so. What is sent again
        under the same numbers counts no second time. Calls are stored one after the other.
        """
        self._add_calls([check_events(events, self.settings)])

    def add_calls(self, calls: Iterable[Event | Iterable[Event]]) -> None:
        """Count several calls one after the other, each at a moment of its own, as `add_many` does.

        Single events that follow each other share a transaction, so many as a public number says; a list of
        events never does, whatever its length.
        """
        checked: list[CheckedEvent | list[CheckedEvent]] = []
        for call in calls:
            if isinstance(call, Event):
                checked += check_events([call], self.settings)
            else:
                checked.append(check_events(call, self.settings))
        self._add_calls(checked)

    def tick(self, now: object = None) -> list[T]:
        """Close every period that has ended, in order, and publish an output for each: these outputs.

        Called by a clock, never because something came. A counter whose last period was closed before raises
        `HorizonReached` from the moment on at which another one would have ended.
        """
        return self._tick(streams.parse_now(now))

    def close_until(self, period: int) -> None:
        """Close periods up to one, or up to the last there is; for the clock."""
        with self._ticking():
            self._publish()
            while left := max(0, min(period, self._last_period) - self._published):
                with self._store.batch():
                    for _ in range(min(left, self._store.at_once)):
                        self._store.close_period()
                self._publish()

    @contextmanager
    def running(
        self, each: Callable[[T], object] | None = None, *, now: Callable[[], int] = time.time_ns
    ) -> Iterator[Self]:
        """Periods are closed by the clock while the block runs; `each` is called with every output.

        If files cannot be written, the clock tries again when the next period ends. If anything else stops
        it, `add` raises too: nobody goes on feeding a counter that publishes nothing.
        """
        passed_on = self._published

        def tick() -> None:
            nonlocal passed_on
            self._tick(now())
            for output in self.outputs(since=passed_on):
                passed_on = output.period
                if each is not None:
                    each(output)

        self._ticker = Ticker(self.settings.schedule, tick, now)
        self._ticker.start()
        try:
            yield self
        finally:
            ticker, self._ticker = self._ticker, None
            ticker.stop()

    def plot(
        self, *, since: int = 0, beta: float = 0.05, axes: Any = None, interactive: bool | None = None
    ) -> Any:
        """What was published after a given period, over time: matplotlib axes, or a figure of plotly.

        The band holds the true count of each period, but for probability beta. It is interactive if that is
        asked for, and by itself in a notebook that has plotly. Only the public file is read.
        """
        from partita.public.plot import is_interactive as wanted
        from partita.public.stream_plot import plot, stream_figure

        outputs, name = list(self.outputs(since=since)), self.settings.dataset
        if wanted(interactive, axes):
            return stream_figure(outputs, self.settings, beta=beta, name=name)
        return plot(outputs, self.settings, beta=beta, axes=axes, name=name)

    def close(self) -> None:
        """Let others open the counter. A pan-private one loses the events of the open period.

        A forked child leaves all as it is.
        """
        if os.getpid() != self._owner:
            return
        with self._lock.for_others():
            if self._open:
                self._open = False
                self._store.close()

    def _repr_html_(self) -> str:
        from partita.public.stream_plot import MOST_SHOWN, stream_card

        last = list(self.outputs(since=self.periods - MOST_SHOWN))
        return stream_card(type(self).__name__, self.settings, self.guarantee, self.periods, last)

    @property
    def _counter(self) -> AnyCounter:
        counter = self._store.counter
        if counter is None:
            raise StreamError("this counter was not begun; open it again")
        return counter

    @property
    def _last_period(self) -> int:
        return streams.LARGEST if self.settings.horizon is None else self.settings.horizon

    @contextmanager
    def _settled(self) -> Iterator[Any]:
        """The counter, after all that is stored was published."""
        with self._feeding():
            self._publish()
            yield self._counter

    @contextmanager
    def _feeding(self) -> Iterator[None]:
        self._require_owner()
        with self._lock.for_others():
            self._require_open()
            self._require_clock()
            yield

    @contextmanager
    def _ticking(self) -> Iterator[None]:
        self._require_owner()
        with self._lock.for_clock():
            self._require_open()
            yield

    def _add(
        self, count: Any, *, feeder: str | None, sequence: int | str | None, person: Name, id: Name
    ) -> None:
        """Count one event, known by what the stream was opened for."""
        unit, of_feeder, of_person = self.settings.unit, (feeder, sequence), (person, id)
        known_by, other = (of_person, of_feeder) if unit == "user" else (of_feeder, of_person)
        fix = "pass feeder and sequence for events, person and id for users"
        check(other == (None, None), "unit", "decides what an event is known by", given=unit, fix=fix)
        self.add_many([Event(*known_by, count)])

    def _add_calls(self, calls: list[CheckedEvent | list[CheckedEvent]]) -> None:
        """Count calls that were checked. Only feeders wait for each other here, the clock for nobody."""
        self._require_owner()
        with self._calls:
            self._settle_calls()
            for call in group_calls(calls, most=max(1, AT_ONCE // self.settings.columns)):
                try:
                    self._add_call(self._store.portions(call))
                finally:
                    # The call is counted or failed by now; what cannot be tidied up is left to the next one.
                    with suppress(StreamError):
                        self._settle_calls()

    def _add_call(self, portions: list[list[CheckedEvent]]) -> None:
        """Store a call in transactions between which the clock may go first; with the last one it counts."""
        for place, some in enumerate(portions, 1):
            with self._feeding():
                period = self._counter.periods + 1
                self._require_more(period)
                require_period(some, period, self.settings)
                with self._store.batch():
                    self._store.add(some, complete=place == len(portions))

    def _settle_calls(self) -> None:
        """Undo what a call has left that was not completed, and remove what is left of others."""
        more = True
        while more:
            with self._feeding():
                more = self._store.settle_calls()

    def _tick(self, moment: int) -> list[T]:
        with self._ticking():
            before, ended = self._published, self.settings.schedule.ended(moment)
            if before == self._last_period:
                self._require_more(ended)
            self.close_until(ended)
            return list(self.outputs(since=before))

    def _publish(self) -> None:
        """Put what is stored into the public file: the ledger hears of it first."""
        closed = self._counter.periods
        if closed > self._published:
            if self._writer is not None:
                self._writer.reach(closed, self._witness(closed))
            self._file.write(self._published, self._store.records(since=self._published))
            self._published = closed
            self._store.settle()

    def _witness(self, period: int) -> bytes:
        """What the ledger keeps of a record: that of a family may be long."""
        record = self._store.record(period) or self._file.record(period)
        return streams.witness(record) if self.settings.keys else record

    def _feed_periods(self, feeder: str | None, first: int, counts: Ints) -> None:
        """Count a row of numbers in each period from the first on, and close all of them."""
        last, at_once = first + len(counts) - 1, self._store.at_once
        source = streams.UNNAMED_FEEDER if feeder is None and not self.settings.pan_private else feeder
        self._row_events(source, first, counts[0])
        self._require_owner()
        with self._calls:
            self._settle_calls()
            with self._ticking():
                self._require_more(last)
                if feeder is None and self._store.has_counted(streams.UNNAMED_FEEDER, first, last):
                    raise repeated_feed_error(self.settings)
                self.close_until(first - 1)
                for begin in range(0, len(counts), at_once):
                    self._feed_batch(source, first + begin, counts[begin : begin + at_once])

    def _feed_batch(self, source: str | None, first: int, counts: Ints) -> None:
        """The counts of some periods, closed one after another in one transaction."""
        with self._store.batch():
            for period, row in enumerate(counts, first):
                self._store.add(self._row_events(source, period, row))
                if self._counter.periods < period:
                    self._store.close_period()
        self._publish()

    def _row_events(self, source: str | None, period: int, row: Ints) -> list[CheckedEvent]:
        """The row of numbers of a period as one event."""
        numbers, keys = row.tolist(), self.settings.keys
        count = dict(zip(keys, numbers, strict=True)) if keys else numbers[0]
        return check_events([Event(source, period, count)], self.settings)

    def _require_owner(self) -> None:
        if os.getpid() != self._owner:
            raise StreamBusy("this counter belongs to the process that opened it; open it again there")

    def _require_clock(self) -> None:
        """Refuse to go on if the clock has stopped, and with it all outputs."""
        if self._ticker is not None and self._ticker.dead is not None:
            raise StreamError(
                "the clock of this counter has stopped, and no period is closed any more; leave the block to "
                "see why"
            ) from self._ticker.dead

    def _require_open(self) -> None:
        if not self._open:
            raise StreamBusy("this counter is closed; open it again")

    def _require_events(self) -> None:
        """Refuse times of people: a cap needs to know who they are."""
        is_event, rule = self.settings.unit != "user", "must be 'event' to feed times"
        check(is_event, "unit", rule, given="user", fix="add by person")

    def _require_more(self, period: int) -> None:
        if period > self._last_period:
            raise HorizonReached(
                f"the counter has {self._last_period} periods in all; what it counted and published stays, "
                "start a new one for what comes"
            )


@final
class DurableCounter(DurableStream[streams.Output]):
    """A running count over public periods, in two files: a secret one and a public one.

    Guarantee: that of its mechanism, for all outputs together, through crashes and restarts.
    Error:     that of its mechanism; `answer` says how far off an output may be.
    Proof:     docs/decisions/durable-counters.md (no period is ever published with two noises)

    What it does with events and time is said at `DurableStream`.
    """

    @property
    def value(self) -> float:
        """The last output; 0 before the first."""
        return next((output.value for output in self.outputs(since=self._published - 1)), 0.0)

    def answer(self, beta: float = 0.05) -> Running:
        """The last output with its error: for this period, and for all periods at once."""
        with self._settled() as counter:
            running: Running = counter.answer(beta)
            return running

    def count(self, first: int, last: int) -> Answer:
        """What was counted in closed periods, both included: by a "tree" with `intervals` alone."""
        with self._settled() as counter:
            rule, fix = "must be 'tree', with intervals=True", "open another counter"
            is_tree = isinstance(counter, TreeCounter)
            check(is_tree, "mechanism", rule, given=self.settings.mechanism, fix=fix)
            answer: Answer = counter.count(first, last)
            return answer

    def add(
        self,
        count: int = 1,
        *,
        feeder: str | None = None,
        sequence: int | str | None = None,
        person: Name = None,
        id: Name = None,
    ) -> None:
        """Count in the open period, once for each feeder and sequence number or text, or person and id.

        From a feeder, a count of n is n events of one change each: epsilon is for one of them. A pan-private
        counter takes no names, and counts each call: `sequence`, if given, must be the number of the open
        period, and what is meant for another one is refused.
        """
        self._add(count, feeder=feeder, sequence=sequence, person=person, id=id)

    def feed_timestamps(
        self, times: Times | ArrayLike, *, start: object, end: object, feeder: str | None = None
    ) -> None:
        """Count events that lie ready, by their times, and close all periods from a public start to an end.

        Events outside go to the first or the last of these periods. What is no time is left out. Each period
        counts once for a feeder: a call that names one may be made again if it was interrupted, and other
        events need another name. Without a name, periods that were fed before are refused. A pan-private
        counter takes no name, and periods that are closed are refused.
        """
        self._require_events()
        first, counts = count_by_period(times, self.settings.schedule, start=start, end=end)
        self._feed_periods(feeder, first, counts[:, None])


@final
class DurableFamily(DurableStream[streams.FamilyOutput]):
    """Running counts for public keys over public periods, in two files: a secret one and a public one.

    Guarantee: that of `CounterFamily`, for all outputs of all keys together, through crashes and restarts.
    Error:     that of `CounterFamily`; `answer` says how far off an output may be.
    Proof:     docs/decisions/durable-counters.md (no period is ever published with two noises)

    Every period has one output for every key, whatever was counted. At user level a person has at most
    `contributions` events over all keys together. What it does with events and time is said at
    `DurableStream`.
    """

    @property
    def keys(self) -> tuple[str, ...]:
        """The public keys, in the order of the public file."""
        return self.settings.keys

    @property
    def value(self) -> dict[str, float]:
        """The last output for each key; 0 before the first."""
        last = (output.value for output in self.outputs(since=self._published - 1))
        return next(last, dict.fromkeys(self.keys, 0.0))

    def answer(self, key: str, beta: float = 0.05) -> Running:
        """The last output for a key with its error: for this period, and for all its periods at once."""
        with self._settled() as family:
            running: Running = family.answer(key, beta)
            return running

    def add(
        self,
        counts: Mapping[str, int],
        *,
        feeder: str | None = None,
        sequence: int | str | None = None,
        person: Name = None,
        id: Name = None,
    ) -> None:
        """Count under some keys in the open period, all of them under one number, or none.

        Once for each feeder and sequence number or text, or person and id. From a feeder, a count of n is n
        events of one change each; an event of a person is under one key.
        """
        self._add(counts, feeder=feeder, sequence=sequence, person=person, id=id)

    def feed_timestamps(
        self, times: Mapping[str, Times | ArrayLike], *, start: object, end: object, feeder: str | None = None
    ) -> None:
        """Count events that lie ready by key, by their times, and close all periods from a start to an end.

        As `DurableCounter.feed_timestamps`; keys that are left out had no events.
        """
        self._require_events()
        known, fix = self.settings.places.keys() >= times.keys(), "use those of settings.keys"
        check_data(known, "times", "must be under keys of the family", fix=fix)
        columns = [
            count_by_period(times.get(key, ()), self.settings.schedule, start=start, end=end)
            for key in self.keys
        ]
        self._feed_periods(feeder, columns[0][0], np.stack([counts for _, counts in columns], axis=1))
