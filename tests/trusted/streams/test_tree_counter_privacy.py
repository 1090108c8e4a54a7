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
from partita.trusted.streams.tree_counter import IntervalCounts, TreeCounter, TreePath

Plant = Callable[[pytest.MonkeyPatch], None]

TINY = [(2, 2), (3, 2), (4, 2), (3, 3)]


def _made(horizon: int, **more: Any) -> Make:
    return lambda noise: TreeCounter(**{"epsilon": 1, "horizon": horizon, "noise": noise, **more})


class _Seen(tuple[float, ...]):
    """An output and what else is published with it; as a number it is the output."""

    def __gt__(self, other: object) -> bool:
        return self[0] > other  # type: ignore[operator]


class _Showing:
    """A counter that answers for all past periods whenever one is closed."""

    def __init__(self, counter: TreeCounter) -> None:
        self._counter = counter

    def update(self, x: int) -> _Seen:
        output, last = self._counter.update(x), self._counter.periods
        return _Seen([output, *(self._counter.count(first, last).value for first in range(1, last + 1))])


def _showing(horizon: int, **more: Any) -> Any:
    made = _made(horizon, intervals=True, **more)
    return lambda noise: _Showing(made(noise))  # type: ignore[arg-type]


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


@pytest.mark.parametrize(
    ("horizon", "branching", "refine"), [(2, 2, False), (3, 2, True), (4, 2, False), (3, 3, False)]
)
def test_no_event_changes_the_law_of_all_interval_counts(horizon: int, branching: int, refine: bool) -> None:
    """The counts of all intervals, as Figure 12.1 outputs them, are private together with running sums."""
    make = _showing(horizon, branching=branching, refine=refine)

    assert counters_are_private(make, greedy, horizon=horizon, unit=_unit(horizon, branching), reach=0)


def test_interval_counts_of_half_the_noise_lose_more() -> None:
    """The enumeration sees it."""
    make = _showing(4, epsilon=2)

    assert not counters_are_private(make, silent, horizon=4, unit=_unit(4, 2), reach=0)


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
        for low in range(level + 1) if shape.every_node else [level]:
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


@pytest.mark.parametrize("refine", [False, True])
@pytest.mark.parametrize(("horizon", "branching"), [(8, 2), (9, 3), (21, 2), (30, 4)])
def test_one_less_on_all_nodes_hides_an_event_from_every_interval(
    horizon: int, branching: int, refine: bool
) -> None:
    """One node of each level holds the event, so all of them together cost at most epsilon."""
    shape = CounterTree(horizon=horizon, branching=branching, refine=refine, intervals=True)
    make = _showing(horizon, branching=branching, refine=refine)

    costs = [
        hidden(make, horizon=horizon, event=event, shift=_tree_shift(shape, event))
        for event in range(0, horizon, 3)
    ]

    assert None not in costs
    assert max(cost for cost in costs if cost is not None) <= 1


def _passes(*, refine: bool, intervals: bool = False) -> bool:
    """The checker: whether every event is hidden at a price of at most epsilon."""
    shape = CounterTree(horizon=16, branching=2, refine=refine, intervals=intervals)
    make = (_showing if intervals else _made)(16, refine=refine)
    prices = [hidden(make, horizon=16, event=i, shift=_tree_shift(shape, i)) for i in range(16)]
    return all(price is not None and price <= 1 for price in prices)


def test_the_shipped_trees_pass() -> None:
    """The checker has nothing to say about the right code."""
    assert _passes(refine=False)
    assert _passes(refine=True)
    assert _passes(refine=False, intervals=True)
    assert _passes(refine=True, intervals=True)


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
    """A node hands on its number of levels times its own noise, and nothing of its children's."""
    patch.setattr(TreePath, "_nodes", lambda path, level: [path._supply.take() * (level + 1)])


def _children_count_twice(patch: pytest.MonkeyPatch) -> None:
    """The count of a node that ends is that of its children once more."""
    right = IntervalCounts.close

    def close(kept: IntervalCounts, x: int, errors: list[int]) -> None:
        right(kept, x, errors)
        kept._open[1:] = [count + x * (len(errors) == 1) for count in kept._open[1:]]

    patch.setattr(IntervalCounts, "close", close)


def _one_noise_for_all_that_end(patch: pytest.MonkeyPatch) -> None:
    """Nodes that end together have one noise, and a difference of their counts has none."""
    right = TreePath._nodes
    patch.setattr(TreePath, "_nodes", lambda path, level: [right(path, level)[0]] * (level + 1))


@pytest.mark.parametrize("plant", [_one_level_less, _nodes_stay, _same_noise_for_all, _own_noise_kept])
def test_planted_bugs_of_the_tree_are_caught(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each wrong variant of the papers' tree, plain or refined, shows an event or costs too much."""
    plant(monkeypatch)

    assert not (_passes(refine=False) and _passes(refine=True))


@pytest.mark.parametrize(
    "plant", [_one_level_less, _same_noise_for_all, _children_count_twice, _one_noise_for_all_that_end]
)
def test_planted_bugs_of_interval_counts_are_caught(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those that no running sum shows."""
    plant(monkeypatch)

    assert not _passes(refine=False, intervals=True)
