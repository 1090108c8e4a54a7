"""A released grid, every cell of a product of axes with noise of its own, and exact sums over its boxes."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, ClassVar, Final, NoReturn, Self, final

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answer, least_sum
from partita.arrays import Floats
from partita.domain.axis import Axis
from partita.guarantee import Guarantee, squares_changed
from partita.lazy import cached_property
from partita.numbers import check_probability, integer
from partita.public.axis.base import Json, NoisySum, Parts, PartsReader
from partita.public.axis.curve import Curve, apportion, fit_curve
from partita.public.axis.shrinkage import project_on_totals
from partita.public.base import IMPORTED, damaged
from partita.public.bounds import Gaussian, NoiseLaw, noise_variance
from partita.public.boxes.base import (
    BoxRelease,
    BoxTerm,
    Region,
    check_boxes,
    check_terms,
    encode_axes,
    read_axes,
)
from partita.public.boxes.plan import Corners, SignedBox, volumes

MOST_CELLS: Final = 2**22  # no grid has more cells, special cells included
_FITS: Final = 2**62  # sums below this fit in int64
_AT_ONCE: Final = 2**18  # cells whose shares of a region are computed at once, to bound memory
_ONE: Final = np.uint64(1)


@final
@dataclass(frozen=True, eq=False)
class GridSums:
    """An integer for every cell of a grid, and the sums of boxes of them: by a summed-area table.

    >>> sums = GridSums(np.arange(6).reshape(2, 3))
    >>> sums.of(np.array([[0, 1]], np.uint64), np.array([[1, 2]], np.uint64)).tolist()
    [12]
    """

    values: NDArray[Any]

    @cached_property
    def table(self) -> NDArray[Any]:
        """At each cell the sum of all up to it: exact, of Python ints if int64 might overflow."""
        largest = max(int(self.values.max(initial=0)), -int(self.values.min(initial=0)))
        fits = largest * self.values.size < _FITS
        table = self.values.astype(np.int64 if fits else object)
        for axis in range(table.ndim):
            np.cumsum(table, axis=axis, out=table)
        return table

    def of(self, lows: Corners, highs: Corners) -> NDArray[Any]:
        """The sum of each box: its corners in the table, added and taken away in turn."""
        sums = np.zeros(len(lows), self.table.dtype)
        for below in product((False, True), repeat=self.values.ndim):
            corner = np.where(below, lows - _ONE, highs)
            there = ~(np.array(below) & (lows == 0)).any(axis=1)
            found = self.table[tuple(corner[there].T.astype(np.int64))]
            sums[there] += -found if sum(below) % 2 else found
        return sums

    def floats(self, lows: Corners, highs: Corners) -> Floats:
        """The same as floats, rounded last."""
        return np.asarray(self.of(lows, highs).astype(np.float64))


def count_overlaps(boxes: Sequence[SignedBox]) -> Mapping[int, int]:
    """The number of cells for each sum of signs, other than zero, of the boxes that they are in.

    The ends of the boxes cut each axis into pieces; a product of pieces lies in a box or outside.

    >>> count_overlaps([((0, 0), (3, 3), 1), ((1, 1), (2, 2), -1), ((0, 0), (0, 0), 1)])
    {1: 11, 2: 1}
    """
    lows = np.array([low for low, _, _ in boxes], np.int64)
    behind = np.array([high for _, high, _ in boxes], np.int64) + 1
    cuts = [np.unique(np.concatenate([lows[:, axis], behind[:, axis]])) for axis in range(lows.shape[1])]
    steps, signs = np.zeros([cut.size for cut in cuts], np.int64), np.array([sign for _, _, sign in boxes])
    # A step at each corner of a box, summed up, gives the sum of signs in each product of pieces.
    for upper in product((False, True), repeat=len(cuts)):
        corner = np.where(upper, behind, lows)
        places = tuple(np.searchsorted(cut, corner[:, axis]) for axis, cut in enumerate(cuts))
        np.add.at(steps, places, signs * (-1) ** sum(upper))
    for axis in range(len(cuts)):
        np.cumsum(steps, axis=axis, out=steps)
    sums = steps[tuple(slice(cut.size - 1) for cut in cuts)]
    cells = np.ones((), np.int64)
    for cut in cuts:
        cells = np.multiply.outer(cells, np.diff(cut))
    factors, kind = np.unique(sums, return_inverse=True)
    numbers = np.bincount(kind.ravel(), weights=cells.ravel())
    return {int(f): round(n) for f, n in zip(factors, numbers, strict=True) if f}


@dataclass(frozen=True, eq=False, kw_only=True)
class CellGrid(BoxRelease):
    """The noisy count of each cell, special cells included, the last axis fastest; a box is a sum of cells.

    Noisy counts stay as they are, also below zero, so that sums have no bias and the counts of the parts of
    a split add up to that of the whole. `imported` says that another library counted and drew the noise.
    """

    max_series: ClassVar[int] = 1
    fact: ClassVar[str] = "scale"
    """The name of the fact in files that tells the law of the noise."""

    axes: tuple[Axis, ...]
    noisy: NDArray[Any]
    guarantee: Guarantee | None = None
    imported: bool = False

    @property
    @abstractmethod
    def law(self) -> NoiseLaw:
        """The law of the noise of each cell."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of positions along each axis."""
        return tuple(axis.width for axis in self.axes)

    @cached_property
    def sums(self) -> GridSums:
        """The noisy counts as a grid, with sums of its boxes."""
        return GridSums(self.noisy.reshape(self.shape))

    def answer(self, *terms: BoxTerm) -> Answer:
        """One linear combination of the cells; what is added and taken away cancels."""
        boxes = check_terms(terms, self.axes)
        if not boxes:
            return Answer.exact(0.0)
        lows, highs = (np.array(ends, np.uint64) for ends in list(zip(*boxes, strict=True))[:2])
        value = sum(int(s) * box.sign for s, box in zip(self.sums.of(lows, highs), boxes, strict=True))
        noises = Counter[tuple[int, NoiseLaw]]()
        for factor, number in count_overlaps(boxes).items():
            noises[abs(factor), self.law] += number
        return NoisySum(value, noises).answer(least_sum(box.sign for box in boxes))

    def counts(self, lows: Corners, highs: Corners) -> Floats:
        """Sums of cells, from the corners of each box."""
        return self.sums.floats(*check_boxes(lows, highs, self.axes))

    def errors(self, lows: Corners, highs: Corners, *, parts: int = 1) -> Floats:
        """The standard errors of sums of cells, exactly."""
        cells = volumes(*check_boxes(lows, highs, self.axes)).reshape(-1, parts).sum(axis=1)
        return np.asarray(np.sqrt(cells * self._variance))

    def error(self, beta: float) -> float:
        """The smaller of two bounds: every box at its share of beta, or all corners by Lévy's inequality.

        Noise is symmetric, so along one axis the largest running sum exceeds t at most twice as often as
        the last one does, and that for sums over any other axes at once: over k axes, 2^k times as often.
        A box is a signed sum of 2^k of these.
        """
        chance = float(check_probability(beta))
        boxes = math.prod(width * (width + 1) // 2 for width in self.shape)
        corners = 1 << sum(width > 1 for width in self.shape)
        return min(self._reach(chance / boxes), corners * self._reach(chance / corners))

    def along(self, axis: int, box: BoxTerm) -> Curve:
        """The monotone curve closest to the running sums of the noisy counts along the axis."""
        along = integer(axis, "axis", low=0, high=len(self.axes) - 1)
        ((low, high, _),) = check_terms([box], self.axes)
        places = np.arange(self.shape[along], dtype=np.uint64)
        lows, highs = (np.tile(np.array(ends, np.uint64), (places.size, 1)) for ends in (low, high))
        lows[:, along] = highs[:, along] = places
        return fit_curve(places, np.cumsum(self.sums.floats(lows, highs)))

    def region(self, region: Region, box: BoxTerm) -> Answer:
        """Cells inside the region count whole, and cells that it cuts by their share.

        Guaranteed bounds take a cell that is cut to count anything between none and all of it.
        """
        ((low, high, _),) = check_terms([box], self.axes)
        shares = np.concatenate([region.shares(cells, cells) for cells in _cells(low, high)])
        held = self.sums.values[tuple(slice(a, b + 1) for a, b in zip(low, high, strict=True))].ravel()
        inside, touched = self._sum(held[shares == 1.0]), self._sum(held[shares > 0.0])
        value = float(shares @ held.astype(np.float64))

        def bounds(beta: float) -> tuple[float, float]:
            return inside.bounds(beta)[0], touched.bounds(beta)[1]

        def error() -> float:
            # Noise, and for each cell that is cut how uncertain its part is: all of it may lie on one side.
            # The square of a noisy count is that of the count and a variance; the latter is taken off.
            within = shares * (1.0 - shares) @ (held.astype(np.float64) ** 2 - self._variance)
            return math.sqrt(float(shares @ shares) * self._variance + max(0.0, float(within)))

        return Answer(value, error, bounds)

    def points(self, rows: int) -> Corners:
        """Cells of synthetic rows, in ascending order: as many in each as its share of the counts.

        Counts are first made non-negative, as near to the noisy ones as they can be with the same total.
        If nothing is left, rows are spread evenly over the cells that are not special.
        """
        noisy = self.noisy.astype(np.float64)
        counts = project_on_totals(noisy[np.newaxis], np.maximum(noisy.sum(keepdims=True), 0.0))[0]
        if not counts.any():
            inside = np.ones(())  # one for each cell that is not special on any axis, otherwise zero
            for axis in self.axes:
                cells = np.repeat([0.0, 1.0, 0.0], [axis.before, axis.size, axis.after])
                inside = np.multiply.outer(inside, cells)
            counts = inside.ravel()
        shares = apportion(integer(rows, "rows", low=0), counts)
        chosen = np.repeat(np.arange(shares.size), shares)
        return np.stack(np.unravel_index(chosen, self.shape), axis=1).astype(np.uint64)

    @property
    def story(self) -> str:
        """What was counted."""
        return f"Each of the {self.noisy.size:,} cells was counted by itself."

    def parts(self) -> Parts:
        """The noisy counts, their axes and the law of their noise; if they were imported, that they were."""
        facts: dict[str, Json] = {"axes": encode_axes(self.axes), self.fact: str(getattr(self, self.fact))}
        return Parts(facts, {"noisy": self.noisy}).with_flag(IMPORTED, self.imported)

    @classmethod
    def from_parts(cls, parts: Parts, guarantee: Guarantee | None) -> Self:
        """The release that `parts` took apart; anything else is an `InvalidRelease`."""
        plain, imported = parts.split_flag(IMPORTED)
        reader = PartsReader(plain)
        reader.expect(facts=("axes", cls.fact), series=("noisy",))
        axes = read_axes(reader)
        cells = math.prod(axis.width for axis in axes)
        if cells > MOST_CELLS:
            raise damaged("axes", f"must have at most {MOST_CELLS} cells together")
        noisy = reader.noisy("noisy", count=cells)
        read = reader.variance if cls.fact == "variance" else reader.scale
        law: dict[str, Any] = {cls.fact: read(cls.fact)}
        return cls(axes=axes, noisy=noisy, guarantee=guarantee, imported=imported, **law)

    @cached_property
    def _variance(self) -> float:
        """The variance of each cell."""
        return noise_variance(self.law)

    def _reach(self, beta: float) -> float:
        """The sum of the noises of all cells, or of some, leaves [-t, t] with probability at most beta."""
        return NoisySum(0, {(1, self.law): self.noisy.size}).reach(beta)

    def _sum(self, held: NDArray[Any]) -> NoisySum:
        return NoisySum(int(held.sum()), {(1, self.law): held.size} if held.size else {})


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class GridRelease(CellGrid):
    """The noisy count of each cell, with discrete Laplace noise."""

    kind: ClassVar[str] = "grid"
    papers: ClassVar[Mapping[str, tuple[str, ...]]] = {"grid": ("DMNS06",)}

    scale: Fraction

    @property
    def law(self) -> Fraction:
        """The scale."""
        return self.scale

    @property
    def spent(self) -> Fraction:
        """What a row costs: it is in one cell."""
        return 1 / self.scale


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class GaussianGridRelease(CellGrid):
    """The noisy count of each cell, with discrete Gaussian noise."""

    kind: ClassVar[str] = "gaussian-grid"
    papers: ClassVar[Mapping[str, tuple[str, ...]]] = {"gaussian-grid": ("CKS20",)}
    fact: ClassVar[str] = "variance"

    variance: Fraction

    @property
    def law(self) -> Gaussian:
        """By its variance."""
        return Gaussian(self.variance)

    @property
    def spent(self) -> NoReturn:
        """No epsilon bounds what a row costs: `keep` compares rho."""
        raise NotImplementedError

    def keep(self, promise: Guarantee) -> bool:
        """Whether the cells have the noise that the rho of the guarantee asks for."""
        return 2 * promise.rho * self.variance >= squares_changed(promise.neighbors, promise.contributions)


def _cells(low: tuple[int, ...], high: tuple[int, ...]) -> Iterator[Corners]:
    """The cells of a box, the last axis fastest, some at a time."""
    shape = tuple(b - a + 1 for a, b in zip(low, high, strict=True))
    cells = math.prod(shape)
    for start in range(0, cells, _AT_ONCE):
        places = np.unravel_index(np.arange(start, min(start + _AT_ONCE, cells)), shape)
        yield (np.stack(places, axis=1) + np.array(low)).astype(np.uint64)
