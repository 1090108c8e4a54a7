"""Boxes as in the paper: exact without noise, honest about what they miss, and sane where data are odd."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import ceil, inf, log
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partita.domain import Integer
from partita.domain.axis import Axis
from partita.errors import InvalidData, InvalidParameter
from partita.public.boxes.base import BoxTerm
from partita.public.boxes.paper import PaperRectanglesRelease
from partita.public.boxes.regions import HalfSpace
from partita.public.boxes.tree_of_trees import count_all_nodes
from partita.testing import EndlessTape, ForbiddenNoise, RecordingNoise, ZeroNoise, tape_noise
from partita.trusted.mechanisms import paper_boxes as module
from partita.trusted.mechanisms.paper_boxes import PaperRectangles
from partita.trusted.secret import Points

SMALL = (Axis(size=6), Axis(size=4, before=1, after=2))
HUGE = 2**63


def _uneven(axes: Sequence[Axis], seed: int, rows: int = 3_000) -> Points:
    """Rows that crowd at low positions."""
    random = np.random.default_rng(seed)
    shares = random.random((rows, len(axes))) ** 3
    places = np.floor(shares * [axis.width for axis in axes]).astype(np.int64)
    return Points.from_rows(places, axes=axes)


def _exact(points: Points, low: Sequence[int], high: Sequence[int]) -> int:
    inside = ((points.places >= np.array(low, np.uint64)) & (points.places <= np.array(high, np.uint64))).all(
        axis=1
    )
    return int(points.counts[inside].sum())


def _boxes(axes: Sequence[Axis]) -> list[BoxTerm]:
    ranges = [[(a, b) for a in range(axis.width) for b in range(a, axis.width)] for axis in axes]
    return [BoxTerm(tuple(a for a, _ in box), tuple(b for _, b in box)) for box in product(*ranges)]


def _corners(boxes: Sequence[BoxTerm]) -> tuple[Any, Any]:
    return np.array([box.low for box in boxes], np.uint64), np.array([box.high for box in boxes], np.uint64)


def _released(
    axes: Sequence[Axis], points: Points, seed: object = 0, epsilon: object = 50, **changes: Any
) -> PaperRectanglesRelease:
    mechanism = PaperRectangles(axes=axes, epsilon=epsilon, **changes)
    return mechanism.release(points, noise=tape_noise(EndlessTape(seed)))


def _noiseless(axes: Sequence[Axis], points: Points, epsilon: object = 50) -> PaperRectanglesRelease:
    """At a large epsilon without noise every cell with some rows is a segment, and nothing is pruned."""
    return PaperRectangles(axes=axes, epsilon=epsilon, threshold=1).release(points, noise=ZeroNoise())


def test_without_noise_boxes_of_whole_segments_are_exact() -> None:
    """Every box of products of segments is counted exactly, by counts and by answers."""
    points = _uneven(SMALL, 1)
    release = _noiseless(SMALL, points, epsilon=1_000)
    boxes = _boxes(SMALL)

    assert [edges.tolist() for edges in release.edges] == [[*range(axis.width)] for axis in SMALL]
    assert release.counts(*_corners(boxes)).tolist() == [_exact(points, box.low, box.high) for box in boxes]
    assert {float(release.answer(box)) == _exact(points, box.low, box.high) for box in boxes[::37]} == {True}


def test_a_box_that_cuts_segments_counts_all_of_them() -> None:
    """The paper's cover contains the box; guaranteed bounds reach down to what lies inside."""
    axes = (Axis(size=HUGE), Axis(size=HUGE))
    points = Points.from_rows([[HUGE // 2, HUGE // 2]], axes=axes, counts=[5_000])
    release = _noiseless(axes, points, epsilon=10)

    answer = release.answer(BoxTerm((5, 5), (HUGE // 3, HUGE // 3)))

    assert [edges.tolist() for edges in release.edges] == [[HUGE // 2, HUGE - 1]] * 2
    assert float(answer) == 5_000
    assert answer.worst(0.05)[0] == 0.0
    assert answer.interval(0.95)[0] == 0.0


@pytest.mark.parametrize("rows", [1, 10, 100])
def test_what_was_pruned_is_within_the_bars(rows: int) -> None:
    """Cells with few rows each are pruned; intervals of a half, of a cell and of a region still hold them."""
    axes = (Axis(size=10, before=1, after=3),) * 2
    places = np.array([[1 + i, 1 + j] for i in range(10) for j in range(10)])
    points = Points.from_rows(places, axes=axes, counts=np.full(100, rows))
    half = HalfSpace({"a": 1}, at_most=4.5).bound(("a", "b"), (Integer(0, 9), Integer(0, 9)))
    for seed in range(6):
        release = PaperRectangles(axes=axes, epsilon=1).release(points, noise=tape_noise(EndlessTape(seed)))
        asked = (
            (release.answer(BoxTerm((1, 1), (5, 10))), 50 * rows),
            (release.answer(BoxTerm((4, 4), (4, 4))), rows),
            (release.region(half, BoxTerm((1, 1), (10, 10))), 50 * rows),
        )
        for answer, truth in asked:
            low, high = answer.interval(0.95)
            assert low <= truth <= high


def test_a_split_of_segments_adds_up_without_noise() -> None:
    """Signed terms are one question: the whole less its parts is exactly nothing, with no noise left."""
    release = _released(SMALL, _uneven(SMALL, 2), epsilon=1_000)
    whole, left, right = BoxTerm((0, 0), (3, 6)), BoxTerm((0, 0), (3, 6), -1), BoxTerm((0, 2), (3, 4))

    assert (float(release.answer(whole, left)), release.answer(whole, left).value) == (0.0, 0.0)
    assert float(release.answer(whole, right)) == float(release.answer(whole)) + float(release.answer(right))


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 10**6), st.sampled_from([1, 5, 100]), st.sampled_from(["paper", 1, 4]))
def test_counts_and_errors_are_those_of_answers(seed: int, epsilon: int, threshold: object) -> None:
    """For many boxes at once the values and standard errors are those of one answer each."""
    release = _released(SMALL, _uneven(SMALL, seed), seed, epsilon, threshold=threshold)
    boxes = _boxes(SMALL)[seed % 23 :: 23]
    answers = [release.answer(box) for box in boxes]

    assert release.counts(*_corners(boxes)).tolist() == [answer.value for answer in answers]
    np.testing.assert_allclose(release.errors(*_corners(boxes)), [answer.error for answer in answers])


def _by_hand(release: PaperRectanglesRelease, low: Sequence[int], high: Sequence[int]) -> float:
    """The sum of a cover, node by node from the released lists."""
    first, second = release.trees.stages
    covers = []
    for stage, edges, a, b in zip(release.trees.stages, release.edges, low, high, strict=True):
        ends = np.searchsorted(edges, [np.uint64(a), np.uint64(b)])
        covers.append(set(stage.tree.covers(ends[:1], ends[1:])[1].tolist()))
    owners = {i for i, node in enumerate(first.nodes.tolist()) if node in covers[0]}
    kept = zip(second.owners.tolist(), second.nodes.tolist(), second.counts.tolist(), strict=True)
    return float(sum(count for owner, node, count in kept if owner in owners and node in covers[1]))


def test_counts_are_sums_of_released_nodes() -> None:
    """Each value is the sum of the released counts of the kept nodes in the product of two covers."""
    axes = (Axis(size=40), Axis(size=30))
    release = _released(axes, _uneven(axes, 3), epsilon=100, threshold=2)
    boxes = [BoxTerm((a, b), (a + w, b + h)) for a, b, w, h in product((0, 7), (0, 5), (0, 9, 32), (3, 20))]

    expected = [_by_hand(release, box.low, box.high) for box in boxes]

    assert release.trees.kept > 50
    assert release.counts(*_corners(boxes)).tolist() == expected


def test_a_cover_has_at_most_so_many_nodes_as_the_paper_says() -> None:
    """No box looks for more than (2 log2 m)^c nodes of the last dimension."""
    axes = (Axis(size=33), Axis(size=20))
    release = _noiseless(axes, Points.from_rows([*product(range(33), range(20))], axes=axes), epsilon=10**5)
    firsts, lasts = (ends.astype(np.int64) for ends in _corners(_boxes(axes)[::11]))

    looked = release.trees.cover(firsts, lasts).looked

    assert [edges.size for edges in release.edges] == [33, 20]
    assert int(looked.max()) <= (2 * ceil(log(33, 2))) * (2 * ceil(log(20, 2)))
    assert int(looked.max()) > 20


def test_every_scale_is_the_one_in_the_proof() -> None:
    """Cuts have scale 2cw/epsilon, and all nodes 2w (nodes over one point)/epsilon."""
    recorder = RecordingNoise(ZeroNoise())
    axes = (Axis(size=2**40), Axis(size=3))
    mechanism = PaperRectangles(
        axes=axes, epsilon="1/2", neighbors="change-one", contributions=3, threshold=1
    )
    points = Points.from_rows(
        [[0, 0], [2**39, 1], [2**40 - 1, 2]], axes=axes, counts=[10**6] * 3, contributions=3
    )

    release = mechanism.release(points, noise=recorder)

    levels = [1 + ceil(log(edges.size, 2)) for edges in release.edges]
    assert [edges.size for edges in release.edges] == [3, 3]
    assert set(recorder.scales) == {
        Fraction(2 * 2 * 6 * 2),
        Fraction(2 * 6 * (levels[0] + levels[0] * levels[1]) * 2),
    }


def test_the_threshold_is_that_of_the_paper() -> None:
    """It keeps nodes from scale ln(2m 2m'/beta) on; a number is a multiple of the scale, by default one."""
    axes = (Axis(size=100), Axis(size=100))
    default, lower = (PaperRectangles(axes=axes, epsilon=1, threshold=t) for t in ("paper", "5/2"))

    scale = float(default.scale((7, 9)))

    assert default.floor((7, 9)) == ceil(scale * log(14 * 18 / 0.05))
    assert lower.floor((7, 9)) == ceil(scale * 2.5)
    for same in ({}, {"threshold": None}, {"threshold": 1}):
        assert PaperRectangles(axes=axes, epsilon=1, **same).floor((7, 9)) == scale


@pytest.mark.parametrize("cuts", ["private", "cells"])
def test_without_pruning_all_nodes_are_there(cuts: Any) -> None:
    """Every product of nodes is counted, negative noise included, and densities are positive."""
    release = _released(SMALL, _uneven(SMALL, 5), epsilon="1/10", pruned=False, cuts=cuts)
    trees, boxes = release.trees, _boxes(SMALL)

    assert trees.kept == count_all_nodes(trees.trees)
    assert trees.floor == 0
    assert int(trees.stages[1].counts.min()) < 0
    assert float(release.pieces.masses.sum()) == pytest.approx(max(0.0, trees.total))
    assert len(release.points(50)) == 50
    assert release.errors(*_corners(boxes)).shape == (len(boxes),)
    assert release.answer(boxes[7]).worst(0.05)[0] >= 0.0
    assert release.error(0.05) > 0.0
    if cuts == "cells":
        assert [edges.size for edges in release.edges] == [axis.width for axis in SMALL]


def test_without_pruning_a_tree_that_is_too_large_says_what_it_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If not all nodes fit, the largest counts stay, and the floor is that of what was dropped."""
    monkeypatch.setattr(module, "MOST_NODES", 40)
    axes = (Axis(size=64),)
    points = _uneven(axes, 4, rows=20_000)

    release = PaperRectangles(axes=axes, epsilon=1_000, pruned=False).release(points, noise=ZeroNoise())

    assert release.trees.kept == 40
    assert release.trees.floor > 0
    assert "were kept" in release.story
    assert release.parts().digest == PaperRectanglesRelease.from_parts(release.parts(), None).parts().digest


def test_sizes_that_do_not_fit_are_refused() -> None:
    """Before anything is counted, with the number of nodes or cells."""
    with pytest.raises(InvalidParameter, match=r"axes.*at most 1048576 cells.*4294967296"):
        PaperRectangles(axes=(Axis(size=2**32),), epsilon=1, cuts="cells")
    with pytest.raises(InvalidParameter, match=r"axes.*at most 3000000 nodes"):
        PaperRectangles(axes=(Axis(size=2**12),) * 2, epsilon=1, cuts="cells", pruned=False)


def test_bounds_say_what_does_not_fit() -> None:
    """Where nodes may not fit, there is none without pruning, and with it any row may be missed."""
    axes, rows = (Axis(size=2**32),) * 2, 10**8

    assert PaperRectangles(axes=axes, epsilon=1, pruned=False).bound(0.1, rows=rows) == inf
    assert PaperRectangles(axes=axes, epsilon=1).bound(0.1, rows=rows) >= rows
    assert PaperRectangles(axes=axes, epsilon=1, pruned=False).bound(0.1, rows=100) < inf


def test_bounds_before_the_data_are_ordered() -> None:
    """A tree that is not pruned has the lowest bound; a higher threshold has a higher one, up to all rows."""
    axes = (Axis(size=2**16),) * 2
    bounds = [
        PaperRectangles(axes=axes, epsilon=2000, **options).bound(0.1, rows=800)
        for options in ({"pruned": False}, {}, {"threshold": 3}, {"threshold": "paper"})
    ]

    assert bounds == sorted(bounds)
    assert bounds[0] < bounds[1]


def test_partitions_are_those_of_the_paper() -> None:
    """Each axis gets epsilon/2c and beta/2c; with the counts that adds up to epsilon."""
    mechanism = PaperRectangles(axes=(Axis(size=4096, before=1), Axis(size=7), Axis(size=1)), epsilon="0.3")

    assert {partition.epsilon for partition in mechanism.partitions} == {Fraction(1, 20)}
    assert mechanism.partitions[0].threshold == int(3 * log(4096 / (0.05 / 6)) * 20)
    assert mechanism.guarantee.epsilon == Fraction(3, 10)


def test_special_cells_are_segments_of_their_own() -> None:
    """Whatever the noise, no segment joins a special cell with another one."""
    axes = (Axis(size=50, before=1, after=3), Axis(size=2, after=4))
    for seed in range(5):
        release = _released(axes, _uneven(axes, seed), seed, epsilon="1/10")
        first, second = (edges.tolist() for edges in release.edges)
        assert {0, 50, 51, 52, 53} <= set(first)
        assert {1, 2, 3, 4, 5} <= set(second)


def test_a_tree_that_is_too_large_keeps_the_largest_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """With room for few nodes a level keeps its largest, and counts that were dropped are below the floor."""
    axes = (Axis(size=64),)
    points = _uneven(axes, 4, rows=20_000)
    whole = _noiseless(axes, points, epsilon=1_000).trees
    monkeypatch.setattr(module, "MOST_NODES", 40)
    capped = _noiseless(axes, points, epsilon=1_000).trees

    kept = set(capped.stages[0].nodes.tolist())
    nodes = zip(whole.stages[0].nodes.tolist(), whole.stages[0].counts.tolist(), strict=True)
    dropped = [count for node, count in nodes if node not in kept and (node == 1 or node >> 1 in kept)]

    assert len(kept) == 40 < whole.kept
    assert max(dropped) == capped.floor - 1
    assert capped.floor > whole.floor


BREAKING: list[tuple[str, tuple[Axis, ...], list[list[int]]]] = [
    ("all points equal", (Axis(size=2**32), Axis(size=2**32)), [[7, 9]] * 4_000),
    ("a diagonal", (Axis(size=2**32), Axis(size=2**32)), [[i << 20, i << 20] for i in range(4_000)]),
    (
        "an empty axis",
        (Axis(size=2**32), Axis(size=2**32, after=1)),
        [[i << 20, 2**32] for i in range(2_000)],
    ),
    ("one cell on an axis", (Axis(size=1), Axis(size=1_000)), [[0, i % 900] for i in range(3_000)]),
    (
        "axes of very different sizes",
        (Axis(size=2**40), Axis(size=3)),
        [[i << 27, i % 3] for i in range(3_000)],
    ),
    (
        "axes of 2^63 with special cells",
        (Axis(size=HUGE, before=1, after=3),) * 2,
        [[HUGE + 3, i] for i in range(9)],
    ),
    ("nobody", (Axis(size=2**32), Axis(size=5)), []),
    ("one row", (Axis(size=2**32), Axis(size=5)), [[2**31, 4]]),
    ("three axes", (Axis(size=2**32),) * 3, [[i << 20, (i * i) % 2**32, 5] for i in range(2_000)]),
    ("one axis", (Axis(size=2**32),), [[i << 20] for i in range(2_000)]),
]


@pytest.mark.parametrize("epsilon", ["1/10", 1, 100])
@pytest.mark.parametrize(
    ("axes", "rows"), [case[1:] for case in BREAKING], ids=[case[0] for case in BREAKING]
)
def test_breaking_cases_stay_within_their_bounds(
    axes: tuple[Axis, ...], rows: list[list[int]], epsilon: object
) -> None:
    """Everything, one cell and odd boxes: values are finite, and the truth lies in the guaranteed bounds."""
    points = Points.from_rows(np.array(rows, np.uint64).reshape(-1, len(axes)), axes=axes)
    release = _released(axes, points, ("breaking", str(epsilon)), epsilon, threshold=4)
    ends = tuple(axis.width - 1 for axis in axes)
    middle = tuple(axis.width // 2 for axis in axes)
    boxes = [release.everything, BoxTerm(ends, ends), BoxTerm(middle, ends), BoxTerm(middle, middle)]

    for box in boxes:
        answer, truth = release.answer(box), _exact(points, box.low, box.high)
        low, high = answer.worst(0.001)
        assert 0.0 <= low <= truth <= high < np.inf
        assert abs(answer.value - truth) <= release.error(0.001)
        assert 0.0 <= answer.error < np.inf
    assert release.points(50).shape == (50, len(axes))
    assert bool((release.points(50) <= np.array(ends, np.uint64)).all())
    assert release.along(0, release.everything).ends[-1] == ends[0]


def test_a_curve_follows_the_counts_up_to_each_segment() -> None:
    """Without noise `along` is exact at the ends of segments, within any box of the other axis."""
    points = _uneven(SMALL, 5)
    release = _noiseless(SMALL, points, epsilon=1_000)

    curve = release.along(1, BoxTerm((2, 0), (4, 0)))

    assert curve.upto(np.arange(7, dtype=np.uint64)).tolist() == [
        _exact(points, (2, 0), (4, p)) for p in range(7)
    ]


def test_a_curve_never_falls() -> None:
    """With noise it is still monotone."""
    release = _released(SMALL, _uneven(SMALL, 6), epsilon=5, threshold=1)

    for axis in (0, 1):
        assert bool((release.along(axis, release.everything).counts >= 0).all())


class _HalfPlane:
    """The boxes whose first axis lies below a position."""

    def __init__(self, behind: int) -> None:
        self._behind = behind

    def shares(self, lows: Any, highs: Any) -> Any:
        width = highs[:, 0].astype(float) - lows[:, 0] + 1
        return np.clip((self._behind - lows[:, 0].astype(float)) / width, 0.0, 1.0)


def test_a_region_is_counted_by_shares() -> None:
    """Without noise a region of whole cells is exact, inside any box, and its bounds hold."""
    points = _uneven(SMALL, 7)
    release = _noiseless(SMALL, points, epsilon=1_000)

    answer = release.region(_HalfPlane(3), BoxTerm((1, 0), (5, 4)))

    truth = _exact(points, (1, 0), (2, 4))
    assert answer.value == pytest.approx(truth)
    assert answer.worst(0.01)[0] <= truth <= answer.worst(0.01)[1]


def test_made_up_rows_look_like_the_release() -> None:
    """Without noise there are as many made-up rows in every cell as rows, to within a row."""
    points = _uneven(SMALL, 8)
    release = _noiseless(SMALL, points, epsilon=1_000)

    made = Points.from_rows(release.points(points.total), axes=SMALL)

    cells = [*product(*(range(axis.width) for axis in SMALL))]
    assert max(abs(_exact(made, cell, cell) - _exact(points, cell, cell)) for cell in cells) <= 1


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 10**6), st.sampled_from([1, 20, 500]))
def test_pieces_are_disjoint_and_add_up(seed: int, epsilon: int) -> None:
    """No position lies in two pieces, and together they hold the count of the first root."""
    axes = (Axis(size=9), Axis(size=7))
    release = _released(axes, _uneven(axes, seed), seed, epsilon, threshold=1)
    pieces = release.pieces

    cells = np.array([*product(range(9), range(7))], np.uint64)[:, None]
    owners = ((pieces.lows <= cells) & (cells <= pieces.highs)).all(axis=2).sum(axis=1)

    assert int(owners.max()) <= 1
    assert pieces.masses.sum() == pytest.approx(float(release.answer(release.everything)), rel=0.5, abs=200)
    assert pieces.masses.sum() == pytest.approx(release.trees.stages[0].values[:1].sum())


@pytest.mark.parametrize("threshold", ["1/2", 0, -1, "much", float("inf"), True, 2**30])
def test_bad_thresholds_are_refused(threshold: object) -> None:
    """A threshold below the noise would keep empty nodes without end."""
    with pytest.raises(InvalidParameter, match="threshold"):
        PaperRectangles(axes=SMALL, epsilon=1, threshold=threshold)


def test_wrong_data_are_refused_before_any_noise() -> None:
    """Points of other axes, or of people with more rows, never meet noise."""
    mechanism = PaperRectangles(axes=SMALL, epsilon=1)
    other = Points.from_rows([[0]], axes=[Axis(size=1)])
    many = Points.from_rows([[0, 0]], axes=SMALL, contributions=2)

    with pytest.raises(InvalidData):
        mechanism.release(other, noise=ForbiddenNoise())
    with pytest.raises(InvalidParameter, match="contributions"):
        mechanism.release(many, noise=ForbiddenNoise())


def test_only_secure_noise_carries_the_guarantee() -> None:
    """The system's noise does, and no noise does not."""
    mechanism = PaperRectangles(axes=SMALL, epsilon=1)

    assert mechanism.release(_uneven(SMALL, 0)).guarantee == mechanism.guarantee
    assert mechanism.release(_uneven(SMALL, 0), noise=ZeroNoise()).guarantee is None


@pytest.mark.parametrize("epsilon", [1, 20, 200])
@pytest.mark.thorough
def test_predictions_are_of_the_right_size(epsilon: int) -> None:
    """On even data errors of random boxes and sizes of releases are as predicted, to a factor of three."""
    axes = (Axis(size=2**32), Axis(size=2**32))
    random = np.random.default_rng(epsilon)
    points = Points.from_rows(random.integers(0, 2**32, (20_000, 2)), axes=axes)
    release = _released(axes, points, "predicted", epsilon)
    corners = np.sort(random.integers(0, 2**32, (2, 300, 2)), axis=0).astype(np.uint64)
    mechanism = PaperRectangles(axes=axes, epsilon=epsilon)

    truths = np.array([_exact(points, low, high) for low, high in zip(*corners, strict=True)])
    measured = float(np.sqrt(np.mean((release.counts(*corners) - truths) ** 2)))
    numbers = sum(series.size for series in release.parts().series.values())

    assert measured / 3 <= mechanism.predicted_error(20_000) <= 3 * measured
    assert numbers / 3 <= mechanism.predicted_numbers(20_000) <= 3 * numbers
