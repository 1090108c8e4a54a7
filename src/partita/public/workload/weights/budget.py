"""How epsilon is shared among the total, the first guess and the rounds, and how many rounds there are."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Final, NamedTuple, final

from partita.errors.checks import check
from partita.guarantee.accounting import measurement_rate, selection_rate, zcdp_budget
from partita.guarantee.guarantee import positive_epsilon
from partita.lazy.cached import cached_property
from partita.numbers import Exact, freeze, frozen, integer, parameter, rational

MOST_ROUNDS: Final = 200
"""Not chosen beyond: more rounds are asked for by name."""

_LIMIT: Final = 2**16
_TOTAL: Final = Fraction(1, 20)
_WARM: Final = Fraction(3, 10)
_LEFT_OVER: Final = 1.5
"""After T rounds about this many times rows / T^2 of the error is left to be found; measured."""


class Rates(NamedTuple):
    """The epsilon of each look at the data: the total, a marginal, a selection, an answer."""

    total: Fraction
    marginal: Fraction
    selection: Fraction
    answer: Fraction
    rule: str


@final
@frozen(kw_only=True)
class WeightsBudget:
    """Epsilon and delta between neighbours, the number of rounds if it is given, and the first guess's share.

    With delta, losses are added up as zero-concentrated ones, or as pure ones where that allows more.

    >>> WeightsBudget(epsilon=1).rates(13, 2).answer
    Fraction(1, 40)
    """

    epsilon: Exact = parameter()
    delta: Exact = parameter(default=Fraction(0))
    rounds: int | None = None
    warm: Exact = parameter(default=_WARM)

    def __post_init__(self) -> None:
        rounds = self.rounds
        freeze(
            self,
            epsilon=positive_epsilon(self.epsilon),
            delta=rational(self.delta, "delta"),
            rounds=None if rounds is None else integer(rounds, "rounds", low=1, high=_LIMIT),
            warm=_share(self.warm),
        )

    @property
    def total(self) -> Fraction:
        """The epsilon of the total, which is released before the number of rounds is chosen."""
        if not self.delta:
            return self.epsilon * _TOTAL
        return measurement_rate(self._rho * _TOTAL)

    def rates(self, rounds: int, marginals: int) -> Rates:
        """What each look may cost, so that the total, all marginals and all rounds stay within the budget."""
        pure = self._pure(rounds, marginals)
        if not self.delta:
            return pure
        return max(pure, self._concentrated(rounds, marginals), key=lambda rates: rates.answer)

    def uses_delta(self, queries: int, marginals: int) -> bool:
        """Whether zero-concentrated losses allow more for some number of rounds that may be chosen."""
        return self.rates(self._most_rounds(queries), marginals).rule != "pure"

    def rounds_for(self, rows: float, queries: int, marginals: int, reach: float = 1.0) -> int:
        """How many rounds suit about so many rows, of which a unit may change an answer by `reach`.

        With more rounds the guess follows the data further, and with each its looks are noisier.
        """
        if self.rounds is not None:
            return self.rounds
        choices = range(1, self._most_rounds(queries) + 1)
        return min(choices, key=lambda rounds: self.cost(rows, rounds, marginals, reach))

    def cost(self, rows: float, rounds: int, marginals: int, reach: float = 1.0) -> float:
        """About the error that is left after so many rounds: what they did not find, and their noise."""
        return _LEFT_OVER * max(rows, 1.0) / rounds**2 + reach / self._loudness(rounds, marginals)

    def _most_rounds(self, queries: int) -> int:
        return max(1, min(queries, MOST_ROUNDS)) if self.rounds is None else self.rounds

    def _loudness(self, rounds: int, marginals: int) -> float:
        """One over the noise of a selection and an answer together, in about the units of a row."""
        pure, concentrated = _one_round(self, marginals)
        return max(pure / rounds, concentrated / math.sqrt(rounds))

    @cached_property
    def _rho(self) -> Fraction:
        return zcdp_budget(self.epsilon, self.delta)

    def _pure(self, rounds: int, marginals: int) -> Rates:
        total = self.total
        warm = self.epsilon * self.warm if marginals else Fraction(0)
        each = (self.epsilon - total - warm) / (2 * rounds)
        return Rates(total, warm / max(1, marginals), each, each, "pure")

    def _concentrated(self, rounds: int, marginals: int) -> Rates:
        rho = self._rho
        warm = rho * self.warm if marginals else Fraction(0)
        half = (rho - rho * _TOTAL - warm) / 2
        marginal = measurement_rate(warm, marginals) if warm else Fraction(0)
        return Rates(
            self.total, marginal, selection_rate(half, rounds), measurement_rate(half, rounds), "zCDP"
        )


@lru_cache(maxsize=64)
def _one_round(budget: WeightsBudget, marginals: int) -> tuple[float, float]:
    """The loudness of a single round by pure and by zero-concentrated accounting."""
    concentrated = _loudness_of(budget._concentrated(1, marginals)) if budget.delta else 0.0
    return _loudness_of(budget._pure(1, marginals)), concentrated


def _loudness_of(rates: Rates) -> float:
    return 1 / (2 / float(rates.selection) + 1 / float(rates.answer))


def _share(warm: object) -> Fraction:
    share = rational(warm, "warm")
    check(0 <= share <= Fraction(9, 10), "warm", "must lie in [0, 9/10]", given=warm, fix="leave it out")
    return share
