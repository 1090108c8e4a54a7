"""Numbers for Prometheus: how much is read, and roughly how fast."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

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

from partita.service.web.version import VERSION

__all__ = ["CONTENT_TYPE_LATEST", "Metrics"]

_SECOND: Final = 10**9
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
