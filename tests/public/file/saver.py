"""Save a release, and die on the way: python -m tests.public.file.saver FROM FOLDER MODE.

For each folder 0, 1, 2, ... in FOLDER a process of its own saves the release to `a.parquet` there and
kills itself before that call to the operating system; how each ended is printed. MODE is "new" or
"overwrite"; with "forever" one process saves again and again, and says so after each time.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from partita.public import file
from partita.public.file import encode, load, save

CALLS = ("open", "fsync", "link", "replace", "unlink", "close")


def main(source: str, folder: str, mode: str) -> None:
    """Save what is in one file to others."""
    release = load(source)
    while mode == "forever":
        save(release, Path(folder) / "a.parquet", overwrite=True)
        print("saved", flush=True)
    data = encode(release)
    vars(file)["encode"] = lambda release: data  # a fork must not run Arrow's threads
    for step in range(len(os.listdir(folder))):
        child = os.fork()
        if not child:
            doom(step)
            save(release, Path(folder) / str(step) / "a.parquet", overwrite=mode == "overwrite")
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def doom(step: int) -> None:
    """Let this process die before the call with this number."""
    steps = count()
    for name in CALLS:
        setattr(os, name, deadly(getattr(os, name), steps, step))


def deadly(call: Callable[..., Any], steps: count[int], last: int) -> Callable[..., Any]:
    """The same call, unless its time has come."""

    def counted(*arguments: Any, **named: Any) -> Any:
        if next(steps) == last:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*arguments, **named)

    return counted


if __name__ == "__main__":
    main(*sys.argv[1:])
