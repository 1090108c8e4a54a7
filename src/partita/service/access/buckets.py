"""How often a caller may ask: a bucket of requests that fills by the clock."""

from __future__ import annotations

import ipaddress
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, final

__all__ = ["Buckets", "neighborhood"]

_SECOND: Final = 10**9
_SUBNET: Final = 64


@final
@dataclass
class Buckets:
    """One bucket for each caller, of the latest `callers` only: memory has a bound.

    A bucket holds `burst` requests and gets `rate` more a second. The caller that was silent for longest
    is forgotten first, and comes back with a full bucket, which its silence has mostly filled anyway. No
    bucket is emptier than empty, so a clock that is put back holds nobody up for longer than a full one.

    >>> buckets = Buckets(rate=1, burst=2, callers=10, now=lambda: 0)
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
        now, price = self.now(), _SECOND // self.rate
        empty = now + price * self.burst
        full_at = min(max(self._full_at.get(caller, now), now), empty)
        over = max(0, full_at + price - empty)
        self._remember(caller, full_at if over else full_at + price)
        return -(-over // _SECOND)

    def _remember(self, caller: str, full_at: int) -> None:
        self._full_at[caller] = full_at
        self._full_at.move_to_end(caller)
        if len(self._full_at) > self.callers:
            self._full_at.popitem(last=False)


def neighborhood(address: str) -> str:
    """Who an address belongs to: all of IPv4, or the 64 bits of IPv6 that one customer is given.

    An IPv4 address may come written as IPv6, by a proxy that listens to both.

    >>> neighborhood("2001:db8::1") == neighborhood("2001:db8::2"), neighborhood("10.0.0.1")
    (True, '10.0.0.1')
    >>> neighborhood("::ffff:10.0.0.1")
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
