"""From rows to a release: count the columns of each view exactly, then draw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from partita.publishing.progress import phase
from partita.publishing.request import Request
from partita.releases.provenance import Provenance
from partita.releases.release import Release
from partita.releases.spec import view_name
from partita.sources import Source, tally

__all__ = ["count", "draw", "salt"]


def count(
    source: Source, request: Request, dataset: str | None, part: tuple[str, str] | None = None
) -> list[Any]:
    """The exact counts that each view asked for needs, each with the rows of a person bounded for itself.

    A person has at most k rows in each view, which is what the guarantee of each view needs; their
    sum is what the release costs. Of a `part`, a column and a value, no other rows are counted.
    """
    counted = []
    for view in request.views:
        with phase(f"counting {view.name}"):
            rows = tally(
                source,
                dict(zip(view.columns, view.domains, strict=True)),
                person=request.person,
                contributions=request.guarantee.contributions,
                salt=salt(dataset, *view.columns),
                where=part,
            )
            counted.append(view.counted(rows))
    return counted


def draw(request: Request, counted: Sequence[Any], provenance: Provenance) -> Release:
    """The release: fresh noise on every count."""
    with phase("drawing noise"):
        views = tuple(view.release(secret) for view, secret in zip(request.views, counted, strict=True))
    secure = all(view.guarantee is not None for view in views)
    return Release(views=views, guarantee=request.guarantee if secure else None, provenance=provenance)


def salt(dataset: str | None, *columns: str) -> str:
    """The public text that chooses which rows of a person with too many are kept.

    It follows from names that are in the release, so that everybody can say what the rule was.

    >>> salt("people", "age"), salt("people", "age", "salary")
    ('partita 1 people age', 'partita 1 people age x salary')
    """
    return f"partita 1 {dataset or ''} {view_name(columns)}"
