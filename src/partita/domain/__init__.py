"""The public geometry of columns: which values there are, and which cell each falls in.

    Integer(0, 120)                           whole numbers
    Real(0, 1000, step="0.01")                numbers rounded to a step
    Date("2020-01-01", "2029-12-31")          calendar days
    Timestamp("2024-01-01", "2024-12-31", "1h")   slots of time
    Category(["north", "south"])              labels
    Text(max_bytes=24)                        names that nobody declares: a release finds them

A domain is declared, never inferred, and it is total: encoding a column gives every row
a cell, an ordinary one or a special one (below, above, invalid, null, other), and no
value raises. docs/decisions/domains.md says how each kind of value is read, and why.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from partita.domain.base import Cells, Domain, Encoded, Position, Spec, Special, is_domain, kind_of
from partita.domain.category import Category
from partita.domain.numeric import Integer, Real
from partita.domain.text import Text
from partita.domain.time import Date, Timestamp
from partita.errors import InvalidParameter

__all__ = [
    "Category",
    "Cells",
    "Date",
    "Domain",
    "Encoded",
    "Integer",
    "Position",
    "Real",
    "Spec",
    "Special",
    "Text",
    "Timestamp",
    "domain_from_spec",
    "is_domain",
]

_KINDS: Final[Mapping[str, type[Domain]]] = {
    "integer": Integer,
    "real": Real,
    "date": Date,
    "timestamp": Timestamp,
    "category": Category,
    "text": Text,
}


def domain_from_spec(spec: Mapping[str, object]) -> Domain:
    """The domain that `to_spec` described, of whichever kind.

    >>> domain_from_spec({"kind": "integer", "low": "0", "high": "120"})
    Integer(0, 120)
    """
    kind, entries = kind_of(spec)
    if kind not in _KINDS:
        fix = "check the spelling, or read the spec with a newer Partita"
        raise InvalidParameter("kind", f"must be one of {', '.join(_KINDS)}", given=kind, fix=fix)
    return _KINDS[kind].from_spec(entries)
