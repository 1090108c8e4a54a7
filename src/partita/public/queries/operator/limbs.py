"""Exact sums of products of integers: factors are cut into limbs so short that no sum overflows 64 bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from partita.public.queries.operator.namespace import is_integer

MOST_TERMS: Final = 2**22
"""Of at most so many products of two limbs the sum fits in 64 bits."""

_BITS: Final = 20
_SHORTEST: Final = 8
_LARGEST_COUNT: Final = 2**62
_ALL_BITS: Final = 2**63 - 1


def exact_product(weights: NDArray[Any], counts: NDArray[np.int64], largest: int) -> NDArray[Any]:
    """weights @ counts as Python ints, of at most `MOST_TERMS` columns.

    No weight is further from zero than `largest`, and counts add up to less than 2^62: how many limbs there
    are depends on these only.

    >>> exact_product(np.array([[2**40, -1]]), np.array([2**60, 5]), 2**40).tolist() == [2**100 - 5]
    True
    """
    if largest <= 1 or weights.dtype == object:
        return np.asarray((weights @ counts).astype(object))
    total = np.zeros(len(weights), object)
    for high, weight in limbs(weights, largest):
        for low, count in limbs(counts, _LARGEST_COUNT):
            total += (weight @ count).astype(object) * (1 << (high + low))
    return total


def exact_sums(
    weights: NDArray[Any], counts: NDArray[np.int64], groups: NDArray[np.int64], largest: int, number: int
) -> NDArray[Any]:
    """The sums of weights[i] counts[i] of each of `number` groups, as Python ints where weights are large."""
    whole = np.int64 if largest <= 1 else object
    total = np.zeros(number, whole)
    if weights.dtype == object:
        np.add.at(total, groups, weights * counts)
        return total
    parts = [(0, weights * counts)] if largest <= 1 else _limb_products(weights, counts, largest)
    for shift, products in parts:
        sums = np.zeros(number, np.int64)
        np.add.at(sums, groups, products)
        total += sums.astype(whole) * (1 << shift)
    return total


def exactly(apply: Callable[[Any], Any], x: Any, *, largest: int, terms: int) -> Any:
    """apply(x) for a linear map that adds up at most `terms` entries, times weights of at most `largest`.

    Floats and Python ints are handed over as they are. Integers of 64 bits whose absolute values add up to
    less than 2^62 are exact: in 64 bits where weights are at most one, else by limbs, as Python ints. How
    long limbs are depends on the public weights only.
    """
    if not is_integer(x):
        return apply(x)
    if largest <= 1:
        return apply(x.astype(np.int64, copy=False) if isinstance(x, np.ndarray) else x)
    whole, bits = np.asarray(x).astype(np.int64), 62 - largest.bit_length() - terms.bit_length()
    if bits < _SHORTEST:
        return apply(whole.astype(object))
    return sum(apply(limb).astype(object) * (1 << shift) for shift, limb in limbs(whole, _ALL_BITS, bits))


def _limb_products(
    weights: NDArray[Any], counts: NDArray[np.int64], largest: int
) -> Iterator[tuple[int, NDArray[Any]]]:
    for high, weight in limbs(weights, largest):
        for low, count in limbs(counts, _LARGEST_COUNT):
            yield high + low, weight * count


def limbs(values: NDArray[Any], largest: int, bits: int = _BITS) -> Iterator[tuple[int, NDArray[Any]]]:
    """Values as sums of limbs times 2^shift; the last one carries the sign."""
    last = bits * (-(-largest.bit_length() // bits) - 1)
    for shift in range(0, last, bits):
        yield shift, (values >> shift) & ((1 << bits) - 1)
    yield last, values >> last
