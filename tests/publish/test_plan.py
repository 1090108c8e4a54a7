"""A plan touches no data; a simulation touches public data only, and says so."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from partita.domain import Category, Domain, Integer, Real
from partita.errors import InvalidParameter
from partita.publish.plan import Plan, plan, simulate
from partita.publish.trials import BoxTrial, QuestionTrial
from partita.testing import ZeroNoise
from partita.trusted.mechanisms.boxes import GridCounts
from partita.trusted.mechanisms.catalogue import ROWS
from partita.trusted.noise import system
from partita.trusted.sources.open import open_source
from partita.trusted.sources.tally import tally
from tests.publish.people import AGE, CANARY, SCHEMA, people

PRICE: dict[str, Domain] = {"price": Real(0, 100, step="0.01")}


def planned(schema: Any = SCHEMA, **other: Any) -> Plan:
    return plan(schema, **{"epsilon": 1, **other})


def test_a_plan_draws_no_noise_and_reads_no_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a function of public facts: twice the same, without a source or a draw."""
    monkeypatch.setattr(system.SystemNoise, "session", lambda self: pytest.fail("noise was drawn"))

    one, other = (planned(views=list(SCHEMA)) for _ in range(2))

    assert str(one) == str(other)
    assert one.to_json() == other.to_json()


def test_without_a_guess_few_usual_and_many_rows_are_shown() -> None:
    """Three lines for a column of whole numbers."""
    assert [line["rows"] for line in planned(AGE).rows()] == list(ROWS) == [10**3, 10**5, 10**7]


@pytest.mark.parametrize(("rows", "shown"), [(5000, [5000]), ([10, 20], [10, 20]), (0, [0])])
def test_a_guess_is_shown_as_given(rows: Any, shown: list[int]) -> None:
    """One number of rows, or several."""
    assert [line["rows"] for line in planned(AGE, rows=rows).rows()] == shown


def test_shares_and_mechanisms_are_those_of_the_request() -> None:
    """What is planned is what would be published."""
    made = planned(views=["age", "region"], shares={"age": 3, "region": 1}, mechanism="tree", rows=100)

    lines = made.rows()
    assert [(line["columns"], line["epsilon"], line["mechanism"]) for line in lines] == [
        (["age"], "3/4", "tree"),
        (["region"], "1/4", "tree"),
    ]
    assert made.guarantee.epsilon == 1


def test_predictions_are_those_of_the_mechanism() -> None:
    """Error and size come from the mechanism itself, and bytes are eight for each number."""
    made = planned(AGE, mechanism="tree", rows=1000)

    mechanism: Any = made.request.views[0].choice.mechanism
    [line] = made.rows()
    assert line["error"] == mechanism.predicted_error(1000)
    assert line["numbers"] == mechanism.predicted_numbers(1000)
    assert line["bytes"] == 8 * line["numbers"]


def test_half_of_epsilon_is_twice_the_error() -> None:
    """For a tree, whose errors are noise only, nearly so."""
    one, half = (planned(AGE, mechanism="tree", rows=1000, epsilon=e).rows()[0] for e in (1, "1/2"))

    assert half["error"] / one["error"] == pytest.approx(2, rel=0.05)


def test_a_real_column_is_compared_with_coarser_steps() -> None:
    """Ten and a hundred times coarser, with the rounding of each beside its noise."""
    made = planned(PRICE, mechanism="tree", rows=1000)

    lines = made.rows()
    assert [(line["step"], line["rounding"], line["planned"]) for line in lines] == [
        ("0.01", "0.005", True),
        ("0.1", "0.05", False),
        ("1", "0.5", False),
    ]
    assert lines[0]["error"] > lines[1]["error"] > lines[2]["error"]


def test_steps_are_compared_as_given() -> None:
    """Finer ones too, and bounds move outwards to a multiple of the step."""
    made = planned(PRICE, mechanism="tree", rows=1000, steps=["0.005", "0.01", 7])

    assert [outlook.view.domains[0] for outlook in made.outlooks] == [
        PRICE["price"],
        Real(0, 100, step="0.005"),
        Real(0, 105, step=7),
    ]
    assert [outlook.rounding for outlook in made.outlooks] == [
        Fraction(1, 200),
        Fraction(1, 400),
        Fraction(7, 2),
    ]


def test_whole_numbers_have_no_rounding() -> None:
    """Neither have categories; their lines stay as they are, and steps go to a real column beside them."""
    made = planned(views=["age", "region", "salary"], rows=1000, steps=[7])

    assert [line["rounding"] is None for line in made.rows()] == [True, True, False, False]


@pytest.mark.parametrize("views", [["age", "region"], [("age", "salary")]], ids=str)
def test_steps_that_nothing_is_compared_with_are_refused(views: list[Any]) -> None:
    """No view is of a real column alone, so a step would change nothing."""
    with pytest.raises(InvalidParameter, match="steps needs a column of real numbers that has a view of its"):
        planned(views=views, steps=["0.1"])


def test_a_plan_reads_as_a_table() -> None:
    """It names columns, mechanisms and reasons, and explains what it shows."""
    text = str(planned(PRICE | {"region": Category(["a"])}, views=["price", "region"], rows=1000))

    for word in (
        "epsilon 1, pure",
        "price",
        "(0.1)",
        "0.05",
        "histogram",
        "categories",
        "in units of its column",
    ):
        assert word in text
    assert max(map(len, text.splitlines())) <= 120


def test_nothing_is_explained_that_is_not_shown() -> None:
    """Whole numbers have no step and no rounding, in the table or below it."""
    text = str(planned(AGE, mechanism="tree", rows=1000))

    assert "bytes is eight" in text
    assert "step" not in text
    assert "rounding" not in text


def test_a_plan_is_written_as_json() -> None:
    """Nothing is lost but exactness of predictions, which have none."""
    made = planned(views=list(SCHEMA))

    assert json.loads(json.dumps(made.to_json()))["expected"] == made.rows()


def test_views_of_one_column_and_of_several_have_the_same_entries() -> None:
    """Programs need not tell them apart."""
    [alone, together] = planned(views=["age", ("age", "region")]).to_json()["request"]["views"]

    assert list(alone) == list(together) == ["view", "columns", "domains", "share", "mechanism"]
    assert (alone["columns"], together["columns"]) == (["age"], ["age", "region"])
    assert [alone["domains"][0]] == together["domains"][:1]


@pytest.mark.parametrize(
    ("changes", "parameter"),
    [
        ({"rows": -1}, "rows"),
        ({"rows": 1.5}, "rows"),
        ({"rows": "many"}, "rows"),
        ({"rows": []}, "rows"),
        ({"rows": 2**63}, "rows"),
        ({"steps": 0.1}, "steps"),
        ({"steps": [0]}, "steps"),
        ({"steps": ["x"]}, "steps"),
        ({"epsilon": 0}, "epsilon"),
        ({"mechanism": "magic"}, "mechanism"),
    ],
    ids=str,
)
def test_what_is_wrong_is_named(changes: dict[str, Any], parameter: str) -> None:
    """A plan refuses what `publish` would refuse, and bad guesses."""
    with pytest.raises(InvalidParameter) as refused:
        planned(AGE, **changes)

    assert refused.value.parameter == parameter


def test_columns_together_are_one_line_for_each_number_of_rows() -> None:
    """With the error of a random box and the size that the mechanism predicts; no step is compared."""
    made = planned(by=("age", "salary"), mechanism="grid", rows=[10, 1000])

    mechanism: Any = made.request.views[0].choice.mechanism
    for line, rows in zip(made.rows(), (10, 1000), strict=True):
        assert (line["columns"], line["mechanism"], line["cells"]) == (["age", "salary"], "grid", 121 * 2001)
        assert (line["error"], line["numbers"]) == (
            mechanism.predicted_error(rows),
            mechanism.predicted_numbers(rows),
        )
        assert (line["step"], line["rounding"]) == (None, None)


def test_a_plan_of_several_views_gives_a_reason_for_each() -> None:
    """By their names, in print and in JSON."""
    made = planned(views=["age", ("age", "region")], mechanism="grid")

    assert list(made.to_json()["why"]) == ["age", "age x region"]
    assert "age x region: grid. It was asked for by name." in str(made)


# --- simulations ----------------------------------------------------------------------------------


def test_without_noise_a_histogram_misses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors are measured against the exact counts: with noise of zero they are zero."""
    monkeypatch.setattr(system.SystemNoise, "add", lambda self, x, scale, parts=None: np.asarray(x).copy())
    made = planned(views=list(SCHEMA), mechanism="histogram")

    measured = simulate(made, people()).measured

    assert [each.columns for each in measured] == [(name,) for name in SCHEMA for _ in range(2)]
    assert {each.largest for each in measured} == {0.0}


def test_without_noise_a_grid_misses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Boxes are compared with the exact counts of the points inside, with ends anywhere and at values."""
    monkeypatch.setattr(system.SystemNoise, "add", lambda self, x, scale, parts=None: np.asarray(x).copy())
    made = planned(views=[("age", "region"), ("region", "born", "age")], mechanism="grid")

    measured = simulate(made, people(), ranges=200).measured

    assert [(each.columns, each.ranges) for each in measured] == [
        (names, kind)
        for names in (("age", "region"), ("region", "born", "age"))
        for kind in ("anywhere", "values")
    ]
    assert {each.largest for each in measured} == {0.0}


@pytest.mark.parametrize(
    "question",
    [
        "count by region",
        "count by month(born), region where age >= 30",
        "count by breaks(age, 18, 65)",
        "share where age >= 30 by region",
        "count where age < 18 or region = north",
    ],
)
def test_without_noise_answers_by_groups_are_exact(monkeypatch: pytest.MonkeyPatch, question: str) -> None:
    """Each group is compared with its own exact answer, and so are conditions that are joined by `or`."""
    monkeypatch.setattr(system.SystemNoise, "add", lambda self, x, scale, parts=None: np.asarray(x).copy())
    made = planned(by=["age", "born", "region"], mechanism="grid", epsilon=5)

    (asked,) = simulate(made, people(4_000), questions=[question], times=1).asked

    assert asked.question == question
    assert asked.typical < 1e-6
    assert asked.held == 1


def test_all_groups_are_compared_whatever_their_order() -> None:
    """Which groups are the largest depends on the noise, so an order and a limit are left out."""
    trial = QuestionTrial.read("count by region order by count desc limit 1", SCHEMA)

    assert trial.text == "count by region"
    assert len(trial.questions) == 4


@pytest.mark.parametrize("columns", [("age", "born"), ("age", "salary", "born")], ids=str)
def test_the_default_for_columns_together_is_planned_and_simulated(columns: tuple[str, ...]) -> None:
    """It predicts error and size for any number of rows, and its misses are measured."""
    made = planned(by=columns)

    lines = made.rows()
    assert {line["mechanism"] for line in lines} == {"rectangles"}
    assert all(line["error"] > 0 and line["numbers"] > 0 for line in lines)
    measured = simulate(made, people(), ranges=50).measured
    assert [each.columns for each in measured] == [columns] * 2
    assert all(0 < each.mean <= each.typical <= each.largest < 10**5 for each in measured)


def test_boxes_of_a_trial_are_many_and_different() -> None:
    """Their ends lie on ordinary cells, spread over all of them, and most of them hold somebody."""
    rows = tally(open_source(people()), {name: SCHEMA[name] for name in ("age", "region")})
    points = rows.points(["age", "region"])
    released = GridCounts(axes=points.axes, epsilon=1).release(points, noise=ZeroNoise())
    trial = BoxTrial(released, points)

    for lows, highs in trial.ends(400).values():
        assert lows.shape == highs.shape == (400, 2)
        assert (lows <= highs).all()
        assert lows.min(axis=0).tolist() == [1, 0]
        assert highs.max(axis=0).tolist() >= [119, 1]
        assert highs.max(axis=0).tolist() <= [121, 1]
        assert len({(*low, *high) for low, high in zip(lows.tolist(), highs.tolist(), strict=True)}) > 200
        exact = np.array([trial._inside(low, high) for low, high in zip(lows, highs, strict=True)])
        assert (exact > 0).mean() > 0.8
        places = points.places
        for low, high, count in list(zip(lows, highs, exact, strict=True))[:20]:
            inside = [bool((low <= place).all() and (place <= high).all()) for place in places]
            assert count == points.counts[inside].sum()


@pytest.mark.statistics
def test_measured_errors_are_as_predicted() -> None:
    """Over 40 simulations the mean square error of a tree is that of its prediction, to three tenths."""
    made = planned({"x": Integer(0, 1999)}, mechanism="tree", rows=1000)
    runs = [simulate(made, {"x": np.arange(1000) * 2}).measured for _ in range(40)]

    square = np.mean([anywhere.typical**2 for anywhere, _ in runs])

    assert square == pytest.approx(made.rows()[0]["error"] ** 2, rel=0.3)
    for pair in runs:
        assert [each.ranges for each in pair] == ["anywhere", "values"]
        assert all(0 < each.mean <= each.typical <= each.largest for each in pair)


def test_a_simulation_says_that_it_is_for_public_data() -> None:
    """In print and in JSON."""
    made = simulate(planned(AGE, mechanism="tree"), people())

    for text in (str(made), json.dumps(made.to_json())):
        assert "PUBLIC data only" in text
        assert "no ledger was debited" in text
    assert "at values of the file" in str(made)


def test_an_empty_file_can_be_simulated() -> None:
    """Where there are no values, ranges end anywhere."""
    made = simulate(planned(AGE, mechanism="tree"), {"age": np.array([], np.int64)})

    assert [each.ranges for each in made.measured] == ["anywhere"]


def test_a_universe_of_2_to_the_64_can_be_simulated() -> None:
    """Ranges end at cells that no float can tell apart."""
    made = planned({"x": Integer(0, 2**64 - 1)}, mechanism="intervals-paper")

    assert len(simulate(made, {"x": np.array([2**64 - 1] * 99, np.uint64)}).measured) == 2


def test_bad_input_is_named() -> None:
    """A plan, a number of ranges, and a source."""
    with pytest.raises(InvalidParameter, match="plan must be a Plan"):
        simulate(CANARY, people())  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="ranges must be at least 1"):
        simulate(planned(AGE, mechanism="tree"), people(), ranges=0)


# --- questions that matter, asked of simulated releases ------------------------------------------


def truth(text: str) -> float:
    """The exact answers again, by plain Python over the rows."""
    rows = people().to_pylist()
    ages = sorted(row["age"] for row in rows if row["age"] is not None and row["age"] <= 120)
    match text:
        case "count":
            return float(len(rows))
        case "count where age is null":
            return float(sum(row["age"] is None for row in rows))
        case "count where age between 30 and 39 and region = 'north'":
            return float(sum((row["age"] or 0) in range(30, 40) and row["region"] == "north" for row in rows))
        case "difference between (age >= 60) and (age < 30)":
            known = [row["age"] for row in rows if row["age"] is not None]
            return float(sum(age >= 60 for age in known) - sum(age < 30 for age in known))
        case "median of age":
            return float(ages[math.ceil(len(ages) / 2) - 1])
        case "sum of age where region = 'south'":
            south = [row["age"] for row in rows if row["region"] == "south" and row["age"] is not None]
            return float(sum(age for age in south if age <= 120))
        case "mean of age":
            return float(sum(ages) / len(ages))
        case "variance of age":
            return float(sum((age - sum(ages) / len(ages)) ** 2 for age in ages) / len(ages))
        case _:
            return math.sqrt(truth("variance of age"))


@pytest.mark.parametrize(
    "text",
    [
        "count",
        "count where age is null",
        "count where age between 30 and 39 and region = 'north'",
        "difference between (age >= 60) and (age < 30)",
        "median of age",
        "sum of age where region = 'south'",
        "mean of age",
        "variance of age",
        "std of age",
    ],
)
def test_exact_answers_are_those_of_the_rows(text: str) -> None:
    """For every kind of question that is compared, special cells and rows beyond the bounds included."""
    schema = {name: SCHEMA[name] for name in ("age", "region")}
    trial = QuestionTrial.read(text, schema)
    names = trial.columns or ("age",)
    points = tally(open_source(people()), schema).points(names)

    [exact] = trial.exact(points, {name: schema[name] for name in names})

    assert exact == pytest.approx(truth(text))


def test_questions_are_asked_of_many_releases() -> None:
    """With the exact answer, the errors, and how many intervals hold it."""
    made = planned({name: SCHEMA[name] for name in ("age", "region")}, epsilon=4, views=["age", "region"])
    asked = ["count where age between 30 and 39", "ranges of region", "ranges of age", "median of age"]

    found = simulate(made, people(), ranges=1, questions=asked, times=5, confidence=0.999)

    assert [each.question for each in found.asked] == asked
    assert [each.groups for each in found.asked] == [1, 2, 32, 1]
    assert [each.times for each in found.asked] == [5] * 4
    assert all(0 <= each.typical <= each.largest for each in found.asked)
    assert all(each.held > 0.9 and each.determinable == 1 for each in found.asked)
    assert found.asked[1].exact == 100
    assert "ranges of region" in str(found)
    assert "held the part of the intervals at 0.999" in str(found)
    assert [each["question"] for each in found.to_json()["asked"]] == asked


def test_wants_of_a_plan_are_asked_by_themselves() -> None:
    """Those by a column for each group; bounds, which are two values, are left out."""
    wants = [
        "median of age",
        "mean of salary by region",
        "share where age >= 60 by region",
        "bounds of salary",
    ]
    made = plan(SCHEMA, epsilon=4, wants=wants)

    found = simulate(made, people(), times=2)

    assert [(each.question, each.groups) for each in found.asked] == [
        ("median of age", 1),
        ("mean of salary by region", 2),
        ("share where age >= 60 by region", 2),
    ]
    assert found.measured == ()
    assert "ranges" not in str(found).partition("question")[2].partition("Of 2 releases")[0]


def test_without_noise_answers_are_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """And a person of whom few rows count is missed: the exact answers are those of all rows."""
    monkeypatch.setattr(system.SystemNoise, "add", lambda self, x, scale, parts=None: np.asarray(x).copy())
    rows = {"id": [1, 1, 2, 3], "age": [30, 31, 30, 40]}
    bounded = planned(AGE, mechanism="histogram", person="id", contributions=1)

    [plain] = simulate(planned(AGE, mechanism="histogram"), rows, questions=["count"], times=1).asked
    [missed] = simulate(bounded, rows, questions=["count"], times=1).asked

    assert (plain.exact, plain.largest, plain.held) == (4, 0, 1)
    assert (missed.exact, missed.largest) == (4, 1)


def test_a_table_without_rows_can_be_asked() -> None:
    """A mean of no rows has no exact answer, and nothing to compare."""
    made = planned(AGE, mechanism="tree", sums=["age"])

    [count, mean] = simulate(made, {"age": []}, questions=["count", "mean of age"], times=2).asked

    assert count.exact == 0
    assert math.isnan(mean.exact)
    assert math.isnan(mean.held)


@pytest.mark.parametrize(
    ("questions", "rule"),
    [
        (
            ["count where agge = 3"],
            "questions must name columns of the schema, got 'agge'; did you mean 'age'",
        ),
        (["mean of nope by age"], "questions must be about columns of the schema"),
        (["histogram of age"], "questions must be of the kinds count, sum"),
        (["count where 2*age <= 3"], "questions must be of the kinds count, sum"),
        (["bounds of age"], "questions must be of totals, means"),
        (["count where"], "question"),
        ([3], "questions must be questions or wants"),
        (3, "questions must be a list of questions"),
        (["sum of age"], "sums"),
    ],
    ids=str,
)
def test_what_cannot_be_asked_is_refused(questions: Any, rule: str) -> None:
    """With a typed error that says what can."""
    with pytest.raises(InvalidParameter, match=rule):
        simulate(planned(AGE, mechanism="tree"), people(), questions=questions, times=1)
