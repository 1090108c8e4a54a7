"""What a durable counter was opened with: public, and the same for all its life."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Final, Literal, Self, TypeAlias, final, get_args

from partita.errors import InvalidParameter, InvalidState
from partita.exact import one_of
from partita.guarantee import Guarantee, positive_epsilon
from partita.noise.kernel import token
from partita.streams.base import Terms, horizon_of
from partita.streams.durable.clock import Schedule, period_of

__all__ = ["FAMILY", "Level", "Settings"]

Level: TypeAlias = Literal["event", "user"]

FAMILY: Final = "family"
"""The mechanism of a counter for each of some keys."""

_PAN_PRIVATE: Final = "pan-private"
_LONGEST: Final = 900
_LONGEST_KEYS: Final = 2**20
_LONGEST_KEY: Final = 200
_OWN: Final = "counter"


@final
@dataclass(frozen=True, kw_only=True)
class Settings:
    """The public parameters, and the name that the counter has for itself.

    Times are nanoseconds. `unit` says what an event is known by: its feeder and sequence number, or at user
    level a person and an id. `dataset` is what paid for it in a ledger, if one did. A family has `keys`; a
    counter has none.
    """

    mechanism: str
    epsilon: str
    period: int
    start: int
    horizon: int | None
    change: int
    contributions: int
    unit: str
    dataset: str | None
    options: Mapping[str, int | str]
    counter: str
    keys: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        *,
        mechanism: str,
        epsilon: object,
        period: object,
        start: int,
        horizon: object,
        change: object,
        contributions: object,
        unit: Level | None,
        dataset: str | None,
        options: Mapping[str, object],
        keys: Sequence[str] = (),
    ) -> Self:
        """The parameters as people write them, checked."""
        terms = Terms.of(epsilon, change=change, contributions=contributions)
        settings = cls(
            mechanism=mechanism,
            epsilon=str(terms.epsilon),
            period=period_of(period),
            start=start,
            horizon=None if horizon is None else horizon_of(horizon),
            change=terms.change,
            contributions=terms.contributions,
            unit=_unit(unit, terms),
            dataset=dataset,
            options={name: _option(value, name) for name, value in sorted(options.items())},
            counter=token(),
            keys=tuple(_key(key) for key in keys),
        )
        settings._check_size()
        return settings

    @property
    def schedule(self) -> Schedule:
        """When periods end."""
        return Schedule(self.start, self.period)

    def due(self, now: int) -> int:
        """How many periods have ended, of those that there are."""
        ended = self.schedule.ended(now)
        return ended if self.horizon is None else min(ended, self.horizon)

    @property
    def pan_private(self) -> bool:
        """Whether the state may be looked at once."""
        return self.mechanism == _PAN_PRIVATE

    @property
    def columns(self) -> int:
        """How many counts there are: one for each key, or one."""
        return max(1, len(self.keys))

    @cached_property
    def places(self) -> dict[str, int]:
        """Where each key stands in a record."""
        return {key: place for place, key in enumerate(self.keys)}

    @property
    def terms(self) -> Terms:
        """Epsilon, and what it is for."""
        return Terms.of(self.epsilon, change=self.change, contributions=self.contributions)

    @property
    def guarantee(self) -> Guarantee:
        """What all outputs together promise."""
        unit: Any = self.unit
        return replace(self.terms.guarantee, unit=unit, intrusions=int(self.pan_private))

    def check_same(self, asked: Settings) -> None:
        """Refuse other parameters than these; the name that a counter has for itself is its own."""
        for name, stored in asdict(self).items():
            given = getattr(asked, name)
            if name != _OWN and given != stored:
                raise InvalidParameter(
                    name,
                    "must be what the counter was opened with",
                    given=given,
                    fix="resume it, or open another path",
                )

    def to_text(self) -> str:
        """All of it as one line of text; a counter says nothing about keys."""
        said = {name: value for name, value in asdict(self).items() if name != "keys" or value}
        return json.dumps(said, sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_text(cls, text: object) -> Self:
        """The settings from where they were stored; anything else is an `InvalidState`."""
        try:
            said = json.loads(str(text))
            stored = cls(**{**said, "keys": tuple(said.get("keys", ()))})
            stored._check_stored()
        except (TypeError, ValueError, AttributeError, RecursionError):
            raise InvalidState("settings", "must be of a counter", fix="check the path") from None
        return stored

    def _check_stored(self) -> None:
        numbers = (self.period, self.start, self.change, self.contributions, self.horizon or 1)
        texts = (self.mechanism, self.epsilon, self.unit, self.counter, self.dataset or "", *self.keys)
        if {type(number) for number in numbers} != {int} or {type(text) for text in texts} != {str}:
            raise ValueError
        if min(self.period, self.change, self.contributions, self.horizon or 1) < 1:
            raise ValueError
        if self.unit not in get_args(Level) or not isinstance(self.options, dict):
            raise ValueError
        if len(set(self.keys)) < len(self.keys) or bool(self.keys) != (self.mechanism == FAMILY):
            raise ValueError
        positive_epsilon(self.epsilon)

    def _check_size(self) -> None:
        short = len(replace(self, keys=()).to_text().encode())
        if short > _LONGEST:
            raise InvalidParameter("options", "must be short", given=short, fix="shorten names and numbers")
        if len(self.to_text().encode()) > _LONGEST_KEYS:
            raise InvalidParameter(
                "keys", "must fit into 2^20 bytes", given=len(self.keys), fix="use several families"
            )


def _unit(unit: Level | None, terms: Terms) -> str:
    """Events where nothing is said and there is one per user; users else."""
    chosen = one_of(unit or terms.guarantee.unit, "unit", get_args(Level))
    if chosen == "event" and terms.contributions > 1:
        raise InvalidParameter("unit", "must be 'user' for several contributions", given=unit, fix="drop it")
    return chosen


def _key(key: object) -> str:
    """A name that can be printed in one line, and typed."""
    if isinstance(key, str) and 0 < len(key) <= _LONGEST_KEY and key.isprintable():
        return key
    raise InvalidParameter(
        "keys", f"must be printable names of up to {_LONGEST_KEY} characters", given=key, fix="rename them"
    )


def _option(value: object, name: str) -> int | str:
    if isinstance(value, (int, str)):
        return value
    if isinstance(value, (float, Fraction)):
        return str(value)
    raise InvalidParameter(name, "must be a number or text", given=value, fix="open it without")
