"""The flat grid: its law over all neighbours of tiny universes, couplings, and bugs that must show."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from partita.domain.axis import Axis
from partita.guarantee import Neighbors
from partita.testing import (
    CouplingBroken,
    EndlessTape,
    RationalNoise,
    RecordingNoise,
    ZeroNoise,
    add_remove_pairs,
    change_one_pairs,
    coupled,
    law,
    privacy_loss,
    tape_noise,
)
from partita.trusted.mechanisms.boxes import GridCounts
from partita.trusted.noise import SYSTEM, Noise
from partita.trusted.secret import Points

HALF = Fraction(1, 2)
Counts = tuple[int, ...]
Pairs = Iterator[tuple[Counts, Counts]]
Run = Callable[[Counts, Noise], Hashable]
SQUARE = (Axis(size=2), Axis(size=2))


def points(counts: Counts, axes: tuple[Axis, ...], contributions: int = 1) -> Points:
    """The points of a small grid given by the count of each cell."""
    cells = np.array(counts).reshape([axis.width for axis in axes])
    return Points.from_rows(
        np.argwhere(cells >= 0), axes=axes, counts=cells.ravel(), contributions=contributions
    )


def published(mechanism: GridCounts) -> Run:
    """All integers that a run publishes."""

    def run(counts: Counts, noise: Noise) -> Hashable:
        data = points(counts, mechanism.axes, mechanism.contributions)
        return tuple(mechanism.release(data, noise=noise).noisy.tolist())

    return run


def worst_loss(mechanism: GridCounts, pairs: Pairs, most: int) -> Any:
    """The largest loss over pairs of neighbours, from enumerated laws of whole releases."""
    run, laws = published(mechanism), dict[Counts, Any]()
    noise = RationalNoise(HALF, unit=1 / mechanism.scale, window=range(most + 1))

    def law_of(counts: Counts) -> Any:
        if counts not in laws:
            laws[counts] = law(lambda noise: run(counts, noise), noise)
        return laws[counts]

    return max(privacy_loss(law_of(a), law_of(b), base=HALF, unit=noise.unit) for a, b in pairs)


def test_no_neighbors_lose_more_than_epsilon_and_some_do() -> None:
    """The enumerated law on 2 x 2 loses exactly epsilon at the worst of all add-remove pairs."""
    assert worst_loss(GridCounts(axes=SQUARE, epsilon=1), add_remove_pairs(4, 1), 1) == 1


def test_moved_rows_lose_exactly_epsilon() -> None:
    """With neighbors="change-one" the enumerated law on 2 x 2 protects a row that moves."""
    assert (
        worst_loss(GridCounts(axes=SQUARE, epsilon=1, neighbors="change-one"), change_one_pairs(4, 1), 1) == 1
    )


def couples(run: Run, epsilon: Fraction, pairs: Pairs) -> bool:
    """The checker: whether all pairs couple at a cost of at most epsilon."""
    return all(_loss(run, a, b) <= epsilon for a, b in pairs)


def _loss(run: Run, one: Counts, other: Counts) -> Fraction | float:
    try:
        return coupled(run, one, other, tape_noise(EndlessTape(0), path="numpy").session())
    except CouplingBroken:
        return float("inf")


@pytest.mark.parametrize(
    "axes",
    [
        SQUARE,
        (Axis(size=2), Axis(size=3)),
        (Axis(size=1, before=1, after=1), Axis(size=1, after=1, labels=True)),
        (Axis(size=2), Axis(size=1, after=1), Axis(size=2)),
    ],
    ids=["2x2", "2x3", "specials", "2x2x2"],
)
@pytest.mark.parametrize(
    ("neighbors", "contributions"), [("add-remove", 1), ("add-remove", 3), ("change-one", 1)]
)
@pytest.mark.spread(4)
def test_every_row_of_every_neighbor_is_paid_for(
    axes: tuple[Axis, ...], neighbors: Neighbors, contributions: int
) -> None:
    """All pairs of tiny universes couple within epsilon; a person's rows cost a share of it each."""
    mechanism = GridCounts(axes=axes, epsilon="1/3", neighbors=neighbors, contributions=contributions)
    pairs = change_one_pairs if neighbors == "change-one" else add_remove_pairs

    run = published(mechanism)

    assert couples(run, Fraction(1, 3) / contributions, pairs(mechanism.cells, 1))


def _half_scale(counts: Counts, noise: Noise) -> Hashable:
    return published(GridCounts(axes=SQUARE, epsilon=2))(counts, noise)


def _bare_zeros(counts: Counts, noise: Noise) -> Hashable:
    return tuple(int(noise.add(count, Fraction(1))) if count else 0 for count in counts)


def _one_noise(counts: Counts, noise: Noise) -> Hashable:
    drawn = int(noise.add(0, Fraction(1)))
    return tuple(count + drawn for count in counts)


def _rows_twice(counts: Counts, noise: Noise) -> Hashable:
    twice = tuple(2 * count for count in counts)
    return published(GridCounts(axes=SQUARE, epsilon=1))(twice, noise)


def _total_shown(counts: Counts, noise: Noise) -> Hashable:
    return (published(GridCounts(axes=SQUARE, epsilon=1))(counts, noise), sum(counts))


def _cut_by_the_truth(counts: Counts, noise: Noise) -> Hashable:
    noisy = np.array(published(GridCounts(axes=SQUARE, epsilon=1))(counts, noise))
    return tuple(np.minimum(noisy, sum(counts)).tolist())


def _scale_by_the_truth(counts: Counts, noise: Noise) -> Hashable:
    return tuple(noise.add(np.array(counts), Fraction(1 + sum(counts))).tolist())


def _moves_at_the_price_of_one(counts: Counts, noise: Noise) -> Hashable:
    return published(GridCounts(axes=SQUARE, epsilon=1))(counts, noise)


@pytest.mark.parametrize(
    ("bug", "pairs"),
    [
        (_half_scale, add_remove_pairs),
        (_bare_zeros, add_remove_pairs),
        (_one_noise, add_remove_pairs),
        (_rows_twice, add_remove_pairs),
        (_total_shown, add_remove_pairs),
        (_cut_by_the_truth, add_remove_pairs),
        (_scale_by_the_truth, add_remove_pairs),
        (_moves_at_the_price_of_one, change_one_pairs),
    ],
)
def test_planted_bugs_are_caught(bug: Run, pairs: Callable[[int, int], Pairs]) -> None:
    """The checker that passes the mechanism fails each of its broken versions."""
    assert couples(published(GridCounts(axes=SQUARE, epsilon=1)), Fraction(1), add_remove_pairs(4, 1))
    assert not couples(bug, Fraction(1), pairs(4, 1))


@pytest.mark.parametrize(
    "changes", [{"contributions": 2}, {"neighbors": "change-one"}, {"epsilon": "1/2"}], ids=str
)
def test_noise_doubles_with_what_it_must_hide(changes: dict[str, Any]) -> None:
    """Two rows a person, rows that move, or half of epsilon: twice the scale, on every cell at once."""
    seen = RecordingNoise(ZeroNoise())

    GridCounts(axes=SQUARE, **{"epsilon": 1, **changes}).release(points((1, 0, 2, 0), SQUARE), noise=seen)

    assert seen.scales == [Fraction(2)]


def test_only_secure_noise_carries_the_guarantee() -> None:
    """With injected noise the guarantee is None."""
    mechanism = GridCounts(axes=SQUARE, epsilon=1)
    data = points((1, 0, 2, 0), SQUARE)

    assert mechanism.release(data, noise=SYSTEM).guarantee == mechanism.guarantee
    assert mechanism.release(data, noise=ZeroNoise()).guarantee is None


@pytest.mark.statistics
def test_bounds_fail_no_more_often_than_they_say() -> None:
    """Some box leaves error(.1) in at most 65 of 400 releases: if it does in 40, more have chance 10^-4."""
    axes = (Axis(size=3), Axis(size=4))
    mechanism, data = GridCounts(axes=axes, epsilon=1), points((5,) * 12, axes)
    lows = np.array([(a, c) for a in range(3) for b in range(a, 3) for c in range(4) for d in range(c, 4)])
    highs = np.array([(b, d) for a in range(3) for b in range(a, 3) for c in range(4) for d in range(c, 4)])
    truth = 5.0 * (highs - lows + 1).prod(axis=1)

    releases = [mechanism.release(data) for _ in range(400)]

    failures = sum(
        float(np.abs(release.counts(lows, highs) - truth).max()) > release.error(0.1) for release in releases
    )
    assert failures <= 65
