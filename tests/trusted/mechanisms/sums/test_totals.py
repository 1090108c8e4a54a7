"""Totals alone: exact splits, paid for by the row, honest about the true total, refused where they must."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from partita.domain import Category, Domain, Integer, Real
from partita.domain.axis import Axis
from partita.errors import InvalidParameter
from partita.public.axis.base import Parts
from partita.public.boxes.base import BoxTerm
from partita.public.sums.base import ValueLine
from partita.public.sums.knot_walk import UNIT, KnotSide, blend_groups
from partita.public.sums.knots import list_knots
from partita.public.sums.totals import (
    Caps,
    KnotTotalRelease,
    Magnitudes,
    TotalKnots,
    list_lower,
    split_rows,
)
from partita.testing import (
    CouplingBroken,
    EndlessTape,
    ForbiddenNoise,
    ZeroNoise,
    coupled,
    replay_publish,
    tape_noise,
)
from partita.trusted.mechanisms.totals import KnotTotal
from partita.trusted.secret import Points

VALUE = Integer(-3, 6)
PLACES = range(14)  # below, -3 to 6, above, invalid, null
NUMBERS = range(1, 11)
MOVING: dict[str, Any] = {"neighbors": "change-one"}


def _points(places: Any, value: Domain, **options: Any) -> Points:
    return Points.from_rows(np.array(places).reshape(-1, 1), axes=[Axis.of(value)], **options)


def _column(values: Any, value: Integer) -> Points:
    return _points(np.asarray(values) - int(value.low) + 1, value)


def _everything(release: KnotTotalRelease) -> tuple[Any, ...]:
    return release.buckets.tolist(), release.noisy.tolist(), release.scale, release.knots.sides


def _run(mechanism: KnotTotal) -> Callable[[Any, Any], Any]:
    def run(places: Any, noise: Any) -> Any:
        points = _points(places, mechanism.value, contributions=mechanism.contributions)
        return _everything(mechanism.release(points, noise=noise))

    return run


# --- what is measured ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [Integer(0, 2**63 - 1), Integer(-(2**62), 2**62 - 1), Integer(7, 2**40), Integer(-90, -3)],
    ids=str,
)
def test_without_noise_masses_say_the_total_but_for_the_floor(value: Integer) -> None:
    """The exact total lies between the masses times their knots and that plus width / U for every row."""
    random, length = np.random.default_rng(4), int(value.high) - int(value.low)
    values = [int(value.low) + int(share * length) for share in random.random(500) ** 6]
    release = KnotTotal(value=value, epsilon=1).release(_column(values, value), noise=ZeroNoise())
    above = len(release.knots.sides[0])
    signs = [0, *release.knots.sides[0], *(-knot for knot in release.knots.sides[1])]
    widest = max(knot for side in release.knots.sides for knot in side)

    exact = Fraction(sum(int(mass) * knot for mass, knot in zip(release.noisy, signs, strict=True)), UNIT)

    assert sum(map(int, release.noisy)) == 500 * UNIT
    assert abs(sum(values) - exact) <= Fraction(500 * widest, UNIT)
    assert min(map(int, release.noisy[: above + 1])) >= 0


@pytest.mark.parametrize("cap", [1, 2, 3, 5, 7, 2**30, 2**40 + 1, 2**62])
def test_splits_are_the_floor_in_python_integers(cap: int) -> None:
    """Narrow gaps in 64 bits and wide ones in Python integers give (x - L) U // (H - L), from 0 to U."""
    knots = list_knots(cap, 2**63 - 1)
    sizes = [1, cap, *(knot + shift for knot in knots for shift in (-1, 0, 1)), 2**63 - 1]
    sizes = sorted({size for size in sizes if 0 < size <= 2**63 - 1})
    ends = (0, *knots)

    gap, upper = split_rows(knots, np.array(sizes, np.uint64))

    for size, place, mass in zip(sizes, gap.tolist(), upper.tolist(), strict=True):
        low, high = ends[place], ends[place + 1]
        assert low < size <= high
        assert mass == (size - low) * UNIT // (high - low)
        assert 0 <= mass <= UNIT


def test_more_than_2_to_the_32_rows_have_exact_masses() -> None:
    """Sums of masses that need more than 64 bits are Python integers."""
    knots = TotalKnots(Magnitudes(ValueLine.of(Integer(0, 100))), Caps(3, None, seen=True))
    masses = knots.masses(np.array([1, 3, 4], np.uint64), np.array([2**60, 2**60, 7]))
    assert masses.tolist()[:2] == [
        2**60 * UNIT + 2**60 * (UNIT - 2 * UNIT // 3),
        2**60 * (2 * UNIT // 3) + 7 * UNIT,
    ]


@pytest.mark.parametrize("caps", list(product((1, 2, 3, 4, 6), (1, 2, 3))), ids=str)
def test_for_all_knots_a_row_has_one_unit_and_a_change_moves_two(caps: tuple[int, int]) -> None:
    """Of every value and every pair of values: the L1 distance of masses is U, and at most 2 U."""
    knots = TotalKnots(Magnitudes(ValueLine.of(VALUE)), Caps(*caps, seen=True))
    masses = {place: knots.masses(np.array([place], np.uint64), np.array([1])) for place in PLACES}

    assert {place: int(np.abs(each).sum()) for place, each in masses.items()} == {
        place: UNIT if place in NUMBERS else 0 for place in PLACES
    }
    assert (
        max(int(np.abs(one - other).sum()) for one, other in product(masses.values(), repeat=2)) == 2 * UNIT
    )


def test_special_cells_are_no_part_of_the_total() -> None:
    """Rows below, above, invalid and null add nothing to any bucket or mass."""
    mechanism = KnotTotal(value=VALUE, epsilon=1)
    release = mechanism.release(_points([0, 11, 12, 13] * 9, VALUE), noise=ZeroNoise())

    assert not release.buckets.any()
    assert not any(map(int, release.noisy))


# --- what it costs -------------------------------------------------------------------------------

CROWD = [6, 8, 10, 2] * 400


def test_one_row_costs_at_most_epsilon() -> None:
    """A row with a magnitude costs epsilon, a zero 19/20 of it, and a special cell nothing."""
    run = _run(KnotTotal(value=VALUE, epsilon=1))
    losses = [coupled(run, CROWD, [*CROWD, place], tape_noise(EndlessTape(place))) for place in PLACES]

    zero = 4
    paid = [Fraction(19, 20) if place == zero else Fraction(place in NUMBERS) for place in PLACES]
    assert losses == paid


def test_a_changed_row_costs_at_most_epsilon() -> None:
    """Under change-one neighbours some move loses all of epsilon, and none loses more."""
    run = _run(KnotTotal(value=VALUE, epsilon=1, **MOVING))
    losses = [
        coupled(run, [*CROWD, one], [*CROWD, other], tape_noise(EndlessTape((one, other))))
        for one, other in product((1, 4, 7, 10, 13), PLACES)
    ]
    assert max(losses) == 1


def test_a_person_with_several_rows_costs_at_most_epsilon() -> None:
    """Three rows of one person together lose epsilon where three may count."""
    run = _run(KnotTotal(value=VALUE, epsilon=1, contributions=3))
    assert coupled(run, CROWD, [*CROWD, 10, 7, 1], tape_noise(EndlessTape(1))) == 1


def _seen_caps(rows: int) -> Caps:
    """The caps that exact counts of magnitudes would choose."""
    mechanism = KnotTotal(value=VALUE, epsilon=1)
    exact = mechanism.release(_crowd(rows), noise=ZeroNoise()).buckets
    return mechanism.magnitudes.caps(exact, mechanism.bucket_scale)


def _crowd(rows: int) -> Points:
    return _points([5] * 900 + [10] * rows, VALUE)


def _couple_at_the_edge(seed: int) -> Fraction:
    """The loss of the row that would move the cap, were it chosen by exact counts."""
    mechanism = KnotTotal(value=VALUE, epsilon=1)

    def run(rows: Any, noise: Any) -> Any:
        return _everything(mechanism.release(_crowd(rows), noise=noise))

    rows = bisect(range(2_000), 0, key=lambda rows: _seen_caps(rows) != _seen_caps(0)) - 1
    assert _seen_caps(rows) != _seen_caps(rows + 1)
    return coupled(run, rows, rows + 1, tape_noise(EndlessTape(seed)))


def test_where_one_row_would_move_the_knots_it_costs_exactly_epsilon() -> None:
    """Knots follow from noisy counts: neighbours whose exact counts choose other knots have the same."""
    assert {_couple_at_the_edge(seed) for seed in range(3)} == {Fraction(1)}


@pytest.mark.parametrize("by", [None, "sex"])
@pytest.mark.parametrize("protected", [{}, MOVING, {"contributions": 2, "person": "id"}], ids=str)
def test_published_totals_replay_within_epsilon(protected: dict[str, Any], by: str | None) -> None:
    """From two tables to two files: the same bytes are at most e times as likely, by groups, too."""
    others: dict[str, list[Any]] = {"id": [3, 4, 5, 6], "pay": [1, 6, -2, None], "sex": ["a", "b", "a", "b"]}
    rows = protected.get("contributions", 1)
    before: list[int] = [0] if protected == MOVING else []
    one, other = (
        {
            "id": [1] * len(pay) + others["id"],
            "pay": [*pay, *others["pay"]],
            "sex": [sex] * len(pay) + others["sex"],
        }
        for pay, sex in ((before, "a"), ([6] * rows, "b"))
    )
    asked: dict[str, Any] = {"epsilon": Fraction(1), "sums": ["pay"], "mechanism": "totals", **protected}
    schema: dict[str, Domain] = {"pay": VALUE, "sex": Category(["a", "b"])}

    loss = replay_publish(one, other, schema, passes=3, seed=1, by=by, **asked)

    assert loss <= 1
    assert float(loss) > 0.9


# --- planted bugs --------------------------------------------------------------------------------


def _most_loss(**protected: Any) -> Fraction:
    """The largest loss over rows that come, or move where neighbours do."""
    run = _run(KnotTotal(value=VALUE, epsilon=1, **protected))
    first = [1] if protected else []
    rows = [place for place in PLACES if place in NUMBERS]
    return max(
        coupled(run, [*CROWD, *first], [*CROWD, place], tape_noise(EndlessTape(place))) for place in rows
    )


def test_knots_from_true_counts_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """If exact counts chose the knots, the two runs would measure other masses."""
    exact: list[Any] = []
    shipped = Magnitudes.count
    choose = Magnitudes.caps

    def count(self: Magnitudes, places: Any, counts: Any) -> Any:
        exact.append(shipped(self, places, counts))
        return exact[-1]

    def caps(self: Magnitudes, noisy: Any, scale: Fraction, **options: Any) -> Caps:
        return choose(self, exact[-1], scale, **options)

    _couple_at_the_edge(0)
    monkeypatch.setattr(Magnitudes, "count", count)
    monkeypatch.setattr(Magnitudes, "caps", caps)

    with pytest.raises(CouplingBroken):
        _couple_at_the_edge(0)


def test_change_one_forgotten_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise for one unit where a row that moves changes two loses more than epsilon."""
    assert _most_loss(**MOVING) == 1
    monkeypatch.setattr(KnotTotal, "rows_changed", 1)

    assert _most_loss(**MOVING) > 1


def test_two_roundings_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """If both shares of a row were rounded up and not one down, it would have more than one unit."""
    shipped, grain = TotalKnots.masses, UNIT // 2

    def masses(self: TotalKnots, places: Any, counts: Any, *groups: Any) -> Any:
        rows = [shipped(self, places[row : row + 1], np.array([1])) for row in range(len(places))]
        return sum(
            (-(-row // grain) * grain * int(count) for row, count in zip(rows, counts, strict=True)), 0
        )

    assert _most_loss() == 1
    monkeypatch.setattr(TotalKnots, "masses", masses)

    assert _most_loss() > 1


@pytest.mark.parametrize("protected", [{}, MOVING, {"contributions": 3}], ids=str)
def test_parts_that_exceed_epsilon_draw_no_noise(
    protected: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Magnitudes that nobody has paid for end the release before the first draw."""
    mechanism = KnotTotal(value=VALUE, epsilon=1, **protected)
    monkeypatch.setattr(KnotTotal, "scale", property(lambda self: UNIT / self.rate))

    with pytest.raises(AssertionError, match="more than their epsilon"):
        mechanism.release(_points(CROWD, VALUE), noise=ForbiddenNoise())


def test_a_release_with_too_little_noise_breaks_its_promise() -> None:
    """What a row costs follows from both scales, and is epsilon."""
    release = KnotTotal(value=VALUE, epsilon="1/3").release(_points(CROWD, VALUE))
    assert release.spent == Fraction(1, 3)
    assert KnotTotal(value=VALUE, epsilon=1, contributions=2, **MOVING).release(
        _points(CROWD, VALUE)
    ).spent == (Fraction(1, 4))


# --- what it says --------------------------------------------------------------------------------


def _side(masses: Sequence[float], *, seen: bool = True, guide: int | None = None) -> KnotSide:
    knots = np.array([10.0 * 2**place for place in range(len(masses))])
    return KnotSide(knots, np.array(masses, np.float64), 1.0, int(seen), guide)


@pytest.mark.parametrize(
    ("masses", "top"),
    [
        ([50, 3.9, 0, 0], 1),
        ([50, 4.1, 0, 0], 2),
        ([50, 9, 2.9, 0], 2),
        ([50, 9, 3.1, 0], 3),
        ([50, 0, 8.4, 0], 1),
        ([50, 0, 8.5, 0], 3),
        ([50, 0, 0, 10.1], 1),
        ([50, 0, 0, 10.3], 4),
    ],
)
def test_the_walk_covers_loud_knots(masses: list[float], top: int) -> None:
    """Next knots above 4, then 3 scales; a jump over silence needs 5 and 1.73 more for each doubling."""
    assert _side(masses).top == top


def test_where_no_magnitude_is_clear_three_loud_knots_begin() -> None:
    """The loudest three neighbours count if they hold more than 12 scales; else nothing is covered.

    The last of them is left out below 2 scales.
    """
    assert _side([0, 0, 5, 5, 2.1, 0, 0], seen=False).top == 5
    assert _side([0, 0, 6, 5, 1.9, 0, 0], seen=False).top == 4
    assert _side([0, 0, 5, 5, 1.9, 0, 0], seen=False).top == 0


def _answer(values: Any, value: Integer, *, epsilon: Any = 1, tape: object = 0) -> Any:
    mechanism = KnotTotal(value=value, epsilon=epsilon)
    return mechanism.release(_column(values, value), noise=tape_noise(EndlessTape(tape))).sum([])


COST = Integer(0, 10**9)


def test_a_total_says_what_it_is_about_and_what_it_assumes() -> None:
    """The first line is the subject; the second has the least total, and the interval with its assumption."""
    first, second = str(_answer([1_000] * 5_000, COST)).splitlines()

    assert (
        first == "Total of all values from 0 to 1,000,000,000; null, invalid and out of bounds are left out."
    )
    assert second.startswith("At least ")
    assert second.endswith(" if the tail thins out.")


def test_where_nothing_stands_out_there_is_only_an_upper_end() -> None:
    """No rows at all: below H, and neither interval nor error has zero width."""
    answer = _answer([], COST)

    assert str(answer).splitlines()[1].startswith("Below ")
    assert answer.value == 0.0
    assert answer.error > 0.0
    assert answer.interval() == answer.worst()
    assert answer.interval()[1] > 10**9


def test_where_all_knots_are_covered_nothing_is_assumed() -> None:
    """Values at the declared bound: no knot is silent, and the answer covers all values."""
    answer = _answer([100] * 5_000, Integer(0, 100))

    assert "tail" not in str(answer)
    assert answer.covers.text == "all values"


@pytest.mark.parametrize("tape", range(5))
@pytest.mark.parametrize("value", [COST, Integer(-(10**9), 10**9), Integer(500, 10**6)], ids=str)
def test_guaranteed_bounds_hold_the_true_total(value: Integer, tape: int) -> None:
    """On five tapes for each column, one row at the very end included, which no interval could promise."""
    random = np.random.default_rng(tape)
    drawn = np.exp(random.normal(7, 1, 3_000)).astype(np.int64) * (-1 if value.low < 0 else 1)
    values = [*np.clip(drawn, int(value.low), int(value.high)).tolist(), int(value.high)]
    answer = _answer(values, value, tape=tape)
    low, high = answer.worst(0.01)

    assert low <= sum(values) <= high
    assert low <= answer.interval()[0] <= answer.interval()[1] <= high


def test_both_sides_of_zero_cancel() -> None:
    """Where only one side has clear magnitudes, the other has the same first knot and adds only its noise."""
    value = Integer(-(10**6), 10**6)
    release = KnotTotal(value=value, epsilon=1).release(
        _column([-700] * 4_000, value), noise=tape_noise(EndlessTape(2))
    )
    assert release.knots.sides[0] == release.knots.sides[1]
    assert release.sum([]).value == pytest.approx(-2_800_000, rel=0.01)


def test_steps_scale_the_total() -> None:
    """Values in hundredths have a hundredth of the total of the same cells."""
    cells = [250] * 3_000
    whole, cents = Integer(0, 10**6), Real(0, 10**4, step="0.01")
    answers = [
        KnotTotal(value=value, epsilon=1)
        .release(_points([cell + 1 for cell in cells], value), noise=tape_noise(EndlessTape(3)))
        .sum([])
        for value in (whole, cents)
    ]
    assert answers[0].value == pytest.approx(100 * answers[1].value)
    assert answers[0].worst()[1] == pytest.approx(100 * answers[1].worst()[1])


def test_other_questions_are_refused() -> None:
    """Nulls, variances and special cells were not released."""
    release = KnotTotal(value=VALUE, epsilon=1).release(_points(CROWD, VALUE), noise=ZeroNoise())

    assert release.specials == {}
    for question in (release.nulls, release.variance, release.std):
        with pytest.raises(InvalidParameter, match="totals, means and numbers of rows were"):
            question([])


@pytest.mark.parametrize(
    ("value", "options", "parameter"),
    [
        (Category(["a"]), {}, "value"),
        (Integer(2**63 - 5, 2**63), {}, "value"),
        (VALUE, {"epsilon": Fraction(1, 2**60)}, "epsilon"),
        (VALUE, {"contributions": 0}, "contributions"),
        (VALUE, {"keys": [Axis(size=4_097)]}, "keys"),
    ],
)
def test_what_cannot_be_summed_is_refused_before_any_noise(
    value: Any, options: dict[str, Any], parameter: str
) -> None:
    """When the mechanism is made, so that nothing is spent."""
    with pytest.raises(InvalidParameter) as refused:
        KnotTotal(**{"value": value, "epsilon": 1, **options})
    assert refused.value.parameter == parameter


def test_points_of_another_column_draw_no_noise() -> None:
    """They are refused first."""
    with pytest.raises(Exception, match="must lie on the mechanism's axes"):
        KnotTotal(value=VALUE, epsilon=1).release(_points([1], Integer(0, 3)), noise=ForbiddenNoise())


# --- by groups -----------------------------------------------------------------------------------

KEY = Axis(size=3, after=1)
GROUPED = KnotTotal(keys=[KEY], value=VALUE, epsilon=1)


def _run_by_group(mechanism: KnotTotal) -> Callable[[Any, Any], Any]:
    def run(rows: Any, noise: Any) -> Any:
        return _everything(mechanism.release(_grouped(rows, mechanism.contributions), noise=noise))

    return run


def _grouped(rows: Any, contributions: int = 1) -> Points:
    axes = [KEY, Axis.of(VALUE)]
    return Points.from_rows(np.array(rows).reshape(-1, 2), axes=axes, contributions=contributions)


TEAMS = [(number % 4, place) for number, place in enumerate(CROWD)]


def test_masses_of_a_group_are_those_of_its_rows() -> None:
    """Group by group they are what the same knots say of its rows alone, and nothing of others."""
    release = GROUPED.release(_grouped(TEAMS), noise=ZeroNoise())
    alone = [
        release.knots.masses(np.array([place for team, place in TEAMS if team == group], np.uint64), ones)
        for group in range(4)
        if (ones := np.ones(sum(team == group for team, _ in TEAMS), np.int64)).size
    ]
    assert release.noisy.reshape(4, -1).tolist() == [each.tolist() for each in alone]


def test_a_row_of_a_group_costs_at_most_epsilon() -> None:
    """Whatever its group and its value; a row with a magnitude costs epsilon."""
    run = _run_by_group(GROUPED)
    losses = {
        (group, place): coupled(run, TEAMS, [*TEAMS, (group, place)], tape_noise(EndlessTape(place)))
        for group, place in product((0, 3), PLACES)
    }
    assert {loss for (_, place), loss in losses.items() if place in NUMBERS} == {
        Fraction(1),
        Fraction(19, 20),
    }
    assert {loss for (_, place), loss in losses.items() if place not in NUMBERS} == {Fraction(0)}


def test_a_row_that_moves_to_another_group_costs_at_most_epsilon() -> None:
    """One unit leaves a group and another one comes to the next: two in all, and the noise is for two."""
    run = _run_by_group(KnotTotal(keys=[KEY], value=VALUE, epsilon=1, **MOVING))
    losses = [
        coupled(run, [*TEAMS, (0, one)], [*TEAMS, (2, other)], tape_noise(EndlessTape((one, other))))
        for one, other in product((1, 4, 10), PLACES)
    ]
    assert max(losses) == 1


def test_a_person_in_several_groups_costs_at_most_epsilon() -> None:
    """Three rows in three groups together lose epsilon where three may count."""
    run = _run_by_group(KnotTotal(keys=[KEY], value=VALUE, epsilon=1, contributions=3))
    assert coupled(run, TEAMS, [*TEAMS, (0, 10), (1, 7), (3, 1)], tape_noise(EndlessTape(1))) == 1


def test_groups_with_all_of_epsilon_each_are_caught_where_a_person_is_in_several(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Groups are disjoint for rows, but not for persons."""
    mechanism = KnotTotal(keys=[KEY], value=VALUE, epsilon=1, contributions=3)
    monkeypatch.setattr(KnotTotal, "rows_changed", 1)

    run = _run_by_group(mechanism)

    assert coupled(run, TEAMS, [*TEAMS, (0, 10), (1, 7), (3, 1)], tape_noise(EndlessTape(1))) > 1


def _pay(groups: int = 6, *, seed: int = 0, spread: float = 0.0) -> tuple[Any, Any]:
    """Groups of 1,500 rows, and values of each; scales differ by group with a spread."""
    random = np.random.default_rng(seed)
    team = np.repeat(np.arange(groups), 1_500)
    factor = np.exp(random.normal(0, spread, groups))[team]
    return team, np.exp(random.normal(8, 0.8, team.size) + np.log(factor)).astype(np.int64)


def _by_team(epsilon: Any, *, tape: object = 0, groups: int = 6, spread: float = 0.0) -> tuple[Any, Any, Any]:
    team, values = _pay(groups, spread=spread)
    mechanism = KnotTotal(keys=[Axis(size=groups)], value=COST, epsilon=epsilon)
    points = Points.from_rows(np.stack([team, values + 1], axis=1), axes=[Axis(size=groups), Axis.of(COST)])
    return mechanism.release(points, noise=tape_noise(EndlessTape(tape))), team, values


def _team(*groups: int) -> list[BoxTerm]:
    return [BoxTerm((group,), (group,)) for group in groups]


@pytest.mark.parametrize("epsilon", ["1/10", "1"])
@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_groups_have_their_totals_means_and_rows(epsilon: str, spread: float) -> None:
    """Intervals hold the true total, the true mean and the true number of rows of each group, and of all."""
    release, team, values = _by_team(epsilon, spread=spread)
    for asked, rows in [(_team(group), team == group) for group in range(6)] + [
        (_team(1, 4), np.isin(team, (1, 4))),
        ([release.everything], team >= 0),
    ]:
        total, mean, count = release.sum(asked), release.mean(asked), release.count(asked)
        for answer, truth in (
            (total, values[rows].sum()),
            (mean, values[rows].mean()),
            (count, rows.sum()),
        ):
            low, high = answer.interval(0.99)
            assert low <= truth <= high
            assert low <= answer.value <= high
            least, most = answer.worst(0.001)
            assert least <= truth <= most


def test_intervals_hold_in_groups_of_other_scales() -> None:
    """Scales of 16 groups differ widely: 93% of intervals hold, of totals and of means."""
    held = {"sum": 0, "mean": 0}
    for tape in range(4):
        release, team, values = _by_team(1, tape=tape, groups=16, spread=1.5)
        for group in range(16):
            own, asked = values[team == group], _team(group)
            for name, answer, truth in (
                ("sum", release.sum(asked), own.sum()),
                ("mean", release.mean(asked), own.mean()),
            ):
                low, high = answer.interval()
                held[name] += low <= truth <= high

    assert min(held.values()) >= 0.93 * 64


def test_a_total_of_all_groups_has_no_bias_that_adds_up() -> None:
    """Sixty groups whose largest values noise hides one by one: together they are within a tenth."""
    release, _, values = _by_team("1/5", groups=60)
    assert release.sum([release.everything]).value == pytest.approx(values.sum(), rel=0.1)


def test_a_tail_of_all_groups_that_does_not_thin_out_is_not_assumed_to() -> None:
    """Forty rows of each group lie far beyond the others, and no group sees them by itself."""
    values = np.r_[np.full(4_000, 50), np.full(320, 10**6)]
    rows = np.stack([np.arange(values.size) % 8, values + 1], axis=1)
    points = Points.from_rows(rows, axes=[Axis(size=8), Axis.of(COST)])
    mechanism = KnotTotal(keys=[Axis(size=8)], value=COST, epsilon="1/10")
    for tape in range(4):
        release = mechanism.release(points, noise=tape_noise(EndlessTape(tape)))
        for group in range(8):
            own = values[rows[:, 0] == group]
            total, mean = (ask(_team(group)) for ask in (release.sum, release.mean))
            assert total.interval()[0] <= own.sum() <= total.interval()[1]
            assert mean.interval()[0] <= own.mean() <= mean.interval()[1]


def test_a_group_without_rows_has_no_mean_and_no_certain_total() -> None:
    """Its mean is not determinable, and its total lies below something, never at 0 ± 0."""
    release = GROUPED.release(
        _grouped([row for row in TEAMS if row[0] != 2]), noise=tape_noise(EndlessTape(3))
    )
    answer, mean = release.sum(_team(2)), release.mean(_team(2))

    assert not mean.determinable
    assert str(mean).startswith("not determinable")
    low, high = answer.interval()
    assert low < high
    assert answer.error > 0.0


@pytest.mark.parametrize("column", [[0] * 3_000, [0] * 2_999 + [10**9], [], [700] * 3_000], ids=len)
@pytest.mark.parametrize("keys", [[], [Axis(size=2)]], ids=len)
def test_no_column_has_an_answer_of_width_zero(column: list[int], keys: list[Axis]) -> None:
    """All zeros, one huge row, no row, one value only: totals and means say what noise may hide."""
    rows = np.array([[0, value + 1] for value in column]).reshape(-1, 2)[:, -1 - len(keys) :]
    points = Points.from_rows(rows, axes=[*keys, Axis.of(COST)])
    release = KnotTotal(keys=keys, value=COST, epsilon=1).release(points, noise=tape_noise(EndlessTape(8)))
    total, mean = release.sum([release.everything]), release.mean([release.everything])

    assert total.error > 0.0
    for answer in (total, mean):
        low, high = answer.interval()
        assert low < high
        assert "± 0," not in str(answer)
    assert total.interval()[0] <= sum(column)
    assert total.worst()[0] <= sum(column) <= total.worst()[1]


def test_masses_that_noise_hides_are_guessed_from_all_groups() -> None:
    """Without noise nothing moves; with it masses move to their shares, each by 2.5 deviations at most."""
    random = np.random.default_rng(2)
    exact = np.outer(np.arange(1.0, 21.0), [100.0, 40.0, 10.0, 2.0])
    noisy = exact + random.laplace(0, 5.0, exact.shape)
    blended = blend_groups(noisy, 5.0)

    assert np.allclose(blend_groups(exact, 1e-9), exact)
    assert np.abs(blended - exact)[:, 1:].mean() < 0.7 * np.abs(noisy - exact)[:, 1:].mean()
    assert np.abs(blended - noisy).max() <= 2.5 * np.sqrt(2) * 5.0 + 1e-9


def test_boxes_that_overlap_or_take_away_are_refused() -> None:
    """Only sets of groups have totals."""
    release = GROUPED.release(_grouped(TEAMS), noise=ZeroNoise())
    for terms in (_team(1, 1), [BoxTerm((0,), (0,), -1)]):
        with pytest.raises(InvalidParameter, match="boxes that do not overlap"):
            release.sum(terms)


def test_knots_below_a_cap_are_quarters() -> None:
    """Six of them at most, and all down to 1 where the cap is a guess."""
    assert list_lower(4**9, 4) == (4**5, 4**6, 4**7, 4**8)
    assert list_lower(5, 31) == (1,)


@pytest.mark.parametrize(
    ("length", "knots"),
    [(96, (96,)), (143, (143,)), (144, (96, 144)), (287, (96, 287)), (288, (96, 192, 288))],
)
def test_knots_keep_apart_below_the_declared_bound(length: int, knots: tuple[int, ...]) -> None:
    """No knot lies between 2/3 of the bound and the bound: both would have nearly the same noise."""
    magnitudes = Magnitudes(ValueLine.of(Integer(0, length)))
    noisy = np.zeros(magnitudes.size, np.int64)
    noisy[magnitudes.edges[0].index(96)] = 10**6
    caps = magnitudes.caps(noisy, Fraction(20))

    assert TotalKnots(magnitudes, caps).sides[0] == knots


def test_files_from_before_knots_kept_apart_have_theirs() -> None:
    """Such a file does not say that knots keep apart, and has the ones right below the bound."""
    release = KnotTotal(value=VALUE, epsilon=1).release(_points(CROWD, VALUE), noise=ZeroNoise())
    parts = release.parts()
    facts = {name: fact for name, fact in parts.facts.items() if name != "apart"}
    earlier = replace(release, caps=release.caps._replace(apart=False)).knots
    masses = np.zeros(earlier.size, np.int64)
    read = KnotTotalRelease.from_parts(Parts(facts, {**parts.series, "noisy": masses}), None, value=VALUE)

    assert not read.caps.apart
    assert read.knots.sides == earlier.sides


def test_files_from_before_groups_have_the_knots_that_they_had() -> None:
    """They hold no caps: these follow from the counts of magnitudes, and are 1 where none is clear."""
    for places in (CROWD, [6, 8]):
        release = KnotTotal(value=VALUE, epsilon=1).release(_points(places, VALUE), noise=ZeroNoise())
        earlier = release.knots.magnitudes.earlier_caps(release.buckets, release.bucket_scale)
        masses = TotalKnots(release.knots.magnitudes, earlier).masses(
            np.array(places, np.uint64), np.ones(len(places), np.int64)
        )
        facts = {name: release.parts().facts[name] for name in ("bucket_scale", "scale")}
        parts = Parts(facts, {"buckets": release.buckets, "noisy": masses})
        read = KnotTotalRelease.from_parts(parts, None, value=VALUE)

        assert read.caps == (
            release.caps._replace(apart=False) if release.caps.seen else Caps(1, 1, seen=False)
        )
        assert read.sum([]).value == pytest.approx(
            sum(place - 4 for place in places) if places == CROWD else 0
        )
