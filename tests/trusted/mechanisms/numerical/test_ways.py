"""Numerical queries by multiplicative weights: what is measured, where queries are cut, what answers say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.domain import Integer
from partita.errors import InvalidParameter
from partita.public.queries.language import between, matrix, power, prefixes, ranges, total, value, weights
from partita.public.queries.queries import Universe
from partita.public.workload.decomposition import first_quiet, first_steady
from partita.testing import EndlessTape, ForbiddenNoise, ZeroNoise, tape_noise
from partita.trusted.mechanisms.numerical import (
    GlobalTruncation,
    InstanceTruncation,
    Normalization,
    WeightsMechanism,
)
from partita.trusted.secret import Points
from tests.seams import SETTLING

WAYS: list[type[WeightsMechanism]] = [Normalization, GlobalTruncation, InstanceTruncation]
SMALL = Universe(["age", "income"], [Integer(0, 9), Integer(0, 63)])
LARGE = Universe(["age", "income"], [Integer(0, 15), Integer(0, 2**32)])
CLASSES = [(0, 3), (2, 9), (5, 5), (8, 9)]


@pytest.fixture
def _short_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Guesses with fewer steps: for what does not depend on how good they are."""
    monkeypatch.setattr(SETTLING, 5)


def _points(ages: Any, incomes: Any, universe: Universe, **stamp: Any) -> Points:
    before = np.array([axis.before for axis in universe.axes])
    rows = np.stack([ages, np.minimum(incomes, universe.domains[1].size - 1)], axis=1) + before
    return Points.from_rows(rows, axes=universe.axes, **stamp)


def _varying(rows: int, seed: int) -> tuple[Any, Any]:
    """Values whose scale doubles with every age."""
    draw = np.random.default_rng(seed)
    ages = draw.integers(0, 10, rows)
    return ages, draw.exponential(2.0 ** (6 + ages)).astype(np.int64)


def _sums(ages: Any, found: Any, classes: Any = tuple(CLASSES)) -> Any:
    return np.array([float(found[(ages >= low) & (ages <= high)].sum()) for low, high in classes])


@pytest.mark.usefixtures("_short_fits")
@pytest.mark.parametrize("decomposition", ["none", "hat", "binary"])
@pytest.mark.parametrize("way", WAYS)
def test_without_noise_what_is_measured_is_exact(way: Any, decomposition: Any) -> None:
    """The answer to every query that is chosen is its exact sum over the top, rounded down to the grain."""
    ages, incomes = _varying(3000, 1)
    data = _points(ages, incomes, SMALL)
    mechanism = way(
        queries=ranges("age", CLASSES) * value("income"),
        universe=SMALL,
        epsilon=1,
        decomposition=decomposition,
        rounds=3,
    )
    weighed = mechanism.release(data, noise=ZeroNoise()).weighed
    inner = weighed.operator.inner.answers(mechanism.masses(data))

    for index, noisy in zip(weighed.indices.tolist(), weighed.noisy.tolist(), strict=True):
        exact = int(inner[index]) * weighed.operator.granularity // int(weighed.operator.tops[index])
        assert noisy == exact // weighed.grain


@pytest.mark.parametrize("decomposition", ["none", "hat"])
@pytest.mark.parametrize("way", WAYS)
def test_without_noise_answers_come_close(way: Any, decomposition: Any) -> None:
    """With as many rounds as it takes, synthetic rows answer within two percent of the largest sum."""
    ages, incomes = _varying(20_000, 2)
    incomes = np.minimum(incomes, 63)
    mechanism = way(
        queries=ranges("age", CLASSES) * value("income"),
        universe=SMALL,
        epsilon=1,
        decomposition=decomposition,
        rounds=12,
    )
    release = mechanism.release(_points(ages, incomes, SMALL), noise=ZeroNoise())
    truth = _sums(ages, incomes)

    assert np.abs(release.values - truth).max() <= 0.02 * truth.max()


@pytest.mark.usefixtures("_short_fits")
def test_the_global_threshold_is_that_of_the_largest_weight() -> None:
    """Without noise it is the first above all rows of classes that a query asks for."""
    ages = np.repeat([1, 2, 9], [5000, 5000, 5000])
    incomes = np.repeat([10, 300, 10**6], [5000, 5000, 5000])
    for method in ("hat", "binary"):
        mechanism = GlobalTruncation(
            queries=ranges("age", [(0, 3), (2, 5)]) * value("income"),
            universe=LARGE,
            epsilon=1,
            decomposition=method,
            rounds=1,
        )
        release = mechanism.release(_points(ages, incomes, LARGE), noise=ZeroNoise())
        assert release.top == next(top for top in mechanism.space.tops if top >= 300)
        assert f"cut at {release.top:g}" in release.story


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=8).map(lambda rows: sorted(rows, reverse=True)),
    st.integers(1, 5),
    st.data(),
)
def test_quiet_thresholds_are_those_of_the_slides(above: list[int], alpha: int, data: Any) -> None:
    """At most 2 alpha rows lie above the threshold and some above the one before, if counts are that good."""
    errors = data.draw(st.lists(st.integers(-alpha, alpha), min_size=len(above), max_size=len(above)))
    noisy = np.array([[n + e] for n, e in zip(above, errors, strict=True)], np.float64)

    chosen = int(first_quiet(noisy, float(alpha))[0])

    assert [*above, 0][chosen] <= 2 * alpha
    assert chosen == 0 or above[chosen - 1] > 0


@given(st.lists(st.floats(0, 100), min_size=1, max_size=8), st.floats(0.01, 2))
def test_steady_thresholds_leave_no_more_than_noise(steps: list[float], share: float) -> None:
    """No larger threshold adds more than the share of its noise, and the one before does not have that."""
    sums = np.concatenate([[0.0], np.cumsum(steps)])[:, np.newaxis]
    noise = np.exp2(np.arange(len(sums), dtype=np.float64))[:, np.newaxis]
    chosen = int(first_steady(sums, noise, share)[0])

    def steady(at: int) -> bool:
        return all(sums[j, 0] - share * noise[j, 0] <= sums[at, 0] for j in range(at + 1, len(sums)))

    assert steady(chosen)
    assert chosen == 0 or not steady(chosen - 1)


def test_thresholds_follow_the_scale_of_each_query() -> None:
    """Classes of small values are cut far below those of large ones, and none above the last clear one."""
    ages, incomes = _varying(60_000, 3)
    queries = ranges("age", [(a, a) for a in range(10)]) * value("income")
    mechanism = InstanceTruncation(queries=queries, universe=LARGE, epsilon=2, rounds=25)
    release = mechanism.release(_points(ages, incomes, LARGE), noise=tape_noise(EndlessTape(3)))
    largest = [int(incomes[ages == age].max()) for age in range(10)]

    assert release.thresholds[0] <= release.thresholds[-1] / 16
    assert all(low / 16 <= cut <= 16 * low for low, cut in zip(largest, release.thresholds, strict=True))
    assert release.last_clear is not None
    assert release.chosen.max() <= release.last_clear
    assert f"{release.thresholds.max():g}" in release.story


def test_instance_specific_thresholds_beat_a_global_one() -> None:
    """Where the scale of values varies, the mean error is below half of it, and normalization far behind."""
    ages, incomes = _varying(60_000, 4)
    data, classes = (
        _points(ages, incomes, LARGE),
        [(low, high) for high in range(10) for low in {0, high // 2, high}],
    )
    truth = _sums(ages, incomes, classes)
    errors = []
    for way in WAYS:
        queries = ranges("age", classes) * value("income")
        mechanism = way(queries=queries, universe=LARGE, epsilon=1, rounds=25)
        release = mechanism.release(data, noise=tape_noise(EndlessTape(4)))
        errors.append(float(np.abs(release.values - truth).mean()))

    assert errors[2] < errors[1] / 2 < errors[0] / 20


@pytest.mark.usefixtures("_short_fits")
@pytest.mark.parametrize("rule", ["steady", "quiet"])
@pytest.mark.parametrize("way", WAYS)
def test_guaranteed_bounds_hold(way: Any, rule: str) -> None:
    """The whole sums lie within the bounds of every answer, and the error for all of them covers each."""
    ages, incomes = _varying(5000, 5)
    options = {"rule": rule} if way is InstanceTruncation else {}
    mechanism = way(
        queries=ranges("age", CLASSES) * value("income"), universe=LARGE, epsilon=1, rounds=6, **options
    )
    release = mechanism.release(_points(ages, incomes, LARGE), noise=tape_noise(EndlessTape(5)))
    truth = _sums(ages, incomes)

    for index, exact in enumerate(truth):
        low, high = release.answer(index).worst(0.05)
        assert low <= exact <= high
    assert np.abs(release.values - truth).max() <= release.error(0.05)
    assert ((release.spreads > 0) == (release.factors > 0)).all()


@pytest.mark.usefixtures("_short_fits")
@pytest.mark.parametrize("delta", [0, "1e-6"])
@pytest.mark.parametrize("way", WAYS)
def test_a_release_spends_what_it_promises(way: Any, delta: Any) -> None:
    """The noise costs all of epsilon where it is pure, and no more than it where there is a delta."""
    queries = ranges("age", CLASSES) * value("income")
    mechanism = way(queries=queries, universe=LARGE, epsilon=1, delta=delta, rounds=2)
    release = mechanism.release(_points(*_varying(500, 6), LARGE))

    assert release.guarantee == mechanism.guarantee
    assert release.spent == 1 or (delta and release.spent <= 1)
    assert (
        replace(release, guarantee=replace(mechanism.guarantee, epsilon=mechanism.epsilon / 2)).spent > 1 / 2
    )
    assert replace(release, guarantee=None).spent == 0


@pytest.mark.parametrize("way", WAYS)
def test_plans_show_rounds_and_rates(way: Any) -> None:
    """T and epsilon0 are shown, and more rows allow more rounds."""
    mechanism = way(queries=prefixes("age") * value("income"), universe=LARGE, epsilon=1)
    few, many = (" ".join(mechanism.plan_lines(rows)) for rows in (100, 10**6))

    assert "T = " in few
    assert "epsilon0 = " in few
    assert few != many
    assert mechanism.predicted_numbers(10**6) >= mechanism.predicted_numbers(100)
    assert mechanism.predicted_error(10**6) > 0


@pytest.mark.parametrize("way", WAYS)
def test_a_universe_that_is_too_large_is_refused_with_a_way_out(way: Any) -> None:
    """Two values of 2^14 cells are too many together; a product of classes and one value is taken apart."""
    large = Universe(["age", "income"], [Integer(0, 2**14)] * 2)
    with pytest.raises(InvalidParameter, match="at most 16777216 cells are weighed") as refused:
        way(queries=value("age") + value("income"), universe=large, epsilon=1)

    assert refused.value.parameter == "universe"
    assert "ranges(age) * value(income)" in refused.value.fix
    assert way(queries=ranges("age", CLASSES) * value("income"), universe=large, epsilon=1).delta == 0


@pytest.mark.parametrize(("rounds", "spent"), [(1, False), (60, True)])
@pytest.mark.parametrize("way", WAYS)
def test_delta_is_spent_where_rounds_need_it(way: Any, rounds: int, spent: bool) -> None:
    """One round is paid for by pure composition, with all of epsilon; sixty are cheaper with a delta."""
    facts: dict[str, Any] = {"queries": prefixes("age") * value("income"), "universe": LARGE, "epsilon": 1}
    with_delta, without = way(**facts, delta="1e-6", rounds=rounds), way(**facts, rounds=rounds)

    assert (with_delta.guarantee.delta > 0) == spent
    assert (with_delta.budget == without.budget) != spent


SLIDES: dict[str, Any] = {
    "count": (between("income", 2, 50), lambda age, v: (v >= 2) & (v <= 50)),
    "total": (between("income", 2, 50) * value("income"), lambda age, v: v * ((v >= 2) & (v <= 50))),
    "squares": (between("age", 2, 5) * power("income", 2), lambda age, v: v**2 * ((age >= 2) & (age <= 5))),
    "weighted": (
        weights(("age", "income"), lambda age, v: (age or 0) * (v or 0) % 11, bound=10),
        lambda age, v: age * v % 11,
    ),
}


@pytest.mark.parametrize("name", SLIDES)
def test_the_queries_of_the_slides(name: str) -> None:
    """A count, a total, squares for a variance and user-defined weights, each with a list of others."""
    queries, weigh = SLIDES[name]
    ages, incomes = _varying(20_000, 7)
    incomes = np.minimum(incomes, 63)
    mechanism = InstanceTruncation(queries=queries + total(), universe=SMALL, epsilon=4, rounds=10)
    release = mechanism.release(_points(ages, incomes, SMALL), noise=ZeroNoise())
    truth = float(weigh(ages, incomes).sum())

    assert release.values[1] == pytest.approx(20_000, rel=0.02)
    assert release.values[0] == pytest.approx(truth, rel=0.03)


@pytest.mark.parametrize(
    ("changes", "parameter"),
    [
        ({"queries": matrix("income", [{"1": -1}])}, "queries"),
        ({"queries": value("age") + value("income"), "decomposition": "hat"}, "decomposition"),
        ({"decomposition": "halves"}, "decomposition"),
        ({"decomposition": "none"}, "universe"),
        ({"rounds": 0}, "rounds"),
        ({"rule": "loud"}, "rule"),
        ({"epsilon": "1e-20"}, "epsilon"),
        ({"delta": 2}, "delta"),
    ],
    ids=str,
)
def test_bad_parameters_are_refused(changes: dict[str, Any], parameter: str) -> None:
    """The error names the parameter, before anything is drawn."""
    given: dict[str, Any] = {"queries": ranges("age") * value("income"), "universe": LARGE, "epsilon": 1}

    with pytest.raises(InvalidParameter) as refused:
        InstanceTruncation(**{**given, **changes})

    assert refused.value.parameter == parameter


@pytest.mark.parametrize("way", WAYS)
def test_points_must_fit(way: Any) -> None:
    """Points of another universe, or of people with more rows, are refused before noise is drawn."""
    mechanism = way(queries=value("income"), universe=LARGE, epsilon=1)
    for data in (_points([1], [1], SMALL), _points([1], [1], LARGE, contributions=2)):
        with pytest.raises(ValueError, match=r"points|contributions"):
            mechanism.release(data, noise=ForbiddenNoise())


@pytest.mark.usefixtures("_short_fits")
@pytest.mark.parametrize("way", WAYS)
def test_rows_never_raise(way: Any) -> None:
    """No rows, one row, and rows of null: there is a release, and its answers are finite."""
    for places in ([], [[3, 7]], [[19, 2**32 + 4]] * 9):
        data = Points.from_rows(np.array(places, np.uint64).reshape(-1, 2), axes=LARGE.axes)
        mechanism = way(queries=ranges("age", CLASSES) * value("income"), universe=LARGE, epsilon=1)
        release = mechanism.release(data, noise=tape_noise(EndlessTape(8)))
        assert np.isfinite(release.values).all()
        assert np.isfinite(release.error(0.05))
