"""Reads released numerical queries that may come from anybody: what was weighed, and over which cells."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, final

from partita.errors.errors import InvalidParameter
from partita.guarantee.guarantee import Guarantee
from partita.public.axis.base.ranges import Parts
from partita.public.axis.base.reading import PartsReader
from partita.public.base.released import damaged
from partita.public.queries.operator.structured import Structured
from partita.public.queries.queries.queries import Queries
from partita.public.queries.queries.universe import Universe
from partita.public.workload.decomposition.decomposed import Method, checked_method, space_of
from partita.public.workload.decomposition.graded import Graded
from partita.public.workload.decomposition.space import Space
from partita.public.workload.weights.measured import Weighed
from partita.public.workload.weights.weights_parts import WEIGHED_FACTS, WEIGHED_SERIES, read_weighed

MOST_CELLS: Final = 1 << 24
"""No more cells are weighed."""

MOST_GRADED: Final = 1 << 22
"""No more queries are weighed, those for all thresholds counted."""


@final
@dataclass(frozen=True)
class NumericalReader:
    """Parts of a release with the parts of its kind, and the cells that they speak of."""

    parts: PartsReader
    queries: Queries
    universe: Universe
    decomposition: Method
    space: Space

    @staticmethod
    def of(
        parts: Parts,
        queries: Queries,
        universe: Universe,
        *,
        facts: Iterable[str] = (),
        series: Iterable[str] = (),
    ) -> NumericalReader:
        """The reader, if the release has all parts and no other, over cells that can be held."""
        reader = PartsReader(parts)
        reader.expect(facts=(*WEIGHED_FACTS, "decomposition", *facts), series=(*WEIGHED_SERIES, *series))
        method, space = _cells(parts.facts["decomposition"], queries, universe)
        if math.prod(space.shape) > MOST_CELLS:
            raise damaged("decomposition", f"must be over at most {MOST_CELLS} cells")
        if space.graded > MOST_GRADED:
            raise damaged("queries", f"must be at most {MOST_GRADED} for all thresholds")
        return NumericalReader(reader, queries, universe, method, space)

    def common(self, guarantee: Guarantee | None) -> dict[str, Any]:
        """What all releases of numerical queries have."""
        return {
            "queries": self.queries,
            "universe": self.universe,
            "guarantee": guarantee,
            "decomposition": self.decomposition,
        }

    def weighed(self, graded: Graded) -> Weighed:
        """What was measured of the graded queries."""
        return read_weighed(self.parts, graded, self.space.unit)


def numerical_operator(queries: Queries, universe: Universe) -> Structured:
    """The queries as an operator, if they fit the universe and are numerical."""
    try:
        operator = queries.over(universe)
    except InvalidParameter:
        raise damaged("queries", "must fit the universe") from None
    if operator.lowest < 0 or operator.highest < 1:
        raise damaged("queries", "must have positive weights and no negative ones")
    return operator


def _cells(method: Any, queries: Queries, universe: Universe) -> tuple[Method, Space]:
    operator = numerical_operator(queries, universe)
    try:
        checked = checked_method(method)
        return checked, space_of(operator, checked)
    except InvalidParameter:
        raise damaged("decomposition", "must fit the queries") from None
