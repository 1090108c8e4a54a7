"""Sums of released integers: exact values, exact variances, and tails checked against the exact law."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from partita.public.axis.base import NoisyRow, NoisySum
from partita.public.bounds import NoiseLaw

Kinds = Mapping[tuple[int, NoiseLaw], int]


def _law(kinds: Kinds) -> NDArray[np.float64]:
    """The law of the sum of all noises, by convolution; its middle entry is zero."""
    total = np.ones(1)
    for (factor, scale), number in kinds.items():
        assert isinstance(scale, Fraction)
        reach = int(40 * scale) + 40
        one = np.zeros(2 * reach * factor + 1)
        one[::factor] = np.exp(-np.abs(np.arange(-reach, reach + 1)) / float(scale))
        for _ in range(number):
            total = np.convolve(total, one / one.sum())
    return total


KINDS: list[Kinds] = [
    {(1, Fraction(1)): 1},
    {(1, Fraction(4)): 7},
    {(2, Fraction(3)): 3},
    {(1, Fraction(2)): 3, (1, Fraction(5)): 2},
    {(1, Fraction(1, 2)): 4, (3, Fraction(1, 2)): 1},
    {(1, Fraction(1)): 2, (2, Fraction(2)): 2, (1, Fraction(6)): 1},
]


@pytest.mark.parametrize("kinds", KINDS, ids=str)
@pytest.mark.parametrize("beta", [0.3, 0.05, 1e-4])
def test_reaches_are_exceeded_at_most_as_often_as_stated(kinds: Kinds, beta: float) -> None:
    """By the exact law each side is left with probability at most beta/2, and not absurdly less."""
    law, reach = _law(kinds), NoisySum(0, kinds).reach(beta)
    values = np.arange(law.size) - law.size // 2

    above = float(law[values > reach].sum())

    assert above == pytest.approx(float(law[values < -reach].sum()), abs=1e-12)
    assert beta / 100 < above <= beta / 2


@pytest.mark.parametrize("number", [1, 100, 2**16, 2**24])
@pytest.mark.parametrize("beta", [0.3, 1e-9])
def test_reaches_grow_like_the_root_of_the_number(number: int, beta: float) -> None:
    """However many noises there are, the reach is near sqrt(2 variance ln 2/beta), or the tail of one."""
    found = NoisySum(0, {(1, Fraction(5)): number})
    normal = found.error * math.sqrt(2 * math.log(2 / beta))

    assert normal <= found.reach(beta) < 1.2 * normal + 5 * 1.5 * math.log(2 / beta)


@pytest.mark.parametrize("kinds", KINDS, ids=str)
def test_errors_are_those_of_the_exact_law(kinds: Kinds) -> None:
    """The standard error is the root of the law's variance."""
    law = _law(kinds)
    values = np.arange(law.size) - law.size // 2

    assert NoisySum(0, kinds).error == pytest.approx(math.sqrt(float((values**2 * law).sum())))


@given(
    st.lists(st.integers(-(2**70), 2**70), min_size=1, max_size=9),
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.sampled_from([1, -1])), max_size=8),
)
def test_sums_of_runs_are_exact(values: list[int], runs: list[tuple[int, int, int]]) -> None:
    """Overlapping signed runs give the exact sum, and each integer's noise has its factor without sign."""
    size = len(values)
    inside = [(min(a, b, size), min(max(a, b), size), sign) for a, b, sign in runs]
    line = NoisyRow(np.array(values, dtype=object), Fraction(1))
    factors = [sum(sign for a, b, sign in inside if a <= i < b) for i in range(size)]

    found = NoisySum.of([(line, inside)])

    assert found.value == sum(f * v for f, v in zip(factors, values, strict=True))
    assert found.noises == {
        (size, Fraction(1)): sum(abs(f) == size for f in factors) for size in {abs(f) for f in factors} - {0}
    }


@pytest.mark.parametrize("value", [1, 2**40, 2**62, 2**63 - 1, -(2**63)])
def test_running_sums_do_not_wrap(value: int) -> None:
    """Sums of values at the ends of 64 bits are exact."""
    line = NoisyRow(np.array([value] * 5), Fraction(1))

    assert line.sum(1, 4) == 3 * value
    assert line.sums(np.array([0, 2]), np.array([5, 2])).tolist() == [5.0 * value, 0.0]
