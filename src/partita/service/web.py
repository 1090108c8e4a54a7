"""The middleware that surrounds both applications, with its log and its metrics.

From the outside in: requests are logged and measured, responses get security headers, errors become JSON,
and a request passes the checks of host, site, access and size before a route sees it. `secured` puts them in
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
from typing import Final, TextIO, TypeAlias, final

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

from partita.service.access import NEEDS, Buckets, Guard, Side
from partita.service.errors import Errors, Refusal, handle_errors
from partita.service.settings import VERSION, Limits, ServiceSettings
from partita.service.tokens import ANYBODY, Keyring, TokenFile

__all__ = [
    "CONTENT_TYPE_LATEST",
    "POLICY",
    "Bounds",
    "Hosts",
    "Log",
    "Metrics",
    "Observed",
    "SecurityHeaders",
    "Sites",
    "names",
    "rounded",
    "secured",
    "template",
]

# ---- log ----

_SECOND: Final = 10**9


@final
@dataclass(frozen=True)
class Log:
    """One process's lines. What nobody reads any more disturbs nothing."""

    process: str
    now: Callable[[], int]
    stream: TextIO | None = None

    def info(self, event: str, **entries: object) -> None:
        """Something ordinary."""
        self._write("info", event, entries)

    def error(self, event: str, **entries: object) -> None:
        """Something that a steward should look at."""
        self._write("error", event, entries)

    def _write(self, level: str, event: str, entries: dict[str, object]) -> None:
        line = {
            "time": _written(self.now() // _SECOND),
            "level": level,
            "process": self.process,
            "event": event,
            **entries,
        }
        stream = self.stream or sys.stderr
        with suppress(OSError, ValueError, AttributeError):
            stream.write(f"{json.dumps(line)}\n")
            stream.flush()


@lru_cache(maxsize=1)
def _written(seconds: int) -> str:
    """A moment in UTC, to the second; the same for all lines of that second."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def rounded(nanoseconds: int) -> int:
    """A duration in milliseconds, rounded up to 1, 2 or 5 times a power of ten.

    >>> [rounded(ms * 10**6) for ms in (0, 1, 3, 12, 700)]
    [1, 1, 5, 20, 1000]
    """
    milliseconds, step = max(1, -(-nanoseconds // 10**6)), 1
    while step * 10 < milliseconds:
        step *= 10
    return next(step * factor for factor in (1, 2, 5, 10) if step * factor >= milliseconds)


# ---- metrics ----

_BUCKETS: Final = (0.1, 0.5, 2, 10, 30)


@final
class Metrics:
    """The numbers of one reading process, in a registry of its own: nothing else can slip in.

    When a number began is not told: it would come from another clock than all else here. A duration is taken
    for the upper end of its bucket, so the sum of all tells no more than the buckets do.
    """

    def __init__(self, *, releases: Callable[[], int]) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = CollectorRegistry()
        self._known: dict[tuple[str, int], tuple[Counter, Histogram]] = {}
        self._reads = Counter(
            "partita_reads",
            "Requests to read, by route and status",
            ("route", "status"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "partita_read_seconds",
            "Seconds until an answer begins, by route",
            ("route",),
            buckets=_BUCKETS,
            registry=self._registry,
        )
        held = Gauge("partita_releases", "Releases in the public folder", registry=self._registry)
        held.set_function(releases)
        version = Info("partita", "The library behind the service", registry=self._registry)
        version.info({"version": VERSION})

    def read(self, *, route: str, status: int, nanoseconds: int) -> None:
        """Count one request to read."""
        reads, seconds = self._of(route, status)
        reads.inc()
        seconds.observe(_coarse(nanoseconds / _SECOND))

    def _of(self, route: str, status: int) -> tuple[Counter, Histogram]:
        """The two numbers of a route and a status, looked up once: there are few of them."""
        if (route, status) not in self._known:
            found = self._reads.labels(route, str(status)), self._seconds.labels(route)
            self._known[route, status] = found
        return self._known[route, status]

    def text(self) -> bytes:
        """All of them, as Prometheus reads them."""
        return generate_latest(self._registry)


def _coarse(seconds: float) -> float:
    """The upper end of the bucket that a duration is in, or of the last one."""
    return next((end for end in _BUCKETS if seconds <= end), _BUCKETS[-1])


# ---- measurement of requests ----

_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


@final
@dataclass(frozen=True)
class Observed:
    """Notes every request but those that `hidden` says leave no trace: when events come is secret.

    It is asked when a request is over, and has been given a caller and a route.

    The clock stops when an answer begins, so who listens for hours is not taken for slow.
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
        start, answer = self.now(), _Answer(0, 0)

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer.status, answer.time = message["status"], self.now() - start
            await send(message)

        try:
            await self.app(scope, receive, watched)
        finally:
            if not self.hidden(scope):
                self._note(scope, answer)

    def _note(self, scope: Scope, answer: _Answer) -> None:
        route = template(scope) or "none"
        if self.metrics is not None:
            self.metrics.read(route=route, status=answer.status, nanoseconds=answer.time)
        method = scope["method"] if scope["method"] in _METHODS else "OTHER"
        asked = {"address": scope["client"][0]} if self.addresses and scope.get("client") else {}
        took = rounded(answer.time)
        self.log.info("request", method=method, route=route, status=answer.status, milliseconds=took, **asked)


@final
@dataclass
class _Answer:
    """The status of an answer, 0 while there is none, and after how long it began."""

    status: int
    time: int


def template(scope: Scope) -> str | None:
    """The route of a request as it was declared, or the name of what answers it; never its path."""
    declared = getattr(scope.get("route"), "path", None)
    return declared or getattr(scope.get("endpoint"), "__name__", None)


# ---- security headers ----

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


# ---- names of the host ----

_LOCAL: Final = ("localhost", "127.0.0.1", "[::1]")
_ANY: Final = "*"
_PORT: Final = re.compile(r"[0-9]{1,5}")


def names(settings: ServiceSettings) -> frozenset[str]:
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


# ---- requests from pages of other sites ----

_SITE: Final = (b"sec-fetch-site", b"cross-site")
_LINK: Final = (b"sec-fetch-mode", b"navigate")


@final
@dataclass(frozen=True)
class Sites:
    """Refuses what a page of another site asks for, unless somebody goes from there to a page of readers."""

    app: ASGIApp
    side: Side

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and _SITE in scope["headers"] and not self._is_followed(scope):
            raise Refusal(
                403, "OtherSite", "a page of another site asked for this; links to pages are what it may have"
            )
        await self.app(scope, receive, send)

    def _is_followed(self, scope: Scope) -> bool:
        return self.side == "reading" and _LINK in scope["headers"] and NEEDS["reading"](scope) is None


# ---- limits of requests ----


@final
@dataclass(frozen=True)
class Bounds:
    """Reads no more of a body than is allowed, whatever its header says.

    The time of a request runs until its answer begins, its body included: who sends slowly is cut off,
    and who listens to a long answer is not. `timeout` is injected by tests only.
    """

    app: ASGIApp
    limits: Limits
    timeout: Callable[[float], asyncio.Timeout] = asyncio.timeout

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        body = _Body(receive, largest=self._largest(scope["path"]))
        body.check_announced(scope)
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
    """The body of a request, counted as it comes.

    Frameworks turn what is raised while they read into errors of their own, so one that is too long is
    remembered, and refused again when the answer is about to begin.
    """

    def __init__(self, receive: Receive, *, largest: int) -> None:
        self._receive, self._largest, self._size = receive, largest, 0

    def check_announced(self, scope: Scope) -> None:
        """Refuse by the length that the header promises, before anything is read."""
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
            raise Refusal(
                413, "BodyTooLarge", f"a body may have {self._largest} bytes here; send it in parts"
            )


# ---- all middleware together ----

Now: TypeAlias = Callable[[], int]


def secured(
    app: FastAPI,
    settings: ServiceSettings,
    *,
    side: Side,
    releases: Callable[[], int] | None = None,
    forgets: Callable[[str], bool] = lambda _: False,
    now: Now = time.time_ns,
) -> FastAPI:
    """The same app, which answers only those that it should, and says only what it may.

    From the outside in: requests are noted, answers get their headers, errors become JSON, and a request
    passes the names of the host, the sites, the guard and the bounds before a route sees it. Middleware that
    is added last stands outermost. `forgets` says which streams are pan-private. `app.state.ending` is set
    when the service is told to end.
    """
    log, hidden = Log(side, now), _hidden(side)
    metrics = None if releases is None else Metrics(releases=releases)
    app.state.ending = asyncio.Event()
    _add_routes(app, metrics)
    handle_errors(app)
    app.add_middleware(Bounds, limits=settings.limits)
    app.add_middleware(
        Guard,
        side=side,
        public=settings.public,
        keyring=_keyring(settings, now),
        buckets=_buckets(settings.limits, now),
        forgets=forgets,
    )
    app.add_middleware(Sites, side=side)
    app.add_middleware(Hosts, allowed=names(settings))
    app.add_middleware(Errors, unexpected=_spoken(log, hidden))
    app.add_middleware(SecurityHeaders)
    app.add_middleware(
        Observed,
        log=log,
        metrics=metrics,
        hidden=hidden,
        addresses=settings.log_addresses,
        now=now,
    )
    return app


def _keyring(settings: ServiceSettings, now: Now) -> Keyring | None:
    return None if settings.tokens is None else Keyring(TokenFile(settings.tokens, now))


def _buckets(limits: Limits, now: Now) -> Buckets:
    return Buckets(rate=limits.rate, burst=limits.burst, callers=limits.callers, now=now)


def _hidden(side: Side) -> Callable[[Scope], bool]:
    """Whether nothing is noted of a request that was answered, not even that it was refused.

    On the steward's side that is whatever may have been meant to feed, however it was addressed: all but
    what an admin asks of an address that there is.
    """

    def hidden(scope: Scope) -> bool:
        if side == "reading":
            return False
        caller = scope.get("state", {}).get("caller", ANYBODY)
        return "admin" not in caller.scopes or template(scope) is None or _feeds(scope)

    return hidden


def _feeds(scope: Scope) -> bool:
    need = NEEDS["steward"](scope)
    return need is not None and need.scope == "feed"


def _spoken(log: Log, hidden: Callable[[Scope], bool]) -> Callable[[Scope, str], None]:
    """A line for what should not have happened, unless it happened to what is hidden."""

    def unexpected(scope: Scope, kind: str) -> None:
        if not hidden(scope):
            log.error("unexpected", kind=kind)

    return unexpected


def _add_routes(app: FastAPI, metrics: Metrics | None) -> None:
    @app.get("/-/healthy", tags=["service"], summary="Whether the service answers")
    async def healthy() -> dict[str, str]:
        return {"status": "ok"}

    if metrics is not None:

        @app.get("/-/metrics", tags=["service"], summary="Numbers for Prometheus", response_class=Response)
        async def measured() -> Response:
            return Response(metrics.text(), media_type=CONTENT_TYPE_LATEST)
