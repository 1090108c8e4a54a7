"""The whole law of the paper's boxes on tiny universes, and bugs in how they are made."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np
import pytest

from partita.domain.axis import Axis
from partita.errors import InvalidRelease
from partita.public.boxes.paper import PaperRectanglesRelease
from partita.public.boxes.tree_of_trees import SegmentTree, Stage
from partita.testing import (
    CouplingBroken,
    EndlessTape,
    Loss,
    OutputLaw,
    RationalNoise,
    ZeroNoise,
    add_remove_pairs,
    coupled,
    law,
    privacy_loss,
    tape_noise,
)
from partita.trusted.mechanisms import paper_boxes as module
from partita.trusted.mechanisms.paper_boxes import PaperRectangles
from partita.trusted.mechanisms.partition import Partition
from partita.trusted.noise import Noise
from partita.trusted.secret import Descent, Points

Counts = tuple[int, ...]
Pair = tuple[Counts, Counts]

EPSILON, BASE, UNIT = 24, Fraction(1, 2), Fraction(1)
SQUARE = (Axis(size=2), Axis(size=2))
OBLONG = (Axis(size=2), Axis(size=3))
SPECIAL = (Axis(size=1, after=1), Axis(size=2, before=1))
PAIRS: list[Pair] = [*add_remove_pairs(4, 1)]
FEW: list[Pair] = [((0, 0, 0, 0), (1, 0, 0, 0)), ((1, 0, 0, 0), (1, 0, 0, 1))]


class ClampedNoise(RationalNoise):
    """Noisy counts below `floor` come out as floor - 1, and all others as `floor`: fewer outcomes.

    A mechanism that keeps counts from the floor on decides the same on clamped counts, so what comes out
    is the law of its clamped release. Where the count is below the floor, neighbours' laws of one node are
    as far apart as before.
    """

    def __init__(self, floor: int) -> None:
        super().__init__(BASE, unit=UNIT, window=range(floor - 1, floor + 1))

    def _add(self, value: int, scale: Fraction) -> int:
        above = _beyond(self.window[0] - value, self.base ** self.ratio_power(scale))
        return self.branches.choose([(self.window[0], 1 - above), (self.window[-1], above)])


@cache
def _beyond(level: int, ratio: Fraction) -> Fraction:
    """P[noise > level] for discrete Laplace noise."""
    return ratio ** (level + 1) / (1 + ratio) if level >= -1 else 1 - ratio**-level / (1 + ratio)


def _points(counts: Counts, axes: tuple[Axis, ...], contributions: int = 1) -> Points:
    cells = [*product(*(range(axis.width) for axis in axes))]
    return Points.from_rows(cells, axes=axes, counts=counts, contributions=contributions)


def _outcome(release: PaperRectanglesRelease) -> Hashable:
    """All that is published, in a form that can be compared."""
    stages = (
        tuple(zip(stage.owners.tolist(), stage.nodes.tolist(), stage.counts.tolist(), strict=True))
        for stage in release.trees.stages
    )
    return tuple(tuple(edges.tolist()) for edges in release.edges), tuple(stages), release.scale


def _mechanism(axes: tuple[Axis, ...] = SQUARE, **changes: Any) -> PaperRectangles:
    return PaperRectangles(axes=axes, **{"epsilon": EPSILON, "beta": "0.999", **changes})


class Laws:
    """The law of everything that a mechanism publishes: of its cuts, times that of the counts given these.

    Axes are cut independently of each other, each as its own counts say; and given the cuts, counts are
    all the same if every product of segments holds the same.
    """

    def __init__(self, mechanism: PaperRectangles) -> None:
        self._mechanism = mechanism
        self._shape = tuple(axis.width for axis in mechanism.axes)
        self._cut, self._counted = cache(self._cut_of), cache(self._counted_of)

    def cuts(self, counts: Counts) -> OutputLaw:
        """The joint law of the cuts of all axes."""
        joint: dict[tuple[Any, ...], Fraction] = {(): Fraction(1)}
        for index, size in enumerate(self._shape):
            marginal = np.moveaxis(np.reshape(counts, self._shape), index, 0).reshape(size, -1).sum(axis=1)
            cut = self._cut(index, tuple(marginal.tolist()))
            joint = {(*k, e): p * q for (k, p), (e, q) in product(joint.items(), cut.items())}
        return OutputLaw({**joint})

    def counted(self, cuts: tuple[Counts, ...], counts: Counts) -> OutputLaw:
        """The law of the shipped release given its cuts."""
        table = np.reshape(counts, self._shape)
        for index, cut in enumerate(cuts):
            table = np.add.reduceat(table, [0, *(end + 1 for end in cut[:-1])], axis=index)
        return self._counted(cuts, tuple(table.ravel().tolist()))

    def joint(self, counts: Counts) -> OutputLaw:
        """The law of the whole release."""
        cuts: Any = self.cuts(counts)
        return OutputLaw(
            {out: p * q for cut, p in cuts.items() for out, q in self.counted(cut, counts).items()}
        )

    def worst(self, pairs: list[Pair]) -> Loss:
        """The largest loss over pairs of neighbours."""
        joint = cache(self.joint)
        return max(privacy_loss(joint(one), joint(other), base=BASE, unit=UNIT) for one, other in pairs)

    def _cut_of(self, index: int, marginal: Counts) -> OutputLaw:
        places = np.zeros((len(marginal), len(self._shape)), np.int64)
        places[:, index] = np.arange(len(marginal))
        points = Points.from_rows(places, axes=self._mechanism.axes, counts=marginal)

        def run(noise: RationalNoise) -> Hashable:
            return tuple(self._mechanism._edges(points, index, noise).tolist())

        return law(run, RationalNoise(BASE, unit=UNIT))

    def _counted_of(self, cuts: tuple[Counts, ...], held: Counts) -> OutputLaw:
        places = [*product(*cuts)]
        points = Points.from_rows(places, axes=self._mechanism.axes, counts=held)
        floor = self._mechanism.floor([len(cut) for cut in cuts])
        with _given(cuts):
            return law(
                lambda noise: _outcome(self._mechanism.release(points, noise=noise)), ClampedNoise(floor)
            )


@contextmanager
def _given(cuts: tuple[Counts, ...]) -> Iterator[None]:
    """The axes are cut in this way, whatever the data."""
    edges = [np.array(cut, np.uint64) for cut in cuts]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PaperRectangles, "_edges", lambda self, points, index, session: edges[index])
        yield


@pytest.mark.parametrize(("threshold", "pairs"), [("paper", FEW), (1, PAIRS)], ids=["paper", "default"])
@pytest.mark.spread(1)
def test_cuts_and_counts_together_lose_at_most_epsilon(threshold: object, pairs: list[Pair]) -> None:
    """On all neighbours over 2 x 2 cells the loss is at most epsilon, and more than either half could be."""
    loss = Laws(_mechanism(threshold=threshold)).worst(pairs)

    assert loss <= EPSILON
    assert loss > Fraction(EPSILON, 2)


@pytest.mark.parametrize("cuts", ["private", "cells"])
@pytest.mark.parametrize("pruned", [True, False])
def test_every_variant_loses_at_most_epsilon(cuts: str, pruned: bool) -> None:
    """Without pruning, and with cells for segments, which leave all of epsilon to the counts."""
    loss = Laws(_mechanism(cuts=cuts, pruned=pruned)).worst(FEW)

    assert Fraction(EPSILON, 2) < loss <= EPSILON


def test_trees_over_cells_with_the_scale_of_cuts_and_trees_are_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With half of the noise, all nodes over the cells cost twice epsilon."""
    monkeypatch.setattr(PaperRectangles, "scale", _half_scale)

    assert not Laws(_mechanism(cuts="cells", pruned=False)).worst(FEW[:1]) <= EPSILON


def test_nodes_that_are_not_pruned_by_noise_but_by_rows_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tree that leaves out nodes of nobody shows who is there."""
    monkeypatch.setattr(module._Looks, "take", _empty_left_out)

    assert not Laws(_mechanism(pruned=False)).worst(FEW[:1]) <= EPSILON


def _empty_left_out(looks: Any, counts: Any, room: int) -> Any:
    kept = np.asarray(counts > 0)
    kept[:1] = True  # the root, so that a tree remains
    looks.floor = 1
    return kept, looks._session.add(counts, looks.scale)[kept]


def test_the_law_is_the_product_of_its_parts() -> None:
    """Enumerated in one go over two cells, the shipped release has the law put together from its parts."""
    mechanism = _mechanism((Axis(size=2),), threshold=1)
    points = _points((0, 1), mechanism.axes)

    whole = law(lambda noise: _outcome(mechanism.release(points, noise=noise)), ClampedNoise(1))

    assert mechanism.floor([1]) == mechanism.floor([2]) == 1
    assert whole == Laws(mechanism).joint((0, 1))


@pytest.mark.parametrize(
    ("axes", "cuts"),
    [(SQUARE, ((1,), (1,))), (SQUARE, ((0, 1), (0, 1))), (SPECIAL, ((0, 1), (0, 2)))],
    ids=["whole", "cells", "specials"],
)
def test_given_the_cuts_the_counts_cost_exactly_half(
    axes: tuple[Axis, ...], cuts: tuple[Counts, ...]
) -> None:
    """Where all nodes over a row are kept, it costs half of epsilon, wherever it lies."""
    laws = Laws(_mechanism(axes, threshold=1))
    empty = (0,) * int(np.prod([axis.width for axis in axes]))

    losses = {
        privacy_loss(laws.counted(cuts, empty), laws.counted(cuts, other), base=BASE, unit=UNIT)
        for one, other in add_remove_pairs(len(empty), 1)
        if one == empty
    }

    assert losses == {Loss(1 / BASE ** (EPSILON // 2), BASE, UNIT)}


def _full_law(mechanism: PaperRectangles, segments: tuple[int, int], counts: Counts) -> OutputLaw:
    """The paper's way: noise on every node of the full tree of trees first, pruned afterwards."""
    numbers = [range(1, 2 * size) for size in segments]
    nodes = [*((h,) for h in numbers[0]), *product(*numbers)]
    exact = [_held(np.reshape(counts, segments), node) for node in nodes]
    above = [
        [
            nodes.index((*node[:i], node[i] >> j))
            for i in range(len(node))
            for j in range(node[i].bit_length())
        ]
        for node in nodes
    ]
    scale, floor = mechanism.scale(segments), mechanism.floor(segments)

    def run(noise: RationalNoise) -> Hashable:
        noisy = noise.add(exact, scale)
        return frozenset(
            (node, noisy[i]) for i, node in enumerate(nodes) if all(noisy[j] >= floor for j in above[i])
        )

    return law(run, ClampedNoise(floor))


def _held(table: Any, node: tuple[int, ...]) -> int:
    """The exact count of a node, given by its number in the tree of each axis."""
    spans = [SegmentTree(size).spans(np.array([h])) for size, h in zip(table.shape, node, strict=False)]
    return int(table[tuple(slice(int(first[0]), int(behind[0])) for first, behind in spans)].sum())


def _as_nodes(stages: tuple[Any, ...]) -> Hashable:
    first, second = stages
    below = (((first[owner][1], node), count) for owner, node, count in second)
    return frozenset([*(((node,), count) for _, node, count in first), *below])


@pytest.mark.parametrize("counts", [(0, 0, 0, 0), (1, 0, 0, 2)])
@pytest.mark.spread(1)
def test_pruning_while_it_grows_is_pruning_afterwards(counts: Counts) -> None:
    """The law is that of the full tree of trees, noise on every node, of which the rest is thrown away."""
    mechanism = _mechanism()

    laws: Any = Laws(mechanism).counted(((0, 1), (0, 1)), counts)

    grown = OutputLaw({_as_nodes(stages): p for (_, stages, _), p in laws.items()})
    assert grown == _full_law(mechanism, (2, 2), counts)


def _cut_ways(axis: Axis) -> Iterator[Counts]:
    """All cuts of an axis, special cells being segments of their own."""
    fixed = {*range(axis.before), *range(axis.before + axis.size - 1, axis.width)}
    free = [place for place in range(axis.width) if place not in fixed]
    for chosen in product((False, True), repeat=len(free)):
        yield tuple(sorted(fixed | {place for place, take in zip(free, chosen, strict=True) if take}))


def _cost(mechanism: PaperRectangles, cuts: tuple[Counts, ...], pair: Pair, seed: object = 0) -> Fraction:
    """What a pair of neighbours costs in the counts of the shipped release, given its cuts."""

    def run(counts: Counts, noise: Noise) -> Hashable:
        points = _points(counts, mechanism.axes, mechanism.contributions)
        return _outcome(mechanism.release(points, noise=noise))

    with _given(cuts):
        return coupled(run, *pair, tape_noise(EndlessTape(seed)))


@pytest.mark.parametrize("axes", [SQUARE, OBLONG, SPECIAL], ids=["2x2", "2x3", "specials"])
def test_given_any_cuts_neighbours_cost_at_most_half(axes: tuple[Axis, ...]) -> None:
    """All neighbours under all cuts, on noise that keeps some of the nodes."""
    mechanism = _mechanism(axes, epsilon="1/2", threshold=1)
    pairs = enumerate(add_remove_pairs(int(np.prod([axis.width for axis in axes])), 1))

    costs = {_cost(mechanism, cuts, pair, seed) for seed, pair in pairs for cuts in _some_cuts(axes, seed)}

    assert max(costs) <= Fraction(1, 4)
    assert len(costs) > 1


def _some_cuts(axes: tuple[Axis, ...], seed: int) -> list[tuple[Counts, ...]]:
    """Every other way to cut the axes: all of them, over two seeds."""
    return [*product(*map(_cut_ways, axes))][seed % 2 :: 2]


@pytest.mark.parametrize("axes", [SQUARE, OBLONG, SPECIAL], ids=["2x2", "2x3", "specials"])
def test_where_many_rows_lie_neighbours_cost_exactly_half(axes: tuple[Axis, ...]) -> None:
    """If every node is kept, a row costs half of epsilon, however the axes are cut."""
    mechanism = _mechanism(axes, epsilon="1/2", threshold=1)
    many = (2_000,) * int(np.prod([axis.width for axis in axes]))

    costs = {_cost(mechanism, cuts, (many, (*many[1:], 2_001))) for cuts in product(*map(_cut_ways, axes))}

    assert costs == {Fraction(1, 4)}


ROW = (Axis(size=8),)
CELL_BY_CELL = (tuple(range(8)),)


def _crowded(counts: Counts, noise: Noise) -> Hashable:
    """All that is published where there is room for few nodes: the raised floor too."""
    release = _mechanism(ROW, epsilon=1, threshold=1).release(_points(counts, ROW), noise=noise)
    return _outcome(release), release.trees.floor


@pytest.mark.parametrize("room", [2, 4, 9, 12])
def test_where_room_runs_out_noisy_counts_decide(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One more row in any of eight equal cells costs half of epsilon at most, and moves no node or floor."""
    monkeypatch.setattr(module, "MOST_NODES", room)
    many = (300,) * 8
    pairs = [(many, (*many[:at], 301, *many[at + 1 :])) for at in range(8)]

    with _given(CELL_BY_CELL):
        costs = [
            coupled(_crowded, one, other, tape_noise(EndlessTape((room, seed))))
            for seed, (one, other) in enumerate(pairs)
        ]

    assert max(costs) <= Fraction(1, 2)
    assert max(costs) > 0


@pytest.mark.parametrize("seed", range(3))
def test_nodes_that_are_kept_have_the_largest_noisy_counts(seed: int) -> None:
    """With noise as large as the counts, all that is dropped lies below the floor, and what is kept above."""
    counts, scale = np.arange(40, 80), Fraction(40)
    looks = module._Looks(tape_noise(EndlessTape(("room", seed))).session(), scale, 1)
    noisy = tape_noise(EndlessTape(("room", seed))).session().add(counts, scale)

    kept, told = looks.take(counts, 10)

    assert sorted(told.tolist()) == sorted(noisy.tolist())[-10:]
    assert noisy[kept].tolist() == told.tolist()
    assert looks.floor == 1 + sorted(noisy.tolist())[-11]
    assert set(np.flatnonzero(kept).tolist()) != set(range(30, 40))


def test_the_cuts_of_2_by_3_cells_lose_at_most_half() -> None:
    """With the counts, which cost half given any cuts, that is epsilon for neighbours of up to two rows."""
    cuts = cache(Laws(_mechanism(OBLONG)).cuts)
    pairs = [pair for pair in add_remove_pairs(6, 1) if sum(pair[0]) <= 1]

    loss = max(privacy_loss(cuts(one), cuts(other), base=BASE, unit=UNIT) for one, other in pairs)

    assert Fraction(EPSILON, 8) < loss <= Fraction(EPSILON, 2)


RIGHT_SCALE, RIGHT_TAKE, RIGHT_STAGE = PaperRectangles.scale, module._Looks.take, module._stage
RIGHT_EDGES, RIGHT_FLOOR = PaperRectangles._edges, PaperRectangles.floor


def _half_scale(mechanism: PaperRectangles, segments: Any) -> Fraction:
    """All of epsilon for the counts, besides the half that the cuts have had."""
    return RIGHT_SCALE(mechanism, segments) / 2


def _levels_only(mechanism: PaperRectangles, segments: Any) -> Fraction:
    """As if a point had log m nodes over it on each axis, and no successors."""
    return Fraction(2 * sum(SegmentTree(size).levels for size in segments)) / mechanism.rate


def _last_dimension_only(mechanism: PaperRectangles, segments: Any) -> Fraction:
    """As if only the nodes of the last dimension were counted."""
    return Fraction(2 * int(np.prod([SegmentTree(size).levels for size in segments]))) / mechanism.rate


def _pruned_by_truth(looks: Any, counts: Any, room: int) -> Any:
    """Nodes are kept by what they hold."""
    noisy, kept = looks._session.add(counts, looks.scale), counts >= looks.floor
    return kept, np.maximum(noisy[kept], looks.floor)


def _one_noise(looks: Any, counts: Any, room: int) -> Any:
    """All nodes of a level share one noise."""
    noisy = counts + (looks._session.add(np.zeros(1, np.int64), looks.scale) if counts.size else 0)
    return np.asarray(noisy >= looks.floor, bool), noisy[np.asarray(noisy >= looks.floor, bool)]


def _bare_successors(looks: Any, tree: SegmentTree, walk: Any, number: int) -> Stage:
    """Only the first dimension has noise."""
    if not hasattr(looks, "seen"):
        looks.seen = True
    else:
        looks._session = ZeroNoise()
    return RIGHT_STAGE(looks, tree, walk, number)


def _empty_unvisited(looks: Any, tree: SegmentTree, walk: Any, number: int) -> Stage:
    """Nodes without rows get no noise and are never kept."""
    looks._session = _Widened(looks._session)
    return RIGHT_STAGE(looks, tree, _Peopled(walk), number)


class _Peopled(Descent[Any]):
    """A walk for which counts of nobody are missing."""

    def __init__(self, walk: Any) -> None:
        self._walk = walk

    def go(self, step: Any) -> None:
        self._walk.go(step)

    def folded(self, work: Any) -> Any:
        counts = self._walk.folded(work)
        return np.where(counts > 0, counts, -(10**6))


class _Widened:
    """Hands on a noise for which missing counts are just very low ones."""

    def __init__(self, noise: Any) -> None:
        self._noise = noise

    def add(self, x: Any, scale: Fraction) -> Any:
        there = np.asarray(x) > -(10**6)
        noisy = np.full(len(x), -(10**6), object)
        if there.any():
            noisy[there] = self._noise.add(np.asarray(x)[there], scale)
        return noisy


def _floor_of_rows(looks: Any, counts: Any, room: int) -> Any:
    """The threshold follows the true number of rows."""
    looks._least = looks.floor + (int(counts.sum()) if counts.size == 1 else 0)
    return RIGHT_TAKE(looks, counts, room)


def _bare_cut(mechanism: PaperRectangles, points: Points, index: int, session: Noise) -> Any:
    """Cut by the true counts."""
    return RIGHT_EDGES(mechanism, points, index, ZeroNoise())


def _cut_where_rows_are(mechanism: PaperRectangles, points: Points, index: int, session: Noise) -> Any:
    """An axis on which nobody lies is not cut."""
    edges = RIGHT_EDGES(mechanism, points, index, session)
    return edges if points.total else edges[-1:]


def _greedy_partitions(mechanism: PaperRectangles) -> tuple[Partition, ...]:
    """Half of epsilon for each axis."""
    half = {
        "epsilon": mechanism.epsilon / 2,
        "beta": mechanism.beta / 4,
        "law": "laplace",
        "threshold": "paper",
    }
    return tuple(Partition(size=axis.size, **half) for axis in mechanism.axes)  # type: ignore[arg-type]


BUGS: list[tuple[object, str, Any, list[Pair]]] = [
    (PaperRectangles, "scale", _half_scale, FEW[:1]),
    (PaperRectangles, "scale", _levels_only, FEW[:1]),
    (PaperRectangles, "scale", _last_dimension_only, FEW[:1]),
    (module._Looks, "take", _pruned_by_truth, FEW[:1]),
    (module._Looks, "take", _one_noise, FEW[:1]),
    (module._Looks, "take", _floor_of_rows, FEW),
    (module, "_stage", _bare_successors, FEW[:1]),
    (module, "_stage", _empty_unvisited, FEW[:1]),
    (PaperRectangles, "_edges", _bare_cut, [((1, 0, 0, 1), (2, 0, 0, 1)), ((2, 0, 0, 0), (3, 0, 0, 0))]),
    (PaperRectangles, "_edges", _cut_where_rows_are, FEW),
    (PaperRectangles, "partitions", property(_greedy_partitions), FEW),
]


def _bug_name(bug: Any) -> str:
    return str(getattr(bug, "fget", bug).__name__)


@pytest.mark.parametrize(
    ("owner", "name", "bug", "pairs"), BUGS, ids=[_bug_name(bug) for _, _, bug, _ in BUGS]
)
def test_bugs_are_caught(
    owner: object, name: str, bug: Any, pairs: list[Pair], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What spends too much or lets the data decide loses more than epsilon."""
    monkeypatch.setattr(owner, name, bug)

    assert not Laws(_mechanism(threshold=1)).worst(pairs) <= EPSILON


def _one_row(mechanism: PaperRectangles, segments: Any) -> Fraction:
    """Scales for one row, whatever a person may contribute."""
    return RIGHT_SCALE(mechanism, segments) / mechanism.rows_changed


def test_rows_of_one_person_are_all_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rows of a person cost half of epsilon in the counts; noise for one row costs twice as much."""
    mechanism = _mechanism(epsilon=1, threshold=1, contributions=2)
    pair = (900, 900, 900, 900), (902, 900, 900, 900)

    assert _cost(mechanism, ((0, 1), (1,)), pair) == Fraction(1, 2)
    monkeypatch.setattr(PaperRectangles, "scale", _one_row)
    assert _cost(mechanism, ((0, 1), (1,)), pair) > Fraction(1, 2)


def test_special_cells_that_are_cut_by_the_data_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A special cell that is a segment only if somebody is in it shows that somebody is."""

    def bug(mechanism: PaperRectangles, points: Points, index: int, session: Noise) -> Any:
        axis = mechanism.axes[index]
        there = np.unique(points.places[:, index])
        ends = {axis.width - 1, *(int(p) for p in there if p < axis.before)}
        return np.array(sorted(ends), np.uint64)

    monkeypatch.setattr(PaperRectangles, "_edges", bug)
    mechanism = _mechanism((Axis(size=1, before=1), Axis(size=1)), epsilon=1)

    def run(counts: Counts, noise: Noise) -> Hashable:
        return _outcome(mechanism.release(_points(counts, mechanism.axes), noise=noise))

    with pytest.raises(CouplingBroken):
        coupled(run, (0, 1), (1, 1), tape_noise(EndlessTape(0)))


def test_children_of_pruned_nodes_are_never_released(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tree in which the children of pruned nodes were visited does not hang together, and is refused."""

    def bug(looks: Any, tree: SegmentTree, walk: Any, number: int) -> Stage:
        levels = []
        owners, nodes = np.arange(number), np.ones(number, np.int64)
        while nodes.size:
            kept, noisy = looks.take(walk.folded(partial(module._count_rows, owners, nodes)), 10**6)
            levels.append((owners[kept], nodes[kept], noisy))
            parents, nodes = tree.children(nodes)
            owners = owners[parents]
        return Stage.of(tree, levels)

    monkeypatch.setattr(module, "_stage", bug)
    mechanism = _mechanism((Axis(size=64), Axis(size=64)), epsilon=200, threshold=1)
    points = Points.from_rows([[i, i] for i in range(64)] * 3, axes=mechanism.axes)

    with pytest.raises(InvalidRelease):
        mechanism.release(points, noise=tape_noise(EndlessTape(0)))
