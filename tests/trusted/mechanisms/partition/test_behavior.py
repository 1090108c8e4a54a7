"""What a partition promises in public, what it cuts without noise, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from partita import Cut, Guarantee, Histogram, Partition
from partita.errors import InvalidData, InvalidParameter, PartitaError
from partita.testing import EndlessTape, ForbiddenNoise, ZeroNoise, tape_noise
from partita.trusted.noise.hazard import Law
from partita.trusted.noise.laws import Tape
from partita.trusted.noise.system import SYSTEM, Path

PATHS: tuple[Path, ...] = ("exact", "numpy", "compiled")
WIDE = 2**64


@pytest.mark.parametrize(
    ("law", "epsilon", "bits", "expected"),
    [
        ("laplace", 1, 20, (19, 39)),
        ("laplace", 1, 32, (28, 48)),
        ("laplace", 1, 64, (50, 70)),
        ("laplace", "0.1", 64, (506, 699)),
        ("geometric", 1, 20, (17, 36)),
        ("geometric", 1, 32, (25, 44)),
        ("geometric", 1, 64, (47, 66)),
        ("geometric", "0.1", 64, (474, 651)),
    ],
)
def test_thresholds_and_weights_are_those_of_the_table(
    law: Law, epsilon: object, bits: int, expected: tuple[int, int]
) -> None:
    """At beta = 0.05 and a million items, thresholds and weight bounds are the published ones."""
    partition = Partition(size=2**bits, epsilon=epsilon, law=law)

    assert (partition.threshold, partition.weight_bound(10**6)) == expected


@pytest.mark.parametrize(
    ("epsilon", "bits", "expected"), [(1, 20, 50), (1, 32, 75), (1, 64, 142), ("0.1", 64, 1420)]
)
def test_the_paper_threshold_is_that_of_figure_1(epsilon: object, bits: int, expected: int) -> None:
    """An integer exceeds 3 (ln D + ln 1/beta) / epsilon if and only if it exceeds its integer part."""
    partition = Partition(size=2**bits, epsilon=epsilon, law="laplace", threshold="paper")

    assert partition.threshold == expected


@pytest.mark.parametrize(
    ("counts", "threshold", "edges"),
    [
        ((0, 0, 0, 0), 0, [3]),
        ((1, 0, 0, 0), 0, [0, 3]),
        ((1, 1, 1, 1), 0, [0, 1, 2, 3]),
        ((1, 1, 1, 1), 1, [1, 3]),
        ((2, 0, 1, 3), 2, [2, 3]),
        ((0, 9, 0, 0), 2, [1, 3]),
        ((0, 0, 0, 9), 2, [3]),
        ((3,), 0, [0]),
        ((0, 1), 0, [1]),
        ((1, 0, 1), 1, [2]),
    ],
)
def test_without_noise_a_segment_ends_where_its_count_exceeds_the_threshold(
    counts: tuple[int, ...], threshold: int, edges: list[int]
) -> None:
    """Offline and online, the segments are those found by hand."""
    partition = Partition(size=len(counts), epsilon=1, threshold=threshold)
    cutter = partition.online(noise=ZeroNoise())
    for cell, count in enumerate(counts):
        cutter.update(cell, count)

    offline = partition.cut(Histogram.dense(counts), noise=ZeroNoise())

    assert offline.edges.tolist() == cutter.finish().edges.tolist() == edges


@pytest.mark.parametrize("size", [1, 2, 3, 1000, 2**64])
@pytest.mark.parametrize("path", PATHS)
def test_a_cut_covers_its_universe(size: int, path: Path) -> None:
    """Edges increase and end with the universe, and the weights add up to the total, data or none."""
    partition = Partition(size=size, epsilon=1)
    for seed, n in enumerate((0, 1, 200)):
        cells = sorted((size - 1) * i // 200 for i in range(n))
        data = Histogram.from_sorted(np.array(cells, dtype=np.uint64), size=size)

        cut = partition.cut(data, noise=tape_noise(EndlessTape(seed), path=path))

        assert cut.last == size - 1
        assert (np.diff(cut.edges.astype(object)) > 0).all()
        assert int(data.weigh(cut).sum()) == data.total == n


@pytest.mark.parametrize("cell", [0, 2**53 + 1, 2**63 + 7, 2**64 - 1])
@pytest.mark.parametrize("path", PATHS)
def test_a_heavy_cell_is_sealed_at_its_own_position(cell: int, path: Path) -> None:
    """Far above 2^53 positions stay exact: a million items in a cell end a segment right there."""
    data = Histogram.from_counts(np.array([cell], dtype=np.uint64), [10**6], size=WIDE)

    cut = Partition(size=WIDE, epsilon=1).cut(data, noise=tape_noise(EndlessTape(cell), path=path))

    assert cell in cut.edges.tolist()
    assert int(data.weigh(cut)[cut.locate([cell])[0]]) == 10**6


def test_neighboring_atoms_above_the_floats_are_told_apart() -> None:
    """Two heavy cells next to each other beyond 2^53 are two segments."""
    first = 2**63 + 1
    data = Histogram.from_counts(np.array([first, first + 1], dtype=np.uint64), [5000, 7000], size=WIDE)

    cut = Partition(size=WIDE, epsilon=1).cut(data, noise=tape_noise(EndlessTape(0)))

    assert {first, first + 1} <= set(cut.edges.tolist())


def test_a_seal_inside_an_empty_run_is_reported_at_its_own_position() -> None:
    """`advance` reports the seals of a run without waiting for an item, wherever they lie in it."""
    partition = Partition(size=1000, epsilon=1, threshold=2)
    cutter = partition.online(noise=tape_noise(EndlessTape(3)))

    seals = cutter.advance(600)
    later = cutter.advance(400)

    offline = partition.cut(Histogram.from_cells([], size=1000), noise=tape_noise(EndlessTape(3)))
    assert seals == [edge for edge in offline.edges.tolist() if edge < 600] != []
    assert [*later, 999] == [edge for edge in offline.edges.tolist() if edge >= 600] != [999]


@pytest.mark.parametrize("threshold", [10**4, 10**5, 10**6])
@pytest.mark.spread(1)
def test_impossible_seals_do_not_happen(threshold: int) -> None:
    """Where a seal has probability below 2^-10000, runs of 2^63 are passed at once in every path."""
    partition = Partition(size=WIDE, epsilon=1, threshold=threshold)
    data = Histogram.from_cells([2**63], size=WIDE)
    for path in PATHS:
        for seed in range(40):
            cut = partition.cut(data, noise=tape_noise(EndlessTape(seed), path=path))
            assert cut.edges.tolist() == [WIDE - 1]


@pytest.mark.parametrize("first", [0, 1, 2**63, 2**64 - 1])
@pytest.mark.parametrize("second", [0, 1, 2**32, 2**64 - 1])
@pytest.mark.parametrize("path", PATHS)
def test_crafted_words_do_not_fake_seals(first: int, second: int, path: Path) -> None:
    """The extreme words, for the threshold noise and for the seal, leave the universe in one piece."""
    partition = Partition(size=WIDE, epsilon=1, threshold=10**5)
    words = [first, second, *EndlessTape("rest").take(500).tolist()]
    tape = Tape(np.array(words, dtype=np.uint64))

    cut = partition.cut(Histogram.from_cells([2**63], size=WIDE), noise=tape_noise(tape, path=path))

    assert cut.edges.tolist() == [WIDE - 1]


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_shards_cover_the_universe_once(count: int) -> None:
    """Shards follow each other without gap, and their lengths differ by at most one."""
    shards = Partition(size=100, epsilon=1).shards(count)

    assert [cell for shard in shards for cell in shard] == list(range(100))
    assert max(map(len, shards)) - min(map(len, shards)) <= 1


def test_joined_shards_have_at_most_one_segment_more_each() -> None:
    """Without noise, a cut by shards is valid and costs at most one segment per shard."""
    partition = Partition(size=64, epsilon=1, threshold=2)
    data = Histogram.dense([i % 3 for i in range(64)])
    whole = partition.cut(data, noise=ZeroNoise())
    for count in (2, 5, 64):
        parts = [partition.cut(data, within=shard, noise=ZeroNoise()) for shard in partition.shards(count)]

        joined = Cut.join(parts)

        assert (joined.start, joined.last) == (0, 63)
        assert int(data.weigh(joined).sum()) == data.total
        assert len(whole) <= len(joined) <= len(whole) + count


def test_a_shard_is_cut_from_its_own_items_only() -> None:
    """On one tape the cut of a shard is the cut of its items as a universe of their own, moved."""
    partition = Partition(size=60, epsilon=1, threshold=3)
    counts = [i % 4 for i in range(60)]
    shard = range(20, 40)
    alone = Partition(size=20, epsilon=1, threshold=3)

    cut = partition.cut(Histogram.dense(counts), within=shard, noise=tape_noise(EndlessTape(5)))
    own = alone.cut(Histogram.dense(counts[20:40]), noise=tape_noise(EndlessTape(5)))

    assert (cut.start, cut.edges.tolist()) == (20, [edge + 20 for edge in own.edges.tolist()])
    assert Histogram.dense(counts).weigh(cut).tolist() == Histogram.dense(counts[20:40]).weigh(own).tolist()


def _cut(start: int, *edges: int, guarantee: Guarantee | None = None) -> Cut:
    return Cut(edges=np.array(edges, dtype=np.uint64), start=start, guarantee=guarantee)


@pytest.mark.parametrize(
    "cuts",
    [
        [],
        [_cut(0, 4), _cut(6, 9)],
        [_cut(0, 4), _cut(4, 9)],
        [_cut(5, 9), _cut(0, 4)],
        [_cut(0, 4), _cut(5, 9, guarantee=Guarantee(epsilon=1))],
    ],
    ids=["none", "gap", "overlap", "order", "guarantees"],
)
def test_cuts_that_do_not_fit_are_not_joined(cuts: list[Cut]) -> None:
    """Cuts join only if they follow each other and carry one guarantee."""
    with pytest.raises(InvalidParameter) as error:
        Cut.join(cuts)

    assert error.value.parameter == "cuts"


@pytest.mark.parametrize("edges", [[], [3, 3], [3, 2], [1]], ids=str)
def test_edges_must_increase_from_the_start(edges: list[int]) -> None:
    """A cut without segments, with repeated or falling edges, or that ends before it starts is refused."""
    with pytest.raises(InvalidParameter, match=r"^(edges must be increasing|start must not lie behind)"):
        _cut(2, *edges)


@pytest.mark.parametrize(("size", "threshold", "refused"), [(2**64, 29, True), (2**64, 30, False)])
def test_floods_of_empty_segments_are_refused_in_public(size: int, threshold: int, refused: bool) -> None:
    """D a^(T+1) / (1+a) crosses a million between thresholds 29 and 30, and nothing else is asked."""
    a = 2.718281828459045**-1
    expected = size * a ** (threshold + 1) / (1 + a)

    assert refused == (expected >= 10**6)
    if refused:
        with pytest.raises(InvalidParameter, match=r"^threshold must keep"):
            Partition(size=size, epsilon=1, threshold=threshold)
    else:
        made = Partition(size=size, epsilon=1, threshold=threshold)
        assert float(made.empty_segments) == pytest.approx(expected)


@pytest.mark.parametrize(
    "data",
    [
        [3, 2],
        [-1],
        [1.0],
        [float("nan")],
        [True],
        [8],
        [2**64],
        [[1, 2]],
        ["1"],
        [None],
        7,
        Histogram.dense([1, 2]),
        Histogram.dense([0] * 8, contributions=2),
    ],
    ids=repr,
)
def test_bad_data_is_refused_before_any_draw(data: Any) -> None:
    """Cells that are unsorted, negative, no integers or not in the universe draw no noise."""
    with pytest.raises((InvalidData, InvalidParameter)):
        Partition(size=8, epsilon=1).cut(data, noise=ForbiddenNoise())


@pytest.mark.parametrize("within", [range(0), range(9), range(-1, 3), range(0, 8, 2), range(5, 3)], ids=str)
def test_a_bad_range_is_refused_before_any_draw(within: range) -> None:
    """A shard must be a non-empty run of cells."""
    with pytest.raises(InvalidParameter, match=r"^within must be a non-empty range"):
        Partition(size=8, epsilon=1).cut([1], within=within, noise=ForbiddenNoise())


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"size": 2**64 + 1}, "size"),
        ({"beta": 0}, "beta"),
        ({"beta": 1}, "beta"),
        ({"beta": "nan"}, "beta"),
        ({"law": "normal"}, "law"),
        ({"threshold": -1}, "threshold"),
        ({"threshold": 1.5}, "threshold"),
        ({"threshold": True}, "threshold"),
        ({"threshold": "low"}, "threshold"),
        ({"neighbors": "cousins"}, "neighbors"),
        ({"contributions": 0}, "contributions"),
    ],
    ids=str,
)
def test_bad_parameters_are_named(changes: dict[str, Any], name: str) -> None:
    """The error names the parameter that breaks its rule."""
    with pytest.raises(InvalidParameter) as error:
        Partition(**{"size": 8, "epsilon": 1, **changes})

    assert error.value.parameter == name


BAD_CALLS: list[tuple[str, Callable[[Any], object]]] = [
    ("position goes back", lambda cutter: cutter.update(2)),
    ("position beyond the end", lambda cutter: cutter.update(100)),
    ("position is a float", lambda cutter: cutter.update(5.0)),
    ("position is a bool", lambda cutter: cutter.update(True)),
    ("position is text", lambda cutter: cutter.update("5")),
    ("weight is negative", lambda cutter: cutter.update(5, -1)),
    ("weight is huge", lambda cutter: cutter.update(5, 2**62)),
    ("weight is a float", lambda cutter: cutter.update(5, 1.0)),
    ("run is negative", lambda cutter: cutter.advance(-1)),
    ("run beyond the end", lambda cutter: cutter.advance(98)),
    ("run is a float", lambda cutter: cutter.advance(1.0)),
]


@pytest.mark.parametrize("call", [call for _, call in BAD_CALLS], ids=[name for name, _ in BAD_CALLS])
def test_an_error_changes_nothing_in_a_cutter(call: Callable[[Any], object]) -> None:
    """A refused call leaves the position, the tape and the cut to come as they were."""
    partition = Partition(size=100, epsilon=1, threshold=2)
    tapes = EndlessTape(9), EndlessTape(9)
    failed, plain = (partition.online(noise=tape_noise(tape)) for tape in tapes)
    for cutter in (failed, plain):
        cutter.update(3, 2)

    with pytest.raises(PartitaError):
        call(failed)

    assert (failed.position, tapes[0].used) == (plain.position, tapes[1].used)
    assert failed.finish() == plain.finish()


def test_a_finished_cutter_takes_nothing_more_and_gives_the_same_cut_again() -> None:
    """After `finish` the position is the size; items are refused, an empty run and `finish` are harmless."""
    cutter = Partition(size=50, epsilon=1, threshold=1).online(noise=tape_noise(EndlessTape(2)))
    cut = cutter.finish()

    with pytest.raises(InvalidData):
        cutter.update(50)

    assert (cutter.position, cutter.advance(0)) == (50, [])
    assert cutter.finish() == cut


def test_only_system_noise_carries_the_guarantee() -> None:
    """A cut on a tape promises nothing, offline or online; a cut with system noise what was asked for."""
    partition = Partition(size=8, epsilon="1/2")

    assert partition.cut([1, 2]).guarantee == partition.guarantee == Guarantee(epsilon=Fraction(1, 2))
    assert partition.online(noise=SYSTEM).finish().guarantee == partition.guarantee
    assert partition.cut([1, 2], noise=tape_noise(EndlessTape(0))).guarantee is None
    assert partition.online(noise=tape_noise(EndlessTape(0))).finish().guarantee is None


def test_scales_follow_neighbors_and_contributions() -> None:
    """The scale is 1/epsilon, twice that for change-one, and w times it for w rows a person."""
    scales = [
        Partition(size=8, epsilon="1/2", neighbors=neighbors, contributions=rows).scale
        for neighbors in ("add-remove", "change-one")
        for rows in (1, 3)
    ]

    assert scales == [2, 6, 4, 12]


def test_cuts_compare_and_hash_by_value() -> None:
    """Equal edges, start and guarantee make equal cuts, and their edges cannot be written."""
    assert _cut(0, 3, 7) == _cut(0, 3, 7) != _cut(0, 4, 7)
    assert len({_cut(0, 3, 7), _cut(0, 3, 7), _cut(1, 3, 7)}) == 2
    assert _cut(0, 3) != "a cut"
    with pytest.raises(ValueError, match="read-only"):
        _cut(0, 3).edges[0] = 1
