"""A tree of boxes taken apart for a file, put together again, and refused where somebody changed it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from partita.domain.axis import Axis
from partita.errors import InvalidRelease, PartitaError
from partita.guarantee import Guarantee
from partita.public.axis.base import Parts
from partita.public.boxes.base import BoxTerm
from partita.public.boxes.spending_boxes import SpendingBoxesRelease
from partita.public.file_entries import from_canonical, to_canonical
from partita.testing import EndlessTape, tape_noise
from partita.trusted.mechanisms.boxes import SpendingBoxes
from partita.trusted.secret import Points

Series = dict[str, Any]

AXES = (Axis(size=1000, before=1, after=2), Axis(size=11, after=1, labels=True))


def _release(**changes: Any) -> SpendingBoxesRelease:
    places = [[k, k % 12] for k in range(0, 900, 3)]
    points = Points.from_rows(places, axes=AXES, counts=[40] * len(places))
    tree = SpendingBoxes(axes=AXES, **{"epsilon": 1, **changes})
    return tree.release(points, noise=tape_noise(EndlessTape("parts")))


@pytest.mark.parametrize("changes", [{}, {"total": 12_000}, {"epsilon": "1/1000000000000"}], ids=str)
def test_parts_make_the_same_release(changes: dict[str, Any]) -> None:
    """A release from its parts gives the same answers, errors and bounds, to the last bit."""
    release, guarantee = _release(**changes), Guarantee(epsilon=1)

    again = SpendingBoxesRelease.from_parts(release.parts(), guarantee)

    lows, highs = np.array([[0, 0], [5, 3], [990, 11]]), np.array([[1002, 11], [700, 3], [1002, 11]])
    box = BoxTerm((5, 0), (700, 4))
    assert (again.guarantee, again.axes, again.recipe) == (guarantee, AXES, release.recipe)
    assert again.counts(lows, highs).tolist() == release.counts(lows, highs).tolist()
    assert again.errors(lows, highs).tolist() == release.errors(lows, highs).tolist()
    assert again.answer(box).worst(0.05) == release.answer(box).worst(0.05)
    assert again.error(0.05) == release.error(0.05)
    assert again.parts().digest == release.parts().digest


def test_parts_hold_no_floats() -> None:
    """Facts are whole numbers, text and lists of these; series hold integers of 64 bits, or Python's."""
    for release in (_release(), _release(total=12_000, epsilon="1/1000000000000")):
        parts = release.parts()
        assert {type(fact) for fact in parts.facts.values()} <= {int, str, list, type(None)}
        assert {series.dtype.name for series in parts.series.values()} <= {"int64", "object"}


@pytest.mark.parametrize("total", [2**63, -(2**63), None])
def test_a_public_total_fits_in_a_file(total: int | None) -> None:
    """Facts are written as JSON with integers of 64 bits; a larger total than mechanisms take is refused."""
    parts = _release(total=total).parts()

    facts = from_canonical(to_canonical(parts.facts))

    assert SpendingBoxesRelease.from_parts(Parts(facts, parts.series), None).total == total
    if total is not None:
        with pytest.raises(InvalidRelease):
            SpendingBoxesRelease.from_parts(Parts({**facts, "total": 2 * total}, parts.series), None)


def _changed(name: str, at: int, value: int) -> Callable[[Series], None]:
    def change(series: Series) -> None:
        series[name] = series[name].copy()
        series[name][at] = value

    return change


def _with(name: str, values: Any) -> Callable[[Series], None]:
    return lambda series: series.__setitem__(name, values)


def _shorter(name: str) -> Callable[[Series], None]:
    return lambda series: series.__setitem__(name, series[name][1:])


HOSTILE: list[tuple[str, Callable[[Series], None]]] = [
    ("a root that is a leaf", _changed("expanded", 0, 0)),
    ("a last level that is cut further", _changed("expanded", -1, 1)),
    ("a leaf that has children", _changed("expanded", 25, 0)),
    ("a flag of two", _changed("expanded", 1, 2)),
    ("a flag of minus one", _changed("expanded", 1, -1)),
    ("a flag too few", _shorter("expanded")),
    ("a level too many", _with("levels", np.array([1, 60, 10**6]))),
    ("a level of nothing", _with("levels", np.array([1, 0, 60]))),
    ("levels that wrap around", _with("levels", np.array([1, 2**62, 2**62, 2**62, 2**62 + 60]))),
    ("negative levels", _with("levels", np.array([1, -60]))),
    ("no levels", _with("levels", np.zeros(0, np.int64))),
    ("very many levels", _with("levels", np.ones(10**5, np.int64))),
    ("a schedule that is cut off", _shorter("schedule")),
    ("no schedule", _with("schedule", np.zeros(0, np.int64))),
    ("a schedule with huge bits", _changed("schedule", 0, 40)),
    ("a schedule with negative bits", _changed("schedule", 0, -1)),
    ("a schedule with more bits than cells", _changed("schedule", -2, 4)),
    ("a schedule that cuts otherwise", _changed("schedule", 1, 2)),
    ("a schedule of floats", _with("schedule", np.ones(20))),
    ("a very long schedule", _with("schedule", np.zeros(2 * 10**5, np.int64))),
    ("a look at nobody", _changed("nodes", 0, 10**9)),
    ("a look at a negative node", _changed("nodes", 0, -1)),
    ("no look at the root", _changed("nodes", 0, 1)),
    ("a look for free", _changed("units", 0, 0)),
    ("a look that costs too much", _changed("units", 0, 2**20 + 1)),
    ("a look that costs less than none", _changed("units", 0, -(2**63))),
    ("a path that costs too much", _changed("units", -1, 2**20)),
    ("a look too few", _shorter("noisy")),
    ("units too few", _shorter("units")),
    ("a step too long", _changed("steps", 0, 17)),
    ("a step of nothing", _changed("steps", 0, 0)),
    ("steps that wrap around", _with("steps", np.array([2**62, 2**62, 2**62, 2**62]))),
    ("noise that is a float", _with("noisy", np.zeros(16))),
    ("noise that is text", _with("noisy", np.array(["1"] * 16, object))),
]


@pytest.mark.parametrize("change", [change for _, change in HOSTILE], ids=[name for name, _ in HOSTILE])
def test_hostile_series_are_refused(change: Callable[[Series], None]) -> None:
    """Whatever breaks the tree or its looks is an `InvalidRelease`."""
    parts = _release().parts()
    series = dict(parts.series)
    change(series)

    with pytest.raises(InvalidRelease):
        SpendingBoxesRelease.from_parts(Parts(parts.facts, series), None)


def test_a_look_at_the_root_belongs_to_an_unknown_total() -> None:
    """A file with a public total and a look at the root, or with neither, is refused."""
    looked, told = _release().parts(), _release(total=12_000).parts()
    for parts, total in ((looked, 12_000), (told, None)):
        with pytest.raises(InvalidRelease):
            SpendingBoxesRelease.from_parts(Parts({**parts.facts, "total": total}, parts.series), None)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("axes", []),
        ("axes", [[1000, 1, 2, False]]),
        ("axes", [[1000, 1, 2, False]] * 7),
        ("axes", [[2**64, 1, 2, False], [11, 0, 1, True]]),
        ("axes", [[999, 9, 2, False], [11, 0, 1, True]]),
        ("axes", [[1000, 1, 2, False], [12, 0, 1, True]]),
        ("axes", "1000 x 11"),
        ("scale", "0"),
        ("scale", 1.5),
        ("scale", "nan"),
        ("total", "12000"),
        ("total", 2**200),
        ("total", True),
        ("growth", "fast"),
        ("growth", "0"),
        ("worth", 8),
        ("worth", "-1"),
        ("depth_power", None),
        ("depth_power", "2"),
    ],
    ids=str,
)
def test_hostile_facts_are_refused(name: str, value: Any) -> None:
    """A fact of another type, or out of its range, is an `InvalidRelease`."""
    parts = _release().parts()

    with pytest.raises(InvalidRelease):
        SpendingBoxesRelease.from_parts(Parts({**parts.facts, name: value}, parts.series), None)


@pytest.mark.parametrize("where", ["facts", "series"])
def test_missing_and_foreign_parts_are_refused(where: str) -> None:
    """A release has the parts of its kind, no more and no less."""
    parts = _release().parts()
    for name in [*getattr(parts, where), "more"]:
        changed = dict(getattr(parts, where))
        changed.pop(name, None) if name in changed else changed.update({name: 1})
        with pytest.raises(InvalidRelease):
            SpendingBoxesRelease.from_parts(parts._replace(**{where: changed}), None)


def test_a_first_level_of_too_many_boxes_is_refused_before_it_is_made() -> None:
    """Six axes that are cut into 24 pieces at once would be 2^27 boxes; a small file cannot claim them."""
    parts = _release().parts()
    facts: dict[str, Any] = {**parts.facts, "axes": [[16, 4, 4, False]] * 6}
    series = {
        **parts.series,
        "schedule": np.full(6, 4),
        "levels": np.array([1, 99]),
        "expanded": (np.arange(100) == 0).astype(np.int64),
    }

    with pytest.raises(InvalidRelease, match="children of the nodes"):
        SpendingBoxesRelease.from_parts(Parts(facts, series), None)


def test_changed_numbers_never_raise_anything_else() -> None:
    """Of 300 releases with numbers changed at random those that are believed can be asked."""
    parts, words = _release().parts(), EndlessTape("numbers").take(1_200).reshape(-1, 4)
    believed = 0
    for which, at, high, low in words.tolist():
        name = sorted(parts.series)[which % len(parts.series)]
        values = parts.series[name].copy()
        values[at % values.size] = (high >> 1 + high % 63) if low % 2 else values[low % values.size]
        try:
            again = SpendingBoxesRelease.from_parts(Parts(parts.facts, {**parts.series, name: values}), None)
            answer = again.answer(BoxTerm((3, 1), (500, 2)))
            believed += int(np.isfinite([answer.value, answer.error, *answer.worst(0.05)]).all())
        except PartitaError:
            continue

    assert believed > 20
