"""Aggregators: exact counts in any order, honest errors, nothing that does not belong."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from functools import reduce
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from partita.errors import InvalidData, InvalidParameter, InvalidState
from partita.local.aggregate import Frequencies, mean_bounds
from partita.local.columns import count_supports, hyperplane_hits
from partita.local.device import Device, Report
from partita.local.encodings import OneBit, Piecewise, ProjectiveResponse
from partita.local.question import FREQUENCY_KINDS, Frequency, Mean
from partita.testing import EndlessTape

QUESTIONS: list[Any] = [
    *(Frequency(20, epsilon=1, kind=kind) for kind in FREQUENCY_KINDS),  # type: ignore[arg-type]
    Mean(0, 24, epsilon=1),
    Mean(0, 24, epsilon=1, kind="piecewise"),
]
each_question = pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: q.randomizer.kind)


def reports(question: Any, n: int = 60, seed: int = 1) -> Any:
    return question.randomize_many(np.arange(n) % 20, words=EndlessTape(seed))


def collected(question: Any, some: Any) -> Any:
    aggregator = question.aggregator()
    aggregator.add_many(some)
    return aggregator


@each_question
def test_any_order_and_grouping_gives_the_same(question: Any) -> None:
    """Three parts merged in every order, in both groupings, and all at once, in bytes."""
    whole = reports(question)
    parts = [collected(question, part) for part in (whole[:10], whole[10:35], whole[35:])]
    expected = collected(question, whole).to_bytes()

    assert {reduce(lambda a, b: a.merge(b), order).to_bytes() for order in permutations(parts)} == {expected}
    assert parts[0].merge(parts[1].merge(parts[2])).to_bytes() == expected


@each_question
def test_one_by_one_is_all_at_once(question: Any) -> None:
    """`add` of every report is `add_many` of the column; rows of bytes are numbers, lowest byte first."""
    column = reports(question)
    aggregator = question.aggregator()
    for report in column:
        value = report if np.ndim(report) == 0 else int.from_bytes(report.tobytes(), "little")
        aggregator.add(value)

    assert aggregator.to_bytes() == collected(question, column).to_bytes()


@each_question
def test_an_estimate_agrees_with_the_formula(question: Any) -> None:
    """(supporters / n - miss) / (hit - miss) in exact arithmetic; or the mean report, stretched."""
    aggregator = collected(question, reports(question))
    law = question.randomizer
    if isinstance(question, Frequency):
        share = Fraction(int(aggregator.supports()[3]), aggregator.n)
        assert aggregator.estimate().values[3] == pytest.approx(
            float((share - law.miss) / (law.hit - law.miss))
        )
    else:
        mean = Fraction(int(aggregator.counts[0]), aggregator.n)
        cell = (mean - law.offset) / law.slope
        assert float(aggregator.estimate()) == pytest.approx(float(24 * cell / (law.size - 1)))


@each_question
def test_a_state_goes_on_where_it_was(question: Any) -> None:
    """Written, read and continued it is as if nothing had happened."""
    column = reports(question)
    first = collected(question, column[:30])
    again = type(first).from_bytes(question, first.to_bytes())
    again.add_many(column[30:])

    assert again.to_bytes() == collected(question, column).to_bytes()


def _other(question: Any) -> Any:
    return Mean(0, 25, epsilon=1) if isinstance(question, Mean) else Frequency(20, epsilon="1.01")


@each_question
def test_reports_to_another_question_are_refused(question: Any, tmp_path: Any) -> None:
    """One by one, merged, and as a state."""
    aggregator, other = question.aggregator(), _other(question).aggregator()
    stray = Device(tmp_path / "device", budget=9).answer(_other(question), 3)

    with pytest.raises(InvalidData, match="question of this aggregator"):
        aggregator.add(stray)
    with pytest.raises(InvalidData, match="question of this aggregator"):
        aggregator.merge(other)
    with pytest.raises(InvalidState, match="same question"):
        type(aggregator).from_bytes(question, other.to_bytes())
    assert aggregator.n == 0


def test_aggregators_of_different_kinds_do_not_merge() -> None:
    """A mean is no frequency."""
    with pytest.raises(InvalidParameter, match="same kind"):
        QUESTIONS[0].aggregator().merge(QUESTIONS[-1].aggregator())


@each_question
def test_a_malformed_column_counts_nothing(question: Any) -> None:
    """Out of range, of a wrong type or shape: refused whole, though most of it may be right."""
    aggregator = question.aggregator()
    law = question.randomizer
    rows = law.kind == "unary"
    wrong: list[Any] = [[0.5], "text", [None], np.zeros((2, 2), np.int64), 5]
    wrong += [[[0, 0, 255]]] if rows else [[0, law.reports], [0, -1]]

    for column in wrong:
        with pytest.raises(InvalidData, match="reports must"):
            aggregator.add_many(column)
    for report in (law.reports, -1, True, "1", None):
        with pytest.raises(InvalidData, match="report must"):
            aggregator.add(report)
    assert aggregator.n == 0
    assert not aggregator.counts.any()


def test_spare_bits_of_a_row_are_refused() -> None:
    """Twenty cells fill two bytes and a half; the other half is zero."""
    aggregator = Frequency(20, epsilon=1, kind="unary").aggregator()

    with pytest.raises(InvalidData, match="20 bits"):
        aggregator.add_many(np.array([[0, 0, 16]], dtype=np.uint8))


def test_a_report_is_counted_once() -> None:
    """A second report under an id is refused: in a later call, in the same call, and in a merge."""
    question = QUESTIONS[0]
    aggregator, other = question.aggregator(), question.aggregator()
    aggregator.add(1, id="a")
    other.add_many(np.array([1, 2]), ids=["a", "b"])

    with pytest.raises(InvalidData, match="counted before"):
        aggregator.add(2, id="a")
    with pytest.raises(InvalidData, match="counted before"):
        aggregator.add_many([1, 1], ids=["c", "c"])
    with pytest.raises(InvalidData, match="both aggregators"):
        aggregator.merge(other)
    wrong: list[Any] = [["d"], [[], {}], ["d", ""], ["d", 7]]
    for ids in wrong:
        with pytest.raises(InvalidData, match="one for each report"):
            aggregator.add_many([1, 2], ids=ids)
    assert aggregator.n == 1


def test_a_device_and_an_aggregator_understand_each_other(tmp_path: Any) -> None:
    """A report by JSON is counted, and the same report a second time is not."""
    question = QUESTIONS[1]
    report = Device(tmp_path / "device", budget=1).answer(question, 3)
    aggregator = question.aggregator()
    aggregator.add(Report.from_json(report.to_json()))

    with pytest.raises(InvalidData, match="counted before"):
        aggregator.add(report)
    assert aggregator.n == 1


def _changed(change: Callable[[dict[str, Any]], None]) -> bytes:
    state = json.loads(collected(QUESTIONS[0], [1, 2, 3]).to_bytes())
    change(state)
    return json.dumps(state).encode()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[" * 100_000,
        _changed(lambda s: s.update(version=2)),
        _changed(lambda s: s.update(reports=4)),
        _changed(lambda s: s.update(reports=-3)),
        _changed(lambda s: s.update(reports="3")),
        _changed(lambda s: s.update(counts=s["counts"][:-1])),
        _changed(lambda s: s["counts"].__setitem__(0, -1)),
        _changed(lambda s: s["counts"].__setitem__(0, 0.0)),
        _changed(lambda s: s["counts"].__setitem__(0, 10**300)),
        _changed(lambda s: s.update(ids=["a", "b", "c", "d"])),
        _changed(lambda s: s.update(ids=[1])),
        _changed(lambda s: s.update(ids=["a", "a"])),
        _changed(lambda s: s.pop("ids")),
    ],
)
def test_a_damaged_state_is_refused(data: bytes) -> None:
    """Typed, whatever is wrong with it."""
    with pytest.raises(InvalidState):
        type(QUESTIONS[0].aggregator()).from_bytes(QUESTIONS[0], data)


def test_sums_that_no_reports_have_are_refused() -> None:
    """The state of a mean: a sum of squares below the square of the sum, and a sum out of range."""
    question = Mean(0, 24, epsilon=1, kind="piecewise")
    good = json.loads(collected(question, reports(question)).to_bytes())

    for counts in ([100, 1], [10**12, 10**12], [5, 4]):
        with pytest.raises(InvalidState):
            type(question.aggregator()).from_bytes(question, json.dumps({**good, "counts": counts}).encode())


def test_nothing_is_estimated_from_nothing() -> None:
    """Zero reports have no frequency."""
    for question in QUESTIONS:
        with pytest.raises(InvalidData, match="at least one"):
            question.aggregator().estimate()


@pytest.mark.parametrize(("field", "dimension"), [(2, 5), (3, 4), (5, 3), (13, 2)])
def test_hits_are_counted_exactly(field: int, dimension: int) -> None:
    """The transform gives what counting the points of every hyperplane gives, also for 10^15 reports."""
    points = (field**dimension - 1) // (field - 1)
    law = ProjectiveResponse(size=points, epsilon=Fraction(1), field=field, dimension=dimension)
    words = EndlessTape(field).take(points)

    for counts in (words % np.uint64(50), words >> np.uint64(12)):
        exact = counts.astype(np.int64)
        slow = [int(exact[[not law.meets(x, y) for y in range(points)]].sum()) for x in range(points)]

        assert hyperplane_hits(law, exact).tolist() == slow
        assert count_supports(law, exact).tolist() == slow


@pytest.mark.parametrize("n", [10, 1000])
def test_guaranteed_bounds_are_those_of_the_binomial_law(n: int) -> None:
    """For equal chances the exact binomial tail beyond each bound is at most what is allowed."""
    allowed = 0.01
    shares = np.array([0.0, 0.2, 0.5, 1.0])

    for share, low, high in zip(shares, *mean_bounds(shares, n, math.log(1 / allowed)), strict=True):
        k = round(share * n)
        up = sum(math.comb(n, i) * low**i * (1 - low) ** (n - i) for i in range(k, n + 1)) if k else 0
        down = sum(math.comb(n, i) * high**i * (1 - high) ** (n - i) for i in range(k + 1)) if k < n else 0
        assert max(up, down) <= allowed
        assert 0 <= low <= share <= high <= 1


def test_heavy_hitters_are_listed_by_frequency() -> None:
    """The most frequent first, none below the threshold, at most `top`, each above its bound."""
    question = Frequency(1000, epsilon=2)
    aggregator = question.aggregator()
    cells = np.repeat([5, 700, 3], [50_000, 30_000, 500])
    aggregator.add_many(question.randomize_many(cells, words=EndlessTape(3)))

    found = aggregator.estimate().heavy_hitters(threshold=0.1)

    assert [(each.cell, each.label) for each in found] == [(5, "5"), (700, "700")]
    assert all(0.1 < each.at_least < each.frequency for each in found)
    assert aggregator.estimate().heavy_hitters(top=1)[0].cell == 5
    with pytest.raises(InvalidParameter, match="threshold"):
        aggregator.estimate().heavy_hitters(threshold=1)


def test_an_answer_is_one_entry_of_all() -> None:
    """Value, error and bounds of a cell are those of the arrays."""
    estimate = collected(QUESTIONS[1], reports(QUESTIONS[1])).estimate()

    answer = estimate[4]

    assert (answer.value, answer.error) == (estimate.values[4], estimate.error[4])
    assert answer.worst(0.1)[1] == pytest.approx(max(estimate.worst(0.1)[1][4], estimate.values[4]))
    assert estimate.counts[4] == estimate.values[4] * 60
    with pytest.raises(InvalidParameter, match="cell"):
        estimate[20]


@pytest.mark.parametrize("n", [2, 10])
@pytest.mark.parametrize("epsilon", ["0.5", 1, 4])
def test_intervals_of_few_bits_cover(n: int, epsilon: object) -> None:
    """By the exact law of the sum, for numbers all over the range: at least 88%, where it was from 3% up.

    A sum of few bits has few values, so no interval holds in just 95%.
    """
    question = Mean(0, 1, epsilon=epsilon, kind="one-bit")
    answers = [collected(question, [1] * ones + [0] * (n - ones)).estimate() for ones in range(n + 1)]
    for number in (0, 0.2, 0.45, 0.5, 1):
        chance = float(question.randomizer.pmf(question.cell(number))[1])
        covered = sum(
            math.comb(n, ones) * chance**ones * (1 - chance) ** (n - ones)
            for ones, answer in enumerate(answers)
            if answer.interval(0.95)[0] <= number <= answer.interval(0.95)[1]
        )
        assert covered >= 0.88


@pytest.mark.parametrize("n", [1, 6, 40])
@pytest.mark.parametrize("kind", ["response", "unary", "hadamard"])
@pytest.mark.parametrize("epsilon", [1, 4])
def test_intervals_of_few_reports_cover(n: int, kind: Any, epsilon: object) -> None:
    """By the exact law of the supports, for shares all over the range: at least 93%, and never a point."""
    question = Frequency(64, epsilon=epsilon, kind=kind)
    law = question.randomizer
    low, high = Frequencies(question, n, np.arange(n + 1)).interval(0.95)

    assert (low < high).all()
    for holders in {0, n // 6, n // 2, n}:
        chances = np.convolve(_binomial(holders, law.hit), _binomial(n - holders, law.miss))
        assert chances[(low <= holders / n) & (holders / n <= high)].sum() >= 0.93


def _binomial(n: int, chance: Fraction) -> Any:
    p = float(chance)
    return np.array([math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)])


def test_an_interval_outside_of_shares_opens_to_the_nearest_end() -> None:
    """Estimates far below 0 or above 1 keep an end and some width, and little of it with many reports."""
    question = Frequency(2, epsilon=1, kind="response")
    for n, most in ((6, 1.0), (100_000, 1e-3)):
        estimate = Frequencies(question, n, np.array([0, n]))
        for low, high in (estimate.interval(0.95), estimate.worst(0.05)):
            assert (low[0], high[1]) == (0, 1)
            assert 0 < high[0] <= most
            assert 1 - most <= low[1] < 1


def test_the_least_variance_is_that_of_the_law() -> None:
    """Over all numbers, by the exact law of a report; the largest one too."""
    for law in (Piecewise(size=9, epsilon=Fraction(2)), OneBit(size=9, epsilon=Fraction(2))):
        variances = [
            sum(p * y * y for y, p in law.pmf(x).items()) - sum(p * y for y, p in law.pmf(x).items()) ** 2
            for x in range(9)
        ]
        assert law.least_variance == pytest.approx(float(min(variances)))
        assert law.largest_variance >= float(max(variances) / (law.slope * 8) ** 2) * (1 - 1e-12)


@pytest.mark.statistics
@pytest.mark.parametrize("kind", ["response", "projective", "hadamard", "unary", "hashing"])
def test_intervals_of_95_percent_cover_93_to_97(kind: Any) -> None:
    """Over 40 samples of 10^5 people with 100 values: a fair interval fails this once in 10^8 runs.

    The 4,000 intervals of a kind are nearly independent; covering has standard deviation 0.0034.
    """
    question = Frequency(100, epsilon=1, kind=kind)
    cells = (np.arange(100_000) ** 2 // 7_919) % 137 % 100
    truth = np.bincount(cells, minlength=100) / cells.size
    covered = []
    for _ in range(40):
        estimate = collected(question, question.randomize_many(cells)).estimate()
        low, high = estimate.interval(0.95)
        covered.append((low <= truth) & (truth <= high))

    assert 0.93 <= np.mean(covered) <= 0.97


@pytest.mark.statistics
@pytest.mark.parametrize("kind", ["one-bit", "piecewise"])
def test_intervals_of_means_of_many_cover_as_said(kind: Any) -> None:
    """In 400 samples of 10^5 people who hold one number between 90% and 99.5% of the intervals hold.

    An interval that holds in 95% fails this less than once in 10^4 runs.
    """
    question = Mean(0, 1, epsilon=1, kind=kind)
    numbers = np.full(100_000, 0.3)
    found = [collected(question, question.randomize_many(numbers)).estimate() for _ in range(400)]

    inside = [answer.interval(0.95)[0] <= 0.3 <= answer.interval(0.95)[1] for answer in found]

    assert 0.90 <= np.mean(inside) <= 0.995


@pytest.mark.statistics
@pytest.mark.parametrize("kind", ["one-bit", "piecewise"])
def test_intervals_of_means_cover(kind: Any) -> None:
    """In 400 samples of 10^4 numbers at least 88% of the intervals hold, and all of the guaranteed bounds.

    An interval that holds in 95% fails this once in 10^8 runs, and so do the bounds, at 10^-12 each.
    """
    question = Mean(0, 1, epsilon=1, kind=kind)
    numbers = np.linspace(0.2, 0.7, 10_000)
    found = [collected(question, question.randomize_many(numbers)).estimate() for _ in range(400)]

    inside = [answer.interval(0.95)[0] <= numbers.mean() <= answer.interval(0.95)[1] for answer in found]
    sure = [answer.worst(1e-12)[0] <= numbers.mean() <= answer.worst(1e-12)[1] for answer in found]

    assert np.mean(inside) >= 0.88
    assert all(sure)


@pytest.mark.statistics
def test_no_cell_is_listed_wrongly() -> None:
    """In 200 samples of people who all hold the first of 500 cells nobody else is listed, at beta 10^-12."""
    question = Frequency(500, epsilon=1)
    for _ in range(200):
        estimate = collected(question, question.randomize_many(np.zeros(2_000, np.int64))).estimate()

        assert [each.cell for each in estimate.heavy_hitters(beta=1e-12)] == [0]
