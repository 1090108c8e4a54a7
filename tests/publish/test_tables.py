"""A plan of a table release says what can be told; a simulation measures it; `together` is checked."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from partita.domain import Category, Domain, Integer
from partita.domain.axis import Axis
from partita.errors import InvalidParameter
from partita.ledger.ledger import Ledger
from partita.public.bounds import laplace_variance
from partita.public.boxes.base import BoxTerm
from partita.public.boxes.grid import GridRelease
from partita.public.tables.graph import TableGraphRelease
from partita.public.tables.plan import find_growth, is_counted, predict_errors, predict_graph_error
from partita.public.tables.spending import EpsilonSpending
from partita.public.tables.summary import TableSummary
from partita.publish.plan import Plan, plan, simulate
from partita.publish.publish import publish
from partita.trusted.mechanisms.graph import TableGraph
from partita.trusted.noise import system

TABLE: dict[str, Domain] = {
    "age": Integer(0, 99),
    "town": Category([f"town {number}" for number in range(60)]),
    "sex": Category(["f", "m"]),
    "visits": Integer(0, 9),
}
NAMES = tuple(TABLE)
ONE = EpsilonSpending(Fraction(1))


def patients(count: int = 600) -> dict[str, Any]:
    """Made-up rows in which older people come more often."""
    turn = np.arange(count)
    age = turn * 37 % 100
    return {
        "age": age,
        "town": [f"town {number}" for number in (turn * turn % 60).tolist()],
        "sex": np.array(["f", "m"])[turn % 2].tolist(),
        "visits": (age // 12 + turn % 3) % 10,
    }


def planned(**other: Any) -> Plan:
    return plan(TABLE, **{"epsilon": 1, "rows": 600, **other})


@pytest.fixture(scope="module")
def released() -> TableGraphRelease:
    """One table release."""
    boxes = publish(patients(), TABLE, epsilon=1).views[0]
    assert isinstance(boxes.boxes, TableGraphRelease)  # type: ignore[union-attr]
    return boxes.boxes  # type: ignore[union-attr]


# --- predictions ----------------------------------------------------------------------------------


def test_the_error_of_a_single_label_is_that_of_its_view() -> None:
    """Its share of epsilon is public, so is the law of its noise."""
    [line] = planned().rows()
    mechanism: Any = planned().request.views[0].choice.mechanism
    shares = predict_errors(mechanism.axes, mechanism.spending, 600).shares

    town = line["by_column"][1]
    assert town["counted"]
    assert town["single"] == pytest.approx(math.sqrt(laplace_variance(1 / shares.views[1])))
    assert town["half_width"] == pytest.approx(3 / float(shares.views[1]), abs=1)


def test_columns_are_counted_one_by_one_where_the_mechanism_does_so() -> None:
    """The rule of the plan is that of the release: a view of cells, or a tree over many of them."""
    schema = {"age": Integer(0, 99), "pay": Integer(0, 10**6), "town": TABLE["town"]}
    rows = {name: np.arange(300) for name in ("age", "pay")} | {"town": ["town 1"] * 300}
    made = publish(rows, schema, epsilon=1, mechanism="graph").views[0].boxes  # type: ignore[union-attr]
    assert isinstance(made, TableGraphRelease)

    shares = predict_errors(made.axes, ONE, made.fit.total).shares
    for axis, part, view in zip(made.axes, shares.views, made.fit.views, strict=True):
        assert is_counted(axis, part, max(1, made.fit.total)) == isinstance(view, GridRelease)


def test_small_columns_that_are_covered_are_told_by_their_tables() -> None:
    """A cover says more about a single label than the small share of its view."""
    axes = [Axis(size=2, after=2, labels=True)] * 16
    found = predict_errors(axes, ONE, 20_000)

    alone = math.sqrt(laplace_variance(1 / found.shares.views[0]))
    assert found.shares.cover
    assert all(each.single < alone / 3 for each in found.columns)


@pytest.mark.parametrize(
    ("sizes", "rows", "rate", "measured"),
    [
        ((100, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 100, 42, 2), 48_842, 1.0, 153.3),
        ((365, 320, 2000), 200_000, 1.0, 323.3),
        ((2,) * 16, 21_000, 1.0, 198.1),
        ((2,) * 16, 21_000, 0.1, 1270.0),
        ((2, 12, 40, 5, 100, 3, 8, 20), 30_000, 0.1, 345.8),
        ((6, 9, 4, 15, 120), 3_000, 10.0, 7.1),
    ],
)
def test_the_error_of_a_box_is_predicted_to_a_factor_of_two(
    sizes: tuple[int, ...], rows: int, rate: float, measured: float
) -> None:
    """Measured errors are those of one release each: Adult, trips and made-up surveys."""
    axes = [Axis(size=size, after=2, labels=True) for size in sizes]

    assert measured / 2 < predict_graph_error(axes, EpsilonSpending(Fraction(rate)), rows) < 2 * measured


def test_the_error_of_a_mechanism_is_that_of_the_plan() -> None:
    """And falls as epsilon grows."""
    errors = [planned(epsilon=epsilon).rows()[0]["error"] for epsilon in ("1/10", 1, 4)]

    made = TableGraph(axes=[Axis.of(domain) for domain in TABLE.values()], epsilon=1)
    assert errors[1] == made.predicted_error(600)
    assert errors[0] > errors[1] > errors[2]


def test_no_rows_can_be_planned() -> None:
    """An empty table has errors, too."""
    assert planned(rows=0).rows()[0]["error"] > 0


# --- sentences ------------------------------------------------------------------------------------


def test_a_plan_explains_engine_shares_and_errors() -> None:
    """It is a table release by a public rule; parts of epsilon and typical errors are told."""
    text = str(planned(together=[("age", "visits")]))

    assert "graph. It is the default for 4 columns, some of them categories" in text
    assert "Parts of epsilon: views of single columns" in text
    assert "Measured together in any case: age x visits." in text
    assert "rows of a cell of two columns" in text
    for column in NAMES:
        assert f"\n{column} " in text


def test_a_plan_says_what_a_cover_holds() -> None:
    """All pairs of small columns, in so many tables."""
    schema = {f"q{number}": Category(["no", "yes"]) for number in range(16)}

    text = str(plan(schema, epsilon=1, rows=20_000))

    assert "11 tables cover all pairs of 16 columns of at most 8 cells." in text
    assert "q0 x ... x q15, 16 columns" in text


def test_a_label_that_cannot_be_told_is_warned_of() -> None:
    """With its half width, the mean rows of a label, and an epsilon at which the warning is gone."""
    made = planned(epsilon="1/2")

    [warning] = [each for each in made.warnings if "town" in each]
    assert "a single label of town: ± " in warning
    assert "of about 10 rows; epsilon " in warning
    needed = warning.split("epsilon ")[1].split(" ")[0]
    assert not [each for each in planned(epsilon=needed).warnings if "label of town" in each]
    assert f"Beware: {warning}." in str(made)
    assert made.rows()[0]["warnings"]


def test_labels_of_viewed_boxes_are_foretold() -> None:
    """A plan for a category beside another column tells how far off a label is, and warns if it must."""
    schema: dict[str, Domain] = {
        "day": Integer(0, 364),
        "town": Category([f"town {k}" for k in range(300)]),
    }
    few, many = (plan(schema, epsilon=epsilon, rows=20_000) for epsilon in ("1/10", 1))

    assert "95% of a single one: town ± 193 rows." in str(few)
    [warning] = few.warnings
    assert "a single label of town: ± 193 of about 66.7 rows; epsilon 0.29 would tell it" in warning
    assert not many.warnings


def test_a_large_table_is_not_warned_of() -> None:
    """Single labels can be told where rows are many."""
    assert not [each for each in planned(rows=10**7).warnings if "label" in each or "value" in each]


def test_single_values_of_a_wide_column_are_not_warned_of() -> None:
    """Nobody asks for one salary among 10^6."""
    schema = {**TABLE, "pay": Integer(0, 10**6)}

    assert not [each for each in plan(schema, epsilon=1, rows=600).warnings if "pay" in each]


def test_an_epsilon_that_would_be_absurd_is_not_named() -> None:
    """No more than some thousand times the epsilon is ever named."""
    axes = [Axis(size=10_000, labels=True), Axis(size=2, labels=True), Axis(size=2, labels=True)]

    assert find_growth(axes, EpsilonSpending(Fraction(1, 10**6)), 10, 0) is None


def test_a_plan_of_a_table_is_written_as_json_and_html() -> None:
    """Nothing in it is exact that was not public."""
    made = planned()

    assert json.loads(json.dumps(made.to_json()))["expected"] == made.rows()
    assert "town" in made._repr_html_()


# --- simulations ----------------------------------------------------------------------------------


def test_labels_cells_and_boxes_are_simulated() -> None:
    """Every column and every pair has its errors, and all pairs together."""
    measured = simulate(planned(), patients(), ranges=24).measured

    kinds = {(each.columns, each.ranges) for each in measured}
    assert {((name,), kind) for name in NAMES for kind in ("labels", "ranges")} <= kinds
    assert {(NAMES, "cells"), (NAMES, "boxes"), (("age", "visits"), "cells")} <= kinds
    assert len(kinds) == len(measured) == 2 * 4 + 2 * 6 + 2
    assert all(0 <= each.mean <= each.typical <= each.largest for each in measured)


def test_simulated_labels_miss_nothing_without_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for what a model that is fitted in steps leaves: less than half a row."""
    monkeypatch.setattr(system.SystemNoise, "add", lambda self, x, scale, parts=None: np.asarray(x).copy())

    measured = simulate(planned(epsilon=4), patients(), ranges=100).measured

    alone = [each for each in measured if len(each.columns) == 1 and each.ranges == "labels"]
    assert [each.columns for each in alone] == [(name,) for name in NAMES]
    assert max(each.largest for each in alone) < 0.5


def test_a_wide_table_is_simulated() -> None:
    """Rows of more than six columns are counted one by one, and compared all the same."""
    schema = {**TABLE, **{f"q{number}": Integer(0, 3) for number in range(4)}}
    rows = {**patients(200), **{f"q{number}": np.arange(200) % 4 for number in range(4)}}

    measured = simulate(plan(schema, epsilon=1, rows=200), rows, ranges=8).measured

    assert len({each.columns for each in measured}) == 8 + 28 + 1


def test_a_simulation_shows_the_worst_pairs() -> None:
    """All are in its rows; few are printed, and the legend says so."""
    made = simulate(planned(), patients(), ranges=10)

    assert "6 lines of pairs with smaller errors are left out" in str(made)
    assert "age x ... " not in str(made)
    assert len(made.rows()) == 22


# --- receipts -------------------------------------------------------------------------------------


def test_a_summary_says_what_was_released(released: TableGraphRelease) -> None:
    """No single cell has more error than its view tells, none has none, and pairs and audits are counted."""
    summary = TableSummary.of(NAMES, released)

    cell = released.fit.views[1].answer(BoxTerm((3,), (3,)))
    assert 0 < summary.columns[1].single <= cell.error * (1 + 1e-9)
    assert (summary.measured, summary.pairs) == (len(released.fit.pairs), 6)
    assert sum(summary.audits.values()) == len(released.audits)
    heads = [head for head, _ in summary.lines()]
    assert heads[:3] == ["single", "pairs", "audits"]
    assert json.loads(json.dumps(summary.to_json()))["columns"][1]["column"] == "town"


# --- together -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("together", "rule"),
    [
        ([("age", "twon")], "must name columns of the schema, got 'twon'; did you mean 'town'"),
        ([("age",)], "must name two or more columns in each set, got 'age'"),
        (["age", "town"], "must be a list of sets of columns, got 'age, town'; pass for example"),
        ([()], "must name two or more columns in each set, got 'an empty set'"),
        ("age", "must be a list of sets of columns"),
        ([("age", "age")], "must name each column once"),
        ([("age", 3)], "must name columns"),
        (None, "must be a list of sets of columns"),
    ],
)
def test_a_bad_set_of_columns_costs_nothing(ledger: Ledger, together: Any, rule: str) -> None:
    """It is refused by name before any debit."""
    with pytest.raises(InvalidParameter, match=rule) as refused:
        publish(patients(), TABLE, epsilon=1, together=together, ledger=ledger, dataset="people")

    assert refused.value.parameter == "together"
    assert ledger.balance("people").left.epsilon == 3


def test_a_combination_that_no_model_holds_costs_nothing(ledger: Ledger) -> None:
    """Twelve columns of many cells would need a table of more cells than a model may have."""
    schema: dict[str, Domain] = {f"c{number}": Integer(0, 50) for number in range(12)}
    rows = {name: [1, 2, 3] for name in schema}

    with pytest.raises(InvalidParameter, match="combinations that one model can hold") as refused:
        publish(rows, schema, epsilon=1, together=[tuple(schema)], ledger=ledger, dataset="people")

    assert refused.value.parameter == "together"
    assert ledger.balance("people").left.epsilon == 3


def test_columns_that_no_view_holds_together_are_refused() -> None:
    """They would be left out without a word."""
    with pytest.raises(InvalidParameter, match="together must name columns that one view holds"):
        planned(views=["age", ("sex", "town")], together=[("age", "town")])


def test_columns_named_together_are_measured() -> None:
    """Answers about them rest on a measured table."""
    release = publish(patients(), TABLE, epsilon=1, together=[("town", "visits"), ("age", "sex", "visits")])
    boxes: Any = release.views[0].boxes  # type: ignore[union-attr]

    assert {(1, 3), (0, 2), (0, 3), (2, 3)} <= boxes.fit.pairs
    assert release.count(town="town 3", visits=(2, 5)).basis == "measured"


def test_what_is_named_together_is_a_part_of_the_request() -> None:
    """The same key with other sets is another request."""
    one, other = (planned(together=each).request.to_json() for each in ([], [("age", "sex")]))

    assert one != other
    assert Fraction(other["epsilon"]) == 1
