"""The spending tree over boxes loses at most epsilon: all small neighbours, and bugs that they catch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from fractions import Fraction
from functools import cache, partial
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest

from partita.domain.axis import Axis
from partita.errors import InvalidRelease
from partita.public.axis import tree_solver
from partita.public.axis import tree_solver as tree_looks
from partita.public.axis.tree_solver import UNITS, LevelEvidence, SpendingRule, TreeLooks
from partita.public.boxes.plan import BoxPlan, BoxShape, BoxSplit, Recipe
from partita.public.boxes.spending_boxes import SpendingBoxesRelease
from partita.testing import (
    CouplingBroken,
    EndlessTape,
    RationalNoise,
    change_one_pairs,
    coupled,
    law,
    privacy_loss,
    tape_noise,
)
from partita.testing.doubles import Counts
from partita.trusted.mechanisms import base
from partita.trusted.mechanisms import boxes as module
from partita.trusted.mechanisms.boxes import SpendingBoxes
from partita.trusted.noise import Noise
from partita.trusted.secret import Points

Pairs = list[tuple[Counts, Counts]]

EPSILON = Fraction(6)
LOOKS = module._Looks
TWO, THREE, FOUR = Axis(size=2), Axis(size=3), Axis(size=4)
MARKED = Axis(size=2, before=1, after=1)
LABELS = Axis(size=3, after=1, labels=True)


def _tree(*axes: Axis, **changes: Any) -> SpendingBoxes:
    """A tree whose first levels spend little, so that few people are worth another look or level."""
    small: dict[str, Any] = {
        "epsilon": EPSILON,
        "bits": 1,
        "recipe": Recipe(growth=3, worth=4, depth_power=1),
    }
    return SpendingBoxes(axes=axes, **{**small, **changes})


def _points(tree: SpendingBoxes, counts: Counts) -> Points:
    """So many rows in each cell, special ones included, the last axis fastest."""
    rows = np.indices([axis.width for axis in tree.axes]).reshape(len(tree.axes), -1).T
    return Points.from_rows(rows, axes=tree.axes, counts=counts, contributions=tree.contributions)


def _cells(tree: SpendingBoxes) -> int:
    return int(np.prod([axis.width for axis in tree.axes]))


def _few(cells: int, rows: int) -> Pairs:
    """All pairs that differ by a row and have at most so many."""
    pairs = []
    for number in range(rows):
        for places in combinations_with_replacement(range(cells), number):
            counts = np.bincount(places, minlength=cells) if places else np.zeros(cells, np.int64)
            pairs += [
                (tuple(counts.tolist()), tuple((counts + one).tolist())) for one in np.eye(cells, dtype=int)
            ]
    return pairs


def _public(release: SpendingBoxesRelease) -> list[object]:
    parts = release.parts()
    return [dict(parts.facts), *(series.tolist() for series in parts.series.values())]


def _losses(tree: SpendingBoxes, pairs: Pairs, tapes: int = 1) -> Iterator[Fraction]:
    """The loss of each pair on each of its tapes."""

    def run(counts: Counts, noise: Noise) -> list[object]:
        return _public(tree.release(_points(tree, counts), noise=noise))

    for one, other in pairs:
        for tape in range(tapes):
            yield coupled(run, one, other, tape_noise(EndlessTape((one, other, tape))))


@pytest.mark.parametrize(
    ("tree", "rows", "tapes"),
    [
        (_tree(TWO, TWO), 4, 2),
        (_tree(TWO, THREE), 3, 2),
        (_tree(TWO, THREE, total=9), 2, 2),
        (_tree(MARKED, TWO), 3, 1),
        (_tree(MARKED, LABELS), 2, 1),
        (_tree(TWO, TWO, TWO), 3, 1),
        (_tree(FOUR, THREE, epsilon=9), 2, 2),
        (_tree(Axis(size=7, after=1), epsilon=9), 2, 2),
        (_tree(FOUR, FOUR, bits=2), 2, 1),
        (_tree(Axis(size=1), Axis(size=1)), 3, 4),
    ],
    ids=["2x2", "2x3", "2x3 total", "specials", "labels", "2x2x2", "4x3", "one axis", "4x4 at once", "1x1"],
)
@pytest.mark.spread(2)
def test_one_row_costs_at_most_epsilon(tree: SpendingBoxes, rows: int, tapes: int) -> None:
    """For all pairs that differ by a row, and every tape, the looks that differ cost epsilon and no more."""
    losses = set(_losses(tree, _few(_cells(tree), rows), tapes))

    assert losses == {tree.epsilon}


def test_a_changed_row_costs_at_most_epsilon() -> None:
    """Under change-one a row that moves costs epsilon less what its two paths have in common."""
    tree = _tree(THREE, TWO, neighbors="change-one")
    common = Fraction(module._TOTAL_UNITS, UNITS)

    losses = set(_losses(tree, list(change_one_pairs(6, 1))))

    assert max(losses) == tree.epsilon * (1 - common)
    assert min(losses) < max(losses)


def test_a_person_with_two_rows_costs_at_most_epsilon() -> None:
    """With contributions=2 both rows of a person together cost epsilon, wherever they are."""
    tree = _tree(TWO, THREE, contributions=2)

    assert set(_losses(tree, list(_two_row_pairs(6)))) == {tree.epsilon}


def _two_row_pairs(size: int) -> Iterator[tuple[Counts, Counts]]:
    """A data set of at most two rows, and the same with two more."""
    for less, one in _few(size, 2):
        for cell in range(size):
            yield less, (*one[:cell], one[cell] + 1, *one[cell + 1 :])


@pytest.mark.parametrize("tree", [_tree(TWO, THREE), _tree(FOUR, THREE, epsilon=9)], ids=["2x3", "4x3"])
def test_these_trees_grow_look_twice_and_stop_early(tree: SpendingBoxes) -> None:
    """The pairs above meet every branch: nodes cut, second looks, leaves above the last level."""
    expanded = seconds = early = 0
    for seed in range(60):
        points = _points(tree, (2, 1, *[0] * (_cells(tree) - 2)))
        release = tree.release(points, noise=tape_noise(EndlessTape(seed)))
        looks, leaf = np.bincount(release.looks.nodes), ~release.shape.expanded
        nodes = release.shape.nodes
        expanded += int(release.shape.expanded[1:].any())
        seconds += int((looks[~leaf] > 1).any() or (looks[leaf] > 2).any())
        early += int((nodes.highs > nodes.lows)[leaf].any())

    assert min(expanded, seconds, early) >= 10


def test_every_leaf_spends_its_path_to_the_last_unit() -> None:
    """The units of the looks from the root to any leaf add up to 2^20 exactly, that at the root included."""
    tree = _tree(FOUR, MARKED, THREE)
    for seed in range(20):
        counts = tuple([3, 0, 1, 0] * (_cells(tree) // 4))
        release = tree.release(_points(tree, counts), noise=tape_noise(EndlessTape(seed)))
        spent = np.zeros(release.shape.expanded.size, np.int64)
        np.add.at(spent, release.looks.nodes, release.looks.units)
        for family in release.shape.families:
            spent[family.nodes] += spent[family.parents].repeat(family.sizes)

        assert set(spent[~release.shape.expanded].tolist()) == {UNITS}


# The whole law, with few units, so that its probabilities are rational numbers of a bearable size.

FEW_UNITS = 32
HALF = Fraction(1, 2)


class _Clamped(RationalNoise):
    """Looks below and above the window are taken for the numbers next to it."""

    def add(self, x: Any, scale: Fraction, *, parts: Any = None) -> Any:
        far = {"below": self.window[0] - 1, "above": self.window[-1] + 1}
        noisy = super().add(x, scale, parts=parts)
        return np.array([far.get(each, each) for each in noisy], np.int64)


def _worst_loss(tree: SpendingBoxes, pairs: Pairs) -> Any:
    """The largest loss over pairs of neighbours, by enumeration of everything that is published."""
    unit = EPSILON / FEW_UNITS
    noise = _Clamped(HALF, unit=unit, window=range(1 + max(sum(other) for _, other in pairs)))

    @cache
    def law_of(counts: Counts) -> Any:
        return law(
            lambda noise: repr(_public(tree.release(_points(tree, counts), noise=noise))),
            noise,
        )

    return max(privacy_loss(law_of(one), law_of(other), base=HALF, unit=unit) for one, other in pairs)


@pytest.fixture
def few_units(monkeypatch: pytest.MonkeyPatch) -> None:
    for each in (module, tree_solver, tree_looks):
        monkeypatch.setattr(each, "UNITS", FEW_UNITS)
    monkeypatch.setattr(module, "_TOTAL_UNITS", 1)


@pytest.mark.usefixtures("few_units")
@pytest.mark.parametrize(
    ("axes", "changes"),
    [
        ((TWO, TWO), {"total": 3}),
        ((TWO, Axis(size=1)), {}),
        ((THREE,), {"total": 9, "recipe": Recipe(growth=2, worth="1/2", depth_power=1)}),
    ],
    ids=["2x2", "a look at the root", "two levels"],
)
@pytest.mark.spread(1)
def test_the_whole_law_loses_epsilon(axes: tuple[Axis, ...], changes: dict[str, Any]) -> None:
    """Over all outcomes, looks beyond a window taken together, one row costs epsilon and no more."""
    tree = _tree(*axes, **changes)

    assert _worst_loss(tree, _few(_cells(tree), 1)) == EPSILON


@pytest.mark.usefixtures("few_units")
def test_the_law_knows_a_root_that_is_not_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the look at the root takes nothing from what its children have, one row costs more than epsilon."""
    tree = _tree(TWO, Axis(size=1))
    right = module._Front
    whole = np.array([FEW_UNITS])
    monkeypatch.setattr(module, "_Front", lambda boxes, budget, counts: right(boxes, whole, counts))
    monkeypatch.setattr(TreeLooks, "check", lambda *_, **__: None)

    assert _worst_loss(tree, _few(2, 1)) == EPSILON * Fraction(FEW_UNITS + 1, FEW_UNITS)


# Planted bugs: each is one way to get a tree of boxes wrong, put into the shipped code.


def _looks(patch: pytest.MonkeyPatch, take: Callable[..., None]) -> None:
    """Looks that are taken in another way; `take` is given the right one first."""
    wrong = type("Wrong", (LOOKS,), {"take": lambda self, *how: take(LOOKS.take, self, *how)})
    patch.setattr(module, "_Looks", wrong)


def _true_count_in_a_branch(patch: pytest.MonkeyPatch) -> None:
    def take(right: Any, looks: Any, evidence: Any, nodes: Any, units: Any) -> None:
        right(looks, evidence, nodes, units)
        evidence._weighted = evidence.squares * looks._counts.astype(float)

    _looks(patch, take)


def _noise_reused(patch: pytest.MonkeyPatch) -> None:
    def take(right: Any, looks: Any, evidence: Any, nodes: Any, units: Any) -> None:
        right(looks, evidence, nodes, units)
        if nodes.size > 1:
            noise = looks._steps[-1].noisy[0] - looks._counts[nodes[0]]
            looks._steps[-1].noisy[1] = looks._counts[nodes[1]] + noise

    _looks(patch, take)


def _empty_boxes_skipped(patch: pytest.MonkeyPatch) -> None:
    def take(right: Any, looks: Any, evidence: Any, nodes: Any, units: Any) -> None:
        present = (looks._counts[nodes] > 0) | (evidence.squares[nodes] == 0)
        right(looks, evidence, nodes[present], units[present])

    _looks(patch, take)


def _units_by_true_count(patch: pytest.MonkeyPatch) -> None:
    def take(right: Any, looks: Any, evidence: Any, nodes: Any, units: Any) -> None:
        fewer = np.where(looks._counts[nodes] > 1, np.maximum(1, units // 2), units)
        right(looks, evidence, nodes, fewer)

    _looks(patch, take)


def _special_cells_without_noise(patch: pytest.MonkeyPatch) -> None:
    def take(right: Any, looks: Any, evidence: Any, nodes: Any, units: Any) -> None:
        right(looks, evidence, nodes, units)
        if nodes.size and 0 in nodes and looks._offset == 1:
            looks._steps[-1].noisy[nodes == 0] = looks._counts[0]

    _looks(patch, take)


def _leaves_paid_once_and_looked_at_twice(patch: pytest.MonkeyPatch) -> None:
    def take(right: Any, looks: Any, evidence: Any, nodes: Any, units: Any) -> None:
        right(looks, evidence, nodes, units)
        if nodes.size and not evidence.left[nodes].any():
            evidence.left[nodes] += units
            right(looks, evidence, nodes, units)

    _looks(patch, take)


def _root_looked_at_for_free(patch: pytest.MonkeyPatch) -> None:
    class Counting(LOOKS):
        def __init__(
            self, points: Points, plan: BoxPlan, session: Noise, scale: Fraction, **root: int
        ) -> None:
            super().__init__(points, plan, session, scale, **root)
            session.add(points.total, scale / UNITS)

    patch.setattr(module, "_Looks", Counting)


def _rows_counted_in_two_boxes(patch: pytest.MonkeyPatch) -> None:
    class Doubling(LOOKS):
        def open(self, cut: BoxSplit) -> None:
            super().open(cut)
            self._counts += np.roll(self._counts, 1)

    patch.setattr(module, "_Looks", Doubling)


def _rows_of_leaves_counted_on(patch: pytest.MonkeyPatch) -> None:
    class Keeping(LOOKS):
        def follow(self, expanded: Any) -> None:
            behind = np.maximum(0, np.cumsum(expanded) - 1)
            self._walk.go(lambda points: points._replace(boxes=behind[points.boxes]))

    patch.setattr(module, "_Looks", Keeping)
    patch.setattr(BoxSplit, "child", lambda cut, boxes, slots: cut.starts[boxes])


def _half_scale(patch: pytest.MonkeyPatch) -> None:
    right = SpendingBoxes.scale.fget  # type: ignore[attr-defined]
    patch.setattr(SpendingBoxes, "scale", property(lambda tree: right(tree) / 2))


def _second_looks_unpaid(patch: pytest.MonkeyPatch) -> None:
    right = LevelEvidence.pay

    def pay(evidence: LevelEvidence, nodes: Any, units: Any) -> None:
        if not evidence.squares[nodes].all():
            right(evidence, nodes, units)

    patch.setattr(LevelEvidence, "pay", pay)


def _children_paid_from_the_whole_budget(patch: pytest.MonkeyPatch) -> None:
    right = module._Front
    patch.setattr(
        module, "_Front", lambda boxes, budget, counts: right(boxes, np.full_like(budget, UNITS), counts)
    )


def _true_count_in_the_first_look(patch: pytest.MonkeyPatch) -> None:
    counted: list[Any] = []
    right = SpendingRule.first_look

    class Telling(LOOKS):
        def open(self, cut: BoxSplit) -> None:
            counted[:] = [self._walk.folded(partial(module._count, cut.sizes.size))]
            super().open(cut)

    def first_look(rule: SpendingRule, fork: Any, counts: Any, budget: Any) -> Any:
        return right(rule, fork, counted[0], budget)

    patch.setattr(module, "_Looks", Telling)
    patch.setattr(SpendingRule, "first_look", first_look)


def _true_total(patch: pytest.MonkeyPatch) -> None:
    right = module._open_root
    patch.setattr(
        module, "_open_root", lambda plan, looks, total: right(plan, looks, 10 * int(looks._counts[0]))
    )


def _boxes_from_the_data(patch: pytest.MonkeyPatch) -> None:
    class Telling(LOOKS):
        def __init__(
            self, points: Points, plan: BoxPlan, session: Noise, scale: Fraction, **root: int
        ) -> None:
            super().__init__(points, plan, session, scale, **root)
            object.__setattr__(plan, "splittable", lambda boxes: np.full(len(boxes.first), points.total > 1))

    patch.setattr(module, "_Looks", Telling)


BUGS: list[Callable[[pytest.MonkeyPatch], None]] = [
    _true_count_in_a_branch,
    _noise_reused,
    _empty_boxes_skipped,
    _units_by_true_count,
    _special_cells_without_noise,
    _leaves_paid_once_and_looked_at_twice,
    _root_looked_at_for_free,
    _rows_counted_in_two_boxes,
    _rows_of_leaves_counted_on,
    _half_scale,
    _second_looks_unpaid,
    _children_paid_from_the_whole_budget,
    _true_count_in_the_first_look,
    _true_total,
    _boxes_from_the_data,
]


def _caught(tree: SpendingBoxes, pairs: Pairs) -> bool:
    """Whether a coupled run breaks or costs more than epsilon."""
    with suppress(StopIteration):
        losses = _losses(tree, pairs, 3)
        while True:
            try:
                if next(losses) > tree.epsilon:
                    return True
            except CouplingBroken:
                return True
    return False


BUGGED = _tree(Axis(size=3, before=1), TWO, recipe=Recipe(growth=3, worth=3, depth_power=1))


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_planted_bugs_are_caught(bug: Callable[[pytest.MonkeyPatch], None]) -> None:
    """The coupling fails for some pair, though the release itself is kept from checking what was spent."""
    with pytest.MonkeyPatch.context() as patch:
        bug(patch)
        patch.setattr(TreeLooks, "check", lambda *_, **__: None)
        patch.setattr(BoxShape, "__post_init__", lambda shape: None)

        assert _caught(BUGGED, _few(8, 3))


def _neighbours_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(base, "rows_changed", lambda neighbors, contributions: contributions)


def _contributions_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(base, "rows_changed", lambda neighbors, contributions: 1)


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
    tree = _tree(TWO, TWO, **changes)
    with pytest.MonkeyPatch.context() as patch:
        bug(patch)
        assert _caught(tree, pairs)
    assert not _caught(tree, pairs)


@pytest.mark.parametrize("bug", [_second_looks_unpaid, _children_paid_from_the_whole_budget])
def test_an_overspent_path_is_never_released(bug: Callable[[pytest.MonkeyPatch], None]) -> None:
    """A release refuses looks that cost more than 2^20 units on a path."""
    tree = _tree(FOUR, THREE)
    with pytest.MonkeyPatch.context() as patch:
        bug(patch)
        with pytest.raises(InvalidRelease, match="at most 1048576 units"):
            _release_often(tree)


def _release_often(tree: SpendingBoxes) -> None:
    for seed in range(50):
        tree.release(_points(tree, (1,) * _cells(tree)), noise=tape_noise(EndlessTape(seed)))
