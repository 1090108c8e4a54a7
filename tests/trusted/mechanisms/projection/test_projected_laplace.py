"""The projected Laplace mechanism: exact laws, couplings over all small neighbours, planted bugs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import flint
import numpy as np
import pytest

from partita.domain import Category, Integer
from partita.errors import InvalidData, InvalidParameter
from partita.guarantee import Guarantee, Neighbors, best_rate
from partita.public.queries.language import between, matrix, prefixes, ranges
from partita.public.queries.queries import Queries, Universe
from partita.public.workload import projection as module
from partita.public.workload.release import AnswerChanges
from partita.testing import (
    CouplingBroken,
    EndlessTape,
    ForbiddenNoise,
    RationalNoise,
    RecordingNoise,
    ZeroNoise,
    add_remove_pairs,
    change_one_pairs,
    coupled,
    law,
    privacy_loss,
    tape_noise,
)
from partita.trusted.mechanisms.workload import ProjectedLaplace
from partita.trusted.noise import Noise
from partita.trusted.secret import Points

Counts = tuple[int, ...]

BASE = Fraction(19, 20)
LETTERS = Universe(["letter"], [Category(["a", "b"])])
AGES = Universe(["age"], [Integer(0, 29)])
CELLS = 3
SIGNED = matrix("letter", [{"a": 1, "b": "-1/2"}, {"b": 2}, {"a": "1/3"}])


def _mechanism(queries: Queries = prefixes("letter"), **given: Any) -> ProjectedLaplace:  # noqa: B008
    return ProjectedLaplace(queries=queries, universe=LETTERS, **{"epsilon": 1, **given})


def _points(counts: Counts, contributions: int = 1) -> Points:
    rows = [[cell] for cell in range(len(counts))]
    return Points.from_rows(rows, axes=LETTERS.axes, counts=counts, contributions=contributions)


def _published(mechanism: ProjectedLaplace, counts: Counts, noise: Noise) -> tuple[Any, ...]:
    release = mechanism.release(_points(counts, mechanism.contributions), noise=noise)
    return (release.rows, *release.noisy.tolist(), *release.values.tolist())


class _Clamped(RationalNoise):
    """Exact rational noise whose far values are taken to be the next ones outside of the window."""

    def _add(self, value: int, scale: Fraction) -> int | str:
        noisy = super()._add(value, scale)
        if isinstance(noisy, int):
            return noisy
        return self.window[0] - 1 if noisy == "below" else self.window[-1] + 1


def test_the_law_of_all_that_is_published_loses_exactly_epsilon() -> None:
    """Rows, noisy and projected answers together, enumerated for one row or none: the worst is epsilon."""
    mechanism = _mechanism()
    unit = Fraction(1, 40)

    @cache
    def outcomes(counts: Counts) -> Any:
        noise = _Clamped(BASE, unit=unit, window=range(2))
        return law(lambda noise: _published(mechanism, counts, noise), noise)

    losses = [privacy_loss(outcomes((0, 0)), outcomes(one), base=BASE, unit=unit) for one in ((1, 0), (0, 1))]

    assert max(losses) == 1


def _losses(run: Any, pairs: Iterator[tuple[Counts, Counts]], seeds: int = 1) -> set[Fraction | float]:
    def loss(one: Counts, other: Counts, seed: int) -> Fraction | float:
        try:
            return coupled(run, one, other, tape_noise(EndlessTape(seed), path="numpy").session())
        except CouplingBroken:
            return float("inf")

    return {loss(one, other, seed) for (one, other), seed in product(list(pairs), range(seeds))}


def _run(mechanism: ProjectedLaplace) -> Any:
    return lambda counts, noise: _published(mechanism, counts, noise)


@pytest.mark.parametrize("queries", [prefixes("letter"), SIGNED, ranges("letter")], ids=str)
@pytest.mark.parametrize("neighbors", ["add-remove", "change-one"])
def test_all_neighbors_couple_within_epsilon(queries: Queries, neighbors: Neighbors) -> None:
    """Rows that come, go or move are paid for; one that comes or goes costs all of epsilon."""
    mechanism = _mechanism(queries, epsilon="1/3", neighbors=neighbors)
    pairs = add_remove_pairs(CELLS, 1) if neighbors == "add-remove" else change_one_pairs(CELLS, 1)

    worst = max(_losses(_run(mechanism), pairs))

    assert worst <= Fraction(1, 3)
    assert worst == Fraction(1, 3) or neighbors == "change-one"


def test_people_with_several_rows_are_paid_for() -> None:
    """Two rows of one person that come or go together cost epsilon, and no less noise is drawn for it."""
    mechanism = _mechanism(contributions=2)
    pairs = [((0, 0, 0, 0), (2, 0, 0, 0)), ((1, 1, 0, 0), (1, 2, 1, 0)), ((2, 2, 2, 2), (2, 2, 2, 0))]

    assert max(_losses(_run(mechanism), iter(pairs))) == 1


class _WithTrueRows:
    """Noise on arrays only: the number of rows goes through as it is."""

    secure = False

    def __init__(self, noise: Noise) -> None:
        self.noise = noise

    def session(self) -> Any:
        return self

    def add(self, x: Any, scale: Fraction) -> Any:
        return self.noise.add(x, scale) if np.ndim(x) else x


def test_the_true_number_of_rows_is_caught() -> None:
    """A hull of the true number of rows shows it: no coupling accounts for that."""
    run = _run(_mechanism())

    losses = _losses(lambda counts, noise: run(counts, _WithTrueRows(noise)), add_remove_pairs(CELLS, 1))

    assert max(losses) == float("inf")


BUGS: dict[str, tuple[Neighbors, dict[str, Any]]] = {
    "divided by the number of queries": ("add-remove", {"losses": Fraction(1, 3)}),
    "the largest weight alone": ("add-remove", {"losses": Fraction(1)}),
    "units forgotten": ("add-remove", {"each": 2}),
}


@pytest.mark.parametrize("bug", BUGS)
def test_wrong_sensitivities_are_caught(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scales that are too small by one factor or another cost more than epsilon."""
    neighbors, changes = BUGS[bug]
    right = AnswerChanges.between

    def wrong(*args: Any, **given: Any) -> AnswerChanges:
        return replace(right(*args, **given), **changes)

    monkeypatch.setattr(AnswerChanges, "between", staticmethod(wrong))

    assert max(_losses(_run(_mechanism(SIGNED, neighbors=neighbors)), add_remove_pairs(CELLS, 1))) > 1


def test_one_sided_changes_are_caught_where_rows_move() -> None:
    """Noise for rows that come or go is too small for rows that move."""
    mechanism = _mechanism(matrix("letter", [{"a": 1}, {"b": 1}]))

    assert max(_losses(_run(mechanism), change_one_pairs(CELLS, 1))) > 1


@pytest.mark.parametrize("neighbors", ["add-remove", "change-one"])
@pytest.mark.parametrize("queries", [SIGNED, ranges("letter") + prefixes("letter")], ids=str)
def test_changes_at_the_sampler_are_within_the_stated_ones(queries: Queries, neighbors: Neighbors) -> None:
    """With noise off, answers of neighbours differ by at most `each`, and all by `losses` times that."""
    mechanism = _mechanism(queries, neighbors=neighbors)
    changes = mechanism.changes
    pairs = add_remove_pairs if neighbors == "add-remove" else change_one_pairs
    apart = [
        np.abs(mechanism.truth(_points(one)) - mechanism.truth(_points(other))).astype(object)
        for one, other in pairs(CELLS, 1)
    ]

    assert max(map(max, apart)) <= changes.each
    assert max(map(sum, apart)) <= changes.losses * changes.each
    assert max(map(sum, apart)) == changes.losses * changes.each or neighbors == "change-one"


def test_delta_buys_less_noise_by_an_asserted_theorem() -> None:
    """With delta the best of the theorems is used, stated, and no worse than the book's Algorithm 18."""
    queries = ranges("age")
    pure = ProjectedLaplace(queries=queries, universe=AGES, epsilon=1)
    approximate = ProjectedLaplace(queries=queries, universe=AGES, epsilon=1, delta="1e-6")
    book = (8 * len(pure.operator) * -flint.arb("1e-6").log()).sqrt()

    assert (pure.composition.rule, approximate.composition.rule) == ("pure", "zCDP")
    assert approximate.scale < pure.scale == pure.operator.column_norm / Fraction(19, 20)
    assert float(approximate.scale) < float(book)
    assert approximate.composition.rate >= best_rate(Fraction(19, 20), "1e-6", len(pure.operator))
    assert approximate.guarantee == Guarantee(epsilon=1, delta="1e-6")


@pytest.mark.parametrize("delta", [0, "1e-6"])
@pytest.mark.parametrize("neighbors", ["add-remove", "change-one"])
def test_what_is_spent_is_what_is_promised(delta: object, neighbors: Neighbors) -> None:
    """The noise that was drawn costs the promised epsilon, rounding apart, and never more."""
    mechanism = ProjectedLaplace(
        queries=ranges("age"), universe=AGES, epsilon="1/2", delta=delta, neighbors=neighbors, contributions=3
    )
    points = Points.from_rows([[3]] * 40, axes=AGES.axes, contributions=3)

    release = mechanism.release(points)

    assert release.guarantee == mechanism.guarantee
    assert Fraction(1, 2) - Fraction(1, 10**8) <= release.spent <= Fraction(1, 2)
    assert mechanism.release(points, noise=ZeroNoise()).spent == 0


def _ages(rows: int, seed: int = 0) -> Points:
    cells = np.random.default_rng(seed).binomial(29, 0.4, (rows, 1)) + 1
    return Points.from_rows(cells, axes=AGES.axes)


def test_without_noise_answers_are_the_truth() -> None:
    """The truth is a table's answer, so it is its own projection, as near as the certificate says."""
    mechanism = ProjectedLaplace(queries=ranges("age"), universe=AGES, epsilon=1)
    points = _ages(1000)

    release = mechanism.release(points, noise=ZeroNoise())

    assert release.guarantee is None
    assert release.unprojected.tolist() == mechanism.truth(points).tolist()
    assert release.projection is not None
    assert np.linalg.norm(release.values - release.unprojected) <= release.projection.distance


@pytest.mark.parametrize("seed", range(3))
def test_projected_answers_are_closer_where_queries_outnumber_rows(seed: int) -> None:
    """On 465 ranges about 300 rows the projection halves the error at least, within its bound."""
    mechanism = ProjectedLaplace(queries=ranges("age"), universe=AGES, epsilon=1)
    points = _ages(300, seed)
    truth = mechanism.truth(points)

    release = mechanism.release(points, noise=tape_noise(EndlessTape(seed)))

    off = np.linalg.norm(release.values - truth)
    assert off < np.linalg.norm(release.unprojected - truth) / 2
    assert off <= release.distance(0.05)
    assert np.abs(release.values - truth).max() <= release.error(0.05)
    for index in range(0, len(release), 50):
        low, high = release.answer(index).worst(0.0001)
        assert low <= truth[index] <= high


def test_an_uncertified_projection_is_not_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answers are then the noisy ones, with their own errors, and the story says so."""
    monkeypatch.setattr(module, "find_closest", lambda hull, noisy, **_: hull.middle())
    mechanism = ProjectedLaplace(queries=ranges("age"), universe=AGES, epsilon=1)

    release = mechanism.release(_ages(1000), noise=tape_noise(EndlessTape(1)))

    assert release.projection is None
    assert release.values.tolist() == release.unprojected.tolist()
    assert release.spreads.tolist() == [release.noise.deviation] * len(release)
    assert "No projection was certified" in release.story
    assert release.error(0.05) == release.noise.reach(len(release), 0.025)


def test_noise_that_drowns_the_rows_is_told_before_and_after() -> None:
    """Where the noise of an answer exceeds a quarter of the rows, plan and story say so, else neither."""
    mechanism = ProjectedLaplace(queries=ranges("age"), universe=AGES, epsilon=1)
    few = mechanism.release(_ages(200), noise=ZeroNoise())
    many = mechanism.release(_ages(20_000), noise=ZeroNoise())

    assert "exceeds a quarter" in few.story
    assert "exceeds a quarter" in mechanism.plan_lines(200)[-1]
    assert "exceeds a quarter" not in many.story + " ".join(mechanism.plan_lines(20_000))


def test_scales_do_not_depend_on_the_data() -> None:
    """The same two scales are asked for, whatever the rows."""
    mechanism = _mechanism()
    seen = []
    for counts in ((0, 0, 0, 0), (5, 9, 1, 700)):
        recorder = RecordingNoise(ZeroNoise())
        mechanism.release(_points(counts), noise=recorder)
        seen.append(recorder.scales)

    assert seen == [[mechanism.rows_scale, mechanism.scale]] * 2


@pytest.mark.parametrize(
    ("parameter", "given"),
    [
        ("epsilon", {"epsilon": 0}),
        ("epsilon", {"epsilon": "1e-30"}),
        ("delta", {"delta": 2}),
        ("queries", {"queries": "prefixes(letter)"}),
        ("universe", {"queries": between("age", 1, 2), "universe": Universe(["age"], [Integer(0, 2**30)])}),
        ("contributions", {"contributions": 0}),
    ],
)
def test_bad_parameters_are_named(parameter: str, given: dict[str, Any]) -> None:
    """What breaks a rule is refused by name before any data are seen."""
    with pytest.raises(InvalidParameter) as error:
        ProjectedLaplace(**{"queries": prefixes("letter"), "universe": LETTERS, "epsilon": 1, **given})

    assert error.value.parameter == parameter


def test_data_that_do_not_fit_are_refused_before_noise() -> None:
    """Points of another universe, or of people with more rows, draw nothing."""
    with pytest.raises(InvalidData):
        _mechanism().release(_ages(3), noise=ForbiddenNoise())
    with pytest.raises(InvalidParameter):
        _mechanism().release(_points((1, 0, 0, 0), 2), noise=ForbiddenNoise())


@pytest.mark.parametrize("field", ["guarantee", "error", "proof"])
def test_the_docstring_states(field: str) -> None:
    """Guarantee, Error and Proof are stated."""
    assert f"{field.capitalize()}:" in (ProjectedLaplace.__doc__ or "")
