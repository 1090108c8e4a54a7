"""The Numba kernel for sums over many boxes: the sums of `cover`, box by box, up to rounding."""

from __future__ import annotations

import numpy as np
from numba import njit

# mypy: ignore-errors


@njit(cache=True, nogil=True)
def sums(tree, ends, held, boxes, box_ends, curved, room, parts):
    """The values of boxes, by a walk from the root for each, and the variances of sums of `parts` of them.

    `tree` is (lows, highs, starts, children) of nodes, `boxes` is (lows, highs); where an axis is
    `curved`, `ends` is (before, upto, mass) of nodes and `box_ends` is (before, upto). `room` is the most
    nodes that can wait to be visited.
    """
    lows, highs, starts, children = tree
    before, upto, mass = ends
    values, variances, squares = held
    firsts, lasts = boxes
    box_before, box_upto = box_ends
    count, axes = firsts.shape
    found, doubt = np.zeros(count), np.zeros(count // parts)
    waiting = np.empty(room, np.int64)
    cut, leaves, number = np.zeros(values.size), np.empty(values.size, np.int64), 0
    for box in range(count):
        waiting[0] = 0
        left = 1
        while left:
            left -= 1
            node = waiting[left]
            inside, meets = True, True
            for a in range(axes):
                if firsts[box, a] > highs[node, a] or lasts[box, a] < lows[node, a]:
                    meets = False
                    break
                if firsts[box, a] > lows[node, a] or lasts[box, a] < highs[node, a]:
                    inside = False
            if not meets:
                continue
            if not inside and children[node]:
                for child in range(starts[node], starts[node] + children[node]):
                    waiting[left] = child
                    left += 1
                continue
            share = 1.0
            if not inside:
                for a in range(axes):
                    if curved[a] and mass[node, a] > 0.0:
                        inner = min(upto[node, a], box_upto[box, a]) - max(
                            before[node, a], box_before[box, a]
                        )
                        share *= max(inner, 0.0) / mass[node, a]
                    else:
                        last, first = min(highs[node, a], lasts[box, a]), max(lows[node, a], firsts[box, a])
                        share *= (float(last - first) + 1.0) / (float(highs[node, a] - lows[node, a]) + 1.0)
            found[box] += share * values[node]
            if inside:
                doubt[box // parts] += variances[node]
            elif share > 0.0:
                if cut[node] == 0.0:
                    leaves[number] = node
                    number += 1
                cut[node] += share
        if box % parts == parts - 1:
            for place in range(number):
                node = leaves[place]
                share = min(cut[node], 1.0)
                doubt[box // parts] += share * share * variances[node] + share * (1.0 - share) * squares[node]
                cut[node] = 0.0
            number = 0
    return found, doubt
