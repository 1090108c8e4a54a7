"""What a source is, and what its readers share: files, column names, and errors that hide their cause.

Errors of other libraries may carry rows of data, so none is ever shown, logged or chained.
"""

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
"""Device, inode, size and modification time of a file."""

Table: TypeAlias = Any
"""A pyarrow.Table."""

T = TypeVar("T")

_LONGEST_LABEL: Final = 80  # characters of a path that an error shows
_LONGEST_PATH: Final = 255  # a longer text is not a path but data, and is never shown
_MOST_NAMES: Final = 8  # column names that an error lists
_INTERRUPTED: Final = ("Query interrupted", "KeyboardInterrupt")
"""How the texts of DuckDB and Arrow end when a Ctrl-C came while they were at work."""


@runtime_checkable
class Source(Protocol):
    """Where rows are. Its one duty is an exact grouped count."""

    def counts(self, keys: Sequence[str], sums: Sequence[str] = ()) -> Table:
        """One row for each distinct combination of raw values in the columns `keys`.

        The key columns come first, in the given order; then `count` as int64; then, for each
        column of integers in `sums`, its exact sum as decimal128(38, 0), without nulls. Rows
        are in ascending order of the keys, NaN after all numbers and null after everything.
        Key columns have one of these types, on every engine: bool, int64, uint64, float64
        (one zero, one NaN), decimal128(38, s), large_binary (all text, as UTF-8), date32, date64
        and timestamp (its zone, where it has one, called UTC); a list of Python values has the type
        `sources.arrow.PYTHON`.
        """


class Batches(NamedTuple):
    """Columns of rows, some thousands at a time."""

    schema: Any
    batches: Iterator[Any]


class Rows(Protocol):
    """Rows in some container, which can be read again, a few columns at a time."""

    def read(self, columns: Sequence[str]) -> Batches:
        """These columns, in this order; a missing column is a SourceError."""


@dataclass(frozen=True)
class File:
    """A regular file as it was when the source was opened.

    `shown` names the path or pattern that the caller gave. A file name that a pattern matched may hold
    the name of a person, and stays out of errors.
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
        """The bytes of the file, decompressed; afterwards it must still be the same file."""
        self.check()
        try:
            with open(self.path, "rb") as raw:
                yield cast(BinaryIO, gzip.GzipFile(fileobj=raw) if self.compressed else raw)
        except (OSError, EOFError, zlib.error):
            raise _unreadable(self.shown) from None
        self.check()

    def check(self) -> None:
        """Raise SourceError if the file has changed since the source was opened."""
        rule, fix = "must not change while it is being read", "open the source again once nobody writes to it"
        check_source(_status(self.path) == self.identity, self.shown, rule, fix=fix)


def find_files(data: object) -> list[File]:
    """The files that a path, a pattern or a list of them names, each once, in a fixed order."""
    given = [data] if isinstance(data, (str, os.PathLike)) else cast(Sequence[object], data)
    files: dict[tuple[int, int], File] = {}
    for item in given:
        for file in _match(_check_path(item)):
            files.setdefault(file.identity[:2], file)
    return sorted(files.values(), key=lambda file: file.path)


def _check_path(item: object) -> str:
    path = os.fspath(item) if isinstance(item, (str, os.PathLike)) else None
    if not isinstance(path, str) or not path:
        raise InvalidParameter("data", "must be paths of files", given=item, fix='pass "people.parquet"')
    check_source("\0" not in path, _label(path), "must be a path", fix='pass for example "people.parquet"')
    return path


def _match(path: str) -> list[File]:
    label = _label(path)
    if os.path.lexists(path) or not glob.has_magic(path):
        return [File(path, label, _identify(path, label))]
    found = [match for match in glob.glob(path, recursive=True) if os.path.isfile(match)]
    check_source(found, label, "matches no file", fix="check the pattern and the working directory")
    return [File(match, label, _identify(match, label)) for match in found]


def _identify(path: str, label: str) -> Identity:
    """The identity of a regular, readable file; a SourceError if it is not one."""
    fix = 'name the files in it, for example "people/*.parquet"'
    check_source(not os.path.isdir(path), label, "is a directory", fix=fix)
    fix = "check the path and the working directory"
    check_source(os.path.exists(path), label, "does not exist", fix=fix)
    if not stat.S_ISREG(os.stat(path).st_mode) or not os.access(path, os.R_OK):
        raise _unreadable(label)
    return cast(Identity, _status(path))


def _status(path: str) -> Identity | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _unreadable(label: str) -> SourceError:
    fix = "check its permissions and that it is complete"
    return SourceError(label, "must be a whole file that you may read", fix=fix)


def _label(path: str) -> str:
    """The path as errors name it; a text that looks like rows, passed by mistake, is not shown at all."""
    if len(path) > _LONGEST_PATH or not path.isprintable():
        return "data"
    tail = path if len(path) <= _LONGEST_LABEL else f"...{path[-_LONGEST_LABEL:]}"
    return f"data {tail!r}"


# Column names are public: an error may show them, and suggest the one that was meant. The exception is the
# first line of a CSV file: it is a person's row if the file has no header, so nothing of it is shown.
def check_column_names(names: object, parameter: str) -> list[str]:
    """A list of column names without repeats."""
    if isinstance(names, (str, bytes)) or not isinstance(names, Sequence):
        raise InvalidParameter(parameter, "must be a list of column names", given=names, fix='pass ["age"]')
    for name in names:
        check(isinstance(name, str), parameter, "must be column names", given=name, fix="pass them as text")
        fix = "leave one out"
        check(list(names).count(name) <= 1, parameter, "must name each column once", given=name, fix=fix)
    return list(names)


def locate_columns(wanted: Sequence[str], present: Sequence[str], *, listed: bool = True) -> list[int]:
    """Where each wanted column is among those present, which an error lists unless `listed` is False.

    >>> locate_columns(["age"], ["id", "age"])
    [1]
    >>> locate_columns(["agge"], ["id", "age"])
    Traceback (most recent call last):
        ...
    partita.errors.SourceError: column 'agge' is not in the data; did you mean 'age'?
    """
    for name in wanted:
        if name not in present:
            raise SourceError(f"column {name!r}", "is not in the data", fix=_suggest(name, present, listed))
        fix = "rename all but one"
        check_source(present.count(name) == 1, f"column {name!r}", "is in the data more than once", fix=fix)
    return [present.index(name) for name in wanted]


def _suggest(name: str, present: Sequence[str], listed: bool) -> str:
    if not listed:
        return "check the spelling, or declare header=[...] if the file has no line of column names"
    if near := get_close_matches(name, present, n=1, cutoff=0.5):
        return f"did you mean {near[0]!r}?"
    more = " and so on" if len(present) > _MOST_NAMES else ""
    return (
        f"choose among {', '.join(map(repr, present[:_MOST_NAMES]))}{more}"
        if present
        else "it has no columns"
    )


def attempt(work: Callable[[], T], failure: SourceError) -> T:
    """The result of `work`; if it fails, `failure`, which knows nothing of the cause.

    Errors are raised outside of the handler, so that not even their context holds the cause. A Ctrl-C
    that a library turned into an error of its own becomes a Ctrl-C again.
    """
    try:
        return work()
    except PartitaError:
        raise
    except Exception as error:
        interrupted = _is_interrupt(error)
    raise KeyboardInterrupt if interrupted else failure


def _is_interrupt(error: Exception) -> bool:
    """Whether the text of an error ends like that of an interrupt; no code of the error object runs."""
    text = error.args[-1] if error.args else None
    return isinstance(text, str) and text.rstrip().endswith(_INTERRUPTED)


def attempt_each(items: Iterator[T], failure: SourceError) -> Iterator[T]:
    """The same items; `failure` if one cannot be read, as in `attempt`."""
    while (item := attempt(lambda: next(items, None), failure)) is not None:
        yield item
