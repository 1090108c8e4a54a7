"""Routes of what is seen: as JSON for the page, and as a table."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from partita.asking.questions import write_conditions
from partita.asking.records import Record
from partita.releases.release import Release
from partita.service.reading.answered import NumberAnswer, Shown
from partita.service.reading.answering import Answering
from partita.service.reading.asked import Bars, Column, conditions_of
from partita.service.reading.catalogue import Catalogue, Entry
from partita.service.reading.document import ERRORS
from partita.service.reading.downloads import attached, csv_bytes, gives
from partita.service.reading.paths import Name
from partita.service.reading.replies import Replies
from partita.service.reading.snippets import snippets
from partita.service.reading.view import Axis, View
from partita.service.reading.work import Predicted, check_work

__all__ = ["view_routes"]

_LINE, _SIDE = 60, 32
_CSV = "text/csv; charset=utf-8"


class ViewAsked(Bars):
    """What to show: one column or two, which rows of it, in which window, in how many bins."""

    x: Column
    y: Column | None = None
    where: str = Field(default="", description="conditions; those on x and y are the selection")
    bins: int | None = Field(
        default=None, ge=1, description="at most so many on each side; 60 of one, 32 of two"
    )
    low: str | None = Field(
        default=None, alias="from", max_length=1000, description="the window of x begins here"
    )
    high: str | None = Field(
        default=None, alias="to", max_length=1000, description="the window of x ends here"
    )
    y_low: str | None = Field(
        default=None, alias="y_from", max_length=1000, description="that of y begins here"
    )
    y_high: str | None = Field(default=None, alias="y_to", max_length=1000, description="that of y ends here")

    def view(self, release: Release, answering: Answering) -> View:
        """The same of a release."""
        answering.check_text(self.where, "where")
        bins = self.bins or (_LINE if self.y is None else _SIDE)
        answering.check_points(bins if self.y is None else bins**2)
        axes = [Axis.of(release, self.x, (self.low, self.high), bins)]
        if self.y is not None:
            axes.append(Axis.of(release, self.y, (self.y_low, self.y_high), bins))
        return View(release, axes, conditions_of(self.where), self, answering)


class AxisShown(Shown):
    """The bins of a column, in text as questions read it."""

    column: str
    kind: str
    lows: list[str]
    highs: list[str]
    low: str
    high: str
    size: str = Field(description="how many cells the window has")


class CdfShown(Shown):
    """Shares of the rows up to some values, with a band."""

    at: list[str]
    share: list[float]
    low: list[float]
    high: list[float]


class QuantileShown(Shown):
    """A quantile and its interval."""

    q: float
    value: str
    low: str
    high: str


class SpecialShown(Shown):
    """What is beside the axis."""

    name: str
    value: float
    error: float
    half: float


class Ends(Shown):
    """A range; null is an open end."""

    low: str | None
    high: str | None


class Selection(Shown):
    """What is selected of the columns shown."""

    ranges: dict[str, Ends]
    count: NumberAnswer


class Conditional(Shown):
    """One column, given what is selected of the other."""

    of: str
    given: str
    values: list[float]
    error: list[float]
    half: list[float]
    small: list[bool]


class Conditionals(Shown):
    """Both columns, each given the other."""

    x: Conditional
    y: Conditional


class Snippets(Shown):
    """The selection, to be copied."""

    python: str
    curl: str
    text: str


class ViewShown(Shown):
    """What is seen; of two columns, numbers are in a row for each bin of x."""

    release: str
    x: str
    y: str | None
    where: str
    filter: str = Field(description="the conditions that are not the selection")
    confidence: float
    axes: list[AxisShown]
    values: list[float] | list[list[float]]
    error: list[float] | list[list[float]]
    half: list[float] | list[list[float]]
    small: list[bool] | list[list[bool]]
    selection: Selection
    total: NumberAnswer
    cdf: CdfShown | None
    quantiles: list[QuantileShown] | None
    specials: list[SpecialShown] | None
    conditional: Conditionals | None
    snippets: Snippets
    links: dict[str, str]


def view_routes(catalogue: Catalogue, replies: Replies, answering: Answering) -> APIRouter:
    """What is seen of a release; the page of people has the same address without `.json`."""
    router = APIRouter(prefix="/releases/{name}", tags=["views"], responses=ERRORS)

    @router.get("/view.json", operation_id="view", summary="What is seen", response_model=ViewShown)
    async def view(request: Request, name: Name, asking: Annotated[ViewAsked, Query()]) -> Response:
        entry = await catalogue.ready(name)
        origin = str(request.base_url).rstrip("/")

        def make() -> Record:
            return _shown(_checked(entry, asking, answering), asking, name=name, origin=origin)

        return await replies.json(request, entry, make, small=lambda: _is_small(entry, asking, answering))

    @router.get("/view.csv", **gives("view_csv", "What is seen, as a table", _CSV))
    async def view_csv(request: Request, name: Name, asking: Annotated[ViewAsked, Query()]) -> Response:
        entry = await catalogue.ready(name)

        def make() -> bytes:
            heads, rows = _checked(entry, asking, answering).rows()
            return csv_bytes(heads, iter(rows))

        return await replies.data(
            request,
            entry,
            make,
            media_type=_CSV,
            small=lambda: _is_small(entry, asking, answering),
            headers=attached(f"{name}.view.csv"),
        )

    return router


def _checked(entry: Entry, asking: ViewAsked, answering: Answering) -> View:
    """What is to be shown, unless it would be too much work."""
    view = asking.view(entry.opened, answering)
    check_work(view.work(Predicted(entry.facts)), answering.limits)
    return view


def _is_small(entry: Entry, asking: ViewAsked, answering: Answering) -> bool:
    """Whether it is so little work, at most, that it belongs among small questions."""
    view = asking.view(entry.opened, answering)
    return view.work(Predicted(entry.facts, at_most=True)) <= answering.limits.small_work


def _shown(view: View, asking: ViewAsked, *, name: str, origin: str) -> Record:
    query = urlencode(asking.model_dump(by_alias=True, exclude_defaults=True))
    return {
        "release": name,
        "x": asking.x,
        "y": asking.y,
        "where": write_conditions(view.where),
        "filter": write_conditions(view.filter),
        "confidence": asking.confidence,
        **view.record(),
        "snippets": snippets(name, view.where, origin=origin),
        "links": {
            end or "page": f"/releases/{name}/view{end and f'.{end}'}?{query}" for end in ("", "json", "csv")
        },
    }
