"""Ranges of several columns together, made without data: what rounds of weights are measured with."""

from __future__ import annotations

import numpy as np

from partita.public.queries.product import Product
from partita.public.queries.ranges import SpanOperator


def ranges_over(widths: tuple[int, ...], ranges: int, rng: np.random.Generator) -> Product:
    """All products of random ranges, one of each column."""
    factors = []
    for axis, width in enumerate(widths):
        ends = np.sort(rng.integers(0, width, (ranges, 2)), axis=1)
        factors.append(((axis,), SpanOperator(width, ends[:, 0].tolist(), (ends[:, 1] + 1).tolist())))
    return Product(widths, factors)
