"""Enumeration cases of the mechanisms over several axes, and of sums."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import prod
from typing import Any, Final

import partita as pt
from partita.audit.base.case import Case, Depth
from partita.audit.base.universes import points
from partita.audit.laws.worlds import EVERYBODY, World, coupled_cases, law_cases
from partita.domain.axis import Axis
from partita.domain.numeric.integer import Integer
from partita.public.boxes.plan.tree_recipe import Recipe

_TWO, _THREE, _ENDS = Axis(size=2), Axis(size=3), Axis(size=1, before=1, after=1)
_LABELS: Final = Axis(size=1, after=1, labels=True)
_VALUE: Final = Integer(-1, 1)
_KEY: Final = Axis(size=1, after=1)
_EAGER: Final[dict[str, Any]] = {"bits": 1, "recipe": Recipe(growth=3, worth=4, depth_power=1)}
"""Trees that look again and grow for a handful of rows."""


def box_cases(depth: Depth, more: int = 0) -> Iterator[Case]:
    """Every mechanism over several axes by coupling, the grid by law too."""
    square, special = (_TWO, _TWO), (_ENDS, _LABELS)
    for world in (
        _world("GridCounts", square, (1, 2, 4)),
        _world("GridCounts", special, (0, 1, 3)),
        _world("SpendingBoxes", square, (0, 1, 3)),
        _world("SpendingBoxes", (_THREE, _TWO), (0, 1, 2), epsilon=5, **_EAGER),
        _world("PaperRectangles", square, (0, 1, 3)),
        _world("PaperRectangles", special, (0, 0, 1)),
        _world("Rectangles", square, (0, 1, 3)),
        _world("RankBoxes", square, (0, 1, 2), slow=True),
        _world("RankBoxes", (_TWO, _LABELS, _TWO), (-1, 0, 1), epsilon=5, slow=True),
    ):
        yield from coupled_cases(world, depth, more)
    grid = _world("GridCounts", (_TWO, Axis(size=1)), (1, 2, 3), protected=EVERYBODY[:2])
    yield from law_cases(grid, depth, window=range(5))


def sum_cases(depth: Depth, more: int = 0) -> Iterator[Case]:
    """Both mechanisms of sums by coupling; values below, above, invalid and null included."""
    for world in (
        _sums("LevelTrees", (0, 0, 1), keys=[_KEY]),
        _sums("LevelTrees", (0, 1, 2), keys=[], moments=True),
        _sums("LogTree", (1, 2, 3)),
    ):
        yield from coupled_cases(world, depth, more)


def _world(
    name: str,
    axes: tuple[Axis, ...],
    rows: tuple[int, int, int],
    *,
    protected: tuple[Any, ...] = EVERYBODY,
    epsilon: int = 1,
    slow: bool = False,
    **options: Any,
) -> World:
    def make(**who: Any) -> Any:
        return getattr(pt, name)(axes=axes, epsilon=epsilon, **options, **who)

    return World(
        mechanism=name,
        about=" x ".join(str(axis.width) for axis in axes) + " cells",
        make=make,
        data=partial(points, axes),
        cells=prod(axis.width for axis in axes),
        rows=rows,
        protected=protected,
        slow=slow,
    )


def _sums(name: str, rows: tuple[int, int, int], **options: Any) -> World:
    keys = options.get("keys", [])
    axes = (*keys, Axis.of(_VALUE))

    def make(**who: Any) -> Any:
        return getattr(pt, name)(value=_VALUE, epsilon=1, **options, **who)

    return World(
        mechanism=name,
        about=f"values from {_VALUE.low} to {_VALUE.high}, {'2 keys' if keys else 'no key'}",
        make=make,
        data=partial(points, axes),
        cells=prod(axis.width for axis in axes),
        rows=rows,
    )
