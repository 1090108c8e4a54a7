"""The paper's boxes taken apart for a file, put together again, and refused where somebody changed them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from partita.domain.axis import Axis
from partita.errors import InvalidRelease
from partita.guarantee import Guarantee
from partita.public.axis.base import Parts
from partita.public.boxes.paper import PaperRectanglesRelease
from partita.testing import EndlessTape, tape_noise
from partita.trusted.mechanisms.paper_boxes import PaperRectangles
from partita.trusted.secret import Points

Series = dict[str, Any]
AXES = (Axis(size=1000, before=1, after=2), Axis(size=2**63))


def _release(epsilon: object = 100, threshold: object = 2) -> PaperRectanglesRelease:
    places = np.random.default_rng(1).integers(0, 1000, (3_000, 2))
    points = Points.from_rows(places * [1, 2**52], axes=AXES)
    mechanism = PaperRectangles(axes=AXES, epsilon=epsilon, threshold=threshold)
    return mechanism.release(points, noise=tape_noise(EndlessTape(0)))


RELEASE = _release()


@pytest.mark.parametrize("release", [RELEASE, _release(epsilon="1/1000000000")], ids=["usual", "much noise"])
def test_parts_make_the_same_release(release: PaperRectanglesRelease) -> None:
    """A release from its parts gives the same answers, errors, bounds and rows, to the last bit."""
    guarantee = Guarantee(epsilon=1)
    again = PaperRectanglesRelease.from_parts(release.parts(), guarantee)

    lows, highs = (
        np.array([[0, 0], [5, 2**60]], np.uint64),
        np.array([[1002, 2**63 - 1], [700, 2**62]], np.uint64),
    )
    assert again.guarantee == guarantee
    assert again.axes == AXES
    assert again.counts(lows, highs).tolist() == release.counts(lows, highs).tolist()
    assert again.errors(lows, highs).tolist() == release.errors(lows, highs).tolist()
    assert again.answer(again.everything).worst(0.05) == release.answer(release.everything).worst(0.05)
    assert again.error(0.05) == release.error(0.05)
    assert again.points(20).tolist() == release.points(20).tolist()
    assert again.parts().digest == release.parts().digest


@pytest.mark.parametrize("cuts", ["private", "cells"])
def test_variants_make_the_same_release(cuts: Any) -> None:
    """Trees that are not pruned, or over cells, come back with what they cost."""
    axes = (Axis(size=20, before=1), Axis(size=9))
    points = Points.from_rows(np.random.default_rng(1).integers(0, 9, (500, 2)), axes=axes)
    mechanism = PaperRectangles(axes=axes, epsilon=3, pruned=False, cuts=cuts)
    release = mechanism.release(points, noise=tape_noise(EndlessTape(1)))

    again = PaperRectanglesRelease.from_parts(release.parts(), None)

    assert again.parts().digest == release.parts().digest
    assert again.error(0.1) == release.error(0.1)
    assert again.spent == release.spent == 3


@pytest.mark.parametrize(
    "facts",
    [{"cuts": "cells", "pruned": True}, {"cuts": "none", "pruned": True}, {"cuts": "private"}, {"floor": 0}],
)
def test_variants_that_a_release_is_not_are_refused(facts: dict[str, Any]) -> None:
    """Cells that are segments of several, unknown cuts, half of a variant, and a floor of nothing."""
    parts = RELEASE.parts()

    with pytest.raises(InvalidRelease):
        PaperRectanglesRelease.from_parts(Parts({**parts.facts, **facts}, parts.series), None)


def test_parts_hold_no_floats() -> None:
    """Facts are whole numbers, text and lists of these; series hold integers."""
    for release in (RELEASE, _release(epsilon="1/1000000000")):
        parts = release.parts()
        assert {type(fact) for fact in parts.facts.values()} <= {int, str, list}
        assert {series.dtype.name for series in parts.series.values()} <= {"int64", "uint64", "object"}


def _changed(name: str, at: int, value: int) -> Callable[[Series], None]:
    def change(series: Series) -> None:
        series[name] = series[name].copy()
        series[name][at] = value

    return change


def _with(name: str, values: Any) -> Callable[[Series], None]:
    return lambda series: series.__setitem__(name, values)


def _shortened(name: str) -> Callable[[Series], None]:
    return lambda series: series.__setitem__(name, series[name][:-1])


HOSTILE: list[tuple[str, Callable[[Series], None]]] = [
    ("an axis that ends early", _shortened("edges0")),
    ("edges that fall", _changed("edges0", 5, 0)),
    ("edges beyond the axis", _changed("edges1", -1, 2**64 - 1)),
    ("edges that are signed", _with("edges0", np.array([0, 1000, 1001, 1002]))),
    ("no edges", _with("edges0", np.zeros(0, np.uint64))),
    ("a special cell in a segment with others", _with("edges0", np.array([1000, 1001, 1002], np.uint64))),
    ("special cells behind that are joined", _with("edges0", np.array([0, 1000, 1002], np.uint64))),
    ("an owner of the first tree", _changed("owners0", 0, 1)),
    ("an owner that is not there", _changed("owners1", -1, 10**9)),
    ("an owner below none", _changed("owners1", 0, -1)),
    ("an owner that wraps around", _changed("owners1", 0, -(2**63))),
    ("owners out of order", _changed("owners1", 0, 5)),
    ("an owner too few", _shortened("owners1")),
    ("node 0", _changed("nodes0", 0, 0)),
    ("a negative node", _changed("nodes0", 0, -1)),
    ("a node of no segment", _changed("nodes0", -1, 2**40)),
    ("a node twice", _changed("nodes0", 1, 1)),
    ("a node without its parent", _with("nodes0", np.arange(1, 1 + RELEASE.trees.stages[0].nodes.size) + 1)),
    ("a node too few", _shortened("nodes1")),
    ("nodes that are floats", _with("nodes0", np.ones(RELEASE.trees.stages[0].nodes.size))),
    ("nodes that are a table", _with("nodes0", np.ones((2, 2), np.int64))),
    ("a count too few", _shortened("noisy1")),
    ("a count of nothing", _changed("noisy1", 0, 0)),
    ("a negative count", _changed("noisy0", 0, -5)),
    ("counts that are text", _with("noisy0", np.array(["1"] * RELEASE.trees.stages[0].nodes.size, object))),
    ("a count of 200 bits", _with("noisy0", np.array([2**200] * RELEASE.trees.stages[0].nodes.size, object))),
    ("a series too many", _with("more", np.zeros(1, np.int64))),
    ("a series too few", lambda series: series.__delitem__("noisy1")),
]


@pytest.mark.parametrize("change", [change for _, change in HOSTILE], ids=[name for name, _ in HOSTILE])
def test_hostile_series_are_refused(change: Callable[[Series], None]) -> None:
    """Whatever breaks the cuts or the tree of trees is an `InvalidRelease`."""
    parts = RELEASE.parts()
    series = dict(parts.series)
    change(series)

    with pytest.raises(InvalidRelease):
        PaperRectanglesRelease.from_parts(Parts(parts.facts, series), None)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("scale", "0"),
        ("scale", "-1"),
        ("scale", 1.5),
        ("scale", "nan"),
        ("scale", "1e300"),
        ("floor", 0),
        ("floor", -3),
        ("floor", "7"),
        ("floor", True),
        ("floor", 2**200),
        ("axes", []),
        ("axes", [[1000, 1, 2, False]]),
        ("axes", [[1000, 1, 2, False], [2**64, 0, 0, False]]),
        ("axes", [[999, 1, 2, False], [2**63, 0, 0, False]]),
        ("axes", [[1000, 1, 2, False]] * 9),
        ("axes", "two"),
    ],
)
def test_hostile_facts_are_refused(name: str, value: Any) -> None:
    """Facts of the wrong type, range or number are an `InvalidRelease`."""
    parts = RELEASE.parts()

    with pytest.raises(InvalidRelease):
        PaperRectanglesRelease.from_parts(Parts({**parts.facts, name: value}, parts.series), None)


def test_a_release_with_nothing_kept_can_be_stored() -> None:
    """If even the root was pruned there are no nodes, and everything counts nothing."""
    release = PaperRectangles(axes=AXES, epsilon="1/100", threshold="paper").release(
        Points.from_rows([], axes=AXES), noise=tape_noise(EndlessTape(3))
    )

    again = PaperRectanglesRelease.from_parts(release.parts(), None)

    assert again.trees.kept == 0
    assert float(again.answer(again.everything)) == 0.0
    assert again.points(10).shape == (10, 2)
