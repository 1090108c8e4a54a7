"""A public region, within a box, laid over a tree of boxes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from partita.public.axis.curve.curve import Bools, Floats, Ints
from partita.public.boxes.cover.asked import Asked, Coefficients, Layer
from partita.public.boxes.density.density import Density
from partita.public.boxes.density.measure import Measure, Stretches
from partita.public.boxes.density.passing import passed
from partita.public.boxes.plan.families import children_of
from partita.public.boxes.plan.nodes import Corners

Shares: TypeAlias = Callable[[Corners, Corners], Floats]
"""The share of each box, given by its corners, that lies in a region: 1 if all of it does, 0 if nothing."""

_MOST_PIECES: Final = 2**18
_MOST_CUTS: Final = 4


def within_region(density: Density, shares: Shares, box: Sequence[Stretches]) -> Asked:
    """How much lies in the region and in the box, a single one, as a question.

    Nodes that lie inside of both are taken whole, and leaves that are cut by the share inside. Where
    counts are not spread evenly such a leaf is first cut into smaller boxes.
    """
    nodes, layers = np.zeros(1, np.int64), []
    while True:
        layer = _layer(density, shares, box, nodes)
        layers.append(layer)
        if not bool(layer.split.any()):
            return Asked(density, layers)
        nodes = children_of(density.nodes, nodes[layer.split])


def _layer(density: Density, shares: Shares, box: Sequence[Stretches], nodes: Ints) -> Layer:
    """What is inside, outside, or cut, of some nodes."""
    wholes = [own.at(nodes) for own in density.stretches]
    meets, inside = _against(wholes, box)
    met, covered = np.flatnonzero(meets), np.zeros(nodes.size)
    parts = [own.at(met).within(asked) for own, asked in zip(wholes, box, strict=True)]
    covered[met] = shares(*_corners(parts))
    whole = inside & (covered == 1.0)
    open_, leaves = (covered > 0.0) & ~whole, density.nodes.leaves[nodes]
    cut = np.flatnonzero(open_ & leaves)
    pieces = [
        _Pieces.of(measure, own.at(cut), own.at(cut).within(asked), _cuts(density, cut.size))
        for measure, own, asked in zip(density.measures, wholes, box, strict=True)
    ]
    known = Coefficients.equal(whole.astype(np.float64))
    return Layer(nodes, open_ & ~leaves, known.replaced(cut, _partly(_covered(pieces, shares))))


def _against(nodes: Sequence[Stretches], box: Sequence[Stretches]) -> tuple[Bools, Bools]:
    """Whether each node meets the box, and whether it lies inside."""
    meets, inside = np.ones(nodes[0].lows.size, bool), np.ones(nodes[0].lows.size, bool)
    for own, asked in zip(nodes, box, strict=True):
        meets &= (asked.lows <= own.highs) & (asked.highs >= own.lows)
        inside &= (asked.lows <= own.lows) & (asked.highs >= own.highs)
    return meets, inside


def _partly(share: Floats) -> Coefficients:
    """Of leaves of which a share is inside."""
    return Coefficients(np.zeros_like(share), np.ones_like(share), share, share)


def _corners(stretches: Sequence[Stretches]) -> tuple[Corners, Corners]:
    lows, highs = [each.lows for each in stretches], [each.highs for each in stretches]
    return np.stack(lows, axis=1), np.stack(highs, axis=1)


def _cuts(density: Density, leaves: int) -> int:
    """Into how many pieces a leaf is cut along each axis that is not even."""
    curved = sum(measure.curve is not None for measure in density.measures)
    return max(1, min(_MOST_CUTS, int((_MOST_PIECES / max(1, leaves)) ** (1.0 / max(1, curved)))))


class _Pieces(NamedTuple):
    """Parts of stretches along an axis, a row for each, cut further; and the share of each piece."""

    lows: Corners
    highs: Corners
    share: Floats

    @staticmethod
    def of(measure: Measure, wholes: Stretches, parts: Stretches, cuts: int) -> _Pieces:
        """At equal steps of the measure, if there is any."""
        curve = measure.curve
        if curve is None or parts.before is None or parts.upto is None:
            return _Pieces(parts.lows[:, None], parts.highs[:, None], wholes.shares(parts)[:, None])
        steps = np.arange(1, cuts) / cuts
        inner = passed(curve, parts.before[:, None] + steps * (parts.upto - parts.before)[:, None])
        inner = np.clip(inner, parts.lows[:, None], parts.highs[:, None])
        behind = parts.highs[:, None] + np.uint64(1)
        edges = np.concatenate([parts.lows[:, None], inner, behind], axis=1)
        lows, there = edges[:, :-1], edges[:, 1:] > edges[:, :-1]
        highs = np.where(there, edges[:, 1:] - np.uint64(1), lows)
        each = wholes.at(np.repeat(np.arange(len(lows)), cuts))
        share = each.shares(Stretches.of(measure, lows.ravel(), highs.ravel())).reshape(lows.shape)
        return _Pieces(lows, highs, np.where(there, share, 0.0))


def _covered(axes: Sequence[_Pieces], shares: Shares) -> Floats:
    """The share of each leaf that is covered: that of all products of its pieces, added up."""
    chosen = np.indices([axis.share.shape[1] for axis in axes]).reshape(len(axes), -1)
    weight = np.prod([axis.share[:, at] for axis, at in zip(axes, chosen, strict=True)], axis=0)
    lows = np.stack([axis.lows[:, at].ravel() for axis, at in zip(axes, chosen, strict=True)], axis=1)
    highs = np.stack([axis.highs[:, at].ravel() for axis, at in zip(axes, chosen, strict=True)], axis=1)
    return np.asarray((weight * shares(lows, highs).reshape(weight.shape)).sum(axis=1))
