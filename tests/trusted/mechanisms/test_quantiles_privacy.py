"""Selected quantiles: output laws of the shipped code on all small columns, and bugs that these laws show."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache, partial
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from partita.audit.laws import common_unit
from partita.public.axis import quantile_plan as public
from partita.testing import (
    CouplingBroken,
    RecordingNoise,
    ZeroNoise,
    add_remove_pairs,
    change_one_pairs,
    law,
    privacy_loss,
)
from partita.testing.laws import Loss, RationalNoise, coupled
from partita.testing.replay import replay
from partita.trusted.mechanisms.quantiles import QuantileSelection
from partita.trusted.secret import Histogram

module: Any = import_module("partita.trusted.mechanisms.quantiles")
Pair = tuple[tuple[int, ...], tuple[int, ...]]
HALF = Fraction(1, 2)
ONE_SIDE: Any = "add-remove"
BOTH_SIDES: Any = "change-one"


def _pairs(size: int, most: int, neighbors: Any) -> Iterator[Pair]:
    return (add_remove_pairs if neighbors == ONE_SIDE else change_one_pairs)(size, most)


def _published(mechanism: Any, counts: tuple[int, ...], noise: Any) -> Any:
    held = Histogram.dense(counts, contributions=mechanism.contributions)
    release = mechanism.release(held, noise=noise)
    return tuple(release.cells.tolist()), tuple(release.ends.tolist())


def _worst(mechanism: Any, pairs: Iterator[Pair], scales: list[Fraction] | None = None) -> tuple[Loss, int]:
    """The largest loss over pairs, by laws in which one half stands for a power of e."""
    asked = RecordingNoise(ZeroNoise())
    _published(mechanism, (1,) * mechanism.size, asked)
    unit = common_unit(scales or asked.scales)
    known = cache(
        lambda counts: law(lambda noise: _published(mechanism, counts, noise), RationalNoise(HALF, unit=unit))
    )
    losses = [privacy_loss(known(one), known(other), base=HALF, unit=unit) for one, other in pairs]
    return max(losses, key=float), len(losses)


@pytest.fixture
def short_tags(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hidden places of one digit: laws stay small, and places are shared often."""
    monkeypatch.setattr(module, "TAG_BITS", 1)


@pytest.mark.parametrize("neighbors", [ONE_SIDE, BOTH_SIDES])
@pytest.mark.parametrize("quantile", ["1/2", "1/3", "3/4", "1/10"])
def test_one_quantile_loses_epsilon_at_most(quantile: str, neighbors: Any) -> None:
    """Output laws of neighbouring columns differ by a factor of e^epsilon at most."""
    mechanism: Any = QuantileSelection(size=3, epsilon=1, quantiles=quantile, neighbors=neighbors)

    loss, pairs = _worst(mechanism, _pairs(3, 3, neighbors))

    assert pairs > 100
    assert loss <= 1


def test_the_loss_of_a_median_is_all_of_epsilon() -> None:
    """Two neighbours lose nine tenths of epsilon and more: no part of it is wasted."""
    loss, _ = _worst(QuantileSelection(size=3, epsilon=1), _pairs(3, 5, ONE_SIDE))

    assert 0.9 < float(loss) <= 1


@pytest.mark.parametrize("neighbors", [ONE_SIDE, BOTH_SIDES])
def test_a_person_with_two_rows_loses_epsilon_at_most(neighbors: Any) -> None:
    """Two rows at once, in one cell or in two, cost what one row may cost that is alone."""
    mechanism: Any = QuantileSelection(
        size=3, epsilon=1, quantiles="1/3", neighbors=neighbors, contributions=2
    )

    assert _worst(mechanism, iter(_twice(neighbors)))[0] <= 1


def _twice(neighbors: Any) -> list[Pair]:
    """Pairs that differ by two steps."""
    steps = list(_pairs(3, 2, neighbors))
    follow: dict[Any, list[Any]] = {}
    for one, other in [*steps, *((b, a) for a, b in steps)]:
        follow.setdefault(one, []).append(other)
    if neighbors == ONE_SIDE:
        return [
            (one, last)
            for one in follow
            for middle in follow[one]
            for last in follow[middle]
            if sum(last) == sum(one) + 2
        ]
    return [(one, last) for one in follow for middle in follow[one] for last in follow[middle]]


@pytest.mark.usefixtures("short_tags")
@pytest.mark.parametrize("neighbors", [ONE_SIDE, BOTH_SIDES])
@pytest.mark.parametrize("quantiles", [["1/3", "2/3"], ["1/10", "1/2"]])
def test_several_quantiles_lose_epsilon_at_most(quantiles: list[str], neighbors: Any) -> None:
    """The recursion with its hidden places, all levels together."""
    mechanism: Any = QuantileSelection(size=2, epsilon=1, quantiles=quantiles, neighbors=neighbors)

    loss, pairs = _worst(mechanism, _pairs(2, 2, neighbors))

    assert pairs >= 4
    assert float(loss) > 0
    assert loss <= 1


@pytest.mark.parametrize("neighbors", [ONE_SIDE, BOTH_SIDES])
def test_levels_use_up_epsilon_and_no_more(neighbors: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without hidden places columns can be longer; there two levels lose nearly all of epsilon."""
    monkeypatch.setattr(module, "TAG_BITS", 0)
    mechanism: Any = QuantileSelection(size=3, epsilon=1, quantiles=["1/2", "3/4"], neighbors=neighbors)

    loss, _ = _worst(mechanism, _pairs(3, 3, neighbors))

    assert float(loss) > 0.7
    assert loss <= 1


@pytest.mark.parametrize("neighbors", [ONE_SIDE, BOTH_SIDES])
def test_a_value_interval_loses_epsilon_at_most(neighbors: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A median and both ends of its interval, with few rows between them so that ends can move."""
    monkeypatch.setattr(QuantileSelection, "end_ranks", lambda self, copies: [1])
    mechanism: Any = QuantileSelection(size=4, epsilon=1, interval=True, neighbors=neighbors)

    loss, _ = _worst(mechanism, _pairs(4, 2 if neighbors == ONE_SIDE else 1, neighbors))

    assert float(loss) > 0.4
    assert loss <= 1


def test_copies_of_round_cells_keep_the_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever copies were learned, the recursion among them costs what is left of epsilon."""
    monkeypatch.setattr(module, "TAG_BITS", 0)
    copies = public.Copies(2, 0, (1, 2), (1, 2))
    mechanism: Any = QuantileSelection(size=2, epsilon=1, quantiles=2)
    monkeypatch.setattr(QuantileSelection, "_learn", lambda *_: (np.zeros(0, np.int64), copies))

    assert float(_worst(mechanism, _pairs(2, 2, ONE_SIDE))[0]) > 0
    assert _worst(mechanism, _pairs(2, 2, ONE_SIDE))[0] <= 1


@pytest.mark.parametrize(("neighbors", "contributions", "sides"), [(ONE_SIDE, 1, 1), (BOTH_SIDES, 3, 6)])
def test_the_look_at_round_values_costs_its_part(neighbors: Any, contributions: int, sides: int) -> None:
    """A row is in one class, so the look costs a fiftieth, and all parts together epsilon."""
    mechanism: Any = QuantileSelection(
        size=40, epsilon=1, quantiles=3, neighbors=neighbors, contributions=contributions
    )
    run = lambda counts, noise: mechanism._learn(  # noqa: E731
        module._Column.of(Histogram.dense(counts, contributions=contributions), noise), noise
    )[0].tolist()
    before = (1,) * 40

    for cell in (0, 3, 5, 20):
        after = tuple(count + (place == cell) for place, count in enumerate(before))
        assert coupled(run, before, after, ZeroNoise()) * sides == Fraction(1, 50)
    released = mechanism.release(Histogram.dense(before, contributions=contributions))
    assert released.spent == 1


@pytest.mark.parametrize("neighbors", [ONE_SIDE, BOTH_SIDES])
@pytest.mark.parametrize("quantiles", ["1/2", "1/5", 2, 9, 99])
@pytest.mark.parametrize("interval", [False, True])
def test_all_parts_cost_epsilon_together(neighbors: Any, quantiles: Any, interval: bool) -> None:
    """What the release says that it spent is the epsilon asked for, to the last digit."""
    mechanism: Any = QuantileSelection(
        size=1000, epsilon="7/3", quantiles=quantiles, interval=interval, neighbors=neighbors, contributions=3
    )

    assert mechanism.release(Histogram.dense([1] * 1000)).spent == Fraction(7, 3)


def test_replayed_neighbours_lose_epsilon_at_most() -> None:
    """On columns too wide to enumerate, the outcomes that favour one of two neighbours."""
    median = QuantileSelection(size=60, epsilon=1, quantiles="2/5")
    rows = (0,) * 10 + (4, 0, 1, 0, 3) + (0,) * 20 + (5,) + (0,) * 24
    for cell in (0, 12, 35, 59):
        more = tuple(count + (place == cell) for place, count in enumerate(rows))
        loss = replay(lambda counts: median.release(Histogram.dense(counts)).cells.tolist(), rows, more)

        assert loss <= 1


# Planted bugs: each is a way to be wrong that somebody could take, and the laws above show it.


def _caught(mechanism: Any, pairs: Iterator[Pair]) -> bool:
    try:
        return not _worst(mechanism, pairs)[0] <= mechanism.epsilon
    except (CouplingBroken, ValueError, AssertionError):
        return True


def _patch_rates(monkeypatch: pytest.MonkeyPatch, rates: Callable[[Any], tuple[Fraction, ...]]) -> None:
    monkeypatch.setattr(QuantileSelection, "rates", property(rates))


def test_a_forgotten_change_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that changes costs more than one that comes."""
    _patch_rates(monkeypatch, lambda self: (self.epsilon,))
    mechanism: Any = QuantileSelection(size=3, epsilon=1, neighbors=BOTH_SIDES)

    assert _caught(mechanism, _pairs(3, 2, BOTH_SIDES))


def test_forgotten_contributions_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rows of one person cost twice."""
    _patch_rates(monkeypatch, lambda self: (self.epsilon,))
    mechanism: Any = QuantileSelection(size=3, epsilon=1, contributions=2)

    assert _caught(mechanism, iter(_twice(ONE_SIDE)))


def test_the_change_of_the_near_side_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row beyond the quantile changes scores by q - p, and not by p alone."""
    near = property(lambda node: min(node.part.numerator, node.part.denominator - node.part.numerator))
    monkeypatch.setattr(public.Node, "change", near)

    assert _caught(QuantileSelection(size=3, epsilon=1, quantiles="1/3"), _pairs(3, 3, ONE_SIDE))


def test_a_scaled_score_with_an_unscaled_change_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores in thirds of a row change by two thirds of a row, which are two."""
    monkeypatch.setattr(module, "TAG_BITS", 0)
    monkeypatch.setattr(public.Node, "change", property(lambda node: 1))
    mechanism: Any = QuantileSelection(size=2, epsilon=1, quantiles=["1/5", "4/5"])

    assert _caught(mechanism, _pairs(2, 2, ONE_SIDE))


def test_a_scaled_score_of_one_quantile_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same mistake where there is one."""
    monkeypatch.setattr(public.Node, "change", property(lambda node: 1))

    assert _caught(QuantileSelection(size=3, epsilon=1, quantiles="1/4"), _pairs(3, 3, ONE_SIDE))


@pytest.mark.usefixtures("short_tags")
def test_a_tag_that_is_reused_as_an_answer_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cut behind the hidden place of a row tells the place, which no noise protects then."""

    def reused(self: Any, low: Any, high: Any, part: Any, scale: Any, noise: Any) -> Any:
        between = self.rows[low.rows : high.rows]
        place = int(between[len(between) // 2]) if len(between) else low.place
        return module._Cut(place + 1, low.rows + int(np.searchsorted(between, place, side="right")))

    monkeypatch.setattr(module._Places, "cut", reused)
    mechanism: Any = QuantileSelection(size=2, epsilon=1, quantiles=["1/3", "2/3"])

    assert _caught_by(mechanism, _pairs(2, 2, ONE_SIDE))


def _caught_by(mechanism: Any, pairs: Iterator[Pair]) -> bool:
    """As `_caught`, where the code draws no noise that would give a unit."""
    return any(not _worst(mechanism, iter([pair]), [Fraction(1)])[0] <= 1 for pair in pairs)


def test_a_level_that_spends_everything_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two levels that each spend epsilon lose more than epsilon."""
    monkeypatch.setattr(module, "TAG_BITS", 0)
    _patch_rates(monkeypatch, lambda self: (self.epsilon,) * len(self.levels))
    mechanism: Any = QuantileSelection(size=3, epsilon=1, quantiles=["1/2", "3/4"])

    assert _caught(mechanism, _pairs(3, 3, ONE_SIDE))


def test_gaps_that_count_once_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gap is as many candidates as it has cells: a row must not change how many there are."""
    whole = module._Runs.of

    def short(column: Any, size: int, *, largest: int) -> Any:
        runs = whole(column, size, largest=largest)
        return module._Runs(np.ones_like(runs.lengths), runs.below, runs.upto)

    monkeypatch.setattr(module._Runs, "of", staticmethod(short))

    assert _caught(QuantileSelection(size=5, epsilon=1), _pairs(5, 1, ONE_SIDE))


def test_half_of_the_scale_is_caught() -> None:
    """Scores move both ways, so the rate is epsilon over twice the change."""
    mechanism: Any = QuantileSelection(size=3, epsilon=2)
    loss, _ = _worst(mechanism, _pairs(3, 3, ONE_SIDE))

    assert not loss <= 1


def test_an_end_that_counts_rows_of_the_quantile_twice_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows at the quantile are on neither side: on both sides they would cost twice."""
    monkeypatch.setattr(QuantileSelection, "end_ranks", lambda self, copies: [1])

    def both(self: Any, cell: int) -> Any:
        low, high = (int(np.searchsorted(self.cells, cell, side)) for side in ("right", "left"))
        below = module._Column(np.maximum(cell - 1 - self.cells[:low], 0)[::-1], self.counts[:low][::-1])
        return below, module._Column(np.maximum(self.cells[high:] - (cell + 1), 0), self.counts[high:])

    def merged(column: Any) -> Any:
        cells = np.unique(column.cells)
        return module._Column(cells, np.array([column.counts[column.cells == cell].sum() for cell in cells]))

    monkeypatch.setattr(module._Column, "sides", lambda self, cell: tuple(map(merged, both(self, cell))))
    monkeypatch.setattr(module, "_INTERVALS", Fraction(4, 5))
    mechanism: Any = QuantileSelection(size=5, epsilon=1, interval=True)

    assert _caught(mechanism, iter([((0, 0, 1, 0, 0), (0, 0, 2, 0, 0))]))


# Looks and trees: what is asked of a column before its quantiles are found, and what follows.

LOOKS = Fraction(3, 100)  # of epsilon
MOVED: Pair = ((0,) * 20 + (2, 2, 0, 0), (0,) * 20 + (1, 3, 0, 0))


@pytest.fixture
def no_least(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every row of a block counts, however few there are."""
    monkeypatch.setattr(public.ColumnLook, "least", property(lambda self: 0))


def _look(mechanism: Any, counts: tuple[int, ...], noise: Any) -> Any:
    """Both looks, and what they decide."""
    held = Histogram.dense(counts, contributions=mechanism.contributions)
    column = module._Column.of(held, noise)
    rounds, copies = mechanism._learn(column, noise)
    return rounds.tolist(), mechanism._compare(column, rounds, copies, noise)


def _release(mechanism: Any, counts: tuple[int, ...], noise: Any) -> Any:
    held = Histogram.dense(counts, contributions=mechanism.contributions)
    released = mechanism.release(held, noise=noise)
    return released.parts().digest, released.tree is None


def _most(mechanism: Any, run: Any, pairs: Any) -> Fraction:
    """The largest loss by coupling."""
    return max(coupled(partial(run, mechanism), one, other, ZeroNoise()) for one, other in pairs)


def _decide(monkeypatch: pytest.MonkeyPatch, *, few: bool) -> None:
    monkeypatch.setattr(public.ColumnLook, "few", property(lambda self: few))


@pytest.mark.usefixtures("no_least")
@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("neighbors", [ONE_SIDE, BOTH_SIDES])
def test_looks_cost_their_part_on_all_small_columns(
    neighbors: Any, few: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row is in one class of round values, and changes the rows of blocks by one; two rows by two."""
    _decide(monkeypatch, few=few)
    mechanism: Any = QuantileSelection(size=5, epsilon=1, quantiles=3, neighbors=neighbors)

    loss = _most(mechanism, _look, _pairs(5, 3 if neighbors == ONE_SIDE else 2, neighbors))

    assert loss == LOOKS if neighbors == ONE_SIDE else 0 < loss < LOOKS  # all are alike round here


def test_looks_at_a_row_that_changes_use_up_their_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """From a round value to another, and from one of two equal heaps to the other."""
    _decide(monkeypatch, few=False)
    monkeypatch.setattr(public.ColumnLook, "least", property(lambda self: 0))
    mechanism: Any = QuantileSelection(size=24, epsilon=1, quantiles=3, neighbors=BOTH_SIDES)

    assert _most(mechanism, _look, [MOVED]) == LOOKS


@pytest.mark.usefixtures("no_least")
@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("neighbors", [ONE_SIDE, BOTH_SIDES])
def test_looks_of_a_person_with_two_rows_cost_their_part(
    neighbors: Any, few: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two rows come, or change, at once."""
    _decide(monkeypatch, few=few)
    mechanism: Any = QuantileSelection(size=3, epsilon=1, quantiles=3, neighbors=neighbors, contributions=2)

    loss = _most(mechanism, _look, _twice(neighbors))

    assert loss == LOOKS if neighbors == ONE_SIDE else 0 < loss < LOOKS


CROWD = (300, 20, 500, 80, 10, 2, 150)


def _near_crowd(neighbors: Any) -> Iterator[Pair]:
    """A crowd, which gets a tree that adds noise to counts, with a row more, or with one that moved."""
    for cell in range(len(CROWD)):
        more = tuple(count + (place == cell) for place, count in enumerate(CROWD))
        if neighbors == ONE_SIDE:
            yield CROWD, more
            continue
        for other in range(len(CROWD)):
            if other != cell:
                yield CROWD, tuple(count - (place == other) for place, count in enumerate(more))


@pytest.mark.parametrize("interval", [False, True])
@pytest.mark.parametrize("neighbors", [ONE_SIDE, BOTH_SIDES])
def test_looks_and_a_tree_cost_epsilon_together(
    neighbors: Any, interval: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that is released of a crowd: looks, the total of the tree, and its counts."""
    monkeypatch.setattr(public.ColumnLook, "prefers_tree", lambda *_: True)
    mechanism: Any = QuantileSelection(
        size=len(CROWD), epsilon=1, quantiles=3, neighbors=neighbors, interval=interval
    )

    loss = _most(mechanism, _release, _near_crowd(neighbors))

    assert Fraction(9, 10) < loss <= 1
    released = mechanism.release(Histogram.dense(CROWD))
    assert released.tree is not None
    assert released.spent == 1


@pytest.mark.parametrize("neighbors", [ONE_SIDE, BOTH_SIDES])
def test_what_looks_leave_is_all_that_a_recursion_costs(
    neighbors: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever they saw: the laws of three quantiles lose what is left of epsilon at most."""
    monkeypatch.setattr(module, "TAG_BITS", 0)
    blind = np.zeros(0, np.int64), public.Copies(2, 0)
    monkeypatch.setattr(QuantileSelection, "_learn", lambda *_: blind)
    monkeypatch.setattr(QuantileSelection, "_compare", lambda *_: (0, False))
    mechanism: Any = QuantileSelection(size=2, epsilon=1, quantiles=3, neighbors=neighbors)

    loss, _ = _worst(mechanism, _pairs(2, 2, neighbors))

    assert float(loss) > 0.3
    assert loss <= 1 - LOOKS


def _breaks(mechanism: Any, run: Any, pairs: Any, most: Fraction) -> bool:
    try:
        return _most(mechanism, run, pairs) > most
    except CouplingBroken:
        return True


@pytest.mark.usefixtures("no_least")
def test_a_choice_by_the_true_number_of_rows_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of rows that decides is the noisy one that was released."""
    mechanism: Any = QuantileSelection(size=5, epsilon=1, quantiles=3)
    whole = module._Column.count_blocks

    def by_rows(self: Any, least: int, *, dense: bool) -> int:
        _decide(monkeypatch, few=self.rows < 2)
        return int(whole(self, least, dense=dense))

    monkeypatch.setattr(module._Column, "count_blocks", by_rows)

    assert _breaks(mechanism, _look, _pairs(5, 3, ONE_SIDE), LOOKS)


@pytest.mark.parametrize("name", ["look", "heap_look"])
def test_a_look_that_forgets_the_change_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that changes is two rows, in each look."""
    share = {"look": Fraction(1, 50), "heap_look": Fraction(1, 100)}[name]
    monkeypatch.setattr(QuantileSelection, name, property(lambda self: share * self.epsilon))
    monkeypatch.setattr(public.ColumnLook, "least", property(lambda self: 0))
    _decide(monkeypatch, few=False)
    mechanism: Any = QuantileSelection(size=24, epsilon=1, quantiles=3, neighbors=BOTH_SIDES)

    assert _breaks(mechanism, _look, [MOVED], LOOKS)


def test_a_look_that_is_not_accounted_for_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left for a tree is less by both looks."""
    monkeypatch.setattr(public.ColumnLook, "prefers_tree", lambda *_: True)
    monkeypatch.setattr(QuantileSelection, "_chosen", property(lambda self: self.epsilon))
    mechanism: Any = QuantileSelection(size=len(CROWD), epsilon=1, quantiles=3)

    assert mechanism.release(Histogram.dense(CROWD)).spent > 1
    assert _breaks(mechanism, _release, _near_crowd(ONE_SIDE), Fraction(1))


@pytest.mark.usefixtures("no_least")
def test_blocks_that_count_a_row_twice_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice the smaller of two neighbours are the rows that lie densely there, but move by two."""
    _decide(monkeypatch, few=True)
    whole = module._Column.count_blocks
    doubled = lambda self, least, *, dense: 2 * whole(self, least, dense=dense)  # noqa: E731
    monkeypatch.setattr(module._Column, "count_blocks", doubled)
    mechanism: Any = QuantileSelection(size=5, epsilon=1, quantiles=3)

    assert _breaks(mechanism, _look, _pairs(5, 3, ONE_SIDE), LOOKS)
