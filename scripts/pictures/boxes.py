"""Pictures of the mechanisms over several axes."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from statistics import NormalDist
from typing import Any

import numpy as np
from matplotlib.collections import PatchCollection
from matplotlib.colors import ListedColormap, to_rgba
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from partita import (
    Axis,
    GridCounts,
    PaperRectangles,
    Points,
    RankBoxes,
    Rectangles,
    SpendingBoxes,
    TableGraph,
    ViewedBoxes,
)
from scripts.pictures.style import BLUE, FAINT, GREEN, ORANGE, canvas, fixed_noise

_SIZE = 1024
_AXES = (Axis(size=_SIZE), Axis(size=_SIZE))
_KINDS = ("spending-boxes", "rank-boxes", "grid")


def grid_counts() -> Any:
    """The cells of a small table, and what is released of them."""
    figure, (secret, public) = canvas(columns=2, height=3.0)
    axes = [Axis(size=12), Axis(size=12)]
    people = Points.from_rows(_places(12, 900), axes=axes)
    released = GridCounts(axes=axes, epsilon="1/2").release(people, noise=fixed_noise())
    for drawn, table, title in (
        (secret, people.spread(), "secret"),
        (public, released.noisy.reshape(12, 12), "released: every cell, empty ones too"),
    ):
        shown = drawn.imshow(table.T, origin="lower", cmap="PuOr", vmin=-40, vmax=40)
        drawn.set(title=title, xticks=[], yticks=[])
    figure.colorbar(shown, ax=[secret, public], label="count")
    return figure


def spending_boxes() -> Any:
    """People, and the leaves of the tree: small where people are."""
    figure, (secret, public) = canvas(columns=2, height=3.1)
    people = _cloud()
    released = SpendingBoxes(axes=_AXES, epsilon=1, bits=1).release(people, noise=fixed_noise())
    nodes = released.shape.nodes
    _dots(secret, people)
    _outlines(public, *nodes.corners(nodes.leaves))
    secret.set_title("secret")
    public.set_title(f"released: the {int(nodes.leaves.sum())} leaves, each with a count")
    return figure


def rank_boxes() -> Any:
    """The views make ranks of values; the tree is cut in ranks."""
    figure, (native, ranked) = canvas(columns=2, height=3.1)
    people = _cloud()
    released = RankBoxes(axes=_AXES, epsilon=1).release(people, noise=fixed_noise())
    horizontal, vertical = (edges.astype(float) for edges in released.views.top_edges)
    _dots(native, people)
    native.vlines(horizontal, 0, _SIZE, colors=ORANGE, linewidth=0.7)
    native.hlines(vertical, 0, _SIZE, colors=ORANGE, linewidth=0.7)
    native.set_title("values, cut into eight ranks along each axis")
    _outlines(ranked, *_ranked(released), size=1.0)
    ranked.set_title("ranks: the leaves of the tree")
    return figure


def viewed_boxes() -> Any:
    """Labels in no order: their counts by the view, by the boxes alone, and the truth."""
    figure, drawn = canvas()
    axes, labels = (Axis(size=365), Axis(size=200, labels=True)), np.arange(40)
    number = np.arange(20_000)
    town = (number * number % 9973) * (number % 131) // 6536 * 83 % 200
    people = Points.from_rows(np.stack([number * 7 % 365, town], axis=1), axes=axes)
    released = ViewedBoxes(axes=axes, epsilon=1).release(people, noise=fixed_noise())
    lows, highs = (np.stack([np.full(40, day), labels], axis=1).astype(np.uint64) for day in (0, 364))
    drawn.bar(labels, np.bincount(town, minlength=200)[:40], color=FAINT, label="secret")
    drawn.plot(labels, released.boxes.counts(lows, highs), "_", color=ORANGE, label="the boxes alone")
    drawn.plot(labels, released.counts(lows, highs), ".", color=BLUE, label="released: the view")
    drawn.set(xlabel="labels, in no order", ylabel="rows", xticks=[])
    drawn.legend()
    return figure


def graph() -> Any:
    """How far each pair of columns is from independence: in the rows, in the model, and what was measured."""
    figure, (secret, public) = canvas(columns=2, height=3.1)
    axes = [Axis(size=size, labels=size < 9) for size in (30, 6, 12, 4, 20, 8, 3, 9)]
    people = Points.from_rows(_dependent(axes, 20_000), axes=axes)
    released = TableGraph(axes=axes, epsilon=1).release(people, noise=fixed_noise())
    for drawn, table, title in (
        (secret, _dependence(people, released.fit.bins), "secret"),
        (public, released.dependence, f"released; dots: {len(released.fit.pairs)} pairs were measured"),
    ):
        shown = drawn.imshow(table, cmap="Purples", vmin=0.0, vmax=0.6)
        drawn.set(title=title, xlabel="column", ylabel="column", xticks=range(8), yticks=range(8))
    for one, other in sorted(released.fit.pairs):
        public.plot([other, one], [one, other], ".", color=ORANGE, linestyle="none")
    figure.colorbar(shown, ax=[secret, public], label="distance from independence")
    return figure


def _dependent(axes: list[Axis], people: int) -> NDArray[np.uint64]:
    """Each column follows the one before it, more or less."""
    number = np.arange(people)
    column, places = (number * 0.7548776662466927) % 1.0, []
    for place, axis in enumerate(axes):
        fresh = (number * (0.5698402909980532 + 0.0317 * place)) % 1.0
        column = np.where(number * (place + 3) % 10 < 6, column, fresh)
        places.append(np.minimum(column * axis.size, axis.size - 1).astype(np.uint64))
    return np.stack(places, axis=1)


def _dependence(people: Points, bins: Any) -> NDArray[np.float64]:
    """Half of the distance of each pair to independent columns, as a share of all rows."""
    number = len(bins)
    found = np.zeros((number, number))
    for one, other in combinations(range(number), 2):
        (counts,) = people.tables([(one, other)], bins)
        share = counts / counts.sum()
        even = np.multiply.outer(share.sum(axis=1), share.sum(axis=0))
        found[one, other] = found[other, one] = np.abs(share - even).sum() / 2
    return found


def paper_rectangles() -> Any:
    """The cuts of both axes, and which nodes of the tree of trees are kept."""
    figure, (secret, public) = canvas(columns=2, height=3.1)
    people = _cloud()
    released = PaperRectangles(axes=_AXES, epsilon=4, threshold=3).release(people, noise=fixed_noise())
    _dots(secret, people)
    secret.vlines(released.edges[0][:-1], 0, _SIZE, colors=ORANGE, linewidth=0.7)
    secret.hlines(released.edges[1][:-1], 0, _SIZE, colors=ORANGE, linewidth=0.7)
    secret.set_title("secret, and the cuts of each axis")
    lows, highs = _kept(released)
    _outlines(public, lows, highs, fill=0.12)
    public.set_title(f"the {len(lows)} kept nodes over both axes")
    return figure


def rectangles() -> Any:
    """Which structure is chosen for three columns, by their cells and the noisy total."""
    figure, drawn = canvas(columns=2)
    sizes, totals = np.arange(2, 161, 2), np.geomspace(10, 10**7, 61)
    look = ListedColormap([BLUE, ORANGE, GREEN])
    for axes, labels, title in zip(
        drawn, (False, True), ("three columns of numbers", "of labels"), strict=True
    ):
        kinds = [[_structure(int(size), labels, int(total)) for size in sizes] for total in totals]
        axes.pcolormesh(sizes, totals, np.array(kinds), cmap=look, vmin=0, vmax=2, alpha=0.4, rasterized=True)
        axes.set(title=title, yscale="log", xlabel="cells along each column")
    drawn[0].set_ylabel("noisy total, epsilon 1")
    for kind, color in zip(_KINDS, (BLUE, ORANGE, GREEN), strict=True):
        drawn[1].plot([], [], "s", color=color, alpha=0.5, label=kind)
    drawn[1].legend(loc="lower right")
    return figure


def _structure(size: int, labels: bool, total: int) -> int:
    return _KINDS.index(_three(size, labels).structure(total=total).name)


@cache
def _three(size: int, labels: bool) -> Rectangles:
    return Rectangles(axes=[Axis(size=size, labels=labels)] * 3, epsilon=1)


def _cloud() -> Points:
    return Points.from_rows(_places(_SIZE, 1_000), axes=_AXES)


def _places(size: int, people: int) -> NDArray[np.uint64]:
    """A cloud along the diagonal, and a crowd beside it, evenly drawn."""
    number = np.arange(people)
    first, second = (
        (number * step % 1.0) * 0.998 + 0.001 for step in (0.7548776662466927, 0.5698402909980532)
    )
    bell = NormalDist()
    one, other = (np.array([bell.inv_cdf(rank) for rank in ranks]) for ranks in (first, second))
    cloud = np.stack([0.45 + 0.16 * one, 0.5 + 0.13 * one + 0.05 * other], axis=1)
    crowd = np.stack([0.75 + 0.02 * one, 0.2 + 0.02 * other], axis=1)
    places = np.where((number % 4 == 0)[:, None], crowd, cloud)
    return (np.clip(places, 0, 1 - 1e-9) * size).astype(np.uint64)


def _dots(axes: Any, people: Points) -> None:
    axes.scatter(*people.places.T.astype(float), s=1.5, color=FAINT, linewidths=0, rasterized=True)
    axes.set(xlim=(0, _SIZE), ylim=(0, _SIZE), xticks=[], yticks=[], aspect="equal")


def _outlines(axes: Any, lows: Any, highs: Any, *, size: float = _SIZE, fill: float = 0.0) -> None:
    """Boxes, corners included."""
    wide = 1.0 if size == _SIZE else 0.0
    boxes = [
        Rectangle(tuple(low), *(high - low + wide))
        for low, high in zip(np.asarray(lows, float), np.asarray(highs, float), strict=True)
    ]
    axes.add_collection(PatchCollection(boxes, facecolor=to_rgba(BLUE, fill), edgecolor=BLUE, linewidth=0.5))
    axes.set(xlim=(0, size), ylim=(0, size), xticks=[], yticks=[], aspect="equal")


def _ranked(released: Any) -> tuple[Any, Any]:
    """The leaves of the tree, in ranks: the share of people below each side."""
    nodes = released.shape.nodes
    lows, highs = nodes.corners(nodes.leaves)
    both = list(enumerate(released.views.distributions))
    before = [
        np.where(lows[:, axis] > 0, curve.upto(np.maximum(lows[:, axis], 1) - 1), 0.0) for axis, curve in both
    ]
    behind = [curve.upto(highs[:, axis]) for axis, curve in both]
    return np.stack(before, axis=1), np.stack(behind, axis=1)


def _kept(released: Any) -> tuple[Any, Any]:
    """The kept nodes of the trees over the second axis, as boxes of positions."""
    first, last = released.trees.stages
    spans = [first.tree.spans(first.nodes[last.owners]), last.tree.spans(last.nodes)]
    corners = [_span(edges, *span) for edges, span in zip(released.edges, spans, strict=True)]
    lows, highs = (np.stack(side, axis=1) for side in zip(*corners, strict=True))
    return lows, highs


def _span(edges: Any, first: Any, behind: Any) -> tuple[Any, Any]:
    starts = np.concatenate([[0], edges[:-1].astype(np.int64) + 1])
    return starts[first], edges[behind - 1].astype(np.int64)
