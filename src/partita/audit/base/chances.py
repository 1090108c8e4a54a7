"""Probabilities of being wrong that hold for every sample size: Chernoff's bound and Holm's procedure.

No limit theorem is used, so an error probability that is stated is kept, not approached.
"""

from __future__ import annotations

import math
from collections.abc import Sequence


def divergence(share: float, chance: float) -> float:
    """The Kullback-Leibler divergence of two coins, in nats.

    >>> divergence(0.5, 0.5)
    0.0
    """
    return _term(share, chance) + _term(1 - share, 1 - chance)


def _term(share: float, chance: float) -> float:
    if share <= 0.0:
        return 0.0
    return share * math.log(share / chance) if chance > 0.0 else math.inf


def p_value(hits: int, draws: int, chance: float) -> float:
    """At least the probability of so many hits, or of as few, if each draw hits with this chance [Chernoff].

    >>> p_value(5_000, 10_000, 0.5)
    1.0
    """
    return min(1.0, 2 * math.exp(-draws * divergence(hits / draws, chance)))


def least_chance(hits: int, draws: int, error: float) -> float:
    """A chance that the true one lies above, but for the error probability."""
    return _bound(hits, draws, error, low=0.0, high=hits / draws)


def most_chance(hits: int, draws: int, error: float) -> float:
    """A chance that the true one lies below, but for the error probability."""
    return _bound(hits, draws, error, low=1.0, high=hits / draws)


def _bound(hits: int, draws: int, error: float, *, low: float, high: float) -> float:
    """Between `low`, where the divergence is too large, and `high`, where it is none."""
    allowed = math.log(1 / error) / draws
    for _ in range(60):
        middle = (low + high) / 2
        if divergence(hits / draws, middle) > allowed:
            low = middle
        else:
            high = middle
    return low


def holm(p_values: Sequence[float], family_wise: float) -> list[int]:
    """The places of the p-values that Holm's procedure rejects: some correct one, at most so often.

    >>> holm([0.5, 1e-9, 0.01], 1e-3)
    [1]
    """
    rejected: list[int] = []
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    for place in order:
        if p_values[place] > family_wise / (len(p_values) - len(rejected)):
            break
        rejected.append(place)
    return rejected
