"""The releases of a folder by name, and cached responses about them.

A release is loaded when it is first asked for, and again when its file is replaced. Only regular files are
opened, and no link is followed.

A response is cached as bytes under a tag: a digest of the release's checksum, the version of the library,
and the address with its question. A release never changes, so a response is computed once. A client that
sends the tag back is told that nothing has changed, without any computation.
"""

from __future__ import annotations

import asyncio
import csv
import hashlib
import io
import os
import re
import stat
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path as pathlib_Path
from typing import Annotated, Any, BinaryIO, Final, Generic, NamedTuple, TypeAlias, TypeVar, final

from fastapi import FastAPI, Path, Request, Response
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from pydantic_core import to_json

from partita.lazy import cached_property
from partita.public.file import LARGEST, unpack
from partita.public.file_entries import text
from partita.public.records import Record, to_plain
from partita.public.release import Release
from partita.service import errors
from partita.service.errors import Refusal, not_found
from partita.service.reading.work import Lanes, ReleaseSizes, WorkerPool
from partita.service.settings import NAME, VERSION

# ---- names in addresses ----

NAMED: Final = "the name of the release: that of its file, without .release.parquet"
PATTERN: Final[dict[str, Any]] = {"pattern": f"^{NAME.pattern}$"}

Name: TypeAlias = Annotated[str, Path(description=NAMED, examples=["people"], json_schema_extra=PATTERN)]
"""Any text: a text that is not a valid name gives a 404."""


# ---- the OpenAPI document ----

_COMPONENTS: Final = "#/components/schemas/{model}"
_ERROR: Final = {"$ref": _COMPONENTS.format(model=errors.ErrorBody.__name__)}

ERRORS: Final[dict[int | str, dict[str, Any]]] = {
    status: {"description": error["description"], "content": {"application/json": {"schema": _ERROR}}}
    for status, error in errors.ERRORS.items()
}
"""The errors of every address, as references: building the schema for each of many routes is slow."""


def set_openapi(app: FastAPI, bodies: Sequence[type[BaseModel]]) -> None:
    """Set the OpenAPI document of an app, with the models of bodies that routes parse by themselves."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _build_document(app, bodies)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _build_document(app: FastAPI, bodies: Sequence[type[BaseModel]]) -> dict[str, Any]:
    made = get_openapi(
        title=app.title,
        summary=app.summary,
        description=app.description,
        version=app.version,
        openapi_version=app.openapi_version,
        routes=app.routes,
    )
    models: list[type[BaseModel]] = [*bodies, errors.ErrorBody]
    _, schemas = models_json_schema([(body, "validation") for body in models], ref_template=_COMPONENTS)
    made["components"]["schemas"] = schemas["$defs"] | made["components"]["schemas"]
    return made


# ---- CSV ----

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
_NUMBER: Final = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?(e[+-]?[0-9]+)?", re.IGNORECASE | re.ASCII)


def format_csv(rows: Iterable[Iterable[object]]) -> str:
    r"""Rows as CSV; None is empty, and text that a spreadsheet would read as a formula gets an apostrophe.

    >>> format_csv([("town", "count"), ("=1+2", -3.5), ("-7", None)])
    "town,count\n'=1+2,-3.5\n-7,\n"
    """
    sink = io.StringIO()
    csv.writer(sink, lineterminator="\n").writerows([_cell(to_plain(value)) for value in row] for row in rows)
    return sink.getvalue()


def _cell(value: object) -> object:
    if not isinstance(value, str) or not value.startswith(_FORMULA) or _NUMBER.fullmatch(value):
        return value
    return f"'{value}"


# ---- files to download ----

JSON: Final = "application/json"
CSV: Final = "text/csv; charset=utf-8"
PARQUET: Final = "application/vnd.apache.parquet"
NO_STORE: Final = {"Cache-Control": "no-store"}


def file_route(operation: str, summary: str, media_type: str) -> dict[str, Any]:
    """The arguments that declare a route whose response is a file."""
    kind = media_type.partition(";")[0]
    schema = {"type": "string", "format": "binary"} if kind == PARQUET else {"type": "string"}
    return {
        "operation_id": operation,
        "summary": summary,
        "response_class": Response,
        "responses": {200: {"description": summary, "content": {kind: {"schema": schema}}}},
    }


def attachment(name: str) -> dict[str, str]:
    """The header with the name of a download; names of releases have no quotes."""
    return {"Content-Disposition": f'attachment; filename="{name}"'}


def csv_bytes(heads: list[str], rows: Iterable[Iterable[object]]) -> bytes:
    """A table as the bytes of a CSV file."""
    return format_csv(chain([heads], rows)).encode("utf-8", "replace")


# ---- LRU cache ----

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


@final
class LruCache(Generic[Key, Value]):
    """A cache that evicts the least recently used values when their weights exceed `room`.

    >>> cache = LruCache[str, int](room=5)
    >>> for key, weight in [("a", 2), ("b", 2), ("c", 9), ("d", 2)]:
    ...     cache.put(key, 1, weight)
    >>> [cache.get(key) for key in "abcd"]
    [None, 1, None, 1]
    """

    def __init__(self, *, room: int) -> None:
        self._room = room
        self._held = 0
        self._values: OrderedDict[Key, tuple[Value, int]] = OrderedDict()

    def get(self, key: Key) -> Value | None:
        """The value of a key, or None; it becomes the most recently used."""
        found = self._values.get(key)
        if found is None:
            return None
        self._values.move_to_end(key)
        return found[0]

    def put(self, key: Key, value: Value, weight: int) -> None:
        """Store a value, unless its weight alone exceeds the room."""
        self.drop(key)
        if weight > self._room:
            return
        self._values[key] = value, weight
        self._held += weight
        while self._held > self._room:
            self.drop(next(iter(self._values)))

    def drop(self, key: Key) -> None:
        """Remove a value if it is there."""
        _, weight = self._values.pop(key, (None, 0))
        self._held -= weight


# ---- release files ----

SUFFIX: Final = ".release.parquet"
_OPEN_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW


class FileIdentity(NamedTuple):
    """The identity of a file: it changes when the file is replaced."""

    device: int
    inode: int
    size: int
    modified: int

    @staticmethod
    def of(about: os.stat_result) -> FileIdentity | None:
        """The identity of a regular file; None for anything else."""
        if not stat.S_ISREG(about.st_mode):
            return None
        return FileIdentity(about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns)


def list_names(folder: pathlib_Path) -> list[str]:
    """The names of all releases in a folder, sorted; none if the folder is missing."""
    try:
        with os.scandir(folder) as entries:
            found = [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
    except OSError:
        return []
    stems = (name.removesuffix(SUFFIX) for name in found if name.endswith(SUFFIX))
    return sorted(filter(NAME.fullmatch, stems))


def find_identity(folder: pathlib_Path, name: str) -> FileIdentity | None:
    """The identity of the file of this name; an invalid name does not reach the disk."""
    if not NAME.fullmatch(name):
        return None
    try:
        return FileIdentity.of(os.lstat(_path(folder, name)))
    except OSError:
        return None


def open_regular_file(folder: pathlib_Path, name: str) -> tuple[int, FileIdentity] | None:
    """A handle to the file of this name, and its identity; the caller closes it. None if there is none."""
    if not NAME.fullmatch(name):
        return None
    try:
        handle = os.open(_path(folder, name), _OPEN_FLAGS)
    except OSError:
        return None
    found = FileIdentity.of(os.fstat(handle))
    if found is None:
        os.close(handle)
        return None
    return handle, found


def _path(folder: pathlib_Path, name: str) -> str:
    return f"{folder}/{name}{SUFFIX}"


# ---- the catalogue ----

_RELEASES_ROOM: Final = 2**30
"""Bytes of files whose releases are cached: memory against loading them again."""

_LEAST_WEIGHT: Final = 2**20
"""The least weight of a release, which takes memory beside its numbers: at most a thousand are cached."""


@final
@dataclass(frozen=True, eq=False)
class Entry:
    """A release file: name, identity, the checksum in it, the digest of its bytes, and the release.

    A damaged file has a name and an identity only. `counted` are columns whose counts were asked for before,
    so that their views are ready. `prepared` is set when the release is ready for its first question.
    """

    name: str
    identity: FileIdentity
    checksum: str = ""
    digest: str = ""
    release: Release | None = field(default=None, repr=False)
    counted: set[str] = field(default_factory=set, repr=False)
    prepared: threading.Event = field(default_factory=threading.Event, repr=False)

    @cached_property
    def facts(self) -> ReleaseSizes:
        """The public sizes of the release, which predict the work of questions."""
        return ReleaseSizes(self.opened)

    @property
    def opened(self) -> Release:
        """The release; raises Refusal if the file is damaged."""
        if self.release is None:
            raise Refusal(409, "DamagedRelease", "the release file is damaged, or of a newer Partita")
        return self.release

    def check(self) -> None:
        """Refuse a damaged file."""
        _ = self.opened


@final
class Catalogue:
    """The releases of one folder, by name.

    The cache is keyed by the identity of a file, not by its name: a replaced file is loaded again. One file
    is loaded at a time, in a thread, and checked from the first byte to the last.

    Loading is shared by all requests that wait for it, and goes on if they are cancelled: its time depends
    on the file alone, and the file is the steward's choice.
    """

    def __init__(self, folder: pathlib_Path, threads: WorkerPool, *, room: int = _RELEASES_ROOM) -> None:
        self._folder = folder
        self._threads = threads
        self._entries = LruCache[FileIdentity, Entry](room=room)
        self._running: dict[tuple[str, str, FileIdentity], asyncio.Task[Entry | None]] = {}

    def names(self) -> list[str]:
        """The names of all releases, sorted."""
        return list_names(self._folder)

    def identity(self, name: str) -> FileIdentity | None:
        """The identity of the file that has this name now, if any."""
        return find_identity(self._folder, name)

    async def get(self, name: str) -> Entry:
        """The release of this name, damaged or not; 404 if there is none."""
        found = self.identity(name)
        if found is None:
            raise not_found("release")
        return self._cached(name, found) or await self._load(name, found)

    async def ready(self, name: str) -> Entry:
        """The release of this name, prepared for its first question; raises Refusal if it is damaged."""
        entry = await self.get(name)
        entry.check()
        if not entry.prepared.is_set():
            await self._run_once("prepare", entry.name, entry.identity, lambda: _prepare(entry))
        return entry

    def file(self, entry: Entry) -> BinaryIO:
        """The open file of an entry; 404 if it was removed or replaced."""
        handle, found = open_regular_file(self._folder, entry.name) or (None, None)
        if handle is not None and found == entry.identity:
            return open(handle, "rb")
        if handle is not None:
            os.close(handle)
        raise not_found("release")

    def _cached(self, name: str, identity: FileIdentity) -> Entry | None:
        entry = self._entries.get(identity)
        return entry if entry is not None and entry.name == name else None

    async def _load(self, name: str, identity: FileIdentity) -> Entry:
        entry = await self._run_once("load", name, identity, lambda: _load_entry(self._folder, name))
        if entry is None:
            raise not_found("release")
        self._entries.put(entry.identity, entry, max(entry.identity.size, _LEAST_WEIGHT))
        return entry

    async def _run_once(
        self, act: str, name: str, identity: FileIdentity, work: Callable[[], Entry | None]
    ) -> Entry | None:
        """The result of the work, which runs once for all concurrent requests."""
        key = (act, name, identity)
        if key not in self._running:
            self._running[key] = asyncio.create_task(self._threads.run(work))
            self._running[key].add_done_callback(lambda _: self._running.pop(key, None))
        return await asyncio.shield(self._running[key])


def _prepare(entry: Entry) -> Entry:
    """Compute what every question needs; exceptions, which a hostile file may cause, are ignored."""
    release = entry.opened
    with suppress(Exception):
        entry.facts.look_up()
        release.count()
    for view in release.sums:
        with suppress(Exception):
            _ = view.total
    entry.prepared.set()
    return entry


def _load_entry(folder: pathlib_Path, name: str) -> Entry | None:
    """Load a file; any exception, which a hostile file may cause, makes it a damaged entry."""
    handle, identity = open_regular_file(folder, name) or (None, None)
    if handle is None or identity is None:
        return None
    with open(handle, "rb") as file:
        if identity.size > LARGEST:
            return Entry(name, identity)
        data = file.read(identity.size)
    try:
        stored, _ = unpack(data, largest=LARGEST)
        checksum, digest = text(stored.spec["checksum"]), hashlib.sha256(data).hexdigest()
        return Entry(name, identity, checksum, digest, stored.release())
    except Exception:
        return Entry(name, identity)


# ---- cached responses ----

_RESPONSES_ROOM: Final = 64 * 2**20
"""Bytes of cached responses: memory against computing them again."""

_OVERHEAD: Final = 512  # bytes of a cache entry beside its body
_LARGEST_CACHED: Final = 2**20  # bytes; a larger response would evict many small ones
_SECONDS: Final = 60
"""Seconds that a client may use a response without revalidation: a file of the same name may replace it."""


@final
@dataclass(frozen=True, eq=False)
class Replies:
    """Creates responses and caches them. Shared caches may store them only if reading is public."""

    lanes: Lanes
    public: bool
    cache: LruCache[str, bytes]

    @staticmethod
    def create(lanes: Lanes, *, public: bool, room: int = _RESPONSES_ROOM) -> Replies:
        """Replies with an empty cache."""
        return Replies(lanes, public, LruCache(room=room))

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
        """A JSON response about a release, computed in a thread unless it is cached or `quick`."""
        return await self.data(
            request,
            entry,
            lambda: encode_json(make()),
            media_type=JSON,
            small=small,
            quick=quick,
            fixed=fixed,
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
        """A response about a release, computed in a thread unless it is cached or `quick`.

        `small` chooses the lane of small work; it is called only if needed. `fixed` means that parameters do
        not change the response, so that adding some does not cause a new computation.
        """
        tag = _tag(request, entry, fixed=fixed)
        caching = self.check_tag(request, tag)
        if isinstance(caching, Response):
            return caching
        body = self.cache.get(tag) or await self._make(tag, make, small=small, quick=quick())
        return Response(body, media_type=media_type, headers={**caching, **(headers or {})})

    def check_tag(self, request: Request, tag: str) -> dict[str, str] | Response:
        """The caching headers of a response with this tag; or a 304 if the client has it already."""
        scope = "public" if self.public else "private"
        caching = {"ETag": tag, "Cache-Control": f"{scope}, max-age={_SECONDS}"}
        return Response(status_code=304, headers=caching) if _has_tag(request, tag) else caching

    async def _make(
        self, tag: str, make: Callable[[], bytes], *, small: Callable[[], bool], quick: bool
    ) -> bytes:
        body = make() if quick else await self.lanes.lane(small=small()).run(make)
        if len(body) <= _LARGEST_CACHED:
            self.cache.put(tag, body, len(body) + _OVERHEAD)
        return body


def encode_json(record: Record) -> bytes:
    """A record as JSON; numbers that are not finite become null."""
    return to_json(to_plain(record))


def _tag(request: Request, entry: Entry, *, fixed: bool) -> str:
    """The tag of a response: release, version and address, with the host, which occurs in some responses."""
    scope = request.scope
    host, query = ("", b"") if fixed else (request.headers.get("host", ""), scope["query_string"])
    asked = f"{host} {scope['path']}?".encode("utf-8", "surrogatepass") + query
    digest = hashlib.blake2b(asked, digest_size=16, key=f"{VERSION} {entry.checksum[:40]}".encode())
    return f'"{digest.hexdigest()}"'


def _has_tag(request: Request, tag: str) -> bool:
    """Whether the client has the response with this tag."""
    given = request.headers.get("if-none-match", "")
    return any(each.strip().removeprefix("W/") in (tag, "*") for each in given.split(",")) if given else False
