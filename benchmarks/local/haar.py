"""HaarHRR [Cormode, Kulkarni, Srivastava 2019]: Haar coefficients of one level, told by Hadamard response."""

from __future__ import annotations

from math import exp
from typing import Any

import numpy as np

from partita.local.columns import walsh_hadamard


def haar_shares(cells: Any, size: int, epsilon: float, rng: Any) -> Any:
    """Estimated shares of all cells, a power of two: everybody reports one coefficient of a random level."""
    height = size.bit_length() - 1
    levels = rng.integers(0, height, len(cells))
    shares = np.ones(1)
    for level in range(height):
        coefficients = _coefficients(cells[levels == level], level, height, epsilon, rng)
        shares = np.stack([shares + coefficients, shares - coefficients], axis=1).ravel() / 2
    return shares


def _coefficients(cells: Any, level: int, height: int, epsilon: float, rng: Any) -> Any:
    """For every node of a level the share of its left half less that of its right half, estimated."""
    nodes, sides = cells >> (height - level), 1 - 2 * ((cells >> (height - level - 1)) & 1)
    rows = rng.integers(0, 1 << level, len(cells))
    signs = sides * (1 - 2 * (np.bitwise_count(rows & nodes) & 1).astype(np.int64))
    truth = exp(epsilon) / (1 + exp(epsilon))
    told = np.where(rng.random(len(cells)) < truth, signs, -signs)
    sums = np.bincount(rows, weights=told, minlength=1 << level)
    return walsh_hadamard(sums) / len(cells) / (2 * truth - 1)
