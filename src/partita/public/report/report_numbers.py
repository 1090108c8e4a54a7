"""What a report says about sums and about answers to queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from partita.answer import Answer
from partita.public.base.figures import figure, shortened
from partita.public.file_entries.published import Published
from partita.public.sums.view.sum_view import SumView
from partita.public.workload.release.query_view import QueryView

_LONGEST: Final = 100


def numbers_contents(published: Sequence[Published]) -> Iterator[str]:
    """Sums and answers in a few words each."""
    summed = dict.fromkeys(view.column for view in published if isinstance(view, SumView))
    if summed:
        yield f"noisy sums of {', '.join(summed)}"
    for view in published:
        if isinstance(view, QueryView):
            yield f"noisy answers to {_number_of_queries(view)} about {', '.join(view.columns)}"


def sums_about(view: SumView) -> str:
    """The summed column, its domain and its keys, and what is in its special cells."""
    by = f", by {' and '.join(view.keys)}" if view.keys else ", of all rows"
    declared = f"Sums of {view.column}, declared as {shortened(repr(view.domain), _LONGEST)}{by}."
    return f"{declared} {special_cells(view.column, view.specials)}"


def special_cells(column: str, counts: Mapping[str, Answer]) -> str:
    """What is in the special cells of a column, each with an error of its own."""
    said = (f"{name} {figure(max(0.0, each.value))} ± {figure(each.error)}" for name, each in counts.items())
    return f"Special cells of {column}: {', '.join(said)}."


def queries_about(view: QueryView) -> str:
    """How many queries there are, and what they are."""
    said = shortened(str(view.queries), _LONGEST)
    return f"Answers to {_number_of_queries(view)} about {', '.join(view.columns)}: {said}."


def numbers_accuracy(published: Sequence[Published], beta: float) -> Iterator[str]:
    """How far sums and answers may be from the truth."""
    if any(isinstance(view, SumView) for view in published):
        yield (
            "Error of sums: every sum, mean and variance has a bar of its own, and says which values it "
            "covers. Where noise hides larger ones, they count as the last value that is covered, or less of "
            "them the further out they are, as it says; the bar is about exactly that."
        )
    for view in published:
        if isinstance(view, QueryView):
            yield (
                f"Error of answers: with a probability of at least {100 * (1 - beta):.10g}% no answer to a "
                f"query misses the truth by more than {figure(view.error(beta))}."
            )


def numbers_rules(published: Sequence[Published]) -> Iterator[str]:
    """How values are taken that are no plain numbers within bounds."""
    if any(isinstance(view, SumView) for view in published):
        yield (
            "Rule: in a sum, a value beyond the declared bounds counts as the nearer bound, and one that is "
            "missing or cannot be read counts as nothing; a mean is over the rows that hold a number."
        )
    if any(isinstance(view, QueryView) for view in published):
        yield (
            "Rule: in a query, the value of a cell beyond the declared bounds is the nearer bound, "
            "and that of a missing or invalid one is 0."
        )


def _number_of_queries(view: QueryView) -> str:
    return f"{len(view):,} quer{'y' if len(view) == 1 else 'ies'}"
