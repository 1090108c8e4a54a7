"""The private choice of how many rows of a person count, from a public list [MT07]."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Final, NamedTuple, final

import numpy as np

from partita.errors import check
from partita.guarantee import Guarantee, Neighbors
from partita.numbers import Converted, Exact, freeze, frozen, parameter
from partita.public.contributions import AutoContributions
from partita.trusted.mechanisms.base import check_scale
from partita.trusted.noise.system import SYSTEM, Noise

_UNIT: Final = 2**10
"""Scores are whole multiples of one over this: of a person who has more rows than a bound."""

_CAUTION: Final = 2
"""A bound that is twice as large is 2^2 times less likely, until rows speak for it. On half of the laws of
benchmarks/accuracy/contributions.py totals were off by 1.53 times the error of the best bound in hindsight,
by 6.0 times at worst; with 1.5 by 1.61 and 3.9, with 2.5 by 1.52 and 7.8. Less chooses large bounds that
nobody needs, more loses the rows of few persons who have many."""


class DrawnBound(NamedTuple):
    """Which candidate was chosen, and whether the noise that chose it protects anybody."""

    place: int
    secure: bool


@final
@frozen(kw_only=True)
class BoundSelection:
    """Choose the bound on rows per person by the predicted error of the total, for `epsilon`.

    The predicted error at a bound k is that of the noise, `noise[i]` for the i-th candidate and public, and
    the rows that a total loses: all rows of each person beyond k, as far as they are within the largest
    candidate. The score of a candidate is by how many rows, for each row of the bound, a larger candidate
    would be better: zero if none is. Among equals, smaller candidates are likelier.

    Guarantee: epsilon-DP for a person with any number of rows, pure; ADD_REMOVE or CHANGE_ONE.    [MT07]
    Error:     a larger candidate would save at most (2 ln(bound ratio) + ln(m/beta)) / epsilon rows for each
    row of the bound, for m candidates, with probability 1 - beta.
    Proof:     docs/proofs/contributions.md (one-sided scores, rounded down)

    >>> choice = BoundSelection(candidates=(1, 10), noise=(3, 30), epsilon="1/2")
    >>> choice.score([100, 100]), choice.score([100, 1000])     # nobody has a second row; everybody has ten
    ([0, 0], [99328, 0])
    """

    candidates: Converted[Sequence[int], tuple[int, ...]] = parameter()
    noise: Converted[Sequence[float | Fraction], tuple[Fraction, ...]] = parameter()
    epsilon: Exact = parameter()
    neighbors: Neighbors = "add-remove"

    def __post_init__(self) -> None:
        wanted = AutoContributions(self.candidates)
        promise = Guarantee(epsilon=self.epsilon, neighbors=self.neighbors, unit="person")
        rule, fix = "must be positive, one for each candidate", "pass the predicted error at each bound"
        valid = len(self.noise) == len(wanted.among) and all(0 < each < math.inf for each in self.noise)
        check(valid, "noise", rule, given=f"{len(self.noise)} of them", fix=fix)
        exact = tuple(map(Fraction, self.noise))
        freeze(self, candidates=wanted.among, noise=exact, epsilon=promise.epsilon)
        check_scale(self.scale, self.epsilon)

    @property
    def guarantee(self) -> Guarantee:
        """What the choice promises, before it is known; it holds for a person with any number of rows."""
        most = self.candidates[-1]
        return Guarantee(epsilon=self.epsilon, neighbors=self.neighbors, unit="person", contributions=most)

    @property
    def scale(self) -> Fraction:
        """Scores move by at most one person, all of them up or all of them down: no factor two is needed."""
        return _UNIT / self.epsilon

    @property
    def caution(self) -> list[int]:
        """What is added to the scores, in the same units: public numbers only."""
        least = self.candidates[0]
        return [round(_CAUTION * math.log(each / least) * float(self.scale)) for each in self.candidates]

    def score(self, within: Sequence[int]) -> list[int]:
        """The score of each candidate, from the number of rows that count within each."""
        return [self._gain(place, within) for place in range(len(self.candidates))]

    def _gain(self, place: int, within: Sequence[int]) -> int:
        """By how much a larger candidate is better, for each row of the bound, in units; rounded down."""
        gains = [
            (within[other] - within[place] - self.noise[other] + self.noise[place])
            * _UNIT
            // (self.candidates[other] - self.candidates[place])
            for other in range(place + 1, len(self.candidates))
        ]
        return max([0, *gains])

    def chances(self, within: Sequence[int]) -> list[float]:
        """The probability of each candidate, for simulations on public data."""
        exponents = np.array([-x / self.scale for x in self._penalties(within)], float)
        weights = np.exp(exponents - exponents.max())
        return [float(each) for each in weights / weights.sum()]

    def _penalties(self, within: Sequence[int]) -> list[int]:
        return [own + public for own, public in zip(self.score(within), self.caution, strict=True)]

    def draw(self, within: Sequence[int], *, noise: Noise = SYSTEM) -> DrawnBound:
        """Choose a candidate, from the number of rows that count within each."""
        session = noise.session()
        place = session.exponential([-each for each in self._penalties(within)], self.scale)
        return DrawnBound(int(place), session.secure)
