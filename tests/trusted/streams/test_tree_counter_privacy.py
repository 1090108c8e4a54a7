"""The papers' tree: its law on tiny horizons, the shift that hides an event on large ones, planted bugs."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from partita.public.stream_trees import CounterTree
from partita.testing.laws import Adversary, Make, counters_are_private, greedy, hidden, silent
from partita.trusted.noise.system import Noise
from partita.trusted.streams.base import Supply
from partita.trusted.streams.tree_counter import TreeCounter, TreePath

Plant = Callable[[pytest.MonkeyPatch], None]

TINY = [(2, 2), (3, 2), (4, 2), (3, 3)]


def _made(horizon: int, **more: Any) -> Make:
    return lambda noise: TreeCounter(**{"epsilon": 1, "horizon": horizon, "noise": noise, **more})


def _unit(horizon: int, branching: int) -> Fraction:
    return Fraction(1, CounterTree(horizon=horizon, branching=branching, refine=False).levels)


@pytest.mark.parametrize("choose", [silent, greedy])
@pytest.mark.parametrize(("horizon", "branching"), TINY)
def test_no_event_changes_the_law_by_more_than_epsilon(
    horizon: int, branching: int, choose: Adversary
) -> None:
    """For all events of tiny streams, also of those that are chosen while outputs are seen."""
    make = _made(horizon, branching=branching)

    assert counters_are_private(make, choose, horizon=horizon, unit=_unit(horizon, branching))


@pytest.mark.parametrize("choose", [silent, greedy])
def test_no_event_changes_the_law_of_a_refined_tree(choose: Adversary) -> None:
    """Four periods under six nodes."""
    make = _made(4, refine=True)

    assert counters_are_private(make, choose, horizon=4, unit=Fraction(1, 2), reach=0)


@pytest.mark.parametrize(("horizon", "branching"), TINY)
def test_half_of_the_noise_is_too_little(horizon: int, branching: int) -> None:
    """What is made for twice the epsilon loses more than epsilon, and the enumeration says so."""
    make = _made(horizon, branching=branching, epsilon=2)

    assert not counters_are_private(make, silent, horizon=horizon, unit=_unit(horizon, branching))


def _tree_shift(shape: CounterTree, event: int) -> dict[int, int]:
    """One less on each node over an event that is drawn: all if nodes are refined, else those in a sum."""
    drawn, shift = 0, {}
    for end in range(1, shape.horizon + 1):
        level = max(low for low in range(shape.levels) if end % shape.branching**low == 0)
        for low in range(level + 1) if shape.refine else [level]:
            if end - shape.branching**low <= event < end:
                shift[drawn] = -1
            drawn += 1
    return shift


@pytest.mark.parametrize("refine", [False, True])
@pytest.mark.parametrize(("horizon", "branching"), [(8, 2), (9, 3), (21, 2), (30, 4), (64, 4), (300, 2)])
def test_one_less_on_the_nodes_of_the_tree_hides_an_event(horizon: int, branching: int, refine: bool) -> None:
    """The outputs are the same, the shift costs at most epsilon, and all of it for some event."""
    shape = CounterTree(horizon=horizon, branching=branching, refine=refine)
    make = _made(horizon, branching=branching, refine=refine)
    events = range(0, horizon, 1 + horizon // 25)

    costs = [hidden(make, horizon=horizon, event=event, shift=_tree_shift(shape, event)) for event in events]

    assert None not in costs
    assert max(cost for cost in costs if cost is not None) == 1


def _passes(*, refine: bool) -> bool:
    """The checker: whether every event is hidden at a price of at most epsilon."""
    shape = CounterTree(horizon=16, branching=2, refine=refine)
    make = _made(16, refine=refine)
    prices = [hidden(make, horizon=16, event=i, shift=_tree_shift(shape, i)) for i in range(16)]
    return all(price is not None and price <= 1 for price in prices)


def test_the_shipped_trees_pass() -> None:
    """The checker has nothing to say about the right code."""
    assert _passes(refine=False)
    assert _passes(refine=True)


def _one_level_less(patch: pytest.MonkeyPatch) -> None:
    """The noise is for one level less than there are."""
    right = TreePath.__init__

    def init(path: TreePath, shape: CounterTree, rate: Fraction, noise: Noise) -> None:
        right(path, shape, rate * Fraction(shape.levels, shape.levels - 1), noise)

    patch.setattr(TreePath, "__init__", init)


def _nodes_stay(patch: pytest.MonkeyPatch) -> None:
    """Children stay in the sum beside their parent."""
    right = TreePath.step
    patch.setattr(TreePath, "step", lambda path: right(path) + sum(path._sums[:1]))


def _same_noise_for_all(patch: pytest.MonkeyPatch) -> None:
    """The supply hands out its last noise over and over."""
    right = Supply.take

    def take(supply: Any) -> int:
        supply._ready.append(noise := right(supply))
        return noise

    patch.setattr(Supply, "take", take)


def _own_noise_kept(patch: pytest.MonkeyPatch) -> None:
    """A refined node adds its own noise to its children's."""
    right = CounterTree.weights.fget  # type: ignore[attr-defined]
    patch.setattr(
        TreePath, "_refined", lambda path, level: right(path.shape)[0] * path._supply.take() * (level + 1)
    )


@pytest.mark.parametrize("plant", [_one_level_less, _nodes_stay, _same_noise_for_all, _own_noise_kept])
def test_planted_bugs_of_the_tree_are_caught(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each wrong variant of the papers' tree, plain or refined, shows an event or costs too much."""
    plant(monkeypatch)

    assert not (_passes(refine=False) and _passes(refine=True))
