"""The middleware that surrounds both applications, with its log and its metrics.

From the outside in: requests are logged and measured, responses get security headers, errors become JSON,
and a request passes the checks of host, site, access and size before a route sees it. `secure` puts them in
this order. Routes know nothing of any of it.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final, TextIO, TypeAlias, final

from fastapi import FastAPI, Response
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from partita.public.streams import SECOND
from partita.service.access import PERMISSIONS, Guard, RateLimiter, Side
from partita.service.errors import ErrorMiddleware, Refusal, add_error_handlers
from partita.service.settings import NAME, VERSION, Limits, ServiceSettings
from partita.service.tokens import ANYBODY, Keyring, TokenFile


# ---- log ----
@final
@dataclass(frozen=True)
class Log:
    """The log of one process: lines of JSON on standard error. A closed stream is ignored.

    A line names the template of a route, not a path: no release, no question, no token, no body. Addresses
    are logged only if the steward asks for them.
    """

    process: str
    now: Callable[[], int]
    stream: TextIO | None = None

    def info(self, event: str, **entries: object) -> None:
        """Log an ordinary event."""
        self._write("info", event, entries)

    def error(self, event: str, **entries: object) -> None:
        """Log an event that a steward should look at."""
        self._write("error", event, entries)

    def _write(self, level: str, event: str, entries: dict[str, object]) -> None:
        head = {"time": _format_time(self.now() // SECOND), "level": level, "process": self.process}
        line, stream = {**head, "event": event, **entries}, self.stream or sys.stderr
        with suppress(OSError, ValueError, AttributeError):
            stream.write(f"{json.dumps(line)}\n")
            stream.flush()


@lru_cache(maxsize=1)
def _format_time(seconds: int) -> str:
    """A moment in UTC, to the second; formatted once for all lines of that second."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def round_up(nanoseconds: int) -> int:
    """A duration in milliseconds, rounded up to 1, 2 or 5 times a power of ten.

    >>> [round_up(ms * 10**6) for ms in (0, 1, 3, 12, 700)]
    [1, 1, 5, 20, 1000]
    """
    milliseconds, step = max(1, -(-nanoseconds // 10**6)), 1
    while step * 10 < milliseconds:
        step *= 10
    return next(step * factor for factor in (1, 2, 5, 10) if step * factor >= milliseconds)


# ---- metrics ----

_BUCKETS: Final = (0.1, 0.5, 2, 10, 30)  # few and coarse: exact times would tell of all that a machine does


@final
class Metrics:
    """The metrics of one reading process for Prometheus, in a registry of its own: nothing else is exported.

    Creation times are not exported: they would come from another clock than all else here. A duration is
    rounded up to the end of its bucket, so the sum of all tells no more than the buckets do.
    """

    def __init__(self, *, releases: Callable[[], int]) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = CollectorRegistry()
        self._known: dict[tuple[str, int], tuple[Counter, Histogram]] = {}
        own: Any = {"registry": self._registry}
        reads, seconds = "Requests to read, by route and status", "Seconds until an answer begins, by route"
        self._reads = Counter("partita_reads", reads, ("route", "status"), **own)
        self._seconds = Histogram("partita_read_seconds", seconds, ("route",), buckets=_BUCKETS, **own)
        Gauge("partita_releases", "Releases in the public folder", **own).set_function(releases)
        Info("partita", "The library behind the service", **own).info({"version": VERSION})

    def read(self, *, route: str, status: int, nanoseconds: int) -> None:
        """Count one request to read."""
        reads, seconds = self._series(route, status)
        reads.inc()
        seconds.observe(_upper_end(nanoseconds / SECOND))

    def _series(self, route: str, status: int) -> tuple[Counter, Histogram]:
        """The two metrics of a route and a status, cached: there are few of them."""
        if (route, status) not in self._known:
            found = self._reads.labels(route, str(status)), self._seconds.labels(route)
            self._known[route, status] = found
        return self._known[route, status]

    def text(self) -> bytes:
        """All of them, as Prometheus reads them."""
        return generate_latest(self._registry)


def _upper_end(seconds: float) -> float:
    """The upper end of the bucket that a duration is in, or of the last one."""
    return next((end for end in _BUCKETS if seconds <= end), _BUCKETS[-1])


# ---- measurement of requests ----

_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


@final
@dataclass(frozen=True)
class RequestLog:
    """Logs and measures every request except those that are `hidden`: when events come is secret.

    `hidden` is called after the response, when the request has a caller and a route. The time is that until
    the response begins, so a live stream of hours does not count as slow.
    """

    app: ASGIApp
    log: Log
    metrics: Metrics | None
    hidden: Callable[[Scope], bool]
    addresses: bool
    now: Callable[[], int]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, answer = self.now(), _ResponseStart(0, 0)

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer.status, answer.time = message["status"], self.now() - start
            await send(message)

        try:
            await self.app(scope, receive, watched)
        finally:
            if not self.hidden(scope):
                self._note(scope, answer)

    def _note(self, scope: Scope, answer: _ResponseStart) -> None:
        route = route_template(scope) or "none"
        if self.metrics is not None:
            self.metrics.read(route=route, status=answer.status, nanoseconds=answer.time)
        method = scope["method"] if scope["method"] in _METHODS else "OTHER"
        client = {"address": scope["client"][0]} if self.addresses and scope.get("client") else {}
        result = {"status": answer.status, "milliseconds": round_up(answer.time), **client}
        self.log.info("request", method=method, route=route, **result)


@final
@dataclass
class _ResponseStart:
    """The status of a response, 0 while there is none, and after how many nanoseconds it began."""

    status: int
    time: int


def route_template(scope: Scope) -> str | None:
    """The declared route of a request, or the name of its endpoint; never its path."""
    declared = getattr(scope.get("route"), "path", None)
    return declared or getattr(scope.get("endpoint"), "__name__", None)


# ---- security headers ----

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Scripts, styles and requests of the page use the service itself only, and nothing is inline.

No page elsewhere may show it in a frame, but for the charts that the steward lets others embed.
"""

EMBED: Final = re.compile(rf"/releases/{NAME.pattern}/embed")
"""The one address that can be allowed in frames: it shows a chart, and has nothing to press."""

_CSP: Final = b"content-security-policy"
_CORP: Final = b"cross-origin-resource-policy"
_HEADERS: Final = (
    (_CSP, POLICY.encode()),
    (_CORP, b"same-origin"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
)
_NO_STORE: Final = (b"cache-control", b"no-store")
_TLS: Final = (b"strict-transport-security", b"max-age=31536000")


@final
@dataclass(frozen=True)
class SecurityHeaders:
    """Adds security headers to every response; `no-store` unless the route sets another Cache-Control.

    Strict-Transport-Security is sent only behind TLS, as the proxy that ends TLS reports it. Pages of
    `origins` may read responses; pages of `embedders` may show the embedded charts.
    """

    app: ASGIApp
    origins: frozenset[bytes] = frozenset()
    embedders: tuple[str, ...] = ()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        added = [*_HEADERS, *([_TLS] if scope.get("scheme") == "https" else []), *self._shared(scope)]
        if self.embedders and EMBED.fullmatch(scope["path"]):
            policy = POLICY.replace("frame-ancestors 'none'", f"frame-ancestors {' '.join(self.embedders)}")
            added = [(_CSP, policy.encode()), (_CORP, b"cross-origin"), *added[2:]]

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = list(message.get("headers", ()))
                has_policy = any(name == _NO_STORE[0] for name, _ in given)
                message["headers"] = [*given, *added, *([] if has_policy else [_NO_STORE])]
            await send(message)

        await self.app(scope, receive, with_headers)

    def _shared(self, scope: Scope) -> list[tuple[bytes, bytes]]:
        """What lets a page of an allowed origin read the response; caches must tell origins apart."""
        if not self.origins:
            return []
        origin = find_origin(scope, self.origins)
        allowed = [] if origin is None else [(b"access-control-allow-origin", origin), _EXPOSED]
        return [(b"vary", b"Origin"), *allowed]


_EXPOSED: Final = (b"access-control-expose-headers", b"ETag, Retry-After")


def find_origin(scope: Scope, allowed: frozenset[bytes]) -> bytes | None:
    """The origin of the page that asks, if it is one of those allowed; None for all others and for none."""
    sent = [value for name, value in scope["headers"] if name == b"origin"]
    return sent[0] if len(sent) == 1 and sent[0] in allowed else None


# ---- names of the host ----

_LOCAL: Final = ("localhost", "127.0.0.1", "[::1]")
_ANY: Final = "*"
_PORT: Final = re.compile(r"[0-9]{1,5}")


def allowed_hosts(settings: ServiceSettings) -> frozenset[str]:
    """Host names of this machine, the addresses it listens on, and the names that the steward allows."""
    own = (f"[{host}]" if ":" in host else host for host in (settings.host, settings.steward_host))
    return frozenset({*_LOCAL, *(name.lower() for name in own), *settings.hosts})


@final
@dataclass(frozen=True)
class HostCheck:
    """Refuses requests for other host names, against DNS rebinding.

    A page elsewhere can have its own name resolve to a loopback address and read what it gets from there as
    its own. Its requests still carry that name.
    """

    app: ASGIApp
    allowed: frozenset[str]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and _ANY not in self.allowed and _host(scope) not in self.allowed:
            message = "this name is not served here; the steward allows it with --allow-host"
            raise Refusal(421, "UnknownHost", message)
        await self.app(scope, receive, send)


def _host(scope: Scope) -> str:
    """The host of a request without its port; nothing if there is none, or more than one."""
    sent = [value for name, value in scope["headers"] if name == b"host"]
    text = sent[0].decode("latin-1").lower() if len(sent) == 1 else ""
    name, colon, port = text.rpartition(":")
    return name if colon and _PORT.fullmatch(port) else text


# ---- requests from pages of other sites ----

_PREFLIGHT: Final = {
    "Access-Control-Allow-Methods": "GET, HEAD, POST",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, If-None-Match",
    "Access-Control-Max-Age": "600",
}
_SITE: Final = (b"sec-fetch-site", b"cross-site")
_LINK: Final = (b"sec-fetch-mode", b"navigate")


@final
@dataclass(frozen=True)
class SiteCheck:
    """Refuses requests of pages of other sites; they may link to the pages of readers, and nothing else.

    A page elsewhere cannot read a response, but can have the browser of a permitted user send the request:
    as an image, a thousand times. Browsers send the site that a request comes from. Pages of `origins`, which
    the steward allows, may ask; what browsers ask before such a request is answered here.
    """

    app: ASGIApp
    side: Side
    origins: frozenset[bytes] = frozenset()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_allowed = scope["type"] == "http" and find_origin(scope, self.origins) is not None
        if is_allowed and scope["method"] == "OPTIONS":
            await Response(status_code=204, headers=_PREFLIGHT)(scope, receive, send)
            return
        if scope["type"] == "http" and _SITE in scope["headers"] and not (is_allowed or self._is_link(scope)):
            message = "a page of another site asked for this; links to pages are what it may have"
            raise Refusal(403, "OtherSite", message)
        await self.app(scope, receive, send)

    def _is_link(self, scope: Scope) -> bool:
        return self.side == "reading" and _LINK in scope["headers"] and PERMISSIONS["reading"](scope) is None


# ---- limits of requests ----
@final
@dataclass(frozen=True)
class RequestLimits:
    """Limits the size of a body, whatever its header says, and the time of a request.

    The time runs until the response begins, and includes the body: a slow sender is cut off, and the reader
    of a long response is not. `timeout` is injected by tests only.
    """

    app: ASGIApp
    limits: Limits
    timeout: Callable[[float], asyncio.Timeout] = asyncio.timeout

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        body = _Body(receive, largest=self._largest(scope["path"]))
        body.check_length(scope)
        try:
            async with self.timeout(self.limits.seconds) as clock:

                async def begun(message: Message) -> None:
                    body.check()
                    clock.reschedule(None)
                    await send(message)

                await self.app(scope, body.receive, begun)
        except TimeoutError:
            if not clock.expired():
                raise
            raise Refusal(503, "TooSlow", f"the request took longer than {self.limits.seconds} s") from None

    def _largest(self, path: str) -> int:
        if path.endswith("/counts"):
            return self.limits.counts_body
        return self.limits.events_body if path.endswith("/events") else self.limits.body


@final
class _Body:
    """The body of a request, counted while it arrives.

    Frameworks turn an exception during reading into an error of their own, so the size is checked again when
    the response is about to begin.
    """

    def __init__(self, receive: Receive, *, largest: int) -> None:
        self._receive, self._largest, self._size = receive, largest, 0

    def check_length(self, scope: Scope) -> None:
        """Check the length in the header before anything is read."""
        for name, value in scope["headers"]:
            if name == b"content-length" and value.isdigit():
                self._size = max(self._size, int(value[:20]))
        self.check()
        self._size = 0

    async def receive(self) -> Message:
        message = await self._receive()
        self._size += len(message.get("body", b""))
        self.check()
        return message

    def check(self) -> None:
        if self._size > self._largest:
            message = f"a body may have {self._largest} bytes here; send it in parts"
            raise Refusal(413, "BodyTooLarge", message)


# ---- all middleware together ----

Now: TypeAlias = Callable[[], int]


def secure(
    app: FastAPI,
    settings: ServiceSettings,
    *,
    side: Side,
    releases: Callable[[], int] | None = None,
    is_pan_private: Callable[[str], bool] = lambda _: False,
    now: Now = time.time_ns,
) -> FastAPI:
    """The app with all middleware around it.

    Middleware that is added last stands outermost. `is_pan_private` says which streams are pan-private.
    `app.state.ending` is set when the service is about to stop.
    """
    limits, log, hidden = settings.limits, Log(side, now), _hidden(side)
    # Feeding and publishing are for programs: no page of another origin has anything to do there.
    origins = frozenset(origin.encode() for origin in settings.origins if side == "reading")
    embedders = settings.embedders if side == "reading" else ()
    metrics = None if releases is None else Metrics(releases=releases)
    app.state.ending = asyncio.Event()

    def log_unexpected(scope: Scope, kind: str) -> None:
        if not hidden(scope):
            log.error("unexpected", kind=kind)

    _add_routes(app, metrics)
    add_error_handlers(app)
    app.add_middleware(RequestLimits, limits=limits)
    app.add_middleware(
        Guard,
        side=side,
        public=settings.public,
        keyring=None if settings.tokens is None else Keyring(TokenFile(settings.tokens, now)),
        buckets=RateLimiter(rate=limits.rate, burst=limits.burst, callers=limits.callers, now=now),
        is_pan_private=is_pan_private,
    )
    app.add_middleware(SiteCheck, side=side, origins=origins)
    app.add_middleware(HostCheck, allowed=allowed_hosts(settings))
    app.add_middleware(ErrorMiddleware, unexpected=log_unexpected)
    app.add_middleware(SecurityHeaders, origins=origins, embedders=embedders)
    app.add_middleware(
        RequestLog, log=log, metrics=metrics, hidden=hidden, addresses=settings.log_addresses, now=now
    )
    return app


def _hidden(side: Side) -> Callable[[Scope], bool]:
    """Whether a request is neither logged nor measured, not even if it was refused.

    On the steward's side this holds for every request that may have been meant to feed: all requests except
    those of an admin to an existing address.
    """

    def hidden(scope: Scope) -> bool:
        if side == "reading":
            return False
        caller = scope.get("state", {}).get("caller", ANYBODY)
        need = PERMISSIONS["steward"](scope)
        feeds = need is not None and need.scope == "feed"
        return "admin" not in caller.scopes or route_template(scope) is None or feeds

    return hidden


def _add_routes(app: FastAPI, metrics: Metrics | None) -> None:
    @app.get("/-/healthy", tags=["service"], summary="Whether the service answers")
    async def healthy() -> dict[str, str]:
        return {"status": "ok"}

    if metrics is not None:

        @app.get("/-/metrics", tags=["service"], summary="Numbers for Prometheus", response_class=Response)
        async def measured() -> Response:
            return Response(metrics.text(), media_type=CONTENT_TYPE_LATEST)
