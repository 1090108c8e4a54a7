"""Ranges, quantiles and boxes as people ask for them: answers, errors, bounds, states and refusals."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from partita.domain import Category, Integer, Real
from partita.errors import InvalidData, InvalidParameter, InvalidState
from partita.guarantee import UNLIMITED
from partita.local import Device, Range, RangeAggregator, RangeEstimate, Rectangles, question_from
from partita.local.range_estimates import ViewEvidence, joint_share, rake_table
from partita.trusted.noise.laws import Tape


def loud(question: Any, cells: Any) -> Any:
    """What people say on a fixed tape; where epsilon is large, they do not randomize much."""
    words = Tape(np.random.default_rng(1).integers(0, 2**64, size=2_000_000, dtype=np.uint64))
    aggregator = question.aggregator()
    aggregator.add_many(question.randomize_many(cells, words=words))
    return aggregator.estimate()


def truthful(question: Range, cells: Any) -> RangeEstimate:
    """The estimate from counts that are exactly as expected: for each level, of each cell's law."""
    mixture = question.randomizer
    counts = np.zeros(mixture.reports, dtype=np.int64)
    for cell in cells:
        for report, chance in mixture.pmf(cell).items():
            counts[report] += int(chance * 10**12)
    return RangeEstimate(question, ViewEvidence(mixture, int(counts.sum()), counts))


@pytest.mark.parametrize("branching", [2, 3, 4])
@pytest.mark.parametrize("size", [6, 16, 27])
def test_expected_reports_give_the_truth(size: int, branching: int) -> None:
    """The estimator is unbiased: expected counts are decoded to the true shares of all cells."""
    question = Range(size, epsilon=1, branching=branching)
    people = [0, 3, 3, 5, size - 1]
    truth = np.bincount(people, minlength=size) / len(people)

    estimate = truthful(question, people)

    assert np.allclose(estimate.unbiased, truth, atol=1e-8)
    assert np.allclose(estimate.values, truth, atol=1e-8)


def test_ranges_and_quantiles_of_people_who_speak_loudly() -> None:
    """Counts, the distribution function and quantiles are those of the data, up to a little noise."""
    ages = np.arange(40_000) % 80
    estimate = loud(Range(Integer(0, 119), epsilon=12), ages)

    assert float(estimate.count(20, 39)) == pytest.approx(10_000, abs=400)
    assert float(estimate.cdf(59)) == pytest.approx(0.75, abs=0.01)
    assert estimate.quantile(0.5) in (38, 39, 40, 41)
    low, high = estimate.quantile_interval(0.5)
    assert low <= 39 <= high
    assert estimate.n == 40_000


def test_few_reports_leave_quantiles_open() -> None:
    """Three reports from the first half do not say that nobody is in the second."""
    question = Range(64, epsilon=1)
    aggregator = question.aggregator()
    for view in range(3):
        aggregator.add(question.randomize(7, view=view))
    estimate = aggregator.estimate()

    assert [estimate.quantile_interval(q) for q in (0.1, 0.5, 0.9)] == [(0, 63)] * 3


def test_quantiles_of_many_are_narrow_away_from_the_ends() -> None:
    """The highest quantile is open upwards, whatever was seen; the median is not."""
    estimate = loud(Range(64, epsilon=12), np.arange(40_000) % 32)

    assert estimate.quantile_interval(1.0)[1] == 63
    low, high = (int(str(end)) for end in estimate.quantile_interval(0.5))
    assert 13 <= low <= 16 <= high <= 18


def test_a_quantile_at_the_end_of_the_line_is_no_point() -> None:
    """That everybody is at or below the last cell is certain, but not that they are at it."""
    estimate = loud(Range(64, epsilon=8), [0] * 100 + [63] * 100)

    assert estimate.quantile(0.55) == 63
    low, high = estimate.quantile_interval(0.55)
    assert int(str(low)) < 63 == high


def test_nobody_in_order_has_no_quantiles() -> None:
    """Everybody is null: the interval is the line."""
    estimate = loud(Range(Integer(1, 6), epsilon=12), [None] * 1_000)

    assert estimate.quantile_interval(0.5) == (1, 6)


def test_special_cells_are_in_no_range() -> None:
    """What is below, above, null or invalid has a cell of its own behind the others."""
    question = Range(Integer(1, 6), epsilon=12)
    estimate = loud(question, [*[3] * 3_000, *[None] * 1_000, *[99] * 1_000])

    assert float(estimate.frequency(1, 6)) == pytest.approx(0.6, abs=0.03)
    assert float(estimate.special("null")) == pytest.approx(0.2, abs=0.03)
    assert float(estimate.special("above")) == pytest.approx(0.2, abs=0.03)
    assert estimate.quantile(0.9) == 3
    with pytest.raises(InvalidParameter, match="name must be one of"):
        estimate.special("nowhere")


def test_bounds_of_ranges_are_values_of_the_domain() -> None:
    """Bounds beyond the line are those of the line, and a range with nothing in it is empty."""
    estimate = loud(Range(Real(0, 1, step="0.25"), epsilon=12), [0.1] * 2_000 + [0.9] * 2_000)

    assert float(estimate.frequency(-5, 0.3)) == pytest.approx(0.5, abs=0.05)
    assert float(estimate.frequency(7, 9)) == 0.0
    assert float(estimate.frequency(-9, -7)) == 0.0
    with pytest.raises(InvalidParameter, match="low must not be above high"):
        estimate.frequency(0.9, 0.1)
    with pytest.raises(InvalidParameter, match="low must be at most high"):
        loud(Range(8, epsilon=1), [1, 2]).frequency(5, 3)


def test_all_answers_come_from_one_distribution() -> None:
    """Disjoint ranges add up, nothing is below zero, and the whole line is everybody."""
    estimate = loud(Range(100, epsilon=1), np.arange(2_000) % 50)
    parts = [float(estimate.frequency(low, low + 9)) for low in range(0, 100, 10)]

    assert min(parts) >= 0
    assert sum(parts) == pytest.approx(1)
    assert float(estimate.count(0, 99)) == pytest.approx(2_000)
    assert estimate.frequency(0, 99).worst(0.01) == (1.0, 1.0)


def test_answers_have_errors_and_bounds() -> None:
    """More people, less error; guaranteed bounds hold the value and are wider than intervals."""
    few, many = (loud(Range(64, epsilon=1), np.arange(n) % 64).frequency(10, 41) for n in (4_000, 64_000))

    assert 3 < few.error / many.error < 5
    low, high = many.worst(0.05)
    assert low <= many.interval(0.95)[0] <= many.value <= many.interval(0.95)[1] <= high


def test_aggregators_merge_and_survive() -> None:
    """In any order the same counts; the state is bytes; foreign and damaged states are refused."""
    question = Range(20, epsilon=1)
    parts = [question.aggregator() for _ in range(3)]
    for part in parts:
        part.add_many(question.randomize_many(np.arange(50) % 20))
    one = parts[0].merge(parts[1]).merge(parts[2])
    other = parts[2].merge(parts[0].merge(parts[1]))

    assert one.counts.tolist() == other.counts.tolist()
    assert sum(one.people) == one.n == 150
    assert RangeAggregator.from_bytes(question, one.to_bytes()).counts.tolist() == one.counts.tolist()
    state = json.loads(one.to_bytes())
    state["counts"][0] += 1
    with pytest.raises(InvalidState):
        RangeAggregator.from_bytes(question, json.dumps(state).encode())
    with pytest.raises(InvalidData, match="question"):
        one.merge(Range(20, epsilon=2).aggregator())
    with pytest.raises(InvalidData, match="must lie below"):
        one.add_many([question.randomizer.reports])
    with pytest.raises(InvalidData, match="at least one"):
        question.aggregator().estimate()


@pytest.mark.parametrize(
    "question",
    [
        Range(1000, epsilon="1/2", branching=4),
        Range(Category(["a", "b", "c"]), epsilon=1),
        Rectangles({"age": Integer(0, 99), "pages": 30}, epsilon=1),
        Rectangles({"x": 8, "y": 9, "z": 10, "w": 3}, epsilon=1, grid=4),
    ],
    ids=lambda question: question.asks,
)
def test_questions_are_read_as_they_were_written(question: Any) -> None:
    """JSON there and back is the same question, with a digest and a guarantee of any number of looks."""
    read = question_from(json.loads(json.dumps(question.to_json())))

    assert read == question
    assert read.digest == question.digest
    assert question.guarantee.intrusions == UNLIMITED
    assert question.aggregator().guarantee.epsilon == question.epsilon


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"branching": 1}, "branching"),
        ({"branching": 4}, "parts"),
        ({"domain": 9}, "parts"),
        ({"randomizer": {"kind": "mixture", "parts": []}}, "randomizer"),
        ({"randomizer": {"kind": "response", "parts": [1]}}, "randomizer"),
        ({"randomizer": {"parts": []}}, "randomizer"),
        ({"more": 1}, "question"),
    ],
)
def test_what_is_no_question_is_refused(change: dict[str, Any], message: str) -> None:
    """With a typed error that names what is wrong."""
    with pytest.raises(InvalidParameter, match=message):
        question_from({**Range(64, epsilon=1).to_json(), **change})


def test_a_device_answers_a_question_about_ranges(tmp_path: Any) -> None:
    """With its memo and its budget, as any other."""
    device = Device(tmp_path / "state.json", budget=1)
    question = device.verify(json.dumps(Range(64, epsilon=1).to_json()))
    reports = {device.answer(question, 9).value for _ in range(5)}

    aggregator = question.aggregator()
    aggregator.add(device.answer(question, 9))
    assert len(reports) == aggregator.n == 1
    assert device.left == 0


@pytest.mark.parametrize("value", [None, "x", -(10**30), 10**30, float("nan"), 3.5, b"\0", [1]])
def test_no_value_raises(value: object) -> None:
    """On a device every value has a report, in every kind of question."""
    for question in (
        Range(16, epsilon=1),
        Range(Integer(0, 9), epsilon=1),
        Rectangles({"x": 4, "y": 4}, epsilon=1),
    ):
        assert 0 <= question.randomize(value) < question.randomizer.reports
    assert 0 <= Rectangles({"x": 4, "y": Integer(0, 3)}, epsilon=1).cell({"x": value, "y": value}) < 32


def test_parameters_out_of_range_are_refused() -> None:
    """Typed errors that name the parameter."""
    with pytest.raises(InvalidParameter, match="branching"):
        Range(16, epsilon=1, branching=65)
    with pytest.raises(InvalidParameter, match="kind"):
        Range(16, epsilon=1, kind="unary")  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="columns"):
        Rectangles({"x": 4}, epsilon=1)
    with pytest.raises(InvalidParameter, match="domain"):
        Rectangles({"x": 1 << 12, "y": 1 << 12}, epsilon=1)
    with pytest.raises(InvalidParameter, match="values must have the columns"):
        Rectangles({"x": 4, "y": 4}, epsilon=1).randomize_many({"x": [1]})
    with pytest.raises(InvalidData, match="one length"):
        Rectangles({"x": 4, "y": 4}, epsilon=1).randomize_many({"x": [1], "y": [1, 2]})
    for q in (1.5, -0.1, "half", None, float("nan")):
        with pytest.raises(InvalidParameter, match="q must"):
            loud(Range(16, epsilon=1), [1, 2]).quantile(q)


def test_boxes_of_two_columns() -> None:
    """Boxes, sides and the whole agree with each other and with the data."""
    rows = {"x": np.arange(20_000) % 8, "y": np.arange(20_000) % 8 // 2 + 1}
    estimate = loud(Rectangles({"x": 8, "y": 6}, epsilon=12), rows)

    assert float(estimate.frequency({"x": (0, 3), "y": (1, 2)})) == pytest.approx(0.5, abs=0.02)
    assert float(estimate.frequency({"x": (0, 3), "y": (3, 4)})) == pytest.approx(0.0, abs=0.02)
    assert float(estimate.frequency({"y": (1, 1)})) == pytest.approx(0.25, abs=0.02)
    assert float(estimate.frequency({})) == 1.0
    assert estimate.column("x").sum() == pytest.approx(1)
    whole, side = estimate.frequency({"x": (2, 5), "y": (0, 5)}), estimate.frequency({"x": (2, 5)})
    assert whole.value == pytest.approx(side.value)
    assert estimate.count({"x": (0, 3)}).value == pytest.approx(
        estimate.n * estimate.frequency({"x": (0, 3)}).value
    )
    low, high = estimate.frequency({"x": (0, 3), "y": (1, 2)}).worst()
    assert low <= 0.5 <= high


def test_boxes_of_three_columns() -> None:
    """Two columns from grids and sides; three from every two of them."""
    places = np.arange(60_000)
    rows = {"x": places % 32, "y": places % 32, "z": places // 32 % 4}
    question = Rectangles({"x": 32, "y": 32, "z": 4}, epsilon=12, grid=8)
    estimate = loud(question, rows)

    assert float(estimate.frequency({"x": (0, 11), "y": (0, 11)})) == pytest.approx(12 / 32, abs=0.03)
    assert float(estimate.frequency({"x": (0, 15), "y": (0, 15), "z": (1, 1)})) == pytest.approx(
        1 / 8, abs=0.02
    )
    for (one, other), table in estimate._pairs.items():
        assert table.sum(axis=1) == pytest.approx(estimate._block_sums(one))
        assert table.sum(axis=0) == pytest.approx(estimate._block_sums(other))
    low, high = estimate.frequency({"x": (0, 15), "y": (0, 15), "z": (1, 1)}).worst()
    assert low <= 1 / 8 <= high
    with pytest.raises(InvalidParameter, match="column must be one of"):
        estimate.frequency({"w": (0, 1)})
    with pytest.raises(InvalidParameter, match="two ends"):
        estimate.frequency({"x": 3})


def test_raking_and_joining_keep_what_they_are_given() -> None:
    """Sums of rows and columns; and shares of two sides at once, also where they exclude each other."""
    rows, columns = np.array([0.5, 0.5]), np.array([0.2, 0.3, 0.5])
    fitted = rake_table(np.array([[0.4, 0, 0], [0.1, 0.2, 0.3]]), rows, columns)

    assert fitted.sum(axis=0) == pytest.approx(columns)
    assert fitted.sum(axis=1) == pytest.approx(rows)
    sides = np.array([0.5, 0.5, 0.4])
    assert joint_share(sides, {(0, 1): 0.5, (0, 2): 0.3, (1, 2): 0.3}) == pytest.approx(0.3, abs=1e-3)
    assert joint_share(sides, {(0, 1): 0.0, (0, 2): 0.2, (1, 2): 0.2}) == pytest.approx(0.0)


def test_views_without_reports_say_nothing() -> None:
    """One report is about one level; cells below it are unknown, and the answer says so."""
    question = Range(16, epsilon=Fraction(8))
    aggregator = question.aggregator()
    aggregator.add(question.randomize(7, view=0))
    estimate = aggregator.estimate()

    assert estimate.frequency(7, 7).interval(0.95) == (0.0, 1.0)
    assert estimate.values.sum() == pytest.approx(1)
