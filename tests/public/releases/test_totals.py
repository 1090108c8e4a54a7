"""Views of the same rows are brought to one total, and everything that follows from them stays true."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.answer import Answer
from partita.domain import Category, Integer
from partita.domain.base import INVALID, NULL, OTHER
from partita.public.boxes.regions import HalfSpace
from partita.public.release import Release

Publish = Callable[..., Release]

DIGIT, TOWN = Integer(0, 5), Category(["Rome", "Bari", "Pisa"])
DIGITS = st.lists(st.integers(-2, 7) | st.none(), min_size=1, max_size=30)
TOWNS = st.sampled_from(["Rome", "Bari", "Pisa", "Oslo", None])


def _views(
    together: Publish,
    *,
    alone: Sequence[object],
    paired: Sequence[tuple[object, object]],
    reach: float = 5.0,
) -> Release:
    """A view of the digit by itself, and one of digit and town, which counted other numbers of rows."""
    one = together(reach, digit=(DIGIT, alone))
    two = together(
        reach, digit=(DIGIT, [digit for digit, _ in paired]), town=(TOWN, [town for _, town in paired])
    )
    promise = replace(one.views[0].guarantee, epsilon=1)  # type: ignore[type-var]
    return Release(views=one.views + two.views, guarantee=promise, provenance=one.provenance)


@given(DIGITS, st.lists(st.tuples(st.integers(-2, 7) | st.none(), TOWNS), min_size=1, max_size=30))
def test_every_view_has_the_total_that_all_share(
    together: Publish, alone: list[object], paired: list[tuple[object, object]]
) -> None:
    """The parts of each view add up to the count of all rows, unless that took more than doubling them."""
    release = _views(together, alone=alone, paired=paired)
    total = release.count().value

    from_one = release.count(digit=(None, None)).value + sum(
        release.count(digit=special).value for special in (NULL, INVALID)
    )
    towns: list[object] = [*TOWN.labels, OTHER, NULL]
    from_two = sum(release.count(town=town).value for town in towns)

    for whole, own in ((from_one, len(alone)), (from_two, len(paired))):
        assert whole == pytest.approx(min(total, 2 * own))
    least, most = sorted([len(alone), len(paired)])
    assert total == pytest.approx(min(max(total, least), most))


def test_one_view_stays_as_it_is(together: Publish) -> None:
    """There is nothing to agree with: values are those of the view."""
    release = together(digit=(DIGIT, [1, 2, None]), town=(TOWN, ["Rome"] * 3))

    assert release.count(digit=(0, 5)).value == 2.0
    assert release.slice("digit").axis.counts(np.array([0], np.uint64), np.array([5], np.uint64)) == [2.0]


def test_a_view_that_counted_nobody_stays_as_it_is(together: Publish) -> None:
    """No factor makes somebody out of nobody."""
    release = _views(together, alone=[], paired=[(1, "Rome")] * 4)

    assert release.count(digit=(0, 5)).value == 0.0
    assert 0 < release.count(town="Rome").value < 4


@given(DIGITS, st.lists(st.tuples(st.integers(0, 5), TOWNS), min_size=1, max_size=30), st.integers(0, 5))
def test_adjusted_answers_agree_with_each_other(
    together: Publish, alone: list[object], paired: list[tuple[object, object]], cut: int
) -> None:
    """Counts, many counts, distributions, tables, differences and regions are multiplied by one factor."""
    release = _views(together, alone=alone, paired=paired)

    for asked in ({}, {"town": ("Rome", "Bari")}):
        box: dict[str, Any] = {"digit": (0, cut), **asked}
        value = release.count(box).value
        assert release.counts(box).values.tolist() == pytest.approx([value])
        assert release.cdf("digit", [cut], asked).counts.values.tolist() == pytest.approx([value])
        bins = release.histogram("digit", 6, where=asked)
        assert bins.counts.values[: cut + 1].sum() == pytest.approx(value)
        assert release.difference(box, box).value == 0.0
    assert release.histogram("digit", "town").counts.values[: cut + 1, :2].sum() == pytest.approx(value)
    half = HalfSpace({"digit": 1}, at_most=cut + 0.5)
    assert release.count(box, region=half).value == pytest.approx(value)
    whole = release.count(digit=(0, 5)).value
    assert release.count(digit=(0, cut)).value + release.count(digit=(cut + 1, 9)).value == pytest.approx(
        whole
    )


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=12),
    st.lists(st.integers(0, 5), min_size=1, max_size=12),
)
def test_the_bound_on_all_errors_holds_for_adjusted_values(
    together: Publish, seen: list[int], truth: list[int]
) -> None:
    """If no range of a view misses the truth by more than its reach, none does after values were moved."""
    ranges = list(combinations_with_replacement(range(6), 2))
    reach = max(abs(_inside(seen, *pair) - _inside(truth, *pair)) for pair in ranges)
    release = _views(together, alone=seen, paired=[(digit, "Rome") for digit in [*seen, *truth]], reach=reach)

    bound = release.slice("digit").axis.error(0.05)

    for pair in ranges:
        assert abs(release.count(digit=pair).value - _inside(truth, *pair)) <= bound + 1e-9


def _inside(rows: list[int], low: int, high: int) -> int:
    return sum(low <= row <= high for row in rows)


def test_what_was_moved_is_in_the_bound(together: Publish) -> None:
    """The bound on all errors grows by what the factor moves; guaranteed bounds hold the value."""
    release = _views(together, alone=[1] * 10, paired=[(1, "Rome")] * 30)
    alone = release.views[0]
    factor = release.count(digit=(0, 5)).value / 10

    assert 1 < factor < 2
    reach = alone.error(0.025)
    assert release.error(0.05) >= reach + (factor - 1) * 10
    answer = release.count(digit=1)
    low, high = answer.worst(0.05)
    assert low <= answer.value <= high
    assert answer.error == alone.count({"digit": 1}).error
    slice_error = release.slice("digit").axis.error(0.05)
    assert slice_error == pytest.approx(5.0 + (factor - 1) * (10 + 2 * 5.0))
    assert release.quantile("digit", 0.5).value == 1


def test_quantiles_do_not_move(together: Publish) -> None:
    """Shares of a view are shares of what it counted: a factor changes none of them."""
    release = _views(together, alone=[0, 1, 2, 2, 3, 5], paired=[(1, "Rome")] * 9)

    assert [each.value for each in release.quantile("digit", [0.2, 0.5, 0.9])] == [1, 2, 5]
    assert release.cdf("digit", [2]).fractions.tolist() == pytest.approx([4 / 6])


def test_sums_of_answers_share_beta() -> None:
    """Bounds of several answers together take an equal share each, and errors add as of independent noise."""
    asked: list[float] = []

    def bounds(beta: float) -> tuple[float, float]:
        asked.append(beta)
        return 1.0, 3.0

    found = Answer.together([Answer(2.0, lambda: 3.0, bounds), Answer(2.0, lambda: 4.0, bounds)])

    assert (found.value, found.error, found.worst(0.1)) == (4.0, 5.0, (2.0, 6.0))
    assert asked == [0.05, 0.05]
    moved = Answer(2.0, lambda: 3.0, bounds).adjusted(2.5)
    assert (moved.value, moved.error, moved.worst(0.1)) == (5.0, 3.0, (1.0, 5.0))
