"""Pictures of the mechanisms along one axis."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from statistics import NormalDist
from typing import Any

import numpy as np
from matplotlib.colors import ListedColormap, to_rgba
from matplotlib.patches import Rectangle

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
    Text,
    Thresholds,
    Tree,
)
from partita.public.axis.base import Hierarchy
from partita.public.axis.tent_solver import TentLevel
from scripts.pictures.style import BLUE, FAINT, GREEN, ORANGE, canvas, fixed_noise

_FEW = Histogram.dense((3, 9, 14, 22, 31, 26, 18, 21, 12, 7, 5, 2, 0, 1, 0, 0))
_LOW, _HIGH = 3, 12
"""The cells that the pictures ask for."""

_Block = tuple[float, float, int, str]
"""From where, how wide, on which row, in which colour."""


def histogram_counts() -> Any:
    """The cells, and their noisy counts."""
    figure, axes = canvas()
    released = HistogramCounts(size=16, epsilon="1/2").release(_FEW, noise=fixed_noise())
    _secret(axes, _FEW)
    axes.plot(np.arange(16), released.noisy, "o", color=BLUE, label="released: every cell, empty ones too")
    axes.set(xlabel="cell")
    axes.legend()
    return figure


def gaussian_counts() -> Any:
    """The cells, and their noisy counts."""
    figure, axes = canvas()
    released = GaussianCounts(size=16, rho="1/8").release(_FEW, noise=fixed_noise())
    _secret(axes, _FEW)
    axes.plot(np.arange(16), released.noisy, "o", color=BLUE, label="released: every cell, for rho 1/8")
    axes.set(xlabel="cell")
    axes.legend()
    return figure


def hierarchy_counts() -> Any:
    """The nodes of three levels as boxes, one label without a node above it, and the estimate of each."""
    figure, axes = canvas(height=2.6)
    nodes = [(0, 8), (0, 4), (5, 8), (9, 14), (9, 11), (12, 14)]
    mechanism = HierarchyCounts(size=16, nodes=nodes, epsilon="1/2", shares=(1, 1, 1))
    released, shape = mechanism.release(_FEW, noise=fixed_noise()), mechanism.levels.shape
    for node in range(1, shape.first.size):
        first, last = int(shape.first[node]), int(shape.last[node])
        span, answer = mechanism.levels.spans[mechanism.levels.kinds[node - 1]], released.count(first, last)
        color = (BLUE, GREEN, ORANGE)[span.first]
        box = (first - 0.46, -span.last - 0.42), last - first + 0.92, span.last - span.first + 0.84
        axes.add_patch(Rectangle(*box, facecolor=to_rgba(color, 0.25), edgecolor=color, linewidth=0.6))
        low, high = answer.interval()
        text = f"{answer.value:.0f}" if first == last else f"{answer.value:.0f} ({low:.0f} .. {high:.0f})"
        axes.text((first + last) / 2, -(span.first + span.last) / 2, text, ha="center", va="center")
    axes.set(xlim=(-0.6, 15.6), ylim=(-2.6, 0.6), xlabel="labels")
    axes.set_yticks([0, -1, -2], ["county", "tract", "block"])
    return figure


def quantile_selection() -> Any:
    """The secret counts, and how likely each cell is to be chosen as the median."""
    figure, axes = canvas()
    mechanism, drawn = QuantileSelection(size=16, epsilon="1/4"), fixed_noise()
    chosen = [int(mechanism.release(_FEW, noise=drawn).cells[0]) for _ in range(2000)]
    _secret(axes, _FEW)
    beside = axes.twinx()
    beside.plot(np.arange(16), np.bincount(chosen, minlength=16) / 20, "o", color=BLUE)
    beside.set(ylabel="chosen, in % of 2,000 runs")
    axes.axvline(5, color=ORANGE, linewidth=0.8, linestyle=":")
    axes.set(xlabel="cell")
    return figure


def thresholds() -> Any:
    """The prefixes, and an interval as the difference of two."""
    figure, axes = canvas()
    released = Thresholds(size=16, epsilon=2).release(_FEW, noise=fixed_noise())
    axes.step(
        np.arange(16), np.cumsum(_FEW.spread()), where="post", color=FAINT, label="secret prefix counts"
    )
    axes.plot(np.arange(16), released.noisy, "o", color=BLUE, label="released prefix counts")
    low, high = released.noisy[_LOW - 1], released.noisy[_HIGH]
    axes.hlines([low, high], [_LOW - 1, _HIGH], [16.4, 16.4], colors=ORANGE, linewidth=0.8, linestyles=":")
    axes.annotate("", (16.4, high), (16.4, low), arrowprops={"arrowstyle": "<->", "color": ORANGE})
    axes.text(16.6, (low + high) / 2, f"cells {_LOW} to {_HIGH}:\n{high - low}", color=ORANGE, va="center")
    axes.set(xlabel="cell", ylabel="people up to here", xlim=(-0.6, 19.5))
    axes.legend()
    return figure


def laplace() -> Any:
    """Every interval has a noise of its own: a triangle of them."""
    figure, axes = canvas(height=3.0)
    released = Laplace(size=16, epsilon=1).release(_FEW, noise=fixed_noise())
    lows, highs = np.triu_indices(16)
    before = np.concatenate([[0], np.cumsum(_FEW.spread())])
    table = np.full((16, 16), np.nan)
    table[lows, highs] = released.noisy - (before[highs + 1] - before[lows])
    shown = axes.imshow(table, cmap="PuOr", vmin=-250, vmax=250)
    axes.plot(
        _HIGH, _LOW, "s", markersize=9, markerfacecolor="none", markeredgecolor=GREEN, markeredgewidth=2
    )
    axes.annotate(
        f"cells {_LOW} to {_HIGH}",
        (_HIGH, _LOW),
        (0, 12),
        color=GREEN,
        arrowprops={"arrowstyle": "-", "color": GREEN},
    )
    axes.set(xlabel="last cell", ylabel="first cell")
    figure.colorbar(shown, ax=axes, label="noise")
    return figure


def tree() -> Any:
    """All nodes of a hierarchy, and the few that make up an interval."""
    figure, axes = canvas(height=2.2)
    shape = Tree(size=16, epsilon=1).shape
    _blocks(axes, _hierarchy(shape, range(16), range(1, 17)), shape.levels)
    axes.set(xlabel=f"cells; orange: the {len(list(_covering(shape)))} nodes that make up {_LOW} to {_HIGH}")
    return figure


def tents() -> Any:
    """Which part of each unit a tent counts: two tents share it."""
    figure, (below, above) = canvas(rows=2)
    units, number = 48, 9
    level = TentLevel.over(units, number)
    shares = np.array([level.exact(row) for row in np.eye(units, dtype=np.int64)], dtype=float) / 2**8
    below.bar(np.arange(units), np.ones(units), width=0.8, color=FAINT, alpha=0.7)
    for tent in range(number):
        above.fill_between(np.arange(units), shares[:, tent], color=(BLUE, GREEN)[tent % 2], alpha=0.5)
    below.set(ylabel="level 0", xlim=(-1, units), xticks=[], yticks=[])
    above.set(ylabel="level 1", xlabel="unit; a tent counts this part of it", xlim=(-1, units), yticks=[0, 1])
    return figure


def partition() -> Any:
    """People on a line, and where it is cut."""
    figure, axes = canvas()
    people, mechanism = _crowds(256, 150), Partition(size=256, epsilon=1)
    cut = mechanism.cut(people, noise=fixed_noise())
    _secret(axes, people, bins=256)
    axes.vlines(cut.edges[:-1] + 0.5, 0, people.counts.max() * 1.08, colors=ORANGE, linewidth=1.2)
    for start, edge, weight in zip(cut.starts, cut.edges, people.weigh(cut), strict=True):
        if edge - start > 6:
            axes.text((start + edge) / 2, people.counts.max() * 1.1, weight, ha="center", color=FAINT)
    axes.set(xlabel=f"cell; orange: the cuts; above: secret weights; threshold {mechanism.threshold}")
    axes.set(xlim=(-1, 256))
    return figure


def names() -> Any:
    """Names by their number of rows: the listed ones, and the limit of the theorem."""
    figure, axes = canvas()
    listed = [f"town {number:03}" for number in range(300)]
    weights = 1 / np.arange(1, 301)
    counts = np.rint(20_000 * weights / weights.sum()).astype(int)
    rows = [name for name, count in zip(listed, counts.tolist(), strict=True) for _ in range(count)]
    text = Text(24)
    found = Names(text=text, epsilon=1).release(NameCounts.from_texts(rows, text), noise=fixed_noise())
    there = np.isin(listed, found.domain.labels)
    ranks, need = np.arange(1, 301), found.found_from()
    axes.scatter(ranks[~there], counts[~there], color=FAINT, s=8)
    axes.scatter(ranks[there], found.noisy[found.listed], color=ORANGE, s=14)
    axes.axhline(need, color=BLUE, linewidth=1)
    axes.text(300, need * 1.1, f"from {need} rows on, 95 times of 100", ha="right", color=BLUE)
    axes.set(xscale="log", yscale="log", xlabel="rank of the name", ylabel="rows; orange: listed, with noise")
    return figure


def partition_tents() -> Any:
    """A huge universe, cut where people are, and the density that is released."""
    figure, axes = canvas()
    people = _crowds(2**32, 4_000)
    released = PartitionTents(size=2**32, epsilon=1, total=4_000).release(people, noise=fixed_noise())
    assert released.cut is not None
    cuts = released.cut.edges / 2**32
    edges = np.linspace(0, 2**32, 97)[1:].astype(np.uint64) - np.uint64(1)
    truth = np.diff(np.searchsorted(people.cells, edges, side="right"), prepend=0)
    axes.stairs(truth, np.linspace(0, 1, 97), fill=True, color=FAINT, alpha=0.5, label="secret")
    counts = np.diff(released.curve.upto(edges), prepend=0.0)
    axes.step(edges / 2**32, counts, color=BLUE, where="pre", label="released")
    axes.plot(cuts, np.full(len(cuts), -9), "|", color=ORANGE, label="cuts")
    axes.set(xlabel="place in 2^32 cells", ylabel="people in 1/96 of them")
    axes.legend()
    return figure


def paper_intervals() -> Any:
    """The cuts, a binary tree over the segments, and what is counted for a range."""
    figure, (line, above) = canvas(rows=2, height=3.2)
    people = _crowds(1024, 1_500)
    released = PaperIntervals(size=1024, epsilon=2).release(people, noise=fixed_noise())
    starts, ends = released.cut.starts.astype(float), released.cut.edges.astype(float) + 1
    _secret(line, people)
    line.vlines(ends[:-1], 0, line.get_ylim()[1], colors=ORANGE, linewidth=0.8)
    line.axvspan(300, 640, color=GREEN, alpha=0.2, linewidth=0)
    shape = released.tree.shape
    first, last = (int(place) for place in released.cut.locate([300, 640]))
    _blocks(above, _hierarchy(shape, starts, ends, low=first, high=last), shape.levels)
    line.set(xlim=(0, 1024), xticks=[])
    above.set(xlim=(0, 1024), xlabel="cell; green: the question; orange: all segments that touch it")
    return figure


def spending_tree() -> Any:
    """Where the tree looked closer: level by level, over the people."""
    figure, (line, above) = canvas(rows=2, height=3.4)
    people = _crowds(1024, 2_000)
    mechanism = SpendingTree(size=1024, epsilon=1, total=2_000, branching=4)
    shape = mechanism.release(people, noise=fixed_noise()).shape
    level = np.repeat(np.arange(shape.levels.size), shape.levels)
    _secret(line, people)
    colors = np.where(shape.expanded, BLUE, GREEN)
    nodes = zip(shape.first, shape.last, level, colors, strict=True)
    blocks = [(float(first), float(last - first) + 1, -int(row), str(c)) for first, last, row, c in nodes]
    _blocks(above, blocks, shape.levels.size, down=True)
    line.set(xlim=(0, 1024), xticks=[])
    above.set(xlim=(0, 1024), xlabel="cell; blue: cut further; green: a leaf, which spends all it has left")
    return figure


def intervals() -> Any:
    """Which tool is chosen, by the size of the universe and the noisy total."""
    figure, axes = canvas()
    sizes, totals = np.arange(2, 33), np.geomspace(10, 10**6, 101)
    kinds = [[_tool(2 ** int(size), int(total)) for size in sizes] for total in totals]
    look = ListedColormap([BLUE, ORANGE, GREEN])
    axes.pcolormesh(sizes, totals, np.array(kinds), cmap=look, alpha=0.35, linewidth=0, rasterized=True)
    axes.text(20, 3_000, "partition, counted by tents")
    axes.text(3, 3_000, "spending tree\nof 8 children")
    axes.text(3, 150_000, "of 16 children")
    axes.text(3, 40, "partition, counted by tents")
    axes.set(yscale="log", xlabel="log2 of the number of cells", ylabel="noisy total, epsilon 1")
    return figure


def _tool(size: int, total: int) -> int:
    """Which of the three it is."""
    tool = Intervals(size=size, epsilon=1).tool(total=total)
    return 0 if isinstance(tool, PartitionTents) else 1 if tool.branching == 8 else 2


def _secret(axes: Any, people: Histogram, *, bins: int = 128) -> None:
    """The truth, by the cell or in bins."""
    edges = np.linspace(0, people.size, min(bins, people.size) + 1)
    counts, _ = np.histogram(people.cells.astype(float), edges, weights=people.counts)
    axes.stairs(counts, edges - 0.5, fill=True, color=FAINT, alpha=0.5, label="secret")
    axes.set(ylabel="people")


def _crowds(size: int, people: int) -> Histogram:
    """Three crowds, evenly drawn: no randomness is needed to look like people."""
    ranks = (np.arange(people) * 0.6180339887498949) % 1.0
    crowds = (NormalDist(0.22, 0.05), NormalDist(0.45, 0.015), NormalDist(0.68, 0.12))
    places = [crowds[i % 3].inv_cdf(min(max(rank, 1e-9), 1 - 1e-9)) for i, rank in enumerate(ranks)]
    return Histogram.from_cells((np.clip(places, 0, 1 - 1e-9) * size).astype(np.uint64), size=size)


def _covering(shape: Hierarchy, low: int = _LOW, high: int = _HIGH) -> Iterator[tuple[int, int]]:
    for level, first, behind in shape.cover(low, high):
        yield from ((level, node) for node in range(first, behind))


def _hierarchy(
    shape: Hierarchy, starts: Any, ends: Any, *, low: int = _LOW, high: int = _HIGH
) -> Iterator[_Block]:
    """The nodes over some places, the cover of low to high in orange."""
    chosen = set(_covering(shape, low, high))
    for level, (width, nodes) in enumerate(zip(shape.widths, shape.nodes, strict=True)):
        for node in range(nodes):
            last = min((node + 1) * width, shape.size) - 1
            color = ORANGE if (level, node) in chosen else BLUE
            yield starts[node * width], ends[last] - starts[node * width], level, color


def _blocks(axes: Any, blocks: Iterable[_Block], rows: int, *, down: bool = False) -> None:
    """Nodes as boxes, a row for each level."""
    found = sorted(blocks, key=_row_and_color)
    for (row, color), some in groupby(found, key=_row_and_color):
        spans = [(start, width) for start, width, _, _ in some]
        face = to_rgba(color, 0.5)
        axes.broken_barh(spans, (row - 0.4, 0.8), facecolor=face, edgecolor=color, linewidth=0.5)
    axes.set(yticks=[-rows + 1, 0] if down else [0, rows - 1])
    axes.set_yticklabels([f"level {rows - 1}", "root"] if down else ["leaves", "root"])


def _row_and_color(block: _Block) -> tuple[int, str]:
    return block[2], block[3]
