"""Questions about pieces of a curve: shares of counts, and standard errors alone and for many at once."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.arrays import Floats
from partita.public.axis.curve import Curve
from partita.public.bounds import Doubts, LinearRanges, RangeCombination, RangePosition

CELLS = 14
PARTS = Curve(np.array([0, 2, 3, 6, 9, 10, 13], np.uint64), np.array([4.0, 6.0, 2.0, 0.0, 5.0, 1.0, 0.0]))
PIECES = Curve(np.array([0, 6, 10, 13], np.uint64), np.array([4.0, 8.0, 6.0, 0.0]))
SPREAD = np.array([1.0, 2.0, 3.0, 1.5])
ASKED = [(low, high) for low, high in combinations_with_replacement(range(CELLS), 2)]


@dataclass(frozen=True)
class Independent:
    """Pieces that vary by themselves."""

    def variance(self, weights: Floats) -> float:
        return float(weights**2 @ SPREAD**2)

    def range_variances(self, first: RangePosition, last: RangePosition) -> Floats:
        pieces = np.arange(SPREAD.size)
        upto, before = (
            (pieces < at.piece[:, None]) + (pieces == at.piece[:, None]) * at.share[:, None]
            for at in (last, first)
        )
        return np.asarray((upto - before) ** 2 @ SPREAD**2)


def ranges(clustering: float = 0.4, widening: float = 1.0) -> LinearRanges:
    return LinearRanges(
        curve=PARTS,
        pieces=PIECES,
        model=Independent(),
        certain=(),
        held=np.array([4.0, 9.0, 7.0, 2.0]),
        clustering=np.array([0.0, clustering, 1.0, clustering]),
        widening=widening,
        doubts=Doubts(np.array([6, 10], np.uint64), np.array([3.0, 8.0])),
    )


def test_errors_of_many_ranges_are_those_of_each() -> None:
    """`errors` and `answer` agree on every range of the axis, also as a general linear question."""
    lows, highs = (np.array(ends, np.uint64) for ends in zip(*ASKED, strict=True))
    together = ranges().errors(lows, highs)

    alone = [ranges().answer([(low, high, 1)]).error for low, high in ASKED]
    linear = [ranges().answer([(low, high, 1), (low, high, 1), (low, high, -1)]).error for low, high in ASKED]

    assert together.tolist() == alone
    assert together == pytest.approx(linear, rel=1e-12)
    assert ranges().errors(lows[:0], highs[:0]).size == 0


def test_a_range_of_whole_pieces_has_the_error_of_its_noise() -> None:
    """Nothing is cut, so only the noise and the least variance count, times the widening."""
    found = ranges(widening=2.0).errors(np.array([1], np.uint64), np.array([10], np.uint64))

    assert found == pytest.approx([2.0 * np.sqrt(2.0**2 + 3.0**2 + 1.0)])


def test_a_heavy_cell_is_rather_inside_of_a_range_than_outside() -> None:
    """A range that begins near the end of a piece may miss it all; one that ends there misses little."""
    begins, ends = ranges(clustering=1.0).errors(np.array([3, 0], np.uint64), np.array([6, 2], np.uint64))

    share = 6.0 / 8.0
    cut = 9.0 * share * (1 - share)
    assert begins**2 == pytest.approx((1 - share) ** 2 * 4.0 + cut + 81.0 * share**2 + 1.0)
    assert ends**2 == pytest.approx(1.0 + share**2 * 4.0 + cut + 81.0 * share * (1 - share) + 1.0)


terms = st.lists(
    st.tuples(st.sampled_from(ASKED), st.sampled_from([1, -1])).map(lambda term: (*term[0], term[1])),
    min_size=1,
    max_size=4,
)


@given(terms)
def test_parts_weigh_by_their_counts(asked: list[tuple[int, int, int]]) -> None:
    """Mean and variance of the coefficients of a piece's rows, counted cell by cell; and the largest."""
    coefficient = np.zeros(CELLS)
    for low, high, sign in asked:
        coefficient[low : high + 1] += sign
    cells = np.repeat(PARTS.counts / PARTS.widths, PARTS.widths.astype(int))
    cells[11:] = 1.0
    groups = zip(np.split(coefficient, [1, 7, 11]), np.split(cells, [1, 7, 11]), strict=True)
    means, variances, largest = [], [], []
    for values, weights in groups:
        means.append(np.average(values, weights=weights))
        variances.append(np.average((values - means[-1]) ** 2, weights=weights))
        largest.append(values.max() if values.max() >= -values.min() else values.min())

    mean, variance, named = RangeCombination.about(PARTS, asked).gather(PARTS, PIECES)

    assert mean == pytest.approx(means)
    assert variance == pytest.approx(variances, abs=1e-9)
    assert named == pytest.approx(largest)
