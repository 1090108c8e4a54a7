"""Singer's sets are difference sets, and estimates from them are right on average."""

from __future__ import annotations

import numpy as np
import pytest

from partita.pan.registers import (
    LARGEST_PERIOD,
    _prime_factors,
    _primitive,
    _Walk,
    candidates,
    difference_set,
)

SETS = [(2, 2), (2, 3), (2, 7), (3, 2), (3, 3), (3, 5), (5, 3), (7, 3), (11, 2), (31, 2)]


@pytest.mark.parametrize(("q", "dimension"), SETS)
def test_every_difference_comes_equally_often(q: int, dimension: int) -> None:
    """Of the K - 1 differences that are not zero each is that of exactly lambda pairs of the set."""
    made = difference_set(q, dimension)
    pairs = (made.inside[:, np.newaxis] - made.inside) % made.period
    times = np.bincount(pairs.ravel(), minlength=made.period)

    assert made.inside.size == made.size
    assert made.outside.size == made.period - made.size
    assert set(times[1:].tolist()) == {made.common}


@pytest.mark.parametrize(("q", "dimension"), [(2, 4), (3, 3), (5, 2)])
def test_powers_of_a_primitive_element_are_everything(q: int, dimension: int) -> None:
    """All that is not zero is reached once."""
    walk = _Walk(q, _primitive(q, dimension))
    reached, power = set(), walk.one
    for _ in range(q**dimension - 1):
        reached.add(power)
        power = walk.times_x(power)

    assert len(reached) == q**dimension - 1
    assert power == walk.one


@pytest.mark.parametrize("least", [2, 7, 101, 20_001])
def test_candidates_are_large_enough_and_not_too_large(least: int) -> None:
    """Every prime offers the smallest set that tells so many numbers apart."""
    offered = candidates(least)

    assert offered
    assert all(least <= each.period <= LARGEST_PERIOD for each in offered)
    assert all(
        difference_set(each.q, each.dimension - 1).period < least for each in offered if each.dimension > 2
    )


def test_prime_factors() -> None:
    """Each once, in order."""
    assert _prime_factors(2**4 * 3 * 97**2) == [2, 3, 97]
    assert _prime_factors(97) == [97]
