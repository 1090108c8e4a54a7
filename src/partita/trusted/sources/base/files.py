"""Files of a source: found, told apart, and watched for changes while they are read."""

from __future__ import annotations

import glob
import gzip
import os
import stat
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO, Final, TypeAlias, cast

from partita.errors.checks import check_source
from partita.errors.errors import InvalidParameter, SourceError

Identity: TypeAlias = tuple[int, int, int, int]

_LONGEST_SHOWN: Final = 80
_LONGEST_PATH: Final = 255


@dataclass(frozen=True)
class File:
    """A regular file as it was when the source was opened.

    `shown` is the path or pattern that the caller gave: what a pattern matched may hold names
    of people, and stays out of errors.
    """

    path: str
    shown: str
    identity: Identity

    @property
    def extension(self) -> str:
        """The ending of the name, in lower case, without .gz."""
        return os.path.splitext(self.path.lower().removesuffix(".gz"))[1]

    @property
    def compressed(self) -> bool:
        """Whether the name ends in .gz."""
        return self.path.lower().endswith(".gz")

    @contextmanager
    def reading(self) -> Iterator[BinaryIO]:
        """The bytes of the file, unpacked; it must still be the same file in the end."""
        self.check()
        try:
            with open(self.path, "rb") as raw:
                yield cast(BinaryIO, gzip.GzipFile(fileobj=raw) if self.compressed else raw)
        except (OSError, EOFError, zlib.error):
            raise _unreadable(self.shown) from None
        self.check()

    def check(self) -> None:
        """Refuse a file that is not what it was when the source was opened."""
        rule, fix = "must not change while it is being read", "open the source again once nobody writes to it"
        check_source(_status(self.path) == self.identity, self.shown, rule, fix=fix)


def find(data: object) -> list[File]:
    """The files that a path, a pattern or a list of them names, each once, in a fixed order."""
    given = [data] if isinstance(data, (str, os.PathLike)) else cast(Sequence[object], data)
    files: dict[tuple[int, int], File] = {}
    for item in given:
        for file in _matches(_path(item)):
            files.setdefault(file.identity[:2], file)
    return sorted(files.values(), key=lambda file: file.path)


def _path(item: object) -> str:
    path = os.fspath(item) if isinstance(item, (str, os.PathLike)) else None
    if not isinstance(path, str) or not path:
        raise InvalidParameter("data", "must be paths of files", given=item, fix='pass "people.parquet"')
    if "\0" in path:
        raise SourceError(_shown(path), "must be a path", fix='pass for example "people.parquet"')
    return path


def _matches(path: str) -> list[File]:
    shown = _shown(path)
    if os.path.lexists(path) or not glob.has_magic(path):
        return [File(path, shown, _regular(path, shown))]
    found = [match for match in glob.glob(path, recursive=True) if os.path.isfile(match)]
    check_source(found, shown, "matches no file", fix="check the pattern and the working directory")
    return [File(match, shown, _regular(match, shown)) for match in found]


def _regular(path: str, shown: str) -> Identity:
    fix = 'name the files in it, for example "people/*.parquet"'
    check_source(not os.path.isdir(path), shown, "is a directory", fix=fix)
    fix = "check the path and the working directory"
    check_source(os.path.exists(path), shown, "does not exist", fix=fix)
    if not stat.S_ISREG(os.stat(path).st_mode) or not os.access(path, os.R_OK):
        raise _unreadable(shown)
    return cast(Identity, _status(path))


def _status(path: str) -> Identity | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _unreadable(shown: str) -> SourceError:
    fix = "check its permissions and that it is complete"
    return SourceError(shown, "must be a whole file that you may read", fix=fix)


def _shown(path: str) -> str:
    """The path as errors name it; one that looks like rows, handed in by mistake, is not shown at all."""
    if len(path) > _LONGEST_PATH or not path.isprintable():
        return "data"
    tail = path if len(path) <= _LONGEST_SHOWN else f"...{path[-_LONGEST_SHOWN:]}"
    return f"data {tail!r}"
