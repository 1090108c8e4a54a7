"""Cumulative counts along an axis of cells: monotone, linear inside pieces, exact positions.

`fit_monotone` and `fit_curve` make them from noisy prefixes, `refine` and `shift_sparse_segments` guess
where the rows of a piece lie inside of it, and `apportion` rounds counts to whole numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from partita.arrays import Floats, UInts
from partita.lazy import cached_property

_ONE: Final = np.uint64(1)
_UNLIKE: Final = 30.0
"""Neighbouring densities that differ by more, as beside a heavy cell or a gap, say nothing of each other."""


@final
@dataclass(frozen=True, eq=False)
class Curve:
    """Pieces of the cells 0, ..., ends[-1] and a count >= 0 for each, spread evenly inside.

    `ends` holds the last cell of each piece, increasing. Cells may need all 64 bits, so positions
    inside a piece are differences of integers, made floats last.

    >>> curve = Curve(np.array([3, 9], np.uint64), np.array([8.0, 0.0]))
    >>> curve.upto(np.array([0, 3, 9], np.uint64)).tolist(), curve.between(np.uint64(1), np.uint64(5)).item()
    ([2.0, 8.0, 8.0], 6.0)
    """

    ends: UInts
    counts: Floats

    @staticmethod
    def empty(ends: UInts) -> Curve:
        """Pieces with nothing in them: for questions about their cells alone."""
        return Curve(ends, np.zeros(ends.size))

    @cached_property
    def starts(self) -> UInts:
        """The first cell of each piece."""
        return np.concatenate([np.zeros(1, np.uint64), self.ends[:-1] + _ONE])

    @cached_property
    def widths(self) -> Floats:
        """The number of cells of each piece."""
        return (self.ends - self.starts).astype(np.float64) + 1.0

    @cached_property
    def before(self) -> Floats:
        """The count before each piece, and of all pieces at the end."""
        return np.concatenate([np.zeros(1), np.cumsum(self.counts)])

    @property
    def total(self) -> float:
        """The count of all cells."""
        return float(self.before[-1])

    def upto(self, cells: UInts) -> Floats:
        """The count of the cells 0, ..., cell, for each cell; looked up in order, which is faster."""
        order = np.argsort(cells, axis=None)
        found = np.empty(order.size)
        found[order] = self._upto(np.ravel(cells)[order])
        return found.reshape(np.shape(cells))

    def between(self, lows: UInts, highs: UInts) -> Floats:
        """The count of the cells low, ..., high, for each pair."""
        below = np.where(lows > 0, self.upto(np.where(lows > 0, lows - _ONE, lows)), 0.0)
        return np.asarray(self.upto(highs) - below)

    def _upto(self, cells: UInts) -> Floats:
        piece = np.searchsorted(self.ends, cells)
        share = ((cells - self.starts[piece]).astype(np.float64) + 1.0) / self.widths[piece]
        return np.asarray(self.before[piece] + share * self.counts[piece])


_UNITS: Final = 2**50
"""Weights are rounded to this part of their sum, so that shares are exact from there on."""


def apportion(seats: int, weights: Floats) -> NDArray[np.int64]:
    """`seats` shared out in proportion to weights >= 0, of which one is positive.

    Every share is its quota rounded down or up, and so is, to one seat, the sum of neighbouring
    shares: cumulative quotas are rounded. Plain largest remainders would hand all seats to the
    heaviest weights, or to the first of equal ones, where there are fewer seats than weights.
    Weights become multiples of 2^-50 of their sum; from there on everything is exact.

    >>> apportion(10, np.array([1.0, 1.0, 1.0])).tolist(), apportion(2, np.ones(6)).tolist()
    ([3, 4, 3], [0, 1, 0, 0, 1, 0])
    """
    units = np.rint(weights / weights.sum() * _UNITS).astype(np.int64)
    upto: NDArray[Any] = np.cumsum(units).astype(object)
    rounded = (2 * seats * upto + upto[-1]) // (2 * upto[-1])
    return np.asarray(np.diff(rounded, prepend=0), np.int64)


# A curve bent inside its pieces: monotone cubic interpolation, where neighbours have like densities.

_PARTS: Final = 8  # parts of a bent piece: more follow the cubic more closely and take more memory
_SHIFT: Final = 3  # a power of two, so that eighths are exact shifts
_STEEPEST_END: Final = 3.0  # times the density: a steeper cubic would not be monotone


def refine(curve: Curve) -> Curve:
    """The same counts of pieces, bent inside: each long piece with a count becomes eight.

    The slope at an edge is the weighted harmonic mean of the densities beside it [Fritsch and Butland
    1984], so the curve stays monotone; where these differ by more than 30 times, as beside a heavy
    cell or a gap, the piece keeps its own density on that side.
    """
    span = curve.ends - curve.starts
    bent = np.flatnonzero((span >= _PARTS) & (curve.counts > 0.0))
    if curve.ends.size < 2 or not bent.size:
        return curve
    inner = _inner_ends(curve.starts[bent], span[bent])
    left, right = (slope[bent, np.newaxis] for slope in _slopes(curve))
    width, count = curve.widths[bent, np.newaxis], curve.counts[bent, np.newaxis]
    # How much of the count of each bent piece lies before each inner end, by the cubic at u of its width.
    u = ((inner - curve.starts[bent, np.newaxis]).astype(np.float64) + 1.0) / width
    rise = u * (1 - u) ** 2 * left - u**2 * (1 - u) * right
    upto = np.clip(width * rise + u**2 * (3 - 2 * u) * count, 0.0, count)
    parts = np.diff(upto, axis=1, prepend=0.0, append=count)
    repeats = np.ones(curve.ends.size, np.intp)
    repeats[bent] = _PARTS
    ends, values = np.repeat(curve.ends, repeats), np.repeat(curve.counts, repeats)
    first = (np.cumsum(repeats) - repeats)[bent, np.newaxis]
    ends[first + np.arange(_PARTS - 1)] = inner
    values[first + np.arange(_PARTS)] = np.maximum(parts, 0.0)
    return Curve(ends, values)


def _inner_ends(starts: UInts, span: UInts) -> UInts:
    """The last cells of the first seven of eight nearly equal parts, in integers that cannot overflow."""
    part = np.arange(1, _PARTS, dtype=np.uint64)
    whole, left_over = span >> np.uint64(_SHIFT), span & np.uint64(_PARTS - 1)
    offset = whole[:, np.newaxis] * part + ((left_over[:, np.newaxis] * part) >> np.uint64(_SHIFT))
    return np.asarray(starts[:, np.newaxis] + offset - np.uint64(1))


def _slopes(curve: Curve) -> tuple[Floats, Floats]:
    """The slopes at the left and at the right end of each piece."""
    width, density = curve.widths, curve.counts / curve.widths
    edges = np.concatenate([[_end_slope(width[:2], density[:2])], _inner_slopes(width, density), [0.0]])
    edges[-1] = _end_slope(width[:-3:-1], density[:-3:-1])
    left, right = edges[:-1].copy(), edges[1:].copy()
    low, high = np.minimum(density[1:], density[:-1]), np.maximum(density[1:], density[:-1])
    unlike = high > _UNLIKE * low
    left[1:][unlike], right[:-1][unlike] = density[1:][unlike], density[:-1][unlike]
    return left, right


def _inner_slopes(width: Floats, density: Floats) -> Floats:
    """Weighted harmonic means of neighbouring densities; zero beside an empty piece."""
    one, two = 2 * width[1:] + width[:-1], width[1:] + 2 * width[:-1]
    weighed = one * density[1:] + two * density[:-1]
    product = (one + two) * density[1:] * density[:-1]
    return np.divide(product, weighed, out=np.zeros_like(product), where=weighed > 0.0)


def _end_slope(width: Floats, density: Floats) -> float:
    """The slope at an end of the axis, of the parabola through the first two pieces, kept monotone."""
    slope = ((2 * width[0] + width[1]) * density[0] - width[0] * density[1]) / (width[0] + width[1])
    return float(min(max(slope, 0.0), _STEEPEST_END * density[0]))


# Monotone regression: the closest numbers that never fall [SU, section 2; HRMS10].

_ROUNDS: Final = 40  # of pooling whole runs, which are fast; few inputs need as many


def fit_curve(ends: UInts, prefixes: Floats) -> Curve:
    """The curve whose counts up to each end are as close to `prefixes` as counts can be.

    Counts are never negative, so the prefixes of a curve rise from zero on. Where a bound is added
    to a monotone regression, the solution is the regression without it, clipped.
    """
    upto = np.maximum(fit_monotone(prefixes), 0.0)
    return Curve(ends, np.maximum(np.diff(upto, prepend=0.0), 0.0))


def fit_monotone(values: Floats) -> Floats:
    """The sequence closest to `values` in least squares among those that never fall.

    Pool adjacent violators: two neighbouring blocks, the first with the higher mean, have one
    value in the solution. So whole falling runs of blocks are pooled at once, again and again; what
    is not done after some rounds is finished one block at a time, in linear time.

    >>> fit_monotone(np.array([1.0, 3.0, 2.0, 0.0, 9.0])).tolist()
    [1.0, 1.6666666666666667, 1.6666666666666667, 1.6666666666666667, 9.0]
    """
    sums, sizes = np.asarray(values, dtype=np.float64), np.ones(len(values))
    for _ in range(_ROUNDS):
        means = sums / sizes
        starts = np.flatnonzero(np.concatenate([[True], means[1:] >= means[:-1]]))
        if starts.size == sums.size:
            return np.repeat(means, sizes.astype(np.int64))
        sums, sizes = np.add.reduceat(sums, starts), np.add.reduceat(sizes, starts)
    return _pool_blocks(sums, sizes)


def _pool_blocks(sums: Floats, sizes: Floats) -> Floats:
    """Blocks from left to right; each joins those before it while it lies below them."""
    blocks: list[tuple[float, float]] = []
    for total, size in zip(sums.tolist(), sizes.tolist(), strict=True):
        while blocks and blocks[-1][0] * size > total * blocks[-1][1]:
            before, width = blocks.pop()
            total, size = total + before, size + width
        blocks.append((total, size))
    pooled = np.array(blocks)
    return np.repeat(pooled[:, 0] / pooled[:, 1], pooled[:, 1].astype(np.int64))


# Sparse pieces beside dense ones.

_EVEN: Final = 0.05  # of a sparse piece's rows that stay spread evenly: safer where the guess is wrong
_SHORTEST: Final = 16.0  # cells: in a shorter piece there is little to gain
_STEPS: Final = np.array([0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.5, 7.0])
"""Where an exponential density is cut, in units of its reach: more cuts follow it more closely."""


def shift_sparse_segments(curve: Curve) -> Curve:
    """The same counts of pieces, with those of sparse pieces drawn towards dense neighbours.

    A segment of a partition goes on from where the one before it was full, and ends where the next
    crowd begins; between them may lie any gap. So a piece more than 30 times sparser than the piece
    before or behind it holds its rows near that one: their density falls off exponentially from the
    neighbour's own, a twentieth of them apart, which are spread evenly. Of two dense neighbours
    each gets half. Single cells say nothing about the cells around them and are passed over.
    """
    wide = np.flatnonzero(curve.widths > 1.0)
    density = curve.counts[wide] / curve.widths[wide]
    before = np.concatenate([[0.0], density[:-1]])
    behind = np.concatenate([density[1:], [0.0]])
    able = (curve.counts[wide] > 0.0) & (curve.widths[wide] >= _SHORTEST)
    left, right = (able & (beside > _UNLIKE * density) for beside in (before, behind))
    chosen = left | right
    if not chosen.any():
        return curve
    beside = (np.where(side, near, 0.0)[chosen] for side, near in ((left, before), (right, behind)))
    shifted = _shift_rows(curve, wide[chosen], *beside)
    kept = np.ones(curve.ends.size, bool)
    kept[wide[chosen]] = False
    ends = np.concatenate([curve.ends[kept], shifted.ends])
    order = np.argsort(ends)
    return Curve(ends[order], np.concatenate([curve.counts[kept], shifted.counts])[order])


class _Side(NamedTuple):
    """Rows drawn to one side: how many of each piece, how far their density reaches, and at most how far."""

    rows: Floats
    reach: Floats
    most: Floats

    def offsets(self) -> UInts:
        """Numbers of cells from that side at which to cut; 0 where there is nothing to cut."""
        steps = self.reach[:, np.newaxis] * _STEPS
        return np.where(steps < self.most[:, np.newaxis], steps, 0.0).astype(np.uint64)

    def within(self, cells: Floats) -> Floats:
        """How many of the rows lie within so many cells from that side."""
        near = np.minimum(cells, self.most[:, np.newaxis]) / self.reach[:, np.newaxis]
        whole = -np.expm1(-self.most / self.reach)
        return np.asarray((self.rows / whole)[:, np.newaxis] * -np.expm1(-near))


def _shift_rows(curve: Curve, pieces: NDArray[np.intp], before: Floats, behind: Floats) -> Curve:
    """The pieces cut up, by the densities of the neighbours that they lean on; 0 for one they do not."""
    rows, width = curve.counts[pieces], curve.widths[pieces]
    sides = (before > 0.0).astype(np.float64) + (behind > 0.0)
    left, right = (_side(rows / sides, width / sides, beside) for beside in (before, behind))
    start, end = curve.starts[pieces, np.newaxis], curve.ends[pieces, np.newaxis]
    one = np.uint64(1)
    first, last = left.offsets(), right.offsets()
    cuts = np.concatenate([np.where(first > 0, start + first - one, end), end - last, end], axis=1)
    cuts.sort(axis=1)
    passed = (cuts - start).astype(np.float64) + 1.0
    upto = left.within(passed) + right.rows[:, np.newaxis] - right.within((end - cuts).astype(np.float64))
    upto += _EVEN * rows[:, np.newaxis] * passed / width[:, np.newaxis]
    upto[:, -1] = rows
    return _pieces(cuts, np.maximum.accumulate(np.minimum(upto, rows[:, np.newaxis]), axis=1))


def _pieces(cuts: UInts, upto: Floats) -> Curve:
    """One curve from the last cells of parts, a row for each piece, and the counts up to them."""
    kept = np.ones(cuts.shape, bool)
    kept[:, :-1] = cuts[:, 1:] != cuts[:, :-1]
    flat = upto[kept]
    first = np.concatenate([[0], np.cumsum(np.count_nonzero(kept, axis=1))[:-1]])
    counts = np.diff(flat, prepend=0.0)
    counts[first] = flat[first]
    return Curve(cuts[kept], counts)


def _side(rows: Floats, most: Floats, density: Floats) -> _Side:
    leans = density > 0.0
    drawn = np.where(leans, (1.0 - _EVEN) * rows, 0.0)
    reach = np.divide(drawn, density, out=np.ones_like(drawn), where=leans)
    return _Side(drawn, np.maximum(reach, 1.0), most)
