"""Means of values in a narrow band: a centre that is paid for, and a clip around it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np
import pytest

from partita.audit.laws import coupled_loss, law_loss, published
from partita.domain import Integer, Real
from partita.domain.axis import Axis
from partita.errors import InvalidRelease
from partita.public.axis.base import Parts
from partita.public.boxes.base import BoxTerm
from partita.public.sums.group_means import Clip, GroupMeansRelease
from partita.testing import (
    CouplingBroken,
    EndlessTape,
    ScatteredPoints,
    ZeroNoise,
    add_remove_pairs,
    change_one_pairs,
    tape_noise,
)
from partita.testing.laws import RationalNoise
from partita.trusted.mechanisms.group_means import GroupMeans
from partita.trusted.mechanisms.sums import ValueCap, _count_buckets
from partita.trusted.secret import Points

module: Any = import_module("partita.trusted.mechanisms.group_means")
KEY = Axis(size=2, after=1)
VALUE = Integer(0, 1000)
CROWD = [(0, 701), (1, 711), (1, 721)] * 300
"""Positions of values from 700 to 720, which are all in the bucket from 641 to 768."""
NUMBERS = [(0, 0), (0, 1), (1, 702), (2, 710), (1, 768), (0, 901), (2, 1002)]
ABSENT = [(0, 1003), (1, 1004)]
HALF = Fraction(1, 2)


def _points(rows: Sequence[tuple[int, ...]], keys: tuple[Axis, ...], value: Any, **options: Any) -> Points:
    places = np.array(rows, np.uint64).reshape(-1, len(keys) + 1)
    return Points.from_rows(places, axes=[*keys, Axis.of(value)], **options)


def _released(mechanism: GroupMeans, rows: Sequence[tuple[int, ...]], noise: Any) -> GroupMeansRelease:
    points = _points(rows, mechanism.keys, mechanism.value, contributions=mechanism.contributions)
    return mechanism.release(points, noise=noise)


def _loss(mechanism: GroupMeans, one: Any, other: Any, seed: int) -> Fraction:
    """What two runs cost that have one centre, whatever it is."""
    return coupled_loss(
        lambda rows, noise: published(_released(mechanism, rows, noise)), one, other, seed=seed
    )


def _in_a_band(rows: Any, **options: Any) -> bool:
    release = _released(GroupMeans(keys=[KEY], value=VALUE, epsilon=1, **options), rows, ZeroNoise())
    return release.centre != 0


def test_one_row_costs_exactly_epsilon() -> None:
    """A row more, in the band or far from it or out of bounds, loses epsilon, and that with every centre."""
    mechanism = GroupMeans(keys=[KEY], value=VALUE, epsilon=1)
    losses = {_loss(mechanism, CROWD, [*CROWD, row], seed) for seed, row in enumerate(NUMBERS * 3)}

    assert _in_a_band(CROWD)
    assert losses == {Fraction(1)}


def test_a_row_without_a_number_costs_both_looks() -> None:
    """It is counted among the magnitudes, twice, and neither moves the centre nor has a mass."""
    mechanism = GroupMeans(keys=[KEY], value=VALUE, epsilon=1)
    losses = {_loss(mechanism, CROWD, [*CROWD, row], seed) for seed, row in enumerate(ABSENT)}
    assert losses == {Fraction(1, 10) + Fraction(3, 40)}


def test_a_changed_row_costs_at_most_epsilon() -> None:
    """Under change-one neighbours a row that moves anywhere loses at most epsilon, and epsilon at worst."""
    mechanism = GroupMeans(keys=[KEY], value=VALUE, epsilon=1, neighbors="change-one")
    losses = [
        _loss(mechanism, [*CROWD, (0, 702)], [*CROWD, row], seed)
        for seed, row in enumerate([*NUMBERS, *ABSENT])
    ]
    assert _in_a_band(CROWD, neighbors="change-one")
    assert max(losses) == 1


@pytest.mark.parametrize("neighbors", ["add-remove", "change-one"])
def test_a_person_with_several_rows_costs_at_most_epsilon(neighbors: Any) -> None:
    """With three rows a person, three rows that come together, or move together, lose epsilon."""
    mechanism = GroupMeans(keys=[KEY], value=VALUE, epsilon=1, contributions=3, neighbors=neighbors)
    crowd, before = CROWD * 3, [(0, 1)] * 3 if neighbors == "change-one" else []
    assert _loss(mechanism, crowd + before, crowd + [(1, 768)] * 3, 1) == 1


def _center(mechanism: GroupMeans, counts: tuple[int, ...], noise: Any) -> int:
    """The centre among the inner cells of a line, for so many rows of each value."""
    rows = [(place,) for place, count in enumerate(counts) for _ in range(count)]
    points = _points(rows, (), mechanism.value, contributions=mechanism.contributions)
    return mechanism._choose_centre(points, Clip(1, mechanism.value.size - 2), noise)


def _worst(mechanism: GroupMeans, most: int) -> float:
    """The largest loss of the centre over all small columns and their neighbours, by laws.

    Values below and above the bounds are among them.
    """
    pairs = add_remove_pairs if mechanism.neighbors == "add-remove" else change_one_pairs
    noise = RationalNoise(HALF, unit=1 / mechanism._centre_scale)
    loss = law_loss(partial(_center, mechanism), noise)
    return max(float(loss(one, other)) for one, other in pairs(mechanism.value.size + 2, most))


TINY: dict[str, Any] = {"keys": [], "value": Integer(0, 3), "epsilon": 40}


@pytest.mark.parametrize("neighbors", ["add-remove", "change-one"])
def test_the_law_of_a_centre_loses_its_share(neighbors: Any) -> None:
    """Laws of small columns and their neighbours differ by e to its part of epsilon at most."""
    assert 0.5 < _worst(GroupMeans(**TINY, neighbors=neighbors), 1) <= 1


def test_the_law_of_a_coarse_centre_loses_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """So do laws over cells of several values, the last of which is shorter."""
    monkeypatch.setattr(module, "_CENTRE_CELLS", 2)
    assert 0.5 < _worst(GroupMeans(**{**TINY, "value": Integer(0, 4)}), 1) <= 1


@pytest.mark.parametrize("scale", ["half", "no change-one"])
def test_a_scale_that_is_too_small_is_caught(scale: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores move both ways, and a row that changes moves them twice."""
    found = {"half": lambda self: 1 / (self.rate / 40), "no change-one": lambda self: 2 / (self.epsilon / 40)}
    monkeypatch.setattr(GroupMeans, "_centre_scale", property(found[scale]))
    neighbors: Any = "add-remove" if scale == "half" else "change-one"
    assert _worst(GroupMeans(**TINY, neighbors=neighbors), 1) > 1


def _plant(bug: str, patch: pytest.MonkeyPatch) -> None:
    shipped = ValueCap.measure
    if bug == "the true median":
        patch.setattr(
            GroupMeans,
            "_choose_centre",
            lambda self, points, band, session: int(
                np.median(np.repeat(points.places[:, -1], points.counts))
            ),
        )
    elif bug == "a centre that nobody pays for":
        patch.setattr(GroupMeans, "_rate", lambda self, *, band: self.rate * Fraction(33 if band else 36, 40))
    elif bug == "a second look that nobody pays for":
        patch.setattr(GroupMeans, "_rate", lambda self, *, band: self.rate * Fraction(35 if band else 36, 40))
    elif bug == "change-one forgotten by the centre":
        patch.setattr(GroupMeans, "_centre_scale", property(lambda self: 2 / (self.epsilon / 40)))
    elif bug == "a second look without noise":

        def measured(self: ValueCap, points: Any, *, session: Any) -> Any:
            if self.epsilon == Fraction(1, 10):
                return shipped(self, points, session=session)
            return points.folded(partial(_count_buckets, self.buckets))

        patch.setattr(ValueCap, "measure", measured)


@pytest.mark.parametrize(
    "bug",
    [
        "the true median",
        "a centre that nobody pays for",
        "a second look that nobody pays for",
        "change-one forgotten by the centre",
        "a second look without noise",
    ],
)
def test_planted_bugs_are_caught(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A centre or a look that leaks, costs too much or is left out of the account breaks the coupling."""
    _plant(bug, monkeypatch)
    mechanism = GroupMeans(keys=[KEY], value=VALUE, epsilon=1, neighbors="change-one")
    rows = [(0, 701)] * 1450 + [(1, 721)] * 1451
    try:
        caught = _loss(mechanism, rows, [(0, 1), *rows[:-1]], 3) > 1
    except CouplingBroken:
        caught = True
    assert caught


def _rows(values: Any, domain: Any, groups: int, seed: int) -> list[tuple[int, int]]:
    keys = np.random.default_rng(seed).integers(0, groups, len(values))
    return list(zip(keys.tolist(), (values - int(domain.low)).tolist(), strict=True))


@pytest.mark.parametrize(
    ("middle", "spread", "domain"),
    [
        (10**6, 300, Integer(0, 2**31)),
        (-700_000, 50, Integer(-(10**6), 0)),
        (2000, 20, Integer(-5000, 10_000)),
        (1_700_000_000, 3_000, Integer(0, 2**40)),
        (2**60, 10**12, Integer(0, 2**62)),
    ],
)
@pytest.mark.parametrize("epsilon", ["1", "1/10"])
def test_a_band_has_a_narrow_clip(middle: int, spread: int, domain: Integer, epsilon: str) -> None:
    """Wherever it lies, the clip is about as wide as the values are spread, and means are near the truth."""
    values = np.rint(np.random.default_rng(1).normal(0, spread, 20_000)).astype(np.int64) + middle
    rows = [(key, place + 1) for key, place in _rows(values, domain, 40, 2)]
    mechanism = GroupMeans(keys=[Axis(size=40)], value=domain, epsilon=epsilon)
    release = _released(mechanism, rows, tape_noise(EndlessTape(4)))

    assert spread < release.clip.width <= 10 * spread + 2 * middle // 2**18
    assert release.spent == mechanism.epsilon
    mean = release.mean([release.everything])
    assert abs(mean.value - float(values.mean())) < spread / 2
    low, high = mean.interval(0.999)
    assert low <= float(values.mean()) <= high


def test_values_near_zero_have_no_centre() -> None:
    """Columns that are spread over octaves, or lie around zero, are released as if there were no bands."""
    random = np.random.default_rng(6)
    for values, domain in (
        (random.exponential(1000, 20_000), Integer(0, 2**31)),
        (random.normal(0, 50, 20_000), Integer(-(10**6), 10**6)),
        (random.normal(500, 120, 20_000), Integer(0, 10**6)),
        (random.uniform(3, 6, 20_000), Integer(0, 10**6)),
        (np.where(random.random(20_000) < 0.4, 0, random.normal(1000, 20, 20_000)), Integer(0, 10**6)),
    ):
        whole = np.clip(np.rint(values), domain.low, domain.high).astype(np.int64)
        rows = [(key, place + 1) for key, place in _rows(whole, domain, 40, 2)]
        mechanism = GroupMeans(keys=[Axis(size=40)], value=domain, epsilon=1)
        release = _released(mechanism, rows, tape_noise(EndlessTape(5)))
        assert release.centre == 0
        assert release.centre_rate == 0


@pytest.mark.parametrize("epsilon", ["1", "1/5"])
def test_intervals_hold_the_true_means(epsilon: str) -> None:
    """Of 200 intervals for means in a skewed band at least 186 hold the truth, and all certain bounds do."""
    random, axis, domain = np.random.default_rng(8), Axis(size=40), Integer(0, 2**31)
    values = 500_000 + np.rint(random.gamma(2, 2000, 20_000)).astype(np.int64)
    rows = np.array([(key, place + 1) for key, place in _rows(values, domain, 40, 3)])
    truth = np.bincount(rows[:, 0], values, 40) / np.bincount(rows[:, 0], minlength=40)
    mechanism, held = GroupMeans(keys=[axis], value=domain, epsilon=epsilon), 0
    points = _points(rows.tolist(), (axis,), domain)
    for seed in range(5):
        release = mechanism.release(points, noise=tape_noise(EndlessTape(seed)))
        assert release.centre
        for group in range(40):
            mean = release.mean([BoxTerm((group,), (group,))])
            low, high = mean.interval()
            least, most = mean.worst(1e-6)
            held += low <= truth[group] <= high
            assert least <= truth[group] <= most
    assert held >= 186


def test_without_noise_masses_are_those_of_the_rows() -> None:
    """Noise off, every row has one unit of mass around the centre, and the mean is exact within the clip."""
    domain = Real(0, 1000, step="1/4")
    cells = np.random.default_rng(2).integers(2800, 2880, 6000)
    release = _released(
        GroupMeans(keys=[], value=domain, epsilon=1), [(cell + 1,) for cell in cells], ZeroNoise()
    )
    lower, upper = (int(mass) for mass in release.noisy)
    low, high = (release.number(end) for end in release.clip)
    inside = np.clip(cells / 4, low, high)
    assert 700 < release.number(0) < 720
    assert lower + upper == 6000 * release.clip.unit
    assert (lower * low + upper * high) / release.clip.unit == pytest.approx(float(inside.sum()))


def test_scattered_points_have_the_same_release() -> None:
    """Where rows lie makes no difference: centre, counts and masses are folded block by block."""
    mechanism = GroupMeans(keys=[KEY], value=VALUE, epsilon=1)
    here = _points([*CROWD, *NUMBERS, *ABSENT], (KEY,), VALUE)
    one, other = (
        published(mechanism.release(points, noise=tape_noise(EndlessTape(9))))
        for points in (here, ScatteredPoints(here, blocks=4))
    )
    assert one == other


def test_parts_make_the_same_release() -> None:
    """A file holds the centre and what it cost, and answers as the release; the report names the centre."""
    mechanism = GroupMeans(keys=[KEY], value=VALUE, epsilon=1)
    release = _released(mechanism, CROWD, tape_noise(EndlessTape(2)))
    parts = release.parts()
    again = GroupMeansRelease.from_parts(parts, None, keys=[KEY], value=VALUE)

    everything = [release.everything]
    assert again.mean(everything) == release.mean(everything)
    assert again.mean(everything).worst() == release.mean(everything).worst()
    assert again.spent == release.spent == 1
    assert f"around {release.number(0):,.6g}" in again.story
    for centre in (-1, 1001):
        changed = Parts({**parts.facts, "centre": centre}, parts.series)
        with pytest.raises(InvalidRelease, match="centre"):
            GroupMeansRelease.from_parts(changed, None, keys=[KEY], value=VALUE)


def test_every_path_spends_epsilon() -> None:
    """With a band and without one, for all neighbours, the released scales add up to epsilon."""
    people: list[dict[str, Any]] = [{}, {"contributions": 3}, {"neighbors": "change-one"}]
    for rows, options in product((CROWD * 4, [(0, 1)] * 900), people):
        mechanism = GroupMeans(keys=[KEY], value=VALUE, epsilon="1/3", **options)
        release = _released(mechanism, rows, ZeroNoise())
        assert (release.centre != 0) == (len(rows) == 3600)
        assert release.spent * mechanism.rows_changed == Fraction(1, 3)
