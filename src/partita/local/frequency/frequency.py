"""How many people hold each value."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self, TypeAlias, final, get_args

from partita.errors.errors import InvalidParameter
from partita.local.question.cells import CellQuestion, column_size
from partita.local.question.kinds import randomizer_kind
from partita.local.randomizer.randomizer import FrequencyRandomizer, Randomizer
from partita.local.randomizer.thresholds import checked_epsilon
from partita.numbers import freeze, one_of

if TYPE_CHECKING:
    from partita.domain.base.base import Domain
    from partita.local.aggregate.aggregator import FrequencyAggregator

FrequencyKind: TypeAlias = Literal["auto", "response", "projective", "hadamard", "unary", "hashing"]

_OFFERED: Final = ("response", "projective")
_MOST_VARIANCE: Final = Fraction(3, 2)
"""What the more robust kind may cost: sqrt(3/2) = 1.22 times the standard error."""


@final
@dataclass(frozen=True, init=False)
class Frequency(CellQuestion):
    """Which of a public list of values does a person hold?

    The domain is a number of cells, or a `Domain`, whose special cells come after the ordinary ones. With
    a number of cells, whole numbers go to the nearest cell and all else to the first; a `Domain` has a
    special cell for what does not belong. `kind` names a randomizer. "auto" takes randomized response or
    projective geometry response, whichever has the lower variance on average over all cells; but the other
    one if forged reports can do half as much with it at most, and its variance is at most 1.5 times as large.

    >>> Frequency(9, epsilon=1).randomizer.kind, Frequency(8, epsilon=1).randomizer.kind
    ('projective', 'response')
    """

    asks: ClassVar[str] = "frequency"
    randomizer: FrequencyRandomizer

    def __init__(self, domain: int | Domain, *, epsilon: object, kind: FrequencyKind = "auto") -> None:
        one_of(kind, "kind", get_args(FrequencyKind))
        size, exact = column_size(domain), checked_epsilon(epsilon)
        kinds = _OFFERED if kind == "auto" else (kind,)
        made = [randomizer_kind(name)(size=size, epsilon=exact) for name in kinds]
        freeze(self, domain=domain, randomizer=_preferred(made))

    @classmethod
    def of(cls, domain: int | Domain, randomizer: Randomizer) -> Self:
        """The question about a domain with a given randomizer of its cells."""
        if not isinstance(randomizer, FrequencyRandomizer) or randomizer.size != column_size(domain):
            rule = "must be one of the cells of the domain"
            raise InvalidParameter("randomizer", rule, given=randomizer, fix="leave it out")
        made = object.__new__(cls)
        freeze(made, domain=domain, randomizer=randomizer)
        return made

    def aggregator(self) -> FrequencyAggregator:
        """A new aggregator of reports."""
        from partita.local.aggregate.aggregator import FrequencyAggregator

        return FrequencyAggregator(self)


def _preferred(made: list[Any]) -> Any:
    """The kind of least variance, or a kind that is much more robust at little cost.

    A forged report then moves half as much at most, for at most a quarter more standard error. Up to
    epsilon 4 this changes nothing: the kind of least variance is nearly as robust as the other, or more.
    """
    best = min(made, key=_average_variance)
    robust = [each for each in made if _costs_little(each, best)]
    return min(robust, key=lambda each: each.forged_report_shift, default=best)


def _costs_little(other: Any, best: Any) -> bool:
    half = 2 * other.forged_report_shift <= best.forged_report_shift
    return half and _average_variance(other) <= _MOST_VARIANCE * _average_variance(best)


def _average_variance(randomizer: Any) -> Fraction:
    """n times the variance of a frequency, exactly, on average over all cells: the same for all data."""
    variance: Fraction = randomizer.exact_variance(Fraction(1, randomizer.size))
    return variance
