"""The counters that can be durable, by name."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from partita.errors.errors import InvalidParameter, InvalidState
from partita.numbers import one_of
from partita.public.streams.outputs import next_record
from partita.public.streams.settings import Settings
from partita.trusted.noise.system.protocol import Noise
from partita.trusted.streams.base.base import ContinualCounter
from partita.trusted.streams.counter.counter import Counter
from partita.trusted.streams.family.family import CounterFamily
from partita.trusted.streams.pan_private.pan_private import PanPrivateCounter
from partita.trusted.streams.sliding import SlidingCounter
from partita.trusted.streams.sparse.sparse_counter import SparseCounter
from partita.trusted.streams.tree_counter.tree_counter import TreeCounter

AnyCounter: TypeAlias = ContinualCounter | CounterFamily

MECHANISMS: Final[dict[str, type[ContinualCounter]]] = {
    "counter": Counter,
    "tree": TreeCounter,
    "sparse": SparseCounter,
    "sliding": SlidingCounter,
    "pan-private": PanPrivateCounter,
}

_COMMON: Final = (
    "epsilon",
    "horizon",
    "change",
    "contributions",
    "noise",
    "keys",
    "shape",
    "plan",
    "inner",
    "live",
)
"""What is no option: parameters that all have, and those that are no numbers."""


def make_counter(settings: Settings, noise: Noise | None) -> AnyCounter:
    """A new counter; parameters that it does not have are refused."""
    mechanism = _mechanism(settings)
    known = inspect.signature(mechanism).parameters
    _check_options(settings, known)
    arguments: dict[str, Any] = {
        "epsilon": settings.epsilon,
        "change": settings.change,
        "contributions": settings.contributions,
        **({"horizon": settings.horizon} if "horizon" in known else {}),
        **({"live": True} if settings.pan_private else {}),
        **({"keys": settings.keys} if settings.keys else {}),
        **settings.options,
        **_given(noise),
    }
    return mechanism(**arguments)


def restore_counter(settings: Settings, state: bytes, noise: Noise | None) -> AnyCounter:
    """The counter that gave this state."""
    restore: Any = _mechanism(settings).from_state
    counter: AnyCounter = restore(state, **_given(noise))
    if isinstance(counter, CounterFamily) and counter.keys != settings.keys:
        raise InvalidState("counter", "must have the keys of its settings", fix="restore the latest copy")
    return counter


def step(counter: AnyCounter, totals: list[int]) -> None:
    """Close one period in which so much was counted: one number, or one for each key."""
    if isinstance(counter, CounterFamily):
        counter.update(totals)
    else:
        counter.update(totals[0])


def record_after(before: bytes, counter: AnyCounter) -> bytes:
    """The public record of the period that a counter has closed last: outputs in units of the granularity."""
    if isinstance(counter, CounterFamily):
        units = counter.units
    else:
        units = (int(counter.exact / counter.granularity),)
    return next_record(before, counter.periods, units)


def _mechanism(settings: Settings) -> type[AnyCounter]:
    if settings.keys:
        return CounterFamily
    return MECHANISMS[one_of(settings.mechanism, "mechanism", tuple(MECHANISMS))]


def _given(noise: Noise | None) -> dict[str, Any]:
    return {} if noise is None else {"noise": noise}


def _check_options(settings: Settings, known: Mapping[str, inspect.Parameter]) -> None:
    """Refuse options that the mechanism does not have, and ask for those that it cannot do without."""
    options = {name: about for name, about in known.items() if name not in _COMMON}
    for name in settings.options:
        if name not in options:
            rule = f"must be among {', '.join(sorted(options)) or 'none'} for {settings.mechanism!r}"
            raise InvalidParameter("options", rule, given=name, fix="drop it")
    for name, about in options.items():
        if about.default is about.empty and name not in settings.options:
            raise InvalidParameter(name, f"is needed by {settings.mechanism!r}", given=None, fix="pass it")
    if settings.horizon is not None and "horizon" not in known:
        rule = f"must be None for {settings.mechanism!r}, which goes on for ever"
        raise InvalidParameter("horizon", rule, given=settings.horizon, fix="drop it")
