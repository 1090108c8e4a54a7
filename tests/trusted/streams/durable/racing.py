"""Eight processes that open one counter at the same time: python racing.py FOLDER."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from partita.errors import PartitaError
from partita.ledger.ledger import Ledger
from partita.trusted.durable.open import open_counter

PROCESSES = 8


def race(folder: Path) -> dict[str, Any]:
    """What a process got: outputs, or an error."""
    try:
        with open_counter(
            folder / "visits",
            epsilon=1,
            period=1,
            start=0,
            now=0,
            ledger=Ledger(folder / "budget.db"),
            dataset="visits",
        ) as counter:
            counter.tick(now=3)
            outputs = [[output.period, str(output.exact)] for output in counter.outputs()]
    except PartitaError as error:
        return {"error": type(error).__name__, "outputs": []}
    return {"error": None, "outputs": outputs}


def main(folder: Path) -> None:
    folder.mkdir()
    ledger = Ledger(folder / "budget.db")
    ledger.open("visits", epsilon=1, unit="event")
    waiting, starting = os.pipe()
    children = [os.fork() for _ in range(PROCESSES) if os.getpid() == PARENT]
    if os.getpid() != PARENT:
        os.close(starting)
        os.read(waiting, 1)
        os.write(sys.stdout.fileno(), (json.dumps(race(folder)) + "\n").encode())
        os._exit(0)
    os.close(starting)
    for child in children:
        os.waitpid(child, 0)
    last = race(folder) | {"entries": [entry.state for entry in ledger.entries("visits")]}
    print(json.dumps(last))


PARENT = os.getpid()

if __name__ == "__main__":
    main(Path(sys.argv[1]))
