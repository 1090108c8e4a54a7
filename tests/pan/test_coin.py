"""Biases are as telling as epsilon allows, and not by one part in 2^64 more."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from partita.errors import InvalidParameter
from partita.local.randomizer import exp_bounds
from partita.pan import sketch as draws
from partita.pan.bits import Density
from partita.pan.registers import best_law, difference_set, make_law
from partita.pan.sketch import (
    WORD,
    Coin,
    Variant,
    chances,
    joint_coin,
    joint_ratios,
    state_coin,
    state_ratios,
    uniform,
)
from partita.testing import RationalNoise, law
from partita.trusted.noise import laws
from partita.trusted.noise.system import KERNEL

EPSILONS = [Fraction(1, 100), Fraction(1, 2), Fraction(1), Fraction(3), Fraction(10)]
VARIANTS: tuple[Variant, ...] = ("default", "book")


def _fits(coin: Coin, epsilon: Fraction, ratios: Callable[..., Any], output: Fraction | None) -> bool:
    """Whether no ratio exceeds e^epsilon, by rational bounds that are 2^-300 apart.

    All ratios grow with e^output or fall with it, so both of its bounds are tried.
    """
    low, _ = exp_bounds(epsilon, 300)
    growths = () if output is None else exp_bounds(output, 300)
    found = [ratios(coin.q0, coin.q1, growth) for growth in growths] or [ratios(coin.q0, coin.q1)]
    return all(ratio <= low for each in found for ratio in each)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_coin_is_as_telling_as_its_joint_loss_allows(variant: Variant, epsilon: Fraction) -> None:
    """The next bias, 2^-64 further from one half, loses more than epsilon together with the output."""
    output = epsilon / 20
    coin = joint_coin(epsilon, output, variant)
    start = coin.start if variant == "book" else coin.start - 1

    assert _fits(coin, epsilon, joint_ratios, output)
    assert not _fits(Coin(start, coin.redraw + 1), epsilon, joint_ratios, output)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_coin_is_as_telling_as_its_state_allows(epsilon: Fraction) -> None:
    """The same for the state alone; one output costs less than its own epsilon."""
    coin = state_coin(epsilon)

    assert _fits(coin, epsilon, state_ratios, None)
    assert not _fits(Coin(coin.start - 1, coin.redraw + 1), epsilon, state_ratios, None)
    assert joint_coin(epsilon, epsilon / 20, "default").q1 > state_coin(epsilon * 19 / 20).q1


def test_the_corrected_bias_of_the_book() -> None:
    """Fair at first, then (1 - e^-epsilon) / 2 above one half."""
    coin = state_coin(Fraction(1), "book")

    assert coin.q0 == Fraction(1, 2)
    assert float(coin.gap) == pytest.approx((1 - np.exp(-1)) / 2, rel=1e-15)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_register_is_as_telling_as_epsilon_allows(epsilon: Fraction) -> None:
    """A place in the set is at most e^epsilon times as likely as one outside, and more is too much."""
    law_here = best_law(epsilon, 20)
    more = type(law_here)(law_here.set, law_here.within + 1)
    low, high = exp_bounds(epsilon, 300)

    assert law_here.ratio <= low
    assert more.ratio > high


@pytest.mark.parametrize("epsilon", ["1e-9", "40", "1000", 10**300])
def test_epsilons_that_give_no_biases_are_refused(epsilon: Any) -> None:
    """Too little to tell from nothing, or too much to tell from certainty."""
    with pytest.raises(InvalidParameter, match="epsilon"):
        Density(universe=4, epsilon=epsilon)


def test_the_law_over_a_given_set_is_refused_if_it_says_nothing() -> None:
    """An epsilon so small that its threshold is that of a uniform register."""
    with pytest.raises(InvalidParameter, match="tiny"):
        make_law(difference_set(2, 3), Fraction(1, 10**30))


# Draws.


def test_draws_branch_with_their_exact_probabilities() -> None:
    """Of noise that can be enumerated, a bit has probability threshold / 2^64, and integers are uniform."""
    bits = law(lambda noise: tuple(chances(noise, 3, 2).tolist()), RationalNoise(Fraction(1, 2)))
    numbers = law(lambda noise: int(uniform(noise, 5, 1)[0]), RationalNoise(Fraction(1, 2)))

    assert bits[(True, True)] == Fraction(9, WORD**2)
    assert bits[(True, False)] == Fraction(3 * (WORD - 3), WORD**2)
    assert numbers == {number: Fraction(1, 5) for number in range(5)}


def test_draws_for_people_are_comparisons_of_words_from_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """On given words: the bit is set if they are below the threshold, on both sides of every byte of it."""
    threshold = 0x80_00_00_00_00_00_00_01

    def drawn(first: int, rest: int) -> bool:
        tape = laws.Tape([first, rest])
        monkeypatch.setattr(draws, "KernelWords", lambda: tape)
        return bool(chances(KERNEL, threshold, 1)[0])

    assert [drawn(byte, 0) for byte in (0x7F, 0x80, 0x81)] == [True, True, False]
    assert [drawn(0x80, rest) for rest in (0, 1, 2)] == [True, False, False]


def test_no_words_are_kept() -> None:
    """A draw from the kernel leaves no source of words behind."""
    before = len(laws._Fresh._alive)
    sketch = Density(universe=100, epsilon=1)
    sketch.update_many(range(50))

    assert len(laws._Fresh._alive) == before
    assert sketch.guarantee is not None
