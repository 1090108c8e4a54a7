"""Laws of releases over tiny hierarchies, couplings and replays over their neighbours, and planted bugs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

import partita as pt
from partita import HierarchyCounts, Histogram
from partita.public.axis.hierarchy import Levels, LevelSpan
from partita.testing import (
    CouplingBroken,
    EndlessTape,
    RationalNoise,
    add_remove_pairs,
    change_one_pairs,
    coupled,
    data_sets,
    law,
    privacy_loss,
    tape_noise,
)
from partita.testing.replay import replay_publish
from partita.trusted.mechanisms.base import WithSpecials
from partita.trusted.noise import Noise

HALF = Fraction(1, 2)
Counts = tuple[int, ...]

SHAPES: dict[str, dict[str, Any]] = {
    "even": {"size": 4, "nodes": [(0, 1), (2, 3)]},
    "uneven": {"size": 4, "nodes": [(0, 2), (0, 1)]},
    "one top": {"size": 4, "nodes": [(0, 3), (0, 1), (2, 3)]},
    "chains": {"size": 4, "nodes": [(0, 1), (0, 1), (0, 0), (3, 3)]},
    "flat": {"size": 4},
}


def published(mechanism: Any) -> Callable[[Counts, Noise], Any]:
    """All integers that a run publishes."""

    def run(counts: Counts, noise: Noise) -> Any:
        data = Histogram.dense(counts, contributions=mechanism.contributions)
        return tuple(mechanism.release(data, noise=noise).noisy.tolist())

    return run


def loss_of(mechanism: Any, one: Counts, other: Counts, seed: int = 0) -> Fraction | float:
    """What a pair costs; infinite if it does not couple."""
    noise = tape_noise(EndlessTape(seed), path="numpy").session()
    try:
        return coupled(published(mechanism), one, other, noise)
    except CouplingBroken:
        return float("inf")


def worst(mechanism: Any, pairs: Iterator[tuple[Counts, Counts]]) -> Fraction | float:
    """The largest cost of a pair, over some tapes."""
    return max(loss_of(mechanism, *pair, seed) for pair, seed in product(list(pairs), range(2)))


def pairs_of(mechanism: Any) -> Iterator[tuple[Counts, Counts]]:
    """All small neighbours of a mechanism."""
    if mechanism.neighbors == "add-remove":
        return add_remove_pairs(mechanism.size, 1)
    return change_one_pairs(mechanism.size, 1)


@pytest.mark.parametrize(
    ("given", "most"),
    [
        ({"size": 2, "nodes": [(0, 0)]}, 1),
        ({"size": 2, "nodes": [(0, 1)], "shares": (1, 1)}, 1),
        pytest.param({"size": 3, "nodes": [(0, 1)], "shares": (1, 1)}, 1, marks=pytest.mark.thorough),
        ({"size": 1, "nodes": [(0, 0), (0, 0)]}, 3),
    ],
)
@pytest.mark.parametrize("neighbors", ["add-remove", "change-one"])
def test_the_law_of_a_whole_release_loses_exactly_epsilon(
    given: dict[str, Any], most: int, neighbors: Any
) -> None:
    """Over all neighbours: no pair loses more than epsilon, and some pair just that if rows come or go."""
    mechanism = HierarchyCounts(**given, epsilon=1, neighbors=neighbors)
    unit = Fraction(1, math.lcm(*((1 / scale).denominator for scale in mechanism.scales)))
    noise = RationalNoise(HALF, unit=unit, window=range(mechanism.size * most + 1))
    run = published(mechanism)

    @cache
    def law_of(counts: Counts) -> Any:
        return law(lambda drawn: run(counts, drawn), noise)

    pairs = add_remove_pairs if neighbors == "add-remove" else change_one_pairs
    losses = [
        privacy_loss(law_of(one), law_of(other), base=HALF, unit=noise.unit)
        for one, other in pairs(mechanism.size, most)
    ]

    assert max(losses, default=0) <= 1
    assert neighbors == "change-one" or max(losses) == 1


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("neighbors", ["add-remove", "change-one"])
def test_some_neighbours_cost_exactly_epsilon_and_none_more(shape: str, neighbors: Any) -> None:
    """All pairs couple within epsilon; the noise pays for no more than it must."""
    mechanism = HierarchyCounts(**SHAPES[shape], epsilon="3/7", neighbors=neighbors)

    assert worst(mechanism, pairs_of(mechanism)) == Fraction(3, 7)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("neighbors", ["add-remove", "change-one"])
def test_special_cells_are_paid_for(shape: str, neighbors: Any) -> None:
    """Rows that leave the hierarchy for null, or come from it, cost at most epsilon together with it."""
    axis = HierarchyCounts(**SHAPES[shape], epsilon=1, neighbors=neighbors, special_cells=True)
    column = WithSpecials(axis=axis, specials=("null", "other"))

    def run(counts: Counts, noise: Noise) -> Any:
        beside = dict(zip(column.specials, counts[axis.size :], strict=True))
        found, specials = column.measure(Histogram.dense(counts[: axis.size]), beside, noise=noise)
        return (*found.parts().series["noisy"].tolist(), *specials.tolist())

    pairs = add_remove_pairs if neighbors == "add-remove" else change_one_pairs
    losses = [
        coupled(run, one, other, tape_noise(EndlessTape(0), path="numpy").session())
        for one, other in pairs(axis.size + 2, 1)
    ]

    assert max(losses) == 1


@pytest.mark.parametrize("rows", [2, 3])
def test_persons_with_several_rows_are_paid_for(rows: int) -> None:
    """Somebody with so many rows, anywhere, comes or goes at a cost of epsilon at most."""
    mechanism = HierarchyCounts(**SHAPES["uneven"], epsilon=1, contributions=rows)
    losses = [
        loss_of(mechanism, (1,) * 4, tuple(1 + count for count in counts))
        for counts in data_sets(4, rows)
        if sum(counts) == rows
    ]

    assert max(losses) == 1


# Planted bugs: each is a way to be wrong that the checks above must see.


def _without_lowest_level(self: Any) -> Fraction:
    return sum(self.parts[:-1], Fraction(0))


def _own_share(self: Levels, shares: Any) -> tuple[Fraction, ...]:
    """A node that stands for several levels has their shares; here each level is counted on its own share."""
    return tuple(shares[span.last] * 2 for span in self.spans)


def _ranks(self: Levels, shares: Any) -> tuple[Fraction, ...]:
    """The share of a level is used again for labels above it."""
    return tuple(sum(shares[max(0, span.first - 1) : span.last + 1], Fraction(0)) for span in self.spans)


@pytest.mark.parametrize("shape", ["even", "uneven", "one top"])
def test_a_level_that_is_forgotten_is_caught(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row changes the lowest level, too: noise that does not pay for it does not couple."""
    monkeypatch.setattr(HierarchyCounts, "sensitivity", property(_without_lowest_level))
    planted = HierarchyCounts(**SHAPES[shape], epsilon=1)

    assert worst(planted, pairs_of(planted)) > 1


@pytest.mark.parametrize("bug", [_own_share, _ranks])
@pytest.mark.parametrize("shape", ["even", "uneven"])
def test_a_share_that_is_used_twice_is_caught(bug: Any, shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of epsilon on a path that add up to more than all of it do not couple."""
    monkeypatch.setattr(Levels, "weights", bug)
    planted = HierarchyCounts(
        **SHAPES[shape], epsilon=1, shares=(1,) * HierarchyCounts(**SHAPES[shape], epsilon=1).levels.number
    )

    assert worst(planted, pairs_of(planted)) > 1


def test_a_label_above_the_lowest_level_has_all_that_is_left_and_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Sensitivity of uneven depth: a shallow label counted with all of epsilon below a node is too much."""
    right = Levels.weights

    def wrong(self: Levels, shares: Any) -> tuple[Fraction, ...]:
        ends = max(span.last for span in self.spans)
        return tuple(
            Fraction(1) if span.last == ends and span.first == 1 else weight
            for span, weight in zip(self.spans, right(self, shares), strict=True)
        )

    monkeypatch.setattr(Levels, "weights", wrong)
    planted = HierarchyCounts(**SHAPES["uneven"], epsilon=1)
    assert LevelSpan(1, 2) in planted.levels.spans

    assert worst(planted, pairs_of(planted)) > 1


def test_a_move_between_tops_that_is_taken_for_one_within_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that moves changes the top level, too, unless one node has all cells."""
    monkeypatch.setattr(Levels, "common", property(lambda self: LevelSpan(0, 0)))
    planted = HierarchyCounts(**SHAPES["even"], epsilon=1, neighbors="change-one")

    assert worst(planted, pairs_of(planted)) > 1


class _Bent:
    """Noise that passes additions on, bent in some way."""

    secure = False

    def __init__(self, noise: Noise) -> None:
        self.noise, self.before = noise, list[Any]()

    def session(self) -> Any:
        return self

    def add(self, x: Any, scale: Fraction) -> Any:
        raise NotImplementedError


class _HalfScale(_Bent):
    """Half the scale."""

    def add(self, x: Any, scale: Fraction) -> Any:
        return self.noise.add(x, scale / 2)


class _FreeTop(_Bent):
    """No noise on the first kind of nodes."""

    def add(self, x: Any, scale: Fraction) -> Any:
        self.before.append(x)
        return np.asarray(x) if len(self.before) == 1 else self.noise.add(x, scale)


class _ScaleOfTheParent(_Bent):
    """Noise of nodes that depends on the true counts above them."""

    def add(self, x: Any, scale: Fraction) -> Any:
        self.before.append(int(np.sum(x)))
        return self.noise.add(x, scale * (1 + self.before[0]))


class _NoiseOfTheParent(_Bent):
    """The noise of the level above, used again below it."""

    def add(self, x: Any, scale: Fraction) -> Any:
        if not self.before:
            self.before.append(np.asarray(self.noise.add(x, scale)) - np.asarray(x))
            return np.asarray(x) + self.before[0]
        return np.asarray(x) + self.before[0][0]


@pytest.mark.parametrize("bent", [_HalfScale, _FreeTop, _ScaleOfTheParent, _NoiseOfTheParent])
def test_bent_noise_is_caught(bent: type[_Bent], monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise that is too small, missing, shared by levels, or of a scale from true counts does not couple."""
    right = HierarchyCounts.release

    def wrong(self: Any, data: Any, *, noise: Noise) -> Any:
        return right(self, data, noise=bent(noise))  # type: ignore[arg-type]

    mechanism = HierarchyCounts(**SHAPES["even"], epsilon=1)
    assert worst(mechanism, pairs_of(mechanism)) == 1
    monkeypatch.setattr(HierarchyCounts, "release", wrong)

    assert worst(mechanism, pairs_of(mechanism)) > 1


PLACES = pt.Category(
    {"Kent": {"T1": ["a", "b"]}, "City": None, "Essex": ["c"]}, levels=["county", "tract", "block"]
)


@pytest.mark.parametrize("neighbors", ["add-remove", "change-one"])
@pytest.mark.parametrize("here", ["a", "City", "c", "elsewhere", None])
def test_publish_replays_on_neighbouring_tables(here: str | None, neighbors: Any) -> None:
    """The same file comes from both tables, and no outcome is more than e^epsilon times likelier on one."""
    rows = ["a", "a", "b", "City"]
    other = [*rows, here] if neighbors == "add-remove" else [*rows[1:], here]

    loss = replay_publish(
        {"place": rows}, {"place": other}, {"place": PLACES}, epsilon="3/7", neighbors=neighbors
    )

    assert loss <= Fraction(3, 7)
