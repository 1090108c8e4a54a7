"""How a release looks in a notebook: its promise, its views, and a picture of each column."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from partita.html import Html, Row, bars, card, grid, number, plus_minus
from partita.public.base.figures import shortened
from partita.public.base.html import LONGEST, promise, values_of
from partita.public.file_entries.file_views import view_name
from partita.public.file_entries.published import Published
from partita.public.results.bins import bins_of
from partita.public.sums.view.sum_view import SumView
from partita.public.workload.release.query_view import QueryView

if TYPE_CHECKING:
    from partita.public.release.release import Release

_DRAWN: Final = 40
_MOST_COLUMNS: Final = 30


def release_card(release: Release) -> str:
    """What was promised, what was released and how, and each column with its counts."""
    origin = release.provenance
    facts = [
        ("promise", promise(release.guarantee)),
        ("published", f"{origin.day}, by Partita {origin.version}"),
        ("ledger", "debited" if origin.recorded else "not recorded"),
        ("rows", _rows(release)),
    ]
    return card(
        f"Release of {origin.dataset}" if origin.dataset else "Release", facts, below=_tables(release)
    )


def _tables(release: Release) -> Iterator[Html]:
    made = [(_name(view), view.mechanism, promise(view.guarantee)) for view in release.published]
    yield grid(("view", "mechanism", "promise"), made, left=3)
    if release.columns:
        yield grid(("column", "may hold", "", "rows"), _columns(release), left=3, note=_note(release))


def _rows(release: Release) -> str | None:
    if not release.views:
        return None
    counted = release.count()
    return plus_minus(counted.value, counted.error)


def _columns(release: Release) -> Iterator[Row]:
    """Each column with a picture of the rows that have a value of it, from the first value to the last."""
    for column in release.columns[:_MOST_COLUMNS]:
        line = release.slice(column)
        drawn = bars(bins_of(line, _DRAWN).counts.values.tolist())
        yield shortened(column, LONGEST), values_of(line.domain), drawn, number(line.axis.curve.total)


def _note(release: Release) -> str:
    more = len(release.columns) - _MOST_COLUMNS
    beyond = f" And {more} more columns." if more > 0 else ""
    return f"Rows with a value; those below, above, invalid or null are not drawn.{beyond}"


def _name(view: Published) -> str:
    if isinstance(view, QueryView):
        return shortened(f"{len(view):,} queries of {view_name(view.columns)}", LONGEST)
    return shortened(view.name if isinstance(view, SumView) else view_name(view.columns), LONGEST)
