"""The naive baselines: their laws on tiny horizons, their exact variances, planted bugs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from partita.public.bounds import laplace_variance
from partita.testing import Loss, OutputLaw, RationalNoise, law, privacy_loss
from partita.testing.laws import Adversary, Make, NumberedNoise, columns, counters_are_private, greedy, silent
from partita.trusted.streams import tree_counter
from partita.trusted.streams.base import Supply
from partita.trusted.streams.tree_counter import DirectCounter, PerStepCounter, RandomizedResponseCounter

Plant = Callable[[pytest.MonkeyPatch], None]

HALF = Fraction(1, 2)


def _made(kind: type[Any], **more: Any) -> Make:
    return lambda noise: kind(**{"epsilon": 1, "horizon": 3, "noise": noise, **more})


def _is_private(kind: type[Any], choose: Adversary, **more: Any) -> bool:
    unit = Fraction(1, 3) if kind is DirectCounter else Fraction(1)
    return counters_are_private(_made(kind, **more), choose, horizon=3, unit=unit)


@pytest.mark.parametrize("choose", [silent, greedy])
@pytest.mark.parametrize("kind", [PerStepCounter, DirectCounter])
def test_no_event_changes_the_law_by_more_than_epsilon(kind: type[Any], choose: Adversary) -> None:
    """For all events of tiny streams, also of those that are chosen while outputs are seen."""
    assert _is_private(kind, choose)


@pytest.mark.parametrize("kind", [PerStepCounter, DirectCounter])
def test_half_of_the_noise_is_too_little(kind: type[Any]) -> None:
    """What is made for twice the epsilon loses more than epsilon, and the enumeration says so."""
    assert not _is_private(kind, silent, epsilon=2)


class _Coins(RationalNoise):
    """Rational noise of which only the sign is asked: 1 with probability a / (1+a), else 0."""

    def add(self, x: Any, scale: Fraction, *, parts: Any = None) -> Any:
        ratio = self.base ** self.ratio_power(scale)
        options = [(1, ratio / (1 + ratio)), (0, 1 / (1 + ratio))]
        return np.array([self.branches.choose(options) for _ in range(np.size(x))])


def _flipped(xs: Sequence[int]) -> OutputLaw:
    """The law of all outputs of randomized response."""

    def run(noise: RationalNoise) -> Hashable:
        return tuple(RandomizedResponseCounter(epsilon=1, horizon=3, noise=noise).update_many(xs).tolist())

    return law(run, _Coins(HALF))


def _worst_flip() -> Loss:
    losses = []
    for xs in product((0, 1), repeat=3):
        for place in range(3):
            other = [x ^ (period == place) for period, x in enumerate(xs)]
            losses.append(privacy_loss(_flipped(xs), _flipped(other), base=HALF, unit=Fraction(1)))
    return max(losses)


def test_a_bit_loses_epsilon_exactly() -> None:
    """Over all streams of three bits and all of their neighbours."""
    assert _worst_flip() == 1


def test_ones_are_set_right() -> None:
    """Without a flip, a one is worth 1 / (1-a) and a zero -a / (1-a)."""
    counter = RandomizedResponseCounter(epsilon=1, horizon=4, noise=NumberedNoise())
    a = np.exp(-1)

    outputs = counter.update_many([1, 0])

    assert outputs.tolist() == pytest.approx([1 / (1 - a), 1.0], abs=2**-16)


@pytest.mark.parametrize("kind", [PerStepCounter, DirectCounter])
def test_the_variance_is_that_of_the_linear_map(kind: type[Any]) -> None:
    """In every period: the squares of how much one more of each noise moves the output."""

    def run(noise: NumberedNoise) -> Any:
        return kind(epsilon=1, horizon=9, noise=noise).update_many([0] * 9)

    parts = columns(run)
    exact = [
        sum(laplace_variance(scale) * float(moved[period]) ** 2 for scale, moved in parts)
        for period in range(9)
    ]
    counter = kind(epsilon=1, horizon=9)
    assert counter.variances(range(1, 10)).tolist() == pytest.approx(exact)
    counter.advance(4)
    assert counter.variance() == pytest.approx(exact[3])


def test_the_baselines_have_the_errors_of_the_book() -> None:
    """At epsilon 1 over 2^10 periods: 2t, 2T^2, and a constant times t."""
    each = [kind(epsilon="0.01", horizon=1024) for kind in (PerStepCounter, DirectCounter)]
    per_step, direct = (float(counter.variances([1024])[0]) / 10**4 for counter in each)
    flipped = RandomizedResponseCounter(epsilon="0.01", horizon=1024).variances([1024])[0] / 10**4

    assert (per_step, direct, flipped) == pytest.approx((2 * 1024, 2 * 1024**2, 1024), rel=1e-3)


def _same_noise(patch: pytest.MonkeyPatch) -> None:
    """One noise for all periods."""
    right = Supply.take

    def take(supply: Supply) -> int:
        if not hasattr(supply, "_kept"):
            supply._kept = right(supply)  # type: ignore[attr-defined]
        return supply._kept  # type: ignore[attr-defined, no-any-return]

    patch.setattr(Supply, "take", take)


def _one_output_paid(patch: pytest.MonkeyPatch) -> None:
    """Each output has noise as if it were the only one."""
    patch.setattr(DirectCounter, "_outputs_of_an_event", property(lambda counter: 1))


def _old_noise_kept(patch: pytest.MonkeyPatch) -> None:
    """Noise that was replaced is taken back once too often, so that outputs share it."""
    patch.setattr(tree_counter._ReplacedNoise, "step", lambda path: 0 if path._last else _first(path))


def _first(path: Any) -> int:
    path._last = path._supply.take() or 1
    return int(path._last)


@pytest.mark.parametrize(
    ("kind", "plant"),
    [(PerStepCounter, _same_noise), (DirectCounter, _one_output_paid), (DirectCounter, _old_noise_kept)],
)
def test_planted_bugs_of_the_naive_counters_are_caught(
    kind: type[Any], plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each wrong variant shows an event, or costs more than epsilon."""
    plant(monkeypatch)
    if plant is _one_output_paid:
        assert kind(epsilon=1, horizon=3).scale == 1
        assert not counters_are_private(_made(kind), silent, horizon=3, unit=Fraction(1))
    else:
        assert not _is_private(kind, silent)


def test_flips_at_the_wrong_scale_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bits that are flipped half as seldom lose more than epsilon."""
    right = _Coins.add
    monkeypatch.setattr(_Coins, "add", lambda noise, x, scale: right(noise, x, scale / 2))

    assert not _worst_flip() <= 1
