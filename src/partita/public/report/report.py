"""What a release says about itself: plain sentences, each a function of public facts and released numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import ROUND_CEILING, Context
from functools import partial
from typing import Final

from partita.domain.base.base import Domain, Special
from partita.domain.category.category import Category
from partita.guarantee.guarantee import Guarantee
from partita.public.base.figures import figure, shortened
from partita.public.base.provenance import Provenance
from partita.public.file_entries.file_views import form_of
from partita.public.file_entries.published import Published
from partita.public.report.report_numbers import (
    numbers_accuracy,
    numbers_contents,
    numbers_rules,
    queries_about,
    special_cells,
    sums_about,
)
from partita.public.results.totals import AnyView, total
from partita.public.sums.view.sum_view import SumView
from partita.public.views.box_view import BoxView
from partita.public.views.choosing import columns_of
from partita.public.views.view import View
from partita.public.workload.release.query_view import QueryView

_LONGEST_DOMAIN: Final = 100
_LARGEST_EXPONENT: Final = 10
_MUCH: Final = 0.25
"""A bound on all errors above this share of the rows says little about any one box."""
_HINT: Final = (
    "That bound holds for all boxes at once and is large beside the number of rows: "
    "`answer.worst(beta)` guarantees much more about a single answer."
)
_UPWARDS: Final = Context(prec=3, rounding=ROUND_CEILING)


def report(
    published: Sequence[Published],
    guarantee: Guarantee | None,
    provenance: Provenance,
    *,
    beta: float,
    error: float | None,
) -> str:
    """The report, a line for each matter; `error` bounds all counts except with probability `beta`."""
    views = [view for view in published if isinstance(view, AnyView)]
    lines = [
        _origin(published, provenance),
        f"Guarantee: {promise_words(guarantee)}",
        _cost(guarantee, provenance),
        *map(_released, published),
        *([] if error is None else [_accuracy(views, beta, error)]),
        *numbers_accuracy(published, beta),
        *_rules(published, guarantee, provenance),
        *numbers_rules(published),
    ]
    return "\n".join(lines)


def _origin(published: Sequence[Published], provenance: Provenance) -> str:
    dataset = f" of the dataset {provenance.dataset!r}" if provenance.dataset else ""
    return (
        f"A release{dataset} with {' and '.join(_contents(published))}, "
        f"made on {provenance.day} with Partita {provenance.version}.{_part(provenance)}"
    )


def _contents(published: Sequence[Published]) -> Iterator[str]:
    """What a release holds, in a few words each."""
    views = [view for view in published if isinstance(view, AnyView)]
    if views:
        yield f"noisy counts along {', '.join(columns_of(views))}"
    yield from numbers_contents(published)


def _part(provenance: Provenance) -> str:
    if provenance.part is None:
        return ""
    column, value = provenance.part
    return f" Only rows where {column} is {value!r} are counted."


def promise_words(guarantee: Guarantee | None) -> str:
    """What is promised, in sentences."""
    if guarantee is None:
        return "none. The release was made with injected noise and protects nobody."
    verb = "Adding or removing" if guarantee.neighbors == "add-remove" else "Changing"
    but = "" if guarantee.pure else f", but for a probability of {guarantee.delta}"
    return (
        f"{guarantee}. {verb} one {guarantee.unit} changes the probability of whatever is "
        f"in this release by a factor of at most {factor_words(guarantee)}{but}."
    )


def factor_words(guarantee: Guarantee) -> str:
    """The factor of a guarantee, rounded up to three figures; as a power where its figures say nothing.

    >>> factor_words(Guarantee(epsilon=1)), factor_words(Guarantee(epsilon="1/1000"))
    ('2.72', '1.01')
    """
    if guarantee.epsilon > _LARGEST_EXPONENT:
        return f"e^{guarantee.epsilon}"
    return f"{_UPWARDS.create_decimal_from_float(guarantee.factor):,f}"


def _cost(guarantee: Guarantee | None, provenance: Provenance) -> str:
    cost = "nothing" if guarantee is None else f"epsilon {guarantee.epsilon}{_failing(guarantee)}"
    where = "recorded in a ledger" if provenance.recorded else "not recorded in any ledger"
    return f"Cost: {cost}, {where}. Questions to the release cost nothing."


def _released(view: Published) -> str:
    share = f", with epsilon {view.guarantee.epsilon}{_failing(view.guarantee)}" if view.guarantee else ""
    released = form_of(view).released(view)
    sentences = [
        _about(view),
        f"Released by the mechanism {view.mechanism!r}{share}.",
        view.why,
        released.story,
        *_specials(view),
    ]
    return " ".join(sentence for sentence in sentences if sentence)


def _about(view: Published) -> str:
    if isinstance(view, SumView):
        return sums_about(view)
    return queries_about(view) if isinstance(view, QueryView) else _declared(view)


def _specials(view: Published) -> Iterable[str]:
    """What is in the special cells of a view of counts."""
    if isinstance(view, View):
        return [_beside(view)]
    return map(partial(_special_cells, view), view.columns) if isinstance(view, BoxView) else ()


def _failing(guarantee: Guarantee) -> str:
    return "" if guarantee.pure else f" and delta {guarantee.delta}"


def _declared(view: AnyView) -> str:
    columns = [
        f"{column}, declared as {shortened(repr(domain), _LONGEST_DOMAIN)}: {_cells(domain)}"
        for column, domain in zip(view.columns, view.domains, strict=True)
    ]
    return f"{'Column' if len(columns) == 1 else 'Columns together:'} {'; '.join(columns)}."


def _cells(domain: Domain) -> str:
    return f"{domain.size:,} cell{'s' if domain.size > 1 else ''}"


def _beside(view: View) -> str:
    beside = ", ".join(f"{name} {figure(view.specials.value(name))}" for name in view.domain.specials)
    return f"Beside it, to a standard error of {figure(view.specials.deviation)} each: {beside}."


def _special_cells(view: BoxView, column: str) -> str:
    """What is in the special cells of one of several columns."""
    domain = view.declared[column]
    counts = {name: view.count({column: Special.named(name)}) for name in domain.specials}
    return special_cells(column, counts)


def _accuracy(views: Sequence[AnyView], beta: float, error: float) -> str:
    together = any(isinstance(view, BoxView) for view in views)
    what = "range, in any column, and no count of a box," if together else "range, in any column,"
    bound = (
        f"Error: with a probability of at least {100 * (1 - beta):.10g}% no count of a {what} "
        f"misses the truth by more than {figure(error)}. Every answer has a bar of its own."
    )
    return f"{bound} {_HINT}" if together and error > _MUCH * total(views).value else bound


def _rules(
    published: Sequence[Published], guarantee: Guarantee | None, provenance: Provenance
) -> Iterator[str]:
    views = [view for view in published if isinstance(view, AnyView)]
    domains = [domain for view in views for domain in view.domains]
    if any(not isinstance(domain, Category) for domain in domains):
        yield (
            "Rule: a value beyond the declared bounds is counted in the special cell below or above, "
            "never as the bound itself; one that cannot be read is counted as invalid, a missing one as null."
        )
    if any(isinstance(domain, Category) for domain in domains):
        yield "Rule: a value that is no declared label is counted as other, a missing one as null."
    together = any(isinstance(view, BoxView) for view in views)
    if together:
        yield (
            "Rule: special cells of columns released together are positions on their axes, "
            "so that a count by one column takes in who is null, or out of bounds, in another."
        )
    if provenance.person is None:
        yield "Rule: every row is taken to be another person; who has several rows is protected row by row."
        return
    most = 1 if guarantee is None else guarantee.contributions
    yield (
        f"Rule: of each person at most {most} row{'s' if most > 1 else ''} of a column "
        f"{'or of columns together ' if together else ''}"
        f"{'are' if most > 1 else 'is'} counted, chosen by a rule that looks at that person's rows alone; "
        f"all rows without an id in {provenance.person!r} are one person."
    )
