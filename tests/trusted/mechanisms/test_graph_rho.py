"""Table releases cost at most rho: replayed neighbours, exact laws of choices, and bugs that are caught."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import partita as pt
from partita.domain import Category, Domain, Integer
from partita.domain.axis import Axis
from partita.errors import InvalidParameter, InvalidRelease
from partita.guarantee import Guarantee
from partita.public.axis.base import Parts
from partita.public.base import Provenance
from partita.public.bounds import Gaussian, noise_variance
from partita.public.boxes.bins import AxisBins
from partita.public.boxes.grid import CellGrid, GaussianGridRelease
from partita.public.release import Release
from partita.public.tables import audits, model
from partita.public.tables.graph import TableGraphRelease
from partita.public.tables.spending import RhoSpending
from partita.public.views import BoxView
from partita.testing import EndlessTape, RecordingNoise, ReplayBroken, ZeroNoise, replay, tape_noise
from partita.testing.laws import RationalNoise, law
from partita.trusted.mechanisms.graph import TableGraph
from partita.trusted.secret import Points

module: Any = import_module("partita.trusted.mechanisms.graph")

Row = tuple[int, ...]
Rows = tuple[Row, ...]
Bug = Callable[[pytest.MonkeyPatch], None]

AXES = (Axis(size=3), Axis(size=2, labels=True), Axis(size=9, after=1), Axis(size=10, labels=True))
LONG = (Axis(size=3), Axis(size=2**20), Axis(size=4, labels=True))
BITS = (Axis(size=2),) * 6
RHO = Fraction(1, 2)
CROWD: Rows = tuple((n % 3, n % 2, n * n % 10, n * 3 % 10) for n in range(24))
ROW, OTHER = (0, 1, 9, 4), (2, 0, 3, 7)


@pytest.fixture(autouse=True)
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fits that end early: privacy does not depend on how good they are."""
    monkeypatch.setattr(model, "_STEPS", 4)


def _points(mechanism: TableGraph, rows: Rows) -> Points:
    places = np.array(rows, np.int64).reshape(-1, len(mechanism.axes))
    return Points.from_rows(places, axes=mechanism.axes, contributions=mechanism.contributions)


def _cost(one: Rows, other: Rows, *, seed: object = 0, passes: int = 3, **changes: Any) -> Any:
    """What a release on neighbouring tables costs."""
    mechanism = TableGraph(**{"axes": AXES, "rho": RHO, **changes})

    def run(rows: Rows) -> list[object]:
        parts = mechanism.release(_points(mechanism, rows)).parts()
        return [dict(parts.facts), *(series.tolist() for series in parts.series.values())]

    return replay(run, one, other, seed=seed, passes=passes)


# Replayed neighbours.

PERSON = {"contributions": 2}
CHANGED: dict[str, Any] = {"neighbors": "change-one"}
CASES: list[tuple[str, Rows, Rows, dict[str, Any]]] = [
    ("a row comes", CROWD, (*CROWD, ROW), {}),
    ("a row goes", (*CROWD, OTHER), CROWD, {}),
    ("the first row", (), (ROW,), {}),
    ("a row changes", (*CROWD, ROW), (*CROWD, OTHER), CHANGED),
    ("two rows come", CROWD, (*CROWD, ROW, ROW), PERSON),
    ("two rows change", (*CROWD, ROW, ROW), (*CROWD, OTHER, OTHER), CHANGED | PERSON),
    ("together", CROWD, (*CROWD, ROW), {"together": [(0, 1, 2)]}),
    ("small rho", CROWD, (*CROWD, ROW), {"rho": Fraction(1, 5000)}),
]


@pytest.mark.parametrize(("name", "one", "other", "changes"), CASES, ids=[case[0] for case in CASES])
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.spread(8)
def test_neighbours_cost_at_most_rho(
    name: str, one: Rows, other: Rows, changes: dict[str, Any], seed: int
) -> None:
    """The same release comes of both; draws cost at most rho together, and most of it."""
    rho = changes.get("rho", RHO)
    cost = _cost(one, other, seed=(name, seed), passes=3, **changes)

    assert cost.within_rho(rho)
    assert not cost.within_rho(rho / 2)


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("neighbors", ["add-remove", "change-one"])
def test_tables_cost_their_part_exactly_where_all_rows_share_a_cell(k: int, neighbors: Any) -> None:
    """k rows in one cell, or from one cell to another: the squared change is what `square` says."""
    spending = RhoSpending(Fraction(1, 2), neighbors, k)
    change = [k, -k] if neighbors == "change-one" else [k]
    variance = Fraction(spending.cell(Fraction(1, 3)).variance)

    assert sum(each**2 for each in change) == spending.square
    assert sum(Fraction(each) ** 2 for each in change) / (2 * variance) <= Fraction(1, 6)
    assert sum(Fraction(each) ** 2 for each in change) / (2 * variance) > Fraction(166, 1000)


@given(
    before=st.lists(st.integers(0, 4), min_size=0, max_size=3),
    after=st.lists(st.integers(0, 4), min_size=0, max_size=3),
)
def test_no_unit_changes_a_table_by_more_than_its_square(before: list[int], after: list[int]) -> None:
    """Whatever cells the at most three rows of a person were in, and are in now."""
    gone, come = (np.bincount(cells, minlength=5) for cells in (before, after))

    assert ((come - gone) ** 2).sum() <= RhoSpending(RHO, "change-one", 3).square
    assert (come**2).sum() <= RhoSpending(RHO, "add-remove", 3).square
    assert abs(int(come.sum() - gone.sum())) ** 2 <= RhoSpending(RHO, "change-one", 3).square


def test_a_long_column_has_a_tree_with_the_root_of_its_part() -> None:
    """Trees stay pure: theirs is epsilon^2 / 2."""
    rows = tuple((n % 3, n * 7919 % 2**20, n % 4) for n in range(40))
    cost = _cost(rows, (*rows, (1, 12345, 2)), axes=LONG)
    mechanism = TableGraph(axes=LONG, rho=RHO)
    release = mechanism.release(_points(mechanism, rows))

    assert [view.kind for view in release.fit.views] == ["gaussian-grid", "spending-boxes", "gaussian-grid"]
    assert cost.within_rho(RHO)
    assert release.keep(mechanism.guarantee)


def test_a_cover_costs_at_most_rho() -> None:
    """Six columns of two cells with many rows have views of several columns, and no choice."""
    rows = tuple(tuple((n // each) % 2 for each in (1, 2, 3, 5, 7, 11)) for n in range(900))
    cost = _cost(rows, (*rows, (1, 0, 1, 0, 1, 1)), axes=BITS)

    assert cost.within_rho(RHO)
    assert not cost.within_rho(RHO / 2)


@pytest.mark.parametrize("limits", [(0, 0), (0, 10**9)], ids=["with a tail", "without a tail"])
def test_releases_with_more_audits_cost_at_most_rho(
    limits: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Classes of pairs, and the tail, have audits of their own, as with many rows."""
    monkeypatch.setattr(audits, "_POOLED_BELOW", limits[0])
    monkeypatch.setattr(audits, "_SPLIT_FROM", limits[1])

    assert _cost(CROWD, (*CROWD, ROW), seed=1).within_rho(RHO)


# Choices, by their exact law.


def _fitting(
    fits: Callable[[Sequence[Any]], bool], scores: Sequence[int], number: int, noise: Any, w: int = 1
) -> Any:
    """What `_Selection` picks with a public rule of what fits, and pays: e = 1 of a rho of 1/4, twice."""
    points = Points.from_rows([[0, 0]], axes=[Axis(size=2), Axis(size=2)])
    budget = module._Budget(RhoSpending(Fraction(1, 4), "add-remove", w))
    rows = module._Rows(points, (AxisBins.identity(2),) * 2, noise, budget)
    shares: Any = None
    selection = module._Selection(rows, shares, ())
    fit: Any = type("Fit", (), {"fits": staticmethod(fits)})
    pairs = {(0, place): score for place, score in enumerate(scores, start=1)}
    picked = selection._fitting(fit, pairs, number, Fraction(1, 2))
    return tuple(pair[1] for pair in picked), selection.choosing


def _odd(pairs: Sequence[Any]) -> bool:
    """The second pair fits behind the first one only."""
    return (0, 2) not in pairs or (0, 1) in pairs[:-1]


def _divergence(one: Any, other: Any, order: float) -> float:
    """The Renyi divergence of two laws with rational probabilities."""
    total = sum(float(p) ** order * float(other[value]) ** (1 - order) for value, p in one.items())
    return math.log(total) / (order - 1)


_AROUND = [(0, 8, 8), (1, 7, 7), (0, 0, 0), (1, 1, -1), (-1, 1, 1), (3, 12, 3), (2, 13, 2)]
_STAND_IN = 2 * math.log(2)
"""The e of a choice whose weights change by a factor of two for a score of one: the range of its losses."""


def _choice_costs(number: int) -> Iterator[float]:
    """Divergences over their orders, of all scores that one row may make of each other."""
    for one, other in product(_AROUND, repeat=2):
        if 0 < max(abs(a - b) for a, b in zip(one, other, strict=True)) <= 1:
            noise = RationalNoise(Fraction(1, 2), unit=Fraction(1, 2))
            first, second = (dict(law(partial(_fitting, _odd, each, number), noise)) for each in (one, other))
            yield max(_divergence(first, second, order) / order for order in (1.001, 1.5, 2, 4, 16, 64))


@pytest.mark.parametrize("number", [1, 2])
def test_a_pick_costs_an_eighth_of_its_square(number: int) -> None:
    """By enumeration, at many orders; half of that would not do."""
    costs = list(_choice_costs(number))

    assert max(costs) <= number * _STAND_IN**2 / 8 + 1e-12
    assert max(costs) > _STAND_IN**2 / 16


def test_picks_pay_what_they_cost() -> None:
    """An eighth for each, of one row and for a person of three rows: then per row a ninth."""
    for w in (1, 3):
        _, paid = _fitting(lambda _: True, (0, 1, 2), 2, ZeroNoiseThatChooses(), w)
        assert paid == Fraction(1, 4) / w**2
        assert RhoSpending(Fraction(1, 4), "add-remove", w).choice_scale(Fraction(1, 2)) == 2 * w


class ZeroNoiseThatChooses(ZeroNoise):
    """Always the first."""

    def exponential(self, scores: Any, scale: Fraction) -> int:
        return 0


# Planted bugs: each is one way to get rho wrong, put into the shipped code.


def _many_misfits_with_the_noise_of_one(patch: pytest.MonkeyPatch) -> None:
    right = RhoSpending.sum
    patch.setattr(RhoSpending, "sum", lambda spending, part, number: right(spending, part, 1))


def _sums_in_the_root_of_their_number(patch: pytest.MonkeyPatch) -> None:
    right = RhoSpending.sum

    def root(spending: Any, part: Fraction, number: int) -> Gaussian:
        return Gaussian(right(spending, part, 1).variance * number)

    patch.setattr(RhoSpending, "sum", root)


def _choices_of_eight_times_the_epsilon(patch: pytest.MonkeyPatch) -> None:
    right = RhoSpending.choice_scale
    patch.setattr(RhoSpending, "choice_scale", lambda spending, part: right(spending, part) / 8)


def _half_of_the_variance(patch: pytest.MonkeyPatch) -> None:
    right = RhoSpending.cell

    def cell(spending: Any, part: Fraction) -> Gaussian:
        return Gaussian(right(spending, part).variance / 2)

    patch.setattr(RhoSpending, "cell", cell)


def _parts_that_nobody_counts(patch: pytest.MonkeyPatch) -> None:
    right = module._Rows.measure
    patch.setattr(module._Budget, "pay", lambda budget, part: None)
    patch.setattr(module._Rows, "measure", lambda rows, fit, sets, part: right(rows, fit, sets, 2 * part))


def _true_total_in_a_guess(patch: pytest.MonkeyPatch) -> None:
    right = module._Rows.misfit

    def misfit(rows: Any, columns: Any, groups: Any, guess: Any, beyond: Any = 0) -> int:
        return int(right(rows, columns, groups, guess + rows.points.total, beyond))

    patch.setattr(module._Rows, "misfit", misfit)


def _number_of_pairs_by_true_misfits(patch: pytest.MonkeyPatch) -> None:
    true: list[int] = [0]
    sum_up = module._Rows.sum_up

    def telling(rows: Any, misfits: Any, part: Fraction) -> Any:
        true[0] = sum(misfits)
        return sum_up(rows, misfits, part)

    patch.setattr(module._Rows, "sum_up", telling)
    patch.setattr(RhoSpending, "carried", lambda *given: 1 + true[0] // 2 % 3)


def _variance_by_the_true_total(patch: pytest.MonkeyPatch) -> None:
    right = module._Rows.measure

    def measure(rows: Any, *given: Any) -> Any:
        cell = RhoSpending.cell
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(
                RhoSpending,
                "cell",
                lambda spending, part: Gaussian(cell(spending, part).variance + rows.points.total),
            )
            return right(rows, *given)

    patch.setattr(module._Rows, "measure", measure)


BUGS: list[Bug] = [
    _many_misfits_with_the_noise_of_one,
    _sums_in_the_root_of_their_number,
    _choices_of_eight_times_the_epsilon,
    _half_of_the_variance,
    _parts_that_nobody_counts,
    _true_total_in_a_guess,
    _number_of_pairs_by_true_misfits,
    _variance_by_the_true_total,
]

FEW = [(CROWD, (*CROWD, row), seed) for seed, row in enumerate((ROW, OTHER, (1, 1, 0, 0)))]


def _caught(pairs: Sequence[tuple[Rows, Rows, int]], **changes: Any) -> bool:
    """Whether a replay breaks or costs more than rho."""
    try:
        costs = (_cost(one, other, seed=seed, **changes) for one, other, seed in pairs)
        return any(not cost.within_rho(RHO) for cost in costs)
    except ReplayBroken:
        return True


def test_the_planted_bugs_are_what_is_caught() -> None:
    """Without any of them nothing is."""
    assert not _caught(FEW)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_planted_bugs_are_caught(bug: Bug) -> None:
    """A replay breaks or costs more than rho for some pair of few."""
    with pytest.MonkeyPatch.context() as patch:
        bug(patch)

        assert _caught(FEW)


@pytest.mark.parametrize("case", [CASES[3], CASES[4], CASES[5]], ids=lambda case: case[0])
@pytest.mark.parametrize("name", ["square", "rows"])
def test_wrong_factors_are_caught(case: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise for one row does not hide one that moves, or two: neither in tables nor in sums."""
    _, one, other, changes = case
    monkeypatch.setattr(RhoSpending, name, 1)

    assert _caught([(one, other, 0), (one, other, 1)], **changes)


def test_the_norm_of_several_rows_in_one_cell_is_not_their_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """k rows in as many cells have a squared change of k, in one cell k^2: with k nothing is hidden."""
    _, one, other, changes = CASES[4]
    monkeypatch.setattr(RhoSpending, "square", property(lambda spending: spending.contributions))

    assert _caught([(one, other, 0)], **changes)


# What is spent, and what is told.


class WildNoise:
    """Noise of any size: parts depend on noisy numbers only, so every path can be had."""

    secure = False

    def __init__(self, seed: int, size: int) -> None:
        self._random, self._size = np.random.default_rng(seed), size

    def session(self) -> WildNoise:
        return self

    def add(self, x: Any, scale: Fraction, *, parts: Any = None) -> Any:
        return self.add_gaussian(x, scale)

    def add_gaussian(self, x: Any, variance: Fraction) -> Any:
        reach = self._size * int(self._random.integers(0, 3))
        values = np.asarray(x) + self._random.integers(-reach, reach + 1, np.shape(x))
        return values if np.ndim(x) else int(values)

    def exponential(self, scores: Any, scale: Fraction) -> int:
        return int(self._random.integers(len(scores)))


def _schemas() -> st.SearchStrategy[list[Axis]]:
    axis = st.builds(
        Axis, size=st.sampled_from([1, 2, 3, 8, 9, 30]), after=st.integers(0, 1), labels=st.booleans()
    )
    same = st.builds(lambda one, number: [one] * number, axis, st.integers(6, 9))
    return st.lists(axis, min_size=2, max_size=5) | same


@settings(max_examples=40)
@given(
    axes=_schemas(),
    number=st.integers(0, 200),
    seed=st.integers(0, 99),
    size=st.sampled_from([1, 100, 10**5]),
    neighbors=st.sampled_from(["add-remove", "change-one"]),
    k=st.sampled_from([1, 3]),
)
def test_no_path_spends_more_than_rho(
    axes: list[Axis], number: int, seed: int, size: int, neighbors: Any, k: int
) -> None:
    """Whatever is seen: covers, forests, later pairs, tables measured again. The release says the same."""
    mechanism = TableGraph(axes=axes, rho=Fraction(1, 9), neighbors=neighbors, contributions=k)
    rows = np.random.default_rng(seed).integers(0, [axis.width for axis in axes], (number, len(axes)))
    points = Points.from_rows(rows, axes=axes, contributions=k)
    release = mechanism.release(points, noise=cast(Any, WildNoise(seed, size)))

    assert release.keep(mechanism.guarantee)
    less = TableGraph(axes=axes, rho=Fraction(1, 9) * Fraction(85, 100), neighbors=neighbors, contributions=k)
    assert not release.keep(less.guarantee)


def test_every_variance_that_is_drawn_is_told() -> None:
    """All Gaussian noise belongs to the total, a view, a table, a look or an audit."""
    recorder = RecordingNoise(tape_noise(EndlessTape(1)))
    mechanism = TableGraph(axes=AXES, rho=RHO)
    release = mechanism.release(_points(mechanism, CROWD * 40), noise=recorder)
    told = [release.fit.scale, *(view.law for view in release.fit.views if isinstance(view, CellGrid))]
    told += [table.scale for table in release.fit.tables]
    told += [audit.scale for audit in release.audits]
    told += [look.scale for look in release.looks]

    assert sorted(recorder.variances) == sorted(cast(Gaussian, each).variance for each in told)
    choices = sum((1 / (2 * scale**2) for scale in recorder.scales), Fraction(0))
    assert release.choosing * Fraction(99, 100) < choices <= release.choosing


def test_the_same_tape_gives_the_same_release() -> None:
    """And another one another release."""
    mechanism = TableGraph(axes=AXES, rho=RHO)
    made = [
        mechanism.release(_points(mechanism, CROWD), noise=tape_noise(EndlessTape(seed))).parts().digest
        for seed in (1, 1, 2)
    ]

    assert made[0] == made[1]
    assert made[0] != made[2]


def test_a_release_under_rho_promises_rho() -> None:
    """And an epsilon that follows at delta."""
    mechanism = TableGraph(axes=AXES, rho="1/8", delta="1e-6")

    assert mechanism.guarantee == Guarantee.concentrated(rho="1/8", delta="1e-6")
    with pytest.raises(InvalidParameter, match="epsilon"):
        TableGraph(axes=AXES, rho="1/8", epsilon=1)


def test_variances_are_those_of_the_laws() -> None:
    """Answers about one cell of one column have the noise of its view."""
    mechanism = TableGraph(axes=AXES, rho=RHO)
    release = mechanism.release(_points(mechanism, CROWD), noise=tape_noise(EndlessTape(3)))
    view = cast(GaussianGridRelease, release.fit.views[3])

    cell = np.array([[2]], np.uint64)
    assert view.errors(cell, cell)[0] == pytest.approx(math.sqrt(noise_variance(view.law)))
    half = 1.96 * math.sqrt(noise_variance(view.law))
    answer = view.answer(view.everything)
    assert answer.error == pytest.approx(half / 1.96 * math.sqrt(10))
    assert answer.worst(0.05)[1] >= answer.interval()[1]


# Files.


def _release() -> TableGraphRelease:
    mechanism = TableGraph(axes=LONG, rho=RHO)
    rows = tuple((n % 3, n * 7919 % 2**20, n % 4) for n in range(200))
    return mechanism.release(_points(mechanism, rows), noise=tape_noise(EndlessTape(0)))


def test_releases_under_rho_come_back_from_their_parts() -> None:
    """With the law of every noise."""
    release = _release()
    again = TableGraphRelease.from_parts(release.parts(), None)

    assert again.parts().digest == release.parts().digest
    assert again.spent == release.spent
    assert again.is_gaussian


LAWS = ["1", "gaussian", "gaussian 0", "gaussian 4/2", "gaussian 1/0", "gaussian  2", "gaussian 2 3"]
LAWS += [f"gaussian {2**125}", "Gaussian 2", "normal 2"]


@pytest.mark.parametrize("law", [*LAWS, 5, None, ["gaussian", "2"]], ids=repr)
@pytest.mark.parametrize("place", ["scale", "views", "tables", "looks", "audits"])
def test_other_laws_are_refused(law: Any, place: str) -> None:
    """A scale among variances, no variance, a variance that cannot be drawn, another word."""
    parts = _release().parts()
    facts: dict[str, Any] = dict(parts.facts)
    if place == "scale":
        facts[place] = law
    elif place == "views":
        variance = "0" if law == "1" else law  # a variance has no word before it where the kind tells the law
        facts[place] = [{**facts[place][0], "variance": variance}, *facts[place][1:]]
    else:
        at = {"tables": 1, "looks": 2, "audits": 4}[place]
        first = list(facts[place][0])
        first[at] = law
        facts[place] = [first, *facts[place][1:]]

    with pytest.raises(InvalidRelease):
        TableGraphRelease.from_parts(Parts(facts, parts.series), None)


def test_views_of_another_law_are_refused() -> None:
    """A grid of Laplace noise among Gaussian ones."""
    parts = _release().parts()
    facts: dict[str, Any] = dict(parts.facts)
    first = {"kind": "grid", "axes": facts["views"][0]["axes"], "scale": "3"}
    facts["views"] = [first, *facts["views"][1:]]

    with pytest.raises(InvalidRelease, match="one law"):
        TableGraphRelease.from_parts(Parts(facts, parts.series), None)


def test_files_of_releases_under_rho_hold_their_promise(tmp_path: Path) -> None:
    """They are written and read with rho, and refused if they promise less of it than their noise costs."""
    domains: dict[str, Domain] = {
        "age": Integer(0, 8),
        "town": Category(["a", "b"]),
        "sex": Category(["f", "m"]),
    }
    axes = tuple(map(Axis.of, domains.values()))
    mechanism = TableGraph(axes=axes, rho=RHO)
    rows = tuple((n % 9, n % 2, n // 2 % 2) for n in range(60))
    made = mechanism.release(_points(mechanism, rows), noise=tape_noise(EndlessTape(0)))
    columns, kinds = tuple(domains), tuple(domains.values())

    def release(promise: Guarantee) -> Release:
        boxes = replace(made, guarantee=promise)
        view = BoxView(columns=columns, domains=kinds, boxes=boxes, mechanism="graph")
        provenance = Provenance(version="0.1.0", day="2026-11-20")
        return Release(views=(view,), guarantee=promise, provenance=provenance)

    kept = release(mechanism.guarantee)
    kept.save(tmp_path / "kept.parquet")
    again = pt.load(tmp_path / "kept.parquet")
    assert again.guarantee == mechanism.guarantee
    assert again.count(age=3) == kept.count(age=3)
    with pytest.raises(InvalidRelease, match="noise"):
        release(Guarantee.concentrated(rho=RHO / 2))
