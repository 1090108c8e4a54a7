"""The catalogue and its releases, as models."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from partita.service.reading.answered import NumberAnswer, Shown
from partita.service.reading.stream_records import StreamEntry

__all__ = ["About", "Index"]


class Promise(Shown):
    """What a release promises, exactly and in words."""

    epsilon: str = Field(examples=["1/2"], description="exact")
    epsilon_value: float | None = Field(examples=[0.5])
    delta: str = Field(examples=["0"])
    neighbors: str = Field(examples=["add-remove"])
    unit: str = Field(examples=["person"])
    contributions: int
    intrusions: int
    factor: str = Field(examples=["1.65"], description="e^epsilon, rounded up")
    words: str


class ReleaseEntry(Shown):
    """A release in the catalogue."""

    name: str = Field(examples=["people"])
    size: int = Field(description="bytes of its file")
    state: Literal["ready", "damaged"]
    dataset: str | None = None
    day: str | None = Field(default=None, examples=["2026-11-15"])
    columns: list[str] = Field(default_factory=list)
    guarantee: Promise | None = None


class Index(Shown):
    """What is served."""

    releases: list[ReleaseEntry]
    streams: list[StreamEntry]


class Cell(Shown):
    """A noisy count."""

    value: float | None
    error: float | None


class Column(BaseModel):
    """A column and its public domain, in the entries of its kind: low, high, step, labels and so on."""

    model_config = ConfigDict(extra="allow")

    name: str
    kind: Literal["integer", "real", "date", "timestamp", "category"]
    size: str = Field(examples=["121"], description="how many cells it has, as text")
    specials: dict[str, Cell] = Field(description="what is beside the axis")


class PublishedView(Shown):
    """What was published together, and how."""

    view: str = Field(examples=["age x salary"])
    columns: list[str]
    mechanism: str = Field(examples=["intervals"])
    epsilon: str | None
    why: str


class Bound(Shown):
    """With probability 1 - beta no count of a range misses the truth by more."""

    beta: float
    bound: float | None


class About(Shown):
    """All that a release says about itself."""

    name: str
    dataset: str | None
    day: str
    version: str
    recorded: bool
    person: str | None
    part: Any = Field(description="the column and the value that a row must have to be counted; or null")
    checksum: str
    guarantee: Promise | None
    columns: list[Column]
    views: list[PublishedView]
    sums: list[dict[str, Any]]
    queries: dict[str, Any] | None
    total: NumberAnswer | None
    error: Bound
    report: str
    citation: str
    links: dict[str, str]
