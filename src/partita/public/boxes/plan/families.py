"""The levels of a tree of boxes as children of their parents."""

from __future__ import annotations

import numpy as np

from partita.public.axis.curve.curve import Floats, Ints
from partita.public.axis.tree_solver.tree_shape import Families
from partita.public.boxes.plan.nodes import BoxNodes
from partita.public.boxes.plan.runs import runs


def families_of(nodes: BoxNodes) -> list[Families]:
    """Every level below the root, from the root down."""
    ends = np.cumsum(nodes.levels).tolist()
    return [_family(nodes, *bounds) for bounds in zip([0, *ends], ends, ends[1:], strict=False)]


def children_of(nodes: BoxNodes, parents: Ints) -> Ints:
    """The children of some expanded nodes, family by family."""
    return runs(nodes.starts[parents], nodes.children[parents])


def summed_up(families: list[Families], values: Floats) -> Floats:
    """The values of leaves, and for every other node the sum of its leaves."""
    sums = values.copy()
    for family in reversed(families):
        sums[family.parents] = family.sum(sums[family.nodes])
    return sums


def spans_of(nodes: BoxNodes, families: list[Families]) -> tuple[Ints, Ints]:
    """The leaves, put in an order, that each node is made of: how many come before them, and up to the last.

    Siblings follow each other, so that what is near in the tree is near in the order.
    """
    held = summed_up(families, nodes.leaves.astype(np.float64)).astype(np.int64)
    before = np.zeros_like(held)
    for family in families:
        upto = np.cumsum(held[family.nodes])
        first = (upto - held[family.nodes])[family.starts]
        begin = np.repeat(before[family.parents] - first, family.sizes)
        before[family.nodes] = begin + upto - held[family.nodes]
    return before, before + held


def _family(nodes: BoxNodes, start: int, middle: int, end: int) -> Families:
    parents = start + np.flatnonzero(nodes.children[start:middle])
    return Families(slice(middle, end), parents, nodes.starts[parents] - middle, nodes.children[parents])
