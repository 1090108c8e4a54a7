"""What all classical releases along an axis have in common: one question, many questions, curves, parts."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import partita as pt
from partita import Histogram, InvalidParameter, InvalidRelease
from partita.public.axis.base import AxisRelease, Parts, Term
from partita.public.bounds import laplace_variance
from partita.testing import EndlessTape, ZeroNoise, check_mechanism, tape_noise
from partita.trusted.mechanisms.catalogue import axis_mechanisms

SIZE = 11
COUNTS = [(7 * i) % 5 + 40 * (i == 6) for i in range(SIZE)]
RANGES = [(low, high) for low in range(SIZE) for high in range(low, SIZE)]

Made = Callable[..., Any]
MECHANISMS: dict[str, Made] = {
    "laplace": pt.Laplace,
    "thresholds": pt.Thresholds,
    "histogram": pt.HistogramCounts,
    "tree": pt.Tree,
    "rootless": lambda **given: pt.Tree(branching=3, root=False, **given),
    "weighted": lambda **given: pt.Tree(branching=4, weights=(1, "1/2", 5), **given),
    "raw": lambda **given: pt.Tree(consistent=False, **given),
    "raw, weighted": lambda **given: pt.Tree(branching=4, weights=(1, "1/2", 5), consistent=False, **given),
    "intervals-paper": pt.PaperIntervals,
}
EXACT = [name for name in MECHANISMS if name != "intervals-paper"]


def released(name: str, seed: object = 0, epsilon: object = 1) -> Any:
    mechanism = MECHANISMS[name](size=SIZE, epsilon=epsilon)
    return mechanism.release(Histogram.dense(COUNTS), noise=tape_noise(EndlessTape((name, seed))))


def bounds(ranges: list[tuple[int, int]]) -> tuple[Any, Any]:
    lows, highs = np.array(ranges, dtype=np.uint64).T
    return lows, highs


@pytest.mark.parametrize(
    "mechanism", [pt.HistogramCounts, pt.Laplace, pt.PaperIntervals, pt.Thresholds, pt.Tree]
)
def test_each_mechanism_keeps_the_rules(mechanism: type[Any]) -> None:
    """The suite's checks pass, the name leads to the class, and the release is of the kind of that name."""
    check_mechanism(mechanism)
    kind = mechanism(size=3, epsilon=1).release(Histogram.dense([1, 2, 3])).kind

    assert axis_mechanisms()[mechanism.name] is mechanism
    assert kind == mechanism.name


@pytest.mark.parametrize("name", EXACT)
def test_without_noise_every_range_is_exact(name: str) -> None:
    """Zero noise gives the sum of the cells, one by one and all at once, and the exact curve."""
    release = MECHANISMS[name](size=SIZE, epsilon=1).release(Histogram.dense(COUNTS), noise=ZeroNoise())
    expected = [sum(COUNTS[low : high + 1]) for low, high in RANGES]

    assert [float(release.count(low, high)) for low, high in RANGES] == expected
    assert release.counts(*bounds(RANGES)).tolist() == expected
    assert release.curve.between(*bounds(RANGES)).tolist() == expected


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("epsilon", ["1/100", 3])
def test_many_questions_are_answered_as_one_by_one(name: str, epsilon: object) -> None:
    """`counts` and `errors` are the values and standard errors of `answer`."""
    release = released(name, epsilon=epsilon)
    answers = [release.answer(Term(low, high)) for low, high in RANGES]

    assert release.counts(*bounds(RANGES)).tolist() == [answer.value for answer in answers]
    assert release.errors(*bounds(RANGES)).tolist() == pytest.approx([answer.error for answer in answers])


@pytest.mark.parametrize("name", MECHANISMS)
def test_signed_terms_are_one_linear_question(name: str) -> None:
    """The value is linear in the terms, and what is added and taken away again leaves no noise."""
    release = released(name)
    for (low, high), (left, right) in product(RANGES[::7], RANGES[::5]):
        difference = release.answer(Term(low, high), Term(left, right, -1))
        apart = release.count(low, high).value - release.count(left, right).value
        assert difference.value == pytest.approx(apart, abs=1e-9)
    nothing = release.answer(Term(2, 8), Term(3, 4), Term(2, 8, -1), Term(3, 4, -1))

    assert nothing.value == 0.0
    if name in EXACT:
        assert nothing.error == 0.0
        assert nothing.worst(0.01) == (0.0, 0.0)


@pytest.mark.parametrize("name", MECHANISMS)
def test_only_plain_counts_are_known_to_be_positive(name: str) -> None:
    """The bounds of a count start at zero; those of a difference may lie below."""
    release = released(name, epsilon="1/1000")

    assert release.count(0, 3).worst(0.05)[0] >= 0.0
    assert release.answer(Term(0, 3), Term(5, 9, -1)).worst(0.05)[0] < 0.0
    assert release.answer().worst(0.05) == (0.0, 0.0)


VARIANCES: list[tuple[str, list[Term], Callable[[Any], float]]] = [
    ("histogram", [Term(0, 5), Term(3, 9, -1)], lambda r: 7 * laplace_variance(r.scale)),
    ("histogram", [Term(0, 5), Term(3, 9)], lambda r: (7 + 3 * 4) * laplace_variance(r.scale)),
    ("thresholds", [Term(2, 5), Term(6, 9)], lambda r: 2 * laplace_variance(r.scale)),
    ("thresholds", [Term(2, 5), Term(2, 7, -1)], lambda r: 2 * laplace_variance(r.scale)),
    ("thresholds", [Term(2, 5), Term(6, 9, -1)], lambda r: (1 + 4 + 1) * laplace_variance(r.scale)),
    ("laplace", [Term(2, 5), Term(6, 9)], lambda r: 2 * laplace_variance(r.scale)),
    ("laplace", [Term(2, 5), Term(2, 5)], lambda r: 4 * laplace_variance(r.scale)),
    ("raw", [Term(0, 7), Term(0, 3, -1)], lambda r: 2 * laplace_variance(r.scales[0])),
    ("raw", [Term(0, 5), Term(0, 3, -1)], lambda r: laplace_variance(r.scales[0])),
    (
        "raw, weighted",
        [Term(0, 4), Term(5, 5, -1)],
        lambda r: laplace_variance(r.scales[1]) + 2 * laplace_variance(r.scales[0]),
    ),
]


@pytest.mark.parametrize(("name", "terms", "variance"), VARIANCES)
def test_variances_are_those_of_the_counts_that_are_left(
    name: str, terms: list[Term], variance: Callable[[Any], float]
) -> None:
    """A count used with both signs cancels, one used twice counts four times."""
    release = released(name)

    assert release.answer(*terms).error == pytest.approx(math.sqrt(variance(release)))


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("seed", range(5))
def test_curves_are_monotone_and_reach_to_the_end(name: str, seed: int) -> None:
    """No piece is negative, and the last end is the last cell."""
    curve = released(name, seed, epsilon="1/20").curve

    assert float(curve.counts.min()) >= 0.0
    assert int(curve.ends[-1]) == SIZE - 1


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("epsilon", ["1/10", "3e-17"])
@pytest.mark.spread(5)
def test_parts_put_together_answer_alike(name: str, epsilon: str) -> None:
    """Whatever is asked, the release from its own parts says the same, with huge noise too."""
    release = released(name, epsilon=epsilon)

    again = type(release).from_parts(release.parts(), release.guarantee)

    assert again.size == SIZE
    assert again.guarantee == release.guarantee
    assert again.counts(*bounds(RANGES)).tolist() == release.counts(*bounds(RANGES)).tolist()
    assert again.errors(*bounds(RANGES)).tolist() == release.errors(*bounds(RANGES)).tolist()
    assert again.error(0.05) == release.error(0.05)
    assert again.count(2, 9).worst(0.05) == release.count(2, 9).worst(0.05)
    assert again.curve.counts.tolist() == release.curve.counts.tolist()
    assert set(again.parts().series) == set(release.parts().series)


def test_a_guarantee_goes_with_the_parts() -> None:
    """The guarantee that the file states is the one of the release."""
    release = pt.Tree(size=3, epsilon=1).release(Histogram.dense([1, 2, 3]))

    assert pt.TreeRelease.from_parts(release.parts(), release.guarantee).guarantee == release.guarantee


def _hostile(parts: Parts) -> list[Parts]:
    """Parts that are wrong in one place each."""
    facts, series = dict(parts.facts), dict(parts.series)
    needed = [name for name in facts if name != "consistent"]  # files of earlier versions lack it
    wrong_facts: list[Any] = [None, True, -1, 0, 2**70, 1.0, "-8", [], ["1"] * 40, {}, "1/0", "x", "9" * 999]
    wrong_arrays: list[Any] = [
        None,
        [1, 2, 3],
        np.zeros(0, dtype=np.int64),
        np.zeros(10**5, dtype=np.int64),
        np.zeros((SIZE, 1), dtype=np.int64),
        np.array(["1"] * SIZE),
    ]
    found = [Parts({**facts, name: wrong}, series) for name in needed for wrong in wrong_facts]
    found += [Parts({**facts, "consistent": wrong}, series) for wrong in wrong_facts if wrong is not True]
    found += [Parts(facts, {**series, name: wrong}) for name in series for wrong in wrong_arrays]
    for name, values in series.items():
        big = np.array([2**200] * values.size, dtype=object)
        changed: list[Any] = [
            values.astype(np.float64),
            values.astype(bool),
            big,
            values[:-1],
            values[::-1][1:],
        ]
        found += [Parts(facts, {**series, name: wrong}) for wrong in changed]
        found.append(Parts(facts, {key: value for key, value in series.items() if key != name}))
    found += [Parts({k: v for k, v in facts.items() if k != name}, series) for name in needed]
    found += [Parts({**facts, "more": 1}, series), Parts(facts, {**series, "more": np.zeros(3, np.int64)})]
    return found


@pytest.mark.parametrize("name", MECHANISMS)
def test_hostile_parts_are_refused(name: str) -> None:
    """Wrong types, sizes, names and scales give an `InvalidRelease` and nothing else."""
    release = released(name)
    for parts in _hostile(release.parts()):
        with pytest.raises(InvalidRelease):
            type(release).from_parts(parts, None)


@pytest.mark.parametrize("edges", [[SIZE], [3, 3, SIZE - 1], [5, 4, SIZE - 1], [SIZE - 2], [2**64 - 1]])
def test_edges_that_are_no_cut_are_refused(edges: list[int]) -> None:
    """Edges increase and end with the last cell."""
    parts = released("intervals-paper").parts()
    hostile = Parts(parts.facts, {**parts.series, "edges": np.array(edges, dtype=np.uint64)})
    with pytest.raises(InvalidRelease):
        pt.PaperIntervalsRelease.from_parts(hostile, None)


@pytest.mark.parametrize("name", MECHANISMS)
def test_extreme_values_in_a_file_do_no_harm(name: str) -> None:
    """Values at the ends of 64 bits and beyond are added up exactly."""
    release = released(name)
    parts = release.parts()
    for value in (2**63 - 1, -(2**63), 2**126):
        dtype = object if value >= 2**63 else np.int64
        series = {
            key: values if key == "edges" else np.array([value] * values.size, dtype=dtype)
            for key, values in parts.series.items()
        }
        extreme = type(release).from_parts(Parts(parts.facts, series), None)
        expected = [extreme.count(low, high).value for low, high in RANGES]

        assert extreme.counts(*bounds(RANGES)).tolist() == pytest.approx(expected)
        assert math.isfinite(extreme.curve.total)
        assert math.isfinite(extreme.error(0.5))


BAD_QUESTIONS: list[tuple[str, Callable[[AxisRelease], object]]] = [
    ("sign", lambda release: release.answer(Term(0, 1, 0))),
    ("sign", lambda release: release.answer(Term(0, 1, 2))),
    ("low", lambda release: release.answer(Term(0, 1), Term(-1, 3))),
    ("high", lambda release: release.count(0, SIZE)),
    ("low", lambda release: release.count(5, 4)),
    ("lows", lambda release: release.counts(*bounds([(0, SIZE)]))),
    ("lows", lambda release: release.errors(*bounds([(4, 3)]))),
    ("lows", lambda release: release.counts(np.array([-1]), np.array([3]))),
    ("highs", lambda release: release.counts(bounds(RANGES)[0], bounds(RANGES[1:])[1])),
    ("beta", lambda release: release.error(0.0)),
    ("beta", lambda release: release.count(0, 1).worst(1.0)),
]


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize(("parameter", "ask"), BAD_QUESTIONS)
def test_bad_questions_are_refused_by_name(
    name: str, parameter: str, ask: Callable[[AxisRelease], object]
) -> None:
    """The error says which parameter it is about."""
    with pytest.raises(InvalidParameter) as refused:
        ask(released(name))

    assert refused.value.parameter == parameter


@given(st.sampled_from(sorted(MECHANISMS)), st.floats(1e-6, 0.5), st.integers(0, 9))
def test_bounds_grow_as_beta_falls(name: str, beta: float, seed: int) -> None:
    """A smaller chance of failure never gives tighter bounds, and the bound for all is no tighter."""
    release = released(name, seed)
    low, high = release.count(2, 7).worst(beta)
    lower, higher = release.count(2, 7).worst(beta / 10)

    assert lower <= low <= high <= higher
    assert release.error(beta) <= release.error(beta / 10)


@pytest.mark.parametrize(
    ("name", "size"),
    [
        *product(("weighted", "raw, weighted"), (16,)),
        *product(sorted(set(MECHANISMS) - {"weighted", "raw, weighted"}), (1, 2, 3, 17)),
    ],
)
def test_predictions_are_those_of_the_releases(name: str, size: int) -> None:
    """The predicted error is the root of the mean variance over all ranges, and numbers are counted."""
    mechanism = MECHANISMS[name](size=size, epsilon="1/3")
    release = mechanism.release(Histogram.from_cells([], size=size), noise=ZeroNoise())
    every = [(low, high) for low in range(size) for high in range(low, size)]
    errors = release.errors(*bounds(every))

    assert mechanism.predicted_error(0) == pytest.approx(math.sqrt(float((errors**2).mean())))
    assert mechanism.predicted_numbers(0) == sum(values.size for values in release.parts().series.values())


@pytest.mark.parametrize(("rows", "size"), [(10**5, 2**64), (10**5, 2**20), (10**4, 2**32)])
def test_the_paper_mode_is_predicted_roughly(rows: int, size: int) -> None:
    """On evenly spread rows the number of segments is right to a tenth, and the error to a quarter."""
    step = size // rows
    cells = np.arange(rows, dtype=np.uint64) * np.uint64(step)
    mechanism = pt.PaperIntervals(size=size, epsilon=1)
    release = mechanism.release(Histogram.from_sorted(cells, size=size), noise=tape_noise(EndlessTape(size)))
    ends = np.sort(EndlessTape(rows).take(4_000).reshape(2, -1) % np.uint64(size - 1), axis=0)

    truth = np.searchsorted(cells, ends[1], side="right") - np.searchsorted(cells, ends[0])
    misses = release.counts(ends[0], ends[1]) - truth

    assert mechanism.predicted_numbers(rows) == pytest.approx(
        sum(values.size for values in release.parts().series.values()), rel=0.1
    )
    assert mechanism.predicted_error(rows) == pytest.approx(math.sqrt((misses**2).mean()), rel=0.25)


def test_very_many_noises_of_several_kinds_are_bounded() -> None:
    """Cells that are used once and cells that are used twice are bounded together, however many."""
    size = 2**18
    mechanism, data = pt.HistogramCounts(size=size, epsilon=1), Histogram.from_cells([], size=size)
    release = mechanism.release(data, noise=tape_noise(EndlessTape("mixed")))

    mixed = release.answer(Term(0, size - 1), Term(5, size // 2))
    low, high = mixed.worst(0.05)

    assert mixed.error == pytest.approx(math.sqrt((2**17 + 4 + 4 * (2**17 - 4)) * release.line.variance))
    assert low == 0.0
    assert mixed.value + 2 * mixed.error < high < mixed.value + 3 * mixed.error
