"""Projected answers taken apart for a file, put together again, and refused where somebody changed them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from partita.domain import Integer
from partita.errors import InvalidRelease
from partita.guarantee import Guarantee
from partita.public.axis.base import Parts
from partita.public.queries.language import clipped, ranges
from partita.public.queries.queries import Queries, Universe
from partita.public.workload import projection as module
from partita.public.workload.projection import ProjectedLaplaceRelease
from partita.testing import EndlessTape, tape_noise
from partita.trusted.mechanisms.workload import ProjectedLaplace
from partita.trusted.secret import Points

AGES = Universe(["age"], [Integer(0, 15)])
RANGES = ranges("age")


def _release(queries: Queries = RANGES, **given: Any) -> ProjectedLaplaceRelease:
    mechanism = ProjectedLaplace(queries=queries, universe=AGES, **{"epsilon": 1, **given})
    points = Points.from_rows([[cell] for cell in range(1, 15)] * 30, axes=AGES.axes)
    return mechanism.release(points, noise=tape_noise(EndlessTape(3)))


def _again(
    parts: Parts, guarantee: Guarantee | None = None, queries: Queries = RANGES
) -> ProjectedLaplaceRelease:
    return ProjectedLaplaceRelease.from_parts(parts, guarantee, queries, AGES)


@pytest.mark.parametrize("queries", [RANGES, clipped("age", 9) + RANGES], ids=str)
@pytest.mark.parametrize("given", [{}, {"delta": "1e-6"}, {"epsilon": "1/1000000000000000"}], ids=str)
def test_parts_make_the_same_release(queries: Queries, given: dict[str, Any]) -> None:
    """A release from its parts gives the same answers, errors and bounds, to the last bit."""
    release, guarantee = _release(queries, **given), Guarantee(epsilon=1)

    again = _again(release.parts(), guarantee, queries)

    assert again.guarantee == guarantee
    assert again.values.tolist() == release.values.tolist()
    assert again.unprojected.tolist() == release.unprojected.tolist()
    assert again.spreads.tolist() == release.spreads.tolist()
    assert again.error(0.05) == release.error(0.05)
    assert again.answer(7).worst(0.05) == release.answer(7).worst(0.05)
    assert again.story == release.story


def test_a_release_without_projection_stays_without(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noisy answers that could not be projected are read as they are, and not projected on the way."""
    monkeypatch.setattr(module, "find_closest", lambda hull, noisy, **_: hull.middle())

    again = _again(_release().parts())

    assert again.projection is None
    assert again.values.tolist() == again.unprojected.tolist()


def test_parts_hold_no_floats() -> None:
    """Facts are whole numbers and text, and series hold integers."""
    for release in (_release(), _release(epsilon="1/1000000000000000")):
        parts = release.parts()
        assert {type(fact) for fact in parts.facts.values()} <= {int, str}
        assert {series.dtype.name for series in parts.series.values()} <= {"int64", "object"}


def _changed(name: str, at: int, by: int) -> Callable[[dict[str, Any]], None]:
    def change(series: dict[str, Any]) -> None:
        series[name] = series[name].copy()
        series[name][at] += by

    return change


def _with(name: str, values: Any) -> Callable[[dict[str, Any]], None]:
    return lambda series: series.__setitem__(name, values)


SERIES: dict[str, Callable[[dict[str, Any]], None]] = {
    "an answer too few": lambda series: series.update(noisy=series["noisy"][1:]),
    "answers of others": lambda series: series.update(noisy=series["noisy"][::-1].copy()),
    "answers that are floats": _with("noisy", np.zeros(len(RANGES.over(AGES)))),
    "a cell twice": lambda series: series.update(cells=np.zeros_like(series["cells"])),
    "a cell outside": _changed("cells", -1, 10**6),
    "a negative cell": _changed("cells", 0, -(10**6)),
    "cells that are unsigned": lambda series: series.update(cells=series["cells"].astype(np.uint64)),
    "a cell too few": lambda series: series.update(cells=series["cells"][1:]),
    "a weight of nothing": lambda series: series.update(amounts=np.zeros_like(series["amounts"])),
    "a negative weight": lambda series: series.update(amounts=-series["amounts"]),
    "weights that wrap around": lambda series: series.update(amounts=np.full_like(series["amounts"], 2**62)),
    "weights of another point": lambda series: series.update(amounts=series["amounts"][::-1].copy()),
    "half of the weights": lambda series: series.update(amounts=series["amounts"] // 2),
    "no weights": lambda series: series.update(cells=np.zeros(0, np.int64), amounts=np.zeros(0, np.int64)),
    "no amounts": lambda series: series.pop("amounts"),
    "one series more": _with("more", np.zeros(3, np.int64)),
}


@pytest.mark.parametrize("change", SERIES.values(), ids=SERIES)
def test_hostile_series_are_refused(change: Callable[[dict[str, Any]], None]) -> None:
    """Whatever is not the certified projection of these very answers is an `InvalidRelease`."""
    parts = _release().parts()
    series = dict(parts.series)
    change(series)

    with pytest.raises(InvalidRelease):
        _again(Parts(parts.facts, series))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rows", 400),
        ("rows", "400.5"),
        ("rows", "1" * 60),
        ("rows", str(2**100)),
        ("rows", "0"),
        ("rows", None),
        ("rows_scale", "0"),
        ("scale", "1e300"),
        ("scale", "1/1000"),
        ("scale", 3),
        ("bits", 63),
        ("bits", -1),
        ("bits", True),
        ("bits", 0),
        ("bits", None),
        ("gap", None),
        ("gap", "0"),
        ("gap", "-1"),
        ("gap", "1e300"),
        ("gap", "nan"),
    ],
)
def test_hostile_facts_are_refused(name: str, value: Any) -> None:
    """Whatever is no fact of such a release, or makes its certificate untrue, is an `InvalidRelease`."""
    parts = _release().parts()

    with pytest.raises(InvalidRelease):
        _again(Parts({**parts.facts, name: value}, parts.series))


def test_hostile_universes_are_refused() -> None:
    """A universe that is too large to be an array is refused before one is made."""
    large = Universe(["age"], [Integer(0, 2**40)])

    with pytest.raises(InvalidRelease):
        ProjectedLaplaceRelease.from_parts(_release().parts(), None, RANGES, large)
