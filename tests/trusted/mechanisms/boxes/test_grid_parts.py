"""A grid taken apart for a file, put together again, and refused where somebody changed it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from partita.domain.axis import Axis
from partita.errors import InvalidRelease
from partita.guarantee import Guarantee
from partita.public.axis.base import Parts
from partita.public.boxes.grid import GridRelease
from partita.testing import EndlessTape, tape_noise
from partita.trusted.mechanisms.boxes import GridCounts
from partita.trusted.secret import Points

AXES = (Axis(size=3, before=1, after=3), Axis(size=2, after=2, labels=True))


def release(epsilon: Any = 1) -> GridRelease:
    data = Points.from_rows([[1, 0], [2, 3], [2, 3]], axes=AXES)
    return GridCounts(axes=AXES, epsilon=epsilon).release(data, noise=tape_noise(EndlessTape(3)))


@pytest.mark.parametrize("epsilon", [1, "1/3", Fraction(1, 2**61)])
def test_parts_make_the_same_release(epsilon: Any) -> None:
    """A release from its parts has the same axes, counts, errors and bounds, to the last bit."""
    made, guarantee = release(epsilon), Guarantee(epsilon=1)

    again = GridRelease.from_parts(made.parts(), guarantee)

    assert (again.axes, again.scale, again.guarantee) == (made.axes, made.scale, guarantee)
    assert again.noisy.tolist() == made.noisy.tolist()
    assert again.answer(again.everything).worst(0.05) == made.answer(made.everything).worst(0.05)
    assert again.error(0.05) == made.error(0.05)


def _axes(*axes: Any) -> dict[str, Any]:
    return {"axes": list(axes)}


SIXTEEN = [[16, 0, 0, False]] * 6


@pytest.mark.parametrize(
    "facts",
    [
        _axes(),
        _axes([28, 0, 0]),
        _axes([28, 0, 0, 0]),
        _axes([28, 0, 0, False, False]),
        _axes([27, 0, 1.0, False]),
        _axes([27, True, 0, False]),
        _axes([True, 0, 0, False]),
        _axes([-28, 0, 0, False], [-1, 0, 0, False]),
        _axes([0, 0, 0, False], [28, 0, 0, False]),
        _axes([20, 8, 0, False]),
        _axes([2**63 + 1, 0, 0, False]),
        _axes([29, 0, 0, False]),
        _axes([14, 0, 0, False]),
        _axes(*SIXTEEN),
        _axes(*[[1, 0, 0, False]] * 6, [28, 0, 0, False]),
        _axes(None),
        _axes({"size": 28}),
        {"axes": "28"},
        {"axes": None},
        {"axes": {}},
        {"scale": "0"},
        {"scale": "-1"},
        {"scale": 1},
        {"scale": "1e400"},
        {"scale": None},
        {"more": 1},
    ],
    ids=str,
)
def test_hostile_facts_are_refused(facts: dict[str, Any]) -> None:
    """Whatever somebody wrote in the facts of a file, the error is an `InvalidRelease`."""
    parts = release().parts()

    with pytest.raises(InvalidRelease):
        GridRelease.from_parts(Parts({**parts.facts, **facts}, parts.series), None)


@pytest.mark.parametrize(
    "noisy",
    [
        np.zeros(27, np.int64),
        np.zeros(29, np.int64),
        np.zeros((4, 7), np.int64),
        np.zeros(28),
        np.zeros(28, bool),
        np.array([2**200] * 28, dtype=object),
        np.array(["1"] * 28, dtype=object),
        [0] * 28,
        None,
    ],
    ids=repr,
)
def test_hostile_counts_are_refused(noisy: Any) -> None:
    """Too few, too many, of another shape or type, or too large."""
    parts = release().parts()

    with pytest.raises(InvalidRelease):
        GridRelease.from_parts(Parts(parts.facts, {"noisy": noisy}), None)


@pytest.mark.parametrize("missing", ["axes", "scale"])
def test_missing_parts_are_refused(missing: str) -> None:
    """A release has all of its parts."""
    parts = release().parts()
    facts = {name: fact for name, fact in parts.facts.items() if name != missing}

    with pytest.raises(InvalidRelease):
        GridRelease.from_parts(Parts(facts, parts.series), None)
    with pytest.raises(InvalidRelease):
        GridRelease.from_parts(Parts(parts.facts, {}), None)
