"""How large the error of a random box will be, from public numbers, before anything is counted.

The ends of a random box are drawn as those of a random range along each axis, all ranges alike. Of the grid
the root-mean-square error is known. Those of the trees were measured, not proved, on made-up tables of two
to six columns with 10^2 to 10^6 rows; docs/proofs/rectangles.md says how near they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from partita.domain.axis import Axis
from partita.public.bounds.tails import laplace_variance

_FEW_CELLS: Final = 2000
"""Up to so many cells of labels a tree errs no more than the grid: docs/proofs/rectangles.md."""


def grid_error(axes: Sequence[Axis], rate: Fraction) -> float:
    """If every cell has noise of scale 1 / rate: exactly.

    Over all ranges of w positions the mean width is (w + 2) / 3, and widths along the axes are drawn
    independently of each other.
    """
    cells = math.prod((axis.width + 2) / 3 for axis in axes)
    return math.sqrt(cells * laplace_variance(1 / rate))


def tree_error(axes: Sequence[Axis], rate: Fraction, rows: int) -> float:
    """Of a spending tree over the cells: it grows with the rows until every cell is counted by itself.

    From there on it is the error of the grid, or twice that if there are many cells of labels in three
    columns or more: labels have no neighbours that are like them.
    """
    informed = _informed(rate, rows)
    growing = math.cbrt(informed) if len(axes) <= 2 else math.sqrt(informed) / 2
    most = (2 if _many_labels(axes) else 1) * grid_error(axes, rate)
    return _less_than_both(growing / float(rate), most)


def rank_error(axes: Sequence[Axis], rate: Fraction, rows: int) -> float:
    """Of a tree in rank space: columns alone and how they depend on each other share the budget."""
    growing = 0.55 * _informed(rate, rows) ** 0.4
    return _less_than_both(growing / float(rate), len(axes) * grid_error(axes, rate))


def _many_labels(axes: Sequence[Axis]) -> bool:
    cells = math.prod(axis.size for axis in axes)
    return len(axes) > 2 and all(axis.labels for axis in axes) and cells > _FEW_CELLS


def _informed(rate: Fraction, rows: int) -> float:
    """The number of rows in units of the noise."""
    return max(1.0, float(rows * rate))


def _less_than_both(one: float, other: float) -> float:
    """The smaller where they differ much, half of each where they are equal."""
    return 1.0 / (1.0 / one + 1.0 / other)
