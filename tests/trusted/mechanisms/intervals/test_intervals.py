"""The default interval mechanism: a noisy total, then the tool that fits."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from partita import Histogram
from partita.testing import (
    CouplingBroken,
    EndlessTape,
    RecordingNoise,
    ZeroNoise,
    check_mechanism,
    coupled,
    tape_noise,
)
from partita.trusted.mechanisms.spending_tree import Intervals
from partita.trusted.noise import Noise

MANY = (700, 0, 3, 1, 0, 0, 250, 90)
"""Counts whose total calls for a spending tree at epsilon 1."""


def published(counts: tuple[int, ...], noise: Noise) -> list[tuple[str, list[int]]]:
    release = Intervals(size=len(counts), epsilon=1).release(Histogram.dense(counts), noise=noise)
    return [(name, np.asarray(values).tolist()) for name, values in release.parts().series.items()]


def neighbors(counts: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Every histogram with one row more or one row less."""
    changed = [
        (*counts[:cell], counts[cell] + step, *counts[cell + 1 :])
        for cell in range(len(counts))
        for step in (-1, 1)
    ]
    return [each for each in changed if min(each) >= 0]


def test_it_passes_the_common_checks() -> None:
    """Frozen, documented, private by the right scales, and silent about bad data."""
    check_mechanism(Intervals)


@pytest.mark.parametrize(
    ("size", "total", "name", "branching"),
    [
        (4096, 399, "partition-tents", None),
        (4096, 400, "spending-tree", 8),
        (4096, 29_999, "spending-tree", 8),
        (4096, 30_000, "spending-tree", 16),
        (2**14, 10**7, "spending-tree", 16),
        (2**14 + 1, 10**7, "partition-tents", None),
        (2**64, 10**9, "partition-tents", None),
        (1, -5, "partition-tents", None),
        (4096, -(10**30), "partition-tents", None),
        (4096, 10**30, "spending-tree", 16),
    ],
)
def test_the_tool_follows_from_size_and_total(
    size: int, total: int, name: str, branching: int | None
) -> None:
    """The borders are those of the table in the proof note; any integer is a legal total."""
    tool = Intervals(size=size, epsilon=1).tool(total=total)

    assert (tool.name, getattr(tool, "branching", None)) == (name, branching)


@pytest.mark.parametrize("total", [0, 5_000, 10**7])
def test_shares_add_up(total: int) -> None:
    """One hundredth for the total and the tool's epsilon are all of epsilon, exactly."""
    mechanism = Intervals(size=4096, epsilon="1/3", neighbors="change-one", contributions=3)
    recorder = RecordingNoise(ZeroNoise())

    mechanism.release(Histogram.dense(np.ones(4096, np.int64), contributions=3), noise=recorder)

    spent_on_total = 6 / recorder.scales[0]
    assert recorder.scales[0] == mechanism.total_scale
    assert spent_on_total + mechanism.tool(total=total).guarantee.epsilon == mechanism.guarantee.epsilon
    assert spent_on_total == Fraction(1, 300)


def test_a_row_costs_no_more_than_epsilon_and_may_cost_all_of_it() -> None:
    """Every neighbour of a table with a tree-sized total, on 25 tapes: the coupled loss reaches epsilon."""
    losses = {
        coupled(published, MANY, other, tape_noise(EndlessTape(("intervals", seed))))
        for other in neighbors(MANY)
        for seed in range(25)
    }

    assert max(losses) <= 1
    assert max(losses) > Fraction(999, 1000)


def test_a_tool_that_follows_the_true_total_is_caught() -> None:
    """Planted bug: choosing by the exact number of rows breaks the coupling where the border is crossed."""

    def published_by_the_truth(counts: tuple[int, ...], noise: Noise) -> object:
        mechanism = Intervals(size=len(counts), epsilon=1)
        histogram = Histogram.dense(counts)
        noise.add(histogram.total, mechanism.total_scale)
        release = mechanism.tool(total=histogram.total).release(histogram, noise=noise)
        return [np.asarray(values).tolist() for values in release.parts().series.values()]

    border = (29_937, *[1] * 63)

    with pytest.raises(CouplingBroken):
        coupled(published_by_the_truth, border, (29_936, *[1] * 63), tape_noise(EndlessTape("truth")))


def test_only_the_noisy_total_reaches_the_choice() -> None:
    """With noise that carries the total across a border the tool changes, whatever the truth."""

    class Shifted(ZeroNoise):
        def add(self, x, scale, *, parts=None):  # type: ignore[no-untyped-def]
            return x + 10**6 if np.ndim(x) == 0 else super().add(x, scale, parts=parts)

    release = Intervals(size=64, epsilon=1).release(Histogram.dense([1] * 64), noise=Shifted())

    assert release.kind == "spending-tree"


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100, 2**14 + 3, 2**64])
@pytest.mark.parametrize("rows", [0, 1, 30_000])
def test_breaking_sizes_give_finite_answers(size: int, rows: int) -> None:
    """Tiny and huge universes, empty and heavy: the whole axis is counted, and bounds contain it."""
    cell = size - 1
    histogram = Histogram.from_counts([cell] if rows else [], [rows] if rows else [], size=size)
    release = Intervals(size=size, epsilon=1).release(
        histogram, noise=tape_noise(EndlessTape(("b", size, rows)))
    )

    everything = release.count(0, cell)
    least, most = everything.worst(1e-6)

    assert least <= rows <= most
    assert abs(everything.value - rows) < 200
    assert np.isfinite(everything.error)
    assert release.error(0.05) < 10_000 + 2 * rows


@pytest.mark.parametrize(
    ("size", "rows", "words"),
    [
        (64, 10_000, "it grew a tree with up to 8 children"),
        (2**32, 10_000, "cut the axis privately"),
        (5, 10, "rows"),
    ],
)
def test_a_release_says_which_tool_it_chose(size: int, rows: int, words: str) -> None:
    """The sentence names the tool and the released total."""
    histogram = Histogram.from_counts([3], [rows], size=size)
    release = Intervals(size=size, epsilon=1).release(histogram, noise=ZeroNoise())

    assert words in release.story
    assert f"{rows:,}" in release.story
