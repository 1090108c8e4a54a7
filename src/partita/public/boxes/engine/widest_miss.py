"""One bound for all boxes at once: from the ranges of all nodes, and from the last looks at leaves.

A box is whole nodes and parts of leaves. The parent of a whole node is cut by a side of the box, and the
node lies inside of that side; a leaf of which a part is taken is cut by a side itself. So the error is
at most the sum, over the sides, of what each has inside of it or cuts, and for each side the worst
plane is taken. Answers that are too large and too small are told apart. The proofs are in
docs/proofs/boxes_bounds.md.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from partita.public.axis.curve.curve import Floats, UInts
from partita.public.axis.spending_tree.node_ranges import NodeRange
from partita.public.bounds.tails import laplace_mix_reach
from partita.public.boxes.density.density import Density
from partita.public.boxes.plan.families import summed_up

_ROUNDING: Final = 1e-9


def widest_miss(density: Density, ranges: NodeRange) -> float:
    """The largest error that any box can have if the count of every node lies in its range.

    Nor is any answer, or any count, larger than that of everything.
    """
    values = density.held.values
    above = _sides(density, np.maximum(values - ranges.low, 0.0), values)
    below = _sides(density, np.maximum(ranges.high - values, 0.0), ranges.high)
    whole = max(values[0] - ranges.low[0], ranges.high[0] - values[0])
    most = max(values[0], ranges.high[0])
    return float(min(most, max(above, below, whole)) * (1.0 + _ROUNDING))


def widest_miss_of_looks(density: Density, looks: Floats, rates: Floats, beta: float) -> float:
    """The largest error that any box can have with probability 1 - beta, if leaves are fixed.

    Every leaf has a look of its own, independent of the others, with noise of its rate; both are given for
    all nodes. Boxes hold, or meet, no more than so many different sets of leaves, and the sum of the
    looks at a set misses by no more than it may for all leaves.
    """
    leaves, values = density.nodes.leaves, density.held.values
    off = values - summed_up(density.families, np.where(leaves, looks, 0.0))
    above = _sides(density, np.maximum(off, 0.0), values)
    below = _sides(density, np.maximum(-off, 0.0), np.maximum(looks, 0.0))
    sets = 2 * math.prod(np.unique(each.lows[leaves]).size ** 2 for each in density.stretches)
    reach = laplace_mix_reach(np.ones(int(leaves.sum())), rates[leaves], beta / sets)
    return float((max(above, below, abs(off[0])) + reach) * (1.0 + _ROUNDING))


def _sides(density: Density, nodes: Floats, leaves: Floats) -> float:
    """The worst that nodes beside the sides of a box, and leaves across them, can do together."""
    parents, cut, total = density.parents, density.nodes.leaves, 0.0
    numbers = np.concatenate([nodes, leaves[cut]])
    for axis in density.stretches:
        lower = _worst((axis.lows[parents], axis.lows[cut]), (axis.lows, axis.highs[cut]), numbers)
        upper = _worst((axis.highs, axis.lows[cut]), (axis.highs[parents], axis.highs[cut]), numbers)
        total += lower + upper
    return total


def _worst(before: tuple[UInts, UInts], last: tuple[UInts, UInts], numbers: Floats) -> float:
    """The largest sum of numbers that one plane meets, each behind `before` and up to `last`."""
    first, behind = np.concatenate(before), np.concatenate(last)
    met = behind > first
    places, at = np.unique(np.concatenate([first[met], behind[met]]), return_inverse=True)
    steps = np.concatenate([numbers[met], -numbers[met]])
    return float(np.cumsum(np.bincount(at, steps, minlength=places.size)).max(initial=0.0))
