"""The protocol of the benchmark over several columns: the same boxes, the same truth, honest peers."""

from __future__ import annotations

import json
import os
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from benchmarks.accuracy import __main__ as program
from benchmarks.accuracy import boxes_breaking, boxes_raw
from benchmarks.accuracy.bars import Bars
from benchmarks.accuracy.boxes_peers import ANCHORED, PEERS, BoxPeer, Tiles, grid_shape, leaves, privtree
from benchmarks.accuracy.boxes_queries import BoxQueries, plain_axes
from benchmarks.accuracy.boxes_work import (
    SETS,
    WORKLOADS,
    flat_peers,
    flat_shapes,
    flat_work,
    raw_corners,
    raw_peers,
    raw_points,
    stored,
)
from benchmarks.accuracy.coverage import measured
from benchmarks.accuracy.ours import Ours, release
from benchmarks.accuracy.queries import Work, misses
from benchmarks.accuracy.score import Json, geometric_mean
from benchmarks.speed.__main__ import with_data
from partita import Points

here = pytest.mark.skipif(
    not Path(os.environ.get("PARTITA_DATA", ""), "work_boxes.npz").is_file(), reason="PARTITA_DATA is not set"
)

NEARLY_EXACT = "1000000"
SHAPES = ((1, 1), (5, 1), (4, 6), (3, 5, 2), (2, 3, 2, 2))


def some_points(sizes: tuple[int, ...], n: int = 60) -> Points:
    rng = np.random.default_rng(sizes)
    rows = np.stack([rng.integers(0, size, n) for size in sizes], axis=1)
    return Points.from_rows(rows, axes=plain_axes(sizes))


def all_boxes(sizes: tuple[int, ...]) -> BoxQueries:
    sides = [[(low, high) for low in range(size) for high in range(low, size)] for size in sizes]
    corners = np.array(list(product(*sides)), np.uint64)
    return BoxQueries(corners[:, :, 0], corners[:, :, 1])


@pytest.mark.parametrize("sizes", SHAPES)
def test_truth_counts_the_points_of_every_box(sizes: tuple[int, ...]) -> None:
    """The truth of every box is the sum of the cells in it."""
    points, boxes = some_points(sizes), all_boxes(sizes)
    cells = np.zeros(sizes, np.int64)
    cells[tuple(points.places.T.astype(np.int64))] = points.counts

    expected = [
        cells[tuple(slice(low, high + 1) for low, high in zip(*corner, strict=True))].sum()
        for corner in zip(boxes.lows.tolist(), boxes.highs.tolist(), strict=True)
    ]

    assert boxes.truth(points).tolist() == expected


def test_half_open_boxes_lose_their_last_cells() -> None:
    """[2, 4) x [0, 1) holds the cells 2 and 3 of the first axis and 0 of the second."""
    boxes = BoxQueries.half_open(np.array([[2, 0]]), np.array([[4, 1]]))

    assert (boxes.lows.tolist(), boxes.highs.tolist()) == ([[2, 0]], [[3, 0]])


@pytest.mark.parametrize("peer", [PEERS["UGrid"], PEERS["PrivTree"]])
@pytest.mark.parametrize("sizes", SHAPES)
def test_almost_without_noise_every_box_is_right(peer: BoxPeer, sizes: tuple[int, ...]) -> None:
    """With a huge epsilon a peer that can cut down to cells answers every box with the truth."""
    points, boxes = some_points(sizes), all_boxes(sizes)

    answers = peer(points, NEARLY_EXACT)(boxes.lows, boxes.highs)

    np.testing.assert_allclose(answers, boxes.truth(points), atol=1e-2)


def test_independent_columns_are_products() -> None:
    """Almost without noise the product of marginals is right where columns are independent."""
    axes, cells = plain_axes((4, 3)), np.outer([4, 0, 2, 6], [1, 3, 2])
    points = Points.from_rows(np.argwhere(cells), axes=axes, counts=cells[cells > 0])
    boxes = all_boxes((4, 3))

    answers = PEERS["Independent"](points, NEARLY_EXACT)(boxes.lows, boxes.highs)

    np.testing.assert_allclose(answers, boxes.truth(points), atol=1e-2)


@pytest.mark.parametrize("sizes", [(1, 1), (3, 1000), (2**40, 3), (2**32, 2**20, 5)])
def test_leaves_of_privtree_tile_everything(sizes: tuple[int, ...]) -> None:
    """The leaves hold every row once, and their volumes add up to that of the whole."""
    rng = np.random.default_rng(len(sizes))
    rows = np.stack([rng.integers(0, size, 400) for size in sizes], axis=1)
    points = Points.from_rows(rows, axes=plain_axes(sizes))

    lows, stops, held = (np.concatenate(parts) for parts in zip(*leaves(points, 1.0, rng), strict=True))

    assert held.sum() == 400
    assert (stops - lows).prod(axis=1).sum() == pytest.approx(float(np.prod([float(s) for s in sizes])))
    assert (
        BoxQueries(lows.astype(np.uint64), (stops - 1).astype(np.uint64)).truth(points).tolist()
        == held.tolist()
    )


def test_tiles_and_grids_agree() -> None:
    """A grid answers as its tiles would, one by one."""
    points, boxes = some_points((16, 9), n=500), all_boxes((16, 9)).some(200)
    few = partial(PEERS["UGrid"], points, "0.5")
    counts = few(rng=np.random.default_rng(1))
    cells = np.argwhere(np.ones((16, 9))).astype(np.uint64)
    single = Tiles(cells.astype(np.float64), cells.astype(np.float64) + 1, counts(cells, cells))

    np.testing.assert_allclose(counts(boxes.lows, boxes.highs), single.counts(boxes.lows, boxes.highs))


def test_grids_fit_short_axes() -> None:
    """An axis of few cells gets no more tiles than cells, and the other gets what it leaves over."""
    points = Points.from_rows([[0, 0]], axes=plain_axes((10**6, 2)), counts=[10**5])

    assert grid_shape(points, 1.0) == [5000, 2]
    assert grid_shape(Points.from_rows([], axes=plain_axes((7, 7))), 1.0) == [1, 1]


def test_totals_of_peers_are_unbiased() -> None:
    """The mean of 300 noisy totals is within five standard errors of the truth, for every peer."""
    points, everything = (
        some_points((4, 6)),
        BoxQueries(np.zeros((1, 2), np.uint64), np.array([[3, 5]], np.uint64)),
    )
    for peer in PEERS.values():
        rng = np.random.default_rng(7)
        totals = [peer(points, "1", rng)(everything.lows, everything.highs)[0] for _ in range(300)]

        assert abs(np.mean(totals) - points.total) < 5 * np.std(totals) / 300**0.5


def test_a_box_release_is_measured_like_any_other() -> None:
    """A grid's error over all boxes of one cell is that of its noise, over 200 fresh releases."""
    points, cells = some_points((8, 8)), np.argwhere(np.ones((8, 8))).astype(np.uint64)
    work = Work("small", points.total, "1.0", points, {"cell": BoxQueries(cells, cells)})

    found = misses(Ours("grid"), work, 200)["cell"]

    assert pytest.approx(2 * np.exp(-1) / (1 - np.exp(-2)), rel=0.07) == found.L1


def test_bars_of_boxes_are_those_of_answers() -> None:
    """Values and standard errors of many boxes are those of the answers to each alone."""
    points, boxes = some_points((4, 6)), all_boxes((4, 6)).some(12)
    made = release("grid", points, "1.0")

    bars, alone = Bars.of(made, boxes, boxes.truth(points)), boxes.alone(made)

    np.testing.assert_allclose(bars.values, [answer.value for answer in alone])
    np.testing.assert_allclose(bars.errors, [answer.error for answer in alone])


def test_coverage_of_boxes_follows_the_rule() -> None:
    """A grid's bars of 95% hold for more than 80% of its boxes, and most guaranteed bounds hold."""
    points = some_points((6, 6), n=20_000)
    work = Work("small", points.total, "0.5", points, {"box": all_boxes((6, 6))})

    found = measured("grid", work, 20)["box"]

    assert found["covered"]["95"] > 0.8
    assert found["worst_asked"] == 20
    assert found["worst_failed"] <= 10


def test_breaking_cases_hold_their_rows() -> None:
    """Boxes are in their axes, the whole box holds everybody, and two cases have nobody, two one person."""
    works = [boxes_breaking.case_work(case, "1.0") for case in boxes_breaking.CASES]

    assert sorted(work.n for work in works)[:5] == [0, 0, 1, 1, boxes_breaking.ROWS]
    for work in works:
        last = [axis.width - 1 for axis in work.data.axes]
        whole = work.queries["whole"]
        assert whole.highs.tolist() == [last]
        assert whole.truth(work.data).tolist() == [work.n]
        for boxes in work.queries.values():
            assert (boxes.lows <= boxes.highs).all()
            assert (boxes.highs <= np.array(last, np.uint64)).all()


def test_raw_totals_pool_the_lists_of_each_number_of_columns() -> None:
    """Sets with more columns do not count in the total of two."""
    rows: list[Json] = [
        {"dataset": str(columns), "n": 1000, "epsilon": "1.0", "columns": columns}
        | {f"{kind}_ratio": float(columns) for kind in WORKLOADS}
        for columns in boxes_raw.DIMENSIONS
    ]

    found = {total["total"]: total for total in boxes_raw.summary(rows)}

    assert found["2 columns"]["ratio"] == 2
    assert found["2 columns"]["met"] is False
    assert found["3 to 6 columns"]["ratio"] == geometric_mean([3, 4, 5, 6])
    assert found["3 to 6 columns"]["cells"] == 16


def test_a_named_mechanism_is_used_where_it_fits() -> None:
    """A mechanism over boxes leaves rows along an axis alone, and the other way round."""
    assert program.measured_by("grid") == {"boxes": "grid"}
    assert program.measured_by("tree") == {"mechanism": "tree"}
    assert program.measured_by(None) == {}


def test_rows_without_their_data_are_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without the folder the speed of flights is not measured, and that is said."""
    monkeypatch.delenv("PARTITA_DATA", raising=False)

    assert with_data(["words", "boxes-flights-wide", "boxes-uniform"]) == ["words", "boxes-uniform"]
    assert "boxes-flights-wide left out" in capsys.readouterr().err


@here
def test_flat_boxes_are_those_of_the_anchors() -> None:
    """Uniform has no luck at n = 10^6: its error is the anchor's to three digits."""
    for dataset, n, epsilon in flat_shapes():
        if n == 10**6:
            found = misses(ANCHORED["Uniform"], flat_work(dataset, n, epsilon), 1)["box"]
            anchor = flat_peers(dataset, n, epsilon, ("Uniform",))["box"]["Uniform"]

            assert pytest.approx(anchor, rel=1e-3) == found.L1


@here
@pytest.mark.parametrize("name", [name for name in SETS if name != "fl3"])
def test_raw_truths_are_those_of_the_file(name: str) -> None:
    """Our points give exactly the true counts that lie beside the boxes."""
    for kind in WORKLOADS:
        truth = BoxQueries.half_open(*raw_corners(name, kind)).truth(raw_points(name))

        assert truth.tolist() == stored("work_boxes.npz")[f"{name}:{kind}:truth"].tolist()


@here
def test_sampled_flights_are_those_of_the_file() -> None:
    """The million flights are the same ones: twenty small boxes hold what the file says."""
    boxes = BoxQueries.half_open(*raw_corners("fl3", "small"))
    truth = stored("work_boxes.npz")["fl3:small:truth"]

    assert boxes.at(np.arange(20)).truth(raw_points("fl3")).tolist() == truth[:20].tolist()


@here
def test_privtree_is_as_good_as_its_anchors() -> None:
    """On the raw sets of two columns it is within 15% of the anchors, over both epsilon and all lists."""
    peer, ratios = partial(privtree, rng=np.random.default_rng(5)), []
    for name, epsilon in product(("zip2", "dia2", "gss2"), ("0.1", "1.0")):
        boxes = {kind: BoxQueries.half_open(*raw_corners(name, kind)) for kind in WORKLOADS}
        found = misses(peer, Work(name, 0, epsilon, raw_points(name), boxes), 3)
        ratios += [found[kind].L1 / raw_peers(name, epsilon)[kind]["PrivTree"] for kind in WORKLOADS]

    assert geometric_mean(ratios) == pytest.approx(1, abs=0.15)


@here
def test_rows_over_boxes_are_json(capsys: pytest.CaptureFixture[str]) -> None:
    """The program prints one object for each cell and the total, for the mechanism that was named."""
    assert program.main(["--rows", "boxes2d", "--trials", "1", "--mechanism", "grid"]) == 0

    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(rows) == len(flat_shapes()) + 1
    assert rows[-1]["total"] == "box"
