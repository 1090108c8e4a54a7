"""A cut: contiguous segments of a universe, released."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partita.arrays import integer_array
from partita.errors.checks import check
from partita.errors.errors import InvalidParameter
from partita.guarantee.guarantee import Guarantee
from partita.numbers import integer

UInts = NDArray[np.uint64]


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Cut:
    """Segments of the cells start, ..., edges[-1], in order and without gaps.

    `edges` holds the last cell of each segment, increasing. `guarantee` is None if the cut was
    made with injected noise: such a cut protects nobody.
    """

    edges: UInts
    start: int = 0
    guarantee: Guarantee | None = None

    def __post_init__(self) -> None:
        integer(self.start, "start", low=0)
        edges = _cells(self.edges, "edges").view()
        if edges.ndim != 1 or not edges.size or bool((edges[1:] <= edges[:-1]).any()):
            fix = "pass last cells"
            raise InvalidParameter("edges", "must be increasing cells", given=self.edges, fix=fix)
        rule = "must not lie behind the first edge"
        check(int(edges[0]) >= self.start, "start", rule, given=self.start, fix="lower it")
        edges.flags.writeable = False
        object.__setattr__(self, "edges", edges)

    @property
    def last(self) -> int:
        """The last cell of the last segment."""
        return int(self.edges[-1])

    @property
    def starts(self) -> UInts:
        """The first cell of each segment."""
        first = np.array([self.start], dtype=np.uint64)
        return np.concatenate([first, self.edges[:-1] + np.uint64(1)])

    def locate(self, cells: ArrayLike) -> NDArray[np.intp]:
        """The index of the segment that holds each cell."""
        inside = _cells(cells, "cells")
        fits = not inside.size or self.start <= int(inside.min()) <= int(inside.max()) <= self.last
        fix = "ask for cells of the cut"
        check(fits, "cells", f"must lie in {self.start}, ..., {self.last}", given=cells, fix=fix)
        return np.asarray(np.searchsorted(self.edges, inside))

    @staticmethod
    def join(cuts: Iterable[Cut]) -> Cut:
        """One cut from the cuts of neighbouring ranges, for instance of shards."""
        cuts = list(cuts)
        for before, after in pairwise(cuts):
            fits = after.start == before.last + 1 and after.guarantee == before.guarantee
            fix = "join all shards of one partition in order"
            check(fits, "cuts", "must be of neighbouring ranges and carry one guarantee", given=cuts, fix=fix)
        check(cuts, "cuts", "must hold at least one cut", given=cuts, fix="pass the shards' cuts")
        edges = np.concatenate([cut.edges for cut in cuts])
        return Cut(edges=edges, start=cuts[0].start, guarantee=cuts[0].guarantee)

    def __len__(self) -> int:
        return int(self.edges.size)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Cut):
            return NotImplemented
        same_place = self.start == other.start and self.guarantee == other.guarantee
        return same_place and np.array_equal(self.edges, other.edges)

    def __hash__(self) -> int:
        return hash((self.start, self.guarantee, self.edges.tobytes()))


def _cells(values: ArrayLike, name: str) -> UInts:
    array = integer_array(values, name)
    if array.size and not 0 <= int(array.min()) <= int(array.max()) < 2**64:
        raise InvalidParameter(name, "must lie in 0, ..., 2^64 - 1", given=values, fix="pass cells")
    return array.astype(np.uint64, copy=False)
