"""Rank coordinates of an axis: slots that hold about equally many rows each, by a released curve."""

from __future__ import annotations

from typing import Final

import numpy as np

from partita.public.axis.curve.curve import Curve, Floats, UInts
from partita.public.boxes.density.passing import reached

_EVEN_SHARE: Final = 1e-6


def distribution(curve: Curve) -> Curve:
    """The shares of all pieces of a curve; a millionth is spread evenly, so that no cell has none.

    >>> distribution(Curve(np.array([0, 3], np.uint64), np.array([3.0, 1.0]))).counts.round(3).tolist()
    [0.75, 0.25]
    """
    even = curve.widths / curve.widths.sum()
    shares = curve.counts / curve.total if curve.total > 0 else even
    return Curve(curve.ends, (1.0 - _EVEN_SHARE) * shares + _EVEN_SHARE * even)


def rank_edges(shares: Curve, bits: int) -> UInts:
    """Where each of 2^bits slots begins, and where the last one ends, in a distribution.

    They are positions from 0 to the width of the axis that never decrease: a heavy cell makes slots
    of no width.

    >>> rank_edges(distribution(Curve(np.array([0, 3], np.uint64), np.array([3.0, 1.0]))), 2).tolist()
    [0, 0, 1, 1, 4]
    """
    inner = positions_at(shares, np.arange(1.0, 2**bits) / 2**bits)
    ends = np.array([0, int(shares.ends[-1]) + 1], np.uint64)
    return np.concatenate([ends[:1], inner, ends[1:]])


def positions_at(shares: Curve, ranks: Floats) -> UInts:
    """The position nearest to each rank between 0 and 1: how many positions a distribution has before it.

    They need all 64 bits, so a place inside a piece becomes an integer before it is added.
    """
    piece, inside = reached(shares, ranks * shares.total)
    widths = shares.ends - shares.starts + np.uint64(1)
    steps = np.minimum(np.rint(inside * shares.widths[piece]).astype(np.uint64), widths[piece])
    return np.asarray(shares.starts[piece] + steps)


def ranks_of(shares: Curve, edges: UInts) -> Floats:
    """The rank at which each position begins in a distribution, from 0 to 1."""
    return np.where(edges > 0, shares.upto(np.maximum(edges, np.uint64(1)) - np.uint64(1)), 0.0)


def trimmed(edges: UInts) -> UInts:
    """Edges of fewer slots, still a power of two, that lie at the same places.

    Halvings that no longer separate positions are left out, as those of an axis of few cells.

    >>> trimmed(np.array([0, 0, 1, 1, 4], np.uint64)).tolist()
    [0, 1, 4]
    """
    places = _places(edges)
    while edges.size > 2 and _places(edges[::2]) == places:
        edges = edges[::2]
    return edges


def _places(edges: UInts) -> int:
    """At how many places there are edges."""
    return int(np.count_nonzero(np.diff(edges))) + 1
