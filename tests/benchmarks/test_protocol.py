"""The protocol of the benchmark: the same questions, the same truth, honest scores."""

import json
import os
import pickle
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from benchmarks.accuracy import __main__ as program
from benchmarks.accuracy import breaking, peers, raw
from benchmarks.accuracy.bars import Bars
from benchmarks.accuracy.draws import FAMILIES, at_bits, three_kinds
from benchmarks.accuracy.ours import constants
from benchmarks.accuracy.queries import Counts, Misses, Queries, Work, misses
from benchmarks.accuracy.rows import Plan
from benchmarks.accuracy.score import Goal, cell_row, geometric_mean, totals
from benchmarks.accuracy.table import table
from benchmarks.accuracy.work import anchors_1d, peers_1d, shape_work, shapes
from partita import Histogram
from partita.arrays import Floats, UInts

here = pytest.mark.skipif(
    not Path(os.environ.get("PARTITA_DATA", ""), "work_1d.npz").is_file(), reason="PARTITA_DATA is not set"
)


def exact(histogram: Histogram, epsilon: str) -> Counts:
    return lambda lows, highs: Queries(lows, highs).truth(histogram)


def one_too_many(histogram: Histogram, epsilon: str) -> Counts:
    return lambda lows, highs: Queries(lows, highs).truth(histogram) + 1


def small_work() -> Work[Histogram]:
    prefixes = Queries.prefixes(np.arange(4, dtype=np.uint64))
    return Work("small", 10, "0.1", Histogram.dense([4, 0, 5, 1]), {"prefix": prefixes})


def test_truth_counts_cells_that_floats_cannot_tell_apart() -> None:
    """Truth is exact at the top of the widest universe."""
    top = 2**64 - 1
    histogram = Histogram.from_cells([0, top - 1, top, top], size=2**64)
    ends = np.array([top - 1, top], np.uint64)

    assert Queries(ends, ends).truth(histogram).tolist() == [1, 2]
    assert Queries.prefixes(ends).truth(histogram).tolist() == [2, 4]


def test_half_open_ranges_lose_their_last_cell() -> None:
    """[2, 4) holds the cells 2 and 3."""
    queries = Queries.half_open(np.array([2]), np.array([4]))

    assert (queries.lows.item(), queries.highs.item()) == (2, 3)


def test_misses_are_means_over_trials() -> None:
    """An exact method misses nothing; one that adds a person misses every question by one."""
    nothing, one = (misses(method, small_work(), 3)["prefix"] for method in (exact, one_too_many))

    assert (nothing.L1, nothing.RMSE, nothing.largest) == (0, 0, 0)
    assert (one.L1, one.RMSE, one.largest, one.spread) == (1, 1, 1, 0)


def test_the_best_peer_is_the_least() -> None:
    """A cell's ratio is our mean error over the least of the peers."""
    found = {"prefix": Misses(L1=3.0, RMSE=4.0, largest=9.0, spread=0.1)}

    row = cell_row("row", small_work(), found, {"prefix": {"good": 2.0, "bad": 5.0}})

    assert (row["prefix_peer"], row["prefix_ratio"]) == ("good", 1.5)


@pytest.mark.parametrize(
    ("goal", "met"),
    [
        (Goal(ratio=1.0), True),
        (Goal(ratio=0.9), False),
        (Goal(worst=1.9), False),
        (Goal(worst_weak=0.4), False),
        (Goal(worst=2.0, worst_weak=0.5), True),
        (Goal(), None),
    ],
)
def test_a_goal_is_met_in_every_part_or_not_at_all(goal: Goal, met: bool | None) -> None:
    """Geometric mean, worst cell, and worst cell of small n epsilon are all checked."""
    rows = [
        {"dataset": "a", "n": 1000, "epsilon": "0.1", "q_ratio": 0.5},
        {"dataset": "b", "n": 1000, "epsilon": "1.0", "q_ratio": 2.0},
    ]

    (total,) = totals("row", rows, {"q": goal})

    assert total["ratio"] == geometric_mean([0.5, 2.0]) == 1
    assert total["met"] is met
    assert total["worst"].startswith("2 b")
    assert total["worst_weak"].startswith("0.5 a")


def test_bars_cover_what_they_should() -> None:
    """A bar of two standard errors holds a truth one away, not one three away; none goes below zero."""
    bars = Bars(values=np.array([5.0, 5.0, -9.0]), errors=np.ones(3), truth=np.array([6.0, 8.0, 0.0]))

    assert bars.covered(0.95) == pytest.approx(2 / 3)
    assert bars.largest == 9
    assert bars.interval(0.95)[0].min() == 0 == bars.interval(0.95)[1][2]


def test_stretched_values_keep_their_order() -> None:
    """In 2^64 cells the high 32 bits are the old value, in 2^16 its high bits."""
    rng = np.random.default_rng(0)
    values = FAMILIES["lognorm"](1000, rng)

    assert (at_bits(values, 64, rng) >> np.uint64(32) == values).all()
    assert (at_bits(values, 16, rng) == values // np.uint64(2**16)).all()


def test_questions_stay_in_the_universe() -> None:
    """Low is never above high, nor high outside, in any kind of question."""
    rng = np.random.default_rng(0)
    for size in (1, 3, 2**64):
        values: UInts = rng.integers(0, size - 1, 50, np.uint64, endpoint=True)
        for queries in three_kinds(values, size, rng).values():
            assert (queries.lows <= queries.highs).all()
            assert int(queries.highs.max()) < size


def test_a_released_total_pays_for_its_constants() -> None:
    """Below the border the spending tree is told at least 400/epsilon, and then without a scale."""
    few, many = (constants("spending-tree", n, Fraction(1), Fraction(100)) for n in (10, 10**6))

    assert few == {"total": 400, "branching": 8, "growth": "3/4", "worth": 20}
    assert many["branching"] == 16
    assert many["total_scale"] == 100
    assert constants("partition-tents", 10, Fraction(1), Fraction(1)) == {}


def test_infinite_and_negative_answers_are_not_sane(monkeypatch: pytest.MonkeyPatch) -> None:
    """A breaking case remembers one bad answer among good ones."""
    for bad in (np.nan, np.inf, -1.0):
        checked = breaking.Checked("any")

        def answers(lows: UInts, highs: UInts, bad: float = bad) -> Floats:
            return np.array([1.0, bad])

        monkeypatch.setattr(checked, "method", lambda histogram, epsilon, found=answers: found)
        checked(small_work().data, "1")(np.zeros(2, np.uint64), np.ones(2, np.uint64))

        assert not checked.finite


def test_breaking_cases_are_in_their_universes() -> None:
    """Every case is a histogram with questions; two have nobody, two one person, four a hundred or fewer."""
    sizes = [breaking.case_work(case, "1.0").n for case in breaking.CASES]

    assert sorted(sizes)[:6] == [0, 0, 1, 1, 100, 100]


def test_tables_show_every_total() -> None:
    """Totals with the same columns share a table; lists and groups are spelled out."""
    text = table([{"row": "a", "met": False}, {"row": "b", "met": None}, {"row": "c", "by": {"x": 0.12345}}])

    assert text.splitlines()[0] == "| row | met |"
    assert "NO" in text
    assert "x: 0.123" in text


def test_without_the_data_the_program_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A missing folder is a message and exit status 2."""
    monkeypatch.delenv("PARTITA_DATA", raising=False)

    assert program.main(["--rows", "paper", "--mechanism", "intervals-paper", "--against", "tree"]) == 2
    assert "PARTITA_DATA" in capsys.readouterr().err


@here
def test_every_row_has_cells_that_travel() -> None:
    """Cells of every row can be sent to another process."""
    for row in program.ROWS.values():
        cells = row.cells(Plan())

        assert len(pickle.loads(pickle.dumps(cells))) == len(cells) > 0


@here
def test_the_questions_are_those_of_the_anchors() -> None:
    """Uniform has no luck at n = 10^7: its error on ranges and prefixes is the anchor's to four digits."""
    for dataset, n, epsilon in shapes():
        if n == 10**7:
            found = misses(peers.uniform, shape_work(dataset, n, epsilon), 1)
            anchor = peers_1d(dataset, n, epsilon, ("Uniform",))

            for query in ("range", "prefix"):
                assert pytest.approx(anchor[query]["Uniform"], rel=1e-3) == found[query].L1


@here
def test_peers_are_as_good_as_the_anchors() -> None:
    """Over all cells and ten releases each, Hb and PrivTree are within 10% and 15% of their anchors."""
    for name, near in (("Hb", 0.1), ("PrivTree", 0.15)):
        peer = partial(peers.PEERS[name], rng=np.random.default_rng(5))
        found = [misses(peer, shape_work(*key), 10)["range"].L1 for key in shapes()]
        anchors = [anchors_1d()[key][name]["range_L1"] for key in shapes()]

        assert geometric_mean(np.divide(found, anchors)) == pytest.approx(1, abs=near)


@here
def test_raw_columns_are_scaled_from_public_bounds() -> None:
    """Every record lands in one of 4,096 cells, and a drawn shape has exactly n rows."""
    counts = raw.scaled("diamonds", "price")

    assert counts.size == 4096
    assert counts.sum() == 53_940
    assert raw.resampled(counts, 1000).sum() == 1000
    assert counts[326 * 4096 // 32768] > 0


@here
def test_rows_are_json(capsys: pytest.CaptureFixture[str]) -> None:
    """The program prints one object for each cell and the totals of each peer."""
    arguments = ["--rows", "peers", "--trials", "1", "--mechanism", "tree", "--against", "tree"]

    assert program.main(arguments) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert sum("total" in row for row in rows) == 2 * len(peers.ANCHORED)
    assert len(rows) == len(peers.ANCHORED) * (len(shapes()) + 2)
