"""Answers are negated, known and combined with bounds that still hold."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest

from partita.answer import Answer
from partita.domain import Integer
from partita.errors import InvalidRelease
from partita.public.axis.base import Specials
from partita.public.bounds import laplace_sum_reach, laplace_variance
from partita.public.release import Release
from partita.public.views import View

TRUTH = 3


def _noisy(scale: Fraction, noise: int) -> Answer:
    value = float(TRUTH + noise)

    def bounds(beta: float) -> tuple[float, float]:
        reach = laplace_sum_reach(scale, 1, beta)
        return value - reach, value + reach

    return Answer(value, lambda: math.sqrt(laplace_variance(scale)), bounds)


def _law(scale: Fraction, reach: int) -> dict[int, float]:
    a = math.exp(-1 / scale)
    return {k: (1 - a) / (1 + a) * a ** abs(k) for k in range(-reach, reach + 1)}


def test_intervals_are_never_wider_than_what_is_certain() -> None:
    """Where the guaranteed bounds are narrower on a side they end the interval, at any confidence."""
    answer = Answer(5.0, lambda: 4.0, lambda beta: (4.0 - beta, 90.0))

    assert answer.interval(0.9) == pytest.approx((3.9, 5.0 + 1.6449 * 4.0), abs=1e-3)
    assert answer.interval(1e-9)[0] == pytest.approx(5.0)
    assert Answer.exact(3.0).interval() == (3.0, 3.0)


def test_bounds_of_combined_answers_hold() -> None:
    """Over all noises of two answers, `worst` of both combined fails with probability at most beta."""
    scales, beta, held = (Fraction(1), Fraction(2)), 0.2, 0.0
    for (x, p), (y, q) in product(_law(scales[0], 15).items(), _law(scales[1], 25).items()):
        low, high = Answer.combined([_noisy(scales[0], x), _noisy(scales[1], y)]).worst(beta)
        held += p * q * (low <= TRUTH <= high)

    assert 1 - held <= beta


@pytest.mark.parametrize("number", [1, 2, 5])
def test_combined_answers_share_beta(number: int) -> None:
    """Each of k answers gives its bounds at beta / k, so that all of them hold together."""
    asked: list[float] = []

    def bounds(beta: float) -> tuple[float, float]:
        asked.append(beta)
        return 0.0, 9.0

    Answer.combined([Answer(5.0, lambda: 1.0, bounds)] * number).worst(0.1)

    assert asked == [pytest.approx(0.1 / number)] * number


def test_combined_answers_weigh_by_inverse_variance() -> None:
    """Two answers of errors 1 and 2 are weighed 4 to 1; the error is that of the mean."""
    one = Answer(10.0, lambda: 1.0, lambda beta: (0.0, 99.0))
    two = Answer(20.0, lambda: 2.0, lambda beta: (0.0, 99.0))

    both = Answer.combined([one, two])

    assert (both.value, both.error) == pytest.approx((12.0, math.sqrt(4 / 5)))
    assert both.worst() == (0.0, 99.0)


def test_combined_bounds_that_contradict_each_other_hold_the_value() -> None:
    """If noise beyond all bounds makes two intervals disjoint, the answer still lies in its bounds."""
    both = Answer.combined([_noisy(Fraction(1), -40), _noisy(Fraction(1), 60)])

    low, high = both.worst(0.5)

    assert low <= both.value <= high


def test_noise_too_small_for_floats_is_combined() -> None:
    """An error of nothing does not divide by zero."""
    exact = Answer.combined([Answer.exact(5.0), Answer.exact(5.0)])

    assert (exact.value, exact.worst(0.01)) == (5.0, (5.0, 5.0))
    assert exact.error < 1e-5


def test_negative_answers() -> None:
    """What is taken away has its bounds the other way round, and none at zero."""
    answer = -Answer(10.0, lambda: 2.0, lambda beta: (4.0, 22.0))

    assert (answer.value, answer.error, answer.worst(0.1)) == (-10.0, 2.0, (-22.0, -4.0))
    assert answer.interval(0.95)[0] == pytest.approx(-10 - 3.919928)


def test_views_fit_their_domains(publish: Callable[..., Release]) -> None:
    """An axis of another size, or special cells of another domain, are no view."""
    release = publish(v=(Integer(0, 9), [1]))
    view = release.view("v")
    assert isinstance(view, View)

    with pytest.raises(InvalidRelease, match=r"^axis must have the cells of its domain"):
        replace(view, domain=Integer(0, 8))
    for counts in ({"below": 1}, {**view.specials.counts, "other": 1}):
        with pytest.raises(InvalidRelease, match=r"^special cells must be those of the domain"):
            replace(view, specials=Specials(counts=counts, scale=Fraction(1)))
    with pytest.raises(InvalidRelease, match=r"^views must be of different columns"):
        replace(release, views=(view, view))
