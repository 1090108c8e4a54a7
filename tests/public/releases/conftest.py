"""An axis, and a grid, whose counts are exactly as given: what is asked is then what is answered."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Final, Self, final

import numpy as np
import pytest

from partita.answer import Answer
from partita.arrays import Floats, UInts
from partita.domain import Domain, Integer
from partita.domain.axis import Axis
from partita.guarantee import Guarantee
from partita.public.axis.base import AxisRelease, Parts, Specials, Term
from partita.public.axis.curve import Curve
from partita.public.base import Provenance
from partita.public.boxes.base import BoxRelease, BoxTerm, Region
from partita.public.boxes.plan import Corners
from partita.public.release import Release
from partita.public.views import BoxView, View

Publish = Callable[..., Release]

PROMISE: Final = Guarantee(epsilon="1/2")
"""What each column promises, unless told otherwise."""


@final
@dataclass(frozen=True, eq=False)
class Shown(AxisRelease):
    """Counts of cells as they are; a range of w cells has variance w, and `reach` bounds all errors."""

    size: int
    shape: Curve
    reach: float = 0.0
    guarantee: Guarantee | None = None

    kind: ClassVar[str] = "shown"

    @staticmethod
    def of(
        size: int, cells: Mapping[int, float], reach: float = 0.0, guarantee: Guarantee | None = None
    ) -> Shown:
        """A piece for each cell given, and one for each gap."""
        ends = sorted({end for cell in cells for end in (cell - 1, cell) if end >= 0} | {size - 1})
        counts = [float(cells.get(end, 0.0)) for end in ends]
        return Shown(size, Curve(np.array(ends, np.uint64), np.array(counts)), reach, guarantee or PROMISE)

    @property
    def curve(self) -> Curve:
        return self.shape

    def answer(self, *terms: Term) -> Answer:
        one = [np.array([bound], np.uint64) for term in terms for bound in term[:2]]
        value = sum(term.sign * self.counts(*pair)[0] for term, pair in zip(terms, _pairs(one), strict=True))
        spread = math.sqrt(sum(term.high - term.low + 1 for term in terms))
        least = 0.0 if all(term.sign > 0 for term in terms) else -math.inf
        return Answer(
            float(value), lambda: spread, lambda beta: (value - self.reach, value + self.reach), least
        )

    def counts(self, lows: UInts, highs: UInts) -> Floats:
        return self.curve.between(lows, highs)

    def errors(self, lows: UInts, highs: UInts) -> Floats:
        return np.sqrt((highs - lows).astype(np.float64) + 1.0)

    def error(self, beta: float) -> float:
        return self.reach

    def parts(self) -> Parts:
        return Parts({}, {})

    @classmethod
    def from_parts(cls, parts: Parts, guarantee: Guarantee | None) -> Self:
        raise NotImplementedError


@final
@dataclass(frozen=True, eq=False)
class ShownBoxes(BoxRelease):
    """Counts of a grid of positions as they are; a box of w cells has variance w, `reach` bounds errors."""

    axes: tuple[Axis, ...]
    grid: Floats
    reach: float = 0.0
    guarantee: Guarantee | None = None

    kind: ClassVar[str] = "shown-boxes"

    @property
    def spent(self) -> Fraction:
        return Fraction(0)

    def answer(self, *terms: BoxTerm) -> Answer:
        coefficients = np.zeros(self.grid.shape)
        for term in terms:
            coefficients[_slices(term)] += term.sign
        value = float((coefficients * self.grid).sum())
        least = 0.0 if all(term.sign > 0 for term in terms) else -math.inf
        return Answer(
            value,
            lambda: math.sqrt(float((coefficients**2).sum())),
            lambda beta: (value - self.reach, value + self.reach),
            least,
        )

    def counts(self, lows: Corners, highs: Corners) -> Floats:
        return np.array([self.grid[_slices(term)].sum() for term in _terms(lows, highs)])

    def errors(self, lows: Corners, highs: Corners, *, parts: int = 1) -> Floats:
        cells = ((highs - lows).astype(np.float64) + 1.0).prod(axis=1)
        return np.asarray(np.sqrt(cells.reshape(-1, parts).sum(axis=1)))

    def error(self, beta: float) -> float:
        return self.reach

    def along(self, axis: int, box: BoxTerm) -> Curve:
        """A piece for each position."""
        others = [slice(None) if a == axis else cut for a, cut in enumerate(_slices(box))]
        sums = self.grid[tuple(others)].sum(axis=tuple(a for a in range(self.grid.ndim) if a != axis))
        return Curve(np.arange(sums.size, dtype=np.uint64), np.maximum(sums, 0.0))

    def region(self, region: Region, box: BoxTerm) -> Answer:
        """The share of every cell of the box, which is what `Region` promises to be exact about."""
        cells = np.argwhere(np.ones(self.grid.shape)).astype(np.uint64)
        shares = region.shares(cells, cells).reshape(self.grid.shape)[_slices(box)]
        value = float((shares * self.grid[_slices(box)]).sum())
        return Answer(value, lambda: 1.0, lambda beta: (value - self.reach, value + self.reach))

    def points(self, rows: int) -> Corners:
        """As many rows as were counted, in the order of the cells, again and again."""
        cells = np.argwhere(np.ones(self.grid.shape)).astype(np.uint64)
        return np.resize(np.repeat(cells, self.grid.ravel().astype(int), axis=0), (rows, self.grid.ndim))

    @property
    def story(self) -> str:
        return "Boxes are shown."

    def parts(self) -> Parts:
        return Parts({}, {})

    @classmethod
    def from_parts(cls, parts: Parts, guarantee: Guarantee | None) -> Self:
        raise NotImplementedError


def _terms(lows: Corners, highs: Corners) -> list[BoxTerm]:
    return [BoxTerm(tuple(low), tuple(high)) for low, high in zip(lows.tolist(), highs.tolist(), strict=True)]


def _slices(term: BoxTerm) -> tuple[slice, ...]:
    return tuple(slice(low, high + 1) for low, high in zip(term.low, term.high, strict=True))


def _box_view(
    declared: Mapping[str, tuple[Domain, Sequence[object]]], reach: float, promise: Guarantee = PROMISE
) -> BoxView:
    """The view of some columns together, row by row."""
    domains = tuple(domain for domain, _ in declared.values())
    axes = tuple(map(Axis.of, domains))
    places = [_places(domain, rows) for domain, rows in declared.values()]
    grid = np.zeros([axis.width for axis in axes])
    for place in zip(*places, strict=True):
        grid[place] += 1
    boxes = ShownBoxes(axes, grid, reach, promise)
    return BoxView(
        columns=tuple(declared),
        domains=domains,
        boxes=boxes,
        mechanism="shown-boxes",
        why="Boxes may be shown.",
    )


def _places(domain: Domain, rows: Sequence[object]) -> list[int]:
    beside, shift = Axis.specials(domain), Axis.of(domain).before
    cells = domain.encode(list(rows)).tolist()
    return [beside[cell] if isinstance(cell, str) else cell + shift for cell in cells]


def _pairs(bounds: list[UInts]) -> list[tuple[UInts, UInts]]:
    return list(zip(bounds[::2], bounds[1::2], strict=True))


def _view(
    column: str, domain: Domain, rows: Sequence[object], reach: float, promise: Guarantee = PROMISE
) -> View:
    encoded = domain.encode(list(rows)).tolist()
    cells = Counter(cell for cell in encoded if isinstance(cell, int))
    beside = {name: encoded.count(name) for name in domain.specials}
    return View(
        column=column,
        domain=domain,
        axis=Shown.of(domain.size, cells, reach, promise),
        specials=Specials(counts=beside, scale=promise.contributions / promise.epsilon),
        mechanism="shown",
        why="It shows what it counts.",
    )


@pytest.fixture(scope="session")
def publish() -> Publish:
    """Release columns, each given by its domain and its rows, as they are; `reach` bounds all errors."""

    def published(
        reach: float = 0.0, promise: Guarantee = PROMISE, **columns: tuple[Domain, Sequence[object]]
    ) -> Release:
        views = tuple(_view(name, domain, rows, reach, promise) for name, (domain, rows) in columns.items())
        return Release(
            views=views,
            guarantee=replace(promise, epsilon=len(views) * promise.epsilon),
            provenance=Provenance(version="1.2.3", day="2026-11-15"),
        )

    return published


@pytest.fixture(scope="session")
def together() -> Publish:
    """Release columns together, as they are: in one view of all, or in the views that are named.

    `reach` bounds all errors of each view.
    """

    def published(
        reach: float = 0.0,
        views: Sequence[Sequence[str]] | None = None,
        **columns: tuple[Domain, Sequence[object]],
    ) -> Release:
        made = [
            _view(names[0], *columns[names[0]], reach)
            if len(names) == 1
            else _box_view({name: columns[name] for name in names}, reach)
            for names in views or [tuple(columns)]
        ]
        return Release(
            views=tuple(made),
            guarantee=replace(PROMISE, epsilon=len(made) * PROMISE.epsilon),
            provenance=Provenance(version="1.2.3", day="2026-11-15"),
        )

    return published


@pytest.fixture(scope="session")
def shown(publish: Publish) -> Callable[..., Release]:
    """A release of the counts of the cells 0, 1, ... of the column v, which need not be whole numbers."""

    def released(counts: Sequence[float], reach: float = 0.0) -> Release:
        domain = Integer(0, len(counts) - 1)
        axis = Shown.of(domain.size, dict(enumerate(counts)), reach)
        return replace(publish(v=(domain, [])), views=(replace(_view("v", domain, [], 0.0), axis=axis),))

    return released
