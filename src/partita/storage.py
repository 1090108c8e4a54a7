"""Files that survive crashes: SQLite files, the lock of their one writer, and files that appear whole.

A kind of SQLite file is a `SqliteFormat`. It is used in one of two ways:

    transact       one connection for each transaction, for a file that many processes share
    SqliteWriter   one connection and a lock for as long as it is open, for a file that one writer owns

A commit is on disk when it returns. What SQLite or the system reports becomes an error of Partita that names
the path and what to do, and never what was stored.

A file that appears whole is a `Temporary`. It is written beside its path first, under a name of its own, and
its process keeps it locked. The kernel drops the lock when the process dies, however it dies, and the next
process that writes to the folder removes the files of dead processes. A process id would not do: ids are used
again, and mean nothing in another container. Locks are believed on one kernel only, so the name has the id of
the boot, and files from other machines that share the folder are left alone.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import re
import sqlite3
import stat
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from os import PathLike
from pathlib import Path
from sqlite3 import Connection as Connection
from typing import Any, BinaryIO, Final, Literal, Self, TypeAlias, TypeVar, final
from weakref import WeakSet

from partita.errors import InvalidParameter, InvalidRelease, PartitaError, check, check_release

Result = TypeVar("Result")

Problem: TypeAlias = tuple[str, str]
"""What is wrong with a file, and what to do: both stand in the message of an error."""

DURABLE: Final = ("PRAGMA synchronous = FULL", "PRAGMA fullfsync = ON")
"""A commit waits for the disk, on macOS too."""

_ATTEMPTS: Final = 3  # at a file that is busy; each waits for its share of the patience
_STAMPS: Final = ("application_id", "user_version", "journal_mode")
_BUSY: Final = ("SQLITE_BUSY", "SQLITE_LOCKED")
_HELD: Final = (*_BUSY, "SQLITE_PROTOCOL")
_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_DISK_IS_FULL: Final = ("cannot grow: the disk is full", "free some space")
_PROBLEMS: Final[dict[str, Problem]] = {
    "SQLITE_CANTOPEN": ("cannot be opened", "check that it exists, and the permissions of its folder"),
    "SQLITE_PERM": ("cannot be opened", "check its permissions"),
    "SQLITE_READONLY": ("cannot be written", "check the permissions of the file and its folder"),
    "SQLITE_FULL": _DISK_IS_FULL,
    "SQLITE_IOERR": (
        "could not be read or written: the disk reports an error",
        "check the disk and its space",
    ),
}
"""What is wrong with a file that SQLite refuses, by the primary name of SQLite's error."""

_LOCK: Final = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
_OWNER_ONLY: Final = 0o600


class Closing(ABC):
    """What a `with` block closes in the end."""

    @abstractmethod
    def close(self) -> None:
        """Let others open it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Damaged(Exception):
    """A stored value cannot be read; reported like a page that cannot be."""


@final
@dataclass(frozen=True, kw_only=True)
class SqliteFormat:
    """A kind of SQLite file: how it is stamped, its tables and settings, and how errors name it.

    `pragmas` run on every connection, in this order, `build_pragmas` on the one that creates the file.
    `additions` create what files of earlier versions lack; to run them again changes nothing. A file whose
    journal is persistent says so in `journal_mode`, and one that has another is refused.
    """

    name: str
    mark: bytes
    versions: tuple[int, ...]
    schema: str
    additions: tuple[str, ...] = ()
    pragmas: tuple[str, ...] = DURABLE
    build_pragmas: tuple[str, ...] = DURABLE
    journal_mode: Literal["wal"] | None = None
    error: type[PartitaError]
    busy_error: type[PartitaError]
    busy: Problem
    foreign: Problem
    damaged: Problem
    missing: Problem = _PROBLEMS["SQLITE_CANTOPEN"]

    def failure(self, path: Path, rule: str, fix: str) -> PartitaError:
        """An error about one file of this kind."""
        return self.error(f"{self.name} {str(path)!r} {rule}; {fix}")

    def translate(self, path: Path, error: Exception) -> PartitaError:
        """What SQLite reports about a file, as an error that holds nothing of it."""
        name = _primary_name(error)
        if name in _HELD:
            return self.locked(path)
        if name == "SQLITE_CANTOPEN" and not os.path.exists(path):
            return self.failure(path, *self.missing)
        return self.failure(path, *{**_PROBLEMS, "SQLITE_NOTADB": self.foreign}.get(name, self.damaged))

    def locked(self, path: Path) -> PartitaError:
        """The error for the second process that opens the file."""
        rule, fix = self.busy
        return self.busy_error(f"{self.name} {str(path)!r} {rule}; {fix}")

    def create(
        self, path: Path, insert: str = "", values: Sequence[Any] = (), *, version: int | None = None
    ) -> None:
        """Put a new file at the path, whole and with one first row, unless there is one."""
        stamped = self.versions[0] if version is None else version

        def build(name: str) -> None:
            with closing(sqlite3.connect(name, isolation_level=None)) as connection:
                for pragma in self.build_pragmas:
                    connection.execute(pragma)
                connection.executescript(
                    f"BEGIN; PRAGMA application_id = {int.from_bytes(self.mark)};"
                    f"PRAGMA user_version = {stamped}; {self.schema}; COMMIT;"
                )
                if insert:
                    connection.execute(insert, values)

        try:
            place_new_file(path, f".{self.name.split()[0]}.", build)
        except (OSError, sqlite3.Error) as error:
            raise self.failure(path, *_creation_problem(error)) from None

    def connect(self, path: Path, *, timeout: float) -> Connection:
        """A connection with the settings of this kind; only SQLite ever opens the file.

        To close any other descriptor of it would drop the locks that SQLite has on it.
        """
        address = f"{path.as_uri()}?mode=rw"
        connection = sqlite3.connect(
            address, uri=True, timeout=timeout, isolation_level=None, check_same_thread=False
        )
        try:
            for pragma in self.pragmas:
                connection.execute(pragma).fetchall()
        except BaseException:
            connection.close()
            raise
        return connection

    def check_stamps(self, connection: Connection, path: Path) -> None:
        """Refuse a file of another kind, or of a version that is not known; it is not changed."""
        mark, version, journal = (_ask(connection, name) for name in _STAMPS)
        if mark != int.from_bytes(self.mark) or self.journal_mode not in (None, journal):
            raise self.failure(path, *self.foreign)
        if version not in self.versions:
            rule = f"has schema version {version}, not {' or '.join(map(str, self.versions))}"
            raise self.failure(path, rule, "use the Partita that wrote it")

    def check_integrity(self, connection: Connection, path: Path) -> None:
        """Refuse a file in which table and index disagree."""
        if _ask(connection, "integrity_check(1)") != "ok":
            raise self.failure(path, *self.damaged)


def transact(
    format: SqliteFormat,
    path: Path,
    work: Callable[[Connection], Result],
    *,
    write: bool = False,
    patience: float,
) -> Result:
    """What `work` returns in one transaction, once all it wrote is on disk; if it raises, nothing is written.

    Writers come one after the other, and wait for each other for `patience` seconds.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return _attempt(format, path, work, write=write, timeout=patience / _ATTEMPTS)
        except (sqlite3.Error, UnicodeDecodeError, Damaged) as error:
            failure = format.translate(path, error)
            again = _primary_name(error) in _BUSY and attempt < _ATTEMPTS
        if not again:
            break
    raise failure


def _attempt(
    format: SqliteFormat, path: Path, work: Callable[[Connection], Result], *, write: bool, timeout: float
) -> Result:
    with closing(format.connect(path, timeout=timeout)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            format.check_stamps(connection, path)
            result = work(connection)
            connection.execute("COMMIT")
        except BaseException:
            connection.rollback()
            raise
        return result


@final
class SqliteWriter:
    """One connection to a file, and the lock beside it, until `close`: a second writer is refused.

    The system gives the lock back when the process ends, however it ends. A child that is forked from it
    leaves the connection alone: to close it there would remove the log that the parent writes to.
    """

    def __init__(self, format: SqliteFormat, path: Path, *, timeout: float = 0) -> None:
        self.format, self.path = format, path
        try:
            self._lock = FileLock(path)
        except BlockingIOError:
            raise format.locked(path) from None
        except OSError as error:
            raise format.failure(path, *describe_os_error(error)) from None
        try:
            with self._translate_errors():
                self._connection = self._connect(timeout)
        except BaseException:
            self._lock.close()
            raise
        _OPEN.add(self)

    @contextmanager
    def access(self) -> Iterator[Connection]:
        """The connection; each statement is a transaction, and what SQLite reports becomes our error."""
        with self._translate_errors():
            yield self._connection

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """All that is said to the connection is on disk afterwards; if anything fails, nothing is."""
        with self._translate_errors():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    self._connection.rollback()
                raise

    def close(self) -> None:
        """Give the lock back; in a forked child nothing is closed."""
        if self in _OPEN:
            with self._translate_errors():
                self._connection.close()
            _OPEN.discard(self)
            self._lock.close()

    def leave_to_parent(self) -> None:
        """In a child: never close the connection, not even when the process ends."""
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._connection))
        self._lock.close()

    def damaged(self) -> PartitaError:
        """The error for a file that contradicts itself."""
        return self.format.failure(self.path, *self.format.damaged)

    def _connect(self, timeout: float) -> Connection:
        connection = self.format.connect(self.path, timeout=timeout)
        try:
            self.format.check_stamps(connection, self.path)
            self.format.check_integrity(connection, self.path)
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError, Damaged) as error:
            raise self.format.translate(self.path, error) from None


_OPEN: Final[WeakSet[SqliteWriter]] = WeakSet()
"""Those that this process has opened, and not a parent of it."""


def _leave_all_to_parent() -> None:
    for writer in list(_OPEN):
        writer.leave_to_parent()
    _OPEN.clear()


os.register_at_fork(after_in_child=_leave_all_to_parent)


@final
class FileLock:
    """A lock on the file with ".lock" after its name, held from the beginning until `close`.

    SQLite's own locks are given back as soon as anything in the process closes the database, a backup for
    example. This one belongs to a file that nobody has a reason to open, and to a descriptor, not to a
    process. The file stays: to remove it would let two others hold a lock each. A lock that another holds is
    waited for, or is a `BlockingIOError`.
    """

    def __init__(self, path: Path, *, wait: bool = False) -> None:
        self._file = os.open(path.with_name(f"{path.name}.lock"), _LOCK, _OWNER_ONLY)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Give it back; in a forked child, leave it to the parent."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def place_new_file(path: Path, prefix: str, build: Callable[[str], None]) -> None:
    """Build a file, whole and for its owner only; keep one that is there.

    It is built under another name and linked into place, so it is never seen half written.
    """
    handle, name = tempfile.mkstemp(prefix=prefix, dir=path.parent)
    os.close(handle)
    try:
        build(name)
        with suppress(FileExistsError):
            os.link(name, path)
    finally:
        os.unlink(name)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def describe_os_error(error: OSError) -> Problem:
    """What the system reports about a file, and what to do."""
    if error.errno in _FULL:
        return _DISK_IS_FULL
    return f"could not be read or written ({error.strerror})", "check the disk"


def _creation_problem(error: OSError | sqlite3.Error) -> Problem:
    name = _primary_name(error)
    if getattr(error, "errno", None) in _FULL or name == "SQLITE_FULL":
        return _DISK_IS_FULL
    reason = getattr(error, "strerror", None) or name or "unknown"
    return f"cannot be created ({reason})", "check the folder and the disk"


def _primary_name(error: Exception) -> str:
    """The primary name of an SQLite error, SQLITE_IOERR for SQLITE_IOERR_WRITE, or nothing."""
    full = getattr(error, "sqlite_errorname", "")
    return "_".join(full.split("_")[:2])


def _ask(connection: Connection, pragma: str) -> object:
    return connection.execute(f"PRAGMA {pragma}").fetchone()[0]


# --- files that appear whole or not at all -----------------------------------------------------

FilePath: TypeAlias = str | PathLike[str]

_READABLE: Final = 0o644
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_NO_LINKS: Final = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS)
_LOOK: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
_TRY: Final = os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


@final
@dataclass(eq=False)
class Temporary:
    """A path that is about to hold a file, and a file beside it that is about to move there.

    Made before anything is spent: if the folder cannot be written, or the path is taken, that is said
    now. `write` puts all bytes on the disk, `commit` moves them to the path in one step, and leaving a
    `with` block without a commit removes what was written. A reader of the path sees nothing, or
    what was there before, or the whole file. The file stays open from the beginning, so nobody who may
    write to the folder can have another one written in its place.
    """

    path: Path
    overwrite: bool = False
    _beside: Path = field(init=False)
    _file: BinaryIO = field(init=False)

    def __post_init__(self) -> None:
        if not self.overwrite and os.path.lexists(self.path):
            raise _taken(self.path)
        self._beside, self._file = _new_beside(self.path)

    @property
    def arrived(self) -> bool:
        """Whether the file that was begun here is what stands at the path, however that came about."""
        try:
            return os.path.samestat(os.fstat(self._file.fileno()), os.lstat(self.path))
        except (OSError, ValueError):
            return False

    def write(self, data: bytes) -> None:
        """Put `data` on the disk, not yet under its name."""
        try:
            _write(self._file, data)
        except OSError as error:
            raise _unwritable(self.path, error) from None

    def commit(self) -> None:
        """Give the file its name, in one step and for good."""
        try:
            self._move()
        except FileExistsError:
            raise _taken(self.path) from None
        except OSError as error:
            raise _unwritable(self.path, error) from None
        try:
            sync_folder(self.path.parent)
        except OSError as error:
            rule = f"holds the whole file now, but a power cut may undo that ({error.strerror})"
            fix = "check the disk, and keep a copy"
            raise InvalidParameter("path", rule, given=str(self.path), fix=fix) from None

    def discard(self) -> None:
        """Remove what was written and not committed."""
        with suppress(OSError):
            self._file.close()
        with suppress(OSError):
            os.unlink(self._beside)

    def _move(self) -> None:
        if self.overwrite:
            os.replace(self._beside, self.path)
        elif _link(self._beside, self.path):
            os.unlink(self._beside)
        else:
            os.rename(self._beside, self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.discard()


def new_file(path: FilePath, data: bytes, *, mode: int) -> None:
    """A file with these bytes that was not there before, readable as `mode` says."""
    place = check_path(path)
    try:
        with open(os.open(place, _NEW, mode), "wb") as file:
            _write(file, data)
        sync_folder(place.parent)
    except FileExistsError:
        raise _taken(place, fix="choose another") from None
    except OSError as error:
        raise _unwritable(place, error) from None


def read_file(path: FilePath, *, largest: int) -> bytes:
    """All bytes of a regular file, if it has at most `largest`; read once, so nobody changes it later."""
    place = check_path(path)
    try:
        handle = os.open(place, _LOOK)
        try:
            return _read(handle, largest=largest, name=f"release {str(place)!r}")
        finally:
            os.close(handle)
    except OSError as error:
        rule = f"cannot be read ({error.strerror})"
        raise InvalidRelease(f"release {str(place)!r}", rule, fix="check the path") from None


def check_path(path: object) -> Path:
    """`path`, if it can be one."""
    valid = isinstance(path, (str, PathLike)) and "\0" not in str(path)
    check(valid, "path", "must be the path of a file", given=path, fix="pass text or a Path")
    return Path(path)  # type: ignore[arg-type]


def _new_beside(path: Path) -> tuple[Path, BinaryIO]:
    """An empty file in the folder of `path`, under a fresh name, and open."""
    _remove_abandoned(path.parent)
    for attempt in count():
        try:
            return _created(path, f"{os.getpid()}-{attempt}.part")
        except (FileExistsError, BlockingIOError):
            continue
        except (OSError, ValueError) as error:
            raise _unwritable(path, error) from None
    raise AssertionError("unreachable")


def _created(path: Path, ending: str) -> tuple[Path, BinaryIO]:
    """A new file beside the path: locked, and with the boot in its name, where that can be done."""
    if _boot() is not None:
        locked = path.with_name(f".partita-{_boot()}-{ending}")
        handle = _create_locked(locked)
        if handle is not None:
            return locked, open(handle, "wb")
    beside = path.with_name(f".partita-{ending}")
    return beside, open(os.open(beside, _NEW, _READABLE), "wb")


def _create_locked(name: Path) -> int | None:
    """A new file that this process has locked, or None where files cannot be locked.

    Raises BlockingIOError if somebody took it for abandoned before it was locked: choose another name.
    """
    handle = os.open(name, _NEW, _READABLE)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(handle).st_nlink:
            return handle
        raise BlockingIOError
    except BlockingIOError:
        os.close(handle)
        raise
    except OSError:
        os.close(handle)
        os.unlink(name)
        return None


def _remove_abandoned(folder: Path) -> None:
    """Remove the files beside that killed processes of this user on this machine have left."""
    name = re.compile(rf"\.partita-{_boot()}-[0-9]+-[0-9]+\.part")
    with suppress(OSError), os.scandir(folder) as found:
        for entry in found:
            if name.fullmatch(entry.name):
                with suppress(OSError):
                    _remove_if_abandoned(entry.path)


def _remove_if_abandoned(path: str) -> None:
    """Remove a file of ours that no living process has locked; only that one, if its name is used anew."""
    about = os.lstat(path)
    if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid():
        return
    handle = os.open(path, _TRY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(handle), os.lstat(path)):
            os.unlink(path)
    finally:
        os.close(handle)


@cache
def _boot() -> str | None:
    """What names this run of this machine's kernel, short; None where that is not known."""
    try:
        return _BOOT_ID.read_text().strip().replace("-", "")[:12] or None
    except OSError:
        return None


def _link(name: Path, second: Path) -> bool:
    """Whether a file got a second name, which must be free; not every disk can do that."""
    try:
        os.link(name, second)
    except OSError as error:
        if error.errno in _NO_LINKS and not os.path.lexists(second):
            return False
        raise
    return True


def _read(handle: int, *, largest: int, name: str) -> bytes:
    about = os.fstat(handle)
    check_release(stat.S_ISREG(about.st_mode), name, "is not a file", fix="check the path")
    fix = "raise `largest` if you trust it"
    check_release(about.st_size <= largest, name, f"is longer than {largest} bytes", fix=fix)
    with open(handle, "rb", closefd=False) as file:
        return file.read(about.st_size)


def _write(file: BinaryIO, data: bytes) -> None:
    file.write(data)
    file.flush()
    os.fsync(file.fileno())


def _taken(path: Path, *, fix: str = "choose another, or pass overwrite=True") -> InvalidParameter:
    return InvalidParameter("path", "must not exist yet", given=str(path), fix=fix)


def _unwritable(path: Path, error: Exception) -> InvalidParameter:
    reason = getattr(error, "strerror", None) or "no such name"
    fix = "check the folder and its permissions"
    return InvalidParameter("path", f"must be writable ({reason})", given=str(path), fix=fix)
