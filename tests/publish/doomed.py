"""A process that publishes and may be killed on the way: python doomed.py FOLDER KEY PATH [STEP MOMENT].

STEP is a name in `STEPS`; MOMENT is "before" or "after" it, when the process kills itself. It prints what
became of the call, and whether noise was drawn.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from partita.domain import Integer
from partita.errors import PartitaError
from partita.ledger.ledger import Ledger
from partita.publish import publish as making
from partita.publish import publish as pipeline
from partita.publish.publish import publish
from partita.storage import Temporary

STEPS: dict[str, tuple[Any, str]] = {
    "count": (pipeline, "count"),
    "debit": (Ledger, "debit"),
    "draw": (pipeline, "draw"),
    "write": (Temporary, "write"),
    "commit": (Temporary, "commit"),
    "mark": (Ledger, "mark_done"),
}


def kill_at(step: str, moment: str) -> None:
    owner, name = STEPS[step]
    original = getattr(owner, name)

    def deadly(*arguments: Any, **named: Any) -> Any:
        if moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        original(*arguments, **named)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(owner, name, deadly)


def watch_draws(drawn: list[str]) -> None:
    original = making.draw

    def watched(*arguments: Any) -> Any:
        drawn.append("drawn")
        return original(*arguments)

    vars(pipeline)["draw"] = watched


def main(folder: str, key: str, path: str, *death: str) -> None:
    drawn: list[str] = []
    watch_draws(drawn)
    if death:
        kill_at(*death)
    try:
        publish(
            {"age": [30] * 100},
            {"age": Integer(0, 9)},
            epsilon=1,
            mechanism="tree",
            ledger=Ledger(Path(folder) / "budget.db", patience=300),
            dataset="people",
            key=key or None,
            path=Path(folder) / path,
        )
    except PartitaError as error:
        print(type(error).__name__, *drawn)
    else:
        print("published", *drawn)


if __name__ == "__main__":
    main(*sys.argv[1:])
