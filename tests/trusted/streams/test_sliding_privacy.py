"""The sliding counter: its law over two blocks, the shift that hides an event, its variance, planted bugs."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from partita.public.bounds import laplace_variance
from partita.public.stream_trees import PeriodTree, shape_for
from partita.testing.laws import (
    Adversary,
    Make,
    NumberedNoise,
    columns,
    counters_are_private,
    greedy,
    hidden,
    silent,
)
from partita.trusted.streams.family import TreeErrors
from partita.trusted.streams.sliding import SlidingCounter

Plant = Callable[[pytest.MonkeyPatch], None]

PAIR = PeriodTree(2, (1,), (512, 512))
EIGHT = PeriodTree(8, (1, 1), (300, 300, 424))
SEVEN = PeriodTree(7, (2,), (500, 524))


def _made(window: int, shape: PeriodTree | None = None, **more: Any) -> Make:
    usual = {"window": window, "epsilon": 1, "shape": shape}
    return lambda noise: SlidingCounter(**{**usual, "noise": noise, **more})


@pytest.mark.parametrize("choose", [silent, greedy])
def test_no_event_changes_the_law_of_flat_blocks_by_more_than_epsilon(choose: Adversary) -> None:
    """Four periods and a window of two: every event lies in one block, and shows in one or two outputs."""
    assert counters_are_private(_made(2), choose, horizon=4, unit=Fraction(1), reach=0)


def test_no_event_changes_the_law_of_two_trees_by_more_than_epsilon() -> None:
    """Four periods under two trees of three nodes, with a stream that follows the outputs."""
    assert counters_are_private(_made(2, PAIR), greedy, horizon=4, unit=Fraction(1, 2), reach=0)


def test_half_of_the_noise_is_too_little() -> None:
    """What is made for twice the epsilon loses more than epsilon, and the enumeration says so."""
    assert not counters_are_private(_made(2, epsilon=2), silent, horizon=4, unit=Fraction(1), reach=0)


def _numbers(shape: PeriodTree, periods: int) -> dict[tuple[int, int, int], int]:
    """The number of the noise of each node, (block, level, place), where periods are closed one by one."""
    numbers: dict[tuple[int, int, int], int] = {}
    whole = shape.whole
    for period in range(periods):
        block, place = divmod(period, whole.horizon)
        for level in range(shape.levels - 1, -1, -1):
            if whole.opens(level, place):
                first = place // whole.widths[level]
                for sibling in range(whole.siblings(level)):
                    numbers[block, level, first + sibling] = len(numbers)
    return numbers


def _price(make: Make, shape: PeriodTree, event: int, horizon: int) -> Fraction | None:
    """What it costs to hide an event by one less on each node over it."""
    numbers = _numbers(shape, horizon)
    block, place = divmod(event, shape.whole.horizon)
    nodes = [(block, level, place // shape.widths[level]) for level in range(shape.levels)]
    return hidden(make, horizon=horizon, event=event, shift={numbers[node]: -1 for node in nodes})


@pytest.mark.parametrize(
    ("window", "shape"),
    [(8, EIGHT), (5, EIGHT), (7, SEVEN), (5, SEVEN), (30, shape_for(30)), (100, shape_for(100))],
)
def test_one_less_on_every_node_hides_an_event(window: int, shape: PeriodTree) -> None:
    """The outputs are the same to the last bit, and the shift costs epsilon exactly."""
    horizon = 3 * shape.whole.horizon
    for event in range(0, horizon, 1 + horizon // 9):
        assert _price(_made(window, shape), shape, event, horizon) == 1


@pytest.mark.parametrize(
    ("more", "price"), [({"epsilon": "1/3"}, "1/3"), ({"change": 2}, "1/2"), ({"contributions": 4}, "1/4")]
)
def test_terms_set_the_price_of_an_event(more: dict[str, Any], price: str) -> None:
    """A change of two, or one of four events of a user, has its part of epsilon for each unit."""
    assert _price(_made(8, EIGHT, **more), EIGHT, 5, 24) == Fraction(price)


@pytest.mark.parametrize(("window", "shape"), [(8, EIGHT), (5, EIGHT), (7, SEVEN), (6, SEVEN)])
def test_the_variance_is_that_of_the_linear_map(window: int, shape: PeriodTree) -> None:
    """In every period of three blocks: the squares of how much one more of each noise moves the output."""
    horizon = 3 * shape.whole.horizon
    counter = SlidingCounter(window=window, epsilon=1, shape=shape, noise=NumberedNoise())
    promised = []
    for _ in range(horizon):
        counter.update(0)
        promised.append(counter.variance())

    def run(noise: NumberedNoise) -> list[float]:
        return SlidingCounter(window=window, epsilon=1, shape=shape, noise=noise).update_many([0] * horizon)  # type: ignore[return-value]

    parts = columns(run)
    exact = [
        sum(laplace_variance(scale) * float(moved[period]) ** 2 for scale, moved in parts)
        for period in range(horizon)
    ]
    assert promised == pytest.approx(exact)


def _passes() -> bool:
    prices = [_price(_made(5, EIGHT), EIGHT, event, 24) for event in range(24)]
    return all(price is not None and price <= 1 for price in prices)


def test_the_shipped_counter_passes() -> None:
    """The checker has nothing to say about the right code."""
    assert _passes()


def _same_noise_in_all_blocks(patch: pytest.MonkeyPatch) -> None:
    """A block goes on with the rows of the one before."""
    right = SlidingCounter._begin

    def begin(counter: SlidingCounter) -> None:
        known = getattr(counter, "_errors", None)
        right(counter)
        if known is not None:
            counter._errors._rows = known._rows
            counter._errors._open = lambda level: None  # type: ignore[method-assign]

    patch.setattr(SlidingCounter, "_begin", begin)


def _old_block_exact(patch: pytest.MonkeyPatch) -> None:
    """What the window has of the old block is counted without error."""
    right = SlidingCounter._close

    def close(counter: SlidingCounter, x: int) -> float:
        xs: list[int] = vars(counter).setdefault("_xs", [])
        xs.append(x)
        right(counter, x)
        place = counter._errors.position
        old = xs[max(0, len(xs) - counter.window) : max(0, len(xs) - place)]
        return counter._prefixes[place] / (1 << counter._tree.fraction_bits) + sum(old)

    patch.setattr(SlidingCounter, "_close", close)


def _shares_ignored(patch: pytest.MonkeyPatch) -> None:
    """Every node has noise as if it were the only one over a period."""
    patch.setattr(PeriodTree, "scale", lambda shape, level, rate: 1 / rate)


def _mean_kept(patch: pytest.MonkeyPatch) -> None:
    """Siblings get their part of the parent's error and keep their own mean."""
    right = TreeErrors._siblings

    def siblings(errors: TreeErrors, level: int) -> Any:
        moved = right(errors, level)
        return moved + moved[:1]

    patch.setattr(TreeErrors, "_siblings", siblings)


def _old_end_fresh(patch: pytest.MonkeyPatch) -> None:
    """The end of the old block gets a noise of its own in every output."""
    right = SlidingCounter._close

    def close(counter: SlidingCounter, x: int) -> float:
        return right(counter, x) + float(counter._noise.add(x, Fraction(1)))

    patch.setattr(SlidingCounter, "_close", close)


@pytest.mark.parametrize(
    "plant", [_same_noise_in_all_blocks, _old_block_exact, _shares_ignored, _mean_kept, _old_end_fresh]
)
def test_planted_bugs_of_the_sliding_counter_are_caught(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each wrong variant shows an event, or costs more than epsilon."""
    plant(monkeypatch)

    assert not _passes()
