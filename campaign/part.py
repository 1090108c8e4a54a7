"""What a part of the campaign is asked for, and what it says in the end."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

__all__ = ["Outcome", "Part", "shown"]

Item = TypeVar("Item")


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How many cases were tried, what went wrong in which of them, and how they were spread."""

    cases: int
    violations: tuple[str, ...]
    spread: Mapping[str, int]

    @classmethod
    def of(cls, tried: Iterable[tuple[str, str | None]]) -> Outcome:
        """From pairs: which kind of case it was, and what was wrong with it, or None."""
        spread: Counter[str] = Counter()
        wrong = []
        for kind, fault in tried:
            spread[kind] += 1
            if fault is not None:
                wrong.append(f"{kind}: {fault}")
        return cls(cases=spread.total(), violations=tuple(wrong), spread=spread)


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part: its name, what a case is, and how many there are to be, in earnest and in a hurry."""

    name: str
    case: str
    goal: int
    quick: int


@dataclass
class _Progress:
    """A line on a terminal that is written anew at most twice a second."""

    label: str
    total: int
    done: int = 0
    next_time: float = field(default_factory=time.monotonic)

    def step(self) -> None:
        self.done += 1
        if sys.stderr.isatty() and time.monotonic() >= self.next_time:
            print(f"\r{self.label}: {self.done:,} of {self.total:,}", end="", file=sys.stderr, flush=True)
            self.next_time = time.monotonic() + 0.5


def shown(items: Iterable[Item], label: str, total: int) -> Iterator[Item]:
    """The items, with progress on a terminal."""
    progress = _Progress(label, total)
    for item in items:
        yield item
        progress.step()
    if sys.stderr.isatty():
        print(file=sys.stderr)
