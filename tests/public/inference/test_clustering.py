"""How uneven pieces are thought to be inside."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from partita.public.axis.curve import Curve
from partita.public.axis.shrinkage import clustering


def pieces(widths: list[int], counts: list[float]) -> Curve:
    return Curve(np.cumsum(widths).astype(np.uint64) - np.uint64(1), np.array(counts))


@given(st.lists(st.tuples(st.integers(1, 10**6), st.floats(0, 1e6)), min_size=1, max_size=30))
def test_clustering_lies_between_even_and_one_heavy_cell(given_pieces: list[tuple[int, float]]) -> None:
    """It is at least 0 and at most 1, and 0 for a single cell, which has no inside."""
    widths, counts = (list(each) for each in zip(*given_pieces, strict=True))

    found = clustering(pieces(widths, counts), noise=1.0)

    assert bool(((found >= 0.0) & (found <= 1.0)).all())
    assert found[np.array(widths) == 1].tolist() == [0.0] * widths.count(1)


def test_densities_on_a_smooth_line_are_smooth_inside() -> None:
    """A long exponential slope is nearly even, however steep the whole of it is."""
    found = clustering(pieces([1_000] * 200, np.exp(-np.arange(200) / 20).tolist()), noise=1e-12)

    assert found.max() < 0.02


def test_densities_that_jump_are_clustered_where_they_jump() -> None:
    """Pieces among gaps count as heavy cells, and those of a smooth stretch do not."""
    jumping = [100.0 if index % 2 else 0.0 for index in range(100)]

    found = clustering(pieces([1_000] * 300, [*[100.0] * 200, *jumping]), noise=1.0)

    assert found[:190].max() < 0.02
    assert found[210:].min() > 0.8


def test_one_piece_says_nothing_and_two_say_little() -> None:
    """All rows of one may sit in one cell; those of two rather not."""
    alone, two = (clustering(pieces([1_000] * k, [50.0] * k), noise=1.0, roughness=0.0) for k in (1, 2))

    assert alone.tolist() == [1.0]
    assert two.tolist() == [0.375, 0.375]
