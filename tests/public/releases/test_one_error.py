"""A range or box has one standard error, whether it is asked for alone or among many."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import partita as pt
from partita.domain import Integer
from partita.domain.axis import Axis
from partita.public.axis import tent_solver
from partita.public.axis.base import Term
from partita.public.boxes import cover
from partita.public.boxes.base import BoxTerm
from partita.public.release import Release
from partita.testing import EndlessTape, tape_noise
from partita.trusted.mechanisms.catalogue import axis_mechanisms, box_mechanisms
from partita.trusted.secret import Histogram, Points

SIZES = {"laplace": 120}
AXES = (Axis(size=40, before=1, after=2), Axis(size=3, labels=True), Axis(size=2**12))
SMALL = (Axis(size=9, before=1, after=2), Axis(size=3, labels=True), Axis(size=20))
RANGES = 80
MODELS = ("intervals", "partition-tents", "spending-tree", "tents")


def words(seed: object, *shape: int) -> Any:
    return EndlessTape(seed).take(int(np.prod(shape))).reshape(shape)


@cache
def axis_release(name: str, size: int, rows: int, epsilon: int) -> Any:
    """A release of rows of which many are in a few cells and the others anywhere."""
    word = words("rows", rows, 3)
    cells = np.where(word[:, 0] % 3 == 0, word[:, 1] % np.uint64(7), word[:, 2] % np.uint64(size))
    noise = tape_noise(EndlessTape((name, size)))
    expected: dict[str, Any] = {"total": rows} if name == "spending-tree" else {}
    mechanism = axis_mechanisms()[name](size=size, epsilon=epsilon, **expected)
    return mechanism.release(Histogram.from_cells(cells, size=size), noise=noise)


def some_ranges(size: int) -> tuple[Any, Any]:
    """Ranges with ends anywhere; all cells, single ones, and ranges that begin or end with the axis."""
    ends = words("ranges", 2, RANGES) % np.uint64(size)
    lows, highs = ends.min(axis=0), ends.max(axis=0)
    lows[0], highs[0] = 0, size - 1
    lows[1:9] = highs[1:9]
    lows[9:12], highs[12:15] = 0, size - 1
    lows[15:30] = highs[15:30] - np.minimum(highs[15:30], np.uint64(5))
    return lows, highs


CASES = [
    *((name, SIZES.get(name, 700), 3000) for name in sorted(axis_mechanisms())),
    *((name, 2**32, 4000) for name in ("intervals", "spending-tree", "partition-tents", "intervals-paper")),
    ("tents", 7, 100),
    ("tents", 15_000, 30_000),
    ("partition-tents", 50, 200_000),
    ("spending-tree", 2**63, 200),
]


@pytest.mark.parametrize(("name", "size", "rows"), CASES)
@pytest.mark.parametrize("epsilon", [1])
def test_of_ranges(name: str, size: int, rows: int, epsilon: int) -> None:
    """`count` and `counts` agree on every kind of range, to the last digit but for sums over levels."""
    release = axis_release(name, size, rows, epsilon)
    lows, highs = some_ranges(size)
    ranges = zip(lows.tolist(), highs.tolist(), strict=True)

    alone = [release.answer(Term(low, high)).error for low, high in ranges]

    close = 1e-12 if name in ("intervals-paper", "tree") else 0.0
    assert release.errors(lows, highs).tolist() == pytest.approx(alone, rel=close, abs=0.0)


@pytest.mark.parametrize(("name", "size", "rows"), [case for case in CASES if case[0] in MODELS])
def test_of_one_linear_question(name: str, size: int, rows: int) -> None:
    """A range has the error of the general linear question that it is: added twice, taken away once."""
    release = axis_release(name, size, rows, 1)
    for low, high in zip(*(ends[:20].tolist() for ends in some_ranges(size)), strict=True):
        once = release.answer(Term(low, high))
        again = release.answer(Term(low, high), Term(low, high), Term(low, high, -1))
        assert once.error == pytest.approx(again.error, rel=1e-11 if name == "spending-tree" else 1e-6)


def test_of_ranges_of_many_tents(monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many tents for a table have some rows of it at a time, and the same errors."""
    lows, highs = some_ranges(700)
    expected = axis_release("tents", 700, 3000, 1).errors(lows, highs)
    axis_release.cache_clear()
    monkeypatch.setattr(tent_solver, "_MOST_TENTS", 1)
    monkeypatch.setattr(tent_solver, "_ROWS", 4)

    found = axis_release("tents", 700, 3000, 1).errors(lows, highs)

    assert found.tolist() == pytest.approx(expected.tolist(), rel=1e-10)


@cache
def box_release(name: str) -> Any:
    axes = SMALL if name == "grid" else AXES
    word = words("places", 3000, 3)
    first = (word[:, 0] % np.uint64(axes[0].width) + word[:, 1] % np.uint64(axes[0].width)) // np.uint64(2)
    places = np.stack([first, first % np.uint64(3), word[:, 2] % np.uint64(axes[2].width)], axis=1)
    mechanism = box_mechanisms()[name](axes=axes, epsilon=1)
    return mechanism.release(Points.from_rows(places, axes=axes), noise=tape_noise(EndlessTape(name)))


def some_boxes(axes: tuple[Axis, ...], count: int = 60) -> tuple[Any, Any]:
    """Boxes with ends anywhere, that of everything, single cells, and boxes that bound one axis or two."""
    last = np.array([axis.width - 1 for axis in axes], np.uint64)
    ends = words("boxes", 2, count, len(axes)) % (last + np.uint64(1))
    lows, highs = ends.min(axis=0), ends.max(axis=0)
    lows[0], highs[0] = 0, last
    lows[1:6] = highs[1:6]
    for axis in range(3):
        others = [other for other in range(3) if other != axis]
        some = slice(6 + 6 * axis, 9 + 6 * axis)
        lows[some, others], highs[some, others] = 0, last[others]
        some = slice(9 + 6 * axis, 12 + 6 * axis)
        lows[some, axis], highs[some, axis] = 0, last[axis]
    return lows, highs


@pytest.mark.parametrize("name", sorted(box_mechanisms()))
def test_of_boxes(name: str) -> None:
    """`count` and `counts` agree to the last digit on every box, or nearly so (the paper, a model)."""
    release = box_release(name)
    lows, highs = some_boxes(release.axes)

    alone = [
        release.answer(BoxTerm(tuple(low), tuple(high))).error
        for low, high in zip(lows.tolist(), highs.tolist(), strict=True)
    ]

    close = 1e-12 if name in ("graph", "rectangles-paper") else 0.0
    assert release.errors(lows, highs).tolist() == pytest.approx(alone, rel=close, abs=0.0)


@pytest.mark.parametrize("much", [1, cover._MUCH_WORK])
@pytest.mark.parametrize("name", sorted(box_mechanisms()))
def test_of_sums_of_boxes(name: str, much: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Boxes that do not overlap have, together, the error of one question, also where both cut a leaf.

    Compiled code finds the same.
    """
    monkeypatch.setattr(cover, "_MUCH_WORK", much)
    release = box_release(name)
    lows, highs = (ends[6:] for ends in some_boxes(release.axes))
    cut = (lows[:, 2] + highs[:, 2]) // np.uint64(2)
    kept = (lows[:, 2] < cut) & (cut < highs[:, 2])
    corners = np.stack([lows, lows], axis=1)[kept], np.stack([highs, highs], axis=1)[kept]
    corners[1][:, 0, 2], corners[0][:, 1, 2] = cut[kept] - np.uint64(1), cut[kept] + np.uint64(1)

    alone = [
        release.answer(*map(BoxTerm, map(tuple, first), map(tuple, last))).error
        for first, last in zip(*(ends.tolist() for ends in corners), strict=True)
    ]

    found = release.errors(*(ends.reshape(-1, 3) for ends in corners), parts=2)
    assert len(alone) > 20
    assert found.tolist() == pytest.approx(alone, rel=1e-12)


@cache
def release() -> Release:
    """Views of one column and of several, brought to one total."""
    word = words("people", 4, 3000)
    data = {
        "age": (word[0] % np.uint64(130)).tolist(),
        "town": [("Rome", "Bari", "Turin", "Nuoro")[int(each)] for each in word[1] % np.uint64(4)],
        "salary": (word[2] % np.uint64(100_000)).tolist(),
    }
    schema: dict[str, pt.Domain] = {
        "age": Integer(0, 120),
        "town": pt.Category(["Rome", "Bari", "Turin", "Nuoro"]),
        "salary": Integer(0, 99_999),
    }
    views = [("age",), ("salary",), ("town",), ("age", "town", "salary")]
    return pt.publish(data, schema, epsilon=2, views=views)


QUESTIONS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"age": (30, 39)}, {"age": ([30], [39])}),
    ({"age": (None, 39)}, {"age": ([None], [39])}),
    ({"age": (65, None)}, {"age": ([65], [None])}),
    ({"age": (None, None)}, {"age": ([None], [None])}),
    ({"age": (0, 120)}, {"age": ([0], [120])}),
    ({"age": (200, 300)}, {"age": ([200], [300])}),
    ({"age": 42}, {"age": [42]}),
    ({"salary": (20_000, 29_999)}, {"salary": ([20_000], [29_999])}),
    ({"salary": 7}, {"salary": [7]}),
    ({"age": (30, 39), "town": "Rome"}, {"age": ([30], [39]), "town": {"Rome"}}),
    ({"age": (30, 39), "town": {"Rome", "Turin"}}, {"age": ([30], [39]), "town": {"Rome", "Turin"}}),
    ({"age": (None, 39), "salary": (5, 50_000)}, {"age": ([None], [39]), "salary": (5, 50_000)}),
    (
        {"age": {30, 31, 37, 60}, "salary": (10, 800)},
        {"age": {30, 31, 37, 60}, "salary": ([10], [800])},
    ),
    (
        {"age": {30, 37}, "town": {"Rome", "Turin"}, "salary": (None, 800)},
        {"age": {30, 37}, "town": {"Rome", "Turin"}, "salary": ([None], [800])},
    ),
]


@pytest.mark.parametrize(("one", "many"), QUESTIONS)
def test_of_columns(one: dict[str, Any], many: dict[str, Any]) -> None:
    """Questions about columns have one error, with open ends, clipped ones, sets of values and none."""
    error = release().count(one).error
    assert release().counts(many).error.item() == pytest.approx(error, rel=1e-12)
    if not any(isinstance(value, set) for value in one.values()):
        assert release().counts(many).error.item() == error
    assert release().counts(many).values.item() == pytest.approx(release().count(one).value, rel=1e-9)


@pytest.mark.parametrize("where", [{}, {"town": {"Rome", "Turin"}}, {"town": "Bari"}])
def test_of_bins_and_distributions(where: dict[str, Any]) -> None:
    """A bin, and a value of a cdf, has the error of the count of the same values."""
    found = release()
    bins, upto = found.histogram("age", 7, where=where), found.cdf("age", [17, 64], where=where)
    pairs = zip(bins.lows, bins.highs, bins.counts.error.tolist(), strict=True)

    for low, high, error in pairs:
        assert error == pytest.approx(found.count(where | {"age": (low, high)}).error, rel=1e-12)
    for value, error in zip(upto.values, upto.counts.error.tolist(), strict=True):
        assert error == pytest.approx(found.count(where | {"age": (0, value)}).error, rel=1e-12)


def test_of_heat_maps() -> None:
    """A pair of bins, of the rows of some towns, has the error of the count of the same values."""
    where: dict[str, Any] = {"town": {"Rome", "Turin"}}
    heat = release().histogram("age", "salary", 3, where=where)

    for i in range(3):
        for j in range(3):
            asked = where | {
                column: (heat.lows[side][at], heat.highs[side][at])
                for side, (column, at) in enumerate((("age", i), ("salary", j)))
            }
            assert heat.counts.error[i, j] == pytest.approx(release().count(asked).error, rel=1e-12)
