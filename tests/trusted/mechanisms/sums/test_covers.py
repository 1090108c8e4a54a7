"""What an answer covers: the words, the function behind them, and that masses add up to exactly that."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from partita.domain import Integer, Real
from partita.domain.axis import Axis
from partita.public.boxes.base import BoxTerm
from partita.public.sums.base import Covers, End, ValueLine
from partita.public.sums.knots import Tops
from partita.public.sums.level_trees import Controls, Evidence, LevelTreesRelease, Reach, Side
from partita.testing import EndlessTape, ZeroNoise, tape_noise
from partita.trusted.mechanisms.sums import LevelTrees
from partita.trusted.secret import Points

LINES: list[tuple[Any, Tops]] = [
    (Integer(-20, 90), Tops(80, 20)),
    (Integer(100, 190), Tops(24, None)),
    (Real(-9, -2, step="0.25"), Tops(None, 32)),
    (Integer(-5, 5), Tops(None, None)),
]


def _ways(hats: Any) -> list[Side]:
    knots = len(hats.knots) if hats else 1
    return [Side(number, clipped) for number in range(knots) for clipped in (False, True)]


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize(("domain", "tops"), LINES, ids=str)
def test_masses_add_up_to_what_every_value_counts_as(domain: Any, tops: Tops, degree: int) -> None:
    """However the sides are covered, a row of any value adds exactly `counted` to sums, `share` to counts."""
    line = ValueLine.of(domain)
    controls = Controls(line, tops, degree)
    places = np.arange(line.size + 2, dtype=np.uint64)
    masses = controls.summed(np.arange(places.size), places, np.ones(places.size, np.int64), places.size)
    rows = masses.astype(np.float64) / controls.unit
    values = np.clip([line.number(int(place) - 1 - line.down) for place in places], domain.low, domain.high)
    step, origin = float(line.step), float(line.origin * line.step)

    for up, down in product(*map(_ways, controls.hats)):
        reach = Reach(up, down)
        covers, ones = controls.covers(reach), controls.cover(reach, controls.ones)
        sums = step * controls.cover(reach, controls.values) + origin * ones
        assert sums @ rows == pytest.approx(covers.counted(values), abs=1e-9)
        assert ones @ rows == pytest.approx(covers.share(values), abs=1e-12)
        assert not covers.everything or sums @ rows == pytest.approx(values)


@pytest.mark.parametrize(
    ("lower", "upper", "text"),
    [
        (End(-5, whole=True), End(5, whole=True), "all values"),
        (End(0, whole=True), End(1000), "values up to 1,000 in full, those above count as 1,000"),
        (End(0, whole=True), End(10, 40), "values up to 10 in full, in part up to 40, none above"),
        (End(0, whole=True), End(1023, 1023), "values up to 1,023 in full, none above"),
        (End(-3), End(9, whole=True), "values from -3 up in full, those below count as -3"),
        (
            End(-3, -12),
            End(8),
            "values from -3 to 8 in full, in part down to -12, none below, those above count as 8",
        ),
    ],
)
def test_words_say_what_becomes_of_values_beyond(lower: End, upper: End, text: str) -> None:
    """Each side by itself, and nothing about a side beyond which there is nothing."""
    assert str(Covers(lower, upper)) == text


def test_shares_fall_to_nothing() -> None:
    """In full up to the end, then less and less, of degree 2 by the square, and nothing from there on."""
    assert Covers(End(0), End(10, 20)).share([10, 15, 20, 99]).tolist() == [1.0, 0.5, 0.0, 0.0]
    assert Covers(End(0), End(10, 20), 2).share([10, 15, 20, 99]).tolist() == [1.0, 0.25, 0.0, 0.0]
    assert Covers(End(-4, -4), End(10, 10)).share([-5, -4, 10, 11]).tolist() == [0.0, 1.0, 1.0, 0.0]
    assert Covers(End(-4), End(10)).counted([-5, 3, 99]).tolist() == [-4.0, 3.0, 10.0]


def _released(values: np.ndarray, domain: Integer, noise: Any, epsilon: object = 1) -> LevelTreesRelease:
    points = Points.from_rows((values - domain.low + 1)[:, np.newaxis], axes=[Axis.of(domain)])
    return LevelTrees(keys=[], value=domain, epsilon=epsilon).release(points, noise=noise)


def test_zeros_are_not_beyond() -> None:
    """Rows at the origin add nothing to a sum, and are covered all the same."""
    values = np.repeat([0, 50_000], [20_000, 1_000])
    answer = _released(values, Integer(0, 10**6), ZeroNoise()).sum([BoxTerm((), ())])
    assert answer.value == pytest.approx(5e7)
    assert answer.beyond.value == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize(("small", "high"), [(20_000, 10), (3_000, 40)])
def test_rows_past_the_cap_are_beyond(small: int, high: int) -> None:
    """Too few to raise the cap, they count as the last knot that is covered; `beyond` has them all.

    Beside three thousand rows the last of all knots is covered, and they are known by their magnitude only.
    """
    values = np.repeat([10, 900_000], [small, 100])
    release = _released(values, Integer(0, 10**6), ZeroNoise())
    answer = release.sum([BoxTerm((), ())])

    assert release.controls.tops.up == 40
    assert answer.covers.text.startswith(f"values up to {high} in full, those above count as {high}")
    assert answer.value == pytest.approx(10 * small + 100 * high)
    assert answer.beyond.value == pytest.approx(100.0)
    assert answer.beyond.worst()[0] <= 100 <= answer.beyond.worst()[1]


def test_what_worst_guarantees_is_the_sum_of_all_values() -> None:
    """Many small rows and some far too large to be seen: bounds hold the true sum, which is not covered.

    At 0.001, with twenty tapes, they fail once in fifty runs of other tapes.
    """
    values = np.repeat([10, 100_000], [20_000, 1_500])
    for tape in range(20):
        noise = tape_noise(EndlessTape(tape))
        answer = _released(values, Integer(0, 10**6), noise, Fraction(1, 20)).sum([BoxTerm((), ())])
        low, high = answer.worst(0.001)
        assert float(answer.covers.counted(values).sum()) < values.sum()
        assert low <= float(values.sum()) <= high


def _reached(tops: Tops, found: list[float]) -> int:
    """How many knots are covered where the trees hold so many rows above the origin, all but certain."""
    controls = Controls(ValueLine.of(Integer(0, 10**6)), tops, 1)
    rows = np.array([0.0, 0.0, 0.0, *found])
    evidence = Evidence(rows, rows > 50.0)
    return controls.choose(rows, np.ones(rows.size), controls.values, evidence).up.knots


def test_strays_beside_the_cap_are_not_covered() -> None:
    """Knots above the cap that was seen need a fiftieth of its rows; those up to it need none."""
    headroom = Tops(256, None, (64, None))  # knots at 1, 4, 16, 64, 128 and 256
    assert _reached(headroom, [0, 0, 0, 10_000, 0, 0]) == 4
    assert _reached(headroom, [0, 0, 0, 10_000, 150, 150]) == 4
    assert _reached(headroom, [0, 0, 0, 10_000, 300, 0]) == 5
    assert _reached(Tops(256, None, (256, None)), [0, 0, 0, 10_000, 150, 150]) == 6


def test_of_no_row_a_mean_is_anything_that_was_declared() -> None:
    """An empty part is seldom taken for one with rows, and then bounds are the declared ones."""
    domain, key = Integer(-100, 1000), Axis(size=8)
    rows = np.stack([np.arange(3000) % 7, np.full(3000, 501)], axis=1)
    points = Points.from_rows(rows, axes=[key, Axis.of(domain)])
    mechanism = LevelTrees(keys=[key], value=domain, epsilon=1, moments=True)
    for tape in range(10):
        release = mechanism.release(points, noise=tape_noise(EndlessTape(tape)))
        mean, std = (ask([BoxTerm((7,), (7,))]) for ask in (release.mean, release.std))
        assert (mean.determinable, std.determinable) == (False, False)
        assert mean.interval() == mean.worst() == (-100.0, 1000.0)
        assert std.interval() == (0.0, 550.0)
        assert math.isnan(mean.value)
