"""A release that a total chose comes back from its parts; what was changed is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from partita.domain.axis import Axis
from partita.errors import InvalidRelease
from partita.public.axis.base import Parts
from partita.public.boxes.base import BoxRelease, BoxTerm
from partita.public.boxes.rank_boxes import RectanglesRelease
from partita.testing import EndlessTape, tape_noise
from partita.trusted.mechanisms.boxes import Rectangles
from partita.trusted.secret import Points

AXES = (Axis(size=16, after=2, labels=True),) * 3
BOX = BoxTerm((0, 3, 1), (7, 17, 12))


def _release(rows: int) -> RectanglesRelease:
    places = EndlessTape("rows").take(300).reshape(100, 3) % 18
    points = Points.from_rows(places, axes=AXES, counts=np.full(100, rows // 100))
    release = Rectangles(axes=AXES, epsilon=1).release(points, noise=tape_noise(EndlessTape(5)))
    assert isinstance(release, RectanglesRelease)
    return release


@pytest.mark.parametrize(("rows", "kind"), [(0, "spending-boxes"), (2000, "rank-boxes"), (10**6, "grid")])
def test_parts_make_the_same_release(rows: int, kind: str) -> None:
    """Whatever was chosen, all answers are the same to the last bit, and so is the total."""
    release = _release(rows)
    again = BoxRelease.of_kind("rectangles").from_parts(release.parts(), None)
    corners = np.array([BOX.low], np.uint64), np.array([BOX.high], np.uint64)

    assert isinstance(again, RectanglesRelease)
    assert (again.chosen.kind, again.total, again.spent) == (kind, release.total, release.spent)
    assert again.answer(BOX).value == release.answer(BOX).value
    assert again.answer(BOX).worst(0.05) == release.answer(BOX).worst(0.05)
    assert again.errors(*corners).tolist() == release.errors(*corners).tolist()
    assert again.counts(*corners).tolist() == release.counts(*corners).tolist()
    assert again.points(9).tolist() == release.points(9).tolist()
    assert again.along(1, BOX).counts.tolist() == release.along(1, BOX).counts.tolist()
    assert again.error(0.05) == release.error(0.05)


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "rectangles"},
        {"kind": "rectangles-paper"},
        {"kind": "spending-boxes"},
        {"kind": ["grid"]},
        {"total": 2**63 + 1},
        {"total": "5"},
        {"total": True},
        {"scale": "0"},
        {"scale": 100},
        {"chosen": None},
        {"chosen": []},
        {"chosen": {}},
        {"more": 1},
    ],
    ids=str,
)
def test_changed_facts_are_refused(changes: dict[str, Any]) -> None:
    """Nothing but a known kind with its own facts, a total of 64 bits and a noise scale is read."""
    parts = _release(10**6).parts()

    with pytest.raises(InvalidRelease):
        RectanglesRelease.from_parts(Parts({**parts.facts, **changes}, parts.series), None)


@pytest.mark.parametrize("fact", ["kind", "total", "scale", "chosen"])
def test_missing_facts_are_refused(fact: str) -> None:
    """No fact may be left out."""
    parts = _release(10**6).parts()
    facts = {name: value for name, value in parts.facts.items() if name != fact}

    with pytest.raises(InvalidRelease):
        RectanglesRelease.from_parts(Parts(facts, parts.series), None)


def test_foreign_series_are_refused() -> None:
    """The chosen boxes take their own series, no more and no less."""
    parts = _release(10**6).parts()

    with pytest.raises(InvalidRelease):
        RectanglesRelease.from_parts(Parts(parts.facts, {**parts.series, "more": np.zeros(1)}), None)
