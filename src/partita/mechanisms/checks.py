"""What every mechanism checks before it draws."""

from __future__ import annotations

from partita.errors import InvalidData, InvalidParameter
from partita.histogram import Histogram

__all__ = ["fitting"]


def fitting(data: Histogram, size: int, contributions: int) -> Histogram:
    """The histogram, if it is over `size` cells and bounds contributions at least as tightly."""
    if not isinstance(data, Histogram):
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
