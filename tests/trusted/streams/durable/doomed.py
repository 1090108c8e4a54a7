"""Lives that end where a file changes: python doomed.py FOLDER NOISE MECHANISM END STRIDE [BUG].

Run with `kill.c` preloaded. Each life is a fork that opens a counter, feeds it and ticks, and is killed at
one point; a second life opens what is left and goes on: its feeder sends what was not acknowledged. If END
is `cut` and not `kill`, the power fails too, and nothing is left but what was synced. One line of JSON for
each point says what the world saw of both. BUG is the name of a fault in `PLANTED`.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from partita.errors import PartitaError
from partita.ledger.ledger import Ledger
from partita.public.streams import AnyOutput, read_outputs
from partita.testing import ZeroNoise
from partita.trusted.durable.events import Event
from partita.trusted.durable.open import open_counter, open_family
from partita.trusted.durable.stream import DurableCounter, DurableFamily
from tests.trusted.streams.durable.planted import PLANTED

PERIODS = 3
NEVER = 10**9
NOISES: dict[str, Any] = {"none": ZeroNoise(), "system": None}


KEYS = ("south", "north")
"""Not as a dictionary would have them."""


def deliveries(period: int, mechanism: str) -> list[list[Event]]:
    """What the feeders send in a period: an event, and a batch; a pan-private counter takes no names."""
    if mechanism == "family":
        return [
            [Event("a", 2 * period, {"north": 1})],
            [Event("a", 2 * period + 1, {"south": 1}), Event("b", f"of {period}", {"north": 1, "south": 2})],
        ]
    sent = [[Event("a", 2 * period)], [Event("a", 2 * period + 1), Event("b", f"of {period}", 3)]]
    if mechanism == "pan-private":
        return [[Event(None, None, event.count) for event in events] for events in sent]
    return sent


def totals(mechanism: str) -> str:
    """What all of it adds up to: for each key, or at once."""
    return f"{3 * PERIODS} {2 * PERIODS}" if mechanism == "family" else str(5 * PERIODS)


def written(output: AnyOutput) -> str:
    """An output as text: all keys in their order."""
    return " ".join(map(str, output.exact.values() if isinstance(output.exact, dict) else [output.exact]))


@dataclass(frozen=True)
class Doomed:
    """What all lives have in common."""

    folder: Path
    noise: str
    mechanism: str
    end: str
    shim: Any = field(default_factory=lambda: ctypes.CDLL(None))

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.folder / "budget.db")

    @property
    def safe(self) -> Path:
        """Where that is kept which survives a power cut."""
        return self.folder.with_name("safe")

    def opened(self) -> DurableCounter | DurableFamily:
        usual: dict[str, Any] = {
            "epsilon": 1,
            "period": 1,
            "start": 0,
            "now": 0,
            "horizon": PERIODS,
            "ledger": self.ledger,
            "dataset": "visits",
            "noise": NOISES[self.noise],
        }
        if self.mechanism == "family":
            return open_family(self.folder / "visits", keys=KEYS, **usual)
        return open_counter(self.folder / "visits", mechanism=self.mechanism, **usual)

    def two_lives(self, point: int) -> dict[str, Any]:
        """A life that ends at a point, and one after it."""
        for folder in (self.folder, self.safe):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        if self.end == "cut":
            self.shim.keep(bytes(self.safe))
        self.ledger.open("visits", epsilon=1, unit="event")
        first = self.forked(point, set())
        saw = self.seen()
        if self.end == "cut":
            self.cut_power()
        second = self.forked(NEVER, {words[1] for words in first["said"] if words[0] == "added"})
        entries = [entry.state for entry in self.ledger.entries("visits")]
        return {"first": first, "saw": saw, "second": second, "left": self.seen(), "entries": entries}

    def cut_power(self) -> None:
        """Leave each name that was synced, with what its file held when it was last synced."""
        shutil.rmtree(self.folder)
        self.folder.mkdir()
        for line in (self.safe / "names").read_text().splitlines():
            inode, name = line.split(" ", 1)
            kept = self.safe / inode
            (self.folder / name).write_bytes(kept.read_bytes() if kept.exists() else b"")
            (self.folder / name).chmod(0o600)

    def forked(self, point: int, acknowledged: set[str]) -> dict[str, Any]:
        """What a life said, and how it ended."""
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(reading)
            self.live(point, acknowledged, writing)
            os._exit(0)
        os.close(writing)
        with open(reading, encoding="utf-8") as lines:
            said = [json.loads(line) for line in lines if line.endswith("\n")]
        return {"said": said, "status": os.waitpid(child, 0)[1]}

    def live(self, point: int, acknowledged: set[str], voice: int) -> None:
        def say(*words: object) -> None:
            os.write(voice, (json.dumps(words) + "\n").encode())

        self.shim.arm(ctypes.c_long(point))
        try:
            with self.opened() as counter:
                _feed_and_tick(counter, acknowledged, say)
        except PartitaError as error:
            say("error", type(error).__name__, str(error))
        diary = self.shim.diary
        diary.restype = ctypes.c_char_p
        say("passed", self.shim.passed(), diary().decode())

    def seen(self) -> list[list[Any]]:
        """What anybody can read, as soon as the process is dead."""
        if not (self.folder / "visits.outputs").exists():
            return []
        return [[output.period, written(output)] for output in read_outputs(self.folder / "visits").outputs]


def _feed_and_tick(
    counter: DurableCounter | DurableFamily, acknowledged: set[str], say: Callable[..., None]
) -> None:
    """Feed what was not acknowledged, and tick; say what came back at once."""
    for period in range(1, PERIODS + 1):
        for place, events in enumerate(deliveries(period, counter.settings.mechanism)):
            name = f"{period}.{place}"
            if name not in acknowledged and counter.periods < PERIODS:
                counter.add_many(events)
                say("added", name)
        if counter.periods < period:
            for output in counter.tick(now=period):
                say("output", output.period, written(output))


def histories(doomed: Doomed, stride: int) -> Iterator[dict[str, Any]]:
    """First an undisturbed life, then one that ends at each point it passed."""
    whole = doomed.two_lives(NEVER)
    yield whole
    for point in range(1, int(whole["first"]["said"][-1][1]) + 1, stride):
        yield doomed.two_lives(point)


def main(folder: str, noise: str, mechanism: str, end: str, stride: str, bug: str = "") -> None:
    if bug:
        PLANTED[bug]()
    for history in histories(Doomed(Path(folder) / "life", noise, mechanism, end), int(stride)):
        print(json.dumps(history), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
