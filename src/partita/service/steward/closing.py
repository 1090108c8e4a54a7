"""Periods are closed, and what did not go well is said in the log: which stream and what kind, no more."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import final

from partita.errors import LedgerError, StreamError, StreamForked
from partita.service.web.logs import Log
from partita.streams.durable.settings import SECOND
from partita.streams.durable.stream import DurableCounter, DurableFamily

__all__ = ["AnyStream", "Closing"]

AnyStream = DurableCounter | DurableFamily


@final
class Closing:
    """Closes periods of streams, and knows which streams go on.

    Readers see an output `delay` seconds after its period; one that is written later than half of that is
    called late, while they do not see it yet. A problem is told once for each period.
    """

    def __init__(self, log: Log, *, delay: Fraction, now: Callable[[], int]) -> None:
        self._log, self._delay, self._now = log, delay, now
        self._stopped: set[str] = set()
        self._told: dict[str, int] = {}
        self._behind: set[str] = set()

    def runs(self, name: str) -> bool:
        """Whether a stream goes on; if not, something has stopped it for good."""
        return name not in self._stopped

    def close(self, name: str, stream: AnyStream, period: int, *, due: int = 0) -> None:
        """Close all periods up to one. What the disk or the ledger refuses is for the next try.

        `due` is said for a stream that is far behind: how many periods have ended. That is told once, and
        once more when it has caught up; which of its outputs are late is not.
        """
        try:
            stream.close_until(period)
        except StreamForked as error:
            self._stop(name, period, error)
        except (StreamError, LedgerError) as error:
            self._tell(name, period, "refused", error)
        except Exception as error:
            self._stop(name, period, error)
        else:
            if due and name not in self._behind:
                self._behind.add(name)
                self._log.error("behind", stream=name, periods=due)
            elif not due and name in self._behind:
                self._behind.remove(name)
                self._log.info("caught up", stream=name)
            elif not due and self._is_late(stream, period):
                self._tell(name, period, "late")

    def _is_late(self, stream: AnyStream, period: int) -> bool:
        end = stream.settings.schedule.end(period)
        return 2 * (self._now() - end) > self._delay * SECOND

    def _stop(self, name: str, period: int, error: Exception) -> None:
        self._stopped.add(name)
        self._tell(name, period, "stopped", error)

    def _tell(self, name: str, period: int, event: str, error: Exception | None = None) -> None:
        if self._told.get(name) != period:
            self._told[name] = period
            kind = {} if error is None else {"kind": type(error).__name__}
            self._log.error(event, stream=name, **kind)
