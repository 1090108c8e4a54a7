"""Enumeration cases of the mechanisms of queries."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import partita as pt
from partita.audit.base.case import Case, Depth
from partita.audit.base.universes import Counts, points
from partita.audit.laws.worlds import EVERYBODY, World, coupled_cases, law_cases
from partita.domain.category.category import Category
from partita.domain.numeric.integer import Integer

_AGES: Final = pt.Universe(["age"], [Integer(0, 1)])
_SEX: Final = pt.Universe(["sex"], [Category(["f"])])
_PAY: Final = pt.Universe(["pay"], [Integer(0, 2)])
_CROWD: Final = (0, 60, 100, 60, 0, 0, 0)
"""So many rows of each pay are always there, so that thresholds are clear."""


def query_cases(depth: Depth, more: int = 0) -> Iterator[Case]:
    """Every mechanism of queries by coupling, the plainest one by law too."""
    for world in _worlds():
        yield from coupled_cases(world, depth, more)
    total = _world("LinearWorkload", _SEX, pt.marginal("sex"), (0, 0, 1), protected=EVERYBODY[:2])
    yield from law_cases(total, depth, window=range(3))


def _worlds() -> Iterator[World]:
    prefixes, pay = pt.prefixes("age"), pt.value("pay")
    yield _world("LinearWorkload", _AGES, prefixes, (0, 1, 3))
    yield _world("LinearWorkload", _SEX, pt.marginal("sex") + pt.weights("sex", {"f": -1}), (1, 2, 5))
    yield _world("ProjectedLaplace", _AGES, prefixes, (0, 0, 1), slow=True)
    yield _world("MultiplicativeWeights", _AGES, prefixes, (0, 0, 1), rounds=2, slow=True)
    for name, crowd in (("SingleTruncation", _CROWD), ("ComposedTruncation", None)):
        yield _world(name, _PAY, pay, (0, 1, 2), crowd=crowd)
    yield _world("ComposedTruncation", _PAY, pay + 2 * pay, (0, 0, 1), crowd=_CROWD)
    several = pay + pt.marginal("pay")
    for name, asked in (
        ("Normalization", several),
        ("GlobalTruncation", several),
        ("InstanceTruncation", pay + 2 * pay),
    ):
        yield _world(name, _PAY, asked, (0, 0, 1), crowd=_CROWD, rounds=1)


def _world(
    name: str,
    universe: Any,
    queries: Any,
    rows: tuple[int, int, int],
    *,
    protected: tuple[Any, ...] = EVERYBODY,
    crowd: Counts | None = None,
    slow: bool = False,
    **options: Any,
) -> World:
    def make(**who: Any) -> Any:
        return getattr(pt, name)(queries=queries, universe=universe, epsilon=1, **options, **who)

    return World(
        mechanism=name,
        about=f"{universe.size} cells" + (f", {sum(crowd)} more rows" if crowd else ""),
        make=make,
        data=partial(points, universe.axes),
        cells=universe.size,
        rows=rows,
        protected=protected,
        crowd=crowd,
        slow=slow,
    )
