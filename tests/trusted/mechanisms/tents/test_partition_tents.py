"""A partition counted by tents: exact without noise, private with it, sane where mechanisms break."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from partita.errors import InvalidParameter
from partita.public.axis.tents import BUDGET_UNITS, PartitionTentsRelease
from partita.public.axis.tree import Cut
from partita.testing import (
    EndlessTape,
    OutputLaw,
    RationalNoise,
    RecordingNoise,
    ZeroNoise,
    add_remove_pairs,
    check_mechanism,
    coupled,
    law,
    privacy_loss,
    tape_noise,
)
from partita.trusted.mechanisms.partition import Partition, PartitionTents
from partita.trusted.noise import Noise
from partita.trusted.secret import Histogram

Counts = tuple[int, ...]
SIZE = 2**64


def released(
    data: Histogram, *, seed: object = 0, total: int = 0, epsilon: object = 1
) -> PartitionTentsRelease:
    mechanism = PartitionTents(size=data.size, epsilon=epsilon, total=total)
    return mechanism.release(data, noise=tape_noise(EndlessTape(seed)))


def outcome(release: PartitionTentsRelease) -> object:
    """All that is published, in a form that can be compared."""
    parts = release.parts()
    series = tuple((name, tuple(values.tolist())) for name, values in sorted(parts.series.items()))
    return repr(sorted(parts.facts.items())), series


def test_the_suite_of_every_mechanism_passes() -> None:
    """What holds for all mechanisms holds for partitions with tents."""
    check_mechanism(PartitionTents)


@pytest.mark.parametrize("total", [0, 10**3, 10**5, 10**9, 2**90, -5])
@pytest.mark.parametrize("size", [1, 2, 3, 4096, 2**32, 2**64])
def test_shares_add_up_to_epsilon(size: int, total: int) -> None:
    """Question, partition, pairs and tents spend all of epsilon and no more, for every public fact."""
    mechanism = PartitionTents(size=size, epsilon="1/3", total=total)
    budget = mechanism.budget

    spent = budget.fullness + budget.partition + budget.counting(full=False)

    assert spent == BUDGET_UNITS == budget.fullness + budget.counting(full=True)
    assert 0 < budget.pairs < budget.counting(full=False)
    assert mechanism.partition.epsilon == Fraction(budget.partition, 3 * BUDGET_UNITS)
    assert not mechanism.partition.empty_segments.reaches(10**6)


def test_without_noise_heavy_cells_are_exact() -> None:
    """Heavy cells of a huge universe, some where floats cannot tell neighbours apart, become units."""
    cells = (5, 2**53 + 1, 2**63, SIZE - 1)
    data = Histogram.from_counts(cells, [10**6] * 4, size=SIZE)

    release = PartitionTents(size=SIZE, epsilon=1, total=4 * 10**6).release(data, noise=ZeroNoise())

    assert release.pairs is None
    for cell in cells:
        assert release.count(cell, cell).value == pytest.approx(10**6)
    assert release.count(6, 2**53).value == pytest.approx(0.0, abs=1e-6)
    assert release.count(0, SIZE - 1).value == pytest.approx(4 * 10**6)


def test_without_noise_pairs_tell_heavy_last_cells_from_the_rest() -> None:
    """With a small public total the heavy cells are found by a second look."""
    cells = (500, 2**53 + 1, 2**63)
    data = Histogram.from_counts(cells, [10**6] * 3, size=SIZE)

    release = PartitionTents(size=SIZE, epsilon=1).release(data, noise=ZeroNoise())

    assert release.pairs is not None
    for cell in cells:
        assert release.count(cell, cell).value == pytest.approx(10**6)
        assert release.count(cell, cell).worst(0.01)[0] > 0.99 * 10**6
    assert release.count(501, 2**53).worst(0.01)[1] < 0.01 * 10**6


def test_well_filled_cells_are_counted_one_by_one() -> None:
    """Where most cells are well filled there is no cut, and every cell is a unit."""
    counts = [50 + i % 7 for i in range(64)]

    release = PartitionTents(size=64, epsilon=1, total=3_400).release(
        Histogram.dense(counts), noise=ZeroNoise()
    )

    assert release.cut is None
    assert release.filled == 640
    assert release.counts(np.arange(64, dtype=np.uint64), np.arange(64, dtype=np.uint64)) == pytest.approx(
        counts, abs=1e-3
    )


def test_whether_cells_are_full_is_decided_by_a_noisy_number() -> None:
    """Where one row would decide it, neighbours with the same noisy number are counted in the same way."""
    mechanism = PartitionTents(size=64, epsilon=1, total=3_400)
    border = next(rows for rows in range(641) if mechanism._is_full(rows))
    one = [10] * (border // 10) + [border % 10] + [0] * (63 - border // 10)
    fewer = [one[0] - 1, *one[1:]]

    def run(counts: list[int], noise: Noise) -> object:
        release = mechanism.release(Histogram.dense(counts), noise=noise)
        return release.filled, release.parts().digest

    seeds = [
        seed
        for seed in range(20)
        if mechanism._is_full(mechanism._filled(Histogram.dense(one), tape_noise(EndlessTape(seed))) or 0)
    ]
    losses = [coupled(run, one, fewer, tape_noise(EndlessTape(seed)).session()) for seed in seeds[:3]]

    assert losses == [1] * 3


def test_a_few_heavy_cells_do_not_make_a_universe_full() -> None:
    """Each cell counts up to a public limit, so one cell cannot fill many."""
    release = PartitionTents(size=64, epsilon=1, total=3_400).release(
        Histogram.from_counts([7], [10**6], size=64), noise=ZeroNoise()
    )

    assert (release.filled, release.cut is None) == (10, False)


@pytest.mark.parametrize("edges", [[3], [0, 3], [1, 3], [0, 1, 2, 3]])
@pytest.mark.parametrize("total", [0, 10**5])
def test_given_any_cut_the_counts_cost_what_is_left(
    edges: list[int], total: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the cut held fixed a row loses what the partition left, or less in a segment of one cell."""
    monkeypatch.setattr(Partition, "cut", lambda self, data, *, noise: Cut(edges=np.array(edges, np.uint64)))
    mechanism = PartitionTents(size=4, epsilon=1, total=total)

    def run(counts: Counts, noise: Noise) -> object:
        return outcome(mechanism.release(Histogram.dense(counts), noise=noise))

    losses = {coupled(run, one, other, ZeroNoise()) for one, other in add_remove_pairs(4, 1)}

    left = 1 - Fraction(mechanism.budget.partition, BUDGET_UNITS)
    assert max(losses) == left
    assert losses <= {left, left - Fraction(mechanism.budget.pairs, BUDGET_UNITS)}


def test_a_full_universe_costs_epsilon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where every cell is counted, question and counts together cost all of epsilon."""
    monkeypatch.setattr(Partition, "cut", lambda self, data, *, noise: Cut(edges=np.array([1, 3], np.uint64)))
    mechanism = PartitionTents(size=4, epsilon=1, total=10**5)
    base = np.full(4, 5)

    def run(counts: Counts, noise: Noise) -> object:
        return outcome(mechanism.release(Histogram.dense(base + np.array(counts)), noise=noise))

    pairs = list(add_remove_pairs(4, 1))
    losses = {coupled(run, one, other, ZeroNoise()) for one, other in pairs}
    noisy = {
        coupled(run, one, other, tape_noise(EndlessTape(seed))) for one, other in pairs for seed in range(3)
    }

    assert losses == {Fraction(1)}
    assert max(noisy) <= 1


class Clamped(RationalNoise):
    """Far values become the integers beyond the window."""

    def _add(self, value: int, scale: Fraction) -> int:
        noisy = super()._add(value, scale)
        sides = {"below": self.window[0] - 1, "above": self.window[-1] + 1}
        return sides[noisy] if isinstance(noisy, str) else noisy


def test_the_law_of_the_question_loses_no_more_than_its_share() -> None:
    """Enumerated on all small data sets: rows beyond the limit of a cell change nothing, others by one."""
    mechanism = PartitionTents(size=3, epsilon=5, total=10**4)
    unit = mechanism.rate * mechanism.budget.fullness / BUDGET_UNITS

    @cache
    def law_of(counts: Counts) -> OutputLaw:
        def run(noise: RationalNoise) -> Any:
            return mechanism._filled(Histogram.dense(counts), noise)

        return law(run, Clamped(Fraction(1, 2), unit=unit, window=range(-9, 20)))

    losses = {
        privacy_loss(law_of(one), law_of(other), base=Fraction(1, 2), unit=unit).ratio
        for one, other in add_remove_pairs(3, 3)
    }

    assert losses == {Fraction(1), Fraction(2)}


def test_every_scale_is_the_one_in_the_proof() -> None:
    """Question, partition, tents and pairs draw at the scales that their units pay for."""
    recorder = RecordingNoise(ZeroNoise())
    mechanism = PartitionTents(size=8, epsilon="1/2", neighbors="change-one", contributions=3)
    budget = mechanism.budget

    mechanism.release(Histogram.dense([0, 0, 900, 0, 0, 0, 0, 0], contributions=3), noise=recorder)

    paid = (budget.fullness, budget.partition, budget.counting(full=False) - budget.pairs, budget.pairs)
    assert set(recorder.scales) == {Fraction(12 * BUDGET_UNITS, units) for units in paid}


def uniform(size: int, rows: int) -> Histogram:
    return Histogram.from_cells([(i * 2_654_435_761 * size // 2**32) % size for i in range(rows)], size=size)


BREAKING = {
    "nobody": Histogram.from_cells([], size=SIZE),
    "one row": Histogram.from_cells([2**60], size=SIZE),
    "one cell": Histogram.from_counts([0], [40], size=1),
    "two cells": Histogram.dense([40, 0]),
    "three cells": Histogram.dense([40, 1, 300]),
    "not a power of two": uniform(4_097, 3_000),
    "atoms above 2^53": Histogram.from_counts([2**53 + i for i in range(1, 60, 2)], [500] * 30, size=SIZE),
    "one atom of 30%": Histogram.from_cells(
        np.concatenate([np.arange(700) * 2**40, np.full(300, 2**50 + 1)]).astype(np.uint64), size=SIZE
    ),
    "top-coded": Histogram.from_cells(
        np.concatenate([np.arange(800) ** 2, np.full(400, 2**40 - 1)]).astype(np.uint64), size=2**40
    ),
    "all in one cell": Histogram.from_counts([12_345], [10**6], size=2**32),
    "dense and smooth": Histogram.dense([200 + i // 4 for i in range(300)]),
}


@pytest.mark.parametrize("case", BREAKING)
@pytest.mark.parametrize("epsilon", ["0.1", "1"])
@pytest.mark.spread(11)
def test_cases_that_break_mechanisms_are_sane(case: str, epsilon: str) -> None:
    """Answers are finite and not negative, and the truth lies in guaranteed bounds at beta = 1e-6."""
    data = BREAKING[case]
    last = data.size - 1
    asked = {(0, last), (0, 0), (last, last), (last // 3, last // 2), (0, last // 2)}
    asked |= {(int(cell), int(cell)) for cell in data.cells[:3]}
    for seed in range(3):
        release = released(data, seed=(case, seed), total=data.total, epsilon=epsilon)
        band = release.error(1e-6)
        for low, high in asked:
            truth = int(data.within(low, high + 1)[1].sum())
            answer = release.count(low, high)
            bottom, top = answer.worst(1e-6)
            assert bottom <= truth <= top
            assert 0.0 <= answer.value < float("inf")
            assert 0.0 < answer.error < float("inf")
            assert abs(answer.value - truth) <= band


def test_answers_do_not_depend_on_how_large_the_universe_is() -> None:
    """The same rows, spread to 2^64 cells or kept among 2^32, are known equally well."""
    rows = np.sort((np.arange(3_000, dtype=np.uint64) ** np.uint64(2)) * np.uint64(400))
    errors = []
    for factor in (1, 2**32):
        data = Histogram.from_sorted(rows * np.uint64(factor), size=2**32 * factor)
        release = released(data, seed="large", total=3_000)
        lows, highs = data.cells[100:1400], data.cells[1500:2800]
        errors.append(np.abs(release.counts(lows, highs) - 1401).mean())

    assert max(errors) < 40


def test_total_must_be_an_integer() -> None:
    """A public total is a number of rows, and any integer will do."""
    with pytest.raises(InvalidParameter, match=r"^total must be an integer"):
        PartitionTents(size=8, epsilon=1, total=0.5)  # type: ignore[arg-type]
