"""Permute-and-flip over runs: its law, one result on every path, and what it refuses."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import exp
from typing import Any

import numpy as np
import pytest

from partita.errors import InvalidData
from partita.testing import EndlessTape, tape_law, tape_noise
from partita.testing.laws import flip_law, spell_out
from partita.trusted.noise import flips
from partita.trusted.noise.laws import Tape

SCORES, LENGTHS = [0, -1, -3], [2, 1, 3]


def _law(scale: int) -> list[float]:
    return [
        float(each) for each in flip_law(spell_out(SCORES, LENGTHS), lambda gap: Fraction(exp(-gap / scale)))
    ]


def test_places_follow_the_law() -> None:
    """4,000 draws: chi-square with 5 degrees exceeds 36 less than once in a million tapes."""
    noise, draws = tape_noise(EndlessTape("flips")), 4_000
    seen = Counter(noise.permute_and_flip(SCORES, LENGTHS, Fraction(2)) for _ in range(draws))

    chi = sum((seen[place] - draws * chance) ** 2 / (draws * chance) for place, chance in enumerate(_law(2)))

    assert chi < 36


def test_the_law_is_exact_on_short_words() -> None:
    """Over all tapes of a few words every place has its chance, but for tapes that end too early."""
    found = tape_law(
        lambda tape: tape_noise(tape).permute_and_flip([0, -1], [1, 2], Fraction(1)), bits=3, words=4
    )
    exact = flip_law([0, -1, -1], lambda gap: exp(-gap))

    assert found.unresolved < Fraction(1, 3)
    for place, chance in enumerate(exact):
        assert 0 <= chance - float(found[place]) <= float(found.unresolved)


@pytest.mark.parametrize("seed", range(40))
def test_floats_never_decide(seed: int) -> None:
    """The path with floats chooses what the one with enclosures alone does, for runs of any length."""
    drawn = np.random.default_rng(seed)
    scores = drawn.integers(-(10 ** (seed % 4)), 1, 9)
    lengths = [int(each) << (seed * 3) for each in drawn.integers(1, 2**20, 9)]
    results = [
        tape_noise(EndlessTape(seed), path=path).permute_and_flip(scores, lengths, Fraction(5, 2))
        for path in ("auto", "exact")
    ]

    assert results[0] == results[1]


def test_equal_words_are_told_apart_by_further_ones() -> None:
    """Two runs whose first words agree are compared by the next words."""
    tape = Tape([7 << 60, 7 << 60, 1, 5, 0, 0])

    assert flips.choose_run(np.array([0, 0]), [1, 1], Fraction(1), tape) == 1
    assert tape.used == 4


def test_words_at_both_ends_are_no_exception() -> None:
    """The first and the last word leave the time open on one side, and do not decide by themselves."""
    for words in ([0, 5 << 60], [2**64 - 1, 5 << 60], [0, 2**64 - 1]):
        results = [
            flips.choose_run(np.array([0, -1]), [3, 2**90], Fraction(1), Tape([*words, *range(9)]), fast=fast)
            for fast in (True, False)
        ]
        assert results[0] == results[1]


@pytest.mark.parametrize(
    ("scores", "lengths"), [([], []), ([1], [0]), ([1, 2], [1]), ([1.5], [1]), ([1], [-1])]
)
def test_runs_without_candidates_are_refused(scores: Any, lengths: Any) -> None:
    """Lengths are positive integers, one for each score, and there is at least one."""
    with pytest.raises(InvalidData):
        tape_noise(EndlessTape(0)).permute_and_flip(scores, lengths, Fraction(1))


def test_scores_of_any_size_are_compared_exactly() -> None:
    """A gap of one beyond 64 bits is still a gap of one."""
    near, far = (
        [
            tape_noise(EndlessTape(seed)).permute_and_flip([top, top - 1], [1, 1], Fraction(1, 4))
            for seed in range(50)
        ]
        for top in (1, 2**70 + 1)
    )

    assert near == far


def test_hidden_numbers_are_uniform() -> None:
    """Each of five values comes a fifth of the time; chi-square with 4 degrees stays below 34."""
    seen = np.bincount(tape_noise(EndlessTape(3)).integers_below(5, 10_000), minlength=5)

    assert seen.size == 5
    assert ((seen - 2000) ** 2 / 2000).sum() < 34
