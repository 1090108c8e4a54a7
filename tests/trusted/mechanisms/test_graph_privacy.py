"""Table releases lose at most epsilon: laws of choosing, replayed neighbours, and bugs that are caught."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from importlib import import_module
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.domain.axis import Axis
from partita.domain.base import Domain
from partita.domain.category import Category
from partita.domain.numeric import Integer
from partita.public.boxes.bins import AxisBins
from partita.public.tables import audits, model
from partita.public.tables.audits import AuditPlan
from partita.public.tables.fit import MeasuredTable, TableFit
from partita.public.tables.model import all_pairs
from partita.public.tables.plan import find_grid
from partita.public.tables.spending import EpsilonSpending
from partita.testing import ReplayBroken, ZeroNoise, replay, replay_publish
from partita.testing.laws import RationalNoise, law, privacy_loss
from partita.trusted.mechanisms import base
from partita.trusted.mechanisms.graph import TableGraph
from partita.trusted.secret import Points

module: Any = import_module("partita.trusted.mechanisms.graph")

Row = tuple[int, ...]
Rows = tuple[Row, ...]
Bug = Callable[[pytest.MonkeyPatch], None]

AXES = (Axis(size=3), Axis(size=2, labels=True), Axis(size=9, after=1), Axis(size=10, labels=True))
BITS = (Axis(size=2),) * 6
EPSILON = Fraction(4)
CROWD: Rows = tuple((n % 3, n % 2, n * n % 10, n * 3 % 10) for n in range(24))
ROW, OTHER = (0, 1, 9, 4), (2, 0, 3, 7)


@pytest.fixture(autouse=True)
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fits that end early: privacy does not depend on how good they are."""
    monkeypatch.setattr(model, "_STEPS", 4)


def _loss(one: Rows, other: Rows, *, seed: object = 0, passes: int = 3, **changes: Any) -> Any:
    """The loss of a release on neighbouring tables."""
    mechanism = TableGraph(**{"axes": AXES, "epsilon": EPSILON, **changes})

    def run(rows: Rows) -> list[object]:
        places = np.array(rows, np.int64).reshape(-1, len(mechanism.axes))
        points = Points.from_rows(places, axes=mechanism.axes, contributions=mechanism.contributions)
        parts = mechanism.release(points).parts()
        return [dict(parts.facts), *(series.tolist() for series in parts.series.values())]

    return replay(run, one, other, seed=seed, passes=passes)


# Misfits and excesses.


def _rows_of(table: Any, noise: Any = None, rate: Fraction = Fraction(1)) -> Any:
    """The rows of a table of two columns."""
    axes = [Axis(size=size) for size in table.shape]
    places = np.argwhere(table)
    points = Points.from_rows(places, axes=axes, counts=table[table > 0])
    rows = module._Rows(
        points,
        tuple(AxisBins.identity(size) for size in table.shape),
        noise,
        module._Budget(EpsilonSpending(rate)),
    )
    rows.count([(0, 1)])
    return rows


_GUESSES = st.floats(-1e25, 1e25) | st.integers(-3, 9).map(float)


@given(
    counts=st.lists(st.integers(0, 5) | st.just(2**55), min_size=6, max_size=6),
    expected=st.lists(_GUESSES, min_size=4, max_size=4),
    limits=st.lists(st.floats(0, 1e25) | st.integers(0, 4).map(float), min_size=4, max_size=4),
    cell=st.integers(0, 5),
)
def test_a_row_changes_a_misfit_and_an_excess_by_at_most_one(
    counts: list[int], expected: list[float], limits: list[float], cell: int
) -> None:
    """Whatever the model expects and wherever the tail begins, also beyond 64 bits, in groups of bins."""
    table = np.array(counts, np.int64).reshape(3, 2)
    more = table.copy()
    more.flat[cell] += 1
    groups = (np.array([0, 1, 0]), None)
    guess, beyond = (model.round_rows(np.array(each).reshape(2, 2)) for each in (expected, limits))

    for limit in (0, beyond):
        misfits = [_rows_of(each).misfit((0, 1), groups, guess, limit) for each in (table, more)]
        assert abs(misfits[1] - misfits[0]) <= 1
        assert min(misfits) >= 0


def test_sums_of_misfits_have_noise_for_all_of_them() -> None:
    """The scale grows with the number of misfits."""
    rows = _rows_of(np.ones((2, 2), np.int64), ZeroNoise(), Fraction(2))

    assert rows.sum_up([3, 4, 5], Fraction(1, 10)) == (12, Fraction(15))
    assert rows.budget.spent == Fraction(1, 10)


# Choosing.


def _fitting(fits: Callable[[Sequence[Any]], bool], scores: Sequence[int], number: int, noise: Any) -> Any:
    """What `_Selection` picks with a public rule of what fits, and pays: half of epsilon 2 for each pick."""
    rows = _rows_of(np.ones((2, 2), np.int64), noise, Fraction(2))
    shares: Any = None
    selection = module._Selection(rows, shares, ())
    fit: Any = type("Fit", (), {"fits": staticmethod(fits)})
    pairs = {(0, place): score for place, score in enumerate(scores, start=1)}
    picked = selection._fitting(fit, pairs, number, Fraction(1, 2))
    return tuple(pair[1] for pair in picked), selection.choosing


def _noise() -> RationalNoise:
    """exp(-1/2) is one half: the scale of a choice with epsilon 1 is 2."""
    return RationalNoise(Fraction(1, 2), unit=Fraction(1, 2))


def _expected(
    fits: Callable[[Sequence[Any]], bool], scores: Sequence[int], number: int
) -> dict[Any, Fraction]:
    """The exponential mechanism among pairs that fit now and did before, once for each pick."""
    found: dict[Any, Fraction] = {}
    for order in permutations(range(1, len(scores) + 1), number):
        mass = Fraction(1)
        for place in range(number):
            able = [
                each
                for each in range(1, len(scores) + 1)
                if each not in order[:place]
                and all(fits([*((0, p) for p in order[:k]), (0, each)]) for k in range(place + 1))
            ]
            weights = {each: Fraction(2) ** scores[each - 1] for each in able}
            mass *= weights.get(order[place], Fraction(0)) / max(sum(weights.values()), Fraction(1, 10**9))
        if mass:
            found[order, Fraction(number)] = mass
    return found


def _small(pairs: Sequence[Any]) -> bool:
    """The second pair never fits."""
    return (0, 2) not in pairs


def _odd(pairs: Sequence[Any]) -> bool:
    """The second pair fits behind the first one only, as with cliques that a greedy search has found."""
    return (0, 2) not in pairs or (0, 1) in pairs[:-1]


@pytest.mark.parametrize("fits", [_small, _odd], ids=["never", "later"])
@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("scores", [(0, 0, 0), (0, 3, 1), (2, 5, -1, 0)], ids=str)
def test_redrawing_is_the_exponential_mechanism_among_pairs_that_fit(
    fits: Callable[[Sequence[Any]], bool], number: int, scores: tuple[int, ...]
) -> None:
    """By enumeration of the shipped loop: who was dropped leaves no trace, in the next pick neither."""
    found = law(lambda noise: _fitting(fits, scores, number, noise), _noise())

    assert dict(found) == _expected(fits, scores, number)


@pytest.mark.parametrize("scores", [(0, 0, 0), (0, 3, 1)], ids=str)
def test_what_a_round_pays_tells_nothing_of_pairs_that_were_dropped(scores: tuple[int, ...]) -> None:
    """If one pair fits at all, it is the only pick, and two are paid whoever was drawn before it."""
    found = law(lambda noise: _fitting(lambda pairs: list(pairs) == [(0, 1)], scores, 2, noise), _noise())

    assert dict(found) == {((1,), Fraction(2)): Fraction(1)}


_AROUND = [(0, 8, 8), (1, 7, 7), (0, 0, 0), (1, 1, -1), (3, 12, 3), (2, 13, 2)]


def _choice_losses(number: int) -> Iterator[Any]:
    """The losses of all pairs of scores that one row may make of each other."""
    for one, other in product(_AROUND, repeat=2):
        if 0 < max(abs(a - b) for a, b in zip(one, other, strict=True)) <= 1:
            laws = [law(partial(_fitting, _odd, scores, number), _noise()) for scores in (one, other)]
            yield privacy_loss(*laws, base=Fraction(1, 2), unit=Fraction(1, 2))


@pytest.mark.parametrize("number", [1, 2])
def test_a_pick_costs_its_part(number: int) -> None:
    """Scores that change by one, up or down, change no probability by more than one part for each pick."""
    losses = list(_choice_losses(number))

    assert all(loss <= number for loss in losses)
    assert any(not loss <= Fraction(9, 10) for loss in losses)


def test_a_factor_of_one_in_choosing_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores go up and down: the scale is two over epsilon."""
    right = module._Rows.choice_scale
    monkeypatch.setattr(module._Rows, "choice_scale", lambda rows, part: right(rows, part) / 2)

    assert any(not loss <= 1 for loss in _choice_losses(1))


# Replayed neighbours.

CASES: list[tuple[str, Rows, Rows, dict[str, Any]]] = [
    ("a row comes", CROWD, (*CROWD, ROW), {}),
    ("a row goes", (*CROWD, OTHER), CROWD, {}),
    ("the first row", (), (ROW,), {}),
    ("a row changes", (*CROWD, ROW), (*CROWD, OTHER), {"neighbors": "change-one"}),
    ("two rows come", CROWD, (*CROWD, ROW, OTHER), {"contributions": 2}),
    (
        "two rows change",
        (*CROWD, ROW, ROW),
        (*CROWD, OTHER, OTHER),
        {"neighbors": "change-one", "contributions": 2},
    ),
    ("together", CROWD, (*CROWD, ROW), {"together": [(0, 1, 2)]}),
    ("small epsilon", CROWD, (*CROWD, ROW), {"epsilon": Fraction(1, 50)}),
]


@pytest.mark.parametrize(("name", "one", "other", "changes"), CASES, ids=[case[0] for case in CASES])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.spread(10)
def test_neighbours_lose_at_most_epsilon(
    name: str, one: Rows, other: Rows, changes: dict[str, Any], seed: int
) -> None:
    """The same release comes of both, and is at most e^epsilon times as likely on one of them."""
    epsilon = changes.get("epsilon", EPSILON)
    loss = _loss(one, other, seed=(name, seed), passes=5, **changes)

    assert loss <= epsilon
    assert not loss <= epsilon / 2


@pytest.mark.parametrize("seed", range(2))
def test_a_cover_loses_at_most_epsilon(seed: int) -> None:
    """Six columns of two cells with many rows have views of several columns, and no choice."""
    crowd = tuple(((n, n // 2, n // 3, n // 5, n // 7, n // 11)) for n in range(600))
    rows = tuple(tuple(each % 2 for each in row) for row in crowd)

    assert _loss(rows, (*rows, (1, 0, 1, 0, 1, 1)), axes=BITS, seed=seed) <= EPSILON


@pytest.mark.parametrize("limits", [(0, 0), (0, 10**9)], ids=["with a tail", "without a tail"])
def test_releases_with_more_audits_lose_at_most_epsilon(
    limits: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Classes of pairs, and the tail, have audits of their own, as with many rows."""
    monkeypatch.setattr(audits, "_POOLED_BELOW", limits[0])
    monkeypatch.setattr(audits, "_SPLIT_FROM", limits[1])

    loss = _loss(CROWD, (*CROWD, ROW), seed=1, passes=5)

    assert loss <= EPSILON
    assert not loss <= EPSILON / 2


@pytest.mark.parametrize("changes", [{}, {"neighbors": "change-one"}], ids=["add-remove", "change-one"])
def test_published_tables_lose_at_most_epsilon(changes: dict[str, Any]) -> None:
    """From rows to the bytes of a file, nulls and unknown labels included."""
    schema: dict[str, Domain] = {
        "age": Integer(0, 11),
        "town": Category(["a", "b", "c"]),
        "sex": Category(["f", "m"]),
    }
    rows: list[tuple[Any, Any, Any]] = [(n % 12, "abc"[n % 3], "fm"[n % 2]) for n in range(20)]
    one, other = [*rows, (3, None, "f")], [*rows, (None, "z", "m")]
    before, after = (
        {name: [row[place] for row in table] for place, name in enumerate(schema)}
        for table in (one if changes else rows, other)
    )

    loss = replay_publish(before, after, schema, epsilon=1, mechanism="graph", by=list(schema), **changes)

    assert loss <= 1


# Planted bugs: each is one way to get a table release wrong, put into the shipped code.


def _true_total_in_a_guess(patch: pytest.MonkeyPatch) -> None:
    right = module._Rows.misfit

    def misfit(rows: Any, columns: Any, groups: Any, guess: Any, beyond: Any = 0) -> int:
        return int(right(rows, columns, groups, guess + rows.points.total, beyond))

    patch.setattr(module._Rows, "misfit", misfit)


def _many_pairs_with_the_noise_of_one(patch: pytest.MonkeyPatch) -> None:
    right = module._Rows.sum_up

    def sum_up(rows: Any, misfits: Any, part: Fraction) -> Any:
        return right(rows, [sum(misfits)], part)

    patch.setattr(module._Rows, "sum_up", sum_up)


def _guess_fitted_to_counts_that_are_not_released(patch: pytest.MonkeyPatch) -> None:
    true: list[MeasuredTable] = []
    measure, with_tables = module._Rows.measure, TableFit.with_tables

    def peeking(rows: Any, fit: TableFit, sets: Any, part: Fraction) -> Any:
        pairs = all_pairs(range(len(fit.sizes)))
        rows.count(pairs)
        true[:] = [MeasuredTable(pair, (None, None), rows._exact[pair], Fraction(1)) for pair in pairs]
        return measure(rows, fit, sets, part)

    def fitted(fit: TableFit, tables: Any) -> TableFit:
        return replace(with_tables(fit, [*tables, *true]), tables=(*fit.tables, *tables))

    patch.setattr(module._Rows, "measure", peeking)
    patch.setattr(TableFit, "with_tables", fitted)


def _grid_from_true_counts(patch: pytest.MonkeyPatch) -> None:
    right = module._Rows.measure

    def measure(rows: Any, fit: TableFit, sets: Any, part: Fraction) -> Any:
        rows.count(sets)

        def grid(_: TableFit, columns: Any, epsilon: float) -> Any:
            exact = rows._exact[columns].astype(float)
            masses = [
                exact.sum(axis=tuple(a for a in range(exact.ndim) if a != axis)) for axis in range(exact.ndim)
            ]
            return find_grid(masses, [True] * exact.ndim, epsilon / 200, float(exact.sum()))

        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(TableFit, "grid", grid)
            return right(rows, fit, sets, part)

    patch.setattr(module._Rows, "measure", measure)


def _bins_from_true_counts(patch: pytest.MonkeyPatch) -> None:
    right = TableFit.start

    def views(mechanism: TableGraph, points: Points, *others: Any) -> Any:
        patch.setattr(
            TableFit,
            "start",
            lambda views, total, *given, **named: right(views, 3 * points.total**2, *given, **named),
        )
        return shipped(mechanism, points, *others)

    shipped = TableGraph._views
    patch.setattr(TableGraph, "_views", views)


def _audit_reused_to_choose(patch: pytest.MonkeyPatch) -> None:
    right = module._audit

    def audit(rows: Any, fit: TableFit, part: Fraction) -> Any:
        found = right(rows, fit, part)
        pairs = all_pairs(range(len(fit.sizes)))
        misfits = [rows.misfit(pair, (None, None), fit.guess(pair, (None, None))) for pair in pairs]
        worst = int(np.argmax(np.array(misfits) % 7))
        return (*found[:-1], replace(found[-1], unit=found[-1].unit + worst))

    patch.setattr(module, "_audit", audit)


def _number_of_audits_by_the_true_total(patch: pytest.MonkeyPatch) -> None:
    right = module._audit

    def audit(rows: Any, fit: TableFit, part: Fraction) -> Any:
        evidence = float(10**9 * (rows.points.total % 2))
        patch.setattr(AuditPlan, "_evidence", property(lambda _: evidence))
        return right(rows, fit, part)

    patch.setattr(module, "_audit", audit)


def _pairs_chosen_without_noise(patch: pytest.MonkeyPatch) -> None:
    def choose(rows: Any, scores: Any, part: Fraction) -> Any:
        return max(scores, key=lambda pair: (scores[pair] * 7 % 11, pair))

    patch.setattr(module._Rows, "choose", choose)


def _number_of_pairs_by_true_misfits(patch: pytest.MonkeyPatch) -> None:
    true: list[int] = [0]
    sum_up, carried = module._Rows.sum_up, EpsilonSpending.carried

    def telling(rows: Any, misfits: Any, part: Fraction) -> Any:
        true[0] = sum(misfits)
        return sum_up(rows, misfits, part)

    patch.setattr(module._Rows, "sum_up", telling)
    patch.setattr(EpsilonSpending, "carried", lambda *given: carried(*given) + true[0] % 2)


def _half_of_the_scale(patch: pytest.MonkeyPatch) -> None:
    for name in ("cell", "sum"):
        right = getattr(EpsilonSpending, name)
        patch.setattr(EpsilonSpending, name, lambda *given, right=right: right(*given) / 2)


def _parts_that_nobody_counts(patch: pytest.MonkeyPatch) -> None:
    right = module._Rows.measure
    patch.setattr(module._Budget, "pay", lambda budget, part: None)
    patch.setattr(module._Rows, "measure", lambda rows, fit, sets, part: right(rows, fit, sets, 2 * part))


def _noise_used_twice(patch: pytest.MonkeyPatch) -> None:
    right = module._Rows.measure

    def measure(rows: Any, fit: TableFit, sets: Any, part: Fraction) -> Any:
        tables = right(rows, fit, sets, part)
        for table in tables:
            exact = model.join_bins(rows._exact[table.columns], table.groups)
            table.noisy[...] = exact + (table.noisy - exact).flat[0]
        return tables

    patch.setattr(module._Rows, "measure", measure)


def _squares_of_misfits(patch: pytest.MonkeyPatch) -> None:
    right = module._Rows.misfit
    patch.setattr(module._Rows, "misfit", lambda *given: right(*given) ** 2)


def _a_row_in_two_cells(patch: pytest.MonkeyPatch) -> None:
    right = module._Rows.count

    def count(rows: Any, sets: Any) -> None:
        known = set(rows._exact)
        right(rows, sets)
        for columns in set(rows._exact) - known:
            rows._exact[columns] = rows._exact[columns] + np.roll(rows._exact[columns], 1)

    patch.setattr(module._Rows, "count", count)


BUGS: list[Bug] = [
    _true_total_in_a_guess,
    _many_pairs_with_the_noise_of_one,
    _guess_fitted_to_counts_that_are_not_released,
    _grid_from_true_counts,
    _bins_from_true_counts,
    _audit_reused_to_choose,
    _number_of_audits_by_the_true_total,
    _pairs_chosen_without_noise,
    _number_of_pairs_by_true_misfits,
    _half_of_the_scale,
    _parts_that_nobody_counts,
    _noise_used_twice,
    _squares_of_misfits,
    _a_row_in_two_cells,
]

FEW = [(CROWD, (*CROWD, row), seed) for seed, row in enumerate((ROW, OTHER, (1, 1, 0, 0)))]


def _caught(pairs: Sequence[tuple[Rows, Rows, int]], **changes: Any) -> bool:
    """Whether a replay breaks or costs more than epsilon."""
    try:
        return any(
            not _loss(one, other, seed=seed, passes=5, **changes) <= EPSILON for one, other, seed in pairs
        )
    except ReplayBroken:
        return True


def test_the_planted_bugs_are_what_is_caught() -> None:
    """Without any of them nothing is."""
    assert not _caught(FEW)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_planted_bugs_are_caught(bug: Bug) -> None:
    """A replay breaks or loses more than epsilon for some pair of few."""
    with pytest.MonkeyPatch.context() as patch:
        bug(patch)

        assert _caught(FEW)


@pytest.mark.parametrize("case", [CASES[3], CASES[4]], ids=["neighbors", "contributions"])
def test_wrong_factors_are_caught(case: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise for one row does not hide one that moves, or two."""
    _, one, other, changes = case
    monkeypatch.setattr(base, "rows_changed", lambda neighbors, contributions: 1)

    assert _caught([(one, other, 0)], **changes)
