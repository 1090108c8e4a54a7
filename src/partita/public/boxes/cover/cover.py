"""The nodes of a tree that make up boxes: whole ones, as high as possible, and leaves that are cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Final, NamedTuple

import numpy as np

from partita.public.axis.curve.curve import Bools, Floats, Ints
from partita.public.boxes.density.density import Density
from partita.public.boxes.density.measure import Stretches
from partita.public.boxes.plan.families import children_of
from partita.public.boxes.plan.runs import blocks

_BLOCK: Final = 2**16
"""About so many pairs of a box and a node are looked at together."""

_MUCH_WORK: Final = 2**27
"""Boxes times nodes from which on it pays to load compiled code."""


class Cover(NamedTuple):
    """Pairs of a box and a node of which that share is inside of the box."""

    box: Ints
    node: Ints
    share: Floats


class _Pairs(NamedTuple):
    box: Ints
    node: Ints

    def where(self, chosen: Bools | slice) -> _Pairs:
        return _Pairs(self.box[chosen], self.node[chosen])


class Summed(NamedTuple):
    """For each box: its value, and the variance of that by the model."""

    values: Floats
    variances: Floats


def summed(density: Density, boxes: Sequence[Stretches]) -> Summed:
    """What the nodes that make up each box add up to.

    A node of which the share f is inside adds f times its value, and to the variance f^2 times its own,
    and f (1-f) times the squares of its leaves: all of a leaf's rows may lie on one side.
    """
    if _worthwhile(boxes[0].lows.size * density.nodes.starts.size):
        return _compiled(density, boxes)
    count, held = boxes[0].lows.size, density.held
    found = Summed(np.zeros(count), np.zeros(count))
    for box, node, share in cover(density, boxes):
        inside = share * (1.0 - share) * held.squares[node]
        found.values[:] += np.bincount(box, share * held.values[node], minlength=count)
        found.variances[:] += np.bincount(box, share**2 * held.variances[node] + inside, minlength=count)
    return found


def variances_of_sums(density: Density, boxes: Sequence[Stretches], parts: int) -> Floats:
    """The variance of the sum of each `parts` boxes in a row, which do not overlap.

    Where several of them cut a leaf, what counts is the share of it that is inside of any.
    """
    if _worthwhile(boxes[0].lows.size * density.nodes.starts.size):
        return _compiled(density, boxes, parts).variances
    count, nodes, held = boxes[0].lows.size // parts, density.nodes.children.size, density.held
    found, pairs, shares = np.zeros(count), [np.zeros(0, np.int64)], [np.zeros(0)]
    for box, node, share in cover(density, boxes):
        whole, row = share == 1.0, box // parts
        found += np.bincount(row[whole], held.variances[node[whole]], minlength=count)
        pairs.append((row * nodes + node)[~whole])
        shares.append(share[~whole])
    each, place = np.unique(np.concatenate(pairs), return_inverse=True)
    row, node = np.divmod(each, nodes)
    share = np.minimum(np.bincount(place, np.concatenate(shares), minlength=each.size), 1.0)
    inside = share * (1.0 - share) * held.squares[node]
    found += np.bincount(row, share**2 * held.variances[node] + inside, minlength=count)
    return found


def cover(density: Density, boxes: Sequence[Stretches]) -> Iterator[Cover]:
    """For each box the nodes that make it up, some pairs at a time, in no order.

    The tree is walked for many boxes at once, and memory does not grow with their number. Where there are
    few pairs in all, it is faster to look at each than to walk.
    """
    count = boxes[0].lows.size
    if count * density.nodes.children.size <= _BLOCK:
        yield from _at_a_look(density, boxes)
        return
    open_ = [_Pairs(np.arange(count), np.zeros(count, np.int64))]
    while open_:
        pairs, inside = _meeting(density, boxes, open_.pop())
        leaf = density.nodes.children[pairs.node] == 0
        full, cut, split = (pairs.where(chosen) for chosen in (inside, ~inside & leaf, ~inside & ~leaf))
        if full.box.size:
            yield Cover(*full, np.ones(full.box.size))
        if cut.box.size:
            yield Cover(*cut, _shares(density, boxes, cut))
        sizes = density.nodes.children[split.node]
        open_.extend(_children(density, split.where(part)) for part in blocks(sizes, _BLOCK))


def _at_a_look(density: Density, boxes: Sequence[Stretches]) -> Iterator[Cover]:
    """Of all pairs the nodes inside whose parents are not, and the leaves that are cut."""
    shape = boxes[0].lows.size, density.nodes.children.size
    inside, meets = np.ones(shape, bool), np.ones(shape, bool)
    for own, asked in zip(density.stretches, boxes, strict=True):
        first, last = asked.lows[:, None], asked.highs[:, None]
        inside &= (own.lows >= first) & (own.highs <= last)
        meets &= (own.lows <= last) & (own.highs >= first)
    whole = inside > inside.take(density.parents, axis=1)
    whole[:, 0] = inside[:, 0]
    full, cut = _chosen(whole), _chosen(meets & (density.nodes.leaves > inside))
    yield Cover(*full, np.ones(full.box.size))
    yield Cover(*cut, _shares(density, boxes, cut))


def _chosen(pairs: Bools) -> _Pairs:
    """The pairs that are true in a table of boxes and nodes."""
    return _Pairs(*np.divmod(np.flatnonzero(pairs), pairs.shape[1]))


def _meeting(density: Density, boxes: Sequence[Stretches], pairs: _Pairs) -> tuple[_Pairs, Bools]:
    """The pairs of which the node meets the box, and whether it lies inside."""
    inside = np.ones(pairs.box.size, bool)
    for own, asked in zip(density.stretches, boxes, strict=True):
        lows, highs = own.lows[pairs.node], own.highs[pairs.node]
        first, last = asked.lows[pairs.box], asked.highs[pairs.box]
        meets = (first <= highs) & (last >= lows)
        inside &= (first <= lows) & (last >= highs)
        pairs, inside = pairs.where(meets), inside[meets]
    return pairs, inside


def _shares(density: Density, boxes: Sequence[Stretches], pairs: _Pairs) -> Floats:
    share = np.ones(pairs.box.size)
    for own, asked in zip(density.stretches, boxes, strict=True):
        whole = own.at(pairs.node)
        share *= whole.shares(whole.within(asked.at(pairs.box)))
    return share


def _children(density: Density, parents: _Pairs) -> _Pairs:
    sizes = density.nodes.children[parents.node]
    return _Pairs(np.repeat(parents.box, sizes), children_of(density.nodes, parents.node))


def _worthwhile(work: int) -> bool:
    """Whether compiled code can be loaded, which takes a while, and pays."""
    return work >= _MUCH_WORK and find_spec("numba") is not None


def _compiled(density: Density, boxes: Sequence[Stretches], parts: int = 1) -> Summed:
    """The same by compiled code."""
    kernel = import_module("partita.public.compiled")
    nodes, curved = density.nodes, np.array([own.before is not None for own in density.stretches])
    own, asked = _ends(density.stretches), _ends(boxes)
    tree = nodes.lows, nodes.highs, nodes.starts, nodes.children
    corners = tuple(np.stack([getattr(box, end) for box in boxes], axis=1) for end in ("lows", "highs"))
    room = 1 + nodes.levels.size * int(nodes.children.max())
    return Summed(*kernel.sums(tree, own, tuple(density.held), corners, asked[:2], curved, room, parts))


def _ends(stretches: Sequence[Stretches]) -> tuple[Floats, Floats, Floats]:
    """The mass before stretches, up to their ends, and told, along every axis; zero where it is even."""
    before = [np.zeros(each.lows.size) if each.before is None else each.before for each in stretches]
    upto = [np.zeros(each.lows.size) if each.upto is None else each.upto for each in stretches]
    return (
        np.stack(before, axis=1),
        np.stack(upto, axis=1),
        np.stack([each.told for each in stretches], axis=1),
    )
