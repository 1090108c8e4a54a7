"""Trees over segments and trees of trees: what nodes hold, how large covers are, what a cover finds."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import ceil, log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partita.public.boxes.paper import one_sided_reach
from partita.public.boxes.tree_of_trees import SegmentTree, count_all_nodes, nodes_over_one_point, spread

SIZES = [1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 33]


def _nodes(tree: SegmentTree) -> np.ndarray:
    numbers = np.arange(1 << tree.levels)
    return numbers[tree.there(numbers)]


def _runs(size: int) -> tuple[np.ndarray, np.ndarray]:
    firsts, lasts = np.triu_indices(size)
    return firsts.astype(np.int64), lasts.astype(np.int64)


@pytest.mark.parametrize("size", SIZES)
def test_every_segment_lies_in_one_node_of_each_level(size: int) -> None:
    """The nodes over a segment are exactly as many as there are levels, wherever it lies."""
    tree = SegmentTree(size)
    first, behind = tree.spans(_nodes(tree))

    over = [int(((first <= segment) & (segment < behind)).sum()) for segment in range(size)]

    assert over == [tree.levels] * size
    assert _nodes(tree).size == tree.nodes


@pytest.mark.parametrize("size", SIZES)
def test_children_make_up_their_parent(size: int) -> None:
    """The segments of a node that is not a leaf are those of its children, each once."""
    tree = SegmentTree(size)
    inner = _nodes(tree)[_nodes(tree) < 1 << (tree.levels - 1)]
    parents, children = tree.children(inner)

    first, behind = tree.spans(inner)
    child_first, child_behind = tree.spans(children)

    assert (behind - first).tolist() == np.bincount(parents, child_behind - child_first, inner.size).tolist()
    assert first.tolist() == [int(child_first[parents == i].min()) for i in range(inner.size)]


@pytest.mark.parametrize("size", SIZES)
def test_covers_are_exact_and_small(size: int) -> None:
    """Every run is covered by disjoint nodes, at most 2 log2(m) of them and never more than `most`."""
    tree = SegmentTree(size)
    firsts, lasts = _runs(size)

    numbers, nodes = tree.covers(firsts, lasts)

    run = np.repeat(np.arange(firsts.size), numbers)
    first, behind = tree.spans(nodes)
    held = [
        sorted(s for f, b in zip(first[run == i], behind[run == i], strict=True) for s in range(f, b))
        for i in range(firsts.size)
    ]
    assert held == [list(range(a, b + 1)) for a, b in zip(firsts, lasts, strict=True)]
    assert int(numbers.max()) <= tree.most <= max(1, 2 * ceil(log2(size)) if size > 1 else 1)


@pytest.mark.parametrize("size", [size for size in SIZES if size & (size - 1) == 0])
def test_the_largest_cover_is_reached(size: int) -> None:
    """For a full tree some run needs exactly `most` nodes."""
    tree = SegmentTree(size)

    assert int(tree.covers(*_runs(size))[0].max()) == tree.most


@pytest.mark.parametrize("sizes", [(1, 1), (2, 2), (3, 5), (4, 1), (2, 3, 4), (5, 5, 5)])
def test_the_number_of_nodes_over_a_point_is_exact(sizes: tuple[int, ...]) -> None:
    """Counted one by one in the full tree of trees, every point has the same number of nodes over it."""
    trees = [SegmentTree(size) for size in sizes]
    spans = [
        list(zip(*(bound.tolist() for bound in tree.spans(_nodes(tree))), strict=True)) for tree in trees
    ]
    structure = [node for a in range(1, len(sizes) + 1) for node in product(*spans[:a])]

    over = {
        sum(all(f <= p < b for (f, b), p in zip(node, point, strict=False)) for node in structure)
        for point in product(*map(range, sizes))
    }

    assert over == {nodes_over_one_point(trees)}
    assert len(structure) == count_all_nodes(trees)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 4)), max_size=20))
def test_spread_lists_every_integer_of_every_run(runs: list[tuple[int, int]]) -> None:
    """Runs come out one after another, empty ones not at all."""
    firsts = np.array([first for first, _ in runs], np.int64)
    lengths = np.array([length for _, length in runs], np.int64)

    which, integers = spread(firsts, firsts + lengths)

    expected = [(i, v) for i, (first, length) in enumerate(runs) for v in range(first, first + length)]
    assert list(zip(which.tolist(), integers.tolist(), strict=True)) == expected


@settings(deadline=None, max_examples=20)
@given(
    st.sampled_from([Fraction(1, 3), Fraction(1), Fraction(7)]),
    st.integers(1, 4),
    st.sampled_from([0.3, 0.01]),
)
def test_the_positive_parts_of_noise_stay_below_their_reach(scale: Fraction, terms: int, beta: float) -> None:
    """The exact law of the sum of positive parts, by convolution, exceeds the reach with at most beta."""
    a = float(np.exp(-1 / float(scale)))
    values = np.arange(0, int(60 * float(scale)) + 2)
    one = (1 - a) / (1 + a) * a ** values.astype(float)
    one[0] = 1 / (1 + a)
    law = one
    for _ in range(terms - 1):
        law = np.convolve(law, one)

    beyond = float(law[np.arange(law.size) > one_sided_reach(scale, terms, beta)].sum())

    assert beyond <= beta
