"""The enumeration reaches every mechanism, finds epsilon and no more in what ships, and planted bugs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

import partita as pt
from partita import local
from partita.audit import enumerate_all, public_mechanisms
from partita.audit.base import CaseCount, checked_depth, neighbours
from partita.audit.engine import cases
from partita.audit.laws import coupled_loss
from partita.errors import InvalidParameter
from partita.pan.bits import Density
from partita.public.streams import CounterTerms
from partita.testing import CouplingBroken, add_remove_pairs
from partita.trusted.mechanisms import base, partition
from partita.trusted.streams.pan_private import TreeBlock

Plant = Callable[[pytest.MonkeyPatch], None]


def counted(*names: str) -> Iterator[CaseCount]:
    """One case after the other, so that whoever has seen enough need not wait for the rest."""
    return enumerate_all(depth="quick", only=names)


def test_every_public_mechanism_is_enumerated() -> None:
    """At every depth; a new public mechanism without a case fails here."""
    for depth in ("quick", "standard"):
        assert {case.mechanism for case in cases(checked_depth(depth))} == set(public_mechanisms())


@pytest.mark.parametrize(
    "name", ["GridCounts", "Partition", "LogTree", "TreeCounter", "Density", "OneBit", "Mixture"]
)
@pytest.mark.spread(4)
def test_what_ships_loses_no_more_than_epsilon(name: str) -> None:
    """One or two of each kind, over all pairs of their tiny universes."""
    found = list(counted(name))

    assert sum(count.pairs for count in found) > 0
    assert all(count.violations == 0 for count in found)
    assert max(count.loss / float(count.epsilon) for count in found) > 0.75


def test_neighbours_are_all_pairs_once() -> None:
    """Over three cells with at most one other row: 12 that come, 12 that change, and no pair twice."""
    come, change = (list(neighbours(3, 1, neighbors=kind)) for kind in ("add-remove", "change-one"))

    assert len(set(come)) == len(come) == 12
    assert len({frozenset(pair) for pair in change}) == len(change) == 12
    assert set(neighbours(2, 1)) >= {pair for pair in add_remove_pairs(2, 1) if sum(pair[1]) <= 1}


def test_more_gives_more_pairs() -> None:
    """With `more`, the same cases over larger data sets; here so many more sizes."""
    few, many = (
        sum(each.pairs for each in enumerate_all(depth="quick", only=["OneBit"], more=more))
        for more in (0, 2)
    )

    assert many > 2 * few


def test_an_unknown_depth_is_refused() -> None:
    """By name."""
    with pytest.raises(InvalidParameter, match="quick, standard, deep"):
        checked_depth("abyss")


def _half_the_scale(patch: pytest.MonkeyPatch) -> None:
    right = pt.HistogramCounts.scale.fget  # type: ignore[attr-defined]
    patch.setattr(pt.HistogramCounts, "scale", property(lambda self: right(self) / 2))


def _rows_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(base, "rows_changed", lambda neighbors, contributions: 1)


def _items_counted_twice(patch: pytest.MonkeyPatch) -> None:
    right = partition._OpenSegment.add
    patch.setattr(partition._OpenSegment, "add", lambda self, weight: right(self, 2 * weight))


def _exact_bits(patch: pytest.MonkeyPatch) -> None:
    def update(self: Any, ids: Any) -> None:
        self._bits[self._find(ids)] = True

    patch.setattr(Density, "update_many", update)


def _truth_told(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(local.RandomizedResponse, "sample", lambda self, x, draws: x)


def _two_rows_changed_count_as_two(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        base,
        "rows_changed",
        lambda neighbors, contributions: max(contributions, 1 + (neighbors != "add-remove")),
    )


def _change_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CounterTerms, "rate", property(lambda self: self.epsilon / self.contributions))


def _events_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CounterTerms, "rate", property(lambda self: self.epsilon / self.change))


def _state_without_noise(patch: pytest.MonkeyPatch) -> None:
    def begin(self: Any, cells: Any, position: int, value: int) -> None:
        cells[: self.levels if position % (1 << self._top) == 0 else 0] = value

    patch.setattr(TreeBlock, "begin", begin)


def _bare_threshold(patch: pytest.MonkeyPatch) -> None:
    def opened(self: Any, made: Any, start: int, noise: Any) -> None:
        self.position, self._level = start, made.threshold
        self._fresh = noise.first_success(made.law, made.scale)

    patch.setattr(partition._OpenSegment, "__init__", opened)


def _coin_a_millionth_off(patch: pytest.MonkeyPatch) -> None:
    right = Density.__init__

    def made(self: Any, **terms: Any) -> None:
        right(self, **terms)
        self._coin = replace(self._coin, redraw=self._coin.redraw + (1 << 64) // 10**6)

    patch.setattr(Density, "__init__", made)


PLANTS: list[tuple[str, Plant]] = [
    ("HistogramCounts", _half_the_scale),
    ("GridCounts", _rows_ignored),
    ("Partition", _items_counted_twice),
    ("PaperIntervals", _items_counted_twice),
    ("GridCounts", _two_rows_changed_count_as_two),
    ("PaperIntervals", _bare_threshold),
    ("TreeCounter", _events_ignored),
    ("Counter", _change_ignored),
    ("SparseCounter", _events_ignored),
    ("CounterFamily", _change_ignored),
    ("PanPrivateCounter", _state_without_noise),
    ("Density", _exact_bits),
    ("Density", _coin_a_millionth_off),
    ("RandomizedResponse", _truth_told),
]


@pytest.mark.parametrize(("name", "plant"), PLANTS, ids=lambda each: getattr(each, "__name__", str(each)))
def test_planted_bugs_are_violations(name: str, plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is found by the cases of its mechanism, none of which the right code fails."""
    plant(monkeypatch)

    assert any(count.violations for count in counted(name))


def _selects(change: int) -> Callable[[Any, Any], object]:
    """The best of two candidates, whose scores one row changes by so much."""
    return lambda rows, noise: noise.exponential([change * rows, 0], Fraction(2))


def test_a_selection_costs_what_its_scores_change() -> None:
    """A score that one row moves by one, over scale two: one half; by three: three halves."""
    assert coupled_loss(_selects(1), 4, 5, seed=0) == Fraction(1, 2)
    assert coupled_loss(_selects(3), 4, 5, seed=0) == Fraction(3, 2)


def _seals(rows: dict[int, int], noise: Any) -> object:
    cells = [rows.get(cell, 0) for cell in range(3)]
    return tuple(pt.Partition(size=3, epsilon=1).cut(pt.Histogram.dense(cells), noise=noise).edges.tolist())


def test_a_segment_costs_the_rows_that_differ() -> None:
    """One row more costs 1 / scale, two rows or a row that moves at most twice that."""
    losses = [coupled_loss(_seals, {}, other, seed=seed) for seed in range(8) for other in ({0: 1}, {2: 1})]
    moved = [coupled_loss(_seals, {0: 1}, {2: 1}, seed=seed) for seed in range(8)]

    assert set(losses) == {Fraction(0), Fraction(1)} or set(losses) == {Fraction(1)}
    assert max(moved) == 2


def _reused(rows: int, noise: Any) -> object:
    """Goes on with a segment that is sealed."""
    noise.draw("geometric", Fraction(1))
    segment = noise.first_success("geometric", Fraction(1))
    return segment.run(9 - rows, 40), segment.run(9 - rows, 40)


def test_choices_that_depend_on_data_break_the_coupling() -> None:
    """Another number of candidates, another scale, or a choice that is not there; noise that nobody pays."""
    for run in (
        lambda rows, noise: noise.exponential([0] * rows, Fraction(1)),
        lambda rows, noise: noise.exponential([0, 1], Fraction(rows)),
        lambda rows, noise: [noise.exponential([0], Fraction(1)) for _ in range(rows)],
        lambda rows, noise: rows + noise.draw("laplace", Fraction(1, 9)) > 99,
        lambda rows, noise: noise.first_success("laplace", Fraction(1)).run(9 - rows, 3),
        _reused,
    ):
        with pytest.raises(CouplingBroken):
            coupled_loss(run, 4, 5, seed=0)
