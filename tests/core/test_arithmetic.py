"""Arithmetic on answers: errors, intervals and bounds where noise is known to be shared or is not."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import NormalDist

import numpy as np
import pytest

from partita.answer import Answer, Joint, NoisyNumber, Reading, divide


@dataclass(frozen=True, eq=False)
class Shared:
    """A reading whose covariance with others is stated; None where it is not known."""

    variance: float
    others: dict[int, float | None] = field(default_factory=dict)

    def covariance(self, other: Reading) -> float | None:
        """With another one; independent if nothing is stated."""
        return self.variance if other is self else self.others.get(id(other), 0.0)

    def difference(self, other: Reading) -> Answer | None:
        """There is no release to ask."""
        return None


def _made(value: float, error: float, reading: Reading | None = None, least: float = 0.0) -> Answer:
    answer = Answer(value, lambda: error, lambda beta: (value - 9 * error, value + 9 * error), least)
    return answer if reading is None else answer.read_from((1.0, reading))


def _pair(covariance: float | None) -> tuple[Answer, Answer]:
    """100 ± 3 and 50 ± 4 (standard errors) with a covariance."""
    second = Shared(16.0)
    first = Shared(9.0, {id(second): covariance})
    second.others[id(first)] = covariance
    return _made(100.0, 3.0, first), _made(50.0, 4.0, second)


@pytest.mark.parametrize("covariance", [0.0, 6.0, -6.0])
def test_variances_and_covariances_add_up(covariance: float) -> None:
    """Sums and differences have the error of just that."""
    one, other = _pair(covariance)

    assert (one + other).error == pytest.approx(math.sqrt(25 + 2 * covariance))
    assert (one - other).error == pytest.approx(math.sqrt(25 - 2 * covariance))
    assert ((one - other).value, (2 * one - other / 4).value) == (50.0, 187.5)


def test_intervals_of_sums_are_those_of_the_normal_law() -> None:
    """Where both sides are normal, so is the sum."""
    one, other = _pair(6.0)

    half = NormalDist().inv_cdf(0.995) * math.sqrt(25 - 12)
    assert (one - other).interval(0.99) == pytest.approx((50 - half, 50 + half))


def test_unknown_covariances_add_errors() -> None:
    """The error is then the most that it can be, and printing says so."""
    one, other = _pair(None)

    assert (one - other).error == (one + other).error == 7.0
    assert str(one - other).endswith("as it is not known how far their noise goes together")
    assert "\n" not in repr(one - other)
    assert (_made(1.0, 1.0) + _made(1.0, 1.0)).error == 2.0


def test_an_answer_less_itself_is_zero() -> None:
    """All of its noise cancels."""
    one = _made(100.0, 3.0, Shared(9.0))

    assert ((one - one).value, (one - one).error) == (0.0, 0.0)
    assert (one + one).error == pytest.approx(6.0)
    assert (one / one).interval() == pytest.approx((1.0, 1.0))


def test_numbers_move_and_stretch_answers() -> None:
    """A number has no error; a negative factor swaps the ends."""
    one = _made(10.0, 2.0, Shared(4.0))

    assert (one + 5).interval() == pytest.approx((15 - 3.919928, 15 + 3.919928))
    assert (5 - one).interval() == pytest.approx((-5 - 3.919928, -5 + 3.919928))
    assert (-3 * one).error == 6.0
    assert (one / 2).worst() == (0.0, 14.0)
    assert (1 - one / 20).readings[0][0] == pytest.approx(-1 / 20)
    assert sum([one, one], Answer.exact(0.0)).error == pytest.approx(4.0)
    assert isinstance(sum([one, one]), Answer)


def test_guaranteed_bounds_hold_together() -> None:
    """Each side takes half of beta, and neither goes below what it can be."""
    asked: list[float] = []

    def bounds(beta: float) -> tuple[float, float]:
        asked.append(beta)
        return -3.0, 20.0

    one = Answer(5.0, lambda: 2.0, bounds)

    assert (one - one.read_from()).worst(0.1) == (-20.0, 20.0)
    assert asked == [0.05, 0.05]


@pytest.mark.parametrize("covariance", [0.0, 8.0, None])
def test_ratios_have_fiellers_interval(covariance: float | None) -> None:
    """The interval is that of all ratios whose difference is noise; if noise is unknown, the widest."""
    one, other = _pair(covariance)
    z = NormalDist().inv_cdf(0.975)

    shares = (-12.0, 12.0) if covariance is None else (covariance,)
    ends = [Joint(100.0, 50.0, 9.0, 16.0, each).interval(z) or (0.0, 0.0) for each in shares]
    assert (one / other).interval() == pytest.approx((min(ends)[0], max(end[1] for end in ends)))
    assert (one / other).value == 2.0


def test_ratios_of_what_may_be_nothing_are_not_determinable() -> None:
    """A bottom within 3.5 errors of zero gives no value, an infinite error and no interval."""
    one, other = _made(100.0, 3.0, Shared(9.0)), _made(10.0, 4.0, Shared(16.0))

    found = one / other
    assert (math.isnan(found.value), found.error, found.interval()) == (True, math.inf, (0.0, math.inf))
    assert str(found).startswith("not determinable")
    assert f"{found:,.1f}" == "not determinable"
    assert math.isnan((found - 1).value)


def test_ratios_below_zero_turn_both_signs() -> None:
    """A bottom clearly below zero is as good as one above."""
    one, other = _pair(6.0)

    assert (one / -other).interval() == pytest.approx(
        (-(one / other).interval()[1], -(one / other).interval()[0])
    )


def test_ratios_go_on_with_first_order_covariances() -> None:
    """A difference of two shares of one total has less error than if both were independent."""
    total = _made(1000.0, 30.0, Shared(900.0))
    one, other = _made(300.0, 5.0, Shared(25.0)), _made(290.0, 5.0, Shared(25.0))

    apart = one / total - other / total
    assert apart.error == pytest.approx((one - other).error / 1000, rel=0.05)
    assert apart.error < math.hypot((one / total).error, (other / total).error) / 1.5


def test_asymmetric_intervals_keep_their_sides() -> None:
    """Sides are put together below and above by themselves."""
    tail = Answer(
        10.0,
        lambda: 5.0,
        lambda beta: (0.0, 99.0),
        likely=lambda beta: (9.0, 30.0),
        readings=((1.0, Shared(25.0)),),
    )
    other = _made(100.0, 1.0, Shared(1.0))

    low, high = (other - tail).interval()
    assert low == pytest.approx(90 - math.hypot(20, 1.959964))
    assert high == pytest.approx(90 + math.hypot(1, 1.959964))


def test_shares_never_leave_their_limits() -> None:
    """A share is between 0 and 1, and so are its interval and its bounds."""
    met, rows = _made(99.0, 5.0, Shared(25.0)), _made(100.0, 5.0, Shared(25.0))

    found = divide(met, rows, most=1.0)
    assert found.interval()[1] == found.worst()[1] == 1.0


def test_differences_cover_the_truth_as_often_as_they_say() -> None:
    """Of 4,000 differences and ratios of noisy numbers that share half of their noise, 95% are covered."""
    noise = np.random.default_rng(7).normal(size=(4_000, 3)) * [20.0, 20.0, 20.0]
    hits = np.zeros(2)
    for first, second, common in noise.tolist():
        one, other = Shared(800.0), Shared(800.0)
        one.others[id(other)] = other.others[id(one)] = 400.0
        top = _made(500 + first + common, math.sqrt(800), one)
        bottom = _made(400 + second + common, math.sqrt(800), other)
        for place, (found, truth) in enumerate(((top - bottom, 100.0), (top / bottom, 1.25))):
            low, high = found.interval()
            hits[place] += low <= truth <= high
    # The chance that a rate of .95 is further off than .015 in 4,000 is below 2e-5.
    assert np.abs(hits / 4_000 - 0.95).max() < 0.015


def test_formats_are_about_the_value() -> None:
    """A format applies to the value alone, and an empty one is what printing shows."""
    found: NoisyNumber = _made(25366.87, 142.6)

    assert (f"{found:,.0f}", f"{found}") == ("25,367", "Answer(25,367 ± 280)")
    assert found.to_dicts()[0]["low"] == found.interval()[0]
