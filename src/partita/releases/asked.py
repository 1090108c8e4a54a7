"""What a question names: its columns, and which ends of ranges belong to them."""

from __future__ import annotations

from partita.errors import InvalidParameter
from partita.releases.regions import HalfSpace, Polygon
from partita.releases.spans import Ends, check_ends
from partita.releases.where import Where, gathered

__all__ = ["asked_for"]


def asked_for(where: Where | None, columns: Where, closed: Ends) -> dict[str, object]:
    """The columns asked for, by `where` and as keywords, if `closed` is about some of them."""
    asked = gathered(where, columns)
    if isinstance(asked.get("region"), HalfSpace | Polygon):
        fix = "ask for the count of a shape"
        raise InvalidParameter("region", "must not be a shape here", given=asked["region"], fix=fix)
    check_ends(closed, asked)
    return asked
