"""Rank boxes taken apart for a file, put together again, and refused where somebody changed them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from partita.domain.axis import Axis
from partita.errors import InvalidRelease, PartitaError
from partita.guarantee import Guarantee
from partita.public.axis.base import Parts
from partita.public.boxes.rank_boxes import RankBoxesRelease
from partita.testing import EndlessTape, tape_noise
from partita.trusted.mechanisms.boxes import RankBoxes
from partita.trusted.secret import Points

Series = dict[str, Any]

AXES = (Axis(size=100, before=1, after=2), Axis(size=3, labels=True), Axis(size=2**40))
QUESTIONS = (
    np.array([[0, 0, 0], [5, 1, 0], [7, 0, 2**20], [3, 2, 5]], np.uint64),
    np.array([[102, 2, 2**40 - 1], [50, 1, 2**39], [9, 2, 2**33], [3, 2, 5]], np.uint64),
)


@cache
def _release(epsilon: str = "1", rows: int = 4000) -> RankBoxesRelease:
    word = EndlessTape("rows").take(3 * rows).reshape(-1, 3)
    age = (word[:, 0] % 103 + word[:, 1] % 103) // 2
    places = np.stack([age, (age > 50) + word[:, 1] % 2, age * 2**30 + word[:, 2] % 2**32], axis=1)
    points = Points.from_rows(places, axes=AXES)
    return RankBoxes(axes=AXES, epsilon=epsilon).release(points, noise=tape_noise(EndlessTape(epsilon)))


@pytest.mark.parametrize(("epsilon", "rows"), [("1", 4000), ("1/10", 4000), ("1", 0), ("1/1000000000", 50)])
def test_a_release_survives_being_taken_apart(epsilon: str, rows: int) -> None:
    """Put together again it has the same parts and gives the same answers."""
    release, guarantee = _release(epsilon, rows), Guarantee(epsilon=epsilon)

    again = RankBoxesRelease.from_parts(release.parts(), guarantee)

    assert again.guarantee == guarantee
    assert again.axes == AXES
    assert again.parts().digest == release.parts().digest
    assert again.counts(*QUESTIONS).tolist() == release.counts(*QUESTIONS).tolist()
    assert again.errors(*QUESTIONS).tolist() == release.errors(*QUESTIONS).tolist()


def test_parts_are_flat_and_exact() -> None:
    """Series are rows of integers with plain names, and facts hold no floats."""
    parts = _release().parts()

    assert all(series.ndim == 1 and series.dtype.kind in "iu" for series in parts.series.values())
    assert all(name.replace("_", "").isalnum() and name.islower() for name in parts.series)
    assert "float" not in {type(fact).__name__ for fact in parts.facts.values()}


def _with(name: str, values: Any) -> Callable[[Series], None]:
    return lambda series: series.__setitem__(name, values)


def _changed(name: str, at: int, value: int) -> Callable[[Series], None]:
    def change(series: Series) -> None:
        series[name] = series[name].copy()
        series[name][at] = value

    return change


def _cut_off(name: str) -> Callable[[Series], None]:
    return lambda series: series.__setitem__(name, series[name][1:])


HOSTILE: list[tuple[str, Callable[[Series], None]]] = [
    ("a score too few", _cut_off("scores")),
    ("scores that are floats", _with("scores", np.zeros(3))),
    ("an edge too few", _cut_off("edges")),
    ("edges that decrease", _changed("edges", 5, 2**50)),
    ("edges that begin late", _changed("edges", 0, 1)),
    ("edges that end early", _changed("edges", -1, 2**40 - 1)),
    ("edges that are signed", _with("edges", np.zeros(9, np.int64))),
    ("a schedule of half a level", _cut_off("schedule")),
    ("a schedule that goes on", _with("schedule", np.ones(3000, np.int64))),
    ("a negative schedule", _changed("schedule", 0, -1)),
    ("a node that is half expanded", _changed("expanded", 1, 2)),
    ("a root that is a leaf", _changed("expanded", 0, 0)),
    ("no levels", _with("levels", np.zeros(0, np.int64))),
    ("levels that wrap around", _with("levels", np.full(4, 2**62))),
    ("a look at the root", _changed("nodes", 0, 0)),
    ("a look at nobody", _changed("nodes", 0, 10**9)),
    ("a look for free", _changed("units", 0, 0)),
    ("a path that costs too much", _changed("units", -1, 2**20)),
    ("a look too few", _cut_off("noisy")),
    ("a view without looks", _with("axis0_nodes", np.zeros(0, np.int64))),
    ("a view that costs too much", _changed("axis1_units", -1, 2**20)),
    ("a view whose leaves are cut", _changed("axis2_expanded", -1, 1)),
    ("a view of other levels", _changed("axis2_levels", 0, 2)),
    ("a view too many", _with("axis3_nodes", np.zeros(1, np.int64))),
    ("a view too few", lambda series: series.pop("axis0_nodes")),
]


@pytest.mark.parametrize("change", [change for _, change in HOSTILE], ids=[name for name, _ in HOSTILE])
def test_hostile_series_are_refused(change: Callable[[Series], None]) -> None:
    """Whatever breaks the views, the slots, the tree or its looks is an `InvalidRelease`."""
    parts = _release().parts()
    series = dict(parts.series)
    change(series)

    with pytest.raises(InvalidRelease):
        RankBoxesRelease.from_parts(Parts(parts.facts, series), None)


def _facts_of_a_view(**changes: Any) -> list[Any]:
    views: Any = _release().parts().facts["views"]
    return [{**views[0], **changes}, *views[1:]]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rows", -1),
        ("rows", 2**62),
        ("rows", "4000"),
        ("scores_scale", "0"),
        ("scores_scale", 1.5),
        ("scale", "nan"),
        ("bits", [11, 2]),
        ("bits", [11, 2, 99]),
        ("bits", [True, 2, 11]),
        ("bits", "11"),
        ("bits", [10**9, 10**9, 10**9]),
        ("views", []),
        ("views", None),
        ("views", [1, 2, 3]),
        ("views", _facts_of_a_view(scale="0")),
        ("views", _facts_of_a_view(axes=[[100, 1, 1, False]])),
        ("views", _facts_of_a_view(axes=[[100, 1, 2, False], [1, 0, 0, False]])),
        ("views", _facts_of_a_view()[:2]),
        ("more", 1),
    ],
    ids=str,
)
def test_hostile_facts_are_refused(name: str, value: Any) -> None:
    """A fact of another type, out of its range, or too many is an `InvalidRelease`."""
    parts = _release().parts()

    with pytest.raises(InvalidRelease):
        RankBoxesRelease.from_parts(Parts({**parts.facts, name: value}, parts.series), None)


def test_missing_parts_are_refused() -> None:
    """A release has all the parts of its kind."""
    parts = _release().parts()
    for where in ("facts", "series"):
        for name in getattr(parts, where):
            fewer = {key: part for key, part in getattr(parts, where).items() if key != name}
            with pytest.raises(InvalidRelease):
                RankBoxesRelease.from_parts(parts._replace(**{where: fewer}), None)


def test_changed_numbers_never_raise_anything_else() -> None:
    """Of releases with numbers changed at random those that are believed can be asked."""
    parts, words = _release("1/10").parts(), EndlessTape("numbers").take(600).reshape(-1, 4)
    believed = 0
    for which, at, high, low in words.tolist():
        name = sorted(parts.series)[which % len(parts.series)]
        values = parts.series[name].copy()
        values[at % values.size] = (high >> 1 + high % 63) if low % 2 else values[low % values.size]
        try:
            again = RankBoxesRelease.from_parts(Parts(parts.facts, {**parts.series, name: values}), None)
        except PartitaError:
            continue
        answers = [*again.counts(*QUESTIONS), *again.errors(*QUESTIONS), again.error(0.05)]
        believed += int(np.isfinite(answers).all())

    assert believed > 10
