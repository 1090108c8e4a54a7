"""How counters go on: never after a step that was interrupted, and after a restore with the same terms."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from partita.errors import EntropyError
from partita.testing import ZeroNoise
from partita.trusted.streams.counter import Counter
from partita.trusted.streams.family import CounterFamily
from partita.trusted.streams.pan_private import Cap, Capped, PanPrivateCounter
from partita.trusted.streams.sliding import SlidingCounter
from partita.trusted.streams.sparse import SparseCounter, SparsePlan
from partita.trusted.streams.tree_counter import PerStepCounter, RandomizedResponseCounter, TreeCounter

from .late import ShiftedNoise, restore
from .test_every_counter import MAKERS

kinds = pytest.mark.parametrize("kind", MAKERS, ids=lambda kind: kind.name)


class FailingNoise(ZeroNoise):
    """No noise at all; once `failing` is set, every draw fails."""

    failing = False

    def __getattribute__(self, name: str) -> Any:
        if name in ("add", "draw", "first_success") and object.__getattribute__(self, "failing"):
            raise RuntimeError("no entropy")
        return object.__getattribute__(self, name)


def _row(counter: Any) -> Any:
    """What an empty period counts."""
    return [0] * len(counter.keys) if isinstance(counter, CounterFamily) else 0


STEPS: dict[str, Callable[[Any], object]] = {
    "update": lambda counter: counter.update(_row(counter)),
    "update_many": lambda counter: counter.update_many([_row(counter)]),
    "advance": lambda counter: counter.advance(1),
    "state": lambda counter: counter.state(),
}
steps = pytest.mark.parametrize("step", ["update", "update_many", "advance"])


def _break(counter: Any, noise: FailingNoise, step: str) -> None:
    """Let a step fail in the middle; nothing may go on from there, not even with noise that works."""
    noise.failing = True
    with pytest.raises(RuntimeError, match="no entropy"):
        _repeat(STEPS[step], counter)
    noise.failing = False
    for later in STEPS.values():
        with pytest.raises(EntropyError, match="interrupted"):
            later(counter)


def _repeat(step: Callable[[Any], object], counter: Any) -> None:
    """Many times: some steps need no fresh noise."""
    for _ in range(1000):
        step(counter)


@kinds
@steps
def test_no_counter_goes_on_after_an_interrupted_step(kind: type[Any], step: str) -> None:
    """Noise that was used for a part of a step must not be used again for another."""
    noise = FailingNoise()

    _break(MAKERS[kind](noise=noise), noise, step)


LATER: dict[str, Callable[[Any], Any]] = {
    "second tree": lambda noise: _advance(Counter(epsilon=1, noise=noise), 256),
    "third tree": lambda noise: _advance(Counter(epsilon=1, noise=noise), 256 + 4096),
    "second supply": lambda noise: _step(TreeCounter(epsilon=1, horizon=2000, noise=noise), 256),
    "second supply, naive": lambda noise: _step(PerStepCounter(epsilon=1, horizon=2000, noise=noise), 256),
    "second block of a window": lambda noise: _advance(SlidingCounter(epsilon=1, window=9, noise=noise), 18),
    "second block": lambda noise: _advance(PanPrivateCounter(epsilon=1, noise=noise), 256),
    "family": lambda noise: _advance(CounterFamily(keys=70, epsilon=1, horizon=500, noise=noise), 64),
}


def _advance(counter: Any, periods: int) -> Any:
    counter.advance(periods)
    return counter


def _step(counter: Any, periods: int) -> Any:
    for _ in range(periods):
        counter.update(0)
    return counter


@pytest.mark.parametrize("name", LATER)
@steps
def test_no_counter_goes_on_after_a_later_step_was_interrupted(name: str, step: str) -> None:
    """The same in later trees and blocks, and for a counter that was restored there."""
    noise = FailingNoise()
    _break(LATER[name](noise), noise, step)
    _break(restore(LATER[name](noise), noise), noise, step)


@pytest.mark.parametrize("act", ["open", "add"])
def test_a_live_counter_does_not_go_on_after_an_interrupted_period(
    act: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither if noise fails as the period opens, nor if counting an event fails; its cells are erased."""
    noise = FailingNoise()
    counter = PanPrivateCounter(epsilon=1, live=True, noise=noise)
    if act == "open":
        noise.failing = True
    else:
        counter.open()
        counter.add(5)
        monkeypatch.setattr(type(counter._block), "add", lambda *_: 1 / 0)
    with pytest.raises((RuntimeError, ZeroDivisionError)):
        counter.open() if act == "open" else counter.add(3)
    noise.failing = False

    for later in (counter.open, counter.add, counter.update, counter.state, counter.announce_intrusion):
        with pytest.raises(EntropyError):
            later()
    assert not counter._cells.any()


TERMS: dict[str, Any] = {"epsilon": Fraction(7, 3), "change": 2, "contributions": 5}
GROWING = SparsePlan(seals=20, threshold=2, offset=0, spread=0.0, capacity=3)

WITH_TERMS: dict[str, Callable[..., Any]] = {
    "counter": lambda **more: Counter(horizon=900, **TERMS, **more),
    "endless": lambda **more: Counter(**TERMS, **more),
    "tree": lambda **more: TreeCounter(horizon=900, **TERMS, **more),
    "refined tree": lambda **more: TreeCounter(horizon=900, refine=True, **TERMS, **more),
    "per step": lambda **more: PerStepCounter(horizon=900, **TERMS, **more),
    "sparse": lambda **more: SparseCounter(horizon=900, plan=GROWING, **TERMS, **more),
    "sliding": lambda **more: SlidingCounter(window=20, **TERMS, **more),
    "family": lambda **more: CounterFamily(keys=70, horizon=900, **TERMS, **more),
    "named family": lambda **more: CounterFamily(
        keys=[f"k{i}" for i in range(70)], horizon=900, **TERMS, **more
    ),
    "pan-private": lambda **more: PanPrivateCounter(**TERMS, **more),
    "pan-private book": lambda **more: PanPrivateCounter(variant="book", horizon=900, **TERMS, **more),
    "randomized response": lambda **more: RandomizedResponseCounter(
        horizon=900, epsilon=TERMS["epsilon"], contributions=5, **more
    ),
}
with_terms = pytest.mark.parametrize("name", WITH_TERMS)


@with_terms
def test_a_restored_counter_promises_what_it_did(name: str) -> None:
    """Terms and guarantee come back, at the start and later, also after several restores."""
    counter = WITH_TERMS[name]()
    terms, guarantee = counter.terms, counter.guarantee
    for periods in (0, 1, 300):
        counter.advance(periods)
        for _ in range(2):
            counter = type(counter).from_state(counter.state())

        assert (counter.terms, counter.guarantee) == (terms, guarantee)
    assert guarantee is not None
    assert (guarantee.epsilon, guarantee.contributions) == (TERMS["epsilon"], 5)


def _life(name: str, *, restores: bool) -> tuple[Any, ...]:
    """All outputs of a life of 800 periods, and the scales of all noise in their order."""
    noise = ShiftedNoise()
    counter = WITH_TERMS[name](noise=noise)
    outputs = []
    for round_ in range(40):
        counter = restore(counter, noise) if restores else counter
        row = np.full(len(counter.keys), round_ % 3) if isinstance(counter, CounterFamily) else round_ % 3
        outputs.append(np.asarray(counter.update(row)).tolist())
        counter = restore(counter, noise) if restores else counter
        outputs.append(np.asarray(counter.update_many([row * 2] * 4)).tolist())
        counter = restore(counter, noise) if restores else counter
        counter.advance(15)
        outputs.append(np.asarray(counter.value).tolist())
    return outputs, noise.scales, noise.seal_scales


@with_terms
def test_a_restored_counter_draws_the_noise_that_it_would_have_drawn(name: str) -> None:
    """Restored 120 times on the way: the same outputs, from noise of the same scales in the same order."""
    assert _life(name, restores=True) == _life(name, restores=False)


def test_a_cap_forgets_nobody() -> None:
    """With thousands of others in between, each person still counts no more often than agreed."""
    cap = Cap(contributions=3)
    people = [f"person {number}" for number in range(5000)]

    for round_ in range(5):
        assert sum(cap.admits(person) for person in people) == (5000 if round_ < 3 else 0)


def test_a_cap_holds_over_many_periods() -> None:
    """A person who comes in each of 300 periods counts in the first three, whoever else comes."""
    capped = Capped(
        PerStepCounter(epsilon=1, horizon=300, contributions=3, noise=ZeroNoise()), contributions=3
    )
    outputs = [0.0, *(capped.update(["ann", *range(100 * t, 100 * t + 100)]) for t in range(300))]

    assert [b - a for a, b in pairwise(outputs)] == [101] * 3 + [100] * 297
