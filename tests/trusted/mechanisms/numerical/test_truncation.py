"""Queries cut at private thresholds: exact sums, the law of thresholds, what neighbours can tell."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partita.domain import Integer
from partita.errors import InvalidParameter
from partita.guarantee import Neighbors, best_rate
from partita.public.queries.language import between, matrix, power, ranges, total, value, weights
from partita.public.queries.queries import Queries, Universe
from partita.public.workload.decomposition import choose_grid, choose_octaves, find_octaves, octave_tops
from partita.testing import (
    CouplingBroken,
    EndlessTape,
    RationalNoise,
    ZeroNoise,
    add_remove_pairs,
    change_one_pairs,
    coupled,
    law,
    privacy_loss,
    tape_noise,
)
from partita.trusted.mechanisms import numerical
from partita.trusted.mechanisms import numerical as single_truncation
from partita.trusted.mechanisms.numerical import (
    ClassRows,
    ComposedTruncation,
    PointRows,
    SingleTruncation,
    Truncation,
    query_rows,
)
from partita.trusted.noise import Noise
from partita.trusted.secret import Points

INCOME = Universe(["income"], [Integer(0, 7)])
HUGE = Universe(["age", "income"], [Integer(0, 127), Integer(0, 2**62)])
CROWD = {0: 60, 1: 100, 2: 60, 3: 100, 4: 60}
"""So many rows are there besides those that come and go."""

Counts = tuple[int, ...]


def _points(counts: Any, universe: Universe = INCOME, **stamp: Any) -> Points:
    """So many rows of the values 0, 1, ... of one column."""
    axis = universe.axes[0]
    rows = np.arange(len(counts))[:, np.newaxis] + axis.before
    return Points.from_rows(rows, axes=universe.axes, counts=np.array(counts), **stamp)


def _people(rows: list[tuple[int, int]], **stamp: Any) -> Points:
    before = [axis.before for axis in HUGE.axes]
    return Points.from_rows(
        np.array(rows, np.uint64).reshape(-1, 2) + np.array(before, np.uint64), axes=HUGE.axes, **stamp
    )


@given(st.integers(0, 2**70))
def test_octaves_hold_every_weight(weight: int) -> None:
    """A weight lies above half of its top and not above the top."""
    tops = octave_tops(2**70)
    top = tops[int(find_octaves(np.array([weight], object), tops)[0])]

    assert weight <= top
    assert weight == 0 == top or 2 * weight > top


@given(st.integers(0, 62), st.integers(0, 2**80), st.integers(0, 2**62))
def test_rounding_to_the_grid_costs_no_privacy(exponent: int, total: int, change: int) -> None:
    """A sum that moves by at most the threshold moves on its grid by at most the threshold over the grid."""
    top = 1 << exponent
    grid, moved = choose_grid(top), min(change, top)

    assert 0 <= (total + moved) // grid - total // grid <= top // grid


@given(st.lists(st.integers(0, 400), min_size=8, max_size=8))
def test_without_noise_sums_below_the_threshold_are_exact(counts: list[int]) -> None:
    """The threshold is the top of the last clear octave, or of the next; the sum of min(w, top) is exact."""
    mechanism = SingleTruncation(queries=value("income"), universe=INCOME, epsilon=1)
    release = mechanism.release(_points(counts), noise=ZeroNoise())

    clear = [v for v in range(8) if sum(counts[w] for w in range(8) if _top(w) == _top(v)) > 17]
    cut = int(release.cuts[0])

    assert cut in {_top(max(clear, default=0)), 2 * _top(max(clear, default=0))}
    assert release.values[0] == sum(n * min(v, cut) for v, n in enumerate(counts))


def _top(weight: int) -> int:
    return next(top for top in octave_tops(7) if weight <= top)


def test_sums_beyond_64_bits_are_exact() -> None:
    """2^40 rows of 2^61: no array of the universe is made, and nothing overflows."""
    data = Points.from_rows(np.array([[31, 2**61 + 1]], np.uint64), axes=HUGE.axes, counts=np.array([2**40]))
    mechanism = ComposedTruncation(queries=ranges("age") * value("income"), universe=HUGE, epsilon=1)
    release = mechanism.release(data, noise=ZeroNoise())
    mine = [i for i in range(len(release)) if release.values[i]]

    assert len(mine) == 31 * 98
    assert set(release.cuts[mine]) == {2**61}
    assert {int(units) * choose_grid(2**61) for units in release.sums[mine]} == {2**101}


class _Telling(RationalNoise):
    """Far values are integers beyond the window: on the same side of every threshold inside it."""

    def _add(self, value: int, scale: Fraction) -> Any:
        found = super()._add(value, scale)
        return {"below": self.window[0] - 1, "above": self.window[-1] + 1}.get(str(found), found)


SMALL = Universe(["income"], [Integer(0, 2)])


class _Known:
    """What rows of the values 0, 1, 2 answer, worked out once."""

    def __init__(self, counts: Counts) -> None:
        rows = query_rows(value("income").over(SMALL), _points(counts, SMALL))
        self._octaves = rows.octaves((0, 1, 2))
        self._sums = {cut: rows.sums(np.array([cut], object)) for cut in (0, 1, 2)}

    def octaves(self, tops: tuple[int, ...]) -> Any:
        return self._octaves

    def sums(self, cuts: Any) -> Any:
        return self._sums[int(cuts[0])]


def _law(truncation: Truncation, counts: Counts) -> Any:
    noise, rows = _Telling(Fraction(1, 2), unit=Fraction(1), window=range(4)), _Known(counts)

    def run(noise: Noise) -> Any:
        made = truncation.cut(rows, noise)
        return tuple(made.octaves[0].tolist()), int(made.sums[0])

    return law(run, noise)


def _losses(truncation: Truncation, pairs: Iterator[tuple[Counts, Counts]]) -> list[Any]:
    found = [(one, other) for one, other in pairs]
    laws = {counts: _law(truncation, counts) for counts in {c for pair in found for c in pair}}
    unit = {"base": Fraction(1, 2), "unit": Fraction(1)}
    return [privacy_loss(laws[one], laws[other], **unit) for one, other in found]


def _small_truncation() -> Truncation:
    return Truncation(tops=(0, 1, 2), rate=Fraction(4), rows_changed=1, contributions=1)


def _small_pairs() -> Iterator[tuple[Counts, Counts]]:
    return ((one, other) for one, other in add_remove_pairs(3, 1) if one[0] == 0 == other[0])


def test_the_law_of_thresholds_and_sums_loses_exactly_epsilon() -> None:
    """Enumerated over all small neighbours, the loss is at most twice the rate, and reaches it."""
    assert max(_losses(_small_truncation(), _small_pairs())) == 8


def test_the_law_of_thresholds_has_all_of_them() -> None:
    """With noise a threshold may be any; that of the largest row is the likeliest where it is clear."""
    found: dict[int, Fraction] = {}
    for (octaves, _), mass in _law(_small_truncation(), (0, 3, 0)).items():
        cut = int(choose_octaves(np.array([octaves]), Fraction(1, 4))[0])
        found[cut] = found.get(cut, Fraction(0)) + mass

    assert set(found) == {0, 1, 2}
    assert sum(found.values()) == 1


def _run(mechanism: Any, universe: Universe = INCOME) -> Any:
    def run(counts: Counts, noise: Noise) -> Any:
        crowd = [CROWD.get(v, 0) + n for v, n in enumerate(counts)]
        data = _points(crowd, universe, contributions=mechanism.contributions)
        return mechanism.release(data, noise=noise).parts().digest

    return run


def _worst(run: Any, pairs: Iterator[tuple[Counts, Counts]], seeds: int = 2) -> Fraction | float:
    def loss(one: Counts, other: Counts, seed: int) -> Fraction | float:
        try:
            return coupled(run, one, other, tape_noise(EndlessTape(seed), path="numpy").session())
        except CouplingBroken:
            return float("inf")

    return max(loss(one, other, seed) for (one, other), seed in product(list(pairs), range(seeds)))


def _moved(contributions: int) -> Iterator[tuple[Counts, Counts]]:
    """All pairs of neighbours where a person has that many rows, over the values 0 to 4."""
    for one, other in change_one_pairs(5, 1):
        yield tuple(contributions * n for n in one), tuple(contributions * n for n in other)


def test_one_row_costs_all_of_epsilon_and_no_more() -> None:
    """The worst row has the threshold for its weight."""
    mechanism = SingleTruncation(queries=value("income"), universe=INCOME, epsilon="1/2")

    assert _worst(_run(mechanism), add_remove_pairs(5, 1)) == Fraction(1, 2)


@pytest.mark.parametrize("delta", [0, "1e-6"])
def test_composed_queries_keep_their_share(delta: Any) -> None:
    """Of k queries each costs at most twice the rate, which the best theorem allows."""
    queries = ranges("income", [(0, 3), (2, 7), (1, 1)]) * value("income")
    mechanism = ComposedTruncation(queries=queries, universe=INCOME, epsilon=1, delta=delta)

    assert mechanism.rate == best_rate(1, delta, 6)
    assert 4 * mechanism.rate <= _worst(_run(mechanism), add_remove_pairs(4, 1)) <= 6 * mechanism.rate


@pytest.mark.parametrize(
    ("neighbors", "contributions"), [("change-one", 1), ("change-one", 3), ("add-remove", 3)]
)
def test_all_neighbors_couple_within_epsilon(neighbors: Neighbors, contributions: int) -> None:
    """Rows that change and people with several rows are paid for."""
    mechanism = SingleTruncation(
        queries=value("income"),
        universe=INCOME,
        epsilon=1,
        neighbors=neighbors,
        contributions=contributions,
        unit="person",
    )
    pairs = _moved(contributions) if neighbors == "change-one" else _people_pairs(contributions)

    assert _worst(_run(mechanism), pairs) <= 1


def _people_pairs(contributions: int) -> Iterator[tuple[Counts, Counts]]:
    for one, other in add_remove_pairs(5, 1):
        yield tuple(contributions * n for n in one), tuple(contributions * n for n in other)


def _true_thresholds(self: Truncation, rows: ClassRows, session: Noise) -> Any:
    """The mechanism with the largest weight of all rows for its threshold."""
    octaves = rows.octaves(self.tops)
    cuts = np.array([self.tops[max(np.flatnonzero(row), default=0)] for row in octaves], object)
    noisy = session.add(np.zeros_like(octaves), self.octave_scale)
    return single_truncation.OctaveCounts(noisy, self._noisy_sums(rows.sums(cuts), cuts, session))


def _counted_twice(table: Any, rows: Any, octave: Any, counts: Any) -> None:
    for each in (octave, np.minimum(octave + 1, table.shape[1] - 1)):
        np.add.at(table, (np.broadcast_to(rows, each.shape), each), np.broadcast_to(counts, each.shape))


BUGS: dict[str, tuple[Any, str, Any]] = {
    "the true maximum": (Truncation, "cut", _true_thresholds),
    "a sum scale without the threshold": (
        Truncation,
        "sum_scale",
        property(lambda self: self.contributions / self.rate),
    ),
    "rows in two octaves": (numerical, "_count", _counted_twice),
    "half the noise on octaves": (
        Truncation,
        "octave_scale",
        property(lambda self: self.rows_changed / self.rate / 2),
    ),
    "weights that are not cut": (numerical, "_cut", lambda found, cuts: found),
    "all of epsilon twice": (SingleTruncation, "rate", property(lambda self: self.epsilon)),
}


@pytest.mark.parametrize("bug", BUGS)
def test_planted_bugs_are_caught(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them loses more than epsilon between some neighbours, or lets data through unpaid."""
    owner, name, wrong = BUGS[bug]
    monkeypatch.setattr(owner, name, wrong)
    mechanism = SingleTruncation(queries=value("income"), universe=INCOME, epsilon=1)
    nobody: Counts = (0,) * 8
    pairs = [(nobody, (*nobody[:v], 1, *nobody[v + 1 :])) for v in range(8)]

    assert _worst(_run(mechanism), iter(pairs)) > 1


def test_a_rate_that_is_not_shared_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every query at the rate of a single one costs several times epsilon."""
    monkeypatch.setattr(ComposedTruncation, "rate", property(lambda self: self.epsilon / 2))
    queries = ranges("income", [(0, 3), (2, 7), (1, 1)]) * value("income")
    mechanism = ComposedTruncation(queries=queries, universe=INCOME, epsilon=1)

    assert _worst(_run(mechanism), add_remove_pairs(4, 1)) > 1


def test_thresholds_follow_the_rows_of_each_query() -> None:
    """The slides' sums of t in [a, b] over [0, 2^32]: each is cut near the largest t up to b."""
    universe = Universe(["t"], [Integer(0, 2**32)])
    values = [3] * 500 + [900] * 500 + [10**6] * 500 + [2**31] * 500
    rows = np.array(values)[:, np.newaxis] + universe.axes[0].before
    data = Points.from_rows(rows, axes=universe.axes)
    ends = [10, 1000, 2 * 10**6, 2**32]
    queries = ranges("t", [(0, end) for end in ends]) * value("t")
    mechanism = ComposedTruncation(queries=queries, universe=universe, epsilon=4)
    release = mechanism.release(data, noise=ZeroNoise())

    largest = [max(t for t in values if t <= end) for end in ends]

    assert all(top <= cut < 2 * top for top, cut in zip(largest, release.cuts, strict=True))
    assert release.values.tolist() == [sum(t for t in values if t <= end) for end in ends]


SLIDES: dict[str, tuple[Queries, Any]] = {
    "count": (between("income", 2, 5), lambda v: 2 <= v <= 5),
    "total": (between("income", 2, 5) * value("income"), lambda v: v * (2 <= v <= 5)),
    "squares": (between("income", 1, 6) * power("income", 2), lambda v: v**2 * (1 <= v <= 6)),
    "weighted": (weights("income", lambda v: v * v % 5, bound=4) * value("income"), lambda v: v * v % 5 * v),
    "a list": (matrix("income", [{"1": 2, "4": 3}]), lambda v: {1: 2, 4: 3}.get(v, 0)),
}


@pytest.mark.parametrize("name", SLIDES)
def test_the_queries_of_the_slides(name: str) -> None:
    """Counts, sums, squares and user-defined weights are exact without noise where rows are many."""
    queries, weight = SLIDES[name]
    counts = [200 + v for v in range(8)]
    release = SingleTruncation(queries=queries, universe=INCOME, epsilon=1).release(
        _points(counts), noise=ZeroNoise()
    )

    assert release.values[0] == sum(n * weight(v) for v, n in enumerate(counts))


def _wild(age: Any, income: Any) -> Any:
    return {0: 10**9, 1: float("nan"), 2: -5, 3: None, 4: "much", 5: float("inf")}.get(
        age, 1 / 0 if age == 6 else 2
    )


def test_weights_of_users_are_clamped_and_never_raise() -> None:
    """Whatever a function raises or returns, one row counts for no more than its bound."""
    queries = weights(("age", "income"), _wild, bound=3)
    crowd = [(30, income) for income in range(200)]
    data = _people([*crowd, *((age, 1) for age in range(7))])
    release = SingleTruncation(queries=queries, universe=HUGE, epsilon=1).release(data, noise=ZeroNoise())

    assert release.cuts[0] / release.operator.granularity in (2, 4)
    assert 400 <= release.values[0] <= 400 + 7 * 3


def test_bounds_hold_for_what_is_cut_off() -> None:
    """A row far above the threshold is within the guaranteed bounds, and not within the standard error."""
    data = _people([(age, 100) for age in range(100)] * 9 + [(1, 2**40)])
    mechanism = SingleTruncation(queries=value("income"), universe=HUGE, epsilon=1)
    release = mechanism.release(data, noise=tape_noise(EndlessTape(1)))
    truth = 100 * 900 + 2**40

    low, high = release.answer(0).worst(0.01)

    assert release.cuts[0] <= 256
    assert low <= truth <= high
    assert release.answer(0).interval()[1] < truth <= release.values[0] + release.error(0.01)


def test_answers_tell_what_they_are() -> None:
    """The story names the thresholds; a real release carries its guarantee and spends all of it."""
    mechanism = SingleTruncation(queries=value("income"), universe=INCOME, epsilon="1/2", contributions=2)
    release = mechanism.release(_points([500] * 8, contributions=2))

    assert "threshold, between 8 and 8" in release.story or "between 16" in release.story
    assert release.guarantee == mechanism.guarantee
    assert release.spent == Fraction(1, 2)
    assert mechanism.predicted_numbers(10) == release.octaves.size + release.sums.size
    assert mechanism.predicted_error(10) == pytest.approx(release.spreads[0])


def test_plans_name_the_theorem() -> None:
    """With many queries and delta, another theorem than the pure one is used and named."""
    queries = ranges("age") * value("income")
    plan = ComposedTruncation(queries=queries, universe=HUGE, epsilon=1, delta="1e-6").plan_lines(1000)

    assert plan[-1] == "Queries share the budget by zCDP composition."
    assert "epsilon 0.00" in plan[1]


@pytest.mark.parametrize(
    ("changes", "parameter"),
    [
        ({"queries": matrix("income", [{"1": -1}])}, "queries"),
        ({"queries": total() + value("income")}, "queries"),
        ({"queries": "value"}, "queries"),
        ({"universe": None}, "universe"),
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": "1e-25"}, "epsilon"),
        ({"neighbors": "none"}, "neighbors"),
        ({"contributions": 0}, "contributions"),
    ],
    ids=str,
)
def test_bad_parameters_are_refused(changes: dict[str, Any], parameter: str) -> None:
    """The error names the parameter, before anything is drawn."""
    given: dict[str, Any] = {"queries": value("income"), "universe": INCOME, "epsilon": 1, **changes}

    with pytest.raises(InvalidParameter) as refused:
        SingleTruncation(**given)

    assert refused.value.parameter == parameter


@settings(max_examples=12)
@given(st.lists(st.tuples(st.integers(0, 127), st.integers(0, 2**62)), max_size=20), st.integers(0, 99))
def test_rows_never_raise(rows: list[tuple[int, int]], seed: int) -> None:
    """Whatever the rows are, there is a release."""
    mechanism = ComposedTruncation(
        queries=ranges("age", [(0, 9), (5, 90)]) * value("income"), universe=HUGE, epsilon=1
    )
    release = mechanism.release(_people(rows), noise=tape_noise(EndlessTape(seed)))

    assert np.isfinite(release.values).all()
    assert np.isfinite(release.error(0.05))


@settings(max_examples=20)
@given(st.lists(st.tuples(st.integers(0, 127), st.integers(0, 2**62)), max_size=9))
def test_classes_and_points_give_the_same_numbers(rows: list[tuple[int, int]]) -> None:
    """Octaves and sums by classes are those of all weights at all points, and of brute force."""
    operator = (ranges("age", [(0, 9), (5, 90), (7, 7)]) * value("income")).over(HUGE)
    points, tops = _people(rows), octave_tops(operator.highest)
    fast = query_rows(operator, points)
    slow = PointRows(operator, points)
    cuts = np.array([2**20, 2**62, 0], object)

    assert isinstance(fast, ClassRows)
    assert fast.octaves(tops).tolist() == slow.octaves(tops).tolist()
    assert fast.sums(cuts).tolist() == slow.sums(cuts).tolist()
    assert fast.sums(cuts)[0] == sum(min(v, 2**20) for age, v in rows if age <= 9)
