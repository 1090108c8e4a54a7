"""One look at the whole state, with all outputs, loses at most epsilon; two looks may lose everything."""

from __future__ import annotations

from fractions import Fraction

import pytest

from partita.public import stream_trees as module
from partita.public.stream_trees import Variant
from partita.testing import EndlessTape, Loss
from partita.trusted.streams.pan_private import PanPrivateCounter
from partita.trusted.streams.tree_counter import TreeCounter

from .pan_views import GivenNoise, Make, Script, Vector, Views, dot, look, pan_private

Label = tuple[str, int, int]

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

    rows = zip(*views.of_noise, *views.of_events, strict=True)
    assert views.secret(seen) == [dot([*noise, *events], row) for row in rows]
    assert [seen[i] for i in range(len(seen)) if i not in views.places] == [
        views.public[i] for i in range(len(seen)) if i not in views.places
    ]


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
@pytest.mark.parametrize("horizon", [1, 2, 3, 5, 6])
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


def _labels(variant: Variant, levels: int, *, live: bool) -> list[Label]:
    """Every noise in the order in which it is drawn: its kind, and the level and start of its interval."""
    drawn: list[Label] = [("count", 0, 0)] if variant == "book" else []
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


def _shift(variant: Variant, levels: int, event: int, *, before: bool, live: bool) -> Vector:
    """What to add to the noises so that one more event cannot be seen; `before`: counted before the look."""
    intervals = [(j, event >> j << j) for j in range(levels) if _kept(j, event, levels)]
    by: dict[Label, int] = {}
    if variant == "default":
        by = {("before" if before and (j or live) else "after", j, start): -1 for j, start in intervals}
    elif before:
        by = {("count", 0, 0): -1} | {("interval", *node): 1 for node in _cover(0, event)}
    else:
        by = {("interval", *node): -1 for node in _cover(event, 1 << levels, below=levels)}
    return [by.get(label, 0) for label in _labels(variant, levels, live=live)]


def _cover(start: int, stop: int, *, below: int = 64) -> list[tuple[int, int]]:
    """(level, first period) of the fewest intervals whose union is start, ..., stop - 1."""
    nodes = []
    while start < stop:
        level = 0
        while level + 1 < below and start % (2 << level) == 0 and start + (2 << level) <= stop:
            level += 1
        nodes.append((level, start))
        start += 1 << level
    return nodes


def _shifted(noise: Vector, by: Vector) -> GivenNoise:
    return GivenNoise([a + b for a, b in zip(noise, by, strict=True)])


def _paid(noise: GivenNoise, by: Vector) -> Fraction:
    return sum((abs(b) / scale for b, scale in zip(by, noise.scales, strict=True)), Fraction(0))


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("levels", [1, 2, 3, 4, 5])
@pytest.mark.spread(2)
def test_the_bijection_of_the_proof(variant: Variant, levels: int) -> None:
    """Up to T = 32, for looks at all times: shifting the proof's noises by one gives the very same view."""
    periods = 1 << levels
    script, make = Script.periods(periods), pan_private(horizon=periods, variant=variant)
    noise, events = _numbers("noise", len(_labels(variant, levels, live=False))), _numbers("x", periods)
    for moment in range(periods + 1):
        seen = script.view(make, events, GivenNoise(noise), [moment])
        for event in range(periods):
            by = _shift(variant, levels, event, before=event < moment, live=False)
            shifted = _shifted(noise, by)
            assert script.view(make, _with(events, event), shifted, [moment]) == seen
            assert _paid(shifted, by) <= 1


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("levels", [2, 4])
@pytest.mark.spread(2)
def test_the_bijection_of_the_proof_within_periods(variant: Variant, levels: int) -> None:
    """T = 4 and 16, live: the same, for a look between any two steps."""
    periods = 1 << levels
    script, make = Script.live(periods, adds=1), pan_private(horizon=periods, variant=variant, live=True)
    noise, events = _numbers("noise", len(_labels(variant, levels, live=True))), _numbers("x", periods)
    for moment in range(len(script.steps) + 1):
        seen = script.view(make, events, GivenNoise(noise), [moment])
        for event in range(periods):
            before = script.steps.index(("add", event)) < moment
            by = _shift(variant, levels, event, before=before, live=True)
            shifted = _shifted(noise, by)
            assert script.view(make, _with(events, event), shifted, [moment]) == seen
            assert _paid(shifted, by) <= 1


@pytest.mark.parametrize("variant", VARIANTS)
def test_streams_and_looks_may_be_chosen_by_an_adversary(variant: Variant) -> None:
    """An adversary who picks the next events, and the time to look, from all that was seen, sees the same."""
    for seed in range(20):
        noise = _numbers(("adversary", seed), len(_labels(variant, 3, live=False)))
        seen, moment = _attacked(variant, GivenNoise(noise), more_at=None)
        for event in range(8):
            by = _shift(variant, 3, event, before=event < moment, live=False)
            assert _attacked(variant, _shifted(noise, by), more_at=event) == (seen, moment)


def _attacked(variant: Variant, noise: GivenNoise, *, more_at: int | None) -> tuple[Vector, int]:
    """All that an adaptive adversary sees of 8 periods, and when the adversary looked."""
    counter = PanPrivateCounter(epsilon=1, horizon=8, variant=variant, noise=noise)
    seen: Vector = [1]
    moment = 8
    for period in range(8):
        if moment == 8 and seen[-1] % 4 == 0:
            moment, seen = period, seen + look(counter)
        seen.append(int(counter.update(sum(seen) % 5 + (period == more_at))))
    return (seen if moment < 8 else seen + look(counter)), moment


# Announced looks.


@pytest.mark.parametrize("variant", VARIANTS)
def test_announced_looks_are_free(variant: Variant) -> None:
    """Looks right after two announcements, and one more at any time: no event loses more than epsilon."""
    script = Script.periods(4, announced=(1, 3))
    announced = [number + 1 for number, step in enumerate(script.steps) if step[0] == "announce"]
    for moment in range(len(script.steps) + 1):
        views = script.views(pan_private(horizon=5, variant=variant), [*announced, moment])
        assert all(_hidden(views, event) for event in range(4))


@pytest.mark.parametrize("variant", VARIANTS)
def test_one_look_in_every_block(variant: Variant) -> None:
    """Looks that were found out later are covered too, if each is announced before the next one."""
    script = Script.periods(5, announced=(2, 4))
    for first in range(3):
        for second in range(3, 5):
            views = script.views(pan_private(horizon=5, variant=variant), [first, second, 6])
            assert all(_hidden(views, event) for event in range(5))


@pytest.mark.parametrize("variant", VARIANTS)
def test_an_announced_look_sees_published_numbers_only(variant: Variant) -> None:
    """After an announcement the state is a function of the last output and the clock."""
    counters = [PanPrivateCounter(epsilon=1, horizon=9, variant=variant, noise=GivenNoise()) for _ in "ab"]
    for counter, xs in zip(counters, ([5, 0, 0], [1, 1, 3]), strict=True):
        counter.update_many(xs)
        counter.announce_intrusion()

    assert counters[0].state() == counters[1].state()


# Attacks that succeed.


def _read_off(make: Make, script: Script, looks: list[int], event: int) -> None:
    """The weights that the attack found give the event itself, for any noise and any other events."""
    views = script.views(make, looks)
    weights = views.attack(event)
    assert views.shift(event) is None
    assert weights is not None
    for seed in range(5):
        noise, events = _numbers((seed, "noise"), len(views.rates)), _numbers((seed, "x"), script.events)
        seen = views.secret(script.view(make, events, GivenNoise(noise), looks))
        of_each = [dot(weights, column) for column in views.of_events]
        of_others = dot(of_each, events) - of_each[event] * events[event]
        assert (dot(weights, seen) - of_others) / of_each[event] == events[event]


def test_figure_12_1_gives_an_event_away_to_one_look() -> None:
    """T = 4: the state after the first period and the outputs reveal the event of the second exactly."""
    _read_off(lambda noise: TreeCounter(epsilon=1, horizon=4, noise=noise), Script.periods(4), [1], 1)


@pytest.mark.parametrize("variant", VARIANTS)
def test_two_looks_that_nobody_announced_give_the_event_between_them_away(variant: Variant) -> None:
    """A limit of every such counter: the states before and after a period reveal its event exactly."""
    _read_off(pan_private(horizon=8, variant=variant), Script.periods(8), [2, 3], 2)


def _with(events: Vector, event: int) -> Vector:
    return [x + (i == event) for i, x in enumerate(events)]


def _numbers(seed: object, count: int) -> Vector:
    return [int(word) % 21 - 10 for word in EndlessTape(seed).take(count).tolist()]
