"""What counts say about the keys of sums: the same as the view does when it is asked."""

from __future__ import annotations

import numpy as np
import pytest

from partita.domain import Domain, Special
from partita.domain.axis import Axis
from partita.public.conditions import Range, Where
from partita.public.sums.view import ViewKeyCounts
from tests.public.file.specimens import box_view, view


def asked(domain: Domain, low: int, high: int) -> list[Where]:
    """The positions low, ..., high of an axis as questions about a column: a range, and special cells."""
    first = Axis.of(domain).before
    cells = np.arange(max(low, first), min(high, first + domain.size - 1) + 1, dtype=np.uint64) - np.uint64(
        first
    )
    ends = [Range(values[0], values[-1]) for values in [domain.decode(cells)] if len(values)]
    beside = [Special.named(name) for name, at in Axis.specials(domain).items() if low <= at <= high]
    return [{"age": each} for each in (*ends, *beside)]


@pytest.mark.parametrize("kind", ["histogram", "laplace", "tree"])
def test_positions_along_one_column_are_its_cells_and_special_cells(kind: str) -> None:
    """Every range of positions holds what its range of cells and its special cells hold."""
    released = view(kind)
    keys = ViewKeyCounts(released, ("age",))
    width = keys.axes[0].width
    ends = [(low, high) for low in range(width) for high in range(low, width)]

    lows, highs = (np.array(each, np.uint64).reshape(-1, 1) for each in zip(*ends, strict=True))
    counts = keys.counts(lows, highs)

    for (low, high), count in list(zip(ends, counts, strict=True))[:: max(1, len(ends) // 40)]:
        parts = [released.count(each).value for each in asked(released.domain, low, high)]
        assert count == pytest.approx(sum(parts), abs=1e-6)


def test_columns_that_are_no_keys_are_free() -> None:
    """Boxes of some columns of a view count whatever is in the others, and in any order of the keys."""
    released = box_view("rectangles")
    keys = ViewKeyCounts(released, (released.columns[2], released.columns[0]))
    low, high = np.array([[1, 2]], np.uint64), np.array([[4, 6]], np.uint64)

    everything = released.boxes.everything
    first, last = list(everything.low), list(everything.high)
    first[2], last[2], first[0], last[0] = 1, 4, 2, 6
    exact = released.boxes.counts(np.array([first], np.uint64), np.array([last], np.uint64))

    assert keys.counts(low, high) == pytest.approx(exact)
    assert [axis.width for axis in keys.axes] == [9, 14]


def test_sums_of_nothing_by_nothing_need_no_counts() -> None:
    """Without a key, and where a column is its own, there is nothing to be cut."""
    assert ViewKeyCounts.of_sums((), (), "wage") is None
    assert ViewKeyCounts.of_sums((), ("wage",), "wage") is None
    assert ViewKeyCounts.of_sums((view("tree"),), ("age",), "wage") is not None
