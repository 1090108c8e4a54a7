"""Files of a source: found, told apart, and watched for changes while they are read."""

from __future__ import annotations

import glob
import gzip
import os
import stat
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, BinaryIO, Final, NamedTuple, Protocol, TypeAlias, TypeVar, cast, runtime_checkable

from partita.errors import InvalidParameter, PartitaError, SourceError, check, check_source

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


# Column names are public: an error may show them, and suggest the one that was meant.
#
# But for the first line of a CSV file, which is a person's row where somebody forgot that there is no
# header: nothing of it is shown.


_SHOWN = 8


def checked(names: object, parameter: str) -> list[str]:
    """A list of column names, each named once."""
    if isinstance(names, (str, bytes)) or not isinstance(names, Sequence):
        raise InvalidParameter(parameter, "must be a list of column names", given=names, fix='pass ["age"]')
    for name in names:
        check(isinstance(name, str), parameter, "must be column names", given=name, fix="pass them as text")
        fix = "leave one out"
        check(list(names).count(name) <= 1, parameter, "must name each column once", given=name, fix=fix)
    return list(names)


def positions(wanted: Sequence[str], present: Sequence[str], *, listed: bool = True) -> list[int]:
    """Where each wanted column is among those present, which an error lists unless `listed` is False.

    >>> positions(["age"], ["id", "age"])
    [1]
    >>> positions(["agge"], ["id", "age"])
    Traceback (most recent call last):
        ...
    partita.errors.SourceError: column 'agge' is not in the data; did you mean 'age'?
    """
    return [_position(name, present, listed) for name in wanted]


def _position(name: str, present: Sequence[str], listed: bool) -> int:
    if name not in present:
        raise SourceError(f"column {name!r}", "is not in the data", fix=_nearest(name, present, listed))
    if present.count(name) > 1:
        raise SourceError(f"column {name!r}", "is in the data more than once", fix="rename all but one")
    return present.index(name)


def _nearest(name: str, present: Sequence[str], listed: bool) -> str:
    if not listed:
        return "check the spelling, or declare header=[...] if the file has no line of column names"
    if near := get_close_matches(name, present, n=1, cutoff=0.5):
        return f"did you mean {near[0]!r}?"
    more = " and so on" if len(present) > _SHOWN else ""
    return f"choose among {', '.join(map(repr, present[:_SHOWN]))}{more}" if present else "it has no columns"


# What a source is, and what the readers behind one hand over.


Table: TypeAlias = Any
"""A pyarrow.Table."""


@runtime_checkable
class Source(Protocol):
    """Where rows are. Its one duty is an exact grouped count."""

    def counts(self, keys: Sequence[str], sums: Sequence[str] = ()) -> Table:
        """One row for each distinct combination of raw values in the columns `keys`.

        The key columns come first, in the order asked; then `count` as int64; then, for each
        column of integers in `sums`, its exact sum as decimal128(38, 0), nulls left out. Rows
        are in ascending order of the keys, NaN after all numbers and null after everything.
        Key columns have one of these types, on every engine: bool, int64, uint64, float64
        (one zero, one NaN), decimal128(38, s), large_binary (all text, as UTF-8), date32, date64
        and timestamp (its zone, where it has one, called UTC); a list of Python values stays one,
        in `sources.python.PYTHON`.
        """


class Batches(NamedTuple):
    """Columns of rows, some thousands at a time."""

    schema: Any
    batches: Iterator[Any]


class Rows(Protocol):
    """Rows in some container, which can be read again, a few columns at a time."""

    def read(self, columns: Sequence[str]) -> Batches:
        """The columns asked for, in that order; a column that is not there is a SourceError."""


# Errors of other libraries carry rows of data, so none is ever shown, logged or chained.


T = TypeVar("T")

_INTERRUPTED: Final = ("Query interrupted", "KeyboardInterrupt")
"""How the texts of DuckDB and Arrow end when a Ctrl-C came while they were at work."""


def attempt(work: Callable[[], T], failure: SourceError) -> T:
    """The result of `work`; if it fails, `failure`, which knows nothing of the cause.

    Errors are raised outside of the handler, so that not even their context holds the cause. A Ctrl-C
    that a library has made an error of its own is a Ctrl-C again.
    """
    try:
        return work()
    except PartitaError:
        raise
    except Exception as error:
        interrupted = _is_interrupt(error)
    raise KeyboardInterrupt if interrupted else failure


def _is_interrupt(error: Exception) -> bool:
    """Whether the text of an error ends as an interrupted one does; no code of the error is run."""
    text = error.args[-1] if error.args else None
    return isinstance(text, str) and text.rstrip().endswith(_INTERRUPTED)


def quietly(items: Iterator[T], failure: SourceError) -> Iterator[T]:
    """The same items; if the next one cannot be had, `failure`."""
    while (item := attempt(lambda: next(items, None), failure)) is not None:
        yield item
