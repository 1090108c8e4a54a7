"""The releases of a folder, by name: loaded when they are asked for, and again when a file is replaced."""

from __future__ import annotations

import asyncio
import hashlib
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final, final

from partita.cached import cached_property
from partita.releases.file import LARGEST, unpacked
from partita.releases.file_entries import text
from partita.releases.release import Release
from partita.service.reading import opening
from partita.service.reading.kept import Kept
from partita.service.reading.opening import Identity
from partita.service.reading.threads import Threads
from partita.service.reading.work import Facts
from partita.service.web.errors import Refusal, not_found

__all__ = ["Catalogue", "Entry"]

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
        return opening.names(self._folder)

    def size(self) -> int:
        """How many releases there are."""
        return len(self.names())

    def identity(self, name: str) -> Identity | None:
        """Which file has this name now, if any."""
        return opening.identity(self._folder, name)

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
        handle, found = opening.opened(self._folder, entry.name) or (None, None)
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
    handle, identity = opening.opened(folder, name) or (None, None)
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
