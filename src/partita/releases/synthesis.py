"""Made-up rows that look like a release: a function of released numbers, without any chance."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from partita.inference.apportion import apportion
from partita.inference.curve import Curve
from partita.releases.view import View

__all__ = ["MOST_ROWS", "synthetic"]

MOST_ROWS: Final = 10**7


def synthetic(view: View, rows: int) -> list[object]:
    """`rows` values of a column; None for a row in a special cell.

    Every range of pieces of the release, and the special cells together, get their share of the rows to
    one row, and the values in a piece are evenly spaced. The order follows from the name of the
    column by a hash, so that it says nothing about the rows, nor about other columns.
    """
    curve = view.axis.curve
    beside = sum(view.specials.value(name) for name in view.domain.specials)
    weights = np.append(curve.counts, beside)
    shares = apportion(rows, weights if weights.sum() > 0 else np.append(curve.widths, 0.0))
    values = [*view.domain.decode(list(_cells(curve, shares[:-1]))), *[None] * int(shares[-1])]
    return [values[row] for row in _order(view.column, rows).tolist()]


def _cells(curve: Curve, shares: NDArray[np.int64]) -> Iterator[int]:
    """In each piece as many cells as its share, in the middles of equal parts of it."""
    used = np.flatnonzero(shares)
    starts, ends = curve.starts[used].tolist(), curve.ends[used].tolist()
    for start, end, share in zip(starts, ends, shares[used].tolist(), strict=True):
        width = end - start + 1
        yield from (start + (2 * i + 1) * width // (2 * share) for i in range(share))


def _order(column: str, rows: int) -> NDArray[Any]:
    """A fixed order of the rows, as irregular as a hash of the column's name."""
    stream = hashlib.shake_256(column.encode("utf-8", "surrogatepass")).digest(8 * rows)
    return np.argsort(np.frombuffer(stream, "<u8"), kind="stable")
