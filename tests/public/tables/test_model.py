"""Models of tables: junction trees, fits, bins, answers, synthetic rows and files, against brute force."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.domain.axis import Axis
from partita.errors import InvalidParameter, InvalidRelease
from partita.public.axis.base import Parts
from partita.public.boxes.base import BoxTerm
from partita.public.boxes.bins import AxisBins
from partita.public.boxes.grid import GridRelease
from partita.public.tables.audits import coarsen
from partita.public.tables.fit import MeasuredTable, TableFit
from partita.public.tables.graph import FIXED, TableGraphRelease
from partita.public.tables.model import (
    JunctionTree,
    NoisyTable,
    TableModel,
    find_cliques,
    join_bins,
    shrink_noise,
)
from partita.public.tables.plan import (
    Shares,
    cover_error,
    expect_labels,
    find_cover,
    find_grid,
    join_like,
    join_neighbours,
    project_on_total,
    share,
    split,
)
from partita.public.tables.spending import EpsilonSpending, RhoSpending
from partita.testing import EndlessTape, tape_noise
from partita.trusted.mechanisms.graph import TableGraph
from partita.trusted.secret import Points

SIZES = (2, 3, 2, 4, 2)
CHAIN = ((0, 1), (1, 2, 3), (3, 4))
AXES = (Axis(size=6), Axis(size=4, labels=True), Axis(size=40, after=1), Axis(size=3, labels=True))


def _joint(tree: JunctionTree, potentials: list[Any], total: float) -> Any:
    """The whole table: the product of all factors."""
    whole = np.zeros(tree.sizes)
    for place, potential in enumerate(potentials):
        shape = [size if c in tree.cliques[place] else 1 for c, size in enumerate(tree.sizes)]
        whole = whole + potential.reshape(shape)
    whole = np.exp(whole)
    return whole * (total / whole.sum())


def _potentials(tree: JunctionTree, seed: int) -> list[Any]:
    drawn = np.random.default_rng(seed)
    return [drawn.normal(size=[tree.sizes[c] for c in clique]) for clique in tree.cliques]


def _marginal(whole: Any, columns: Any) -> Any:
    return whole.sum(axis=tuple(c for c in range(whole.ndim) if c not in columns))


def _model(seed: int = 0) -> tuple[TableModel, Any]:
    tree = JunctionTree(SIZES, CHAIN)
    potentials = _potentials(tree, seed)
    return TableModel(tree, tuple(tree.calibrate(potentials, 100.0)), 100.0), _joint(tree, potentials, 100.0)


@pytest.mark.parametrize("seed", range(3))
def test_calibrated_tables_are_those_of_the_product(seed: int) -> None:
    """Every clique has the table that the product of all factors has."""
    model, whole = _model(seed)

    for clique, table in zip(CHAIN, model.tables, strict=True):
        assert table == pytest.approx(_marginal(whole, clique))


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_table_of_any_columns_is_that_of_the_product(number: int) -> None:
    """Also of columns that no clique holds together, with weights and with groups."""
    model, whole = _model()
    weights = {c: np.linspace(0.2, 1.0, size) for c, size in enumerate(SIZES)}

    for columns in combinations(range(5), number):
        assert model.table(columns) == pytest.approx(_marginal(whole, columns))
        others = [c for c in range(5) if c not in columns]
        terms = [term for c in others for term in (weights[c], [c])]
        weighed = np.einsum(whole, list(range(5)), *terms, list(columns))
        assert model.table(columns, {c: weights[c] for c in others}) == pytest.approx(weighed)
    hot = np.eye(2)[np.array([0, 0, 1, 1])]
    joined = join_bins(_marginal(whole, (0, 3)), [None, np.array([0, 0, 1, 1])])
    assert model.table((0, 3), {3: hot}) == pytest.approx(joined)


def test_a_fit_to_exact_tables_has_these_tables() -> None:
    """From independent columns, for tables of a junction tree."""
    _, whole = _model(4)
    start = TableModel.independent([_marginal(whole, (c,)) for c in range(5)], 100.0)
    exact = [NoisyTable(q, (None,) * len(q), _marginal(whole, q), 1e-4) for q in CHAIN]
    fitted = start.fitted(exact, CHAIN, 100.0)

    for clique in CHAIN:
        assert fitted.table(clique) == pytest.approx(_marginal(whole, clique), abs=0.3)


def test_raking_gives_columns_their_masses() -> None:
    """And leaves the tables of cliques consistent."""
    model, _ = _model(2)
    masses = [np.full(size, 100.0 / size) for size in SIZES]
    raked = model.raked(masses, sweeps=30)

    for column, mass in enumerate(masses):
        assert raked.table((column,)) == pytest.approx(mass, rel=0.02)
    assert _marginal(raked.tables[0], (1,)) == pytest.approx(raked.tables[1].sum(axis=(1, 2)), rel=1e-6)


@given(
    sizes=st.lists(st.integers(1, 5), min_size=2, max_size=6),
    chosen=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=8),
)
def test_cliques_hold_all_pairs_and_make_a_junction_tree(
    sizes: list[int], chosen: list[tuple[int, int]]
) -> None:
    """The cliques with a column are connected, and every column is in one."""
    pairs = [(a, b) for a, b in chosen if a < b < len(sizes)]
    cliques = find_cliques(sizes, pairs)

    assert cliques is not None
    tree = JunctionTree(tuple(sizes), tuple(cliques))
    assert all(any({a, b} <= set(clique) for clique in cliques) for a, b in pairs)
    for column in range(len(sizes)):
        holding = sum(column in clique for clique in cliques)
        assert sum(column in tree.separator(*edge) for edge in tree.order[1:]) == holding - 1


def test_a_model_that_would_be_too_large_is_none() -> None:
    """Two columns of 300 bins have more than 2^16 cells."""
    assert find_cliques([300, 300], [(0, 1)]) is None
    assert find_cliques([300, 300], []) == [(0,), (1,)]


# Public rules.


@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=30), st.fractions(0, 1))
def test_parts_never_add_up_to_more_than_the_whole(weights: list[float], whole: Fraction) -> None:
    """They are rounded down."""
    assert sum(split(whole, weights)) <= whole


@given(
    sizes=st.lists(st.integers(1, 5000), min_size=2, max_size=40),
    rate=st.sampled_from([1e-9, 0.01, 1.0, 1000.0]).map(Fraction),
    kind=st.sampled_from([EpsilonSpending, RhoSpending]),
    total=st.integers(1, 2**62),
)
def test_shares_are_positive_and_add_up_to_one_at_most(
    sizes: list[int], rate: Fraction, kind: Any, total: int
) -> None:
    """Whatever the total is, of epsilon and of rho."""
    spending = kind(rate)
    shares = Shares.of([Axis(size=size) for size in sizes], spending, total)
    spent = sum(shares.views) + 2 * shares.look + shares.choosing + shares.audits + shares.pairs

    assert min(shares.views) > 0
    assert shares.pairs > Fraction(1, 10)
    assert spent + spending.total_share == 1
    assert share(0.3) <= Fraction(3, 10)


@pytest.mark.parametrize("number", [2, 6, 16])
def test_a_cover_holds_every_pair(number: int) -> None:
    """Of columns of different sizes, with fewer tables than pairs if there are many."""
    sizes = [2 + column % 4 for column in range(number)]
    cover = find_cover(range(number), sizes)

    assert {pair for columns in cover for pair in combinations(columns, 2)} == set(
        combinations(range(number), 2)
    )
    assert cover_error(cover, sizes) <= cover_error(list(combinations(range(number), 2)), sizes)


@given(
    st.lists(st.floats(-1e30, 1e30) | st.floats(-5, 5), min_size=1, max_size=12),
    st.floats(1, 1e6),
)
def test_the_projection_has_the_total_and_nothing_below_zero(values: list[float], total: float) -> None:
    """Also of numbers that are far larger than the total."""
    found = project_on_total(np.array(values), total)

    assert (found >= 0).all()
    assert found.sum() == pytest.approx(total, rel=1e-6)


@given(st.lists(st.floats(0, 100), min_size=1, max_size=60), st.floats(0.5, 50), st.integers(2, 20))
def test_groups_are_numbered_from_zero_and_neighbours_stay_in_order(
    masses: list[float], least: float, most: int
) -> None:
    """There are at most about twice as many as were asked for if cells are joined to fewer."""
    for join in (join_neighbours, join_like):
        groups = join(np.array(masses), least, most)
        assert set(groups.tolist()) == set(range(int(groups.max()) + 1))
        assert int(groups.max()) + 1 <= max(len(masses) if len(masses) <= most else 0, 2 * most + 1)
    assert (np.diff(join_neighbours(np.array(masses), least, most)) >= 0).all()


def test_grids_have_about_as_many_cells_as_can_be_told() -> None:
    """Bins stay alone where epsilon is large."""
    masses = [np.full(30, 10.0), np.full(20, 15.0)]

    assert find_grid(masses, [False, True], 100.0, 300.0) == (None, None)
    few = find_grid(masses, [False, True], 0.3, 300.0)
    cells = np.prod([20 if group is None else int(group.max()) + 1 for group in few])
    assert 4 <= cells <= 2 * 300 * 0.3 / 3.5


def test_coarse_bins_hold_the_groups() -> None:
    """Of runs and of labels."""
    runs, labels = AxisBins.from_edges([1, 3, 7]), AxisBins.from_lookup([0, 1, 2, 1])
    cells = np.arange(8, dtype=np.uint64)

    assert coarsen(runs, np.array([0, 1, 1])).of(cells).tolist() == [0, 0, 1, 1, 1, 1, 1, 1]
    assert coarsen(labels, np.array([1, 0, 1])).of(cells[:4]).tolist() == [1, 0, 1, 0]


# Releases.


@cache
def _release(epsilon: Any = 4) -> TableGraphRelease:
    drawn = np.random.default_rng(5)
    first = drawn.random(3000)
    follow = [np.where(drawn.random(3000) < 0.7, first, drawn.random(3000)) for _ in AXES]
    rows = np.stack([(x * axis.width).astype(np.int64) for x, axis in zip(follow, AXES, strict=True)], axis=1)
    mechanism = TableGraph(axes=AXES, epsilon=epsilon)
    return mechanism.release(Points.from_rows(rows, axes=AXES), noise=tape_noise(EndlessTape(1)))


def _boxes(number: int = 40) -> tuple[Any, Any]:
    """Boxes that bound one column, two, three, four or none."""
    drawn = np.random.default_rng(8)
    widths = np.array([axis.width for axis in AXES])
    ends = drawn.integers(0, widths, (2, number, 4))
    free = drawn.random((number, 4)) < 0.5
    free[0] = True
    lows, highs = np.where(free, 0, ends.min(axis=0)), np.where(free, widths - 1, ends.max(axis=0))
    return lows.astype(np.uint64), highs.astype(np.uint64)


def test_many_boxes_have_the_values_and_errors_of_each() -> None:
    """`counts` and `errors` against `answer`."""
    release = _release()
    lows, highs = _boxes()
    alone = [
        release.answer(BoxTerm(tuple(a), tuple(b)))
        for a, b in zip(lows.tolist(), highs.tolist(), strict=True)
    ]

    assert release.counts(lows, highs) == pytest.approx([each.value for each in alone], rel=1e-9, abs=1e-9)
    assert release.errors(lows, highs) == pytest.approx([each.error for each in alone], rel=1e-9)


def test_cells_of_the_model_add_up_to_boxes() -> None:
    """Over two columns and more, whole columns or ranges."""
    release = _release()
    whole = BoxTerm((0, 0, 0, 0), (2, 1, 40, 2))
    cells = [BoxTerm((a, b, 0, 0), (a, b, 40, 2)) for a, b in product(range(3), range(2))]

    found = sum(release.answer(cell).value for cell in cells)
    assert found == pytest.approx(release.answer(whole).value)


def test_bounds_hold_the_sides() -> None:
    """A box has no more rows than each of its sides, and what is bounded for sure contains the value."""
    release = _release()
    answer = release.answer(BoxTerm((0, 0, 0, 0), (2, 1, 20, 2)))
    low, high = answer.bounds(0.05)

    assert 0 <= low <= answer.value <= high <= release.error(0.05)
    assert answer.error > 0


def test_a_difference_along_one_column_is_one_question() -> None:
    """Ranges that cancel out leave nothing, and its error is less than that of both."""
    release = _release()
    one, other = BoxTerm((0, 0, 0, 0), (2, 1, 40, 2)), BoxTerm((0, 0, 0, 0), (3, 1, 40, 2), -1)

    assert release.answer(one, one._replace(sign=-1)).value == 0
    assert release.answer(one, other).value == pytest.approx(
        -release.answer(BoxTerm((3, 0, 0, 0), (3, 1, 40, 2))).value
    )


def test_a_difference_of_cells_that_share_their_rows_errs_as_both_do() -> None:
    """What one of them has too much the other has too little; the sign of the difference does not matter."""
    release = _release(1)
    ends = [((age, 0, 0, 0), (age + 1, 1, 40, 2)) for age in (0, 2)]
    one, other = (BoxTerm(*each) for each in ends)
    taken = one._replace(sign=-1), other._replace(sign=-1)

    alone = [release.answer(each).error for each in (one, other)]
    apart = release.answer(one, taken[1]).error
    assert max(alone) < apart < 2 * sum(alone)
    assert release.answer(other, taken[0]).error == pytest.approx(apart)


def test_regions_are_refused() -> None:
    """The model has no boxes that a region could cut."""
    with pytest.raises(InvalidParameter, match="region"):
        _release().region(None, BoxTerm((0,) * 4, (5, 3, 40, 2)))  # type: ignore[arg-type]


def test_answers_say_what_they_rest_on() -> None:
    """Columns that a table holds are measured."""
    release = _release()
    table = release.fit.tables[0]

    assert release.basis([0]) == "measured"
    assert release.basis(table.columns) == "measured"
    assert release.basis(range(4)) == "order 3+"


def test_synthetic_rows_follow_the_model_and_repeat_themselves() -> None:
    """Their pairs have the shares of the model."""
    release = _release()
    rows = release.points(20_000)

    assert (rows == release.points(20_000)).all()
    assert release.points(0).shape == (0, 4)
    assert all(int(rows[:, c].max()) < axis.width for c, axis in enumerate(AXES))
    for one, other in combinations(range(4), 2):
        bins = [release.fit.bins[c].of(rows[:, c]) for c in (one, other)]
        drawn = np.zeros([release.fit.sizes[c] for c in (one, other)])
        np.add.at(drawn, tuple(bins), 1 / len(rows))
        expected = release.fit.model.table((one, other)) / release.fit.model.total
        assert np.abs(drawn - expected).sum() / 2 < 0.03


def test_dependence_is_a_symmetric_matrix_of_shares() -> None:
    """Columns that follow each other are far from independence."""
    found = _release().dependence

    assert (found == found.T).all()
    assert (found >= 0).all()
    assert found.max() <= 1
    assert found[0, 2] > 0.2


def test_a_release_is_read_as_it_was_written() -> None:
    """Answers, errors, tables, audits and what was spent."""
    release = _release()
    again = TableGraphRelease.from_parts(release.parts(), None)
    lows, highs = _boxes(20)

    assert again.spent == release.spent <= 4
    assert (again.looks, again.audits, again.strong) == (release.looks, release.audits, release.strong)
    assert (again.counts(lows, highs) == release.counts(lows, highs)).all()
    assert (again.errors(lows, highs) == release.errors(lows, highs)).all()
    for table, same in zip(release.fit.tables, again.fit.tables, strict=True):
        assert (table.noisy == same.noisy).all()
        assert (table.columns, table.scale) == (same.columns, same.scale)
    for one, other in zip(release.fit.model.tables, again.fit.model.tables, strict=True):
        assert (one == other).all()
        assert (one * FIXED == np.rint(one * FIXED)).all()


def _facts(**changes: Any) -> Any:
    parts = _release().parts()
    return Parts({**parts.facts, **changes}, parts.series)


HOSTILE: list[tuple[str, Any]] = [
    ("views", []),
    ("views", [{"kind": "tree"}] * 2),
    ("bins", [["edges", True]] * 4),
    ("bins", [["edges", 10**9]] * 4),
    ("tables", [[[0, 1], "1", [0, 0]]]),
    ("tables", [[[1, 0], "1", [0, 0]]]),
    ("tables", [[[0, 9], "1", [0, 0]]]),
    ("tables", [[[0, 1], "0", [0, 0]]]),
    ("tables", [[[0, 1], "1", [99, 0]]]),
    ("tables", 7),
    ("cliques", [[0], [1], [2]]),
    ("cliques", [[0, 1], [1, 2], [0, 2], [3]]),
    ("cliques", [[0, 1, 2], [3]]),
    ("looks", [[0, 5, "1"]]),
    ("looks", [[1, 5, "-1"]]),
    ("looks", [[1, 5.5, "1"]]),
    ("choosing", "-1"),
    ("choosing", "much"),
    ("audits", [["other", 3, 1, 5, "1", 9, 0]]),
    ("audits", [["weak", 4, 1, 5, "1", 9, 0]]),
    ("audits", [["weak", 3, 1, 5, "1", -9, 0]]),
    ("strong", [[0, 1, 2]]),
    ("strong", [[1, 0]]),
    ("total", 2**70),
    ("scale", "0"),
    ("surprise", 1),
]


@pytest.mark.parametrize(("name", "to"), HOSTILE, ids=str)
def test_facts_of_anybody_are_refused(name: str, to: Any) -> None:
    """With an error of ours."""
    with pytest.raises(InvalidRelease):
        TableGraphRelease.from_parts(_facts(**{name: to}), None)


@pytest.mark.parametrize("name", ["bins", "groups", "noisy", "model", "axis0_noisy"])
@pytest.mark.parametrize(
    "change", [lambda row: row[:-1], lambda row: np.append(row, row[:1])], ids=["less", "more"]
)
def test_series_of_another_length_are_refused(name: str, change: Any) -> None:
    """Each has as many numbers as the facts say."""
    parts = _release(Fraction(1, 10)).parts()
    row = parts.series[name]
    assert row.size > 0
    with pytest.raises(InvalidRelease):
        TableGraphRelease.from_parts(Parts(parts.facts, {**parts.series, name: change(row)}), None)
    with pytest.raises(InvalidRelease):
        TableGraphRelease.from_parts(
            Parts(parts.facts, {key: each for key, each in parts.series.items() if key != name}), None
        )


def test_negative_counts_of_a_model_are_refused() -> None:
    """They could not come of a fit."""
    parts = _release().parts()
    with pytest.raises(InvalidRelease, match="model"):
        TableGraphRelease.from_parts(
            Parts(parts.facts, {**parts.series, "model": parts.series["model"] - 10**9}), None
        )


def test_a_fit_to_exact_views_and_tables_answers_exactly() -> None:
    """Two columns that a table holds have its counts, but for what the fit leaves."""
    counts = np.array([[400, 20, 10], [30, 500, 40], [5, 60, 300]])
    scale = Fraction(1, 10)
    views = [
        GridRelease(axes=(Axis(size=3),), noisy=counts.sum(axis=1 - column), scale=scale) for column in (0, 1)
    ]
    fit = TableFit.start(views, int(counts.sum()), scale, 1.0, 1.0)
    fit = fit.with_tables([MeasuredTable((0, 1), (None, None), counts, scale)])

    assert fit.rows == pytest.approx(counts.sum())
    assert fit.model.table((0, 1)) == pytest.approx(counts, abs=1.0)
    assert fit.guess((0, 1), (None, None)).tolist() == np.rint(fit.model.table((0, 1))).tolist()


def test_a_table_of_low_rank_is_nearer_to_the_truth_with_its_noise_shrunk() -> None:
    """Rows and columns keep their sums, and noise alone is taken away."""
    drawn = np.random.default_rng(0)
    sides = drawn.normal(size=20), drawn.normal(size=15)
    truth, guess = 50 + 30 * np.multiply.outer(*sides), np.full((20, 15), 50.0)
    noisy = NoisyTable((0, 1), (None, None), truth + drawn.laplace(0, 20, truth.shape), 800.0)
    shrunk = shrink_noise(noisy, guess)

    for axis in (0, 1):
        assert shrunk.values.sum(axis=axis) == pytest.approx(noisy.values.sum(axis=axis))
    assert np.abs(shrunk.values - truth).sum() < 0.6 * np.abs(noisy.values - truth).sum()
    assert shrunk.variance == noisy.variance


def test_labels_that_noise_hides_are_near_each_other() -> None:
    """A label that stands out stays, and the rest errs less than a projection of noisy counts."""
    drawn = np.random.default_rng(1)
    truth = np.array([5000.0, *[40.0] * 39])
    noisy = truth + np.rint(drawn.laplace(0, 50, truth.size))
    found, plain = (project_on_total(each, truth.sum()) for each in (expect_labels(noisy, 50.0), noisy))

    assert found[0] == pytest.approx(5000, abs=150)
    assert np.abs(found - truth).sum() < 0.7 * np.abs(plain - truth).sum()
