"""Floats as bounds of a Real column, read as people write them: 0.35 is 35/100, in an array too."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from partita.domain import Encoded, Real, Special

__all__ = ["as_written"]

_ROUNDINGS: Final = 8


def as_written(domain: Real, values: Any, encoded: Encoded) -> Encoded:
    """The cells of a column of bounds, whose floats were encoded as the numbers that their bits say.

    The two readings differ by half a unit in the last place at most, so they can lie in different cells
    only near the middle between two. Floats there are located one by one.
    """
    column, floats = _floats(values)
    quotients = np.abs(floats) / float(domain.step)
    from_middle = 0.5 - np.abs(quotients - np.rint(quotients))
    near = from_middle <= _ROUNDINGS * np.finfo(floats.dtype).eps * (1 + quotients)
    cells, special = encoded.cells.copy(), encoded.special.copy()
    for row in np.flatnonzero(near & (special <= Special.ABOVE)).tolist():
        place = domain.locate(column[row])
        cells[row], special[row] = place.cell, place.special
    return Encoded(cells, special)


def _floats(values: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """The values as an array, and the finite floats among them; 0 where there is something else."""
    column = np.array(values, object) if isinstance(values, list | tuple) else np.asarray(values)
    if column.dtype == object:
        floats = np.array([value if isinstance(value, float) else 0.0 for value in column])
    else:
        floats = column if column.dtype.kind == "f" else np.zeros(len(column))
    return column, np.where(np.isfinite(floats), floats, 0.0)
