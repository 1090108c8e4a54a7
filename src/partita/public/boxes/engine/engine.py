"""Answers from a solved tree of boxes: counts, errors, bounds, curves, regions and made-up points."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, final

import numpy as np

from partita.answer import Answer, Bounds, least_sum
from partita.lazy.cached import cached_property
from partita.public.axis.curve.curve import Bools, Curve, Floats, Ints
from partita.public.axis.tree_solver.tree_looks import TreeLooks
from partita.public.boxes.cover.asked import Asked
from partita.public.boxes.cover.cover import summed, variances_of_sums
from partita.public.boxes.cover.plane import Plane
from partita.public.boxes.cover.terms import laid_out, without_equals
from partita.public.boxes.density.along import along
from partita.public.boxes.density.density import Density
from partita.public.boxes.density.measure import Measure, Stretches
from partita.public.boxes.density.sampling import made_up
from partita.public.boxes.engine.intervals import BoxBounds
from partita.public.boxes.engine.within_region import Shares, within_region
from partita.public.boxes.plan.nodes import BoxNodes, Corners, SignedBox

_MANY: Final = 2**10
"""For so many boxes on two axes at once it pays to make a table."""

_KEPT: Final = 8
"""The tree is kept as it looks along so many sets of axes, those that were asked about last."""

_FEW: Final = 3
"""Questions about so many axes, if those are not all, are asked of the tree as it looks along these."""


def _as_it_is(density: Density) -> Density:
    return density


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class BoxEngine:
    """Answers about boxes of positions, all from one density.

    `values` >= 0 and `variances` are those of the nodes; the values of leaves are what counts. Inside of a
    leaf the `measures` tell where its count lies, and `refined` may tell more: a density in which no
    node holds less or more. `looks`, of which one unit has the rate `unit`, are what guaranteed bounds
    are made of. The rest is a model for standard errors: `widening` calibrates it, and values may be
    `doubted` where leaves are cut.
    """

    nodes: BoxNodes
    measures: Sequence[Measure]
    values: Floats
    variances: Floats
    looks: TreeLooks
    unit: float
    widening: float
    doubted: bool = False
    refined: Callable[[Density], Density] = _as_it_is
    _facets: dict[tuple[int, ...], _Facet] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def density(self) -> Density:
        """The solved tree."""
        return Density.of(self.nodes, self.measures, self.values, self.variances, doubted=self.doubted)

    @cached_property
    def shown(self) -> Density:
        """The solved tree, refined inside of its leaves: where the values of answers come from."""
        return self.refined(self.density)

    @cached_property
    def certain(self) -> BoxBounds:
        """What the looks say for certain."""
        return BoxBounds(self.density, self.looks, self.unit)

    def counts(self, lows: Corners, highs: Corners) -> Floats:
        """The value of each box."""
        found = np.zeros(len(lows))
        for some, facet in self._kinds(self._bounded(lows, highs)):
            found[some] = facet.counts(lows[some], highs[some])
        return found

    def errors(self, lows: Corners, highs: Corners, *, parts: int = 1) -> Floats:
        """The standard error of each box, or of the sum of each `parts` boxes, which do not overlap."""
        found = np.zeros(len(lows) // parts)
        bounded = self._bounded(lows, highs).reshape(-1, parts, self.nodes.axes).any(axis=1)
        for some, facet in self._kinds(np.asarray(bounded)):
            boxes = (some[:, np.newaxis] * parts + np.arange(parts)).ravel()
            found[some] = self._error(facet.variances(lows[boxes], highs[boxes], parts))
        return found

    def answer(self, terms: Sequence[SignedBox]) -> Answer:
        """The signed sum of boxes as one linear question."""
        least = least_sum(sign for _, _, sign in terms)
        lows, highs, signs = self._taken_apart(without_equals(terms))
        facet = self._facet(np.asarray(self._bounded(lows, highs).any(axis=0)))

        def asked(density: Density) -> Asked:
            return laid_out(density, facet.boxes(lows, highs), signs)

        answer = self._answer(asked, facet, partial(self.bounds, terms), least)
        if len(terms) != 1:
            return answer
        return replace(answer, spread=lambda: float(self.errors(lows, highs)[0]))

    def bounds(self, terms: Sequence[SignedBox], beta: float) -> tuple[float, float]:
        """The true sum lies between the bounds with probability 1 - beta."""
        lows, highs, signs = self._taken_apart(without_equals(terms))
        boxes = Stretches.along(self.measures, lows, highs)
        return self.certain.bounds(laid_out(self.density, boxes, signs), beta)

    def error(self, beta: float) -> float:
        """With probability 1 - beta no box at all misses the truth by more."""
        return self.certain.error(beta)

    def along(self, axis: int, low: Sequence[int], high: Sequence[int]) -> Curve:
        """Cumulative counts along an axis of what lies between the corners on the other axes."""
        lows, highs = _corners([low], self.nodes.axes), _corners([high], self.nodes.axes)
        bounded = self._bounded(lows, highs)[0]
        bounded[axis] = True
        facet = self._facet(bounded)
        leaves = np.flatnonzero(facet.shown.nodes.leaves)
        mass = facet.shown.held.values[leaves]
        for at, own, asked in zip(facet.axes, facet.shown.stretches, facet.boxes(lows, highs), strict=True):
            if at != axis:
                mass = mass * own.at(leaves).overlap(asked)
        return along(facet.shown, facet.axes.index(axis), mass)

    def region(self, shares: Shares, low: Sequence[int], high: Sequence[int]) -> Answer:
        """How many lie in a region, given by the shares of boxes that it covers, and between the corners."""
        box = Stretches.along(
            self.measures, _corners([low], self.nodes.axes), _corners([high], self.nodes.axes)
        )

        def asked(density: Density) -> Asked:
            return within_region(density, shares, box)

        def bounds(beta: float) -> tuple[float, float]:
            return self.certain.bounds(asked(self.density), beta)

        return self._answer(asked, self._facet(np.ones(self.nodes.axes, bool)), bounds, 0.0)

    def points(self, rows: int) -> Corners:
        """Positions of made-up rows, leaf by leaf."""
        return made_up(self.shown, rows)

    def _answer(
        self, asked: Callable[[Density], Asked], facet: _Facet, bounds: Bounds, least: float
    ) -> Answer:
        """The value of a question on a tree as it is shown, with the error that it has on the tree itself."""

        def error() -> float:
            return float(self._error(np.array(asked(facet.density).variance)))

        return Answer(asked(facet.shown).value, error, bounds, least)

    def _error(self, variances: Floats) -> Floats:
        return np.asarray(self.widening * np.sqrt(variances + 1.0))

    def _taken_apart(self, terms: Sequence[SignedBox]) -> tuple[Corners, Corners, Floats]:
        lows = _corners([low for low, _, _ in terms], self.nodes.axes)
        highs = _corners([high for _, high, _ in terms], self.nodes.axes)
        return lows, highs, np.array([float(sign) for _, _, sign in terms])

    def _kinds(self, bounded: Bools) -> Iterator[tuple[Ints, _Facet]]:
        """Questions that bound the same axes, and the tree along these."""
        kinds = bounded @ (1 << np.arange(self.nodes.axes))
        for kind in np.unique(kinds):
            some = np.flatnonzero(kinds == kind)
            yield some, self._facet(bounded[some[0]])

    def _bounded(self, lows: Corners, highs: Corners) -> Bools:
        """Which axes each box bounds: along the others it holds everything."""
        return np.asarray((lows > self.nodes.lows[0]) | (highs < self.nodes.highs[0]))

    def _facet(self, bounded: Bools) -> _Facet:
        """The tree for questions that bound these axes."""
        axes = tuple(np.flatnonzero(bounded).tolist())
        if not 0 < len(axes) <= _FEW:
            axes = tuple(range(self.nodes.axes))
        facet = self._facets.pop(axes, None) or _Facet.of(self.density, self.shown, list(axes))
        self._facets[axes] = facet
        for oldest in list(self._facets)[:-_KEPT]:
            self._facets.pop(oldest, None)
        return facet


@final
@dataclass(frozen=True, eq=False)
class _Facet:
    """A tree along some axes of another one: as it was solved, and as it is shown."""

    axes: list[int]
    density: Density
    shown: Density

    @staticmethod
    def of(density: Density, shown: Density, axes: list[int]) -> _Facet:
        """The tree along these axes, found once if it is shown as it was solved."""
        if len(axes) == density.nodes.axes:
            return _Facet(axes, density, shown)
        solved = density.onto(axes)
        return _Facet(axes, solved, solved if shown is density else shown.onto(axes))

    @cached_property
    def plane(self) -> Plane | None:
        """Two axes as a table, if it is not too large."""
        return Plane.of(self.shown) if len(self.axes) == 2 else None

    def counts(self, lows: Corners, highs: Corners) -> Floats:
        """The value of each box, given by corners along all axes."""
        if len(lows) < _MANY or self.plane is None:
            return summed(self.shown, self.boxes(lows, highs)).values
        return self.plane.counts(self.boxes(lows, highs))

    def variances(self, lows: Corners, highs: Corners, parts: int) -> Floats:
        """The variance of the sum of each `parts` boxes."""
        boxes = self.boxes(lows, highs)
        if parts == 1:
            return summed(self.density, boxes).variances
        return variances_of_sums(self.density, boxes, parts)

    def boxes(self, lows: Corners, highs: Corners) -> tuple[Stretches, ...]:
        """The boxes along these axes."""
        return Stretches.along(self.density.measures, lows[:, self.axes], highs[:, self.axes])


def _corners(corners: Sequence[Sequence[int]], axes: int) -> Corners:
    return np.array(corners, np.uint64).reshape(len(corners), axes)
