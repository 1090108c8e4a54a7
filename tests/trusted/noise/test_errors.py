"""Bad input is refused with an error of ours, before any word is drawn and without showing data."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np
import pytest

from partita.errors import InvalidData, InvalidParameter
from partita.trusted.noise.system import SystemNoise

CANARY = 987_654_321


class Untouched:
    """A source from which nothing may be taken."""

    bits = 64

    def take(self, count: int) -> NoReturn:
        raise AssertionError("a word was drawn")

    take_up_to = take

    def give_back(self, words: Any) -> None:
        raise AssertionError("a word was given back")


NOISE = SystemNoise(Untouched)

BAD_SCALES: list[Any] = [
    float("nan"), float("inf"), float("-inf"), True, False, "much", "", None, 0, 0.0, -1, "-1/2",
    Fraction(1, 2**20 + 1), Fraction(1, 2**21), 2**62 + 1, 1e300, Decimal("NaN"), [1], np.array([1]), 1j,
    "1/0",
]  # fmt: skip

SCALED: list[Callable[[Any], Any]] = [
    lambda scale: NOISE.discrete_laplace(scale),
    lambda scale: NOISE.discrete_laplace(scale, 3),
    lambda scale: NOISE.geometric(scale, 3),
    lambda scale: NOISE.add([1, 2], scale),
    lambda scale: NOISE.add([1, 2], scale, parts=[1, 2]),
    lambda scale: NOISE.draw("laplace", scale),
    lambda scale: NOISE.first_success("laplace", scale),
    lambda scale: NOISE.exponential([1, 2], scale),
]


@pytest.mark.parametrize("scale", BAD_SCALES, ids=repr)
@pytest.mark.parametrize("call", SCALED)
def test_a_bad_scale_is_refused(call: Callable[[Any], Any], scale: Any) -> None:
    """Everything but a number from 2^-20 to 2^62 is an InvalidParameter named scale."""
    with pytest.raises(InvalidParameter, match=r"^scale ") as error:
        call(scale)

    assert error.value.parameter == "scale"


@pytest.mark.parametrize("unit", [float("nan"), True, "x", None, 0, -1, 2**21, Fraction(1, 2**63)], ids=repr)
def test_a_bad_unit_is_refused(unit: Any) -> None:
    """A unit is the inverse of a scale, with the same range."""
    with pytest.raises(InvalidParameter, match=r"^(unit|scale) "):
        NOISE.discrete_laplace_units(unit, [1])


@pytest.mark.parametrize("size", [-1, 1.0, True, "3", (2, 3)], ids=repr)
@pytest.mark.parametrize("name", ["discrete_laplace", "geometric"])
def test_a_bad_size_is_refused(name: str, size: Any) -> None:
    """A size is an integer from zero on."""
    with pytest.raises(InvalidParameter, match=r"^size "):
        getattr(NOISE, name)(1, size)


BAD_X: list[Any] = [
    float(CANARY), [float(CANARY)], np.array([CANARY + 0.5]), True, [True, False], np.array([True]), None,
    str(CANARY), [str(CANARY)], [CANARY, None], [Fraction(CANARY)], [Decimal(CANARY)], {CANARY: 1},
    np.array([CANARY, True], dtype=object), np.array([float(CANARY)], dtype=object), 1j * CANARY,
    np.array([CANARY], dtype="m8[s]"), np.array([CANARY], dtype="M8[s]"), float("nan"), b"987654321",
]  # fmt: skip


@pytest.mark.parametrize("x", BAD_X, ids=range(len(BAD_X)))
@pytest.mark.parametrize(
    "call", [lambda x: NOISE.add(x, 1), lambda x: NOISE.add(x, 1, parts=2), lambda x: NOISE.exponential(x, 1)]
)
def test_data_that_are_no_integers_are_refused_unseen(call: Callable[[Any], Any], x: Any) -> None:
    """Floats, truth values, text and the like are InvalidData, and the message holds no value."""
    with pytest.raises(InvalidData) as error:
        call(x)

    assert str(CANARY) not in str(error.value)
    assert error.value.__cause__ is None


def test_ragged_data_are_refused_unseen() -> None:
    """Lists that form no array are InvalidData like other bad data."""
    with pytest.raises(InvalidData):
        NOISE.add([[CANARY], [1, 2]], 1)


@pytest.mark.parametrize("parts", [0, -1, [1, 0], 1.5, [True], "2", None, [2**63], [[]]], ids=repr)
def test_bad_parts_are_refused(parts: Any) -> None:
    """Parts are positive 64-bit integers."""
    with pytest.raises(InvalidParameter, match=r"^parts "):
        NOISE.discrete_laplace_units(1, parts)


def test_parts_of_another_shape_are_refused() -> None:
    """Parts that cannot be spread over the data are an InvalidParameter."""
    with pytest.raises(InvalidParameter, match=r"^parts "):
        NOISE.add([1, 2, 3], 1, parts=[1, 2])


@pytest.mark.parametrize(
    "weights",
    [[], [0], [0, 0, 0], [-1, 2], [1, Fraction(-1, 3)], [1, float("nan")], [True, 1], [None], ["a"]],
    ids=repr,
)
def test_bad_weights_are_refused(weights: Any) -> None:
    """Weights are non-negative numbers, and one of them is positive."""
    with pytest.raises(InvalidParameter, match=r"^weights "):
        NOISE.categorical(weights)


@pytest.mark.parametrize(
    "p", [-1, 2, Fraction(-1, 10**9), 1.0000001, float("nan"), True, "x", None], ids=repr
)
def test_a_bad_probability_is_refused(p: Any) -> None:
    """A probability lies in [0, 1]."""
    with pytest.raises(InvalidParameter, match=r"^probability "):
        NOISE.bernoulli(p)


@pytest.mark.parametrize(
    "scores", [[], np.zeros(0, dtype=np.int64), np.zeros((0, 3), dtype=object)], ids=repr
)
def test_a_choice_among_nothing_is_refused(scores: Any) -> None:
    """The exponential mechanism needs a candidate."""
    with pytest.raises(InvalidData, match=r"^scores "):
        NOISE.exponential(scores, 1)


@pytest.mark.parametrize("call", [lambda: NOISE.draw("gauss", 1), lambda: NOISE.first_success("gauss", 1)])  # type: ignore[arg-type]
def test_an_unknown_law_is_refused(call: Callable[[], Any]) -> None:
    """A law is laplace or geometric; another name never falls through to one of them."""
    with pytest.raises(InvalidParameter, match=r"^law "):
        call()


def test_python_integers_on_both_sides_of_int64_are_data() -> None:
    """A list that numpy would turn into floats is taken as the exact integers that it holds."""
    with pytest.raises(AssertionError, match="a word was drawn"):
        NOISE.add([2**63, -1], 1)
