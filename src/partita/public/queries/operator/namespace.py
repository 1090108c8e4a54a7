"""Arrays of any library that speaks the array API: NumPy in the core, others where they are given."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_WIDE: Final = 64


def namespace(x: Any) -> Any:
    """The library of an array: its own, or that of array-api-compat for one which needs it, as torch does."""
    if isinstance(x, np.ndarray):
        return np
    if hasattr(x, "__array_namespace__"):
        return x.__array_namespace__()
    return import_module("array_api_compat").array_namespace(x)


def like(values: NDArray[Any], x: Any) -> Any:
    """Public numbers as an array of the library of x, where x is: floats of its type if it has floats."""
    if isinstance(x, np.ndarray):
        return values.astype(x.dtype, copy=False) if x.dtype.kind == "f" else values
    xp = namespace(x)
    dtype = x.dtype if xp.isdtype(x.dtype, "real floating") else None
    return xp.asarray(values, dtype=dtype, device=x.device)


def places_like(places: NDArray[Any], x: Any) -> Any:
    """Public positions as an array of the library of x, where x is."""
    if isinstance(x, np.ndarray):
        return places
    return namespace(x).asarray(places.astype(np.int64), device=x.device)


def is_integer(x: Any) -> bool:
    """Whether an array holds integers of a fixed width."""
    if isinstance(x, np.ndarray):
        return x.dtype.kind in "iu"
    return bool(namespace(x).isdtype(x.dtype, "integral"))


def cumulative(x: Any) -> Any:
    """Sums along the first axis: of nothing, of the first entry, of the first two, and so on."""
    xp = namespace(x)
    if isinstance(x, np.ndarray):
        sums = np.empty((len(x) + 1, *x.shape[1:]), x.dtype)
        sums[0] = 0
        _accumulate(x, sums)
        return sums
    return xp.cumulative_sum(x, axis=0, include_initial=True)


def _accumulate(x: NDArray[Any], sums: NDArray[Any]) -> None:
    """Cumulative sums behind a first entry of zeros. NumPy's go down columns; wide rows are added as rows.

    The order of additions is the same, and so are the sums; a million cells take a seventh of the time.
    """
    if x[:1].size < _WIDE:
        np.cumsum(x, axis=0, out=sums[1:])
        return
    for row, before, after in zip(x, sums, sums[1:], strict=False):
        np.add(before, row, out=after)
