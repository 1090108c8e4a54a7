"""Later trees, blocks and keys, before and after a restore: an event has the same price everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from partita.public.stream_trees import CounterTree as TreeShape
from partita.public.stream_trees import PeriodTree, TreePlan, epoch_plan, plan, shape_for
from partita.trusted.streams.counter import Counter
from partita.trusted.streams.family import CounterFamily
from partita.trusted.streams.pan_private import PanPrivateCounter
from partita.trusted.streams.sliding import SlidingCounter
from partita.trusted.streams.sparse import PARTS, SparseCounter, SparsePlan
from partita.trusted.streams.tree_counter import (
    DirectCounter,
    PerStepCounter,
    RandomizedResponseCounter,
    TreeCounter,
)

from .late import Shift, ShiftedNoise, price, restore
from .pan_views import look
from .test_sliding_privacy import _numbers as sliding_numbers
from .test_tree_counter_privacy import _tree_shift

with_restores = pytest.mark.parametrize("restores", [False, True], ids=["kept", "restored"])

# Trees without a known end.

EPOCHS = [(number, 256 * (16 ** (number - 1) - 1) // 15) for number in range(1, 6)]
"""The number of each tree, and how many periods come before it."""


@cache
def _epoch(number: int) -> TreePlan:
    return epoch_plan(256 * 16 ** (number - 1))


def _stepwise(tree: TreePlan, periods: int) -> dict[tuple[int, int], int]:
    """The number of the noise of each node, (level, place), where the first periods are closed one by one."""
    k, top = tree.branching, tree.levels - 1
    numbers, drawn = {}, int(any(tree.taper))
    for block in range(tree.blocks):
        for noise in range(k + 1 if top else 1):
            numbers[(top, block) if not noise else (top - 1, block * k + noise - 1)] = drawn
            drawn += 1
    for start in range(0, periods if top >= 2 else 0, k**2):
        for above in range(top, 1, -1):
            if start % k**above == 0:
                first = start // k ** (above - 2)
                numbers |= {(above - 2, first + i): drawn + i for i in range(k * k)}
                drawn += k * k
    return numbers


def _at_once(tree: TreePlan) -> dict[tuple[int, int], int]:
    """The same where all periods are closed at once: blocks of one taper together, level by level."""
    k, top = tree.branching, tree.levels - 1
    numbers = _stepwise(tree, 0)
    drawn = len(numbers) + int(any(tree.taper))
    ends = [*(b for b in range(1, tree.blocks) if tree.tapers[b] != tree.tapers[b - 1]), tree.blocks]
    for begin, end in zip([0, *ends], ends, strict=False):
        for level in range(top - 2, -1, -1):
            first, last = (block * k ** (top - level) for block in (begin, end))
            numbers |= {(level, place): drawn + place - first for place in range(first, last)}
            drawn += last - first
    return numbers


def _tree_of(tree: TreePlan, numbers: dict[tuple[int, int], int], event: int, first: int) -> Shift:
    """One less on each node over the event, and its taper less on the sum over all blocks."""
    shift = {first + numbers[level, event // tree.branching**level]: -1 for level in range(tree.levels)}
    return shift | ({first: -tree.tapers[event // tree.block]} if any(tree.taper) else {})


@with_restores
@pytest.mark.parametrize(("number", "start"), EPOCHS)
@pytest.mark.parametrize("event", [0, 30, 299])
def test_an_event_has_one_price_in_every_epoch(number: int, start: int, event: int, restores: bool) -> None:
    """The tree of the epoch hides it for epsilon, from the first to the fifth tree."""
    tree, event = _epoch(number), min(event, _epoch(number).horizon - 1)
    numbers = _stepwise(tree, 300)

    def walk(noise: ShiftedNoise, x: int) -> tuple[Any, Shift]:
        counter = Counter(epsilon=3, contributions=3, noise=noise)
        counter.advance(start)
        first, outputs = len(noise.scales), []
        for period in range(min(300, tree.horizon)):
            counter = restore(counter, noise) if restores and period in (0, 7, event) else counter
            outputs.append(counter.update(x * (period == event)))
        return outputs, _tree_of(tree, numbers, event, first)

    assert price(walk) == 1


@with_restores
@pytest.mark.parametrize(
    ("number", "event"), [(2, 0), (2, 1000), (2, 4095), (3, 5), (3, 30_000), (3, 65_535)]
)
def test_an_event_has_one_price_if_an_epoch_is_closed_at_once(
    number: int, event: int, restores: bool
) -> None:
    """All periods of the second or third tree in one call."""
    tree, numbers = _epoch(number), _at_once(_epoch(number))

    def walk(noise: ShiftedNoise, x: int) -> tuple[Any, Shift]:
        counter = Counter(epsilon=1, noise=noise)
        counter.advance(dict(EPOCHS)[number])
        counter = restore(counter, noise) if restores else counter
        first, xs = len(noise.scales), np.zeros(tree.horizon, dtype=np.int64)
        xs[event] = x
        outputs = counter.update_many(xs).tolist()
        return outputs, _tree_of(tree, numbers, event, first)

    assert price(walk) == 1


@with_restores
@pytest.mark.parametrize("event", [0, 1, 999, 1000, 1023, 1400, 1499])
@pytest.mark.parametrize("refine", [False, True])
def test_an_event_has_one_price_in_a_long_tree(event: int, refine: bool, restores: bool) -> None:
    """Noise of the papers' tree that is drawn in many portions, and stored between them."""
    shape = TreeShape(horizon=1500, branching=3, refine=refine)

    def walk(noise: ShiftedNoise, x: int) -> tuple[Any, Shift]:
        counter = TreeCounter(epsilon=2, change=2, horizon=1500, branching=3, refine=refine, noise=noise)
        outputs = []
        for period in range(shape.horizon):
            counter = restore(counter, noise) if restores and period % 301 == 3 else counter
            outputs.append(counter.update(x * (period == event)))
        return outputs, _tree_shift(shape, event)

    found = price(walk)

    assert found is not None
    assert found == Fraction(len(_tree_shift(shape, event)), shape.levels) <= 1


@with_restores
@pytest.mark.parametrize("event", [3, 255, 256, 511, 600, 899])
def test_an_event_has_one_price_in_a_long_naive_count(event: int, restores: bool) -> None:
    """One noise per period, or one per output from the event on, in many portions."""
    for kind, shift in (
        (PerStepCounter, {event: -1}),
        (DirectCounter, dict.fromkeys(range(event, 900), -1)),
    ):

        def walk(noise: ShiftedNoise, x: int, kind: Any = kind, shift: Shift = shift) -> tuple[Any, Shift]:
            counter = kind(epsilon=2, contributions=2, horizon=900, noise=noise)
            outputs = []
            for period in range(900):
                counter = restore(counter, noise) if restores and period % 199 == 3 else counter
                outputs.append(counter.update(x * (period == event)))
            return outputs, shift

        assert price(walk) == (1 if kind is PerStepCounter else Fraction(900 - event, 900))


@with_restores
def test_every_bit_is_flipped_with_the_same_chance(restores: bool) -> None:
    """Noise of scale contributions / epsilon for each of a thousand bits, one by one or at once."""
    noise = ShiftedNoise()
    counter = RandomizedResponseCounter(epsilon=2, contributions=3, horizon=1000, noise=noise)
    for _ in range(4):
        counter.update(1)
        counter.update_many([0, 1] * 100)
        counter.advance(49)
        counter = restore(counter, noise) if restores else counter

    assert noise.scales == [Fraction(3, 2)] * 1000


# Sliding windows and families.

EIGHT = PeriodTree(8, (1, 1), (300, 300, 424))


@with_restores
@pytest.mark.parametrize("window", [5, 8])
@pytest.mark.parametrize("event", [0, 17, 31, 32, 45, 55, 63, 70])
def test_an_event_has_one_price_in_every_block_of_a_sliding_window(
    event: int, window: int, restores: bool
) -> None:
    """The tree of its block hides it for epsilon, from the first to the ninth block."""
    numbers = sliding_numbers(EIGHT, 72)
    block, place = divmod(event, 8)
    shift = {numbers[block, level, place // EIGHT.widths[level]]: -1 for level in range(3)}

    def walk(noise: ShiftedNoise, x: int) -> tuple[Any, Shift]:
        counter = SlidingCounter(
            window=window, epsilon=6, contributions=3, change=2, shape=EIGHT, noise=noise
        )
        outputs = []
        for period in range(72):
            counter = restore(counter, noise) if restores and period % 13 == 5 else counter
            outputs.append(counter.update(x * (period == event)))
        return outputs, shift

    assert price(walk) == 1


@with_restores
@pytest.mark.parametrize(("key", "event"), [(0, 0), (63, 5), (64, 5), (69, 16), (129, 100), (69, 199)])
@pytest.mark.parametrize("named", [False, True])
def test_an_event_has_one_price_under_every_key(key: int, event: int, named: bool, restores: bool) -> None:
    """Each of 130 keys has noise of its own, in every block of a family."""
    shape, columns = shape_for(200), 130
    numbers = {node: first * columns + key for node, first in sliding_numbers(shape, shape.horizon).items()}
    shift = {numbers[0, level, event // shape.widths[level]]: -1 for level in range(shape.levels)}
    keys = [f"key {number}" for number in range(columns)] if named else columns

    def walk(noise: ShiftedNoise, x: int) -> tuple[Any, Shift]:
        family = CounterFamily(keys=keys, epsilon=4, contributions=4, horizon=200, noise=noise)
        outputs = []
        for period in range(200):
            family = restore(family, noise) if restores and period in (3, 50, event) else family
            outputs.append(family.update({family.keys[key]: x * (period == event)}).tolist())
        return outputs, shift

    assert shape.blocks > 4
    assert price(walk) == 1


def test_noise_of_a_family_is_that_of_its_own_key_only() -> None:
    """One more of a noise of one key moves no output of another, with 130 keys."""

    def outputs(shift: Shift) -> Any:
        family = CounterFamily(keys=130, epsilon=1, horizon=8, shape=EIGHT, noise=ShiftedNoise(shift))
        return family.update_many(np.zeros((8, 130), dtype=np.int64))

    still = outputs({})
    for number in (0, 63, 64, 129, 130 + 70):
        moved = np.flatnonzero((outputs({number: 8}) != still).any(axis=0))
        assert moved.tolist() == [number % 130]


# Sparse counters.

SEALS = SparsePlan(seals=16, threshold=5, offset=0, spread=0.0, capacity=3)


@with_restores
@pytest.mark.parametrize(("number", "segment"), [(0, 2), (1, 0), (1, 11), (2, 0), (2, 30), (3, 5), (3, 191)])
def test_an_event_has_one_price_in_every_inner_counter(number: int, segment: int, restores: bool) -> None:
    """Three quarters of epsilon hide it among counts, and each seal has noise for the other quarter."""
    room = 3 * 4**number
    tree, before = plan(room), sum(3 * 4**each for each in range(number))
    numbers = _stepwise(tree, room)

    def walk(noise: ShiftedNoise, x: int) -> tuple[Any, Shift]:
        counter = SparseCounter(epsilon=2, contributions=2, horizon=10**6, plan=SEALS, noise=noise)
        outputs, first = [], 0
        for period in range(before + segment + 3):
            first = len(noise.scales) if period == before else first
            counter = restore(counter, noise) if restores and period % 11 == 2 else counter
            outputs.append(counter.update(10 + x * (period == before + segment)))
        assert counter.seals == before + segment + 3
        assert set(noise.seal_scales) == {Fraction(PARTS, SEALS.seals)}
        return outputs, _tree_of(tree, numbers, segment, first)

    assert price(walk) == Fraction(3, 4)


@with_restores
def test_every_threshold_of_a_sparse_counter_has_noise(restores: bool) -> None:
    """One noise when a segment begins, then fresh noise in each run of periods, all of one scale."""
    noise = ShiftedNoise()
    counter = SparseCounter(epsilon=2, contributions=2, horizon=10**6, plan=SEALS, noise=noise)
    for _ in range(70):
        counter.advance(9)
        counter = restore(counter, noise) if restores else counter
        counter.update(10)

    assert counter.seals == 70
    assert noise.seal_scales == [Fraction(PARTS, SEALS.seals)] * (70 * 3)


# Pan-private counters.

BLOCKS = [(0, 8), (256, 12), (256 + 2**12, 16), (256 + 2**12 + 2**16, 20)]
"""How many periods come before each of the first blocks without a known end, and the levels of the block."""


def _endless(noise: Any, start: int, **more: Any) -> PanPrivateCounter:
    counter = PanPrivateCounter(epsilon=2, contributions=2, noise=noise, **more)
    counter.advance(start)
    return counter


def _seen_after(counter: Any, noise: ShiftedNoise, x: int, restores: bool) -> tuple[Any, int]:
    """An event in the next period, a look at the whole state, later outputs; and the first noise of it."""
    counter = restore(counter, noise) if restores else counter
    first = len(noise.scales)
    seen = [counter.update(x), *look(counter)]
    counter = restore(counter, noise) if restores else counter
    for doubling in range(20):
        counter.advance(1 << doubling)
        seen.append(counter.value)
    return seen, first


@with_restores
@pytest.mark.parametrize(("start", "levels"), BLOCKS)
@pytest.mark.parametrize("variant", ["default", "book"])
def test_a_look_after_an_event_shows_nothing_in_any_block(
    start: int, levels: int, variant: Any, restores: bool
) -> None:
    """The noise with which the intervals of the event began hides it: the first noises of the block."""

    def walk(noise: ShiftedNoise, x: int) -> tuple[Any, Shift]:
        counter = _endless(noise, start, variant=variant)
        seen, first = _seen_after(counter, noise, x, restores)
        return seen, dict.fromkeys(range(first, first + (levels if variant == "default" else 1)), -1)

    assert price(walk) == (1 if variant == "default" else Fraction(1, 1 + levels))


@with_restores
@pytest.mark.parametrize(("start", "levels"), BLOCKS)
@pytest.mark.parametrize("variant", ["default", "book"])
def test_a_look_before_an_event_shows_nothing_in_any_block(
    start: int, levels: int, variant: Any, restores: bool
) -> None:
    """The noise with which its intervals end hides it, or that of all intervals that begin later.

    In each longer interval the first output and the last are seen.
    """

    def walk(noise: ShiftedNoise, x: int) -> tuple[Any, Shift]:
        counter = _endless(noise, start + 1, variant=variant)
        counter = restore(counter, noise) if restores else counter
        seen = [*look(counter), counter.update(x)]
        first_or_last = [len(noise.scales) - 1]
        for level in range(1, levels - 1 if variant == "default" else levels):
            counter = restore(counter, noise) if restores else counter
            seen.append(counter.update())
            begun = len(noise.scales) - 1
            counter.advance((1 << level) - 1)
            seen.append(counter.value)
            first_or_last.append(begun if variant == "book" else len(noise.scales) - 1)
        return [*seen, counter.update()], dict.fromkeys(first_or_last, -1)

    assert price(walk) == (
        Fraction(levels - 1, levels) if variant == "default" else Fraction(levels, levels + 1)
    )


@with_restores
@pytest.mark.parametrize("times", [1, 2, 5])
@pytest.mark.parametrize("variant", ["default", "book"])
def test_a_look_after_announcements_shows_nothing(times: int, variant: Any, restores: bool) -> None:
    """The block that begins with an announcement reaches to the horizon, with noise for as many levels."""
    left = 2000 - 11 * times
    levels = (left - 1).bit_length()

    def walk(noise: ShiftedNoise, x: int) -> tuple[Any, Shift]:
        counter: Any = PanPrivateCounter(epsilon=1, horizon=2000, variant=variant, noise=noise)
        for _ in range(times):
            counter.advance(11)
            counter.announce_intrusion()
        counter = restore(counter, noise) if restores else counter
        first = len(noise.scales)
        seen = [counter.update(x), *look(counter)]
        counter = restore(counter, noise) if restores else counter
        counter.advance(left - 1)
        shift = dict.fromkeys(range(first, first + (levels if variant == "default" else 1)), -1)
        return [*seen, counter.value], shift

    assert price(walk) == (1 if variant == "default" else Fraction(1, 1 + levels))


@with_restores
@pytest.mark.parametrize(("start", "levels"), BLOCKS)
def test_a_look_within_a_period_shows_nothing_in_any_block(start: int, levels: int, restores: bool) -> None:
    """In a live counter every open interval has noise before the first event comes."""

    def walk(noise: ShiftedNoise, x: int) -> tuple[Any, Shift]:
        counter: Any = _endless(noise, start, live=True)
        first = len(noise.scales)
        counter.open()
        counter = restore(counter, noise) if restores else counter
        counter.add(x)
        seen: Sequence[Any] = look(counter)
        counter = restore(counter, noise) if restores else counter
        seen = [*seen, counter.update(0), counter.update(0)]
        return seen, dict.fromkeys(range(first, first + levels), -1)

    assert price(walk) == 1
