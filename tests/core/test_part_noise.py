"""Parts of a release draw from its noise, and promise nothing by themselves."""

from __future__ import annotations

import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from partita.domain.axis import Axis
from partita.errors import PrivacyWarning
from partita.trusted.mechanisms.base import PartNoise
from partita.trusted.mechanisms.catalogue import axis_mechanisms, box_mechanisms, takes_rho
from partita.trusted.noise.system import SYSTEM, Noise
from partita.trusted.secret import Histogram, Points

AXES = [Axis(size=20), Axis(size=9, before=1, after=2), Axis(size=4, labels=True)]


def _warnings_of(mechanism: Any, data: object) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PrivacyWarning)
        mechanism.release(data)
    return [str(warning.message).split(":")[0] for warning in caught]


@pytest.mark.parametrize("name", sorted(box_mechanisms()))
def test_a_release_of_boxes_warns_once_of_its_own_epsilon(name: str) -> None:
    """Shares of epsilon are nobody's promise, however large they are."""
    points = Points.from_rows([[k % 20, k % 12, k % 4] for k in range(100)], axes=AXES)

    assert _warnings_of(box_mechanisms()[name](axes=AXES, epsilon=100), points) == [_warning(name)]


@pytest.mark.parametrize("name", sorted(axis_mechanisms()))
def test_a_release_of_an_axis_warns_once_of_its_own_epsilon(name: str) -> None:
    """Shares of epsilon are nobody's promise, however large they are."""
    mechanism = axis_mechanisms()[name](size=32, epsilon=100)

    assert _warnings_of(mechanism, Histogram.dense(range(32))) == [_warning(name)]


def _warning(name: str) -> str:
    """What is said of epsilon 100, or of the rho that the exact curve allows for it."""
    return "rho 100 is above 2" if takes_rho(name) else "epsilon 100 is above 5"


class _Whole:
    """Remembers what it is asked for."""

    secure = True

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        def answer(*given: Any, **named: Any) -> str:
            self.asked.append((name, *given, *named.values()))
            return f"what {name} gives"

        return answer


CALLS: list[tuple[Any, ...]] = [
    ("add", 3, Fraction(1), None),
    ("add_gaussian", 3, Fraction(1)),
    ("draw", "laplace", Fraction(2)),
    ("first_success", "laplace", Fraction(2)),
    ("segments", "laplace", Fraction(2), 5, np.zeros(1, np.uint64), np.zeros(1, np.int64), 7),
    ("bernoulli", Fraction(1, 3)),
    ("categorical", [1, 2]),
    ("exponential", [1, 2], Fraction(1)),
    ("permute_and_flip", [1, 2], [3, 4], Fraction(1)),
    ("integers_below", 5, 3),
]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call[0])
def test_the_whole_draws_for_its_parts(call: tuple[Any, ...]) -> None:
    """Every question is passed on as it is, and so is the answer."""
    whole: Any = _Whole()
    name, *given = call
    named = {"parts": given.pop()} if name == "add" else {}

    assert getattr(PartNoise(whole), name)(*given, **named) == f"what {name} gives"
    assert whole.asked == [call]


def test_parts_know_all_of_the_noise() -> None:
    """Nothing that mechanisms may ask of noise is left out, and a part stays a part."""
    part = PartNoise(SYSTEM)
    asked = {name for name in vars(Noise) if not name.startswith("_")}

    assert asked == {call[0] for call in CALLS} | {"secure", "session"}
    assert part.session() is part
    assert not part.secure
