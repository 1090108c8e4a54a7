"""Table releases: exact without noise, within epsilon on every path, and refused before anything is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from importlib import import_module
from itertools import combinations
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partita.domain.axis import Axis
from partita.errors import InvalidParameter
from partita.public.boxes.base import BoxTerm
from partita.public.tables import model
from partita.public.tables.graph import TableGraphRelease
from partita.public.tables.spending import EpsilonSpending
from partita.testing import EndlessTape, RecordingNoise, ZeroNoise, tape_noise
from partita.trusted.mechanisms.graph import TableGraph
from partita.trusted.secret import Points

module: Any = import_module("partita.trusted.mechanisms.graph")

MIXED = (Axis(size=5), Axis(size=3, labels=True), Axis(size=12, after=1))
BITS = (Axis(size=2),) * 7
NULLS = (Axis(size=8, after=1),) * 3 + (Axis(size=2),) * 4


def _rows(axes: Sequence[Axis], number: int, seed: int = 0) -> Any:
    """Rows in which columns follow the first one, more or less."""
    drawn = np.random.default_rng(seed)
    first = drawn.random(number)
    mixed = [np.where(drawn.random(number) < 0.6, first, drawn.random(number)) for _ in axes]
    return np.stack([(x * axis.width).astype(np.int64) for x, axis in zip(mixed, axes, strict=True)], axis=1)


def _points(axes: Sequence[Axis], number: int, seed: int = 0) -> Points:
    return Points.from_rows(_rows(axes, number, seed), axes=axes)


def _release(axes: Sequence[Axis], number: int, *, seed: object = 0, **given: Any) -> TableGraphRelease:
    mechanism = TableGraph(**{"axes": axes, "epsilon": 1, **given})
    return mechanism.release(_points(axes, number), noise=tape_noise(EndlessTape(seed)))


def _parts(release: TableGraphRelease) -> list[object]:
    parts = release.parts()
    return [dict(parts.facts), *(series.tolist() for series in parts.series.values())]


@pytest.fixture
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fits that end early: what is spent does not depend on how good they are."""
    monkeypatch.setattr(model, "_STEPS", 3)


def test_without_noise_views_and_tables_are_exact() -> None:
    """The total, each view, each measured table, and answers about them."""
    points = _points(MIXED, 4000)
    release = TableGraph(axes=MIXED, epsilon=20).release(points, noise=ZeroNoise())
    every = points.spread()

    assert release.fit.total == points.total
    for column, view in enumerate(release.fit.views):
        others = tuple(each for each in range(3) if each != column)
        assert view.parts().series["noisy"].tolist() == every.sum(axis=others).tolist()
    assert release.fit.pairs == {(0, 1), (0, 2), (1, 2)}
    for table in release.fit.tables:
        exact = points.tables([table.columns], release.fit.bins)[0]
        assert model.join_bins(exact, table.groups).tolist() == table.noisy.tolist()
    for low, high in (((0, 0, 0), (2, 1, 12)), ((1, 0, 3), (1, 2, 9))):
        answer = release.answer(BoxTerm(low, high))
        exact = every[tuple(slice(a, b + 1) for a, b in zip(low, high, strict=True))].sum()
        assert answer.value == pytest.approx(float(exact), abs=12)


def test_nothing_is_left_where_nothing_is_chosen(few_steps: None) -> None:
    """If all pairs are named together, tables have what choosing would have cost."""
    release = _release(MIXED, 500, together=[(0, 1, 2)])

    assert release.choosing == 0
    assert release.looks == ()
    assert Fraction(999, 1000) < release.spent <= 1


def test_without_noise_audits_are_small() -> None:
    """Of a model that holds all pairs, pairs miss hardly anything."""
    release = TableGraph(axes=MIXED, epsilon=20).release(_points(MIXED, 4000), noise=ZeroNoise())

    pairs = [audit for audit in release.audits if audit.kind == "measured"]
    assert pairs
    assert all(audit.noisy < 0.02 * 4000 * audit.number for audit in pairs)


def test_the_same_tape_gives_the_same_release() -> None:
    """And another one another release."""
    one, same, other = (_parts(_release(MIXED, 500, seed=seed)) for seed in (1, 1, 2))

    assert one == same
    assert one != other


@pytest.mark.parametrize("neighbors", ["add-remove", "change-one"])
@pytest.mark.parametrize("contributions", [1, 3])
def test_what_is_spent_is_at_most_the_rate(neighbors: Any, contributions: int) -> None:
    """A release costs epsilon over the number of rows by which neighbours differ, and hardly less."""
    axes = (*MIXED, Axis(size=4), Axis(size=2))
    mechanism = TableGraph(axes=axes, epsilon=1, neighbors=neighbors, contributions=contributions)
    release = mechanism.release(_points(axes, 900), noise=tape_noise(EndlessTape(3)))

    assert mechanism.rate == Fraction(1, contributions * (2 if neighbors == "change-one" else 1))
    assert Fraction(95, 100) * mechanism.rate < release.spent <= mechanism.rate


def _schemas() -> st.SearchStrategy[list[Axis]]:
    axis = st.builds(
        Axis, size=st.sampled_from([1, 2, 3, 8, 9, 30]), after=st.integers(0, 1), labels=st.booleans()
    )
    same = st.builds(lambda one, number: [one] * number, axis, st.integers(6, 9))
    return st.lists(axis, min_size=2, max_size=5) | same


class WildNoise:
    """Noise of any size: the shares depend on noisy numbers only, so every path can be had."""

    secure = False

    def __init__(self, seed: int, size: int) -> None:
        self._random, self._size = np.random.default_rng(seed), size

    def session(self) -> WildNoise:
        return self

    def add(self, x: Any, scale: Fraction, *, parts: Any = None) -> Any:
        reach = self._size * int(self._random.integers(0, 3))
        values = np.asarray(x) + self._random.integers(-reach, reach + 1, np.shape(x))
        return values if np.ndim(x) else int(values)

    def exponential(self, scores: Any, scale: Fraction) -> int:
        return int(self._random.integers(len(scores)))


@settings(max_examples=60)
@given(
    axes=_schemas(),
    number=st.integers(0, 300),
    seed=st.integers(0, 99),
    size=st.sampled_from([1, 100, 10**5]),
    data=st.data(),
)
@pytest.mark.usefixtures("few_steps")
def test_no_path_spends_more_than_epsilon(
    axes: list[Axis], number: int, seed: int, size: int, data: st.DataObject
) -> None:
    """Whatever is seen: covers, forests, later pairs, sets of columns together, tables measured again."""
    sets = [s for k in (2, 3) for s in combinations(range(len(axes)), k)]
    together = data.draw(st.lists(st.sampled_from(sets), max_size=2, unique=True))
    mechanism = TableGraph(axes=axes, epsilon=Fraction(1, 3), together=together)
    release = mechanism.release(_points(axes, number, seed), noise=cast(Any, WildNoise(seed, size)))

    assert Fraction(9, 10) * mechanism.epsilon < release.spent <= mechanism.epsilon
    for columns in together:
        assert any(set(columns) <= set(table.columns) for table in release.fit.tables)


@pytest.mark.parametrize(
    "axes", [MIXED, BITS, NULLS, (Axis(size=9),) * 5], ids=["mixed", "bits", "nulls", "nines"]
)
def test_every_scale_that_is_drawn_is_told(axes: Sequence[Axis]) -> None:
    """All noise belongs to the total, a view, a table, a choice, a look or an audit."""
    recorder = RecordingNoise(tape_noise(EndlessTape(1)))
    release = TableGraph(axes=axes, epsilon=1).release(_points(axes, 3000), noise=recorder)
    told = [release.fit.scale, *(cast(Any, view).scale for view in release.fit.views)]
    told += [table.scale for table in release.fit.tables]
    told += [look.scale for look in release.looks] + [audit.scale for audit in release.audits]
    choices = list(recorder.scales)
    for scale in told:
        choices.remove(scale)

    assert sum((2 / scale for scale in choices), Fraction(0)) == release.choosing
    assert release.spent <= 1


def test_small_columns_with_nulls_are_covered() -> None:
    """Special cells with rows give small columns more bins; they are covered all the same."""
    release = _release(NULLS, 20_000)

    assert max(release.fit.sizes) == 9
    assert len(release.fit.pairs) == 21
    assert release.choosing == 0


def test_columns_that_matter_together_are_measured_beside_a_cover() -> None:
    """Seven columns of five cells: no view of a cover holds four of them."""
    axes = (Axis(size=5),) * 7
    release = _release(axes, 20_000, together=[(0, 1, 2, 3)])

    assert release.choosing == 0
    assert (0, 1, 2, 3) in [table.columns for table in release.fit.tables]
    assert release.spent <= 1


def test_a_huge_number_of_rows_is_counted() -> None:
    """Weights may add up to nearly 2^62: ordered columns of very many cells then have trees as before."""
    axes = (Axis(size=2**30), Axis(size=2**40))
    points = Points.from_rows([[3, 4]], axes=axes, counts=[2**50])
    release = TableGraph(axes=axes, epsilon=1).release(points, noise=tape_noise(EndlessTape(0)))

    assert {view.kind for view in release.fit.views} == {"spending-boxes"}
    assert release.fit.rows == pytest.approx(2**50)


def test_the_smallest_epsilon_can_be_drawn() -> None:
    """What `TableGraph` accepts is released; below, it is refused before anything is drawn."""
    least = Fraction(1, 2**36)
    release = _release(MIXED, 30, epsilon=least)

    assert release.spent <= least
    with pytest.raises(InvalidParameter, match="epsilon"):
        TableGraph(axes=MIXED, epsilon=least / 2)


@pytest.mark.parametrize(
    "together",
    [[(0,)], [(0, 0)], [(0, 9)], [("a", 1)], [([0], 1)], [(0.0, 1)], (0, 1), "ab", [(True, 0)]],
    ids=repr,
)
def test_sets_that_are_none_are_refused(together: Any) -> None:
    """Fewer than two columns, one twice, unknown ones, or no numbers."""
    with pytest.raises(InvalidParameter, match="together"):
        TableGraph(axes=MIXED, epsilon=1, together=together)


def test_sets_that_no_model_can_hold_are_refused() -> None:
    """Four columns of 32 bins have more combinations than a table of the model."""
    with pytest.raises(InvalidParameter, match="together"):
        TableGraph(axes=[Axis(size=40)] * 4, epsilon=1, together=[(0, 1, 2, 3)])


def test_a_category_of_too_many_labels_is_refused() -> None:
    """There would be more than 2^22 noisy counts."""
    with pytest.raises(InvalidParameter, match="axes"):
        TableGraph(axes=[Axis(size=2**23, labels=True), Axis(size=2)], epsilon=1)


def test_views_that_do_not_fit_in_one_pass_are_counted_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The counts are the same."""
    points = _points(MIXED, 200)
    bins = [module.AxisBins.identity(axis.width) for axis in MIXED]
    at_once = module._count_columns(points, [0, 2], bins)
    monkeypatch.setattr(module, "MOST_COUNTED", 5)
    one_by_one = module._count_columns(points, [0, 2], bins)

    assert {c: t.tolist() for c, t in at_once.items()} == {c: t.tolist() for c, t in one_by_one.items()}
    assert module._count_columns(points, [], bins) == {}


def test_the_budget_refuses_more_than_all() -> None:
    """Before anything is drawn, and a part of nothing too."""
    budget = module._Budget(EpsilonSpending(Fraction(1)))
    budget.cell(Fraction(2, 3))

    for part in (Fraction(1, 2), Fraction(0)):
        with pytest.raises(AssertionError):
            budget.cell(part)


def test_what_holds_exact_counts_does_not_show_them() -> None:
    """Not in its representation."""
    budget = module._Budget(EpsilonSpending(Fraction(1)))
    rows = module._Rows(_points(MIXED, 77), (), tape_noise(EndlessTape(0)), budget)
    rows._exact[0, 1] = np.array([[918273]])

    assert "918273" not in repr(rows)
