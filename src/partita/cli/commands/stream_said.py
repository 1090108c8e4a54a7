"""Counters and their outputs, for people and for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from partita.cli.output import Outcome, Record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from partita.streams.durable.outputs import Output
    from partita.streams.durable.settings import Settings

__all__ = ["outputs_said", "settings_record", "settings_said"]


def outputs_said(outputs: Sequence[Output]) -> Outcome:
    """A line for each output: when its period ended, the number of the period, and the count so far."""
    return Outcome("\n".join(map(_line, outputs)), [_record(output) for output in outputs])


def settings_said(settings: Settings) -> list[tuple[str, str]]:
    """What a counter promises, in words."""
    from partita.streams.durable.clock import SECOND

    known = "without end" if settings.horizon is None else f"{settings.horizon:,}"
    return [
        ("mechanism", settings.mechanism),
        ("guarantee", str(settings.guarantee)),
        ("periods", f"{known}, of {settings.period / SECOND:,g} seconds from {_start(settings)}"),
        ("paid", "by nobody" if settings.dataset is None else f"by dataset {settings.dataset!r}"),
    ]


def settings_record(settings: Settings) -> Record:
    """What everybody may know about a counter."""
    from partita.releases.file_entries import guarantee_entries
    from partita.streams.durable.clock import SECOND

    return {
        "mechanism": settings.mechanism,
        "guarantee": guarantee_entries(settings.guarantee),
        "period_seconds": settings.period / SECOND,
        "start": _start(settings),
        "horizon": settings.horizon,
        "change": settings.change,
        "dataset": settings.dataset,
    }


def _line(output: Output) -> str:
    return f"{output.end.isoformat()}  {output.period:>6}  {output.value:,.1f}"


def _record(output: Output) -> Record:
    return {"period": output.period, "end": output.end, "value": output.value, "exact": output.exact}


def _start(settings: Settings) -> str:
    from partita.streams.durable.clock import moment_of

    return moment_of(settings.start).isoformat()
