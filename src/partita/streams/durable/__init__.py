"""Counters that survive crashes and publish by the clock: a secret file and a public one.

    clock            public time: periods, and what people write for them
    settings         what a counter was opened with
    events           what is fed: counted once each
    outputs          the public file, a record for each period
    files, lock      paths, what is said if the disk refuses, and the one writer
    schema, database, journal    the secret file in SQLite
    slots            the secret file of a pan-private counter
    keeper           what both have in common
    account          what the ledger knows: one debit, and how far it got
    recovery         what is published again, and what is refused
    feeding          events that lie ready with their times
    running, turns   the clock, and that nobody holds it up
    durable_counter  `DurableCounter`, which puts them together
    opening          `open_counter`, `resume_counter`, `read_outputs`

Why no period is ever published with two noises: docs/decisions/durable-counters.md
"""

from __future__ import annotations

from partita.streams.durable.durable_counter import DurableCounter
from partita.streams.durable.events import Event
from partita.streams.durable.opening import Published, open_counter, read_outputs, resume_counter
from partita.streams.durable.outputs import Output

__all__ = [
    "DurableCounter",
    "Event",
    "Output",
    "Published",
    "open_counter",
    "read_outputs",
    "resume_counter",
]
