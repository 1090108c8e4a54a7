"""Linear queries over a table, written like dataframe expressions and evaluated without a matrix."""

from __future__ import annotations

from partita.queries.language import (
    between,
    clipped,
    marginal,
    matrix,
    power,
    prefixes,
    ranges,
    total,
    value,
    weights,
)
from partita.queries.operator import Operator
from partita.queries.parsing import parse, queries_from
from partita.queries.queries import Queries
from partita.queries.structured import Structured
from partita.queries.universe import Universe

__all__ = [
    "Operator",
    "Queries",
    "Structured",
    "Universe",
    "between",
    "clipped",
    "marginal",
    "matrix",
    "parse",
    "power",
    "prefixes",
    "queries_from",
    "ranges",
    "total",
    "value",
    "weights",
]
