"""Questions about sums, and which view answers them: the one with the fewest keys that has all asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from partita.errors.errors import InvalidParameter
from partita.public.conditions import Ends, Where, parse_conditions
from partita.public.sums.base.answers import Ratio, SumAnswer
from partita.public.sums.view.sum_view import SumView


class SumQuestions:
    """What can be asked of the views of sums."""

    sums: tuple[SumView, ...]

    def sum(
        self, column: str, /, where: Where | None = None, *, closed: Ends = "both", **columns: object
    ) -> SumAnswer:
        """The sum of a column over the rows that are in the cells asked for, and what values it covers.

        For columns that were published with `sums=`. Conditions are on keys: `sum("salary", age=(30, 39))`.
        """
        asked = parse_conditions(where, columns, closed)
        return summing(self.sums, column, asked).sum(asked)

    def mean(
        self, column: str, /, where: Where | None = None, *, closed: Ends = "both", **columns: object
    ) -> Ratio:
        """The mean of a column over the rows asked for that hold a number.

        Where there may be no such row at all it is not determinable, and says so.
        """
        asked = parse_conditions(where, columns, closed)
        return summing(self.sums, column, asked).mean(asked)

    def variance(
        self, column: str, /, where: Where | None = None, *, closed: Ends = "both", **columns: object
    ) -> Ratio:
        """The variance of a column over the rows asked for; for columns published with `moments=`."""
        asked = parse_conditions(where, columns, closed)
        return summing(self.sums, column, asked).variance(asked)

    def std(
        self, column: str, /, where: Where | None = None, *, closed: Ends = "both", **columns: object
    ) -> Ratio:
        """The standard deviation of a column over the rows asked for; for those with `moments=`."""
        asked = parse_conditions(where, columns, closed)
        return summing(self.sums, column, asked).std(asked)


def summing(sums: Sequence[SumView], column: object, asked: Iterable[str]) -> SumView:
    """The view of sums of the column with the fewest keys that has all keys asked for; the first such."""
    of_column = [view for view in sums if view.column == column]
    if not of_column:
        raise _not_summed(sums, column)
    wanted = list(asked)
    fitting = [view for view in of_column if set(wanted) <= set(view.keys)]
    if not fitting:
        raise _no_keys(of_column, wanted)
    return min(fitting, key=lambda view: len(view.keys))


def _not_summed(sums: Sequence[SumView], column: object) -> InvalidParameter:
    summed = list(dict.fromkeys(view.column for view in sums))
    near = get_close_matches(column, summed, n=1) if isinstance(column, str) else []
    rule = f"one of {_listed(summed)}" if summed else "summed, and this release has counts only"
    fix = f"did you mean {near[0]!r}?" if near else f"publish with sums=[{column!r}]"
    return InvalidParameter("column", f"must be {rule}", given=column, fix=fix)


def _no_keys(views: Sequence[SumView], wanted: Sequence[str]) -> InvalidParameter:
    column = views[0].column
    there = " and ".join(f"({_listed(view.keys)})" for view in views)
    rule = f"must name keys by which {column!r} was summed, and those are {there}"
    fix = f"ask by these, or publish with views=[({_listed(wanted)},), ...] and sums=[{column!r}]"
    return InvalidParameter("where", rule, given=", ".join(map(str, wanted)), fix=fix)


def _listed(columns: Iterable[object]) -> str:
    return ", ".join(map(repr, columns))
