"""Monotone regression: the closest numbers that never fall [SU, section 2; HRMS10]."""

from __future__ import annotations

from typing import Final

import numpy as np

from partita.public.axis.curve.curve import Curve, Floats, UInts

_ROUNDS: Final = 40


def curve_through(ends: UInts, prefixes: Floats) -> Curve:
    """The curve whose counts up to each end are as close to `prefixes` as counts can be.

    Counts are never negative, so the prefixes of a curve rise from zero on. Where a bound is added
    to a monotone regression, the solution is the regression without it, clipped.
    """
    upto = np.maximum(rising(prefixes), 0.0)
    return Curve(ends, np.maximum(np.diff(upto, prepend=0.0), 0.0))


def rising(values: Floats) -> Floats:
    """The sequence closest to `values` in least squares among those that never fall.

    Pool adjacent violators: two neighbouring blocks, the first with the higher mean, have one
    value in the solution. So whole falling runs of blocks are pooled at once, again and again; what
    is not done after some rounds is finished one block at a time, in linear time.

    >>> rising(np.array([1.0, 3.0, 2.0, 0.0, 9.0])).tolist()
    [1.0, 1.6666666666666667, 1.6666666666666667, 1.6666666666666667, 9.0]
    """
    sums, sizes = np.asarray(values, dtype=np.float64), np.ones(len(values))
    for _ in range(_ROUNDS):
        means = sums / sizes
        starts = np.flatnonzero(np.concatenate([[True], means[1:] >= means[:-1]]))
        if starts.size == sums.size:
            return np.repeat(means, sizes.astype(np.int64))
        sums, sizes = np.add.reduceat(sums, starts), np.add.reduceat(sizes, starts)
    return _pooled(sums, sizes)


def _pooled(sums: Floats, sizes: Floats) -> Floats:
    """Blocks from left to right; each joins those before it while it lies below them."""
    blocks: list[tuple[float, float]] = []
    for total, size in zip(sums.tolist(), sizes.tolist(), strict=True):
        while blocks and blocks[-1][0] * size > total * blocks[-1][1]:
            before, width = blocks.pop()
            total, size = total + before, size + width
        blocks.append((total, size))
    pooled = np.array(blocks)
    return np.repeat(pooled[:, 0] / pooled[:, 1], pooled[:, 1].astype(np.int64))
