"""The clock: two things timed in turns, so that both meet the same weather on the machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any

from benchmarks.speed.row import Row, Target

Call = Callable[[], object]


@dataclass(frozen=True)
class Work:
    """A call to be timed: what it is called in the row, and how many items it handles."""

    name: str
    call: Call
    items: int = 1


@dataclass(frozen=True)
class Clock:
    """Times `ours` and a baseline in alternating rounds, after one untimed call of each.

    Within a round each side repeats for at least `least` seconds and the mean counts, so a call
    of a millisecond is watched for as long as it takes to meet an interruption or two.
    """

    rounds: int
    least: float

    @property
    def statistic(self) -> str:
        return f"median of {self.rounds} alternating rounds after one untimed call of each"

    def seconds(self, ours: Call, baseline: Call) -> tuple[float, float]:
        """Median seconds per call of each side."""
        ours(), baseline()
        pairs = [(self._mean(ours), self._mean(baseline)) for _ in range(self.rounds)]
        return median(first for first, _ in pairs), median(second for _, second in pairs)

    def _mean(self, call: Call) -> float:
        calls, start = 0, perf_counter()
        while not calls or perf_counter() - start < self.least:
            call()
            calls += 1
        return (perf_counter() - start) / calls


FULL = Clock(rounds=5, least=0.25)
QUICK = Clock(rounds=3, least=0.01)


def rates(quick: bool, ours: Work, baseline: Work, *, target: Target | None = None, **parameters: Any) -> Row:
    """A row in items per second."""
    clock = QUICK if quick else FULL
    seconds, baseline_seconds = clock.seconds(ours.call, baseline.call)
    return Row(
        ours=ours.name,
        parameters={**parameters, "n": ours.items},
        unit="items/s",
        figure=ours.items / seconds,
        baseline=baseline.name,
        baseline_figure=baseline.items / baseline_seconds,
        statistic=clock.statistic,
        target=target,
        quick=quick,
    )


def times(quick: bool, ours: Work, baseline: Work, *, target: Target | None = None, **parameters: Any) -> Row:
    """A row in seconds."""
    clock = QUICK if quick else FULL
    figure, baseline_figure = clock.seconds(ours.call, baseline.call)
    return Row(
        ours=ours.name,
        parameters={**parameters, "n": ours.items},
        unit="s",
        figure=figure,
        baseline=baseline.name,
        baseline_figure=baseline_figure,
        statistic=clock.statistic,
        target=target,
        quick=quick,
    )
