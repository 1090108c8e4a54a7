"""Monotone regression: optimal, monotone, and the same in rounds and one block at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.public.axis import curve as isotonic
from partita.public.axis.curve import fit_curve, fit_monotone

VALUES = st.lists(st.integers(-50, 50), min_size=1, max_size=40)


def _by_minimax(values: list[float]) -> list[float]:
    """The textbook formula: the largest over starts before of the least mean over ends behind."""
    n = len(values)
    return [
        max(min(float(np.mean(values[i : j + 1])) for j in range(k, n)) for i in range(k + 1))
        for k in range(n)
    ]


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=9))
def test_the_solution_is_that_of_the_minimax_formula(values: list[int]) -> None:
    """Every entry is max over i <= k of min over j >= k of the mean from i to j."""
    assert fit_monotone(np.array(values, dtype=float)).tolist() == pytest.approx(
        _by_minimax([float(v) for v in values])
    )


@given(VALUES)
def test_solutions_rise_and_keep_the_sum(values: list[int]) -> None:
    """Nothing falls, the total stays, and what is monotone already is left alone."""
    found = fit_monotone(np.array(values, dtype=float))

    assert bool((np.diff(found) >= 0).all())
    assert float(found.sum()) == pytest.approx(sum(values))
    assert fit_monotone(np.sort(np.array(values, dtype=float))).tolist() == sorted(values)


@pytest.mark.parametrize("rounds", [0, 1, 2])
def test_rounds_and_single_blocks_agree(rounds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However early the rounds end, the rest is finished to the same solution."""
    shapes = [
        np.arange(300.0, 0.0, -1.0),
        np.concatenate([np.arange(500.0), [0.0]]),
        np.sin(np.arange(999.0)),
    ]
    expected = [fit_monotone(values) for values in shapes]
    monkeypatch.setattr(isotonic, "_ROUNDS", rounds)

    for values, solution in zip(shapes, expected, strict=True):
        assert fit_monotone(values).tolist() == pytest.approx(solution.tolist())


@given(VALUES)
def test_curves_are_the_closest_that_rise_from_zero(values: list[int]) -> None:
    """Among monotone sequences from zero on, none nearby is closer to the prefixes."""
    prefixes = np.array(values, dtype=float)
    curve = fit_curve(np.arange(prefixes.size, dtype=np.uint64), prefixes)
    found = np.cumsum(curve.counts)
    best = float(((found - prefixes) ** 2).sum())

    assert float(curve.counts.min()) >= 0.0
    for k in range(prefixes.size):
        for step in (-0.01, 0.01):
            other = np.maximum.accumulate(np.maximum(found + step * (np.arange(prefixes.size) >= k), 0.0))
            assert float(((other - prefixes) ** 2).sum()) >= best - 1e-9
