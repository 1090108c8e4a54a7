"""Questions: every value has a cell, and what is written down is read back, verified."""

from __future__ import annotations

import json
import math
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import partita as pt
from partita.errors import InvalidParameter
from partita.guarantee import UNLIMITED
from partita.local.columns import check_column, domain_cells
from partita.local.question import (
    FREQUENCY_KINDS,
    KINDS,
    Frequency,
    Mean,
    parse_question,
    plain_domain,
    question_from,
    randomizer_from,
    randomizer_kind,
)
from partita.local.randomizer import RandomizedResponse
from partita.testing import EndlessTape

QUESTIONS = [
    *(Frequency(100, epsilon="0.5", kind=kind) for kind in FREQUENCY_KINDS),  # type: ignore[arg-type]
    Frequency(pt.Category(["chrome", "firefox"]), epsilon=1),
    Mean(-1, "2.5", epsilon=1),
    Mean(0, 24, epsilon=4),
]
VALUES = [
    *(3, -7, 10**400, True, 2.5, math.nan, math.inf, -math.inf, Fraction(10**400, 3), np.float32("inf")),
    *("text", None, b"", [1], {}, object(), Decimal("1.5"), Decimal("sNaN"), Decimal("-Infinity"), 1j),
]


@pytest.mark.parametrize("question", QUESTIONS, ids=str)
def test_a_question_is_read_back(question: Any) -> None:
    """As an object and as text: the same question, under the same digest."""
    read = parse_question(json.dumps(question.to_json()))

    assert (read, read.digest) == (question, question.digest)
    assert question_from(question.to_json()) == question


def test_different_questions_have_different_digests() -> None:
    """Nothing can be aggregated under the name of something else."""
    more = [Frequency(101, epsilon="0.5"), Frequency(100, epsilon="0.51"), Mean(-1, "2.6", epsilon=1)]

    assert len({question.digest for question in [*QUESTIONS, *more]}) == len(QUESTIONS) + len(more)


@pytest.mark.parametrize("question", QUESTIONS, ids=str)
def test_no_value_raises(question: Any) -> None:
    """Whatever it is, it has a cell and a report; a column of them too."""
    cells = [question.cell(value) for value in VALUES if not isinstance(value, list | dict)]

    assert all(0 <= cell < question.randomizer.size for cell in cells)
    for value in VALUES:
        question.randomizer.check_report(question.randomizer.randomize(value))


def test_whole_numbers_go_to_the_nearest_cell() -> None:
    """All else goes to the first; one by one and in a column."""
    question = Frequency(10, epsilon=1)
    values = [3, -7, 10**30, np.int8(4), 5.0, 2.5, "text", None]

    expected = [3, 0, 9, 4, 5, 0, 0, 0]

    assert [question.cell(value) for value in values] == expected
    assert question.cells(values).tolist() == expected
    assert question.cells(np.array([-1, 5, 99])).tolist() == [0, 5, 9]
    assert question.cells(np.array([4.0, 4.5, np.nan])).tolist() == [4, 0, 0]


def test_numbers_go_to_the_nearest_step() -> None:
    """Clamped to the bounds; what is no number counts as the middle."""
    question = Mean(0, 10, epsilon=1)
    steps = question.randomizer.size - 1

    found = [question.cell(value) for value in (-5, 0, 2.5, 10, 11, math.inf, -math.inf, math.nan, None)]

    assert found == [0, 0, steps // 4, steps, steps, steps, 0, steps // 2, steps // 2]
    assert question.cells(np.array([-5, 2.5, np.inf, np.nan])).tolist() == [0, steps // 4, steps, steps // 2]
    assert question.cells([None, 10]).tolist() == [steps // 2, steps]


@pytest.mark.parametrize(("low", "high"), [(0, 10), (0, "0.3"), (10**9, 10**9 + 1), (-1, 2)])
def test_a_column_rounds_as_a_device_does(low: Any, high: Any) -> None:
    """At ties and next to them, in floats and in integers: the same step, one by one and in a column."""
    question = Mean(low, high, epsilon=1)
    steps = question.randomizer.size - 1
    places = np.array([0.5, 1.5, 2.5, 1000.5, steps - 0.5, 3.25, 77.75])
    ties = float(question.low) + places / steps * float(question.high - question.low)
    values = np.concatenate(
        [ties, np.nextafter(ties, np.inf), np.nextafter(ties, -np.inf), [low, float(high)]]
    )

    assert question.cells(values).tolist() == [question.cell(value) for value in values.tolist()]
    assert question.cells(np.arange(-3, 12)).tolist() == [question.cell(value) for value in range(-3, 12)]


@pytest.mark.parametrize(("low", "high"), [(0, "1e400"), ("-1e301", 0), (0, "1e-301")])
def test_bounds_that_floats_cannot_hold_are_refused(low: Any, high: Any) -> None:
    """When the question is made, not when a column of numbers comes."""
    with pytest.raises(InvalidParameter, match="10\\^300"):
        Mean(low, high, epsilon=1)
    widest = Mean("-1e300", "1e300", epsilon=1)
    reports = widest.randomize_many(np.array([1e308, -1e308, 0, np.nan]), words=EndlessTape(5))
    assert len(reports) == 4


PLAIN_VALUES = [
    *("a", "b ", "A", "", "7", "007", " 7", "+7.0", "7e0", "7.5", "1e999999999", "-1e99", "1e-99", "0e99999"),
    *(
        "1_0",
        "0x7",
        "inf",
        "-Infinity",
        "nan",
        "sNaN",
        "٣",
        "x" * 500,
        "\ud800",
        "true",
        "0.1",
        "-0",
        "5.",
        ".",
    ),
    *(None, True, False, 0, 7, -7, 10**30, -(10**30), 10**700, 7.0, 7.5, 0.1, 1e23, -0.0, 5e-324, 1e308),
    *(math.nan, math.inf, -math.inf, Decimal("7.00"), Decimal("0.1"), Decimal("NaN"), Decimal("-Infinity")),
    *(Decimal("1e500"), Fraction(7), Fraction(1, 3), Fraction(1, 8), b"a", b"7", b"\xff", bytearray(b"a")),
    *(date(2024, 1, 31), datetime(2024, 1, 31, 5), [1], {}, object(), 1j, memoryview(b"7")),
]
PLAIN_DOMAINS: list[pt.Domain] = [
    pt.Category(["a", "7", "0.1", "true", "2024-01-31", "1/3", "0.125", "0", "-7", "\ufffd", "007"]),
    pt.Category([str(10**23), repr(1e308), str(Fraction(7, 3)), "false"]),
    pt.Integer(-10, 10),
    pt.Integer(10**23 - 10, 10**23 + 10),
]


@pytest.mark.parametrize("domain", PLAIN_DOMAINS, ids=str)
def test_a_plain_domain_finds_the_same_cells(domain: Any) -> None:
    """Without NumPy a device puts every value where a column would."""
    plain = plain_domain(domain.to_spec())

    assert plain.to_spec() == domain.to_spec()
    assert (plain.size, plain.specials) == (domain.size, domain.specials)
    for value in PLAIN_VALUES:
        assert plain.cell(value) == domain_cells(domain, [value])[0], repr(value)[:40]


class _Hostile(str):
    def __str__(self) -> str:
        raise RuntimeError

    def __hash__(self) -> int:
        raise RuntimeError


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"kind": "date", "first": "2024-01-01", "last": "2024-01-31"},
        {"kind": "category", "labels": []},
        {"kind": "category", "labels": ["a", "a"]},
        {"kind": "category", "labels": ["a", 7]},
        {"kind": "category", "labels": ["\ud800"]},
        {"kind": "category", "labels": ["a"], "more": 1},
        {"kind": "integer", "low": "0", "high": "x"},
        {"kind": "integer", "low": "0", "high": "inf"},
        {"kind": "integer", "low": "0.5", "high": "9"},
        {"kind": "integer", "low": 0, "high": 9},
    ],
)
def test_a_domain_that_is_not_plain_is_refused(spec: Any) -> None:
    """Typed, with what to do."""
    with pytest.raises(InvalidParameter, match="install NumPy"):
        plain_domain(spec)
    assert plain_domain({"kind": "category", "labels": ["a", "b"]}).cell(_Hostile("b")) in (1, 3)


def test_special_cells_come_last() -> None:
    """A domain's labels, then what is null and what is other."""
    question = Frequency(pt.Category(["chrome", "firefox"]), epsilon=1)

    assert question.cells(["firefox", "lynx", None, "chrome"]).tolist() == [1, 3, 2, 0]
    assert [question.label(cell) for cell in range(question.size)] == ["chrome", "firefox", "null", "other"]


@pytest.mark.parametrize("epsilon", ["0.5", 1, 2, 3])
def test_auto_takes_the_lower_variance(epsilon: object) -> None:
    """On average over the cells, exactly; at epsilon 1 projective response wins from nine cells on."""
    for size in range(2, 70):
        laws = {
            kind: Frequency(size, epsilon=epsilon, kind=kind).randomizer
            for kind in ("auto", "response", "projective")
        }
        averages = {kind: law.exact_variance(Fraction(1, size)) for kind, law in laws.items()}
        assert averages["auto"] == min(averages.values())
    assert [Frequency(size, epsilon=1).randomizer.kind for size in (8, 9)] == ["response", "projective"]


@pytest.mark.parametrize("epsilon", ["0.5", 1, 2])
def test_projective_response_is_nearly_optimal(epsilon: object) -> None:
    """Its variance is at most 1.03 times 4 e^epsilon / (e^epsilon - 1)^2 for 1,024 cells."""
    question = Frequency(1024, epsilon=epsilon)
    odds = math.exp(question.epsilon)

    assert question.randomizer.variance() <= 1.03 * 4 * odds / (odds - 1) ** 2


def test_the_guarantee_covers_any_number_of_looks() -> None:
    """Local reports are pan-private: the state of an aggregator may be seen as often as one likes."""
    guarantee = Frequency(1024, epsilon=1).aggregator().guarantee

    assert (guarantee.epsilon, guarantee.pure, guarantee.intrusions) == (Fraction(1), True, UNLIMITED)
    assert "any number of looks at the state" in str(guarantee)


@pytest.mark.parametrize("kind", KINDS)
def test_a_randomizer_is_described_completely(kind: str) -> None:
    """Read back it is equal, and a column drawn from the same words is the same."""
    randomizer = randomizer_kind(kind)(size=33, epsilon=Fraction(1))
    again = randomizer_from(json.loads(json.dumps(randomizer.to_json())))
    cells = np.arange(500)

    drawn = [r.randomize_many(cells, words=EndlessTape(1)) for r in (randomizer, again)]

    assert again == randomizer
    assert np.array_equal(*drawn)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [0, 1, 20_000])
def test_a_column_of_any_length_has_as_many_reports(kind: str, n: int) -> None:
    """None, one, and more than a block; all of them reports."""
    randomizer = randomizer_kind(kind)(size=33, epsilon=Fraction(1))
    reports = randomizer.randomize_many(np.arange(n), words=EndlessTape(2))

    assert len(reports) == n
    assert len(check_column(randomizer, reports)) == n


def _hostile() -> list[tuple[str, Any]]:
    good = Frequency(1024, epsilon=1).to_json()
    law = good["randomizer"]
    changes: list[dict[str, Any]] = [
        {"kind": "nothing"},
        {"threshold": str(int(law["threshold"]) + 1)},
        {"threshold": str(int(law["threshold"]) - 1)},
        {"threshold": "0"},
        {"threshold": int(law["threshold"])},
        {"threshold": "9" * 5000},
        {"threshold": None},
        {"epsilon": "0"},
        {"epsilon": "1e999999"},
        {"epsilon": [1]},
        {"size": 10**9},
        {"size": True},
        {"size": "1024"},
        {"field": 4, "dimension": 6},
        {"field": 0, "dimension": 0},
        {"field": 2, "dimension": 3},
        {"field": 3, "dimension": 8},
        {"field": 5, "dimension": 6},
        {"field": 3, "dimension": 10**9},
        {"field": 4093, "dimension": 27},
        {"more": 1},
    ]
    laws = [(str(change), {**good, "randomizer": {**law, **change}}) for change in changes]
    others = [
        {**good, "domain": 1023},
        {**good, "version": 2},
        {**good, "asks": "all"},
        {**good, "asks": []},
        {**good, "asks": {}},
        {**good, "round": 7},
        {**good, "round": "x" * 101},
        {**good, "x": 1},
        [],
        "text",
    ]
    return [
        *laws,
        *((str(other)[:40], other) for other in others),
        ("missing", {"version": 1, "asks": "mean"}),
    ]


@pytest.mark.parametrize(("_", "description"), _hostile(), ids=lambda value: str(value)[:40])
def test_a_hostile_question_is_refused(_: str, description: Any) -> None:
    """Always by the same typed error, in no time, before anything is drawn."""
    with pytest.raises(InvalidParameter):
        question_from(description)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "\xff", '{"version": 1}'])
def test_text_that_is_no_question_is_refused(text: str) -> None:
    """Typed, also where the text nests deeply."""
    with pytest.raises(InvalidParameter):
        parse_question(text)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Frequency(1, epsilon=1),
        lambda: Frequency(1 << 23, epsilon=1),
        lambda: Frequency("ten", epsilon=1),  # type: ignore[arg-type]
        lambda: Frequency(10, epsilon=0),
        lambda: Frequency(10, epsilon=1, kind="best"),  # type: ignore[arg-type]
        lambda: Frequency((1 << 16) + 1, epsilon=1, kind="unary"),
        lambda: Mean(1, 1, epsilon=1),
        lambda: Mean(0, "high", epsilon=1),
        lambda: Mean(0, 1, epsilon=1, kind="response"),  # type: ignore[arg-type]
        lambda: Frequency.of(10, RandomizedResponse(size=9, epsilon=Fraction(1))),
        lambda: Mean.of(0, 1, RandomizedResponse(size=9, epsilon=Fraction(1))),
        lambda: RandomizedResponse(size=1 << 21, epsilon=Fraction(1)).pmf(0),
    ],
)
def test_wrong_parameters_are_named(make: Any) -> None:
    """What cannot be asked is refused when it is made."""
    with pytest.raises(InvalidParameter):
        make()
