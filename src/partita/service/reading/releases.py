"""Routes of the catalogue and of releases: which there are, what each contains, and downloads."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, BinaryIO, Final, Literal, TypeAlias, final
from urllib.parse import quote

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from partita.errors import InvalidParameter, check
from partita.guarantee import Guarantee
from partita.public.file_entries import guarantee_entries, provenance_entries
from partita.public.questions import COUNT
from partita.public.records import (
    Record,
    column_records,
    query_record,
    sum_records,
    to_plain,
    view_records,
)
from partita.public.release import Release
from partita.public.report import declared_words, factor_words, promise_words
from partita.public.window import find_window
from partita.service.errors import Refusal
from partita.service.reading.catalogue import (
    CSV,
    ERRORS,
    JSON,
    PARQUET,
    SUFFIX,
    Catalogue,
    Entry,
    FileIdentity,
    LruCache,
    Name,
    Replies,
    attachment,
    csv_bytes,
    encode_json,
    file_route,
)
from partita.service.reading.questions import Answerer, Bars, NumberAnswer, StrictModel
from partita.service.reading.streams import StreamEntry, StreamWatcher, stream_entries
from partita.service.reading.work import WorkEstimate, check_work, values_work, zero_if_refused
from partita.service.settings import Limits

# ---- models ----


class GuaranteeDetails(StrictModel):
    """The guarantee of a release, exactly and in words."""

    epsilon: str = Field(examples=["1/2"], description="exact")
    epsilon_value: float | None = Field(examples=[0.5])
    delta: str = Field(examples=["0"])
    rho: str | None = Field(
        default=None,
        examples=["1/8"],
        description="exact, of zero-concentrated privacy, from which epsilon and delta follow",
    )
    neighbors: str = Field(examples=["add-remove"])
    unit: str = Field(examples=["person"])
    contributions: int
    intrusions: int
    factor: str = Field(examples=["1.65"], description="e^epsilon, rounded up")
    words: str


class ReleaseEntry(StrictModel):
    """A release in the catalogue."""

    name: str = Field(examples=["people"])
    size: int = Field(description="bytes of its file")
    state: Literal["ready", "damaged"]
    dataset: str | None = None
    day: str | None = Field(default=None, examples=["2026-11-15"])
    columns: list[str] = Field(default_factory=list)
    guarantee: GuaranteeDetails | None = None


class CatalogueIndex(StrictModel):
    """All releases and streams."""

    releases: list[ReleaseEntry]
    streams: list[StreamEntry]


class CountEntry(StrictModel):
    """A noisy count."""

    value: float | None
    error: float | None


class ColumnDetails(BaseModel):
    """A column and its public domain, in the entries of its kind: low, high, step, labels and so on."""

    model_config = ConfigDict(extra="allow")

    name: str
    kind: Literal["integer", "real", "date", "timestamp", "category"]
    size: str = Field(examples=["121"], description="how many cells it has, as text")
    specials: dict[str, CountEntry] = Field(description="what is beside the axis")
    window: tuple[str, str] | None = Field(
        description="between which values nearly all rows lie, for pictures; null is the whole axis"
    )


class PublishedView(StrictModel):
    """What was published together, and how."""

    view: str = Field(examples=["age x salary"])
    columns: list[str]
    mechanism: str = Field(examples=["intervals"])
    epsilon: str | None
    rho: str | None = None
    why: str


class ErrorBound(StrictModel):
    """With probability 1 - beta no count of a range misses the truth by more."""

    beta: float
    bound: float | None


class ReleaseDetails(StrictModel):
    """All public facts of a release."""

    name: str
    dataset: str | None
    day: str
    version: str
    recorded: bool
    person: str | None
    part: Any = Field(description="the column and the value that a row must have to be counted; or null")
    options: dict[str, str] = Field(description="options of the mechanism that were asked for, as text")
    contributions: Any = Field(
        default=None, description="how the bound on rows per person was chosen; null if it was given"
    )
    checksum: str
    guarantee: GuaranteeDetails | None
    columns: list[ColumnDetails]
    views: list[PublishedView]
    sums: list[dict[str, Any]]
    queries: dict[str, Any] | None
    total: NumberAnswer | None
    error: ErrorBound
    report: str
    citation: str
    links: dict[str, str]


# ---- records ----

_BETA = 0.05


def summarize_release(entry: Entry) -> Record:
    """An entry of the catalogue; a damaged file has only a name and a size."""
    known = {"name": entry.name, "size": entry.identity.size}
    if entry.release is None:
        return {**known, "state": "damaged"}
    release = entry.release
    return {
        **known,
        "state": "ready",
        "dataset": release.provenance.dataset,
        "day": release.provenance.day,
        "columns": release.columns,
        "guarantee": _guarantee(release),
    }


def describe_release(entry: Entry, answerer: Answerer) -> Record:
    """All public facts of a release."""
    release = entry.opened
    provenance = provenance_entries(release.provenance)
    return {
        "name": entry.name,
        **(provenance if isinstance(provenance, Mapping) else {}),
        "options": dict(release.provenance.options),
        "checksum": entry.checksum,
        "guarantee": _guarantee(release),
        "columns": [_column(release, record) for record in column_records(release)],
        "views": [
            {**record, **_spent(view.guarantee)}
            for record, view in zip(view_records(release), release.published, strict=True)
        ],
        "sums": sum_records(release),
        "queries": query_record(release, _BETA),
        "total": _total(release, answerer),
        "error": {"beta": _BETA, "bound": release.error(_BETA) if release.views else None},
        "report": release.report(_BETA),
        "citation": release.citation(),
        "links": _links(entry.name, table=release.table is not None),
    }


def _spent(promise: Guarantee | None) -> Record:
    """What a view spends: its rho where it states one, and its epsilon."""
    if promise is None:
        return {"epsilon": None}
    return {"epsilon": promise.epsilon, **({"rho": promise.rho} if promise.rho else {})}


def _guarantee(release: Release) -> Record | None:
    """The guarantee in numbers, exact and rounded, and in the words of the report; null if there is none."""
    promise, numbers = release.guarantee, guarantee_entries(release.guarantee)
    if promise is None or not isinstance(numbers, Mapping):
        return None
    try:
        epsilon = float(promise.epsilon)
    except OverflowError:
        epsilon = None
    said = promise_words(promise) + declared_words(release.published)
    words = {"factor": factor_words(promise), "words": said}
    return {**numbers, "epsilon_value": epsilon, **words}


def _column(release: Release, record: Mapping[str, Any]) -> Record:
    line = release.slice(record["column"])
    window = find_window(line)
    ends = [str(to_plain(end)) for end in line.domain.decode([window.first, window.last])]
    beside = {"specials": record["specials"], "window": None if window.whole else ends}
    return {"name": record["column"], **record["domain"], "size": str(line.domain.size), **beside}


def _description_work(entry: Entry) -> int:
    """The work of a description: where the rows of each column lie takes nearly all of it."""
    estimate, columns = WorkEstimate(entry.facts), entry.opened.columns
    return zero_if_refused(lambda: sum(estimate.quantile(column, {}) for column in columns))


def _total(release: Release, answerer: Answerer) -> Record | None:
    """The number of rows; null if the release cannot answer."""
    try:
        return answerer.answer(release, COUNT(), Bars())
    except InvalidParameter:
        return None


def _links(name: str, *, table: bool) -> Record:
    base = f"/releases/{quote(name)}"
    ends = {"page": "", "json": ".json", "file": "/file"}
    ends |= {"report": "/report.txt", "citation": "/citation.bib"}
    ends |= {"dependence": "/dependence"} if table else {}
    return {what: base + end for what, end in ends.items()}


# ---- routes of the catalogue ----

_MOST_LISTED: Final = 10_000  # releases in the list, and entries in its cache
_ASK_AGAIN: Final = {"Cache-Control": "no-cache"}


@final
@dataclass(frozen=True, eq=False)
class Listing:
    """The entries of the catalogue, cached by the identity of their files."""

    catalogue: Catalogue
    entries: LruCache[tuple[str, FileIdentity], Record] = field(
        default_factory=lambda: LruCache(room=_MOST_LISTED)
    )

    async def all(self) -> list[Record]:
        """An entry for each release; a file that is removed meanwhile is left out."""
        found = [await self._entry(name) for name in self.catalogue.names()[:_MOST_LISTED]]
        return [entry for entry in found if entry is not None]

    async def _entry(self, name: str) -> Record | None:
        identity = self.catalogue.identity(name)
        cached = None if identity is None else self.entries.get((name, identity))
        if identity is None or cached is not None:
            return cached
        try:
            entry = await self.catalogue.get(name)
        except Refusal as refusal:
            if refusal.status == 404:
                return None
            raise
        summary = summarize_release(entry)
        self.entries.put((name, entry.identity), summary, 1)
        return summary


def release_routes(
    catalogue: Catalogue, replies: Replies, answerer: Answerer, watch: StreamWatcher
) -> APIRouter:
    """The catalogue and its releases; the pages have the same addresses without `.json`."""
    router = APIRouter(tags=["catalogue"], responses=ERRORS)
    listing = Listing(catalogue)

    @router.get("/index.json", operation_id="index", summary="What is served", response_model=CatalogueIndex)
    async def index() -> Response:
        streams = await replies.lanes.small.run(lambda: stream_entries(watch))
        entries = [entry.model_dump(mode="json") for entry in streams]
        body = encode_json({"releases": await listing.all(), "streams": entries})
        return Response(body, media_type=JSON, headers=_ASK_AGAIN)

    @router.get(
        "/releases/{name}.json",
        operation_id="release",
        summary="What a release is",
        response_model=ReleaseDetails,
    )
    async def release(request: Request, name: Name) -> Response:
        entry = await catalogue.ready(name)
        return await replies.json(
            request,
            entry,
            lambda: describe_release(entry, answerer),
            small=lambda: _description_work(entry) <= answerer.limits.small_work,
            fixed=True,
        )

    return router


# ---- downloads ----

_CHUNK: Final = 2**18  # bytes of a file that are read at a time
_DEFAULT_ROWS: Final = 1_000

Rows: TypeAlias = Annotated[int, Query(ge=1, description="how many rows to make up")]


@final
@dataclass(frozen=True)
class Download:
    """A file derived from a release: the end of its address, its type, a summary, and the function."""

    path: str
    media_type: str
    summary: str
    make: Callable[..., bytes]

    @property
    def operation(self) -> str:
        """The operation id in the OpenAPI document."""
        return self.path.replace(".", "_")


def _synthetic_csv(release: Release, rows: int) -> bytes:
    columns = release.synthesize(rows)
    return csv_bytes(list(columns), zip(*columns.values(), strict=True))


def _synthetic_parquet(release: Release, rows: int) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    pq.write_table(pa.table(release.synthesize(rows)), sink)
    return sink.getvalue()


TEXTS: Final = (
    Download(
        "report.txt",
        "text/plain; charset=utf-8",
        "The report",
        lambda release: f"{release.report()}\n".encode(),
    ),
    Download(
        "citation.bib",
        "application/x-bibtex; charset=utf-8",
        "What to cite, in BibTeX",
        lambda release: release.citation().encode(),
    ),
)
TABLES: Final = (
    Download("synthesize.csv", CSV, "Made-up rows, as CSV", _synthetic_csv),
    Download("synthesize.parquet", PARQUET, "Made-up rows, as Parquet", _synthetic_parquet),
)


def download_routes(catalogue: Catalogue, replies: Replies, limits: Limits) -> APIRouter:
    """The downloads of a release; synthetic rows are drawn in the lane of large work."""
    router = APIRouter(prefix="/releases/{name}", tags=["downloads"], responses=ERRORS)

    def text(what: Download) -> Callable[..., Any]:
        async def download(request: Request, name: Name) -> Response:
            entry = await catalogue.ready(name)
            return await respond(request, entry, what, lambda: what.make(entry.opened), small=True)

        return download

    def table(what: Download) -> Callable[..., Any]:
        async def download(request: Request, name: Name, rows: Rows = _DEFAULT_ROWS) -> Response:
            entry = await catalogue.ready(name)
            columns = len(entry.opened.columns)
            _check_rows(rows, limits, columns=columns)
            check_work(values_work(rows * columns), limits)
            return await respond(request, entry, what, lambda: what.make(entry.opened, rows), small=False)

        return download

    async def respond(
        request: Request, entry: Entry, what: Download, make: Callable[[], bytes], *, small: bool
    ) -> Response:
        headers = attachment(f"{entry.name}.{what.path}")
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
        caching = replies.check_tag(request, f'"{entry.digest}"')
        if isinstance(caching, Response):
            return caching
        headers = {**caching, **attachment(name + SUFFIX), "Content-Length": str(entry.identity.size)}
        return StreamingResponse(_chunks(catalogue.file(entry)), media_type=PARQUET, headers=headers)

    for what in (*TEXTS, *TABLES):
        endpoint = text(what) if what in TEXTS else table(what)
        router.add_api_route(
            f"/{what.path}", endpoint, **file_route(what.operation, what.summary, what.media_type)
        )
    router.add_api_route("/file", file, **file_route("file", "The release file itself", PARQUET))
    return router


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    with file:
        while chunk := file.read(_CHUNK):
            yield chunk


def _check_rows(rows: int, limits: Limits, *, columns: int) -> None:
    """Refuse more values than can be drawn within a request: the work grows with values, not rows."""
    most, fix = limits.rows // max(1, columns), "ask for fewer, or load the file"
    check(rows <= most, "rows", f"must be at most {most:,} here", given=rows, fix=fix)
