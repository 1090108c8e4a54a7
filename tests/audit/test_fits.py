"""Chances that are bounds, Holm, and fits that refuse a wrong scale."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest

from partita.audit.attacks import (
    FAMILY_WISE,
    DrawEvent,
    _first_seal,
    fit,
    geometric_events,
    laplace_events,
    sampler_fits,
)
from partita.audit.base import holm, least_chance, most_chance, p_value
from partita.testing import EndlessTape, RationalNoise, law, tape_noise
from partita.trusted.mechanisms.partition import Partition
from partita.trusted.noise.hazard import Law
from partita.trusted.secret import Histogram


def _tail(hits: int, draws: int, chance: float) -> float:
    """The exact probability of at least so many hits."""
    masses = [math.comb(draws, k) * chance**k * (1 - chance) ** (draws - k) for k in range(draws + 1)]
    return list(accumulate(reversed(masses)))[draws - hits]


@pytest.mark.parametrize("chance", [0.01, 0.3, 0.5])
def test_p_values_are_never_too_small(chance: float) -> None:
    """Twice the exact tail of 50 draws is at most what Chernoff says."""
    for hits in range(math.ceil(50 * chance), 51):
        assert min(1.0, 2 * _tail(hits, 50, chance)) <= p_value(hits, 50, chance) * (1 + 1e-9)


def test_bounds_hold_what_was_seen_between_them() -> None:
    """A share lies between its bounds, which meet as draws grow."""
    few, many = ((least_chance(n // 4, n, 1e-6), most_chance(n // 4, n, 1e-6)) for n in (100, 10**6))

    assert few[0] < many[0] < 0.25 < many[1] < few[1]
    assert least_chance(0, 10, 1e-6) == 0.0
    assert most_chance(10, 10, 1e-6) == 1.0


def test_chances_of_the_events_are_those_of_the_laws() -> None:
    """At a scale where sums of the masses can be taken, every event has the chance it claims."""
    scale = Fraction(3)
    a = math.exp(-1 / 3)
    values = np.arange(-400, 401)
    laplace = (1 - a) / (1 + a) * a ** np.abs(values)
    geometric = np.where(values >= 0, (1 - a) * a ** np.abs(values), 0.0)
    for events, masses in ((laplace_events(scale), laplace), (geometric_events(scale), geometric)):
        for event in (each for each in events if len(event_of(each, values)) == len(values)):
            assert float(masses[event_of(event, values)].sum()) == pytest.approx(event.chance)


def event_of(event: DrawEvent, values: np.ndarray) -> np.ndarray:
    return np.asarray(event.happened(values))


@pytest.mark.parametrize("name", ["discrete_laplace", "geometric"])
def test_a_scale_two_percent_off_is_rejected(name: str) -> None:
    """On a fixed tape the right scale fits, and one that is 2% off does not, among 72 other fits."""
    events = (laplace_events if name == "discrete_laplace" else geometric_events)(Fraction(20))
    right, wrong = (
        fit(name, getattr(tape_noise(EndlessTape(name)), name)(scale, 400_000), events).p
        for scale in (Fraction(20), Fraction(102, 5))
    )

    assert holm([right, wrong, *[0.5] * 72], FAMILY_WISE) == [1]


@pytest.mark.parametrize(
    "bent",
    [
        lambda x: x & ~np.int64(1),
        lambda x: np.abs(x),
        lambda x: np.repeat(x[::2], 2),
        lambda x: np.clip(x, -40, 40),
    ],
    ids=["even only", "no sign", "each twice", "no tail"],
)
def test_bent_noise_is_rejected(bent: object) -> None:
    """Noise without its last bit, its sign, its independence or its tail."""
    values = tape_noise(EndlessTape("bent")).discrete_laplace(Fraction(20), 100_000)

    assert fit("bent", bent(values), laplace_events(Fraction(20))).p < 1e-9  # type: ignore[operator]


@pytest.mark.parametrize("kind", ["geometric", "laplace"])
def test_the_law_of_a_first_segment_is_that_of_the_shipped_code(kind: Law) -> None:
    """What cuts are compared with is what the specification gives, every branch enumerated."""
    counts, partition = (0, 2, 0), Partition(size=3, epsilon=Fraction(1, 2), law=kind, threshold=1)
    noise = RationalNoise(Fraction(math.exp(-0.5)).limit_denominator(10**6), unit=Fraction(1, 2))
    cut = law(lambda noise: partition.cut(Histogram.dense(counts), noise=noise).edges.tolist()[0], noise)

    assert _first_seal(partition, counts) == pytest.approx([float(cut[cell]) for cell in range(3)], abs=1e-5)


@pytest.mark.statistics(fresh=True)
def test_fresh_samplers_fit() -> None:
    """All public samplers; a correct library fails this with probability 10^-6 at most."""
    fits = list(sampler_fits("quick"))

    assert len({each.sampler for each in fits}) == len(fits) > 60
    assert holm([each.p for each in fits], FAMILY_WISE) == []
