"""Who a request is counted for: the name of its token, or the address that it comes from.

The guard says it once for each request; whatever works for that request finds it here.
"""

from __future__ import annotations

from contextvars import ContextVar
from functools import lru_cache
from typing import Final

from starlette.types import Scope

from partita.service.access.buckets import neighborhood
from partita.service.access.tokens import Caller

__all__ = ["CALLER", "caller_key"]

CALLER: Final[ContextVar[str]] = ContextVar("caller", default="nobody")
"""The caller of the request that is being answered."""

_neighborhood = lru_cache(maxsize=4096)(neighborhood)


def caller_key(scope: Scope, caller: Caller) -> str:
    """One text for each caller: all requests of a token, or of an address without one, are the same caller's.

    >>> caller_key({"client": ("192.0.2.7", 4711)}, Caller(None))
    'address 192.0.2.7'
    """
    if caller.name:
        return f"token {caller.name}"
    client = scope.get("client")
    return f"address {_neighborhood(client[0]) if client else 'unknown'}"
