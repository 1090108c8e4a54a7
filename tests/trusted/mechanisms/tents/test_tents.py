"""The tents mechanism: exact without noise, private with it."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from partita.public.axis.base import Term
from partita.testing import (
    EndlessTape,
    OutputLaw,
    RationalNoise,
    RecordingNoise,
    ZeroNoise,
    add_remove_pairs,
    change_one_pairs,
    check_mechanism,
    coupled,
    law,
    privacy_loss,
    tape_noise,
)
from partita.trusted.mechanisms import partition as module
from partita.trusted.mechanisms.partition import Tents
from partita.trusted.noise import Noise
from partita.trusted.secret import Histogram

Counts = tuple[int, ...]
HALF = Fraction(1, 2)


def outcome(counts: Counts, noise: Noise, **changes: Any) -> object:
    """All that is published, in a form that can be compared."""
    mechanism = Tents(**{"size": len(counts), "epsilon": 1, **changes})
    data = Histogram.dense(counts, contributions=changes.get("contributions", 1))
    return tuple(tuple(level.tolist()) for level in mechanism.release(data, noise=noise).tents.levels)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tents upon tents over a handful of cells, where the plan would have none."""
    shares = (HALF, Fraction(1, 4), Fraction(1, 4))
    monkeypatch.setattr(module, "plan_levels", lambda units: ((units, units - 1, units - 2), shares))


def test_the_suite_of_every_mechanism_passes() -> None:
    """What holds for all mechanisms holds for tents."""
    check_mechanism(Tents)


@pytest.mark.parametrize("size", [21, 100, 450])
def test_without_noise_every_range_is_exact(size: int) -> None:
    """Zero noise gives the sum of the cells."""
    counts = [(7 * i) % 5 for i in range(size)]
    release = Tents(size=size, epsilon=1).release(Histogram.dense(counts), noise=ZeroNoise())

    for low, high in ((0, size - 1), (3, 3), (1, size // 2), (size // 3, size - 2)):
        assert release.count(low, high).value == pytest.approx(sum(counts[low : high + 1]), abs=1e-4)


def test_a_difference_is_one_question() -> None:
    """Terms that cancel leave nothing; the error of a difference is not that of two answers."""
    counts = list(range(100))
    release = Tents(size=100, epsilon=1).release(Histogram.dense(counts), noise=tape_noise(EndlessTape(1)))

    nothing = release.answer(Term(0, 60), Term(0, 60, -1))
    nearly = release.answer(Term(0, 60), Term(0, 59, -1))

    assert nothing.value == 0.0
    assert nothing.worst(0.01) == (0.0, 0.0)
    assert nearly.error == pytest.approx(release.count(60, 60).error)
    assert nearly.worst(0.01)[0] < 60 < nearly.worst(0.01)[1]
    assert release.answer(Term(5, 9, -1)).worst(0.05)[0] < 0.0


def test_many_answers_are_the_single_ones() -> None:
    """Values are equal; so are standard errors."""
    release = Tents(size=300, epsilon=1).release(
        Histogram.dense([i % 9 for i in range(300)]), noise=tape_noise(EndlessTape(2))
    )
    lows = np.arange(0, 150, 7, dtype=np.uint64)
    highs = lows + np.uint64(120)

    single = [release.count(int(low), int(high)) for low, high in zip(lows, highs, strict=True)]

    assert release.counts(lows, highs) == pytest.approx([answer.value for answer in single])
    assert release.errors(lows, highs) == pytest.approx([answer.error for answer in single], rel=1e-12)


@pytest.mark.parametrize("size", [4, 5])
def test_every_row_costs_exactly_epsilon(size: int, tiny: None) -> None:
    """On all pairs of neighbours all looks together cost epsilon, with tents upon tents."""
    losses = {
        coupled(outcome, one, other, tape_noise(EndlessTape(seed)))
        for one, other in add_remove_pairs(size, 1)
        for seed in range(3)
    }

    assert losses == {Fraction(1)}


def test_a_row_that_moves_costs_at_most_epsilon(tiny: None) -> None:
    """Under change-one noise is twice as wide; a row that moves far costs nearly all of epsilon."""

    def run(counts: Counts, noise: Noise) -> object:
        return outcome(counts, noise, neighbors="change-one")

    losses = {coupled(run, one, other, tape_noise(EndlessTape(0))) for one, other in change_one_pairs(5, 1)}

    assert Fraction(3, 4) < max(losses) <= 1
    assert min(losses) > 0


@pytest.mark.parametrize("size", [21, 401])
def test_every_cell_of_a_planned_size_costs_epsilon(size: int) -> None:
    """With the shipped plan a row in any of the cells costs exactly epsilon."""
    counts = tuple(i % 3 for i in range(size))
    cells = range(0, size, max(1, size // 40))

    losses = {
        coupled(outcome, counts, (*counts[:i], counts[i] + 1, *counts[i + 1 :]), ZeroNoise()) for i in cells
    }

    assert losses == {Fraction(1)}


class Clamped(RationalNoise):
    """Far values become the integers beyond the window."""

    def _add(self, value: int, scale: Fraction) -> int:
        noisy = super()._add(value, scale)
        sides = {"below": self.window[0] - 1, "above": self.window[-1] + 1}
        return sides[noisy] if isinstance(noisy, str) else noisy


def test_the_law_of_a_flat_release_loses_exactly_epsilon() -> None:
    """Enumerated on two cells: the laws of all neighbours differ by a factor of e^epsilon."""

    @cache
    def law_of(counts: Counts) -> OutputLaw:
        def run(noise: RationalNoise) -> Any:
            return outcome(counts, noise)

        return law(run, Clamped(HALF, window=range(-4, 7)))

    losses = [
        privacy_loss(law_of(one), law_of(other), base=HALF, unit=Fraction(1))
        for one, other in add_remove_pairs(2, 2)
    ]

    assert all(loss == 1 for loss in losses)


def test_every_scale_is_the_one_in_the_proof() -> None:
    """Level l has noise of scale 2^8l w / (share epsilon)."""
    recorder = RecordingNoise(ZeroNoise())
    mechanism = Tents(size=100, epsilon="1/2", neighbors="change-one", contributions=3)

    mechanism.release(Histogram.from_cells([5], size=100, contributions=3), noise=recorder)

    assert recorder.scales == mechanism.scales == [Fraction(24), Fraction(24 * 256)]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_tiny_universes_work(size: int) -> None:
    """One, two and three cells are counted flat."""
    release = Tents(size=size, epsilon=4).release(
        Histogram.dense([50] * size), noise=tape_noise(EndlessTape(3))
    )

    assert release.count(0, size - 1).worst(1e-6)[0] < 50 * size < release.count(0, size - 1).worst(1e-6)[1]
    assert 0.0 < release.error(0.05) < 50.0
