"""Mixtures of more than twelve views: the view is drawn alike for every cell, and every part is verified."""

from __future__ import annotations

from bisect import bisect_right
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from partita.errors import InvalidParameter
from partita.local import Device, Mixture, Range, Rectangles
from partita.local.ranges import CellTree, tensor_views
from partita.testing import EndlessTape
from tests.local.laws import column_law, loses_at_most

from .laws import mixed_law

BOX = Rectangles({"x": 8, "y": 8}, epsilon=1)
SMALL = Mixture.of(tensor_views((CellTree(2),) * 4), epsilon=1, kind="response")
CELLS = (0, 9, 15)


def _views(law: Any, starts: tuple[int, ...]) -> dict[int, Fraction]:
    """The law of the view that a report is of."""
    found: dict[int, Fraction] = {}
    for report, chance in law.items():
        view = bisect_right(starts, report) - 1
        found[view] = found.get(view, Fraction(0)) + chance
    return found


def test_a_device_draws_every_one_of_many_views_alike() -> None:
    """For every cell: the law of the mixture, a fifteenth for each view, and epsilon is kept."""
    laws = {x: mixed_law(SMALL, x) for x in CELLS}

    assert len(SMALL.views) == 15
    for x, law in laws.items():
        assert law == SMALL.pmf(x)
        assert _views(law, SMALL.starts) == dict.fromkeys(range(15), Fraction(1, 15))
        assert loses_at_most(Fraction(1), law, laws[0])


def test_a_column_draws_every_one_of_many_views_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for `randomize_many`."""
    laws = {x: column_law(monkeypatch, SMALL, [x]) for x in CELLS}

    for x, law in laws.items():
        assert law == {(report,): chance for report, chance in SMALL.pmf(x).items()}
        assert loses_at_most(Fraction(1), law, laws[0])


@pytest.mark.parametrize(
    "question", [Range(2**16, epsilon=1), BOX, Rectangles({"x": 64, "y": 64}, epsilon=1)]
)
def test_the_views_of_a_column_do_not_depend_on_its_cells(question: Any) -> None:
    """On one tape people choose the same views, whatever they hold; every view is chosen."""
    mixture, rng = question.randomizer, np.random.default_rng(5)
    starts = np.array(mixture.starts)

    def views(cells: Any) -> list[int]:
        reports = mixture.randomize_many(cells, words=EndlessTape("views"))
        return (np.searchsorted(starts, reports, side="right") - 1).tolist()  # type: ignore[no-any-return]

    first = views(np.zeros(400, dtype=np.int64))

    assert len(mixture.views) > 12
    assert len(set(first)) == len(mixture.views)
    assert first == views(np.full(400, mixture.size - 1)) == views(rng.integers(0, mixture.size, 400))


def test_a_server_cannot_change_any_part_of_many() -> None:
    """A threshold one unit too large, or a part of another epsilon, is refused in each of sixteen parts."""
    question = Range(2**16, epsilon=1)
    description, dearer = question.to_json(), Range(2**16, epsilon=2).to_json()
    parts: Any = description["randomizer"]["parts"]
    assert len(parts) == 16

    for number, part in enumerate(list(parts)):
        for wrong in (
            {**part, "threshold": str(int(part["threshold"]) + 1)},
            dearer["randomizer"]["parts"][number],
        ):
            parts[number] = wrong
            with pytest.raises(InvalidParameter):
                Device.verify(description)
        parts[number] = part
    assert Device.verify(description) == question
