"""What every mechanism checks before it draws."""

from __future__ import annotations

from fractions import Fraction

from partita.domain.axis import Axis
from partita.errors.checks import check, check_data
from partita.errors.errors import InvalidData
from partita.trusted.noise.system.system import LARGEST_SCALE, SMALLEST_SCALE
from partita.trusted.secret.histogram import AxisCounts
from partita.trusted.secret.points import PointCounts

_LESS_TIGHT = "raise it in the mechanism"


def check_scale(scale: Fraction, epsilon: Fraction) -> None:
    """Refuse an epsilon whose noise cannot be drawn."""
    rule, fix = "must give noise of a scale between 2^-20 and 2^62", "choose a usual one, like 1"
    check(SMALLEST_SCALE <= scale <= LARGEST_SCALE, "epsilon", rule, given=epsilon, fix=fix)


def fitting(data: AxisCounts, size: int, contributions: int) -> AxisCounts:
    """The counts, if they are over `size` cells and bound contributions at least as tightly."""
    check_data(isinstance(data, AxisCounts), "data", "must be a Histogram", fix="use Histogram.from_cells")
    fix = "use one domain for both"
    check(data.size == size, "data", f"must have size {size}", given=data.size, fix=fix)
    rule = f"must be at least the histogram's {data.contributions}"
    check(data.contributions <= contributions, "contributions", rule, given=contributions, fix=_LESS_TIGHT)
    return data


def fitting_points(points: object, axes: tuple[Axis, ...], contributions: int) -> PointCounts:
    """The points, if they lie on these axes and bound contributions at least as tightly."""
    if not isinstance(points, PointCounts):
        raise InvalidData("points", "must be Points", fix="use Points.from_rows")
    fix = "use one list of domains for both"
    check_data(points.axes == axes, "points", "must lie on the mechanism's axes", fix=fix)
    rule = f"must be at least that of the points, {points.contributions}"
    check(points.contributions <= contributions, "contributions", rule, given=contributions, fix=_LESS_TIGHT)
    return points
