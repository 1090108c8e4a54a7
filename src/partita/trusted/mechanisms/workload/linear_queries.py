"""The Laplace mechanism on any explicit list of linear queries [DMNS06; SU, section 1.1]."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, Final, TypeAlias, final

import numpy as np

from partita.errors.errors import InvalidParameter
from partita.numbers import Converted, freeze, frozen, parameter, rational
from partita.public.bounds.query_error import independent_error
from partita.public.queries.ranges.sparse import Sparse
from partita.public.workload.release.linear_queries import LinearQueriesRelease
from partita.trusted.mechanisms.base.base import Mechanism
from partita.trusted.mechanisms.base.checks import check_scale, fitting
from partita.trusted.noise.system.protocol import Noise
from partita.trusted.noise.system.system import SYSTEM
from partita.trusted.secret.histogram import AxisCounts

Rows: TypeAlias = tuple[tuple[Fraction, ...], ...]

_MOST_WEIGHTS: Final = 2**20
_FINEST: Final = 2**62


@final
@frozen(kw_only=True)
class LinearQueries(Mechanism):
    """Publish once; answer a given list of linear queries, each a weight for every cell.

    Guarantee: epsilon-DP, pure; ADD_REMOVE or CHANGE_ONE.                         [DMNS06]
    Error:     O(sensitivity log k / epsilon) for k queries at once; the sensitivity is the largest
               sum of absolute weights of one cell.
    Proof:     docs/proofs/linear_queries.md (integer noise at a public granularity)

    Weights are exact: integers, fractions, decimals or text like "1/3". Noise is added to integers,
    the answers times the weights' common denominator.

    >>> queries = LinearQueries(queries=[[1, 1, 0], [0, "1/2", 1]], epsilon=1)
    >>> queries.granularity, queries.sensitivity, queries.scale
    (2, Fraction(3, 2), Fraction(3, 1))
    """

    queries: Converted[Sequence[Sequence[object]], Rows] = parameter(repr=False)

    def _convert(self) -> None:
        super()._convert()
        freeze(self, queries=_rows(self.queries))

    def _check(self) -> None:
        check_scale(self.scale, self.epsilon)

    @property
    def size(self) -> int:
        """The number of cells."""
        return len(self.queries[0])

    @cached_property
    def granularity(self) -> int:
        """The least common denominator of all weights: answers are released in units of one over it."""
        return math.lcm(*(weight.denominator for row in self.queries for weight in row))

    @cached_property
    def sensitivity(self) -> Fraction:
        """By how much one row in or out can change all answers together."""
        return Fraction(self._operator.column_norm, self.granularity)

    @property
    def scale(self) -> Fraction:
        """The noise scale, in units of one over the granularity."""
        return self.granularity * self.sensitivity / self.rate

    @property
    def largest_error(self) -> float:
        """The expected largest error over all queries is at most this [SU, section 1.1]."""
        return independent_error(self.scale, len(self.queries)) / self.granularity

    def release(self, data: AxisCounts, *, noise: Noise = SYSTEM) -> LinearQueriesRelease:
        """Answer every query in whole units and add noise."""
        counts = fitting(data, self.size, self.contributions)
        session = noise.session()
        return LinearQueriesRelease(
            noisy=session.add(self._operator.answers(counts.spread()), self.scale),
            queries=self.queries,
            granularity=self.granularity,
            scale=self.scale,
            guarantee=self.guarantee if session.secure else None,
        )

    @cached_property
    def _operator(self) -> Sparse:
        """The queries in whole units."""
        weights = np.array([[int(w * self.granularity) for w in row] for row in self.queries], dtype=object)
        rows, cells = np.nonzero(weights)
        return Sparse((self.size,), len(self.queries), rows, cells, weights[rows, cells], self.granularity)


def _rows(queries: Any) -> Rows:
    """The queries, exactly: a table of at most 2^20 weights, not all zero, with a moderate denominator."""
    table = queries.tolist() if isinstance(queries, np.ndarray) else queries
    listed = isinstance(table, (list, tuple)) and all(isinstance(row, (list, tuple)) for row in table)
    if not listed or not table or not all(0 < len(row) == len(table[0]) for row in table):
        raise _wrong("must be rows of one length, a weight for each cell", queries, "pass a list of lists")
    if len(table) * len(table[0]) > _MOST_WEIGHTS:
        raise _wrong(f"must hold at most {_MOST_WEIGHTS} weights", queries, "use a tree for many ranges")
    exact = tuple(tuple(rational(weight, "queries") for weight in row) for row in table)
    if not any(any(row) for row in exact):
        raise _wrong("must hold a weight that is not zero", queries, "leave out queries that ask nothing")
    _check_denominators(exact)
    return exact


def _check_denominators(rows: Rows) -> None:
    common = 1
    for denominator in {weight.denominator for row in rows for weight in row}:
        common = math.lcm(common, denominator)
        if common > _FINEST:
            raise _wrong("must have a common denominator of at most 2^62", rows, "round the weights")


def _wrong(rule: str, queries: object, fix: str) -> InvalidParameter:
    return InvalidParameter("queries", rule, given=queries, fix=fix)
