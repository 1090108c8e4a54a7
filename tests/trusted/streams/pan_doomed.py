"""A process that saves states and is killed on the way: python pan_doomed.py PATH CALL.

It saves the states "state 1", "state 2", ... under these numbers, prints each number when its save has
returned, and kills itself right before the CALL-th system call that writes or syncs the file.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from partita.trusted.durable.slots import PanStore


def main(path: str, call: str) -> None:
    with PanStore(path) as store:
        _die_before(int(call))
        for number in range(1, 100):
            store.save(f"state {number}".encode(), sequence=number)
            print(number, flush=True)


def _die_before(last: int) -> None:
    calls = [0]

    def deadly(original: Any) -> Any:
        def called(*arguments: Any) -> Any:
            calls[0] += 1
            if calls[0] == last:
                os.kill(os.getpid(), signal.SIGKILL)
            return original(*arguments)

        return called

    for name in ("pwrite", "fsync"):
        setattr(os, name, deadly(getattr(os, name)))


if __name__ == "__main__":
    main(*sys.argv[1:])
