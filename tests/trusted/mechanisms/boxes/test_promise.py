"""What a box release says it cost is what its noise tells."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from partita import Guarantee
from partita.domain import Integer
from partita.domain.axis import Axis
from partita.errors import InvalidRelease
from partita.public.views import BoxView
from partita.trusted.mechanisms.boxes import GridCounts, RankBoxes, Rectangles, SpendingBoxes
from partita.trusted.mechanisms.paper_boxes import PaperRectangles
from partita.trusted.secret import Points

DOMAINS = (Integer(0, 7), Integer(0, 3))
AXES = tuple(map(Axis.of, DOMAINS))
PEOPLE = Points.from_rows([[3, 1], [4, 2], [3, 1]], axes=AXES)
MECHANISMS = (GridCounts, PaperRectangles, SpendingBoxes, RankBoxes)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("asked", [{}, {"neighbors": "change-one"}, {"contributions": 3}])
def test_the_noise_of_all_numbers_tells_epsilon(mechanism: Any, asked: dict[str, Any]) -> None:
    """Rows that neighbours may differ by, times what a row costs, is epsilon to the last digit."""
    made = mechanism(axes=AXES, epsilon="0.7", **asked)

    assert made.release(PEOPLE).spent * made.rows_changed == Fraction(7, 10)


@pytest.mark.parametrize("asked", [{}, {"neighbors": "change-one"}, {"contributions": 3}])
def test_the_total_that_chose_is_counted(asked: dict[str, Any]) -> None:
    """What chose the boxes and the boxes themselves cost epsilon together."""
    axes = (*AXES, Axis(size=2))
    made = Rectangles(axes=axes, epsilon="0.7", **asked)

    assert made.asks_for_total
    assert made.release(Points.from_rows([[3, 1, 0]], axes=axes)).spent * made.rows_changed == Fraction(7, 10)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_no_view_promises_less_than_its_noise_allows(mechanism: Any) -> None:
    """A file that claims a smaller epsilon than was spent is caught."""
    boxes = mechanism(axes=AXES, epsilon=1).release(PEOPLE)
    modest = replace(boxes, guarantee=Guarantee(epsilon="0.9"))

    assert _view(boxes).keeps_its_promise
    assert not _view(modest).keeps_its_promise


def _view(boxes: Any) -> BoxView:
    return BoxView(columns=("a", "b"), domains=DOMAINS, boxes=boxes, mechanism=boxes.kind)


def test_a_release_with_such_a_view_is_refused() -> None:
    """Loading checks every view."""
    from partita.public.report import check_views

    less = Guarantee(epsilon="0.9")
    boxes = replace(SpendingBoxes(axes=AXES, epsilon=1).release(PEOPLE), guarantee=less)

    with pytest.raises(InvalidRelease, match="views must have the noise that is promised"):
        check_views([_view(boxes)], less)
