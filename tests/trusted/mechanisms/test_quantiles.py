"""Quantiles alone: exact without noise, bounds that hold, one answer from a file, and what is refused."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import partita as pt
from partita.errors import InvalidParameter, InvalidRelease
from partita.public.axis.base import Parts
from partita.public.axis.quantile_plan import ColumnLook, plan_levels, share_levels
from partita.public.axis.quantiles import QuantileRelease
from partita.public.file import decode, encode
from partita.testing import EndlessTape, Scattered, ZeroNoise, check_mechanism, tape_noise
from partita.trusted.mechanisms.quantiles import QuantileSelection
from partita.trusted.secret import Histogram

SCHEMA = {"salary": pt.Integer(0, 10**5)}
DECILES = [Fraction(k, 10) for k in range(1, 10)]


def _column(seed: int = 0, rows: int = 2000, size: int = 10**5) -> Histogram:
    drawn = np.random.default_rng(seed)
    return Histogram.from_cells(
        np.clip(drawn.normal(size / 2, size / 9, rows), 0, size - 1).astype(np.uint64), size=size
    )


def _missed(column: Histogram, cells: Any, quantiles: Any) -> list[float]:
    """Rows between each cell and its rank."""
    upto = np.concatenate([[0], np.cumsum(column.counts)])
    below = upto[np.searchsorted(column.cells, cells, "left")]
    most = upto[np.searchsorted(column.cells, cells, "right")]
    ranks = [float(each) * column.total for each in quantiles]
    return [max(0.0, b - rank, rank - u) for b, u, rank in zip(below, most, ranks, strict=True)]


def test_the_mechanism_passes_all_checks() -> None:
    """Frozen, documented, noise by its bound, bad input refused before any draw."""
    check_mechanism(QuantileSelection)


@pytest.mark.parametrize("quantiles", ["1/2", "1/7", 2, 9, 40])
def test_without_noise_ranks_are_met(quantiles: Any) -> None:
    """One quantile misses nothing, several a row on each level."""
    column, mechanism = _column(), QuantileSelection(size=10**5, epsilon=1000, quantiles=quantiles)
    released = mechanism.release(column, noise=ZeroNoise())

    missed = _missed(column, released.cells, mechanism.quantiles)

    assert max(missed) <= (0 if len(missed) == 1 else len(mechanism.levels))
    assert released.guarantee is None


@pytest.mark.parametrize("size", [1, 2, 7, 2**40, 2**63, 2**64])
@pytest.mark.parametrize("quantiles", ["2/5", 3])
def test_every_size_and_every_column_is_answered(size: int, quantiles: Any) -> None:
    """Empty columns, one row at an end, a heap; cells lie in the column and in order."""
    mechanism = QuantileSelection(size=size, epsilon=1, quantiles=quantiles, interval=True)
    for cells in ([], [0], [size - 1], [size // 2] * 50):
        released = mechanism.release(Histogram.from_cells(np.array(cells, np.uint64), size=size))
        found = [int(each) for each in released.cells]
        assert found == sorted(found)
        assert 0 <= found[0] <= found[-1] < size
        for place, (low, high) in enumerate(zip(released.ends[::2], released.ends[1::2], strict=True)):
            assert int(low) <= found[place] <= int(high) < size


def test_a_release_is_the_same_on_the_same_tape_wherever_the_counts_are() -> None:
    """Counts in shards on other machines are brought together first."""
    column, mechanism = _column(rows=300), QuantileSelection(size=10**5, epsilon=100, quantiles=9)
    found = [
        mechanism.release(data, noise=tape_noise(EndlessTape(5))).cells.tolist()
        for data in (column, Scattered(column, shards=3))
    ]

    assert found[0] == found[1]


def test_ranks_keep_their_bounds() -> None:
    """Forty columns and heaps: none of 400 ranks is off by more than its bound at 5%."""
    for seed in range(20):
        heap = Histogram.from_cells(np.full(200, 17, np.uint64), size=10**5)
        for column in (_column(seed, rows=300), heap):
            for quantiles in ("1/2", 9):
                mechanism = QuantileSelection(size=10**5, epsilon=1, quantiles=quantiles)
                released = mechanism.release(column, noise=tape_noise(EndlessTape((seed, str(quantiles)))))
                missed = _missed(column, released.cells, mechanism.quantiles)
                assert all(miss <= released.reach(k, 0.05) for k, miss in enumerate(missed))


def test_bought_intervals_hold_the_true_quantile() -> None:
    """In 60 of 60 columns; 57 are promised."""
    held = 0
    for seed in range(60):
        column = (
            _column(seed, rows=500)
            if seed % 2
            else Histogram.from_cells(np.full(90, seed, np.uint64), size=10**5)
        )
        mechanism = QuantileSelection(size=10**5, epsilon=1, interval=True)
        released = mechanism.release(column, noise=tape_noise(EndlessTape(seed)))
        ordered = np.repeat(column.cells, column.counts)
        low, high = released.interval(0) or (0, 0)
        held += low <= int(ordered[(ordered.size - 1) // 2]) <= high

    assert held >= 57


def test_levels_share_epsilon_exactly() -> None:
    """Shares are fractions that add up to one, and a row is between the ends of one node of a level."""
    for quantiles in ([Fraction(1, 2)], DECILES, [Fraction(1, 100), Fraction(1, 50), Fraction(99, 100)]):
        levels = plan_levels(quantiles)
        assert sum(share_levels(levels)) == 1
        assert sorted(node.number for nodes in levels for node in nodes) == list(range(len(quantiles)))
        for nodes in levels:
            ends = [(node.left, node.right) for node in nodes]
            assert all(a[1] <= b[0] for a, b in pairwise(ends))


def _deep(cells: list[int], epsilon: Any = 1, size: int = 10**5) -> tuple[int, ...]:
    """What the look of deciles says without noise."""
    column = Histogram.from_cells(np.array(cells, np.uint64), size=size)
    mechanism = QuantileSelection(size=size, epsilon=epsilon, quantiles=9)
    return tuple(mechanism.release(column, noise=ZeroNoise()).depths.tolist())


def test_a_row_is_counted_once_by_how_deep_it_lies_in_its_cell() -> None:
    """The first eleven rows of a cell at epsilon 0.98, the next to 103, and those beyond."""
    assert _deep([]) == (0, 0, 0)
    assert _deep(list(range(40))) == (40, 0, 0)
    assert _deep([7] * 20 + [8] * 5) == (16, 9, 0)
    assert _deep([7] * 500) == (11, 92, 397)


def _split(size: int, *depths: int) -> Fraction:
    """The part of a level that cuts heaps, after a look."""
    levels = plan_levels(DECILES)
    rates = tuple(share_levels(levels))
    return ColumnLook(size, depths, Fraction(50), levels, rates).split


def test_heaps_get_more_for_their_cuts() -> None:
    """Nothing clear, few rows in heaps, many rows, few cells; noise is not taken for heaps."""
    assert _split(10**6, 10**5, 0, -80) == _split(10**6, 300, 140, 0) == Fraction(1, 20)
    assert _split(10**6, 500, 400, 0) == Fraction(1, 10)
    assert _split(10**6, 500, 40_000, 9000) == Fraction(1, 5)
    assert _split(100, 500, 40_000, 9000) == Fraction(1, 3)


@pytest.mark.parametrize("size", [10**5, 2**62 + 1, 2**64])
@pytest.mark.parametrize("quantiles", [2, 9])
def test_heaps_are_found_wherever_they_lie(size: int, quantiles: int) -> None:
    """Five heaps, also at zero and at both ends, of a domain that machine integers hold or not."""
    places = [0, size // 7, size // 3, size // 3 + 1, size - 1]
    column = Histogram.from_cells(np.repeat(np.array(places, np.uint64), 4000), size=size)
    mechanism = QuantileSelection(size=size, epsilon=50, offset=-(size // 3), quantiles=quantiles)

    released = mechanism.release(column, noise=tape_noise(EndlessTape("heaps")))

    assert released.tree is None
    assert max(_missed(column, released.cells, mechanism.quantiles)) == 0


def test_a_file_gives_the_same_answers(tmp_path: Path) -> None:
    """Value, rank, guarantee and report; of a file of version 4."""
    release = pt.publish({"salary": list(range(1000))}, SCHEMA, epsilon=1, mechanism="quantiles", quantiles=9)
    release.save(tmp_path / "deciles")
    loaded = pt.load(tmp_path / "deciles")

    one, other = release.quantile("salary", DECILES), loaded.quantile("salary", DECILES)
    assert [str(each) for each in one] == [str(each) for each in other]
    assert str(one[4]).startswith("rank 50% ± ")
    assert loaded.guarantee == release.guarantee
    assert loaded.report() == release.report()


@pytest.mark.parametrize(
    ("facts", "series"),
    [
        ({"quantiles": ["1/2", "1/4"]}, {}),
        ({"quantiles": []}, {}),
        ({"rates": ["1", "1"]}, {}),
        ({"rates": ["-1"]}, {}),
        ({"rates": ["1/99999999999999999999999999"]}, {}),
        ({"offset": "1/2"}, {}),
        ({"look": "1"}, {}),
        ({"side": "1"}, {}),
        ({"size": 3}, {}),
        ({}, {"cells": np.array([7, 7], np.uint64)}),
        ({}, {"cells": np.array([2**63], np.uint64)}),
        ({}, {"depths": np.array([1])}),
        ({}, {"ends": np.array([1], np.uint64)}),
    ],
)
def test_hostile_parts_are_refused(facts: Any, series: Any) -> None:
    """Whatever a file says, quantiles ascend, rates are those of noise, and cells lie in the column."""
    parts = QuantileSelection(size=10, epsilon=1).release(Histogram.dense([5] * 10)).parts()
    assert QuantileRelease.from_parts(parts, None).parts().digest == parts.digest
    if facts == {"size": 3}:
        parts = Parts(parts.facts, {**parts.series, "cells": np.array([5], np.uint64)})

    with pytest.raises(InvalidRelease):
        QuantileRelease.from_parts(Parts({**parts.facts, **facts}, {**parts.series, **series}), None)


def test_a_release_that_spends_more_than_it_promises_is_refused() -> None:
    """The rates in a file must be within its guarantee."""
    from dataclasses import replace

    release = pt.publish({"salary": [1, 2]}, SCHEMA, epsilon=1, mechanism="quantiles")
    (view,) = release.quantiles
    louder = replace(view, selected=replace(view.selected, rates=(Fraction(2),)))

    with pytest.raises(InvalidRelease, match="noise that is promised"):
        replace(release, quantiles=(louder,))
    assert decode(encode(release)).quantiles[0].selected.rates == (Fraction(1),)


def test_other_questions_are_refused_by_name() -> None:
    """The error says which quantiles were released."""
    release = pt.publish({"salary": [1, 2]}, SCHEMA, epsilon=1, mechanism="quantiles")

    with pytest.raises(InvalidParameter, match="released: 1/2"):
        release.quantile("salary", 0.25)
    for ask in (
        release.count,
        release.error,
        lambda: release.cdf("salary"),
        lambda: release.histogram("salary"),
    ):
        with pytest.raises(InvalidParameter, match="1/2 of 'salary'"):
            ask()
    with pytest.raises(InvalidParameter, match="without conditions"):
        release.quantile("salary", 0.5, salary=(0, 5))


@pytest.mark.parametrize(
    "quantiles", [0, -1, 1000, [], "0", "1", ["1/2", 0.5], "1/1000003", [None], True, {}]
)
def test_shares_outside_of_the_column_are_refused(quantiles: Any) -> None:
    """Before a row is read."""
    with pytest.raises(InvalidParameter) as error:
        pt.publish({}, SCHEMA, epsilon=1, mechanism="quantiles", quantiles=quantiles)

    assert error.value.parameter == "quantiles"


def test_quantiles_need_their_mechanism_and_an_order() -> None:
    """A category has no quantiles, and counts have all of them anyway."""
    with pytest.raises(InvalidParameter, match='pass mechanism="quantiles"'):
        pt.publish({}, SCHEMA, epsilon=1, quantiles=9)
    with pytest.raises(InvalidParameter, match="categories"):
        pt.publish({}, {"town": pt.Category(["a"])}, epsilon=1, mechanism="quantiles")


def test_a_plan_says_which_quantiles_and_how_well() -> None:
    """Without any data."""
    said = str(pt.plan(SCHEMA, epsilon=1, mechanism="quantiles", quantiles=3, rows=1000))

    assert "Quantiles 1/4, 1/2, 3/4 alone" in said
    assert "quantiles of salary" in said


def test_an_answer_without_an_interval_says_so_by_the_domain() -> None:
    """Value intervals are those of the domain unless they were bought; the rank is free."""
    answer: Any = pt.publish({"salary": [5] * 99}, SCHEMA, epsilon=1, mechanism="quantiles").quantile(
        "salary", 0.5
    )

    assert answer.interval() == answer.worst() == (0, 10**5)
    assert answer.rank_interval() == (0.0, 1.0)
    assert answer.rank_error(0.05) < answer.rank_error(0.01)
    assert "rank 50%" in answer._repr_html_()


# Several quantiles that are read off a tree.


def _spiked(seed: int, rows: int = 3000, size: int = 10**5) -> Histogram:
    drawn = np.random.default_rng(seed)
    heaps = drawn.integers(0, size, 12)
    cells = np.where(drawn.random(rows) < 0.1, drawn.integers(0, size, rows), drawn.choice(heaps, rows))
    return Histogram.from_cells(cells.astype(np.uint64), size=size)


@pytest.mark.parametrize(
    ("column", "epsilon", "by_tree"),
    [
        (_column(rows=1000), 1, True),  # few rows
        (_column(rows=1000), 100, False),
        (_spiked(0), 10, False),  # many rows, heaps at odd values
        (Histogram.from_cells(np.repeat(np.arange(40, dtype=np.uint64) * 997, 30), size=10**5), 1, False),
        (Histogram.from_cells(np.repeat(np.array([5, 99, 701], np.uint64), 300), size=10**5), 1, True),
        (Histogram.from_cells(np.repeat(np.array([5, 99, 701], np.uint64), 300), size=10**3), 1, False),
    ],
)
def test_a_tree_is_taken_where_it_is_better(column: Histogram, epsilon: Any, by_tree: bool) -> None:
    """Where rows are few, unless many lie in heaps that are not large, or in few cells."""
    mechanism = QuantileSelection(size=column.size, epsilon=epsilon, quantiles=9)
    released = mechanism.release(column, noise=ZeroNoise())

    assert (released.tree is not None) == by_tree
    assert released.story.startswith("Quantiles were read off") == by_tree


@pytest.mark.parametrize("size", [3, 1000, 10**5, 2**64])
@pytest.mark.parametrize("interval", [False, True])
def test_a_tree_survives_its_file(size: int, interval: bool) -> None:
    """Cells, the look, bounds and cost are those of before."""
    drawn = np.random.default_rng(size % 1009)
    column = Histogram.from_cells(drawn.integers(0, size, 400, np.uint64, endpoint=False), size=size)
    released = QuantileSelection(size=size, epsilon=1, quantiles=3, interval=interval).release(column)
    again = QuantileRelease.from_parts(released.parts(), released.guarantee)

    assert again.parts().digest == released.parts().digest
    assert again.spent == released.spent == 1
    assert [again.reach(k, 0.05) for k in range(3)] == [released.reach(k, 0.05) for k in range(3)]
    assert again.interval(1) == released.interval(1)
    assert not interval or again.interval(1, Fraction(1, 100)) is not None


def test_ranks_and_intervals_of_a_tree_hold() -> None:
    """Of twenty smooth and spiked columns no rank is off by more than its bound, and no interval misses."""
    for seed in range(10):
        for column in (_column(seed, rows=600), _spiked(seed, rows=600)):
            mechanism = QuantileSelection(size=10**5, epsilon=1, quantiles=4, interval=True)
            released = mechanism.release(column, noise=tape_noise(EndlessTape(seed)))
            ordered = np.repeat(column.cells, column.counts)
            missed = _missed(column, released.cells, mechanism.quantiles)
            assert all(miss <= released.reach(k, 0.05) for k, miss in enumerate(missed))
            for index, share in enumerate(mechanism.quantiles):
                low, high = released.interval(index) or (0, 0)
                assert low <= int(ordered[int(np.ceil(float(share) * ordered.size)) - 1]) <= high


@pytest.mark.parametrize(
    ("facts", "gone"),
    [
        ({"tree": "no tree"}, ()),
        ({"tree": {"kind": "quantiles"}}, ()),
        ({"rates": ["1/2"]}, ()),  # the tree costs more than that
        ({"rates": ["1", "1"]}, ()),
        ({"side": "1/9"}, ()),
        ({"size": 11}, ()),
        ({"look": "-1"}, ()),
        ({"look": None}, ()),
        ({}, ("tree",)),
        ({}, ("look",)),
    ],
)
def test_hostile_trees_are_refused(facts: Any, gone: tuple[str, ...]) -> None:
    """A tree has the cells of its column, and costs no more than the release says."""
    mechanism = QuantileSelection(size=10, epsilon=1, quantiles=9)
    parts = mechanism.release(Histogram.dense([5] * 10), noise=tape_noise(EndlessTape("tree"))).parts()
    assert "tree" in parts.facts
    kept = {name: fact for name, fact in {**parts.facts, **facts}.items() if name not in gone}

    with pytest.raises(InvalidRelease):
        QuantileRelease.from_parts(Parts(kept, parts.series), None)


def test_deciles_of_few_rows_answer_from_a_file(tmp_path: Path) -> None:
    """The published release of a tree shows ranks and values, and nothing else is answered."""
    release = pt.publish(
        {"salary": list(range(0, 9000, 9))}, SCHEMA, epsilon=1, wants=["9 quantiles of salary"]
    )
    release.save(tmp_path / "deciles")
    loaded = pt.load(tmp_path / "deciles")

    answer: Any = loaded.quantile("salary", 0.5)
    assert str(answer) == str(release.quantile("salary", 0.5))
    assert answer.interval()[0] <= answer.value <= answer.interval()[1]
    assert answer.worst(0.01)[0] <= answer.worst(0.05)[0]
    with pytest.raises(InvalidParameter):
        loaded.count(salary=(0, 10))
