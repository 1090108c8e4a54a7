"""Column names are public: an error may show them, and suggest the one that was meant.

But for the first line of a CSV file, which is a person's row where somebody forgot that there is no
header: nothing of it is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from partita.errors.checks import check
from partita.errors.errors import InvalidParameter, SourceError

_SHOWN = 8


def checked(names: object, parameter: str) -> list[str]:
    """A list of column names, each named once."""
    if isinstance(names, (str, bytes)) or not isinstance(names, Sequence):
        raise InvalidParameter(parameter, "must be a list of column names", given=names, fix='pass ["age"]')
    for name in names:
        check(isinstance(name, str), parameter, "must be column names", given=name, fix="pass them as text")
        fix = "leave one out"
        check(list(names).count(name) <= 1, parameter, "must name each column once", given=name, fix=fix)
    return list(names)


def positions(wanted: Sequence[str], present: Sequence[str], *, listed: bool = True) -> list[int]:
    """Where each wanted column is among those present, which an error lists unless `listed` is False.

    >>> positions(["age"], ["id", "age"])
    [1]
    >>> positions(["agge"], ["id", "age"])
    Traceback (most recent call last):
        ...
    partita.errors.errors.SourceError: column 'agge' is not in the data; did you mean 'age'?
    """
    return [_position(name, present, listed) for name in wanted]


def _position(name: str, present: Sequence[str], listed: bool) -> int:
    if name not in present:
        raise SourceError(f"column {name!r}", "is not in the data", fix=_nearest(name, present, listed))
    if present.count(name) > 1:
        raise SourceError(f"column {name!r}", "is in the data more than once", fix="rename all but one")
    return present.index(name)


def _nearest(name: str, present: Sequence[str], listed: bool) -> str:
    if not listed:
        return "check the spelling, or declare header=[...] if the file has no line of column names"
    if near := get_close_matches(name, present, n=1, cutoff=0.5):
        return f"did you mean {near[0]!r}?"
    more = " and so on" if len(present) > _SHOWN else ""
    return f"choose among {', '.join(map(repr, present[:_SHOWN]))}{more}" if present else "it has no columns"
