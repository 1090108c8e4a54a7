"""E = -ln(1 - U) as pairs of floats, against MPFR."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any

import gmpy2
import numpy as np
import pytest
from gmpy2 import mpfr

from partita.testing import EndlessTape
from partita.trusted.noise.compiled import pair_target
from partita.trusted.noise.hazard import _fixed_target, _float_target, exponential_targets, float_pair
from partita.trusted.noise.laws import Tape, Uniform

EDGES = sorted(
    {0, 1, 2, 3, 2**32 - 1, 2**32, 2**32 + 1, 2**53 - 1, 2**53 + 1, 2**63 - 1, 2**63, 2**63 + 1}
    | {2**64 - 1 - k for k in (0, 1, 2, 3, 2**11, 2**31, 2**32 - 1, 2**32, 2**32 + 1, 2**53, 2**62)}
    | {2**64 - 2**e + d for e in range(1, 64) for d in (-1, 0, 1) if 2**64 - 2**e + d < 2**64}
    | {2**e + d for e in range(1, 64) for d in (-1, 0, 1)}
)


def target(word: int) -> Any:
    """-ln(1 - word / 2^64)."""
    return 64 * gmpy2.log(mpfr(2)) - gmpy2.log(mpfr(2**64 - word))


@pytest.mark.parametrize(
    "words", [EDGES, EndlessTape("targets").take(5_000).tolist()], ids=["edges", "random"]
)
def test_targets_are_right_to_eighty_bits(words: list[int]) -> None:
    """The pair of each word is within 2^-80 (1 + E) of E, and is normalised."""
    high, low = exponential_targets(np.array(words, dtype=np.uint64))

    with gmpy2.context(gmpy2.get_context(), precision=400):
        bound = gmpy2.exp2(-80)
        for word, head, rest in zip(words, high.tolist(), low.tolist(), strict=True):
            exact = target(word)
            assert abs(mpfr(head) + mpfr(rest) - exact) <= bound * (1 + exact), word
            assert head + rest == head


def test_the_first_word_has_target_zero() -> None:
    """U may be zero, and then E starts at zero, but for an error below 2^-80."""
    high, low = exponential_targets(np.zeros(1, dtype=np.uint64))

    assert abs(Fraction(high[0]) + Fraction(low[0])) <= Fraction(1, 2**80)


def test_targets_follow_the_order_of_words() -> None:
    """A larger word never has a smaller target, but for the error of both."""
    words = np.sort(EndlessTape("order").take(2_000))
    high, low = exponential_targets(words)
    exact = [Fraction(a) + Fraction(b) for a, b in zip(high.tolist(), low.tolist(), strict=True)]

    assert all(b - a >= -Fraction(45, 2**79) for a, b in pairwise(exact))


@pytest.mark.parametrize("word", EDGES[:: len(EDGES) // 40])
def test_certified_targets_are_floors(word: int) -> None:
    """_fixed_target is floor(2^bits E)."""
    with gmpy2.context(gmpy2.get_context(), precision=900):
        expected = int(gmpy2.floor(target(word) * mpfr(2) ** 192))

    assert _fixed_target(word, 64, 192) == expected


def test_the_end_of_the_unit_interval_has_no_finite_target() -> None:
    """U = 1 stands for E without bound."""
    assert _fixed_target(2**64, 64, 192) is None


@pytest.mark.parametrize("word", EDGES[:: len(EDGES) // 40])
def test_float_targets_are_right_to_44_bits(word: int) -> None:
    """The float that decides first is within one part in 2^44."""
    with gmpy2.context(gmpy2.get_context(), precision=400):
        exact = target(word)
        found = mpfr(_float_target(Uniform(Tape([word]))))

        assert abs(found - exact) <= exact * gmpy2.exp2(-44)


@pytest.mark.parametrize("fixed", [0, 1, 3, 2**53 + 1, 2**192 - 1, 2**200 + 12345, 2**384 // 3])
def test_a_pair_of_floats_carries_a_hundred_bits(fixed: int) -> None:
    """high + low differs from fixed / 2^192 by less than 2^-104 of it."""
    high, low = float_pair(fixed, 192)

    assert abs(Fraction(high) + Fraction(low) - Fraction(fixed, 2**192)) <= Fraction(fixed, 2**192) / 2**104


def test_the_compiled_target_is_the_same_pair_of_floats() -> None:
    """One word at a time or many at once, the same steps give the same two floats."""
    words = np.concatenate([np.array(EDGES, dtype=np.uint64), EndlessTape("compiled").take(20_000)])
    high, low = exponential_targets(words)

    compiled = np.array([pair_target(word) for word in words])

    assert np.array_equal(compiled, np.stack([high, low], axis=1))
