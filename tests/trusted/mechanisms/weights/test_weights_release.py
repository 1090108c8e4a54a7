"""The mechanism and its release: plans, answers, parts for files, and hostile parts."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from partita.domain import Integer
from partita.errors import InvalidData, InvalidParameter, InvalidRelease
from partita.guarantee import Guarantee
from partita.public.axis.base import Parts
from partita.public.queries.language import marginal, prefixes, ranges, value
from partita.public.queries.queries import Universe
from partita.public.workload.weights import WeightsBudget, WeightsFit, WeightsRelease
from partita.testing import EndlessTape, ForbiddenNoise, ZeroNoise, tape_noise
from partita.trusted.mechanisms.weights import MultiplicativeWeights
from partita.trusted.secret import Points
from tests.public.queries.foreign import Foreign
from tests.seams import SETTLING

pytestmark = pytest.mark.usefixtures("quick_settling")

UNIVERSE = Universe(["age", "pay"], [Integer(0, 9), Integer(0, 7)])
QUERIES = ranges("age", step=3) * prefixes("pay") + marginal("age")


def _points(contributions: int = 1, rows: int = 2000) -> Points:
    words = EndlessTape("points").take(4000).astype(np.int64) & 0xFFFF
    ages, pay = words[:2000] % 10, words[2000:] % 8
    places = np.stack([ages + 1, np.minimum(pay, ages) + 1], axis=1)[:rows]
    return Points.from_rows(places, axes=UNIVERSE.axes, contributions=contributions)


def _mechanism(**given: Any) -> MultiplicativeWeights:
    return MultiplicativeWeights(**{"queries": QUERIES, "universe": UNIVERSE, "epsilon": 1, **given})


def _released(**given: Any) -> WeightsRelease:
    return _mechanism(rounds=4, **given).release(_points(), noise=tape_noise(EndlessTape("release")))


def test_only_secure_noise_is_promised() -> None:
    """With the system's noise a release has its guarantee, with any other none."""
    assert _mechanism(rounds=1).release(_points()).guarantee == Guarantee(epsilon=1)
    assert _released().guarantee is None


def test_answers_come_with_their_errors() -> None:
    """Values, standard errors and bounds agree between one answer and all."""
    release = _released()
    one, many = release.answer(5), release.answers()

    assert one.value == many.values[5] == release.values[5]
    assert one.error == many.error[5] > 0
    assert one.worst(0.05)[1] <= one.value + release.error(0.05)
    assert one.worst(0.05)[0] >= 0
    assert release.x.sum() == pytest.approx(2000, rel=0.2)
    assert len(release) == len(QUERIES.over(UNIVERSE))


def test_the_truth_lies_within_the_bounds() -> None:
    """All answers are within their bounds of one in a thousand."""
    release, mechanism = _released(), _mechanism()
    truth = mechanism.truth(_points()) / mechanism.operator.granularity

    assert all(
        release.answer(i).worst(0.001)[0] <= truth[i] <= release.answer(i).worst(0.001)[1] for i in range(9)
    )
    assert np.abs(release.values - truth).max() <= release.error(0.001)


@pytest.mark.parametrize("delta", [0, "1e-6"])
@pytest.mark.parametrize("neighbors", ["add-remove", "change-one"])
def test_no_more_is_spent_than_promised(delta: object, neighbors: Any) -> None:
    """The scales in a release cost what its guarantee promises; a smaller promise would be broken."""
    given: dict[str, Any] = {"delta": delta, "neighbors": neighbors, "contributions": 2, "rounds": 9}
    mechanism = _mechanism(**given)
    release = replace(mechanism.release(_points(2), noise=ZeroNoise()), guarantee=mechanism.guarantee)
    smaller = replace(mechanism.guarantee, epsilon=Fraction(9, 10))

    assert release.spent <= 1
    assert replace(release, guarantee=smaller).spent > Fraction(9, 10)
    assert replace(release, guarantee=None).spent == 0


def test_a_plan_says_what_each_round_costs() -> None:
    """Rounds and rates are shown, and follow from public facts."""
    lines = _mechanism().plan_lines(100_000)
    rounds = _mechanism().budget.rounds_for(100_000, len(QUERIES.over(UNIVERSE)), 2)

    assert lines[0].startswith(f"T = {rounds} rounds for about 100,000 rows (pure composition)")
    assert "eps0" in lines[0]
    assert "2 axes" in lines[1]
    assert "zCDP" in _mechanism(delta="1e-6").plan_lines(100_000)[0]
    assert _mechanism().predicted_numbers(100_000) == 1 + 14 + 12 + 2 * rounds
    assert _mechanism().predicted_error(10_000) > _mechanism(epsilon=4).predicted_error(10_000)


@pytest.mark.parametrize("rounds", [None, 1, 3, 5, 9, 40])
@pytest.mark.parametrize("queries", [prefixes("pay"), QUERIES], ids=["few", "many"])
def test_delta_is_spent_only_where_some_number_of_rounds_needs_it(queries: Any, rounds: int | None) -> None:
    """Rounds are chosen by noisy numbers: delta is given back if pure composition is best for all of them."""
    mechanism = _mechanism(queries=queries, delta="1e-6", rounds=rounds)
    budget = WeightsBudget(epsilon=1, delta="1e-6", rounds=rounds)
    choices = range(1, len(mechanism.operator) + 1) if rounds is None else [rounds]
    pure = {budget.rates(each, 2).rule for each in choices} == {"pure"}

    assert mechanism.guarantee.delta == mechanism.budget.delta == (0 if pure else Fraction(1, 10**6))


def test_a_plan_says_how_long_large_universes_take() -> None:
    """Over more than 2^24 cells NumPy is slow; over more than 2^27 others are named."""
    large, huge = (Universe(["age", "pay"], [Integer(0, 2**k)] * 2) for k in (13, 14))
    asked: dict[str, Any] = {"queries": ranges("age", [(0, 9)]), "epsilon": 1}

    assert "NumPy" not in " ".join(_mechanism().plan_lines(1000))
    assert _mechanism(**asked, universe=large).plan_lines(1000)[-1] == (
        f"A round over {large.size:,} cells takes up to about 25 seconds with NumPy."
    )
    with pytest.raises(InvalidParameter, match="must have at most 134217728 cells") as refused:
        _mechanism(**asked, universe=huge)
    assert '"composition"' in refused.value.fix


def test_the_story_tells_rows_and_rounds() -> None:
    """What was chosen on the way is said in words."""
    assert "4 rounds" in _released().story
    assert _released().story.startswith("For a total of about ")


def test_numerical_queries_are_answered_in_their_units() -> None:
    """A sum of values of up to seven is in these values."""
    queries = value("pay") * ranges("age", step=5)
    release = MultiplicativeWeights(queries=queries, universe=UNIVERSE, epsilon=4).release(
        _points(), noise=tape_noise(EndlessTape("sums"))
    )
    truth = queries.over(UNIVERSE).answers_at(_points().places, _points().counts).astype(float)

    assert release.values == pytest.approx(truth / release.operator.granularity, rel=0.2, abs=200)


def test_parts_go_round() -> None:
    """A release that was taken apart and put together gives exactly the same answers and promises."""
    release = _released()
    again = WeightsRelease.from_parts(release.parts(), None, QUERIES, UNIVERSE)

    assert again.values.tolist() == release.values.tolist()
    assert again.error(0.05) == release.error(0.05)
    assert again.parts().digest == release.parts().digest


@pytest.mark.parametrize(
    ("rows", "epsilon", "rounds"), [(100, "1/10", 12), (100, "1/100", 12), (10, 1, 12), (2000, 1, 4)]
)
@pytest.mark.spread(2)
def test_another_library_goes_the_same_way(
    rows: int, epsilon: object, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library that adds up from the last entry on agrees to 1e-9 of the mass, however loud the noise is."""
    monkeypatch.setattr(SETTLING, 150)
    mechanism, noise = _mechanism(epsilon=epsilon, rounds=rounds), tape_noise(EndlessTape("other"))
    release = mechanism.release(_points(rows=rows), noise=noise)
    other = release.on(Foreign(np.zeros(1)))

    apart = np.abs(other.values - release.values).max() / release.weighed.mass

    assert isinstance(other.x, Foreign)
    assert other.values.tolist() != release.values.tolist()
    assert apart < 1e-9


def test_rounding_does_not_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors of 1e-12 of each cell in every step move no more than 1e-10 of the mass."""
    release = _mechanism(epsilon="1/10", rounds=12).release(
        _points(rows=100), noise=tape_noise(EndlessTape("shaken"))
    )
    exact, shaken = release.weighed.fit_mass().x, EndlessTape("shakes")
    mass_of = WeightsFit._distribution

    def shake(fit: WeightsFit, duals: list[Any]) -> Any:
        x = mass_of(fit, duals)
        words = shaken.take(x.size).astype(np.float64).reshape(x.shape) / 2.0**64
        return x * (1 + 1e-12 * (2 * words - 1))

    monkeypatch.setattr(WeightsFit, "_distribution", shake)
    off = np.abs(release.weighed.fit_mass().x - exact).sum() / release.weighed.mass

    assert 0 < off < 1e-10


def _changed(parts: Parts, name: str, value: Any) -> Parts:
    if name in parts.facts:
        return Parts({**parts.facts, name: value}, parts.series)
    return Parts(parts.facts, {**parts.series, name: value})


HOSTILE: list[tuple[str, Any]] = [
    ("grain", 0),
    ("grain", "1"),
    ("grain", 2**70),
    ("answer_scale", "0"),
    ("answer_scale", "1e-30"),
    ("selection_scale", 3),
    ("total_scale", "-1"),
    ("marginal_scale", "1/0"),
    ("total", np.array([1, 2])),
    ("total", np.array([2**130], object)),
    ("axes", np.array([0, 0])),
    ("axes", np.array([0, 2])),
    ("axes", np.array([0])),
    ("bins", np.array([14, 13])),
    ("bins", np.array([14, 0])),
    ("bins", np.array([2**62, 2**62])),
    ("marginals", np.zeros(3, np.int64)),
    ("marginals", np.zeros(26)),
    ("indices", np.array([0, 1, 2, 10**9])),
    ("indices", np.array([-1, 1, 2, 3])),
    ("indices", np.zeros(0, np.int64)),
    ("indices", np.zeros(2**17, np.int64)),
    ("noisy", np.zeros(3, np.int64)),
    ("noisy", np.zeros((2, 2), np.int64)),
    ("more", np.zeros(3, np.int64)),
]


@pytest.mark.parametrize(("name", "value"), HOSTILE)
def test_hostile_parts_are_refused(name: str, value: Any) -> None:
    """Whatever is not as it must be is an InvalidRelease, at once."""
    parts = _changed(_released().parts(), name, value)

    with pytest.raises(InvalidRelease):
        WeightsRelease.from_parts(parts, None, QUERIES, UNIVERSE)


@pytest.mark.parametrize(("name", "size"), [("noisy", 4), ("marginals", 26), ("total", 1)])
def test_absurd_numbers_do_no_harm(name: str, size: int) -> None:
    """Released numbers of any size give finite answers that are not negative."""
    parts = _changed(_released().parts(), name, np.array([(-1) ** at * 2**120 for at in range(size)], object))
    release = WeightsRelease.from_parts(parts, None, QUERIES, UNIVERSE)

    assert np.isfinite(release.values).all()
    assert (release.values >= 0).all()
    assert np.isfinite(release.error(0.05))


def test_wrong_data_and_parameters_are_refused_before_noise() -> None:
    """Points elsewhere, too many contributions, an absurd epsilon, and universes that are too large."""
    elsewhere = Points.from_rows([[0]], axes=UNIVERSE.axes[:1])
    for points, error in ((elsewhere, InvalidData), (_points(3), InvalidParameter)):
        with pytest.raises(error):
            _mechanism().release(points, noise=ForbiddenNoise())
    with pytest.raises(InvalidParameter, match="epsilon"):
        _mechanism(epsilon="1e-30")
    vast = Universe(["age", "pay"], [Integer(0, 2**14), Integer(0, 2**14)])
    with pytest.raises(InvalidParameter, match="universe"):
        _mechanism(universe=vast, queries=marginal("age"))
