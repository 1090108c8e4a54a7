"""The whole law of the paper's mechanism on a tiny universe, and bugs in how its two halves are joined."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from partita import Cut, Histogram, PaperIntervals, PaperIntervalsRelease, Partition, Tree
from partita.testing import (
    EndlessTape,
    Loss,
    RationalNoise,
    ZeroNoise,
    coupled,
    law,
    privacy_loss,
    tape_noise,
)
from partita.trusted.noise import Noise

Counts = tuple[int, ...]

HALF, EPSILON = Fraction(1, 2), 5
PAIRS: list[tuple[Counts, Counts]] = [((0, 0), (1, 0)), ((0, 0), (0, 1))]
MECHANISM = PaperIntervals(size=2, epsilon=EPSILON, beta="0.999")


def _outcome(release: PaperIntervalsRelease) -> tuple[object, ...]:
    return tuple(release.cut.edges.tolist()), tuple(tuple(level.tolist()) for level in release.tree.levels)


def _worst_loss(pairs: list[tuple[Counts, Counts]] = PAIRS) -> Loss:
    """The largest loss over pairs of neighbours, by enumeration of everything that is published."""
    noise = RationalNoise(HALF, unit=Fraction(1, 4), window=range(1 + max(sum(other) for _, other in pairs)))

    @cache
    def law_of(counts: Counts) -> Any:
        return law(lambda noise: _outcome(MECHANISM.release(Histogram.dense(counts), noise=noise)), noise)

    return max(privacy_loss(law_of(one), law_of(other), base=HALF, unit=noise.unit) for one, other in pairs)


def test_the_whole_law_loses_at_most_epsilon() -> None:
    """Cut and counts together lose no more than epsilon, and more than either half could."""
    loss = _worst_loss()

    assert MECHANISM.partition.threshold == 1
    assert loss <= EPSILON
    assert loss > Fraction(EPSILON, 2)


def _bare_cut(partition: Partition, data: Histogram, *, noise: Noise) -> Cut:
    """Cut by the true counts."""
    return RIGHT_CUT(partition, data, noise=ZeroNoise())


def _cut_at_data(partition: Partition, data: Histogram, *, noise: Noise) -> Cut:
    """Cut only if there is somebody."""
    cut = RIGHT_CUT(partition, data, noise=noise)
    return Cut(edges=cut.edges if data.total else cut.edges[-1:])


RIGHT_CUT = Partition.cut
RIGHT_TREE = PaperIntervals.tree


@pytest.mark.parametrize(("bug", "pairs"), [(_bare_cut, [((1, 0), (2, 0))]), (_cut_at_data, PAIRS[:1])])
def test_wrong_cuts_are_caught(
    bug: Callable[..., Cut], pairs: list[tuple[Counts, Counts]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cut without noise, and one that is made only if there is somebody, show what is there."""
    monkeypatch.setattr(Partition, "cut", bug)

    assert not _worst_loss(pairs) <= EPSILON


def _unpaid_half(mechanism: PaperIntervals, *, segments: int) -> Tree:
    """All of epsilon for the tree, besides the half that the cut has had."""
    return Tree(size=segments, epsilon=mechanism.epsilon, contributions=2)


def _one_level(mechanism: PaperIntervals, *, segments: int) -> Tree:
    """Scales for one level, whatever the number of segments."""
    right = RIGHT_TREE(mechanism, segments=segments)
    return Tree(size=segments, epsilon=right.epsilon * len(right.widths), contributions=2)


def _one_row(mechanism: PaperIntervals, *, segments: int) -> Tree:
    """Scales for one row, whatever a person may contribute."""
    right = RIGHT_TREE(mechanism, segments=segments)
    return Tree(size=segments, epsilon=right.epsilon * mechanism.contributions, contributions=2)


def _cost_of_the_counts(monkeypatch: pytest.MonkeyPatch) -> Fraction:
    """What a person with two rows costs in the counts of a fixed cut, at epsilon 1."""
    fixed = Cut(edges=np.array([0, 2, 3], dtype=np.uint64))
    monkeypatch.setattr(Partition, "cut", lambda self, data, *, noise: fixed)
    mechanism = PaperIntervals(size=4, epsilon=1, contributions=2)

    def run(counts: Counts, noise: Noise) -> object:
        return _outcome(mechanism.release(Histogram.dense(counts, contributions=2), noise=noise))

    return coupled(run, (1, 1, 1, 1), (1, 3, 1, 1), tape_noise(EndlessTape(0)))


@pytest.mark.parametrize("bug", [_unpaid_half, _one_level, _one_row], ids=lambda bug: str(bug.__name__))
def test_wrong_counts_are_caught(bug: Callable[..., Tree], monkeypatch: pytest.MonkeyPatch) -> None:
    """Given the cut, counts cost half of epsilon; unpaid halves, levels and rows cost more."""
    assert _cost_of_the_counts(monkeypatch) == HALF
    monkeypatch.setattr(PaperIntervals, "tree", bug)

    assert _cost_of_the_counts(monkeypatch) > HALF
