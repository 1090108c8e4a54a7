"""Quantiles invert the distribution, and their bounds hold whatever the data."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import accumulate, combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.domain import Category, Date, Integer, Real
from partita.errors import InvalidParameter
from partita.public.axis.curve import Curve
from partita.public.release import Release
from partita.public.results import find_least_cells

Publish = Callable[..., Release]

ROWS = st.lists(st.integers(0, 30), max_size=60)
SHARES = st.fractions(0, 1, max_denominator=50)


@given(ROWS, st.lists(SHARES, min_size=1, max_size=5))
def test_quantiles_are_those_of_the_rows(publish: Publish, rows: list[int], shares: list[Fraction]) -> None:
    """A quantile is the least value that a share q of the rows do not exceed; of nobody, the first value."""
    release = publish(v=(Integer(0, 30), rows))

    for q, quantile in zip(shares, release.quantile("v", shares), strict=True):
        enough = (value for value in range(31) if sum(row <= value for row in rows) >= float(q) * len(rows))
        assert quantile.value == next(enough)


@given(
    st.lists(st.integers(1, 2**40), min_size=1, max_size=8),
    st.lists(st.floats(0, 1e6), min_size=8, max_size=8),
    SHARES,
)
def test_the_least_cell_is_found_to_the_bit(widths: list[int], counts: list[float], q: Fraction) -> None:
    """The count reaches the target at the cell found, and misses it just before."""
    ends = np.array(list(accumulate(widths)), np.uint64) - np.uint64(1)
    curve = Curve(ends, np.array(counts[: ends.size]))
    target = float(q) * curve.total

    cell = find_least_cells(curve.upto, np.array([target]), last=int(ends[-1]))

    assert curve.upto(cell)[0] >= target
    assert cell[0] == 0 or curve.upto(cell - np.uint64(1))[0] < target


def test_cells_of_64_bits() -> None:
    """Halving neither overflows at the last of 2^64 cells nor stops short of it."""
    last = 2**64 - 1
    steps = np.array([0, 1, 2**63, last - 1, last], np.uint64)

    found = find_least_cells(lambda cells: (cells >= steps).astype(np.float64), np.ones(5), last=last)

    assert found.tolist() == steps.tolist()


@given(st.lists(st.floats(0, 50), min_size=2, max_size=6), SHARES, st.data())
def test_worst_bounds_hold_the_true_quantile(
    publish: Publish, shown: Callable[..., Release], counts: list[float], q: Fraction, data: st.DataObject
) -> None:
    """If no range misses by more than B, the true quantile lies in `worst`, for all data."""
    truth = data.draw(st.lists(st.integers(0, 50), min_size=len(counts), max_size=len(counts)))
    release = shown(counts, reach=_widest(truth, counts))

    low, high = release.quantile("v", q).worst(0.05)

    reached = [sum(truth[: cell + 1]) >= float(q) * sum(truth) for cell in range(len(truth))]
    assert low <= reached.index(True) <= high  # type: ignore[operator]


def _widest(truth: Sequence[float], counts: Sequence[float]) -> float:
    """The largest error of any range."""
    off = [0.0, *accumulate(count - true for count, true in zip(counts, truth, strict=True))]
    return max(abs(b - a) for a, b in combinations_with_replacement(off, 2)) + 1e-9


def test_bars_surround_the_value(publish: Publish) -> None:
    """Intervals hold the value and the share, are wider for more confidence, and stay in the domain."""
    release = publish(5.0, v=(Integer(0, 1000), [*range(0, 1001, 2)] * 20))
    median = release.quantile("v", 0.5)

    for narrow, wide in ((median.interval(0.5), median.interval(0.99)), (median.worst(), (0, 1000))):
        assert wide[0] <= narrow[0] <= median.value <= narrow[1] <= wide[1]  # type: ignore[operator]
    low, high = median.rank_interval(0.95)
    assert 0 < low < 0.5 < high < 1
    assert median.rank_interval(0.5)[0] > low
    assert repr(median) == "Quantile(500 at 0.5)"
    assert str(median) == "{} ({} .. {}) at 0.5".format(median.value, *median.interval())


def test_a_value_of_many_rows_takes_many_ranks(publish: Publish) -> None:
    """An atom is the quantile of every share that it covers, and its ranks say so."""
    release = publish(v=(Integer(0, 9), [2] * 30 + [5] * 60 + [7] * 10))

    assert [each.value for each in release.quantile("v", [0.3, 0.31, 0.9, 0.91, 1])] == [2, 5, 5, 7, 7]
    low, high = release.quantile("v", 0.6).rank_interval(0.5)
    assert low < 0.3
    assert high > 0.9


def test_nobody_has_every_rank(publish: Publish) -> None:
    """If nobody was counted, the quantile is the first value and its rank is unknown."""
    nobody = publish(v=(Integer(3, 9), [])).quantile("v", 0.5)

    assert (nobody.value, nobody.rank_interval(), nobody.worst()) == (3, (0.0, 1.0), (3, 3))


def test_quantiles_are_values_of_their_column(publish: Publish) -> None:
    """Days, labels and decimals come back as such; special cells have no rank."""
    release = publish(
        day=(Date("2024-01-01", "2024-12-31"), [datetime.date(2024, 3, 1), None, "1999-01-01"]),
        label=(Category(["low", "mid", "high"]), ["mid", "mid", "high", "huge"]),
        price=(Real(0, 10, step="0.05"), ["1.25", "1.30"]),
        key=(Integer(0, 2**64 - 1), [2**64 - 1]),
    )

    assert release.quantile("day", 0.5).value == datetime.date(2024, 3, 1)
    assert release.quantile("label", Fraction(1, 2)).value == "mid"
    assert str(release.quantile("price", 1).value) == "1.30"
    assert release.quantile("key", 0.5).value == 2**64 - 1


@pytest.mark.parametrize("q", [-0.1, 1.1, float("nan"), "x", None, [0.5, 2], np.array(0.5), b"1"])
def test_shares_lie_between_zero_and_one(publish: Publish, q: object) -> None:
    """A share outside of [0, 1] is refused by name."""
    with pytest.raises(InvalidParameter, match=r"^q must"):
        publish(v=(Integer(0, 9), [1])).quantile("v", q)  # type: ignore[call-overload]


@given(ROWS, st.lists(st.integers(-3, 33), min_size=1, max_size=10))
def test_the_distribution_is_that_of_the_rows(publish: Publish, rows: list[int], values: list[int]) -> None:
    """Counts and shares are those of the rows, monotone, and in [0, 1]."""
    release = publish(v=(Integer(0, 30), rows))

    found = release.cdf("v", sorted(values))

    expected = [sum(row <= value for row in rows) for value in sorted(values)]
    assert found.values == sorted(values)
    assert np.asarray(found.counts).tolist() == pytest.approx(expected)
    assert found.fractions.tolist() == pytest.approx([count / max(1, len(rows)) for count in expected])
    assert bool((np.diff(found.fractions) >= 0).all())


@given(ROWS.filter(len), SHARES)
def test_quantile_and_distribution_are_inverse(publish: Publish, rows: list[int], q: Fraction) -> None:
    """The share at the quantile of q is at least q, and just before it less."""
    release = publish(v=(Integer(0, 30), rows))
    value = release.quantile("v", q).value
    assert isinstance(value, int)

    before, at = release.cdf("v", [value - 1, value]).fractions.tolist()

    assert at >= float(q) - 1e-12
    assert value == 0 or before < float(q)


def test_the_distribution_without_values_has_every_piece(publish: Publish) -> None:
    """By default it is given where its pieces end, up to the last value of the domain."""
    release = publish(v=(Integer(0, 2**64 - 1), [5, 5, 2**60]))

    found = release.cdf("v")

    assert list(found.values) == [4, 5, 2**60 - 1, 2**60, 2**64 - 1]
    assert np.asarray(found.counts).tolist() == [0, 2, 2, 3, 3]
    assert found.counts.error.size == len(found) == 5
    assert repr(found) == "Cdf(5 values)"
    assert release.cdf("v", 7).fractions.tolist() == pytest.approx([2 / 3])


@pytest.mark.parametrize("values", [[None], ["x"], [1.5], [float("inf")], {1}])
def test_wrong_values_of_a_distribution(publish: Publish, values: object) -> None:
    """Values that the column cannot have are refused by name."""
    with pytest.raises(InvalidParameter, match=r"^values must"):
        publish(v=(Integer(0, 9), [1])).cdf("v", values)
