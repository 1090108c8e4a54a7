"""The row of what is wanted: the same columns for everybody, and failures of other libraries on record."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.accuracy import wanted, wanted_quantiles
from benchmarks.accuracy.__main__ import run
from benchmarks.accuracy.rows import Plan
from benchmarks.accuracy.wanted import KINDS, OURS, SETS, Offer, compare, errors_of, totals, with_epsilons
from benchmarks.peers.worker import column_of, measured
from benchmarks.report.environments import Environment
from tests.benchmarks.test_report import fake, worker_methods

FEW = 3_000


@pytest.fixture(autouse=True)
def _few_rows_of_made_up_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small columns, and none of PARTITA_DATA."""
    monkeypatch.delenv("PARTITA_DATA", raising=False)
    for module in (wanted, wanted_quantiles):
        monkeypatch.setattr(module, "ROWS", FEW)
    monkeypatch.setattr(wanted, "MANY_ROWS", FEW)


@pytest.mark.parametrize("name", SETS)
def test_every_set_runs_without_another_library(name: str) -> None:
    """One trial of each setting gives figures of ours at both epsilons, and no ratio without peers."""
    rows = list(run(["wanted"], Plan(trials=1, sets=(name,)), jobs=1))

    measured_rows = [row for row in rows if "total" not in row]
    assert measured_rows
    assert json.loads(json.dumps(rows)) == rows
    for row in measured_rows if name in KINDS else ():
        assert [len(row["errors"][OURS]), row["ratio"], row["failed"]] == [2, [None, None], {}]
        assert all(np.isfinite(row["errors"][OURS]))


def test_every_offer_is_a_method_of_its_worker() -> None:
    """What the row asks of a peer, its worker has."""
    for offer in (offer for kind in KINDS.values() for offer in kind.offers):
        assert offer.method in worker_methods(offer.peer)


def test_releases_take_columns_in_turn() -> None:
    """Release n is about column n modulo their number, with its own epsilon; all have one size."""
    problem = with_epsilons({"values": np.array([[1, 2], [3, 4]]), "size": 9}, trials=2)

    found = measured(lambda each: lambda: [*each["values"], each["epsilon"]], {**problem, "releases": 5})

    assert found["answers"].tolist() == [[1, 2, 0.1], [3, 4, 0.1], [1, 2, 1], [3, 4, 1], [1, 2, 0.1]]
    assert column_of(problem, 3)["size"] == 9


def test_errors_are_those_of_each_column() -> None:
    """Two draws of two columns at two epsilons: relative distances, a group without truth left out."""
    truth = np.array([[10.0, np.nan], [20.0, 40.0]])
    problem = with_epsilons({"values": np.zeros((2, 1)), "truth": truth}, trials=2)
    answers = np.array([[11, 5], [20, 46], [10, 7], [26, 40]] * 2)

    expected = [[0.1, 3 / 30], [0, 3 / 30]]
    np.testing.assert_allclose(errors_of(problem, answers), [expected, expected])


def test_a_peer_that_fails_is_on_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that raises has its reason in the row, and ours is measured."""
    monkeypatch.setattr(wanted, "environment", lambda *_: Environment(Path(sys.prefix)))
    offer = Offer(fake("broken"), "broken", "broken")
    monkeypatch.setitem(KINDS, "median", KINDS["median"]._replace(offers=(offer,)))

    row = compare(Plan(trials=1, peers=True), "median", ("smooth",))

    assert (row["failed"], row["best"]) == ({"broken": "ValueError: the library refuses"}, [None, None])


def test_the_best_peer_counts() -> None:
    """Totals are the geometric mean and the largest of the ratios at both epsilons."""
    both = {"row": "wanted", "set": "totals", "setting": "", "best": ["a", "b"], "failed": {}}
    figures = {"errors": {OURS: [1.0, 1.0]}, "spread": {OURS: [0.0, 0.0]}}
    *_, last = totals([{**both, **figures, "ratio": [0.5, 2.0]}])

    assert (last["ratio"], last["worst"]) == (1.0, 2.0)
