"""Histograms: four ways to make one, one content."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita import Cut, Histogram
from partita.errors import InvalidData, InvalidParameter

SIZES = st.sampled_from([1, 5, 1000, 2**32, 2**64])


@given(st.data(), SIZES)
def test_all_constructors_count_like_a_counter(data: st.DataObject, size: int) -> None:
    """Rows in any order, rows in order and grouped rows give the counts that a Counter gives."""
    rows = data.draw(st.lists(st.integers(0, size - 1), max_size=40))
    expected = sorted(Counter(rows).items())
    cells = np.array([cell for cell, _ in expected], dtype=np.uint64)

    made = [
        Histogram.from_cells(np.array(rows, dtype=np.uint64), size=size),
        Histogram.from_cells(rows, size=size),
        Histogram.from_sorted(np.sort(np.array(rows, dtype=np.uint64)), size=size),
        Histogram.from_counts(cells, [count for _, count in expected], size=size),
    ]

    for histogram in made:
        assert list(zip(histogram.cells.tolist(), histogram.counts.tolist(), strict=True)) == expected
        assert (histogram.total, histogram.size) == (len(rows), size)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=30))
def test_dense_counts_drop_empty_cells(counts: list[int]) -> None:
    """Only cells with a positive count are kept."""
    histogram = Histogram.dense(counts)

    assert histogram.cells.tolist() == [cell for cell, count in enumerate(counts) if count]
    assert (histogram.total, histogram.size) == (sum(counts), len(counts))


@given(st.lists(st.integers(0, 50), min_size=1, max_size=30))
def test_spread_counts_are_those_that_a_dense_histogram_was_made_of(counts: list[int]) -> None:
    """`spread` undoes `dense`: a count for every cell in order, zeros too."""
    assert Histogram.dense(counts).spread().tolist() == counts


@given(st.data(), st.lists(st.integers(0, 9), min_size=1, max_size=20))
def test_weights_are_sums_of_cells(data: st.DataObject, counts: list[int]) -> None:
    """`weigh` and `within` count the cells of each segment and of a range, and nothing outside."""
    start = data.draw(st.integers(0, len(counts) - 1))
    edges = sorted(data.draw(st.sets(st.integers(start, len(counts) - 1), min_size=1)))
    histogram = Histogram.dense(counts)

    weights = histogram.weigh(Cut(edges=np.array(edges, dtype=np.uint64), start=start))

    opens = [start, *(edge + 1 for edge in edges[:-1])]
    assert weights.tolist() == [sum(counts[a : b + 1]) for a, b in zip(opens, edges, strict=True)]
    assert int(histogram.within(start, len(counts))[1].sum()) == sum(counts[start:])


@pytest.mark.parametrize(
    "make",
    [
        lambda: Histogram.from_cells([-1], size=8),
        lambda: Histogram.from_cells([8], size=8),
        lambda: Histogram.from_cells([2**64], size=2**64),
        lambda: Histogram.from_cells([1.0], size=8),
        lambda: Histogram.from_cells([float("nan")], size=8),
        lambda: Histogram.from_cells([True], size=8),
        lambda: Histogram.from_cells(["1"], size=8),
        lambda: Histogram.from_cells(np.array([None]), size=8),
        lambda: Histogram.from_cells([[1]], size=8),
        lambda: Histogram.from_cells([[1], [2, 3]], size=8),
        lambda: Histogram.from_cells(1, size=8),
        lambda: Histogram.from_sorted([2, 1], size=8),
        lambda: Histogram.from_counts([1, 1], [1, 1], size=8),
        lambda: Histogram.from_counts([2, 1], [1, 1], size=8),
        lambda: Histogram.from_counts([1], [1, 2], size=8),
        lambda: Histogram.from_counts([1], [-1], size=8),
        lambda: Histogram.from_counts([1], [0.5], size=8),
        lambda: Histogram.dense([1, -1]),
        lambda: Histogram.dense([2**61, 2**61]),
        lambda: Histogram.dense([2**200]),
        lambda: Histogram.dense(np.array([2**63], dtype=np.uint64)),
    ],
)
def test_malformed_data_is_refused_without_being_shown(make: Callable[[], Histogram]) -> None:
    """Cells and counts must be exact integers in range, and a total must stay below 2^62."""
    with pytest.raises(InvalidData) as error:
        make()

    assert error.value.parameter in ("cells", "counts")


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"size": 0}, "size"),
        ({"size": 2**64 + 1}, "size"),
        ({"size": 8.0}, "size"),
        ({"contributions": 0}, "contributions"),
        ({"contributions": 1.5}, "contributions"),
    ],
    ids=str,
)
def test_bad_parameters_are_named(changes: dict[str, Any], name: str) -> None:
    """Sizes run to 2^64 and a person has at least one row."""
    with pytest.raises(InvalidParameter) as error:
        Histogram.from_cells([], **{"size": 8, **changes})

    assert error.value.parameter == name


def test_nothing_in_a_histogram_can_be_written() -> None:
    """Cells and counts are read-only, and so are the fields."""
    histogram = Histogram.from_cells([1, 2], size=8)
    for array in (histogram.cells, histogram.counts):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5
    with pytest.raises(AttributeError):
        histogram.size = 3  # type: ignore[misc]


def test_the_input_of_a_histogram_stays_writable() -> None:
    """Freezing its own arrays, a histogram leaves the caller's alone and does not follow their changes."""
    cells, counts = np.array([1, 2], dtype=np.uint64), np.array([3, 4])
    histograms = [Histogram.from_counts(cells, counts, size=8), Histogram.from_sorted(cells, size=8)]

    cells[0], counts[0] = 0, 9

    assert [histogram.cells.tolist() for histogram in histograms] == [[1, 2], [1, 2]]
    assert [histogram.total for histogram in histograms] == [7, 2]


def test_printing_shows_public_facts_only() -> None:
    """The text of a histogram is the same for all data."""
    texts = {
        f"{histogram!r} {histogram}"
        for histogram in (Histogram.from_cells([], size=8), Histogram.from_cells([3, 3, 7], size=8))
    }

    assert texts == {" ".join(["Histogram(size=8, contributions=1, secret)"] * 2)}
