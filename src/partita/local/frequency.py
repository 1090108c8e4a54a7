"""How many people hold each value."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Literal, Self, TypeAlias, final, get_args

from partita.errors import InvalidParameter
from partita.exact import freeze, one_of
from partita.local.cells import CellQuestion, column_size
from partita.local.kinds import randomizer_kind
from partita.local.randomizer import FrequencyRandomizer, Randomizer
from partita.local.thresholds import checked_epsilon, exp_bounds

if TYPE_CHECKING:
    from partita.domain import Domain
    from partita.local.aggregator import FrequencyAggregator

__all__ = ["Frequency", "FrequencyKind"]

FrequencyKind: TypeAlias = Literal["auto", "response", "projective", "hadamard", "unary", "hashing"]


@final
@dataclass(frozen=True, init=False)
class Frequency(CellQuestion):
    """Which of a public list of values does a person hold?

    The domain is a number of cells, or a `Domain`, whose special cells come after the ordinary ones. With
    a number of cells, whole numbers go to the nearest cell and all else to the first; a `Domain` has a
    special cell for what does not belong. `kind` names a randomizer. "auto" takes randomized response for
    fewer than 3 e^epsilon + 2 cells, else projective geometry response.

    >>> Frequency(1024, epsilon=1).randomizer.kind, Frequency(2, epsilon=1).randomizer.kind
    ('projective', 'response')
    """

    asks: ClassVar[str] = "frequency"
    randomizer: FrequencyRandomizer

    def __init__(self, domain: int | Domain, *, epsilon: object, kind: FrequencyKind = "auto") -> None:
        one_of(kind, "kind", get_args(FrequencyKind))
        size, exact = column_size(domain), checked_epsilon(epsilon)
        chosen = _best_kind(size, exact) if kind == "auto" else kind
        freeze(self, domain=domain, randomizer=randomizer_kind(chosen)(size=size, epsilon=exact))

    @classmethod
    def of(cls, domain: int | Domain, randomizer: Randomizer) -> Self:
        """The question about a domain with a given randomizer of its cells."""
        if not isinstance(randomizer, FrequencyRandomizer) or randomizer.size != column_size(domain):
            raise InvalidParameter(
                "randomizer", "must be one of the cells of the domain", given=randomizer, fix="leave it out"
            )
        made = object.__new__(cls)
        freeze(made, domain=domain, randomizer=randomizer)
        return made

    def aggregator(self) -> FrequencyAggregator:
        """A new aggregator of reports."""
        from partita.local.aggregator import FrequencyAggregator

        return FrequencyAggregator(self)


def _best_kind(size: int, epsilon: Fraction) -> str:
    """Randomized response where it has the lower variance."""
    return "response" if size < 3 * exp_bounds(epsilon, 64)[0] + 2 else "projective"
