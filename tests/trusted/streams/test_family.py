"""Families: one counter for each key, as if it were alone; their law, their states, planted bugs."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from partita.errors import HorizonReached, InvalidData, InvalidParameter, InvalidState
from partita.public.bounds import laplace_variance
from partita.public.stream_trees import SHARES, PeriodTree, shape_for
from partita.testing import EndlessTape, ForbiddenNoise, ZeroNoise, tape_noise
from partita.testing.laws import BoxLaw, NumberedNoise, box_law, columns
from partita.trusted.streams.base import pack, unpack
from partita.trusted.streams.family import CounterFamily, TreeErrors

Event = tuple[int, int] | None
Plant = Callable[[pytest.MonkeyPatch], None]

FLAT = PeriodTree(2, (), (SHARES,))
PAIR = PeriodTree(2, (1,), (512, 512))
EIGHT = PeriodTree(8, (1, 1), (300, 300, 424))


def _made(noise: Any, shape: PeriodTree, **more: Any) -> CounterFamily:
    usual = {"keys": 2, "epsilon": 1, "horizon": shape.horizon, "shape": shape, "noise": noise}
    return CounterFamily(**{**usual, **more})


def _played(
    shape: PeriodTree, event: Event, *, adaptive: bool, **more: Any
) -> Callable[[NumberedNoise], Any]:
    """A run in which both keys count what the other one showed last, and one event comes on top."""

    def run(noise: NumberedNoise) -> tuple[float, ...]:
        family = _made(noise, shape, **more)
        outputs: tuple[float, ...] = ()
        for period in range(shape.horizon):
            high = [2 * (output > 0) - 1 for output in family.value]
            xs = high[::-1] if adaptive else [0, 0]
            xs = [x + ((period, key) == event) for key, x in enumerate(xs)]
            outputs += tuple(family.update(xs).tolist())
        return outputs

    return run


def _is_private(shape: PeriodTree, unit: Fraction, *, adaptive: bool, **more: Any) -> bool:
    """Whether no event of any period and key changes the joint law of all outputs by more than epsilon."""
    base = 1 - unit / 2
    factor = base ** -int(1 / unit)

    def law(event: Event, reach: int) -> BoxLaw:
        run = _played(shape, event, adaptive=adaptive, **more)
        return box_law(run, reach=reach, base=base, unit=unit)

    near, far = law(None, 0), law(None, 1)
    return all(
        near.at_most(law((period, key), 1), factor) and law((period, key), 0).at_most(far, factor)
        for period in range(shape.horizon)
        for key in range(2)
    )


@pytest.mark.parametrize(
    ("shape", "unit", "adaptive"),
    [(FLAT, Fraction(1), False), (FLAT, Fraction(1), True), (PAIR, Fraction(1, 2), True)],
)
def test_no_event_under_any_key_changes_the_joint_law_by_more_than_epsilon(
    shape: PeriodTree, unit: Fraction, adaptive: bool
) -> None:
    """Two keys and two periods; also where each key counts by what the other one showed."""
    assert _is_private(shape, unit, adaptive=adaptive)


def test_half_of_the_noise_is_too_little() -> None:
    """What is made for twice the epsilon loses more than epsilon, and the enumeration says so."""
    assert not _is_private(FLAT, Fraction(1), adaptive=False, epsilon=2)


def _numbers(shape: PeriodTree, keys: int) -> dict[tuple[int, int, int], int]:
    """The number of the noise of each node, (key, level, place), where periods are closed one by one."""
    numbers: dict[tuple[int, int, int], int] = {}
    for period in range(shape.horizon):
        for level in range(shape.levels - 1, -1, -1):
            if shape.opens(level, period):
                first = period // shape.widths[level]
                for sibling in range(shape.siblings(level)):
                    numbers |= {(key, level, first + sibling): len(numbers) + key for key in range(keys)}
    return numbers


def _price(shape: PeriodTree, event: tuple[int, int], **more: Any) -> Fraction | None:
    """What it costs to hide an event by one less on each node over it; None if it shows all the same."""
    period, key = event
    numbers = _numbers(shape, 2)
    shift = {numbers[key, level, period // shape.widths[level]]: -1 for level in range(shape.levels)}
    plain = NumberedNoise(_some)
    shifted = NumberedNoise(lambda number: _some(number) + shift.get(number, 0))
    without = _played(shape, None, adaptive=True, **more)(plain)
    if _played(shape, event, adaptive=True, **more)(shifted) != without or plain.scales != shifted.scales:
        return None
    return sum((1 / plain.scales[number] for number in shift), Fraction(0))


def _some(number: int) -> int:
    return (number * 7919 + number**2 * 31) % 41 - 20


@pytest.mark.parametrize("shape", [EIGHT, shape_for(30), shape_for(70)], ids=str)
def test_one_less_on_every_node_of_its_key_hides_an_event(shape: PeriodTree) -> None:
    """All outputs of all keys are the same to the last bit, and the shift costs epsilon exactly."""
    for period in range(0, shape.horizon, 1 + shape.horizon // 6):
        assert [_price(shape, (period, key)) for key in range(2)] == [1, 1]


@pytest.mark.parametrize(
    ("more", "price"), [({"epsilon": "1/3"}, "1/3"), ({"change": 2}, "1/2"), ({"contributions": 4}, "1/4")]
)
def test_terms_set_the_price_of_an_event(more: dict[str, Any], price: str) -> None:
    """A change of two, or one of four events of a user, has its part of epsilon for each unit."""
    assert _price(EIGHT, (5, 1), **more) == Fraction(price)


@pytest.mark.parametrize("shape", [EIGHT, PeriodTree(6, (2,), (500, 524)), shape_for(20)], ids=str)
def test_the_variance_is_that_of_the_linear_map(shape: PeriodTree) -> None:
    """In every period: the squares of how much one more of each noise moves the output of a key."""
    family = _made(NumberedNoise(), shape, keys=1)
    promised = []
    for _ in range(shape.horizon):
        family.update([0])
        promised.append(family.variance())

    def run(noise: NumberedNoise) -> list[float]:
        zeros = np.zeros((shape.horizon, 1), dtype=np.int64)
        return _made(noise, shape, keys=1).update_many(zeros)[:, 0].tolist()  # type: ignore[no-any-return]

    parts = columns(run)
    exact = [
        sum(laplace_variance(scale) * float(moved[period]) ** 2 for scale, moved in parts)
        for period in range(shape.horizon)
    ]
    assert promised == pytest.approx(exact)


def test_a_skip_draws_no_more_than_it_needs_and_has_the_same_end() -> None:
    """Whole nodes are passed at once; without noise below them the error is that of the nodes."""
    walked, skipped = (TreeErrors(EIGHT, Fraction(1), 2, NumberedNoise(lambda number: 5)) for _ in range(2))

    steps = sum(walked.skip(1) for _ in range(8))

    assert skipped.skip(8).tolist() == steps.tolist()  # type: ignore[union-attr]


def test_without_noise_every_key_counts() -> None:
    """By numbers for all keys, by names for some, over empty runs."""
    family = CounterFamily(keys=["a", "b", "c"], epsilon=1, horizon=50, noise=ZeroNoise())

    assert family.update([1, 2, -3]).tolist() == [1.0, 2.0, -3.0]
    assert family.update({"c": 5}).tolist() == [1.0, 2.0, 2.0]
    assert family.update_many([[1, 0, 0], [0, 1, 0]]).tolist() == [[2.0, 2.0, 2.0], [2.0, 3.0, 2.0]]
    family.advance(40)
    assert (family.value.tolist(), family.periods) == ([2.0, 3.0, 2.0], 44)
    with pytest.raises(HorizonReached):
        family.update_many(np.ones((7, 3), dtype=np.int64))
    assert family.periods == 44


@pytest.mark.parametrize("epsilon", [1, "1e-12"])
def test_a_state_goes_on_with_the_same_outputs(epsilon: object) -> None:
    """After any number of periods, on noise that goes on from there; keys come back by name."""
    xs = np.arange(90).reshape(30, 3) % 4
    names = ["north", "south", "østlandet"]
    whole = CounterFamily(keys=names, epsilon=epsilon, horizon=30, noise=tape_noise(EndlessTape(2)))
    outputs = whole.update_many(xs)
    for stop in (0, 1, 13, 30):
        noise = tape_noise(EndlessTape(2))
        before = CounterFamily(keys=names, epsilon=epsilon, horizon=30, noise=noise)
        before.update_many(xs[:stop])
        again = CounterFamily.from_state(before.state(), noise=noise)
        assert (again.keys, again.periods, again.state()) == (tuple(names), stop, before.state())
        assert again.update_many(xs[stop:]).tolist() == outputs[stop:].tolist()


def test_numbered_keys_come_back() -> None:
    """A family of so many keys is restored with as many."""
    family = CounterFamily(keys=5, epsilon=1, horizon=9, contributions=2)

    again = CounterFamily.from_state(family.state())

    assert (again.keys, again.guarantee) == ((0, 1, 2, 3, 4), family.guarantee)


def test_time_and_sizes_are_public() -> None:
    """The same tape and other events: as many outputs, and states of the same size."""
    silent, busy = (CounterFamily(keys=4, epsilon=1, horizon=40, noise=ZeroNoise()) for _ in range(2))

    one, other = silent.update_many(np.zeros((25, 4), int)), busy.update_many(np.full((25, 4), 2**30))

    assert one.shape == other.shape
    assert len(silent.state()) == len(busy.state())


def test_only_our_noise_carries_the_guarantee() -> None:
    """For an event under one key, or a user with several under any."""
    assert CounterFamily(keys=2, epsilon=1, horizon=9).guarantee.unit == "event"  # type: ignore[union-attr]
    user = CounterFamily(keys=2, epsilon=1, horizon=9, contributions=3).guarantee
    assert user is not None
    assert (user.unit, user.contributions) == ("user", 3)
    assert CounterFamily(keys=2, epsilon=1, horizon=9, noise=ZeroNoise()).guarantee is None


@pytest.mark.parametrize(
    "bad", [[1], [1, 2, 3], [1, 2.5], {"a": 1, "z": 1}, {"a": "987654321"}, [2**31, 0], 5]
)
def test_what_is_not_a_number_for_each_key_is_refused(bad: Any) -> None:
    """No error shows a value, and the period stays open."""
    family = CounterFamily(keys=["a", "b"], epsilon=1, horizon=9)

    with pytest.raises(InvalidData) as refused:
        family.update(bad)

    assert "987654321" not in str(refused.value)
    assert family.periods == 0


@pytest.mark.parametrize(
    ("changes", "parameter"),
    [
        ({"keys": 0}, "keys"),
        ({"keys": "abc"}, "keys"),
        ({"keys": ["a", "a"]}, "keys"),
        ({"keys": ["a", 1]}, "keys"),
        ({"keys": []}, "keys"),
        ({"horizon": 0}, "horizon"),
        ({"epsilon": 0}, "epsilon"),
        ({"change": 0}, "change"),
    ],
)
def test_bad_parameters_are_refused_before_any_draw(changes: dict[str, Any], parameter: str) -> None:
    """The error names the parameter."""
    with pytest.raises(InvalidParameter) as refused:
        CounterFamily(**{"keys": 2, "epsilon": 1, "horizon": 9, "noise": ForbiddenNoise(), **changes})

    assert refused.value.parameter == parameter


def test_damaged_states_are_refused() -> None:
    """Whatever row is cut, longer, or full of nonsense, only `InvalidState` comes out, or a family."""
    family = CounterFamily(keys=["a", "b"], epsilon=1, horizon=40)
    family.advance(7)
    rows = unpack(family.state(), "family", 1)
    refused = 0
    for name in rows:
        for wrong in ([], [*rows[name], 1], [-1] * len(rows[name]), [2**100] * len(rows[name])):
            try:
                CounterFamily.from_state(pack("family", 1, {**rows, name: wrong}))
            except InvalidState:
                refused += 1
    assert refused > 2 * len(rows)


def test_an_answer_is_for_one_key() -> None:
    """With the truth between low and high on a tape; an unknown key is named."""
    family = CounterFamily(keys=["a", "b"], epsilon=1, horizon=100, noise=tape_noise(EndlessTape(7)))
    family.update_many(np.tile([0, 3], (60, 1)))
    answer = family.answer("b", 1e-6)

    assert answer.low < 180 < answer.high
    assert answer.everywhere > answer.error > 0
    with pytest.raises(InvalidParameter):
        family.answer("c")


def _passes() -> bool:
    prices = [_price(EIGHT, (period, key)) for period in range(8) for key in range(2)]
    return all(price is not None and price <= 1 for price in prices)


def test_the_shipped_family_passes() -> None:
    """The checker has nothing to say about the right code."""
    assert _passes()


def _shared_noise(patch: pytest.MonkeyPatch) -> None:
    """All keys have the noise of the first."""
    right = TreeErrors._siblings
    patch.setattr(
        TreeErrors, "_siblings", lambda columns, level: np.repeat(right(columns, level)[:, :1], 2, axis=1)
    )


def _shares_ignored(patch: pytest.MonkeyPatch) -> None:
    """Every node has noise as if it were the only one over a period."""
    patch.setattr(PeriodTree, "scale", lambda shape, level, rate: 1 / rate)


def _parent_twice(patch: pytest.MonkeyPatch) -> None:
    """The parent's error is shared out twice."""
    right = TreeErrors._node
    patch.setattr(TreeErrors, "_node", lambda columns, level: right(columns, level) * (1 + (level > 0)))


def _only_busy_keys(patch: pytest.MonkeyPatch) -> None:
    """A key under which nothing came gets no error in that period."""
    right = CounterFamily._close

    def close(family: CounterFamily, counts: Any, periods: int) -> None:
        before = family._error
        right(family, counts, periods)
        family._error = np.where(counts != 0, family._error, before)

    patch.setattr(CounterFamily, "_close", close)


def _epsilon_for_each_unit(patch: pytest.MonkeyPatch) -> None:
    """Twice the promised rate."""
    right = TreeErrors.__init__

    def init(columns: TreeErrors, shape: PeriodTree, rate: Fraction, number: int, noise: Any) -> None:
        right(columns, shape, 2 * rate, number, noise)

    patch.setattr(TreeErrors, "__init__", init)


@pytest.mark.parametrize(
    "plant", [_shared_noise, _shares_ignored, _parent_twice, _only_busy_keys, _epsilon_for_each_unit]
)
def test_planted_bugs_of_the_family_are_caught(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each wrong variant shows an event, or costs more than epsilon."""
    plant(monkeypatch)

    assert not _passes()
