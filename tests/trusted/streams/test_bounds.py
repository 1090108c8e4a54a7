"""Bounds before data of counters: no output of a whole stream is off by more, at the stated rate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest

from partita.errors import InvalidParameter
from partita.testing import EndlessTape, tape_noise
from partita.trusted.noise.system import KERNEL, SYSTEM
from partita.trusted.streams.base import Stepping
from partita.trusted.streams.counter import Counter
from partita.trusted.streams.family import CounterFamily
from partita.trusted.streams.pan_private import PanPrivateCounter
from partita.trusted.streams.sliding import SlidingCounter
from partita.trusted.streams.sparse import SparseCounter
from partita.trusted.streams.tree_counter import (
    DirectCounter,
    PerStepCounter,
    RandomizedResponseCounter,
    TreeCounter,
)

BETA: Final = 0.1
HORIZON: Final = 256
EVENTS: Final = 90
BITS: Final = np.isin(np.arange(HORIZON), np.random.default_rng(3).choice(HORIZON, EVENTS, replace=False))
XS: Final = BITS.astype(np.int64)
TRUTHS: Final = np.cumsum(XS)

Make = Callable[..., Any]
_USUAL: Final[dict[str, Any]] = {"epsilon": 1, "horizon": HORIZON}
_PAPER: Final[dict[str, Any]] = {**_USUAL, "constants": "paper"}
MAKERS: Final[dict[str, Make]] = {
    "counter": lambda **more: Counter(**_USUAL, **more),
    "counter without a horizon": lambda **more: Counter(epsilon=1, **more),
    "tree": lambda **more: TreeCounter(**_USUAL, **more),
    "refined tree": lambda **more: TreeCounter(**_USUAL, branching=4, refine=True, **more),
    "sparse": lambda **more: SparseCounter(**_USUAL, expected=20, **more),
    "sparse without a hint": lambda **more: SparseCounter(**_USUAL, **more),
    "sparse of the paper": lambda **more: SparseCounter(**_PAPER, weight=EVENTS, **more),
    "sparse with little room": lambda **more: SparseCounter(**_PAPER, weight=1, beta="1/2", **more),
    "sliding": lambda **more: SlidingCounter(epsilon=1, window=30, **more),
    "pan-private": lambda **more: PanPrivateCounter(**_USUAL, **more),
    "pan-private without a horizon": lambda **more: PanPrivateCounter(epsilon=1, **more),
    "pan-private of the book": lambda **more: PanPrivateCounter(**_USUAL, variant="book", **more),
    "per step": lambda **more: PerStepCounter(**_USUAL, **more),
    "direct": lambda **more: DirectCounter(**_USUAL, **more),
    "randomized response": lambda **more: RandomizedResponseCounter(**_USUAL, **more),
    "family": lambda **more: CounterFamily(keys=5, **_USUAL, **more),
}
counters = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


def _bound(counter: Any) -> float:
    bound: float = counter.bound(BETA, rows=EVENTS, periods=HORIZON)
    return bound


def _miss(counter: Any) -> float:
    """The largest error of all outputs, and for all keys."""
    if isinstance(counter, CounterFamily):
        return float(np.abs(counter.update_many(np.repeat(XS[:, None], 5, axis=1)) - TRUTHS[:, None]).max())
    truths = TRUTHS
    if isinstance(counter, SlidingCounter):
        truths = truths - np.concatenate([np.zeros(30, int), truths[:-30]])
    return float(np.abs(counter.update_many(XS) - truths).max())


@counters
def test_bound_holds_on_fixed_tapes(make: Make) -> None:
    """Of 12 streams at most 5 have an output beyond the bound that one in ten may exceed."""
    misses = [_miss(make(noise=tape_noise(EndlessTape(seed)))) for seed in range(12)]

    assert sum(miss > _bound(make()) for miss in misses) <= 5


@pytest.mark.statistics
@counters
def test_bound_holds_at_its_rate_and_is_near_the_errors(make: Make) -> None:
    """More than 38 of 200 streams beyond it have a chance below 1e-4, and some miss by a twentieth of it."""
    noise = KERNEL if make().name == "pan-private" else SYSTEM
    bound = _bound(make())
    misses = np.array([_miss(make(noise=noise)) for _ in range(200)])

    assert int((misses > bound).sum()) <= 38
    assert misses.max() > bound / 20


@pytest.mark.parametrize("kind", [TreeCounter, PerStepCounter, DirectCounter])
def test_bound_for_a_quarter_of_the_noise_is_caught(kind: Any) -> None:
    """The bound of four times the epsilon is exceeded by most streams."""
    misses = [_miss(kind(**_USUAL, noise=tape_noise(EndlessTape(seed)))) for seed in range(12)]

    assert sum(miss > kind(epsilon=4, horizon=HORIZON).bound(BETA) for miss in misses) >= 7


@counters
def test_bound_does_not_depend_on_what_was_counted(make: Make) -> None:
    """After all periods it is what it was before the first, a float that no state enters."""
    counter = make()
    before = _bound(counter)
    _miss(counter)

    assert isinstance(before, float)
    assert np.isfinite(before)
    assert _bound(counter) == before


def test_every_counter_has_a_bound() -> None:
    """And each is tested here."""

    def leaves(kind: type[Any]) -> set[type[Any]]:
        below = [leaves(each) for each in kind.__subclasses__()]
        return set().union(*below) if below else {kind}

    shipped = {kind for kind in leaves(Stepping) if kind.__module__.startswith("partita.trusted.streams.")}

    assert {type(make()) for make in MAKERS.values()} == shipped


def test_sparse_bound_follows_theorem_3_1() -> None:
    """It grows with the logarithm of the horizon and not with its square, and hardly with events."""
    bounds = [
        SparseCounter(epsilon=1, horizon=2**power, constants="paper", weight=1000).bound(rows=1000)
        for power in (16, 32, 48)
    ]
    steps = np.diff(bounds)

    assert steps[1] < 1.2 * steps[0]
    assert bounds[0] < TreeCounter(epsilon=1, horizon=2**48).bound()


def test_more_segments_than_room_need_more_counters() -> None:
    """A counter of the paper with room for one event in a hundred has a larger bound, and still one."""
    enough, little = (
        SparseCounter(epsilon=1, horizon=2**20, constants="paper", weight=weight).bound(rows=1000)
        for weight in (1000, 10)
    )

    assert enough < little < 10 * enough


def test_what_a_bound_needs_is_asked_for() -> None:
    """Periods where there is no horizon, events of a sparse counter; a horizon is not exceeded."""
    with pytest.raises(InvalidParameter, match="periods must be given where no horizon is known"):
        Counter(epsilon=1).bound()
    with pytest.raises(InvalidParameter, match=f"periods must be at most {HORIZON}"):
        Counter(**_USUAL).bound(periods=HORIZON + 1)
    with pytest.raises(InvalidParameter, match="rows must be given"):
        SparseCounter(**_USUAL).bound()
    with pytest.raises(InvalidParameter, match="beta must lie between 0 and 1"):
        TreeCounter(**_USUAL).bound(1)
