"""Answers as bytes, each with a tag: a release never changes, so an answer is made once and kept.

The tag is a digest of the release's checksum, the version of the library, and the address with its question.
Who sends it back is told that nothing has changed, without anything being computed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, final

from fastapi import Request, Response
from pydantic_core import to_json

from partita.asking.records import Record, plain
from partita.service.reading.catalogue import Entry
from partita.service.reading.kept import Kept
from partita.service.reading.threads import Lanes
from partita.service.web.version import VERSION

__all__ = ["JSON", "Replies", "written"]

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
