"""Whether a release will find room in its file: said before a row is read, by writing an empty one.

What limits a file is public: names, labels, reasons, how many series there are. So a file of the same
shape, in which every text is as long and every series as wide as it can become, is written
and read in memory by the code that will write and read the release.
"""

from __future__ import annotations

from typing import Any, Final, get_args, get_type_hints

import numpy as np

from partita.errors.checks import check
from partita.errors.errors import InvalidParameter, InvalidRelease
from partita.public.axis.base.ranges import Json
from partita.public.base.kinds import ReleaseKind
from partita.public.base.provenance import Provenance
from partita.public.file.file import LARGEST, packed, unpacked
from partita.public.file.spec import FORMAT, Stored, columns_of, version_of
from partita.public.file_entries.checksum import checksum
from partita.public.file_entries.file_entries import guarantee_entries, provenance_entries
from partita.publish.request.request import Request
from partita.publish.views.view_request import ColumnRequest, ViewRequest

_MOST_DIGITS: Final = 100
_LONGEST_NUMBER: Final = "9" * 400
_FACTS_BESIDE_SERIES: Final = 12
_FACTS_OF_AN_AXIS: Final = 8
_SIGNATURE: Final = bytes(1024)


def check_room(request: Request, provenance: Provenance) -> None:
    """Refuse a request whose release might not fit into a file; a function of public facts."""
    _check_digits(request)
    try:
        unpacked(packed(_empty(request, provenance), signature=_SIGNATURE), largest=LARGEST)
    except InvalidRelease as error:
        limit = f"{error.parameter} {error.rule}"
    else:
        return
    rule = f"must fit into one file, whose {limit}"
    fix = "publish fewer columns at a time, or with fewer labels and shorter names"
    raise InvalidParameter("views", rule, given=len(request.published), fix=fix)


def _check_digits(request: Request) -> None:
    for view in request.published:
        exact = view.share * request.guarantee.epsilon
        fits = max(exact.numerator, exact.denominator) < 10**_MOST_DIGITS
        rule = f"must be, for each view, a ratio of integers of at most {_MOST_DIGITS} digits"
        fix = "round it down"
        check(fits, "epsilon", rule, given=request.guarantee.epsilon, fix=fix)


def _empty(request: Request, provenance: Provenance) -> Stored:
    """A file of the same shape, with no number in it."""
    views = [_view(view) for view in request.published]
    spec: dict[str, Json] = {
        "format": FORMAT,
        "version": version_of(views),
        "guarantee": guarantee_entries(request.guarantee),
        "provenance": provenance_entries(provenance),
        "views": list[Json](views),
        "checksum": "",
    }
    values = [np.zeros(0, column.dtype) for column in columns_of(spec)]
    spec["checksum"] = checksum(spec, values)
    return Stored(spec, values)


def _view(view: ViewRequest[Any]) -> dict[str, Json]:
    series = _most_series(view)
    facts = series + _FACTS_BESIDE_SERIES + _FACTS_OF_AN_AXIS * len(view.columns)
    return {
        **view.described,
        **_beside(view),
        "mechanism": view.choice.name,
        "why": view.why,
        "kind": "",
        "facts": {"all": [_LONGEST_NUMBER] * facts},
        "guarantee": guarantee_entries(view.guarantee),
        "series": [{"name": f"series{number}", "dtype": "int128", "length": 0} for number in range(series)],
    }


def _beside(view: ViewRequest[Any]) -> dict[str, Json]:
    """The special cells that a view of one column has beside its axis."""
    if not isinstance(view, ColumnRequest):
        return {}
    counts: dict[str, Json] = dict.fromkeys(view.domain.specials, _LONGEST_NUMBER)
    return {"specials": {"counts": counts, "scale": _LONGEST_NUMBER}}


def _most_series(view: ViewRequest[Any]) -> int:
    levels = view.domain.size.bit_length() if isinstance(view, ColumnRequest) else len(view.columns)
    return max(kind.count_series(levels) for kind in _kinds(view.choice.mechanism))


def _kinds(mechanism: object) -> list[type[ReleaseKind]]:
    """The kinds of releases that a mechanism may make, as its signature says."""
    released = get_type_hints(type(mechanism).release)["return"]  # type: ignore[attr-defined]
    return list(get_args(released) or (released,))
