"""The sparse counter: the law of its seals and counts on tiny horizons, enumerated; planted bugs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

from partita.testing import Loss, OutputLaw, RationalNoise, law, privacy_loss
from partita.testing.laws import BoxLaw
from partita.trusted.noise.hazard import Law
from partita.trusted.streams.sparse import SparseCounter, SparsePlan
from partita.trusted.streams.tree_counter import PerStepCounter

Outputs = tuple[Any, ...]
Choose = Callable[[Outputs], int]
Plant = Callable[[pytest.MonkeyPatch], None]

HALF = Fraction(1, 2)
PLAN = SparsePlan(seals=32, threshold=1, offset=0, spread=0.0, capacity=3)


def _silent(outputs: Outputs) -> int:
    return 0


def _eager(outputs: Outputs) -> int:
    """Counts more after a period that sealed, and takes back after one that did not."""
    return (2 if outputs[-1] else -1) if outputs else 1


class _QuietCounts(RationalNoise):
    """Rational noise for seals, and none in the inner counter: what shows is where segments end."""

    def add(self, x: Any, scale: Fraction, *, parts: Any = None) -> Any:
        return np.array(x)


def _made(noise: Any, horizon: int, plan: SparsePlan = PLAN, **more: Any) -> SparseCounter:
    usual = {"epsilon": 2, "horizon": horizon, "plan": plan, "inner": PerStepCounter, "noise": noise}
    return SparseCounter(**{**usual, **more})


def _seals(choose: Choose, event: int | None, horizon: int, unit: Fraction, **more: Any) -> OutputLaw:
    """The law of which periods seal a segment. At epsilon 2 seals have 1."""

    def run(noise: RationalNoise) -> Hashable:
        counter = _made(noise, horizon, **more)
        sealed: Outputs = ()
        for period in range(horizon):
            before = counter.seals
            counter.update(choose(sealed) + (period == event))
            sealed += (counter.seals - before,)
        return sealed

    return law(run, _QuietCounts(HALF, unit=unit))


def _worst(choose: Choose, horizon: int, *, unit: Fraction = Fraction(1), **more: Any) -> Loss:
    plain = _seals(choose, None, horizon, unit, **more)
    laws = (_seals(choose, event, horizon, unit, **more) for event in range(horizon))
    return max(privacy_loss(plain, other, base=HALF, unit=unit) for other in laws)


@pytest.mark.parametrize("law_", ["geometric", "laplace"])
@pytest.mark.parametrize("choose", [_silent, _eager])
def test_seals_lose_no_more_than_their_share(choose: Choose, law_: Law) -> None:
    """Any event of any period, with streams that follow the seals: half of epsilon."""
    plan = SparsePlan(seals=32, threshold=1, offset=0, spread=0.0, capacity=3, law=law_)

    assert _worst(choose, 3, plan=plan) <= 1


def test_the_loss_of_seals_is_reached() -> None:
    """The bound is no larger than it must be."""
    assert _worst(_silent, 3) == 1


@pytest.mark.parametrize("more", [{"contributions": 2}, {"change": 2}])
def test_one_of_two_events_loses_half(more: dict[str, int]) -> None:
    """With twice the contributions, or twice the change, one unit has half of what seals have."""
    assert _worst(_silent, 2, unit=HALF, **more) == HALF


def _one_by_one(counter: SparseCounter, xs: Sequence[int]) -> Hashable:
    return tuple(counter.update(x) for x in xs)


def _at_once(counter: SparseCounter, xs: Sequence[int]) -> Hashable:
    return tuple(counter.update_many(xs).tolist())


def _restored(counter: SparseCounter, xs: Sequence[int]) -> Hashable:
    """Through a state after each period; a tail of unknown noise cannot be stored, so it goes on as it is."""
    noise, outputs = counter._noise, []
    for x in xs:
        missing, counter._missing = counter._missing, None if counter._missing is None else 0
        counter = SparseCounter.from_state(counter.state(), noise=noise)
        counter._missing = missing
        outputs.append(counter.update(x))
    return tuple(outputs)


@pytest.mark.parametrize("steps", [_at_once, _restored])
@pytest.mark.parametrize("xs", [(0, 0, 0), (1, 0, 0), (0, 3, 0), (2, 0, 1)])
def test_any_way_of_stepping_has_the_same_law(
    xs: tuple[int, ...], steps: Callable[[SparseCounter, Sequence[int]], Hashable]
) -> None:
    """Many at once, and through states: fresh noise in every period has no memory."""
    expected = law(lambda noise: _one_by_one(_made(noise, 3), xs), _QuietCounts(HALF))

    assert law(lambda noise: steps(_made(noise, 3), xs), _QuietCounts(HALF)) == expected


def test_an_advance_has_the_law_of_empty_periods() -> None:
    """The state after it is as if each of them had been closed."""

    def walked(noise: RationalNoise) -> Hashable:
        counter = _made(noise, 4)
        return tuple(counter.update(x) for x in (1, 0, 0, 1))[3], counter.seals

    def skipped(noise: RationalNoise) -> Hashable:
        counter = _made(noise, 4)
        counter.update(1)
        counter.advance(2)
        return counter.update(1), counter.seals

    assert law(walked, _QuietCounts(HALF)) == law(skipped, _QuietCounts(HALF))


class _BoxedCounts(RationalNoise):
    """Rational noise for seals, and a given vector of noise in inner counters."""

    def __init__(self, vector: Sequence[int]) -> None:
        super().__init__(HALF)
        self.vector, self.used = vector, 0

    def session(self) -> _BoxedCounts:
        self.used = 0
        return self

    def add(self, x: Any, scale: Fraction, *, parts: Any = None) -> Any:
        noise = self.vector[self.used : self.used + np.size(x)]
        self.used += np.size(x)
        assert scale == 1
        return np.array(x) + np.array(noise)


def _joint(choose: Choose, event: int | None, reach: int, horizon: int) -> BoxLaw:
    """The law of all outputs and seals, on inner noise from -reach to reach; see `box_law`."""
    found = BoxLaw()
    for vector in product(range(-reach, reach + 1), repeat=horizon):
        weight = HALF ** sum(map(abs, vector))
        for outcome, mass in law(_played(choose, event, horizon), _BoxedCounts(vector)).items():
            found[outcome] = found.get(outcome, Fraction(0)) + weight * mass
    return found


def _played(choose: Choose, event: int | None, horizon: int) -> Callable[[RationalNoise], Hashable]:
    def run(noise: RationalNoise) -> Hashable:
        plan = SparsePlan(seals=32, threshold=1, offset=0, spread=0.0, capacity=horizon)
        counter = _made(noise, horizon, plan=plan)
        seen: Outputs = ()
        for period in range(horizon):
            before, output = counter.seals, counter.update(choose(seen) + (period == event))
            seen += (counter.seals - before, output)
        return seen

    return run


def _passes(choose: Choose, horizon: int = 2) -> bool:
    """The checker: whether no event changes the joint law of seals and counts by more than epsilon = 2."""
    factor = 1 / HALF**2

    @cache
    def law_of(event: int | None, reach: int) -> BoxLaw:
        return _joint(choose, event, reach, horizon)

    return all(
        law_of(None, 1).at_most(law_of(event, 2), factor)
        and law_of(event, 1).at_most(law_of(None, 2), factor)
        for event in range(horizon)
    )


def _follows(outputs: Outputs) -> int:
    """Counts what it was shown last, within bounds."""
    return int(min(2, max(-1, outputs[-1]))) if outputs else 1


@pytest.mark.parametrize("choose", [_silent, _follows])
def test_seals_and_counts_together_lose_no_more_than_epsilon(choose: Choose) -> None:
    """The joint law of where segments end and of what is published, for any event."""
    assert _passes(choose)


def _half_the_fresh_noise(patch: pytest.MonkeyPatch) -> None:
    """Fresh noise has half its scale."""
    right = RationalNoise.first_success
    patch.setattr(RationalNoise, "first_success", lambda noise, law, scale: right(noise, law, scale / 2))


def _bare_threshold(patch: pytest.MonkeyPatch) -> None:
    """The threshold has no noise."""
    patch.setattr(RationalNoise, "draw", lambda noise, law, scale: 0)


def _all_of_epsilon_for_seals(patch: pytest.MonkeyPatch) -> None:
    """Seals take all of epsilon, and inner counters their part too."""
    right = SparseCounter.__init__

    def init(counter: SparseCounter, **more: Any) -> None:
        right(counter, **more)
        counter.scale /= 2

    patch.setattr(SparseCounter, "__init__", init)


def _counted_twice(patch: pytest.MonkeyPatch) -> None:
    """What a segment held is still there in the next one."""
    right = SparseCounter._sealed

    def sealed(counter: SparseCounter) -> Any:
        content, output = counter._content, right(counter)
        counter._content = content
        return output

    patch.setattr(SparseCounter, "_sealed", sealed)


def _busy_periods_only(patch: pytest.MonkeyPatch) -> None:
    """Periods in which nothing came are not looked at."""
    right = SparseCounter.update

    def update(counter: SparseCounter, x: int = 0) -> float:
        return right(counter, x) if x else counter.value

    patch.setattr(SparseCounter, "update", update)


def _open_content_shown(patch: pytest.MonkeyPatch) -> None:
    """The output says what the open segment holds."""
    right = SparseCounter.update

    def update(counter: SparseCounter, x: int = 0) -> float:
        return right(counter, x) + counter._content

    patch.setattr(SparseCounter, "update", update)


def _double_event(patch: pytest.MonkeyPatch) -> None:
    """Each unit in a period counts for two against the threshold."""
    right = SparseCounter._add

    def add(counter: SparseCounter, x: int) -> None:
        right(counter, x)
        counter._missing = counter._missing - x

    patch.setattr(SparseCounter, "_add", add)


def _exact_inside(patch: pytest.MonkeyPatch) -> None:
    """The inner counter has no noise."""
    patch.setattr(_BoxedCounts, "add", lambda noise, x, scale, parts=None: np.array(x))


@pytest.mark.parametrize(
    "plant",
    [
        _half_the_fresh_noise,
        _bare_threshold,
        _all_of_epsilon_for_seals,
        _counted_twice,
        _busy_periods_only,
        _open_content_shown,
        _double_event,
        _exact_inside,
    ],
)
def test_planted_bugs_of_the_sparse_counter_are_caught(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each wrong variant shows an event, or costs more than epsilon."""
    plant(monkeypatch)

    assert not all(_passes(choose) for choose in (_silent, _follows)) or not _worst(_silent, 3) <= 1


def test_the_shares_add_up_to_epsilon() -> None:
    """Seals have one part, the inner counter the rest; each for one event of the terms."""
    counter = SparseCounter(epsilon="0.7", horizon=1000, expected=50, change=2, contributions=3)
    terms = counter._inner.terms
    seals = Fraction("0.7") * Fraction(counter.plan.seals, 64)

    assert terms.epsilon + seals == Fraction("0.7")
    assert counter.scale == 6 / seals
    assert (terms.change, terms.contributions) == (2, 3)
