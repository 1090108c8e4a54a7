"""A signed sum of boxes, laid over a tree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, final

import numpy as np

from partita.public.axis.curve.curve import Bools, Floats, Ints
from partita.public.boxes.cover.asked import Asked, Coefficients, Layer
from partita.public.boxes.density.density import Density
from partita.public.boxes.density.measure import Stretches
from partita.public.boxes.plan.families import children_of
from partita.public.boxes.plan.nodes import SignedBox
from partita.public.boxes.plan.runs import blocks, runs

_BLOCK: Final = 2**18


def without_equals(terms: Iterable[SignedBox]) -> list[SignedBox]:
    """The same sum; boxes that are added and taken away alike are left out."""
    times = Counter[tuple[tuple[int, ...], tuple[int, ...]]]()
    for low, high, sign in terms:
        times[low, high] += sign
    return [(low, high, sign) for (low, high), sign in times.items() if sign]


def laid_out(density: Density, boxes: tuple[Stretches, ...], signs: Floats) -> Asked:
    """The signed sum of boxes as one question.

    A node in which no box ends has one coefficient, the sum of the signs of the boxes around it: where
    boxes overlap they cancel, on the highest nodes on which they can.
    """
    front = _Front.of(density, boxes, signs)
    layers = []
    while True:
        layer = front.layer()
        layers.append(layer)
        if not bool(layer.split.any()):
            return Asked(density, layers)
        front = front.below(layer)


class _Pairs(NamedTuple):
    """Terms that end inside of nodes, which are numbered by their places in the layer."""

    term: Ints
    place: Ints

    def where(self, chosen: Bools | Ints) -> _Pairs:
        return _Pairs(self.term[chosen], self.place[chosen])


@final
@dataclass(frozen=True, eq=False)
class _Front:
    """The nodes that are looked at: what is added for all rows of each, and the terms that end in it."""

    density: Density
    boxes: tuple[Stretches, ...]
    signs: Floats
    nodes: Ints
    base: Floats
    pairs: _Pairs

    @staticmethod
    def of(density: Density, boxes: tuple[Stretches, ...], signs: Floats) -> _Front:
        """The root, and all terms."""
        pairs = _Pairs(np.arange(signs.size), np.zeros(signs.size, np.int64))
        root = np.zeros(1, np.int64)
        return _Front(density, boxes, signs, root, np.zeros(1), pairs)._settled()

    def layer(self) -> Layer:
        """What is known of these nodes."""
        open_ = np.zeros(self.nodes.size, bool)
        open_[self.pairs.place] = True
        leaves = self.density.nodes.leaves[self.nodes]
        cut = np.flatnonzero(open_ & leaves)
        known = Coefficients.equal(self.base)
        return Layer(self.nodes, open_ & ~leaves, known.replaced(cut, self._in_leaves(cut)))

    def below(self, layer: Layer) -> _Front:
        """The children of the nodes that are split, which inherit what was added and the terms."""
        split = np.flatnonzero(layer.split)
        sizes = self.density.nodes.children[self.nodes[split]]
        starts = np.zeros(self.nodes.size, np.int64)
        starts[split] = np.cumsum(sizes) - sizes
        pairs = self.pairs.where(layer.split[self.pairs.place])
        many = self.density.nodes.children[self.nodes[pairs.place]]
        return _Front(
            self.density,
            self.boxes,
            self.signs,
            children_of(self.density.nodes, self.nodes[split]),
            np.repeat(self.base[split], sizes),
            _Pairs(np.repeat(pairs.term, many), runs(starts[pairs.place], many)),
        )._settled()

    def _settled(self) -> _Front:
        """Only terms that end inside of a node stay with it; those around it are added for all of it."""
        inside, pairs = np.ones(self.pairs.term.size, bool), self.pairs
        for own, asked in zip(self.density.stretches, self.boxes, strict=True):
            node = self.nodes[pairs.place]
            first, last = asked.lows[pairs.term], asked.highs[pairs.term]
            meets = (first <= own.highs[node]) & (last >= own.lows[node])
            inside &= (first <= own.lows[node]) & (last >= own.highs[node])
            pairs, inside = pairs.where(meets), inside[meets]
        around = pairs.where(inside)
        base = self.base + np.bincount(around.place, self.signs[around.term], minlength=self.nodes.size)
        return _Front(self.density, self.boxes, self.signs, self.nodes, base, pairs.where(~inside))

    def _in_leaves(self, cut: Ints) -> Coefficients:
        """The coefficients of leaves that are cut: boxes end in them, and may overlap there."""
        pairs = self.pairs.where(np.isin(self.pairs.place, cut))
        pairs = pairs.where(np.argsort(pairs.place, kind="stable"))
        node = self.nodes[pairs.place]
        wholes = [own.at(node) for own in self.density.stretches]
        parts = [whole.within(box.at(pairs.term)) for whole, box in zip(wholes, self.boxes, strict=True)]
        ends = _Ends(np.searchsorted(cut, pairs.place), self.signs[pairs.term], wholes, parts)
        return ends.coefficients(self.base[cut])


@final
@dataclass(frozen=True, eq=False)
class _Ends:
    """Parts of leaves that are added with a sign, in the order of the leaves, along each axis."""

    leaf: Ints
    signs: Floats
    wholes: Sequence[Stretches]
    parts: Sequence[Stretches]

    def coefficients(self, base: Floats) -> Coefficients:
        """Those of each leaf, to all of which `base` is added before."""
        shares = _product([whole.shares(part) for whole, part in zip(self.wholes, self.parts, strict=True)])
        mean = self._sum(self.signs * shares, base.size)
        square = self._sum(self.signs**2 * shares, base.size)
        sides = [np.maximum(side * self.signs, 0.0) for side in (1, -1)]
        most, least = (self._largest(side, base.size) for side in sides)
        for one, other in self._overlaps():
            leaf, both = self.leaf[one], self.signs[one] * self.signs[other]
            square += np.bincount(leaf, 2.0 * both * self._common(one, other), minlength=base.size)
            for side, end in zip(sides, (most, least), strict=True):
                together = leaf[(side[one] > 0) & (side[other] > 0)]
                end[together] = self._sum(side, base.size)[together]
        return Coefficients(base - least, base + most, base + mean, base**2 + 2 * base * mean + square)

    def _sum(self, numbers: Floats, count: int) -> Floats:
        return np.asarray(np.bincount(self.leaf, numbers, minlength=count), np.float64)

    def _largest(self, numbers: Floats, count: int) -> Floats:
        largest = np.zeros(count)
        np.maximum.at(largest, self.leaf, numbers)
        return largest

    def _overlaps(self) -> Iterator[tuple[Ints, Ints]]:
        """Parts of the same leaf that overlap, in pairs; some of them at a time."""
        each = np.arange(self.leaf.size)
        later = np.searchsorted(self.leaf, self.leaf, side="right") - each - 1
        for some in blocks(later, _BLOCK):
            one, other = np.repeat(each[some], later[some]), runs(each[some] + 1, later[some])
            overlap = np.ones(one.size, bool)
            for part in self.parts:
                overlap &= part.lows[one] <= part.highs[other]
                overlap &= part.lows[other] <= part.highs[one]
            yield one[overlap], other[overlap]

    def _common(self, one: Ints, other: Ints) -> Floats:
        """The share of the leaf that two overlapping parts of it have in common."""
        return _product(
            [
                whole.at(one).shares(part.at(one).within(part.at(other)))
                for whole, part in zip(self.wholes, self.parts, strict=True)
            ]
        )


def _product(shares: Sequence[Floats]) -> Floats:
    return np.asarray(np.prod(np.array(shares), axis=0))
