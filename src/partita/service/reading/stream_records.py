"""Streams and their outputs as JSON and CSV, with bounds around each output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final, final

from pydantic import BaseModel, Field

from partita.releases.file_entries import guarantee_entries
from partita.service.reading.tables import csv_text
from partita.service.reading.watching import Shown
from partita.streams.durable.outputs import AnyOutput
from partita.streams.durable.settings import SECOND, Settings, moment_of
from partita.streams.plot import band

__all__ = [
    "PAGE",
    "Bounds",
    "Outputs",
    "Record",
    "Stream",
    "StreamEntry",
    "csv_lines",
    "described",
    "entry",
    "page_of",
]

PAGE: Final = 1_000
"""How many outputs are read and sent at a time, at most."""

_VALUES: Final = 20_000
"""How many values are: an output of a family has one for each key."""

_MOST_BOUNDS: Final = 2**17


class Record(BaseModel):
    """The output of one period: `value` of a counter, or `values` of a family by key."""

    period: int = Field(description="the number of the period, from 1")
    end: datetime = Field(description="when the period ended")
    value: float | None = None
    values: dict[str, float] | None = None
    off: float | None = Field(
        default=None,
        description="how far each value may be from the true count, at the confidence; null if unknown",
    )


class StreamEntry(BaseModel):
    """A stream in the catalogue."""

    name: str
    state: str = Field(description="`ready`, or `damaged` if the file is not one of a stream")
    guarantee: dict[str, Any] | None = None
    period_seconds: float | None = None
    last: Record | None = None


class Stream(StreamEntry):
    """What everybody may know about a stream."""

    mechanism: str
    start: datetime = Field(description="when the first period began")
    horizon: int | None = Field(description="how many periods there will be, if that is known")
    window: int | None = Field(description="how many of the last periods are counted, if not all of them")
    keys: list[str] | None = Field(description="the public keys of a family; null for one count")
    change: int = Field(description="how much one event changes the count at most")
    delay: float = Field(description="seconds from the end of a period until its output is shown")
    closed: int = Field(description="how many periods are shown")
    confidence: float


class Outputs(BaseModel):
    """What was published, in the order of periods."""

    outputs: list[Record]
    next: int | None = Field(description="`since` of the next page; null if there is nothing more to show")


@final
class Bounds:
    """How far outputs may be off: worked out once for each period, from public numbers only."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int, float], float | None] = {}

    def records(self, outputs: Sequence[AnyOutput], settings: Settings, beta: float) -> list[Record]:
        """Outputs of one stream with their bounds, which fail with probability beta at most."""
        known = self._known
        missing = [output for output in outputs if (settings.counter, output.period, beta) not in known]
        if missing:
            self._learn(missing, settings, beta)
        return [_record(output, known.get((settings.counter, output.period, beta))) for output in outputs]

    def _learn(self, outputs: Sequence[AnyOutput], settings: Settings, beta: float) -> None:
        if len(self._known) > _MOST_BOUNDS:
            self._known.clear()
        halves = band(outputs, settings, beta)
        for place, output in enumerate(outputs):
            off = None if halves is None else float(halves[place])
            self._known[settings.counter, output.period, beta] = off


def page_of(settings: Settings) -> int:
    """How many outputs of a stream are read and sent at a time: fewer if each has many values."""
    return max(1, min(PAGE, _VALUES // settings.columns))


def entry(name: str, shown: Shown | None) -> StreamEntry:
    """A stream in the catalogue, with its last output and no bounds.

    A file that makes us stumble is damaged, which is said of it alone.
    """
    damaged = StreamEntry(name=name, state="damaged")
    try:
        return damaged if shown is None else _listed(shown)
    except Exception:
        return damaged


def described(shown: Shown, bounds: Bounds, *, delay: float, beta: float) -> Stream:
    """All that is public about a stream, with its last output."""
    settings, last = shown.file.settings, shown.last
    window = settings.options.get("window")
    return Stream(
        **_common(shown),
        last=bounds.records([last], settings, beta)[0] if last else None,
        mechanism=settings.mechanism,
        start=moment_of(settings.start),
        horizon=settings.horizon,
        window=None if window is None else int(window),
        keys=list(settings.keys) or None,
        change=settings.change,
        delay=delay,
        closed=shown.periods,
        confidence=1 - beta,
    )


def csv_lines(shown: Shown, since: int) -> Iterator[str]:
    """All outputs after a period as CSV, a page at a time: period, end, and a column of each value."""
    yield csv_text([("period", "end", *(shown.file.settings.keys or ("value",)))])
    while some := shown.outputs(since=since, limit=page_of(shown.file.settings)):
        yield csv_text((output.period, output.end, *_values(output)) for output in some)
        since = some[-1].period


def _listed(shown: Shown) -> StreamEntry:
    last = shown.last
    return StreamEntry(**_common(shown), last=_record(last, None) if last else None)


def _common(shown: Shown) -> dict[str, Any]:
    settings = shown.file.settings
    return {
        "name": shown.name,
        "state": "ready",
        "guarantee": guarantee_entries(settings.guarantee),
        "period_seconds": settings.period / SECOND,
    }


def _record(output: AnyOutput, off: float | None) -> Record:
    value = output.value
    named: dict[str, Any] = {"values": value} if isinstance(value, dict) else {"value": value}
    return Record(period=output.period, end=output.end, off=off, **named)


def _values(output: AnyOutput) -> list[float]:
    value = output.value
    return list(value.values()) if isinstance(value, dict) else [value]
