"""Access: which scope an address needs, how often a caller may ask, and the guard that checks both.

Routes know nothing of any of it.
"""

from __future__ import annotations

import ipaddress
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Literal, TypeAlias, final

from starlette.types import ASGIApp, Receive, Scope, Send

from partita.errors import InvalidParameter
from partita.public.streams import SECOND
from partita.service.errors import Refusal
from partita.service.settings import NAME, is_loopback
from partita.service.tokens import ANYBODY, Caller, Keyring

# ---- scopes of addresses ----

Side: TypeAlias = Literal["reading", "steward"]

_HEALTHY: Final = "/-/healthy"
_METRICS: Final = "/-/metrics"
_READ_METHODS: Final = ("GET", "HEAD")
_PAGE: Final = re.compile(
    rf"/(?:releases/{NAME.pattern}(?:/view|/embed)?|streams/{NAME.pattern}|docs|static/.*|favicon\.ico)?"
)
_DATA_SUFFIXES: Final = (".json", ".csv")
_FEEDING: Final = re.compile(rf"/streams/({NAME.pattern})/events")


@final
@dataclass(frozen=True)
class Permission:
    """A scope, and the stream that is to be fed, if one is."""

    scope: str
    stream: str | None = None


def reading_permission(scope: Scope) -> Permission | None:
    """The page and its files are open to everybody, as they contain no data; all else needs `read`.

    Metrics are for this machine and for admins: how long answers take depends on all that a machine does.
    """
    path = scope["path"]
    if path == _HEALTHY:
        return None
    if path == _METRICS:
        return _admin_elsewhere(scope)
    if scope["method"] in _READ_METHODS and _PAGE.fullmatch(path) and not path.endswith(_DATA_SUFFIXES):
        return None
    return Permission("read")


def steward_permission(scope: Scope) -> Permission | None:
    """Events need `feed`, and all else needs `admin`: response times tell something about feeding."""
    if scope["path"] == _HEALTHY:
        return _admin_elsewhere(scope)
    feeding = _FEEDING.fullmatch(scope["path"])
    if feeding and scope["method"] == "POST":
        return Permission("feed", feeding[1])
    return Permission("admin")


def _admin_elsewhere(scope: Scope) -> Permission | None:
    """No permission is needed on this machine."""
    client = scope.get("client")
    return None if client and is_loopback(client[0]) else Permission("admin")


PERMISSIONS: Final[Mapping[Side, Callable[[Scope], Permission | None]]] = {
    "reading": reading_permission,
    "steward": steward_permission,
}
"""What a request needs, by the side of the service that it comes to."""


# ---- rates ----

_SUBNET: Final = 64  # bits of IPv6 that one customer is given


@final
@dataclass
class RateLimiter:
    """A token bucket for each of the latest `callers`: memory is bounded.

    A bucket holds `burst` requests and gets `rate` more a second. The caller that was silent for longest
    is evicted first, and comes back with a full bucket, which its silence has mostly filled anyway. A bucket
    never has debts, so a clock that is put back delays a caller for at most the time of a full bucket.

    >>> buckets = RateLimiter(rate=1, burst=2, callers=10, now=lambda: 0)
    >>> [buckets.wait("web") for _ in range(3)]
    [0, 0, 1]
    """

    rate: int
    burst: int
    callers: int
    now: Callable[[], int]
    _full_at: OrderedDict[str, int] = field(default_factory=OrderedDict)

    def wait(self, caller: str) -> int:
        """Whole seconds that the caller has to wait; 0 if the request is let in, and counted."""
        now, price = self.now(), SECOND // self.rate
        empty = now + price * self.burst
        full_at = min(max(self._full_at.get(caller, now), now), empty)
        over = max(0, full_at + price - empty)
        self._remember(caller, full_at if over else full_at + price)
        return -(-over // SECOND)

    def _remember(self, caller: str, full_at: int) -> None:
        self._full_at[caller] = full_at
        self._full_at.move_to_end(caller)
        if len(self._full_at) > self.callers:
            self._full_at.popitem(last=False)


def network_of(address: str) -> str:
    """The network that counts as one caller: an IPv4 address, or the 64 bits of IPv6 of one customer.

    An IPv4 address may come written as IPv6, by a proxy that listens to both.

    >>> network_of("2001:db8::1") == network_of("2001:db8::2"), network_of("10.0.0.1")
    (True, '10.0.0.1')
    >>> network_of("::ffff:10.0.0.1")
    '10.0.0.1'
    """
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        return "unknown"
    if isinstance(known, ipaddress.IPv4Address):
        return str(known)
    if known.ipv4_mapped is not None:
        return str(known.ipv4_mapped)
    return str(ipaddress.ip_network((int(known), _SUBNET), strict=False))


# ---- callers ----

CALLER: Final[ContextVar[str]] = ContextVar("caller", default="nobody")
"""The caller of the request that is being answered."""

_cached_network = lru_cache(maxsize=4096)(network_of)  # memory against parsing an address per request


def caller_key(scope: Scope, caller: Caller) -> str:
    """The key that a request is counted under: the name of its token, or its network if it has none.

    >>> caller_key({"client": ("192.0.2.7", 4711)}, Caller(None))
    'address 192.0.2.7'
    """
    if caller.name:
        return f"token {caller.name}"
    client = scope.get("client")
    return f"address {_cached_network(client[0]) if client else 'unknown'}"


# ---- the guard ----

_BEARER: Final = "bearer "
_LONGEST_BEARER: Final = 200  # bytes of the header that are read; a token has 89


@final
@dataclass(frozen=True)
class Guard:
    """Lets a request in if its caller has the scope that the address needs.

    The caller is put at `request.state.caller`. Requests with a valid token are counted by its name, others
    by address. Feeding a stream that `is_pan_private` is not counted at all: a count would be a memory of
    who fed how often. Only plain HTTP is let in.
    """

    app: ASGIApp
    side: Side
    public: bool
    keyring: Keyring | None
    buckets: RateLimiter
    is_pan_private: Callable[[str], bool]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            caller, need = self._caller(scope), PERMISSIONS[self.side](scope)
            CALLER.set(caller_key(scope, caller))
            if not self._is_uncounted(caller, need):
                self._check_rate()
            self._check_scope(caller, need)
            scope.setdefault("state", {})["caller"] = caller
        elif scope["type"] != "lifespan":
            raise Refusal(400, "NotSupported", "only plain HTTP is spoken here")
        await self.app(scope, receive, send)

    def _caller(self, scope: Scope) -> Caller:
        text = _bearer(scope)
        if text is None or self.keyring is None:
            return ANYBODY
        try:
            return self.keyring.caller(text) or ANYBODY
        except InvalidParameter:
            raise Refusal(503, "NoAccess", "tokens cannot be checked now; tell the steward") from None

    def _is_uncounted(self, caller: Caller, need: Permission | None) -> bool:
        fed = None if need is None else need.stream
        return fed is not None and "feed" in caller.scopes and self.is_pan_private(fed)

    def _check_rate(self) -> None:
        wait = self.buckets.wait(CALLER.get())
        if wait:
            headers = {"retry-after": str(wait)}
            raise Refusal(429, "TooManyRequests", f"too many requests; wait {wait} s", headers=headers)

    def _check_scope(self, caller: Caller, need: Permission | None) -> None:
        if need is None or (self.public and need.scope == "read"):
            return
        if caller.name is None:
            headers = {"www-authenticate": "Bearer"}
            message = f"a token with the scope {need.scope} is needed: Authorization: Bearer TOKEN"
            raise Refusal(401, "Unauthorized", message, headers=headers)
        if need.scope not in caller.scopes:
            raise Refusal(403, "Forbidden", f"this token does not have the scope {need.scope}")
        if need.stream is not None and caller.streams is not None and need.stream not in caller.streams:
            raise Refusal(403, "Forbidden", "this token may not feed this stream")


def _bearer(scope: Scope) -> str | None:
    """The token of a request, if there is exactly one; a longer text is no token."""
    sent = [value for name, value in scope["headers"] if name == b"authorization"]
    text = sent[0][:_LONGEST_BEARER].decode("latin-1") if len(sent) == 1 else ""
    return text[len(_BEARER) :].strip() if text.lower().startswith(_BEARER) else None
