"""A counter on a disk that is full for a while: python full.py FOLDER ROOM.

No file may grow beyond ROOM bytes more than the secret one has; then it may.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path

from partita.errors import PartitaError
from partita.testing import ZeroNoise
from partita.trusted.durable.open import open_counter
from partita.trusted.durable.stream import DurableCounter

TURNS = 60


def limit(size: int) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))


def totals(counter: DurableCounter) -> list[int]:
    return [int(output.value) for output in counter.outputs()]


def main(folder: str, room: str) -> None:
    errors, sent = [], 0
    with open_counter(
        Path(folder) / "visits", epsilon=1, period=1, start=0, now=0, noise=ZeroNoise()
    ) as counter:
        limit(1024 + int(room))
        for turn in range(1, TURNS + 1):
            for act in (
                lambda turn=turn: counter.add(turn, feeder="gate", sequence=turn),
                lambda turn=turn: counter.tick(now=turn),
            ):
                try:
                    act()
                except PartitaError as error:
                    errors.append(type(error).__name__)
        before = totals(counter)
        limit(resource.RLIM_INFINITY)
        for turn in range(1, TURNS + 1):
            counter.add(turn, feeder="gate", sequence=turn)
            sent += turn
        counter.tick(now=TURNS + 1)
        outputs = totals(counter)
    print(json.dumps({"errors": errors, "before": before, "outputs": outputs, "sent": sent}))


if __name__ == "__main__":
    main(*sys.argv[1:])
