"""Counters in use: exact without noise, in any mixture of steps, through states, up to the horizon."""

from __future__ import annotations

import copy
import os
import pickle
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partita.errors import EntropyError, HorizonReached, InvalidData, InvalidParameter, InvalidState
from partita.public.stream_trees import TreePlan
from partita.testing import EndlessTape, RecordingNoise, ZeroNoise, tape_noise
from partita.testing.laws import NumberedNoise
from partita.trusted.noise.system import SYSTEM
from partita.trusted.streams.base import pack, unpack
from partita.trusted.streams.counter import Counter, NoisyCount
from partita.trusted.streams.tree_counter import TreeCounter

Make = Callable[..., NoisyCount]

DEEP = TreePlan(81, 3, 4, 250, (5, 4, 2, 0))
MAKERS: dict[str, Make] = {
    "counter": lambda **more: Counter(epsilon=1, horizon=300, **more),
    "deep": lambda **more: Counter(epsilon=1, horizon=81, plan=DEEP, **more),
    "endless": lambda **more: Counter(epsilon=1, **more),
    "tree": lambda **more: TreeCounter(epsilon=1, horizon=300, **more),
    "refined": lambda **more: TreeCounter(epsilon=1, horizon=300, branching=3, refine=True, **more),
    "intervals": lambda **more: TreeCounter(epsilon=1, horizon=300, intervals=True, **more),
    "tiny epsilon": lambda **more: Counter(epsilon="1e-7", horizon=300, **more),
    "tree, tiny epsilon": lambda **more: TreeCounter(epsilon="1e-9", horizon=300, **more),
}
makers = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


@pytest.mark.parametrize(
    "make", [MAKERS[name] for name in ("deep", "endless", "refined", "intervals", "tiny epsilon")]
)
@settings(max_examples=20)
@given(data=st.data())
def test_without_noise_any_mixture_of_steps_counts(make: Make, data: st.DataObject) -> None:
    """One by one, many at once, and runs of empty periods."""
    counter, count = make(noise=ZeroNoise()), 0
    for _ in range(6):
        xs = data.draw(st.lists(st.integers(-3, 9), max_size=6))
        assert counter.update_many(xs).tolist() == [float(count + so_far) for so_far in accumulate(xs)]
        x = data.draw(st.integers(-(2**61), 2**61))
        count += sum(xs) + x
        assert counter.update(x) == float(count)
        counter.advance(data.draw(st.integers(0, 5)))
        assert counter.exact == count


@makers
def test_a_state_goes_on_with_the_same_outputs(make: Make) -> None:
    """After any number of periods, on noise that goes on from there."""
    xs = [period % 4 for period in range(81)]
    noise = NumberedNoise(_some)
    counter = make(noise=noise)
    outputs, states = [], []
    for x in xs:
        states.append((counter.state(), len(noise.scales)))
        outputs.append(counter.update(x))

    for period, (state, drawn) in list(enumerate(states))[::7]:
        rest = NumberedNoise(partial(_after, drawn))
        again = type(counter).from_state(state, noise=rest)
        assert (again.periods, again.state()) == (period, state)
        assert [again.update(x) for x in xs[period:]] == outputs[period:]


def _some(number: int) -> int:
    return number * 37 % 11 - 5


def _after(drawn: int, number: int) -> int:
    return _some(drawn + number)


@makers
def test_guarantees_survive_states_only_if_all_noise_was_secure(make: Make) -> None:
    """Injected noise, before or after, leaves none."""
    secure, injected = make(), make(noise=ZeroNoise())
    kind = type(secure)

    assert secure.guarantee == kind.from_state(secure.state()).guarantee == secure.terms.guarantee
    assert kind.from_state(secure.state(), noise=ZeroNoise()).guarantee is None
    assert kind.from_state(injected.state()).guarantee is None


@makers
def test_only_values_depend_on_what_is_counted(make: Make) -> None:
    """On one tape of noise: the scales asked for, the sizes of states and all errors are the same."""
    seen = []
    for xs in ([0] * 70, [2**61 - 7 * i for i in range(70)], [-(i**3) for i in range(70)]):
        noise = RecordingNoise(tape_noise(EndlessTape("public")))
        counter = make(noise=noise)
        outputs = [counter.update(x) - 0 for x in xs[:40]]
        sizes = [len(counter.state())]
        outputs += counter.update_many(xs[40:]).tolist()
        counter.advance(7)
        error = counter.exact - sum(xs)
        answer = counter.answer()
        seen.append((len(outputs), sizes, len(counter.state()), noise.scales, error, answer.error))

    assert seen[0] == seen[1] == seen[2]


@pytest.mark.parametrize("name", ["counter", "tree", "refined"])
def test_the_horizon_ends_without_a_loss(name: str) -> None:
    """What does not fit is refused as a whole, and what was counted stays."""
    counter = MAKERS[name](noise=tape_noise(EndlessTape(3)))
    counter.advance(298)
    before = counter.state()
    for step in (lambda: counter.update_many([1, 1, 1]), lambda: counter.advance(3)):
        with pytest.raises(HorizonReached, match="2 periods left"):
            step()
    assert counter.state() == before

    counter.update_many([5, 5])
    with pytest.raises(HorizonReached):
        counter.update(1)
    assert counter.periods == counter.horizon == 300


def test_a_counter_without_a_horizon_goes_far_with_few_draws() -> None:
    """2^40 empty periods take a draw for each level of the last tree and one for each tree before."""
    noise = RecordingNoise(SYSTEM)
    counter = Counter(epsilon=1, noise=noise)
    counter.advance(2**40 + 12345)
    counter.update(1)

    assert len(noise.scales) <= 50
    assert counter.periods == 2**40 + 12346


@makers
def test_what_cannot_be_counted_changes_nothing(make: Make) -> None:
    """Malformed input is refused before anything is drawn."""
    noise = RecordingNoise(SYSTEM)
    counter = make(noise=noise)
    for bad in (1.5, "1", None, 2**62, True):
        with pytest.raises(InvalidData):
            counter.update(bad)  # type: ignore[arg-type]
        with pytest.raises(InvalidData):
            counter.update_many(np.array([[1]]) if bad is True else np.array([1, bad], dtype=object))
    for bad in (-1, 1.5):
        with pytest.raises(InvalidParameter):
            counter.advance(bad)  # type: ignore[arg-type]

    assert (counter.periods, counter.value, noise.scales) == (0, 0.0, [])


@makers
def test_no_counter_can_be_copied(make: Make) -> None:
    """A copy would use the same noise twice."""
    for double in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(EntropyError):
            double(make())


@makers
def test_an_interrupted_counter_is_broken_for_good(make: Make) -> None:
    """It neither counts nor gives a state that would use noise again."""

    class Stopped(NumberedNoise):
        def add(self, *_: Any, **__: Any) -> Any:
            raise KeyboardInterrupt

    stops: list[Callable[[NoisyCount], object]]
    stops = [lambda c: c.update(1), lambda c: c.update_many([1]), lambda c: c.advance(1)]
    for stop in stops:
        counter = make(noise=Stopped())
        with pytest.raises(KeyboardInterrupt):
            stop(counter)
        for again in (counter.update, counter.state):
            with pytest.raises(EntropyError):
                again()


@pytest.mark.faults
@makers
def test_a_forked_counter_does_not_go_on(make: Make) -> None:
    """Parent and child would publish the same period twice: the parent goes on, the child does not."""
    counter = make()
    child = os.fork()
    if not child:
        try:
            counter.update(1)
        except EntropyError:
            os._exit(7)
        os._exit(0)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    counter.update(1)


@makers
def test_states_that_do_not_fit_are_refused(make: Make) -> None:
    """Sound bytes with a row missing, shorter or longer, or with public numbers out of range."""
    counter = make(noise=tape_noise(EndlessTape(1)))
    counter.advance(20)
    kind = type(counter)
    fields = unpack(counter.state(), kind.name, 1)
    for name, row in fields.items():
        wrong = [{**fields, name: [*row, 0]}, {other: fields[other] for other in fields if other != name}]
        wrong += [{**fields, name: row[:-1]}] if row else []
        wrong += [{**fields, name: [-9, *row[1:]]}] if row and name in _PUBLIC else []
        for variant in wrong:
            with pytest.raises(InvalidState):
                kind.from_state(pack(kind.name, 1, variant))


_PUBLIC = {"terms", "shape", "clock", "plans", "ready"}


def test_states_of_another_shape_are_refused() -> None:
    """A tree without an end does not go on from one with a horizon."""
    known, endless = (unpack(make().state(), "counter", 1) for make in (MAKERS["counter"], MAKERS["endless"]))
    for variant in ({**known, "shape": []}, {**endless, "plans": endless["plans"] * 2}):
        with pytest.raises(InvalidState):
            Counter.from_state(pack("counter", 1, variant))


@pytest.mark.parametrize(
    ("given", "parameter"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": "1e-30"}, "epsilon"),
        ({"epsilon": 1, "horizon": 0}, "horizon"),
        ({"epsilon": 1, "horizon": 5, "plan": DEEP}, "plan"),
        ({"epsilon": 1, "plan": DEEP}, "plan"),
        ({"epsilon": 1, "change": -1}, "change"),
        ({"epsilon": 1, "contributions": 0}, "contributions"),
    ],
)
def test_bad_parameters_are_refused_by_name(given: dict[str, Any], parameter: str) -> None:
    """Before anything is drawn."""
    with pytest.raises(InvalidParameter) as refused:
        Counter(**given)

    assert refused.value.parameter == parameter


def test_users_and_changes_widen_the_noise() -> None:
    """Three events of a change of two: the standard deviation of rate 1/6."""
    wide = Counter(epsilon=1, horizon=100, change=2, contributions=3)
    plain = Counter(epsilon="1/6", horizon=100)

    assert wide.variances([7, 50]).tolist() == plain.variances([7, 50]).tolist()
    assert (wide.guarantee, wide.granularity) == (wide.terms.guarantee, Fraction(1, 2**16))
    assert "user" in str(wide.guarantee)


@makers
def test_variances_are_asked_within_the_horizon(make: Make) -> None:
    """Nothing is known of periods that a counter does not have; before the first there is no error."""
    counter = make()
    assert counter.variances([0]).tolist() == [0.0]
    for beyond in ([-1], [2**62 + 1], [1, 10**18 if counter.horizon else -5]):
        with pytest.raises(InvalidParameter, match="periods"):
            counter.variances(beyond)


def test_large_counts_are_exact() -> None:
    """Beyond 2^53 the float is rounded, and `exact` is not."""
    counter = Counter(epsilon=1, horizon=10, noise=ZeroNoise())
    counter.update_many(np.array([2**61, 2**61, 2**61, 1]))

    assert counter.exact == 3 * 2**61 + 1
    assert counter.value == float(3 * 2**61 + 1)
