"""Wrong sketches: the checker that the right ones pass catches every one."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from partita.pan import registers as registers_module
from partita.pan import sketch as coins
from partita.pan.bits import BitSketch, Density
from partita.pan.registers import RampRegisters, Registers, difference_set, make_law
from partita.pan.sketch import WORD, Coin, Readout, Sketch, chances, joint_ratios, state_ratios
from partita.testing import ZeroNoise

from .looks import Act, Make, Views, neighbors, one_look

Patch = pytest.MonkeyPatch
Plant = Callable[[Patch], None]
EPSILON = Fraction(1)


def _density(noise: Any) -> Sketch:
    return Density(universe=1, epsilon=EPSILON, output_share="0.1", noise=noise)


def _three_outputs(noise: Any) -> Sketch:
    return Density(universe=1, epsilon=EPSILON, output_share="0.2", releases=3, noise=noise)


def _epochs(noise: Any) -> Sketch:
    return Density(universe=1, epsilon=EPSILON, output_share="0.1", epochs=2, noise=noise)


def _registers(noise: Any) -> Sketch:
    return Registers(universe=1, epsilon=EPSILON, most=2, output_share="0.2", noise=noise)


def _ramp(noise: Any) -> Sketch:
    return RampRegisters(universe=1, epsilon=EPSILON, tops=[2], output_share="0.2", noise=noise)


def _safe(make: Make, acts: list[Act], *, length: int, sums: range = range(2), spread: int = 1) -> bool:
    """The checker: e^-output is a rational base close to it, from above, so that no right sketch is blamed.

    A ratio is compared with e^epsilon; what is lost by the base is less than a millionth.
    """
    output = make(ZeroNoise()).output
    base = Fraction(math.ceil(math.exp(-output / spread) * 10**7), 10**7)
    worst = Views(make, sums=sums, spread=spread, base=base).worst(neighbors(1, length), acts)
    return worst is not None and float(worst) <= math.exp(EPSILON) * (1 + 1e-12)


CASES: dict[str, tuple[Make, list[Act], dict[str, Any]]] = {
    "density": (_density, one_look(2, "density"), {"length": 2}),
    "outputs": (_three_outputs, [Act((1,), ((0, "density"), (0, "density")))], {"length": 1}),
    "after": (_density, [Act((2,), ((1, "density"),))], {"length": 2}),
    "epochs": (_epochs, [Act((1, 2), ((3, "density"),), announced=(2,))], {"length": 3}),
    "exactly": (_registers, one_look(2, "exactly-1"), {"length": 2}),
    "mean": (_registers, [Act((1,), ((3, "mean-2"),))], {"length": 3, "spread": 2, "sums": range(-2, 1)}),
    "ramp": (_ramp, [Act((1,), ((3, "mean-2"),))], {"length": 3, "spread": 2, "sums": range(3)}),
}


def _caught(case: str) -> bool:
    make, acts, how = CASES[case]
    return not _safe(make, acts, **how)


@pytest.fixture(autouse=True)
def small_registers(monkeypatch: Patch) -> None:
    """Registers in Z_3."""
    monkeypatch.setattr(registers_module, "best_law", lambda e, least: make_law(difference_set(2, 2), e))


@pytest.mark.parametrize("case", CASES)
def test_the_shipped_sketches_are_safe(case: str) -> None:
    """The checker has nothing to say about the right code."""
    assert not _caught(case)


def _no_output_noise(patch: Patch) -> None:
    patch.setattr(Readout, "answer", lambda self, noisy, output: _Shown(noisy))
    for kind in (Density, Registers):
        patch.setattr(kind, "_measure", lambda self, name: lambda: _Shown(int(self._tables()[0].sum())))


class _Shown:
    """A number that is published as it is."""

    def __init__(self, value: float) -> None:
        self.value = value


def _scale_without_spread(patch: Patch) -> None:
    patch.setattr(Readout, "scale", lambda self, output: 1 / output)


def _second_time_skipped(patch: Patch) -> None:
    """A user who is a 1 already is left alone."""

    def update_many(self: Any, ids: Any) -> None:
        places = self._find(ids)
        self._bits[places] |= chances(self._noise, self._coin.redraw, places.size)

    patch.setattr(BitSketch, "update_many", update_many)


def _biased_start(patch: Patch) -> None:
    patch.setattr(BitSketch, "_fill", lambda self: self._bits.fill(False))


def _wrong_set(patch: Patch) -> None:
    """The probability of the set is right, but places outside of it are never drawn."""

    def fill(self: Any) -> None:
        law = self._law
        within = chances(self._noise, law.within, self._registers.size)
        self._registers[:] = np.where(within, law.set.inside[0], law.set.outside[0])

    patch.setattr(Registers, "_fill", fill)


def _set_size_forgotten(patch: Patch) -> None:
    """e^epsilon / (1 + e^epsilon) for the set, as if it were half of all places."""
    law = make_law(difference_set(2, 2), Fraction(4, 5))
    wrong = type(law)(law.set, int(WORD / (1 + math.exp(-0.8))))
    patch.setattr(registers_module, "best_law", lambda e, least: wrong)


def _share_not_charged(patch: Patch) -> None:
    """Every output has all of the share."""
    patch.setattr(Density, "output", property(lambda self: self._shares.share * self.epsilon))


def _rounded_up(patch: Patch) -> None:
    """The threshold is the next one above."""
    right = coins.joint_coin

    def wrong(*given: Any) -> Coin:
        made = right(*given)
        return Coin(made.start - 2**44, made.redraw + 2**44)

    patch.setattr(coins, "joint_coin", wrong)


def _added_up_for_free(patch: Patch) -> None:
    """The state alone has epsilon, and the output comes on top."""
    patch.setattr(coins, "joint_coin", lambda e, output, variant: coins.state_coin(e, variant))


def _kept_after_release(patch: Patch) -> None:
    """The last output neither ends the epoch nor erases its table."""

    def begin(self: Any) -> None:
        self._left = self.releases

    patch.setattr(Sketch, "_begin_epoch", begin)


def _epoch_not_erased(patch: Patch) -> None:
    def begin(self: Any) -> None:
        self._periods += 1
        self._left = self.releases

    patch.setattr(Sketch, "_begin_epoch", begin)


def _epochs_for_free(patch: Patch) -> None:
    patch.setattr(Sketch, "epsilon", property(lambda self: self.terms.epsilon))


def _counter_starts_at_zero(patch: Patch) -> None:
    patch.setattr(coins, "uniform", lambda noise, count, size: np.zeros(size, dtype=np.int64))


def _printed_coin(epsilon: Fraction) -> Coin:
    """The biases as they are printed: 1/2, then 1/2 + epsilon.

    The book says that this is (epsilon, 0) private [DR14, section 12.2]. It is not: a bit that shows 0 is
    rarer by 1 - 2 epsilon if its user came, a loss of -ln(1 - 2 epsilon): 0.69 at epsilon 0.25, and without
    bound as epsilon goes to 1/2. Its estimate 2 (y - m/2) / m is also too small by the factor 2 epsilon.
    `Density(variant="book")` has the bias (1 - e^-epsilon) / 2, and divides by it.
    """
    return Coin(start=WORD // 2, redraw=WORD // 2 + int(epsilon * WORD))


def _literal_book(patch: Patch) -> None:
    """The bias as the book has it."""
    patch.setattr(coins, "joint_coin", lambda *_: _printed_coin(Fraction("0.45")))


@pytest.mark.parametrize(
    ("plant", "case"),
    [
        (_no_output_noise, "density"),
        (_no_output_noise, "exactly"),
        (_scale_without_spread, "mean"),
        (_scale_without_spread, "ramp"),
        (_second_time_skipped, "density"),
        (_biased_start, "density"),
        (_wrong_set, "exactly"),
        (_set_size_forgotten, "exactly"),
        (_share_not_charged, "outputs"),
        (_rounded_up, "density"),
        (_added_up_for_free, "density"),
        (_kept_after_release, "after"),
        (_epoch_not_erased, "epochs"),
        (_epochs_for_free, "epochs"),
        (_counter_starts_at_zero, "ramp"),
        (_literal_book, "density"),
    ],
)
def test_a_planted_bug_is_caught(plant: Plant, case: str, monkeypatch: Patch) -> None:
    """One bug at a time; the case that would suffer from it finds it."""
    plant(monkeypatch)

    assert _caught(case)


def test_the_printed_bias_loses_more_than_it_claims() -> None:
    """1/2 and 1/2 + epsilon: the state alone loses -ln(1 - 2 epsilon), which is more than epsilon."""
    for claim in ("0.05", "0.25", "0.45"):
        printed = _printed_coin(Fraction(claim))
        loss = math.log(max(state_ratios(printed.q0, printed.q1)))

        assert loss > float(claim)
        assert loss == pytest.approx(-math.log(1 - 2 * float(claim)))
        assert max(joint_ratios(printed.q0, printed.q1, Fraction(1))) == max(
            state_ratios(printed.q0, printed.q1)
        )
