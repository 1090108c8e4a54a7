"""Addresses of PostgreSQL databases, of which only host and database are ever shown.

    postgresql://user:password@host:5432/database?sslmode=verify-full

A password may be in the address, and is better in a password file or a service file, which libpq reads.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, final

from partita.errors import InvalidParameter

__all__ = ["Address", "is_address", "is_no_path", "shown"]

_SCHEMES: Final = ("postgresql://", "postgres://")
_MAY_HIDE: Final = re.compile(r"://|password\s*=", re.IGNORECASE)
_HOST: Final = r"(?:\[[0-9A-Fa-f:.]*\]|[^@/?#\s:,\[\]]*)(?::\d*)?"
_SHAPE: Final = re.compile(
    rf"postgres(?:ql)?://(?:[^@/?#\s]*@)?({_HOST}(?:,{_HOST})*)(?:/([^@/?#\s]*))?(?:\?[^@#\s]*)?"
)


def is_address(place: object) -> bool:
    """Whether this is meant as the address of a database: it starts like one, after spaces perhaps.

    >>> is_address("postgresql://steward@db.example.org/budget"), is_address("budget.db")
    (True, False)
    """
    return isinstance(place, str) and place.lstrip().startswith(_SCHEMES)


def is_no_path(place: object) -> bool:
    """Whether this is meant as an address of any kind, and may have a password in it wherever that is.

    >>> is_no_path("host=db.example.org password=hunter2"), is_no_path("budget.db")
    (True, False)
    """
    return isinstance(place, str) and _MAY_HIDE.search(place) is not None


def shown(place: str) -> str:
    """What may be shown of a path, or of an address; what is neither is refused unseen.

    >>> shown("postgresql://steward:hunter2@db.example.org/budget"), shown("budget.db")
    ('postgresql://db.example.org/budget', 'budget.db')
    """
    return str(Address(place)) if is_no_path(place) else place


@final
@dataclass(frozen=True, repr=False)
class Address:
    """The address of a database, whole in `secret`, which never appears in a text of ours.

    A character that means something in an address is written with a percent sign elsewhere, such as %40 for
    the @ in a password: otherwise nobody could say where the password ends.

    >>> Address("postgresql://steward:hunter2@db.example.org:5432/budget?sslmode=require")
    postgresql://db.example.org:5432/budget
    """

    secret: str

    def __post_init__(self) -> None:
        if not is_no_path(self.secret) or _SHAPE.fullmatch(self.secret) is None:
            raise InvalidParameter(
                "address",
                "must be an address like postgresql://user@host/database",
                given=_Unshown(),
                fix="write @ : / ? # in a user or password as %40 %3A %2F %3F %23",
            )

    def __repr__(self) -> str:
        host, database = _SHAPE.fullmatch(self.secret).groups()  # type: ignore[union-attr]
        return f"postgresql://{host}/{database or ''}"


class _Unshown:
    """Stands in an error for an address that cannot be taken apart, and may be a password anywhere."""
