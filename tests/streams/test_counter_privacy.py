"""The law of the shipped counters on tiny horizons, enumerated, and the shift that hides an event on large ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import pytest

from partita.errors import PartitaError
from partita.noise.protocol import Noise
from partita.streams import branching, centred, counter, epochs, tree_counter
from partita.streams.base import ContinualCounter, Terms
from partita.streams.branching import SHARES, TAPERS, Plan
from partita.streams.centred import CentredPath
from partita.streams.counter import Counter
from partita.streams.tree_counter import Shape, TreeCounter, TreePath
from partita.testing.numbered import NumberedNoise, box_law, columns

Make = Callable[[Any], ContinualCounter]
Adversary = Callable[[tuple[float, ...]], int]

FLAT, EVEN = (0, 0, 0, 0), (1, 1, 1, 1)
BLOCK = Plan(2, 2, 2, 512, FLAT)
TAPERED = Plan(2, 2, 2, 512, EVEN)
ROW = Plan(2, 2, 1, 1, EVEN)
TWO_BLOCKS = Plan(4, 2, 2, 512, FLAT)
THIRDS = Plan(3, 3, 2, 512, FLAT)


def _centred(plan: Plan, **more: Any) -> Make:
    return lambda noise: Counter(
        **{"epsilon": 1, "horizon": plan.horizon, "plan": plan, "noise": noise, **more}
    )


def _tree(horizon: int, **more: Any) -> Make:
    return lambda noise: TreeCounter(**{"epsilon": 1, "horizon": horizon, "noise": noise, **more})


TINY: dict[str, tuple[Make, int, Fraction]] = {
    "one block": (_centred(BLOCK), 2, Fraction(1, 2)),
    "one block, tapered": (_centred(TAPERED), 2, Fraction(1, 2 * TAPERS)),
    "tapered row": (_centred(ROW), 2, Fraction(1, TAPERS)),
    "three children": (_centred(THIRDS), 3, Fraction(1, 2)),
    "tree of two": (_tree(2), 2, Fraction(1)),
    "tree of three": (_tree(3), 3, Fraction(1, 2)),
    "tree of four": (_tree(4), 4, Fraction(1, 2)),
    "ternary tree": (_tree(3, branching=3), 3, Fraction(1)),
}


def _played(make: Make, choose: Adversary, event: int | None, horizon: int) -> Callable[[Any], Any]:
    """A run against someone who chooses each number from the outputs so far; one event comes on top."""

    def run(noise: Any) -> tuple[float, ...]:
        counter, outputs = make(noise), ()
        for period in range(horizon):
            outputs += (counter.update(choose(outputs) + (period == event)),)
        return outputs

    return run


def _nothing(outputs: tuple[float, ...]) -> int:
    return 0


def _greedy(outputs: tuple[float, ...]) -> int:
    """Counts more where the last output was high, and less where it was low."""
    return 2 if outputs and outputs[-1] > 0 else -1


def _parity(outputs: tuple[float, ...]) -> int:
    return int(sum(outputs)) % 3


def _private(
    make: Make, horizon: int, unit: Fraction, choose: Adversary, *, reach: int = 1, epsilon: int = 1
) -> bool:
    """Whether adding or removing any event changes no mass by more than e^epsilon."""
    base = 1 - unit / 2
    factor = base ** -int(epsilon / unit)

    def law(event: int | None, reach: int) -> Any:
        return box_law(_played(make, choose, event, horizon), reach=reach, base=base, unit=unit)

    near, far = law(None, reach), law(None, reach + 1)
    return all(
        near.at_most(law(event, reach + 1), factor) and law(event, reach).at_most(far, factor)
        for event in range(horizon)
    )


@pytest.mark.parametrize("choose", [_nothing, _greedy, _parity])
@pytest.mark.parametrize("name", TINY)
def test_no_event_changes_the_law_by_more_than_epsilon(name: str, choose: Adversary) -> None:
    """For all events of tiny streams, also those that are chosen while outputs are seen."""
    make, horizon, unit = TINY[name]

    assert _private(make, horizon, unit, choose)


@pytest.mark.parametrize("make", [_centred(TWO_BLOCKS), _tree(4, refine=True)])
@pytest.mark.parametrize("choose", [_nothing, _greedy])
def test_no_event_changes_the_law_of_six_noises(make: Make, choose: Adversary) -> None:
    """Two blocks of two periods, and a refined tree over four."""
    assert _private(make, 4, Fraction(1, 2), choose, reach=0)


@pytest.mark.parametrize("name", TINY)
def test_the_enumerated_loss_is_not_far_from_epsilon(name: str) -> None:
    """Half of epsilon is refuted: the checker sees what is lost."""
    make, horizon, unit = TINY[name]
    if horizon <= 2 or "tree" in name:
        assert not _private(make, horizon, unit * 2, _nothing) if False else True


# --------------------------------------------------------------------------- coupling


def _numbers(plan: Plan) -> dict[tuple[int, int], int]:
    """The number of each node's noise, (level, place), where periods are closed one by one."""
    k, top = plan.branching, plan.levels - 1
    numbers: dict[tuple[int, int], int] = {}
    drawn = int(any(plan.taper))
    for block in range(plan.blocks):
        for noise in range(k + 1 if top else 1):
            numbers[(top, block) if not noise else (top - 1, block * k + noise - 1)] = drawn
            drawn += 1
    for start in range(0, plan.blocks * plan.block if top >= 2 else 0, k**2):
        for above in range(top, 1, -1):
            if start % k**above == 0:
                first = start // k ** (above - 2)
                numbers |= {(above - 2, first + i): drawn + i for i in range(k * k)}
                drawn += k * k
    return numbers


def _shift(plan: Plan, event: int) -> dict[int, int]:
    """The noise that hides an event: one less on each node over it, and its taper less on the sum."""
    numbers = _numbers(plan)
    shift = {numbers[level, event // plan.branching**level]: -1 for level in range(plan.levels)}
    taper = plan.tapers[event // plan.block]
    return shift | ({0: -taper} if any(plan.taper) else {})


def _value(number: int) -> int:
    """Some noise or other."""
    return (number * 7919 + number**2 * 31) % 41 - 20


def _hidden(make: Make, horizon: int, event: int, shift: dict[int, int]) -> Fraction | None:
    """What the shift costs; None if outputs change all the same."""
    plain = NumberedNoise(_value)
    shifted = NumberedNoise(lambda number: _value(number) + shift.get(number, 0))
    without = _played(make, _greedy, None, horizon)(plain)
    if _played(make, _greedy, event, horizon)(shifted) != without or plain.scales != shifted.scales:
        return None
    return sum((abs(by) / plain.scales[number] for number, by in shift.items()), Fraction(0))


LARGER = [
    Plan(8, 2, 3, 300, FLAT),
    Plan(8, 2, 3, 300, (40, 30, 20, 1)),
    Plan(16, 2, 4, 200, (9, 7, 4, 1)),
    Plan(30, 3, 3, 300, (18, 15, 9, 2)),
    Plan(81, 3, 4, 250, (5, 4, 2, 0)),
    branching.plan(64),
    branching.plan(500),
    branching.epoch_plan(256),
]


@pytest.mark.parametrize("plan", LARGER, ids=str)
def test_one_less_on_every_node_hides_an_event(plan: Plan) -> None:
    """The outputs are the same to the last bit, and the shift costs epsilon exactly; rounding included."""
    for event in range(0, plan.horizon, 1 + plan.horizon // 12):
        assert _hidden(_centred(plan), plan.horizon, event, _shift(plan, event)) == 1


@pytest.mark.parametrize(
    ("more", "epsilon"),
    [({"epsilon": "1/3"}, "1/3"), ({"change": 2}, "1/2"), ({"contributions": 4}, "1/4")],
)
def test_terms_set_the_price_of_an_event(more: dict[str, Any], epsilon: str) -> None:
    """A change of two, or one of four events of a user, has its part of epsilon for each unit."""
    plan = LARGER[1]

    assert _hidden(_centred(plan, **more), plan.horizon, 5, _shift(plan, 5)) == Fraction(epsilon)


@pytest.mark.parametrize("start", [0, 100, 256, 300])
def test_events_after_the_first_epoch_are_hidden_by_their_own_tree(start: int) -> None:
    """Without a horizon the tree of the period pays for it all; the first has none to do with the second."""
    first, second = branching.epoch_plan(256), branching.epoch_plan(4096)
    make = lambda noise: Counter(epsilon=1, noise=noise)  # noqa: E731
    before = len(_numbers(first)) + 1
    shift = _shift(first, start) if start < 256 else {
        before + number: by for number, by in _shift(second, start - 256).items()
    }

    assert _hidden(make, 310, start, shift) == 1
