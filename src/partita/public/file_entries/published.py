"""Everything that a release holds: views of counts, of sums, and of answers to queries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from partita.domain.base.base import Domain
from partita.public.results.totals import AnyView
from partita.public.sums.view.sum_view import SumView
from partita.public.workload.release.query_view import QueryView

Published: TypeAlias = AnyView | SumView | QueryView


def published(
    views: Iterable[AnyView], sums: Iterable[SumView], queries: QueryView | None
) -> tuple[Published, ...]:
    """All views: those of counts first, then those of sums, then that of queries."""
    return (*views, *sums, *(() if queries is None else (queries,)))


def declared_by(view: Published) -> Mapping[str, Domain]:
    """The domain of each column of a view, a summed one included."""
    if isinstance(view, SumView):
        return view.declared
    return dict(zip(view.columns, view.domains, strict=True))
