"""The protocol of whole tables: the same rows in every run, true counts, one measure for every method."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import partita as pt
from benchmarks import machine
from benchmarks.accuracy import labels, tables
from benchmarks.accuracy.__main__ import ROWS, parser
from benchmarks.accuracy.rows import Plan
from benchmarks.accuracy.tables_questions import Seen, ask
from benchmarks.accuracy.tables_read import mean_variation, read_table
from benchmarks.accuracy.tables_sets import HELD_OUT, SETS, TUNED, Table, Trips, draw_classes, draw_traits
from benchmarks.peers.tables import answer_variations, count_cells, unpack_subsets, variation

SIZES = (2, 3, 5, 4)
SURE = 1000
"""An epsilon at which noise is nearly always zero."""


@pytest.fixture(scope="module")
def survey() -> Table:
    return draw_traits("survey", SIZES, 500, 2, seed=5)


def publish_sure(table: Table) -> pt.Release:
    with pytest.warns(pt.PrivacyWarning):
        return pt.publish(table.source, table.schema, epsilon=SURE, mechanism="rectangles")


def test_no_set_is_tuned_and_held_out() -> None:
    """Constants are never chosen on a set that is held out."""
    assert not set(TUNED) & set(HELD_OUT)


def test_rows_are_the_same_in_every_run() -> None:
    """A family draws from a fixed seed, and every code lies in its column."""
    for draw in (draw_classes, draw_traits):
        first, second = (draw("twice", SIZES, 300, 3, seed=7) for _ in range(2))

        assert np.array_equal(first.rows, second.rows)
        assert (first.rows >= 0).all()
        assert (first.rows < SIZES).all()


def test_trips_fill_their_columns() -> None:
    """Days, places and delays lie in their domains, and places differ in size."""
    trips = Trips(name="few", n=5_000, days=30, places=20, delays=200, zipf=1.0, seed=3).draw()
    sizes = np.sort(np.bincount(trips.rows[:, 1], minlength=20))

    assert (trips.rows >= 0).all()
    assert (trips.rows < trips.sizes).all()
    assert sizes[-1] > 5 * sizes[0]


def test_variation_is_half_of_the_distance_of_shares() -> None:
    """Equal tables have none, disjoint ones have one, and scale and negative cells do not matter."""
    truth = np.array([[3, 1], [0, 0]])

    assert variation(truth, truth * 7.0) == 0
    assert variation(truth, np.array([[0, 0], [1, 1]])) == 1
    assert variation(truth, np.array([[2.0, 2.0], [-5.0, 0.0]])) == pytest.approx(0.25)
    assert variation(truth, np.zeros((2, 2))) == pytest.approx(0.5)


def test_a_table_is_read_cell_by_cell(survey: Table) -> None:
    """With next to no noise the released table is the table of the rows."""
    release = publish_sure(survey)

    found = read_table(release, survey, (1, 2))

    assert found == pytest.approx(count_cells(survey.rows, survey.sizes, (1, 2)), abs=2)
    assert max(mean_variation(release, survey)) < 0.05


def test_a_worker_is_judged_as_we_are(survey: Table) -> None:
    """The problem of a worker keeps every pair and triple, and the truth has no variation."""
    asked = tables.problem(survey, "1")

    assert unpack_subsets(asked) == [*survey.pairs, *survey.triples]

    def project(subset: tuple[int, ...]) -> Any:
        return count_cells(survey.rows, survey.sizes, subset)

    assert not answer_variations(asked, project)().any()


def test_columns_that_are_independent_are_a_product(survey: Table) -> None:
    """The baseline of single columns errs on every pair by no more than the rows depend on each other."""
    with pytest.warns(pt.PrivacyWarning):
        pairs, triples = tables.column_views(survey, str(SURE))

    expected = [dependence(count_cells(survey.rows, survey.sizes, pair)) for pair in survey.pairs]
    assert pairs == pytest.approx(expected, abs=0.01)
    assert len(triples) == len(survey.triples)


def dependence(counts: Any) -> float:
    return variation(counts, np.outer(counts.sum(axis=1), counts.sum(axis=0)))


def test_answers_hold_where_noise_is_small(survey: Table) -> None:
    """The truth of a question is what a release says of it, for every kind."""
    release, asked = publish_sure(survey), ask(survey, 6, seed=1)

    boxes = {"box_2", "box_3", "box_4"}
    assert set(asked) == {"value", "range", "cell", "label", "group", "label_range", *boxes}
    for kind in ("label", *sorted(boxes)):
        assert Seen.of(release, asked[kind]).figures["mean"] < 3


def test_figures_of_answers() -> None:
    """Coverage is the share of intervals that hold the truth, width half of them over the mean error."""
    values, truth = np.array([10.0, 20.0]), np.array([12.0, 30.0])
    seen = Seen(values, values - 4, values + 4, np.full(2, 2.0), truth)

    figures = seen.figures

    assert (figures["mean"], figures["covered"]) == (6, 0.5)
    assert figures["width"] == pytest.approx(4 / 6, rel=1e-3)


def test_a_refused_release_is_reported(survey: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """A method that cannot publish the table has a cell with the reason and no figures."""
    monkeypatch.setitem(SETS, "survey", lambda: survey)

    def refuse(table: Table, epsilon: str) -> tables.Found:
        raise pt.InvalidParameter("views", "must be fewer", given=9, fix="publish less")

    monkeypatch.setitem(tables.METHODS, "partita", refuse)
    cell = tables.cell(Plan(trials=1), "survey", "1", "partita")

    assert "must be fewer" in cell["refused"]
    assert next(iter(tables.summary([cell])))["met"] is None


def test_peers_run_only_when_they_are_asked_for() -> None:
    """Without `--peers` no other library is run, and `--sets` leaves out all other sets."""
    alone, beside = (ROWS["tables"].cells(Plan(sets=("adult",), peers=peers)) for peers in (False, True))

    assert len(alone) == len(tables.EPSILONS) * len(tables.OWN)
    assert len(beside) == len(tables.EPSILONS) * len(tables.METHODS)
    assert parser().parse_args(["--sets", "adult,survey-16", "--peers"]).sets == ["adult", "survey-16"]


def test_labels_are_compared_with_views_and_rectangles(
    survey: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cell has figures of both mechanisms under names that the facts of the machine leave alone."""
    monkeypatch.setitem(SETS, "survey", lambda: survey)
    monkeypatch.setattr(labels, "QUESTIONS", 3)

    cell = labels.cell(Plan(trials=1), "survey", ("q0", "q3"), "1")

    assert not set(cell) & set(machine.facts())
    assert cell["label_over_view"] > 0
    assert {total["total"] for total in labels.summary([cell])} >= {"all, over rectangles"}
