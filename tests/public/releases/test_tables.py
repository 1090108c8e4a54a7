"""Differences, histograms and made-up rows follow from the counts."""

from __future__ import annotations

import datetime
import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.domain import Category, Date, Integer
from partita.domain.base import ABOVE, NULL
from partita.errors import InvalidParameter
from partita.public.axis.base import Term
from partita.public.axis.curve import apportion
from partita.public.release import Release

Publish = Callable[..., Release]

ROWS = st.lists(st.integers(-5, 15) | st.none(), max_size=40)
RANGE = st.tuples(st.integers(0, 9), st.integers(0, 9)).map(lambda pair: (min(pair), max(pair)))
ASKED = RANGE | st.just((None, 4)) | st.just((None, None)) | st.just(NULL) | st.sets(st.integers(0, 9))


@given(ROWS, ASKED, ASKED)
def test_differences_are_differences_of_counts(
    publish: Publish, rows: list[object], first: object, second: object
) -> None:
    """The value of a difference is that of one count less the other, special cells included."""
    release = publish(digit=(Integer(0, 9), rows))

    found = release.difference({"digit": first}, {"digit": second})

    expected = release.count(digit=first).value - release.count(digit=second).value
    assert found.value == pytest.approx(expected)
    low, high = found.worst(0.05)
    assert low <= found.value <= high


def test_what_both_count_is_in_no_error(publish: Publish) -> None:
    """A special cell that both sides count cancels, noise and all; a difference may be negative."""
    release = publish(digit=(Integer(0, 9), [1, 2, 2, 12, 12, None]))

    assert release.difference({"digit": ABOVE}, {"digit": ABOVE}).error == 0.0
    opened = release.difference({"digit": (1, None)}, {"digit": (2, None)})
    assert opened.error == release.slice("digit").axis.answer(Term(1, 9), Term(2, 9, -1)).error
    fewer = release.difference({"digit": 1}, {"digit": 2})
    assert (fewer.value, fewer.error > 0, fewer.worst()) == (-1.0, True, (-1.0, -1.0))


def test_differences_between_columns(publish: Publish) -> None:
    """Columns have independent noise: variances add, and the bounds of both, which are not negative, hold."""
    release = publish(3.0, a=(Integer(0, 9), [1, 1, 2]), b=(Integer(0, 9), [1, 5, 5]))

    found = release.difference({"a": (0, 3)}, {"b": (5, 9)})

    assert (found.value, found.error) == pytest.approx((1.0, math.sqrt(4 + 5)))
    assert found.worst(0.05) == pytest.approx((-5.0, 6.0))
    with pytest.raises(InvalidParameter, match=r"^where must name a column .*got 'no column'"):
        release.difference({"a": 1}, {})


@given(ROWS, st.integers(1, 30))
def test_bins_split_the_domain(publish: Publish, rows: list[object], bins: int) -> None:
    """Bins are as equal as cells allow, cover the domain without gaps, and count what they cover."""
    release = publish(digit=(Integer(0, 9), rows))

    found = release.histogram("digit", bins)

    covered: list[tuple[Any, Any]] = list(zip(found.lows, found.highs, strict=True))
    cells = [cell for low, high in covered for cell in range(low, high + 1)]
    widths = Counter(high - low for low, high in covered)
    assert (cells, len(found)) == (list(range(10)), min(bins, 10))
    assert max(widths) - min(widths) <= 1
    counts = [release.count(digit=pair) for pair in covered]
    assert found.counts.values.tolist() == pytest.approx([count.value for count in counts])
    assert found.counts.error.tolist() == pytest.approx([count.error for count in counts])


def test_bins_of_every_kind(publish: Publish) -> None:
    """Edges are values of the column, exact in the widest universe; wrong numbers of bins are refused."""
    release = publish(
        key=(Integer(0, 2**64 - 1), [3]),
        region=(Category(["north", "south"]), ["south"]),
        day=(Date("2024-01-01", "2024-12-31"), []),
    )

    assert list(release.histogram("key", 3).highs) == [2**64 // 3 - 1, 2**65 // 3 - 1, 2**64 - 1]
    assert release.histogram("region").lows == ["north", "south"]
    assert release.histogram("day", 2).lows[1] == datetime.date(2024, 7, 2)
    assert repr(release.histogram("region")) == "Bins(2 from north to south)"
    for bins in (0, -1, 2.5, True, 2**30):
        with pytest.raises(InvalidParameter, match=r"^bins must be"):
            release.histogram("key", bins)  # type: ignore[arg-type]


@given(st.integers(0, 10**7), st.lists(st.floats(0, 1e9), min_size=1, max_size=30).filter(any), st.data())
def test_shares_are_whole_and_near_along_the_line(
    seats: int, weights: list[float], data: st.DataObject
) -> None:
    """All seats are handed out, none to a weight of zero, and no sum of neighbours misses by over a seat."""
    first, last = sorted(data.draw(st.lists(st.integers(0, len(weights)), min_size=2, max_size=2)))

    found = apportion(seats, np.array(weights)).tolist()

    quota = seats * sum(map(Fraction, weights[first:last])) / sum(map(Fraction, weights))
    assert (sum(found), min(found) >= 0) == (seats, True)
    assert abs(sum(found[first:last]) - quota) <= 1 + Fraction(1, 10**6)
    assert all(share == 0 for share, weight in zip(found, weights, strict=True) if weight == 0)


@given(st.lists(st.integers(0, 9) | st.none() | st.integers(12, 15), max_size=50))
def test_made_up_rows_have_the_counts_of_the_release(publish: Publish, rows: list[object]) -> None:
    """As many rows as were counted, each value as often as counted; None for what is in special cells."""
    release = publish(digit=(Integer(0, 9), rows))

    found = release.synthesize()["digit"]

    ordinary = [row for row in rows if isinstance(row, int) and row <= 9]
    assert Counter(found) == Counter([*ordinary, *[None] * (len(rows) - len(ordinary))])
    assert found == release.synthesize()["digit"]


def test_made_up_rows_of_several_columns(publish: Publish) -> None:
    """Columns have equally many rows, and the order of one tells nothing about another."""
    rows = list(range(1000))
    release = publish(a=(Integer(0, 999), rows), b=(Integer(0, 999), rows))

    found = release.synthesize(500)

    assert {name: len(values) for name, values in found.items()} == {"a": 500, "b": 500}
    a, b = (np.array(values, np.float64) for values in found.values())
    assert (a.mean(), b.mean()) == pytest.approx((499.5, 499.5), abs=1)
    assert abs(float(((a - a.mean()) * (b - b.mean())).mean() / a.std() / b.std())) < 0.2


def test_made_up_rows_are_evenly_spaced(shown: Callable[..., Release], publish: Publish) -> None:
    """Inside a piece values are spread evenly, in the widest universe exactly; of nobody too."""
    nobody = publish(key=(Integer(0, 2**64 - 1), []))
    spread = sorted(nobody.synthesize(4)["key"])  # type: ignore[type-var]

    assert spread == [2**61, 3 * 2**61, 5 * 2**61, 7 * 2**61]
    assert nobody.synthesize() == {"key": []}
    assert sorted(shown([2.0, 1.0]).synthesize(6)["v"]) == [0, 0, 0, 0, 1, 1]  # type: ignore[type-var]
    assert shown([0.0, 0.0, -3.0]).synthesize() == {"v": []}
    for n in (-1, 1.5, 10**9):
        with pytest.raises(InvalidParameter, match=r"^n must be"):
            nobody.synthesize(n)  # type: ignore[arg-type]
