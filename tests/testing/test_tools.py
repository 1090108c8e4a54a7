"""The tools that prove privacy: exact losses, laws, tapes and couplings."""

from __future__ import annotations

import math
from collections.abc import Hashable
from fractions import Fraction

import pytest

from partita import Histogram, Tree
from partita.testing import (
    CouplingBroken,
    EndlessTape,
    ForbiddenNoise,
    Loss,
    RationalNoise,
    RecordingNoise,
    ZeroNoise,
    add_remove_pairs,
    change_one_pairs,
    coupled,
    data_sets,
    law,
    privacy_loss,
    tape_law,
    tape_noise,
)
from partita.trusted.noise.laws import Tape
from partita.trusted.noise.system import Noise

HALF, ONE = Fraction(1, 2), Fraction(1)


def test_losses_compare_exactly_at_equality() -> None:
    """A ratio of 8 is a loss of exactly 3 at base 1/2, and one part in 10^30 more is more than that."""
    exact = Loss(Fraction(8), base=HALF, unit=ONE)
    above = Loss(8 + Fraction(1, 10**30), base=HALF, unit=ONE)

    assert exact == 3
    assert exact <= 3 < above
    assert exact < above
    assert exact >= 3
    assert float(exact) == pytest.approx(3)


def test_losses_compare_with_fractions_of_their_unit() -> None:
    """At unit 1/2 the base stands for exp(-1/2): a ratio of 4 is a loss of 1, and sqrt 2 cannot fool it."""
    assert Loss(Fraction(4), base=HALF, unit=HALF) == 1
    assert Loss(Fraction(141, 100), base=HALF, unit=ONE) < HALF
    assert Loss(Fraction(142, 100), base=HALF, unit=ONE) > HALF


def test_an_impossible_outcome_is_an_infinite_loss() -> None:
    """A loss without a bound exceeds every number and equals none."""
    loss = privacy_loss({"a": ONE}, {"a": HALF, "b": HALF}, base=HALF, unit=ONE)

    assert loss > 10**6
    assert loss != 10**6
    assert loss > Loss(Fraction(10**9), base=HALF, unit=ONE)
    assert float(loss) == math.inf


def test_the_loss_is_the_largest_ratio_in_either_direction() -> None:
    """Swapping the laws changes nothing; equal laws lose nothing."""
    one: dict[Hashable, Fraction] = {"a": Fraction(1, 4), "b": Fraction(3, 4)}
    other: dict[Hashable, Fraction] = {"a": Fraction(1, 2), "b": Fraction(1, 2)}

    assert privacy_loss(one, other, base=HALF, unit=ONE) == 1
    assert privacy_loss(other, one, base=HALF, unit=ONE) == 1
    assert privacy_loss(one, one, base=HALF, unit=ONE) == 0


@pytest.mark.parametrize(("size", "most"), [(1, 1), (2, 2), (3, 2)])
def test_pairs_of_neighbors_are_complete_and_distinct(size: int, most: int) -> None:
    """Each unordered pair at distance one, and each at one move, appears exactly once."""
    sets = list(data_sets(size, most))
    steps = [
        (sorted(b - a for a, b in zip(one, other, strict=True)), frozenset((one, other)))
        for one in sets
        for other in sets
    ]
    zeros = [0] * (size - 1)

    added = {pair for step, pair in steps if step == sorted([*zeros, 1])}
    moved = {pair for step, pair in steps if size > 1 and step == sorted([*zeros[1:], -1, 1])}

    assert len(sets) == (most + 1) ** size
    assert sorted(map(sorted, map(frozenset, add_remove_pairs(size, most)))) == sorted(map(sorted, added))
    assert sorted(map(sorted, map(frozenset, change_one_pairs(size, most)))) == sorted(map(sorted, moved))


def test_laws_of_two_coins_are_enumerated() -> None:
    """Every branch is taken once, with the product of its probabilities."""
    coins = law(
        lambda noise: (noise.bernoulli(Fraction(1, 3)), noise.categorical([1, 2, 1])), RationalNoise(HALF)
    )

    assert coins[True, 1] == Fraction(1, 6)
    assert (len(coins), sum(coins.values())) == (6, 1)


def test_options_that_do_not_add_up_are_detected() -> None:
    """A noise whose probabilities do not add up to one is no law."""

    class Leaky(RationalNoise):
        def bernoulli(self, probability: object) -> bool:
            return self.branches.choose([(True, HALF), (False, Fraction(1, 3))])

    with pytest.raises(AssertionError, match="do not add up"):
        law(lambda noise: noise.bernoulli(HALF), Leaky(HALF))


@pytest.mark.parametrize("reach", [0, 1, 5])
def test_tails_stay_exact_wherever_they_begin(reach: int) -> None:
    """P[N > N'] for two geometric noises is a / (1 + a), however much of N' is symbolic."""
    found = law(
        lambda noise: noise.first_success("geometric", ONE).run(noise.draw("geometric", ONE), 1),
        RationalNoise(HALF, reach=reach),
    )

    assert found == {0: Fraction(1, 3), None: Fraction(2, 3)}


def test_added_noise_has_the_discrete_laplace_law() -> None:
    """Inside the window the masses are (1-a)/(1+a) a^|k|, outside the rest."""
    found = law(lambda noise: noise.add(0, ONE), RationalNoise(HALF, window=range(-1, 2)))

    sixth = Fraction(1, 6)
    assert found == {0: Fraction(1, 3), 1: sixth, -1: sixth, "below": sixth, "above": sixth}


def test_scales_that_are_no_multiple_of_the_unit_are_refused() -> None:
    """Only scales 1 / (k unit) have rational laws; true values outside the window are refused too."""
    with pytest.raises(ValueError, match="choose a finer unit"):
        law(lambda noise: noise.add(0, Fraction(2)), RationalNoise(HALF))
    with pytest.raises(ValueError, match="widen it"):
        law(lambda noise: noise.add(9, ONE), RationalNoise(HALF))


def test_tape_laws_add_up_to_one() -> None:
    """A third in binary digits: 5/16 settled by one 4-bit word, and so on, the rest unresolved."""
    one = tape_law(lambda tape: tape_noise(tape).bernoulli(Fraction(1, 3)), bits=4, words=1)
    three = tape_law(lambda tape: tape_noise(tape).bernoulli(Fraction(1, 3)), bits=4, words=3)

    assert (one[True], one[False], one.unresolved) == (Fraction(5, 16), Fraction(10, 16), Fraction(1, 16))
    assert three.unresolved == Fraction(1, 16**3)
    assert sum(three.values()) + three.unresolved == 1
    assert three[True] < Fraction(1, 3) < three[True] + three.unresolved


def test_endless_tapes_repeat_and_take_words_back() -> None:
    """One seed is one tape; words given back come again; other seeds are other tapes."""
    tape = EndlessTape(1)
    first = tape.take(5_000)
    tape.give_back(first[10:])

    assert tape.used == 10
    assert tape.take_up_to(4_990).tolist() == first[10:].tolist()
    assert EndlessTape(1).take(5_000).tolist() == first.tolist()
    assert EndlessTape(2).take(5).tolist() != first[:5].tolist()


def _tree(data: Histogram, noise: Noise) -> list[list[int]]:
    tree = Tree(size=data.size, epsilon=1, contributions=data.contributions)
    return [level.tolist() for level in tree.release(data, noise=noise).levels]


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.spread(1)
def test_the_tree_couples_at_exactly_epsilon(size: int) -> None:
    """All tiny neighbours, on 100 tapes each, couple at a loss of exactly epsilon."""
    losses = {
        coupled(_tree, Histogram.dense(one), Histogram.dense(other), _noise(seed))
        for one, other in add_remove_pairs(size, 2)
        for seed in range(100 // size)
    }

    assert losses == {Fraction(1)}


def _noise(seed: object) -> Noise:
    return tape_noise(EndlessTape(seed), path="numpy").session()


def test_moves_couple_at_twice_epsilon_at_most() -> None:
    """A moved item is one removed and one added."""
    losses = {
        coupled(_tree, Histogram.dense(one), Histogram.dense(other), _noise(0))
        for one, other in change_one_pairs(3, 2)
    }

    assert max(losses) <= 2
    assert max(losses) > 1


def test_couplings_count_finer_parts() -> None:
    """An entry with noise of scale / k costs k times as much."""
    loss = coupled(
        lambda data, noise: noise.add(data, Fraction(2), parts=[1, 4]).tolist(), [0, 0], [1, 1], _noise(1)
    )

    assert loss == Fraction(5, 2)


PLANTED = {
    "a true value published": lambda data, noise: (noise.add(data, ONE), data),
    "a scale from the data": lambda data, noise: noise.add(data, ONE * (data + 1)),
    "a shape from the data": lambda data, noise: noise.add([0] * data, ONE).tolist(),
    "a look more": lambda data, noise: [noise.add(0, ONE) for _ in range(data)],
    "a branch on the truth": lambda data, noise: noise.add(0, ONE) if data else None,
    "noise that is not added": lambda data, noise: data + noise.draw("laplace", ONE),
    "a coin": lambda data, noise: noise.bernoulli(HALF),
    "a selection": lambda data, noise: noise.exponential([data, 0], ONE),
}


@pytest.mark.parametrize("name", PLANTED)
def test_unpaid_looks_do_not_couple(name: str) -> None:
    """What reaches the output other than by added noise breaks the coupling, in either order."""
    for one, other in ((0, 1), (1, 0)):
        with pytest.raises(CouplingBroken):
            coupled(PLANTED[name], one, other, _noise(2))


def test_doubles_do_what_their_names_say() -> None:
    """Zero noise adds nothing, forbidden noise refuses, a recorder remembers scales in order."""
    recorder = RecordingNoise(ZeroNoise())
    session = recorder.session()
    session.add([1], Fraction(2))
    session.draw("laplace", Fraction(3))
    session.first_success("laplace", Fraction(4))

    assert recorder.scales == [2, 3, 4]
    assert ZeroNoise().add([4, 5], ONE).tolist() == [4, 5]
    with pytest.raises(AssertionError, match="before the input was checked"):
        ForbiddenNoise().session()


def test_tapes_of_given_words_are_replayed() -> None:
    """A noise on a finite tape uses just the words that it needs."""
    tape = Tape([0, 1, 2, 3])

    tape_noise(tape).bernoulli(HALF)

    assert tape.used == 1
