"""What is asked of a view of queries: the queries, their columns, and the mechanism that will answer them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, final

from partita.domain.base.base import Domain
from partita.errors.checks import check
from partita.errors.errors import InvalidParameter
from partita.guarantee.guarantee import Guarantee
from partita.public.file_entries.file_views import QUERIES, queries_described
from partita.public.queries.language.parsing import parse
from partita.public.queries.queries.queries import Queries
from partita.public.queries.queries.universe import Universe
from partita.public.workload.release.query_view import QueryView
from partita.publish.views.view_request import ViewRequest, facts_of
from partita.publish.views.views import check_columns
from partita.trusted.mechanisms.catalogue import AUTO, Choice, choose_queries, query_mechanisms
from partita.trusted.mechanisms.workload.workload_mechanism import WorkloadMechanism, sentence
from partita.trusted.secret.points import Points
from partita.trusted.sources.tally.tally import Tally


@final
@dataclass(frozen=True, kw_only=True)
class QueryRequest(ViewRequest[Points]):
    """Queries over the cells of some columns, and how they will be answered."""

    error_of: ClassVar[str] = "an answer to a query"

    queries: Queries
    choice: Choice[WorkloadMechanism]

    @property
    def name(self) -> str:
        """A release has one view of queries at most."""
        return QUERIES

    @property
    def described(self) -> dict[str, Any]:
        """Queries, columns and domains in words that JSON can write."""
        return queries_described(self.queries, self.columns, self.domains)

    def plan_lines(self, rows: int) -> tuple[str, ...]:
        """What the mechanism would choose, a sentence each."""
        return tuple(map(sentence, self.choice.mechanism.plan_lines(rows)))

    def counted(self, rows: Tally) -> Points:
        """How many rows have each combination of values."""
        return rows.points(self.columns)

    def release(self, counted: Points) -> QueryView:
        """All answers by one mechanism."""
        return QueryView(
            columns=self.columns,
            domains=self.domains,
            queries=self.queries,
            answers=self.choice.mechanism.release(counted),
            mechanism=self.choice.name,
            why=self.why,
        )


def checked_queries(schema: Mapping[str, Domain], queries: object) -> Queries | None:
    """The queries as one list, from an expression, its text, or several of these; None for none.

    Weights that are given by a function are settled now, on the public cells of the schema.
    """
    if queries is None:
        return None
    listed = queries if isinstance(queries, list | tuple) else [queries]
    check(listed, "queries", "must not be empty", given="an empty list", fix="name some, or leave it out")
    read = [_read(each) for each in listed]
    together = read[0]
    for each in read[1:]:
        together = together + each
    check_columns(together.columns, schema, "queries")
    return together.settled(_universe(schema, together))


def query_request(
    queries: Queries, schema: Mapping[str, Domain], guarantee: Guarantee, mechanism: str, share: Fraction
) -> QueryRequest:
    """A view of queries that gets this share of a guarantee's epsilon, and what it uses of its delta."""
    universe = _universe(schema, queries)
    named = mechanism if mechanism in query_mechanisms() else AUTO
    facts = facts_of(guarantee, share)
    choice = choose_queries(queries, universe, mechanism=named, delta=guarantee.delta, **facts)
    return QueryRequest(
        columns=universe.columns, domains=universe.domains, share=share, choice=choice, queries=queries
    )


def _universe(schema: Mapping[str, Domain], queries: Queries) -> Universe:
    """The cells of the columns that queries name, or of the first column where they name none."""
    return Universe.of(schema, queries.columns or list(schema)[:1])


def _read(queries: object) -> Queries:
    if isinstance(queries, Queries):
        return queries
    if isinstance(queries, str):
        return parse(queries)
    fix = 'pass for example "ranges(age) * value(salary)"'
    raise InvalidParameter("queries", "must be queries, or their text", given=queries, fix=fix)
