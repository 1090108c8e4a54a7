"""What a steward asks for, and what is said of streams: nothing of what was fed."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from partita.errors import InvalidParameter
from partita.noise.kernel import token
from partita.releases.file_entries import guarantee_entries
from partita.service.settings import NAME
from partita.streams.durable.settings import FAMILY, SECOND, Settings, moment_of, nanoseconds, period_of

__all__ = ["MOST_DUE", "NewStream", "StewardStream"]

MOST_DUE: Final = 100_000
"""How many periods of a new stream may have ended: a day of seconds, or ten weeks of minutes."""

_ENDINGS: Final = (".db", ".pan", ".outputs", ".json", ".csv")
_OPTIONS: Final = ("expected", "window")
_COUNTER: Final = "counter"


class NewStream(BaseModel):
    """A stream to be: the parameters of `open_counter`, or with `keys` those of `open_family`."""

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
    dataset: str | None = Field(default=None, description="whose budget pays, in the ledger of the service")

    def check(self) -> None:
        """Refuse names that would be read as those of files, and periods that readers cannot be told of."""
        if self.name.endswith(_ENDINGS):
            rule = f"must not end in {', '.join(_ENDINGS)}"
            raise InvalidParameter("name", rule, given=self.name, fix="choose another name")
        if period_of(self.period) < SECOND:
            raise InvalidParameter("period", "must be a second or longer", given=self.period, fix='pass "1s"')
        if self.keys is not None and self.mechanism not in (_COUNTER, FAMILY):
            raise InvalidParameter(
                "mechanism", "must be left out with keys", given=self.mechanism, fix="drop it"
            )

    def check_start(self, now: int) -> None:
        """Refuse a start so long ago that most of the time would go into closing empty periods.

        Each period has an output for each key, so many keys allow for fewer periods.
        """
        settings = self.settings(start=now)
        due, most = settings.due(now), max(1, MOST_DUE // settings.columns)
        if due > most:
            raise InvalidParameter(
                "start",
                f"must be at most {most} periods ago, for {settings.columns} outputs in each",
                given=due,
                fix="start later, choose a longer period, or fewer keys",
            )

    @property
    def common(self) -> dict[str, Any]:
        """The parameters that counters and families have."""
        names = ("epsilon", "period", "horizon", "start", "change", "contributions", "unit", "dataset")
        return {name: getattr(self, name) for name in names}

    @property
    def options(self) -> dict[str, int]:
        """The options of the mechanism that were given."""
        given = {name: getattr(self, name) for name in _OPTIONS}
        return {name: value for name, value in given.items() if value is not None}

    def settings(self, *, start: int) -> Settings:
        """What a stream with these parameters is opened with; if no start is asked for, with this one."""
        begins = start if self.start is None else nanoseconds(self.start, "start")
        kind = self.mechanism if self.keys is None else FAMILY
        given = {**self.common, "start": begins, "mechanism": kind, "keys": self.keys or ()}
        return Settings.of(**given, options=self.options, counter=token())


class StewardStream(BaseModel):
    """A stream as its steward sees it: what it was opened with, and whether it goes on."""

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
        """What is said of a stream; all of it is public."""
        return cls(
            name=name,
            state="running" if runs else "stopped",
            mechanism=settings.mechanism,
            guarantee=guarantee_entries(settings.guarantee),
            period_seconds=settings.period / SECOND,
            start=moment_of(settings.start),
            horizon=settings.horizon,
            keys=list(settings.keys) or None,
            unit=settings.unit,
            change=settings.change,
            contributions=settings.contributions,
            dataset=settings.dataset,
        )
