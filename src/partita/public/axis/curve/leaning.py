"""A curve that leans on dense neighbours: where a nearly empty piece touches a crowded one."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partita.public.axis.curve.curve import Curve, Floats, UInts

_STEEP: Final = 30.0
_EVEN: Final = 0.05
_SHORTEST: Final = 16.0
_STEPS: Final = np.array([0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.5, 7.0])


def leaning(curve: Curve) -> Curve:
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
    left, right = (able & (beside > _STEEP * density) for beside in (before, behind))
    chosen = left | right
    if not chosen.any():
        return curve
    drawn = _drawn(
        curve, wide[chosen], np.where(left, before, 0.0)[chosen], np.where(right, behind, 0.0)[chosen]
    )
    kept = np.ones(curve.ends.size, bool)
    kept[wide[chosen]] = False
    ends = np.concatenate([curve.ends[kept], drawn.ends])
    order = np.argsort(ends)
    return Curve(ends[order], np.concatenate([curve.counts[kept], drawn.counts])[order])


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


def _drawn(curve: Curve, pieces: NDArray[np.intp], before: Floats, behind: Floats) -> Curve:
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
