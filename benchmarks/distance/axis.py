"""Distances of the mechanisms along one axis, all at epsilon 1."""

from __future__ import annotations

from math import expm1, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.distance.row import (
    Distance,
    Measured,
    count_bound,
    largest_bound,
    linear_bound,
    noises,
)
from partita import (
    GaussianCounts,
    HierarchyCounts,
    Histogram,
    HistogramCounts,
    Intervals,
    Laplace,
    NameCounts,
    Names,
    PaperIntervals,
    Partition,
    PartitionTents,
    QuantileSelection,
    SpendingTree,
    Tents,
    Text,
    Thresholds,
    Tree,
)

_SIZE, _PEOPLE = 1024, 100_000
_WIDE, _FEW = 2**32, 10_000
_CROWD, _FAILURE = 1_000, 0.05
_ASKED = 2_000
_ONE = np.uint64(1)

_ANY = "any pure mechanism, for the worst data: packing, after [DNPR10]"
_LINEAR = "unbiased linear answers from Laplace noise: nuclear norm, after [LM13]"


def histogram_counts(trials: int) -> Distance:
    """A cell by itself, against the least variance that a count can have."""
    mechanism, empty = HistogramCounts(size=_SIZE, epsilon=1), Histogram.dense([0] * _SIZE)
    squares = [np.mean(mechanism.release(empty, noise=noise).noisy ** 2) for noise in noises(trials)]
    return Distance(
        mechanism="histogram_counts",
        setting=f"{_SIZE:,} cells, epsilon 1",
        what="root mean square error of a cell",
        measured=Measured.root(squares),
        bound=count_bound(1),
        source="any pure mechanism, for the worst data: the geometric mechanism is optimal [GRS12]",
    )


def gaussian_counts(trials: int) -> Distance:
    """A cell by itself, against the least variance of an unbiased count for this rho."""
    mechanism, empty = GaussianCounts(size=_SIZE, rho="1/8"), Histogram.dense([0] * _SIZE)
    squares = [np.mean(mechanism.release(empty, noise=noise).noisy ** 2) for noise in noises(trials)]
    return Distance(
        mechanism="gaussian_counts",
        setting=f"{_SIZE:,} cells, rho 1/8",
        what="root mean square error of a cell",
        measured=Measured.root(squares),
        bound=expm1(2 / 8) ** -0.5,
        source="any unbiased zCDP mechanism: Cauchy and Schwarz on the divergence of order 2",
    )


def hierarchy_counts(trials: int) -> Distance:
    """A node of any of three levels, each of them as often as it occurs."""
    counties = [(first, first + 127) for first in range(0, _SIZE, 128)]
    tracts = [(first, first + 15) for first in range(0, _SIZE, 16)]
    nodes = sorted([*counties, *tracts], key=lambda each: (each[0], -each[1]))
    mechanism, people = HierarchyCounts(size=_SIZE, nodes=nodes, epsilon=1), _hill()
    shape = mechanism.levels.shape
    lows, highs = shape.first[1:], shape.last[1:]
    released = (mechanism.release(people, noise=noise) for noise in noises(trials))
    cells = np.arange(_SIZE)
    gram = sum(np.equal.outer(cells // width, cells // width).astype(float) for width in (1, 16, 128))
    return Distance(
        mechanism="hierarchy_counts",
        setting="8 nodes above 64 above 1,024 cells, epsilon 1",
        what="root mean square error of a node",
        measured=Measured.root([np.mean(_misses(each, people, lows, highs) ** 2) for each in released]),
        bound=linear_bound(gram, lows.size, 1),
        source=_LINEAR,
    )


def quantile_selection(trials: int) -> Distance:
    """A crowd in one cell: how large it must be so that its median is found 19 times in 20."""
    mechanism, cell, crowd = QuantileSelection(size=_WIDE, epsilon=1), 10**9, 0
    missed = float("inf")
    while missed > _FAILURE * trials:
        crowd += 2
        column = Histogram.from_counts([cell], [crowd], size=_WIDE)
        found = (int(mechanism.release(column, noise=noise).cells[0]) for noise in noises(trials))
        missed = sum(each != cell for each in found)
    return Distance(
        mechanism="quantile_selection",
        setting=f"a crowd in one of 2^{_WIDE.bit_length() - 1} cells, epsilon 1",
        what="rows that a median misses its rank by, exceeded in 5% of all runs",
        measured=Measured(value=crowd / 2, error=0.5),
        bound=(log(_WIDE - 1) + log((1 - _FAILURE) / _FAILURE)) / 4,
        source=_ANY,
    )


def laplace(trials: int) -> Distance:
    """Every interval by itself: what the sensitivity costs."""
    return _linear("laplace", Laplace(size=64, epsilon=1), trials)


def thresholds(trials: int) -> Distance:
    """Prefixes, and intervals by difference."""
    return _linear("thresholds", Thresholds(size=_SIZE, epsilon=1), trials)


def tree(trials: int) -> Distance:
    """The plain binary tree of the papers, and beside it a tree of sixteen without a root."""
    wide = Tree(size=_SIZE, epsilon=1, branching=16, root=False)
    return _linear(
        "tree",
        Tree(size=_SIZE, epsilon=1),
        trials,
        note=f"branching 16, no root: {_random_error(wide, trials).value:.3g}",
    )


def tents(trials: int) -> Distance:
    """Overlapping sums."""
    return _linear("tents", Tents(size=_SIZE, epsilon=1), trials)


def intervals(trials: int) -> Distance:
    """The default, where it chooses a tree."""
    return _largest("intervals", Intervals(size=_SIZE, epsilon=1), _hill(), trials)


def spending_tree(trials: int) -> Distance:
    """The tree by itself, which takes the number of people to be public."""
    mechanism = SpendingTree(size=_SIZE, epsilon=1, total=_PEOPLE)
    return _largest("spending_tree", mechanism, _hill(), trials)


def partition_tents(trials: int) -> Distance:
    """People in a huge universe."""
    mechanism = PartitionTents(size=_WIDE, epsilon=1, total=_FEW)
    return _largest("partition_tents", mechanism, _scattered(), trials)


def paper_intervals(trials: int) -> Distance:
    """The same people, by the paper's mechanism."""
    mechanism, people = PaperIntervals(size=_WIDE, epsilon=1), _scattered()
    released = [mechanism.release(people, noise=noise) for noise in noises(trials)]
    largest = [_misses(each, people, *_touching(each.cut)).max() for each in released]
    return _compared("paper_intervals", people, Measured.mean(largest), note="ends at edges of segments")


def partition(trials: int) -> Distance:
    """How heavy a segment gets in a crowd, against what so few empty segments cost anybody."""
    mechanism, crowd = Partition(size=_WIDE, epsilon=1), np.arange(_CROWD) + _WIDE // 2
    people = Histogram.from_cells(crowd, size=_WIDE)
    heaviest = [people.weigh(mechanism.cut(people, noise=noise)).max() for noise in noises(trials)]
    return Distance(
        mechanism="partition",
        setting=f"a crowd of {_CROWD:,} side by side in 2^32 cells, epsilon 1",
        what="weight of the heaviest segment, exceeded in 5% of all runs",
        measured=Measured.quantile(heaviest, 1 - _FAILURE),
        bound=float(_least_weight(float(mechanism.beta / 2))),
        source="any pure mechanism with as few empty segments, for the worst crowd: packing, after [DNPR10]",
        note=f"threshold {mechanism.threshold}, bound of the theorem {mechanism.weight_bound(_CROWD)}",
    )


def names(trials: int) -> Distance:
    """From how many rows on a name is listed, against what so few false names cost anybody."""
    mechanism = Names(text=Text(24), epsilon=1)
    beta = float(mechanism.beta)
    least = next(rows for rows in range(100, 300, 2) if _listed(mechanism, rows, trials) >= 1 - beta)
    return Distance(
        mechanism="names",
        setting="one name in a column of text of 24 bytes, epsilon 1",
        what="rows from which on it is listed in 95% of all runs",
        measured=Measured(value=float(least), error=2.0),
        bound=log(mechanism.size * (1 - beta) / beta),
        source="any pure mechanism with as few false names: packing, after [DNPR10]",
        note=f"the theorem says {mechanism.found_from(2)} with 2 ends",
    )


def _listed(mechanism: Names, rows: int, trials: int) -> float:
    """The part of the runs that list a name with so many rows."""
    counts = NameCounts.from_texts(["a name"] * rows, mechanism.text)
    found = [mechanism.release(counts, noise=noise) for noise in noises(trials)]
    return float(np.mean(["a name" in release.domain.labels for release in found]))


def _least_weight(empty: float) -> int:
    """The largest w for which some w people side by side stay together in 5% of all runs.

    There are size // w places for them. Who cuts all of these apart 95 times of 100 cuts nothing at all
    into (size // w) exp(-w) 95/100 more segments, on average.
    """
    weights = np.arange(1, 200)
    cuts = (_WIDE // weights) * np.exp(-weights.astype(float)) * (1 - _FAILURE)
    return int(weights[cuts > empty].max())


def _linear(name: str, mechanism: Any, trials: int, note: str = "") -> Distance:
    """An error that does not depend on the data, against others of its class."""
    size = mechanism.size
    cells = np.arange(size)
    gram = (np.minimum.outer(cells, cells) + 1.0) * (size - np.maximum.outer(cells, cells))
    return Distance(
        mechanism=name,
        setting=f"{size:,} cells, epsilon 1",
        what="root mean square error of a random interval",
        measured=_random_error(mechanism, trials),
        bound=linear_bound(gram, size * (size + 1) // 2, 1),
        source=_LINEAR,
        note=note,
    )


def _random_error(mechanism: Any, trials: int) -> Measured:
    """Over the same random intervals of the same people."""
    people = _hill(mechanism.size)
    lows, highs = _random_ranges(mechanism.size)
    released = (mechanism.release(people, noise=noise) for noise in noises(trials))
    return Measured.root([np.mean(_misses(each, people, lows, highs) ** 2) for each in released])


def _largest(name: str, mechanism: Any, people: Histogram, trials: int) -> Distance:
    """The largest error over all intervals of a release whose answers add up."""
    errors = [_prefix_errors(mechanism.release(people, noise=noise), people) for noise in noises(trials)]
    typical = Measured.root([np.mean((each - each.mean()) ** 2) * 2 for each in errors])
    note = f"root mean square over intervals between people's values: {typical.value:.3g}"
    return _compared(name, people, Measured.mean([np.ptp(each) for each in errors]), note)


def _compared(name: str, people: Histogram, largest: Measured, note: str) -> Distance:
    cells = "2^32" if people.size == _WIDE else f"{people.size:,}"
    return Distance(
        mechanism=name,
        setting=f"{people.total:,} people in {cells} cells, epsilon 1",
        what="expected largest error over all intervals",
        measured=largest,
        bound=largest_bound(people.size, 1),
        source=_ANY,
        note=note,
    )


def _prefix_errors(released: Any, people: Histogram) -> NDArray[np.float64]:
    """The errors of the prefixes among which the largest and the least are.

    Between two people the truth stands still and the released curve rises: errors are extreme at people's
    cells and just before them.
    """
    ends = np.unique(np.concatenate([people.cells, people.cells[people.cells > 0] - _ONE, [people.size - 1]]))
    ends = ends.astype(np.uint64)
    return np.concatenate([[0.0], _signed(released, people, np.zeros_like(ends), ends)])


def _misses(
    released: Any, people: Histogram, lows: NDArray[np.uint64], highs: NDArray[np.uint64]
) -> NDArray[np.float64]:
    return np.abs(_signed(released, people, lows, highs))


def _signed(
    released: Any, people: Histogram, lows: NDArray[np.uint64], highs: NDArray[np.uint64]
) -> NDArray[np.float64]:
    before = np.concatenate([[0], np.cumsum(people.counts)])
    behind = before[np.searchsorted(people.cells, highs, side="right")]
    return np.asarray(released.counts(lows, highs) - (behind - before[np.searchsorted(people.cells, lows)]))


def _touching(cut: Any) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """The shortest and the longest interval that touches each run of segments."""
    ends = np.unique(np.concatenate([cut.starts, cut.edges]))
    low, high = np.triu_indices(ends.size)
    return ends[low], ends[high]


def _random_ranges(size: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Drawn evenly from all ranges."""
    lows, highs = np.triu_indices(size)
    drawn = np.random.default_rng(0).integers(0, lows.size, _ASKED)
    return lows[drawn].astype(np.uint64), highs[drawn].astype(np.uint64)


def _scattered() -> Histogram:
    """A hill in a universe where hardly any two people share a cell."""
    return _hill(_WIDE, _FEW)


def _hill(size: int = _SIZE, people: int = _PEOPLE) -> Histogram:
    """A hill with a long slope to the right."""
    drawn = np.random.default_rng(0).beta(2, 5, people)
    return Histogram.from_cells((drawn * size).astype(np.uint64), size=size)
