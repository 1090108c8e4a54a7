"""One release, one source of words; and what holds noise exists once."""

from __future__ import annotations

import copy
import math
import os
import pickle
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from partita import EntropyError, Histogram, InvalidData, InvalidParameter, PaperIntervals, Partition, Tree
from partita.testing import EndlessTape, tape_noise
from partita.trusted.noise import KERNEL, SYSTEM, SystemNoise, Words, WordSource
from partita.trusted.noise.hazard import FirstSuccess, hazard
from partita.trusted.noise.laws import Uniform

CELLS = np.arange(0, 40_000, 7, dtype=np.uint64)
RELEASES: list[Callable[[Any], object]] = [
    lambda noise: Partition(size=2**20, epsilon=1).cut(CELLS, noise=noise),
    lambda noise: Tree(size=8, epsilon=1).release(Histogram.dense([1] * 8), noise=noise),
    lambda noise: PaperIntervals(size=8, epsilon=1).release(Histogram.dense([9] * 8), noise=noise),
    lambda noise: Partition(size=100, epsilon=1).online(noise=noise).finish(),
]


@pytest.mark.parametrize("release", RELEASES)
def test_a_release_draws_from_one_source(release: Callable[[Any], object]) -> None:
    """Words that a walk gives back come again, because nothing else is drawn from."""
    opened: list[EndlessTape] = []

    def source() -> EndlessTape:
        opened.append(EndlessTape(len(opened)))
        return opened[-1]

    release(SystemNoise(source))

    assert len(opened) == 1


@pytest.mark.parametrize("path", ["numpy", "compiled"])
def test_doubtful_words_are_used_and_not_redrawn(path: Any) -> None:
    """With a source of its own for every session, wide margins still give the cut of the exact path."""
    partition = Partition(size=2**20, epsilon=1)
    sources = iter([EndlessTape("session"), EndlessTape("another"), EndlessTape("a third")])

    doubtful = partition.cut(CELLS, noise=SystemNoise(lambda: next(sources), path=path, margin=0.5))

    assert doubtful == partition.cut(CELLS, noise=tape_noise(EndlessTape("session"), path="exact"))


def test_only_sessions_walk_fast_on_fresh_words() -> None:
    """Outside of a session words given back would be lost."""
    stream = CELLS, np.ones(CELLS.size, dtype=np.int64), 2**20 - 1

    assert SYSTEM.segments("geometric", Fraction(1), 17, *stream) is None
    assert SYSTEM.session().segments("geometric", Fraction(1), 17, *stream) is not None


def test_the_session_that_drew_decides_about_the_guarantee() -> None:
    """A source that only looks like ours later does not help, nor does a class derived from it."""

    class Constant(Words):  # type: ignore[misc]
        def _fresh(self, count: int) -> Any:
            return np.zeros(count, dtype=np.uint64)

    sources: Iterator[WordSource] = iter([EndlessTape(1), Words(), Words()])

    assert Partition(size=8, epsilon=1).cut([1], noise=SystemNoise(lambda: next(sources))).guarantee is None
    assert not SystemNoise(Constant).secure
    assert not SystemNoise(Constant).session().secure
    assert SYSTEM.session().secure
    assert KERNEL.session().session().secure


@pytest.mark.parametrize("margin", [-0.3, 0.0, 2.0**-40, 1.0, math.nan])
def test_margins_that_would_let_floats_guess_are_refused(margin: float) -> None:
    """A float may decide only with at least the slack that the proof grants it."""
    with pytest.raises(InvalidParameter, match=r"^margin"):
        SystemNoise(margin=margin)


@pytest.mark.parametrize("copying", [copy.copy, copy.deepcopy, pickle.dumps])
def test_what_holds_noise_cannot_be_copied(copying: Callable[[object], object]) -> None:
    """A copy would release the same noise about other data."""
    held: list[object] = [
        Words(),
        Uniform(EndlessTape(1)),
        FirstSuccess(hazard("geometric", Fraction(1)), Uniform(EndlessTape(1))),
        Partition(size=9, epsilon=1).online(noise=tape_noise(EndlessTape(1))),
    ]

    for each in held:
        with pytest.raises(EntropyError):
            copying(each)


def test_words_given_back_come_again() -> None:
    """Fresh words too, in the same order."""
    words = Words()
    taken = words.take(6)
    words.give_back(taken[2:])

    assert np.array_equal(words.take(4), taken[2:])


def test_the_type_of_noisy_values_is_a_fact_about_them() -> None:
    """int64 exactly if all noisy values fit, whatever the secret values were."""
    for x in ([2**63 - 1], [2**63], [2**63 - 3, 0, 0, 0], [-(2**63), 5]):
        for seed in range(60):
            noisy = tape_noise(EndlessTape(("dtype", *x, seed))).add(x, 1)
            fits = all(-(2**63) <= int(value) < 2**63 for value in noisy)
            assert (noisy.dtype == np.int64) == fits


def test_a_cutter_does_not_go_on_in_a_child(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parent and child would release the same noise."""
    cutter = Partition(size=9, epsilon=1).online(noise=tape_noise(EndlessTape(1)))
    monkeypatch.setattr(os, "getpid", lambda: -1)

    with pytest.raises(EntropyError, match="forked"):
        cutter.advance(1)


def test_a_cutter_that_was_interrupted_is_broken() -> None:
    """No seal is lost and no item counted twice, because nothing goes on."""
    cutter = Partition(size=2**20, epsilon=1, threshold=5).online(noise=tape_noise(EndlessTape(1)))
    cutter._noise = None  # type: ignore[assignment]
    with pytest.raises(AttributeError):
        cutter.finish()

    for use in (cutter.finish, cutter.add, lambda: cutter.advance(1)):
        with pytest.raises(EntropyError, match="interrupted"):
            use()


def test_a_cutter_says_nothing_about_where_items_were() -> None:
    """An item's position is secret, also in errors."""
    cutter = Partition(size=1_000, epsilon=1).online(noise=tape_noise(EndlessTape(1)))
    cutter.update(437)

    with pytest.raises(InvalidData) as refused:
        cutter.advance(999)

    assert "437" not in str(refused.value)
    assert "563" not in str(refused.value)
