"""The streams of a service, open in one process: created, resumed, and closed period by period by a clock."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, Literal, final

from pydantic import BaseModel, ConfigDict, Field

from partita.errors import InvalidParameter, LedgerError, StreamError, StreamForked, check
from partita.ledger.ledger import Ledger
from partita.public.file_entries import guarantee_entries
from partita.public.streams import FAMILY, OUTPUTS, SECOND, Settings, nanoseconds, parse_period, to_datetime
from partita.service.errors import Refusal, not_found
from partita.service.settings import NAME, ServiceSettings
from partita.service.web import Log
from partita.trusted.durable.events import read_stream_options
from partita.trusted.durable.journal import SECRET
from partita.trusted.durable.open import open_counter, open_family, resume_stream
from partita.trusted.durable.slots import SLOTS, SlotStore
from partita.trusted.durable.stream import DurableCounter, DurableFamily
from partita.trusted.noise.kernel import token
from partita.trusted.noise.system import Noise

# ---- models of requests and responses ----

MOST_DUE: Final = 100_000
"""Periods of a new stream that may have ended: about a day of seconds, or ten weeks of minutes."""

_ENDINGS: Final = (".db", ".pan", ".outputs", ".json", ".csv")
_OPTIONS: Final = ("expected", "window")
_COUNTER: Final = "counter"


class NewStream(BaseModel):
    """A stream to create: the parameters of `open_counter`, or with `keys` those of `open_family`."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={"example": {"name": "visits", "epsilon": 1, "period": "1m"}},
    )

    name: str = Field(pattern=f"^{NAME.pattern}$", description="letters, digits, `.`, `_` and `-`")
    epsilon: int | float | str = Field(description='of all outputs together; exact as text: "1/3"')
    period: int | float | str = Field(description='a public length of time: "30s", "1m", "1h", or seconds')
    mechanism: str = Field(
        default=_COUNTER, description="counter, tree, sparse, sliding, pan-private or family"
    )
    horizon: int | None = Field(default=None, description="how many periods there will be, if known")
    start: int | float | str | None = Field(default=None, description="when the first period begins; or now")
    keys: list[str] | None = Field(default=None, description="public keys: an output for each, a family")
    unit: Literal["event", "user"] | None = Field(default=None, description="who is protected")
    change: int = Field(default=1, description="how much one event changes the count at most")
    contributions: int = Field(default=1, description="how many events of one user are counted at most")
    expected: int | None = Field(default=None, description="a public guess of all events, for `sparse`")
    window: int | None = Field(default=None, description="how many periods are counted, for `sliding`")
    options: dict[str, int | str | bool] = Field(
        default={}, description="options of the mechanism by their names, for example branching of `tree`"
    )
    dataset: str | None = Field(default=None, description="whose budget pays, in the ledger of the service")

    def check(self) -> None:
        """Refuse names that look like file names, and periods below a second."""
        rule = f"must not end in {', '.join(_ENDINGS)}"
        check(not self.name.endswith(_ENDINGS), "name", rule, given=self.name, fix="choose another name")
        rule, is_long = "must be a second or longer", parse_period(self.period) >= SECOND
        check(is_long, "period", rule, given=self.period, fix='pass "1s"')
        fits = self.keys is None or self.mechanism in (_COUNTER, FAMILY)
        check(fits, "mechanism", "must be left out with keys", given=self.mechanism, fix="drop it")

    def check_start(self, now: int) -> None:
        """Refuse a start so long ago that the service would mostly close empty periods.

        Each period has an output for each key, so many keys allow for fewer periods.
        """
        settings = self.settings(start=now)
        due, most = settings.due(now), max(1, MOST_DUE // settings.columns)
        rule = f"must be at most {most} periods ago, for {settings.columns} outputs in each"
        fix = "start later, choose a longer period, or fewer keys"
        check(due <= most, "start", rule, given=due, fix=fix)

    @property
    def common(self) -> dict[str, Any]:
        """The parameters that counters and families have."""
        names = ("epsilon", "period", "horizon", "start", "change", "contributions", "unit", "dataset")
        return {name: getattr(self, name) for name in names}

    @property
    def chosen(self) -> dict[str, Any]:
        """The options of the mechanism that were given, each read by its type."""
        given = {name: getattr(self, name) for name in _OPTIONS}
        stated = {name: value for name, value in given.items() if value is not None}
        if self.keys is not None or self.mechanism == FAMILY:
            fix = "leave them out"
            check(not self.options, "options", "are of one counter, not of a family", given="some", fix=fix)
            return stated
        return stated | read_stream_options(self.mechanism, self.options)

    def settings(self, *, start: int) -> Settings:
        """The settings of a stream with these parameters; `start` is used if none was given."""
        begins = start if self.start is None else nanoseconds(self.start, "start")
        kind = self.mechanism if self.keys is None else FAMILY
        given = {**self.common, "start": begins, "mechanism": kind, "keys": self.keys or ()}
        return Settings.of(**given, options=self.chosen, counter=token())


class StewardStream(BaseModel):
    """A stream as its steward sees it: its settings, and whether it is running."""

    name: str
    state: Literal["running", "stopped"] = Field(
        description="`stopped`: it publishes and counts nothing more"
    )
    mechanism: str
    guarantee: Any
    period_seconds: float
    start: datetime
    horizon: int | None
    keys: list[str] | None
    unit: str
    change: int
    contributions: int
    dataset: str | None

    @classmethod
    def of(cls, name: str, settings: Settings, *, runs: bool) -> StewardStream:
        """The public facts of a stream."""
        return cls(
            name=name,
            state="running" if runs else "stopped",
            mechanism=settings.mechanism,
            guarantee=guarantee_entries(settings.guarantee),
            period_seconds=settings.period / SECOND,
            start=to_datetime(settings.start),
            horizon=settings.horizon,
            keys=list(settings.keys) or None,
            unit=settings.unit,
            change=settings.change,
            contributions=settings.contributions,
            dataset=settings.dataset,
        )


# ---- closing periods ----

AnyStream = DurableCounter | DurableFamily


@final
class PeriodCloser:
    """Closes periods of streams, logs problems, and knows which streams have stopped.

    Readers see an output `delay` seconds after its period; an output that is written later than half of that
    is logged as late. A problem is logged once for each period: the stream and the type of an exception, no
    more.
    """

    def __init__(self, log: Log, *, delay: Fraction, now: Callable[[], int]) -> None:
        self._log, self._delay, self._now = log, delay, now
        self._stopped: set[str] = set()
        self._reported: dict[str, int] = {}
        self._behind: set[str] = set()

    def runs(self, name: str) -> bool:
        """Whether a stream is running; an error may have stopped it for good."""
        return name not in self._stopped

    def close(self, name: str, stream: AnyStream, period: int, *, due: int = 0) -> None:
        """Close all periods up to one. Errors of the disk or the ledger are retried at the next tick.

        `due` is passed for a stream that is far behind: how many periods have ended. That is logged once, and
        once more when it has caught up; late outputs in between are not.
        """
        try:
            stream.close_until(period)
        except StreamForked as error:
            self._stop(name, period, error)
        except (StreamError, LedgerError) as error:
            self._report(name, period, "refused", error)
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
                self._report(name, period, "late")

    def _is_late(self, stream: AnyStream, period: int) -> bool:
        end = stream.settings.schedule.end(period)
        return 2 * (self._now() - end) > self._delay * SECOND

    def _stop(self, name: str, period: int, error: Exception) -> None:
        self._stopped.add(name)
        self._report(name, period, "stopped", error)

    def _report(self, name: str, period: int, event: str, error: Exception | None = None) -> None:
        if self._reported.get(name) != period:
            self._reported[name] = period
            kind = {} if error is None else {"kind": type(error).__name__}
            self._log.error(event, stream=name, **kind)


# ---- all streams of a folder ----

_OURS_ONLY: Final = 0o700

_SLICE: Final = 4096
"""Outputs that are closed at once: one transaction of a few tenths of a second, in which others wait."""

_PAN_SLICE: Final = 8
"""The same for a pan-private stream, whose periods are stored one by one with several syncs each.

Its feeders wait for a slice on the thread of all requests, so a slice is short."""


@final
class StreamRegistry:
    """All streams of a folder, by name: secret files there, outputs in the public folder of the service.

    `now` gives nanoseconds since 1970; `noise` is injected by tests only.
    """

    def __init__(
        self, settings: ServiceSettings, *, now: Callable[[], int] = time.time_ns, noise: Noise | None = None
    ) -> None:
        self._settings, self._now, self._noise = settings, now, noise
        self._open: dict[str, AnyStream] = {}
        self._closing = PeriodCloser(Log("steward", now), delay=settings.delay, now=now)
        self._making = threading.Lock()
        self._last_slice: dict[str, int] = {}
        self._slices, self._behind = 0, False

    def __getitem__(self, name: str) -> AnyStream:
        """An open stream, or a 404."""
        if name not in self._open:
            raise not_found("stream")
        return self._open[name]

    def names(self) -> list[str]:
        """The names of all streams."""
        return sorted(self._open)

    def runs(self, name: str) -> bool:
        """Whether a stream is running; an error may have stopped it for good."""
        return self._closing.runs(name)

    def is_pan_private(self, name: str) -> bool:
        """Whether a stream is pan-private, so that nothing may remember who fed it."""
        return name in self._open and self._open[name].settings.pan_private

    def get_running(self, name: str) -> AnyStream:
        """A stream that may be fed; raises Refusal if it has stopped."""
        if not self.runs(name):
            raise Refusal(503, "StreamStopped", "this stream publishes nothing more; ask its steward")
        return self[name]

    def resume(self) -> None:
        """Open all stored streams, and close one slice of the periods that each has missed.

        The clock closes the rest, so that no stream delays the others. A stream that cannot be resumed, such
        as an old copy, keeps the service from starting, so that it is noticed.
        """
        self._folder.mkdir(mode=_OURS_ONLY, parents=True, exist_ok=True)
        os.chmod(self._folder, _OURS_ONLY)
        for name in _stored_names(self._folder):
            stream = self._open[name] = self._resume_one(name)
            due = min(_due(stream, self._now()), slice_size(stream.settings))
            stream.close_until(stream.periods + due)

    def create(self, request: NewStream) -> tuple[AnyStream, bool]:
        """The stream of a request, and whether it is new; raises Refusal if another stream has its name."""
        request.check()
        with self._making:
            known = self._open.get(request.name)
            if known is not None:
                _check_same(known, request)
                return known, False
            stream = self._open[request.name] = self._create(request)
            return stream, True

    def tick(self) -> None:
        """Close all periods that have ended, of each stream. Called by the clock, never because of a request.

        Streams that are on time come before those that have more than one period to catch up with. One that
        has very many closes a slice of them in each tick, and those who wait longest go first; as soon as a
        period of any stream ends, the rest is left to the next tick. Files that cannot be written are tried
        again at the next tick; all else stops the stream.
        """
        now, end, self._behind = self._now(), self.next_end(), False
        due = {name: _due(stream, now) for name, stream in list(self._open.items()) if self.runs(name)}
        far = {name for name, left in due.items() if left > slice_size(self._open[name].settings)}
        for name in sorted(due.keys() - far, key=lambda name: (due[name], name)):
            if due[name]:
                self._closing.close(name, self._open[name], self._open[name].periods + due[name])
        for place, name in enumerate(sorted(far, key=lambda name: (self._last_slice.get(name, 0), name))):
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
        """Close all streams, so that other processes can open them."""
        while self._open:
            self._open.popitem()[1].close()

    def _catch_up(self, name: str, due: int) -> None:
        """Close one slice of a stream that is far behind."""
        stream = self._open[name]
        before = stream.periods
        self._closing.close(name, stream, before + slice_size(stream.settings), due=due)
        self._slices += 1
        self._last_slice[name] = self._slices
        self._behind |= stream.periods > before

    @property
    def _folder(self) -> Path:
        if self._settings.streams is None:
            raise Refusal(404, "NotFound", "this service has no streams; start it with --streams FOLDER")
        return self._settings.streams

    def _ledger(self) -> Ledger | None:
        return None if self._settings.ledger is None else Ledger(self._settings.ledger)

    def _open_options(self, name: str) -> dict[str, Any]:
        outputs = self._settings.folder / f"{name}{OUTPUTS}"
        now = Fraction(self._now(), SECOND)
        return {"outputs": outputs, "now": now, "noise": self._noise, "catch_up": False}

    def _resume_one(self, name: str) -> AnyStream:
        """Resume one stream; a stream that was charged to a ledger needs that ledger."""
        path, options = self._folder / name, self._open_options(name)
        try:
            return resume_stream(path, **options)
        except InvalidParameter:
            return resume_stream(path, ledger=self._ledger(), **options)

    def _create(self, request: NewStream) -> AnyStream:
        request.check_start(self._now())
        ledger = None if request.dataset is None else self._ledger()
        options = self._open_options(request.name) | request.common | {"ledger": ledger}
        path = self._folder / request.name
        if request.keys is not None:
            return open_family(path, keys=request.keys, **options)
        return open_counter(path, mechanism=request.mechanism, **(options | request.chosen))


def slice_size(settings: Settings) -> int:
    """How many periods of a stream are closed before other streams have their turn: a public number."""
    return max(1, (_PAN_SLICE if settings.pan_private else _SLICE) // settings.columns)


def _due(stream: AnyStream, now: int) -> int:
    """How many periods have ended and are not closed."""
    return stream.settings.due(now) - stream.periods


def _stored_names(folder: Path) -> list[str]:
    """The names of the streams whose secret files are in a folder; a crash may have left one without any."""
    found = [path for path in folder.iterdir() if path.suffix == SECRET or _is_begun(path)]
    return sorted(path.stem for path in found if NAME.fullmatch(path.stem))


def _is_begun(path: Path) -> bool:
    return path.suffix == SLOTS and SlotStore.exists(path)


def _check_same(stream: AnyStream, request: NewStream) -> None:
    try:
        stream.settings.check_same(request.settings(start=stream.settings.start))
    except InvalidParameter as error:
        raise Refusal(409, "StreamDiffers", str(error), parameter=error.parameter) from None


# ---- the clock ----

_LONGEST_SLEEP: Final = SECOND  # how soon a new stream, or a clock that is set anew, is noticed

_PAUSE: Final = SECOND // 100
"""Pause between two slices of a stream that is catching up, in which feeders have their turn."""


@final
class PeriodClock:
    """Ticks at the end of each period of any stream, whatever was fed.

    It never sleeps for longer than a second, so a corrected clock is followed soon, a new stream is noticed,
    and a failed write is tried again.
    """

    def __init__(self, streams: StreamRegistry, *, now: Callable[[], int] = time.time_ns) -> None:
        self._streams, self._now = streams, now
        self._ended = threading.Event()

    @contextmanager
    def run(self) -> Iterator[None]:
        """Run the clock during the block; a tick that has begun is finished."""
        thread = threading.Thread(target=self._run, name="partita-clock", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()

    def _run(self) -> None:
        while not self._ended.wait(self._until_next() / SECOND):
            self._streams.tick()

    def _until_next(self) -> int:
        """Nanoseconds until the next period ends; a short pause if a stream is catching up."""
        if self._streams.behind:
            return _PAUSE
        end = self._streams.next_end()
        return _LONGEST_SLEEP if end is None else max(0, min(end - self._now(), _LONGEST_SLEEP))
