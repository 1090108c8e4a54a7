"""Viewed boxes lose at most epsilon: laws, coupled and replayed runs on small neighbours, planted bugs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from importlib import import_module
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest

from partita.domain.axis import Axis
from partita.public.boxes.view_audits import AuditGrid
from partita.testing import (
    CouplingBroken,
    EndlessTape,
    RationalNoise,
    add_remove_pairs,
    coupled,
    law,
    privacy_loss,
    replay,
    tape_noise,
)
from partita.trusted.mechanisms import base
from partita.trusted.mechanisms.boxes import count_plainly
from partita.trusted.mechanisms.viewed_boxes import ViewedBoxes, ViewsPlan
from partita.trusted.noise import Noise
from partita.trusted.secret import Points

module: Any = import_module("partita.trusted.mechanisms.viewed_boxes")

Row = tuple[int, ...]
Rows = tuple[Row, ...]
Pairs = list[tuple[Rows, Rows]]
Bug = Callable[[pytest.MonkeyPatch], None]

PAIR = (Axis(size=2, before=1), Axis(size=2, after=1, labels=True))
CUBE = (Axis(size=2), Axis(size=1, after=1, labels=True), Axis(size=2))
WIDE = (Axis(size=2**30), Axis(size=2, after=1, labels=True), Axis(size=2))
EPSILON = Fraction(20)
HALF = Fraction(1, 2)


def _mechanism(axes: Sequence[Axis] = PAIR, **changes: Any) -> ViewedBoxes:
    return ViewedBoxes(**{"axes": axes, "epsilon": EPSILON, "views": (1,), **changes})


def _cells(axes: Sequence[Axis]) -> list[Row]:
    return list(product(*(range(min(axis.width, 3)) for axis in axes)))


def _added(axes: Sequence[Axis], most: int) -> Pairs:
    """Pairs of a data set of fewer rows than `most`, and the same with one row more."""
    return [
        (less, (*less, row))
        for rows in range(most)
        for less in combinations_with_replacement(_cells(axes), rows)
        for row in _cells(axes)
    ]


def _points(mechanism: ViewedBoxes, rows: Rows) -> Points:
    places = np.array(rows, np.uint64).reshape(-1, len(mechanism.axes))
    return Points.from_rows(places, axes=mechanism.axes, contributions=mechanism.contributions)


def _publish(mechanism: ViewedBoxes, rows: Rows, **noise: Any) -> list[object]:
    parts = mechanism.release(_points(mechanism, rows), **noise).parts()
    return [dict(parts.facts), *(series.tolist() for series in parts.series.values())]


def _losses(mechanism: ViewedBoxes, pairs: Pairs) -> Iterator[Fraction]:
    def run(rows: Rows, noise: Noise) -> list[object]:
        return _publish(mechanism, rows, noise=noise)

    for one, other in pairs:
        yield coupled(run, one, other, tape_noise(EndlessTape((one, other))))


@pytest.mark.parametrize(
    ("axes", "views", "most"),
    [(PAIR, (1,), 2), (PAIR, (0, 1), 2), (CUBE, (1,), 2), (WIDE, (1,), 1), (WIDE, (1, 2), 1)],
    ids=["pair", "two views", "cube", "ranks", "two plain views in ranks"],
)
def test_one_row_costs_epsilon(axes: Sequence[Axis], views: tuple[int, ...], most: int) -> None:
    """For all pairs of small data sets that differ by a row, what differs costs epsilon or a little less.

    A row that lies in no box of an audit does not change it, and costs that much less.
    """
    losses = set(_losses(_mechanism(axes, views=views), _added(axes, most)))

    assert max(losses) == EPSILON
    assert min(losses) >= EPSILON * Fraction(97, 100)


def test_a_view_loses_exactly_its_share_by_law() -> None:
    """The enumerated law of a view of two positions and a special one loses one over its scale."""
    line, scale = Axis(size=2, after=1, labels=True), Fraction(3)
    noise = RationalNoise(HALF, unit=1 / scale, window=range(3))

    def found(counts: tuple[int, ...]) -> Any:
        points = Points.from_rows([[0], [1], [2]], axes=[line], counts=counts)
        return law(lambda noise: tuple(count_plainly(points, 0, scale, noise).noisy.tolist()), noise)

    losses = [privacy_loss(found(a), found(b), base=HALF, unit=noise.unit) for a, b in add_remove_pairs(3, 1)]

    assert max(losses) == 1 / scale


@pytest.mark.parametrize("axes", [PAIR, CUBE, WIDE], ids=["pair", "cube", "ranks"])
def test_replayed_releases_lose_at_most_epsilon(axes: Sequence[Axis]) -> None:
    """Outcomes that are turned to be as telling as they can be lose no more, and nearly that much."""
    mechanism = _mechanism(axes, epsilon=1)
    rows: Rows = ((0, 0, 0)[: len(axes)], (1, 1, 1)[: len(axes)])

    losses = [
        float(replay(lambda data: _publish(mechanism, data), rows, (*rows, row))) for row in _cells(axes)[:6]
    ]

    assert max(losses) <= 1 + 1e-12
    assert max(losses) > 0.9


def test_a_changed_row_costs_at_most_epsilon() -> None:
    """Under change-one a row that moves costs epsilon if it moves along all axes, and less if not."""
    mechanism = _mechanism(neighbors="change-one")
    pairs: Pairs = [((one,), (other,)) for one, other in product(_cells(PAIR), repeat=2) if one < other]

    losses = set(_losses(mechanism, pairs))

    assert Fraction(9, 10) * EPSILON < max(losses) <= EPSILON
    assert min(losses) < EPSILON


def test_a_person_with_two_rows_costs_at_most_epsilon() -> None:
    """With contributions=2 both rows of a person together cost at most epsilon, wherever they are."""
    pairs: Pairs = [((), rows) for rows in combinations_with_replacement(_cells(PAIR), 2)]

    assert max(_losses(_mechanism(contributions=2), pairs)) == EPSILON


@pytest.mark.parametrize("labels", [(True,), (True, True), (True, False), (True, True, True, False)], ids=len)
@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(7, 10), Fraction(10**12 + 1, 10**12)], ids=str)
def test_shares_add_up_to_epsilon(labels: tuple[bool, ...], epsilon: Fraction) -> None:
    """Total, views, boxes and audits share epsilon without a rest, whatever the total chooses."""
    axes = [Axis(size=30, labels=each) for each in labels] + [Axis(size=40)]
    mechanism = ViewedBoxes(axes=axes, epsilon=epsilon)
    total = Fraction(1, 100) * epsilon if mechanism.asks_for_total else Fraction(0)

    for rows in (0, 10**3, 10**5, 10**8):
        plan = mechanism.plan(rows)

        views = len(plan.views) * plan.view_epsilon
        assert total + views + plan.boxes.epsilon + plan.audits * plan.audit_epsilon == epsilon


# Planted bugs: each is one way to get viewed boxes wrong, put into the shipped code.


def _half_the_scale_of_a_view(patch: pytest.MonkeyPatch) -> None:
    right = module.count_plainly
    patch.setattr(
        module, "count_plainly", lambda points, axis, scale, noise: right(points, axis, scale / 2, noise)
    )


def _one_noise_for_all_positions(patch: pytest.MonkeyPatch) -> None:
    right = module.count_plainly

    def wrong(points: Points, axis: int, scale: Fraction, noise: Noise) -> Any:
        view, counts = right(points, axis, scale, noise), points.alone(axis).spread().ravel()
        return replace(view, noisy=counts + (view.noisy - counts)[0])

    patch.setattr(module, "count_plainly", wrong)


def _share_forgotten(patch: pytest.MonkeyPatch) -> None:
    right = ViewedBoxes._plan

    def wrong(mechanism: ViewedBoxes, structure: Any) -> ViewsPlan:
        plan = right(mechanism, structure)
        return plan._replace(boxes=replace(plan.boxes, epsilon=mechanism.epsilon))

    patch.setattr(ViewedBoxes, "_plan", wrong)


def _true_total_in_the_public_rule(patch: pytest.MonkeyPatch) -> None:
    right, rows = ViewedBoxes._plan, [0]

    def fitting(mechanism: ViewedBoxes, points: Any) -> Any:
        rows[0] = points.total
        return base.check_points_fit(points, mechanism.axes, mechanism.contributions)

    def wrong(mechanism: ViewedBoxes, structure: Any) -> ViewsPlan:
        plan = right(mechanism, structure)
        return plan._replace(views=plan.views if rows[0] > 1 else ())

    patch.setattr(ViewedBoxes, "fitting", fitting)
    patch.setattr(ViewedBoxes, "_plan", wrong)


def _special_cells_left_out(patch: pytest.MonkeyPatch) -> None:
    right = module.count_plainly

    def wrong(points: Points, axis: int, scale: Fraction, noise: Noise) -> Any:
        view, line = right(points, axis, scale, noise), points.axes[axis]
        noisy = view.noisy.copy()
        noisy[line.before + line.size :] = points.alone(axis).spread().ravel()[line.before + line.size :]
        return replace(view, noisy=noisy)

    patch.setattr(module, "count_plainly", wrong)


def _total_without_noise(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ViewedBoxes, "_count", lambda mechanism, points, session: points.total)


def _plain_views_in_ranks_at_the_price_of_none(patch: pytest.MonkeyPatch) -> None:
    boxes: Any = import_module("partita.trusted.mechanisms.boxes")
    right = boxes.count_plainly
    patch.setattr(
        boxes, "count_plainly", lambda points, axis, scale, noise: right(points, axis, scale / 9, noise)
    )


def _audit_without_noise(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ViewedBoxes, "_audit_scale", lambda *_: Fraction(1, 10**4))


def _sum_of_pairs_at_the_price_of_one(patch: pytest.MonkeyPatch) -> None:
    right = ViewedBoxes._audit_scale
    patch.setattr(ViewedBoxes, "_audit_scale", lambda self, pairs, epsilon: right(self, 1, epsilon))


def _misfit_of_squares(patch: pytest.MonkeyPatch) -> None:
    def wrong(counts: Any, guess: Any) -> int:
        return int(((counts - np.rint(guess).astype(np.int64)) ** 2).sum()) * 3

    patch.setattr(module, "measure_misfit", wrong)


def _true_total_in_the_guess(patch: pytest.MonkeyPatch) -> None:
    right = module.measure_misfit

    def wrong(counts: Any, guess: Any) -> int:
        return int(right(counts, guess + float(counts.sum())))

    patch.setattr(module, "measure_misfit", wrong)


def _a_row_in_two_pieces(patch: pytest.MonkeyPatch) -> None:
    right = AuditGrid.count

    def wrong(grid: AuditGrid, places: Any, counts: Any) -> Any:
        return right(grid, places, counts) * (2 if len(grid.axes) == 1 else 1)

    patch.setattr(AuditGrid, "count", wrong)


BUGS: list[tuple[Bug, Sequence[Axis]]] = [
    (_half_the_scale_of_a_view, PAIR),
    (_one_noise_for_all_positions, PAIR),
    (_share_forgotten, PAIR),
    (_true_total_in_the_public_rule, PAIR),
    (_special_cells_left_out, PAIR),
    (_total_without_noise, CUBE),
    (_plain_views_in_ranks_at_the_price_of_none, WIDE),
    (_audit_without_noise, PAIR),
    (_sum_of_pairs_at_the_price_of_one, WIDE),
    (_misfit_of_squares, PAIR),
    (_true_total_in_the_guess, PAIR),
    (_a_row_in_two_pieces, PAIR),
]


def _is_caught(mechanism: ViewedBoxes, pairs: Pairs) -> bool:
    """Whether a coupled run breaks or costs more than epsilon."""
    try:
        return any(loss > mechanism.epsilon for loss in _losses(mechanism, pairs))
    except CouplingBroken:
        return True


@pytest.mark.parametrize(("bug", "axes"), BUGS, ids=lambda each: getattr(each, "__name__", ""))
def test_planted_bugs_are_caught(bug: Bug, axes: Sequence[Axis]) -> None:
    """The coupling fails for some pair of few."""
    row = (0,) * len(axes)
    pairs: Pairs = [(less, (*less, cell)) for less in ((), (row,)) for cell in _cells(axes)]
    assert not _is_caught(_mechanism(axes), pairs[:2])
    with pytest.MonkeyPatch.context() as patch:
        bug(patch)

        assert _is_caught(_mechanism(axes), pairs)


@pytest.mark.parametrize(
    ("changes", "pairs"),
    [
        ({"neighbors": "change-one"}, [(((0, 0),), ((1, 1),))]),
        ({"contributions": 2}, [((), ((0, 0), (1, 1)))]),
    ],
    ids=["neighbors", "contributions"],
)
def test_wrong_factors_are_caught(changes: dict[str, Any], pairs: Pairs) -> None:
    """Noise for one row does not hide one that moves, or two."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base, "rows_changed", lambda neighbors, contributions: 1)
        assert _is_caught(_mechanism(**changes), pairs)
    assert not _is_caught(_mechanism(**changes), pairs)
