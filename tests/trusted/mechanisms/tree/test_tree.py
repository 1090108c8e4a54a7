"""The tree mechanism: covers, exact answers without noise, coverage, and its law on tiny universes."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita import Histogram, Tree, TreeRelease
from partita.errors import InvalidData, InvalidParameter
from partita.guarantee import Neighbors
from partita.testing import (
    EndlessTape,
    ForbiddenNoise,
    OutputLaw,
    RationalNoise,
    ZeroNoise,
    add_remove_pairs,
    change_one_pairs,
    coupled,
    data_sets,
    law,
    privacy_loss,
    tape_noise,
)
from partita.trusted.noise import Noise

HALF = Fraction(1, 2)


def _empty(size: int, branching: int) -> TreeRelease:
    tree = Tree(size=size, epsilon=1, branching=branching)
    return tree.release(Histogram.from_cells([], size=size), noise=ZeroNoise())


@given(st.data(), st.integers(1, 300), st.integers(2, 7))
def test_covers_are_short_exact_partitions(data: st.DataObject, size: int, branching: int) -> None:
    """The nodes of a cover are disjoint, make up the interval, and are at most 2(b-1) log_b D + 1."""
    low = data.draw(st.integers(0, size - 1))
    high = data.draw(st.integers(low, size - 1))
    widths = Tree(size=size, epsilon=1, branching=branching).widths

    nodes = [
        (level, node)
        for level, first, last in _empty(size, branching).cover(low, high)
        for node in range(first, last)
    ]

    covered = [
        cell
        for level, node in nodes
        for cell in range(node * widths[level], min(size, (node + 1) * widths[level]))
    ]
    assert sorted(covered) == list(range(low, high + 1))
    assert len(nodes) <= 2 * (branching - 1) * (len(widths) - 1) + 1


@pytest.mark.parametrize(("size", "branching"), [(1, 2), (2, 2), (7, 2), (8, 2), (13, 3), (20, 4), (9, 16)])
def test_without_noise_every_interval_is_exact(size: int, branching: int) -> None:
    """Zero noise gives the sum of the cells, for every interval."""
    counts = [(7 * i) % 5 for i in range(size)]
    release = Tree(size=size, epsilon=1, branching=branching).release(
        Histogram.dense(counts), noise=ZeroNoise()
    )
    for low in range(size):
        for high in range(low, size):
            assert release.count(low, high).value == sum(counts[low : high + 1])


def test_every_level_counts_its_nodes() -> None:
    """A level has one node for every `width` cells, and the root holds everything."""
    release = Tree(size=10, epsilon=1, branching=3).release(
        Histogram.from_cells([0, 2, 3, 9, 9], size=10), noise=ZeroNoise()
    )

    assert [level.tolist() for level in release.levels] == [
        [1, 0, 1, 1, 0, 0, 0, 0, 0, 2],
        [2, 1, 0, 2],
        [3, 2],
        [5],
    ]


@pytest.mark.parametrize(
    ("size", "branching", "neighbors", "rows", "scale"),
    [
        (1, 2, "add-remove", 1, 1),
        (8, 2, "add-remove", 1, 4),
        (9, 2, "add-remove", 1, 5),
        (9, 3, "add-remove", 2, 6),
        (8, 2, "change-one", 1, 6),
        (1024, 2, "change-one", 1, 20),
        (8, 2, "change-one", 3, 18),
    ],
)
def test_the_scale_counts_levels_neighbors_and_rows(
    size: int, branching: int, neighbors: Neighbors, rows: int, scale: int
) -> None:
    """A row is in one node of each level; one that moves changes two, but never the root; so do three."""
    tree = Tree(size=size, epsilon=1, branching=branching, neighbors=neighbors, contributions=rows)

    assert tree.scale == scale


def test_worst_bounds_hold_as_often_as_they_promise() -> None:
    """On fixed tapes the truth leaves `worst(0.2)` in at most a fifth of 3,000 answers."""
    counts = [i % 7 for i in range(64)]
    tree, data, missed = Tree(size=64, epsilon=1), Histogram.dense(counts), 0
    for seed in range(300):
        release = tree.release(data, noise=tape_noise(EndlessTape(seed)))
        for low in range(10):
            bottom, top = release.count(low, 63 - 3 * low).worst(0.2)
            missed += not bottom <= sum(counts[low : 64 - 3 * low]) <= top

    assert 0 < missed <= 600


def test_standard_errors_are_those_of_the_noise() -> None:
    """The spread of an answer over fixed tapes is its stated standard error, to within a tenth."""
    tree, data = Tree(size=16, epsilon=1), Histogram.dense([3] * 16)
    answers = [tree.release(data, noise=tape_noise(EndlessTape(s))).count(1, 14) for s in range(1_000)]

    spread = float(np.std([answer.value for answer in answers]))

    assert spread == pytest.approx(answers[0].error, rel=0.1)


def _law_of(tree: Tree, noise: RationalNoise) -> Callable[[tuple[int, ...]], OutputLaw]:
    def levels(counts: tuple[int, ...], noise: RationalNoise) -> tuple[object, ...]:
        release = tree.release(Histogram.dense(counts, contributions=tree.contributions), noise=noise)
        return tuple(node for level in release.levels for node in level.tolist())

    return lambda counts: law(lambda noise: levels(counts, noise), noise)


@pytest.mark.parametrize(("size", "branching", "most"), [(1, 2, 3), (2, 2, 1), (3, 3, 1)])
@pytest.mark.spread(1)
def test_no_pair_of_neighbors_loses_more_than_epsilon(size: int, branching: int, most: int) -> None:
    """The enumerated law of a whole release loses exactly epsilon between add-remove neighbours."""
    tree = Tree(size=size, epsilon=1, branching=branching)
    noise = RationalNoise(HALF, unit=1 / tree.scale, window=range(size * most + 1))
    law_of = _law_of(tree, noise)
    laws = {counts: law_of(counts) for counts in data_sets(size, most)}

    losses = [
        privacy_loss(laws[one], laws[other], base=HALF, unit=noise.unit)
        for one, other in add_remove_pairs(size, most)
    ]

    assert len(losses) == size * most * (most + 1) ** (size - 1)
    assert max(losses) == 1


def test_change_one_neighbors_are_protected_when_named() -> None:
    """With neighbors="change-one" a moved item costs at most epsilon; with add-remove noise more."""
    losses = {}
    names: tuple[Neighbors, ...] = ("add-remove", "change-one")
    for neighbors in names:
        tree = Tree(size=2, epsilon=1, neighbors=neighbors)
        noise = RationalNoise(HALF, unit=1 / tree.scale, window=range(3))
        law_of = _law_of(tree, noise)
        losses[neighbors] = max(
            privacy_loss(law_of(one), law_of(other), base=HALF, unit=noise.unit)
            for one, other in change_one_pairs(2, 1)
        )

    assert losses["change-one"] <= 1
    assert losses["add-remove"] > Fraction(99, 100)


@pytest.mark.parametrize(("low", "high"), [(-1, 3), (0, 8), (5, 4), (0.0, 3), (0, "3"), (True, 3)], ids=str)
def test_bad_intervals_are_refused(low: int, high: int) -> None:
    """An interval runs from a cell to one not before it."""
    with pytest.raises(InvalidParameter):
        _empty(8, 2).count(low, high)


@pytest.mark.parametrize("changes", [{"size": 2**30 + 1}, {"branching": 1}, {"branching": 2.0}], ids=str)
def test_bad_parameters_are_named(changes: dict[str, object]) -> None:
    """The error names the parameter that breaks its rule."""
    with pytest.raises(InvalidParameter) as error:
        Tree(**{"size": 8, "epsilon": 1, **changes})  # type: ignore[arg-type]

    assert [error.value.parameter] == list(changes)


def test_other_universes_and_looser_bounds_are_refused_before_any_draw() -> None:
    """Data must be a histogram of the tree's size that bounds contributions as tightly."""
    tree = Tree(size=2, epsilon=1)
    for data in (Histogram.dense([1]), Histogram.dense([1, 1], contributions=2), [1, 1]):
        with pytest.raises((InvalidData, InvalidParameter)):
            tree.release(data, noise=ForbiddenNoise())  # type: ignore[arg-type]


def test_bounds_widen_with_confidence() -> None:
    """Every interval carries a standard error, and bounds that grow as beta falls."""
    for low, high in product(range(4), repeat=2):
        if low <= high:
            answer = _empty(4, 2).count(low, high)
            assert 0 < answer.error < answer.worst(0.05)[1] < answer.worst(0.001)[1]


@pytest.mark.parametrize("branching", [2, 3])
@pytest.mark.parametrize("size", [1, 2, 5, 9, 10, 17, 33])
def test_one_row_costs_exactly_epsilon_at_any_depth(size: int, branching: int) -> None:
    """Whatever its cell, a row changes one count on every level, and all of them together cost epsilon."""
    tree = Tree(size=size, epsilon="1/3", branching=branching)

    def run(counts: list[int], noise: Noise) -> list[list[int]]:
        return [level.tolist() for level in tree.release(Histogram.dense(counts), noise=noise).levels]

    empty = [0] * size
    losses = {
        coupled(run, empty, [*empty[:cell], 1, *empty[cell + 1 :]], tape_noise(EndlessTape((size, cell))))
        for cell in range(size)
    }

    assert losses == {Fraction(1, 3)}
