"""`simulate`: publish public data with fresh noise, and measure the errors that it makes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, final

import numpy as np

from partita.errors.checks import check
from partita.errors.errors import InvalidParameter
from partita.html import card, grid
from partita.numbers import integer
from partita.public.axis.curve.curve import Floats
from partita.public.base.figures import figure, table
from partita.public.file_entries.file_views import view_name
from partita.public.views.box_view import BoxView
from partita.public.views.view import View
from partita.publish.plan.planning import Plan
from partita.publish.plan.trial import BoxTrial, ColumnTrial, Trial
from partita.publish.publish.making import count
from partita.publish.views.view_request import CountRequest
from partita.trusted.secret.histogram import Histogram
from partita.trusted.secret.points import Points
from partita.trusted.sources.open import open_source

_MOST_RANGES: Final = 10**6
_HEADS: Final = ("view", "mechanism", "ranges", "mean", "typical", "largest")


@final
@dataclass(frozen=True, kw_only=True)
class Measured:
    """How far the answers to some ranges, or boxes over several columns, lie from the exact counts.

    `ranges` says where they end: anywhere in the domain ("anywhere"), or at values of the file ("values").
    `typical` is the root of the mean square.
    """

    columns: tuple[str, ...]
    mechanism: str
    ranges: str
    mean: float
    typical: float
    largest: float

    def cells(self) -> list[str]:
        """One line of a table."""
        errors = (self.mean, self.typical, self.largest)
        return [view_name(self.columns), self.mechanism, self.ranges, *map(figure, errors)]


@final
@dataclass(frozen=True, kw_only=True)
class Simulation:
    """Errors measured against the exact counts of a PUBLIC file.

    The errors tell about the exact counts: of data that must stay private they must not be shown, and
    no ledger pays for them.
    """

    measured: tuple[Measured, ...]

    def rows(self) -> list[dict[str, Any]]:
        """One mapping of plain values for each view and kind of ranges."""
        return [asdict(each) for each in self.measured]

    def to_json(self) -> dict[str, Any]:
        """The errors, and what they may be used for."""
        return {"simulation": _WARNING, "measured": self.rows()}

    def __str__(self) -> str:
        measured = table([_HEADS, *(each.cells() for each in self.measured)], left=3)
        return "\n".join([_WARNING, "", measured, "", _LEGEND])

    def _repr_html_(self) -> str:
        measured = grid(_HEADS, [each.cells() for each in self.measured], left=3, note=_LEGEND)
        return card("Simulation", [("beware", _WARNING)], below=[measured])


_WARNING: Final = (
    "Simulation: errors of ranges and boxes against the exact counts of a file, for PUBLIC data only. "
    "Nothing was released and no ledger was debited."
)

_LEGEND: Final = (
    "Errors are in rows; typical is the root of the mean square. Ranges and boxes end anywhere in the\n"
    "domain, or at values of the file. Sums and answers to queries are not measured."
)


def simulate(
    plan: Plan,
    source: object,
    *,
    ranges: int = 1000,
    delimiter: str = ",",
    header: Sequence[str] | None = None,
) -> Simulation:
    """Publish the counts of a PUBLIC table as planned, with fresh noise, and compare with the exact ones.

    Sums and answers to queries are not compared. The table stands in for one that may not be looked at.
    Never pass the private table: what this returns has no guarantee.
    """
    check(isinstance(plan, Plan), "plan", "must be a Plan", given=plan, fix="pass what `plan` returned")
    number = integer(ranges, "ranges", low=1, high=_MOST_RANGES)
    counted = count(open_source(source, delimiter=delimiter, header=header), plan.request, None)
    pairs = zip(plan.request.views, counted, strict=False)
    return Simulation(
        measured=tuple(each for view, secret in pairs for each in _measured(view, secret, number))
    )


def _measured(view: CountRequest[Any], secret: Any, ranges: int) -> list[Measured]:
    trial = _trial(view, secret)
    return [_summary(view, kind, trial.misses(ends)) for kind, ends in trial.ends(ranges).items()]


def _trial(view: CountRequest[Any], secret: Any) -> Trial:
    released = view.release(secret)
    if isinstance(released, BoxView) and isinstance(secret, Points):
        return BoxTrial(released.boxes, secret)
    if isinstance(released, View) and isinstance(secret.histogram, Histogram):
        return ColumnTrial(released.axis, secret.histogram)
    rule, fix = "must be a table that is counted on this machine", "simulate with a sample of it in a file"
    raise InvalidParameter("source", rule, given=type(secret).__name__, fix=fix)


def _summary(view: CountRequest[Any], kind: str, misses: Floats) -> Measured:
    return Measured(
        columns=view.columns,
        mechanism=view.choice.name,
        ranges=kind,
        mean=float(misses.mean()),
        typical=float(np.sqrt(np.mean(misses**2))),
        largest=float(misses.max()),
    )
