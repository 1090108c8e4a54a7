"""What browsers are told: load nothing from elsewhere, guess no types, sit in no frame, tell nobody."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["POLICY", "SecurityHeaders"]

POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
"""Scripts, styles and requests of the page come from and go to the service itself, and nothing is inline."""

_HEADERS: Final = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
)
_UNSAID: Final = (b"cache-control", b"no-store")
_TLS: Final = (b"strict-transport-security", b"max-age=31536000")


@final
@dataclass(frozen=True)
class SecurityHeaders:
    """Puts the headers on every answer; what a route says of caches stays, and silence means no cache.

    That only TLS will do is said behind TLS only: the proxy that ends it says so.
    """

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        added = [*_HEADERS, *([_TLS] if scope.get("scheme") == "https" else [])]

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                said = list(message.get("headers", ()))
                spoken = any(name == _UNSAID[0] for name, _ in said)
                message["headers"] = [*said, *added, *([] if spoken else [_UNSAID])]
            await send(message)

        await self.app(scope, receive, with_headers)
