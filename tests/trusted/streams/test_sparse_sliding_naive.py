"""Sparse, sliding and naive counters in use: exact without noise, through states, up to the horizon."""

from __future__ import annotations

import copy
import os
import pickle
from collections.abc import Callable
from itertools import accumulate
from typing import Any

import numpy as np
import pytest

from partita.errors import (
    EntropyError,
    HorizonReached,
    InvalidData,
    InvalidParameter,
    InvalidState,
    TapeExhausted,
)
from partita.testing import EndlessTape, ForbiddenNoise, ZeroNoise, tape_noise
from partita.trusted.noise.laws import Tape
from partita.trusted.streams.base import pack, unpack
from partita.trusted.streams.sliding import SlidingCounter
from partita.trusted.streams.sparse import SparseCounter, SparsePlan
from partita.trusted.streams.tree_counter import (
    DirectCounter,
    PerStepCounter,
    RandomizedResponseCounter,
    TreeCounter,
)

Make = Callable[..., Any]

HORIZON = 120


def _maker(kind: type[Any], **usual: Any) -> Make:
    return lambda **more: kind(**{**usual, **more})


MAKERS: dict[str, Make] = {
    "sparse": _maker(SparseCounter, epsilon=3, horizon=HORIZON, expected=30),
    "sparse, no hint": _maker(SparseCounter, epsilon=3, horizon=HORIZON),
    "sparse, paper": _maker(SparseCounter, epsilon=4, horizon=HORIZON, constants="paper", weight=2),
    "sparse, naive inside": _maker(
        SparseCounter, epsilon=3, horizon=HORIZON, expected=30, inner=PerStepCounter
    ),
    "sliding": _maker(SlidingCounter, window=21, epsilon=1),
    "sliding, tiny epsilon": _maker(SlidingCounter, window=40, epsilon="1e-9"),
    "per step": _maker(PerStepCounter, epsilon=1, horizon=HORIZON),
    "direct": _maker(DirectCounter, epsilon=1, horizon=HORIZON),
    "randomized response": _maker(RandomizedResponseCounter, epsilon=1, horizon=HORIZON),
}
makers = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
BITS = [period * 7 % 5 % 2 for period in range(HORIZON)]


def _on_a_tape(make: Make, seed: object, **more: Any) -> Any:
    return make(noise=tape_noise(EndlessTape(seed)), **more)


@makers
def test_a_state_goes_on_with_the_same_outputs(make: Make) -> None:
    """After any number of periods, on noise that goes on from there."""
    whole = _on_a_tape(make, 5)
    outputs = [whole.update(x) for x in BITS]

    for stop in (0, 1, 17, 64, 119):
        noise = tape_noise(EndlessTape(5))
        before = make(noise=noise)
        assert [before.update(x) for x in BITS[:stop]] == outputs[:stop]
        again = type(before).from_state(before.state(), noise=noise)
        assert (again.periods, again.exact, again.state()) == (stop, before.exact, before.state())
        assert again.answer() == before.answer()
        assert [again.update(x) for x in BITS[stop:]] == outputs[stop:]


@makers
def test_the_size_of_a_state_is_public(make: Make) -> None:
    """It takes the same room whatever was counted; in a sparse counter, for each number of seals."""
    sizes: dict[int, set[int]] = {}
    for seed in range(6):
        counter = _on_a_tape(make, seed)
        for period in range(80):
            counter.update(seed % 2 * 10**6 * (period % 7 == seed))
            sizes.setdefault(getattr(counter, "seals", 0), set()).add(len(counter.state()))

    assert {len(found) for found in sizes.values()} == {1}


@makers
def test_time_is_public(make: Make) -> None:
    """The number of outputs, and of periods, is the same for a silent stream and for a busy one."""
    silent, busy = _on_a_tape(make, 9), _on_a_tape(make, 9)

    assert silent.update_many([0] * 50).shape == busy.update_many([1] * 50).shape == (50,)
    silent.advance(7)
    busy.advance(7)
    assert silent.periods == busy.periods == 57


@makers
def test_many_at_once_are_as_many_as_one_by_one(make: Make) -> None:
    """Outputs of many periods are those of the last one and of all before; none of nothing."""
    counter = _on_a_tape(make, 3)

    outputs = counter.update_many(BITS[:30])

    assert outputs[-1] == counter.value == float(counter.exact)
    assert counter.exact % counter.granularity == 0
    assert counter.update_many([]).tolist() == []
    assert counter.update(1) == counter.value


@pytest.mark.parametrize("name", [name for name in MAKERS if "sliding" not in name])
def test_past_the_horizon_nothing_is_lost(name: str) -> None:
    """A typed error, before anything is counted or drawn; the last output stays."""
    counter = _on_a_tape(MAKERS[name], 4)
    counter.advance(HORIZON - 2)
    state = counter.state()

    with pytest.raises(HorizonReached):
        counter.update_many([1, 2, 3])
    with pytest.raises(HorizonReached):
        counter.advance(3)
    assert counter.state() == state
    counter.update_many([1, 1])
    with pytest.raises(HorizonReached):
        counter.update(1)


@makers
def test_only_our_noise_carries_the_guarantee(make: Make) -> None:
    """Event or user, also after a state; none with noise from elsewhere."""
    assert make().guarantee.unit == "event"
    user = make(contributions=3)
    assert (user.guarantee.unit, user.guarantee.contributions) == ("user", 3)
    assert type(user).from_state(user.state()).guarantee == user.guarantee
    injected = make(noise=ZeroNoise())
    assert injected.guarantee is None
    assert type(injected).from_state(injected.state()).guarantee is None


@makers
def test_what_holds_noise_is_not_copied(make: Make) -> None:
    """A copy would publish the same noise twice."""
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(EntropyError):
            copied(make())


@makers
def test_a_step_that_was_interrupted_is_the_last(make: Make) -> None:
    """Noise may have been used: the counter says so and does not go on, and gives no state."""
    counter = make(noise=tape_noise(Tape([3, 1, 4])))
    with pytest.raises(TapeExhausted):
        counter.update_many([1] * 100)

    for call in (counter.update, counter.state, lambda: counter.advance(1)):
        with pytest.raises(EntropyError):
            call()


@pytest.mark.faults
@makers
def test_a_forked_child_does_not_go_on(make: Make) -> None:
    """Parent and child would publish the same noise."""
    counter = make()
    counter.update(1)
    child = os.fork()
    if not child:
        try:
            counter.update(1)
        except EntropyError:
            os._exit(7)
        os._exit(1)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    counter.update(1)


@makers
def test_no_error_shows_what_was_counted(make: Make) -> None:
    """Bad numbers are refused by a rule, and the period stays open."""
    counter = make()
    for bad in (987654321.5, "987654321", None, 2**62 + 987654321):
        with pytest.raises(InvalidData) as refused:
            counter.update(bad)
        assert "987654321" not in str(refused.value)
    with pytest.raises(InvalidData):
        counter.update_many([[1, 2]])
    with pytest.raises(InvalidParameter):
        counter.advance(-1)
    assert counter.periods == 0


@makers
@pytest.mark.parametrize(
    "changes", [{"epsilon": 0}, {"epsilon": "1e-30"}, {"contributions": 0}, {"contributions": 1.5}]
)
def test_bad_parameters_are_refused_before_any_draw(make: Make, changes: dict[str, Any]) -> None:
    """The error names the parameter."""
    with pytest.raises(InvalidParameter) as refused:
        make(noise=ForbiddenNoise(), **changes)

    assert refused.value.parameter in changes


@makers
def test_damaged_states_are_refused(make: Make) -> None:
    """Whatever row is cut, longer, or full of nonsense, only `InvalidState` comes out, or a counter."""
    counter = _on_a_tape(make, 8)
    counter.update_many(BITS[:40])
    kind, state = type(counter), counter.state()
    with pytest.raises(InvalidState):
        kind.from_state(state[:-1])
    with pytest.raises(InvalidState):
        kind.from_state(b"")
    rows = unpack(state, kind.name, 1)
    for name in rows:
        for wrong in ([], [*rows[name], 1], [-1] * len(rows[name]), [2**100] * len(rows[name])):
            _never_else(kind, pack(kind.name, 1, {**rows, name: wrong}))
        _never_else(kind, pack(kind.name, 1, {other: row for other, row in rows.items() if other != name}))


def _never_else(kind: type[Any], state: bytes) -> None:
    try:
        kind.from_state(state)
    except InvalidState:
        return


@pytest.mark.parametrize("kind", [PerStepCounter, DirectCounter])
def test_without_noise_the_naive_ones_count(kind: type[Any]) -> None:
    """One by one, many at once, over empty runs, with what is negative and what is large."""
    counter = kind(epsilon=1, horizon=20, noise=ZeroNoise())

    assert counter.update_many([1, -4, 2**61]).tolist() == [1.0, -3.0, float(2**61 - 3)]
    counter.advance(5)
    assert counter.exact == 2**61 - 3


def test_without_noise_a_window_slides() -> None:
    """Every output is what came in the last periods, through blocks and across them."""
    xs = [period * period % 11 - 3 for period in range(150)]
    for window in (1, 2, 7, 20, 33):
        counter = SlidingCounter(window=window, epsilon=1, noise=ZeroNoise())
        expected = [sum(xs[max(0, end - window) : end]) for end in range(1, 151)]

        assert counter.update_many(xs).tolist() == expected


def test_a_window_forgets_all_after_a_long_rest() -> None:
    """However long the rest, only a few blocks are walked through; then it counts as before."""
    counter = SlidingCounter(window=9, epsilon=1, noise=ZeroNoise())
    counter.update_many([5] * 20)

    counter.advance(2**61)

    assert counter.value == 0
    assert counter.periods == 2**61 + 20
    assert counter.update_many([1] * 12).tolist() == [float(min(t, 9)) for t in range(1, 13)]


def test_without_noise_a_sparse_counter_shows_what_is_sealed() -> None:
    """A segment is sealed where its content exceeds the threshold; then all of it shows."""
    counter = SparseCounter(epsilon=1, horizon=1000, expected=100, noise=ZeroNoise())
    xs = [2] * 200
    true = list(accumulate(xs))

    outputs = [output - counter.plan.offset for output in counter.update_many(xs)]

    step = counter.plan.threshold // 2 + 1
    assert outputs == [float(true[t // step * step - 1]) if t >= step else 0.0 for t in range(1, 201)]
    assert counter.seals == 200 // step


def test_full_inner_counters_hand_over() -> None:
    """Past the capacity another inner counter goes on, with four times the room: no count is lost."""
    counter = SparseCounter(epsilon=1, horizon=10**4, constants="paper", weight=1, noise=ZeroNoise())
    heavy = counter.plan.threshold + 1

    outputs = counter.update_many([heavy, 0, heavy, heavy, 0, heavy, heavy, heavy])

    assert outputs.tolist() == [heavy * number for number in (1, 1, 2, 3, 3, 4, 5, 6)]
    assert counter.answer().everywhere > 0


def test_a_seal_in_a_null_run_stands_in_its_own_period() -> None:
    """A run of empty periods is sealed inside now and then, and outputs change nowhere else."""
    plan = SparsePlan(seals=32, threshold=1, offset=2, spread=1.0, capacity=None)
    counter = _on_a_tape(MAKERS["sparse"], 1, plan=plan, epsilon=1, expected=None)

    outputs = counter.update_many([0] * 100)

    changes = np.flatnonzero(np.diff(outputs, prepend=2.0))
    assert changes.size == counter.seals > 1
    assert changes[0] > 0


def test_the_number_of_seals_never_costs_an_event() -> None:
    """Numbers beyond all bounds are counted as far as there is room, and nothing is raised."""
    counter = SparseCounter(epsilon=1, horizon=100, expected=10, noise=ZeroNoise())

    for _ in range(8):
        counter.update(2**62 - 1)
    counter.update_many([1 - 2**62] * 8)

    assert counter.periods == 16


@pytest.mark.parametrize(
    ("changes", "parameter"),
    [
        ({"weight": 5}, "expected"),
        ({"constants": "paper"}, "weight"),
        ({"constants": "paper", "weight": 5, "expected": 5}, "weight"),
        ({"expected": 0}, "expected"),
        ({"constants": "folklore"}, "constants"),
        ({"horizon": 0}, "horizon"),
    ],
)
def test_a_sparse_counter_names_the_hint_it_needs(changes: dict[str, Any], parameter: str) -> None:
    """Tuned constants take the expected weight, the paper's need a bound."""
    with pytest.raises(InvalidParameter) as refused:
        SparseCounter(**{"epsilon": 1, "horizon": 100, "noise": ForbiddenNoise(), **changes})

    assert refused.value.parameter == parameter


def test_the_papers_constants_are_those_of_theorem_3_1() -> None:
    """Half of epsilon each, T = 3 (ln D + ln 2/beta) / (epsilon/2), a binary tree over n segments."""
    counter = SparseCounter(epsilon=1, horizon=2**20, constants="paper", weight=100)

    assert counter.plan.threshold == int(6 * (np.log(2**20) + np.log(2 / 0.05)))
    assert (counter.plan.seals, counter.plan.law, counter.plan.capacity) == (32, "laplace", 100)
    assert counter._inner.kind is TreeCounter


def test_plans_follow_from_public_numbers_alone() -> None:
    """With a smaller epsilon thresholds grow, with more events segments are more."""
    plans = [
        SparseCounter(epsilon=epsilon, horizon=2**20, expected=expected).plan
        for epsilon, expected in ((1, 100), ("0.1", 100), (1, 10**4))
    ]
    capacities = [plan.capacity or 0 for plan in plans]

    assert 5 * plans[0].threshold < plans[1].threshold
    assert 5 * capacities[0] < capacities[2]


def test_bits_that_are_none_are_taken_for_the_nearest() -> None:
    """What is flipped is one bit, whatever number came: an event cannot weigh more."""
    counter = RandomizedResponseCounter(epsilon=1, horizon=9, noise=ZeroNoise())
    twin = RandomizedResponseCounter(epsilon=1, horizon=9, noise=ZeroNoise())

    assert counter.update_many([5, -3, 1]).tolist() == twin.update_many([1, 0, 1]).tolist()


@makers
def test_an_answer_brackets_the_count(make: Make) -> None:
    """On a tape the truth lies between low and high, and everywhere is at least as far."""
    counter = _on_a_tape(make, 31)
    counter.update_many(BITS[:100])
    window = getattr(counter, "window", 100)
    answer = counter.answer(1e-6)

    assert answer.low <= sum(BITS[100 - window : 100]) <= answer.high
    assert answer.everywhere >= (answer.high - answer.low) / 2 - 1e-6 or isinstance(counter, SparseCounter)
    assert answer.error > 0
