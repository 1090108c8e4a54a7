"""Laplace over explicit linear queries: exact weights, exact sensitivity, integer noise in public units."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from math import log, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita import Guarantee, Histogram, InvalidParameter, LinearQueries, LinearQueriesRelease
from partita.guarantee import Neighbors
from partita.testing import (
    CouplingBroken,
    EndlessTape,
    RationalNoise,
    ZeroNoise,
    add_remove_pairs,
    change_one_pairs,
    check_mechanism,
    coupled,
    law,
    mechanisms,
    privacy_loss,
    tape_noise,
)
from partita.trusted.noise import Noise
from partita.trusted.noise.system import SYSTEM

HALF = Fraction(1, 2)
QUERIES: list[list[Any]] = [[1, "1/2", 0], [0, -1, "2/3"], [1, 1, 1]]
Counts = tuple[int, ...]


class PrefixQueries:
    """Prefixes as linear queries, made with a size like mechanisms over an axis.

    Guarantee: epsilon-DP, pure.
    Error:     that of linear queries.
    Proof:     that of linear queries.
    """

    def __new__(cls, *, size: Any, **given: Any) -> Any:
        if isinstance(size, bool) or not isinstance(size, int) or not 0 < size < 100:
            raise InvalidParameter("size", "must be small", given=size, fix="lower it")
        rows = [[int(cell <= last) for cell in range(size)] for last in range(size)]
        return LinearQueries(queries=rows, **given)


def test_the_rules_of_all_mechanisms_hold() -> None:
    """Made from a size, it passes the suite; made from queries, it is none of those that the suite makes."""
    check_mechanism(PrefixQueries)

    assert LinearQueries not in mechanisms()


def test_units_and_sensitivity_are_exact() -> None:
    """Answers are whole multiples of 1/6, and one row changes them by at most 5/2 in all."""
    mechanism = LinearQueries(queries=QUERIES, epsilon="1/2", contributions=2)

    assert mechanism.granularity == 6
    assert mechanism.sensitivity == max(1 + 1, Fraction(1, 2) + 1 + 1, Fraction(2, 3) + 1)
    assert mechanism.scale == 6 * Fraction(5, 2) * 2 * 2
    assert mechanism.guarantee == Guarantee(epsilon="1/2", unit="person", contributions=2)


@given(
    st.integers(1, 4).flatmap(
        lambda cells: st.lists(
            st.lists(st.fractions(-3, 3, max_denominator=7), min_size=cells, max_size=cells),
            min_size=1,
            max_size=4,
        )
    ),
    st.lists(st.integers(0, 2**40), min_size=4, max_size=4),
)
def test_without_noise_answers_are_exact(rows: list[list[Fraction]], counts: list[int]) -> None:
    """Whatever the weights, zero noise gives the weighted sums, as exactly as floats can."""
    if not any(any(row) for row in rows):
        return
    data = counts[: len(rows[0])]
    release = LinearQueries(queries=rows, epsilon=1).release(Histogram.dense(data), noise=ZeroNoise())

    exact = [sum(w * c for w, c in zip(row, data, strict=True)) for row in rows]

    assert [Fraction(int(units), release.granularity) for units in release.noisy] == exact
    assert [release.answer(i).value for i in range(len(release))] == [float(value) for value in exact]
    assert release.values.tolist() == pytest.approx([float(value) for value in exact])


def _run(mechanism: LinearQueries) -> Any:
    def run(counts: Counts, noise: Noise) -> tuple[Any, ...]:
        data = Histogram.dense(counts, contributions=mechanism.contributions)
        return tuple(mechanism.release(data, noise=noise).noisy.tolist())

    return run


@pytest.mark.parametrize(
    ("queries", "window"),
    [([["1/2", 1]], range(4)), ([[1, -1], [1, 0]], range(-1, 3)), ([[1, "1/2"], [0, "3/2"]], range(6))],
)
def test_the_law_loses_exactly_epsilon(queries: list[list[Any]], window: range) -> None:
    """Enumerated over all small neighbours, the worst loss is epsilon: the sensitivity is exact."""
    mechanism = LinearQueries(queries=queries, epsilon=1)
    noise = RationalNoise(HALF, unit=1 / mechanism.scale, window=window)
    run = _run(mechanism)

    losses = [
        privacy_loss(
            law(lambda noise, one=one: run(one, noise), noise),  # type: ignore[misc]
            law(lambda noise, other=other: run(other, noise), noise),  # type: ignore[misc]
            base=HALF,
            unit=noise.unit,
        )
        for one, other in add_remove_pairs(2, 1)
    ]

    assert max(losses) == 1


def _losses(run: Any, pairs: Iterator[tuple[Counts, Counts]]) -> set[Fraction | float]:
    def loss(one: Counts, other: Counts, seed: int) -> Fraction | float:
        try:
            return coupled(run, one, other, tape_noise(EndlessTape(seed), path="numpy").session())
        except CouplingBroken:
            return float("inf")

    return {loss(one, other, seed) for (one, other), seed in product(list(pairs), range(4))}


@pytest.mark.parametrize("neighbors", ["add-remove", "change-one"])
def test_all_neighbors_couple_within_epsilon(neighbors: Neighbors) -> None:
    """Rows that come, go or move are paid for; one of those that come or go costs all of epsilon."""
    mechanism = LinearQueries(queries=QUERIES, epsilon="1/3", neighbors=neighbors)
    pairs = add_remove_pairs(3, 2) if neighbors == "add-remove" else change_one_pairs(3, 2)

    worst = max(_losses(_run(mechanism), pairs))

    assert worst <= Fraction(1, 3)
    assert worst == Fraction(1, 3) or neighbors == "change-one"


WRONG: dict[str, Any] = {
    "the largest row": lambda self: max(sum(map(abs, row)) for row in self.queries[:2]),
    "the largest weight": lambda self: max(abs(w) for row in self.queries for w in row),
    "weights with their signs": lambda self: max(sum(column) for column in zip(*self.queries, strict=True)),
    "the mean column": lambda self: sum(abs(w) for row in self.queries for w in row) / self.size,
}


@pytest.mark.parametrize("bug", WRONG)
def test_wrong_sensitivities_are_caught(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Norms other than the largest sum of absolute weights of a cell are too small."""
    monkeypatch.setattr(LinearQueries, "sensitivity", property(WRONG[bug]))
    mechanism = LinearQueries(queries=QUERIES, epsilon=1)

    assert max(_losses(_run(mechanism), add_remove_pairs(3, 1))) > 1


def test_a_forgotten_granularity_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scale in whole answers instead of units is six times too small."""
    monkeypatch.setattr(LinearQueries, "scale", property(lambda self: self.sensitivity / self.epsilon))
    mechanism = LinearQueries(queries=QUERIES, epsilon=1)

    assert max(_losses(_run(mechanism), add_remove_pairs(3, 1))) == 6


class _Reused:
    """One noise for all queries."""

    secure = False

    def __init__(self, noise: Noise) -> None:
        self.noise = noise

    def session(self) -> Any:
        return self

    def add(self, x: Any, scale: Fraction) -> Any:
        return x + self.noise.add(0, scale)


def test_reused_noise_is_caught() -> None:
    """One noise for all queries shows their differences."""
    run = _run(LinearQueries(queries=QUERIES, epsilon=1))

    losses = _losses(lambda counts, noise: run(counts, _Reused(noise)), add_remove_pairs(3, 1))

    assert max(losses) == float("inf")


def _noisy(seed: object = 0) -> LinearQueriesRelease:
    mechanism = LinearQueries(queries=QUERIES, epsilon=1)
    return mechanism.release(Histogram.dense([5, 6, 7]), noise=tape_noise(EndlessTape(seed)))


def test_answers_carry_their_errors() -> None:
    """The standard error is that of the noise in units; bounds of positive weights start at zero."""
    release = _noisy()
    falling = np.exp(-1 / float(release.scale))

    assert release.answer(0).error == pytest.approx(sqrt(2 * falling) / (1 - falling) / 6)
    assert release.answer(0).worst(1e-9)[0] == 0.0
    assert release.answer(1).worst(1e-9)[0] < 0.0
    assert release.error(0.05) > release.answer(0).worst(0.05)[1] - release.answer(0).value


def test_the_bound_for_all_is_the_least_that_the_law_allows() -> None:
    """k 2 a^(h+1) / (1+a) is at most beta for the bound h in units, and above it for one unit less."""
    release = _noisy()
    units = round(release.error(0.05) * release.granularity)
    falling = np.exp(-1 / float(release.scale))

    chance = [len(release) * 2 * falling ** (h + 1) / (1 + falling) for h in (units, units - 1)]

    assert chance[0] <= 0.05 < chance[1]


def test_the_expected_largest_error_has_the_usual_form() -> None:
    """Sensitivity over epsilon times ln k + 1."""
    mechanism = LinearQueries(queries=QUERIES, epsilon=2)

    assert mechanism.largest_error == pytest.approx(2.5 / 2 * (log(3) + 1))


@pytest.mark.parametrize(
    "queries",
    [
        None,
        [],
        [[]],
        [1, 2],
        "12",
        [[1, 2], [3]],
        [[0, 0], [0, 0]],
        [[1, float("nan")]],
        [[1, "much"]],
        [[1, None]],
        [[1, True]],
        [["1e-200"]],
        [[Fraction(1, 2**40), Fraction(1, 3**30)]],
        [[1] * 1025] * 1024,
        np.ones((2, 2, 2)),
    ],
    ids=lambda queries: type(queries).__name__,
)
def test_bad_queries_are_refused(queries: Any) -> None:
    """The error names the queries, before anything is drawn."""
    with pytest.raises(InvalidParameter) as refused:
        LinearQueries(queries=queries, epsilon=1)

    assert refused.value.parameter == "queries"


def test_arrays_are_queries_too() -> None:
    """A NumPy matrix is read exactly, floats as they are written."""
    matrix: Any = np.array([[1, 2]])

    assert LinearQueries(queries=matrix, epsilon=1).queries == ((Fraction(1), Fraction(2)),)
    assert LinearQueries(queries=[[0.1, 0.2]], epsilon=1).granularity == 10


@pytest.mark.parametrize("index", [-1, 3, 1.0, "0", None, True])
def test_bad_places_are_refused(index: Any) -> None:
    """A query is asked for by its number."""
    with pytest.raises(InvalidParameter) as refused:
        _noisy().answer(index)

    assert refused.value.parameter == "index"


def test_huge_weights_and_counts_do_not_overflow() -> None:
    """Sums far beyond 64 bits are exact."""
    mechanism = LinearQueries(queries=[[2**40, 1]], epsilon=1)
    release = mechanism.release(Histogram.dense([2**60, 3]), noise=ZeroNoise())

    assert int(release.noisy[0]) == 2**100 + 3
    assert mechanism.release(Histogram.dense([2**60, 3]), noise=SYSTEM).answer(0).value == pytest.approx(
        2**100
    )


# --- rows that move -------------------------------------------------------------------------------


@given(
    st.integers(2, 5).flatmap(
        lambda cells: st.lists(
            st.lists(st.fractions(-3, 3, max_denominator=5), min_size=cells, max_size=cells),
            min_size=1,
            max_size=4,
        )
    )
)
def test_a_moved_row_changes_the_distance_of_two_columns(rows: list[list[Fraction]]) -> None:
    """Between tables of equally many rows the scale is the largest L1 distance of two columns, exactly."""
    if not any(any(row) for row in rows):
        return
    columns = list(zip(*rows, strict=True))
    distances = [
        sum(abs(a - b) for a, b in zip(one, other, strict=True)) for one in columns for other in columns
    ]
    norm = max(sum(abs(weight) for weight in column) for column in columns)

    mechanism = LinearQueries(queries=rows, epsilon=1, neighbors="change-one")
    person = LinearQueries(queries=rows, epsilon=1, neighbors="change-one", contributions=3)

    assert mechanism.scale == mechanism.granularity * (max(distances) or norm)
    assert person.scale == 3 * person.granularity * max(*distances, norm)


def test_many_columns_are_bounded_by_twice_their_norm() -> None:
    """Where comparing all pairs of cells takes too long, a row that moves is paid for as two."""
    mechanism = LinearQueries(queries=[[1] * 2**10], epsilon=1, neighbors="change-one")

    assert mechanism.moved == 2 * mechanism.sensitivity == 2


def test_half_the_distance_of_columns_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """All moves couple within epsilon and one costs it; half of the distance or the norm is too little."""
    queries = [[3, -2, 0], [0, -1, 1]]
    right = LinearQueries(queries=queries, epsilon=1, neighbors="change-one")
    pairs = list(change_one_pairs(3, 1))

    def worst(mechanism: LinearQueries) -> Fraction:
        noise = tape_noise(EndlessTape(0), path="numpy")
        return max(coupled(_run(mechanism), one, other, noise) for one, other in pairs)

    assert right.changed == 6
    assert worst(right) == 1
    for wrong in (Fraction(3), right.sensitivity):
        monkeypatch.setattr(LinearQueries, "changed", wrong)
        assert worst(LinearQueries(queries=queries, epsilon=1, neighbors="change-one")) > 1
