"""Bounds on all prefixes of units at once, from noisy tents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from partita.public.axis.curve.curve import Floats
from partita.public.axis.tent_solver.tent_counts import TentCounts
from partita.public.axis.tent_solver.tent_strategy import GRAIN, GRAIN_BITS, TentLevel, TentStrategy
from partita.public.bounds.tails import chernoff, log_moments

_POINTS: Final = 24


def prefix_bounds(counts: TentCounts, beta: float) -> tuple[Floats, Floats]:
    """Bounds on the count of the first 0, 1, ..., k units; with probability 1 - beta all of them hold.

    A prefix of a level is a prefix of the tents above it, which ends in a slope, plus the difference
    between the slope and the step: a few nodes under the slope, near the end of the prefix. So every
    prefix of units is a sum of noisy numbers with known weights, about as good as least squares and free
    of solves. Their noise is bounded as in `tails`, one side of one prefix at beta / 2k.
    """
    limit = float(min(counts.shares) * counts.rate)
    points = limit * (1.0 - np.geomspace(1.0, 1e-3, _POINTS)[1:])
    reach = np.full(counts.units + 1, np.inf)
    for x in points:
        np.minimum(reach, chernoff(x, _log_moments(counts, x), beta / (2 * counts.units)), out=reach)
    reach[0] = 0.0
    values = _values(counts)
    return values - reach, values + reach


class _Parts(NamedTuple):
    """What each node of a level adds to a sum over a prefix: if it lies before the end, and if behind."""

    before: Floats
    behind: Floats


def _values(counts: TentCounts) -> Floats:
    """The estimate of every prefix."""
    *lower, top = counts.by_level
    parts = [
        _Parts(level.weights * values, (level.weights - 1.0) * values)
        for level, values in zip(counts.strategy.levels, lower, strict=True)
    ]
    return _prefix_sums(counts.strategy, parts, top)


def _log_moments(counts: TentCounts, x: float) -> Floats:
    """ln E[exp(x error)] of the estimate of every prefix."""
    weights = np.arange(GRAIN + 1) / GRAIN
    tables = [
        log_moments(x * 0.5 ** (GRAIN_BITS * level) * weights, np.full(GRAIN + 1, float(rate)))
        for level, rate in enumerate(counts.rates)
    ]
    parts = [
        _Parts(table[level.right], table[GRAIN - level.right])
        for level, table in zip(counts.strategy.levels, tables, strict=False)
    ]
    return _prefix_sums(counts.strategy, parts, np.full(counts.levels[-1].size, tables[-1][GRAIN]))


def _prefix_sums(strategy: TentStrategy, parts: Sequence[_Parts], top: Floats) -> Floats:
    """The sums over all prefixes of units, from those over the prefixes of the top level downwards."""
    sums = np.concatenate([[0.0], np.cumsum(top)])
    for level, nodes in zip(reversed(strategy.levels), reversed(parts), strict=True):
        sums = _one_level_down(level, nodes, sums)
    return sums


def _one_level_down(level: TentLevel, nodes: _Parts, above: Floats) -> Floats:
    """The sums over prefixes of nodes from those over prefixes of tents.

    The prefix that ends with node i takes the tents up to i's left one; the nodes with the same left
    tent make the step of its slope.
    """
    before, behind = (np.concatenate([[0.0], np.cumsum(values)]) for values in nodes)
    count = level.left.size
    first, after = level.firsts[level.left], np.append(level.firsts[1:], count)[level.left]
    ends = np.arange(1, count + 1)
    sums = above[level.left + 1] + before[ends] - before[first] + behind[after] - behind[ends]
    return np.concatenate([[0.0], sums[:-1], above[-1:]])
