"""The names that the service answers to.

A page elsewhere can have its own name resolve to a loopback address and read what it gets from there as
its own. Its requests still carry that name, and are refused by it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, final

from starlette.types import ASGIApp, Receive, Scope, Send

from partita.service.settings import Settings
from partita.service.web.errors import Refusal

__all__ = ["Hosts", "names"]

_LOCAL: Final = ("localhost", "127.0.0.1", "[::1]")
_ANY: Final = "*"
_PORT: Final = re.compile(r"[0-9]{1,5}")


def names(settings: Settings) -> frozenset[str]:
    """The names of this machine to itself, the addresses it listens on, and those that the steward allows."""
    own = (f"[{host}]" if ":" in host else host for host in (settings.host, settings.steward_host))
    return frozenset({*_LOCAL, *(name.lower() for name in own), *settings.hosts})


@final
@dataclass(frozen=True)
class Hosts:
    """Refuses requests that were meant for somebody else."""

    app: ASGIApp
    allowed: frozenset[str]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and _ANY not in self.allowed and _host(scope) not in self.allowed:
            raise Refusal(
                421, "UnknownHost", "this name is not served here; the steward allows it with --allow-host"
            )
        await self.app(scope, receive, send)


def _host(scope: Scope) -> str:
    """The host of a request without its port; nothing if there is none, or more than one."""
    sent = [value for name, value in scope["headers"] if name == b"host"]
    text = sent[0].decode("latin-1").lower() if len(sent) == 1 else ""
    name, colon, port = text.rpartition(":")
    return name if colon and _PORT.fullmatch(port) else text
