"""A release: public from the first byte to the last, and free to ask."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction
from functools import reduce
from operator import add
from typing import Any, Final, cast, final, get_args, overload

from partita.answer import Answer, Answers
from partita.errors import IncompatibleGuarantees, InvalidParameter, InvalidRelease
from partita.exact import failure, integer, one_of
from partita.guarantee import Guarantee, rows_changed
from partita.releases.bins import Bins, bins_of
from partita.releases.cdf import Cdf, cdf
from partita.releases.citation import citation
from partita.releases.plot import plot
from partita.releases.provenance import Provenance
from partita.releases.quantiles import Quantile, quantiles
from partita.releases.report import report
from partita.releases.spans import Closed
from partita.releases.synthesis import MOST_ROWS, synthetic
from partita.releases.view import View
from partita.releases.where import Question, Where, gathered, question
from partita.releases.where_arrays import is_single, ranges

__all__ = ["Release"]

_FIX: Final = "get a fresh copy of the release"


@final
@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Release:
    """Views of a table, published once. Every question is free, and so is every copy.

    `guarantee` is what all views promise together, to the last digit. It is None if one of them was made
    with injected noise: then the release protects nobody.

    Questions name a column and say which of its values they ask for:

        release.count(age=(30, 39))            from 30 to 39, both included, as SQL BETWEEN
        release.count(age=(65, None))          an open end, above the declared bounds too
        release.count(age=42)                  one value
        release.count(town=["Rome", "Bari"])   any of these labels; for other columns, a set of values
        release.count(age=pt.NULL)             a special cell: NULL, INVALID, BELOW, ABOVE, OTHER
        release.count(where={"where": 3})      a column of any name

    A tuple is always a range, along the declared order of labels too. A bounded end never counts what
    lies beyond the declared bounds, which is in the special cells below and above; null and invalid
    are counted only if they are asked for by name. The ends of a range fall in cells as values do: a
    Real column rounds them to its step, and a Timestamp column counts their whole slots.
    """

    views: tuple[View, ...]
    guarantee: Guarantee | None
    provenance: Provenance

    def __post_init__(self) -> None:
        if not self.views or len(set(self.columns)) < len(self.views):
            raise InvalidRelease("views", "must be of different columns", fix="release each column once")
        if self.guarantee != _promised(self.views):
            raise InvalidRelease("guarantee", "must be what its views promise together", fix=_FIX)
        if not all(map(_keeps_its_promise, self.views)):
            raise InvalidRelease("special cells", "must have the noise that is promised", fix=_FIX)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that can be asked for."""
        return tuple(view.column for view in self.views)

    def view(self, column: str) -> View:
        """What was released about one column."""
        try:
            return {view.column: view for view in self.views}[column]
        except (KeyError, TypeError):
            near = get_close_matches(str(column), self.columns, n=1, cutoff=0.5)
        fix = f"did you mean {near[0]!r}?" if near else "ask for one of them"
        raise InvalidParameter("column", f"must be one of {self._listed}", given=column, fix=fix)

    def count(self, /, where: Where | None = None, *, closed: Closed = "both", **columns: object) -> Answer:
        """How many rows are in the cells asked for; without any column, how many there are.

        `closed` says which ends of a range belong to it: "both", "left", "right" or "neither". The
        count of all rows is the mean over the views by inverse variance, as all of them counted
        the same rows. Of a range, the declared cells are counted: of ages from 0 to 120, (110, 200) means
        110 to 120, and what lies beyond is in BELOW and ABOVE.
        """
        one_of(closed, "closed", get_args(Closed))
        asked = gathered(where, columns)
        if not asked:
            return Answer.combined([view.answer(view.everybody) for view in self.views])
        view, cells = self._question(asked, closed)
        return view.answer(cells)

    def counts(self, /, where: Where | None = None, *, closed: Closed = "both", **columns: object) -> Answers:
        """The counts of many ranges of one column: `counts(age=([0, 18], [17, 64]))`.

        A tuple of lows and highs, each an array, one value for all, or None; an end that is missing
        in its array is open. An array that is in no tuple asks for single values. Ranges mean what they
        mean to `count`.
        """
        view, values = self._asked(gathered(where, columns))
        return view.answers(ranges(view.domain, values, name=view.column, closed=closed))

    def difference(self, first: Where, second: Where, *, closed: Closed = "both") -> Answer:
        """How many more rows the first question counts than the second, with the error of just that.

        Of one column it is one linear question. Two columns have independent noise.
        """
        (one, added), (other, taken) = (
            self._question(gathered(each, {}), closed) for each in (first, second)
        )
        return one.answer(added, taken) if one is other else one.answer(added) + -other.answer(taken)

    def cdf(self, column: str, values: Any = None) -> Cdf:
        """How many rows, and which share of those with a value on the axis, do not exceed each of the values.

        Without `values`, at the last value of every piece of the release: between those the
        counts rise evenly.
        """
        return cdf(self.view(column), values)

    @overload
    def quantile(self, column: str, q: float | Fraction) -> Quantile: ...

    @overload
    def quantile(self, column: str, q: Sequence[float | Fraction]) -> list[Quantile]: ...

    def quantile(self, column: str, q: object) -> Quantile | list[Quantile]:
        """The least value that at least a share q of the rows on the axis do not exceed; one q or many."""
        view = self.view(column)
        return quantiles(view, [q])[0] if is_single(q) else quantiles(view, cast(Iterable[object], q))

    def histogram(self, column: str, bins: int = 12) -> Bins:
        """Counts in bins of equally many cells; where the bins lie follows from the domain alone."""
        return bins_of(self.view(column), bins)

    def synthesize(self, n: int | None = None) -> dict[str, list[object]]:
        """n made-up rows that look like the release, a list of values for each column.

        They are a function of the release: asking twice gives the same rows. Columns are made one by
        one, so nothing is right about how they go together. A row that is in a special cell is
        None. Without n, as many rows as were counted.
        """
        counted = max(0, round(self.count().value)) if n is None else n
        rows = integer(counted, "n", low=0, high=MOST_ROWS)
        return {view.column: synthetic(view, rows) for view in self.views}

    def error(self, beta: float = 0.05) -> float:
        """With probability 1 - beta no range count of any column misses the truth by more, whatever the data.

        Open ends included. Every view takes its share of beta.
        """
        share = float(failure(beta)) / len(self.views)
        return max(view.error(share) for view in self.views)

    def report(self, beta: float = 0.05) -> str:
        """What was released, from which public facts, with which guarantee, cost and error."""
        error = self.error(beta)
        return report(self.views, self.guarantee, self.provenance, beta=float(failure(beta)), error=error)

    def citation(self) -> str:
        """BibTeX entries for the library and the papers behind the release."""
        return citation([view.mechanism for view in self.views], version=self.provenance.version)

    def plot(self, column: str, *, bins: int = 60, axes: Any = None) -> Any:
        """The histogram of a column with 95% bars, on matplotlib axes, which are returned."""
        return plot(self.view(column), bins=bins, axes=axes, dataset=self.provenance.dataset)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the release to a file, whole or not at all."""
        from partita.releases.file import save

        save(self, path, overwrite=overwrite)

    def __repr__(self) -> str:
        promise = "no guarantee" if self.guarantee is None else str(self.guarantee)
        return f"Release({', '.join(self.columns)}; {promise})"

    def _question(self, asked: Where, closed: Closed) -> tuple[View, Question]:
        view, value = self._asked(asked)
        return view, question(view.domain, value, name=view.column, closed=closed)

    def _asked(self, asked: Where) -> tuple[View, object]:
        """The view and the values of the one column asked for."""
        views = [self.view(column) for column in asked]
        if len(views) != 1:
            raise InvalidParameter(
                "where",
                f"must name one column, as the views are of one column each: {self._listed}",
                given=", ".join(asked) or "no column",
                fix="ask for one column at a time",
            )
        return views[0], asked[views[0].column]

    @property
    def _listed(self) -> str:
        return ", ".join(map(repr, self.columns))


def _promised(views: Sequence[View]) -> Guarantee | None:
    """What views of the same people promise together; None if one of them promises nothing."""
    guarantees = [view.axis.guarantee for view in views if view.axis.guarantee is not None]
    if len(guarantees) < len(views):
        return None
    try:
        return reduce(add, guarantees)
    except IncompatibleGuarantees:
        raise InvalidRelease("views", "must promise about the same neighbors", fix=_FIX) from None


def _keeps_its_promise(view: View) -> bool:
    """Whether the special cells have the noise that the guarantee of the view asks for."""
    promise, scale = view.axis.guarantee, view.specials.scale
    return (
        promise is None or scale == rows_changed(promise.neighbors, promise.contributions) / promise.epsilon
    )
