"""Cuts of the keys: parts that are disjoint and make up everything, and questions laid over them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from partita.domain.axis import Axis
from partita.errors import InvalidRelease
from partita.public.sums.parts import MOST_PARTS, KeyTree, cut_by_counts, cut_into_cells

AXES = (Axis(size=5, before=1, after=3), Axis(size=3, after=2, labels=True))


class _Even:
    """Released counts: one row in every cell of a huge axis, or as a function of the first position."""

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale

    def counts(self, lows: np.ndarray, highs: np.ndarray) -> np.ndarray:
        return np.asarray(((highs - lows).astype(np.float64) + 1.0).prod(axis=1) * self.scale)


@pytest.mark.parametrize(
    "cut", [cut_into_cells(AXES), cut_by_counts(AXES, _Even(), enough=6.0)], ids=["cells", "counts"]
)
def test_every_point_is_in_the_part_that_says_so(cut: KeyTree) -> None:
    """Parts are disjoint and make up all cells, and `of` finds the one that holds a point."""
    points = np.array(list(product(range(9), range(5))), np.uint64)
    inside = ((points[:, None] >= cut.lows) & (points[:, None] <= cut.highs)).all(axis=2)

    assert inside.sum(axis=1).tolist() == [1] * len(points)
    assert cut.of(points).tolist() == inside.argmax(axis=1).tolist()


def test_special_cells_are_parts_of_their_own() -> None:
    """A single key's special cells are never together with others, however few rows there are."""
    cut = cut_by_counts((Axis(size=2**40, before=1, after=3),), _Even(0.0), enough=1.0)
    assert cut.lows[:, 0].tolist() == [0, 1, 2**40 + 1, 2**40 + 2, 2**40 + 3]


def test_parts_are_bounded() -> None:
    """However many rows there are, there are at most 4096 parts."""
    assert cut_by_counts((Axis(size=2**62),), _Even(), enough=1.0).parts == MOST_PARTS


def test_a_question_is_laid_by_counts_and_bounded_for_certain() -> None:
    """Whole parts count once, parts that are cut by their share, none to all of them for certain."""
    cut = cut_by_counts((Axis(size=16),), _Even(), enough=4.0)
    laid = cut.weigh([((2,), (9,), 1)], _Even())

    assert cut.parts == 4
    assert laid.mean.tolist() == [0.5, 1.0, 0.5, 0.0]
    assert laid.least.tolist() == [0.0, 1.0, 0.0, 0.0]
    assert laid.most.tolist() == [1.0, 1.0, 1.0, 0.0]
    assert laid.cuts.tolist() == [0, 2]


def test_no_key_is_one_part() -> None:
    """Without keys there is one part, and every question is about it."""
    cut = cut_into_cells(())
    assert cut.parts == 1
    assert cut.of(np.zeros((3, 0), np.uint64)).tolist() == [0, 0, 0]
    assert cut.weigh([((), (), 1)]).mean.tolist() == [1.0]


@pytest.mark.parametrize(
    ("along", "at"),
    [
        ([], []),
        ([0], [3]),
        ([-1, -1], [0, 0]),
        ([0, -1], [3, 0]),
        ([0, -1, -1], [0, 0, 0]),
        ([0, -1, -1], [16, 0, 0]),
        ([1, -1, -1], [3, 0, 0]),
        ([-2], [0]),
        ([0, -1, -1], [3, 0]),
        ([-1] * (2 * MOST_PARTS), [0] * (2 * MOST_PARTS)),
    ],
    ids=str,
)
def test_what_is_no_tree_is_refused(along: list[int], at: list[int]) -> None:
    """A list of halves that is no tree over the axes is an `InvalidRelease`."""
    with pytest.raises(InvalidRelease):
        KeyTree((Axis(size=16),), np.array(along, np.int64), np.array(at, np.uint64))
