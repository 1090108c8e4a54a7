"""Level trees: exact without noise, paid for by the row, and refused where they make no sense."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from partita.domain import Category, Domain, Integer, Real
from partita.domain.axis import Axis
from partita.errors import InvalidData, InvalidParameter
from partita.public.boxes.base import BoxTerm
from partita.public.sums.knots import Tops, ValueBuckets
from partita.public.sums.level_trees import Controls, LevelTreesRelease
from partita.public.sums.parts import best_tree, cut_into_cells
from partita.testing import CouplingBroken, EndlessTape, ForbiddenNoise, ZeroNoise, coupled, tape_noise
from partita.trusted.mechanisms.sums import LevelTrees
from partita.trusted.secret import Points

KEY = Axis(size=2, after=1)
VALUE = Integer(-1, 4)


def _points(rows: Sequence[tuple[int, ...]], keys: tuple[Axis, ...], value: Domain, **options: Any) -> Points:
    return Points.from_rows(
        np.array(rows).reshape(-1, len(keys) + 1), axes=[*keys, Axis.of(value)], **options
    )


def _plain_sum(release: LevelTreesRelease, term: BoxTerm) -> float:
    """The sum by plain least squares, everything covered."""
    estimate = release._estimate([term])
    controls, line = release.controls, release.value
    return float(((controls.values + line.origin * controls.ones) * float(line.step)) @ estimate.found)


@pytest.mark.parametrize("moments", [False, True])
@pytest.mark.parametrize(
    "value",
    [Integer(0, 2**31), Integer(-5000, 90_000), Integer(100, 300), Real(-2, 50, step="0.25")],
    ids=str,
)
def test_without_noise_sums_are_those_of_the_rows(value: Any, moments: bool) -> None:
    """Noise off, counts, sums and squares of every range are those of the rows, clamped to the caps."""
    random = np.random.default_rng(3)
    cells = np.minimum(random.exponential(value.size / 8, 4000).astype(np.int64), value.size - 1)
    keys = random.integers(0, 7, 4000)
    axis = Axis(size=7)
    release = LevelTrees(keys=[axis], value=value, epsilon=1, moments=moments).release(
        _points(list(zip(keys, cells + 1, strict=True)), (axis,), value), noise=ZeroNoise()
    )
    up, down = release.controls.tops[:2]
    offsets = np.clip(cells - release.value.down, -(down or 0), up or 0)

    for low, high in ((0, 6), (2, 4), (5, 5)):
        found = release._estimate([BoxTerm((low,), (high,))]).found
        chosen = offsets[(keys >= low) & (keys <= high)]
        assert found @ release.controls.ones == pytest.approx(chosen.size, rel=1e-12)
        assert found @ release.controls.values == pytest.approx(float(chosen.sum()), rel=1e-12)
        if moments:
            assert found @ release.controls.squares == pytest.approx(
                float((chosen.astype(np.float64) ** 2).sum()), rel=1e-9
            )


def test_leaves_hold_whole_masses() -> None:
    """The released integers of the leaves, over the unit, are the sums of the rows without any rounding."""
    rows = [(0, 2), (0, 6), (1, 5), (1, 3), (2, 4), (0, 0), (1, 7), (0, 8), (2, 9)]
    release = LevelTrees(keys=[KEY], value=VALUE, epsilon=1).release(
        _points(rows, (KEY,), VALUE), noise=ZeroNoise()
    )
    masses = release.noisy.reshape(release.controls.size, -1)[:, :3]
    line, tops = release.value, release.controls.tops
    for part in range(3):
        held = [
            line.offsets(np.array([place], np.uint64))[0] for key, place in rows if key == part and place < 8
        ]
        expected = sum(min(max(int(offset), -(tops.down or 0)), tops.up or 0) for offset in held)
        exact = sum(
            Fraction(value) * int(mass)
            for value, mass in zip(release.controls.values, masses[:, part], strict=True)
        )
        assert exact == expected * release.controls.unit


def _everything(release: LevelTreesRelease) -> tuple[Any, ...]:
    return release.buckets.tolist(), release.noisy.tolist(), release.scale, release.branching


def _run(mechanism: LevelTrees) -> Any:
    def run(rows: Any, noise: Any) -> Any:
        points = _points(rows, (KEY,), VALUE, contributions=mechanism.contributions)
        return _everything(mechanism.release(points, noise=noise))

    return run


PLACES = list(product(range(3), range(10)))


@pytest.mark.parametrize("moments", [False, True])
def test_one_row_costs_exactly_epsilon(moments: bool) -> None:
    """A row more, at any key and any value, null and out of bounds included, loses epsilon and no more."""
    mechanism = LevelTrees(keys=[KEY], value=VALUE, epsilon=1, moments=moments)
    data = [(0, 3), (1, 5), (1, 6)] * 300
    losses = {
        coupled(_run(mechanism), data, [*data, row], tape_noise(EndlessTape(seed)))
        for seed, row in enumerate(PLACES)
    }
    assert losses == {Fraction(1)}


def _caps(mechanism: LevelTrees, rows: Any) -> Tops:
    """The caps that the exact counts of buckets would speak for."""
    cap = mechanism.cap
    exact = cap.measure(_points(rows, (KEY,), VALUE), session=ZeroNoise())
    return cap.buckets.tops(exact, cap.scale)


@pytest.mark.parametrize("place", [5, 6])
def test_where_one_row_would_move_a_cap_it_costs_exactly_epsilon(place: int) -> None:
    """Caps follow from noisy buckets: neighbours whose exact counts speak for other caps have the same."""
    mechanism = LevelTrees(keys=[KEY], value=VALUE, epsilon=1)

    def crowd(rows: int) -> list[tuple[int, int]]:
        return [(0, 3)] * 300 + [(1, place)] * rows

    low, high = 0, 1_000
    while high - low > 1:
        middle = (low + high) // 2
        moved = _caps(mechanism, crowd(middle)) != _caps(mechanism, crowd(0))
        low, high = (low, middle) if moved else (middle, high)
    losses = {
        coupled(_run(mechanism), crowd(low), crowd(high), tape_noise(EndlessTape((place, seed))))
        for seed in range(3)
    }

    assert _caps(mechanism, crowd(low)) != _caps(mechanism, crowd(high))
    assert losses == {Fraction(1)}


def test_a_changed_row_costs_at_most_epsilon() -> None:
    """Under change-one neighbours a row that moves anywhere loses at most epsilon, and epsilon at worst."""
    mechanism = LevelTrees(keys=[KEY], value=VALUE, epsilon=1, neighbors="change-one")
    data = [(0, 3), (1, 6)] * 300
    losses = [
        coupled(_run(mechanism), [*data, (0, 3)], [*data, row], tape_noise(EndlessTape(seed)))
        for seed, row in enumerate(PLACES)
    ]
    assert max(losses) == 1


def test_a_person_with_several_rows_costs_at_most_epsilon() -> None:
    """With three rows a person, noise is three times as large, and three rows together lose epsilon."""
    mechanism = LevelTrees(keys=[KEY], value=VALUE, epsilon=1, contributions=3)
    data = [(0, 3)] * 300
    rows = [(1, 6), (1, 6), (1, 6)]
    assert coupled(_run(mechanism), data, data + rows, tape_noise(EndlessTape(1))) == 1


def _loss_over_many_keys() -> Any:
    """What a row costs where keys have a tree of several levels."""
    axis = Axis(size=200)
    mechanism = LevelTrees(keys=[axis], value=VALUE, epsilon=1)

    def run(rows: Any, noise: Any) -> Any:
        return _everything(mechanism.release(_points(rows, (axis,), VALUE), noise=noise))

    data = [(0, 3), (1, 5)] * 300
    return coupled(run, data, [*data, (7, 5)], tape_noise(EndlessTape(1)))


def test_all_levels_together_cost_epsilon() -> None:
    """A row is in a node of each level of the keys, and all of them share epsilon."""
    assert best_tree(200).levels > 1
    assert _loss_over_many_keys() == 1


def _planted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Controls.summed
    if name == "no levels in the scale":
        monkeypatch.setattr(
            LevelTrees, "_scale", lambda self, tree, controls: Fraction(controls.unit) / self._rate
        )
    elif name == "the unit forgotten":
        monkeypatch.setattr(LevelTrees, "_scale", lambda self, tree, controls: tree.levels / self._rate)
    elif name == "all of epsilon for the trees":
        monkeypatch.setattr(LevelTrees, "_rate", property(lambda self: self.rate))
    elif name == "double mass":
        monkeypatch.setattr(Controls, "summed", lambda self, *given: 2 * honest(self, *given))
    elif name == "the neighbours ignored":
        monkeypatch.setattr(LevelTrees, "_rate", property(lambda self: 2 * self.rate))


@pytest.mark.parametrize(
    "bug",
    [
        "no levels in the scale",
        "the unit forgotten",
        "all of epsilon for the trees",
        "double mass",
        "the neighbours ignored",
    ],
)
def test_planted_bugs_cost_more_than_epsilon(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scales without levels or unit, masses counted twice, and shares spent twice are all seen."""
    _planted(bug, monkeypatch)
    assert _loss_over_many_keys() > 1


def test_a_true_maximum_as_cap_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """If caps came from the data and not from noisy counts, neighbours would ask for other noise."""
    value = Integer(0, 10**6)
    mechanism = LevelTrees(keys=[], value=value, epsilon=1)
    largest: list[int] = []
    honest = ValueBuckets.of

    def spied(self: ValueBuckets, places: Any) -> Any:
        largest.append(int(places.max()))
        return honest(self, places)

    monkeypatch.setattr(ValueBuckets, "of", spied)
    monkeypatch.setattr(ValueBuckets, "tops", lambda *_: Tops(1 << largest[-1].bit_length(), None))

    def run(rows: Any, noise: Any) -> Any:
        return _everything(mechanism.release(_points(rows, (), value), noise=noise))

    with pytest.raises(CouplingBroken):
        coupled(run, [(5,)], [(5,), (70_000,)], tape_noise(EndlessTape(1)))


def test_four_times_the_values_have_four_times_the_sums() -> None:
    """On one tape, values times four give every sum, error and lower bound times four, exactly.

    The upper bound is about all values, up to the declared bound, which stays.
    """
    axis, value, random = Axis(size=30), Integer(0, 2**50), np.random.default_rng(5)
    mechanism = LevelTrees(keys=[axis], value=value, epsilon=1)
    keys, values = random.integers(0, 30, 20_000), 4 ** random.integers(8, 14, 20_000)

    def release(factor: int) -> LevelTreesRelease:
        rows = np.stack([keys, factor * values + 1], axis=1)
        points = Points.from_rows(rows, axes=[axis, Axis.of(value)])
        return mechanism.release(points, noise=tape_noise(EndlessTape(11)))

    once, more = release(1), release(4)
    assert more.controls.tops.up == 4 * (once.controls.tops.up or 0)
    for term in (BoxTerm((0,), (29,)), BoxTerm((3,), (7,)), BoxTerm((11,), (11,))):
        small, large = once.sum([term]), more.sum([term])
        assert (large.value, large.error, large.covers.high) == (
            4 * small.value,
            4 * small.error,
            4 * small.covers.high,
        )
        assert large.worst()[0] == 4 * small.worst()[0]


def test_the_release_says_what_it_spent() -> None:
    """What a row costs, by the released scales, times the rows by which neighbours differ, is epsilon."""
    for options in ({}, {"contributions": 3}, {"neighbors": "change-one"}):
        mechanism = LevelTrees(keys=[KEY], value=VALUE, epsilon="1/3", **options)
        points = _points([(0, 3)], (KEY,), VALUE)
        release = mechanism.release(points)
        assert release.spent * mechanism.rows_changed == Fraction(1, 3)
        assert release.guarantee == mechanism.guarantee
        assert mechanism.release(points, noise=ZeroNoise()).guarantee is None


def test_null_and_invalid_count_as_nothing() -> None:
    """Rows without a number add nothing to sums and means, and are counted apart."""
    rows = [(0, 6)] * 400 + [(0, 8)] * 30 + [(0, 9)] * 20 + [(0, 7)] * 10
    release = LevelTrees(keys=[KEY], value=VALUE, epsilon=1).release(
        _points(rows, (KEY,), VALUE), noise=ZeroNoise()
    )
    everything = [release.everything]
    assert release.count(everything).value == pytest.approx(410)
    assert release.nulls(everything).value == pytest.approx(50)
    assert release.mean(everything).value == pytest.approx(4.0)
    found = {name: each.value for name, each in release.specials.items()}
    assert found == pytest.approx({"below": 0, "above": 10, "invalid": 30, "null": 20})


def test_special_cells_have_the_errors_of_their_noise() -> None:
    """Of 40 intervals of 95%, at least 34 hold the count of each, and so do all certain ones."""
    truth = {"below": 40, "above": 10, "invalid": 30, "null": 20}
    rows = [(0, 6)] * 400 + [(0, 8)] * 30 + [(0, 9)] * 20 + [(0, 7)] * 10 + [(1, 0)] * 40
    mechanism, points = LevelTrees(keys=[KEY], value=VALUE, epsilon=1), _points(rows, (KEY,), VALUE)
    releases = [mechanism.release(points, noise=tape_noise(EndlessTape(seed))) for seed in range(40)]
    for name, number in truth.items():
        found = [release.specials[name] for release in releases]
        assert sum(low <= number <= high for low, high in (each.interval() for each in found)) >= 34
        assert all(low <= number <= high for low, high in (each.worst(1e-6) for each in found))


def test_both_sides_of_signed_values_count() -> None:
    """Values on both sides of zero, by many keys: no mean loses the side of which fewer rows are."""
    random = np.random.default_rng(3)
    value, axis = Integer(-1000, 1000), Axis(size=100)
    values = np.clip(np.rint(random.normal(-50, 200, 4732)), -1000, 1000).astype(np.int64)
    rows = list(zip(random.integers(0, 100, 4732), values + 1001, strict=True))
    mechanism, points = LevelTrees(keys=[axis], value=value, epsilon=1), _points(rows, (axis,), value)
    for seed in range(8):
        release = mechanism.release(points, noise=tape_noise(EndlessTape(seed)))
        mean = release.mean([release.everything])
        assert mean.value == pytest.approx(values.mean(), abs=10)
        assert mean.covers.low <= -300
        assert mean.covers.high >= 300


@pytest.mark.parametrize(
    ("keys", "value", "held", "told"),
    [
        ((Axis(size=7),), Integer(-50, 900), 110, "from -50 to 448; sums are over 7 parts of the keys."),
        ((), Integer(-1000, 100), -110, "from -448 to 100; sums are over all rows together."),
        ((), Integer(0, 100), 90, "from 0 to 100; sums are over all rows together."),
        ((), Integer(7, 7), 7, "from 7 to 7; sums are over all rows together."),
    ],
)
def test_the_story_says_which_values_are_told_apart(
    keys: tuple[Axis, ...], value: Integer, held: int, told: str
) -> None:
    """Within the declared bounds, and on both sides."""
    rows = [(*(0 for _ in keys), held - value.low + 1)] * 500
    release = LevelTrees(keys=keys, value=value, epsilon=1).release(
        _points(rows, keys, value), noise=ZeroNoise()
    )
    assert release.story == f"Values are told apart {told}"


def test_a_mean_of_next_to_nothing_is_not_determinable() -> None:
    """Where the count may be zero, a mean is not a number and its interval is all that is possible."""
    release = LevelTrees(keys=[KEY], value=VALUE, epsilon="1/100").release(
        _points([(0, 6)], (KEY,), VALUE), noise=tape_noise(EndlessTape(4))
    )
    mean = release.mean([BoxTerm((1,), (1,))])
    assert not mean.determinable
    assert np.isnan(mean.value)
    assert mean.interval() == (mean.interval(0.5)[0], mean.interval()[1])
    assert str(mean).startswith("not determinable")


def test_a_variance_needs_moments() -> None:
    """Without moments a variance is refused, and the error says what to ask for."""
    release = LevelTrees(keys=[], value=VALUE, epsilon=1).release(
        _points([(3,)], (), VALUE), noise=ZeroNoise()
    )
    with pytest.raises(InvalidParameter, match="moments="):
        release.variance([release.everything])


def test_bad_parameters_are_named() -> None:
    """Every parameter that breaks its rule is named."""
    good: dict[str, Any] = {"keys": [KEY], "value": VALUE, "epsilon": 1}
    bad: list[tuple[str, Any]] = [
        ("keys", KEY),
        ("keys", [3]),
        ("keys", [KEY] * 7),
        ("value", Category(["a"])),
        ("epsilon", 0),
        ("epsilon", Fraction(1, 10**12)),
        ("moments", 1),
        ("contributions", 0),
    ]
    for name, given in bad:
        with pytest.raises(InvalidParameter) as caught:
            LevelTrees(**{**good, name: given})
        assert caught.value.parameter == name


def test_bad_data_is_refused_before_any_draw() -> None:
    """Points on other axes, of people with more rows, or none at all draw no noise."""
    mechanism = LevelTrees(keys=[KEY], value=VALUE, epsilon=1)
    others = [
        {"secret": 987},
        _points([(0,)], (), VALUE),
        _points([(0, 1)], (KEY,), Integer(0, 9)),
        _points([(0, 1)], (KEY,), VALUE, contributions=2),
    ]
    for points in others:
        with pytest.raises((InvalidData, InvalidParameter)):
            mechanism.release(points, noise=ForbiddenNoise())  # type: ignore[arg-type]


def test_many_keys_need_their_counts() -> None:
    """Where keys have many cells, what was released about them must be given; few cells need nothing."""
    axis = Axis(size=10**9)
    mechanism = LevelTrees(keys=[axis], value=VALUE, epsilon=1)
    points = _points([(5, 3)], (axis,), VALUE)
    with pytest.raises(InvalidParameter) as caught:
        mechanism.release(points, noise=ForbiddenNoise())
    assert caught.value.parameter == "density"
    assert cut_into_cells((KEY,)).parts == KEY.width
