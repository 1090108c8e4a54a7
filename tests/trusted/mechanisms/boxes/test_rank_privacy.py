"""Rank boxes lose at most epsilon: coupled runs on all small neighbours, and bugs that they catch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from importlib import import_module
from itertools import combinations_with_replacement, product
from typing import Any, cast

import numpy as np
import pytest

from partita.domain.axis import Axis
from partita.public.boxes.rank_boxes import RankBoxesRelease, RankViews
from partita.testing import CouplingBroken, EndlessTape, coupled, tape_noise
from partita.trusted.mechanisms import base
from partita.trusted.mechanisms.boxes import RankBoxes
from partita.trusted.noise import Noise
from partita.trusted.secret import Points

module: Any = import_module("partita.trusted.mechanisms.boxes")

Row = tuple[int, ...]
Rows = tuple[Row, ...]
Pairs = list[tuple[Rows, Rows]]
Bug = Callable[[pytest.MonkeyPatch], None]

CUBE = (Axis(size=2), Axis(size=2), Axis(size=2))
SPECIAL = (Axis(size=2, before=1), Axis(size=1, after=1), Axis(size=2, labels=True))
EPSILON = Fraction(40)


def _mechanism(axes: Sequence[Axis] = CUBE, **changes: Any) -> RankBoxes:
    return RankBoxes(**{"axes": axes, "epsilon": EPSILON, **changes})


def _cells(axes: Sequence[Axis]) -> list[Row]:
    return list(product(*(range(axis.width) for axis in axes)))


def _data_sets(axes: Sequence[Axis], rows: int) -> Iterator[Rows]:
    """All data sets of so many rows."""
    return combinations_with_replacement(_cells(axes), rows)


def _added(axes: Sequence[Axis], most: int) -> Pairs:
    """All pairs of a data set of fewer rows than `most`, and the same with one row more."""
    return [
        (less, (*less, row))
        for rows in range(most)
        for less in _data_sets(axes, rows)
        for row in _cells(axes)
    ]


def _public(release: RankBoxesRelease) -> list[object]:
    parts = release.parts()
    return [dict(parts.facts), *(series.tolist() for series in parts.series.values())]


def _losses(mechanism: RankBoxes, pairs: Pairs, tapes: int = 1) -> Iterator[Fraction]:
    """The loss of each pair on each of its tapes."""

    def run(rows: Rows, noise: Noise) -> list[object]:
        places = np.array(rows, np.uint64).reshape(-1, len(mechanism.axes))
        points = Points.from_rows(places, axes=mechanism.axes, contributions=mechanism.contributions)
        return _public(mechanism.release(points, noise=noise))

    for one, other in pairs:
        for tape in range(tapes):
            yield coupled(run, one, other, tape_noise(EndlessTape((one, other, tape))))


@pytest.mark.parametrize(
    ("axes", "most"),
    [(CUBE, 2), (SPECIAL, 2), ((Axis(size=2), Axis(size=3)), 2)],
    ids=["2x2x2", "specials", "2x3"],
)
@pytest.mark.spread(1)
def test_one_row_costs_epsilon(axes: Sequence[Axis], most: int) -> None:
    """For all pairs of small data sets that differ by a row, the looks that differ cost exactly epsilon."""
    assert set(_losses(_mechanism(axes), _added(axes, most))) == {EPSILON}


@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(4), Fraction(10)], ids=str)
def test_one_row_costs_epsilon_whatever_it_is(epsilon: Fraction) -> None:
    """Nothing depends on how large epsilon is: one row more in one cell of two costs all of it."""
    pairs: Pairs = [(less, (*less, row)) for less in [(), ((0, 0, 0),) * 5] for row in _cells(CUBE)]

    assert set(_losses(_mechanism(epsilon=epsilon), pairs)) == {epsilon}


def test_a_changed_row_costs_at_most_epsilon() -> None:
    """Under change-one a row that moves costs epsilon if it moves along all axes, and less if not."""
    mechanism = _mechanism(neighbors="change-one")
    pairs: Pairs = [((one,), (other,)) for one, other in product(_cells(CUBE), repeat=2) if one < other]

    losses = set(_losses(mechanism, pairs))

    assert max(losses) <= EPSILON
    assert max(losses) > Fraction(9, 10) * EPSILON
    assert min(losses) < EPSILON


def test_a_person_with_two_rows_costs_at_most_epsilon() -> None:
    """With contributions=2 both rows of a person together cost at most epsilon, wherever they are."""
    mechanism = _mechanism(contributions=2)
    pairs: Pairs = [((), rows) for rows in _data_sets(CUBE, 2)]

    assert max(_losses(mechanism, pairs)) == EPSILON


def test_shares_add_up_exactly() -> None:
    """Views, scores and tree share epsilon without a rest, for every number of axes."""
    for count in range(2, 7):
        for epsilon in (Fraction(1, 3), Fraction(7, 10), Fraction(10**12 + 1, 10**12)):
            mechanism = _mechanism([Axis(size=9)] * count, epsilon=epsilon)
            views = sum(view.epsilon for view in mechanism.views)

            assert views + mechanism.scores_epsilon + mechanism.tree_epsilon == epsilon
            assert views == epsilon * Fraction(45, 100)


def test_these_trees_grow_and_differ() -> None:
    """The pairs above meet trees of several levels and different schedules."""
    schedules, levels = set(), set()
    for seed in range(40):
        points = Points.from_rows([[0, 0, 0]] * 3 + [[1, 1, 0]], axes=CUBE)
        release = _mechanism().release(points, noise=tape_noise(EndlessTape(seed)))
        schedules.add(str(release.shape.plan.schedule.tolist()))
        levels.add(release.shape.levels.size)

    assert len(schedules) > 3
    assert len(levels) > 1


def test_scores_change_by_one_for_each_row() -> None:
    """In all small tables, whatever is expected of their cells, one row more changes the misfit by one."""
    for counts in product(range(4), repeat=4):
        for expected in ([0, 0, 0, 0], [1, 1, 1, 1], [3, 0, 2, 1]):
            misfit = module._misfit(np.array(counts), np.array(expected))
            for cell in range(4):
                more = np.array(counts)
                more[cell] += 1
                assert abs(module._misfit(more, np.array(expected)) - misfit) == 1


# Planted bugs: each is one way to get rank boxes wrong, put into the shipped code.


def _property(patch: pytest.MonkeyPatch, name: str, wrong: Callable[[RankBoxes], Any]) -> None:
    patch.setattr(RankBoxes, name, property(wrong))


def _true_rows_in_what_is_expected(patch: pytest.MonkeyPatch) -> None:
    right = module._scores

    class Telling(RankViews):  # type: ignore[misc]
        rows = 0

    def scores(points: Points, views: RankViews) -> Any:
        wrong = Telling(views.trees)
        patch.setattr(Telling, "rows", 8 * points.total)
        return right(points, wrong)

    patch.setattr(module, "_scores", scores)


def _true_rows_for_the_tree(patch: pytest.MonkeyPatch) -> None:
    right = module.grow

    def grow(points: Points, *, total: int | None, **given: Any) -> Any:
        return right(points, total=None if total is None else 9 * points.total, **given)

    patch.setattr(module, "grow", grow)


def _schedule_by_true_scores(patch: pytest.MonkeyPatch) -> None:
    true: list[Any] = []
    scores, importance = module._scores, module.importance

    def telling(points: Points, views: RankViews) -> Any:
        true[:] = [scores(points, views)]
        return true[0]

    def peeking(_: Any, *others: Any) -> Any:
        return importance(true[0].tolist(), Fraction(0), *others[1:])

    patch.setattr(module, "_scores", telling)
    patch.setattr(module, "importance", peeking)


def _schedule_by_true_rows(patch: pytest.MonkeyPatch) -> None:
    rows: list[int] = []
    scores, schedule = module._scores, module.rank_schedule

    def telling(points: Points, views: RankViews) -> Any:
        rows[:] = [points.total]
        return scores(points, views)

    patch.setattr(module, "_scores", telling)
    patch.setattr(
        module, "rank_schedule", lambda matters, bits: schedule(np.roll(matters * [1, 5, 9], rows[0]), bits)
    )


def _scores_nearly_without_noise(patch: pytest.MonkeyPatch) -> None:
    _property(patch, "scores_scale", lambda mechanism: Fraction(1, 1000))


def _scores_as_if_there_were_one(patch: pytest.MonkeyPatch) -> None:
    _property(patch, "scores_scale", lambda mechanism: mechanism.rows_changed / mechanism.scores_epsilon)


def _scores_paid_by_nobody(patch: pytest.MonkeyPatch) -> None:
    _property(patch, "tree_epsilon", lambda mechanism: mechanism.epsilon * Fraction(55, 100))


def _tree_at_all_of_epsilon(patch: pytest.MonkeyPatch) -> None:
    _property(patch, "tree_epsilon", lambda mechanism: mechanism.epsilon)


def _every_view_at_the_share_of_all(patch: pytest.MonkeyPatch) -> None:
    views = _mechanism(epsilon=3 * EPSILON).views
    _property(patch, "views", lambda mechanism: views)
    _property(patch, "tree_epsilon", lambda mechanism: mechanism.epsilon * Fraction(53, 100))


def _squares_of_misfits(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(module, "_misfit", lambda counts, expected: ((counts - expected) ** 2).sum(axis=-1))


def _rows_counted_in_two_cells(patch: pytest.MonkeyPatch) -> None:
    right = module._misfit

    def misfit(counts: Any, expected: Any) -> Any:
        return right(counts + np.roll(counts, 9, axis=-1), expected)

    patch.setattr(module, "_misfit", misfit)


def _edges_from_the_data(patch: pytest.MonkeyPatch) -> None:
    places: list[Any] = []
    views, trimmed = RankBoxes._views, module.trimmed

    def telling(mechanism: RankBoxes, points: Points, session: Noise) -> Any:
        places[:] = [int(points.places.sum())]
        return views(mechanism, points, session)

    def peeking(edges: Any) -> Any:
        true = edges.copy()
        true[1:-1] = places[0] % (int(edges[-1]) + 1)
        return trimmed(true)

    patch.setattr(RankBoxes, "_views", telling)
    patch.setattr(module, "trimmed", peeking)


def _empty_axes_skipped(patch: pytest.MonkeyPatch) -> None:
    right = RankBoxes._views

    def views(mechanism: RankBoxes, points: Points, session: Noise) -> Any:
        made = right(mechanism, points, session)
        return (made[0],) * 3 if not points.places[:, 1].any() else made

    patch.setattr(RankBoxes, "_views", views)


def _one_noise_for_two_views(patch: pytest.MonkeyPatch) -> None:
    right = RankBoxes._views

    def views(mechanism: RankBoxes, points: Points, session: Noise) -> Any:
        first, second, third = cast(Any, right(mechanism, points, session))
        looks = second.looks
        noisy = looks.noisy.copy()
        noisy[0] = points.total + (first.looks.noisy[0] - points.total) * 2
        return first, replace(second, looks=replace(looks, noisy=noisy)), third

    patch.setattr(RankBoxes, "_views", views)


BUGS: list[Bug] = [
    _true_rows_in_what_is_expected,
    _true_rows_for_the_tree,
    _schedule_by_true_scores,
    _schedule_by_true_rows,
    _scores_nearly_without_noise,
    _scores_as_if_there_were_one,
    _scores_paid_by_nobody,
    _tree_at_all_of_epsilon,
    _every_view_at_the_share_of_all,
    _squares_of_misfits,
    _rows_counted_in_two_cells,
    _edges_from_the_data,
    _empty_axes_skipped,
    _one_noise_for_two_views,
]


def _caught(mechanism: RankBoxes, pairs: Pairs) -> bool:
    """Whether a coupled run breaks or costs more than epsilon."""
    try:
        return any(loss > mechanism.epsilon for loss in _losses(mechanism, pairs))
    except CouplingBroken:
        return True


FEW: Pairs = [
    (less, (*less, row)) for less in [(), ((0, 0, 0),), ((0, 1, 1), (1, 0, 1))] for row in _cells(CUBE)
]


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_planted_bugs_are_caught(bug: Bug) -> None:
    """The coupling fails for some pair of few."""
    assert not _caught(_mechanism(), FEW[:2])
    with pytest.MonkeyPatch.context() as patch:
        bug(patch)

        assert _caught(_mechanism(), FEW)


@pytest.mark.parametrize(
    ("factor", "changes", "pairs"),
    [
        (1, {"neighbors": "change-one"}, [(((0, 0, 0),), ((1, 1, 1),))]),
        (1, {"contributions": 2}, [((), ((0, 0, 0), (1, 1, 1)))]),
    ],
    ids=["neighbors", "contributions"],
)
def test_wrong_factors_are_caught(factor: int, changes: dict[str, Any], pairs: Pairs) -> None:
    """Noise for one row does not hide one that moves, or two."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base, "rows_changed", lambda neighbors, contributions: factor)
        assert _caught(_mechanism(**changes), pairs)
    assert not _caught(_mechanism(**changes), pairs)
