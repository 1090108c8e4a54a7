"""Wrong variants of the shipped pieces: the checkers that the right code passes catch every one."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

from partita import Cutter, Histogram, Partition, Tree
from partita.testing import (
    CouplingBroken,
    EndlessTape,
    Loss,
    OutputLaw,
    RationalNoise,
    add_remove_pairs,
    change_one_pairs,
    coupled,
    data_sets,
    law,
    tape_noise,
)
from partita.testing.laws import Tail
from partita.trusted.mechanisms import partition as module
from partita.trusted.noise.hazard import Law
from partita.trusted.noise.system import Noise

Counts = tuple[int, ...]
Pairs = Iterable[tuple[Counts, Counts]]
Run = Callable[[Counts, Noise], Hashable]
Worst = Callable[..., Loss]

SIZE, MOST, THRESHOLD = 3, 2, 1
HALF = Fraction(1, 2)


def _passes(worst: Worst, run: Run, noise: RationalNoise, pairs: Pairs | None = None) -> bool:
    """The checker: whether no pair of data sets loses more than epsilon = 1."""

    @cache
    def law_of(counts: Counts) -> OutputLaw:
        return law(lambda noise: run(counts, noise), noise)

    chosen = add_remove_pairs(SIZE, MOST) if pairs is None else pairs
    return worst(law_of, chosen, base=noise.base, unit=noise.unit) <= 1


def _cut(counts: Counts, noise: Noise, **more: Any) -> Hashable:
    partition = Partition(**{"size": SIZE, "epsilon": 1, "threshold": THRESHOLD, **more})
    contributions = more.get("contributions", 1)
    cut = partition.cut(Histogram.dense(counts, contributions=contributions), noise=noise)
    return tuple(cut.edges.tolist())


def test_the_shipped_cut_passes(worst: Worst) -> None:
    """The checker has nothing to say about the right code."""
    assert _passes(worst, _cut, RationalNoise(HALF))


class _FarTails(RationalNoise):
    """A noise whose tails must lie far from zero; tested on sets, where far is near enough."""

    def __init__(self, base: Fraction) -> None:
        super().__init__(base, reach=SIZE + THRESHOLD)


class _HalfScale(RationalNoise):
    """Noise of half the scale everywhere."""

    def draw(self, law: Law, scale: Fraction) -> Any:
        return super().draw(law, scale / 2)

    def first_success(self, law: Law, scale: Fraction) -> Any:
        return super().first_success(law, scale / 2)


class _HalfThresholdScale(RationalNoise):
    """Noise of half the scale on the threshold only."""

    def draw(self, law: Law, scale: Fraction) -> Any:
        return super().draw(law, scale / 2)


class _HalfCountScale(RationalNoise):
    """Noise of half the scale on the counts only."""

    def first_success(self, law: Law, scale: Fraction) -> Any:
        return super().first_success(law, scale / 2)


class _ScaleOverDimensions(RationalNoise):
    """Epsilon spent once for each of three dimensions."""

    def draw(self, law: Law, scale: Fraction) -> Any:
        return super().draw(law, scale / 3)

    def first_success(self, law: Law, scale: Fraction) -> Any:
        return super().first_success(law, scale / 3)


class _NoThresholdNoise(RationalNoise):
    """The threshold itself."""

    def draw(self, law: Law, scale: Fraction) -> Any:
        return 0


class _NoCountNoise(_FarTails):
    """The counts themselves."""

    def first_success(self, law: Law, scale: Fraction) -> Any:
        return _WithoutNoise()


class _OneNoiseForBoth(_FarTails):
    """The threshold noise again as the noise of every count: it cancels out."""

    def draw(self, law: Law, scale: Fraction) -> Any:
        self.drawn = super().draw(law, scale)
        return self.drawn

    def first_success(self, law: Law, scale: Fraction) -> Any:
        return _WithoutNoise(self.drawn)


class _OneCountNoise(_FarTails):
    """One count noise for all positions of a segment: only its difference with N_T matters.

    The difference of two geometric noises is discrete Laplace noise.
    """

    def draw(self, law: Law, scale: Fraction) -> Any:
        return super().draw("laplace", scale)

    def first_success(self, law: Law, scale: Fraction) -> Any:
        return _WithoutNoise()


class _CarriedThresholdNoise(RationalNoise):
    """The threshold noise of the first segment, for all of them."""

    def session(self) -> RationalNoise:
        self.carried: Any = None
        return self

    def draw(self, law: Law, scale: Fraction) -> Any:
        if self.carried is None:
            self.carried = super().draw(law, scale)
        return self.carried


class _WithoutNoise:
    """Success where a known noise exceeds the level."""

    def __init__(self, noise: int | Tail = 0) -> None:
        self._noise = noise

    def run(self, level: int | Tail, length: int) -> int | None:
        return 0 if length and _negative(level, self._noise) else None


def _negative(level: int | Tail, noise: int | Tail) -> bool:
    """Whether level - noise < 0; a lone tail lies far from zero on its own side."""
    if isinstance(level, Tail) and isinstance(noise, Tail):
        return level.offset < noise.offset
    if isinstance(level, int):
        assert isinstance(noise, int)
        return level < noise
    return level.sign < 0


BENT_NOISES: list[type[RationalNoise]] = [
    _HalfScale,
    _HalfThresholdScale,
    _HalfCountScale,
    _ScaleOverDimensions,
    _NoThresholdNoise,
    _NoCountNoise,
    _OneNoiseForBoth,
    _OneCountNoise,
    _CarriedThresholdNoise,
]


@pytest.mark.parametrize("bent", BENT_NOISES, ids=lambda bent: bent.__name__)
def test_wrong_use_of_noise_is_caught(bent: type[RationalNoise], worst: Worst) -> None:
    """A cut with noise that is too small, missing, reused or carried over loses more than epsilon."""
    most = 1 if issubclass(bent, _FarTails) else MOST

    assert not _passes(worst, _cut, bent(HALF), add_remove_pairs(SIZE, most))


class _EarlySeal(module._OpenSegment):
    """A seal at the first position of a run is reported one early: its items are counted again."""

    def __init__(self, partition: Partition, start: int, noise: Noise) -> None:
        super().__init__(partition, start, noise)
        self.start = start

    def seal_before(self, position: int) -> int | None:
        seal = super().seal_before(position)
        return seal - 1 if seal is not None and seal == self.position > self.start else seal


class _LateSeal(module._OpenSegment):
    """A seal just behind an item is reported one late, though the next item lies there."""

    def seal_before(self, position: int) -> int | None:
        seal = super().seal_before(position)
        return seal + 1 if seal is not None and seal == position - 1 < SIZE - 1 else seal


class _CarriedCount(module._OpenSegment):
    """The count goes on from segment to segment."""

    carried = 0

    def __init__(self, partition: Partition, start: int, noise: Noise) -> None:
        super().__init__(partition, start, noise)
        type(self).carried = 0 if start == 0 else self.carried
        super().add(self.carried)

    def add(self, weight: int) -> None:
        type(self).carried = self.carried + weight
        super().add(weight)


@pytest.mark.parametrize("wrong", [_EarlySeal, _LateSeal, _CarriedCount], ids=lambda wrong: wrong.__name__)
def test_wrong_bookkeeping_is_caught(
    wrong: type[module._OpenSegment], worst: Worst, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A seal off by one, or a count carried over, loses more than epsilon."""
    monkeypatch.setattr(module, "_OpenSegment", wrong)

    assert not _passes(worst, _cut, RationalNoise(HALF))


def test_a_wrong_neighbor_factor_is_caught(worst: Worst) -> None:
    """Noise for add-remove neighbors does not protect an item that moves; noise for change-one does."""
    moved = list(change_one_pairs(SIZE, MOST))

    def right(counts: Counts, noise: Noise) -> Hashable:
        return _cut(counts, noise, neighbors="change-one")

    assert _passes(worst, right, RationalNoise(HALF, unit=HALF), moved)
    assert not _passes(worst, _cut, RationalNoise(HALF), moved)


def test_an_ignored_contribution_bound_is_caught(worst: Worst) -> None:
    """Noise for one row does not protect a person with two; noise for two does."""
    persons = [
        (counts, tuple(a + b for a, b in zip(counts, person, strict=True)))
        for counts, person in product(data_sets(SIZE, 1), data_sets(SIZE, 2))
        if sum(person) == 2
    ]

    def right(counts: Counts, noise: Noise) -> Hashable:
        return _cut(counts, noise, contributions=2)

    assert _passes(worst, right, RationalNoise(HALF, unit=HALF), persons)
    assert not _passes(worst, _cut, RationalNoise(HALF), persons)


def test_the_true_number_of_items_in_the_threshold_is_caught(worst: Worst) -> None:
    """A threshold that is computed from the data loses more than epsilon."""

    def wrong(counts: Counts, noise: Noise) -> Hashable:
        return _cut(counts, noise, threshold=sum(counts))

    assert not _passes(worst, wrong, RationalNoise(HALF))


def test_the_true_maximum_in_the_scale_is_caught(worst: Worst) -> None:
    """A scale that is computed from the data loses more than epsilon."""

    def wrong(counts: Counts, noise: Noise) -> Hashable:
        return _cut(counts, noise, contributions=max(1, *counts))

    assert not _passes(worst, wrong, RationalNoise(HALF, unit=HALF))


def _transcript(counts: Counts, noise: Noise, *, event_driven: bool) -> Hashable:
    """What an observer of the online cut sees, tick by tick; the clock is public."""
    cutter: Cutter = Partition(size=SIZE, epsilon=1, threshold=THRESHOLD).online(noise=noise)
    seen: list[tuple[int, ...]] = []
    waiting: list[int] = []
    for cell, count in enumerate(counts):
        waiting += cutter.update(cell, count)
        shown = waiting if count or not event_driven else []
        seen.append(tuple(shown))
        waiting = [seal for seal in waiting if seal not in shown]
        waiting += cutter.advance(1)
    return *seen, cutter.finish().edges.tobytes()


def test_event_driven_output_is_caught(worst: Worst) -> None:
    """Seals that are reported only when an item arrives show when items arrive."""

    def right(counts: Counts, noise: Noise) -> Hashable:
        return _transcript(counts, noise, event_driven=False)

    def wrong(counts: Counts, noise: Noise) -> Hashable:
        return _transcript(counts, noise, event_driven=True)

    assert _passes(worst, right, RationalNoise(HALF))
    assert not _passes(worst, wrong, RationalNoise(HALF))


TREE = Tree(size=4, epsilon=1)


def _tree(data: Histogram, noise: Noise) -> list[list[int]]:
    return [level.tolist() for level in TREE.release(data, noise=noise).levels]


class _Adding:
    """Passes additions on, bent in some way."""

    secure = False

    def __init__(self, noise: Noise) -> None:
        self.noise = noise

    def session(self) -> Any:
        return self

    def add(self, x: Any, scale: Fraction, *, parts: Any = None) -> Any:
        return self.noise.add(x, scale, parts=parts)


class _HalfAddedScale(_Adding):
    """Half the scale."""

    def add(self, x: Any, scale: Fraction, *, parts: Any = None) -> Any:
        return self.noise.add(x, scale / 2)


class _ScaleOverLevels(_Adding):
    """A scale that forgets the number of levels."""

    def add(self, x: Any, scale: Fraction, *, parts: Any = None) -> Any:
        return self.noise.add(x, scale / len(TREE.widths))


class _BareLeaves(_Adding):
    """No noise on the leaves."""

    def add(self, x: Any, scale: Fraction, *, parts: Any = None) -> Any:
        return np.array(x) if np.size(x) == TREE.size else self.noise.add(x, scale)


class _OneNoiseForAll(_Adding):
    """One noise for all nodes of a level."""

    def add(self, x: Any, scale: Fraction, *, parts: Any = None) -> Any:
        return np.asarray(x) + self.noise.add(0, scale)


class _ScaleOfTheMaximum(_Adding):
    """A scale that grows with the true maximum."""

    def add(self, x: Any, scale: Fraction, *, parts: Any = None) -> Any:
        return self.noise.add(x, scale * (1 + int(np.max(x))))


class _NoiseWhereThereIsSomething(_Adding):
    """Looks at the nodes that hold something: their number is the data's."""

    def add(self, x: Any, scale: Fraction, *, parts: Any = None) -> Any:
        noisy = np.array(x)
        for node in np.flatnonzero(noisy):
            noisy[node] = self.noise.add(int(noisy[node]), scale)
        return noisy


class _UnpaidSecondLook(_Adding):
    """The mean of two looks, each at the scale of one."""

    def add(self, x: Any, scale: Fraction, *, parts: Any = None) -> Any:
        return (self.noise.add(x, scale) + self.noise.add(x, scale)) // 2


class _UntilPositive(_Adding):
    """Looks again while the true count is above the noisy one."""

    def add(self, x: Any, scale: Fraction, *, parts: Any = None) -> Any:
        noisy = self.noise.add(x, scale)
        while np.sum(noisy) < np.sum(x):
            noisy = self.noise.add(x, scale)
        return noisy


BENT_ADDITIONS: list[type[_Adding]] = [
    _HalfAddedScale,
    _ScaleOverLevels,
    _BareLeaves,
    _OneNoiseForAll,
    _ScaleOfTheMaximum,
    _NoiseWhereThereIsSomething,
    _UnpaidSecondLook,
    _UntilPositive,
]


def _couples(run: Callable[[Histogram, Noise], object]) -> bool:
    """The checker: whether all neighbours couple at a cost of at most epsilon, on several tapes."""
    pairs = list(add_remove_pairs(TREE.size, 1))
    return all(_coupled_loss(run, one, other, seed) <= 1 for (one, other), seed in product(pairs, range(10)))


def _coupled_loss(
    run: Callable[[Histogram, Noise], object], one: Counts, other: Counts, seed: int
) -> Fraction | float:
    noise = tape_noise(EndlessTape(seed), path="numpy")
    try:
        return coupled(run, Histogram.dense(one), Histogram.dense(other), noise.session())
    except CouplingBroken:
        return float("inf")


@pytest.mark.parametrize("bent", BENT_ADDITIONS, ids=lambda bent: bent.__name__)
def test_wrong_additions_are_caught(bent: type[_Adding]) -> None:
    """A tree with noise that is too small, missing, shared or looked at again does not couple."""

    def wrong(data: Histogram, noise: Noise) -> object:
        return _tree(data, bent(noise))  # type: ignore[arg-type]

    assert _couples(_tree)
    assert not _couples(wrong)


def test_a_second_release_without_paying_is_caught() -> None:
    """Two releases cost twice what one costs."""
    assert not _couples(lambda data, noise: [_tree(data, noise), _tree(data, noise)])


def test_a_true_count_in_a_branch_is_caught() -> None:
    """A release that is made only if there are data shows whether there are."""
    assert not _couples(lambda data, noise: _tree(data, noise) if data.total else None)
