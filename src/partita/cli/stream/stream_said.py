"""Counters and their outputs, for people and for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from partita.cli.common.output import Outcome
from partita.public.records import Record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from partita.public.streams.outputs import AnyOutput
    from partita.public.streams.settings import Settings


def outputs_said(outputs: Sequence[AnyOutput]) -> Outcome:
    """A line for each output: when its period ended, the number of the period, and the count so far.

    A family has a count for each key.
    """
    return Outcome("\n".join(map(_line, outputs)), [output_record(output) for output in outputs])


def values_said(output: AnyOutput) -> str:
    """The count, or that of each key with its name."""
    if isinstance(output.value, dict):
        return "  ".join(f"{key} {value:,.1f}" for key, value in output.value.items())
    return f"{output.value:,.1f}"


def output_record(output: AnyOutput) -> Record:
    """An output for programs: `value` of a counter, `values` of a family."""
    name = "values" if isinstance(output.value, dict) else "value"
    return {"period": output.period, "end": output.end, name: output.value, "exact": output.exact}


def settings_said(settings: Settings) -> list[tuple[str, str]]:
    """What a counter promises, in words."""
    from partita.public.streams.settings import SECOND

    known = "without end" if settings.horizon is None else f"{settings.horizon:,}"
    return [
        ("mechanism", settings.mechanism),
        *([("keys", ", ".join(settings.keys))] if settings.keys else []),
        ("guarantee", str(settings.guarantee)),
        ("periods", f"{known}, of {settings.period / SECOND:,g} seconds from {_start(settings)}"),
        ("paid", "by nobody" if settings.dataset is None else f"by dataset {settings.dataset!r}"),
    ]


def settings_record(settings: Settings) -> Record:
    """What everybody may know about a counter."""
    from partita.public.file_entries.file_entries import guarantee_entries
    from partita.public.streams.settings import SECOND

    return {
        "mechanism": settings.mechanism,
        "keys": list(settings.keys) or None,
        "guarantee": guarantee_entries(settings.guarantee),
        "period_seconds": settings.period / SECOND,
        "start": _start(settings),
        "horizon": settings.horizon,
        "change": settings.change,
        "dataset": settings.dataset,
    }


def _line(output: AnyOutput) -> str:
    return f"{output.end.isoformat()}  {output.period:>6}  {values_said(output)}"


def _start(settings: Settings) -> str:
    from partita.public.streams.settings import moment_of

    return moment_of(settings.start).isoformat()
