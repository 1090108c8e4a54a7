"""Questions about answers to queries that were published."""

from __future__ import annotations

from partita.answer import Answer, Answers
from partita.errors.errors import InvalidParameter
from partita.numbers import integer
from partita.public.workload.release.query_view import QueryView


class QueryQuestions:
    """What can be asked of the view of queries."""

    queries: QueryView | None

    def answers(self) -> Answers:
        """The answers to all queries that were published, in their order; `labels` says which is which."""
        return self._answered.answers.answers()

    def answer(self, index: int) -> Answer:
        """The answer to one of the queries that were published."""
        return self._answered.answer(integer(index, "index", low=0, high=len(self._answered) - 1))

    def labels(self) -> list[str]:
        """Every query that was published as text, in the order of the answers."""
        return [self._answered.label(index) for index in range(len(self._answered))]

    @property
    def _answered(self) -> QueryView:
        if self.queries is not None:
            return self.queries
        rule = "must have been published, and this release has none"
        fix = 'publish with queries=, for example queries="ranges(age) * value(salary)"'
        raise InvalidParameter("queries", rule, given="no queries", fix=fix)
