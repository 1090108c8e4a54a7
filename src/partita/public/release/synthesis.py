"""Made-up rows that look like a release: a function of released numbers, without any chance."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from partita.domain.axis import Axis
from partita.domain.base.base import Domain
from partita.public.axis.curve.apportion import apportion
from partita.public.axis.curve.curve import Curve, UInts
from partita.public.base.checkpoint import checkpoint
from partita.public.results.totals import AnyView
from partita.public.views.box_view import BoxView
from partita.public.views.choosing import columns_of
from partita.public.views.view import View

MOST_ROWS: Final = 10**7


def synthetic(views: Sequence[AnyView], rows: int) -> dict[str, list[object]]:
    """`rows` values for each column; None for a row in a special cell.

    The columns of a view are made together. A column that several views have is made by the one of
    most columns, the first of those.
    """
    made: dict[str, list[object]] = {}
    for view in sorted(views, key=lambda view: len(view.columns), reverse=True):
        checkpoint()
        if not made.keys() >= set(view.columns):
            made = _made(view, rows) | made
    return {column: made[column] for column in columns_of(views)}


def _made(view: AnyView, rows: int) -> dict[str, list[object]]:
    """The columns of one view, in an order that follows from their names by a hash.

    So it says nothing about the rows, nor about columns of other views.
    """
    listed = [_alone(view, rows)] if isinstance(view, View) else _together(view, rows)
    order = _order("\n".join(view.columns), rows).tolist()
    pairs = zip(view.columns, listed, strict=True)
    return {column: [values[row] for row in order] for column, values in pairs}


def _alone(view: View, rows: int) -> list[object]:
    """Every range of pieces of the release, and the special cells together, get their share of the rows.

    Shares are right to one row, and the values in a piece are evenly spaced.
    """
    curve = view.axis.curve
    beside = sum(view.specials.value(name) for name in view.domain.specials)
    weights = np.append(curve.counts, beside)
    shares = apportion(rows, weights if weights.sum() > 0 else np.append(curve.widths, 0.0))
    return [*view.domain.decode(list(_cells(curve, shares[:-1]))), *[None] * int(shares[-1])]


def _together(view: BoxView, rows: int) -> list[list[object]]:
    points = view.boxes.points(rows)
    return [_values(domain, points[:, number]) for number, domain in enumerate(view.domains)]


def _values(domain: Domain, positions: UInts) -> list[object]:
    """The value at each position of an axis; None at a special cell."""
    first = Axis.of(domain).before
    ordinary = (positions >= first) & (positions - np.uint64(first) < domain.size)
    values = np.full(positions.size, None, object)
    values[ordinary] = _objects(domain.decode(positions[ordinary] - np.uint64(first)))
    return values.tolist()


def _objects(values: Sequence[object]) -> NDArray[Any]:
    """A flat array of these objects, whatever they are."""
    array = np.empty(len(values), object)
    array[:] = values
    return array


def _cells(curve: Curve, shares: NDArray[np.int64]) -> Iterator[int]:
    """In each piece as many cells as its share, in the middles of equal parts of it."""
    used = np.flatnonzero(shares)
    starts, ends = curve.starts[used].tolist(), curve.ends[used].tolist()
    for start, end, share in zip(starts, ends, shares[used].tolist(), strict=True):
        width = end - start + 1
        yield from (start + (2 * i + 1) * width // (2 * share) for i in range(share))


def _order(name: str, rows: int) -> NDArray[Any]:
    """A fixed order of the rows, as irregular as a hash of a name."""
    stream = hashlib.shake_256(name.encode("utf-8", "surrogatepass")).digest(8 * rows)
    return np.argsort(np.frombuffer(stream, "<u8"), kind="stable")
