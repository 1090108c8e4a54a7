"""What a pan-private counter does besides being private."""

from __future__ import annotations

from collections import Counter as Multiset
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from partita.errors import HorizonReached, InvalidData, InvalidParameter
from partita.guarantee import Guarantee
from partita.public import stream_trees as module
from partita.public.bounds import laplace_variance
from partita.public.stream_trees import Variant
from partita.testing import EndlessTape, ForbiddenNoise, RecordingNoise, ZeroNoise, tape_noise
from partita.trusted.noise.system import SYSTEM
from partita.trusted.streams.base import unpack
from partita.trusted.streams.pan_private import PanPrivateCounter

from .pan_views import GivenNoise, Script, pan_private, taped

VARIANTS: tuple[Variant, ...] = ("default", "book")
KINDS = [(variant, live) for variant in VARIANTS for live in (False, True)]


@pytest.mark.parametrize(("variant", "live"), KINDS)
@pytest.mark.parametrize("horizon", [1, 2, 13, 64, None])
def test_without_noise_the_count_is_exact(variant: Variant, live: bool, horizon: int | None) -> None:
    """Every output is the number of events so far, negative ones included."""
    counter = taped(variant=variant, live=live, horizon=horizon, noise=ZeroNoise())
    xs = np.arange(horizon or 300) % 7 - 2

    assert counter.update_many(xs).tolist() == np.cumsum(xs).tolist()


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_live_counter_counts_what_is_added_and_what_closes_the_period(variant: Variant) -> None:
    """Events of a period may come one by one, or with its close."""
    counter = taped(variant=variant, live=True, noise=ZeroNoise())
    counter.open()
    counter.add()
    counter.add(4)

    assert [counter.update(2), counter.update(5), counter.update()] == [7, 12, 12]


@pytest.mark.parametrize(("variant", "live"), KINDS)
def test_skipped_periods_change_no_law(variant: Variant, live: bool) -> None:
    """After `advance` the state and the outputs are the same sums of fresh noises as one by one."""
    for start, stop in ((0, 1), (0, 16), (1, 6), (3, 13), (5, 16), (7, 9)):

        def view(noise: GivenNoise, skip: bool, start: int = start, stop: int = stop) -> list[int]:
            counter = taped(variant=variant, live=live, horizon=17, noise=noise)
            counter.update_many([0] * start)
            if skip:
                counter.advance(stop - start)
            else:
                counter.update_many([0] * (stop - start))
            return [
                *unpack(counter.state(), counter.name, 1)["cells"],
                int(counter.value),
                int(counter.update()),
            ]

        laws = []
        for skip in (False, True):
            recorder = GivenNoise()
            view(recorder, skip)
            units = ([0] * i + [1] for i in range(len(recorder.scales)))
            columns = [tuple(view(GivenNoise(unit), skip)) for unit in units]
            laws.append(Multiset(pair for pair in zip(columns, recorder.scales, strict=True) if any(pair[0])))
        assert laws[0] == laws[1]


def test_a_long_silence_takes_few_draws() -> None:
    """2^40 empty periods need a few calls for noise only."""
    recorder = RecordingNoise(ZeroNoise())
    taped(noise=recorder).advance(2**40)

    assert len(recorder.scales) < 400


@pytest.mark.parametrize(("variant", "live"), KINDS)
def test_the_variance_is_that_of_the_noise_in_the_output(
    variant: Variant, live: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In every period, over blocks and announcements, it is the sum over all noises in the output."""
    monkeypatch.setattr(module, "_FIRST_BITS", 2)
    script = Script.periods(11, announced=[3])
    views = script.views(pan_private(variant=variant, live=live), [])
    counter = pan_private(variant=variant, live=live)(ZeroNoise())
    for period in range(11):
        if period == 3:
            counter.announce_intrusion()
        counter.update()
        expected = sum(
            column[period] ** 2 * laplace_variance(1 / rate)
            for column, rate in zip(views.of_noise, views.rates, strict=True)
        )
        assert counter.variance() == pytest.approx(expected)
        assert counter.answer().error == pytest.approx(expected**0.5)


def test_the_default_errs_less_than_figure_12_2() -> None:
    """At T = 2^10 its root mean squared error is at most 0.86 of the book's, from the exact variances."""
    errors = [
        _mean_variance(taped(horizon=1024, variant=variant, noise=ZeroNoise())) ** 0.5 for variant in VARIANTS
    ]

    assert errors[0] <= 0.86 * errors[1]
    assert errors[1] == pytest.approx((2 * 11**3) ** 0.5, rel=1e-3)


def _mean_variance(counter: PanPrivateCounter) -> float:
    variances = []
    while counter.periods < 1024:
        counter.update()
        variances.append(counter.variance())
    return sum(variances) / 1024


def test_answers_are_wide_enough() -> None:
    """Intervals hold the count and `everywhere` all outputs, on fresh noise; the sets are fixed by a tape."""
    missed = missed_anywhere = 0
    for seed in range(40):
        counter = taped(horizon=32, noise=tape_noise(EndlessTape(("answers", seed))))
        worst = float(np.abs(counter.update_many([1] * 32) - np.arange(1, 33)).max())
        answer = counter.answer(0.2)
        missed += not answer.low <= 32 <= answer.high
        missed_anywhere += worst > answer.everywhere

    assert missed <= 16
    assert missed_anywhere <= 16


# Time is public.


@pytest.mark.parametrize(("variant", "live"), KINDS)
def test_nothing_but_values_depends_on_events(variant: Variant, live: bool) -> None:
    """Two streams on one tape: equal numbers of outputs, sizes of states, and noises asked for."""
    seen = []
    for xs in ([0] * 20, [2**61, -(2**61), 5, 0] * 5):
        noise = RecordingNoise(tape_noise(EndlessTape("time")))
        counter = taped(variant=variant, live=live, horizon=40, noise=noise)
        sizes = [len(counter.state())]
        for x in xs:
            counter.update(x)
            sizes.append(len(counter.state()))
        seen.append((sizes, noise.scales))

    assert seen[0] == seen[1]
    assert len(set(seen[0][0])) == 1


def test_the_horizon_is_an_end_that_loses_nothing() -> None:
    """Too many periods are refused before any is counted; what was published stays."""
    counter = taped(horizon=3, noise=ZeroNoise())
    counter.update(4)
    before = counter.state()

    for beyond in (lambda: counter.update_many([1, 1, 1]), lambda: counter.advance(3)):
        with pytest.raises(HorizonReached, match="2 periods left"):
            beyond()
        assert counter.state() == before
    assert counter.update_many([1, 1]).tolist() == [5, 6]
    with pytest.raises(HorizonReached):
        counter.update(1)
    assert counter.value == 6


# Promises and parameters.


def test_only_the_kernel_carries_the_guarantee() -> None:
    """Noise with a key in memory is no noise to an intruder, however good it is for others."""
    assert PanPrivateCounter(epsilon=1).guarantee == Guarantee(epsilon=1, unit="event", intrusions=1)
    assert PanPrivateCounter(epsilon=1, noise=SYSTEM).guarantee is None
    injected = taped().state()
    assert PanPrivateCounter.from_state(injected).guarantee is None
    kept = PanPrivateCounter(epsilon=1).state()
    assert PanPrivateCounter.from_state(kept).guarantee is not None
    assert PanPrivateCounter.from_state(kept, noise=ZeroNoise()).guarantee is None


@pytest.mark.parametrize("variant", VARIANTS)
def test_users_and_greater_changes_get_more_noise(variant: Variant) -> None:
    """The scale grows with both; the promise names the user."""
    one, many = (
        taped(horizon=16, variant=variant, **more) for more in ({}, {"change": 3, "contributions": 5})
    )
    user = PanPrivateCounter(epsilon=1, contributions=5).guarantee

    assert many._block.scale == 15 * one._block.scale
    assert user == Guarantee(epsilon=1, unit="user", contributions=5, intrusions=1)


def test_counts_wrap_instead_of_failing() -> None:
    """Cells are integers modulo 2^64: no sum of events raises, and the outputs come around."""
    counter = taped(horizon=8, noise=ZeroNoise())
    outputs = counter.update_many([2**61] * 8)

    assert outputs[3] == -(2.0**63)
    assert counter.value == 0


class _Huge(ZeroNoise):
    """Noise that no int64 holds."""

    def add(self, x: Any, scale: Fraction, *, parts: Any = None) -> Any:
        return np.asarray(x, dtype=object) + 2**64 + 3


def test_noise_that_fits_no_cell_wraps_too() -> None:
    """However large a noise, a cell holds it modulo 2^64."""
    assert taped(horizon=1, noise=_Huge()).update(4) == 7


@pytest.mark.parametrize(
    ("parameter", "given"),
    [
        ("epsilon", 0),
        ("epsilon", "1e-30"),
        ("horizon", 0),
        ("horizon", 2.5),
        ("variant", "other"),
        ("live", 1),
        ("change", 0),
        ("contributions", -1),
    ],
)
def test_bad_parameters_are_refused(parameter: str, given: Any) -> None:
    """The error names the parameter, and nothing was drawn."""
    with pytest.raises(InvalidParameter) as error:
        taped(**{"noise": ForbiddenNoise(), parameter: given})
    assert error.value.parameter == parameter


@pytest.mark.parametrize("x", [1.5, "9", None, 2**62, True])
def test_bad_counts_are_refused_without_being_shown(x: Any) -> None:
    """Nothing was drawn, and the counter goes on."""
    counter = taped(horizon=4, live=True, noise=ForbiddenNoise())
    for act in (counter.update, counter.add, lambda x: counter.update_many([x])):
        with pytest.raises(InvalidData) as error:
            act(x)
        assert "9" not in str(error.value)
    assert counter.periods == 0


def test_steps_out_of_order_are_refused() -> None:
    """Adding needs a live counter and an open period; an announcement needs a closed one."""
    with pytest.raises(InvalidParameter, match="live"):
        taped(horizon=4).open()
    with pytest.raises(InvalidParameter, match="live"):
        taped(horizon=4).add(1)
    live = taped(horizon=4, live=True)
    with pytest.raises(InvalidParameter, match="open period"):
        live.add(1)
    live.open()
    with pytest.raises(InvalidParameter, match="closed"):
        live.announce_intrusion()
