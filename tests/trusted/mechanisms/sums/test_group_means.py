"""Means by group: exact without noise, paid for by the row, and not determinable where there is nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

import partita as pt
from partita.domain import Category, Domain, Integer, Real
from partita.domain.axis import Axis
from partita.errors import InvalidData, InvalidParameter, InvalidRelease
from partita.public.axis.base import Parts
from partita.public.boxes.base import BoxTerm
from partita.public.sums.base import ValueLine
from partita.public.sums.group_means import Clip, GroupMeansRelease, PooledColumn
from partita.public.sums.knots import ValueBuckets
from partita.testing import CouplingBroken, EndlessTape, ForbiddenNoise, ZeroNoise, coupled, tape_noise
from partita.trusted.mechanisms.group_means import GroupMeans
from partita.trusted.mechanisms.sums import _count_buckets
from partita.trusted.secret import Points

KEY = Axis(size=2, after=1)
VALUE = Integer(-1, 4)
WIDE = Integer(-(2**40), 2**61)
FAR = (1 << 45) + 12_345
"""The position of a value whose distance to others is no multiple of anything."""


def _points(rows: Sequence[tuple[int, ...]], keys: tuple[Axis, ...], value: Domain, **options: Any) -> Points:
    return Points.from_rows(
        np.array(rows, np.uint64).reshape(-1, len(keys) + 1), axes=[*keys, Axis.of(value)], **options
    )


def _released(mechanism: GroupMeans, rows: Sequence[tuple[int, ...]], noise: Any) -> GroupMeansRelease:
    points = _points(rows, mechanism.keys, mechanism.value, contributions=mechanism.contributions)
    return mechanism.release(points, noise=noise)


def _run(mechanism: GroupMeans) -> Any:
    def run(rows: Any, noise: Any) -> Any:
        release = _released(mechanism, rows, noise)
        return release.buckets.tolist(), release.noisy.tolist(), release.scale, release.clip

    return run


def _group(place: int) -> list[BoxTerm]:
    return [BoxTerm((place,), (place,))]


@pytest.mark.parametrize(
    "value",
    [Integer(0, 2**31), Integer(-5000, 90_000), Integer(100, 300), Real(-2, 50, step="0.25"), WIDE],
    ids=str,
)
def test_without_noise_means_are_those_of_the_rows(value: Any) -> None:
    """Noise off, masses tell the mean of the clipped values of every group, and its rows, exactly."""
    random, axis = np.random.default_rng(3), Axis(size=7)
    cells = np.minimum(random.exponential(min(value.size, 2**50) / 8, 4000), value.size - 1).astype(np.int64)
    keys = random.integers(0, 7, 4000)
    mechanism = GroupMeans(keys=[axis], value=value, epsilon=1)
    release = _released(mechanism, list(zip(keys, cells + 1, strict=True)), ZeroNoise())
    clip = release.clip
    offsets = np.clip(cells - release.value.down, clip.low, clip.high)
    masses = release.noisy.reshape(2, -1)

    for group in range(7):
        lower, upper = (int(mass[group]) for mass in masses)
        rows = int((keys == group).sum())
        exact = clip.low * rows + Fraction(upper * clip.width, clip.unit)
        lost = int(offsets[keys == group].astype(object).sum()) - exact
        assert lower + upper == rows * clip.unit
        assert 0 <= lost <= rows * Fraction(clip.width, clip.unit)
        assert lost == 0 or clip.width > clip.unit
        assert release.count(_group(group)).value == pytest.approx(rows)


def test_a_mean_is_that_of_all_values_of_its_group() -> None:
    """With little noise beside the rows, every mean is near the truth, and so is that of several groups."""
    random, axis, value = np.random.default_rng(5), Axis(size=40), Integer(-1000, 10**6)
    keys, values = random.integers(0, 40, 80_000), np.rint(random.normal(300, 80, 80_000)).astype(np.int64)
    release = _released(
        GroupMeans(keys=[axis], value=value, epsilon=1),
        list(zip(keys, values + 1001, strict=True)),
        tape_noise(EndlessTape(1)),
    )

    for group in range(40):
        assert release.mean(_group(group)).value == pytest.approx(values[keys == group].mean(), abs=8)
    several = release.mean([BoxTerm((3,), (9,)), BoxTerm((20,), (39,))])
    chosen = ((keys >= 3) & (keys <= 9)) | (keys >= 20)
    assert several.value == pytest.approx(values[chosen].mean(), abs=2)
    assert release.mean([release.everything]).value == pytest.approx(values.mean(), abs=1)


PLACES = list(product(range(3), range(8)))
"""Every key, with all values and those out of bounds."""
ABSENT = list(product(range(3), range(8, 10)))
"""Every key, with an invalid value and a null."""


@pytest.mark.parametrize(
    ("value", "places"), [(VALUE, PLACES), (WIDE, [(0, 5), (1, FAR), (2, 1 << 40), (0, 3 << 59)])], ids=str
)
def test_one_row_costs_exactly_epsilon(value: Integer, places: list[tuple[int, int]]) -> None:
    """A row more, at any key and any value, out of bounds included, loses epsilon and no more."""
    mechanism = GroupMeans(keys=[KEY], value=value, epsilon=1)
    data = [(0, 3), (1, 5), (1, places[-1][1])] * 300
    losses = {
        coupled(_run(mechanism), data, [*data, row], tape_noise(EndlessTape(seed)))
        for seed, row in enumerate(places)
    }
    assert losses == {Fraction(1)}


def test_a_row_without_a_number_costs_a_tenth() -> None:
    """A row that is null or invalid is counted among the magnitudes, and has no mass."""
    mechanism = GroupMeans(keys=[KEY], value=VALUE, epsilon=1)
    data = [(0, 3), (1, 6)] * 300
    losses = {
        coupled(_run(mechanism), data, [*data, row], tape_noise(EndlessTape(seed)))
        for seed, row in enumerate(ABSENT)
    }
    assert losses == {Fraction(1, 10)}


def test_a_changed_row_costs_at_most_epsilon() -> None:
    """Under change-one neighbours a row that moves anywhere loses at most epsilon, and epsilon at worst."""
    mechanism = GroupMeans(keys=[KEY], value=VALUE, epsilon=1, neighbors="change-one")
    data = [(0, 3), (1, 6)] * 300
    losses = [
        coupled(_run(mechanism), [*data, (0, 3)], [*data, row], tape_noise(EndlessTape(seed)))
        for seed, row in enumerate([*PLACES, *ABSENT])
    ]
    assert max(losses) == 1


@pytest.mark.parametrize("neighbors", ["add-remove", "change-one"])
def test_a_person_with_several_rows_costs_at_most_epsilon(neighbors: Any) -> None:
    """With three rows a person, three rows that come together, or move together, lose epsilon."""
    mechanism = GroupMeans(keys=[KEY], value=VALUE, epsilon=1, contributions=3, neighbors=neighbors)
    data, before = [(0, 3)] * 300, [(0, 3)] * 3 if neighbors == "change-one" else []
    loss = coupled(_run(mechanism), data + before, data + [(1, 6)] * 3, tape_noise(EndlessTape(1)))
    assert loss == 1


def _exact_clip(mechanism: GroupMeans, rows: Any) -> Clip:
    """The clip that the exact counts of magnitudes would speak for."""
    points = _points(rows, mechanism.keys, mechanism.value)
    return mechanism._choose(mechanism.cap, mechanism.cap.measure(points, session=ZeroNoise()))


def _around_a_clip(mechanism: GroupMeans) -> tuple[Any, Any]:
    """Neighbours whose exact counts speak for different clips."""

    def crowd(rows: int) -> list[tuple[int, int]]:
        return [(0, 3)] * 300 + [(1, 900)] * rows

    low, high = 0, 1_000
    while high - low > 1:
        middle = (low + high) // 2
        same = _exact_clip(mechanism, crowd(middle)) == _exact_clip(mechanism, crowd(0))
        low, high = (middle, high) if same else (low, middle)
    return crowd(low), crowd(high)


MOVABLE = GroupMeans(keys=[KEY], value=Integer(0, 1000), epsilon=1)


def test_where_one_row_would_move_the_clip_it_costs_epsilon() -> None:
    """The clip follows from noisy counts: neighbours whose exact counts choose other clips have the same."""
    one, other = _around_a_clip(MOVABLE)
    losses = {coupled(_run(MOVABLE), one, other, tape_noise(EndlessTape(seed))) for seed in range(3)}

    assert _exact_clip(MOVABLE, one) != _exact_clip(MOVABLE, other)
    assert losses == {Fraction(1)}


def test_a_clip_from_true_values_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the clip came from exact counts, neighbours would ask for other noise or release another clip."""
    shipped, held = GroupMeans._choose, []

    def measured(self: Any, points: Any, *, session: Any) -> Any:
        exact = points.folded(partial(_count_buckets, self.buckets))
        held.append(exact)
        return session.add(exact, self.scale)

    one, other = _around_a_clip(MOVABLE)
    monkeypatch.setattr(type(MOVABLE.cap), "measure", measured)
    monkeypatch.setattr(GroupMeans, "_choose", lambda self, cap, noisy: shipped(self, cap, held[-1]))

    with pytest.raises(CouplingBroken):
        coupled(_run(MOVABLE), one, other, tape_noise(EndlessTape(1)))


def _planted(bug: str, patch: pytest.MonkeyPatch) -> None:
    shipped = Clip.summed
    if bug == "change-one forgotten":
        patch.setattr(GroupMeans, "_rate", lambda self, *, band: self.epsilon * Fraction(9, 10))
    elif bug == "a unit that rounding breaks":

        def rounded(self: Clip, groups: Any, offsets: Any, counts: Any, number: int) -> Any:
            masses = shipped(self, groups, offsets, counts, number)
            np.add.at(masses[0], groups, counts)
            return masses

        patch.setattr(Clip, "summed", rounded)
    elif bug == "the unit forgotten":
        patch.setattr(GroupMeans, "_scale", lambda self, clip, *, band: 1 / self._rate(band=band))
    elif bug == "all of epsilon for the masses":
        patch.setattr(GroupMeans, "_rate", lambda self, *, band: self.rate)
    elif bug == "mass in two groups":
        patch.setattr(
            Clip, "summed", lambda self, *given: shipped(self, *given)[:, ::-1] + shipped(self, *given)
        )


@pytest.mark.parametrize("value", [VALUE, WIDE], ids=str)
@pytest.mark.parametrize(
    "bug",
    [
        "change-one forgotten",
        "a unit that rounding breaks",
        "the unit forgotten",
        "all of epsilon for the masses",
        "mass in two groups",
    ],
)
def test_planted_bugs_cost_more_than_epsilon(
    bug: str, value: Integer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wrong neighbours, masses that are not one unit, a scale without it, and shares spent twice are seen."""
    _planted(bug, monkeypatch)
    mechanism = GroupMeans(keys=[KEY], value=value, epsilon=1, neighbors="change-one")
    data = [(0, 3), (1, 6)] * 300

    moved = (1, 5) if value is VALUE else (1, FAR)
    loss = coupled(_run(mechanism), [*data, (0, 2)], [*data, moved], tape_noise(EndlessTape(2)))

    assert loss > 1


@pytest.mark.parametrize("clip", [Clip(0, 1), Clip(-3, 9), Clip(-(2**40), 2**61), Clip(5, 5)])
def test_every_row_has_one_unit_of_mass(clip: Clip) -> None:
    """Both masses are whole, not negative, and add up to the unit, wherever the value is."""
    offsets = np.array([-(2**62), -5, -3, 0, 1, 4, 9, 2**33 + 1, 2**60 + 7, 2**62])
    for offset in offsets:
        lower, upper = clip.summed(np.zeros(1, int), offset[None], np.ones(1, int), 1)[:, 0].tolist()
        inside = min(max(int(offset), clip.low), clip.high) - clip.low
        assert lower + upper == clip.unit
        assert (lower >= 0, upper) == (True, clip.unit * inside // clip.width)


def test_masses_of_very_many_rows_are_exact() -> None:
    """2^61 rows of one value have 2^61 times its masses."""
    clip, rows = Clip(-(2**40), 2**61), 2**61
    masses = clip.summed(np.zeros(1, int), np.array([FAR]), np.array([rows]), 1)
    alone = clip.summed(np.zeros(1, int), np.array([FAR]), np.array([1]), 1)
    assert (masses == alone * rows).all()


def test_the_buckets_lie_in_order_and_hold_all_values() -> None:
    """From the lowest value to the highest; a bucket begins behind the one before it."""
    for domain in (Integer(-9, 20), Integer(0, 5), Integer(-70, -3), Integer(7, 7), Integer(100, 300)):
        line = ValueLine.of(domain)
        buckets = ValueBuckets(line)
        column = PooledColumn(buckets, np.arange(buckets.size), Fraction(1))
        firsts, lasts = column._firsts.tolist(), column._lasts.tolist()
        held = [value for first, last in zip(firsts, lasts, strict=True) for value in range(first, last + 1)]
        places = np.arange(line.size, dtype=np.uint64) + np.uint64(1)
        order = buckets.of(places)
        assert held[1:-1] == list(range(-line.down, line.up + 1))
        assert column._counts.tolist()[1:-1] == list(dict.fromkeys(order.tolist()))


def test_the_clip_follows_the_values() -> None:
    """It lies around most values on both sides, also where all are far from zero or below it."""
    random, axis = np.random.default_rng(1), Axis(size=100)
    for middle, domain in (
        (0, Integer(-(10**6), 10**6)),
        (10**6, Integer(0, 2**31)),
        (-5000, Integer(-9000, 0)),
    ):
        values = np.rint(random.normal(middle, 300, 30_000)).astype(np.int64)
        values = np.clip(values, domain.low, domain.high)
        rows = list(zip(random.integers(0, 100, 30_000), values - domain.low + 1, strict=True))
        mechanism = GroupMeans(keys=[axis], value=domain, epsilon=1)
        release = _released(mechanism, rows, tape_noise(EndlessTape(3)))
        low, high = (release.centre + end for end in release.clip)
        assert middle - 2000 <= low < np.quantile(values, 0.1)
        assert np.quantile(values, 0.9) < high <= middle + 2000


@pytest.mark.parametrize("epsilon", ["1", "1/5"])
def test_intervals_hold_the_true_means(epsilon: str) -> None:
    """Of 300 intervals for means of skewed values at least 279 hold the truth, and all certain bounds do."""
    random, axis, value = np.random.default_rng(8), Axis(size=60), Integer(0, 2**31)
    keys, values = random.integers(0, 60, 30_000), np.rint(random.lognormal(6, 1, 30_000)).astype(np.int64)
    truth = np.bincount(keys, values, 60) / np.bincount(keys, minlength=60)
    mechanism = GroupMeans(keys=[axis], value=value, epsilon=epsilon)
    points, held = _points(list(zip(keys, values + 1, strict=True)), (axis,), value), 0
    for seed in range(5):
        release = mechanism.release(points, noise=tape_noise(EndlessTape(seed)))
        for group in range(60):
            mean = release.mean(_group(group))
            low, high = mean.interval()
            least, most = mean.worst(1e-6)
            held += low <= truth[group] <= high
            assert least <= truth[group] <= most
            assert low < mean.value < high
    assert held >= 279


def test_a_wider_confidence_has_a_wider_interval() -> None:
    """Noise and tail both grow with the confidence, and the standard error is that of the noise alone."""
    release = _released(
        GroupMeans(keys=[], value=Integer(0, 10**6), epsilon=1), [(9,), (50,), (900,)] * 400, ZeroNoise()
    )
    mean = release.mean([release.everything])
    ends = [mean.interval(confidence) for confidence in (0.5, 0.9, 0.99)]
    assert all(wide[0] < narrow[0] < narrow[1] < wide[1] for narrow, wide in pairwise(ends))
    low, high = mean.interval(0.6826895)
    assert 0 < mean.error < (high - low) / 2


def test_a_group_of_few_rows_is_not_determinable() -> None:
    """Below 10 / epsilon rows a mean has no value and says so first; its interval is all that is declared."""
    rows = [(0, 3)] * 400 + [(1, 3)] * 9
    release = _released(GroupMeans(keys=[KEY], value=VALUE, epsilon=1), rows, ZeroNoise())
    mean = release.mean(_group(1))
    assert (release.mean(_group(0)).determinable, mean.determinable) == (True, False)
    assert math.isnan(mean.value)
    assert str(mean).startswith("not determinable")
    assert mean.interval() == (-1.0, 4.0)
    rows.append((1, 3))
    assert (
        _released(GroupMeans(keys=[KEY], value=VALUE, epsilon=1), rows, ZeroNoise())
        .mean(_group(1))
        .determinable
    )


def test_where_no_octave_is_clear_no_mean_is_told() -> None:
    """A clip that noise chose would be a guess: with few rows under wide bounds all answers say so."""
    rows, value = [(0, 900), (1, 1100)] * 500, Integer(0, 2**31)
    for epsilon, clear in (("1", True), ("1/20", False)):
        mechanism = GroupMeans(keys=[KEY], value=value, epsilon=epsilon)
        for seed in range(5):
            release = _released(mechanism, rows, tape_noise(EndlessTape(seed)))
            mean = release.mean([release.everything])
            assert mean.determinable == clear
            assert clear or mean.interval() == (0.0, 2.0**31)


def test_rows_without_a_number_have_no_mass_and_missing_keys_are_a_group() -> None:
    """Null and invalid values change no mean; rows whose key is missing are a group of their own."""
    rows = [(0, 6)] * 400 + [(0, 8)] * 30 + [(0, 9)] * 20 + [(0, 7)] * 10 + [(2, 3)] * 50
    release = _released(GroupMeans(keys=[KEY], value=VALUE, epsilon=1), rows, ZeroNoise())
    assert release.count(_group(0)).value == pytest.approx(410)
    assert release.mean(_group(2)).value == pytest.approx(1.0, abs=0.2)
    assert release.nulls([release.everything]).value == 50
    found = {name: each.value for name, each in release.specials.items()}
    assert found == {"below": 0, "above": 10, "invalid": 30, "null": 20}


def test_other_questions_are_refused() -> None:
    """Sums, variances, and missing values by group were not released."""
    release = _released(GroupMeans(keys=[KEY], value=VALUE, epsilon=1), [(0, 3)] * 50, ZeroNoise())
    for ask in (release.sum, release.variance, release.std, release.nulls):
        with pytest.raises(InvalidParameter, match="only means were"):
            ask(_group(0))


def test_the_release_says_what_it_spent() -> None:
    """What a row costs, by the released scales, times the rows by which neighbours differ, is epsilon."""
    for options in ({}, {"contributions": 3}, {"neighbors": "change-one"}):
        mechanism = GroupMeans(keys=[KEY], value=WIDE, epsilon="1/3", **options)
        points = _points([(0, 3)], (KEY,), WIDE)
        release = mechanism.release(points)
        assert release.spent * mechanism.rows_changed == Fraction(1, 3)
        assert release.guarantee == mechanism.guarantee
        assert mechanism.release(points, noise=ZeroNoise()).guarantee is None


def test_a_column_of_one_value_has_that_mean() -> None:
    """Where nothing else can be, the clip has one end, and the mean is the value."""
    mechanism = GroupMeans(keys=[], value=Integer(7, 7), epsilon=1)
    release = _released(mechanism, [(1,)] * 300, tape_noise(EndlessTape(1)))
    assert release.mean([release.everything]).value == 7.0
    assert coupled(_run(mechanism), [(1,)] * 9, [(1,)] * 10, tape_noise(EndlessTape(1))) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"low": 3, "high": 3},
        {"low": 4, "high": 1},
        {"low": -2},
        {"high": 5},
        {"high": "4"},
        {"scale": "0"},
        {"centre": 5},
        {"centre": "0"},
        {"centre_rate": "-1/8"},
        {"centre_rate": None},
        {"more": 1},
    ],
    ids=str,
)
def test_damaged_facts_are_refused(change: dict[str, Any]) -> None:
    """A clip without two ends within the bounds, or with other facts beside, is no release."""
    parts = _released(GroupMeans(keys=[KEY], value=VALUE, epsilon=1), [(0, 3)] * 50, ZeroNoise()).parts()
    with pytest.raises(InvalidRelease):
        GroupMeansRelease.from_parts(
            Parts({**parts.facts, **change}, parts.series), None, keys=[KEY], value=VALUE
        )


def test_parts_make_the_same_release() -> None:
    """What a file holds answers as the release, also if it tells no centre; other keys do not fit."""
    release = _released(GroupMeans(keys=[KEY], value=VALUE, epsilon=1), [(0, 3), (0, 6)] * 50, ZeroNoise())
    again = GroupMeansRelease.from_parts(release.parts(), None, keys=[KEY], value=VALUE)
    assert again.mean(_group(0)) == release.mean(_group(0))
    before = {name: fact for name, fact in release.parts().facts.items() if not name.startswith("centre")}
    older = GroupMeansRelease.from_parts(Parts(before, release.parts().series), None, keys=[KEY], value=VALUE)
    assert older.mean(_group(0)) == release.mean(_group(0))
    for keys in ([KEY, KEY], [Axis(size=2**17)], [Axis(size=9)]):
        with pytest.raises(InvalidRelease):
            GroupMeansRelease.from_parts(release.parts(), None, keys=keys, value=VALUE)


def test_a_weaker_noise_than_promised_is_not_kept() -> None:
    """A release with a smaller scale spent more, and a view of it does not keep its promise."""
    release = GroupMeans(keys=[KEY], value=VALUE, epsilon=1).release(_points([(0, 3)], (KEY,), VALUE))
    assert replace(release, scale=release.scale / 2).spent > 1 == release.spent


def test_bad_parameters_are_named() -> None:
    """Every parameter that breaks its rule is named."""
    good: dict[str, Any] = {"keys": [KEY], "value": VALUE, "epsilon": 1}
    bad: list[tuple[str, Any]] = [
        ("keys", KEY),
        ("keys", [3]),
        ("keys", [KEY, KEY]),
        ("keys", [Axis(size=2**16 + 1)]),
        ("value", Category(["a"])),
        ("epsilon", 0),
        ("epsilon", Fraction(1, 10**19)),
        ("epsilon", 10**9),
        ("contributions", 0),
    ]
    for name, given in bad:
        with pytest.raises(InvalidParameter) as caught:
            GroupMeans(**{**good, name: given})
        assert caught.value.parameter == name


def test_bad_data_is_refused_before_any_draw() -> None:
    """Points on other axes, of people with more rows, or none at all draw no noise."""
    mechanism = GroupMeans(keys=[KEY], value=VALUE, epsilon=1)
    others = [
        {"secret": 987},
        _points([(0,)], (), VALUE),
        _points([(0, 1)], (KEY,), Integer(0, 9)),
        _points([(0, 1)], (KEY,), VALUE, contributions=2),
    ]
    for points in others:
        with pytest.raises((InvalidData, InvalidParameter)):
            mechanism.release(points, noise=ForbiddenNoise())  # type: ignore[arg-type]


SCHEMA: dict[str, Domain] = {"dest": Category(["JFK", "LAX", "SFO"]), "delay": Integer(-1440, 2880)}
FLIGHTS = {
    "dest": ["JFK", "LAX", None] * 400,
    "delay": [delay for row in range(400) for delay in (row % 40 - 10, row % 90 - 30, None)],
}
OPTIONS: dict[str, Any] = {"by": ["dest"], "sums": ["delay"], "mechanism": "group-means"}


def test_publish_releases_means_and_nothing_else(tmp_path: Any) -> None:
    """By name, with all of epsilon, and a file answers as the release; counts and sums are refused."""
    release = pt.publish(FLIGHTS, SCHEMA, epsilon=2, **OPTIONS)
    release.save(tmp_path / "means.parquet")
    again = pt.load(tmp_path / "means.parquet")

    assert [(view.mechanism, view.guarantee) for view in release.published] == [
        ("group-means", release.guarantee)
    ]
    assert again.mean("delay", dest="LAX") == release.mean("delay", dest="LAX")
    low, high = again.mean("delay", dest="LAX").interval(0.999)
    assert low <= np.mean([row % 90 - 30 for row in range(400)]) <= high
    assert not again.mean("delay", dest="SFO").determinable
    assert "noisy means of delay" in release.report()
    assert "true mean" in release.report()
    for ask, words in (
        (lambda: again.sum("delay", dest="JFK"), "only its means"),
        (lambda: again.variance("delay"), "must have moments"),
        (lambda: again.count(dest="JFK"), "counts were released"),
    ):
        with pytest.raises(InvalidParameter, match=words):
            ask()


def test_a_plan_says_what_means_cost() -> None:
    """One view, the error of a mean, and how many numbers."""
    shown = str(pt.plan(SCHEMA, epsilon=1, rows=1200, **OPTIONS))
    assert "group-means" in shown
    assert "a mean of a group" in shown


@pytest.mark.parametrize(
    "options",
    [
        {"by": ["dest"]},
        {"by": ["dest"], "moments": ["delay"]},
        {"by": ["delay"], "sums": ["delay"]},
        {"by": ["dest", "day"], "sums": ["delay"]},
        {"by": ["day"], "sums": ["delay"]},
    ],
    ids=str,
)
def test_what_means_cannot_do_is_refused_before_anything_is_read(options: dict[str, Any]) -> None:
    """No sums, moments, the column as its own key, two keys and too many groups are errors of `mechanism`."""
    schema = {**SCHEMA, "day": Integer(0, 2**20)}
    with pytest.raises(InvalidParameter) as caught:
        pt.plan(schema, epsilon=1, rows=10, **{**options, "mechanism": "group-means"})
    assert caught.value.parameter == "mechanism"


@pytest.mark.parametrize("huge", [0, 60], ids=["all zeros", "few huge values"])
def test_where_only_zeros_stand_out_the_guaranteed_bounds_are_the_interval(huge: int) -> None:
    """Nothing tells how large other values may be: the true mean is inside, and no width is zero."""
    value = Integer(0, 2**31)
    values = np.zeros(6_000, np.int64)
    values[:huge] = 2**20 * (1 + np.arange(huge))
    mechanism = GroupMeans(keys=[], value=value, epsilon=1)
    points = Points.from_rows((values + 1)[:, np.newaxis], axes=[Axis.of(value)])
    release = mechanism.release(points, noise=tape_noise(EndlessTape(4)))
    answer = release.mean([release.everything])
    low, high = answer.interval()

    assert (low, high) == pytest.approx(answer.worst())
    assert low <= values.mean() <= high
    assert " .. " in str(answer)
