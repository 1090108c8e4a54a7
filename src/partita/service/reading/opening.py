"""Release files of one folder, by name: regular files only, and nothing that a link leads to."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final, NamedTuple

from partita.service.settings import NAME

__all__ = ["SUFFIX", "Identity", "identity", "names", "opened"]

SUFFIX: Final = ".release.parquet"
_LOOK: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW


class Identity(NamedTuple):
    """What tells a file from one that takes its place."""

    device: int
    inode: int
    size: int
    modified: int

    @staticmethod
    def of(about: os.stat_result) -> Identity | None:
        """That of a regular file; None for anything else."""
        if not stat.S_ISREG(about.st_mode):
            return None
        return Identity(about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns)


def names(folder: Path) -> list[str]:
    """Every name that a file of the folder has, in order; a folder that is gone has none."""
    try:
        with os.scandir(folder) as entries:
            found = [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
    except OSError:
        return []
    stems = (name.removesuffix(SUFFIX) for name in found if name.endswith(SUFFIX))
    return sorted(filter(NAME.fullmatch, stems))


def identity(folder: Path, name: str) -> Identity | None:
    """That of the file of this name; a name that none can have does not reach the disk."""
    if not NAME.fullmatch(name):
        return None
    try:
        return Identity.of(os.lstat(_path(folder, name)))
    except OSError:
        return None


def opened(folder: Path, name: str) -> tuple[int, Identity] | None:
    """A handle to the file of this name and what it is; the caller closes it. None if there is none."""
    if not NAME.fullmatch(name):
        return None
    try:
        handle = os.open(_path(folder, name), _LOOK)
    except OSError:
        return None
    found = Identity.of(os.fstat(handle))
    if found is None:
        os.close(handle)
        return None
    return handle, found


def _path(folder: Path, name: str) -> str:
    return f"{folder}/{name}{SUFFIX}"
