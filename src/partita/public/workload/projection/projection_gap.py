"""The gap of a point in a hull, in integers: a certificate that holds to the last digit on any machine."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from partita.public.queries.operator.limbs import limbs
from partita.public.queries.operator.operator import Operator

_ROOM: Final = 60
"""Limbs of all residuals together stay below two to this, so that operators add them up exactly."""

_BLOCK: Final = 2**18


def exact_gap(
    operator: Operator, sums: NDArray[Any], noisy: NDArray[Any], *, rows: int, bits: int
) -> Fraction:
    """<g, x> - rows min(0, min g), g the gradient A'(A x - y) of half the squared distance of A x from y.

    `sums` are the answers A x in units of 2^-bits, and `noisy` the answers y in units. <g, x> is the product
    of A x - y and A x, which needs no slope of any cell; the least slope is looked for in all of them.
    """
    answers = sums.astype(object)
    residuals = answers - (noisy.astype(object) << bits)
    along = int((residuals * answers).sum())
    lowest = min(0, _least_slope(operator, residuals))
    return Fraction(along - (rows << bits) * lowest, (operator.granularity << bits) ** 2)


def _least_slope(operator: Operator, residuals: NDArray[Any]) -> int:
    """The least over all cells of the sum of weights times residuals."""
    largest, bits = int(abs(residuals).max(initial=1)), _ROOM - residuals.size.bit_length()
    parts = [
        (shift, np.asarray(operator.combine(limb.astype(np.int64))).ravel())
        for shift, limb in limbs(residuals, largest, bits)
    ]
    return min(_least_sum(parts, first) for first in range(0, parts[0][1].size, _BLOCK))


def _least_sum(parts: list[tuple[int, NDArray[Any]]], first: int) -> int:
    """The least sum of a block of cells, in Python ints."""
    block = slice(first, first + _BLOCK)
    shifted = [part[block].astype(object) << shift for shift, part in parts]
    return int(np.min(np.sum(shifted, axis=0)))
