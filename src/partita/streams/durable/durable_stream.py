"""What goes on after a crash, and publishes by the clock: all that a counter and a family have in common."""

from __future__ import annotations

import os
import threading
import time
from abc import ABC
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from partita.errors import HorizonReached, InvalidParameter, StreamBusy, StreamError
from partita.exact import integer
from partita.guarantee import Guarantee
from partita.noise.words import Uncopyable
from partita.streams.base import LARGEST
from partita.streams.durable.account import Account
from partita.streams.durable.clock import present
from partita.streams.durable.events import AT_ONCE, Event, Fed, Name, checked_events, grouped, require_period
from partita.streams.durable.feeding import FILE, fed_before
from partita.streams.durable.keeper import Keeper
from partita.streams.durable.mechanisms import AnyCounter
from partita.streams.durable.outputs import AnyOutput, OutputsFile, witness
from partita.streams.durable.recovery import reconcile
from partita.streams.durable.running import Ticker
from partita.streams.durable.settings import Settings
from partita.streams.durable.turns import Turns

__all__ = ["DurableStream"]

T = TypeVar("T", bound=AnyOutput)


class DurableStream(Uncopyable, ABC, Generic[T]):
    """Outputs over public periods, in two files: a secret one and a public one.

    `add` counts events in the open period; it returns nothing and closes nothing. `tick` closes the periods
    that have ended, and publishes one output for each; only a clock calls it. What was added is on disk when
    `add` returns, but for a pan-private counter, which has nothing of the open period on disk. An output is
    on disk, with the noise that it used, before it is published. It may be used from any number of threads;
    one process has it open.
    """

    def __init__(self, keeper: Keeper, outputs: OutputsFile, account: Account | None) -> None:
        self._keeper, self._file = keeper, outputs
        self._turns, self._calls = Turns(), threading.Lock()
        self._owner, self._open = os.getpid(), True
        self._ticker: Ticker | None = None
        keeper.follow(outputs)
        periods = self._counter.periods
        self._writer = None if account is None else account.claim(self.settings, periods, self._witness)
        reconcile(keeper, outputs, periods)
        self._published = periods

    @property
    def settings(self) -> Settings:
        """What the counter was opened with; public."""
        return self._keeper.settings

    @property
    def guarantee(self) -> Guarantee | None:
        """What all outputs together promise; None if the noise was injected."""
        with self._turns.patient():
            return self.settings.guarantee if self._counter.guarantee is not None else None

    @property
    def periods(self) -> int:
        """How many periods are closed and published."""
        return self._published

    def outputs(self, since: int = 0) -> Iterator[T]:
        """What was published for the periods after a given one, in order."""
        after = max(0, integer(since, "since", high=LARGEST))
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
        self._add_calls([checked_events(events, self.settings)])

    def add_calls(self, calls: Iterable[Event | Iterable[Event]]) -> None:
        """Count several calls one after the other, each at a moment of its own, as `add_many` does.

        Single events that follow each other share a transaction, so many as a public number says; a list of
        events never does, whatever its length.
        """
        checked: list[Fed | list[Fed]] = []
        for call in calls:
            if isinstance(call, Event):
                checked += checked_events([call], self.settings)
            else:
                checked.append(checked_events(call, self.settings))
        self._add_calls(checked)

    def tick(self, now: object = None) -> list[T]:
        """Close every period that has ended, in order, and publish an output for each: these outputs.

        Called by a clock, never because something came. A counter whose last period was closed before raises
        `HorizonReached` from the moment on at which another one would have ended.
        """
        return self._tick(present(now))

    def close_until(self, period: int) -> None:
        """Close periods up to one, or up to the last there is; for the clock."""
        with self._ticking():
            self._publish()
            while left := max(0, min(period, self._last_period) - self._published):
                with self._keeper.batch():
                    for _ in range(min(left, self._keeper.at_once)):
                        self._keeper.close_period()
                self._publish()

    @contextmanager
    def running(
        self, each: Callable[[T], object] | None = None, *, now: Callable[[], int] = time.time_ns
    ) -> Iterator[Self]:
        """Periods are closed by the clock while the block runs; `each` is called with every output.

        If files cannot be written, the clock tries again when the next period ends. If anything else stops
        it, `add` raises too: nobody goes on feeding a counter that publishes nothing.
        """
        told = self._published

        def tick() -> None:
            nonlocal told
            self._tick(now())
            for output in self.outputs(since=told):
                told = output.period
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
        self,
        *,
        since: int = 0,
        beta: float = 0.05,
        axes: Any = None,
        interactive: bool | None = None,
    ) -> Any:
        """What was published after a given period, over time: matplotlib axes, or a figure of plotly.

        The band holds the true count of each period, but for probability beta. It is interactive if that is
        asked for, and by itself in a notebook that has plotly. Only the public file is read.
        """
        from partita.releases.interactive import wanted
        from partita.streams.interactive import stream_figure
        from partita.streams.plot import plot

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
        with self._turns.patient():
            if self._open:
                self._open = False
                self._keeper.close()

    def _repr_html_(self) -> str:
        from partita.streams.html import MOST_SHOWN, stream_card

        last = list(self.outputs(since=self.periods - MOST_SHOWN))
        return stream_card(type(self).__name__, self.settings, self.guarantee, self.periods, last)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def _counter(self) -> AnyCounter:
        counter = self._keeper.counter
        if counter is None:
            raise StreamError("this counter was not begun; open it again")
        return counter

    @property
    def _last_period(self) -> int:
        return LARGEST if self.settings.horizon is None else self.settings.horizon

    @contextmanager
    def _settled(self) -> Iterator[Any]:
        """The counter, after all that is stored was published."""
        with self._feeding():
            self._publish()
            yield self._counter

    @contextmanager
    def _feeding(self) -> Iterator[None]:
        self._require_owner()
        with self._turns.patient():
            self._require_open()
            self._require_clock()
            yield

    @contextmanager
    def _ticking(self) -> Iterator[None]:
        self._require_owner()
        with self._turns.urgent():
            self._require_open()
            yield

    def _add(
        self,
        count: Any,
        *,
        feeder: str | None,
        sequence: int | str | None,
        person: Name,
        id: Name,
    ) -> None:
        """Count one event, known by what the stream was opened for."""
        user = self.settings.unit == "user"
        if (feeder is not None or sequence is not None) if user else (person is not None or id is not None):
            raise InvalidParameter(
                "unit",
                "decides what an event is known by",
                given=self.settings.unit,
                fix="pass feeder and sequence for events, person and id for users",
            )
        self.add_many([Event(person, id, count) if user else Event(feeder, sequence, count)])

    def _add_calls(self, calls: list[Fed | list[Fed]]) -> None:
        """Count calls that were checked. Only feeders wait for each other here, the clock for nobody."""
        self._require_owner()
        with self._calls:
            self._settle_calls()
            for call in grouped(calls, most=max(1, AT_ONCE // self.settings.columns)):
                try:
                    self._add_call(self._keeper.portions(call))
                finally:
                    # The call is counted or failed by now; what cannot be tidied up is left to the next one.
                    with suppress(StreamError):
                        self._settle_calls()

    def _add_call(self, portions: list[list[Fed]]) -> None:
        """Store a call in transactions between which the clock may go first; with the last one it counts."""
        for place, some in enumerate(portions, 1):
            with self._feeding():
                period = self._counter.periods + 1
                self._require_more(period)
                require_period(some, period, self.settings)
                with self._keeper.batch():
                    self._keeper.add(some, complete=place == len(portions))

    def _settle_calls(self) -> None:
        """Undo what a call has left that was not completed, and remove what is left of others."""
        more = True
        while more:
            with self._feeding():
                more = self._keeper.settle_calls()

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
            self._file.write(self._published, self._keeper.records(since=self._published))
            self._published = closed
            self._keeper.settle()

    def _record(self, period: int) -> bytes:
        """The record of a period, from the state where it has it."""
        return self._keeper.record(period) or self._file.record(period)

    def _witness(self, period: int) -> bytes:
        """What the ledger keeps of a record: that of a family may be long."""
        record = self._record(period)
        return witness(record) if self.settings.keys else record

    def _source(self, feeder: str | None) -> str | None:
        """Who feeds a file: what is said, or a name for all who say nothing."""
        return FILE if feeder is None and not self.settings.pan_private else feeder

    def _feed_stretch(self, feeder: str | None, first: int, counts: NDArray[np.int64]) -> None:
        """Count a row of numbers in each period from the first on, and close all of them."""
        last, source = first + len(counts) - 1, self._source(feeder)
        checked_events([Event(source, first, self._counted(counts[0]))], self.settings)
        self._require_owner()
        with self._calls:
            self._settle_calls()
            with self._ticking():
                self._feed_all(source, first, last, counts, named=feeder is not None)

    def _feed_all(
        self, source: str | None, first: int, last: int, counts: NDArray[np.int64], *, named: bool
    ) -> None:
        self._require_more(last)
        if not named and self._keeper.has_counted(FILE, first, last):
            raise fed_before(self.settings)
        self.close_until(first - 1)
        for begin in range(0, len(counts), self._keeper.at_once):
            self._feed(source, first + begin, counts[begin : begin + self._keeper.at_once])

    def _feed(self, feeder: str | None, first: int, counts: NDArray[np.int64]) -> None:
        """The counts of some periods, closed one after another in one transaction."""
        with self._keeper.batch():
            for period, row in enumerate(counts, first):
                event = Event(feeder, period, self._counted(row))
                self._keeper.add(checked_events([event], self.settings))
                if self._counter.periods < period:
                    self._keeper.close_period()
        self._publish()

    def _counted(self, row: NDArray[np.int64]) -> Any:
        """A row of numbers as the count of an event."""
        numbers: list[int] = row.tolist()
        keys = self.settings.keys
        return dict(zip(keys, numbers, strict=True)) if keys else numbers[0]

    def _require_owner(self) -> None:
        if os.getpid() != self._owner:
            raise StreamBusy("this counter belongs to the process that opened it; open it again there")

    def _require_clock(self) -> None:
        """Refuse to go on where the clock has died, and with it all outputs."""
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
        if self.settings.unit == "user":
            raise InvalidParameter("unit", "must be 'event' to feed times", given="user", fix="add by person")

    def _require_more(self, period: int) -> None:
        if period > self._last_period:
            raise HorizonReached(
                f"the counter has {self._last_period} periods in all; what it counted and published stays, "
                "start a new one for what comes"
            )
