"""Counts of one column mean what SQL would mean by them, with special cells beside."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import partita
from partita.domain import Category, Date, Integer, Real, Special, Timestamp
from partita.domain.base import ABOVE, BELOW, INVALID, NULL, OTHER
from partita.errors import InvalidParameter, InvalidRelease
from partita.public.base import Provenance
from partita.public.conditions import Closed
from partita.public.release import Release

Publish = Callable[..., Release]

AGES = [*range(-3, 130, 2), 30, 30, 30, None, None, "?"]
ROWS = st.lists(st.integers(-5, 15) | st.none() | st.just("?"), max_size=40)
BOUND = st.none() | st.integers(-8, 18)


def _counted(row: object, low: int | None, high: int | None, closed: str) -> bool:
    """Whether SQL, over the cells 0 to 9 and open ends beyond, counts a row."""
    if not isinstance(row, int):
        return False
    if not 0 <= row <= 9:
        return low is None if row < 0 else high is None
    after = low is None or row > low or (row == low and closed in ("both", "left"))
    return after and (high is None or row < high or (row == high and closed in ("both", "right")))


@given(ROWS, BOUND, BOUND, st.sampled_from(["both", "left", "right", "neither"]))
def test_ranges_count_what_sql_counts(
    publish: Publish, rows: list[object], low: int | None, high: int | None, closed: Closed
) -> None:
    """A range counts the values between its ends, and what lies beyond the bounds only at an open end."""
    release = publish(digit=(Integer(0, 9), rows))
    if low is not None and high is not None and low > high and high <= 9 and low >= 0:
        with pytest.raises(InvalidParameter, match=r"^digit must go from low to high"):
            release.count(digit=(low, high), closed=closed)
    else:
        answer = release.count(digit=(low, high), closed=closed)
        assert answer.value == pytest.approx(sum(_counted(row, low, high, closed) for row in rows))


def test_bounds_beyond_the_domain_are_clipped(publish: Publish) -> None:
    """What lies beyond the declared bounds is not in a bounded range; wholly outside is exactly nobody."""
    release = publish(age=(Integer(0, 120), AGES))

    assert release.count(age=(-100, 10**30)).value == release.count(age=(0, 120)).value
    for outside in ((121, 500), (-7, -1), (-7, -7)):
        nobody = release.count(age=outside)
        assert (nobody.value, nobody.error, nobody.worst(0.01)) == (0.0, 0.0, (0.0, 0.0))


def test_open_ends_include_what_lies_beyond(publish: Publish) -> None:
    """An open end adds the special cell on its side, and only that."""
    release = publish(age=(Integer(0, 120), AGES))
    inside = release.count(age=(0, 120)).value
    below, above = release.count(age=BELOW).value, release.count(age=ABOVE).value

    assert (below, above) == (2.0, 5.0)
    assert release.count(age=(None, 120)).value == inside + below
    assert release.count(age=(0, None)).value == inside + above
    assert release.count(age=(None, None)).value == inside + below + above
    assert release.count(age=(500, None)).value == above


def test_null_and_invalid_are_asked_for_by_name(publish: Publish) -> None:
    """Special cells are counted by themselves, together, or in a set with values."""
    release = publish(age=(Integer(0, 120), AGES))

    assert release.count(age=NULL).value == 2.0
    assert release.count(age=INVALID).value == 1.0
    assert release.count(age={NULL, INVALID, 30}).value == 6.0
    assert release.count(age=Special.NULL).value == release.count(where={"age": NULL}).value


def test_without_a_column_everybody_is_counted(publish: Publish) -> None:
    """The count of all rows takes in every cell, special or not, and is the same from every view."""
    one = publish(age=(Integer(0, 120), AGES))
    two = publish(age=(Integer(0, 120), AGES), again=(Integer(0, 120), AGES))

    assert one.count().value == two.count().value == pytest.approx(len(AGES))
    assert two.count().error == pytest.approx(one.count().error / math.sqrt(2))
    assert publish(age=(Integer(0, 120), [])).count().value == 0.0


def test_single_values_and_sets_of_values(publish: Publish) -> None:
    """One value is equality; a set counts each of its values once, also those that touch."""
    release = publish(age=(Integer(0, 120), AGES))

    assert release.count(age=30).value == 3.0
    assert release.count(age={30, 31, 33}).value == 5.0
    assert release.count(age=np.int64(30)).value == 3.0
    assert release.count(age=set()).value == 0.0


def test_labels(publish: Publish) -> None:
    """Categories are asked for by label, by list or set, by range in declared order, and as other."""
    rows = ["north", "south", "south", "east", "mars", None]
    release = publish(region=(Category(["north", "south", "east", "west"]), rows))

    assert release.count(where={"region": "south"}).value == 2.0
    assert release.count({"region": ["north", "east", "east"]}).value == 2.0
    assert release.count({"region": {"north", "west", OTHER}}).value == 2.0
    assert release.count({"region": ("south", None)}).value == 3.0
    assert release.count({"region": OTHER}).value == release.count({"region": NULL}).value == 1.0


def test_dates_and_times(publish: Publish) -> None:
    """Bounds of days and slots are dates, datetimes or text; a day of slots is all of them."""
    days = [datetime.date(2024, 1, 31), datetime.date(2024, 2, 1), datetime.date(2025, 1, 1)]
    hours = ["2024-01-01T00:30:00", "2024-01-01T01:00:00", "2024-01-01T23:59:59"]
    release = publish(
        hired=(Date("2024-01-01", "2024-12-31"), days),
        seen=(Timestamp("2024-01-01", "2024-01-01T23:00:00", "1h"), hours),
    )

    assert release.count(hired=("2024-02-01", "2024-12-31")).value == 1.0
    assert release.count(hired=(datetime.date(2024, 1, 31), None)).value == 3.0
    assert release.count(seen=(None, datetime.datetime(2024, 1, 1, 0, 0))).value == 1.0
    assert release.count(seen=("2024-01-01", "2024-01-01")).value == 3.0
    assert release.count(seen=datetime.date(2024, 1, 1)).value == 3.0
    assert release.count(hired="2024-01").value == release.count(seen=("2023", "2023-12")).value + 1.0 == 1.0
    assert release.count(hired=("2024-01", "2024-02"), closed="right").value == 1.0
    with pytest.raises(InvalidParameter, match=r"high of seen must be the beginning of a slot of 1h.*T00:00"):
        release.count(seen=(None, datetime.datetime(2024, 1, 1, 0, 59)))
    assert release.count(seen=("2024-01-01T01:00:00", "2024-01-01T02:00:00")).value == 1.0


def test_reals_refuse_bounds_between_two_cells(publish: Publish) -> None:
    """0.1 and "0.10" are the same bound, exactly; one between two cells is refused with both of them."""
    release = publish(price=(Real(0, 1, step="0.01"), ["0.10", "0.11", "0.295", "0.30", "0.31"]))

    assert release.count(price=(0.1, 0.3)).value == 4.0
    assert release.count(price=(0.1, 0.1 + 0.2)).value == 4.0
    assert release.count(price=(Decimal("0.10"), Fraction(3, 10))).value == 4.0
    assert release.count(price=("-0.004", "0.10"), closed="neither").value == 0.0
    for end in ("0.104", 0.104, Decimal("0.104"), Fraction(13, 125)):
        with pytest.raises(InvalidParameter, match=r"must be a multiple of 0.01, .*; pass 0.10 or 0.11"):
            release.count(price=(end, 0.3), closed="right")
        with pytest.raises(InvalidParameter, match=r"must be a multiple of 0.01, .*; pass 0.10 or 0.11"):
            release.count(price=end)


def test_the_widest_universe(publish: Publish) -> None:
    """Cells beyond 2^53 are told apart, to the last one."""
    top = 2**64 - 1
    release = publish(key=(Integer(0, top), [0, 2**53, 2**53 + 1, top - 1, top, top, top + 1]))

    assert release.count(key=top).value == 2.0
    assert release.count(key=(2**53 + 1, top - 1)).value == pytest.approx(2.0)
    assert release.count(key=(0, top), closed="neither").value == pytest.approx(3.0)
    assert release.count(key=(top, None)).value == 3.0


WRONG: list[tuple[dict[str, object], str]] = [
    ({"agee": 3}, r"^column must be one of 'age', 'closed', got 'agee'; did you mean 'age'\?"),
    ({"xyz": 3}, r"^column must be one of 'age', 'closed', got 'xyz'; ask for one of them"),
    ({"age": (39, 30)}, r"^age must go from low to high, got '39 to 30'; swap"),
    ({"age": (200, 30)}, r"^age must go from low to high"),
    ({"age": (30, -1)}, r"^age must go from low to high"),
    ({"age": None}, r"^age must say which values, got None; pass \(low, high\)"),
    ({"age": (1, 2, 3)}, r"^age must have a low and a high end, got 'a tuple of 3'"),
    ({"age": (NULL, 30)}, r"^low of age must not be a special cell, got 'null'; pass None"),
    ({"age": (3, ABOVE)}, r"^high of age must not be a special cell"),
    ({"age": OTHER}, r"^age must ask for a special cell that Integer columns have, got 'other'; choose"),
    ({"age": Special.ORDINARY}, r"^age must ask for a special cell"),
    (
        {"age": (30.5, 40)},
        r"^low of age must be a whole number, as the column is Integer\(0, 120\), got 30.5",
    ),
    ({"age": (30, math.inf)}, r"^high of age must be a finite number, got inf"),
    ({"age": math.nan}, r"^age must be a finite number"),
    ({"age": True}, r"^age must be a finite number"),
    ({"age": {"a"}}, r"^age must be a finite number, got 'a'"),
    ({"age": object()}, r"^age must be a finite number, got a value of type object"),
    ({"age": np.array([30, 39])}, r"^age must be a finite number, got a value of type ndarray"),
    ({"age": ([30], [39])}, r"^low of age must be a finite number, got a value of type list"),
    ({3: 3}, r"^column must be one of 'age', 'closed', got 3"),  # type: ignore[dict-item]
    (
        {"age": 3, "closed": 4},
        r"^where must name columns that were released together, and those are \('age'\) and \('closed'\), "
        r"got 'age, closed'; ask for one column at a time, or publish them together: "
        r"views=\[\('age', 'closed'\), \.\.\.\]",
    ),
    ({"age": 3, "closed ": 4}, r"^column must be one of"),
]


@pytest.mark.parametrize(("where", "message"), WRONG, ids=[message for _, message in WRONG])
def test_wrong_questions_name_parameter_rule_given_and_fix(
    publish: Publish, where: dict[str, object], message: str
) -> None:
    """Every wrong question gets a typed error that says what to do."""
    release = publish(age=(Integer(0, 120), AGES), closed=(Integer(0, 5), [1, 2]))

    with pytest.raises(InvalidParameter, match=message):
        release.count(where)


def test_single_values_beyond_the_bounds_are_refused(publish: Publish) -> None:
    """Nothing tells them apart from other values there, so no count of them is exact."""
    release = publish(age=(Integer(0, 120), [30, 130]), day=(Date("2024-01-01", "2024-12-31"), [None] * 2))

    for value in (130, -1, {30, 130}):
        with pytest.raises(InvalidParameter, match=r"^age must lie within.*special cell below or above"):
            release.count(age=value)
    with pytest.raises(InvalidParameter, match=r"^day must lie within the declared bounds"):
        release.count(day="2025-01-01")
    assert release.count(age=ABOVE).value == 1.0
    assert release.count(age=(110, 200)).value == 0.0


@pytest.mark.parametrize("closed", ["bth", (1, 3), None])
def test_closed_is_checked_where_no_column_is_asked_for(publish: Publish, closed: object) -> None:
    """A slip of the pen, or a column of that name, is not answered by the count of all rows."""
    release = publish(closed=(Integer(0, 5), [1, 2]))

    with pytest.raises(InvalidParameter, match=r"^closed must be one of 'both'"):
        release.count(closed=closed)  # type: ignore[arg-type]


def test_the_examples_in_the_docstring_of_a_release_run(together: Publish) -> None:
    """Every question there is answered, with the exact count as nothing is added here."""
    release = together(
        age=(Integer(0, 120), [29, 30, 39, 40, 42, 65, 130, None]),
        town=(Category(["Rome", "Bari", "Turin"]), ["Rome", "Bari", "Bari", *["Turin"] * 5]),
        where=(Integer(0, 5), [3, *[1] * 7]),
        when=(Date("2013-01-01", "2013-12-31"), ["2013-03-01", "2013-03-31", *["2013-04-01"] * 6]),
        views=[("age",), ("town",), ("where",), ("when",), ("age", "town")],
    )
    examples = re.findall(r"^ +(release\..*?\)) {2,}\w", Release.__doc__ or "", re.MULTILINE)

    answers = {example: eval(example, {"release": release, "pt": partita}).value for example in examples}

    assert list(answers.values()) == [2.0, 2.0, 1.0, 3.0, 7.0, 2.0, 1.0, 1.0, 2.0, 0.0]


def test_reserved_words_go_through_where(publish: Publish) -> None:
    """Columns named as parameters are asked for by `where`, and so may any column be; twice is refused."""
    words = ("bins", "closed", "self", "where")
    release = publish(**{word: (Integer(0, 5), [1, 2]) for word in words})

    assert [release.count({word: 2}).value for word in words] == [1.0] * 4
    assert release.count(self=2).value == 1.0
    with pytest.raises(
        InvalidParameter, match=r"^column must not be .*, got 'bins'; pass where={'bins': ...}"
    ):
        release.count(bins=2)
    with pytest.raises(InvalidParameter, match=r"^column must be asked for once.*, got 'self'"):
        release.count({"self": 2}, self=2)
    with pytest.raises(InvalidParameter, match=r"^where must be a mapping"):
        release.count([("self", 2)])  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match=r"^closed must be one of 'both'"):
        release.count({"self": 1}, closed="open")  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match=r"^closed must be one of 'both'"):
        release.counts({"self": ([1], [2])}, closed=None)  # type: ignore[arg-type]


def test_releases_have_columns_once() -> None:
    """A release without views, or with two of one column, is refused."""
    with pytest.raises(InvalidRelease, match="views"):
        Release(views=(), guarantee=None, provenance=Provenance(version="0", day="2026-01-01"))
