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


class _Sides(RationalNoise):
    """Noise whose far values are told apart by side alone: cuts beyond a heap are at its end."""

    def _add(self, value: int, scale: Fraction) -> Any:
        ratio = self.base ** self.ratio_power(scale)
        inside = range(8)
        law_of = [(y, (1 - ratio) / (1 + ratio) * ratio ** abs(y - value)) for y in inside]
        sides = [(-9, 1 - _more(-1 - value, ratio)), (99, _more(inside[-1] - value, ratio))]
        return self.branches.choose([*law_of, *sides])


def _more(level: int, ratio: Fraction) -> Fraction:
    """P[noise > level] for discrete Laplace noise."""
    return ratio ** (level + 1) / (1 + ratio) if level >= -1 else 1 - ratio**-level / (1 + ratio)


@pytest.fixture
def even_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    """Levels, choices and cuts get equal parts, so that laws are fractions of few digits."""
    monkeypatch.setattr(module, "share_levels", lambda levels: (Fraction(1, len(levels)),) * len(levels))
    monkeypatch.setattr(module, "USUAL_SPLIT", HALF)


def _worst(mechanism: Any, pairs: Iterator[Pair], scales: list[Fraction] | None = None) -> tuple[Loss, int]:
    """The largest loss over pairs, by laws in which one half stands for a power of e."""
    asked = RecordingNoise(ZeroNoise())
    _published(mechanism, (1,) * mechanism.size, asked)
    unit = common_unit(scales or asked.scales)
    known = cache(
        lambda counts: law(lambda noise: _published(mechanism, counts, noise), _Sides(HALF, unit=unit))
    )
    losses = [privacy_loss(known(one), known(other), base=HALF, unit=unit) for one, other in pairs]
    return max(losses, key=float), len(losses)


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


@pytest.mark.usefixtures("even_shares")
@pytest.mark.parametrize("neighbors", [ONE_SIDE, BOTH_SIDES])
@pytest.mark.parametrize("quantiles", [["1/3", "2/3"], ["1/10", "1/2"]])
def test_several_quantiles_lose_epsilon_at_most(quantiles: list[str], neighbors: Any) -> None:
    """The recursion with its cuts, all levels together."""
    mechanism: Any = QuantileSelection(size=2, epsilon=1, quantiles=quantiles, neighbors=neighbors)

    loss, pairs = _worst(mechanism, _pairs(2, 2, neighbors))

    assert pairs >= 4
    assert float(loss) > 0
    assert loss <= 1


@pytest.mark.usefixtures("even_shares")
@pytest.mark.parametrize("neighbors", [ONE_SIDE, BOTH_SIDES])
def test_levels_use_up_epsilon_and_no_more(neighbors: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two levels, and the cut between them, lose nearly all of epsilon."""
    mechanism: Any = QuantileSelection(size=3, epsilon=1, quantiles=["1/2", "3/4"], neighbors=neighbors)

    loss, _ = _worst(mechanism, _pairs(3, 3, neighbors))

    assert float(loss) > 0.6
    assert loss <= 1


@pytest.mark.parametrize("neighbors", [ONE_SIDE, BOTH_SIDES])
def test_a_value_interval_loses_epsilon_at_most(neighbors: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A median and both ends of its interval, with few rows between them so that ends can move."""
    monkeypatch.setattr(QuantileSelection, "end_ranks", lambda self: [1])
    mechanism: Any = QuantileSelection(size=4, epsilon=1, interval=True, neighbors=neighbors)

    loss, _ = _worst(mechanism, _pairs(4, 2 if neighbors == ONE_SIDE else 1, neighbors))

    assert float(loss) > 0.4
    assert loss <= 1


@pytest.mark.usefixtures("even_shares")
@pytest.mark.parametrize("neighbors", [ONE_SIDE, BOTH_SIDES])
def test_favoured_cells_keep_the_loss(neighbors: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often the ends of a range are candidates, whether they have rows or not."""
    monkeypatch.setattr(module, "weigh_favoured", lambda cells: 3)
    mechanism: Any = QuantileSelection(size=2, epsilon=1, quantiles=["1/2", "3/4"], neighbors=neighbors)

    loss, _ = _worst(mechanism, _pairs(2, 2, neighbors))

    assert float(loss) > 0.3
    assert loss <= 1


@pytest.mark.usefixtures("even_shares")
@pytest.mark.parametrize("neighbors", [ONE_SIDE, BOTH_SIDES])
def test_cuts_of_heaps_keep_the_loss(neighbors: Any) -> None:
    """Heaps of up to four rows in two cells: where a cut divides them, both sides go on."""
    mechanism: Any = QuantileSelection(size=2, epsilon=1, quantiles=["1/3", "1/2"], neighbors=neighbors)

    loss, _ = _worst(mechanism, _pairs(2, 4 if neighbors == ONE_SIDE else 3, neighbors))

    assert float(loss) > 0.4
    assert loss <= 1


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


@pytest.mark.usefixtures("even_shares")
def test_a_scaled_score_with_an_unscaled_change_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores in thirds of a row change by two thirds of a row, which are two."""
    monkeypatch.setattr(public.Node, "change", property(lambda node: 1))
    mechanism: Any = QuantileSelection(size=2, epsilon=1, quantiles=["1/5", "4/5"])

    assert _caught(mechanism, _pairs(2, 2, ONE_SIDE))


def test_a_scaled_score_of_one_quantile_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same mistake where there is one."""
    monkeypatch.setattr(public.Node, "change", property(lambda node: 1))

    assert _caught(QuantileSelection(size=3, epsilon=1, quantiles="1/4"), _pairs(3, 3, ONE_SIDE))


@pytest.mark.usefixtures("even_shares")
def test_a_cut_without_noise_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The true rank at which a heap is cut moves rows from one side to the other."""
    whole = module._Between.choose

    class Quiet:
        def __init__(self, noise: Any) -> None:
            self.permute_and_flip = noise.permute_and_flip

        def add(self, values: Any, scale: Any) -> Any:
            return np.array(values)

    monkeypatch.setattr(
        module._Between,
        "choose",
        lambda self, node, choice, cut, noise: whole(self, node, choice, cut, Quiet(noise)),
    )
    mechanism: Any = QuantileSelection(size=2, epsilon=4, quantiles=["1/2", "3/4"])

    assert _caught(mechanism, _pairs(2, 6, ONE_SIDE))


@pytest.mark.usefixtures("even_shares")
def test_a_candidate_that_counts_more_for_having_rows_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which cells are favoured is public: it does not depend on whether they have rows."""
    monkeypatch.setattr(module._Between, "_weigh", lambda self, runs, size: 1 + 3 * (runs.upto > runs.below))
    mechanism: Any = QuantileSelection(size=3, epsilon=1, quantiles=["1/2", "3/4"])

    assert _caught(mechanism, _pairs(3, 1, ONE_SIDE))


@pytest.mark.usefixtures("even_shares")
def test_a_level_that_spends_everything_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two levels that each spend epsilon lose more than epsilon."""
    _patch_rates(monkeypatch, lambda self: (self.epsilon,) * len(self.levels))
    mechanism: Any = QuantileSelection(size=3, epsilon=1, quantiles=["1/2", "3/4"])

    assert _caught(mechanism, _pairs(3, 3, ONE_SIDE))


def test_gaps_that_count_once_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gap is as many candidates as it has cells: a row must not change how many there are."""
    whole = module._Runs.of

    def short(column: Any, size: int, *, largest: int) -> Any:
        runs = whole(column, size, largest=largest)
        return module._Runs(runs.starts, np.ones_like(runs.lengths), runs.below, runs.upto)

    monkeypatch.setattr(module._Runs, "of", staticmethod(short))

    assert _caught(QuantileSelection(size=5, epsilon=1), _pairs(5, 1, ONE_SIDE))


def test_half_of_the_scale_is_caught() -> None:
    """Scores move both ways, so the rate is epsilon over twice the change."""
    mechanism: Any = QuantileSelection(size=3, epsilon=2)
    loss, _ = _worst(mechanism, _pairs(3, 3, ONE_SIDE))

    assert not loss <= 1


def test_an_end_that_counts_rows_of_the_quantile_twice_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows at the quantile are on neither side: on both sides they would cost twice."""
    monkeypatch.setattr(QuantileSelection, "end_ranks", lambda self: [1])

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


# A look and a tree: what is asked of a column before its quantiles are found, and what follows.

LOOKS = Fraction(1, 50)  # of epsilon
MOVED: Pair = ((0,) * 20 + (5, 0, 3, 0), (0,) * 20 + (4, 1, 3, 0))


@pytest.fixture
def shallow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Heaps begin at the second row, large ones at the third."""
    monkeypatch.setattr(module, "list_depths", lambda rate: (1, 2))


def _look(mechanism: Any, counts: tuple[int, ...], noise: Any) -> Any:
    """The look, and what it decides."""
    held = Histogram.dense(counts, contributions=mechanism.contributions)
    look = mechanism._look(module._Column.of(held, noise), noise)
    return look.depths, look.split, look.prefers_tree


def _release(mechanism: Any, counts: tuple[int, ...], noise: Any) -> Any:
    held = Histogram.dense(counts, contributions=mechanism.contributions)
    released = mechanism.release(held, noise=noise)
    return released.parts().digest, released.tree is None


def _most(mechanism: Any, run: Any, pairs: Any) -> Fraction:
    """The largest loss by coupling."""
    return max(coupled(partial(run, mechanism), one, other, ZeroNoise()) for one, other in pairs)


@pytest.mark.usefixtures("shallow")
@pytest.mark.parametrize(("neighbors", "contributions"), [(ONE_SIDE, 1), (BOTH_SIDES, 1), (ONE_SIDE, 2)])
def test_a_look_costs_its_part_on_all_small_columns(neighbors: Any, contributions: int) -> None:
    """A row more is one more of one depth, whatever the cell holds; a row that changes is two."""
    mechanism: Any = QuantileSelection(
        size=4, epsilon=1, quantiles=3, neighbors=neighbors, contributions=contributions
    )

    pairs = _pairs(4, 4, neighbors) if contributions == 1 else _twice(ONE_SIDE)
    if contributions == 2:
        mechanism = QuantileSelection(size=3, epsilon=1, quantiles=3, contributions=2)
    assert _most(mechanism, _look, pairs) == LOOKS


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
def test_a_look_and_a_tree_cost_epsilon_together(
    neighbors: Any, interval: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that is released of a crowd: the look, the total of the tree, and its counts."""
    monkeypatch.setattr(public.ColumnLook, "prefers_tree", property(lambda _: True))
    mechanism: Any = QuantileSelection(
        size=len(CROWD), epsilon=1, quantiles=3, neighbors=neighbors, interval=interval
    )

    loss = _most(mechanism, _release, _near_crowd(neighbors))

    assert Fraction(9, 10) < loss <= 1
    released = mechanism.release(Histogram.dense(CROWD))
    assert released.tree is not None
    assert released.spent == 1


@pytest.mark.usefixtures("even_shares")
@pytest.mark.parametrize("neighbors", [ONE_SIDE, BOTH_SIDES])
def test_what_a_look_leaves_is_all_that_a_recursion_costs(
    neighbors: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it saw: the laws of three quantiles lose what is left of epsilon at most."""
    monkeypatch.setattr(public.ColumnLook, "prefers_tree", property(lambda _: False))
    monkeypatch.setattr(public.ColumnLook, "split", HALF)
    blind = lambda self, *_: public.ColumnLook(2, (0, 0, 0), Fraction(50), self.levels, self.rates)  # noqa: E731
    monkeypatch.setattr(QuantileSelection, "_look", blind)
    mechanism: Any = QuantileSelection(size=2, epsilon=1, quantiles=3, neighbors=neighbors)

    loss, _ = _worst(mechanism, _pairs(2, 2, neighbors))

    assert float(loss) > 0.3
    assert loss <= 1 - LOOKS


def _breaks(mechanism: Any, run: Any, pairs: Any, most: Fraction) -> bool:
    try:
        return _most(mechanism, run, pairs) > most
    except CouplingBroken:
        return True


@pytest.mark.usefixtures("shallow")
def test_a_choice_by_the_true_number_of_rows_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of rows that decides is the noisy one that was released."""
    whole = module._Column.count_depths

    def by_rows(self: Any, edges: Any) -> Any:
        monkeypatch.setattr(public.ColumnLook, "_few", property(lambda _: self.rows < 2))
        return whole(self, edges)

    monkeypatch.setattr(module._Column, "count_depths", by_rows)
    mechanism: Any = QuantileSelection(size=4, epsilon=1, quantiles=3)

    assert _breaks(mechanism, _look, _pairs(4, 3, ONE_SIDE), LOOKS)


@pytest.mark.usefixtures("shallow")
def test_a_look_that_forgets_the_change_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that changes is two rows."""
    monkeypatch.setattr(QuantileSelection, "look", property(lambda self: LOOKS * self.epsilon))
    mechanism: Any = QuantileSelection(size=24, epsilon=1, quantiles=3, neighbors=BOTH_SIDES)

    assert _breaks(mechanism, _look, [MOVED], LOOKS)


def test_a_look_that_is_not_accounted_for_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left for a tree is less by the look."""
    monkeypatch.setattr(public.ColumnLook, "prefers_tree", property(lambda _: True))
    monkeypatch.setattr(QuantileSelection, "_chosen", property(lambda self: self.epsilon))
    mechanism: Any = QuantileSelection(size=len(CROWD), epsilon=1, quantiles=3)

    assert mechanism.release(Histogram.dense(CROWD)).spent > 1
    assert _breaks(mechanism, _release, _near_crowd(ONE_SIDE), Fraction(1))


@pytest.mark.usefixtures("shallow")
def test_heaps_that_count_all_their_rows_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of cells with more than one row jump by two when a second one comes."""

    def whole_cells(self: Any, edges: Any) -> Any:
        heaped = int(self.counts[self.counts > edges[0]].sum())
        return np.array([self.rows - heaped, heaped, 0])

    monkeypatch.setattr(module._Column, "count_depths", whole_cells)
    mechanism: Any = QuantileSelection(size=4, epsilon=1, quantiles=3)

    assert _breaks(mechanism, _look, _pairs(4, 3, ONE_SIDE), LOOKS)
