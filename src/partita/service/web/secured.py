"""All that stands around an app, in the right order."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeAlias

from fastapi import FastAPI, Response
from starlette.types import Scope

from partita.service.access.buckets import Buckets
from partita.service.access.guard import Guard
from partita.service.access.scopes import NEEDS, Side
from partita.service.access.token_file import Keyring, TokenFile
from partita.service.settings import Limits, Settings
from partita.service.web.bounds import Bounds
from partita.service.web.errors import Errors, handle_errors
from partita.service.web.headers import SecurityHeaders
from partita.service.web.hosts import Hosts, names
from partita.service.web.logs import Log
from partita.service.web.metrics import CONTENT_TYPE_LATEST, Metrics
from partita.service.web.observed import Observed

__all__ = ["secured"]

Now: TypeAlias = Callable[[], int]


def secured(
    app: FastAPI,
    settings: Settings,
    *,
    side: Side,
    releases: Callable[[], int] | None = None,
    now: Now = time.time_ns,
) -> FastAPI:
    """The same app, which answers only those that it should, and says only what it may.

    From the outside in: requests are noted, answers get their headers, errors become JSON, and a request
    passes the names of the host, the guard and the bounds before a route sees it. Middleware that is added
    last stands outermost. `app.state.ending` is set when the service is told to end.
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
    )
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


def _keyring(settings: Settings, now: Now) -> Keyring | None:
    return None if settings.tokens is None else Keyring(TokenFile(settings.tokens, now))


def _buckets(limits: Limits, now: Now) -> Buckets:
    return Buckets(rate=limits.rate, burst=limits.burst, callers=limits.callers, now=now)


def _hidden(side: Side) -> Callable[[Scope], bool]:
    """Whether a request feeds: of those nothing is noted, not even that one was refused."""

    def hidden(scope: Scope) -> bool:
        need = NEEDS[side](scope)
        return need is not None and need.scope == "feed"

    return hidden


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
