"""Counts of all nodes of a hierarchy: least squares, counts that add up, intervals, shares of levels."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import partita as pt
from partita import HierarchyCounts, HierarchyRelease, Histogram, HistogramCounts
from partita.errors import InvalidParameter
from partita.public.axis.base import Term
from partita.public.axis.tree_solver import TreeSolver
from partita.public.bounds import laplace_variance
from partita.testing import EndlessTape, ZeroNoise, tape_noise

UNEVEN: Any = {
    "Kent": {"Tract 1": ["b1", "b2"], "Tract 2": ["b3"]},
    "City": None,
    "Essex": {"Tract 1": ["b4"], "b5": None},
}
"""Three levels; a label at the top, one in the middle, and two nodes with a single label below them."""


def made(tree: Any, **given: Any) -> HierarchyCounts:
    """The mechanism over the labels of a declaration."""
    domain = pt.Category(tree)
    return HierarchyCounts(
        size=domain.size, nodes=[node[1:] for node in domain.nodes], **{"epsilon": 1, **given}
    )


def matrix(release: HierarchyRelease) -> np.ndarray:
    """A row for each released count: the cells that it adds up."""
    cells = np.arange(release.size)
    ends = zip(release.shape.first[1:].tolist(), release.shape.last[1:].tolist(), strict=True)
    return np.array([(first <= cells) & (cells <= last) for first, last in ends], float)


@st.composite
def trees(draw: st.DrawFn) -> Any:
    """A declaration of up to four levels with up to some dozens of labels, uneven in depth."""
    number = iter(range(10**6))

    def below(depth: int) -> Any:
        size = draw(st.integers(1, 4))
        if depth == 3 or draw(st.booleans()):
            return [f"label {next(number)}" for _ in range(size)]
        return {
            f"node {next(number)}": None if draw(st.integers(0, 3)) == 0 else below(depth + 1)
            for _ in range(size)
        }

    return {f"top {next(number)}": below(1) for _ in range(draw(st.integers(1, 3)))}


@given(trees())
def test_every_cell_spends_each_level_once(tree: Any) -> None:
    """Whatever the shape, the shares of the nodes that hold a cell add up to one, exactly."""
    mechanism = made(tree)
    levels, weights = mechanism.levels, mechanism.levels.weights(mechanism.parts)

    for cell in range(mechanism.size):
        holding = (levels.shape.first[1:] <= cell) & (cell <= levels.shape.last[1:])
        spans = sorted(levels.spans[kind] for kind in levels.kinds[holding].tolist())
        assert sum((weights[kind] for kind in levels.kinds[holding].tolist()), Fraction(0)) == 1
        assert [level for first, last in spans for level in range(first, last + 1)] == list(
            range(levels.number)
        )


@given(trees(), st.integers(0, 10**6))
def test_estimates_are_the_least_squares_solution(tree: Any, seed: int) -> None:
    """Unbiased estimates, their variances and those of signed questions are those of the normal equations."""
    mechanism = made(tree, epsilon="1/2")
    counts = [(7 * cell) % 5 for cell in range(mechanism.size)]
    release = mechanism.release(Histogram.dense(counts), noise=tape_noise(EndlessTape(seed)))
    rows, noise = (
        matrix(release),
        np.array([laplace_variance(release.scales[kind]) for kind in release.scale_numbers]),
    )
    covariance = np.linalg.inv(rows.T @ (rows / noise[:, None]))
    solved = covariance @ rows.T @ (release.noisy / noise)

    np.testing.assert_allclose(release.unbiased, solved, atol=1e-7)
    lows, highs = np.triu_indices(release.size)
    asked = (np.arange(release.size) >= lows[:, None]) & (np.arange(release.size) <= highs[:, None])
    expected = np.sqrt(np.einsum("ij,jk,ik->i", asked.astype(float), covariance, asked.astype(float)))
    np.testing.assert_allclose(
        release.errors(lows.astype(np.uint64), highs.astype(np.uint64)), expected, rtol=1e-9
    )
    if release.size > 2:
        signed = np.zeros(release.size)
        signed[0], signed[2:] = 1.0, -1.0
        answer = release.answer(Term(0, 0), Term(2, release.size - 1, -1))
        assert answer.error == pytest.approx(np.sqrt(signed @ covariance @ signed))


@given(trees(), st.integers(0, 10**6))
def test_no_noise_weighs_more_than_the_gain_of_its_node(tree: Any, seed: int) -> None:
    """In a question with coefficients from 0 to 1 no weight exceeds the gain of its node."""
    mechanism = made(tree)
    release = mechanism.release(Histogram.dense([1] * mechanism.size), noise=ZeroNoise())
    rows, noise = (
        matrix(release),
        np.array([laplace_variance(release.scales[kind]) for kind in release.scale_numbers]),
    )
    weigh = np.linalg.inv(rows.T @ (rows / noise[:, None])) @ (rows / noise[:, None]).T
    asked = np.random.default_rng(seed).random((20, release.size))

    assert bool((np.abs(asked @ weigh) <= release.solver.gains[1:] * (1 + 1e-9) + 1e-12).all())


@given(trees(), st.integers(0, 10**6))
def test_counts_are_never_negative_and_add_up(tree: Any, seed: int) -> None:
    """The estimates of the cells are at least zero, and every question lies within its own interval."""
    mechanism = made(tree, epsilon="1/4")
    release = mechanism.release(Histogram.dense([0] * mechanism.size), noise=tape_noise(EndlessTape(seed)))

    assert float(release.cells.min()) >= 0.0
    assert release.cells.sum() == pytest.approx(max(0.0, release.unbiased.sum()), abs=1e-6)
    for first, last in zip(release.shape.first.tolist(), release.shape.last.tolist(), strict=True):
        answer = release.answer(Term(first, last))
        assert answer.value == pytest.approx(release.cells[first : last + 1].sum(), abs=1e-6)
        for low, high in (answer.interval(), answer.worst()):
            assert 0.0 <= low <= answer.value + 1e-9
            assert answer.value <= high + 1e-9


def test_raising_negative_counts_leaves_the_nodes_above() -> None:
    """Siblings that would be negative are raised at the cost of the others: what they add up to stays."""
    mechanism = HierarchyCounts(size=6, nodes=[(0, 2), (3, 5)], epsilon=1, shares=(1, 1))
    release = mechanism.release(Histogram.dense((90, 0, 0, 5, 5, 5)), noise=ZeroNoise())
    shifted = pt.HierarchyRelease(
        shape=release.shape,
        scale_numbers=release.scale_numbers,
        scales=release.scales,
        noisy=release.noisy + np.eye(8, dtype=int)[3] * -9,
    )

    assert shifted.unbiased[1] < 0
    assert shifted.cells[1] == 0
    assert shifted.cells[:3].sum() == pytest.approx(shifted.unbiased[:3].sum())
    np.testing.assert_allclose(shifted.cells[3:], shifted.unbiased[3:])


@pytest.mark.parametrize("tree", [UNEVEN, {"a": ["x"]}, {"a": {"b": {"c": ["x", "y"]}}}])
def test_without_noise_every_range_is_exact(tree: Any) -> None:
    """Zero noise gives the sum of the cells, for every range, to the last bit."""
    mechanism = made(tree)
    counts = [3 * cell + 1 for cell in range(mechanism.size)]
    release = mechanism.release(Histogram.dense(counts), noise=ZeroNoise())
    for low in range(release.size):
        for high in range(low, release.size):
            assert release.count(low, high).value == sum(counts[low : high + 1])


def test_a_node_with_one_below_it_is_counted_once() -> None:
    """A chain has the shares of all of its levels, and so has a label above the lowest level."""
    release = made(UNEVEN, shares=(1, 2, 3)).release(Histogram.dense([1] * 6), noise=ZeroNoise())
    scales = {
        (first, last): release.scales[kind]
        for first, last, kind in zip(
            release.shape.first[1:].tolist(),
            release.shape.last[1:].tolist(),
            release.scale_numbers.tolist(),
            strict=True,
        )
    }

    assert scales == {
        (0, 2): 6, (3, 3): 1, (4, 5): 6, (0, 1): 3, (2, 2): Fraction(6, 5), (4, 4): Fraction(6, 5),
        (5, 5): Fraction(6, 5), (0, 0): 2, (1, 1): 2,
    }  # fmt: skip


def test_without_nodes_it_is_a_histogram() -> None:
    """One level has all of epsilon, as a view of its own."""
    alone, flat = HierarchyCounts(size=5, epsilon="1/3"), HistogramCounts(size=5, epsilon="1/3")

    assert alone.scales == (flat.scale,)
    assert alone.level_errors[0] == pytest.approx(np.sqrt(laplace_variance(flat.scale)))


WIDE: Any = {
    f"county {c}": {f"tract {c} {t}": [f"{c} {t} {b}" for b in range(20)] for t in range(9)} for c in range(5)
}


@pytest.mark.parametrize("tree", [UNEVEN, WIDE])
def test_no_level_is_worse_than_a_view_of_its_own(tree: Any) -> None:
    """The predicted error of each level is at most that of its counts alone with the same share."""
    mechanism = made(tree)
    for share, error in zip(mechanism.parts, mechanism.level_errors, strict=True):
        assert error <= np.sqrt(laplace_variance(1 / share)) * (1 + 1e-9)


def test_shares_follow_the_nodes_alone() -> None:
    """Many children leave the levels equal shares; few make counts of labels tell most, within limits."""
    few: Any = {f"a {a}": [f"{a} 1", f"{a} 2"] for a in range(50)}

    assert all(abs(share - Fraction(1, 3)) < Fraction(1, 20) for share in made(WIDE).shares)
    assert made(few).shares[1] > made(few).shares[0] >= Fraction(1, 17)
    assert made(few, epsilon=5).shares == made(few).shares


def test_huge_families_are_solved_like_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Variances do not depend on how siblings are summed up: in a table, or over the level."""
    tree: Any = {
        "large": [f"l {n}" for n in range(300)],
        **{f"n {n}": [f"s {n}", f"t {n}"] for n in range(40)},
    }
    release = made(tree).release(Histogram.dense([1] * 380), noise=ZeroNoise())
    lows, highs = np.arange(200, dtype=np.uint64), np.arange(100, 300, dtype=np.uint64)
    usual = release.errors(lows[:100], highs[:100])

    monkeypatch.setattr("partita.public.axis.tree_solver._LARGEST_TABLE", 0)
    again = TreeSolver(release.shape, release.solver.precision, release.solver.affinity)
    monkeypatch.setattr(type(release), "solver", again, raising=False)
    other = made(tree).release(Histogram.dense([1] * 380), noise=ZeroNoise())
    np.testing.assert_allclose(other.errors(lows[:100], highs[:100]), usual, rtol=1e-9)


@pytest.mark.parametrize(
    ("given", "parameter"),
    [
        ({"nodes": [(0, 3), (2, 5)]}, "nodes"),
        ({"nodes": [(0, 1), (0, 3)]}, "nodes"),
        ({"nodes": [(4, 6)]}, "nodes"),
        ({"nodes": [(3, 2)]}, "nodes"),
        ({"nodes": [(0, 5)] * 12}, "nodes"),
        ({"nodes": "all"}, "nodes"),
        ({"nodes": [(0, 1, 2)]}, "nodes"),
        ({"nodes": [(0, 2)], "shares": [1]}, "shares"),
        ({"nodes": [(0, 2)], "shares": [1, 0]}, "shares"),
        ({"size": 2**24 + 1}, "size"),
        ({"epsilon": 10**9}, "epsilon"),
    ],
)
def test_what_makes_no_sense_is_refused(given: dict[str, Any], parameter: str) -> None:
    """Nodes must nest, shares be one for each level, and noise must be drawable."""
    with pytest.raises(InvalidParameter) as refused:
        HierarchyCounts(**{"size": 6, "epsilon": 1, **given})

    assert refused.value.parameter == parameter


@pytest.mark.statistics
@pytest.mark.parametrize("epsilon", ["1/10", "1"])
def test_intervals_hold_on_every_level(epsilon: str) -> None:
    """Of 95% intervals on sparse data 93% and more hold on each level, and errors of the top do not grow."""
    mechanism, chance = made(WIDE, epsilon=epsilon), np.random.default_rng(5)
    truth = np.floor(chance.pareto(1.1, mechanism.size) * 2).astype(np.int64)
    before, held = np.concatenate([[0], np.cumsum(truth)]), dict[int, list[bool]]()
    squares, alone = list[float](), list[float]()
    for seed in range(10):
        release = mechanism.release(Histogram.dense(truth), noise=tape_noise(EndlessTape(seed)))
        for level in range(3):
            for node in mechanism.levels.of_level(level).tolist():
                first, last = int(release.shape.first[node]), int(release.shape.last[node])
                answer, exact = release.answer(Term(first, last)), before[last + 1] - before[first]
                low, high = answer.interval()
                held.setdefault(level, []).append(low - 1e-6 <= exact <= high + 1e-6)
                if level == 0:
                    squares.append((answer.value - exact) ** 2)
                    alone.append((release.noisy[node - 1] - exact) ** 2)

    assert [float(np.mean(each)) >= 0.93 for each in held.values()] == [True] * 3
    assert np.mean(squares) <= 1.1**2 * np.mean(alone)
