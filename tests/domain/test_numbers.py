from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from partita.domain import Category, Integer, Real, Special

QUICK = settings(deadline=None, derandomize=True, max_examples=200)

STEPS = st.one_of(
    st.sampled_from(
        [Fraction(1), Fraction(1, 100), Fraction(1, 3), Fraction(7), Fraction(1, 2**20), Fraction(3, 7)]
    ),
    st.builds(Fraction, st.integers(1, 10**12), st.integers(1, 10**12)),
)


def rounded(value: Fraction, domain: Real) -> int | str:
    """The definition: round to the nearest multiple, ties to even, then compare."""
    multiple = round(value / domain.step)
    low, high = domain.low / domain.step, domain.high / domain.step
    return "below" if multiple < low else "above" if multiple > high else int(multiple - low)


@st.composite
def grids(draw: st.DrawFn) -> Real:
    """A Real with bounds of either sign and any step."""
    step, low = draw(STEPS), draw(st.integers(-(2**60), 2**60) | st.integers(-100, 100))
    return Real(low * step, (low + draw(st.integers(0, 2**62) | st.integers(0, 100))) * step, step=step)


@st.composite
def near_ties(draw: st.DrawFn, domain: Real) -> float:
    """A float at, or a few representable floats from, the middle of two multiples or a bound."""
    first, last = int(domain.low / domain.step) - 2, int(domain.high / domain.step) + 2
    halves = draw(st.integers(2 * first, 2 * last))
    value = float(halves * domain.step / 2)
    for _ in range(draw(st.integers(0, 2))):
        value = math.nextafter(value, draw(st.sampled_from([-math.inf, math.inf])))
    return value


@QUICK
@given(st.data(), grids())
def test_floats_on_a_real_are_rounded_exactly(data: st.DataObject, domain: Real) -> None:
    """A float's cell is that of its exact binary value, at ties and near them too."""
    values = data.draw(
        st.lists(near_ties(domain) | st.floats(allow_nan=False, allow_infinity=False), max_size=12)
    )

    assert domain.encode(np.array(values, np.float64)).tolist() == [
        rounded(Fraction(v), domain) for v in values
    ]


@QUICK
@given(grids(), st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-300, 300), max_size=12))
def test_integers_and_decimals_on_a_real_are_rounded_exactly(domain: Real, values: list[int]) -> None:
    """An integer's cell, and a decimal's, is that of its exact value in every container."""
    expected = [rounded(Fraction(value), domain) for value in values]
    hundredths = [rounded(Fraction(value, 100), domain) for value in values]
    decimals = [Decimal(value).scaleb(-2) for value in values]

    assert domain.encode(np.array(values, np.int64)).tolist() == expected
    assert domain.encode(pa.array(map(str, values), pa.string())).tolist() == expected
    assert domain.encode(decimals).tolist() == hundredths
    assert domain.encode(list(map(str, decimals))).tolist() == hundredths
    assert domain.encode(pa.array(decimals, pa.decimal128(38, 2))).tolist() == hundredths
    assert domain.encode(pa.array(decimals, pa.decimal256(60, 4))).tolist() == hundredths


@QUICK
@given(
    st.integers(-(2**70), 2**70),
    st.integers(0, 2**64 - 1),
    st.lists(st.integers() | st.integers(0, 2**64), max_size=9),
)
@example(0, 2**64 - 1, [2**64 - 1, 2**64, -1, 2**63])
@example(-(2**63), 2**64 - 1, [2**63 - 1, -(2**63), 2**63])
@example(-(2**70), 5, [-(2**70) + 5, -(2**70) + 6, -(2**70) - 1, 0])
def test_integers_are_compared_exactly(low: int, extent: int, values: list[int]) -> None:
    """An integer is in cell value - low, or below, or above, at any size and in any container."""
    high = low + extent
    domain = Integer(low, high)
    expected = ["below" if value < low else "above" if value > high else value - low for value in values]

    containers: list[Any] = [
        values,
        np.array(values, object),
        list(map(str, values)),
        [f"{v}.0" for v in values],
        list(map(Decimal, values)),
        list(map(Fraction, values)),
        [f"\t+{v}e0 \n".replace("+-", "-") for v in values],
    ]
    for dtype in (np.int8, np.int64, np.uint64):
        if all(np.iinfo(dtype).min <= value <= np.iinfo(dtype).max for value in values):
            containers += [np.array(values, dtype), pa.array(np.array(values, dtype))]
    for container in containers:
        assert domain.encode(container).tolist() == expected


def test_unsigned_integers_do_not_wrap() -> None:
    """The upper half of the unsigned 64-bit integers is above the lower half, in every container."""
    values = np.array([0, 2**63 - 1, 2**63, 2**64 - 1], np.uint64)

    for column in (values, values.astype(">u8"), pa.array(values), values.tolist(), list(values)):
        assert Integer(0, 2**63).encode(column).tolist() == [0, 2**63 - 1, 2**63, "above"]
        assert Integer(-1, 5).encode(column).tolist() == [1, "above", "above", "above"]
        assert Real(0, 2**63, step=2).encode(column).tolist() == [0, 2**62, 2**62, "above"]


def test_decimals_are_exact_beyond_64_bits_and_in_slices() -> None:
    """Decimals whose digits fill more than 64 bits, of either sign, are themselves in a slice too."""
    values = [7, -1, 2**63 - 1, 2**63, 2**64 + 5, -(2**63), -(2**63) - 1, None]
    domain = Integer(-(2**63), 2**63 - 1)
    expected: list[int | str] = [2**63 - 1, 2**64 - 1, "above", "above", 0, "below", "null"]

    for kind in (pa.decimal128(38, 2), pa.decimal256(60, 5)):
        decimals = pa.array([None if value is None else Decimal(value) for value in values], kind)
        assert domain.encode(decimals.slice(1)).tolist() == expected
        assert domain.encode(decimals.slice(1, 3)).tolist() == expected[:3]
    small = pa.array(values[:-1], pa.decimal128(38, 0))
    assert domain.encode(small.slice(1)).tolist() == expected[:-1]


@QUICK
@given(
    st.lists(st.floats(width=64), max_size=9),
    st.sampled_from([(0, 120), (-(2**63), 2**63 - 1), (2**60, 2**64), (-(2**70), 0)]),
)
def test_floats_on_an_integer_are_themselves_or_invalid(values: list[float], bounds: tuple[int, int]) -> None:
    """A whole float is its integer, an infinite one is outside, and any other is invalid."""
    low, high = bounds[0], min(bounds[1], bounds[0] + 2**64 - 1)

    def place(value: float) -> int | str:
        if math.isnan(value) or (math.isfinite(value) and not value.is_integer()):
            return "invalid"
        return "below" if value < low else "above" if value > high else int(value) - low

    encoded = Integer(low, high).encode(np.array(values, np.float64))
    assert encoded.tolist() == [place(value) for value in values]
    assert Integer(low, high).encode(pa.array(values, pa.float64())).tolist() == encoded.tolist()


@QUICK
@given(grids(), st.lists(st.fractions() | st.floats(allow_nan=False), min_size=2, max_size=8))
def test_a_larger_number_never_has_a_smaller_cell(domain: Real, values: list[Any]) -> None:
    """Cells follow the order of values, with below first and above last."""
    ends = {"below": -1, "above": domain.size}
    encoded = domain.encode(sorted(values)).tolist()
    ordered = [ends[place] if isinstance(place, str) else place for place in encoded]

    assert ordered == sorted(ordered)


WRITTEN = [
    ("5", 5), (" 5\t", 5), ("+5", 5), ("5.", 5), ("5.0", 5), ("1e2", 100), ("1E+2", 100), ("500e-2", 5),
    ("-0", 0), ("-0.0", 0), ("007", 7), ("0e999999999", 0), ("1e999999999", "above"),
    ("-1e999999999", "below"), ("inf", "above"), ("1" * 390 + "e50", "above"), ("-Infinity", "below"),
    ("+INF", "above"), ("nan", "invalid"), ("5.5", "invalid"), ("1e-999999999", "invalid"),
    ("1_0", "invalid"), ("1,0", "invalid"), ("0x5", "invalid"), ("٥", "invalid"), ("\u00a05", "invalid"),
    ("", "invalid"), ("5" * 401, "invalid"), ("5" * 400, "above"), ("1/2", "invalid"), ("e5", "invalid"),
    (".", "invalid"), ("5 5", "invalid"),
]  # fmt: skip


def test_text_on_an_integer_follows_one_grammar() -> None:
    """Each of these texts is read as the table says, alone, together, and as bytes."""
    texts, expected = zip(*WRITTEN, strict=True)
    domain = Integer(0, 120)

    assert domain.encode(list(texts)).tolist() == list(expected)
    assert domain.encode(np.array(texts)).tolist() == list(expected)
    assert domain.encode([text.encode() for text in texts]).tolist() == list(expected)
    assert domain.encode(pa.array(texts).dictionary_encode()).tolist() == list(expected)


def test_other_values_on_an_integer() -> None:
    """Booleans are 0 and 1, nothing is null, and what is no number is invalid."""
    values = [
        True,
        np.False_,
        None,
        -0.0,
        Decimal("5.00"),
        Decimal("5.5"),
        Fraction(7, 2),
        np.longdouble(3),
        [],
        "true",
    ]
    expected = [1, 0, "null", 0, 5, "invalid", "invalid", 3, "invalid", "invalid"]

    assert Integer(0, 120).encode(values).tolist() == expected
    assert Integer(0, 1).encode(np.ma.masked_array([0, 1, 1], [False, False, True])).tolist() == [
        0,
        1,
        "null",
    ]
    assert Integer(0, 1).encode(pa.array([True, None])).tolist() == [1, "null"]


@pytest.mark.parametrize(("bits", "kind"), [(0x7FF0000000000001, "f8"), (0x7F800001, "f4"), (0x7C01, "f2")])
def test_signalling_nan_is_invalid_without_a_warning(bits: int, kind: str) -> None:
    """The NaNs that make processors complain are invalid like the others, and null in a category."""
    array = np.array([bits, bits], kind.replace("f", "u")).view(kind)

    assert Integer(0, 1).encode(array).tolist() == ["invalid"] * 2
    assert Real(0, 1, step="0.1").encode(array).tolist() == ["invalid"] * 2
    assert Category(["nan"]).encode(array).tolist() == ["null"] * 2


def test_wide_floats_are_not_narrowed() -> None:
    """A long double just above a tie rounds up, though the nearest double is the tie."""
    above = np.longdouble(0.5) + np.finfo(np.longdouble).eps
    expected = 1 if float(above) < above else 0

    assert Real(0, 1, step=1).encode(np.array([0.5, above])).tolist() == [0, expected]


def test_tiny_and_huge_text_on_a_real() -> None:
    """Exponents of any size cost nothing: tiny numbers round to zero, huge ones are outside."""
    domain = Real(-1, 1, step="0.01")

    assert domain.encode(["1e-999999999", "-1e-999999999", "1e999999999", "-1e999999999"]).tolist() == [
        100,
        100,
        "above",
        "below",
    ]
    assert domain.encode(["0.005", "0.015", "-0.005", "1.005", "1.015", "-1.005"]).tolist() == [
        100,
        102,
        100,
        200,
        "above",
        0,
    ]


def test_rounding_comes_before_the_bounds() -> None:
    """A value just outside a bound that rounds to it is inside."""
    domain = Real(0, 10, step="0.5")

    assert domain.encode([-0.25, -0.26, 10.25, 10.26]).tolist() == [0, "below", 20, "above"]


def test_reals_decode_to_decimals_or_fractions() -> None:
    """A step with a finite decimal decodes to Decimals, another one to Fractions."""
    assert Real(0, 1, step="0.25").decode([1, 4]) == [Decimal("0.25"), Decimal(1)]
    assert Real(0, 1, step="1/3").decode([1, 3]) == [Fraction(1, 3), Fraction(1)]
    assert all(isinstance(value, Decimal) for value in Real(0, 10**30, step=10**20).decode([1, 2]))


@pytest.mark.parametrize("domain", [Integer(0, 120), Real(0, 120, step=1)])
def test_bounds_of_queries_are_read_as_people_write_them(domain: Integer | Real) -> None:
    """A public bound is a cell, or below, or above; the text and the number mean the same."""
    for value in (30, 30.0, "30", Decimal(30), Fraction(30), np.int8(30)):
        assert domain.locate(value).cell == 30
    assert domain.locate(-1).special == Special.BELOW
    assert domain.locate(10**30).special == Special.ABOVE
