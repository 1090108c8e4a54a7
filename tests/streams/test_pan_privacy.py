"""One look at the whole state, with all outputs, loses no more than epsilon; two looks, or the wrong object, do."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from partita.streams import pan_private as module
from partita.streams.pan_blocks import Variant
from partita.streams.pan_private import PanPrivateCounter
from partita.streams.tree_counter import TreeCounter
from partita.testing import EndlessTape, Loss

from .pan_views import GivenNoise, Make, Script, Vector, Views, dot, look, pan_private

VARIANTS: tuple[Variant, ...] = ("default", "book")


def _losses(make: Make, script: Script, moment: int) -> list[Loss]:
    views = script.views(make, [moment])
    return [views.loss(event) for event in range(script.events)]


@pytest.mark.parametrize("variant", VARIANTS)
def test_views_are_linear(variant: Variant) -> None:
    """The state and the outputs are A noise + B events + what is public."""
    script, make = Script.periods(8), pan_private(horizon=8, variant=variant)
    views = script.views(make, [3])
    noise, events = _numbers("noise", len(views.rates)), _numbers("events", 8)

    seen = script.view(make, events, GivenNoise(noise), [3])

    columns = [*views.of_noise, *views.of_events]
    expected = [
        public + dot([*noise, *events], row)
        for public, row in zip(views.public, zip(*columns, strict=True), strict=True)
    ]
    assert seen == expected


def test_the_default_loses_exactly_epsilon_at_worst() -> None:
    """T = 4: over all times of one look and all events, the greatest loss is epsilon, and it is reached."""
    losses = [loss for m in range(5) for loss in _losses(pan_private(horizon=4), Script.periods(4), m)]

    assert all(loss <= 1 for loss in losses)
    assert any(loss == 1 for loss in losses)


def test_figure_12_2_loses_no_more_than_epsilon() -> None:
    """T = 4, scale (1 + log2 T) / epsilon: the loss stays below epsilon at every time of one look."""
    make, script = pan_private(horizon=4, variant="book"), Script.periods(4)

    losses = [loss for moment in range(1, 5) for loss in _losses(make, script, moment)]

    assert all(loss <= 1 for loss in losses)
    assert float(max(losses)) > 0.96


def test_a_look_may_fall_between_two_events_of_a_live_period() -> None:
    """Two events in each of two periods, a look before any step: no event loses more than epsilon."""
    script = Script.live(2)
    for moment in range(len(script.steps) + 1):
        assert all(loss <= 1 for loss in _losses(pan_private(horizon=4, live=True), script, moment))


def test_figure_12_2_may_be_live_too() -> None:
    """Its interval noise is drawn when a period closes, so a look within a period does not see it."""
    make, script = pan_private(horizon=4, variant="book", live=True), Script.live(4, adds=1)
    for moment in range(len(script.steps) + 1):
        views = script.views(make, [moment])
        assert all(views.cost(event) <= 1 for event in range(script.events))


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("horizon", [1, 2, 3, 5, 8])
def test_any_horizon(variant: Variant, horizon: int) -> None:
    """For horizons that are no powers of two as well, a shift that costs at most epsilon hides each event."""
    make, script = pan_private(horizon=horizon, variant=variant), Script.periods(horizon)
    for moment in range(horizon + 1):
        views = script.views(make, [moment])
        assert all(_hidden(views, event) for event in range(horizon))


@pytest.mark.parametrize("variant", VARIANTS)
def test_blocks_of_an_unknown_horizon(variant: Variant, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 2 and 4 periods: an event lies in one, and one look anywhere loses at most epsilon."""
    monkeypatch.setattr(module, "_FIRST_BITS", 1)
    monkeypatch.setattr(module, "_MORE_BITS", 1)
    script = Script.periods(5)
    for moment in range(6):
        views = script.views(pan_private(variant=variant), [moment])
        assert all(_hidden(views, event) for event in range(5))


def _hidden(views: Views, event: int) -> bool:
    return views.shift(event) is not None and views.cost(event) <= 1


# The explicit bijection of docs/proofs/pan_private_counter.md.


def _labels(variant: Variant, levels: int, *, live: bool) -> list[tuple[str, int, int]]:
    """(kind, level, first period of the interval) of every noise, in the order in which it is drawn."""
    drawn: list[tuple[str, int, int]] = [("count", 0, 0)] if variant == "book" else []
    for period in range(1 << levels):
        begun = [level for level in range(levels) if period % (1 << level) == 0]
        if variant == "book":
            drawn += [("interval", level, period) for level in begun]
            continue
        kept = [level for level in begun if _kept(level, period, levels)]
        drawn += [("before", level, period) for level in kept if level or live]
        ended = max(j for j in range(levels) if _kept(j, period, levels) and (period + 1) % (1 << j) == 0)
        drawn.append(("after", ended, period >> ended << ended))
    return drawn


def _kept(level: int, period: int, levels: int) -> bool:
    return level == levels - 1 or not period >> level & 1


def _shift(variant: Variant, levels: int, event: int, before: bool, moment: int, *, live: bool) -> set[Any]:
    """The noises that are one less with the event (and the negative ones, one more).

    `before`: the event is counted before the look, which has seen `moment` periods begin.
    """
    if variant == "book":
        if not before:
            return {("interval", *node) for node in _cover(event, 1 << levels)}
        return {("count", 0, 0), *(("+interval", *node) for node in _cover(0, event))}
    intervals = [(j, event >> j << j) for j in range(levels) if _kept(j, event, levels)]
    return {
        ("before" if before and (j or live) else "after", j, start)
        for j, start in intervals
    }


def _cover(start: int, stop: int) -> list[tuple[int, int]]:
    """(level, first period) of the fewest intervals whose union is start, ..., stop - 1."""
    nodes = []
    while start < stop:
        level = 0
        while start % (2 << level) == 0 and start + (2 << level) <= stop:
            level += 1
        nodes.append((level, start))
        start += 1 << level
    return nodes
