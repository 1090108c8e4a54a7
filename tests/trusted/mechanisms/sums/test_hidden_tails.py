"""Sums, means and deviations are honest about values that noise hides: intervals hold the true ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from partita.domain import Integer
from partita.domain.axis import Axis
from partita.public.boxes.base import BoxTerm
from partita.public.sums.base import ValueLine
from partita.public.sums.knots import Tops
from partita.public.sums.level_trees import Controls
from partita.public.sums.tails import limit_rows, measured_thinning, weigh_tail
from partita.testing import EndlessTape, tape_noise
from partita.trusted.mechanisms.sums import LevelTrees, LogTree
from partita.trusted.secret import Points

KEYS, ROWS = 12, 6_000
FAR = Integer(0, 2**32 - 1)
SIGNED = Integer(-(10**9), 10**9)
FAMILIES: dict[str, Callable[[np.random.Generator], Any]] = {
    "lognormal": lambda random: np.exp(random.normal(8, 2, ROWS)),
    "pareto": lambda random: 1_000 * (1 + random.pareto(1.5, ROWS)),
    "few huge": lambda random: np.where(random.random(ROWS) < 0.01, np.exp(random.normal(14, 1, ROWS)), 0),
    "uniform": lambda random: random.uniform(0, 100_000, ROWS),
}


def _by_key(values: Any, keys: Any, value: Integer, tape: object, **options: Any) -> Any:
    rows = np.stack([keys, values - int(value.low) + 1], axis=1)
    points = Points.from_rows(rows, axes=[Axis(size=KEYS), Axis.of(value)])
    mechanism = LevelTrees(keys=[Axis(size=KEYS)], value=value, epsilon=1, **options)
    return mechanism.release(points, noise=tape_noise(EndlessTape(tape)))


def _own(values: Any, value: Integer, tape: object) -> Any:
    points = Points.from_rows((values - int(value.low) + 1)[:, None], axes=[Axis.of(value)])
    return LogTree(value=value, epsilon=1).release(points, noise=tape_noise(EndlessTape(tape)))


def _holds(answer: Any, truth: float) -> list[bool]:
    return [low <= truth <= high for low, high in (answer.interval(), answer.worst())]


# --- the arithmetic --------------------------------------------------------------------------------


def test_silent_knots_thin_out_above_the_cap_only() -> None:
    """Up to the cap a knot holds what was seen; the next one no more than the cap; then fewer."""
    limits = limit_rows([4.0, 8.0, 16.0, 32.0], [9.0, 5.0, 7.0], last=(2.0, 1.0), cap=4.0, thinning=0.5)
    assert limits.tolist() == [9.0, 5.0, 2.5, 1.25]


def test_a_tail_is_what_is_expected_or_one_whole_row() -> None:
    """Knots with next to no row are left out; the farthest one that may hold a row does."""
    weights = np.array([10.0, 20.0, 40.0])
    assert weigh_tail(weights, np.array([6.0, 3.0, 0.01]), 0.05) == 120.0
    assert weigh_tail(weights, np.array([0.2, 0.1, 0.06]), 0.05) == 40.0


def test_measured_thinning_stays_within_limits() -> None:
    """A margin for noise, and never so slow that all knots add the same."""
    assert [measured_thinning(rows, 10.0) for rows in (0.0, 2.0, 9.0)] == pytest.approx([0.23, 0.36, 0.5])


# --- answers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_intervals_by_key_hold_the_truth(family: str) -> None:
    """On five tapes, for all keys, some, and one: 93% of intervals, and all guaranteed bounds."""
    likely, certain = [], []
    for tape in range(5):
        random = np.random.default_rng(tape)
        values = np.minimum(FAMILIES[family](random), FAR.high).astype(np.int64)
        keys = random.integers(0, KEYS, ROWS)
        release = _by_key(values, keys, FAR, tape, moments=True)
        for low, high in ((0, KEYS - 1), (2, 6), (9, 9)):
            rows, term = values[(keys >= low) & (keys <= high)], [BoxTerm((low,), (high,))]
            for answer, truth in (
                (release.sum(term), rows.sum()),
                (release.mean(term), rows.mean()),
                (release.std(term), rows.std()),
            ):
                held = _holds(answer, float(truth))
                likely.append(held[0])
                certain.append(held[1])
    assert np.mean(likely) >= 0.93
    assert all(certain)


@pytest.mark.parametrize("family", FAMILIES)
def test_intervals_between_values_hold_the_truth(family: str) -> None:
    """The same for sums, means and deviations of values from a bound up."""
    likely, certain = [], []
    for tape in range(5):
        values = np.minimum(FAMILIES[family](np.random.default_rng(tape)), FAR.high).astype(np.int64)
        release = _own(values, FAR, tape)
        for low in (0, 3_000):
            rows, term = values[values >= low], [BoxTerm((low + 1,), (FAR.size,))]
            for answer, truth in (
                (release.sum(term), rows.sum()),
                (release.mean(term), rows.mean()),
                (release.std(term), rows.std()),
            ):
                held = _holds(answer, float(truth))
                likely.append(held[0])
                certain.append(held[1])
    assert np.mean(likely) >= 0.93
    assert all(certain)


@pytest.mark.parametrize("tape", range(4))
def test_both_sides_of_zero_are_hidden(tape: int) -> None:
    """Heavy tails below zero and above it: neither end of an interval is cut off."""
    random = np.random.default_rng(tape)
    values = (np.exp(random.normal(7, 1.5, ROWS)) * random.choice([-1, 1], ROWS)).astype(np.int64)
    keys = np.arange(ROWS) % KEYS
    release = _by_key(values, keys, SIGNED, tape)
    answer = release.sum([release.everything])

    assert answer.hidden[0] < 0.0 < answer.hidden[1]
    assert _holds(answer, float(values.sum())) == [True, True]
    assert _holds(release.mean([release.everything]), float(values.mean())) == [True, True]
    own = _own(values, SIGNED, tape)
    assert _holds(own.sum([own.everything]), float(values.sum())) == [True, True]


def test_a_difference_is_hidden_both_ways() -> None:
    """Rows that are taken away may hide a tail as well."""
    random = np.random.default_rng(3)
    values, keys = np.exp(random.normal(8, 2, ROWS)).astype(np.int64), np.arange(ROWS) % KEYS
    answer = _by_key(values, keys, FAR, 3).sum([BoxTerm((0,), (5,)), BoxTerm((6,), (11,), -1)])
    truth = float(values[keys < 6].sum() - values[keys >= 6].sum())

    assert answer.hidden[0] == -answer.hidden[1] < 0.0
    assert _holds(answer, truth) == [True, True]


@pytest.mark.parametrize("rows", [0, 4])
def test_nothing_is_zero_without_an_error(rows: int) -> None:
    """Where nothing is covered, a sum is below an end; it is never 0 with an error of 0."""
    values = np.full(rows, 70_000)
    by_key, own = _by_key(values, values % KEYS, FAR, 1), _own(values, FAR, 1)
    for release in (by_key, own):
        answer = release.sum([release.everything])
        assert answer.error > 0.0
        assert answer.interval()[0] < answer.interval()[1]
        assert str(answer).startswith("below ")
        assert "0 ± 0" not in repr(answer)


def test_the_first_line_says_what_is_assumed() -> None:
    """A sum begins with what is certain; means and deviations give their intervals; all name the tail."""
    random = np.random.default_rng(0)
    values, keys = np.exp(random.normal(8, 2, ROWS)).astype(np.int64), np.arange(ROWS) % KEYS
    release = _by_key(values, keys, FAR, 0, moments=True)
    everything = [release.everything]

    assert str(release.sum(everything)).startswith("at least ")
    for answer in (release.sum(everything), release.mean(everything), release.std(everything)):
        assert ") if the tail thins out, covers values up to " in str(answer)
        assert "\n" not in str(answer)


def test_a_tail_that_does_not_thin_out_is_not_assumed_to() -> None:
    """Fifty rows far beyond the others are seen: then the interval is what holds for any data."""
    values, keys = np.r_[np.full(5_000, 50), np.full(50, 5_000)], np.arange(5_050) % KEYS
    release = _by_key(values, keys, Integer(0, 10_000), 2)
    answer, mean = release.sum([release.everything]), release.mean([release.everything])

    assert answer.interval()[1] == answer.worst()[1] > values.sum()
    assert mean.interval() == mean.worst()
    assert "thins out" not in str(answer) + str(mean)


def test_a_higher_confidence_hides_more() -> None:
    """An interval of 99% holds that of 95%, on both sides."""
    random = np.random.default_rng(1)
    values, keys = np.exp(random.normal(8, 1, ROWS)).astype(np.int64), np.arange(ROWS) % KEYS
    release = _by_key(values, keys, FAR, 1)
    for answer in (release.sum([release.everything]), release.mean([release.everything])):
        narrow, wide = answer.interval(0.95), answer.interval(0.99)
        assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_rows_below_the_bound_place_no_cap() -> None:
    """Half of the rows lie below a bound of 0: sums are those of the others, and their intervals hold."""
    random, held = np.random.default_rng(0), 0
    values, keys = random.integers(-1_000, 1_001, 3_000), np.arange(3_000) % KEYS
    value = Integer(0, 10**9)
    rows = np.stack([keys, np.maximum(values + 1, 0)], axis=1)
    points = Points.from_rows(rows, axes=[Axis(size=KEYS), Axis.of(value)])
    mechanism = LevelTrees(keys=[Axis(size=KEYS)], value=value, epsilon="1/2", moments=True)
    truth = float(np.maximum(values, 0).sum())
    for tape in range(20):
        release = mechanism.release(points, noise=tape_noise(EndlessTape(tape)))
        held += _holds(release.sum([release.everything]), truth)[0]
        assert release.controls.tops.seen[0] != 1
    assert held >= 18


def test_rows_that_pile_up_past_the_cap_contradict_a_tail_that_thins_out() -> None:
    """A cap right below all values: the last knot holds them, and nothing is said about what lies beyond."""
    values, keys = np.full(3_000, 701, np.uint64), np.arange(3_000) % KEYS
    rows = np.ones(3_000, np.int64)
    near = Controls(ValueLine.of(FAR), Tops(4, None, (1, None)), 1)
    masses = near.summed(keys, values, rows, KEYS)
    assert not near.silence(0, near.whole(0), *_flat(masses, near)).thins
    spread = near.summed(keys, np.full(3_000, 2, np.uint64), rows, KEYS)
    assert near.silence(0, near.whole(0), *_flat(spread, near)).thins


def _flat(masses: Any, controls: Any) -> tuple[Any, Any]:
    """Exact rows of each control over all keys, with a deviation of one row."""
    rows = masses.sum(axis=1).astype(np.float64) / controls.unit
    return rows, np.ones_like(rows)


@pytest.mark.parametrize("moments", [False, True])
def test_a_key_without_rows_among_zeros_is_not_zero_for_certain(moments: bool) -> None:
    """Of a column of zeros a key with no row has a sum of no width only if a row there were impossible."""
    keys = np.arange(3_000) % (KEYS - 1)
    for tape in range(6):
        release = _by_key(np.zeros(3_000, np.int64), keys, FAR, tape, moments=moments)
        answer = release.sum([BoxTerm((KEYS - 1,), (KEYS - 1,))])
        assert answer.error > 0.0
        assert answer.interval()[0] == 0.0 < answer.interval()[1]


def test_a_range_far_from_all_values_is_not_zero_for_certain() -> None:
    """Far below all values there may be a row: the sum has an error, and says what it assumes."""
    release = _own(np.full(3_000, 1_000), SIGNED, 5)
    answer = release.sum([BoxTerm((1,), (501,))])

    assert answer.error > 0.0
    assert answer.interval()[0] <= -(10**9) + 500
    assert "0 ± 0" not in str(answer)


# --- special cells -----------------------------------------------------------------------------------


def test_special_cells_of_data_without_any_are_zero() -> None:
    """Many zeros and a heavy tail by 120 keys: intervals of 95% hold 0 in nine of ten, and errors cancel."""
    random, value, key = np.random.default_rng(8), Integer(0, 10**9), Axis.of(Integer(0, 120))
    values = np.where(random.random(20_000) < 0.6, 0, np.exp(random.normal(7, 2, 20_000))).astype(np.int64)
    rows = np.stack([random.integers(1, 101, values.size), values + 1], axis=1)
    by_key = Points.from_rows(rows, axes=[key, Axis.of(value)])
    own = Points.from_rows(rows[:, 1:], axes=[Axis.of(value)])
    for mechanism, points in (
        (LevelTrees(keys=[key], value=value, epsilon="1/2"), by_key),
        (LevelTrees(keys=[], value=value, epsilon="1/2", moments=True), own),
        (LogTree(value=value, epsilon="1/2"), own),
    ):
        found = [
            mechanism.release(points, noise=tape_noise(EndlessTape(tape))).specials for tape in range(30)
        ]
        for name in ("below", "above", "invalid", "null"):
            answers = [each[name] for each in found]
            held = [low <= 0.0 <= high for low, high in (answer.interval() for answer in answers)]
            assert sum(held) >= 26
            assert abs(np.mean([each.value for each in answers])) <= 3 * answers[0].error / np.sqrt(30)
