"""Many biased bits and many uniform integers at once, each with its exact law."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from partita.trusted.noise.laws.uniforms import flags, integers_below
from partita.trusted.noise.laws.words import KernelWords
from partita.trusted.noise.system.protocol import Noise
from partita.trusted.noise.system.system import KERNEL

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Table = TypeVar("Table", bound=NDArray[Any])

WORD: Final = 2**64
"""Probabilities are multiples of 1 / 2^64."""


def chances(noise: Noise, threshold: int, size: int) -> Bools:
    """Independent bits, each True with probability exactly threshold / 2^64.

    From the kernel all at once, at the time of the call, and nothing is kept; from other noise one by one.
    """
    if noise is KERNEL:
        return flags(KernelWords(), threshold, size)
    probability = Fraction(threshold, WORD)
    return np.array([noise.bernoulli(probability) for _ in range(size)], dtype=np.bool_)


@contextmanager
def erased(places: Table) -> Iterator[Table]:
    """Lend the places of those who came, and overwrite them in the end, whatever happens.

    >>> with erased(np.array([3, 1, 4])) as places:
    ...     total = places.sum()
    >>> total, places
    (np.int64(8), array([0, 0, 0]))
    """
    try:
        yield places
    finally:
        places.fill(0)


def uniform(noise: Noise, count: int, size: int) -> Ints:
    """Independent integers, uniform among 0, ..., count-1."""
    if noise is KERNEL:
        return integers_below(KernelWords(), count, size)
    weights = [1] * count
    return np.array([noise.categorical(weights) for _ in range(size)], dtype=np.int64)
