"""Answers from trees of boxes, against sums over all cells of small ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from partita.public.axis.curve import Curve
from partita.public.axis.spending_tree import NodeRange
from partita.public.axis.tree_solver import TreeLooks
from partita.public.bounds import laplace_mix_reach
from partita.public.boxes import cover
from partita.public.boxes.cover import Plane, cancel_terms, combine_boxes
from partita.public.boxes.density import BoxDensity, Measure, Stretches, to_measure
from partita.public.boxes.engine import BoxEngine, propagate, widest_miss, widest_miss_of_looks
from partita.public.boxes.plan import BoxNodes, Corners, SignedBox

Floats = NDArray[np.float64]
Box = tuple[tuple[int, ...], tuple[int, ...]]


def _halves(low: int, high: int) -> list[tuple[int, int]]:
    middle = (low + high) // 2
    return [(low, middle), (middle + 1, high)] if low < high else [(low, high)]


def _tree(widths: Sequence[int], schedule: Sequence[Sequence[int]], expanded: Iterator[bool]) -> BoxNodes:
    """Boxes halved along the axes of the schedule, level by level; the root always is."""
    levels = [[tuple((0, width - 1) for width in widths)]]
    children: list[int] = []
    for axes in schedule:
        below = []
        for box in levels[-1]:
            cut = len(levels) == 1 or (any(low < high for low, high in box) and next(expanded))
            parts = product(*(_halves(*box[a]) if a in axes else [box[a]] for a in range(len(widths))))
            made = list(parts) if cut else []
            children.append(len(made))
            below.extend(made)
        if not below:
            break
        levels.append(below)
    boxes = [box for level in levels for box in level]
    count = np.array([*children, *[0] * (len(boxes) - len(children))], np.int64)
    lows, highs = (np.array([[side[end] for side in box] for box in boxes], np.uint64) for end in (0, 1))
    return BoxNodes(
        np.array([len(level) for level in levels]), lows, highs, 1 + np.cumsum(count) - count, count
    )


@dataclass
class Made:
    """A tree with counts at its leaves, and the same as one array of cells."""

    engine: BoxEngine
    weights: list[Floats]

    @property
    def nodes(self) -> BoxNodes:
        return self.engine.nodes

    @property
    def widths(self) -> tuple[int, ...]:
        return tuple(int(high) + 1 for high in self.nodes.highs[0])

    def inside(self, node: int) -> Floats:
        """The share of a node's count in each cell, by the measures."""
        share = np.ones(())
        for axis, weights in enumerate(self.weights):
            low, high = int(self.nodes.lows[node, axis]), int(self.nodes.highs[node, axis])
            part = np.zeros(weights.size)
            part[low : high + 1] = weights[low : high + 1] / weights[low : high + 1].sum()
            share = np.multiply.outer(share, part)
        return np.asarray(share)

    @property
    def cells(self) -> Floats:
        leaves = np.flatnonzero(self.nodes.leaves).tolist()
        return np.asarray(sum(self.engine.values[leaf] * self.inside(leaf) for leaf in leaves))

    def coefficients(self, terms: Sequence[SignedBox]) -> Floats:
        """The sum of the signs at each cell."""
        found = np.zeros(self.widths)
        for low, high, sign in terms:
            found[tuple(slice(a, b + 1) for a, b in zip(low, high, strict=True))] += sign
        return found

    def variance(self, terms: Sequence[SignedBox], node: int = 0) -> float:
        """What the model says, from the root down to nodes in which no box ends, and to leaves."""
        share, first = self.inside(node), int(self.nodes.starts[node])
        coefficients = self.coefficients(terms)
        ends = any(np.ptp(self.coefficients([(low, high, 1)])[share > 0]) for low, high, _ in terms)
        if ends and self.nodes.children[node]:
            return sum(self.variance(terms, first + child) for child in range(self.nodes.children[node]))
        return self.spread(coefficients, node)

    def spread(self, coefficients: Floats, node: int) -> float:
        """The variance of a node that is not looked into."""
        share = self.inside(node)
        mean, square = (coefficients * share).sum(), (coefficients**2 * share).sum()
        held = self.engine.values[node] ** 2
        return float(mean**2 * self.engine.variances[node] + (square - mean**2) * held)

    def boxes(self) -> list[Box]:
        """All of them."""
        sides = [[(low, high) for low in range(width) for high in range(low, width)] for width in self.widths]
        return [(tuple(s[0] for s in box), tuple(s[1] for s in box)) for box in product(*sides)]


def _measures(weights: Sequence[Floats], curved: bool) -> list[Measure]:
    if not curved:
        return [None for _ in weights]
    return [to_measure(Curve(np.arange(each.size, dtype=np.uint64), each)) for each in weights]


def _made(widths: Sequence[int], schedule: Sequence[Sequence[int]], seed: int, curved: bool) -> Made:
    random = np.random.default_rng(seed)
    nodes = _tree(widths, schedule, iter(lambda: bool(random.random() < 0.7), None))
    count = len(nodes.lows)
    weights = [
        random.integers(1, 9, width).astype(np.float64) if curved else np.ones(width) for width in widths
    ]
    values = np.where(nodes.leaves, random.integers(0, 9, count), 0.0)
    looks = TreeLooks.step(np.arange(1, count), np.full(count - 1, 2**19), random.integers(-3, 9, count - 1))
    engine = BoxEngine(
        nodes=nodes,
        measures=_measures(weights, curved),
        values=values,
        variances=random.random(count) + 0.1,
        looks=looks,
        unit=2.0**-20,
        widening=1.5,
    )
    return Made(engine, weights)


def _corners(boxes: Sequence[Box]) -> tuple[Corners, Corners]:
    return np.array([low for low, _ in boxes], np.uint64), np.array([high for _, high in boxes], np.uint64)


@st.composite
def trees(draw: st.DrawFn, most: int = 60) -> Made:
    """Small trees of one to four axes."""
    widths = draw(
        st.lists(st.integers(1, 6), min_size=1, max_size=4).filter(lambda each: np.prod(each) <= most)
    )
    axes = st.sets(st.integers(0, len(widths) - 1), min_size=1).map(sorted)
    schedule = draw(st.lists(axes, min_size=1, max_size=4))
    return _made(widths, schedule, draw(st.integers(0, 2**32)), draw(st.booleans()))


def _some(random: np.random.Generator, boxes: list[Box], count: int) -> list[Box]:
    return [boxes[at] for at in random.integers(0, len(boxes), count)]


@given(trees())
@settings(max_examples=30)
def test_every_box_counts_its_cells(made: Made) -> None:
    """A box holds what its cells hold, and its error is that of the model; boxes and single answers agree."""
    boxes = made.boxes()
    lows, highs = _corners(boxes)
    cells = made.cells
    sums = np.array([_held(cells, box) for box in boxes])

    counts, errors = made.engine.counts(lows, highs), made.engine.errors(lows, highs)

    assert counts == pytest.approx(sums, abs=1e-9)
    for at in range(0, len(boxes), max(1, len(boxes) // 20)):
        variance = made.variance([(*boxes[at], 1)])
        answer = made.engine.answer([(*boxes[at], 1)])
        assert errors[at] == pytest.approx(1.5 * np.sqrt(variance + 1))
        assert (answer.value, answer.error) == pytest.approx((counts[at], errors[at]))
        assert answer.least == 0


@given(trees(), st.integers(0, 2**32), st.integers(1, 6))
@settings(max_examples=30)
def test_signed_sums_are_one_question(made: Made, seed: int, number: int) -> None:
    """Boxes that overlap cancel, cell by cell: the value, and the error of exactly that."""
    random = np.random.default_rng(seed)
    terms = [(*box, int(random.choice([-1, 1]))) for box in _some(random, made.boxes(), number)]
    coefficients = made.coefficients(terms)
    value = float((made.cells * coefficients).sum())

    answer = made.engine.answer(terms)

    assert answer.value == pytest.approx(value, abs=1e-9)
    variance = made.variance(cancel_terms(terms)) + 1
    assert answer.error == pytest.approx(1.5 * np.sqrt(variance))


@given(trees(), st.integers(0, 2**32))
@settings(max_examples=30)
def test_curves_along_an_axis_are_what_boxes_count(made: Made, seed: int) -> None:
    """Within any box of the other axes: differences of the curve are counts, and it rises from nothing."""
    (low, high), *_ = _some(np.random.default_rng(seed), made.boxes(), 1)
    for axis, width in enumerate(made.widths):
        sides = [slice(a, b + 1) for a, b in zip(low, high, strict=True)]
        sides[axis] = slice(None)
        others = tuple(a for a in range(len(low)) if a != axis)

        curve = made.engine.along(axis, low, high)

        assert int(curve.ends[-1]) == width - 1
        assert curve.counts.min() >= 0
        steps = np.diff(curve.upto(np.arange(width, dtype=np.uint64)), prepend=0.0)
        assert steps == pytest.approx(made.cells[tuple(sides)].sum(axis=others), abs=1e-9)


@given(trees(), st.integers(0, 2**32))
@settings(max_examples=25)
def test_a_split_adds_up(made: Made, seed: int) -> None:
    """The parts of a box that is cut at a plane count what it counts."""
    random = np.random.default_rng(seed)
    for low, high in _some(random, made.boxes(), 20):
        axis = int(random.integers(len(low)))
        at = int(random.integers(low[axis], high[axis] + 1))
        if at < high[axis]:
            left = (low, (*high[:axis], at, *high[axis + 1 :]))
            right = ((*low[:axis], at + 1, *low[axis + 1 :]), high)
            whole, *parts = made.engine.counts(*_corners([(low, high), left, right]))
            assert sum(parts) == pytest.approx(whole, abs=1e-9)


@pytest.mark.parametrize("curved", [False, True])
def test_a_table_and_compiled_code_give_what_the_walk_gives(curved: bool) -> None:
    """For every box of trees over two axes, and of one over three, to a relative 1e-9 of the total."""
    pytest.importorskip("numba")
    for widths in ((13, 9), (16, 1), (6, 5, 4)):
        made = _made(widths, [range(len(widths))] * 3, 7, curved)
        density, corners = made.engine.density, _corners(made.boxes())
        boxes = Stretches.along(density.measures, *corners)

        walked, compiled = cover.sum_boxes(density, boxes), cover._sum_compiled(density, boxes, 1)

        for mine, theirs in zip(walked, compiled, strict=True):
            assert theirs == pytest.approx(mine, abs=1e-9 * density.total)
        if len(widths) == 2:
            plane = Plane.of(density)
            assert plane is not None
            assert plane.counts(boxes) == pytest.approx(walked.values, abs=1e-9 * density.total)


@pytest.mark.parametrize("curved", [False, True])
def test_a_look_at_all_nodes_finds_what_the_walk_finds(curved: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same nodes and the same shares for every box, that of everything too."""
    for widths in ((13,), (13, 9), (6, 5, 4)):
        made = _made(widths, [range(len(widths))] * 3, 7, curved)
        density, corners = made.engine.density, _corners(made.boxes())
        boxes = Stretches.along(density.measures, *corners)

        monkeypatch.setattr(cover, "_BLOCK", len(made.boxes()) * density.nodes.children.size)
        looked = list(cover.cover(density, boxes))
        monkeypatch.setattr(cover, "_BLOCK", 64)
        walked = list(cover.cover(density, boxes))

        assert len(looked) < len(walked)
        assert _pairs(looked) == _pairs(walked)


def _pairs(covers: Sequence[cover.Cover]) -> dict[tuple[int, int], float]:
    """The share of each pair of a box and a node; none comes twice."""
    found = [pair for each in covers for pair in zip(*(part.tolist() for part in each), strict=True)]
    assert len({pair[:2] for pair in found}) == len(found)
    return {(box, node): share for box, node, share in found}


def test_a_tree_is_seen_along_the_same_axes_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it is shown as it was solved; of many sets of axes, those that were asked about last are kept."""
    engine, onto = _made([2] * 6, [range(6)], 1, curved=False).engine, BoxDensity.onto
    seen: list[list[int]] = []

    def counted(tree: BoxDensity, axes: Sequence[int]) -> BoxDensity:
        seen.append(list(axes))
        return onto(tree, axes)

    monkeypatch.setattr(BoxDensity, "onto", counted)
    sets = [list(axes) for number in (1, 2, 3) for axes in combinations(range(6), number)]

    def ask(axes: list[int]) -> tuple[float, float]:
        high = [0 if axis in axes else 1 for axis in range(6)]
        value = engine.counts(np.zeros((1, 6), np.uint64), np.array([high], np.uint64))
        return float(value[0]), engine.answer([((0,) * 6, tuple(high), 1)]).error

    first = [ask(axes) for axes in sets]
    assert seen == sets
    assert [ask(axes) for axes in sets[-8:]] == first[-8:]
    assert seen == sets
    assert [ask(axes) for axes in sets[:2]] == first[:2]
    assert seen == sets + sets[:2]


def test_many_boxes_are_what_single_ones_are() -> None:
    """Enough boxes for a table, some of which bound both axes and some one, count the same as a few do."""
    made = _made((13, 11), [(0, 1)] * 3, 3, curved=True)
    lows, highs = _corners(made.boxes())

    at_once = made.engine.counts(lows, highs)

    assert len(lows) > 2**12
    few = [made.engine.counts(lows[at : at + 100], highs[at : at + 100]) for at in range(0, len(lows), 100)]
    assert at_once == pytest.approx(np.concatenate(few), abs=1e-9)


def test_memory_does_not_grow_with_the_number_of_boxes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Walked a few pairs at a time, boxes count the same."""
    made = _made((9, 8, 2), [(0, 1), (1, 2), (0, 1, 2)], 5, curved=False)
    boxes = Stretches.along(made.engine.measures, *_corners(made.boxes()))
    whole = cover.sum_boxes(made.engine.density, boxes)

    monkeypatch.setattr(cover, "_BLOCK", 64)
    blocks = list(cover.cover(made.engine.density, boxes))

    assert max(each.box.size for each in blocks[1:]) <= 64
    assert cover.sum_boxes(made.engine.density, boxes).values == pytest.approx(whole.values)


WIDE = 2**63 + 4


def _wide(seed: int) -> Made:
    """A deep tree over an axis of 2^63 + 4 positions and one of three."""
    random = np.random.default_rng(seed)
    nodes = _tree((WIDE, 3), [(0,), (0, 1), *[(0,)] * 60], iter(lambda: bool(random.random() < 0.52), None))
    count = len(nodes.lows)
    values = np.where(nodes.leaves, random.integers(0, 10**6, count), 0.0)
    looks = TreeLooks.step(np.arange(1, count), np.full(count - 1, 2**19), np.zeros(count - 1, np.int64))
    engine = BoxEngine(
        nodes=nodes,
        measures=[None, None],
        values=values,
        variances=np.ones(count),
        looks=looks,
        unit=1.0,
        widening=1.0,
    )
    return Made(engine, [])


def _exactly(made: Made, low: tuple[int, int], high: tuple[int, int]) -> Fraction:
    total, nodes = Fraction(0), made.nodes
    for leaf in np.flatnonzero(nodes.leaves):
        share = Fraction(int(made.engine.values[leaf]))
        for axis in (0, 1):
            first, last = int(nodes.lows[leaf, axis]), int(nodes.highs[leaf, axis])
            common = min(last, high[axis]) - max(first, low[axis]) + 1
            share *= Fraction(max(0, common), last - first + 1)
        total += share
    return total


@pytest.mark.parametrize("seed", range(4))
def test_positions_may_need_all_64_bits(seed: int) -> None:
    """Counts of narrow and of wide boxes are exact to rounding relative to themselves, and so are curves."""
    made = _wide(seed)
    random = np.random.default_rng(seed)
    edges = [int(edge) for edge in np.unique(made.nodes.lows[:, 0])]
    for _ in range(15):
        start = min(WIDE - 1, edges[random.integers(len(edges))] + int(random.integers(3)))
        end = min(WIDE - 1, start + int(2.0 ** random.uniform(0, 63)))
        low, high = (start, int(random.integers(2))), (end, 2)
        exact = float(_exactly(made, low, high))

        assert made.engine.answer([(low, high, 1)]).value == pytest.approx(exact, rel=1e-12)
        curve = made.engine.along(0, low, high)
        between = curve.between(np.array(start, np.uint64), np.array(end, np.uint64)).item()
        assert between == pytest.approx(exact, rel=1e-9, abs=1e-12 * made.engine.density.total)


class Cells:
    """A region that is a set of cells, by the share of cells of a box that are in it."""

    def __init__(self, inside: NDArray[np.bool_]) -> None:
        self.inside = inside

    def shares(self, lows: Corners, highs: Corners) -> Floats:
        sides = [
            tuple(slice(int(a), int(b) + 1) for a, b in zip(low, high, strict=True))
            for low, high in zip(lows, highs, strict=True)
        ]
        return np.array([self.inside[side].mean() for side in sides])


@given(trees(), st.integers(0, 2**32))
@settings(max_examples=25)
def test_regions_count_their_share_of_cells(made: Made, seed: int) -> None:
    """Evenly spread leaves count the cells inside, with errors by the same model; bounds hold the value."""
    random = np.random.default_rng(seed)
    region = Cells(random.random(made.widths) < 0.5)
    (low, high), *_ = _some(random, made.boxes(), 1)
    inside = region.inside * made.coefficients([(low, high, 1)])

    answer = made.engine.region(region.shares, low, high)

    if all(measure is None for measure in made.engine.measures):
        assert answer.value == pytest.approx(float((made.cells * inside).sum()), abs=1e-9)
        variance = _region_variance(made, inside) + 1
        assert answer.error == pytest.approx(1.5 * np.sqrt(variance))
    assert -1e-9 <= answer.value <= made.engine.counts(*_corners([(low, high)]))[0] + 1e-9
    bottom, top = answer.worst(0.1)
    assert bottom <= answer.value <= top


def _region_variance(made: Made, inside: Floats, node: int = 0) -> float:
    """From the root down to nodes that lie inside or outside, and to leaves."""
    here, first = inside[made.inside(node) > 0], int(made.nodes.starts[node])
    if np.ptp(here) and made.nodes.children[node]:
        return sum(_region_variance(made, inside, first + at) for at in range(made.nodes.children[node]))
    return made.spread(inside, node)


def test_regions_follow_the_measure_inside_of_a_leaf() -> None:
    """A leaf is cut where its measure is: what is told of a border is a part of a part of it."""
    weights = np.array([1.0] * 8 + [1000.0] * 8)
    nodes = _tree((16, 2), [(1,)], iter([]))
    looks = TreeLooks.step(np.arange(1, 3), np.full(2, 2**19), np.zeros(2, np.int64))
    engine = BoxEngine(
        nodes=nodes,
        measures=[to_measure(Curve(np.arange(16, dtype=np.uint64), weights)), None],
        values=np.array([0.0, 100.0, 60.0]),
        variances=np.ones(3),
        looks=looks,
        unit=1.0,
        widening=1.0,
    )
    border = Cells(np.broadcast_to(np.arange(16)[:, None] < 12, (16, 2)))

    found = engine.region(border.shares, (0, 0), (15, 1)).value

    exact = 160 * weights[:12].sum() / weights.sum()
    assert found == pytest.approx(exact, abs=160 / 8)
    assert abs(160 * 12 / 16 - exact) > 160 / 8


@given(trees(), st.integers(0, 200))
@settings(max_examples=25)
def test_made_up_points_follow_the_counts(made: Made, rows: int) -> None:
    """Every leaf gets its share to one row, the same ones every time; nobody lies outside."""
    points = made.engine.points(rows)
    total = made.engine.density.total
    leaves = np.flatnonzero(made.nodes.leaves)

    assert points.shape == (rows, len(made.widths))
    assert np.array_equal(points, made.engine.points(rows))
    assert (points < np.array(made.widths, np.uint64)).all()
    if total > 0:
        inside = [
            ((points >= made.nodes.lows[leaf]) & (points <= made.nodes.highs[leaf])).all(axis=1).sum()
            for leaf in leaves
        ]
        quota = rows * made.engine.values[leaves] / total
        assert np.abs(np.array(inside) - quota).max() <= 1 + 1e-6


def test_made_up_points_fill_a_leaf() -> None:
    """Inside of a leaf they are spread as the measures say, along each axis and together."""
    weights = [np.array([1.0, 3.0, 0.0, 4.0]), np.ones(8)]
    nodes = _tree((4, 8, 1), [(2,)], iter([]))
    looks = TreeLooks.step(np.array([1]), np.array([2**19]), np.zeros(1, np.int64))
    engine = BoxEngine(
        nodes=nodes,
        measures=[*_measures(weights, curved=True), None],
        values=np.array([0.0, 5.0]),
        variances=np.ones(2),
        looks=looks,
        unit=1.0,
        widening=1.0,
    )

    points = engine.points(6400).astype(np.int64)

    found = np.zeros((4, 8))
    np.add.at(found, (points[:, 0], points[:, 1]), 1)
    assert np.abs(found - 100 * np.outer(weights[0], weights[1])).max() <= 10


def test_made_up_points_of_nothing_fill_everything() -> None:
    """Where no leaf holds anything, rows are spread over all positions, however many those are."""
    made = _wide(1)
    made.engine.values[:] = 0.0

    points = made.engine.points(1000)

    quarter = points[:, 0] // np.uint64(2**61)
    assert np.abs(np.bincount(quarter.astype(np.int64), minlength=4)[:4] - 250).max() <= 25


def _grid_tree() -> BoxNodes:
    return _tree((3, 2), [(0, 1), (0,)], iter([True, False, False, False]))


def _held(cells: Floats, box: Box) -> float:
    """What a box holds of cells."""
    return float(cells[tuple(slice(a, b + 1) for a, b in zip(*box, strict=True))].sum())


def _sums(nodes: BoxNodes, cells: Floats) -> Floats:
    """What each node holds of cells."""
    corners = zip(nodes.lows.astype(int), nodes.highs.astype(int), strict=True)
    return np.array(
        [cells[tuple(slice(a, b + 1) for a, b in zip(*box, strict=True))].sum() for box in corners]
    )


def test_bounds_hold_whenever_all_ranges_do() -> None:
    """On a tiny tree whose looks all miss by as much as they may, up or down, and for any estimate.

    `error` bounds every box at once, whatever the estimate is.
    """
    nodes = _grid_tree()
    count = len(nodes.lows)
    random = np.random.default_rng(0)
    none = TreeLooks.step(np.arange(1, count), np.full(count - 1, 1), np.zeros(count - 1, np.int64))
    boxes = Made(_engine(nodes, np.zeros(count)), [np.ones(3), np.ones(2)]).boxes()
    lows, highs = _corners(boxes)
    for trial, miss in enumerate(product((-1.0, 1.0), repeat=count - 1)):
        cells = random.integers(0, 4, (3, 2)).astype(np.float64)
        truth = np.array([_held(cells, box) for box in boxes])
        looks = replace(none, noisy=_sums(nodes, cells)[1:] + miss * none.reach(1.0, 0.2))
        engine = _engine(nodes, random.integers(0, 5, count).astype(np.float64), looks)
        ranges = engine.certain.ranges(0.2)
        assert (ranges.low <= _sums(nodes, cells)).all()
        assert (_sums(nodes, cells) <= ranges.high).all()

        assert np.abs(engine.counts(lows, highs) - truth).max() <= engine.error(0.2)
        for one in range(trial % 3, len(boxes), 3):
            other = int(random.integers(len(boxes)))
            for terms, exact in (
                ([(*boxes[one], 1)], truth[one]),
                ([(*boxes[one], 1), (*boxes[other], -1)], truth[one] - truth[other]),
                ([(*boxes[one], -1), (*boxes[other], -1)], -truth[one] - truth[other]),
            ):
                low, high = _bounds(engine, terms, ranges)
                assert low - 1e-9 <= exact <= high + 1e-9


@given(trees(), st.integers(0, 2**32), st.sampled_from([0.0, 1.0, 100.0]))
@settings(max_examples=50)
def test_no_box_misses_by_more_than_the_bound_for_all(made: Made, seed: int, slack: float) -> None:
    """Where ranges end at the truth and estimates at the ends of ranges, and all of a leaf is in one cell."""
    random = np.random.default_rng(seed)
    leaves, cells = np.flatnonzero(made.nodes.leaves).tolist(), np.zeros(made.widths)
    for leaf in leaves:
        there = np.argwhere(made.inside(leaf) > 0)
        cells[tuple(there[random.integers(len(there))])] += random.integers(0, 50)
    truth = _sums(made.nodes, cells)
    side = random.choice([-1.0, 1.0]) if random.random() < 0.5 else random.choice([-1.0, 1.0], truth.size)
    values = np.maximum(truth + slack * side, 0.0)
    density = BoxDensity.of(made.nodes, made.engine.measures, values, np.ones(truth.size))
    ranges = NodeRange(np.minimum(truth, density.held.values), np.maximum(truth, density.held.values))
    corners = _corners(made.boxes())

    found = cover.sum_boxes(density, Stretches.along(density.measures, *corners)).values

    exact = [_held(cells, box) for box in made.boxes()]
    assert np.abs(found - exact).max() <= widest_miss(density, ranges) + 1e-9


def _engine(nodes: BoxNodes, values: Floats, looks: TreeLooks | None = None) -> BoxEngine:
    count = len(nodes.lows)
    none = TreeLooks.step(np.arange(1, count), np.full(count - 1, 1), np.zeros(count - 1, np.int64))
    return BoxEngine(
        nodes=nodes,
        measures=[None] * nodes.axes,
        values=np.where(nodes.leaves, values, 0.0),
        variances=np.ones(count),
        looks=none if looks is None else looks,
        unit=1.0,
        widening=1.0,
    )


def _bounds(engine: BoxEngine, terms: Sequence[SignedBox], ranges: NodeRange) -> tuple[float, float]:
    lows, highs = (np.array([term[end] for term in terms], np.uint64) for end in (0, 1))
    signs = np.array([float(sign) for _, _, sign in terms])
    asked = combine_boxes(engine.density, Stretches.along(engine.measures, lows, highs), signs)
    return propagate(asked, ranges)


def test_bounds_are_as_narrow_as_what_is_known() -> None:
    """With exact looks: nodes are known exactly, parts of leaves up to the leaf, and rests by what is around.

    A box less itself is nothing, and a box less a part of it is the other part.
    """
    nodes = _tree((4, 4), [(0, 1)], iter([]))
    looks = TreeLooks.step(np.arange(1, 5), np.full(4, 10**6), np.array([10, 20, 30, 40]))
    engine = _engine(nodes, np.array([0.0, 10, 20, 30, 40]), looks)

    assert engine.bounds([((0, 0), (1, 1), 1)], 0.05) == (10, 10)
    assert engine.bounds([((0, 0), (3, 3), 1)], 0.05) == (100, 100)
    assert engine.bounds([((0, 0), (0, 1), 1)], 0.05) == (0, 10)
    assert engine.bounds([((0, 0), (3, 2), 1)], 0.05) == (40, 100)
    assert engine.bounds([((0, 0), (3, 3), 1), ((0, 0), (0, 1), -1)], 0.05) == (90, 100)
    assert engine.bounds([((0, 0), (3, 2), 1), ((0, 0), (3, 2), -1)], 0.05) == (0, 0)
    assert engine.bounds([((0, 0), (0, 0), 1), ((2, 0), (3, 3), 1)], 0.05) == (70, 80)
    assert engine.error(0.05) == pytest.approx(100)


def test_bounds_know_which_look_is_at_which_leaf() -> None:
    """With exact looks at leaves of two levels every node, and what lies outside of it, is known."""
    nodes = _tree((4, 4), [(0, 1), (0, 1)], iter([False, True, True, False]))
    cells = np.arange(16.0).reshape(4, 4)
    sums = _sums(nodes, cells)
    count = len(nodes.lows)
    looks = TreeLooks.step(np.arange(1, count), np.full(count - 1, 10**6), sums[1:].astype(np.int64))
    engine = _engine(nodes, sums, looks)
    everything = (tuple(nodes.lows[0].tolist()), tuple(nodes.highs[0].tolist()), 1)
    for low, high, held in zip(nodes.lows.tolist(), nodes.highs.tolist(), sums, strict=True):
        assert engine.bounds([(tuple(low), tuple(high), 1)], 0.05) == (held, held)
        rest = engine.bounds([everything, (tuple(low), tuple(high), -1)], 0.05)
        assert rest == (cells.sum() - held, cells.sum() - held)


def test_both_sides_of_a_box_may_miss() -> None:
    """All rows of two leaves lie where they meet, and a box of just these cells misses most of both."""
    nodes = _tree((8,), [(0,)], iter([]))
    density = BoxDensity.of(nodes, [None], np.array([0.0, 10.0, 10.0]), np.ones(3))
    exact = NodeRange(density.held.values, density.held.values)
    box = [Stretches(np.array([3], np.uint64), np.array([4], np.uint64))]

    missed = 20 - cover.sum_boxes(density, box).values[0]

    assert missed == 15
    assert 15 <= widest_miss(density, exact) <= 20 + 1e-6
    assert 15 <= widest_miss_of_looks(density, density.held.values, np.full(3, 1e6), 0.05) <= 20 + 1e-3


@given(trees(), st.integers(0, 2**32))
@settings(max_examples=30)
def test_no_box_misses_by_more_than_looks_allow(made: Made, seed: int) -> None:
    """For any estimate every box keeps the bound, if the noise of no set of leaves exceeds the reach."""
    random = np.random.default_rng(seed)
    leaves, cells = np.flatnonzero(made.nodes.leaves).tolist(), np.zeros(made.widths)
    for leaf in leaves:
        there = np.argwhere(made.inside(leaf) > 0)
        cells[tuple(there[random.integers(len(there))])] += random.integers(0, 500)
    noise = random.integers(-2, 3, len(made.nodes.lows))
    looks = _sums(made.nodes, cells) + noise
    values = np.maximum(looks + random.integers(-20, 21, looks.size), 0.0)
    density = BoxDensity.of(made.nodes, made.engine.measures, values, np.ones(looks.size))
    rates = np.full(looks.size, 1.0)
    reach = laplace_mix_reach(np.ones(len(leaves)), rates[leaves], 0.05)
    exact = [_held(cells, box) for box in made.boxes()]

    found = cover.sum_boxes(density, Stretches.along(density.measures, *_corners(made.boxes()))).values

    if np.abs(noise[leaves]).sum() <= reach:
        assert np.abs(found - exact).max() <= widest_miss_of_looks(density, looks, rates, 0.05) + 1e-9


def test_one_bound_for_all_boxes_is_not_everything() -> None:
    """On a grid of exactly known cells the bound is nothing; with noise it grows with the sides of a box."""
    nodes = _tree((16, 16), [(0, 1)] * 4, iter([True] * 1000))
    count = len(nodes.lows)
    values = _sums(nodes, np.full((16, 16), 1000.0))
    exact = TreeLooks.step(np.arange(1, count), np.full(count - 1, 10**6), values[1:].astype(np.int64))
    noisy = TreeLooks.step(np.arange(1, count), np.full(count - 1, 1), values[1:].astype(np.int64))

    assert _engine(nodes, values, exact).error(0.05) == pytest.approx(0, abs=1e-3)
    engine, reach = _engine(nodes, values, noisy), float(noisy.reach(1.0, 0.05).max())
    by_nodes = widest_miss(engine.density, engine.certain.ranges(0.05))
    assert 16 * reach < by_nodes < 8 * 16 * reach
    assert engine.error(0.05) < by_nodes
