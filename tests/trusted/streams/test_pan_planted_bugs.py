"""Wrong pan-private counters: the checker that the right ones pass catches every one."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from partita.trusted.streams.pan_private import BookBlock, Cells, PanPrivateCounter, PeriodBlock, TreeBlock

from .pan_views import Make, Script, pan_private

Plant = Callable[[pytest.MonkeyPatch], None]

PERIODS = Script.periods(4)
LIVE = Script.live(2)
LIVE_BOOK = Script.live(4, adds=1)
ANNOUNCED = Script.periods(4, announced=[2])


def _safe(make: Make, script: Script) -> bool:
    """The checker: whether one look before any step, or after the last, loses at most epsilon.

    The first look is before anything, when there is nothing to see in a counter that is right.
    """
    moments = range(1, len(script.steps) + 1)
    return all(_losses_fit(make, script, [moment]) for moment in moments)


def _losses_fit(make: Make, script: Script, looks: list[int]) -> bool:
    views = script.views(make, looks)
    return all(views.loss(event) <= 1 for event in range(script.events))


@pytest.mark.parametrize(
    ("make", "script"),
    [
        (pan_private(horizon=4), PERIODS),
        (pan_private(horizon=8), PERIODS),
        (pan_private(horizon=4, variant="book"), PERIODS),
        (pan_private(horizon=4, live=True), LIVE),
    ],
)
def test_the_shipped_counters_are_safe(make: Make, script: Script) -> None:
    """The checker has nothing to say about the right code."""
    assert _safe(make, script)


def _close(ending: Callable[[TreeBlock, Cells, int], int]) -> Any:
    """A wrong way to end an interval, in the place of the right one; no periods are skipped."""

    def close(block: TreeBlock, cells: Cells, position: int, last: int) -> int:
        return ending(block, cells, block._longest(position, last))

    return close


def _without_fresh_noise(block: TreeBlock, cells: Cells, level: int) -> int:
    value = int(cells[level])
    if level == 0:
        value = _noisy(block, value)
    cells[: level + 1] = 0
    return value


def _without_erasure(block: TreeBlock, cells: Cells, level: int) -> int:
    return _noisy(block, int(cells[level]))


def _noisy(block: PeriodBlock, value: int) -> int:
    return int(np.asarray(block.noise.add(np.array([value]), block.scale))[0])


def figure_12_1(patch: pytest.MonkeyPatch) -> None:
    """Outputs get no fresh noise: Figure 12.1 itself."""
    patch.setattr(TreeBlock, "close", _close(_without_fresh_noise))


def periods_stay(patch: pytest.MonkeyPatch) -> None:
    """What was counted in one period stays in its cell after the output."""
    patch.setattr(TreeBlock, "close", _close(_without_erasure))


def no_noise_before(patch: pytest.MonkeyPatch) -> None:
    """Cells begin without noise; outputs have theirs."""

    def begin(block: TreeBlock, cells: Cells, position: int, value: int) -> None:
        begun = block.levels if position % (1 << block._top) == 0 else (position & -position).bit_length() - 1
        cells[:begun] = value

    patch.setattr(TreeBlock, "begin", begin)


def small_scale(patch: pytest.MonkeyPatch) -> None:
    """One level is forgotten in the scale."""
    patch.setattr(TreeBlock, "scale", property(lambda block: (block.levels - Fraction(1, 2)) / block.rate))


def all_cells(patch: pytest.MonkeyPatch) -> None:
    """Events are added to cells that are not in use, too."""

    def add(block: TreeBlock, cells: Cells, position: int, x: int) -> None:
        cells[: block.levels] += x

    patch.setattr(TreeBlock, "add", add)


def early_noise(patch: pytest.MonkeyPatch) -> None:
    """The noise of an output is drawn when its interval begins, and waits in memory."""
    begin = TreeBlock.begin

    def greedy(block: TreeBlock, cells: Cells, position: int, value: int) -> None:
        begin(block, cells, position, value)
        for level in range(block.levels):
            if position % (1 << level) == 0:
                cells[32 + level] = _noisy(block, 0)

    def ending(block: TreeBlock, cells: Cells, level: int) -> int:
        value = int(cells[level] + cells[32 + level])
        cells[: level + 1] = 0
        return value

    patch.setattr(TreeBlock, "begin", greedy)
    patch.setattr(TreeBlock, "close", _close(ending))


def one_noise_for_both_halves(patch: pytest.MonkeyPatch) -> None:
    """The noise of the first half is used for the second half again."""
    begin, kept = TreeBlock.begin, dict[int, int]()

    def thrifty(block: TreeBlock, cells: Cells, position: int, value: int) -> None:
        begin(block, cells, position, value)
        if position == 0:
            kept[1] = int(cells[1]) - value
        if position == 2:
            cells[1] = value + kept[1]

    patch.setattr(TreeBlock, "begin", thrifty)


def bare_live_periods(patch: pytest.MonkeyPatch) -> None:
    """In a live counter the cell of one period begins without noise."""
    patch.setattr(TreeBlock, "_first_noisy", 1)


def book_scale(patch: pytest.MonkeyPatch) -> None:
    """Figure 12.2 with scale log2 T / epsilon."""
    patch.setattr(BookBlock, "scale", property(lambda block: block.levels / block.rate))


def book_without_erasure(patch: pytest.MonkeyPatch) -> None:
    """Figure 12.2 that remembers the noises of intervals that have ended."""
    close = BookBlock.close

    def hoarding(block: BookBlock, cells: Cells, position: int, last: int) -> int:
        before = int(cells[1 : 1 + block.levels].sum())
        value = close(block, cells, position, last)
        cells[32 + position] = value - int(cells[0]) - before
        return value

    patch.setattr(BookBlock, "close", hoarding)


def book_without_noise(patch: pytest.MonkeyPatch) -> None:
    """Figure 12.2 whose count begins without noise."""
    patch.setattr(BookBlock, "begin", lambda block, cells, position, value: None)


def book_too_early(patch: pytest.MonkeyPatch) -> None:
    """Figure 12.2, live, with the noises of a period drawn before its events."""
    begin = BookBlock.begin

    def greedy(block: BookBlock, cells: Cells, position: int, value: int) -> None:
        begin(block, cells, position, value)
        for level in range(block.levels):
            if position % (1 << level) == 0:
                cells[1 + level] = _noisy(block, 0)

    def close(block: BookBlock, cells: Cells, position: int, last: int) -> int:
        value = int(cells[: 1 + block.levels].sum())
        for level in range(block.levels):
            if (position + 1) % (1 << level) == 0:
                cells[1 + level] = 0
        return value

    patch.setattr(BookBlock, "begin", greedy)
    patch.setattr(BookBlock, "close", close)


@pytest.mark.parametrize(
    "plant",
    [
        figure_12_1,
        periods_stay,
        no_noise_before,
        small_scale,
        all_cells,
        early_noise,
        one_noise_for_both_halves,
    ],
)
def test_a_wrong_default_is_caught(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of these loses more than epsilon to one look."""
    plant(monkeypatch)
    assert not _safe(pan_private(horizon=8 if plant is all_cells else 4), PERIODS)


def test_a_wrong_live_default_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look within a period reads the period."""
    bare_live_periods(monkeypatch)
    assert not _safe(pan_private(horizon=4, live=True), LIVE)


@pytest.mark.parametrize("plant", [book_scale, book_without_erasure, book_without_noise])
def test_a_wrong_figure_12_2_is_caught(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of these loses more than epsilon to one look."""
    plant(monkeypatch)
    assert not _safe(pan_private(horizon=4, variant="book"), PERIODS)


def test_a_wrong_live_figure_12_2_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look within a period sees the noises that were to hide the rest of it."""
    book_too_early(monkeypatch)
    assert not _safe(pan_private(horizon=4, variant="book", live=True), LIVE_BOOK)


def test_the_scale_of_figure_12_2_needs_its_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """With scale log2 T / epsilon, T = 4, the last event loses at least 1.48 epsilon to a last look."""
    book_scale(monkeypatch)
    views = PERIODS.views(pan_private(horizon=4, variant="book"), [4])
    assert float(views.loss(3)) >= 1.48


def test_figure_12_1_leaks_from_four_periods_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """With two periods nothing outlives its period, and Figure 12.1 is as good as any."""
    figure_12_1(monkeypatch)
    assert _safe(pan_private(horizon=2), Script.periods(2))
    assert not _safe(pan_private(horizon=4), PERIODS)


def _deaf(patch: pytest.MonkeyPatch) -> None:
    """An announcement changes nothing."""
    patch.setattr(PanPrivateCounter, "announce_intrusion", lambda counter: None)


def _forgetful(patch: pytest.MonkeyPatch) -> None:
    """An announcement starts a new block, but the cells of the old one stay until they are needed."""

    def renew(counter: Any) -> None:
        counter._start = counter._periods
        counter._block = counter._block_here()

    patch.setattr(PanPrivateCounter, "_renew", renew)


@pytest.mark.parametrize("plant", [_deaf, _forgetful])
def test_a_wrong_announcement_is_caught(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    """One look before an announcement and one after it are more than one look."""
    make, looks = pan_private(horizon=8), [1, 3]
    assert _losses_fit(make, ANNOUNCED, looks)

    plant(monkeypatch)

    assert not _losses_fit(make, ANNOUNCED, looks)
