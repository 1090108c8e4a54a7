"""Many ranges at once are answered as each by itself."""

from __future__ import annotations

import datetime
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.domain import Category, Date, Domain, Integer, Real, Timestamp
from partita.domain.base import NULL
from partita.errors import InvalidParameter
from partita.public.conditions import Closed
from partita.public.release import Release

Publish = Callable[..., Release]

END = st.none() | st.integers(-8, 18)


@given(
    st.lists(st.integers(-5, 15) | st.none(), max_size=30),
    st.lists(st.tuples(END, END), min_size=1, max_size=12),
    st.sampled_from(["both", "left", "right", "neither"]),
)
def test_many_ranges_equal_single_ones(
    publish: Publish, rows: list[object], pairs: list[tuple[int | None, int | None]], closed: Closed
) -> None:
    """Values and errors of `counts` are those of `count`, for open ends and clipped ones too."""
    release = publish(digit=(Integer(0, 9), rows))
    ranges = [(a, b) if a is None or b is None or a <= b else (b, a) for a, b in pairs]
    lows, highs = ([pair[side] for pair in ranges] for side in (0, 1))

    found = release.counts(digit=(lows, highs), closed=closed)
    single = [release.count(digit=pair, closed=closed) for pair in ranges]

    assert found.values.tolist() == pytest.approx([answer.value for answer in single])
    assert found.error.tolist() == pytest.approx([answer.error for answer in single])


def test_one_end_goes_with_all_others(publish: Publish) -> None:
    """None or one value on one side is repeated; without a tuple, single values are asked for."""
    release = publish(age=(Integer(0, 120), [*range(-5, 140)]))

    assert np.asarray(release.counts(age=(None, [9, 19]))).tolist() == pytest.approx([15, 25])
    assert np.asarray(release.counts(age=([100, 111], None))).tolist() == pytest.approx([40, 29])
    assert np.asarray(release.counts(age=(10, np.array([19, 29])))).tolist() == pytest.approx([10, 20])
    assert np.asarray(release.counts(age=(10, 19))).tolist() == pytest.approx([10])
    assert np.asarray(release.counts(age=[3, 4])).tolist() == pytest.approx([1, 1])
    with pytest.raises(InvalidParameter, match=r"^age must lie within the declared bounds"):
        release.counts(age=[3, 4, 500])
    assert len(release.counts(age=([], []))) == len(release.counts(age=([], None))) == 0


COLUMNS: list[tuple[Domain, list[object], object, object, list[float]]] = [
    (Integer(0, 2**64 - 1), [0, 2**64 - 1], np.array([0, 2**63], np.uint64), None, [2, 1]),
    (Integer(-(2**63), 2**63 - 1), [-(2**63), 0, 5], np.array([-(2**63), 0]), np.array([-1, 5]), [1, 2]),
    (Integer(0, 9), [1, 2, 12], np.ma.array([1, 2], mask=[False, True]), np.array([9, 2]), [2, 2]),
    (Real(0, 1, step="0.1"), ["0.3", "0.4"], np.array([0.3, 0.4]), [0.4, 0.4], [2, 1]),
    (Category(["a", "b", "c"]), ["a", "b", "b"], ["a", "b"], ["b", "c"], [3, 2]),
    (
        Date("2024-01-01", "2024-12-31"),
        [datetime.date(2024, 5, 1)],
        np.array(["2024-01-01", "NaT"], "M8[D]"),
        ["2024-05-01", "2024-04-30"],
        [1, 0],
    ),
]


@pytest.mark.parametrize(("domain", "rows", "lows", "highs", "expected"), COLUMNS)
def test_bounds_of_every_kind(
    publish: Publish, domain: Domain, rows: list[object], lows: object, highs: object, expected: list[float]
) -> None:
    """Arrays of bounds are read as the column's values are; what is missing is an open end."""
    release = publish(v=(domain, rows))

    assert release.counts(v=(lows, highs)).values.tolist() == pytest.approx(expected)


@given(st.lists(st.integers(-30, 230), min_size=1, max_size=20), st.sampled_from(["f8", "f4", "list"]))
def test_floats_are_read_as_they_are_written(publish: Publish, thousandths: list[int], kind: str) -> None:
    """0.35 in an array is 35/100, as it is by itself, whatever its bits say, and so is it refused."""
    release = publish(v=(Real(0, "0.2", step="0.01"), [f"0.{cell:02}" for cell in range(21)]))
    if any(0 <= thousandth <= 200 and thousandth % 10 for thousandth in thousandths):
        with pytest.raises(InvalidParameter, match=r"high of v must be a multiple of 0\.01"):
            release.counts(v=(None, np.array(thousandths) / 1000))
        thousandths = [thousandth // 10 * 10 for thousandth in thousandths]
    bounds = [thousandth / 1000 for thousandth in thousandths]
    array = [*bounds, None] if kind == "list" else np.array(bounds, kind)

    found = release.counts(v=(None, array)).values.tolist()

    assert found[: len(bounds)] == pytest.approx([release.count(v=(None, bound)).value for bound in bounds])


WRONG: list[tuple[object, str]] = [
    (([5], [3]), r"^v must go from low to high, got 'a low above its high'"),
    (([1, 2], [3, 4, 5]), r"^v must have as many lows as highs, got '2 and 3'"),
    (([1], [2], [3]), r"^v must be arrays of lows and of highs, got 'a tuple of 3'"),
    (
        (["x"], None),
        r"^low of v must be a finite number, got 'x'",
    ),
    ((None, [1.5]), r"^high of v must be a whole number.*pass 1 or 2"),
    ((None, np.array([np.inf])), r"^high of v must hold values.*None for an open end"),
    (([1.0, -np.inf], None), r"^low of v must hold values"),
    (([np.nan], None), r"^low of v must hold values"),
    (([NULL, 3], None), r"^low of v must hold values"),
    ((NULL, [3]), r"^low of v must not be a special cell"),
    (({1, 2}, None), r"^low of v must be one column of values"),
    ((np.zeros((2, 2), int), None), r"^low of v must be one column of values"),
    ([1, None], r"^v must not miss a value"),
    (None, r"^v must not miss a value"),
]


@pytest.mark.parametrize(("value", "message"), WRONG, ids=[message for _, message in WRONG])
def test_wrong_arrays_are_refused(publish: Publish, value: object, message: str) -> None:
    """Arrays that are no ranges give typed errors that name the side and what to do."""
    release = publish(v=(Integer(0, 9), [1, 2]))

    with pytest.raises(InvalidParameter, match=message):
        release.counts(v=value)


@pytest.mark.parametrize(
    "bounds", [np.array([np.inf]), [0.5, -np.inf], np.array([np.nan]), ["x"], [[1], [2]]]
)
def test_wrong_bounds_of_reals(publish: Publish, bounds: object) -> None:
    """Numbers that are no bounds are refused by name, in arrays and in lists."""
    release = publish(v=(Real(0, 1, step="0.1"), [1]))

    with pytest.raises(
        InvalidParameter,
        match=r"^high of v must (hold values that a column Real\(0, 1, step=|be a finite number, got 'x')",
    ):
        release.counts(v=(None, bounds))


def test_a_column_must_be_named(publish: Publish) -> None:
    """Without a column there are no ranges to count."""
    release = publish(v=(Integer(0, 9), [1, 2]))

    with pytest.raises(InvalidParameter, match=r"^where must name a column out of 'v', got 'no column'"):
        release.counts()
    with pytest.raises(InvalidParameter, match=r"^column must be one of 'v', got 'w'"):
        release.counts(w=([1], [2]))


@pytest.mark.parametrize(
    ("lows", "highs", "expected"),
    [
        (["2024-01", "2024-02"], ["2024-01", "2024"], [2, 2]),
        (np.array(["2024-01-02", "2024-02-01"], "M8[D]"), datetime.date(2024, 2, 1), [2, 1]),
        (np.array(["2024-01", "NaT"], "M8[M]"), np.array(["2024-01", "2024-02"], "M8[M]"), [2, 4]),
        (np.array(["2024-01-01T12", "2024-01-01T13"], "M8[ns]"), None, [4, 3]),
        ([datetime.date(2024, 1, 2), None], None, [3, 4]),
    ],
)
def test_periods_in_arrays(publish: Publish, lows: object, highs: object, expected: list[float]) -> None:
    """Days, months and years mean all of their slots at either end, in arrays of any kind."""
    hours = [f"2024-0{month}-0{day}T12:00" for month in (1, 2) for day in (1, 2)]
    release = publish(v=(Timestamp("2024-01-01", "2024-12-31T23:00", "1h"), hours))

    assert release.counts(v=(lows, highs)).values.tolist() == pytest.approx(expected)
    with pytest.raises(InvalidParameter, match="low of v must be the beginning of a slot of 1h"):
        release.counts(v=(["2024-01-01T12:30"], None))
