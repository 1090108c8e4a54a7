"""The baselines are what their papers say: nobody gains from a weak opponent."""

import numpy as np
import pytest

from benchmarks.accuracy.peers import (
    ANCHORED,
    Peer,
    branching,
    consistent,
    dense,
    groups,
    hb,
    identity,
    leaf_ends,
    privtree,
    sums_by_level,
    tree_estimate,
)
from benchmarks.accuracy.queries import Queries
from benchmarks.speed.opendp_tree import OpenDPTree
from partita import Histogram

SIZES = (2, 5, 16, 37, 64)
NEARLY_EXACT = "1000000000"


def some_counts(size: int) -> Histogram:
    return Histogram.dense(np.random.default_rng(size).integers(0, 50, size))


def all_ranges(size: int) -> Queries:
    lows, highs = np.triu_indices(size)
    return Queries(lows.astype(np.uint64), highs.astype(np.uint64))


@pytest.mark.parametrize("peer", [identity, hb, privtree])
@pytest.mark.parametrize("size", SIZES)
def test_almost_without_noise_every_range_is_right(peer: Peer, size: int) -> None:
    """With a huge epsilon a peer answers every range with the truth."""
    histogram, queries = some_counts(size), all_ranges(size)

    answers = peer(histogram, NEARLY_EXACT)(queries.lows, queries.highs)

    np.testing.assert_allclose(answers, queries.truth(histogram), atol=1e-4)


@pytest.mark.parametrize(("size", "b"), [(16, 2), (27, 3), (37, 4), (20, 16)])
def test_two_passes_are_least_squares(size: int, b: int) -> None:
    """The two passes give what a dense solver of the same least squares gives, whatever the tree."""
    levels = sums_by_level(np.zeros(size), b)[:-1]
    rng = np.random.default_rng(size)
    noisy = [rng.normal(size=level.size) for level in levels]
    rows = [np.array(sums_by_level(cell, b)[depth]) for depth in range(len(levels)) for cell in np.eye(size)]
    matrix = np.vstack([np.array(rows[d * size : (d + 1) * size]).T for d in range(len(levels))])

    expected = np.linalg.lstsq(matrix, np.concatenate(noisy))[0]

    np.testing.assert_allclose(consistent(noisy, size, b), expected, atol=1e-9)


def test_branching_is_the_papers() -> None:
    """4,096 cells get branching 16, and its variance is least among all."""
    assert branching(4096) == 16


def test_the_tree_beats_single_cells_on_long_ranges() -> None:
    """Hb's mean squared error over all ranges of 256 cells is near its formula, far below Identity's."""
    size, queries, zeros = 256, all_ranges(256), Histogram.dense(np.zeros(256, np.int64))
    truth = queries.truth(zeros)

    def squared(peer: Peer) -> float:
        rng = np.random.default_rng(3)
        found = [peer(zeros, "1", rng)(queries.lows, queries.highs) - truth for _ in range(30)]
        return float(np.mean(np.square(found)))

    assert squared(identity) == pytest.approx(2 * (size + 2) / 3, rel=0.2)
    assert squared(hb) < 0.8 * squared(identity)


@pytest.mark.parametrize("size", [1, 2, 3, 1000, 2**32, 2**64])
def test_leaves_tile_the_universe(size: int) -> None:
    """PrivTree's leaves are increasing, distinct and end with the last cell, in any universe."""
    rng = np.random.default_rng(size % 2**31)
    histogram = Histogram.from_cells(rng.integers(0, size - 1, 500, np.uint64, endpoint=True), size=size)

    ends = np.sort(np.concatenate(list(leaf_ends(histogram, 0.5, rng))))

    assert ends[-1] == size - 1
    assert (ends[1:] > ends[:-1]).all()


def test_privtree_is_uniform_inside_leaves() -> None:
    """A leaf's count is spread evenly over its cells."""
    histogram = Histogram.from_cells([], size=64)
    cells = np.arange(64, dtype=np.uint64)

    singles = privtree(histogram, "0.0001", np.random.default_rng(1))(cells, cells)

    assert np.unique(singles).size < 64


def test_totals_are_unbiased() -> None:
    """The mean of 400 noisy totals is within five standard errors of the truth, for every peer."""
    histogram = some_counts(16)
    everybody = Queries.prefixes(np.array([15], np.uint64))
    for peer in ANCHORED.values():
        rng = np.random.default_rng(7)
        totals = [peer(histogram, "1", rng)(everybody.lows, everybody.highs)[0] for _ in range(400)]

        assert abs(np.mean(totals) - histogram.total) < 5 * np.std(totals) / 20


def test_the_tree_of_opendp_answers_ranges() -> None:
    """Almost without noise its cells, made consistent, add up to every range."""
    pytest.importorskip("opendp")
    histogram, queries = some_counts(256), all_ranges(256)
    tree = OpenDPTree(256, 1e9)

    answers = tree.answers(dense(histogram).astype(np.int32), queries.lows, queries.highs)

    np.testing.assert_allclose(answers, queries.truth(histogram), atol=1e-6)


def test_tree_estimate_uses_all_levels_but_the_root() -> None:
    """Noise on each measured level has the scale (number of levels)/epsilon."""
    estimates = [tree_estimate(np.zeros(16), 16, 2.0, np.random.default_rng(i)) for i in range(300)]

    assert np.var(estimates) == pytest.approx(2 / 4, rel=0.15)
    assert groups(np.ones(5), 3).tolist() == [[1, 1, 1], [1, 1, 0]]
