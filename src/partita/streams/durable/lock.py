"""The lock of a counter: a file of its own that its one writer holds, in whatever way the process ends."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Final, final

from partita.errors import StreamBusy
from partita.streams.durable.files import disk, with_suffix

__all__ = ["Lock", "busy"]

_LOCK: Final = ".lock"
_OPEN: Final = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


@final
class Lock:
    """Held from the beginning; a second one on the same file is a `StreamBusy`.

    SQLite's own locks are given back as soon as anything in the process closes the database, a backup for
    example. This one belongs to a file that nobody has a reason to open, and to a descriptor, not to a
    process. The file stays: to remove it would let two others hold a lock each.
    """

    def __init__(self, path: Path) -> None:
        with disk(path):
            self._file = os.open(with_suffix(path, _LOCK), _OPEN, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.close()
            raise busy(path) from None

    def close(self) -> None:
        """Give it back; in a forked child, leave it to the parent."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def busy(path: Path) -> StreamBusy:
    """What is said to a second writer."""
    return StreamBusy(
        f"counter file {str(path)!r} is open in another process or object; a counter has one "
        "writer, so feed it there, or end that one first"
    )
