"""Leaning: nothing is gained or lost, the curve still rises, and sparse pieces lean the right way."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.public.axis.curve import Curve, shift_sparse_segments

Pieces = list[tuple[int, float]]

pieces = st.lists(
    st.tuples(
        st.one_of(st.integers(1, 40), st.integers(1, 2**40), st.integers(2**59, 2**60)),
        st.one_of(st.just(0.0), st.floats(1e-3, 1e6)),
    ),
    min_size=1,
    max_size=12,
)


def made(given_pieces: Pieces) -> Curve:
    ends = np.cumsum(np.array([width for width, _ in given_pieces], dtype=object)) - 1
    return Curve(ends.astype(np.uint64), np.array([count for _, count in given_pieces]))


@given(pieces)
def test_every_piece_keeps_its_cells_and_its_count(given_pieces: Pieces) -> None:
    """The new pieces cut up the old ones, rise, and hold as many rows in each."""
    curve = made(given_pieces)

    leant = shift_sparse_segments(curve)

    assert bool((np.diff(leant.ends.astype(object)) > 0).all())
    assert bool((leant.counts >= 0.0).all())
    assert np.isin(curve.ends, leant.ends).all()
    assert np.diff(leant.upto(curve.ends), prepend=0.0) == pytest.approx(curve.counts, rel=1e-9, abs=1e-6)


def test_a_sparse_piece_leans_on_the_crowd_before_it() -> None:
    """Rows in a last piece of nearly 2^64 cells lie where the crowd ends, all but a twentieth."""
    curve = made([(1_000, 1_000.0), (2**64 - 1_000, 50.0)])

    near = shift_sparse_segments(curve).between(np.array([1_000], np.uint64), np.array([1_500], np.uint64))[0]

    assert 0.94 * 50 < near < 0.96 * 50


def test_a_gap_between_two_crowds_is_empty_in_the_middle() -> None:
    """Half of the rows go to each side."""
    curve = made([(100, 1_000.0), (10**6, 40.0), (100, 1_000.0)])

    cells = np.array([99, 299, 10**6 - 200, 10**6 + 99], np.uint64)
    first, middle, last = np.diff(shift_sparse_segments(curve).upto(cells), prepend=0.0)[1:]

    assert first == pytest.approx(last, rel=0.01)
    assert middle == pytest.approx(0.05 * 40, rel=0.05)


def test_like_neighbours_and_single_cells_change_nothing() -> None:
    """A piece leans on no piece less than 30 times as dense, and on no heavy single cell."""
    curve = made([(100, 100.0), (1_000, 50.0), (1, 10**6), (1_000, 50.0)])

    assert shift_sparse_segments(curve) is curve
