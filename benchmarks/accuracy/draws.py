"""Fresh data of two families over universes of any width, and questions about them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.accuracy.queries import Queries
from partita import Histogram
from partita.arrays import UInts

Generator = np.random.Generator

QUERIES = 2_000
FAMILY_BITS = 32
"""The width for which the families are defined; elsewhere their values are stretched or squeezed."""


def lognormal(n: int, rng: Generator) -> UInts:
    """exp(normal(15, 1.2)), cut off at 2^32."""
    return np.minimum(np.exp(rng.normal(15, 1.2, n)), 2.0**FAMILY_BITS - 1).astype(np.uint64)


def uniform(n: int, rng: Generator) -> UInts:
    """All of 2^32 alike."""
    return rng.integers(0, 2**FAMILY_BITS, n, dtype=np.uint64)


FAMILIES: dict[str, Callable[[int, Generator], UInts]] = {"lognorm": lognormal, "uniform": uniform}


def at_bits(values: UInts, bits: int, rng: Generator) -> UInts:
    """Values below 2^32 as values below 2^bits: high bits kept, or uniform low bits added."""
    if bits <= FAMILY_BITS:
        return values >> np.uint64(FAMILY_BITS - bits)
    more = bits - FAMILY_BITS
    return (values << np.uint64(more)) | rng.integers(0, 2**more, values.size, dtype=np.uint64)


def three_kinds(values: UInts, size: int, rng: Generator) -> dict[str, Queries]:
    """2,000 ranges with uniform ends, 2,000 with ends at data values, 2,000 prefixes up to data values."""
    anywhere = np.sort(rng.integers(0, size - 1, (QUERIES, 2), dtype=np.uint64, endpoint=True), axis=1)
    at_data = np.sort(rng.choice(values, (QUERIES, 2)), axis=1)
    return {
        "uniform": Queries(anywhere[:, 0], anywhere[:, 1]),
        "data": Queries(at_data[:, 0], at_data[:, 1]),
        "prefix": Queries.prefixes(rng.choice(values, QUERIES)),
    }


def counted(values: UInts, size: int) -> Histogram:
    """The values as a histogram."""
    return Histogram.from_cells(values, size=size)
