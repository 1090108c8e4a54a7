"""A small table release on a fixed tape: four columns, of which some pairs were measured and others not."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any, Final

import numpy as np

import partita as pt
from partita.domain.axis import Axis
from partita.public.base import Provenance
from partita.public.release import Release
from partita.public.tables.graph import TableGraphRelease
from partita.public.views import BoxView
from partita.testing import EndlessTape, tape_noise
from partita.trusted.mechanisms.graph import TableGraph
from partita.trusted.secret import Points

DOMAINS: Final[dict[str, Any]] = {
    "age": pt.Integer(0, 59),
    "pay": pt.Integer(0, 5_999),
    "town": pt.Category(["Rome", "Bari", "Turin"]),
    "rooms": pt.Integer(0, 9),
}
ROWS: Final = 2_400


@cache
def table_release() -> Release:
    """Pay rises with age; towns and rooms have nothing to do with either."""
    axes = tuple(map(Axis.of, DOMAINS.values()))
    number = np.arange(ROWS)
    cells = [number % 60, 100 * (number % 60) + number % 7, number // 7 % 3, number // 60 % 5]
    shifted = [each + axis.before for each, axis in zip(cells, axes, strict=True)]
    points = Points.from_rows(np.stack(shifted, axis=1).astype(np.uint64), axes=axes)
    mechanism = TableGraph(axes=axes, epsilon=1)
    released = mechanism.release(points, noise=tape_noise(EndlessTape("table 5")))
    boxes: TableGraphRelease = replace(released, guarantee=mechanism.guarantee)
    view = BoxView(columns=tuple(DOMAINS), domains=tuple(DOMAINS.values()), boxes=boxes, mechanism="graph")
    provenance = Provenance(version="0.1.0", day="2026-11-18")
    return Release(views=(view,), guarantee=mechanism.guarantee, provenance=provenance)


def find_pair(basis: str) -> tuple[str, str]:
    """The first pair of columns whose answers rest on this."""
    return next(pair[:2] for pair in table_release().dependence().pairs if pair.basis == basis)
