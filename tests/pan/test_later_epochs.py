"""Sketches in later epochs, after a restore, with several tops and outputs: the same laws as at the start."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

from partita.errors import BudgetExceeded, EntropyError
from partita.pan.bits import Density, Distinct
from partita.pan.registers import RampRegisters, Registers
from partita.pan.sketch import WORD, Sketch, state_coin, state_ratios
from partita.testing import ZeroNoise
from partita.trusted.noise.laws import Exact

from .looks import Act, Views, neighbors

EPOCHS, RELEASES, EPSILON, SHARE = 5, 3, Fraction(10), Fraction(1, 4)
OUTPUT = EPSILON / EPOCHS * SHARE / RELEASES
STATE = EPSILON / EPOCHS * (1 - SHARE)
PLAN: dict[str, Any] = {"epsilon": EPSILON, "epochs": EPOCHS, "releases": RELEASES, "output_share": SHARE}
TOPS = [1, 2, 3, 4]


class RequestLog(ZeroNoise):
    """No noise, and a record of all that was asked for: bits, uniform numbers, sums with their scales."""

    def __init__(self) -> None:
        self.bits: list[Exact] = []
        self.uniform: list[tuple[int, ...]] = []
        self.sums: list[tuple[Any, Fraction]] = []

    def bernoulli(self, probability: Exact) -> bool:
        self.bits.append(probability)
        return len(self.bits) % 3 == 0

    def categorical(self, weights: Sequence[int | Fraction]) -> int:
        self.uniform.append(tuple(int(weight) for weight in weights))
        return len(self.uniform) % len(weights)

    def add(self, x: ArrayLike, scale: Fraction, *, parts: ArrayLike | None = None) -> Any:
        assert parts is None
        self.sums.append((np.asarray(x).tolist(), scale))
        return x

    def flush(self) -> tuple[list[Exact], list[tuple[int, ...]], list[tuple[Any, Fraction]]]:
        """The record so far; a new one begins."""
        taken = self.bits, self.uniform, self.sums
        self.bits, self.uniform, self.sums = [], [], []
        return taken


MAKERS: dict[str, Callable[[Any], Sketch]] = {
    "density": lambda noise: Density(universe=70, noise=noise, **PLAN),
    "book": lambda noise: Density(universe=70, variant="book", noise=noise, **PLAN),
    "distinct": lambda noise: Distinct(buckets=4, most=8000, noise=noise, **PLAN),
    "registers": lambda noise: Registers(universe=70, most=5, lowest=-2, noise=noise, **PLAN),
    "ramp": lambda noise: RampRegisters(universe=70, tops=TOPS, noise=noise, **PLAN),
}
NAMES = {
    "density": ["density"] * 3,
    "book": ["density"] * 3,
    "distinct": ["distinct"] * 3,
    "registers": ["exactly-2", "mean-4", "heavy-5"],
    "ramp": ["mean-4", "heavy-3", "exactly-3"],
}
every_sketch = pytest.mark.parametrize("kind", MAKERS)
with_restores = pytest.mark.parametrize("restores", [False, True], ids=["kept", "restored"])


def _restore(sketch: Any, noise: Any) -> Any:
    return type(sketch).from_state(sketch.state(), noise=noise)


def _chances(kind: str) -> tuple[Fraction, Fraction]:
    """The chances of a bit before and after its user came: the most telling for the share of the state."""
    coin = state_coin(STATE / (len(TOPS) if kind == "ramp" else 1), "book" if kind == "book" else "default")
    return coin.q0, coin.q1


def _fresh_table(kind: str, sketch: Any) -> tuple[list[Fraction], list[int]]:
    """The bits and the ranges of uniform numbers of a fresh table."""
    if kind == "registers":
        law = sketch._law
        assert math.log(law.ratio) <= STATE
        sizes = [law.set.size] * 70 + [law.set.period - law.set.size] * 70
        return [Fraction(law.within, WORD)] * 70, sizes
    if kind == "ramp":
        return [_chances(kind)[0]] * 280, [top for top in TOPS for _ in range(70)]
    return [_chances(kind)[0]] * sketch._bits.size, []


def _spread(kind: str, name: str) -> int:
    """By how much one user can move a released sum, found by trying all that a register can hold."""
    noise = RequestLog()
    sketch: Any = MAKERS[kind](noise)
    sketch.releases = sketch._left = 10**6
    sums = []
    if kind == "registers":
        for value in range(sketch._law.set.period):
            sketch._registers[0] = value
            sketch.release(name)
            sums.append(noise.sums[-1][0])
    else:
        for bits in product((0, 1), repeat=len(TOPS)) if kind == "ramp" else ((0,), (1,)):
            np.atleast_2d(sketch._bits)[:, 0] = bits
            sketch.release(name)
            sums.append(np.sum(noise.sums[-1][0]))
    return int(max(sums) - min(sums))


@every_sketch
@with_restores
def test_every_epoch_has_the_same_law(kind: str, restores: bool) -> None:
    """Fresh tables, redrawn bits and scales of all outputs, in five epochs of three outputs each."""
    noise = RequestLog()
    sketch: Any = MAKERS[kind](noise)
    scales = [_spread(kind, name) / OUTPUT for name in NAMES[kind]]
    ids = [0, 3, 3, 64, 69]
    redrawn = {"registers": 0, "ramp": len(TOPS)}.get(kind, 1) * len(ids)

    for epoch in range(EPOCHS):
        bits, numbers, _ = noise.flush()
        assert (bits, [len(weights) for weights in numbers]) == _fresh_table(kind, sketch), epoch
        assert all(set(weights) == {1} for weights in numbers)
        for number, name in enumerate(NAMES[kind]):
            if restores:
                sketch = _restore(sketch, noise)
                noise.flush()
            sketch.update_many(ids)
            bits, numbers, _ = noise.flush()
            assert bits == [_chances(kind)[1]] * redrawn
            assert not numbers
            sketch.release(name)
            assert [scale for _, scale in noise.sums] == [scales[number]], (epoch, name)
    with pytest.raises(BudgetExceeded):
        sketch.release(NAMES[kind][0])


@every_sketch
def test_every_level_and_bit_of_an_output_has_noise(kind: str) -> None:
    """An output is one noisy sum, or one for each level of `Distinct`, and nothing else."""
    noise = RequestLog()
    sketch: Any = MAKERS[kind](noise)
    sketch.release(NAMES[kind][0])
    [(total, _)] = noise.sums

    assert np.shape(total) == ((sketch.levels,) if kind == "distinct" else ())
    if kind == "distinct":
        assert sketch.levels == 12


@every_sketch
def test_a_restored_sketch_has_no_output_too_many(kind: str) -> None:
    """Restored after every step: three outputs in each of five epochs, and then none."""
    noise = RequestLog()
    sketch: Any = MAKERS[kind](noise)
    for output in range(EPOCHS * RELEASES):
        sketch = _restore(sketch, noise)
        sketch.release(NAMES[kind][output % RELEASES])
    sketch = _restore(sketch, noise)

    with pytest.raises(BudgetExceeded):
        sketch.release(NAMES[kind][0])
    assert not any(table.any() for table in sketch._tables())


@every_sketch
@pytest.mark.parametrize("epoch", [1, 4])
@pytest.mark.parametrize("step", ["update", "release", "announce"])
def test_no_sketch_goes_on_after_an_interrupted_step(kind: str, epoch: int, step: str) -> None:
    """In a later epoch too: it is broken for good, and its tables are erased."""
    noise: Any = RequestLog()
    sketch: Any = MAKERS[kind](noise)
    for _ in range(epoch - 1):
        sketch.announce_intrusion()
    sketch.update_many(range(70))

    def fails(*_: Any) -> Any:
        raise RuntimeError("no entropy")

    acts = {
        "update": lambda: sketch.update_many([1, 2]),
        "release": lambda: sketch.release(NAMES[kind][0]),
        "announce": sketch.announce_intrusion,
    }
    if (kind, step) == ("registers", "update"):
        sketch._registers = _ReadOnlyRegisters(sketch._registers)
    noise.add = noise.bernoulli = fails
    with pytest.raises(RuntimeError, match="no entropy"):
        acts[step]()
    del noise.add, noise.bernoulli

    for act in (*acts.values(), sketch.state):
        with pytest.raises(EntropyError):
            act()
    assert not any(np.asarray(table).any() for table in sketch._tables())


class _ReadOnlyRegisters(np.ndarray):
    """Registers that fail when they are moved: an update of registers draws nothing."""

    def __new__(cls, values: Any) -> Any:
        return np.asarray(values).view(cls)

    def __setitem__(self, key: Any, value: Any) -> None:
        raise RuntimeError("no entropy")


@pytest.mark.parametrize("tops", [[1, 2], [2, 3], [1, 2, 3], list(range(1, 9))])
def test_the_bits_of_all_tops_together_keep_the_share_of_the_state(tops: list[int]) -> None:
    """The product of the greatest ratios over all tops is at most e^state, and nearly that."""
    sketch = RampRegisters(universe=3, epsilon=2, tops=tops, output_share="1/4", noise=ZeroNoise())
    together = max(state_ratios(sketch._coin.q0, sketch._coin.q1)) ** len(tops)

    assert math.log(together) == pytest.approx(1.5)
    assert math.log(together) <= 1.5 * (1 + 1e-12)


def _two_tops(noise: Any) -> Sketch:
    return RampRegisters(universe=1, epsilon=1, tops=[1, 2], output_share="0.2", noise=noise)


def test_two_tops_and_their_difference_lose_no_more_than_epsilon() -> None:
    """One look at counters and bits of both tops, and one output of both, for all streams of two moments."""
    spread, base = 3, Fraction(math.ceil(math.exp(-Fraction(1, 5) / 3) * 10**7), 10**7)
    views = Views(_two_tops, sums=range(-1, 3), spread=spread, base=base)
    acts = [Act((look,), ((2, "heavy-2"),)) for look in range(3)]

    worst = views.worst(neighbors(1, 2), acts)

    assert worst is not None
    assert math.exp(0.8) < float(worst) <= math.e * (1 + 1e-12)


@pytest.mark.parametrize("kind", ["density", "registers", "ramp"])
def test_an_output_of_any_statistic_is_hidden_by_its_scale(kind: str) -> None:
    """For every statistic of many numbers and tops: the scale is what one user can move, over the epsilon."""
    names = {
        "density": ["density"],
        "registers": ["density", "exactly-0", "exactly-5", *(f"heavy-{t}" for t in range(1, 6)), "mean-5"],
        "ramp": ["density", "mean-1", "mean-4", "heavy-2", "heavy-4", "exactly-0", "exactly-1", "exactly-3"],
    }[kind]
    for name in names:
        noise = RequestLog()
        sketch = MAKERS[kind](noise)
        sketch.release(name)

        assert noise.sums[0][1] == _spread(kind, name) / OUTPUT, name
