"""Interval counts as in the paper: exact without noise, private with it, honest about its error."""

from __future__ import annotations

from fractions import Fraction
from math import log

import numpy as np
import pytest

from partita import Cut, Histogram, InvalidParameter, PaperIntervals, PaperIntervalsRelease, Partition
from partita.testing import EndlessTape, RecordingNoise, ZeroNoise, add_remove_pairs, coupled, tape_noise
from partita.trusted.mechanisms.tree import Tree
from partita.trusted.noise import Noise

SIZE = 2**64
ATOMS = (0, 1, 2**53 + 1, 2**63, SIZE - 1)


def atoms(multiplicity: int) -> Histogram:
    """Heavy cells, some of them where floats cannot tell neighbours apart."""
    return Histogram.from_counts(ATOMS, [multiplicity] * len(ATOMS), size=SIZE)


def released(seed: object, histogram: Histogram, epsilon: object = 1) -> PaperIntervalsRelease:
    mechanism = PaperIntervals(size=histogram.size, epsilon=epsilon)
    return mechanism.release(histogram, noise=tape_noise(EndlessTape(seed)))


def test_epsilon_is_split_in_halves_and_adds_up() -> None:
    """Partition and tree get half of epsilon each, and the guarantee is their sum."""
    mechanism = PaperIntervals(size=100, epsilon="0.3", neighbors="change-one", contributions=2)

    tree = mechanism.tree(segments=9)

    assert mechanism.partition.epsilon == Fraction(3, 20)
    assert 4 * sum(1 / scale for scale in tree.scales) == Fraction(3, 20)  # two rows go and two come
    assert mechanism.guarantee.epsilon == Fraction(3, 10)
    assert (mechanism.guarantee.neighbors, mechanism.guarantee.contributions) == ("change-one", 2)


def test_threshold_is_that_of_theorem_3_2() -> None:
    """With epsilon/2 and beta/2, T is 3 (ln D + ln 2/beta) / (epsilon/2), rounded down."""
    partition = PaperIntervals(size=4096, epsilon=1, beta="0.05").partition

    assert partition.threshold == int(3 * (log(4096) + log(40)) * 2)


def test_without_noise_intervals_of_whole_segments_are_exact() -> None:
    """Every heavy cell seals a segment; intervals that end at segment borders are counted exactly."""
    release = PaperIntervals(size=SIZE, epsilon=1).release(atoms(1_000), noise=ZeroNoise())

    assert release.cut.edges.tolist() == list(ATOMS)
    assert float(release.count(0, SIZE - 1)) == 5_000
    assert float(release.count(0, 1)) == 2_000
    assert float(release.count(2**63 + 1, SIZE - 1)) == 1_000


def test_an_interval_that_cuts_a_segment_counts_all_of_it() -> None:
    """The paper's answer covers the interval; the guaranteed bounds reach down to what lies inside."""
    release = PaperIntervals(size=SIZE, epsilon=1).release(atoms(1_000), noise=ZeroNoise())

    answer = release.count(2, 100)

    assert float(answer) == 1_000
    assert answer.worst(0.05)[0] == 0.0
    assert answer.error > 1_000


@pytest.mark.parametrize("epsilon", ["0.1", "1"])
def test_guaranteed_bounds_hold_on_fixed_tapes(epsilon: str) -> None:
    """On 40 releases of heavy and light cells none of 15 intervals leaves its bounds at beta = 0.001."""
    cells = np.sort(np.array([(37 * i * i) % 5_000 for i in range(2_000)], dtype=np.uint64))
    histogram = Histogram.from_sorted(cells, size=5_000)
    exact = np.concatenate([[0], np.cumsum(np.bincount(cells.astype(np.int64), minlength=5_000))])
    queries = [(low, low + width) for low in (0, 777, 2_500) for width in (0, 9, 300, 1_800, 2_499)]

    missed = 0
    for seed in range(40):
        release = released(("bounds", epsilon, seed), histogram, epsilon)
        for low, high in queries:
            least, most = release.count(low, high).worst(0.001)
            missed += not least <= exact[high + 1] - exact[low] <= most

    assert missed == 0


def test_given_the_cut_the_tree_pays_for_every_count() -> None:
    """For neighbours with the same cut, all looks at the segments together cost half of epsilon."""
    tree: Tree = PaperIntervals(size=4, epsilon=1).tree(segments=4)

    def run(counts: tuple[int, ...], noise: object) -> list[list[int]]:
        release = tree.release(Histogram.dense(counts), noise=noise)  # type: ignore[arg-type]
        return [level.tolist() for level in release.levels]

    losses = {
        coupled(run, one, other, tape_noise(EndlessTape(seed)))
        for one, other in add_remove_pairs(4, 2)
        for seed in range(5)
    }

    assert losses == {Fraction(1, 2)}


def test_queries_outside_the_universe_are_refused() -> None:
    """Bounds are public, so the error may show them."""
    release = released(0, Histogram.dense([1, 2, 3]))

    for low, high, parameter in (
        (-1, 2, "low"),
        (0, 3, "high"),
        (2, 1, "low"),
        (0.5, 2, "low"),
        (0, True, "high"),
    ):
        with pytest.raises(InvalidParameter) as refused:
            release.count(low, high)  # type: ignore[arg-type]
        assert refused.value.parameter == parameter


def test_empty_data_gives_one_segment_and_small_counts() -> None:
    """With nobody in the data there is one segment, and its count is noise."""
    release = released("empty", Histogram.from_cells([], size=SIZE))

    least, most = release.count(0, SIZE - 1).worst(0.01)

    assert len(release.cut) == 1
    assert least == 0.0
    assert most < 100


def outcome(release: PaperIntervalsRelease) -> tuple[object, ...]:
    """All that is published, in a form that can be compared."""
    return tuple(release.cut.edges.tolist()), tuple(tuple(level.tolist()) for level in release.tree.levels)


@pytest.mark.parametrize("edges", [[3], [0, 3], [1, 3], [0, 1, 2, 3]])
def test_given_any_cut_the_release_pays_half_for_the_counts(
    edges: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the cut held fixed, the shipped release loses exactly the other half of epsilon on every row."""
    fixed = Cut(edges=np.array(edges, dtype=np.uint64))
    monkeypatch.setattr(Partition, "cut", lambda self, data, *, noise: fixed)
    mechanism = PaperIntervals(size=4, epsilon=1)

    def run(counts: tuple[int, ...], noise: Noise) -> object:
        return outcome(mechanism.release(Histogram.dense(counts), noise=noise))

    losses = {coupled(run, one, other, tape_noise(EndlessTape(0))) for one, other in add_remove_pairs(4, 1)}

    assert losses == {Fraction(1, 2)}


def test_every_scale_is_the_one_in_the_proof() -> None:
    """Partition noise has scale 2w/epsilon, and each of the tree's levels 2w levels/epsilon."""
    recorder = RecordingNoise(ZeroNoise())
    mechanism = PaperIntervals(size=SIZE, epsilon="1/2", neighbors="change-one", contributions=3)

    release = mechanism.release(atoms(10_000), noise=recorder)

    levels = len(release.tree.levels)
    assert len(release.cut) == 5
    assert recorder.scales[-levels:] == [Fraction(24 * levels)] * levels
    assert set(recorder.scales[:-levels]) == {Fraction(24)}
