"""Wrong variants of the shipped pieces: the checkers that the right code passes catch every one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

from partita.public.axis import tent_solver
from partita.public.axis.tent_solver import TentLevel
from partita.public.axis.tents import BUDGET_UNITS, TentBudget, informed
from partita.public.axis.tree import Cut
from partita.testing import (
    CouplingBroken,
    EndlessTape,
    ZeroNoise,
    add_remove_pairs,
    change_one_pairs,
    coupled,
    data_sets,
    tape_noise,
)
from partita.trusted.mechanisms import partition as partition_module
from partita.trusted.mechanisms import partition as tents_module
from partita.trusted.mechanisms.partition import Partition, PartitionTents, Tents, measure_tents
from partita.trusted.noise import Noise
from partita.trusted.secret import Histogram

Counts = tuple[int, ...]
Pairs = Iterable[tuple[Counts, Counts]]
Run = Callable[[Counts, Noise], object]

SIZE = 4


def passes(run: Run, pairs: Pairs | None = None, *, left: Fraction = Fraction(1)) -> bool:
    """The checker: no pair of neighbours is told apart, and none loses more than epsilon = 1.

    Without noise no universe here is full, so no more than what is `left` after a partition.
    """
    noises: list[tuple[Noise, Fraction]] = [(ZeroNoise(), left), (tape_noise(EndlessTape(1)), Fraction(1))]
    try:
        return all(
            coupled(run, one, other, noise) <= most
            for one, other in pairs or add_remove_pairs(SIZE, 1)
            for noise, most in noises
        )
    except CouplingBroken:
        return False


def published(release: Any) -> object:
    parts = release.parts()
    series = tuple((name, tuple(values.tolist())) for name, values in sorted(parts.series.items()))
    return repr(sorted(parts.facts.items())), series


def with_tents(counts: Counts, noise: Noise, **changes: Any) -> object:
    mechanism = Tents(**{"size": SIZE, "epsilon": 1, **changes})
    data = Histogram.dense(counts, contributions=changes.get("contributions", 1))
    return published(mechanism.release(data, noise=noise))


def with_partition(counts: Counts, noise: Noise, **changes: Any) -> object:
    mechanism = PartitionTents(**{"size": SIZE, "epsilon": 1, **changes})
    data = Histogram.dense(counts, contributions=changes.get("contributions", 1))
    return published(mechanism.release(data, noise=noise))


def informed_partition(counts: Counts, noise: Noise) -> object:
    return with_partition(counts, noise, total=10**6)


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tents upon tents over a handful of units, and one cut for all data, which costs nothing.

    A segment of one cell and one of several; the partition itself is tested on its own.
    """
    half = Fraction(1, 2)
    monkeypatch.setattr(
        tents_module,
        "plan_levels",
        lambda units: ((units, units - 1), (half, half)) if units > 2 else ((units,), (half * 2,)),
    )
    monkeypatch.setattr(Partition, "cut", lambda self, data, *, noise: Cut(edges=np.array([0, 3], np.uint64)))


def left_by_partition(**changes: Any) -> Fraction:
    budget = PartitionTents(**{"size": SIZE, "epsilon": 1, **changes}).budget
    return 1 - Fraction(budget.partition, BUDGET_UNITS)


def test_the_shipped_code_passes() -> None:
    """The checker has nothing to say about the right code."""
    assert passes(with_tents)
    assert passes(with_partition, left=left_by_partition())
    assert passes(informed_partition, left=left_by_partition(total=10**6))


class Bent:
    """Passes additions on, bent in some way."""

    secure = False

    def __init__(self, noise: Noise) -> None:
        self.noise = noise

    def session(self) -> Any:
        return self

    def add(self, x: ArrayLike, scale: Fraction, *, parts: ArrayLike | None = None) -> Any:
        return self.noise.add(x, scale, parts=parts)


class HalfScale(Bent):
    """Noise of half the scale."""

    def add(self, x: ArrayLike, scale: Fraction, *, parts: ArrayLike | None = None) -> Any:
        return self.noise.add(x, scale / 2, parts=parts)


class LastLookFree(Bent):
    """The shortest vectors are published as they are."""

    def add(self, x: ArrayLike, scale: Fraction, *, parts: ArrayLike | None = None) -> Any:
        return np.asarray(x) if np.size(x) == 1 else super().add(x, scale, parts=parts)


class OneNoiseForAll(Bent):
    """The noise of the first look again for every later one of its size."""

    def __init__(self, noise: Noise) -> None:
        super().__init__(noise)
        self.drawn: dict[int, Any] = {}

    def add(self, x: ArrayLike, scale: Fraction, *, parts: ArrayLike | None = None) -> Any:
        values = np.asarray(x)
        if values.size not in self.drawn:
            noisy = np.asarray(super().add(values, scale))
            self.drawn[values.size] = noisy - values
            return noisy
        return values + self.drawn[values.size]


class EmptyIsExact(Bent):
    """Zeros stay zeros."""

    def add(self, x: ArrayLike, scale: Fraction, *, parts: ArrayLike | None = None) -> Any:
        noisy = np.asarray(super().add(x, scale))
        return np.where(np.asarray(x) == 0, 0, noisy)


@pytest.mark.parametrize(
    "bent", [HalfScale, LastLookFree, OneNoiseForAll, EmptyIsExact], ids=lambda b: b.__name__
)
def test_wrong_use_of_noise_is_caught(bent: type[Bent]) -> None:
    """Noise that is too small, missing, or used twice loses more than epsilon or tells data apart."""

    def run(counts: Counts, noise: Noise) -> object:
        return with_partition(counts, bent(noise))  # type: ignore[arg-type]

    assert not passes(run)


def test_a_level_that_ignores_its_share_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every level at the whole of epsilon costs as many epsilons as there are levels."""
    monkeypatch.setattr(
        tents_module, "level_scales", lambda shares, rate: [2 ** (8 * i) / rate for i in range(len(shares))]
    )

    assert not passes(with_tents)


def test_a_level_that_forgets_its_unit_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """One person is 2^8 units of the first level; noise for one unit is too small."""
    monkeypatch.setattr(tents_module, "level_scales", lambda shares, rate: [1 / (a * rate) for a in shares])

    assert not passes(with_tents)


def test_weights_that_are_no_partition_of_unity_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that gives a little more than its count to its tents costs more than its share."""
    shipped = TentLevel._sums
    monkeypatch.setattr(
        TentLevel, "_sums", lambda self, values: shipped(self, values) + values[self.left[-1]]
    )

    assert not passes(with_tents)


def test_a_cell_counted_in_three_tents_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tents that are twice as high at one node are not paid for."""
    shipped = tent_solver.TentLevel.over

    def wrong(below: int, tents: int) -> TentLevel:
        level = shipped(below, tents)
        return TentLevel(tents, level.left, np.where(level.right > 0, level.right + 2**9, 0))

    monkeypatch.setattr(TentLevel, "over", staticmethod(wrong))

    assert not passes(with_tents)


@pytest.mark.parametrize("run", [with_tents, with_partition])
def test_ignored_neighbours_are_caught(run: Callable[..., object]) -> None:
    """Noise for add-remove does not protect a row that moves; noise for change-one does."""
    moved = list(change_one_pairs(SIZE, 1))

    def right(counts: Counts, noise: Noise) -> object:
        return run(counts, noise, neighbors="change-one")

    def wrong(counts: Counts, noise: Noise) -> object:
        return run(counts, noise)

    assert passes(right, moved)
    assert not passes(wrong, moved)


@pytest.mark.parametrize("run", [with_tents, with_partition])
def test_an_ignored_contribution_bound_is_caught(run: Callable[..., object]) -> None:
    """Noise for one row does not protect a person with two; noise for two does."""
    persons = [
        (counts, tuple(a + b for a, b in zip(counts, person, strict=True)))
        for counts, person in product(data_sets(SIZE, 1), data_sets(SIZE, 2))
        if sum(person) == 2
    ]

    def right(counts: Counts, noise: Noise) -> object:
        return run(counts, noise, contributions=2)

    def wrong(counts: Counts, noise: Noise) -> object:
        return run(counts, noise)

    assert passes(right, persons)
    assert not passes(wrong, persons)


def test_the_true_number_of_rows_is_caught() -> None:
    """Shares that follow the data instead of a public total tell neighbours apart."""

    def wrong(counts: Counts, noise: Noise) -> object:
        return with_partition(counts, noise, total=1_000 * sum(counts))

    assert not passes(wrong)


def test_the_true_largest_count_as_a_limit_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit of a cell in the question must be public: with the true largest count the answer jumps."""

    def wrong(self: PartitionTents, histogram: Histogram, noise: Noise) -> Any:
        limit = int(histogram.counts.max(initial=0))
        return int(noise.add(limit * SIZE, self._scale(self.budget.fullness)))

    monkeypatch.setattr(PartitionTents, "_filled", wrong)

    assert not passes(informed_partition)


def test_a_question_that_is_not_paid_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The exact number of rows under the limit may decide nothing."""
    monkeypatch.setattr(PartitionTents, "_filled", lambda self, histogram, noise: histogram.total)

    assert not passes(informed_partition)


def test_a_question_that_is_paid_twice_over_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counting with all of epsilon after the question was asked costs more than epsilon."""
    shipped = TentBudget.counting
    monkeypatch.setattr(
        TentBudget, "counting", lambda self, *, full: shipped(self, full=full) + self.fullness
    )

    assert not passes(informed_partition, left=left_by_partition(total=10**6))


def test_a_second_look_that_is_not_paid_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tents that spend what the pairs spend too cost more than what is left."""
    pairs = Fraction(PartitionTents(size=SIZE, epsilon=1).budget.pairs, BUDGET_UNITS)
    monkeypatch.setattr(
        partition_module,
        "measure_tents",
        lambda units, rate, noise: measure_tents(units, rate + pairs, noise),
    )

    assert not passes(with_partition, left=left_by_partition())


def test_cuts_at_the_true_heavy_cells_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells may be cut off by where the released seals are, never by what they hold."""
    shipped = PartitionTents._count_segments

    def wrong(self: PartitionTents, histogram: Histogram, cut: Cut, noise: Noise) -> Any:
        heavy = histogram.cells[histogram.counts > 0]
        return shipped(self, histogram, Cut(edges=np.union1d(cut.edges, heavy)), noise)

    monkeypatch.setattr(PartitionTents, "_count_segments", wrong)

    assert not passes(with_partition)


def test_skipping_empty_pairs_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every wide segment is looked at twice, whether anybody is in it or not."""
    shipped = PartitionTents._look_at_pairs

    def wrong(self: PartitionTents, weights: Any, cut: Cut, pieces: Cut, noise: Noise) -> Any:
        if not weights[pieces.locate(cut.starts)[-1] :].any():
            noise = ZeroNoise()
        return shipped(self, weights, cut, pieces, noise)

    monkeypatch.setattr(PartitionTents, "_look_at_pairs", wrong)

    assert not passes(with_partition)


def test_a_budget_of_true_information_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """How many units there are for the counts is a public number, not one that knows the data."""
    shipped = PartitionTents.release

    def wrong(self: PartitionTents, data: Histogram, *, noise: Noise) -> Any:
        knowing = TentBudget(self.size, informed(10_000 * data.total, self.rate))
        object.__setattr__(self, "budget", knowing)
        return shipped(self, data, noise=noise)

    monkeypatch.setattr(PartitionTents, "release", wrong)

    assert not passes(with_partition)
