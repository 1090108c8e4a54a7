"""Cells on a cluster that knows no unsigned integers: shifted by 2^63, so that their order is the same."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

SHIFT: Final = 2**63
"""The cell that is 0 on the cluster."""

_SHIFT: Final = np.uint64(SHIFT)


def to_longs(cells: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Cells as signed integers of the same order.

    >>> to_longs(np.array([0, 2**64 - 1], np.uint64)).tolist() == [-(2**63), 2**63 - 1]
    True
    """
    return (cells ^ _SHIFT).view(np.int64)


def to_cells(longs: Any) -> NDArray[np.uint64]:
    """The cells that `to_longs` wrote, from a column of Arrow.

    >>> import pyarrow as pa
    >>> to_cells(pa.chunked_array([[-(2**63)]])).tolist()
    [0]
    """
    return np.asarray(longs.to_numpy()).view(np.uint64) ^ _SHIFT
