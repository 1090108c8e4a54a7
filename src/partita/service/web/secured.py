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
from partita.service.access.tokens import ANYBODY
from partita.service.settings import Limits, Settings
from partita.service.web.bounds import Bounds
from partita.service.web.errors import Errors, handle_errors
from partita.service.web.headers import SecurityHeaders
from partita.service.web.hosts import Hosts, names
from partita.service.web.logs import Log
from partita.service.web.metrics import CONTENT_TYPE_LATEST, Metrics
from partita.service.web.observed import Observed, template
from partita.service.web.sites import Sites

__all__ = ["secured"]

Now: TypeAlias = Callable[[], int]


def secured(
    app: FastAPI,
    settings: Settings,
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


def _keyring(settings: Settings, now: Now) -> Keyring | None:
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
