"""What every mechanism checks before it draws."""

from __future__ import annotations

from fractions import Fraction

from partita.errors import InvalidData, InvalidParameter
from partita.histogram import AxisCounts
from partita.noise.system import LARGEST_SCALE, SMALLEST_SCALE

__all__ = ["check_scale", "fitting"]


def check_scale(scale: Fraction, epsilon: Fraction) -> None:
    """Refuse an epsilon whose noise cannot be drawn."""
    if not SMALLEST_SCALE <= scale <= LARGEST_SCALE:
        raise InvalidParameter(
            "epsilon",
            "must give noise of a scale between 2^-20 and 2^62",
            given=epsilon,
            fix="choose a usual one, like 1",
        )


def fitting(data: AxisCounts, size: int, contributions: int) -> AxisCounts:
    """The counts, if they are over `size` cells and bound contributions at least as tightly."""
    if not isinstance(data, AxisCounts):
        raise InvalidData("data", "must be a Histogram", fix="use Histogram.from_cells")
    if data.size != size:
        raise InvalidParameter(
            "data", f"must have size {size}", given=data.size, fix="use one domain for both"
        )
    if data.contributions > contributions:
        raise InvalidParameter(
            "contributions",
            f"must be at least the histogram's {data.contributions}",
            given=contributions,
            fix="raise it in the mechanism",
        )
    return data
