"""What holds for every counter: its clock, its state, its one process; and states that nobody gave."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from partita.errors import EntropyError, HorizonReached, InvalidData, InvalidParameter, InvalidState
from partita.public.stream_trees import PeriodTree, shape_for
from partita.public.streams import LARGEST
from partita.testing import EndlessTape, ForbiddenNoise, ZeroNoise, tape_noise
from partita.trusted.streams.base import Stepping, pack, unpack
from partita.trusted.streams.counter import Counter, NoisyCount
from partita.trusted.streams.family import CounterFamily
from partita.trusted.streams.pan_private import Capped, PanPrivateCounter
from partita.trusted.streams.sliding import SlidingCounter
from partita.trusted.streams.sparse import SparseCounter
from partita.trusted.streams.tree_counter import (
    DirectCounter,
    PerStepCounter,
    RandomizedResponseCounter,
    TreeCounter,
)

Make = Callable[..., Any]

MAKERS: dict[type[Any], Make] = {
    Counter: lambda **more: Counter(epsilon=1, horizon=40, **more),
    TreeCounter: lambda **more: TreeCounter(epsilon=1, horizon=40, **more),
    SparseCounter: lambda **more: SparseCounter(epsilon=1, horizon=40, expected=9, **more),
    PanPrivateCounter: lambda **more: PanPrivateCounter(epsilon=1, horizon=40, **more),
    SlidingCounter: lambda **more: SlidingCounter(epsilon=1, window=9, **more),
    CounterFamily: lambda **more: CounterFamily(keys=2, epsilon=1, horizon=40, **more),
    PerStepCounter: lambda **more: PerStepCounter(epsilon=1, horizon=40, **more),
    DirectCounter: lambda **more: DirectCounter(epsilon=1, horizon=40, **more),
    RandomizedResponseCounter: lambda **more: RandomizedResponseCounter(epsilon=1, horizon=40, **more),
}
kinds = pytest.mark.parametrize("kind", MAKERS, ids=lambda kind: kind.name)


def _leaves(kind: type[Any]) -> set[type[Any]]:
    below = [_leaves(each) for each in kind.__subclasses__()]
    return set().union(*below) if below else {kind}


def test_every_counter_is_here() -> None:
    """Every counter is made above, and all of them have one clock, one state and one way to break."""
    shipped = {kind for kind in _leaves(Stepping) if kind.__module__.startswith("partita.trusted.streams.")}

    assert shipped == set(MAKERS)
    assert {kind for kind in shipped if {"state", "from_state"} & vars(kind).keys()} == {PanPrivateCounter}
    assert not {"state", "from_state", "_make_room", "_step"} & vars(NoisyCount).keys()


def _changed(counter: Any, **rows: Any) -> bytes:
    """The state of a counter with other rows, and a checksum that is right."""
    kind = type(counter)
    return pack(kind.name, 1, {**unpack(counter.state(), kind.name, 1), **rows})


@kinds
@pytest.mark.parametrize("periods", [-1, 41, LARGEST + 1, 2**100, -(2**100)])
def test_a_clock_that_no_counter_has_is_refused(kind: type[Any], periods: int) -> None:
    """Neither before the first period nor after the last, and by no other error."""
    counter = MAKERS[kind]()
    endless = counter.horizon is None and 0 <= periods <= LARGEST

    if not endless:
        with pytest.raises(InvalidState):
            kind.from_state(_changed(counter, clock=[periods, 1]))


@kinds
@pytest.mark.parametrize("terms", ["1e999999999 1 1", "1 0 1", "1 1 -1", "1 1", "0 1 1", "1/0 1 1", "x 1 1"])
def test_terms_that_no_counter_has_are_refused(kind: type[Any], terms: str) -> None:
    """In no time, however large the number would be."""
    row = np.frombuffer(terms.encode(), dtype=np.uint8).astype(np.int64)

    with pytest.raises(InvalidState):
        kind.from_state(_changed(MAKERS[kind](), terms=row))


@pytest.mark.faults
@kinds
def test_a_child_does_not_go_on_and_its_parent_does(kind: type[Any]) -> None:
    """Both would publish the same noise."""
    counter = MAKERS[kind]()
    counter.advance(3)
    child = os.fork()
    if not child:
        try:
            counter.advance(1)
        except EntropyError:
            os._exit(7)
        os._exit(1)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    counter.advance(1)


@kinds
def test_after_a_fork_no_counter_goes_on(kind: type[Any]) -> None:
    """What the child is told to do, done here: every counter that is alive is broken."""
    counter, other = MAKERS[kind](), Counter(epsilon=1)
    counter.advance(3)

    Stepping.after_fork()

    for each in (counter, other):
        with pytest.raises(EntropyError, match="forked"):
            each.state()


@pytest.mark.parametrize("open_leaves", [[3, 4], [700, 701], [2, 1], [-5, 20], [0, 5000]])
def test_errors_that_are_not_of_these_periods_are_refused(open_leaves: list[int]) -> None:
    """Errors worked out ahead begin in a period that is closed, and are no more than are kept."""
    with pytest.raises(InvalidState):
        Counter.from_state(_changed(Counter(epsilon=1, horizon=1000), open=open_leaves))


def test_a_sparse_state_with_another_epsilon_inside_is_refused() -> None:
    """Inner counters have the rest of epsilon, for as many events and segments as they should."""
    counter = MAKERS[SparseCounter]()
    right = counter._inner.terms.keywords
    room = counter.plan.capacity

    def state(**changes: Any) -> bytes:
        inner = Counter(**{**right, "horizon": room, **changes}).state()
        return _changed(counter, inner=np.frombuffer(inner, dtype=np.uint8).astype(np.int64))

    assert SparseCounter.from_state(state()).guarantee == counter.guarantee
    for changes in ({"epsilon": 5}, {"contributions": 2}, {"change": 3}, {"horizon": room + 1}):
        with pytest.raises(InvalidState):
            SparseCounter.from_state(state(**changes))


INNER = (Counter, TreeCounter, PanPrivateCounter, PerStepCounter, DirectCounter)
WHY_NOT = {
    SlidingCounter: "forgets",
    RandomizedResponseCounter: "as a bit",
    CounterFamily: "for each key",
    SparseCounter: "depend on its segments",
    Capped: "take a horizon",
    NoisyCount: "take a horizon",
    7: "take a horizon",
}


def test_every_counter_counts_segments_or_says_why_not() -> None:
    """No counter of this package is left out."""
    assert {*INNER, *WHY_NOT} >= set(MAKERS)


@pytest.mark.parametrize("constants", [{"expected": 9}, {}, {"constants": "paper", "weight": 5}])
@pytest.mark.parametrize("inner", INNER, ids=lambda kind: kind.name)
def test_any_inner_counter_counts_the_segments(inner: type[Any], constants: Any) -> None:
    """It goes on through a state and past its room, with the rest of epsilon, and says how far it is off."""
    xs = [period % 3 * 10 for period in range(90)]
    made = {"epsilon": 5, "horizon": 90, "inner": inner, **constants}
    whole = SparseCounter(**made, noise=tape_noise(EndlessTape(4)))
    outputs = whole.update_many(xs).tolist()

    noise = tape_noise(EndlessTape(4))
    before = SparseCounter(**made, noise=noise)
    begun = [before.update(x) for x in xs[:50]]
    after = SparseCounter.from_state(before.state(), noise=noise)
    answer = whole.answer(1e-6)

    assert begun + [after.update(x) for x in xs[50:]] == outputs
    assert whole._inner.terms.epsilon == whole.terms.epsilon * (64 - whole.plan.seals) / 64
    assert whole.seals > 5
    assert answer.low <= sum(xs) <= answer.high
    assert SparseCounter(**made).guarantee == SparseCounter(epsilon=5, horizon=90).guarantee


@pytest.mark.parametrize(("inner", "reason"), WHY_NOT.items())
def test_what_cannot_count_segments_is_refused(inner: Any, reason: str) -> None:
    """By name, with the reason, and before any noise is drawn."""
    with pytest.raises(InvalidParameter, match=reason) as refused:
        SparseCounter(epsilon=1, horizon=40, inner=inner, noise=ForbiddenNoise())

    assert refused.value.parameter == "inner"


def test_a_block_is_hardly_longer_than_its_window() -> None:
    """A shape from a state cannot ask for more memory than the window needs."""
    endless = PeriodTree(2**40, (6,) * 6, (146,) * 6 + (148,))

    with pytest.raises(InvalidState):
        SlidingCounter.from_state(_changed(MAKERS[SlidingCounter](), shape=endless.numbers))
    with pytest.raises(InvalidParameter, match="shape"):
        MAKERS[SlidingCounter](shape=PeriodTree(18, (), (1024,)), noise=ForbiddenNoise())
    assert MAKERS[SlidingCounter](shape=PeriodTree(17, (), (1024,))).window == 9
    assert all(shape_for(window).whole.horizon < 2 * window for window in range(1, 3000))


def test_outputs_of_a_family_depend_on_count_and_error_together() -> None:
    """One more counted and one less of error is the same output, also where floats are rounded."""
    family = MAKERS[CounterFamily](noise=ZeroNoise())
    family.update([1, 1])
    one = int(1 / family.granularity)
    count = 2**53
    pairs = [([count + more] * 2, [5 - more * one] * 2) for more in range(4)]
    values = [CounterFamily.from_state(_changed(family, counts=c, error=e)).value.tolist() for c, e in pairs]

    assert values == [values[0]] * 4


def test_a_shape_is_for_the_horizon_of_its_family() -> None:
    """Counts of more periods than a family may have would not fit."""
    with pytest.raises(InvalidParameter) as refused:
        CounterFamily(keys=2, epsilon=1, horizon=40, shape=shape_for(2**20), noise=ForbiddenNoise())
    assert refused.value.parameter == "shape"

    tall = PeriodTree(2**36, (6,) * 5, (170,) * 5 + (174,))
    with pytest.raises(InvalidState):
        CounterFamily.from_state(_changed(MAKERS[CounterFamily](), shape=tall.numbers))


@pytest.mark.parametrize("bad", [[1, [2]], [[1, 2]], [1, 2, 3], 7, None])
def test_a_family_refuses_what_is_no_row(bad: Any) -> None:
    """By a rule, and the period stays open."""
    family = MAKERS[CounterFamily]()
    with pytest.raises(InvalidData):
        family.update(bad)

    assert family.periods == 0


def test_a_family_that_could_not_be_read_again_is_not_begun() -> None:
    """Its state would be longer than any that is read."""
    with pytest.raises(InvalidParameter) as refused:
        CounterFamily(keys=2**17, epsilon="1e-9", horizon=2**20, noise=ForbiddenNoise())

    assert refused.value.parameter == "keys"


def test_past_the_horizon_nobody_is_seen() -> None:
    """A cap is not used up by events that were not counted."""
    capped = Capped(PerStepCounter(epsilon=1, horizon=1, noise=ZeroNoise()), contributions=1)
    capped.update()

    with pytest.raises(HorizonReached):
        capped.update(["ann"])

    assert capped._cap.admits("ann")


def test_a_cap_is_that_of_the_counter_whatever_its_noise() -> None:
    """Injected noise is no way around it."""
    with pytest.raises(InvalidParameter):
        Capped(PerStepCounter(epsilon=1, horizon=1, contributions=2, noise=ZeroNoise()), contributions=3)
