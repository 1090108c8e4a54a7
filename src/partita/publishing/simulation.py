"""`simulate`: publish public data with fresh noise, and measure the errors that it makes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, final

import numpy as np

from partita.errors import InvalidParameter
from partita.exact import integer
from partita.histogram import Histogram
from partita.inference.curve import UInts
from partita.publishing.making import count
from partita.publishing.planning import Plan
from partita.publishing.request import ViewRequest
from partita.releases.figures import figure, table
from partita.sources import Column, open_source

__all__ = ["Measured", "Simulation", "simulate"]

_MOST_RANGES: Final = 10**6
_WORD: Final = 2**64
_STRIDES: Final = (13_925_035_116_211_876_495, 10_511_698_010_929_265_436)
"""2^64 / g and 2^64 / g^2 with g^3 = g + 1: multiples of the two spread evenly over all pairs."""


@final
@dataclass(frozen=True, kw_only=True)
class Measured:
    """How far the answers to some ranges lie from the exact counts.

    `ranges` says where they end: anywhere in the domain ("anywhere"), or at values of the file ("values").
    """

    column: str
    mechanism: str
    ranges: str
    mean: float
    typical: float
    largest: float

    def cells(self) -> list[str]:
        """One line of a table."""
        errors = (self.mean, self.typical, self.largest)
        return [self.column, self.mechanism, self.ranges, *map(figure, errors)]


@final
@dataclass(frozen=True, kw_only=True)
class Simulation:
    """Errors measured against the exact counts of a PUBLIC file.

    The errors tell about the exact counts: of data that must stay private they must not be shown, and
    no ledger pays for them.
    """

    measured: tuple[Measured, ...]

    def rows(self) -> list[dict[str, Any]]:
        """One mapping of plain values for each column and kind of ranges."""
        return [asdict(each) for each in self.measured]

    def to_json(self) -> dict[str, Any]:
        """The errors, and what they may be used for."""
        return {"simulation": _WARNING, "measured": self.rows()}

    def __str__(self) -> str:
        heads = ("column", "mechanism", "ranges", "mean", "typical", "largest")
        return "\n".join([_WARNING, "", table([heads, *(each.cells() for each in self.measured)], left=3)])


_WARNING: Final = (
    "Simulation: errors of ranges against the exact counts of a file, for PUBLIC data only. "
    "Nothing was released and no ledger was debited."
)


def simulate(
    plan: Plan,
    source: object,
    *,
    ranges: int = 1000,
    delimiter: str = ",",
    header: Sequence[str] | None = None,
) -> Simulation:
    """Publish a PUBLIC table as planned, with fresh noise, and compare with its exact counts.

    The table stands in for one that may not be looked at. Never pass the private table: what this
    returns has no guarantee.
    """
    if not isinstance(plan, Plan):
        raise InvalidParameter("plan", "must be a Plan", given=plan, fix="pass what `plan` returned")
    number = integer(ranges, "ranges", low=1, high=_MOST_RANGES)
    columns = count(open_source(source, delimiter=delimiter, header=header), plan.request, None)
    measured = (each for view in plan.request.views for each in _measured(view, columns[view.column], number))
    return Simulation(measured=tuple(measured))


def _measured(view: ViewRequest, column: Column, ranges: int) -> list[Measured]:
    axis, _ = view.mechanism.release(column.histogram, column.specials)
    ends = {"anywhere": _pairs(ranges, view.domain.size)}
    if column.histogram.cells.size:
        ends["values"] = column.histogram.cells[_pairs(ranges, column.histogram.cells.size)]
    found = []
    for kind, (one, other) in ends.items():
        lows, highs = np.minimum(one, other), np.maximum(one, other)
        misses = np.abs(axis.counts(lows, highs) - _exact(column.histogram, lows, highs))
        found.append(
            Measured(
                column=view.column,
                mechanism=view.choice.name,
                ranges=kind,
                mean=float(misses.mean()),
                typical=float(np.sqrt(np.mean(misses**2))),
                largest=float(misses.max()),
            )
        )
    return found


def _pairs(count: int, size: int) -> UInts:
    """Two rows of numbers below `size`, spread evenly over all pairs."""
    return np.array(
        [[(turn * stride % _WORD) * size // _WORD for turn in range(1, count + 1)] for stride in _STRIDES],
        dtype=np.uint64,
    )


def _exact(histogram: Histogram, lows: UInts, highs: UInts) -> Any:
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(histogram.counts)])
    upto = before[np.searchsorted(histogram.cells, highs, side="right")]
    return upto - before[np.searchsorted(histogram.cells, lows)]
