"""The library's mechanisms by name, as the benchmark runs them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

import numpy as np

from benchmarks.accuracy.queries import Counts
from partita import Histogram, Points
from partita.public.axis.base import AxisRelease
from partita.public.boxes.base import BoxRelease
from partita.trusted.mechanisms.catalogue import axis_mechanisms, box_mechanisms
from partita.trusted.noise.system import SYSTEM

TOTAL_SHARE = Fraction(1, 100)
"""Of epsilon, for the noisy total that a mechanism with a public `total` is told."""

STRONG = 3e4
"""n epsilon from which the wide spending tree is used."""


def release(name: str, data: Any, epsilon: str) -> AxisRelease | BoxRelease:
    """A fresh release by the mechanism of that name, at exactly epsilon in all."""
    made: AxisRelease | BoxRelease
    if isinstance(data, Points):
        made = box_mechanisms()[name](axes=data.axes, epsilon=epsilon).release(data)
    else:
        made = tool(axis_mechanisms()[name], data, Fraction(epsilon)).release(data)
    return made


def tool(made: Any, histogram: Histogram, epsilon: Fraction) -> Any:
    """The mechanism; where it takes a public total, it gets a noisy one for a hundredth of epsilon."""
    if "total" not in {field.name for field in fields(made)}:
        return made(size=histogram.size, epsilon=epsilon)
    rest, scale = epsilon * (1 - TOTAL_SHARE), 1 / (epsilon * TOTAL_SHARE)
    total = max(int(SYSTEM.session().add(np.array([histogram.total]), scale)[0]), 0)
    told = {"total": total, **constants(made.name, total, epsilon, scale)}
    return made(size=histogram.size, epsilon=rest, **told)


def constants(name: str, total: int, epsilon: Fraction, scale: Fraction) -> dict[str, Any]:
    """The published constants of a spending tree for a total; nothing for others."""
    if name != "spending-tree":
        return {}
    if total * epsilon >= STRONG:
        return {"total_scale": scale, "branching": 16, "growth": "4/5", "worth": 8}
    least = int(400 / epsilon)
    raised = {"total": least} if total < least else {"total_scale": scale}
    return {**raised, "branching": 8, "growth": "3/4", "worth": 20}


@dataclass(frozen=True)
class Ours:
    """A mechanism of the library as a method of the benchmark."""

    name: str

    def __call__(self, data: Histogram | Points, epsilon: str) -> Counts:
        return release(self.name, data, epsilon).counts
