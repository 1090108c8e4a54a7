"""A private directory for what does not fit into memory, gone when the work is done.

Each directory has a file that its process keeps locked. The kernel drops the lock when the
process dies, however it dies, and the next one to need a directory removes those without
a living owner. The lock is taken before the file gets its name, so a directory being made is
never mistaken for an abandoned one.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

PREFIX: Final = "partita-scratch-"
_LOCK: Final = "lock"
_UNBORN_SECONDS: Final = 3600


@contextmanager
def scratch() -> Iterator[Path]:
    """A fresh directory that only this user can enter, removed in the end."""
    sweep()
    directory = Path(tempfile.mkdtemp(prefix=PREFIX))
    try:
        descriptor = _locked(directory)
        try:
            yield directory
        finally:
            os.close(descriptor)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def sweep() -> None:
    """Remove what dead processes of this user have left behind."""
    for directory in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            if _ours(directory) and _abandoned(directory):
                shutil.rmtree(directory, ignore_errors=True)


def _locked(directory: Path) -> int:
    unnamed = directory / f"{_LOCK}.new"
    descriptor = os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    unnamed.rename(directory / _LOCK)
    return descriptor


def _ours(directory: Path) -> bool:
    status = directory.lstat()
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()


def _abandoned(directory: Path) -> bool:
    try:
        descriptor = os.open(directory / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:
        return time.time() - directory.lstat().st_mtime > _UNBORN_SECONDS
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True
