"""The releases of a folder by name, and cached responses about them.

A release is loaded when it is first asked for, and again when its file is replaced. Only regular files are
opened, and no link is followed.

A response is cached as bytes under a tag: a digest of the release's checksum, the version of the library,
and the address with its question. A release never changes, so a response is computed once. A client that
sends the tag back is told that nothing has changed, without any computation.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import stat
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, final

from fastapi import Request, Response
from pydantic_core import to_json

from partita.asking.records import Record, plain
from partita.cached import cached_property
from partita.releases.file import LARGEST, unpacked
from partita.releases.file_entries import text
from partita.releases.release import Release
from partita.service.errors import Refusal, not_found
from partita.service.reading.http import Kept
from partita.service.reading.work import Facts, Lanes, Threads
from partita.service.settings import NAME, VERSION

__all__ = [
    "JSON",
    "SUFFIX",
    "Catalogue",
    "Entry",
    "Identity",
    "Replies",
    "find_identity",
    "list_names",
    "open_regular_file",
    "written",
]

# ---- release files ----

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


def list_names(folder: Path) -> list[str]:
    """Every name that a file of the folder has, in order; a folder that is gone has none."""
    try:
        with os.scandir(folder) as entries:
            found = [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
    except OSError:
        return []
    stems = (name.removesuffix(SUFFIX) for name in found if name.endswith(SUFFIX))
    return sorted(filter(NAME.fullmatch, stems))


def find_identity(folder: Path, name: str) -> Identity | None:
    """That of the file of this name; a name that none can have does not reach the disk."""
    if not NAME.fullmatch(name):
        return None
    try:
        return Identity.of(os.lstat(_path(folder, name)))
    except OSError:
        return None


def open_regular_file(folder: Path, name: str) -> tuple[int, Identity] | None:
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


# ---- the catalogue ----

ROOM: Final = 2**30
"""Bytes of the files whose releases are kept in memory."""

_LEAST_WEIGHT: Final = 2**20
"""A release takes memory beside its numbers: no more than a thousand are kept."""


@final
@dataclass(frozen=True, eq=False)
class Entry:
    """A release, its name, which file it was in, the checksum there, and the digest of all its bytes.

    Or that it is damaged: then there is nothing but the name and the file. `counted` are columns whose counts
    were asked for before: what those need once is there. `prepared` says that of the release.
    """

    name: str
    identity: Identity
    checksum: str = ""
    digest: str = ""
    release: Release | None = field(default=None, repr=False)
    counted: set[str] = field(default_factory=set, repr=False)
    prepared: threading.Event = field(default_factory=threading.Event, repr=False)

    @cached_property
    def facts(self) -> Facts:
        """What is public about the release and matters for how much work questions are."""
        return Facts(self.opened)

    @property
    def opened(self) -> Release:
        """The release, if the file holds one."""
        if self.release is None:
            raise Refusal(409, "DamagedRelease", "the release file is damaged, or of a newer Partita")
        return self.release

    def check(self) -> None:
        """Refuse a damaged file."""
        _ = self.opened


@final
class Catalogue:
    """What lies in one folder under names that an address may have.

    A file is known by its identity and not by its name: one that was replaced is loaded again, one that
    is gone is gone. One is loaded at a time, in a thread, and checked from the first byte to the last.

    What is begun for one caller is shared by all who wait for it, and goes on if they do not: how long it
    takes depends on the file alone, and the file is the steward's choice.
    """

    def __init__(self, folder: Path, threads: Threads, *, room: int = ROOM) -> None:
        self._folder = folder
        self._threads = threads
        self._entries = Kept[Identity, Entry](room=room)
        self._begun: dict[tuple[str, str, Identity], asyncio.Task[Entry | None]] = {}

    def names(self) -> list[str]:
        """Every release that is there, in order."""
        return list_names(self._folder)

    def size(self) -> int:
        """How many releases there are."""
        return len(self.names())

    def identity(self, name: str) -> Identity | None:
        """Which file has this name now, if any."""
        return find_identity(self._folder, name)

    async def get(self, name: str) -> Entry:
        """The release of this name, damaged or not; 404 if there is none."""
        found = self.identity(name)
        if found is None:
            raise not_found("release")
        return self._kept(name, found) or await self._load(name, found)

    async def ready(self, name: str) -> Entry:
        """The same, once what its first answer needs has been worked out; a damaged one is refused."""
        entry = await self.get(name)
        entry.check()
        if not entry.prepared.is_set():
            await self._shared("prepare", entry.name, entry.identity, lambda: _prepared(entry))
        return entry

    def file(self, entry: Entry) -> BinaryIO:
        """The file of an entry, open; 404 if it is not there any more."""
        handle, found = open_regular_file(self._folder, entry.name) or (None, None)
        if handle is None:
            raise not_found("release")
        if found != entry.identity:
            os.close(handle)
            raise not_found("release")
        return open(handle, "rb")

    def _kept(self, name: str, identity: Identity) -> Entry | None:
        entry = self._entries.get(identity)
        return entry if entry is not None and entry.name == name else None

    async def _load(self, name: str, identity: Identity) -> Entry:
        entry = await self._shared("load", name, identity, lambda: self._loader(name)())
        if entry is None:
            raise not_found("release")
        self._entries.put(entry.identity, entry, max(entry.identity.size, _LEAST_WEIGHT))
        return entry

    async def _shared(
        self, act: str, name: str, identity: Identity, work: Callable[[], Entry | None]
    ) -> Entry | None:
        """What the work makes, done once for all who want it at the same time."""
        key = (act, name, identity)
        if key not in self._begun:
            self._begun[key] = asyncio.create_task(self._threads.run(work))
            self._begun[key].add_done_callback(lambda _: self._begun.pop(key, None))
        return await asyncio.shield(self._begun[key])

    def _loader(self, name: str) -> Callable[[], Entry | None]:
        return lambda: _loaded(self._folder, name)


def _prepared(entry: Entry) -> Entry:
    """Work out what every question needs, whatever a hostile file makes any library say."""
    release = entry.opened
    with suppress(Exception):
        entry.facts.look_up()
        release.count()
    for view in release.sums:
        with suppress(Exception):
            _ = view.total
    entry.prepared.set()
    return entry


def _loaded(folder: Path, name: str) -> Entry | None:
    """The release in a file, or that it is damaged, whatever a hostile one makes any library say."""
    handle, identity = open_regular_file(folder, name) or (None, None)
    if handle is None or identity is None:
        return None
    with open(handle, "rb") as file:
        if identity.size > LARGEST:
            return Entry(name, identity)
        data = file.read(identity.size)
    try:
        stored, _ = unpacked(data, largest=LARGEST)
        checksum, digest = text(stored.spec["checksum"]), hashlib.sha256(data).hexdigest()
        return Entry(name, identity, checksum, digest, stored.release())
    except Exception:
        return Entry(name, identity)


# ---- cached responses ----

JSON: Final = "application/json"

_ROOM: Final = 64 * 2**20
"""Bytes of answers that are kept."""

_OVERHEAD: Final = 512
_LARGEST_KEPT: Final = 2**20
_SECONDS: Final = 60
"""How long a cache may answer without asking: a file may be replaced by one of the same name."""


@final
@dataclass(frozen=True, eq=False)
class Replies:
    """Makes responses. Caches that people share may keep them only where reading is public."""

    lanes: Lanes
    public: bool
    kept: Kept[str, bytes]

    @staticmethod
    def made(lanes: Lanes, *, public: bool, room: int = _ROOM) -> Replies:
        """With nothing kept yet."""
        return Replies(lanes, public, Kept(room=room))

    async def json(
        self,
        request: Request,
        entry: Entry,
        make: Callable[[], Record],
        *,
        small: Callable[[], bool],
        quick: Callable[[], bool] = lambda: False,
        fixed: bool = False,
    ) -> Response:
        """A record about a release, which is made in a thread unless it is kept, or `quick` to make."""
        return await self.data(
            request, entry, lambda: written(make()), media_type=JSON, small=small, quick=quick, fixed=fixed
        )

    async def data(
        self,
        request: Request,
        entry: Entry,
        make: Callable[[], bytes],
        *,
        media_type: str,
        small: Callable[[], bool],
        headers: Mapping[str, str] | None = None,
        quick: Callable[[], bool] = lambda: False,
        fixed: bool = False,
    ) -> Response:
        """Bytes about a release, which are made in a thread unless they are kept, or `quick` to make.

        `small` says whether that belongs into the lane of small work; it is asked only where it matters.
        `fixed` says that there is one answer only, whatever parameters somebody adds to have it made again.
        """
        tag = _tag(request, entry, fixed=fixed)
        caching = self.unless_known(request, tag)
        if isinstance(caching, Response):
            return caching
        body = self.kept.get(tag) or await self._make(tag, make, small=small, quick=quick())
        return Response(body, media_type=media_type, headers={**caching, **(headers or {})})

    def unless_known(self, request: Request, tag: str) -> dict[str, str] | Response:
        """The headers that let others keep what has this tag; or that the caller has it, and nothing more."""
        scope = "public" if self.public else "private"
        caching = {"ETag": tag, "Cache-Control": f"{scope}, max-age={_SECONDS}"}
        return Response(status_code=304, headers=caching) if _known(request, tag) else caching

    async def _make(
        self, tag: str, make: Callable[[], bytes], *, small: Callable[[], bool], quick: bool
    ) -> bytes:
        body = make() if quick else await self.lanes.lane(small=small()).run(make)
        if len(body) <= _LARGEST_KEPT:
            self.kept.put(tag, body, len(body) + _OVERHEAD)
        return body


def written(record: Record) -> bytes:
    """A record as JSON; what is not finite is null."""
    return to_json(plain(record))


def _tag(request: Request, entry: Entry, *, fixed: bool) -> str:
    """Of a release, a library, and an address, whose host stands in some answers; not in fixed ones."""
    scope = request.scope
    host, query = ("", b"") if fixed else (request.headers.get("host", ""), scope["query_string"])
    asked = f"{host} {scope['path']}?".encode("utf-8", "surrogatepass") + query
    digest = hashlib.blake2b(asked, digest_size=16, key=f"{VERSION} {entry.checksum[:40]}".encode())
    return f'"{digest.hexdigest()}"'


def _known(request: Request, tag: str) -> bool:
    """Whether the caller has the answer with this tag."""
    given = request.headers.get("if-none-match", "")
    return any(each.strip().removeprefix("W/") in (tag, "*") for each in given.split(",")) if given else False
