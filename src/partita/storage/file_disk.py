"""Files that appear whole or not at all.

A file is written beside its path first, under a name of its own, and its process keeps it locked. The kernel
drops the lock when the process dies, however it dies, and the next process that writes to the folder removes
the files of dead processes. A process id would not do: ids are used again, and mean nothing in another
container. Locks are believed on one kernel only, so the name has the id of the boot, and files from other
machines that share the folder are left alone.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final, Self, TypeAlias, final

from partita.errors.checks import check_release
from partita.errors.errors import InvalidParameter, InvalidRelease
from partita.storage.storage import sync_folder

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
    `with` block without a commit removes what was written. Whoever looks at the path sees nothing, or
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
            raise _unsynced(self.path, error) from None

    def discard(self) -> None:
        """Remove what was written and not committed."""
        with suppress(OSError):
            self._file.close()
        with suppress(OSError):
            os.unlink(self._beside)

    def _move(self) -> None:
        if self.overwrite:
            os.replace(self._beside, self.path)
        elif _linked(self._beside, self.path):
            os.unlink(self._beside)
        else:
            os.rename(self._beside, self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.discard()


def new_file(path: FilePath, data: bytes, *, mode: int) -> None:
    """A file with these bytes that was not there before, for nobody but those in `mode`."""
    place = checked_path(path)
    try:
        with open(os.open(place, _NEW, mode), "wb") as file:
            _write(file, data)
        sync_folder(place.parent)
    except FileExistsError:
        raise _taken(place, fix="choose another") from None
    except OSError as error:
        raise _unwritable(place, error) from None


def contents(path: FilePath, *, largest: int) -> bytes:
    """All bytes of a regular file, if it has at most `largest`; read once, so nobody changes it later."""
    place = checked_path(path)
    try:
        handle = os.open(place, _LOOK)
        try:
            return _read(handle, largest=largest, name=f"release {str(place)!r}")
        finally:
            os.close(handle)
    except OSError as error:
        rule = f"cannot be read ({error.strerror})"
        raise InvalidRelease(f"release {str(place)!r}", rule, fix="check the path") from None


def checked_path(path: object) -> Path:
    """`path`, if it can be one."""
    if not isinstance(path, (str, PathLike)) or "\0" in str(path):
        raise InvalidParameter("path", "must be the path of a file", given=path, fix="pass text or a Path")
    return Path(path)


def _new_beside(path: Path) -> tuple[Path, BinaryIO]:
    """An empty file in the folder of `path`, under a name that nobody else uses, and open."""
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
        handle = _created_locked(locked)
        if handle is not None:
            return locked, open(handle, "wb")
    beside = path.with_name(f".partita-{ending}")
    return beside, open(os.open(beside, _NEW, _READABLE), "wb")


def _created_locked(name: Path) -> int | None:
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


def _linked(name: Path, second: Path) -> bool:
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


def _unsynced(path: Path, error: OSError) -> InvalidParameter:
    rule = f"holds the whole file now, but a power cut may undo that ({error.strerror})"
    return InvalidParameter("path", rule, given=str(path), fix="check the disk, and keep a copy")
