"""The sides of a box over columns of a table: weights of bins, shares of rows, counts of one column."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias, final

import numpy as np

from partita.answer import Answer, least_sum
from partita.arrays import Bools, Floats, UInts
from partita.lazy import cached_property
from partita.public.axis.curve import Curve
from partita.public.bounds import Gaussian, noise_variance, overlay_runs
from partita.public.boxes.base import BoxRelease, BoxTerm
from partita.public.boxes.bins import AxisBins
from partita.public.boxes.grid import CellGrid
from partita.public.boxes.leaf_doubt import LeafDoubt
from partita.public.boxes.spending_boxes import SpendingBoxesRelease
from partita.public.tables.fit import TableFit

Runs: TypeAlias = tuple[tuple[int, int, int], ...]
"""The first and the last position of runs that do not overlap, each with the factor +1 or -1."""

_ALIGNED = 1e-9
_LAPLACE_KURTOSIS = 3.0  # excess kurtosis of one noise; of the sum of k noises a k-th of it
_ONE = np.uint64(1)


@final
@dataclass(frozen=True, eq=False)
class BoxSide:
    """Some runs of positions of one column: the weight of each of its bins, and its count by itself.

    `share` is the part of the rows, with signs, and `touched` the part that any run holds; `held` are the
    weights without signs. `doubt` is the standard error of the count where the number of all rows is known.
    `cuts` is the part of the rows of any run that may as well be outside, as it is in a part of a bin.
    """

    weights: Floats
    held: Floats
    share: float
    touched: float
    alone: Answer
    doubt: float
    cuts: float

    @property
    def positive(self) -> bool:
        """Whether nothing is taken away."""
        return self.alone.least == 0.0


@final
@dataclass(frozen=True, eq=False)
class ColumnReader:
    """One column of a table: its view, bins, the rows along it, and what all tables tell about its bins.

    `combined` and `variances` are the unbiased estimate of each bin and its variance; `mass` is not negative.
    """

    view: BoxRelease
    bins: AxisBins
    curve: Curve
    mass: Floats
    combined: Floats
    variances: Floats

    @staticmethod
    def of_fit(fit: TableFit, column: int) -> ColumnReader:
        """The reader of one column of a fit.

        The estimate of a bin has a part of its view, and so a part of what the errors of that do not tell.
        """
        view, bins, (values, variances) = fit.views[column], fit.bins[column], fit.combined[column]
        if isinstance(view, SpendingBoxesRelease):
            part = variances / fit.view_variances[column]
            variances = variances + part**2 * LeafDoubt.of(view).variances(*bins.spans)
        return ColumnReader(view, bins, fit.curves[column], fit.masses[column], values, variances)

    def cell_weights(self, cells: AxisBins) -> Floats:
        """The part of the rows of each bin that lies in each of finer bins: finer bins by bins."""
        if cells.edges is None:
            positions = np.arange(cells.width, dtype=np.uint64)
            return self.weights(positions, positions)
        return self.weights(*cells.spans)

    def side(self, runs: Runs) -> BoxSide:
        """The side of some runs."""
        lows, highs = (np.array([run[end] for run in runs], np.uint64) for end in (0, 1))
        signs, parts = np.array([run[2] for run in runs], np.float64), self.weights(lows, highs)
        weights, held = signs @ parts, np.abs(signs) @ parts
        rows = max(float(self.mass.sum()), 1e-9)
        alone, by_bins = self._read(runs, weights)
        doubt = self._given_total(np.array(alone.error), np.array(by_bins))
        doubt = self._with_lacking(doubt, np.array(alone.value), weights)
        share, touched = (float(each @ self.mass) / rows for each in (weights, held))
        return BoxSide(weights, held, share, touched, alone, float(doubt), float(self.cut_rows(held)))

    def cut_rows(self, weights: Floats) -> Floats:
        """The part of the rows in some parts of bins that may as well be in what is left out of these."""
        part = np.minimum(np.abs(weights), 1.0)
        held = np.maximum(part @ self.mass, _ALIGNED)
        return np.asarray(np.where(whole_bins(weights), 0.0, ((part * (1 - part)) @ self.mass) / held))

    def answer(self, runs: Runs) -> Answer:
        """The count of some runs: by the view, or by all tables if these tell more about whole bins."""
        lows, highs = (np.array([run[end] for run in runs], np.uint64) for end in (0, 1))
        return self._read(runs, np.array([run[2] for run in runs], np.float64) @ self.weights(lows, highs))[0]

    def _read(self, runs: Runs, weights: Floats) -> tuple[Answer, bool]:
        """The count of some runs with these weights of bins, and whether tables tell it, not the view."""
        view = self._ask_view(runs)
        least = least_sum(run[2] for run in runs)
        deviation = float(np.sqrt(self._variance(weights)))
        cells = sum(high - low + 1 for low, high, _ in runs)
        heavy = _LAPLACE_KURTOSIS / cells if self._is_laplace_grid else 0.0
        if not self._tells_bins(weights) or view.error <= deviation:
            return Answer(view.value, view.spread, view.bounds, least, "measured", heavy), False
        value = float(weights @ self.combined)
        heavy *= (deviation / view.error) ** 4  # the part of the view; tables add up many noises
        return Answer(value, lambda: deviation, view.bounds, least, "measured", heavy), True

    def _ask_view(self, runs: Runs) -> Answer:
        """What the view says of some runs."""
        answer = self.view.answer(*(BoxTerm((low,), (high,), sign) for low, high, sign in runs))
        if self._doubt is None:
            return answer
        lows, highs = (np.array([run[end] for run in runs], np.uint64) for end in (0, 1))
        doubt = self._doubt.variance(lows, highs, np.array([run[2] for run in runs], np.float64))
        return replace(answer, spread=lambda: math.sqrt(answer.error**2 + doubt))

    @property
    def _is_laplace_grid(self) -> bool:
        return isinstance(self.view, CellGrid) and not isinstance(self.view.law, Gaussian)

    @cached_property
    def _doubt(self) -> LeafDoubt | None:
        return LeafDoubt.of(self.view) if isinstance(self.view, SpendingBoxesRelease) else None

    def alone(self, lows: UInts, highs: UInts) -> tuple[Floats, Floats]:
        """The values and the errors that `answer` gives for many single runs."""
        values, errors, _ = self._read_many(lows, highs)
        return values, errors

    def doubts(self, lows: UInts, highs: UInts) -> Floats:
        """The errors of many single runs where the number of all rows is known."""
        values, errors, by_bins = self._read_many(lows, highs)
        return self._with_lacking(self._given_total(errors, by_bins), values, self.weights(lows, highs))

    def _with_lacking(self, doubts: Floats, values: Floats, weights: Floats) -> Floats:
        """Errors of sides in the model, which lacks cells that are not clearly there: null, for example."""
        lacking = np.maximum(values - weights @ self.mass - doubts, 0.0)
        return np.where(weights.any(axis=-1), doubts, np.hypot(doubts, lacking))

    def _read_many(self, lows: UInts, highs: UInts) -> tuple[Floats, Floats, Bools]:
        values, errors = (of(lows[:, None], highs[:, None]) for of in (self.view.counts, self.view.errors))
        if self._doubt is not None:
            errors = np.sqrt(errors**2 + self._doubt.variances(lows, highs))
        weights = self.weights(lows, highs)
        whole = self._tells_bins(weights)
        deviations = np.sqrt(weights**2 @ self.variances)
        better = whole & (deviations < errors)
        values = np.where(better, weights @ self.combined, values)
        return values, np.where(better, deviations, errors), better

    def _given_total(self, errors: Floats, by_bins: Bools) -> Floats:
        """Errors of parts of the column once all of it is scaled to a known total: V becomes V - V^2 / whole.

        That is the variance of a sum of independent noises, given the sum of all. The view of a tree is not
        such a sum and keeps its errors.
        """
        whole = np.full(errors.shape, np.inf)
        if isinstance(self.view, CellGrid):
            whole[...] = self.view.axes[0].width * noise_variance(self.view.law)
        whole = np.where(by_bins, float(self.variances.sum()), whole)
        return np.asarray(errors * np.sqrt(np.maximum(0.0, 1.0 - errors**2 / whole)))

    def weights(self, lows: UInts, highs: UInts) -> Floats:
        """The part of the rows of each bin that lies in each range: ranges by bins."""
        if self.bins.edges is None:
            upto = self._label_sums
            return np.asarray(upto[highs.astype(np.intp) + 1] - upto[lows.astype(np.intp)])
        first, last = self.bins.spans
        below = np.where(lows > 0, self.curve.upto(np.where(lows > 0, lows - _ONE, lows)), 0.0)
        inside = np.minimum(self.curve.upto(highs)[:, None], self._ends) - np.maximum(
            below[:, None], self._starts
        )
        held = self._ends - self._starts
        share = np.divide(np.maximum(inside, 0.0), held, out=np.zeros_like(inside), where=held > _ALIGNED)
        empty = held <= _ALIGNED
        if empty.any():
            overlap_last = np.minimum(highs[:, None], last[empty])
            overlap_first = np.maximum(lows[:, None], first[empty])
            there = overlap_last >= overlap_first
            cells = np.where(there, overlap_last - np.where(there, overlap_first, overlap_last), 0).astype(
                np.float64
            )
            share[:, empty] = np.where(there, (cells + 1.0) / self.bins.sizes[empty].astype(np.float64), 0.0)
        whole = (lows[:, None] <= first) & (highs[:, None] >= last)
        return np.asarray(np.where(whole, 1.0, np.minimum(share, 1.0)))

    def joined_variance(self, weights: Floats, held: Floats) -> Floats:
        """What labels in the same bins add to the variance of some of them, among rows in other sides.

        `weights` are the parts of bins, `held` how many rows of each bin are in the other sides: boxes by
        bins. The share of each label among these is taken to vary about the mean with one variance. Bins of
        more labels vary less, and tell it.
        """
        rows = max(float(self.mass.sum()), _ALIGNED)
        share = np.divide(held, self.mass, out=np.zeros_like(held), where=self.mass > 1.0)
        mean = (held.sum(axis=1) / rows)[:, None]
        spread = ((share - mean) ** 2 * self.mass * self._like_labels).sum(axis=1) / rows
        spread = np.minimum(spread, np.maximum(mean * (1 - mean), 0.0)[:, 0])
        part = np.minimum(np.abs(weights), 1.0)
        return np.asarray((self.mass**2 * part * (1 - part) / self._like_labels).sum(axis=1) * spread)

    @cached_property
    def _like_labels(self) -> Floats:
        """How many labels of like mass each bin seems to have."""
        which = self.bins.of(np.arange(self.bins.width, dtype=np.uint64))
        return np.asarray(1.0 / np.bincount(which, self._label_shares**2, self.bins.number))

    def spread(self, held: Floats) -> Curve:
        """Rows in each bin as rows along the positions of the column."""
        if self.bins.edges is None:
            positions = np.arange(self.bins.width, dtype=np.uint64)
            return Curve(positions, held[self.bins.of(positions)] * self._label_shares)
        ends = np.union1d(self.curve.ends, self.bins.edges).astype(np.uint64)
        starts = np.concatenate([np.zeros(1, np.uint64), ends[:-1] + _ONE])
        which = self.bins.of(ends)
        within = self.weights(starts, ends)[np.arange(ends.size), which]
        return Curve(ends, held[which] * within)

    def _tells_bins(self, weights: Floats) -> Bools:
        """Whether whole bins are asked for. Cells that count as empty are no bin: their view tells more."""
        return np.asarray(whole_bins(weights) & weights.any(axis=-1))

    def _variance(self, weights: Floats) -> float:
        return float(weights**2 @ self.variances)

    @cached_property
    def _ends(self) -> Floats:
        return self.curve.upto(self.bins.spans[1])

    @cached_property
    def _starts(self) -> Floats:
        return np.concatenate([np.zeros(1), self._ends[:-1]])

    @cached_property
    def _label_shares(self) -> Floats:
        """The part of the rows of its bin that each label has; labels of an empty bin have equal parts."""
        which = self.bins.of(np.arange(self.bins.width, dtype=np.uint64))
        counts = self.curve.between(*(2 * (np.arange(self.bins.width, dtype=np.uint64),)))
        held = np.bincount(which, counts, self.bins.number)[which]
        even = 1.0 / self.bins.sizes.astype(np.float64)[which]
        return np.asarray(np.where(held > _ALIGNED, counts / np.where(held > _ALIGNED, held, 1.0), even))

    @cached_property
    def _label_sums(self) -> Floats:
        """For each bin the part of its rows in all labels before each."""
        parts = np.zeros((self.bins.width + 1, self.bins.number))
        which = self.bins.of(np.arange(self.bins.width, dtype=np.uint64))
        parts[np.arange(1, self.bins.width + 1), which] = self._label_shares
        return np.cumsum(parts, axis=0)


def whole_bins(weights: Floats) -> Bools:
    """Whether each row of weights of bins takes all of a bin or nothing."""
    return np.asarray(np.abs(weights - np.rint(weights)).max(axis=-1, initial=0.0) < _ALIGNED)


# Products of runs.


@final
@dataclass(frozen=True)
class RunProduct:
    """Rows that lie in some runs of each of some columns, added (+1) or taken away (-1)."""

    runs: dict[int, Runs]
    sign: int = 1


def join_terms(terms: Sequence[BoxTerm], widths: Sequence[int]) -> list[RunProduct]:
    """Boxes put together to few products. A difference along one axis is one product with signed runs.

    >>> terms = [BoxTerm((0, 3), (1, 5)), BoxTerm((4, 3), (4, 5)), BoxTerm((0, 3), (0, 5), -1)]
    >>> join_terms(terms, [9, 9])
    [RunProduct(runs={0: ((1, 1, 1), (4, 4, 1)), 1: ((3, 5, 1),)}, sign=1)]
    """
    added = _products([term for term in terms if term.sign > 0], widths)
    taken = _products([term for term in terms if term.sign < 0], widths)
    if len(added) == len(taken) == 1:
        joined = _subtract(added[0], taken[0], widths)
        if joined is not None:
            return joined
    return [*(RunProduct(runs) for runs in added), *(RunProduct(runs, -1) for runs in taken)]


def _products(terms: Sequence[BoxTerm], widths: Sequence[int]) -> list[dict[int, Runs]]:
    if not terms:
        return []
    runs = [sorted({(t.low[axis], t.high[axis]) for t in terms}) for axis in range(len(widths))]
    number = int(np.prod([len(each) for each in runs], dtype=object))
    apart = all(one[1] < other[0] for each in runs for one, other in pairwise(each))
    if number == len({(t.low, t.high) for t in terms}) == len(terms) and apart:
        return [_constrained(runs, widths)]
    return [_constrained([[(a, b)] for a, b in zip(t.low, t.high, strict=True)], widths) for t in terms]


def _constrained(runs: Sequence[Sequence[tuple[int, int]]], widths: Sequence[int]) -> dict[int, Runs]:
    """The runs of axes of which not every position is asked for."""
    return {
        axis: tuple((low, high, 1) for low, high in each)
        for axis, (each, width) in enumerate(zip(runs, widths, strict=True))
        if list(each) != [(0, width - 1)]
    }


def _subtract(
    added: dict[int, Runs], taken: dict[int, Runs], widths: Sequence[int]
) -> list[RunProduct] | None:
    """The difference of two products that differ along one axis at most."""
    whole = {axis: ((0, width - 1, 1),) for axis, width in enumerate(widths)}
    differing = [a for a in whole if added.get(a, whole[a]) != taken.get(a, whole[a])]
    if len(differing) > 1:
        return None
    if not differing:
        return []
    (axis,) = differing
    signed = [(low, high + 1, 1) for low, high, _ in added.get(axis, whole[axis])]
    signed += [(low, high + 1, -1) for low, high, _ in taken.get(axis, whole[axis])]
    runs = tuple((first, stop - 1, factor) for first, stop, factor in overlay_runs(signed))
    return [RunProduct({**added, **taken, axis: runs})]


def find_constrained(lows: UInts, highs: UInts, widths: Sequence[int]) -> Bools:
    """Which columns each of many boxes constrains."""
    return np.asarray((lows > 0) | (highs < np.array([width - 1 for width in widths], np.uint64)))
