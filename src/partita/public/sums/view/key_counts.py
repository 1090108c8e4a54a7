"""What a view of counts says about the keys of sums: public, and free to cut the keys by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from partita.domain.axis import Axis
from partita.public.axis.curve.curve import Floats
from partita.public.boxes.plan.nodes import Corners
from partita.public.results.totals import AnyView
from partita.public.views.box_view import BoxView
from partita.public.views.choosing import having
from partita.public.views.view import View


@final
@dataclass(frozen=True, eq=False, repr=False)
class KeyCounts:
    """Counts of boxes of positions along the axes of some columns, as one view has released them."""

    view: AnyView
    keys: tuple[str, ...]

    @staticmethod
    def of_sums(views: Sequence[AnyView], keys: tuple[str, ...], column: str) -> KeyCounts | None:
        """What the view of fewest columns that has all keys of sums of a column says.

        None if there is no key, or if the column is its own: then sums tell everything themselves.
        """
        return None if keys in ((), (column,)) else KeyCounts(having(views, keys), keys)

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The axes of the keys, special cells included."""
        declared = dict(zip(self.view.columns, self.view.domains, strict=True))
        return tuple(Axis.of(declared[key]) for key in self.keys)

    def counts(self, lows: Corners, highs: Corners) -> Floats:
        """How many rows are in each box, given by a row of lowest and a row of highest positions."""
        if isinstance(self.view, BoxView):
            return self.view.boxes.counts(*self._widened(self.view, lows, highs))
        return _along(self.view, self.axes[0], lows[:, 0], highs[:, 0])

    def __repr__(self) -> str:
        return f"KeyCounts({', '.join(self.keys)})"

    def _widened(self, view: BoxView, lows: Corners, highs: Corners) -> tuple[Corners, Corners]:
        """The same boxes among all columns of the view, those that are no keys left free."""
        first, last = (np.array(ends, np.uint64) for ends in view.boxes.everything[:2])
        low, high = (np.tile(ends, (len(lows), 1)) for ends in (first, last))
        places = [view.columns.index(key) for key in self.keys]
        low[:, places], high[:, places] = lows, highs
        return low, high


def _along(view: View, axis: Axis, lows: Corners, highs: Corners) -> Floats:
    """Ranges of positions along the one axis of a view, whose special cells are beside it."""
    first, last = np.uint64(axis.before), np.uint64(axis.before + axis.size - 1)
    starts, ends = np.maximum(lows, first), np.minimum(highs, last)
    there = starts <= ends
    ordinary = view.axis.counts(np.where(there, starts - first, 0), np.where(there, ends - first, 0))
    counts = np.where(there, ordinary, 0.0)
    for name, place in Axis.specials(view.domain).items():
        counts += view.specials.value(name) * ((lows <= place) & (highs >= place))
    return counts
