"""The whole range: the least and the largest scale, numbers beyond int64, every shape."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from partita.testing import EndlessTape, tape_noise
from partita.trusted.noise import laws, system
from partita.trusted.noise import laws as reals
from partita.trusted.noise.laws import GeometricTables, Tape, tables
from partita.trusted.noise.system import Path

SMALLEST, LARGEST = Fraction(1, 2**20), Fraction(2**62)
HIGH, LOW = 2**63 - 1, -(2**63)
PATHS: tuple[Path, ...] = ("numpy", "compiled")


def tape_for(value: int, scale: Fraction) -> list[int]:
    """Words that draw exactly this discrete Laplace noise."""
    drawn = tables(scale, 64)
    magnitude, minus = (value, 0) if value >= 0 else (-1 - value, 1)
    words = [_inside(drawn.top.thresholds.tolist(), 2 * (magnitude >> drawn.shift) + minus)]
    for place, table in drawn.digits:
        digit = (magnitude >> place) % (table.thresholds.size + 1)
        words.append(_inside(table.thresholds.tolist(), digit))
    return words


def _inside(thresholds: list[int], category: int) -> int:
    low = thresholds[category - 1] if category else -1
    high = thresholds[category] if category < len(thresholds) else 2**64
    assert high - low > 1, "no word draws this category without a doubt"
    return (low + high) // 2


def test_the_smallest_scale_draws_zero() -> None:
    """At scale 2^-20 another value has probability below exp(-2^20)."""
    noise = tape_noise(EndlessTape(1))

    assert noise.discrete_laplace(SMALLEST, 4).tolist() == [0, 0, 0, 0]
    assert noise.geometric(SMALLEST) == 0
    assert noise.first_success("laplace", SMALLEST).run(0, 10**6) is None
    assert noise.first_success("laplace", SMALLEST).run(-1, 5) == 0
    assert noise.first_success("geometric", SMALLEST).run(0, 10**6) is None


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "value", [0, -1, 1, 2**62, -(2**62) - 1, HIGH, HIGH + 1, LOW, LOW - 1, 2**66 + 12345, -(2**67)]
)
def test_the_largest_scale_draws_every_value_exactly(value: int, path: Path) -> None:
    """Noise of scale 2^62 beyond int64 is a Python int that nothing wrapped."""
    drawn = tape_noise(Tape(tape_for(value, LARGEST)), path=path).discrete_laplace(LARGEST, 1)

    assert drawn.tolist() == [value]
    assert [type(each) for each in drawn] == [int]


@pytest.mark.parametrize("value", [HIGH + 1, LOW - 1, 2**66, -(2**66)])
def test_one_draw_is_a_python_int(value: int) -> None:
    """Without a size, an exact int comes back."""
    drawn = tape_noise(Tape(tape_for(value, LARGEST))).discrete_laplace(LARGEST)

    assert (type(drawn), drawn) == (int, value)


def test_first_success_works_at_the_largest_scale() -> None:
    """At scale 2^62 every position near level zero succeeds half of the time, and the far tail is rare."""
    offsets = [
        tape_noise(Tape([word, 1, 1])).first_success("laplace", LARGEST).run(0, 100)
        for word in (1 << 62, 5 << 61)
    ]

    assert offsets == [0, 1]
    assert tape_noise(Tape([1])).first_success("laplace", LARGEST).run(2**70, 100) is None


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("scale", [Fraction(2**49), Fraction(2**50), Fraction(2**50 + 1)])
def test_a_value_that_may_not_fit_is_kept_whole(scale: Fraction, path: Path) -> None:
    """The last top category of a scale near 2^50 is below int64, and above 2^50 all are Python ints."""
    words = [2**64 - 1] + [2**63] * len(tables(scale, 64).digits) + [1, 1, 1]
    drawn = tape_noise(Tape(words), path=path).geometric(scale, 1)

    assert drawn.dtype == (object if scale > 2**50 else np.int64)
    assert 40 * scale < int(drawn[0]) < 60 * scale


def test_one_block_beyond_int64_widens_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a far tail needs Python ints, the blocks before and after it keep their values."""
    planted = GeometricTables(Fraction(2**50), 64)
    tops = iter([2 * 3, 2 * 2**20 + 1, 2 * 5 + 1])
    monkeypatch.setattr(planted.top, "look_up", lambda *_, **__: np.array([next(tops)]))
    monkeypatch.setattr(system, "tables", lambda scale, bits: planted)
    monkeypatch.setattr(laws, "BLOCK", 1)

    drawn = tape_noise(Tape([0] * 50)).discrete_laplace(2**50, 3)

    assert drawn.tolist() == [3 << planted.shift, -1 - (2**20 << planted.shift), -1 - (5 << planted.shift)]
    assert drawn.dtype == object


@pytest.mark.parametrize("noise", [-3, 0, 3])
@pytest.mark.parametrize("x", [HIGH, HIGH - 1, LOW, LOW + 1, 2**64 - 1, 2**64, 2**100, -(2**100)])
def test_sums_near_the_limits_of_int64_never_wrap(x: int, noise: int) -> None:
    """x plus noise is exact, for a number and for an array."""
    words, scale = tape_for(noise, Fraction(2)), Fraction(2)
    array = np.array([x], dtype=object)

    assert tape_noise(Tape(words)).add(x, scale) == x + noise
    assert tape_noise(Tape(words)).add(array, scale).tolist() == [x + noise]


@pytest.mark.parametrize(
    ("dtype", "x"), [(np.int64, HIGH), (np.int64, LOW), (np.uint64, 2**64 - 1), (np.uint64, HIGH)]
)
@pytest.mark.parametrize("noise", [-2, 0, 2])
def test_typed_arrays_at_their_limits_never_wrap(dtype: Any, x: int, noise: int) -> None:
    """int64 and uint64 inputs give exact sums, in Python ints where those are needed."""
    words = tape_for(noise, Fraction(2)) + tape_for(noise, Fraction(2))

    noisy = tape_noise(Tape(words)).add(np.array([x, 5], dtype=dtype), Fraction(2))

    assert [int(value) for value in noisy] == [x + noise, 5 + noise]
    assert noisy.dtype in (np.dtype(np.int64), np.dtype(object))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint32])
def test_small_integers_are_widened_before_noise_is_added(dtype: Any) -> None:
    """The sum of the largest value of a short type and noise is exact."""
    top = int(np.iinfo(dtype).max)
    noisy = tape_noise(Tape(tape_for(3, Fraction(2)))).add(np.array([top], dtype=dtype), 2)

    assert noisy.tolist() == [top + 3]


def test_a_number_with_parts_gets_exact_noise_at_the_largest_scale() -> None:
    """add(x, scale, parts=k) of a single number is x plus the noise that an array of one gets."""
    numbers = [tape_noise(EndlessTape(seed)).add(5, LARGEST, parts=1) for seed in range(60)]
    arrays = [tape_noise(EndlessTape(seed)).add([5], LARGEST, parts=[1]) for seed in range(60)]

    assert numbers == [int(array[0]) for array in arrays]
    assert max(numbers) > HIGH


@pytest.mark.parametrize("k", [1, [1], [[1, 2]]])
def test_units_are_int64_or_python_ints(k: Any) -> None:
    """No other type comes back, for a single k or for an array of them."""
    for seed in range(20):
        drawn = tape_noise(EndlessTape(seed)).discrete_laplace_units(1 / LARGEST, k)

        assert drawn.dtype in (np.dtype(np.int64), np.dtype(object))
        assert drawn.shape == np.shape(k)


def test_units_are_the_difference_of_two_quotients() -> None:
    """floor(G1/k) - floor(G2/k), with G1 first on the tape."""
    geometric = tape_noise(EndlessTape(4)).geometric(1000, 6)
    k = np.array([1, 7, 100])

    drawn = tape_noise(EndlessTape(4)).discrete_laplace_units("1/1000", k)

    assert drawn.tolist() == (geometric[:3] // k - geometric[3:] // k).tolist()


@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 3), (2, 1, 2), (0,), (0, 4)])
def test_noise_takes_the_shape_of_the_data(shape: tuple[int, ...]) -> None:
    """add keeps every shape, and a number stays a number."""
    x = np.arange(int(np.prod(shape, dtype=int))).reshape(shape)

    noisy = tape_noise(EndlessTape(1)).add(x, 3)

    assert np.shape(noisy) == shape
    assert isinstance(noisy, np.ndarray) == bool(shape)
    expected = x.ravel() + tape_noise(EndlessTape(1)).discrete_laplace(3, x.size)
    assert np.ravel(noisy).tolist() == expected.tolist()


def test_parts_divide_the_scale_entry_by_entry() -> None:
    """add(x, scale, parts=k) adds the noise of discrete_laplace_units(1 / scale, k), broadcast to x."""
    x = np.arange(6).reshape(2, 3)

    noisy = tape_noise(EndlessTape(9)).add(x, 50, parts=[1, 2, 3])

    expected = tape_noise(EndlessTape(9)).discrete_laplace_units(Fraction(1, 50), [[1, 2, 3], [1, 2, 3]])
    assert (noisy - x).tolist() == expected.tolist()


def test_the_data_are_left_as_they_were() -> None:
    """add never writes into the array that it is given."""
    x = np.arange(5)
    tape_noise(EndlessTape(2)).add(x, 100)

    assert x.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("empty", [[], np.zeros(0, dtype=np.int64), np.zeros((3, 0), dtype=np.uint8)])
def test_nothing_is_drawn_for_nothing(empty: Any) -> None:
    """An empty array stays empty, holds integers and uses no word."""
    tape = Tape([])

    noisy = tape_noise(tape).add(empty, 1)

    assert (noisy.shape, noisy.dtype, tape.used) == (np.shape(empty), np.dtype(np.int64), 0)


def test_no_sample_is_a_size_too() -> None:
    """Size zero gives an empty array."""
    assert tape_noise(Tape([])).discrete_laplace(1, 0).shape == (0,)
    assert tape_noise(Tape([])).geometric(LARGEST, 0).shape == (0,)


@pytest.mark.parametrize("scale", ["0.1", 0.1, Fraction(1, 10)])
def test_scales_are_read_as_people_write_them(scale: object) -> None:
    """The text "0.1", the float 0.1 and 1/10 are the same scale."""
    drawn = tape_noise(EndlessTape(5)).geometric(scale, 50)

    assert drawn.tolist() == tape_noise(EndlessTape(5)).geometric(Fraction(1, 10), 50).tolist()


def test_draw_follows_the_law_by_name() -> None:
    """draw("geometric") and draw("laplace") are the two samplers."""
    one = [tape_noise(EndlessTape(s)).draw("geometric", Fraction(9)) for s in range(30)]
    two = [tape_noise(EndlessTape(s)).draw("laplace", Fraction(9)) for s in range(30)]

    assert one == [tape_noise(EndlessTape(s)).geometric(9) for s in range(30)]
    assert two == [tape_noise(EndlessTape(s)).discrete_laplace(9) for s in range(30)]
    assert min(one) >= 0 > min(two)


def test_a_wide_gap_between_scores_needs_no_more_digits_than_a_narrow_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The work of the exponential mechanism does not grow with the gap between its scores."""
    asked: list[int] = []
    precision = reals.precision

    def record(bits: int) -> Any:
        asked.append(bits)
        return precision(bits)

    monkeypatch.setattr(reals, "precision", record)
    chosen = tape_noise(Tape([5, 5, 5])).exponential([0, 50_000], 1)

    assert chosen == 1
    assert max(asked) <= 4096
