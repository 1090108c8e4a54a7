"""Mechanisms that add noise to fixed lists of counts: their laws and couplings, and bugs that must show."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

import partita as pt
from partita import Histogram
from partita.guarantee import Neighbors
from partita.public.axis.base import Parts
from partita.testing import (
    CouplingBroken,
    EndlessTape,
    RationalNoise,
    ZeroNoise,
    add_remove_pairs,
    change_one_pairs,
    coupled,
    data_sets,
    law,
    privacy_loss,
    tape_noise,
)
from partita.trusted.mechanisms.base import FixedCounts, WithSpecials
from partita.trusted.noise import Noise

HALF = Fraction(1, 2)
Counts = tuple[int, ...]
Run = Callable[[Counts, Noise], Any]

MAKERS: dict[str, Callable[..., Any]] = {
    "laplace": pt.Laplace,
    "thresholds": pt.Thresholds,
    "histogram": pt.HistogramCounts,
    "tree": pt.Tree,
    "rootless": lambda **given: pt.Tree(root=False, **given),
    "ternary": lambda **given: pt.Tree(branching=3, **given),
}


def published(mechanism: Any) -> Run:
    """All integers that a run publishes, as something that can be compared."""

    def run(counts: Counts, noise: Noise) -> Hashable:
        data = Histogram.dense(counts, contributions=mechanism.contributions)
        parts: Parts = mechanism.release(data, noise=noise).parts()
        return tuple(sorted((name, tuple(values.tolist())) for name, values in parts.series.items()))

    return run


def worst_loss(run: Run, pairs: Iterator[tuple[Counts, Counts]], noise: RationalNoise) -> Any:
    """The largest loss over pairs of neighbours, from enumerated laws."""
    laws: dict[Counts, Any] = {}

    def law_of(counts: Counts) -> Any:
        if counts not in laws:
            laws[counts] = law(lambda noise: run(counts, noise), noise)
        return laws[counts]

    return max(privacy_loss(law_of(a), law_of(b), base=HALF, unit=noise.unit) for a, b in pairs)


def rational(mechanism: Any, most: int, unit: Fraction | None = None) -> RationalNoise:
    finest = 1 / mechanism.scale if unit is None else unit
    return RationalNoise(HALF, unit=finest, window=range(mechanism.size * most + 1))


@pytest.mark.parametrize(
    ("name", "size", "most"),
    [
        ("laplace", 1, 3),
        ("laplace", 2, 1),
        ("thresholds", 1, 3),
        ("thresholds", 2, 2),
        ("thresholds", 3, 1),
        ("histogram", 1, 3),
        ("histogram", 2, 2),
        ("histogram", 3, 1),
        ("rootless", 1, 2),
        ("rootless", 2, 2),
    ],
)
def test_no_neighbors_lose_more_than_epsilon_and_some_do(name: str, size: int, most: int) -> None:
    """The enumerated law of a whole release loses exactly epsilon at the worst of all add-remove pairs."""
    mechanism = MAKERS[name](size=size, epsilon=1)

    loss = worst_loss(published(mechanism), add_remove_pairs(size, most), rational(mechanism, most))

    assert loss == 1


@pytest.mark.parametrize(
    ("name", "size"), [("laplace", 2), ("thresholds", 2), ("histogram", 2), ("rootless", 2)]
)
def test_moved_rows_lose_at_most_epsilon(name: str, size: int) -> None:
    """With neighbors="change-one" the enumerated law protects a row that moves."""
    mechanism = MAKERS[name](size=size, epsilon=1, neighbors="change-one")

    loss = worst_loss(published(mechanism), change_one_pairs(size, 1), rational(mechanism, 1))

    assert loss > 0
    assert loss <= 1


@pytest.mark.parametrize("weights", [(1, 2), (3, 1)])
def test_weighted_levels_share_epsilon(weights: tuple[int, int]) -> None:
    """Two levels with unequal shares lose exactly epsilon together."""
    tree = pt.Tree(size=2, epsilon=1, weights=weights)
    noise = rational(tree, 1, unit=Fraction(1, sum(weights)))

    assert worst_loss(published(tree), add_remove_pairs(2, 1), noise) == 1


def passes(mechanism: Any, run: Run, pairs: Iterator[tuple[Counts, Counts]]) -> bool:
    """The checker: whether all pairs couple at a cost of at most epsilon, on several tapes."""
    return all(_loss(run, a, b, seed) <= mechanism.epsilon for (a, b), seed in product(list(pairs), range(4)))


def _loss(run: Run, one: Counts, other: Counts, seed: int) -> Fraction | float:
    noise = tape_noise(EndlessTape(seed), path="numpy").session()
    try:
        return coupled(run, one, other, noise)
    except CouplingBroken:
        return float("inf")


def _persons(size: int, rows: int) -> Iterator[tuple[Counts, Counts]]:
    """Somebody with `rows` rows, in any cells, comes or goes."""
    for counts in data_sets(size, rows):
        if sum(counts) == rows:
            yield (1,) * size, tuple(1 + count for count in counts)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
@pytest.mark.spread(10)
def test_every_row_of_every_neighbor_is_paid_for(name: str, size: int) -> None:
    """All add-remove pairs couple within epsilon, and some row costs exactly that: no scale is a float."""
    mechanism = MAKERS[name](size=size, epsilon="3/7")
    run, pairs = published(mechanism), list(add_remove_pairs(size, 1))

    losses = [_loss(run, one, other, 0) for one, other in pairs]

    assert max(losses) == Fraction(3, 7)
    assert passes(mechanism, run, iter(pairs))


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize(("neighbors", "rows"), [("change-one", 1), ("add-remove", 2), ("change-one", 2)])
def test_moves_and_persons_are_paid_for(name: str, neighbors: Neighbors, rows: int) -> None:
    """A row that moves, and a person with several rows who comes or goes, cost at most epsilon."""
    mechanism = MAKERS[name](size=4, epsilon=1, neighbors=neighbors, contributions=rows)
    pairs = change_one_pairs(4, 1) if neighbors == "change-one" else _persons(4, rows)

    assert passes(mechanism, published(mechanism), pairs)


class _Bent:
    """Passes additions on, bent in some way."""

    secure = False

    def __init__(self, noise: Noise) -> None:
        self.noise = noise

    def session(self) -> Any:
        return self

    def add(self, x: Any, scale: Fraction) -> Any:
        raise NotImplementedError


class _HalfScale(_Bent):
    """Half the scale."""

    def add(self, x: Any, scale: Fraction) -> Any:
        return self.noise.add(x, scale / 2)


class _OneNoiseForAll(_Bent):
    """One noise, used again for every count of a level."""

    def add(self, x: Any, scale: Fraction) -> Any:
        return np.asarray(x) + self.noise.add(0, scale)


class _BareZeros(_Bent):
    """No noise where there is nobody."""

    def add(self, x: Any, scale: Fraction) -> Any:
        return np.where(np.asarray(x) == 0, 0, self.noise.add(x, scale))


class _FirstIsFree(_Bent):
    """No noise on the first count."""

    def add(self, x: Any, scale: Fraction) -> Any:
        noisy = np.array(self.noise.add(x, scale))
        noisy[0] = np.asarray(x)[0]
        return noisy


class _ScaleOfTheTotal(_Bent):
    """A scale that grows with the true counts."""

    def add(self, x: Any, scale: Fraction) -> Any:
        return self.noise.add(x, scale * (1 + int(np.sum(x))))


class _UnpaidSecondLook(_Bent):
    """The mean of two looks, each at the scale of one."""

    def add(self, x: Any, scale: Fraction) -> Any:
        return (self.noise.add(x, scale) + self.noise.add(x, scale)) // 2


BENT: list[type[_Bent]] = [
    _HalfScale,
    _OneNoiseForAll,
    _BareZeros,
    _FirstIsFree,
    _ScaleOfTheTotal,
    _UnpaidSecondLook,
]


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("bent", BENT, ids=lambda bent: bent.__name__)
def test_bent_noise_is_caught(name: str, bent: type[_Bent]) -> None:
    """Noise that is too small, missing, shared or looked at again does not couple."""
    mechanism = MAKERS[name](size=3, epsilon=1)
    right = published(mechanism)

    def wrong(counts: Counts, noise: Noise) -> Any:
        return right(counts, bent(noise))  # type: ignore[arg-type]

    assert passes(mechanism, right, add_remove_pairs(3, 1))
    assert not passes(mechanism, wrong, add_remove_pairs(3, 1))


@pytest.mark.parametrize(("mechanism", "exact"), [(pt.Laplace, 6), (pt.Thresholds, 4)])
def test_a_sensitivity_off_by_one_is_caught(
    mechanism: type[Any], exact: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sensitivity is exact: one less is too little already."""
    right = mechanism(size=4, epsilon=1)
    assert right.sensitivity == exact
    assert passes(right, published(right), add_remove_pairs(4, 1))
    monkeypatch.setattr(mechanism, "sensitivity", property(lambda self: exact - 1))

    wrong = mechanism(size=4, epsilon=1)

    assert not passes(wrong, published(wrong), add_remove_pairs(4, 1))


WRONG_SENSITIVITIES: list[tuple[type[Any], Callable[[Any], Any]]] = [
    (pt.Laplace, lambda self: self.size),
    (pt.Laplace, lambda self: (self.size + 1) // 2 * (self.size // 2)),
    (pt.Thresholds, lambda self: 1),
    (pt.Thresholds, lambda self: (self.size + 1) // 2),
    (pt.HistogramCounts, lambda self: Fraction(9, 10)),
]


@pytest.mark.parametrize(("mechanism", "wrong"), WRONG_SENSITIVITIES)
def test_plausible_wrong_sensitivities_are_caught(
    mechanism: type[Any], wrong: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cells at the ends, the mean cell, and a row that is counted once only are no bounds."""
    monkeypatch.setattr(mechanism, "sensitivity", property(wrong))
    planted = mechanism(size=5, epsilon=1)

    assert not passes(planted, published(planted), add_remove_pairs(5, 1))


def _ignores_rows(self: Any) -> Any:
    return self.sensitivity / self.epsilon


@pytest.mark.parametrize("mechanism", [pt.Laplace, pt.Thresholds, pt.HistogramCounts])
def test_an_ignored_contribution_bound_is_caught(
    mechanism: type[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Noise for one row does not pay for a person with two."""
    monkeypatch.setattr(mechanism, "scale", property(_ignores_rows))
    planted = mechanism(size=2, epsilon=1, contributions=2)

    assert not passes(planted, published(planted), _persons(2, 2))


def test_an_ignored_move_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that moves changes two cells of a histogram, and noise for one does not pay for it."""
    monkeypatch.setattr(pt.HistogramCounts, "scale", property(_ignores_rows))
    planted = pt.HistogramCounts(size=2, epsilon=1, neighbors="change-one")

    assert not passes(planted, published(planted), change_one_pairs(2, 1))


@pytest.mark.parametrize("mechanism", [pt.Laplace, pt.Thresholds])
@pytest.mark.parametrize("size", [2, 3, 4, 5, 6])
def test_intervals_pay_for_moves_with_room_to_spare(mechanism: type[Any], size: int) -> None:
    """A moved row changes intervals, and prefixes, no more than one row in or out does."""
    made = mechanism(size=size, epsilon=1)

    assert passes(made, published(made), change_one_pairs(size, 1))


def _planted_tree(monkeypatch: pytest.MonkeyPatch, scales: Callable[[Any], tuple[Fraction, ...]]) -> Any:
    monkeypatch.setattr(pt.Tree, "scales", property(scales))
    return pt.Tree(size=4, epsilon=1, weights=(1, 2, 3))


WRONG_TREES: dict[str, Callable[[Any], tuple[Fraction, ...]]] = {
    "weights are not normalised": lambda tree: tuple(1 / (weight * tree.epsilon) for weight in tree.weights),
    "the root is free": lambda tree: tuple(
        sum(tree.weights[:-1]) / (weight * tree.epsilon) for weight in tree.weights
    ),
    "levels are one fewer": lambda tree: (Fraction(2) / tree.epsilon,) * 3,
    "scales are the weights": lambda tree: tuple(weight / tree.epsilon for weight in tree.weights),
}


@pytest.mark.parametrize("bug", WRONG_TREES)
def test_wrong_shares_of_levels_are_caught(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shares that add up to more than epsilon do not couple; the shipped ones do."""
    right = pt.Tree(size=4, epsilon=1, weights=(1, 2, 3))
    assert passes(right, published(right), add_remove_pairs(4, 1))

    wrong = _planted_tree(monkeypatch, WRONG_TREES[bug])

    assert not passes(wrong, published(wrong), add_remove_pairs(4, 1))


# --- exact changes between change-one neighbours ------------------------------------------------


def weights(name: str, size: int) -> Any:
    """How much each cell weighs in each count, over the count's noise scale: from the shipped release."""
    mechanism = MAKERS[name](size=size, epsilon=1, neighbors="change-one")
    columns = []
    for cell in range(size):
        data = Histogram.dense([int(cell == each) for each in range(size)])
        series = mechanism.release(data, noise=ZeroNoise()).parts().series
        columns.append(np.concatenate([series[key] for key in sorted(series)]))
    return mechanism, np.array(columns)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("size", [2, 3, 4, 5, 9, 16, 32])
def test_the_change_of_a_moved_row_is_the_largest_distance_of_two_columns(name: str, size: int) -> None:
    """Over all pairs of cells some move changes counts by just what is paid for, and none by more."""
    mechanism, columns = weights(name, size)

    distances = [int(np.abs(one - other).sum()) for one, other in combinations(columns, 2)]

    assert mechanism.changed == max(distances)


@pytest.mark.parametrize(
    ("name", "size", "scale"),
    [
        ("laplace", 32, 272),
        ("thresholds", 32, 31),
        ("tree", 1024, 20),
        ("rootless", 1024, 20),
        ("histogram", 9, 2),
    ],
)
def test_scales_of_moves_are_those_of_the_notes(name: str, size: int, scale: int) -> None:
    """Between tables of equally many rows nothing is paid for the root, or for the prefix of all cells."""
    assert MAKERS[name](size=size, epsilon=1, neighbors="change-one").scale == scale


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("size", [2, 3, 4, 5, 6])
def test_some_move_costs_exactly_epsilon(name: str, size: int) -> None:
    """All change-one pairs couple within epsilon, and one costs just that."""
    mechanism = MAKERS[name](size=size, epsilon="3/7", neighbors="change-one")
    run, pairs = published(mechanism), list(change_one_pairs(size, 1))

    assert passes(mechanism, run, iter(pairs))
    assert max(_loss(run, one, other, 0) for one, other in pairs) == Fraction(3, 7)


@pytest.mark.parametrize("name", MAKERS)
def test_half_the_noise_of_a_move_is_caught(name: str) -> None:
    """With half of each scale some moved row costs more than epsilon."""
    mechanism = MAKERS[name](size=4, epsilon=1, neighbors="change-one")
    right = published(mechanism)

    def wrong(counts: Counts, noise: Noise) -> Any:
        return right(counts, _HalfScale(noise))  # type: ignore[arg-type]

    assert not passes(mechanism, wrong, change_one_pairs(4, 1))


@pytest.mark.parametrize("name", ["thresholds", "tree", "ternary", "laplace", "histogram"])
def test_noise_for_moves_does_not_pay_for_rows_that_come(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a row in or out changes more than half of what a move does, half the scale of moves is caught;
    and of prefixes the scale of moves itself.
    """
    moving = MAKERS[name](size=5, epsilon=1, neighbors="change-one").changed
    share = 1 if name == "thresholds" else 2
    monkeypatch.setattr(FixedCounts, "changed", property(lambda self: moving / share))
    planted = MAKERS[name](size=5, epsilon=1)

    caught = not passes(planted, published(planted), add_remove_pairs(5, 1))

    assert caught is (name != "histogram")  # a row that moves changes two cells, one that comes one


def _people(size: int, rows: int) -> Iterator[tuple[Counts, Counts]]:
    """All pairs between which at most so many rows go, and at most as many come."""
    for one, other in product(data_sets(size, rows), repeat=2):
        gone = sum(max(0, a - b) for a, b in zip(one, other, strict=True))
        if one != other and max(gone, gone + sum(other) - sum(one)) <= rows:
            yield one, other


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize(("rows", "unit"), [(1, "person"), (2, "person"), (1, "user")])
def test_a_person_who_becomes_another_is_paid_for(name: str, rows: int, unit: Any) -> None:
    """A person may have fewer rows than before, or none: the number of rows is not public then."""
    mechanism = MAKERS[name](size=3, epsilon=1, neighbors="change-one", contributions=rows, unit=unit)
    run, pairs = published(mechanism), list(_people(3, rows))

    assert passes(mechanism, run, iter(pairs))
    assert max(_loss(run, one, other, 0) for one, other in pairs) == 1


def test_a_person_of_one_row_is_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prefixes for rows that only move do not pay for a person who has no row any more."""
    monkeypatch.setattr(pt.Thresholds, "same_rows", property(lambda self: True))
    planted = pt.Thresholds(size=3, epsilon=1, neighbors="change-one", unit="person")

    assert not passes(planted, published(planted), _people(3, 1))


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_rows_that_leave_the_axis_for_a_special_cell_are_paid_for(name: str, size: int) -> None:
    """Axis and special cells together couple within epsilon over all moves, and some move costs just that."""
    axis = MAKERS[name](size=size, epsilon=1, neighbors="change-one", special_cells=True)
    column = WithSpecials(axis=axis, specials=("below", "null"))

    def run(counts: Counts, noise: Noise) -> Any:
        beside = dict(zip(column.specials, counts[size:], strict=True))
        found, specials = column.measure(Histogram.dense(counts[:size]), beside, noise=noise)
        series = sorted((key, tuple(each.tolist())) for key, each in found.parts().series.items())
        return (*series, *specials.tolist())

    pairs = list(change_one_pairs(size + 2, 1))

    assert max(_loss(run, one, other, 0) for one, other in pairs) == 1


@pytest.mark.parametrize("made", [pt.Laplace, pt.Thresholds])
def test_an_axis_that_leaves_special_cells_nothing_is_refused(made: type[Any]) -> None:
    """All of epsilon pays for one row in or out of the axis: none is left for the cell that it goes to."""
    axis = made(size=5, epsilon=1, neighbors="change-one")
    with pytest.raises(pt.InvalidParameter, match="special_cells=True"):
        WithSpecials(axis=axis, specials=("null",))
