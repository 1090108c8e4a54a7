"""Paths and bytes on the disk, and what is said if the disk refuses."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from partita.errors import InvalidParameter, StreamError

__all__ = ["base_path", "disk", "failed", "with_suffix"]

_SECRET: Final = ".db"
_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def base_path(path: object) -> Path:
    """The name of a counter as a path: "visits" or "visits.db" for visits.db and visits.outputs."""
    if isinstance(path, (str, os.PathLike)):
        text = os.fspath(path)
        if isinstance(text, str) and Path(text).name and "\0" not in text:
            return Path(os.path.realpath(text.removesuffix(_SECRET)))
    raise InvalidParameter(
        "path", "must be the path of a counter", given=path, fix='pass for example "visits"'
    )


def with_suffix(base: Path, suffix: str) -> Path:
    """visits.v2 with .db is visits.v2.db."""
    return base.with_name(base.name + suffix)


@contextmanager
def disk(path: Path) -> Iterator[None]:
    """What the system says about a file, as a `StreamError`."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise failed(path, "cannot grow: the disk is full", "free some space") from None
        raise failed(path, f"could not be read or written ({error.strerror})", "check the disk") from None


def failed(path: Path, rule: str, fix: str) -> StreamError:
    """An error about one file of a counter."""
    return StreamError(f"counter file {str(path)!r} {rule}; {fix}")
