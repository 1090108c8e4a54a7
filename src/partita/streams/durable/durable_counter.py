"""A counter that goes on after a crash, and publishes by the clock."""

from __future__ import annotations

from typing import final

from numpy.typing import ArrayLike

from partita.streams.base import Running
from partita.streams.durable.durable_stream import DurableStream
from partita.streams.durable.events import Name
from partita.streams.durable.feeding import Times, by_period
from partita.streams.durable.outputs import Output

__all__ = ["DurableCounter"]


@final
class DurableCounter(DurableStream[Output]):
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
        first, counts = by_period(times, self.settings.schedule, start=start, end=end)
        self._feed_stretch(feeder, first, counts[:, None])
