"""How counters look in a notebook: their public parameters and what they have published, nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from partita.guarantee.guarantee import Guarantee
from partita.html import Html, Row, bars, card, grid, number, plus_minus, shortlist, span, whisker
from partita.public.base.html import promise
from partita.public.streams.outputs import AnyOutput, FamilyOutput, Output
from partita.public.streams.settings import Settings
from partita.trusted.streams.base.base import ContinualCounter, Running
from partita.trusted.streams.family.family import CounterFamily

MOST_SHOWN: Final = 60
"""How many of the last outputs of a durable counter are looked at."""


def counter_card(counter: ContinualCounter) -> str:
    """A counter in memory: its last output and how far off it may be."""
    facts = _terms(counter.guarantee, counter.periods, counter.horizon)
    if not counter.periods:
        return card(type(counter).__name__, facts)
    said, picture = _running(counter.answer())
    return card(type(counter).__name__, [*facts, *said], below=[picture])


def family_card(family: CounterFamily) -> str:
    """A family in memory: the last output for each key."""
    values = family.value
    rows = shortlist(len(family.keys), lambda place: (family.keys[place], number(float(values[place]))))
    facts = _terms(family.guarantee, family.periods, family.horizon)
    return card(type(family).__name__, facts, below=[grid(("key", "published"), rows)])


def running_card(running: Running) -> str:
    """The last output of a counter with its bounds."""
    facts, picture = _running(running)
    return card("Running", facts, below=[picture])


def stream_card(
    title: str, settings: Settings, guarantee: Guarantee | None, periods: int, last: Sequence[AnyOutput]
) -> str:
    """A durable counter or family: what stands in its public file, of its outputs the last."""
    facts = [("mechanism", settings.mechanism), *_terms(guarantee, periods, settings.horizon)]
    if settings.keys:
        return card(title, facts, below=[_by_key(settings.keys, last)])
    return card(title, facts, below=_over_time([output for output in last if isinstance(output, Output)]))


def _terms(guarantee: Guarantee | None, periods: int, horizon: int | None) -> list[tuple[str, object]]:
    return [
        ("promise", promise(guarantee)),
        ("periods", f"{periods:,} closed" + (f" of {horizon:,}" if horizon is not None else "")),
    ]


def _running(running: Running) -> tuple[list[tuple[str, object]], Html]:
    bounds = running.low, running.high
    facts: list[tuple[str, object]] = [
        ("published", plus_minus(running.value, running.error)),
        ("true count", f"{span(bounds)}, but for 5%"),
        ("all periods at once", f"off by at most {number(running.everywhere)}, but for 5%"),
    ]
    return facts, whisker(running.value, (running.value, running.value), bounds)


def _over_time(last: Sequence[Output]) -> list[Html]:
    rows = shortlist(len(last), lambda place: _published(last[place]))
    picture = [bars([output.value for output in last])] if last else []
    return [*picture, grid(("period", "ended, UTC", "published"), rows)]


def _published(output: Output) -> Row:
    return output.period, f"{output.end:%Y-%m-%d %H:%M:%S}", number(output.value)


def _by_key(keys: Sequence[str], last: Sequence[AnyOutput]) -> Html:
    values = last[-1].value if last and isinstance(last[-1], FamilyOutput) else {}
    rows = shortlist(len(keys), lambda place: (keys[place], number(values.get(keys[place], 0.0))))
    return grid(("key", "published"), rows)
