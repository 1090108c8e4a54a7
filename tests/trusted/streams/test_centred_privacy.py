"""The centred tree: its law on tiny horizons, the shift that hides an event on large ones, planted bugs."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import pytest

from partita.public import stream_trees as branching
from partita.public.stream_trees import SHARES, TAPERS, TreePlan
from partita.public.streams import CounterTerms
from partita.testing.laws import Adversary, Make, Outputs, counters_are_private, greedy, hidden, silent
from partita.trusted.streams import counter as centred
from partita.trusted.streams.counter import CentredPath, Counter

Plant = Callable[[pytest.MonkeyPatch], None]

FLAT, EVEN = (0, 0, 0, 0), (1, 1, 1, 1)
TINY = {
    "one block": (TreePlan(2, 2, 2, 512, FLAT), Fraction(1, 2)),
    "one block, tapered": (TreePlan(2, 2, 2, 512, EVEN), Fraction(1, 2 * TAPERS)),
    "tapered row": (TreePlan(2, 2, 1, 1, EVEN), Fraction(1, TAPERS)),
    "three children": (TreePlan(3, 3, 2, 512, FLAT), Fraction(1, 2)),
}
SAMPLE = TreePlan(16, 2, 4, 200, (9, 7, 4, 1))


def _made(plan: TreePlan, **more: Any) -> Make:
    return lambda noise: Counter(
        **{"epsilon": 1, "horizon": plan.horizon, "plan": plan, "noise": noise, **more}
    )


def _endless(noise: Any) -> Counter:
    return Counter(epsilon=1, noise=noise)


def _parity(outputs: Outputs) -> int:
    return int(sum(outputs)) % 3


@pytest.mark.parametrize("choose", [silent, greedy, _parity])
@pytest.mark.parametrize("name", TINY)
@pytest.mark.spread(3)
def test_no_event_changes_the_law_by_more_than_epsilon(name: str, choose: Adversary) -> None:
    """For all events of tiny streams, also of those that are chosen while outputs are seen."""
    plan, unit = TINY[name]

    assert counters_are_private(_made(plan), choose, horizon=plan.horizon, unit=unit)


@pytest.mark.parametrize("choose", [silent, greedy])
def test_no_event_changes_the_law_of_two_blocks(choose: Adversary) -> None:
    """Four periods under six nodes."""
    plan = TreePlan(4, 2, 2, 512, FLAT)

    assert counters_are_private(_made(plan), choose, horizon=4, unit=Fraction(1, 2), reach=0)


@pytest.mark.parametrize("name", TINY)
def test_half_of_the_noise_is_too_little(name: str) -> None:
    """What is made for twice the epsilon loses more than epsilon, and the enumeration says so."""
    plan, unit = TINY[name]

    assert not counters_are_private(_made(plan, epsilon=2), silent, horizon=plan.horizon, unit=unit)


def _numbers(plan: TreePlan) -> dict[tuple[int, int], int]:
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


def _shift(plan: TreePlan, event: int) -> dict[int, int]:
    """The noise that hides an event: one less on each node over it, and its taper less on the sum."""
    numbers = _numbers(plan)
    shift = {numbers[level, event // plan.branching**level]: -1 for level in range(plan.levels)}
    taper = plan.tapers[event // plan.block]
    return shift | ({0: -taper} if any(plan.taper) else {})


def _price(make: Make, plan: TreePlan, event: int) -> Fraction | None:
    return hidden(make, horizon=plan.horizon, event=event, shift=_shift(plan, event))


LARGER = [
    TreePlan(8, 2, 3, 300, FLAT),
    TreePlan(8, 2, 3, 300, (40, 30, 20, 1)),
    TreePlan(16, 2, 4, 200, (9, 7, 4, 1)),
    TreePlan(30, 3, 3, 300, (18, 15, 9, 2)),
    TreePlan(81, 3, 4, 250, (5, 4, 2, 0)),
    branching.plan(64),
    branching.plan(500),
    branching.epoch_plan(256),
]


@pytest.mark.parametrize("plan", LARGER, ids=str)
def test_one_less_on_every_node_hides_an_event(plan: TreePlan) -> None:
    """The outputs are the same to the last bit, and the shift costs epsilon exactly; rounding included."""
    for event in range(0, plan.horizon, 1 + plan.horizon // 12):
        assert _price(_made(plan), plan, event) == 1


@pytest.mark.parametrize(
    ("more", "epsilon"),
    [({"epsilon": "1/3"}, "1/3"), ({"change": 2}, "1/2"), ({"contributions": 4}, "1/4")],
)
def test_terms_set_the_price_of_an_event(more: dict[str, Any], epsilon: str) -> None:
    """A change of two, or one of four events of a user, has its part of epsilon for each unit."""
    plan = LARGER[1]

    assert _price(_made(plan, **more), plan, 5) == Fraction(epsilon)


def _passes() -> bool:
    """The checker: whether every event is hidden at a price of at most epsilon."""
    prices = [_price(_made(SAMPLE), SAMPLE, event) for event in range(SAMPLE.horizon)]
    return all(price is not None and price <= 1 for price in prices)


def _epoch_price(event: int) -> Fraction | None:
    """What it costs to hide an event of one of the first two trees without a known end."""
    first, second = branching.epoch_plan(256), branching.epoch_plan(4096)
    drawn = 1 + len(_numbers(first))
    later = {drawn + number: by for number, by in _shift(second, max(0, event - 256)).items()}
    shift = _shift(first, event) if event < 256 else later
    return hidden(_endless, horizon=310, event=event, shift=shift)


@pytest.mark.parametrize("event", [0, 100, 255, 256, 300])
def test_an_event_is_hidden_by_the_tree_of_its_epoch(event: int) -> None:
    """Without a horizon the tree of the period pays for it all."""
    assert _epoch_price(event) == 1


def test_the_shipped_counter_passes() -> None:
    """The checker has nothing to say about the right code."""
    assert _passes()


def _noise_reused(patch: pytest.MonkeyPatch) -> None:
    """All groups below the top share one draw."""
    patch.setattr(CentredPath, "_drawn", cache(CentredPath._drawn))


def _level_shares_ignored(patch: pytest.MonkeyPatch) -> None:
    """Every node has noise as if it were the only one over a period."""
    patch.setattr(CentredPath, "_scale", lambda path, share, taper: 1 / path.rate)


def _mean_kept(patch: pytest.MonkeyPatch) -> None:
    """Siblings get their part of the parent's error and keep their own mean."""
    patch.setattr(centred, "_moved", lambda errors, own: (own + (errors // own.shape[1])[:, None]).ravel())


def _parent_twice(patch: pytest.MonkeyPatch) -> None:
    """The parent's error is shared out twice."""
    right = centred._moved
    patch.setattr(centred, "_moved", lambda errors, own: right(2 * errors, own))


def _used_twice(patch: pytest.MonkeyPatch) -> None:
    """The error of a period stays and is used for the next one too."""
    right = CentredPath.step

    def step(path: CentredPath) -> int:
        error = right(path)
        path._leaves = path._leaves[:1] + path._leaves[:-1]
        return error

    patch.setattr(CentredPath, "step", step)


def _children_not_refining(patch: pytest.MonkeyPatch) -> None:
    """A node takes a part of its children's noise on top of all of its own."""
    right = CentredPath._refined

    def refined(path: CentredPath, level: int, own: Any, below: Any) -> Any:
        return right(path, level, own, below) + (below.sum(axis=1) if below.shape[1] else 0)

    patch.setattr(CentredPath, "_refined", refined)


def _taper_not_paid(patch: pytest.MonkeyPatch) -> None:
    """Blocks keep all of epsilon though they give a part to the sum."""
    patch.setattr(CentredPath, "_draw_parts", _full_parts)


def _full_parts(path: CentredPath, parts: Any) -> Any:
    fuller = parts.copy()
    fuller[1:] = fuller[1:] * TAPERS // (TAPERS - max(path.plan.taper))
    return path._noise.add([0] * len(parts), SHARES * TAPERS / path.rate, parts=fuller)


def _surplus_wrong(patch: pytest.MonkeyPatch) -> None:
    """The surplus of the tapered sum forgets the tapers."""
    patch.setattr(CentredPath, "_corrected", _untapered)


def _untapered(path: CentredPath, own: list[int], total: int) -> list[int]:
    surplus = (total << centred.BITS) - sum(own)
    return [error + surplus // 100 for error in own]


def _noise_after_data(patch: pytest.MonkeyPatch) -> None:
    """A period in which nothing was counted gets no error."""
    right = Counter.update

    def update(counter: Counter, x: int = 0) -> float:
        before, output = counter.value, right(counter, x)
        return output if x else before

    patch.setattr(Counter, "update", update)


def _change_ignored(patch: pytest.MonkeyPatch) -> None:
    """Twice the promised rate."""
    patch.setattr(CounterTerms, "rate", property(lambda terms: 2 * terms.epsilon))


@pytest.mark.parametrize(
    "plant",
    [
        _noise_reused,
        _level_shares_ignored,
        _mean_kept,
        _parent_twice,
        _used_twice,
        _children_not_refining,
        _taper_not_paid,
        _surplus_wrong,
        _noise_after_data,
        _change_ignored,
    ],
)
def test_planted_bugs_of_the_centred_tree_are_caught(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each wrong variant shows an event, or costs more than epsilon."""
    plant(monkeypatch)

    assert not _passes()


def _same_tree_again(patch: pytest.MonkeyPatch) -> None:
    """The next epoch starts the old tree over, with its noise."""

    def begin(path: Any) -> None:
        path.plans.append(path.plans[-1])
        path.tree.position = 0
        path.tree._open = lambda level: None

    patch.setattr(centred.Epochs, "_begin", begin)


def _nothing_carried(patch: pytest.MonkeyPatch) -> None:
    """The error of the first tree is taken back when the second begins, and the count shows."""
    right = centred.Epochs.step

    def step(path: Any) -> int:
        fresh = not path.tree.left
        error = right(path)
        return error if not fresh else error - sum(path.tree._leaves)

    patch.setattr(centred.Epochs, "step", step)


@pytest.mark.parametrize("plant", [_same_tree_again, _nothing_carried])
def test_planted_bugs_of_epochs_are_caught(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second tree that is not its own shows an event."""
    plant(monkeypatch)

    assert not (_epoch_price(100) == 1 == _epoch_price(259))
