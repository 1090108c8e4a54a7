"""Routes that give files: the release itself, made-up rows, the report and what to cite."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Annotated, Any, BinaryIO, Final, TypeAlias, final

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse

from partita.errors import InvalidParameter
from partita.releases.release import Release
from partita.service.reading.catalogue import Catalogue, Entry
from partita.service.reading.document import ERRORS
from partita.service.reading.opening import SUFFIX
from partita.service.reading.paths import Name
from partita.service.reading.replies import Replies
from partita.service.reading.tables import csv_text
from partita.service.reading.work import check_work, values_work
from partita.service.settings import Limits

__all__ = ["attached", "csv_bytes", "download_routes", "gives"]

PARQUET: Final = "application/vnd.apache.parquet"
_CHUNK: Final = 2**18
_USUAL_ROWS: Final = 1_000

Rows: TypeAlias = Annotated[int, Query(ge=1, description="how many rows to make up")]


@final
@dataclass(frozen=True)
class Download:
    """A file that is made of a release: its last word in the address, what it is, and how it is made."""

    path: str
    media_type: str
    says: str
    make: Callable[..., bytes]

    @property
    def operation(self) -> str:
        """A name for the document of the API."""
        return self.path.replace(".", "_")


def _report(release: Release) -> bytes:
    return f"{release.report()}\n".encode()


def _citation(release: Release) -> bytes:
    return release.citation().encode()


def _synthetic_csv(release: Release, rows: int) -> bytes:
    made = release.synthesize(rows)
    return csv_bytes(list(made), zip(*made.values(), strict=True))


def _synthetic_parquet(release: Release, rows: int) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    pq.write_table(pa.table(release.synthesize(rows)), sink)
    return sink.getvalue()


TEXTS: Final = (
    Download("report.txt", "text/plain; charset=utf-8", "The report", _report),
    Download("citation.bib", "application/x-bibtex; charset=utf-8", "What to cite, in BibTeX", _citation),
)
TABLES: Final = (
    Download("synthesize.csv", "text/csv; charset=utf-8", "Made-up rows, as CSV", _synthetic_csv),
    Download("synthesize.parquet", PARQUET, "Made-up rows, as Parquet", _synthetic_parquet),
)


def download_routes(catalogue: Catalogue, replies: Replies, limits: Limits) -> APIRouter:
    """What can be downloaded of a release; rows are made up in the lane of large work."""
    router = APIRouter(prefix="/releases/{name}", tags=["downloads"], responses=ERRORS)

    def text(what: Download) -> Callable[..., Any]:
        async def download(request: Request, name: Name) -> Response:
            entry = await catalogue.ready(name)
            return await made(request, entry, what, lambda: what.make(entry.opened), small=True)

        return download

    def table(what: Download) -> Callable[..., Any]:
        async def download(request: Request, name: Name, rows: Rows = _USUAL_ROWS) -> Response:
            entry = await catalogue.ready(name)
            columns = len(entry.opened.columns)
            _check_rows(rows, limits, columns=columns)
            check_work(values_work(rows * columns), limits)
            return await made(request, entry, what, lambda: what.make(entry.opened, rows), small=False)

        return download

    async def made(
        request: Request, entry: Entry, what: Download, make: Callable[[], bytes], *, small: bool
    ) -> Response:
        headers = attached(f"{entry.name}.{what.path}")
        return await replies.data(
            request,
            entry,
            make,
            media_type=what.media_type,
            small=lambda: small,
            headers=headers,
            fixed=what in TEXTS,
        )

    async def file(request: Request, name: Name) -> Response:
        """The release file as it is: load it with `partita.load`, and ask it on your own machine."""
        entry = await catalogue.get(name)
        entry.check()
        caching = replies.unless_known(request, f'"{entry.digest}"')
        if isinstance(caching, Response):
            return caching
        headers = {**caching, **attached(name + SUFFIX), "Content-Length": str(entry.identity.size)}
        return StreamingResponse(_chunks(catalogue.file(entry)), media_type=PARQUET, headers=headers)

    for what, endpoint in [
        *((each, text(each)) for each in TEXTS),
        *((each, table(each)) for each in TABLES),
    ]:
        router.add_api_route(f"/{what.path}", endpoint, **gives(what.operation, what.says, what.media_type))
    router.add_api_route("/file", file, **gives("file", "The release file itself", PARQUET))
    return router


def gives(operation: str, says: str, media_type: str) -> dict[str, Any]:
    """How a route that answers with a file is declared."""
    kind = media_type.partition(";")[0]
    schema = {"type": "string", "format": "binary"} if kind == PARQUET else {"type": "string"}
    return {
        "operation_id": operation,
        "summary": says,
        "response_class": Response,
        "responses": {200: {"description": says, "content": {kind: {"schema": schema}}}},
    }


def attached(name: str) -> dict[str, str]:
    """The header that gives a download its name, which can have no quotes."""
    return {"Content-Disposition": f'attachment; filename="{name}"'}


def csv_bytes(heads: list[str], rows: Iterable[Iterable[object]]) -> bytes:
    """A table as a file of CSV."""
    return csv_text(chain([heads], rows)).encode("utf-8", "replace")


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    with file:
        while chunk := file.read(_CHUNK):
            yield chunk


def _check_rows(rows: int, limits: Limits, *, columns: int) -> None:
    """Refuse more values than can be made up while somebody waits: what they cost goes by values."""
    most = limits.rows // max(1, columns)
    if rows > most:
        fix = "ask for fewer, or load the file"
        raise InvalidParameter("rows", f"must be at most {most:,} here", given=rows, fix=fix)
