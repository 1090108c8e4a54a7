"""The rule for error bars, as the benchmark applies it."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.accuracy.bars import Bars
from benchmarks.accuracy.coverage import CONFIDENCES, RELEASES, kept, single, widest
from benchmarks.accuracy.score import Json


def found(covered: float, width: float) -> Json:
    """Figures of a list: every coverage this far from what is promised, every bar of this width."""
    return {
        "covered": {name: c + covered for name, c in CONFIDENCES.items()},
        "width": dict.fromkeys(CONFIDENCES, width),
    }


def test_a_list_is_kept_if_it_covers_and_is_not_too_wide() -> None:
    """Two percent less than promised is enough; width counts everywhere but in the breaking cases."""
    assert kept(found(-0.015, 1.0), "shape")
    assert not kept(found(-0.025, 0.5), "shape")
    assert not kept(found(0.0, 1.01), "huge")
    assert kept(found(0.0, 9.0), "breaking")
    assert not kept(found(-0.025, 0.5), "breaking")


def test_the_widest_bar_is_a_multiple_of_the_error_or_the_floor() -> None:
    """2.5 times the root mean square error times the quantile, or 12 / epsilon."""
    bars = Bars(values=np.array([3.0, -4.0]), errors=np.ones(2), truth=np.zeros(2))

    assert widest(bars, 0.95, 100.0) == pytest.approx(2.5 * np.sqrt(12.5) * 1.959964)
    assert widest(bars, 0.95, 0.1) == 120


def test_every_release_is_asked_another_question() -> None:
    """The questions that are asked alone are spread over the list; a short list is asked all over again."""
    assert [single(500, i).tolist() for i in range(RELEASES)] == [[place] for place in range(0, 500, 25)]
    assert {int(single(2, i)[0]) for i in range(3 * RELEASES)} == {0, 1}


def test_a_band_fails_if_any_question_misses_by_more() -> None:
    """The widest miss of all questions is compared with the reach."""
    bars = Bars(values=np.array([3.0, -4.0]), errors=np.ones(2), truth=np.zeros(2))

    assert bars.beyond(3.9)
    assert not bars.beyond(4.0)
