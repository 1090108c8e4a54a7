"""An axis whose counts are exactly as given, and releases of it: what is asked is then what is answered."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Self, final

import numpy as np
import pytest

from partita.answer import Answer
from partita.domain import Domain, Integer
from partita.guarantee import Guarantee
from partita.inference.curve import Curve, Floats, UInts
from partita.releases.provenance import Provenance
from partita.releases.ranges import Parts, Ranges, Term
from partita.releases.release import Release
from partita.releases.specials import Specials
from partita.releases.view import View

Publish = Callable[..., Release]

PROMISE: Final = Guarantee(epsilon="1/2")
"""What each column promises, unless told otherwise."""


@final
@dataclass(frozen=True, eq=False)
class Shown(Ranges):
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
def shown(publish: Publish) -> Callable[..., Release]:
    """A release of the counts of the cells 0, 1, ... of the column v, which need not be whole numbers."""

    def released(counts: Sequence[float], reach: float = 0.0) -> Release:
        domain = Integer(0, len(counts) - 1)
        axis = Shown.of(domain.size, dict(enumerate(counts)), reach)
        return replace(publish(v=(domain, [])), views=(replace(_view("v", domain, [], 0.0), axis=axis),))

    return released
