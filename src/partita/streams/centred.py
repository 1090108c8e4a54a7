"""The errors of a centred tree, period after period: the consistent estimator, run online.

Every node of a tree has noise of its own. A node's error is its noise, refined by that of its children;
then siblings are moved by equal amounts, so that they add up to the error of their parent. Nothing here
sees data: a counter adds these errors to what it counts. See docs/proofs/counter.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np

from partita.errors import InvalidState
from partita.noise.protocol import IntegerArray, Noise
from partita.streams.branching import ROUNDS, SHARES, TAPERS, WEIGHTS, Plan
from partita.streams.integers import NARROW_NOISE, Row, integers, is_wide, row

__all__ = ["BITS", "CentredPath", "widest_scale"]

BITS: Final = 16
"""Errors are integers in units of 2^-BITS."""

_FINE: Final = 1 << BITS
_AT_ONCE: Final = 1 << 18


class _Row(NamedTuple):
    """Nodes next to each other: the error of each, and the noise of its children."""

    errors: IntegerArray
    below: IntegerArray

    def part(self, nodes: slice) -> _Row:
        return _Row(self.errors[nodes], self.below[nodes])


class CentredPath:
    """The errors of one tree, from its first period to its last.

    A row of siblings is kept for each level from 2 on; the errors of all periods under the open node of
    level 2 (of all there are, in a tree with fewer levels) are worked out at once. What is open follows
    from the position alone.
    """

    def __init__(self, plan: Plan, rate: Fraction, noise: Noise) -> None:
        self.plan = plan
        self.rate = rate
        self.position = 0
        self._noise = noise
        self._rows: dict[int, _Row] = {}
        self._leaves: list[int] = []
        self._small = plan.levels <= 2
        self._span = plan.blocks * plan.block if self._small else plan.branching**2
        self._wide = is_wide(self._scale(min(plan.low, plan.top), max(plan.taper)))

    @property
    def left(self) -> int:
        """How many periods are left."""
        return self.plan.horizon - self.position

    def step(self) -> int:
        """The error of the next period."""
        offset = self.position % self._span
        if not offset:
            self._open(0)
        self.position += 1
        return self._leaves[offset]

    def many(self, periods: int) -> IntegerArray:
        """The error of each of the next periods."""
        goal, pieces = self.position + periods, [self._array([])]
        while self.position < goal:
            level, nodes = self._run(goal, most=_AT_ONCE)
            pieces.append(
                self._expanded(level, self._rows[level].part(nodes))
                if level
                else self._array(self._leaves[nodes])
            )
            self._move(level, nodes)
        return np.asarray(np.concatenate(pieces))

    def skip(self, periods: int) -> int:
        """The error of the next periods together: of whole siblings, as far as they reach."""
        goal, total = self.position + periods, 0
        while self.position < goal:
            level, nodes = self._run(goal, most=goal)
            errors: Any = self._rows[level].errors if level else self._leaves
            total += sum(map(int, errors[nodes]))
            self._move(level, nodes)
        return total

    def fields(self) -> dict[str, Row]:
        """What is drawn, as rows of a state whose lengths follow from the plan."""
        leaves = self._leaves or [0] * self._span
        arrays = {"leaves": self._array(leaves)}
        for level in range(2, self.plan.levels):
            errors, below = self._rows.get(level) or self._blank(level)
            arrays |= {f"errors {level}": errors, f"below {level}": below}
        return {name: row(array) for name, array in arrays.items()}

    def restore(self, fields: Mapping[str, list[int]], periods: int) -> None:
        """Go on with what was drawn before."""
        if not 0 <= periods <= self.plan.horizon or len(fields["leaves"]) != self._span:
            raise InvalidState("state", "must fit its plan", fix="restore it from where it was stored")
        self.position = periods
        self._leaves = fields["leaves"]
        for level in range(2, self.plan.levels):
            shape = self._blank(level).below.shape
            below = self._array(fields[f"below {level}"]).reshape(shape)
            self._rows[level] = _Row(self._array(fields[f"errors {level}"]).reshape(shape[:1]), below)

    def _blank(self, level: int) -> _Row:
        size = self._size(level)
        return _Row(self._array([0] * size), self._array([0] * size * self.plan.branching).reshape(size, -1))

    def _run(self, goal: int, *, most: int) -> tuple[int, slice]:
        """The longest run of whole siblings that begins here: their level and places. Their row is open."""
        level = self._level(min(goal - self.position, most))
        self._open(level)
        width, size = self.plan.branching**level, self._size(level)
        first = self.position // width % size
        count = min((goal - self.position) // width, size - first, max(1, most // width))
        if level == self.plan.levels - 1 and most < goal:
            count = 1
        return level, slice(first, first + count)

    def _level(self, periods: int) -> int:
        """The highest level of which a node begins here and ends within so many periods."""
        level = 0
        for higher in range(2, self.plan.levels):
            if self.position % self.plan.branching**higher or self.plan.branching**higher > periods:
                break
            level = higher
        return level

    def _size(self, level: int) -> int:
        """How many nodes a row of siblings has; below level 2, how many periods are worked out at once."""
        if not level:
            return self._span
        return self.plan.blocks if level == self.plan.levels - 1 else self.plan.branching

    def _move(self, level: int, nodes: slice) -> None:
        self.position += (nodes.stop - nodes.start) * self.plan.branching**level

    def _open(self, level: int) -> None:
        """Draw the rows that begin here, from the top down to a level."""
        top = self.plan.levels - 1
        if not self.position and not self._small:
            self._rows[top] = self._top()
        for above in range(top, max(level, 2), -1):
            if not self.position % self.plan.branching**above:
                self._rows[above - 1] = self._children(above, self._node(above))
        if not level and not self.position % self._span:
            start, nodes = (top, self._top()) if self._small else (2, self._node(2))
            self._leaves = self._expanded(start, nodes).tolist()

    def _node(self, level: int) -> _Row:
        """The open node of a level."""
        place = self.position // self.plan.branching**level % self._size(level)
        return self._rows[level].part(slice(place, place + 1))

    def _expanded(self, level: int, row: _Row) -> IntegerArray:
        """The errors of all periods under these nodes of a level."""
        for above in range(level, 0, -1):
            row = self._children(above, row)
        return row.errors

    def _children(self, level: int, row: _Row) -> _Row:
        """The children of these nodes of a level, in one long row."""
        below = self._drawn((row.below.size, self.plan.branching if level > 1 else 0))
        own = self._refined(level - 1, row.below.ravel(), below)
        return _Row(_moved(row.errors, own.reshape(row.below.shape)), below)

    def _top(self) -> _Row:
        """The blocks: their noise, refined, and corrected by the tapered sum over all of them."""
        plan = self.plan
        shares = [plan.top, *[plan.low] * (plan.branching if plan.levels > 1 else 0)]
        parts = np.outer(TAPERS - np.array(plan.tapers, dtype=np.int64), shares)
        total = [SHARES] if any(plan.taper) else []
        drawn = self._kept(self._draw_parts(np.concatenate([total, parts.ravel()]).astype(np.int64)))
        blocks = drawn[len(total) :].reshape(parts.shape)
        own = self._refined(plan.levels - 1, blocks[:, 0], blocks[:, 1:])
        return _Row(
            self._array(self._corrected(own.tolist(), [*map(int, drawn[: len(total)])])), blocks[:, 1:]
        )

    def _corrected(self, own: list[int], total: list[int]) -> list[int]:
        """The blocks with what is due to them of the tapered sum's surplus."""
        surplus = sum(noise << BITS for noise in total)
        surplus -= sum(taper * error for taper, error in zip(self.plan.tapers, own, strict=True))
        due = [share * surplus // (ROUNDS * TAPERS) for share in self.plan.corrections]
        return [error + after - before for error, (before, after) in zip(own, pairwise(due), strict=True)]

    def _refined(self, level: int, own: IntegerArray, below: IntegerArray) -> IntegerArray:
        """The noise of each node, averaged with that of its children; in units of 2^-BITS."""
        if not below.shape[1]:
            return own << BITS
        children = below.sum(axis=1)
        apart: Any = (own - children) * (_FINE // WEIGHTS)
        refined: IntegerArray = (children << BITS) + self.plan.weight(level) * apart
        return refined

    def _scale(self, share: int, taper: int) -> Fraction:
        return widest_scale(self.rate) / (share * (TAPERS - taper))

    def _drawn(self, shape: tuple[int, int]) -> IntegerArray:
        """Noise for nodes below the top row, under the open block."""
        taper = self.plan.tapers[self.position // self.plan.block]
        zeros = np.zeros(shape, dtype=np.int64)
        return self._kept(self._noise.add(zeros, self._scale(self.plan.low, taper)) if zeros.size else zeros)

    def _draw_parts(self, parts: IntegerArray) -> IntegerArray:
        zeros = np.zeros(parts.shape, dtype=np.int64)
        drawn: IntegerArray = self._noise.add(zeros, widest_scale(self.rate), parts=parts)
        return drawn

    def _kept(self, noise: IntegerArray) -> IntegerArray:
        return integers(noise, wide=self._wide, below=NARROW_NOISE)

    def _array(self, errors: Sequence[int]) -> IntegerArray:
        return integers(errors, wide=self._wide)


def widest_scale(rate: Fraction) -> Fraction:
    """The scale of which the scales of all nodes are parts."""
    return SHARES * TAPERS / rate


def _moved(errors: IntegerArray, own: Any) -> IntegerArray:
    """Each row of siblings moved by equal amounts to add up to its error; in order, what is left over."""
    k = own.shape[1]
    missing = errors - own.sum(axis=1)
    due = np.multiply.outer(missing, np.arange(k + 1)) // k
    moved: IntegerArray = (own + np.diff(due, axis=1)).ravel()
    return moved
