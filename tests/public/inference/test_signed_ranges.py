"""Signed runs laid over each other."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from partita.public.bounds import Run, overlay_runs, sum_signs

CELLS = 12

runs = st.lists(
    st.tuples(st.integers(0, CELLS - 1), st.integers(1, CELLS), st.sampled_from([1, -1])).filter(
        lambda run: run[0] < run[1]
    ),
    max_size=5,
)


def heights(laid: list[Run]) -> list[int]:
    """The sum of the signs on each cell."""
    found = np.zeros(CELLS, np.int64)
    for first, behind, sign in laid:
        found[first:behind] += sign
    return found.tolist()


@given(runs)
def test_runs_laid_over_each_other_keep_the_sum_on_every_cell(given_runs: list[Run]) -> None:
    """Disjoint runs in order, none of them zero, have the same sum on every cell."""
    laid = list(overlay_runs(given_runs))

    assert heights(laid) == heights(given_runs)
    assert all(factor for _, _, factor in laid)
    assert all(behind <= first for (_, behind, _), (first, _, _) in pairwise(laid))


@given(runs)
def test_sums_of_signs_end_at_zero_and_tell_every_change(given_runs: list[Run]) -> None:
    """Wherever the sum changes there is an entry with the sum from there on; behind the last it is zero."""
    found, sums = dict(sum_signs(given_runs)), [*heights(given_runs), 0]

    assert all(found[place] == after for place, after in enumerate(sums) if place in found)
    assert all(place in found for place, (one, two) in enumerate(pairwise(sums), 1) if one != two)
