"""From rows to a release: count each column exactly, then draw."""

from __future__ import annotations

from collections.abc import Mapping

from partita.publishing.progress import phase
from partita.publishing.request import Request, ViewRequest
from partita.releases.provenance import Provenance
from partita.releases.release import Release
from partita.releases.view import View
from partita.sources import Column, Source, tally

__all__ = ["count", "draw", "salt"]


def count(
    source: Source, request: Request, dataset: str | None, part: tuple[str, str] | None = None
) -> Mapping[str, Column]:
    """The exact counts of every column asked for, each with the rows of a person bounded for itself.

    A person has at most k rows in each view, which is what the guarantee of each view needs; their
    sum is what the release costs. Of a `part`, a column and a value, no other rows are counted.
    """
    counted = {}
    for view in request.views:
        with phase(f"counting {view.column}"):
            rows = tally(
                source,
                {view.column: view.domain},
                person=request.person,
                contributions=request.guarantee.contributions,
                salt=salt(dataset, view.column),
                where=part,
            )
            counted[view.column] = rows.column(view.column)
    return counted


def draw(request: Request, columns: Mapping[str, Column], provenance: Provenance) -> Release:
    """The release: fresh noise on every count."""
    with phase("drawing noise"):
        views = tuple(_view(view, columns[view.column]) for view in request.views)
    secure = all(view.axis.guarantee is not None for view in views)
    return Release(views=views, guarantee=request.guarantee if secure else None, provenance=provenance)


def salt(dataset: str | None, column: str) -> str:
    """The public text that chooses which rows of a person with too many are kept.

    It follows from names that are in the release, so that everybody can say what the rule was.

    >>> salt("people", "age")
    'partita 1 people age'
    """
    return f"partita 1 {dataset or ''} {column}"


def _view(request: ViewRequest, column: Column) -> View:
    axis, specials = request.mechanism.release(column.histogram, column.specials)
    return View(
        column=request.column,
        domain=request.domain,
        axis=axis,
        specials=specials,
        mechanism=request.choice.name,
        why=request.choice.why,
    )
