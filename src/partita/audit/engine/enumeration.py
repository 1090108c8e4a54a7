"""The first part of an audit: every mechanism on all pairs of neighbours of tiny universes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Final

from partita.audit.base.case import Case, CaseCount, Depth, checked_depth, counted
from partita.audit.cases_people.proofs_local import randomizer_cases
from partita.audit.cases_people.proofs_pan import sketch_cases
from partita.audit.cases_people.proofs_sparse import sparse_cases
from partita.audit.cases_people.proofs_streams import counter_cases
from partita.audit.cases_tables.proofs_axis import axis_cases
from partita.audit.cases_tables.proofs_boxes import box_cases, sum_cases
from partita.audit.cases_tables.proofs_publish import publish_cases
from partita.audit.cases_tables.proofs_queries import query_cases

_GROUPS: Final[tuple[Callable[[Depth, int], Iterator[Case]], ...]] = (
    axis_cases,
    box_cases,
    sum_cases,
    query_cases,
    counter_cases,
    sparse_cases,
    sketch_cases,
    randomizer_cases,
    publish_cases,
)


def cases(depth: Depth = "standard", *, only: Collection[str] | None = None, more: int = 0) -> Iterator[Case]:
    """Every case of this depth, or those of some mechanisms."""
    for group in _GROUPS:
        for case in group(checked_depth(depth), more):
            if only is None or case.mechanism in only:
                yield case


def enumerate_all(
    *, depth: Depth = "standard", only: Collection[str] | None = None, more: int = 0
) -> Iterator[CaseCount]:
    """Compare the pairs of every case, one case after the other.

    `only` are names of mechanisms. With `more`, others have so many rows more in every universe of counts,
    counters meet so many more fixed streams, and randomizers so many more sizes; sketches stay as they are.

    >>> [count] = enumerate_all(depth="quick", only=["ListedLaw"])
    >>> count.pairs, count.violations
    (1, 0)
    """
    for case in cases(depth, only=only, more=more):
        yield counted(case)
