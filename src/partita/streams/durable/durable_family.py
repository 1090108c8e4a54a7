"""A counter for each of some public keys that go on after a crash, and publish by one clock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from partita.errors import InvalidData
from partita.streams.base import Running
from partita.streams.durable.durable_stream import DurableStream
from partita.streams.durable.events import Name
from partita.streams.durable.feeding import Times, by_period
from partita.streams.durable.outputs import FamilyOutput

__all__ = ["DurableFamily"]


@final
class DurableFamily(DurableStream[FamilyOutput]):
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
        if not self.settings.places.keys() >= times.keys():
            raise InvalidData("times", "must be under keys of the family", fix="use those of settings.keys")
        columns = [
            by_period(times.get(key, ()), self.settings.schedule, start=start, end=end) for key in self.keys
        ]
        self._feed_stretch(feeder, columns[0][0], np.stack([counts for _, counts in columns], axis=1))
