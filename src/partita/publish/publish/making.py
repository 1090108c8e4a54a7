"""From rows to a release: count the columns of each view exactly, then draw."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import Any, Protocol, runtime_checkable

from partita.public.base.provenance import Provenance
from partita.public.file_entries.file_views import view_name
from partita.public.file_entries.published import published
from partita.public.release.release import Release
from partita.publish.publish.progress import phase
from partita.publish.request.request import Request
from partita.trusted.sources.base.protocol import Source
from partita.trusted.sources.tally.tally import Tally, tally


@runtime_checkable
class _Tallying(Protocol):
    """A source that tallies its rows by itself, where they are."""

    @property
    def tally(self) -> Any:
        """As `sources.tally`, but for the source; the counts stay where the rows are."""


def count(
    source: Source, request: Request, dataset: str | None, part: tuple[str, str] | None = None
) -> list[Any]:
    """The exact counts that each view asked for needs, each with the rows of a person bounded for itself.

    A person has at most k rows in each view, which is what the guarantee of each view needs; their
    sum is what the release costs. Views of the same columns are made of the same rows, which are counted
    once. Of a `part`, a column and a value, no other rows are counted.
    """
    rows = cache(partial(_rows, source, request, dataset, part))
    first = {frozenset(view.columns): view.columns for view in reversed(request.published)}
    counted = []
    for view in request.published:
        with phase(f"counting {view.name}"):
            counted.append(view.counted(rows(first[frozenset(view.columns)])))
    return counted


def _rows(
    source: Source,
    request: Request,
    dataset: str | None,
    part: tuple[str, str] | None,
    columns: tuple[str, ...],
) -> Tally:
    """The rows by the cells of these columns, at most so many of each person."""
    counted = source.tally if isinstance(source, _Tallying) else partial(tally, source)
    rows: Tally = counted(
        {column: request.declared[column] for column in columns},
        person=request.person,
        contributions=request.guarantee.contributions,
        salt=salt(dataset, *columns),
        where=part,
    )
    return rows


def draw(request: Request, counted: Sequence[Any], provenance: Provenance) -> Release:
    """The release: fresh noise on every count. What is cut by released counts is released after them."""
    secrets = iter(counted)
    with phase("drawing noise"):
        views = tuple(view.release(next(secrets)) for view in request.views)
        sums = tuple(view.release(next(secrets), views) for view in request.sums)
        queries = None if request.queries is None else request.queries.release(next(secrets))
    secure = all(view.guarantee is not None for view in published(views, sums, queries))
    return Release(
        views=views,
        sums=sums,
        queries=queries,
        guarantee=request.guarantee if secure else None,
        provenance=provenance,
    )


def salt(dataset: str | None, *columns: str) -> str:
    """The public text that chooses which rows of a person with too many are kept.

    It follows from names that are in the release, so that everybody can say what the rule was.

    >>> salt("people", "age"), salt("people", "age", "salary")
    ('partita 1 people age', 'partita 1 people age x salary')
    """
    return f"partita 1 {dataset or ''} {view_name(columns)}"
