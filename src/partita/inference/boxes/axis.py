"""The axes of boxes, as `partita.domain.axis` defines them."""

from partita.domain.axis import LARGEST_AXIS, MOST_AXES, Axis, checked_axes

__all__ = ["LARGEST_AXIS", "MOST_AXES", "Axis", "checked_axes"]
