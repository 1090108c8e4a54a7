"""Routes of the catalogue: which releases and streams there are, and what each release is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, final

from fastapi import APIRouter, Request, Response

from partita.asking.records import Record
from partita.service.reading.answering import Answering
from partita.service.reading.catalogue import Catalogue
from partita.service.reading.described import About, Index
from partita.service.reading.describing import described, listed
from partita.service.reading.document import ERRORS
from partita.service.reading.kept import Kept
from partita.service.reading.opening import Identity
from partita.service.reading.paths import Name
from partita.service.reading.replies import JSON, Replies, written
from partita.service.reading.streams import stream_entries
from partita.service.reading.watching import Watch
from partita.service.web.errors import Refusal

__all__ = ["release_routes"]

_MOST_LISTED: Final = 10_000
_ASK_AGAIN: Final = {"Cache-Control": "no-cache"}


@final
@dataclass(frozen=True, eq=False)
class Listing:
    """The entries of the catalogue, each kept as long as its file is the same."""

    catalogue: Catalogue
    entries: Kept[tuple[str, Identity], Record] = field(default_factory=lambda: Kept(room=_MOST_LISTED))

    async def all(self) -> list[Record]:
        """An entry for each release; those that go away meanwhile are left out."""
        found = [await self._entry(name) for name in self.catalogue.names()[:_MOST_LISTED]]
        return [entry for entry in found if entry is not None]

    async def _entry(self, name: str) -> Record | None:
        identity = self.catalogue.identity(name)
        if identity is None:
            return None
        return self.entries.get((name, identity)) or await self._made(name)

    async def _made(self, name: str) -> Record | None:
        try:
            entry = await self.catalogue.get(name)
        except Refusal as refusal:
            if refusal.status == 404:
                return None
            raise
        made = listed(entry)
        self.entries.put((name, entry.identity), made, 1)
        return made


def release_routes(catalogue: Catalogue, replies: Replies, answering: Answering, watch: Watch) -> APIRouter:
    """The catalogue and the releases in it; the pages of people have the same addresses without `.json`."""
    router = APIRouter(tags=["catalogue"], responses=ERRORS)
    listing = Listing(catalogue)

    @router.get("/index.json", operation_id="index", summary="What is served", response_model=Index)
    async def index() -> Response:
        streams = await replies.lanes.small.run(lambda: stream_entries(watch))
        entries = [entry.model_dump(mode="json") for entry in streams]
        body = written({"releases": await listing.all(), "streams": entries})
        return Response(body, media_type=JSON, headers=_ASK_AGAIN)

    @router.get(
        "/releases/{name}.json", operation_id="release", summary="What a release is", response_model=About
    )
    async def release(request: Request, name: Name) -> Response:
        entry = await catalogue.ready(name)
        return await replies.json(
            request, entry, lambda: described(entry, answering), small=lambda: True, fixed=True
        )

    return router
