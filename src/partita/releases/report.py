"""What a release says about itself: plain sentences, each a function of public facts and released numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from typing import Final

from partita.domain import Category
from partita.guarantee import Guarantee
from partita.releases.figures import figure, shortened
from partita.releases.provenance import Provenance
from partita.releases.view import View

__all__ = ["report"]

_LONGEST_DOMAIN: Final = 100
_LARGEST_EXPONENT: Final = 10
_UPWARDS: Final = Context(prec=3, rounding=ROUND_CEILING)


def report(
    views: Sequence[View], guarantee: Guarantee | None, provenance: Provenance, *, beta: float, error: float
) -> str:
    """The report, a line for each matter; `error` bounds all range counts except with probability `beta`."""
    lines = [
        _origin(views, provenance),
        _promise(guarantee),
        _cost(guarantee, provenance),
        *map(_released, views),
        _accuracy(beta, error),
        *_rules(views, guarantee, provenance),
    ]
    return "\n".join(lines)


def _origin(views: Sequence[View], provenance: Provenance) -> str:
    columns = ", ".join(view.column for view in views)
    dataset = f" of the dataset {provenance.dataset!r}" if provenance.dataset else ""
    return (
        f"A release{dataset} with noisy counts along {columns}, "
        f"made on {provenance.day} with Partita {provenance.version}.{_part(provenance)}"
    )


def _part(provenance: Provenance) -> str:
    if provenance.part is None:
        return ""
    column, value = provenance.part
    return f" Only rows where {column} is {value!r} are counted."


def _promise(guarantee: Guarantee | None) -> str:
    if guarantee is None:
        return "Guarantee: none. The release was made with injected noise and protects nobody."
    verb = "Adding or removing" if guarantee.neighbors == "add-remove" else "Changing"
    but = "" if guarantee.pure else f", but for a probability of {guarantee.delta}"
    return (
        f"Guarantee: {guarantee}. {verb} one {guarantee.unit} changes the probability of whatever is "
        f"in this release by a factor of at most {_factor(guarantee.epsilon)}{but}."
    )


def _factor(epsilon: Fraction) -> str:
    """e^epsilon, rounded up to three figures; as a power where its figures say nothing.

    >>> _factor(Fraction(1)), _factor(Fraction(1, 1000)), _factor(Fraction(40))
    ('2.72', '1.01', 'e^40')
    """
    if epsilon > _LARGEST_EXPONENT:
        return f"e^{epsilon}"
    return f"{_UPWARDS.create_decimal_from_float(math.exp(epsilon)):,f}"


def _cost(guarantee: Guarantee | None, provenance: Provenance) -> str:
    cost = "nothing" if guarantee is None else f"epsilon {guarantee.epsilon}"
    where = "recorded in a ledger" if provenance.recorded else "not recorded in any ledger"
    return f"Cost: {cost}, {where}. Questions to the release cost nothing."


def _released(view: View) -> str:
    share = f", with epsilon {view.axis.guarantee.epsilon}" if view.axis.guarantee else ""
    cells = f"{view.domain.size:,} cell{'s' if view.domain.size > 1 else ''}"
    beside = ", ".join(f"{name} {figure(view.specials.value(name))}" for name in view.domain.specials)
    sentences = [
        f"Column {view.column}, declared as {shortened(repr(view.domain), _LONGEST_DOMAIN)}: {cells}.",
        f"Released by the mechanism {view.mechanism!r}{share}.",
        view.why,
        view.axis.story,
        f"Beside it, to a standard error of {figure(view.specials.deviation)} each: {beside}.",
    ]
    return " ".join(sentence for sentence in sentences if sentence)


def _accuracy(beta: float, error: float) -> str:
    return (
        f"Error: with a probability of at least {100 * (1 - beta):.10g}% no count of a range, in any column, "
        f"misses the truth by more than {figure(error)}. Every answer has a bar of its own."
    )


def _rules(views: Sequence[View], guarantee: Guarantee | None, provenance: Provenance) -> Iterator[str]:
    if any(not isinstance(view.domain, Category) for view in views):
        yield (
            "Rule: a value beyond the declared bounds is counted in the special cell below or above, "
            "never as the bound itself; one that cannot be read is counted as invalid, a missing one as null."
        )
    if any(isinstance(view.domain, Category) for view in views):
        yield "Rule: a value that is no declared label is counted as other, a missing one as null."
    if provenance.person is None:
        yield "Rule: every row is taken to be another person; who has several rows is protected row by row."
        return
    most = 1 if guarantee is None else guarantee.contributions
    yield (
        f"Rule: of each person at most {most} row{'s' if most > 1 else ''} of a column "
        f"{'are' if most > 1 else 'is'} counted, chosen by a rule that looks at that person's rows alone; "
        f"all rows without an id in {provenance.person!r} are one person."
    )
