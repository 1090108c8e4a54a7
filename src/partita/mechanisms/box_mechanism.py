"""What every mechanism over several axes is made with, and what it asks of its data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from partita.errors import InvalidData, InvalidParameter
from partita.exact import freeze
from partita.guarantee import Neighbors, Unit
from partita.inference.boxes.axis import Axis
from partita.mechanisms.base import Private
from partita.noise.protocol import Noise
from partita.noise.system import SYSTEM
from partita.points import Points
from partita.releases.boxes import Boxes

__all__ = ["MOST_AXES", "BoxMechanism"]

MOST_AXES: Final = 6
"""No release has more columns together: with each, a box of all of them says less about any."""


@dataclass(frozen=True, init=False, kw_only=True)
class BoxMechanism(Private, ABC):
    """A pure epsilon-DP release of points along several axes, special cells included.

    Each mechanism spells out its own parameters and hands those that all have to `_settle_boxes`.
    """

    axes: tuple[Axis, ...]

    def _settle_boxes(
        self,
        *,
        axes: Sequence[Axis],
        epsilon: object,
        neighbors: Neighbors,
        contributions: int,
        unit: Unit | None,
    ) -> None:
        """Check the parameters that all mechanisms over boxes have, and set them."""
        self._settle(epsilon=epsilon, neighbors=neighbors, contributions=contributions, unit=unit)
        freeze(self, axes=_axes(axes))

    def fitting(self, points: Points) -> Points:
        """The points, if they lie on these axes and bound contributions at least as tightly."""
        if not isinstance(points, Points):
            raise InvalidData("points", "must be Points", fix="use Points.from_rows")
        if points.axes != self.axes:
            raise InvalidData("points", "must lie on the mechanism's axes", fix="use one domain for both")
        if points.contributions > self.contributions:
            raise InvalidParameter(
                "contributions",
                f"must be at least that of the points, {points.contributions}",
                given=self.contributions,
                fix="raise it in the mechanism",
            )
        return points

    @abstractmethod
    def release(self, points: Points, *, noise: Noise = SYSTEM) -> Boxes:
        """Draw noise and release."""


def _axes(axes: object) -> tuple[Axis, ...]:
    given = tuple(axes) if isinstance(axes, list | tuple) else ()
    if not given or not all(isinstance(axis, Axis) for axis in given):
        raise InvalidParameter(
            "axes", "must be a list of axes", given=axes, fix="pass Axis.of(domain) for each"
        )
    if len(given) > MOST_AXES:
        raise InvalidParameter(
            "axes",
            f"must be at most {MOST_AXES}",
            given=len(given),
            fix="publish fewer columns together, several times: views=[(...), (...)]",
        )
    return given
