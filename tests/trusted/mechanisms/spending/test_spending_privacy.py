"""The spending tree loses at most epsilon: coupled runs on all small neighbours, and bugs that they catch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from partita.errors import InvalidRelease
from partita.public.axis.spending_tree import SpendingPlan, SpendingTreeRelease, Step
from partita.public.axis.tree_solver import UNITS, LevelEvidence, TreeLooks, TreeShape
from partita.testing import (
    CouplingBroken,
    EndlessTape,
    add_remove_pairs,
    change_one_pairs,
    coupled,
    tape_noise,
)
from partita.testing.doubles import Counts
from partita.trusted.mechanisms import base
from partita.trusted.mechanisms import spending_tree as module
from partita.trusted.mechanisms.spending_tree import SpendingTree
from partita.trusted.noise import Noise
from partita.trusted.secret import Histogram

Pairs = list[tuple[Counts, Counts]]

EPSILON = Fraction(4)
LOOKS = module._Looks


def _tree(size: int, **changes: Any) -> SpendingTree:
    """A tree whose first levels spend little, so that few people are worth another look or level."""
    small: dict[str, Any] = {"epsilon": EPSILON, "total": 10, "branching": 2, "worth": 8, "growth": 4}
    return SpendingTree(size=size, **{**small, **changes})


DEEP = _tree(9, growth=2)


def _public(release: SpendingTreeRelease) -> list[object]:
    parts = release.parts()
    return [dict(parts.facts), *(series.tolist() for series in parts.series.values())]


def _losses(tree: SpendingTree, pairs: Pairs, tapes: int = 1) -> Iterator[Fraction]:
    """The loss of each pair on each of its tapes."""

    def run(counts: Counts, noise: Noise) -> list[object]:
        return _public(tree.release(Histogram.dense(counts, contributions=tree.contributions), noise=noise))

    for one, other in pairs:
        for tape in range(tapes):
            yield coupled(run, one, other, tape_noise(EndlessTape((one, other, tape))))


@pytest.mark.parametrize(
    ("size", "most", "tapes", "changes"),
    [
        (4, 2, 4, {}),
        (4, 1, 2, {"branching": 4, "epsilon": Fraction(1, 3), "total": 0}),
        (5, 1, 3, {"growth": "4/5", "total": 40, "worth": "1/4"}),
        (6, 1, 2, {"branching": 4, "total": 100, "total_scale": Fraction(25)}),
        (1, 5, 8, {}),
        (3, 3, 1, {}),
    ],
    ids=str,
)
@pytest.mark.spread(2)
def test_one_row_costs_at_most_epsilon(size: int, most: int, tapes: int, changes: dict[str, Any]) -> None:
    """For all pairs that differ by a row, and every tape, the looks that differ cost epsilon and no more."""
    tree = _tree(size, **changes)

    losses = set(_losses(tree, list(add_remove_pairs(size, most)), tapes))

    assert losses == {tree.epsilon}


def test_one_row_of_a_deep_tree_costs_at_most_epsilon() -> None:
    """For all data sets of at most three rows over nine cells, four levels deep, a row costs epsilon."""
    few = [pair for pair in add_remove_pairs(9, 2) if sum(pair[1]) <= 3]

    assert set(_losses(DEEP, few)) == {DEEP.epsilon}


def test_a_changed_row_costs_at_most_epsilon() -> None:
    """Under change-one a row that moves costs epsilon if its paths part at the root, and less if later."""
    tree = _tree(5, neighbors="change-one")

    losses = set(_losses(tree, list(change_one_pairs(5, 1)), 4))

    assert max(losses) == tree.epsilon
    assert min(losses) < tree.epsilon


def test_a_person_with_two_rows_costs_at_most_epsilon() -> None:
    """With contributions=2 both rows of a person together cost epsilon, wherever they are."""
    tree = _tree(4, contributions=2)

    assert set(_losses(tree, list(_two_row_pairs(4)), 4)) == {tree.epsilon}


def _two_row_pairs(size: int) -> Iterator[tuple[Counts, Counts]]:
    """A data set, and the same without two of its rows."""
    for less, one in add_remove_pairs(size, 1):
        for cell in range(size):
            yield less, (*one[:cell], one[cell] + 1, *one[cell + 1 :])


@pytest.mark.parametrize(("tree", "counts"), [(_tree(4), [2, 1, 0, 1]), (DEEP, [2, 0, 1, 0, 0, 0, 0, 0, 0])])
def test_these_trees_grow_look_twice_and_stop_early(tree: SpendingTree, counts: list[int]) -> None:
    """The pairs above meet every branch: nodes cut, second looks, leaves above the last level."""
    expanded = seconds = early = 0
    for seed in range(40):
        release = tree.release(Histogram.dense(counts), noise=tape_noise(EndlessTape(seed)))
        looks = np.bincount(release.looks.nodes)
        leaf = ~release.shape.expanded
        expanded += int(release.shape.expanded[1:].any())
        seconds += int((looks[~leaf] > 1).any() or (looks[leaf] > 2).any())
        early += int((release.shape.widths[leaf] > 1).any())

    assert min(expanded, seconds, early) >= 10


def test_every_leaf_spends_its_path_to_the_last_unit() -> None:
    """The units of the looks from the root to any leaf add up to 2^20 exactly."""
    for seed in range(20):
        release = DEEP.release(Histogram.dense([3, 0, 1] * 3), noise=tape_noise(EndlessTape(seed)))
        spent = np.zeros(release.shape.first.size, np.int64)
        np.add.at(spent, release.looks.nodes, release.looks.units)
        for family in release.shape.families:
            spent[family.nodes] += spent[family.parents].repeat(family.sizes)

        assert set(spent[release.shape.leaves].tolist()) == {UNITS}


# Planted bugs: each is one way to get a spending tree wrong, put into the shipped code.


def _true_count_in_a_branch(patch: pytest.MonkeyPatch) -> None:
    class Peeking(LOOKS):
        def take(self, evidence: LevelEvidence, nodes: Any, units: Any) -> None:
            super().take(evidence, nodes, units)
            evidence._weighted = evidence.squares * self._counts.astype(float)

    patch.setattr(module, "_Looks", Peeking)


def _noise_reused(patch: pytest.MonkeyPatch) -> None:
    class Reusing(LOOKS):
        def take(self, evidence: LevelEvidence, nodes: Any, units: Any) -> None:
            super().take(evidence, nodes, units)
            if nodes.size > 1:
                noise = self._steps[-1].noisy[0] - self._counts[nodes[0]]
                self._steps[-1].noisy[1] = self._counts[nodes[1]] + noise

    patch.setattr(module, "_Looks", Reusing)


def _empty_nodes_skipped(patch: pytest.MonkeyPatch) -> None:
    class Skipping(LOOKS):
        def take(self, evidence: LevelEvidence, nodes: Any, units: Any) -> None:
            present = (self._counts[nodes] > 0) | (evidence.squares[nodes] == 0)
            super().take(evidence, nodes[present], units[present])

    patch.setattr(module, "_Looks", Skipping)


def _units_by_true_count(patch: pytest.MonkeyPatch) -> None:
    class Favouring(LOOKS):
        def take(self, evidence: LevelEvidence, nodes: Any, units: Any) -> None:
            super().take(evidence, nodes, np.where(self._counts[nodes] > 1, np.maximum(1, units // 2), units))

    patch.setattr(module, "_Looks", Favouring)


def _large_counts_exact(patch: pytest.MonkeyPatch) -> None:
    class Careless(LOOKS):
        def take(self, evidence: LevelEvidence, nodes: Any, units: Any) -> None:
            super().take(evidence, nodes, units)
            if nodes.size:
                noisy, counts = self._steps[-1].noisy, self._counts[nodes]
                noisy[counts > 1] = counts[counts > 1]

    patch.setattr(module, "_Looks", Careless)


def _leaves_paid_once_and_looked_at_twice(patch: pytest.MonkeyPatch) -> None:
    class Doubling(LOOKS):
        def take(self, evidence: LevelEvidence, nodes: Any, units: Any) -> None:
            super().take(evidence, nodes, units)
            if nodes.size and not evidence.left[nodes].any():
                evidence.left[nodes] += units
                super().take(evidence, nodes, units)

    patch.setattr(module, "_Looks", Doubling)


def _root_looked_at_for_free(patch: pytest.MonkeyPatch) -> None:
    class Counting(LOOKS):
        def __init__(self, histogram: Histogram, session: Noise, scale: Fraction) -> None:
            super().__init__(histogram, session, scale)
            session.add(histogram.total, scale / UNITS)

    patch.setattr(module, "_Looks", Counting)


def _half_scale(patch: pytest.MonkeyPatch) -> None:
    right = SpendingTree.scale.fget  # type: ignore[attr-defined]
    patch.setattr(SpendingTree, "scale", property(lambda tree: right(tree) / 2))


def _neighbours_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(base, "rows_changed", lambda neighbors, contributions: contributions)


def _contributions_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(base, "rows_changed", lambda neighbors, contributions: 1)


def _second_looks_unpaid(patch: pytest.MonkeyPatch) -> None:
    right = LevelEvidence.pay

    def pay(evidence: LevelEvidence, nodes: Any, units: Any) -> None:
        if not evidence.squares[nodes].all():
            right(evidence, nodes, units)

    patch.setattr(LevelEvidence, "pay", pay)


def _children_paid_from_the_whole_budget(patch: pytest.MonkeyPatch) -> None:
    right = module._Front

    def front(first: Any, budget: Any, counts: Any) -> Any:
        return right(first, np.full_like(budget, UNITS), counts)

    patch.setattr(module, "_Front", front)


def _memory_guard_by_true_counts(patch: pytest.MonkeyPatch) -> None:
    opened: list[Any] = []
    right = SpendingPlan.expanded

    class Telling(LOOKS):
        def open(self, boxes: Any) -> None:
            super().open(boxes)
            opened[:] = [self._counts]

    def expanded(plan: SpendingPlan, step: Step, evidence: LevelEvidence) -> Any:
        chosen = right(plan, step, evidence)
        largest = np.argsort(-opened[0], kind="stable")[:1]
        return chosen & np.isin(np.arange(chosen.size), largest)

    patch.setattr(module, "_Looks", Telling)
    patch.setattr(SpendingPlan, "expanded", expanded)


def _universe_from_the_data(patch: pytest.MonkeyPatch) -> None:
    last: list[int] = []
    right = Step.cut

    class Telling(LOOKS):
        def __init__(self, histogram: Histogram, session: Noise, scale: Fraction) -> None:
            super().__init__(histogram, session, scale)
            last[:] = [int(histogram.cells.max(initial=0))]

    patch.setattr(module, "_Looks", Telling)
    patch.setattr(Step, "cut", lambda step, first, size: right(step, first, last[0] + 1))


def _rounds_by_the_number_of_rows(patch: pytest.MonkeyPatch) -> None:
    rows: list[int] = []
    right = SpendingPlan.second_look

    class Telling(LOOKS):
        def __init__(self, histogram: Histogram, session: Noise, scale: Fraction) -> None:
            super().__init__(histogram, session, scale)
            rows[:] = [histogram.total]

    def second_look(plan: SpendingPlan, step: Step, evidence: LevelEvidence) -> Any:
        nodes, units = right(plan, step, evidence)
        return (nodes, units) if rows[0] % 2 else (nodes[:0], units[:0])

    patch.setattr(module, "_Looks", Telling)
    patch.setattr(SpendingPlan, "second_look", second_look)


def _true_total_at_the_root(patch: pytest.MonkeyPatch) -> None:
    right = SpendingTree._grow

    def grow(tree: SpendingTree, looks: Any) -> Any:
        return right(
            _tree(tree.size, total=10 * int(looks._walk.folded(lambda running: running.before)[-1])), looks
        )

    patch.setattr(SpendingTree, "_grow", grow)


BUGS: list[Callable[[pytest.MonkeyPatch], None]] = [
    _true_count_in_a_branch,
    _noise_reused,
    _empty_nodes_skipped,
    _units_by_true_count,
    _large_counts_exact,
    _leaves_paid_once_and_looked_at_twice,
    _root_looked_at_for_free,
    _half_scale,
    _second_looks_unpaid,
    _children_paid_from_the_whole_budget,
    _memory_guard_by_true_counts,
    _universe_from_the_data,
    _rounds_by_the_number_of_rows,
    _true_total_at_the_root,
]


def _caught(tree: SpendingTree, pairs: Pairs) -> bool:
    """Whether a coupled run breaks or costs more than epsilon."""
    with suppress(StopIteration):
        losses = _losses(tree, pairs, 4)
        while True:
            try:
                if next(losses) > tree.epsilon:
                    return True
            except CouplingBroken:
                return True
    return False


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_planted_bugs_are_caught(bug: Callable[[pytest.MonkeyPatch], None]) -> None:
    """The coupling fails for some pair, though the release itself is kept from checking what was spent."""
    with pytest.MonkeyPatch.context() as patch:
        bug(patch)
        patch.setattr(TreeLooks, "check", lambda looks, shape: None)
        patch.setattr(TreeShape, "__post_init__", lambda shape: None)

        assert _caught(_tree(4), list(add_remove_pairs(4, 2)))


@pytest.mark.parametrize(
    ("bug", "changes", "pairs"),
    [
        (_neighbours_ignored, {"neighbors": "change-one"}, list(change_one_pairs(4, 1))),
        (_contributions_ignored, {"contributions": 2}, list(_two_row_pairs(4))),
    ],
    ids=["neighbors", "contributions"],
)
def test_wrong_factors_are_caught(
    bug: Callable[[pytest.MonkeyPatch], None], changes: dict[str, Any], pairs: Pairs
) -> None:
    """Noise for one row does not hide one that moves, or two."""
    with pytest.MonkeyPatch.context() as patch:
        bug(patch)
        assert _caught(_tree(4, **changes), pairs)
    assert not _caught(_tree(4, **changes), pairs)


@pytest.mark.parametrize("bug", [_second_looks_unpaid, _children_paid_from_the_whole_budget])
def test_an_overspent_path_is_never_released(bug: Callable[[pytest.MonkeyPatch], None]) -> None:
    """A release refuses looks that cost more than 2^20 units on a path."""
    with pytest.MonkeyPatch.context() as patch:
        bug(patch)
        with pytest.raises(InvalidRelease, match="at most 1048576 units"):
            _release_often(DEEP)


def _release_often(tree: SpendingTree) -> None:
    for seed in range(50):
        tree.release(Histogram.dense([1] * tree.size), noise=tape_noise(EndlessTape(seed)))
