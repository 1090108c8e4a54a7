"""Tables that agree with tables of fewer columns, by proportional fitting [Deming and Stephan 1940]."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from partita.local.aggregate.consistency import Floats

_ROUNDS: Final = 40
_LEAST: Final = 1e-300


def raked(table: Floats, rows: Floats, columns: Floats) -> Floats:
    """The table scaled by rows and columns in turn, to these sums exactly.

    What scaling leaves is put right at the end: rows and columns that have too much are cut, and what is
    missing then is added as if independent [Altschuler, Weed, Rigollet 2017].
    """
    fitted = table
    for _ in range(_ROUNDS):
        fitted = fitted * _factor(rows, fitted.sum(axis=1))[:, np.newaxis]
        fitted = fitted * _factor(columns, fitted.sum(axis=0))
    fitted = fitted * _factor(rows, fitted.sum(axis=1)).clip(0, 1)[:, np.newaxis]
    fitted = fitted * _factor(columns, fitted.sum(axis=0)).clip(0, 1)
    row, column = rows - fitted.sum(axis=1), columns - fitted.sum(axis=0)
    return np.asarray(fitted + np.outer(row, column) / max(float(row.sum()), _LEAST))


def joint_share(sides: Floats, pairs: Mapping[tuple[int, int], float]) -> float:
    """The share inside of all sides at once, from the share inside of each and of every two.

    The table of all combinations of inside and outside is fitted to every two sides in turn. It starts from
    independence, so it ends with no more association than every two sides have.

    >>> round(joint_share(np.array([0.5, 0.5, 0.5]), {(0, 1): 0.25, (0, 2): 0.25, (1, 2): 0.25}), 6)
    0.125
    """
    count = len(sides)
    fitted = np.full((2,) * count, 2.0**-count)
    for _ in range(_ROUNDS):
        for (one, other), both in pairs.items():
            told = _two_by_two(float(sides[one]), float(sides[other]), both)
            others = tuple(axis for axis in range(count) if axis not in (one, other))
            factor = _factor(told, fitted.sum(axis=others))
            fitted = fitted * np.expand_dims(factor, others)
    return float(fitted[(1,) * count])


def _two_by_two(one: float, other: float, both: float) -> Floats:
    """Outside and inside of two sides."""
    both = min(both, one, other)
    return np.array([[1 - one - other + both, other - both], [one - both, both]]).clip(0.0)


def _factor(wanted: Floats, there: Floats) -> Floats:
    return np.divide(wanted, there, out=np.zeros_like(there), where=there > 0)
