"""Which scope an address needs. The addresses are all here, so that none is open by accident."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, final

from starlette.types import Scope

from partita.service.settings import NAME, is_loopback

__all__ = ["NEEDS", "Need", "Side"]

Side: TypeAlias = Literal["reading", "steward"]

_HEALTHY: Final = "/-/healthy"
_METRICS: Final = "/-/metrics"
_LOOKING: Final = ("GET", "HEAD")
_PAGE: Final = re.compile(
    rf"/(?:releases/{NAME.pattern}(?:/view)?|streams/{NAME.pattern}|static/.*|favicon\.ico)?"
)
_TWINS: Final = (".json", ".csv")
_FEEDING: Final = re.compile(rf"/streams/({NAME.pattern})/events")


@final
@dataclass(frozen=True)
class Need:
    """A scope, and the stream that is to be fed, if one is."""

    scope: str
    stream: str | None = None


def reading_need(scope: Scope) -> Need | None:
    """The page and its files are for everybody, as they say nothing; all else is for who may read.

    Metrics are for this machine and for admins: how long answers take depends on all that a machine does.
    """
    path = scope["path"]
    if path == _HEALTHY:
        return None
    if path == _METRICS:
        return _admin_elsewhere(scope)
    if scope["method"] in _LOOKING and _PAGE.fullmatch(path) and not path.endswith(_TWINS):
        return None
    return Need("read")


def steward_need(scope: Scope) -> Need | None:
    """Events are for feeders, and all else is for admins: how fast anything is answered tells of feeding."""
    if scope["path"] == _HEALTHY:
        return _admin_elsewhere(scope)
    feeding = _FEEDING.fullmatch(scope["path"])
    if feeding and scope["method"] == "POST":
        return Need("feed", feeding[1])
    return Need("admin")


def _admin_elsewhere(scope: Scope) -> Need | None:
    """Nothing for who is on this machine."""
    client = scope.get("client")
    return None if client and is_loopback(client[0]) else Need("admin")


NEEDS: Final[Mapping[Side, Callable[[Scope], Need | None]]] = {
    "reading": reading_need,
    "steward": steward_need,
}
"""What a request needs, by the side of the service that it comes to."""
