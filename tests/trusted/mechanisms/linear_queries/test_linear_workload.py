"""Laplace over any workload: exact sensitivity and units, noise that is paid for, files that may lie."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import product
from math import log
from typing import Any

import numpy as np
import pytest

from partita.domain import Category, Integer, Real
from partita.errors import InvalidData, InvalidParameter, InvalidRelease
from partita.guarantee import Guarantee, Neighbors
from partita.public.axis.base import Parts
from partita.public.queries.language import (
    clipped,
    marginal,
    matrix,
    parse,
    power,
    prefixes,
    ranges,
    total,
    value,
    weights,
)
from partita.public.queries.operator import Structured
from partita.public.queries.queries import Queries, Universe
from partita.public.workload.release import AnswerChanges, LinearWorkloadRelease, QueryView
from partita.testing import (
    CouplingBroken,
    EndlessTape,
    RationalNoise,
    RecordingNoise,
    ZeroNoise,
    add_remove_pairs,
    coupled,
    law,
    privacy_loss,
    tape_noise,
)
from partita.trusted.mechanisms.workload import LinearWorkload
from partita.trusted.secret import Points

HALF = Fraction(1, 2)
TINY = Universe(["sex"], [Category(["f"])])
SMALL = Universe(["age", "sex"], [Real(0, "0.5", step="0.5"), Category(["f"])])
ASKED = prefixes("age") * marginal("sex") + Fraction(1, 3) * value("age") + weights("sex", {"f": -1})
Counts = tuple[int, ...]


def _mechanism(queries: Queries = ASKED, universe: Universe = SMALL, **given: Any) -> LinearWorkload:
    settings: dict[str, Any] = {"queries": queries, "universe": universe, "epsilon": 1}
    return LinearWorkload(**settings | given)


def _points(counts: Counts, universe: Universe, contributions: int = 1) -> Points:
    places = list(product(*map(range, universe.shape)))
    return Points.from_rows(places, axes=universe.axes, counts=counts, contributions=contributions)


def _run(mechanism: LinearWorkload) -> Callable[[Counts, Any], tuple[Any, ...]]:
    def run(counts: Counts, noise: Any) -> tuple[Any, ...]:
        points = _points(counts, mechanism.universe, mechanism.contributions)
        return tuple(mechanism.release(points, noise=noise).noisy.tolist())

    return run


def test_the_scale_is_the_column_norm_over_epsilon() -> None:
    """In units: how far apart two cells are, or the heaviest cell, times a person's rows, over epsilon."""
    mechanism = _mechanism(epsilon="1/2", contributions=3, neighbors="change-one")
    operator = mechanism.operator

    assert operator.column_norm < operator.column_distance
    assert mechanism.scale == operator.column_distance * 3 * 2
    assert mechanism.guarantee == Guarantee(
        epsilon="1/2", neighbors="change-one", unit="person", contributions=3
    )
    assert mechanism.largest_error == pytest.approx(
        float(mechanism.scale) * (log(len(operator)) + 1) / operator.granularity
    )


def test_without_noise_answers_are_exact() -> None:
    """Zero noise gives the weighted sums of all rows."""
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 100, SMALL.size)
    mechanism = _mechanism()
    release = mechanism.release(_points(tuple(counts.tolist()), SMALL), noise=ZeroNoise())
    dense = mechanism.operator.weights_at(np.array(list(product(*map(range, SMALL.shape))), np.uint64))

    assert release.noisy.tolist() == (dense @ counts).tolist()
    assert release.values == pytest.approx(release.noisy / mechanism.operator.granularity)
    assert release.guarantee is None


def test_arrays_and_points_agree() -> None:
    """A universe too large for an array gives the same answers, row by row."""
    small = Universe(["age", "income"], [Integer(0, 3), Integer(0, 5)])
    large = Universe(["age", "income"], [Integer(0, 3), Integer(0, 2**40)])
    asked = prefixes("age") * clipped("income", 4)
    places = [[1, 1], [2, 3], [4, 6], [7, 2]]

    def answers(universe: Universe) -> list[int]:
        points = Points.from_rows(places, axes=universe.axes, counts=[1, 2, 3, 4])
        released = _mechanism(asked, universe).release(points, noise=ZeroNoise())
        return [int(each) for each in released.noisy]

    assert answers(small) == answers(large)


@pytest.mark.parametrize(
    ("queries", "window"),
    [
        (total(), range(4)),
        (HALF * total() + weights("sex", {"f": 1}), range(-1, 4)),
        (marginal("sex"), range(2)),
    ],
)
def test_the_law_loses_exactly_epsilon(queries: Queries, window: range) -> None:
    """Enumerated over all neighbours of a universe of three cells, the worst loss is epsilon."""
    mechanism = _mechanism(queries, TINY)
    noise = RationalNoise(HALF, unit=1 / mechanism.scale, window=window)
    run = _run(mechanism)
    pairs = list(add_remove_pairs(3, 1))
    data = {each for pair in pairs for each in pair}
    laws = {each: law(partial(run, each), noise) for each in data}

    losses = [privacy_loss(laws[one], laws[other], base=HALF, unit=noise.unit) for one, other in pairs]

    assert max(losses) == 1


def _neighbors(neighbors: Neighbors) -> Iterator[tuple[Counts, Counts]]:
    """A row more in any cell of no rows or of one, or a row that moves from any cell to any other."""
    ones = [tuple(row) for row in np.eye(SMALL.size, dtype=np.int64).tolist()]
    empty = (0,) * SMALL.size
    if neighbors == "change-one":
        return iter([(one, other) for one in ones for other in ones])
    return iter(
        [(held, tuple(map(sum, zip(held, one, strict=True)))) for held in (empty, *ones[::5]) for one in ones]
    )


def _losses(run: Any, pairs: Iterator[tuple[Counts, Counts]]) -> set[Fraction | float]:
    def loss(one: Counts, other: Counts) -> Fraction | float:
        try:
            return coupled(run, one, other, tape_noise(EndlessTape(1), path="numpy").session())
        except CouplingBroken:
            return float("inf")

    return {loss(one, other) for one, other in pairs}


@pytest.mark.parametrize("neighbors", ["add-remove", "change-one"])
def test_all_neighbors_couple_within_epsilon(neighbors: Neighbors) -> None:
    """Over all cells of a small universe, rows that come, go or move cost at most epsilon; some cost all."""
    mechanism = _mechanism(epsilon="1/3", neighbors=neighbors)

    assert max(_losses(_run(mechanism), _neighbors(neighbors))) == Fraction(1, 3)


def test_half_the_distance_of_two_cells_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The distance of columns is exact: a part of it is too little for some row that moves."""
    operator = ASKED.over(SMALL)
    monkeypatch.setattr(type(operator), "column_distance", operator.column_distance // 2)

    assert max(_losses(_run(_mechanism(neighbors="change-one")), _neighbors("change-one"))) > 1


def _moved(mechanism: LinearWorkload) -> int:
    """By how much one row moves what reaches the sampler, over all cells."""

    def seen(counts: Counts) -> Any:
        recorder = RecordingNoise(ZeroNoise())
        return np.array(_run(mechanism)(counts, recorder), object)

    empty = seen((0,) * mechanism.universe.size)
    cells = np.eye(mechanism.universe.size, dtype=np.int64)
    return max(int(np.abs(seen(tuple(cell.tolist())) - empty).sum()) for cell in cells)


@pytest.mark.parametrize(
    "queries",
    [
        ASKED,
        ranges("age") * value("age"),
        power("age", 2) + prefixes("age"),
        weights(("age", "sex"), lambda age, sex: 3 * float(age), bound=1),
        matrix("age", [{0: 1, "0.5": -2}, {"0.5": "1/3"}]),
        marginal("age", "sex") * (total() + 2 * value("age")),
    ],
    ids=lambda queries: str(queries)[:40],
)
def test_sensitivity_at_the_sampler_is_the_column_norm(queries: Queries) -> None:
    """What one row changes of the integers that get noise is exactly the norm that the scale is made of."""
    mechanism = _mechanism(queries)

    assert _moved(mechanism) == mechanism.operator.column_norm == mechanism.scale


WRONG: dict[str, Callable[[Structured], int]] = {
    "the largest weight": lambda self: self.largest,
    "the mean column": lambda self: int(self.column_sums().mean()),
    "divided by the number of axes": lambda self: int(self.column_sums().max()) // 2,
    "whole answers for units": lambda self: int(self.column_sums().max()) // self.granularity,
}


@pytest.mark.parametrize("bug", WRONG)
def test_wrong_norms_are_caught(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Norms other than the largest sum of absolute weights of a cell lose more than epsilon."""
    operator = ASKED.over(SMALL)
    monkeypatch.setattr(type(operator), "column_norm", property(WRONG[bug]))

    assert max(_losses(_run(_mechanism()), _neighbors("add-remove"))) > 1


def test_forgotten_contributions_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise for one row where a person has two loses twice epsilon."""
    right = AnswerChanges.between
    forgetful = staticmethod(lambda promise, operator: right(replace(promise, contributions=1), operator))
    monkeypatch.setattr(AnswerChanges, "between", forgetful)
    mechanism = _mechanism(contributions=2)
    run, cell = _run(mechanism), int(np.argmax(mechanism.operator.column_sums()))
    two = tuple(2 * int(at == cell) for at in range(SMALL.size))

    assert _losses(run, iter([((0,) * SMALL.size, two)])) == {Fraction(2)}


def test_delta_buys_less_noise_for_many_queries() -> None:
    """With delta the best theorem is used: never more noise than pure, and less for many queries."""
    ages = Universe(["age"], [Integer(0, 400)])
    pure, one = _mechanism(prefixes("age"), ages), _mechanism(total(), ages, delta="1e-6")
    approximate = _mechanism(prefixes("age"), ages, delta="1e-6")

    assert approximate.guarantee.delta == Fraction(1, 10**6)
    assert approximate.scale < pure.scale / 2
    assert one.scale == 1
    assert "zCDP" in approximate.plan_lines(10)[0]
    assert "pure" in pure.plan_lines(10)[0]


@pytest.mark.parametrize("neighbors", ["add-remove", "change-one"])
def test_the_rate_with_delta_is_what_zcdp_allows(neighbors: Neighbors) -> None:
    """A row that comes or moves changes each prefix by one at most, and rho + 2 sqrt(rho ln 1/delta) is 1."""
    ages = Universe(["age"], [Integer(0, 400)])
    mechanism = _mechanism(prefixes("age"), ages, delta="1e-6", neighbors=neighbors)
    rho = len(mechanism.operator) / (2 * float(mechanism.scale) ** 2)

    assert rho + 2 * (rho * log(10**6)) ** 0.5 == pytest.approx(1, abs=1e-6)
    assert rho + 2 * (rho * log(10**6)) ** 0.5 <= 1


def test_a_row_that_moves_changes_one_answer_once() -> None:
    """One query of weights 0 and 1 needs no more noise for rows that move than for rows that come."""
    [come, move] = [
        _mechanism(ranges("age", [(0, 0)]), neighbors=neighbors) for neighbors in ("add-remove", "change-one")
    ]

    assert come.scale == move.scale == 1
    assert max(_losses(_run(move), _neighbors("change-one"))) == 1


def _noisy(**given: Any) -> LinearWorkloadRelease:
    mechanism = _mechanism(**given)
    return mechanism.release(_points((1,) * SMALL.size, SMALL), noise=tape_noise(EndlessTape(0)))


def test_answers_carry_their_errors() -> None:
    """One standard error for all; bounds start at zero only where no weight is negative."""
    release = _noisy()
    last = len(release) - 1

    assert release.answers().error == pytest.approx([release.answer(0).error] * len(release))
    assert release.answers().values == pytest.approx([release.answer(i).value for i in range(len(release))])
    assert release.answer(0).worst(1e-9)[0] == 0.0
    assert release.answer(last).worst(1e-9)[0] < 0.0
    assert release.error(0.05) >= max(release.answer(i).error for i in range(len(release)))
    assert _mechanism().predicted_error(10) == pytest.approx(release.answer(0).error)
    assert _mechanism().predicted_numbers(10) == len(release)


@pytest.mark.parametrize("delta", [0, "1e-3"])
def test_releases_round_trip(delta: Any) -> None:
    """Taken apart and put together it is the same release, and its noise is worth its promise."""
    release = _mechanism(delta=delta).release(_points((1,) * SMALL.size, SMALL))
    again = LinearWorkloadRelease.from_parts(release.parts(), release.guarantee, parse(str(ASKED)), SMALL)

    assert again.values.tolist() == release.values.tolist()
    assert again.parts().digest == release.parts().digest
    assert again.spent == 1 if delta == 0 else Fraction(99, 100) < again.spent <= 1


def test_noise_that_is_too_small_costs_more_than_was_promised() -> None:
    """A file that claims less noise than its promise needs does not keep it."""
    release = _mechanism().release(_points((1,) * SMALL.size, SMALL))
    parts = release.parts()._replace(facts={"scale": str(release.scale / 2)})
    lying = LinearWorkloadRelease.from_parts(parts, release.guarantee, ASKED, SMALL)

    def view(answers: LinearWorkloadRelease) -> QueryView:
        return QueryView(
            columns=SMALL.columns, domains=SMALL.domains, queries=ASKED, answers=answers, mechanism="linear"
        )

    assert lying.spent == 2
    assert not view(lying).keeps_its_promise
    assert view(release).keeps_its_promise


def test_files_of_queries_that_weigh_nothing_have_a_cost() -> None:
    """No mechanism makes such files, and to look at one is no error."""
    release = LinearWorkloadRelease(
        noisy=np.zeros(1, np.int64),
        scale=Fraction(2),
        queries=0 * total(),
        universe=SMALL,
        guarantee=Guarantee(epsilon=1),
    )

    assert release.spent == Fraction(1, 2)


HOSTILE: dict[str, Callable[[Parts], Parts]] = {
    "no scale": lambda parts: parts._replace(facts={}),
    "another fact": lambda parts: parts._replace(facts={**parts.facts, "more": 1}),
    "a scale of zero": lambda parts: parts._replace(facts={"scale": "0"}),
    "a float": lambda parts: parts._replace(facts={"scale": "nan"}),
    "no answers": lambda parts: parts._replace(series={}),
    "too few answers": lambda parts: parts._replace(series={"noisy": parts.series["noisy"][1:]}),
    "floats": lambda parts: parts._replace(series={"noisy": parts.series["noisy"].astype(float)}),
    "huge": lambda parts: parts._replace(series={"noisy": parts.series["noisy"].astype(object) + 2**200}),
    "a table": lambda parts: parts._replace(series={"noisy": parts.series["noisy"][None]}),
}


@pytest.mark.parametrize("lie", HOSTILE)
def test_hostile_parts_are_refused(lie: str) -> None:
    """Whatever is missing, added or of another kind is an InvalidRelease."""
    release = _noisy()

    with pytest.raises(InvalidRelease):
        LinearWorkloadRelease.from_parts(HOSTILE[lie](release.parts()), None, ASKED, SMALL)


@pytest.mark.parametrize(
    "queries", [value("city"), ranges("age", step=7), weights("sex", {"x": 1})], ids=repr
)
def test_queries_of_other_columns_are_refused(queries: Queries) -> None:
    """Queries that the columns beside them cannot answer make no release."""
    with pytest.raises(InvalidRelease):
        LinearWorkloadRelease.from_parts(_noisy().parts(), None, queries, SMALL)


def test_views_know_their_queries() -> None:
    """Labels, answers and the total, if it was asked for."""
    asked = prefixes("age") + total()
    release = _noisy(queries=asked)
    view = QueryView(
        columns=SMALL.columns, domains=SMALL.domains, queries=asked, answers=release, mechanism="linear"
    )

    assert [view.label(i) for i in range(len(view))] == [
        "between(age, none, 0)",
        "between(age, none, 0.5)",
        "total()",
    ]
    assert view.total is not None
    assert view.total.value == view.answer(2).value
    assert view.error(0.05) == release.error(0.05)
    assert repr(view) == "QueryView(age, sex; 3 queries; linear)"
    with pytest.raises(InvalidRelease):
        QueryView(
            columns=SMALL.columns, domains=SMALL.domains, queries=total(), answers=release, mechanism="linear"
        )


@pytest.mark.parametrize(
    ("given", "parameter"),
    [
        ({"queries": "total()"}, "queries"),
        ({"queries": 0 * total()}, "queries"),
        ({"queries": 2**80 * total(), "epsilon": 2**40}, "queries"),
        ({"queries": 2**63 * total()}, "queries"),
        ({"universe": ["age"]}, "universe"),
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": 2**40}, "epsilon"),
        ({"delta": -1}, "delta"),
        ({"delta": 1}, "delta"),
        ({"neighbors": "all"}, "neighbors"),
        ({"contributions": 0}, "contributions"),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore::partita.PrivacyWarning")
def test_bad_parameters_are_refused(given: dict[str, Any], parameter: str) -> None:
    """The error names the parameter, before anything is drawn."""
    with pytest.raises(InvalidParameter) as refused:
        _mechanism(**given)

    assert refused.value.parameter == parameter


def test_points_that_do_not_fit_are_refused() -> None:
    """Other axes, more contributions, and what is no points."""
    mechanism = _mechanism()

    with pytest.raises(InvalidData):
        mechanism.release(_points((1,) * TINY.size, TINY))
    with pytest.raises(InvalidData):
        mechanism.release([[0, 0]])  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        mechanism.release(_points((1,) * SMALL.size, SMALL, contributions=2))
