"""Audits of viewed boxes: how far answers about two columns are from the rows, and standard errors by that.

How rows lie inside of leaves is not counted, so no formula knows how far a box that cuts leaves is off. Two
audits measure it: the sum of |count - answer| over a grid of a viewed column and another one, once for labels
in wide ranges and once for single cells; of three columns a third one is about boxes over all of them.
Everything here is a function of released numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, Self, TypeAlias, final

import numpy as np

from partita.arrays import Floats, Ints, UInts
from partita.public.axis.curve import Curve
from partita.public.boxes.density import find_positions
from partita.public.boxes.plan import Corners

# Labels that are audited at most in ranges, in single cells and in boxes: more take time and say little.
_LABELS, _CELL_LABELS, _BOX_LABELS = 512, 128, 64
_RANGES, _CELLS = 4, 32  # ranges of another column, and single positions of it
_MOST_PAIRS: Final = 6  # of columns: with each, the noise of an audit grows, and so does the time

# The mean error of a normal law is .8 standard deviations. Errors of labels differ more than that: with 1.0
# in place of 1.3, 95% intervals of labels in ranges covered 86% to 91% on made-up trips and flights by route.
_TAILS: Final = 1.3
_MEAN: Final = math.sqrt(2.0 / math.pi)
_LEAF: Final = (0.005, 1.0)  # rows of a leaf cannot lie further apart than on one side
_ALIKE: Final = (0.0, 4.0)  # where nothing can err alike, an audit says nothing about it
_STEPS: Final = 60  # of halving a range in which a factor lies


@final
@dataclass(frozen=True, eq=False)
class AuditGrid:
    """Boxes that have no cell in common: every product of a range of each of some axes.

    Ranges of an axis are given by their first and last positions, ascending.
    """

    axes: tuple[int, ...]
    firsts: tuple[UInts, ...]
    lasts: tuple[UInts, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of ranges of each axis."""
        return tuple(each.size for each in self.firsts)

    @property
    def size(self) -> int:
        """The number of boxes."""
        return math.prod(self.shape)

    def boxes(self, widths: Sequence[int]) -> tuple[Corners, Corners]:
        """The corners of all boxes; along other axes they hold everything."""
        lows = np.zeros((self.size, len(widths)), np.uint64)
        highs = np.tile(np.array(widths, np.uint64) - np.uint64(1), (self.size, 1))
        places = np.unravel_index(np.arange(self.size), self.shape)
        for axis, firsts, lasts, place in zip(self.axes, self.firsts, self.lasts, places, strict=True):
            lows[:, axis], highs[:, axis] = firsts[place], lasts[place]
        return lows, highs

    def count(self, places: UInts, counts: Ints) -> Ints:
        """How many rows lie in each box: each row is in one at most."""
        inside, found = np.ones(len(places), bool), []
        for axis, firsts, lasts in zip(self.axes, self.firsts, self.lasts, strict=True):
            place = np.maximum(np.searchsorted(firsts, places[:, axis], side="right"), 1) - 1
            inside &= (firsts[place] <= places[:, axis]) & (places[:, axis] <= lasts[place])
            found.append(place)
        exact = np.zeros(self.shape, np.int64)
        np.add.at(exact, tuple(place[inside] for place in found), counts[inside])
        return exact.ravel()


def list_pairs(viewed: Sequence[int], axes: int) -> list[tuple[int, int]]:
    """Each viewed axis with each axis behind it, or before it if that is not viewed."""
    pairs = ((one, other) for one in viewed for other in range(axes) if other > one or other not in viewed)
    return list(pairs)[:_MOST_PAIRS]


def list_grids(
    pairs: Sequence[tuple[int, int]], labels: Mapping[int, Ints], curves: Mapping[int, Curve], *, whole: bool
) -> list[list[AuditGrid]]:
    """The grids of each audit: labels in ranges, single cells, and with `whole` boxes over all three axes.

    `labels` are the noisy counts of viewed axes, `curves` those of rows up to each position of every axis.
    """
    ranges = {axis: _cut_evenly(curve) for axis, curve in curves.items()}
    cells = {axis: (found := _find_typical(curve), found) for axis, curve in curves.items()}
    coarse = [
        _join([one, other], [_find_largest(labels[one], _LABELS), ranges[other]]) for one, other in pairs
    ]
    fine = [
        _join([one, other], [_find_largest(labels[one], _CELL_LABELS), cells[other]]) for one, other in pairs
    ]
    if not whole:
        return [coarse, fine]
    first, *others = sorted(curves, key=lambda axis: axis not in labels)
    largest = _find_largest(labels[first], _BOX_LABELS)
    return [coarse, fine, [_join([first, *others], [largest, *(ranges[axis] for axis in others)])]]


_Ranges: TypeAlias = tuple[UInts, UInts]


def _join(axes: Sequence[int], ranges: Sequence[_Ranges]) -> AuditGrid:
    firsts, lasts = zip(*ranges, strict=True)
    return AuditGrid(tuple(axes), firsts, lasts)


def _find_largest(labels: Ints, most: int) -> _Ranges:
    """The positions that seem to have most rows."""
    positions = np.sort(np.argsort(-labels, kind="stable")[:most]).astype(np.uint64)
    return positions, positions


def _cut_evenly(along: Curve) -> _Ranges:
    """Ranges that seem to have as many rows each, from the first position to the last one."""
    inner = find_positions(along, np.arange(1.0, _RANGES) / _RANGES * along.total)
    lasts = np.unique(np.minimum(np.append(inner, along.ends[-1]), along.ends[-1]))
    return np.append(np.uint64(0), lasts[:-1] + np.uint64(1)), lasts


def _find_typical(along: Curve) -> UInts:
    """Single positions where rows seem to be."""
    found = find_positions(along, (np.arange(_CELLS) + 0.5) / _CELLS * along.total)
    return np.unique(np.minimum(found, along.ends[-1]))


def measure_misfit(counts: Ints, guess: Floats) -> int:
    """The sum of |count - guess| over boxes without a common cell: one row changes it by one at most."""
    wanted = np.rint(guess).astype(np.int64)
    return sum(map(abs, (counts - wanted).tolist()))


class Factors(NamedTuple):
    """How much of what a model of standard errors knows nothing about counts.

    `leaf`: rows that lie apart in each leaf; `alike`: leaves that err in the same way; `whole`: rows that lie
    apart, in boxes that bound all axes of rank boxes.
    """

    leaf: float
    alike: float
    whole: float = 1.0


class Fitted(Protocol):
    """Boxes beside views, whose standard errors have factors."""

    def with_factors(self, factors: Factors) -> Self:
        """The same with other factors."""
        ...

    def errors(self, lows: Corners, highs: Corners, *, parts: int = 1) -> Floats:
        """The standard error of each box, or of the sums of some."""
        ...


def calibrate(
    fitted: Fitted, audits: Sequence[Sequence[AuditGrid]], misfits: Sequence[float], widths: Sequence[int]
) -> Fitted:
    """The same answers with standard errors whose mean over each audit is what was measured.

    Wide ranges say how much leaves err alike, and single cells then how far rows lie apart in each.
    """
    grids = [[grid.boxes(widths) for grid in audit] for audit in audits]
    boxes = [tuple(np.concatenate(corners) for corners in zip(*each, strict=True)) for each in grids]

    def solve(audit: int, without: Factors, whole: Factors, limits: tuple[float, float]) -> float:
        lows, highs = boxes[audit]
        noise = fitted.with_factors(without).errors(lows, highs) ** 2
        model = fitted.with_factors(whole).errors(lows, highs) ** 2 - noise
        return _solve(noise, model, misfits[audit], *limits)

    alike = math.sqrt(solve(0, Factors(0.0, 0.0), Factors(0.0, 1.0), _ALIKE))
    leaf = solve(1, Factors(0.0, alike), Factors(1.0, alike), _LEAF)
    if len(audits) == 2:
        return fitted.with_factors(Factors(leaf, alike))
    found = solve(2, Factors(leaf, alike, 0.0), Factors(leaf, alike, 1.0), _LEAF)
    return fitted.with_factors(Factors(leaf, alike, found))


def _solve(noise: Floats, model: Floats, misfit: float, low: float, high: float) -> float:
    """The factor of the variances of a model with which the mean errors add up to the misfit."""
    wanted, model = _TAILS * misfit / _MEAN, np.maximum(model, 0.0)
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        reached = float(np.sqrt(noise + middle * model).sum()) >= wanted
        low, high = (low, middle) if reached else (middle, high)
    return high
