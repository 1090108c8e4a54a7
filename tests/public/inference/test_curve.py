"""Curves: monotone, exact at edges, and right where floats cannot tell cells apart."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from partita.public.axis.curve import Curve

Pieces = list[tuple[int, int]]

pieces = st.lists(
    st.tuples(st.one_of(st.integers(1, 5), st.integers(1, 2**60)), st.integers(0, 1000)),
    min_size=1,
    max_size=8,
)


def made(given_pieces: Pieces) -> Curve:
    widths = [width for width, _ in given_pieces]
    ends = np.cumsum(np.array(widths, dtype=object)) - 1
    return Curve(ends.astype(np.uint64), np.array([count for _, count in given_pieces], np.float64))


def exact(given_pieces: Pieces, cell: int) -> Fraction:
    """The count of 0..cell in exact arithmetic."""
    total, start = Fraction(0), 0
    for width, count in given_pieces:
        inside = min(max(cell - start + 1, 0), width)
        total += Fraction(count * inside, width)
        start += width
    return total


@given(pieces, st.data())
def test_counts_are_those_of_exact_arithmetic(given_pieces: Pieces, data: st.DataObject) -> None:
    """Any prefix and any range agrees with rational arithmetic to rounding."""
    curve, last = made(given_pieces), sum(width for width, _ in given_pieces) - 1
    low = data.draw(st.integers(0, last))
    high = data.draw(st.integers(low, last))

    value = curve.between(np.array([low], np.uint64), np.array([high], np.uint64))[0]

    before = exact(given_pieces, low - 1)
    assert abs(value - float(exact(given_pieces, high) - before)) <= 1e-9 * (1 + curve.total)


@given(pieces)
def test_curves_rise_to_their_total(given_pieces: Pieces) -> None:
    """Prefix counts at all edges and just before them never fall."""
    curve = made(given_pieces)
    cells = np.unique(np.concatenate([curve.starts, curve.ends]))

    counts = curve.upto(cells)

    assert bool((np.diff(counts) >= -1e-9 * (1 + curve.total)).all())
    assert counts[-1] == curve.total


def test_neighbouring_atoms_beyond_floats_are_told_apart() -> None:
    """Two single cells next to each other at the end of 2^64 keep their own counts."""
    last = 2**64 - 1
    curve = Curve(np.array([last - 2, last - 1, last], np.uint64), np.array([0.0, 7.0, 5.0]))
    cells = np.array([last - 1, last], np.uint64)

    assert curve.between(cells, cells).tolist() == [7.0, 5.0]


def test_one_piece_may_hold_all_cells() -> None:
    """A single piece of 2^64 cells: its width is one more than any 64-bit number."""
    curve = Curve(np.array([2**64 - 1], np.uint64), np.array([8.0]))

    assert curve.upto(np.array([2**63 - 1, 2**64 - 1], np.uint64)).tolist() == [4.0, 8.0]


def test_cells_may_come_in_any_order_and_shape() -> None:
    """Many cells at once give what each gives alone, bit by bit, in the shape in which they came."""
    rng = np.random.default_rng(0)
    curve = Curve(np.unique(rng.integers(0, 2**63, 500, dtype=np.uint64)), rng.random(500))
    cells = rng.integers(0, curve.ends[-1], (30, 20), dtype=np.uint64)

    assert curve.upto(cells).tolist() == [[curve.upto(cell).item() for cell in row] for row in cells]
