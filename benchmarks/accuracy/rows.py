"""What a row of the benchmark is: independent cells, and totals over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from benchmarks.accuracy.score import Json

Cell: TypeAlias = Callable[[], Json]
"""One measurement; can be sent to another process."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to run: the mechanism, the one it is compared with where two are, releases of each cell.

    Rows about boxes over several columns run `boxes`. Rows about whole tables run the named `sets`, or all,
    and other libraries only with `peers`.
    """

    mechanism: str = "intervals"
    against: str = "partition-tents"
    boxes: str = "rectangles"
    trials: int = 10
    sets: tuple[str, ...] = ()
    peers: bool = False

    def chosen(self, sets: Sequence[str]) -> list[str]:
        """Those of the sets that are run."""
        return [name for name in sets if not self.sets or name in self.sets]


@dataclass(frozen=True)
class Row:
    """A comparison: its cells under a plan, and the totals over what they gave.

    Cells that look at a clock are measured one after another, never side by side.
    """

    cells: Callable[[Plan], Sequence[Cell]]
    totals: Callable[[list[Json]], Iterator[Json]]
    clocked: bool = False
