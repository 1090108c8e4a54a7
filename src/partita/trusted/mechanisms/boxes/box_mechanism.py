"""What every mechanism over several axes is made with, and what it asks of its data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from partita.domain.axis import MOST_AXES, Axis, checked_axes
from partita.errors.checks import check
from partita.numbers import Converted, freeze, frozen, parameter
from partita.public.boxes.base.boxes import Boxes
from partita.trusted.mechanisms.base.base import Private
from partita.trusted.mechanisms.base.checks import fitting_points
from partita.trusted.noise.system.protocol import Noise
from partita.trusted.noise.system.system import SYSTEM
from partita.trusted.secret.points import PointCounts


@frozen(kw_only=True)
class BoxMechanism(Private, ABC):
    """A pure epsilon-DP release of points along several axes, special cells included."""

    name: ClassVar[str]
    """The name that users know."""

    fewest_axes: ClassVar[int] = 1

    axes: Converted[Sequence[Axis], tuple[Axis, ...]] = parameter()

    def _convert(self) -> None:
        super()._convert()
        freeze(self, axes=_as_many_as_suit(checked_axes(self.axes), self.fewest_axes))

    @abstractmethod
    def _check(self) -> None:
        """Refuse axes that are too large, and an epsilon whose noise cannot be drawn."""

    @property
    def why(self) -> str:
        """A sentence about what the mechanism chooses, a function of public facts; empty if nothing."""
        return ""

    @abstractmethod
    def predicted_error(self, rows: int) -> float:
        """About the root-mean-square error of a random box if there are that many rows."""

    @abstractmethod
    def predicted_numbers(self, rows: int) -> int:
        """About how many integers the release holds."""

    def fitting(self, points: PointCounts) -> PointCounts:
        """The points, if they lie on these axes and bound contributions at least as tightly."""
        return fitting_points(points, self.axes, self.contributions)

    @abstractmethod
    def release(self, points: PointCounts, *, noise: Noise = SYSTEM) -> Boxes:
        """Draw noise and release."""


def _as_many_as_suit(axes: tuple[Axis, ...], fewest: int) -> tuple[Axis, ...]:
    fix = "use Intervals for one column"
    check(len(axes) >= fewest, "axes", f"must be at least {fewest}", given=len(axes), fix=fix)
    fix = "publish fewer columns together, several times: views=[(...), (...)]"
    check(len(axes) <= MOST_AXES, "axes", f"must be at most {MOST_AXES}", given=len(axes), fix=fix)
    return axes
