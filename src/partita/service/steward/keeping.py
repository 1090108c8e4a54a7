"""The streams of a service, open in one process: made, resumed, and closed period by period."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, final

from partita.errors import InvalidParameter
from partita.ledger import Ledger
from partita.noise.protocol import Noise
from partita.service.errors import Refusal, not_found
from partita.service.settings import NAME
from partita.service.steward.closing import Closing
from partita.service.steward.streams import AnyStream, NewStream
from partita.service.web import Log
from partita.streams.durable.journal import SECRET
from partita.streams.durable.open import open_counter, open_family, resume_stream
from partita.streams.durable.outputs import OUTPUTS
from partita.streams.durable.settings import SECOND, Settings
from partita.streams.durable.settings import Settings as StreamSettings
from partita.streams.durable.slots import SLOTS, Slots

__all__ = ["AnyStream", "Streams", "slice_of"]

_OURS_ONLY: Final = 0o700

_SLICE: Final = 4096
"""Outputs that are closed at once: a transaction, a few tenths of a second."""

_PAN_SLICE: Final = 8
"""The same for a pan-private stream, whose periods are stored one by one with several syncs each.

Its feeders wait for a slice on the thread of all requests, so a slice is short."""


@final
class Streams:
    """All streams of a folder, by name: secret files there, outputs in the public folder of the service.

    `now` gives nanoseconds since 1970; `noise` is injected by tests only.
    """

    def __init__(
        self, settings: Settings, *, now: Callable[[], int] = time.time_ns, noise: Noise | None = None
    ) -> None:
        self._settings, self._now, self._noise = settings, now, noise
        self._open: dict[str, AnyStream] = {}
        self._closing = Closing(Log("steward", now), delay=settings.delay, now=now)
        self._making = threading.Lock()
        self._served: dict[str, int] = {}
        self._turn, self._behind = 0, False

    def __getitem__(self, name: str) -> AnyStream:
        """An open stream, or a 404."""
        if name not in self._open:
            raise not_found("stream")
        return self._open[name]

    def names(self) -> list[str]:
        """The names of all streams."""
        return sorted(self._open)

    def runs(self, name: str) -> bool:
        """Whether a stream goes on; if not, something has stopped it for good."""
        return self._closing.runs(name)

    def forgets(self, name: str) -> bool:
        """Whether a stream is pan-private, and nothing may remember who fed it."""
        return name in self._open and self._open[name].settings.pan_private

    def running(self, name: str) -> AnyStream:
        """A stream that may be fed: nobody goes on feeding one that publishes nothing."""
        if not self.runs(name):
            raise Refusal(503, "StreamStopped", "this stream publishes nothing more; ask its steward")
        return self[name]

    def resume(self) -> None:
        """Go on with all streams that are there; periods that were missed are closed now, a slice of each.

        What a slice does not hold is left to the clock, so that no stream holds up the others. A stream that
        cannot go on, such as an old copy, keeps the service from starting: it must be seen.
        """
        self._folder.mkdir(mode=_OURS_ONLY, parents=True, exist_ok=True)
        os.chmod(self._folder, _OURS_ONLY)
        for name in _stored(self._folder):
            stream = self._open[name] = self._resumed(name)
            due = min(_due(stream, self._now()), slice_of(stream.settings))
            stream.close_until(stream.periods + due)

    def create(self, asked: NewStream) -> tuple[AnyStream, bool]:
        """The stream that is asked for, and whether it is new; refused if another one has its name."""
        asked.check()
        with self._making:
            known = self._open.get(asked.name)
            if known is not None:
                _check_same(known, asked)
                return known, False
            made = self._open[asked.name] = self._made(asked)
            return made, True

    def tick(self) -> None:
        """Close all periods that have ended, of each stream. Called by the clock, never because of a request.

        Streams that are on time come before those that have more than one period to catch up with. One that
        has very many closes a slice of them in each tick, and those who wait longest go first; as soon as a
        period of any stream ends, the rest is left to the next tick. Files that cannot be written are tried
        again at the next tick; all else stops the stream.
        """
        now, end, self._behind = self._now(), self.next_end(), False
        due = {name: _due(stream, now) for name, stream in list(self._open.items()) if self.runs(name)}
        far = {name for name, left in due.items() if left > slice_of(self._open[name].settings)}
        for name in sorted(due.keys() - far, key=lambda name: (due[name], name)):
            if due[name]:
                self._closing.close(name, self._open[name], self._open[name].periods + due[name])
        for place, name in enumerate(sorted(far, key=lambda name: (self._served.get(name, 0), name))):
            if place and end is not None and self._now() >= end:
                self._behind = True
                break
            self._catch_up(name, due[name])

    @property
    def behind(self) -> bool:
        """Whether the last tick has left periods that have ended to the next one."""
        return self._behind

    def next_end(self) -> int | None:
        """When the next period of any stream ends; None if there is no stream."""
        now, schedules = self._now(), [stream.settings.schedule for stream in list(self._open.values())]
        return min((schedule.end(schedule.ended(now) + 1) for schedule in schedules), default=None)

    def close(self) -> None:
        """Let others open the streams."""
        while self._open:
            self._open.popitem()[1].close()

    def _catch_up(self, name: str, due: int) -> None:
        """Close one slice of a stream that is far behind."""
        stream = self._open[name]
        before = stream.periods
        self._closing.close(name, stream, before + slice_of(stream.settings), due=due)
        self._turn += 1
        self._served[name] = self._turn
        self._behind |= stream.periods > before

    @property
    def _folder(self) -> Path:
        if self._settings.streams is None:
            raise Refusal(404, "NotFound", "this service has no streams; start it with --streams FOLDER")
        return self._settings.streams

    def _ledger(self) -> Ledger | None:
        return None if self._settings.ledger is None else Ledger(self._settings.ledger)

    def _options(self, name: str) -> dict[str, Any]:
        outputs = self._settings.folder / f"{name}{OUTPUTS}"
        now = Fraction(self._now(), SECOND)
        return {"outputs": outputs, "now": now, "noise": self._noise, "catch_up": False}

    def _resumed(self, name: str) -> AnyStream:
        """A stream as it was left; one that a ledger has paid for goes on with that ledger only."""
        path, options = self._folder / name, self._options(name)
        try:
            return resume_stream(path, **options)
        except InvalidParameter:
            return resume_stream(path, ledger=self._ledger(), **options)

    def _made(self, asked: NewStream) -> AnyStream:
        asked.check_start(self._now())
        ledger = None if asked.dataset is None else self._ledger()
        options = self._options(asked.name) | asked.common | {"ledger": ledger}
        path = self._folder / asked.name
        if asked.keys is not None:
            return open_family(path, keys=asked.keys, **options)
        return open_counter(path, mechanism=asked.mechanism, **(options | asked.options))


def slice_of(settings: StreamSettings) -> int:
    """How many periods of a stream are closed before others have their turn: a public number."""
    return max(1, (_PAN_SLICE if settings.pan_private else _SLICE) // settings.columns)


def _due(stream: AnyStream, now: int) -> int:
    """How many periods have ended and are not closed."""
    return stream.settings.due(now) - stream.periods


def _stored(folder: Path) -> list[str]:
    """The names of the streams whose secret files are in a folder; a crash may have left one without any."""
    found = [path for path in folder.iterdir() if path.suffix == SECRET or _is_begun(path)]
    return sorted(path.stem for path in found if NAME.fullmatch(path.stem))


def _is_begun(path: Path) -> bool:
    return path.suffix == SLOTS and Slots.exists(path)


def _check_same(stream: AnyStream, asked: NewStream) -> None:
    try:
        stream.settings.check_same(asked.settings(start=stream.settings.start))
    except InvalidParameter as error:
        raise Refusal(409, "StreamDiffers", str(error), parameter=error.parameter) from None
